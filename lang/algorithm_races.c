/* algorithm_races.c: whether accesses that touch one chunk are ordered in every run.
 *
 * Happens-before is program order, message k before its receive, a step before who waits for it, and
 * barriers; that a sender waits for room is no order. Vector clocks over the trace of one run decide it,
 * since these edges are the same in every run. A clock has a column for each channel that is the earlier
 * one of some pair, no others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm_engine.h"

typedef struct clocks {
  ccn__algo_engine *e;
  ccn__arena *arena;
  uint32_t ncolumns;
  uint32_t *column;       /* of a channel, or CCN__NONE */
  uint32_t *start_column; /* of a rank: the column that its start advances, or CCN__NONE */
  uint32_t *now; /* a clock each channel: steps of the column's channel that are done; a start counts 1 */
  uint32_t **message; /* a clock each slot */
  uint32_t **kept;    /* of a step that others wait for: the clock behind it */
  uint32_t *waiters;  /* of a step: how many others wait for it */
  CCN__VEC(uint32_t *) spare;
  uint32_t *pc;
} clocks;

static uint32_t *now(const clocks *k, uint32_t channel) { return k->now + (size_t)channel * k->ncolumns; }

static void join(const clocks *k, uint32_t *to, const uint32_t *from) {
  for (uint32_t i = 0; i < k->ncolumns; i++)
    if (from[i] > to[i]) to[i] = from[i];
}

static uint32_t *take(clocks *k) {
  return k->spare.n ? k->spare.at[--k->spare.n] : CCN__NEWN(k->arena, uint32_t, k->ncolumns);
}

static void give(clocks *k, uint32_t *clock) { *CCN__PUSH(k->arena, &k->spare) = clock; }

/* A rank's start advances the column of its first channel. */
static void choose_columns(clocks *k, const ccn__algo_pairs *pairs) {
  const uint32_t n = k->e->nchannels;
  k->column = CCN__NEWN(k->arena, uint32_t, n);
  for (uint32_t c = 0; c < n; c++) k->column[c] = CCN__NONE;
  for (uint32_t i = 0; i < pairs->n; i++) {
    const ccn__algo_pair *p = &pairs->at[i];
    uint32_t c = p->first_channel;
    if (c == CCN__NONE) c = k->e->first_channel[p->rank]; /* a rank without channels has not that channel */
    if (c < n && k->column[c] == CCN__NONE) k->column[c] = k->ncolumns++;
  }
}

static void set_up(clocks *k, ccn__algo_engine *e, const ccn__algo_pairs *pairs) {
  const uint32_t n = e->nchannels, steps = e->first_step[n];
  *k = (clocks){.e = e, .arena = e->arena};
  choose_columns(k, pairs);
  k->now = CCN__NEWN(k->arena, uint32_t, (size_t)n * k->ncolumns);
  k->message = CCN__NEWN(k->arena, uint32_t *, e->nmessages);
  k->kept = CCN__NEWN(k->arena, uint32_t *, steps);
  k->waiters = CCN__NEWN(k->arena, uint32_t, steps);
  k->pc = CCN__NEWN(k->arena, uint32_t, n);
  for (uint32_t i = 0; i < e->conns.n; i++) e->conns.at[i].sent = e->conns.at[i].received = 0;
  for (uint32_t c = 0; c < n; c++) {
    const uint32_t first = e->first_channel[e->rank_of[c]];
    if (k->column[first] != CCN__NONE)
      now(k, c)[k->column[first]] = 1; /* every channel knows that its rank started */
    for (uint32_t i = 0; i < ccn__engine_channel(e, c)->steps.n; i++) {
      const ccn__algo_step *s = ccn__engine_step(e, c, i);
      if (s->after_channel != CCN__NO_CHANNEL)
        k->waiters[e->first_step[first + s->after_channel] + s->after_step]++;
    }
  }
}

static uint32_t **message_slot(const clocks *k, uint32_t conn, uint32_t number) {
  return &k->message[ccn__engine_slot(k->e, conn, number)];
}

/* What c knows before its step. */
static void before(clocks *k, uint32_t c, const ccn__algo_step *s, uint32_t at) {
  ccn__algo_engine *e = k->e;
  if (s->after_channel != CCN__NO_CHANNEL) {
    const uint32_t on = e->first_step[e->first_channel[e->rank_of[c]] + s->after_channel] + s->after_step;
    join(k, now(k, c), k->kept[on]);
    if (--k->waiters[on] == 0) give(k, k->kept[on]);
  }
  if (e->in[at] != CCN__NONE) {
    uint32_t **m = message_slot(k, e->in[at], e->conns.at[e->in[at]].received++);
    join(k, now(k, c), *m);
    give(k, *m);
  }
}

