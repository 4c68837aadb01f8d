/* prepare.c: plans made ready: kernels of their steps, their code, what may be written in place; kept by
 * sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

enum { PLANS_KEPT = 128 };

/* ---- found again ------------------------------------------------------------------------------------ */

static bool same_members(const ccn__members *x, const ccn__members *y) {
  return x->k == y->k && memcmp(x->at, y->at, x->k * sizeof x->at[0]) == 0;
}

static bool fits(const ccn__ready *q, const ccn__exec *x) {
  if (q->g != x->g || memcmp(q->sym, x->sym, x->g->symbols.n * sizeof *x->sym) != 0) return false;
  for (uint32_t b = 0; b < x->g->nbundles; b++)
    if (!same_members(q->bundle[b], x->bundle[b])) return false;
  return true;
}

static void forget(ccn__local *l) {
  for (ccn__ready *q = l->plans, *next; q; q = next) {
    next = q->next;
    ccn__arena_free(&q->arena);
    ccn__heap_free(l->heap, q, sizeof *q);
  }
  l->plans = NULL;
  l->nplans = 0;
}

/* ---- kernels ---------------------------------------------------------------------------------------- */

static bool in_step(const ccn__step *t, ccn__id id) {
  for (uint32_t k = 0; k < t->nnodes; k++)
    if (t->node[k] == id) return true;
  return false;
}

static bool is_name(const ccn__node *n) { return n->op == CCN__OP_UPDATE || n->op == CCN__OP_ENTER; }

/* The step's nodes, and the other names under which they read each other. */
static void with_names(const ccn__plan *p, const ccn__step *t, ccn__arena *a, ccn__kern_in *in) {
  const ccn__graph *g = p->g;
  bool *take = CCN__NEWN(a, bool, g->nodes.n + 1);
  ccn__id *node = CCN__NEWN(a, ccn__id, g->nodes.n + 1);
  uint32_t n = 0;
  for (uint32_t k = t->nnodes; k-- > 0;) take[t->node[k]] = true;
  for (ccn__id i = g->nodes.n; i-- > 0;) {
    const ccn__node *x = &g->nodes.at[i];
    if (!take[i]) continue;
    for (uint32_t j = 0; j < x->nin; j++)
      if (is_name(&g->nodes.at[x->in[j]]) && in_step(t, p->root[x->in[j]])) take[x->in[j]] = true;
  }
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (take[i]) node[n++] = i;
  in->node = node;
  in->nnodes = n;
}

static const char *slot_fits(const ccn__plan *p, const ccn__step *t, const ccn__kern *k,
                             const ccn__kslot *s) {
  if (s->kind == CCN__KSLOT_SCRATCH || s->parts) return NULL;
  if (p->parts[s->node]) return "a value is owed in parts";
  if (p->buffer[s->node] == CCN__NO_BUFFER) return "a value has no memory";
  if (s->kind == CCN__KSLOT_IN && in_step(t, p->root[s->node])) return "a value has another shape inside";
  for (uint32_t r = 0; r < k->world; r++)
    if (s->bytes[r] != ccn__plan_bytes(p, s->node, r)) return "a value has another size";
  return NULL;
}

/* Parts that go out are finished by a step that says how they lie. */
static bool finished(const ccn__kern *k, uint32_t slot) {
  for (uint32_t i = 0; i < k->steps.n; i++)
    if (k->steps.at[i].kind == CCN__KSTEP_FINISH && k->steps.at[i].dst == slot) return true;
  return false;
}

static bool must_move(const ccn__kern *k, const ccn__ready_step *s, uint32_t out) {
  for (uint32_t i = 0; i < k->slots.n; i++)
    if (k->slots.at[i].kind == CCN__KSLOT_IN && s->buffer[i] == s->buffer[out] &&
        !ccn__kern_may_alias(k, i, out))
      return true;
  return false;
}

