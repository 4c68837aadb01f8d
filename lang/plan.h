/* plan.h: what a backend executes: values in buffers with lifetimes, and an ordered list of steps on streams.
 *
 * Place in the pipeline: made by passes/plan*.c from a scheduled graph whose sizes are known, read by the plan's
 * interpreter (plan_run.c), the simulator, the cost model and every backend. A plan is data: text and JSON
 * (plan_text.c) say all that is in it.
 *
 * All ranks have the same list of steps; a step inside `on` is done at its coordinates only. Steps of one stream run
 * in order; a step waits for the steps it names, which stand before it (a rank that leaves the step out waits too). A step in which ranks meet (`group` != 0)
 * begins on no member before all are there, and ends on none before all have done reading and writing their peers'
 * memory (two barriers, or what is as good).
 *
 * An epoch is a step outside overlapped chains, or a whole chain. Epochs are passed one after the other: whatever a
 * step of a later one does is ordered behind everything of an earlier one. Lifetimes are counted in epochs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_PLAN_H
#define CCN_LANG_PLAN_H

#include "interp.h"

#define CCN__NO_BUFFER UINT32_MAX

typedef enum ccn__buffer_kind {
  CCN__BUFFER_ARGUMENT, /* a parameter's storage: the caller's */
  CCN__BUFFER_RESULT,   /* returned, and made for that */
  CCN__BUFFER_TEMPORARY /* in each rank's arena, at the same offset on every rank */
} ccn__buffer_kind;

/* Memory of one value on each rank; several values stand in one buffer where one is another name of the other
 * (reshape) or is stored over it (update in place, carried values). */
typedef struct ccn__buffer {
  uint8_t kind;
  bool peers;     /* other ranks read or write it */
  uint32_t param; /* of ARGUMENT: which */
  ccn__id value;  /* the value it was made for */
  int64_t bytes;  /* of the rank that has the most */
  int64_t offset; /* of TEMPORARY; a multiple of 64 */
  uint32_t first,
    last; /* epochs, first <= last; ARGUMENT and RESULT: where they are first and last touched */
} ccn__buffer;

typedef enum ccn__step_kind {
  CCN__STEP_KERNEL, /* elementwise ops, random numbers, reductions, and what a fused collective adds to them */
  CCN__STEP_COLLECTIVE, /* one collective */
  CCN__STEP_MATMUL,     /* a library's: matmul or conv2d */
  CCN__STEP_OP,         /* one op that moves elements (transpose, concat, take, ...) */
  CCN__STEP_COPY, /* on each rank from buffer to buffer, all at once: accesses 2i (READ) to 2i + 1 (WRITE). Carried
                       values, stores that could not be in place, owed parts folded; a literal has no buffer to read */
  CCN__STEP_REPEAT, /* steps up to `end` (not included), `times` times; streams meet at both ends of each pass */
  CCN__STEP_KINDS
} ccn__step_kind;
extern const char *const ccn__step_kind_name[CCN__STEP_KINDS];

typedef enum ccn__access_mode {
  CCN__READ = 1,
  CCN__WRITE = 2,
  CCN__READ_PEERS = 4, /* also of all members of the group */
  CCN__WRITE_PEERS = 8
} ccn__access_mode;

typedef struct ccn__access {
  uint32_t buffer;
  uint8_t mode;
  bool chunked; /* only the step's chunk of it */
  bool
    same_elem; /* READ: an element is read only to make the element of the same index, so it may be overwritten */
  ccn__id value; /* whose bytes these are; CCN__NO_ID: what the buffer holds anyway (COPY) */
} ccn__access;

typedef struct ccn__step {
  uint8_t kind, stream;
  uint8_t group; /* mask of the mesh axes over which ranks meet; 0: each rank for itself */
  bool may_fail; /* an index or a division can be wrong: CCN0605, 0606 */
  uint32_t epoch;
  uint32_t chain; /* number of the overlapped chain, 0 = none */
  uint32_t stage; /* in the chain */
  uint32_t chunk, chunks;
  uint32_t fuse;       /* number of the kernel in the schedule, 0 = none */
  uint32_t region;     /* of the graph: whose `on` blocks say which ranks do it */
  const ccn__id *node; /* ascending */
  uint32_t nnodes;
  ccn__access *access;
  uint32_t naccess;
  const uint32_t *wait; /* steps of other streams */
  uint32_t nwait;
  uint32_t end;  /* REPEAT */
  int64_t times; /* REPEAT */
} ccn__step;

