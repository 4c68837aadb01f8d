/* safetensors.c: reads safetensors files from hostile bytes, writes them byte for byte as the reference does.
 *
 * Stricter than the reference where it only shrugs: names are unique and without zero bytes, and shapes may
 * not overflow even where a dim is 0 (strides are computed from the others). Nothing
 * outside [file, file + size) is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "safetensors.h"

#include "json.h"

/* ---- dtypes ---- */

enum { NO_DTYPE = CCN__DTYPE_COUNT };

static const struct dtype_row {
  const char *name;
  uint8_t dtype, bits;
  const char *refused;
} dtypes[] = {
#define HELD(name, dtype, bits) \
  { name, dtype, bits, NULL }
#define REFUSED(name, bits) \
  { name, NO_DTYPE, bits, "dtype " name " has no counterpart in CCN" }
  HELD("F64", CCN__F64, 64), HELD("F32", CCN__F32, 32),
  HELD("F16", CCN__F16, 16), HELD("BF16", CCN__BF16, 16),
  HELD("I64", CCN__I64, 64), HELD("I32", CCN__I32, 32),
  HELD("I16", CCN__I16, 16), HELD("I8", CCN__I8, 8),
  HELD("U8", CCN__U8, 8),    HELD("BOOL", CCN__BOOL, 8),
  REFUSED("U16", 16),        REFUSED("U32", 32),
  REFUSED("U64", 64),        REFUSED("C64", 64),
  REFUSED("F8_E4M3", 8),     REFUSED("F8_E5M2", 8),
  REFUSED("F8_E8M0", 8),     REFUSED("F8_E4M3FNUZ", 8),
  REFUSED("F8_E5M2FNUZ", 8), REFUSED("F6_E2M3", 6),
  REFUSED("F6_E3M2", 6),     REFUSED("F4", 4),
#undef HELD
#undef REFUSED
};

static bool same(const char *s, size_t n, const char *word) {
  return n == strlen(word) && memcmp(s, word, n) == 0;
}

static const struct dtype_row *find_dtype(const char *s, size_t n) {
  for (size_t i = 0; i < CCN__COUNT(dtypes); i++)
    if (same(s, n, dtypes[i].name)) return &dtypes[i];
  return NULL;
}

/* Elements of a shape, and the bytes of so many elements. False if they do not fit, or end inside a byte. */
static bool size_of(const int64_t *dim, uint32_t rank, uint32_t bits, uint64_t *out_elements,
                    uint64_t *out_bytes) {
  uint64_t n = 1;
  bool empty = false;
  for (uint32_t i = 0; i < rank; i++) {
    const uint64_t d = (uint64_t)dim[i];
    if (d == 0) empty = true;
    else if (n > (uint64_t)INT64_MAX / 8 / d) return false;
    else n *= d;
  }
  *out_elements = empty ? 0 : n;
  *out_bytes = bits >= 8 ? *out_elements * (bits / 8) : *out_elements * bits / 8;
  return bits >= 8 || *out_elements * bits % 8 == 0;
}

/* ---- order ---- */

typedef int (*compare)(const ccn__safetensor *a, const ccn__safetensor *b);

static int by_name(const ccn__safetensor *a, const ccn__safetensor *b) {
  const size_t n = a->name_size < b->name_size ? a->name_size : b->name_size;
  const int c = n ? memcmp(a->name, b->name, n) : 0;
  return c ? c : (a->name_size > b->name_size) - (a->name_size < b->name_size);
}

static int by_range(const ccn__safetensor *a, const ccn__safetensor *b) {
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Merges the sorted halves [lo, mid) and [mid, hi). */
static void merge(const ccn__safetensor *t, compare order, const uint32_t *from, uint32_t *to, size_t lo,
                  size_t mid, size_t hi) {
  for (size_t i = lo, j = mid, k = lo; k < hi; k++) {
    const bool left = i < mid && (j == hi || order(&t[from[i]], &t[from[j]]) <= 0);
    to[k] = left ? from[i++] : from[j++];
  }
}

/* The indices 0..n in order. qsort may allocate, and its worst case is nobody's promise. */
static uint32_t *sorted(ccn__arena *a, const ccn__safetensor *t, uint32_t n, compare order) {
  uint32_t *from = CCN__NEWN(a, uint32_t, n), *to = CCN__NEWN(a, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) from[i] = i;
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t lo = 0; lo < n; lo += 2 * width) {
      const size_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n;
      merge(t, order, from, to, lo, mid, hi);
    }
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  return from;
}