static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static const char *place_slots(ccn__ready *q, const ccn__step *t, ccn__kern *k, ccn__ready_step *s) {
  const ccn__plan *p = q->plan;
  int64_t at = padded(p->arena_bytes);
  s->buffer = CCN__NEWN(&q->arena, uint32_t, k->slots.n + 1);
  s->final = CCN__NEWN(&q->arena, uint32_t, k->slots.n + 1);
  s->scratch = CCN__NEWN(&q->arena, int64_t, k->slots.n + 1);
  for (uint32_t i = 0; i < k->slots.n; i++) {
    const ccn__kslot *x = &k->slots.at[i];
    const bool here = x->kind == CCN__KSLOT_SCRATCH || x->parts;
    const char *why = slot_fits(p, t, k, x);
    if (why) return why;
    if (x->kind == CCN__KSLOT_OUT && x->parts && !finished(k, i)) return "parts go out that nobody finished";
    s->buffer[i] = here ? CCN__NO_BUFFER : p->buffer[x->node];
    s->final[i] = CCN__NO_BUFFER;
  }
  for (uint32_t i = 0; i < k->slots.n; i++) {
    int64_t most = 0;
    if (k->slots.at[i].kind == CCN__KSLOT_OUT && s->buffer[i] != CCN__NO_BUFFER && must_move(k, s, i)) {
      s->final[i] = s->buffer[i];
      s->buffer[i] = CCN__NO_BUFFER;
    }
    if (s->buffer[i] != CCN__NO_BUFFER) continue;
    for (uint32_t r = 0; r < k->world; r++)
      most = k->slots.at[i].bytes[r] > most ? k->slots.at[i].bytes[r] : most;
    s->scratch[i] = at;
    at += padded(most);
  }
  if (at > q->room) q->room = at;
  return NULL;
}

static void make_kernel(ccn__local *l, ccn__ready *q, ccn__exec *x, const ccn__step *t, ccn__ready_step *s) {
  ccn__kern_in in = {
    .arena = &q->arena, .g = x->g, .shape = q->plan->shape, .sym = q->sym, .bundle = q->bundle};
  with_names(q->plan, t, &q->arena, &in);
  ccn__kern *k = ccn__kern_build(&in);
  s->why = k ? place_slots(q, t, k, s) : in.why;
  if (s->why) return;
  if (!l->jit) s->why = "there is no emitter for this machine";
  else s->fn = ccn__jit_get(l->jit, k, &s->why);
  if (s->fn) s->kern = k;
  else s->why = ccn__arena_printf(&q->arena, "%s", s->why);
}

/* ---- what may fail ---------------------------------------------------------------------------------- */

static bool is_plain_copy(const ccn__plan *p, const ccn__step *t) {
  if (t->kind != CCN__STEP_COPY) return false;
  for (uint32_t k = 0; k + 1 < t->naccess; k += 2) {
    const ccn__access *from = &t->access[k], *to = from + 1;
    if (from->buffer == CCN__NO_BUFFER || p->parts[from->value] || p->parts[to->value]) return false;
    for (uint32_t j = 1; j < t->naccess; j += 2)
      if (from->buffer == t->access[j].buffer) return false;
  }
  return true;
}

/* Whether the step, once its memory is there, cannot fail. */
static bool is_steady(const ccn__ready *q, uint32_t i) {
  const ccn__step *t = &q->plan->steps.at[i];
  const ccn__ready_step *s = &q->step[i];
  if (t->kind == CCN__STEP_COPY) return s->plain;
  if (!s->kern || s->kern->faults.n) return false;
  for (uint32_t k = 0; k < s->kern->slots.n; k++)
    if (s->kern->slots.at[k].parts && s->kern->slots.at[k].kind == CCN__KSLOT_IN) return false;
  return true;
}

