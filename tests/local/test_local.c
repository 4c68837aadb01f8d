/* test_local.c: the local backend through the public interface: the interpreter's results for any number
 * of threads, nothing stored by what fails, memory of each rank, no LLVM in a cached run, the watchdog.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ccn.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int number, failures;

static void ok(bool good, const char *what) {
  printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
  failures += !good;
}

static struct {
  char at[1 << 15];
  size_t n;
} printed;

static void add(const char *text, size_t n, void *user) {
  (void)user;
  if (printed.n + n >= sizeof printed.at) exit(3);
  memcpy(printed.at + printed.n, text, n);
  printed.n += n;
  printed.at[printed.n] = 0;
}

static ccn_context *open_context(const char *backend, int ranks, int workers) {
  ccn_context *c = NULL;
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.backend = backend;
  o.ranks = ranks;
  o.workers = workers;
  o.print = add;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(3);
  return c;
}

static const char *prints(const char *backend, int ranks, int workers, const char *script) {
  ccn_context *c = open_context(backend, ranks, workers);
  printed.n = 0;
  printed.at[0] = 0;
  if (ccn_run(c, "test", script, strlen(script)) != CCN_OK) ccn_diagnostics_write(c, 0, add, NULL);
  ccn_context_free(c);
  return printed.at;
}

/* ---- results ---------------------------------------------------------------------------------------- */

static const char adam[] =
  "mesh (dp)\n"
  "program adam(g: f32[N] local, p: f32[N], m: f32[N], v: f32[N], lr: f32) {\n"
  "  avg = allreduce(sum, g) / size(dp)\n"
  "  m1 = update(m, 0.9 * m + 0.1 * avg)\n"
  "  v1 = update(v, 0.999 * v + 0.001 * avg * avg)\n"
  "  p1 = update(p, p - lr * m1 / (sqrt(v1) + 1e-8))\n"
  "  return norm(p1), p1\n"
  "}\n"
  "let p = randn(f32[5003], seed: 1)\nlet m = zeros(f32[5003])\nlet v = zeros(f32[5003])\n"
  "let old = copy(p)\n"
  "for t in 1..=3 {\n"
  "  let n = adam(randn(f32[5003] local, seed: 2, step: t), p, m, v, 0.01)[0]\n"
  "  print(\"{n} {norm(p)} {norm(m)} {norm(v)} {norm(old)} {p[17]} {p[5002]}\")\n"
  "}\n";

static void test_results(void) {
  static const int ranks[] = {1, 2, 3, 8, 64}, workers[] = {1, 2, 3, 7};
  for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++) {
    char want[1 << 12], what[80];
    bool good = true;
    (void)snprintf(want, sizeof want, "%s", prints("reference", ranks[r], 0, adam));
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++) {
      const char *got = prints("local", ranks[r], workers[w], adam);
      if (strcmp(want, got) == 0) continue;
      printf("# %d workers: %s# not %s", workers[w], got, want);
      good = false;
    }
    (void)snprintf(what, sizeof what, "on %d ranks, 1, 2, 3 and 7 workers give the interpreter's results",
                   ranks[r]);
    ok(good && strstr(want, "\n"), what);
  }
}

/* ---- what fails stores nothing ---------------------------------------------------------------------- */

static bool evaluates(ccn_context *c, const char *text, ccn_status want) {
  ccn_value *v = NULL;
  const ccn_status s = ccn_eval(c, "entry", text, strlen(text), &v);
  ccn_value_release(v);
  if (s != want) ccn_diagnostics_write(c, 0, add, NULL), printf("# %s: %s\n", text, printed.at);
  return s == want;
}

