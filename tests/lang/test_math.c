/* test_math.c: how far each function of lang/math.def is from the true value, and whether its bits are the
 * known ones.
 *
 *   test_math           a sample: every 4099th f32, and all floats around special points (seconds)
 *   test_math --all     all 2^32 inputs of each unary f32 function, larger samples of the others (minutes)
 *   ... [--jobs N]      processes for --all, 2 unless given
 *   ... [NAME]          this function only
 *
 * The reference is the C library one precision up: double for f32, long double for f64 (which must have 64
 * bits or more). Its own error is below 2^-28 ulp, resp. 2^-9 ulp. The largest error of each f32 function is
 * computed again in long double.
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "math.h"

static int tests, failures;

static void report(bool ok, const char *what) {
  tests++;
  failures += !ok;
  printf("%s %d - %s\n", ok ? "ok" : "not ok", tests, what);
}

/* ---- references ---------------------------------------------------------------------------------------- */

/* The limits at -inf are the value there. */
static double sigmoid_d(double x) { return 1 / (1 + exp(-x)); }
static double silu_d(double x) { return x < -1000 ? -0.0 : x / (1 + exp(-x)); }
static double gelu_d(double x) { return x < -40 ? -0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440); }
static long double sigmoid_l(long double x) { return 1 / (1 + expl(-x)); }
static long double silu_l(long double x) { return x < -20000 ? -0.0L : x / (1 + expl(-x)); }
static long double gelu_l(long double x) {
  return x < -200 ? -0.0L : 0.5L * x * erfcl(-x * 0.707106781186547524400844362104849039L);
}

typedef struct function {
  ccn__math_id id;
  double (*d)(double);
  long double (*l)(long double);
  double bound32, bound64; /* ulps, documented in docs/math.md; bound64 0: there is no f64 list */
  uint64_t hash32, hash64; /* of all results over the sample */
} function;

/* clang-format off */
static const function functions[] = {
  {CCN__MATH_EXP, exp, expl, 1, 1, 0x7881a17dcdfff3fb, 0x1a76b6db81552860},
  {CCN__MATH_LOG, log, logl, 1, 1, 0x490aa5a382a939af, 0xd49e47af4d7b87b9},
  {CCN__MATH_TANH, tanh, tanhl, 1.5, 1.5, 0x718d09b0145284e0, 0x015b0f64d6dd4e92},
  {CCN__MATH_SIGMOID, sigmoid_d, sigmoid_l, 0.55, 2, 0xf80f5c931e71d104, 0x9b268f011030f024},
  {CCN__MATH_ERF, erf, erfl, 0.55, 0, 0x2cad3907a8cdd174, 0},
  {CCN__MATH_SIN, sin, sinl, 0.55, 0, 0xf0ab6cb80e57df12, 0},
  {CCN__MATH_COS, cos, cosl, 0.55, 0, 0x904eb45c46f84c81, 0},
  {CCN__MATH_GELU, gelu_d, gelu_l, 0.55, 0, 0xfc8982872b4274f0, 0},
  {CCN__MATH_SILU, silu_d, silu_l, 0.55, 2, 0x863553c5a7cd4cf1, 0xf38b537edffe2f79},
  {CCN__MATH_LOG1P, log1p, log1pl, 0.55, 1, 0x13ec908f1f0f4157, 0xa702845f85712459},
  {CCN__MATH_EXPM1, expm1, expm1l, 0.55, 1.5, 0xc76bcad58e024a49, 0x8df6a86be22a95d1},
};
static const double pow_bound = 0.55;
static const uint64_t pow_hash = 0x507481d444bcdfee;
/* clang-format on */

/* ---- errors in ulps ------------------------------------------------------------------------------------ */

typedef struct worst {
  double ulp;
  uint64_t at, at2; /* bits of the input(s) */
  uint64_t hash;
} worst;

static float f32_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static double f64_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}
static uint32_t bits_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
static uint64_t bits_f64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  return bits;
}

