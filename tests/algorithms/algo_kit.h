/* algo_kit.h: what the tests of collective algorithms share: a heap, every generator for every collective,
 * the definition of what a collective gives, written without the library's orders.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_TESTS_ALGO_KIT_H
#define CCN_TESTS_ALGO_KIT_H

#include "algorithms.h"

#include <stdio.h>
#include <stdlib.h>

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static void *kit_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size, (void)user;
  if (new_size) return aligned_alloc(align, (new_size + align - 1) / align * align);
  free(p);
  return NULL;
}

static ccn__heap kit_heap = {.alloc = kit_alloc};

static const ccn__op collectives[] = {
  CCN__OP_ALLREDUCE, CCN__OP_REDUCESCATTER, CCN__OP_REDUCE,   CCN__OP_ALLGATHER, CCN__OP_BROADCAST,
  CCN__OP_GATHER,    CCN__OP_SCATTER,       CCN__OP_ALLTOALL, CCN__OP_SHIFT,     CCN__OP_PERMUTE};

/* A source for each rank: a shift by 1 with an open end, a permutation that turns the ranks around. */
static const uint16_t *kit_source(ccn__arena *a, ccn__op op, uint32_t n) {
  uint16_t *s = CCN__NEWN(a, uint16_t, n);
  for (uint32_t r = 0; r < n; r++) {
    if (op == CCN__OP_SHIFT) s[r] = r ? (uint16_t)(r - 1) : CCN__NOBODY;
    else s[r] = (uint16_t)(n - 1 - r);
  }
  return op == CCN__OP_SHIFT || op == CCN__OP_PERMUTE ? s : NULL;
}

typedef void kit_fn(ccn__algorithm *a, ccn__arena *arena, void *user);

/* Every algorithm of n ranks in `chunks` chunks, every collective, every group that divides n, some roots. */
static void kit_each(uint32_t n, uint32_t chunks, kit_fn *f, void *user) {
  for (int g = 0; g < CCN__GENERATORS; g++)
    for (size_t c = 0; c < CCN__COUNT(collectives); c++) {
      if (!ccn__generator_makes((ccn__generator)g, collectives[c])) continue;
      const bool rooted = collectives[c] == CCN__OP_REDUCE || collectives[c] == CCN__OP_BROADCAST ||
                          collectives[c] == CCN__OP_GATHER || collectives[c] == CCN__OP_SCATTER;
      for (uint32_t group = 1; group <= (g == CCN__MAKE_hierarchical ? n : 1); group++)
        for (uint32_t root = 0; root < (rooted ? n : 1); root += n / 2 + 1) {
          ccn__arena arena;
          const char *why;
          if (n % group) continue;
          ccn__arena_init(&arena, &kit_heap);
          const ccn__algo_want want = {.op = collectives[c],
                                       .nranks = n,
                                       .root = root,
                                       .chunks = chunks,
                                       .group = group,
                                       .source = kit_source(&arena, collectives[c], n)};
          f(ccn__algorithm_make(&arena, (ccn__generator)g, &want, &why), &arena, user);
          ccn__arena_free(&arena);
        }
    }
}

static void kit_say(const ccn__algorithm *a, const char *text) {
  printf("# %s %s n %u chunks %u root %u group %u: %s\n", a->name, ccn__op_table[a->op].name, a->nranks,
         a->chunks, a->root, ccn__order_group(a->order), text);
}

static int kit_main(void (*body)(void)) {
  ccn__trap t;
  CCN__TRY(&kit_heap, t)
  { body(); }
  CCN__CATCH(&kit_heap, t)
  { ok(false, "out of memory"); }
  printf("1..%d\n", tests);
  return failures != 0;
}

#endif
