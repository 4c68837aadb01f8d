/* num.c: dtypes, the conversions between them, single elements, and the nodes of the sum tree.
 *
 * The loops are written so that a compiler vectorises them on any x86-64 or ARM (no F16C needed): f16 is done
 * with integer operations and, for its denormals, with float additions that are exact or round where the
 * definition rounds. They assume round-to-nearest and no flush to zero, as all of CCN does. Best compiled
 * with -O3 -fno-trapping-math: without it gcc leaves the f16 loops scalar; the results are the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "num.h"

#include <math.h>
#include <string.h>

/* ---- the dtype table --------------------------------------------------------------------------------- */

typedef struct dtype_row {
  const char *name;
  uint8_t bytes, cls, acc;
} dtype_row;

static const dtype_row rows[CCN__DTYPE_COUNT] = {
#define DTYPE(id, name, bytes, cls, acc) {name, bytes, CCN__CLASS_##cls, CCN__##acc},
#include "dtype.def"
#undef DTYPE
};

const char *ccn__dtype_name(ccn__dtype t) { return rows[t].name; }
size_t ccn__dtype_size(ccn__dtype t) { return rows[t].bytes; }
ccn__dclass ccn__dtype_class(ccn__dtype t) { return (ccn__dclass)rows[t].cls; }
ccn__dtype ccn__dtype_acc(ccn__dtype t) { return (ccn__dtype)rows[t].acc; }

bool ccn__dtype_find(const char *name, ccn__dtype *out) {
  for (unsigned t = 0; t < CCN__DTYPE_COUNT; t++) {
    if (strcmp(rows[t].name, name) == 0) {
      *out = (ccn__dtype)t;
      return true;
    }
  }
  return false;
}

/* A binary float format holds another when it has at least its exponent and its fraction bits. (E4M3's
 * exponent range is one binade longer than IEEE's for 4 bits; every wider row holds that too.) */
static unsigned exponent_bits(ccn__dtype t) {
  switch (t) {
  case CCN__F64: return 11;
  case CCN__F32:
  case CCN__BF16: return 8;
  case CCN__F16:
  case CCN__F8E5M2: return 5;
  case CCN__F8E4M3: return 4;
  default: return 0;
  }
}

static unsigned fraction_bits(ccn__dtype t) {
  switch (t) {
  case CCN__F64: return 52;
  case CCN__F32: return 23;
  case CCN__F16: return 10;
  case CCN__BF16: return 7;
  case CCN__F8E4M3: return 3;
  case CCN__F8E5M2: return 2;
  default: return 0;
  }
}

bool ccn__dtype_widens(ccn__dtype from, ccn__dtype to) {
  return from != to && ccn__dtype_is_float(from) && ccn__dtype_is_float(to) &&
         exponent_bits(to) >= exponent_bits(from) && fraction_bits(to) >= fraction_bits(from);
}

/* ---- one value --------------------------------------------------------------------------------------- */

static inline uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static inline float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* Comparisons of signed numbers and masks instead of selects where they do: baseline SSE2 has no others. */
static inline float from_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  const int32_t a = h & 0x7fff;
  int32_t r = (a << 13) + (112 << 23);                /* rebias the exponent: 127 - 15 */
  r += a >= 0x7c00 ? 112 << 23 : 0;                   /* inf, NaN: to the top */
  r |= a > 0x7c00 ? 0x00400000 : 0;                   /* quiet, as the hardware instructions do */
  const uint32_t tiny = bits_of((float)a * 0x1p-24f); /* exact: zero and denormals */
  return float_of(sign | (a < 0x0400 ? tiny : (uint32_t)r));
}

static inline uint16_t to_f16(float x) {
  const uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000u;
  const int32_t a = (int32_t)(u & 0x7fffffffu);
  /* normal: rebias, add just under half a unit, one more when the kept part is odd; a carry is right too */
  int32_t r = (a - (112 << 23) + 0x0fff + ((a >> 13) & 1)) >> 13;
  /* below 2^-14: 1/2's unit is 2^-24, f16's smallest step, so this addition rounds where f16 does */
  const int32_t tiny = (int32_t)(bits_of(float_of((uint32_t)a) + 0.5f) - 0x3f000000u);
  r = a < 0x38800000 ? tiny : r;
  r = a >= 0x47800000 ? 0x7c00 : r; /* 65536 and more: infinity, as what rounds up to it */
  r = a > 0x7f800000 ? 0x7e00 | ((a >> 13) & 0x03ff) : r;
  return (uint16_t)(sign | (uint32_t)r);
}

static inline float from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }

