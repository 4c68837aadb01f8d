/* test_num.c: conversions against a reference that searches a table of values, Philox, the hash, the sum
 * tree. With --all also all 2^32 f32 values. SPDX-License-Identifier: Apache-2.0 */
#include "num.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static float f32_of(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* ---- the reference: a table of the non-negative values of a 16-bit format ---------------------------- */

typedef struct half {
  const char *name;
  int fraction, least; /* fraction bits; exponent of the smallest denormal */
  uint32_t infinity;   /* its bits */
  double value[0x7f82];
  uint16_t (*from_f32)(float), (*from_f64)(double);
  float (*to_f32)(uint16_t);
  ccn__dtype dtype;
} half;

static half f16 = {.name = "f16",
                   .fraction = 10,
                   .least = -24,
                   .infinity = 0x7c00,
                   .from_f32 = ccn__f32_to_f16,
                   .from_f64 = ccn__f64_to_f16,
                   .to_f32 = ccn__f16_to_f32,
                   .dtype = CCN__F16};
static half bf16 = {.name = "bf16",
                    .fraction = 7,
                    .least = -133,
                    .infinity = 0x7f80,
                    .from_f32 = ccn__f32_to_bf16,
                    .from_f64 = ccn__f64_to_bf16,
                    .to_f32 = ccn__bf16_to_f32,
                    .dtype = CCN__BF16};

static void fill(half *t) {
  for (uint32_t h = 0; h <= t->infinity;
       h++) { /* infinity's entry: the value that would follow the largest */
    const int e = (int)(h >> t->fraction), m = (int)(h & ((1u << t->fraction) - 1));
    t->value[h] = e == 0 ? ldexp(m, t->least) : ldexp(m + (1 << t->fraction), t->least + e - 1);
  }
}

/* The bits of |x| rounded to nearest even; *at is where the search starts (values at or below |x|). */
static uint32_t walk(const half *t, double x, uint32_t *at) {
  while (*at < t->infinity && t->value[*at + 1] <= x) ++*at;
  if (*at >= t->infinity) return t->infinity;
  const double middle = (t->value[*at] + t->value[*at + 1]) / 2; /* exact */
  return x < middle ? *at : x > middle ? *at + 1 : (*at + 1) & ~1u;
}

static uint32_t search(const half *t, long double x) {
  uint32_t low = 0, high = t->infinity + 1;
  while (high - low > 1) {
    const uint32_t m = (low + high) / 2;
    if ((long double)t->value[m] <= x) low = m;
    else high = m;
  }
  if (low == t->infinity) return low;
  const long double middle = ((long double)t->value[low] + (long double)t->value[low + 1]) / 2;
  return x < middle ? low : x > middle ? low + 1 : (low + 1) & ~1u;
}

static uint16_t reference(const half *t, long double x) {
  return (uint16_t)(search(t, fabsl(x)) | (signbit(x) ? 0x8000u : 0));
}

