/* json.c: the strict reader of JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

static bool fail(ccn__json *j, const char *error) {
  if (!j->error) j->error = error;
  return false;
}

static bool unexpected(ccn__json *j) {
  return fail(j, j->p == j->end ? "the JSON ends too early" : "the JSON is malformed");
}

void ccn__json_init(ccn__json *j, ccn__arena *a, const char *text, size_t size) {
  *j = (ccn__json){.arena = a, .p = text, .end = text + size};
}

static void skip_blanks(ccn__json *j) {
  while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r')) j->p++;
}

static bool take(ccn__json *j, char c) {
  skip_blanks(j);
  if (j->error || j->p == j->end || *j->p != c) return false;
  j->p++;
  return true;
}

bool ccn__json_at_end(ccn__json *j) {
  skip_blanks(j);
  return !j->error && (j->p == j->end || fail(j, "something follows the JSON"));
}

/* ---- UTF-8 ---- */

/* Bytes of the character at s (at most n > 0), 0 if it is none. */
static size_t utf8_size(const char *s, size_t n) {
  const unsigned char *u = (const unsigned char *)s;
  const size_t size = u[0] < 0x80   ? 1
                      : u[0] < 0xC2 ? 0
                      : u[0] < 0xE0 ? 2
                      : u[0] < 0xF0 ? 3
                      : u[0] < 0xF5 ? 4
                                    : 0;
  if (size > n) return 0;
  for (size_t i = 1; i < size; i++)
    if ((u[i] & 0xC0) != 0x80) return 0;
  if (size == 3 && ((u[0] == 0xE0 && u[1] < 0xA0) || (u[0] == 0xED && u[1] > 0x9F))) return 0;
  if (size == 4 && ((u[0] == 0xF0 && u[1] < 0x90) || (u[0] == 0xF4 && u[1] > 0x8F))) return 0;
  return size;
}

bool ccn__is_utf8(const char *s, size_t n) {
  for (size_t i = 0, k; i < n; i += k) {
    k = utf8_size(s + i, n - i);
    if (!k) return false;
  }
  return true;
}

static char *put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    *out++ = (char)c;
  } else if (c < 0x800) {
    *out++ = (char)(0xC0 | c >> 6);
    *out++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *out++ = (char)(0xE0 | c >> 12);
    *out++ = (char)(0x80 | (c >> 6 & 63));
    *out++ = (char)(0x80 | (c & 63));
  } else {
    *out++ = (char)(0xF0 | c >> 18);
    *out++ = (char)(0x80 | (c >> 12 & 63));
    *out++ = (char)(0x80 | (c >> 6 & 63));
    *out++ = (char)(0x80 | (c & 63));
  }
  return out;
}

/* ---- strings ---- */

static const char bad_escape[] = "a string holds an unknown escape";

/* The four digits of \uXXXX at j->p. */
static bool hex4(ccn__json *j, uint32_t *out) {
  if (j->end - j->p < 4) return fail(j, bad_escape);
  *out = 0;
  for (int i = 0; i < 4; i++) {
    const char c = *j->p++, low = (char)(c | 32);
    if (c >= '0' && c <= '9') *out = *out << 4 | (uint32_t)(c - '0');
    else if (low >= 'a' && low <= 'f') *out = *out << 4 | (uint32_t)(low - 'a' + 10);
    else return fail(j, bad_escape);
  }
  return true;
}

