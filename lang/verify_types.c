/* verify_types.c: the type of a node is the one that inference gives.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

/* ---- types --------------------------------------------------------------------------------------------- */

/* Whether the constraints make the extent a whole number: one of them divides it, or what is left without
 * one is whole. The budget is for hostile text; programs need one or two steps. */
static bool known_whole(const ccn__verifier *v, const ccn__dim *d, uint32_t *budget) {
  ccn__arena *a = v->g->arena;
  if (ccn__dim_is_whole(d)) return true;
  for (uint32_t i = 0; i < v->g->constraints.n && *budget; i++) {
    const ccn__constraint *c = &v->g->constraints.at[i];
    if (c->kind != CCN__NEED_WHOLE || !ccn__verify_dim_known(v, c->x)) continue;
    if (ccn__dim_equal(d, c->x)) return true;
    --*budget;
    const ccn__dim *times = ccn__dim_div(a, d, c->x), *rest = ccn__dim_sub(a, d, c->x);
    if (times && ccn__dim_is_whole(times)) return true;
    if (rest && (ccn__dim_is_whole(rest) || (rest->n < d->n && known_whole(v, rest, budget)))) return true;
  }
  return false;
}

/* The type of these is written by somebody, not derived: their extents are in the constraints. */
bool ccn__verify_is_maker(uint32_t op) {
  uint8_t kind = ccn__op_table[op].kind;
  return op == CCN__OP_PARAM || op == CCN__OP_CONST || kind == CCN__KIND_MAKER ||
         (kind == CCN__KIND_RANDOM && op != CCN__OP_DROPOUT);
}

static bool extents(ccn__verifier *v, const ccn__type *t, bool maker) {
  int64_t n;
  uint32_t budget = WHOLE_STEPS;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (!ccn__verify_dim_known(v, t->dim[d]))
      return ccn__verify_fault(v, "dim %u of its type has unknown symbols", (unsigned)d);
    if (ccn__dim_is_const(t->dim[d], &n) && n < 0)
      return ccn__verify_fault(v, "dim %u of its type is negative", (unsigned)d);
    if (maker && !known_whole(v, t->dim[d], &budget))
      return ccn__verify_fault(v, "dim %u of its type is no whole number by any constraint", (unsigned)d);
  }
  return true;
}

static bool bundle(ccn__verifier *v, const ccn__type *t) {
  uint32_t sym;
  if (t->bundle > CCN__BUNDLE_SCALARS || t->bundle_id >= v->g->nbundles)
    return ccn__verify_fault(v, "its bundle is not there");
  bool one = t->rank == 1 && ccn__dim_is_symbol(t->dim[0], &sym);
  const ccn__symbol *s = one ? &v->g->symbols.at[sym] : NULL;
  uint8_t kind = t->bundle == CCN__BUNDLE_TENSORS ? CCN__SYM_TOTAL : CCN__SYM_COUNT;
  if (!s || s->kind != kind || s->index != t->bundle_id)
    return ccn__verify_fault(v, "a bundle's dim is the symbol of its bundle");
  return true;
}

static bool placement(ccn__verifier *v, const ccn__type *t, uint32_t axis) {
  const ccn__place *p = &t->place[axis];
  const char *over = v->g->mesh.name[axis];
  int64_t n;
  switch (p->kind) {
  case CCN__REPLICATED:
  case CCN__LOCAL: return true;
  case CCN__SLICED:
    if (p->dim >= t->rank)
      return ccn__verify_fault(v, "its type is sliced over %s in a dim that it does not have", over);
    if (!p->unit) return true;
    if (!ccn__verify_dim_known(v, p->unit) || (ccn__dim_is_const(p->unit, &n) && n < 1))
      return ccn__verify_fault(v, "its type is sliced over %s with a unit that is no positive number", over);
    return true;
  case CCN__PARTIAL:
    if (p->op == CCN__RED_NONE || p->op >= CCN__RED_COUNT || p->op == CCN__RED_AVG)
      return ccn__verify_fault(v, "its type owes over %s what cannot be owed", over);
    for (uint32_t b = 0; b < axis; b++)
      if (t->place[b].kind == CCN__PARTIAL && t->place[b].op != p->op)
        return ccn__verify_fault(v, "its type owes two operators");
    return true;
  case CCN__AT: {
    int32_t size = v->g->mesh.size[axis];
    if (size && (p->coord < 0 || p->coord >= size))
      return ccn__verify_fault(v, "its type is at a coordinate outside %s", over);
    return true;
  }
  default: return ccn__verify_fault(v, "its type has no placement over %s", over);
  }
}