static void test_half(half *t, bool all) {
  char name[100];
  fill(t);

  bool good = true, widened = true;
  for (uint32_t h = 0; h < 0x10000; h++) {
    const uint32_t a = h & 0x7fff;
    const float x = t->to_f32((uint16_t)h);
    if (a > t->infinity) { /* NaN stays NaN and becomes quiet, sign and payload kept */
      const uint32_t quiet = 1u << (t->fraction - 1);
      good &= isnan(x) && t->from_f32(x) == (h | quiet) && (t->from_f64((double)x) & 0x7fff) > t->infinity;
    } else {
      const double v = a == t->infinity ? (double)INFINITY : t->value[a];
      widened &= (double)x == (h & 0x8000 ? -v : v) && (signbit(x) != 0) == (h >> 15);
      good &= t->from_f32(x) == h && t->from_f64((double)x) == h;
    }
  }
  snprintf(name, sizeof name, "%s: the 65536 patterns have their values", t->name);
  ok(widened, name);
  snprintf(name, sizeof name, "%s: all 65536 patterns there and back", t->name);
  ok(good, name);

  /* ascending f32 patterns in blocks, so that the vector loop is what is tested; both signs */
  enum { BLOCK = 4096 };
  static float x[BLOCK];
  static uint16_t plus[BLOCK], minus[BLOCK];
  const uint32_t step = all ? 1 : 241;
  uint32_t at = 0, bad = 0;
  for (uint64_t u = 0; u <= 0x7f800000u;) {
    size_t n = 0;
    for (; n < BLOCK && u <= 0x7f800000u; u += step) x[n++] = f32_of((uint32_t)u);
    ccn__convert(t->dtype, plus, CCN__F32, x, n);
    for (size_t i = 0; i < n; i++) {
      const uint32_t want = walk(t, (double)x[i], &at);
      bad += plus[i] != want;
      x[i] = -x[i];
    }
    ccn__convert(t->dtype, minus, CCN__F32, x, n);
    for (size_t i = 0; i < n; i++) bad += minus[i] != (plus[i] | 0x8000u);
  }
  snprintf(name, sizeof name, "f32 to %s: %s non-NaN values, nearest even", t->name, all ? "all" : "17 M");
  ok(bad == 0, name);
  bad = 0;
  for (uint32_t u = 0x7f800001u; u <= 0x7fffffffu && u > 0; u += all ? 1 : 9973) {
    const uint32_t h = t->from_f32(f32_of(u)), m = t->from_f32(f32_of(u | 0x80000000u));
    bad += (h & 0x7fff) <= t->infinity || h >> 15 || m != (h | 0x8000);
  }
  snprintf(name, sizeof name, "f32 to %s: NaN stays NaN with its sign", t->name);
  ok(bad == 0, name);

  /* the f32 and f64 neighbours of every value and of every middle: where a second rounding would show */
  uint32_t bad32 = 0, bad64 = 0, twice = 0;
  for (uint32_t h = 0; h < t->infinity; h++) {
    const double v = t->value[h], m = (v + t->value[h + 1]) / 2;
    const double near[] = {v,
                           nextafter(v, INFINITY),
                           nextafter(v, 0),
                           m,
                           nextafter(m, INFINITY),
                           nextafter(m, 0),
                           m * (1 + 0x1p-30),
                           m * (1 - 0x1p-30)};
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
      const uint16_t want = reference(t, near[i]);
      bad64 += t->from_f64(near[i]) != want || t->from_f64(-near[i]) != (want | 0x8000u);
      twice += t->from_f32((float)near[i]) != want;
      const float s = (float)near[i], around[] = {s, nextafterf(s, INFINITY), nextafterf(s, 0)};
      for (size_t k = 0; k < 3; k++) bad32 += t->from_f32(around[k]) != reference(t, around[k]);
    }
  }
  snprintf(name, sizeof name, "f32 to %s: around every value and middle", t->name);
  ok(bad32 == 0, name);
  snprintf(name, sizeof name, "f64 to %s: around every value and middle, one rounding", t->name);
  ok(bad64 == 0, name);
  snprintf(name, sizeof name, "f64 to %s: these values tell two roundings from one", t->name);
  ok(twice > 10000, name);

  bad = 0;
  for (int i = 0; i < 1000000; i++) {
    const uint64_t r = random_bits();
    const double d =
      ldexp((double)(r >> 11) + 1, (int)(random_bits() % 320) - 52 - 160); /* over both ranges */
    bad += t->from_f64(d) != reference(t, d);
  }
  const double far[] = {0x1p-1074, 0x1p-200, 0x1p-150,   65519.999999999993,
                        65520,     0x1p128,  0x1.ffp127, 0x1.fefffffffffffp127,
                        DBL_MAX};
  for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) bad += t->from_f64(far[i]) != reference(t, far[i]);
  bad += t->from_f64((double)INFINITY) != t->infinity || t->from_f64(-0.0) != 0x8000;
  bad += (t->from_f64((double)NAN) & 0x7fff) <= t->infinity;
  snprintf(name, sizeof name, "f64 to %s: random and far values, infinity, NaN", t->name);
  ok(bad == 0, name);
}

/* ---- every pair of dtypes ---------------------------------------------------------------------------- */

static const ccn__dtype dtypes[] = {CCN__F64, CCN__F32, CCN__F16, CCN__BF16, CCN__I64,
                                    CCN__I32, CCN__I16, CCN__I8,  CCN__U8,   CCN__BOOL};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* An element as long double, which holds every i64 and f64. */
static long double value_of(ccn__dtype t, const void *p) {
  union {
    double f64;
    float f32;
    uint16_t h;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    int8_t i8;
    uint8_t u8;
  } u;
  memcpy(&u, p, ccn__dtype_size(t));
  switch (t) {
  case CCN__F64: return u.f64;
  case CCN__F32: return u.f32;
  case CCN__F16: return ccn__f16_to_f32(u.h);
  case CCN__BF16: return ccn__bf16_to_f32(u.h);
  case CCN__I64: return u.i64;
  case CCN__I32: return u.i32;
  case CCN__I16: return u.i16;
  case CCN__I8: return u.i8;
  case CCN__U8: return u.u8;
  default: return u.u8 != 0;
  }
}

