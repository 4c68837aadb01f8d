/* lower_composed.c: ops that are made of others: norm, softmax, ... Where a reduced dim is cut, the all-reduce that
 * pays stands in the graph for everybody to see, named after its operator: x.part, x.sum, x.max, x.min.
 *
 * f16 and bf16 operands are widened to f32 first and the result is rounded once, so that a norm does not overflow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"

/* The name that parts of the result hang on: the name it is bound to, or its own automatic one. */
static const char *base_name(ccn__build *b) {
  ccn__lower *l = b->l;
  if (l->bind_ast && l->bind_name) return ccn__arena_printf(l->arena, "%s%s", l->frame->prefix, l->bind_name);
  if (!l->frame->auto_count) return ccn__op_table[b->op].name;
  uint32_t n = ++l->frame->auto_count[b->op];
  const char *name = ccn__op_table[b->op].name;
  return n > 1 ? ccn__arena_printf(l->arena, "%s%s%u", l->frame->prefix, name, n)
               : ccn__arena_printf(l->arena, "%s%s", l->frame->prefix, name);
}

static ccn__id named(ccn__build *b, ccn__id id, const char *base, const char *part) {
  if (id != CCN__NO_ID)
    b->l->g->nodes.at[id].name =
      ccn__internz(b->l->g->names, ccn__arena_printf(b->l->arena, "%s.%s", base, part));
  return id;
}

static ccn__id reduced(ccn__build *b, ccn__op op, ccn__id x, const int64_t *dims, uint8_t n, bool keep,
                       bool per) {
  ccn__attr at[3] = {
    {.key = CCN__A_DIMS, .n = n, .ints = dims}, {.key = CCN__A_KEEP, .i = 1}, {.key = CCN__A_PER, .i = 1}};
  if (!keep) at[1] = at[2];
  return ccn__emit(b->l, op, &x, 1, (ccn__attrs){at, 1u + keep + per}, NULL, b->span);
}

/* Pays what x owes, with one all-reduce over all the axes concerned. */
static ccn__id paid(ccn__build *b, ccn__id x, const char *base, const char *part) {
  uint64_t mask = 0;
  int64_t op = 0;
  if (x == CCN__NO_ID) return x;
  const ccn__type *t = ccn__ntype(b->l, x);
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind == CCN__PARTIAL) mask |= UINT64_C(1) << a, op = t->place[a].op;
  if (!mask) return x;
  if (strcmp(part, "sum") == 0) named(b, x, base, "part");
  ccn__attr at[3] = {{.key = CCN__A_RED, .i = op},
                     {.key = CCN__A_OVER, .i = (int64_t)mask},
                     {.key = CCN__A_ORDER, .i = mask & (mask - 1) ? CCN__ORDER_AXIS : CCN__ORDER_RANK}};
  return named(b, ccn__emit(b->l, CCN__OP_ALLREDUCE, &x, 1, (ccn__attrs){at, 3}, NULL, b->span), base, part);
}

static ccn__dtype working(const ccn__type *t) { return ccn__dtype_acc((ccn__dtype)t->dtype); }

/* The operand, refused early if its dtype is wrong or if it owes something (these ops are not linear). */
static ccn__id operand(ccn__build *b, bool floats) {
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID) return x;
  const ccn__type *t = ccn__ntype(b->l, x);
  if (floats && !ccn__dtype_is_float((ccn__dtype)t->dtype)) {
    ccn__diag *d = ccn__lower_error(b->l, 104, b->span, "not a float", "`%s` is not defined for %s", b->name,
                                    ccn__dtype_name((ccn__dtype)t->dtype));
    ccn__hint(b->l->ds, d, "cast first, as in `%s(f32(x))`", b->name);
    return CCN__NO_ID;
  }
  for (uint32_t a = 0; a < t->naxes && b->op != CCN__OP_MEAN; a++) {
    if (t->place[a].kind != CCN__PARTIAL) continue;
    ccn__diag *d = ccn__lower_error(b->l, 210, b->span, "owes a reduction",
                                    "%s owes a reduction over %s, and `%s` does not pass it on",
                                    ccn__node_text(b->l, x), b->l->g->mesh.name[a], b->name);
    ccn__note_origin(b->l, d, x, (int)a);
    ccn__hint(b->l->ds, d, "pay it first with `allreduce`, or take each rank's bare piece with `local(x)`");
    return CCN__NO_ID;
  }
  return x;
}

