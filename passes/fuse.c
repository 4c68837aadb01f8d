/* fuse.c
 * Purpose: ops become one kernel.
 * Needs:   connected and convex (CCN0404); at most one bulk pair (one reduce-scatter and the all-gathers behind it, or
 *          reduce and broadcast) or one shift, on one axis; any number of all-reduces of scalars; a matmul only as a
 *          producer; an earlier kernel as a whole (CCN0402, CCN0404).
 * Gives:   attribute `fuse`; the stores of updates that are computed or gathered in the kernel come along.
 * Keeps:   every bit: it says only where values live.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

static bool no_member(const ccn__node *n) { return n->op == CCN__OP_PARAM || n->op == CCN__OP_CONST; }

/* In the order of the text: what a store gives may itself be stored. */
static void add_stores(ccn__pass *s, bool *in) {
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    const ccn__node *n = &s->g->nodes.at[i];
    if (n->op == CCN__OP_UPDATE && in[n->in[1]]) in[i] = true;
  }
}

typedef struct kernel { /* nodes i with of[i] = number, in the order of the text */
  ccn__ids members;
  const uint32_t *of;
  uint32_t number;
} kernel;

static bool is_in(const kernel *k, ccn__id i) { return k->of[i] == k->number; }

static uint32_t find(uint32_t *root, uint32_t i) {
  while (root[i] != i) i = root[i] = root[root[i]];
  return i;
}

/* Connected through values that pass between members, or through a tensor that both read. root: room for all nodes. */
static bool check_connected(ccn__pass *s, const kernel *q, uint32_t *root) {
  const ccn__graph *g = s->g;
  for (uint32_t m = 0; m < q->members.n; m++) {
    ccn__id i = q->members.at[m];
    root[i] = i;
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) root[g->nodes.at[i].in[k]] = g->nodes.at[i].in[k];
  }
  for (uint32_t m = 0; m < q->members.n; m++) {
    const ccn__node *n = &g->nodes.at[q->members.at[m]];
    for (uint32_t k = 0; k < n->nin; k++) {
      const ccn__node *x = &g->nodes.at[n->in[k]];
      bool scalar = !is_in(q, n->in[k]) && x->type->rank == 0;
      if (x->op != CCN__OP_CONST && !scalar) root[find(root, q->members.at[m])] = find(root, n->in[k]);
    }
  }
  for (uint32_t m = 1; m < q->members.n; m++) {
    ccn__id first = q->members.at[0], i = q->members.at[m];
    if (find(root, i) != find(root, first))
      return ccn__refuse(s, 404, i, "not connected with the rest",
                         "the ops are not connected: nothing passes between %s and %s",
                         ccn__node_label(g, first), ccn__node_label(g, i)),
             false;
  }
  return true;
}

static bool check_convex(ccn__pass *s, const kernel *q) {
  const ccn__graph *g = s->g;
  bool *after = ccn__after(s, &q->members), *before = ccn__before(s, &q->members);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (!is_in(q, i) && after[i] && before[i])
      return ccn__refuse(s, 404, i, "this would have to run in the middle of it",
                         "the ops are not convex: %s needs one of them and is needed by another",
                         ccn__node_label(g, i)),
             false;
  return true;
}

/* One element: f32, f32[1], or one a tensor of a bundle. */
static bool scalar_value(const ccn__type *t) {
  bool one = true;
  for (uint32_t d = 0; d < t->rank; d++) one &= ccn__dim_is(t->dim[d], 1);
  return one || t->bundle == CCN__BUNDLE_SCALARS;
}

typedef struct bulk {
  ccn__id first, second, shift; /* reduce-scatter or reduce; an all-gather or broadcast; shift */
  int64_t over;
} bulk;

static bool one_axis(ccn__pass *s, bulk *b, ccn__id i) {
  int64_t over = ccn__attr_int(s->g->nodes.at[i].attrs, CCN__A_OVER, 0);
  if (!b->over) b->over = over;
  if (b->over == over && !(over & (over - 1))) return true;
  return ccn__refuse(s, 402, i, "this collective", "a kernel communicates over one axis only"), false;
}

