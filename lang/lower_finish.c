/* lower_finish.c: what is left when the text has been walked: outputs, CCN0224, dead code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

/* ---- the end: outputs, CCN0224, dead code ---- */

static bool add_outputs(ccn__lower *l, ccn__bv v, ccn__id *out, uint32_t *n, uint32_t max) {
  if (v.kind == CCN__B_TUPLE || v.kind == CCN__B_LIST) {
    for (uint32_t i = 0; i < v.list.n; i++)
      if (!add_outputs(l, v.list.at[i], out, n, max)) return false;
    return true;
  }
  ccn__id id = ccn__as_node(l, v, -1);
  if (id == CCN__NO_ID) return false;
  if (*n == max) {
    ccn__lower_error(l, 800, v.span, "here", "a program returns at most %u values", max);
    return false;
  }
  out[(*n)++] = id;
  return true;
}

static void report_entry_reader(ccn__lower *l, ccn__id reader, ccn__id t, ccn__id u) {
  ccn__diag *d = ccn__lower_error(
    l, 224, l->g->nodes.at[reader].span, "reads both",
    "this depends on the updated `%s` and reads its value at entry, which the update has overwritten by then",
    l->g->nodes.at[t].name);
  ccn__note(l->ds, d, l->g->nodes.at[u].span, "the update");
  ccn__hint(l->ds, d, "read the value at entry before the update, or use the update's result");
}

/* A carried value depends on what goes into its repeat, the result on what the block yields. */
static uint64_t through_repeat(const ccn__graph *g, ccn__id i, const uint64_t *after) {
  const ccn__node *n = &g->nodes.at[i];
  uint64_t set = 0;
  if (n->op == CCN__OP_CARRY) return after[g->regions.at[n->region].owner];
  if (n->op != CCN__OP_RESULT) return 0;
  const ccn__region *r = &g->regions.at[g->nodes.at[n->in[0]].body];
  for (uint32_t k = 0; k < r->nyield; k++) set |= after[r->yield[k]];
  return set;
}

enum { SUSPECTS = 64 }; /* parameters that are read behind their update, a bit each: one walk looks at all */

typedef struct walk {
  const ccn__param *param[SUSPECTS];
  uint32_t n;
  ccn__id first, last;            /* nodes between which it matters */
  uint64_t *after, *read, *store; /* of a node: whose update it depends on, whose entry or update it is */
} walk;

static void walk_down(ccn__lower *l, walk *w) {
  const ccn__graph *g = l->g;
  ccn__id reader[SUSPECTS];
  uint64_t open = UINT64_MAX; /* not reported yet */
  for (uint32_t b = 0; b < w->n; b++) {
    reader[b] = CCN__NO_ID;
    w->read[w->param[b]->node] |= UINT64_C(1) << b;
    w->store[w->param[b]->update] |= UINT64_C(1) << b;
  }
  if (w->first <= w->last) memset(w->after, 0, (w->last + 1) * sizeof *w->after);
  for (ccn__id i = w->first; i <= w->last; i++) {
    const ccn__node *n = &g->nodes.at[i];
    uint64_t reads = 0, after = through_repeat(g, i, w->after);
    for (uint32_t k = 0; k < n->nin; k++) after |= w->after[n->in[k]], reads |= w->read[n->in[k]];
    for (uint64_t both = reads & after & open; both; both &= both - 1) reader[__builtin_ctzll(both)] = i;
    open &= ~(reads & after);
    w->after[i] = after | w->store[i];
  }
  for (uint32_t b = 0; b < w->n; b++) {
    const ccn__id t = w->param[b]->node, u = w->param[b]->update;
    if (reader[b] != CCN__NO_ID) report_entry_reader(l, reader[b], t, u);
    w->read[t] = w->store[u] = 0;
  }
  w->n = 0;
}

/* An op that reads a parameter's value at entry runs before the store, so it must not depend on what is stored.
 * Only parameters that are read behind their update need the walk. */
static void check_entry_readers(ccn__lower *l) {
  ccn__graph *g = l->g;
  const size_t n = g->nodes.n + 1;
  ccn__id *last_reader = CCN__NEWN(l->arena, ccn__id, n);
  walk w = {.n = 0};
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) last_reader[g->nodes.at[i].in[k]] = i;
  for (uint32_t p = 0; p < g->params.n; p++) {
    const ccn__param *x = &g->params.at[p];
    if (x->update == CCN__NO_ID || last_reader[x->node] <= x->update) continue;
    if (!w.after) {
      w.after = CCN__NEWN(l->arena, uint64_t, n);
      w.read = CCN__NEWN(l->arena, uint64_t, n);
      w.store = CCN__NEWN(l->arena, uint64_t, n);
    }
    if (!w.n || x->update < w.first) w.first = x->update;
    if (!w.n || last_reader[x->node] > w.last) w.last = last_reader[x->node];
    w.param[w.n++] = x;
    if (w.n == SUSPECTS) walk_down(l, &w);
  }
  if (w.n) walk_down(l, &w);
}

static void mark(uint8_t *live, ccn__id id) {
  if (id != CCN__NO_ID) live[id] = 1;
}

