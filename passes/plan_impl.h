/* plan_impl.h: what the parts of the planner share: plan.c (the order), plan_group.c (which nodes make a step),
 * plan_chain.c (overlapped chains), plan_buffers.c (where values live).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_PLAN_IMPL_H
#define CCN_PASSES_PLAN_IMPL_H

#include "plan.h"

typedef CCN__VEC(ccn__id) ccn__nodes;

/* A set of nodes that become one step, or (a matmul and what it feeds) two. */
typedef struct ccn__group {
  uint8_t kind;
  uint32_t region;
  uint32_t fuse, chain, stage;
  bool open; /* further elementwise ops may join */
  const ccn__shape *space;
  ccn__nodes nodes;
  ccn__id repeat; /* of a REPEAT: its node; the groups up to `end` are its body */
  uint32_t end;
} ccn__group;

typedef struct ccn__planner {
  ccn__plan *p;
  ccn__arena *arena;
  const ccn__graph *g;
  ccn__members *const *bundle;
  ccn__shape *shape;
  uint32_t *unit;      /* nodes that must stand together: the smallest node of each set */
  uint32_t *unit_next; /* members of a unit, ascending */
  uint32_t *unit_last;
  uint32_t *group_of; /* of each node: its group + 1, 0 = none */
  ccn__id *root;      /* of each node: the node whose bytes it names (itself, if it makes some) */
  bool *needed;       /* of each node: read outside its group, or kept */
  bool *parts;        /* owes in parts of a sum tree: no plain array of elements */
  CCN__VEC(ccn__group) groups;
} ccn__planner;

static inline const ccn__node *ccn__plan_node(const ccn__planner *s, ccn__id i) { return &s->g->nodes.at[i]; }
bool ccn__plan_kernel_op(ccn__op op); /* can be a part of any kernel */

bool ccn__plan_may_fail(const ccn__planner *s, const ccn__group *p);
void ccn__plan_groups(ccn__planner *s);
void ccn__plan_needed(ccn__planner *s);  /* which values pass between groups */
void ccn__plan_steps(ccn__planner *s);   /* groups → steps, chains cut in chunks */
void ccn__plan_buffers(ccn__planner *s); /* buffers, accesses, lifetimes, arena */
/* How chain c can be cut; chunks = 1 where an op on the way cannot run piece by piece. */
void ccn__plan_cut(ccn__planner *s, uint32_t c, ccn__chain *out);

#endif
