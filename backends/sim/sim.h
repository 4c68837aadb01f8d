/* sim.h: the simulator: plans and collective algorithms in virtual time, without data.
 *
 * Place in the pipeline: beside the backends that execute. It reads algorithms (lang/algorithm.h), plans
 * with their costs (lang/cost.h) and machines; the cost model has the times of its collectives from here.
 *
 * The model. A rank has, on each level of links, a port out and a port in; a message occupies both for its
 * bytes over the bandwidth and is there one latency later. A connection holds as many messages as the
 * algorithm's capacity says, until the step that receives one is done. Loads from and stores to peers'
 * memory move between two barriers, as fast as the busiest port allows; a barrier takes one latency of the
 * widest level. What a step computes takes no time of its own: the cost model sees to memory and arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_BACKENDS_SIM_H
#define CCN_BACKENDS_SIM_H

#include "algorithm.h"
#include "cost.h"

/* One use of an algorithm. ccn__cost_timer: fills time, sent and memory. */
bool ccn__sim_algorithm(ccn__arena *arena, const ccn__collective_use *use, ccn__collective_cost *out);

/* One step of one rank. */
typedef struct ccn__sim_event {
  uint32_t rank, step;
  double start, end;
} ccn__sim_event;

typedef struct ccn__sim_options {
  const double *delay; /* of each rank, before its first step; NULL: none */
  bool trace;          /* events are kept */
} ccn__sim_options;

typedef struct ccn__sim_result {
  double time;                     /* until the last rank is done */
  double *ended;                   /* of each rank */
  CCN__VEC(ccn__sim_event) events; /* in order of their start on each rank; of loops the first passes */
} ccn__sim_result;

/* A plan with the times of its steps. Streams wait, meet and share as plan.h says; at one time a rank
 * computes one step that needs no peers, and its links serve one step that does. Loops whose passes have
 * come to take the same time are not simulated further. */
void ccn__sim_plan(ccn__arena *arena, const ccn__plan *p, const ccn__cost *cost,
                   const ccn__sim_options *options, ccn__sim_result *out);

/* Chrome trace events, one object a line, from `offset` seconds on; `process` is the name of the whole. */
void ccn__sim_trace(const ccn__plan *p, const ccn__sim_result *r, double offset, ccn__text *out);
/* A picture of `width` columns: a line for each stream of the first `ranks` ranks. */
void ccn__sim_timeline(const ccn__plan *p, const ccn__sim_result *r, uint32_t ranks, uint32_t width,
                       ccn__text *out);

#endif
