/* test_oom.c: memory that ends at the N-th request, for every N: through parse, check, a run, dumps and
 * diagnostics.
 *
 * Each time the call says so, the context can be used again, and after ccn_context_free every block is back.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn_dlpack.h"

static int tests, failures;

static void ok(int good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

typedef struct host {
  size_t blocks, bytes, requests;
  size_t fail_at; /* the request with this number fails, from 1; 0: none */
  int once;       /* 1: only that one; 0: all from there on */
} host;

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  host *h = user;
  if (new_size == 0) {
    if (p) h->blocks--, h->bytes -= old_size;
    free(p);
    return NULL;
  }
  h->requests++;
  if (h->fail_at && (h->once ? h->requests == h->fail_at : h->requests >= h->fail_at)) return NULL;
  p = align <= 16 ? malloc(new_size) : aligned_alloc(align, (new_size + align - 1) / align * align);
  if (p) h->blocks++, h->bytes += new_size;
  return p;
}

static size_t written;
static void count(const char *text, size_t size, void *user) {
  (void)text;
  (void)user;
  written += size;
}

/* A file of three f32 for load, a module, and what was saved with names. */
static unsigned char saved[4096];
static size_t saved_size;
static unsigned char npy[128 + 12];
static int file_read(const char *path, void **out_data, size_t *out_size, void *user) {
  static char module[] = "fn double(x) { return x * 2 }\nlet list = [1, 2]\n";
  (void)user;
  if (strstr(path, ".safetensors")) {
    *out_data = saved;
    *out_size = saved_size;
    return 0;
  }
  if (strstr(path, ".npy")) {
    *out_data = npy;
    *out_size = sizeof npy;
    return 0;
  }
  *out_data = module;
  *out_size = sizeof module - 1;
  return 0;
}

static int file_write(const char *path, const void *data, size_t size, void *user) {
  (void)user;
  if (!strstr(path, ".safetensors")) return 0;
  if (size > sizeof saved) return 27;
  memcpy(saved, data, size);
  saved_size = size;
  return 0;
}

static void make_npy(void) {
  static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  memset(npy, ' ', 128);
  memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(npy + 10, dict, sizeof dict - 1);
  npy[127] = '\n';
}

typedef ccn_status (*work_fn)(ccn_context *c, const char *text);

static ccn_status do_run(ccn_context *c, const char *text) {
  return ccn_run(c, "dir/main.ccn", text, strlen(text));
}
static ccn_status do_check(ccn_context *c, const char *text) {
  return ccn_check(c, "main.ccn", text, strlen(text));
}
static ccn_status do_ast(ccn_context *c, const char *text) {
  return ccn_dump(c, "main.ccn", text, strlen(text), "ast", count, NULL);
}
static ccn_status do_graph(ccn_context *c, const char *text) {
  return ccn_dump(c, "main.ccn", text, strlen(text), "graph", count, NULL);
}

/* Everything that a host holds and asks for, step by step. */
typedef struct all {
  ccn_module *m;
  const ccn_function *f;
  ccn_call *call;
  ccn_tensor *p, *g, *out;
  ccn_value *v, *member;
  DLManagedTensorVersioned *lent;
  DLManagedTensor *old;
  float data[3];
  int64_t n;
  int given_back;
  DLManagedTensorVersioned mine;
} all;

static void give_back(DLManagedTensorVersioned *m) { ((all *)m->manager_ctx)->given_back++; }

static ccn_status twice(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  double x = 0;
  (void)n, (void)user;
  ccn_status s = ccn_value_f64(args[0], &x);
  return s == CCN_OK ? ccn_value_make_f64(c, 2 * x, out) : s;
}

static ccn_status same(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                       const ccn_op_array *out, void *user) {
  (void)c, (void)rank, (void)n, (void)user;
  memcpy(out->data, in->data, out->bytes);
  return CCN_OK;
}

static ccn_status import(ccn_context *c, all *a) {
  DLManagedTensorVersioned *one = &a->mine;
  a->n = 3;
  a->mine = (DLManagedTensorVersioned){.version = {1, 0}, .manager_ctx = a, .deleter = give_back};
  a->mine.dl_tensor =
    (DLTensor){.data = a->data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &a->n};
  return ccn_tensor_from_dlpack(c, NULL, &one, 1, &a->p);
}

