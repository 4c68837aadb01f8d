/* shard.c
 * Purpose: a parameter that nobody reads whole is stored sliced: 1/n of the memory.
 * Needs:   every reader of its value at entry and of its update's result is on slices; being returned is a whole read
 *          (CCN0405, with the reader's line).
 * Gives:   the parameter sliced (attribute `shard`; for callers its type does not change); slices of it and the
 *          gather before its store go.
 * Keeps:   every bit. Source: CoCoNeT's asSlice and dead, as one step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

/* The cut that the update's value has before it is gathered, or that a slice of the parameter takes. */
static bool find_cut(const ccn__graph *g, ccn__id t, ccn__id u, uint64_t *over, const ccn__type **like) {
  if (u != CCN__NO_ID) {
    const ccn__node *e = &g->nodes.at[g->nodes.at[u].in[1]];
    if (e->op != CCN__OP_ALLGATHER) return false;
    *over = (uint64_t)ccn__attr_int(e->attrs, CCN__A_OVER, 0);
    *like = g->nodes.at[e->in[0]].type;
    return true;
  }
  for (ccn__id i = t + 1; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    if (n->op != CCN__OP_SLICE || n->in[0] != t) continue;
    *over = (uint64_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0);
    *like = n->type;
    return true;
  }
  return false;
}

static bool is_own_slice(const ccn__graph *g, const ccn__node *n, ccn__id t, const ccn__type *cut) {
  (void)g;
  return n->op == CCN__OP_SLICE && n->in[0] == t && ccn__type_equal(n->type, cut);
}

/* A reader that would not give the same type if the parameter were sliced; CCN__NO_ID if there is none. */
static ccn__id whole_reader(ccn__pass *s, ccn__id t, ccn__id u, const ccn__type *cut) {
  const ccn__graph *g = s->g;
  for (ccn__id i = t + 1; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    bool reads = false, reads_update = false;
    for (uint32_t k = 0; k < n->nin; k++) {
      reads |= n->in[k] == t;
      reads_update |= u != CCN__NO_ID && n->in[k] == u;
    }
    if (reads_update) return i;
    if (!reads || i == u || is_own_slice(g, n, t, cut)) continue;
    const ccn__type **in = CCN__NEWN(s->arena, const ccn__type *, n->nin + 1);
    for (uint32_t k = 0; k < n->nin; k++) in[k] = n->in[k] == t ? cut : g->nodes.at[n->in[k]].type;
    ccn__type out;
    ccn__type_error err;
    ccn__infer_in q = {
      .g = s->g, .op = (ccn__op)n->op, .in = in, .nin = n->nin, .attrs = n->attrs, .want = n->type};
    if (!ccn__infer(&q, &out, &err) || !ccn__type_equal(&out, n->type)) return i;
  }
  return CCN__NO_ID;
}

static bool refuse(ccn__pass *s, bool named, ccn__id t, ccn__id reader, const char *why) {
  if (!named) return true; /* left out */
  return ccn__refuse(s, 405, reader, "read whole here", "%s cannot be stored sliced: %s",
                     ccn__node_label(s->g, t), why),
         false;
}

static bool read_otherwise(const ccn__graph *g, ccn__id x, ccn__id except) {
  if (ccn__is_output(g, x)) return true;
  for (ccn__id i = x + 1; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++)
      if (g->nodes.at[i].in[k] == x && i != except) return true;
  return false;
}

bool ccn__pass_shard(ccn__pass *s, ccn__id t, bool named) {
  const ccn__graph *g = s->g;
  const ccn__node *n = &g->nodes.at[t];
  ccn__id u = ccn__update_of(g, t);
  uint64_t over = 0;
  const ccn__type *like = NULL;
  if (n->op != CCN__OP_PARAM)
    return ccn__refuse(s, 402, t, "this", "%s is no parameter", ccn__node_label(g, t)), false;
  if (ccn__attr_find(n->attrs, CCN__A_SHARD)) return refuse(s, named, t, t, "it is stored sliced already");
  if (ccn__is_output(g, t)) return refuse(s, named, t, t, "it is returned");
  if (!find_cut(g, t, u, &over, &like)) {
    ccn__id reader = u;
    for (ccn__id i = t + 1; i < g->nodes.n && reader == u; i++)
      for (uint32_t k = 0; k < g->nodes.at[i].nin; k++)
        if (g->nodes.at[i].in[k] == t && i != u) reader = i;
    return refuse(s, named, t, reader == CCN__NO_ID ? t : reader, "no reader works on slices of it");
  }
  ccn__type *cut = CCN__NEW(s->arena, ccn__type);
  *cut = *n->type;
  for (uint32_t a = 0; a < cut->naxes; a++)
    if (over >> a & 1) {
      if (cut->place[a].kind != CCN__REPLICATED)
        return refuse(s, named, t, t, "it is not replicated over the axis");
      cut->place[a] = like->place[a];
    }
  if (u != CCN__NO_ID && ccn__is_output(g, u)) return refuse(s, named, t, u, "its new value is returned");
  ccn__id reader = whole_reader(s, t, u, cut);
  if (reader != CCN__NO_ID) return refuse(s, named, t, reader, "it is read whole");
  ccn__id gather = u == CCN__NO_ID ? CCN__NO_ID : g->nodes.at[u].in[1];
  bool gather_stays = gather != CCN__NO_ID && read_otherwise(g, gather, u);
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *x = &g->nodes.at[i];
    if (is_own_slice(g, x, t, cut)) {
      s->edit.map[i] = s->edit.map[t];
      continue;
    }
    if (i == gather && !gather_stays) continue;
    if (i == u) {
      ccn__id in[2] = {s->edit.map[t], s->edit.map[g->nodes.at[gather].in[0]]};
      ccn__type_error err;
      ccn__id y = ccn__edit_add(s, CCN__OP_UPDATE, in, 2, x->attrs, NULL, x, &err);
      if (y == CCN__NO_ID)
        return ccn__refuse(s, err.code, i, "its update", "%s cannot be stored sliced", ccn__node_label(g, t)),
               false;
      s->edit.to->nodes.at[y].name = x->name;
      s->edit.to->nodes.at[y].autoname = x->autoname;
      s->edit.map[i] = y;
      continue;
    }
    ccn__id y = ccn__edit_keep(s, i);
    if (i != t) continue;
    ccn__node *p = &s->edit.to->nodes.at[y];
    p->type = cut;
    p->attrs = ccn__attrs_with(s->arena, p->attrs, (ccn__attr){.key = CCN__A_SHARD, .i = (int64_t)over});
  }
  s->g = ccn__edit_end(s);
  return true;
}
