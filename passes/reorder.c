/* reorder.c
 * Purpose: ops behind a gather run on slices; only values still wanted whole are gathered.
 * Needs:   g is an all-gather or a broadcast (CCN0402); ops are closed: no op that depends on g, and on which one of
 *          them depends, is left out (CCN0403); each is elementwise along g's dim, random, a cast, a reduction, a
 *          shift or an update (CCN0402). Elementwise along a dim is what the type rules give a slice for a slice: also
 *          a matmul by rows or a transpose. What adds along the cut is a reduction, or gives the same in parts.
 * Gives:   the moved ops, retyped by inference on slices; what only they read and could itself stand among them joins
 *          (0.9 * m, norm(p)); the cross-rank part of a reduction as a visible all-reduce; one gather for each
 *          live-out. Of an update the expression moves; readers among the ops take its slice; the store comes behind
 *          the gather. g stays for its other readers. Ops of a kernel stay in it; what joins goes into the kernel that
 *          alone reads it, the all-reduce of a reduction into the reduction's; a store leaves it for its gather.
 * Keeps:   every bit: elementwise ops do not see where they run, sums are one tree for every cut, random numbers are
 *          numbered by global position.
 * Example: (c, gs) = reorder(after(ag), ag)
 * Source:  CoCoNeT (ASPLOS'22), section 3; checks of its artifact are wrong or missing, so the rule is our own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

typedef struct cut { /* how a value is wanted: whole, or with the placement of g's input over g's axes */
  bool sliced;
  uint16_t dim;
  const ccn__dim *unit;
} cut;

typedef struct reorder {
  ccn__pass *s;
  const ccn__graph *g;
  ccn__id gather;
  uint64_t over;          /* g's axes */
  bool *in;               /* ops and what joined */
  bool *depends;          /* on the gather */
  const ccn__type **type; /* of the moved version, for ops that depend on the gather */
  cut *want;              /* of ops that joined */
  int64_t *kernel;        /* fused: in which kernel; 0 = none */
  uint32_t *tensors;      /* bundles with the same number here have the same tensors; UINT32_MAX: scalars */
  ccn__id *slice;         /* the slice made of a value from outside, for one cut */
  cut *slice_cut;
  ccn__id *moved; /* new node on slices */
  ccn__id *whole; /* new gathered or replicated value of a moved op */
} reorder;

static bool sliced_over(const reorder *r, const ccn__type *t, cut *out) {
  for (uint32_t a = 0; a < t->naxes; a++)
    if ((r->over >> a & 1) && t->place[a].kind == CCN__SLICED) {
      *out = (cut){true, t->place[a].dim, t->place[a].unit};
      return true;
    }
  return false;
}

/* Reads of its operands what stands at its own place, or reduces them: what only such ops read can be sliced for them. */
static bool by_place(const ccn__node *n) {
  switch ((ccn__op_kind)ccn__op_table[n->op].kind) {
  case CCN__KIND_ELEM:
  case CCN__KIND_RANDOM:
  case CCN__KIND_REDUCE:
  case CCN__KIND_EFFECT: return true;
  default: return n->op == CCN__OP_SHIFT;
  }
}

/* What adds along the cut keeps its bits if the ranks' parts are parts of its sum: subtrees of a reduction, the one
 * element that take finds, integers. */
static bool has_parts(const ccn__node *n) {
  return ccn__op_table[n->op].kind == CCN__KIND_REDUCE || n->op == CCN__OP_TAKE ||
         !ccn__dtype_is_float((ccn__dtype)n->type->dtype);
}

/* A later axis cuts the dim that g's axis cuts: its pieces would be pieces of pieces, and no longer its own. */
static bool nested_cut(const reorder *r, const ccn__type *t) {
  for (uint32_t a = 0; a < t->naxes; a++)
    for (uint32_t b = a + 1; b < t->naxes; b++)
      if ((r->over >> a & 1) && !(r->over >> b & 1) && t->place[a].kind == CCN__SLICED &&
          t->place[b].kind == CCN__SLICED && t->place[a].dim == t->place[b].dim)
        return true;
  return false;
}