static void find_lendable(ccn__ready *q) {
  const ccn__plan *p = q->plan;
  q->written = CCN__NEWN(&q->arena, bool, p->buffers.n + 1);
  q->lendable = CCN__NEWN(&q->arena, bool, p->buffers.n + 1);
  for (uint32_t i = 0; i < p->steps.n; i++) {
    const ccn__step *t = &p->steps.at[i];
    if (t->kind == CCN__STEP_REPEAT) q->last_unsteady = t->end > q->last_unsteady ? t->end : q->last_unsteady;
    else if (t->chunk == 0 && !is_steady(q, i) && i + 1 > q->last_unsteady) q->last_unsteady = i + 1;
  }
  for (uint32_t b = 0; b < p->buffers.n; b++) q->lendable[b] = p->buffers.at[b].kind == CCN__BUFFER_ARGUMENT;
  for (uint32_t i = 0; i < p->steps.n; i++)
    for (uint32_t k = 0; k < p->steps.at[i].naccess; k++) {
      const ccn__access *a = &p->steps.at[i].access[k];
      if (!(a->mode & (CCN__WRITE | CCN__WRITE_PEERS)) || a->buffer == CCN__NO_BUFFER) continue;
      q->written[a->buffer] = true;
      if (p->buffers.at[a->buffer].kind == CCN__BUFFER_ARGUMENT) q->step[i].stores = true;
      if (i < q->last_unsteady) q->lendable[a->buffer] = false;
    }
}

/* ---- a plan ----------------------------------------------------------------------------------------- */

static void keep_sizes(ccn__ready *q, const ccn__exec *x) {
  q->sym = CCN__NEWN(&q->arena, int64_t, x->g->symbols.n + 1);
  if (x->g->symbols.n) memcpy(q->sym, x->sym, x->g->symbols.n * sizeof *x->sym);
  q->bundle = CCN__NEWN(&q->arena, ccn__members *, x->g->nbundles + 1);
  for (uint32_t b = 0; b < x->g->nbundles; b++) {
    const size_t bytes = ccn__members_size(x->bundle[b]->k);
    q->bundle[b] = ccn__arena_alloc(&q->arena, bytes);
    memcpy(q->bundle[b], x->bundle[b], bytes);
  }
}

ccn__ready *ccn__local_ready(ccn__local *l, ccn__exec *x) {
  for (ccn__ready *q = l->plans; q; q = q->next)
    if (q->g && fits(q, x)) return q;
  if (l->nplans >= PLANS_KEPT) forget(l);
  ccn__ready *q = ccn__heap_alloc(l->heap, sizeof *q);
  ccn__arena_init(&q->arena, l->heap);
  q->next = l->plans;
  l->plans = q;
  l->nplans++;
  keep_sizes(q, x);
  q->plan = ccn__plan_make(&q->arena, x->g, q->sym, q->bundle);
  q->room = padded(q->plan->arena_bytes);
  q->step = CCN__NEWN(&q->arena, ccn__ready_step, q->plan->steps.n + 1);
  for (uint32_t i = 0; i < q->plan->steps.n; i++) {
    const ccn__step *t = &q->plan->steps.at[i];
    q->step[i].plain = is_plain_copy(q->plan, t);
    if (t->kind == CCN__STEP_KERNEL || t->kind == CCN__STEP_COLLECTIVE || t->kind == CCN__STEP_OP)
      if (t->chunk == 0) make_kernel(l, q, x, t, &q->step[i]);
  }
  find_lendable(q);
  q->g = x->g;
  return q;
}

/* ---- the engine ------------------------------------------------------------------------------------- */

static void drop(ccn__engine *engine) {
  ccn__local *l = (ccn__local *)engine;
  ccn__local_watch_end(l);
  ccn__workers_close(l->workers);
  forget(l);
  ccn__jit_close(l->jit);
  ccn__pool_clear(&l->pool);
  ccn__heap_free(l->heap, l, sizeof *l);
}

ccn__local *ccn__local_of(ccn__rt *rt) {
  if (rt->engine) return (ccn__local *)rt->engine;
  ccn__local *l = ccn__heap_alloc(rt->heap, sizeof *l);
  l->engine.drop = drop;
  l->heap = l->pool.heap = rt->heap;
  l->jit = ccn__jit_open(NULL);
  rt->engine = &l->engine;
  return l;
}
