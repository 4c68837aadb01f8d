/* emit_expr.c: the elementwise operations: lang/kernels.c in LLVM's vectors, bit for bit (NaN equals NaN).
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

ccn__kernel_id ccn__e_redop(ccn__redop op) {
  switch (op) {
  case CCN__RED_PROD: return CCN__K_MUL;
  case CCN__RED_MAX: return CCN__K_MAXIMUM;
  case CCN__RED_MIN: return CCN__K_MINIMUM;
  default: return CCN__K_ADD;
  }
}

static ccn__v choose(ccn__emit *e, ccn__v c, ccn__v a, ccn__v b) {
  return LLVMBuildSelect(e->b, c, a, b, "");
}
static ccn__v fcmp(ccn__emit *e, LLVMRealPredicate p, ccn__v a, ccn__v b) {
  return LLVMBuildFCmp(e->b, p, a, b, "");
}
static ccn__v icmp(ccn__emit *e, LLVMIntPredicate p, ccn__v a, ccn__v b) {
  return LLVMBuildICmp(e->b, p, a, b, "");
}

/* ---- floats -------------------------------------------------------------------------------------------- */

typedef struct ftype { /* float or double */
  LLVMTypeRef f, i;
  uint64_t sign;
  double big; /* from here on every value is whole */
  bool wide;
} ftype;

static ftype ftype_of(const ccn__emit *e, ccn__dtype t) {
  if (t == CCN__F64) return (ftype){e->f64, e->i64, (uint64_t)1 << 63, 0x1p52, true};
  return (ftype){e->f32, e->i32, 0x80000000u, 0x1p23, false};
}

static ccn__v fconst(ccn__emit *e, const ftype *t, double x) { return ccn__e_float(e, t->f, x); }

static ccn__v fabs_of(ccn__emit *e, const ftype *t, ccn__v x) {
  const ccn__v bits = LLVMBuildAnd(e->b, ccn__e_bits(e, x, t->i), ccn__e_int(e, t->i, t->sign - 1), "");
  return ccn__e_bits(e, bits, t->f);
}

/* |x| with y's sign; x must not be negative. */
static ccn__v with_sign(ccn__emit *e, const ftype *t, ccn__v x, ccn__v y) {
  const ccn__v sign = LLVMBuildAnd(e->b, ccn__e_bits(e, y, t->i), ccn__e_int(e, t->i, t->sign), "");
  const ccn__v a = ccn__e_bits(e, fabs_of(e, t, x), t->i);
  return ccn__e_bits(e, LLVMBuildOr(e->b, a, sign, ""), t->f);
}

static ccn__v round_of(ccn__emit *e, const ftype *t, ccn__v x) {
  const ccn__v big = fconst(e, t, t->big), a = fabs_of(e, t, x);
  const ccn__v r = LLVMBuildFSub(e->b, LLVMBuildFAdd(e->b, a, big, ""), big, "");
  return choose(e, fcmp(e, LLVMRealOLT, a, big), with_sign(e, t, r, x), x);
}

static ccn__v floor_of(ccn__emit *e, const ftype *t, ccn__v x) {
  const ccn__v r = round_of(e, t, x), d = LLVMBuildFSub(e->b, r, fconst(e, t, 1), "");
  return choose(e, fcmp(e, LLVMRealOGT, r, x), d, r);
}

static ccn__v ceil_of(ccn__emit *e, const ftype *t, ccn__v x) {
  const ccn__v r = round_of(e, t, x), u = LLVMBuildFAdd(e->b, r, fconst(e, t, 1), "");
  return with_sign(e, t, choose(e, fcmp(e, LLVMRealOLT, r, x), u, r), x);
}

static ccn__v extreme(ccn__emit *e, const ftype *t, bool maximum, ccn__v x, ccn__v y) {
  LLVMBuilderRef b = e->b;
  const ccn__v larger = choose(e, fcmp(e, maximum ? LLVMRealOGT : LLVMRealOLT, x, y), x, y);
  const ccn__v equal = fcmp(e, LLVMRealOEQ, x, y), xb = ccn__e_bits(e, x, t->i);
  const ccn__v ones = ccn__e_int(e, t->i, UINT64_MAX), zero = ccn__e_int(e, t->i, 0);
  ccn__v r = ccn__e_bits(e, larger, t->i);
  if (maximum) r = LLVMBuildAnd(b, r, LLVMBuildOr(b, xb, choose(e, equal, zero, ones), ""), "");
  else r = LLVMBuildOr(b, r, LLVMBuildAnd(b, xb, choose(e, equal, ones, zero), ""), "");
  return choose(e, fcmp(e, LLVMRealUNO, x, x), x, ccn__e_bits(e, r, t->f));
}

