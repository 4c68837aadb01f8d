/* api_dlpack.c: tensors in and out as DLPack, in both forms.
 *
 * Import borrows, or copies what is not row-major; the managed tensors are deleted with the memory's last
 * buffer, or at once after a copy. Export is a handle on a tensor of its own that shares the piece's buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ccn_dlpack.h"
#include "api.h"

/* ---- dtypes ---------------------------------------------------------------------------------------------- */

static const DLDataType dtypes[] = {
  [CCN_DTYPE_F64] = {kDLFloat, 64, 1}, [CCN_DTYPE_F32] = {kDLFloat, 32, 1},
  [CCN_DTYPE_F16] = {kDLFloat, 16, 1}, [CCN_DTYPE_BF16] = {kDLBfloat, 16, 1},
  [CCN_DTYPE_I64] = {kDLInt, 64, 1},   [CCN_DTYPE_I32] = {kDLInt, 32, 1},
  [CCN_DTYPE_I16] = {kDLInt, 16, 1},   [CCN_DTYPE_I8] = {kDLInt, 8, 1},
  [CCN_DTYPE_U8] = {kDLUInt, 8, 1},    [CCN_DTYPE_BOOL] = {kDLBool, 8, 1},
};

static bool find_dtype(DLDataType t, ccn_dtype *out) {
  for (size_t i = 0; i < CCN__COUNT(dtypes); i++)
    if (dtypes[i].code == t.code && dtypes[i].bits == t.bits && t.lanes == 1)
      return *out = (ccn_dtype)i, true;
  return false;
}

/* ---- import ---------------------------------------------------------------------------------------------- */

/* A managed tensor of either form. */
typedef struct managed {
  DLManagedTensorVersioned *new_form;
  DLManagedTensor *old_form;
  const DLTensor *t; /* NULL: nothing there */
} managed;

typedef struct import {
  ccn_context *context;
  ccn__make make;
  ccn_tensor_desc desc;
  bool copy;
  size_t n, bytes;
  void **pieces; /* behind the members, in the same block */
  managed at[];
} import;

static void delete_managed(import *x) {
  for (size_t i = 0; i < x->n; i++) {
    bool again = false; /* one pointer for several ranks */
    for (size_t k = 0; k < i; k++) again = again || x->at[k].t == x->at[i].t;
    if (again || !x->at[i].t) continue;
    if (x->at[i].new_form && x->at[i].new_form->deleter) x->at[i].new_form->deleter(x->at[i].new_form);
    if (x->at[i].old_form && x->at[i].old_form->deleter) x->at[i].old_form->deleter(x->at[i].old_form);
  }
}

/* With the last buffer: under the context's lock. */
static void release_import(void *user) {
  import *x = user;
  delete_managed(x);
  ccn__heap_free(&x->context->heap, x, x->bytes);
}

static const char *data_of(const DLTensor *t) {
  return t->data ? (const char *)t->data + t->byte_offset : NULL;
}

static bool row_major(const DLTensor *t) {
  int64_t stride = 1;
  for (int32_t d = 0; d < t->ndim; d++)
    if (t->shape[d] == 0) return true;
  for (int32_t d = t->ndim; d-- > 0;) {
    if (t->strides && t->shape[d] != 1 && t->strides[d] != stride) return false;
    stride *= t->shape[d];
  }
  return true;
}

/* Whether rank r's tensor is the piece that the placement gives it. */
static bool fits(const ccn__state *s, const import *x, const ccn__tensor *t, uint32_t r) {
  const DLTensor *d = x->at[x->n == 1 ? 0 : r].t;
  ccn__box box = {{0}, {0}, 0};
  if (!t->buf[r]) return true;
  ccn__box_of(&s->rt.mesh, r, t->rank, t->dim, t->place, &box);
  if (!d || d->ndim != t->rank || (box.elements && !d->data)) return false;
  for (uint32_t k = 0; k < t->rank; k++)
    if (d->shape[k] != box.extent[k]) return false;
  return true;
}

static void check_pieces(const ccn__state *s, const import *x) {
  const ccn__tensor *t = x->make.tensor->h.hold.v.tensor;
  for (uint32_t r = 0; r < t->world; r++)
    if (!fits(s, x, t, r)) ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
}

static void gather(const DLTensor *t, size_t item, void *out) {
  int64_t i[CCN_MAX_DIMS] = {0}, stride[CCN_MAX_DIMS], s = 1, n = 1;
  for (int32_t d = t->ndim; d-- > 0; s *= t->shape[d]) {
    stride[d] = t->strides ? t->strides[d] : s;
    n *= t->shape[d];
  }
  for (char *to = out; n-- > 0; to += item) {
    int64_t at = 0;
    for (int32_t d = 0; d < t->ndim; d++) at += i[d] * stride[d];
    memcpy(to, data_of(t) + at * (int64_t)item, item);
    for (int32_t d = t->ndim; d-- > 0 && ++i[d] == t->shape[d];) i[d] = 0;
  }
}

