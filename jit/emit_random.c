/* emit_random.c: random numbers: lang/philox.c and lang/interp_random.c in LLVM's vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

static ccn__v low_word(ccn__emit *e, ccn__v x) { return LLVMBuildTrunc(e->b, x, ccn__e_type(e, e->i32), ""); }
static ccn__v high_word(ccn__emit *e, ccn__v x) {
  return low_word(e, LLVMBuildLShr(e->b, x, ccn__e_int(e, e->i64, 32), ""));
}
static ccn__v widen(ccn__emit *e, ccn__v x) { return LLVMBuildZExt(e->b, x, ccn__e_type(e, e->i64), ""); }

/* The low word of one of the rank's numbers. */
static ccn__v word(ccn__emit *e, uint32_t number) {
  return LLVMBuildTrunc(e->b, ccn__e_number(e, number), e->i32, "");
}

static void philox(ccn__emit *e, ccn__v c[4], ccn__v key0, ccn__v key1) {
  LLVMBuilderRef b = e->b;
  const ccn__v m0 = ccn__e_int(e, e->i64, 0xd2511f53u), m1 = ccn__e_int(e, e->i64, 0xcd9e8d57u);
  for (unsigned round = 0; round < 10; round++) {
    const ccn__v p0 = LLVMBuildMul(b, widen(e, c[0]), m0, ""), p1 = LLVMBuildMul(b, widen(e, c[2]), m1, "");
    const ccn__v k0 = ccn__e_splat(e, key0), k1 = ccn__e_splat(e, key1);
    c[0] = LLVMBuildXor(b, LLVMBuildXor(b, high_word(e, p1), c[1], ""), k0, "");
    c[2] = LLVMBuildXor(b, LLVMBuildXor(b, high_word(e, p0), c[3], ""), k1, "");
    c[1] = low_word(e, p1);
    c[3] = low_word(e, p0);
    key0 = LLVMBuildAdd(b, key0, LLVMConstInt(e->i32, 0x9e3779b9u, 0), "");
    key1 = LLVMBuildAdd(b, key1, LLVMConstInt(e->i32, 0xbb67ae85u, 0), "");
  }
}

/* w >> 8 as a number of type f times 2^-24. */
static ccn__v fraction(ccn__emit *e, LLVMTypeRef f, ccn__v w, uint64_t plus) {
  const ccn__v bits = LLVMBuildLShr(e->b, w, ccn__e_int(e, e->i32, 8), "");
  const ccn__v whole = LLVMBuildAdd(e->b, bits, ccn__e_int(e, e->i32, plus), "");
  const ccn__v x = LLVMBuildSIToFP(e->b, whole, ccn__e_type(e, f), "");
  return LLVMBuildFMul(e->b, x, ccn__e_float(e, f, 0x1p-24), "");
}

static ccn__v uniform(ccn__emit *e, ccn__dtype t, ccn__v w0, ccn__v w1) {
  LLVMBuilderRef b = e->b;
  if (t != CCN__F64) return ccn__e_cast(e, t, CCN__F32, fraction(e, e->f32, w0, 0));
  ccn__v w = LLVMBuildOr(b, LLVMBuildShl(b, widen(e, w0), ccn__e_int(e, e->i64, 32), ""), widen(e, w1), "");
  w = LLVMBuildLShr(b, w, ccn__e_int(e, e->i64, 11), "");
  const ccn__v x = LLVMBuildSIToFP(b, w, ccn__e_type(e, e->f64), "");
  return LLVMBuildFMul(b, x, ccn__e_float(e, e->f64, 0x1p-53), "");
}

static ccn__v normal(ccn__emit *e, ccn__dtype t, ccn__v w0, ccn__v w1) {
  LLVMBuilderRef b = e->b;
  const LLVMTypeRef f = ccn__e_type(e, e->f32);
  ccn__v x = fraction(e, e->f32, w0, 1);
  ccn__v y = LLVMBuildFMul(b, ccn__e_float(e, e->f32, 0x1.921fb6p+2), fraction(e, e->f32, w1, 0), "");
  x = ccn__e_math(e, ccn__math_find(CCN__MATH_LOG, CCN__F32), x, NULL);
  y = ccn__e_math(e, ccn__math_find(CCN__MATH_COS, CCN__F32), y, NULL);
  x = LLVMBuildFMul(b, ccn__e_float(e, e->f32, -2), x, "");
  x = ccn__e_call(e, "llvm.sqrt", f, &x, 1);
  return ccn__e_cast(e, t, CCN__F32, LLVMBuildFMul(b, x, y, ""));
}

