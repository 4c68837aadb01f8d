/* kernel_loop.c: one loop of a kernel: its values, and where their elements are.
 *
 * A node is computed for an element by computing its operands for the same element, down to what is in
 * memory; each access is an affine map of the loop's indices for each rank. In the end dims that all maps of
 * all ranks pass through together become one, so that most loops have one dim; what does not change along a
 * row, or at all, is computed once for each row, or once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"
#include "kernel_impl.h"

bool ccn__kloop_begin(ccn__kbuild *b, ccn__kloopb *q, int32_t stage, const ccn__shape *shape, ccn__id node) {
  memset(q, 0, sizeof *q);
  q->b = b;
  q->stage = stage;
  q->shape = *shape;
  q->fence = shape->rank + 1u;
  q->l = CCN__PUSH(b->a, &b->k->loops);
  *q->l =
    (ccn__kloop){.count = CCN__NEWN(b->a, int64_t, b->world), .row = CCN__NEWN(b->a, int64_t, b->world)};
  q->box = CCN__NEWN(b->a, ccn__box, b->world);
  q->val = CCN__NEWN(b->a, uint32_t, b->g->nodes.n);
  for (uint32_t i = 0; i < b->g->nodes.n; i++) q->val[i] = CCN__NO_SLOT;
  const ccn__node *n = &b->g->nodes.at[node];
  for (uint32_t r = 0; r < b->world; r++) {
    if (!ccn__rank_has(b->mesh, r, shape->place)) continue;
    if (n->op == CCN__OP_BROADCAST && /* the others' values are not asked for */
        ccn__collective_root(b->mesh, (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0), r,
                             ccn__attr_int(n->attrs, CCN__A_ROOT, 0)) != r)
      continue;
    ccn__box_of(b->mesh, r, shape->rank, shape->dim, shape->place, &q->box[r]);
    q->l->count[r] = q->box[r].elements;
  }
  return true;
}

/* ---- maps ---------------------------------------------------------------------------------------------- */

static uint32_t new_map(ccn__kloopb *q, ccn__krawmap **out) {
  ccn__arena *a = q->b->a;
  ccn__krawmap *m = *out = CCN__PUSH(a, &q->maps);
  m->offset = CCN__NEWN(a, int64_t, q->b->world);
  m->stride = CCN__NEWN(a, int64_t, (size_t)q->b->world * CCN__RAW_DIMS);
  m->member = false;
  return q->maps.n - 1;
}

/* Where the elements of the loop's box are in a rank's piece of a value of shape h; of peers, on `who`
 * (NULL: the rank itself). */
static bool memory_map(ccn__kloopb *q, const ccn__shape *h, const uint8_t *who, ccn__id node,
                       ccn__kmap *out) {
  ccn__kbuild *b = q->b;
  const ccn__shape *s = &q->shape;
  ccn__krawmap *m;
  out->par = new_map(q, &m);
  if (h->bundle == CCN__BUNDLE_SCALARS && s->bundle == CCN__BUNDLE_TENSORS) {
    m->member = out->member = true;
    return true;
  }
  if (h->rank > s->rank) return ccn__kern_refuse(b, node, "has more dims than its loop");
  for (uint32_t r = 0; r < b->world; r++) {
    const ccn__box *box = &q->box[r];
    const uint32_t at = who ? who[r] : r;
    int64_t own[CCN__MAX_RANK];
    ccn__box piece;
    if (!box->elements || at >= b->world) continue;
    if (!ccn__rank_has(b->mesh, at, h->place)) return ccn__kern_refuse(b, node, "does not exist on a rank");
    ccn__box_of(b->mesh, at, h->rank, h->dim, h->place, &piece);
    ccn__strides(h->rank, piece.extent, own);
    for (uint32_t e = 0; e < s->rank; e++) {
      const int64_t d = (int64_t)e - s->rank + h->rank;
      if (d < 0 || (h->dim[d] == 1 && s->dim[e] != 1)) continue;
      const int64_t offset = box->start[e] - piece.start[d];
      if (offset < 0 || offset + box->extent[e] > piece.extent[d])
        return ccn__kern_refuse(b, node, "is read outside a rank's piece");
      m->stride[r * CCN__RAW_DIMS + e] = own[d];
      m->offset[r] += offset * own[d];
    }
  }
  return true;
}