static void copy_pieces(import *x) {
  ccn__tensor *t = x->make.tensor->h.hold.v.tensor;
  for (uint32_t r = 0; r < t->world; r++) {
    bool done = !t->buf[r] || !t->buf[r]->bytes;
    for (uint32_t q = 0; q < r; q++) done = done || t->buf[q] == t->buf[r];
    if (!done) gather(x->at[x->n == 1 ? 0 : r].t, ccn_dtype_size(x->desc.dtype), t->buf[r]->data);
  }
}

static void make_import(ccn__state *s, import *x) {
  (x->copy ? ccn__tensor_zeros : ccn__tensor_borrowed)(s, &x->make);
  if (x->copy) {
    ccn__tensor *t = x->make.tensor->h.hold.v.tensor;
    bool whole = true;
    for (uint32_t a = 0; a < t->naxes; a++) whole = whole && t->place[a].kind == CCN__REPLICATED;
    if (x->n != t->world && !(x->n == 1 && whole)) ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
  }
  check_pieces(s, x);
  if (x->copy) copy_pieces(x);
}

/* The block of the import is made first, and goes with the buffers, or here. */
static void import_work(ccn__state *s, void *user) {
  const import *from = user;
  ccn__heap *heap = s->rt.heap;
  ccn__trap trap;
  import *x = ccn__heap_alloc(heap, from->bytes);
  memcpy(x, from, sizeof *x + from->n * sizeof *x->at);
  x->pieces = (void **)(void *)(x->at + x->n);
  for (size_t i = 0; i < x->n; i++) x->pieces[i] = x->at[i].t ? (void *)(uintptr_t)data_of(x->at[i].t) : NULL;
  x->make.desc = &x->desc;
  x->make.pieces = x->pieces;
  CCN__TRY(heap, trap)
  { make_import(s, x); }
  CCN__CATCH(heap, trap)
  {
    if (x->make.tensor) { /* what was made is taken back; the managed tensors stay the caller's */
      ccn__val_let(x->make.tensor->h.hold.v);
      x->make.tensor->h.hold.v = CCN__NONE_VAL;
      ccn_tensor_release(x->make.tensor);
    }
    ccn__heap_free(heap, x, x->bytes);
    ccn__throw(heap, trap.status);
  }
  ((import *)user)->make.tensor = x->make.tensor;
  if (x->copy) {
    release_import(x);
    return;
  }
  ccn__tensor *t = x->make.tensor->h.hold.v.tensor;
  for (uint32_t r = 0; r < t->world; r++) {
    if (!t->buf[r]) continue;
    t->buf[r]->outside->release = release_import;
    t->buf[r]->outside->user = x;
  }
}

/* What each tensor alone must be. */
static ccn_status look_at(import *x) {
  const DLTensor *first = NULL;
  ccn_dtype dtype = CCN_DTYPE_F64;
  for (size_t i = 0; i < x->n; i++) {
    const managed *m = &x->at[i];
    const DLTensor *t = m->t;
    if (!t) continue;
    if (m->new_form && m->new_form->version.major != 1) return CCN_UNSUPPORTED;
    if (t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost) return CCN_UNSUPPORTED;
    if (!find_dtype(t->dtype, &dtype)) return CCN_UNSUPPORTED;
    if (t->ndim < 0 || t->ndim > CCN_MAX_DIMS || (t->ndim && !t->shape)) return CCN_INVALID_ARGUMENT;
    if (!first) {
      first = t;
      if (!x->desc.size)
        x->desc =
          (ccn_tensor_desc){.size = sizeof x->desc, .dtype = dtype, .ndim = t->ndim, .shape = t->shape};
    }
    for (int32_t d = 0; d < t->ndim; d++)
      if (t->shape[d] < 0) return CCN_INVALID_ARGUMENT;
    if (dtype != x->desc.dtype) return CCN_INVALID_ARGUMENT;
    if (!row_major(t) || (uintptr_t)data_of(t) % ccn_dtype_size(dtype)) x->copy = true;
    if (m->new_form && (m->new_form->flags & DLPACK_FLAG_BITMASK_READ_ONLY)) x->make.read_only = 1;
  }
  return first ? CCN_OK : CCN_INVALID_ARGUMENT;
}

static ccn_status take(ccn_context *c, const ccn_tensor_desc *desc, DLManagedTensorVersioned *const *new_form,
                       DLManagedTensor *const *old_form, size_t n, ccn_tensor **out) {
  _Alignas(import) char block[sizeof(import) + CCN__MAX_RANKS * sizeof(managed)];
  import *x = (import *)(void *)block;
  if (out) *out = NULL;
  if (!c || !out || (!new_form && !old_form) || n < 1 || n > CCN__MAX_RANKS) return CCN_INVALID_ARGUMENT;
  memset(block, 0, sizeof block);
  x->context = c;
  x->n = x->make.npieces = n;
  x->bytes = sizeof *x + n * (sizeof *x->at + sizeof(void *));
  for (size_t i = 0; i < n; i++) {
    if (new_form) x->at[i].new_form = new_form[i];
    else x->at[i].old_form = old_form[i];
    if (new_form && new_form[i]) x->at[i].t = &new_form[i]->dl_tensor;
    if (old_form && old_form[i]) x->at[i].t = &old_form[i]->dl_tensor;
  }
  if (desc && !ccn__read_desc(desc, &x->desc, &x->make.bytes)) return CCN_INVALID_ARGUMENT;
  if (desc) x->desc.size = sizeof x->desc;
  ccn_status status = look_at(x);
  const ccn_tensor_desc full = x->desc;
  if (status == CCN_OK && !ccn__read_desc(&full, &x->desc, &x->make.bytes)) status = CCN_INVALID_ARGUMENT;
  if (status == CCN_OK) status = ccn__guarded(c, &c->session, CCN__NESTS, import_work, x);
  if (status == CCN_OK) *out = x->make.tensor;
  return status;
}