/* |y - truth| in units of the distance of the floats around `truth`. Overflow counts as 2^128 (what the next
 * float would be); NaN must meet NaN, and the sign of the true value must be there even on a zero. */
static double ulp_f32(float y, double truth) {
  if (isnan(truth)) return isnan(y) ? 0 : INFINITY;
  if (isnan(y) || !!signbit(y) != !!signbit(truth)) return INFINITY;
  if (truth == 0) return y == 0 ? 0 : INFINITY;
  double t = fmin(fabs(truth), 0x1p+128), v = isinf(y) ? 0x1p+128 : fabs((double)y);
  int64_t e = (int64_t)(bits_f64(t) >> 52);
  if (e < 1023 - 126) e = 1023 - 126;
  if (e > 1023 + 127) e = 1023 + 127;
  return fabs(v - t) * f64_of((uint64_t)(1023 + 1023 + 23 - e) << 52);
}

static double ulp_wide(long double v, long double truth, int digits, int least, int most) {
  if (truth == 0) return v == 0 ? 0 : INFINITY;
  long double over = ldexpl(1, most), t = fminl(fabsl(truth), over);
  int e;
  frexpl(t, &e); /* t = 0.5... * 2^e */
  if (e < least) e = least;
  if (e > most) e = most;
  return (double)ldexpl(fabsl((isinf(v) ? over : fabsl(v)) - t), digits - e);
}
static double ulp_f32_l(float y, long double truth) {
  if (isnan(truth)) return isnan(y) ? 0 : INFINITY;
  if (isnan(y) || !!signbit(y) != !!signbit(truth)) return INFINITY;
  return ulp_wide(y, truth, 24, -125, 128);
}
static double ulp_f64(double y, long double truth) {
  if (isnan(truth)) return isnan(y) ? 0 : INFINITY;
  if (isnan(y) || !!signbit(y) != !!signbit(truth)) return INFINITY;
  return ulp_wide(y, truth, 53, -1021, 1024);
}

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}
static uint64_t splitmix(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

enum { BATCH = 4096 };
static bool hashing = true; /* not over all inputs: the order is that of the processes */

static void unary_f32(const function *f, const uint32_t *in, uint32_t n, worst *w) {
  static float x[BATCH], y[BATCH];
  memcpy(x, in, n * sizeof *in);
  ccn__math_eval(ccn__math_find(f->id, CCN__F32), y, x, NULL, n);
  for (uint32_t i = 0; i < n; i++) {
    double u = ulp_f32(y[i], f->d((double)x[i]));
    if (u > w->ulp) {
      u = ulp_f32_l(y[i], f->l((long double)x[i]));
      if (u > w->ulp) w->ulp = u, w->at = in[i];
    }
    if (hashing) w->hash = mix(w->hash, isnan(y[i]) ? 0x7fc00000 : bits_f32(y[i]));
  }
}

static void unary_f64(const function *f, const double *x, uint32_t n, worst *w) {
  static double y[BATCH];
  ccn__math_eval(ccn__math_find(f->id, CCN__F64), y, x, NULL, n);
  for (uint32_t i = 0; i < n; i++) {
    double u = LDBL_MANT_DIG >= 64 ? ulp_f64(y[i], f->l((long double)x[i])) : 0;
    if (u > w->ulp) w->ulp = u, w->at = bits_f64(x[i]);
    w->hash = mix(w->hash, isnan(y[i]) ? 0x7ff8000000000000 : bits_f64(y[i]));
  }
}

/* ---- samples ------------------------------------------------------------------------------------------- */

/* Where something changes in one of the functions: all floats around these are tried, with both signs. */
/* clang-format off */
static const float special[] = {
  0, 0x1p-149f, 0x1p-126f, 0x1p-63f, 0x1p-24f, 0x1p-12f, 0.34657359f, 0.625f, 0.70710678f, 0.78539816f, 1,
  1.04719755f, 1.41421356f, 1.5707963f, 2, 2.356194f, 3.1415927f, 3.92f, 4, 5.5f, 6.2831853f, 8.3f, 9.01f, 10,
  13.9f, 14.3f, 15, 16.635532f, 17.33f, 20, 33, 44, 87.336544f, 88.02969f, 88.7228394f, 89, 90, 103.2789f,
  103.972077f, 104, 108.5f, 110, 120, 128, 1024, 8388608, 16777216, 33554432, 1e6f,
  10741887 * 0x1p+11f, 16367173 * 0x1p+72f, /* nearest to multiples of pi/2 */
  0x1p+127f, FLT_MAX, INFINITY,
};
/* clang-format on */
enum { SPECIALS = sizeof special / sizeof special[0], AROUND = 2000 };

static void sample_f32(const function *f, worst *w) {
  static uint32_t in[BATCH];
  uint32_t n = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) {
    in[n++] = (uint32_t)bits;
    if (n == BATCH) unary_f32(f, in, n, w), n = 0;
  }
  for (uint32_t s = 0; s < 2 * SPECIALS; s++)
    for (int64_t d = -AROUND; d <= AROUND; d++) {
      in[n++] = (uint32_t)(bits_f32(special[s / 2]) + (s % 2 ? 0x80000000u : 0) + (uint64_t)d);
      if (n == BATCH) unary_f32(f, in, n, w), n = 0;
    }
  unary_f32(f, in, n, w);
}

