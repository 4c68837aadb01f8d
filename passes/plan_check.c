/* plan_check.c: the static check of a plan: by vector clocks over ranks and streams.
 *
 * Every rank's streams are walked in the order of the list; a step joins the clocks of what it waits for, a step in
 * which ranks meet joins those of all members. Two accesses to the same memory of which one writes must be ordered,
 * chunk against chunk in a chain. Loops are walked twice, so that a pass meets the one before. Of many ranks a few
 * stand for all: they do the same steps, so three of each axis show every relation (all of them up to eight ranks).
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

typedef struct record {    /* who touched a buffer of one rank, and when */
  uint32_t by, time, step; /* by: lane = chosen rank * streams + stream */
  int32_t chunk;           /* -1: all of it */
  bool write;
} record;

typedef struct records {
  record *at;
  uint32_t n, cap;
} records;

typedef CCN__VEC(uint32_t) indices;

typedef struct checking {
  ccn__plan *p;
  uint32_t *rank, nranks, nlanes; /* those that are walked */
  uint32_t *clock;                /* of each lane: what it has seen of each lane */
  uint32_t **after;               /* of each step and chosen rank: its clock, where others wait for it */
  bool *awaited;
  records *mem;    /* of each chosen rank and buffer */
  indices *shares; /* of each buffer: those that lie over it in memory, itself included */
  const char *wrong;
} checking;

static void fail(checking *c, const char *fmt, uint32_t step, uint32_t rank, uint32_t buffer) {
  if (!c->wrong) c->wrong = ccn__arena_printf(c->p->arena, fmt, step, rank, buffer);
}

static uint32_t *lane_clock(checking *c, uint32_t lane) { return c->clock + (size_t)lane * c->nlanes; }

static void join_clock(checking *c, uint32_t *to, const uint32_t *from) {
  for (uint32_t i = 0; i < c->nlanes; i++)
    if (from[i] > to[i]) to[i] = from[i];
}

static void choose_ranks(checking *c) {
  const ccn__mesh *m = &c->p->g->mesh;
  c->rank = CCN__NEWN(c->p->arena, uint32_t, c->p->world + 1);
  for (uint32_t r = 0; r < c->p->world; r++) {
    bool take = true;
    for (uint32_t a = 0; a < m->naxes && c->p->world > 8; a++) {
      uint32_t x = ccn__mesh_coord(m, r, a);
      bool named = x < 3;
      for (ccn__id i = 0; i < c->p->g->nodes.n && !named; i++) {
        const ccn__node *n = &c->p->g->nodes.at[i];
        named = n->op == CCN__OP_ON && (uint32_t)ccn__attr_int(n->attrs, CCN__A_AXIS, 0) == a &&
                (uint32_t)ccn__attr_int(n->attrs, CCN__A_COORD, 0) == x;
      }
      take = take && named;
    }
    if (take) c->rank[c->nranks++] = r;
  }
}

static bool same_group(const checking *c, uint32_t x, uint32_t y, uint8_t over) {
  const ccn__mesh *m = &c->p->g->mesh;
  for (uint32_t a = 0; a < m->naxes; a++)
    if (!(over >> a & 1) && ccn__mesh_coord(m, c->rank[x], a) != ccn__mesh_coord(m, c->rank[y], a))
      return false;
  return true;
}

/* ---- one step ------------------------------------------------------------------------------------------------- */

/* Other pieces of the same chain; the pieces of another chain are not comparable. */
static bool other_chunk(const checking *c, const record *x, const record *y) {
  return x->chunk >= 0 && y->chunk >= 0 && x->chunk != y->chunk &&
         c->p->steps.at[x->step].epoch == c->p->steps.at[y->step].epoch;
}

static void look(checking *c, uint32_t step, uint32_t owner, uint32_t buffer, const record *now) {
  const uint32_t *seen = lane_clock(c, now->by);
  for (uint32_t k = 0; k < c->shares[buffer].n; k++) {
    const uint32_t b = c->shares[buffer].at[k];
    const records *v = &c->mem[(size_t)owner * c->p->buffers.n + b];
    for (uint32_t i = 0; i < v->n; i++) {
      const record *was = &v->at[i];
      const bool apart = b == buffer && other_chunk(c, was, now);
      if ((!was->write && !now->write) || was->step == step || apart || seen[was->by] >= was->time) continue;
      fail(c,
           now->write ? "step %u on rank %u writes buffer b%u while another step may still use it"
                      : "step %u on rank %u reads buffer b%u while another step may still write it",
           step, c->rank[owner], buffer);
    }
  }
}

