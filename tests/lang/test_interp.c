/* test_interp.c: the reference interpreter: pieces, reductions with the same bits for every number of ranks, owed
 * values in parts, collectives against loops, random numbers, bundles, and what happens when memory ends.
 * Every run is done twice, shared and unshared (interp_kit.h). Ops: test_interp_ops.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_kit.h"

enum { SUM = CCN__RED_SUM, PROD = CCN__RED_PROD, MAX = CCN__RED_MAX, MIN = CCN__RED_MIN, AVG = CCN__RED_AVG };

static const char *num(int64_t n) {
  static char s[4][32];
  static int i;
  snprintf(s[i = (i + 1) & 3], 32, "%lld", (long long)n);
  return s[i];
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void test_boxes(void) {
  bool tiles = true, formula = true;
  static const int64_t extents[] = {0, 1, 2, 7, 13, 64, 97};
  for (int n = 1; n <= 9; n++)
    for (int m = 1; m <= 3; m++)
      for (int64_t u = 1; u <= 4; u++)
        for (size_t e = 0; e < CCN__COUNT(extents); e++) {
          const int64_t dim = extents[e];
          const ccn__mesh mesh = {.naxes = 2, .size = {n, m}};
          const ccn__cplace p[2] = {{.kind = CCN__SLICED, .unit = u}, {.kind = CCN__SLICED, .unit = 1}};
          int64_t next = 0;
          for (uint32_t r = 0; r < (uint32_t)(n * m); r++) {
            ccn__box b;
            ccn__box_of(&mesh, r, 1, &dim, p, &b);
            tiles &= b.start[0] == next && b.extent[0] >= 0 && b.elements == b.extent[0];
            next = b.start[0] + b.extent[0];
            const int64_t c = u * (((dim + u - 1) / u + n - 1) / n), i = r / (uint32_t)m;
            const int64_t lo = i * c < dim ? i * c : dim, hi = (i + 1) * c < dim ? (i + 1) * c : dim;
            formula &= b.start[0] >= lo && b.start[0] + b.extent[0] <= hi;
          }
          tiles &= next == dim;
        }
  ok(tiles, "pieces of two axes on one dim tile it, earlier axis first");
  ok(formula, "pieces lie where the formula says");
  const ccn__mesh mesh = {.naxes = 3, .size = {2, 3, 2}};
  const ccn__cplace p[3] = {{.kind = CCN__REPLICATED}, {.kind = CCN__AT, .coord = 1}, {.kind = CCN__LOCAL}};
  ok(ccn__rank_twin(&mesh, 9, p) == 3 && ccn__rank_has(&mesh, 9, p) && !ccn__rank_has(&mesh, 6, p),
     "twins and at");
}

static void test_copy_box(void) {
  int32_t src[3 * 4 * 5], dst[4 * 5 * 6];
  const int64_t se[] = {3, 4, 5}, de[] = {4, 5, 6}, sa[] = {1, 0, 2}, da[] = {2, 1, 3}, e[] = {2, 4, 3};
  for (int i = 0; i < 60; i++) src[i] = i;
  memset(dst, 0xff, sizeof dst);
  ccn__copy_box(4, 3, dst, de, da, src, se, sa, e);
  bool good = true;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 5; j++)
      for (int k = 0; k < 6; k++) {
        const bool in = i >= 2 && j >= 1 && k >= 3;
        good &= dst[(i * 5 + j) * 6 + k] == (in ? src[((i - 1) * 4 + j - 1) * 5 + k - 1] : -1);
      }
  ok(good, "copy_box moves a box and nothing else");
}

/* ---- reductions: a reference tree by recursion -------------------------------------------------------------------- */

static void combine(int op, ccn__dtype t, void *out, const void *a, const void *b) {
  static const int kernels[] = {0, CCN__K_ADD, CCN__K_MUL, CCN__K_MAXIMUM, CCN__K_MINIMUM, CCN__K_ADD};
  (void)ccn__kernel((ccn__kernel_id)kernels[op], t, out, a, b, NULL, 1);
}

/* The node over [start, start + 2^level) of the leaves [from, n); false if it has none. */
static bool subtree(int op, ccn__dtype acc, const char *x, int64_t from, int64_t n, int64_t start, int level,
                    void *out) {
  char l[8], r[8];
  if (start >= n || start + ((int64_t)1 << level) <= from) return false;
  if (level == 0) return memcpy(out, x + start * (int64_t)ccn__dtype_size(acc), ccn__dtype_size(acc)), true;
  const bool left = subtree(op, acc, x, from, n, start, level - 1, l);
  const bool right = subtree(op, acc, x, from, n, start + ((int64_t)1 << (level - 1)), level - 1, r);
  if (!left || !right) return memcpy(out, left ? l : r, 8), left || right;
  return combine(op, acc, out, l, r), true;
}

static bool tree(int op, ccn__dtype acc, const char *x, int64_t n, int64_t start, int level, void *out) {
  return subtree(op, acc, x, 0, n, start, level, out);
}

/* dims: mask of reduced dims of [rows, cols] made by noise; the expected element `kept`. */
static void expect(int op, ccn__dtype t, int64_t rows, int64_t cols, int mask, int64_t kept, int salt,
                   void *out) {
  const ccn__dtype acc = ccn__dtype_acc(t);
  const size_t item = ccn__dtype_size(acc);
  char *x = malloc((size_t)(rows * cols + 1) * item), e[8], r[8] = {0};
  int64_t n = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      if (!(mask & 1) && i != kept) continue;
      if (!(mask & 2) && j != kept) continue;
      noise(e, t, 0, i * cols + j, salt);
      ccn__convert(acc, x + (size_t)n++ * item, t, e, 1);
    }
  if (n) (void)tree(op, acc, x, n, 0, 40, r);
  else ccn__store_f64(acc, r, op == PROD);
  ccn__convert(t, out, acc, r, 1);
  free(x);
}