/* A quarter each: any bits; exponents near 0; uniform on [-750, 750]; uniform on [-2, 2]. */
static void sample_f64(const function *f, uint64_t count, uint64_t seed, worst *w) {
  static double x[BATCH];
  uint32_t n = 0;
  for (uint32_t s = 0; s < 2 * SPECIALS; s++)
    for (int64_t d = -AROUND; d <= AROUND; d++) {
      x[n++] = f64_of(bits_f64(s % 2 ? -(double)special[s / 2] : (double)special[s / 2]) + (uint64_t)d);
      if (n == BATCH) unary_f64(f, x, n, w), n = 0;
    }
  static const double special64[] = {
    0x1p-1074,          0x1p-1022, 708.3964185322641, 709.782712893384, 745.1332191019412,
    18.714973875118524, 19.06,     36.7368005696771,  709.089565712824, DBL_MAX};
  for (uint32_t s = 0; s < 2 * sizeof special64 / sizeof special64[0]; s++)
    for (int64_t d = -AROUND; d <= AROUND; d++) {
      x[n++] = f64_of(bits_f64(s % 2 ? -special64[s / 2] : special64[s / 2]) + (uint64_t)d);
      if (n == BATCH) unary_f64(f, x, n, w), n = 0;
    }
  for (uint64_t i = 0; i < count; i++) {
    uint64_t r = splitmix(&seed);
    double unit = (double)(int64_t)r * 0x1p-63;
    switch (i % 4) {
    case 0: x[n++] = f64_of(r); break;
    case 1: x[n++] = f64_of((r & 0x800fffffffffffff) | ((1023 - 8 + (r >> 52) % 16) << 52)); break;
    case 2: x[n++] = unit * 750; break;
    default: x[n++] = unit * 2; break;
    }
    if (n == BATCH) unary_f64(f, x, n, w), n = 0;
  }
  unary_f64(f, x, n, w);
}

