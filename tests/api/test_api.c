/* test_api.c: what ccn.h promises: contexts, statuses, diagnostics, dumps, interruption, limits,
 * floating-point state.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>
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

static void clear(text *t) { t->n = t->at[0] = 0; }

static ccn_context *make(text *out, int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.print = add;
  o.print_user = out;
  o.ranks = ranks;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

static ccn_status run(ccn_context *c, const char *script) {
  return ccn_run(c, "main.ccn", script, strlen(script));
}

static const char step[] = "mesh (dp)\n"
                           "program step(g: f32[N] local, p: f32[N]) {\n"
                           "  gsum = allreduce(sum, g)\n"
                           "  return update(p, p - gsum)\n"
                           "}\n";

/* ---- contexts ------------------------------------------------------------------------------------------ */

static void test_contexts(void) {
  ccn_options o;
  ccn_context *c = NULL;
  ok(ccn_context_create(NULL, NULL) == CCN_INVALID_ARGUMENT, "no place for the context");
  ok(ccn_context_create(NULL, &c) == CCN_OK && c && run(c, "print(1)\n") == CCN_OK,
     "default options; what is printed is dropped");
  ccn_context_free(c);
  ccn_options_init(&o, sizeof o);
  o.ranks = 65;
  ok(ccn_context_create(&o, &c) == CCN_INVALID_ARGUMENT && !c, "too many ranks");
  o.ranks = -1;
  ok(ccn_context_create(&o, &c) == CCN_INVALID_ARGUMENT, "negative ranks");
  ccn_options_init(&o, sizeof o);
  o.size = 0;
  ok(ccn_context_create(&o, &c) == CCN_INVALID_ARGUMENT, "options that were not initialised");
  ccn_options_init(&o, offsetof(ccn_options, memory_limit)); /* a host compiled when options were shorter */
  ok(ccn_context_create(&o, &c) == CCN_OK && run(c, "let x = 1\n") == CCN_OK, "shorter options");
  ccn_context_free(c);
  ccn_context_free(NULL);
  ok(ccn_run(NULL, "x", "", 0) == CCN_INVALID_ARGUMENT, "no context");
  c = make(NULL, 0);
  ok(ccn_run(c, NULL, "", 0) == CCN_INVALID_ARGUMENT && ccn_run(c, "x", NULL, 1) == CCN_INVALID_ARGUMENT,
     "no name, no text");
  ok(ccn_run(c, "x", NULL, 0) == CCN_OK, "an empty text");
  ccn_context_free(c);
}

static void test_options_are_copied(void) {
  static text out;
  char word[8] = "first";
  const char *words[1] = {word};
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.print = add;
  o.print_user = &out;
  o.args = words;
  o.nargs = 1;
  clear(&out);
  bool good = ccn_context_create(&o, &c) == CCN_OK;
  strcpy(word, "other");
  words[0] = NULL;
  good = good && run(c, "print(args)\n") == CCN_OK && !strcmp(out.at, "[\"first\"]\n");
  ok(good, "words of the script are copied");
  ccn_context_free(c);
}

static void test_two_contexts(void) {
  static text one, two;
  char script[600];
  ccn_context *c = make(&one, 1), *d = make(&two, 4);
  snprintf(script, sizeof script,
           "%slet p = zeros(f32[2])\nstep(per_rank(fn(r) { return ones(f32[2]) }), p)\nprint(p)\n", step);
  clear(&one), clear(&two);
  bool good = run(c, script) == CCN_OK && run(d, script) == CCN_OK && run(c, "print(no)\n") == CCN_ERROR;
  ok(good && !strcmp(one.at, "f32[2] [-1.0, -1.0]\n") && !strcmp(two.at, "f32[2] [-4.0, -4.0]\n"),
     "two contexts, two worlds");
  ok(ccn_diagnostic_count(c) == 1 && ccn_diagnostic_count(d) == 0, "diagnostics belong to their context");
  ok(run(c, "let x = 1\n") == CCN_OK && ccn_diagnostic_count(c) == 0, "the next call clears them");
  ok(run(c, "print(x)\n") == CCN_ERROR, "each run starts afresh");
  ccn_context_free(c);
  ccn_context_free(d);
}

