/* interp_shape.c: parameters, constants and other makers, update, and the ops that only move elements on a rank.
 *
 * reshape, transpose and index also work on a value in parts: on each part alike. Everything else folds first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

/* ---- parameters, state ------------------------------------------------------------------------------------------- */

static const ccn__tensor *argument(ccn__run *r, const ccn__node *n, ccn__id id) {
  int64_t i = ccn__attr_int(n->attrs, CCN__A_NUMBER, -1);
  if (i < 0 || i >= r->g->params.n || r->g->params.at[i].node != id) ccn__defect(r, n, "is no parameter");
  return r->x->arg[i];
}

void ccn__eval_param(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__tensor *t = argument(r, n, id);
  ccn__value *v = r->value[id];
  for (uint32_t k = 0; k < r->world; k++) {
    ccn__box b;
    if (!ccn__rank_has(r->mesh, k, v->place)) continue;
    ccn__value_box(r, v, k, &b);
    if (!t->buf[k] || t->buf[k]->bytes != (size_t)b.elements * ccn__dtype_size((ccn__dtype)v->dtype))
      ccn__defect(r, n, "has an argument of another size");
    v->piece[k].buf = ccn__buf_ref(t->buf[k]);
  }
}

/* Remembered by the graph (ccn__param.update); the driver stores it when the run has succeeded. */
void ccn__eval_update(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__value_share(r, r->value[id], ccn__operand_raw(r, n, 1));
}

void ccn__eval_enter(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__value_share(r, r->value[id], ccn__operand_raw(r, n, 0));
}

/* ---- makers ------------------------------------------------------------------------------------------------------- */

static void full_job(ccn__job *j) {
  const ccn__dtype t = (ccn__dtype)j->out->dtype;
  char element[8];
  ccn__number_store(ccn__run_number(j->r, j->n, CCN__A_VALUE), t, element);
  void *to = ccn__job_new(j);
  ccn__fill(to, element, ccn__dtype_size(t), (size_t)j->box.elements);
}

void ccn__eval_full(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], full_job, NULL);
}
void ccn__eval_const(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], full_job, NULL);
}

static void iota_job(ccn__job *j) {
  const ccn__dtype t = (ccn__dtype)j->out->dtype;
  const int64_t dim = ccn__attr_int(j->n->attrs, CCN__A_DIM, -1);
  int64_t index[CCN__BLOCK], inner = 1, extent = 1;
  for (uint32_t d = j->out->rank; dim >= 0 && d-- > (uint32_t)dim;) {
    inner = extent;
    extent *= j->out->dim[d];
  }
  char *to = ccn__job_new(j);
  for (int64_t e = 0; e < j->box.elements; e += CCN__BLOCK) {
    const int64_t left = j->box.elements - e;
    const size_t m = left < CCN__BLOCK ? (size_t)left : CCN__BLOCK;
    ccn__global_indices(j->out->rank, j->out->dim, &j->box, e, m, index);
    for (size_t i = 0; dim >= 0 && i < m; i++) index[i] = index[i] % extent / inner;
    ccn__convert(t, to, CCN__I64, index, m);
    to += m * ccn__dtype_size(t);
    ccn__tick(j->r, (int64_t)m);
  }
}

void ccn__eval_iota(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], iota_job, NULL);
}

static void rank_job(ccn__job *j) {
  const uint32_t axis = (uint32_t)ccn__attr_int(j->n->attrs, CCN__A_AXIS, 0);
  if (axis >= j->r->mesh->naxes) ccn__defect(j->r, j->n, "names no axis");
  ccn__store_i64((ccn__dtype)j->out->dtype, ccn__job_new(j), ccn__mesh_coord(j->r->mesh, j->rank, axis));
}

void ccn__eval_rank(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], rank_job, NULL);
}

/* ---- each part alike ---------------------------------------------------------------------------------------------- */

/* The operand as it is; what it owes in parts the result owes in parts. A tree per tensor has no dims to move. */
static const ccn__value *same_tree(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__value *x = ccn__operand_raw(r, n, 0), *out = r->value[id];
  if (x->per) x = ccn__fold(r, n, x);
  out->tree = x->tree;
  out->redop = x->redop;
  return x;
}

/* The bytes of one element of a piece: parts are in the accumulation dtype. */
static size_t item_of(const ccn__value *x) {
  const ccn__dtype t = (ccn__dtype)x->dtype;
  return ccn__dtype_size(x->tree ? ccn__dtype_acc(t) : t);
}

