/* record.h: running a script with its programs recorded, not executed: tensors have types, placements and
 * sizes, and no elements; each call of a program gives a plan with its cost and its time on a machine.
 *
 * Place in the pipeline: a backend (ccn__rt.execute) for `ccn plan` and the simulator; decides nothing,
 * keeps rows. What a script wants of a tensor's elements is CCN0510 (script_expr.c), but for asserts, which
 * hold.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_RECORD_H
#define CCN_LANG_RECORD_H

#include "cost.h"
#include "driver.h"
#include "machine.h"

/* What was recorded of one program with one set of sizes. In the runtime's arena. */
typedef struct ccn__recorded {
  struct ccn__recorded *next;
  const ccn__graph *g;
  const char *program, *schedule; /* schedule: or NULL */
  uint64_t key;                   /* of its sizes */
  uint64_t calls;
  double seconds;                      /* of one call */
  double floor;                        /* of one call whose steps take no more than their floors */
  const char *table, *json, *timeline; /* texts, as far as they were asked for */
} ccn__recorded;

typedef struct ccn__recorder {
  const ccn__machine *machine;    /* NULL: programs are not planned */
  const char *algorithm;          /* see ccn__cost_options */
  const char *program, *schedule; /* only calls of these; NULL: of all */
  bool tables, json, timelines;
  ccn_write_fn trace; /* Chrome trace events of all calls, one behind the other; NULL: none */
  void *trace_user;
  bool traced; /* it got an event already */
  ccn__recorded *first, **last;
  uint64_t calls;
  double seconds;  /* of all calls so far, one behind the other */
  const char *why; /* why a plan has no cost; then nothing more is recorded */
} ccn__recorder;

/* ccn__rt.execute; execute_user: a ccn__recorder, or NULL: nothing is kept. Results have no elements. */
void ccn__record_execute(struct ccn__exec *x);

/* A plan of a graph with its costs on a machine; NULL and *out_why if an algorithm is not made for so many ranks. */
typedef struct ccn__priced {
  const ccn__plan *plan;
  const ccn__cost *cost;
  double seconds, floor; /* of one call; if no step takes more than its floor */
} ccn__priced;
bool ccn__record_price(ccn__arena *a, const ccn__exec *x, const ccn__graph *g,
                       const ccn__cost_options *options, ccn__priced *out, const char **out_why);
/* Tells the sizes of calls of one graph apart. */
uint64_t ccn__record_key(const ccn__exec *x);

/* For ccn__job.instead: the statements of the script that define something, and one call of `program` whose
 * arguments have the sizes given ("N=1000", "len(ws)=2", "ps=1000,64x32"); raises. */
typedef struct ccn__record_call {
  const char *program; /* as in ccn_module_function */
  const char *const *sizes;
  size_t nsizes;
} ccn__record_call;
void ccn__record_program(ccn__state *s, const ccn__ast *ast, const ccn__record_call *c);

/* cost_text.c: a plan with its costs. */
/* `floor`: the time if each step took its floor. */
void ccn__cost_print(const ccn__plan *p, const ccn__cost *c, double seconds, double floor, ccn__text *out);
void ccn__cost_print_json(const ccn__plan *p, const ccn__cost *c, double seconds, double floor,
                          ccn__text *out);

#endif
