/* fuzz_loader.c: libFuzzer target for the loader of kernels' code: any bytes are refused with a reason, or
 * become memory that is never executed here. The first byte chooses the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
  if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *why = NULL;
  if (size == 0) return 0;
  const bool good = ccn__jit_check(data + 1, size - 1, data[0] & 1 ? 183 : 62, &why);
  require(good == !why);
  ccn__jit_code *c = ccn__jit_load(data + 1, size - 1, &why); /* for this machine */
  require((c == NULL) == (why != NULL));
  if (c) (void)ccn__jit_symbol(c, "k0");
  ccn__jit_unload(c);
  return 0;
}