/* ---- what moves ---- */

static bool check_kinds(reorder *r) {
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    const ccn__node *n = &r->g->nodes.at[i];
    if (!r->in[i] || ccn__op_table[n->op].kind != CCN__KIND_STRUCT) continue;
    return ccn__refuse(r->s, 402, i, "this op", "%s is a `%s`, which does not run on slices",
                       ccn__node_label(r->g, i), ccn__op_table[n->op].name),
           false;
  }
  return true;
}

static bool check_closed(reorder *r, const ccn__ids *ops) {
  bool *before = ccn__before(r->s, ops);
  for (ccn__id i = r->gather + 1; i < r->g->nodes.n; i++)
    if (r->depends[i] && before[i] && !r->in[i] && !CCN__FORCED)
      return ccn__refuse(r->s, 403, i, "left out",
                         "the ops are not closed: %s lies between the gather and one of them",
                         ccn__node_label(r->g, i)),
             false;
  return true;
}

/* Readers of each node that stand outside, and whether it has readers at all. */
static void outside_readers(const reorder *r, bool *outside, bool *read) {
  const ccn__graph *g = r->g;
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) {
      read[g->nodes.at[i].in[k]] = true;
      if (!r->in[i]) outside[g->nodes.at[i].in[k]] = true;
    }
  for (uint32_t k = 0; k < g->noutputs; k++) outside[g->outputs[k]] = read[g->outputs[k]] = true;
  for (uint32_t q = 1; q < g->regions.n; q++)
    for (uint32_t k = 0; k < g->regions.at[q].nyield; k++) outside[g->regions.at[q].yield[k]] = true;
}

static bool whole_type(const ccn__type *t) {
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind == CCN__LOCAL || t->place[a].kind == CCN__PARTIAL) return false;
  return true;
}

/* One walk from the end: an op joins when all its readers have, and their kernel if they are all in one. */
static void join(reorder *r) {
  const ccn__graph *g = r->g;
  uint32_t region = g->nodes.at[r->gather].region;
  uint32_t *readers = CCN__NEWN(r->s->arena, uint32_t, g->nodes.n + 1),
           *inside = CCN__NEWN(r->s->arena, uint32_t, g->nodes.n + 1);
  int64_t *kernel = CCN__NEWN(r->s->arena, int64_t, g->nodes.n + 1); /* the readers'; -1 = none yet */
  for (ccn__id i = 0; i < g->nodes.n; i++) kernel[i] = -1;
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) readers[g->nodes.at[i].in[k]]++;
  for (uint32_t k = 0; k < g->noutputs; k++) readers[g->outputs[k]]++;
  for (uint32_t q = 1; q < g->regions.n; q++)
    for (uint32_t k = 0; k < g->regions.at[q].nyield; k++) readers[g->regions.at[q].yield[k]]++;
  for (ccn__id i = g->nodes.n; i-- > 0;) {
    const ccn__node *n = &g->nodes.at[i];
    bool could = by_place(n) && n->op != CCN__OP_UPDATE && n->op != CCN__OP_SHIFT && n->region == region &&
                 whole_type(n->type);
    r->kernel[i] = ccn__attr_int(n->attrs, CCN__A_FUSE, 0);
    if (!r->in[i] && !r->depends[i] && i != r->gather && could && readers[i] && inside[i] == readers[i]) {
      r->in[i] = true;
      if (!r->kernel[i]) r->kernel[i] = kernel[i];
    }
    for (uint32_t k = 0; k < n->nin; k++) {
      ccn__id x = n->in[k];
      kernel[x] = kernel[x] < 0 || kernel[x] == r->kernel[i] ? r->kernel[i] : 0;
      if (r->in[i]) inside[x]++;
    }
  }
}

/* ---- types of what depends on the gather ---- */

