/* local.c: data-parallel Adam, f32, on 2 ranks: the local backend's fused kernel, a hand-written fused loop
 * on two threads, and an all-reduce through shared memory with a compiled loop behind it. In turns; medians;
 * results compared.
 *
 *   cc -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -o /tmp/local bench/local.c \
 *     $(pkg-config --cflags --libs ccn) -lm -lpthread && /tmp/local
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <ccn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 2, MOST = 99 };
#define LR 1e-3f

static const char text[] =
  "mesh (dp)\n"
  "program adam(g: f32[N] local, p: f32[N], m: f32[N], v: f32[N], a: f32, b: f32) {\n"
  "  gsum = allreduce(sum, g)\n"
  "  avg = gsum / size(dp)\n"
  "  m1 = update(m, 0.9 * m + 0.1 * avg)\n"
  "  v1 = update(v, 0.999 * v + 0.001 * avg * avg)\n"
  "  return update(p, p - 0.001 * (m1 / a) / (sqrt(v1 / b) + 1e-8))\n"
  "}\n"
  "import \"std/schedules\" as schedules\n";

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(ccn_status s, const char *what) {
  if (s == CCN_OK) return;
  fprintf(stderr, "%s: %s\n", what, ccn_status_name(s));
  exit(1);
}

static float *numbers(size_t n, float value) {
  float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
  if (!x) exit(1);
  for (size_t i = 0; i < n; i++) x[i] = value;
  return x;
}

/* ---- by hand ------------------------------------------------------------------------------------------- */

static struct {
  size_t n;
  float *g[RANKS], *p[RANKS], *m[RANKS], *v[RANKS], *sum[RANKS];
  float a, b;
  pthread_barrier_t meet;
  int fused;
} hand;

static void adam_piece(float *restrict p, float *restrict m, float *restrict v, const float *restrict s,
                       size_t n) {
  const float a = hand.a, b = hand.b;
  for (size_t i = 0; i < n; i++) {
    const float avg = s[i] / RANKS;
    m[i] = 0.9f * m[i] + 0.1f * avg;
    v[i] = 0.999f * v[i] + 0.001f * avg * avg;
    p[i] = p[i] - LR * (m[i] / a) / (sqrtf(v[i] / b) + 1e-8f);
  }
}

/* Each rank its half: the sum, the update, the new value to both. */
static void fused(int r) {
  const size_t from = hand.n / RANKS * (size_t)r, to = r + 1 == RANKS ? hand.n : from + hand.n / RANKS;
  float *restrict m = hand.m[0], *restrict v = hand.v[0], *restrict p = hand.p[r],
                  *restrict q = hand.p[1 - r];
  const float *restrict g = hand.g[0], *restrict h = hand.g[1];
  const float a = hand.a, b = hand.b;
  for (size_t i = from; i < to; i++) {
    const float avg = (g[i] + h[i]) / RANKS;
    m[i] = 0.9f * m[i] + 0.1f * avg;
    v[i] = 0.999f * v[i] + 0.001f * avg * avg;
    p[i] = q[i] = p[i] - LR * (m[i] / a) / (sqrtf(v[i] / b) + 1e-8f);
  }
}

static void split(int r) {
  const size_t from = hand.n / RANKS * (size_t)r, to = r + 1 == RANKS ? hand.n : from + hand.n / RANKS;
  float *restrict s = hand.sum[0], *restrict t = hand.sum[1];
  for (size_t i = from; i < to; i++) s[i] = t[i] = hand.g[0][i] + hand.g[1][i];
  pthread_barrier_wait(&hand.meet);
  adam_piece(hand.p[r], hand.m[r], hand.v[r], hand.sum[r], hand.n);
}

static void *other(void *user) {
  for (;;) {
    pthread_barrier_wait(&hand.meet);
    if (hand.fused < 0) return user;
    if (hand.fused) fused(1);
    else split(1);
    pthread_barrier_wait(&hand.meet);
  }
}

static void by_hand(int is_fused) {
  hand.fused = is_fused;
  pthread_barrier_wait(&hand.meet);
  if (is_fused) fused(0);
  else split(0);
  pthread_barrier_wait(&hand.meet);
}

