/* test_kernels.c: every (operation, dtype) of the table against scalar references, in place and for every
 * tail. With --all the roundings also over all 2^32 f32 values. SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "math.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static uint64_t random_state = 1;
static uint64_t random_bits(void) { /* splitmix64 */
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static const char *const names[CCN__K_COUNT] = {
  "add",  "sub",   "mul",  "div",   "floordiv", "mod",   "pow",   "maximum",  "minimum", "lt",   "le",
  "gt",   "ge",    "eq",   "ne",    "and",      "or",    "not",   "neg",      "abs",     "sign", "floor",
  "ceil", "round", "sqrt", "rsqrt", "exp",      "log",   "tanh",  "sigmoid",  "erf",     "sin",  "cos",
  "relu", "gelu",  "silu", "log1p", "expm1",    "isnan", "isinf", "isfinite", "where",
};
static const ccn__dtype dtypes[] = {CCN__F64, CCN__F32, CCN__I64, CCN__I32,
                                    CCN__I16, CCN__I8,  CCN__U8,  CCN__BOOL};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static bool in(ccn__kernel_id k, ccn__kernel_id first, ccn__kernel_id last) {
  return k >= first && k <= last;
}
static bool is_math(ccn__kernel_id k) {
  return k == CCN__K_POW || (in(k, CCN__K_EXP, CCN__K_EXPM1) && k != CCN__K_RELU);
}
static ccn__math_id math_of(ccn__kernel_id k) {
  static const struct {
    ccn__kernel_id k;
    ccn__math_id m;
  } pairs[] = {
    {CCN__K_POW, CCN__MATH_POW},         {CCN__K_EXP, CCN__MATH_EXP},     {CCN__K_LOG, CCN__MATH_LOG},
    {CCN__K_TANH, CCN__MATH_TANH},       {CCN__K_ERF, CCN__MATH_ERF},     {CCN__K_SIN, CCN__MATH_SIN},
    {CCN__K_COS, CCN__MATH_COS},         {CCN__K_GELU, CCN__MATH_GELU},   {CCN__K_SILU, CCN__MATH_SILU},
    {CCN__K_SIGMOID, CCN__MATH_SIGMOID}, {CCN__K_LOG1P, CCN__MATH_LOG1P}, {CCN__K_EXPM1, CCN__MATH_EXPM1},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (pairs[i].k == k) return pairs[i].m;
  return CCN__MATH_COUNT;
}
static bool to_bool(ccn__kernel_id k) {
  return in(k, CCN__K_LT, CCN__K_NE) || in(k, CCN__K_ISNAN, CCN__K_ISFINITE) || in(k, CCN__K_AND, CCN__K_NOT);
}
static int operands(ccn__kernel_id k) { return k == CCN__K_WHERE ? 3 : k < CCN__K_NOT ? 2 : 1; }

/* Which pairs there are, as the header and the language reference say. */
static bool expected(ccn__kernel_id k, ccn__dtype t) {
  const bool f = t == CCN__F64 || t == CCN__F32, b = t == CCN__BOOL;
  if (t == CCN__F16 || t == CCN__BF16 || ccn__dtype_size(t) == 0) return false;
  if (is_math(k)) return f && ccn__math_find(math_of(k), t) != NULL;
  if (in(k, CCN__K_AND, CCN__K_NOT)) return b;
  if (in(k, CCN__K_LT, CCN__K_NE) || k == CCN__K_MAXIMUM || k == CCN__K_MINIMUM || k == CCN__K_WHERE)
    return true;
  if (k == CCN__K_DIV || in(k, CCN__K_FLOOR, CCN__K_RSQRT) || in(k, CCN__K_ISNAN, CCN__K_ISFINITE)) return f;
  return !b;
}

static void test_table(void) {
  bool good = true;
  for (int k = 0; k < CCN__K_COUNT; k++) {
    for (int t = 0; t < CCN__DTYPE_COUNT; t++) {
      if (ccn__kernel_exists((ccn__kernel_id)k, (ccn__dtype)t) !=
          expected((ccn__kernel_id)k, (ccn__dtype)t)) {
        printf("# %s of %s\n", names[k], ccn__dtype_name((ccn__dtype)t));
        good = false;
      }
    }
  }
  ok(good, "exactly the pairs of the reference exist");
}

/* ---- references -------------------------------------------------------------------------------------- */

typedef union element {
  double f64;
  float f32;
  int64_t i64;
  int32_t i32;
  int16_t i16;
  int8_t i8;
  uint8_t u8;
  uint64_t bits;
} element;

static int64_t int_of(ccn__dtype t, element e) {
  switch (t) {
  case CCN__I64: return e.i64;
  case CCN__I32: return e.i32;
  case CCN__I16: return e.i16;
  case CCN__I8: return e.i8;
  case CCN__U8: return e.u8;
  default: return e.u8 != 0;
  }
}

/* floor(x / y), from the remainder's side: the largest q with q·y on the right side of x */
static int64_t floor_quotient(int64_t x, int64_t y) {
  if (x == INT64_MIN && y == -1) return INT64_MIN;
  int64_t q = x / y;
  while ((y > 0 && (long double)q * (long double)y > (long double)x) ||
         (y < 0 && (long double)q * (long double)y < (long double)x))
    q--;
  return q;
}

/* Integers and bool, in 64 bits; the caller keeps the low bytes. false: not defined there (division by zero).
 * */
static bool int_reference(ccn__kernel_id k, int64_t x, int64_t y, int64_t z, int64_t *out) {
  const uint64_t a = (uint64_t)x, b = (uint64_t)y;
  uint64_t r = 0;
  switch ((int)k) {
  case CCN__K_ADD: r = a + b; break;
  case CCN__K_SUB: r = a - b; break;
  case CCN__K_MUL: r = a * b; break;
  case CCN__K_FLOORDIV:
  case CCN__K_MOD:
    if (y == 0) return false;
    r = (uint64_t)floor_quotient(x, y);
    if (k == CCN__K_MOD) r = a - r * b;
    break;
  case CCN__K_MAXIMUM: r = x < y ? b : a; break;
  case CCN__K_MINIMUM: r = x < y ? a : b; break;
  case CCN__K_LT: r = x < y; break;
  case CCN__K_LE: r = x <= y; break;
  case CCN__K_GT: r = x > y; break;
  case CCN__K_GE: r = x >= y; break;
  case CCN__K_EQ: r = x == y; break;
  case CCN__K_NE: r = x != y; break;
  case CCN__K_AND: r = x && y; break;
  case CCN__K_OR: r = x || y; break;
  case CCN__K_NOT: r = !x; break;
  case CCN__K_NEG: r = 0 - a; break;
  case CCN__K_ABS: r = x < 0 ? 0 - a : a; break;
  case CCN__K_SIGN: r = x < 0 ? (uint64_t)-1 : x > 0; break;
  case CCN__K_RELU: r = x < 0 ? 0 : a; break;
  case CCN__K_WHERE: r = x ? b : (uint64_t)z; break;
  default: return false;
  }
  memcpy(out, &r, sizeof r);
  return true;
}

/* F32 and F64, each with its own arithmetic; comparisons and tests give 0 or 1. */
#define FLOAT_REFERENCE(T, s) \
  static T reference_##T(ccn__kernel_id k, T x, T y) { \
    volatile T r = 0; \
    T m; \
    switch ((int)k) { \
    case CCN__K_ADD: r = x + y; break; \
    case CCN__K_SUB: r = x - y; break; \
    case CCN__K_MUL: r = x * y; break; \
    case CCN__K_DIV: r = x / y; break; \
    case CCN__K_MOD: \
      m = fmod##s(x, y); \
      r = m == 0 ? copysign##s(0, y) : signbit(m) != signbit(y) ? m + y : m; \
      break; \
    case CCN__K_MAXIMUM: r = isnan(x) ? x : isnan(y) ? y : x > y || (x == y && signbit(y)) ? x : y; break; \
    case CCN__K_MINIMUM: r = isnan(x) ? x : isnan(y) ? y : x < y || (x == y && signbit(x)) ? x : y; break; \
    case CCN__K_LT: r = isless(x, y); break; \
    case CCN__K_LE: r = islessequal(x, y); break; \
    case CCN__K_GT: r = isgreater(x, y); break; \
    case CCN__K_GE: r = isgreaterequal(x, y); break; \
    case CCN__K_EQ: r = !isunordered(x, y) && !islessgreater(x, y); break; \
    case CCN__K_NE: r = isunordered(x, y) || islessgreater(x, y); break; \
    case CCN__K_NEG: r = copysign##s(x, signbit(x) ? 1 : -1); break; \
    case CCN__K_ABS: r = copysign##s(x, 1); break; \
    case CCN__K_SIGN: r = isnan(x) ? x : x == 0 ? 0 : copysign##s(1, x); break; \
    case CCN__K_FLOOR: r = floor##s(x); break; \
    case CCN__K_CEIL: r = ceil##s(x); break; \
    case CCN__K_ROUND: r = rint##s(x); break; \
    case CCN__K_SQRT: r = sqrt##s(x); break; \
    case CCN__K_RSQRT: \
      r = sqrt##s(x); \
      r = 1 / r; \
      break; \
    case CCN__K_RELU: r = isnan(x) ? x : fmax##s(x, 0) + 0; break; \
    case CCN__K_ISNAN: r = isnan(x) != 0; break; \
    case CCN__K_ISINF: r = isinf(x) != 0; break; \
    case CCN__K_ISFINITE: r = isfinite(x) != 0; break; \
    default: break; \
    } \
    return r; \
  }