/* fmod of C: frem, a call for each element. */
static ccn__v fmod_of(ccn__emit *e, const ftype *t, ccn__v x, ccn__v y) {
  const LLVMTypeRef params[2] = {t->f, t->f};
  const LLVMTypeRef type = LLVMFunctionType(t->f, (LLVMTypeRef *)(uintptr_t)params, 2, 0);
  const char *name = t->wide ? "fmod" : "fmodf";
  ccn__v f = LLVMGetNamedFunction(e->module, name);
  if (!f) f = LLVMAddFunction(e->module, name, type);
  if (e->lanes == 1) return LLVMBuildCall2(e->b, type, f, (ccn__v[]){x, y}, 2, "");
  ccn__v r = LLVMGetPoison(ccn__e_type(e, t->f));
  for (unsigned i = 0; i < e->lanes; i++) {
    const ccn__v at = LLVMConstInt(e->i32, i, 0);
    ccn__v pair[2] = {LLVMBuildExtractElement(e->b, x, at, ""), LLVMBuildExtractElement(e->b, y, at, "")};
    r = LLVMBuildInsertElement(e->b, r, LLVMBuildCall2(e->b, type, f, pair, 2, ""), at, "");
  }
  return r;
}

static ccn__v differ_in_sign(ccn__emit *e, const ftype *t, ccn__v r, ccn__v y) {
  const ccn__v zero = fconst(e, t, 0);
  return LLVMBuildXor(e->b, fcmp(e, LLVMRealOLT, r, zero), fcmp(e, LLVMRealOLT, y, zero), "");
}

static ccn__v float_mod(ccn__emit *e, const ftype *t, ccn__v x, ccn__v y) {
  const ccn__v r = fmod_of(e, t, x, y), zero = fconst(e, t, 0);
  const ccn__v other = choose(e, differ_in_sign(e, t, r, y), LLVMBuildFAdd(e->b, r, y, ""), r);
  return choose(e, fcmp(e, LLVMRealOEQ, r, zero), with_sign(e, t, zero, y), other);
}

static ccn__v float_floordiv(ccn__emit *e, const ftype *t, ccn__v x, ccn__v y) {
  LLVMBuilderRef b = e->b;
  const ccn__v zero = fconst(e, t, 0), one = fconst(e, t, 1), r = fmod_of(e, t, x, y);
  const ccn__v quotient = LLVMBuildFDiv(b, x, y, "");
  ccn__v q = LLVMBuildFDiv(b, LLVMBuildFSub(b, x, r, ""), y, "");
  const ccn__v down = LLVMBuildAnd(b, fcmp(e, LLVMRealUNE, r, zero), differ_in_sign(e, t, r, y), "");
  q = choose(e, down, LLVMBuildFSub(b, q, one, ""), q);
  const ccn__v f = floor_of(e, t, q), d = LLVMBuildFSub(b, q, f, "");
  const ccn__v nearest =
    choose(e, fcmp(e, LLVMRealOGT, d, fconst(e, t, 0.5)), LLVMBuildFAdd(b, f, one, ""), f);
  const ccn__v result = choose(e, fcmp(e, LLVMRealOEQ, q, zero), with_sign(e, t, zero, quotient), nearest);
  return choose(e, fcmp(e, LLVMRealOEQ, y, zero), quotient, result);
}

static ccn__v root(ccn__emit *e, const ftype *t, ccn__v x) {
  return ccn__e_call(e, "llvm.sqrt", ccn__e_type(e, t->f), &x, 1);
}

