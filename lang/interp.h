/* interp.h: the reference interpreter: any graph on 1..64 simulated ranks in one thread; its answer is the answer.
 *
 * Place in the pipeline: graph → values. Op by op over whole arrays; evaluators are interp_*.c, one for each value
 * of the `eval` column of ops.def.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_INTERP_H
#define CCN_LANG_INTERP_H

#include "runtime.h"

/* One run. The caller (program.c) has bound sizes, checked the constraints, and brought the arguments into the
 * placements of the parameters' types. */
typedef struct ccn__exec {
  ccn__rt *rt;
  const ccn__graph *g;         /* its mesh sizes are all known and their product is rt->world */
  const int64_t *sym;          /* value of each symbol */
  ccn__members *const *bundle; /* for each bundle number of the graph */
  ccn__tensor *const *arg;     /* for each param; placements and sizes equal its type's */
  ccn__tensor **result; /* for each output, filled in: new tensors (pushed on rt->temps); owed values are
                                   folded to one value a rank, rounded to the dtype */
  const char *label;    /* the program's name, for --watch and messages */
  const void *text; /* tells programs apart that have one name: the syntax of `P with s`, or of the program */
  const char *schedule; /* of `P with s`, the last one; or NULL */
  bool unshared;        /* every rank computes replicated values for itself; differing bits are CCN0699 */
} ccn__exec;

/* Runs the graph; on success the stores of updates have been made in the argument tensors (their buffers are
 * replaced). Throws: CCN_ERROR with a diagnostic whose primary span is the node's (CCN0604-0607), then nothing was
 * stored; CCN_INTERRUPTED; CCN_OUT_OF_MEMORY. */
void ccn__interp(ccn__exec *x);

#endif
