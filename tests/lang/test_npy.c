/* test_npy.c: .npy headers: NumPy's own, odd but legal ones, and hostile ones. Run under ASan: every input
 * lies in a block of exactly its size. SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static const char *parse(const void *bytes, size_t size, ccn__npy *out) {
  void *exact = malloc(size ? size : 1);
  if (!exact) return "no memory";
  memcpy(exact, bytes, size);
  const char *error = ccn__npy_parse(exact, size, out);
  free(exact);
  return error;
}

/* A version 1 file: the dict as given, no padding, `data` bytes of data. */
static size_t file_of(const char *dict, size_t data, unsigned char *out) {
  const size_t n = strlen(dict);
  memcpy(out, "\x93NUMPY\x01", 8);
  out[8] = (unsigned char)(n & 255);
  out[9] = (unsigned char)(n >> 8);
  memcpy(out + 10, dict, n);
  memset(out + 10 + n, 7, data);
  return 10 + n + data;
}

static bool promises(const ccn__npy *npy, size_t size) {
  uint64_t product = 1;
  for (uint32_t i = 0; i < npy->rank; i++) {
    if (npy->dim[i] < 0) return false;
    product *= (uint64_t)npy->dim[i];
  }
  const size_t item = ccn__dtype_size(npy->dtype);
  return item > 0 && npy->data <= size && product == npy->elements &&
         npy->elements <= (size - npy->data) / item;
}

/* ---- writing: what numpy.lib.format.write_array_header_1_0 of NumPy 1.24 writes ---------------------- */

