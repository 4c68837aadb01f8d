/* script_files.h: what load and save share with the formats of files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_SCRIPT_FILES_H
#define CCN_LANG_SCRIPT_FILES_H

#include "npy.h"
#include "script.h"

/* CCN0701 or CCN0702 with the reason of the errno value e. */
CCN__NORETURN void ccn__file_error(ccn__rt *rt, uint16_t code, const ccn__arg *path, int e);

/* What a file holds: elements in row-major order, in the byte order of this machine, not aligned. */
typedef struct ccn__held {
  ccn__dtype dtype;
  uint32_t rank; /* at most CCN__MAX_RANK */
  const int64_t *dim;
  const char *data;
} ccn__held;
/* A tensor of it: replicated, or with the type and the placement of `as` (may be NULL), which is checked. */
ccn__tensor *ccn__held_tensor(ccn__rt *rt, const ccn__arg *as, const ccn__held *h);
/* The whole of a value, on every rank; raises CCN0805 for what has none. */
ccn__tensor *ccn__whole_to_save(ccn__rt *rt, ccn__val v, ccn__span span);

/* script_safetensors.c */
ccn__val ccn__load_safetensors(ccn__rt *rt, const ccn__builtin_call *c, const char *file, size_t size);
void ccn__save_safetensors(ccn__rt *rt, const ccn__builtin_call *c, const char *path);

#endif
