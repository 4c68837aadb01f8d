/* test_shell.c: what shells ask: the session as a script, its names, graphs and types; options that change;
 * formatting; the words of the language; allocation failure in all of it.
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

static void add_name(const char *name, ccn_kind kind, void *user) {
  char line[128];
  add(line, (size_t)snprintf(line, sizeof line, "%s %d\n", name, (int)kind), user);
}

static text out;

static const char *cleared(void) {
  out.n = 0;
  out.at[0] = 0;
  return out.at;
}

static ccn_context *make(void) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = 2;
  o.print = o.watch_print = add;
  o.print_user = o.watch_user = &out;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

static ccn_status eval(ccn_context *c, const char *entry) {
  return ccn_eval(c, "<entry>", entry, strlen(entry), NULL);
}

static ccn_status type(ccn_context *c, const char *expression) {
  cleared();
  return ccn_session_type(c, "<type>", expression, strlen(expression), add, &out);
}

static bool is(const char *wanted) {
  if (!strcmp(out.at, wanted)) return true;
  fprintf(stderr, "got `%s`, not `%s`\n", out.at, wanted);
  return false;
}

static bool has(const char *wanted) {
  if (strstr(out.at, wanted)) return true;
  fprintf(stderr, "`%s` is not in `%s`\n", wanted, out.at);
  return false;
}

#define STEP \
  "program step(g: f32[N] local, p: f32[N]) {\n  gsum = allreduce(sum, g)\n  return update(p, p - gsum)\n}\n"

static ccn_context *prepared(void) {
  ccn_context *c = make();
  bool good = eval(c, "mesh (dp)") == CCN_OK && eval(c, STEP) == CCN_OK &&
              eval(c, "let p = zeros(f32[3])") == CCN_OK &&
              eval(c, "let g = per_rank(fn(r) { return ones(f32[3]) })") == CCN_OK &&
              eval(c, "schedule zero(x) { (rs, ag) = split(x) }") == CCN_OK &&
              eval(c, "import \"std/optim\" as optim") == CCN_OK;
  if (!good) exit(1);
  return c;
}

static void test_script(void) {
  ccn_context *c = make();
  cleared();
  ok(ccn_session_write(c, add, &out) == CCN_OK && is(""), "an empty session");
  (void)!eval(c, "let n = 2");
  (void)!eval(c, "mesh (dp)\nmesh (dp)");
  (void)!eval(c, "mesh (dp)");
  (void)!eval(c, "n + 1");
  (void)!eval(c, "let a = [1][0]\nlet b = [1][7]\nlet d = 1");
  (void)!eval(c, "let e = nothing");
  (void)!eval(c, "fn f(x) {\n  return x # as it is\n}");
  (void)!eval(c, "f(n); n = 5");
  cleared();
  ok(ccn_session_write(c, add, &out) == CCN_OK &&
       is("mesh (dp)\nlet n = 2\nlet a = [1][0]\nfn f(x) {\n  return x # as it is\n}\nf(n)\nn = 5\n"),
     "the statements that were carried out; the mesh first");
  ok(ccn_check(c, "saved", out.at, out.n) == CCN_OK, "it checks");
  ok(ccn_session_reset(c) == CCN_OK && (cleared(), ccn_session_write(c, add, &out) == CCN_OK) && is(""),
     "a new session is empty");
  ok(ccn_session_write(NULL, add, &out) == CCN_INVALID_ARGUMENT &&
       ccn_session_write(c, NULL, NULL) == CCN_INVALID_ARGUMENT,
     "arguments");
  ccn_context_free(c);
}

static void test_names(void) {
  ccn_context *c = prepared();
  cleared();
  ok(ccn_session_names(c, NULL, add_name, &out) == CCN_OK && has("step 9\n") && has("p 7\n") &&
       has("optim 10\n"),
     "names of the session");
  cleared();
  ok(ccn_session_names(c, "optim", add_name, &out) == CCN_OK && has("adam 9\n"), "of a module");
  cleared();
  ok(ccn_session_names(c, "step", add_name, &out) == CCN_OK && has("gsum 10\n") && has("g 10\n") &&
       has("name 10\n"),
     "of a program");
  cleared();
  ok(ccn_session_names(c, "p", add_name, &out) == CCN_OK && has("shape 10\n") && has("per_rank 10\n"),
     "of a tensor");
  cleared();
  ok(ccn_session_names(c, "nothing", add_name, &out) == CCN_OK && is(""), "of nothing");
  ok(ccn_session_names(c, NULL, NULL, NULL) == CCN_INVALID_ARGUMENT, "arguments");
  ccn_context_free(c);
}

static void test_graphs(void) {
  ccn_context *c = prepared();
  cleared();
  ok(ccn_session_graph(c, "step", add, &out) == CCN_OK && has("graph step {") && has("= allreduce"),
     "a graph");
  ok(ccn_graph_read(c, "g", out.at, out.n, add, &out) == CCN_OK, "it reads back");
  cleared();
  ok(ccn_session_graph(c, "step@zero(gsum)", add, &out) == CCN_OK && has("reducescatter"), "with a schedule");
  cleared();
  ok(ccn_session_graph(c, "optim.adam", add, &out) == CCN_OK && has("graph adam"), "of a module");
  ok(ccn_session_graph(c, "stp", add, &out) == CCN_ERROR && ccn_diagnostic_count(c) == 1, "an unknown name");
  ok(ccn_session_graph(c, "p", add, &out) == CCN_ERROR, "a tensor has none");
  ok(ccn_session_graph(c, NULL, add, &out) == CCN_INVALID_ARGUMENT &&
       ccn_session_graph(c, "step", NULL, NULL) == CCN_INVALID_ARGUMENT,
     "arguments");
  ccn_context_free(c);
}

static void test_types(void) {
  ccn_context *c = prepared();
  ok(type(c, "p") == CCN_OK && is("f32[3]"), "a tensor");
  ok(type(c, "g") == CCN_OK && is("f32[3] local over dp"), "a local one");
  ok(type(c, "step") == CCN_OK && is("program step(g: f32[N] local, p: f32[N]) -> f32[N]"), "a program");
  ok(type(c, "step with zero(step.gsum)") == CCN_OK &&
       is("program step(g: f32[N] local, p: f32[N]) -> f32[N]"),
     "a program with a schedule");
  ok(type(c, "fn(a, b = 2) { return a }") == CCN_OK && is("fn (a, b?)"), "a function");
  ok(type(c, "[1, 2]") == CCN_OK && is("a list of 2"), "a list");
  ok(type(c, "1") == CCN_OK && is("a whole number") && type(c, "1.5") == CCN_OK && is("a float"), "numbers");
  ok(type(c, "step(g, p)") == CCN_OK && is("f32[3]"), "a call");
  cleared();
  ok(eval(c, "print(p[0])") == CCN_OK && is("0.0\n"), "has stored nothing");
  ok(type(c, "print(\"a\")") == CCN_OK && is("nothing"), "prints nothing");
  ok(type(c, "step([1], p)") == CCN_ERROR && is(""), "an error");
  ok(eval(c, "step(g, p)\nprint(p[0])") == CCN_OK && is("-2.0\n"), "after it programs store again");
  ok(type(c, "let a = 1") == CCN_ERROR && eval(c, "a") == CCN_ERROR, "no statement is carried out");
  ok(type(c, "(1") == CCN_INCOMPLETE, "an open bracket");
  cleared();
  ok(ccn_session_write(c, add, &out) == CCN_OK && !strstr(out.at, "step([1], p)"),
     "the session does not note it");
  ok(ccn_session_type(c, "x", "1", 1, NULL, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_session_type(c, NULL, "1", 1, add, &out) == CCN_INVALID_ARGUMENT,
     "arguments");
  ccn_context_free(c);
}

static void test_options(void) {
  static const char *const watch[] = {"step.gsum"};
  ccn_context *c = prepared();
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.watch = watch;
  o.nwatch = 1;
  cleared();
  ok(ccn_options_update(c, &o) == CCN_OK && eval(c, "step(g, p)") == CCN_OK && has("watch step.gsum"),
     "watch");
  for (int i = 0; i < 1000; i++)
    if (ccn_options_update(c, &o) != CCN_OK) exit(1);
  o.nwatch = 0;
  cleared();
  ok(ccn_options_update(c, &o) == CCN_OK && eval(c, "step(g, p)") == CCN_OK && is(""), "watch no more");
  o.check_nan = 1;
  ok(ccn_options_update(c, &o) == CCN_OK && eval(c, "log(p - 100)") == CCN_ERROR, "check_nan");
  o.check_nan = 0;
  o.time_limit_ms = 50;
  ok(ccn_options_update(c, &o) == CCN_OK && eval(c, "log(p - 100)") == CCN_OK &&
       eval(c, "while true { }") == CCN_ERROR,
     "time_limit_ms");
  o.time_limit_ms = 0;
  o.memory_limit = 1 << 24;
  ok(ccn_options_update(c, &o) == CCN_OK && eval(c, "let big = zeros(f32[100000000])") == CCN_OUT_OF_MEMORY,
     "memory_limit");
  cleared();
  ok(eval(c, "print(size(dp))") == CCN_OK && is("2\n"), "ranks and print stay");
  o.size = 0;
  ok(ccn_options_update(c, NULL) == CCN_INVALID_ARGUMENT && ccn_options_update(c, &o) == CCN_INVALID_ARGUMENT,
     "arguments");
  ccn_context_free(c);
}

static void test_format(void) {
  ccn_context *c = make();
  const char *ugly = "let  a=1+ 2", *wrong = "let a = (";
  cleared();
  ok(ccn_format(c, "x", ugly, strlen(ugly), add, &out) == CCN_OK && is("let a = 1 + 2\n"), "laid out anew");
  cleared();
  ok(ccn_format(c, "x", wrong, strlen(wrong), add, &out) == CCN_ERROR && is("") &&
       ccn_diagnostic_count(c) == 1,
     "a syntax error");
  ok(ccn_format(c, "x", ugly, strlen(ugly), NULL, NULL) == CCN_INVALID_ARGUMENT &&
       ccn_format(c, NULL, ugly, strlen(ugly), add, &out) == CCN_INVALID_ARGUMENT,
     "arguments");
  ccn_context_free(c);
}

static void test_words(void) {
  ccn_word w = {.size = sizeof w};
  size_t n = 0, ops = 0;
  bool good = true, matmul = false, let = false, f16 = false, print = false, split = false;
  for (; ccn_word_get(n, &w) == CCN_OK; n++) {
    good = good && *w.name && *w.doc && *w.kind && w.group && w.params && w.dims && w.owed && w.dtypes;
    ops += !strcmp(w.kind, "op");
    matmul |= !strcmp(w.name, "matmul") && !strcmp(w.dims, "b* m k+, b* k+ n -> b* m n") && !w.programs_only;
    let |= !strcmp(w.name, "let") && !strcmp(w.kind, "keyword");
    f16 |= !strcmp(w.name, "f16") && !strcmp(w.kind, "dtype");
    print |= !strcmp(w.name, "print") && !strcmp(w.kind, "function");
    split |= !strcmp(w.name, "split") && !strcmp(w.kind, "schedule");
  }
  ok(good && ops > 80 && matmul && let && f16 && print && split, "words");
  ok(ccn_word_get(n, &w) == CCN_NOT_FOUND && ccn_word_get(0, NULL) == CCN_INVALID_ARGUMENT, "past the end");
  w.size = 3 * sizeof(void *);
  w.doc = "mine";
  ok(ccn_word_get(0, &w) == CCN_OK && !strcmp(w.doc, "mine"), "an older host's struct");
  const char *name, *about, *cure;
  int built, found = 0;
  for (size_t i = 0; (name = ccn_feature_list(i, &built, &about, &cure)); i++)
    found += *name && *about && cure && (built || *cure) && (built == 0 || built == 1);
  ok(found >= 4 && ccn_feature_list(1000, NULL, NULL, NULL) == NULL, "features");
}

/* ---- allocation failure -------------------------------------------------------------------------------- */

