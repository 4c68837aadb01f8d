/* order.c: the orders of order.h as merges of lanes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

const char *const ccn__order_name[CCN__ORDER_COUNT] = {
  [CCN__ORDER_RANK] = "rank",     [CCN__ORDER_AXIS] = "axis",     [CCN__ORDER_TREE] = "tree",
  [CCN__ORDER_RING] = "ring",     [CCN__ORDER_ANY] = "any",       [CCN__ORDER_GROUPS] = "groups",
  [CCN__ORDER_BINARY] = "binary", [CCN__ORDER_DOUBLE] = "double",
};

bool ccn__order_numbered(ccn__order order) { return order == CCN__ORDER_GROUPS; }

bool ccn__order_valid(int64_t packed) {
  if (packed < 0 || (packed & 255) >= CCN__ORDER_COUNT || packed >> 8 > UINT16_MAX + 1) return false;
  return ccn__order_numbered(ccn__order_of(packed)) == (packed >> 8 > 0);
}

void ccn__order_print(int64_t packed, ccn__text *out) {
  ccn__text_puts(out, ccn__order_name[ccn__order_of(packed)]);
  if (ccn__order_numbered(ccn__order_of(packed))) ccn__text_printf(out, "(%u)", ccn__order_group(packed));
}

/* ---- binary trees ---------------------------------------------------------------------------- */

ccn__btree ccn__btree_at(uint32_t n, uint32_t position) {
  ccn__btree t = {CCN__NOBODY, CCN__NOBODY, CCN__NOBODY};
  uint32_t bit = 1;
  while (bit < n && !(position & bit)) bit <<= 1;
  uint32_t step = bit >> 1;
  if (position) {
    const uint32_t up = (position ^ bit) | bit << 1;
    t.up = (uint16_t)(up < n ? up : position ^ bit);
    if (step) t.left = (uint16_t)(position - step);
  }
  while (step && position + step >= n) step >>= 1;
  if (step) t.right = (uint16_t)(position + step);
  return t;
}

/* Mirrored for even n, turned by one for odd n: odd positions, the leaves, then lie on even ranks. */
uint32_t ccn__double_rank(uint32_t n, uint32_t t, uint32_t position) {
  if (t == 0) return position;
  return n % 2 == 0 ? n - 1 - position : (position + 1) % n;
}

uint32_t ccn__double_position(uint32_t n, uint32_t t, uint32_t rank) {
  if (t == 0) return rank;
  return n % 2 == 0 ? n - 1 - rank : (rank + n - 1) % n;
}

typedef struct walk {
  ccn__order order;
  uint32_t n, anchor, done;
  ccn__merge *out;
} walk;

static uint32_t merge(walk *w, uint32_t to, uint32_t from) {
  w->out[w->done++] = (ccn__merge){(uint16_t)to, (uint16_t)from};
  return to;
}

static uint32_t rank_at(const walk *w, uint32_t position) {
  if (w->order == CCN__ORDER_DOUBLE) return ccn__double_rank(w->n, w->anchor, position);
  return (position + w->anchor) % w->n;
}

/* (left + own) + right; as deep as the tree, log2 n. */
static uint32_t walk_btree(walk *w, uint32_t position) {
  const ccn__btree t = ccn__btree_at(w->n, position);
  uint32_t lane = rank_at(w, position);
  if (t.left != CCN__NOBODY) lane = merge(w, walk_btree(w, t.left), lane);
  if (t.right != CCN__NOBODY) merge(w, lane, walk_btree(w, t.right));
  return lane;
}

/* ---- the families ---------------------------------------------------------------------------- */

/* first, first + step, ... `count` lanes, modulo n. */
static uint32_t walk_row(walk *w, uint32_t first, uint32_t step, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) merge(w, first, (first + i * step) % w->n);
  return first;
}

static uint32_t walk_tree(walk *w) {
  for (uint32_t step = 1; step < w->n; step *= 2)
    for (uint32_t i = 0; i + step < w->n; i += 2 * step) merge(w, i, i + step);
  return 0;
}

/* The last group may be shorter. */
static uint32_t walk_groups(walk *w, uint32_t m) {
  for (uint32_t g = 0; g < w->n; g += m) walk_row(w, g, 1, w->n - g < m ? w->n - g : m);
  return walk_row(w, 0, m, (w->n + m - 1) / m);
}

uint32_t ccn__order_merges(ccn__order order, uint32_t group, uint32_t n, uint32_t anchor, ccn__merge *out) {
  walk w = {order, n, anchor, 0, out};
  if (n < 2) return 0;
  switch (order) {
  case CCN__ORDER_TREE: return walk_tree(&w);
  case CCN__ORDER_RING: return walk_row(&w, (anchor + 1) % n, 1, n);
  case CCN__ORDER_GROUPS: return walk_groups(&w, group ? group : 1);
  case CCN__ORDER_BINARY:
  case CCN__ORDER_DOUBLE: return walk_btree(&w, 0);
  default: return walk_row(&w, 0, 1, n);
  }
}

uint32_t ccn__order_slices(ccn__order order, uint32_t n) {
  return order == CCN__ORDER_RING ? n : order == CCN__ORDER_DOUBLE ? 2 : 1;
}
