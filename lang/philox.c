/* philox.c: the counter-based random number generator and the hash that tells ranks apart.
 *
 * Philox4x32-10 from Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11. The
 * multipliers are theirs; the key grows by the fractions of the golden ratio and of sqrt(3).
 * SPDX-License-Identifier: Apache-2.0 */
#include "num.h"

#include <string.h>

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

/* The rounds outside, the blocks inside: the inner loop vectorises. */
enum { LANES = 32 };

static void lanes(const int64_t *index, const uint32_t high[2], const uint32_t key[2], uint32_t *w0,
                  uint32_t *w1) {
  uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES], k0 = key[0], k1 = key[1];
  for (int i = 0; i < LANES; i++) {
    c0[i] = (uint32_t)(uint64_t)index[i];
    c1[i] = (uint32_t)((uint64_t)index[i] >> 32);
    c2[i] = high[0];
    c3[i] = high[1];
  }
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < LANES; i++) {
      const uint64_t p0 = (uint64_t)0xd2511f53u * c0[i], p1 = (uint64_t)0xcd9e8d57u * c2[i];
      c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = (uint32_t)p1;
      c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = (uint32_t)p0;
    }
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  memcpy(w0, c0, sizeof c0);
  memcpy(w1, c1, sizeof c1);
}

void ccn__philox_words(const int64_t *index, size_t n, const uint32_t high[2], const uint32_t key[2],
                       uint32_t *w0, uint32_t *w1) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) lanes(index + i, high, key, w0 + i, w1 + i);
  for (; i < n; i++) {
    const uint64_t e = (uint64_t)index[i];
    uint32_t out[4];
    ccn__philox((const uint32_t[]){(uint32_t)e, (uint32_t)(e >> 32), high[0], high[1]}, key, out);
    w0[i] = out[0];
    w1[i] = out[1];
  }
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
