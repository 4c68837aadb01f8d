/* test_eval.c: entries of a shell: what persists, what is given back, what an error leaves, incomplete entries.
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

typedef struct text {
  char at[65536];
  size_t n;
} text;

static void add(const char *s, size_t size, void *user) {
  text *t = user;
  if (t->n + size >= sizeof t->at) return;
  memcpy(t->at + t->n, s, size);
  t->n += size;
  t->at[t->n] = 0;
}

static text out;

static ccn_context *make(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.print = add;
  o.print_user = &out;
  o.ranks = ranks;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

/* The value of an entry as text; "" if it has none, NULL after an error. */
static const char *value(ccn_context *c, const char *entry) {
  static text t;
  ccn_value *v = NULL;
  t.n = 0;
  t.at[0] = 0;
  if (ccn_eval(c, "<entry>", entry, strlen(entry), &v) != CCN_OK) return NULL;
  if (v && ccn_value_write(v, add, &t) != CCN_OK) return NULL;
  ccn_value_release(v);
  return t.at;
}

static bool gives(ccn_context *c, const char *entry, const char *wanted) {
  const char *got = value(c, entry);
  if (got && !strcmp(got, wanted)) return true;
  fprintf(stderr, "`%s` gives `%s`, not `%s`\n", entry, got ? got : "an error", wanted);
  if (!got) {
    text t = {.n = 0};
    ccn_diagnostics_write(c, 0, add, &t);
    fprintf(stderr, "%s", t.at);
  }
  return false;
}

/* The code of the first diagnostic; "" if the entry is right. */
static const char *code(ccn_context *c, const char *entry) {
  static char first[8];
  ccn_diagnostic d = {.size = sizeof d};
  first[0] = 0;
  if (ccn_eval(c, "<entry>", entry, strlen(entry), NULL) != CCN_ERROR) return first;
  if (ccn_diagnostic_get(c, 0, &d) == CCN_OK) memcpy(first, d.code, 8);
  return first;
}

static bool fails(ccn_context *c, const char *entry, const char *wanted) {
  const char *got = code(c, entry);
  if (!strcmp(got, wanted)) return true;
  fprintf(stderr, "`%s` is %s, not %s\n", entry, got, wanted);
  return false;
}

static void test_persistence(void) {
  ccn_context *c = make(2);
  ok(gives(c, "mesh (dp)", "") && gives(c, "let n = 3\n", "") && gives(c, "n", "3"), "variables stay");
  ok(gives(c, "n = n + 1", "") && gives(c, "n * 2", "8"), "and change");
  ok(gives(c, "fn twice(x) { return x * 2 }", "") && gives(c, "twice(n)", "8"), "functions stay");
  ok(gives(c, "program step(g: f32[N] local, p: f32[N]) {\n  return update(p, p - allreduce(sum, g))\n}\n",
           "") &&
       gives(c, "let p = zeros(f32[3])", "") &&
       gives(c, "step(per_rank(fn(r) { return ones(f32[3]) }), p)", "f32[3] [-2.0, -2.0, -2.0]") &&
       gives(c, "p", "f32[3] [-2.0, -2.0, -2.0]"),
     "programs stay, and tensors");
  ok(gives(c, "schedule zero(x) { (rs, ag) = split(x) }", "") &&
       gives(c, "let fast = step with zero(step.allreduce)", "") &&
       fails(c, "let slow = step with zero(step.nothing)", "CCN0400"),
     "schedules stay");
  ok(gives(c, "import \"std/optim\" as optim", "") && gives(c, "len(optim.adam.name) > 0", "true"),
     "modules stay");
  ok(gives(c, "", "") && gives(c, "# nothing\n", "") && gives(c, "let q = 1; q + 1", "2"),
     "empty and joined entries");
  out.n = 0;
  ok(gives(c, "print(\"a\")\nprint(n)", "") && !strcmp(out.at, "a\n4\n"), "what is printed");
  ok(gives(c, "[1, \"a\", (true, 2.5)]", "[1, \"a\", (true, 2.5)]"), "lists");
  ok(gives(c, "for i in 0..1000 { let x = zeros(f32[100]) }", ""), "a loop");
  ccn_context_free(c);
}

