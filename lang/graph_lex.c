/* graph_lex.c: graph text → tokens, names and numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph_read.h"

#include <math.h>

/* ---- tokens -------------------------------------------------------------------------------------------- */

static ccn__span span_from(const ccn__reader *r, uint32_t start) {
  return (ccn__span){r->source, start, r->pos > start ? r->pos : start};
}

int ccn__read_peek_char(const ccn__reader *r, uint32_t ahead) {
  return r->size - r->pos > ahead ? (unsigned char)r->text[r->pos + ahead] : -1;
}

bool ccn__read_digit(int c) { return c >= '0' && c <= '9'; }
static bool letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static int hex_digit(int c) {
  if (ccn__read_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void skip_blanks(ccn__reader *r) {
  r->tok.first_of_line = r->pos == 0;
  for (;; r->pos++) {
    int c = ccn__read_peek_char(r, 0);
    if (c == '#') {
      while (ccn__read_peek_char(r, 0) >= 0 && ccn__read_peek_char(r, 0) != '\n') r->pos++;
      c = ccn__read_peek_char(r, 0);
    }
    if (c == '\n') r->tok.first_of_line = true;
    else if (c != ' ' && c != '\t' && c != '\r') return;
  }
}

static char read_escape(ccn__reader *r, uint32_t start) {
  int c = ccn__read_peek_char(r, 1);
  if (c == '"' || c == '\\') {
    r->pos += 2;
    return (char)c;
  }
  int high = c == 'x' ? hex_digit(ccn__read_peek_char(r, 2)) : -1,
      low = high < 0 ? -1 : hex_digit(ccn__read_peek_char(r, 3));
  if (low < 0 || high * 16 + low == 0)
    FAIL(r, 7, span_from(r, start), "", "graph text knows the escapes \\\" \\\\ and \\xNN");
  r->pos += 4;
  return (char)(high * 16 + low);
}

static void read_string(ccn__reader *r) {
  uint32_t start = r->pos++;
  ccn__text t;
  ccn__text_init(&t, &r->scratch);
  for (;;) {
    int c = ccn__read_peek_char(r, 0);
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

static uint64_t read_digits(ccn__reader *r, uint32_t start) {
  uint64_t v = 0;
  for (; ccn__read_digit(ccn__read_peek_char(r, 0)); r->pos++)
    if (__builtin_mul_overflow(v, 10u, &v) ||
        __builtin_add_overflow(v, (unsigned)(ccn__read_peek_char(r, 0) - '0'), &v))
      FAIL(r, 6, span_from(r, start), "", "the number is too large");
  return v;
}

/* Hex digits onto *v; gives how many there were. */
static uint32_t read_hex_digits(ccn__reader *r, uint32_t start, uint64_t *v) {
  uint32_t n = 0;
  for (; hex_digit(ccn__read_peek_char(r, 0)) >= 0; r->pos++, n++) {
    if (*v >> 60) FAIL(r, 6, span_from(r, start), "", "the number has too many digits");
    *v = *v << 4 | (unsigned)hex_digit(ccn__read_peek_char(r, 0));
  }
  return n;
}

/* Behind the hex digits `digits`, `places` of them behind the point: p, sign, exponent. Every bit counts:
 * a number that is no f64 is refused, never rounded. */
static void read_exponent(ccn__reader *r, uint32_t start, uint64_t digits, uint32_t places) {
  if (ccn__read_peek_char(r, 0) != 'p')
    FAIL(r, 5, span_from(r, start), "", "a float needs its exponent: 0x1.8p+0");
  r->pos++;
  int sign = ccn__read_peek_char(r, 0);
  if (sign == '+' || sign == '-') r->pos++;
  if (!ccn__read_digit(ccn__read_peek_char(r, 0)))
    FAIL(r, 5, span_from(r, start), "", "the exponent has no digits");
  uint64_t e = read_digits(r, start);
  if (e > 4000 || places > 1000) FAIL(r, 5, span_from(r, start), "", "the exponent is too large");
  int shift = (sign == '-' ? -(int)e : (int)e) - 4 * (int)places;
  double m = (double)digits, x = ldexp(m, shift);
  bool exact = m < 0x1p53 && isfinite(x) && ldexp(x, -shift) == m;
  if (!exact) FAIL(r, 5, span_from(r, start), "", "the number is no f64");
  r->tok.kind = T_FLOAT;
  r->tok.f = x;
}

static void read_number(ccn__reader *r) {
  uint32_t start = r->pos;
  r->tok.kind = T_INT;
  if (ccn__read_peek_char(r, 0) == '0' && ccn__read_peek_char(r, 1) == 'x') {
    uint64_t v = 0;
    r->pos += 2;
    uint32_t n = read_hex_digits(r, start, &v), places = 0;
    if (ccn__read_peek_char(r, 0) == '.') {
      r->pos++;
      places = read_hex_digits(r, start, &v);
    }
    if (n + places == 0) FAIL(r, 5, span_from(r, start), "", "the number has no digits");
    r->tok.i = v;
    if (places || ccn__read_peek_char(r, 0) == 'p') read_exponent(r, start, v, places);
  } else {
    r->tok.i = read_digits(r, start);
    if (ccn__read_peek_char(r, 0) == '.')
      FAIL(r, 5, span_from(r, start), "", "graph text has floats in hexadecimal: 0x1.8p+0");
  }
  if (letter(ccn__read_peek_char(r, 0)) || ccn__read_digit(ccn__read_peek_char(r, 0)))
    FAIL(r, 5, span_from(r, start), "", "a malformed number");
}

static void read_punctuation(ccn__reader *r) {
  static const char pairs[][3] = {"**", "//", "<=", ">=", "==", "!="};
  uint32_t start = r->pos;
  int c = ccn__read_peek_char(r, 0), next = ccn__read_peek_char(r, 1);
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
void ccn__read_next(ccn__reader *r) {
  skip_blanks(r);
  uint32_t start = r->pos;
  int c = ccn__read_peek_char(r, 0);
  if (c < 0) {
    r->tok.kind = T_END;
  } else if (letter(c)) {
    while (letter(ccn__read_peek_char(r, 0)) || ccn__read_digit(ccn__read_peek_char(r, 0))) r->pos++;
    r->tok.kind = T_NAME;
    r->tok.name = ccn__intern(r->names, r->text + start, r->pos - start);
  } else if (ccn__read_digit(c)) {
    read_number(r);
  } else if (c == '"') {
    read_string(r);
  } else if (c == '%' && ccn__read_digit(ccn__read_peek_char(r, 1))) {
    r->pos++;
    r->tok.i = read_digits(r, start);
    r->tok.kind = T_ID;
  } else {
    read_punctuation(r);
  }
  r->tok.span = span_from(r, start);
}

CCN__NORETURN void ccn__read_unexpected(ccn__reader *r, const char *want) {
  if (r->tok.kind == T_END)
    FAIL(r, 4, r->tok.span, "it ends here", "the text ends where %s is expected", want);
  FAIL(r, 1, r->tok.span, "", "expected %s", want);
}

bool ccn__read_accept(ccn__reader *r, int kind) {
  if (r->tok.kind != kind) return false;
  ccn__read_next(r);
  return true;
}

void ccn__read_expect(ccn__reader *r, int kind) {
  if (r->tok.kind != kind) {
    char c[3] = {(char)kind, 0, 0};
    ccn__read_unexpected(r, ccn__arena_printf(r->ds->arena, "`%s`", c));
  }
  ccn__read_next(r);
}

bool ccn__read_is_word(const ccn__reader *r, const char *word) {
  return r->tok.kind == T_NAME && strcmp(r->tok.name, word) == 0;
}

bool ccn__read_accept_word(ccn__reader *r, const char *word) {
  if (!ccn__read_is_word(r, word)) return false;
  ccn__read_next(r);
  return true;
}

ccn__name ccn__read_name(ccn__reader *r, const char *what) {
  if (r->tok.kind != T_NAME && r->tok.kind != T_STRING) ccn__read_unexpected(r, what);
  ccn__name s = r->tok.name;
  ccn__read_next(r);
  return s;
}

uint32_t ccn__read_index(ccn__reader *r, uint32_t below, const char *what) {
  if (r->tok.kind != T_INT) ccn__read_unexpected(r, what);
  if (r->tok.i >= below) FAIL(r, 309, r->tok.span, "", "%s is out of range", what);
  uint32_t i = (uint32_t)r->tok.i;
  ccn__read_next(r);
  return i;
}

int64_t ccn__read_int(ccn__reader *r) {
  bool minus = ccn__read_accept(r, '-');
  if (r->tok.kind != T_INT) ccn__read_unexpected(r, "a whole number");
  if (r->tok.i > (uint64_t)INT64_MAX + minus) FAIL(r, 6, r->tok.span, "", "the number is too large");
  uint64_t v = r->tok.i;
  ccn__read_next(r);
  if (!minus) return (int64_t)v;
  return v == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)v;
}

uint32_t ccn__read_axis(ccn__reader *r) {
  const ccn__mesh *m = &r->g->mesh;
  ccn__span span = r->tok.span;
  ccn__name name = ccn__read_name(r, "a mesh axis");
  for (uint32_t i = 0; i < m->naxes; i++)
    if (m->name[i] == name) return i;
  FAIL(r, 311, span, "", "the mesh has no axis `%s`", name);
}
