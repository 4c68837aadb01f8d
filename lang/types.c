/* types.c: equality of types, meshes, literals, and the tables of ops, attributes and operators as C.
 * SPDX-License-Identifier: Apache-2.0 */
#include "types.h"

#include <math.h>

#include "ast.h"
#include "op.h"

/* ---- tables ---- */

const ccn__op_info ccn__op_table[CCN__OP_COUNT] = {
#define CCN__K_NONE CCN__K_COUNT
#define OP(id, name, kind, nin, sig, prule, dtypes, result, build, eval, kernel, params, doc) \
  [CCN__OP_##id] = {name, \
                    CCN__KIND_##kind, \
                    nin, \
                    sig, \
                    CCN__PRULE_##prule, \
                    CCN__DT_##dtypes, \
                    CCN__RES_##result, \
                    CCN__K_##kernel, \
                    params, \
                    doc},
#include "ops.def"
#undef OP
};

const struct ccn__attr_info ccn__attr_table[CCN__ATTR_KEYS] = {
#define ATTR(id, name, kind) [CCN__A_##id] = {name, CCN__ATTR_##kind},
#include "attrs.def"
#undef ATTR
};

static const char *const redop_names[CCN__RED_COUNT] = {
  "none",
#define REDOP(id, name, doc) name,
#include "redops.def"
#undef REDOP
};

const char *ccn__redop_name(ccn__redop op) { return redop_names[op < CCN__RED_COUNT ? op : 0]; }

bool ccn__redop_find(const char *name, ccn__redop *out) {
  for (int i = 1; i < CCN__RED_COUNT; i++)
    if (strcmp(redop_names[i], name) == 0) return *out = (ccn__redop)i, true;
  return false;
}

bool ccn__op_has_name(ccn__op op) { return ccn__op_table[op].kind != CCN__KIND_STRUCT && op != CCN__OP_HOST; }

bool ccn__op_find(const char *name, ccn__op *out) {
  for (int i = 0; i < CCN__OP_COUNT; i++)
    if (ccn__op_table[i].name[0] == name[0] && ccn__op_has_name((ccn__op)i) &&
        strcmp(ccn__op_table[i].name, name) == 0)
      return *out = (ccn__op)i, true;
  return false;
}

const char *ccn__lit_function(ccn__kernel_id k) {
  for (int i = 0; i < CCN__OP_COUNT; i++)
    if (ccn__op_table[i].kind == CCN__KIND_ELEM && ccn__op_table[i].kernel == k) return ccn__op_table[i].name;
  return "?";
}

bool ccn__lit_function_find(const char *name, ccn__kernel_id *out) {
  ccn__op op;
  if (!ccn__op_find(name, &op) || ccn__op_table[op].kind != CCN__KIND_ELEM) return false;
  *out = (ccn__kernel_id)ccn__op_table[op].kernel;
  return ccn__lit_arity(*out) != 0;
}

ccn__redop ccn__op_redop(ccn__op op) {
  switch (op) {
  case CCN__OP_SUM: return CCN__RED_SUM;
  case CCN__OP_PROD: return CCN__RED_PROD;
  case CCN__OP_MAX:
  case CCN__OP_ANY: return CCN__RED_MAX;
  case CCN__OP_MIN:
  case CCN__OP_ALL: return CCN__RED_MIN;
  default: return CCN__RED_NONE;
  }
}

const ccn__attr *ccn__attr_find(ccn__attrs as, ccn__attr_key key) {
  for (uint32_t i = 0; i < as.n; i++)
    if (as.at[i].key == key) return &as.at[i];
  return NULL;
}

int64_t ccn__attr_int(ccn__attrs as, ccn__attr_key key, int64_t otherwise) {
  const ccn__attr *a = ccn__attr_find(as, key);
  return a ? a->i : otherwise;
}

/* ---- equality ---- */

static bool unit_equal(const ccn__dim *x, const ccn__dim *y) {
  if (!x) return !y || ccn__dim_is(y, 1);
  return y ? ccn__dim_equal(x, y) : ccn__dim_is(x, 1);
}

bool ccn__place_equal(const ccn__place *x, const ccn__place *y) {
  if (x->kind != y->kind) return false;
  switch (x->kind) {
  case CCN__SLICED: return x->dim == y->dim && unit_equal(x->unit, y->unit);
  case CCN__PARTIAL: return x->op == y->op;
  case CCN__AT: return x->coord == y->coord;
  default: return true;
  }
}

