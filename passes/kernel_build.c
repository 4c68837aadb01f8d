/* kernel_build.c: from nodes of a graph to a kernel: which loop computes what, and where ranks meet.
 *
 * Each node gets a stage: the loops of a stage read only what stages before it left in memory. A reduction, a
 * payment and what is stored to peers can be read one stage later; everything else is computed where it is
 * wanted. A value that a later stage wants is kept in memory, scalars are computed again. Roots of one stage
 * with the same box share a loop. It never looks at names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"
#include "kernel_impl.h"

#include <stdio.h>

bool ccn__kern_refuse(ccn__kbuild *b, ccn__id at, const char *fmt, ...) {
  char text[200];
  va_list ap;
  if (b->in->why) return false;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  const ccn__node *n = &b->g->nodes.at[at];
  b->in->at = at;
  b->in->why = ccn__arena_printf(b->a, "`%s` %s", ccn__node_name(n), text);
  return false;
}

static const ccn__node *node_of(const ccn__kbuild *b, ccn__id i) { return &b->g->nodes.at[i]; }
static const ccn__shape *shape_of(const ccn__kbuild *b, ccn__id i) { return &b->in->shape[i]; }
static uint32_t over_of(const ccn__node *n) { return (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0); }

/* ---- numbers, slots, pointers -------------------------------------------------------------------------- */

uint32_t ccn__kern_number(ccn__kbuild *b) {
  const uint32_t number = b->numbers.n / b->world;
  for (uint32_t r = 0; r < b->world; r++) *CCN__PUSH(b->a, &b->numbers) = 0;
  return number;
}

static uint32_t new_slot(ccn__kbuild *b, ccn__kslot_kind kind, ccn__dtype t, ccn__id node) {
  *CCN__PUSH(b->a, &b->k->slots) = (ccn__kslot){.kind = (uint8_t)kind,
                                                .dtype = (uint8_t)t,
                                                .node = node,
                                                .update = CCN__NO_ID,
                                                .bytes = CCN__NEWN(b->a, int64_t, b->world)};
  return b->k->slots.n - 1;
}

/* A slot for a value of this shape. */
static uint32_t value_slot(ccn__kbuild *b, ccn__kslot_kind kind, const ccn__shape *h, ccn__id node) {
  const uint32_t s = new_slot(b, kind, (ccn__dtype)h->dtype, node);
  ccn__box box;
  for (uint32_t r = 0; r < b->world; r++) {
    if (!ccn__rank_has(b->mesh, r, h->place)) continue;
    ccn__box_of(b->mesh, r, h->rank, h->dim, h->place, &box);
    b->k->slots.at[s].bytes[r] = box.elements * (int64_t)ccn__dtype_size((ccn__dtype)h->dtype);
  }
  return s;
}

uint32_t ccn__kern_slot_in(ccn__kbuild *b, ccn__id node) {
  for (uint32_t s = 0; s < b->k->slots.n; s++) {
    const ccn__kslot *x = &b->k->slots.at[s];
    if (x->kind == CCN__KSLOT_IN && x->node == node && !x->parts) return s;
  }
  return value_slot(b, CCN__KSLOT_IN, shape_of(b, node), node);
}

static uint32_t add_ptr(ccn__kbuild *b, uint32_t slot) {
  *CCN__PUSH(b->a, &b->k->ptrs) = (ccn__kptr){.slot = slot, .rank = CCN__NEWN(b->a, uint8_t, b->world)};
  return b->k->ptrs.n - 1;
}

static bool is_self(const ccn__kbuild *b, const ccn__kptr *p) {
  for (uint32_t r = 0; r < b->world; r++)
    if (p->rank[r] != r) return false;
  return true;
}

uint32_t ccn__kern_ptr_self(ccn__kbuild *b, uint32_t slot) {
  for (uint32_t i = 0; i < b->k->ptrs.n; i++)
    if (b->k->ptrs.at[i].slot == slot && is_self(b, &b->k->ptrs.at[i])) return i;
  const uint32_t p = add_ptr(b, slot);
  for (uint32_t r = 0; r < b->world; r++) b->k->ptrs.at[p].rank[r] = (uint8_t)r;
  return p;
}

uint32_t ccn__kern_ptr_peers(ccn__kbuild *b, uint32_t slot, uint32_t over, uint32_t *out_n) {
  const uint32_t first = b->k->ptrs.n;
  ccn__ranks group;
  ccn__collective_group(b->mesh, over, 0, &group);
  *out_n = group.n;
  for (uint32_t i = 0; i < group.n; i++) (void)add_ptr(b, slot);
  for (uint32_t r = 0; r < b->world; r++) {
    ccn__collective_group(b->mesh, over, r, &group);
    for (uint32_t i = 0; i < group.n; i++) b->k->ptrs.at[first + i].rank[r] = (uint8_t)group.at[i];
  }
  b->k->slots.at[slot].peers = true;
  b->k->over |= (uint8_t)over;
  return first;
}

uint32_t ccn__kern_ptr_table(ccn__kbuild *b, const int64_t *const *table) {
  const uint32_t p = add_ptr(b, CCN__NO_SLOT);
  b->k->ptrs.at[p].table = CCN__NEWN(b->a, const int64_t *, b->world);
  for (uint32_t r = 0; r < b->world; r++) b->k->ptrs.at[p].table[r] = table[r];
  return p;
}

