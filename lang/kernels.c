/* kernels.c: the elementwise operations on contiguous blocks, one loop an (operation, dtype), and the table
 * of them.
 *
 * Every loop is branch-free inside where the operation allows it, so that the compiler vectorises it; the
 * width of the vectors never shows in the bits. Best compiled with -O3 -fno-math-errno -fno-trapping-math:
 * without them gcc leaves square roots and selects between computed floats scalar; they change no result. Of
 * libm only fmod and floor are called, which are exact. Round-to-nearest and no flush to zero are assumed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <math.h>
#include <string.h>

#include "math.h"

typedef size_t kernel_fn(void *out, const void *a, const void *b, const void *c, size_t n);

/* The dtypes by class: X(dtype, C type, unsigned type in which the machine computes it without overflow) */
#define FLOATS(X) X(F64, double, uint64_t) X(F32, float, uint32_t)
#define SIGNED(X) \
  X(I64, int64_t, uint64_t) X(I32, int32_t, uint32_t) X(I16, int16_t, uint32_t) X(I8, int8_t, uint32_t)
#define INTS(X) SIGNED(X) X(U8, uint8_t, uint32_t)
#define NUMBERS(X) FLOATS(X) INTS(X)

/* Where out equals an operand no iteration depends on another; a compiler would else take its scalar path. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* not every loop can be vectorised, nor is at -O0 */
#define ANY_ORDER _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ANY_ORDER _Pragma("GCC ivdep")
#else
#define ANY_ORDER
#endif

#define UNARY(K, ID, IN, OUT, EXPR) \
  static size_t K##_##ID(void *out, const void *pa, const void *pb, const void *pc, size_t n) { \
    const IN *a = pa; \
    OUT *o = out; \
    (void)pb, (void)pc; \
    ANY_ORDER \
    for (size_t i = 0; i < n; i++) { \
      const IN x = a[i]; \
      o[i] = (OUT)(EXPR); \
    } \
    return n; \
  }

#define BINARY(K, ID, IN, OUT, EXPR) \
  static size_t K##_##ID(void *out, const void *pa, const void *pb, const void *pc, size_t n) { \
    const IN *a = pa, *b = pb; \
    OUT *o = out; \
    (void)pc; \
    ANY_ORDER \
    for (size_t i = 0; i < n; i++) { \
      const IN x = a[i], y = b[i]; \
      o[i] = (OUT)(EXPR); \
    } \
    return n; \
  }

/* Stops at the first divisor that is zero. */
#define DIVISION(K, ID, IN, EXPR) \
  static size_t K##_##ID(void *out, const void *pa, const void *pb, const void *pc, size_t n) { \
    const IN *a = pa, *b = pb; \
    IN *o = out; \
    (void)pc; \
    for (size_t i = 0; i < n; i++) { \
      const IN x = a[i], y = b[i]; \
      if (y == 0) return i; \
      o[i] = (EXPR); \
    } \
    return n; \
  }

/* ---- arithmetic -------------------------------------------------------------------------------------- */

#define X(ID, T, U) \
  BINARY(ADD, ID, T, T, x + y) \
  BINARY(SUB, ID, T, T, x - y) \
  BINARY(MUL, ID, T, T, (x * y)) \
  BINARY(DIV, ID, T, T, x / y) \
  UNARY(NEG, ID, T, T, -x)
FLOATS(X)
#undef X

#define X(ID, T, U) \
  BINARY(ADD, ID, T, T, (U)x + (U)y) \
  BINARY(SUB, ID, T, T, (U)x - (U)y) \
  BINARY(MUL, ID, T, T, ((U)x * (U)y)) \
  UNARY(NEG, ID, T, T, (U)0 - (U)x)
INTS(X)
#undef X

/* C truncates; the floor is one less where there is a remainder and the signs differ. The lowest integer by
 * -1 would trap, so -1 has its own case, where the quotient wraps. */