bool ccn__shape_equal(const ccn__type *x, const ccn__type *y) {
  if (x->rank != y->rank || x->bundle != y->bundle) return false;
  if (x->bundle && x->bundle_id != y->bundle_id) return false;
  for (uint32_t d = 0; d < x->rank; d++)
    if (!ccn__dim_equal(x->dim[d], y->dim[d])) return false;
  return true;
}

bool ccn__type_equal(const ccn__type *x, const ccn__type *y) {
  if (x->dtype != y->dtype || x->naxes != y->naxes || !ccn__shape_equal(x, y)) return false;
  for (uint32_t a = 0; a < x->naxes; a++)
    if (!ccn__place_equal(&x->place[a], &y->place[a])) return false;
  return true;
}

/* ---- mesh ---- */

uint32_t ccn__mesh_world(const ccn__mesh *m) {
  uint32_t n = 1;
  for (uint32_t a = 0; a < m->naxes; a++) n *= (uint32_t)m->size[a];
  return n;
}

uint32_t ccn__mesh_stride(const ccn__mesh *m, uint32_t axis) {
  uint32_t n = 1;
  for (uint32_t a = axis + 1; a < m->naxes; a++) n *= (uint32_t)m->size[a];
  return n;
}

uint32_t ccn__mesh_coord(const ccn__mesh *m, uint32_t rank, uint32_t axis) {
  return rank / ccn__mesh_stride(m, axis) % (uint32_t)m->size[axis];
}

void ccn__slice_range(int64_t extent, int64_t unit, int64_t n, int64_t r, int64_t *out_start,
                      int64_t *out_end) {
  if (unit < 1) unit = 1;
  int64_t blocks = extent / unit + (extent % unit != 0), c = blocks / n + (blocks % n != 0);
  /* r*c*unit saturated at extent, without overflow: compare in blocks */
  int64_t first = r * c, last = (r + 1) * c; /* blocks are at most 2^63/1, n and r at most 64 */
  *out_start = first >= blocks ? extent : first * unit;
  *out_end = last >= blocks ? extent : last * unit;
}

/* ---- literals ---- */

const ccn__lit *ccn__lit_int(ccn__arena *a, int64_t i) {
  ccn__lit *l = CCN__NEW(a, ccn__lit);
  l->kind = CCN__LIT_INT;
  l->i = i;
  return l;
}

const ccn__lit *ccn__lit_float(ccn__arena *a, double f) {
  ccn__lit *l = CCN__NEW(a, ccn__lit);
  l->kind = CCN__LIT_FLOAT;
  l->f = f;
  return l;
}

const ccn__lit *ccn__lit_bool(ccn__arena *a, bool b) {
  ccn__lit *l = CCN__NEW(a, ccn__lit);
  l->kind = CCN__LIT_BOOL;
  l->i = b;
  return l;
}

const ccn__lit *ccn__lit_dim(ccn__arena *a, const ccn__dim *d) {
  int64_t v;
  if (ccn__dim_is_const(d, &v)) return ccn__lit_int(a, v);
  ccn__lit *l = CCN__NEW(a, ccn__lit);
  l->kind = CCN__LIT_DIM;
  l->dim = d;
  return l;
}

static bool known(const ccn__lit *x) { return x->kind <= CCN__LIT_BOOL; }

static ccn__number of_int(int64_t i) { return (ccn__number){.i = i}; }
static ccn__number of_float(double f) { return (ccn__number){.is_float = true, .f = f}; }

static int64_t floor_div(int64_t x, int64_t y) {
  int64_t q = x / y;
  return x % y != 0 && (x % y < 0) != (y < 0) ? q - 1 : q;
}

/* x ** n for n >= 0; false on overflow. */
static bool int_power(int64_t x, int64_t n, int64_t *out) {
  int64_t r = 1;
  for (; n; n >>= 1) {
    if ((n & 1) && __builtin_mul_overflow(r, x, &r)) return false;
    if (n > 1 && __builtin_mul_overflow(x, x, &x)) return false;
  }
  *out = r;
  return true;
}

/* On floats literals fold by the same definitions as tensors of f64. */
static double by_kernel(ccn__kernel_id k, double x, double y) {
  double r = 0;
  if (k == CCN__K_POW && !ccn__kernel_exists(k, CCN__F64)) return pow(x, y);
  ccn__kernel(k, CCN__F64, &r, &x, &y, NULL, 1);
  return r;
}

