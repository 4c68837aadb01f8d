/* npy.c: NumPy's .npy headers, read from hostile bytes and written as numpy.save writes them.
 *
 * The format: NumPy Enhancement Proposal 1 and numpy/lib/format.py. A file is "\x93NUMPY", two version bytes,
 * the header's length (little-endian, 2 bytes in version 1, 4 in 2 and 3), the header, the data. The header
 * is a Python dict literal with exactly the keys descr, fortran_order and shape; here it is read by a grammar
 * of its own, in any order and spacing. Nothing is allocated and nothing outside [file, file + size) is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include <stdio.h>
#include <string.h>

static const char malformed[] = "the header is not a dict of descr, fortran_order and shape";
static const char bad_shape[] = "the shape is not a tuple of non-negative integers";

/* ---- the header's text ------------------------------------------------------------------------------- */

typedef struct text {
  const unsigned char *p, *end;
} text;

static void skip_space(text *t) {
  while (t->p < t->end && (*t->p == ' ' || *t->p == '\t' || *t->p == '\n' || *t->p == '\r' || *t->p == '\f'))
    t->p++;
}

static bool take(text *t, char c) {
  skip_space(t);
  if (t->p == t->end || *t->p != (unsigned char)c) return false;
  t->p++;
  return true;
}

static bool take_word(text *t, const char *word) {
  const size_t n = strlen(word);
  skip_space(t);
  if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0) return false;
  t->p += n;
  return true;
}

/* A string in quotes of either kind, without escapes: no name here needs one. */
static bool take_string(text *t, const char **out, size_t *out_size) {
  skip_space(t);
  if (t->p == t->end || (*t->p != '\'' && *t->p != '"')) return false;
  const unsigned char quote = *t->p++, *const first = t->p;
  while (t->p < t->end && *t->p != quote && *t->p != '\\' && *t->p >= ' ') t->p++;
  if (t->p == t->end || *t->p != quote) return false;
  *out = (const char *)first;
  *out_size = (size_t)(t->p++ - first);
  return true;
}

static bool same(const char *s, size_t n, const char *word) {
  return n == strlen(word) && memcmp(s, word, n) == 0;
}

/* ---- the three values -------------------------------------------------------------------------------- */

static const char *parse_descr(text *t, ccn__npy *out) {
  static const struct {
    char name[3];
    uint8_t dtype;
  } known[] = {
    {"f8", CCN__F64}, {"f4", CCN__F32}, {"f2", CCN__F16}, {"i8", CCN__I64},  {"i4", CCN__I32},
    {"i2", CCN__I16}, {"i1", CCN__I8},  {"u1", CCN__U8},  {"b1", CCN__BOOL},
  };
  const char *s;
  size_t n;
  if (take(t, '[')) return "records have no counterpart in CCN";
  if (!take_string(t, &s, &n)) return malformed;
  if (n < 2 || !memchr("<>=|", s[0], 4)) return "the dtype has no counterpart in CCN";
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (!same(s + 1, n - 1, known[i].name)) continue;
    const bool wide = known[i].name[1] != '1';
    if (wide && s[0] == '|') return "the dtype's byte order is missing";
    out->dtype = (ccn__dtype)known[i].dtype;
    out->swapped = wide && s[0] == '>'; /* '=' is the writer's own order: taken as little-endian */
    return NULL;
  }
  if (same(s + 1, n - 1, "u2")) return "dtype uint16 has no counterpart in CCN";
  if (same(s + 1, n - 1, "u4")) return "dtype uint32 has no counterpart in CCN";
  if (same(s + 1, n - 1, "u8")) return "dtype uint64 has no counterpart in CCN";
  if (same(s + 1, n - 1, "c8")) return "dtype complex64 has no counterpart in CCN";
  if (same(s + 1, n - 1, "c16")) return "dtype complex128 has no counterpart in CCN";
  if (same(s + 1, n - 1, "f16")) return "dtype float128 has no counterpart in CCN";
  switch (s[1]) {
  case 'S':
  case 'a':
  case 'U': return "strings have no counterpart in CCN";
  case 'O': return "Python objects have no counterpart in CCN";
  case 'M':
  case 'm': return "dates and times have no counterpart in CCN";
  case 'V': return "raw bytes have no counterpart in CCN";
  default: return "the dtype has no counterpart in CCN";
  }
}

static const char *parse_dim(text *t, int64_t *out) {
  skip_space(t);
  if (t->p < t->end && *t->p == '-') return "a dim is negative";
  if (t->p == t->end || *t->p < '0' || *t->p > '9') return bad_shape;
  const unsigned char *const first = t->p;
  uint64_t value = 0;
  for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++) {
    const unsigned digit = *t->p - '0';
    if (value > ((uint64_t)INT64_MAX - digit) / 10) return "a dim does not fit in 64 bits";
    value = value * 10 + digit;
  }
  if (*first == '0' && t->p - first > 1) return bad_shape; /* no Python literal */
  *out = (int64_t)value;
  return NULL;
}

