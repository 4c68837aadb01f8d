/* test_calls.c: modules from memory, functions by name with their signatures, call objects used again and again,
 * and memory that ends at every request on that way.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn_dlpack.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static const char adam[] = "mesh (dp)\n"
                           "let beta = 0.9\n"
                           "program adam(g: f32[N] local, p: f32[N], m: f32[N], lr: f32 = 0.5) {\n"
                           "  gsum = allreduce(sum, g)\n"
                           "  m1 = update(m, beta * m + 0.5 * gsum)\n"
                           "  return update(p, p - lr * m1), m1\n"
                           "}\n"
                           "schedule zero(x) { (rs, ag) = split(x) }\n"
                           "schedule fixed for adam { (rs, ag) = split(adam.gsum) }\n"
                           "program total(b: [f32[*]], s: [f32[3]]) { return sum(b), s[0] + s[1] }\n"
                           "fn twice(x, by = 2) { return x * by }\n"
                           "fn greet(name) { return \"hello \" + name }\n"
                           "fn keep(x) { kept.append(x); return len(kept) }\n"
                           "let kept = []\n"
                           "let number = 3\n";

static ccn_context *make(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = ranks;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

static bool says(ccn_context *c, const char *code) {
  ccn_diagnostic d = {.size = sizeof d};
  if (ccn_diagnostic_get(c, 0, &d) == CCN_OK && !strcmp(d.code, code)) return true;
  fprintf(stderr, "%s, not %s: %s\n", d.code ? d.code : "nothing", code, d.message ? d.message : "");
  return false;
}

static ccn_tensor *vector(ccn_context *c, const char *placement, int64_t n, float x) {
  float data[16];
  ccn_tensor_desc d = {
    .size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n, .placement = placement};
  ccn_tensor *t = NULL;
  for (int64_t i = 0; i < n; i++) data[i] = x;
  return ccn_tensor_copy_in(c, &d, data, (size_t)n * sizeof *data, &t) == CCN_OK ? t : NULL;
}

static bool holds(ccn_tensor *t, float wanted) {
  float x[3] = {0};
  return t && ccn_tensor_read(t, x, sizeof x) == CCN_OK && x[0] == wanted && x[1] == wanted && x[2] == wanted;
}

/* ---- modules and functions ------------------------------------------------------------------------------- */

