/* math.h: exp, log, tanh, ... as data: each function is a short list of instructions (math.def) that the
 * interpreter walks here and the code generators walk later, so that every engine has the same bits.
 *
 * Instructions are IEEE operations (+ - * /, compare), integer and bit operations, selects, conversions and
 * small tables: nothing that one target fuses or approximates. No fma, no libm. Two NaNs count as the same
 * value: no list depends on the sign or payload of a NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_MATH_H
#define CCN_LANG_MATH_H

#include "kernels.h"
#include "num.h"

typedef enum ccn__math_id {
  CCN__MATH_EXP,
  CCN__MATH_LOG,
  CCN__MATH_TANH,
  CCN__MATH_SIGMOID,
  CCN__MATH_ERF,
  CCN__MATH_SIN,
  CCN__MATH_COS,
  CCN__MATH_POW,
  CCN__MATH_GELU, /* x·Φ(x) with erf */
  CCN__MATH_SILU, /* x·sigmoid(x) */
  CCN__MATH_LOG1P,
  CCN__MATH_EXPM1,
  CCN__MATH_COUNT
} ccn__math_id;

/* ---- the instruction format -------------------------------------------------------------------------------
 * A list is in single assignment: instruction number i defines value number i, its operands a, b, c are
 * numbers of earlier instructions, and the value of the last instruction is the result. No control flow:
 * every instruction is executed for every element, and SEL chooses. */

/* Types of values. Masks are what compares give and SEL takes: all ones or all zeros in registers of that
 * width (a code generator may hold both as i1). */
typedef enum ccn__math_type {
  CCN__MATH_T_F32,
  CCN__MATH_T_F64,
  CCN__MATH_T_I32, /* bits: wraps, shifts are logical */
  CCN__MATH_T_I64,
  CCN__MATH_T_M32, /* mask that belongs to F32 and I32 */
  CCN__MATH_T_M64  /* mask that belongs to F64 and I64 */
} ccn__math_type;

/* `type` of an instruction is the type of its value, except for LT, EQ: there it is the type of the
 * operands, and the value is the mask of that width. */
typedef enum ccn__math_op {
  CCN__MATH_OP_ARG,   /* argument number imm.i32 */
  CCN__MATH_OP_CONST, /* imm, read as `type` says: F32 .f32, F64 .f64, I32 .i32, I64 .i64; no masks */
  CCN__MATH_OP_ADD,   /* a + b; F round to nearest even (denormals kept), I wrap */
  CCN__MATH_OP_SUB,   /* a - b; likewise */
  CCN__MATH_OP_MUL,   /* a * b; F only */
  CCN__MATH_OP_DIV,   /* a / b; F only, correctly rounded */
  CCN__MATH_OP_LT,    /* a < b; F only, false when one is NaN */
  CCN__MATH_OP_EQ,    /* a == b; F (-0 == 0, NaN != NaN) or I */
  CCN__MATH_OP_AND,   /* a & b; I or M */
  CCN__MATH_OP_OR,    /* a | b */
  CCN__MATH_OP_XOR,   /* a ^ b */
  CCN__MATH_OP_SHL,   /* a << imm.i32, 0 < imm < width; I only */
  CCN__MATH_OP_SHR,   /* a >> imm.i32, zeros come in; I only */
  CCN__MATH_OP_SEL,   /* a ? b : c; a: the mask of the width of `type` (F or I) */
  CCN__MATH_OP_CAST,  /* the bits of a as `type`, F <-> I of one width */
  CCN__MATH_OP_CVT,   /* F32 -> F64 exactly, or F64 -> F32 to nearest even (with overflow and denormals) */
  CCN__MATH_OP_TABLE, /* tables[imm.i32][a mod count]; a is I64, the value F64 */
  CCN__MATH_OP_COUNT
} ccn__math_op;

typedef union ccn__math_imm {
  float f32;
  double f64;
  uint32_t i32;
  uint64_t i64;
} ccn__math_imm;

typedef struct ccn__math_ins {
  uint8_t op;       /* ccn__math_op */
  uint8_t type;     /* ccn__math_type */
  uint16_t a, b, c; /* operands; 0 where the op has fewer */
  ccn__math_imm imm;
} ccn__math_ins;

typedef struct ccn__math_table {
  const double *value;
  uint32_t count; /* a power of two */
} ccn__math_table;

typedef struct ccn__math_fn {
  ccn__math_id id;
  ccn__dtype dtype; /* of arguments and result: CCN__F32 or CCN__F64 */
  uint32_t arity;   /* 1 or 2 */
  uint32_t count;   /* instructions */
  const ccn__math_ins *code;
} ccn__math_fn;

/* No list has more values alive at once (constants not counted), the result of an instruction and its
 * operands included. The test of math.c checks it, and the types of all operands. */
enum { CCN__MATH_LIVE_MAX = 16 };

extern const ccn__math_table ccn__math_tables[];
extern const uint32_t ccn__math_table_count;

/* ---- use ----------------------------------------------------------------------------------------------- */

const char *ccn__math_name(ccn__math_id id);
/* The recipe for F32 or F64; NULL where there is none (f64 lacks erf, sin, cos, pow, gelu). */
const ccn__math_fn *ccn__math_find(ccn__math_id id, ccn__dtype t);
/* The list of which elementwise function k is made for t; NULL: it is no such function. */
const ccn__math_fn *ccn__math_of_kernel(ccn__kernel_id k, ccn__dtype t);
/* How many operands the op has (0 to 3) and the type of the instruction's value. */
uint32_t ccn__math_operands(ccn__math_op op);
ccn__math_type ccn__math_value_type(const ccn__math_ins *i);
/* out[i] = f(a[i]) or f(a[i], b[i]) (b NULL for unary ones); n elements of the recipe's dtype; out may be a
 * or b. */
void ccn__math_eval(const ccn__math_fn *f, void *out, const void *a, const void *b, size_t n);

#endif
