/* fuzz_safetensors.c: libFuzzer target for ccn__safetensors_open: whatever it accepts keeps its promises, and
 * what is written of it reads back as the same.
 *
 * An input that starts with 'j' is a header: the length is put before it and as much data behind it as the
 * rest of the input asks for, since random bytes rarely hit the length.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size, (void)user;
  if (new_size) return aligned_alloc(align, (new_size + align - 1) / align * align);
  free(p);
  return NULL;
}

static void require(bool condition) {
  if (!condition) abort();
}

static void check_tensor(const ccn__safetensors *s, const ccn__safetensor *t, size_t size) {
  uint64_t product = 1;
  require(t->name[t->name_size] == '\0' && strlen(t->name) == t->name_size &&
          t->rank <= CCN__SAFETENSORS_MAX_RANK);
  for (uint32_t i = 0; i < t->rank; i++) {
    require(t->dim[i] >= 0);
    product *= (uint64_t)t->dim[i];
  }
  require(product == t->elements && t->offset <= size && t->bytes <= size - t->offset);
  if (!t->refused) require(t->elements == t->bytes / ccn__dtype_size(t->dtype));
  require(ccn__safetensors_find(s, t->name, t->name_size) == t);
}

static bool same_tensor(const ccn__safetensor *a, const uint8_t *fa, const ccn__safetensor *b,
                        const uint8_t *fb) {
  return a->name_size == b->name_size && memcmp(a->name, b->name, a->name_size) == 0 &&
         a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0) && a->bytes == b->bytes &&
         (a->bytes == 0 || memcmp(fa + a->offset, fb + b->offset, a->bytes) == 0);
}

static void write_again(ccn__arena *a, const ccn__safetensors *s, const uint8_t *file) {
  const void **data = CCN__NEWN(a, const void *, s->n);
  ccn__safetensors again;
  void *out = NULL;
  size_t out_size = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->at[i].refused) return;
    data[i] = file + s->at[i].offset;
  }
  require(!ccn__safetensors_write(a, s->at, data, s->n, s->metadata, s->nmetadata, &out, &out_size));
  require(!ccn__safetensors_open(a, out, out_size, &again));
  require(again.n == s->n && again.nmetadata == s->nmetadata && again.at[0].offset % 8 == 0);
  for (uint32_t i = 0; i < s->n; i++) require(same_tensor(&s->at[i], file, &again.at[i], out));
}

static void check(ccn__arena *a, const uint8_t *file, size_t size) {
  ccn__safetensors s;
  const char *error = ccn__safetensors_open(a, file, size, &s);
  if (error) {
    require(*error && error[strlen(error) - 1] != '.');
    return;
  }
  for (uint32_t i = 0; i < s.n; i++) check_tensor(&s, &s.at[i], size);
  require(!ccn__safetensors_find(&s, "\xFF", 1));
  if (s.n) write_again(a, &s, file);
}

/* 'j', how much data (2 bytes), the header. */
static void check_header(ccn__arena *a, const uint8_t *data, size_t size) {
  const size_t length = size - 3, extra = (size_t)data[1] | (size_t)data[2] << 8;
  uint8_t *file = malloc(8 + length + extra); /* exactly so many bytes */
  if (!file) return;
  memset(file, 0, 8);
  for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)length >> 8 * i);
  if (length) memcpy(file + 8, data + 3, length);
  memset(file + 8 + length, 7, extra);
  check(a, file, 8 + length + extra);
  free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ccn__heap heap = {.alloc = host_alloc};
  ccn__trap trap;
  ccn__arena arena;
  ccn__arena_init(&arena, &heap);
  CCN__TRY(&heap, trap)
  {
    if (size >= 3 && data[0] == 'j') check_header(&arena, data, size);
    else check(&arena, data, size);
  }
  CCN__CATCH(&heap, trap)
  { require(trap.status == CCN_OUT_OF_MEMORY); }
  ccn__arena_free(&arena);
  require(heap.live == 0);
  return 0;
}