/* The number of elements that a reduction takes together, as a literal. */
static ccn__id extent(ccn__build *b, ccn__id x, const int64_t *dims, uint8_t n, ccn__dtype dtype) {
  const ccn__type *t = ccn__ntype(b->l, x);
  const ccn__dim *p = ccn__dim_const(b->l->arena, 1);
  for (uint8_t i = 0; i < n && p; i++) p = ccn__dim_mul(b->l->arena, p, t->dim[dims[i]]);
  if (!p) {
    (void)ccn__build_fail_cure(b, 310, b->span, "here", "the extent is too large", "an extent fits 64 bits");
    return CCN__NO_ID;
  }
  return ccn__step_lit(b, ccn__lit_dim(b->l->arena, p), dtype);
}

ccn__bv ccn__build_mean_op(ccn__build *b) {
  ccn__id x = operand(b, true);
  int64_t *dims = CCN__NEWN(b->l->arena, int64_t, CCN__MAX_RANK);
  uint8_t n;
  bool keep;
  if (x == CCN__NO_ID || !ccn__slot_dims(b, "dims", ccn__ntype(b->l, x)->rank, dims, &n) ||
      !ccn__slot_bool(b, "keep", &keep))
    return CCN__B_FAIL;
  ccn__id s = reduced(b, CCN__OP_SUM, x, dims, n, keep, false);
  if (s == CCN__NO_ID) return CCN__B_FAIL;
  return ccn__built(
    b, ccn__step2(b, CCN__OP_DIV, s, extent(b, x, dims, n, (ccn__dtype)ccn__ntype(b->l, x)->dtype)));
}

ccn__bv ccn__build_norm_op(ccn__build *b) {
  const char *base = base_name(b);
  ccn__id x = operand(b, true);
  int64_t *dims = CCN__NEWN(b->l->arena, int64_t, CCN__MAX_RANK);
  uint8_t n;
  bool keep, per = ccn__slot(b, "per") != NULL;
  if (x == CCN__NO_ID || !ccn__slot_dims(b, "dims", ccn__ntype(b->l, x)->rank, dims, &n) ||
      !ccn__slot_bool(b, "keep", &keep))
    return CCN__B_FAIL;
  if (per && ccn__ntype(b->l, x)->bundle != CCN__BUNDLE_TENSORS)
    return ccn__build_fail(b, 305, b->span, "not a bundle", "`per: tensor` is for bundles");
  ccn__dtype t = (ccn__dtype)ccn__ntype(b->l, x)->dtype;
  ccn__id w = ccn__step_cast(b, working(ccn__ntype(b->l, x)), x);
  ccn__id s =
    paid(b, reduced(b, CCN__OP_SUM, ccn__step2(b, CCN__OP_MUL, w, w), dims, n, keep, per), base, "sum");
  return ccn__built(b, ccn__step_cast(b, t, ccn__step1(b, CCN__OP_SQRT, s)));
}

ccn__bv ccn__build_dot_op(ccn__build *b) {
  ccn__id x = ccn__slot_node(b, "x", -1), y = x == CCN__NO_ID ? x : ccn__slot_node(b, "y", -1);
  ccn__id m = ccn__step2(b, CCN__OP_MUL, x, y);
  int64_t *dims = CCN__NEWN(b->l->arena, int64_t, CCN__MAX_RANK);
  if (m == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, m);
  for (uint8_t d = 0; d < t->rank; d++) dims[d] = d;
  return ccn__built(b, reduced(b, CCN__OP_SUM, m, dims, t->rank, false, false));
}

/* softmax and logsumexp begin alike: the maximum along the dim, and exp(x - maximum). */
typedef struct exps {
  ccn__id x, m, e;
  ccn__dtype dtype, work;
  int64_t *dims;
} exps;