static void sample_pow(uint64_t count, uint64_t seed, worst *w) {
  static float x[BATCH], y[BATCH], z[BATCH];
  const ccn__math_fn *f = ccn__math_find(CCN__MATH_POW, CCN__F32);
  for (uint64_t done = 0; done < count; done += BATCH) {
    for (uint32_t i = 0; i < BATCH; i++) {
      uint64_t r = splitmix(&seed);
      uint32_t a = (uint32_t)r, b = (uint32_t)(r >> 32);
      switch (i % 8) {
      case 0: x[i] = f32_of(a), y[i] = f32_of(b); break; /* any bits */
      case 1: x[i] = f32_of(a >> 1), y[i] = (float)(int32_t)b * 0x1p-27f; break;
      case 2: x[i] = f32_of(a), y[i] = (float)((int32_t)b >> 25); break; /* integers */
      case 3: x[i] = f32_of(0x3f800000 + (a >> 12) - 0x80000), y[i] = (float)(int32_t)b * 0x1p-16f; break;
      case 4: x[i] = f32_of(0x3f000000 + (a >> 8)), y[i] = (float)(int32_t)b * 0x1p-24f; break;
      case 5: { /* results near overflow and underflow: y = target / log2 x, roughly */
        x[i] = f32_of(a >> 1);
        double m = (double)(a >> 1 & 0x7fffff) * 0x1p-23;
        double l = (double)((int32_t)(a >> 24) - 127) + m + 0.343 * m * (1 - m) + 1e-9;
        y[i] = (float)(((b & 1 ? 128 : -149.5) + (double)(int32_t)b * 0x1p-31) / l);
        break;
      }
      case 6: x[i] = f32_of(a >> 1), y[i] = (float)((int32_t)b >> 28) * 0.5f; break;
      default: x[i] = f32_of(0x3f800000 + (b & 4095) - 2048), y[i] = f32_of(a); break;
      }
    }
    ccn__math_eval(f, z, x, y, BATCH);
    for (uint32_t i = 0; i < BATCH; i++) {
      double u = ulp_f32(z[i], pow((double)x[i], (double)y[i]));
      if (u > w->ulp) {
        u = ulp_f32_l(z[i], powl((long double)x[i], (long double)y[i]));
        if (u > w->ulp) w->ulp = u, w->at = bits_f32(x[i]), w->at2 = bits_f32(y[i]);
      }
      w->hash = mix(w->hash, isnan(z[i]) ? 0x7fc00000 : bits_f32(z[i]));
    }
  }
}

/* ---- special cases of pow (C11 7.12.7.4, F.10.4.4) ----------------------------------------------------- */

