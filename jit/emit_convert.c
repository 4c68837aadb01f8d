/* emit_convert.c: elements in memory, roundings and casts: lang/num.c in LLVM's vectors, bit for bit.
 *
 * bf16 is always done with integers: the machine instruction of some CPUs flushes denormals. f16 is done in
 * hardware where there is some, with the integer operations of num.c elsewhere (LLVM would call functions,
 * element by element).
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

static ccn__v i32(const ccn__emit *e, uint64_t x) { return ccn__e_int(e, e->i32, x); }
static ccn__v compare(ccn__emit *e, LLVMIntPredicate p, ccn__v a, ccn__v b) {
  return LLVMBuildICmp(e->b, p, a, b, "");
}
static ccn__v choose(ccn__emit *e, ccn__v c, ccn__v a, ccn__v b) {
  return LLVMBuildSelect(e->b, c, a, b, "");
}

/* ---- f16, bf16 ----------------------------------------------------------------------------------------- */

static ccn__v from_f16(ccn__emit *e, ccn__v raw) {
  LLVMBuilderRef b = e->b;
  if (e->target->native_f16)
    return LLVMBuildFPExt(b, ccn__e_bits(e, raw, e->f16), ccn__e_type(e, e->f32), "");
  const ccn__v h = LLVMBuildZExt(b, raw, ccn__e_type(e, e->i32), "");
  const ccn__v sign = LLVMBuildShl(b, LLVMBuildAnd(b, h, i32(e, 0x8000), ""), i32(e, 16), "");
  const ccn__v a = LLVMBuildAnd(b, h, i32(e, 0x7fff), "");
  ccn__v r = LLVMBuildAdd(b, LLVMBuildShl(b, a, i32(e, 13), ""), i32(e, 112u << 23), "");
  r = LLVMBuildAdd(b, r, choose(e, compare(e, LLVMIntSGE, a, i32(e, 0x7c00)), i32(e, 112u << 23), i32(e, 0)),
                   "");
  r = LLVMBuildOr(b, r, choose(e, compare(e, LLVMIntSGT, a, i32(e, 0x7c00)), i32(e, 0x00400000), i32(e, 0)),
                  "");
  const ccn__v x = LLVMBuildSIToFP(b, a, ccn__e_type(e, e->f32), "");
  const ccn__v tiny = ccn__e_bits(e, LLVMBuildFMul(b, x, ccn__e_float(e, e->f32, 0x1p-24), ""), e->i32);
  r = choose(e, compare(e, LLVMIntSLT, a, i32(e, 0x0400)), tiny, r);
  return ccn__e_bits(e, LLVMBuildOr(b, sign, r, ""), e->f32);
}

static ccn__v to_f16(ccn__emit *e, ccn__v x) {
  LLVMBuilderRef b = e->b;
  if (e->target->native_f16)
    return ccn__e_bits(e, LLVMBuildFPTrunc(b, x, ccn__e_type(e, e->f16), ""), e->i16);
  const ccn__v u = ccn__e_bits(e, x, e->i32);
  const ccn__v sign = LLVMBuildAnd(b, LLVMBuildLShr(b, u, i32(e, 16), ""), i32(e, 0x8000), "");
  const ccn__v a = LLVMBuildAnd(b, u, i32(e, 0x7fffffff), "");
  const ccn__v a13 = LLVMBuildLShr(b, a, i32(e, 13), "");
  ccn__v r = LLVMBuildAdd(b, a, i32(e, (0x0fffu - (112u << 23))), "");
  r = LLVMBuildAShr(b, LLVMBuildAdd(b, r, LLVMBuildAnd(b, a13, i32(e, 1), ""), ""), i32(e, 13), "");
  const ccn__v half = LLVMBuildFAdd(b, ccn__e_bits(e, a, e->f32), ccn__e_float(e, e->f32, 0.5), "");
  const ccn__v tiny = LLVMBuildSub(b, ccn__e_bits(e, half, e->i32), i32(e, 0x3f000000), "");
  r = choose(e, compare(e, LLVMIntSLT, a, i32(e, 0x38800000)), tiny, r);
  r = choose(e, compare(e, LLVMIntSGE, a, i32(e, 0x47800000)), i32(e, 0x7c00), r);
  const ccn__v nan = LLVMBuildOr(b, LLVMBuildAnd(b, a13, i32(e, 0x3ff), ""), i32(e, 0x7e00), "");
  r = choose(e, compare(e, LLVMIntSGT, a, i32(e, 0x7f800000)), nan, r);
  return LLVMBuildTrunc(b, LLVMBuildOr(b, sign, r, ""), ccn__e_type(e, e->i16), "");
}

static ccn__v from_bf16(ccn__emit *e, ccn__v raw) {
  const ccn__v h = LLVMBuildZExt(e->b, raw, ccn__e_type(e, e->i32), "");
  return ccn__e_bits(e, LLVMBuildShl(e->b, h, i32(e, 16), ""), e->f32);
}

