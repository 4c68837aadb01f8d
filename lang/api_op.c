/* api_op.c: ops of the host: registered, asked for types while programs are checked, called while they run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "host_op.h"

/* ---- calls of the host --------------------------------------------------------------------------------- */

static ccn_context *context_of(ccn__rt *rt) {
  return ((ccn__state *)(void *)((char *)rt - offsetof(ccn__state, rt)))->context;
}

static void enter(ccn_context *c) {
  c->callbacks++;
  c->complaint = NULL;
}

/* What the host answered: NULL, a reason, or a throw. */
static const char *leave(ccn_context *c, ccn_status status) {
  c->callbacks--;
  if (status == CCN_OK) return NULL;
  if (status != CCN_ERROR) ccn__throw(&c->heap, status);
  return c->complaint ? c->complaint : "";
}

static const char *ask(ccn__rt *rt, const struct ccn__host_op *op, const ccn_op_type *in, ccn_op_type *out) {
  ccn_context *c = context_of(rt);
  enter(c);
  return leave(c, op->type(c, in, op->nin, out, op->user));
}

static const char *run(ccn__rt *rt, const struct ccn__host_op *op, uint32_t rank, const ccn_op_array *in,
                       const ccn_op_array *out) {
  ccn_context *c = context_of(rt);
  enter(c);
  return leave(c, op->eval(c, rank, in, op->nin, out, op->user));
}

/* ---- registration -------------------------------------------------------------------------------------- */

static void add(ccn__state *s, void *user) {
  const struct ccn__host_op *given = user;
  ccn_context *c = s->context;
  struct ccn__host_op *op = CCN__NEW(&c->own, struct ccn__host_op);
  *op = *given;
  op->name = ccn__arena_strndup(&c->own, given->name, strlen(given->name));
  op->sig = ccn__arena_strndup(&c->own, given->sig, strlen(given->sig));
  ccn__name name = ccn__internz(&s->names, op->name);
  ccn__env_set(&s->rt, ccn__session_env(s), name, (ccn__val){.kind = CCN__V_OP, .name = name});
  op->next = c->host_ops;
  c->host_ops = op;
}

ccn_status ccn_register_op(ccn_context *c, const ccn_op *given) {
  struct ccn__host_op op = {.ask = ask, .run = run};
  ccn_op d = {0};
  if (!c || !given || given->size < offsetof(ccn_op, pure)) return CCN_INVALID_ARGUMENT;
  memcpy(&d, given, given->size < sizeof d ? given->size : sizeof d);
  if (!d.name || !d.dims || !d.eval || !ccn__host_name_valid(d.name) || ccn__is_builtin(d.name) ||
      !ccn__sig_valid(d.dims, &op.nin))
    return CCN_INVALID_ARGUMENT;
  op.name = d.name;
  op.sig = d.dims;
  op.pure = d.pure != 0;
  op.type = d.type;
  op.eval = d.eval;
  op.user = d.user;
  return ccn__guarded(c, &c->session, 0, add, &op);
}
