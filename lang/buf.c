/* buf.c: the bytes of tensors: counted buffers, and pools that drop all of theirs at once.
 *
 * Header and data are one allocation, so that a buffer exists or does not. Buffers in the host's memory are a
 * header alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

enum { HEADER = 64 };
_Static_assert(sizeof(ccn__buf) <= HEADER, "data starts 64 bytes behind the header");

/* At least 256: from there on the heap aligns to 64. */
static size_t block_size(size_t bytes) { return HEADER + (bytes < 256 - HEADER ? 256 - HEADER : bytes); }

static void link_in(ccn__pool *p, ccn__buf *b) {
  b->pool = p;
  b->prev = NULL;
  b->next = p->first;
  if (b->next) b->next->prev = b;
  p->first = b;
}

static void link_out(ccn__buf *b) {
  if (b->prev) b->prev->next = b->next;
  else b->pool->first = b->next;
  if (b->next) b->next->prev = b->prev;
}

ccn__buf *ccn__buf_room(ccn__pool *p, size_t bytes) {
  if (bytes > SIZE_MAX / 2) ccn__throw(p->heap, CCN_OUT_OF_MEMORY);
  ccn__buf *b = ccn__heap_alloc_raw(p->heap, block_size(bytes));
  *b = (ccn__buf){.refs = 1, .bytes = bytes, .data = (char *)b + HEADER};
  link_in(p, b);
  return b;
}

ccn__buf *ccn__buf_new(ccn__pool *p, size_t bytes) {
  ccn__buf *b = ccn__buf_room(p, bytes);
  memset(b->data, 0xff, bytes); /* written once: large ones are much of the time of a run */
  return b;
}

ccn__buf *ccn__buf_outside(ccn__pool *p, void *data, size_t bytes, ccn__outside *o) {
  ccn__buf *b = ccn__heap_alloc(p->heap, sizeof *b);
  b->refs = 1;
  b->bytes = bytes;
  b->data = data;
  b->outside = o;
  o->bufs++;
  link_in(p, b);
  return b;
}

ccn__buf *ccn__buf_share(ccn__buf *b) {
  if (!b->outside) return ccn__buf_ref(b);
  ccn__buf *own = ccn__buf_new(b->pool, b->bytes);
  if (b->bytes) memcpy(own->data, b->data, b->bytes);
  return own;
}

static void free_buf(ccn__heap *h, ccn__buf *b) {
  ccn__outside *o = b->outside;
  ccn__heap_free(h, b, o ? sizeof *b : block_size(b->bytes));
  if (!o || --o->bufs) return;
  if (o->release) o->release(o->user);
  ccn__heap_free(h, o, sizeof *o);
}

void ccn__buf_unref(ccn__buf *b) {
  if (!b || --b->refs) return;
  link_out(b);
  free_buf(b->pool->heap, b);
}

void ccn__buf_move(ccn__buf *b, ccn__pool *to) {
  if (b->pool == to) return;
  link_out(b);
  link_in(to, b);
}

void ccn__pool_clear(ccn__pool *p) {
  for (ccn__buf *b = p->first, *next; b; b = next) {
    next = b->next;
    free_buf(p->heap, b);
  }
  p->first = NULL;
}