/* What op n owes only because it runs on slices is paid at once; what it owes anyway it goes on owing. */
static const ccn__type *paid_type(const reorder *r, const ccn__node *n, ccn__type *t, uint64_t *mask) {
  *mask = 0;
  for (uint32_t a = 0; a < t->naxes; a++)
    if ((r->over >> a & 1) && t->place[a].kind == CCN__PARTIAL && n->type->place[a].kind != CCN__PARTIAL) {
      *mask |= UINT64_C(1) << a;
      t->place[a] = (ccn__place){.kind = CCN__REPLICATED};
    }
  return t;
}

static bool local_over(const reorder *r, const ccn__type *t) {
  for (uint32_t a = 0; a < t->naxes; a++)
    if ((r->over >> a & 1) && t->place[a].kind == CCN__LOCAL) return true;
  return false;
}

/* Before a broadcast of a local value an op runs on what every rank has of it; only the root's result goes on. It
 * must not read what differs between ranks anyway: then its result would be wanted on every rank, with the root's
 * operand. Random numbers of a local value are each rank's own. */
static bool only_the_root_counts(reorder *r, ccn__id i) {
  const ccn__graph *g = r->g;
  const ccn__node *n = &g->nodes.at[i];
  if (g->nodes.at[r->gather].op != CCN__OP_BROADCAST || !local_over(r, r->type[r->gather])) return true;
  bool own = ccn__op_table[n->op].kind == CCN__KIND_RANDOM;
  for (uint32_t k = 0; k < n->nin; k++)
    own |= !r->type[n->in[k]] && local_over(r, g->nodes.at[n->in[k]].type);
  if (CCN__FORCED) return true;
  if (own)
    (void)ccn__refuse(r->s, 402, i, "this op",
                      "%s cannot move before the broadcast: it gives each rank a value of its own",
                      ccn__node_label(g, i));
  return !own;
}

static bool types(reorder *r) {
  const ccn__graph *g = r->g;
  for (ccn__id i = r->gather + 1; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    if (!r->in[i] || !r->depends[i]) continue;
    if (!only_the_root_counts(r, i)) return false;
    const ccn__type **in = CCN__NEWN(r->s->arena, const ccn__type *, n->nin + 1);
    for (uint32_t k = 0; k < n->nin; k++)
      in[k] = r->type[n->in[k]] ? r->type[n->in[k]] : g->nodes.at[n->in[k]].type;
    if (n->op == CCN__OP_UPDATE) {
      r->type[i] = in[1];
      continue;
    }
    ccn__type *t = CCN__NEW(r->s->arena, ccn__type);
    ccn__type_error err;
    uint64_t mask;
    ccn__infer_in q = {
      .g = r->s->g, .op = (ccn__op)n->op, .in = in, .nin = n->nin, .attrs = n->attrs, .want = n->type};
    if (!ccn__infer(&q, t, &err))
      return ccn__refuse(r->s, 402, i, "this op", "%s cannot run on slices (CCN%04u: %s)",
                         ccn__node_label(g, i), err.code, err.text ? err.text : "its operands do not fit"),
             false;
    r->type[i] = paid_type(r, n, t, &mask);
    const char *why = mask && !has_parts(n)       ? "adds along the cut"
                      : nested_cut(r, r->type[i]) ? "is cut along the same dim by a later axis"
                                                  : NULL;
    if (why && !CCN__FORCED)
      return ccn__refuse(r->s, 402, i, "this op", "%s cannot run on slices: it %s", ccn__node_label(g, i),
                         why),
             false;
  }
  return true;
}

/* ---- how what joined is wanted ---- */

/* Bundles that meet in an op have equal tensors, which is checked at the call. */
static void find_equal_bundles(reorder *r) {
  const ccn__graph *g = r->g;
  uint32_t *same = r->tensors = CCN__NEWN(r->s->arena, uint32_t, g->nbundles + 1);
  for (uint32_t b = 0; b < g->nbundles; b++) same[b] = UINT32_MAX;
  for (uint32_t i = 0; i < g->params.n; i++) {
    const ccn__type *t = g->nodes.at[g->params.at[i].node].type;
    if (t->bundle == CCN__BUNDLE_TENSORS) same[t->bundle_id] = t->bundle_id;
  }
  for (uint32_t i = 0; i < g->constraints.n; i++) {
    const ccn__constraint *c = &g->constraints.at[i];
    if (c->kind != CCN__NEED_BUNDLES || same[c->bx] == UINT32_MAX || same[c->by] == UINT32_MAX) continue;
    const uint32_t from = same[c->by], to = same[c->bx];
    for (uint32_t b = 0; b < g->nbundles; b++)
      if (same[b] == from) same[b] = to;
  }
}

