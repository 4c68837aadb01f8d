/* dlpack_first.c: compiled as C and as C++: a host that includes its own dlpack.h before ccn_dlpack.h, and
 * the layout that both must have. SPDX-License-Identifier: Apache-2.0 */
#include "dlpack.h"

#include "ccn_dlpack.h"

#ifdef __cplusplus
#define ASSERT static_assert
#else
#define ASSERT _Static_assert
#endif

ASSERT(sizeof(DLTensor) == 48 && offsetof(DLTensor, byte_offset) == 40, "a tensor");
ASSERT(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56, "the older form");
ASSERT(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, flags) == 24 &&
         offsetof(DLManagedTensorVersioned, dl_tensor) == 32,
       "the newer form");

ccn_status give(ccn_context *c, DLManagedTensorVersioned *m, DLManagedTensor *old, ccn_tensor **out);
ccn_status give(ccn_context *c, DLManagedTensorVersioned *m, DLManagedTensor *old, ccn_tensor **out) {
  if (ccn_tensor_from_dlpack(c, NULL, &m, 1, out) == CCN_OK) return CCN_OK;
  return ccn_tensor_from_dlpack_old(c, NULL, &old, 1, out);
}