static const char *int_binary(uint8_t op, int64_t x, int64_t y, ccn__number *out) {
  int64_t r = 0;
  bool over = false;
  switch (op) {
  case CCN__T_PLUS: over = __builtin_add_overflow(x, y, &r); break;
  case CCN__T_MINUS: over = __builtin_sub_overflow(x, y, &r); break;
  case CCN__T_STAR: over = __builtin_mul_overflow(x, y, &r); break;
  case CCN__T_SLASH:
    if (y == 0) return "divides by zero";
    *out = of_float((double)x / (double)y);
    return NULL;
  case CCN__T_SLASH2:
  case CCN__T_PERCENT:
    if (y == 0) return "divides by zero";
    if (y == -1) over = op == CCN__T_SLASH2 && x == INT64_MIN, r = op == CCN__T_SLASH2 && !over ? -x : 0;
    else r = op == CCN__T_SLASH2 ? floor_div(x, y) : x - floor_div(x, y) * y;
    break;
  case CCN__T_POW:
    if (y < 0) {
      if (x == 0) return "divides by zero";
      *out = of_float(by_kernel(CCN__K_POW, (double)x, (double)y));
      return NULL;
    }
    over = !int_power(x, y, &r);
    break;
  default: return "is not an operation on numbers";
  }
  if (over) return "is too large for 64 bits";
  *out = of_int(r);
  return NULL;
}

static const char *float_binary(uint8_t op, double x, double y, ccn__number *out) {
  switch (op) {
  case CCN__T_PLUS: *out = of_float(x + y); return NULL;
  case CCN__T_MINUS: *out = of_float(x - y); return NULL;
  case CCN__T_STAR: *out = of_float(x * y); return NULL;
  case CCN__T_SLASH: *out = of_float(x / y); return NULL;
  case CCN__T_SLASH2: *out = of_float(by_kernel(CCN__K_FLOORDIV, x, y)); return NULL;
  case CCN__T_PERCENT: *out = of_float(by_kernel(CCN__K_MOD, x, y)); return NULL;
  case CCN__T_POW: *out = of_float(by_kernel(CCN__K_POW, x, y)); return NULL;
  default: return "is not an operation on numbers";
  }
}

static bool compare(uint8_t op, double x, double y) {
  switch (op) {
  case CCN__T_LT: return x < y;
  case CCN__T_LE: return x <= y;
  case CCN__T_GT: return x > y;
  case CCN__T_GE: return x >= y;
  case CCN__T_EQ: return x == y;
  default: return x != y;
  }
}

static const char *binary_value(uint8_t op, ccn__number x, ccn__number y, ccn__number *out) {
  bool unknown = x.unknown || y.unknown;
  const char *e = NULL;
  if (op >= CCN__T_LT && op <= CCN__T_NE) {
    bool whole = !x.is_float && !y.is_float; /* exactly, as their order */
    *out = of_int(whole ? compare(op, (double)((x.i > y.i) - (x.i < y.i)), 0)
                        : compare(op, ccn__number_f64(x), ccn__number_f64(y)));
  } else if (op == CCN__T_AND || op == CCN__T_OR) {
    *out = of_int(op == CCN__T_AND ? x.i && y.i : x.i || y.i);
  } else if (x.is_float || y.is_float) {
    e = float_binary(op, ccn__number_f64(x), ccn__number_f64(y), out);
  } else {
    e = int_binary(op, x.i, y.i, out);
  }
  if (unknown && e) e = NULL, *out = of_int(1);
  out->unknown = unknown;
  return e;
}

static const char *unary_value(uint8_t op, ccn__number x, ccn__number *out) {
  *out = x;
  if (op == CCN__T_NOT) out->i = !x.i;
  else if (x.is_float) out->f = -x.f;
  else if (x.i == INT64_MIN) return "is too large for 64 bits";
  else out->i = -x.i;
  return NULL;
}

/* These give a whole number of whole ones, exactly, which f64 cannot say of 64 bits. */
static bool keeps_whole(ccn__kernel_id k) {
  return k == CCN__K_MAXIMUM || k == CCN__K_MINIMUM || k == CCN__K_ABS || k == CCN__K_SIGN ||
         k == CCN__K_RELU;
}

static const char *whole_call(ccn__kernel_id k, int64_t x, int64_t y, ccn__number *out) {
  if (k == CCN__K_ABS && x == INT64_MIN) return "is too large for 64 bits";
  *out = of_int(k == CCN__K_ABS                    ? (x < 0 ? -x : x)
                : k == CCN__K_SIGN                 ? (x > 0) - (x < 0)
                : k == CCN__K_RELU                 ? (x > 0 ? x : 0)
                : (x > y) == (k == CCN__K_MAXIMUM) ? x
                                                   : y);
  return NULL;
}

