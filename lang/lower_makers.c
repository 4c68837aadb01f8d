/* lower_makers.c: makers, random numbers, rank → nodes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"

/* ---- makers ---- */

ccn__bv ccn__build_full_op(ccn__build *b) {
  const ccn__type *t = ccn__slot_type(b, "type");
  if (!t) return CCN__B_FAIL;
  const ccn__lit *lit = ccn__lit_int(b->l->arena, strcmp(b->name, "ones") == 0);
  if (t->dtype == CCN__BOOL) lit = ccn__lit_bool(b->l->arena, strcmp(b->name, "ones") == 0);
  if (ccn__slot(b, "value")) {
    ccn__number n;
    ccn__bv v = ccn__slot_value(b, "value");
    if (!ccn__lit_number(b->l, v, "the value", &n)) return CCN__B_FAIL;
    const char *why = ccn__number_fits(n, (ccn__dtype)t->dtype);
    if (why) {
      ccn__lower_error(b->l, 102, v.span, "does not fit", "this literal %s in %s", why,
                       ccn__dtype_name((ccn__dtype)t->dtype));
      return CCN__B_FAIL;
    }
    lit = v.lit;
  }
  ccn__attr a = {.key = CCN__A_VALUE, .lit = lit};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_FULL, NULL, 0, (ccn__attrs){&a, 1}, t, b->span));
}

ccn__bv ccn__build_iota_op(ccn__build *b) {
  const ccn__type *t = ccn__slot_type(b, "type");
  ccn__attr a = {.key = CCN__A_DIM};
  if (!t) return CCN__B_FAIL;
  if (t->dtype == CCN__BOOL) return ccn__build_fail(b, 104, b->span, "bool", "it is not defined for bool");
  bool dim = ccn__slot(b, "dim") != NULL;
  if (dim && !ccn__slot_dim(b, "dim", t->rank, 0, &a.i)) return CCN__B_FAIL;
  return ccn__built(b, ccn__emit(b->l, CCN__OP_IOTA, NULL, 0, (ccn__attrs){&a, dim}, t, b->span));
}

/* step: an integer scalar that is the same everywhere. */
static ccn__id step_node(ccn__build *b) {
  ccn__bv v = ccn__slot_value(b, "step");
  if (v.kind == CCN__B_NONE) return ccn__step_lit(b, ccn__lit_int(b->l->arena, 0), CCN__I64);
  if (ccn__build_fractional(v))
    return (void)ccn__build_not_whole(b, "step", "steps are counted in whole numbers, as in `step: 3`"),
           CCN__NO_ID;
  ccn__id id = ccn__as_node(b->l, v, CCN__I64);
  if (id == CCN__NO_ID) return id;
  const ccn__type *t = ccn__ntype(b->l, id);
  bool same = t->rank == 0 && !t->bundle && ccn__dtype_is_int((ccn__dtype)t->dtype);
  for (uint32_t a = 0; a < t->naxes; a++)
    same &= t->place[a].kind == CCN__REPLICATED || t->place[a].kind == CCN__AT;
  if (same) return id;
  (void)ccn__build_fail(b, ccn__dtype_is_int((ccn__dtype)t->dtype) ? 800 : 104, v.span, "here",
                        "`step` is a whole number that is the same on every rank");
  return CCN__NO_ID;
}

static bool lit_attr(ccn__build *b, const char *slot, ccn__attr_key key, ccn__attr *out, ccn__number *n) {
  ccn__bv v = ccn__slot_value(b, slot);
  *out = (ccn__attr){.key = (uint8_t)key};
  if (!ccn__lit_number(b->l, v, ccn__arena_printf(b->l->arena, "`%s`", slot), n)) return false;
  out->lit = v.lit;
  return true;
}

