/* cost_impl.h: what cost.c and cost_collective.c share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_COST_IMPL_H
#define CCN_PASSES_COST_IMPL_H

#include "algorithms.h"
#include "cost.h"

/* A use that was timed already: the same algorithm with the same sizes and distances. */
typedef struct ccn__timed {
  struct ccn__timed *next;
  uint64_t key;
  ccn__collective_cost cost;
} ccn__timed;

typedef struct ccn__made {
  struct ccn__made *next;
  ccn__generator generator;
  ccn__algo_want want;
  uint64_t sources; /* hash of `source` */
  ccn__algorithm *a;
} ccn__made;

typedef struct ccn__costing {
  const ccn__plan *p;
  const ccn__cost_options *options;
  ccn__arena *arena;
  ccn__cost *cost;
  uint32_t rank; /* whose work is counted */
  ccn__made *made;
  ccn__timed *timed[256];
  const char *why; /* set once it cannot go on */
} ccn__costing;

/* The part of x that falls to the step's chunk; those of all chunks add up to x. */
int64_t ccn__cost_share(int64_t x, const ccn__step *t);
/* Seconds that a step's collectives are on links: at least, whatever the algorithm; by what they send,
 * without latencies. */
typedef struct ccn__on_links {
  double floor, bytes;
} ccn__on_links;
/* Adds what the step's collectives send and take: sent, link, and memory of a COLLECTIVE step. */
void ccn__cost_collectives(ccn__costing *c, const ccn__step *t, ccn__step_cost *s, ccn__on_links *out);

/* Of a value that owes in parts: how many a rank has (each of *out_width elements); axes that a collective
 * on the way merged do not cut any more. */
int64_t ccn__cost_parts(const ccn__plan *p, ccn__id i, uint32_t rank, int64_t *out_width);

#endif
