/* double.c
 * Purpose: all-reduce over two binary trees at the same time, half of the elements each. Leaves of one
 *          tree are inner in the other, so that every rank sends and receives about once the data.
 * Order:   double.
 * Source:  Sanders, Speck, Traeff, "Two-tree algorithms", Parallel Computing 2009; NCCL's double binary
 *          tree.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

void ccn__generate_double(ccn__algorithm *a, const ccn__algo_want *want) {
  a->slices = 2;
  for (uint32_t r = 0; r < a->nranks; r++)
    for (uint32_t c = 0; c < 4; c++) ccn__algorithm_channel(a, r, c);
  for (uint32_t i = 0; i < 2; i++) {
    const ccn__btree_plan t = {.rank_at = ccn__double_rank,
                               .turn = i,
                               .chunk = i * want->chunks,
                               .chunks = want->chunks,
                               .up = 2 * i,
                               .down = 2 * i + 1};
    ccn__build_btree(a, &t);
  }
}