/* How an overlapped chain is cut: along one dim, and there each of the slices that its collective makes. */
typedef struct ccn__chain {
  uint32_t back;  /* the dim, counted backwards: 1 is the last; 0: the chain is not cut */
  int64_t extent; /* of that dim, global */
  int32_t axis; /* whose slices are cut; -1: no collective of the chain makes slices, the dim itself is cut */
  int64_t unit; /* of these slices */
  uint32_t nstages, chunks;
} ccn__chain;

/* A value with its sizes. */
typedef struct ccn__shape {
  uint8_t dtype, rank, bundle;
  uint32_t bundle_id;
  int64_t dim[CCN__MAX_RANK];
  ccn__cplace place[CCN__MAX_AXES];
} ccn__shape;

typedef struct ccn__plan {
  ccn__arena *arena;
  const ccn__graph *g;
  const int64_t *sym;
  ccn__members *const *bundle; /* the graph's bundles; may be NULL if it has none */
  const char *label;           /* "adam@zero"; may be NULL */
  uint32_t world;
  const ccn__shape *shape; /* of each node */
  uint32_t
    *buffer; /* of each node, or CCN__NO_BUFFER: it exists in registers only, is a literal or no value */
  const ccn__id
    *root; /* of each node: the node whose bytes it names (reshape, update, ...); itself if it makes some */
  const bool *parts; /* of each node: it is kept as parts of the sum tree, not as elements */
  uint32_t *result;  /* of each output; CCN__NO_BUFFER: a literal */
  CCN__VEC(ccn__buffer) buffers;
  CCN__VEC(ccn__step) steps;
  CCN__VEC(ccn__chain) chains; /* chain number 1 is at[0] */
  uint32_t nstreams, nepochs;
  int64_t arena_bytes; /* of temporaries, each rank */
} ccn__plan;

/* Bytes of node's value on rank; 0 where it holds nothing. */
int64_t ccn__plan_bytes(const ccn__plan *p, ccn__id node, uint32_t rank);
/* Whether rank does the step: it is at the coordinates of the `on` blocks around it. */
bool ccn__plan_does(const ccn__plan *p, const ccn__step *s, uint32_t rank);
/* What chunk k of a chunked value is on one rank: `n` ranges of local indices along the value's dim `dim`. */
typedef struct ccn__chunk {
  bool whole; /* every chunk needs all of it: the value does not have the dim */
  uint32_t dim, n;
  int64_t extent, piece, k, c; /* local extent; length of a slice; chunk k of c */
} ccn__chunk;
void ccn__plan_chunk(const ccn__plan *p, const ccn__step *s, ccn__id node, uint32_t rank, ccn__chunk *out);
/* Range i of n; may be empty. */
void ccn__chunk_range(const ccn__chunk *c, uint32_t i, int64_t *start, int64_t *end);

/* ---- making (passes/plan.c) ------------------------------------------------------------------------------------------- */

/* The graph's mesh is known and sym are its symbols' values. All of the plan is in `a`. Never refuses a verified
 * graph. `bundle`: the graph's bundles (may be NULL if it has none). */
ccn__plan *ccn__plan_make(ccn__arena *a, const ccn__graph *g, const int64_t *sym,
                          ccn__members *const *bundle);
/* The static check: waits go backwards; ranks that meet do so in the same order; no buffer is touched outside its
 * life; two accesses of which one writes are ordered, on every rank, peers' accesses included; temporaries that
 * live at once do not overlap. NULL, or what is wrong, in the plan's arena. */
const char *ccn__plan_check(ccn__plan *p);

/* ---- text (plan_text.c) ----------------------------------------------------------------------------------------------- */
void ccn__plan_print(const ccn__plan *p, ccn__text *out);
void ccn__plan_print_json(const ccn__plan *p, ccn__text *out); /* one object, one line */

/* ---- execution by the reference interpreter (interp_plan.c) -------------------------------------------------------------- */
/* Like ccn__interp, but step by step, with every value in the memory that the plan gives it, freshly poisoned; the
 * order of steps that do not wait for one another is drawn from `seed`. */
void ccn__interp_plan(ccn__exec *x, const ccn__plan *p, uint64_t seed);

#endif
