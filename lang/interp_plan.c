/* interp_plan.c: a plan executed by the reference interpreter's evaluators: step by step, every value that passes
 * between steps in the memory that the plan gives it.
 *
 * Each rank has its arena, results and copies of its arguments, all poisoned; a step loads what it reads, evaluates its
 * nodes and stores what it writes (of a chunk, the chunk only). A value that the plan let die too early, or gave memory
 * that is still in use, comes back wrong. Owed values in parts have no plain form and stay with the run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"
#include "plan.h"

typedef struct planned {
  ccn__run *r;
  const ccn__plan *p;
  uint64_t seed;
  ccn__buf **arena;  /* of each rank */
  ccn__buf **memory; /* of each buffer and rank, other than temporaries */
  uint32_t *made;    /* of each node: the number of the step that made or loaded it, + 1 */
  uint32_t now;
} planned;

static char *place(planned *e, uint32_t buffer, uint32_t rank) {
  const ccn__buffer *b = &e->p->buffers.at[buffer];
  if (b->kind == CCN__BUFFER_TEMPORARY) return (char *)e->arena[rank]->data + b->offset;
  return e->memory[(size_t)buffer * e->p->world + rank]->data;
}

static uint32_t draw(planned *e, uint32_t n) { /* splitmix64 */
  uint64_t z = e->seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ (z >> 31)) % n);
}

/* ---- values between memory and the evaluators ------------------------------------------------------------------ */

static ccn__value *load(planned *e, ccn__id id, uint32_t buffer) {
  ccn__run *r = e->r;
  ccn__value *v = ccn__value_prepare(r, id);
  for (uint32_t k = 0; k < r->world; k++) {
    if (!ccn__rank_has(r->mesh, k, v->place)) continue;
    const size_t bytes = (size_t)ccn__plan_bytes(e->p, id, k);
    v->piece[k].buf = ccn__buf_new(&r->pool, bytes);
    if (bytes) memcpy(v->piece[k].buf->data, place(e, buffer, k), bytes);
  }
  return v;
}

/* The value is with the run, for the step that runs. */
static void ensure(planned *e, ccn__id id) {
  const ccn__node *n = &e->p->g->nodes.at[id];
  const ccn__id root = e->p->root[id];
  if (e->made[id] == e->now) return;
  const bool inside = e->made[root] == e->now; /* made by this step: its own bytes, not what lies in memory */
  if (e->p->parts[id] && root == id) {
    if (!e->r->value[id]) ccn__defect(e->r, n, "is read before its step");
  } else if (root == id && n->op == CCN__OP_CONST) {
    ccn__run_node(e->r, id);
  } else if (!e->p->parts[id] && !inside && e->p->buffer[id] != CCN__NO_BUFFER) {
    load(e, id, e->p->buffer[id]);
  } else if (root != id) {
    ensure(e, n->in[n->op == CCN__OP_UPDATE]);
    ccn__run_node(e->r, id);
  } else {
    ccn__defect(e->r, n, "has no memory and was not made in the step that reads it");
  }
  e->made[id] = e->now;
}

static void copy_range(const ccn__value *v, const ccn__box *b, uint32_t dim, int64_t from, int64_t to,
                       char *dst, const char *src) {
  int64_t at[CCN__MAX_RANK] = {0}, extent[CCN__MAX_RANK];
  memcpy(extent, b->extent, sizeof extent);
  at[dim] = from;
  extent[dim] = to - from;
  ccn__copy_box(ccn__dtype_size((ccn__dtype)v->dtype), v->rank, dst, b->extent, at, src, b->extent, at,
                extent);
}

static void store(planned *e, const ccn__step *t, ccn__id id, uint32_t buffer, bool chunked) {
  ccn__run *r = e->r;
  const ccn__node *n = &e->p->g->nodes.at[id];
  ccn__value *v = ccn__fold(r, n, r->value[id]);
  for (uint32_t k = 0; k < r->world; k++) {
    ccn__chunk c;
    ccn__box b;
    if (!v->piece[k].buf || !v->piece[k].buf->bytes) continue;
    char *to = place(e, buffer, k);
    if (!chunked) {
      memcpy(to, v->piece[k].buf->data, v->piece[k].buf->bytes);
      continue;
    }
    ccn__plan_chunk(e->p, t, id, k, &c);
    ccn__value_box(r, v, k, &b);
    for (uint32_t i = 0; i < c.n; i++) {
      int64_t from, until;
      ccn__chunk_range(&c, i, &from, &until);
      if (from < until) copy_range(v, &b, c.dim, from, until, to, v->piece[k].buf->data);
    }
  }
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static void copy_step(planned *e, const ccn__step *t) {
  ccn__run *r = e->r;
  for (uint32_t k = 0; k + 1 < t->naccess; k += 2)
    ensure(e, t->access[k].value); /* all read, then all written */
  for (uint32_t k = 0; k + 1 < t->naccess; k += 2) {
    const ccn__id from = t->access[k].value, to = t->access[k + 1].value;
    if (e->p->parts[to] && e->p->g->nodes.at[to].op == CCN__OP_CARRY) {
      ccn__value *v = r->value[from], *old = r->value[to];
      r->value[to] = NULL;
      ccn__value *w = ccn__value_prepare(r, to);
      ccn__value_share(r, w, v);
      ccn__value_release(r, old);
    } else {
      store(e, t, from, t->access[k + 1].buffer, false);
    }
  }
}

static void let_go(planned *e, const ccn__step *t) {
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__id id = t->node[k];
    if (!e->p->parts[id]) ccn__value_release(e->r, e->r->value[id]);
    for (uint32_t j = 0; j < e->p->g->nodes.at[id].nin; j++) {
      const ccn__id x = e->p->g->nodes.at[id].in[j];
      if (!e->p->parts[x]) ccn__value_release(e->r, e->r->value[x]);
    }
  }
}

