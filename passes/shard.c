/* shard.c
 * Purpose: a parameter that nobody reads whole is stored sliced: 1/n of the memory.
 * Needs:   every reader of its value at entry and of its update's result is on slices; being returned is a whole read
 *          (CCN0405, with the reader's line). What nobody reads is cut along dim 0.
 * Gives:   the parameters sliced (attribute `shard`; for callers their types do not change); slices of them and the
 *          gathers before their stores go. All of a list at once: one walk, whatever its length.
 * Keeps:   every bit. Source: CoCoNeT's asSlice and dead, as one step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

typedef struct shard {
  ccn__pass *s;
  const ccn__graph *g;
  uint32_t *first;       /* of each node: where its readers begin in `reader`; first[n + 1] ends them */
  ccn__id *reader;       /* in the order of the text */
  const ccn__type **cut; /* of parameters that are cut now, and of their updates; else NULL */
  uint64_t *over;        /* of those parameters: the axes */
} shard;

static void find_readers(shard *r) {
  const ccn__graph *g = r->g;
  uint32_t n = g->nodes.n, edges = 0;
  r->first = CCN__NEWN(r->s->arena, uint32_t, n + 2);
  for (ccn__id i = 0; i < n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) r->first[g->nodes.at[i].in[k]]++, edges++;
  for (ccn__id i = 1; i <= n; i++) r->first[i] += r->first[i - 1];
  r->reader = CCN__NEWN(r->s->arena, ccn__id, edges + 1);
  for (ccn__id i = n; i-- > 0;)
    for (uint32_t k = g->nodes.at[i].nin; k-- > 0;) r->reader[--r->first[g->nodes.at[i].in[k]]] = i;
}

/* Takes over like's placement on the axes `over`. */
static bool take(ccn__type *cut, const ccn__type *like, uint64_t over) {
  for (uint32_t a = 0; a < cut->naxes; a++)
    if (over >> a & 1) cut->place[a] = like->place[a];
  return true;
}

/* An elementwise op beside slices reads only its slice of t. */
static bool take_from_reader(ccn__type *cut, const ccn__node *n, uint64_t *over) {
  if (ccn__op_table[n->op].kind != CCN__KIND_ELEM) return false;
  for (uint32_t a = 0; a < cut->naxes; a++) {
    ccn__place p = n->type->place[a];
    int d = (int)p.dim - ((int)n->type->rank - (int)cut->rank);
    bool bundles = cut->bundle == CCN__BUNDLE_TENSORS && n->type->bundle == CCN__BUNDLE_TENSORS;
    if (p.kind != CCN__SLICED || cut->place[a].kind != CCN__REPLICATED || d < 0) continue;
    if (!bundles && !ccn__dim_equal(n->type->dim[p.dim], cut->dim[d])) continue;
    p.dim = (uint16_t)d;
    cut->place[a] = p;
    *over |= UINT64_C(1) << a;
  }
  return *over != 0;
}

/* How t is cut: as its new value before the gather, as a slice of it, or as an op beside slices reads it. */
static bool find_cut(const shard *r, ccn__id t, ccn__id u, ccn__type *cut, uint64_t *over) {
  const ccn__graph *g = r->g;
  if (u != CCN__NO_ID) {
    const ccn__node *e = &g->nodes.at[g->nodes.at[u].in[1]];
    if (e->op != CCN__OP_ALLGATHER) return false;
    *over = (uint64_t)ccn__attr_int(e->attrs, CCN__A_OVER, 0);
    return take(cut, g->nodes.at[e->in[0]].type, *over);
  }
  for (uint32_t x = r->first[t]; x < r->first[t + 1]; x++) {
    const ccn__node *n = &g->nodes.at[r->reader[x]];
    if (n->op == CCN__OP_SLICE) {
      *over = (uint64_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0);
      return take(cut, n->type, *over);
    }
    if (take_from_reader(cut, n, over)) return true;
  }
  return false;
}

/* Along dim 0 over the first axis that may cut it: of what nobody reads, or by force. */
static bool any_cut(ccn__type *cut, uint64_t *over) {
  for (uint32_t a = 0; a < cut->naxes && cut->rank && !*over; a++) {
    if (cut->place[a].kind != CCN__REPLICATED) continue;
    cut->place[a] = (ccn__place){.kind = CCN__SLICED};
    *over = UINT64_C(1) << a;
  }
  return *over != 0;
}

