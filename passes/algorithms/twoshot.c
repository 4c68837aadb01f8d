/* twoshot.c
 * Purpose: all-reduce, reduce and broadcast by direct access in two phases: rank r reads slice r from its
 *          peers, makes its result, and writes that to all who want it.
 * Needs:   peers' memory can be read and written. Bytes: contributions and results only, (n-1)/n of the
 *          data in and out of every rank.
 * Order:   rank. Latency: two barriers.
 * Source:  the two-shot all-reduce of TensorRT-LLM, allpairs of MSCCL.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

static uint16_t peer(const ccn__builder *b, uint32_t q) { return q == b->rank ? CCN__NOBODY : (uint16_t)q; }

static void read_slice(ccn__builder *b, ccn__at reg, ccn__at slice) {
  const ccn__algorithm *a = b->a;
  if (a->op == CCN__OP_BROADCAST) {
    ccn__build_both(b, CCN__PRIM_COPY, reg, slice, 0)->from = peer(b, a->root);
    return;
  }
  for (uint32_t q = 0; q < a->nranks; q++)
    ccn__build_both(b, q ? CCN__PRIM_REDUCE : CCN__PRIM_COPY, reg, slice,
                    q + 1 == a->nranks ? CCN__ALGO_FINISH : 0)
      ->from = peer(b, q);
}

void ccn__generate_twoshot(ccn__algorithm *a, const ccn__algo_want *want) {
  const uint32_t n = a->nranks, k = want->chunks;
  for (uint32_t r = 0; r < n; r++) {
    ccn__builder b = {a, r, ccn__algorithm_channel(a, r, 0), k};
    const ccn__at reg = ccn__scratch(0, 1), slice = ccn__out(r * k, 1);
    for (uint32_t j = 0; j < k; j++) ccn__algorithm_scratch(a, r, r * k + j, CCN__REGISTER);
    if (n > 1) ccn__build(&b, CCN__PRIM_BARRIER, 0);
    read_slice(&b, reg, ccn__in(r * k, 1));
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t q = (r + i) % n;
      if (a->op != CCN__OP_REDUCE || q == a->root)
        ccn__build_both(&b, CCN__PRIM_COPY, slice, reg, 0)->to = peer(&b, q);
    }
    if (n > 1) ccn__build(&b, CCN__PRIM_BARRIER, 0);
  }
}
