/* graph_read.c: reads the text form of graphs (graph_text.c prints it), then asks the verifier.
 *
 *   file      = { graph }
 *   graph     = "graph" [name] "{" ["mesh" axis {"," axis}] ["dim" symbol {"," symbol}] ["bundles" int]
 *               { node } { "need" constraint } "return" [id | "(" [ids] ")"] "}"
 *   axis      = name [":" int]
 *   symbol    = name | ("size" "(" name ")" | "total" "(" int ")" | "count" "(" int ")") [string]
 *   node      = id [string] ["(" name ")"] "=" op [ids] ["{" attr {"," attr} "}"] [":" type]
 *               ["{" { node } ["yield" [ids]] "}"]
 *   attr      = name ":" value                       what a value is says attrs.def
 *   type      = (dtype ["[" dims "]"] | "[" dtype ["[" "*" "]"] "]" "of" int) { place "over" name }
 *   place     = "sliced" "(" int ["," "unit" ":" dim] ")" | "local" | "partial" "(" redop ")"
 *               | "at" "(" int ")"
 *   dim       = sums, differences, products and quotients of ints and symbols
 *   lit       = atom | atom operator atom | "-" "(" lit ")" | "not" "(" lit ")"
 *   atom      = ["-"] (int | float | "inf" | "nan" ["(" bits ")"]) | "true" | "false" | "unknown" | symbol
 *               | "[" dim "]" | "(" lit ")"
 *   constraint = ("whole" dim | dim ("==" | "<" | "<=" | "multiple" "of") dim | "bundles" int "," int)
 *               ["(" code ")"]
 *   name      = letters, digits, _ | string
 *   id        = "%" int                  nodes are numbered from 0 in the order of the text
 *
 * Floats are hexadecimal, comments go from # to the end of the line, and the operands of a node stand on its
 * line. The text may come from anywhere: what is wrong gets one diagnostic, and reading ends there.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "ast.h"
#include "graph.h"

enum {
  REGION_DEPTH = 64,
  LIT_DEPTH = 1000,
  DIM_DEPTH = 64,
  DIM_OPERATORS = 1024, /* of one extent: bounds the memory that multiplying out takes */
  DIM_TERMS = 256,
  SYMBOLS = 4096,
  BUNDLES = 4096
};

/* Kinds of tokens; punctuation is its own character, or two. */
enum { T_END = 256, T_NAME, T_ID, T_INT, T_FLOAT, T_STRING };
#define TWO(a, b) ((a) << 8 | (b))

typedef struct token {
  int kind;
  bool first_of_line;
  ccn__span span;
  uint64_t i;     /* INT, ID */
  double f;       /* FLOAT */
  ccn__name name; /* NAME, STRING (unescaped) */
} token;

typedef struct reader {
  ccn__arena *a;
  ccn__arena scratch; /* strings, and extents while they are computed */
  ccn__names *names;
  ccn__diags *ds;
  uint32_t source;
  const char *text;
  uint32_t size, pos;
  token tok;
  ccn__graph *g;
  uint32_t operators; /* of the extent that is being read */
} reader;

#define FAIL(r, code, span, label, ...) \
  (ccn__error((r)->ds, (code), (span), (label), __VA_ARGS__), ccn__throw((r)->a->heap, CCN_ERROR))

/* ---- tokens -------------------------------------------------------------------------------------------- */

static ccn__span span_from(const reader *r, uint32_t start) {
  return (ccn__span){r->source, start, r->pos > start ? r->pos : start};
}

static int peek_char(const reader *r, uint32_t ahead) {
  return r->size - r->pos > ahead ? (unsigned char)r->text[r->pos + ahead] : -1;
}

