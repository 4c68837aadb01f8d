/* overlap.c
 * Purpose: a chain of producers and consumers runs chunk by chunk at the same time.
 * Needs:   each stage reads something of the stage before it; nothing outside lies between; all in one loop or in none
 *          (CCN0404); a stage is one op, a kernel, or a list (reorder's).
 * Gives:   attributes `overlap` and `stage`. Keeps: every bit for collectives; a matmul cut into pieces is the
 *          library's business (exempt from promise E, as everywhere).
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

/* stage[i]: 1, 2, ...; 0 = not in the chain. Looks at members only. */
static bool check_order(ccn__pass *s, const ccn__ids *members, const uint32_t *stage) {
  const ccn__graph *g = s->g;
  for (uint32_t m = 0; m < members->n; m++) {
    ccn__id i = members->at[m];
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++)
      if (stage[g->nodes.at[i].in[k]] > stage[i])
        return ccn__refuse(s, 404, i, "this reads a later stage",
                           "the stages are not in the order in which values pass"),
               false;
  }
  return true;
}

static bool check_convex(ccn__pass *s, const ccn__ids *members, const uint32_t *stage) {
  const ccn__graph *g = s->g;
  bool *after = ccn__after(s, members), *before = ccn__before(s, members);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (!stage[i] && after[i] && before[i])
      return ccn__refuse(s, 404, i, "this lies between",
                         "the chain is not convex: %s needs one of its ops and is needed by another",
                         ccn__node_label(g, i)),
             false;
  return true;
}

static bool check_fed(ccn__pass *s, const ccn__ids *members, const uint32_t *stage, uint32_t nstages) {
  const ccn__graph *g = s->g;
  bool *fed = CCN__NEWN(s->arena, bool, nstages + 2);
  ccn__id *first = CCN__NEWN(s->arena, ccn__id, nstages + 2);
  memset(first, 0xff, (nstages + 2) * sizeof *first);
  for (uint32_t m = members->n; m-- > 0;) {
    ccn__id i = members->at[m];
    first[stage[i]] = i;
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++)
      fed[stage[i]] |= stage[g->nodes.at[i].in[k]] && stage[g->nodes.at[i].in[k]] + 1 == stage[i];
  }
  for (uint32_t k = 2; k <= nstages; k++)
    if (!fed[k])
      return ccn__refuse(s, 404, first[k], "this stage", "stage %u reads nothing of stage %u", k, k - 1),
             false;
  return true;
}

static ccn__id loop_of(const ccn__graph *g, uint32_t region) {
  while (region && g->nodes.at[g->regions.at[region].owner].op != CCN__OP_REPEAT)
    region = g->nodes.at[g->regions.at[region].owner].region;
  return region ? g->regions.at[region].owner : CCN__NO_ID;
}

/* What is done once and what is done in each pass of a loop cannot go chunk by chunk. */
static bool check_one_loop(ccn__pass *s, const ccn__ids *members) {
  const ccn__graph *g = s->g;
  for (uint32_t m = 1; m < members->n; m++) {
    const ccn__id a = members->at[0], b = members->at[m];
    if (loop_of(g, g->nodes.at[a].region) == loop_of(g, g->nodes.at[b].region)) continue;
    return ccn__refuse(s, 404, b, "in a repeat that holds not all of the chain",
                       "%s and %s do not stand in the same `repeat`", ccn__node_label(g, a),
                       ccn__node_label(g, b)),
           false;
  }
  return true;
}

static bool check_whole_kernels(ccn__pass *s, const uint32_t *stage) {
  ccn__id member, other;
  bool *in = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) in[i] = stage[i] != 0;
  if (!ccn__kernel_cut(s, in, &member, &other)) return true;
  return ccn__refuse(s, 404, other, "this is part of it too", "%s is part of a kernel; name that kernel",
                     ccn__node_label(s->g, member)),
         false;
}