static bool has_duplicates(const ccn__safetensor *t, const uint32_t *order, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (by_name(&t[order[i - 1]], &t[order[i]]) == 0) return true;
  return false;
}

/* ---- reading ---- */

typedef struct header {
  ccn__json json;
  ccn__arena *arena;
  size_t data, data_size; /* where data starts, how much there is */
  CCN__VEC(ccn__safetensor) tensors;
  CCN__VEC(ccn__safetensors_text) metadata;
  bool has_metadata;
  const char *error; /* what JSON alone does not know */
} header;

static bool fail(header *h, const char *error) {
  if (!h->error && !h->json.error) h->error = error;
  return false;
}

static bool read_shape(header *h, ccn__safetensor *t) {
  int64_t dim[CCN__SAFETENSORS_MAX_RANK];
  bool first = true;
  uint64_t d;
  t->rank = 0;
  if (!ccn__json_open(&h->json, '[')) return false;
  while (ccn__json_element(&h->json, &first)) {
    if (t->rank == CCN__SAFETENSORS_MAX_RANK) return fail(h, "a tensor has more than 32 dims");
    if (!ccn__json_read_natural(&h->json, &d)) return false;
    dim[t->rank++] = (int64_t)d;
  }
  if (h->json.error) return false;
  int64_t *own = CCN__NEWN(h->arena, int64_t, t->rank);
  memcpy(own, dim, t->rank * sizeof *dim);
  t->dim = own;
  return true;
}

static bool read_range(header *h, uint64_t *begin, uint64_t *end) {
  ccn__json *j = &h->json;
  bool first = true;
  return (ccn__json_open(j, '[') && ccn__json_element(j, &first) && ccn__json_read_natural(j, begin) &&
          ccn__json_element(j, &first) && ccn__json_read_natural(j, end) && !ccn__json_element(j, &first)) ||
         fail(h, "data_offsets are not two numbers");
}

static bool place(header *h, ccn__safetensor *t, const struct dtype_row *row, uint64_t begin, uint64_t end) {
  uint64_t bytes;
  if (!size_of(t->dim, t->rank, row->bits, &t->elements, &bytes))
    return fail(h, row->bits < 8 ? "a tensor has too many elements, or ends inside a byte"
                                 : "a tensor has too many elements");
  if (begin > end) return fail(h, "a tensor's data ends before it begins");
  if (end > h->data_size) return fail(h, "the file ends inside the data");
  if (end - begin != bytes) return fail(h, "a tensor's data is not as long as its dtype and shape say");
  t->offset = h->data + (size_t)begin;
  t->bytes = (size_t)bytes;
  t->refused = row->refused;
  t->dtype = row->dtype == NO_DTYPE ? CCN__F32 : (ccn__dtype)row->dtype;
  return true;
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...} in any order; other members are read over. */
static bool read_tensor(header *h, const char *name, size_t name_size) {
  enum { DTYPE = 1, SHAPE = 2, RANGE = 4 };
  ccn__safetensor t = {.name = name, .name_size = name_size};
  const struct dtype_row *row = NULL;
  const char *key, *s;
  size_t n, size;
  uint64_t begin = 0, end = 0;
  unsigned seen = 0;
  bool first = true;
  if (memchr(name, '\0', name_size)) return fail(h, "a tensor's name holds a zero byte");
  if (!ccn__json_open(&h->json, '{')) return false;
  while (ccn__json_member(&h->json, &first, &key, &n)) {
    const unsigned now = same(key, n, "dtype")          ? DTYPE
                         : same(key, n, "shape")        ? SHAPE
                         : same(key, n, "data_offsets") ? RANGE
                                                        : 0;
    if (seen & now) return fail(h, "a tensor has two dtypes, shapes or data_offsets");
    seen |= now;
    if (now == DTYPE) {
      if (!ccn__json_read_string(&h->json, &s, &size)) return false;
      row = find_dtype(s, size);
      if (!row) return fail(h, "a tensor has an unknown dtype");
    } else if (now == SHAPE   ? !read_shape(h, &t)
               : now == RANGE ? !read_range(h, &begin, &end)
                              : !ccn__json_skip(&h->json)) {
      return false;
    }
  }
  if (h->json.error) return false;
  if (seen != (DTYPE | SHAPE | RANGE)) return fail(h, "a tensor has no dtype, no shape or no data_offsets");
  if (!place(h, &t, row, begin, end)) return false;
  *CCN__PUSH(h->arena, &h->tensors) = t;
  return true;
}

