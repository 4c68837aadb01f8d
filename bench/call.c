/* call.c: what a call object costs beyond the work: a program of one op on few elements, run again and again
 * through ccn.h with its arguments set.
 *
 *   cc -O2 -o /tmp/call bench/call.c $(pkg-config --cflags --libs ccn) && /tmp/call
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 199309L
#include <ccn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(ccn_status s) {
  if (s == CCN_OK) return;
  fprintf(stderr, "%s\n", ccn_status_name(s));
  exit(1);
}

/* The best of some rounds, in microseconds a call. */
static double measure(ccn_call *call, int runs) {
  double best = 1e9;
  for (int round = 0; round < 20; round++) {
    const double start = seconds();
    for (int i = 0; i < runs; i++) must(ccn_call_run(call));
    const double each = (seconds() - start) / runs * 1e6;
    if (each < best) best = each;
  }
  return best;
}

static void one(const char *name, const char *text, int64_t n) {
  ccn_context *c = NULL;
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  ccn_tensor *t = NULL;
  const ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n};
  must(ccn_context_create(NULL, &c));
  must(ccn_module_load(c, "call", text, strlen(text), &m));
  must(ccn_module_function(m, "f", &f));
  must(ccn_call_create(f, &call));
  must(ccn_tensor_create(c, &d, &t));
  must(ccn_call_set_tensor(call, 0, t));
  printf("%-28s %8lld elements  %7.2f us a call\n", name, (long long)n, measure(call, n > 1000 ? 200 : 3000));
  ccn_tensor_release(t);
  ccn_call_release(call);
  ccn_module_release(m);
  ccn_context_free(c);
}

int main(void) {
  one("x + x", "program f(x: f32[N]) { return x + x }", 1);
  one("x + x", "program f(x: f32[N]) { return x + x }", 1000);
  one("x + x", "program f(x: f32[N]) { return x + x }", 1000000);
  one("update(x, x + x)", "program f(x: f32[N]) { return update(x, x + x) }", 1);
  one("eight ops", "program f(x: f32[N]) { return x + x + x + x + x + x + x + x + x }", 1);
  return 0;
}
