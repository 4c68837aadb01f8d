/* schedule.h: schedules: lists of named, checked transformations that make a new graph from a graph.
 *
 * Place in the pipeline: behind lowering, before anything executes. Knows lang/ (graph, inference, diagnostics, AST).
 * A refused statement is an error with place and reason, and leaves the graph as it was: every pass makes a new graph
 * or none. SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_SCHEDULE_H
#define CCN_PASSES_SCHEDULE_H

#include "program.h"

/* Applies what `p` (a program with schedules: p->base, p->with) says to its base's graph g. The result lives in g's
 * arena. NULL after reporting errors: the primary span is the schedule's statement. */
ccn__graph *ccn__schedule_apply(ccn__rt *rt, ccn__graph *g, const ccn__program *p);

/* ---- what the passes share ---------------------------------------------------------------------------------------- */

typedef CCN__VEC(ccn__id) ccn__ids;

/* A graph being made from another: nodes are copied in order, with changes in between. */
typedef struct ccn__edit {
  ccn__graph *from, *to;
  ccn__id *map; /* old node → what stands for it in the new graph; CCN__NO_ID = gone */
} ccn__edit;

typedef struct ccn__pass { /* one statement */
  ccn__rt *rt;
  ccn__graph *g;
  ccn__arena *arena;
  ccn__span span;   /* the statement */
  const char *name; /* "split" */
  ccn__edit edit;
} ccn__pass;

void ccn__edit_begin(ccn__pass *s);
ccn__id ccn__edit_keep(ccn__pass *s, ccn__id i); /* copies node i; sets and returns map[i] */
/* A new node of the new graph, typed by ccn__infer; CCN__NO_ID and *err if it cannot be typed. */
ccn__id ccn__edit_add(ccn__pass *s, ccn__op op, const ccn__id *in, uint32_t nin, ccn__attrs attrs,
                      const ccn__type *want, const ccn__node *like, ccn__type_error *err);
void ccn__edit_name(ccn__pass *s, ccn__id id, const ccn__node *base, const char *suffix);
ccn__graph *ccn__edit_end(ccn__pass *s);                               /* outputs, parameters, regions */
ccn__attrs ccn__attrs_with(ccn__arena *a, ccn__attrs as, ccn__attr x); /* a copy with x set */
ccn__attrs ccn__attrs_without(ccn__arena *a, ccn__attrs as, ccn__attr_key key);

/* Refuses; `node` gets a note with the reason (CCN__NO_ID: none). */
ccn__diag *ccn__refuse(ccn__pass *s, uint16_t code, ccn__id node, const char *note, const char *fmt, ...)
  CCN__PRINTF(5, 6);

/* A build for the tests (-Dforce_refused=true) goes on where reorder, shard and dead would refuse: what comes out then
 * is wrong, or breaks a rule, which shows that the refusal is no over-refusal. */
#ifdef CCN__FORCE_REFUSED
#define CCN__FORCED true
#else
#define CCN__FORCED false
#endif

/* Facts about graphs (facts.c). */
bool *ccn__in_set(ccn__pass *s, const ccn__ids *ids); /* by node */
bool *ccn__after(ccn__pass *s, const ccn__ids *from); /* what depends on them, themselves excluded */
bool *ccn__before(ccn__pass *s, const ccn__ids *of);  /* what they depend on */
bool ccn__is_output(const ccn__graph *g, ccn__id i);
const char *ccn__node_label(const ccn__graph *g, ccn__id i); /* "`gsum`" or "`mul2`" */
ccn__id ccn__update_of(const ccn__graph *g, ccn__id param);  /* or CCN__NO_ID */
bool ccn__has_reader(const ccn__graph *g, ccn__id i);        /* a node or an output */
int64_t ccn__last_kernel(const ccn__graph *g);               /* the highest number of `fuse`; 0: none */
/* Whether some kernel is only partly in the set: then a member inside and one outside. */
bool ccn__kernel_cut(ccn__pass *s, const bool *in, ccn__id *out_inside, ccn__id *out_outside);

/* Kernels or chains (units.c): which one each node is in, 0 = none, and their nodes in the order of the text. */
typedef struct ccn__units {
  uint32_t top, *of;
  ccn__ids *members;
} ccn__units;

ccn__units ccn__units_of(ccn__pass *s, ccn__attr_key key);
/* Whether they can run each as a whole, one behind the other; else one that cannot, the smallest on a cycle. */
bool ccn__units_in_order(ccn__pass *s, const ccn__units *u, uint32_t *out_stuck);

/* The passes: false after a refusal. Results are lists of nodes of the new graph. */
bool ccn__pass_split(ccn__pass *s, ccn__id x, int64_t dim, const ccn__dim *unit, bool into_broadcast,
                     int64_t root, ccn__ids *out_a, ccn__ids *out_b);
bool ccn__pass_reorder(ccn__pass *s, const ccn__ids *ops, ccn__id g, ccn__ids *out_ops,
                       ccn__ids *out_gathers);
bool ccn__pass_fuse(ccn__pass *s, const ccn__ids *ops, ccn__ids *out);
bool ccn__pass_overlap(ccn__pass *s, const ccn__ids *stage, uint32_t nstages, ccn__ids *out);
/* Whether what earlier statements made kernels and chains still is; else refuses. After a pass, on its new graph. */
bool ccn__kernels_hold(ccn__pass *s);
bool ccn__chains_hold(ccn__pass *s);
/* `named`: a parameter that does not qualify is CCN0405; else it is left out. */
bool ccn__pass_shard(ccn__pass *s, const ccn__ids *params, bool named);
bool ccn__pass_dead(ccn__pass *s, ccn__id x);
/* `group`: ranks a group, of the hierarchical one; else 0. */
bool ccn__pass_algorithm(ccn__pass *s, ccn__id x, const char *name, int64_t group);
bool ccn__pass_mark(ccn__pass *s, const ccn__ids *ops, ccn__attr_key key, int64_t value);

#endif
