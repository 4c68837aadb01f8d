/* interp_host.c: ops of the host: for each piece of the result the host's function is called once, with the
 * pieces of the operands that belong to it.
 *
 * An operand that is whole where another one is cut along a dim of the same letter is cut alike, in a copy;
 * all others are given where they lie. SPDX-License-Identifier: Apache-2.0 */
#include "host_op.h"
#include "infer.h"
#include "interp_eval.h"

typedef struct host_run {
  const struct ccn__host_op *op;
  int8_t of[CCN__HOST_OPERANDS][CCN__MAX_RANK]; /* letters of the operands' dims as numbers */
} host_run;

/* What the rank's part of the result needs of operand i: for each dim the narrowest piece that an operand has
 * of its letter. */
static void needed(ccn__job *j, const host_run *h, const ccn__box *box, uint32_t i, ccn__box *out) {
  *out = box[i];
  for (uint32_t d = 0; d < ccn__operand(j->r, j->n, i)->rank; d++) {
    if (h->of[i][d] < 0) continue;
    for (uint32_t k = 0; k < j->n->nin; k++)
      for (uint32_t e = 0; e < ccn__operand(j->r, j->n, k)->rank; e++) {
        if (h->of[k][e] != h->of[i][d] || box[k].extent[e] >= out->extent[d]) continue;
        out->start[d] = box[k].start[e];
        out->extent[d] = box[k].extent[e];
      }
  }
}

static ccn_op_array describe(const ccn__value *v, const ccn__box *box, void *data) {
  ccn_op_array a = {.size = sizeof a, .dtype = (ccn_dtype)v->dtype, .ndim = v->rank, .data = data};
  a.bytes = ccn__dtype_size((ccn__dtype)v->dtype);
  for (uint32_t d = 0; d < v->rank; d++) {
    a.shape[d] = v->dim[d];
    a.start[d] = box->start[d];
    a.extent[d] = box->extent[d];
    a.bytes *= (size_t)box->extent[d];
  }
  return a;
}

/* Operand i as the host gets it. */
static ccn_op_array operand(ccn__job *j, const host_run *h, const ccn__box *box, uint32_t i) {
  const ccn__value *v = ccn__operand(j->r, j->n, i);
  const ccn__buf *whole = v->piece[j->rank].buf;
  const size_t item = ccn__dtype_size((ccn__dtype)v->dtype);
  int64_t at[CCN__MAX_RANK] = {0}, zero[CCN__MAX_RANK] = {0};
  ccn__box part;
  if (!whole) ccn__defect(j->r, j->n, "reads a value that does not exist on this rank");
  needed(j, h, box, i, &part);
  ccn_op_array a = describe(v, &part, whole->data);
  if (a.bytes == whole->bytes) return a;
  for (uint32_t d = 0; d < v->rank; d++) at[d] = part.start[d] - box[i].start[d];
  a.data = ccn__buf_new(&j->r->pool, a.bytes)->data; /* goes with the run */
  ccn__copy_box(item, v->rank, a.data, part.extent, zero, whole->data, box[i].extent, at, part.extent);
  return a;
}

static void host_job(ccn__job *j) {
  const host_run *h = j->user;
  ccn__box box[CCN__HOST_OPERANDS];
  ccn_op_array in[CCN__HOST_OPERANDS];
  void *to = ccn__job_new(j);
  if (!j->box.elements) return;
  if (j->r->rt->trial && !h->op->pure) { /* only the type is asked for */
    memset(to, 0, j->piece->buf->bytes);
    return;
  }
  for (uint32_t i = 0; i < j->n->nin; i++)
    ccn__value_box(j->r, ccn__operand(j->r, j->n, i), j->rank, &box[i]);
  for (uint32_t i = 0; i < j->n->nin; i++) in[i] = operand(j, h, box, i);
  const ccn_op_array out = describe(j->out, &j->box, to);
  const char *why = h->op->run(j->r->rt, h->op, j->rank, in, &out);
  if (!why) return;
  ccn__diag *d = ccn__error(j->r->rt->diags, 609, j->n->span, "in this call", "`%s` failed on rank %u: %s",
                            h->op->name, j->rank, *why ? why : "the host gives no reason");
  ccn__node_raise(j->r, j->n, d);
}

void ccn__eval_host(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__attr *name = ccn__attr_find(n->attrs, CCN__A_HOST);
  const ccn__type *in[CCN__HOST_OPERANDS];
  host_run h = {.op = ccn__host_op_find(r->rt, name->text)};
  if (!h.op || h.op->nin != n->nin) { /* a graph that was read from a text */
    ccn__diag *d =
      ccn__error(r->rt->diags, 609, n->span, "not registered", "the host has no op `%s`", name->text);
    ccn__node_raise(r, n, d);
  }
  for (uint32_t i = 0; i < n->nin; i++) in[i] = r->g->nodes.at[n->in[i]].type;
  const ccn__infer_in q = {
    .g = (ccn__graph *)(uintptr_t)r->g, .op = CCN__OP_HOST, .in = in, .nin = n->nin, .attrs = n->attrs};
  ccn__host_labels(&q, h.of);
  ccn__each_rank(r, n, r->value[id], host_job, &h);
}