/* ---- literals ------------------------------------------------------------------------------------------ */

static bool plain(const ccn__lit *l) {
  return l->kind == CCN__LIT_INT || l->kind == CCN__LIT_FLOAT || l->kind == CCN__LIT_BOOL;
}

bool ccn__kern_literal(ccn__kbuild *b, ccn__id node, ccn__kval *out) {
  const ccn__node *n = node_of(b, node);
  const ccn__attr *a = ccn__attr_find(n->attrs, CCN__A_VALUE);
  const ccn__dtype t = (ccn__dtype)n->type->dtype;
  ccn__number v = {.i = 0};
  uint64_t bits = 0;
  *out = (ccn__kval){.kind = CCN__KV_CONST, .dtype = (uint8_t)t};
  if (n->op == CCN__OP_RANK) {
    const uint32_t axis = (uint32_t)ccn__attr_int(n->attrs, CCN__A_AXIS, 0);
    out->kind = CCN__KV_NUMBER;
    out->par = ccn__kern_number(b);
    for (uint32_t r = 0; r < b->world; r++)
      ccn__store_i64(t, ccn__kern_number_at(b, out->par, r), ccn__mesh_coord(b->mesh, r, axis));
    return true;
  }
  if (!a || ccn__lit_eval(a->lit, b->in->sym, &v) || v.unknown)
    return ccn__kern_refuse(b, node, "has a number that is not known");
  ccn__number_store(v, t, &bits);
  if (plain(a->lit)) {
    out->imm = bits;
    return true;
  }
  out->kind = CCN__KV_NUMBER; /* depends on sizes: the code does not */
  out->par = ccn__kern_number(b);
  for (uint32_t r = 0; r < b->world; r++) *ccn__kern_number_at(b, out->par, r) = (int64_t)bits;
  return true;
}

/* ---- roles --------------------------------------------------------------------------------------------- */

static ccn__krole role_of(const ccn__node *n) {
  switch (n->op) {
  case CCN__OP_CONST:
  case CCN__OP_FULL:
  case CCN__OP_RANK: return CCN__ROLE_LITERAL;
  case CCN__OP_PARAM: return CCN__ROLE_OUTSIDE;
  case CCN__OP_SLICE:
  case CCN__OP_TO_LOCAL:
  case CCN__OP_UPDATE: /* its operand stands for it */
  case CCN__OP_ENTER: return CCN__ROLE_SAME;
  case CCN__OP_ALLREDUCE: return CCN__ROLE_PAY;
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_REDUCE: return CCN__ROLE_PEERS;
  case CCN__OP_ALLGATHER:
  case CCN__OP_GATHER:
  case CCN__OP_BROADCAST:
  case CCN__OP_SHIFT:
  case CCN__OP_PERMUTE: return CCN__ROLE_MOVE;
  default: break;
  }
  switch (ccn__op_table[n->op].kind) {
  case CCN__KIND_REDUCE: return CCN__ROLE_REDUCE;
  case CCN__KIND_ELEM: return n->op == CCN__OP_ONE_HOT ? CCN__ROLE_OUTSIDE : CCN__ROLE_ELEM;
  case CCN__KIND_RANDOM:
  case CCN__KIND_MAKER: return CCN__ROLE_ELEM;
  default: return CCN__ROLE_OUTSIDE;
  }
}

/* Axes over which what a node owes lies in parts, as the interpreter has it. */
static uint8_t owed_axes(const ccn__kbuild *b, const ccn__node *n) {
  if (!n->nin) return 0;
  const ccn__id x = n->in[n->op == CCN__OP_UPDATE];
  const uint8_t owed = b->owed[x];
  const uint32_t over = over_of(n);
  const ccn__shape *h = shape_of(b, x);
  const ccn__attr *dims = ccn__attr_find(n->attrs, CCN__A_DIMS);
  uint32_t reduced = dims ? 0 : ~0u;
  uint8_t cut = 0;
  switch ((ccn__op)n->op) {
  case CCN__OP_UPDATE:
  case CCN__OP_ENTER:
  case CCN__OP_RESHAPE:
  case CCN__OP_TRANSPOSE:
  case CCN__OP_INDEX: return owed;
  case CCN__OP_ALLREDUCE:
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_REDUCE: return owed && !(over & ~(uint32_t)owed) ? (uint8_t)(owed & ~over) : 0;
  default: break;
  }
  if (ccn__op_table[n->op].kind != CCN__KIND_REDUCE) return 0;
  for (uint32_t i = 0; dims && i < dims->n; i++) reduced |= 1u << dims->ints[i];
  for (uint32_t a = 0; a < b->mesh->naxes; a++)
    if (h->place[a].kind == CCN__SLICED && (reduced >> h->place[a].dim & 1)) cut |= (uint8_t)(1u << a);
  return cut;
}

