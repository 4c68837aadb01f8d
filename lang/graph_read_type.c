/* graph_read_type.c: extents, literals and types of graph text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph_read.h"

#include <math.h>

/* ---- symbols and extents ------------------------------------------------------------------------------- */

/* "size(dp)", "total(0)", "count(0)", with r->tok at the word; false if it is just a name. */
bool ccn__read_derived(ccn__reader *r, ccn__symbol_kind *kind, uint32_t *index) {
  static const char *const word[] = {
    [CCN__SYM_SIZE] = "size", [CCN__SYM_TOTAL] = "total", [CCN__SYM_COUNT] = "count"};
  uint32_t k = CCN__SYM_SIZE;
  while (k <= CCN__SYM_COUNT && !ccn__read_is_word(r, word[k])) k++;
  if (k > CCN__SYM_COUNT) return false;
  ccn__read_next(r);
  ccn__read_expect(r, '(');
  *kind = (ccn__symbol_kind)k;
  *index = k == CCN__SYM_SIZE ? ccn__read_axis(r) : ccn__read_index(r, BUNDLES, "the number of a bundle");
  ccn__read_expect(r, ')');
  return true;
}

static uint32_t read_symbol(ccn__reader *r) {
  ccn__symbol_kind kind = CCN__SYM_DIM;
  uint32_t index = 0;
  ccn__span span = r->tok.span;
  ccn__name name = NULL;
  if (!ccn__read_derived(r, &kind, &index)) name = ccn__read_name(r, "a symbol");
  uint32_t i = ccn__graph_find_symbol(r->g, name, kind, index);
  if (i == UINT32_MAX)
    FAIL(r, 801, span, "", "%s is not among the dims of the graph", name ? name : "this symbol");
  return i;
}

static const ccn__dim *dim_sum(ccn__reader *r, uint32_t depth);

static const ccn__dim *checked(ccn__reader *r, ccn__span span, const ccn__dim *d) {
  if (!d) FAIL(r, 6, span, "", "the extent does not fit 64 bits, or does not divide");
  if (d->n > DIM_TERMS || ++r->operators > DIM_OPERATORS) FAIL(r, 8, span, "", "the extent is too long");
  return d;
}

static const ccn__dim *dim_factor(ccn__reader *r, uint32_t depth) {
  ccn__span span = r->tok.span;
  if (depth > DIM_DEPTH) FAIL(r, 8, span, "", "the extent is nested too deeply");
  if (ccn__read_accept(r, '-'))
    return checked(r, span,
                   ccn__dim_sub(&r->scratch, ccn__dim_const(&r->scratch, 0), dim_factor(r, depth + 1)));
  if (ccn__read_accept(r, '(')) {
    const ccn__dim *d = dim_sum(r, depth + 1);
    ccn__read_expect(r, ')');
    return d;
  }
  if (r->tok.kind == T_INT) return ccn__dim_const(&r->scratch, ccn__read_int(r));
  if (r->tok.kind != T_NAME && r->tok.kind != T_STRING) ccn__read_unexpected(r, "an extent");
  return ccn__dim_symbol(&r->scratch, read_symbol(r));
}

static const ccn__dim *dim_product(ccn__reader *r, uint32_t depth) {
  const ccn__dim *d = dim_factor(r, depth);
  while (r->tok.kind == '*' || r->tok.kind == '/') {
    ccn__span span = r->tok.span;
    bool times = r->tok.kind == '*';
    ccn__read_next(r);
    const ccn__dim *y = dim_factor(r, depth);
    d = checked(r, span, times ? ccn__dim_mul(&r->scratch, d, y) : ccn__dim_div(&r->scratch, d, y));
  }
  return d;
}

static const ccn__dim *dim_sum(ccn__reader *r, uint32_t depth) {
  const ccn__dim *d = dim_product(r, depth);
  while (r->tok.kind == '+' || r->tok.kind == '-') {
    ccn__span span = r->tok.span;
    bool plus = r->tok.kind == '+';
    ccn__read_next(r);
    const ccn__dim *y = dim_product(r, depth);
    d = checked(r, span, plus ? ccn__dim_add(&r->scratch, d, y) : ccn__dim_sub(&r->scratch, d, y));
  }
  return d;
}

