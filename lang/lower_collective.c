/* lower_collective.c: collectives → nodes: the operator's word, axes, dims, roots; placements are ccn__infer's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"

static bool add_axis(ccn__build *b, ccn__name word, ccn__span span, uint64_t *mask) {
  uint32_t axis;
  if (!word || !ccn__axis_find(b->l, word, &axis)) {
    ccn__diag *d = ccn__lower_error(b->l, 311, span, "not an axis of this text",
                                    "`%s`: `over:` takes a mesh axis or a list of them", b->name);
    if (b->l->frame->naxes)
      ccn__hint(b->l->ds, d, "the axes here: %s%s%s", b->l->frame->axis_name[0],
                b->l->frame->naxes > 1 ? ", " : "", b->l->frame->naxes > 1 ? b->l->frame->axis_name[1] : "");
    return false;
  }
  if (*mask >> axis & 1) {
    (void)ccn__build_fail(b, 806, span, "once more", "an axis is named twice");
    return false;
  }
  *mask |= UINT64_C(1) << axis;
  return true;
}

static bool over(ccn__build *b, uint64_t *mask) {
  ccn__inline *f = b->l->frame;
  const ccn__opd *o = ccn__slot(b, "over");
  *mask = 0;
  if (!f->naxes) {
    ccn__diag *d = ccn__lower_error(b->l, 300, b->span, "between which ranks?", "`%s` needs a mesh", b->name);
    ccn__hint(
      b->l->ds, d,
      "begin the script with `mesh (dp)`, or give the program an axis parameter, as in `program f<ax>(...)`");
    return false;
  }
  if (!o) {
    if (f->naxes == 1) return *mask = UINT64_C(1) << f->axis[0], true;
    ccn__diag *d = ccn__lower_error(b->l, 301, b->span, "over which axis?",
                                    "on a mesh with several axes `%s` must say over which", b->name);
    ccn__hint(b->l->ds, d, "add `over: %s`, or `over: [%s, %s]`", f->axis_name[0], f->axis_name[0],
              f->axis_name[1]);
    return false;
  }
  if (o->ast && (o->ast->kind == CCN__AST_LIST || o->ast->kind == CCN__AST_TUPLE)) {
    for (uint32_t i = 0; i < o->ast->list.n; i++) {
      const ccn__ast *e = o->ast->list.at[i];
      if (!add_axis(b, e->kind == CCN__AST_NAME ? e->name : NULL, e->span, mask)) return false;
    }
    if (*mask) return true;
  }
  return add_axis(b, ccn__slot_word(b, "over"), o->span, mask);
}

/* A collective over the axis whose coordinate an `on` block fixes would wait for ranks that never come. */
static bool not_inside_on(ccn__build *b, uint64_t mask) {
  for (ccn__on_block *on = b->l->on; on; on = on->outer) {
    if (!(mask >> on->axis & 1)) continue;
    ccn__diag *d = ccn__lower_error(b->l, 306, b->span, "the other coordinates are not here",
                                    "`%s` over `%s` inside a block that only coordinate %d executes", b->name,
                                    b->l->g->mesh.name[on->axis], on->coord);
    ccn__note(b->l->ds, d, on->span, "the block");
    ccn__hint(b->l->ds, d, "do it before or behind the block");
    return false;
  }
  return true;
}

static bool operator_word(ccn__build *b, ccn__attr *out) {
  ccn__redop op;
  ccn__name word = ccn__slot_word(b, "op");
  if (!word || !ccn__redop_find(word, &op)) {
    ccn__nearest near;
    ccn__nearest_init(&near, word ? word : "");
    for (int i = 1; i < CCN__RED_COUNT; i++) ccn__nearest_try(&near, ccn__redop_name((ccn__redop)i));
    ccn__diag *d = ccn__lower_error(b->l, 801, ccn__slot(b, "op")->span, "not a reduction operator",
                                    "the first argument of `%s` is an operator", b->name);
    if (word && near.best) ccn__hint(b->l->ds, d, "did you mean `%s`?", near.best);
    else ccn__hint(b->l->ds, d, "one of sum, prod, max, min, avg, as in `%s(sum, x)`", b->name);
    return false;
  }
  *out = (ccn__attr){.key = CCN__A_RED, .i = op};
  return true;
}

static bool pairs(ccn__build *b, ccn__attr *out) {
  ccn__bv v = ccn__slot_value(b, "pairs");
  const char *what = "`pairs` is a list of pairs of coordinates, as in `[(0, 1), (1, 0)]`";
  if (v.kind == CCN__B_ERROR) return false;
  if ((v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) || v.list.n > 64)
    return (void)ccn__build_fail(b, 800, v.span, "here", what), false;
  int64_t *at = CCN__NEWN(b->l->arena, int64_t, 2 * v.list.n + 1);
  for (uint32_t i = 0; i < v.list.n; i++) {
    ccn__bv p = v.list.at[i];
    if ((p.kind != CCN__B_TUPLE && p.kind != CCN__B_LIST) || p.list.n != 2)
      return (void)ccn__build_fail(b, 800, p.span, "here", what), false;
    for (uint32_t k = 0; k < 2; k++)
      if (!ccn__lit_i64(b->l, p.list.at[k], "a coordinate", &at[2 * i + k])) return false;
  }
  *out = (ccn__attr){.key = CCN__A_PAIRS, .n = (uint8_t)(2 * v.list.n), .ints = at};
  return true;
}