static ccn__op op_of(int op) {
  return op == SUM ? CCN__OP_SUM : op == PROD ? CCN__OP_PROD : op == MAX ? CCN__OP_MAX : CCN__OP_MIN;
}

/* sum(x) with x: t[n] cut along one axis of size ranks. */
static bool sum_1d(int op, ccn__dtype t, int64_t n, int ranks) {
  kit k;
  char p[8], want[8];
  snprintf(p, sizeof p, "P%d", op & 7);
  kit_open(&k, num(ranks));
  const ccn__id x = param(&k, ty(&k, t, num(n), "S0"), noise, op);
  const ccn__id s = add_n(&k, op_of(op), ty(&k, t, "", p), NONE, 1, &x);
  returns(&k, add(&k, ALLREDUCE, ty(&k, t, "", "R"), ATTRS(AI(RED, op), AI(OVER, 1)), s));
  bool good = run(&k);
  expect(op, t, n, 1, 3, 0, op, want);
  good = good && memcmp(k.result[0]->buf[ranks - 1]->data, want, ccn__dtype_size(t)) == 0;
  if (!good)
    printf("# %s %s n %lld ranks %d\n", ccn__redop_name((ccn__redop)op), ccn__dtype_name(t), (long long)n,
           ranks);
  kit_close(&k);
  return good;
}

static void test_sums_1d(void) {
  static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 1003, 4097};
  static const ccn__dtype types[] = {CCN__F32, CCN__F64, CCN__F16, CCN__BF16, CCN__I64,
                                     CCN__I32, CCN__I16, CCN__I8,  CCN__U8};
  for (int op = SUM; op <= MIN; op++) {
    bool good = true;
    for (size_t t = 0; t < CCN__COUNT(types); t++)
      for (size_t s = 0; s < CCN__COUNT(sizes); s++)
        for (int ranks = 1; ranks <= 9; ranks += t ? 4 : 1)
          if (sizes[s] || op == SUM || op == PROD) good &= sum_1d(op, types[t], sizes[s], ranks);
    ok(good, op == SUM    ? "sum: the tree's bits for n = 1..9, sizes 0..4097, all dtypes"
             : op == PROD ? "prod: the same"
             : op == MAX  ? "max: the same"
                          : "min: the same");
  }
}

/* x: f32[rows, cols] with these places over two axes; reduced over `mask`; paid at once or one axis after the other. */
static bool sum_2d(ccn__dtype t, int64_t rows, int64_t cols, int na, int nb, const char *places, int mask,
                   bool at_once) {
  kit k;
  char sizes[16], dims[48], owed[16] = "", after[16] = "", want[8];
  bool cut[2] = {false, false};
  snprintf(sizes, sizeof sizes, "%d,%d", na, nb);
  snprintf(dims, sizeof dims, "%lld,%lld", (long long)rows, (long long)cols);
  kit_open(&k, sizes);
  /* places of the sum and of the paid value: a kept dim keeps its cut */
  for (int a = 0; a < 2; a++) {
    const char *p = places + 3 * a;
    const bool sliced = p[0] == 'S', reduced = sliced && (mask >> (p[1] - '0') & 1);
    cut[a] = reduced;
    strcat(owed, reduced ? "P1 " : sliced ? "S0 " : "R ");
    strcat(after, sliced && !reduced ? "S0 " : "R ");
  }
  const char *kept = mask == 3 ? "" : mask == 1 ? num(cols) : num(rows);
  const ccn__id x = param(&k, ty(&k, t, dims, places), noise, 5);
  const int64_t which[2] = {mask & 1 ? 0 : 1, 1};
  const ccn__attr dim = {.key = CCN__A_DIMS, .n = mask == 3 ? 2 : 1, .ints = which};
  ccn__id s = add(&k, SUM, ty(&k, t, kept, owed), ((ccn__attrs){&dim, 1}), x);
  if (at_once && (cut[0] || cut[1])) {
    s = add(&k, ALLREDUCE, ty(&k, t, kept, after),
            ATTRS(AI(RED, SUM), AI(OVER, (cut[0] ? 1 : 0) | (cut[1] ? 2 : 0))), s);
  } else {
    for (int a = 1; a >= 0; a--) { /* the later axis first: parts stay owed over the other */
      if (!cut[a]) continue;
      char p[16];
      snprintf(p, sizeof p, "%.2s %.2s", a == 1 ? owed : "R ", a == 1 && !cut[0] ? after + 3 : "R ");
      if (a == 1) snprintf(p, sizeof p, "%s %s", cut[0] ? "P1" : places[0] == 'S' ? "S0" : "R", "R");
      else snprintf(p, sizeof p, "R %s", cut[1] || places[3] != 'S' ? "R" : "S0");
      s = add(&k, ALLREDUCE, ty(&k, t, kept, p), ATTRS(AI(RED, SUM), AI(OVER, 1 << a)), s);
    }
  }
  returns(&k, s);
  bool good = run(&k);
  if (good) {
    char *got = whole(&k, k.result[0]);
    const int64_t n = mask == 3 ? 1 : mask == 1 ? cols : rows;
    for (int64_t i = 0; i < n; i++) {
      expect(SUM, t, rows, cols, mask, i, 5, want);
      good &= memcmp(got + (size_t)i * ccn__dtype_size(t), want, ccn__dtype_size(t)) == 0;
    }
    free(got);
  }
  if (!good) printf("# %s mesh %s places %s mask %d at_once %d\n", dims, sizes, places, mask, at_once);
  kit_close(&k);
  return good;
}

