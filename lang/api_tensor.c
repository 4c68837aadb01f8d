/* api_tensor.c: tensors of the host: made, borrowed, looked at, read and written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "call.h"
#include "parser.h"

#define SAME_DTYPE(x) \
  _Static_assert((int)CCN_DTYPE_##x == (int)CCN__##x, "ccn_dtype counts as dtype.def does")
SAME_DTYPE(F64);
SAME_DTYPE(F32);
SAME_DTYPE(F16);
SAME_DTYPE(BF16);
SAME_DTYPE(I64);
SAME_DTYPE(I32);
SAME_DTYPE(I16);
SAME_DTYPE(I8);
SAME_DTYPE(U8);
SAME_DTYPE(BOOL);
_Static_assert(CCN_MAX_DIMS == CCN__MAX_RANK, "the public limit is the language's");

static bool is_dtype(ccn_dtype t) { return (unsigned)t <= CCN_DTYPE_BOOL; }

size_t ccn_dtype_size(ccn_dtype t) { return is_dtype(t) ? ccn__dtype_size((ccn__dtype)t) : 0; }

const char *ccn_dtype_name(ccn_dtype t) { return is_dtype(t) ? ccn__dtype_name((ccn__dtype)t) : NULL; }

/* ---- placements ------------------------------------------------------------------------------------------ */

struct ccn__places { /* read once, found again */
  struct ccn__places *next;
  const char *text;
  uint32_t rank;
  ccn__cplace place[CCN__MAX_AXES];
};

/* "f32[0, 0] sliced(0) over dp" */
static const char *as_type(ccn__rt *rt, uint32_t rank, const char *placement) {
  ccn__text t;
  ccn__text_init(&t, rt->arena);
  ccn__text_puts(&t, "f32");
  for (uint32_t d = 0; d < rank; d++) ccn__text_puts(&t, d ? ", 0" : "[0");
  ccn__text_printf(&t, "%s %s", rank ? "]" : "", placement);
  return t.at;
}

static const ccn__cplace *placement(ccn__state *s, uint32_t rank, const char *text) {
  static const ccn__cplace replicated[CCN__MAX_AXES];
  ccn__rt *rt = &s->rt;
  if (!text || !*text) return replicated;
  for (struct ccn__places *p = s->places; p; p = p->next)
    if (p->rank == rank && !strcmp(p->text, text)) return p->place;
  ccn__report_begin(s);
  const char *type = as_type(rt, rank, text);
  const ccn__ast *ast =
    ccn__parse_type(&s->arena, &s->names, &s->diags, ccn__source_add(rt, "<placement>", type, strlen(type)));
  if (!ast) ccn__throw(rt->heap, CCN_ERROR);
  ccn__env *env = ccn__env_new(rt, NULL);
  ccn__roots_push(rt, env);
  ccn__val v = ccn__eval_type(rt, env, ast, false);
  rt->roots.n--;
  struct ccn__places *p = CCN__NEW(&s->arena, struct ccn__places);
  memcpy(p->place, v.type->place, sizeof p->place);
  p->text = ccn__arena_strndup(&s->arena, text, strlen(text));
  p->rank = rank;
  p->next = s->places;
  s->places = p;
  return p->place;
}

/* ---- making tensors -------------------------------------------------------------------------------------- */

ccn_tensor *ccn__tensor_handle(ccn__state *s, ccn__tensor *t) {
  ccn__text text;
  ccn__scratch_begin(&s->rt, &text);
  ccn__tensor_placement(&s->rt, t, &text);
  const char *place = ccn__intern(&s->names, text.n ? text.at + 1 : "", text.n ? text.n - 1 : 0);
  ccn__scratch_end(&s->rt);
  ccn_tensor *h = ccn__handle_new(s, sizeof *h, (ccn__val){.kind = CCN__V_TENSOR, .tensor = t});
  h->placement = place;
  return h;
}

/* Bytes of the whole value; false if that is no size. */
static bool whole_bytes(int32_t ndim, const int64_t *shape, size_t item, size_t *out) {
  *out = item;
  for (int32_t d = 0; d < ndim; d++) {
    if (shape[d] < 0) return false;
    if (shape[d] == 0) *out = 0;
  }
  for (int32_t d = 0; d < ndim && *out; d++)
    if (__builtin_mul_overflow(*out, (size_t)shape[d], out) || *out > SIZE_MAX / 4) return false;
  return true;
}

