/* test_matrix.c: every elementwise op, cast and random op × dtype × level of the processor, tails of all
 * lengths and random bit patterns: the machine code's bits are the interpreter's. Equal texts have equal
 * code: a kernel built for another length is run by the code made for the first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "qemu.h"

static const ccn__dtype dtypes[] = {CCN__F64, CCN__F32, CCN__F16, CCN__BF16, CCN__I64,
                                    CCN__I32, CCN__I16, CCN__I8,  CCN__U8,   CCN__BOOL};
static const char *const levels[] = {"x86-64", "x86-64-v3", "x86-64-v4", "aarch64"};
static const int64_t sizes[] = {1, 7, 64, 67, 1029};

static const char *level; /* of what is being done */
static ccn__jit_target target;
static uint32_t fma_seen, emulated;
static bool qemu;

/* Any bits: infinities, NaNs, denormals, both zeros; some small numbers, so that divisions have
 * remainders. */
static void anything(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  const uint64_t m = mix((uint64_t)i * 0x9e3779b97f4a7c15u + rank * 977u + (uint64_t)salt * 31337u + 1);
  if (t == CCN__BOOL) {
    *(uint8_t *)out = (uint8_t)(m >> 20 & 1);
  } else if (m >> 32 & 1) {
    memcpy(out, &m, ccn__dtype_size(t));
  } else if (ccn__dtype_is_float(t)) {
    static const double some[] = {0,    -0.0, 1,    -1,       0.5,   2.5,      -3,    7,
                                  1e-3, 88,   -104, INFINITY, 1e300, 4.9e-324, 65520, 3};
    ccn__store_f64(t, out, some[m & 15] * (m >> 8 & 1 ? 1 : (double)(m >> 11) * 0x1p-53));
  } else {
    ccn__store_i64(t, out, (int64_t)(m >> 40 & 7) - 3);
  }
}

/* The same without zeros. */
static void no_zero(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  anything(out, t, rank, i, salt);
  if (!ccn__dtype_is_float(t) && ccn__load_i64(t, out) == 0) ccn__store_i64(t, out, 3);
}

/* ---- batches: a few ops on the same operands, in one kernel -------------------------------------------- */

typedef struct batch {
  char name[160];
  void (*fill)(shaped *s, const struct batch *b, int64_t n);
  ccn__dtype t, to[MAX_OUT];
  ccn__op op[MAX_OUT];
  uint32_t count;
} batch;

static ccn__type vec(shaped *s, ccn__dtype t, int64_t n) {
  char dims[24];
  snprintf(dims, sizeof dims, "%lld", (long long)n);
  return ty(&s->k, t, dims, "R");
}

static void fill_elementwise(shaped *s, const batch *b, int64_t n) {
  const ccn__type t = vec(s, b->t, n), is = vec(s, CCN__BOOL, n);
  const ccn__id x = param(&s->k, t, anything, 1), y = param(&s->k, t, no_zero, 2),
                c = param(&s->k, is, anything, 3);
  for (uint32_t i = 0; i < b->count; i++) {
    const ccn__op_info *info = &ccn__op_table[b->op[i]];
    const ccn__type out = info->result == CCN__RES_BOOL ? is : t;
    const ccn__id in[3] = {b->op[i] == CCN__OP_WHERE ? c : x, b->op[i] == CCN__OP_WHERE ? x : y, y};
    returns(&s->k, add_n(&s->k, b->op[i], out, NONE, (uint32_t)info->nin, in));
  }
}

static void fill_casts(shaped *s, const batch *b, int64_t n) {
  const ccn__id x = param(&s->k, vec(s, b->t, n), anything, 1);
  for (uint32_t i = 0; i < b->count; i++) returns(&s->k, add(&s->k, CAST, vec(s, b->to[i], n), NONE, x));
}

static bool takes(ccn__op op, ccn__dtype t) {
  const ccn__op_info *info = &ccn__op_table[op];
  if (info->kind != CCN__KIND_ELEM || info->kernel == CCN__K_COUNT) return false;
  if (info->dtypes == CCN__DT_FLOAT && !ccn__dtype_is_float(t)) return false;
  if (info->dtypes == CCN__DT_NUM && t == CCN__BOOL) return false;
  /* fmod is a function of this process */
  if (qemu && strcmp(level, "aarch64") == 0 && ccn__dtype_is_float(t) &&
      (op == CCN__OP_FLOORDIV || op == CCN__OP_MOD))
    return false;
  return ccn__kernel_exists((ccn__kernel_id)info->kernel, ccn__dtype_acc(t));
}

