/* test_passes.c: what a host learns of schedules: the states of a graph, the bytes that were sent and
 * kept; and tensors of the host that a schedule stores in slices.
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

#define PROGRAM \
  "mesh (dp)\n" \
  "program momentum(g: f32[N] local, p: f32[N], m: f32[N]) {\n" \
  "  gsum = allreduce(sum, g)\n" \
  "  m1 = update(m, m + gsum)\n" \
  "  return update(p, p - 0.5 * m1)\n" \
  "}\n" \
  "schedule zero(x) {\n" \
  "  (rs, ag) = split(x)\n" \
  "  (c, gs)  = reorder(after(ag), ag)\n" \
  "  shard(updated(c))\n" \
  "  fuse(rs, c, gs)\n" \
  "}\n"
static const char program[] = PROGRAM "let fast = momentum with zero\n";
static const char refused[] = PROGRAM "schedule bad(x) { (rs, ag) = split(x)\n  split(rs) }\n"
                                      "let fast = momentum with bad\n";

/* ---- states ----------------------------------------------------------------------------------------- */

typedef struct seen {
  char names[200];
  uint32_t programs, steps, last_line;
  bool good;
} seen;

static void look(const ccn_pass *p, void *user) {
  seen *s = user;
  if (!p->step) s->programs++;
  s->good = s->good && p->size >= sizeof *p && !strcmp(p->program, "momentum") &&
            p->number == s->programs - 1 && p->step == (p->step ? s->steps + 1 : 0) && p->exact == 1 &&
            p->file && !strcmp(p->file, "m") && p->line > 0 && p->seconds >= 0 && p->nodes > 0 &&
            p->graph_size > 20 && !memcmp(p->graph, "graph momentum {", 16);
  s->steps = p->step;
  s->last_line = p->line;
  strncat(s->names, p->name, sizeof s->names - strlen(s->names) - 2);
  strcat(s->names, " ");
}

