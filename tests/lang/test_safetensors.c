/* test_safetensors.c: the reference's own file, odd but legal ones, hostile ones, writing. Run under ASan:
 * every file lies in a block of exactly its size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "json.h"

static int tests, failures;
static size_t requests, fail_at;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - ", good ? "" : "not ", ++tests);
  for (; *name; name++) putchar(*name == '\n' ? '|' : *name); /* one line a test */
  putchar('\n');
}

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size, (void)user;
  if (new_size == 0) free(p);
  if (new_size == 0 || ++requests == fail_at) return NULL;
  return aligned_alloc(align, (new_size + align - 1) / align * align);
}

/* ---- one file -------------------------------------------------------------------------------------------
 */

typedef struct opened {
  ccn__heap heap;
  ccn__arena arena;
  ccn__trap trap;
  ccn__safetensors s;
  const char *error;
  unsigned char *file;
  size_t size;
} opened;

static void begin(opened *o) {
  memset(o, 0, sizeof *o);
  o->heap.alloc = host_alloc;
  ccn__arena_init(&o->arena, &o->heap);
}

static void open_bytes(opened *o, const void *bytes, size_t size) {
  begin(o);
  o->file = malloc(size ? size : 1);
  o->size = size;
  if (size) memcpy(o->file, bytes, size);
  CCN__TRY(&o->heap, o->trap)
  o->error = ccn__safetensors_open(&o->arena, o->file, size, &o->s);
  CCN__CATCH(&o->heap, o->trap)
  { o->error = "memory ended"; }
}

/* The length, the header, so many bytes of data that count up from 1. */
static size_t make_file(unsigned char *out, const char *header, size_t length, size_t data) {
  for (int i = 0; i < 8; i++) out[i] = (unsigned char)((uint64_t)length >> 8 * i);
  memcpy(out + 8, header, length);
  for (size_t i = 0; i < data; i++) out[8 + length + i] = (unsigned char)(i + 1);
  return 8 + length + data;
}

static void open_header(opened *o, const char *header, size_t data) {
  static unsigned char bytes[1 << 16];
  open_bytes(o, bytes, make_file(bytes, header, strlen(header), data));
}

static void done(opened *o) {
  ccn__arena_free(&o->arena);
  free(o->file);
}

static bool error_is(const opened *o, const char *expected) {
  const bool good = expected ? o->error && strcmp(o->error, expected) == 0 : !o->error;
  if (!good)
    printf("# got      %s\n# expected %s\n", o->error ? o->error : "no error", expected ? expected : "none");
  return good;
}

static void refuses(const char *header, size_t data, const char *expected) {
  opened o;
  open_header(&o, header, data);
  ok(error_is(&o, expected), expected ? expected : header);
  done(&o);
}

static void accepts(const char *header, size_t data) { refuses(header, data, NULL); }

/* ---- the reference's file ---------------------------------------------------------------------------------
 */

/* safetensors.numpy.save of safetensors 0.8.0, with these tensors and metadata {"made": "by hand\t\x01"} */
#define REFERENCE_HEADER \
  "{\"__metadata__\":{\"made\":\"by hand\\t\\u0001\"}," \
  "\"none\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[0,0]}," \
  "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}," \
  "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]}," \
  "\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]}," \
  "\"q\\\"\\n\":{\"dtype\":\"I16\",\"shape\":[3],\"data_offsets\":[28,34]}," \
  "\"gr\xC3\xB6\xC3\x9F" \
  "e\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[34,37]}}       "
static const char reference[] = "\x88\x01\0\0\0\0\0\0" REFERENCE_HEADER "\0\0\0\0\0\0\x1C\x40"
                                "\0\0\x80\x3F\0\0\0\x40\0\0\x40\x40\0\0\x80\x40"
                                "\0\x3E\0\xC0"
                                "\x01\0\x02\0\x03\0"
                                "\x01\0\x01";
enum { REFERENCE = sizeof reference - 1 };

static bool is_tensor(const ccn__safetensor *t, ccn__dtype dtype, uint32_t rank, uint64_t elements) {
  return t && !t->refused && t->dtype == dtype && t->rank == rank && t->elements == elements &&
         t->bytes == elements * ccn__dtype_size(dtype);
}