static bool check_collective(ccn__pass *s, bulk *b, ccn__id i) {
  const ccn__node *n = &s->g->nodes.at[i];
  switch ((ccn__op)n->op) {
  case CCN__OP_SLICE:
  case CCN__OP_TO_LOCAL: return true;
  case CCN__OP_ALLREDUCE:
    if (scalar_value(n->type)) return true;
    return ccn__refuse(s, 402, i, "this all-reduce",
                       "an all-reduce of a tensor is a kernel of its own; `split` it first"),
           false;
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_REDUCE:
    if (b->first != CCN__NO_ID)
      return ccn__refuse(s, 402, i, "the second", "a kernel has at most one reduce-scatter"), false;
    b->first = i;
    return one_axis(s, b, i);
  case CCN__OP_ALLGATHER:
  case CCN__OP_BROADCAST:
    if (b->second == CCN__NO_ID) b->second = i;
    return one_axis(s, b, i);
  case CCN__OP_SHIFT:
    if (b->shift != CCN__NO_ID)
      return ccn__refuse(s, 402, i, "the second", "a kernel has at most one shift"), false;
    b->shift = i;
    return one_axis(s, b, i);
  default:
    return ccn__refuse(s, 402, i, "this collective", "`%s` is not part of a kernel",
                       ccn__op_table[n->op].name),
           false;
  }
}

static bool check_member(ccn__pass *s, const kernel *q, bulk *b, ccn__id i) {
  const ccn__node *n = &s->g->nodes.at[i];
  if (n->region != s->g->nodes.at[q->members.at[0]].region)
    return ccn__refuse(s, 404, i, "in another block", "the ops stand in different blocks"), false;
  if (ccn__op_table[n->op].kind == CCN__KIND_STRUCT)
    return ccn__refuse(s, 402, i, "this", "a `%s` is not part of a kernel", ccn__op_table[n->op].name), false;
  bool library = n->op == CCN__OP_MATMUL || n->op == CCN__OP_CONV2D;
  for (uint32_t k = 0; k < n->nin && library; k++)
    if (is_in(q, n->in[k]))
      return ccn__refuse(s, 402, i, "this", "a `%s` can only be the producer of a kernel",
                         ccn__op_table[n->op].name),
             false;
  return ccn__op_table[n->op].kind != CCN__KIND_COLLECTIVE || check_collective(s, b, i);
}

static bool check_members(ccn__pass *s, const kernel *q, bulk *b) {
  for (uint32_t m = 0; m < q->members.n; m++)
    if (!check_member(s, q, b, q->members.at[m])) return false;
  if (b->shift != CCN__NO_ID && (b->first != CCN__NO_ID || b->second != CCN__NO_ID))
    return ccn__refuse(s, 402, b->shift, "this shift", "a kernel has a bulk pair or a shift, not both"),
           false;
  return true;
}

/* "one reduce-scatter and the all-gathers behind it"; of a convex kernel: what is between them is in it. */
static bool check_pair(ccn__pass *s, const kernel *q, const bulk *b, bool *after) {
  if (b->first == CCN__NO_ID || b->second == CCN__NO_ID) return true;
  for (uint32_t m = 0; m < q->members.n; m++) {
    ccn__id i = q->members.at[m];
    const ccn__node *n = &s->g->nodes.at[i];
    after[i] = i == b->first;
    for (uint32_t k = 0; k < n->nin; k++) after[i] |= is_in(q, n->in[k]) && after[n->in[k]];
    if ((n->op == CCN__OP_ALLGATHER || n->op == CCN__OP_BROADCAST) && !after[i])
      return ccn__refuse(s, 402, i, "this gather", "%s does not depend on the kernel's reduce-scatter",
                         ccn__node_label(s->g, i)),
             false;
  }
  return true;
}

