/* test_run.c: the executor gives the bits that the declared order says, whatever the sizes and the
 * interleaving; what is moved is what the formulas say. The orders are evaluated here once more, by
 * recursion on values, not by merges.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algo_kit.h"

#include "interp_eval.h"

/* ---- the definition -------------------------------------------------------------------------- */

typedef struct number {
  float f; /* of f32, f16, bf16 */
  int32_t i;
} number;

typedef struct sum {
  ccn__dtype t;
  ccn__redop op;
  uint32_t n, turn; /* turn: which rank is at position 0 of a tree; of the second double tree see rank_at */
  bool second;
  number x[64];
} sum;

static number add(const sum *s, number a, number b) {
  number r = {0, 0};
  if (s->t == CCN__I32) {
    if (s->op == CCN__RED_MAX) r.i = a.i > b.i ? a.i : b.i;
    else r.i = (int32_t)((uint32_t)a.i + (uint32_t)b.i);
  } else {
    r.f = s->op == CCN__RED_MAX ? (a.f > b.f ? a.f : b.f) : a.f + b.f;
  }
  return r;
}

static number adjacent_pairs(const sum *s, uint32_t lo, uint32_t hi) {
  uint32_t m = 1;
  if (hi - lo == 1) return s->x[lo];
  while (2 * m < hi - lo) m *= 2;
  return add(s, adjacent_pairs(s, lo, lo + m), adjacent_pairs(s, lo + m, hi));
}

static number in_a_row(const sum *s, uint32_t first, uint32_t count) {
  number r = s->x[first % s->n];
  for (uint32_t i = 1; i < count; i++) r = add(s, r, s->x[(first + i) % s->n]);
  return r;
}

/* NCCL's rule for the parent of a position. */
static uint32_t parent(uint32_t n, uint32_t p) {
  const uint32_t bit = p & (0u - p), up = (p ^ bit) | bit << 1;
  return up < n ? up : p ^ bit;
}

static uint32_t rank_at(const sum *s, uint32_t p) {
  if (!s->second) return (p + s->turn) % s->n;
  return s->n % 2 ? (p + 1) % s->n : s->n - 1 - p;
}

static number in_order(const sum *s, uint32_t p) {
  number r = s->x[rank_at(s, p)];
  for (uint32_t c = 1; c < p; c++)
    if (parent(s->n, c) == p) r = add(s, in_order(s, c), r);
  for (uint32_t c = p + 1; c < s->n; c++)
    if (parent(s->n, c) == p) r = add(s, r, in_order(s, c));
  return r;
}

/* The sum of s->x for a piece, before it is finished. */
static number declared(sum *s, const ccn__algorithm *a, uint32_t slice) {
  const uint32_t group = ccn__order_group(a->order);
  s->turn = a->op == CCN__OP_REDUCE ? a->root : 0;
  s->second = false;
  switch (ccn__order_of(a->order)) {
  case CCN__ORDER_TREE: return adjacent_pairs(s, 0, s->n);
  case CCN__ORDER_RING: return in_a_row(s, (a->op == CCN__OP_REDUCE ? a->root : slice) + 1, s->n);
  case CCN__ORDER_BINARY: return in_order(s, 0);
  case CCN__ORDER_DOUBLE: s->second = slice == 1; return in_order(s, 0);
  case CCN__ORDER_GROUPS: {
    number r = in_a_row(s, 0, group);
    for (uint32_t g = group; g < s->n; g += group) r = add(s, r, in_a_row(s, g, group));
    return r;
  }
  default: return in_a_row(s, 0, s->n);
  }
}

/* ---- data ------------------------------------------------------------------------------------ */

static uint32_t noise(uint32_t rank, uint32_t piece, int64_t e) {
  uint64_t z = (uint64_t)rank * 1000003 + piece * 7919u + (uint64_t)e + 1;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)(z >> 32);
}

/* Element e of rank's contribution to the piece: of many magnitudes, so that orders differ. */
static void contribution(ccn__dtype t, uint32_t rank, uint32_t piece, int64_t e, void *out) {
  const uint32_t u = noise(rank, piece, e);
  if (t == CCN__I32) ccn__store_i64(t, out, (int32_t)u);
  else ccn__store_f64(t, out, ((double)(u & 0xffff) - 32768.0) / (double)(1u << (u >> 16) % 14));
}

