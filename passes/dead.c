/* dead.c
 * Purpose: removes an op that nobody reads.
 * Needs:   x has no reader and is no output (CCN0406); it is no update and no parameter (CCN0402).
 * Gives:   the graph without x. Keeps: every bit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

bool ccn__pass_dead(ccn__pass *s, ccn__id x) {
  const ccn__graph *g = s->g;
  const ccn__node *n = &g->nodes.at[x];
  if (n->op == CCN__OP_UPDATE || ccn__op_table[n->op].kind == CCN__KIND_STRUCT)
    return ccn__refuse(s, 402, x, "this", "%s is never removed", ccn__node_label(g, x)), false;
  if (ccn__is_output(g, x) && !CCN__FORCED)
    return ccn__refuse(s, 406, x, "it is returned", "%s is still read", ccn__node_label(g, x)), false;
  for (ccn__id j = x + 1; j < g->nodes.n && !CCN__FORCED; j++)
    for (uint32_t k = 0; k < g->nodes.at[j].nin; k++)
      if (g->nodes.at[j].in[k] == x)
        return ccn__refuse(s, 406, j, "its reader", "%s is still read", ccn__node_label(g, x)), false;
  if (ccn__has_reader(g, x) && !CCN__FORCED)
    return ccn__refuse(s, 406, x, "carried by a repeat", "%s is still read", ccn__node_label(g, x)), false;
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (i != x) ccn__edit_keep(s, i);
  s->g = ccn__edit_end(s);
  return true;
}