FLOAT_REFERENCE(double, )
FLOAT_REFERENCE(float, f)

static bool same(ccn__dtype t, element a, element b) {
  if (memcmp(&a, &b, ccn__dtype_size(t)) == 0) return true;
  return t == CCN__F64 ? isnan(a.f64) && isnan(b.f64) : t == CCN__F32 && isnan(a.f32) && isnan(b.f32);
}

/* ---- operands ---------------------------------------------------------------------------------------- */

enum { N = 65536, ROOM = N * 8 };
static uint64_t a8[N], b8[N], c8[N], out8[N], place8[N]; /* aligned for any element */
static char *const a = (char *)a8, *const b = (char *)b8, *const c = (char *)c8, *const out = (char *)out8,
                   *const place = (char *)place8;

static element load(const void *p, size_t size) {
  element e = {.bits = 0};
  memcpy(&e, p, size);
  return e;
}

static element random_element(ccn__dtype t) {
  static const double special[] = {
    0,   -0.0,   1,         -1,     0.5,    1.5,    2.5,    -0.5,   -2.5,   3,     0.1,  INFINITY, -INFINITY,
    NAN, 0x1p22, 8388608.5, 0x1p23, 0x1p24, 0x1p51, 0x1p52, 0x1p53, 1e-310, 1e-40, 1e38, 1e308};
  element e = {.bits = random_bits()};
  const uint64_t how = random_bits() % 8;
  if (ccn__dtype_is_float(t)) {
    double x = special[random_bits() % (sizeof special / sizeof special[0])];
    if (how >= 6) return e; /* any pattern at all */
    if (how >= 3) x = ldexp((double)(e.i64 >> 20), -(int)(random_bits() % 80));
    else if (how == 2) x = ldexp((double)(e.i64 >> 44), -(int)(random_bits() % 12)); /* halves, quarters */
    if (t == CCN__F64) e.f64 = x;
    else e.f32 = (float)x;
  } else if (t == CCN__BOOL) {
    e.u8 = how < 4 ? 0 : how < 7 ? 1 : (uint8_t)e.bits; /* a byte of a file may be neither */
  } else if (how < 4) {                                 /* small ones, and the ends of the range */
    e.bits = random_bits() % 7 - 3;
    if (how == 0) e.bits += (uint64_t)1 << (8 * ccn__dtype_size(t) - 1);
  } else {
    e.bits >>= random_bits() % 64;
  }
  return e;
}

