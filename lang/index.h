/* index.h: from a pair (pointer, number) to a number, in constant time: symbols of a graph, parameters by name.
 *
 * Grows in the arena that each call names; nothing is ever taken out. Zeroed memory is an empty index.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_INDEX_H
#define CCN_LANG_INDEX_H

#include "base.h"

typedef struct ccn__index {
  struct ccn__index_slot {
    const void *key;
    uint32_t tag;
    uint32_t value; /* + 1; 0 = empty */
  } * slot;
  uint32_t n, cap; /* cap is a power of two */
} ccn__index;

#define CCN__NO_INDEX UINT32_MAX

/* Keeps the value that is there. value < CCN__NO_INDEX. */
void ccn__index_add(ccn__arena *a, ccn__index *x, const void *key, uint32_t tag, uint32_t value);
uint32_t ccn__index_find(const ccn__index *x, const void *key, uint32_t tag); /* CCN__NO_INDEX if absent */

#endif