static void *side(const ccn__algorithm *a, ccn__arena *arena, uint32_t rank, ccn__algo_buf buf,
                  const int64_t *count, ccn__dtype t) {
  int64_t n = 0;
  for (uint32_t i = 0; i < ccn__algorithm_chunks(a, rank, buf); i++)
    n += count[ccn__algorithm_piece(a, rank, buf, i)];
  char *at = ccn__arena_alloc(arena, (size_t)n * ccn__dtype_size(t) + 1), *to = at;
  if (buf == CCN__BUF_OUT) memset(at, 0x5a, (size_t)n * ccn__dtype_size(t));
  for (uint32_t i = 0; buf == CCN__BUF_IN && i < ccn__algorithm_chunks(a, rank, buf); i++) {
    const uint32_t p = ccn__algorithm_piece(a, rank, buf, i);
    for (int64_t e = 0; e < count[p]; e++, to += ccn__dtype_size(t)) contribution(t, rank, p, e, to);
  }
  return at;
}

static void expected(const ccn__algorithm *a, ccn__dtype t, ccn__redop op, uint32_t rank, uint32_t piece,
                     int64_t e, void *out) {
  sum s = {.t = t, .op = op, .n = a->nranks};
  if (!ccn__algorithm_reduces(a)) {
    contribution(t, ccn__algorithm_owner(a, rank, piece), piece, e, out);
    return;
  }
  for (uint32_t r = 0; r < s.n; r++) {
    char raw[8];
    contribution(t, r, piece, e, raw);
    if (t == CCN__I32) s.x[r].i = (int32_t)ccn__load_i64(t, raw);
    else s.x[r].f = (float)ccn__load_f64(t, raw);
  }
  number r = declared(&s, a, piece / a->chunks);
  if (op == CCN__RED_AVG) r.f /= (float)s.n;
  if (t == CCN__I32) ccn__store_i64(t, out, r.i);
  else ccn__store_f64(t, out, (double)r.f);
}

typedef struct setting {
  ccn__dtype t;
  ccn__redop op;
  int64_t extent, inner;
  uint64_t seed;
  bool good;
  uint32_t runs;
} setting;

static void run_one(ccn__algorithm *a, ccn__arena *arena, void *user) {
  setting *s = user;
  const uint32_t pieces = ccn__algorithm_pieces(a), n = a->nranks;
  int64_t *count = CCN__NEWN(arena, int64_t, pieces);
  const void **in = CCN__NEWN(arena, const void *, n);
  void **out = CCN__NEWN(arena, void *, n);
  if (a->op == CCN__OP_ALLTOALL && s->inner > 1)
    ccn__algorithm_counts2(a, s->extent, 1, s->inner, 1, 1, count);
  else ccn__algorithm_counts(a, s->extent, 1, s->inner, count);
  for (uint32_t r = 0; r < n; r++) {
    in[r] = side(a, arena, r, CCN__BUF_IN, count, s->t);
    out[r] = side(a, arena, r, CCN__BUF_OUT, count, s->t);
  }
  const ccn__algo_data d = {s->t, ccn__dtype_acc(s->t), s->op, count, in, out, s->seed};
  bool good = ccn__algorithm_run(a, &d, arena);
  const size_t item = ccn__dtype_size(s->t);
  for (uint32_t r = 0; r < n; r++) {
    const char *have = out[r];
    for (uint32_t i = 0; i < ccn__algorithm_chunks(a, r, CCN__BUF_OUT); i++) {
      const uint32_t p = ccn__algorithm_piece(a, r, CCN__BUF_OUT, i);
      for (int64_t e = 0; e < count[p]; e++, have += item) {
        char want[8];
        expected(a, s->t, s->op, r, p, e, want);
        good &= memcmp(have, want, item) == 0;
      }
    }
  }
  if (!good && s->good) kit_say(a, ccn__dtype_name(s->t));
  s->good &= good;
  s->runs++;
}