static void find_roles(ccn__kbuild *b) {
  const uint32_t n = b->g->nodes.n;
  b->role = CCN__NEWN(b->a, uint8_t, n);
  b->real = CCN__NEWN(b->a, ccn__id, n);
  b->owed = CCN__NEWN(b->a, uint8_t, n);
  for (uint32_t i = 0; i < b->in->nnodes; i++)
    b->role[b->in->node[i]] = (uint8_t)role_of(node_of(b, b->in->node[i]));
  for (ccn__id i = 0; i < n; i++) {
    const ccn__node *x = node_of(b, i);
    if (x->op == CCN__OP_CONST) b->role[i] = CCN__ROLE_LITERAL;
    b->real[i] = x->op == CCN__OP_UPDATE && b->role[i] ? b->real[x->in[1]] : i;
    b->owed[i] = owed_axes(b, x);
  }
  for (uint32_t i = 0; i < b->in->nnodes; i++) {
    const ccn__node *x = node_of(b, b->in->node[i]);
    if (!b->role[b->in->node[i]] && x->op != CCN__OP_PARAM) {
      (void)ccn__kern_refuse(b, b->in->node[i], "(%s) is not part of kernels", ccn__op_table[x->op].name);
      return;
    }
  }
}

/* Whether an all-reduce merges parts rather than one value a rank. */
static bool pays_parts(const ccn__kbuild *b, const ccn__node *n) {
  const uint8_t owed = b->owed[n->in[0]];
  return owed && !(over_of(n) & ~(uint32_t)owed);
}

/* ---- stages -------------------------------------------------------------------------------------------- */

/* Behind which stage the node's value is in memory; -1: before all. */
static int32_t behind(const ccn__kbuild *b, ccn__id i) {
  return b->role[i] == CCN__ROLE_OUTSIDE || b->role[i] == CCN__ROLE_LITERAL ? -1 : b->stage[i];
}

static void find_stages(ccn__kbuild *b) {
  b->stage = CCN__NEWN(b->a, int32_t, b->g->nodes.n);
  b->avail = CCN__NEWN(b->a, int32_t, b->g->nodes.n);
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    const ccn__node *n = node_of(b, i);
    int32_t avail = 0;
    for (uint32_t o = 0; o < n->nin; o++) {
      const ccn__id x = b->real[n->in[o]];
      if (b->avail[x] > avail) avail = b->avail[x];
    }
    b->stage[i] = b->avail[i] = avail;
    switch ((ccn__krole)b->role[i]) {
    case CCN__ROLE_PAY:
      b->stage[i] = behind(b, b->real[n->in[0]]);
      b->avail[i] = b->stage[i] + 1;
      break;
    case CCN__ROLE_PEERS: b->stage[i] = b->avail[i] = behind(b, b->real[n->in[0]]) + 1; break;
    case CCN__ROLE_REDUCE:
    case CCN__ROLE_MOVE: b->avail[i] = avail + 1; break;
    default: break;
    }
    if (b->real[i] == i && b->stage[i] + 1 > b->stages) b->stages = b->stage[i] + 1;
  }
}

static bool computed(const ccn__kbuild *b, ccn__id i) { /* wherever it is wanted */
  return b->role[i] == CCN__ROLE_ELEM || b->role[i] == CCN__ROLE_SAME || b->role[i] == CCN__ROLE_PEERS;
}

/* What a later stage or a peer reads stays in memory; a scalar is computed again. */
static void find_kept(ccn__kbuild *b) {
  b->kept = CCN__NEWN(b->a, bool, b->g->nodes.n);
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    const ccn__node *n = node_of(b, i);
    if (b->real[i] != i) continue;
    for (uint32_t o = 0; o < n->nin; o++) {
      const ccn__id x = b->real[n->in[o]];
      if (!computed(b, x)) continue;
      const bool by_memory = b->role[i] == CCN__ROLE_PAY || b->role[i] == CCN__ROLE_PEERS;
      if (by_memory || (b->stage[x] < b->stage[i] && shape_of(b, x)->rank)) b->kept[x] = true;
    }
  }
}

/* ---- what the outside wants ---------------------------------------------------------------------------- */

static void want(ccn__kbuild *b, ccn__id node, ccn__id update) {
  const ccn__id value = b->real[node];
  const uint32_t s = value_slot(b, CCN__KSLOT_OUT, shape_of(b, node), node);
  b->k->slots.at[s].update = update;
  *CCN__PUSH(b->a, &b->outs) = (ccn__kout){value, node, s};
}

