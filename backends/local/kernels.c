/* kernels.c: ranks stepped through a kernel, from meeting to meeting.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

enum {
  CHUNK = 16 * 1024,            /* elements between two looks at the clock */
  WORTH_WORKERS = 32 * 1024,    /* elements of a phase that threads share */
  STREAM_FROM = 4 * 1024 * 1024 /* bytes that a kernel writes to peers on a rank: beyond the caches */
};

/* ---- values in parts -------------------------------------------------------------------------------- */

/* The axes over which the parts of a reduction over all dims lie. */
static uint8_t tree_axes(const ccn__local_run *e, ccn__id reduce) {
  const ccn__shape *h = &e->p->shape[e->p->g->nodes.at[reduce].in[0]];
  uint8_t axes = 0;
  for (uint32_t a = 0; a < e->r->mesh->naxes; a++)
    if (h->place[a].kind == CCN__SLICED) axes |= (uint8_t)(1u << a);
  return axes;
}

static void room_for_parts(ccn__local_run *e, const ccn__ktree *t, ccn__piece *p, uint32_t rank) {
  ccn__tree_node node[CCN__TREE_MAX];
  const size_t item = ccn__dtype_size(ccn__dtype_acc((ccn__dtype)t->t));
  uint32_t n = 0;
  for (uint32_t pass = 0; pass < 2; pass++) {
    ccn__part *part = pass ? p->nodes->data : NULL;
    n = 0;
    for (uint32_t m = 0; m < t->members; m++) {
      const int64_t *run = &t->run[(rank * t->members + m) * 2];
      const uint32_t c = ccn__tree_cover((uint64_t)run[0], (uint64_t)run[1], node);
      for (uint32_t i = 0; part && i < c; i++) part[n + i] = (ccn__part){m, node[i].level, node[i].start};
      n += c;
    }
    if (pass) break;
    p->nparts = n;
    p->nodes = ccn__buf_new(&e->r->pool, n * sizeof(ccn__part));
    p->buf = ccn__buf_new(&e->r->pool, n * item);
  }
}

/* The value of a reduction whose parts are finished in this slot, still without them. */
static void prepare_parts(ccn__local_run *e, const ccn__kern *k, ccn__id id, const ccn__ktree *t) {
  ccn__value *v = ccn__value_prepare(e->r, id);
  const ccn__node *n = &e->p->g->nodes.at[id];
  v->tree = tree_axes(e, id);
  v->redop = t->op;
  v->per = e->p->shape[n->in[0]].bundle == CCN__BUNDLE_TENSORS && ccn__attr_int(n->attrs, CCN__A_PER, 0);
  for (uint32_t r = 0; r < k->world; r++)
    if (ccn__rank_has(e->r->mesh, r, v->place)) room_for_parts(e, t, &v->piece[r], r);
  e->made[id] = e->now;
}

/* The reduction that a FINISH ends. */
static ccn__id reduced_by(const ccn__kern *k, const ccn__kstep *s) { return k->slots.at[s->src].node; }

static void prepare_values(ccn__local_run *e, const ccn__kern *k, const ccn__step *t) {
  ccn__run *r = e->r;
  for (uint32_t i = 0; i < k->steps.n; i++) {
    const ccn__kstep *s = &k->steps.at[i];
    if (s->kind == CCN__KSTEP_FINISH && e->p->parts[reduced_by(k, s)])
      prepare_parts(e, k, reduced_by(k, s), &k->trees.at[s->index]);
  }
  for (uint32_t i = 0; i < t->nnodes; i++) {
    const ccn__node *n = &e->p->g->nodes.at[t->node[i]];
    r->rt->nops++;
    if (ccn__op_table[n->op].kind != CCN__KIND_COLLECTIVE || n->op == CCN__OP_SLICE) continue;
    const ccn__id x = n->in[0];
    if (e->p->parts[x]) ccn__local_ensure(e, x);
    else if (!r->value[x]) (void)ccn__value_prepare(r, x);
    if (!e->p->parts[t->node[i]] || !r->value[t->node[i]]) (void)ccn__value_prepare(r, t->node[i]);
    ccn__count_traffic(r, n, t->node[i]);
  }
}