static void test_bits(void) {
  static const struct {
    ccn__dtype t;
    ccn__redop op;
  } kinds[] = {{CCN__F32, CCN__RED_SUM},  {CCN__F16, CCN__RED_SUM},  {CCN__F16, CCN__RED_AVG},
               {CCN__BF16, CCN__RED_SUM}, {CCN__BF16, CCN__RED_AVG}, {CCN__I32, CCN__RED_SUM},
               {CCN__I32, CCN__RED_MAX},  {CCN__F32, CCN__RED_AVG}};
  for (size_t k = 0; k < CCN__COUNT(kinds); k++) {
    setting s = {kinds[k].t, kinds[k].op, 0, 1, 0, true, 0};
    for (uint32_t n = 1; n <= 9; n++) {
      const int64_t extents[] = {0, 1, n - 1, n + 1, 37};
      for (size_t e = 0; e < CCN__COUNT(extents); e++) {
        s.extent = extents[e];
        s.inner = e % 2 ? 3 : 1;
        s.seed = n * 17 + e;
        kit_each(n, 1 + n % 2, run_one, &s);
      }
    }
    char text[96];
    snprintf(text, sizeof text, "%s %s: the declared order's bits in %u runs", ccn__dtype_name(kinds[k].t),
             ccn__redop_name(kinds[k].op), s.runs);
    ok(s.good && s.runs > 500, text);
  }
  setting s = {CCN__F32, CCN__RED_SUM, 129, 1, 3, true, 0};
  for (uint32_t n = 16; n <= 33; n += 17) kit_each(n, 2, run_one, &s);
  ok(s.good, "16 and 33 ranks");
}

static void test_interleavings(void) {
  setting s = {CCN__F16, CCN__RED_SUM, 23, 1, 0, true, 0};
  for (s.seed = 0; s.seed < 60; s.seed++) kit_each(5, 2, run_one, &s);
  ok(s.good, "60 interleavings, the same bits");
}

