/* algorithms.h: making collective algorithms (lang/algorithm.h) for any number of ranks.
 *
 * Place in the pipeline: beside the planner. A generator is a row of algorithms.def and a file in
 * passes/algorithms/.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_ALGORITHMS_H
#define CCN_PASSES_ALGORITHMS_H

#include "algorithm.h"

typedef enum ccn__generator {
#define ALGORITHM(id, word, ops, order, doc) CCN__MAKE_##id,
#include "algorithms.def"
#undef ALGORITHM
  CCN__GENERATORS
} ccn__generator;

typedef struct ccn__algo_want {
  ccn__op op;
  uint32_t nranks;
  uint32_t root;
  uint32_t chunks;        /* of each slice, at least 1 */
  uint32_t group;         /* hierarchical: ranks a group; divides nranks */
  const uint16_t *source; /* shift, permute: see ccn__algorithm; lives as long as the algorithm */
} ccn__algo_want;

extern const struct ccn__generator_info {
  const char *name, *word;
  uint32_t ops;     /* a bit each ccn__op, counted from CCN__OP_ALLREDUCE */
  ccn__order order; /* in which it adds, with the group of `want` where the order has a number */
  const char *doc;
} ccn__generator_table[CCN__GENERATORS];

/* Whether it makes this collective. */
bool ccn__generator_makes(ccn__generator g, ccn__op op);
bool ccn__generator_find(const char *name, ccn__generator *out);
/* NULL and *out_why (static) if it does not make the collective, or the group does not divide the ranks. */
ccn__algorithm *ccn__algorithm_make(ccn__arena *arena, ccn__generator g, const ccn__algo_want *want,
                                    const char **out_why);

/* ---- what the generators share (passes/algorithms/build.c) ----------------------------------- */

/* Where steps are added: to one channel of one rank, `count` chunks each. */
typedef struct ccn__builder {
  ccn__algorithm *a;
  uint32_t rank, channel, count;
} ccn__builder;

/* Chunks of one rank's buffer. */
typedef struct ccn__at {
  ccn__algo_buf buf;
  uint32_t first, stride;
} ccn__at;
static inline ccn__at ccn__in(uint32_t first, uint32_t stride) {
  return (ccn__at){CCN__BUF_IN, first, stride};
}
static inline ccn__at ccn__out(uint32_t first, uint32_t stride) {
  return (ccn__at){CCN__BUF_OUT, first, stride};
}
static inline ccn__at ccn__scratch(uint32_t first, uint32_t stride) {
  return (ccn__at){CCN__BUF_SCRATCH, first, stride};
}

ccn__algo_step *ccn__build(ccn__builder *b, ccn__prim prim, uint8_t flags);
ccn__algo_step *ccn__build_send(ccn__builder *b, ccn__at src, uint32_t to, uint8_t flags);
ccn__algo_step *ccn__build_recv(ccn__builder *b, ccn__at dst, uint32_t from, uint8_t flags);
/* COPY, REDUCE (no message), RECV_REDUCE_COPY, ... with both sides. */
ccn__algo_step *ccn__build_both(ccn__builder *b, ccn__prim prim, ccn__at dst, ccn__at src, uint8_t flags);

/* A sum of `items` values in their order: own[i] of peer[i], where peer[own] is the rank itself and its
 * value lies at `src`; the others come as messages, wide or not. Needs scratch: `sum` wide, `first` as
 * wide as the items. */
typedef struct ccn__row {
  const uint16_t *peer;
  uint32_t items, own;
  bool wide;   /* the items are sums already */
  ccn__at src; /* the rank's own item */
  ccn__at sum, first;
  ccn__at dst; /* where the sum goes; may be `sum` */
  bool finish;
} ccn__row;
void ccn__build_row(ccn__builder *b, const ccn__row *row);

/* One binary tree over the ranks: `rank_at` gives the rank at a position. Chunks [chunk, chunk + chunks),
 * the way up over channel `up`, down over channel `down` of each rank; CCN__NO_CHANNEL: not that way. */
typedef struct ccn__btree_plan {
  uint32_t (*rank_at)(uint32_t n, uint32_t turn, uint32_t position);
  uint32_t turn;
  uint32_t chunk, chunks;
  uint32_t up, down;
} ccn__btree_plan;
void ccn__build_btree(ccn__algorithm *a, const ccn__btree_plan *t);

#define ALGORITHM(id, word, ops, order, doc) \
  void ccn__generate_##id(ccn__algorithm *a, const ccn__algo_want *want);
#include "algorithms.def"
#undef ALGORITHM

#endif
