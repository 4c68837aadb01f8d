/* dims.c: arithmetic on extents (dims.h). Terms are few, so sorting by insertion is right.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dims.h"

typedef struct terms {
  ccn__monomial *at;
  uint32_t n, cap;
  ccn__arena *arena;
  bool overflow;
} terms;

/* Order of monomials: by degree, then symbol by symbol (the smaller symbol first). > 0: x before y. */
static int monomial_order(const ccn__monomial *x, const ccn__monomial *y) {
  if (x->degree != y->degree) return x->degree > y->degree ? 1 : -1;
  for (uint32_t i = 0; i < x->degree; i++)
    if (x->sym[i] != y->sym[i]) return x->sym[i] < y->sym[i] ? 1 : -1;
  return 0;
}

static void terms_init(terms *t, ccn__arena *a, uint32_t cap) {
  *t = (terms){.arena = a, .cap = cap, .at = CCN__NEWN(a, ccn__monomial, cap ? cap : 1)};
}

static void terms_add(terms *t, ccn__monomial m) {
  uint32_t i = 0;
  if (m.coef == 0) return;
  while (i < t->n && monomial_order(&t->at[i], &m) > 0) i++;
  if (i < t->n && monomial_order(&t->at[i], &m) == 0) {
    if (__builtin_add_overflow(t->at[i].coef, m.coef, &t->at[i].coef)) t->overflow = true;
    if (t->at[i].coef == 0) {
      memmove(t->at + i, t->at + i + 1, (t->n - i - 1) * sizeof *t->at);
      t->n--;
    }
    return;
  }
  memmove(t->at + i + 1, t->at + i, (t->n - i) * sizeof *t->at);
  t->at[i] = m;
  t->n++;
}

static int64_t gcd(int64_t x, int64_t y) {
  uint64_t a = x < 0 ? -(uint64_t)x : (uint64_t)x, b = y < 0 ? -(uint64_t)y : (uint64_t)y;
  while (b) {
    uint64_t r = a % b;
    a = b;
    b = r;
  }
  return (int64_t)a;
}

static const ccn__dim *finish(terms *t, int64_t den) {
  if (t->overflow || den == INT64_MIN) return NULL;
  int64_t g = den;
  for (uint32_t i = 0; i < t->n; i++) {
    if (t->at[i].coef == INT64_MIN) return NULL;
    g = gcd(g, t->at[i].coef);
  }
  if (t->n == 0) g = den;
  if (den < 0) g = g < 0 ? g : -g;
  ccn__dim *d = CCN__NEW(t->arena, ccn__dim);
  d->den = den / g;
  d->n = t->n;
  for (uint32_t i = 0; i < t->n; i++) t->at[i].coef /= g;
  d->term = t->at;
  return d;
}

const ccn__dim *ccn__dim_const(ccn__arena *a, int64_t value) {
  terms t;
  terms_init(&t, a, 1);
  terms_add(&t, (ccn__monomial){.coef = value});
  ccn__dim *d = CCN__NEW(a, ccn__dim);
  *d = (ccn__dim){.den = 1, .n = t.n, .term = t.at};
  return d;
}

const ccn__dim *ccn__dim_symbol(ccn__arena *a, uint32_t sym) {
  uint32_t *s = CCN__NEW(a, uint32_t);
  *s = sym;
  terms t;
  terms_init(&t, a, 1);
  terms_add(&t, (ccn__monomial){.coef = 1, .degree = 1, .sym = s});
  return finish(&t, 1);
}

static bool scaled(terms *t, const ccn__dim *x, int64_t factor) {
  for (uint32_t i = 0; i < x->n; i++) {
    ccn__monomial m = x->term[i];
    if (__builtin_mul_overflow(m.coef, factor, &m.coef)) return false;
    terms_add(t, m);
  }
  return true;
}

static const ccn__dim *combine(ccn__arena *a, const ccn__dim *x, const ccn__dim *y, int64_t sign) {
  int64_t g = gcd(x->den, y->den), fx = y->den / g, fy = x->den / g, den;
  if (__builtin_mul_overflow(x->den, fx, &den)) return NULL;
  terms t;
  terms_init(&t, a, x->n + y->n);
  if (!scaled(&t, x, fx) || !scaled(&t, y, sign * fy)) return NULL;
  return finish(&t, den);
}

const ccn__dim *ccn__dim_add(ccn__arena *a, const ccn__dim *x, const ccn__dim *y) {
  return combine(a, x, y, 1);
}
const ccn__dim *ccn__dim_sub(ccn__arena *a, const ccn__dim *x, const ccn__dim *y) {
  return combine(a, x, y, -1);
}

static bool monomial_mul(ccn__arena *a, const ccn__monomial *x, const ccn__monomial *y, ccn__monomial *out) {
  uint32_t n = x->degree + y->degree, i = 0, j = 0;
  if (n > 64 || __builtin_mul_overflow(x->coef, y->coef, &out->coef)) return false;
  uint32_t *s = CCN__NEWN(a, uint32_t, n ? n : 1);
  for (uint32_t k = 0; k < n; k++)
    s[k] = j >= y->degree || (i < x->degree && x->sym[i] <= y->sym[j]) ? x->sym[i++] : y->sym[j++];
  out->degree = n;
  out->sym = s;
  return true;
}

const ccn__dim *ccn__dim_mul(ccn__arena *a, const ccn__dim *x, const ccn__dim *y) {
  int64_t den;
  if (x->n > 64 || y->n > 64 || __builtin_mul_overflow(x->den, y->den, &den)) return NULL;
  terms t;
  terms_init(&t, a, x->n * y->n);
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t j = 0; j < y->n; j++) {
      ccn__monomial m;
      if (!monomial_mul(a, &x->term[i], &y->term[j], &m)) return NULL;
      terms_add(&t, m);
    }
  return finish(&t, den);
}

