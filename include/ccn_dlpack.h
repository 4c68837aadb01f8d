/* ccn_dlpack.h: tensors in and out as DLPack, without a copy.
 *
 * The structs are those of dlpack.h 1.0 (https://github.com/dmlc/dlpack, Apache-2.0). A host that has
 * dlpack.h includes it before this header, whose own declarations then are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_DLPACK_H
#define CCN_DLPACK_H

#include "ccn.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef struct DLPackVersion {
  uint32_t major, minor; /* of another major only the deleter may be used */
} DLPackVersion;

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
typedef struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
} DLDataTypeCode;
typedef struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif
struct DLManagedTensorVersioned; /* headers before 1.0 have only the older form */

/* Makes a tensor of memory that others own. managed[i] is the piece of world rank i; `n` is the number of
 * ranks, or 1 for a value that is replicated. desc gives dtype, global shape and placement; NULL: those of
 * managed[0], replicated. Ranks that hold copies of one piece are given the same pointer; those that hold
 * nothing get NULL.
 *
 * Row-major pieces are borrowed: an `update` of the tensor writes into them, or, if the flags say read-only,
 * is refused (CCN0226). The older form has no flags and counts as writable. If one is not row-major, or not
 * aligned to its dtype, all are copied.
 *
 * On success CCN owns the managed tensors: each deleter is called exactly once, when the memory is not
 * needed any more, perhaps before this returns, from whatever thread lets go of it last; it may use a CCN
 * context only for release functions. On failure the caller still owns them. Errors: CCN_UNSUPPORTED (a
 * device that is not the host's memory, lanes, complex numbers, another major version: only call its
 * deleter), CCN_INVALID_ARGUMENT (shapes or dtypes that differ from desc), as ccn_tensor_create. May be
 * called from host functions. Since: 0.1. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_from_dlpack(ccn_context *c, const ccn_tensor_desc *desc,
                                                        struct DLManagedTensorVersioned *const *managed,
                                                        size_t n, ccn_tensor **out_tensor);
CCN_API CCN_NODISCARD ccn_status ccn_tensor_from_dlpack_old(ccn_context *c, const ccn_tensor_desc *desc,
                                                            struct DLManagedTensor *const *managed, size_t n,
                                                            ccn_tensor **out_tensor);

/* Rank `rank`'s piece for others, without a copy; of a replicated value any rank's. It goes with its
 * deleter, from any thread, also when the context is gone. It keeps the bytes of now: a later update gives
 * the tensor new ones. Borrowed memory excepted: there an update is seen. It is marked read-only, borrowed
 * writable memory excepted. max_major and max_minor are the newest version that the receiver reads
 * (`max_version` of Python's __dlpack__). In the older form nothing is marked; the receiver must not write.
 * Errors: CCN_NOT_FOUND (the rank holds nothing), CCN_UNSUPPORTED (no version that the receiver reads; in
 * the older form: borrowed read-only memory). Since: 0.1. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_to_dlpack(ccn_tensor *t, uint32_t rank, uint32_t max_major,
                                                      uint32_t max_minor,
                                                      struct DLManagedTensorVersioned **out);
CCN_API CCN_NODISCARD ccn_status ccn_tensor_to_dlpack_old(ccn_tensor *t, uint32_t rank,
                                                          struct DLManagedTensor **out);

#ifdef __cplusplus
}
#endif
#endif