static void take_parts(ccn__local_run *e, const ccn__kern *k, ccn__bound *b) {
  for (uint32_t i = 0; i < k->slots.n; i++) {
    const ccn__kslot *s = &k->slots.at[i];
    if (s->kind != CCN__KSLOT_IN || !s->parts) continue;
    ccn__local_ensure(e, s->node);
    const ccn__value *v = e->r->value[s->node];
    for (uint32_t r = 0; r < k->world; r++) {
      const ccn__buf *from = v->piece[r].buf;
      if (!s->bytes[r]) continue;
      if (!from || (int64_t)from->bytes != s->bytes[r])
        ccn__defect(e->r, &e->p->g->nodes.at[s->node], "has other parts than its kernel expects");
      memcpy(b->base[r][i], from->data, from->bytes);
    }
  }
}

static void give_parts(ccn__local_run *e, const ccn__kern *k, const ccn__bound *b) {
  for (uint32_t i = 0; i < k->steps.n; i++) {
    const ccn__kstep *s = &k->steps.at[i];
    if (s->kind != CCN__KSTEP_FINISH || !e->p->parts[reduced_by(k, s)]) continue;
    ccn__value *v = e->r->value[reduced_by(k, s)];
    for (uint32_t r = 0; r < k->world; r++)
      if (v->piece[r].buf && v->piece[r].buf->bytes)
        memcpy(v->piece[r].buf->data, b->base[r][s->dst], v->piece[r].buf->bytes);
  }
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static uint64_t flags_of(const ccn__kern *k, uint32_t rank) {
  int64_t sent = 0;
  for (uint32_t i = 0; i < k->slots.n; i++)
    if (k->slots.at[i].kind == CCN__KSLOT_OUT && k->slots.at[i].peers) sent += k->slots.at[i].bytes[rank];
  return sent >= STREAM_FROM ? CCN__KERN_STREAM : 0;
}

static void first_binding(ccn__local_run *e, const ccn__kern *k, ccn__bound *b) {
  ccn__arena *a = &e->r->arena;
  for (uint32_t r = 0; r < k->world; r++) {
    b->base[r] = CCN__NEWN(a, void *, k->slots.n + 1);
    b->args[r] = (ccn__kern_args){.ptr = CCN__NEWN(a, void *, k->ptrs.n + 1),
                                  .number = k->numbers + (size_t)r * k->nnumbers,
                                  .fault = CCN__NEWN(a, uint64_t, k->faults.n + 1),
                                  .flags = flags_of(k, r)};
  }
  b->done = true;
}

void ccn__local_bind(ccn__local_run *e, uint32_t step) {
  const ccn__ready_step *s = &e->q->step[step];
  const ccn__kern *k = s->kern;
  ccn__bound *b = &e->bound[step];
  prepare_values(e, k, &e->p->steps.at[step]);
  if (!b->done) first_binding(e, k, b);
  for (uint32_t r = 0; r < k->world; r++)
    for (uint32_t i = 0; i < k->slots.n; i++) {
      b->base[r][i] = NULL;
      if (!k->slots.at[i].bytes[r]) continue;
      if (s->buffer[i] == CCN__NO_BUFFER) b->base[r][i] = (char *)e->l->room[r]->data + s->scratch[i];
      else b->base[r][i] = ccn__local_place(e, s->buffer[i], r);
    }
  for (uint32_t r = 0; r < k->world; r++)
    ccn__kern_bind(k, r, (void *const *const *)b->base, (void **)(uintptr_t)b->args[r].ptr);
}

/* ---- stepping --------------------------------------------------------------------------------------- */

/* Steps [from, to) of a kernel, in which ranks do not meet: each worker does them for some ranks. */
typedef struct phase {
  ccn__local_run *e;
  const ccn__ready_step *s;
  const ccn__step *t;
  const ccn__bound *b;
  uint32_t from, to, workers;
  _Atomic bool stop; /* interrupted: worker 0, the caller's thread, has seen it */
} phase;

static bool is_late(ccn__rt *rt) {
  if (rt->interrupted || (rt->interrupt && *rt->interrupt)) return true;
  return rt->deadline && ccn__now_ms() >= rt->deadline;
}

static void loop(phase *f, uint32_t index, uint32_t rank, uint32_t worker) {
  const ccn__kern *k = f->s->kern;
  const int64_t count = k->loops.at[index].count[rank];
  for (int64_t at = 0; at < count && !f->stop;) {
    const int64_t to = ccn__kern_chunk(k, index, rank, at, CHUNK);
    f->s->fn[index](&f->b->args[rank], at, to);
    at = to;
    if (worker == 0) ccn__rt_moved(f->e->r->rt);
    if (worker == 0 && !f->e->stored && is_late(f->e->r->rt)) f->stop = true;
  }
}

static void work(void *user, uint32_t worker) {
  phase *f = user;
  const ccn__kern *k = f->s->kern;
  for (uint32_t r = worker; r < k->world; r += f->workers) {
    if (!ccn__plan_does(f->e->p, f->t, r)) continue;
    for (uint32_t i = f->from; i < f->to && !f->stop; i++) {
      if (k->steps.at[i].kind == CCN__KSTEP_LOOP) loop(f, k->steps.at[i].index, r, worker);
      else ccn__kern_step(k, i, r, (void *const *const *)f->b->base);
    }
  }
}

/* Elements that the loops of a phase go through, on all ranks. */
static int64_t elements(const phase *f) {
  const ccn__kern *k = f->s->kern;
  int64_t n = 0;
  for (uint32_t i = f->from; i < f->to; i++)
    for (uint32_t r = 0; k->steps.at[i].kind == CCN__KSTEP_LOOP && r < k->world; r++)
      n += k->loops.at[k->steps.at[i].index].count[r];
  return n;
}

static ccn__workers *workers_for(ccn__local_run *e, int64_t n) {
  const ccn_options *o = e->r->rt->options;
  const uint32_t given = o && o->workers > 0 ? (uint32_t)o->workers : 0;
  if (e->p->world == 1 || (!given && n < WORTH_WORKERS)) return NULL;
  if (!e->l->workers) e->l->workers = ccn__workers_open(given ? given : ccn__usable_cores());
  return e->l->workers;
}

static void run_phase(phase *f) {
  ccn__workers *w = workers_for(f->e, elements(f));
  f->workers = w ? ccn__workers_count(w) : 1;
  if (w) ccn__workers_run(w, work, f);
  else work(f, 0);
  while (f->stop) ccn__rt_poll(f->e->r->rt); /* throws when it looks at the clock */
}

static bool failed(const ccn__kern *k, const ccn__bound *b) {
  for (uint32_t r = 0; r < k->world; r++)
    for (uint32_t i = 0; i < k->faults.n; i++)
      if (b->args[r].fault[i]) return true;
  return false;
}

static void last_copies(ccn__local_run *e, const ccn__ready_step *s, const ccn__bound *b) {
  for (uint32_t i = 0; i < s->kern->slots.n; i++)
    for (uint32_t r = 0; s->final[i] != CCN__NO_BUFFER && r < s->kern->world; r++)
      if (s->kern->slots.at[i].bytes[r])
        memcpy(ccn__local_place(e, s->final[i], r), b->base[r][i], (size_t)s->kern->slots.at[i].bytes[r]);
}

bool ccn__local_kernel(ccn__local_run *e, uint32_t step) {
  const ccn__ready_step *s = &e->q->step[step];
  const ccn__kern *k = s->kern;
  ccn__bound *b = &e->bound[step];
  take_parts(e, k, b);
  for (uint32_t r = 0; r < k->world; r++)
    for (uint32_t i = 0; i < k->faults.n; i++) b->args[r].fault[i] = 0;
  for (uint32_t from = 0, to; from < k->steps.n; from = to) {
    for (to = from + 1; to < k->steps.n && k->steps.at[to].kind != CCN__KSTEP_SYNC;) to++;
    phase f = {.e = e, .s = s, .t = &e->p->steps.at[step], .b = b, .from = from, .to = to};
    run_phase(&f);
  }
  if (failed(k, b)) return false;
  last_copies(e, s, b);
  give_parts(e, k, b);
  return true;
}
