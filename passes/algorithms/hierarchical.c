/* hierarchical.c
 * Purpose: ranks in groups of m neighbours, for machines whose nodes are faster inside than between: a
 *          phase within the groups and one between the ranks of equal position. Only 1/m of the data of a
 *          rank crosses groups.
 * Needs:   groups of equal size. Both phases are messages between all pairs of those who meet.
 * Order:   groups(m): in rank order within a group, then the groups in order. Sums cross groups in the
 *          accumulation dtype.
 * Source:  Horovod's hierarchical all-reduce; two_step of MSCCL for all-to-all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

typedef struct hier {
  ccn__builder b;
  uint32_t m, groups, k, j; /* ranks a group; groups; chunks a slice, which one */
  uint32_t g, l;            /* this rank is place l of group g */
  uint16_t *inner, *outer;  /* the ranks of its group; those of its place */
  uint32_t sums;            /* scratch chunks: a sum for each group, then as many contributions */
} hier;

static uint32_t chunk(const hier *h, uint32_t slice) { return slice * h->k + h->j; }

static uint32_t scratch(hier *h, uint32_t slice, ccn__algo_width width) {
  return ccn__algorithm_scratch(h->b.a, h->b.rank, chunk(h, slice), width);
}

/* ---- sums: first the group's, of the slices l, l + m, ... ------------------------------------ */

/* Sums over the group of `count` chunks: from `first` on, each `stride` further. They are at h->sums then. */
static void sum_inner(hier *h, uint32_t count, uint32_t first, uint32_t stride, uint32_t slice,
                      uint32_t step) {
  h->sums = h->b.a->rank[h->b.rank].scratch.n;
  for (uint32_t i = 0; i < count && h->m > 1; i++) scratch(h, slice + i * step, CCN__WIDE);
  const uint32_t contributions = h->b.a->rank[h->b.rank].scratch.n;
  for (uint32_t i = 0; i < count && h->m > 2; i++) scratch(h, slice + i * step, CCN__NARROW);
  h->b.count = count;
  if (h->m > 1)
    ccn__build_row(&h->b, &(ccn__row){.peer = h->inner,
                                      .items = h->m,
                                      .own = h->l,
                                      .src = ccn__in(first, stride),
                                      .sum = ccn__scratch(h->sums, 1),
                                      .first = ccn__scratch(contributions, 1),
                                      .dst = ccn__scratch(h->sums, 1)});
  h->b.count = 1;
}

/* Where this rank has its group's sum of the i-th slice: with groups of one its contribution. */
static ccn__at group_sum(const hier *h, uint32_t i, uint32_t in) {
  return h->m > 1 ? ccn__scratch(h->sums + i, 1) : ccn__in(in, 1);
}

/* The groups' sums of one slice, at dst. */
static void sum_outer(hier *h, ccn__at own, uint32_t slice, ccn__at dst) {
  const bool wide = h->m > 1;
  uint32_t at = 0;
  if (h->groups > 2) at = scratch(h, slice, CCN__WIDE);
  if (h->groups > 2) scratch(h, slice, wide ? CCN__WIDE : CCN__NARROW);
  ccn__build_row(&h->b, &(ccn__row){.peer = h->outer,
                                    .items = h->groups,
                                    .own = h->g,
                                    .wide = wide,
                                    .src = own,
                                    .sum = ccn__scratch(at, 1),
                                    .first = ccn__scratch(at + 1, 1),
                                    .dst = dst,
                                    .finish = true});
}

static void reduce_scatter(hier *h, ccn__at dst) {
  const uint32_t stride = h->m * h->k, own = chunk(h, h->b.rank);
  const uint8_t wide = h->m > 1 ? CCN__ALGO_TO_WIDE : 0;
  h->b.count = h->groups;
  for (uint32_t i = 1; i < h->m; i++) {
    const uint32_t q = (h->l + i) % h->m;
    ccn__build_send(&h->b, ccn__in(chunk(h, q), stride), h->inner[q], 0);
  }
  sum_inner(h, h->groups, chunk(h, h->l), stride, h->l, h->m);
  for (uint32_t i = 1; i < h->groups; i++) {
    const uint32_t q = (h->g + i) % h->groups;
    ccn__build_send(&h->b, group_sum(h, q, chunk(h, q * h->m + h->l)), h->outer[q], wide);
  }
  sum_outer(h, group_sum(h, h->g, own), h->b.rank, dst);
}

/* ---- results: first to the other groups, then within ----------------------------------------- */

/* This rank's slice is in out. */
static void all_gather(hier *h) {
  const uint32_t stride = h->m * h->k;
  h->b.count = 1;
  for (uint32_t i = 1; i < h->groups; i++)
    ccn__build_send(&h->b, ccn__out(chunk(h, h->b.rank), 1), h->outer[(h->g + i) % h->groups], 0);
  for (uint32_t i = 1; i < h->groups; i++) {
    const uint16_t q = h->outer[(h->g + h->groups - i) % h->groups];
    ccn__build_recv(&h->b, ccn__out(chunk(h, q), 1), q, 0);
  }
  h->b.count = h->groups;
  for (uint32_t i = 1; i < h->m; i++)
    ccn__build_send(&h->b, ccn__out(chunk(h, h->l), stride), h->inner[(h->l + i) % h->m], 0);
  for (uint32_t i = 1; i < h->m; i++) {
    const uint32_t q = (h->l + h->m - i) % h->m;
    ccn__build_recv(&h->b, ccn__out(chunk(h, q), stride), h->inner[q], 0);
  }
}

