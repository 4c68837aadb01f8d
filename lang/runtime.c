/* runtime.c: objects and their collection, scopes, lists, strings, errors of a running script.
 *
 * Mark and sweep. Roots: temps (what running expressions hold), roots (scopes in use), globals, pinned
 * objects. Marking uses a list through the objects themselves, so it needs neither memory nor C stack.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime: the time of day may jump */
#include "runtime.h"

#include <time.h>

enum { COLLECT_FROM = 64 << 20, FRAMES_SHOWN = 8, ENV_LINEAR = 8 };

/* ---- the runtime --------------------------------------------------------------------------------------- */

/* When twice as much is in use as now, but well before the host's limit. */
static size_t collect_from(const ccn__heap *h) {
  const size_t live = h->live;
  size_t from = live > SIZE_MAX / 2 ? SIZE_MAX : 2 * live;
  if (from < COLLECT_FROM) from = COLLECT_FROM;
  if (!h->limit) return from;
  const size_t halfway = live < h->limit ? live + (h->limit - live) / 2 : 0;
  return from < halfway ? from : halfway;
}

void ccn__rt_init(ccn__rt *rt, ccn__heap *heap, ccn__arena *arena, ccn__names *names, ccn__diags *diags,
                  const ccn_options *options) {
  memset(rt, 0, sizeof *rt);
  rt->heap = heap;
  rt->arena = arena;
  rt->names = names;
  rt->diags = diags;
  rt->options = options;
  rt->world = 1;
  rt->next_collect = collect_from(heap);
  rt->pool.heap = heap;
  ccn__arena_init(&rt->scratch, heap);
}

void ccn__rt_unwind(ccn__rt *rt) {
  rt->temps.n = 0;
  rt->roots.n = 0;
  rt->frames = NULL;
  rt->depth = 0;
  rt->per_rank = 0;
  rt->call_axes = (ccn__ast_list){0};
  ccn__arena_free(&rt->scratch);
}

void ccn__rt_push(ccn__rt *rt, ccn__val v) { *CCN__PUSH(rt->arena, &rt->temps) = v; }

void ccn__roots_push(ccn__rt *rt, ccn__env *e) { *CCN__PUSH(rt->arena, &rt->roots) = e; }