static inline uint16_t to_bf16(float x) {
  const uint32_t u = bits_of(x);
  uint32_t r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  r = (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x0040u : r;
  return (uint16_t)r;
}

/* x rounded to f32 to odd: the inexact neighbour with the last bit set. f32 has more than two bits to spare
 * over f16 and bf16 in all their range, so rounding that to nearest equals rounding x once (Boldo and
 * Melquiond, "When double rounding is odd", 2005). Got from the nearest: an even inexact result is one step
 * from the odd one. */
static inline float to_odd(double x) {
  const float y = (float)x;
  const double ya = fabs((double)y), xa = fabs(x);
  uint32_t u = bits_of(y);
  const uint32_t even = ~u & 1u;
  u += even & (uint32_t)(ya < xa);
  u -= even & (uint32_t)(ya > xa);
  return float_of(u);
}

/* The same for i64 → f64, for magnitudes that f64 does not hold: 11 low bits become one sticky bit. */
static inline double i64_to_odd(int64_t x) {
  uint64_t a = x < 0 ? 0u - (uint64_t)x : (uint64_t)x;
  if (a >> 53) a = (a & ~(uint64_t)0x7ff) | (uint64_t)((a & 0x7ff) != 0) << 11;
  return x < 0 ? -(double)a : (double)a;
}

/* Float → integer: truncated, saturated, NaN → 0. END is the first float beyond the maximum; clamped first,
 * so that the cast is defined and needs no branch. W: the integer that the machine converts to. */
#define SATURATE(name, T, W, F, LOWEST, END, MAX) \
  static inline T name(F x) { \
    F c = x >= (F)(LOWEST) ? x : (F)(LOWEST); \
    c = c < (F)(END) ? c : (F)0; \
    T r = (T)(W)c; \
    r = x >= (F)(END) ? (MAX) : r; \
    return x == x ? r : (T)0; \
  }
#define SATURATE_BOTH(ID, T, W, LOWEST, END, MAX) \
  SATURATE(ID##_from_f64, T, W, double, LOWEST, END, MAX) \
  SATURATE(ID##_from_f32, T, W, float, LOWEST, END, MAX)
SATURATE_BOTH(I64, int64_t, int64_t, -0x1p63, 0x1p63, INT64_MAX)
SATURATE_BOTH(I32, int32_t, int32_t, -0x1p31, 0x1p31, INT32_MAX)
SATURATE_BOTH(I16, int16_t, int32_t, -0x1p15, 0x1p15, INT16_MAX)
SATURATE_BOTH(I8, int8_t, int32_t, -0x1p7, 0x1p7, INT8_MAX)
SATURATE_BOTH(U8, uint8_t, int32_t, 0, 0x1p8, UINT8_MAX)

float ccn__f16_to_f32(uint16_t h) { return from_f16(h); }
uint16_t ccn__f32_to_f16(float x) { return to_f16(x); }
uint16_t ccn__f64_to_f16(double x) { return to_f16(to_odd(x)); }
float ccn__bf16_to_f32(uint16_t h) { return from_bf16(h); }
uint16_t ccn__f32_to_bf16(float x) { return to_bf16(x); }
uint16_t ccn__f64_to_bf16(double x) { return to_bf16(to_odd(x)); }

/* ---- arrays: one loop a pair of dtypes --------------------------------------------------------------- */

/* In place (equal pointers) there is no dependence between iterations; a compiler would otherwise take its
 * scalar path. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* not every loop can be vectorised, nor is at -O0 */
#define ANY_ORDER _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ANY_ORDER _Pragma("GCC ivdep")
#else
#define ANY_ORDER
#endif

#define LOOP(TO, T, FROM, F, EXPR) \
  static void FROM##_to_##TO(void *out, const void *in, size_t n) { \
    const F *a = in; \
    T *o = out; \
    ANY_ORDER \
    for (size_t i = 0; i < n; i++) { \
      const F x = a[i]; \
      o[i] = (EXPR); \
    } \
  }

/* One column: F64E, F32E, ... give the value of an element x of that source; I16, I8, U8 and bool are exact
 * in f32. */
#define COLUMN(TO, T, F64E, F32E, F16E, BF16E, I64E, I32E, SMALLE, BOOLE) \
  LOOP(TO, T, F64, double, F64E) \
  LOOP(TO, T, F32, float, F32E) \
  LOOP(TO, T, F16, uint16_t, F16E) \
  LOOP(TO, T, BF16, uint16_t, BF16E) \
  LOOP(TO, T, I64, int64_t, I64E) \
  LOOP(TO, T, I32, int32_t, I32E) \
  LOOP(TO, T, I16, int16_t, SMALLE) \
  LOOP(TO, T, I8, int8_t, SMALLE) \
  LOOP(TO, T, U8, uint8_t, SMALLE) \
  LOOP(TO, T, BOOL, uint8_t, BOOLE)

#define TO_INT(TO, T) \
  COLUMN(TO, T, TO##_from_f64(x), TO##_from_f32(x), TO##_from_f32(from_f16(x)), TO##_from_f32(from_bf16(x)), \
         (T)x, (T)x, (T)x, (T)(x != 0))

COLUMN(F64, double, x, (double)x, (double)from_f16(x), (double)from_bf16(x), (double)x, (double)x, (double)x,
       (double)(x != 0))
COLUMN(F32, float, (float)x, x, from_f16(x), from_bf16(x), (float)x, (float)x, (float)x, (float)(x != 0))
/* i64 → f16: what rounds on the way to f64 is far beyond f16's range; to bf16 it is not */
COLUMN(F16, uint16_t, to_f16(to_odd(x)), to_f16(x), x, to_f16(from_bf16(x)), to_f16(to_odd((double)x)),
       to_f16(to_odd((double)x)), to_f16((float)x), to_f16((float)(x != 0)))
COLUMN(BF16, uint16_t, to_bf16(to_odd(x)), to_bf16(x), to_bf16(from_f16(x)), x,
       to_bf16(to_odd(i64_to_odd(x))), to_bf16(to_odd((double)x)), to_bf16((float)x),
       to_bf16((float)(x != 0)))
TO_INT(I64, int64_t)
TO_INT(I32, int32_t)
TO_INT(I16, int16_t)
TO_INT(I8, int8_t)
TO_INT(U8, uint8_t)
COLUMN(BOOL, uint8_t, x != 0, x != 0, (x & 0x7fff) != 0, (x & 0x7fff) != 0, x != 0, x != 0, x != 0, x != 0)

typedef void convert_fn(void *out, const void *in, size_t n);

#define ROW(FROM) \
  [CCN__##FROM] = { \
    [CCN__F64] = FROM##_to_F64,   [CCN__F32] = FROM##_to_F32, [CCN__F16] = FROM##_to_F16, \
    [CCN__BF16] = FROM##_to_BF16, [CCN__I64] = FROM##_to_I64, [CCN__I32] = FROM##_to_I32, \
    [CCN__I16] = FROM##_to_I16,   [CCN__I8] = FROM##_to_I8,   [CCN__U8] = FROM##_to_U8, \
    [CCN__BOOL] = FROM##_to_BOOL, \
  }
static convert_fn *const table[CCN__DTYPE_COUNT][CCN__DTYPE_COUNT] = {
  ROW(F64), ROW(F32), ROW(F16), ROW(BF16), ROW(I64), ROW(I32), ROW(I16), ROW(I8), ROW(U8), ROW(BOOL),
};

void ccn__convert(ccn__dtype to, void *out, ccn__dtype from, const void *in, size_t n) {
  if (n == 0) return;                  /* the pointers may be NULL */
  if (to == from && to != CCN__BOOL) { /* bool has a loop: a byte of a file may be neither 0 nor 1 */
    if (out != in) memcpy(out, in, n * rows[to].bytes);
    return;
  }
  convert_fn *f = table[from][to];
  if (f) f(out, in, n); /* none for reserved names: they have no elements */
}

/* ---- one element ------------------------------------------------------------------------------------- */

/* By way of a local: the element's address need not be aligned. */
double ccn__load_f64(ccn__dtype t, const void *p) {
  uint64_t element = 0;
  double x = 0;
  memcpy(&element, p, rows[t].bytes);
  ccn__convert(CCN__F64, &x, t, &element, 1);
  return x;
}

int64_t ccn__load_i64(ccn__dtype t, const void *p) {
  uint64_t element = 0;
  int64_t x = 0;
  memcpy(&element, p, rows[t].bytes);
  ccn__convert(CCN__I64, &x, t, &element, 1);
  return x;
}

void ccn__store_f64(ccn__dtype t, void *p, double x) {
  uint64_t element = 0;
  ccn__convert(t, &element, CCN__F64, &x, 1);
  memcpy(p, &element, rows[t].bytes);
}

void ccn__store_i64(ccn__dtype t, void *p, int64_t x) {
  uint64_t element = 0;
  ccn__convert(t, &element, CCN__I64, &x, 1);
  memcpy(p, &element, rows[t].bytes);
}

/* ---- the sum tree ------------------------------------------------------------------------------------ */

uint32_t ccn__tree_cover(uint64_t a, uint64_t b, ccn__tree_node out[CCN__TREE_MAX]) {
  uint32_t count = 0;
  while (a < b) {
    /* the largest node that starts at a and ends by b; its parent starts earlier or ends later */
    uint8_t level = 0;
    while (level < 63 && !(a >> level & 1) && b - a >= (uint64_t)2 << level) level++;
    out[count++] = (ccn__tree_node){a, level};
    a += (uint64_t)1 << level;
  }
  return count;
}
