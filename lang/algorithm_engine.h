/* algorithm_engine.h: steps all channels of an algorithm through their programs: connections with finite
 * capacity, waits, barriers. What a step does to data is its caller's: symbols (algorithm_check.c) or
 * numbers (algorithm_run.c).
 *
 * Place in the pipeline: internal to algorithm_*.c. The algorithm's form has been checked
 * (ccn__algorithm_form). Channels are deterministic and connections have one reader and one writer, so
 * whether all end, and with what, does not depend on who goes first (a Kahn network).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_ALGORITHM_ENGINE_H
#define CCN_LANG_ALGORITHM_ENGINE_H

#include "algorithm.h"

#define CCN__NONE UINT32_MAX

typedef struct ccn__algo_conn {
  uint16_t from, to; /* ranks */
  uint32_t link;
  uint32_t sender, receiver; /* channels, or CCN__NONE */
  uint32_t sent, received;   /* messages so far */
  uint32_t messages;         /* in all */
  uint32_t first, slots;     /* of messages on their way */
  bool sender_waits, receiver_waits;
} ccn__algo_conn;

typedef struct ccn__algo_engine {
  const ccn__algorithm *a;
  ccn__arena *arena;
  uint32_t nchannels;
  uint32_t *first_channel; /* of each rank, and one more: channels of all ranks are numbered through */
  uint16_t *rank_of;       /* of a channel */
  uint32_t *first_step;    /* of each channel, and one more: steps of all channels are numbered through */
  uint32_t *pc;            /* of each channel: steps done */
  CCN__VEC(ccn__algo_conn) conns;
  uint32_t nmessages;     /* slots of all connections: at most as many as there are steps */
  uint32_t *in, *out;     /* of each step: its connections, or CCN__NONE */
  uint32_t *slot, nslots; /* hash table of connections */
  uint32_t *waiting,
    *next_waiting;   /* of each step the first channel that waits for it; of a channel the next one */
  uint32_t *arrived; /* of each channel number: how many ranks are at its barrier */
  uint32_t *ready, nready;
} ccn__algo_engine;

static inline const ccn__algo_channel *ccn__engine_channel(const ccn__algo_engine *e, uint32_t c) {
  const uint16_t r = e->rank_of[c];
  return &e->a->rank[r].channels.at[c - e->first_channel[r]];
}
static inline const ccn__algo_step *ccn__engine_step(const ccn__algo_engine *e, uint32_t c, uint32_t i) {
  return &ccn__engine_channel(e, c)->steps.at[i];
}

/* Where message `number` of the connection is while it is on its way. */
static inline uint32_t ccn__engine_slot(const ccn__algo_engine *e, uint32_t conn, uint32_t number) {
  return e->conns.at[conn].first + number % e->conns.at[conn].slots;
}

/* Done at one instant: messages taken out of slot `in` and put into slot `out` (below nmessages), or
 * CCN__NONE. False stops the engine. */
typedef bool ccn__engine_fn(void *user, uint32_t channel, uint32_t step, uint32_t in, uint32_t out);

/* False: a connection has two senders or two receivers; *out says where. */
bool ccn__engine_init(ccn__algo_engine *e, const ccn__algorithm *a, ccn__arena *arena, ccn__algo_fault *out);
/* Until all channels ended, or none can go on. seed 0: each channel goes on as long as it can. False: f
 * stopped it. */
bool ccn__engine_run(ccn__algo_engine *e, uint64_t seed, ccn__engine_fn *f, void *user);
/* After a run: all ended and all messages were read; else what hinders, with the cycle of those who wait. */
bool ccn__engine_ended(ccn__algo_engine *e, ccn__algo_fault *out);

/* The form: every number in range (algorithm_check.c). */
bool ccn__algorithm_form(const ccn__algorithm *a, ccn__arena *arena, ccn__algo_fault *out);

/* An access of a cell of memory by a step, for the search for races (algorithm_races.c). */
typedef struct ccn__algo_pair {
  uint32_t first_channel, first_step; /* that of CCN__NONE: the start of rank `rank` */
  uint32_t channel, step;             /* happens later in this run; CCN__NONE: the end of rank `rank` */
  uint32_t rank, buf, chunk;          /* where the memory is */
  bool writes_first, writes;
} ccn__algo_pair;
typedef CCN__VEC(ccn__algo_pair) ccn__algo_pairs;
/* `trace`: the channels in the order in which they did steps. `pairs`: accesses that must be ordered,
 * sorted by their second step's place in the trace. False and *out: the first that is not ordered in every
 * run. */
bool ccn__algorithm_ordered(ccn__algo_engine *e, const uint32_t *trace, uint32_t ntrace,
                            const ccn__algo_pairs *pairs, ccn__algo_fault *out);

#endif