/* Blocks are no values; if they have a type at all it says nothing. */
static bool no_type(ccn__verifier *v, const ccn__type *t) {
  ccn__type none = {.dtype = CCN__BOOL, .naxes = (uint8_t)v->g->mesh.naxes};
  return !t || ccn__type_equal(t, &none) ? true : ccn__verify_fault(v, "a block has no type");
}

bool ccn__verify_well_formed(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  const ccn__type *t = n->type;
  if (!t) return ccn__verify_has_block(n->op) ? true : ccn__verify_fault(v, "it has no type");
  if (t->dtype >= CCN__DTYPE_COUNT || !ccn__dtype_size((ccn__dtype)t->dtype))
    return ccn__verify_fault(v, "its type has no dtype");
  if (t->rank > CCN__MAX_RANK) return ccn__verify_fault(v, "its type has more than %d dims", CCN__MAX_RANK);
  if (t->naxes != v->g->mesh.naxes) return ccn__verify_fault(v, "its type is for another mesh");
  if (!extents(v, t, ccn__verify_is_maker(n->op)) || (t->bundle && !bundle(v, t))) return false;
  for (uint32_t a = 0; a < t->naxes; a++)
    if (!placement(v, t, a)) return false;
  return ccn__verify_has_block(n->op) ? no_type(v, t) : true;
}

const char *ccn__verify_type_text(const ccn__verifier *v, const ccn__type *t) {
  ccn__text s;
  ccn__text_init(&s, v->g->arena);
  ccn__type_print(v->g, t, &s);
  return s.at;
}

bool ccn__verify_same_type(ccn__verifier *v, const ccn__type *want, const char *whose) {
  const ccn__type *t = ccn__verify_node_at(v, v->id)->type;
  if (ccn__type_equal(t, want)) return true;
  return ccn__verify_fault(v, "its type is %s, but %s is %s", ccn__verify_type_text(v, t), whose,
                           ccn__verify_type_text(v, want));
}

static bool type_error(ccn__verifier *v, const ccn__type_error *err) {
  const ccn__error_info *info = ccn__error_find(err->code);
  const char *axis =
    err->axis >= 0 && (uint32_t)err->axis < v->g->mesh.naxes ? v->g->mesh.name[err->axis] : NULL;
  return ccn__verify_fault(v, "CCN%04u%s%s: %s", (unsigned)err->code, axis ? " over " : "", axis ? axis : "",
                           err->text ? err->text
                           : info    ? info->title
                                     : "its operands do not fit");
}

/* Concat's operands must have the same dims before inference may look at them together. */
static bool concat_ranks(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  if (n->op != CCN__OP_CONCAT) return true;
  int64_t dim = ccn__attr_int(n->attrs, CCN__A_DIM, 0);
  for (uint32_t i = 0; i < n->nin; i++)
    if (ccn__verify_operand_type(v, i)->rank != ccn__verify_operand_rank(v) ||
        dim >= ccn__verify_operand_rank(v))
      return ccn__verify_fault(v,
                               "its operands must have the same number of dims, and the one that is named");
  return true;
}

bool ccn__verify_inferred(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  const ccn__type **in = CCN__NEWN(v->g->arena, const ccn__type *, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) in[i] = ccn__verify_operand_type(v, i);
  if (!concat_ranks(v)) return false;
  ccn__type want;
  ccn__type_error err = {0};
  ccn__infer_in q = {
    .g = v->g, .op = (ccn__op)n->op, .in = in, .nin = n->nin, .attrs = n->attrs, .want = n->type};
  if (!ccn__infer(&q, &want, &err)) return type_error(v, &err);
  return ccn__verify_same_type(v, &want, "what its operands give");
}
