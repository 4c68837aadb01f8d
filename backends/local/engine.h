/* engine.h: what the files of the local backend share: the engine that a runtime keeps, plans made ready,
 * runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_BACKENDS_LOCAL_ENGINE_H
#define CCN_BACKENDS_LOCAL_ENGINE_H

#include "interp_eval.h"
#include "jit.h"
#include "kernel.h"
#include "local.h"
#include "plan.h"
#include "workers.h"

#include <stdatomic.h>

/* A step made ready. */
typedef struct ccn__ready_step {
  ccn__kern *kern; /* NULL: the interpreter's evaluators do its nodes */
  ccn__kern_fn *const *fn;
  const char *why;  /* of none: in words; NULL: nobody tried */
  uint32_t *buffer; /* of each slot: the plan's buffer; CCN__NO_BUFFER: scratch */
  int64_t *scratch; /* of each slot: where in the rank's room */
  uint32_t
    *final;    /* of each slot in scratch: the buffer to which it is copied at the end, or CCN__NO_BUFFER */
  bool stores; /* writes an argument */
  bool plain;  /* COPY: from memory to memory */
} ccn__ready_step;

/* A plan made ready, kept for the next call with the same sizes. */
typedef struct ccn__ready {
  struct ccn__ready *next;
  ccn__arena arena;
  const ccn__graph *g; /* NULL: it did not become ready */
  int64_t *sym;
  ccn__members **bundle;
  ccn__plan *plan;
  ccn__ready_step *step; /* of each of the plan's */
  bool *written;         /* of each buffer */
  bool
    *lendable; /* of each ARGUMENT: behind its first write nothing can fail, so it may be written in place */
  uint32_t last_unsteady; /* steps from here on can do without memory and errors */
  int64_t room;           /* of each rank: the arena and scratch behind it */
} ccn__ready;

typedef struct ccn__local {
  ccn__engine engine;
  ccn__heap *heap;
  ccn__pool pool;
  ccn__jit *jit;
  struct ccn__watch *watch; /* NULL: nobody watches */
  ccn__workers *workers;    /* NULL until a step is worth it */
  ccn__ready *plans;
  uint32_t nplans;
  ccn__buf *room[CCN__MAX_RANKS];
  bool busy; /* a host function may call a program while one runs */
} ccn__local;

/* prepare.c: the runtime's engine; the plan of a call, made ready. */
ccn__local *ccn__local_of(ccn__rt *rt);
ccn__ready *ccn__local_ready(ccn__local *l, ccn__exec *x);

typedef struct ccn__local_run {
  ccn__local *l;
  ccn__ready *q;
  const ccn__plan *p;
  ccn__run *r;
  ccn__buf **memory; /* of each buffer and rank, other than temporaries; NULL where there is nothing */
  ccn__buf **wrap;   /* of each node and rank: its memory as a buffer for evaluators */
  uint32_t *made;    /* of each node: the number of the step that made or loaded it, + 1 */
  _Atomic uint32_t now;
  _Atomic ccn__id at;       /* the node that is evaluated, or the first of the kernel */
  bool stored;              /* an argument was written in place: nothing may fail any more */
  struct ccn__bound *bound; /* of each step */
} ccn__local_run;

void *ccn__local_place(const ccn__local_run *e, uint32_t buffer, uint32_t rank);
/* execute.c: the value is with the run, for the step that runs. */
void ccn__local_ensure(ccn__local_run *e, ccn__id id);

/* watch.c: a call begins, or ends (run NULL). */
void ccn__local_watch(ccn__local *l, ccn__rt *rt, const ccn__local_run *run);
void ccn__local_watch_end(ccn__local *l);

/* kernels.c: `bind` takes all the memory that the step needs, `step` does it. */
typedef struct ccn__bound {
  void **base[CCN__MAX_RANKS];
  ccn__kern_args args[CCN__MAX_RANKS];
  bool done;
} ccn__bound;
void ccn__local_bind(ccn__local_run *e, uint32_t step);
/* False: something is wrong, which the evaluators will find too; nothing was stored then. */
bool ccn__local_kernel(ccn__local_run *e, uint32_t step);

#endif