static void start(void) {
  for (int r = 0; r < RANKS; r++)
    for (size_t i = 0; i < hand.n; i++) hand.p[r][i] = 1, hand.m[r][i] = hand.v[r][i] = 0;
}

/* ---- medians ------------------------------------------------------------------------------------------- */

static int by_size(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, by_size);
  return x[n / 2];
}

/* The same correction of the bias all along: it does not matter for speed. */
int main(int argc, char **argv) {
  const int64_t n = argc > 1 ? atoll(argv[1]) : 16 << 20;
  const int rounds = argc > 2 && atoi(argv[2]) < MOST ? atoi(argv[2]) : 15;
  double time[3][MOST], worst = 0;
  ccn_options o;
  ccn_context *c = NULL;
  ccn_module *module = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  ccn_tensor *t[4] = {NULL};
  pthread_t thread;
  ccn_options_init(&o, sizeof o);
  o.backend = "local";
  o.ranks = RANKS;
  must(ccn_context_create(&o, &c), "context");
  must(ccn_module_load(c, "adam", text, sizeof text - 1, &module), "module");
  must(ccn_module_function(module, "adam@schedules.zero(gsum)", &f), "function");
  must(ccn_call_create(f, &call), "call");
  hand.n = (size_t)n;
  hand.a = 0.1f, hand.b = 0.001f;
  float *start_at[4] = {numbers(hand.n, 0.5f), numbers(hand.n, 1), numbers(hand.n, 0), numbers(hand.n, 0)};
  for (int i = 0; i < 4; i++) {
    const ccn_tensor_desc d = {
      .size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n, .placement = i ? NULL : "local"};
    must(ccn_tensor_copy_in(c, &d, start_at[i], hand.n * sizeof(float), &t[i]), "tensor");
    must(ccn_call_set_tensor(call, (size_t)i, t[i]), "argument");
  }
  must(ccn_call_set_f64(call, 4, 0.1), "argument");
  must(ccn_call_set_f64(call, 5, 0.001), "argument");
  for (int r = 0; r < RANKS; r++) {
    hand.g[r] = numbers(hand.n, 0.5f);
    hand.p[r] = numbers(hand.n, 1), hand.m[r] = numbers(hand.n, 0), hand.v[r] = numbers(hand.n, 0);
    hand.sum[r] = numbers(hand.n, 0);
  }
  pthread_barrier_init(&hand.meet, NULL, RANKS);
  if (pthread_create(&thread, NULL, other, NULL)) return 1;
  must(ccn_call_run(call), "run"); /* compiles, makes copies */
  by_hand(1);
  by_hand(0);
  start();
  by_hand(1);
  float *read = numbers(hand.n, 0);
  must(ccn_tensor_read(t[1], read, hand.n * sizeof *read), "read");
  for (size_t i = 0; i < hand.n; i++) worst = fmax(worst, fabs((double)read[i] - (double)hand.p[0][i]));
  for (int k = 0; k < rounds; k++)
    for (int which = 0; which < 3; which++) {
      const double from = seconds();
      if (which == 0) must(ccn_call_run(call), "run");
      else by_hand(which == 1);
      time[which][k] = seconds() - from;
    }
  const double ccn = median(time[0], rounds), own = median(time[1], rounds), apart = median(time[2], rounds);
  printf("Adam, f32, %lld elements, %d ranks, median of %d:\n", (long long)n, RANKS, rounds);
  printf("  CCN, local backend, fused        %8.2f ms\n", ccn * 1e3);
  printf("  a hand-written fused loop        %8.2f ms  (CCN has %.0f %% of its speed)\n", own * 1e3,
         own / ccn * 100);
  printf("  all-reduce, then a compiled loop %8.2f ms  (CCN is %.2f times as fast)\n", apart * 1e3,
         apart / ccn);
  printf("  results differ by at most %g after one step\n", worst);
  hand.fused = -1;
  pthread_barrier_wait(&hand.meet);
  pthread_join(thread, NULL);
  ccn_call_release(call);
  ccn_module_release(module);
  for (int i = 0; i < 4; i++) ccn_tensor_release(t[i]);
  ccn_context_free(c);
  return worst > 1e-6;
}