/* Behind \u. Six bytes or twelve become at most four. */
static bool unicode_escape(ccn__json *j, char **out) {
  uint32_t c, low;
  if (!hex4(j, &c)) return false;
  if (c >= 0xD800 && c < 0xE000) {
    static const char lone[] = "a string holds half of a surrogate pair";
    if (c >= 0xDC00 || j->end - j->p < 2 || j->p[0] != '\\' || j->p[1] != 'u') return fail(j, lone);
    j->p += 2;
    if (!hex4(j, &low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return fail(j, lone);
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
  }
  *out = put_utf8(*out, c);
  return true;
}

static bool escape(ccn__json *j, char **out) {
  static const char letter[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (j->p == j->end) return fail(j, bad_escape);
  const char c = *j->p++;
  if (c == 'u') return unicode_escape(j, out);
  const char *at = memchr(letter, c, sizeof letter - 1);
  if (!at) return fail(j, bad_escape);
  *(*out)++ = meant[at - letter];
  return true;
}

/* The closing quote of the string whose text starts at p; NULL if there is none. */
static const char *closing_quote(const char *p, const char *end) {
  for (; p < end && *p != '"'; p++)
    if (*p == '\\' && ++p == end) return NULL;
  return p < end ? p : NULL;
}

bool ccn__json_read_string(ccn__json *j, const char **out, size_t *out_size) {
  if (!take(j, '"')) return unexpected(j);
  const char *close = closing_quote(j->p, j->end);
  if (!close) return fail(j, "a string is not closed");
  char *text = ccn__arena_alloc(j->arena, (size_t)(close - j->p) + 1), *to = text; /* nothing gets longer */
  while (j->p < close) {
    const size_t n = utf8_size(j->p, (size_t)(close - j->p));
    if (n == 0) return fail(j, "a string is not UTF-8");
    if ((unsigned char)*j->p < 0x20) return fail(j, "a string holds a control character");
    if (*j->p == '\\') {
      j->p++;
      if (!escape(j, &to)) return false;
    } else {
      memcpy(to, j->p, n);
      to += n;
      j->p += n;
    }
  }
  j->p = close + 1;
  *out = text;
  *out_size = (size_t)(to - text);
  return true;
}

/* ---- numbers ---- */

static bool is_digit(const ccn__json *j) { return j->p < j->end && *j->p >= '0' && *j->p <= '9'; }

bool ccn__json_read_natural(ccn__json *j, uint64_t *out) {
  skip_blanks(j);
  if (j->error || !is_digit(j)) return fail(j, "a number is not a natural one");
  const char *first = j->p;
  uint64_t value = 0;
  for (; is_digit(j); j->p++) {
    const uint64_t digit = (uint64_t)(*j->p - '0');
    if (value > ((uint64_t)INT64_MAX - digit) / 10) return fail(j, "a number does not fit in 64 bits");
    value = value * 10 + digit;
  }
  if (*first == '0' && j->p - first > 1) return unexpected(j);
  if (j->p < j->end && (*j->p == '.' || (*j->p | 32) == 'e')) return fail(j, "a number is not a natural one");
  *out = value;
  return true;
}

static bool digits(ccn__json *j) {
  if (!is_digit(j)) return unexpected(j);
  while (is_digit(j)) j->p++;
  return true;
}

static bool skip_number(ccn__json *j) {
  if (j->p < j->end && *j->p == '-') j->p++;
  if (j->p < j->end && *j->p == '0') j->p++; /* no digit may follow; what reads on will see it */
  else if (!digits(j)) return false;
  if (j->p < j->end && *j->p == '.' && (j->p++, !digits(j))) return false;
  if (j->p < j->end && (*j->p | 32) == 'e') {
    j->p++;
    if (j->p < j->end && (*j->p == '+' || *j->p == '-')) j->p++;
    return digits(j);
  }
  return true;
}

/* ---- objects and arrays ---- */

bool ccn__json_open(ccn__json *j, char bracket) { return take(j, bracket) || unexpected(j); }

static bool next(ccn__json *j, bool *first, char close) {
  const bool was_first = *first;
  *first = false;
  if (take(j, close)) return false;
  return was_first ? !j->error : take(j, ',') || unexpected(j);
}

bool ccn__json_element(ccn__json *j, bool *first) { return next(j, first, ']'); }

bool ccn__json_member(ccn__json *j, bool *first, const char **out_key, size_t *out_size) {
  if (!next(j, first, '}') || !ccn__json_read_string(j, out_key, out_size)) return false;
  return take(j, ':') || unexpected(j);
}

static bool skip_word(ccn__json *j, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0) return unexpected(j);
  j->p += n;
  return true;
}

static bool skip_value(ccn__json *j, uint32_t depth) {
  const char *s;
  size_t n;
  bool first = true;
  skip_blanks(j);
  if (j->error || j->p == j->end) return unexpected(j);
  if (depth == CCN__JSON_MAX_DEPTH) return fail(j, "the JSON is nested too deep");
  switch (*j->p) {
  case '"': return ccn__json_read_string(j, &s, &n);
  case 't': return skip_word(j, "true");
  case 'f': return skip_word(j, "false");
  case 'n': return skip_word(j, "null");
  case '{':
    j->p++;
    while (ccn__json_member(j, &first, &s, &n)) skip_value(j, depth + 1);
    return !j->error;
  case '[':
    j->p++;
    while (ccn__json_element(j, &first)) skip_value(j, depth + 1);
    return !j->error;
  default: return skip_number(j);
  }
}

bool ccn__json_skip(ccn__json *j) { return skip_value(j, 0); }