#define ONES10 "1, 1, 1, 1, 1, 1, 1, 1, 1, 1"
static const struct {
  ccn__dtype dtype;
  uint32_t rank;
  int64_t dim[CCN__NPY_MAX_RANK];
  size_t size;
  const char *dict;
} written[] = {
  {CCN__F32, 2, {3, 4}, 128, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"},
  {CCN__F64, 0, {0}, 128, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
  {CCN__BOOL, 1, {5}, 128, "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }"},
  {CCN__F16, 2, {0, 3}, 128, "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 3), }"},
  {CCN__I64, 4, {1, 2, 3, 4}, 128, "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2, 3, 4), }"},
  {CCN__I32, 1, {1000003}, 128, "{'descr': '<i4', 'fortran_order': False, 'shape': (1000003,), }"},
  {CCN__I16, 2, {2, 2}, 128, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }"},
  {CCN__I8, 1, {7}, 128, "{'descr': '|i1', 'fortran_order': False, 'shape': (7,), }"},
  {CCN__U8, 2, {123456789, 1}, 128, "{'descr': '|u1', 'fortran_order': False, 'shape': (123456789, 1), }"},
  {CCN__F32,
   3,
   {0, 12345678901, 3},
   128,
   "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 12345678901, 3), }"},
  /* 127, 128 and 129 bytes before padding: NumPy pads by at least one */
  {CCN__F64,
   13,
   {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10000},
   128,
   "{'descr': '<f8', 'fortran_order': False, 'shape': (0, " ONES10 ", 1, 10000), }"},
  {CCN__F64,
   13,
   {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100000},
   192,
   "{'descr': '<f8', 'fortran_order': False, 'shape': (0, " ONES10 ", 1, 100000), }"},
  {CCN__F64,
   13,
   {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000000},
   192,
   "{'descr': '<f8', 'fortran_order': False, 'shape': (0, " ONES10 ", 1, 1000000), }"},
  {CCN__F32,
   32,
   {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
   192,
   "{'descr': '<f4', 'fortran_order': False, 'shape': (" ONES10 ", " ONES10 ", " ONES10 ", 1, 1), }"},
};

static void test_written(void) {
  bool bytes = true, back = true;
  for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
    char got[CCN__NPY_HEADER_MAX], want[CCN__NPY_HEADER_MAX];
    const size_t size = written[i].size;
    memset(want, ' ', sizeof want);
    memcpy(want, "\x93NUMPY\x01", 8);
    want[8] = (char)(size - 10);
    want[9] = 0;
    memcpy(want + 10, written[i].dict, strlen(written[i].dict));
    want[size - 1] = '\n';
    const size_t n = ccn__npy_header(written[i].dtype, written[i].dim, written[i].rank, got);
    const bool row = n == size && memcmp(got, want, size) == 0;
    if (!row) printf("# %s: %zu bytes\n", written[i].dict, n);
    bytes &= row;

    unsigned char *file = calloc(1, n + 512); /* data for the small ones */
    if (!file) continue;
    memcpy(file, got, n);
    ccn__npy npy;
    const char *error = parse(file, n + 512, &npy);
    const bool large = written[i].dim[0] > 512;
    back &= large ? error && strcmp(error, "the file ends inside the data") == 0
                  : !error && promises(&npy, n + 512);
    back &= npy.dtype == written[i].dtype && npy.rank == written[i].rank && npy.data == n && !npy.fortran &&
            !npy.swapped;
    back &= memcmp(npy.dim, written[i].dim, npy.rank * sizeof npy.dim[0]) == 0;
    free(file);
  }
  ok(bytes, "headers are NumPy's byte for byte");
  ok(back, "written headers read back");

  char out[CCN__NPY_HEADER_MAX];
  int64_t dim[33];
  for (size_t i = 0; i < 33; i++) dim[i] = INT64_MAX;
  const size_t n = ccn__npy_header(CCN__F64, dim, 32, out);
  ok(n > 0 && n % 64 == 0 && n <= CCN__NPY_HEADER_MAX, "the longest header has room");
  ok(ccn__npy_header(CCN__BF16, dim, 1, out) == 0 && ccn__npy_header(CCN__F8E4M3, dim, 1, out) == 0 &&
       ccn__npy_header(CCN__I4, dim, 1, out) == 0 && ccn__npy_header(CCN__F32, dim, 33, out) == 0 &&
       ccn__npy_header(CCN__F32, (int64_t[]){-1}, 1, out) == 0,
     "no header for bf16, f8, i4, 33 dims, a negative dim");
}

/* ---- reading what is legal --------------------------------------------------------------------------- */

static void test_accepted(void) {
  static const struct {
    const char *dict;
    ccn__dtype dtype;
    uint32_t rank;
    int64_t first;
    bool fortran, swapped;
  } rows[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n", CCN__F32, 2, 3, false, false},
    {"{'shape':(3,),'descr':'<f8','fortran_order':True}", CCN__F64, 1, 3, true, false},
    {" { \"fortran_order\" : False , \"shape\" : ( 2 , 2 , ) , \"descr\" : \">i4\" } \n", CCN__I32, 2, 2,
     false, true},
    {"{'descr': '=f2', 'fortran_order': False, 'shape': (), }", CCN__F16, 0, 0, false, false},
    {"{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", CCN__F64, 1, 1, false, true},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", CCN__I64, 1, 1, false, false},
    {"{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", CCN__I16, 1, 1, false, true},
    {"{'descr': '|i1', 'fortran_order': False, 'shape': (0,), }", CCN__I8, 1, 0, false, false},
    {"{'descr': '>u1', 'fortran_order': False, 'shape': (1,), }", CCN__U8, 1, 1, false, false},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (9, 0, 5), }", CCN__BOOL, 3, 9, false, false},
  };
  unsigned char file[512];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ccn__npy npy;
    const size_t size = file_of(rows[i].dict, 64, file);
    const char *error = parse(file, size, &npy);
    const bool good = !error && promises(&npy, size) && npy.dtype == rows[i].dtype &&
                      npy.rank == rows[i].rank && (npy.rank == 0 || npy.dim[0] == rows[i].first) &&
                      npy.fortran == rows[i].fortran && npy.swapped == rows[i].swapped &&
                      npy.data == size - 64;
    if (error) printf("# %s\n", error);
    char name[120];
    snprintf(name, sizeof name, "reads %.*s", (int)strcspn(rows[i].dict, "\n"), rows[i].dict);
    ok(good, name);
  }

  /* versions 2 and 3: a length of four bytes */
  const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const size_t n = strlen(dict);
  bool good = true;
  for (unsigned char version = 0; version < 6; version++) {
    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = version;
    file[8] = (unsigned char)n;
    memcpy(file + (version == 1 ? 10 : 12), dict, n);
    ccn__npy npy;
    const size_t size = (version == 1 ? 10 : 12) + n + 8;
    const char *error = parse(file, size, &npy);
    if (version >= 1 && version <= 3) good &= !error && npy.elements == 2 && npy.data == size - 8;
    else good &= error != NULL;
    file[7] = 1;
    good &= parse(file, size, &npy) != NULL;
  }
  ok(good, "versions 1.0, 2.0 and 3.0, no others");
}

