/* execute.c: one call: memory of its values, steps in order, results and stores.
 *
 * Arguments are read where they lie. One that is stored is written in place if it belongs to this call
 * alone and nothing behind the first write can fail; else in a copy, which takes its place at the end. So
 * each rank has its own copy of a replicated tensor once a program has stored into it, and the next call
 * makes none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

enum {
  WRAPPED = UINT32_MAX / 2, /* references of a buffer that nobody frees */
  COLLECT_FROM = 1 << 16    /* bytes that are worth a collection at the statement's end */
};

void *ccn__local_place(const ccn__local_run *e, uint32_t buffer, uint32_t rank) {
  const ccn__buffer *b = &e->p->buffers.at[buffer];
  if (b->kind == CCN__BUFFER_TEMPORARY) return (char *)e->l->room[rank]->data + b->offset;
  const ccn__buf *m = e->memory[(size_t)buffer * e->p->world + rank];
  return m ? m->data : NULL;
}

/* ---- values for evaluators -------------------------------------------------------------------------- */

/* Whether the step that runs may write the memory while somebody still reads it. */
static bool overwritten(const ccn__step *t, uint32_t buffer) {
  for (uint32_t k = 0; k < t->naccess; k++)
    if ((t->access[k].mode & CCN__WRITE) && t->access[k].buffer == buffer) return true;
  return false;
}

static ccn__buf *wrapped(ccn__local_run *e, ccn__id id, uint32_t rank, void *data, size_t bytes) {
  ccn__buf **at = &e->wrap[(size_t)id * e->p->world + rank];
  if (!*at) *at = CCN__NEW(&e->r->arena, ccn__buf);
  **at = (ccn__buf){.refs = WRAPPED, .bytes = bytes, .pool = &e->l->pool, .data = data};
  return *at;
}

static void load(ccn__local_run *e, ccn__id id, uint32_t buffer, bool copy) {
  ccn__run *r = e->r;
  ccn__value *v = ccn__value_prepare(r, id);
  for (uint32_t k = 0; k < r->world; k++) {
    if (!ccn__rank_has(r->mesh, k, v->place)) continue;
    const size_t bytes = (size_t)ccn__plan_bytes(e->p, id, k);
    void *data = ccn__local_place(e, buffer, k);
    if (!copy) {
      v->piece[k].buf = wrapped(e, id, k, data, bytes);
      continue;
    }
    v->piece[k].buf = ccn__buf_room(&r->pool, bytes);
    if (bytes) memcpy(v->piece[k].buf->data, data, bytes);
  }
}

static void ensure_for(ccn__local_run *e, ccn__id id, const ccn__step *t) {
  const ccn__node *n = &e->p->g->nodes.at[id];
  const ccn__id root = e->p->root[id];
  if (e->made[id] == e->now) return;
  const bool inside = e->made[root] == e->now; /* made by this step: its own bytes, not what lies in memory */
  if (e->p->parts[id] && root == id) {
    if (!e->r->value[id]) ccn__defect(e->r, n, "is read before its step");
  } else if (root == id && n->op == CCN__OP_CONST) {
    ccn__run_node(e->r, id);
  } else if (!e->p->parts[id] && !inside && e->p->buffer[id] != CCN__NO_BUFFER) {
    load(e, id, e->p->buffer[id], t && overwritten(t, e->p->buffer[id]));
  } else if (root != id) {
    ensure_for(e, n->in[n->op == CCN__OP_UPDATE], t);
    ccn__run_node(e->r, id);
  } else {
    ccn__defect(e->r, n, "has no memory and was not made in the step that reads it");
  }
  e->made[id] = e->now;
}

void ccn__local_ensure(ccn__local_run *e, ccn__id id) { ensure_for(e, id, NULL); }