static void test_modules(void) {
  ccn_context *c = make(2);
  ccn_module *m = NULL, *n = NULL;
  const ccn_function *f = NULL, *g = NULL;
  ok(ccn_module_load(c, "adam.ccn", adam, sizeof adam - 1, &m) == CCN_OK && m, "a module");
  ok(ccn_module_load(c, "bad", "let x = ", 8, &n) == CCN_ERROR && !n && ccn_diagnostic_count(c) == 1,
     "a broken one");
  ok(ccn_module_load(c, "bad", "program f(x: f32[N]) { return allreduce(sum, x) }", 49, &n) == CCN_ERROR &&
       !n && says(c, "CCN0212"),
     "one with a type error");
  ok(ccn_module_load(c, "bad", "assert false", 12, &n) == CCN_ERROR && !n && says(c, "CCN0601"),
     "one that fails");
  ok(ccn_module_load(c, "bad", "mesh (tp)", 9, &n) == CCN_ERROR && !n && says(c, "CCN0300"),
     "one with another mesh");
  ok(ccn_module_load(NULL, "m", "", 0, &n) == CCN_INVALID_ARGUMENT &&
       ccn_module_load(c, NULL, "", 0, &n) == CCN_INVALID_ARGUMENT &&
       ccn_module_load(c, "m", NULL, 1, &n) == CCN_INVALID_ARGUMENT &&
       ccn_module_load(c, "m", "", 0, NULL) == CCN_INVALID_ARGUMENT,
     "wrong arguments");
  ok(ccn_module_function(m, "adam", &f) == CCN_OK && ccn_module_function(m, "adam", &g) == CCN_OK && f == g,
     "a function, twice the same");
  ok(ccn_module_function(m, "adam@zero(gsum)", &g) == CCN_OK && g && g != f,
     "with a schedule and its handle");
  ok(ccn_module_function(m, "adam@zero(adam.gsum)", &g) == CCN_OK && g, "with the handle in full");
  ok(ccn_module_function(m, "adam@fixed", &g) == CCN_OK && g, "with the program's own schedule");
  ok(ccn_module_function(m, "adma", &g) == CCN_NOT_FOUND && !g && says(c, "CCN0801"), "no such function");
  ok(ccn_module_function(m, "number", &g) == CCN_ERROR && !g && says(c, "CCN0805"), "no function at all");
  ok(ccn_module_function(m, "adam@zero(nothing)", &g) == CCN_ERROR && says(c, "CCN0400"), "no such value");
  ok(ccn_module_function(m, "adam@zero(gsum", &g) == CCN_ERROR &&
       ccn_module_function(m, "adam(", &g) == CCN_ERROR && ccn_module_function(m, "", &g) == CCN_ERROR &&
       ccn_module_function(m, "twice(3)", &g) == CCN_ERROR &&
       ccn_module_function(m, "adam@", &g) == CCN_ERROR &&
       ccn_module_function(m, "let x = 1", &g) == CCN_ERROR,
     "names that are none");
  ok(ccn_module_function(NULL, "adam", &g) == CCN_INVALID_ARGUMENT &&
       ccn_module_function(m, NULL, &g) == CCN_INVALID_ARGUMENT &&
       ccn_module_function(m, "adam", NULL) == CCN_INVALID_ARGUMENT,
     "wrong arguments");
  ok(ccn_module_load(c, "m", "import \"std/optim\" as optim\n", 28, &n) == CCN_OK &&
       ccn_module_function(n, "optim.adam", &g) == CCN_OK && g,
     "a member of an imported module");
  ok(ccn_eval(c, "m", "adam", 4, NULL) == CCN_ERROR, "a module's names are its own");
  ccn_module_release(n);
  ccn_module_release(m);
  ccn_module_release(NULL);
  ccn_context_free(c);
}

