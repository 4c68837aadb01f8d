/* host.c: functions and ops of the host as values of scripts. What they are called with and give: api_host.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "host_op.h"
#include "script.h"

const char *ccn__host_name(const struct ccn__host_fn *f) { return f->name; }

ccn__val ccn__host_call(ccn__rt *rt, const struct ccn__host_fn *f, const ccn__arg *args, uint32_t n,
                        ccn__span span) {
  for (uint32_t i = 0; i < n; i++)
    if (args[i].name)
      ccn__fail(rt, 806, args[i].nspan, "no such parameter", "leave the name out",
                "`%s` is a function of the host and has no named parameters", f->name);
  return f->call(rt, f, args, n, span);
}

const struct ccn__host_op *ccn__host_op_find(const ccn__rt *rt, const char *name) {
  const struct ccn__host_op *op = rt->host_ops ? *rt->host_ops : NULL;
  while (op && strcmp(op->name, name) != 0) op = op->next;
  return op;
}

void ccn__host_names(ccn__rt *rt, ccn__env *env) {
  for (const struct ccn__host_fn *f = rt->hosts ? *rt->hosts : NULL; f; f = f->next) {
    ccn__name name = ccn__internz(rt->names, f->name);
    if (!ccn__env_find(env, name)) ccn__env_set(rt, env, name, (ccn__val){.kind = CCN__V_HOST, .host = f});
  }
  for (const struct ccn__host_op *op = rt->host_ops ? *rt->host_ops : NULL; op; op = op->next) {
    ccn__name name = ccn__internz(rt->names, op->name);
    if (!ccn__env_find(env, name)) ccn__env_set(rt, env, name, (ccn__val){.kind = CCN__V_OP, .name = name});
  }
}
