/* npy.h: NumPy's .npy files (format 1.0, 2.0, 3.0) from and to memory. Input is hostile: every length is checked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_NPY_H
#define CCN_LANG_NPY_H

#include "num.h"

#define CCN__NPY_MAX_RANK 32
typedef struct ccn__npy {
  ccn__dtype dtype;
  bool fortran; /* first index fastest */
  uint32_t rank;
  int64_t dim[CCN__NPY_MAX_RANK];
  uint64_t elements;
  size_t data;  /* offset of the first byte of data in the file */
  bool swapped; /* big-endian: the reader must swap bytes */
} ccn__npy;

/* Reads a header. Returns NULL on success, else a static text that says what is wrong ("the file ends inside the
 * header", "dtype '<c8' has no counterpart"), lower case, no full stop. Checks that the data is all there and that
 * sizes do not overflow. */
const char *ccn__npy_parse(const void *file, size_t size, ccn__npy *out);
/* Writes the header byte for byte as numpy.save does (version 1.0, padded to 64 bytes, C order, little-endian).
 * `out` has room for CCN__NPY_HEADER_MAX bytes; returns the length, 0 for dtypes that NumPy lacks (bf16, f8, i4). */
#define CCN__NPY_HEADER_MAX 1024
size_t ccn__npy_header(ccn__dtype t, const int64_t *dim, uint32_t rank, char *out);

#endif