/* In the low half of an i32. */
static ccn__v bf16_bits(ccn__emit *e, ccn__v x) {
  LLVMBuilderRef b = e->b;
  const ccn__v u = ccn__e_bits(e, x, e->i32), high = LLVMBuildLShr(b, u, i32(e, 16), "");
  ccn__v r =
    LLVMBuildAdd(b, LLVMBuildAdd(b, u, i32(e, 0x7fff), ""), LLVMBuildAnd(b, high, i32(e, 1), ""), "");
  r = LLVMBuildLShr(b, r, i32(e, 16), "");
  const ccn__v nan = compare(e, LLVMIntSGT, LLVMBuildAnd(b, u, i32(e, 0x7fffffff), ""), i32(e, 0x7f800000));
  return choose(e, nan, LLVMBuildOr(b, high, i32(e, 0x40), ""), r);
}

static ccn__v to_bf16(ccn__emit *e, ccn__v x) {
  return LLVMBuildTrunc(e->b, bf16_bits(e, x), ccn__e_type(e, e->i16), "");
}

ccn__v ccn__e_round(ccn__emit *e, ccn__dtype t, ccn__v x) {
  if (t == CCN__F16) return from_f16(e, to_f16(e, x));
  if (t == CCN__BF16) return ccn__e_bits(e, LLVMBuildShl(e->b, bf16_bits(e, x), i32(e, 16), ""), e->f32);
  return x;
}

/* f64 → f32 rounded to odd: rounding that to f16 or bf16 is one rounding (num.c). */
static ccn__v to_odd(ccn__emit *e, ccn__v x) {
  LLVMBuilderRef b = e->b;
  const LLVMTypeRef wide = ccn__e_type(e, e->f64);
  const ccn__v y = LLVMBuildFPTrunc(b, x, ccn__e_type(e, e->f32), "");
  ccn__v ya = LLVMBuildFPExt(b, y, wide, ""), xa = x, u = ccn__e_bits(e, y, e->i32);
  ya = ccn__e_call(e, "llvm.fabs", wide, &ya, 1);
  xa = ccn__e_call(e, "llvm.fabs", wide, &xa, 1);
  const ccn__v even = LLVMBuildAnd(b, LLVMBuildNot(b, u, ""), i32(e, 1), "");
  const ccn__v up = LLVMBuildFCmp(b, LLVMRealOLT, ya, xa, ""),
               down = LLVMBuildFCmp(b, LLVMRealOGT, ya, xa, "");
  u = LLVMBuildAdd(b, u, choose(e, up, even, i32(e, 0)), "");
  u = LLVMBuildSub(b, u, choose(e, down, even, i32(e, 0)), "");
  return ccn__e_bits(e, u, e->f32);
}

