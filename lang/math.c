/* math.c: the lists of math.def as constant arrays, and the interpreter that walks them.
 *
 * The interpreter runs one instruction over a block of elements before the next one, so that each instruction
 * is a loop the compiler vectorises. Values live in a few slots on the stack, reused after the last use of a
 * value, so that a block stays in the first-level cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math.h"

#include <string.h>

enum { MAX_VALUES = 256 };

/* ---- math.def, three times ----------------------------------------------------------------------------- */

/* clang-format off */
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define VALUE(name) CAT(FN, name)
#define IMM_F32(v) {.f32 = (v)}
#define IMM_F64(v) {.f64 = (v)}
#define IMM_I32(v) {.i32 = (v)}
#define IMM_I64(v) {.i64 = (v)}

/* 1: the numbers of the values, e.g. exp_f32_x = 0, and of the tables. */
enum {
#define MATH_TABLE(name, n, ...) CCN__MATH_TABLE_##name,
#define MATH_FN(ID, T, arity)
#define MATH_END
#define I0(name, OP, T, v)
#define I1(name, OP, T, a, v)
#define I2(name, OP, T, a, b)
#define I3(name, OP, T, a, b, c)
#include "math.def"
  TABLE_COUNT
};
#define MATH_TABLE(name, n, ...)
#define MATH_FN(ID, T, arity) enum {
#define MATH_END \
  VALUE(count) \
  }; \
  _Static_assert((int)VALUE(count) <= (int)MAX_VALUES, "list too long");
#define I0(name, OP, T, v) VALUE(name),
#define I1(name, OP, T, a, v) VALUE(name),
#define I2(name, OP, T, a, b) VALUE(name),
#define I3(name, OP, T, a, b, c) VALUE(name),
#include "math.def"

/* 2: the instructions. */
#define MATH_TABLE(name, n, ...) static const double table_##name[n] = {__VA_ARGS__};
#define MATH_FN(ID, T, arity) static const ccn__math_ins VALUE(code)[VALUE(count)] = {
#define MATH_END };
#define ROW(OP, T, a, b, c, v) {CCN__MATH_OP_##OP, CCN__MATH_T_##T, a, b, c, v},
#define I0(name, OP, T, v) ROW(OP, T, 0, 0, 0, v)
#define I1(name, OP, T, a, v) ROW(OP, T, VALUE(a), 0, 0, v)
#define I2(name, OP, T, a, b) ROW(OP, T, VALUE(a), VALUE(b), 0, IMM_I64(0))
#define I3(name, OP, T, a, b, c) ROW(OP, T, VALUE(a), VALUE(b), VALUE(c), IMM_I64(0))
#include "math.def"

/* 3: the tables of functions and of tables. */
static const ccn__math_fn functions[] = {
#define MATH_TABLE(name, n, ...)
#define MATH_FN(ID, T, arity) {CCN__MATH_##ID, CCN__##T, arity, VALUE(count), VALUE(code)},
#define MATH_END
#define I0(name, OP, T, v)
#define I1(name, OP, T, a, v)
#define I2(name, OP, T, a, b)
#define I3(name, OP, T, a, b, c)
#include "math.def"
};
const ccn__math_table ccn__math_tables[] = {
#define MATH_TABLE(name, n, ...) {table_##name, n},
#define MATH_FN(ID, T, arity)
#define MATH_END
#define I0(name, OP, T, v)
#define I1(name, OP, T, a, v)
#define I2(name, OP, T, a, b)
#define I3(name, OP, T, a, b, c)
#include "math.def"
};
const uint32_t ccn__math_table_count = TABLE_COUNT;
/* clang-format on */

const char *ccn__math_name(ccn__math_id id) {
  static const char *const names[] = {"exp", "log", "tanh", "sigmoid", "erf",   "sin",
                                      "cos", "pow", "gelu", "silu",    "log1p", "expm1"};
  _Static_assert(sizeof names / sizeof names[0] == CCN__MATH_COUNT, "a name for each function");
  return names[id];
}

const ccn__math_fn *ccn__math_find(ccn__math_id id, ccn__dtype t) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (functions[i].id == id && functions[i].dtype == t) return &functions[i];
  return NULL;
}

