/* api_handle.c: handles of the host, their release from any thread, and the end of states and contexts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

/* ---- holds on tensors ------------------------------------------------------------------------------------ */

void ccn__val_hold(ccn__val v) {
  if (v.kind == CCN__V_TENSOR) v.tensor->holds++;
}

/* The tensor itself goes with a collection; its memory, which may be the host's, at once if that is safe. */
void ccn__val_let(ccn__val v) {
  if (v.kind != CCN__V_TENSOR || --v.tensor->holds || !v.tensor->host_only) return;
  v.tensor->home = NULL;
  for (uint32_t r = 0; r < v.tensor->world; r++) {
    ccn__buf *b = v.tensor->buf[r];
    v.tensor->buf[r] = NULL;
    ccn__buf_unref(b);
  }
}

void ccn__val_escapes(ccn__val v) {
  if (v.kind == CCN__V_TENSOR) v.tensor->host_only = false;
  if (v.kind == CCN__V_LIST || v.kind == CCN__V_TUPLE)
    for (uint32_t i = 0; i < v.list->n; i++)
      if (v.list->at[i].kind == CCN__V_TENSOR) v.list->at[i].tensor->host_only = false;
}

/* ---- handles --------------------------------------------------------------------------------------------- */

void *ccn__handle_new(ccn__state *s, size_t bytes, ccn__val v) {
  ccn__handle *h = ccn__heap_alloc(s->rt.heap, bytes);
  h->bytes = (uint32_t)bytes;
  h->state = s;
  h->hold.v = v;
  h->hold.next = s->rt.holds;
  if (h->hold.next) h->hold.next->prev = &h->hold;
  s->rt.holds = &h->hold;
  s->nholds++;
  atomic_init(&h->refs, 1);
  atomic_fetch_add(&s->context->refs, 1);
  ccn__val_hold(v);
  return h;
}

ccn_value *ccn__value_new_handle(ccn__state *s, ccn__val v) {
  return v.kind == CCN__V_NONE ? NULL : ccn__handle_new(s, sizeof(ccn_value), v);
}

void ccn__handle_retain(ccn__handle *h) { atomic_fetch_add(&h->refs, 1); }

static void bury(ccn__handle *h) {
  ccn__state *s = h->state;
  ccn__hold *hold = &h->hold;
  if (h->drop) h->drop(h);
  ccn__val_let(hold->v);
  if (hold->prev) hold->prev->next = hold->next;
  else s->rt.holds = hold->next;
  if (hold->next) hold->next->prev = hold->prev;
  ccn__heap_free(&s->context->heap, h, h->bytes);
  s->nholds--;
}

/* ---- states ---------------------------------------------------------------------------------------------- */

ccn__state *ccn__state_new(ccn_context *c) {
  ccn__state *s = ccn__heap_alloc(&c->heap, sizeof *s);
  s->context = c;
  ccn__arena_init(&s->arena, &c->heap);
  ccn__arena_init(&s->told, &c->heap);
  ccn__rt_init(&s->rt, &c->heap, &s->arena, &s->names, &s->diags, &c->options);
  ccn__state_reset(s, c);
  return s;
}

static void state_free(ccn__state *s) {
  ccn_context *c = s->context;
  if (c->last == s) c->last = NULL; /* a call of a session that was reset may have been the last */
  ccn__state_reset(s, c);
  ccn__heap_free(&c->heap, s, sizeof *s);
}

void ccn__state_retire(ccn__state *s) {
  ccn_context *c = s->context;
  if (c->last == s) c->last = NULL;
  if (s->nholds == 0) {
    state_free(s);
    return;
  }
  s->older = c->retired;
  c->retired = s;
}

/* ---- the lock -------------------------------------------------------------------------------------------- */

enum { FREE, CALLING, BURYING };

/* Buries the dead. More may come meanwhile, also by the release functions of the host that this calls. */
static void drain(ccn_context *c) {
  for (ccn__handle *h; (h = atomic_exchange(&c->dead, NULL));)
    for (ccn__handle *next; h; h = next) {
      next = h->next;
      bury(h);
    }
  for (ccn__state **at = &c->retired, *s; (s = *at);) {
    if (s->nholds) {
      at = &s->older;
      continue;
    }
    *at = s->older;
    state_free(s);
  }
}

void ccn__bury(ccn_context *c) { drain(c); }

bool ccn__lock(ccn_context *c) {
  for (;;) { /* burying ends soon; a call may not */
    int seen = FREE;
    if (atomic_compare_exchange_weak(&c->lock, &seen, CALLING)) return true;
    if (seen == CALLING) return false;
  }
}

void ccn__unlock(ccn_context *c) {
  int seen;
  do {
    atomic_store(&c->lock, BURYING);
    drain(c);
    atomic_store(&c->lock, FREE);
    seen = FREE;
  } while (atomic_load(&c->dead) && atomic_compare_exchange_strong(&c->lock, &seen, BURYING));
}

/* If a call runs, it will do this at its end. */
static void bury_now(ccn_context *c) {
  int seen = FREE;
  if (atomic_compare_exchange_strong(&c->lock, &seen, BURYING)) ccn__unlock(c);
}

void ccn__handle_release(ccn__handle *h) {
  ccn_context *c = h->state->context;
  if (atomic_fetch_sub(&h->refs, 1) != 1) return;
  h->next = atomic_load(&c->dead);
  while (!atomic_compare_exchange_weak(&c->dead, &h->next, h)) {}
  bury_now(c);
  ccn__context_let(c);
}

void ccn__context_let(ccn_context *c) {
  if (atomic_fetch_sub(&c->refs, 1) != 1) return;
  drain(c);
  ccn__arena_free(&c->own);
  ccn__arena_free(&c->watched);
  ccn__heap heap = c->heap; /* it cannot free what it stands in */
  ccn__heap_free(&heap, c, sizeof *c);
}
