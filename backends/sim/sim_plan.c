/* sim_plan.c: a plan in virtual time: epoch by epoch; inside one, streams of all ranks go on, earliest first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "agenda.h"
#include "sim.h"

typedef struct lane { /* a stream of a rank */
  uint32_t next;      /* the step after the last one it has begun */
  double free;
  bool arrived; /* at the meeting of its next step */
} lane;

typedef struct running {
  const ccn__plan *p;
  const ccn__cost *cost;
  ccn__sim_result *out;
  bool trace;
  ccn__arena *arena;
  double *clock;            /* of each rank, between epochs */
  double *links, *computes; /* until when each rank's are in use */
  lane *lane;               /* rank * nstreams + stream */
  double *ended;            /* of each step of the epoch and rank; negative: not yet */
  uint32_t *there;          /* of each step of the epoch and first rank of a group: who has arrived */
  uint32_t from, to;        /* the epoch's steps */
  ccn__agenda agenda;
} running;

enum { SAME_PASSES = 2 }; /* passes of equal length after which a loop is not simulated further */

static void push(running *u, double at, uint32_t rank, uint32_t stream) {
  ccn__agenda_add(u->arena, &u->agenda, (ccn__due){at, rank, stream});
}

/* ---- groups -------------------------------------------------------------------------------------- */

static uint32_t group_size(const ccn__mesh *m, uint8_t group) {
  uint32_t n = 1;
  for (uint32_t a = 0; a < m->naxes; a++)
    if (group >> a & 1) n *= (uint32_t)m->size[a];
  return n;
}

static uint32_t first_of(const ccn__mesh *m, uint8_t group, uint32_t rank) {
  for (uint32_t a = 0; a < m->naxes; a++)
    if (group >> a & 1) rank -= ccn__mesh_coord(m, rank, a) * ccn__mesh_stride(m, a);
  return rank;
}

static uint32_t member(const ccn__mesh *m, uint8_t group, uint32_t first, uint32_t i) {
  for (uint32_t a = m->naxes; a-- > 0;) {
    if (!(group >> a & 1)) continue;
    first += i % (uint32_t)m->size[a] * ccn__mesh_stride(m, a);
    i /= (uint32_t)m->size[a];
  }
  return first;
}

/* ---- steps --------------------------------------------------------------------------------------- */

static double *end_of(running *u, uint32_t step, uint32_t rank) {
  return &u->ended[(size_t)(step - u->from) * u->p->world + rank];
}

static double most(double x, double y) { return x > y ? x : y; }

/* Rank does the step in [start, end), and its streams look whether they can go on then. */
static void occupy(running *u, uint32_t step, uint32_t rank, double start, double end) {
  const ccn__step *t = &u->p->steps.at[step];
  lane *l = &u->lane[rank * u->p->nstreams + t->stream];
  *end_of(u, step, rank) = end;
  l->next = step + 1;
  l->free = end;
  l->arrived = false;
  if (u->trace && end >= start)
    *CCN__PUSH(u->arena, &u->out->events) = (ccn__sim_event){rank, step, start, end};
  for (uint32_t s = 0; s < u->p->nstreams; s++) push(u, end, rank, s);
}

/* Ranks that meet begin together, when all are there and their links are free. */
static void meet(running *u, uint32_t step, uint32_t rank, double now) {
  const ccn__mesh *m = &u->p->g->mesh;
  const ccn__step *t = &u->p->steps.at[step];
  const uint32_t first = first_of(m, t->group, rank), n = group_size(m, t->group);
  uint32_t *there = &u->there[(size_t)(step - u->from) * u->p->world + first];
  lane *l = &u->lane[rank * u->p->nstreams + t->stream];
  double start = now;
  *there += !l->arrived;
  l->arrived = true;
  if (*there < n) return;
  for (uint32_t i = 0; i < n; i++) start = most(start, u->links[member(m, t->group, first, i)]);
  if (start > now) {
    push(u, start, rank, t->stream);
    return;
  }
  const double end = now + u->cost->step[step].time;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t r = member(m, t->group, first, i);
    u->links[r] = end;
    occupy(u, step, r, now, end);
  }
}

static void alone(running *u, uint32_t step, uint32_t rank, double now) {
  const ccn__step *t = &u->p->steps.at[step];
  if (u->computes[rank] > now) {
    push(u, u->computes[rank], rank, t->stream);
    return;
  }
  const double end = now + u->cost->step[step].time;
  u->computes[rank] = end;
  occupy(u, step, rank, now, end);
}

/* When the steps that it waits for are done on this rank; negative: not yet known. */
static double waits_until(running *u, uint32_t step, uint32_t rank) {
  const ccn__step *t = &u->p->steps.at[step];
  double until = 0;
  for (uint32_t w = 0; w < t->nwait; w++) {
    if (t->wait[w] < u->from) continue; /* of an epoch before */
    const double e = *end_of(u, t->wait[w], rank);
    if (e < 0) return -1;
    until = most(until, e);
  }
  return until;
}

