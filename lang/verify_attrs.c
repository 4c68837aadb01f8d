/* verify_attrs.c: literals and attributes of nodes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

/* ---- literals ------------------------------------------------------------------------------------------ */

static bool lit_fine(const ccn__verifier *v, const ccn__lit *l, uint32_t depth, uint32_t *nodes) {
  if (!l || depth > LIT_DEPTH || ++*nodes > LIT_NODES) return false;
  switch (l->kind) {
  case CCN__LIT_DIM: return ccn__verify_dim_known(v, l->dim);
  case CCN__LIT_UNARY:
    return (l->op == CCN__T_MINUS || l->op == CCN__T_NOT) && lit_fine(v, l->x, depth + 1, nodes);
  case CCN__LIT_BINARY:
    return l->op > CCN__T_NONE && l->op < CCN__T_NOT && lit_fine(v, l->x, depth + 1, nodes) &&
           lit_fine(v, l->y, depth + 1, nodes);
  case CCN__LIT_CALL:
    return ccn__lit_arity((ccn__kernel_id)l->op) == 1u + (l->y != NULL) &&
           lit_fine(v, l->x, depth + 1, nodes) && (!l->y || lit_fine(v, l->y, depth + 1, nodes));
  default: return l->kind <= CCN__LIT_UNKNOWN;
  }
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

const ccn__type *ccn__verify_operand_type(const ccn__verifier *v, uint32_t i) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  return i < n->nin ? ccn__verify_node_at(v, n->in[i])->type : NULL;
}

uint32_t ccn__verify_operand_rank(const ccn__verifier *v) {
  const ccn__type *t = ccn__verify_operand_type(v, 0);
  return t ? t->rank : 0;
}

static bool ints_between(const ccn__attr *a, int64_t low, int64_t high) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->ints[i] < low || a->ints[i] > high) return false;
  return true;
}

static bool ints_differ(const ccn__attr *a) {
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < i; j++)
      if (a->ints[i] == a->ints[j]) return false;
  return true;
}

bool ccn__verify_is_coord(const ccn__verifier *v, int64_t c, uint32_t axis) {
  int32_t n = v->g->mesh.size[axis];
  return c >= 0 && c <= INT32_MAX && (!n || c < n);
}

static bool int_fine(const ccn__verifier *v, const ccn__attr *a) {
  int64_t i = a->i;
  switch (a->key) {
  case CCN__A_DIM:
  case CCN__A_FROM:
  case CCN__A_TO: return i >= 0 && i < CCN__MAX_RANK;
  case CCN__A_KEEP:
  case CCN__A_PER: return i == 0 || i == 1;
  case CCN__A_BY: return i > INT32_MIN && i < INT32_MAX;
  case CCN__A_ROOT:
  case CCN__A_COORD: return i >= 0 && i <= INT32_MAX;
  case CCN__A_AXIS: return i >= 0 && i < v->g->mesh.naxes;
  default: return i >= 0;
  }
}

static bool ints_fine(const ccn__verifier *v, const ccn__attr *a) {
  uint32_t rank = ccn__verify_operand_rank(v);
  if (a->n && !a->ints) return false;
  switch (a->key) {
  case CCN__A_DIMS: return ints_between(a, 0, (int64_t)rank - 1) && ints_differ(a);
  case CCN__A_PERM: return a->n == rank && ints_between(a, 0, (int64_t)rank - 1) && ints_differ(a);
  case CCN__A_DROP: return a->n == rank && ints_between(a, 0, 1);
  case CCN__A_PAIRS: return a->n % 2 == 0 && ints_between(a, 0, INT32_MAX);
  default: return true;
  }
}

static bool dims_fine(const ccn__verifier *v, const ccn__attr *a) {
  if (a->n != ccn__verify_operand_rank(v))
    return false; /* start and count: one for each dim of the operand */
  for (uint32_t i = 0; i < a->n; i++)
    if (!ccn__verify_dim_known(v, a->dims[i])) return false;
  return true;
}

/* Orders that turn with the owner of a slice, or the root, have none to turn with elsewhere. */
static bool order_fine(const ccn__verifier *v, int64_t packed) {
  const uint16_t op = ccn__verify_node_at(v, v->id)->op;
  if (!ccn__order_valid(packed)) return false;
  switch (ccn__order_of(packed)) {
  case CCN__ORDER_DOUBLE: return op == CCN__OP_ALLREDUCE;
  case CCN__ORDER_BINARY: return op == CCN__OP_ALLREDUCE || op == CCN__OP_REDUCE;
  default: return op == CCN__OP_ALLREDUCE || op == CCN__OP_REDUCE || op == CCN__OP_REDUCESCATTER;
  }
}

