/* workers.h: threads that do a piece of work together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_BACKENDS_LOCAL_WORKERS_H
#define CCN_BACKENDS_LOCAL_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ccn__workers ccn__workers;
typedef void ccn__work_fn(void *user, uint32_t worker); /* of the caller's thread: worker 0. May not throw */

uint32_t ccn__usable_cores(void);
/* n threads, the caller's among them; fewer if the system gives no more. NULL: out of memory. */
ccn__workers *ccn__workers_open(uint32_t n);
uint32_t ccn__workers_count(const ccn__workers *w);
/* Each worker once; returns when all are done. */
void ccn__workers_run(ccn__workers *w, ccn__work_fn *work, void *user);
void ccn__workers_close(ccn__workers *w); /* NULL allowed */

#endif