static void test_errors(void) {
  ccn_context *c = make(2);
  (void)value(c, "mesh (dp)");
  (void)value(c, "let total = 1");
  ok(fails(c, "totl + 1", "CCN0801") && gives(c, "total", "1"), "a misspelt name");
  ok(fails(c, "let a = 1\nlet b = [1][5]", "CCN0812") && gives(c, "a", "1") && fails(c, "b", "CCN0801"),
     "what was done before an error stays done");
  ok(fails(c, "let a = 5\nlet b = nothing", "CCN0801") && gives(c, "a", "1"),
     "what the check finds stops all of the entry");
  ok(fails(c, "import \"std/nothing\"", "CCN0811") && fails(c, "import \"std/nothing\"", "CCN0811"),
     "a module that is not there");
  ok(fails(c, "mesh (tp)", "CCN0300") && fails(c, "mesh (dp, tp: 1)", "CCN0300") && gives(c, "mesh (dp)", ""),
     "one mesh, which may be repeated");
  ok(fails(c, "program f(x: f32[N]) { return allreduce(sum, x) }", "CCN0212") && fails(c, "f(1)", "CCN0801"),
     "a wrong program is not defined");
  ok(fails(c, "let = 3", "CCN0001") && gives(c, "total", "1"), "syntax");
  ok(fails(c, "return 3", "CCN0010") && fails(c, "break", "CCN0010"), "statements out of place");
  ok(gives(c, "fn deep(n) { return deep(n + 1) }", "") && fails(c, "deep(0)", "CCN0602") &&
       gives(c, "total", "1"),
     "recursion without end");
  ccn_context_free(c);
  c = make(2);
  (void)value(c, "let x = zeros(f32[2])");
  ok(fails(c, "mesh (dp)", "CCN0300"), "a mesh behind the first tensor");
  ok(ccn_session_reset(c) == CCN_OK && gives(c, "mesh (dp)", "") && fails(c, "x", "CCN0801"),
     "a new session");
  ccn_context_free(c);
  c = make(3);
  ok(fails(c, "mesh (a: 2, b)", "CCN0302") && gives(c, "mesh (a: 3)", "") && gives(c, "size(a)", "3"),
     "a mesh that did not fit is not declared");
  ccn_context_free(c);
  c = make(0);
  ok(gives(c, "let n = 2", "") && gives(c, "fn change() { n = 5 }", "") && gives(c, "change()", "") &&
       gives(c, "program f(x: f32[2]) { return x * n }", "") &&
       gives(c, "f(ones(f32[2]))", "f32[2] [5.0, 5.0]"),
     "values that change are those of now");
  ccn_context_free(c);
}

static void test_incomplete(void) {
  static const char *const open[] = {"program f(x: f32[N]) {", "let a = (1 +", "[1,\n2",
                                     "fn f() {\n  return 1\n", "let a = 1 +"};
  static const char *const wrong[] = {"let a = )", "let a = 1 + * 2", "1 2"};
  ccn_context *c = make(0);
  ccn_value *v = NULL;
  bool good = true;
  for (size_t i = 0; i < sizeof open / sizeof *open; i++)
    good = good && ccn_eval(c, "m", open[i], strlen(open[i]), &v) == CCN_INCOMPLETE && !v &&
           ccn_diagnostic_count(c) > 0;
  ok(good, "incomplete entries");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    good = good && ccn_eval(c, "m", wrong[i], strlen(wrong[i]), &v) == CCN_ERROR && !v;
  ok(good, "wrong entries");
  ok(gives(c, "fn f() {\n  return 1\n}\nf()", "1"), "with its other lines it is an entry");
  ccn_context_free(c);
}

static void test_values(void) {
  ccn_context *c = make(2);
  ccn_value *v = NULL, *w = NULL;
  ccn_tensor *t = NULL;
  int64_t i = 7;
  double f = 7;
  size_t n = 7;
  static const char list[] = "[1, 2.5, \"text\", true, zeros(f32[2])]";
  ok(ccn_eval(c, "m", list, sizeof list - 1, &v) == CCN_OK && v && ccn_value_kind(v) == CCN_KIND_LIST &&
       ccn_value_count(v) == 5,
     "a list");
  ok(ccn_value_at(v, 0, &w) == CCN_OK && ccn_value_kind(w) == CCN_KIND_INT &&
       ccn_value_i64(w, &i) == CCN_OK && i == 1 && ccn_value_f64(w, &f) == CCN_OK && f == 1,
     "a whole number");
  ccn_value_release(w);
  ok(ccn_value_at(v, 1, &w) == CCN_OK && ccn_value_f64(w, &f) == CCN_OK && f == 2.5 &&
       ccn_value_i64(w, &i) == CCN_NOT_FOUND,
     "a float");
  ccn_value_release(w);
  ok(ccn_value_at(v, 2, &w) == CCN_OK && !strcmp(ccn_value_string(w, &n), "text") && n == 4 &&
       !ccn_value_string(v, &n) && n == 0,
     "a string");
  ccn_value_release(w);
  ok(ccn_value_at(v, 3, &w) == CCN_OK && ccn_value_kind(w) == CCN_KIND_BOOL &&
       ccn_value_i64(w, &i) == CCN_OK && i == 1,
     "a boolean");
  ok(ccn_value_tensor(w, &t) == CCN_NOT_FOUND && !t, "that is no tensor");
  ccn_value_release(w);
  ok(ccn_value_at(v, 4, &w) == CCN_OK && ccn_value_tensor(w, &t) == CCN_OK && t, "a tensor");
  ccn_value_release(w);
  ccn_value_release(v);
  float x[2] = {1, 1};
  ok(ccn_session_reset(c) == CCN_OK && ccn_tensor_read(t, x, sizeof x) == CCN_OK && x[0] == 0 && x[1] == 0,
     "which outlives its session");
  ok(ccn_value_at(NULL, 0, &w) == CCN_INVALID_ARGUMENT && !w && ccn_value_kind(NULL) == CCN_KIND_NONE &&
       ccn_value_count(NULL) == 0 && !ccn_value_string(NULL, NULL) &&
       ccn_value_i64(NULL, &i) == CCN_INVALID_ARGUMENT,
     "no value");
  ok(ccn_eval(c, "m", "sum(ones(f32[3]))", 17, &v) == CCN_OK && ccn_value_f64(v, &f) == CCN_OK && f == 3,
     "a scalar");
  ok(ccn_value_at(v, 0, &w) == CCN_NOT_FOUND && ccn_value_write(v, NULL, NULL) == CCN_INVALID_ARGUMENT,
     "has no members");
  ccn_context_free(c);
  ok(ccn_value_f64(v, &f) == CCN_OK && f == 3 && ccn_tensor_read(t, x, sizeof x) == CCN_OK,
     "values can be read when the context is gone");
  ccn_value_release(v);
  ccn_tensor_release(t);
  ccn_value_release(NULL);
  ccn_tensor_release(NULL);
}