static bool digit(int c) { return c >= '0' && c <= '9'; }
static bool letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static int hex_digit(int c) {
  if (digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void skip_blanks(reader *r) {
  r->tok.first_of_line = r->pos == 0;
  for (;; r->pos++) {
    int c = peek_char(r, 0);
    if (c == '#') {
      while (peek_char(r, 0) >= 0 && peek_char(r, 0) != '\n') r->pos++;
      c = peek_char(r, 0);
    }
    if (c == '\n') r->tok.first_of_line = true;
    else if (c != ' ' && c != '\t' && c != '\r') return;
  }
}

static char read_escape(reader *r, uint32_t start) {
  int c = peek_char(r, 1);
  if (c == '"' || c == '\\') {
    r->pos += 2;
    return (char)c;
  }
  int high = c == 'x' ? hex_digit(peek_char(r, 2)) : -1, low = high < 0 ? -1 : hex_digit(peek_char(r, 3));
  if (low < 0 || high * 16 + low == 0)
    FAIL(r, 7, span_from(r, start), "", "graph text knows the escapes \\\" \\\\ and \\xNN");
  r->pos += 4;
  return (char)(high * 16 + low);
}

static void read_string(reader *r) {
  uint32_t start = r->pos++;
  ccn__text t;
  ccn__text_init(&t, &r->scratch);
  for (;;) {
    int c = peek_char(r, 0);
    if (c < 0 || c == '\n') FAIL(r, 3, span_from(r, start), "it starts here", "the string does not end");
    if (c < ' ') FAIL(r, 2, span_from(r, start), "", "a control character in a string");
    if (c == '"') break;
    if (c == '\\') {
      ccn__text_putc(&t, read_escape(r, start));
      continue;
    }
    ccn__text_putc(&t, (char)c);
    r->pos++;
  }
  r->pos++;
  r->tok.kind = T_STRING;
  r->tok.name = ccn__intern(r->names, t.n ? t.at : "", t.n);
}

static uint64_t read_digits(reader *r, uint32_t start) {
  uint64_t v = 0;
  for (; digit(peek_char(r, 0)); r->pos++)
    if (__builtin_mul_overflow(v, 10u, &v) ||
        __builtin_add_overflow(v, (unsigned)(peek_char(r, 0) - '0'), &v))
      FAIL(r, 6, span_from(r, start), "", "the number is too large");
  return v;
}

/* Hex digits onto *v; gives how many there were. */
static uint32_t read_hex_digits(reader *r, uint32_t start, uint64_t *v) {
  uint32_t n = 0;
  for (; hex_digit(peek_char(r, 0)) >= 0; r->pos++, n++) {
    if (*v >> 60) FAIL(r, 6, span_from(r, start), "", "the number has too many digits");
    *v = *v << 4 | (unsigned)hex_digit(peek_char(r, 0));
  }
  return n;
}

/* Behind the hex digits `digits`, `places` of them behind the point: p, sign, exponent. Every bit counts:
 * a number that is no f64 is refused, never rounded. */
static void read_exponent(reader *r, uint32_t start, uint64_t digits, uint32_t places) {
  if (peek_char(r, 0) != 'p') FAIL(r, 5, span_from(r, start), "", "a float needs its exponent: 0x1.8p+0");
  r->pos++;
  int sign = peek_char(r, 0);
  if (sign == '+' || sign == '-') r->pos++;
  if (!digit(peek_char(r, 0))) FAIL(r, 5, span_from(r, start), "", "the exponent has no digits");
  uint64_t e = read_digits(r, start);
  if (e > 4000 || places > 1000) FAIL(r, 5, span_from(r, start), "", "the exponent is too large");
  int shift = (sign == '-' ? -(int)e : (int)e) - 4 * (int)places;
  double m = (double)digits, x = ldexp(m, shift);
  bool exact = m < 0x1p53 && isfinite(x) && ldexp(x, -shift) == m;
  if (!exact) FAIL(r, 5, span_from(r, start), "", "the number is no f64");
  r->tok.kind = T_FLOAT;
  r->tok.f = x;
}

static void read_number(reader *r) {
  uint32_t start = r->pos;
  r->tok.kind = T_INT;
  if (peek_char(r, 0) == '0' && peek_char(r, 1) == 'x') {
    uint64_t v = 0;
    r->pos += 2;
    uint32_t n = read_hex_digits(r, start, &v), places = 0;
    if (peek_char(r, 0) == '.') {
      r->pos++;
      places = read_hex_digits(r, start, &v);
    }
    if (n + places == 0) FAIL(r, 5, span_from(r, start), "", "the number has no digits");
    r->tok.i = v;
    if (places || peek_char(r, 0) == 'p') read_exponent(r, start, v, places);
  } else {
    r->tok.i = read_digits(r, start);
    if (peek_char(r, 0) == '.')
      FAIL(r, 5, span_from(r, start), "", "graph text has floats in hexadecimal: 0x1.8p+0");
  }
  if (letter(peek_char(r, 0)) || digit(peek_char(r, 0)))
    FAIL(r, 5, span_from(r, start), "", "a malformed number");
}

static void read_punctuation(reader *r) {
  static const char pairs[][3] = {"**", "//", "<=", ">=", "==", "!="};
  uint32_t start = r->pos;
  int c = peek_char(r, 0), next = peek_char(r, 1);
  r->pos++;
  r->tok.kind = c;
  for (size_t i = 0; i < CCN__COUNT(pairs); i++)
    if (c == pairs[i][0] && next == pairs[i][1]) {
      r->pos++;
      r->tok.kind = TWO(c, next);
      return;
    }
  if (c == 0 || !strchr("{}()[],:=+-*/%<>", c))
    FAIL(r, 2, span_from(r, start), "", "a character that graph text does not have");
}

/* Reads the next token into r->tok. */
static void next(reader *r) {
  skip_blanks(r);
  uint32_t start = r->pos;
  int c = peek_char(r, 0);
  if (c < 0) {
    r->tok.kind = T_END;
  } else if (letter(c)) {
    while (letter(peek_char(r, 0)) || digit(peek_char(r, 0))) r->pos++;
    r->tok.kind = T_NAME;
    r->tok.name = ccn__intern(r->names, r->text + start, r->pos - start);
  } else if (digit(c)) {
    read_number(r);
  } else if (c == '"') {
    read_string(r);
  } else if (c == '%' && digit(peek_char(r, 1))) {
    r->pos++;
    r->tok.i = read_digits(r, start);
    r->tok.kind = T_ID;
  } else {
    read_punctuation(r);
  }
  r->tok.span = span_from(r, start);
}

CCN__NORETURN static void unexpected(reader *r, const char *want) {
  if (r->tok.kind == T_END)
    FAIL(r, 4, r->tok.span, "it ends here", "the text ends where %s is expected", want);
  FAIL(r, 1, r->tok.span, "", "expected %s", want);
}

static bool accept(reader *r, int kind) {
  if (r->tok.kind != kind) return false;
  next(r);
  return true;
}

static void expect(reader *r, int kind) {
  if (r->tok.kind != kind) {
    char c[3] = {(char)kind, 0, 0};
    unexpected(r, ccn__arena_printf(r->ds->arena, "`%s`", c));
  }
  next(r);
}

static bool is_word(const reader *r, const char *word) {
  return r->tok.kind == T_NAME && strcmp(r->tok.name, word) == 0;
}

static bool accept_word(reader *r, const char *word) {
  if (!is_word(r, word)) return false;
  next(r);
  return true;
}

static ccn__name read_name(reader *r, const char *what) {
  if (r->tok.kind != T_NAME && r->tok.kind != T_STRING) unexpected(r, what);
  ccn__name s = r->tok.name;
  next(r);
  return s;
}

static uint32_t read_index(reader *r, uint32_t below, const char *what) {
  if (r->tok.kind != T_INT) unexpected(r, what);
  if (r->tok.i >= below) FAIL(r, 309, r->tok.span, "", "%s is out of range", what);
  uint32_t i = (uint32_t)r->tok.i;
  next(r);
  return i;
}

static int64_t read_int(reader *r) {
  bool minus = accept(r, '-');
  if (r->tok.kind != T_INT) unexpected(r, "a whole number");
  if (r->tok.i > (uint64_t)INT64_MAX + minus) FAIL(r, 6, r->tok.span, "", "the number is too large");
  uint64_t v = r->tok.i;
  next(r);
  if (!minus) return (int64_t)v;
  return v == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)v;
}

static uint32_t read_axis(reader *r) {
  const ccn__mesh *m = &r->g->mesh;
  ccn__span span = r->tok.span;
  ccn__name name = read_name(r, "a mesh axis");
  for (uint32_t i = 0; i < m->naxes; i++)
    if (m->name[i] == name) return i;
  FAIL(r, 311, span, "", "the mesh has no axis `%s`", name);
}

/* ---- symbols and extents ------------------------------------------------------------------------------- */

/* "size(dp)", "total(0)", "count(0)", with r->tok at the word; false if it is just a name. */
static bool read_derived(reader *r, ccn__symbol_kind *kind, uint32_t *index) {
  static const char *const word[] = {
    [CCN__SYM_SIZE] = "size", [CCN__SYM_TOTAL] = "total", [CCN__SYM_COUNT] = "count"};
  uint32_t k = CCN__SYM_SIZE;
  while (k <= CCN__SYM_COUNT && !is_word(r, word[k])) k++;
  if (k > CCN__SYM_COUNT) return false;
  next(r);
  expect(r, '(');
  *kind = (ccn__symbol_kind)k;
  *index = k == CCN__SYM_SIZE ? read_axis(r) : read_index(r, BUNDLES, "the number of a bundle");
  expect(r, ')');
  return true;
}

static uint32_t find_symbol(const ccn__graph *g, ccn__symbol_kind kind, ccn__name name, uint32_t index) {
  for (uint32_t i = 0; i < g->symbols.n; i++) {
    const ccn__symbol *s = &g->symbols.at[i];
    if (s->kind == kind && (kind == CCN__SYM_DIM ? s->name == name : s->index == index)) return i;
  }
  return UINT32_MAX;
}

static uint32_t read_symbol(reader *r) {
  ccn__symbol_kind kind = CCN__SYM_DIM;
  uint32_t index = 0;
  ccn__span span = r->tok.span;
  ccn__name name = NULL;
  if (!read_derived(r, &kind, &index)) name = read_name(r, "a symbol");
  uint32_t i = find_symbol(r->g, kind, name, index);
  if (i == UINT32_MAX)
    FAIL(r, 801, span, "", "%s is not among the dims of the graph", name ? name : "this symbol");
  return i;
}

static const ccn__dim *dim_sum(reader *r, uint32_t depth);

static const ccn__dim *checked(reader *r, ccn__span span, const ccn__dim *d) {
  if (!d) FAIL(r, 6, span, "", "the extent does not fit 64 bits, or does not divide");
  if (d->n > DIM_TERMS || ++r->operators > DIM_OPERATORS) FAIL(r, 8, span, "", "the extent is too long");
  return d;
}

static const ccn__dim *dim_factor(reader *r, uint32_t depth) {
  ccn__span span = r->tok.span;
  if (depth > DIM_DEPTH) FAIL(r, 8, span, "", "the extent is nested too deeply");
  if (accept(r, '-'))
    return checked(r, span,
                   ccn__dim_sub(&r->scratch, ccn__dim_const(&r->scratch, 0), dim_factor(r, depth + 1)));
  if (accept(r, '(')) {
    const ccn__dim *d = dim_sum(r, depth + 1);
    expect(r, ')');
    return d;
  }
  if (r->tok.kind == T_INT) return ccn__dim_const(&r->scratch, read_int(r));
  if (r->tok.kind != T_NAME && r->tok.kind != T_STRING) unexpected(r, "an extent");
  return ccn__dim_symbol(&r->scratch, read_symbol(r));
}

static const ccn__dim *dim_product(reader *r, uint32_t depth) {
  const ccn__dim *d = dim_factor(r, depth);
  while (r->tok.kind == '*' || r->tok.kind == '/') {
    ccn__span span = r->tok.span;
    bool times = r->tok.kind == '*';
    next(r);
    const ccn__dim *y = dim_factor(r, depth);
    d = checked(r, span, times ? ccn__dim_mul(&r->scratch, d, y) : ccn__dim_div(&r->scratch, d, y));
  }
  return d;
}

static const ccn__dim *dim_sum(reader *r, uint32_t depth) {
  const ccn__dim *d = dim_product(r, depth);
  while (r->tok.kind == '+' || r->tok.kind == '-') {
    ccn__span span = r->tok.span;
    bool plus = r->tok.kind == '+';
    next(r);
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

static const ccn__dim *read_dim(reader *r) {
  r->operators = 0;
  const ccn__dim *d = copy_dim(r->a, dim_sum(r, 0));
  ccn__arena_free(&r->scratch);
  return d;
}

/* ---- literals ------------------------------------------------------------------------------------------ */

static ccn__lit *new_lit(reader *r, ccn__lit_kind kind) {
  ccn__lit *l = CCN__NEW(r->a, ccn__lit);
  l->kind = (uint8_t)kind;
  return l;
}

static const ccn__lit *lit_float(reader *r, bool minus, double x) {
  ccn__lit *l = new_lit(r, CCN__LIT_FLOAT);
  l->f = minus ? -x : x;
  return l;
}

/* nan, or nan(0x...) with the bits of its fraction. */
static const ccn__lit *lit_nan(reader *r, bool minus) {
  uint64_t bits = UINT64_C(0x8000000000000);
  if (accept(r, '(')) {
    if (r->tok.kind != T_INT || r->tok.i == 0 || r->tok.i >> 52) unexpected(r, "the fraction of a NaN");
    bits = r->tok.i;
    next(r);
    expect(r, ')');
  }
  bits |= UINT64_C(0x7ff) << 52 | (uint64_t)minus << 63;
  ccn__lit *l = new_lit(r, CCN__LIT_FLOAT);
  memcpy(&l->f, &bits, sizeof bits);
  return l;
}

static const ccn__lit *read_lit_at(reader *r, uint32_t depth);

static const ccn__lit *lit_bracketed(reader *r, uint32_t depth) {
  if (depth > LIT_DEPTH) FAIL(r, 8, r->tok.span, "", "the literal is nested too deeply");
  expect(r, '(');
  const ccn__lit *l = read_lit_at(r, depth + 1);
  expect(r, ')');
  return l;
}

static const ccn__lit *lit_unary(reader *r, ccn__oper op, uint32_t depth) {
  ccn__lit *l = new_lit(r, CCN__LIT_UNARY);
  l->op = (uint8_t)op;
  l->x = lit_bracketed(r, depth);
  return l;
}

static const ccn__lit *lit_signed(reader *r, uint32_t depth) {
  ccn__span span = r->tok.span;
  bool minus = accept(r, '-');
  if (minus && r->tok.kind == '(') return lit_unary(r, CCN__T_MINUS, depth);
  if (r->tok.kind == T_FLOAT) {
    double x = r->tok.f;
    next(r);
    return lit_float(r, minus, x);
  }
  if (accept_word(r, "inf")) return lit_float(r, minus, INFINITY);
  if (accept_word(r, "nan")) return lit_nan(r, minus);
  if (r->tok.kind != T_INT) unexpected(r, "a literal");
  if (r->tok.i > (uint64_t)INT64_MAX + minus) FAIL(r, 6, span, "", "the number is too large");
  ccn__lit *l = new_lit(r, CCN__LIT_INT);
  l->i = minus ? (int64_t)(0 - r->tok.i) : (int64_t)r->tok.i;
  next(r);
  return l;
}

static const ccn__lit *lit_word(reader *r, uint32_t depth) {
  ccn__lit *l;
  if (is_word(r, "true") || is_word(r, "false")) {
    l = new_lit(r, CCN__LIT_BOOL);
    l->i = is_word(r, "true");
    next(r);
    return l;
  }
  if (accept_word(r, "unknown")) return new_lit(r, CCN__LIT_UNKNOWN);
  if (accept_word(r, "not")) return lit_unary(r, CCN__T_NOT, depth);
  l = new_lit(r, CCN__LIT_DIM);
  l->dim = ccn__dim_symbol(r->a, read_symbol(r));
  return l;
}

static const ccn__lit *lit_atom(reader *r, uint32_t depth) {
  if (r->tok.kind == '(') return lit_bracketed(r, depth);
  if (is_word(r, "inf") || is_word(r, "nan")) return lit_signed(r, depth);
  if (r->tok.kind == T_NAME || r->tok.kind == T_STRING) return lit_word(r, depth);
  if (!accept(r, '[')) return lit_signed(r, depth);
  ccn__lit *l = new_lit(r, CCN__LIT_DIM);
  l->dim = read_dim(r);
  expect(r, ']');
  return l;
}

static ccn__oper binary_operator(const reader *r) {
  char s[3] = {0};
  if (r->tok.kind == T_NAME)
    return is_word(r, "and") ? CCN__T_AND : is_word(r, "or") ? CCN__T_OR : CCN__T_NONE;
  if (r->tok.kind < T_END) s[0] = (char)r->tok.kind;
  else s[0] = (char)(r->tok.kind >> 8), s[1] = (char)r->tok.kind;
  for (int i = CCN__T_NONE + 1; i < CCN__T_NOT; i++)
    if (strcmp(ccn__oper_text((ccn__oper)i), s) == 0) return (ccn__oper)i;
  return CCN__T_NONE;
}

static const ccn__lit *read_lit_at(reader *r, uint32_t depth) {
  const ccn__lit *x = lit_atom(r, depth);
  ccn__oper op = binary_operator(r);
  if (op == CCN__T_NONE) return x;
  next(r);
  ccn__lit *l = new_lit(r, CCN__LIT_BINARY);
  l->op = (uint8_t)op;
  l->x = x;
  l->y = lit_atom(r, depth);
  return l;
}

/* ---- types --------------------------------------------------------------------------------------------- */

static uint8_t read_dtype(reader *r) {
  ccn__dtype t;
  if (r->tok.kind != T_NAME) unexpected(r, "a dtype");
  if (!ccn__dtype_find(r->tok.name, &t) || !ccn__dtype_size(t))
    FAIL(r, 100, r->tok.span, "", "there is no dtype `%s`", r->tok.name);
  next(r);
  return (uint8_t)t;
}

static void read_dims(reader *r, ccn__type *t) {
  do {
    if (t->rank == CCN__MAX_RANK) FAIL(r, 208, r->tok.span, "", "more than %d dims", CCN__MAX_RANK);
    t->dim[t->rank++] = read_dim(r);
  } while (accept(r, ','));
  expect(r, ']');
}

/* Behind the `[`: f32[*]] of 0, or f32] of 0. The dim is the symbol that the bundle has for it. */
static void read_bundle(reader *r, ccn__type *t) {
  ccn__span span = r->tok.span;
  t->dtype = read_dtype(r);
  t->bundle = CCN__BUNDLE_SCALARS;
  if (accept(r, '[')) {
    expect(r, '*');
    expect(r, ']');
    t->bundle = CCN__BUNDLE_TENSORS;
  }
  expect(r, ']');
  if (!accept_word(r, "of")) unexpected(r, "`of` and the number of the bundle");
  t->bundle_id = read_index(r, BUNDLES, "the number of a bundle");
  ccn__symbol_kind kind = t->bundle == CCN__BUNDLE_TENSORS ? CCN__SYM_TOTAL : CCN__SYM_COUNT;
  uint32_t sym = find_symbol(r->g, kind, NULL, t->bundle_id);
  if (sym == UINT32_MAX)
    FAIL(r, 801, span, "", "%s(%u) is not among the dims of the graph",
         kind == CCN__SYM_TOTAL ? "total" : "count", (unsigned)t->bundle_id);
  t->rank = 1;
  t->dim[0] = ccn__dim_symbol(r->a, sym);
}

static ccn__place read_sliced(reader *r) {
  ccn__place p = {.kind = CCN__SLICED};
  expect(r, '(');
  p.dim = (uint16_t)read_index(r, CCN__MAX_RANK, "the dim");
  if (accept(r, ',')) {
    if (!accept_word(r, "unit")) unexpected(r, "`unit`");
    expect(r, ':');
    p.unit = read_dim(r);
  }
  expect(r, ')');
  return p;
}

static ccn__redop read_redop(reader *r) {
  ccn__redop op;
  if (r->tok.kind != T_NAME) unexpected(r, "a reduction operator");
  if (!ccn__redop_find(r->tok.name, &op))
    FAIL(r, 801, r->tok.span, "", "there is no reduction operator `%s`", r->tok.name);
  next(r);
  return op;
}

static int32_t read_coord(reader *r) {
  ccn__span span = r->tok.span;
  int64_t i = read_int(r);
  if (i < INT32_MIN || i > INT32_MAX) FAIL(r, 308, span, "", "the coordinate is out of range");
  return (int32_t)i;
}

/* False: no placement stands here. */
static bool read_place(reader *r, ccn__place *out) {
  *out = (ccn__place){.kind = CCN__LOCAL};
  if (accept_word(r, "local")) return true;
  if (accept_word(r, "sliced")) {
    *out = read_sliced(r);
    return true;
  }
  bool owed = is_word(r, "partial");
  if (!owed && !is_word(r, "at")) return false;
  next(r);
  expect(r, '(');
  if (owed) *out = (ccn__place){.kind = CCN__PARTIAL, .op = (uint8_t)read_redop(r)};
  else *out = (ccn__place){.kind = CCN__AT, .coord = read_coord(r)};
  expect(r, ')');
  return true;
}

static void read_type(reader *r, ccn__type *t) {
  *t = (ccn__type){.naxes = (uint8_t)r->g->mesh.naxes};
  if (accept(r, '[')) {
    read_bundle(r, t);
  } else {
    t->dtype = read_dtype(r);
    if (accept(r, '[')) read_dims(r, t);
  }
  ccn__place p;
  while (read_place(r, &p)) {
    if (!accept_word(r, "over")) unexpected(r, "`over` and a mesh axis");
    ccn__span span = r->tok.span;
    uint32_t axis = read_axis(r);
    if (t->place[axis].kind != CCN__REPLICATED) FAIL(r, 11, span, "", "a second placement over this axis");
    t->place[axis] = p;
  }
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

typedef CCN__VEC(int64_t) ints;
typedef CCN__VEC(const ccn__dim *) dims;

static void check_length(reader *r, uint32_t n) {
  if (n > UINT8_MAX) FAIL(r, 6, r->tok.span, "", "the list is too long");
}

static void read_ints(reader *r, ccn__attr *at, bool pairs) {
  ints v = {0};
  expect(r, '[');
  while (r->tok.kind != ']') {
    if (v.n && r->tok.kind != ',') unexpected(r, "`,` or `]`");
    if (v.n) next(r);
    if (pairs) expect(r, '(');
    *CCN__PUSH(r->a, &v) = read_int(r);
    if (pairs) {
      expect(r, ',');
      *CCN__PUSH(r->a, &v) = read_int(r);
      expect(r, ')');
    }
    check_length(r, v.n);
  }
  next(r);
  at->ints = v.at;
  at->n = (uint8_t)v.n;
}

static void read_dim_list(reader *r, ccn__attr *at) {
  dims v = {0};
  expect(r, '[');
  while (r->tok.kind != ']') {
    if (v.n && r->tok.kind != ',') unexpected(r, "`,` or `]`");
    if (v.n) next(r);
    const ccn__dim *d = read_dim(r);
    *CCN__PUSH(r->a, &v) = d;
    check_length(r, v.n);
  }
  next(r);
  at->dims = v.at;
  at->n = (uint8_t)v.n;
}

static int64_t read_axes(reader *r) {
  if (!accept(r, '[')) return (int64_t)1 << read_axis(r);
  int64_t mask = 0;
  while (r->tok.kind != ']') {
    if (mask && r->tok.kind != ',') unexpected(r, "`,` or `]`");
    if (mask) next(r);
    mask |= (int64_t)1 << read_axis(r);
  }
  next(r);
  return mask;
}

static int64_t read_order(reader *r) {
  for (int i = 0; i < CCN__ORDER_COUNT; i++)
    if (accept_word(r, ccn__order_name[i])) return i;
  if (r->tok.kind != T_NAME) unexpected(r, "an order");
  FAIL(r, 801, r->tok.span, "", "there is no order `%s`", r->tok.name);
}

static void read_value(reader *r, ccn__attr *at) {
  switch (ccn__attr_table[at->key].kind) {
  case CCN__ATTR_INT: at->i = at->key == CCN__A_AXIS ? (int64_t)read_axis(r) : read_int(r); break;
  case CCN__ATTR_LIT: at->lit = read_lit_at(r, 0); break;
  case CCN__ATTR_INTS: read_ints(r, at, false); break;
  case CCN__ATTR_PAIRS: read_ints(r, at, true); break;
  case CCN__ATTR_DIM: at->dim = read_dim(r); break;
  case CCN__ATTR_DIMS: read_dim_list(r, at); break;
  case CCN__ATTR_AXES: at->i = read_axes(r); break;
  case CCN__ATTR_RED: at->i = read_redop(r); break;
  case CCN__ATTR_ORDER: at->i = read_order(r); break;
  case CCN__ATTR_TEXT:
    if (r->tok.kind != T_STRING) unexpected(r, "a string");
    at->text = r->tok.name;
    next(r);
    break;
  }
}

/* Behind the `{`. */
static ccn__attrs read_attrs(reader *r) {
  ccn__attr at[CCN__ATTR_KEYS];
  uint32_t n = 0;
  do {
    if (r->tok.kind != T_NAME) unexpected(r, "an attribute");
    uint32_t key = 0, i = 0;
    while (key < CCN__ATTR_KEYS && strcmp(ccn__attr_table[key].name, r->tok.name) != 0) key++;
    if (key == CCN__ATTR_KEYS) FAIL(r, 801, r->tok.span, "", "there is no attribute `%s`", r->tok.name);
    while (i < n && at[i].key != key) i++;
    if (i < n) FAIL(r, 11, r->tok.span, "", "the attribute `%s` is there twice", r->tok.name);
    next(r);
    expect(r, ':');
    at[n] = (ccn__attr){.key = (uint8_t)key};
    read_value(r, &at[n++]);
  } while (accept(r, ','));
  expect(r, '}');
  ccn__attr *copy = CCN__NEWN(r->a, ccn__attr, n);
  memcpy(copy, at, n * sizeof *copy);
  return (ccn__attrs){copy, n};
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

typedef CCN__VEC(ccn__id) ids;

/* One or more, of nodes that are there. */
static ids read_ids(reader *r) {
  ids v = {0};
  do {
    if (r->tok.kind != T_ID) unexpected(r, "a node, as %0");
    if (r->tok.i >= r->g->nodes.n)
      FAIL(r, 801, r->tok.span, "", "%%%llu is not defined before", (unsigned long long)r->tok.i);
    if (v.n == UINT16_MAX) FAIL(r, 6, r->tok.span, "", "too many nodes in the list");
    *CCN__PUSH(r->a, &v) = (ccn__id)r->tok.i;
    next(r);
  } while (accept(r, ','));
  return v;
}

static ccn__op read_op(reader *r) {
  if (r->tok.kind != T_NAME) unexpected(r, "an op");
  uint32_t i = 0;
  while (i < CCN__OP_COUNT && strcmp(ccn__op_table[i].name, r->tok.name) != 0) i++;
  if (i == CCN__OP_COUNT) {
    ccn__nearest near_;
    ccn__nearest_init(&near_, r->tok.name);
    for (i = 0; i < CCN__OP_COUNT; i++) ccn__nearest_try(&near_, ccn__op_table[i].name);
    ccn__diag *d = ccn__error(r->ds, 801, r->tok.span, "", "there is no op `%s`", r->tok.name);
    if (near_.best) ccn__hint(r->ds, d, "did you mean `%s`?", near_.best);
    ccn__throw(r->a->heap, CCN_ERROR);
  }
  next(r);
  return (ccn__op)i;
}

/* Attributes and blocks both stand in braces; attributes start with `name:`. */
static bool accept_attrs(reader *r) {
  if (r->tok.kind != '{') return false;
  uint32_t pos = r->pos;
  token brace = r->tok;
  next(r);
  if (r->tok.kind == T_NAME) {
    uint32_t name_pos = r->pos;
    token name = r->tok;
    next(r);
    if (r->tok.kind == ':') {
      r->pos = name_pos;
      r->tok = name;
      return true;
    }
  }
  r->pos = pos;
  r->tok = brace;
  return false;
}

static void read_nodes(reader *r, uint32_t region, uint32_t depth);

/* Behind the `{` of a node's block. */
static void read_block(reader *r, ccn__id owner, uint32_t depth) {
  if (depth == REGION_DEPTH) FAIL(r, 8, r->tok.span, "", "blocks are nested too deeply");
  ccn__graph *g = r->g;
  uint32_t region = g->regions.n;
  *CCN__PUSH(r->a, &g->regions) = (ccn__region){.owner = owner};
  g->nodes.at[owner].body = region;
  read_nodes(r, region, depth + 1);
  if (accept_word(r, "yield") && r->tok.kind == T_ID) {
    ids v = read_ids(r);
    g->regions.at[region].yield = v.at;
    g->regions.at[region].nyield = v.n;
  }
  expect(r, '}');
}

static void read_node(reader *r, uint32_t region, uint32_t depth) {
  ccn__graph *g = r->g;
  uint32_t start = r->tok.span.start;
  if (r->tok.i != g->nodes.n) FAIL(r, 1, r->tok.span, "", "expected node %%%u", (unsigned)g->nodes.n);
  next(r);
  ccn__name name = NULL, autoname = NULL;
  if (r->tok.kind == T_STRING) name = read_name(r, "a name");
  if (accept(r, '(')) {
    autoname = read_name(r, "an automatic name");
    expect(r, ')');
  }
  expect(r, '=');
  ccn__op op = read_op(r);
  ids in = {0};
  if (r->tok.kind == T_ID && !r->tok.first_of_line) in = read_ids(r);
  ccn__attrs attrs = {0};
  if (accept_attrs(r)) attrs = read_attrs(r);
  ccn__type type;
  bool typed = accept(r, ':');
  if (typed) read_type(r, &type);
  if (!typed && (op == CCN__OP_ON || op == CCN__OP_REPEAT)) { /* blocks are no values; all have this type */
    type = (ccn__type){.dtype = CCN__BOOL, .naxes = (uint8_t)g->mesh.naxes};
    typed = true;
  }
  ccn__span span = {r->source, start, r->tok.span.start};
  while (span.end > start && strchr(" \t\r\n", r->text[span.end - 1])) span.end--;
  ccn__id id = ccn__graph_add(g, op, in.at, in.n, typed ? &type : NULL, attrs, span, region);
  g->nodes.at[id].name = name;
  g->nodes.at[id].autoname = autoname;
  if (accept(r, '{')) read_block(r, id, depth);
}

static void read_nodes(reader *r, uint32_t region, uint32_t depth) {
  while (r->tok.kind == T_ID) read_node(r, region, depth);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void read_mesh(reader *r) {
  ccn__mesh *m = &r->g->mesh;
  do {
    ccn__span span = r->tok.span;
    ccn__name name = read_name(r, "a mesh axis");
    if (m->naxes == CCN__MAX_AXES) FAIL(r, 208, span, "", "more than %d mesh axes", CCN__MAX_AXES);
    for (uint32_t i = 0; i < m->naxes; i++)
      if (m->name[i] == name) FAIL(r, 11, span, "", "a second axis `%s`", name);
    m->name[m->naxes] = name;
    m->span[m->naxes] = span;
    if (accept(r, ':')) m->size[m->naxes] = (int32_t)read_index(r, INT32_MAX, "the size");
    m->naxes++;
  } while (accept(r, ','));
}

static void read_symbols(reader *r) {
  do {
    ccn__span span = r->tok.span;
    ccn__symbol_kind kind = CCN__SYM_DIM;
    uint32_t index = 0, before = r->g->symbols.n;
    ccn__name name = NULL;
    if (!read_derived(r, &kind, &index)) name = read_name(r, "a symbol");
    else if (r->tok.kind == T_STRING) name = read_name(r, "a name");
    if (before == SYMBOLS) FAIL(r, 208, span, "", "more than %d symbols", SYMBOLS);
    if (ccn__graph_symbol(r->g, name, kind, index, span) != before)
      FAIL(r, 11, span, "", "this symbol is there twice");
  } while (accept(r, ','));
}

static uint16_t read_code(reader *r) {
  if (!accept(r, '(')) return 0;
  uint32_t code = 0, n = 0;
  const char *s = r->tok.kind == T_NAME ? r->tok.name : "";
  if (strncmp(s, "CCN", 3) == 0)
    for (; n < 5 && digit(s[3 + n]); n++) code = code * 10 + (uint32_t)(s[3 + n] - '0');
  if (n < 4 || s[3 + n] || code > UINT16_MAX) unexpected(r, "a code, as CCN0305");
  next(r);
  expect(r, ')');
  return (uint16_t)code;
}

static void read_constraint(reader *r) {
  ccn__constraint c = {.kind = CCN__NEED_WHOLE};
  uint32_t start = r->tok.span.start;
  if (accept_word(r, "bundles")) {
    c.kind = CCN__NEED_BUNDLES;
    c.bx = read_index(r, BUNDLES, "the number of a bundle");
    expect(r, ',');
    c.by = read_index(r, BUNDLES, "the number of a bundle");
  } else if (accept_word(r, "whole")) {
    c.x = read_dim(r);
  } else {
    c.x = read_dim(r);
    if (accept(r, TWO('=', '='))) c.kind = CCN__NEED_EQUAL;
    else if (accept(r, TWO('<', '='))) c.kind = CCN__NEED_LESS_EQ;
    else if (accept(r, '<')) c.kind = CCN__NEED_LESS;
    else if (accept_word(r, "multiple") && accept_word(r, "of")) c.kind = CCN__NEED_MULTIPLE;
    else unexpected(r, "`==`, `<=`, `<` or `multiple of`");
    c.y = read_dim(r);
  }
  c.code = read_code(r);
  c.span = (ccn__span){r->source, start, r->tok.span.start};
  *CCN__PUSH(r->a, &r->g->constraints) = c;
}

static void read_outputs(reader *r) {
  ccn__graph *g = r->g;
  ids v = {0};
  if (accept(r, '(')) {
    g->returns_tuple = true;
    if (r->tok.kind != ')') v = read_ids(r);
    expect(r, ')');
  } else if (r->tok.kind == T_ID) {
    v = read_ids(r);
  } else {
    g->returns_none = true;
  }
  g->outputs = v.at;
  g->noutputs = v.n;
}

/* The list of parameters follows from the nodes; where it does not, the verifier finds the gap. */
static void list_params(ccn__graph *g) {
  uint32_t n = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) n += g->nodes.at[i].op == CCN__OP_PARAM;
  for (uint32_t i = 0; i < n; i++)
    *CCN__PUSH(g->arena, &g->params) = (ccn__param){.node = CCN__NO_ID, .update = CCN__NO_ID};
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *x = &g->nodes.at[i];
    const ccn__node *p = x->op == CCN__OP_UPDATE && x->nin ? &g->nodes.at[x->in[0]] : x;
    if (p->op != CCN__OP_PARAM) continue;
    int64_t k = ccn__attr_int(p->attrs, CCN__A_NUMBER, -1);
    if (k < 0 || k >= n) continue;
    if (p == x) g->params.at[k].node = i;
    else if (g->params.at[k].update == CCN__NO_ID) g->params.at[k].update = i;
  }
}

/* The verifier's text starts with the node it means. */
static ccn__span span_of_fault(const ccn__graph *g, const char *text, ccn__span otherwise) {
  uint64_t id = 0;
  if (*text++ != '%' || !digit(*text)) return otherwise;
  for (; digit(*text) && id < CCN__NO_ID; text++) id = id * 10 + (uint64_t)(*text - '0');
  return id < g->nodes.n ? g->nodes.at[id].span : otherwise;
}

static ccn__graph *read_graph(reader *r) {
  ccn__span span = r->tok.span;
  if (!accept_word(r, "graph")) unexpected(r, "`graph`");
  ccn__graph *g = r->g = ccn__graph_new(r->a, r->names, NULL, NULL);
  if (r->tok.kind != '{') g->name = read_name(r, "a name or `{`");
  expect(r, '{');
  if (accept_word(r, "mesh")) read_mesh(r);
  if (accept_word(r, "dim")) read_symbols(r);
  if (accept_word(r, "bundles")) g->nbundles = read_index(r, BUNDLES, "the number of bundles");
  read_nodes(r, 0, 0);
  while (accept_word(r, "need")) read_constraint(r);
  if (!accept_word(r, "return")) unexpected(r, "a node, `need` or `return`");
  read_outputs(r);
  expect(r, '}');
  list_params(g);
  const char *fault = ccn__graph_verify(g);
  if (fault) FAIL(r, 12, span_of_fault(g, fault, span), "", "%s", fault);
  return g;
}

typedef CCN__VEC(ccn__graph *) graphs;

static void read_file(reader *r, graphs *out) {
  next(r);
  while (r->tok.kind != T_END) {
    ccn__graph *g = read_graph(r);
    *CCN__PUSH(r->a, out) = g;
  }
}

bool ccn__graph_parse(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source,
                      ccn__graph_list *out) {
  const ccn__source *s = ds->sources[source];
  reader *r = CCN__NEW(a, reader); /* not a local: it changes between setjmp and longjmp */
  *r = (reader){.a = a, .names = names, .ds = ds, .source = source, .text = s->text, .size = s->size};
  ccn__arena_init(&r->scratch, a->heap);
  ccn__trap trap;
  *out = (ccn__graph_list){0};
  CCN__TRY(a->heap, trap)
  {
    graphs list = {0};
    read_file(r, &list);
    *out = (ccn__graph_list){list.at, list.n};
  }
  CCN__CATCH(a->heap, trap)
  {
    ccn__arena_free(&r->scratch);
    if (trap.status != CCN_ERROR) ccn__throw(a->heap, trap.status);
    return false;
  }
  ccn__arena_free(&r->scratch);
  return true;
}