static void store(ccn__local_run *e, ccn__id id, uint32_t buffer) {
  ccn__run *r = e->r;
  ccn__value *v = ccn__fold(r, &e->p->g->nodes.at[id], r->value[id]);
  for (uint32_t k = 0; k < r->world; k++)
    if (v->piece[k].buf && v->piece[k].buf->bytes)
      memcpy(ccn__local_place(e, buffer, k), v->piece[k].buf->data, v->piece[k].buf->bytes);
}

static void let_go(ccn__local_run *e, const ccn__step *t) {
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &e->p->g->nodes.at[t->node[k]];
    if (!e->p->parts[t->node[k]]) ccn__value_release(e->r, e->r->value[t->node[k]]);
    for (uint32_t j = 0; j < n->nin; j++)
      if (!e->p->parts[n->in[j]]) ccn__value_release(e->r, e->r->value[n->in[j]]);
  }
}

/* ---- steps ------------------------------------------------------------------------------------------ */

static void evaluate(ccn__local_run *e, const ccn__step *t) {
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &e->p->g->nodes.at[t->node[k]];
    for (uint32_t j = n->op == CCN__OP_UPDATE; j < n->nin; j++) ensure_for(e, n->in[j], t);
    atomic_store_explicit(&e->at, t->node[k], memory_order_relaxed);
    if (e->made[t->node[k]] != e->now) ccn__run_node(e->r, t->node[k]);
    e->made[t->node[k]] = e->now;
  }
  for (uint32_t k = 0; k < t->naccess; k++) {
    const ccn__access *x = &t->access[k];
    if ((x->mode & CCN__WRITE) && !e->p->parts[x->value]) store(e, x->value, x->buffer);
  }
  let_go(e, t);
}

/* From memory to memory; cannot fail. */
static void copy_plainly(ccn__local_run *e, const ccn__step *t) {
  for (uint32_t k = 0; k + 1 < t->naccess; k += 2)
    for (uint32_t r = 0; r < e->p->world; r++) {
      const size_t bytes = (size_t)ccn__plan_bytes(e->p, t->access[k].value, r);
      if (bytes)
        memcpy(ccn__local_place(e, t->access[k + 1].buffer, r), ccn__local_place(e, t->access[k].buffer, r),
               bytes);
    }
}

static void copy_step(ccn__local_run *e, const ccn__step *t) {
  ccn__run *r = e->r;
  for (uint32_t k = 0; k + 1 < t->naccess; k += 2)
    ensure_for(e, t->access[k].value, t); /* all read, then all written */
  for (uint32_t k = 0; k + 1 < t->naccess; k += 2) {
    const ccn__id from = t->access[k].value, to = t->access[k + 1].value;
    if (e->p->parts[to] && e->p->g->nodes.at[to].op == CCN__OP_CARRY) {
      ccn__value *v = r->value[from], *old = r->value[to];
      r->value[to] = NULL;
      ccn__value *w = ccn__value_prepare(r, to);
      ccn__value_share(r, w, v);
      ccn__value_release(r, old);
    } else {
      store(e, from, t->access[k + 1].buffer);
    }
  }
}

static void run_step(ccn__local_run *e, uint32_t i, bool bound) {
  const ccn__step *t = &e->p->steps.at[i];
  e->now++;
  if (t->nnodes) atomic_store_explicit(&e->at, t->node[0], memory_order_relaxed);
  if (bound) e->stored |= e->q->step[i].stores;
  if (t->kind == CCN__STEP_COPY) {
    if (e->q->step[i].plain) copy_plainly(e, t);
    else copy_step(e, t);
    return;
  }
  if (!e->q->step[i].kern) {
    evaluate(e, t);
    return;
  }
  if (!bound) ccn__local_bind(e, i);
  if (!ccn__local_kernel(e, i)) {
    e->now++;
    evaluate(e, t); /* raises, in the interpreter's words */
  }
}