static void cast(ccn__dtype to, void *out, ccn__dtype from, const void *in) {
  const long double x = value_of(from, in);
  const size_t size = ccn__dtype_size(to);
  if (to == CCN__BOOL) {
    *(uint8_t *)out = x != 0;
  } else if (to == CCN__F64) {
    memcpy(out, &(double){(double)x}, size);
  } else if (to == CCN__F32) {
    memcpy(out, &(float){(float)x}, size);
  } else if (to == CCN__F16 || to == CCN__BF16) {
    const half *t = to == CCN__F16 ? &f16 : &bf16;
    const uint16_t h = isnan(x)   ? 0x7fff
                       : isinf(x) ? (uint16_t)(t->infinity | (x < 0 ? 0x8000u : 0))
                                  : reference(t, x);
    memcpy(out, &h, size);
  } else if (ccn__dtype_is_float(from)) {
    const int bits = (int)size * 8;
    const long double end = ldexpl(1, to == CCN__U8 ? 8 : bits - 1), low = to == CCN__U8 ? 0 : -end;
    uint64_t r; /* in two's complement; the low bytes count (little-endian machines only) */
    if (isnan(x)) r = 0;
    else if (truncl(x) >= end) r = to == CCN__U8 ? 255 : ((uint64_t)1 << (bits - 1)) - 1;
    else if (truncl(x) <= low) r = to == CCN__U8 ? 0 : (uint64_t)1 << (bits - 1);
    else r = (uint64_t)(int64_t)truncl(x);
    memcpy(out, &r, size);
  } else {
    const int64_t r = (int64_t)x;
    memcpy(out, &r, size);
  }
}

static bool same(ccn__dtype t, const void *a, const void *b) {
  if (memcmp(a, b, ccn__dtype_size(t)) == 0) return true;
  return ccn__dtype_is_float(t) && isnan(value_of(t, a)) && isnan(value_of(t, b));
}

/* Interesting and random elements; for 16 bits and less, every pattern. */
enum { MANY = 1 << 16 };
static void make(ccn__dtype t, void *out) {
  static const double special[] = {0,
                                   -0.0,
                                   0.5,
                                   0.99,
                                   1,
                                   1.5,
                                   2.5,
                                   127,
                                   127.5,
                                   127.99,
                                   128,
                                   128.5,
                                   255,
                                   255.5,
                                   256,
                                   32767,
                                   32767.9,
                                   32768,
                                   65504,
                                   65519.9,
                                   65520,
                                   2147483647,
                                   2147483647.5,
                                   2147483648.0,
                                   2147483520,
                                   0x1p62,
                                   0x1.fffffffffffffp62,
                                   0x1p63,
                                   0x1p64,
                                   1e19,
                                   1e30,
                                   1e300,
                                   1e-30,
                                   0x1p-24,
                                   0x1p-25,
                                   0x1.8p-25,
                                   0x1p-133,
                                   0x1p-149,
                                   0x1p-1074,
                                   INFINITY,
                                   NAN};
  enum { SPECIAL = sizeof special / sizeof special[0] };
  const size_t size = ccn__dtype_size(t);
  char *o = out;
  for (uint32_t i = 0; i < MANY; i++, o += size) {
    uint64_t r = random_bits();
    if (size <= 2) r = i;
    else if (t == CCN__F64 || t == CCN__F32) {
      double x = special[i % SPECIAL] * (i / SPECIAL & 1 ? -1 : 1);
      if (i >= 4 * SPECIAL && i < 4096) x = nextafter(x, i & 64 ? 0 : INFINITY);
      else if (i < MANY / 2) x = ldexp((double)(int64_t)r, -(int)(random_bits() % 70));
      if (i < MANY / 2) {
        if (t == CCN__F64) memcpy(&r, &x, sizeof x);
        else memcpy(&r, &(float){(float)x}, sizeof(float));
      }
    } else if (i < 200) { /* powers of two and their neighbours */
      r = ((uint64_t)1 << (i / 3 % 64)) + i % 3 - 1;
    } else { /* all magnitudes, and just beyond the middle of two bf16 */
      r >>= random_bits() % 64;
      if (i & 1) r = (r & ~(uint64_t)0 << 45) + (r & 3) - 1;
      if (i & 2) r = 0 - r;
    }
    memcpy(o, &r, size);
  }
}