static void find_outs(ccn__kbuild *b) {
  const uint32_t n = b->g->nodes.n;
  bool *in = CCN__NEWN(b->a, bool, n), *wanted = CCN__NEWN(b->a, bool, n);
  for (uint32_t k = 0; k < b->in->nnodes; k++) in[b->in->node[k]] = true;
  for (ccn__id i = 0; i < n; i++)
    for (uint32_t o = 0; o < node_of(b, i)->nin && !in[i]; o++) wanted[node_of(b, i)->in[o]] = true;
  for (uint32_t o = 0; o < b->g->noutputs; o++) wanted[b->g->outputs[o]] = true;
  for (uint32_t r = 0; r < b->g->regions.n; r++)
    for (uint32_t y = 0; y < b->g->regions.at[r].nyield; y++) wanted[b->g->regions.at[r].yield[y]] = true;
  for (uint32_t k = 0; k < b->in->nnodes && ccn__kern_fine(b); k++) {
    const ccn__id i = b->in->node[k];
    const ccn__node *x = node_of(b, i);
    if (x->op == CCN__OP_UPDATE) {
      if (wanted[i] && b->owed[i]) (void)ccn__kern_refuse(b, i, "is owed in parts, and read outside");
      want(b, i, i);
    } else if (wanted[i] && b->role[i] != CCN__ROLE_OUTSIDE) {
      if (b->role[i] == CCN__ROLE_REDUCE && b->owed[i]) continue; /* its parts go out */
      if (b->owed[i]) (void)ccn__kern_refuse(b, i, "is owed in parts, and read outside");
      want(b, i, CCN__NO_ID);
    }
  }
  /* parts that somebody outside pays */
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    if (b->role[i] == CCN__ROLE_REDUCE && b->owed[i] && wanted[i]) {
      b->parts[i] = new_slot(b, CCN__KSLOT_OUT, ccn__dtype_acc((ccn__dtype)shape_of(b, i)->dtype), i);
      b->k->slots.at[b->parts[i]].parts = true;
    }
  }
}

/* A slot in which later stages find it: one of those that go out, or scratch. */
static void place_kept(ccn__kbuild *b) {
  for (uint32_t k = 0; k < b->outs.n; k++)
    if (b->slot[b->outs.at[k].value] == CCN__NO_SLOT && b->role[b->outs.at[k].value] != CCN__ROLE_OUTSIDE &&
        b->role[b->outs.at[k].value] != CCN__ROLE_LITERAL)
      b->slot[b->outs.at[k].value] = b->outs.at[k].slot;
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    const uint8_t role = b->role[i];
    const bool memory = role == CCN__ROLE_REDUCE || role == CCN__ROLE_PAY || role == CCN__ROLE_MOVE;
    if (b->real[i] == i && (b->kept[i] || memory) && b->slot[i] == CCN__NO_SLOT)
      b->slot[i] = value_slot(b, CCN__KSLOT_SCRATCH, shape_of(b, i), CCN__NO_ID);
  }
}

/* ---- trees --------------------------------------------------------------------------------------------- */

/* Runs [a, b) of a reduction over all of x's elements, or over those of each member; false if a rank's
 * piece is not one run. */
static bool find_runs(ccn__kbuild *b, const ccn__node *n, ccn__ktree *t) {
  const ccn__shape *h = shape_of(b, n->in[0]);
  const bool per = h->bundle == CCN__BUNDLE_TENSORS && ccn__attr_int(n->attrs, CCN__A_PER, 0);
  const ccn__members *ms = per ? b->in->bundle[h->bundle_id] : NULL;
  t->members = per ? ms->k : 1;
  int64_t *run = CCN__NEWN(b->a, int64_t, 2 * (size_t)b->world * t->members + 1);
  int64_t *extent = CCN__NEWN(b->a, int64_t, t->members + 1), all = 1;
  for (uint32_t d = 0; d < h->rank; d++) all *= h->dim[d];
  for (uint32_t m = 0; m < t->members; m++) extent[m] = per ? ms->at[m].elements : all;
  t->run = run;
  t->extent = extent;
  for (uint32_t r = 0; r < b->world; r++) {
    ccn__box box;
    if (!ccn__rank_has(b->mesh, r, h->place)) continue;
    ccn__box_of(b->mesh, r, h->rank, h->dim, h->place, &box);
    int64_t start = 0;
    bool whole = false;
    for (uint32_t d = 0; d < h->rank; d++) {
      start = start * h->dim[d] + box.start[d];
      if (whole && box.extent[d] != h->dim[d] && box.elements) return false;
      whole |= box.extent[d] != 1;
    }
    for (uint32_t m = 0; m < t->members; m++) {
      const int64_t first = per ? ms->at[m].start : 0, count = extent[m], end = start + box.elements;
      int64_t lo = start > first ? start - first : 0, hi = end - first < count ? end - first : count;
      if (hi < lo) hi = lo = 0;
      run[(r * t->members + m) * 2] = lo;
      run[(r * t->members + m) * 2 + 1] = hi;
    }
  }
  return true;
}

static uint32_t add_tree(ccn__kbuild *b, ccn__id reduce) {
  const ccn__node *n = node_of(b, reduce);
  ccn__ktree t = {.op = (uint8_t)ccn__op_redop((ccn__op)n->op), .t = shape_of(b, n->in[0])->dtype};
  if (!find_runs(b, n, &t))
    return ccn__kern_refuse(b, reduce, "reduces pieces that are no runs"), CCN__NO_SLOT;
  for (uint32_t m = 0; m < t.members; m++)
    if (t.extent[m] == 0 &&
        (n->op == CCN__OP_MAX || n->op == CCN__OP_MIN || b->parts[reduce] != CCN__NO_SLOT))
      return ccn__kern_refuse(b, reduce, "reduces nothing"), CCN__NO_SLOT;
  *CCN__PUSH(b->a, &b->k->trees) = t;
  return b->k->trees.n - 1;
}

