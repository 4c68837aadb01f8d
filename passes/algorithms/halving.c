/* halving.c
 * Purpose: neighbours meet, then pairs of pairs, and so on. A reduce-scatter halves what a rank is
 *          responsible for each time, an all-gather doubles it; with a root it is a binomial tree.
 * Needs:   nothing; any number of ranks: the second half of a block may be shorter than the first, its
 *          ranks then answer for several of the first half. log2 n rounds. Bytes as the ring's for powers
 *          of two; sums from the second round on.
 * Order:   tree (adjacent pairs).
 * Source:  Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, with the distances
 *          turned around so that the order is that of adjacent pairs.
 *
 * A block is [lo, hi) with lo a multiple of a power of two; it is its first half, of the largest power of
 * two below its length, and the rest. In each block a slice has an owner, who has the sum over the block
 * (or, on the way back, the result): of all ranks together the owner that the collective says; of the half
 * in which the owner lies the same rank; of the other half a rank at the same place (modulo its length).
 * The other one is `mate`. Chunk j of all slices has a channel of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

typedef struct halver {
  ccn__algorithm *a;
  uint32_t n, k, j;
  bool rooted;     /* every slice ends, or begins, at the root */
  uint32_t *first; /* of each rank in a block: the first slice that it owns there, + 1 */
  uint32_t *next;  /* of each slice the next one with the same owner, + 1 */
  uint32_t **sum;  /* of each rank and slice: the scratch chunk of its sum, + 1; 0: nothing was added yet */
  bool *fresh;     /* of each slice: its owner in this block has a contribution only */
} halver;

static uint32_t half(uint32_t length) {
  uint32_t m = 1;
  while (2 * m < length) m *= 2;
  return m;
}

/* The rank that answers for owner o in the other half of [lo, hi). */
static uint32_t mate(uint32_t lo, uint32_t hi, uint32_t o) {
  const uint32_t m = half(hi - lo), rest = hi - lo - m;
  return o < lo + m ? lo + m + (o - lo) % rest : o - m;
}

static uint32_t owner(const halver *h, uint32_t slice, uint32_t lo, uint32_t hi) {
  uint32_t from = 0, to = h->n, o = h->rooted ? h->a->root : slice;
  while (from != lo || to != hi) {
    const uint32_t middle = from + half(to - from);
    const bool in_first = hi <= middle;
    if ((o < middle) != in_first) o = mate(from, to, o);
    if (in_first) to = middle;
    else from = middle;
  }
  return o;
}

/* Sorts the slices by owner, each list ascending. */
static void find_owners(halver *h, uint32_t lo, uint32_t hi) {
  const uint32_t slices = h->a->slices;
  for (uint32_t r = lo; r < hi; r++) h->first[r] = 0;
  for (uint32_t s = slices; s-- > 0;) {
    const uint32_t o = owner(h, s, lo, hi);
    h->next[s] = h->first[o];
    h->first[o] = s + 1;
  }
}

static ccn__builder at(const halver *h, uint32_t rank) { return (ccn__builder){h->a, rank, h->j, 1}; }
static ccn__at piece(const halver *h, ccn__algo_buf buf, uint32_t slice) {
  return (ccn__at){buf, slice * h->k + h->j, 1};
}

/* ---- one message for several slices ---------------------------------------------------------- */

/* Slices of one owner that cross together: evenly spaced in every buffer that they touch. */
typedef struct run {
  uint32_t slice, count, step; /* first slice, how many, distance */
  uint32_t src, src_step;      /* scratch chunk of the sender's sums, + 1; 0: contributions */
  uint32_t dst, dst_step;      /* scratch chunk of the receiver's sums, + 1; 0: it has a contribution */
} run;

static bool even(uint32_t first, uint32_t step, uint32_t i, uint32_t next) {
  return first ? next == first + i * step : !next;
}