#define X(ID, T, U) \
  static inline T floordiv_##ID(T x, T y) { \
    if (y == -1) return (T)((U)0 - (U)x); \
    const T q = (T)(x / y), r = (T)(x % y); \
    return (T)(q - (r != 0 && (r < 0) != (y < 0))); \
  } \
  static inline T mod_##ID(T x, T y) { \
    if (y == -1) return 0; \
    const T r = (T)(x % y); \
    return (T)(r != 0 && (r < 0) != (y < 0) ? r + y : r); \
  } \
  DIVISION(FLOORDIV, ID, T, floordiv_##ID(x, y)) \
  DIVISION(MOD, ID, T, mod_##ID(x, y))
SIGNED(X)
#undef X
DIVISION(FLOORDIV, U8, uint8_t, (uint8_t)(x / y))
DIVISION(MOD, U8, uint8_t, (uint8_t)(x % y))

/* Floats as in Python and NumPy, so that // and % agree: floor(x / y) with its rounded quotient gives 1 //
 * 0.1 = 10 beside 1 % 0.1 = 0.0999... A remainder of 0 has the divisor's sign. (x - r) / y is an integer but
 * for rounding; where it is no integer the nearest one is meant. */
#define X(ID, T, FMOD, FLOOR_OF, COPYSIGN) \
  static inline T mod_##ID(T x, T y) { \
    const T r = FMOD(x, y); \
    if (r == 0) return COPYSIGN((T)0, y); \
    return (r < 0) != (y < 0) ? r + y : r; /* NaN: either */ \
  } \
  static inline T floordiv_##ID(T x, T y) { \
    if (y == 0) return x / y; \
    const T r = FMOD(x, y); \
    T q = (x - r) / y; \
    if (r != 0 && (r < 0) != (y < 0)) q -= 1; \
    if (q == 0) return COPYSIGN((T)0, x / y); \
    const T f = FLOOR_OF(q); \
    return q - f > (T)0.5 ? f + 1 : f; \
  } \
  BINARY(FLOORDIV, ID, T, T, floordiv_##ID(x, y)) \
  BINARY(MOD, ID, T, T, mod_##ID(x, y))
X(F64, double, fmod, floor, copysign)
X(F32, float, fmodf, floorf, copysignf)
#undef X

/* ---- maximum, minimum, abs, sign, relu --------------------------------------------------------------- */

/* Equal operands differ at most in the sign of zero: "and" of the bits is +0 if either is, "or" -0. The first
 * NaN is the result, so that its bits do not depend on how a compiler orders the operands. */
#define X(ID, T, U) \
  static inline U bits_##ID(T x) { \
    U u; \
    memcpy(&u, &x, sizeof u); \
    return u; \
  } \
  static inline T from_bits_##ID(U u) { \
    T x; \
    memcpy(&x, &u, sizeof x); \
    return x; \
  } \
  static inline T maximum_##ID(T x, T y) { \
    const U r = bits_##ID(x > y ? x : y) & (bits_##ID(x) | (x == y ? 0 : ~(U)0)); \
    return x != x ? x : from_bits_##ID(r); \
  } \
  static inline T minimum_##ID(T x, T y) { \
    const U r = bits_##ID(x < y ? x : y) | (bits_##ID(x) & (x == y ? ~(U)0 : 0)); \
    return x != x ? x : from_bits_##ID(r); \
  } \
  BINARY(MAXIMUM, ID, T, T, maximum_##ID(x, y)) \
  BINARY(MINIMUM, ID, T, T, minimum_##ID(x, y)) \
  UNARY(SIGN, ID, T, T, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x) \
  UNARY(RELU, ID, T, T, x <= 0 ? 0 : x)
FLOATS(X)
#undef X
UNARY(ABS, F64, double, double, fabs(x))
UNARY(ABS, F32, float, float, fabsf(x))

#define X(ID, T, U) \
  BINARY(MAXIMUM, ID, T, T, x > y ? x : y) \
  BINARY(MINIMUM, ID, T, T, x < y ? x : y)
INTS(X)
#undef X
#define X(ID, T, U) \
  UNARY(ABS, ID, T, T, x < 0 ? (U)0 - (U)x : (U)x) \
  UNARY(SIGN, ID, T, T, (x > 0) - (x < 0)) \
  UNARY(RELU, ID, T, T, x > 0 ? x : 0)
SIGNED(X)
#undef X
UNARY(ABS, U8, uint8_t, uint8_t, x)
UNARY(SIGN, U8, uint8_t, uint8_t, x != 0)
UNARY(RELU, U8, uint8_t, uint8_t, x)

/* ---- rounding to integers, roots ------------------------------------------------------------------------
 * Adding and subtracting 2^23 (2^52) rounds to an integer, ties to even, what is smaller than that; anything
 * larger is one. The sign is put back because the result -0 of a negative operand would else be +0. In every
 * instruction set this vectorises, unlike calls of rint and floor for plain x86-64. */
#define X(ID, T, BIG, FABS, COPYSIGN, ROOT) \
  static inline T round_##ID(T x) { \
    const T a = FABS(x), r = (a + (T)(BIG)) - (T)(BIG); \
    return a < (T)(BIG) ? COPYSIGN(r, x) : x; /* NaN: x */ \
  } \
  static inline T floor_##ID(T x) { \
    const T r = round_##ID(x), d = r - 1; \
    return r > x ? d : r; \
  } \
  static inline T ceil_##ID(T x) { \
    const T r = round_##ID(x), u = r + 1; \
    return COPYSIGN(r < x ? u : r, x); /* -1 + 1 */ \
  } \
  UNARY(ROUND, ID, T, T, round_##ID(x)) \
  UNARY(FLOOR, ID, T, T, floor_##ID(x)) \
  UNARY(CEIL, ID, T, T, ceil_##ID(x)) \
  UNARY(SQRT, ID, T, T, ROOT(x)) \
  UNARY(RSQRT, ID, T, T, 1 / ROOT(x)) \
  UNARY(ISNAN, ID, T, uint8_t, x != x) \
  UNARY(ISINF, ID, T, uint8_t, FABS(x) == (T)INFINITY) \
  UNARY(ISFINITE, ID, T, uint8_t, FABS(x) < (T)INFINITY)
X(F64, double, 0x1p52, fabs, copysign, sqrt)
X(F32, float, 0x1p23, fabsf, copysignf, sqrtf)
#undef X

/* ---- comparisons, logic, selection ----------------------------------------------------------------------
 * A bool is a byte; anything but 0 counts as true, so a byte from a hostile file does no harm. */

#define X(ID, T, U) \
  BINARY(LT, ID, T, uint8_t, x < y) \
  BINARY(LE, ID, T, uint8_t, x <= y) \
  BINARY(GT, ID, T, uint8_t, x > y) \
  BINARY(GE, ID, T, uint8_t, x >= y) \
  BINARY(EQ, ID, T, uint8_t, x == y) \
  BINARY(NE, ID, T, uint8_t, x != y)
NUMBERS(X)
#undef X

#define LOGIC(K, EXPR) BINARY(K, BOOL, uint8_t, uint8_t, EXPR)
LOGIC(LT, (x == 0) & (y != 0))
LOGIC(LE, (x == 0) | (y != 0))
LOGIC(GT, (x != 0) & (y == 0))
LOGIC(GE, (x != 0) | (y == 0))
LOGIC(EQ, (x != 0) == (y != 0))
LOGIC(NE, (x != 0) != (y != 0))
LOGIC(AND, (x != 0) & (y != 0))
LOGIC(OR, (x != 0) | (y != 0))
LOGIC(MAXIMUM, (x != 0) | (y != 0))
LOGIC(MINIMUM, (x != 0) & (y != 0))
UNARY(NOT, BOOL, uint8_t, uint8_t, x == 0)

#define WHERE(ID, T, EXPR) \
  static size_t WHERE_##ID(void *out, const void *pa, const void *pb, const void *pc, size_t n) { \
    const uint8_t *a = pa; \
    const T *b = pb, *c = pc; \
    T *o = out; \
    ANY_ORDER \
    for (size_t i = 0; i < n; i++) { \
      const T x = b[i], y = c[i]; \
      o[i] = EXPR; \
    } \
    return n; \
  }
#define X(ID, T, U) WHERE(ID, T, a[i] ? x : y)
NUMBERS(X)
#undef X
WHERE(BOOL, uint8_t, ((a[i] != 0) & (x != 0)) | ((a[i] == 0) & (y != 0)))

/* ---- the table --------------------------------------------------------------------------------------- */

#define F_(K) [CCN__F64] = K##_F64, [CCN__F32] = K##_F32
#define I_(K) \
  [CCN__I64] = K##_I64, [CCN__I32] = K##_I32, [CCN__I16] = K##_I16, [CCN__I8] = K##_I8, [CCN__U8] = K##_U8
#define B_(K) [CCN__BOOL] = K##_BOOL
#define ON_FLOATS(K) [CCN__K_##K] = {F_(K)}
#define ON_NUMBERS(K) [CCN__K_##K] = {F_(K), I_(K)}
#define ON_ALL(K) [CCN__K_##K] = {F_(K), I_(K), B_(K)}
#define ON_BOOL(K) [CCN__K_##K] = {B_(K)}

/* clang-format off */
static kernel_fn *const table[CCN__K_COUNT][CCN__DTYPE_COUNT] = {
  ON_NUMBERS(ADD), ON_NUMBERS(SUB), ON_NUMBERS(MUL), ON_FLOATS(DIV), ON_NUMBERS(FLOORDIV), ON_NUMBERS(MOD),
  ON_ALL(MAXIMUM), ON_ALL(MINIMUM),
  ON_ALL(LT), ON_ALL(LE), ON_ALL(GT), ON_ALL(GE), ON_ALL(EQ), ON_ALL(NE),
  ON_BOOL(AND), ON_BOOL(OR), ON_BOOL(NOT),
  ON_NUMBERS(NEG), ON_NUMBERS(ABS), ON_NUMBERS(SIGN), ON_NUMBERS(RELU),
  ON_FLOATS(FLOOR), ON_FLOATS(CEIL), ON_FLOATS(ROUND), ON_FLOATS(SQRT), ON_FLOATS(RSQRT),
  ON_FLOATS(ISNAN), ON_FLOATS(ISINF), ON_FLOATS(ISFINITE),
  ON_ALL(WHERE),
};
/* clang-format on */

size_t ccn__kernel(ccn__kernel_id k, ccn__dtype t, void *out, const void *a, const void *b, const void *c,
                   size_t n) {
  kernel_fn *f = table[k][t];
  if (f) return f(out, a, b, c, n);
  const ccn__math_fn *m = ccn__math_of_kernel(k, t);
  if (!m) return 0; /* callers ask ccn__kernel_exists first */
  ccn__math_eval(m, out, a, b, n);
  return n;
}

bool ccn__kernel_exists(ccn__kernel_id k, ccn__dtype t) { return table[k][t] || ccn__math_of_kernel(k, t); }
