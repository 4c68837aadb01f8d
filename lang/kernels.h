/* kernels.h: the elementwise operations on contiguous blocks: one C loop an (operation, dtype).
 * f16 and bf16 never come here: the interpreter widens to f32 and rounds the result.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_KERNELS_H
#define CCN_LANG_KERNELS_H

#include "num.h"

typedef enum ccn__kernel_id {
  /* dtype in → same dtype out */
  CCN__K_ADD,
  CCN__K_SUB,
  CCN__K_MUL,
  CCN__K_DIV,
  CCN__K_FLOORDIV,
  CCN__K_MOD,
  CCN__K_POW,
  CCN__K_MAXIMUM,
  CCN__K_MINIMUM,
  /* dtype in → bool out */
  CCN__K_LT,
  CCN__K_LE,
  CCN__K_GT,
  CCN__K_GE,
  CCN__K_EQ,
  CCN__K_NE,
  /* bool, bool → bool */
  CCN__K_AND,
  CCN__K_OR,
  CCN__K_NOT,
  /* unary, same dtype */
  CCN__K_NEG,
  CCN__K_ABS,
  CCN__K_SIGN,
  CCN__K_FLOOR,
  CCN__K_CEIL,
  CCN__K_ROUND,
  CCN__K_SQRT,
  CCN__K_RSQRT,
  CCN__K_EXP,
  CCN__K_LOG,
  CCN__K_TANH,
  CCN__K_SIGMOID,
  CCN__K_ERF,
  CCN__K_SIN,
  CCN__K_COS,
  CCN__K_RELU,
  CCN__K_GELU,
  CCN__K_SILU,
  CCN__K_LOG1P,
  CCN__K_EXPM1,
  /* unary, float → bool */
  CCN__K_ISNAN,
  CCN__K_ISINF,
  CCN__K_ISFINITE,
  /* where(cond: bool, x, y): a = cond, b = x, c = y */
  CCN__K_WHERE,
  CCN__K_COUNT
} ccn__kernel_id;

/* out[i] = op(a[i], b[i], c[i]), n contiguous elements; t is the dtype of the operands (of x and y for where, BOOL
 * for and/or/not), one of F64 F32 I64 I32 I16 I8 U8 BOOL. Unused operands are NULL; out may equal an operand of the
 * same size. Semantics: language reference, "operations"; integers wrap, // floors, % takes the divisor's sign
 * (for floats x - floor(x/y)*y computed as fmod with the sign corrected), maximum/minimum: NaN wins, -0 < +0;
 * relu(NaN) = NaN; sign(±0) = 0 and sign(NaN) = NaN; round to even; rsqrt = 1/sqrt with two roundings.
 * Returns n, or the index of the first element at which it failed (integer // or % by zero; CCN0606). */
size_t ccn__kernel(ccn__kernel_id k, ccn__dtype t, void *out, const void *a, const void *b, const void *c,
                   size_t n);
/* Whether the table has this pair (f64 of erf, sin, ... may be missing; integers have no exp, ...). */
bool ccn__kernel_exists(ccn__kernel_id k, ccn__dtype t);

#endif