static void fill(ccn__dtype t, char *p, bool not_zero) {
  const size_t size = ccn__dtype_size(t);
  for (size_t i = 0; i < N; i++) {
    element e = random_element(t);
    while (not_zero && int_of(t, e) == 0) e = random_element(t);
    memcpy(p + i * size, &e, size);
  }
}

static void test_one(ccn__kernel_id k, ccn__dtype t) {
  const size_t size = ccn__dtype_size(t);
  const ccn__dtype result = to_bool(k) ? CCN__BOOL : t, first = k == CCN__K_WHERE ? CCN__BOOL : t;
  const size_t out_size = ccn__dtype_size(result), first_size = ccn__dtype_size(first);
  const int count = operands(k);
  const bool divides = !ccn__dtype_is_float(t) && (k == CCN__K_FLOORDIV || k == CCN__K_MOD);
  const void *pb = count > 1 ? b : NULL, *pc = count > 2 ? c : NULL;
  char name[100];
  fill(first, a, false);
  fill(t, b, divides);
  fill(t, c, false);
  if (size == 1 && count == 2) { /* all pairs */
    for (size_t i = 0; i < N; i++) a[i] = (char)(i >> 8), b[i] = (char)(i & 255 || !divides ? i & 255 : 1);
  }

  uint32_t bad = 0;
  bad += ccn__kernel(k, t, out, a, pb, pc, N) != N;
  for (size_t i = 0; i < N; i++) {
    const element x = load(a + i * first_size, first_size), y = load(b + i * size, size),
                  z = load(c + i * size, size);
    element want = {.bits = 0};
    const element got = load(out + i * out_size, out_size);
    if (k == CCN__K_WHERE && ccn__dtype_is_float(t)) {
      want = x.u8 ? y : z;
    } else if (ccn__dtype_is_float(t)) {
      if (k == CCN__K_FLOORDIV) continue; /* has its own test */
      if (t == CCN__F64) {
        want.f64 = reference_double(k, x.f64, y.f64);
        if (to_bool(k)) want.u8 = want.f64 != 0;
      } else {
        want.f32 = reference_float(k, x.f32, y.f32);
        if (to_bool(k)) want.u8 = want.f32 != 0;
      }
    } else {
      int64_t r = 0;
      bad += !int_reference(k, int_of(first, x), int_of(t, y), int_of(t, z), &r);
      want.i64 = r;
    }
    if (!same(result, want, got) && bad++ < 3) {
      printf("# %s %s: %llx, %llx gave %llx\n", names[k], ccn__dtype_name(t), (unsigned long long)x.bits,
             (unsigned long long)y.bits, (unsigned long long)got.bits);
    }
  }
  snprintf(name, sizeof name, "%s %s", names[k], ccn__dtype_name(t));
  ok(bad == 0, name);

  /* over each operand of the result's size, and over all of them at once */
  bad = 0;
  for (int which = 0; which < count; which++) {
    const size_t from = which == 0 ? first_size : size;
    if (from != out_size) continue;
    memcpy(place, which == 0 ? a : which == 1 ? b : c, N * from);
    ccn__kernel(k, t, place, which == 0 ? place : a, which == 1 ? place : pb, which == 2 ? place : pc, N);
    bad += memcmp(place, out, N * out_size) != 0;
  }
  for (size_t n = 0; n < 70; n++) { /* every tail, from elements that no vector is aligned to */
    memset(place, 0x5a, 80 * out_size);
    bad += ccn__kernel(k, t, place, a + first_size, count > 1 ? b + size : NULL, count > 2 ? c + size : NULL,
                       n) != n;
    bad += memcmp(place, out + out_size, n * out_size) != 0 || place[n * out_size] != 0x5a;
  }
  snprintf(name, sizeof name, "%s %s in place and in every length", names[k], ccn__dtype_name(t));
  ok(bad == 0, name);
}

