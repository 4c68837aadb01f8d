/* script_num.c: arithmetic of script numbers: 64-bit integers that never wrap, and f64.
 *
 * Pure: nothing is reported here, so that the static check can use it too. Functions of f64 are those of the
 * kernels, never libm's, where the kernels have them; sin, cos, erf and their like are computed in f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <math.h>

static bool refuse(ccn__calc_error *err, uint16_t code, const char *why, const char *hint) {
  *err = (ccn__calc_error){code, why, hint};
  return false;
}

static bool overflow(ccn__calc_error *err) {
  return refuse(err, 810, "does not fit 64 bits", "compute in floats, which have no such limit: 1.0 * x");
}

/* ---- integers ------------------------------------------------------------------------------------------ */

static bool add(int64_t x, int64_t y, int64_t *out) {
  if (y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y) return false;
  *out = x + y;
  return true;
}

static bool subtract(int64_t x, int64_t y, int64_t *out) {
  if (y < 0 ? x > INT64_MAX + y : x < INT64_MIN + y) return false;
  *out = x - y;
  return true;
}

static bool multiply(int64_t x, int64_t y, int64_t *out) {
  if (x > 0 ? (y > 0 ? x > INT64_MAX / y : y < INT64_MIN / x)
            : (y > 0 ? x < INT64_MIN / y : x != 0 && y < INT64_MAX / x))
    return false;
  *out = x * y;
  return true;
}

/* x ** y for y >= 0. At most 64 rounds: by then x is 0, 1, -1 or has overflowed. */
static bool power(int64_t x, int64_t y, int64_t *out) {
  int64_t r = 1;
  for (; y; y >>= 1) {
    if ((y & 1) && !multiply(r, x, &r)) return false;
    if (y > 1 && !multiply(x, x, &x)) return false;
  }
  *out = r;
  return true;
}

