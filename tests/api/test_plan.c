/* test_plan.c: plans through the public header: formats, sizes, machines, traces, many ranks, wrong calls.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ccn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tests, failures;

static void ok(int good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

typedef struct text {
  char at[1 << 16];
  size_t n;
} text;

static void append(const char *s, size_t n, void *user) {
  text *t = user;
  if (n > sizeof t->at - 1 - t->n) n = sizeof t->at - 1 - t->n;
  memcpy(t->at + t->n, s, n);
  t->n += n;
  t->at[t->n] = 0;
}

static text out, trace, said;

static const char script[] = "mesh (dp)\n"
                             "program average(x: f32[N] local) { return allreduce(avg, x) }\n"
                             "let y = average(ones(f32[1000] local))\n"
                             "print(\"here\", y.shape)\n";

static ccn_status plan(ccn_context *c, const ccn_plan_desc *d, const char *format) {
  out.n = trace.n = said.n = 0;
  out.at[0] = trace.at[0] = said.at[0] = 0;
  return ccn_plan_write(c, "s.ccn", script, sizeof script - 1, d, format, append, &out);
}

static ccn_context *context(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = ranks;
  o.backend = "sim";
  o.print = append;
  o.print_user = &said;
  return ccn_context_create(&o, &c) == CCN_OK ? c : NULL;
}

static void test_formats(ccn_context *c) {
  ccn_plan_desc d = {.size = sizeof d};
  ok(plan(c, NULL, "table") == CCN_OK && strstr(out.at, "plan average on 4 ranks (dp: 4) of h200") && !said.n,
     "a table");
  ok(plan(c, &d, "json") == CCN_OK && strstr(out.at, "\"sent\": [6000, 6000, 6000, 6000]"), "JSON");
  d.trace = append;
  d.trace_user = &trace;
  ok(plan(c, &d, "time") == CCN_OK && strstr(out.at, "virtual time of 4 ranks") && strstr(said.at, "here") &&
       trace.at[0] == '[' && trace.at[trace.n - 2] == ']' && strstr(trace.at, "\"pid\": 3"),
     "virtual time with a trace; the script prints");
  ok(plan(c, &d, "picture") == CCN_INVALID_ARGUMENT &&
       ccn_plan_write(c, "s", script, 1, &d, "json", NULL, NULL) == CCN_INVALID_ARGUMENT,
     "wrong calls");
}

static void test_sizes(ccn_context *c) {
  static const char *const sizes[] = {"N=2000000"};
  ccn_plan_desc d = {.size = sizeof d, .program = "average", .sizes = sizes, .nsizes = 1};
  ok(plan(c, &d, "json") == CCN_OK && strstr(out.at, "\"sent\": [12000000, ") && !said.n,
     "a program with sizes");
  d.program = NULL;
  ok(plan(c, &d, "json") == CCN_INVALID_ARGUMENT, "sizes of no program");
  d.program = "nobody";
  ok(plan(c, &d, "json") == CCN_ERROR && ccn_diagnostic_count(c) == 1, "an unknown program");
  d.nsizes = 0;
  ok(plan(c, &d, "table") == CCN_OK && strstr(out.at, "no such program is called"),
     "a program that nobody calls");
}

static void test_machines(ccn_context *c) {
  ccn_plan_desc d = {.size = sizeof d, .machine = "abacus"};
  const char *about;
  ok(ccn_machine_list(0, &about) && about && !ccn_machine_list(100, &about) && !about,
     "the list of machines");
  ok(plan(c, &d, "table") == CCN_ERROR, "an unknown machine");
  d.machine_text = "machine m\nmemory 1\nbandwidth 1\nflops f32 1\nlink l latency 1 bandwidth 1000\n";
  ok(plan(c, &d, "table") == CCN_OK && strstr(out.at, "of m\n") && strstr(out.at, "it does not fit"),
     "a machine as text");
  out.n = 0;
  ok(ccn_machine_measure(c, append, &out) == CCN_OK && strstr(out.at, "machine this"), "this machine");
}

static ccn_status tune(ccn_context *c, const ccn_tune_desc *d, const char *format) {
  out.n = 0;
  *out.at = 0;
  return ccn_tune_write(c, "s.ccn", script, sizeof script - 1, d, format, append, &out);
}

static void count(size_t seen, void *user) { *(size_t *)user = seen; }

static void test_tune(ccn_context *c) {
  size_t seen = 0;
  ccn_plan_desc plan_desc = {.size = sizeof plan_desc, .machine = "abacus"};
  ccn_tune_desc d = {.size = sizeof d, .cache = "", .progress = count, .progress_user = &seen};
  ok(tune(c, &d, "json") == CCN_OK && strstr(out.at, "\"seen\": [") && seen > 1,
     "the search as JSON, with progress");
  ok(tune(c, &d, "schedule") == CCN_OK && strstr(out.at, " different graphs from "),
     "the search as a schedule");
  ok(tune(c, &d, "explain") == CCN_OK && strstr(out.at, "# alone:\n"), "the search explained");
  d.plan = &plan_desc;
  ok(tune(c, &d, "json") == CCN_ERROR, "the search on an unknown machine");
  plan_desc.machine = NULL;
  plan_desc.size = 0;
  ok(tune(c, &d, "json") == CCN_INVALID_ARGUMENT, "a description without a size");
  d.plan = NULL;
  ok(tune(c, &d, "table") == CCN_INVALID_ARGUMENT, "a format that the search does not have");
  d.size = 0;
  ok(tune(c, &d, "json") == CCN_INVALID_ARGUMENT && tune(NULL, NULL, "json") == CCN_INVALID_ARGUMENT &&
       ccn_tune_write(c, "s", script, 1, NULL, "json", NULL, NULL) == CCN_INVALID_ARGUMENT,
     "the search's arguments");
}

/* Tensors of a context that records have no elements to give. */
static void test_recording(ccn_context *c) {
  ccn_value *v = NULL;
  ccn_tensor *t = NULL;
  float x[3];
  ok(ccn_eval(c, "<1>", "ones(f32[3]) + 1.0", 18, &v) == CCN_OK && ccn_value_tensor(v, &t) == CCN_OK &&
       ccn_tensor_read(t, x, sizeof x) == CCN_UNSUPPORTED,
     "a recorded tensor cannot be read");
  ccn_tensor_release(t);
  ccn_value_release(v);
}

int main(void) {
  ccn_context *c = context(4), *many = context(CCN_PLAN_RANKS), *none = context(CCN_PLAN_RANKS + 1);
  test_formats(c);
  test_sizes(c);
  test_machines(c);
  test_tune(c);
  test_recording(c);
  ok(many && !none, "so many ranks and no more");
  ok(plan(many, NULL, "table") == CCN_ERROR && ccn_diagnostic_count(many) == 1,
     "no algorithm over 65,536 ranks");
  ccn_context_free(c);
  ccn_context_free(many);
  ccn_context_free(none);
  printf("1..%d\n", tests);
  return failures != 0;
}
