/* index.c: open addressing with linear probing, at most half full.
 * SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

static struct ccn__index_slot *slot_of(const ccn__index *x, const void *key, uint32_t tag) {
  uint32_t mask = x->cap - 1, h = ((uint32_t)((uintptr_t)key >> 3) ^ tag * 40503u) * 2654435761u;
  for (h = (h ^ h >> 15) & mask;; h = (h + 1) & mask) {
    struct ccn__index_slot *s = &x->slot[h];
    if (!s->value || (s->key == key && s->tag == tag)) return s;
  }
}

static void grow(ccn__arena *a, ccn__index *x) {
  ccn__index old = *x;
  if (old.cap > UINT32_MAX / 4) ccn__throw(a->heap, CCN_OUT_OF_MEMORY);
  x->cap = old.cap ? old.cap * 2 : 16;
  x->slot = CCN__NEWN(a, struct ccn__index_slot, x->cap);
  for (uint32_t i = 0; i < old.cap; i++)
    if (old.slot[i].value) *slot_of(x, old.slot[i].key, old.slot[i].tag) = old.slot[i];
}

void ccn__index_add(ccn__arena *a, ccn__index *x, const void *key, uint32_t tag, uint32_t value) {
  if (2 * x->n >= x->cap) grow(a, x);
  struct ccn__index_slot *s = slot_of(x, key, tag);
  if (s->value) return;
  *s = (struct ccn__index_slot){key, tag, value + 1};
  x->n++;
}

uint32_t ccn__index_find(const ccn__index *x, const void *key, uint32_t tag) {
  return x->cap ? slot_of(x, key, tag)->value - 1 : CCN__NO_INDEX;
}
