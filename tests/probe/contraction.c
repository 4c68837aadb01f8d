/* contraction.c: compiled with the project's flags, and for a machine with fma, it must neither fuse a product and a
 * sum nor reorder a sum: the flags of meson.build are what makes results the same everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

NOINLINE static float multiply_add(float a, float b, float c) { return a * b + c; }

NOINLINE static float sum(const float *x, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  return s;
}

NOINLINE static double multiply_subtract(const double *a, const double *b, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s -= a[i] * b[i];
  return s;
}

static void show(const char *name, const void *x, size_t size) {
  unsigned char bytes[8];
  memcpy(bytes, x, size);
  printf("%s", name);
  for (size_t i = size; i-- > 0;) printf("%s%02x", i + 1 == size ? " " : "", bytes[i]);
  printf("\n");
}

int main(void) {
  /* (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last term is lost when the product is rounded, kept by an fma */
  volatile float a = 1.0f + 0x1p-12f, c = -1.0f;
  float f = multiply_add(a, a, c);
  show("product and sum", &f, sizeof f);

  static float x[1024];
  for (int i = 0; i < 1024; i++) x[i] = i % 2 ? 0x1p-24f : 1.0f;
  float s = sum(x, 1024);
  show("sum in order", &s, sizeof s);

  static double y[64];
  for (int i = 0; i < 64; i++) y[i] = 1.0 + i * 0x1p-30;
  double d = multiply_subtract(y, y, 64);
  show("products subtracted", &d, sizeof d);
  return 0;
}