static ccn_context *make(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = ranks;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

static void test_states(void) {
  ccn_context *c = make(2);
  seen s = {.good = true};
  ok(ccn_passes(c, "m", program, sizeof program - 1, look, &s) == CCN_OK && s.good && s.programs == 1 &&
       !strcmp(s.names, " split reorder shard fuse ") && s.last_line == 11,
     "a state behind each statement");
  s = (seen){.good = true};
  ok(ccn_passes(c, "m", refused, sizeof refused - 1, look, &s) == CCN_ERROR && s.good && s.programs == 1 &&
       !strcmp(s.names, " split ") && ccn_diagnostic_count(c) == 1,
     "and before a refused one");
  s = (seen){.good = true};
  ok(ccn_passes(c, "m", "let x = 1\n", 10, look, &s) == CCN_OK && s.programs == 0, "no schedule, no state");
  ok(ccn_passes(c, "m", program, sizeof program - 1, NULL, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_passes(NULL, "m", program, sizeof program - 1, look, &s) == CCN_INVALID_ARGUMENT &&
       ccn_passes(c, NULL, program, sizeof program - 1, look, &s) == CCN_INVALID_ARGUMENT &&
       ccn_passes(c, "m", NULL, 1, look, &s) == CCN_INVALID_ARGUMENT,
     "wrong arguments");
  const char *text = NULL;
  size_t n = 0;
  while (ccn_pass_list(n, &text)) n++;
  ok(n >= 10 && !strcmp(ccn_pass_list(0, NULL), "split") && text && *text && !ccn_pass_list(n, &text),
     "the list of statements");
  ccn_context_free(c);
}

/* ---- tensors in slices ------------------------------------------------------------------------------ */

static bool eval(ccn_context *c, const char *text) {
  return ccn_eval(c, "m", text, strlen(text), NULL) == CCN_OK;
}

static ccn_tensor *tensor(ccn_context *c, const char *name) {
  ccn_value *v = NULL;
  ccn_tensor *t = NULL;
  if (ccn_eval(c, "m", name, strlen(name), &v) != CCN_OK || ccn_value_tensor(v, &t) != CCN_OK) exit(1);
  ccn_value_release(v);
  return t;
}

static bool all_are(const float *x, int n, float wanted) {
  bool good = true;
  for (int i = 0; i < n; i++) good = good && x[i] == wanted;
  return good;
}

static const char step[] = "fast(full(f32[7] local, 1), p, m)";

static void test_tensors(void) {
  ccn_context *c = make(3);
  ccn_piece piece = {.size = sizeof piece};
  DLManagedTensor *d = NULL;
  float x[7] = {0}, four[7] = {4, 4, 4, 4, 4, 4, 4};
  if (!eval(c, program) || !eval(c, "let p = ones(f32[7])\nlet m = zeros(f32[7])")) exit(1);
  ccn_tensor *m = tensor(c, "m");
  ok(eval(c, step) && ccn_tensor_read(m, x, sizeof x) == CCN_OK && all_are(x, 7, 3), "read whole");
  ok(ccn_tensor_piece(m, 2, &piece) == CCN_OK && piece.extent[0] == 7 && piece.start[0] == 0 &&
       all_are(piece.data, 7, 3),
     "a piece is as the type says");
  ok(eval(c, step) && ccn_tensor_to_dlpack_old(m, 1, &d) == CCN_OK && d->dl_tensor.shape[0] == 7 &&
       all_are(d->dl_tensor.data, 7, 6),
     "exported");
  if (d) d->deleter(d);
  ok(eval(c, step) && ccn_tensor_write_rank(m, 0, four, sizeof four) == CCN_OK && eval(c, step) &&
       ccn_tensor_read(m, x, sizeof x) == CCN_OK && all_are(x, 7, 7),
     "written by the host");
  ok(eval(c, step) && ccn_tensor_write(m, four, sizeof four) == CCN_OK && eval(c, step) &&
       eval(c, "assert m[0] == 7 and sum(m) == 49"),
     "written whole");
  ccn_tensor_release(m);
  ok(eval(c, step) && eval(c, "assert m[6] == 10"), "and without the host");
  ccn_context_free(c);
}

static void test_lent(void) {
  ccn_context *c = make(2);
  float data[7] = {0};
  void *pieces[1] = {data};
  int64_t shape[1] = {7};
  ccn_tensor_desc desc = {.size = sizeof desc, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = shape};
  ccn_tensor *m = NULL;
  ccn_module *module = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  ccn_tensor *p = NULL, *g = NULL;
  static const char *const ones = "local";
  float one[7] = {1, 1, 1, 1, 1, 1, 1};
  ok(ccn_module_load(c, "m", program, sizeof program - 1, &module) == CCN_OK &&
       ccn_module_function(module, "fast", &f) == CCN_OK && ccn_call_create(f, &call) == CCN_OK &&
       ccn_tensor_borrow(c, &desc, pieces, 1, 0, NULL, NULL, &m) == CCN_OK &&
       ccn_tensor_copy_in(c, &desc, one, sizeof one, &p) == CCN_OK &&
       (desc.placement = ones, ccn_tensor_copy_in(c, &desc, one, sizeof one, &g) == CCN_OK),
     "a call with lent memory");
  bool good = ccn_call_set_tensor(call, 0, g) == CCN_OK && ccn_call_set_tensor(call, 1, p) == CCN_OK &&
              ccn_call_set_tensor(call, 2, m) == CCN_OK;
  ok(good && ccn_call_run(call) == CCN_OK && ccn_call_run(call) == CCN_OK && all_are(data, 7, 4),
     "what the host lent stays where it is");
  ccn_tensor_release(g);
  ccn_tensor_release(p);
  ccn_tensor_release(m);
  ccn_call_release(call);
  ccn_module_release(module);
  ccn_context_free(c);
}

/* Generic schedules of a module, by the names of functions. */
static void test_named(void) {
  static const char text[] =
    "mesh (dp)\nimport \"std/optim\" as optim\nimport \"std/schedules\" as schedules\n";
  static const char *const names[] = {"optim.adam@schedules.zero", "optim.adam@schedules.zero(gsum)",
                                      "optim.lamb@schedules.rs_c_ag_along(gsum, 0)"};
  ccn_context *c = make(2);
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  bool good = ccn_module_load(c, "m", text, sizeof text - 1, &m) == CCN_OK;
  for (int i = 0; i < 3; i++) good = good && ccn_module_function(m, names[i], &f) == CCN_OK;
  ok(good, "schedules of a module by name");
  ok(ccn_module_function(m, "optim.adam@schedules.zero(m1)", &f) == CCN_ERROR && ccn_diagnostic_count(c) == 1,
     "refused for another handle");
  ccn_module_release(m);
  ccn_context_free(c);
}

/* ---- memory that ends ------------------------------------------------------------------------------- */

typedef struct host {
  size_t blocks, requests, fail_at;
} host;

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  host *h = user;
  (void)old_size;
  if (!new_size) {
    if (p) h->blocks--;
    free(p);
    return NULL;
  }
  if (++h->requests == h->fail_at) return NULL;
  p = align <= 16 ? malloc(new_size) : aligned_alloc(align, (new_size + align - 1) / align * align);
  if (p) h->blocks++;
  return p;
}

static void drop(const char *text, size_t size, void *user) {
  (void)text;
  *(size_t *)user += size;
}

static const char training[] =
  PROGRAM "program many(g: [f32[*]] local, p: [f32[*]], m: [f32[*]]) {\n"
          "  gsum = allreduce(sum, g)\n"
          "  m1 = update(m, m + gsum)\n"
          "  return update(p, p - 0.5 * m1)\n"
          "}\n"
          "let fast = momentum with zero\n"
          "let fast_many = many with zero\n"
          "let (p, m) = ([ones(f32[4]), ones(f32[3])], [zeros(f32[4]), zeros(f32[3])])\n"
          "for t in 0..2 { fast_many([ones(f32[4] local), ones(f32[3] local)], p, m) }\n"
          "fast(ones(f32[4] local), p[0], m[0])\n"
          "fast_many([ones(f32[4] local), ones(f32[3] local)], p, m)\n"
          "assert m[0][3] == 8 and m[1][2] == 6\n";

static void test_memory(void) {
  bool good = true, done = false;
  size_t n = 1;
  for (; good && !done; n++) {
    host h = {.fail_at = n};
    ccn_options o;
    ccn_context *c = NULL;
    size_t written = 0;
    ccn_options_init(&o, sizeof o);
    o.alloc = host_alloc;
    o.alloc_user = &h;
    o.ranks = 2;
    if (ccn_context_create(&o, &c) != CCN_OK) continue;
    seen s = {.good = true};
    ccn_status status = ccn_passes(c, "m", program, sizeof program - 1, look, &s);
    if (status == CCN_OK) status = ccn_run(c, "m", training, sizeof training - 1);
    if (status == CCN_OK) status = ccn_report_write(c, drop, &written);
    done = h.requests < n;
    good = status == CCN_OUT_OF_MEMORY || (status == CCN_OK && written > 0);
    if (status == CCN_OUT_OF_MEMORY) {
      h.fail_at = 0;
      good = ccn_run(c, "m", training, sizeof training - 1) == CCN_OK;
    }
    ccn_context_free(c);
    good = good && h.blocks == 0;
  }
  printf("# %zu requests\n", n);
  ok(good && n > 100, "memory that ends at each request");
}

int main(void) {
  test_states();
  test_tensors();
  test_lent();
  test_named();
  test_memory();
  printf("1..%d\n", tests);
  return failures != 0;
}
