/* test_interp_ops.c: single ops of the reference interpreter against plain loops, under placements that must give the
 * same values, and the driver: blocks, loops, watched names, the first NaN, errors with an index.
 * The data are small whole numbers, so that every sum is exact and equality is equality.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_kit.h"

enum { SUM = CCN__RED_SUM };

/* -4 .. 4 */
static void small(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  const int64_t v = (int64_t)(mix((uint64_t)i * 7919 + rank * 104729u + (uint64_t)salt) % 9) - 4;
  ccn__store_i64(t, out, t == CCN__BOOL ? v > 0 : t == CCN__U8 ? v + 4 : v);
}

static double value(ccn__dtype t, int64_t i, int salt) {
  char e[8];
  small(e, t, 0, i, salt);
  return ccn__load_f64(t, e);
}

/* 0 .. 6, as indices */
static void pick(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  (void)rank;
  ccn__store_i64(t, out, (int64_t)(mix((uint64_t)i * 31 + (uint64_t)salt) % 7));
}

static int64_t picked(int64_t i, int salt) { return (int64_t)(mix((uint64_t)i * 31 + (uint64_t)salt) % 7); }

/* Result number `i` of the last run, whole, as f64; -12345 for what no rank has. */
static bool equals(kit *k, int i, int64_t n, double (*want)(int64_t e)) {
  const ccn__tensor *t = k->result[i];
  char *got = whole(k, t);
  bool good = true;
  for (int64_t e = 0; e < n; e++) {
    const double v =
      ccn__load_f64((ccn__dtype)t->dtype, got + (size_t)e * ccn__dtype_size((ccn__dtype)t->dtype));
    if (good && v != want(e)) printf("# element %lld is %g, not %g\n", (long long)e, v, want(e));
    good &= v == want(e);
  }
  free(got);
  return good;
}

/* ---- elementwise -------------------------------------------------------------------------------------------------- */

static ccn__dtype now; /* the dtype of the test that runs */

static double want_column(int64_t e) { return value(now, e, 1) * value(now, e / 300, 2); }
static double want_row(int64_t e) { return value(now, e, 1) - value(now, e % 300, 3); }
static double want_scalar(int64_t e) { return fmax(value(now, e, 1), value(now, 0, 4)); }
static double want_where(int64_t e) {
  return value(CCN__BOOL, e % 300, 5) != 0 ? value(now, e, 1) : value(now, e / 300, 2);
}
static double want_less(int64_t e) { return value(now, e, 1) < value(now, e % 300, 3); }
static double want_cast(int64_t e) { return value(now, e, 1); }

static void test_elementwise(void) {
  static const ccn__dtype types[] = {CCN__F32, CCN__F16, CCN__BF16, CCN__F64, CCN__I32, CCN__I8};
  static const char *const places[] = {"R", "S0", "S1", "S1u7"};
  bool good = true;
  for (size_t ti = 0; ti < CCN__COUNT(types); ti++)
    for (size_t p = 0; p < CCN__COUNT(places); p++)
      for (int n = 1; n <= 5; n += 2) {
        kit k;
        kit_open_n(&k, n);
        const ccn__dtype t = now = types[ti];
        const bool col = p == 1; /* the [17, 1] operand may be cut with its dim */
        const ccn__id x = param(&k, ty(&k, t, "17,300", places[p]), small, 1);
        const ccn__id c = param(&k, ty(&k, t, "17,1", col ? "S0" : "R"), small, 2);
        const ccn__id r = param(&k, ty(&k, t, "300", "R"), small, 3),
                      s = param(&k, ty(&k, t, "", "R"), small, 4);
        ccn__type out = ty(&k, t, "17,300", places[p]), flags = ty(&k, CCN__BOOL, "17,300", places[p]);
        returns(&k, add(&k, MUL, out, NONE, x, c));
        returns(&k, add(&k, SUB, out, NONE, x, r));
        returns(&k, add(&k, MAXIMUM, out, NONE, x, s));
        returns(&k, add(&k, LT, flags, NONE, x, r));
        returns(&k, add(&k, CAST, ty(&k, CCN__F64, "17,300", places[p]), NONE, x));
        good &= run(&k);
        good = good && equals(&k, 0, 5100, want_column) && equals(&k, 1, 5100, want_row) &&
               equals(&k, 2, 5100, want_scalar) && equals(&k, 3, 5100, want_less) &&
               equals(&k, 4, 5100, want_cast);
        kit_close(&k);
      }
  ok(good, "elementwise: broadcasting, replicated operands at the rank's offset, comparisons, casts");
}