static ccn__v float_kernel(ccn__emit *e, ccn__kernel_id k, ccn__dtype dtype, ccn__v x, ccn__v y) {
  const ftype t = ftype_of(e, dtype);
  LLVMBuilderRef b = e->b;
  const ccn__v zero = fconst(e, &t, 0);
  switch (k) {
  case CCN__K_ADD: return LLVMBuildFAdd(b, x, y, "");
  case CCN__K_SUB: return LLVMBuildFSub(b, x, y, "");
  case CCN__K_MUL: return LLVMBuildFMul(b, x, y, "");
  case CCN__K_DIV: return LLVMBuildFDiv(b, x, y, "");
  case CCN__K_FLOORDIV: return float_floordiv(e, &t, x, y);
  case CCN__K_MOD: return float_mod(e, &t, x, y);
  case CCN__K_MAXIMUM: return extreme(e, &t, true, x, y);
  case CCN__K_MINIMUM: return extreme(e, &t, false, x, y);
  case CCN__K_LT: return fcmp(e, LLVMRealOLT, x, y);
  case CCN__K_LE: return fcmp(e, LLVMRealOLE, x, y);
  case CCN__K_GT: return fcmp(e, LLVMRealOGT, x, y);
  case CCN__K_GE: return fcmp(e, LLVMRealOGE, x, y);
  case CCN__K_EQ: return fcmp(e, LLVMRealOEQ, x, y);
  case CCN__K_NE: return fcmp(e, LLVMRealUNE, x, y);
  case CCN__K_NEG: return LLVMBuildFNeg(b, x, "");
  case CCN__K_ABS: return fabs_of(e, &t, x);
  case CCN__K_SIGN: {
    const ccn__v less = choose(e, fcmp(e, LLVMRealOLT, x, zero), fconst(e, &t, -1),
                               choose(e, fcmp(e, LLVMRealOEQ, x, zero), zero, x));
    return choose(e, fcmp(e, LLVMRealOGT, x, zero), fconst(e, &t, 1), less);
  }
  case CCN__K_RELU: return choose(e, fcmp(e, LLVMRealOLE, x, zero), zero, x);
  case CCN__K_FLOOR: return floor_of(e, &t, x);
  case CCN__K_CEIL: return ceil_of(e, &t, x);
  case CCN__K_ROUND: return round_of(e, &t, x);
  case CCN__K_SQRT: return root(e, &t, x);
  case CCN__K_RSQRT: return LLVMBuildFDiv(b, fconst(e, &t, 1), root(e, &t, x), "");
  case CCN__K_ISNAN: return fcmp(e, LLVMRealUNO, x, x);
  case CCN__K_ISINF:
    return fcmp(
      e, LLVMRealOEQ, fabs_of(e, &t, x),
      LLVMConstBitCast(ccn__e_int(e, t.i, t.wide ? 0x7ff0000000000000u : 0x7f800000u), ccn__e_type(e, t.f)));
  case CCN__K_ISFINITE:
    return fcmp(
      e, LLVMRealOLT, fabs_of(e, &t, x),
      LLVMConstBitCast(ccn__e_int(e, t.i, t.wide ? 0x7ff0000000000000u : 0x7f800000u), ccn__e_type(e, t.f)));
  default: return ccn__e_math(e, ccn__math_of_kernel(k, t.wide ? CCN__F64 : CCN__F32), x, y);
  }
}

/* ---- integers ------------------------------------------------------------------------------------------ */

/* The floor of x / y and what remains; y is never 0 here, and -1 does not get near the machine's division. */
static ccn__v int_division(ccn__emit *e, bool quotient, ccn__dtype dtype, ccn__v x, ccn__v y) {
  LLVMBuilderRef b = e->b;
  const LLVMTypeRef t = ccn__e_memory(e, dtype);
  const ccn__v zero = ccn__e_int(e, t, 0), one = ccn__e_int(e, t, 1);
  if (dtype == CCN__U8) return quotient ? LLVMBuildUDiv(b, x, y, "") : LLVMBuildURem(b, x, y, "");
  const ccn__v minus = icmp(e, LLVMIntEQ, y, ccn__e_int(e, t, UINT64_MAX)), d = choose(e, minus, one, y);
  const ccn__v q = LLVMBuildSDiv(b, x, d, ""), r = LLVMBuildSub(b, x, LLVMBuildMul(b, q, d, ""), "");
  const ccn__v signs = LLVMBuildXor(b, icmp(e, LLVMIntSLT, r, zero), icmp(e, LLVMIntSLT, d, zero), "");
  const ccn__v off = LLVMBuildAnd(b, icmp(e, LLVMIntNE, r, zero), signs, "");
  if (quotient)
    return choose(e, minus, LLVMBuildSub(b, zero, x, ""), choose(e, off, LLVMBuildSub(b, q, one, ""), q));
  return choose(e, minus, zero, choose(e, off, LLVMBuildAdd(b, r, d, ""), r));
}

/* Sets the word if a lane of `bad` is true. */
static void report(ccn__emit *e, ccn__v bad, ccn__v fault) {
  const LLVMTypeRef mask = LLVMIntTypeInContext(e->context, e->lanes);
  const ccn__v any = e->lanes == 1 ? bad
                                   : LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, bad, mask, ""),
                                                   LLVMConstNull(mask), "");
  const LLVMBasicBlockRef set = ccn__e_block(e), on = ccn__e_block(e);
  LLVMBuildCondBr(e->b, any, set, on);
  LLVMPositionBuilderAtEnd(e->b, set);
  LLVMSetAlignment(LLVMBuildStore(e->b, ccn__e_i64(e, 1), fault), 8);
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, on);
}

