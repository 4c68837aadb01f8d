/* cost.h: what the steps of a plan cost on a machine: bytes, operations, time, and what bounds it.
 *
 * Place in the pipeline: made by passes/cost.c from a plan; read by `ccn plan`, the simulator and the
 * autotuner. All numbers are of the rank that has the most of it, and of one pass where a step stands in a
 * loop.
 *
 * The model. A step takes its launch and then the longest of three: its bytes over links, by the algorithm
 * of each of its collectives (the simulator says how long); its bytes through memory; its operations. Values
 * that stay in a kernel cost no memory. The floor is the least that any algorithm and any kernel needs for
 * the same step: no latency, no launch, each contribution sent in its own dtype.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_COST_H
#define CCN_LANG_COST_H

#include "algorithm.h"
#include "machine.h"
#include "plan.h"

/* One use of a collective algorithm by a group of ranks. */
typedef struct ccn__collective_use {
  const ccn__algorithm *a;
  const ccn__machine *machine;
  const uint32_t *world; /* the world rank of each member */
  const int64_t *count;  /* elements of each piece */
  int64_t item, acc;     /* bytes of an element; of one of a sum */
} ccn__collective_use;

typedef struct ccn__collective_cost {
  double time;
  int64_t *sent;   /* of each member: bytes that leave it, loads that it serves included */
  int64_t *memory; /* of each member: bytes read and written in its memory */
} ccn__collective_cost;

/* Fills *out, whose arrays are there and zero. False: the algorithm cannot end (a defect). */
typedef bool ccn__cost_timer(ccn__arena *arena, const ccn__collective_use *use, ccn__collective_cost *out);

typedef enum ccn__bound {
  CCN__BOUND_LINK,
  CCN__BOUND_MEMORY,
  CCN__BOUND_COMPUTE,
  CCN__BOUND_LATENCY
} ccn__bound;
extern const char *const ccn__bound_name[CCN__BOUND_LATENCY + 1];

typedef struct ccn__step_cost {
  int64_t sent, memory; /* bytes */
  double flops;
  double link;        /* seconds that its collectives need; 0: it meets nobody */
  double floor, time; /* seconds */
  double passes;      /* how often it is done */
  uint8_t bound;      /* ccn__bound */
} ccn__step_cost;

/* A collective of the graph: what each rank sends in one call of the program. */
typedef struct ccn__sent_cost {
  ccn__id node;
  const char *algorithm;
  bool reorders; /* it adds in another order than the graph says: options asked for that */
  int64_t *sent; /* of each rank of the world */
} ccn__sent_cost;

typedef struct ccn__cost {
  const ccn__machine *machine;
  ccn__step_cost *step; /* of each step of the plan; of REPEAT: zeros */
  CCN__VEC(ccn__sent_cost) sent;
  int64_t memory; /* bytes that a rank holds at most: arguments, results, temporaries */
} ccn__cost;

typedef struct ccn__cost_options {
  const ccn__machine *machine;
  const char *algorithm; /* a generator's name, for all collectives that it makes; NULL: as the graph says */
  ccn__cost_timer *timer;
} ccn__cost_options;

/* NULL, and *out_why in the arena, if an algorithm is not made for so many ranks. */
ccn__cost *ccn__cost_make(ccn__arena *arena, const ccn__plan *p, const ccn__cost_options *options,
                          const char **out_why);

#endif
