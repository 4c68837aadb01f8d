/* lower_shape.c: linear algebra, the ops that change shapes, indexing → nodes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"

/* ---- linear algebra and shape ---- */

ccn__bv ccn__build_matmul_op(ccn__build *b) {
  ccn__id in[2] = {ccn__slot_node(b, "x", -1)};
  if (in[0] == CCN__NO_ID) return CCN__B_FAIL;
  in[1] = ccn__slot_node(b, b->op == CCN__OP_MATMUL ? "y" : "w", -1);
  return ccn__built(b, ccn__emit(b->l, b->op, in, 2, (ccn__attrs){0}, NULL, b->span));
}

ccn__bv ccn__build_conv2d_op(ccn__build *b) { return ccn__build_matmul_op(b); }

ccn__bv ccn__build_transpose_op(ccn__build *b) {
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, x);
  int64_t *perm = CCN__NEWN(b->l->arena, int64_t, CCN__MAX_RANK);
  uint32_t n = t->rank;
  for (uint32_t d = 0; d < n; d++) perm[d] = d;
  if (!ccn__slot(b, "order")) {
    if (n < 2) return ccn__build_fail(b, 305, b->span, "here", "it has fewer than two dims");
    perm[n - 1] = n - 2;
    perm[n - 2] = n - 1;
  } else {
    ccn__bv v = ccn__slot_value(b, "order");
    if (v.kind == CCN__B_ERROR) return v;
    if ((v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) || v.list.n != n)
      return ccn__build_fail(b, 305, v.span, "here", "the order must name each dim once");
    for (uint32_t d = 0; d < n; d++)
      if (!ccn__lit_i64(b->l, v.list.at[d], "a dim", &perm[d]) ||
          !ccn__build_normal_dim(b, v.list.at[d].span, n, &perm[d]))
        return CCN__B_FAIL;
  }
  ccn__attr a = {.key = CCN__A_PERM, .n = (uint8_t)n, .ints = perm};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_TRANSPOSE, &x, 1, (ccn__attrs){&a, 1}, NULL, b->span));
}

/* [B, S, H/64]: extents, as text or as values. */
static bool shape_arg(ccn__build *b, const char *slot, ccn__type *t) {
  const ccn__opd *a = ccn__slot(b, slot);
  bool text = a->ast && (a->ast->kind == CCN__AST_LIST || a->ast->kind == CCN__AST_TUPLE);
  ccn__bv v = {.kind = CCN__B_ERROR};
  if (!text) {
    v = ccn__slot_value(b, slot);
    if (v.kind == CCN__B_ERROR) return false;
    if (v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) {
      (void)ccn__build_fail(b, 800, a->span, "not a shape", "a shape is a list of extents, as in `[4, N]`");
      return false;
    }
  }
  uint32_t n = text ? a->ast->list.n : v.list.n;
  if (n > CCN__MAX_RANK) {
    (void)ccn__build_fail(b, 208, a->span, "here", "a tensor has at most 8 dims");
    return false;
  }
  for (uint32_t d = 0; d < n; d++) {
    int64_t c;
    t->dim[d] = text ? ccn__lower_dim(b->l, a->ast->list.at[d]) : ccn__bv_dim(b->l, v.list.at[d]);
    if (!t->dim[d]) return false;
    if (ccn__dim_is_const(t->dim[d], &c) && c < 0) {
      (void)ccn__build_fail_cure(b, 310, text ? a->ast->list.at[d]->span : a->span, "negative",
                                 "an extent cannot be negative", "extents are 0 or more");
      return false;
    }
  }
  t->rank = (uint8_t)n;
  t->naxes = (uint8_t)b->l->g->mesh.naxes;
  return true;
}

ccn__bv ccn__build_reshape_op(ccn__build *b) {
  ccn__type want = {.rank = 0};
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID || !shape_arg(b, "shape", &want)) return CCN__B_FAIL;
  return ccn__built(b, ccn__emit(b->l, CCN__OP_RESHAPE, &x, 1, (ccn__attrs){0}, &want, b->span));
}