/* ---- diagnostics --------------------------------------------------------------------------------------- */

static void test_diagnostics(void) {
  static text out;
  ccn_diagnostic d = {.size = sizeof d}, small = {.size = offsetof(ccn_diagnostic, message)};
  ccn_context *c = make(&out, 0);
  ok(run(c, "let total = 1\nprint(totl)\n") == CCN_ERROR && ccn_diagnostic_count(c) == 1, "a wrong script");
  bool good =
    ccn_diagnostic_get(c, 0, &d) == CCN_OK && d.severity == CCN_SEVERITY_ERROR && !strcmp(d.code, "CCN0801");
  ok(good && strstr(d.message, "totl") && d.primary.text[0] && strstr(d.hint, "total"),
     "code, message, label, hint");
  good = !strcmp(d.primary.file, "main.ccn") && d.primary.line == 2 && d.primary.column == 7 &&
         d.primary.end_line == 2;
  ok(good && d.primary.end_column == 11 && d.nnotes == 0, "where it is");
  ok(ccn_diagnostic_get(c, 1, &d) == CCN_NOT_FOUND && ccn_diagnostic_get(c, 0, NULL) == CCN_INVALID_ARGUMENT,
     "no such diagnostic");
  small.message = "untouched";
  ok(ccn_diagnostic_get(c, 0, &small) == CCN_OK && !strcmp(small.code, "CCN0801") &&
       !strcmp(small.message, "untouched"),
     "a host's shorter struct is not overrun");
  clear(&out);
  ccn_diagnostics_write(c, 0, add, &out);
  ok(strstr(out.at, "error[CCN0801]") && strstr(out.at, "main.ccn:2:7") && !strchr(out.at, 27), "as text");
  clear(&out);
  ccn_diagnostics_write(c, 1, add, &out);
  ok(strchr(out.at, 27) != NULL, "in colour");
  clear(&out);
  ccn_diagnostics_write_json(c, add, &out);
  ok(out.at[0] == '{' && out.at[out.n - 1] == '\n' && strchr(out.at, '\n') == out.at + out.n - 1,
     "as JSON, one line each");
  ok(ccn_check(c, "m", "let a = (1\nlet b = 2 +* 3\nlet c = 1\n", 36) == CCN_ERROR &&
       ccn_diagnostic_count(c) >= 1,
     "syntax errors");
  ccn_context_free(c);
}

/* ---- check and dump ------------------------------------------------------------------------------------ */

static void test_dumps(void) {
  static text out, again;
  ccn_context *c = make(&out, 0);
  clear(&out);
  ok(ccn_check(c, "m", "print(1)\n", 9) == CCN_OK && out.n == 0, "check runs nothing");
  ok(ccn_dump(c, "m", step, sizeof step - 1, "ast", add, &out) == CCN_OK && strstr(out.at, "program"),
     "the syntax as text");
  clear(&out);
  ok(ccn_dump(c, "m", step, sizeof step - 1, "graph", add, &out) == CCN_OK && strstr(out.at, "allreduce"),
     "graphs as text");
  clear(&again);
  ok(ccn_graph_read(c, "m", out.at, out.n, add, &again) == CCN_OK && !strcmp(out.at, again.at),
     "which reads back exactly");
  ok(ccn_graph_read(c, "m", "graph nonsense", 14, add, &again) == CCN_ERROR && ccn_diagnostic_count(c) > 0,
     "other text does not");
  ok(ccn_dump(c, "m", step, sizeof step - 1, "llvm", add, &out) == CCN_INVALID_ARGUMENT &&
       ccn_diagnostic_count(c) == 1,
     "an unknown stage");
  clear(&out);
  ok(ccn_dump(c, "m", "print(x)\n", 9, "graph", add, &out) == CCN_ERROR && out.n == 0,
     "no dump of a wrong script");
  ccn_context_free(c);
}

/* ---- interruption, limits, floating-point state -------------------------------------------------------- */