static void go_on(running *u, ccn__due v) {
  lane *l = &u->lane[v.who * u->p->nstreams + v.part];
  while (l->free <= v.at) {
    uint32_t step = l->next;
    while (step < u->to && u->p->steps.at[step].stream != v.part) step++;
    if (step >= u->to) return;
    l->next = step;
    const ccn__step *t = &u->p->steps.at[step];
    const double until = waits_until(u, step, v.who);
    if (until < 0 || until > v.at) return; /* its end wakes this stream */
    if (ccn__plan_does(u->p, t, v.who)) {
      if (t->group && group_size(&u->p->g->mesh, t->group) > 1) meet(u, step, v.who, v.at);
      else alone(u, step, v.who, v.at);
      return;
    }
    *end_of(u, step, v.who) = v.at; /* it leaves the step out, but has waited */
    l->next = step + 1;
    for (uint32_t s = 0; s < u->p->nstreams; s++)
      if (s != v.part) push(u, v.at, v.who, s);
  }
}

/* ---- epochs and loops ---------------------------------------------------------------------------- */

static void epoch(running *u, uint32_t from, uint32_t to) {
  const uint32_t world = u->p->world, nstreams = u->p->nstreams;
  const size_t n = (size_t)(to - from) * world;
  u->from = from;
  u->to = to;
  for (size_t i = 0; i < n; i++) {
    u->ended[i] = -1;
    u->there[i] = 0;
  }
  for (uint32_t r = 0; r < world; r++)
    for (uint32_t s = 0; s < nstreams; s++) {
      u->lane[r * nstreams + s] = (lane){.next = from, .free = u->clock[r]};
      push(u, u->clock[r], r, s);
    }
  while (u->agenda.n) go_on(u, ccn__agenda_take(&u->agenda));
  for (uint32_t r = 0; r < world; r++)
    for (uint32_t s = 0; s < nstreams; s++) u->clock[r] = most(u->clock[r], u->lane[r * nstreams + s].free);
}

static double latest(const running *u) {
  double x = 0;
  for (uint32_t r = 0; r < u->p->world; r++) x = most(x, u->clock[r]);
  return x;
}

static void range(running *u, uint32_t from, uint32_t to);

static void loop(running *u, uint32_t step) {
  const ccn__step *t = &u->p->steps.at[step];
  double before = 0;
  uint32_t same = 0;
  for (int64_t pass = 0; pass < t->times; pass++) {
    const double start = latest(u);
    range(u, step + 1, t->end);
    const double took = latest(u) - start;
    const double differs = took > before ? took - before : before - took;
    same = pass && differs <= 1e-9 * took ? same + 1 : 0;
    before = took;
    if (same < SAME_PASSES || u->trace) continue;
    for (uint32_t r = 0; r < u->p->world; r++) u->clock[r] += took * (double)(t->times - pass - 1);
    return;
  }
}

static void range(running *u, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to;) {
    const ccn__step *t = &u->p->steps.at[i];
    uint32_t end = i + 1;
    if (t->kind == CCN__STEP_REPEAT) {
      loop(u, i);
      end = t->end;
    } else {
      while (end < to && u->p->steps.at[end].epoch == t->epoch &&
             u->p->steps.at[end].kind != CCN__STEP_REPEAT)
        end++;
      epoch(u, i, end);
    }
    i = end;
  }
}

static uint32_t longest_epoch(const ccn__plan *p) {
  uint32_t most_steps = 1, n = 0;
  for (uint32_t i = 0; i < p->steps.n; i++) {
    n = i && p->steps.at[i].epoch == p->steps.at[i - 1].epoch ? n + 1 : 1;
    if (n > most_steps) most_steps = n;
  }
  return most_steps;
}

void ccn__sim_plan(ccn__arena *arena, const ccn__plan *p, const ccn__cost *cost,
                   const ccn__sim_options *options, ccn__sim_result *out) {
  running u = {.p = p, .cost = cost, .out = out, .arena = arena, .trace = options->trace};
  const size_t n = (size_t)longest_epoch(p) * p->world;
  *out = (ccn__sim_result){.ended = CCN__NEWN(arena, double, p->world)};
  u.clock = out->ended;
  u.links = CCN__NEWN(arena, double, p->world);
  u.computes = CCN__NEWN(arena, double, p->world);
  u.lane = CCN__NEWN(arena, lane, (size_t)p->world * p->nstreams);
  u.ended = CCN__NEWN(arena, double, n);
  u.there = CCN__NEWN(arena, uint32_t, n);
  for (uint32_t r = 0; options->delay && r < p->world; r++) u.clock[r] = options->delay[r];
  range(&u, 0, p->steps.n);
  out->time = latest(&u);
}