static void run_steps(ccn__local_run *e, uint32_t from, uint32_t to, bool bound) {
  for (uint32_t i = from; i < to; i++) {
    const ccn__step *t = &e->p->steps.at[i];
    if (t->kind == CCN__STEP_REPEAT) {
      for (int64_t pass = 0; pass < t->times; pass++) run_steps(e, i + 1, t->end, false);
      i = t->end - 1;
    } else if (t->chunk == 0) { /* one worker gains nothing from chunks: a step does all of them */
      run_step(e, i, bound);
    }
  }
}

/* ---- memory of a call ------------------------------------------------------------------------------- */

static bool alone(const ccn__exec *x, uint32_t param, const ccn__buf *b) {
  if (b->refs != 1) return false;
  for (uint32_t i = 0; i < x->g->params.n; i++) /* the same tensor for two parameters */
    for (uint32_t k = 0; i != param && k < x->arg[i]->world; k++)
      if (x->arg[i]->buf[k] == b) return false;
  return true;
}

/* Results never stand in the host's memory. */
static bool is_returned(const ccn__local_run *e, uint32_t buffer) {
  for (uint32_t k = 0; k < e->p->g->noutputs; k++)
    if (e->p->result[k] == buffer) return true;
  return false;
}

static ccn__buf *argument(ccn__local_run *e, uint32_t buffer, uint32_t rank) {
  const uint32_t param = e->p->buffers.at[buffer].param;
  const ccn__exec *x = e->r->x;
  ccn__buf *b = x->arg[param]->buf[rank];
  if (!b || !e->q->written[buffer]) return b;
  const bool lent = b->outside && is_returned(e, buffer);
  if (e->q->lendable[buffer] && !e->r->rt->trial && !lent && alone(x, param, b)) return b;
  ccn__buf *own = ccn__buf_room(&e->r->pool, b->bytes);
  if (b->bytes) memcpy(own->data, b->data, b->bytes);
  return own;
}

static void get_room(ccn__local_run *e) {
  ccn__local *l = e->l;
  for (uint32_t k = 0; k < e->p->world; k++) {
    if (l->room[k] && (int64_t)l->room[k]->bytes >= e->q->room) continue;
    ccn__buf_unref(l->room[k]);
    l->room[k] = NULL;
    l->room[k] = ccn__buf_room(&l->pool, (size_t)e->q->room);
  }
}

static void get_memory(ccn__local_run *e) {
  ccn__run *r = e->r;
  const ccn__plan *p = e->p;
  get_room(e);
  e->memory = CCN__NEWN(&r->arena, ccn__buf *, (size_t)p->buffers.n * r->world + 1);
  e->wrap = CCN__NEWN(&r->arena, ccn__buf *, (size_t)p->g->nodes.n * r->world + 1);
  e->made = CCN__NEWN(&r->arena, uint32_t, p->g->nodes.n + 1);
  e->bound = CCN__NEWN(&r->arena, ccn__bound, p->steps.n + 1);
  for (uint32_t b = 0; b < p->buffers.n; b++)
    for (uint32_t k = 0; k < r->world; k++) {
      ccn__buf **to = &e->memory[(size_t)b * r->world + k];
      if (p->buffers.at[b].kind == CCN__BUFFER_ARGUMENT) *to = argument(e, b, k);
      if (p->buffers.at[b].kind != CCN__BUFFER_RESULT) continue;
      *to = ccn__buf_room(&r->pool, (size_t)ccn__plan_bytes(p, p->buffers.at[b].value, k));
    }
}

/* ---- results and stores ----------------------------------------------------------------------------- */

/* A buffer of the run's memory; a second tensor with the same one shares it. */
static ccn__buf *hand_over(ccn__local_run *e, ccn__buf *b) {
  if (b->pool == &e->r->rt->pool) {
    /* if nobody keeps the result, the next call should find the argument alone again */
    if (b->bytes >= COLLECT_FROM) e->r->rt->next_collect = 0;
    return ccn__buf_ref(b);
  }
  ccn__buf_move(b, &e->r->rt->pool);
  return b;
}