/* Marks what outputs and updates need. Inputs have smaller numbers except through `repeat`, whose block is live as a
 * whole when it is; so one walk down suffices if a live repeat marks its yields before they are passed: they are
 * behind it, hence the loop. */
static void mark_live(ccn__graph *g, uint8_t *live) {
  for (uint32_t i = 0; i < g->noutputs; i++) mark(live, g->outputs[i]);
  for (uint32_t p = 0; p < g->params.n; p++) {
    mark(live, g->params.at[p].node);
    mark(live, g->params.at[p].update);
  }
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (ccn__attr_int(g->nodes.at[i].attrs, CCN__A_IMPURE, 0)) mark(live, i);
  for (bool again = true; again;) {
    again = false;
    for (ccn__id i = g->nodes.n; i-- > 0;) {
      if (!live[i]) continue;
      const ccn__node *n = &g->nodes.at[i];
      for (uint32_t k = 0; k < n->nin; k++) live[n->in[k]] = 1;
      ccn__id owner = g->regions.at[n->region].owner;
      if (owner != CCN__NO_ID && !live[owner]) live[owner] = 1, again |= owner > i;
      if (n->op != CCN__OP_REPEAT) continue;
      const ccn__region *r = &g->regions.at[n->body];
      for (uint32_t k = 0; k < r->nyield; k++)
        if (!live[r->yield[k]]) live[r->yield[k]] = 1, again = true;
    }
    for (ccn__id i = 0; i < g->nodes.n; i++) /* carried values keep their numbers */
      if (g->nodes.at[i].op == CCN__OP_CARRY && !live[i] && live[g->regions.at[g->nodes.at[i].region].owner])
        live[i] = 1;
  }
}

static void warn_unused(ccn__lower *l, const ccn__node *n) {
  bool moves =
    ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE && n->op != CCN__OP_SLICE && n->op != CCN__OP_TO_LOCAL;
  if (!moves || !l->check || l->frame->outer) return;
  ccn__diag *d =
    ccn__warning(l->ds, 809, n->span, "its result is not used",
                 "this `%s` is removed on all ranks: nobody needs its result", ccn__op_table[n->op].name);
  ccn__hint(l->ds, d, "delete it, or use its result");
}

static void remove_dead(ccn__lower *l) {
  ccn__graph *g = l->g;
  uint8_t *live = CCN__NEWN(l->arena, uint8_t, g->nodes.n + 1);
  ccn__id *to = CCN__NEWN(l->arena, ccn__id, g->nodes.n + 1), n = 0;
  mark_live(g, live);
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (!live[i]) warn_unused(l, &g->nodes.at[i]);
    to[i] = live[i] ? n++ : CCN__NO_ID;
  }
  if (n == g->nodes.n) return;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (!live[i]) continue;
    ccn__node *x = &g->nodes.at[to[i]];
    *x = g->nodes.at[i];
    ccn__id *in = CCN__NEWN(l->arena, ccn__id, x->nin + 1);
    for (uint32_t k = 0; k < x->nin; k++) in[k] = to[x->in[k]];
    x->in = in;
  }
  g->nodes.n = n;
  /* regions of dead blocks go too */
  uint32_t nr = 1, *rto = CCN__NEWN(l->arena, uint32_t, g->regions.n + 1);
  for (uint32_t r = 1; r < g->regions.n; r++) {
    if (to[g->regions.at[r].owner] == CCN__NO_ID) continue;
    ccn__region x = g->regions.at[r];
    x.owner = to[x.owner];
    ccn__id *y = CCN__NEWN(l->arena, ccn__id, x.nyield + 1);
    for (uint32_t k = 0; k < x.nyield; k++) y[k] = to[x.yield[k]];
    x.yield = y;
    rto[r] = nr;
    g->regions.at[nr++] = x;
  }
  g->regions.n = nr;
  for (ccn__id i = 0; i < n; i++) {
    g->nodes.at[i].region = rto[g->nodes.at[i].region];
    g->nodes.at[i].body = rto[g->nodes.at[i].body];
  }
  ccn__id *out = CCN__NEWN(l->arena, ccn__id, g->noutputs + 1);
  for (uint32_t i = 0; i < g->noutputs; i++) out[i] = to[g->outputs[i]];
  g->outputs = out;
  for (uint32_t p = 0; p < g->params.n; p++) {
    g->params.at[p].node = to[g->params.at[p].node];
    if (g->params.at[p].update != CCN__NO_ID) g->params.at[p].update = to[g->params.at[p].update];
  }
}

void ccn__lower_finish(ccn__lower *l, ccn__bv result, ccn__span span) {
  enum { MAX_OUTPUTS = 4096 };
  ccn__id *out = CCN__NEWN(l->arena, ccn__id, MAX_OUTPUTS);
  uint32_t n = 0;
  (void)span;
  l->g->returns_none = result.kind == CCN__B_NONE;
  l->g->returns_tuple = result.kind == CCN__B_TUPLE || result.kind == CCN__B_LIST;
  if (result.kind != CCN__B_NONE && !add_outputs(l, result, out, &n, MAX_OUTPUTS)) return;
  l->g->outputs = out;
  l->g->noutputs = n;
  check_entry_readers(l);
  remove_dead(l);
}