/* () or (3,) or (3, 4) or (3, 4,): (3) is no tuple */
static const char *parse_shape(text *t, ccn__npy *out) {
  if (!take(t, '(')) return bad_shape;
  bool comma = true;
  while (!take(t, ')')) {
    if (!comma) return bad_shape;
    if (out->rank == CCN__NPY_MAX_RANK) return "more than 32 dims";
    const char *error = parse_dim(t, &out->dim[out->rank]);
    if (error) return error;
    out->rank++;
    comma = take(t, ',');
  }
  return out->rank == 1 && !comma ? bad_shape : NULL;
}

static const char *parse_dict(text *t, ccn__npy *out) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
  unsigned seen = 0;
  bool comma = true;
  if (!take(t, '{')) return malformed;
  while (!take(t, '}')) {
    const char *key;
    size_t n;
    const char *error = NULL;
    unsigned now;
    if (!comma || !take_string(t, &key, &n) || !take(t, ':')) return malformed;
    if (same(key, n, "descr")) now = DESCR;
    else if (same(key, n, "fortran_order")) now = ORDER;
    else if (same(key, n, "shape")) now = SHAPE;
    else return malformed;
    if (seen & now) return malformed;
    seen |= now;
    if (now == DESCR) error = parse_descr(t, out);
    else if (now == SHAPE) error = parse_shape(t, out);
    else if (take_word(t, "True")) out->fortran = true;
    else if (!take_word(t, "False")) return malformed;
    if (error) return error;
    comma = take(t, ',');
  }
  skip_space(t);
  return seen == (DESCR | ORDER | SHAPE) && t->p == t->end ? NULL : malformed;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

const char *ccn__npy_parse(const void *file, size_t size, ccn__npy *out) {
  static const char inside[] = "the file ends inside the header";
  const unsigned char *f = file;
  memset(out, 0, sizeof *out);
  if (size == 0) return "the file is empty";
  if (memcmp(f, "\x93NUMPY", size < 6 ? size : 6) != 0) return "not a .npy file";
  if (size < 8) return inside;
  if (f[6] < 1 || f[6] > 3 || f[7] != 0) return "the format's version is none of 1.0, 2.0, 3.0";
  const size_t prefix = f[6] == 1 ? 10 : 12;
  if (size < prefix) return inside;
  size_t length = (size_t)f[8] | (size_t)f[9] << 8;
  if (prefix == 12) length |= (size_t)f[10] << 16 | (size_t)f[11] << 24;
  if (length > size - prefix) return inside;
  text t = {f + prefix, f + prefix + length};
  const char *error = parse_dict(&t, out);
  if (error) return error;
  out->data = prefix + length;

  /* As NumPy, refuse what overflows even where another dim is 0: strides are computed from the other dims. */
  uint64_t elements = 1, most = (uint64_t)INT64_MAX / ccn__dtype_size(out->dtype);
  bool empty = false;
  for (uint32_t i = 0; i < out->rank; i++) {
    const uint64_t d = (uint64_t)out->dim[i];
    if (d == 0) {
      empty = true;
    } else {
      if (elements > most / d) return "the shape has too many elements";
      elements *= d;
    }
  }
  out->elements = empty ? 0 : elements;
  if (out->elements > (size - out->data) / ccn__dtype_size(out->dtype))
    return "the file ends inside the data";
  return NULL;
}

/* "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", room for the first dim to grow to 21 digits
 * in place (NumPy 1.23 and later), spaces to a multiple of 64, a newline: numpy/lib/format.py,
 * _write_array_header. */
size_t ccn__npy_header(ccn__dtype t, const int64_t *dim, uint32_t rank, char *out) {
  static const char *const descr[CCN__DTYPE_COUNT] = {
    [CCN__F64] = "<f8", [CCN__F32] = "<f4", [CCN__F16] = "<f2", [CCN__I64] = "<i8",  [CCN__I32] = "<i4",
    [CCN__I16] = "<i2", [CCN__I8] = "|i1",  [CCN__U8] = "|u1",  [CCN__BOOL] = "|b1",
  };
  enum { PREFIX = 10, GROWTH = 21 };
  if (!descr[t] || rank > CCN__NPY_MAX_RANK) return 0;
  char *const end = out + CCN__NPY_HEADER_MAX;
  char *p = out + PREFIX;
  p += snprintf(p, (size_t)(end - p), "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[t]);
  size_t first_digits = GROWTH; /* no dims: nothing to grow */
  for (uint32_t i = 0; i < rank; i++) {
    if (dim[i] < 0) return 0;
    const int digits = snprintf(p, (size_t)(end - p), "%lld", (long long)dim[i]);
    if (i == 0) first_digits = (size_t)digits;
    p += digits;
    p += snprintf(p, (size_t)(end - p), "%s", i + 1 < rank ? ", " : rank == 1 ? "," : "");
  }
  p += snprintf(p, (size_t)(end - p), "), }");
  for (size_t i = first_digits; i < GROWTH; i++) *p++ = ' ';
  /* NumPy pads by 1 to 64, never by 0; 60 + 32 dims of at most 21 bytes + 20 + 64 stay below the room */
  do *p++ = ' ';
  while ((p - out + 1) % 64 != 0);
  *p++ = '\n';
  const size_t length = (size_t)(p - out) - PREFIX;
  memcpy(out, "\x93NUMPY\x01", 8);
  out[8] = (char)(length & 0xff);
  out[9] = (char)(length >> 8);
  return (size_t)(p - out);
}
