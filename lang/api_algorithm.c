/* api_algorithm.c: collective algorithms for hosts: their list, one of them as text, JSON or a table,
 * texts checked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm_words.h"
#include "algorithms.h"
#include "api.h"

const char *ccn_algorithm_list(size_t i, const char **out_about) {
  if (out_about) *out_about = i < CCN__GENERATORS ? ccn__generator_table[i].doc : NULL;
  return i < CCN__GENERATORS ? ccn__generator_table[i].name : NULL;
}

typedef struct work {
  ccn_algorithm_desc desc;
  const char *text, *format;
  size_t size;
  ccn_write_fn write;
  void *user;
} work;

static void refuse(ccn__state *s, const char *message, const char *hint) {
  ccn__diag *d = ccn__error(&s->diags, 501, (ccn__span){0}, "", "%s", message);
  ccn__hint(&s->diags, d, "%s", hint);
}

static const char form[] = "docs/algorithms.md says what steps and fields mean";

/* "allreduce, reducescatter, ..." */
static const char *collectives(ccn__arena *a) {
  ccn__op op;
  ccn__text t;
  ccn__text_init(&t, a);
  for (int i = 0; i < CCN__OP_COUNT; i++) {
    const char *name = ccn__op_table[i].name;
    if (ccn__collective_find(name, strlen(name), &op))
      ccn__text_printf(&t, "%s%s", t.n ? ", " : "there are ", name);
  }
  return t.at;
}

/* The algorithms that do this collective, "ring, tree". */
static const char *who_makes(ccn__arena *a, ccn__op op) {
  ccn__text t;
  ccn__text_init(&t, a);
  for (int g = 0; g < CCN__GENERATORS; g++)
    if (ccn__generator_makes((ccn__generator)g, op))
      ccn__text_printf(&t, "%s%s", t.n ? ", " : "", ccn__generator_table[g].name);
  return t.at;
}

/* A shift by `by` around, a permutation that is one. */
static const uint16_t *sources(ccn__arena *a, const ccn_algorithm_desc *d, ccn__op op) {
  if (op != CCN__OP_SHIFT && op != CCN__OP_PERMUTE) return NULL;
  uint16_t *source = CCN__NEWN(a, uint16_t, d->ranks);
  const int64_t n = d->ranks;
  for (int64_t r = 0; r < n; r++) source[r] = (uint16_t)(((r - d->by) % n + n) % n);
  return source;
}

static ccn__algorithm *generate(ccn__state *s, ccn__arena *arena, const ccn_algorithm_desc *d) {
  ccn__op op;
  ccn__generator g;
  const char *why = NULL;
  if (!ccn__collective_find(d->collective, strlen(d->collective), &op))
    return refuse(s, ccn__arena_printf(arena, "there is no collective `%.60s`", d->collective),
                  collectives(arena)),
           NULL;
  if (!ccn__generator_find(d->algorithm, &g))
    return refuse(s, ccn__arena_printf(arena, "there is no algorithm `%.60s`", d->algorithm),
                  ccn__arena_printf(arena, "for %s there are %s", d->collective, who_makes(arena, op))),
           NULL;
  if (d->root >= d->ranks)
    return refuse(s, ccn__arena_printf(arena, "root %u of %u ranks", d->root, d->ranks),
                  "ranks count from 0"),
           NULL;
  const ccn__algo_want want = {.op = op,
                               .nranks = d->ranks,
                               .root = d->root,
                               .chunks = d->chunks ? d->chunks : 1,
                               .group = d->group,
                               .source = sources(arena, d, op)};
  ccn__algorithm *a = ccn__algorithm_make(arena, g, &want, &why);
  if (!a)
    refuse(s,
           ccn__arena_printf(arena, "%s for %s on %u ranks: %s", d->algorithm, d->collective, d->ranks, why),
           ccn__generator_makes(g, op)
             ? "a group is a number of neighbours that divides the ranks"
             : ccn__arena_printf(arena, "for %s there are %s", d->collective, who_makes(arena, op)));
  return a;
}

static ccn__algorithm *read(ccn__state *s, ccn__arena *arena, const work *w) {
  const char *why = NULL;
  size_t i = 0;
  while (i < w->size && (w->text[i] == ' ' || w->text[i] == '\n' || w->text[i] == '\t' || w->text[i] == '\r'))
    i++;
  const bool json = i < w->size && w->text[i] == '{';
  ccn__algorithm *a = json ? ccn__algorithm_read_json(arena, w->text, w->size, &why)
                           : ccn__algorithm_read(arena, w->text, w->size, &why);
  if (!a) refuse(s, ccn__arena_printf(arena, "this is no algorithm: %s", why), form);
  return a;
}

/* Whatever it comes from is checked before it is shown. */
static void show_in(ccn__state *s, ccn__arena *arena, const work *w) {
  ccn__algo_fault fault;
  ccn__text t;
  ccn__algorithm *a = w->text ? read(s, arena, w) : generate(s, arena, &w->desc);
  if (!a) return;
  if (!ccn__algorithm_check(a, arena, &fault)) {
    refuse(s, ccn__arena_printf(arena, "the algorithm is wrong: %s", fault.text), form);
    return;
  }
  if (!w->write) return;
  ccn__text_init(&t, arena);
  if (strcmp(w->format, "json") == 0) ccn__algorithm_print_json(a, &t);
  else if (strcmp(w->format, "text") == 0) ccn__algorithm_print(a, &t);
  else ccn__algorithm_picture(a, &t);
  if (strcmp(w->format, "json") == 0) ccn__text_putc(&t, '\n');
  w->write(t.at, t.n, w->user);
}

static void show(ccn__state *s, void *user) {
  show_in(s, &s->rt.scratch, user);
  ccn__arena_free(&s->rt.scratch);
}

static bool known_format(const char *format) {
  return strcmp(format, "text") == 0 || strcmp(format, "json") == 0 || strcmp(format, "table") == 0;
}

ccn_status ccn_algorithm_write(ccn_context *c, const ccn_algorithm_desc *desc, const char *format,
                               ccn_write_fn write, void *user) {
  work w = {.format = format, .write = write, .user = user};
  if (!c || !desc || !format || !write || !known_format(format) || !desc->size || desc->size > 4096)
    return CCN_INVALID_ARGUMENT;
  memcpy(&w.desc, desc, desc->size < sizeof w.desc ? desc->size : sizeof w.desc);
  if (!w.desc.collective || !w.desc.algorithm || w.desc.ranks < 1 || w.desc.ranks > CCN_ALGORITHM_RANKS ||
      w.desc.chunks > CCN_ALGORITHM_CHUNKS)
    return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, show, &w);
}

ccn_status ccn_algorithm_check(ccn_context *c, const char *text, size_t size) {
  work w = {.text = text, .size = size, .format = "text"};
  if (!c || !text) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, show, &w);
}