static void test_signatures(void) {
  ccn_context *c = make(2);
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_param p = {.size = sizeof p};
  if (ccn_module_load(c, "adam.ccn", adam, sizeof adam - 1, &m) != CCN_OK ||
      ccn_module_function(m, "adam", &f) != CCN_OK)
    exit(1);
  ok(!strcmp(ccn_function_name(f), "adam") && ccn_function_params(f) == 4 && ccn_function_results(f) == 2,
     "a program");
  ok(ccn_function_param(f, 0, &p) == CCN_OK && !strcmp(p.name, "g") && !strcmp(p.type, "f32[N] local") &&
       p.dtype == CCN_DTYPE_F32 && p.ndim == 1 && !strcmp(p.dims[0], "N") &&
       !strcmp(p.placement, "local over dp") && !p.updated,
     "a local parameter");
  ok(ccn_function_param(f, 1, &p) == CCN_OK && p.updated && !p.placement[0] && !p.optional, "an updated one");
  ok(ccn_function_param(f, 3, &p) == CCN_OK && p.ndim == 0 && p.optional &&
       ccn_function_param_find(f, "lr") == 3 && ccn_function_param_find(f, "rl") == -1,
     "a number with a default");
  ok(ccn_function_result(f, 1, &p) == CCN_OK && !strcmp(p.name, "m1") && p.dtype == CCN_DTYPE_F32 &&
       p.ndim == 1,
     "a result");
  ok(ccn_function_param(f, 4, &p) == CCN_NOT_FOUND &&
       ccn_function_param(NULL, 0, &p) == CCN_INVALID_ARGUMENT &&
       ccn_function_param(f, 0, NULL) == CCN_INVALID_ARGUMENT && ccn_function_params(NULL) == 0,
     "no such parameter");
  ok(ccn_module_function(m, "total", &f) == CCN_OK && ccn_function_param(f, 0, &p) == CCN_OK &&
       !strcmp(p.type, "[f32[*]]") && p.dtype == CCN_DTYPE_F32 && p.ndim == -1 &&
       ccn_function_param(f, 1, &p) == CCN_OK && !strcmp(p.type, "[f32[3]]"),
     "a bundle and a list");
  ok(ccn_module_function(m, "twice", &f) == CCN_OK && ccn_function_params(f) == 2 &&
       ccn_function_results(f) == 0 && ccn_function_param(f, 0, &p) == CCN_OK && p.dtype == -1 && !p.type[0],
     "a function");
  ccn_module_release(m);
  ccn_context_free(c);
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static void test_calls(const char *name) {
  char message[100];
  ccn_context *c = make(2);
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  ccn_tensor *g = NULL, *p, *q, *state, *r = NULL;
  if (ccn_module_load(c, "adam.ccn", adam, sizeof adam - 1, &m) != CCN_OK ||
      ccn_module_function(m, name, &f) != CCN_OK)
    exit(1);
  g = vector(c, "local", 3, 1), p = vector(c, NULL, 3, 0), q = vector(c, "", 4, 0),
  state = vector(c, NULL, 3, 0);
  bool good = ccn_call_create(f, &call) == CCN_OK && ccn_call_results(call) == 0 &&
              ccn_call_result(call, 0, &r) == CCN_NOT_FOUND;
  ccn_module_release(m); /* the call keeps it */
  good = good && ccn_call_run(call) == CCN_ERROR && says(c, "CCN0800");
  good = good && ccn_call_set_tensor(call, 0, g) == CCN_OK && ccn_call_set_tensor(call, 1, p) == CCN_OK &&
         ccn_call_set_tensor(call, 2, state) == CCN_OK;
  good =
    good && ccn_call_run(call) == CCN_OK && ccn_call_results(call) == 2 && holds(p, -0.5f) && holds(state, 1);
  good = good && ccn_call_result(call, 0, &r) == CCN_OK && holds(r, -0.5f);
  snprintf(message, sizeof message, "%s: a run, with a default", name);
  ok(good, message);
  good = ccn_call_set_f64(call, 3, 0) == CCN_OK;
  for (int i = 0; i < 100; i++) good = good && ccn_call_run(call) == CCN_OK;
  snprintf(message, sizeof message, "%s: a hundred runs; the first result is still there", name);
  ok(good && holds(p, -0.5f) && holds(r, -0.5f), message);
  ccn_tensor_release(r);
  ok(ccn_call_set_tensor(call, 1, q) == CCN_OK && ccn_call_run(call) == CCN_ERROR && says(c, "CCN0304") &&
       ccn_call_results(call) == 0 && ccn_call_result(call, 0, &r) == CCN_NOT_FOUND && !r,
     "sizes that do not fit");
  ok(ccn_call_set_tensor(call, 1, state) == CCN_OK && ccn_call_run(call) == CCN_ERROR && says(c, "CCN0225"),
     "one tensor twice");
  ok(ccn_call_set_tensor(call, 1, g) == CCN_OK && ccn_call_set_tensor(call, 0, p) == CCN_OK &&
       ccn_call_run(call) == CCN_ERROR,
     "placements that do not fit");
  ok(ccn_call_set_i64(call, 3, INT64_MAX) == CCN_OK && ccn_call_set_tensor(call, 0, g) == CCN_OK &&
       ccn_call_set_tensor(call, 1, p) == CCN_OK && ccn_call_run(call) == CCN_ERROR && says(c, "CCN0110"),
     "a number that does not fit");
  ok(ccn_call_reset(call) == CCN_OK && ccn_call_run(call) == CCN_ERROR && says(c, "CCN0800"),
     "nothing set any more");
  ccn_tensor_release(p), ccn_tensor_release(q), ccn_tensor_release(g), ccn_tensor_release(state);
  ccn_call_release(call);
  ccn_context_free(c);
}

static void test_arguments(void) {
  ccn_context *c = make(2), *d = make(2);
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL, *none = NULL;
  ccn_tensor *other, *old, *wide = NULL, *pair[2];
  ccn_value *v = NULL;
  double x = 0;
  int64_t shape[2] = {1, 3};
  ccn_tensor_desc desc = {.size = sizeof desc, .dtype = CCN_DTYPE_F32, .ndim = 2, .shape = shape};
  other = vector(d, NULL, 3, 0);
  old = vector(c, NULL, 3, 0);
  if (ccn_session_reset(c) != CCN_OK || ccn_module_load(c, "adam.ccn", adam, sizeof adam - 1, &m) != CCN_OK ||
      ccn_module_function(m, "adam", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK ||
      ccn_tensor_create(c, &desc, &wide) != CCN_OK)
    exit(1);
  ok(ccn_call_set_tensor(call, 0, other) == CCN_INVALID_ARGUMENT &&
       ccn_call_set_tensor(call, 0, old) == CCN_INVALID_ARGUMENT,
     "tensors of another context, or of an old session");
  ok(ccn_call_set_tensor(call, 4, wide) == CCN_NOT_FOUND && ccn_call_set_i64(call, 4, 1) == CCN_NOT_FOUND,
     "no such parameter");
  ok(ccn_call_set_tensor(call, 0, wide) == CCN_ERROR && says(c, "CCN0305") && ccn_diagnostic_count(c) == 1,
     "too many dims, seen at once");
  ok(ccn_call_set_tensor(call, 0, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_call_set_tensor(NULL, 0, wide) == CCN_INVALID_ARGUMENT &&
       ccn_call_set_i64(NULL, 0, 1) == CCN_INVALID_ARGUMENT && ccn_call_run(NULL) == CCN_INVALID_ARGUMENT &&
       ccn_call_create(NULL, &none) == CCN_INVALID_ARGUMENT && !none && ccn_call_results(NULL) == 0,
     "NULL");
  ccn_tensor_release(other), ccn_tensor_release(old), ccn_tensor_release(wide);
  ccn_call_release(call);

  if (ccn_module_function(m, "twice", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK) exit(1);
  ok(ccn_call_set_f64(call, 0, 1.5) == CCN_OK && ccn_call_run(call) == CCN_OK &&
       ccn_call_result_value(call, 0, &v) == CCN_OK && ccn_value_f64(v, &x) == CCN_OK && x == 3,
     "a function of numbers");
  ccn_value_release(v);
  ok(ccn_call_set_i64(call, 1, 3) == CCN_OK && ccn_call_run(call) == CCN_OK &&
       ccn_call_result_value(call, 0, &v) == CCN_OK && ccn_value_f64(v, &x) == CCN_OK && x == 4.5 &&
       ccn_call_result(call, 0, &wide) == CCN_NOT_FOUND,
     "its default replaced; no tensor");
  ccn_call_release(call);
  if (ccn_module_function(m, "greet", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK) exit(1);
  ok(ccn_call_set_value(call, 0, v) == CCN_OK && ccn_call_run(call) == CCN_ERROR, "a function that fails");
  ccn_value_release(v);
  ok(ccn_call_set_string(call, 0, "you", 3) == CCN_OK && ccn_call_run(call) == CCN_OK &&
       ccn_call_result_value(call, 0, &v) == CCN_OK && !strcmp(ccn_value_string(v, NULL), "hello you"),
     "a function of strings");
  ccn_value_release(v);
  ccn_call_release(call);
  if (ccn_module_function(m, "total", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK) exit(1);
  pair[0] = vector(c, NULL, 3, 1), pair[1] = vector(c, NULL, 3, 2);
  ok(ccn_call_set_tensors(call, 0, pair, 2) == CCN_OK && ccn_call_set_tensors(call, 1, pair, 2) == CCN_OK &&
       ccn_call_run(call) == CCN_OK && ccn_call_result(call, 1, &wide) == CCN_OK && holds(wide, 3) &&
       ccn_call_result_value(call, 0, &v) == CCN_OK && ccn_value_f64(v, &x) == CCN_OK && x == 9,
     "a bundle and a list");
  ccn_value_release(v);
  ccn_tensor_release(wide);
  ccn_call_release(call);
  if (ccn_module_function(m, "keep", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK) exit(1);
  bool good = ccn_call_set_tensor(call, 0, pair[0]) == CCN_OK && ccn_call_run(call) == CCN_OK;
  ccn_tensor_release(pair[0]), ccn_tensor_release(pair[1]);
  ccn_call_release(call);
  if (ccn_module_function(m, "keep", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK) exit(1);
  good = good && ccn_call_set_i64(call, 0, 1) == CCN_OK && ccn_call_run(call) == CCN_OK &&
         ccn_call_result_value(call, 0, &v) == CCN_OK;
  ok(good && ccn_value_f64(v, &x) == CCN_OK && x == 2, "what a script keeps stays");
  ccn_value_release(v);
  ccn_module_release(m);
  ccn_context_free(c);
  ccn_call_release(call);
  ok(true, "a call is released behind its context's end");
  ccn_context_free(d);
}

/* ---- a host that has the modules --------------------------------------------------------------------------- */

static int given_back;
static int loader(const char *path, void **data, size_t *size, void *user) {
  static char helper[] = "fn three() { return 3 }\n";
  (void)user;
  if (strcmp(path, "lib/helper.ccn")) return 2;
  *data = helper;
  *size = sizeof helper - 1;
  return 0;
}
static void back(void *data, size_t size, void *user) {
  (void)data, (void)size, (void)user;
  given_back++;
}

static void test_loader(void) {
  static const char text[] = "import \"helper\"\nlet x = helper.three()\n";
  ccn_options o;
  ccn_context *c = NULL;
  ccn_module *m = NULL;
  ccn_options_init(&o, sizeof o);
  o.load = loader;
  o.load_free = back;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  ok(ccn_module_load(c, "lib/main.ccn", text, sizeof text - 1, &m) == CCN_OK && given_back == 1,
     "imports come from the host's loader");
  ccn_module_release(m);
  ok(ccn_module_load(c, "main.ccn", text, sizeof text - 1, &m) == CCN_ERROR && !m && says(c, "CCN0704"),
     "unless it has no such module");
  ccn_context_free(c);
}

/* ---- memory that ends --------------------------------------------------------------------------------------- */

typedef struct host {
  size_t blocks, bytes, requests, fail_at;
  int released;
} host;

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  host *h = user;
  if (new_size == 0) {
    if (p) h->blocks--, h->bytes -= old_size;
    free(p);
    return NULL;
  }
  if (++h->requests == h->fail_at) return NULL;
  p = align <= 16 ? malloc(new_size) : aligned_alloc(align, (new_size + align - 1) / align * align);
  if (p) h->blocks++, h->bytes += new_size;
  return p;
}

static void released(void *user) { (*(int *)user)++; }

static ccn_status echo(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  (void)args, (void)n, (void)user;
  return ccn_value_make_string(c, "echo", 4, out);
}

/* Out as DLPack and in again, and a function of the host. */
static ccn_status lend_on(ccn_context *c, ccn_tensor *t) {
  DLManagedTensorVersioned *managed = NULL;
  ccn_tensor *again = NULL;
  ccn_status s = ccn_tensor_to_dlpack(t, 0, 1, 0, &managed);
  if (s == CCN_OK) s = ccn_tensor_from_dlpack(c, NULL, &managed, 1, &again);
  if (managed && !again) managed->deleter(managed);
  ccn_tensor_release(again);
  if (s == CCN_OK) s = ccn_register_function(c, "echo", echo, NULL, 0);
  if (s == CCN_OK) s = ccn_eval(c, "m", "echo(1, 2)", 10, NULL);
  return s;
}

/* The status of the first thing that failed. */
static ccn_status whole_way(ccn_context *c, host *h) {
  static float memory[3];
  void *pieces[1] = {memory};
  int64_t n = 3;
  ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n};
  ccn_tensor *g = NULL, *p = NULL, *m = NULL, *r = NULL;
  ccn_module *module = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  ccn_value *v = NULL;
  ccn_status s = ccn_module_load(c, "adam.ccn", adam, sizeof adam - 1, &module);
  if (s == CCN_OK) s = ccn_module_function(module, "adam@zero(gsum)", &f);
  if (s == CCN_OK) s = ccn_call_create(f, &call);
  if (s == CCN_OK) s = ccn_tensor_create(c, &d, &m);
  if (s == CCN_OK) s = ccn_tensor_copy_in(c, &d, memory, sizeof memory, &r);
  ccn_tensor_release(r);
  r = NULL;
  if (s == CCN_OK) s = ccn_tensor_borrow(c, &d, pieces, 1, 0, released, &h->released, &p);
  if (p) h->released--;
  d.placement = "local";
  if (s == CCN_OK) s = ccn_tensor_create(c, &d, &g);
  if (s == CCN_OK) s = ccn_call_set_tensor(call, 0, g);
  if (s == CCN_OK) s = ccn_call_set_tensor(call, 1, p);
  if (s == CCN_OK) s = ccn_call_set_tensor(call, 2, m);
  if (s == CCN_OK) s = ccn_call_set_f64(call, 3, 1);
  if (s == CCN_OK) s = ccn_call_run(call);
  if (s == CCN_OK) s = ccn_call_result(call, 0, &r);
  if (s == CCN_OK) s = ccn_tensor_read(r, memory, sizeof memory);
  if (s == CCN_OK) s = ccn_tensor_write(m, memory, sizeof memory);
  if (s == CCN_OK) s = ccn_tensor_write_rank(g, 1, memory, sizeof memory);
  if (s == CCN_OK) s = ccn_eval(c, "m", "import \"std/optim\"\n[1, \"a\"]", 27, &v);
  ccn_value_release(v);
  if (s == CCN_OK) s = lend_on(c, m);
  ccn_call_release(call);
  ccn_module_release(module);
  ccn_tensor_release(g), ccn_tensor_release(p), ccn_tensor_release(m), ccn_tensor_release(r);
  return s;
}

static void test_out_of_memory(void) {
  char message[100];
  bool good = true;
  size_t n = 1;
  for (bool more = true; good && more; n++) {
    host h = {.fail_at = n};
    ccn_options o;
    ccn_context *c = NULL;
    ccn_options_init(&o, sizeof o);
    o.alloc = host_alloc;
    o.alloc_user = &h;
    o.ranks = 2;
    ccn_status s = ccn_context_create(&o, &c);
    if (s == CCN_OK) s = whole_way(c, &h);
    more = h.requests >= n;
    good = s == (more ? CCN_OUT_OF_MEMORY : CCN_OK);
    if (c && s != CCN_OK) good = good && whole_way(c, &h) == CCN_OK; /* usable again */
    ccn_context_free(c);
    good = good && h.blocks == 0 && h.bytes == 0 && h.released == 0;
    if (!good)
      fprintf(stderr, "request %zu: %s, %zu blocks left, released %d\n", n, ccn_status_name(s), h.blocks,
              h.released);
  }
  snprintf(message, sizeof message, "memory ends at each of %zu requests", n - 2);
  ok(good, message);
}

/* Found by fuzz_api: a call of a session that was reset fails, and goes; its diagnostics went with it. */
static void test_last_of_a_reset_session(void) {
  ccn_context *c = NULL;
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  static const char text[] = "program f(x: f32[N]) { return x }";
  bool good =
    ccn_context_create(NULL, &c) == CCN_OK && ccn_module_load(c, "m", text, sizeof text - 1, &m) == CCN_OK &&
    ccn_module_function(m, "f", &f) == CCN_OK && ccn_call_create(f, &call) == CCN_OK &&
    ccn_session_reset(c) == CCN_OK && ccn_call_run(call) == CCN_ERROR && ccn_diagnostic_count(c) == 1;
  ccn_call_release(call);
  ccn_module_release(m);
  ok(good && ccn_diagnostic_count(c) == 0, "diagnostics of a session that is gone");
  ccn_context_free(c);
}

int main(void) {
  test_modules();
  test_signatures();
  test_calls("adam");
  test_calls("adam@zero(gsum)");
  test_arguments();
  test_loader();
  test_out_of_memory();
  test_last_of_a_reset_session();
  printf("1..%d\n", tests);
  return failures != 0;
}
