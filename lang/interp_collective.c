/* interp_collective.c: what crosses ranks. Two shapes cover them all: a rank's piece is reduced from the pieces of a
 * group, or it is assembled from the pieces of some sources; which box a rank gets is its placement's business.
 *
 * The group of a rank: the ranks that have its coordinates on the axes not named, in row-major order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"
#include "order.h"

enum { NOBODY = CCN__MAX_RANKS };

static uint32_t named(const ccn__node *n) { return (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0); }

void ccn__collective_group(const ccn__mesh *m, uint32_t over, uint32_t rank, ccn__ranks *out) {
  const uint32_t world = ccn__mesh_world(m);
  out->n = 0;
  for (uint32_t k = 0; k < world; k++) {
    bool mine = true;
    for (uint32_t a = 0; a < m->naxes; a++)
      mine &= (over >> a & 1) || ccn__mesh_coord(m, k, a) == ccn__mesh_coord(m, rank, a);
    if (mine) out->at[out->n++] = k;
  }
}

/* The rank with coordinate `root` on every named axis. */
uint32_t ccn__collective_root(const ccn__mesh *m, uint32_t over, uint32_t rank, int64_t root) {
  for (uint32_t a = 0; a < m->naxes; a++)
    if (over >> a & 1) rank = rank - (ccn__mesh_coord(m, rank, a) - (uint32_t)root) * ccn__mesh_stride(m, a);
  return rank;
}

static void *piece_data(ccn__job *j, const ccn__value *x, uint32_t rank) {
  if (!x->piece[rank].buf) ccn__defect(j->r, j->n, "reads a value that does not exist on that rank");
  return x->piece[rank].buf->data;
}

/* ---- reducing ------------------------------------------------------------------------------------------------------ */

/* The contributions to one block, in the accumulation dtype. Combined in place: lane[i] is where i's is. */
typedef struct lanes {
  ccn__redop op;
  ccn__dtype acc;
  uint32_t n;
  size_t width;
  const void *lane[CCN__MAX_RANKS];
  char *slot; /* n blocks */
} lanes;

static void combine(lanes *l, uint32_t i, uint32_t k) {
  char *to = l->slot + (size_t)i * CCN__BLOCK_BYTES;
  ccn__redop_combine(l->op, l->acc, to, l->lane[i], l->lane[k], l->width);
  l->lane[i] = to;
}

/* An order of adding, for some of the elements. */
typedef struct sum_order {
  ccn__merge merge[CCN__MAX_RANKS];
  uint32_t sum; /* the lane that holds the sum */
} sum_order;

/* Over the first declared axis, then those results over the next. */
static void order_of_axes(sum_order *o, const ccn__mesh *m, uint32_t over, uint32_t n) {
  uint32_t done = 0;
  for (uint32_t a = 0; a < m->naxes; a++) {
    if (!(over >> a & 1)) continue;
    const uint32_t size = (uint32_t)m->size[a], rest = n / size;
    for (uint32_t i = 0; i < rest; i++)
      for (uint32_t k = 1; k < size; k++)
        o->merge[done++] = (ccn__merge){(uint16_t)i, (uint16_t)(i + k * rest)};
    n = rest;
  }
  o->sum = 0;
}

/* A library's order is nobody's to imitate: it is taken as rank order, and engines are compared within a bound. */
static void find_order(sum_order *o, const ccn__job *j, uint32_t n, uint32_t anchor) {
  const int64_t packed = ccn__attr_int(j->n->attrs, CCN__A_ORDER, CCN__ORDER_RANK);
  const ccn__order order = ccn__order_of(packed);
  if (order == CCN__ORDER_AXIS) order_of_axes(o, j->r->mesh, named(j->n), n);
  else o->sum = ccn__order_merges(order, ccn__order_group(packed), n, anchor, o->merge);
}

static ccn__redop operator_of(const ccn__node *n) {
  return (ccn__redop)ccn__attr_int(n->attrs, CCN__A_RED, 0);
}