static void touch(checking *c, uint32_t step, uint32_t owner, uint32_t buffer, record now) {
  records *v = &c->mem[(size_t)owner * c->p->buffers.n + buffer];
  look(c, step, owner, buffer, &now);
  if (!now.write && c->p->buffers.at[buffer].kind != CCN__BUFFER_ARGUMENT) {
    bool written = false;
    for (uint32_t i = 0; i < v->n; i++)
      written = written || (v->at[i].write && !other_chunk(c, &v->at[i], &now));
    if (!written)
      fail(c, "step %u on rank %u reads buffer b%u before anything was written there", step, c->rank[owner],
           buffer);
  }
  if (now.write && now.chunk < 0) { /* ordered behind all of them: they need not be looked at again */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->n; i++)
      if (v->at[i].step == step) v->at[kept++] = v->at[i];
    v->n = kept;
  }
  if (v->n == v->cap) v->at = ccn__vec_grow(c->p->arena, v->at, v->n, &v->cap, sizeof *v->at);
  v->at[v->n++] = now;
}

/* A value at one coordinate is nowhere else. */
static bool holds(const checking *c, const ccn__access *x, uint32_t q) {
  return ccn__rank_has(&c->p->g->mesh, c->rank[q], c->p->shape[x->value].place);
}

static void access_all(checking *c, uint32_t step, uint32_t k) {
  const ccn__step *t = &c->p->steps.at[step];
  const uint32_t lane = k * c->p->nstreams + t->stream;
  for (uint32_t pass = 0; pass < 2; pass++) /* reads first */
    for (uint32_t j = 0; j < t->naccess; j++) {
      const ccn__access *x = &t->access[j];
      const bool write = pass == 1;
      /* what a step makes and its peers read in it: the barrier between is the step's own */
      const bool own = !write && (x->mode & CCN__WRITE);
      if (x->buffer == CCN__NO_BUFFER || own || !(x->mode & (write ? CCN__WRITE : CCN__READ))) continue;
      const ccn__buffer *b = &c->p->buffers.at[x->buffer];
      if (t->epoch < b->first || t->epoch > b->last)
        fail(c, "step %u on rank %u touches buffer b%u outside its life", step, c->rank[k], x->buffer);
      const record now = {.by = lane,
                          .time = lane_clock(c, lane)[lane],
                          .step = step,
                          .write = write,
                          .chunk = x->chunked ? (int32_t)t->chunk : -1};
      const bool peers = x->mode & (write ? CCN__WRITE_PEERS : CCN__READ_PEERS);
      for (uint32_t q = 0; q < c->nranks; q++)
        if ((q == k || (peers && same_group(c, k, q, t->group))) && holds(c, x, q))
          touch(c, step, q, x->buffer, now);
    }
}

static void walk_step(checking *c, uint32_t step) {
  const ccn__step *t = &c->p->steps.at[step];
  for (uint32_t j = 0; j < t->naccess; j++)
    if (!t->group && (t->access[j].mode & (CCN__READ_PEERS | CCN__WRITE_PEERS)))
      fail(c, "step %u on rank %u uses its peers' buffer b%u, but no ranks meet there", step, 0,
           t->access[j].buffer);
  for (uint32_t w = 0; w < t->nwait; w++)
    if (t->wait[w] >= step)
      fail(c, "step %u on rank %u waits for step %u, which stands behind it", step, 0, t->wait[w]);
  if (c->wrong) return;
  for (uint32_t k = 0; k < c->nranks; k++) {
    uint32_t *clock = lane_clock(c, k * c->p->nstreams + t->stream);
    for (uint32_t w = 0; w < t->nwait; w++)
      if (c->after[(size_t)t->wait[w] * c->nranks + k])
        join_clock(c, clock, c->after[(size_t)t->wait[w] * c->nranks + k]);
  }
  for (uint32_t k = 0; t->group && k < c->nranks; k++) /* nobody begins before all are there */
    for (uint32_t q = 0; q < c->nranks; q++) {
      if (!same_group(c, k, q, t->group)) continue;
      if (ccn__plan_does(c->p, t, c->rank[k]) != ccn__plan_does(c->p, t, c->rank[q]))
        fail(c, "step %u: rank %u takes part and rank %u of its group does not", step, c->rank[k],
             c->rank[q]);
      join_clock(c, lane_clock(c, k * c->p->nstreams + t->stream),
                 lane_clock(c, q * c->p->nstreams + t->stream));
    }
  for (uint32_t k = 0; k < c->nranks && !c->wrong; k++) {
    if (!ccn__plan_does(c->p, t, c->rank[k])) continue;
    const uint32_t lane = k * c->p->nstreams + t->stream;
    lane_clock(c, lane)[lane]++;
    access_all(c, step, k);
  }
  for (uint32_t k = 0; t->group && k < c->nranks; k++) /* nor ends */
    for (uint32_t q = 0; q < c->nranks; q++)
      if (same_group(c, k, q, t->group))
        join_clock(c, lane_clock(c, k * c->p->nstreams + t->stream),
                   lane_clock(c, q * c->p->nstreams + t->stream));
  for (uint32_t k = 0; c->awaited[step] && k < c->nranks; k++) {
    uint32_t **copy = &c->after[(size_t)step * c->nranks + k];
    if (!*copy) *copy = CCN__NEWN(c->p->arena, uint32_t, c->nlanes);
    memcpy(*copy, lane_clock(c, k * c->p->nstreams + t->stream), c->nlanes * sizeof **copy);
  }
}