/* Orders differ on such data; else the tests above could not tell them apart. */
static void test_orders_differ(void) {
  ccn__merge merges[64];
  bool differs[CCN__ORDER_COUNT] = {false};
  for (int order = 0; order < CCN__ORDER_COUNT; order++)
    for (int64_t e = 0; e < 200; e++) {
      float x[8], y = 0;
      for (uint32_t r = 0; r < 8; r++) contribution(CCN__F32, r, 0, e, &x[r]);
      y = x[0];
      for (uint32_t r = 1; r < 8; r++) y += x[r];
      const uint32_t lane = ccn__order_merges((ccn__order)order, 4, 8, 3, merges);
      for (uint32_t i = 0; i < 7; i++) x[merges[i].to] += x[merges[i].from];
      differs[order] |= memcmp(&x[lane], &y, 4) != 0;
    }
  ok(!differs[CCN__ORDER_RANK] && differs[CCN__ORDER_TREE] && differs[CCN__ORDER_RING] &&
       differs[CCN__ORDER_GROUPS] && differs[CCN__ORDER_BINARY],
     "the orders give different bits on this data");
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static ccn__algorithm *make(ccn__arena *arena, ccn__generator g, ccn__op op, uint32_t n) {
  const char *why;
  return ccn__algorithm_make(arena, g, &(ccn__algo_want){.op = op, .nranks = n, .chunks = 1, .group = n},
                             &why);
}

static int64_t slice_of(int64_t extent, int64_t n, int64_t r) {
  const int64_t c = (extent + n - 1) / n, start = r * c < extent ? r * c : extent;
  return (r + 1) * c < extent ? c : extent - start;
}

static void test_bytes(void) {
  static const int64_t extents[] = {0, 1, 5, 1000, 1003, 65536};
  bool ring = true, ring16 = true, two = true, one = true, pairs = true, halving = true, tree = true;
  ccn__arena arena;
  ccn__arena_init(&arena, &kit_heap);
  for (uint32_t n = 1; n <= 17; n++)
    for (size_t x = 0; x < CCN__COUNT(extents); x++) {
      const int64_t d = extents[x], m = n;
      int64_t count[32], half = 0, up = 0;
      ccn__algo_traffic t;
      ccn__algorithm *a = make(&arena, CCN__MAKE_ring, CCN__OP_ALLREDUCE, n);
      ccn__algorithm_counts(a, d, 1, 1, count);
      for (int64_t r = 0; r < m; r++) {
        const int64_t own = slice_of(d, m, r), after = slice_of(d, m, (r + 1) % m),
                      before = slice_of(d, m, (r + m - 1) % m);
        ccn__algorithm_traffic(a, (uint32_t)r, count, 4, 4, &t);
        /* all but its own on the way to be summed, all but the next one's results */
        ring &= t.sent == (n > 1 ? 4 * (2 * d - own - after) : 0) && t.messages == 2 * (m - 1);
        ring &= t.received == (n > 1 ? 4 * (2 * d - own - before) : 0);
        if (d % m == 0) ring &= t.sent * m == 2 * (m - 1) * 4 * d && t.received == t.sent;
        ccn__algorithm_traffic(a, (uint32_t)r, count, 2, 4, &t);
        ring16 &= n == 1 || t.sent == 2 * before + 4 * (d - own - before) + 2 * (d - after);
      }
      a = make(&arena, CCN__MAKE_twoshot, CCN__OP_ALLREDUCE, n);
      for (int64_t r = 0; r < m; r++) {
        const int64_t own = slice_of(d, m, r);
        ccn__algorithm_traffic(a, (uint32_t)r, count, 2, 4, &t);
        two &= t.loaded == 2 * (m - 1) * own && t.stored == t.loaded && t.read == 2 * own &&
               t.written == 2 * own && t.sent == 0 && t.combined == (m - 1) * own &&
               t.barriers == (n > 1 ? 2 : 0);
      }
      a = make(&arena, CCN__MAKE_pairs, CCN__OP_ALLREDUCE, n);
      for (int64_t r = 0; r < m; r++) {
        const int64_t own = slice_of(d, m, r);
        ccn__algorithm_traffic(a, (uint32_t)r, count, 2, 4, &t);
        pairs &= t.sent == 2 * (d - own) + 2 * (m - 1) * own && t.messages == 2 * (m - 1);
      }
      a = make(&arena, CCN__MAKE_halving, CCN__OP_ALLREDUCE, n);
      for (uint32_t r = 0; r < n; r++) {
        ccn__algorithm_traffic(a, r, count, 4, 4, &t);
        half += t.sent;
        if (!(n & (n - 1)) && d % m == 0) halving &= t.sent * m == 2 * (m - 1) * 4 * d;
      }
      halving &= half == 2 * (m - 1) * 4 * d;
      a = make(&arena, CCN__MAKE_oneshot, CCN__OP_ALLREDUCE, n);
      ccn__algorithm_counts(a, d, 1, 1, count);
      ccn__algorithm_traffic(a, 0, count, 2, 4, &t);
      one &= t.loaded == 2 * (m - 1) * d && t.stored == 0 && t.read == 2 * d && t.written == 2 * d;
      a = make(&arena, CCN__MAKE_tree, CCN__OP_ALLREDUCE, n);
      for (uint32_t r = 0; r < n; r++) {
        ccn__algorithm_traffic(a, r, count, 4, 4, &t);
        up += t.sent;
      }
      tree &= up == 2 * (m - 1) * 4 * d;
    }
  ccn__arena_free(&arena);
  ok(ring, "a ring sends 2(n-1)/n of the data from each rank, with uneven slices all but two of them");
  ok(ring16, "of f16 only the sums in the middle are wide");
  ok(two, "two-shot: contributions in, results out, nothing wide");
  ok(one, "one-shot: n - 1 whole inputs");
  ok(pairs, "pairs: as two-shot, in messages");
  ok(halving, "halving: 2(n-1) times the data from all ranks together, evenly for powers of two");
  ok(tree, "tree: every link once up and once down");
}

static void test_equal(void) {
  ccn__arena arena;
  const int64_t count[2] = {1, 2};
  ccn__arena_init(&arena, &kit_heap);
  ccn__algorithm *a = make(&arena, CCN__MAKE_ring, CCN__OP_ALLREDUCE, 2);
  a->equal = true;
  const ccn__algo_data d = {CCN__F32, CCN__F32, CCN__RED_SUM, count, NULL, NULL, 0};
  ok(!ccn__algorithm_run(a, &d, &arena), "an algorithm for equal pieces refuses others");
  ccn__arena_free(&arena);
}

static void body(void) {
  test_bits();
  test_interleavings();
  test_orders_differ();
  test_bytes();
  test_equal();
}

int main(void) { return kit_main(body); }