static void test_pairs(void) {
  static uint64_t in[MANY], out[MANY], want[MANY], place[MANY];
  for (size_t a = 0; a < DTYPES; a++) {
    uint32_t bad = 0, bad_in_place = 0, bad_one = 0, bad_tail = 0;
    const ccn__dtype from = dtypes[a];
    const size_t from_size = ccn__dtype_size(from);
    make(from, in);
    for (size_t b = 0; b < DTYPES; b++) {
      const ccn__dtype to = dtypes[b];
      const size_t size = ccn__dtype_size(to);
      char *o = (char *)out, *w = (char *)want;
      const char *i = (const char *)in;
      ccn__convert(to, out, from, in, MANY);
      for (size_t k = 0; k < MANY; k++, o += size, w += size, i += from_size) {
        cast(to, w, from, i);
        if (to == from && from != CCN__BOOL) memcpy(w, i, size);
        if (!same(to, o, w)) {
          if (bad++ < 3)
            printf("# %s to %s: %.20Lg gave %.20Lg, not %.20Lg\n", ccn__dtype_name(from), ccn__dtype_name(to),
                   value_of(from, i), value_of(to, o), value_of(to, w));
        }
        if (k % 16 == 0 && from == CCN__F64) {
          uint64_t e[2] = {0, 0};
          double x;
          memcpy(&x, i, sizeof x);
          ccn__store_f64(to, (char *)e + 1, x); /* the address is odd */
          bad_one += !same(to, (char *)e + 1, w) ||
                     (to == CCN__I64 && ccn__load_i64(from, i) != *(int64_t *)(void *)w);
        }
        if (k % 16 == 0 && from == CCN__I64) {
          uint64_t e[2] = {0, 0};
          int64_t x;
          memcpy(&x, i, sizeof x);
          ccn__store_i64(to, (char *)e + 1, x);
          bad_one += !same(to, (char *)e + 1, w);
        }
        if (k % 16 == 0 && to == CCN__F64) {
          double x = ccn__load_f64(from, i);
          bad_one += !same(to, &x, w);
        }
        if (k % 16 == 0 && to == CCN__I64) bad_one += ccn__load_i64(from, i) != *(int64_t *)(void *)w;
      }
      if (size == from_size) {
        memcpy(place, in, MANY * size);
        ccn__convert(to, place, from, place, MANY);
        bad_in_place += memcmp(place, out, MANY * size) != 0;
      }
      for (size_t n = 0; n < 70; n++) { /* every tail, and nothing written behind it */
        memset(place, 0x5a, 80 * size);
        ccn__convert(to, place, from, (char *)in + from_size, n);
        bad_tail += memcmp(place, (char *)out + size, n * size) != 0 || ((char *)place)[n * size] != 0x5a;
      }
    }
    char name[100];
    const char *text = ccn__dtype_name(from);
    snprintf(name, sizeof name, "convert %s to every dtype", text);
    ok(bad == 0, name);
    snprintf(name, sizeof name, "convert %s in place", text);
    ok(bad_in_place == 0, name);
    snprintf(name, sizeof name, "convert %s: every length from 0 to 69", text);
    ok(bad_tail == 0, name);
    snprintf(name, sizeof name, "load and store %s, unaligned", text);
    ok(bad_one == 0, name);
  }
  ccn__convert(CCN__F32, NULL, CCN__F64, NULL, 0);
  ccn__convert(CCN__F32, NULL, CCN__F32, NULL, 0);
  ok(true, "convert nothing at NULL");
}