/* What others will know of it. */
static void after(clocks *k, uint32_t c, uint32_t at) {
  ccn__algo_engine *e = k->e;
  if (k->column[c] != CCN__NONE) now(k, c)[k->column[c]] = k->pc[c] + 2;
  if (e->out[at] != CCN__NONE) {
    uint32_t **m = message_slot(k, e->out[at], e->conns.at[e->out[at]].sent++);
    *m = take(k);
    memcpy(*m, now(k, c), k->ncolumns * sizeof **m);
  }
  if (k->waiters[at]) {
    k->kept[at] = take(k);
    memcpy(k->kept[at], now(k, c), k->ncolumns * sizeof(uint32_t));
  }
  k->pc[c]++;
}

/* The channels of one barrier stand together in the trace. */
static void meet(clocks *k, const uint32_t *channels) {
  uint32_t *all = take(k);
  memset(all, 0, k->ncolumns * sizeof *all);
  for (uint32_t i = 0; i < k->e->a->nranks; i++) {
    const uint32_t c = channels[i];
    before(k, c, ccn__engine_step(k->e, c, k->pc[c]), k->e->first_step[c] + k->pc[c]);
    join(k, all, now(k, c));
  }
  for (uint32_t i = 0; i < k->e->a->nranks; i++) memcpy(now(k, channels[i]), all, k->ncolumns * sizeof *all);
  give(k, all);
}

static bool knows(const clocks *k, const uint32_t *clock, const ccn__algo_pair *p) {
  if (p->first_channel != CCN__NONE) return clock[k->column[p->first_channel]] >= p->first_step + 2;
  const uint32_t c = k->e->first_channel[p->rank];
  return c < k->e->first_channel[p->rank + 1] && clock[k->column[c]] >= 1;
}

static void say_access(const ccn__algo_engine *e, uint32_t c, uint32_t step, ccn__text *t) {
  const uint32_t r = e->rank_of[c];
  ccn__text_printf(t, "rank %u channel %u step %u (", r, c - e->first_channel[r], step);
  ccn__algo_step_print(ccn__engine_step(e, c, step), t);
  ccn__text_putc(t, ')');
}

static bool race(const ccn__algo_engine *e, const ccn__algo_pair *p, ccn__algo_fault *out) {
  ccn__text t;
  ccn__text_init(&t, e->arena);
  const uint32_t c = p->channel == CCN__NONE ? p->first_channel : p->channel;
  const uint32_t step = p->channel == CCN__NONE ? p->first_step : p->step;
  ccn__text_puts(&t, "nothing orders ");
  if (p->first_channel == CCN__NONE) ccn__text_printf(&t, "the start of rank %u", p->rank);
  else say_access(e, p->first_channel, p->first_step, &t);
  ccn__text_puts(&t, " before ");
  if (p->channel == CCN__NONE) ccn__text_printf(&t, "the end of rank %u", p->rank);
  else say_access(e, p->channel, p->step, &t);
  ccn__text_printf(&t, ": they %s and %s %s[%u] of rank %u", p->writes_first ? "write" : "read",
                   p->writes ? "write" : "read", ccn__algo_buf_name[p->buf], p->chunk, p->rank);
  *out = (ccn__algo_fault){CCN__FAULT_RACE, e->rank_of[c], c - e->first_channel[e->rank_of[c]], step,
                           p->chunk,        t.at};
  return false;
}

/* Whether all channels of the peer together know it when they have ended. */
static bool known_at_end(clocks *k, const ccn__algo_pair *p) {
  for (uint32_t c = k->e->first_channel[p->rank]; c < k->e->first_channel[p->rank + 1]; c++)
    if (knows(k, now(k, c), p)) return true;
  return false;
}

bool ccn__algorithm_ordered(ccn__algo_engine *e, const uint32_t *trace, uint32_t ntrace,
                            const ccn__algo_pairs *pairs, ccn__algo_fault *out) {
  clocks k;
  uint32_t next = 0, met = 0;
  if (!pairs->n) return true;
  set_up(&k, e, pairs);
  for (uint32_t i = 0; i < ntrace; i++) {
    const uint32_t c = trace[i], step = k.pc[c], at = e->first_step[c] + step;
    const ccn__algo_step *s = ccn__engine_step(e, c, step);
    if (s->prim != CCN__PRIM_BARRIER) {
      before(&k, c, s, at);
    } else if (met == 0) {
      meet(&k, trace + i);
      met = e->a->nranks - 1;
    } else {
      met--;
    }
    for (; next < pairs->n && pairs->at[next].channel == c && pairs->at[next].step == step; next++)
      if (!knows(&k, now(&k, c), &pairs->at[next])) return race(e, &pairs->at[next], out);
    after(&k, c, at);
  }
  for (; next < pairs->n; next++)
    if (!known_at_end(&k, &pairs->at[next])) return race(e, &pairs->at[next], out);
  return true;
}