static bool same_tensors(const reorder *r, const ccn__type *x, const ccn__type *y) {
  return x->bundle == CCN__BUNDLE_TENSORS && y->bundle == CCN__BUNDLE_TENSORS &&
         r->tensors[x->bundle_id] == r->tensors[y->bundle_id];
}

static bool same_shape(const reorder *r, const ccn__type *x, const ccn__type *y) {
  return same_tensors(r, x, y) || ccn__shape_equal(x, y);
}

static cut aligned(const reorder *r, const ccn__type *from, const ccn__type *to, cut c) {
  if (!c.sliced) return c;
  if (same_tensors(r, from, to)) return c;
  int d = (int)c.dim - ((int)to->rank - (int)from->rank);
  bool same = d >= 0 && d < from->rank && ccn__dim_equal(from->dim[d], to->dim[c.dim]);
  if (from->bundle == CCN__BUNDLE_SCALARS && to->bundle == CCN__BUNDLE_TENSORS) same = false;
  return same ? (cut){true, (uint16_t)d, c.unit} : (cut){false, 0, NULL};
}

static bool same_cut(cut x, cut y) {
  ccn__place a = {.kind = CCN__SLICED, .dim = x.dim, .unit = x.unit},
             b = {.kind = CCN__SLICED, .dim = y.dim, .unit = y.unit};
  return x.sliced == y.sliced && ccn__place_equal(&a, &b);
}

static void wants(reorder *r) {
  const ccn__graph *g = r->g;
  cut of_gather = {false, 0, NULL};
  bool *asked = CCN__NEWN(r->s->arena, bool, g->nodes.n + 1);
  const ccn__type *gt = g->nodes.at[r->gather].type;
  (void)sliced_over(r, g->nodes.at[g->nodes.at[r->gather].in[0]].type, &of_gather);
  for (ccn__id i = g->nodes.n; i-- > 0;) {
    const ccn__node *n = &g->nodes.at[i];
    cut c = {false, 0, NULL};
    if (!r->in[i]) continue;
    if (r->depends[i]) (void)(r->type[i] && sliced_over(r, r->type[i], &c));
    else c = r->want[i];
    bool reduces = ccn__op_table[n->op].kind == CCN__KIND_REDUCE;
    for (uint32_t k = 0; k < n->nin; k++) {
      ccn__id j = n->in[k];
      const ccn__type *jt = g->nodes.at[j].type;
      if (!r->in[j] || r->depends[j] || !by_place(&g->nodes.at[j])) continue;
      cut w = {false, 0, NULL};
      if (reduces && same_shape(r, jt, gt)) w = of_gather; /* norm(p), p shaped like what is gathered */
      else if (!reduces && c.sliced && by_place(n)) w = aligned(r, jt, n->type, c);
      if (asked[j] && !same_cut(w, r->want[j])) w = (cut){false, 0, NULL}; /* two wishes: whole serves both */
      asked[j] = true;
      r->want[j] = w;
    }
  }
}

/* ---- the new graph ---- */

static ccn__attrs in_kernel(const reorder *r, ccn__attrs as, int64_t kernel) {
  if (!kernel) return ccn__attr_find(as, CCN__A_FUSE) ? ccn__attrs_without(r->s->arena, as, CCN__A_FUSE) : as;
  return ccn__attrs_with(r->s->arena, as, (ccn__attr){.key = CCN__A_FUSE, .i = kernel});
}

static int64_t kernel_of(const reorder *r, ccn__id new_node) {
  return ccn__attr_int(r->s->edit.to->nodes.at[new_node].attrs, CCN__A_FUSE, 0);
}