static bool exponentials(ccn__build *b, const char *base, bool guard, exps *o) {
  o->x = operand(b, true);
  o->dims = CCN__NEWN(b->l->arena, int64_t, 1);
  if (o->x == CCN__NO_ID) return false;
  const ccn__type *t = ccn__ntype(b->l, o->x);
  if (t->bundle)
    return (void)ccn__build_fail(b, 305, b->span, "a bundle", "it does not take a bundle"), false;
  if (!ccn__slot_dim(b, "dim", t->rank, (int64_t)t->rank - 1, &o->dims[0])) return false;
  o->dtype = (ccn__dtype)t->dtype;
  o->work = working(t);
  o->x = ccn__step_cast(b, o->work, o->x);
  o->m = paid(b, reduced(b, CCN__OP_MAX, o->x, o->dims, 1, true, false), base, "max");
  if (guard && o->m != CCN__NO_ID) { /* infinite maxima would give inf - inf */
    ccn__id finite = ccn__step1(b, CCN__OP_ISFINITE, o->m),
            zero = ccn__step_lit(b, ccn__lit_float(b->l->arena, 0), o->work);
    if (finite == CCN__NO_ID || zero == CCN__NO_ID) return false;
    o->m = ccn__emit(b->l, CCN__OP_WHERE, (ccn__id[]){finite, o->m, zero}, 3, (ccn__attrs){0}, NULL, b->span);
  }
  o->e = ccn__step1(b, CCN__OP_EXP, ccn__step2(b, CCN__OP_SUB, o->x, o->m));
  return o->e != CCN__NO_ID;
}

ccn__bv ccn__build_softmax_op(ccn__build *b) {
  const char *base = base_name(b);
  exps o;
  if (!exponentials(b, base, false, &o)) return CCN__B_FAIL;
  ccn__id s = paid(b, reduced(b, CCN__OP_SUM, o.e, o.dims, 1, true, false), base, "sum");
  return ccn__built(b, ccn__step_cast(b, o.dtype, ccn__step2(b, CCN__OP_DIV, o.e, s)));
}

/* Takes away dims of extent 1. */
static ccn__id squeezed(ccn__build *b, ccn__id x, const int64_t *dims, uint8_t n) {
  if (x == CCN__NO_ID) return x;
  const ccn__type *t = ccn__ntype(b->l, x);
  ccn__type want = *t;
  want.rank = 0;
  for (uint8_t d = 0; d < t->rank; d++) {
    bool gone = false;
    for (uint8_t i = 0; i < n; i++) gone |= dims[i] == d;
    if (!gone) want.dim[want.rank++] = t->dim[d];
  }
  return ccn__emit(b->l, CCN__OP_RESHAPE, &x, 1, (ccn__attrs){0}, &want, b->span);
}

ccn__bv ccn__build_logsumexp_op(ccn__build *b) {
  const char *base = base_name(b);
  exps o;
  bool keep;
  if (!ccn__slot_bool(b, "keep", &keep) || !exponentials(b, base, true, &o)) return CCN__B_FAIL;
  ccn__id s = paid(b, reduced(b, CCN__OP_SUM, o.e, o.dims, 1, true, false), base, "sum");
  ccn__id r = ccn__step_cast(b, o.dtype, ccn__step2(b, CCN__OP_ADD, ccn__step1(b, CCN__OP_LOG, s), o.m));
  return ccn__built(b, keep ? r : squeezed(b, r, o.dims, 1));
}

/* The smallest index whose element is the maximum; where that is NaN, the first NaN. */
ccn__bv ccn__build_argmax_op(ccn__build *b) {
  const char *base = base_name(b);
  ccn__lower *l = b->l;
  ccn__id x = operand(b, false);
  bool keep, one = ccn__slot(b, "dim") != NULL;
  int64_t *dims = CCN__NEWN(l->arena, int64_t, CCN__MAX_RANK);
  if (x == CCN__NO_ID || !ccn__slot_bool(b, "keep", &keep)) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(l, x);
  uint8_t n = one ? 1 : t->rank;
  if (t->bundle) return ccn__build_fail(b, 305, b->span, "a bundle", "it does not take a bundle");
  for (uint8_t d = 0; d < t->rank; d++) dims[d] = d;
  if (one && !ccn__slot_dim(b, "dim", t->rank, 0, &dims[0])) return CCN__B_FAIL;
  ccn__id m = paid(b, reduced(b, CCN__OP_MAX, x, dims, n, true, false), base, "max");
  ccn__id found = ccn__step2(b, CCN__OP_EQ, x, m);
  if (ccn__dtype_is_float((ccn__dtype)t->dtype))
    found = ccn__step2(b, CCN__OP_OR, found, ccn__step1(b, CCN__OP_ISNAN, x));
  if (found == CCN__NO_ID) return CCN__B_FAIL;
  ccn__type want = {.dtype = CCN__I64, .rank = t->rank, .naxes = t->naxes};
  memcpy(want.dim, t->dim, sizeof want.dim);
  ccn__attr a = {.key = CCN__A_DIM, .i = dims[0]};
  ccn__id in[3] = {found, ccn__emit(l, CCN__OP_IOTA, NULL, 0, (ccn__attrs){&a, one}, &want, b->span),
                   ccn__step_lit(b, ccn__lit_int(l->arena, INT64_MAX), CCN__I64)};
  ccn__id where = ccn__emit(l, CCN__OP_WHERE, in, 3, (ccn__attrs){0}, NULL, b->span);
  return ccn__built(b, paid(b, reduced(b, CCN__OP_MIN, where, dims, n, keep, false), base, "min"));
}

