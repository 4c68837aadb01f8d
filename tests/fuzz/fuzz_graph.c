/* fuzz_graph.c: libFuzzer target for graph text: what reads prints as a text that reads back and prints
 * the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size, (void)user;
  if (new_size) return aligned_alloc(align, (new_size + align - 1) / align * align);
  free(p);
  return NULL;
}

typedef struct state {
  ccn__arena arena;
  ccn__names names;
  ccn__source source;
  ccn__source *sources[2];
  ccn__diags ds;
} state;

static void require(const state *s, bool condition) {
  if (condition) return;
  if (s->ds.last) fprintf(stderr, "CCN%04u: %s\n", s->ds.last->code, s->ds.last->message);
  abort();
}

static bool parse(state *s, const char *text, size_t size, ccn__graph_list *out) {
  s->source = (ccn__source){.name = "graph", .text = text, .size = (uint32_t)size};
  return ccn__graph_parse(&s->arena, &s->names, &s->ds, 1, out);
}

static void print(state *s, const ccn__graph_list *l, ccn__text *out) {
  ccn__text_init(out, &s->arena);
  for (uint32_t i = 0; i < l->n; i++) ccn__graph_print(l->at[i], out);
}

static void round_trip(state *s, const char *data, size_t size) {
  ccn__graph_list first, second;
  ccn__text once, again;
  if (!parse(s, data, size, &first)) {
    require(s, s->ds.errors == 1);
    ccn__text_init(&once, &s->arena);
    ccn__diag_render(&s->ds, s->ds.last, false, &once);
    return;
  }
  require(s, s->ds.errors == 0);
  print(s, &first, &once);
  require(s, parse(s, once.n ? once.at : "", once.n, &second));
  print(s, &second, &again);
  require(s, once.n == again.n && (!once.n || memcmp(once.at, again.at, once.n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ccn__heap heap = {.alloc = host_alloc, .limit = (size_t)256 << 20};
  ccn__trap trap;
  state s = {.sources = {NULL, &s.source}, .ds = {.sources = s.sources, .nsources = 2}};
  s.ds.arena = &s.arena;
  ccn__arena_init(&s.arena, &heap);
  CCN__TRY(&heap, trap)
  {
    ccn__names_init(&s.names, &s.arena);
    round_trip(&s, size ? (const char *)data : "", size);
  }
  CCN__CATCH(&heap, trap)
  { require(&s, trap.status == CCN_OUT_OF_MEMORY); }
  ccn__arena_free(&s.arena);
  require(&s, heap.live == 0);
  return 0;
}
