/* fuzz_api.c: libFuzzer target for ccn.h: each input is a sequence of calls, right and wrong ones, with
 * handles in any order that the contract allows, memory that ends, interrupts, host functions and ops that
 * fail.
 *
 * What must hold whatever the calls are: a status that the header names; out-parameters that are NULL after a
 * failure; every release function called exactly once; floating-point control as it was; every block back at
 * the end. SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn_dlpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HANDLES = 4, MOST_STEPS = 24, MOST_TEXTS = 3, ELEMENTS = 6 };

/* Says which promise was broken: a stack alone does not, where functions are inlined. */
#define require(condition) require_at((condition), #condition, __LINE__)
static void require_at(bool good, const char *what, int line) {
  if (good) return;
  fprintf(stderr, "line %d: not so: %s\n", line, what);
  abort();
}

/* ---- the host ------------------------------------------------------------------------------------------ */

typedef struct lent { /* memory that the library borrows, with its managed tensor in either form */
  int given_back, taken;
  float data[ELEMENTS];
  int64_t shape[2], strides[2];
  DLManagedTensorVersioned new_form;
  DLManagedTensor old_form;
} lent;

typedef struct world {
  const uint8_t *at, *end; /* of the input */
  size_t blocks, requests, fail_at;
  uint32_t texts, runs; /* so far: the dear ones */
  bool open;            /* the context was not freed */
  ccn_context *c;
  ccn_module *module[HANDLES];
  const ccn_function *function[HANDLES];
  uint8_t of[HANDLES]; /* in which module slot the function is */
  ccn_call *call[HANDLES];
  ccn_tensor *tensor[HANDLES];
  ccn_value *value[HANDLES];
  DLManagedTensorVersioned *out_new[HANDLES];
  DLManagedTensor *out_old[HANDLES];
  lent lent[8];
  uint32_t nlent;
} world;

static uint8_t next(world *w) { return w->at < w->end ? *w->at++ : 0; }

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  world *w = user;
  (void)old_size;
  if (!new_size) {
    if (p) w->blocks--;
    free(p);
    return NULL;
  }
  if (w->fail_at && ++w->requests >= w->fail_at) {
    w->requests = w->fail_at = 0; /* once */
    return NULL;
  }
  p = align <= 16 ? malloc(new_size) : aligned_alloc(align, (new_size + align - 1) / align * align);
  if (p) w->blocks++;
  return p;
}

static void drop_text(const char *text, size_t size, void *user) {
  world *w = user;
  uint8_t sum = 0;
  for (size_t i = 0; i < size; i++) sum = (uint8_t)(sum + (uint8_t)text[i]); /* all of it can be read */
  if (sum == 7 && w->open) ccn_interrupt(w->c);
}

static int file_read(const char *path, void **out_data, size_t *out_size, void *user) {
  static char module[] = "fn twice(x) { return x * 2 }\n", junk[] = "\x93NUMPY junk";
  (void)user;
  *out_data = strstr(path, ".ccn") ? module : junk;
  *out_size = strstr(path, ".ccn") ? sizeof module - 1 : sizeof junk - 1;
  return strstr(path, "none") ? 2 : 0;
}

static int file_write(const char *path, const void *data, size_t size, void *user) {
  (void)path;
  drop_text(data, size, user);
  return 0;
}

/* Adds, fails, nests, interrupts, as the input says. */
static ccn_status host_fn(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  world *w = user;
  double x = 0;
  int64_t two = 2;
  const ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &two};
  ccn_tensor *t = NULL;
  ccn_value *v = NULL;
  ccn_status s;
  if (w->at == w->end) return CCN_INTERRUPTED; /* or a loop would call for ever */
  switch (next(w) % 7) {
  case 0: return n && ccn_value_f64(args[0], &x) == CCN_OK ? ccn_value_make_f64(c, x + 1, out) : CCN_OK;
  case 1: ccn_host_error(c, "no"); return CCN_ERROR;
  case 2: s = ccn_eval(c, "nested", "1", 1, &v); return require(s == CCN_INVALID_ARGUMENT && !v), CCN_OK;
  case 3: ccn_interrupt(c); return CCN_OK;
  case 4:
    s = ccn_tensor_create(c, &d, &t);
    if (s == CCN_OK) s = ccn_value_make_tensor(t, out);
    ccn_tensor_release(t);
    return s;
  case 5: ccn_context_free(c); return CCN_OUT_OF_MEMORY; /* nothing happens: it is running */
  default: return ccn_value_make_string(c, "text", 4, out);
  }
}