static long budget; /* allocations that still succeed */

static void *scarce(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)user;
  (void)old_size;
  if (!new_size) {
    free(p);
    return NULL;
  }
  if (budget-- <= 0) return NULL;
  return aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align,
                       (new_size + align - 1) / align * align);
}

static ccn_status everything(ccn_context *c) {
  static const char *const watch[] = {"a", "b"};
  ccn_options o;
  ccn_status s[8];
  ccn_options_init(&o, sizeof o);
  o.watch = watch;
  o.nwatch = 2;
  s[0] = eval(c, "mesh (dp)\n" STEP "let p = zeros(f32[3])");
  s[1] = ccn_session_write(c, add, &out);
  s[2] = ccn_session_names(c, NULL, add_name, &out);
  s[3] = ccn_session_names(c, "step", add_name, &out);
  s[4] = ccn_session_graph(c, "step", add, &out);
  s[5] = type(c, "p + 1");
  s[6] = ccn_options_update(c, &o);
  s[7] = ccn_format(c, "x", "let a=1", 7, add, &out);
  for (int i = 0; i < 8; i++)
    if (s[i] != CCN_OK) return s[i];
  return CCN_OK;
}

static void test_memory(void) {
  ccn_options o;
  bool good = true;
  long n = 0;
  ccn_options_init(&o, sizeof o);
  o.alloc = scarce;
  o.ranks = 2;
  for (ccn_status status = CCN_OUT_OF_MEMORY; status != CCN_OK && n < 100000; n++) {
    ccn_context *c = NULL;
    budget = n;
    cleared();
    status = ccn_context_create(&o, &c);
    if (status == CCN_OK) status = everything(c);
    budget = 1000000; /* whatever failed, the context is whole */
    if (c && everything(c) != CCN_OK) good = false;
    if (status != CCN_OK && status != CCN_OUT_OF_MEMORY && status != CCN_ERROR) good = false;
    ccn_context_free(c);
  }
  ok(good && n > 50 && n < 100000, "each allocation may fail");
}

int main(void) {
  test_script();
  test_names();
  test_graphs();
  test_types();
  test_options();
  test_format();
  test_words();
  test_memory();
  printf("1..%d\n", tests);
  return failures != 0;
}
