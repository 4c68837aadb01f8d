/* quiet.c: libFuzzer's hooks for comparisons, doing nothing: linked into harnesses whose inputs hold no words to find.
 *
 * fuzz_api's inputs are choices, byte by byte; what the library compares are its own names. Telling libFuzzer of each
 * costs a fifth of the executions and reaches no more edges. Edges are counted as ever. meson.build gives the names to
 * the linker (--wrap). SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#define UNCOUNTED __attribute__((no_sanitize("coverage")))
#define QUIET(name, type) \
  void name(type a, type b); \
  UNCOUNTED void name(type a, type b) { (void)a, (void)b; }

QUIET(__wrap___sanitizer_cov_trace_cmp1, uint8_t)
QUIET(__wrap___sanitizer_cov_trace_cmp2, uint16_t)
QUIET(__wrap___sanitizer_cov_trace_cmp4, uint32_t)
QUIET(__wrap___sanitizer_cov_trace_cmp8, uint64_t)
QUIET(__wrap___sanitizer_cov_trace_const_cmp1, uint8_t)
QUIET(__wrap___sanitizer_cov_trace_const_cmp2, uint16_t)
QUIET(__wrap___sanitizer_cov_trace_const_cmp4, uint32_t)
QUIET(__wrap___sanitizer_cov_trace_const_cmp8, uint64_t)

void __wrap___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases);
UNCOUNTED void __wrap___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases) {
  (void)value, (void)cases;
}

void __wrap___sanitizer_weak_hook_memcmp(void *pc, const void *a, const void *b, size_t n, int result);
UNCOUNTED void __wrap___sanitizer_weak_hook_memcmp(void *pc, const void *a, const void *b, size_t n,
                                                   int result) {
  (void)pc, (void)a, (void)b, (void)n, (void)result;
}

void __wrap___sanitizer_weak_hook_strcmp(void *pc, const char *a, const char *b, int result);
UNCOUNTED void __wrap___sanitizer_weak_hook_strcmp(void *pc, const char *a, const char *b, int result) {
  (void)pc, (void)a, (void)b, (void)result;
}

void __wrap___sanitizer_weak_hook_strncmp(void *pc, const char *a, const char *b, size_t n, int result);
UNCOUNTED void __wrap___sanitizer_weak_hook_strncmp(void *pc, const char *a, const char *b, size_t n,
                                                    int result) {
  (void)pc, (void)a, (void)b, (void)n, (void)result;
}