static void test_all_kernels(void) {
  for (int k = 0; k < CCN__K_COUNT; k++) {
    for (size_t t = 0; t < DTYPES; t++) {
      if (!is_math((ccn__kernel_id)k) && expected((ccn__kernel_id)k, dtypes[t]))
        test_one((ccn__kernel_id)k, dtypes[t]);
    }
  }
}

/* ---- by hand ----------------------------------------------------------------------------------------- */

static void test_integer_division(void) {
  static const struct {
    int64_t x, y, quotient, remainder;
  } rows[] = {
    {7, 2, 3, 1},         {-7, 2, -4, 1},      {7, -2, -4, -1}, {-7, -2, 3, -1},  {6, 3, 2, 0},
    {-6, 3, -2, 0},       {6, -3, -2, 0},      {0, -5, 0, 0},   {1, 100, 0, 1},   {-1, 100, -1, 99},
    {1, -100, -1, -99},   {-1, -100, 0, -1},   {5, -1, -5, 0},  {127, 1, 127, 0}, {-128, 1, -128, 0},
    {-128, 127, -2, 126}, {127, -128, -1, -1},
  };
  static const ccn__dtype t[] = {CCN__I64, CCN__I32, CCN__I16, CCN__I8};
  bool good = true, lowest = true, zero = true;
  for (size_t d = 0; d < 4; d++) {
    element x, y, q, r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
      ccn__store_i64(t[d], &x, rows[i].x);
      ccn__store_i64(t[d], &y, rows[i].y);
      good &= ccn__kernel(CCN__K_FLOORDIV, t[d], &q, &x, &y, NULL, 1) == 1;
      good &= ccn__kernel(CCN__K_MOD, t[d], &r, &x, &y, NULL, 1) == 1;
      good &= ccn__load_i64(t[d], &q) == rows[i].quotient && ccn__load_i64(t[d], &r) == rows[i].remainder;
    }
    const int64_t min = (int64_t)(~(uint64_t)0 << (8 * ccn__dtype_size(t[d]) - 1));
    ccn__store_i64(t[d], &x, min);
    ccn__store_i64(t[d], &y, -1);
    ccn__kernel(CCN__K_FLOORDIV, t[d], &q, &x, &y, NULL, 1);
    ccn__kernel(CCN__K_MOD, t[d], &r, &x, &y, NULL, 1);
    lowest &= ccn__load_i64(t[d], &q) == min && ccn__load_i64(t[d], &r) == 0;
  }
  for (size_t d = 0; d < DTYPES; d++) {
    if (!ccn__dtype_is_int(dtypes[d])) continue;
    const size_t size = ccn__dtype_size(dtypes[d]);
    for (size_t at = 0; at < 40; at++) {
      for (size_t i = 0; i < 40; i++) {
        ccn__store_i64(dtypes[d], a + i * size, 100);
        ccn__store_i64(dtypes[d], b + i * size, i == at || i == at + 5 ? 0 : 3);
      }
      zero &= ccn__kernel(CCN__K_FLOORDIV, dtypes[d], out, a, b, NULL, 40) == at;
      zero &= ccn__kernel(CCN__K_MOD, dtypes[d], out, a, b, NULL, 40) == at;
    }
  }
  ok(good, "integer // floors, % has the divisor's sign");
  ok(lowest, "the lowest integer // -1 wraps to itself, % -1 is 0");
  ok(zero, "integer // and % by zero give the index of the first zero");
}