ccn__bv ccn__build_concat_op(ccn__build *b) {
  ccn__bv v = ccn__slot_value(b, "list");
  int64_t dim;
  if (v.kind == CCN__B_ERROR) return v;
  if ((v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) || !v.list.n)
    return ccn__build_fail(b, 800, v.span, "here",
                           "it takes a list of at least one tensor, as in `concat([x, y], dim: 0)`");
  if (v.list.n > 100) return ccn__build_fail(b, 800, v.span, "here", "it takes at most 100 tensors");
  ccn__id *in = CCN__NEWN(b->l->arena, ccn__id, v.list.n);
  int t = ccn__build_common_dtype(b->l, v.list.at, v.list.n);
  for (uint32_t i = 0; i < v.list.n; i++)
    if ((in[i] = ccn__as_node(b->l, v.list.at[i], t)) == CCN__NO_ID) return CCN__B_FAIL;
  if (!ccn__slot_dim(b, "dim", ccn__ntype(b->l, in[0])->rank, 0, &dim)) return CCN__B_FAIL;
  ccn__attr a = {.key = CCN__A_DIM, .i = dim};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_CONCAT, in, v.list.n, (ccn__attrs){&a, 1}, NULL, b->span));
}

ccn__bv ccn__build_index_op(ccn__build *b) {
  return ccn__build_fail(b, 800, b->span, "here",
                         "an element or a part is taken with brackets, as in `x[1:3]`");
}

/* -1 counts from the end. */
static const ccn__dim *from_end(ccn__lower *l, const ccn__dim *d, const ccn__dim *extent) {
  int64_t v;
  return ccn__dim_is_const(d, &v) && v < 0 ? ccn__dim_add(l->arena, extent, d) : d;
}

/* Certain now, an error now, or a constraint. */
static bool inside(ccn__build *b, const ccn__dim *x, const ccn__dim *limit, bool strict, ccn__span span) {
  int64_t v, n;
  const ccn__dim *room = ccn__dim_sub(b->l->arena, limit, x);
  bool low = ccn__dim_is_const(x, &v), high = room && ccn__dim_is_const(room, &n);
  if ((low && v < 0) || (high && n < (strict ? 1 : 0))) {
    ccn__diag *d = ccn__lower_error(b->l, 309, span, "outside", "this index is outside the dim");
    if (ccn__dim_is_const(limit, &n))
      ccn__hint(b->l->ds, d, "the dim has %lld element%s, numbered from 0, or from the end with -1",
                (long long)n, n == 1 ? "" : "s");
    return false;
  }
  if (low && high) return true;
  ccn__need(
    b->l,
    (ccn__constraint){
      .kind = strict ? CCN__NEED_LESS : CCN__NEED_LESS_EQ, .code = 309, .x = x, .y = limit, .span = span});
  return true;
}