/* A literal's, which its value holds too. */
static ccn__buf *share(ccn__local_run *e, ccn__buf *b) {
  ccn__buf_move(b, &e->r->rt->pool);
  return ccn__buf_ref(b);
}

/* The tensors of the results, before anything runs: nothing can fail at the end. */
static void make_results(ccn__local_run *e) {
  ccn__run *r = e->r;
  e->now++;
  for (uint32_t k = 0; k < r->g->noutputs; k++) {
    const ccn__id id = r->g->outputs[k];
    if (e->p->result[k] == CCN__NO_BUFFER) ccn__local_ensure(e, id);
    else if (!r->value[id]) (void)ccn__value_prepare(r, id);
    r->x->result[k] = ccn__result_tensor(r, r->value[id]);
    for (uint32_t j = 0; j < r->world; j++) {
      if (!ccn__rank_has(r->mesh, j, r->value[id]->place)) continue;
      if (e->p->result[k] == CCN__NO_BUFFER) r->x->result[k]->buf[j] = share(e, r->value[id]->piece[j].buf);
    }
  }
}

static void finish(ccn__local_run *e) {
  ccn__run *r = e->r;
  for (uint32_t k = 0; k < r->g->noutputs; k++)
    for (uint32_t j = 0; j < r->world && e->p->result[k] != CCN__NO_BUFFER; j++) {
      const ccn__tensor *t = r->x->result[k];
      if (ccn__rank_has(r->mesh, j, t->place))
        r->x->result[k]->buf[j] = hand_over(e, e->memory[(size_t)e->p->result[k] * r->world + j]);
    }
  for (uint32_t b = 0; b < e->p->buffers.n && !r->rt->trial; b++) {
    if (e->p->buffers.at[b].kind != CCN__BUFFER_ARGUMENT || !e->q->written[b]) continue;
    ccn__tensor *t = r->x->arg[e->p->buffers.at[b].param];
    for (uint32_t j = 0; j < r->world; j++) {
      ccn__buf *old = t->buf[j], *own = e->memory[(size_t)b * r->world + j];
      if (old == own) continue;
      if (old->outside) {
        if (old->bytes) memcpy(old->data, own->data, old->bytes);
        continue;
      }
      t->buf[j] = hand_over(e, own);
      ccn__buf_unref(old);
    }
  }
}

/* ---- a call ----------------------------------------------------------------------------------------- */

static void run(ccn__run *r, void *user) {
  ccn__local_run *e = user;
  const ccn__plan *p = e->p;
  const uint32_t steady = e->q->last_unsteady;
  e->r = r;
  ccn__local_watch(e->l, r->rt, e);
  get_memory(e);
  make_results(e);
  run_steps(e, 0, steady, false);
  for (uint32_t i = steady; i < p->steps.n; i++) {
    e->now++;
    if (e->q->step[i].kern) ccn__local_bind(e, i);
  }
  run_steps(e, steady, p->steps.n, true);
  finish(e);
  ccn__local_watch(e->l, r->rt, NULL);
}

static bool is_looked_at(const ccn__exec *x) { /* value by value, as only the interpreter has them */
  const ccn_options *o = x->rt->options;
  return x->unshared || (o && (o->check_nan || o->nwatch));
}

void ccn__local_execute(ccn__exec *x) {
  ccn__trap trap;
  ccn__local *l = x->text && !is_looked_at(x) ? ccn__local_of(x->rt) : NULL;
  if (!l || l->busy) {
    ccn__interp(x);
    return;
  }
  ccn__local_run e = {.l = l}; /* the watchdog looks at it until the call has ended */
  l->busy = true;
  CCN__TRY(l->heap, trap)
  {
    e.q = ccn__local_ready(l, x);
    e.p = e.q->plan;
    ccn__interp_with(x, run, &e);
  }
  CCN__CATCH(l->heap, trap)
  {
    l->busy = false;
    ccn__local_watch(l, x->rt, NULL);
    ccn__throw(l->heap, trap.status);
  }
  l->busy = false;
}