static void test_float_division(void) {
  /* what NumPy 1.24 gives: x, y, x // y, x % y */
  static const double rows64[][4] = {
    {1, 0x1.999999999999ap-4, 9, 0x1.9999999999996p-4},
    {-1, 0x1.999999999999ap-4, -10, 0x1p-54},
    {1, -0x1.999999999999ap-4, -10, -0x1p-54},
    {0x1.ep+2, -2, -4, -0x1p-1},
    {-0x1.ep+2, 2, -4, 0x1p-1},
    {0x1.ep+2, 2, 3, 0x1.8p+0},
    {-0x1.ep+2, -2, 3, -0x1.8p+0},
    {1, 0, INFINITY, NAN},
    {-1, 0, -INFINITY, NAN},
    {0, 0, NAN, NAN},
    {-1, INFINITY, -1, INFINITY},
    {1, INFINITY, 0, 1},
    {1, -INFINITY, -1, -INFINITY},
    {INFINITY, 2, NAN, NAN},
    {-0.0, 1, -0.0, 0},
    {0, -1, -0.0, -0.0},
    {6, 3, 2, 0},
    {-6, 3, -2, 0},
    {6, -3, -2, -0.0},
    {0x1.93e5939a08ceap+99, 0x1.4484bfeebc2ap-100, 0x1.3e9e4e4c2f344p+199, 0x1.296bc17abd58p-100},
    {0x0.0000000000001p-1022, 2, 0, 0x0.0000000000001p-1022},
    {-0x1.6d601ad376ab9p-150, 2, -1, 2},
    {NAN, 1, NAN, NAN},
    {1, NAN, NAN, NAN},
    {0x1.3333333333333p-2, 0x1.999999999999ap-4, 2, 0x1.9999999999998p-4},
    {0x1.c6bf52634p+49, 0x1.6666666666666p-1, 0x1.44d1cd225249p+50, 0x1.da905c3a1075p-2},
    {-0x1.c6bf52634p+49, 0x1.6666666666666p-1, -0x1.44d1cd2252494p+50, 0x1.e478e12578af8p-3},
    {0x1p+24, 3, 0x1.555554p+22, 1},
    {0x1.ff933c78cdfadp+127, 0x1.0624dd2f1a9fcp-10, 0x1.f395c90df926fp+137, 0x1.86ebe5afe704p-11},
    {0x1.3333333333333p-1, 0x1.999999999999ap-3, 2, 0x1.9999999999998p-3},
    {2, -0x1.999999999999ap-3, -10, -0x1p-53},
  };
  static const float rows32[][4] = {
    /* (x - r) / y rounds to just below the integer */
    {0x1.22033cp+18f, -0x1.47d296p+3f, -0x1.c4f4p+14f, -0x1.cd8ef8p+1f},
    {0x1.15f042p+19f, 0x1.1eb038p+3f, 0x1.f05ep+15f, 0x1.d2cb7p+2f},
    {1, 0x1.99999ap-4f, 9, 0x1.999996p-4f},
    {-1, 0x1.99999ap-4f, -10, 0x1p-26f},
    {1, -0x1.99999ap-4f, -10, -0x1p-26f},
    {0x1.ep+2f, -2, -4, -0x1p-1f},
    {-0x1.ep+2f, 2, -4, 0x1p-1f},
    {0x1.ep+2f, 2, 3, 0x1.8p+0f},
    {-0x1.ep+2f, -2, 3, -0x1.8p+0f},
    {1, 0, INFINITY, NAN},
    {-1, 0, -INFINITY, NAN},
    {0, 0, NAN, NAN},
    {-1, INFINITY, -1, INFINITY},
    {1, INFINITY, 0, 1},
    {1, -INFINITY, -1, -INFINITY},
    {INFINITY, 2, NAN, NAN},
    {-0.0, 1, -0.0, 0},
    {0, -1, -0.0, -0.0},
    {6, 3, 2, 0},
    {-6, 3, -2, 0},
    {6, -3, -2, -0.0},
    {0x1.93e594p+99f, 0x1.4484cp-100f, INFINITY, 0x1.09074p-100f},
    {0, 2, 0, 0},
    {-0x1p-149f, 2, -1, 2},
    {NAN, 1, NAN, NAN},
    {1, NAN, NAN, NAN},
    {0x1.333334p-2f, 0x1.99999ap-4f, 3, 0x1p-27f},
    {0x1.c6bf52p+49f, 0x1.666666p-1f, 0x1.44d1cep+50f, 0x1.59f982p-1f},
    {-0x1.c6bf52p+49f, 0x1.666666p-1f, -0x1.44d1cep+50f, 0x1.8d9c8p-6f},
    {0x1p+24f, 3, 0x1.555554p+22f, 1},
    {0x1.ff933cp+127f, 0x1.0624dep-10f, INFINITY, 0x1.ef6984p-11f},
    {0x1.333334p-1f, 0x1.99999ap-3f, 3, 0x1p-26f},
    {2, -0x1.99999ap-3f, -10, -0x1p-25f},
  };
  bool good = true;
  for (size_t i = 0; i < sizeof rows64 / sizeof rows64[0]; i++) {
    const double *r = rows64[i];
    element q, m;
    ccn__kernel(CCN__K_FLOORDIV, CCN__F64, &q, &r[0], &r[1], NULL, 1);
    ccn__kernel(CCN__K_MOD, CCN__F64, &m, &r[0], &r[1], NULL, 1);
    const bool row = same(CCN__F64, q, (element){.f64 = r[2]}) && same(CCN__F64, m, (element){.f64 = r[3]});
    if (!row) printf("# f64 %a %a gave %a %a\n", r[0], r[1], q.f64, m.f64);
    good &= row;
  }
  ok(good, "f64 // and % are NumPy's");
  good = true;
  for (size_t i = 0; i < sizeof rows32 / sizeof rows32[0]; i++) {
    const float *r = rows32[i];
    element q, m;
    ccn__kernel(CCN__K_FLOORDIV, CCN__F32, &q, &r[0], &r[1], NULL, 1);
    ccn__kernel(CCN__K_MOD, CCN__F32, &m, &r[0], &r[1], NULL, 1);
    const bool row = same(CCN__F32, q, (element){.f32 = r[2]}) && same(CCN__F32, m, (element){.f32 = r[3]});
    if (!row) printf("# f32 %a %a gave %a %a\n", (double)r[0], (double)r[1], (double)q.f32, (double)m.f32);
    good &= row;
  }
  ok(good, "f32 // and % are NumPy's");
  uint32_t bad = 0; /* small integers and halves: the quotient is exact, so is its floor */
  for (int x = -40; x <= 40; x++) {
    for (int y = -40; y <= 40; y++) {
      if (y == 0) continue;
      const float fx = (float)x / 2, fy = (float)y / 2;
      element q;
      ccn__kernel(CCN__K_FLOORDIV, CCN__F32, &q, &fx, &fy, NULL, 1);
      bad += q.f32 != (float)floor_quotient(x, y);
    }
  }
  ok(bad == 0, "f32 // of halves is the floor of the exact quotient");
}