static void test_where(void) {
  bool good = true;
  static const ccn__dtype types[] = {CCN__F32, CCN__F16, CCN__I8};
  for (size_t i = 0; i < CCN__COUNT(types); i++) {
    kit k;
    kit_open(&k, "4");
    const ccn__dtype t = now = types[i];
    const ccn__id c = param(&k, ty(&k, CCN__BOOL, "300", "R"), small, 5),
                  x = param(&k, ty(&k, t, "17,300", "S1"), small, 1);
    const ccn__id y = param(&k, ty(&k, t, "17,1", "R"), small, 2);
    returns(&k, add(&k, WHERE, ty(&k, t, "17,300", "S1"), NONE, c, x, y));
    good &= run(&k) && equals(&k, 0, 5100, want_where);
    kit_close(&k);
  }
  ok(good, "where, with all three operands laid out differently");
}

static bool fails(kit *k, uint16_t code, const char *words) {
  run_once(k, false);
  const ccn__diag *d = k->diags.last;
  const bool good = k->status == CCN_ERROR && d && d->code == code && strstr(d->message, words);
  if (!good) printf("# status %d: %s\n", k->status, d ? d->message : "no message");
  return good;
}

static void zero_at_19(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  (void)rank, (void)salt;
  ccn__store_i64(t, out, i != 19);
}