static bool read_metadata(header *h) {
  bool first = true;
  ccn__safetensors_text m;
  if (h->has_metadata) return fail(h, "there are two __metadata__");
  h->has_metadata = true;
  if (!ccn__json_open(&h->json, '{')) return false;
  while (ccn__json_member(&h->json, &first, &m.key, &m.key_size)) {
    if (!ccn__json_read_string(&h->json, &m.value, &m.value_size)) return false;
    *CCN__PUSH(h->arena, &h->metadata) = m;
  }
  return !h->json.error;
}

static bool read_header(header *h) {
  const char *key;
  size_t n;
  bool first = true;
  if (!ccn__json_open(&h->json, '{')) return false;
  while (ccn__json_member(&h->json, &first, &key, &n)) {
    if (!(same(key, n, "__metadata__") ? read_metadata(h) : read_tensor(h, key, n))) return false;
  }
  return !h->json.error && ccn__json_at_end(&h->json);
}

/* The ranges follow each other from the first byte of the data to the last. */
static const char *check_ranges(const header *h) {
  const uint32_t *order = sorted(h->arena, h->tensors.at, h->tensors.n, by_range);
  size_t at = h->data;
  for (uint32_t i = 0; i < h->tensors.n; i++) {
    const ccn__safetensor *t = &h->tensors.at[order[i]];
    if (t->offset < at) return "the data of two tensors overlaps";
    if (t->offset > at) return "there is a hole between the data of two tensors";
    at += t->bytes;
  }
  return at == h->data + h->data_size ? NULL : "something follows the data of the last tensor";
}

const char *ccn__safetensors_open(ccn__arena *a, const void *file, size_t size, ccn__safetensors *out) {
  const unsigned char *f = file;
  header h = {.arena = a};
  uint64_t length = 0;
  memset(out, 0, sizeof *out);
  if (size == 0) return "the file is empty";
  if (size < 8) return "the file ends inside the length of the header";
  for (int i = 8; i-- > 0;) length = length << 8 | f[i];
  if (length > CCN__SAFETENSORS_MAX_HEADER)
    return "not a safetensors file, or its header is longer than 100 MB";
  if (length > size - 8) return "the file ends inside the header";
  if (length == 0 || f[8] != '{') return "not a safetensors file: its header does not start with a brace";
  h.data = 8 + (size_t)length;
  h.data_size = size - h.data;
  ccn__json_init(&h.json, a, (const char *)f + 8, (size_t)length);
  if (!read_header(&h)) return h.error ? h.error : h.json.error;
  const char *error = check_ranges(&h);
  if (error) return error;
  out->by_name = sorted(a, h.tensors.at, h.tensors.n, by_name);
  if (has_duplicates(h.tensors.at, out->by_name, h.tensors.n)) return "two tensors have the same name";
  out->at = h.tensors.at;
  out->n = h.tensors.n;
  out->metadata = h.metadata.at;
  out->nmetadata = h.metadata.n;
  return NULL;
}

const ccn__safetensor *ccn__safetensors_find(const ccn__safetensors *s, const char *name, size_t size) {
  const ccn__safetensor wanted = {.name = name, .name_size = size};
  for (uint32_t lo = 0, hi = s->n; lo < hi;) {
    const uint32_t mid = lo + (hi - lo) / 2;
    const int c = by_name(&wanted, &s->at[s->by_name[mid]]);
    if (c == 0) return &s->at[s->by_name[mid]];
    if (c < 0) hi = mid;
    else lo = mid + 1;
  }
  return NULL;
}

/* ---- writing ---- */

/* As serde_json writes it: short escapes, \u00XX for other control characters, the rest as it is. */
static void put_string(ccn__text *out, const char *s, size_t n) {
  static const char control[] = "\b\t\n\f\r", letter[] = "btnfr";
  ccn__text_putc(out, '"');
  for (size_t i = 0; i < n; i++) {
    const char *at = s[i] ? strchr(control, s[i]) : NULL;
    if (s[i] == '"' || s[i] == '\\') ccn__text_printf(out, "\\%c", s[i]);
    else if (at) ccn__text_printf(out, "\\%c", letter[at - control]);
    else if ((unsigned char)s[i] < 0x20) ccn__text_printf(out, "\\u%04x", (unsigned)s[i]);
    else ccn__text_putc(out, s[i]);
  }
  ccn__text_putc(out, '"');
}

static void put_metadata(ccn__text *out, const ccn__safetensors_text *m, uint32_t n) {
  if (n == 0) return;
  ccn__text_puts(out, "\"__metadata__\":{");
  for (uint32_t i = 0; i < n; i++) {
    if (i) ccn__text_putc(out, ',');
    put_string(out, m[i].key, m[i].key_size);
    ccn__text_putc(out, ':');
    put_string(out, m[i].value, m[i].value_size);
  }
  ccn__text_putc(out, '}');
}