ccn__bv ccn__build_index(ccn__lower *l, ccn__bv xv, const ccn__index_arg *items, uint32_t n, ccn__span span) {
  ccn__build b = {.l = l, .op = CCN__OP_INDEX, .name = "[]", .span = span};
  ccn__id x = ccn__as_node(l, xv, -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(l, x);
  if (t->bundle)
    return ccn__build_fail(&b, 305, span, "a bundle", "a program works on all tensors of a bundle alike");
  if (n > t->rank) return ccn__build_fail(&b, 309, span, "too many", "more indices than dims");
  const ccn__dim **start = CCN__NEWN(l->arena, const ccn__dim *, CCN__MAX_RANK),
                 **count = CCN__NEWN(l->arena, const ccn__dim *, CCN__MAX_RANK);
  int64_t *drop = CCN__NEWN(l->arena, int64_t, CCN__MAX_RANK);
  const ccn__dim *zero = ccn__dim_const(l->arena, 0);
  for (uint32_t d = 0; d < t->rank; d++) {
    const ccn__dim *extent = t->dim[d];
    start[d] = zero;
    count[d] = extent;
    if (d >= n) continue;
    if (items[d].start) start[d] = from_end(l, items[d].start, extent);
    if (!items[d].range) {
      drop[d] = 1;
      count[d] = ccn__dim_const(l->arena, 1);
      if (!start[d] || !inside(&b, start[d], extent, true, items[d].span)) return CCN__B_FAIL;
      continue;
    }
    const ccn__dim *end = items[d].end ? from_end(l, items[d].end, extent) : extent;
    if (!start[d] || !end || !inside(&b, start[d], end, false, items[d].span) ||
        !inside(&b, end, extent, false, items[d].span))
      return CCN__B_FAIL;
    count[d] = ccn__dim_sub(l->arena, end, start[d]);
    if (!count[d])
      return ccn__build_fail_cure(&b, 310, span, "here", "this extent is too large",
                                  "an extent fits 64 bits");
  }
  ccn__attr at[3] = {{.key = CCN__A_START, .n = t->rank, .dims = start},
                     {.key = CCN__A_COUNT, .n = t->rank, .dims = count},
                     {.key = CCN__A_DROP, .n = t->rank, .ints = drop}};
  return ccn__built(&b, ccn__emit(l, CCN__OP_INDEX, &x, 1, (ccn__attrs){at, 3}, NULL, span));
}

static ccn__id index_node(ccn__build *b) {
  if (!ccn__build_fractional(ccn__slot_value(b, "idx"))) return ccn__slot_node(b, "idx", CCN__I64);
  (void)ccn__build_not_whole(b, "idx",
                             "an index counts from 0, as in `take(x, 2)`; `x[2]` is the same element");
  return CCN__NO_ID;
}

ccn__bv ccn__build_take_op(ccn__build *b) {
  ccn__id in[2] = {ccn__slot_node(b, "x", -1)};
  int64_t dim;
  if (in[0] == CCN__NO_ID) return CCN__B_FAIL;
  in[1] = index_node(b);
  if (in[1] == CCN__NO_ID || !ccn__slot_dim(b, "dim", ccn__ntype(b->l, in[0])->rank, 0, &dim))
    return CCN__B_FAIL;
  ccn__attr a = {.key = CCN__A_DIM, .i = dim};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_TAKE, in, 2, (ccn__attrs){&a, 1}, NULL, b->span));
}

ccn__bv ccn__build_scatter_add_op(ccn__build *b) {
  ccn__type want = {.rank = 0};
  if (!shape_arg(b, "shape", &want)) return CCN__B_FAIL;
  ccn__id in[2] = {index_node(b), CCN__NO_ID};
  if (in[0] != CCN__NO_ID) in[1] = ccn__slot_node(b, "v", -1);
  if (in[1] == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *v = ccn__ntype(b->l, in[1]);
  bool fits = want.rank >= 1 && v->rank == want.rank;
  for (uint32_t d = 1; d < want.rank && fits; d++) fits = ccn__dim_equal(want.dim[d], v->dim[d]);
  if (!fits)
    return ccn__build_fail(b, 305, b->span, "here",
                           "the shape must be that of `v` with another first extent");
  return ccn__built(b, ccn__emit(b->l, CCN__OP_SCATTER_ADD, in, 2, (ccn__attrs){0}, &want, b->span));
}

ccn__bv ccn__build_one_hot_op(ccn__build *b) {
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, x), *as = NULL;
  const ccn__opd *n = ccn__slot(b, "n");
  const ccn__dim *extent = n->ast ? ccn__lower_dim(b->l, n->ast) : ccn__bv_dim(b->l, n->value);
  if (!extent || (ccn__slot(b, "as") && !(as = ccn__slot_type(b, "as")))) return CCN__B_FAIL;
  if (t->rank == CCN__MAX_RANK)
    return ccn__build_fail(b, 208, b->span, "here", "a tensor has at most 8 dims");
  ccn__type want = *t;
  want.dtype = as ? as->dtype : CCN__F32;
  want.dim[want.rank++] = extent;
  return ccn__built(b, ccn__emit(b->l, CCN__OP_ONE_HOT, &x, 1, (ccn__attrs){0}, &want, b->span));
}