static const ccn__dim *copy_dim(ccn__arena *a, const ccn__dim *d) {
  ccn__dim *p = CCN__NEW(a, ccn__dim);
  ccn__monomial *t = CCN__NEWN(a, ccn__monomial, d->n);
  for (uint32_t i = 0; i < d->n; i++) {
    uint32_t *sym = CCN__NEWN(a, uint32_t, d->term[i].degree);
    if (d->term[i].degree) memcpy(sym, d->term[i].sym, d->term[i].degree * sizeof *sym);
    t[i] = (ccn__monomial){d->term[i].coef, d->term[i].degree, sym};
  }
  *p = (ccn__dim){d->den, d->n, t};
  return p;
}

const ccn__dim *ccn__read_dim(ccn__reader *r) {
  r->operators = 0;
  const ccn__dim *d = copy_dim(r->a, dim_sum(r, 0));
  ccn__arena_free(&r->scratch);
  return d;
}

/* ---- literals ------------------------------------------------------------------------------------------ */

static ccn__lit *new_lit(ccn__reader *r, ccn__lit_kind kind) {
  ccn__lit *l = CCN__NEW(r->a, ccn__lit);
  l->kind = (uint8_t)kind;
  return l;
}

static const ccn__lit *lit_float(ccn__reader *r, bool minus, double x) {
  ccn__lit *l = new_lit(r, CCN__LIT_FLOAT);
  l->f = minus ? -x : x;
  return l;
}

/* nan, or nan(0x...) with the bits of its fraction. */
static const ccn__lit *lit_nan(ccn__reader *r, bool minus) {
  uint64_t bits = UINT64_C(0x8000000000000);
  if (ccn__read_accept(r, '(')) {
    if (r->tok.kind != T_INT || r->tok.i == 0 || r->tok.i >> 52)
      ccn__read_unexpected(r, "the fraction of a NaN");
    bits = r->tok.i;
    ccn__read_next(r);
    ccn__read_expect(r, ')');
  }
  bits |= UINT64_C(0x7ff) << 52 | (uint64_t)minus << 63;
  ccn__lit *l = new_lit(r, CCN__LIT_FLOAT);
  memcpy(&l->f, &bits, sizeof bits);
  return l;
}

static const ccn__lit *lit_bracketed(ccn__reader *r, uint32_t depth) {
  if (depth > LIT_DEPTH) FAIL(r, 8, r->tok.span, "", "the literal is nested too deeply");
  ccn__read_expect(r, '(');
  const ccn__lit *l = ccn__read_lit_at(r, depth + 1);
  ccn__read_expect(r, ')');
  return l;
}

static const ccn__lit *lit_unary(ccn__reader *r, ccn__oper op, uint32_t depth) {
  ccn__lit *l = new_lit(r, CCN__LIT_UNARY);
  l->op = (uint8_t)op;
  l->x = lit_bracketed(r, depth);
  return l;
}

static const ccn__lit *lit_signed(ccn__reader *r, uint32_t depth) {
  ccn__span span = r->tok.span;
  bool minus = ccn__read_accept(r, '-');
  if (minus && r->tok.kind == '(') return lit_unary(r, CCN__T_MINUS, depth);
  if (r->tok.kind == T_FLOAT) {
    double x = r->tok.f;
    ccn__read_next(r);
    return lit_float(r, minus, x);
  }
  if (ccn__read_accept_word(r, "inf")) return lit_float(r, minus, INFINITY);
  if (ccn__read_accept_word(r, "nan")) return lit_nan(r, minus);
  if (r->tok.kind != T_INT) ccn__read_unexpected(r, "a literal");
  if (r->tok.i > (uint64_t)INT64_MAX + minus) FAIL(r, 6, span, "", "the number is too large");
  ccn__lit *l = new_lit(r, CCN__LIT_INT);
  l->i = minus ? (int64_t)(0 - r->tok.i) : (int64_t)r->tok.i;
  ccn__read_next(r);
  return l;
}

