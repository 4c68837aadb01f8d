/* emit_math.c: the functions of math.def: each instruction of a list becomes one of LLVM's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

enum { MOST = 256 };

static LLVMTypeRef type_of(const ccn__emit *e, uint8_t type) {
  switch (type) {
  case CCN__MATH_T_F32: return e->f32;
  case CCN__MATH_T_F64: return e->f64;
  case CCN__MATH_T_I32: return e->i32;
  case CCN__MATH_T_I64: return e->i64;
  default: return e->i1;
  }
}

static bool is_float(uint8_t type) { return type == CCN__MATH_T_F32 || type == CCN__MATH_T_F64; }

/* A constant by its bits. */
static ccn__v constant(ccn__emit *e, const ccn__math_ins *i) {
  const bool narrow = i->type == CCN__MATH_T_F32 || i->type == CCN__MATH_T_I32;
  const ccn__v bits = ccn__e_int(e, narrow ? e->i32 : e->i64, narrow ? i->imm.i32 : i->imm.i64);
  return is_float(i->type) ? LLVMConstBitCast(bits, ccn__e_type(e, type_of(e, i->type))) : bits;
}

static ccn__v table(ccn__emit *e, uint32_t n) {
  const ccn__math_table *t = &ccn__math_tables[n];
  if (e->table[n]) return e->table[n];
  ccn__v value[1024];
  for (uint32_t i = 0; i < t->count && i < CCN__COUNT(value); i++) {
    uint64_t bits;
    memcpy(&bits, &t->value[i], sizeof bits);
    value[i] = LLVMConstBitCast(LLVMConstInt(e->i64, bits, 0), e->f64);
  }
  const LLVMTypeRef type = LLVMArrayType2(e->f64, t->count);
  const ccn__v g = LLVMAddGlobal(e->module, type, "table");
  LLVMSetInitializer(g, LLVMConstArray2(e->f64, value, t->count));
  LLVMSetGlobalConstant(g, 1);
  LLVMSetLinkage(g, LLVMInternalLinkage);
  LLVMSetAlignment(g, 8);
  return e->table[n] = g;
}

static ccn__v look_up_one(ccn__emit *e, ccn__v t, ccn__v index) {
  ccn__v i[1] = {index};
  const ccn__v x = LLVMBuildLoad2(e->b, e->f64, LLVMBuildGEP2(e->b, e->f64, t, i, 1, ""), "");
  LLVMSetAlignment(x, 8);
  return x;
}

static ccn__v look_up(ccn__emit *e, const ccn__math_ins *ins, ccn__v index) {
  const ccn__v t = table(e, ins->imm.i32);
  const uint64_t mask = ccn__math_tables[ins->imm.i32].count - 1;
  const ccn__v at = LLVMBuildAnd(e->b, index, ccn__e_int(e, e->i64, mask), "");
  if (e->lanes == 1) return look_up_one(e, t, at);
  ccn__v r = LLVMGetPoison(ccn__e_type(e, e->f64));
  for (unsigned i = 0; i < e->lanes; i++) {
    const ccn__v lane = LLVMConstInt(e->i32, i, 0);
    r = LLVMBuildInsertElement(e->b, r, look_up_one(e, t, LLVMBuildExtractElement(e->b, at, lane, "")), lane,
                               "");
  }
  return r;
}

static ccn__v step(ccn__emit *e, const ccn__math_ins *i, ccn__v a, ccn__v b, ccn__v c) {
  LLVMBuilderRef l = e->b;
  const bool f = is_float(i->type);
  const LLVMTypeRef t = ccn__e_type(e, type_of(e, i->type));
  switch ((ccn__math_op)i->op) {
  case CCN__MATH_OP_ADD: return f ? LLVMBuildFAdd(l, a, b, "") : LLVMBuildAdd(l, a, b, "");
  case CCN__MATH_OP_SUB: return f ? LLVMBuildFSub(l, a, b, "") : LLVMBuildSub(l, a, b, "");
  case CCN__MATH_OP_MUL: return LLVMBuildFMul(l, a, b, "");
  case CCN__MATH_OP_DIV: return LLVMBuildFDiv(l, a, b, "");
  case CCN__MATH_OP_LT: return LLVMBuildFCmp(l, LLVMRealOLT, a, b, "");
  case CCN__MATH_OP_EQ:
    return f ? LLVMBuildFCmp(l, LLVMRealOEQ, a, b, "") : LLVMBuildICmp(l, LLVMIntEQ, a, b, "");
  case CCN__MATH_OP_AND: return LLVMBuildAnd(l, a, b, "");
  case CCN__MATH_OP_OR: return LLVMBuildOr(l, a, b, "");
  case CCN__MATH_OP_XOR: return LLVMBuildXor(l, a, b, "");
  case CCN__MATH_OP_SHL: return LLVMBuildShl(l, a, ccn__e_int(e, type_of(e, i->type), i->imm.i32), "");
  case CCN__MATH_OP_SHR: return LLVMBuildLShr(l, a, ccn__e_int(e, type_of(e, i->type), i->imm.i32), "");
  case CCN__MATH_OP_SEL: return LLVMBuildSelect(l, a, b, c, "");
  case CCN__MATH_OP_CAST: return LLVMBuildBitCast(l, a, t, "");
  case CCN__MATH_OP_CVT:
    return i->type == CCN__MATH_T_F64 ? LLVMBuildFPExt(l, a, t, "") : LLVMBuildFPTrunc(l, a, t, "");
  default: return look_up(e, i, a);
  }
}

ccn__v ccn__e_math(ccn__emit *e, const ccn__math_fn *f, ccn__v a, ccn__v b) {
  ccn__v v[MOST];
  for (uint32_t i = 0; i < f->count && i < MOST; i++) {
    const ccn__math_ins *ins = &f->code[i];
    if (ins->op == CCN__MATH_OP_ARG) v[i] = ins->imm.i32 ? b : a;
    else if (ins->op == CCN__MATH_OP_CONST) v[i] = constant(e, ins);
    else v[i] = step(e, ins, v[ins->a], v[ins->b], v[ins->c]);
  }
  return v[f->count - 1];
}