const ccn__math_fn *ccn__math_of_kernel(ccn__kernel_id k, ccn__dtype t) {
  static const struct {
    uint8_t kernel, math;
  } pairs[] = {
#define PAIR(K) {CCN__K_##K, CCN__MATH_##K}
    PAIR(POW), PAIR(EXP), PAIR(LOG),  PAIR(TANH), PAIR(SIGMOID), PAIR(ERF),
    PAIR(SIN), PAIR(COS), PAIR(GELU), PAIR(SILU), PAIR(LOG1P),   PAIR(EXPM1),
#undef PAIR
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (pairs[i].kernel == k) return ccn__math_find((ccn__math_id)pairs[i].math, t);
  return NULL;
}

uint32_t ccn__math_operands(ccn__math_op op) {
  switch (op) {
  case CCN__MATH_OP_ARG:
  case CCN__MATH_OP_CONST: return 0;
  case CCN__MATH_OP_SHL:
  case CCN__MATH_OP_SHR:
  case CCN__MATH_OP_CAST:
  case CCN__MATH_OP_CVT:
  case CCN__MATH_OP_TABLE: return 1;
  case CCN__MATH_OP_SEL: return 3;
  default: return 2;
  }
}

ccn__math_type ccn__math_value_type(const ccn__math_ins *i) {
  bool narrow = i->type == CCN__MATH_T_F32 || i->type == CCN__MATH_T_I32;
  switch (i->op) {
  case CCN__MATH_OP_LT:
  case CCN__MATH_OP_EQ: return narrow ? CCN__MATH_T_M32 : CCN__MATH_T_M64;
  default: return (ccn__math_type)i->type;
  }
}

/* ---- the interpreter ----------------------------------------------------------------------------------- */

enum { SLOT_BYTES = 2048 };

typedef union slot { /* one value for each element of a block */
  float f32[SLOT_BYTES / 4];
  double f64[SLOT_BYTES / 8];
  uint32_t i32[SLOT_BYTES / 4];
  uint64_t i64[SLOT_BYTES / 8];
} slot;

/* Which slot holds each value. A slot is free again after the last use of its value, but never before the
 * result of that instruction has its own, so that a result and its operands do not overlap. Constants have
 * none. */
static void place(const ccn__math_fn *f, uint8_t slot_of[MAX_VALUES]) {
  uint8_t last[MAX_VALUES], free_slot[CCN__MATH_LIVE_MAX];
  uint8_t used = 0, free_count = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    const ccn__math_ins *ins = &f->code[i];
    uint32_t operands = ccn__math_operands((ccn__math_op)ins->op);
    last[i] = (uint8_t)i;
    if (operands > 0) last[ins->a] = (uint8_t)i;
    if (operands > 1) last[ins->b] = (uint8_t)i;
    if (operands > 2) last[ins->c] = (uint8_t)i;
  }
  for (uint32_t i = 0; i < f->count; i++) {
    const ccn__math_ins *ins = &f->code[i];
    slot_of[i] = 0;
    if (ins->op == CCN__MATH_OP_CONST) continue;
    slot_of[i] = free_count > 0 ? free_slot[--free_count] : used++;
    const uint16_t operand[3] = {ins->a, ins->b, ins->c};
    uint32_t operands = ccn__math_operands((ccn__math_op)ins->op);
    for (uint32_t k = 0; k < operands; k++) {
      uint16_t v = operand[k];
      if (f->code[v].op == CCN__MATH_OP_CONST || last[v] != i) continue;
      if ((k > 0 && v == operand[0]) || (k > 1 && v == operand[1])) continue;
      free_slot[free_count++] = slot_of[v];
    }
  }
}

/* clang-format off */
#define ON(OP, T) case CCN__MATH_OP_##OP * 8 + CCN__MATH_T_##T
#define EACH(member, value) \
  for (uint32_t i = 0; i < n; i++) r->member[i] = (value)
#define CHOOSE(mask, x, y) (((mask) & (x)) | (~(mask) & (y)))
/* Constant operands stay scalars: ca says that a is one, ka is its value. */
#define BINARY(m, op) \
  if (ca) EACH(m, ka.m op b->m[i]); \
  else if (cb) EACH(m, a->m[i] op kb.m); \
  else EACH(m, a->m[i] op b->m[i]); \
  break
#define COMPARE(m, mask, ones, op) \
  if (ca) EACH(mask, ka.m op b->m[i] ? ones : 0); \
  else if (cb) EACH(mask, a->m[i] op kb.m ? ones : 0); \
  else EACH(mask, a->m[i] op b->m[i] ? ones : 0); \
  break
#define SELECT(m) \
  if (cb && cc) EACH(m, CHOOSE(a->m[i], kb.m, kc.m)); \
  else if (cb) EACH(m, CHOOSE(a->m[i], kb.m, c->m[i])); \
  else if (cc) EACH(m, CHOOSE(a->m[i], b->m[i], kc.m)); \
  else EACH(m, CHOOSE(a->m[i], b->m[i], c->m[i])); \
  break
/* clang-format on */