/* Kernels made before are taken whole. */
static bool whole_kernels(ccn__pass *s, const kernel *q, int64_t *number) {
  ccn__id member, other;
  bool *in = ccn__in_set(s, &q->members);
  *number = ccn__last_kernel(s->g) + 1;
  if (!ccn__kernel_cut(s, in, &member, &other)) return true;
  return ccn__refuse(s, 404, other, "this is part of it too",
                     "%s is part of a kernel already; name that kernel", ccn__node_label(s->g, member)),
         false;
}

/* A kernel stands in one stage of a chain as a whole. */
static bool check_stage(ccn__pass *s, const kernel *q) {
  for (uint32_t m = 0; m < q->members.n; m++) {
    ccn__attrs first = s->g->nodes.at[q->members.at[0]].attrs, as = s->g->nodes.at[q->members.at[m]].attrs;
    if (ccn__attr_int(as, CCN__A_OVERLAP, 0) != ccn__attr_int(first, CCN__A_OVERLAP, 0) ||
        ccn__attr_int(as, CCN__A_STAGE, 0) != ccn__attr_int(first, CCN__A_STAGE, 0))
      return ccn__refuse(s, 404, q->members.at[m], "this",
                         "only a part of the ops is in one stage of a chain; fuse first"),
             false;
  }
  return true;
}

static bool check_kernel(ccn__pass *s, const kernel *q, bool convex, uint32_t *root, bool *after) {
  bulk b = {CCN__NO_ID, CCN__NO_ID, CCN__NO_ID, 0};
  return check_members(s, q, &b) && (convex || check_convex(s, q)) && check_pair(s, q, &b, after) &&
         check_connected(s, q, root) && check_stage(s, q);
}

static bool refuse_stuck(ccn__pass *s, const kernel *q) {
  if (!check_convex(s, q)) return false;
  return ccn__refuse(s, 404, q->members.at[0], "in this kernel",
                     "the kernel of %s and another one each need what the other computes",
                     ccn__node_label(s->g, q->members.at[0])),
         false;
}

bool ccn__kernels_hold(ccn__pass *s) {
  ccn__units u = ccn__units_of(s, CCN__A_FUSE);
  uint32_t stuck, *root = CCN__NEWN(s->arena, uint32_t, s->g->nodes.n + 1);
  bool *after = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1);
  if (!ccn__units_in_order(s, &u, &stuck)) {
    kernel q = {u.members[stuck], u.of, stuck};
    return refuse_stuck(s, &q);
  }
  for (uint32_t k = 1; k <= u.top; k++) {
    kernel q = {u.members[k], u.of, k};
    if (!check_kernel(s, &q, true, root, after)) return false;
  }
  return true;
}

static kernel kernel_of(ccn__pass *s, const ccn__ids *ops) {
  bool *in = ccn__in_set(s, ops);
  uint32_t *of = CCN__NEWN(s->arena, uint32_t, s->g->nodes.n + 1);
  kernel q = {.of = of, .number = 1};
  for (ccn__id i = 0; i < s->g->nodes.n; i++)
    if (no_member(&s->g->nodes.at[i])) in[i] = false;
  add_stores(s, in);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    if (!in[i]) continue;
    of[i] = 1;
    *CCN__PUSH(s->arena, &q.members) = i;
  }
  return q;
}

bool ccn__pass_fuse(ccn__pass *s, const ccn__ids *ops, ccn__ids *out) {
  const kernel q = kernel_of(s, ops);
  uint32_t *root = CCN__NEWN(s->arena, uint32_t, s->g->nodes.n + 1);
  bool *after = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1);
  int64_t number;
  if (!check_kernel(s, &q, false, root, after) || !whole_kernels(s, &q, &number)) return false;
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    ccn__id y = ccn__edit_keep(s, i);
    if (!is_in(&q, i)) continue;
    ccn__node *n = &s->edit.to->nodes.at[y];
    n->attrs = ccn__attrs_with(s->arena, n->attrs, (ccn__attr){.key = CCN__A_FUSE, .i = number});
    *CCN__PUSH(s->arena, out) = y;
  }
  s->g = ccn__edit_end(s);
  return true;
}
