/* script_safetensors.c: load and save of .safetensors files: tensors with names.
 *
 * load(path, name: "w") is one of them; load(path) is the list of all, as pairs (name, tensor) in the order
 * of the file, which is what save(path, pairs) writes. SPDX-License-Identifier: Apache-2.0 */
#include "call.h"
#include "safetensors.h"
#include "script_files.h"

/* ---- load ---------------------------------------------------------------------------------------------- */

typedef struct loading {
  const ccn__builtin_call *c;
  const char *file;
  size_t size;
  ccn__val out; /* on temps */
} loading;

CCN__NORETURN static void unreadable(ccn__rt *rt, const loading *l, const char *name, const char *why) {
  const ccn__arg *path = l->c->at[0];
  if (name)
    ccn__fail(rt, 703, path->span, "not readable", "load the others by name: load(path, name: \"w\")",
              "`%.100s` of `%.200s` cannot be loaded: %s", name, path->value.string->at, why);
  ccn__fail(rt, 703, path->span, "not readable", "write it with a safetensors library",
            "`%.300s` cannot be loaded: %s", path->value.string->at, why);
}

static ccn__tensor *one(ccn__rt *rt, const loading *l, const ccn__safetensor *t) {
  const char *why = t->refused ? t->refused : t->rank > CCN__MAX_RANK ? "it has more than 8 dims" : NULL;
  if (why) unreadable(rt, l, t->name, why);
  const ccn__held held = {.dtype = t->dtype, .rank = t->rank, .dim = t->dim, .data = l->file + t->offset};
  return ccn__held_tensor(rt, l->c->at[1], &held);
}

static ccn__tensor *named(ccn__rt *rt, const loading *l, const ccn__safetensors *s) {
  const ccn__arg *name = l->c->at[2];
  if (name->value.kind != CCN__V_STRING)
    ccn__fail(rt, 805, name->span, ccn__val_kind_name(name->value), "as in: load(path, name: \"w\")",
              "a name is a string");
  const ccn__safetensor *t = ccn__safetensors_find(s, name->value.string->at, name->value.string->n);
  if (t) return one(rt, l, t);
  ccn__nearest near;
  ccn__nearest_init(&near, name->value.string->at);
  for (uint32_t i = 0; i < s->n; i++) ccn__nearest_try(&near, s->at[i].name);
  ccn__diag *d = ccn__error(rt->diags, 703, name->span, "not in the file",
                            "the file holds no tensor `%.100s`", name->value.string->at);
  if (near.best) ccn__hint(rt->diags, d, "did you mean `%.100s`?", near.best);
  else ccn__hint(rt->diags, d, "load(path) gives all that it holds");
  ccn__rt_raise(rt, d);
}

static ccn__val all(ccn__rt *rt, const loading *l, const ccn__safetensors *s) {
  ccn__list *list = ccn__list_new(rt, CCN__V_LIST, s->n);
  for (uint32_t i = 0; i < s->n; i++) {
    const uint32_t mark = rt->temps.n;
    ccn__list *pair = ccn__list_new(rt, CCN__V_TUPLE, 2);
    ccn__list_add(rt, pair, ccn__val_string(rt, s->at[i].name, s->at[i].name_size));
    ccn__list_add(rt, pair, ccn__tensor_val(one(rt, l, &s->at[i])));
    ccn__list_add(rt, list, (ccn__val){.kind = CCN__V_TUPLE, .list = pair});
    rt->temps.n = mark;
  }
  return ccn__list_val(list);
}

static void load(ccn__rt *rt, ccn__arena *a, void *user) {
  loading *l = user;
  ccn__safetensors s;
  const char *why = ccn__safetensors_open(a, l->file, l->size, &s);
  if (why) unreadable(rt, l, NULL, why);
  l->out = l->c->at[2] ? ccn__tensor_val(named(rt, l, &s)) : all(rt, l, &s);
}

ccn__val ccn__load_safetensors(ccn__rt *rt, const ccn__builtin_call *c, const char *file, size_t size) {
  loading l = {.c = c, .file = file, .size = size};
  if (c->at[1] && !c->at[2])
    ccn__fail(rt, 800, c->at[1]->span, "of which tensor?", "as in: load(path, name: \"w\", as: f32[N])",
              "a type needs the name of a tensor of the file");
  ccn__with_arena(rt, load, &l);
  return l.out;
}

/* ---- save ---------------------------------------------------------------------------------------------- */

typedef struct saving {
  const ccn__builtin_call *c;
  const char *path;
} saving;

static void read_pair(ccn__rt *rt, const ccn__arg *x, ccn__val v, ccn__safetensor *t, const void **data) {
  const ccn__list *pair = v.kind == CCN__V_TUPLE && v.list->n == 2 ? v.list : NULL;
  if (!pair || pair->at[0].kind != CCN__V_STRING)
    ccn__fail(rt, 805, x->span, "not a name with a tensor", "as in: save(path, [(\"w\", w), (\"b\", b)])",
              "a .safetensors file holds tensors by name");
  const ccn__tensor *whole =
    ccn__whole_to_save(rt, pair->at[1], x->span); /* on temps until the file is written */
  *t = (ccn__safetensor){.name = pair->at[0].string->at,
                         .name_size = pair->at[0].string->n,
                         .dtype = (ccn__dtype)whole->dtype,
                         .rank = whole->rank,
                         .dim = whole->dim};
  *data = whole->buf[0]->data;
}

static void save(ccn__rt *rt, ccn__arena *a, void *user) {
  const saving *w = user;
  const ccn__arg *x = w->c->at[1];
  const ccn__list *pairs = x->value.list;
  ccn__safetensor *t = CCN__NEWN(a, ccn__safetensor, pairs->n + 1);
  const void **data = CCN__NEWN(a, const void *, pairs->n + 1);
  void *file;
  size_t size;
  for (uint32_t i = 0; i < pairs->n; i++) read_pair(rt, x, pairs->at[i], &t[i], &data[i]);
  const char *why = ccn__safetensors_write(a, t, data, pairs->n, NULL, 0, &file, &size);
  if (why)
    ccn__fail(rt, 703, x->span, "cannot be written", "give each tensor a name of its own, in UTF-8",
              "these tensors make no safetensors file: %s", why);
  int e = rt->options->write(w->path, file, size, rt->options->file_user);
  if (e) ccn__file_error(rt, 702, w->c->at[0], e);
}

void ccn__save_safetensors(ccn__rt *rt, const ccn__builtin_call *c, const char *path) {
  const ccn__val v = c->at[1]->value;
  if (v.kind != CCN__V_LIST)
    ccn__fail(rt, 805, c->at[1]->span, ccn__val_kind_name(v), "as in: save(path, [(\"w\", w), (\"b\", b)])",
              "a .safetensors file holds tensors by name");
  ccn__with_arena(rt, save, &(saving){.c = c, .path = path});
}
