/* test_ops.c: ops of the host: type rule, placements, pieces, failures, pure and impure ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

typedef struct seen {
  int calls;
  int64_t start[64], extent[64];
  const void *data; /* of the first operand, at the last call */
} seen;

static size_t elements(const ccn_op_array *a) {
  size_t n = 1;
  for (int32_t d = 0; d < a->ndim; d++) n *= (size_t)a->extent[d];
  return n;
}

static void note(seen *s, const ccn_op_array *a) {
  if (s->calls < 64 && a->ndim) s->start[s->calls] = a->start[0], s->extent[s->calls] = a->extent[0];
  s->calls++;
  s->data = a->data;
}

/* x + 2 y */
static ccn_status axpy(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                       const ccn_op_array *out, void *user) {
  const float *x = in[0].data, *y = in[1].data;
  float *z = out->data;
  (void)c, (void)rank;
  note(user, &in[1]);
  const size_t nx = elements(&in[0]), ny = elements(&in[1]);
  if (n != 2) return CCN_INTERNAL;
  for (size_t i = 0; i < elements(out); i++) z[i] = x[i % nx] + 2 * y[i % ny]; /* a scalar broadcasts */
  return CCN_OK;
}

/* Sums over the last dim, in this piece. */
static ccn_status rows(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                       const ccn_op_array *out, void *user) {
  const float *x = in[0].data;
  float *z = out->data;
  const int64_t m = in[0].extent[in[0].ndim - 1];
  (void)c, (void)rank, (void)n;
  note(user, &in[0]);
  for (size_t i = 0; i < elements(out); i++) {
    z[i] = 0;
    for (int64_t k = 0; k < m; k++) z[i] += x[(int64_t)i * m + k];
  }
  return CCN_OK;
}

/* The k largest of each row, k = 2, as i32: dtype and last extent by the type rule. */
static ccn_status top_type(ccn_context *c, const ccn_op_type *in, size_t n, ccn_op_type *out, void *user) {
  (void)n, (void)user;
  if (in[0].dtype != CCN_DTYPE_F32) return ccn_host_error(c, "only f32 is sorted"), CCN_ERROR;
  out->dtype = CCN_DTYPE_I32;
  for (int32_t d = 0; d + 1 < in[0].ndim; d++) out->extent[d] = 0;
  out->extent[in[0].ndim - 1] = 2;
  return CCN_OK;
}

static ccn_status top(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                      const ccn_op_array *out, void *user) {
  int32_t *z = out->data;
  (void)c, (void)rank, (void)n, (void)in;
  note(user, &in[0]);
  for (size_t i = 0; i < elements(out); i++) z[i] = (int32_t)(i % 2);
  return CCN_OK;
}

static ccn_status fails(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                        const ccn_op_array *out, void *user) {
  (void)rank, (void)in, (void)n, (void)user;
  memset(out->data, 0, out->bytes);
  ccn_host_error(c, "the disk is full");
  return *(float *)in[0].data > 0 ? CCN_ERROR : CCN_INTERRUPTED;
}

static ccn_status mark(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                       const ccn_op_array *out, void *user) {
  (void)c, (void)rank, (void)n;
  note(user, &in[0]);
  memcpy(out->data, in[0].data, out->bytes);
  return CCN_OK;
}

typedef struct text {
  char at[8192];
  size_t n;
} text;

static void add_text(const char *s, size_t size, void *user) {
  text *t = user;
  if (t->n + size >= sizeof t->at) return;
  memcpy(t->at + t->n, s, size);
  t->n += size;
  t->at[t->n] = 0;
}

static bool says(ccn_context *c, const char *code, const char *part) {
  ccn_diagnostic d = {.size = sizeof d};
  if (ccn_diagnostic_get(c, 0, &d) != CCN_OK) return fprintf(stderr, "no diagnostic\n"), false;
  if (!strcmp(d.code, code) && strstr(d.message, part)) return true;
  fprintf(stderr, "%s: %s\n", d.code, d.message);
  return false;
}

static seen on_axpy, on_rows, on_top, on_pure, on_impure;
static text printed;

static const struct {
  const char *name, *dims;
  ccn_op_fn eval;
  ccn_op_type_fn type;
  seen *user;
  int32_t pure;
} ops[] = {
  {"axpy", "e*, e* -> e*", axpy, NULL, &on_axpy, 1},     {"rows", "r.. c+ -> r..", rows, NULL, &on_rows, 1},
  {"top", "r.. c! -> r.. k", top, top_type, &on_top, 1}, {"fails", "e* -> e*", fails, NULL, &on_top, 1},
  {"pure", "e* -> e*", mark, NULL, &on_pure, 1},         {"impure", "e* -> e*", mark, NULL, &on_impure, 0},
};