/* The global index in a value of shape h; along `dim` only if it is not negative. */
static void index_map(ccn__kloopb *q, const ccn__shape *h, int64_t dim, ccn__kmap *out) {
  const ccn__shape *s = &q->shape;
  int64_t global[CCN__MAX_RANK];
  ccn__krawmap *m;
  out->par = new_map(q, &m);
  ccn__strides(h->rank, h->dim, global);
  for (uint32_t r = 0; r < q->b->world; r++)
    for (uint32_t e = 0; e < s->rank && q->box[r].elements; e++) {
      const int64_t d = (int64_t)e - s->rank + h->rank;
      if (d < 0 || (h->dim[d] == 1 && s->dim[e] != 1) || (dim >= 0 && d != dim)) continue;
      const int64_t step = dim >= 0 ? 1 : global[d];
      m->stride[r * CCN__RAW_DIMS + e] = step;
      m->offset[r] += q->box[r].start[e] * step;
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

static uint32_t add_value(ccn__kloopb *q, ccn__kval v) {
  *CCN__PUSH(q->b->a, &q->l->vals) = v;
  return q->l->vals.n - 1;
}

static uint32_t load(ccn__kloopb *q, ccn__id node, uint32_t slot, const ccn__shape *h) {
  ccn__kval v = {.kind = CCN__KV_LOAD, .dtype = h->dtype, .ptr = ccn__kern_ptr_self(q->b, slot)};
  (void)memory_map(q, h, NULL, node, &v.map);
  return add_value(q, v);
}

/* Turns the table of peers so that peer `first` places behind a rank itself is its number 0. */
static void turn_peers(ccn__kbuild *b, uint32_t ptr, uint32_t npeers, uint32_t first) {
  for (uint32_t r = 0; r < b->world; r++) {
    uint8_t was[CCN__MAX_RANKS];
    uint32_t own = 0;
    for (uint32_t i = 0; i < npeers; i++) {
      was[i] = b->k->ptrs.at[ptr + i].rank[r];
      if (was[i] == r) own = i;
    }
    for (uint32_t i = 0; i < npeers; i++) b->k->ptrs.at[ptr + i].rank[r] = was[(own + first + i) % npeers];
  }
}

static void merges_by_axes(const ccn__mesh *m, uint32_t over, uint32_t n, ccn__merge *out) {
  for (uint32_t a = 0; a < m->naxes; a++) {
    if (!(over >> a & 1)) continue;
    const uint32_t size = (uint32_t)m->size[a], rest = n / size;
    for (uint32_t i = 0; i < rest; i++)
      for (uint32_t k = 1; k < size; k++) *out++ = (ccn__merge){(uint16_t)i, (uint16_t)(i + k * rest)};
    n = rest;
  }
}

/* Families that turn with the rank that has the result turn the table instead, so that all ranks have one
 * code. */
static void set_order(ccn__kbuild *b, const ccn__node *n, uint32_t over, ccn__kval *v) {
  const int64_t packed = ccn__attr_int(n->attrs, CCN__A_ORDER, CCN__ORDER_RANK);
  const ccn__order order = ccn__order_of(packed);
  ccn__merge *m = CCN__NEWN(b->a, ccn__merge, v->npeers + 1u);
  if (order == CCN__ORDER_RING)
    turn_peers(b, v->ptr, v->npeers, 1); /* the chain that ends at the rank itself */
  if (order == CCN__ORDER_BINARY) turn_peers(b, v->ptr, v->npeers, 0);
  if (order == CCN__ORDER_AXIS) merges_by_axes(b->mesh, over, v->npeers, m);
  else v->sum = (uint16_t)ccn__order_merges(order, ccn__order_group(packed), v->npeers, 0, m);
  const bool row = order == CCN__ORDER_RANK || order == CCN__ORDER_RING || order == CCN__ORDER_ANY;
  if (!row && v->npeers > 1) v->merge = m;
}

static uint32_t peers(ccn__kloopb *q, ccn__id i) {
  ccn__kbuild *b = q->b;
  const ccn__node *n = &b->g->nodes.at[i];
  const ccn__id x = b->real[n->in[0]];
  const uint32_t over = (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0);
  ccn__kval v = {.kind = CCN__KV_PEERS, .dtype = b->in->shape[i].dtype};
  v.fn = (uint8_t)ccn__attr_int(n->attrs, CCN__A_RED, 0);
  if (b->owed[x]) return ccn__kern_refuse(b, i, "reduces what is owed in parts"), 0;
  if (b->role[x] == CCN__ROLE_LITERAL) return ccn__kern_refuse(b, i, "reduces a number"), 0;
  const uint32_t slot = b->role[x] == CCN__ROLE_OUTSIDE ? ccn__kern_slot_in(b, n->in[0]) : b->slot[x];
  v.ptr = ccn__kern_ptr_peers(b, slot, over, &v.npeers);
  set_order(b, n, over, &v);
  (void)memory_map(q, &b->in->shape[x], NULL, i, &v.map); /* the pieces of a group have one layout */
  return add_value(q, v);
}

static bool attr_number(ccn__kloopb *q, ccn__id i, ccn__attr_key key, ccn__number *out) {
  const ccn__attr *a = ccn__attr_find(q->b->g->nodes.at[i].attrs, key);
  if (a && !ccn__lit_eval(a->lit, q->b->in->sym, out) && !out->unknown) return true;
  return ccn__kern_refuse(q->b, i, "has a number that is not known");
}

static void set_all(ccn__kbuild *b, uint32_t number, int64_t x) {
  for (uint32_t r = 0; r < b->world; r++) *ccn__kern_number_at(b, number, r) = x;
}

static int64_t bits_of(double x) {
  int64_t i;
  memcpy(&i, &x, sizeof i);
  return i;
}

/* Numbers of a random op, from v->par on. */
static void random_numbers(ccn__kloopb *q, ccn__id i, ccn__kval *v) {
  ccn__kbuild *b = q->b;
  const ccn__op op = (ccn__op)v->fn;
  ccn__number seed = {.i = 0}, p = {.i = 0}, low = {.i = 0}, high = {.i = 0};
  if (!attr_number(q, i, CCN__A_SEED, &seed)) return;
  v->par = ccn__kern_number(b);
  for (uint32_t k = 1; k < 5; k++) (void)ccn__kern_number(b);
  set_all(b, v->par, (int64_t)(uint32_t)seed.i);
  set_all(b, v->par + 1, (int64_t)((uint64_t)seed.i >> 32));
  for (uint32_t r = 0; r < b->world; r++) {
    uint32_t coord[CCN__MAX_AXES], n = 0;
    for (uint32_t a = 0; a < b->mesh->naxes; a++)
      if (b->in->shape[i].place[a].kind == CCN__LOCAL) coord[n++] = ccn__mesh_coord(b->mesh, r, a);
    *ccn__kern_number_at(b, v->par + 2, r) = ccn__coordinate_hash(coord, n);
  }
  if (op == CCN__OP_DROPOUT || op == CCN__OP_BERNOULLI) {
    if (!attr_number(q, i, CCN__A_P, &p)) return;
    set_all(b, v->par + 3, bits_of(ccn__number_f64(p)));
    set_all(b, v->par + 4, bits_of(1.0 / (1.0 - ccn__number_f64(p))));
  }
  if (op == CCN__OP_RANDINT) {
    if (!attr_number(q, i, CCN__A_LOW, &low) || !attr_number(q, i, CCN__A_HIGH, &high)) return;
    set_all(b, v->par + 3, low.i);
    set_all(b, v->par + 4, (int64_t)((uint64_t)high.i - (uint64_t)low.i));
  }
}

static uint32_t random(ccn__kloopb *q, ccn__id i) {
  const ccn__node *n = &q->b->g->nodes.at[i];
  ccn__kval v = {.kind = CCN__KV_RANDOM, .dtype = q->b->in->shape[i].dtype, .fn = (uint8_t)n->op};
  const uint32_t first = n->op == CCN__OP_DROPOUT;
  v.in[0] = first ? ccn__kloop_value(q, n->in[0]) : CCN__NO_SLOT;
  v.in[1] = n->nin > first ? ccn__kloop_value(q, n->in[first]) : CCN__NO_SLOT;
  v.nin = 2;
  random_numbers(q, i, &v);
  index_map(q, &q->b->in->shape[i], -1, &v.map);
  return add_value(q, v);
}

static bool may_fail(const ccn__node *n, ccn__dtype t) {
  return (n->op == CCN__OP_FLOORDIV || n->op == CCN__OP_MOD) && !ccn__dtype_is_float(t);
}

static uint32_t elementwise(ccn__kloopb *q, ccn__id i) {
  ccn__kbuild *b = q->b;
  const ccn__node *n = &b->g->nodes.at[i];
  ccn__kval v = {.dtype = b->in->shape[i].dtype, .nin = n->nin};
  if (n->op == CCN__OP_IOTA) {
    v.kind = CCN__KV_INDEX;
    index_map(q, &b->in->shape[i], ccn__attr_int(n->attrs, CCN__A_DIM, -1), &v.map);
    return add_value(q, v);
  }
  if (ccn__op_table[n->op].kind == CCN__KIND_RANDOM) return random(q, i);
  v.kind = n->op == CCN__OP_CAST ? CCN__KV_CAST : CCN__KV_ELEM;
  v.fn = ccn__op_table[n->op].kernel;
  for (uint32_t k = 0; k < n->nin && k < 3; k++) v.in[k] = ccn__kloop_value(q, n->in[k]);
  const ccn__dtype t = (ccn__dtype)b->in->shape[n->in[n->op == CCN__OP_WHERE]].dtype;
  if (v.kind == CCN__KV_ELEM && !ccn__kernel_exists((ccn__kernel_id)v.fn, ccn__dtype_acc(t)))
    return ccn__kern_refuse(b, i, "has no kernel for %s", ccn__dtype_name(t)), 0;
  if (may_fail(n, t)) {
    *CCN__PUSH(b->a, &b->k->faults) = (ccn__kfault){i, 606};
    v.fault = b->k->faults.n;
  }
  return add_value(q, v);
}

static uint32_t make_value(ccn__kloopb *q, ccn__id i) {
  ccn__kbuild *b = q->b;
  const ccn__shape *h = &b->in->shape[i];
  ccn__kval v;
  switch ((ccn__krole)b->role[i]) {
  case CCN__ROLE_LITERAL: return ccn__kern_literal(b, i, &v) ? add_value(q, v) : 0;
  case CCN__ROLE_OUTSIDE:
    if (b->owed[i]) return ccn__kern_refuse(b, i, "is owed in parts"), 0;
    return load(q, i, ccn__kern_slot_in(b, i), h);
  default: break;
  }
  const bool memory =
    b->role[i] == CCN__ROLE_REDUCE || b->role[i] == CCN__ROLE_PAY || b->role[i] == CCN__ROLE_MOVE;
  if (memory || (b->stage[i] < q->stage && h->rank)) return load(q, i, b->slot[i], h);
  if (b->role[i] == CCN__ROLE_SAME) return ccn__kloop_value(q, b->g->nodes.at[i].in[0]);
  return b->role[i] == CCN__ROLE_PEERS ? peers(q, i) : elementwise(q, i);
}

/* Depth first, but through a list of what is wanted: groups may be deep. */
static bool ready(ccn__kloopb *q, ccn__id i) { return q->val[q->b->real[i]] != CCN__NO_SLOT; }

/* Whether making the value asks for its operands in this loop. */
static bool inner(ccn__kloopb *q, ccn__id i) {
  const ccn__kbuild *b = q->b;
  if (b->role[i] != CCN__ROLE_ELEM && b->role[i] != CCN__ROLE_SAME) return false;
  return !(b->stage[i] < q->stage && b->in->shape[i].rank);
}

uint32_t ccn__kloop_value(ccn__kloopb *q, ccn__id node) {
  ccn__kbuild *b = q->b;
  CCN__VEC(ccn__id) todo = {0};
  if (!ccn__kern_fine(b)) return 0;
  if (ready(q, node)) return q->val[b->real[node]];
  *CCN__PUSH(b->a, &todo) = b->real[node];
  while (todo.n && ccn__kern_fine(b)) {
    const ccn__id i = todo.at[todo.n - 1];
    const ccn__node *n = &b->g->nodes.at[i];
    const uint32_t before = todo.n;
    if (ready(q, i)) {
      todo.n--;
      continue;
    }
    for (uint32_t k = 0; k < n->nin && inner(q, i); k++)
      if (!ready(q, n->in[k])) *CCN__PUSH(b->a, &todo) = b->real[n->in[k]];
    if (todo.n > before) continue;
    q->val[i] = make_value(q, i);
    todo.n--;
  }
  return ccn__kern_fine(b) ? q->val[b->real[node]] : 0;
}

/* ---- stores and reductions ----------------------------------------------------------------------------- */

bool ccn__kloop_store(ccn__kloopb *q, uint32_t val, uint32_t slot, const ccn__shape *shape, uint32_t over,
                      uint8_t *target, ccn__id node) {
  ccn__kbuild *b = q->b;
  ccn__kstore s = {.val = val};
  if (over) {
    s.ptr = ccn__kern_ptr_peers(b, slot, over, &s.npeers);
    (void)memory_map(q, shape, b->k->ptrs.at[s.ptr].rank, node, &s.map);
    turn_peers(b, s.ptr, s.npeers, 0); /* the rank itself first: its own copy is wanted in its cache */
  } else if (target) {
    *CCN__PUSH(b->a, &b->k->ptrs) = (ccn__kptr){.slot = slot, .rank = target};
    s.ptr = b->k->ptrs.n - 1;
    for (uint32_t r = 0; r < b->world; r++) s.maybe |= target[r] >= b->world;
    b->k->slots.at[slot].peers = true;
    (void)memory_map(q, shape, target, node, &s.map);
  } else {
    s.ptr = ccn__kern_ptr_self(b, slot);
    (void)memory_map(q, shape, NULL, node, &s.map);
  }
  *CCN__PUSH(b->a, &q->l->stores) = s;
  return ccn__kern_fine(b);
}

/* Memory for the nodes of a tree as the loop leaves them; for members the table of where each begins. */
static uint32_t node_slot(ccn__kbuild *b, ccn__id i, const ccn__ktree *t, const int64_t **table) {
  const int64_t item = (int64_t)ccn__dtype_size(ccn__dtype_acc((ccn__dtype)t->t));
  int64_t *bytes = CCN__NEWN(b->a, int64_t, b->world);
  for (uint32_t r = 0; r < b->world; r++) {
    int64_t *at = CCN__NEWN(b->a, int64_t, t->members + 1u), n = 0;
    for (uint32_t m = 0; m < t->members; m++) {
      const int64_t *run = &t->run[(r * t->members + m) * 2];
      at[m] = n;
      n += CCN__RUN_SLOTS + (run[1] >> CCN__TREE_BLOCK_LEVEL) - (run[0] >> CCN__TREE_BLOCK_LEVEL) + 1;
    }
    table[r] = at;
    bytes[r] = n * item;
  }
  *CCN__PUSH(b->a, &b->k->slots) = (ccn__kslot){.kind = CCN__KSLOT_SCRATCH,
                                                .dtype = (uint8_t)ccn__dtype_acc((ccn__dtype)t->t),
                                                .node = i,
                                                .update = CCN__NO_ID,
                                                .bytes = bytes};
  return b->k->slots.n - 1;
}

static bool reduce_whole(ccn__kloopb *q, ccn__id i, ccn__kred *d) {
  ccn__kbuild *b = q->b;
  const ccn__ktree *t = &b->k->trees.at[b->tree[i]];
  const int64_t **table = CCN__NEWN(b->a, const int64_t *, b->world);
  d->form = t->members > 1 || q->shape.bundle ? CCN__KRED_MEMBER : CCN__KRED_RUN;
  if (q->shape.bundle && !ccn__attr_int(b->g->nodes.at[i].attrs, CCN__A_PER, 0)) d->form = CCN__KRED_RUN;
  d->ptr = ccn__kern_ptr_self(b, node_slot(b, i, t, table));
  if (d->form == CCN__KRED_MEMBER) d->table = ccn__kern_ptr_table(b, table);
  d->par = ccn__kern_number(b);
  for (uint32_t r = 0; r < b->world; r++) *ccn__kern_number_at(b, d->par, r) = t->run[r * t->members * 2];
  *CCN__PUSH(b->a, &q->l->reds) = *d;
  return true;
}

static bool reduce_rows(ccn__kloopb *q, ccn__id i, ccn__kred *d) {
  ccn__kbuild *b = q->b;
  const ccn__node *n = &b->g->nodes.at[i];
  const ccn__attr *dims = ccn__attr_find(n->attrs, CCN__A_DIMS);
  const ccn__shape *h = &b->in->shape[i];
  ccn__shape kept = *h; /* with the reduced dims as 1, to be read along the loop */
  uint32_t reduced = 0;
  for (uint32_t k = 0; k < dims->n; k++) reduced |= 1u << dims->ints[k];
  for (uint32_t e = q->fence; e < q->shape.rank; e++) {
    if (!(reduced >> e & 1)) return ccn__kern_refuse(b, i, "reduces dims that are not the last");
    if (q->shape.dim[e] == 0) return ccn__kern_refuse(b, i, "reduces nothing");
    kept.dim[e] = 1;
  }
  kept.rank = q->shape.rank;
  if (h->rank != q->shape.rank) /* dims gone: those before the fence are as they are */
    for (uint32_t a = 0; a < b->mesh->naxes; a++)
      if (kept.place[a].kind == CCN__SLICED && kept.place[a].dim >= q->fence)
        return ccn__kern_refuse(b, i, "keeps a cut that moved");
  d->form = CCN__KRED_ROW;
  uint32_t slots = 0;
  for (uint32_t o = 0; o < b->outs.n; o++) {
    if (b->outs.at[o].value != i) continue;
    d->ptr = ccn__kern_ptr_self(b, b->outs.at[o].slot);
    if (!memory_map(q, &kept, NULL, i, &d->map)) return false;
    *CCN__PUSH(b->a, &q->l->reds) = *d;
    slots += b->outs.at[o].slot == b->slot[i];
  }
  if (slots) return true;
  d->ptr = ccn__kern_ptr_self(b, b->slot[i]);
  if (!memory_map(q, &kept, NULL, i, &d->map)) return false;
  *CCN__PUSH(b->a, &q->l->reds) = *d;
  return true;
}

bool ccn__kloop_reduce(ccn__kloopb *q, ccn__id i) {
  ccn__kbuild *b = q->b;
  const ccn__node *n = &b->g->nodes.at[i];
  ccn__kred d = {.op = (uint8_t)ccn__op_redop((ccn__op)n->op), .t = b->in->shape[n->in[0]].dtype};
  d.val = ccn__kloop_value(q, n->in[0]);
  if (!ccn__kern_fine(b)) return false;
  return b->tree[i] == CCN__NO_SLOT ? reduce_rows(q, i, &d) : reduce_whole(q, i, &d);
}

/* ---- the end of a loop: dims, numbers, rates ----------------------------------------------------------- */

/* The loop's dims while they are merged. */
typedef struct dims {
  uint32_t n;
  bool row[CCN__MAX_RANK + 2];      /* behind the fence */
  int64_t *extent;                  /* [dim * world + rank] */
  uint32_t from[CCN__MAX_RANK + 2]; /* of an unmerged dim: which of the shape's */
} dims;

static bool busy(const ccn__kloopb *q, uint32_t r) { return q->box[r].elements > 0; }

static int64_t *stride_at(ccn__kloopb *q, uint32_t map, uint32_t r, uint32_t dim) {
  return &q->maps.at[map].stride[r * CCN__RAW_DIMS + dim];
}

/* Whether dim y, behind dim x, continues it in every map on every rank. */
static bool continues(ccn__kloopb *q, const dims *d, uint32_t x, uint32_t y) {
  const uint32_t w = q->b->world;
  for (uint32_t r = 0; r < w; r++) {
    const int64_t ex = d->extent[x * w + r], ey = d->extent[y * w + r];
    if (!busy(q, r) || ex == 1 || ey == 1) continue;
    for (uint32_t m = 0; m < q->maps.n; m++)
      if (*stride_at(q, m, r, d->from[x]) != *stride_at(q, m, r, d->from[y]) * ey) return false;
  }
  return true;
}

/* Dim x takes dim y in. */
static void take_in(ccn__kloopb *q, dims *d, uint32_t x, uint32_t y) {
  const uint32_t w = q->b->world;
  for (uint32_t r = 0; r < w; r++) {
    for (uint32_t m = 0; m < q->maps.n; m++)
      if (d->extent[y * w + r] != 1) *stride_at(q, m, r, d->from[x]) = *stride_at(q, m, r, d->from[y]);
    d->extent[x * w + r] *= d->extent[y * w + r];
  }
}

static bool one_everywhere(const ccn__kloopb *q, uint32_t e) {
  for (uint32_t r = 0; r < q->b->world; r++)
    if (busy(q, r) && q->box[r].extent[e] != 1) return false;
  return true;
}

static void push_dim(ccn__kloopb *q, dims *d, uint32_t e, bool row) {
  for (uint32_t r = 0; r < q->b->world; r++)
    d->extent[d->n * q->b->world + r] = busy(q, r) && e < q->shape.rank ? q->box[r].extent[e] : 1;
  d->from[d->n] = e;
  d->row[d->n++] = row;
}

/* A dim of extent 1 on every rank, for a loop of rows that lacks one; its strides are 0. */
static void push_empty(ccn__kloopb *q, dims *d, bool row) { push_dim(q, d, CCN__MAX_RANK + row, row); }

static bool merge_dims(ccn__kloopb *q, dims *d, ccn__id node) {
  const bool rows = q->fence <= q->shape.rank;
  d->extent = CCN__NEWN(q->b->a, int64_t, (size_t)q->b->world * (CCN__MAX_RANK + 2));
  for (uint32_t e = 0; e < q->shape.rank; e++) {
    const bool row = e >= q->fence;
    if (row && !d->n) push_empty(q, d, false);
    if (one_everywhere(q, e)) continue;
    push_dim(q, d, e, row);
    const uint32_t y = d->n - 1;
    if (d->n > 1 && d->row[y - 1] == row && continues(q, d, y - 1, y)) {
      take_in(q, d, y - 1, y);
      d->n--;
    }
  }
  if (rows && (!d->n || !d->row[d->n - 1])) {
    if (!d->n) push_empty(q, d, false);
    push_empty(q, d, true);
  }
  if (!d->n) push_empty(q, d, false);
  for (uint32_t i = 0; rows && i + 1 < d->n; i++)
    if (d->row[i]) return ccn__kern_refuse(q->b, node, "reduces rows that do not lie together");
  return true;
}

/* A map's numbers: offset and strides; and how it steps along the innermost dim. */
static void fix_map(ccn__kloopb *q, const dims *d, ccn__kmap *map, bool *out_constant) {
  ccn__kbuild *b = q->b;
  const uint32_t raw = map->par, last = d->n - 1;
  bool zero = true, one = true, constant = true;
  *out_constant = false;
  if (map->member) return;
  map->par = ccn__kern_number(b);
  for (uint32_t i = 0; i < d->n; i++) (void)ccn__kern_number(b);
  for (uint32_t r = 0; r < b->world; r++) {
    if (!busy(q, r)) continue;
    *ccn__kern_number_at(b, map->par, r) = q->maps.at[raw].offset[r];
    for (uint32_t i = 0; i < d->n; i++) {
      const int64_t s = d->extent[i * b->world + r] == 1 ? 0 : *stride_at(q, raw, r, d->from[i]);
      *ccn__kern_number_at(b, map->par + 1 + i, r) = s;
      constant &= s == 0;
      if (i != last || d->extent[i * b->world + r] == 1) continue;
      zero &= s == 0;
      one &= s == 1;
    }
  }
  map->inner = zero ? 0 : one ? 1 : 2;
  *out_constant = constant;
}

static void fix_maps(ccn__kloopb *q, const dims *d) {
  ccn__kloop *l = q->l;
  bool constant;
  for (uint32_t i = 0; i < l->vals.n; i++) {
    ccn__kval *v = &l->vals.at[i];
    v->rate = CCN__RATE_CALL;
    if (v->kind == CCN__KV_LOAD || v->kind == CCN__KV_PEERS || v->kind == CCN__KV_INDEX ||
        v->kind == CCN__KV_RANDOM) {
      fix_map(q, d, &v->map, &constant);
      v->rate = v->map.member  ? CCN__RATE_ROW
                : constant     ? CCN__RATE_CALL
                : v->map.inner ? CCN__RATE_ELEM
                               : CCN__RATE_ROW;
    }
    for (uint32_t k = 0; k < v->nin; k++)
      if (v->in[k] != CCN__NO_SLOT && l->vals.at[v->in[k]].rate > v->rate)
        v->rate = l->vals.at[v->in[k]].rate;
  }
  for (uint32_t i = 0; i < l->stores.n; i++) fix_map(q, d, &l->stores.at[i].map, &constant);
  for (uint32_t i = 0; i < l->reds.n; i++)
    if (l->reds.at[i].form == CCN__KRED_ROW) fix_map(q, d, &l->reds.at[i].map, &constant);
}

/* A cache line of the narrowest type that is streamed; less where functions need many registers. */
static uint32_t lanes_of(const ccn__kern *k, const ccn__kloop *l) {
  size_t least = 8;
  bool heavy = false;
  (void)k;
  for (uint32_t i = 0; i < l->vals.n; i++) {
    const ccn__kval *v = &l->vals.at[i];
    const bool streamed = (v->kind == CCN__KV_LOAD || v->kind == CCN__KV_PEERS) && v->rate == CCN__RATE_ELEM;
    if (streamed && ccn__dtype_size((ccn__dtype)v->dtype) < least)
      least = ccn__dtype_size((ccn__dtype)v->dtype);
    heavy |= v->rate == CCN__RATE_ELEM && (v->kind == CCN__KV_RANDOM || v->kind == CCN__KV_INDEX);
    heavy |=
      v->rate == CCN__RATE_ELEM && v->kind == CCN__KV_ELEM &&
      (v->fn == CCN__K_POW || (v->fn >= CCN__K_EXP && v->fn <= CCN__K_COS) || v->fn == CCN__K_FLOORDIV ||
       v->fn == CCN__K_MOD || (v->fn >= CCN__K_GELU && v->fn <= CCN__K_EXPM1));
  }
  for (uint32_t i = 0; i < l->stores.n; i++) {
    const size_t size = ccn__dtype_size((ccn__dtype)l->vals.at[l->stores.at[i].val].dtype);
    if (size < least) least = size;
  }
  const uint32_t lanes = (uint32_t)(64 / least), most = heavy ? 16 : 32;
  return lanes > most ? most : lanes;
}

static bool wants_members(const ccn__kloopb *q) {
  for (uint32_t i = 0; i < q->l->reds.n; i++)
    if (q->l->reds.at[i].form == CCN__KRED_MEMBER) return true;
  for (uint32_t i = 0; i < q->l->vals.n; i++)
    if (q->l->vals.at[i].map.member) return true;
  return false;
}

static void make_members(ccn__kloopb *q) {
  ccn__kbuild *b = q->b;
  const ccn__members *ms = b->in->bundle[q->shape.bundle_id];
  const int64_t **table = CCN__NEWN(b->a, const int64_t *, b->world);
  int64_t *start = CCN__NEWN(b->a, int64_t, ms->k + 1u);
  for (uint32_t k = 0; k < ms->k; k++) start[k] = ms->at[k].start;
  start[ms->k] = ms->k ? ms->at[ms->k - 1].start + ms->at[ms->k - 1].elements : 0;
  q->l->form = CCN__KLOOP_MEMBERS;
  q->l->par = ccn__kern_number(b);
  (void)ccn__kern_number(b);
  for (uint32_t r = 0; r < b->world; r++) {
    table[r] = start;
    *ccn__kern_number_at(b, q->l->par, r) = ms->k;
    *ccn__kern_number_at(b, q->l->par + 1, r) = q->box[r].start[0];
  }
  q->l->table = ccn__kern_ptr_table(b, table);
}

bool ccn__kloop_end(ccn__kloopb *q, ccn__id node) {
  ccn__kbuild *b = q->b;
  ccn__kloop *l = q->l;
  dims d = {.n = 0};
  if (!merge_dims(q, &d, node)) return false;
  fix_maps(q, &d);
  l->depth = (uint8_t)d.n;
  l->form = d.n > 1 ? CCN__KLOOP_ROWS : CCN__KLOOP_FLAT;
  for (uint32_t r = 0; r < b->world; r++) l->row[r] = d.extent[(d.n - 1) * b->world + r];
  if (l->form == CCN__KLOOP_ROWS) {
    l->par = ccn__kern_number(b);
    for (uint32_t i = 1; i < d.n; i++) (void)ccn__kern_number(b);
    for (uint32_t i = 0; i < d.n; i++)
      for (uint32_t r = 0; r < b->world; r++)
        *ccn__kern_number_at(b, l->par + i, r) = d.extent[i * b->world + r];
  }
  if (wants_members(q)) make_members(q);
  l->lanes = lanes_of(b->k, l);
  *CCN__PUSH(b->a, &b->k->steps) = (ccn__kstep){.kind = CCN__KSTEP_LOOP, .index = b->k->loops.n - 1};
  return true;
}