/* Reads the whole piece (of each part) through strides, in elements, from element `at` on. */
static void restride(ccn__job *j, const ccn__value *x, int64_t at, const int64_t *stride) {
  const ccn__piece *p = &x->piece[j->rank];
  const size_t item = item_of(x);
  const uint32_t parts = x->tree ? p->nparts : 1;
  ccn__box b;
  ccn__view v;
  if (!p->buf) ccn__defect(j->r, j->n, "reads a value that does not exist on this rank");
  ccn__value_box(j->r, x, j->rank, &b);
  j->piece->buf = ccn__buf_new(&j->r->pool, (size_t)parts * (size_t)j->box.elements * item);
  if (p->nodes) j->piece->nodes = ccn__buf_ref(p->nodes);
  j->piece->nparts = p->nparts;
  char *to = j->piece->buf->data;
  for (uint32_t i = 0; i < parts; i++) {
    const char *base = (const char *)p->buf->data + ((size_t)i * (size_t)b.elements + (size_t)at) * item;
    ccn__view_init(&v, base, item, j->out->rank, j->box.extent, stride);
    for (int64_t e = 0; e < j->box.elements; e += CCN__BLOCK) {
      const int64_t left = j->box.elements - e;
      const size_t m = left < CCN__BLOCK ? (size_t)left : CCN__BLOCK;
      ccn__view_load(&v, e, m, to);
      to += m * item;
      ccn__tick(j->r, (int64_t)m);
    }
  }
}

/* ---- reshape ------------------------------------------------------------------------------------------------------ */

/* The cut stays in a dim with the same product of dims before it, in units that are as long in elements; so the piece
 * of each rank has the same elements in the same order, and reshape is a new name for the same buffer. */
static void check_order(ccn__job *j, const ccn__value *x, const ccn__box *b) {
  int64_t was[CCN__BLOCK], is[CCN__BLOCK];
  int64_t step = (b->elements - 1) / CCN__BLOCK * CCN__BLOCK; /* the first block and the last, or all */
  if (j->r->unshared || step <= 0) step = CCN__BLOCK;
  for (int64_t e = 0; e < b->elements; e += step) {
    const size_t m = b->elements - e < CCN__BLOCK ? (size_t)(b->elements - e) : CCN__BLOCK;
    ccn__global_indices(x->rank, x->dim, b, e, m, was);
    ccn__global_indices(j->out->rank, j->out->dim, &j->box, e, m, is);
    if (memcmp(was, is, m * sizeof was[0]) != 0) ccn__defect(j->r, j->n, "moves elements between ranks");
  }
}

static void reshape_job(ccn__job *j) {
  const ccn__value *x = j->user;
  ccn__box b;
  ccn__value_box(j->r, x, j->rank, &b);
  if (b.elements != j->box.elements || !x->piece[j->rank].buf)
    ccn__defect(j->r, j->n, "moves elements between ranks");
  check_order(j, x, &b);
  ccn__piece_share(j->piece, &x->piece[j->rank]);
}

void ccn__eval_reshape(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], reshape_job, (void *)(uintptr_t)same_tree(r, n, id));
}

/* ---- transpose, index, concat ------------------------------------------------------------------------------------- */

static void transpose_job(ccn__job *j) {
  const ccn__value *x = j->user;
  const ccn__attr *perm = ccn__attr_find(j->n->attrs, CCN__A_PERM);
  int64_t own[CCN__MAX_RANK], stride[CCN__MAX_RANK];
  ccn__box b;
  ccn__value_box(j->r, x, j->rank, &b);
  ccn__strides(x->rank, b.extent, own);
  for (uint32_t d = 0; d < x->rank; d++) {
    uint32_t from = d;
    if (perm) from = (uint32_t)perm->ints[d];
    else if (d + 2 >= x->rank && x->rank > 1) from = 2 * x->rank - 3 - d; /* the last two change places */
    if (b.extent[from] != j->box.extent[d]) ccn__defect(j->r, j->n, "has a cut that does not follow its dim");
    stride[d] = own[from];
  }
  restride(j, x, 0, stride);
}

void ccn__eval_transpose(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], transpose_job, (void *)(uintptr_t)same_tree(r, n, id));
}

static void index_job(ccn__job *j) {
  const ccn__value *x = j->user;
  const ccn__attr *start = ccn__attr_find(j->n->attrs, CCN__A_START),
                  *drop = ccn__attr_find(j->n->attrs, CCN__A_DROP);
  int64_t own[CCN__MAX_RANK], stride[CCN__MAX_RANK], at = 0;
  uint32_t e = 0;
  ccn__box b;
  ccn__value_box(j->r, x, j->rank, &b);
  ccn__strides(x->rank, b.extent, own);
  for (uint32_t d = 0; d < x->rank; d++) {
    const bool gone = drop && drop->ints[d];
    const int64_t first =
      ccn__run_dim(j->r, j->n, start->dims[d]) + (gone ? 0 : j->box.start[e]) - b.start[d];
    const int64_t count = gone ? 1 : j->box.extent[e];
    if (j->box.elements && (first < 0 || first + count > b.extent[d]))
      ccn__defect(j->r, j->n, "reads outside the piece of its operand");
    at += first * own[d];
    if (!gone) stride[e++] = own[d];
  }
  restride(j, x, j->box.elements ? at : 0, stride);
}