static void run_step(planned *e, uint32_t at) {
  const ccn__step *t = &e->p->steps.at[at];
  const ccn__graph *g = e->p->g;
  e->now++;
  if (t->kind == CCN__STEP_COPY) {
    copy_step(e, t);
    return;
  }
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &g->nodes.at[t->node[k]];
    for (uint32_t j = n->op == CCN__OP_UPDATE; j < n->nin; j++) ensure(e, n->in[j]);
    if (e->made[t->node[k]] != e->now) ccn__run_node(e->r, t->node[k]);
    e->made[t->node[k]] = e->now;
  }
  for (uint32_t k = 0; k < t->naccess; k++) {
    const ccn__access *x = &t->access[k];
    if ((x->mode & CCN__WRITE) && !e->p->parts[x->value]) store(e, t, x->value, x->buffer, x->chunked);
  }
  let_go(e, t);
}

/* What nobody needs any more is poisoned, so that a life that ends too early shows. */
static void bury(planned *e, uint32_t epoch) {
  for (uint32_t b = 0; b < e->p->buffers.n; b++) {
    const ccn__buffer *x = &e->p->buffers.at[b];
    for (uint32_t k = 0; x->kind == CCN__BUFFER_TEMPORARY && x->last == epoch && k < e->p->world; k++)
      memset(place(e, b, k), 0xff, (size_t)x->bytes);
  }
}

static bool is_ready(const planned *e, const bool *done, uint32_t from, uint32_t i) {
  const ccn__step *t = &e->p->steps.at[i];
  for (uint32_t k = from; k < i; k++)
    if (!done[k - from] && e->p->steps.at[k].stream == t->stream) return false;
  for (uint32_t w = 0; w < t->nwait; w++)
    if (t->wait[w] >= from && !done[t->wait[w] - from]) return false;
  return true;
}

/* The steps of one epoch, in an order that is drawn from those that the waits allow. */
static void run_epoch(planned *e, uint32_t from, uint32_t to) {
  bool *done = CCN__NEWN(&e->r->arena, bool, to - from);
  for (uint32_t left = to - from; left; left--) {
    uint32_t n = 0, chosen = to;
    for (uint32_t i = from; i < to; i++)
      if (!done[i - from] && is_ready(e, done, from, i) && draw(e, ++n) == 0) chosen = i;
    if (chosen == to)
      ccn__defect(e->r, &e->p->g->nodes.at[0], "stands in a plan whose steps wait for one another");
    run_step(e, chosen);
    done[chosen - from] = true;
  }
}

static void run_steps(planned *e, uint32_t from, uint32_t to, bool top) {
  for (uint32_t i = from; i < to;) {
    const ccn__step *t = &e->p->steps.at[i];
    uint32_t end = i + 1;
    if (t->kind == CCN__STEP_REPEAT) {
      end = t->end;
      for (int64_t pass = 0; pass < t->times; pass++) run_steps(e, i + 1, end, false);
    } else {
      while (end < to && e->p->steps.at[end].epoch == t->epoch) end++;
      run_epoch(e, i, end);
    }
    if (top)
      for (uint32_t k = t->epoch; k <= e->p->steps.at[end - 1].epoch; k++) bury(e, k);
    i = end;
  }
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static void get_memory(planned *e) {
  ccn__run *r = e->r;
  e->arena = CCN__NEWN(&r->arena, ccn__buf *, r->world);
  e->memory = CCN__NEWN(&r->arena, ccn__buf *, (size_t)e->p->buffers.n * r->world + 1);
  e->made = CCN__NEWN(&r->arena, uint32_t, e->p->g->nodes.n + 1);
  for (uint32_t k = 0; k < r->world; k++) e->arena[k] = ccn__buf_new(&r->pool, (size_t)e->p->arena_bytes);
  for (uint32_t b = 0; b < e->p->buffers.n; b++) {
    const ccn__buffer *x = &e->p->buffers.at[b];
    for (uint32_t k = 0; x->kind != CCN__BUFFER_TEMPORARY && k < r->world; k++) {
      ccn__buf *to = e->memory[(size_t)b * r->world + k] = ccn__buf_new(&r->pool, (size_t)x->bytes);
      const ccn__buf *from = x->kind == CCN__BUFFER_ARGUMENT ? r->x->arg[x->param]->buf[k] : NULL;
      if (from && from->bytes)
        memcpy(to->data, from->data, from->bytes < to->bytes ? from->bytes : to->bytes);
    }
  }
}

static void run_plan(ccn__run *r, void *user) {
  planned *e = user;
  const ccn__graph *g = r->g;
  e->r = r;
  r->unshared = true; /* every rank from its own memory */
  get_memory(e);
  run_steps(e, 0, e->p->steps.n, true);
  e->now++;
  for (uint32_t k = 0; k < g->params.n; k++) {
    const ccn__param *m = &g->params.at[k];
    if (m->update != CCN__NO_ID) load(e, m->update, e->p->buffer[m->node]);
  }
  for (uint32_t k = 0; k < g->noutputs; k++) {
    const ccn__id id = g->outputs[k];
    if (e->p->result[k] != CCN__NO_BUFFER) load(e, id, e->p->result[k]);
    else ensure(e, id);
  }
  ccn__run_finish(r);
}

void ccn__interp_plan(ccn__exec *x, const ccn__plan *p, uint64_t seed) {
  planned e = {.p = p, .seed = seed};
  ccn__interp_with(x, run_plan, &e);
}