/* Chains, and the kernels that are in none. */
static ccn__units chains_and_kernels(ccn__pass *s, const ccn__units *chains) {
  ccn__units kernels = ccn__units_of(s, CCN__A_FUSE), all = {.top = chains->top + kernels.top};
  all.of = CCN__NEWN(s->arena, uint32_t, s->g->nodes.n + 1);
  for (ccn__id i = 0; i < s->g->nodes.n; i++)
    all.of[i] = chains->of[i] || !kernels.of[i] ? chains->of[i] : chains->top + kernels.of[i];
  return all;
}

static bool refuse_stuck(ccn__pass *s, const ccn__ids *members, const uint32_t *stage) {
  if (!check_convex(s, members, stage)) return false;
  return ccn__refuse(s, 404, members->at[0], "in this chain",
                     "the chain of %s and another chain or kernel each need what the other computes",
                     ccn__node_label(s->g, members->at[0])),
         false;
}

bool ccn__chains_hold(ccn__pass *s) {
  const ccn__graph *g = s->g;
  ccn__units u = ccn__units_of(s, CCN__A_OVERLAP);
  if (!u.top) return true;
  ccn__units all = chains_and_kernels(s, &u);
  uint32_t *stage = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 1), stuck = 0;
  (void)ccn__units_in_order(s, &all, &stuck);
  for (uint32_t c = 1; c <= u.top; c++) {
    const ccn__ids *members = &u.members[c];
    uint32_t n = 0;
    for (uint32_t m = 0; m < members->n; m++) {
      uint32_t k = stage[members->at[m]] =
        (uint32_t)ccn__attr_int(g->nodes.at[members->at[m]].attrs, CCN__A_STAGE, 0) + 1;
      if (k > n) n = k;
    }
    if (!check_fed(s, members, stage, n) || !check_order(s, members, stage)) return false;
    if (c == stuck) return refuse_stuck(s, members, stage);
    for (uint32_t m = 0; m < members->n; m++) stage[members->at[m]] = 0;
  }
  return true;
}

bool ccn__pass_overlap(ccn__pass *s, const ccn__ids *stages, uint32_t nstages, ccn__ids *out) {
  const ccn__graph *g = s->g;
  uint32_t *stage = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 1);
  int64_t number = 0;
  if (nstages < 2) return ccn__refuse(s, 404, CCN__NO_ID, "", "a chain has at least two stages"), false;
  for (uint32_t k = 0; k < nstages; k++)
    for (uint32_t i = 0; i < stages[k].n; i++) {
      ccn__id x = stages[k].at[i];
      const ccn__node *n = &g->nodes.at[x];
      if (n->op == CCN__OP_PARAM || n->op == CCN__OP_CONST) continue;
      if (ccn__op_table[n->op].kind == CCN__KIND_STRUCT)
        return ccn__refuse(s, 402, x, "this", "a `%s` is not part of a chain", ccn__op_table[n->op].name),
               false;
      if (stage[x])
        return ccn__refuse(s, 404, x, "named twice", "%s is in two stages", ccn__node_label(g, x)), false;
      stage[x] = k + 1;
    }
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    int64_t o = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0);
    if (o > number) number = o;
    if (stage[i] && o)
      return ccn__refuse(s, 404, i, "this", "%s is part of a chain already", ccn__node_label(g, i)), false;
  }
  ccn__ids members = {0};
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (stage[i]) *CCN__PUSH(s->arena, &members) = i;
  if (!check_one_loop(s, &members) || !check_whole_kernels(s, stage) ||
      !check_fed(s, &members, stage, nstages) || !check_order(s, &members, stage) ||
      !check_convex(s, &members, stage))
    return false;
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    ccn__id y = ccn__edit_keep(s, i);
    if (!stage[i]) continue;
    ccn__node *n = &s->edit.to->nodes.at[y];
    n->attrs = ccn__attrs_with(s->arena, n->attrs, (ccn__attr){.key = CCN__A_OVERLAP, .i = number + 1});
    n->attrs = ccn__attrs_with(s->arena, n->attrs, (ccn__attr){.key = CCN__A_STAGE, .i = stage[i] - 1});
    *CCN__PUSH(s->arena, out) = y;
  }
  s->g = ccn__edit_end(s);
  return true;
}