bool ccn__read_desc(const ccn_tensor_desc *given, ccn_tensor_desc *d, size_t *bytes) {
  if (!given || given->size < offsetof(ccn_tensor_desc, placement)) return false;
  *d = (ccn_tensor_desc){0};
  memcpy(d, given, given->size < sizeof *d ? given->size : sizeof *d);
  if (!is_dtype(d->dtype) || d->ndim < 0 || d->ndim > CCN_MAX_DIMS || (d->ndim && !d->shape)) return false;
  return whole_bytes(d->ndim, d->shape, ccn_dtype_size(d->dtype), bytes);
}

static ccn__tensor *shell(ccn__state *s, const ccn_tensor_desc *d) {
  const ccn__cplace *place = placement(s, (uint32_t)d->ndim, d->placement);
  ccn__tensor *t = ccn__tensor_new(&s->rt, (ccn__dtype)d->dtype, (uint32_t)d->ndim);
  for (int32_t k = 0; k < d->ndim; k++) t->dim[k] = d->shape[k];
  memcpy(t->place, place, sizeof t->place);
  t->host_only = true;
  return t;
}

void ccn__tensor_zeros(ccn__state *s, void *user) {
  ccn__make *w = user;
  ccn__tensor *t = shell(s, w->desc);
  for (uint32_t r = 0; r < t->world; r++) {
    ccn__box box;
    uint32_t twin = ccn__rank_twin(&s->rt.mesh, r, t->place);
    if (!ccn__rank_has(&s->rt.mesh, r, t->place)) continue;
    if (twin != r) {
      t->buf[r] = ccn__buf_ref(t->buf[twin]);
      continue;
    }
    ccn__box_of(&s->rt.mesh, r, t->rank, t->dim, t->place, &box);
    t->buf[r] = ccn__buf_new(&s->rt.pool, (size_t)box.elements * ccn_dtype_size(w->desc->dtype));
    memset(t->buf[r]->data, 0, t->buf[r]->bytes);
  }
  w->tensor = ccn__tensor_handle(s, t);
}

ccn_status ccn_tensor_create(ccn_context *c, const ccn_tensor_desc *desc, ccn_tensor **out) {
  ccn_tensor_desc d;
  ccn__make w = {.desc = &d};
  if (out) *out = NULL;
  if (!c || !out || !ccn__read_desc(desc, &d, &w.bytes)) return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, &c->session, CCN__NESTS, ccn__tensor_zeros, &w);
  *out = w.tensor;
  return status;
}

static void make_copy(ccn__state *s, void *user) {
  ccn__make *w = user;
  const ccn_tensor_desc *d = w->desc;
  const ccn__cplace *place = placement(s, (uint32_t)d->ndim, d->placement);
  ccn__tensor *t =
    ccn__tensor_place(&s->rt, (ccn__dtype)d->dtype, (uint32_t)d->ndim, d->shape, place, w->data);
  t->host_only = true;
  w->tensor = ccn__tensor_handle(s, t);
}

ccn_status ccn_tensor_copy_in(ccn_context *c, const ccn_tensor_desc *desc, const void *data, size_t bytes,
                              ccn_tensor **out) {
  ccn_tensor_desc d;
  ccn__make w = {.desc = &d, .data = data};
  if (out) *out = NULL;
  if (!c || !out || (!data && bytes) || !ccn__read_desc(desc, &d, &w.bytes) || w.bytes != bytes)
    return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, &c->session, CCN__NESTS, make_copy, &w);
  *out = w.tensor;
  return status;
}

/* ---- the host's own memory ------------------------------------------------------------------------------- */

/* The host's piece of rank r; throws if it cannot be that. */
static void *piece_of(ccn__state *s, const ccn__make *w, const ccn__tensor *t, uint32_t r, size_t bytes) {
  void *data = w->npieces == 1 ? w->pieces[0] : w->pieces[r];
  uint32_t twin = ccn__rank_twin(&s->rt.mesh, r, t->place);
  bool good = (data || !bytes) && (uintptr_t)data % ccn_dtype_size(w->desc->dtype) == 0;
  if (w->npieces > 1 && data != w->pieces[twin]) good = false;
  if (!good) ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
  return data;
}

static void borrow_pieces(ccn__state *s, ccn__make *w, ccn__tensor *t, ccn__outside *o) {
  for (uint32_t r = 0; r < t->world; r++) {
    ccn__box box;
    uint32_t twin = ccn__rank_twin(&s->rt.mesh, r, t->place);
    if (!ccn__rank_has(&s->rt.mesh, r, t->place)) continue;
    ccn__box_of(&s->rt.mesh, r, t->rank, t->dim, t->place, &box);
    size_t bytes = (size_t)box.elements * ccn_dtype_size(w->desc->dtype);
    void *data = piece_of(s, w, t, r, bytes);
    t->buf[r] = twin != r ? ccn__buf_ref(t->buf[twin]) : ccn__buf_outside(&s->rt.pool, data, bytes, o);
  }
  w->tensor = ccn__tensor_handle(s, t);
}