static void size_parts(ccn__kbuild *b, uint32_t slot, const ccn__ktree *t) {
  ccn__tree_node node[CCN__TREE_MAX];
  const int64_t item = (int64_t)ccn__dtype_size(ccn__dtype_acc((ccn__dtype)t->t));
  for (uint32_t r = 0; r < b->world; r++)
    for (uint32_t m = 0; m < t->members; m++) {
      const int64_t *run = &t->run[(r * t->members + m) * 2];
      b->k->slots.at[slot].bytes[r] += item * ccn__tree_cover((uint64_t)run[0], (uint64_t)run[1], node);
    }
}

/* The reduction over dims whose parts x is, under its other names. */
static ccn__id origin(const ccn__kbuild *b, ccn__id x) {
  for (;;) {
    const ccn__node *n = node_of(b, x);
    if (n->op == CCN__OP_UPDATE) x = n->in[1];
    else if (n->op == CCN__OP_ENTER) x = n->in[0];
    else return ccn__op_table[n->op].kind == CCN__KIND_REDUCE ? x : CCN__NO_ID;
  }
}

/* ---- loops --------------------------------------------------------------------------------------------- */

/* The box over which a root is computed. */
static const ccn__shape *space(const ccn__kbuild *b, ccn__id i) {
  const bool operand = b->role[i] == CCN__ROLE_REDUCE || b->role[i] == CCN__ROLE_MOVE;
  return shape_of(b, operand ? node_of(b, i)->in[0] : i);
}

static bool same_space(const ccn__kbuild *b, const ccn__shape *x, const ccn__shape *y) {
  if (x->rank != y->rank || x->bundle != y->bundle || (x->bundle && x->bundle_id != y->bundle_id))
    return false;
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
  for (uint32_t r = 0; r < b->world; r++) {
    ccn__box p, q;
    if (ccn__rank_has(b->mesh, r, x->place) != ccn__rank_has(b->mesh, r, y->place)) return false;
    ccn__box_of(b->mesh, r, x->rank, x->dim, x->place, &p);
    ccn__box_of(b->mesh, r, y->rank, y->dim, y->place, &q);
    for (uint32_t d = 0; d < x->rank; d++)
      if (p.start[d] != q.start[d] || p.extent[d] != q.extent[d]) return false;
  }
  return true;
}

/* Reductions along rows make the innermost dim of their loop: only their own kind joins it. */
static uint32_t row_of(const ccn__kbuild *b, ccn__id i) {
  const ccn__node *n = node_of(b, i);
  if (b->role[i] != CCN__ROLE_REDUCE || !shape_of(b, n->in[0])->rank) return 0;
  const ccn__attr *dims = ccn__attr_find(n->attrs, CCN__A_DIMS);
  const uint32_t rank = shape_of(b, n->in[0])->rank;
  return !dims || dims->n == rank ? 0 : dims->n;
}

static bool whole_reduction(const ccn__kbuild *b, ccn__id i) {
  return b->role[i] == CCN__ROLE_REDUCE && !row_of(b, i);
}

static bool per_member(const ccn__kbuild *b, ccn__id i) {
  const ccn__node *n = node_of(b, i);
  return shape_of(b, n->in[0])->bundle == CCN__BUNDLE_TENSORS && ccn__attr_int(n->attrs, CCN__A_PER, 0);
}

/* Whether the loop of root i runs on one rank of its group only, as a broadcast's does. */
static bool from_one(const ccn__kbuild *b, ccn__id i) { return node_of(b, i)->op == CCN__OP_BROADCAST; }

/* Whether root j can stand in the loop of which root i decides the form. */
static bool shares(const ccn__kbuild *b, ccn__id i, ccn__id j) {
  if (i == j) return true;
  if (!same_space(b, space(b, i), space(b, j))) return false;
  if (from_one(b, i) || from_one(b, j)) return false;
  if (b->role[j] != CCN__ROLE_REDUCE) return true;
  return b->role[i] == CCN__ROLE_REDUCE && row_of(b, i) == row_of(b, j) &&
         (row_of(b, i) || per_member(b, i) == per_member(b, j));
}

static uint8_t *move_target(ccn__kbuild *b, ccn__id i, bool *maybe) {
  const ccn__node *n = node_of(b, i);
  uint8_t *to = CCN__NEWN(b->a, uint8_t, b->world);
  for (uint32_t r = 0; r < b->world; r++) to[r] = CCN__KERN_NOBODY;
  for (uint32_t r = 0; r < b->world; r++) {
    if (n->op == CCN__OP_GATHER) {
      to[r] = (uint8_t)ccn__collective_root(b->mesh, over_of(n), r, ccn__attr_int(n->attrs, CCN__A_ROOT, 0));
      continue;
    }
    const uint32_t from = ccn__collective_sender(b->mesh, n, r);
    if (from >= b->world) continue;
    if (to[from] != CCN__KERN_NOBODY) {
      (void)ccn__kern_refuse(b, i, "sends one value to several ranks");
      return to;
    }
    to[from] = (uint8_t)r;
  }
  for (uint32_t r = 0; r < b->world; r++) *maybe |= to[r] == CCN__KERN_NOBODY;
  return to;
}

