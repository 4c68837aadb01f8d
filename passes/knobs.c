/* knobs.c
 * Purpose: what a schedule says of single ops: algorithm, accumulate, fast, chunks.
 * Needs:   algorithm and accumulate: a collective, a reducing one (CCN0402).
 * Gives:   an attribute. algorithm and accumulate change the order or the precision of the sums (reassociating) and
 *          show that in the graph text; on integers every order is exact. SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

static void set(ccn__pass *s, ccn__id x, ccn__attr a) {
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) ccn__edit_keep(s, i);
  ccn__node *n = &s->edit.to->nodes.at[s->edit.map[x]];
  n->attrs = ccn__attrs_with(s->arena, n->attrs, a);
  s->g = ccn__edit_end(s);
}

bool ccn__pass_algorithm(ccn__pass *s, ccn__id x, const char *name) {
  static const struct {
    const char *name;
    int order;
  } known[] = {{"direct", CCN__ORDER_RANK},
               {"ring", CCN__ORDER_RING},
               {"tree", CCN__ORDER_TREE},
               {"halving", CCN__ORDER_TREE},
               {"library", CCN__ORDER_ANY}};
  const ccn__node *n = &s->g->nodes.at[x];
  bool moves =
    ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE && n->op != CCN__OP_SLICE && n->op != CCN__OP_TO_LOCAL;
  if (!moves)
    return ccn__refuse(s, 402, x, "this", "%s is a `%s`, not a collective", ccn__node_label(s->g, x),
                       ccn__op_table[n->op].name),
           false;
  for (size_t i = 0; i < CCN__COUNT(known); i++) {
    if (strcmp(known[i].name, name) != 0) continue;
    bool reduces = ccn__attr_find(n->attrs, CCN__A_ORDER) != NULL,
         floats = ccn__dtype_is_float((ccn__dtype)n->type->dtype);
    bool one_axis = ccn__attr_int(n->attrs, CCN__A_ORDER, 0) != CCN__ORDER_AXIS;
    set(s, x, (ccn__attr){.key = CCN__A_ALGORITHM, .text = known[i].name});
    ccn__id y = s->edit.map[x];
    if (reduces && floats && one_axis) set(s, y, (ccn__attr){.key = CCN__A_ORDER, .i = known[i].order});
    return true;
  }
  return ccn__refuse(s, 402, CCN__NO_ID, "",
                     "there is no algorithm `%s`: direct, ring, tree, halving, library", name),
         false;
}

bool ccn__pass_mark(ccn__pass *s, const ccn__ids *ops, ccn__attr_key key, int64_t value) {
  for (uint32_t i = 0; i < ops->n; i++) {
    const ccn__node *n = &s->g->nodes.at[ops->at[i]];
    if (key == CCN__A_ACCUMULATE && !ccn__attr_find(n->attrs, CCN__A_ORDER))
      return ccn__refuse(s, 402, ops->at[i], "this", "%s is no reducing collective",
                         ccn__node_label(s->g, ops->at[i])),
             false;
  }
  for (uint32_t i = 0; i < ops->n; i++) set(s, ops->at[i], (ccn__attr){.key = (uint8_t)key, .i = value});
  return true;
}