void ccn__tensor_borrowed(ccn__state *s, void *user) {
  ccn__make *w = user;
  ccn__trap trap;
  ccn__tensor *t = shell(s, w->desc);
  bool replicated = true;
  for (uint32_t a = 0; a < t->naxes; a++) replicated = replicated && t->place[a].kind == CCN__REPLICATED;
  if (w->npieces != t->world && !(w->npieces == 1 && replicated))
    ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
  ccn__outside *o = ccn__heap_alloc(s->rt.heap, sizeof *o);
  CCN__TRY(s->rt.heap, trap)
  { borrow_pieces(s, w, t, o); }
  CCN__CATCH(s->rt.heap, trap)
  { /* the host keeps its memory; what stands in it goes with t */
    if (!o->bufs) ccn__heap_free(s->rt.heap, o, sizeof *o);
    ccn__throw(s->rt.heap, trap.status);
  }
  o->read_only = w->read_only != 0;
  o->release = w->release;
  o->user = w->user;
}

ccn_status ccn_tensor_borrow(ccn_context *c, const ccn_tensor_desc *desc, void *const *data, size_t ndata,
                             int read_only, void (*release)(void *user), void *user, ccn_tensor **out) {
  ccn_tensor_desc d;
  ccn__make w = {
    .desc = &d, .pieces = data, .npieces = ndata, .read_only = read_only, .release = release, .user = user};
  if (out) *out = NULL;
  if (!c || !out || !data || !ndata || !ccn__read_desc(desc, &d, &w.bytes)) return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, &c->session, CCN__NESTS, ccn__tensor_borrowed, &w);
  *out = status == CCN_OK ? w.tensor : NULL;
  return status;
}

/* ---- looking at them ------------------------------------------------------------------------------------- */

static ccn__tensor *tensor_of(const ccn_tensor *t) { return t->h.hold.v.tensor; }

static void row_major(int32_t ndim, const int64_t *extent, int64_t *out) {
  int64_t stride = 1;
  for (int32_t d = ndim; d-- > 0;) {
    out[d] = stride;
    stride *= extent[d] > 0 ? extent[d] : 1;
  }
}

ccn_status ccn_tensor_info_get(const ccn_tensor *h, ccn_tensor_info *out) {
  if (!h || !out || out->size < offsetof(ccn_tensor_info, shape)) return CCN_INVALID_ARGUMENT;
  const ccn__tensor *t = tensor_of(h);
  ccn_tensor_info i = {.size = out->size,
                       .dtype = (ccn_dtype)t->dtype,
                       .ndim = t->rank,
                       .ranks = t->world,
                       .placement = h->placement,
                       .in_slices = t->home != NULL};
  memcpy(i.shape, t->dim, sizeof i.shape);
  row_major(i.ndim, i.shape, i.strides);
  for (uint32_t r = 0; r < t->world; r++)
    if (t->buf[r] && t->buf[r]->outside) {
      i.borrowed = 1;
      i.read_only = t->buf[r]->outside->read_only;
    }
  memcpy(out, &i, out->size < sizeof i ? out->size : sizeof i);
  return CCN_OK;
}

static void settle(ccn__state *s, void *user) { ccn__tensor_settle(&s->rt, user); }

ccn_status ccn_tensor_piece(const ccn_tensor *h, uint32_t rank, ccn_piece *out) {
  if (!h || !out || out->size < offsetof(ccn_piece, ndim)) return CCN_INVALID_ARGUMENT;
  const ccn__tensor *t = tensor_of(h);
  ccn__box box = {{0}, {0}, 0};
  if (t->home) { /* a schedule left it in slices */
    ccn__state *s = h->h.state;
    ccn_status status = ccn__guarded(s->context, &s, CCN__NESTS, settle, tensor_of(h));
    if (status != CCN_OK) return status;
  }
  if (rank >= t->world || !t->buf[rank]) return CCN_NOT_FOUND;
  ccn__box_of(&h->h.state->rt.mesh, rank, t->rank, t->dim, t->place, &box);
  ccn_piece p = {.size = out->size, .bytes = t->buf[rank]->bytes, .ndim = t->rank};
  if (p.bytes) p.data = t->buf[rank]->data;
  memcpy(p.start, box.start, t->rank * sizeof *p.start);
  memcpy(p.extent, box.extent, t->rank * sizeof *p.extent);
  row_major(p.ndim, p.extent, p.strides);
  memcpy(out, &p, out->size < sizeof p ? out->size : sizeof p);
  return CCN_OK;
}