static void store_fill(ccn__kbuild *b, ccn__id i, uint32_t slot) {
  const ccn__node *n = node_of(b, i);
  uint8_t *only = CCN__NEWN(b->a, uint8_t, b->world);
  bool some = false;
  ccn__number v = {.i = 0};
  ccn__kstep s = {.kind = CCN__KSTEP_FILL, .dst = slot, .only = only, .t = shape_of(b, i)->dtype};
  const ccn__attr *fill = ccn__attr_find(n->attrs, CCN__A_FILL);
  for (uint32_t r = 0; r < b->world; r++) {
    only[r] =
      ccn__collective_sender(b->mesh, n, r) >= b->world && ccn__rank_has(b->mesh, r, shape_of(b, i)->place);
    some |= only[r];
  }
  if (!some) return;
  if (!fill || ccn__lit_eval(fill->lit, b->in->sym, &v) || v.unknown) {
    (void)ccn__kern_refuse(b, i, "has a fill that is not known");
    return;
  }
  ccn__number_store(v, (ccn__dtype)s.t, &s.fill);
  *CCN__PUSH(b->a, &b->k->steps) = s;
}

static void store_root(ccn__kloopb *q, ccn__id i, uint32_t slot) {
  ccn__kbuild *b = q->b;
  const ccn__node *n = node_of(b, i);
  const ccn__shape *h = shape_of(b, i);
  if (b->role[i] != CCN__ROLE_MOVE) {
    (void)ccn__kloop_store(q, ccn__kloop_value(q, i), slot, h, 0, NULL, i);
    return;
  }
  const uint32_t v = ccn__kloop_value(q, n->in[0]);
  if (n->op == CCN__OP_ALLGATHER || n->op == CCN__OP_BROADCAST) {
    (void)ccn__kloop_store(q, v, slot, h, over_of(n), NULL, i);
    return;
  }
  bool maybe = false;
  uint8_t *target = move_target(b, i, &maybe);
  b->k->over |= (uint8_t)over_of(n);
  (void)ccn__kloop_store(q, v, slot, h, 0, target, i);
  if (n->op != CCN__OP_GATHER) store_fill(b, i, slot);
}

/* What stage s puts into memory, in order of its nodes. */
static uint32_t find_roots(ccn__kbuild *b, int32_t stage, ccn__id *out) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    if (b->real[i] != i || b->stage[i] != stage || b->role[i] == CCN__ROLE_PAY) continue;
    const bool memory = b->role[i] == CCN__ROLE_REDUCE || b->role[i] == CCN__ROLE_MOVE;
    bool goes_out = false;
    for (uint32_t o = 0; o < b->outs.n; o++) goes_out |= b->outs.at[o].value == i;
    if (memory || b->kept[i] || goes_out) out[n++] = i;
  }
  for (uint32_t o = 0; o < b->outs.n && stage == 0; o++) { /* stored as it came from outside */
    const ccn__id i = b->outs.at[o].value;
    const bool first = b->role[i] == CCN__ROLE_OUTSIDE || b->role[i] == CCN__ROLE_LITERAL;
    bool there = false;
    for (uint32_t k = 0; k < n; k++) there |= out[k] == i;
    if (first && !there && n < b->in->nnodes) out[n++] = i;
  }
  return n;
}

/* All places where a root's value goes. */
static void store_all(ccn__kloopb *q, ccn__id i) {
  ccn__kbuild *b = q->b;
  if (b->role[i] == CCN__ROLE_REDUCE) {
    (void)ccn__kloop_reduce(q, i);
    return;
  }
  bool done = false;
  for (uint32_t o = 0; o < b->outs.n && ccn__kern_fine(b); o++) {
    if (b->outs.at[o].value != i) continue;
    store_root(q, i, b->outs.at[o].slot);
    done |= b->outs.at[o].slot == b->slot[i];
  }
  if (!done && b->slot[i] != CCN__NO_SLOT && ccn__kern_fine(b)) store_root(q, i, b->slot[i]);
}

static void make_loops(ccn__kbuild *b, int32_t stage) {
  ccn__id *root = CCN__NEWN(b->a, ccn__id, b->in->nnodes + 1);
  bool *done = CCN__NEWN(b->a, bool, b->in->nnodes + 1);
  const uint32_t n = find_roots(b, stage, root);
  for (uint32_t i = 0; i < n && ccn__kern_fine(b); i++) {
    ccn__kloopb q;
    if (done[i]) continue;
    ccn__id lead = root[i]; /* a reduction decides over the form of the loop */
    for (uint32_t j = i; j < n && b->role[lead] != CCN__ROLE_REDUCE; j++)
      if (!done[j] && b->role[root[j]] == CCN__ROLE_REDUCE && shares(b, root[j], lead)) lead = root[j];
    if (!ccn__kloop_begin(b, &q, stage, space(b, lead), lead)) return;
    if (row_of(b, lead)) q.fence = q.shape.rank - row_of(b, lead);
    for (uint32_t j = i; j < n && ccn__kern_fine(b); j++) {
      if (done[j] || !shares(b, lead, root[j])) continue;
      if (b->role[root[j]] == CCN__ROLE_REDUCE && q.l->reds.n + 2 > CCN__KERN_REDS)
        continue; /* the next loop's */
      store_all(&q, root[j]);
      done[j] = true;
    }
    if (ccn__kern_fine(b)) (void)ccn__kloop_end(&q, lead);
  }
}