static bool probability(ccn__build *b, ccn__attr *out) {
  ccn__number n;
  if (!lit_attr(b, "p", CCN__A_P, out, &n)) return false;
  double p = ccn__number_f64(n);
  if (n.unknown || (p >= 0 && p <= 1)) return true;
  (void)ccn__build_fail_cure(b, 102, ccn__slot(b, "p")->span, "not a probability",
                             "`p` is a number from 0 to 1",
                             "give the part that is drawn, as in `p: 0.1` for one in ten");
  return false;
}

static bool seed(ccn__build *b, ccn__attr *out) {
  ccn__number n;
  if (!lit_attr(b, "seed", CCN__A_SEED, out, &n)) return false;
  if (!n.is_float) return true;
  (void)ccn__build_not_whole(b, "seed", "any whole number is a seed, as in `seed: 42`");
  return false;
}

ccn__bv ccn__build_random_op(ccn__build *b) {
  const ccn__type *t = ccn__slot_type(b, "type");
  ccn__attr at[3];
  ccn__number low, high;
  uint32_t n = 0;
  if (!t || !seed(b, &at[n++])) return CCN__B_FAIL;
  static const ccn__op_dtypes need[] = {CCN__DT_FLOAT, CCN__DT_INT, CCN__DT_BOOL};
  ccn__op_dtypes c = (ccn__op_dtypes)ccn__op_table[b->op].dtypes;
  ccn__dtype d = (ccn__dtype)t->dtype;
  bool fits = c == need[0] ? ccn__dtype_is_float(d) : c == need[1] ? ccn__dtype_is_int(d) : d == CCN__BOOL;
  if (!fits)
    return ccn__build_fail(b, 104, ccn__slot(b, "type")->span, ccn__dtype_name(d),
                           "it does not make values of this dtype");
  if (b->op == CCN__OP_BERNOULLI && !probability(b, &at[n++])) return CCN__B_FAIL;
  if (b->op == CCN__OP_RANDINT) {
    if (!lit_attr(b, "low", CCN__A_LOW, &at[n++], &low) || !lit_attr(b, "high", CCN__A_HIGH, &at[n++], &high))
      return CCN__B_FAIL;
    bool known = !low.unknown && !high.unknown;
    if (known && (low.is_float || high.is_float || low.i >= high.i || ccn__number_fits(low, d) ||
                  ccn__number_fits((ccn__number){.i = high.i - 1}, d)))
      return ccn__build_fail_cure(b, 102, b->span, "no such range",
                                  "`low` and `high` are whole numbers of this dtype, low < high",
                                  "numbers are drawn from low to high - 1: give the smaller bound first");
  }
  ccn__id step = step_node(b);
  return ccn__built(b, ccn__emit(b->l, b->op, &step, 1, (ccn__attrs){at, n}, t, b->span));
}

ccn__bv ccn__build_dropout_op(ccn__build *b) {
  ccn__attr at[2];
  ccn__id in[2] = {ccn__slot_node(b, "x", -1)};
  if (in[0] == CCN__NO_ID || !probability(b, &at[0]) || !seed(b, &at[1])) return CCN__B_FAIL;
  in[1] = step_node(b);
  return ccn__built(b, ccn__emit(b->l, CCN__OP_DROPOUT, in, 2, (ccn__attrs){at, 2}, NULL, b->span));
}

ccn__bv ccn__build_rank_op(ccn__build *b) {
  ccn__name word = ccn__slot_word(b, "axis");
  uint32_t axis;
  if (!word || !ccn__axis_find(b->l, word, &axis)) {
    ccn__lower_error(b->l, 311, ccn__slot(b, "axis")->span, "not an axis",
                     "`rank` takes a mesh axis of this text, as in `rank(%s)`",
                     b->l->frame->naxes ? b->l->frame->axis_name[0] : "dp");
    return CCN__B_FAIL;
  }
  ccn__type t = {.dtype = CCN__I32, .naxes = (uint8_t)b->l->g->mesh.naxes};
  t.place[axis].kind = CCN__LOCAL;
  ccn__attr a = {.key = CCN__A_AXIS, .i = axis};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_RANK, NULL, 0, (ccn__attrs){&a, 1}, &t, b->span));
}
