/* algorithm_engine.c: see algorithm_engine.h. A channel that cannot go on is noted at what it waits for
 * and wakes with it, so the whole run is linear in the number of steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm_engine.h"

/* ---- connections ----------------------------------------------------------------------------- */

static uint32_t mix(uint32_t from, uint32_t to, uint32_t link) {
  uint64_t h = ((uint64_t)from << 16 | to) * 0x9e3779b97f4a7c15u + link * 0xbf58476d1ce4e5b9u;
  h ^= h >> 29;
  return (uint32_t)((h * 0x94d049bb133111ebu) >> 32);
}

static void grow_slots(ccn__algo_engine *e) {
  e->nslots = e->nslots ? 2 * e->nslots : 64;
  e->slot = CCN__NEWN(e->arena, uint32_t, e->nslots);
  for (uint32_t i = 0; i < e->conns.n; i++) {
    const ccn__algo_conn *c = &e->conns.at[i];
    uint32_t h = mix(c->from, c->to, c->link) & (e->nslots - 1);
    while (e->slot[h]) h = (h + 1) & (e->nslots - 1);
    e->slot[h] = i + 1;
  }
}

static uint32_t connection(ccn__algo_engine *e, uint32_t from, uint32_t to, uint32_t link) {
  if (2 * e->conns.n >= e->nslots) grow_slots(e);
  uint32_t h = mix(from, to, link) & (e->nslots - 1);
  for (; e->slot[h]; h = (h + 1) & (e->nslots - 1)) {
    const ccn__algo_conn *c = &e->conns.at[e->slot[h] - 1];
    if (c->from == from && c->to == to && c->link == link) return e->slot[h] - 1;
  }
  *CCN__PUSH(e->arena, &e->conns) = (ccn__algo_conn){
    .from = (uint16_t)from, .to = (uint16_t)to, .link = link, .sender = CCN__NONE, .receiver = CCN__NONE};
  e->slot[h] = e->conns.n;
  return e->conns.n - 1;
}

/* Channel c is an end of the connection; false if it has another one already. */
static bool attach(ccn__algo_engine *e, uint32_t c, uint32_t i, bool sends, uint32_t conn,
                   ccn__algo_fault *out) {
  uint32_t *end = sends ? &e->conns.at[conn].sender : &e->conns.at[conn].receiver;
  if (*end == CCN__NONE) *end = c;
  if (*end == c) return true;
  const ccn__algo_conn *x = &e->conns.at[conn];
  const uint32_t first = e->first_channel[e->rank_of[c]];
  *out = (ccn__algo_fault){CCN__FAULT_FORM, e->rank_of[c], c - first, i, CCN__NO_CHANNEL, NULL};
  out->text = ccn__arena_printf(
    e->arena, "rank %u: channels %u and %u both %s the connection %u -> %u of link %u", e->rank_of[c],
    *end - first, c - first, sends ? "send on" : "receive on", x->from, x->to, x->link);
  return false;
}

static bool connect_channel(ccn__algo_engine *e, uint32_t c, ccn__algo_fault *out) {
  const ccn__algo_channel *ch = ccn__engine_channel(e, c);
  for (uint32_t i = 0; i < ch->steps.n; i++) {
    const ccn__algo_step *s = &ch->steps.at[i];
    const uint8_t does = ccn__prim_table[s->prim].does;
    const uint32_t at = e->first_step[c] + i;
    e->in[at] = e->out[at] = e->waiting[at] = CCN__NONE;
    if (does & CCN__DOES_RECV) {
      e->in[at] = connection(e, s->from, e->rank_of[c], ch->link);
      if (!attach(e, c, i, false, e->in[at], out)) return false;
    }
    if (does & CCN__DOES_SEND) {
      e->out[at] = connection(e, e->rank_of[c], s->to, ch->link);
      if (!attach(e, c, i, true, e->out[at], out)) return false;
      e->conns.at[e->out[at]].messages++;
    }
  }
  return true;
}