static float unary(ccn__kernel_id k, float x) {
  float y;
  ccn__kernel(k, CCN__F32, &y, &x, NULL, NULL, 1);
  return y;
}

static float binary(ccn__kernel_id k, float x, float y) {
  float z;
  ccn__kernel(k, CCN__F32, &z, &x, &y, NULL, 1);
  return z;
}

static bool is(float x, float y) { return memcmp(&x, &y, sizeof x) == 0; }

static void test_rules(void) {
  const float nan = NAN;
  bool good = true;
  for (int k = CCN__K_MAXIMUM; k <= CCN__K_MINIMUM; k++) {
    const ccn__kernel_id m = (ccn__kernel_id)k;
    const float zero = m == CCN__K_MAXIMUM ? 0.0f : -0.0f;
    good &= isnan(binary(m, nan, 1)) && isnan(binary(m, 1, nan)) && isnan(binary(m, nan, INFINITY)) &&
            isnan(binary(m, -INFINITY, nan)) && isnan(binary(m, nan, nan));
    good &= is(binary(m, 0.0f, -0.0f), zero) && is(binary(m, -0.0f, 0.0f), zero);
    good &= is(binary(m, -0.0f, -0.0f), -0.0f) && is(binary(m, 0.0f, 0.0f), 0.0f);
  }
  ok(good, "maximum and minimum: NaN wins, -0 < +0");
  ok(isnan(unary(CCN__K_RELU, nan)) && is(unary(CCN__K_RELU, -0.0f), 0.0f) && is(unary(CCN__K_RELU, -3), 0) &&
       is(unary(CCN__K_RELU, 3), 3),
     "relu: NaN stays, -0 becomes +0");
  ok(isnan(unary(CCN__K_SIGN, nan)) && is(unary(CCN__K_SIGN, -0.0f), 0.0f) &&
       is(unary(CCN__K_SIGN, 0.0f), 0.0f) && is(unary(CCN__K_SIGN, -INFINITY), -1) &&
       is(unary(CCN__K_SIGN, 1e-40f), 1),
     "sign: of both zeros +0, NaN stays");
  ok(is(unary(CCN__K_ROUND, 0.5f), 0.0f) && is(unary(CCN__K_ROUND, 1.5f), 2) &&
       is(unary(CCN__K_ROUND, 2.5f), 2) && is(unary(CCN__K_ROUND, -0.5f), -0.0f) &&
       is(unary(CCN__K_ROUND, 8388607.5f), 8388608.0f) && is(unary(CCN__K_FLOOR, -0.25f), -1) &&
       is(unary(CCN__K_CEIL, -0.75f), -0.0f) && is(unary(CCN__K_FLOOR, -0.0f), -0.0f) &&
       is(unary(CCN__K_CEIL, INFINITY), INFINITY),
     "round to even, floor, ceil keep the sign of zero");
  ok(is(unary(CCN__K_RSQRT, 4), 0.5f) && is(unary(CCN__K_RSQRT, 0), INFINITY) &&
       is(unary(CCN__K_RSQRT, -0.0f), -INFINITY) && isnan(unary(CCN__K_SQRT, -1)),
     "roots of zeros and negatives");
}