static void test_sums_2d(void) {
  static const char *const places[] = {"R  R",  "S0 R",  "R  S0", "S1 R", "R  S1",
                                       "S0 S1", "S1 S0", "S0 S0", "S1 S1"};
  static const int64_t sizes[][2] = {{1, 1},    {3, 5},    {7, 64}, {64, 7}, {33, 31},
                                     {2, 1027}, {1100, 3}, {0, 4},  {4, 0}};
  bool good[2] = {true, true};
  for (size_t p = 0; p < CCN__COUNT(places); p++)
    for (size_t s = 0; s < CCN__COUNT(sizes); s++)
      for (int mask = 1; mask <= 3; mask++)
        for (int at_once = 0; at_once < 2; at_once++)
          for (int m = 0; m < 3; m++)
            good[at_once] &= sum_2d(p & 1 ? CCN__F16 : CCN__F32, sizes[s][0], sizes[s][1], 1 + m * 2, 3 - m,
                                    places[p], mask, at_once);
  ok(good[1], "sums over one and both dims, cut by one and two axes, have one tree's bits");
  ok(good[0], "the same when the axes are paid one after the other");
}

/* Parts go through reshape, transpose and index; anything else folds. */
static void test_parts_move(void) {
  bool good = true;
  for (int ranks = 1; ranks <= 5; ranks++) {
    kit k;
    kit_open(&k, num(ranks));
    const ccn__dim *const start[] = {dim_of(&k, 1), dim_of(&k, 0)}, *const count[] = {dim_of(&k, 2),
                                                                                      dim_of(&k, 2)};
    const int64_t perm[] = {1, 0}, dims[] = {0}, drop[] = {0, 0};
    const ccn__id x = param(&k, ty(&k, CCN__F16, "37,6", "S0"), noise, 9);
    const ccn__id s =
      add(&k, SUM, ty(&k, CCN__F16, "6", "P1"), ATTRS({.key = CCN__A_DIMS, .n = 1, .ints = dims}), x);
    const ccn__id r = add(&k, RESHAPE, ty(&k, CCN__F16, "2,3", "P1"), NONE, s);
    const ccn__id t =
      add(&k, TRANSPOSE, ty(&k, CCN__F16, "3,2", "P1"), ATTRS({.key = CCN__A_PERM, .n = 2, .ints = perm}), r);
    const ccn__id i =
      add(&k, INDEX, ty(&k, CCN__F16, "2,2", "P1"),
          ATTRS({.key = CCN__A_START, .n = 2, .dims = start}, {.key = CCN__A_COUNT, .n = 2, .dims = count},
                {.key = CCN__A_DROP, .n = 2, .ints = drop}),
          t);
    returns(&k, add(&k, ALLREDUCE, ty(&k, CCN__F16, "2,2", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), i));
    returns(&k, add(&k, REDUCESCATTER, ty(&k, CCN__F16, "6", "S0"),
                    ATTRS(AI(RED, SUM), AI(OVER, 1), AI(DIM, 0)), s));
    returns(&k, add(&k, TO_LOCAL, ty(&k, CCN__F16, "6", "L"), ATTRS(AI(OVER, 1)), s));
    returns(&k, i);
    good &= run(&k);
    char *whole_rs = good ? whole(&k, k.result[1]) : NULL;
    for (int e = 0; good && e < 6; e++) {
      uint16_t want;
      expect(SUM, CCN__F16, 37, 6, 1, e, 9, &want);
      good &= memcmp(whole_rs + 2 * e, &want, 2) == 0;
      const int row = e % 3, col = e / 3; /* of the transpose, [3, 2] */
      if (row)
        good &= memcmp((char *)k.result[0]->buf[ranks - 1]->data + 2 * ((row - 1) * 2 + col), &want, 2) == 0;
      if (row) good &= at(k.result[3], 0, (row - 1) * 2 + col) == at(k.result[2], 0, e);
    }
    free(whole_rs);
    kit_close(&k);
  }
  ok(good,
     "parts go through reshape, transpose, index; reducescatter merges and cuts; local folds and rounds");
}

/* What a rank's parts fold to when something else than a collective wants them: the tree over its piece. */
static void test_local_folds(void) {
  bool good = true;
  for (int ranks = 2; ranks <= 7; ranks++) {
    kit k;
    kit_open(&k, num(ranks));
    const int64_t n = 1003;
    const ccn__id x = param(&k, ty(&k, CCN__F32, num(n), "S0"), noise, 2);
    const ccn__id s = add(&k, SUM, ty(&k, CCN__F32, "", "P1"), NONE, x);
    returns(&k, add(&k, TO_LOCAL, ty(&k, CCN__F32, "", "L"), ATTRS(AI(OVER, 1)), s));
    returns(&k, add(&k, NEG, ty(&k, CCN__F32, "", "P1"), NONE, s)); /* folds and stays owed */
    float v[1003];
    for (int64_t i = 0; i < n; i++) noise(&v[i], CCN__F32, 0, i, 2);
    good &= run(&k);
    for (int r = 0; good && r < ranks; r++) {
      int64_t from, end;
      float want[2];
      ccn__slice_range(n, 1, ranks, r, &from, &end);
      (void)subtree(SUM, CCN__F32, (const char *)v, from, end, 0, 20, want);
      good &= at(k.result[0], (uint32_t)r, 0) == want[0] && at(k.result[1], (uint32_t)r, 0) == -want[0];
    }
    kit_close(&k);
  }
  ok(good, "local pieces fold to the tree over what the rank has");
}

