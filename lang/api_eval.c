/* api_eval.c: entries of a session, and values as the host sees them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "call.h"

/* ---- entries --------------------------------------------------------------------------------------------- */

typedef struct eval_work {
  ccn__entry entry;
  bool wants_value;
  ccn_value *value;
} eval_work;

static void eval(ccn__state *s, void *user) {
  eval_work *w = user;
  w->entry.env = ccn__session_env(s);
  w->entry.assigned = s->assigned;
  w->entry.noted = true;
  ccn__drive_entry(s, &w->entry);
  if (w->wants_value && !s->diags.errors) w->value = ccn__value_new_handle(s, w->entry.value);
}

ccn_status ccn_eval(ccn_context *c, const char *name, const char *text, size_t size, ccn_value **out_value) {
  eval_work w = {.entry = {.name = name, .text = text, .size = size}, .wants_value = out_value != NULL};
  if (out_value) *out_value = NULL;
  if (!c || !name || (!text && size) || size >= UINT32_MAX) return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, &c->session, CCN__RUNS, eval, &w);
  if (out_value) *out_value = w.value;
  return status == CCN_ERROR && w.entry.incomplete ? CCN_INCOMPLETE : status;
}

ccn_status ccn_session_reset(ccn_context *c) {
  if (!c || !ccn__lock(c)) return CCN_INVALID_ARGUMENT;
  if (c->session) ccn__state_retire(c->session);
  c->session = NULL;
  ccn__unlock(c);
  return CCN_OK;
}

/* ---- values ---------------------------------------------------------------------------------------------- */

ccn_kind ccn__kind_of(ccn__val v) {
  switch ((ccn__vkind)v.kind) {
  case CCN__V_NONE: return CCN_KIND_NONE;
  case CCN__V_BOOL: return CCN_KIND_BOOL;
  case CCN__V_INT: return CCN_KIND_INT;
  case CCN__V_FLOAT: return CCN_KIND_FLOAT;
  case CCN__V_STRING: return CCN_KIND_STRING;
  case CCN__V_LIST: return CCN_KIND_LIST;
  case CCN__V_TUPLE: return CCN_KIND_TUPLE;
  case CCN__V_TENSOR: return v.tensor->bundle ? CCN_KIND_BUNDLE : CCN_KIND_TENSOR;
  case CCN__V_PROGRAM: return CCN_KIND_PROGRAM;
  default: return CCN_KIND_OTHER;
  }
}

ccn_kind ccn_value_kind(const ccn_value *v) { return v ? ccn__kind_of(v->h.hold.v) : CCN_KIND_NONE; }

typedef struct value_work {
  ccn__val v;
  size_t i;
  ccn_write_fn write;
  void *user;
  ccn_value *value;
  ccn_tensor *tensor;
} value_work;

static void format_value(ccn__rt *rt, ccn__arena *a, void *user) {
  value_work *w = user;
  ccn__text t;
  ccn__text_init(&t, a);
  ccn__format(rt, &t, w->v);
  if (t.n) w->write(t.at, t.n, w->user);
}

static void write_value(ccn__state *s, void *user) { ccn__with_arena(&s->rt, format_value, user); }

ccn_status ccn_value_write(ccn_value *v, ccn_write_fn write, void *user) {
  if (!v || !write) return CCN_INVALID_ARGUMENT;
  value_work w = {.v = v->h.hold.v, .write = write, .user = user};
  return ccn__guarded(v->h.state->context, &v->h.state, CCN__NESTS, write_value, &w);
}

ccn_status ccn_value_i64(const ccn_value *v, int64_t *out) {
  if (!v || !out) return CCN_INVALID_ARGUMENT;
  ccn__val x = ccn__plain(v->h.hold.v);
  *out = x.kind == CCN__V_INT ? x.i : x.kind == CCN__V_BOOL ? x.b : 0;
  return x.kind == CCN__V_INT || x.kind == CCN__V_BOOL ? CCN_OK : CCN_NOT_FOUND;
}

ccn_status ccn_value_f64(const ccn_value *v, double *out) {
  if (!v || !out) return CCN_INVALID_ARGUMENT;
  ccn__val x = ccn__plain(v->h.hold.v);
  *out = ccn__is_number(x) ? ccn__as_f64(x) : x.kind == CCN__V_BOOL ? x.b : 0;
  return ccn__is_number(x) || x.kind == CCN__V_BOOL ? CCN_OK : CCN_NOT_FOUND;
}

const char *ccn_value_string(const ccn_value *v, size_t *out_size) {
  bool string = v && v->h.hold.v.kind == CCN__V_STRING;
  if (out_size) *out_size = string ? v->h.hold.v.string->n : 0;
  return string ? v->h.hold.v.string->at : NULL;
}

size_t ccn_value_count(const ccn_value *v) {
  if (!v) return 0;
  ccn__val x = v->h.hold.v;
  if (x.kind == CCN__V_LIST || x.kind == CCN__V_TUPLE) return x.list->n;
  return x.kind == CCN__V_TENSOR && x.tensor->bundle ? ccn__bundle_count(x.tensor) : 0;
}

static void take_member(ccn__state *s, void *user) {
  value_work *w = user;
  ccn__val x = w->v.kind == CCN__V_TENSOR
                 ? ccn__bundle_member(&s->rt, w->v.tensor, (int64_t)w->i, (ccn__span){0})
                 : w->v.list->at[w->i];
  w->value = ccn__handle_new(s, sizeof *w->value, x);
}

ccn_status ccn_value_at(ccn_value *v, size_t i, ccn_value **out) {
  if (out) *out = NULL;
  if (!v || !out) return CCN_INVALID_ARGUMENT;
  if (i >= ccn_value_count(v)) return CCN_NOT_FOUND;
  value_work w = {.v = v->h.hold.v, .i = i};
  ccn_status status = ccn__guarded(v->h.state->context, &v->h.state, CCN__NESTS, take_member, &w);
  *out = w.value;
  return status;
}

static void take_tensor(ccn__state *s, void *user) {
  value_work *w = user;
  w->tensor = ccn__tensor_handle(s, w->v.tensor);
}

ccn_status ccn_value_tensor(ccn_value *v, ccn_tensor **out) {
  if (out) *out = NULL;
  if (!v || !out) return CCN_INVALID_ARGUMENT;
  value_work w = {.v = v->h.hold.v};
  if (w.v.kind != CCN__V_TENSOR) return CCN_NOT_FOUND;
  ccn_status status = ccn__guarded(v->h.state->context, &v->h.state, CCN__NESTS, take_tensor, &w);
  *out = w.tensor;
  return status;
}

void ccn_value_release(ccn_value *v) {
  if (v) ccn__handle_release(&v->h);
}