static ccn__id pay(reorder *r, ccn__id x, const ccn__node *like) {
  ccn__type t = *r->s->edit.to->nodes.at[x].type;
  ccn__type_error err;
  uint64_t mask;
  uint8_t op = 0;
  for (uint32_t a = 0; a < t.naxes; a++)
    if ((r->over >> a & 1) && t.place[a].kind == CCN__PARTIAL) op = t.place[a].op;
  (void)paid_type(r, like, &t, &mask);
  if (!mask) return x;
  ccn__attr at[3] = {{.key = CCN__A_RED, .i = op},
                     {.key = CCN__A_OVER, .i = (int64_t)mask},
                     {.key = CCN__A_ORDER, .i = mask & (mask - 1) ? CCN__ORDER_AXIS : CCN__ORDER_RANK}};
  ccn__edit_name(r->s, x, like, "part");
  ccn__attrs attrs = in_kernel(r, (ccn__attrs){at, 3}, kernel_of(r, x));
  ccn__id y = ccn__edit_add(r->s, CCN__OP_ALLREDUCE, &x, 1, attrs, NULL, like, &err);
  if (y != CCN__NO_ID) ccn__edit_name(r->s, y, like, ccn__redop_name((ccn__redop)op));
  return y;
}

/* A value from outside, as a joined op wants it. */
static ccn__id outside_value(reorder *r, ccn__id j, cut c, const ccn__node *like) {
  ccn__id x = r->s->edit.map[j];
  const ccn__node *n = &r->g->nodes.at[j];
  ccn__type_error err;
  cut have;
  if (!c.sliced || n->op == CCN__OP_CONST || sliced_over(r, n->type, &have)) return x;
  if (r->slice[j] != CCN__NO_ID && same_cut(r->slice_cut[j], c)) return r->slice[j];
  ccn__attr at[3] = {{.key = CCN__A_OVER, .i = (int64_t)r->over},
                     {.key = CCN__A_DIM, .i = c.dim},
                     {.key = CCN__A_UNIT, .dim = c.unit}};
  ccn__id y = ccn__edit_add(r->s, CCN__OP_SLICE, &x, 1, (ccn__attrs){at, c.unit ? 3 : 2}, NULL, like, &err);
  if (y == CCN__NO_ID) return x;
  ccn__edit_name(r->s, y, n, "slice");
  r->slice[j] = y;
  r->slice_cut[j] = c;
  return y;
}

static ccn__id operand(reorder *r, const ccn__node *n, ccn__id i, uint32_t k) {
  ccn__id j = n->in[k];
  if (j == r->gather) return r->s->edit.map[r->g->nodes.at[j].in[0]];
  if (r->in[j]) return r->moved[j];
  if (r->depends[i] || ccn__op_table[n->op].kind == CCN__KIND_REDUCE) {
    if (ccn__op_table[n->op].kind != CCN__KIND_REDUCE || r->depends[i]) return r->s->edit.map[j];
    cut c = {false, 0, NULL};
    if (same_shape(r, r->g->nodes.at[j].type, r->g->nodes.at[r->gather].type))
      (void)sliced_over(r, r->g->nodes.at[r->g->nodes.at[r->gather].in[0]].type, &c);
    return outside_value(r, j, c, n);
  }
  return outside_value(r, j, aligned(r, r->g->nodes.at[j].type, n->type, r->want[i]), n);
}

/* Shape and dtype of a moved op never change (a bundle may be known by another that has the same tensors). */
static bool same_placement(const reorder *r, ccn__id moved, const ccn__node *n) {
  const ccn__type *t = r->s->edit.to->nodes.at[moved].type;
  for (uint32_t a = 0; a < t->naxes; a++)
    if (!ccn__place_equal(&t->place[a], &n->type->place[a])) return false;
  return true;
}