static void test_neutral(void) {
  kit k;
  static const ccn__dtype types[] = {CCN__F32, CCN__F16, CCN__I8, CCN__U8};
  bool good = true;
  for (size_t i = 0; i < CCN__COUNT(types); i++) {
    kit_open(&k, "3");
    const ccn__dtype t = types[i];
    const ccn__id x = param(&k, ty(&k, t, "2", "S0"), noise, 3);
    for (int op = SUM; op <= MIN; op++) {
      char p[8];
      snprintf(p, sizeof p, "P%d", op & 7);
      const ccn__id s = add_n(&k, op_of(op), ty(&k, t, "", p), NONE, 1, &x);
      returns(&k, add(&k, TO_LOCAL, ty(&k, t, "", "L"), ATTRS(AI(OVER, 1)), s));
    }
    good &= run(&k);
    const bool f = ccn__dtype_is_float(t);
    const double lowest[] = {-INFINITY, -INFINITY, -128, 0}, highest[] = {INFINITY, INFINITY, 127, 255};
    good &=
      at(k.result[0], 2, 0) == 0 && (!f || signbit(at(k.result[0], 2, 0))) && at(k.result[1], 2, 0) == 1;
    good &= at(k.result[2], 2, 0) == lowest[i] && at(k.result[3], 2, 0) == highest[i];
    kit_close(&k);
  }
  ok(good, "a rank without elements holds the neutral value");
}

static void negative_zero(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  (void)rank, (void)i, (void)salt;
  ccn__store_f64(t, out, -0.0);
}

static void test_zero_and_nothing(void) {
  kit k;
  kit_open(&k, "4");
  const ccn__id x = param(&k, ty(&k, CCN__F32, "2", "S0"), negative_zero, 0);
  const ccn__id y = param(&k, ty(&k, CCN__F32, "0", "S0"), noise, 0);
  const ccn__id b = param(&k, ty(&k, CCN__BOOL, "0", "S0"), noise, 0);
  const ccn__id s = add(&k, SUM, ty(&k, CCN__F32, "", "P1"), NONE, x);
  const ccn__id e = add(&k, SUM, ty(&k, CCN__F32, "", "P1"), NONE, y);
  const ccn__id any = add(&k, ANY, ty(&k, CCN__BOOL, "", "P3"), NONE, b);
  const ccn__id all = add(&k, ALL, ty(&k, CCN__BOOL, "", "P4"), NONE, b);
  returns(&k, add(&k, ALLREDUCE, ty(&k, CCN__F32, "", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), s));
  returns(&k, add(&k, ALLREDUCE, ty(&k, CCN__F32, "", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), e));
  returns(&k, add(&k, ALLREDUCE, ty(&k, CCN__BOOL, "", "R"), ATTRS(AI(RED, MAX), AI(OVER, 1)), any));
  returns(&k, add(&k, ALLREDUCE, ty(&k, CCN__BOOL, "", "R"), ATTRS(AI(RED, MIN), AI(OVER, 1)), all));
  bool good = run(&k);
  ok(good && signbit(at(k.result[0], 3, 0)), "-0 + -0 = -0, also with empty ranks");
  ok(good && at(k.result[1], 3, 0) == 0 && !signbit(at(k.result[1], 3, 0)), "the sum of nothing is +0");
  ok(good && at(k.result[2], 0, 0) == 0 && at(k.result[3], 0, 0) == 1,
     "any of nothing is false, all is true");
  const ccn__id m = add(&k, MAX, ty(&k, CCN__F32, "", "P3"), NONE, y);
  returns(&k, m);
  run_once(&k, false);
  ok(k.status == CCN_ERROR && k.diags.last && k.diags.last->code == 604, "max of nothing is CCN0604");
  kit_close(&k);
}

/* ---- collectives ----------------------------------------------------------------------------------------------------- */

/* allreduce, reducescatter and reduce of a local value, every operator and dtype, against a loop in rank order. */
static bool reduces(int op, ccn__dtype t, int order, int na, int nb, int64_t n) {
  kit k;
  char sizes[16];
  snprintf(sizes, sizeof sizes, "%d,%d", na, nb);
  kit_open(&k, sizes);
  const ccn__dtype acc = ccn__dtype_acc(t);
  const size_t item = ccn__dtype_size(t);
  const ccn__id x = param(&k, ty(&k, t, num(n), "L L"), noise, 1);
#define RED_ATTRS ATTRS(AI(RED, op), AI(OVER, 3), AI(ORDER, order), AI(DIM, 0), AI(ROOT, 0))
  returns(&k, add(&k, ALLREDUCE, ty(&k, t, num(n), "R R"), RED_ATTRS, x));
  returns(&k, add(&k, REDUCESCATTER, ty(&k, t, num(n), "S0 S0"), RED_ATTRS, x));
  returns(&k, add(&k, REDUCE, ty(&k, t, num(n), "A0 A0"), RED_ATTRS, x));
  bool good = run(&k);
  char *rs = good ? whole(&k, k.result[1]) : NULL;
  for (int64_t i = 0; good && i < n; i++) {
    char v[64][8], r[8];
    const int world = na * nb;
    for (int w = 0; w < world; w++) {
      noise(r, t, (uint32_t)w, i, 1);
      ccn__convert(acc, v[w], t, r, 1);
    }
    if (order == CCN__ORDER_RANK)
      for (int w = 1; w < world; w++) combine(op, acc, v[0], v[0], v[w]);
    if (order == CCN__ORDER_TREE)
      for (int step = 1; step < world; step *= 2)
        for (int w = 0; w + step < world; w += 2 * step) combine(op, acc, v[w], v[w], v[w + step]);
    if (order == CCN__ORDER_AXIS) {
      for (int b = 0; b < nb; b++)
        for (int a = 1; a < na; a++) combine(op, acc, v[b], v[b], v[a * nb + b]);
      for (int b = 1; b < nb; b++) combine(op, acc, v[0], v[0], v[b]);
    }
    if (op == AVG) {
      if (acc == CCN__F64) ccn__store_f64(acc, v[0], ccn__load_f64(acc, v[0]) / world);
      else {
        float f;
        memcpy(&f, v[0], 4);
        f /= (float)world;
        memcpy(v[0], &f, 4);
      }
    }
    ccn__convert(t, r, acc, v[0], 1);
    good &= memcmp((char *)k.result[0]->buf[world - 1]->data + (size_t)i * item, r, item) == 0;
    good &= memcmp(rs + (size_t)i * item, r, item) == 0;
    good &= memcmp((char *)k.result[2]->buf[0]->data + (size_t)i * item, r, item) == 0;
  }
  good = good && (na * nb == 1 || !k.result[2]->buf[1]);
  if (!good)
    printf("# op %d %s order %d mesh %s n %lld\n", op, ccn__dtype_name(t), order, sizes, (long long)n);
  free(rs);
  kit_close(&k);
  return good;
}

