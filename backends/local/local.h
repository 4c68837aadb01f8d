/* local.h: the local backend: all ranks in this process, kernels by the JIT, everything else by the
 * interpreter's evaluators in the memory that the plan gives each value.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_BACKENDS_LOCAL_H
#define CCN_BACKENDS_LOCAL_H

#include "interp.h"

/* As ccn__interp: the same results, bit for bit, the same errors, and nothing stored when it throws.
 * Plans, code and memory stay with the runtime (rt->engine) for the next call with the same sizes. */
void ccn__local_execute(ccn__exec *x);

#endif
