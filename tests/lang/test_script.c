/* test_script.c: the script level from inside: scopes, collection, modules from a host's files, notes of
 * calls, conversions of .npy files, arithmetic at the edges. What scripts print is tested by
 * tests/programs/script.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

/* ---- a host with files in memory ----------------------------------------------------------------------- */

typedef struct file {
  char path[64];
  char *data;
  size_t size;
} file;

typedef struct host {
  file at[16];
  size_t n, freed;
  char out[65536];
  size_t out_size;
  size_t limit;
  int ranks;
} host;

static void write_out(const char *text, size_t size, void *user) {
  host *h = user;
  if (h->out_size + size >= sizeof h->out) return;
  memcpy(h->out + h->out_size, text, size);
  h->out_size += size;
  h->out[h->out_size] = 0;
}

static int file_write(const char *path, const void *data, size_t size, void *user) {
  host *h = user;
  size_t i = 0;
  while (i < h->n && strcmp(h->at[i].path, path)) i++;
  if (i == CCN__COUNT(h->at)) return 28;
  if (i == h->n) {
    snprintf(h->at[i].path, sizeof h->at[i].path, "%s", path);
    h->at[h->n++].data = NULL;
  }
  free(h->at[i].data);
  h->at[i].data = malloc(size ? size : 1);
  memcpy(h->at[i].data, data, size);
  h->at[i].size = size;
  return 0;
}

static int file_read(const char *path, void **out_data, size_t *out_size, void *user) {
  host *h = user;
  for (size_t i = 0; i < h->n; i++)
    if (strcmp(h->at[i].path, path) == 0) {
      *out_data = h->at[i].data;
      *out_size = h->at[i].size;
      return 0;
    }
  return 2; /* no such file */
}

static void file_free(void *data, size_t size, void *user) {
  (void)data;
  (void)size;
  ((host *)user)->freed++;
}