bool ccn__engine_init(ccn__algo_engine *e, const ccn__algorithm *a, ccn__arena *arena, ccn__algo_fault *out) {
  uint32_t most = 0;
  *e = (ccn__algo_engine){.a = a, .arena = arena};
  e->first_channel = CCN__NEWN(arena, uint32_t, a->nranks + 1);
  for (uint32_t r = 0; r < a->nranks; r++) {
    const uint32_t k = a->rank[r].channels.n;
    e->first_channel[r + 1] = e->first_channel[r] + k;
    if (k > most) most = k;
  }
  const uint32_t n = e->nchannels = e->first_channel[a->nranks];
  e->rank_of = CCN__NEWN(arena, uint16_t, n);
  e->first_step = CCN__NEWN(arena, uint32_t, n + 1);
  e->pc = CCN__NEWN(arena, uint32_t, n);
  e->next_waiting = CCN__NEWN(arena, uint32_t, n);
  e->ready = CCN__NEWN(arena, uint32_t, n);
  e->arrived = CCN__NEWN(arena, uint32_t, most);
  for (uint32_t r = 0; r < a->nranks; r++)
    for (uint32_t c = e->first_channel[r]; c < e->first_channel[r + 1]; c++) {
      e->rank_of[c] = (uint16_t)r;
      e->first_step[c + 1] = e->first_step[c] + ccn__engine_channel(e, c)->steps.n;
    }
  const uint32_t steps = e->first_step[n];
  e->in = CCN__NEWN(arena, uint32_t, steps);
  e->out = CCN__NEWN(arena, uint32_t, steps);
  e->waiting = CCN__NEWN(arena, uint32_t, steps);
  for (uint32_t c = 0; c < n; c++)
    if (!connect_channel(e, c, out)) return false;
  for (uint32_t i = 0; i < e->conns.n; i++) {
    ccn__algo_conn *x = &e->conns.at[i];
    x->first = e->nmessages;
    x->slots = x->messages < a->capacity ? x->messages : a->capacity;
    e->nmessages += x->slots;
  }
  return true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef enum hindrance { CAN_GO, NO_MESSAGE, NO_ROOM, NOT_DONE, NOT_ALL } hindrance;

/* The step for which c's next one waits. */
static uint32_t awaited(const ccn__algo_engine *e, uint32_t c, const ccn__algo_step *s) {
  return e->first_channel[e->rank_of[c]] + s->after_channel;
}

static hindrance hinders(const ccn__algo_engine *e, uint32_t c) {
  const ccn__algo_step *s = ccn__engine_step(e, c, e->pc[c]);
  const uint32_t at = e->first_step[c] + e->pc[c];
  if (s->after_channel != CCN__NO_CHANNEL && e->pc[awaited(e, c, s)] <= s->after_step) return NOT_DONE;
  if (e->in[at] != CCN__NONE) {
    const ccn__algo_conn *x = &e->conns.at[e->in[at]];
    if (x->sent == x->received) return NO_MESSAGE;
  }
  if (e->out[at] != CCN__NONE) {
    const ccn__algo_conn *x = &e->conns.at[e->out[at]];
    if (x->sent - x->received >= e->a->capacity) return NO_ROOM;
  }
  return s->prim == CCN__PRIM_BARRIER ? NOT_ALL : CAN_GO;
}

static void wake(ccn__algo_engine *e, uint32_t c) { e->ready[e->nready++] = c; }

/* Notes where c waits. At the last arrival at a barrier true: everybody there is let go. */
static bool wait(ccn__algo_engine *e, uint32_t c, hindrance why) {
  const ccn__algo_step *s = ccn__engine_step(e, c, e->pc[c]);
  const uint32_t at = e->first_step[c] + e->pc[c], number = c - e->first_channel[e->rank_of[c]];
  switch (why) {
  case NO_MESSAGE: e->conns.at[e->in[at]].receiver_waits = true; return false;
  case NO_ROOM: e->conns.at[e->out[at]].sender_waits = true; return false;
  case NOT_DONE: {
    uint32_t *head = &e->waiting[e->first_step[awaited(e, c, s)] + s->after_step];
    e->next_waiting[c] = *head;
    *head = c;
    return false;
  }
  default: return ++e->arrived[number] == e->a->nranks;
  }
}

/* Counts c's step as done and wakes who waited for it. */
static void done(ccn__algo_engine *e, uint32_t c) {
  const uint32_t at = e->first_step[c] + e->pc[c];
  if (e->in[at] != CCN__NONE) {
    ccn__algo_conn *x = &e->conns.at[e->in[at]];
    x->received++;
    if (x->sender_waits) wake(e, x->sender);
    x->sender_waits = false;
  }
  if (e->out[at] != CCN__NONE) {
    ccn__algo_conn *x = &e->conns.at[e->out[at]];
    x->sent++;
    if (x->receiver_waits) wake(e, x->receiver);
    x->receiver_waits = false;
  }
  for (uint32_t w = e->waiting[at]; w != CCN__NONE; w = e->next_waiting[w]) wake(e, w);
  e->waiting[at] = CCN__NONE;
  e->pc[c]++;
}

static bool do_step(ccn__algo_engine *e, uint32_t c, ccn__engine_fn *f, void *user) {
  const uint32_t at = e->first_step[c] + e->pc[c];
  uint32_t in = e->in[at], out = e->out[at];
  if (in != CCN__NONE) in = ccn__engine_slot(e, in, e->conns.at[in].received);
  if (out != CCN__NONE) out = ccn__engine_slot(e, out, e->conns.at[out].sent);
  if (!f(user, c, e->pc[c], in, out)) return false;
  done(e, c);
  return true;
}

static bool pass_barrier(ccn__algo_engine *e, uint32_t c, ccn__engine_fn *f, void *user) {
  const uint32_t number = c - e->first_channel[e->rank_of[c]];
  e->arrived[number] = 0;
  for (uint32_t r = 0; r < e->a->nranks; r++) {
    const uint32_t x = e->first_channel[r] + number;
    if (!do_step(e, x, f, user)) return false;
    if (x != c) wake(e, x);
  }
  return true;
}

static uint64_t draw(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Steps of c: one, or all that it can do. It is not in the list of the ready. */
static bool go_on(ccn__algo_engine *e, uint32_t c, bool once, ccn__engine_fn *f, void *user) {
  const uint32_t n = ccn__engine_channel(e, c)->steps.n;
  while (e->pc[c] < n) {
    const hindrance why = hinders(e, c);
    if (why == CAN_GO) {
      if (!do_step(e, c, f, user)) return false;
    } else {
      if (!wait(e, c, why)) return true;
      if (!pass_barrier(e, c, f, user)) return false;
    }
    if (once) {
      wake(e, c);
      return true;
    }
  }
  return true;
}

bool ccn__engine_run(ccn__algo_engine *e, uint64_t seed, ccn__engine_fn *f, void *user) {
  e->nready = 0;
  for (uint32_t c = e->nchannels; c-- > 0;) wake(e, c);
  while (e->nready) {
    const uint32_t i = seed ? (uint32_t)(draw(&seed) % e->nready) : e->nready - 1, c = e->ready[i];
    e->ready[i] = e->ready[--e->nready];
    if (!go_on(e, c, seed != 0, f, user)) return false;
  }
  return true;
}

/* ---- what hinders ---------------------------------------------------------------------------- */

/* Who must do something before c can go on; CCN__NONE: nobody ever will. */
static uint32_t hinderer(const ccn__algo_engine *e, uint32_t c) {
  const ccn__algo_step *s = ccn__engine_step(e, c, e->pc[c]);
  const uint32_t at = e->first_step[c] + e->pc[c];
  switch (hinders(e, c)) {
  case NOT_DONE: return awaited(e, c, s);
  case NO_MESSAGE: return e->conns.at[e->in[at]].sender;
  case NO_ROOM: return e->conns.at[e->out[at]].receiver;
  default: break;
  }
  const uint32_t number = c - e->first_channel[e->rank_of[c]];
  for (uint32_t r = 0; r < e->a->nranks; r++) {
    const uint32_t x = e->first_channel[r] + number;
    const bool is_there = x < e->first_channel[r + 1];
    if (!is_there) return CCN__NONE;
    if (e->pc[x] >= ccn__engine_channel(e, x)->steps.n ||
        ccn__engine_step(e, x, e->pc[x])->prim != CCN__PRIM_BARRIER || hinders(e, x) != NOT_ALL)
      return x;
  }
  return CCN__NONE;
}

static void say(const ccn__algo_engine *e, uint32_t c, ccn__text *t) {
  const uint32_t r = e->rank_of[c];
  ccn__text_printf(t, "rank %u channel %u ", r, c - e->first_channel[r]);
  if (e->pc[c] >= ccn__engine_channel(e, c)->steps.n) {
    ccn__text_puts(t, "has ended");
    return;
  }
  const ccn__algo_step *s = ccn__engine_step(e, c, e->pc[c]);
  ccn__text_printf(t, "step %u (", e->pc[c]);
  ccn__algo_step_print(s, t);
  ccn__text_puts(t, ") waits for ");
  switch (hinders(e, c)) {
  case NOT_DONE: ccn__text_printf(t, "step %u of channel %u", s->after_step, s->after_channel); break;
  case NO_MESSAGE: ccn__text_printf(t, "a message of rank %u", s->from); break;
  case NO_ROOM:
    ccn__text_printf(t, "room on the connection to rank %u, which holds %u message%s", s->to, e->a->capacity,
                     e->a->capacity == 1 ? "" : "s");
    break;
  default: ccn__text_puts(t, "the others at the barrier"); break;
  }
}

static uint32_t first_chunk(const ccn__algo_step *s) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  return does & CCN__DOES_DST ? s->dst : does & CCN__DOES_SRC ? s->src : CCN__NO_CHANNEL;
}

static bool stuck(ccn__algo_engine *e, uint32_t c, ccn__algo_fault *out) {
  bool *seen = CCN__NEWN(e->arena, bool, e->nchannels);
  uint32_t at = c, next = c;
  ccn__text t;
  ccn__text_init(&t, e->arena);
  for (; next != CCN__NONE && !seen[next] && e->pc[next] < ccn__engine_channel(e, next)->steps.n;
       next = hinderer(e, next)) {
    seen[next] = true;
    at = next;
  }
  if (next != CCN__NONE && seen[next]) { /* a cycle: it is told from its lowest channel */
    uint32_t first = next;
    for (uint32_t x = hinderer(e, next); x != next; x = hinderer(e, x)) first = x < first ? x : first;
    at = first;
    ccn__text_puts(&t, "deadlock: ");
    do {
      say(e, at, &t);
      ccn__text_puts(&t, "; ");
      at = hinderer(e, at);
    } while (at != first);
    ccn__text_printf(&t, "and so on from rank %u", e->rank_of[first]);
  } else {
    ccn__text_puts(&t, "stuck: ");
    say(e, at, &t);
    ccn__text_puts(&t, "; ");
    if (next == CCN__NONE) ccn__text_puts(&t, "nobody does that");
    else say(e, next, &t);
  }
  const ccn__algo_step *s = ccn__engine_step(e, at, e->pc[at]);
  *out = (ccn__algo_fault){CCN__FAULT_STUCK, e->rank_of[at], at - e->first_channel[e->rank_of[at]],
                           e->pc[at],        first_chunk(s), t.at};
  return false;
}

/* The step with which channel c sent its message number `number` on the connection. */
static uint32_t sent_by(const ccn__algo_engine *e, uint32_t c, uint32_t conn, uint32_t number) {
  const uint32_t n = ccn__engine_channel(e, c)->steps.n;
  for (uint32_t i = 0; i < n; i++)
    if (e->out[e->first_step[c] + i] == conn && number-- == 0) return i;
  return n;
}

bool ccn__engine_ended(ccn__algo_engine *e, ccn__algo_fault *out) {
  for (uint32_t c = 0; c < e->nchannels; c++)
    if (e->pc[c] < ccn__engine_channel(e, c)->steps.n) return stuck(e, c, out);
  for (uint32_t i = 0; i < e->conns.n; i++) {
    const ccn__algo_conn *x = &e->conns.at[i];
    if (x->sent == x->received) continue;
    const uint32_t c = x->sender, step = sent_by(e, c, i, x->received);
    const ccn__algo_step *s = ccn__engine_step(e, c, step);
    ccn__text t;
    ccn__text_init(&t, e->arena);
    ccn__text_printf(&t, "rank %u channel %u step %u (", x->from, c - e->first_channel[x->from], step);
    ccn__algo_step_print(s, &t);
    ccn__text_printf(&t, "): rank %u never receives this", x->to);
    *out = (ccn__algo_fault){CCN__FAULT_UNREAD, x->from, c - e->first_channel[x->from], step,
                             first_chunk(s),    t.at};
    return false;
  }
  return true;
}