static ccn_context *interrupted;
static void interrupt(const char *s, size_t size, void *user) {
  (void)s, (void)size, (void)user;
  ccn_interrupt(interrupted);
}

static void test_interruption(void) {
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.print = interrupt;
  if (ccn_context_create(&o, &interrupted) != CCN_OK) exit(1);
  ok(run(interrupted, "print(1)\nwhile true { }\n") == CCN_INTERRUPTED, "an endless loop is interrupted");
  ok(run(interrupted, "print(1)\nfn f() { while true { let x = 1 } }\nf()\n") == CCN_INTERRUPTED,
     "and again");
  ok(run(interrupted, "let x = 1\n") == CCN_OK, "the context goes on");
  ccn_context_free(interrupted);
  ccn_interrupt(NULL);
}

static void test_limit(void) {
  static text out;
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.memory_limit = 8 << 20;
  o.print = add;
  o.print_user = &out;
  clear(&out);
  ok(ccn_context_create(&o, &c) == CCN_OK && run(c, "let x = zeros(f32[100_000_000])\n") == CCN_OUT_OF_MEMORY,
     "a tensor beyond the limit");
  ccn_diagnostic d = {.size = sizeof d};
  ok(ccn_diagnostic_count(c) == 1 && ccn_diagnostic_get(c, 0, &d) == CCN_OK && !strcmp(d.code, "CCN0608") &&
       d.primary.line == 1 && d.primary.column == 1 && strstr(d.message, "400000"),
     "the statement in which memory ended");
  ok(run(c, "let s = \"x\"\nwhile true { s = s + s }\n") == CCN_OUT_OF_MEMORY, "a string without end");
  ok(run(c, "let l = []\nwhile true {\n  l.append(l)\n}\n") == CCN_OUT_OF_MEMORY &&
       ccn_diagnostic_get(c, 0, &d) == CCN_OK && d.primary.line == 3,
     "a list without end: the innermost statement");
  ok(run(c, "print(sum(ones(f32[1000])))\n") == CCN_OK && !strcmp(out.at, "1000.0\n"), "the context goes on");
  ccn_context_free(c);
}

static void test_rounding(void) {
#ifdef FE_UPWARD
  static text out;
  ccn_context *c = make(&out, 0);
  clear(&out);
  fesetround(FE_UPWARD);
  ccn_status status = run(c, "print(1.0 / 3.0, sum(tensor([0.1, 0.2], f32)))\n");
  bool kept = fegetround() == FE_UPWARD;
  fesetround(FE_TONEAREST);
  ok(status == CCN_OK && !strcmp(out.at, "0.3333333333333333 0.3\n"),
     "the host's rounding mode has no influence");
  ok(kept, "and is restored");
  ccn_context_free(c);
#endif
}

/* ---- tables -------------------------------------------------------------------------------------------- */

static void test_tables(void) {
  const char *title = NULL, *code;
  size_t n = 0;
  bool ordered = true;
  for (char last[8] = ""; (code = ccn_explain_list(n, &title)); n++) {
    ordered =
      ordered && strlen(code) == 7 && !strncmp(code, "CCN", 3) && strcmp(last, code) < 0 && title && *title;
    memcpy(last, code, 8);
  }
  ok(n > 80 && ordered, "codes in order, each with a title");
  ok(!ccn_explain("CCN9999") && !ccn_explain("nonsense") && !ccn_explain(NULL) && !ccn_explain("CCN") &&
       !ccn_explain(""),
     "no page");
  ok(ccn_explain("203") == ccn_explain("CCN0203") && ccn_explain("ccn0203") == ccn_explain("0203"),
     "codes may be short");
  ok(ccn_version() == CCN_VERSION && strstr(ccn_build_info(), "ccn "), "version");
  ok(!strcmp(ccn_status_name(CCN_OUT_OF_MEMORY), "out of memory") && ccn_status_name((ccn_status)99),
     "names of statuses");
}

int main(void) {
  test_contexts();
  test_options_are_copied();
  test_two_contexts();
  test_diagnostics();
  test_dumps();
  test_interruption();
  test_limit();
  test_rounding();
  test_tables();
  printf("1..%d\n", tests);
  return failures != 0;
}