/* One instruction over n elements. */
static void step(const ccn__math_ins *code, const ccn__math_ins *ins, uint32_t n, slot *restrict r,
                 const slot *restrict a, const slot *restrict b, const slot *restrict c) {
  const ccn__math_ins *ia = &code[ins->a], *ib = &code[ins->b], *ic = &code[ins->c];
  const bool ca = ia->op == CCN__MATH_OP_CONST, cb = ib->op == CCN__MATH_OP_CONST,
             cc = ic->op == CCN__MATH_OP_CONST;
  const ccn__math_imm ka = ia->imm, kb = ib->imm, kc = ic->imm;
  const uint32_t by = ins->imm.i32;
  /* clang-format off */
  switch (ins->op * 8 + ins->type) {
    ON(ADD, F32): BINARY(f32, +);
    ON(ADD, F64): BINARY(f64, +);
    ON(ADD, I32): BINARY(i32, +);
    ON(ADD, I64): BINARY(i64, +);
    ON(SUB, F32): BINARY(f32, -);
    ON(SUB, F64): BINARY(f64, -);
    ON(SUB, I32): BINARY(i32, -);
    ON(SUB, I64): BINARY(i64, -);
    ON(MUL, F32): BINARY(f32, *);
    ON(MUL, F64): BINARY(f64, *);
    ON(DIV, F32): BINARY(f32, /);
    ON(DIV, F64): BINARY(f64, /);
    ON(LT, F32): COMPARE(f32, i32, UINT32_MAX, <);
    ON(LT, F64): COMPARE(f64, i64, UINT64_MAX, <);
    ON(EQ, F32): COMPARE(f32, i32, UINT32_MAX, ==);
    ON(EQ, F64): COMPARE(f64, i64, UINT64_MAX, ==);
    ON(EQ, I32): COMPARE(i32, i32, UINT32_MAX, ==);
    ON(EQ, I64): COMPARE(i64, i64, UINT64_MAX, ==);
    ON(AND, I32): ON(AND, M32): BINARY(i32, &);
    ON(AND, I64): ON(AND, M64): BINARY(i64, &);
    ON(OR, I32): ON(OR, M32): BINARY(i32, |);
    ON(OR, I64): ON(OR, M64): BINARY(i64, |);
    ON(XOR, I32): ON(XOR, M32): BINARY(i32, ^);
    ON(XOR, I64): ON(XOR, M64): BINARY(i64, ^);
    ON(SHL, I32): EACH(i32, a->i32[i] << by); break;
    ON(SHL, I64): EACH(i64, a->i64[i] << by); break;
    ON(SHR, I32): EACH(i32, a->i32[i] >> by); break;
    ON(SHR, I64): EACH(i64, a->i64[i] >> by); break;
    ON(SEL, F32): ON(SEL, I32): SELECT(i32);
    ON(SEL, F64): ON(SEL, I64): SELECT(i64);
    ON(CAST, F32): ON(CAST, I32): EACH(i32, a->i32[i]); break;
    ON(CAST, F64): ON(CAST, I64): EACH(i64, a->i64[i]); break;
    ON(CVT, F32): EACH(f32, (float)a->f64[i]); break;
    ON(CVT, F64): EACH(f64, (double)a->f32[i]); break;
    ON(TABLE, F64): {
      const double *value = ccn__math_tables[by].value;
      uint64_t mask = ccn__math_tables[by].count - 1;
      EACH(f64, value[a->i64[i] & mask]);
      break;
    }
    default: break; /* ARG, CONST */
  }
  /* clang-format on */
}

void ccn__math_eval(const ccn__math_fn *f, void *out, const void *a, const void *b, size_t n) {
  slot slots[CCN__MATH_LIVE_MAX];
  uint8_t slot_of[MAX_VALUES];
  place(f, slot_of);
  bool wide = false;
  for (uint32_t i = 0; i < f->count; i++) wide = wide || f->code[i].type == CCN__MATH_T_F64;
  const size_t size = f->dtype == CCN__F64 ? 8 : 4;
  const size_t block = SLOT_BYTES / (wide ? 8 : 4);
  const unsigned char *argument[2] = {a, b};
  unsigned char *result = out;
  for (size_t start = 0; start < n; start += block) {
    const size_t m = n - start < block ? n - start : block;
    for (uint32_t i = 0; i < f->count; i++) {
      const ccn__math_ins *ins = &f->code[i];
      slot *r = &slots[slot_of[i]];
      if (ins->op == CCN__MATH_OP_ARG) memcpy(r, argument[ins->imm.i32] + start * size, m * size);
      else if (ins->op != CCN__MATH_OP_CONST)
        step(f->code, ins, (uint32_t)m, r, &slots[slot_of[ins->a]], &slots[slot_of[ins->b]],
             &slots[slot_of[ins->c]]);
    }
    memcpy(result + start * size, &slots[slot_of[f->count - 1]], m * size);
  }
}