/* ---- reading what is hostile ------------------------------------------------------------------------- */

static void test_refused(void) {
#define REST ", 'fortran_order': False, 'shape': (1,), }"
#define SHAPE(s) "{'descr': '<f4', 'fortran_order': False, 'shape': " s ", }"
  static const char malformed[] = "the header is not a dict of descr, fortran_order and shape";
  static const char shape[] = "the shape is not a tuple of non-negative integers";
  static const char none[] = "the dtype has no counterpart in CCN";
  static const struct {
    const char *dict, *error;
  } rows[] = {
    {"{'descr': '<c8'" REST, "dtype complex64 has no counterpart in CCN"},
    {"{'descr': '<c16'" REST, "dtype complex128 has no counterpart in CCN"},
    {"{'descr': '<u4'" REST, "dtype uint32 has no counterpart in CCN"},
    {"{'descr': '<f16'" REST, "dtype float128 has no counterpart in CCN"},
    {"{'descr': '<U7'" REST, "strings have no counterpart in CCN"},
    {"{'descr': '|O'" REST, "Python objects have no counterpart in CCN"},
    {"{'descr': '|V2'" REST, "raw bytes have no counterpart in CCN"},
    {"{'descr': '<M8[ns]'" REST, "dates and times have no counterpart in CCN"},
    {"{'descr': [('a', '<f4')]" REST, "records have no counterpart in CCN"},
    {"{'descr': '|f4'" REST, "the dtype's byte order is missing"},
    {"{'descr': 'f4'" REST, none},
    {"{'descr': '<f44'" REST, none},
    {"{'descr': '<b2'" REST, none},
    {"{'descr': '<'" REST, none},
    {"{'descr': ''" REST, none},
    {"{'descr': '<f4\\''" REST, malformed},
    {"{'descr': '<f4" REST, none}, /* the string ends at the next quote */
    {"{'descr': 4" REST, malformed},
    {"", malformed},
    {"{", malformed},
    {"{}", malformed},
    {"{'descr': '<f4', 'fortran_order': False}", malformed},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", malformed},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", malformed},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", malformed},
    {"{'descr': '<f4',, 'fortran_order': False, 'shape': (1,)}", malformed},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", malformed},
    {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (1,)}", malformed},
    {SHAPE("(1,)") " x", malformed},
    {SHAPE("(1,)") "{", malformed},
    {SHAPE("3"), shape},
    {SHAPE("(3)"), shape},
    {SHAPE("[3]"), shape},
    {SHAPE("(3 4)"), shape},
    {SHAPE("(,)"), shape},
    {SHAPE("(3,,4)"), shape},
    {SHAPE("(3.0,)"), shape},
    {SHAPE("(03,)"), shape},
    {SHAPE("('3',)"), shape},
    {SHAPE("(3,"), shape},
    {SHAPE("(-1,)"), "a dim is negative"},
    {SHAPE("(2, -9223372036854775808)"), "a dim is negative"},
    {SHAPE("(9223372036854775808,)"), "a dim does not fit in 64 bits"},
    {SHAPE("(99999999999999999999999999999999999999999999,)"), "a dim does not fit in 64 bits"},
    {SHAPE("(9223372036854775807,)"), "the shape has too many elements"},
    {SHAPE("(4294967296, 4294967296)"), "the shape has too many elements"},
    {SHAPE("(4294967296, 4294967296, 0)"), "the shape has too many elements"},
    {SHAPE("(0, 4294967296, 4294967296)"), "the shape has too many elements"},
    {SHAPE("(2305843009213693951,)"), "the file ends inside the data"},
    {SHAPE("(17,)"), "the file ends inside the data"},
    {SHAPE("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), "more than 32 dims"},
  };
  unsigned char file[512];
  bool good = true;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ccn__npy npy;
    const char *error = parse(file, file_of(rows[i].dict, 64, file), &npy);
    if (!error || strcmp(error, rows[i].error) != 0) {
      printf("# %s: %s\n", rows[i].dict, error ? error : "accepted");
      good = false;
    }
  }
  ok(good, "refused with the right text");

  good = true;
  ccn__npy npy;
  for (unsigned high = 0; high < 256; high++) { /* a length beyond the file, in both widths */
    size_t size = file_of(SHAPE("(16,)"), 64, file);
    file[9] = (unsigned char)high;
    const char *error = parse(file, size, &npy);
    good &= high ? error && strcmp(error, "the file ends inside the header") == 0 : !error;
    memmove(file + 12, file + 10, size - 10);
    file[6] = 2;
    file[9] = 0;
    file[10] = 0;
    file[11] = (unsigned char)high;
    error = parse(file, size + 2, &npy);
    good &= high ? error && strcmp(error, "the file ends inside the header") == 0 : !error;
  }
  ok(good, "a header's length beyond the file");
}

