/* philox.c: the counter-based random number generator and the hash that tells ranks apart.
 *
 * Philox4x32-10 from Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11. The
 * multipliers are theirs; the key grows by the fractions of the golden ratio and of sqrt(3).
 * SPDX-License-Identifier: Apache-2.0 */
#include "num.h"

void ccn__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

uint32_t ccn__coordinate_hash(const uint32_t *coordinate, uint32_t n) {
  if (n == 0) return 0;
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < n; i++) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      hash ^= coordinate[i] >> shift & 0xffu;
      hash *= 16777619u;
    }
  }
  return hash;
}
