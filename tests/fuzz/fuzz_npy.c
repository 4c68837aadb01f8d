/* fuzz_npy.c: libFuzzer target for ccn__npy_parse: whatever it accepts must keep its promises.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
  if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ccn__npy npy;
  const char *error = ccn__npy_parse(data, size, &npy);
  if (error) {
    const size_t n = strlen(error);
    require(n > 0 && error[n - 1] != '.');
    return 0;
  }
  const size_t item = ccn__dtype_size(npy.dtype);
  require(item > 0 && npy.rank <= CCN__NPY_MAX_RANK && npy.data <= size);
  require(npy.elements <= (size - npy.data) / item);
  uint64_t product = 1;
  for (uint32_t i = 0; i < npy.rank; i++) {
    require(npy.dim[i] >= 0);
    product *= (uint64_t)npy.dim[i];
  }
  require(product == npy.elements);
  /* what we write of it reads back as the same thing */
  char header[CCN__NPY_HEADER_MAX];
  const size_t length = ccn__npy_header(npy.dtype, npy.dim, npy.rank, header);
  require(length > 0 && length % 64 == 0);
  ccn__npy again;
  error = ccn__npy_parse(header, length, &again);
  require(npy.elements == 0 ? error == NULL
                            : error != NULL && strcmp(error, "the file ends inside the data") == 0);
  require(again.dtype == npy.dtype && again.rank == npy.rank && again.data == length);
  require(memcmp(again.dim, npy.dim, sizeof npy.dim) == 0 && !again.fortran && !again.swapped);
  return 0;
}