static const char *call_value(ccn__kernel_id k, ccn__number x, ccn__number y, ccn__number *out) {
  const char *e = NULL;
  if (keeps_whole(k) && !x.is_float && !y.is_float) e = whole_call(k, x.i, y.i, out);
  else *out = of_float(by_kernel(k, ccn__number_f64(x), ccn__number_f64(y)));
  out->unknown = x.unknown || y.unknown;
  return e;
}

uint32_t ccn__lit_arity(ccn__kernel_id k) {
  if (k == CCN__K_MAXIMUM || k == CCN__K_MINIMUM) return 2;
  return k > CCN__K_NEG && k <= CCN__K_EXPM1 && ccn__kernel_exists(k, CCN__F64) ? 1 : 0;
}

const char *ccn__lit_eval(const ccn__lit *x, const int64_t *value, ccn__number *out) {
  ccn__number l, r;
  const char *e;
  *out = of_int(1);
  switch (x->kind) {
  case CCN__LIT_INT:
  case CCN__LIT_BOOL: *out = of_int(x->i); return NULL;
  case CCN__LIT_FLOAT: *out = of_float(x->f); return NULL;
  case CCN__LIT_UNKNOWN: out->unknown = true; return NULL;
  case CCN__LIT_DIM:
    if (!value) return out->unknown = true, NULL;
    return ccn__dim_eval(x->dim, value, &out->i);
  case CCN__LIT_UNARY: e = ccn__lit_eval(x->x, value, &l); return e ? e : unary_value(x->op, l, out);
  case CCN__LIT_CALL:
    r = of_int(0);
    e = ccn__lit_eval(x->x, value, &l);
    if (!e && x->y) e = ccn__lit_eval(x->y, value, &r);
    return e ? e : call_value((ccn__kernel_id)x->op, l, r, out);
  default:
    e = ccn__lit_eval(x->x, value, &l);
    if (!e) e = ccn__lit_eval(x->y, value, &r);
    return e ? e : binary_value(x->op, l, r, out);
  }
}

static bool is_bool(const ccn__lit *x) {
  if (x->kind == CCN__LIT_UNARY || x->kind == CCN__LIT_BINARY) return x->op >= CCN__T_LT;
  return x->kind == CCN__LIT_BOOL;
}

static const ccn__lit *from_number(ccn__arena *a, ccn__number n, bool as_bool) {
  if (as_bool) return ccn__lit_bool(a, n.i != 0);
  return n.is_float ? ccn__lit_float(a, n.f) : ccn__lit_int(a, n.i);
}

enum { MAX_LIT_DEPTH = 100, MAX_LIT_NODES = 2000 };

/* Whether an operation on x and y (may be NULL) stays small. */
static bool fits(const ccn__lit *x, const ccn__lit *y, ccn__lit *l) {
  uint32_t depth = x->depth, nodes = 1u + x->nodes;
  if (y && y->depth > depth) depth = y->depth;
  if (y) nodes += y->nodes;
  if (depth >= MAX_LIT_DEPTH || nodes > MAX_LIT_NODES) return false;
  l->depth = (uint16_t)(depth + 1);
  l->nodes = (uint16_t)nodes;
  return true;
}

static const ccn__lit *node(ccn__arena *a, uint8_t kind, uint8_t op, const ccn__lit *x, const ccn__lit *y) {
  ccn__lit *l = CCN__NEW(a, ccn__lit);
  l->kind = kind;
  l->op = op;
  l->x = x;
  l->y = y;
  return fits(x, y, l) ? l : NULL;
}

static const ccn__lit *large(const ccn__lit *l, const char **out_error) {
  if (!l) *out_error = "is too long an expression of sizes";
  return l;
}

const ccn__lit *ccn__lit_unary(ccn__arena *a, uint8_t op, const ccn__lit *x, const char **out_error) {
  ccn__number n;
  *out_error = NULL;
  if ((op == CCN__T_NOT) != is_bool(x) && x->kind != CCN__LIT_UNKNOWN)
    return *out_error = "has an operand of the wrong kind", NULL;
  if (x->kind == CCN__LIT_UNKNOWN) return x;
  if (!known(x)) return large(node(a, CCN__LIT_UNARY, op, x, NULL), out_error);
  ccn__number v;
  (void)ccn__lit_eval(x, NULL, &n);
  *out_error = unary_value(op, n, &v);
  return *out_error ? NULL : from_number(a, v, op == CCN__T_NOT);
}