/* ---- steps between stages ------------------------------------------------------------------------------ */

/* Reductions of the stage: the nodes that loops left become parts. */
static void finish_trees(ccn__kbuild *b, int32_t stage) {
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    if (b->role[i] != CCN__ROLE_REDUCE || b->stage[i] != stage || b->tree[i] == CCN__NO_SLOT) continue;
    uint32_t src = CCN__NO_SLOT;
    for (uint32_t s = 0; s < b->k->slots.n; s++)
      if (b->k->slots.at[s].kind == CCN__KSLOT_SCRATCH && b->k->slots.at[s].node == i) src = s;
    *CCN__PUSH(b->a, &b->k->steps) =
      (ccn__kstep){.kind = CCN__KSTEP_FINISH, .index = b->tree[i], .src = src, .dst = b->parts[i]};
  }
}

static void pay(ccn__kbuild *b, ccn__kstep s) { *CCN__PUSH(b->a, &b->k->steps) = s; }

/* Folded values of the stage's reductions: what a rank has alone. */
static void fold_trees(ccn__kbuild *b, int32_t stage) {
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    if (b->role[i] != CCN__ROLE_REDUCE || b->stage[i] != stage || b->tree[i] == CCN__NO_SLOT) continue;
    const ccn__ktree *t = &b->k->trees.at[b->tree[i]];
    pay(b, (ccn__kstep){.kind = CCN__KSTEP_PAY,
                        .index = b->tree[i],
                        .src = b->parts[i],
                        .dst = b->slot[i],
                        .op = t->op,
                        .t = t->t});
    for (uint32_t o = 0; o < b->outs.n; o++)
      if (b->outs.at[o].value == i && b->outs.at[o].slot != b->slot[i])
        pay(b, (ccn__kstep){.kind = CCN__KSTEP_PAY,
                            .index = b->tree[i],
                            .src = b->parts[i],
                            .dst = b->outs.at[o].slot,
                            .op = t->op,
                            .t = t->t});
  }
}

/* Where a payment reads, and which tree it merges. */
static bool pay_source(ccn__kbuild *b, ccn__id i, ccn__kstep *s) {
  const ccn__node *n = node_of(b, i);
  const ccn__id x = b->real[n->in[0]];
  s->index = CCN__NO_SLOT;
  if (!pays_parts(b, n)) {
    if (b->role[x] == CCN__ROLE_OUTSIDE && b->owed[x]) return ccn__kern_refuse(b, i, "needs a folded value");
    if (b->role[x] == CCN__ROLE_LITERAL) return ccn__kern_refuse(b, i, "reduces a number");
    s->src = b->role[x] == CCN__ROLE_OUTSIDE ? ccn__kern_slot_in(b, x) : b->slot[x];
    return true;
  }
  if (b->owed[i]) return ccn__kern_refuse(b, i, "pays only a part of what is owed");
  const ccn__id from = origin(b, n->in[0]);
  if (from == CCN__NO_ID || shape_of(b, from)->rank > (shape_of(b, from)->bundle ? 1 : 0))
    return ccn__kern_refuse(b, i, "pays a tensor that is owed in parts");
  if (b->role[x] == CCN__ROLE_OUTSIDE) { /* the parts come from outside */
    s->index = add_tree(b, from);
    if (s->index == CCN__NO_SLOT) return false;
    s->src = new_slot(b, CCN__KSLOT_IN, ccn__dtype_acc((ccn__dtype)shape_of(b, x)->dtype), n->in[0]);
    b->k->slots.at[s->src].parts = true;
    size_parts(b, s->src, &b->k->trees.at[s->index]);
    return true;
  }
  s->index = b->tree[from];
  s->src = b->parts[from];
  return s->index != CCN__NO_SLOT || ccn__kern_refuse(b, i, "pays a tensor that is owed in parts");
}

static void make_pays(ccn__kbuild *b, int32_t stage) {
  for (uint32_t k = 0; k < b->in->nnodes && ccn__kern_fine(b); k++) {
    const ccn__id i = b->in->node[k];
    const ccn__node *n = node_of(b, i);
    if (b->role[i] != CCN__ROLE_PAY || b->stage[i] != stage) continue;
    const uint32_t over = over_of(n);
    const ccn__redop op = (ccn__redop)ccn__attr_int(n->attrs, CCN__A_RED, 0);
    ccn__kstep s = {.kind = CCN__KSTEP_PAY, .over = (uint8_t)over, .op = (uint8_t)op};
    s.average = ccn__redop_table[op].averages;
    s.t = shape_of(b, i)->dtype;
    s.order = ccn__attr_int(n->attrs, CCN__A_ORDER, CCN__ORDER_RANK);
    if (!pay_source(b, i, &s)) return;
    if (b->role[b->real[n->in[0]]] == CCN__ROLE_PAY) /* of what was just paid */
      pay(b, (ccn__kstep){.kind = CCN__KSTEP_SYNC, .over = (uint8_t)over});
    b->k->slots.at[s.src].peers = true;
    b->k->over |= (uint8_t)over;
    for (uint32_t o = 0; o < b->outs.n; o++)
      if (b->outs.at[o].value == i) {
        s.dst = b->outs.at[o].slot;
        pay(b, s);
      }
    if (b->slot[i] != CCN__NO_SLOT && b->k->slots.at[b->slot[i]].kind == CCN__KSLOT_SCRATCH) {
      s.dst = b->slot[i];
      pay(b, s);
    }
  }
}

