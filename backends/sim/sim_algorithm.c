/* sim_algorithm.c: a collective algorithm in virtual time: channels step through their programs, each event
 * at its time, earliest first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "agenda.h"
#include "algorithm_engine.h"
#include "sim.h"

typedef struct timing {
  const ccn__collective_use *use;
  const ccn__algorithm *a;
  const ccn__machine *m;
  ccn__collective_cost *cost;
  ccn__algo_engine e;
  ccn__agenda agenda;
  double *done;               /* of each step */
  double *arrives, *freed;    /* of each slot of a connection */
  double *out_free, *in_free; /* of each port: level * nranks + port */
  uint32_t *port;  /* of each level and member: shared ports have the number of their first member */
  uint32_t widest; /* level that joins all members */
  /* direct accesses since the last barrier of each channel number: [number][level][port] */
  int64_t *loaded_out, *loaded_in;
  double *phase; /* of each number: when the last barrier let go, or the latest arrival since */
} timing;

static void push(timing *t, double at, uint32_t channel) {
  ccn__agenda_add(t->e.arena, &t->agenda, (ccn__due){at, channel, 0});
}

/* ---- sizes --------------------------------------------------------------------------------------- */

static int64_t side(const timing *t, uint32_t rank, uint8_t buf, uint32_t first, const ccn__algo_step *s,
                    uint32_t stride, int64_t *out_bytes) {
  int64_t elements = 0, bytes = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const uint32_t at = first + i * stride;
    const int64_t k = t->use->count[ccn__algorithm_piece(t->a, rank, (ccn__algo_buf)buf, at)];
    const uint8_t width = buf == CCN__BUF_SCRATCH ? t->a->rank[rank].scratch.at[at].width : CCN__NARROW;
    elements += k;
    bytes += width == CCN__REGISTER ? 0 : k * (width == CCN__WIDE ? t->use->acc : t->use->item);
  }
  *out_bytes = bytes;
  return elements;
}

static uint32_t level_of(const timing *t, uint32_t x, uint32_t y) {
  return ccn__machine_level(t->m, t->use->world[x], t->use->world[y]);
}

static uint32_t port_of(const timing *t, uint32_t level, uint32_t rank) {
  return level * t->a->nranks + t->port[level * t->a->nranks + rank];
}

/* ---- moving bytes -------------------------------------------------------------------------------- */

/* Between two barriers. */
static void access_peer(timing *t, uint32_t number, uint32_t from, uint32_t to, int64_t bytes) {
  const uint32_t level = level_of(t, from, to), base = number * t->m->nlinks * t->a->nranks;
  t->loaded_out[base + port_of(t, level, from)] += bytes;
  t->loaded_in[base + port_of(t, level, to)] += bytes;
  t->cost->sent[from] += bytes;
}

/* When the accesses of the phase that ends here have moved. */
static double end_of_phase(timing *t, uint32_t number) {
  const uint32_t ports = t->m->nlinks * t->a->nranks;
  double longest = 0;
  for (uint32_t i = 0; i < ports; i++) {
    int64_t *out = &t->loaded_out[number * ports + i], *in = &t->loaded_in[number * ports + i];
    const double x = (double)(*out > *in ? *out : *in) / t->m->link[i / t->a->nranks].bandwidth;
    if (x > longest) longest = x;
    *out = *in = 0;
  }
  return longest;
}

/* A message that leaves at `now` at the earliest: gives when it has left; *out_arrives. */
static double send(timing *t, uint32_t from, uint32_t to, int64_t bytes, double now, double *out_arrives) {
  const uint32_t level = level_of(t, from, to);
  double *out = &t->out_free[port_of(t, level, from)], *in = &t->in_free[port_of(t, level, to)];
  double start = now > *out ? now : *out;
  if (*in > start) start = *in;
  const double left = start + (double)bytes / t->m->link[level].bandwidth;
  *out = *in = left;
  *out_arrives = left + t->m->link[level].latency;
  t->cost->sent[from] += bytes;
  return left;
}

/* ---- steps --------------------------------------------------------------------------------------- */