static ccn_context *make(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = ranks;
  o.print = add_text;
  o.print_user = &printed;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    const ccn_op op = {.size = sizeof op,
                       .name = ops[i].name,
                       .dims = ops[i].dims,
                       .eval = ops[i].eval,
                       .type = ops[i].type,
                       .user = ops[i].user,
                       .pure = ops[i].pure};
    if (ccn_register_op(c, &op) != CCN_OK) exit(1);
  }
  return c;
}

static ccn_status run(ccn_context *c, const char *script) {
  printed.n = 0;
  printed.at[0] = 0;
  return ccn_run(c, "m", script, strlen(script));
}

static bool prints(ccn_context *c, const char *script, const char *want) {
  if (run(c, script) == CCN_OK && !strcmp(printed.at, want)) return true;
  fprintf(stderr, "printed: %s", printed.at);
  ccn_diagnostics_write(c, 0, add_text, &printed);
  fprintf(stderr, "%s\n", printed.at);
  return false;
}

static void test_registration(ccn_context *c) {
  ccn_op op = {.size = sizeof op, .name = "good", .dims = "e* -> e*", .eval = mark};
  static const char *const bad_dims[] = {"",
                                         "e*",
                                         "-> e*",
                                         "e* -> f*",
                                         "e^ -> e",
                                         "A -> A",
                                         "e* -> e* x+",
                                         "e*, e.. -> e*",
                                         "a* b* -> a*",
                                         "e* -> e*,",
                                         "e -> e ->",
                                         "a,b,c,d,e,f,g,h,i -> a"};
  static const char *const bad_names[] = {"", "1x", "a b", "sum", "print", "f32", "zeros"};
  bool good = true;
  for (size_t i = 0; i < sizeof bad_dims / sizeof *bad_dims; i++) {
    op.dims = bad_dims[i];
    if (ccn_register_op(c, &op) != CCN_INVALID_ARGUMENT)
      good = false, fprintf(stderr, "took %s\n", bad_dims[i]);
  }
  ok(good, "signatures that cannot be read");
  op.dims = "e* -> e*";
  for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
    op.name = bad_names[i];
    if (ccn_register_op(c, &op) != CCN_INVALID_ARGUMENT)
      good = false, fprintf(stderr, "took %s\n", bad_names[i]);
  }
  ok(good, "names that cannot be");
  op.name = "good";
  op.eval = NULL;
  good = ccn_register_op(c, &op) == CCN_INVALID_ARGUMENT && ccn_register_op(c, NULL) == CCN_INVALID_ARGUMENT;
  op.eval = mark;
  op.size = 3;
  ok(good && ccn_register_op(c, &op) == CCN_INVALID_ARGUMENT &&
       ccn_register_op(NULL, &op) == CCN_INVALID_ARGUMENT,
     "what is missing");
}

static void test_values(void) {
  ccn_context *c = make(0);
  test_registration(c);
  ok(prints(c, "let x = iota(f32[3])\nprint(axpy(x, x + 1), rows(ones(f32[2, 3])))\n",
            "f32[3] [2.0, 5.0, 8.0] f32[2] [3.0, 3.0]\n"),
     "called by a script");
  ok(prints(c,
            "program f(x: f32[N]) {\n  y = axpy(x, 0.5)\n  return rows(y) + axpy(1, sum(x))\n}\n"
            "print(f(ones(f32[4])))\n",
            "17.0\n"),
     "called by a program");
  ok(prints(c, "program f(x: f32[N, M]) { return top(x) }\nprint(f(ones(f32[3, 5])))\n",
            "i32[3, 2] [[0, 1], [0, 1], [0, 1]]\n"),
     "dtype and extents by the host's rule");
  ok(run(c, "top(ones(f16[3, 4]))\n") == CCN_ERROR && says(c, "CCN0609", "only f32 is sorted"),
     "refused by it");
  ok(ccn_check(c, "m", "program f(x: f16[N, M]) { return top(x) }\n", 42) == CCN_ERROR &&
       says(c, "CCN0609", "`top`"),
     "when it is checked");
  ok(run(c, "axpy(ones(f32[3]), ones(f16[3]))\n") == CCN_ERROR && says(c, "CCN0101", "f16"),
     "one dtype without a rule");
  ok(run(c, "axpy(ones(f32[3]), ones(f32[4]))\n") == CCN_ERROR && says(c, "CCN0305", ""),
     "shapes that cannot meet");
  ok(run(c, "axpy(ones(f32[3]))\n") == CCN_ERROR && says(c, "CCN0800", "takes 2"), "too few");
  ok(run(c, "axpy(ones(f32[3]), y: ones(f32[3]))\n") == CCN_ERROR && says(c, "CCN0806", "named"), "no names");
  ok(run(c, "rows(3)\n") == CCN_ERROR && says(c, "CCN0103", ""), "literals alone have no dtype");
  ok(run(c, "fails(ones(f32[3]))\n") == CCN_ERROR && says(c, "CCN0609", "the disk is full"),
     "a failure with its reason");
  ok(run(c, "fails(zeros(f32[3]))\n") == CCN_INTERRUPTED, "another status ends the run");
  ok(prints(c, "fn axpy(x) { return x }\nprint(axpy(7))\n", "7\n"), "hidden by a definition");
  ok(prints(c, "let f = pure\nprint(f(ones(f32[1])), axpy)\n", "f32[1] [1.0] fn axpy\n"),
     "a value of scripts");
  ccn_context_free(c);
}