ccn_status ccn_tensor_from_dlpack(ccn_context *c, const ccn_tensor_desc *desc,
                                  struct DLManagedTensorVersioned *const *managed_tensors, size_t n,
                                  ccn_tensor **out) {
  return take(c, desc, managed_tensors, NULL, n, out);
}

ccn_status ccn_tensor_from_dlpack_old(ccn_context *c, const ccn_tensor_desc *desc,
                                      struct DLManagedTensor *const *managed_tensors, size_t n,
                                      ccn_tensor **out) {
  return take(c, desc, NULL, managed_tensors, n, out);
}

/* ---- export ---------------------------------------------------------------------------------------------- */

typedef struct export {
  ccn__handle h;
  DLManagedTensorVersioned new_form;
  DLManagedTensor old_form;
  int64_t shape[CCN_MAX_DIMS], strides[CCN_MAX_DIMS];
}
export;

static void delete_new(DLManagedTensorVersioned *m) { ccn__handle_release(&((export *)m->manager_ctx)->h); }
static void delete_old(DLManagedTensor *m) { ccn__handle_release(&((export *)m->manager_ctx)->h); }

typedef struct export_work {
  const ccn_tensor *tensor;
  uint32_t rank;
  export *out;
} export_work;

static void export_piece(ccn__state *s, void *user) {
  export_work *w = user;
  ccn__tensor *t = w->tensor->h.hold.v.tensor;
  ccn_piece p = {.size = sizeof p};
  ccn__tensor_settle(&s->rt, t);
  ccn_status status = ccn_tensor_piece(w->tensor, w->rank, &p);
  if (status != CCN_OK) ccn__throw(s->rt.heap, status);
  ccn__tensor *own = ccn__tensor_new(&s->rt, (ccn__dtype)t->dtype, t->rank);
  own->host_only = true;
  export *e = ccn__handle_new(s, sizeof *e, (ccn__val){.kind = CCN__V_TENSOR, .tensor = own});
  ccn__buf *b = own->buf[0] = ccn__buf_ref(t->buf[w->rank]);
  memcpy(e->shape, p.extent, sizeof e->shape);
  memcpy(e->strides, p.strides, sizeof e->strides);
  DLTensor d = {.data = b->data,
                .device = {kDLCPU, 0},
                .ndim = t->rank,
                .dtype = dtypes[t->dtype],
                .shape = e->shape,
                .strides = e->strides};
  e->new_form =
    (DLManagedTensorVersioned){.version = {1, 0}, .manager_ctx = e, .deleter = delete_new, .dl_tensor = d};
  if (!b->outside || b->outside->read_only) e->new_form.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  e->old_form = (DLManagedTensor){.manager_ctx = e, .deleter = delete_old, .dl_tensor = d};
  w->out = e;
}

static ccn_status give(ccn_tensor *t, uint32_t rank, export **out) {
  export_work w = {.tensor = t, .rank = rank};
  ccn_status status = ccn__guarded(t->h.state->context, &t->h.state, CCN__NESTS, export_piece, &w);
  *out = w.out;
  return status;
}

ccn_status ccn_tensor_to_dlpack(ccn_tensor *t, uint32_t rank, uint32_t max_major, uint32_t max_minor,
                                struct DLManagedTensorVersioned **out) {
  export *e = NULL;
  (void)max_minor; /* what is given is 1.0, which every reader of a 1.x reads */
  if (out) *out = NULL;
  if (!t || !out) return CCN_INVALID_ARGUMENT;
  if (max_major < 1) return CCN_UNSUPPORTED;
  ccn_status status = give(t, rank, &e);
  if (status == CCN_OK) *out = &e->new_form;
  return status;
}

ccn_status ccn_tensor_to_dlpack_old(ccn_tensor *t, uint32_t rank, struct DLManagedTensor **out) {
  export *e = NULL;
  if (out) *out = NULL;
  if (!t || !out) return CCN_INVALID_ARGUMENT;
  ccn_tensor_info info = {.size = sizeof info};
  if (ccn_tensor_info_get(t, &info) == CCN_OK && info.read_only) return CCN_UNSUPPORTED;
  ccn_status status = give(t, rank, &e);
  if (status == CCN_OK) *out = &e->old_form;
  return status;
}