/* What the step does to memory and peers; gives when it is done. */
static double carry_out(timing *t, uint32_t c, const ccn__algo_step *s, uint32_t at, double now) {
  const uint32_t rank = t->e.rank_of[c], number = c - t->e.first_channel[rank];
  const uint8_t does = ccn__prim_table[s->prim].does;
  const bool recv = does & CCN__DOES_RECV, sends = does & CCN__DOES_SEND;
  const uint32_t src_rank = recv || s->from == CCN__NOBODY ? rank : s->from;
  const uint32_t dst_rank = sends || s->to == CCN__NOBODY ? rank : s->to;
  int64_t elements = 0, bytes;
  if (does & CCN__DOES_SRC) {
    elements = side(t, src_rank, s->src_buf, s->src, s, s->src_stride, &bytes);
    t->cost->memory[src_rank] += bytes;
    if (src_rank != rank) access_peer(t, number, src_rank, rank, bytes);
  }
  if (does & CCN__DOES_DST) {
    elements = side(t, dst_rank, s->dst_buf, s->dst, s, s->dst_stride, &bytes);
    t->cost->memory[dst_rank] += does & CCN__DOES_ACC ? 2 * bytes : bytes;
    if (dst_rank != rank) access_peer(t, number, rank, dst_rank, bytes);
  }
  if (recv) /* it came into memory, and is read from there */
    t->cost->memory[rank] += 2 * elements * (s->flags & CCN__ALGO_FROM_WIDE ? t->use->acc : t->use->item);
  if (!sends) return now;
  const ccn__algo_conn *x = &t->e.conns.at[t->e.out[at]];
  bytes = elements * (s->flags & CCN__ALGO_TO_WIDE ? t->use->acc : t->use->item);
  return send(t, rank, s->to, bytes, now, &t->arrives[ccn__engine_slot(&t->e, t->e.out[at], x->sent)]);
}

/* Counts the step as done and wakes who waited for it. */
static void finish(timing *t, uint32_t c, double end) {
  ccn__algo_engine *e = &t->e;
  const uint32_t at = e->first_step[c] + e->pc[c];
  t->done[at] = end;
  if (e->in[at] != CCN__NONE) {
    ccn__algo_conn *x = &e->conns.at[e->in[at]];
    t->freed[ccn__engine_slot(e, e->in[at], x->received)] = end;
    x->received++;
    if (x->sender_waits) push(t, end, x->sender);
    x->sender_waits = false;
  }
  if (e->out[at] != CCN__NONE) {
    ccn__algo_conn *x = &e->conns.at[e->out[at]];
    if (x->receiver_waits) push(t, t->arrives[ccn__engine_slot(e, e->out[at], x->sent)], x->receiver);
    x->sent++;
    x->receiver_waits = false;
  }
  for (uint32_t w = e->waiting[at]; w != CCN__NONE; w = e->next_waiting[w]) push(t, end, w);
  e->waiting[at] = CCN__NONE;
  e->pc[c]++;
  if (end > t->cost->time) t->cost->time = end;
}

static double later(double x, double y) { return x > y ? x : y; }

/* When channel c's next step can begin, from `now` on; false: not before somebody else has done something,
 * and who does wakes it. */
static bool can_begin(timing *t, uint32_t c, double *now) {
  ccn__algo_engine *e = &t->e;
  const ccn__algo_step *s = ccn__engine_step(e, c, e->pc[c]);
  const uint32_t at = e->first_step[c] + e->pc[c];
  if (s->after_channel != CCN__NO_CHANNEL) {
    const uint32_t x = e->first_channel[e->rank_of[c]] + s->after_channel,
                   i = e->first_step[x] + s->after_step;
    if (e->pc[x] <= s->after_step) {
      e->next_waiting[c] = e->waiting[i];
      e->waiting[i] = c;
      return false;
    }
    *now = later(*now, t->done[i]);
  }
  if (e->in[at] != CCN__NONE) {
    ccn__algo_conn *x = &e->conns.at[e->in[at]];
    if (x->sent == x->received) return x->receiver_waits = true, false;
    *now = later(*now, t->arrives[ccn__engine_slot(e, e->in[at], x->received)]);
  }
  if (e->out[at] != CCN__NONE) {
    ccn__algo_conn *x = &e->conns.at[e->out[at]];
    if (x->sent - x->received >= t->a->capacity) return x->sender_waits = true, false;
    *now = later(*now, t->freed[ccn__engine_slot(e, e->out[at], x->sent)]);
  }
  return true;
}