/* clang-format off */
static const struct {
  float x, y, z;
} pow_cases[] = {
  {0, 0, 1}, {-0.0f, 0, 1}, {NAN, 0, 1}, {INFINITY, -0.0f, 1}, {-INFINITY, 0, 1}, {-3, -0.0f, 1},
  {1, NAN, 1}, {1, INFINITY, 1}, {1, -INFINITY, 1}, {1, FLT_MAX, 1}, {-1, INFINITY, 1}, {-1, -INFINITY, 1},
  {NAN, 1, NAN}, {2, NAN, NAN}, {-1, NAN, NAN}, {0, NAN, NAN}, {NAN, NAN, NAN}, {NAN, INFINITY, NAN},
  {0, 1, 0}, {0, 3, 0}, {0, 2, 0}, {0, 0.5f, 0}, {0, INFINITY, 0}, {0, 0x1p-149f, 0},
  {-0.0f, 1, -0.0f}, {-0.0f, 3, -0.0f}, {-0.0f, 2, 0}, {-0.0f, 0.5f, 0}, {-0.0f, INFINITY, 0},
  {-0.0f, 16777215, -0.0f}, {-0.0f, 16777216, 0}, {-0.0f, 16777218, 0}, {-0.0f, 0x1p+127f, 0},
  {0, -1, INFINITY}, {0, -2, INFINITY}, {0, -0.5f, INFINITY}, {0, -INFINITY, INFINITY},
  {-0.0f, -1, -INFINITY}, {-0.0f, -3, -INFINITY}, {-0.0f, -2, INFINITY}, {-0.0f, -0.5f, INFINITY},
  {-0.0f, -INFINITY, INFINITY}, {-0.0f, -16777215, -INFINITY}, {-0.0f, -16777216, INFINITY},
  {0.5f, INFINITY, 0}, {-0.5f, INFINITY, 0}, {2, INFINITY, INFINITY}, {-2, INFINITY, INFINITY},
  {0.5f, -INFINITY, INFINITY}, {-0.5f, -INFINITY, INFINITY}, {2, -INFINITY, 0}, {-2, -INFINITY, 0},
  {0x1.fffffep-1f, INFINITY, 0}, {0x1.000002p+0f, INFINITY, INFINITY}, {0x1.000002p+0f, -INFINITY, 0},
  {INFINITY, 1, INFINITY}, {INFINITY, 0.1f, INFINITY}, {INFINITY, -1, 0}, {INFINITY, INFINITY, INFINITY},
  {INFINITY, -INFINITY, 0}, {INFINITY, 0x1p-149f, INFINITY},
  {-INFINITY, 1, -INFINITY}, {-INFINITY, 3, -INFINITY}, {-INFINITY, 2, INFINITY}, {-INFINITY, 0.5f, INFINITY},
  {-INFINITY, -1, -0.0f}, {-INFINITY, -3, -0.0f}, {-INFINITY, -2, 0}, {-INFINITY, -0.5f, 0},
  {-INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, 0}, {-INFINITY, 1.5f, INFINITY},
  {-8, 1 / 3.0f, NAN}, {-1, 0.5f, NAN}, {-FLT_MAX, 0.5f, NAN}, {-0x1p-149f, 0.5f, NAN}, {-2, 1.5f, NAN},
  {-2, 8388606.5f, NAN}, {-1, 8388607, -1}, {-1, 8388608, 1}, {-1, 16777215, -1}, {-1, 16777216, 1},
  {-1, FLT_MAX, 1}, {-1, -FLT_MAX, 1}, {-1, 0x1p+103f, 1}, {-1, 0x1.8p+104f, 1}, {-1, 0x1.000002p+103f, 1},
  {-2, 3, -8}, {-2, 2, 4}, {-2, -1, -0.5f}, {-2, 127, -0x1p+127f}, {-2, 128, INFINITY}, {-2, 129, -INFINITY},
  {2, 127, 0x1p+127f}, {2, 128, INFINITY}, {2, -149, 0x1p-149f}, {2, -150, 0}, {-2, -149, -0x1p-149f},
  {-2, -151, -0.0f}, {10, 2, 100}, {3, 5, 243}, {0x1p-149f, 1, 0x1p-149f}, {0x1p-149f, -1, INFINITY},
  {0x1p-126f, 0.5f, 0x1p-63f}, {4, 0.5f, 2}, {4, -0.5f, 0.5f}, {0x1p+127f, 1, 0x1p+127f},
  {FLT_MAX, 1, FLT_MAX}, {-FLT_MAX, 1, -FLT_MAX}, {FLT_MAX, 2, INFINITY}, {2, FLT_MAX, INFINITY},
  {0.5f, FLT_MAX, 0}, {2, 0x1p-149f, 1},
};
/* clang-format on */

static void check_pow_cases(void) {
  bool ok = true;
  const ccn__math_fn *f = ccn__math_find(CCN__MATH_POW, CCN__F32);
  for (size_t i = 0; i < sizeof pow_cases / sizeof pow_cases[0]; i++) {
    float z, want = pow_cases[i].z;
    ccn__math_eval(f, &z, &pow_cases[i].x, &pow_cases[i].y, 1);
    if (isnan(want) ? isnan(z) : bits_f32(z) == bits_f32(want)) continue;
    printf("# pow(%a, %a) is %a, not %a\n", (double)pow_cases[i].x, (double)pow_cases[i].y, (double)z,
           (double)want);
    ok = false;
  }
  report(ok, "pow: special cases");
}

/* ---- the lists themselves ------------------------------------------------------------------------------ */

static bool is_mask(ccn__math_type t) { return t == CCN__MATH_T_M32 || t == CCN__MATH_T_M64; }
static bool is_float(ccn__math_type t) { return t == CCN__MATH_T_F32 || t == CCN__MATH_T_F64; }
static bool is_int(ccn__math_type t) { return t == CCN__MATH_T_I32 || t == CCN__MATH_T_I64; }
static uint32_t width(ccn__math_type t) {
  return t == CCN__MATH_T_F32 || t == CCN__MATH_T_I32 || t == CCN__MATH_T_M32 ? 32 : 64;
}