static void put(host *h, const char *path, const char *text) {
  (void)file_write(path, text, strlen(text), h);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static ccn_context *context(host *h) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.print = write_out;
  o.print_user = h;
  o.read = file_read;
  o.read_free = file_free;
  o.write = file_write;
  o.file_user = h;
  o.memory_limit = h->limit;
  o.ranks = h->ranks;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

/* Runs the text as dir/main.ccn; whether its output and the code of its only error (0: none) are these. */
static bool gives(host *h, const char *text, const char *output, uint16_t code) {
  ccn_context *c = context(h);
  h->out_size = h->out[0] = 0;
  ccn_status status = ccn_run(c, "dir/main.ccn", text, strlen(text));
  const ccn__diag *d = c->once->diags.first;
  bool good = status == (code ? CCN_ERROR : CCN_OK) && strcmp(h->out, output) == 0;
  good = good && (code ? d && c->once->diags.errors == 1 && c->once->diags.last->code == code
                       : c->once->diags.errors == 0);
  if (!good) {
    printf("# status %s, output:\n# %s\n", ccn_status_name(status), h->out);
    for (; d; d = d->next) printf("# CCN%04u %s\n", d->code, d->message);
  }
  ccn_context_free(c);
  return good;
}

/* ---- scopes -------------------------------------------------------------------------------------------- */

static void test_scopes(void) {
  host h = {0};
  ccn_context *c = context(&h);
  ccn__trap trap;
  bool good = true;
  CCN__TRY(&c->heap, trap)
  {
    ccn__env *outer = ccn__env_new(&c->once->rt, NULL), *e = ccn__env_new(&c->once->rt, outer);
    char name[16];
    for (int i = 0; i < 5000; i++) {
      snprintf(name, sizeof name, "n%d", i);
      ccn__env_set(&c->once->rt, i % 7 ? e : outer, ccn__internz(&c->once->names, name), ccn__int_val(i));
    }
    for (int i = 0; i < 5000; i++) {
      snprintf(name, sizeof name, "n%d", i);
      ccn__name n = ccn__internz(&c->once->names, name);
      ccn__val *v = ccn__env_lookup(e, n);
      good = good && v && v->i == i && (ccn__env_find(e, n) != NULL) == (i % 7 != 0);
    }
    good = good && !ccn__env_lookup(e, ccn__internz(&c->once->names, "absent"));
    ccn__env_set(&c->once->rt, e, ccn__internz(&c->once->names, "n1"), ccn__int_val(-1));
    good =
      good && ccn__env_find(e, ccn__internz(&c->once->names, "n1"))->i == -1 && e->n == 5000 - 5000 / 7 - 1;
  }
  CCN__CATCH(&c->heap, trap)
  good = false;
  ok(good, "scopes find thousands of names, replace them, and look outwards");
  ccn_context_free(c);
}

/* ---- collection ---------------------------------------------------------------------------------------- */

static void test_collection(void) {
  host h = {.limit = 160u << 20};
  ok(gives(&h,
           "let keep = []\n"
           "fn holder(x) { let inside = [x, x]; return fn() { return inside[0] + len(inside) } }\n"
           "let closures = []\n"
           "for i in 0..120 {\n"
           "  let garbage = zeros(f32[1_000_000])\n"
           "  let more = [garbage, \"{i}\", [i]]\n"
           "  if i % 10 == 0 { keep.append([i, \"text {i}\"]); closures.append(holder(i)) }\n"
           "}\n"
           "let total = 0\n"
           "for f in closures { total = total + f() }\n"
           "print(len(keep), keep[11], total)\n",
           "12 [110, \"text 110\"] 684\n", 0),
     "480 MB of garbage in 160 MB; what is reachable stays");
  ok(gives(&h,
           "fn grow(n) { let x = zeros(f32[1_000_000]); if n == 0 { return [1] } return grow(n - 1) + [n] }\n"
           "let t = 0\n"
           "for i in 0..20 { t = t + len(grow(10) + grow(10)) }\n"
           "print(t)\n",
           "440\n", 0),
     "values of unfinished expressions stay through the collections of the functions they call");
  ok(gives(&h,
           "let a = []\nlet b = [a]\na.append(b)\nfor i in 0..100 { let x = zeros(f32[1_000_000]) }\n"
           "print(len(b[0]))\n",
           "1\n", 0),
     "circles are no trouble");
  ok(gives(&h,
           "let l = []\nfor i in 0..200_000 { l = [l] }\nfor i in 0..40 { let x = zeros(f32[1_000_000]) }\n"
           "print(len(l))\n",
           "1\n", 0),
     "a list nested 200,000 deep is marked without recursion");
}

/* ---- errors name the calls ----------------------------------------------------------------------------- */

static void test_calls(void) {
  static const char text[] = "fn inner(x) {\n"
                             "  return x[3]\n"
                             "}\n"
                             "fn outer(x) {\n"
                             "  return inner(x)\n"
                             "}\n"
                             "let f = fn(x) { return outer(x) }\n"
                             "f([1])\n";
  host h = {0};
  ccn_context *c = context(&h);
  ccn_status status = ccn_run(c, "main.ccn", text, sizeof text - 1);
  ccn_diagnostic d = {.size = sizeof d};
  bool good = status == CCN_ERROR && ccn_diagnostic_count(c) == 1 && ccn_diagnostic_get(c, 0, &d) == CCN_OK;
  good = good && !strcmp(d.code, "CCN0812") && d.primary.line == 2 && d.primary.column == 12 && d.nnotes == 3;
  good = good && d.notes[0].line == 5 && !strcmp(d.notes[0].text, "in this call of `inner`");
  good = good && d.notes[1].line == 7 && !strcmp(d.notes[1].text, "in this call of `outer`") &&
         d.notes[2].line == 8;
  ok(good, "an error has the line of each call, the innermost first");
  static const char deep[] = "fn f(n) { if n == 0 { return [][0] } return f(n - 1) }\nf(100)\n";
  status = ccn_run(c, "main.ccn", deep, sizeof deep - 1);
  good = status == CCN_ERROR && ccn_diagnostic_get(c, 0, &d) == CCN_OK && d.nnotes == 9 && !d.notes[8].file;
  ok(good && !strcmp(d.notes[8].text, "... 93 more calls"),
     "of many calls the innermost are named, the rest counted");
  ccn_context_free(c);
}

/* ---- modules ------------------------------------------------------------------------------------------- */

static void test_modules(void) {
  host h = {0};
  put(&h, "dir/tools.ccn",
      "import \"sub/more\" as more\nlet k = 3\nfn scaled(x) { return x * k * more.two }\nprint(\"tools\")\n");
  put(&h, "dir/sub/more.ccn", "import \"../base\"\nlet two = base.one + 1\n");
  put(&h, "dir/base.ccn", "let one = 1\nprint(\"base\")\n");
  put(&h, "dir/a.ccn", "import \"b\"\n");
  put(&h, "dir/b.ccn", "import \"a\"\n");
  put(&h, "dir/broken.ccn", "let x = (1\n");
  put(&h, "dir/unknown.ccn", "let x = nowhere\n");
  put(&h, "dir/meshed.ccn", "mesh (dp)\n");
  put(&h, "dir/fails.ccn", "let x = 1\nlet y = [x][5]\n");
  ok(gives(&h,
           "import \"tools\" as t\nimport \"base\" as b\nimport \"./sub/../tools\" as again\n"
           "print(t.scaled(2), b.one, t == again)\n",
           "base\ntools\n12 1 true\n", 0),
     "modules import modules, relative to their files, and run once");
  ok(h.freed == 3, "each file was read once by the check, none by the run, and given back");
  ok(gives(&h, "import \"a\"\n", "", 811), "a circle of imports");
  ok(gives(&h, "import \"nothing\"\n", "", 811), "a module that is not there");
  ok(gives(&h, "print(\"never\")\nimport \"broken\"\n", "", 4), "a syntax error in a module");
  ok(gives(&h, "import \"unknown\" as u\nprint(u.x)\n", "", 801), "an unknown name in a module");
  ok(gives(&h, "import \"meshed\"\n", "", 300), "a mesh in a module");
  ok(gives(&h, "print(1)\nimport \"fails\"\n", "1\n", 812), "a module that fails when it runs");
  ok(gives(&h, "import \"tools\" as t\nt.k = 4\n", "", 805), "members of modules are not assigned");
  ok(gives(&h, "import \"std/optim\"\nprint(optim.adam.name)\n", "adam\n", 0),
     "the standard library needs no files");
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  bool good = ccn_context_create(&o, &c) == CCN_OK && ccn_run(c, "m", "import \"x\"\n", 11) == CCN_ERROR &&
              c->once->diags.first->code == 704;
  ok(good, "without file access a module cannot be read");
  ccn_context_free(c);
  for (size_t i = 0; i < h.n; i++) free(h.at[i].data);
}

/* ---- files --------------------------------------------------------------------------------------------- */

/* A .npy file with this dict and these bytes. */
static void put_npy(host *h, const char *path, const char *dict, const void *data, size_t size) {
  char bytes[512];
  memset(bytes, ' ', 128);
  memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(bytes + 10, dict, strlen(dict));
  bytes[127] = '\n';
  memcpy(bytes + 128, data, size);
  (void)file_write(path, bytes, 128 + size, h);
}

static void test_files(void) {
  static const int32_t six[] = {1, 2, 3, 4, 5, 6};
  static const unsigned char big[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
  host h = {0};
  put_npy(&h, "c.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", six, sizeof six);
  put_npy(&h, "f.npy", "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", six, sizeof six);
  put_npy(&h, "b.npy", "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", big, sizeof big);
  put(&h, "x.npy", "no such format");
  ok(gives(&h, "print(load(\"c.npy\"))\nprint(load(\"f.npy\"))\nprint(load(\"b.npy\"))\n",
           "i32[2, 3] [[1, 2, 3], [4, 5, 6]]\ni32[2, 3] [[1, 3, 5], [2, 4, 6]]\nf32[2] [1.0, -2.0]\n", 0),
     "row-major, column-major and swapped files");
  ok(gives(&h, "save(\"copy.npy\", load(\"f.npy\"))\n", "", 0), "saved");
  ok(h.at[h.n - 1].size == 128 + 24 && !memcmp(h.at[h.n - 1].data, h.at[0].data, 128), "with NumPy's bytes");
  ok(gives(&h, "load(\"x.npy\")\n", "", 703), "a file that is no .npy");
  ok(gives(&h, "load(\"none.npy\")\n", "", 701), "a file that is not there");
  ok(gives(&h, "load(\"c.npy\", as: f32[A, B])\n", "", 703), "another dtype");
  ok(gives(&h, "load(\"c.npy\", as: i32[A, A])\n", "", 304), "one name, two extents");
  ok(gives(&h, "let n = 4\nload(\"c.npy\", as: i32[2, n])\n", "", 305), "another extent");
  ok(gives(&h, "load(\"c.npy\", as: i32[A])\n", "", 305), "another number of dims");
  ok(gives(&h, "let n = 2\nprint(load(\"c.npy\", as: i32[n, n + 1]).shape)\n", "[2, 3]\n", 0),
     "extents are expressions");
  ok(gives(&h, "save(\"x\", zeros(bf16[2]))\n", "", 703), "NumPy has no bf16");
  ok(gives(&h, "save(\"x\", 3)\n", "", 805), "a number is no tensor");
  h.ranks = 3;
  ok(gives(&h,
           "mesh (dp)\nlet x = load(\"c.npy\", as: i32[A, B] sliced(1))\nfor r in 0..3 { print(x.on(r)) }\n",
           "i32[2, 1] [[1], [4]]\ni32[2, 1] [[2], [5]]\ni32[2, 1] [[3], [6]]\n", 0),
     "each rank gets its slice");
  for (size_t i = 0; i < h.n; i++) free(h.at[i].data);
}

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

static bool is_int(ccn__oper op, int64_t x, int64_t y, int64_t want) {
  ccn__calc_error err;
  ccn__val v;
  return ccn__calc_binary(op, ccn__int_val(x), ccn__int_val(y), &v, &err) && v.kind == CCN__V_INT &&
         v.i == want;
}

static bool refuses(ccn__oper op, int64_t x, int64_t y) {
  ccn__calc_error err = {0};
  ccn__val v;
  return !ccn__calc_binary(op, ccn__int_val(x), ccn__int_val(y), &v, &err) && err.code == 810 && err.hint;
}

static void test_arithmetic(void) {
  const int64_t most = INT64_MAX, least = INT64_MIN;
  ok(is_int(CCN__T_PLUS, most, least, -1) && refuses(CCN__T_PLUS, most, 1) && refuses(CCN__T_PLUS, least, -1),
     "sums at the edges");
  ok(is_int(CCN__T_MINUS, -1, least, most) && refuses(CCN__T_MINUS, 0, least) &&
       refuses(CCN__T_MINUS, least, 1),
     "differences at the edges");
  ok(is_int(CCN__T_STAR, least, 1, least) && refuses(CCN__T_STAR, least, -1) &&
       refuses(CCN__T_STAR, -1, least) && refuses(CCN__T_STAR, 3037000500, 3037000500) &&
       is_int(CCN__T_STAR, 3037000499, -3037000499, -9223372030926249001),
     "products at the edges");
  ok(is_int(CCN__T_SLASH2, least, 1, least) && refuses(CCN__T_SLASH2, least, -1) &&
       is_int(CCN__T_PERCENT, least, -1, 0) && refuses(CCN__T_PERCENT, 1, 0),
     "quotients at the edges");
  ok(is_int(CCN__T_POW, -2, 63, least) && refuses(CCN__T_POW, 2, 63) && is_int(CCN__T_POW, 1, most, 1) &&
       is_int(CCN__T_POW, -1, most, -1) && refuses(CCN__T_POW, 2, most) && is_int(CCN__T_POW, 0, 0, 1),
     "powers at the edges");
  ok(ccn__calc_compare(ccn__int_val(most), ccn__float_val(9223372036854775808.0)) == -1 &&
       ccn__calc_compare(ccn__int_val(least), ccn__float_val(-9223372036854775808.0)) == 0 &&
       ccn__calc_compare(ccn__float_val(0.5), ccn__int_val(0)) == 1 &&
       ccn__calc_compare(ccn__int_val(-1), ccn__float_val(-1.5)) == 1 &&
       ccn__calc_compare(ccn__int_val(3), ccn__float_val((double)NAN)) == 2,
     "integers compare with floats exactly");
}

int main(void) {
  test_scopes();
  test_collection();
  test_calls();
  test_modules();
  test_files();
  test_arithmetic();
  printf("1..%d\n", tests);
  return failures != 0;
}