/* ---- reading and writing --------------------------------------------------------------------------------- */

typedef struct move_work {
  ccn__tensor *t;
  uint32_t rank;
  void *out;
  const void *data;
  size_t bytes;
} move_work;

static void read_whole(ccn__state *s, void *user) {
  move_work *w = user;
  const ccn__tensor *whole = ccn__tensor_whole(&s->rt, w->t);
  if (!whole || !whole->buf[0]) ccn__throw(s->rt.heap, CCN_UNSUPPORTED);
  if (whole->buf[0]->bytes != w->bytes) ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
  if (w->bytes) memcpy(w->out, whole->buf[0]->data, w->bytes);
}

ccn_status ccn_tensor_read(ccn_tensor *t, void *out, size_t bytes) {
  if (!t || (!out && bytes)) return CCN_INVALID_ARGUMENT;
  move_work w = {.t = tensor_of(t), .out = out, .bytes = bytes};
  return ccn__guarded(t->h.state->context, &t->h.state, CCN__NESTS, read_whole, &w);
}

static bool refuses(const ccn__tensor *t) {
  for (uint32_t r = 0; r < t->world; r++)
    if (t->buf[r] && t->buf[r]->outside && t->buf[r]->outside->read_only) return true;
  return false;
}

static void write_whole(ccn__state *s, void *user) {
  move_work *w = user;
  ccn__tensor *t = w->t;
  size_t bytes;
  if (refuses(t)) ccn__throw(s->rt.heap, CCN_UNSUPPORTED);
  if (!whole_bytes(t->rank, t->dim, ccn__dtype_size((ccn__dtype)t->dtype), &bytes) || bytes != w->bytes)
    ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
  ccn__tensor_take(t, ccn__tensor_place(&s->rt, (ccn__dtype)t->dtype, t->rank, t->dim, t->place, w->data));
}

ccn_status ccn_tensor_write(ccn_tensor *t, const void *data, size_t bytes) {
  if (!t || (!data && bytes)) return CCN_INVALID_ARGUMENT;
  move_work w = {.t = tensor_of(t), .data = data, .bytes = bytes};
  return ccn__guarded(t->h.state->context, &t->h.state, CCN__NESTS, write_whole, &w);
}

static void write_piece(ccn__state *s, void *user) {
  move_work *w = user;
  ccn__tensor *t = w->t;
  ccn__tensor_settle(&s->rt, t);
  ccn__buf *old = w->rank < t->world ? t->buf[w->rank] : NULL, *b;
  if (refuses(t)) ccn__throw(s->rt.heap, CCN_UNSUPPORTED);
  if (!old) ccn__throw(s->rt.heap, CCN_NOT_FOUND);
  if (old->bytes != w->bytes) ccn__throw(s->rt.heap, CCN_INVALID_ARGUMENT);
  if (old->outside) {
    if (w->bytes) memmove(old->data, w->data, w->bytes);
    return;
  }
  b = ccn__buf_new(&s->rt.pool, w->bytes); /* others may share the old one */
  if (w->bytes) memcpy(b->data, w->data, w->bytes);
  for (uint32_t r = 0; r < t->world; r++) {
    if (ccn__rank_twin(&s->rt.mesh, r, t->place) != ccn__rank_twin(&s->rt.mesh, w->rank, t->place)) continue;
    ccn__buf_unref(t->buf[r]);
    t->buf[r] = ccn__buf_ref(b);
  }
  ccn__buf_unref(b);
}

ccn_status ccn_tensor_write_rank(ccn_tensor *t, uint32_t rank, const void *data, size_t bytes) {
  if (!t || (!data && bytes)) return CCN_INVALID_ARGUMENT;
  move_work w = {.t = tensor_of(t), .rank = rank, .data = data, .bytes = bytes};
  return ccn__guarded(t->h.state->context, &t->h.state, CCN__NESTS, write_piece, &w);
}

ccn_tensor *ccn_tensor_retain(ccn_tensor *t) {
  if (t) ccn__handle_retain(&t->h);
  return t;
}

void ccn_tensor_release(ccn_tensor *t) {
  if (t) ccn__handle_release(&t->h);
}