/* out = x / y as monomials when every symbol of y is in x (coefficients are the caller's business). */
static bool monomial_div(ccn__arena *a, const ccn__monomial *x, const ccn__monomial *y, ccn__monomial *out) {
  if (x->degree < y->degree) return false;
  uint32_t *s = CCN__NEWN(a, uint32_t, x->degree + 1), n = 0, j = 0;
  for (uint32_t i = 0; i < x->degree; i++) {
    if (j < y->degree && x->sym[i] == y->sym[j]) j++;
    else s[n++] = x->sym[i];
  }
  out->degree = n;
  out->sym = s;
  return j == y->degree;
}

const ccn__dim *ccn__dim_div(ccn__arena *a, const ccn__dim *x, const ccn__dim *y) {
  if (y->n == 0) return NULL;
  /* Long division by the leading term; exact or nothing. A graded order is a monomial order, so it terminates. */
  const ccn__dim *rest = x, *quotient = ccn__dim_const(a, 0);
  for (int guard = 0; rest && rest->n; guard++) {
    ccn__monomial m;
    if (guard > 64 || !monomial_div(a, &rest->term[0], &y->term[0], &m)) return NULL;
    /* coefficient (rest.coef / rest.den) / (y.coef / y.den) */
    int64_t num, den;
    if (__builtin_mul_overflow(rest->term[0].coef, y->den, &num) ||
        __builtin_mul_overflow(rest->den, y->term[0].coef, &den))
      return NULL;
    m.coef = num;
    terms t;
    terms_init(&t, a, 1);
    terms_add(&t, m);
    const ccn__dim *q = finish(&t, den), *sub = q ? ccn__dim_mul(a, q, y) : NULL;
    if (!sub) return NULL;
    quotient = ccn__dim_add(a, quotient, q);
    rest = ccn__dim_sub(a, rest, sub);
    if (!quotient || !rest) return NULL;
  }
  return rest ? quotient : NULL;
}

bool ccn__dim_equal(const ccn__dim *x, const ccn__dim *y) {
  if (x == y) return true;
  if (!x || !y || x->den != y->den || x->n != y->n) return false;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->term[i].coef != y->term[i].coef || monomial_order(&x->term[i], &y->term[i]) != 0) return false;
  return true;
}

bool ccn__dim_is_const(const ccn__dim *x, int64_t *out) {
  if (x->den != 1 || x->n > 1 || (x->n == 1 && x->term[0].degree)) return false;
  if (out) *out = x->n ? x->term[0].coef : 0;
  return true;
}

bool ccn__dim_is(const ccn__dim *x, int64_t value) {
  int64_t v;
  return ccn__dim_is_const(x, &v) && v == value;
}

bool ccn__dim_is_whole(const ccn__dim *x) { return x->den == 1; }

bool ccn__dim_is_symbol(const ccn__dim *x, uint32_t *out) {
  if (x->den != 1 || x->n != 1 || x->term[0].coef != 1 || x->term[0].degree != 1) return false;
  if (out) *out = x->term[0].sym[0];
  return true;
}

bool ccn__dim_uses(const ccn__dim *x, uint32_t sym) {
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t j = 0; j < x->term[i].degree; j++)
      if (x->term[i].sym[j] == sym) return true;
  return false;
}

const char *ccn__dim_eval(const ccn__dim *x, const int64_t *value, int64_t *out) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t p = x->term[i].coef;
    for (uint32_t j = 0; j < x->term[i].degree; j++)
      if (__builtin_mul_overflow(p, value[x->term[i].sym[j]], &p)) return "is too large";
    if (__builtin_add_overflow(sum, p, &sum)) return "is too large";
  }
  if (sum % x->den) return "does not divide";
  *out = sum / x->den;
  return NULL;
}

const ccn__dim *ccn__dim_substitute(ccn__arena *a, const ccn__dim *x, const ccn__dim *const *by,
                                    uint32_t nby) {
  const ccn__dim *sum = ccn__dim_const(a, 0);
  for (uint32_t i = 0; sum && i < x->n; i++) {
    const ccn__dim *p = ccn__dim_const(a, x->term[i].coef);
    for (uint32_t j = 0; p && j < x->term[i].degree; j++) {
      uint32_t s = x->term[i].sym[j];
      p = ccn__dim_mul(a, p, s < nby && by[s] ? by[s] : ccn__dim_symbol(a, s));
    }
    sum = p ? ccn__dim_add(a, sum, p) : NULL;
  }
  return sum ? ccn__dim_div(a, sum, ccn__dim_const(a, x->den)) : NULL;
}

void ccn__dim_print(const ccn__dim *x, const char *(*name)(void *user, uint32_t sym), void *user,
                    ccn__text *out) {
  bool parens = x->den != 1 && x->n > 1;
  if (x->n == 0) ccn__text_puts(out, "0");
  if (parens) ccn__text_putc(out, '(');
  for (uint32_t i = 0; i < x->n; i++) {
    const ccn__monomial *m = &x->term[i];
    int64_t c = m->coef;
    if (i) {
      ccn__text_puts(out, c < 0 ? " - " : " + ");
      if (c < 0) c = -c;
    }
    if (m->degree == 0 || c != 1) {
      if (c == -1 && m->degree) ccn__text_putc(out, '-');
      else ccn__text_printf(out, "%lld%s", (long long)c, m->degree ? "*" : "");
    }
    for (uint32_t j = 0; j < m->degree; j++)
      ccn__text_printf(out, "%s%s", j ? "*" : "", name(user, m->sym[j]));
  }
  if (parens) ccn__text_putc(out, ')');
  if (x->den != 1) ccn__text_printf(out, "/%lld", (long long)x->den);
}