/* A slice of what is cut just so. */
static bool is_own_slice(const shard *r, const ccn__node *n) {
  return n->op == CCN__OP_SLICE && r->cut[n->in[0]] && ccn__type_equal(n->type, r->cut[n->in[0]]);
}

/* Whether a reader gives the same type now that what it reads is cut. */
static bool reads_slices(const shard *r, const ccn__node *n) {
  if (is_own_slice(r, n)) return true;
  if (ccn__op_table[n->op].kind == CCN__KIND_STRUCT && n->op != CCN__OP_ENTER) return false; /* carried */
  const ccn__type **in = CCN__NEWN(r->s->arena, const ccn__type *, n->nin + 1);
  for (uint32_t k = 0; k < n->nin; k++)
    in[k] = r->cut[n->in[k]] ? r->cut[n->in[k]] : r->g->nodes.at[n->in[k]].type;
  ccn__type out;
  ccn__type_error err;
  ccn__infer_in q = {
    .g = r->s->g, .op = (ccn__op)n->op, .in = in, .nin = n->nin, .attrs = n->attrs, .want = n->type};
  return ccn__infer(&q, &out, &err) && ccn__type_equal(&out, n->type);
}

/* The first reader of x, but for its update u, that reads it whole; CCN__NO_ID if there is none. */
static ccn__id whole_reader(const shard *r, ccn__id x, ccn__id u) {
  for (uint32_t k = r->first[x]; k < r->first[x + 1]; k++)
    if (r->reader[k] != u && !reads_slices(r, &r->g->nodes.at[r->reader[k]])) return r->reader[k];
  return CCN__NO_ID;
}

static bool refuse(shard *r, bool named, ccn__id t, ccn__id reader, const char *why) {
  if (!named) return true; /* left out */
  return ccn__refuse(r->s, 405, reader, "read whole here", "%s cannot be stored sliced: %s",
                     ccn__node_label(r->g, t), why),
         false;
}

/* The first reader of t beside its update, else the update, else t. */
static ccn__id some_reader(const shard *r, ccn__id t, ccn__id u) {
  for (uint32_t k = r->first[t]; k < r->first[t + 1]; k++)
    if (r->reader[k] != u) return r->reader[k];
  return u == CCN__NO_ID ? t : u;
}

/* Whether a gather has no readers but stores that take slices now. */
static bool gather_goes(const shard *r, ccn__id x) {
  if (r->g->nodes.at[x].op != CCN__OP_ALLGATHER || ccn__is_output(r->g, x)) return false;
  for (uint32_t k = r->first[x]; k < r->first[x + 1]; k++)
    if (r->g->nodes.at[r->reader[k]].op != CCN__OP_UPDATE || !r->cut[r->reader[k]]) return false;
  return r->first[x] < r->first[x + 1];
}

/* A store belongs to the kernel that computes what it stores. */
static ccn__attrs store_attrs(ccn__pass *s, const ccn__node *update, ccn__id value) {
  int64_t kernel = ccn__attr_int(s->edit.to->nodes.at[value].attrs, CCN__A_FUSE, 0);
  if (!kernel) return ccn__attrs_without(s->arena, update->attrs, CCN__A_FUSE);
  return ccn__attrs_with(s->arena, update->attrs, (ccn__attr){.key = CCN__A_FUSE, .i = kernel});
}

/* An update stores its value as it is before the gather. */
static bool store_sliced(shard *r, ccn__id u) {
  ccn__pass *s = r->s;
  const ccn__node *x = &r->g->nodes.at[u], *e = &r->g->nodes.at[x->in[1]];
  ccn__id in[2] = {s->edit.map[x->in[0]], s->edit.map[e->op == CCN__OP_ALLGATHER ? e->in[0] : x->in[1]]};
  ccn__type_error err;
  ccn__id y = ccn__edit_add(s, CCN__OP_UPDATE, in, 2, store_attrs(s, x, in[1]), NULL, x, &err);
  if (y == CCN__NO_ID)
    return ccn__refuse(s, err.code, u, "its update", "%s cannot be stored sliced",
                       ccn__node_label(r->g, x->in[0])),
           false;
  s->edit.to->nodes.at[y].name = x->name;
  s->edit.to->nodes.at[y].autoname = x->autoname;
  s->edit.map[u] = y;
  return true;
}