/* The rules as the language reference states them, by hand. */
static void test_casts_by_hand(void) {
  static const struct {
    double x;
    ccn__dtype to;
    int64_t want;
  } floats[] = {
    {-1.9, CCN__I32, -1},
    {1e10, CCN__I32, INT32_MAX},
    {-1e10, CCN__I32, INT32_MIN},
    {NAN, CCN__I32, 0},
    {300, CCN__U8, 255},
    {-5, CCN__U8, 0},
    {-0.9, CCN__U8, 0},
    {128, CCN__I8, 127},
    {-129, CCN__I8, -128},
    {INFINITY, CCN__I64, INT64_MAX},
    {-INFINITY, CCN__I64, INT64_MIN},
    {0x1p63, CCN__I64, INT64_MAX},
    {40000, CCN__I16, 32767},
    {NAN, CCN__BOOL, 1},
    {-0.0, CCN__BOOL, 0},
    {1e-320, CCN__BOOL, 1},
  };
  static const struct {
    int64_t x;
    ccn__dtype to;
    int64_t want;
  } ints[] = {
    {200, CCN__I8, -56},
    {65536 + 7, CCN__I16, 7},
    {-1, CCN__U8, 255},
    {(int64_t)1 << 32, CCN__I32, 0},
    {2147483648, CCN__I32, INT32_MIN},
    {256, CCN__BOOL, 1},
    {16777217, CCN__F32, 16777216},
    {2049, CCN__F16, 2048},
    {((int64_t)1 << 62) + ((int64_t)1 << 54) + 1, CCN__BF16, ((int64_t)1 << 62) + ((int64_t)1 << 55)},
    {((int64_t)1 << 62) + ((int64_t)1 << 54), CCN__BF16, (int64_t)1 << 62},
  };
  bool good = true;
  for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
    uint64_t e = 0;
    ccn__store_f64(floats[i].to, &e, floats[i].x);
    good &= ccn__load_i64(floats[i].to, &e) == floats[i].want;
  }
  ok(good, "casts of floats saturate, truncate, and take NaN to 0 or true");
  good = true;
  for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
    uint64_t e = 0;
    ccn__store_i64(ints[i].to, &e, ints[i].x);
    good &= ccn__load_i64(ints[i].to, &e) == ints[i].want;
  }
  ok(good, "casts of integers wrap, and round once to floats");
}

static void test_dtypes(void) {
  bool good = true;
  for (unsigned t = 0; t < CCN__DTYPE_COUNT; t++) {
    ccn__dtype found = CCN__DTYPE_COUNT;
    good &= ccn__dtype_find(ccn__dtype_name((ccn__dtype)t), &found) && found == (ccn__dtype)t;
  }
  ccn__dtype none;
  good &= !ccn__dtype_find("f31", &none) && !ccn__dtype_find("", &none) && !ccn__dtype_find("f3", &none);
  ok(good, "dtypes are found by name");
  ok(ccn__dtype_acc(CCN__F16) == CCN__F32 && ccn__dtype_acc(CCN__I8) == CCN__I8 &&
       ccn__dtype_size(CCN__BF16) == 2 && ccn__dtype_size(CCN__I4) == 0 && ccn__dtype_is_int(CCN__U8) &&
       !ccn__dtype_is_int(CCN__BOOL),
     "rows of the dtype table");

  /* widening, tested by values where there are any: every pattern of the narrow one survives */
  good = true;
  for (size_t a = 0; a < 4; a++) {
    for (size_t b = 0; b < 4; b++) {
      const ccn__dtype from = dtypes[a], to = dtypes[b];
      bool want = from != to;
      for (uint32_t i = 0; i < 0x10000 && want; i++) {
        uint64_t e = 0;
        double x = from == CCN__F64   ? 1 + ldexp(i + 1, -52)
                   : from == CCN__F32 ? (double)(1 + ldexpf((float)(i + 1), -23))
                                      : 0;
        if (from == CCN__F16) x = (double)ccn__f16_to_f32((uint16_t)i);
        if (from == CCN__BF16) x = (double)ccn__bf16_to_f32((uint16_t)i);
        ccn__store_f64(to, &e, x);
        want = isnan(x) || ccn__load_f64(to, &e) == x;
      }
      good &= want == ccn__dtype_widens(from, to);
    }
  }
  good &= !ccn__dtype_widens(CCN__I8, CCN__F32) && !ccn__dtype_widens(CCN__I8, CCN__I32);
  good &= ccn__dtype_widens(CCN__F8E4M3, CCN__BF16) && !ccn__dtype_widens(CCN__F8E4M3, CCN__F8E5M2);
  ok(good, "widens holds exactly where every value survives");
}

/* ---- Philox, the hash, the tree ---------------------------------------------------------------------- */

