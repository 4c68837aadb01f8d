/* test_limits.c: what a host may bound and what it finds unchanged: memory, time, interrupts, floating-point
 * control. SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ccn.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static ccn_status run(ccn_context *c, const char *text) { return ccn_run(c, "m", text, strlen(text)); }

static bool says(ccn_context *c, const char *code) {
  ccn_diagnostic d = {.size = sizeof d};
  return ccn_diagnostic_get(c, 0, &d) == CCN_OK && !strcmp(d.code, code);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void *counting(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  size_t *peak = user; /* [0] now, [1] the most */
  if (new_size) {
    peak[0] += new_size;
    if (peak[0] > peak[1]) peak[1] = peak[0];
    return aligned_alloc(align < 16 ? 16 : align, (new_size + 63) / 64 * 64);
  }
  peak[0] -= old_size;
  free(p);
  return NULL;
}

static void test_memory(void) {
  size_t bytes[2] = {0, 0};
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.alloc = counting;
  o.alloc_user = bytes;
  o.memory_limit = 4 << 20;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  ok(run(c, "let x = zeros(f32[100_000])\n") == CCN_OK, "within the limit");
  ok(run(c, "let x = zeros(f32[10_000_000])\n") == CCN_OUT_OF_MEMORY, "a tensor beyond it");
  ok(run(c, "let l = []\nwhile true { l.append(\"{l}\") }\n") == CCN_OUT_OF_MEMORY, "a script that grows");
  ok(bytes[1] <= o.memory_limit, "the host's function is never asked for more");
  ok(run(c, "for i in 0..200 { let x = zeros(f32[100_000]) }\n") == CCN_OK,
     "what is not needed any more does not count");
  o.memory_limit = 64 << 20;
  ok(ccn_options_update(c, &o) == CCN_OK && run(c, "let x = zeros(f32[10_000_000])\n") == CCN_OK,
     "the limit raised");
  ccn_context_free(c);
  ok(bytes[0] == 0, "all of it is given back");
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static const char endless[] = "while true { }\n";
/* Seconds of work in one op, and in one program. */
static const char one_op[] = "let x = ones(f32[2000, 2000])\nlet y = matmul(x, matmul(x, matmul(x, x)))\n";
static const char loop[] =
  "program f(x: f32[N]) { y = x\n  repeat 1_000_000_000 { y = y * 0.5 }\n  return y }\n"
  "f(ones(f32[4]))\n";

static void test_time(void) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.time_limit_ms = 100;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  const char *const texts[] = {endless, one_op, loop};
  bool good = true;
  for (size_t i = 0; i < 3; i++) {
    const double start = seconds();
    good = good && run(c, texts[i]) == CCN_ERROR && says(c, "CCN0608") && seconds() - start < 20;
  }
  ok(good, "a loop, an op and a program that take too long");
  ok(run(c, "let a = 1\n") == CCN_OK, "each call has its own time");
  o.time_limit_ms = 0;
  ok(ccn_options_update(c, &o) == CCN_OK && run(c, "for i in 0..100_000 { }\n") == CCN_OK,
     "no limit any more");
  ccn_context_free(c);
}

/* ---- interrupts ---------------------------------------------------------------------------------------- */

typedef struct interrupter {
  ccn_context *c;
  _Atomic bool done;
} interrupter;

static void *interrupt(void *user) {
  interrupter *i = user;
  const struct timespec pause = {0, 10000000};
  while (!i->done) { /* one that comes before the call begins is forgotten */
    nanosleep(&pause, NULL);
    ccn_interrupt(i->c);
  }
  return NULL;
}

static void test_interrupts(void) {
  ccn_context *c = NULL;
  bool good = true;
  if (ccn_context_create(NULL, &c) != CCN_OK) exit(1);
  const char *const texts[] = {endless, one_op, loop};
  for (size_t k = 0; k < 3; k++) {
    interrupter i = {.c = c};
    pthread_t thread;
    if (pthread_create(&thread, NULL, interrupt, &i)) exit(1);
    const double start = seconds();
    good = good && run(c, texts[k]) == CCN_INTERRUPTED && seconds() - start < 20;
    i.done = true;
    pthread_join(thread, NULL);
    good = good && run(c, "let a = 1\n") == CCN_OK;
  }
  ok(good, "from another thread: a loop, an op, a program; the context goes on");
  ccn_interrupt(NULL);
  ccn_context_free(c);
}

/* ---- floating-point control ---------------------------------------------------------------------------- */

static bool control_kept(ccn_context *c, const char *text, ccn_status want, int rounding) {
  bool good = fesetround(rounding) == 0 && run(c, text) == want && fegetround() == rounding;
  fesetround(FE_TONEAREST);
  return good;
}

static void test_control(void) {
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
  /* 1/3 rounded, a denormal sum, a number of the script */
  static const char plain[] =
    "let x = tensor([1.0, 1e-39, 1e-39], f32)\nlet y = x / tensor([3.0, 1, 1], f32)\n"
    "assert y[0] == 0.3333333432674408\nassert sum(x[1:3]) > 1.9e-39\n"
    "assert 1 / 3 == 0.333333333333333314829616256247\n";
  ccn_context *c = NULL;
  bool good = true;
  if (ccn_context_create(NULL, &c) != CCN_OK) exit(1);
  for (size_t i = 0; i < 4; i++)
    good = good && control_kept(c, plain, CCN_OK, modes[i]) && control_kept(c, "1 +", CCN_ERROR, modes[i]) &&
           control_kept(c, "[1][3]\n", CCN_ERROR, modes[i]);
  ok(good, "whatever way the host rounds, results are the same, and it goes on so");
#if defined(__SSE2__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
  good = run(c, plain) == CCN_OK && (_mm_getcsr() & 0x8040) == 0x8040;
  _mm_setcsr(before & ~0x0080u); /* invalid operations trap */
  good = good && run(c, "let x = zeros(f32[2]) / zeros(f32[2])\n") == CCN_OK && !(_mm_getcsr() & 0x0080);
  _mm_setcsr(before);
  ok(good, "also if it flushes denormals or traps");
#endif
  ccn_context_free(c);
}

int main(void) {
  test_memory();
  test_time();
  test_interrupts();
  test_control();
  printf("1..%d\n", tests);
  return failures != 0;
}
