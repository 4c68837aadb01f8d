/* host_op.h: ops of the host as the rest of CCN sees them: registered by api_op.c, called in programs
 * (lower_host.c), executed by the interpreter (interp_host.c). SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_HOST_OP_H
#define CCN_LANG_HOST_OP_H

#include "runtime.h"

/* An op of the host: a node HOST wherever programs call it. */
struct ccn__host_op {
  const struct ccn__host_op *next;
  const char *name, *sig;
  uint32_t nin;
  bool pure;
  ccn_op_type_fn type;
  ccn_op_fn eval;
  void *user;
  /* Set by the API: call what is above and answer with the reason of a failure, "" if there is none, or NULL
   * if all is well; throw other statuses. */
  const char *(*ask)(ccn__rt *rt, const struct ccn__host_op *op, const ccn_op_type *in, ccn_op_type *out);
  const char *(*run)(ccn__rt *rt, const struct ccn__host_op *op, uint32_t rank, const ccn_op_array *in,
                     const ccn_op_array *out);
};
const struct ccn__host_op *ccn__host_op_find(const ccn__rt *rt, const char *name); /* or NULL */

#endif