static void test_reference(void) {
  opened o;
  void *again = NULL;
  size_t size = 0;
  const void *data[6];
  const ccn__safetensor *t;
  open_bytes(&o, reference, REFERENCE);
  ok(REFERENCE == 437 && error_is(&o, NULL) && o.s.n == 6, "the reference's file is read");
  if (o.error) return;
  ok(is_tensor(ccn__safetensors_find(&o.s, "none", 4), CCN__I64, 2, 0) && o.s.at[0].dim[1] == 3,
     "an empty tensor");
  t = ccn__safetensors_find(&o.s, "s", 1);
  ok(is_tensor(t, CCN__F64, 0, 1) && ccn__load_f64(CCN__F64, o.file + t->offset) == 7, "a scalar");
  t = ccn__safetensors_find(&o.s, "w", 1);
  ok(is_tensor(t, CCN__F32, 2, 4) && ccn__load_f64(CCN__F32, o.file + t->offset + 12) == 4, "a matrix");
  t = ccn__safetensors_find(&o.s, "h", 1);
  ok(is_tensor(t, CCN__F16, 1, 2) && ccn__load_f64(CCN__F16, o.file + t->offset) == 1.5, "f16");
  ok(is_tensor(ccn__safetensors_find(&o.s, "q\"\n", 3), CCN__I16, 1, 3), "a name with escapes");
  ok(is_tensor(ccn__safetensors_find(&o.s,
                                     "gr\xC3\xB6\xC3\x9F"
                                     "e",
                                     7),
               CCN__BOOL, 1, 3),
     "a name outside ASCII");
  ok(!ccn__safetensors_find(&o.s, "", 0) && !ccn__safetensors_find(&o.s, "ww", 2) &&
       !ccn__safetensors_find(&o.s, "__metadata__", 12),
     "other names are not found");
  ok(o.s.nmetadata == 1 && strcmp(o.s.metadata[0].key, "made") == 0 && o.s.metadata[0].value_size == 9 &&
       strcmp(o.s.metadata[0].value, "by hand\t\x01") == 0,
     "the metadata");
  for (uint32_t i = 0; i < 6; i++) data[i] = o.file + o.s.at[i].offset;
  const char *error =
    ccn__safetensors_write(&o.arena, o.s.at, data, 6, o.s.metadata, o.s.nmetadata, &again, &size);
  ok(!error && size == REFERENCE && memcmp(again, reference, size) == 0, "it is written byte for byte alike");
  done(&o);
}

static void test_truncated(void) {
  bool all = true;
  for (size_t n = 0; n < REFERENCE; n++) {
    opened o;
    open_bytes(&o, reference, n);
    all &= o.error != NULL && strcmp(o.error, "memory ended") != 0 && o.s.n == 0;
    done(&o);
  }
  ok(all, "every shorter file is refused");
  for (size_t n = 0; n < REFERENCE; n++) { /* any answer, no crash: ASan looks on */
    char changed[REFERENCE];
    for (int bit = 0; bit < 8; bit++) {
      opened o;
      memcpy(changed, reference, REFERENCE);
      changed[n] ^= (char)(1 << bit);
      open_bytes(&o, changed, REFERENCE);
      done(&o);
    }
  }
  ok(true, "every flipped bit is survived");
}

/* ---- legal and hostile headers
 * ------------------------------------------------------------------------------- */

#define ONE(name, dtype, shape, range) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" range "}"
#define FILE1(dtype, shape, range) "{" ONE("a", dtype, shape, range) "}"

static void test_legal(void) {
  opened o;
  accepts("{}", 0);
  accepts("{ }  \n\t ", 0);
  accepts("{\"__metadata__\":{}}", 0);
  accepts("{" ONE("b", "U8", "[2]", "[1,3]") "," ONE("a", "I8", "[1]", "[0,1]") "," ONE("e", "F64", "[0]",
                                                                                        "[1,1]") "}",
          3);
  accepts("{ \"a\" : { \"data_offsets\" : [ 0 , 2 ] , \"shape\" : [ 1 ] , \"dtype\" : \"BF16\" } } ", 2);
  accepts("{\"a\":{\"x\":[null,true,{\"y\":-1.5e+3}],\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
          1);
  open_header(&o, "{" ONE("\\u0041\\ud83d\\ude00\\/", "U8", "[1]", "[0,1]") "}", 1);
  ok(!o.error && ccn__safetensors_find(&o.s, "A\xF0\x9F\x98\x80/", 6), "escapes of characters");
  done(&o);
  open_header(&o,
              "{" ONE("a", "F8_E4M3", "[3]", "[0,3]") "," ONE("b", "F4", "[2]",
                                                              "[3,4]") "," ONE("c", "U8", "[1]", "[4,5]") "}",
              5);
  ok(!o.error && o.s.at[0].refused &&
       strcmp(o.s.at[0].refused, "dtype F8_E4M3 has no counterpart in CCN") == 0 &&
       strcmp(o.s.at[1].refused, "dtype F4 has no counterpart in CCN") == 0 &&
       is_tensor(&o.s.at[2], CCN__U8, 1, 1),
     "a dtype that CCN lacks spoils its own tensor only");
  done(&o);
}

