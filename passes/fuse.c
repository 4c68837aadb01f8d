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

static void add_stores(ccn__pass *s, bool *in) {
  for (uint32_t p = 0; p < s->g->params.n; p++) {
    ccn__id u = s->g->params.at[p].update;
    if (u != CCN__NO_ID && in[s->g->nodes.at[u].in[1]]) in[u] = true;
  }
}

static uint32_t find(uint32_t *root, uint32_t i) {
  while (root[i] != i) i = root[i] = root[root[i]];
  return i;
}

/* Connected through values that pass between members, or through a tensor that both read. */
static bool check_connected(ccn__pass *s, const bool *in) {
  const ccn__graph *g = s->g;
  uint32_t *root = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 1);
  for (ccn__id i = 0; i < g->nodes.n; i++) root[i] = i;
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin && in[i]; k++) {
      const ccn__node *x = &g->nodes.at[g->nodes.at[i].in[k]];
      bool scalar = !in[g->nodes.at[i].in[k]] && x->type->rank == 0;
      if (x->op != CCN__OP_CONST && !scalar) root[find(root, i)] = find(root, g->nodes.at[i].in[k]);
    }
  ccn__id first = CCN__NO_ID;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (!in[i]) continue;
    if (first == CCN__NO_ID) first = i;
    if (find(root, i) != find(root, first))
      return ccn__refuse(s, 404, i, "not connected with the rest",
                         "the ops are not connected: nothing passes between %s and %s",
                         ccn__node_label(g, first), ccn__node_label(g, i)),
             false;
  }
  return true;
}

static bool check_convex(ccn__pass *s, const bool *in) {
  const ccn__graph *g = s->g;
  ccn__ids ids = {0};
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (in[i]) *CCN__PUSH(s->arena, &ids) = i;
  bool *after = ccn__after(s, &ids), *before = ccn__before(s, &ids);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (!in[i] && after[i] && before[i])
      return ccn__refuse(s, 404, i, "this would have to run in the middle of it",
                         "the ops are not convex: %s needs one of them and is needed by another",
                         ccn__node_label(g, i)),
             false;
  return true;
}

static bool scalar_value(const ccn__type *t) { return t->rank == 0 || t->bundle == CCN__BUNDLE_SCALARS; }

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

static bool check_members(ccn__pass *s, const bool *in, bulk *b) {
  const ccn__graph *g = s->g;
  uint32_t region = UINT32_MAX;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    if (!in[i]) continue;
    if (region == UINT32_MAX) region = n->region;
    if (n->region != region)
      return ccn__refuse(s, 404, i, "in another block", "the ops stand in different blocks"), false;
    if (ccn__op_table[n->op].kind == CCN__KIND_STRUCT)
      return ccn__refuse(s, 402, i, "this", "a `%s` is not part of a kernel", ccn__op_table[n->op].name),
             false;
    bool library = n->op == CCN__OP_MATMUL || n->op == CCN__OP_CONV2D;
    for (uint32_t k = 0; k < n->nin && library; k++)
      if (in[n->in[k]])
        return ccn__refuse(s, 402, i, "this", "a `%s` can only be the producer of a kernel",
                           ccn__op_table[n->op].name),
               false;
    if (ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE && !check_collective(s, b, i)) return false;
  }
  if (b->shift != CCN__NO_ID && (b->first != CCN__NO_ID || b->second != CCN__NO_ID))
    return ccn__refuse(s, 402, b->shift, "this shift", "a kernel has a bulk pair or a shift, not both"),
           false;
  return true;
}

/* "one reduce-scatter and the all-gathers behind it" */
static bool check_pair(ccn__pass *s, const bool *in, const bulk *b) {
  if (b->first == CCN__NO_ID || b->second == CCN__NO_ID) return true;
  ccn__ids one = {0};
  *CCN__PUSH(s->arena, &one) = b->first;
  bool *after = ccn__after(s, &one);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    const ccn__node *n = &s->g->nodes.at[i];
    if (in[i] && (n->op == CCN__OP_ALLGATHER || n->op == CCN__OP_BROADCAST) && !after[i])
      return ccn__refuse(s, 402, i, "this gather", "%s does not depend on the kernel's reduce-scatter",
                         ccn__node_label(s->g, i)),
             false;
  }
  return true;
}

/* Kernels made before are taken whole. */
static bool whole_kernels(ccn__pass *s, const bool *in, int64_t *number) {
  const ccn__graph *g = s->g;
  int64_t top = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    int64_t f = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0);
    if (f > top) top = f;
    if (!in[i] || !f) continue;
    for (ccn__id j = 0; j < g->nodes.n; j++)
      if (!in[j] && ccn__attr_int(g->nodes.at[j].attrs, CCN__A_FUSE, 0) == f)
        return ccn__refuse(s, 404, j, "this is part of it too",
                           "%s is part of a kernel already; name that kernel", ccn__node_label(g, i)),
               false;
  }
  *number = top + 1;
  return true;
}

/* A kernel stands in one stage of a chain as a whole. */
static bool check_stage(ccn__pass *s, const bool *in) {
  const ccn__graph *g = s->g;
  int64_t chain = -1, stage = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (!in[i]) continue;
    int64_t c = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0),
            k = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_STAGE, 0);
    if (chain < 0) chain = c, stage = k;
    if (c != chain || k != stage)
      return ccn__refuse(s, 404, i, "this", "only a part of the ops is in one stage of a chain; fuse first"),
             false;
  }
  return true;
}

bool ccn__kernels_hold(ccn__pass *s) {
  const ccn__graph *g = s->g;
  int64_t top = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    int64_t f = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0);
    if (f > top) top = f;
  }
  for (int64_t k = 1; k <= top; k++) {
    bulk b = {CCN__NO_ID, CCN__NO_ID, CCN__NO_ID, 0};
    bool *in = CCN__NEWN(s->arena, bool, g->nodes.n + 1);
    for (ccn__id i = 0; i < g->nodes.n; i++) in[i] = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0) == k;
    if (!check_members(s, in, &b) || !check_pair(s, in, &b) || !check_connected(s, in) ||
        !check_convex(s, in) || !check_stage(s, in))
      return false;
  }
  return true;
}

bool ccn__pass_fuse(ccn__pass *s, const ccn__ids *ops, ccn__ids *out) {
  bool *in = ccn__in_set(s, ops);
  bulk b = {CCN__NO_ID, CCN__NO_ID, CCN__NO_ID, 0};
  int64_t number;
  for (ccn__id i = 0; i < s->g->nodes.n; i++)
    if (no_member(&s->g->nodes.at[i])) in[i] = false;
  add_stores(s, in);
  if (!check_members(s, in, &b) || !check_pair(s, in, &b) || !check_connected(s, in) ||
      !check_convex(s, in) || !whole_kernels(s, in, &number) || !check_stage(s, in))
    return false;
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    ccn__id y = ccn__edit_keep(s, i);
    if (!in[i]) continue;
    ccn__node *n = &s->edit.to->nodes.at[y];
    n->attrs = ccn__attrs_with(s->arena, n->attrs, (ccn__attr){.key = CCN__A_FUSE, .i = number});
    *CCN__PUSH(s->arena, out) = y;
  }
  s->g = ccn__edit_end(s);
  return true;
}
