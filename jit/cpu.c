/* cpu.c: the machine that this runs on, and levels to compile for, in LLVM's words but without LLVM: asking
 * it for the host's features would load it on every hit of the cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "jit.h"

#include <stdio.h>

static void set(ccn__jit_target *t, const char *triple, const char *cpu, bool f16) {
  memset(t, 0, sizeof *t);
  (void)snprintf(t->triple, sizeof t->triple, "%s", triple);
  (void)snprintf(t->cpu, sizeof t->cpu, "%s", cpu);
  t->native_f16 = f16;
}

bool ccn__jit_level(const char *name, ccn__jit_target *out) {
  static const struct {
    const char *name, *triple, *cpu;
    bool f16;
  } levels[] = {
    {"x86-64", "x86_64-unknown-linux-gnu", "x86-64", false},
    {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", true},
    {"x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", true},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic", true},
  };
  for (size_t i = 0; i < CCN__COUNT(levels); i++) {
    if (strcmp(levels[i].name, name) != 0) continue;
    set(out, levels[i].triple, levels[i].cpu, levels[i].f16);
    return true;
  }
  return false;
}

#if defined(__x86_64__)
#include <cpuid.h>

/* Features that change the code of kernels, and that the operating system lets programs use. */
typedef struct features {
  bool sse42, avx, avx2, f16c, bmi2, v3, avx512;
} features;

/* Which registers the system keeps when it changes threads. */
static uint64_t kept_registers(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool all(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

static features look(void) {
  enum { OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29, SSE42 = 1 << 20, FMA_MOVBE = 1 << 12 | 1 << 22 };
  enum { AVX2 = 1 << 5, BMI1 = 1 << 3, BMI2 = 1 << 8, LZCNT = 1 << 5 };
  const uint32_t wide = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
  unsigned a, b = 0, c = 0, d, ebx7 = 0, ecx_ext = 0;
  features f = {false};
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  if (!__get_cpuid_count(7, 0, &a, &ebx7, &b, &d)) ebx7 = 0;
  if (!__get_cpuid(0x80000001u, &a, &b, &ecx_ext, &d)) ecx_ext = 0;
  const uint64_t kept = c & OSXSAVE ? kept_registers() : 0;
  f.sse42 = c & SSE42;
  f.avx = all(c, AVX) && (kept & 6) == 6;
  f.avx2 = f.avx && all(ebx7, AVX2);
  f.f16c = f.avx2 && all(c, F16C);
  f.bmi2 = all(ebx7, BMI2);
  f.v3 = f.f16c && f.sse42 && all(c, FMA_MOVBE) && all(ebx7, BMI1 | BMI2) && all(ecx_ext, LZCNT);
  f.avx512 = f.avx2 && all(ebx7, wide) && (kept & 0xe6) == 0xe6;
  return f;
}

static void add(ccn__jit_target *t, bool there, const char *feature) {
  const size_t n = strlen(t->features);
  if (there) (void)snprintf(t->features + n, sizeof t->features - n, "%s+%s", n ? "," : "", feature);
}

bool ccn__jit_host(ccn__jit_target *out) {
  const features f = look();
  set(out, "x86_64-unknown-linux-gnu", "x86-64", f.f16c);
  add(out, f.sse42, "sse4.2");
  add(out, f.avx, "avx");
  add(out, f.avx2, "avx2");
  add(out, f.f16c, "f16c");
  add(out, f.bmi2, "bmi2");
  add(out, f.avx512, "avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd");
  return true;
}

bool ccn__jit_host_runs(const char *level) {
  const features f = look();
  if (strcmp(level, "x86-64-v4") == 0) return f.v3 && f.avx512;
  if (strcmp(level, "x86-64-v3") == 0) return f.v3;
  return strcmp(level, "x86-64") == 0;
}
#elif defined(__aarch64__)
bool ccn__jit_host(ccn__jit_target *out) { return ccn__jit_level("aarch64", out); }
bool ccn__jit_host_runs(const char *level) { return strcmp(level, "aarch64") == 0; }
#else
bool ccn__jit_host(ccn__jit_target *out) {
  (void)out;
  return false;
}
bool ccn__jit_host_runs(const char *level) {
  (void)level;
  return false;
}
#endif