/* mean over the last dim, extents kept, in the working dtype */
static ccn__id last_mean(ccn__build *b, ccn__id x, const char *base, const int64_t *dims, ccn__dtype work) {
  if (x == CCN__NO_ID) return x;
  ccn__id s = paid(b, reduced(b, CCN__OP_SUM, x, dims, 1, true, false), base, "sum");
  return s == CCN__NO_ID ? s : ccn__step2(b, CCN__OP_DIV, s, extent(b, x, dims, 1, work));
}

static bool epsilon(ccn__build *b, double otherwise, const ccn__lit **out) {
  ccn__number n;
  *out = ccn__lit_float(b->l->arena, otherwise);
  if (!ccn__slot(b, "eps")) return true;
  ccn__bv v = ccn__slot_value(b, "eps");
  *out = v.lit;
  return ccn__lit_number(b->l, v, "`eps`", &n);
}

static ccn__bv normalised(ccn__build *b, bool centre, double eps) {
  const char *base = base_name(b);
  const ccn__lit *lit;
  ccn__id x = operand(b, true);
  if (x == CCN__NO_ID || !epsilon(b, eps, &lit)) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, x);
  if (t->rank == 0 || t->bundle)
    return ccn__build_fail(b, 305, b->span, "here", "it works along the last dim of a tensor");
  int64_t *dims = CCN__NEWN(b->l->arena, int64_t, 1);
  dims[0] = t->rank - 1;
  ccn__dtype dtype = (ccn__dtype)t->dtype, work = working(t);
  x = ccn__step_cast(b, work, x);
  if (centre) x = ccn__step2(b, CCN__OP_SUB, x, last_mean(b, x, base, dims, work));
  ccn__id var = last_mean(b, ccn__step2(b, CCN__OP_MUL, x, x),
                          centre ? ccn__arena_printf(b->l->arena, "%s.var", base) : base, dims, work);
  if (var == CCN__NO_ID) return CCN__B_FAIL;
  ccn__id root = ccn__step1(b, CCN__OP_SQRT, ccn__step2(b, CCN__OP_ADD, var, ccn__step_lit(b, lit, work)));
  return ccn__built(b, ccn__step_cast(b, dtype, ccn__step2(b, CCN__OP_DIV, x, root)));
}

ccn__bv ccn__build_layernorm_op(ccn__build *b) { return normalised(b, true, 1e-5); }
ccn__bv ccn__build_rmsnorm_op(ccn__build *b) { return normalised(b, false, 1e-6); }

ccn__bv ccn__build_clamp_op(ccn__build *b) {
  ccn__bv x = ccn__slot_value(b, "x");
  ccn__id id = ccn__as_node(b->l, x, -1);
  if (id == CCN__NO_ID) return CCN__B_FAIL;
  int t = ccn__ntype(b->l, id)->dtype;
  ccn__id low = ccn__slot_node(b, "low", t), high = low == CCN__NO_ID ? low : ccn__slot_node(b, "high", t);
  if (high == CCN__NO_ID) return CCN__B_FAIL;
  return ccn__built(b, ccn__step2(b, CCN__OP_MINIMUM, ccn__step2(b, CCN__OP_MAXIMUM, id, low), high));
}