/* sqrt(N): behind the word, at its bracket. */
static const ccn__lit *lit_call(ccn__reader *r, ccn__kernel_id k, uint32_t depth) {
  if (depth > LIT_DEPTH) FAIL(r, 8, r->tok.span, "", "the literal is nested too deeply");
  ccn__lit *l = new_lit(r, CCN__LIT_CALL);
  l->op = (uint8_t)k;
  ccn__read_expect(r, '(');
  l->x = ccn__read_lit_at(r, depth + 1);
  if (ccn__lit_arity(k) == 2) {
    ccn__read_expect(r, ',');
    l->y = ccn__read_lit_at(r, depth + 1);
  }
  ccn__read_expect(r, ')');
  return l;
}

static const ccn__lit *lit_word(ccn__reader *r, uint32_t depth) {
  ccn__lit *l;
  if (ccn__read_is_word(r, "true") || ccn__read_is_word(r, "false")) {
    l = new_lit(r, CCN__LIT_BOOL);
    l->i = ccn__read_is_word(r, "true");
    ccn__read_next(r);
    return l;
  }
  if (ccn__read_accept_word(r, "unknown")) return new_lit(r, CCN__LIT_UNKNOWN);
  if (ccn__read_accept_word(r, "not")) return lit_unary(r, CCN__T_NOT, depth);
  ccn__kernel_id k;
  if (r->tok.kind == T_NAME && ccn__read_peek_char(r, 0) == '(' && ccn__lit_function_find(r->tok.name, &k)) {
    ccn__read_next(r);
    return lit_call(r, k, depth);
  }
  l = new_lit(r, CCN__LIT_DIM);
  l->dim = ccn__dim_symbol(r->a, read_symbol(r));
  return l;
}

static const ccn__lit *lit_atom(ccn__reader *r, uint32_t depth) {
  if (r->tok.kind == '(') return lit_bracketed(r, depth);
  if (ccn__read_is_word(r, "inf") || ccn__read_is_word(r, "nan")) return lit_signed(r, depth);
  if (r->tok.kind == T_NAME || r->tok.kind == T_STRING) return lit_word(r, depth);
  if (!ccn__read_accept(r, '[')) return lit_signed(r, depth);
  ccn__lit *l = new_lit(r, CCN__LIT_DIM);
  l->dim = ccn__read_dim(r);
  ccn__read_expect(r, ']');
  return l;
}

static ccn__oper binary_operator(const ccn__reader *r) {
  char s[3] = {0};
  if (r->tok.kind == T_NAME)
    return ccn__read_is_word(r, "and") ? CCN__T_AND : ccn__read_is_word(r, "or") ? CCN__T_OR : CCN__T_NONE;
  if (r->tok.kind < T_END) s[0] = (char)r->tok.kind;
  else s[0] = (char)(r->tok.kind >> 8), s[1] = (char)r->tok.kind;
  for (int i = CCN__T_NONE + 1; i < CCN__T_NOT; i++)
    if (strcmp(ccn__oper_text((ccn__oper)i), s) == 0) return (ccn__oper)i;
  return CCN__T_NONE;
}

const ccn__lit *ccn__read_lit_at(ccn__reader *r, uint32_t depth) {
  const ccn__lit *x = lit_atom(r, depth);
  ccn__oper op = binary_operator(r);
  if (op == CCN__T_NONE) return x;
  ccn__read_next(r);
  ccn__lit *l = new_lit(r, CCN__LIT_BINARY);
  l->op = (uint8_t)op;
  l->x = x;
  l->y = lit_atom(r, depth);
  return l;
}

/* ---- types --------------------------------------------------------------------------------------------- */

static uint8_t read_dtype(ccn__reader *r) {
  ccn__dtype t;
  if (r->tok.kind != T_NAME) ccn__read_unexpected(r, "a dtype");
  if (!ccn__dtype_find(r->tok.name, &t) || !ccn__dtype_size(t))
    FAIL(r, 100, r->tok.span, "", "there is no dtype `%s`", r->tok.name);
  ccn__read_next(r);
  return (uint8_t)t;
}

static void read_dims(ccn__reader *r, ccn__type *t) {
  do {
    if (t->rank == CCN__MAX_RANK) FAIL(r, 208, r->tok.span, "", "more than %d dims", CCN__MAX_RANK);
    t->dim[t->rank++] = ccn__read_dim(r);
  } while (ccn__read_accept(r, ','));
  ccn__read_expect(r, ']');
}