static void test_ranges(void) {
  static const char length[] = "a tensor's data is not as long as its dtype and shape say";
  static const char many[] = "a tensor has too many elements";
  refuses(FILE1("F32", "[2]", "[0,4]"), 4, length);
  refuses(FILE1("F32", "[]", "[0,0]"), 0, length);
  refuses(FILE1("F32", "[0]", "[0,4]"), 4, length);
  refuses(FILE1("F32", "[1]", "[4,0]"), 4, "a tensor's data ends before it begins");
  refuses(FILE1("F32", "[2]", "[0,8]"), 7, "the file ends inside the data");
  refuses(FILE1("F32", "[1]", "[0,4]"), 5, "something follows the data of the last tensor");
  refuses("{}", 1, "something follows the data of the last tensor");
  refuses(FILE1("F32", "[1]", "[4,8]"), 8, "there is a hole between the data of two tensors");
  refuses("{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[2]", "[1,3]") "}", 3,
          "the data of two tensors overlaps");
  refuses("{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[2]", "[0,2]") "}", 2,
          "the data of two tensors overlaps");
  refuses("{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[0]", "[1,1]") "}", 2,
          "the data of two tensors overlaps");
  refuses("{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[1]", "[3,4]") "}", 4,
          "there is a hole between the data of two tensors");
  refuses(FILE1("F64", "[4294967296,4294967296]", "[0,0]"), 0, many);
  refuses(FILE1("U8", "[9223372036854775807]", "[0,0]"), 0, many);
  refuses(FILE1("U8", "[0,4294967296,4294967296]", "[0,0]"), 0, many);
  refuses(FILE1("F64", "[2305843009213693952]", "[0,0]"), 0, many);
  refuses(FILE1("F6_E2M3", "[3]", "[0,2]"), 2, "a tensor has too many elements, or ends inside a byte");
  refuses(FILE1("U8", "[9223372036854775808]", "[0,0]"), 0, "a number does not fit in 64 bits");
  refuses(FILE1("U8", "[1]", "[0,18446744073709551617]"), 1, "a number does not fit in 64 bits");
  refuses(FILE1("U8", "[-1]", "[0,1]"), 1, "a number is not a natural one");
  refuses(FILE1("U8", "[1.0]", "[0,1]"), 1, "a number is not a natural one");
  refuses(FILE1("U8", "[1e0]", "[0,1]"), 1, "a number is not a natural one");
  refuses(FILE1("U8", "[01]", "[0,1]"), 1, "the JSON is malformed");
  refuses(FILE1("U8", "[\"1\"]", "[0,1]"), 1, "a number is not a natural one");
  refuses(FILE1("U8", "[1]", "[0]"), 1, "data_offsets are not two numbers");
  refuses(FILE1("U8", "[1]", "[]"), 1, "data_offsets are not two numbers");
  refuses(FILE1("U8", "[1]", "[0,1,1]"), 1, "data_offsets are not two numbers");
  refuses(FILE1("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1,
          "a tensor has more than 32 dims");
  accepts(FILE1("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1);
}

static void test_tensors(void) {
  static const char missing[] = "a tensor has no dtype, no shape or no data_offsets";
  static const char twice[] = "a tensor has two dtypes, shapes or data_offsets";
  refuses("{\"a\":{}}", 0, missing);
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, missing);
  refuses("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, missing);
  refuses("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, twice);
  refuses("{\"a\":{\"shape\":[1],\"shape\":[1]}}", 0, twice);
  refuses(FILE1("f32", "[1]", "[0,4]"), 4, "a tensor has an unknown dtype");
  refuses(FILE1("", "[1]", "[0,4]"), 4, "a tensor has an unknown dtype");
  refuses(FILE1("F32\\u0000", "[1]", "[0,4]"), 4, "a tensor has an unknown dtype");
  refuses("{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("a", "U8", "[1]", "[1,2]") "}", 2,
          "two tensors have the same name");
  refuses("{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("\\u0061", "U8", "[1]", "[1,2]") "}", 2,
          "two tensors have the same name");
  refuses("{" ONE("a\\u0000", "U8", "[1]", "[0,1]") "}", 1, "a tensor's name holds a zero byte");
  refuses("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "there are two __metadata__");
  refuses("{\"__metadata__\":{\"a\":1}}", 0, "the JSON is malformed");
  refuses("{\"__metadata__\":null}", 0, "the JSON is malformed");
}

static void test_json(void) {
  static const char malformed[] = "the JSON is malformed", early[] = "the JSON ends too early";
  char deep[600] = "{\"a\":{\"x\":";
  refuses("[]", 0, "not a safetensors file: its header does not start with a brace");
  refuses(" {}", 0, "not a safetensors file: its header does not start with a brace");
  refuses("", 0, "not a safetensors file: its header does not start with a brace");
  refuses("{", 0, early);
  refuses("{}x", 0, "something follows the JSON");
  refuses("{} {}", 0, "something follows the JSON");
  refuses("{,}", 0, malformed);
  refuses("{" ONE("a", "U8", "[1]", "[0,1]") ",}", 1, malformed);
  refuses("{\"a\"}", 0, malformed);
  refuses("{a:1}", 0, malformed);
  refuses("{\"a\":[]}", 0, malformed);
  refuses("{\"a", 0, "a string is not closed");
  refuses("{\"a\\\"", 0, "a string is not closed");
  refuses("{\"a\\", 0, "a string is not closed");
  refuses("{\"\\x\":1}", 0, "a string holds an unknown escape");
  refuses("{\"\\u12g4\":1}", 0, "a string holds an unknown escape");
  refuses("{\"\\u12\":1}", 0, "a string holds an unknown escape");
  refuses("{\"\\ud800\":1}", 0, "a string holds half of a surrogate pair");
  refuses("{\"\\udc00\":1}", 0, "a string holds half of a surrogate pair");
  refuses("{\"\\ud800\\u0041\":1}", 0, "a string holds half of a surrogate pair");
  refuses("{\"a\nb\":1}", 0, "a string holds a control character");
  refuses("{\"\xFF\":1}", 0, "a string is not UTF-8");
  refuses("{\"\xC3\":1}", 0, "a string is not UTF-8");
  refuses("{\"\xC0\x80\":1}", 0, "a string is not UTF-8");
  refuses("{\"\xED\xA0\x80\":1}", 0, "a string is not UTF-8");
  refuses("{\"\xF4\x90\x80\x80\":1}", 0, "a string is not UTF-8");
  refuses("{\"a\":{\"x\":nul}}", 0, malformed);
  refuses("{\"a\":{\"x\":-}}", 0, malformed);
  refuses("{\"a\":{\"x\":1.}}", 0, malformed);
  refuses("{\"a\":{\"x\":00}}", 0, malformed);
  refuses("{\"a\":{\"x\":1e}}", 0, malformed);
  memset(deep + strlen(deep), '[', 500);
  refuses(deep, 0, "the JSON is nested too deep");
}

static void test_length(void) {
  static const struct {
    const char *bytes;
    size_t size;
    const char *error;
  } rows[] = {
    {"", 0, "the file is empty"},
    {"\1\0\0\0\0\0\0", 7, "the file ends inside the length of the header"},
    {"\1\0\0\0\0\0\0\0", 8, "the file ends inside the header"},
    {"\0\0\0\0\0\0\0\0", 8, "not a safetensors file: its header does not start with a brace"},
    {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10, "not a safetensors file, or its header is longer than 100 MB"},
    {"\1\xE1\xF5\5\0\0\0\0{}", 10, "not a safetensors file, or its header is longer than 100 MB"},
    {"\0\xE1\xF5\5\0\0\0\0{}", 10, "the file ends inside the header"},
    {"\x93NUMPY\1\0v\0{'descr'", 18, "not a safetensors file, or its header is longer than 100 MB"},
  };
  for (size_t i = 0; i < CCN__COUNT(rows); i++) {
    opened o;
    open_bytes(&o, rows[i].bytes, rows[i].size);
    ok(error_is(&o, rows[i].error), rows[i].error);
    done(&o);
  }
}

/* Many tensors, names in no order: every one is found. */
static void test_many(void) {
  enum { N = 700 };
  static unsigned char bytes[N * 80];
  static char header[N * 70];
  size_t n = 0;
  bool all = true;
  opened o;
  for (int i = 0; i < N; i++)
    n += (size_t)sprintf(header + n, "%c\"%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                         i ? ',' : '{', i * 7919 % N, N - 1 - i, N - i);
  header[n++] = '}';
  open_bytes(&o, bytes, make_file(bytes, header, n, N));
  for (int i = 0; i < N && !o.error; i++) {
    char name[16];
    const ccn__safetensor *t = ccn__safetensors_find(&o.s, name, (size_t)sprintf(name, "%d", i * 7919 % N));
    all &= t == &o.s.at[i] && o.file[t->offset] == (unsigned char)(N - i);
  }
  ok(!o.error && all, "700 tensors, each found");
  done(&o);
}

/* ---- writing
 * --------------------------------------------------------------------------------------------------- */

static ccn__safetensor named(const char *name, ccn__dtype dtype, uint32_t rank, const int64_t *dim) {
  return (ccn__safetensor){.name = name, .name_size = strlen(name), .dtype = dtype, .rank = rank, .dim = dim};
}

static void cannot_write(ccn__safetensor a, ccn__safetensor b, const char *expected) {
  opened o;
  ccn__text out;
  size_t data;
  const ccn__safetensor t[2] = {a, b};
  begin(&o);
  ccn__text_init(&out, &o.arena);
  CCN__TRY(&o.heap, o.trap)
  o.error = ccn__safetensors_header(&o.arena, t, 2, NULL, 0, &out, &data);
  CCN__CATCH(&o.heap, o.trap)
  { o.error = "memory ended"; }
  ok(error_is(&o, expected) && out.n == 0, expected);
  done(&o);
}

static void test_written(void) {
  static const int64_t two[] = {2}, huge[] = {INT64_MAX / 8}, negative[] = {-1},
                       overflow[] = {1 << 30, 1 << 30, 8};
  const ccn__safetensor good = named("a", CCN__F32, 1, two);
  cannot_write(good, good, "two tensors have the same name");
  cannot_write(good, named("__metadata__", CCN__F32, 1, two), "no tensor may be called __metadata__");
  cannot_write(good, named("\xFF", CCN__F32, 1, two), "a tensor's name is not UTF-8");
  cannot_write(good, named("b", CCN__I4, 1, two), "the dtype cannot be written");
  cannot_write(good, named("b", CCN__F32, 1, negative), "a dim is negative");
  cannot_write(good, named("b", CCN__F32, 3, overflow), "a tensor has too many elements");
  cannot_write(named("b", CCN__F64, 1, huge), named("c", CCN__F64, 1, huge),
               "the tensors have too many elements");

  opened o;
  void *file = NULL;
  size_t size = 0;
  const void *none[1] = {NULL};
  begin(&o);
  o.error = ccn__safetensors_write(&o.arena, &good, none, 0, NULL, 0, &file, &size);
  ok(!o.error && size == 16 && memcmp(file, "\x08\0\0\0\0\0\0\0{}      ", 16) == 0, "a file without tensors");
  done(&o);
}

static void test_memory(void) {
  bool all = true;
  for (fail_at = 1;; fail_at++) {
    opened o;
    requests = 0;
    open_bytes(&o, reference, REFERENCE);
    const bool failed = requests >= fail_at;
    all &= failed ? o.trap.status == CCN_OUT_OF_MEMORY : !o.error;
    ccn__arena_free(&o.arena);
    all &= o.heap.live == 0;
    free(o.file);
    if (!failed) break;
  }
  fail_at = 0;
  ok(all, "memory ends at any request");
}

int main(void) {
  test_reference();
  test_truncated();
  test_legal();
  test_ranges();
  test_tensors();
  test_json();
  test_length();
  test_many();
  test_written();
  test_memory();
  printf("1..%d\n", tests);
  return failures != 0;
}