static int64_t floor_div(int64_t x, int64_t y) {
  int64_t q = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

static double f64_kernel(ccn__kernel_id k, double x, double y) {
  double out = 0;
  ccn__kernel(k, CCN__F64, &out, &x, &y, NULL, 1);
  return out;
}

/* As literals are folded (ccn__lit_binary), so that a number computed in the script and in a program
 * agree. */
static double float_power(double x, double y) {
  if (ccn__kernel_exists(CCN__K_POW, CCN__F64)) return f64_kernel(CCN__K_POW, x, y);
  return pow(x, y);
}

static bool int_binary(ccn__oper op, int64_t x, int64_t y, ccn__val *out, ccn__calc_error *err) {
  int64_t r = 0;
  bool fits = true;
  if (y == 0 && (op == CCN__T_SLASH || op == CCN__T_SLASH2 || op == CCN__T_PERCENT))
    return refuse(err, 810, "divides by zero", "guard the division: if d != 0 { ... }");
  switch (op) {
  case CCN__T_PLUS: fits = add(x, y, &r); break;
  case CCN__T_MINUS: fits = subtract(x, y, &r); break;
  case CCN__T_STAR: fits = multiply(x, y, &r); break;
  case CCN__T_SLASH: return *out = ccn__float_val((double)x / (double)y), true;
  case CCN__T_SLASH2:
    if (y == -1) fits = subtract(0, x, &r);
    else r = floor_div(x, y);
    break;
  case CCN__T_PERCENT: r = y == -1 ? 0 : x - floor_div(x, y) * y; break;
  case CCN__T_POW:
    if (y < 0 && x == 0)
      return refuse(err, 810, "divides by zero", "0 to a negative power is 1 / 0; 0.0 ** -1 gives inf");
    if (y < 0) return *out = ccn__float_val(float_power((double)x, (double)y)), true;
    fits = power(x, y, &r);
    break;
  default: return refuse(err, 805, "is not defined for numbers", NULL);
  }
  if (!fits) return overflow(err);
  *out = ccn__int_val(r);
  return true;
}

static bool float_binary(ccn__oper op, double x, double y, ccn__val *out, ccn__calc_error *err) {
  switch (op) {
  case CCN__T_PLUS: *out = ccn__float_val(x + y); return true;
  case CCN__T_MINUS: *out = ccn__float_val(x - y); return true;
  case CCN__T_STAR: *out = ccn__float_val(x * y); return true;
  case CCN__T_SLASH: *out = ccn__float_val(x / y); return true;
  case CCN__T_SLASH2: *out = ccn__float_val(f64_kernel(CCN__K_FLOORDIV, x, y)); return true;
  case CCN__T_PERCENT: *out = ccn__float_val(f64_kernel(CCN__K_MOD, x, y)); return true;
  case CCN__T_POW: *out = ccn__float_val(float_power(x, y)); return true;
  default: return refuse(err, 805, "is not defined for numbers", NULL);
  }
}

/* ---- comparisons --------------------------------------------------------------------------------------- */

/* An integer against a float, exactly. */
static int compare_mixed(int64_t i, double f) {
  if (isnan(f)) return 2;
  if (f >= 9223372036854775808.0) return -1;
  if (f < -9223372036854775808.0) return 1;
  int64_t whole = (int64_t)f; /* truncated */
  if (i != whole) return i < whole ? -1 : 1;
  double rest = f - (double)whole;
  return rest > 0 ? -1 : rest < 0;
}

int ccn__calc_compare(ccn__val x, ccn__val y) {
  if (x.kind == CCN__V_INT && y.kind == CCN__V_INT) return x.i < y.i ? -1 : x.i > y.i;
  if (x.kind == CCN__V_INT) return compare_mixed(x.i, y.f);
  if (y.kind == CCN__V_INT) {
    int c = compare_mixed(y.i, x.f);
    return c == 2 ? 2 : -c;
  }
  if (isnan(x.f) || isnan(y.f)) return 2;
  return x.f < y.f ? -1 : x.f > y.f;
}

static bool holds(ccn__oper op, int c) {
  switch (op) {
  case CCN__T_LT: return c == -1;
  case CCN__T_LE: return c == -1 || c == 0;
  case CCN__T_GT: return c == 1;
  case CCN__T_GE: return c == 1 || c == 0;
  case CCN__T_EQ: return c == 0;
  default: return c != 0;
  }
}

bool ccn__calc_binary(ccn__oper op, ccn__val x, ccn__val y, ccn__val *out, ccn__calc_error *err) {
  bool comparison = op >= CCN__T_LT && op <= CCN__T_NE;
  if (x.kind == CCN__V_BOOL && y.kind == CCN__V_BOOL && (op == CCN__T_EQ || op == CCN__T_NE))
    return *out = ccn__bool_val((x.b == y.b) == (op == CCN__T_EQ)), true;
  if (x.kind == CCN__V_BOOL && y.kind == CCN__V_BOOL && (op == CCN__T_AND || op == CCN__T_OR))
    return *out = ccn__bool_val(op == CCN__T_AND ? x.b && y.b : x.b || y.b), true;
  if (!ccn__is_number(x) || !ccn__is_number(y))
    return refuse(err, 805, "is not defined for these", "int(b) makes 0 or 1 of a boolean");
  if (comparison) return *out = ccn__bool_val(holds(op, ccn__calc_compare(x, y))), true;
  if (x.kind == CCN__V_INT && y.kind == CCN__V_INT) return int_binary(op, x.i, y.i, out, err);
  return float_binary(op, ccn__as_f64(x), ccn__as_f64(y), out, err);
}

bool ccn__calc_unary(ccn__oper op, ccn__val x, ccn__val *out, ccn__calc_error *err) {
  *out = x;
  if (op == CCN__T_NOT) {
    if (x.kind != CCN__V_BOOL) return refuse(err, 805, "takes a boolean", "compare first: not (x == 0)");
    out->b = !x.b;
    return true;
  }
  if (x.kind == CCN__V_FLOAT) return out->f = -x.f, true;
  if (x.kind != CCN__V_INT) return refuse(err, 805, "takes a number", NULL);
  return subtract(0, x.i, &out->i) || overflow(err);
}

/* ---- elementwise ops ----------------------------------------------------------------------------------- */

static ccn__val load(ccn__dtype t, const void *p) {
  if (t == CCN__BOOL) return ccn__bool_val(*(const uint8_t *)p != 0);
  if (!ccn__dtype_is_float(t)) return ccn__int_val(ccn__load_i64(t, p));
  ccn__val v = ccn__float_val(ccn__load_f64(t, p));
  v.single = t != CCN__F64;
  return v;
}

static void store(ccn__dtype t, void *p, ccn__val v) {
  if (v.kind == CCN__V_FLOAT) ccn__store_f64(t, p, v.f);
  else ccn__store_i64(t, p, v.kind == CCN__V_BOOL ? v.b : v.i);
}

ccn__val ccn__calc_cast(ccn__dtype t, ccn__val x) {
  uint64_t cell = 0;
  store(t, &cell, x);
  return load(t, &cell);
}

/* where(cond, x, y), clamp(x, low, high): not kernels of numbers. */
static bool select_op(ccn__op op, const ccn__val *x, uint32_t n, ccn__val *out) {
  if (n != 3) return false;
  if (op == CCN__OP_WHERE) {
    if (x[0].kind != CCN__V_BOOL) return false;
    *out = x[0].b ? x[1] : x[2];
    return true;
  }
  if (op != CCN__OP_CLAMP) return false;
  ccn__val inner[2] = {x[0], x[1]}, outer[2];
  if (!ccn__calc_op(CCN__OP_MAXIMUM, inner, 2, &outer[0])) return false;
  outer[1] = x[2];
  return ccn__calc_op(CCN__OP_MINIMUM, outer, 2, out);
}

bool ccn__calc_op(ccn__op op, const ccn__val *x, uint32_t n, ccn__val *out) {
  const ccn__op_info *info = &ccn__op_table[op];
  bool integers = true, booleans = true;
  if (select_op(op, x, n, out)) return true;
  if (info->kind != CCN__KIND_ELEM || info->kernel >= CCN__K_COUNT || info->kernel == CCN__K_WHERE)
    return false;
  if (n == 0 || n > 2 || (uint32_t)info->nin != n) return false;
  for (uint32_t i = 0; i < n; i++) {
    integers = integers && x[i].kind == CCN__V_INT;
    booleans = booleans && x[i].kind == CCN__V_BOOL;
    if (x[i].kind != CCN__V_INT && x[i].kind != CCN__V_FLOAT && x[i].kind != CCN__V_BOOL) return false;
    if ((x[i].kind == CCN__V_BOOL) != (x[0].kind == CCN__V_BOOL)) return false;
  }
  ccn__kernel_id k = (ccn__kernel_id)info->kernel;
  ccn__dtype t = booleans ? CCN__BOOL : integers && info->dtypes != CCN__DT_FLOAT ? CCN__I64 : CCN__F64;
  if (!ccn__kernel_exists(k, t)) t = CCN__F32; /* sin, cos, erf, ...: f32 only */
  if (booleans ? t != CCN__BOOL : !ccn__kernel_exists(k, t)) return false;
  uint64_t cell[3] = {0};
  for (uint32_t i = 0; i < n; i++) store(t, &cell[i], x[i]);
  if (ccn__kernel(k, t, &cell[2], &cell[0], n > 1 ? &cell[1] : NULL, NULL, 1) != 1) return false;
  *out = load(info->result == CCN__RES_BOOL ? CCN__BOOL : t, &cell[2]);
  return true;
}