static ccn__v int_kernel(ccn__emit *e, ccn__kernel_id k, ccn__dtype dtype, ccn__v x, ccn__v y, ccn__v fault) {
  LLVMBuilderRef b = e->b;
  const LLVMTypeRef t = ccn__e_memory(e, dtype);
  const ccn__v zero = ccn__e_int(e, t, 0), one = ccn__e_int(e, t, 1);
  const bool sign = dtype != CCN__U8;
  const LLVMIntPredicate lt = sign ? LLVMIntSLT : LLVMIntULT, gt = sign ? LLVMIntSGT : LLVMIntUGT;
  switch (k) {
  case CCN__K_ADD: return LLVMBuildAdd(b, x, y, "");
  case CCN__K_SUB: return LLVMBuildSub(b, x, y, "");
  case CCN__K_MUL: return LLVMBuildMul(b, x, y, "");
  case CCN__K_FLOORDIV:
  case CCN__K_MOD: {
    const ccn__v bad = icmp(e, LLVMIntEQ, y, zero);
    report(e, bad, fault);
    return int_division(e, k == CCN__K_FLOORDIV, dtype, x, choose(e, bad, one, y));
  }
  case CCN__K_MAXIMUM: return choose(e, icmp(e, gt, x, y), x, y);
  case CCN__K_MINIMUM: return choose(e, icmp(e, lt, x, y), x, y);
  case CCN__K_LT: return icmp(e, lt, x, y);
  case CCN__K_LE: return icmp(e, sign ? LLVMIntSLE : LLVMIntULE, x, y);
  case CCN__K_GT: return icmp(e, gt, x, y);
  case CCN__K_GE: return icmp(e, sign ? LLVMIntSGE : LLVMIntUGE, x, y);
  case CCN__K_EQ: return icmp(e, LLVMIntEQ, x, y);
  case CCN__K_NE: return icmp(e, LLVMIntNE, x, y);
  case CCN__K_NEG: return LLVMBuildSub(b, zero, x, "");
  case CCN__K_ABS: return sign ? choose(e, icmp(e, lt, x, zero), LLVMBuildSub(b, zero, x, ""), x) : x;
  case CCN__K_SIGN: {
    const ccn__v minus = ccn__e_int(e, t, UINT64_MAX);
    const ccn__v less = sign ? choose(e, icmp(e, lt, x, zero), minus, zero) : zero;
    return choose(e, icmp(e, gt, x, zero), one, less);
  }
  default: return sign ? choose(e, icmp(e, gt, x, zero), x, zero) : x; /* RELU */
  }
}

static ccn__v bool_kernel(ccn__emit *e, ccn__kernel_id k, ccn__v x, ccn__v y) {
  LLVMBuilderRef b = e->b;
  switch (k) {
  case CCN__K_LT: return LLVMBuildAnd(b, LLVMBuildNot(b, x, ""), y, "");
  case CCN__K_LE: return LLVMBuildOr(b, LLVMBuildNot(b, x, ""), y, "");
  case CCN__K_GT: return LLVMBuildAnd(b, x, LLVMBuildNot(b, y, ""), "");
  case CCN__K_GE: return LLVMBuildOr(b, x, LLVMBuildNot(b, y, ""), "");
  case CCN__K_EQ: return LLVMBuildNot(b, LLVMBuildXor(b, x, y, ""), "");
  case CCN__K_NE: return LLVMBuildXor(b, x, y, "");
  case CCN__K_AND:
  case CCN__K_MINIMUM: return LLVMBuildAnd(b, x, y, "");
  case CCN__K_OR:
  case CCN__K_MAXIMUM: return LLVMBuildOr(b, x, y, "");
  default: return LLVMBuildNot(b, x, "");
  }
}

ccn__v ccn__e_kernel(ccn__emit *e, ccn__kernel_id k, ccn__dtype t, ccn__v a, ccn__v b, ccn__v c,
                     ccn__v fault) {
  if (k == CCN__K_WHERE) return choose(e, a, b, c);
  if (t == CCN__BOOL) return bool_kernel(e, k, a, b);
  return ccn__dtype_is_float(t) ? float_kernel(e, k, t, a, b) : int_kernel(e, k, t, a, b, fault);
}
