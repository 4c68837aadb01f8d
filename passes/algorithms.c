/* algorithms.c: the table of generators and what holds for all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

#define BIT(op) (1u << (CCN__OP_##op - CCN__OP_ALLREDUCE))
#define AR BIT(ALLREDUCE)
#define RS BIT(REDUCESCATTER)
#define AG BIT(ALLGATHER)
#define A2A BIT(ALLTOALL)
#define R BIT(REDUCE)
#define B BIT(BROADCAST)
#define G BIT(GATHER)
#define S BIT(SCATTER)
#define ALL (AR | RS | AG | A2A | R | B | G | S | BIT(SHIFT) | BIT(PERMUTE))

const struct ccn__generator_info ccn__generator_table[CCN__GENERATORS] = {
#define ALGORITHM(id, word, ops, order, doc) [CCN__MAKE_##id] = {#id, word, ops, CCN__ORDER_##order, doc},
#include "algorithms.def"
#undef ALGORITHM
};

bool ccn__generator_makes(ccn__generator g, ccn__op op) {
  return op >= CCN__OP_ALLREDUCE && op < CCN__OP_ALLREDUCE + 32 &&
         ccn__generator_table[g].ops >> (op - CCN__OP_ALLREDUCE) & 1;
}

bool ccn__generator_find(const char *name, ccn__generator *out) {
  for (int i = 0; i < CCN__GENERATORS; i++) {
    if (strcmp(ccn__generator_table[i].name, name) != 0) continue;
    *out = (ccn__generator)i;
    return true;
  }
  return false;
}

ccn__algorithm *ccn__algorithm_make(ccn__arena *arena, ccn__generator g, const ccn__algo_want *want,
                                    const char **out_why) {
  static void (*const generate[CCN__GENERATORS])(ccn__algorithm *, const ccn__algo_want *) = {
#define ALGORITHM(id, word, ops, order, doc) [CCN__MAKE_##id] = ccn__generate_##id,
#include "algorithms.def"
#undef ALGORITHM
  };
  const struct ccn__generator_info *i = &ccn__generator_table[g];
  const bool grouped = ccn__order_numbered(i->order);
  *out_why = NULL;
  if (!ccn__generator_makes(g, want->op)) *out_why = "it does not do this collective";
  else if (grouped && (!want->group || want->nranks % want->group))
    *out_why = "the groups are not of equal size";
  if (*out_why) return NULL;
  ccn__algorithm *a = ccn__algorithm_new(arena, i->name, want->op, want->nranks);
  a->root = want->root;
  a->source = want->source;
  a->chunks = want->chunks;
  if (ccn__algorithm_reduces(a)) a->order = ccn__order_pack(i->order, grouped ? want->group : 0);
  generate[g](a, want);
  return a;
}
