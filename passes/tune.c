/* tune.c: the search itself: every graph that the moves lead to, each once, in the order in which they are found.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune.h"

typedef struct entry {
  ccn__tune_state s;
  uint64_t hash;
  const char *text; /* of its graph: what tells graphs apart */
} entry;

typedef struct search {
  ccn__rt *rt;
  ccn__arena *a;
  const ccn__tune_options *o;
  ccn__tune_result *out;
  CCN__VEC(entry) queue; /* as long as out->seen */
  uint32_t *bucket;      /* number of an entry + 1 */
  uint32_t nbuckets;
} search;

static uint64_t hash_of(const char *s) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *s; s++) h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
  return h;
}

/* Adds a state whose graph has not been seen. */
static bool add(search *q, const ccn__tune_state *s) {
  ccn__text t;
  ccn__text_init(&t, q->a);
  ccn__graph_print(s->g, &t);
  const uint64_t hash = hash_of(t.at);
  uint32_t at = (uint32_t)hash & (q->nbuckets - 1);
  for (; q->bucket[at]; at = (at + 1) & (q->nbuckets - 1)) {
    const entry *e = &q->queue.at[q->bucket[at] - 1];
    if (e->hash == hash && strcmp(e->text, t.at) == 0) return false;
  }
  q->bucket[at] = q->queue.n + 1;
  *CCN__PUSH(q->a, &q->queue) = (entry){*s, hash, t.at};
  *CCN__PUSH(q->a, &q->out->seen) =
    (ccn__tuned){.body = s->body, .g = s->g, .seconds = q->o->price(q->o->user, s->g), .exact = s->exact};
  return true;
}

static void expand(search *q, uint32_t from) {
  const uint32_t nkinds = q->queue.at[from].s.nkinds;
  for (uint32_t kind = q->queue.at[from].s.kind; kind < nkinds; kind++)
    for (uint32_t move = 0; move < ccn__tune_moves(); move++)
      for (uint32_t arg = 0; arg < ccn__tune_args(move); arg++) {
        ccn__tune_trial t = {
          .rt = q->rt, .a = q->a, .s = q->queue.at[from].s, .reassociate = q->o->reassociate};
        if (q->queue.n == CCN__TUNE_MOST) {
          q->out->whole = false;
          return;
        }
        ccn__rt_poll(q->rt);
        q->out->moves++;
        if (!ccn__tune_move(&t, kind, move, arg)) q->out->refused++;
        else if (!add(q, &t.s)) q->out->known++;
        else if (q->o->progress) q->o->progress(q->o->user, q->queue.n);
      }
}

/* The least time; of equal ones the shorter schedule, which was found first. */
static void choose(ccn__tune_result *r) {
  r->second = CCN__NO_ID;
  for (uint32_t i = 1; i < r->seen.n; i++) {
    const double x = r->seen.at[i].seconds;
    if (x < 0) continue;
    if (r->seen.at[r->best].seconds < 0 || x < r->seen.at[r->best].seconds) {
      r->second = r->best;
      r->best = i;
    } else if (r->second == CCN__NO_ID || x < r->seen.at[r->second].seconds) r->second = i;
  }
}

void ccn__tune(ccn__rt *rt, ccn__arena *a, const ccn__graph *g, const ccn__tune_options *o,
               ccn__tune_result *out) {
  ccn__tune_state first;
  ccn__diags *const told = rt->diags;
  ccn__diags nowhere = {.arena = a, .sources = told->sources, .nsources = told->nsources, .limit = 1};
  search q = {.rt = rt, .a = a, .o = o, .out = out, .nbuckets = 4 * CCN__TUNE_MOST};
  *out = (ccn__tune_result){.whole = true};
  q.bucket = CCN__NEWN(a, uint32_t, q.nbuckets);
  rt->diags = &nowhere;
  ccn__trap trap;
  CCN__TRY(rt->heap, trap)
  {
    ccn__tune_begin(rt, a, g, &first);
    (void)add(&q, &first);
    for (uint32_t i = 0; i < q.queue.n; i++) expand(&q, i);
  }
  CCN__CATCH(rt->heap, trap)
  {}
  rt->diags = told;
  if (trap.status != CCN_OK) ccn__throw(rt->heap, trap.status);
  choose(out);
}