/* ---- with a root: the ranks of its place speak for their groups ------------------------------ */

static void reduce(hier *h, uint32_t root) {
  const uint32_t leader = h->inner[root % h->m];
  const ccn__at in = ccn__in(h->j, 1);
  if (h->b.rank != leader) {
    ccn__build_send(&h->b, in, leader, 0);
    return;
  }
  sum_inner(h, 1, h->j, 1, 0, 1);
  if (h->b.rank == root) sum_outer(h, group_sum(h, 0, h->j), 0, ccn__out(h->j, 1));
  else ccn__build_send(&h->b, group_sum(h, 0, h->j), root, h->m > 1 ? CCN__ALGO_TO_WIDE : 0);
}

static void broadcast(hier *h, uint32_t root) {
  const uint32_t leader = h->inner[root % h->m];
  const ccn__at out = ccn__out(h->j, 1);
  if (h->b.rank == root) ccn__build_both(&h->b, CCN__PRIM_COPY, out, ccn__in(h->j, 1), 0);
  else ccn__build_recv(&h->b, out, h->b.rank == leader ? root : leader, 0);
  for (uint32_t i = 1; i < h->groups && h->b.rank == root; i++)
    ccn__build_send(&h->b, out, h->outer[(h->g + i) % h->groups], 0);
  for (uint32_t i = 1; i < h->m && h->b.rank == leader; i++)
    ccn__build_send(&h->b, out, h->inner[(h->l + i) % h->m], 0);
}

/* ---- all to all: within the group to the rank of the receiver's place, from there to the receiver ---- */

static void exchange_inner(hier *h, uint32_t at) {
  const uint32_t stride = h->m * h->k;
  h->b.count = h->groups;
  for (uint32_t i = 1; i < h->m; i++) {
    const uint32_t q = (h->l + i) % h->m;
    ccn__build_send(&h->b, ccn__in(chunk(h, q), stride), h->inner[q], 0);
  }
  ccn__build_both(&h->b, CCN__PRIM_COPY, ccn__scratch(at + h->l * h->groups, 1),
                  ccn__in(chunk(h, h->l), stride), 0);
  for (uint32_t i = 1; i < h->m; i++) {
    const uint32_t q = (h->l + h->m - i) % h->m;
    ccn__build_recv(&h->b, ccn__scratch(at + q * h->groups, 1), h->inner[q], 0);
  }
}

static void all_to_all(hier *h) {
  const uint32_t at = h->b.a->rank[h->b.rank].scratch.n, n = h->b.a->nranks;
  for (uint32_t q = 0; q < h->m; q++)
    for (uint32_t g = 0; g < h->groups; g++) scratch(h, h->inner[q] * n + g * h->m + h->l, CCN__NARROW);
  exchange_inner(h, at);
  h->b.count = h->m;
  for (uint32_t i = 1; i < h->groups; i++) {
    const uint32_t g = (h->g + i) % h->groups;
    ccn__build_send(&h->b, ccn__scratch(at + g, h->groups), h->outer[g], 0);
  }
  ccn__build_both(&h->b, CCN__PRIM_COPY, ccn__out(chunk(h, h->g * h->m), h->k),
                  ccn__scratch(at + h->g, h->groups), 0);
  for (uint32_t i = 1; i < h->groups; i++) {
    const uint32_t g = (h->g + h->groups - i) % h->groups;
    ccn__build_recv(&h->b, ccn__out(chunk(h, g * h->m), h->k), h->outer[g], 0);
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void one_chunk(hier *h) {
  ccn__algorithm *a = h->b.a;
  h->b.count = 1;
  switch (a->op) {
  case CCN__OP_ALLREDUCE:
    reduce_scatter(h, ccn__out(chunk(h, h->b.rank), 1));
    all_gather(h);
    return;
  case CCN__OP_REDUCESCATTER: reduce_scatter(h, ccn__out(h->j, 1)); return;
  case CCN__OP_ALLGATHER:
    ccn__build_both(&h->b, CCN__PRIM_COPY, ccn__out(chunk(h, h->b.rank), 1), ccn__in(h->j, 1), 0);
    all_gather(h);
    return;
  case CCN__OP_REDUCE: reduce(h, a->root); return;
  case CCN__OP_BROADCAST: broadcast(h, a->root); return;
  default: all_to_all(h); return;
  }
}

void ccn__generate_hierarchical(ccn__algorithm *a, const ccn__algo_want *want) {
  const uint32_t m = want->group, groups = a->nranks / m;
  if (a->op == CCN__OP_REDUCE || a->op == CCN__OP_BROADCAST) a->slices = 1;
  uint16_t *inner = CCN__NEWN(a->arena, uint16_t, m), *outer = CCN__NEWN(a->arena, uint16_t, groups);
  for (uint32_t r = 0; r < a->nranks; r++) {
    hier h = {{a, r, 0, 1}, m, groups, want->chunks, 0, r / m, r % m, inner, outer, 0};
    for (uint32_t i = 0; i < m; i++) inner[i] = (uint16_t)(h.g * m + i);
    for (uint32_t i = 0; i < groups; i++) outer[i] = (uint16_t)(i * m + h.l);
    for (h.j = 0; h.j < h.k; h.j++) {
      h.b.channel = ccn__algorithm_channel(a, r, h.j);
      one_chunk(&h);
    }
  }
}