/* The next run of o's slices from *cursor on (slice + 1); 0 is the end. */
static bool next_run(const halver *h, uint32_t o, uint32_t from, uint32_t *cursor, run *out) {
  uint32_t s = *cursor;
  if (!s) return false;
  *out = (run){s - 1, 1, 1, h->sum[from][s - 1], 1, h->fresh[s - 1] ? 0 : h->sum[o][s - 1], 1};
  const uint32_t room = h->sum[o][s - 1];
  uint32_t room_step = 1;
  for (s = h->next[s - 1]; s; s = h->next[s - 1]) {
    const uint32_t src = h->sum[from][s - 1], sum = h->sum[o][s - 1], dst = h->fresh[s - 1] ? 0 : sum;
    if (out->count == 1) {
      out->step = s - 1 - out->slice;
      if (src > out->src) out->src_step = src - out->src;
      if (dst > out->dst) out->dst_step = dst - out->dst;
      if (sum > room) room_step = sum - room;
    }
    if (s - 1 != out->slice + out->count * out->step || !even(out->src, out->src_step, out->count, src) ||
        !even(out->dst, out->dst_step, out->count, dst) || !even(room, room_step, out->count, sum))
      break;
    out->count++;
  }
  *cursor = s;
  if (!out->dst) out->dst_step = room_step;
  return true;
}