static ccn__id gathered(reorder *r, ccn__id i, ccn__ids *gathers) {
  const ccn__node *g = &r->g->nodes.at[r->gather], *n = &r->g->nodes.at[i];
  ccn__type_error err;
  ccn__id x = r->moved[i];
  if (r->whole[i] != CCN__NO_ID) return r->whole[i];
  if (ccn__type_equal(r->s->edit.to->nodes.at[x].type, n->type))
    return r->whole[i] = x; /* as it was anyway */
  ccn__id y = ccn__edit_add(r->s, (ccn__op)g->op, &x, 1, g->attrs, NULL, n, &err);
  if (y == CCN__NO_ID || !same_placement(r, y, n)) return CCN__NO_ID;
  ccn__edit_name(r->s, y, n, g->op == CCN__OP_BROADCAST ? "broadcast" : "ag");
  *CCN__PUSH(r->s->arena, gathers) = y;
  return r->whole[i] = y;
}

/* The moved version of op i; then, if it is wanted whole, its gather; an update's store comes last. */
static bool emit(reorder *r, ccn__id i, bool live_out, ccn__ids *ops, ccn__ids *gathers) {
  ccn__pass *s = r->s;
  const ccn__node *n = &r->g->nodes.at[i];
  ccn__type_error err = {.code = 0};
  if (n->op == CCN__OP_UPDATE) {
    ccn__id e = n->in[1], value = r->in[e] ? gathered(r, e, gathers) : s->edit.map[e];
    if (e == r->gather) { /* the store of the gathered value itself: g stays for it */
      ccn__edit_keep(s, i);
      r->moved[i] = s->edit.map[r->g->nodes.at[e].in[0]];
      *CCN__PUSH(s->arena, ops) = s->edit.map[i];
      return true;
    }
    if (value == CCN__NO_ID)
      return ccn__refuse(s, 402, i, "this update", "what %s stores cannot be gathered",
                         ccn__node_label(r->g, i)),
             false;
    ccn__id in[2] = {s->edit.map[n->in[0]], value};
    ccn__attrs attrs = in_kernel(r, n->attrs, kernel_of(r, value) == r->kernel[i] ? r->kernel[i] : 0);
    ccn__id u = ccn__edit_add(s, CCN__OP_UPDATE, in, 2, attrs, NULL, n, &err);
    if (u == CCN__NO_ID)
      return ccn__refuse(s, err.code, i, "this update", "its value cannot be stored"), false;
    s->edit.to->nodes.at[u].name = n->name;
    s->edit.to->nodes.at[u].autoname = n->autoname;
    s->edit.map[i] = u;
    r->moved[i] = r->in[e] ? r->moved[e] : value;
    *CCN__PUSH(s->arena, ops) = u;
    return true;
  }
  ccn__id *in = CCN__NEWN(s->arena, ccn__id, n->nin + 1);
  uint32_t before = s->edit.to->nodes.n;
  for (uint32_t k = 0; k < n->nin; k++) in[k] = operand(r, n, i, k);
  ccn__attrs attrs = in_kernel(r, n->attrs, r->kernel[i]);
  ccn__id x = ccn__edit_add(s, (ccn__op)n->op, in, n->nin, attrs, n->type, n, &err);
  if (x == CCN__NO_ID)
    return ccn__refuse(s, 402, i, "this op", "%s cannot run on slices (CCN%04u)", ccn__node_label(r->g, i),
                       err.code),
           false;
  s->edit.to->nodes.at[x].name = n->name;
  s->edit.to->nodes.at[x].autoname = n->autoname;
  ccn__id paid = pay(r, x, n);
  if (paid == CCN__NO_ID) return false;
  for (ccn__id k = before; k < s->edit.to->nodes.n; k++)
    *CCN__PUSH(s->arena, ops) = k; /* slices and all-reduces too */
  r->moved[i] = s->edit.map[i] = paid;
  if (!live_out) return true;
  ccn__id w = gathered(r, i, gathers);
  if (w == CCN__NO_ID)
    return ccn__refuse(s, 402, i, "this op", "%s cannot be gathered", ccn__node_label(r->g, i)), false;
  s->edit.map[i] = w;
  return true;
}

