/* safetensors.h: the safetensors format from and to memory. Input is hostile: every length is checked.
 *
 * The file: the length of the header (8 bytes, little-endian), the header, the data. The header is JSON,
 *   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
 *    "__metadata__": {"key": "text"}}
 * padded with blanks; offsets count from the start of the data, which the ranges fill without overlap and
 * without holes. Elements lie in C order, little-endian. https://github.com/huggingface/safetensors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_SAFETENSORS_H
#define CCN_LANG_SAFETENSORS_H

#include "base.h"
#include "num.h"

#define CCN__SAFETENSORS_MAX_HEADER 100000000 /* bytes, as in the reference */
#define CCN__SAFETENSORS_MAX_RANK 32

/* One tensor of a file. To write one, name, name_size, dtype, rank and dim are what counts. `refused` is, for
 * example, "dtype F8_E4M3 has no counterpart in CCN". */
typedef struct ccn__safetensor {
  const char *name; /* UTF-8, without zero bytes; a NUL follows in files that were read */
  size_t name_size;
  const char *refused; /* NULL, or why CCN cannot hold it; then dtype is F32 */
  ccn__dtype dtype;
  uint32_t rank;
  const int64_t *dim;
  uint64_t elements;
  size_t offset, bytes; /* of its data in the file */
} ccn__safetensor;

typedef struct ccn__safetensors_text {
  const char *key, *value;
  size_t key_size, value_size;
} ccn__safetensors_text;

typedef struct ccn__safetensors {
  const ccn__safetensor *at; /* in the order of the header */
  uint32_t n;
  const ccn__safetensors_text *metadata;
  uint32_t nmetadata;
  const uint32_t *by_name; /* indices, sorted */
} ccn__safetensors;

/* Reads and checks the whole header; what *out points to lies in `a`. Returns NULL on success, else a static
 * text that says what is wrong ("the file ends inside the data", "two tensors have the same name"), lower
 * case, no full stop. A dtype that the format has and CCN lacks spoils only its own tensor (`refused`). */
const char *ccn__safetensors_open(ccn__arena *a, const void *file, size_t size, ccn__safetensors *out);
const ccn__safetensor *ccn__safetensors_find(const ccn__safetensors *s, const char *name,
                                             size_t size); /* or NULL */

/* Adds length, header and padding (to 8 bytes) to *out; then the data of the tensors belong behind it, in the
 * order given and without gaps, *out_data bytes of it. The same arguments give the same bytes. Returns NULL,
 * or a static text (and then *out is as it was). */
const char *ccn__safetensors_header(ccn__arena *a, const ccn__safetensor *t, uint32_t n,
                                    const ccn__safetensors_text *metadata, uint32_t nmetadata, ccn__text *out,
                                    size_t *out_data);
/* The same with the data: data[i] holds the elements of t[i]. The file lies in `a`. */
const char *ccn__safetensors_write(ccn__arena *a, const ccn__safetensor *t, const void *const *data,
                                   uint32_t n, const ccn__safetensors_text *metadata, uint32_t nmetadata,
                                   void **out_file, size_t *out_size);

#endif