/* What add_job works with. */
typedef struct adding {
  ccn__job *j;
  lanes l;
  ccn__dtype t;
  ccn__view view[CCN__MAX_RANKS];
  char *raw, *to;
} adding;

/* Elements [e, e + width) of the result, at most a block. */
static void add_block(adding *a, const sum_order *o, int64_t e, size_t width) {
  lanes *l = &a->l;
  l->width = width;
  for (uint32_t i = 0; i < l->n; i++) {
    char *slot = l->slot + (size_t)i * CCN__BLOCK_BYTES;
    l->lane[i] = ccn__view_as(&a->view[i], l->acc, a->t, e, width, a->t == l->acc ? slot : a->raw, slot);
  }
  for (uint32_t i = 0; i + 1 < l->n; i++) combine(l, o->merge[i].to, o->merge[i].from);
  const void *sum = l->lane[o->sum];
  if (ccn__redop_table[l->op].averages) {
    char *slot = l->slot + (size_t)o->sum * CCN__BLOCK_BYTES;
    if (sum != slot) memcpy(slot, sum, width * ccn__dtype_size(l->acc)); /* one rank: nobody's copy */
    ccn__redop_divide(l->acc, slot, width, l->n);
    sum = slot;
  }
  ccn__convert(a->t, a->to + (size_t)e * ccn__dtype_size(a->t), l->acc, sum, width);
  ccn__tick(a->j->r, (int64_t)(width * l->n));
}

static void add_range(adding *a, const sum_order *o, int64_t start, int64_t end) {
  for (int64_t e = start; e < end; e += CCN__BLOCK)
    add_block(a, o, e, end - e < CCN__BLOCK ? (size_t)(end - e) : CCN__BLOCK);
}

/* One value an element and rank: added in the node's order. An all-reduce's may change from slice to slice; of the
 * others the anchor is the rank that has the result. */
static void add_job(ccn__job *j) {
  const ccn__value *x = j->user;
  adding a = {.j = j, .t = (ccn__dtype)x->dtype};
  ccn__ranks group;
  sum_order order;
  uint32_t own = 0, slices = 1;
  ccn__collective_group(j->r->mesh, named(j->n), j->rank, &group);
  a.l = (lanes){.op = operator_of(j->n), .acc = ccn__dtype_acc(a.t), .n = group.n};
  for (uint32_t i = 0; i < group.n; i++) {
    ccn__view_of(j->r, j->n, &a.view[i], x, group.at[i], j->out->rank, j->out->dim, &j->box);
    if (group.at[i] == j->rank) own = i;
  }
  ccn__buf *room = ccn__buf_new(&j->r->pool, ((size_t)group.n + 1) * CCN__BLOCK_BYTES);
  a.l.slot = room->data;
  a.raw = a.l.slot + (size_t)group.n * CCN__BLOCK_BYTES;
  a.to = ccn__job_new(j);
  if (j->n->op == CCN__OP_ALLREDUCE) {
    own = 0;
    slices = ccn__order_slices(ccn__order_of(ccn__attr_int(j->n->attrs, CCN__A_ORDER, 0)), group.n);
  }
  for (uint32_t s = 0; s < slices; s++) {
    int64_t start, end;
    ccn__slice_range(j->box.elements, 1, slices, s, &start, &end);
    find_order(&order, j, group.n, slices > 1 ? s : own);
    add_range(&a, &order, start, end);
  }
  ccn__buf_unref(room);
}

/* Parts of a tree: merged, whatever the order of the ranks. */
static void merge_job(ccn__job *j) {
  ccn__ranks group;
  ccn__collective_group(j->r->mesh, named(j->n), j->rank, &group);
  ccn__merge_parts(j, j->user, &group, ccn__redop_table[operator_of(j->n)].averages ? group.n : 1);
}