static void test_placements(void) {
  ccn_context *c = make(3);
  on_axpy.calls = on_rows.calls = 0;
  ok(prints(c,
            "mesh (dp)\nprogram f(x: f32[N] sliced(0), y: f32[N]) { return axpy(x, y) }\n"
            "let y = iota(f32[7])\nlet z = f(y, y)\nprint(z)\n",
            "f32[7] sliced(0) over dp [0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0]\n"),
     "a whole operand beside a sliced one");
  ok(on_axpy.calls == 3 && on_axpy.start[1] == 3 && on_axpy.extent[1] == 3 && on_axpy.start[2] == 6 &&
       on_axpy.extent[2] == 1,
     "is cut alike");
  ok(prints(c,
            "mesh (dp)\nprogram f(x: f32[R, C] sliced(1)) { return allreduce(sum, rows(x)) }\n"
            "print(f(ones(f32[2, 7])))\n",
            "f32[2] [7.0, 7.0]\n"),
     "a dim that is summed over is owed");
  ok(run(c, "mesh (dp)\nprogram f(x: f32[R, C] sliced(1)) { return rows(x) + 1 }\n") == CCN_ERROR &&
       says(c, "CCN0210", "`rows`"),
     "and must be paid");
  ok(run(c, "mesh (dp)\nprogram f(x: f32[R, C] sliced(1)) { return top(x) }\n") == CCN_ERROR &&
       says(c, "CCN0204", ""),
     "a dim that may not be cut");
  ok(run(c, "mesh (dp)\nprogram f(x: f32[N] partial(sum)) { return pure(x) }\n") == CCN_ERROR &&
       says(c, "CCN0210", ""),
     "nothing owed is taken");
  on_pure.calls = 0;
  ok(prints(c,
            "mesh (dp)\nprogram f(x: f32[N], y: f32[N] local) { return pure(x), pure(y) }\n"
            "let (a, b) = f(ones(f32[2]), per_rank(fn(r) { return ones(f32[2]) * r }))\nprint(a, b.on(2))\n",
            "f32[2] [1.0, 1.0] f32[2] [2.0, 2.0]\n") &&
       on_pure.calls == 4,
     "once for a replicated value, once a rank for a local one");
  ccn_context_free(c);
}

static void test_effects(void) {
  ccn_context *c = make(0);
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  ccn_tensor *t = NULL;
  float x[2] = {1, 2};
  int64_t n = 2;
  void *pieces[1] = {x};
  const ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n};
  static const char program[] = "program f(x: f32[N]) {\n  a = pure(x)\n  b = impure(x)\n  return x * 2\n}\n";
  on_pure.calls = on_impure.calls = 0;
  bool good = ccn_module_load(c, "m", program, sizeof program - 1, &m) == CCN_OK &&
              ccn_module_function(m, "f", &f) == CCN_OK && ccn_call_create(f, &call) == CCN_OK &&
              ccn_tensor_borrow(c, &d, pieces, 1, 1, NULL, NULL, &t) == CCN_OK &&
              ccn_call_set_tensor(call, 0, t) == CCN_OK;
  ok(good && ccn_call_run(call) == CCN_OK && on_pure.calls == 0 && on_impure.calls == 1,
     "an impure op is executed though nobody needs it, a pure one is not");
  ok(on_impure.data == x, "the host's memory is read where it lies");
  ccn_tensor_release(t);
  ccn_call_release(call);
  ccn_module_release(m);
  printed.n = 0;
  on_impure.calls = 0;
  ok(ccn_session_type(c, "t", "impure(zeros(f32[3]))", 21, add_text, &printed) == CCN_OK &&
       !strncmp(printed.at, "f32[3]", 6) && on_impure.calls == 0,
     "not called for a type");
  printed.n = 0;
  ok(ccn_dump(c, "m", program, sizeof program - 1, "graph", add_text, &printed) == CCN_OK &&
       strstr(printed.at, "host: \"impure\"") && !strstr(printed.at, "\"pure\""),
     "in the graph");
  static text again;
  ok(ccn_graph_read(c, "g", printed.at, printed.n, add_text, &again) == CCN_OK &&
       !strcmp(again.at, printed.at),
     "which reads back");
  char *sig = strstr(printed.at, "e* -> e*");
  if (sig) memcpy(sig, "e^ -> e*", 8);
  ok(sig && ccn_graph_read(c, "g", printed.at, printed.n, add_text, &again) == CCN_ERROR,
     "not with a signature that cannot be read");
  ccn_context_free(c);
}

int main(void) {
  test_values();
  test_placements();
  test_effects();
  printf("1..%d\n", tests);
  return failures != 0;
}