static ccn_status host_type(ccn_context *c, const ccn_op_type *in, size_t n, ccn_op_type *out, void *user) {
  world *w = user;
  require(n == 1 && out->dtype == in->dtype);
  if (next(w) % 4 == 3) return ccn_host_error(c, "these not"), CCN_ERROR;
  return next(w) % 8 == 7 ? CCN_INTERRUPTED : CCN_OK;
}

static ccn_status host_op(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                          const ccn_op_array *out, void *user) {
  world *w = user;
  require(n == 1 && rank < 2 && in->bytes == out->bytes);
  memcpy(out->data, in->data, in->bytes);
  if (next(w) % 8 == 7) return ccn_host_error(c, "not today"), CCN_ERROR;
  return next(w) % 16 == 15 ? CCN_OUT_OF_MEMORY : CCN_OK;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

static const char *const texts[] = {
  "program f(g: f32[N], p: f32[N], lr: f32) { return update(p, p - lr * g) }",
  "program f(x: f32[N]) { return sum(x), x * 2 }",
  "program f(x: f32[N] local) {\n s = allreduce(sum, x)\n return s }\nschedule z(a) { (rs, ag) = split(a) }",
  "fn f(x) { return [x, \"a\", (1, 2.5)] }",
  "let a = 1\nlet p = ones(f32[3])\np * a",
  "mesh (dp)\nlet q = zeros(f32[4] sliced(0))",
  "host(1, 2)",
  "program f(b: [f32[*]]) { return b * 2 }",
  "let l = [1, 2]\nl.append(host(3))\nl",
  "import \"m\" as m\nm.twice(3)",
  "print(\"{host()}\")",
  "load(\"x.npy\")",
  "save(\"y.npy\", ones(f32[2]))",
  "let x = (1 +",
  "f(1, 2, 3)",
  "x = y + f16(3)\n\"{x",
  "p * 2",
  "while true { host(1) }",
  "import \"none\" as n",
  "program f(x: f32[N]) { return twin(x) + x }",
  "twin(ones(f32[3]))",
};
static const char *const names[] = {"f", "f@z(s)", "f@z", "g", "", "f@", "m.twice", "f@z(q)", "twin"};
static const char *const placements[] = {NULL,       "",         "local", "sliced(0)", "sliced(0) over dp",
                                         "nonsense", "sliced(9)"};

/* NULL: enough for one input. */
static const char *text(world *w) {
  const char *t = texts[next(w) % (sizeof texts / sizeof *texts)];
  return w->texts++ < MOST_TEXTS ? t : NULL;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static ccn_status sane(ccn_status s) {
  require(s >= CCN_OK && s <= CCN_INCOMPLETE && s != CCN_INTERNAL);
  return s;
}

/* Slot k of a kind: a NULL handle is in some of them. */
#define SLOT(w) (next(w) % HANDLES)
#define TAKE(slot, release, value) \
  do { \
    void *taken = (value); \
    release(slot); \
    (slot) = taken; \
  } while (0)

static void keep_value(world *w, ccn_status s, ccn_value *v) {
  require(s == CCN_OK || !v);
  const uint8_t slot = SLOT(w);
  TAKE(w->value[slot], ccn_value_release, v);
}

static void keep_tensor(world *w, ccn_status s, ccn_tensor *t) {
  require((s == CCN_OK) == (t != NULL));
  const uint8_t slot = SLOT(w);
  TAKE(w->tensor[slot], ccn_tensor_release, t);
}

static void give_back(void *user) { ((lent *)user)->given_back++; }
static void delete_new(DLManagedTensorVersioned *m) { give_back(m->manager_ctx); }
static void delete_old(DLManagedTensor *m) { give_back(m->manager_ctx); }

static lent *lend(world *w) {
  if (w->nlent == sizeof w->lent / sizeof *w->lent) return NULL;
  lent *l = &w->lent[w->nlent++];
  const uint8_t how = next(w);
  l->shape[0] = how & 1 ? 2 : 3;
  l->shape[1] = how & 2 ? 2 : 1;
  l->strides[0] = how & 4 ? 1 : l->shape[1];
  l->strides[1] = how & 4 ? l->shape[0] : 1;
  const DLTensor t = {.data = l->data,
                      .device = {how == 99 ? kDLCUDA : kDLCPU, 0},
                      .ndim = how & 8 ? 2 : 1,
                      .dtype = {how & 16 ? kDLInt : kDLFloat, how == 98 ? 24 : 32, 1},
                      .shape = l->shape,
                      .strides = how & 32 ? NULL : l->strides};
  l->old_form = (DLManagedTensor){.dl_tensor = t, .manager_ctx = l, .deleter = delete_old};
  l->new_form = (DLManagedTensorVersioned){.version = {how == 97 ? 2 : 1, 0},
                                           .manager_ctx = l,
                                           .deleter = delete_new,
                                           .flags = how & 64 ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
                                           .dl_tensor = t};
  if (!(how & 8)) l->new_form.dl_tensor.strides = l->old_form.dl_tensor.strides = NULL;
  return l;
}

static void borrow(world *w) {
  lent *l = lend(w);
  ccn_tensor *t = NULL;
  ccn_status s;
  if (!l) return;
  const uint8_t how = next(w);
  DLManagedTensorVersioned *m[2] = {&l->new_form, &l->new_form};
  DLManagedTensor *old[2] = {&l->old_form, &l->old_form};
  void *pieces[2] = {l->data, how & 8 ? NULL : l->data};
  const ccn_tensor_desc d = {.size = sizeof d,
                             .dtype = CCN_DTYPE_F32,
                             .ndim = 1,
                             .shape = l->shape,
                             .placement = placements[how / 16 % (sizeof placements / sizeof *placements)]};
  const size_t n = 1 + (how >> 2 & 1);
  if (how % 3 == 0) s = ccn_tensor_from_dlpack(w->c, how & 2 ? &d : NULL, m, n, &t);
  else if (how % 3 == 1) s = ccn_tensor_from_dlpack_old(w->c, how & 2 ? &d : NULL, old, n, &t);
  else s = ccn_tensor_borrow(w->c, &d, pieces, n, how & 1, give_back, l, &t);
  l->taken = s == CCN_OK;
  require(s == CCN_OK || !l->given_back);
  keep_tensor(w, sane(s), t);
}

static void make_tensor(world *w) {
  static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const uint8_t how = next(w);
  int64_t shape[2] = {how % 4, how / 4 % 3};
  const ccn_tensor_desc d = {.size = how == 200 ? 3 : sizeof d,
                             .dtype = (ccn_dtype)(how / 16),
                             .ndim = how / 32 % 3,
                             .shape = shape,
                             .placement = placements[next(w) % (sizeof placements / sizeof *placements)]};
  ccn_tensor *t = NULL;
  ccn_status s = how & 1 ? ccn_tensor_create(w->c, &d, &t) : ccn_tensor_copy_in(w->c, &d, x, how % 33, &t);
  keep_tensor(w, sane(s), t);
}

static void use_tensor(world *w) {
  char bytes[64];
  ccn_tensor *t = w->tensor[SLOT(w)];
  ccn_tensor_info info = {.size = sizeof info};
  ccn_piece piece = {.size = sizeof piece};
  const uint8_t how = next(w), rank = next(w) % 3;
  DLManagedTensorVersioned *m = NULL;
  DLManagedTensor *old = NULL;
  ccn_status s;
  switch (how % 8) {
  case 0: s = ccn_tensor_info_get(t, &info); break;
  case 1:
    s = ccn_tensor_piece(t, rank, &piece);
    if (s == CCN_OK && piece.bytes) memcpy(bytes, piece.data, piece.bytes < 64 ? piece.bytes : 64);
    break;
  case 2: s = ccn_tensor_read(t, bytes, how / 8); break;
  case 3: s = ccn_tensor_write(t, "0123456789abcdef0123456789abcdef", how / 8); break;
  case 4: s = ccn_tensor_write_rank(t, rank, "0123456789abcdef0123456789abcdef", how / 8); break;
  case 5:
    s = ccn_tensor_to_dlpack(t, rank, how & 8, 0, &m);
    require((s == CCN_OK) == (m != NULL));
    if (w->out_new[rank]) w->out_new[rank]->deleter(w->out_new[rank]);
    w->out_new[rank] = m;
    break;
  case 6:
    s = ccn_tensor_to_dlpack_old(t, rank, &old);
    require((s == CCN_OK) == (old != NULL));
    if (w->out_old[rank]) w->out_old[rank]->deleter(w->out_old[rank]);
    w->out_old[rank] = old;
    break;
  default: ccn_tensor_release(ccn_tensor_retain(t)); return;
  }
  sane(s);
}

static void use_value(world *w) {
  const uint8_t slot = SLOT(w), how = next(w);
  ccn_value *v = w->value[slot], *member = NULL;
  ccn_tensor *t = NULL;
  ccn_status s;
  int64_t i;
  double f;
  size_t n;
  switch (how % 6) {
  case 0: sane(ccn_value_write(v, how & 8 ? NULL : drop_text, w)); break;
  case 1: sane(ccn_value_i64(v, &i)), sane(ccn_value_f64(v, &f)); break;
  case 2: (void)ccn_value_string(v, &n), (void)ccn_value_kind(v); break;
  case 3: s = ccn_value_at(v, how / 6, &member), keep_value(w, sane(s), member); break;
  case 4: s = ccn_value_tensor(v, &t), keep_tensor(w, sane(s), t); break;
  default: TAKE(w->value[slot], ccn_value_release, NULL);
  }
}

static void make_value(world *w) {
  ccn_value *v = NULL;
  const uint8_t how = next(w);
  ccn_status s = how % 4 == 0   ? ccn_value_make_i64(w->c, how, &v)
                 : how % 4 == 1 ? ccn_value_make_f64(w->c, how * 0.5, &v)
                 : how % 4 == 2 ? ccn_value_make_string(w->c, "string", how % 7, &v)
                                : ccn_value_make_bool(w->c, how & 4, &v);
  keep_value(w, sane(s), v);
}

static void drop_functions(world *w, uint8_t module) {
  for (int i = 0; i < HANDLES; i++)
    if (w->of[i] == module) w->function[i] = NULL;
}

static void load_module(world *w) {
  const uint8_t slot = SLOT(w);
  const char *t = text(w);
  ccn_module *m = NULL;
  if (!t) return;
  ccn_status s = sane(ccn_module_load(w->c, "m.ccn", t, strlen(t), &m));
  require((s == CCN_OK) == (m != NULL));
  drop_functions(w, slot);
  TAKE(w->module[slot], ccn_module_release, m);
}

static void find_function(world *w) {
  const uint8_t slot = SLOT(w), module = SLOT(w);
  const ccn_function *f = NULL;
  ccn_param p = {.size = sizeof p};
  ccn_status s =
    sane(ccn_module_function(w->module[module], names[next(w) % (sizeof names / sizeof *names)], &f));
  require((s == CCN_OK) == (f != NULL));
  w->function[slot] = f;
  w->of[slot] = module;
  for (size_t i = 0; i <= ccn_function_params(f); i++) sane(ccn_function_param(f, i, &p));
  for (size_t i = 0; i <= ccn_function_results(f); i++) sane(ccn_function_result(f, i, &p));
  if (f) require(ccn_function_param_find(f, "no such") < 0 && ccn_function_name(f));
}

static void make_call(world *w) {
  ccn_call *call = NULL;
  ccn_status s = sane(ccn_call_create(w->function[SLOT(w)], &call));
  require((s == CCN_OK) == (call != NULL));
  const uint8_t slot = SLOT(w);
  TAKE(w->call[slot], ccn_call_release, call);
}

static void set_argument(world *w) {
  ccn_call *call = w->call[SLOT(w)];
  const uint8_t how = next(w), i = next(w) % 4;
  switch (how % 7) {
  case 0: sane(ccn_call_set_i64(call, i, how)); break;
  case 1: sane(ccn_call_set_f64(call, i, how * 0.25)); break;
  case 2: sane(ccn_call_set_bool(call, i, how & 8)); break;
  case 3: sane(ccn_call_set_string(call, i, "abc", how % 4)); break;
  case 4: sane(ccn_call_set_tensors(call, i, w->tensor, how % 3)); break;
  case 5: sane(ccn_call_set_value(call, i, w->value[SLOT(w)])); break;
  default: sane(ccn_call_set_tensor(call, i, w->tensor[SLOT(w)]));
  }
}

static void use_call(world *w) {
  const uint8_t slot = SLOT(w), how = next(w);
  ccn_call *call = w->call[slot];
  ccn_tensor *t = NULL;
  ccn_value *v = NULL;
  ccn_status s;
  switch (how % 4) {
  case 0: s = ccn_call_result(call, how / 4 % 3, &t), keep_tensor(w, sane(s), t); break;
  case 1: s = ccn_call_result_value(call, how / 4 % 3, &v), keep_value(w, sane(s), v); break;
  case 2: sane(ccn_call_reset(call)); break;
  default: TAKE(w->call[slot], ccn_call_release, NULL);
  }
}

static void run_call(world *w) {
  ccn_call *call = w->call[SLOT(w)];
  if (w->runs++ > MOST_TEXTS || sane(ccn_call_run(call)) == CCN_OK) return;
  require(ccn_call_results(call) == 0);
}

static void look(world *w) {
  ccn_diagnostic d = {.size = sizeof d};
  for (size_t i = 0; i <= ccn_diagnostic_count(w->c); i++)
    if (ccn_diagnostic_get(w->c, i, &d) == CCN_OK) require(d.code && d.message && d.hint);
  ccn_diagnostics_write(w->c, next(w) & 1, drop_text, w);
  ccn_diagnostics_write_json(w->c, drop_text, w);
  sane(ccn_report_write(w->c, drop_text, w));
}

static void run_text(world *w) {
  const uint8_t how = next(w);
  const char *t = text(w);
  if (!t) return;
  const size_t n = strlen(t);
  ccn_value *v = NULL;
  ccn_status s;
  switch (how % 7) {
  case 0: sane(ccn_run(w->c, "main.ccn", t, n)); break;
  case 1: sane(ccn_check(w->c, "main.ccn", t, n)); break;
  case 2: sane(ccn_dump(w->c, "main.ccn", t, n, how & 8 ? "graph" : "scheduled", drop_text, w)); break;
  case 3: sane(ccn_session_type(w->c, "t", t, n, drop_text, w)); break;
  case 4: sane(ccn_session_write(w->c, drop_text, w)); break;
  default: s = ccn_eval(w->c, "e", t, n, &v), keep_value(w, sane(s), v);
  }
}

static void release_some(world *w) {
  const uint8_t slot = SLOT(w);
  switch (next(w) % 4) {
  case 0: TAKE(w->tensor[slot], ccn_tensor_release, NULL); break;
  case 1: TAKE(w->value[slot], ccn_value_release, NULL); break;
  case 2:
    drop_functions(w, slot);
    TAKE(w->module[slot], ccn_module_release, NULL);
    break;
  default: TAKE(w->call[slot], ccn_call_release, NULL);
  }
}

static void null_handles(world *w) {
  ccn_value *v = NULL;
  ccn_tensor *t = NULL;
  require(ccn_eval(NULL, "e", "1", 1, &v) == CCN_INVALID_ARGUMENT &&
          ccn_run(w->c, NULL, "1", 1) == CCN_INVALID_ARGUMENT &&
          ccn_eval(w->c, "e", NULL, 5, &v) == CCN_INVALID_ARGUMENT &&
          ccn_tensor_create(w->c, NULL, &t) == CCN_INVALID_ARGUMENT &&
          ccn_call_run(NULL) == CCN_INVALID_ARGUMENT &&
          ccn_module_function(NULL, "f", NULL) == CCN_INVALID_ARGUMENT);
}

static void step(world *w) {
  const uint8_t what = next(w);
  switch (what % 20) {
  case 0:
  case 1: run_text(w); break;
  case 2:
  case 3: load_module(w); break;
  case 4:
  case 5: find_function(w); break;
  case 6: make_call(w); break;
  case 7:
  case 8: set_argument(w); break;
  case 9:
  case 10: run_call(w); break;
  case 11: use_call(w); break;
  case 12: make_tensor(w); break;
  case 13: borrow(w); break;
  case 14: use_tensor(w); break;
  case 15: use_value(w); break;
  case 16: make_value(w); break;
  case 17: look(w); break;
  case 18: release_some(w); break;
  default:
    if (what < 100) w->requests = 0, w->fail_at = 1 + next(w);
    else if (what < 140) ccn_interrupt(w->c);
    else if (what < 180) sane(ccn_session_reset(w->c));
    else null_handles(w);
  }
}

/* ---- one input ----------------------------------------------------------------------------------------- */

/* What may be done when the context is freed: reading and releasing. */
static void after_the_end(world *w) {
  for (int i = 0; i < 8; i++) next(w) & 1 ? use_tensor(w) : use_value(w);
}

static void release_all(world *w) {
  for (int i = 0; i < HANDLES; i++) {
    ccn_tensor_release(w->tensor[i]);
    ccn_value_release(w->value[i]);
    ccn_module_release(w->module[i]);
    if (w->out_new[i]) w->out_new[i]->deleter(w->out_new[i]);
    ccn_call_release(w->call[i]);
    if (w->out_old[i]) w->out_old[i]->deleter(w->out_old[i]);
  }
}

static bool start(world *w) {
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  const uint8_t how = next(w);
  o.alloc = host_alloc;
  o.alloc_user = w;
  o.ranks = how % 3;
  o.print = how & 4 ? drop_text : NULL;
  o.print_user = o.file_user = w;
  if (how & 8) o.read = file_read;
  if (how & 8) o.write = file_write;
  o.memory_limit = how & 16 ? 300000 : 1 << 24;
  o.time_limit_ms = 1000;
  w->fail_at = how & 32 ? next(w) : 0;
  const ccn_status s = ccn_context_create(&o, &w->c);
  require((s == CCN_OK) == (w->c != NULL));
  if (s != CCN_OK) return false;
  w->open = true;
  const ccn_op twin = {.size = sizeof twin,
                       .name = "twin",
                       .dims = "e* -> e*",
                       .eval = host_op,
                       .type = how & 64 ? host_type : NULL,
                       .user = w};
  sane(ccn_register_function(w->c, "host", host_fn, w, how & 1));
  sane(ccn_register_op(w->c, &twin));
  return true;
}

static void play(world *w) {
  const uint8_t rounding = next(w);
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  fesetround(modes[rounding & 3]);
  if (start(w)) {
    for (int i = 0; i < MOST_STEPS && w->at < w->end; i++) step(w);
    w->fail_at = 0;
    require(fegetround() == modes[rounding & 3]);
    if (rounding & 4)
      release_all(w), memset(w->tensor, 0, offsetof(world, lent) - offsetof(world, tensor)),
        memset(w->module, 0, sizeof w->module), memset(w->call, 0, sizeof w->call);
    w->open = false;
    ccn_context_free(w->c);
    after_the_end(w);
    release_all(w);
  }
  fesetround(FE_TONEAREST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  world *w = calloc(1, sizeof *w);
  if (!w) return 0;
  w->at = data;
  w->end = data + size;
  play(w);
  require(w->blocks == 0);
  for (uint32_t i = 0; i < w->nlent; i++) require(w->lent[i].given_back == w->lent[i].taken);
  free(w);
  return 0;
}