static void reduce(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__value *x = ccn__operand_raw(r, n, 0), *out = r->value[id];
  const uint32_t over = named(n);
  if (!ccn__redop_takes(operator_of(n), (ccn__dtype)x->dtype))
    ccn__defect(r, n, "cannot reduce this dtype so");
  if (x->tree && !(over & ~(uint32_t)x->tree)) {
    out->tree = (uint8_t)(x->tree & ~over);
    out->per = x->per;
    out->redop = x->redop;
    ccn__each_rank(r, n, out, merge_job, x);
  } else {
    ccn__each_rank(r, n, out, add_job, ccn__fold(r, n, x));
  }
}

void ccn__eval_allreduce(ccn__run *r, const ccn__node *n, ccn__id id) { reduce(r, n, id); }
void ccn__eval_reducescatter(ccn__run *r, const ccn__node *n, ccn__id id) { reduce(r, n, id); }
void ccn__eval_reduce_root(ccn__run *r, const ccn__node *n, ccn__id id) { reduce(r, n, id); }

/* ---- assembling ---------------------------------------------------------------------------------------------------- */

static bool same_box(uint32_t n, const ccn__box *x, const ccn__box *y) {
  for (uint32_t d = 0; d < n; d++)
    if (x->start[d] != y->start[d] || x->extent[d] != y->extent[d]) return false;
  return true;
}

/* Copies what source and result have in common. */
static void copy_common(ccn__job *j, const ccn__value *x, uint32_t source) {
  ccn__box b;
  int64_t from[CCN__MAX_RANK], to[CCN__MAX_RANK], extent[CCN__MAX_RANK];
  ccn__value_box(j->r, x, source, &b);
  for (uint32_t d = 0; d < x->rank; d++) {
    const int64_t start = b.start[d] > j->box.start[d] ? b.start[d] : j->box.start[d];
    const int64_t xend = b.start[d] + b.extent[d], end = j->box.start[d] + j->box.extent[d];
    from[d] = start - b.start[d];
    to[d] = start - j->box.start[d];
    extent[d] = (xend < end ? xend : end) - start;
  }
  ccn__copy_box(ccn__dtype_size((ccn__dtype)x->dtype), x->rank, j->piece->buf->data, j->box.extent, to,
                piece_data(j, x, source), b.extent, from, extent);
  ccn__tick(j->r, b.elements);
}

static void assemble(ccn__job *j, const ccn__value *x, const ccn__ranks *from) {
  ccn__box b;
  ccn__value_box(j->r, x, from->at[0], &b);
  if (from->n == 1 && same_box(x->rank, &b, &j->box)) { /* nothing to cut: the same buffer */
    (void)piece_data(j, x, from->at[0]);
    ccn__piece_share(j->piece, &x->piece[from->at[0]]);
    return;
  }
  (void)ccn__job_new(j);
  for (uint32_t i = 0; i < from->n; i++) copy_common(j, x, from->at[i]);
}

static void group_job(ccn__job *j) {
  ccn__ranks group;
  ccn__collective_group(j->r->mesh, named(j->n), j->rank, &group);
  assemble(j, j->user, &group);
}

static void root_job(ccn__job *j) {
  const int64_t root = ccn__attr_int(j->n->attrs, CCN__A_ROOT, 0);
  const ccn__ranks source = {1, {ccn__collective_root(j->r->mesh, named(j->n), j->rank, root)}};
  assemble(j, j->user, &source);
}

static void self_job(ccn__job *j) {
  const ccn__ranks source = {1, {j->rank}};
  assemble(j, j->user, &source);
}

static void move(ccn__run *r, const ccn__node *n, ccn__id id, ccn__job_fn *f) {
  ccn__each_rank(r, n, r->value[id], f, ccn__operand(r, n, 0));
}

void ccn__eval_allgather(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, group_job); }
void ccn__eval_gather(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, group_job); }
void ccn__eval_broadcast(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, root_job); }
void ccn__eval_scatter(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, root_job); }
void ccn__eval_slice(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, self_job); }
void ccn__eval_to_local(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, self_job); }