static void test_reductions(void) {
  static const ccn__dtype types[] = {CCN__F64, CCN__F32, CCN__F16, CCN__BF16, CCN__I64,
                                     CCN__I32, CCN__I16, CCN__I8,  CCN__U8,   CCN__BOOL};
  static const int64_t sizes[] = {0, 1, 3, 64, 1027};
  for (int op = SUM; op <= AVG; op++) {
    bool good = true;
    for (size_t t = 0; t < CCN__COUNT(types); t++) {
      if (!ccn__dtype_is_float(types[t]) && op == AVG) continue;
      if (types[t] == CCN__BOOL && op != MAX && op != MIN) continue;
      for (int order = CCN__ORDER_RANK; order <= CCN__ORDER_TREE; order++)
        for (size_t s = 0; s < CCN__COUNT(sizes); s++)
          good &= reduces(op, types[t], order, 1, 1, sizes[s]) &&
                  reduces(op, types[t], order, 3, 2, sizes[s]) &&
                  reduces(op, types[t], order, 1, 5, sizes[s]);
    }
    static const char *const names[] = {"", "sum", "prod", "max", "min", "avg"};
    char text[96];
    snprintf(text, sizeof text, "%s: allreduce, reducescatter, reduce; each dtype and order", names[op]);
    ok(good, text);
  }
}

static void big(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  (void)rank, (void)i, (void)salt;
  ccn__store_f64(t, out, 60000);
}

static void test_average_f16(void) {
  kit k;
  kit_open(&k, "4");
  const ccn__id x = param(&k, ty(&k, CCN__F16, "3", "L"), big, 0);
  returns(&k, add(&k, ALLREDUCE, ty(&k, CCN__F16, "3", "R"), ATTRS(AI(RED, AVG), AI(OVER, 1)), x));
  ok(run(&k) && at(k.result[0], 2, 1) == 60000, "the average of f16 does not overflow on the way");
  kit_close(&k);
}

/* What only moves: every op against the definition, on one axis of n ranks. */
static bool moves(int n, int64_t rows, int64_t cols) {
  kit k;
  char dims[48];
  const ccn__dtype t = CCN__I32;
  kit_open(&k, num(n));
  snprintf(dims, sizeof dims, "%lld,%lld", (long long)rows, (long long)cols);
#define OVER1 AI(OVER, 1)
  const ccn__id s = param(&k, ty(&k, t, dims, "S0"), noise, 1), w = param(&k, ty(&k, t, dims, "R"), noise, 1);
  const ccn__id l = param(&k, ty(&k, t, dims, "L"), noise, 2);
  const int root = n - 1;
  char a[8];
  snprintf(a, sizeof a, "A%d", root);
  returns(&k, add(&k, ALLGATHER, ty(&k, t, dims, "R"), ATTRS(OVER1), s));
  const ccn__id g = add(&k, GATHER, ty(&k, t, dims, a), ATTRS(OVER1, AI(ROOT, root)), s);
  returns(&k, add(&k, BROADCAST, ty(&k, t, dims, "R"), ATTRS(OVER1, AI(ROOT, root)), g));
  returns(&k, add(&k, SCATTER, ty(&k, t, dims, "S1"), ATTRS(OVER1, AI(ROOT, root), AI(DIM, 1)), g));
  returns(&k, add(&k, ALLTOALL, ty(&k, t, dims, "S1u2"), ATTRS(OVER1, AI(FROM, 0), AI(TO, 1)), s));
  returns(&k, add(&k, SLICE, ty(&k, t, dims, "S1u3"), ATTRS(OVER1, AI(DIM, 1)), w));
  returns(&k, add(&k, BROADCAST, ty(&k, t, dims, "R"), ATTRS(OVER1, AI(ROOT, 0)), l));
  const ccn__lit *fill = lit_of(&k, 7);
  returns(&k, add(&k, SHIFT, ty(&k, t, dims, "L"), ATTRS(OVER1, AI(BY, -2)), l));
  returns(
    &k, add(&k, SHIFT, ty(&k, t, dims, "L"), ATTRS(OVER1, AI(BY, 1), {.key = CCN__A_FILL, .lit = fill}), l));
  bool good = run(&k);
  for (int i = 0; good && i < 5; i++) {
    char *got = whole(&k, k.result[i]);
    for (int64_t e = 0; e < rows * cols; e++) {
      int32_t want, have;
      noise(&want, t, 0, e, 1);
      memcpy(&have, got + 4 * e, 4);
      good &= want == have;
    }
    free(got);
  }
  for (int r = 0; good && r < n; r++)
    for (int64_t e = 0; e < rows * cols; e++) {
      int32_t from0, back, next = 7;
      noise(&from0, t, 0, e, 2);
      noise(&back, t, (uint32_t)((r + 2) % n), e, 2);
      if (r > 0) noise(&next, t, (uint32_t)r - 1, e, 2);
      good &= at(k.result[5], (uint32_t)r, e) == from0 && at(k.result[6], (uint32_t)r, e) == back;
      good &= at(k.result[7], (uint32_t)r, e) == next;
    }
  if (!good) printf("# n %d %s\n", n, dims);
  kit_close(&k);
  return good;
}

