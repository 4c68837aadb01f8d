/* split.c
 * Purpose: an all-reduce becomes a reduce-scatter and an all-gather, or a reduce and a broadcast.
 * Needs:   x is an all-reduce whose order its halves can have (CCN0402); the dim exists (CCN0309).
 * Gives:   two nodes, x.rs and x.ag (or x.reduce and x.broadcast); readers of x read the second.
 * Changes: nothing else. Keeps: every bit, since both halves add in the all-reduce's order.
 * Example: (rs, ag) = split(gsum)
 * Source:  CoCoNeT (ASPLOS'22), section 3.
 * SPDX-License-Identifier: Apache-2.0 */
#include "order.h"
#include "schedule.h"

static bool halves(ccn__pass *s, ccn__id x, ccn__attrs first, ccn__attrs second, ccn__op op1, ccn__op op2,
                   ccn__ids *a, ccn__ids *b) {
  const ccn__node *n = &s->g->nodes.at[x];
  ccn__type_error err;
  ccn__id in = s->edit.map[n->in[0]];
  ccn__id one = ccn__edit_add(s, op1, &in, 1, first, NULL, n, &err);
  ccn__id two = one == CCN__NO_ID ? one : ccn__edit_add(s, op2, &one, 1, second, NULL, n, &err);
  if (two == CCN__NO_ID)
    return ccn__refuse(s, err.code, x, "this all-reduce", "%s", err.text ? err.text : "it cannot be cut so"),
           false;
  ccn__edit_name(s, one, n, op1 == CCN__OP_REDUCE ? "reduce" : "rs");
  ccn__edit_name(s, two, n, op2 == CCN__OP_BROADCAST ? "broadcast" : "ag");
  *CCN__PUSH(s->arena, a) = one;
  *CCN__PUSH(s->arena, b) = two;
  s->edit.map[x] = two;
  return true;
}

static ccn__attrs only_over(ccn__pass *s, ccn__attrs as) {
  ccn__attr *at = CCN__NEW(s->arena, ccn__attr);
  *at = *ccn__attr_find(as, CCN__A_OVER);
  return (ccn__attrs){at, 1};
}

/* A warning when the dim is shorter than the number of ranks: some then own nothing. */
static void warn_short(ccn__pass *s, const ccn__node *n, int64_t dim) {
  int64_t extent, ranks = 1, over = ccn__attr_int(n->attrs, CCN__A_OVER, 0);
  for (uint32_t a = 0; a < s->g->mesh.naxes; a++)
    if (over >> a & 1) ranks *= s->g->mesh.size[a];
  if (!ccn__dim_is_const(n->type->dim[dim], &extent) || extent >= ranks) return;
  ccn__diag *d = ccn__warning(s->rt->diags, 410, s->span, "short dim",
                              "dim %lld has %lld elements for %lld ranks: some own nothing", (long long)dim,
                              (long long)extent, (long long)ranks);
  ccn__hint(s->rt->diags, d, "split along a longer dim");
}

/* Whether the order of its sums changes from slice to slice, or has a root of its own. A reduce-scatter's slices are
 * others, and a reduce's root is another. */
static bool turns(const ccn__node *n) {
  const ccn__order order = ccn__order_of(ccn__attr_int(n->attrs, CCN__A_ORDER, CCN__ORDER_RANK));
  return order == CCN__ORDER_RING || order == CCN__ORDER_BINARY || order == CCN__ORDER_DOUBLE;
}

bool ccn__pass_split(ccn__pass *s, ccn__id x, int64_t dim, const ccn__dim *unit, bool into_broadcast,
                     int64_t root, ccn__ids *out_a, ccn__ids *out_b) {
  const ccn__node *n = &s->g->nodes.at[x];
  if (n->op != CCN__OP_ALLREDUCE)
    return ccn__refuse(s, 402, x, "this is not an all-reduce",
                       "%s is a `%s`, and only an all-reduce can be split", ccn__node_label(s->g, x),
                       ccn__op_table[n->op].name),
           false;
  if (turns(n))
    return ccn__hint(s->rt->diags,
                     ccn__refuse(s, 402, x, "this all-reduce",
                                 "%s adds in the order of its algorithm, which its halves would not have",
                                 ccn__node_label(s->g, x)),
                     "split first, then choose the algorithms of the halves"),
           false;
  if (dim < 0) dim += n->type->rank;
  if (!into_broadcast && (dim < 0 || dim >= n->type->rank))
    return ccn__refuse(s, n->type->rank ? 309 : 402, x, "this all-reduce", "%s has no dim %lld to be cut in",
                       ccn__node_label(s->g, x), (long long)dim),
           false;
  ccn__edit_begin(s);
  ccn__attrs over = only_over(s, n->attrs), first = n->attrs;
  if (into_broadcast) {
    ccn__attr r = {.key = CCN__A_ROOT, .i = root};
    first = ccn__attrs_with(s->arena, first, r);
    over = ccn__attrs_with(s->arena, over, r);
  } else {
    first = ccn__attrs_with(s->arena, first, (ccn__attr){.key = CCN__A_DIM, .i = dim});
    if (unit) first = ccn__attrs_with(s->arena, first, (ccn__attr){.key = CCN__A_UNIT, .dim = unit});
    warn_short(s, n, dim);
  }
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    if (i != x) ccn__edit_keep(s, i);
    else if (!halves(s, x, first, over, into_broadcast ? CCN__OP_REDUCE : CCN__OP_REDUCESCATTER,
                     into_broadcast ? CCN__OP_BROADCAST : CCN__OP_ALLGATHER, out_a, out_b))
      return false;
  }
  s->g = ccn__edit_end(s);
  return true;
}
