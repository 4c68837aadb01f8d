/* verify.c: checks everything that a graph promises (graph.h), so that whoever reads graphs need not.
 *
 * In this order: mesh and symbols, regions, then each node's place, operands, attributes and type, what
 * holds for blocks, parameters and updates, outputs, constraints. The first thing that is wrong is the
 * answer. Nothing here trusts anything that was not checked before: graphs come from text, too.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ast.h"
#include "graph.h"

enum {
  LIT_DEPTH = 1000,
  LIT_NODES = 100000, /* of one literal, shared ones counted each time */
  WHOLE_STEPS = 256   /* constraints tried for the dims of one type */
};

typedef struct verifier {
  ccn__graph *g;
  const char *text; /* what is wrong */
  ccn__id id;       /* the node that is looked at */
} verifier;

/* Says what is wrong, of the whole graph. */
CCN__PRINTF(2, 3) static bool fail(verifier *v, const char *fmt, ...) {
  char s[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(s, sizeof s, fmt, args);
  va_end(args);
  v->text = ccn__arena_printf(v->g->arena, "%s", s);
  return false;
}

static const char *node_name(const verifier *v, ccn__id id) {
  const ccn__node *n = &v->g->nodes.at[id];
  if (n->name) return n->name;
  if (n->autoname) return n->autoname;
  return n->op < CCN__OP_COUNT ? ccn__op_table[n->op].name : "?";
}

/* Says what is wrong, of the node that is looked at. */
CCN__PRINTF(2, 3) static bool fault(verifier *v, const char *fmt, ...) {
  char s[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(s, sizeof s, fmt, args);
  va_end(args);
  v->text = ccn__arena_printf(v->g->arena, "%%%u (%s): %s", (unsigned)v->id, node_name(v, v->id), s);
  return false;
}

static const ccn__node *node_at(const verifier *v, ccn__id id) { return &v->g->nodes.at[id]; }

/* ---- mesh and symbols ---------------------------------------------------------------------------------- */

static bool mesh_and_symbols(verifier *v) {
  const ccn__graph *g = v->g;
  const ccn__mesh *m = &g->mesh;
  if (m->naxes > CCN__MAX_AXES) return fail(v, "the mesh has more than %d axes", CCN__MAX_AXES);
  for (uint32_t i = 0; i < m->naxes; i++) {
    if (!m->name[i] || m->size[i] < 0)
      return fail(v, "axis %u of the mesh has no name or a negative size", (unsigned)i);
    for (uint32_t j = 0; j < i; j++)
      if (m->name[i] == m->name[j]) return fail(v, "the mesh has two axes %s", m->name[i]);
  }
  for (uint32_t i = 0; i < g->symbols.n; i++) {
    const ccn__symbol *s = &g->symbols.at[i];
    if (!s->name || s->kind > CCN__SYM_COUNT) return fail(v, "symbol %u has no name or no kind", (unsigned)i);
    uint32_t end = s->kind == CCN__SYM_SIZE ? m->naxes : s->kind == CCN__SYM_DIM ? UINT32_MAX : g->nbundles;
    if (s->index >= end) return fail(v, "symbol %s belongs to an axis or bundle that is not there", s->name);
    for (uint32_t j = 0; j < i; j++) {
      const ccn__symbol *t = &g->symbols.at[j];
      bool same = s->kind == CCN__SYM_DIM ? s->name == t->name : s->index == t->index;
      if (s->kind == t->kind && same) return fail(v, "symbol %s is there twice", s->name);
    }
  }
  return true;
}

static bool dim_known(const verifier *v, const ccn__dim *d) {
  if (!d || d->den < 1) return false;
  for (uint32_t i = 0; i < d->n; i++)
    for (uint32_t j = 0; j < d->term[i].degree; j++)
      if (d->term[i].sym[j] >= v->g->symbols.n) return false;
  return true;
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static bool has_block(uint32_t op) { return op == CCN__OP_ON || op == CCN__OP_REPEAT; }

static bool regions(verifier *v) {
  const ccn__graph *g = v->g;
  if (!g->regions.n || g->regions.at[0].owner != CCN__NO_ID || g->regions.at[0].nyield)
    return fail(v, "region 0 is not the body of the graph");
  for (uint32_t i = 1; i < g->regions.n; i++) {
    const ccn__region *r = &g->regions.at[i];
    if (r->owner >= g->nodes.n || g->nodes.at[r->owner].body != i)
      return fail(v, "region %u has no owner", (unsigned)i);
    if (i > 1 && r->owner <= g->regions.at[i - 1].owner)
      return fail(v, "region %u is out of order", (unsigned)i);
    v->id = r->owner;
    if (r->nyield && g->nodes.at[r->owner].op != CCN__OP_REPEAT)
      return fault(v, "only the block of a repeat yields");
  }
  return true;
}

/* Regions around a node end at the body, in a correct graph; owners are smaller than what they hold, so
 * the climb ends in any graph. */
static uint32_t region_around(const verifier *v, uint32_t region) {
  return region ? node_at(v, v->g->regions.at[region].owner)->region : 0;
}

static bool encloses(const verifier *v, uint32_t outer, uint32_t region) {
  while (region != outer && region) region = region_around(v, region);
  return region == outer;
}

/* A value is seen in its region and what that holds; what an `on` block makes is seen behind it as well. */
static bool visible(const verifier *v, ccn__id id, uint32_t from) {
  uint32_t region = node_at(v, id)->region;
  while (!encloses(v, region, from)) {
    if (node_at(v, v->g->regions.at[region].owner)->op != CCN__OP_ON) return false;
    region = region_around(v, region);
  }
  return true;
}

/* Where node `id` stands: nodes are numbered in the order of the text, so that the region of a node is the
 * one that is open (*region), or one around that. */
static bool standing(verifier *v, uint32_t *region) {
  const ccn__graph *g = v->g;
  const ccn__node *n = node_at(v, v->id);
  if (n->op >= CCN__OP_COUNT) return fault(v, "there is no op %u", (unsigned)n->op);
  if (ccn__op_table[n->op].kind == CCN__KIND_COMPOSED)
    return fault(v, "%s must be expanded", ccn__op_table[n->op].name);
  if (n->region >= g->regions.n || !encloses(v, n->region, *region))
    return fault(v, "it stands in a region that is not open");
  *region = n->region;
  if (has_block(n->op) != (n->body != 0)) return fault(v, n->body ? "it has a block" : "it has no block");
  if (!n->body) return true;
  if (n->body >= g->regions.n || g->regions.at[n->body].owner != v->id)
    return fault(v, "its block is not its own");
  *region = n->body;
  return true;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static bool arity(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  const ccn__op_info *info = &ccn__op_table[n->op];
  if (info->nin >= 0 && n->nin != info->nin)
    return fault(v, "%s has %d operands, not %u", info->name, info->nin, (unsigned)n->nin);
  if (n->op == CCN__OP_CONCAT && n->nin == 0) return fault(v, "concat has at least one operand");
  return true;
}

static bool operands(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  if (!arity(v)) return false;
  for (uint32_t i = 0; i < n->nin; i++) {
    ccn__id x = n->in[i];
    if (x >= v->id) return fault(v, "operand %%%u is not made before it", (unsigned)x);
    if (!visible(v, x, n->region))
      return fault(v, "operand %%%u is not visible outside its repeat", (unsigned)x);
    uint32_t op = node_at(v, x)->op;
    if (has_block(op) && !(n->op == CCN__OP_RESULT && op == CCN__OP_REPEAT))
      return fault(v, "operand %%%u is no value", (unsigned)x);
  }
  return true;
}

/* ---- literals ------------------------------------------------------------------------------------------ */

static bool lit_fine(const verifier *v, const ccn__lit *l, uint32_t depth, uint32_t *nodes) {
  if (!l || depth > LIT_DEPTH || ++*nodes > LIT_NODES) return false;
  switch (l->kind) {
  case CCN__LIT_DIM: return dim_known(v, l->dim);
  case CCN__LIT_UNARY:
    return (l->op == CCN__T_MINUS || l->op == CCN__T_NOT) && lit_fine(v, l->x, depth + 1, nodes);
  case CCN__LIT_BINARY:
    return l->op > CCN__T_NONE && l->op < CCN__T_NOT && lit_fine(v, l->x, depth + 1, nodes) &&
           lit_fine(v, l->y, depth + 1, nodes);
  default: return l->kind <= CCN__LIT_UNKNOWN;
  }
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

static const ccn__type *operand_type(const verifier *v, uint32_t i) {
  const ccn__node *n = node_at(v, v->id);
  return i < n->nin ? node_at(v, n->in[i])->type : NULL;
}

static uint32_t operand_rank(const verifier *v) {
  const ccn__type *t = operand_type(v, 0);
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

static bool is_coord(const verifier *v, int64_t c, uint32_t axis) {
  int32_t n = v->g->mesh.size[axis];
  return c >= 0 && c <= INT32_MAX && (!n || c < n);
}

static bool int_fine(const verifier *v, const ccn__attr *a) {
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

static bool ints_fine(const verifier *v, const ccn__attr *a) {
  uint32_t rank = operand_rank(v);
  if (a->n && !a->ints) return false;
  switch (a->key) {
  case CCN__A_DIMS: return ints_between(a, 0, (int64_t)rank - 1) && ints_differ(a);
  case CCN__A_PERM: return a->n == rank && ints_between(a, 0, (int64_t)rank - 1) && ints_differ(a);
  case CCN__A_DROP: return a->n == rank && ints_between(a, 0, 1);
  case CCN__A_PAIRS: return a->n % 2 == 0 && ints_between(a, 0, INT32_MAX);
  default: return true;
  }
}

static bool dims_fine(const verifier *v, const ccn__attr *a) {
  if (a->n != operand_rank(v)) return false; /* start and count: one for each dim of the operand */
  for (uint32_t i = 0; i < a->n; i++)
    if (!dim_known(v, a->dims[i])) return false;
  return true;
}

static bool attr_fine(const verifier *v, const ccn__attr *a) {
  uint32_t nodes = 0;
  int64_t whole;
  switch (ccn__attr_table[a->key].kind) {
  case CCN__ATTR_INT: return int_fine(v, a);
  case CCN__ATTR_LIT: return lit_fine(v, a->lit, 0, &nodes);
  case CCN__ATTR_INTS:
  case CCN__ATTR_PAIRS: return ints_fine(v, a);
  case CCN__ATTR_DIM: return dim_known(v, a->dim) && !(ccn__dim_is_const(a->dim, &whole) && whole < 1);
  case CCN__ATTR_DIMS: return dims_fine(v, a);
  case CCN__ATTR_AXES: return a->i > 0 && a->i >> v->g->mesh.naxes == 0;
  case CCN__ATTR_RED: return a->i > CCN__RED_NONE && a->i < CCN__RED_COUNT;
  case CCN__ATTR_ORDER: return a->i >= 0 && a->i < CCN__ORDER_COUNT;
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
  {CCN__OP_CARRY, CCN__A_NUMBER},   {CCN__OP_RESULT, CCN__A_NUMBER},
};

static bool attributes_needed(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  bool collective = ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE;
  if (collective && !ccn__attr_find(n->attrs, CCN__A_OVER)) return fault(v, "the attribute over is missing");
  for (size_t i = 0; i < CCN__COUNT(needed); i++)
    if (needed[i].op == n->op && !ccn__attr_find(n->attrs, (ccn__attr_key)needed[i].key))
      return fault(v, "the attribute %s is missing", ccn__attr_table[needed[i].key].name);
  return true;
}

static bool attributes(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  for (uint32_t i = 0; i < n->attrs.n; i++) {
    const ccn__attr *a = &n->attrs.at[i];
    if (a->key >= CCN__ATTR_KEYS) return fault(v, "an attribute that there is not");
    const char *name = ccn__attr_table[a->key].name;
    if (ccn__attr_find(n->attrs, (ccn__attr_key)a->key) != a)
      return fault(v, "the attribute %s is there twice", name);
    if (!attr_fine(v, a)) return fault(v, "the attribute %s has no sensible value", name);
  }
  return attributes_needed(v);
}

/* ---- types --------------------------------------------------------------------------------------------- */

/* Whether the constraints make the extent a whole number: one of them divides it, or what is left without
 * one is whole. The budget is for hostile text; programs need one or two steps. */
static bool known_whole(const verifier *v, const ccn__dim *d, uint32_t *budget) {
  ccn__arena *a = v->g->arena;
  if (ccn__dim_is_whole(d)) return true;
  for (uint32_t i = 0; i < v->g->constraints.n && *budget; i++) {
    const ccn__constraint *c = &v->g->constraints.at[i];
    if (c->kind != CCN__NEED_WHOLE || !dim_known(v, c->x)) continue;
    if (ccn__dim_equal(d, c->x)) return true;
    --*budget;
    const ccn__dim *times = ccn__dim_div(a, d, c->x), *rest = ccn__dim_sub(a, d, c->x);
    if (times && ccn__dim_is_whole(times)) return true;
    if (rest && (ccn__dim_is_whole(rest) || (rest->n < d->n && known_whole(v, rest, budget)))) return true;
  }
  return false;
}

/* The type of these is written by somebody, not derived: their extents are in the constraints. */
static bool is_maker(uint32_t op) {
  uint8_t kind = ccn__op_table[op].kind;
  return op == CCN__OP_PARAM || op == CCN__OP_CONST || kind == CCN__KIND_MAKER ||
         (kind == CCN__KIND_RANDOM && op != CCN__OP_DROPOUT);
}

static bool extents(verifier *v, const ccn__type *t, bool maker) {
  int64_t n;
  uint32_t budget = WHOLE_STEPS;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (!dim_known(v, t->dim[d])) return fault(v, "dim %u of its type has unknown symbols", (unsigned)d);
    if (ccn__dim_is_const(t->dim[d], &n) && n < 0)
      return fault(v, "dim %u of its type is negative", (unsigned)d);
    if (maker && !known_whole(v, t->dim[d], &budget))
      return fault(v, "dim %u of its type is no whole number by any constraint", (unsigned)d);
  }
  return true;
}

static bool bundle(verifier *v, const ccn__type *t) {
  uint32_t sym;
  if (t->bundle > CCN__BUNDLE_SCALARS || t->bundle_id >= v->g->nbundles)
    return fault(v, "its bundle is not there");
  bool one = t->rank == 1 && ccn__dim_is_symbol(t->dim[0], &sym);
  const ccn__symbol *s = one ? &v->g->symbols.at[sym] : NULL;
  uint8_t kind = t->bundle == CCN__BUNDLE_TENSORS ? CCN__SYM_TOTAL : CCN__SYM_COUNT;
  if (!s || s->kind != kind || s->index != t->bundle_id)
    return fault(v, "a bundle's dim is the symbol of its bundle");
  return true;
}

static bool placement(verifier *v, const ccn__type *t, uint32_t axis) {
  const ccn__place *p = &t->place[axis];
  const char *over = v->g->mesh.name[axis];
  int64_t n;
  switch (p->kind) {
  case CCN__REPLICATED:
  case CCN__LOCAL: return true;
  case CCN__SLICED:
    if (p->dim >= t->rank) return fault(v, "its type is sliced over %s in a dim that it does not have", over);
    if (!p->unit) return true;
    if (!dim_known(v, p->unit) || (ccn__dim_is_const(p->unit, &n) && n < 1))
      return fault(v, "its type is sliced over %s with a unit that is no positive number", over);
    return true;
  case CCN__PARTIAL:
    if (p->op == CCN__RED_NONE || p->op >= CCN__RED_COUNT || p->op == CCN__RED_AVG)
      return fault(v, "its type owes over %s what cannot be owed", over);
    for (uint32_t b = 0; b < axis; b++)
      if (t->place[b].kind == CCN__PARTIAL && t->place[b].op != p->op)
        return fault(v, "its type owes two operators");
    return true;
  case CCN__AT: {
    int32_t size = v->g->mesh.size[axis];
    if (size && (p->coord < 0 || p->coord >= size))
      return fault(v, "its type is at a coordinate outside %s", over);
    return true;
  }
  default: return fault(v, "its type has no placement over %s", over);
  }
}

/* Blocks are no values; if they have a type at all it says nothing. */
static bool no_type(verifier *v, const ccn__type *t) {
  ccn__type none = {.dtype = CCN__BOOL, .naxes = (uint8_t)v->g->mesh.naxes};
  return !t || ccn__type_equal(t, &none) ? true : fault(v, "a block has no type");
}

static bool well_formed(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  const ccn__type *t = n->type;
  if (!t) return has_block(n->op) ? true : fault(v, "it has no type");
  if (t->dtype >= CCN__DTYPE_COUNT || !ccn__dtype_size((ccn__dtype)t->dtype))
    return fault(v, "its type has no dtype");
  if (t->rank > CCN__MAX_RANK) return fault(v, "its type has more than %d dims", CCN__MAX_RANK);
  if (t->naxes != v->g->mesh.naxes) return fault(v, "its type is for another mesh");
  if (!extents(v, t, is_maker(n->op)) || (t->bundle && !bundle(v, t))) return false;
  for (uint32_t a = 0; a < t->naxes; a++)
    if (!placement(v, t, a)) return false;
  return has_block(n->op) ? no_type(v, t) : true;
}

static const char *type_text(const verifier *v, const ccn__type *t) {
  ccn__text s;
  ccn__text_init(&s, v->g->arena);
  ccn__type_print(v->g, t, &s);
  return s.at;
}

static bool same_type(verifier *v, const ccn__type *want, const char *whose) {
  const ccn__type *t = node_at(v, v->id)->type;
  if (ccn__type_equal(t, want)) return true;
  return fault(v, "its type is %s, but %s is %s", type_text(v, t), whose, type_text(v, want));
}

static bool type_error(verifier *v, const ccn__type_error *err) {
  const ccn__error_info *info = ccn__error_find(err->code);
  const char *axis =
    err->axis >= 0 && (uint32_t)err->axis < v->g->mesh.naxes ? v->g->mesh.name[err->axis] : NULL;
  return fault(v, "CCN%04u%s%s: %s", (unsigned)err->code, axis ? " over " : "", axis ? axis : "",
               err->text ? err->text
               : info    ? info->title
                         : "its operands do not fit");
}

/* Concat's operands must have the same dims before inference may look at them together. */
static bool concat_ranks(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  if (n->op != CCN__OP_CONCAT) return true;
  int64_t dim = ccn__attr_int(n->attrs, CCN__A_DIM, 0);
  for (uint32_t i = 0; i < n->nin; i++)
    if (operand_type(v, i)->rank != operand_rank(v) || dim >= operand_rank(v))
      return fault(v, "its operands must have the same number of dims, and the one that is named");
  return true;
}

static bool inferred(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  const ccn__type **in = CCN__NEWN(v->g->arena, const ccn__type *, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) in[i] = operand_type(v, i);
  if (!concat_ranks(v)) return false;
  ccn__type want;
  ccn__type_error err = {0};
  ccn__infer_in q = {
    .g = v->g, .op = (ccn__op)n->op, .in = in, .nin = n->nin, .attrs = n->attrs, .want = n->type};
  if (!ccn__infer(&q, &want, &err)) return type_error(v, &err);
  return same_type(v, &want, "what its operands give");
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

static const ccn__attr *number_of(const ccn__node *n) { return ccn__attr_find(n->attrs, CCN__A_NUMBER); }

/* A carried value inside the loop: number k of the repeat whose block it stands in. */
static bool carry(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  ccn__id owner = v->g->regions.at[n->region].owner;
  if (!n->region || node_at(v, owner)->op != CCN__OP_REPEAT)
    return fault(v, "a carry stands in the block of a repeat");
  const ccn__node *loop = node_at(v, owner);
  int64_t k = number_of(n)->i;
  if (k >= loop->nin) return fault(v, "the repeat has no carried value %lld", (long long)k);
  if (v->id != owner + 1 + (uint32_t)k) return fault(v, "carries stand first in their block, in order");
  return same_type(v, node_at(v, loop->in[k])->type, "the carried value's");
}

static bool result(verifier *v) {
  const ccn__node *n = node_at(v, v->id), *loop = node_at(v, n->in[0]);
  if (loop->op != CCN__OP_REPEAT) return fault(v, "a result belongs to a repeat");
  int64_t k = number_of(n)->i;
  if (k >= loop->nin) return fault(v, "the repeat has no carried value %lld", (long long)k);
  return same_type(v, node_at(v, loop->in[k])->type, "the carried value's");
}

static bool inside_repeat(const verifier *v, uint32_t region) {
  for (; region; region = region_around(v, region))
    if (node_at(v, v->g->regions.at[region].owner)->op == CCN__OP_REPEAT) return true;
  return false;
}

/* Every block `on` around the node: what is computed there exists at its coordinate, or is the same
 * everywhere (literals, makers, replicated values, until one of the coordinate meets them) and does not
 * leave, see leaves_on. rank() is local before it enters. */
static bool inside_on(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  for (uint32_t r = n->region; r; r = region_around(v, r)) {
    const ccn__node *on = node_at(v, v->g->regions.at[r].owner);
    if (on->op != CCN__OP_ON) continue;
    uint32_t axis = (uint32_t)ccn__attr_int(on->attrs, CCN__A_AXIS, 0);
    int64_t coord = ccn__attr_int(on->attrs, CCN__A_COORD, 0);
    const char *name = v->g->mesh.name[axis];
    if (ccn__attr_int(n->attrs, CCN__A_OVER, 0) >> axis & 1)
      return fault(v, "CCN0306: a collective over %s inside `on` %s", name, name);
    if (has_block(n->op) || is_maker(n->op)) continue;
    const ccn__place *p = &n->type->place[axis];
    bool same = p->kind == CCN__REPLICATED && n->op != CCN__OP_UPDATE;
    if (!same && !(p->kind == CCN__AT && p->coord == coord))
      return fault(v, "its type is not at(%lld) over %s, where its block is", (long long)coord, name);
  }
  return true;
}

/* What leaves an `on` block exists at its coordinate. */
static bool leaves_on(verifier *v, ccn__id x, uint32_t to) {
  const ccn__node *n = node_at(v, x);
  for (uint32_t r = n->region; r && !encloses(v, r, to); r = region_around(v, r)) {
    const ccn__node *on = node_at(v, v->g->regions.at[r].owner);
    int64_t axis = ccn__attr_int(on->attrs, CCN__A_AXIS, 0);
    if (on->op == CCN__OP_ON && n->type->place[axis].kind != CCN__AT)
      return fail(v, "%%%u (%s): it is used behind its block, but its type is not at(%lld) over %s",
                  (unsigned)x, node_name(v, x), (long long)ccn__attr_int(on->attrs, CCN__A_COORD, 0),
                  v->g->mesh.name[axis]);
  }
  return true;
}

static bool enter(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  for (uint32_t r = n->region; r; r = region_around(v, r)) {
    const ccn__node *on = node_at(v, v->g->regions.at[r].owner);
    if (on->op != CCN__OP_ON ||
        ccn__attr_int(on->attrs, CCN__A_AXIS, 0) != ccn__attr_int(n->attrs, CCN__A_AXIS, 0))
      continue;
    if (ccn__attr_int(on->attrs, CCN__A_COORD, 0) == ccn__attr_int(n->attrs, CCN__A_COORD, 0))
      return inferred(v);
    return fault(v, "it reads at another coordinate than its block");
  }
  return fault(v, "it stands outside a block of that axis");
}

static bool on(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  uint32_t axis = (uint32_t)ccn__attr_int(n->attrs, CCN__A_AXIS, 0);
  if (!is_coord(v, ccn__attr_int(n->attrs, CCN__A_COORD, 0), axis))
    return fault(v, "CCN0308: %s has no such coordinate", v->g->mesh.name[axis]);
  return true;
}

/* The block of a repeat gives each carried value its next one, of the same type. */
static bool yields(verifier *v, const ccn__region *r) {
  const ccn__node *loop = node_at(v, r->owner);
  uint32_t body = loop->body, ncarries = 0;
  if (loop->op != CCN__OP_REPEAT) return true;
  v->id = r->owner;
  while (r->owner + 1 + ncarries < v->g->nodes.n) {
    const ccn__node *c = node_at(v, r->owner + 1 + ncarries);
    if (c->op != CCN__OP_CARRY || c->region != body) break;
    ncarries++;
  }
  if (ncarries != loop->nin || r->nyield != loop->nin)
    return fault(v, "it has %u carried values, its block %u carries and %u yields", (unsigned)loop->nin,
                 (unsigned)ncarries, (unsigned)r->nyield);
  for (uint32_t k = 0; k < r->nyield; k++) {
    ccn__id y = r->yield[k];
    if (y >= v->g->nodes.n || has_block(node_at(v, y)->op) || !visible(v, y, body))
      return fault(v, "what it yields for carried value %u is no value of its block", (unsigned)k);
    const ccn__type *got = node_at(v, y)->type, *want = node_at(v, loop->in[k])->type;
    if (!ccn__type_equal(got, want))
      return fault(v, "carried value %u becomes %s from %s", (unsigned)k, type_text(v, got),
                   type_text(v, want));
    if (!leaves_on(v, y, body)) return false;
  }
  return true;
}

/* ---- each node ----------------------------------------------------------------------------------------- */

static bool meaning(verifier *v) {
  const ccn__node *n = node_at(v, v->id);
  switch (n->op) {
  case CCN__OP_PARAM: return n->region ? fault(v, "a parameter stands inside a block") : inferred(v);
  case CCN__OP_CARRY: return carry(v);
  case CCN__OP_RESULT: return result(v);
  case CCN__OP_ENTER: return enter(v);
  case CCN__OP_ON: return on(v);
  case CCN__OP_REPEAT: return true; /* see yields */
  default: return inferred(v);
  }
}

static bool nodes(verifier *v) {
  uint32_t region = 0;
  for (v->id = 0; v->id < v->g->nodes.n; v->id++) {
    const ccn__node *n = node_at(v, v->id);
    if (!standing(v, &region) || !operands(v) || !attributes(v) || !well_formed(v)) return false;
    if (!meaning(v) || !inside_on(v)) return false;
    for (uint32_t i = 0; i < n->nin; i++)
      if (!has_block(node_at(v, n->in[i])->op) && !leaves_on(v, n->in[i], n->region)) return false;
  }
  for (uint32_t i = 1; i < v->g->regions.n; i++)
    if (!yields(v, &v->g->regions.at[i])) return false;
  return true;
}

/* ---- parameters and updates ---------------------------------------------------------------------------- */

static bool parameters(verifier *v) {
  const ccn__graph *g = v->g;
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->params.n; i++) {
    ccn__id id = g->params.at[i].node, u = g->params.at[i].update;
    if (id >= g->nodes.n || g->nodes.at[id].op != CCN__OP_PARAM || number_of(node_at(v, id))->i != i)
      return fail(v, "parameter %u is no param node of that number", (unsigned)i);
    if (u != CCN__NO_ID &&
        (u >= g->nodes.n || g->nodes.at[u].op != CCN__OP_UPDATE || g->nodes.at[u].in[0] != id))
      return fail(v, "the update of parameter %u is none of it", (unsigned)i);
  }
  for (v->id = 0; v->id < g->nodes.n; v->id++) {
    const ccn__node *n = node_at(v, v->id);
    count += n->op == CCN__OP_PARAM;
  }
  return count == g->params.n
           ? true
           : fail(v, "there are %u param nodes, but %u parameters", (unsigned)count, (unsigned)g->params.n);
}

static bool updates(verifier *v) {
  for (v->id = 0; v->id < v->g->nodes.n; v->id++) {
    const ccn__node *n = node_at(v, v->id);
    if (n->op != CCN__OP_UPDATE) continue;
    const ccn__node *t = node_at(v, n->in[0]);
    if (t->op != CCN__OP_PARAM) return fault(v, "its target is no parameter");
    const ccn__param *p = &v->g->params.at[number_of(t)->i];
    if (p->update == CCN__NO_ID) return fault(v, "its parameter's list does not name it");
    if (p->update != v->id) return fault(v, "CCN0223: parameter %%%u is updated twice", (unsigned)n->in[0]);
    if (inside_repeat(v, n->region)) return fault(v, "an update inside a repeat would store more than once");
  }
  return true;
}

/* Whether node i depends on what is marked, as far as that is known: what a loop yields comes behind its
 * carries, so loops take another round. */
static bool depends(const verifier *v, const uint8_t *marked, ccn__id i) {
  const ccn__node *n = node_at(v, i);
  if (n->op == CCN__OP_CARRY || n->op == CCN__OP_RESULT) {
    const ccn__node *loop =
      node_at(v, n->op == CCN__OP_RESULT ? n->in[0] : v->g->regions.at[n->region].owner);
    int64_t k = number_of(n)->i;
    return marked[loop->in[k]] || marked[v->g->regions.at[loop->body].yield[k]];
  }
  for (uint32_t k = 0; k < n->nin; k++)
    if (marked[n->in[k]]) return true;
  return false;
}

/* CCN0224 for one update: an op that reads the target's value at entry runs before the store, so it may
 * not depend on what is stored. */
static bool old_and_new(verifier *v, ccn__id update, uint8_t *marked) {
  const ccn__graph *g = v->g;
  ccn__id target = node_at(v, update)->in[0];
  memset(marked, 0, g->nodes.n);
  marked[update] = 1;
  for (bool again = true; again;) {
    again = false;
    for (v->id = target; v->id < g->nodes.n; v->id++) {
      if (marked[v->id] || !depends(v, marked, v->id)) continue;
      marked[v->id] = 1;
      again = g->regions.n > 1;
      const ccn__node *n = node_at(v, v->id);
      for (uint32_t k = 0; k < n->nin; k++)
        if (n->in[k] == target)
          return fault(v, "CCN0224: it depends on the update of %%%u and reads its value at entry",
                       (unsigned)target);
    }
  }
  return true;
}

static bool effects(verifier *v) {
  const ccn__graph *g = v->g;
  uint8_t *marked = ccn__arena_alloc(g->arena, g->nodes.n);
  for (uint32_t i = 0; i < g->params.n; i++)
    if (g->params.at[i].update != CCN__NO_ID && !old_and_new(v, g->params.at[i].update, marked)) return false;
  return true;
}

/* ---- outputs and constraints --------------------------------------------------------------------------- */

static bool outputs(verifier *v) {
  const ccn__graph *g = v->g;
  if (g->returns_none ? g->noutputs || g->returns_tuple : !g->returns_tuple && g->noutputs != 1)
    return fail(v, "it returns %u values, which is neither nothing, nor one, nor a tuple",
                (unsigned)g->noutputs);
  for (uint32_t i = 0; i < g->noutputs; i++) {
    ccn__id x = g->outputs[i];
    if (x >= g->nodes.n || has_block(g->nodes.at[x].op) || !visible(v, x, 0))
      return fail(v, "output %u is no value of the graph's body", (unsigned)i);
    if (!leaves_on(v, x, 0)) return false;
  }
  return true;
}

static bool constraints(verifier *v) {
  for (uint32_t i = 0; i < v->g->constraints.n; i++) {
    const ccn__constraint *c = &v->g->constraints.at[i];
    bool fine = dim_known(v, c->x);
    if (c->kind == CCN__NEED_BUNDLES) fine = c->bx < v->g->nbundles && c->by < v->g->nbundles;
    else if (c->kind > CCN__NEED_BUNDLES) fine = false;
    else if (c->kind != CCN__NEED_WHOLE) fine = fine && dim_known(v, c->y);
    if (!fine) return fail(v, "constraint %u is about what is not there", (unsigned)i);
  }
  return true;
}

const char *ccn__graph_verify(ccn__graph *g) {
  verifier v = {.g = g};
  bool fine = mesh_and_symbols(&v) && regions(&v) && nodes(&v) && parameters(&v) && updates(&v) &&
              effects(&v) && outputs(&v) && constraints(&v);
  return fine ? NULL : v.text;
}