static void test_moves(void) {
  bool good = true;
  static const int64_t sizes[][2] = {{0, 3}, {1, 1}, {3, 4}, {13, 7}, {64, 33}};
  for (int n = 1; n <= 8; n++)
    for (size_t s = 0; s < CCN__COUNT(sizes); s++) good &= moves(n, sizes[s][0], sizes[s][1]);
  ok(good && moves(64, 67, 3),
     "allgather, gather, broadcast, scatter, alltoall, slice, shift: n = 1..8 and 64");
}

static void test_blocks_and_permute(void) {
  kit k;
  bool good = true;
  kit_open(&k, "3");
  const ccn__dtype t = CCN__I32;
  const int64_t pairs[] = {0, 2, 1, 0};
  const ccn__lit *fill = lit_of(&k, -1);
  const ccn__id l = param(&k, ty(&k, t, "2,6", "L"), noise, 4);
  returns(&k, add(&k, ALLTOALL, ty(&k, t, "2,6", "L"), ATTRS(OVER1, AI(DIM, 1)), l));
  returns(&k,
          add(&k, PERMUTE, ty(&k, t, "2,6", "L"),
              ATTRS(OVER1, {.key = CCN__A_PAIRS, .n = 4, .ints = pairs}, {.key = CCN__A_FILL, .lit = fill}),
              l));
  good = run(&k);
  for (uint32_t r = 0; good && r < 3; r++)
    for (int64_t e = 0; e < 12; e++) {
      int32_t want;
      const int64_t row = e / 6, col = e % 6;
      noise(&want, t, (uint32_t)(col / 2), row * 6 + r * 2 + col % 2, 4);
      good &= at(k.result[0], r, e) == want;
      if (r == 1) want = -1;
      else noise(&want, t, r == 2 ? 0 : 1, e, 4);
      good &= at(k.result[1], r, e) == want;
    }
  ok(good, "alltoall of blocks; permute with fill");
  kit_close(&k);
}

static void test_two_axes(void) {
  kit k;
  kit_open(&k, "2,3");
  const ccn__dtype t = CCN__I32;
  const ccn__id l = param(&k, ty(&k, t, "11,5", "L L"), noise, 6),
                w = param(&k, ty(&k, t, "11,5", "R R"), noise, 6);
  const ccn__id s = add(&k, SLICE, ty(&k, t, "11,5", "S0 S0"), ATTRS(AI(OVER, 3), AI(DIM, 0)), w);
  const ccn__id h = add(&k, ALLGATHER, ty(&k, t, "11,5", "S0 R"), ATTRS(AI(OVER, 2)), s);
  returns(&k, s);
  returns(&k, h);
  returns(&k, add(&k, ALLGATHER, ty(&k, t, "11,5", "R R"), ATTRS(AI(OVER, 3)), s));
  returns(&k, add(&k, ALLREDUCE, ty(&k, t, "11,5", "L R"), ATTRS(AI(OVER, 2), AI(RED, SUM)), l));
  returns(&k, add(&k, BROADCAST, ty(&k, t, "11,5", "L R"), ATTRS(AI(OVER, 2), AI(ROOT, 1)), l));
  bool good = run(&k);
  for (int i = 0; good && i < 3; i++) good &= same_whole(&k, k.result[i], &k, k.arg[1]);
  for (uint32_t r = 0; good && r < 6; r++)
    for (int64_t e = 0; e < 55; e++) {
      int32_t v[3], root;
      for (uint32_t c = 0; c < 3; c++) noise(&v[c], t, r / 3 * 3 + c, e, 6);
      noise(&root, t, r / 3 * 3 + 1, e, 6);
      good &= at(k.result[3], r, e) == (int32_t)((uint32_t)v[0] + (uint32_t)v[1] + (uint32_t)v[2]);
      good &= at(k.result[4], r, e) == root;
    }
  ok(good, "two axes: cut in order, gathered in reverse, one axis named while the other stays");
  kit_close(&k);
}

/* ---- random numbers --------------------------------------------------------------------------------------------------- */

static ccn__id random_node(kit *k, ccn__op op, ccn__type t) {
  const ccn__lit *seed = lit_of(k, 0x123456789a), *low = lit_of(k, -5), *high = lit_of(k, 10),
                 *p = lit_float(k, 0.25);
  const ccn__id step =
    add0(k, CONST, ty(k, CCN__I32, "", ""), ATTRS({.key = CCN__A_VALUE, .lit = lit_of(k, 3)}));
  return add_n(k, op, t,
               ATTRS({.key = CCN__A_SEED, .lit = seed}, {.key = CCN__A_LOW, .lit = low},
                     {.key = CCN__A_HIGH, .lit = high}, {.key = CCN__A_P, .lit = p}),
               1, &step);
}