static void test_damaged(void) {
  static unsigned char file[512];
  const char *dicts[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }            \n",
                         "{'shape': (6, 1, 2), 'fortran_order': True, 'descr': '>i4'}"};
  bool cut = true, flipped = true, changed = true;
  for (size_t d = 0; d < 2; d++) {
    const size_t size = file_of(dicts[d], 48, file), header = size - 48;
    ccn__npy npy;
    cut &= parse(file, size, &npy) == NULL;
    for (size_t n = 0; n < size; n++) cut &= parse(file, n, &npy) != NULL;
    for (size_t bit = 0; bit < header * 8; bit++) {
      file[bit / 8] ^= (unsigned char)(1u << bit % 8);
      flipped &= parse(file, size, &npy) != NULL || promises(&npy, size);
      file[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t n = 0; n < strlen(dicts[d]); n++) { /* a dict that ends early, and the file with it */
      char dict[128];
      memcpy(dict, dicts[d], n);
      dict[n] = 0;
      unsigned char short_file[256];
      if (!strchr(dict, '}')) cut &= parse(short_file, file_of(dict, 0, short_file), &npy) != NULL;
    }
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) { /* up to three bytes of the header become another byte of it */
      unsigned char copy[512];
      memcpy(copy, file, size);
      for (int k = 0; k <= i % 3; k++) {
        random = random * 1664525u + 1013904223u;
        copy[(random >> 8) % header] = file[(random >> 16) % header];
      }
      changed &= parse(copy, size, &npy) != NULL || promises(&npy, size);
    }
  }
  ok(cut, "every truncation of a valid file and of its dict is refused");
  ok(flipped, "every bit flip of the header is refused or keeps the promises");
  ok(changed, "400000 other damages are refused or keep the promises");
}

int main(void) {
  test_written();
  test_accepted();
  test_refused();
  test_damaged();
  printf("1..%d\n", tests);
  return failures ? 1 : 0;
}
