/* lexer_literal.c: numbers and the pieces of strings.
 *
 * Numbers do not depend on the host's locale: what strtod sees never holds a decimal point (1.5 is passed
 * as 15e-1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "lexer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Longer numbers are refused, so that a temporary fits on the stack. */
#define MAX_DIGITS 1000

/* ---- numbers ---- */

static void bad_number(ccn__lexer *lx, ccn__token *t, const char *label, const char *hint) {
  ccn__diag *d = ccn__error(lx->ds, 5, ccn__lexer_span(lx, t->start, lx->at), label, "this is not a number");
  if (hint) ccn__hint(lx->ds, d, "%s", hint);
  lx->errors++;
}

static int hex_value(char c) {
  if (ccn__is_digit(c)) return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The digits of a number as they were written. */
typedef struct digits {
  char text[MAX_DIGITS + 32]; /* without underscores and point; room for 0x and an exponent */
  uint32_t n, fraction;       /* digits in all, digits behind the point */
  uint32_t first;             /* where digits start in text (behind 0x) */
  bool bad_underscore, nonzero;
} digits;

/* Reads digits of a base; underscores stand between two digits only. */
static void read_digits(ccn__lexer *lx, digits *d, bool hex, bool fraction) {
  bool digit = false;
  for (;; lx->at++) {
    char c = ccn__lexer_peek(lx, 0);
    if (c == '_') {
      if (!digit) d->bad_underscore = true;
      digit = false;
      continue;
    }
    if (!(hex ? hex_value(c) >= 0 : ccn__is_digit(c))) break;
    digit = true;
    if (c != '0') d->nonzero = true;
    if (d->n < MAX_DIGITS) d->text[d->first + d->n] = c;
    if (d->n < UINT32_MAX) d->n++;
    if (fraction) d->fraction++;
  }
  if (!digit) d->bad_underscore = true;
}

/* Behind e or p: [+-] digits. Returns false if there are none. */
static bool read_exponent(ccn__lexer *lx, int64_t *out) {
  int64_t e = 0;
  bool minus = false;
  uint32_t at = lx->at + 1;
  if (at < lx->size && (lx->text[at] == '+' || lx->text[at] == '-')) minus = lx->text[at++] == '-';
  if (at == lx->size || !ccn__is_digit(lx->text[at])) return false;
  for (; at < lx->size && ccn__is_digit(lx->text[at]); at++) {
    if (e < 1000000) e = e * 10 + (lx->text[at] - '0');
  }
  lx->at = at;
  *out = minus ? -e : e;
  return true;
}

static void make_int(ccn__lexer *lx, ccn__token *t, const digits *d, uint32_t base) {
  uint64_t v = 0;
  bool over = d->n > MAX_DIGITS && d->nonzero;
  t->kind = CCN__TOK_INT;
  for (uint32_t i = 0; i < d->n && !over; i++) {
    uint32_t x = (uint32_t)hex_value(d->text[d->first + i]);
    over = v > ((uint64_t)INT64_MAX - x) / base;
    v = v * base + x;
  }
  if (over) {
    ccn__diag *e = ccn__error(lx->ds, 6, ccn__lexer_span(lx, t->start, lx->at),
                              "larger than 9223372036854775807", "this integer does not fit in 64 bits");
    ccn__hint(lx->ds, e, "write a float, as in 1e20, or a smaller integer");
    lx->errors++;
    v = 0;
  }
  t->i = (int64_t)v;
}

/* A value of few digits and a small power of ten is exact in one operation; the rest is strtod's. */
static double decimal(digits *d, int64_t exponent) {
  static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (d->n <= 15 && exponent >= -22 && exponent <= 22) {
    int64_t m = 0;
    for (uint32_t i = 0; i < d->n; i++) m = m * 10 + (d->text[i] - '0');
    return exponent < 0 ? (double)m / power[-exponent] : (double)m * power[exponent];
  }
  snprintf(d->text + d->n, sizeof d->text - d->n, "e%lld", (long long)exponent);
  return strtod(d->text, NULL);
}

static void make_float(ccn__lexer *lx, ccn__token *t, digits *d, bool hex, int64_t exponent) {
  t->kind = CCN__TOK_FLOAT;
  if (d->n > MAX_DIGITS) {
    bad_number(lx, t, "more than 1000 digits", "f64 keeps 17 digits");
    return;
  }
  if (hex) {
    memcpy(d->text, "0x", 2);
    snprintf(d->text + d->first + d->n, sizeof d->text - d->first - d->n, "p%lld",
             (long long)(exponent - 4 * (int64_t)d->fraction));
    t->f = strtod(d->text, NULL);
  } else {
    t->f = decimal(d, exponent - (int64_t)d->fraction);
  }
  if (isinf(t->f) || (t->f == 0 && d->nonzero)) {
    bad_number(lx, t, t->f == 0 ? "nearer to zero than any f64" : "larger than any f64",
               "f64 reaches from 5e-324 to 1.8e308");
    t->f = 0;
  }
}

/* A number may not run into a name or a second point: 3abc, 1.5.3, 1e, 0b11. */
static bool runs_on(ccn__lexer *lx) {
  char c = ccn__lexer_peek(lx, 0);
  bool on =
    ccn__is_name_char(c) || (unsigned char)c >= 0x80 || (c == '.' && ccn__is_digit(ccn__lexer_peek(lx, 1)));
  if (!on) return false;
  for (; lx->at < lx->size; lx->at++) {
    c = lx->text[lx->at];
    if (!ccn__is_name_char(c) && (unsigned char)c < 0x80 &&
        !(c == '.' && ccn__is_digit(ccn__lexer_peek(lx, 1))))
      break;
  }
  return true;
}

void ccn__lexer_number(ccn__lexer *lx, ccn__token *t) {
  digits d;
  int64_t exponent = 0;
  bool is_float = false, no_exponent = false, open_point = false;
  bool hex = ccn__lexer_peek(lx, 0) == '0' && (ccn__lexer_peek(lx, 1) | 32) == 'x';
  d.n = d.fraction = d.first = 0;
  d.bad_underscore = d.nonzero = false;
  if (hex) lx->at += 2, d.first = 2;
  read_digits(lx, &d, hex, false);
  if (ccn__lexer_peek(lx, 0) == '.') {
    char c = ccn__lexer_peek(lx, 1);
    if (hex ? hex_value(c) >= 0 : ccn__is_digit(c)) {
      lx->at++;
      is_float = true;
      read_digits(lx, &d, hex, true);
    } else if (c != '.' &&
               (!ccn__is_name_start(c) || ((c | 32) == 'e' && ccn__is_digit(ccn__lexer_peek(lx, 2))))) {
      lx->at++;
      open_point = true;
    }
  }
  if ((ccn__lexer_peek(lx, 0) | 32) == (hex ? 'p' : 'e')) {
    is_float = read_exponent(lx, &exponent);
    no_exponent = !is_float;
  } else if (hex && is_float) {
    no_exponent = true;
  }
  t->kind = is_float || open_point ? CCN__TOK_FLOAT : CCN__TOK_INT;
  if (runs_on(lx)) {
    bad_number(lx, t, no_exponent ? "the exponent has no digits" : "a number runs into other characters",
               "numbers are written 12, 1_000, 1.5, 1e-3, 0x1F, 0x1.8p3");
  } else if (open_point) {
    bad_number(lx, t, "digits are missing behind the point", "write 1.0 rather than 1.");
  } else if (d.n == 0) {
    bad_number(lx, t, "digits are missing", "write it as in 0x1F");
  } else if (d.bad_underscore) {
    bad_number(lx, t, "an underscore stands between two digits", NULL);
  } else if (no_exponent) {
    bad_number(lx, t, "a hexadecimal fraction needs its power of two", "write it as in 0x1.8p3");
  } else if (is_float) {
    make_float(lx, t, &d, hex, exponent);
  } else {
    make_int(lx, t, &d, hex ? 16 : 10);
  }
}

/* ---- strings ---- */

void ccn__lexer_bad_string(ccn__lexer *lx, ccn__token *t) {
  t->kind = CCN__TOK_ERROR;
  t->code = 3;
  t->i = lx->strings.at[0].quote; /* the token itself stands here: spans of nodes follow tokens */
  if (lx->at > t->i + 1 && lx->text[lx->at - 1] == '\r') lx->at--;
  if (t->start > lx->at) t->start = lx->at;
  lx->strings.n = 0;
  lx->in_text = false;
}

static void bad_escape(ccn__lexer *lx, uint32_t start, uint32_t end, const char *message, const char *hint) {
  ccn__diag *d = ccn__error(lx->ds, 7, ccn__lexer_span(lx, start, end), "in this string", "%s", message);
  ccn__hint(lx->ds, d, "%s", hint);
  lx->errors++;
}

static uint32_t put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (uint32_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
  out[0] = (char)(lead[n] | c);
  return n;
}

/* \u{1F600}: `at` stands behind the u. Returns the offset behind it. */
static uint32_t unicode_escape(ccn__lexer *lx, uint32_t at, uint32_t end, char *out, uint32_t *n) {
  uint32_t start = at - 2, c = 0, count = 0;
  bool good = at < end && lx->text[at] == '{';
  if (good) at++;
  for (; good && at < end && hex_value(lx->text[at]) >= 0; at++, count++) {
    if (count < 7) c = c * 16 + (uint32_t)hex_value(lx->text[at]);
  }
  good = good && count >= 1 && count <= 6 && at < end && lx->text[at] == '}' && c <= 0x10FFFF &&
         !(c >= 0xD800 && c < 0xE000);
  if (at < end && lx->text[at] == '}') at++;
  if (good) {
    *n += put_utf8(out + *n, c);
  } else {
    bad_escape(lx, start, at, "`\\u` is followed by the number of a character in braces",
               "write it as in \\u{1F600}; at most 10FFFF, not D800 to DFFF");
  }
  return at;
}

/* The escape at `at` (a backslash), which is followed by at least one byte. Returns the offset behind it. */
static uint32_t escape(ccn__lexer *lx, uint32_t at, uint32_t end, char *out, uint32_t *n) {
  char c = lx->text[at + 1], value;
  switch (c) {
  case 'n': value = '\n'; break;
  case 't': value = '\t'; break;
  case 'r': value = '\r'; break;
  case '0': value = '\0'; break;
  case '"':
  case '\\': value = c; break;
  case 'u': return unicode_escape(lx, at + 2, end, out, n);
  default: {
    uint32_t size = ccn__utf8_decode(lx->text + at + 1, end - at - 1, NULL);
    bad_escape(lx, at, at + 1 + (size ? size : 1), "unknown escape in a string",
               c == '{' || c == '}' ? "braces are written twice: {{ and }}"
                                    : "there are \\n \\t \\r \\0 \\\" \\\\ and \\u{1F600}");
    return at + 1;
  }
  }
  out[(*n)++] = value;
  return at + 2;
}

/* Finds the end of a run of text: the quote, an insertion or the end of the line. *out_plain: nothing to
 * decode. */
static uint32_t text_end(const ccn__lexer *lx, bool *out_plain) {
  uint32_t at = lx->at;
  *out_plain = true;
  for (; at < lx->size; at++) {
    unsigned char c = (unsigned char)lx->text[at];
    char next = lx->size - at > 1 ? lx->text[at + 1] : '\0';
    if (c == '"' || c == '\n') break;
    if (c == '\r' && next == '\n') break;
    if (c == '{' && next != '{') break;
    if (c == '{' || (c == '}' && next == '}') ||
        (c == '\\' && lx->size - at > 1 && next != '\n' && next != '\r')) {
      /* \u{ is no insertion */
      if (c == '\\' && next == 'u' && lx->size - at > 2 && lx->text[at + 2] == '{') at++;
      at++;
      *out_plain = false;
    } else if (c < 0x20 || c >= 0x7F || c == '}' || c == '\\') {
      *out_plain = false;
    }
  }
  return at;
}

/* Decodes [lx->at, end) into `out`, which has room for as many bytes: nothing gets longer. Returns its
 * size. */
static uint32_t decode(ccn__lexer *lx, uint32_t end, char *out) {
  uint32_t n = 0, at = lx->at;
  bool reported = false;
  while (at < end) {
    char c = lx->text[at];
    if (c == '\\' && end - at > 1) {
      at = escape(lx, at, end, out, &n);
      continue;
    }
    uint32_t ch = 0, size = ccn__utf8_decode(lx->text + at, end - at, &ch);
    if ((size == 0 || (ch < 0x20 && ch != '\t') || ch == 0x7F) && !reported) {
      ccn__diag *d =
        ccn__error(lx->ds, 2, ccn__lexer_span(lx, at, at + 1), size ? "a control character" : "not UTF-8",
                   size ? "a control character in a string" : "this byte is not UTF-8");
      ccn__hint(lx->ds, d,
                size ? "write it as an escape: \\n \\t \\r \\0 \\u{1B}" : "save the file as UTF-8");
      reported = true;
      lx->errors++;
    }
    if (c == '}' && !(end - at > 1 && lx->text[at + 1] == '}')) {
      bad_escape(lx, at, at + 1, "a single `}` in a string", "braces are written twice: {{ and }}");
    }
    if (size == 0) size = 1;
    memcpy(out + n, lx->text + at, size);
    n += size;
    at += size + (c == '{' || (c == '}' && end - at > 1 && lx->text[at + 1] == '}') ? 1u : 0u);
  }
  return n;
}

void ccn__lexer_string_piece(ccn__lexer *lx, ccn__token *t) {
  bool plain;
  char c = ccn__lexer_peek(lx, 0);
  if (lx->at < lx->size && c == '"') {
    lx->at++;
    lx->strings.n--;
    lx->in_text = false; /* an outer string is inside its {} */
    t->kind = CCN__TOK_QUOTE_END;
    return;
  }
  if (c == '{' && ccn__lexer_peek(lx, 1) != '{') {
    lx->at++;
    lx->strings.at[lx->strings.n - 1].depth = 0;
    lx->in_text = false;
    t->kind = CCN__TOK_INSERT;
    return;
  }
  if (lx->at == lx->size || c == '\n' || (c == '\r' && ccn__lexer_peek(lx, 1) == '\n')) {
    ccn__lexer_bad_string(lx, t);
    return;
  }
  uint32_t end = text_end(lx, &plain);
  t->kind = CCN__TOK_TEXT;
  if (plain) {
    t->size = end - lx->at;
    t->str = ccn__arena_strndup(lx->arena, lx->text + lx->at, t->size);
  } else {
    char *out = ccn__arena_alloc(lx->arena, (size_t)(end - lx->at) + 1);
    t->size = decode(lx, end, out);
    t->str = out;
  }
  lx->at = end;
}