static bool fill(ccn__build *b, ccn__id x, ccn__attr *out) {
  ccn__number n;
  ccn__bv v = ccn__slot_value(b, "fill");
  if (!ccn__lit_number(b->l, v, "`fill`", &n)) return false;
  const char *why = ccn__number_fits(n, (ccn__dtype)ccn__ntype(b->l, x)->dtype);
  if (why) {
    ccn__lower_error(b->l, 102, v.span, "does not fit", "this literal %s in %s", why,
                     ccn__dtype_name((ccn__dtype)ccn__ntype(b->l, x)->dtype));
    return false;
  }
  *out = (ccn__attr){.key = CCN__A_FILL, .lit = v.lit};
  return true;
}

static bool dim_attr(ccn__build *b, const char *slot, ccn__attr_key key, uint32_t rank, ccn__attr *out) {
  *out = (ccn__attr){.key = (uint8_t)key};
  return ccn__slot_dim(b, slot, rank, 0, &out->i);
}

/* Blocks of an alltoall: the extent must be a multiple of the number of ranks (CCN0214 at the call). */
static bool need_blocks(ccn__build *b, const ccn__type *t, int64_t dim, uint64_t mask) {
  for (uint32_t a = 0; a < t->naxes; a++) {
    if (!(mask >> a & 1)) continue;
    const ccn__mesh *m = &b->l->g->mesh;
    const ccn__dim *n =
      m->size[a]
        ? ccn__dim_const(b->l->arena, m->size[a])
        : ccn__dim_symbol(b->l->arena, ccn__graph_symbol(b->l->g, m->name[a], CCN__SYM_SIZE, a, b->span));
    ccn__need(b->l, (ccn__constraint){
                      .kind = CCN__NEED_MULTIPLE, .code = 214, .x = t->dim[dim], .y = n, .span = b->span});
  }
  return true;
}

static bool int_attr(ccn__build *b, const char *slot, ccn__attr_key key, ccn__attr *out) {
  *out = (ccn__attr){.key = (uint8_t)key};
  return ccn__slot_i64(b, slot, 0, &out->i);
}

static bool unit(ccn__build *b, ccn__attr *out) {
  const ccn__opd *u = ccn__slot(b, "unit");
  int64_t v;
  *out = (ccn__attr){.key = CCN__A_UNIT};
  out->dim = u->ast ? ccn__lower_dim(b->l, u->ast) : ccn__bv_dim(b->l, u->value);
  if (!out->dim) return false;
  if (!ccn__dim_is_const(out->dim, &v) || v >= 1) return true;
  (void)ccn__build_fail_cure(b, 310, u->span, "not positive", "the unit of a cut is at least 1",
                             "leave `unit:` out, or give the number of elements that stay together");
  return false;
}

static bool is_reducing(ccn__op op) {
  return op == CCN__OP_ALLREDUCE || op == CCN__OP_REDUCESCATTER || op == CCN__OP_REDUCE;
}

ccn__bv ccn__build_collective_op(ccn__build *b) {
  ccn__lower *l = b->l;
  ccn__attr at[8];
  uint32_t n = 0;
  uint64_t mask;
  if (is_reducing(b->op) && !operator_word(b, &at[n++])) return CCN__B_FAIL;
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID || !over(b, &mask) || !not_inside_on(b, mask)) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(l, x);
  at[n++] = (ccn__attr){.key = CCN__A_OVER, .i = (int64_t)mask};
  if (is_reducing(b->op))
    at[n++] = (ccn__attr){.key = CCN__A_ORDER, .i = mask & (mask - 1) ? CCN__ORDER_AXIS : CCN__ORDER_RANK};
  bool blocks = b->op == CCN__OP_ALLTOALL && !ccn__slot(b, "from") && !ccn__slot(b, "to");
  bool cuts = b->op == CCN__OP_REDUCESCATTER || b->op == CCN__OP_SCATTER || b->op == CCN__OP_SLICE;
  if (blocks && !ccn__slot(b, "dim"))
    return ccn__build_fail(b, 800, b->span, "which dims?", "it needs `from:` and `to:`, or `dim:`");
  if (b->op == CCN__OP_ALLTOALL && !blocks &&
      (ccn__slot(b, "dim") || !ccn__slot(b, "from") || !ccn__slot(b, "to")))
    return ccn__build_fail(b, 800, b->span, "which dims?", "it needs both `from:` and `to:`, or only `dim:`");
  if ((cuts || blocks) && t->rank == 0)
    return ccn__build_fail(b, 309, b->span, "a scalar", "a scalar has no dim to be cut in");
  if ((cuts || blocks) && !dim_attr(b, "dim", CCN__A_DIM, t->rank, &at[n++])) return CCN__B_FAIL;
  if (b->op == CCN__OP_ALLTOALL && !blocks &&
      (!dim_attr(b, "from", CCN__A_FROM, t->rank, &at[n++]) ||
       !dim_attr(b, "to", CCN__A_TO, t->rank, &at[n++])))
    return CCN__B_FAIL;
  if (ccn__slot(b, "root") && !int_attr(b, "root", CCN__A_ROOT, &at[n++])) return CCN__B_FAIL;
  if (b->op == CCN__OP_SHIFT && !int_attr(b, "by", CCN__A_BY, &at[n++])) return CCN__B_FAIL;
  if (b->op == CCN__OP_PERMUTE && !pairs(b, &at[n++])) return CCN__B_FAIL;
  if (ccn__slot(b, "fill") && !fill(b, x, &at[n++])) return CCN__B_FAIL;
  if (ccn__slot(b, "unit") && !unit(b, &at[n++])) return CCN__B_FAIL;
  ccn__id id = ccn__emit(l, b->op, &x, 1, (ccn__attrs){at, n}, NULL, b->span);
  if (id != CCN__NO_ID && blocks)
    need_blocks(b, t, ccn__attr_int(l->g->nodes.at[id].attrs, CCN__A_DIM, 0), mask);
  return ccn__built(b, id);
}