static void fill_random(shaped *s, const batch *b, int64_t n) {
  const ccn__type t = vec(s, b->t, n), one = ty(&s->k, CCN__I32, "", "R");
  const ccn__id step = param(&s->k, one, noise, 4);
  const ccn__attr seed = {.key = CCN__A_SEED, .lit = lit_of(&s->k, -77)},
                  p = {.key = CCN__A_P, .lit = lit_float(&s->k, 0.3)};
  const ccn__attr low = {.key = CCN__A_LOW, .lit = lit_of(&s->k, -3)},
                  high = {.key = CCN__A_HIGH, .lit = lit_of(&s->k, 100)};
  const ccn__attr lowest = {.key = CCN__A_LOW, .lit = lit_of(&s->k, INT64_MIN)},
                  highest = {.key = CCN__A_HIGH, .lit = lit_of(&s->k, INT64_MAX)};
  if (ccn__dtype_is_float(b->t)) {
    const ccn__id x = param(&s->k, t, noise, 5);
    returns(&s->k, add(&s->k, RAND, t, ATTRS(seed), step));
    returns(&s->k, add(&s->k, RANDN, t, ATTRS(seed), step));
    returns(&s->k, add(&s->k, DROPOUT, t, ATTRS(p, seed), x, step));
  } else if (b->t == CCN__BOOL) {
    returns(&s->k, add(&s->k, BERNOULLI, t, ATTRS(p, seed), step));
  } else {
    returns(&s->k, add(&s->k, RANDINT, t, ATTRS(low, high, seed), step));
    if (b->t == CCN__I64) returns(&s->k, add(&s->k, RANDINT, t, ATTRS(lowest, highest, seed), step));
  }
  if (b->t != CCN__BOOL) returns(&s->k, add0(&s->k, IOTA, t, NONE));
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* Instructions that round once where two are asked for. */
static void look_for_fma(const ccn__kern *k) {
  char *text = NULL, why[256];
  if (plugin->text(k, &target, 1, &text, why, sizeof why)) return;
  fma_seen += strstr(text, "vfmadd") || strstr(text, "vfmsub") || strstr(text, "vfnmadd") ||
              strstr(text, "fmla") || strstr(text, "fmadd") || strstr(text, "fmsub");
  plugin->release(text);
}

/* AArch64: the loader takes the object, and an emulator, where there is one, gets the interpreter's bits. */
static bool check_object(shaped *s, const ccn__kern *k, const char *what) {
  void *object;
  size_t size;
  char why[256];
  const char *reason = NULL;
  if (plugin->compile(k, &target, &object, &size, why, sizeof why)) return printf("# %s\n", why), false;
  bool good = ccn__jit_check(object, size, EM_AARCH64, &reason);
  look_for_fma(k);
  if (!good) printf("# %s\n", reason);
  if (good && qemu) {
    machine m;
    machine_open(&m, s, k, NULL, false);
    good = qemu_loops(k, object, size, &m) && interpret(s) && outs_equal(s, &m, what);
    good &= machine_close(&m);
    emulated++;
  }
  plugin->release(object);
  return good;
}

static bool run_batch(const batch *b) {
  bool good = true;
  for (size_t i = 0; i < CCN__COUNT(sizes) && good; i++) {
    shaped s;
    ccn__kern_in in;
    shaped_new(&s, "1");
    b->fill(&s, b, sizes[i]);
    shaped_ready(&s);
    const ccn__kern *k = build(&s, &in);
    if (!k) good = printf("# %s refused: %s\n", b->name, in.why) < 0;
    else if (strcmp(level, "aarch64") == 0)
      good = (i != 0 && i + 1 != CCN__COUNT(sizes)) || check_object(&s, k, b->name);
    else {
      const compiled *c = code_of(&s, k, &target);
      good = c && check_code(&s, k, c->fn, b->name, NULL);
      if (i == 1) look_for_fma(k);
    }
    shaped_close(&s);
  }
  return good;
}

static bool elementwise(ccn__dtype t) {
  batch b = {.fill = fill_elementwise, .t = t};
  bool good = true;
  for (uint32_t op = 0; op <= CCN__OP_COUNT; op++) {
    if (b.count == MAX_OUT || (op == CCN__OP_COUNT && b.count)) {
      snprintf(b.name, sizeof b.name, "%s.. of %s on %s", ccn__op_table[b.op[0]].name, ccn__dtype_name(t),
               level);
      good &= run_batch(&b);
      b.count = 0;
    }
    if (op < CCN__OP_COUNT && takes((ccn__op)op, t)) b.op[b.count++] = (ccn__op)op;
  }
  return good;
}

static bool casts(ccn__dtype t) {
  batch b = {.fill = fill_casts, .t = t};
  bool good = true;
  for (size_t i = 0; i <= CCN__COUNT(dtypes); i++) {
    if (b.count == MAX_OUT || (i == CCN__COUNT(dtypes) && b.count)) {
      snprintf(b.name, sizeof b.name, "casts of %s on %s", ccn__dtype_name(t), level);
      good &= run_batch(&b);
      b.count = 0;
    }
    if (i < CCN__COUNT(dtypes) && dtypes[i] != t) b.to[b.count++] = dtypes[i];
  }
  return good;
}

int main(void) {
  if (!open_plugin()) return skip_without_llvm("the kernel matrix");
  qemu = qemu_there();
  for (size_t l = 0; l < CCN__COUNT(levels); l++) {
    char what[100];
    level = levels[l];
    (void)ccn__jit_level(level, &target);
    if (strcmp(level, "aarch64") != 0 && !ccn__jit_host_runs(level)) {
      printf("ok %d - %s # skip: not on this processor\n", ++tests, level);
      continue;
    }
    for (size_t i = 0; i < CCN__COUNT(dtypes); i++) {
      batch b = {.fill = fill_random, .t = dtypes[i]};
      snprintf(what, sizeof what, "%s: elementwise ops of %s", level, ccn__dtype_name(dtypes[i]));
      ok(elementwise(dtypes[i]), what);
      snprintf(what, sizeof what, "%s: casts of %s", level, ccn__dtype_name(dtypes[i]));
      ok(casts(dtypes[i]), what);
      snprintf(b.name, sizeof b.name, "%s: random numbers of %s", level, ccn__dtype_name(dtypes[i]));
      ok(run_batch(&b), b.name);
    }
  }
  ok(fma_seen == 0, "no instruction contracts");
  if (qemu) ok(emulated > 50, "AArch64 was run by an emulator");
  else printf("ok %d - AArch64 was run by an emulator # skip: no qemu-aarch64\n", ++tests);
  return finish_tests();
}