const ccn__lit *ccn__lit_binary(ccn__arena *a, uint8_t op, const ccn__lit *x, const ccn__lit *y,
                                const char **out_error) {
  bool logic = op == CCN__T_AND || op == CCN__T_OR;
  bool comparison = op >= CCN__T_LT && op <= CCN__T_NE;
  *out_error = NULL;
  if (x->kind == CCN__LIT_UNKNOWN || y->kind == CCN__LIT_UNKNOWN) return x->kind == CCN__LIT_UNKNOWN ? x : y;
  if (logic != (is_bool(x) && is_bool(y)) && !(comparison && is_bool(x) == is_bool(y)))
    return *out_error = "has an operand of the wrong kind", NULL;
  if (!known(x) || !known(y)) {
    if ((x->kind == CCN__LIT_DIM || x->kind == CCN__LIT_INT) &&
        (y->kind == CCN__LIT_DIM || y->kind == CCN__LIT_INT) &&
        (op == CCN__T_PLUS || op == CCN__T_MINUS || op == CCN__T_STAR)) {
      const ccn__dim *dx = x->kind == CCN__LIT_DIM ? x->dim : ccn__dim_const(a, x->i);
      const ccn__dim *dy = y->kind == CCN__LIT_DIM ? y->dim : ccn__dim_const(a, y->i);
      const ccn__dim *d = op == CCN__T_PLUS    ? ccn__dim_add(a, dx, dy)
                          : op == CCN__T_MINUS ? ccn__dim_sub(a, dx, dy)
                                               : ccn__dim_mul(a, dx, dy);
      if (d) return ccn__lit_dim(a, d);
    }
    return large(node(a, CCN__LIT_BINARY, op, x, y), out_error);
  }
  ccn__number nx, ny, v;
  (void)ccn__lit_eval(x, NULL, &nx);
  (void)ccn__lit_eval(y, NULL, &ny);
  *out_error = binary_value(op, nx, ny, &v);
  return *out_error ? NULL : from_number(a, v, logic || comparison);
}

const ccn__lit *ccn__lit_call(ccn__arena *a, ccn__kernel_id k, const ccn__lit *x, const ccn__lit *y,
                              const char **out_error) {
  ccn__number nx, ny = of_int(0), v;
  *out_error = NULL;
  if (is_bool(x) || (y && is_bool(y))) return *out_error = "has an operand of the wrong kind", NULL;
  if (x->kind == CCN__LIT_UNKNOWN || (y && y->kind == CCN__LIT_UNKNOWN)) {
    if (keeps_whole(k)) return x->kind == CCN__LIT_UNKNOWN ? x : y;
    return large(node(a, CCN__LIT_CALL, (uint8_t)k, x, y), out_error); /* a fraction for certain */
  }
  if (!known(x) || (y && !known(y))) return large(node(a, CCN__LIT_CALL, (uint8_t)k, x, y), out_error);
  (void)ccn__lit_eval(x, NULL, &nx);
  if (y) (void)ccn__lit_eval(y, NULL, &ny);
  *out_error = call_value(k, nx, ny, &v);
  return *out_error ? NULL : from_number(a, v, false);
}

/* ---- numbers into dtypes ---- */

const char *ccn__number_fits(ccn__number n, ccn__dtype t) {
  unsigned char bytes[8];
  if (n.unknown) return NULL;
  if (t == CCN__BOOL) return n.is_float || (n.i != 0 && n.i != 1) ? "is neither true nor false" : NULL;
  if (ccn__dtype_is_float(t)) {
    double want = ccn__number_f64(n);
    ccn__number_store(n, t, bytes);
    double got = ccn__load_f64(t, bytes);
    if (isinf(got) && !isinf(want)) return "becomes infinite";
    if (got == 0 && want != 0) return "becomes 0";
    if (!n.is_float) {
      /* a whole number must keep every bit: beyond 2^53 compare as integers */
      if (got >= 9223372036854775808.0 || (int64_t)got != n.i) return "loses an integer bit";
    }
    return NULL;
  }
  int64_t i = n.i;
  if (n.is_float) {
    if (!(n.f >= -9223372036854775808.0 && n.f < 9223372036854775808.0) || n.f != floor(n.f))
      return "is not a whole number";
    i = (int64_t)n.f;
  }
  ccn__store_i64(t, bytes, i);
  return ccn__load_i64(t, bytes) == i ? NULL : "is out of range";
}

void ccn__number_store(ccn__number n, ccn__dtype t, void *out) {
  if (n.is_float) ccn__store_f64(t, out, n.f);
  else ccn__store_i64(t, out, n.i);
}
