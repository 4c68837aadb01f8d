/* graph.c: making graphs: nodes, symbols and their names.
 * Contract: graph.h. What a graph promises is checked by verify.c, not here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

ccn__graph *ccn__graph_new(ccn__arena *a, ccn__names *names, ccn__name name, const ccn__mesh *mesh) {
  ccn__graph *g = CCN__NEW(a, ccn__graph);
  g->arena = a;
  g->names = names;
  g->name = name;
  if (mesh) g->mesh = *mesh;
  *CCN__PUSH(a, &g->regions) = (ccn__region){.owner = CCN__NO_ID};
  return g;
}

/* Lists of numbers and dims usually stand on the caller's stack; literals and dims are immutable, thus
 * shared. */
static ccn__attr copy_attr(ccn__arena *a, ccn__attr x) {
  switch (ccn__attr_table[x.key].kind) {
  case CCN__ATTR_INTS:
  case CCN__ATTR_PAIRS: {
    int64_t *p = CCN__NEWN(a, int64_t, x.n);
    if (x.n) memcpy(p, x.ints, x.n * sizeof *p);
    x.ints = p;
    break;
  }
  case CCN__ATTR_DIMS: {
    const ccn__dim **p = CCN__NEWN(a, const ccn__dim *, x.n);
    if (x.n) memcpy(p, x.dims, x.n * sizeof *p);
    x.dims = p;
    break;
  }
  default: break;
  }
  return x;
}

static ccn__attrs copy_attrs(ccn__arena *a, ccn__attrs as) {
  if (!as.n) return (ccn__attrs){0};
  ccn__attr *p = CCN__NEWN(a, ccn__attr, as.n);
  for (uint32_t i = 0; i < as.n; i++) p[i] = copy_attr(a, as.at[i]);
  return (ccn__attrs){p, as.n};
}

ccn__id ccn__graph_add(ccn__graph *g, ccn__op op, const ccn__id *in, uint32_t nin, const ccn__type *type,
                       ccn__attrs attrs, ccn__span span, uint32_t region) {
  ccn__arena *a = g->arena;
  if (nin > UINT16_MAX || g->nodes.n == CCN__NO_ID - 1) ccn__throw(a->heap, CCN_OUT_OF_MEMORY);
  ccn__node n = {.op = (uint16_t)op, .nin = (uint16_t)nin, .region = region, .span = span};
  if (nin) {
    ccn__id *p = CCN__NEWN(a, ccn__id, nin);
    memcpy(p, in, nin * sizeof *p);
    n.in = p;
  }
  if (type) {
    ccn__type *p = CCN__NEW(a, ccn__type);
    *p = *type;
    n.type = p;
  }
  n.attrs = copy_attrs(a, attrs);
  *CCN__PUSH(a, &g->nodes) = n;
  return g->nodes.n - 1;
}

/* Symbols that stand for something of the graph need no name of their own. */
static ccn__name derived_name(ccn__graph *g, ccn__symbol_kind kind, uint32_t index) {
  ccn__text t;
  ccn__text_init(&t, g->arena);
  switch (kind) {
  case CCN__SYM_DIM: ccn__text_putc(&t, '?'); break;
  case CCN__SYM_SIZE:
    ccn__text_printf(&t, "size(%s)", index < g->mesh.naxes ? g->mesh.name[index] : "?");
    break;
  case CCN__SYM_TOTAL: ccn__text_printf(&t, "total(%u)", (unsigned)index); break;
  case CCN__SYM_COUNT: ccn__text_printf(&t, "count(%u)", (unsigned)index); break;
  }
  return ccn__intern(g->names, t.at, t.n);
}

/* A dim is known by its name, the others by what they stand for. */
static const void *key_of(ccn__name name, ccn__symbol_kind kind) {
  return kind == CCN__SYM_DIM ? name : NULL;
}

static uint32_t tag_of(ccn__symbol_kind kind, uint32_t index) {
  return kind == CCN__SYM_DIM ? 0 : index * (CCN__SYM_COUNT + 1) + kind;
}

uint32_t ccn__graph_find_symbol(ccn__graph *g, ccn__name name, ccn__symbol_kind kind, uint32_t index) {
  if (g->symbols_by_name.owner != g) {
    g->symbols_by_name.index = (ccn__index){0};
    g->symbols_by_name.owner = g;
    g->symbols_by_name.n = 0;
  }
  for (uint32_t *i = &g->symbols_by_name.n; *i < g->symbols.n; ++*i) {
    const ccn__symbol *s = &g->symbols.at[*i];
    ccn__symbol_kind k = (ccn__symbol_kind)s->kind;
    ccn__index_add(g->arena, &g->symbols_by_name.index, key_of(s->name, k), tag_of(k, s->index), *i);
  }
  return ccn__index_find(&g->symbols_by_name.index, key_of(name, kind), tag_of(kind, index));
}

/* The symbol that is there, or a new one. */
uint32_t ccn__graph_symbol(ccn__graph *g, ccn__name name, ccn__symbol_kind kind, uint32_t index,
                           ccn__span span) {
  if (!name || kind == CCN__SYM_SIZE)
    name = derived_name(g, kind, index); /* "size(dp)": "dp" would read as a dim */
  uint32_t known = ccn__graph_find_symbol(g, name, kind, index);
  if (known != CCN__NO_INDEX) return known;
  *CCN__PUSH(g->arena, &g->symbols) = (ccn__symbol){
    .name = name, .kind = (uint8_t)kind, .index = kind == CCN__SYM_DIM ? 0 : index, .span = span};
  return g->symbols.n - 1;
}

const char *ccn__graph_symbol_name(void *graph, uint32_t sym) {
  const ccn__graph *g = graph;
  return sym < g->symbols.n ? g->symbols.at[sym].name : "?";
}
