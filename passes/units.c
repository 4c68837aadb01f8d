/* units.c: whether kernels and chains can each run as a whole: with every one of them as one node the graph has no cycle.
 * Convex kernels alone do not promise that: two may need each other. Nodes and edges are walked once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

/* The node that stands for i where j is seen: i, or the repeat around it. */
static ccn__id beside(const ccn__graph *g, ccn__id i, ccn__id j) {
  uint32_t at = g->nodes.at[j].region;
  for (ccn__id x = i;;) {
    uint32_t region = g->nodes.at[x].region;
    if (region == at || !region) return i;
    x = g->regions.at[region].owner;
    if (g->nodes.at[x].op == CCN__OP_REPEAT) i = x; /* an `on` block is no whole: others see what it makes */
  }
}

typedef struct edges { /* from each unit to those that need it */
  uint32_t *first, *to, *waits;
} edges;

/* Units 1 to top, then the nodes that are in none. */
static uint32_t unit(const ccn__units *u, ccn__id i) { return u->of[i] ? u->of[i] : u->top + 1 + i; }

static edges edges_between(ccn__pass *s, const ccn__units *u, uint32_t nunits) {
  const ccn__graph *g = s->g;
  uint32_t n = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) n += g->nodes.at[i].nin;
  edges e = {.first = CCN__NEWN(s->arena, uint32_t, nunits + 1),
             .to = CCN__NEWN(s->arena, uint32_t, n + 1),
             .waits = CCN__NEWN(s->arena, uint32_t, nunits)};
  for (int fill = 0; fill < 2; fill++) { /* counts, then each unit's from its end to its front */
    for (ccn__id i = 0; i < g->nodes.n; i++)
      for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) {
        ccn__id j = g->nodes.at[i].in[k];
        uint32_t from = unit(u, j), to = unit(u, beside(g, i, j));
        if (from == to) continue;
        if (fill) e.to[--e.first[from]] = to;
        else e.first[from]++, e.waits[to]++;
      }
    for (uint32_t k = 1; !fill && k <= nunits; k++) e.first[k] += e.first[k - 1];
  }
  return e;
}

/* Of a cycle among the units that still wait: its smallest number. Each of them has one before it that waits too. */
static uint32_t on_cycle(ccn__pass *s, const edges *e, uint32_t nunits) {
  uint32_t *before = CCN__NEWN(s->arena, uint32_t, nunits), at = 0;
  for (uint32_t k = 0; k < nunits; k++)
    for (uint32_t x = e->first[k]; e->waits[k] && x < e->first[k + 1]; x++) before[at = e->to[x]] = k;
  for (uint32_t k = 0; k < nunits; k++) at = before[at];
  uint32_t least = at;
  for (uint32_t k = before[at]; k != at; k = before[k])
    if (k < least) least = k;
  return least;
}

bool ccn__units_in_order(ccn__pass *s, const ccn__units *u, uint32_t *out_stuck) {
  const uint32_t nunits = u->top + 1 + s->g->nodes.n;
  edges e = edges_between(s, u, nunits);
  uint32_t *ready = CCN__NEWN(s->arena, uint32_t, nunits), n = 0;
  for (uint32_t k = 0; k < nunits; k++)
    if (!e.waits[k]) ready[n++] = k;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = e.first[ready[i]]; k < e.first[ready[i] + 1]; k++)
      if (--e.waits[e.to[k]] == 0) ready[n++] = e.to[k];
  if (n == nunits) return true;
  *out_stuck = on_cycle(s, &e, nunits);
  return false;
}

ccn__units ccn__units_of(ccn__pass *s, ccn__attr_key key) {
  const ccn__graph *g = s->g;
  ccn__units u = {.of = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 1)};
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    u.of[i] = (uint32_t)ccn__attr_int(g->nodes.at[i].attrs, key, 0);
    if (u.of[i] > u.top) u.top = u.of[i];
  }
  u.members = CCN__NEWN(s->arena, ccn__ids, u.top + 1);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (u.of[i]) *CCN__PUSH(s->arena, &u.members[u.of[i]]) = i;
  return u;
}