/* At both ends of a pass through a loop a rank's streams meet. */
static void meet_streams(checking *c) {
  for (uint32_t k = 0; k < c->nranks; k++) {
    uint32_t *first = lane_clock(c, k * c->p->nstreams);
    for (uint32_t s = 1; s < c->p->nstreams; s++) join_clock(c, first, lane_clock(c, k * c->p->nstreams + s));
    for (uint32_t s = 1; s < c->p->nstreams; s++) join_clock(c, lane_clock(c, k * c->p->nstreams + s), first);
  }
}

static void walk(checking *c, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to && !c->wrong; i++) {
    const ccn__step *t = &c->p->steps.at[i];
    if (t->kind != CCN__STEP_REPEAT) {
      walk_step(c, i);
      continue;
    }
    for (int64_t pass = 0; pass < 2 && pass < t->times; pass++) {
      meet_streams(c);
      walk(c, i + 1, t->end);
    }
    meet_streams(c);
    i = t->end - 1;
  }
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static bool overlap(const ccn__buffer *x, const ccn__buffer *y) {
  return x->kind == CCN__BUFFER_TEMPORARY && y->kind == CCN__BUFFER_TEMPORARY &&
         x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static void find_shares(checking *c) {
  const ccn__plan *p = c->p;
  for (uint32_t x = 0; x < p->buffers.n; x++)
    for (uint32_t y = 0; y < p->buffers.n; y++) {
      if (x != y && !overlap(&p->buffers.at[x], &p->buffers.at[y])) continue;
      *CCN__PUSH(p->arena, &c->shares[x]) = y;
      if (x < y && p->buffers.at[x].first <= p->buffers.at[y].last &&
          p->buffers.at[y].first <= p->buffers.at[x].last)
        fail(c, "buffers b%u and b%u live at the same time at the same place (offset %u)", x, y,
             (uint32_t)p->buffers.at[y].offset);
    }
}

const char *ccn__plan_check(ccn__plan *p) {
  checking c = {.p = p};
  choose_ranks(&c);
  c.nlanes = c.nranks * p->nstreams;
  c.clock = CCN__NEWN(p->arena, uint32_t, (size_t)c.nlanes * c.nlanes + 1);
  c.after = CCN__NEWN(p->arena, uint32_t *, (size_t)p->steps.n * c.nranks + 1);
  c.awaited = CCN__NEWN(p->arena, bool, p->steps.n + 1);
  c.mem = CCN__NEWN(p->arena, records, (size_t)c.nranks * p->buffers.n + 1);
  c.shares = ccn__arena_alloc(p->arena, sizeof *c.shares * ((size_t)p->buffers.n + 1));
  for (uint32_t i = 0; i < p->steps.n; i++)
    for (uint32_t w = 0; w < p->steps.at[i].nwait; w++)
      if (p->steps.at[i].wait[w] < p->steps.n) c.awaited[p->steps.at[i].wait[w]] = true;
  find_shares(&c);
  if (!c.wrong) walk(&c, 0, p->steps.n);
  return c.wrong;
}
