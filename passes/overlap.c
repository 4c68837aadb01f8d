/* overlap.c
 * Purpose: a chain of producers and consumers runs chunk by chunk at the same time.
 * Needs:   each stage reads something of the stage before it; nothing outside lies between (CCN0404); a stage is one
 *          op, a kernel, or a list (reorder's).
 * Gives:   attributes `overlap` and `stage`. Keeps: every bit for collectives; a matmul cut into pieces is the
 *          library's business (exempt from promise E, as everywhere).
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

static bool feeds(const ccn__graph *g, const uint32_t *stage, uint32_t from) {
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++)
      if (stage[i] == from + 2 && stage[g->nodes.at[i].in[k]] == from + 1) return true;
  return false;
}

static bool check_order(ccn__pass *s, const uint32_t *stage) {
  const ccn__graph *g = s->g;
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) {
      uint32_t a = stage[g->nodes.at[i].in[k]], b = stage[i];
      if (a && b && a > b)
        return ccn__refuse(s, 404, i, "this reads a later stage",
                           "the stages are not in the order in which values pass"),
               false;
    }
  return true;
}

static bool check_convex(ccn__pass *s, const uint32_t *stage) {
  const ccn__graph *g = s->g;
  ccn__ids ids = {0};
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (stage[i]) *CCN__PUSH(s->arena, &ids) = i;
  bool *after = ccn__after(s, &ids), *before = ccn__before(s, &ids);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (!stage[i] && after[i] && before[i])
      return ccn__refuse(s, 404, i, "this lies between",
                         "the chain is not convex: %s needs one of its ops and is needed by another",
                         ccn__node_label(g, i)),
             false;
  return true;
}

static bool check_fed(ccn__pass *s, const uint32_t *stage, uint32_t nstages) {
  for (uint32_t k = 0; k + 1 < nstages; k++) {
    if (feeds(s->g, stage, k)) continue;
    ccn__id x = CCN__NO_ID;
    for (ccn__id i = s->g->nodes.n; i-- > 0;)
      if (stage[i] == k + 2) x = i;
    return ccn__refuse(s, 404, x, "this stage", "stage %u reads nothing of stage %u", k + 2, k + 1), false;
  }
  return true;
}

bool ccn__chains_hold(ccn__pass *s) {
  const ccn__graph *g = s->g;
  int64_t top = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    int64_t o = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0);
    if (o > top) top = o;
  }
  for (int64_t k = 1; k <= top; k++) {
    uint32_t *stage = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 1), n = 0;
    for (ccn__id i = 0; i < g->nodes.n; i++) {
      if (ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0) != k) continue;
      stage[i] = (uint32_t)ccn__attr_int(g->nodes.at[i].attrs, CCN__A_STAGE, 0) + 1;
      if (stage[i] > n) n = stage[i];
    }
    if (!check_fed(s, stage, n) || !check_order(s, stage) || !check_convex(s, stage)) return false;
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
    int64_t o = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0),
            f = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0);
    if (o > number) number = o;
    if (stage[i] && o)
      return ccn__refuse(s, 404, i, "this", "%s is part of a chain already", ccn__node_label(g, i)), false;
    for (ccn__id j = 0; j < g->nodes.n && f && stage[i]; j++)
      if (!stage[j] && ccn__attr_int(g->nodes.at[j].attrs, CCN__A_FUSE, 0) == f)
        return ccn__refuse(s, 404, j, "this is part of it too", "%s is part of a kernel; name that kernel",
                           ccn__node_label(g, i)),
               false;
  }
  if (!check_fed(s, stage, nstages) || !check_order(s, stage) || !check_convex(s, stage)) return false;
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