static ccn__v high_half(ccn__emit *e, ccn__v x, ccn__v y) {
  LLVMBuilderRef b = e->b;
  const ccn__v s = ccn__e_int(e, e->i64, 32), m = ccn__e_int(e, e->i64, 0xffffffffu);
  const ccn__v x0 = LLVMBuildAnd(b, x, m, ""), x1 = LLVMBuildLShr(b, x, s, "");
  const ccn__v y0 = LLVMBuildAnd(b, y, m, ""), y1 = LLVMBuildLShr(b, y, s, "");
  const ccn__v mid =
    LLVMBuildAdd(b, LLVMBuildMul(b, x1, y0, ""), LLVMBuildLShr(b, LLVMBuildMul(b, x0, y0, ""), s, ""), "");
  const ccn__v low = LLVMBuildAdd(b, LLVMBuildMul(b, x0, y1, ""), LLVMBuildAnd(b, mid, m, ""), "");
  const ccn__v high = LLVMBuildAdd(b, LLVMBuildMul(b, x1, y1, ""), LLVMBuildLShr(b, mid, s, ""), "");
  return LLVMBuildAdd(b, high, LLVMBuildLShr(b, low, s, ""), "");
}

static ccn__v whole(ccn__emit *e, const ccn__kval *v, ccn__v w0, ccn__v w1) {
  LLVMBuilderRef b = e->b;
  const ccn__v low = ccn__e_splat(e, ccn__e_number(e, v->par + 3)), n = ccn__e_number(e, v->par + 4);
  const ccn__v range = ccn__e_splat(e, n), s = ccn__e_int(e, e->i64, 32);
  const ccn__v w = LLVMBuildOr(b, LLVMBuildShl(b, widen(e, w1), s, ""), widen(e, w0), "");
  const ccn__v small = LLVMBuildLShr(b, LLVMBuildMul(b, widen(e, w0), range, ""), s, "");
  const ccn__v is_all = LLVMBuildICmp(b, LLVMIntEQ, n, ccn__e_i64(e, 0), "");
  const ccn__v is_small =
    LLVMBuildICmp(b, LLVMIntULE, LLVMBuildSub(b, n, ccn__e_i64(e, 1), ""), ccn__e_i64(e, 0xffffffff), "");
  const ccn__v large = LLVMBuildSelect(b, is_all, w, high_half(e, w, range), "");
  const ccn__v add = LLVMBuildSelect(b, is_small, small, large, "");
  return ccn__e_cast(e, (ccn__dtype)v->dtype, CCN__I64, LLVMBuildAdd(b, low, add, ""));
}

/* u < p, in f64. */
static ccn__v coin(ccn__emit *e, const ccn__kval *v, ccn__v w0) {
  const ccn__v p = LLVMBuildBitCast(e->b, ccn__e_number(e, v->par + 3), e->f64, "");
  return LLVMBuildFCmp(e->b, LLVMRealOLT, fraction(e, e->f64, w0, 0), ccn__e_splat(e, p), "");
}

static ccn__v dropout(ccn__emit *e, const ccn__kval *v, ccn__v w0, ccn__v x) {
  const ccn__dtype t = (ccn__dtype)v->dtype;
  const LLVMTypeRef f = ccn__e_scalar(e, t);
  ccn__v scale = LLVMBuildBitCast(e->b, ccn__e_number(e, v->par + 4), e->f64, "");
  if (f != e->f64) scale = LLVMBuildFPTrunc(e->b, scale, f, "");
  const ccn__v kept = LLVMBuildFMul(e->b, x, ccn__e_splat(e, scale), "");
  const ccn__v r = LLVMBuildSelect(e->b, coin(e, v, w0), ccn__e_float(e, f, 0), kept, "");
  return ccn__e_round(e, t, r);
}

ccn__v ccn__e_random(ccn__emit *e, const ccn__kval *v, ccn__v index, ccn__v x, ccn__v step) {
  ccn__v c[4] = {low_word(e, index), high_word(e, index), NULL, ccn__e_splat(e, word(e, v->par + 2))};
  c[2] = step ? low_word(e, step) : ccn__e_int(e, e->i32, 0);
  philox(e, c, word(e, v->par), word(e, v->par + 1));
  switch (v->fn) {
  case CCN__OP_DROPOUT: return dropout(e, v, c[0], x);
  case CCN__OP_RAND: return uniform(e, (ccn__dtype)v->dtype, c[0], c[1]);
  case CCN__OP_RANDN: return normal(e, (ccn__dtype)v->dtype, c[0], c[1]);
  case CCN__OP_RANDINT: return whole(e, v, c[0], c[1]);
  default: return coin(e, v, c[0]);
  }
}