static ccn__v i64_to_odd(ccn__emit *e, ccn__v x) {
  LLVMBuilderRef b = e->b;
  const ccn__v zero = ccn__e_int(e, e->i64, 0), low = ccn__e_int(e, e->i64, 0x7ff);
  const ccn__v negative = compare(e, LLVMIntSLT, x, zero);
  const ccn__v a = choose(e, negative, LLVMBuildSub(b, zero, x, ""), x);
  const ccn__v rest = compare(e, LLVMIntNE, LLVMBuildAnd(b, a, low, ""), zero);
  const ccn__v sticky = choose(e, rest, ccn__e_int(e, e->i64, 0x800), zero);
  const ccn__v cut = LLVMBuildOr(b, LLVMBuildAnd(b, a, LLVMBuildNot(b, low, ""), ""), sticky, "");
  const ccn__v large = compare(e, LLVMIntNE, LLVMBuildLShr(b, a, ccn__e_int(e, e->i64, 53), ""), zero);
  const ccn__v d = LLVMBuildUIToFP(b, choose(e, large, cut, a), ccn__e_type(e, e->f64), "");
  return choose(e, negative, LLVMBuildFNeg(b, d, ""), d);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

ccn__v ccn__e_from_memory(ccn__emit *e, ccn__dtype t, ccn__v raw) {
  if (t == CCN__F16) return from_f16(e, raw);
  if (t == CCN__BF16) return from_bf16(e, raw);
  if (t == CCN__BOOL) return compare(e, LLVMIntNE, raw, ccn__e_int(e, e->i8, 0));
  return raw;
}

ccn__v ccn__e_load(ccn__emit *e, ccn__dtype t, ccn__v p) {
  const ccn__v x = LLVMBuildLoad2(e->b, ccn__e_type(e, ccn__e_memory(e, t)), p, "");
  LLVMSetAlignment(x, (unsigned)ccn__dtype_size(t));
  return ccn__e_from_memory(e, t, x);
}

static ccn__v to_memory(ccn__emit *e, ccn__dtype t, ccn__v x) {
  if (t == CCN__F16) return to_f16(e, x);
  if (t == CCN__BF16) return to_bf16(e, x);
  if (t == CCN__BOOL) return LLVMBuildZExt(e->b, x, ccn__e_type(e, e->i8), "");
  return x;
}

void ccn__e_store(ccn__emit *e, ccn__dtype t, ccn__v p, ccn__v x) {
  const ccn__v s = LLVMBuildStore(e->b, to_memory(e, t, x), p);
  LLVMSetAlignment(s, (unsigned)ccn__dtype_size(t));
}

/* ---- casts --------------------------------------------------------------------------------------------- */

/* Truncated, saturated, NaN → 0; clamped before the conversion, which is undefined outside. */
static ccn__v float_to_int(ccn__emit *e, ccn__dtype to, bool wide, ccn__v x) {
  static const struct {
    double lowest, end;
    uint64_t max;
  } range[CCN__DTYPE_COUNT] = {[CCN__I64] = {-0x1p63, 0x1p63, INT64_MAX},
                               [CCN__I32] = {-0x1p31, 0x1p31, INT32_MAX},
                               [CCN__I16] = {-0x1p15, 0x1p15, INT16_MAX},
                               [CCN__I8] = {-0x1p7, 0x1p7, INT8_MAX},
                               [CCN__U8] = {0, 0x1p8, UINT8_MAX}};
  LLVMBuilderRef b = e->b;
  const LLVMTypeRef f = wide ? e->f64 : e->f32, t = ccn__e_memory(e, to),
                    w = to == CCN__I64 ? e->i64 : e->i32;
  const ccn__v lowest = ccn__e_float(e, f, range[to].lowest), end = ccn__e_float(e, f, range[to].end);
  ccn__v c = choose(e, LLVMBuildFCmp(b, LLVMRealOGE, x, lowest, ""), x, lowest);
  c = choose(e, LLVMBuildFCmp(b, LLVMRealOLT, c, end, ""), c, ccn__e_float(e, f, 0));
  ccn__v r = LLVMBuildFPToSI(b, c, ccn__e_type(e, w), "");
  if (t != w) r = LLVMBuildTrunc(b, r, ccn__e_type(e, t), "");
  r = choose(e, LLVMBuildFCmp(b, LLVMRealOGE, x, end, ""), ccn__e_int(e, t, range[to].max), r);
  return choose(e, LLVMBuildFCmp(b, LLVMRealORD, x, x, ""), r, ccn__e_int(e, t, 0));
}

static ccn__v float_cast(ccn__emit *e, ccn__dtype to, ccn__dtype from, ccn__v x) {
  const bool wide = from == CCN__F64;
  if (to == CCN__F64) return wide ? x : LLVMBuildFPExt(e->b, x, ccn__e_type(e, e->f64), "");
  if (to == CCN__F32) return wide ? LLVMBuildFPTrunc(e->b, x, ccn__e_type(e, e->f32), "") : x;
  if (to == CCN__F16 || to == CCN__BF16) return ccn__e_round(e, to, wide ? to_odd(e, x) : x);
  if (to == CCN__BOOL)
    return LLVMBuildFCmp(e->b, LLVMRealUNE, x, ccn__e_float(e, wide ? e->f64 : e->f32, 0), "");
  return float_to_int(e, to, wide, x);
}

static ccn__v int_to_float(ccn__emit *e, ccn__dtype to, ccn__dtype from, ccn__v x) {
  const bool narrow = to == CCN__F16 || to == CCN__BF16, large = from == CCN__I64 || from == CCN__I32;
  if (narrow && from == CCN__I64 && to == CCN__BF16) return ccn__e_round(e, to, to_odd(e, i64_to_odd(e, x)));
  const LLVMTypeRef f = ccn__e_type(e, to == CCN__F64 || (narrow && large) ? e->f64 : e->f32);
  const ccn__v y = from == CCN__U8 ? LLVMBuildUIToFP(e->b, x, f, "") : LLVMBuildSIToFP(e->b, x, f, "");
  if (!narrow) return y;
  return ccn__e_round(e, to, large ? to_odd(e, y) : y);
}

ccn__v ccn__e_cast(ccn__emit *e, ccn__dtype to, ccn__dtype from, ccn__v x) {
  if (to == from) return x;
  if (ccn__dtype_is_float(from)) return float_cast(e, to, from, x);
  if (from == CCN__BOOL) {
    const LLVMTypeRef t = ccn__e_type(e, ccn__e_scalar(e, to));
    return ccn__dtype_is_float(to) ? LLVMBuildUIToFP(e->b, x, t, "") : LLVMBuildZExt(e->b, x, t, "");
  }
  if (to == CCN__BOOL) return compare(e, LLVMIntNE, x, ccn__e_int(e, ccn__e_memory(e, from), 0));
  if (ccn__dtype_is_float(to)) return int_to_float(e, to, from, x);
  const LLVMTypeRef t = ccn__e_type(e, ccn__e_memory(e, to));
  const size_t wide = ccn__dtype_size(to), was = ccn__dtype_size(from);
  if (wide == was) return x;
  if (wide < was) return LLVMBuildTrunc(e->b, x, t, "");
  return from == CCN__U8 ? LLVMBuildZExt(e->b, x, t, "") : LLVMBuildSExt(e->b, x, t, "");
}
