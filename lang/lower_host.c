/* lower_host.c: a call of an op of the host → one HOST node: the host is asked for the result's dtype and for
 * the extents that only the result has; everything else follows from the signature, as for every op.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"

typedef struct host_build {
  ccn__lower *l;
  const struct ccn__host_op *op;
  ccn__span span;
  ccn__id in[CCN__HOST_OPERANDS];
  const ccn__type *type[CCN__HOST_OPERANDS];
} host_build;

static bool count_operands(host_build *b, const ccn__opd *args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++) {
    if (!args[i].name) continue;
    ccn__lower_error(b->l, 806, args[i].nspan, "leave the name out",
                     "`%s` is an op of the host and has no named parameters", b->op->name);
    return false;
  }
  if (nargs == b->op->nin) return true;
  ccn__diag *d = ccn__lower_error(b->l, 800, b->span, "here", "`%s` takes %u operands, not %u", b->op->name,
                                  b->op->nin, nargs);
  ccn__hint(b->l->ds, d, "its signature is: %s", b->op->sig);
  return false;
}

/* Literals take the dtype of the first operand that is none. */
static bool read_operands(host_build *b, const ccn__opd *args) {
  ccn__bv v[CCN__HOST_OPERANDS];
  int dtype = -1;
  for (uint32_t i = 0; i < b->op->nin; i++) {
    v[i] = args[i].ast ? ccn__lower_expr(b->l, args[i].ast) : args[i].value;
    v[i].span = args[i].span;
    if (v[i].kind == CCN__B_ERROR) return false;
    if (dtype < 0 && ccn__is_node(v[i])) dtype = ccn__type_of(b->l, v[i])->dtype;
  }
  for (uint32_t i = 0; i < b->op->nin; i++) {
    b->in[i] = ccn__as_node(b->l, v[i], dtype);
    if (b->in[i] == CCN__NO_ID) return false;
    b->type[i] = ccn__ntype(b->l, b->in[i]);
  }
  return true;
}

/* Without a type rule of the host's the operands have one dtype, which is the result's. */
static bool one_dtype(host_build *b) {
  for (uint32_t i = 1; i < b->op->nin; i++) {
    if (b->type[i]->dtype == b->type[0]->dtype) continue;
    ccn__lower_error(b->l, 101, b->span, "two dtypes", "`%s` meets %s and %s", b->op->name,
                     ccn__dtype_name((ccn__dtype)b->type[0]->dtype),
                     ccn__dtype_name((ccn__dtype)b->type[i]->dtype));
    return false;
  }
  return true;
}

static bool refuse(host_build *b, const char *why) {
  ccn__diag *d = ccn__lower_error(b->l, 609, b->span, "in this call", "`%s` refuses its operands: %s",
                                  b->op->name, *why ? why : "the host gives no reason");
  ccn__hint(b->l->ds, d, "its signature is: %s", b->op->sig);
  return false;
}

/* The result's dtype, and for each dim of the result that no operand has its extent. */
static bool ask(host_build *b, ccn__type *want) {
  ccn_op_type in[CCN__HOST_OPERANDS], out = {.size = sizeof out, .dtype = (ccn_dtype)b->type[0]->dtype};
  for (uint32_t d = 0; d < CCN_MAX_DIMS; d++) out.extent[d] = -1;
  *want = (ccn__type){.dtype = b->type[0]->dtype};
  if (!b->op->type) return one_dtype(b);
  for (uint32_t i = 0; i < b->op->nin; i++) {
    in[i] =
      (ccn_op_type){.size = sizeof in[i], .dtype = (ccn_dtype)b->type[i]->dtype, .ndim = b->type[i]->rank};
    for (uint32_t d = 0; d < CCN_MAX_DIMS; d++)
      if (d >= b->type[i]->rank || !ccn__dim_is_const(b->type[i]->dim[d], &in[i].extent[d]))
        in[i].extent[d] = -1;
  }
  const char *why = b->op->ask(b->l->rt, b->op, in, &out);
  if (why) return refuse(b, why);
  if ((unsigned)out.dtype > CCN_DTYPE_BOOL) return refuse(b, "it gives its result no dtype");
  want->dtype = (uint8_t)out.dtype;
  while (want->rank < CCN_MAX_DIMS && out.extent[want->rank] >= 0) {
    want->dim[want->rank] = ccn__dim_const(b->l->arena, out.extent[want->rank]);
    want->rank++;
  }
  return true;
}

ccn__bv ccn__build_host(ccn__lower *l, const struct ccn__host_op *op, const ccn__opd *args, uint32_t nargs,
                        ccn__span span) {
  host_build b = {.l = l, .op = op, .span = span};
  ccn__type want;
  if (!count_operands(&b, args, nargs) || !read_operands(&b, args) || !ask(&b, &want)) return CCN__B_FAIL;
  ccn__attr at[3] = {{.key = CCN__A_HOST, .text = op->name},
                     {.key = CCN__A_SIG, .text = op->sig},
                     {.key = CCN__A_IMPURE, .i = 1}};
  ccn__id id = ccn__emit(l, CCN__OP_HOST, b.in, op->nin, (ccn__attrs){at, op->pure ? 2 : 3}, &want, span);
  if (id == CCN__NO_ID) return CCN__B_FAIL;
  if (l->frame && l->frame->auto_count) { /* counted over all ops of the host, so that names differ */
    const uint32_t n = l->frame->auto_count[CCN__OP_HOST];
    l->g->nodes.at[id].autoname =
      ccn__internz(l->g->names, n > 1 ? ccn__arena_printf(l->arena, "%s%s%u", l->frame->prefix, op->name, n)
                                      : ccn__arena_printf(l->arena, "%s%s", l->frame->prefix, op->name));
  }
  return ccn__bv_node(id, span);
}