static bool rebuild(reorder *r, ccn__ids *ops, ccn__ids *gathers) {
  const ccn__graph *g = r->g;
  bool *outside = CCN__NEWN(r->s->arena, bool, g->nodes.n + 1),
       *read = CCN__NEWN(r->s->arena, bool, g->nodes.n + 1);
  outside_readers(r, outside, read);
  for (ccn__id i = 0; i < g->nodes.n;
       i++) /* an update stores the whole of a value that is the gather itself */
    if (r->in[i] && g->nodes.at[i].op == CCN__OP_UPDATE && g->nodes.at[i].in[1] == r->gather)
      outside[r->gather] = true;
  ccn__edit_begin(r->s);
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (r->in[i]) {
      if (!emit(r, i, outside[i], ops, gathers)) return false;
    } else if (i != r->gather || outside[i]) {
      ccn__edit_keep(r->s, i);
    }
  }
  r->s->g = ccn__edit_end(r->s);
  return true;
}

/* The verifier's part behind reorder: of what moved only stores stand behind a gather. */
static bool gathers_come_last(const reorder *r, const ccn__ids *ops, const ccn__ids *gathers) {
  ccn__ids all = {0};
  ccn__id stays = r->s->edit.map[r->gather];
  for (uint32_t i = 0; i < gathers->n; i++) *CCN__PUSH(r->s->arena, &all) = gathers->at[i];
  if (stays != CCN__NO_ID) *CCN__PUSH(r->s->arena, &all) = stays;
  bool *after = ccn__after(r->s, &all);
  for (uint32_t i = 0; i < ops->n; i++)
    if (after[ops->at[i]] && r->s->g->nodes.at[ops->at[i]].op != CCN__OP_UPDATE)
      return ccn__refuse(r->s, 499, CCN__NO_ID, "", "%s moved, and still stands behind a gather",
                         ccn__node_label(r->s->g, ops->at[i])),
             false;
  return true;
}

bool ccn__pass_reorder(ccn__pass *s, const ccn__ids *ops, ccn__id gather, ccn__ids *out_ops,
                       ccn__ids *out_gathers) {
  const ccn__node *g = &s->g->nodes.at[gather];
  uint32_t n = s->g->nodes.n;
  if (g->op != CCN__OP_ALLGATHER && g->op != CCN__OP_BROADCAST)
    return ccn__refuse(s, 402, gather, "this",
                       "%s is a `%s`, and ops move only before an all-gather or a broadcast",
                       ccn__node_label(s->g, gather), ccn__op_table[g->op].name),
           false;
  ccn__ids one = {0};
  *CCN__PUSH(s->arena, &one) = gather;
  reorder r = {.s = s,
               .g = s->g,
               .gather = gather,
               .over = (uint64_t)ccn__attr_int(g->attrs, CCN__A_OVER, 0),
               .in = ccn__in_set(s, ops)};
  r.depends = ccn__after(s, &one);
  r.type = CCN__NEWN(s->arena, const ccn__type *, n + 1);
  r.want = CCN__NEWN(s->arena, cut, n + 1);
  r.kernel = CCN__NEWN(s->arena, int64_t, n + 1);
  r.slice = CCN__NEWN(s->arena, ccn__id, n + 1);
  r.slice_cut = CCN__NEWN(s->arena, cut, n + 1);
  r.moved = CCN__NEWN(s->arena, ccn__id, n + 1);
  r.whole = CCN__NEWN(s->arena, ccn__id, n + 1);
  memset(r.slice, 0xff, n * sizeof(ccn__id));
  memset(r.moved, 0xff, n * sizeof(ccn__id));
  memset(r.whole, 0xff, n * sizeof(ccn__id));
  r.type[gather] = s->g->nodes.at[g->in[0]].type;
  if (r.in[gather])
    return ccn__refuse(s, 402, gather, "the gather",
                       "the gather cannot be among the ops that move before it"),
           false;
  if (!check_closed(&r, ops) || !check_kinds(&r)) return false;
  join(&r);
  find_equal_bundles(&r);
  if (!types(&r)) return false;
  wants(&r);
  return rebuild(&r, out_ops, out_gathers) && gathers_come_last(&r, out_ops, out_gathers);
}
