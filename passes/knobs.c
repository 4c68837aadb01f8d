/* knobs.c
 * Purpose: what a schedule says of single ops: algorithm, accumulate, fast, chunks.
 * Needs:   algorithm and accumulate: a collective, a reducing one (CCN0402). Algorithms are the words of
 *          algorithms.def, each for the collectives that its generators make, and `library`.
 * Gives:   an attribute. algorithm and accumulate change the order or the precision of the sums (reassociating) and
 *          show that in the graph text; on integers every order is exact. SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"
#include "schedule.h"

/* A copy of the graph in which these ops have the attribute. */
static void set(ccn__pass *s, const ccn__ids *ops, ccn__attr a) {
  bool *in = ccn__in_set(s, ops);
  ccn__edit_begin(s);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    ccn__id y = ccn__edit_keep(s, i); /* may move the nodes */
    ccn__node *n = &s->edit.to->nodes.at[y];
    if (in[i]) n->attrs = ccn__attrs_with(s->arena, n->attrs, a);
  }
  s->g = ccn__edit_end(s);
}

static void set_one(ccn__pass *s, ccn__id x, ccn__attr a) {
  ccn__ids one = {0};
  *CCN__PUSH(s->arena, &one) = x;
  set(s, &one, a);
}

/* The first generator of that word; of `library`, which is nobody's, and of unknown ones CCN__GENERATORS. */
static int find_word(const char *name) {
  for (int i = 0; i < CCN__GENERATORS; i++)
    if (strcmp(ccn__generator_table[i].word, name) == 0) return i;
  return CCN__GENERATORS;
}

/* The words of those that make the op (of all if it is none), "direct, ring and library". */
static const char *words_for(ccn__pass *s, ccn__op op) {
  const char *before = "";
  ccn__text t;
  ccn__text_init(&t, s->arena);
  for (int i = 0; i < CCN__GENERATORS; i++) {
    const char *word = ccn__generator_table[i].word;
    if ((op != CCN__OP_COUNT && !ccn__generator_makes((ccn__generator)i, op)) || strcmp(word, before) == 0)
      continue;
    ccn__text_printf(&t, "%s%s", t.n ? ", " : "", word);
    before = word;
  }
  ccn__text_puts(&t, " and library");
  return t.at;
}

/* Whether there is such an algorithm for this collective, with groups where it needs them. */
static bool algorithm_fits(ccn__pass *s, ccn__id x, const char *name, int64_t group) {
  const ccn__node *n = &s->g->nodes.at[x];
  const bool library = strcmp(name, "library") == 0;
  const int word = find_word(name);
  if (ccn__op_table[n->op].kind != CCN__KIND_COLLECTIVE || n->op == CCN__OP_SLICE ||
      n->op == CCN__OP_TO_LOCAL)
    return ccn__refuse(s, 402, x, "this", "%s is a `%s`, not a collective", ccn__node_label(s->g, x),
                       ccn__op_table[n->op].name),
           false;
  if (!library && word == CCN__GENERATORS)
    return ccn__refuse(s, 402, CCN__NO_ID, "", "there is no algorithm `%s`: %s", name,
                       words_for(s, CCN__OP_COUNT)),
           false;
  bool makes = library;
  for (int i = word; !library && i < CCN__GENERATORS; i++)
    makes |= strcmp(ccn__generator_table[i].word, name) == 0 &&
             ccn__generator_makes((ccn__generator)i, (ccn__op)n->op);
  if (!makes)
    return ccn__refuse(s, 402, x, "this", "%s is a `%s`, and for that there are %s", ccn__node_label(s->g, x),
                       ccn__op_table[n->op].name, words_for(s, (ccn__op)n->op)),
           false;
  const bool grouped = !library && ccn__order_numbered(ccn__generator_table[word].order);
  if (grouped != (group != 0))
    return ccn__refuse(s, 402, CCN__NO_ID, "",
                       grouped ? "`%s` needs `group:`, the number of ranks that are neighbours"
                               : "`%s` has no groups",
                       name),
           false;
  if (group < 0 || group > UINT16_MAX + 1)
    return ccn__refuse(s, 402, CCN__NO_ID, "", "groups of %lld ranks", (long long)group), false;
  return true;
}

bool ccn__pass_algorithm(ccn__pass *s, ccn__id x, const char *name, int64_t group) {
  if (!algorithm_fits(s, x, name, group)) return false;
  const ccn__node *n = &s->g->nodes.at[x];
  const int word = find_word(name);
  const bool library = word == CCN__GENERATORS;
  const ccn__order order = library ? CCN__ORDER_ANY : ccn__generator_table[word].order;
  const bool reduces = ccn__attr_find(n->attrs, CCN__A_ORDER) != NULL,
             floats = ccn__dtype_is_float((ccn__dtype)n->type->dtype),
             one_axis = ccn__attr_int(n->attrs, CCN__A_ORDER, 0) != CCN__ORDER_AXIS;
  set_one(
    s, x,
    (ccn__attr){.key = CCN__A_ALGORITHM, .text = library ? "library" : ccn__generator_table[word].word});
  if (reduces && floats && one_axis)
    set_one(s, s->edit.map[x],
            (ccn__attr){.key = CCN__A_ORDER, .i = ccn__order_pack(order, (uint32_t)group)});
  return true;
}

bool ccn__pass_mark(ccn__pass *s, const ccn__ids *ops, ccn__attr_key key, int64_t value) {
  for (uint32_t i = 0; i < ops->n; i++) {
    const ccn__node *n = &s->g->nodes.at[ops->at[i]];
    if (key == CCN__A_ACCUMULATE && !ccn__attr_find(n->attrs, CCN__A_ORDER))
      return ccn__refuse(s, 402, ops->at[i], "this", "%s is no reducing collective",
                         ccn__node_label(s->g, ops->at[i])),
             false;
  }
  set(s, ops, (ccn__attr){.key = (uint8_t)key, .i = value});
  return true;
}
