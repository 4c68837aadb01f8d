/* pairs.c
 * Purpose: collectives by messages between all pairs of ranks that have something for each other; an
 *          all-reduce sends contributions to the owners of their slices, and results back.
 * Needs:   a connection between all pairs. Bytes: contributions and results only, never sums.
 * Order:   rank. Latency: one message, of the all-reduce two.
 * Source:  allpairs of MSCCL, with messages instead of stores; MPI's pairwise exchange.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

static uint16_t *everybody(ccn__algorithm *a) {
  uint16_t *peer = CCN__NEWN(a->arena, uint16_t, a->nranks);
  for (uint32_t r = 0; r < a->nranks; r++) peer[r] = (uint16_t)r;
  return peer;
}

/* The row of all ranks' pieces from `piece`, chunk `first` of this rank's input, into out. */
static void sum(ccn__builder *b, const uint16_t *peer, uint32_t first, uint32_t piece, ccn__at out) {
  ccn__algorithm *a = b->a;
  const uint32_t n = a->nranks, k = b->count, at = a->rank[b->rank].scratch.n;
  for (uint32_t j = 0; j < k && n > 2; j++) ccn__algorithm_scratch(a, b->rank, piece + j, CCN__WIDE);
  for (uint32_t j = 0; j < k && n > 2; j++) ccn__algorithm_scratch(a, b->rank, piece + j, CCN__NARROW);
  ccn__build_row(b, &(ccn__row){.peer = peer,
                                .items = n,
                                .own = b->rank,
                                .src = ccn__in(first, 1),
                                .sum = ccn__scratch(at, 1),
                                .first = ccn__scratch(at + k, 1),
                                .dst = out,
                                .finish = true});
}

/* To everybody else: the same chunks, or (step > 0) those that begin at step * receiver. */
static void send_all(ccn__builder *b, ccn__at src, uint32_t step) {
  const uint32_t n = b->a->nranks;
  for (uint32_t i = 1; i < n; i++) {
    const uint32_t q = (b->rank + i) % n;
    ccn__build_send(b, (ccn__at){src.buf, src.first + step * q, 1}, q, 0);
  }
}

static void recv_all(ccn__builder *b) {
  const uint32_t n = b->a->nranks, k = b->count;
  for (uint32_t i = 1; i < n; i++) {
    const uint32_t q = (b->rank + n - i) % n;
    ccn__build_recv(b, ccn__out(q * k, 1), q, 0);
  }
}

static void copy(ccn__builder *b, uint32_t out, uint32_t in) {
  ccn__build_both(b, CCN__PRIM_COPY, ccn__out(out, 1), ccn__in(in, 1), 0);
}

static void all_to_all(ccn__builder *b, const uint16_t *peer) {
  const uint32_t r = b->rank, k = b->count;
  switch (b->a->op) {
  case CCN__OP_ALLREDUCE:
    send_all(b, ccn__in(0, 1), k);
    sum(b, peer, r * k, r * k, ccn__out(r * k, 1));
    send_all(b, ccn__out(r * k, 1), 0);
    recv_all(b);
    return;
  case CCN__OP_REDUCESCATTER:
    send_all(b, ccn__in(0, 1), k);
    sum(b, peer, r * k, r * k, ccn__out(0, 1));
    return;
  case CCN__OP_ALLGATHER:
    copy(b, r * k, 0);
    send_all(b, ccn__in(0, 1), 0);
    recv_all(b);
    return;
  default: /* alltoall */
    copy(b, r * k, r * k);
    send_all(b, ccn__in(0, 1), k);
    recv_all(b);
    return;
  }
}

static void at_root(ccn__builder *b, const uint16_t *peer) {
  const uint32_t r = b->rank, k = b->count;
  switch (b->a->op) {
  case CCN__OP_REDUCE: sum(b, peer, 0, 0, ccn__out(0, 1)); return;
  case CCN__OP_BROADCAST:
    copy(b, 0, 0);
    send_all(b, ccn__in(0, 1), 0);
    return;
  case CCN__OP_GATHER:
    copy(b, r * k, 0);
    recv_all(b);
    return;
  default: /* scatter */
    copy(b, 0, r * k);
    send_all(b, ccn__in(0, 1), k);
    return;
  }
}

static void move(ccn__builder *b, const uint16_t *receiver) {
  const uint16_t *source = b->a->source;
  const uint32_t r = b->rank;
  if (source[r] == r) copy(b, 0, 0);
  else if (receiver[r] != CCN__NOBODY) ccn__build_send(b, ccn__in(0, 1), receiver[r], 0);
  if (source[r] != r && source[r] != CCN__NOBODY) ccn__build_recv(b, ccn__out(0, 1), source[r], 0);
}

/* Who gets whose value: no value goes to two. */
static uint16_t *receivers(ccn__algorithm *a) {
  uint16_t *to = CCN__NEWN(a->arena, uint16_t, a->nranks);
  for (uint32_t r = 0; r < a->nranks; r++) to[r] = CCN__NOBODY;
  for (uint32_t r = 0; a->source && r < a->nranks; r++)
    if (a->source[r] != CCN__NOBODY) to[a->source[r]] = (uint16_t)r;
  return to;
}

void ccn__generate_pairs(ccn__algorithm *a, const ccn__algo_want *want) {
  const uint16_t *peer = everybody(a), *receiver = receivers(a);
  if (a->op == CCN__OP_REDUCE || a->op == CCN__OP_BROADCAST) a->slices = 1;
  for (uint32_t r = 0; r < a->nranks; r++) {
    ccn__builder b = {a, r, ccn__algorithm_channel(a, r, 0), want->chunks};
    switch (a->op) {
    case CCN__OP_REDUCE:
    case CCN__OP_GATHER:
      if (r == a->root) at_root(&b, peer);
      else ccn__build_send(&b, ccn__in(0, 1), a->root, 0);
      break;
    case CCN__OP_BROADCAST:
    case CCN__OP_SCATTER:
      if (r == a->root) at_root(&b, peer);
      else ccn__build_recv(&b, ccn__out(0, 1), a->root, 0);
      break;
    case CCN__OP_SHIFT:
    case CCN__OP_PERMUTE: move(&b, receiver); break;
    default: all_to_all(&b, peer); break;
    }
  }
}