/* Why instruction i is wrong, or NULL: operands come earlier and have the types that math.h demands. */
static const char *wrong(const ccn__math_fn *f, uint32_t i) {
  const ccn__math_ins *ins = &f->code[i];
  ccn__math_type t = (ccn__math_type)ins->type,
                 operand[3] = {CCN__MATH_T_F32, CCN__MATH_T_F32, CCN__MATH_T_F32};
  uint32_t n = ccn__math_operands((ccn__math_op)ins->op);
  const uint16_t at[3] = {ins->a, ins->b, ins->c};
  for (uint32_t k = 0; k < 3; k++) {
    if (k >= n && at[k] != 0) return "operand that the op does not have";
    if (k >= n) continue;
    if (at[k] >= i) return "operand defined later";
    operand[k] = ccn__math_value_type(&f->code[at[k]]);
  }
  ccn__math_type own = f->dtype == CCN__F64 ? CCN__MATH_T_F64 : CCN__MATH_T_F32;
  switch ((ccn__math_op)ins->op) {
  case CCN__MATH_OP_ARG: return t != own || ins->imm.i32 >= f->arity ? "argument" : NULL;
  case CCN__MATH_OP_CONST: return is_mask(t) ? "mask constant" : NULL;
  case CCN__MATH_OP_ADD:
  case CCN__MATH_OP_SUB:
  case CCN__MATH_OP_EQ: return operand[0] != t || operand[1] != t || is_mask(t) ? "types" : NULL;
  case CCN__MATH_OP_MUL:
  case CCN__MATH_OP_DIV:
  case CCN__MATH_OP_LT: return operand[0] != t || operand[1] != t || !is_float(t) ? "types" : NULL;
  case CCN__MATH_OP_AND:
  case CCN__MATH_OP_OR:
  case CCN__MATH_OP_XOR: return operand[0] != t || operand[1] != t || is_float(t) ? "types" : NULL;
  case CCN__MATH_OP_SHL:
  case CCN__MATH_OP_SHR:
    if (ins->imm.i32 == 0 || ins->imm.i32 >= width(t)) return "shift";
    return operand[0] != t || !is_int(t) ? "types" : NULL;
  case CCN__MATH_OP_SEL:
    if (!is_mask(operand[0]) || width(operand[0]) != width(t)) return "mask";
    return operand[1] != t || operand[2] != t || is_mask(t) ? "types" : NULL;
  case CCN__MATH_OP_CAST:
    return width(operand[0]) != width(t) || is_mask(t) || is_mask(operand[0]) ||
               is_float(t) == is_float(operand[0])
             ? "types"
             : NULL;
  case CCN__MATH_OP_CVT: return !is_float(t) || !is_float(operand[0]) || t == operand[0] ? "types" : NULL;
  case CCN__MATH_OP_TABLE:
    if (ins->imm.i32 >= ccn__math_table_count) return "no such table";
    return t != CCN__MATH_T_F64 || operand[0] != CCN__MATH_T_I64 ? "types" : NULL;
  default: return "unknown op";
  }
}

/* The most values alive at once, constants not counted; what is never used is an error (UINT32_MAX). */
static uint32_t pressure(const ccn__math_fn *f) {
  uint32_t last[256], most = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    const ccn__math_ins *ins = &f->code[i];
    const uint16_t at[3] = {ins->a, ins->b, ins->c};
    last[i] = i + 1 == f->count ? i : UINT32_MAX;
    for (uint32_t k = 0; k < ccn__math_operands((ccn__math_op)ins->op); k++) last[at[k]] = i;
  }
  for (uint32_t i = 0; i < f->count; i++) {
    uint32_t alive = 0;
    if (last[i] == UINT32_MAX) {
      printf("# %s: value %" PRIu32 " is never used\n", ccn__math_name(f->id), i);
      return UINT32_MAX;
    }
    for (uint32_t j = 0; j <= i; j++) alive += last[j] >= i && f->code[j].op != CCN__MATH_OP_CONST;
    if (alive > most) most = alive;
  }
  return most;
}