static bool attr_fine(const ccn__verifier *v, const ccn__attr *a) {
  uint32_t nodes = 0;
  int64_t whole;
  switch (ccn__attr_table[a->key].kind) {
  case CCN__ATTR_INT: return int_fine(v, a);
  case CCN__ATTR_LIT: return lit_fine(v, a->lit, 0, &nodes);
  case CCN__ATTR_INTS:
  case CCN__ATTR_PAIRS: return ints_fine(v, a);
  case CCN__ATTR_DIM:
    return ccn__verify_dim_known(v, a->dim) && !(ccn__dim_is_const(a->dim, &whole) && whole < 1);
  case CCN__ATTR_DIMS: return dims_fine(v, a);
  case CCN__ATTR_AXES: return a->i > 0 && a->i >> v->g->mesh.naxes == 0;
  case CCN__ATTR_RED: return a->i > CCN__RED_NONE && a->i < CCN__RED_COUNT;
  case CCN__ATTR_ORDER: return order_fine(v, a->i);
  default: return a->text != NULL;
  }
}

/* Attributes without which an op means nothing. */
static const struct needed {
  uint16_t op;
  uint8_t key;
} needed[] = {
  {CCN__OP_ALLREDUCE, CCN__A_RED},  {CCN__OP_REDUCESCATTER, CCN__A_RED}, {CCN__OP_REDUCE, CCN__A_RED},
  {CCN__OP_REDUCE, CCN__A_ROOT},    {CCN__OP_GATHER, CCN__A_ROOT},       {CCN__OP_BROADCAST, CCN__A_ROOT},
  {CCN__OP_SCATTER, CCN__A_ROOT},   {CCN__OP_SHIFT, CCN__A_BY},          {CCN__OP_PERMUTE, CCN__A_PAIRS},
  {CCN__OP_INDEX, CCN__A_START},    {CCN__OP_INDEX, CCN__A_COUNT},       {CCN__OP_TRANSPOSE, CCN__A_PERM},
  {CCN__OP_CONST, CCN__A_VALUE},    {CCN__OP_FULL, CCN__A_VALUE},        {CCN__OP_DROPOUT, CCN__A_P},
  {CCN__OP_DROPOUT, CCN__A_SEED},   {CCN__OP_RANDN, CCN__A_SEED},        {CCN__OP_RAND, CCN__A_SEED},
  {CCN__OP_RANDINT, CCN__A_SEED},   {CCN__OP_RANDINT, CCN__A_LOW},       {CCN__OP_RANDINT, CCN__A_HIGH},
  {CCN__OP_BERNOULLI, CCN__A_SEED}, {CCN__OP_BERNOULLI, CCN__A_P},       {CCN__OP_RANK, CCN__A_AXIS},
  {CCN__OP_ON, CCN__A_AXIS},        {CCN__OP_ON, CCN__A_COORD},          {CCN__OP_ENTER, CCN__A_AXIS},
  {CCN__OP_ENTER, CCN__A_COORD},    {CCN__OP_REPEAT, CCN__A_TIMES},      {CCN__OP_PARAM, CCN__A_NUMBER},
  {CCN__OP_CARRY, CCN__A_NUMBER},   {CCN__OP_RESULT, CCN__A_NUMBER},     {CCN__OP_HOST, CCN__A_HOST},
  {CCN__OP_HOST, CCN__A_SIG},
};

static bool attributes_needed(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  bool collective = ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE;
  if (collective && !ccn__attr_find(n->attrs, CCN__A_OVER))
    return ccn__verify_fault(v, "the attribute over is missing");
  for (size_t i = 0; i < CCN__COUNT(needed); i++)
    if (needed[i].op == n->op && !ccn__attr_find(n->attrs, (ccn__attr_key)needed[i].key))
      return ccn__verify_fault(v, "the attribute %s is missing", ccn__attr_table[needed[i].key].name);
  return true;
}

bool ccn__verify_attributes(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  for (uint32_t i = 0; i < n->attrs.n; i++) {
    const ccn__attr *a = &n->attrs.at[i];
    if (a->key >= CCN__ATTR_KEYS) return ccn__verify_fault(v, "an attribute that there is not");
    const char *name = ccn__attr_table[a->key].name;
    if (ccn__attr_find(n->attrs, (ccn__attr_key)a->key) != a)
      return ccn__verify_fault(v, "the attribute %s is there twice", name);
    if (!attr_fine(v, a)) return ccn__verify_fault(v, "the attribute %s has no sensible value", name);
  }
  return attributes_needed(v);
}
