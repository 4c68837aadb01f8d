/* cost.c: what the steps of a plan cost on a machine (lang/cost.h): the bytes through memory and the
 * operations of each step, and the sum of its parts. Collectives are cost_collective.c's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cost_impl.h"

const char *const ccn__bound_name[] = {"link", "memory", "compute", "latency"};

int64_t ccn__cost_share(int64_t x, const ccn__step *t) {
  if (t->chunks < 2) return x;
  const int64_t each = x / t->chunks, rest = x % t->chunks; /* without overflow */
  return each + (rest * (t->chunk + 1) / t->chunks - rest * t->chunk / t->chunks);
}

/* ---- memory -------------------------------------------------------------------------------------- */

static bool in_step(const ccn__step *t, ccn__id i) {
  for (uint32_t k = 0; k < t->nnodes; k++)
    if (t->node[k] == i) return true;
  return false;
}

/* What the step reads of value v, which is not its own: all of it, unless only pieces of it are looked at. */
static int64_t bytes_read(const ccn__costing *c, const ccn__step *t, ccn__id v) {
  const ccn__plan *p = c->p;
  int64_t pieces = 0;
  bool whole = true;
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &p->g->nodes.at[t->node[k]];
    for (uint32_t j = 0; j < n->nin; j++) {
      if (p->root[n->in[j]] != p->root[v]) continue;
      if (n->op == CCN__OP_UPDATE && j == 0) continue;
      whole = n->op != CCN__OP_SLICE && n->op != CCN__OP_INDEX && !(n->op == CCN__OP_TAKE && j == 0);
      if (whole) return ccn__plan_bytes(p, v, c->rank);
      pieces += ccn__plan_bytes(p, t->node[k], c->rank);
    }
  }
  const int64_t all = ccn__plan_bytes(p, v, c->rank);
  return whole || pieces > all ? all : pieces;
}

static int64_t memory_of(const ccn__costing *c, const ccn__step *t) {
  int64_t bytes = 0;
  for (uint32_t k = 0; k < t->naccess; k++) {
    const ccn__access *x = &t->access[k];
    int64_t moved = 0;
    if (t->kind == CCN__STEP_COPY) {
      const ccn__id made = t->access[k | 1].value; /* both sides move what is made */
      moved = x->buffer == CCN__NO_BUFFER ? 0 : ccn__plan_bytes(c->p, made, c->rank);
    } else {
      const bool read = (x->mode & CCN__READ) && (!in_step(t, x->value) || (x->mode & CCN__READ_PEERS));
      if (read) moved += bytes_read(c, t, x->value);
      if (x->mode & CCN__WRITE) moved += ccn__plan_bytes(c->p, x->value, c->rank);
    }
    bytes += x->chunked ? ccn__cost_share(moved, t) : moved;
  }
  return bytes;
}

/* ---- operations ---------------------------------------------------------------------------------- */

static int64_t elements(const ccn__costing *c, ccn__id i, ccn__box *box) {
  const ccn__shape *h = &c->p->shape[i];
  *box = (ccn__box){{0}, {0}, 0};
  if (!ccn__rank_has(&c->p->g->mesh, c->rank, h->place)) return 0;
  ccn__box_of(&c->p->g->mesh, c->rank, h->rank, h->dim, h->place, box);
  return box->elements;
}

static double operations(const ccn__costing *c, ccn__id i) {
  const ccn__node *n = &c->p->g->nodes.at[i];
  ccn__box out, x;
  const double made = (double)elements(c, i, &out);
  switch (ccn__op_table[n->op].kind) {
  case CCN__KIND_ELEM:
  case CCN__KIND_RANDOM: return made;
  case CCN__KIND_REDUCE: return (double)elements(c, n->in[0], &x);
  case CCN__KIND_LINEAR:
    if (n->op == CCN__OP_MATMUL) {
      elements(c, n->in[0], &x);
      const uint32_t rank = c->p->shape[n->in[0]].rank;
      return rank ? 2 * made * (double)x.extent[rank - 1] : 0;
    }
    if (n->op == CCN__OP_CONV2D) {
      elements(c, n->in[1], &x);
      return 2 * made * (double)(x.extent[1] * x.extent[2] * x.extent[3]);
    }
    return 0;
  default: return 0;
  }
}