/* The last one to arrive lets all go. */
static void arrive(timing *t, uint32_t c, double now) {
  ccn__algo_engine *e = &t->e;
  const uint32_t number = c - e->first_channel[e->rank_of[c]];
  const double moved = t->phase[2 * number + 1];
  t->phase[2 * number] = later(t->phase[2 * number], now);
  if (++e->arrived[number] < t->a->nranks) return;
  const double end =
    later(t->phase[2 * number], moved + end_of_phase(t, number)) + t->m->link[t->widest].latency;
  e->arrived[number] = 0;
  t->phase[2 * number] = t->phase[2 * number + 1] = end;
  for (uint32_t r = 0; r < t->a->nranks; r++) {
    const uint32_t x = e->first_channel[r] + number;
    finish(t, x, end);
    push(t, end, x);
  }
}

static void go_on(timing *t, ccn__due v) {
  ccn__algo_engine *e = &t->e;
  const uint32_t c = v.who, n = ccn__engine_channel(e, c)->steps.n;
  while (e->pc[c] < n) {
    double now = v.at;
    const uint32_t at = e->first_step[c] + e->pc[c];
    const ccn__algo_step *s = ccn__engine_step(e, c, e->pc[c]);
    if (e->pc[c] && t->done[at - 1] > now) now = t->done[at - 1];
    if (!can_begin(t, c, &now)) return;
    if (now > v.at) {
      push(t, now, c);
      return;
    }
    if (s->prim == CCN__PRIM_BARRIER) {
      arrive(t, c, now);
      return;
    }
    finish(t, c, carry_out(t, c, s, at, now));
  }
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static void find_ports(timing *t) {
  const uint32_t n = t->a->nranks;
  t->port = CCN__NEWN(t->e.arena, uint32_t, (size_t)n * t->m->nlinks);
  for (uint32_t l = 0; l < t->m->nlinks; l++)
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t inner = l ? t->m->link[l - 1].ranks : 1, *w = t->use->world;
      uint32_t *p = &t->port[l * n + i];
      const bool with_last = t->m->link[l].shared && i && w[i] / inner == w[i - 1] / inner;
      *p = with_last ? p[-1] : i;
    }
  for (uint32_t i = 1; i < n; i++) {
    const uint32_t l = level_of(t, 0, i);
    if (l > t->widest) t->widest = l;
  }
}

static uint32_t most_channels(const ccn__algorithm *a) {
  uint32_t most = 0;
  for (uint32_t r = 0; r < a->nranks; r++)
    if (a->rank[r].channels.n > most) most = a->rank[r].channels.n;
  return most;
}

bool ccn__sim_algorithm(ccn__arena *arena, const ccn__collective_use *use, ccn__collective_cost *out) {
  timing t = {.use = use, .a = use->a, .m = use->machine, .cost = out};
  ccn__algo_fault fault;
  const uint32_t ports = use->machine->nlinks * use->a->nranks, most = most_channels(use->a);
  if (!ccn__engine_init(&t.e, use->a, arena, &fault)) return false;
  t.done = CCN__NEWN(arena, double, t.e.first_step[t.e.nchannels] + 1);
  t.arrives = CCN__NEWN(arena, double, t.e.nmessages + 1);
  t.freed = CCN__NEWN(arena, double, t.e.nmessages + 1);
  t.out_free = CCN__NEWN(arena, double, ports);
  t.in_free = CCN__NEWN(arena, double, ports);
  t.loaded_out = CCN__NEWN(arena, int64_t, (size_t)ports * most + 1);
  t.loaded_in = CCN__NEWN(arena, int64_t, (size_t)ports * most + 1);
  t.phase = CCN__NEWN(arena, double, 2 * most + 1);
  find_ports(&t);
  for (uint32_t c = 0; c < t.e.nchannels; c++) push(&t, 0, c);
  while (t.agenda.n) go_on(&t, ccn__agenda_take(&t.agenda));
  return ccn__engine_ended(&t.e, &fault);
}