uint64_t ccn__now_ns(void) {
  struct timespec t = {0};
#ifdef CLOCK_MONOTONIC
  clock_gettime(CLOCK_MONOTONIC, &t);
#else
  timespec_get(&t, TIME_UTC);
#endif
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t ccn__now_ms(void) { return ccn__now_ns() / 1000000; }

static void too_late(ccn__rt *rt) {
  ccn__span here = rt->frames ? rt->frames->call : rt->here;
  rt->deadline = 0;
  ccn__diag *d = ccn__error(rt->diags, 608, here, "while this ran", "the time limit of the host is over");
  ccn__hint(rt->diags, d, "run smaller sizes, or raise the limit");
  ccn__rt_raise(rt, d);
}

enum { POLLS_A_LOOK = 16 }; /* the clock costs more than a poll */

void ccn__rt_poll(ccn__rt *rt) {
  ccn__rt_moved(rt);
  if (rt->deadline && ++rt->npolls % POLLS_A_LOOK == 0 && ccn__now_ms() >= rt->deadline) too_late(rt);
  if (rt->interrupted || (rt->interrupt && *rt->interrupt)) ccn__throw(rt->heap, CCN_INTERRUPTED);
}

void ccn__rt_raise(ccn__rt *rt, ccn__diag *d) {
  uint32_t n = 0;
  for (const ccn__frame *f = rt->frames; f; f = f->outer, n++) {
    if (n >= FRAMES_SHOWN) continue;
    bool words = strchr(f->what, ' ') != NULL; /* "this import", not a name */
    ccn__note(rt->diags, d, f->call, words ? "in %s" : "in this call of `%s`", f->what);
  }
  if (n > FRAMES_SHOWN) ccn__note(rt->diags, d, (ccn__span){0}, "... %u more calls", n - FRAMES_SHOWN);
  ccn__throw(rt->heap, CCN_ERROR);
}

/* ---- scopes -------------------------------------------------------------------------------------------- */

static size_t env_bytes(uint32_t cap) {
  return cap * sizeof(struct ccn__binding) + (cap > ENV_LINEAR ? 2 * (size_t)cap * sizeof(uint32_t) : 0);
}

/* The index: an open table of 2 * cap slots, each 0 or the number of a binding plus 1. cap is a power of
 * two. */
static uint32_t *env_slot(const ccn__env *e, ccn__name name) {
  uint32_t *slot = (uint32_t *)(void *)(e->at + e->cap), mask = 2 * e->cap - 1;
  uint32_t h = (uint32_t)(((uintptr_t)name >> 4) * 2654435761u);
  for (h = (h ^ h >> 15) & mask;; h = (h + 1) & mask)
    if (!slot[h] || e->at[slot[h] - 1].name == name) return &slot[h];
}

ccn__val *ccn__env_find(const ccn__env *e, ccn__name name) {
  if (e->cap > ENV_LINEAR) {
    uint32_t i = *env_slot(e, name);
    return i ? &e->at[i - 1].value : NULL;
  }
  for (uint32_t i = 0; i < e->n; i++)
    if (e->at[i].name == name) return &e->at[i].value;
  return NULL;
}

ccn__val *ccn__env_lookup(const ccn__env *e, ccn__name name) {
  for (; e; e = e->outer) {
    ccn__val *v = ccn__env_find(e, name);
    if (v) return v;
  }
  return NULL;
}

static void env_grow(ccn__rt *rt, ccn__env *e) {
  if (e->cap > UINT32_MAX / 64) ccn__throw(rt->heap, CCN_OUT_OF_MEMORY);
  uint32_t cap = e->cap ? e->cap * 2 : 4;
  struct ccn__binding *at = ccn__heap_alloc(rt->heap, env_bytes(cap)), *old = e->at;
  if (e->n) memcpy(at, old, e->n * sizeof *at);
  ccn__heap_free(rt->heap, old, env_bytes(e->cap));
  e->at = at;
  e->cap = cap;
  if (cap > ENV_LINEAR)
    for (uint32_t i = 0; i < e->n; i++) *env_slot(e, at[i].name) = i + 1;
}

void ccn__env_set(ccn__rt *rt, ccn__env *e, ccn__name name, ccn__val v) {
  ccn__val *known = ccn__env_find(e, name);
  if (known) {
    *known = v;
    return;
  }
  if (e->n == e->cap) env_grow(rt, e);
  if (e->cap > ENV_LINEAR) *env_slot(e, name) = e->n + 1;
  e->at[e->n++] = (struct ccn__binding){name, v};
}

/* ---- objects ------------------------------------------------------------------------------------------- */

static void link_object(ccn__rt *rt, ccn__obj *o, ccn__vkind kind) {
  o->kind = (uint8_t)kind;
  o->next = rt->objects;
  rt->objects = o;
  rt->nobjects++;
}

ccn__env *ccn__env_new(ccn__rt *rt, ccn__env *outer) {
  ccn__env *e = ccn__heap_alloc(rt->heap, sizeof *e);
  link_object(rt, &e->obj, CCN__V_NONE);
  e->outer = outer;
  return e;
}

void *ccn__obj_new(ccn__rt *rt, ccn__vkind kind, size_t bytes) {
  ccn__val *temp = CCN__PUSH(rt->arena, &rt->temps); /* the place first: nothing may be lost if memory ends */
  *temp = CCN__NONE_VAL;
  ccn__obj *o = ccn__heap_alloc(rt->heap, bytes);
  link_object(rt, o, kind);
  temp->kind = (uint8_t)kind;
  temp->o = o;
  return o;
}

ccn__val ccn__val_string(ccn__rt *rt, const char *s, size_t n) {
  ccn__string *t = ccn__obj_new(rt, CCN__V_STRING, sizeof *t + n + 1);
  t->n = n;
  if (n && s) memcpy(t->at, s, n);
  return (ccn__val){.kind = CCN__V_STRING, .string = t};
}

ccn__list *ccn__list_new(ccn__rt *rt, ccn__vkind list_or_tuple, uint32_t cap) {
  ccn__list *l = ccn__obj_new(rt, list_or_tuple, sizeof *l);
  if (!cap) return l;
  l->at = ccn__heap_alloc(rt->heap, (size_t)cap * sizeof *l->at);
  l->cap = cap;
  return l;
}

void ccn__list_add(ccn__rt *rt, ccn__list *l, ccn__val v) {
  if (l->n == l->cap) {
    if (l->cap > UINT32_MAX / 4) ccn__throw(rt->heap, CCN_OUT_OF_MEMORY);
    uint32_t cap = l->cap ? l->cap * 2 : 4;
    ccn__val *at = ccn__heap_alloc(rt->heap, (size_t)cap * sizeof *at);
    if (l->n) memcpy(at, l->at, l->n * sizeof *at);
    ccn__heap_free(rt->heap, l->at, l->cap * sizeof *at);
    l->at = at;
    l->cap = cap;
  }
  l->at[l->n++] = v;
}

static size_t tensor_bytes(uint32_t world) { return sizeof(ccn__tensor) + world * sizeof(ccn__buf *); }

ccn__tensor *ccn__tensor_new(ccn__rt *rt, ccn__dtype t, uint32_t rank) {
  ccn__tensor *x = ccn__obj_new(rt, CCN__V_TENSOR, tensor_bytes(rt->world));
  x->world = rt->world;
  x->dtype = (uint8_t)t;
  x->rank = (uint8_t)rank;
  x->naxes = (uint8_t)rt->mesh.naxes;
  return x;
}

const char *ccn__val_kind_name(ccn__val v) {
  switch ((ccn__vkind)v.kind) {
  case CCN__V_NONE: return "nothing";
  case CCN__V_BOOL: return "a boolean";
  case CCN__V_INT:
  case CCN__V_FLOAT: return "a number";
  case CCN__V_OP:
  case CCN__V_HOST:
  case CCN__V_FN: return "a function";
  case CCN__V_STRING: return "a string";
  case CCN__V_LIST: return "a list";
  case CCN__V_TUPLE: return "a tuple";
  case CCN__V_RANGE: return "a range";
  case CCN__V_TENSOR: return v.tensor->bundle ? "a bundle" : "a tensor";
  case CCN__V_TYPE: return "a type";
  case CCN__V_PROGRAM: return "a program";
  case CCN__V_SCHEDULE: return "a schedule";
  case CCN__V_MODULE: return "a module";
  }
  return "a value";
}

/* ---- collection ---------------------------------------------------------------------------------------- */

static void mark(ccn__obj **gray, ccn__obj *o) {
  if (!o || o->marked) return;
  o->marked = true;
  o->gray = *gray;
  *gray = o;
}

static void mark_value(ccn__obj **gray, ccn__val v) {
  if (ccn__val_is_object(v)) mark(gray, v.o);
}

static void mark_env(ccn__obj **gray, ccn__env *e) {
  if (e) mark(gray, &e->obj);
}

static void mark_program(ccn__obj **gray, ccn__program *p) {
  if (p) mark(gray, &p->obj);
}

static void mark_members(ccn__obj **gray, ccn__obj *o) {
  switch (o->kind) {
  case CCN__V_NONE: {
    ccn__env *e = (ccn__env *)o;
    mark_env(gray, e->outer);
    for (uint32_t i = 0; i < e->n; i++) mark_value(gray, e->at[i].value);
    break;
  }
  case CCN__V_LIST:
  case CCN__V_TUPLE: {
    ccn__list *l = (ccn__list *)o;
    for (uint32_t i = 0; i < l->n; i++) mark_value(gray, l->at[i]);
    break;
  }
  case CCN__V_FN: mark_env(gray, ((ccn__fn *)o)->env); break;
  case CCN__V_PROGRAM: {
    ccn__program *p = (ccn__program *)o;
    mark_env(gray, p->constants);
    mark_program(gray, p->base);
    mark_env(gray, p->with_env);
    if (p->with) mark(gray, &p->with->obj);
    break;
  }
  case CCN__V_SCHEDULE:
    mark_program(gray, ((ccn__schedule *)o)->target);
    mark_env(gray, ((ccn__schedule *)o)->env);
    break;
  case CCN__V_MODULE: mark_env(gray, ((ccn__module *)o)->env); break;
  case CCN__V_TENSOR:
    if (((ccn__tensor *)o)->home) mark(gray, &((ccn__tensor *)o)->home->obj);
    break;
  default: break;
  }
}

static size_t free_tensor(ccn__rt *rt, ccn__tensor *t) {
  for (uint32_t r = 0; r < t->world; r++) ccn__buf_unref(t->buf[r]);
  if (t->members) ccn__heap_free(rt->heap, t->members, ccn__members_size(t->members->k));
  return tensor_bytes(t->world);
}

static void free_object(ccn__rt *rt, ccn__obj *o) {
  size_t bytes = 0;
  switch (o->kind) {
  case CCN__V_NONE: {
    ccn__env *e = (ccn__env *)o;
    ccn__heap_free(rt->heap, e->at, env_bytes(e->cap));
    bytes = sizeof *e;
    break;
  }
  case CCN__V_STRING: bytes = sizeof(ccn__string) + ((ccn__string *)o)->n + 1; break;
  case CCN__V_LIST:
  case CCN__V_TUPLE: {
    ccn__list *l = (ccn__list *)o;
    ccn__heap_free(rt->heap, l->at, l->cap * sizeof *l->at);
    bytes = sizeof *l;
    break;
  }
  case CCN__V_RANGE: bytes = sizeof(ccn__range); break;
  case CCN__V_TENSOR: bytes = free_tensor(rt, (ccn__tensor *)o); break;
  case CCN__V_TYPE: bytes = sizeof(ccn__typeval); break;
  case CCN__V_FN: bytes = sizeof(ccn__fn); break;
  case CCN__V_PROGRAM: bytes = sizeof(ccn__program); break;
  case CCN__V_SCHEDULE: bytes = sizeof(ccn__schedule); break;
  case CCN__V_MODULE: bytes = sizeof(ccn__module); break;
  }
  ccn__heap_free(rt->heap, o, bytes);
}

void ccn__collect(ccn__rt *rt) {
  ccn__obj *gray = NULL;
  for (uint32_t i = 0; i < rt->temps.n; i++) mark_value(&gray, rt->temps.at[i]);
  for (uint32_t i = 0; i < rt->roots.n; i++) mark_env(&gray, rt->roots.at[i]);
  mark_env(&gray, rt->globals);
  for (const ccn__hold *h = rt->holds; h; h = h->next) mark_value(&gray, h->v);
  for (ccn__obj *o = rt->objects; o; o = o->next)
    if (o->pinned) mark(&gray, o);
  while (gray) {
    ccn__obj *o = gray;
    gray = o->gray;
    mark_members(&gray, o);
  }
  for (ccn__obj **at = &rt->objects; *at;) {
    ccn__obj *o = *at;
    if (o->marked) {
      o->marked = false;
      at = &o->next;
    } else {
      *at = o->next;
      rt->nobjects--;
      free_object(rt, o);
    }
  }
  rt->next_collect = collect_from(rt->heap);
}

void ccn__rt_free(ccn__rt *rt) {
  ccn__rt_unwind(rt);
  if (rt->engine) rt->engine->drop(rt->engine);
  rt->engine = NULL;
  for (ccn__obj *o = rt->objects, *next; o; o = next) {
    next = o->next;
    free_object(rt, o);
  }
  rt->objects = NULL;
  rt->nobjects = 0;
  rt->globals = NULL;
  ccn__pool_clear(&rt->pool);
}