static void test_random(void) {
  static const ccn__op ops[] = {CCN__OP_RAND, CCN__OP_RANDN, CCN__OP_RANDINT, CCN__OP_BERNOULLI};
  bool same = true, range = true, differ = true;
  for (size_t o = 0; o < CCN__COUNT(ops); o++)
    for (int dt = 0; dt < 3; dt++) {
      static const ccn__dtype floats[] = {CCN__F32, CCN__F64, CCN__F16},
                              ints[] = {CCN__I32, CCN__I64, CCN__I8};
      const ccn__dtype t = ops[o] == CCN__OP_RANDINT     ? ints[dt]
                           : ops[o] == CCN__OP_BERNOULLI ? CCN__BOOL
                                                         : floats[dt];
      kit one;
      kit_open(&one, "1");
      returns(&one, random_node(&one, ops[o], ty(&one, t, "61,37", "R")));
      same &= run(&one);
      double sum = 0;
      for (int64_t i = 0; i < 61 * 37; i++) {
        const double v = at(one.result[0], 0, i);
        sum += v;
        if (ops[o] == CCN__OP_RAND) range &= v >= 0 && (v < 1 || t == CCN__F16);
        if (ops[o] == CCN__OP_RANDINT) range &= v >= -5 && v < 10;
      }
      static const double mean[] = {0.5, 0, 2, 0.25};
      range &= fabs(sum / (61 * 37) - mean[o]) < 0.2;
      for (int n = 2; n <= 7; n++) {
        kit k;
        kit_open(&k, num(n));
        returns(&k, random_node(&k, ops[o], ty(&k, t, "61,37", "R")));
        returns(&k, random_node(&k, ops[o], ty(&k, t, "61,37", "S0")));
        returns(&k, random_node(&k, ops[o], ty(&k, t, "61,37", "S1")));
        returns(&k, random_node(&k, ops[o], ty(&k, t, "61,37", "L")));
        same &= run(&k);
        for (int i = 0; i < 3; i++) same &= same_whole(&k, k.result[i], &one, one.result[0]);
        differ &=
          memcmp(k.result[3]->buf[0]->data, k.result[3]->buf[1]->data, k.result[3]->buf[0]->bytes) != 0;
        kit_close(&k);
      }
      kit_close(&one);
    }
  ok(same, "random numbers: replicated and sliced values are the same for every n");
  ok(range, "random numbers: ranges and means");
  ok(differ, "random numbers: local values differ between ranks");
}

static void ones(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  (void)rank, (void)i, (void)salt;
  ccn__store_f64(t, out, 1);
}

static void test_dropout(void) {
  kit k;
  kit_open(&k, "3");
  const ccn__lit *p[2] = {lit_float(&k, 0.25), lit_of(&k, 1)}, *seed = lit_of(&k, 4);
  const ccn__id x = param(&k, ty(&k, CCN__F16, "4001", "S0"), ones, 0);
  const ccn__id step = param(&k, ty(&k, CCN__I32, "", "R"), ones, 0);
  for (int i = 0; i < 2; i++)
    returns(&k, add(&k, DROPOUT, ty(&k, CCN__F16, "4001", "S0"),
                    ATTRS({.key = CCN__A_P, .lit = p[i]}, {.key = CCN__A_SEED, .lit = seed}), x, step));
  bool good = run(&k), zeros = good;
  int dropped = 0;
  char *a = good ? whole(&k, k.result[0]) : NULL, *b = good ? whole(&k, k.result[1]) : NULL;
  const uint16_t kept = ccn__f32_to_f16(1.0f * (float)(1.0 / 0.75));
  for (int i = 0; good && i < 4001; i++) {
    uint16_t h, z;
    memcpy(&h, a + 2 * i, 2);
    memcpy(&z, b + 2 * i, 2);
    good &= h == 0 || h == kept;
    dropped += h == 0;
    zeros &= z == 0;
  }
  free(a);
  free(b);
  ok(good && dropped > 850 && dropped < 1150, "dropout drops a fraction p and scales the rest");
  ok(zeros, "dropout with p = 1 gives zeros");
  kit_close(&k);
}

/* ---- bundles --------------------------------------------------------------------------------------------------------------- */

static ccn__members *members(kit *k, uint32_t n, const int64_t *elements) {
  ccn__members *volatile room = NULL;
  SAFE(k, room = ccn__arena_alloc(&k->arena, sizeof *room + n * sizeof room->at[0]));
  ccn__members *m = room;
  m->k = n;
  int64_t start = 0;
  for (uint32_t i = 0; i < n; i++) {
    m->at[i].rank = 1;
    m->at[i].dim[0] = m->at[i].elements = elements[i];
    m->at[i].start = start;
    start += elements[i];
  }
  return m;
}