#define STEP(x) \
  if (s == CCN_OK) s = (x)

static ccn_status steps(ccn_context *c, const char *text, all *a) {
  const ccn_op op = {.size = sizeof op, .name = "same", .dims = "e* -> e*", .eval = same};
  const ccn_tensor_desc local = {
    .size = sizeof local, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &a->n, .placement = "local"};
  static const char entry[] = "let l = [1, \"two\", same(ones(f32[2])), twice(4)]\nl";
  float x[3] = {1, 2, 3};
  ccn_status s = ccn_register_function(c, "twice", twice, NULL, 1);
  STEP(ccn_register_op(c, &op));
  STEP(ccn_module_load(c, "m", text, strlen(text), &a->m));
  STEP(ccn_module_function(a->m, "step@zero(gsum)", &a->f));
  STEP(ccn_call_create(a->f, &a->call));
  STEP(import(c, a));
  STEP(ccn_tensor_copy_in(c, &local, x, sizeof x, &a->g));
  STEP(ccn_call_set_tensor(a->call, 0, a->g));
  STEP(ccn_call_set_tensor(a->call, 1, a->p));
  STEP(ccn_call_set_f64(a->call, 2, 0.5));
  STEP(ccn_call_run(a->call));
  STEP(ccn_call_run(a->call));
  STEP(ccn_call_result(a->call, 0, &a->out));
  STEP(ccn_tensor_read(a->out, x, sizeof x));
  STEP(ccn_tensor_write(a->g, x, sizeof x));
  STEP(ccn_tensor_write_rank(a->g, 1, x, sizeof x));
  STEP(ccn_tensor_to_dlpack(a->out, 0, 1, 0, &a->lent));
  STEP(ccn_tensor_to_dlpack_old(a->out, 0, &a->old));
  STEP(ccn_eval(c, "e", entry, sizeof entry - 1, &a->v));
  STEP(ccn_value_at(a->v, 1, &a->member));
  STEP(ccn_value_write(a->v, count, NULL));
  STEP(ccn_session_type(c, "t", "l[2]", 4, count, NULL));
  STEP(ccn_session_write(c, count, NULL));
  STEP(ccn_report_write(c, count, NULL));
  return s;
}

static ccn_status do_all(ccn_context *c, const char *text) {
  all a = {0};
  ccn_status s = steps(c, text, &a);
  const bool lent = a.p != NULL;
  if (a.lent) a.lent->deleter(a.lent);
  if (a.old) a.old->deleter(a.old);
  ccn_value_release(a.v), ccn_value_release(a.member);
  ccn_tensor_release(a.p), ccn_tensor_release(a.g), ccn_tensor_release(a.out);
  ccn_call_release(a.call);
  ccn_module_release(a.m);
  if (a.given_back != lent) ok(0, "given back once");
  return s;
}

static ccn_status make(host *h, ccn_context **c) {
  static const char *const words[] = {"one", "two"};
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.alloc = host_alloc;
  o.alloc_user = h;
  o.ranks = 2;
  o.print = count;
  o.read = file_read;
  o.write = file_write;
  o.args = words;
  o.nargs = 2;
  return ccn_context_create(&o, c);
}

/* Looks at all diagnostics; with memory short they may be fewer, never broken. */
static void look_at_diagnostics(ccn_context *c) {
  for (size_t i = 0; i < ccn_diagnostic_count(c); i++) {
    ccn_diagnostic d = {0};
    d.size = sizeof d;
    if (ccn_diagnostic_get(c, i, &d) == CCN_OK) written += strlen(d.message) + strlen(d.code) + d.nnotes;
  }
  ccn_diagnostics_write(c, 1, count, NULL);
  ccn_diagnostics_write_json(c, count, NULL);
}