static void test_failure(void) {
  ccn_context *c = open_context("local", 2, 1);
  printed.n = 0;
  bool good = evaluates(c, "mesh (dp)\n", CCN_OK);
  good = good &&
         evaluates(c,
                   "program f(p: f32[N], i: i32[K]) {\n  p1 = update(p, p + 1)\n  return take(p1 * 2, i)\n}\n"
                   "program g(p: i32[N], d: i32[N]) {\n  update(p, p // d)\n}\n"
                   "let p = ones(f32[8])\nlet q = ones(i32[8])\n",
                   CCN_OK);
  good = good && evaluates(c, "f(p, zeros(i32[1]) + 9)\n", CCN_ERROR);
  good = good && evaluates(c, "g(q, zeros(i32[8]))\n", CCN_ERROR);
  printed.n = 0;
  printed.at[0] = 0;
  good = good && evaluates(c, "print(\"{sum(p)} {sum(q)}\")\n", CCN_OK);
  ok(good && strcmp(printed.at, "8.0 8\n") == 0, "a program that fails stores nothing");
  printed.n = 0;
  good = evaluates(c, "f(p, zeros(i32[1]))\nprint(\"{sum(p)}\")\n", CCN_OK);
  ok(good && strcmp(printed.at, "16.0\n") == 0, "and the same program stores when it does not fail");
  ccn_context_free(c);
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static const char mixed[] =
  "mesh (dp)\n"
  "program mixed(g: f16[N] local, w: f16[N], p: f32[N], m: f32[N], v: f32[N]) {\n"
  "  gsum = allreduce(sum, g)\n"
  "  avg = f32(gsum) / size(dp)\n"
  "  m1 = update(m, 0.9 * m + 0.1 * avg)\n"
  "  v1 = update(v, 0.999 * v + 0.001 * avg * avg)\n"
  "  p1 = update(p, p - 0.01 * m1 / (sqrt(v1) + 1e-8))\n"
  "  return update(w, f16(p1))\n"
  "}\n"
  "import \"std/schedules\" as schedules\n"
  "let step = mixed with schedules.zero(mixed.gsum)\n"
  "let g = ones(f16[1003] local)\nlet p = zeros(f32[1003])\nlet w = zeros(f16[1003])\n"
  "let m = zeros(f32[1003])\nlet v = zeros(f32[1003])\n"
  "for t in 1..=5 { step(g, w, p, m, v) }\n";

static void test_memory(void) {
  static const int ranks[] = {1, 2, 3, 4, 8};
  bool good = true;
  for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++) {
    const int n = ranks[r];
    ccn_context *c = open_context("local", n, 0);
    const ccn_status s = ccn_run(c, "test", mixed, sizeof mixed - 1);
    printed.n = 0;
    good = good && s == CCN_OK && ccn_report_write(c, add, NULL) == CCN_OK;
    const char *at = strstr(printed.at, "\"resident\": [");
    for (int k = 0; good && k < n; k++) {
      const long piece = (1003 + n - 1) / n, start = k * piece < 1003 ? k * piece : 1003;
      const long own = start + piece < 1003 ? piece : 1003 - start;
      at = at ? strpbrk(k ? at + 1 : at + 12, k ? "," : "[") : NULL;
      const long got = at ? strtol(at + 1, NULL, 10) : -1;
      if (got == 4 * 1003 + 12 * own) continue;
      printf("# %d ranks: rank %d holds %ld bytes, not %ld\n", n, k, got, 4 * 1003 + 12 * own);
      good = false;
    }
    ccn_context_free(c);
  }
  ok(good, "Adam in mixed precision holds 4 N + 12 ceil(N / n) bytes a rank");
}

/* ---- LLVM ------------------------------------------------------------------------------------------- */

static int in_child(int (*f)(void)) {
  (void)fflush(NULL);
  const pid_t p = fork();
  int status = 0;
  if (p == 0) _exit(f());
  if (p < 0 || waitpid(p, &status, 0) != p || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

#if defined(CCN_JIT_PLUGIN) && defined(__linux__)
static int maps_llvm(void) { /* 1: after a run libLLVM is mapped */
  char line[600];
  int found = 0;
  if (!strstr(prints("local", 2, 1, adam), "\n") || strstr(printed.at, "error")) return 2;
  FILE *f = fopen("/proc/self/maps", "r");
  if (!f) return 3;
  while (fgets(line, sizeof line, f)) found |= strstr(line, "libLLVM") != NULL;
  (void)fclose(f);
  return found;
}
#endif

static void test_cache(void) { /* before this process has opened LLVM itself */
#if defined(CCN_JIT_PLUGIN) && defined(__linux__)
  const int cold = in_child(maps_llvm), cached = in_child(maps_llvm);
  printf("# cold %d, cached %d\n", cold, cached);
  ok(cold == 1 && cached == 0, "LLVM is there in the first run, and not in one from the cache");
#else
  printf("ok %d - LLVM in a cached run # skip: built without LLVM\n", ++number);
#endif
}

/* ---- the watchdog ----------------------------------------------------------------------------------- */

static ccn_status sleep_on_1(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                             const ccn_op_array *out, void *user) {
  (void)c, (void)user, (void)n;
  memcpy(out->data, in[0].data, out->bytes);
  if (rank == 1) (void)sleep(20);
  return CCN_OK;
}

static void hung(const char *text, size_t n, void *user) {
  (void)user;
  printf("# %.*s\n", (int)n, text);
  (void)fflush(stdout);
  const bool good = strstr(text, "rank 1 ") && strstr(text, "`s`") && strstr(text, "test:3") &&
                    strstr(text, "`lazy`") && strstr(text, "step ");
  _exit(good ? 4 : 5);
}

static int hang(void) {
  static const char script[] =
    "mesh (dp)\nprogram f(x: f32[N] local) {\n  s = lazy(x + 1)\n  return allreduce(sum, s)\n}\n"
    "f(ones(f32[4] local))\n";
  ccn_context *c = NULL;
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.backend = "local";
  o.ranks = 3;
  o.hang_limit_ms = 300;
  o.hung = hung;
  const ccn_op op = {.size = sizeof op, .name = "lazy", .dims = "e* -> e*", .eval = sleep_on_1};
  if (ccn_context_create(&o, &c) != CCN_OK || ccn_register_op(c, &op) != CCN_OK) return 3;
  return ccn_run(c, "test", script, sizeof script - 1) == CCN_OK ? 0 : 1;
}

static void test_watchdog(void) {
  const time_t start = time(NULL);
  const int status = in_child(hang);
  printf("# status %d\n", status);
  ok(status == 4 && time(NULL) - start < 15, "a host function that sleeps is reported, and ends the process");
}

int main(void) {
  char folder[] = "/tmp/ccn-local-XXXXXX", command[100];
  if (!mkdtemp(folder)) exit(3);
  (void)setenv("XDG_CACHE_HOME", folder, 1);
  test_cache();
  test_results();
  test_failure();
  test_memory();
  test_watchdog();
  (void)snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) exit(3);
  printf("1..%d\n", number);
  return failures ? 1 : 0;
}