/* Recipes are math.c's business; here only that each kernel is its recipe. */
static void test_math(void) {
  bool good = true;
  for (int k = 0; k < CCN__K_COUNT; k++) {
    for (size_t d = 0; d < 2; d++) {
      const ccn__kernel_id id = (ccn__kernel_id)k;
      if (!is_math(id) || !expected(id, dtypes[d])) continue;
      const size_t size = ccn__dtype_size(dtypes[d]);
      const void *second = id == CCN__K_POW ? b : NULL;
      fill(dtypes[d], a, false);
      fill(dtypes[d], b, false);
      good &= ccn__kernel(id, dtypes[d], out, a, second, NULL, 1000) == 1000;
      ccn__math_eval(ccn__math_find(math_of(id), dtypes[d]), place, a, second, 1000);
      good &= memcmp(out, place, 1000 * size) == 0;
    }
  }
  ok(good, "exp, log, ... are the recipes of math.def");
}

static void test_roundings(bool all) {
  static float x[4096], y[4096];
  static const ccn__kernel_id ids[] = {CCN__K_FLOOR, CCN__K_CEIL, CCN__K_ROUND, CCN__K_SQRT};
  uint32_t bad = 0;
  for (uint64_t u = 0; u < (uint64_t)1 << 32;) {
    size_t n = 0;
    for (; n < 4096 && u < (uint64_t)1 << 32; u += all ? 1 : 1021) {
      const uint32_t bits = (uint32_t)u;
      memcpy(&x[n++], &bits, sizeof bits);
    }
    for (size_t k = 0; k < sizeof ids / sizeof ids[0]; k++) {
      ccn__kernel(ids[k], CCN__F32, y, x, NULL, NULL, n);
      for (size_t i = 0; i < n; i++) {
        const float want = ids[k] == CCN__K_FLOOR   ? floorf(x[i])
                           : ids[k] == CCN__K_CEIL  ? ceilf(x[i])
                           : ids[k] == CCN__K_ROUND ? rintf(x[i])
                                                    : sqrtf(x[i]);
        bad += !is(y[i], want) && !(isnan(y[i]) && isnan(want));
      }
    }
  }
  ok(bad == 0, all ? "floor, ceil, round, sqrt of all f32" : "floor, ceil, round, sqrt of 4 M f32");
}

int main(int argc, char **argv) {
  const bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
  test_table();
  test_all_kernels();
  test_integer_division();
  test_float_division();
  test_rules();
  test_math();
  test_roundings(all);
  printf("1..%d\n", tests);
  return failures ? 1 : 0;
}