/* ---- steps --------------------------------------------------------------------------------------- */

static double most(double x, double y) { return x > y ? x : y; }

/* Latency: what is neither bytes nor operations takes more than half of the time. */
static void bound_of(ccn__step_cost *s, const ccn__on_links *on, double memory, double compute) {
  const double bytes = on->bytes < s->link ? on->bytes : s->link;
  const double work = most(bytes, most(memory, compute));
  s->bound = CCN__BOUND_LINK;
  if (memory > s->link) s->bound = CCN__BOUND_MEMORY;
  if (compute > most(s->link, memory)) s->bound = CCN__BOUND_COMPUTE;
  if (s->time - work > work) s->bound = CCN__BOUND_LATENCY;
}

/* The first rank that does the step has the most to do: slices are filled from the first one on. */
static bool first_rank(ccn__costing *c, const ccn__step *t) {
  for (c->rank = 0; c->rank < c->p->world; c->rank++)
    if (ccn__plan_does(c->p, t, c->rank)) return true;
  return false;
}

static void one_step(ccn__costing *c, const ccn__step *t, ccn__step_cost *s) {
  const ccn__machine *m = c->options->machine;
  ccn__on_links on = {0, 0};
  double compute = 0;
  if (!first_rank(c, t)) return;
  ccn__cost_collectives(c, t, s, &on);
  if (t->kind != CCN__STEP_COLLECTIVE) s->memory = memory_of(c, t);
  for (uint32_t k = 0; k < t->nnodes && t->kind != CCN__STEP_COPY; k++) {
    const double flops = operations(c, t->node[k]) / t->chunks;
    const bool linear = ccn__op_table[c->p->g->nodes.at[t->node[k]].op].kind == CCN__KIND_LINEAR;
    s->flops += flops;
    compute += flops / m->flops[linear ? c->p->shape[t->node[k]].dtype : CCN__F32];
  }
  const double memory = (double)s->memory / m->bandwidth;
  s->floor = most(on.floor, most(memory, compute));
  s->time = m->launch + most(s->link, most(memory, compute));
  bound_of(s, &on, memory, compute);
}

static int64_t memory_held(const ccn__plan *p) {
  int64_t bytes = p->arena_bytes;
  for (uint32_t b = 0; b < p->buffers.n; b++)
    if (p->buffers.at[b].kind != CCN__BUFFER_TEMPORARY) bytes += p->buffers.at[b].bytes;
  return bytes;
}

static void steps(ccn__costing *c, uint32_t from, uint32_t to, double passes) {
  for (uint32_t i = from; i < to && !c->why; i++) {
    const ccn__step *t = &c->p->steps.at[i];
    ccn__step_cost *s = &c->cost->step[i];
    s->passes = passes;
    if (t->kind == CCN__STEP_REPEAT) {
      steps(c, i + 1, t->end, passes * (t->times > 0 ? (double)t->times : 0));
      i = t->end - 1;
    } else {
      one_step(c, t, s);
    }
  }
}

ccn__cost *ccn__cost_make(ccn__arena *arena, const ccn__plan *p, const ccn__cost_options *options,
                          const char **out_why) {
  ccn__costing c = {.p = p, .options = options, .arena = arena, .cost = CCN__NEW(arena, ccn__cost)};
  c.cost->machine = options->machine;
  c.cost->step = CCN__NEWN(arena, ccn__step_cost, p->steps.n + 1);
  c.cost->memory = memory_held(p);
  steps(&c, 0, p->steps.n, 1);
  *out_why = c.why;
  return c.why ? NULL : c.cost;
}
