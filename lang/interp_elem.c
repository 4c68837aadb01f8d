/* interp_elem.c: elementwise ops and casts, in blocks of 1024 elements: read the operands (with broadcasting), widen
 * f16 and bf16 to f32, one kernel call, round to the dtype. What lies as the kernel wants it is neither copied nor
 * converted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

/* One operand as the kernel reads it. */
typedef struct source {
  ccn__view view;
  ccn__dtype have, want;
  const void *same; /* a block of the one element that it is */
  _Alignas(64) char raw[CCN__BLOCK_BYTES];
  _Alignas(64) char wide[CCN__BLOCK_BYTES];
} source;

static void source_init(source *s, ccn__job *j, const ccn__value *x) {
  s->have = (ccn__dtype)x->dtype;
  s->want = ccn__dtype_acc(s->have);
  s->same = NULL;
  if (x->bundle == CCN__BUNDLE_SCALARS && j->out->bundle == CCN__BUNDLE_TENSORS) { /* one each tensor */
    if (!x->piece[j->rank].buf) ccn__defect(j->r, j->n, "reads a value that does not exist on this rank");
    s->view = (ccn__view){.base = x->piece[j->rank].buf->data,
                          .item = (uint32_t)ccn__dtype_size(s->have),
                          .members = j->r->x->bundle[j->out->bundle_id],
                          .start = j->box.start[0]};
    return;
  }
  ccn__view_of(j->r, j->n, &s->view, x, j->rank, j->out->rank, j->out->dim, &j->box);
}

static const void *source_block(source *s, int64_t first, size_t n) {
  if (s->same) return s->same;
  if (!ccn__view_same(&s->view)) return ccn__view_as(&s->view, s->want, s->have, first, n, s->raw, s->wide);
  ccn__convert(s->want, s->raw, s->have, s->view.base, 1);
  ccn__fill(s->wide, s->raw, ccn__dtype_size(s->want), CCN__BLOCK);
  return s->same = s->wide;
}

static void division_by_zero(ccn__job *j, int64_t i) {
  ccn__run *r = j->r;
  ccn__diag *d = ccn__error(r->rt->diags, 606, j->n->span, "the divisor has a zero",
                            "integer division by zero in `%s`, element %s", ccn__node_name(j->n),
                            ccn__index_text(r, j->out->rank, &j->box, i));
  ccn__node_raise(r, j->n, d);
}

/* Three operands need 48 KB of scratch: one buffer of the run, not the stack of an embedded host. */
typedef struct scratch {
  source in[3];
  _Alignas(64) char out[CCN__BLOCK_BYTES];
} scratch;

static void elem_job(ccn__job *j) {
  const ccn__node *n = j->n;
  const ccn__kernel_id kernel = (ccn__kernel_id)ccn__op_table[n->op].kernel;
  scratch *s = ((ccn__buf *)j->user)->data;
  const ccn__dtype out = (ccn__dtype)j->out->dtype;
  for (uint32_t i = 0; i < n->nin; i++) source_init(&s->in[i], j, ccn__operand(j->r, n, i));
  const ccn__dtype t = s->in[n->op == CCN__OP_WHERE].want; /* of where: its second operand's */
  const bool narrow = out != CCN__BOOL && ccn__dtype_acc(out) != out;
  const size_t item = ccn__dtype_size(out);
  char *to = ccn__job_new(j);
  for (int64_t e = 0; e < j->box.elements; e += CCN__BLOCK) {
    const int64_t left = j->box.elements - e;
    const size_t m = left < CCN__BLOCK ? (size_t)left : CCN__BLOCK;
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < n->nin; i++) in[i] = source_block(&s->in[i], e, m);
    void *result = narrow ? s->out : to;
    const size_t done = ccn__kernel(kernel, t, result, in[0], in[1], in[2], m);
    if (done < m) division_by_zero(j, e + (int64_t)done);
    if (narrow) ccn__convert(out, to, t, result, m);
    to += m * item;
    ccn__tick(j->r, (int64_t)m);
  }
}

void ccn__eval_elem(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__value *x = ccn__operand(r, n, n->op == CCN__OP_WHERE);
  const ccn__kernel_id kernel = (ccn__kernel_id)ccn__op_table[n->op].kernel;
  if (n->nin > 3 || !ccn__kernel_exists(kernel, ccn__dtype_acc((ccn__dtype)x->dtype)))
    ccn__defect(r, n, "has no kernel for this dtype");
  ccn__buf *room = ccn__buf_room(&r->pool, sizeof(scratch));
  ccn__each_rank(r, n, r->value[id], elem_job, room);
  ccn__buf_unref(room);
}

/* ---- casts ------------------------------------------------------------------------------------------------------ */

static void cast_job(ccn__job *j) {
  _Alignas(64) char raw[CCN__BLOCK_BYTES];
  const ccn__value *x = ccn__operand(j->r, j->n, 0);
  const ccn__dtype from = (ccn__dtype)x->dtype, t = (ccn__dtype)j->out->dtype;
  ccn__view v;
  ccn__view_of(j->r, j->n, &v, x, j->rank, j->out->rank, j->out->dim, &j->box);
  char *to = ccn__job_new(j);
  for (int64_t e = 0; e < j->box.elements; e += CCN__BLOCK) {
    const int64_t left = j->box.elements - e;
    const size_t m = left < CCN__BLOCK ? (size_t)left : CCN__BLOCK;
    ccn__convert(t, to, from, ccn__view_block(&v, e, m, raw), m);
    to += m * ccn__dtype_size(t);
    ccn__tick(j->r, (int64_t)m);
  }
}

void ccn__eval_cast(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], cast_job, NULL);
}