void ccn__eval_index(ccn__run *r, const ccn__node *n, ccn__id id) {
  if (!ccn__attr_find(n->attrs, CCN__A_START)) ccn__defect(r, n, "has no start");
  ccn__each_rank(r, n, r->value[id], index_job, (void *)(uintptr_t)same_tree(r, n, id));
}

static void concat_job(ccn__job *j) {
  const uint32_t dim = (uint32_t)ccn__attr_int(j->n->attrs, CCN__A_DIM, 0), rank = j->out->rank;
  const size_t item = ccn__dtype_size((ccn__dtype)j->out->dtype);
  char *data = ccn__job_new(j);
  int64_t done = 0;
  for (uint32_t i = 0; i < j->n->nin; i++) {
    const ccn__value *x = ccn__operand(j->r, j->n, i);
    int64_t from[CCN__MAX_RANK], to[CCN__MAX_RANK] = {0}, extent[CCN__MAX_RANK];
    ccn__box b;
    ccn__value_box(j->r, x, j->rank, &b);
    for (uint32_t d = 0; d < rank; d++) { /* a replicated operand is read at the rank's offset */
      from[d] = d == dim ? 0 : j->box.start[d] - b.start[d];
      extent[d] = d == dim ? b.extent[d] : j->box.extent[d];
      if (extent[d] && (from[d] < 0 || from[d] + extent[d] > b.extent[d]))
        ccn__defect(j->r, j->n, "reads outside the piece of an operand");
    }
    to[dim] = done;
    done += b.extent[dim];
    if (done > j->box.extent[dim] || !x->piece[j->rank].buf)
      ccn__defect(j->r, j->n, "has operands that do not fit together");
    ccn__copy_box(item, rank, data, j->box.extent, to, x->piece[j->rank].buf->data, b.extent, from, extent);
    ccn__tick(j->r, b.elements);
  }
}

void ccn__eval_concat(ccn__run *r, const ccn__node *n, ccn__id id) {
  if (ccn__attr_int(n->attrs, CCN__A_DIM, 0) >= r->value[id]->rank) ccn__defect(r, n, "names no dim");
  ccn__each_rank(r, n, r->value[id], concat_job, NULL);
}

/* ---- one_hot ------------------------------------------------------------------------------------------------------- */

static void one_hot_job(ccn__job *j) {
  const ccn__value *x = ccn__operand(j->r, j->n, 0);
  const ccn__dtype t = (ccn__dtype)j->out->dtype;
  const uint32_t last = j->out->rank - 1;
  const size_t item = ccn__dtype_size(t);
  int64_t index[CCN__BLOCK];
  char raw[CCN__BLOCK_BYTES], one[8], zero[8];
  ccn__box b = j->box; /* of the indices: all but the last dim */
  ccn__view v;
  b.elements = 1;
  for (uint32_t d = 0; d < last; d++) b.elements *= b.extent[d];
  ccn__view_of(j->r, j->n, &v, x, j->rank, last, j->out->dim, &b);
  ccn__store_i64(t, one, 1);
  ccn__store_i64(t, zero, 0);
  char *to = ccn__job_new(j);
  ccn__fill(to, zero, item, (size_t)j->box.elements);
  for (int64_t e = 0; e < b.elements; e += CCN__BLOCK) {
    const size_t m = b.elements - e < CCN__BLOCK ? (size_t)(b.elements - e) : CCN__BLOCK;
    ccn__convert(CCN__I64, index, (ccn__dtype)x->dtype, ccn__view_block(&v, e, m, raw), m);
    for (size_t i = 0; i < m; i++) {
      if (index[i] < 0 || index[i] >= j->out->dim[last])
        ccn__index_raise(j, last, &b, e + (int64_t)i, index[i], j->out->dim[last]);
      const int64_t at = index[i] - j->box.start[last];
      if (at < 0 || at >= j->box.extent[last]) continue;
      memcpy(to + (size_t)((e + (int64_t)i) * j->box.extent[last] + at) * item, one, item);
    }
    ccn__tick(j->r, (int64_t)m);
  }
}

void ccn__eval_one_hot(ccn__run *r, const ccn__node *n, ccn__id id) {
  if (!r->value[id]->rank) ccn__defect(r, n, "has no dim");
  ccn__each_rank(r, n, r->value[id], one_hot_job, NULL);
}