static void test_division(void) {
  kit k;
  kit_open(&k, "3");
  const ccn__id x = param(&k, ty(&k, CCN__I16, "4,6", "S0"), small, 1),
                y = param(&k, ty(&k, CCN__I16, "4,6", "S0"), zero_at_19, 0);
  returns(&k, add(&k, FLOORDIV, ty(&k, CCN__I16, "4,6", "S0"), NONE, x, y));
  ok(fails(&k, 606, "element [3, 1]"), "integer division by zero names the global index");
  kit_close(&k);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------------- */

static double want_transposed(int64_t e) {
  return value(now, e % 6 * 35 + e / 6, 1);
} /* [6, 5, 7] -> [5, 7, 6] */
static double want_same(int64_t e) { return value(now, e, 1); }
static double want_joined(int64_t e) { /* [6, 5, 7] and [6, 2, 7] along 1 */
  const int64_t i = e / 49, j = e / 7 % 7, l = e % 7;
  return j < 5 ? value(now, i * 35 + j * 7 + l, 1) : value(now, i * 14 + (j - 5) * 7 + l, 2);
}
static double want_part(int64_t e) { return value(now, e / 3 * 35 + 14 + 2 + e % 3, 1); } /* x[:, 2, 2:5] */

static void test_shapes(void) {
  bool good = true;
  for (int n = 1; n <= 4; n++)
    for (int cut = 0; cut < 2; cut++) {
      kit k;
      kit_open_n(&k, n);
      const ccn__dtype t = now = n & 1 ? CCN__I16 : CCN__F64;
      const char *p = cut ? "S0" : "R";
      const int64_t perm[] = {1, 2, 0}, drop[] = {0, 1, 0};
      const ccn__dim *const start[] = {dim_of(&k, 0), dim_of(&k, 2), dim_of(&k, 2)};
      const ccn__dim *const count[] = {dim_of(&k, 6), dim_of(&k, 1), dim_of(&k, 3)};
      const ccn__id x = param(&k, ty(&k, t, "6,5,7", p), small, 1),
                    y = param(&k, ty(&k, t, "6,2,7", "R"), small, 2);
      returns(&k, add(&k, TRANSPOSE, ty(&k, t, "5,7,6", cut ? "S2" : "R"),
                      ATTRS({.key = CCN__A_PERM, .n = 3, .ints = perm}), x));
      returns(&k, add(&k, RESHAPE, ty(&k, t, "30,7", cut ? "S0u5" : "R"), NONE, x));
      returns(&k, add(&k, CONCAT, ty(&k, t, "6,7,7", p), ATTRS(AI(DIM, 1)), x, y));
      returns(&k, add(&k, INDEX, ty(&k, t, "6,3", p),
                      ATTRS({.key = CCN__A_START, .n = 3, .dims = start},
                            {.key = CCN__A_COUNT, .n = 3, .dims = count},
                            {.key = CCN__A_DROP, .n = 3, .ints = drop}),
                      x));
      good &= run(&k);
      good = good && equals(&k, 0, 210, want_transposed) && equals(&k, 1, 210, want_same) &&
             equals(&k, 2, 294, want_joined) && equals(&k, 3, 18, want_part);
      kit_close(&k);
    }
  ok(good, "transpose, reshape with units, concat, index");
  kit k;
  kit_open(&k, "2");
  const ccn__id x = param(&k, ty(&k, CCN__F32, "6,5", "S0"), small, 1);
  returns(&k, add(&k, RESHAPE, ty(&k, CCN__F32, "5,6", "S0"), NONE, x));
  run_once(&k, false);
  ok(k.status == CCN_INTERNAL && k.diags.last->code == 699,
     "a reshape that would move elements is a defect, not a wrong answer");
  kit_close(&k);
}

/* ---- products ----------------------------------------------------------------------------------------------------------- */

static int64_t K;
static double want_product(int64_t e) { /* x [3, 5, K] y [K, 300] */
  double s = 0;
  for (int64_t q = 0; q < K; q++) s += value(now, e / 300 * K + q, 1) * value(now, q * 300 + e % 300, 2);
  return s;
}
static double want_batched(int64_t e) { /* x [3, 5, K] z [2, 1, K, 4] -> [2, 3, 5, 4] */
  double s = 0;
  for (int64_t q = 0; q < K; q++)
    s += value(now, e / 4 % 15 * K + q, 1) * value(now, e / 60 * K * 4 + q * 4 + e % 4, 3);
  return s;
}

static bool products(ccn__dtype t, int n, const char *x, const char *y, const char *out) {
  kit k;
  char dims[3][32];
  kit_open_n(&k, n);
  now = t;
  snprintf(dims[0], 32, "3,5,%lld", (long long)K);
  snprintf(dims[1], 32, "%lld,300", (long long)K);
  snprintf(dims[2], 32, "2,1,%lld,4", (long long)K);
  const bool batched = strcmp(y, "R") == 0 && strcmp(x, "S1") != 0;
  const ccn__id a = param(&k, ty(&k, t, dims[0], x), small, 1),
                b = param(&k, ty(&k, t, dims[1], y), small, 2);
  const ccn__id c = param(&k, ty(&k, t, dims[2], "R"), small, 3);
  ccn__id m = add(&k, MATMUL, ty(&k, t, "3,5,300", out), NONE, a, b);
  if (out[0] == 'P') m = add(&k, ALLREDUCE, ty(&k, t, "3,5,300", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), m);
  returns(&k, m);
  if (batched) returns(&k, add(&k, MATMUL, ty(&k, t, "2,3,5,4", x[0] == 'S' ? "S1" : "R"), NONE, a, c));
  bool good = run(&k) && equals(&k, 0, 4500, want_product);
  if (batched) good = good && equals(&k, 1, 120, want_batched);
  if (!good) printf("# %s x %s y %s ranks %d K %lld\n", ccn__dtype_name(t), x, y, n, (long long)K);
  kit_close(&k);
  return good;
}

static void test_matmul(void) {
  static const ccn__dtype types[] = {CCN__F32, CCN__F64, CCN__F16};
  static const int64_t inner[] = {0, 1, 7, 131};
  bool good = true;
  for (size_t t = 0; t < CCN__COUNT(types); t++)
    for (size_t q = 0; q < CCN__COUNT(inner); q++)
      for (int n = 1; n <= 4; n++) {
        K = inner[q];
        good &= products(types[t], n, "R", "R", "R") && products(types[t], n, "S0", "R", "S0") &&
                products(types[t], n, "S1", "R", "S1") && products(types[t], n, "R", "S1", "S2") &&
                products(types[t], n, "S2", "S0", "P1");
      }
  ok(good, "matmul: batches, cuts of every dim, a cut contraction, K = 0, 1, 7, 131");
}

static double want_conv(
  int64_t e) { /* x [2, 3, 7, 6] w [4, 3, 3, 2] -> [2, 4, 7, 6], padded 1 above, 0 left */
  const int64_t q = e % 6, h = e / 6 % 7, o = e / 42 % 4, b = e / 168;
  double s = 0;
  for (int64_t c = 0; c < 3; c++)
    for (int64_t i = 0; i < 3; i++)
      for (int64_t k = 0; k < 2; k++) {
        const int64_t row = h + i - 1, col = q + k;
        if (row < 0 || row >= 7 || col >= 6) continue;
        s += value(now, ((b * 3 + c) * 7 + row) * 6 + col, 1) * value(now, ((o * 3 + c) * 3 + i) * 2 + k, 2);
      }
  return s;
}

static void test_conv2d(void) {
  static const char *const cases[][3] = {
    {"R", "R", "R"}, {"S0", "R", "S0"}, {"R", "S0", "S1"}, {"S1", "S1", "P1"}};
  bool good = true;
  for (size_t i = 0; i < CCN__COUNT(cases); i++)
    for (int n = 1; n <= 4; n++) {
      kit k;
      kit_open_n(&k, n);
      const ccn__dtype t = now = n == 2 ? CCN__F64 : n == 3 ? CCN__BF16 : CCN__F32;
      const ccn__id x = param(&k, ty(&k, t, "2,3,7,6", cases[i][0]), small, 1);
      const ccn__id w = param(&k, ty(&k, t, "4,3,3,2", cases[i][1]), small, 2);
      ccn__id c = add(&k, CONV2D, ty(&k, t, "2,4,7,6", cases[i][2]), NONE, x, w);
      if (i == 3) c = add(&k, ALLREDUCE, ty(&k, t, "2,4,7,6", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), c);
      returns(&k, c);
      good &= run(&k) && equals(&k, 0, 336, want_conv);
      kit_close(&k);
    }
  ok(good, "conv2d: whole, and cut along batch, filters and channels");
}

/* ---- take, scatter_add, one_hot, iota, rank ------------------------------------------------------------------------------ */

static double want_taken(int64_t e) { /* x [3, 7, 2] idx [5, 4] dim 1 -> [3, 5, 4, 2] */
  return value(now, e / 40 * 14 + picked(e / 2 % 20, 2) * 2 + e % 2, 1);
}
static double want_scattered(int64_t e) { /* v [20, 3] -> [7, 3] */
  double s = 0;
  for (int64_t i = 0; i < 20; i++)
    if (picked(i, 2) == e / 3) s += value(now, i * 3 + e % 3, 1);
  return s;
}
static double want_hot(int64_t e) { return picked(e / 7, 2) == e % 7; }
static double want_iota(int64_t e) { return (double)e; }
static double want_iota1(int64_t e) { return (double)(e / 4 % 5); }

static void test_indices(void) {
  static const char *const takes[][3] = {{"R", "R", "R"},   {"R", "S0", "S1"}, {"R", "S1", "S2"},
                                         {"S0", "R", "S0"}, {"S2", "R", "S3"}, {"S1", "R", "P1"}};
  static const char *const adds[][3] = {
    {"R", "R", "R"}, {"R", "S1", "S1"}, {"S0", "S0", "P1"}, {"R", "S0", "P1"}, {"S0", "R", "P1"}};
  bool take = true, scatter = true, others = true;
  for (int n = 1; n <= 5; n++) {
    for (size_t i = 0; i < CCN__COUNT(takes); i++) {
      kit k;
      kit_open_n(&k, n);
      const ccn__dtype t = now = n & 1 ? CCN__F16 : CCN__I64;
      const ccn__id x = param(&k, ty(&k, t, "3,7,2", takes[i][0]), small, 1);
      const ccn__id idx = param(&k, ty(&k, CCN__I32, "5,4", takes[i][1]), pick, 2);
      ccn__id y = add(&k, TAKE, ty(&k, t, "3,5,4,2", takes[i][2]), ATTRS(AI(DIM, 1)), x, idx);
      if (i == 5) y = add(&k, ALLREDUCE, ty(&k, t, "3,5,4,2", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), y);
      returns(&k, y);
      take &= run(&k) && equals(&k, 0, 120, want_taken);
      kit_close(&k);
    }
    for (size_t i = 0; i < CCN__COUNT(adds); i++) {
      kit k;
      kit_open_n(&k, n);
      const ccn__dtype t = now = n & 1 ? CCN__F16 : CCN__I8;
      const ccn__id idx = param(&k, ty(&k, CCN__U8, "20", adds[i][0]), pick, 2),
                    v = param(&k, ty(&k, t, "20,3", adds[i][1]), small, 1);
      ccn__id y = add(&k, SCATTER_ADD, ty(&k, t, "7,3", adds[i][2]), NONE, idx, v);
      if (i >= 2) y = add(&k, ALLREDUCE, ty(&k, t, "7,3", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), y);
      returns(&k, y);
      scatter &= run(&k) && equals(&k, 0, 21, want_scattered);
      kit_close(&k);
    }
    kit k;
    kit_open_n(&k, n);
    const ccn__id idx = param(&k, ty(&k, CCN__I64, "5,4", "S0"), pick, 2);
    returns(&k, add(&k, ONE_HOT, ty(&k, CCN__F32, "5,4,7", "S0"), NONE, idx));
    returns(&k, add0(&k, IOTA, ty(&k, CCN__I16, "3,5,4", "S2"), NONE));
    returns(&k, add0(&k, IOTA, ty(&k, CCN__F16, "3,5,4", "S1"), ATTRS(AI(DIM, 1))));
    returns(&k, add0(&k, RANK, ty(&k, CCN__I32, "", "L"), ATTRS(AI(AXIS, 0))));
    others &= run(&k) && equals(&k, 0, 140, want_hot) && equals(&k, 1, 60, want_iota) &&
              equals(&k, 2, 60, want_iota1) && at(k.result[3], (uint32_t)n - 1, 0) == n - 1;
    kit_close(&k);
  }
  ok(take, "take: every placement, also rows of other ranks");
  ok(scatter, "scatter_add: every placement");
  ok(others, "one_hot, iota (linear and along a dim), rank");
  kit k;
  kit_open(&k, "2");
  const ccn__id x = param(&k, ty(&k, CCN__F32, "6,2", "S0"), small, 1),
                idx = param(&k, ty(&k, CCN__I32, "40", "R"), pick, 2);
  returns(&k, add(&k, TAKE, ty(&k, CCN__F32, "40,2", "P1"), ATTRS(AI(DIM, 0)), x, idx));
  ok(fails(&k, 605, "index 6 is outside the extent 6"),
     "an index outside the global extent is CCN0605 on every placement");
  kit_close(&k);
}

/* ---- blocks and loops -------------------------------------------------------------------------------------------------- */

static uint32_t new_region(kit *k, ccn__id owner) {
  volatile uint32_t id = 0;
  SAFE(k, id = k->g->regions.n; *CCN__PUSH(&k->arena, &k->g->regions) = (ccn__region){.owner = owner});
  k->g->nodes.at[owner].body = id;
  return id;
}

static void test_repeat(void) {
  kit k;
  kit_open(&k, "2");
  const ccn__type t = ty(&k, CCN__I64, "3", "S0");
  ccn__type none = ty(&k, CCN__I64, "", "R");
  const ccn__id x = param(&k, t, small, 1), y = param(&k, t, small, 2), c = param(&k, t, small, 3);
  /* (a, b) = (b, a + b + c), ten times */
  const ccn__id loop = add(&k, REPEAT, none, ATTRS({.key = CCN__A_TIMES, .lit = lit_of(&k, 10)}), x, y);
  region = new_region(&k, loop);
  const ccn__id a = add0(&k, CARRY, t, ATTRS(AI(NUMBER, 0))), b = add0(&k, CARRY, t, ATTRS(AI(NUMBER, 1)));
  const ccn__id s = add(&k, ADD, t, NONE, a, b), u = add(&k, ADD, t, NONE, s, c);
  const ccn__id yield[] = {b, u};
  k.g->regions.at[region].yield = yield;
  k.g->regions.at[region].nyield = 2;
  region = 0;
  returns(&k, add(&k, RESULT, t, ATTRS(AI(NUMBER, 0)), loop));
  returns(&k, add(&k, RESULT, t, ATTRS(AI(NUMBER, 1)), loop));
  bool good = run(&k);
  char *got = good ? whole(&k, k.result[1]) : NULL;
  for (int i = 0; good && i < 3; i++) {
    int64_t p = (int64_t)value(CCN__I64, i, 1), q = (int64_t)value(CCN__I64, i, 2), v;
    for (int n = 0; n < 10; n++) {
      const int64_t next = p + q + (int64_t)value(CCN__I64, i, 3);
      p = q;
      q = next;
    }
    memcpy(&v, got + 8 * i, 8);
    good &= v == q;
  }
  ok(good, "repeat carries values, swaps included, and reads outer ones");
  free(got);
  ((ccn__attr *)(uintptr_t)k.g->nodes.at[loop].attrs.at)->lit = lit_of(&k, 0);
  ok(run(&k) && same_whole(&k, k.result[0], &k, k.arg[0]) && same_whole(&k, k.result[1], &k, k.arg[1]),
     "repeat 0 gives the initial values");
  kit_close(&k);
}

static void test_on(void) {
  kit k;
  kit_open(&k, "3,2");
  const ccn__type l = ty(&k, CCN__I32, "5", "L R"), r = ty(&k, CCN__I32, "5", "R R"),
                  a = ty(&k, CCN__I32, "5", "A1 R");
  const ccn__id x = param(&k, l, small, 1), y = param(&k, r, small, 2);
  const ccn__id on = add0(&k, ON, ty(&k, CCN__I32, "", ""), ATTRS(AI(AXIS, 0), AI(COORD, 1)));
  region = new_region(&k, on);
  const ccn__id ex = add(&k, ENTER, a, ATTRS(AI(AXIS, 0), AI(COORD, 1)), x),
                ey = add(&k, ENTER, a, ATTRS(AI(AXIS, 0), AI(COORD, 1)), y);
  const ccn__id s = add(&k, ADD, a, NONE, ex, ey);
  region = 0;
  const ccn__id moved = add(&k, SHIFT, ty(&k, CCN__I32, "5", "A0 R"), ATTRS(AI(OVER, 1), AI(BY, 2)), s);
  returns(&k, s);
  returns(&k, add(&k, BROADCAST, r, ATTRS(AI(OVER, 1), AI(ROOT, 1)), s));
  returns(&k, moved);
  bool good = run(&k);
  for (int64_t i = 0; good && i < 5; i++) {
    int32_t v;
    small(&v, CCN__I32, 2, i, 1); /* rank 2 is the twin of coordinate 1 */
    const double want = v + value(CCN__I32, i, 2);
    good &= at(k.result[0], 3, i) == want && at(k.result[1], 5, i) == want && at(k.result[2], 1, i) == want;
  }
  ok(good && !k.result[0]->buf[0] && !k.result[0]->buf[5] && k.result[0]->buf[2] && !k.result[2]->buf[2],
     "on: values exist at one coordinate, move and come back");
  kit_close(&k);
}

/* ---- looking at values ------------------------------------------------------------------------------------------------- */

static void collect_text(const char *text, size_t n, void *user) {
  char *t = user;
  strncat(t, text, n);
}

static void zeros(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  (void)rank, (void)salt;
  ccn__store_i64(t, out, i == 4 ? 0 : 1);
}

static void test_looking(void) {
  kit k;
  char text[1024] = "";
  kit_open(&k, "3");
  const ccn__id x = param(&k, ty(&k, CCN__F16, "5", "S0"), zeros, 1);
  const ccn__id n = add(&k, NEG, ty(&k, CCN__F16, "5", "S0"), NONE, x);
  const ccn__id s = add(&k, DIV, ty(&k, CCN__F16, "5", "S0"), NONE, n, x);
  const ccn__id e = add(&k, EXP, ty(&k, CCN__F16, "5", "S0"), NONE, s);
  SAFE(&k, k.g->nodes.at[n].name = ccn__internz(&k.names, "minus");
       k.g->nodes.at[s].autoname = ccn__internz(&k.names, "div1"));
  returns(&k, e);
  static const char *const watch[] = {"test.minus", "div1", "other.minus", "tes"};
  k.options.watch = watch;
  k.options.nwatch = 4;
  k.options.watch_print = collect_text;
  k.options.watch_user = text;
  run_once(&k, false);
  const bool good =
    strcmp(text, "watch test.minus  f16[5] sliced(0) over a  min -1.0  max -0.0  norm 2.0  nan 0\n"
                 "watch test.div1  f16[5] sliced(0) over a  min -1.0  max -1.0  norm 2.0  nan 1\n") == 0;
  if (!good) printf("# %s", text);
  ok(k.status == CCN_OK && good, "watched names, with and without the program's");
  k.options.nwatch = 0;
  k.options.check_nan = 1;
  ok(fails(&k, 607, "`div1` (div) made a NaN on rank 2 at [4]"),
     "the first NaN names op, node, rank and index");
  kit_close(&k);
}

/* ---- the check of the check --------------------------------------------------------------------------------------------- */

static void test_unshared_finds(void) {
  kit k;
  kit_open(&k, "2");
  const ccn__id x = param(&k, ty(&k, CCN__F32, "5", "L"), small, 1);
  returns(&k, add(&k, NEG, ty(&k, CCN__F32, "5", "R"), NONE, x)); /* a lie: it is local */
  run_once(&k, true);
  ok(k.status == CCN_INTERNAL && k.diags.last->code == 699,
     "unshared: a placement that is not true is found");
  run_once(&k, false);
  ok(k.status == CCN_OK, "shared: nobody looks");
  kit_close(&k);
}

int main(void) {
  test_elementwise();
  test_where();
  test_division();
  test_shapes();
  test_matmul();
  test_conv2d();
  test_indices();
  test_repeat();
  test_on();
  test_looking();
  test_unshared_finds();
  return finish_tests();
}
