/* workers.c: threads that do a piece of work together and meet at its end. Who waits looks for a moment,
 * then sleeps: meetings follow each other within microseconds while a program runs, and cost nothing
 * between programs.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { SPIN_NS = 25 * 1000, LOOKS = 64 };

typedef struct hand {
  struct ccn__workers *all;
  pthread_t thread;
  uint32_t number;
} hand;

struct ccn__workers {
  uint32_t n; /* the caller is number 0 */
  pthread_mutex_t lock;
  pthread_cond_t go, done;
  _Atomic uint32_t turn, left;
  bool end;
  ccn__work_fn *work;
  void *user;
  hand hand[];
};

uint32_t ccn__usable_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return (uint32_t)CPU_COUNT(&set);
#endif
  return 1;
}

static uint64_t now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Looks until the number is not `old` (or, with `down`, is 0); false if that took too long. */
static bool looks(const _Atomic uint32_t *x, uint32_t old, bool down) {
  const uint64_t start = now();
  do {
    for (int i = 0; i < LOOKS; i++) {
      const uint32_t v = atomic_load_explicit(x, memory_order_acquire);
      if (down ? v == 0 : v != old) return true;
    }
  } while (now() - start < SPIN_NS);
  return false;
}

static void *wait_and_work(void *user) {
  hand *h = user;
  ccn__workers *w = h->all;
  for (uint32_t seen = 0;; seen++) {
    if (!looks(&w->turn, seen, false)) {
      (void)pthread_mutex_lock(&w->lock);
      while (atomic_load_explicit(&w->turn, memory_order_acquire) == seen)
        (void)pthread_cond_wait(&w->go, &w->lock);
      (void)pthread_mutex_unlock(&w->lock);
    }
    if (w->end) return NULL;
    w->work(w->user, h->number);
    if (atomic_fetch_sub_explicit(&w->left, 1, memory_order_acq_rel) != 1) continue;
    (void)pthread_mutex_lock(&w->lock);
    (void)pthread_cond_signal(&w->done);
    (void)pthread_mutex_unlock(&w->lock);
  }
}

static void begin(ccn__workers *w) {
  (void)pthread_mutex_lock(&w->lock);
  atomic_store_explicit(&w->left, w->n - 1, memory_order_relaxed);
  (void)atomic_fetch_add_explicit(&w->turn, 1, memory_order_release);
  (void)pthread_cond_broadcast(&w->go);
  (void)pthread_mutex_unlock(&w->lock);
}

void ccn__workers_run(ccn__workers *w, ccn__work_fn *work, void *user) {
  w->work = work;
  w->user = user;
  if (w->n > 1) begin(w);
  work(user, 0);
  if (w->n == 1 || looks(&w->left, 0, true)) return;
  (void)pthread_mutex_lock(&w->lock);
  while (atomic_load_explicit(&w->left, memory_order_acquire)) (void)pthread_cond_wait(&w->done, &w->lock);
  (void)pthread_mutex_unlock(&w->lock);
}

ccn__workers *ccn__workers_open(uint32_t n) {
  ccn__workers *w = calloc(1, sizeof *w + n * sizeof w->hand[0]);
  if (!w) return NULL;
  (void)pthread_mutex_init(&w->lock, NULL);
  (void)pthread_cond_init(&w->go, NULL);
  (void)pthread_cond_init(&w->done, NULL);
  for (w->n = 1; w->n < n; w->n++) {
    hand *h = &w->hand[w->n];
    *h = (hand){.all = w, .number = w->n};
    if (pthread_create(&h->thread, NULL, wait_and_work, h)) break; /* fewer do it too */
  }
  return w;
}

uint32_t ccn__workers_count(const ccn__workers *w) { return w->n; }

void ccn__workers_close(ccn__workers *w) {
  if (!w) return;
  w->end = true;
  if (w->n > 1) begin(w);
  for (uint32_t i = 1; i < w->n; i++) (void)pthread_join(w->hand[i].thread, NULL);
  (void)pthread_cond_destroy(&w->go);
  (void)pthread_cond_destroy(&w->done);
  (void)pthread_mutex_destroy(&w->lock);
  free(w);
}
