/* storage.c: where the bytes of a tensor are. Mostly in pieces as its type says. After a call of a program
 * that shards its parameter, in slices: 1/n of the bytes a rank. Its type stays what it was, and so does
 * whatever reads it.
 *
 * The slices are a tensor of their own, the `home`. Tensors that were passed in a list have the bundle of
 * all of them as their home, in whose flat index space a tensor may straddle ranks; the next call with the
 * same list takes it as it is. A tensor that the host lent memory for stays where it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

ccn__tensor *ccn__tensor_member(ccn__rt *rt, const ccn__tensor *flat, uint32_t i) {
  const struct ccn__member *m = &flat->members->at[i];
  const size_t size = ccn__dtype_size((ccn__dtype)flat->dtype);
  ccn__tensor *t = ccn__tensor_new(rt, (ccn__dtype)flat->dtype, m->rank);
  memcpy(t->dim, m->dim, sizeof t->dim);
  memcpy(t->place, flat->place, sizeof t->place);
  for (uint32_t r = 0; r < rt->world; r++) {
    if (!flat->buf[r]) continue;
    const uint32_t twin = ccn__rank_twin(&rt->mesh, r, flat->place);
    if (twin != r) {
      t->buf[r] = ccn__buf_ref(t->buf[twin]);
      continue;
    }
    t->buf[r] = ccn__buf_new(&rt->pool, (size_t)m->elements * size);
    if (m->elements)
      memcpy(t->buf[r]->data, (const char *)flat->buf[r]->data + (size_t)m->start * size,
             (size_t)m->elements * size);
  }
  return t;
}

ccn__tensor *ccn__bundle_uncut(ccn__rt *rt, ccn__tensor *flat) {
  ccn__cplace place[CCN__MAX_AXES];
  memcpy(place, flat->place, sizeof place);
  for (uint32_t a = 0; a < flat->naxes; a++)
    if (place[a].kind == CCN__SLICED) place[a] = (ccn__cplace){.kind = CCN__REPLICATED};
  return ccn__tensor_convert(rt, flat, place);
}

ccn__tensor *ccn__tensor_here(ccn__rt *rt, ccn__tensor *t) {
  if (!t->home) return t;
  if (t->bundle || !t->home->bundle) return ccn__tensor_convert(rt, t->home, t->place);
  ccn__tensor *flat = ccn__bundle_uncut(rt, t->home);
  return ccn__tensor_convert(rt, ccn__tensor_member(rt, flat, t->home_at), t->place);
}

void ccn__tensor_settle(ccn__rt *rt, ccn__tensor *t) {
  if (t->home) ccn__tensor_take(t, ccn__tensor_here(rt, t));
}

static bool lent(const ccn__tensor *t) {
  for (uint32_t r = 0; r < t->world; r++)
    if (t->buf[r] && t->buf[r]->outside) return true;
  return false;
}

static void move_to(ccn__tensor *t, ccn__tensor *home, uint32_t at) {
  for (uint32_t r = 0; r < t->world; r++) {
    ccn__buf *old = t->buf[r];
    t->buf[r] = NULL;
    ccn__buf_unref(old);
  }
  t->home = home;
  t->home_at = at;
}

bool ccn__tensor_cut(ccn__tensor *t, ccn__tensor *home) {
  if (lent(t)) return false;
  move_to(t, home, 0);
  return true;
}

/* All of them or none. Scalars stay whole, since they are numbers to the script. */
bool ccn__list_cut(ccn__list *l, ccn__tensor *home) {
  if (home->bundle != CCN__BUNDLE_TENSORS) return false;
  for (uint32_t i = 0; i < l->n; i++)
    if (l->at[i].kind != CCN__V_TENSOR || !l->at[i].tensor->rank || lent(l->at[i].tensor)) return false;
  for (uint32_t i = 0; i < l->n; i++) move_to(l->at[i].tensor, home, i);
  return true;
}

ccn__tensor *ccn__list_home(const ccn__list *l) {
  ccn__tensor *home = l->n && l->at[0].kind == CCN__V_TENSOR ? l->at[0].tensor->home : NULL;
  if (!home || !home->members || home->members->k != l->n) return NULL;
  for (uint32_t i = 0; i < l->n; i++)
    if (l->at[i].kind != CCN__V_TENSOR || l->at[i].tensor->home != home || l->at[i].tensor->home_at != i ||
        l->at[i].tensor->bundle)
      return NULL;
  return home;
}

void ccn__resident_bytes(ccn__rt *rt, uint64_t *out) {
  for (uint32_t r = 0; r < rt->world; r++) out[r] = 0;
  for (const ccn__obj *o = rt->objects; o; o = o->next) {
    const ccn__tensor *t = (const ccn__tensor *)o;
    for (uint32_t r = 0; o->kind == CCN__V_TENSOR && r < t->world && r < rt->world; r++)
      if (t->buf[r]) out[r] += t->buf[r]->bytes;
  }
}