/* All N until the work comes to `wanted`, as it does with memory enough. */
static void every_request(const char *name, work_fn work, const char *text, ccn_status wanted, int once) {
  char message[200];
  size_t n = 1;
  int good = 1;
  for (; good; n++) {
    host h = {.fail_at = n, .once = once};
    ccn_context *c = NULL;
    ccn_status status = make(&h, &c);
    if (status == CCN_OK) {
      status = work(c, text);
      size_t reached = h.requests;
      look_at_diagnostics(c);
      if (status == CCN_OUT_OF_MEMORY) { /* usable again */
        h.fail_at = 0;
        good = work(c, text) == wanted;
      } else if (reached >= n && status != wanted) {
        good = 0;
      }
      if (status != CCN_OUT_OF_MEMORY && reached < n) {
        good = good && status == wanted;
        ccn_context_free(c);
        good = good && h.blocks == 0 && h.bytes == 0;
        break;
      }
    } else if (status != CCN_OUT_OF_MEMORY || c) {
      good = 0;
    }
    ccn_context_free(c);
    good = good && h.blocks == 0 && h.bytes == 0;
  }
  snprintf(message, sizeof message, "%s, %s: memory ends at each of %zu requests", name,
           once ? "once" : "for good", n - 1);
  ok(good, message);
}

static const char script[] = "mesh (dp)\n"
                             "program step(g: f32[N] local, p: f32[N], lr: f32) {\n"
                             "  gsum = allreduce(sum, g)\n"
                             "  avg = gsum / size(dp)\n"
                             "  return update(p, p - lr * avg)\n"
                             "}\n"
                             "schedule zero(x) { (rs, ag) = split(x) }\n"
                             "import \"helper\" as helper\n"
                             "let fast = step with zero(step.gsum)\n"
                             "let p = zeros(f32[5])\n"
                             "let g = per_rank(fn(r) { return ones(f32[5]) * r })\n"
                             "for t in 1..=3 { fast(g, p, 0.5) }\n"
                             "let x = load(\"x.npy\", as: f32[N] sliced(0))\n"
                             "save(\"y.npy\", x)\n"
                             "let l = [1, 2.5, \"three\", (true, false)]\n"
                             "for i in 0..20 { l.append(\"{i}\" + str(helper.double(i))) }\n"
                             "print(\"{p} {l} {norm(p):.3f} {x.per_rank()}\", args)\n"
                             "print(tensor([[1, 2], [3, 4]], f32), copy(p)[1:3])\n";

static const char module_text[] = "mesh (dp)\n"
                                  "program step(g: f32[N] local, p: f32[N], lr: f32) {\n"
                                  "  gsum = allreduce(sum, g)\n"
                                  "  avg = same(gsum / size(dp))\n"
                                  "  return update(p, p - lr * avg)\n"
                                  "}\n"
                                  "schedule zero(x) { (rs, ag) = split(x) }\n";

static const char named[] = "save(\"m.safetensors\", [(\"w\", ones(f32[2])), (\"b\", bf16(ones(f32[2])))])\n"
                            "for (name, t) in load(\"m.safetensors\") { print(name, t) }\n"
                            "print(load(\"m.safetensors\", name: \"b\"))\n";

static const char wrong[] = "mesh (dp)\n"
                            "program f(x: f32[N] local) {\n"
                            "  return allreduce(max, matmul(x, y)) + zz\n"
                            "}\n"
                            "let a = unknown_name + b\n"
                            "fn g(n) { return missing(n) }\n"
                            "print(allreduce(sum, a))\n";

static const char failing[] = "fn f(n) { if n == 0 { return [1][3] } return f(n - 1) }\nprint(f(12))\n";

static const char broken[] = "let a = (1 +\nlet b = \"unclosed\nprogram f(x: f32[N] { return x }\n";

int main(void) {
  make_npy();
  for (int once = 0; once < 2; once++) {
    every_request("run", do_run, script, CCN_OK, once);
    every_request("check", do_check, script, CCN_OK, once);
    every_request("check of a wrong script", do_check, wrong, CCN_ERROR, once);
    every_request("a run that fails", do_run, failing, CCN_ERROR, once);
    every_request("syntax errors", do_check, broken, CCN_ERROR, once);
    every_request("dump of the syntax", do_ast, script, CCN_OK, once);
    every_request("dump of graphs", do_graph, script, CCN_OK, once);
    every_request("tensors with names", do_run, named, CCN_OK, once);
    every_request("modules, calls, tensors, values", do_all, module_text, CCN_OK, once);
  }
  ok(written > 0, "something was written");
  printf("1..%d\n", tests);
  return failures != 0;
}