static void check_lists(void) {
  bool ok = true, slim = true, results = true, tables = true;
  for (int id = 0; id < CCN__MATH_COUNT; id++)
    for (int t = 0; t < CCN__DTYPE_COUNT; t++) {
      const ccn__math_fn *f = ccn__math_find((ccn__math_id)id, (ccn__dtype)t);
      if (!f) continue;
      ok = ok && f->count > 0 && (f->arity == 2) == (id == CCN__MATH_POW);
      for (uint32_t i = 0; i < f->count; i++) {
        const char *why = wrong(f, i);
        if (why)
          printf("# %s: instruction %" PRIu32 ": %s\n", ccn__math_name((ccn__math_id)id), i, why), ok = false;
      }
      if (!ok) continue;
      uint32_t p = pressure(f);
      slim = slim && p <= CCN__MATH_LIVE_MAX;
      results = results && ccn__math_value_type(&f->code[f->count - 1]) ==
                             (f->dtype == CCN__F64 ? CCN__MATH_T_F64 : CCN__MATH_T_F32);
      printf("# %-7s %s: %3" PRIu32 " instructions, %2" PRIu32 " values alive\n",
             ccn__math_name((ccn__math_id)id), ccn__dtype_name((ccn__dtype)t), f->count, p);
    }
  for (uint32_t i = 0; i < ccn__math_table_count; i++) {
    uint32_t n = ccn__math_tables[i].count;
    tables = tables && n > 0 && (n & (n - 1)) == 0;
  }
  report(ok, "lists: every instruction has the operands and types it needs");
  report(slim, "lists: no value unused, no more than CCN__MATH_LIVE_MAX alive");
  report(results, "lists: the last value has the type of the function");
  report(tables, "lists: tables have a power of two of values");
}

/* Every length, offset and place of the result gives the same bits as one element at a time. */
static void check_eval(void) {
  enum { N = 1500 };
  static float x[N], y[N + 1], z[N], one[N]; /* y: a guard behind the last */
  static double xd[N], yd[N], oned[N];
  bool ok = true;
  for (uint32_t i = 0; i < N; i++) xd[i] = x[i] = (float)i * 0.01f - 5, z[i] = 3 - (float)i * 0.003f;
  for (int id = 0; id < CCN__MATH_COUNT; id++) {
    const ccn__math_fn *f = ccn__math_find((ccn__math_id)id, CCN__F32),
                       *g = ccn__math_find((ccn__math_id)id, CCN__F64);
    const bool two = f->arity == 2;
    for (uint32_t i = 0; i < N; i++) ccn__math_eval(f, &one[i], &x[i], two ? &z[i] : NULL, 1);
    for (uint32_t i = 0; g && i < N; i++) ccn__math_eval(g, &oned[i], &xd[i], NULL, 1);
    static const uint32_t lengths[] = {0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1025, N - 1};
    for (uint32_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
      const uint32_t n = lengths[l];
      y[n + 1] = 42;
      ccn__math_eval(f, y + 1, x + 1, two ? z + 1 : NULL, n);
      for (uint32_t i = 1; i <= n; i++)
        ok = ok && (isnan(y[i]) ? isnan(one[i]) : bits_f32(y[i]) == bits_f32(one[i]));
      ok = ok && y[n + 1] == 42;
      memcpy(y, x, sizeof x);
      ccn__math_eval(f, y, y, two ? z : NULL, n);
      for (uint32_t i = 0; i < n; i++)
        ok = ok && (isnan(y[i]) ? isnan(one[i]) : bits_f32(y[i]) == bits_f32(one[i]));
      if (two) {
        memcpy(y, z, sizeof z);
        ccn__math_eval(f, y, x, y, n);
        for (uint32_t i = 0; i < n; i++)
          ok = ok && (isnan(y[i]) ? isnan(one[i]) : bits_f32(y[i]) == bits_f32(one[i]));
      }
      if (!g) continue;
      memcpy(yd, xd, sizeof xd);
      ccn__math_eval(g, yd, yd, NULL, n);
      for (uint32_t i = 0; i < n; i++) ok = ok && (isnan(yd[i]) ? isnan(oned[i]) : yd[i] == oned[i]);
    }
  }
  report(ok, "eval: any length, in place or not");
}

