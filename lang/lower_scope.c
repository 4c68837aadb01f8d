/* lower_scope.c: names of a program's text while it is lowered: bindings in order with an index by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

static struct ccn__scope_slot *slot_of(const ccn__scope *s, ccn__name name) {
  uint32_t mask = s->nslots - 1, h = (uint32_t)(((uintptr_t)name >> 3) * 2654435761u);
  for (h = (h ^ h >> 15) & mask;; h = (h + 1) & mask)
    if (!s->slot[h].name || s->slot[h].name == name) return &s->slot[h];
}

static void grow(ccn__arena *a, ccn__scope *s) {
  ccn__scope old = *s;
  s->nslots = old.nslots ? old.nslots * 2 : 16;
  s->slot = CCN__NEWN(a, struct ccn__scope_slot, s->nslots);
  for (uint32_t i = 0; i < old.nslots; i++)
    if (old.slot[i].name) *slot_of(s, old.slot[i].name) = old.slot[i];
}

void ccn__scope_push(ccn__arena *a, ccn__scope *s, ccn__name name, ccn__bv v) {
  if (2 * s->used >= s->nslots) grow(a, s);
  struct ccn__scope_slot *slot = slot_of(s, name);
  if (!slot->name) slot->name = name, s->used++;
  *CCN__PUSH(a, s) = (ccn__scope_entry){name, v, slot->last};
  slot->last = s->n;
}

void ccn__scope_cut(ccn__scope *s, uint32_t n) {
  while (s->n > n) {
    const ccn__scope_entry *e = &s->at[--s->n];
    slot_of(s, e->name)->last = e->shadowed;
  }
}

uint32_t ccn__scope_position(const ccn__scope *s, ccn__name name) {
  return s->nslots ? slot_of(s, name)->last - 1 : CCN__NO_INDEX;
}

ccn__bv *ccn__scope_find(const ccn__scope *s, ccn__name name) {
  uint32_t i = ccn__scope_position(s, name);
  return i == CCN__NO_INDEX ? NULL : &s->at[i].value;
}
