/* test_fused.c: the fused optimizers and the tail of attention, from their programs and schedules: kernel and
 * machine code against the reference interpreter on 1, 2, 3, 4 and 8 ranks (and more than are unrolled), at
 * odd sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "jit_kit.h"

#define ZERO \
  "schedule zero_step(x) {\n  (rs, ag) = split(x)\n  (comp, gs) = reorder(after(ag), ag)\n" \
  "  shard(updated(comp))\n" \
  "  fuse(rs, comp, gs)\n}\n"

/* The mesh, programs and schedules of an example, without what its script does with them; then `tail`. */
static char *read_example(const char *name, const char *tail) {
  char path[512], line[512];
  snprintf(path, sizeof path, CCN_SOURCE_ROOT "/examples/%s.ccn", name);
  FILE *f = fopen(path, "r");
  if (!f) exit(3);
  char *text = calloc(1, 1 << 16);
  int depth = 0;
  while (fgets(line, sizeof line, f) && strlen(text) < 1 << 15) {
    const bool definition =
      strncmp(line, "mesh", 4) == 0 || strncmp(line, "program", 7) == 0 || strncmp(line, "schedule", 8) == 0;
    const bool keep = depth > 0 || definition;
    for (const char *p = line; keep && *p && *p != '#'; p++) depth += (*p == '{') - (*p == '}');
    if (keep) strcat(text, line);
  }
  fclose(f);
  return strcat(text, tail);
}

static void small(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  const uint64_t m = mix((uint64_t)i * 0x9e3779b97f4a7c15u + rank * 977u + (uint64_t)salt * 31337u + 1);
  if (ccn__dtype_is_float(t)) ccn__store_f64(t, out, 0.001 + (double)(m >> 11) * 0x1p-53);
  else ccn__store_i64(t, out, (int64_t)(m % 100));
}

#define ADAM ZERO "let fast = adam with zero_step(adam.gsum)\n"
static const int64_t lengths[] = {2112, 33, 1, 0, 1500};

static void check(const char *name, const char *tail, const int64_t *extent, const char *what,
                  bool in_place) {
  static const int ranks[] = {1, 2, 3, 4, 8, 11};
  ccn__jit_target t;
  char *script = read_example(name, tail);
  bool good = true;
  uint32_t aliased = 0;
  (void)ccn__jit_host(&t);
  for (size_t i = 0; i < CCN__COUNT(ranks) && good; i++) {
    shaped s;
    char mesh[16];
    snprintf(mesh, sizeof mesh, "%d", ranks[i]);
    shaped_open(&s, script, "scheduled", mesh, extent, lengths, CCN__COUNT(lengths));
    shaped_args(&s, small);
    shaped_group(&s, 1);
    good = check_kernel(&s, &t, name, &aliased);
    if (!good) printf("# on %d ranks\n", ranks[i]);
    shaped_close(&s);
  }
  ok(good, what);
  if (in_place) ok(aliased > 0, "  some of it in place");
  free(script);
}

int main(void) {
  if (!open_plugin()) return skip_without_llvm("fused kernels");
  check("adam", ADAM, (const int64_t[]){5003}, "fused Adam", true);
  check("adam", ADAM, (const int64_t[]){5}, "fused Adam, fewer elements than lanes", true);
  check("adam_mixed", ZERO "let fast = adam_mixed with zero_step(adam_mixed.gsum)\n", (const int64_t[]){5003},
        "fused Adam in mixed precision", true);
  check("sgd", ZERO "let fast = sgd with zero_step(sgd.gsum)\n", (const int64_t[]){2047}, "fused SGD", true);
  check("sgd_momentum", ZERO "let fast = sgd_momentum with zero_step(sgd_momentum.gsum)\n",
        (const int64_t[]){777}, "fused SGD with momentum", true);
  check("lamb", ZERO "let fast = lamb with zero_step(lamb.gsum)\n", NULL,
        "fused LAMB over a bundle, norms in one kernel", true);
  check("attention_out", "let fast = out with overlapped\n", (const int64_t[]){3, 13, 88},
        "the tail of attention: reduce-scatter, dropout, residual, all-gather", false);
  return finish_tests();
}