/* ---- all inputs, over several processes ---------------------------------------------------------------- */

static uint32_t jobs = 2;

static void piece(const function *f, ccn__dtype t, uint32_t job, worst *w) {
  static uint32_t in[BATCH];
  if (!f) sample_pow((uint64_t)200000000 / jobs, 1000 + job, w);
  else if (t == CCN__F64) sample_f64(f, (uint64_t)200000000 / jobs, 1000 + job, w);
  else
    for (uint64_t start = (uint64_t)job * BATCH; start <= UINT32_MAX; start += (uint64_t)jobs * BATCH) {
      for (uint32_t i = 0; i < BATCH; i++) in[i] = (uint32_t)start + i;
      unary_f32(f, in, BATCH, w);
    }
}

static bool everything(const function *f, ccn__dtype t, worst *w) {
  int link[2];
  if (pipe(link) != 0) return false;
  fflush(stdout);
  for (uint32_t j = 0; j < jobs; j++) {
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
      worst mine = {-1, 0, 0, 0};
      piece(f, t, j, &mine);
      _exit(write(link[1], &mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 1);
    }
  }
  close(link[1]);
  *w = (worst){-1, 0, 0, 0};
  bool ok = true;
  for (uint32_t j = 0; j < jobs; j++) {
    worst one;
    ok = ok && read(link[0], &one, sizeof one) == (ssize_t)sizeof one;
    if (ok && one.ulp > w->ulp) *w = one;
  }
  close(link[0]);
  int status;
  while (wait(&status) > 0) ok = ok && status == 0;
  return ok;
}

static void measure(const function *f, ccn__dtype t, bool all) {
  ccn__math_id id = f ? f->id : CCN__MATH_POW;
  double bound = !f ? pow_bound : t == CCN__F32 ? f->bound32 : f->bound64;
  uint64_t hash = !f ? pow_hash : t == CCN__F32 ? f->hash32 : f->hash64;
  worst w = {-1, 0, 0, 0};
  char line[200];
  if (!f) sample_pow(4 << 20, 1, &w);
  else if (t == CCN__F32) sample_f32(f, &w);
  else sample_f64(f, 2 << 20, 1, &w);
  snprintf(line, sizeof line, "%s %s: bits of the sample are 0x%016" PRIx64, ccn__math_name(id),
           ccn__dtype_name(t), w.hash);
  report(w.hash == hash, line);
  bool ok = true;
  hashing = false;
  if (all) ok = everything(f, t, &w);
  hashing = true;
  char at[100];
  if (!f) snprintf(at, sizeof at, "%a, %a", (double)f32_of((uint32_t)w.at), (double)f32_of((uint32_t)w.at2));
  else if (t == CCN__F32)
    snprintf(at, sizeof at, "%a (%.9g)", (double)f32_of((uint32_t)w.at), (double)f32_of((uint32_t)w.at));
  else snprintf(at, sizeof at, "%a (%.17g)", f64_of(w.at), f64_of(w.at));
  snprintf(line, sizeof line, "%s %s: max %.4f ulp at %s, bound %g%s", ccn__math_name(id), ccn__dtype_name(t),
           w.ulp, at, bound, all && f && t == CCN__F32 ? ", all inputs" : "");
  report(ok && w.ulp <= bound, line);
}

int main(int argc, char **argv) {
  bool all = false;
  const char *only = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--all") == 0) all = true;
    else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) jobs = (uint32_t)atoi(argv[++i]);
    else only = argv[i];
  }
  if (jobs == 0) jobs = 1;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    const function *f = &functions[i];
    if (only && strcmp(only, ccn__math_name(f->id)) != 0) continue;
    measure(f, CCN__F32, all);
    if (f->bound64 > 0) measure(f, CCN__F64, all);
  }
  if (!only) check_lists(), check_eval();
  if (!only || strcmp(only, "pow") == 0) check_pow_cases(), measure(NULL, CCN__F32, all);
  printf("1..%d\n", tests);
  return failures != 0;
}
