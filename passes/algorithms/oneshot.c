/* oneshot.c
 * Purpose: collectives by direct access in one phase: every rank reads what it needs from its peers'
 *          inputs.
 * Needs:   peers' memory can be read. Bytes: contributions only, never sums; an all-reduce reads n - 1
 *          whole inputs.
 * Order:   rank. Latency: two barriers.
 * Source:  the one-shot all-reduce of TensorRT-LLM and of MSCCL's allreduce_1step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

static void load(ccn__builder *b, ccn__prim prim, ccn__at dst, ccn__at src, uint32_t peer, uint8_t flags) {
  ccn__algo_step *s = ccn__build_both(b, prim, dst, src, flags);
  if (peer != b->rank) s->from = (uint16_t)peer;
}

/* Pieces [piece, piece + chunks) of all inputs, at chunk `first` there, in rank order in registers, then
 * to `out`. */
static void sum(ccn__builder *b, uint32_t first, uint32_t piece, ccn__at out) {
  const uint32_t n = b->a->nranks, at = b->a->rank[b->rank].scratch.n;
  for (uint32_t j = 0; j < b->count; j++) ccn__algorithm_scratch(b->a, b->rank, piece + j, CCN__REGISTER);
  for (uint32_t q = 0; q < n; q++)
    load(b, q ? CCN__PRIM_REDUCE : CCN__PRIM_COPY, ccn__scratch(at, 1), ccn__in(first, 1), q,
         q + 1 == n ? CCN__ALGO_FINISH : 0);
  ccn__build_both(b, CCN__PRIM_COPY, out, ccn__scratch(at, 1), 0);
}

/* Peers in turn, oneself first, so that not all ranks read from one. */
static void read_all(ccn__builder *b, bool alltoall) {
  const uint32_t n = b->a->nranks, k = b->count;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t q = (b->rank + i) % n;
    load(b, CCN__PRIM_COPY, ccn__out(q * k, 1), ccn__in(alltoall ? b->rank * k : 0, 1), q, 0);
  }
}

static void read(ccn__builder *b) {
  const ccn__algorithm *a = b->a;
  const uint32_t r = b->rank, k = b->count;
  switch (a->op) {
  case CCN__OP_REDUCE:
    if (r != a->root) return;
    sum(b, 0, 0, ccn__out(0, 1));
    return;
  case CCN__OP_ALLREDUCE: sum(b, 0, 0, ccn__out(0, 1)); return;
  case CCN__OP_REDUCESCATTER: sum(b, r * k, r * k, ccn__out(0, 1)); return;
  case CCN__OP_GATHER:
    if (r == a->root) read_all(b, false);
    return;
  case CCN__OP_ALLGATHER: read_all(b, false); return;
  case CCN__OP_ALLTOALL: read_all(b, true); return;
  case CCN__OP_BROADCAST: load(b, CCN__PRIM_COPY, ccn__out(0, 1), ccn__in(0, 1), a->root, 0); return;
  case CCN__OP_SCATTER: load(b, CCN__PRIM_COPY, ccn__out(0, 1), ccn__in(r * k, 1), a->root, 0); return;
  default:
    if (a->source[r] != CCN__NOBODY) load(b, CCN__PRIM_COPY, ccn__out(0, 1), ccn__in(0, 1), a->source[r], 0);
    return;
  }
}

void ccn__generate_oneshot(ccn__algorithm *a, const ccn__algo_want *want) {
  if (a->op == CCN__OP_ALLREDUCE || a->op == CCN__OP_REDUCE || a->op == CCN__OP_BROADCAST) a->slices = 1;
  for (uint32_t r = 0; r < a->nranks; r++) {
    ccn__builder b = {a, r, ccn__algorithm_channel(a, r, 0), want->chunks};
    if (a->nranks > 1) ccn__build(&b, CCN__PRIM_BARRIER, 0);
    read(&b);
    if (a->nranks > 1) ccn__build(&b, CCN__PRIM_BARRIER, 0);
  }
}