/* Ranks meet behind a stage if something of it, or of before, is read from another rank later. */
static uint8_t meets(const ccn__kbuild *b, int32_t stage) {
  uint32_t over = 0;
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    const ccn__node *n = node_of(b, i);
    const uint8_t role = b->role[i];
    if (role == CCN__ROLE_PAY && b->stage[i] == stage && stage >= 0) over |= over_of(n);
    if (role == CCN__ROLE_PEERS && b->stage[i] == stage + 1 && stage >= 0) over |= over_of(n);
    if (role == CCN__ROLE_MOVE && b->stage[i] == stage) over |= over_of(n);
  }
  return (uint8_t)over;
}

static bool last_stage_that_reads(const ccn__kbuild *b, int32_t stage) {
  for (uint32_t k = 0; k < b->in->nnodes; k++) {
    const ccn__id i = b->in->node[k];
    if (b->real[i] == i && b->stage[i] > stage) return false;
    if (b->role[i] == CCN__ROLE_PAY && b->stage[i] == stage) return false;
  }
  return true;
}

static void make_steps(ccn__kbuild *b) {
  make_pays(b, -1);
  for (int32_t s = 0; s < b->stages && ccn__kern_fine(b); s++) {
    make_loops(b, s);
    if (!ccn__kern_fine(b)) return;
    finish_trees(b, s);
    fold_trees(b, s); /* of the rank's own parts; peers may read what comes of it */
    if (!last_stage_that_reads(b, s)) pay(b, (ccn__kstep){.kind = CCN__KSTEP_SYNC, .over = meets(b, s)});
    make_pays(b, s);
  }
}

/* ---- a kernel ------------------------------------------------------------------------------------------ */

static void transpose_numbers(ccn__kbuild *b) {
  ccn__kern *k = b->k;
  k->nnumbers = b->numbers.n / b->world;
  k->numbers = CCN__NEWN(b->a, int64_t, (size_t)k->nnumbers * b->world + 1);
  for (uint32_t i = 0; i < k->nnumbers; i++)
    for (uint32_t r = 0; r < b->world; r++) k->numbers[r * k->nnumbers + i] = *ccn__kern_number_at(b, i, r);
}

static uint32_t *none(ccn__kbuild *b) {
  uint32_t *x = CCN__NEWN(b->a, uint32_t, b->g->nodes.n);
  for (uint32_t i = 0; i < b->g->nodes.n; i++) x[i] = CCN__NO_SLOT;
  return x;
}

/* Trees of whole reductions, and the memory of their nodes. */
static void make_trees(ccn__kbuild *b) {
  for (uint32_t k = 0; k < b->in->nnodes && ccn__kern_fine(b); k++) {
    const ccn__id i = b->in->node[k];
    if (!whole_reduction(b, i)) {
      if (b->role[i] == CCN__ROLE_REDUCE && b->owed[i])
        (void)ccn__kern_refuse(b, i, "reduces a dim that is cut, and keeps others");
      continue;
    }
    b->tree[i] = add_tree(b, i);
    if (b->tree[i] == CCN__NO_SLOT) return;
    if (b->parts[i] == CCN__NO_SLOT) {
      const ccn__dtype acc = ccn__dtype_acc((ccn__dtype)shape_of(b, i)->dtype);
      b->parts[i] = new_slot(b, CCN__KSLOT_SCRATCH, acc, CCN__NO_ID);
      b->k->slots.at[b->parts[i]].parts = true;
    }
    size_parts(b, b->parts[i], &b->k->trees.at[b->tree[i]]);
  }
}

ccn__kern *ccn__kern_build(ccn__kern_in *in) {
  ccn__kbuild b = {.in = in, .a = in->arena, .g = in->g, .mesh = &in->g->mesh};
  in->why = NULL;
  in->at = CCN__NO_ID;
  b.world = ccn__mesh_world(b.mesh);
  b.k = CCN__NEW(b.a, ccn__kern);
  b.k->arena = b.a;
  b.k->g = in->g;
  b.k->mesh = in->g->mesh;
  b.k->world = b.world;
  b.slot = none(&b);
  b.parts = none(&b);
  b.tree = none(&b);
  find_roles(&b);
  if (!ccn__kern_fine(&b)) return NULL;
  find_stages(&b);
  find_kept(&b);
  find_outs(&b);
  if (ccn__kern_fine(&b)) place_kept(&b);
  if (ccn__kern_fine(&b)) make_trees(&b);
  if (ccn__kern_fine(&b)) make_steps(&b);
  if (!ccn__kern_fine(&b)) return NULL;
  transpose_numbers(&b);
  return b.k;
}