static const struct dtype_row *row_of(ccn__dtype t) {
  for (size_t i = 0; i < CCN__COUNT(dtypes); i++)
    if (dtypes[i].dtype == t && !dtypes[i].refused) return &dtypes[i];
  return NULL;
}

static const char *check_to_write(const ccn__safetensor *t) {
  if (!ccn__is_utf8(t->name, t->name_size)) return "a tensor's name is not UTF-8";
  if (memchr(t->name, '\0', t->name_size)) return "a tensor's name holds a zero byte";
  if (same(t->name, t->name_size, "__metadata__")) return "no tensor may be called __metadata__";
  if (!row_of(t->dtype)) return "the dtype cannot be written";
  if (t->rank > CCN__SAFETENSORS_MAX_RANK) return "a tensor has more than 32 dims";
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dim[i] < 0) return "a dim is negative";
  return NULL;
}

/* "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]} */
static const char *put_tensor(ccn__text *out, const ccn__safetensor *t, size_t *at) {
  uint64_t elements, bytes;
  const char *error = check_to_write(t);
  if (error) return error;
  const struct dtype_row *row = row_of(t->dtype);
  if (!size_of(t->dim, t->rank, row->bits, &elements, &bytes)) return "a tensor has too many elements";
  if (bytes > (SIZE_MAX >> 1) - *at) return "the tensors have too many elements";
  put_string(out, t->name, t->name_size);
  ccn__text_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", row->name);
  for (uint32_t i = 0; i < t->rank; i++) ccn__text_printf(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
  ccn__text_printf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)*at,
                   (unsigned long long)(*at + bytes));
  *at += (size_t)bytes;
  return NULL;
}

static const char *put_header(ccn__arena *a, const ccn__safetensor *t, uint32_t n,
                              const ccn__safetensors_text *metadata, uint32_t nmetadata, ccn__text *json,
                              size_t *out_data) {
  const char *error = NULL;
  *out_data = 0;
  for (uint32_t i = 0; i < nmetadata; i++)
    if (!ccn__is_utf8(metadata[i].key, metadata[i].key_size) ||
        !ccn__is_utf8(metadata[i].value, metadata[i].value_size))
      return "the metadata is not UTF-8";
  ccn__text_putc(json, '{');
  put_metadata(json, metadata, nmetadata);
  for (uint32_t i = 0; i < n; i++) {
    if (i || nmetadata) ccn__text_putc(json, ',');
    error = put_tensor(json, &t[i], out_data);
    if (error) return error;
  }
  if (has_duplicates(t, sorted(a, t, n, by_name), n)) return "two tensors have the same name";
  ccn__text_putc(json, '}');
  while (json->n % 8) ccn__text_putc(json, ' ');
  return json->n > CCN__SAFETENSORS_MAX_HEADER ? "the header would be longer than 100 MB" : NULL;
}

const char *ccn__safetensors_header(ccn__arena *a, const ccn__safetensor *t, uint32_t n,
                                    const ccn__safetensors_text *metadata, uint32_t nmetadata, ccn__text *out,
                                    size_t *out_data) {
  char length[8];
  ccn__text json;
  ccn__text_init(&json, a);
  const char *error = put_header(a, t, n, metadata, nmetadata, &json, out_data);
  if (error) return error;
  for (int i = 0; i < 8; i++) length[i] = (char)((uint64_t)json.n >> 8 * i & 255);
  ccn__text_add(out, length, sizeof length);
  ccn__text_add(out, json.at, json.n);
  return NULL;
}

const char *ccn__safetensors_write(ccn__arena *a, const ccn__safetensor *t, const void *const *data,
                                   uint32_t n, const ccn__safetensors_text *metadata, uint32_t nmetadata,
                                   void **out_file, size_t *out_size) {
  ccn__text head;
  size_t bytes;
  ccn__text_init(&head, a);
  const char *error = ccn__safetensors_header(a, t, n, metadata, nmetadata, &head, &bytes);
  if (error) return error;
  char *file = ccn__arena_alloc(a, head.n + bytes), *at = file + head.n;
  memcpy(file, head.at, head.n);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t elements, size;
    size_of(t[i].dim, t[i].rank, row_of(t[i].dtype)->bits, &elements, &size);
    if (size) memcpy(at, data[i], (size_t)size);
    at += size;
  }
  *out_file = file;
  *out_size = head.n + bytes;
  return NULL;
}
