/* sumtree.c: does the sum tree vectorise? Three sums of the same f32 numbers, timed one after the other:
 *   sequential  left to right, one accumulator: what a plain loop means
 *   16 lanes    lane i adds x[i], x[i + 16], ...; then the lanes in order: the usual fast loop
 *   tree        adjacent pairs over the index, (x0 + x1) + (x2 + x3), ...: the order that CCN defines (num.h)
 * The tree is cut into blocks of 1024 elements; level by level each block's even elements are added to its odd
 * neighbours. Blocks meet in a stack of complete nodes, as in the interpreter (redop.c).
 *
 * Rerun:  gcc -O3 -march=native -ffp-contract=off -o /tmp/sumtree bench/sumtree.c && /tmp/sumtree
 * An argument changes the number of elements (8388608).
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 1024, LANES = 16, ROUNDS = 15 };

static float sequential(const float *x, size_t n) {
  float s = n ? x[0] : 0;
  for (size_t i = 1; i < n; i++) s += x[i];
  return s;
}

static float lanes(const float *x, size_t n) {
  float s[LANES] = {0}, r;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (size_t k = 0; k < LANES; k++) s[k] += x[i + k];
  for (; i < n; i++) s[i % LANES] += x[i];
  r = s[0];
  for (size_t k = 1; k < LANES; k++) r += s[k];
  return r;
}

/* The complete node over m = 2^k elements, m <= BLOCK. */
static float block(const float *x, size_t m) {
  float a[BLOCK / 2], b[BLOCK / 4];
  float *to = a, *from = b;
  if (m == 1) return x[0];
  for (size_t i = 0; i < m / 2; i++) to[i] = x[2 * i] + x[2 * i + 1];
  for (m /= 2; m > 1; m /= 2) {
    float *t = from;
    from = to;
    to = t;
    for (size_t i = 0; i < m / 2; i++) to[i] = from[2 * i] + from[2 * i + 1];
  }
  return to[0];
}

static float tree(const float *x, size_t n) {
  float value[65];
  unsigned level[65], top = 0;
  for (size_t i = 0; i < n;) {
    unsigned l = 0;
    while (((size_t)2 << l) <= BLOCK && !(i >> l & 1) && ((size_t)2 << l) <= n - i) l++;
    float v = block(x + i, (size_t)1 << l);
    i += (size_t)1 << l;
    while (top && level[top - 1] == l) v = value[--top] + v, l++;
    value[top] = v;
    level[top++] = l;
  }
  if (!top) return 0;
  float r = value[--top]; /* the incomplete rest: children that are not there are skipped */
  while (top) r = value[--top] + r;
  return r;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    float (*sum)(const float *, size_t);
  } ways[] = {{"sequential", sequential}, {"16 lanes", lanes}, {"tree", tree}};
  size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)1 << 23;
  float *x = malloc(n * sizeof *x + 1);
  if (!x) return 1;
  uint32_t seed = 1;
  double exact = 0;
  for (size_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)(seed >> 8) * 0x1p-24f;
    exact += x[i];
  }
  printf("%zu f32 elements, %.1f MB, median of %d rounds\n", n, (double)n * 4e-6, ROUNDS);
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
    double t[ROUNDS];
    volatile float s = 0;
    for (int k = 0; k < ROUNDS; k++) {
      double start = seconds();
      s = ways[w].sum(x, n);
      t[k] = seconds() - start;
    }
    qsort(t, ROUNDS, sizeof t[0], compare);
    double error = exact != 0 ? ((double)s - exact) / exact : 0;
    printf("%-10s  %6.2f GB/s   relative error %.1e\n", ways[w].name, (double)n * 4e-9 / t[ROUNDS / 2],
           error < 0 ? -error : error);
  }
  free(x);
  return 0;
}
