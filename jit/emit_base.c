/* emit_base.c: types, constants, addresses and counted loops of the host emitter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

LLVMTypeRef ccn__e_type(const ccn__emit *e, LLVMTypeRef scalar) {
  return e->lanes > 1 ? LLVMVectorType(scalar, e->lanes) : scalar;
}

LLVMTypeRef ccn__e_scalar(const ccn__emit *e, ccn__dtype t) {
  switch (t) {
  case CCN__F64: return e->f64;
  case CCN__F32:
  case CCN__F16:
  case CCN__BF16: return e->f32;
  case CCN__BOOL: return e->i1;
  default: return ccn__e_memory(e, t);
  }
}

LLVMTypeRef ccn__e_memory(const ccn__emit *e, ccn__dtype t) {
  switch (t) {
  case CCN__F64: return e->f64;
  case CCN__F32: return e->f32;
  case CCN__F16:
  case CCN__BF16:
  case CCN__I16: return e->i16;
  case CCN__I64: return e->i64;
  case CCN__I32: return e->i32;
  default: return e->i8;
  }
}

static ccn__v const_splat(const ccn__emit *e, ccn__v c) {
  ccn__v all[64];
  if (e->lanes == 1) return c;
  for (unsigned i = 0; i < e->lanes; i++) all[i] = c;
  return LLVMConstVector(all, e->lanes);
}

ccn__v ccn__e_splat(const ccn__emit *e, ccn__v scalar) {
  if (e->lanes == 1) return scalar;
  if (LLVMIsConstant(scalar) && (LLVMIsAConstantInt(scalar) || LLVMIsAConstantFP(scalar)))
    return const_splat(e, scalar);
  const LLVMTypeRef v = LLVMVectorType(LLVMTypeOf(scalar), e->lanes);
  const ccn__v one = LLVMBuildInsertElement(e->b, LLVMGetPoison(v), scalar, LLVMConstInt(e->i32, 0, 0), "");
  return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(v), LLVMConstNull(LLVMVectorType(e->i32, e->lanes)),
                                "");
}

ccn__v ccn__e_int(const ccn__emit *e, LLVMTypeRef scalar, uint64_t x) {
  return const_splat(e, LLVMConstInt(scalar, x, 0));
}

/* By bits, so that signed zeros and NaNs are what they are. */
ccn__v ccn__e_float(const ccn__emit *e, LLVMTypeRef scalar, double x) {
  return const_splat(e, LLVMConstReal(scalar, x));
}

ccn__v ccn__e_i64(const ccn__emit *e, int64_t x) { return LLVMConstInt(e->i64, (uint64_t)x, 1); }

ccn__v ccn__e_bits(const ccn__emit *e, ccn__v x, LLVMTypeRef scalar) {
  return LLVMBuildBitCast(e->b, x, ccn__e_type(e, scalar), "");
}

ccn__v ccn__e_call(ccn__emit *e, const char *intrinsic, LLVMTypeRef overload, ccn__v *args, unsigned n) {
  const unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
  const ccn__v f = LLVMGetIntrinsicDeclaration(e->module, id, &overload, 1);
  return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->context, id, &overload, 1), f, args, n, "");
}

static ccn__v word(ccn__emit *e, ccn__v table, LLVMTypeRef type, ccn__v index) {
  const ccn__v p = LLVMBuildGEP2(e->b, e->i64, table, &index, 1, "");
  const ccn__v x = LLVMBuildLoad2(e->b, type, p, "");
  LLVMSetAlignment(x, 8);
  return x;
}

ccn__v ccn__e_number(ccn__emit *e, uint32_t number) {
  return word(e, e->numbers, e->i64, ccn__e_i64(e, number));
}

ccn__v ccn__e_ptr(ccn__emit *e, ccn__v index) { return word(e, e->ptrs, e->ptr, index); }

ccn__v ccn__e_at(ccn__emit *e, ccn__v base, ccn__v index, uint64_t item) {
  const ccn__v bytes = item == 1 ? index : LLVMBuildMul(e->b, index, ccn__e_i64(e, (int64_t)item), "");
  ccn__v i[1] = {bytes};
  return LLVMBuildGEP2(e->b, e->i8, base, i, 1, "");
}

LLVMBasicBlockRef ccn__e_block(ccn__emit *e) { return LLVMAppendBasicBlockInContext(e->context, e->fn, ""); }

void ccn__e_loop(ccn__emit *e, ccn__eloop *o, ccn__v from, ccn__v to, int64_t step) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  o->head = ccn__e_block(e);
  o->body = ccn__e_block(e);
  o->exit = ccn__e_block(e);
  o->step = step;
  LLVMBuildBr(e->b, o->head);
  LLVMPositionBuilderAtEnd(e->b, o->head);
  o->x = LLVMBuildPhi(e->b, e->i64, "");
  LLVMAddIncoming(o->x, &from, &before, 1);
  const ccn__v left = LLVMBuildSub(e->b, to, o->x, "");
  const ccn__v more = LLVMBuildICmp(e->b, LLVMIntSGE, left, ccn__e_i64(e, step), "");
  LLVMBuildCondBr(e->b, more, o->body, o->exit);
  LLVMPositionBuilderAtEnd(e->b, o->body);
}

void ccn__e_loop_end(ccn__emit *e, ccn__eloop *o) {
  LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
  ccn__v next = LLVMBuildAdd(e->b, o->x, ccn__e_i64(e, o->step), "");
  LLVMAddIncoming(o->x, &next, &last, 1);
  LLVMBuildBr(e->b, o->head);
  LLVMPositionBuilderAtEnd(e->b, o->exit);
}
