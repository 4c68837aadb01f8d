/* api_host.c: functions of the host: registered, called from scripts, and the values that they make.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

/* ---- calls ----------------------------------------------------------------------------------------------- */

typedef struct host_call {
  ccn__state *state;
  const struct ccn__host_fn *f;
  const ccn__arg *args;
  uint32_t n, made;
  ccn_value **value; /* handles of the arguments: `made` of them */
  ccn_value *result;
  ccn_status status;
} host_call;

static void call_host(host_call *h) {
  ccn_context *c = h->state->context;
  for (; h->made < h->n; h->made++)
    h->value[h->made] = ccn__handle_new(h->state, sizeof(ccn_value), h->args[h->made].value);
  c->callbacks++;
  c->complaint = NULL;
  h->status = h->f->fn(c, h->value, h->n, &h->result, h->f->user);
  c->callbacks--;
}

static void release_all(host_call *h) {
  for (uint32_t i = 0; i < h->made; i++) ccn_value_release(h->value[i]);
  ccn_value_release(h->result);
  ccn__bury(h->state->context); /* now: a loop may call many times */
}

static ccn__val call(ccn__rt *rt, const struct ccn__host_fn *f, const ccn__arg *args, uint32_t n,
                     ccn__span span) {
  ccn__state *s = (ccn__state *)(void *)((char *)rt - offsetof(ccn__state, rt));
  ccn__trap trap;
  if (rt->trial && !f->pure)
    ccn__fail(rt, 609, span, "not called", "call it in an entry of its own",
              "`%s` does something when it is called, so it is not called to find a type", f->name);
  host_call *h = ccn__temp_memory(rt, sizeof *h);
  *h = (host_call){.state = s, .f = f, .args = args, .n = n};
  h->value = ccn__temp_memory(rt, n * sizeof(ccn_value *));
  ccn__rt_push(rt, CCN__NONE_VAL);
  const uint32_t slot = rt->temps.n - 1; /* the result is kept here when its handle is gone */
  CCN__TRY(rt->heap, trap)
  { call_host(h); }
  CCN__CATCH(rt->heap, trap)
  { h->status = trap.status; }
  ccn__val v = h->result && h->result->h.state == s ? h->result->h.hold.v : CCN__NONE_VAL;
  ccn_status status = h->status;
  if (status == CCN_OK && h->result && h->result->h.state != s) {
    s->context->complaint = "it gave a value of another session";
    status = CCN_ERROR;
  }
  ccn__val_escapes(v);
  rt->temps.at[slot] = v;
  release_all(h);
  if (status == CCN_ERROR)
    ccn__fail(rt, 609, span, "called here", NULL, "`%s` failed: %s", f->name,
              s->context->complaint ? s->context->complaint : "the host gives no reason");
  if (status != CCN_OK) ccn__throw(rt->heap, status);
  return v;
}

void ccn_host_error(ccn_context *c, const char *message) {
  ccn__trap trap;
  if (!c || !message || !c->callbacks) return;
  CCN__TRY(&c->heap, trap)
  { c->complaint = ccn__arena_strndup(&c->running->told, message, strlen(message)); }
  CCN__CATCH(&c->heap, trap)
  {} /* no memory: no reason is given */
}

/* ---- registration ---------------------------------------------------------------------------------------- */

bool ccn__host_name_valid(const char *s) {
  if (!*s || (*s >= '0' && *s <= '9')) return false;
  for (; *s; s++)
    if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') && !(*s >= '0' && *s <= '9') && *s != '_')
      return false;
  return true;
}

static void add(ccn__state *s, void *user) {
  const struct ccn__host_fn *given = user;
  ccn_context *c = s->context;
  struct ccn__host_fn *f = CCN__NEW(&c->own, struct ccn__host_fn);
  *f = *given;
  f->name = ccn__arena_strndup(&c->own, given->name, strlen(given->name));
  ccn__env_set(&s->rt, ccn__session_env(s), ccn__internz(&s->names, f->name),
               (ccn__val){.kind = CCN__V_HOST, .host = f});
  f->next = c->hosts;
  c->hosts = f;
}

ccn_status ccn_register_function(ccn_context *c, const char *name, ccn_host_fn fn, void *user, int pure) {
  if (!c || !name || !fn || !ccn__host_name_valid(name)) return CCN_INVALID_ARGUMENT;
  struct ccn__host_fn f = {.name = name, .call = call, .fn = fn, .user = user, .pure = pure != 0};
  return ccn__guarded(c, &c->session, 0, add, &f);
}

/* ---- values ---------------------------------------------------------------------------------------------- */

typedef struct make_value {
  ccn__val v;
  const char *text;
  size_t size;
  ccn_value *out;
} make_value;

static void make(ccn__state *s, void *user) {
  make_value *w = user;
  if (w->text) w->v = ccn__val_string(&s->rt, w->text, w->size);
  w->out = ccn__handle_new(s, sizeof *w->out, w->v);
}

static ccn_status make_of(ccn_context *c, ccn__state **which, make_value w, ccn_value **out) {
  if (out) *out = NULL;
  if (!c || !out) return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, which, CCN__NESTS, make, &w);
  *out = w.out;
  return status;
}

ccn_status ccn_value_make_i64(ccn_context *c, int64_t x, ccn_value **out) {
  return make_of(c, c ? &c->session : NULL, (make_value){.v = ccn__int_val(x)}, out);
}

ccn_status ccn_value_make_f64(ccn_context *c, double x, ccn_value **out) {
  return make_of(c, c ? &c->session : NULL, (make_value){.v = ccn__float_val(x)}, out);
}

ccn_status ccn_value_make_bool(ccn_context *c, int x, ccn_value **out) {
  return make_of(c, c ? &c->session : NULL, (make_value){.v = ccn__bool_val(x != 0)}, out);
}

ccn_status ccn_value_make_string(ccn_context *c, const char *text, size_t size, ccn_value **out) {
  if (out) *out = NULL;
  if (!text && size) return CCN_INVALID_ARGUMENT;
  return make_of(c, c ? &c->session : NULL, (make_value){.text = text ? text : "", .size = size}, out);
}

ccn_status ccn_value_make_tensor(ccn_tensor *t, ccn_value **out) {
  if (out) *out = NULL;
  if (!t) return CCN_INVALID_ARGUMENT;
  return make_of(t->h.state->context, &t->h.state, (make_value){.v = t->h.hold.v}, out);
}
