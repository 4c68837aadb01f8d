/* watch.c: the watchdog: a thread that says where a call stands when nothing of it has moved for too long.
 *
 * What moves is counted by ccn__rt_poll and by steps. The watchdog only reads, and holds the lock while it
 * does: a call waits for it before it ends.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOOKS_A_LIMIT = 8, TEXT = 600 };

struct ccn__watch {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool end;
  ccn__rt *rt;
  const ccn__local_run *run; /* NULL between calls */
};

static const ccn__node *node_of(const ccn__local_run *e) { return &e->p->g->nodes.at[atomic_load(&e->at)]; }

static uint32_t line_of(const ccn__source *s, uint32_t start) {
  uint32_t line = 1;
  for (uint32_t i = 0; i < start && i < s->size; i++) line += s->text[i] == '\n';
  return line;
}

static void tell(struct ccn__watch *w) {
  const ccn__local_run *e = w->run;
  const ccn_options *o = w->rt->options;
  const ccn__node *n = node_of(e);
  const ccn__source *s = w->rt->diags->nsources ? w->rt->diags->sources[n->span.source] : NULL;
  const ccn__attr *host = ccn__attr_find(n->attrs, CCN__A_HOST);
  char text[TEXT], place[200] = "", what[200] = "its own loops";
  if (s && n->span.source)
    (void)snprintf(place, sizeof place, " at %s:%u", s->name, line_of(s, n->span.start));
  if (n->op == CCN__OP_HOST && host)
    (void)snprintf(what, sizeof what, "the host's function `%s`", host->text);
  const int k =
    snprintf(text, sizeof text,
             "rank %u is in `%s` (%s)%s, step %u of its call, and waits for %s; the other ranks wait "
             "for it",
             atomic_load(&w->rt->rank), ccn__node_name(n), ccn__op_table[n->op].name, place,
             atomic_load(&e->now), what);
  if (k > 0) o->hung(text, (size_t)k < sizeof text ? (size_t)k : sizeof text - 1, o->hung_user);
}

static struct timespec later(int64_t ms) {
  struct timespec t;
  (void)clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += ms % 1000 * 1000000;
  if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
  return t;
}

static void *look(void *user) {
  struct ccn__watch *w = user;
  const ccn_options *o = w->rt->options;
  const int64_t nap = o->hang_limit_ms / LOOKS_A_LIMIT + 1;
  const ccn__local_run *run = NULL;
  uint64_t moves = 0, since = ccn__now_ms();
  bool told = false;
  (void)pthread_mutex_lock(&w->lock);
  while (!w->end) {
    const struct timespec t = later(nap);
    (void)pthread_cond_timedwait(&w->wake, &w->lock, &t);
    const uint64_t now = ccn__now_ms(), m = atomic_load(&w->rt->moves);
    if (!w->run || w->run != run || m != moves) {
      run = w->run;
      moves = m;
      since = now;
      told = false;
    } else if (!told && now - since >= (uint64_t)o->hang_limit_ms) {
      tell(w);
      told = true;
    }
  }
  (void)pthread_mutex_unlock(&w->lock);
  return NULL;
}

void ccn__local_watch(ccn__local *l, ccn__rt *rt, const ccn__local_run *run) {
  const ccn_options *o = rt->options;
  struct ccn__watch *w = l->watch;
  if (!w && (!run || !o || !o->hung || o->hang_limit_ms <= 0)) return;
  if (!w) {
    w = calloc(1, sizeof *w);
    if (!w) return;
    w->rt = rt;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->wake, NULL);
    if (pthread_create(&w->thread, NULL, look, w)) {
      free(w); /* nobody watches; the call is right without */
      return;
    }
    l->watch = w;
  }
  (void)pthread_mutex_lock(&w->lock);
  w->run = run;
  (void)pthread_mutex_unlock(&w->lock);
}

void ccn__local_watch_end(ccn__local *l) {
  struct ccn__watch *w = l->watch;
  if (!w) return;
  (void)pthread_mutex_lock(&w->lock);
  w->end = true;
  (void)pthread_cond_signal(&w->wake);
  (void)pthread_mutex_unlock(&w->lock);
  (void)pthread_join(w->thread, NULL);
  (void)pthread_cond_destroy(&w->wake);
  (void)pthread_mutex_destroy(&w->lock);
  free(w);
  l->watch = NULL;
}