/* Behind the `[`: f32[*]] of 0, or f32] of 0. The dim is the symbol that the bundle has for it. */
static void read_bundle(ccn__reader *r, ccn__type *t) {
  ccn__span span = r->tok.span;
  t->dtype = read_dtype(r);
  t->bundle = CCN__BUNDLE_SCALARS;
  if (ccn__read_accept(r, '[')) {
    ccn__read_expect(r, '*');
    ccn__read_expect(r, ']');
    t->bundle = CCN__BUNDLE_TENSORS;
  }
  ccn__read_expect(r, ']');
  if (!ccn__read_accept_word(r, "of")) ccn__read_unexpected(r, "`of` and the number of the bundle");
  t->bundle_id = ccn__read_index(r, BUNDLES, "the number of a bundle");
  ccn__symbol_kind kind = t->bundle == CCN__BUNDLE_TENSORS ? CCN__SYM_TOTAL : CCN__SYM_COUNT;
  uint32_t sym = ccn__graph_find_symbol(r->g, NULL, kind, t->bundle_id);
  if (sym == UINT32_MAX)
    FAIL(r, 801, span, "", "%s(%u) is not among the dims of the graph",
         kind == CCN__SYM_TOTAL ? "total" : "count", (unsigned)t->bundle_id);
  t->rank = 1;
  t->dim[0] = ccn__dim_symbol(r->a, sym);
}

static ccn__place read_sliced(ccn__reader *r) {
  ccn__place p = {.kind = CCN__SLICED};
  ccn__read_expect(r, '(');
  p.dim = (uint16_t)ccn__read_index(r, CCN__MAX_RANK, "the dim");
  if (ccn__read_accept(r, ',')) {
    if (!ccn__read_accept_word(r, "unit")) ccn__read_unexpected(r, "`unit`");
    ccn__read_expect(r, ':');
    p.unit = ccn__read_dim(r);
  }
  ccn__read_expect(r, ')');
  return p;
}

ccn__redop ccn__read_redop(ccn__reader *r) {
  ccn__redop op;
  if (r->tok.kind != T_NAME) ccn__read_unexpected(r, "a reduction operator");
  if (!ccn__redop_find(r->tok.name, &op))
    FAIL(r, 801, r->tok.span, "", "there is no reduction operator `%s`", r->tok.name);
  ccn__read_next(r);
  return op;
}

static int32_t read_coord(ccn__reader *r) {
  ccn__span span = r->tok.span;
  int64_t i = ccn__read_int(r);
  if (i < INT32_MIN || i > INT32_MAX) FAIL(r, 308, span, "", "the coordinate is out of range");
  return (int32_t)i;
}

/* False: no placement stands here. */
static bool read_place(ccn__reader *r, ccn__place *out) {
  *out = (ccn__place){.kind = CCN__LOCAL};
  if (ccn__read_accept_word(r, "local")) return true;
  if (ccn__read_accept_word(r, "sliced")) {
    *out = read_sliced(r);
    return true;
  }
  bool owed = ccn__read_is_word(r, "partial");
  if (!owed && !ccn__read_is_word(r, "at")) return false;
  ccn__read_next(r);
  ccn__read_expect(r, '(');
  if (owed) *out = (ccn__place){.kind = CCN__PARTIAL, .op = (uint8_t)ccn__read_redop(r)};
  else *out = (ccn__place){.kind = CCN__AT, .coord = read_coord(r)};
  ccn__read_expect(r, ')');
  return true;
}

void ccn__read_type(ccn__reader *r, ccn__type *t) {
  *t = (ccn__type){.naxes = (uint8_t)r->g->mesh.naxes};
  if (ccn__read_accept(r, '[')) {
    read_bundle(r, t);
  } else {
    t->dtype = read_dtype(r);
    if (ccn__read_accept(r, '[')) read_dims(r, t);
  }
  ccn__place p;
  while (read_place(r, &p)) {
    if (!ccn__read_accept_word(r, "over")) ccn__read_unexpected(r, "`over` and a mesh axis");
    ccn__span span = r->tok.span;
    uint32_t axis = ccn__read_axis(r);
    if (t->place[axis].kind != CCN__REPLICATED) FAIL(r, 11, span, "", "a second placement over this axis");
    t->place[axis] = p;
  }
}