/* On a local value: of n equal blocks along dim, block j of member i becomes block i of member j. */
static void blocks_job(ccn__job *j) {
  const ccn__value *x = j->user;
  const uint32_t dim = (uint32_t)ccn__attr_int(j->n->attrs, CCN__A_DIM, 0);
  ccn__ranks group;
  ccn__collective_group(j->r->mesh, named(j->n), j->rank, &group);
  int64_t from[CCN__MAX_RANK] = {0}, to[CCN__MAX_RANK] = {0}, extent[CCN__MAX_RANK];
  if (dim >= x->rank || j->box.extent[dim] % group.n)
    ccn__defect(j->r, j->n, "does not divide into equal blocks");
  memcpy(extent, j->box.extent, sizeof extent);
  extent[dim] /= group.n;
  for (uint32_t i = 0; i < group.n; i++)
    if (group.at[i] == j->rank) from[dim] = i * extent[dim];
  void *data = ccn__job_new(j);
  for (uint32_t i = 0; i < group.n; i++) {
    to[dim] = i * extent[dim];
    ccn__copy_box(ccn__dtype_size((ccn__dtype)x->dtype), x->rank, data, j->box.extent, to,
                  piece_data(j, x, group.at[i]), j->box.extent, from, extent);
  }
  ccn__tick(j->r, j->box.elements);
}

void ccn__eval_alltoall(ccn__run *r, const ccn__node *n, ccn__id id) {
  move(r, n, id, ccn__attr_find(n->attrs, CCN__A_FROM) ? group_job : blocks_job);
}

/* ---- from coordinate to coordinate ---------------------------------------------------------------------------------- */

/* The coordinate whose value arrives at `to`, or -1. */
static int64_t sender(const ccn__node *n, int64_t to, int64_t size) {
  if (n->op == CCN__OP_SHIFT) {
    const int64_t by = ccn__attr_int(n->attrs, CCN__A_BY, 0);
    if (!ccn__attr_find(n->attrs, CCN__A_FILL)) return ((to - by % size) % size + size) % size;
    if (by <= -size || by >= size) return -1;
    return to - by >= 0 && to - by < size ? to - by : -1;
  }
  const ccn__attr *pairs = ccn__attr_find(n->attrs, CCN__A_PAIRS);
  for (uint32_t i = 0; pairs && i + 1 < pairs->n; i += 2)
    if (pairs->ints[i + 1] == to) return pairs->ints[i];
  return -1;
}

/* Every named axis moves in the same way. */
uint32_t ccn__collective_sender(const ccn__mesh *m, const ccn__node *n, uint32_t rank) {
  uint32_t from = rank;
  for (uint32_t a = 0; a < m->naxes; a++) {
    if (!(named(n) >> a & 1)) continue;
    const uint32_t here = ccn__mesh_coord(m, rank, a);
    const int64_t there = sender(n, here, m->size[a]);
    if (there < 0) return NOBODY;
    from = from - here * ccn__mesh_stride(m, a) + (uint32_t)there * ccn__mesh_stride(m, a);
  }
  return from;
}

static void shift_job(ccn__job *j) {
  const uint32_t from = ccn__collective_sender(j->r->mesh, j->n, j->rank);
  const ccn__dtype t = (ccn__dtype)j->out->dtype;
  char element[8];
  if (from != NOBODY) {
    const ccn__ranks source = {1, {from}};
    assemble(j, j->user, &source);
    return;
  }
  ccn__number_store(ccn__run_number(j->r, j->n, CCN__A_FILL), t, element);
  void *to = ccn__job_new(j);
  ccn__fill(to, element, ccn__dtype_size(t), (size_t)j->box.elements);
}

void ccn__eval_shift(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, shift_job); }
void ccn__eval_permute(ccn__run *r, const ccn__node *n, ccn__id id) { move(r, n, id, shift_job); }
