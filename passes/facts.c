/* facts.c: questions about graphs that several passes ask. Each is one walk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

bool *ccn__in_set(ccn__pass *s, const ccn__ids *ids) {
  bool *in = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1);
  for (uint32_t i = 0; i < ids->n; i++) in[ids->at[i]] = true;
  return in;
}

/* The value a RESULT or CARRY gets through its repeat: dependence by regions. */
static bool depends_through_region(const ccn__graph *g, ccn__id i, const bool *yes) {
  const ccn__node *n = &g->nodes.at[i];
  if (n->op == CCN__OP_REPEAT || n->op == CCN__OP_ON) return false;
  ccn__id owner = g->regions.at[n->region].owner;
  return owner != CCN__NO_ID && g->nodes.at[owner].op == CCN__OP_REPEAT && n->op == CCN__OP_CARRY &&
         yes[owner];
}

bool *ccn__after(ccn__pass *s, const ccn__ids *from) {
  const ccn__graph *g = s->g;
  bool *yes = CCN__NEWN(s->arena, bool, g->nodes.n + 1), *start = ccn__in_set(s, from);
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    for (uint32_t k = 0; k < n->nin && !yes[i]; k++) yes[i] = yes[n->in[k]] || start[n->in[k]];
    if (!yes[i]) yes[i] = depends_through_region(g, i, yes);
    if (n->op != CCN__OP_RESULT || yes[i]) continue;
    const ccn__region *r = &g->regions.at[g->nodes.at[n->in[0]].body];
    for (uint32_t k = 0; k < r->nyield && !yes[i]; k++) yes[i] = yes[r->yield[k]] || start[r->yield[k]];
  }
  return yes;
}

bool *ccn__before(ccn__pass *s, const ccn__ids *of) {
  const ccn__graph *g = s->g;
  bool *yes = CCN__NEWN(s->arena, bool, g->nodes.n + 1), *start = ccn__in_set(s, of);
  for (ccn__id i = g->nodes.n; i-- > 0;) {
    const ccn__node *n = &g->nodes.at[i];
    if (!yes[i] && !start[i]) continue;
    for (uint32_t k = 0; k < n->nin; k++) yes[n->in[k]] = true;
  }
  return yes;
}

bool ccn__is_output(const ccn__graph *g, ccn__id i) {
  for (uint32_t k = 0; k < g->noutputs; k++)
    if (g->outputs[k] == i) return true;
  return false;
}

bool ccn__has_reader(const ccn__graph *g, ccn__id i) {
  if (ccn__is_output(g, i)) return true;
  for (ccn__id j = i + 1; j < g->nodes.n; j++)
    for (uint32_t k = 0; k < g->nodes.at[j].nin; k++)
      if (g->nodes.at[j].in[k] == i) return true;
  for (uint32_t r = 1; r < g->regions.n; r++)
    for (uint32_t k = 0; k < g->regions.at[r].nyield; k++)
      if (g->regions.at[r].yield[k] == i) return true;
  return false;
}

const char *ccn__node_label(const ccn__graph *g, ccn__id i) {
  const ccn__node *n = &g->nodes.at[i];
  const char *name = n->name ? n->name : n->autoname ? n->autoname : ccn__op_table[n->op].name;
  return ccn__arena_printf(g->arena, "`%s`", name);
}

ccn__id ccn__update_of(const ccn__graph *g, ccn__id param) {
  for (uint32_t i = 0; i < g->params.n; i++)
    if (g->params.at[i].node == param) return g->params.at[i].update;
  return CCN__NO_ID;
}

static int64_t kernel_of(const ccn__graph *g, ccn__id i) {
  return ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0);
}

int64_t ccn__last_kernel(const ccn__graph *g) {
  int64_t top = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (kernel_of(g, i) > top) top = kernel_of(g, i);
  return top;
}

bool ccn__kernel_cut(ccn__pass *s, const bool *in, ccn__id *out_inside, ccn__id *out_outside) {
  const ccn__graph *g = s->g;
  const size_t n = (size_t)ccn__last_kernel(g) + 1;
  ccn__id *inside = CCN__NEWN(s->arena, ccn__id, n), *outside = CCN__NEWN(s->arena, ccn__id, n);
  memset(inside, 0xff, n * sizeof *inside);
  memset(outside, 0xff, n * sizeof *outside);
  for (ccn__id i = g->nodes.n; i-- > 0;)
    if (kernel_of(g, i)) (in[i] ? inside : outside)[kernel_of(g, i)] = i;
  for (size_t k = 1; k < n; k++) {
    if (inside[k] == CCN__NO_ID || outside[k] == CCN__NO_ID) continue;
    *out_inside = inside[k];
    *out_outside = outside[k];
    return true;
  }
  return false;
}