static void test_bundles(void) {
  static const int64_t sizes[] = {3, 1, 0, 700, 4, 1025};
  bool good = true;
  int64_t total = 0;
  for (size_t i = 0; i < CCN__COUNT(sizes); i++) total += sizes[i];
  for (int n = 1; n <= 9; n++)
    for (int half = 0; half < 2; half++) {
      kit k;
      const ccn__dtype t = half ? CCN__F16 : CCN__F32;
      kit_open(&k, num(n));
      k.bundle[0] = members(&k, CCN__COUNT(sizes), sizes);
      ccn__type flat = ty(&k, t, num(total), "S0"), whole_flat = ty(&k, t, num(total), "R");
      ccn__type owed = ty(&k, t, num(CCN__COUNT(sizes)), "P1"), paid = ty(&k, t, num(CCN__COUNT(sizes)), "R");
      flat.bundle = whole_flat.bundle = CCN__BUNDLE_TENSORS;
      owed.bundle = paid.bundle = CCN__BUNDLE_SCALARS;
      const ccn__id x = param(&k, flat, noise, 8), w = param(&k, whole_flat, noise, 8);
      const ccn__id s = add(&k, SUM, owed, ATTRS(AI(PER, 1)), x);
      const ccn__id p = add(&k, ALLREDUCE, paid, ATTRS(AI(RED, SUM), AI(OVER, 1)), s);
      returns(&k, p);
      returns(&k, add(&k, SUM, paid, ATTRS(AI(PER, 1)), w));
      returns(&k, add(&k, MUL, flat, NONE, x, p));
      owed.place[0].kind = CCN__LOCAL;
      returns(&k, add(&k, TO_LOCAL, owed, ATTRS(AI(OVER, 1)), s));
      good &= run(&k);
      char *scaled = good ? whole(&k, k.result[2]) : NULL;
      int64_t start = 0;
      for (size_t m = 0; good && m < CCN__COUNT(sizes); m++) {
        const ccn__dtype acc = ccn__dtype_acc(t);
        const size_t item = ccn__dtype_size(t), wide = ccn__dtype_size(acc);
        char *acc_values = malloc((size_t)sizes[m] * wide + 8), e[8], r[8] = {0}, want[8];
        for (int64_t i = 0; i < sizes[m]; i++) {
          noise(e, t, 0, start + i, 8);
          ccn__convert(acc, acc_values + (size_t)i * wide, t, e, 1);
        }
        (void)tree(SUM, acc, acc_values, sizes[m], 0, 20, r);
        ccn__convert(t, want, acc, r, 1);
        good &= memcmp((char *)k.result[0]->buf[n - 1]->data + m * item, want, item) == 0;
        good &= memcmp((char *)k.result[1]->buf[0]->data + m * item, want, item) == 0;
        for (int64_t i = 0; i < sizes[m]; i++) { /* x * sum(x, per: tensor) */
          float a, b;
          noise(e, t, 0, start + i, 8);
          ccn__convert(CCN__F32, &a, t, e, 1);
          ccn__convert(CCN__F32, &b, t, want, 1);
          a *= b;
          ccn__convert(t, e, CCN__F32, &a, 1);
          good &= memcmp(scaled + (size_t)(start + i) * item, e, item) == 0;
        }
        free(acc_values);
        start += sizes[m];
      }
      if (good && n == 9) good &= at(k.result[3], 8, 0) == 0 && signbit(at(k.result[3], 8, 0));
      free(scaled);
      kit_close(&k);
    }
  ok(good,
     "bundles: sums per tensor with cuts inside and between members, scalars broadcast per tensor, n = 1..9");
}

/* ---- when memory ends ------------------------------------------------------------------------------------------------------ */

static ccn__id small_graph(kit *k) {
  const ccn__id x = param(k, ty(k, CCN__F32, "1030", "S0"), noise, 1),
                y = param(k, ty(k, CCN__F16, "300", "R"), noise, 1);
  const ccn__id s = add(k, SUM, ty(k, CCN__F32, "", "P1"), NONE, x);
  const ccn__id r = add(k, ALLREDUCE, ty(k, CCN__F32, "", "R"), ATTRS(AI(RED, SUM), AI(OVER, 1)), s);
  const ccn__id m = add(k, MUL, ty(k, CCN__F32, "1030", "S0"), NONE, x, r);
  const ccn__id u = add(k, UPDATE, ty(k, CCN__F32, "1030", "S0"), NONE, x, m);
  k->g->params.at[0].update = u;
  returns(k, add(k, NEG, ty(k, CCN__F16, "300", "R"), NONE, y));
  returns(k, u);
  returns(k, s);
  return x;
}

static void test_memory(void) {
  kit k;
  bool good = true, done = false;
  int refused = 0;
  for (size_t at_request = 1; good && !done; at_request++) {
    kit_open(&k, "3");
    (void)small_graph(&k);
    char *before = whole(&k, k.arg[0]);
    const size_t pool_before = k.host.blocks;
    const uint32_t temps = k.rt.temps.n;
    k.host.requests = 0;
    k.host.fail_at = at_request;
    run_once(&k, false);
    k.host.fail_at = 0;
    done = k.status == CCN_OK;
    if (!done) {
      refused++;
      good &= k.status == CCN_OUT_OF_MEMORY;
      char *after = whole(&k, k.arg[0]);
      good &= memcmp(before, after, 1030 * 4) == 0; /* nothing was stored */
      free(after);
      /* only result tensors without buffers (objects, for the collector) and arena blocks are left */
      for (const ccn__buf *b = k.rt.pool.first; b; b = b->next) good &= b->refs == 1;
      size_t bufs = 0;
      for (const ccn__buf *b = k.rt.pool.first; b; b = b->next) bufs++;
      good &= bufs == 6 && k.host.blocks - pool_before <= k.rt.temps.n - temps + 1;
      run_once(&k, false); /* and it works the next time */
      good &= k.status == CCN_OK;
    }
    free(before);
    kit_close(&k);
  }
  printf("# %d requests refused\n", refused);
  ok(good && refused > 10, "each request for memory refused once: no leak, no store, and the next run works");
}

static void test_update(void) {
  kit k;
  kit_open(&k, "3");
  (void)small_graph(&k);
  char *before = whole(&k, k.arg[0]);
  run_once(&k, false);
  char *after = whole(&k, k.arg[0]);
  ok(k.status == CCN_OK && memcmp(before, after, 4120) != 0 && k.arg[0]->buf[0] == k.result[1]->buf[0] &&
       k.arg[0]->buf[0]->refs == 2,
     "update stores at the end and shares the result's buffers");
  size_t bufs = 0;
  for (const ccn__buf *b = k.rt.pool.first; b; b = b->next) bufs++;
  ok(bufs == 3 + 3 + 1 + 3, "old values are gone; a replicated result is one buffer");
  free(before);
  free(after);
  k.rt.interrupted = 1;
  run_once(&k, false);
  ok(k.status == CCN_INTERRUPTED, "an interrupt ends the run");
  kit_close(&k);
}

int main(void) {
  test_boxes();
  test_copy_box();
  test_sums_1d();
  test_sums_2d();
  test_parts_move();
  test_local_folds();
  test_neutral();
  test_zero_and_nothing();
  test_reductions();
  test_average_f16();
  test_moves();
  test_blocks_and_permute();
  test_two_axes();
  test_random();
  test_dropout();
  test_bundles();
  test_memory();
  test_update();
  return finish_tests();
}
