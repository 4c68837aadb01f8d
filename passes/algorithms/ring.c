/* ring.c
 * Purpose: each rank receives from the one before it and sends to the one behind it. A reduce-scatter
 *          sends slice s once around, from rank s + 1 to rank s, each rank adding its contribution; an
 *          all-gather sends results on. Reduce and broadcast are a chain that ends, or begins, at the
 *          root.
 * Needs:   capacity 2: everybody sends before anybody receives. Bytes of the all-reduce: 2(n-1)/n of the
 *          data from each rank, of which the n - 2 slices in the middle of the first half are sums.
 * Order:   ring. Chunk j of every slice has a channel of its own; the chains send their chunks in a row.
 * Source:  Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009; NCCL.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

typedef struct turn {
  ccn__builder b;
  uint32_t n, k, j; /* ranks, chunks of a slice, which chunk */
  uint32_t before, behind;
} turn;

static uint32_t slice(const turn *t, uint32_t back) { return (t->b.rank + 2 * t->n - back) % t->n; }
static ccn__at chunk(const turn *t, ccn__algo_buf buf, uint32_t back) {
  return (ccn__at){buf, slice(t, back) * t->k + t->j, 1};
}

/* The slice that this rank ends up with, at dst; `on`: it is sent on at once. */
static void reduce_scatter(turn *t, ccn__at dst, bool on) {
  if (t->n == 1) {
    ccn__build_both(&t->b, CCN__PRIM_COPY, dst, chunk(t, CCN__BUF_IN, 0), CCN__ALGO_FINISH);
    return;
  }
  ccn__build_send(&t->b, chunk(t, CCN__BUF_IN, 1), t->behind, 0);
  for (uint32_t i = 2; i < t->n; i++) {
    ccn__algo_step *s = ccn__build_send(&t->b, chunk(t, CCN__BUF_IN, i), t->behind, CCN__ALGO_TO_WIDE);
    s->prim = CCN__PRIM_RECV_REDUCE_SEND;
    s->from = (uint16_t)t->before;
    if (i > 2) s->flags |= CCN__ALGO_FROM_WIDE;
  }
  ccn__algo_step *s =
    ccn__build_both(&t->b, on ? CCN__PRIM_RECV_REDUCE_COPY_SEND : CCN__PRIM_RECV_REDUCE_COPY, dst,
                    chunk(t, CCN__BUF_IN, 0), CCN__ALGO_FINISH | (t->n > 2 ? CCN__ALGO_FROM_WIDE : 0));
  s->from = (uint16_t)t->before;
  if (on) s->to = (uint16_t)t->behind;
}

/* Behind the sending of one's own. */
static void all_gather(turn *t) {
  for (uint32_t i = 1; i < t->n; i++) {
    ccn__algo_step *s = ccn__build_recv(&t->b, chunk(t, CCN__BUF_OUT, i), t->before, 0);
    if (i + 1 == t->n) continue;
    s->prim = CCN__PRIM_RECV_COPY_SEND;
    s->to = (uint16_t)t->behind;
  }
}

static void around(turn *t) {
  switch (t->b.a->op) {
  case CCN__OP_ALLREDUCE:
    reduce_scatter(t, chunk(t, CCN__BUF_OUT, 0), true);
    all_gather(t);
    return;
  case CCN__OP_REDUCESCATTER: reduce_scatter(t, ccn__out(t->j, 1), false); return;
  default: /* allgather */
    ccn__build_both(&t->b, CCN__PRIM_COPY, chunk(t, CCN__BUF_OUT, 0), ccn__in(t->j, 1), 0);
    if (t->n > 1) ccn__build_send(&t->b, ccn__in(t->j, 1), t->behind, 0);
    all_gather(t);
    return;
  }
}

/* One chunk of a chain: `place` 0 begins it. */
static void reduce_link(turn *t, uint32_t place) {
  const ccn__at in = ccn__in(t->j, 1);
  const uint8_t wide = place > 1 ? CCN__ALGO_FROM_WIDE : 0;
  if (t->n == 1) {
    ccn__build_both(&t->b, CCN__PRIM_COPY, ccn__out(t->j, 1), in, CCN__ALGO_FINISH);
  } else if (place == 0) {
    ccn__build_send(&t->b, in, t->behind, 0);
  } else if (place + 1 == t->n) {
    ccn__build_both(&t->b, CCN__PRIM_RECV_REDUCE_COPY, ccn__out(t->j, 1), in, wide | CCN__ALGO_FINISH)->from =
      (uint16_t)t->before;
  } else {
    ccn__algo_step *s = ccn__build_send(&t->b, in, t->behind, wide | CCN__ALGO_TO_WIDE);
    s->prim = CCN__PRIM_RECV_REDUCE_SEND;
    s->from = (uint16_t)t->before;
  }
}

static void broadcast_link(turn *t, uint32_t place) {
  if (place == 0) {
    ccn__build_both(&t->b, CCN__PRIM_COPY, ccn__out(t->j, 1), ccn__in(t->j, 1), 0);
    if (t->n > 1) ccn__build_send(&t->b, ccn__in(t->j, 1), t->behind, 0);
    return;
  }
  ccn__algo_step *s = ccn__build_recv(&t->b, ccn__out(t->j, 1), t->before, 0);
  if (place + 1 == t->n) return;
  s->prim = CCN__PRIM_RECV_COPY_SEND;
  s->to = (uint16_t)t->behind;
}

void ccn__generate_ring(ccn__algorithm *a, const ccn__algo_want *want) {
  const uint32_t n = a->nranks, k = want->chunks;
  const bool chain = a->op == CCN__OP_REDUCE || a->op == CCN__OP_BROADCAST;
  if (chain) a->slices = 1;
  for (uint32_t r = 0; r < n; r++) {
    turn t = {{a, r, 0, 1}, n, k, 0, (r + n - 1) % n, (r + 1) % n};
    for (t.j = 0; t.j < k; t.j++) {
      if (!chain || t.j == 0) t.b.channel = ccn__algorithm_channel(a, r, t.j);
      if (a->op == CCN__OP_REDUCE) reduce_link(&t, (r + 2 * n - a->root - 1) % n);
      else if (chain) broadcast_link(&t, (r + n - a->root) % n);
      else around(&t);
    }
  }
}