static void test_philox(void) {
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } known[] = {
    /* published with the Random123 library (kat_vectors) */
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  bool good = true;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    uint32_t out[4];
    ccn__philox(known[i].counter, known[i].key, out);
    good &= memcmp(out, known[i].out, sizeof out) == 0;
    memcpy(out, known[i].counter, sizeof out);
    ccn__philox(out, known[i].key, out); /* in place */
    good &= memcmp(out, known[i].out, sizeof out) == 0;
  }
  ok(good, "philox4x32-10: the published vectors");
  enum { MOST = 100 };
  int64_t index[MOST];
  uint32_t w0[MOST], w1[MOST], out[4];
  const uint32_t high[2] = {7, 0x80000001u}, key[2] = {0xfedcba98u, 3};
  for (int64_t i = 0; i < MOST; i++) index[i] = (i * 0x123456789abcd) ^ i;
  good = true;
  for (size_t n = 0; n <= MOST; n++) {
    ccn__philox_words(index, n, high, key, w0, w1);
    for (size_t i = 0; i < n; i++) {
      const uint64_t e = (uint64_t)index[i];
      ccn__philox((const uint32_t[]){(uint32_t)e, (uint32_t)(e >> 32), high[0], high[1]}, key, out);
      good = good && w0[i] == out[0] && w1[i] == out[1];
    }
  }
  ok(good, "philox of many counters: the words of each");
}

static void test_hash(void) {
  ok(ccn__coordinate_hash(NULL, 0) == 0, "no coordinate hashes to 0");
  /* FNV-1a's published values are for bytes: "foobar" and two zeros is two words */
  const uint32_t foobar[] = {0x626f6f66, 0x00007261}, zero[] = {0};
  uint32_t want = 0xbf9cf968u; /* of "foobar" */
  want *= 0x01000193u;
  want *= 0x01000193u;
  ok(ccn__coordinate_hash(foobar, 2) == want, "the hash is FNV-1a over little-endian words");
  ok(ccn__coordinate_hash(zero, 1) == 0x4b95f515u, "coordinate 0 of one axis");
  bool good = true;
  static uint32_t seen[64 * 64];
  for (uint32_t a = 0; a < 64; a++)
    for (uint32_t b = 0; b < 64; b++) seen[a * 64 + b] = ccn__coordinate_hash((uint32_t[]){a, b}, 2);
  for (size_t i = 0; i < 64 * 64; i++)
    for (size_t k = 0; k < i; k++) good &= seen[i] != seen[k];
  ok(good, "4096 pairs of coordinates have different hashes");
}

static bool cover_is_right(uint64_t a, uint64_t b) {
  ccn__tree_node node[CCN__TREE_MAX];
  const uint32_t n = ccn__tree_cover(a, b, node);
  if (a >= b) return n == 0;
  if (n == 0 || n > CCN__TREE_MAX) return false;
  uint64_t at = a;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t size = (uint64_t)1 << node[i].level;
    if (node[i].start != at || node[i].level > 63 || (at & (size - 1)) || b - at < size)
      return false;           /* complete */
    if (node[i].level < 63) { /* maximal: its parent is not inside */
      const uint64_t parent = at & ~(2 * size - 1);
      if (parent >= a && b - parent >= 2 * size) return false;
    }
    at += size;
  }
  return at == b;
}

static void test_tree(void) {
  bool good = true;
  for (uint64_t a = 0; a <= 300; a++)
    for (uint64_t b = 0; b <= 300; b++) good &= cover_is_right(a, b);
  ok(good, "tree cover: all a, b up to 300: in order, complete, maximal, nothing twice");
  good = cover_is_right(0, UINT64_MAX) && cover_is_right(1, UINT64_MAX) &&
         cover_is_right(0, (uint64_t)1 << 63) && cover_is_right((uint64_t)1 << 63, UINT64_MAX) &&
         cover_is_right(UINT64_MAX - 1, UINT64_MAX);
  for (int i = 0; i < 100000; i++) {
    const uint64_t a = random_bits() >> random_bits() % 64, b = random_bits() >> random_bits() % 64;
    good &= cover_is_right(a < b ? a : b, a < b ? b : a);
  }
  ok(good, "tree cover: pieces of up to 2^64 - 1 indices");
  ccn__tree_node node[CCN__TREE_MAX];
  ok(ccn__tree_cover(1, UINT64_MAX, node) == 126, "tree cover: the longest one, 126 nodes, has room");
}

int main(int argc, char **argv) {
  const bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
  test_dtypes();
  test_half(&f16, all);
  test_half(&bf16, all);
  ok(bits_of(ccn__f16_to_f32(0x7c01)) == 0x7fc02000u && bits_of(ccn__f16_to_f32(0xfe00)) == 0xffc00000u,
     "f16 to f32 makes a NaN quiet");
  ok(bits_of(ccn__bf16_to_f32(0x7f81)) == 0x7f810000u, "bf16 to f32 moves the bits, NaN included");
  test_pairs();
  test_casts_by_hand();
  test_philox();
  test_hash();
  test_tree();
  printf("1..%d\n", tests);
  return failures ? 1 : 0;
}