static void test_arguments(void) {
  ccn_context *c = make(0);
  ok(ccn_eval(NULL, "m", "", 0, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_eval(c, NULL, "", 0, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_eval(c, "m", NULL, 1, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_session_reset(NULL) == CCN_INVALID_ARGUMENT,
     "wrong arguments");
  ok(ccn_eval(c, "m", NULL, 0, NULL) == CCN_OK && ccn_session_reset(c) == CCN_OK &&
       ccn_session_reset(c) == CCN_OK,
     "nothing");
  (void)value(c, "let x = 1");
  ok(ccn_run(c, "m", "let x = 2\n", 10) == CCN_OK && ccn_check(c, "m", "let y = 1\n", 10) == CCN_OK &&
       gives(c, "x", "1"),
     "runs leave the session alone");
  ok(ccn_run(c, "m", "print(x)\n", 9) == CCN_ERROR && ccn_diagnostic_count(c) == 1, "and do not see it");
  ccn_context_free(c);
}

static ccn_context *current;
static ccn_status inner;
static void reenter(const char *s, size_t size, void *user) {
  (void)s, (void)size, (void)user;
  inner = ccn_eval(current, "m", "1", 1, NULL);
  ccn_interrupt(current);
}

static void test_callbacks(void) {
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.print = reenter;
  if (ccn_context_create(&o, &current) != CCN_OK) exit(1);
  static const char loop[] = "let x = 3\nprint(1)\nwhile true { }";
  ok(ccn_eval(current, "m", loop, sizeof loop - 1, NULL) == CCN_INTERRUPTED && inner == CCN_INVALID_ARGUMENT,
     "an entry is interrupted; a callback may not evaluate");
  ok(gives(current, "x", "3"), "the session goes on");
  ccn_context_free(current);
}

static void test_memory(void) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.memory_limit = 8 << 20;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  (void)value(c, "let x = 3");
  const char *big = "let l = zeros(f32[1000000])\nlet m = [copy(l), l + 1, l + 2]";
  ok(ccn_eval(c, "m", big, strlen(big), NULL) == CCN_OUT_OF_MEMORY && gives(c, "x", "3") &&
       gives(c, "l[0]", "0.0"),
     "out of memory, and the session goes on");
  ccn_context_free(c);
}

static void test_limits(void) {
  static const char loop[] = "let x = 5\nwhile true { }";
  text report = {.n = 0};
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.time_limit_ms = 50;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  ok(fails(c, loop, "CCN0608") && gives(c, "x", "5"), "the time limit ends an entry");
  ok(ccn_run(c, "m", loop, sizeof loop - 1) == CCN_ERROR && gives(c, "sum(ones(f32[3]) + 1)", "6.0"),
     "and a run");
  ok(ccn_report_write(c, add, &report) == CCN_OK && strstr(report.at, "\"memory_peak\": ") &&
       strstr(report.at, "\"ops\": ") && !strstr(report.at, "\"ops\": 0"),
     "a report");
  ok(ccn_report_write(c, NULL, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_report_write(NULL, add, &report) == CCN_INVALID_ARGUMENT,
     "without a place for it");
  ccn_context_free(c);
}

int main(void) {
  test_persistence();
  test_errors();
  test_incomplete();
  test_values();
  test_arguments();
  test_callbacks();
  test_memory();
  test_limits();
  printf("1..%d\n", tests);
  return failures != 0;
}