static void keep_cut(shard *r, ccn__id t) {
  ccn__id y = ccn__edit_keep(r->s, t);
  ccn__node *p = &r->s->edit.to->nodes.at[y];
  p->type = r->cut[t];
  p->attrs =
    ccn__attrs_with(r->s->arena, p->attrs, (ccn__attr){.key = CCN__A_SHARD, .i = (int64_t)r->over[t]});
}

static bool rebuild(shard *r) {
  ccn__pass *s = r->s;
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    const ccn__node *n = &r->g->nodes.at[i];
    if (gather_goes(r, i)) continue;
    if (is_own_slice(r, n)) s->edit.map[i] = s->edit.map[n->in[0]];
    else if (!r->cut[i]) ccn__edit_keep(s, i);
    else if (n->op == CCN__OP_PARAM) keep_cut(r, i);
    else if (!store_sliced(r, i)) return false;
  }
  s->g = ccn__edit_end(s);
  return true;
}

/* Notes how t is cut, if it can be; false after refusing. */
static bool one(shard *r, ccn__id t, ccn__id u, bool named) {
  const ccn__graph *g = r->g;
  const ccn__node *n = &g->nodes.at[t];
  uint64_t over = 0, before = (uint64_t)ccn__attr_int(n->attrs, CCN__A_SHARD, 0);
  if (n->op != CCN__OP_PARAM)
    return ccn__refuse(r->s, 402, t, "this", "%s is no parameter", ccn__node_label(g, t)), false;
  if (ccn__is_output(g, t) && !CCN__FORCED) return refuse(r, named, t, t, "it is returned");
  if (r->cut[t]) return refuse(r, named, t, t, "it is stored sliced already");
  ccn__type *cut = CCN__NEW(r->s->arena, ccn__type);
  *cut = *n->type;
  bool unread = r->first[t] == r->first[t + 1];
  if (!find_cut(r, t, u, cut, &over) && !((unread || CCN__FORCED) && any_cut(cut, &over)))
    return before ? refuse(r, named, t, t, "it is stored sliced already")
                  : refuse(r, named, t, some_reader(r, t, u), "no reader works on slices of it");
  if (u != CCN__NO_ID && ccn__is_output(g, u) && !CCN__FORCED)
    return refuse(r, named, t, u, "its new value is returned");
  r->cut[t] = cut;
  r->over[t] = over | before;
  if (u != CCN__NO_ID) r->cut[u] = cut;
  ccn__id reader = whole_reader(r, t, u);
  if (reader == CCN__NO_ID && u != CCN__NO_ID) reader = whole_reader(r, u, CCN__NO_ID);
  if (reader == CCN__NO_ID || CCN__FORCED) return true;
  r->cut[t] = NULL;
  if (u != CCN__NO_ID) r->cut[u] = NULL;
  return refuse(r, named, t, reader, "it is read whole");
}

bool ccn__pass_shard(ccn__pass *s, const ccn__ids *params, bool named) {
  uint32_t n = s->g->nodes.n;
  shard r = {.s = s, .g = s->g};
  ccn__id *update = CCN__NEWN(s->arena, ccn__id, n + 1);
  bool any = false;
  r.cut = CCN__NEWN(s->arena, const ccn__type *, n + 1);
  r.over = CCN__NEWN(s->arena, uint64_t, n + 1);
  memset(update, 0xff, (n + 1) * sizeof *update);
  for (uint32_t i = 0; i < s->g->params.n; i++) update[s->g->params.at[i].node] = s->g->params.at[i].update;
  find_readers(&r);
  for (uint32_t i = 0; i < params->n; i++) {
    if (!one(&r, params->at[i], update[params->at[i]], named)) return false;
    any |= r.cut[params->at[i]] != NULL;
  }
  return !any || rebuild(&r);
}
