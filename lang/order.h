/* order.h: the order in which a reducing collective adds, as an expression over the ranks.
 *
 * Place in the pipeline: beside the graph. A node's attribute `order` names a family and, for some, a
 * number; for a number of ranks and an anchor the family is one binary tree over the ranks. The
 * interpreter evaluates it, a collective algorithm (algorithm.h) declares it, the validator compares with
 * it.
 *
 * The anchor is the rank where the sum is complete: of a reduce its root, of a reduce-scatter the owner of
 * the slice, of an all-reduce the slice's number. Families that do not turn with it ignore it: rank, axis,
 * tree, groups.
 *   rank       ((r0 + r1) + r2) + ...
 *   tree       adjacent pairs, absent ones skipped: ((r0 + r1) + (r2 + r3)) + r4
 *   ring       the chain that ends at the anchor: ((r[a+1] + r[a+2]) + ...) + r[a]
 *   groups(m)  neighbours m by m in rank order, then those sums in rank order
 *   binary     a binary tree read from left to right, (left + own) + right, whose root is the anchor;
 *              position p of the tree is rank (p + anchor) mod n; its shape is btree's below
 *   double     of an all-reduce: the first half of the elements over one binary tree, the second over
 *              another in which the leaves of the first are inner (mirrored for even n, turned by one for
 *              odd n)
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_ORDER_H
#define CCN_LANG_ORDER_H

#include "op.h"

/* An expression over n ranks as n - 1 merges. Lane i begins as rank i's contribution; a merge puts
 * lane[to] + lane[from] (in this order of operands) in lane[to], and `from` is used up. */
typedef struct ccn__merge {
  uint16_t to, from;
} ccn__merge;

/* The n - 1 merges of this order; returns the lane that holds the sum. `axis` and `any` give rank order:
 * of the first the caller knows the axes, of the second nobody knows more. */
uint32_t ccn__order_merges(ccn__order order, uint32_t group, uint32_t n, uint32_t anchor, ccn__merge *out);
/* Into how many slices (by ccn__slice_range over its row-major elements, unit 1) an all-reduce over n
 * ranks is cut, each with the number of the slice as its anchor; 1: the order is the same for all
 * elements, with anchor 0. */
uint32_t ccn__order_slices(ccn__order order, uint32_t n);

/* The binary tree of NCCL: position 0 is the root and has one child; a position's lowest set bit is its
 * height, so odd ones are leaves, and an in-order walk visits the positions in order. CCN__NOBODY where
 * there is none. */
#define CCN__NOBODY UINT16_MAX
typedef struct ccn__btree {
  uint16_t up, left, right; /* positions */
} ccn__btree;
ccn__btree ccn__btree_at(uint32_t n, uint32_t position);
/* Where tree t (0 or 1) of the double tree has its position p, and back. */
uint32_t ccn__double_rank(uint32_t n, uint32_t t, uint32_t position);
uint32_t ccn__double_position(uint32_t n, uint32_t t, uint32_t rank);

/* The value of the attribute: a family and its number. */
static inline int64_t ccn__order_pack(ccn__order order, uint32_t group) {
  return (int64_t)order | (int64_t)group << 8;
}
static inline ccn__order ccn__order_of(int64_t packed) { return (ccn__order)(packed & 255); }
static inline uint32_t ccn__order_group(int64_t packed) { return (uint32_t)(packed >> 8); }
/* Whether it is one: a number stands at `groups` and nowhere else, from 1 to 2^16. */
bool ccn__order_valid(int64_t packed);
bool ccn__order_numbered(ccn__order order);
void ccn__order_print(int64_t packed, ccn__text *out); /* "ring", "groups(4)" */

#endif