static ccn__at run_at(const halver *h, const run *r, ccn__algo_buf buf) {
  return (ccn__at){buf, r->slice * h->k + h->j, r->step * h->k};
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* The sender's sums of the slices, or its contributions. */
static void send_run(const halver *h, uint32_t x, uint32_t to, const run *r) {
  ccn__builder b = at(h, x);
  b.count = r->count;
  if (r->src) ccn__build_send(&b, ccn__scratch(r->src - 1, r->src_step), to, CCN__ALGO_TO_WIDE);
  else ccn__build_send(&b, run_at(h, r, CCN__BUF_IN), to, 0);
}

static void add_run(const halver *h, uint32_t x, uint32_t from, const run *r, bool last) {
  ccn__builder b = at(h, x);
  const bool own_first = x < from; /* its half is the first one */
  const uint8_t flags = (r->src ? CCN__ALGO_FROM_WIDE : 0) | (last ? CCN__ALGO_FINISH : 0);
  const ccn__at had = ccn__scratch(r->dst - 1, r->dst_step);
  b.count = r->count;
  if (r->dst && !last) {
    ccn__algo_step *s = ccn__build_recv(&b, had, from, flags | (own_first ? 0 : CCN__ALGO_SWAP));
    s->prim = CCN__PRIM_RECV_REDUCE;
    return;
  }
  const ccn__at room = ccn__scratch(h->sum[x][r->slice] - 1, r->dst_step);
  const ccn__at out = h->a->op == CCN__OP_REDUCESCATTER ? ccn__out(h->j, 1) : run_at(h, r, CCN__BUF_OUT);
  ccn__build_both(&b, CCN__PRIM_RECV_REDUCE_COPY, last ? out : room, r->dst ? had : run_at(h, r, CCN__BUF_IN),
                  flags | (own_first ? CCN__ALGO_SWAP : 0))
    ->from = (uint16_t)from;
}

/* Room for the sums that begin in this block. */
static void make_sums(halver *h, uint32_t lo, uint32_t hi, bool last) {
  for (uint32_t o = lo; o < hi; o++)
    for (uint32_t s = h->first[o]; s; s = h->next[s - 1]) {
      h->fresh[s - 1] = !h->sum[o][s - 1];
      if (h->fresh[s - 1] && !last)
        h->sum[o][s - 1] = ccn__algorithm_scratch(h->a, o, (s - 1) * h->k + h->j, CCN__WIDE) + 1;
    }
}

/* Everybody sends a run before anybody receives one, so that both directions are used at once and no
 * connection holds more than one; `first` moves on. True: some owners have more. */
static bool reduce_round(halver *h, uint32_t lo, uint32_t hi, bool last) {
  bool more = false;
  run r;
  for (uint32_t o = lo; o < hi; o++) {
    uint32_t s = h->first[o];
    if (next_run(h, o, mate(lo, hi, o), &s, &r)) send_run(h, mate(lo, hi, o), o, &r);
  }
  for (uint32_t o = lo; o < hi; o++) {
    if (next_run(h, o, mate(lo, hi, o), &h->first[o], &r)) add_run(h, o, mate(lo, hi, o), &r, last);
    more |= h->first[o] != 0;
  }
  return more;
}

/* A block's halves are done. */
static void reduce_block(halver *h, uint32_t lo, uint32_t hi) {
  const bool last = hi - lo == h->n;
  find_owners(h, lo, hi);
  make_sums(h, lo, hi, last);
  while (reduce_round(h, lo, hi, last)) {}
}

/* ---- results --------------------------------------------------------------------------------- */

static void spread_run(const halver *h, uint32_t x, uint32_t peer, const run *r, bool sends) {
  ccn__builder b = at(h, x);
  b.count = r->count;
  if (sends) ccn__build_send(&b, run_at(h, r, CCN__BUF_OUT), peer, 0);
  else ccn__build_recv(&b, run_at(h, r, CCN__BUF_OUT), peer, 0);
}

static bool spread_round(halver *h, uint32_t lo, uint32_t hi) {
  bool more = false;
  run r;
  for (uint32_t o = lo; o < hi; o++) {
    uint32_t s = h->first[o];
    if (next_run(h, o, o, &s, &r)) spread_run(h, o, mate(lo, hi, o), &r, true);
  }
  for (uint32_t o = lo; o < hi; o++) {
    if (next_run(h, o, o, &h->first[o], &r)) spread_run(h, mate(lo, hi, o), o, &r, false);
    more |= h->first[o] != 0;
  }
  return more;
}

static void spread_block(halver *h, uint32_t lo, uint32_t hi) {
  find_owners(h, lo, hi);
  while (spread_round(h, lo, hi)) {}
}

/* ---- gather and scatter: a half's slices cross together -------------------------------------- */

/* Where rank x, who answers for [lo, hi), has its slices: of the root its own buffer, else scratch from
 * sum[x][0]. */
static ccn__at held(const halver *h, uint32_t x, uint32_t lo, uint32_t base) {
  if (x == h->a->root)
    return (ccn__at){h->a->op == CCN__OP_GATHER ? CCN__BUF_OUT : CCN__BUF_IN, lo * h->k + h->j, h->k};
  return ccn__scratch(h->sum[x][0] - 1 + lo - base, 1);
}

static void cross(halver *h, uint32_t lo, uint32_t hi) {
  const uint32_t o = owner(h, 0, lo, hi), x = mate(lo, hi, o), middle = lo + half(hi - lo);
  const uint32_t first = x < middle ? lo : middle, end = x < middle ? middle : hi;
  ccn__builder b = at(h, o), c = at(h, x);
  b.count = c.count = end - first;
  /* x answers for its half and for nothing larger; o for the largest block that it ever answers for, from
   * base[o] on */
  const ccn__at there = held(h, x, first, h->first[x]), here = held(h, o, first, h->first[o]);
  if (h->a->op == CCN__OP_GATHER) {
    ccn__build_send(&c, there, o, 0);
    ccn__build_recv(&b, here, x, 0);
  } else {
    ccn__build_send(&b, here, x, 0);
    ccn__build_recv(&c, there, o, 0);
  }
}

/* Room for the largest block for which each rank answers: first[x] becomes its lo. */
static void make_room(halver *h, uint32_t lo, uint32_t hi) {
  const uint32_t x = owner(h, 0, lo, hi);
  if (x == h->a->root || h->sum[x][0]) return;
  for (uint32_t s = lo; s < hi; s++) {
    const uint32_t i = ccn__algorithm_scratch(h->a, x, s * h->k + h->j, CCN__NARROW);
    if (s == lo) h->sum[x][0] = i + 1;
  }
  h->first[x] = lo;
}

static void copy_own(halver *h) {
  for (uint32_t x = 0; x < h->n; x++) {
    ccn__builder b = at(h, x);
    const ccn__at own = held(h, x, x, h->first[x]);
    if (h->a->op == CCN__OP_GATHER) ccn__build_both(&b, CCN__PRIM_COPY, own, ccn__in(h->j, 1), 0);
    else ccn__build_both(&b, CCN__PRIM_COPY, ccn__out(h->j, 1), own, 0);
  }
}

/* ---- all blocks ------------------------------------------------------------------------------ */

/* Calls f for every block of more than one rank (and with `singles` those of one), smallest first or last. */
static void each_block(halver *h, bool smallest_first, bool singles,
                       void (*f)(halver *, uint32_t, uint32_t)) {
  uint32_t levels = 0;
  while ((uint32_t)1 << levels < h->n) levels++;
  for (uint32_t i = 0; i <= levels; i++) {
    const uint32_t level = smallest_first ? i : levels - i, size = (uint32_t)1 << level;
    for (uint32_t lo = 0; lo < h->n; lo += size) {
      const uint32_t hi = h->n - lo < size ? h->n : lo + size;
      const bool is_block = hi - lo > size / 2 || level == 0; /* else it is one of a lower level */
      if (is_block && (hi - lo > 1 || singles)) f(h, lo, hi);
    }
  }
}

static void forget_sums(halver *h) {
  for (uint32_t r = 0; r < h->n; r++) memset(h->sum[r], 0, h->a->slices * sizeof **h->sum);
}

static void begin(halver *h, bool reduces, bool moves) {
  forget_sums(h);
  for (uint32_t r = 0; r < h->n; r++) {
    ccn__builder b = at(h, r);
    (void)ccn__algorithm_channel(h->a, r, h->j);
    if (reduces && h->n == 1)
      ccn__build_both(&b, CCN__PRIM_COPY, ccn__out(h->j, 1), ccn__in(h->j, 1), CCN__ALGO_FINISH);
    if (h->a->op == CCN__OP_BROADCAST && r == h->a->root)
      ccn__build_both(&b, CCN__PRIM_COPY, ccn__out(h->j, 1), ccn__in(h->j, 1), 0);
    if (h->a->op == CCN__OP_ALLGATHER)
      ccn__build_both(&b, CCN__PRIM_COPY, piece(h, CCN__BUF_OUT, r), ccn__in(h->j, 1), 0);
  }
  if (moves) each_block(h, false, true, make_room);
}

void ccn__generate_halving(ccn__algorithm *a, const ccn__algo_want *want) {
  const bool reduces = ccn__algorithm_reduces(a), moves = a->op == CCN__OP_GATHER || a->op == CCN__OP_SCATTER;
  halver h = {.a = a, .n = a->nranks, .k = want->chunks};
  h.rooted = a->op == CCN__OP_REDUCE || a->op == CCN__OP_BROADCAST || moves;
  if (h.rooted && !moves) a->slices = 1;
  h.first = CCN__NEWN(a->arena, uint32_t, h.n);
  h.next = CCN__NEWN(a->arena, uint32_t, a->slices);
  h.fresh = CCN__NEWN(a->arena, bool, a->slices);
  h.sum = CCN__NEWN(a->arena, uint32_t *, h.n);
  for (uint32_t r = 0; r < h.n; r++) h.sum[r] = CCN__NEWN(a->arena, uint32_t, a->slices);
  for (h.j = 0; h.j < h.k; h.j++) {
    begin(&h, reduces, moves);
    if (a->op == CCN__OP_GATHER) copy_own(&h);
    if (reduces) each_block(&h, true, false, reduce_block);
    if (!moves) forget_sums(&h);
    if (a->op == CCN__OP_ALLREDUCE || a->op == CCN__OP_ALLGATHER || a->op == CCN__OP_BROADCAST)
      each_block(&h, false, false, spread_block);
    if (moves) each_block(&h, a->op == CCN__OP_GATHER, false, cross);
    if (a->op == CCN__OP_SCATTER) copy_own(&h);
  }
}
