/* jit_kit.h: kernels against the reference interpreter: a graph from text or from a program, arguments, the
 * group as a kernel, its machine code, and a small executor that steps ranks from meeting to meeting in any
 * order.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_TESTS_JIT_KIT_H
#define CCN_TESTS_JIT_KIT_H

#include "../lang/interp_kit.h"

#include "interp_eval.h"
#include "jit.h"
#include "kernel.h"

#include <dlfcn.h>

/* ---- the plugin ---------------------------------------------------------------------------------------- */

static const ccn__jit_plugin *plugin;

/* False if this build has no LLVM: then the tests are skipped, by name. */
static inline bool open_plugin(void) {
#ifdef CCN_JIT_PLUGIN
  void *m = dlopen(CCN_JIT_PLUGIN, RTLD_NOW);
  ccn__jit_plugin_fn *get = NULL;
  void *at = m ? dlsym(m, "ccn__jit_plugin_table") : NULL;
  memcpy(&get, &at, sizeof get);
  plugin = get ? get(CCN__JIT_ABI) : NULL;
  if (!plugin) {
    printf("# %s: %s\n", CCN_JIT_PLUGIN, m ? "no table" : dlerror());
    exit(3);
  }
  return true;
#else
  return false;
#endif
}

static inline int skip_without_llvm(const char *what) {
  printf("ok 1 - %s # skip: built without LLVM\n1..1\n", what);
  return 0;
}

/* ---- a graph with its sizes ---------------------------------------------------------------------------- */

typedef struct shaped {
  kit k;
  ccn__source source, *sources[2];
  ccn__shape *shape;
  int64_t sym[16];
  ccn__tensor *arg[16], *result[MAX_OUT];
  ccn__members *bundle[4];
  ccn__id *node; /* of the group */
  uint32_t nnodes;
} shaped;

static ccn__text *sink;
static inline void to_sink(const char *text, size_t n, void *user) {
  (void)user;
  ccn__text_add(sink, text, n);
}

static inline void shaped_shapes(shaped *s) {
  const ccn__graph *g = s->k.g;
  SAFE(&s->k, {
    s->shape = CCN__NEWN(&s->k.arena, ccn__shape, g->nodes.n);
    for (ccn__id i = 0; i < g->nodes.n; i++) {
      const ccn__type *t = g->nodes.at[i].type;
      ccn__shape *h = &s->shape[i];
      *h = (ccn__shape){.dtype = t->dtype, .rank = t->rank, .bundle = t->bundle, .bundle_id = t->bundle_id};
      for (uint32_t d = 0; d < t->rank; d++) (void)ccn__dim_eval(t->dim[d], s->sym, &h->dim[d]);
      for (uint32_t a = 0; a < g->mesh.naxes; a++) {
        h->place[a] = concrete(&t->place[a]);
        if (t->place[a].unit) (void)ccn__dim_eval(t->place[a].unit, s->sym, &h->place[a].unit);
      }
    }
  });
}

/* All nodes that compute, or those of kernel `fuse`. */
static inline void shaped_group(shaped *s, int64_t fuse) {
  const ccn__graph *g = s->k.g;
  SAFE(&s->k, {
    s->node = CCN__NEWN(&s->k.arena, ccn__id, g->nodes.n);
    s->nnodes = 0;
    for (ccn__id i = 0; i < g->nodes.n; i++) {
      const ccn__node *n = &g->nodes.at[i];
      if (n->op == CCN__OP_PARAM || n->op == CCN__OP_CONST) continue;
      if (!fuse || ccn__attr_int(n->attrs, CCN__A_FUSE, 0) == fuse) s->node[s->nnodes++] = i;
    }
  });
}

static inline ccn__members *members_of(const int64_t *length, uint32_t n, kit *k) {
  ccn__members *m = NULL;
  ccn__trap trap;
  CCN__TRY(&k->heap, trap)
  {
    m = ccn__arena_alloc(&k->arena, ccn__members_size(n));
    m->k = n;
    for (uint32_t i = 0, at = 0; i < n; at += (uint32_t)length[i], i++) {
      m->at[i].rank = 1;
      m->at[i].dim[0] = m->at[i].elements = length[i];
      m->at[i].start = at;
    }
  }
  CCN__CATCH(&k->heap, trap)
  exit(3);
  return m;
}

/* An empty graph on a mesh, to be filled with `add` and `param` of interp_kit.h; then shaped_ready. */
static inline void shaped_new(shaped *s, const char *mesh) {
  memset(s, 0, sizeof *s);
  kit_open(&s->k, mesh);
}

static inline void shaped_ready(shaped *s) {
  memcpy(s->arg, s->k.arg, sizeof s->k.arg);
  shaped_shapes(s);
  shaped_group(s, 0);
}

/* The first graph of a script's stage ("graph", "scheduled") on a mesh; extents in order of the graph's
 * symbols; of bundles, the lengths of the members (all bundles alike). */
static inline void shaped_open(shaped *s, const char *script, const char *stage, const char *mesh,
                               const int64_t *extent, const int64_t *length, uint32_t nlength) {
  ccn_context *c = NULL;
  ccn__text text;
  ccn__graph_list list = {NULL, 0};
  memset(s, 0, sizeof *s);
  kit_open(&s->k, mesh);
  ccn__text_init(&text, &s->k.arena);
  sink = &text;
  if (ccn_context_create(NULL, &c) || ccn_dump(c, "test", script, strlen(script), stage, to_sink, NULL)) {
    printf("# the script is wrong: %s\n", script);
    exit(3);
  }
  ccn_context_free(c);
  SAFE(&s->k, {
    s->source = (ccn__source){.name = "graph", .text = text.at, .size = (uint32_t)text.n};
    s->sources[1] = &s->source;
    s->k.diags.sources = s->sources;
    s->k.diags.nsources = 2;
    if (!ccn__graph_parse(&s->k.arena, &s->k.names, &s->k.diags, 1, &list) || !list.n) {
      printf("# graph not read: %s\n", s->k.diags.first ? s->k.diags.first->message : "too few");
      exit(3);
    }
  });
  s->k.g = list.at[0];
  s->k.g->mesh = (ccn__mesh){.naxes = s->k.g->mesh.naxes};
  for (uint32_t a = 0; a < s->k.g->mesh.naxes; a++) s->k.g->mesh.size[a] = s->k.rt.mesh.size[a];
  for (uint32_t b = 0; b < s->k.g->nbundles && b < 4; b++) s->bundle[b] = members_of(length, nlength, &s->k);
  for (uint32_t i = 0, e = 0; i < s->k.g->symbols.n; i++) {
    const ccn__symbol *y = &s->k.g->symbols.at[i];
    const ccn__members *m =
      y->kind == CCN__SYM_TOTAL || y->kind == CCN__SYM_COUNT ? s->bundle[y->index] : NULL;
    if (y->kind == CCN__SYM_DIM) s->sym[i] = extent[e++];
    if (y->kind == CCN__SYM_SIZE) s->sym[i] = s->k.g->mesh.size[y->index];
    if (y->kind == CCN__SYM_COUNT) s->sym[i] = m->k;
    for (uint32_t j = 0; y->kind == CCN__SYM_TOTAL && j < m->k; j++) s->sym[i] += m->at[j].elements;
  }
  shaped_shapes(s);
}

static inline void shaped_args(shaped *s, make_fn *make) {
  const ccn__graph *g = s->k.g;
  SAFE(&s->k, {
    for (uint32_t p = 0; p < g->params.n; p++) {
      const ccn__shape *h = &s->shape[g->params.at[p].node];
      const size_t item = ccn__dtype_size((ccn__dtype)h->dtype);
      ccn__tensor *x = ccn__tensor_new(&s->k.rt, (ccn__dtype)h->dtype, h->rank);
      memcpy(x->dim, h->dim, sizeof h->dim);
      memcpy(x->place, h->place, sizeof h->place);
      bool local = false;
      for (uint32_t a = 0; a < g->mesh.naxes; a++)
        local |= h->place[a].kind == CCN__LOCAL || h->place[a].kind == CCN__PARTIAL;
      for (uint32_t r = 0; r < s->k.rt.world; r++) {
        ccn__box b;
        if (!ccn__rank_has(&g->mesh, r, x->place)) continue;
        ccn__box_of(&g->mesh, r, x->rank, x->dim, x->place, &b);
        x->buf[r] = ccn__buf_new(&s->k.rt.pool, (size_t)b.elements * item);
        for (int64_t i = 0; i < b.elements; i++)
          make((char *)x->buf[r]->data + (size_t)i * item, (ccn__dtype)h->dtype, local ? r + 1 : 0,
               global_of(x, &b, i), (int)p);
      }
      s->arg[p] = x;
    }
  });
}

static inline void shaped_close(shaped *s) { kit_close(&s->k); }

/* ---- comparing ----------------------------------------------------------------------------------------- */

static inline bool is_nan(ccn__dtype t, const char *p) {
  return ccn__dtype_is_float(t) && isnan(ccn__load_f64(t, p));
}

static inline bool same_elements(ccn__dtype t, const char *x, const char *y, int64_t bytes,
                                 const char *what) {
  const int64_t item = (int64_t)ccn__dtype_size(t);
  for (int64_t i = 0; i < bytes; i += item) {
    if (memcmp(x + i, y + i, (size_t)item) == 0 || (is_nan(t, x + i) && is_nan(t, y + i))) continue;
    printf("# %s: element %lld of %lld (%s): %.9g, not %.9g\n", what, (long long)(i / item),
           (long long)(bytes / item), ccn__dtype_name(t), ccn__load_f64(t, x + i), ccn__load_f64(t, y + i));
    return false;
  }
  return true;
}

/* ---- executing ----------------------------------------------------------------------------------------- */

enum { GUARD = 64 };

typedef struct machine {
  const ccn__kern *k;
  ccn__kern_fn *const *fn;
  void **base[CCN__MAX_RANKS];
  ccn__kern_args args[CCN__MAX_RANKS];
  char **own; /* memory to be freed: one a slot and rank, NULL where shared */
  bool aliased;
} machine;

static inline void *block_new(size_t n) {
  char *p =
    aligned_alloc(GUARD, (n + 3 * GUARD - 1) / GUARD * GUARD); /* as backends do: streaming needs it */
  memset(p, 0xa5, n + 2 * GUARD);
  return p + GUARD;
}

static inline bool guarded(const char *p, size_t n) {
  for (size_t i = 0; i < GUARD; i++)
    if ((uint8_t)p[-1 - (long)i] != 0xa5 || (uint8_t)p[n + i] != 0xa5) return false;
  return true;
}

static inline bool interpret(shaped *s);

/* A value from outside: an argument, or what the interpreter makes of it when nothing is stored. */
static inline const ccn__tensor *value_of(shaped *s, ccn__id node) {
  ccn__graph *g = s->k.g;
  for (uint32_t p = 0; p < g->params.n; p++)
    if (g->params.at[p].node == node) return s->arg[p];
  const ccn__id *outputs = g->outputs;
  const uint32_t noutputs = g->noutputs;
  ccn__id update[16];
  for (uint32_t p = 0; p < g->params.n; p++) {
    update[p] = g->params.at[p].update;
    g->params.at[p].update = CCN__NO_ID;
  }
  g->outputs = &node;
  g->noutputs = 1;
  const bool good = interpret(s);
  g->outputs = outputs;
  g->noutputs = noutputs;
  for (uint32_t p = 0; p < g->params.n; p++) g->params.at[p].update = update[p];
  if (!good) {
    printf("# %%%u has no value\n", node);
    exit(3);
  }
  return s->result[0];
}

static inline uint32_t alias_of(const shaped *s, const ccn__kern *k, uint32_t out) {
  const ccn__kslot *o = &k->slots.at[out];
  if (o->kind != CCN__KSLOT_OUT || o->update == CCN__NO_ID) return CCN__NO_SLOT;
  for (uint32_t i = 0; i < k->slots.n; i++)
    if (k->slots.at[i].kind == CCN__KSLOT_IN && k->slots.at[i].node == s->k.g->nodes.at[o->update].in[0] &&
        ccn__kern_may_alias(k, i, out))
      return i;
  return CCN__NO_SLOT;
}

/* Memory of all slots; in place where the kernel allows it. */
static inline void machine_open(machine *m, shaped *s, const ccn__kern *k, ccn__kern_fn *const *fn,
                                bool in_place) {
  memset(m, 0, sizeof *m);
  m->k = k;
  m->fn = fn;
  m->own = calloc((size_t)k->world * k->slots.n + 1, sizeof *m->own);
  for (uint32_t r = 0; r < k->world; r++) m->base[r] = calloc(k->slots.n + 1, sizeof(void *));
  for (uint32_t i = 0; i < k->slots.n; i++) {
    const ccn__kslot *x = &k->slots.at[i];
    const ccn__tensor *t = x->kind == CCN__KSLOT_IN ? value_of(s, x->node) : NULL;
    for (uint32_t r = 0; r < k->world; r++) {
      m->base[r][i] = m->own[r * k->slots.n + i] = block_new((size_t)x->bytes[r]);
      if (t && t->buf[r] && x->bytes[r]) memcpy(m->base[r][i], t->buf[r]->data, (size_t)x->bytes[r]);
    }
  }
  for (uint32_t r = 0; r < k->world; r++)
    for (uint32_t i = 0; in_place && i < k->slots.n; i++) {
      const uint32_t a = alias_of(s, k, i);
      if (a == CCN__NO_SLOT) continue;
      m->base[r][i] = m->base[r][a];
      m->aliased = true;
    }
  for (uint32_t r = 0; r < k->world; r++) {
    void **ptr = calloc(k->ptrs.n + 1, sizeof *ptr);
    ccn__kern_bind(k, r, (void *const *const *)m->base, ptr);
    m->args[r] =
      (ccn__kern_args){ptr, k->numbers + r * k->nnumbers, calloc(k->faults.n + 1, sizeof(uint64_t)), 0};
  }
}

static inline bool machine_close(machine *m) {
  bool good = true;
  for (uint32_t r = 0; r < m->k->world; r++) {
    for (uint32_t i = 0; i < m->k->slots.n; i++) {
      char *p = m->own[r * m->k->slots.n + i];
      if (!guarded(p, (size_t)m->k->slots.at[i].bytes[r])) {
        printf("# rank %u wrote outside of slot %u\n", r, i);
        good = false;
      }
      free(p - GUARD);
    }
    free(m->base[r]);
    free((void *)(uintptr_t)m->args[r].ptr);
    free(m->args[r].fault);
  }
  free(m->own);
  return good;
}

static inline void machine_step(machine *m, uint32_t step, uint32_t rank, int64_t chunk) {
  const ccn__kstep *s = &m->k->steps.at[step];
  if (s->kind != CCN__KSTEP_LOOP) {
    ccn__kern_step(m->k, step, rank, (void *const *const *)m->base);
    return;
  }
  const int64_t count = m->k->loops.at[s->index].count[rank];
  for (int64_t at = 0; at < count;) {
    const int64_t to = ccn__kern_chunk(m->k, s->index, rank, at, chunk);
    m->fn[s->index](&m->args[rank], at, to);
    at = to;
  }
}

/* Each rank goes on alone from one meeting to the next; who goes first changes. */
static inline void machine_run(machine *m, int64_t chunk, uint32_t seed) {
  for (uint32_t from = 0; from < m->k->steps.n;) {
    uint32_t to = from;
    while (to < m->k->steps.n && (to == from || m->k->steps.at[to].kind != CCN__KSTEP_SYNC)) to++;
    for (uint32_t i = 0; i < m->k->world; i++) {
      const uint32_t r = (uint32_t)((i * 7919u + seed) % m->k->world),
                     rank = seed & 1 ? m->k->world - 1 - r : r;
      for (uint32_t s = from; s < to; s++) machine_step(m, s, rank, chunk);
    }
    from = to;
    seed = seed * 1664525u + 1013904223u;
  }
}

/* ---- a whole test -------------------------------------------------------------------------------------- */

static inline ccn__kern *build(shaped *s, ccn__kern_in *in) {
  ccn__kern *volatile k = NULL;
  *in = (ccn__kern_in){.arena = &s->k.arena,
                       .g = s->k.g,
                       .shape = s->shape,
                       .sym = s->sym,
                       .bundle = s->bundle,
                       .node = s->node,
                       .nnodes = s->nnodes};
  SAFE(&s->k, k = ccn__kern_build(in));
  return k;
}

static inline bool interpret(shaped *s) {
  ccn__trap t;
  ccn__exec x = {.rt = &s->k.rt,
                 .g = s->k.g,
                 .sym = s->sym,
                 .bundle = s->bundle,
                 .arg = s->arg,
                 .result = s->result,
                 .label = "test"};
  CCN__TRY(&s->k.heap, t)
  {
    ccn__interp(&x);
    s->k.status = CCN_OK;
  }
  CCN__CATCH(&s->k.heap, t)
  { s->k.status = t.status; }
  return s->k.status == CCN_OK;
}

/* Every slot that goes out against the interpreter's results and stores (which have replaced the
 * arguments). */
static inline bool outs_equal(shaped *s, machine *m, const char *what) {
  const ccn__graph *g = s->k.g;
  for (uint32_t i = 0; i < m->k->slots.n; i++) {
    const ccn__kslot *x = &m->k->slots.at[i];
    const ccn__tensor *t = NULL;
    if (x->kind != CCN__KSLOT_OUT) continue;
    for (uint32_t p = 0; p < g->params.n; p++)
      if (x->update != CCN__NO_ID && g->params.at[p].update == x->update) t = s->arg[p];
    for (uint32_t o = 0; o < g->noutputs; o++)
      if (g->outputs[o] == x->node) t = s->result[o];
    for (uint32_t r = 0; t && r < m->k->world; r++) {
      if (!t->buf[r]) continue;
      if ((int64_t)t->buf[r]->bytes != x->bytes[r]) return printf("# %s: sizes differ\n", what), false;
      if (!same_elements((ccn__dtype)x->dtype, m->base[r][i], t->buf[r]->data, x->bytes[r], what))
        return false;
    }
  }
  return true;
}

typedef struct compiled {
  ccn__jit_code *code;
  ccn__kern_fn *fn[16];
} compiled;

static inline bool compile(const ccn__kern *k, const ccn__jit_target *t, compiled *c) {
  void *object = NULL;
  size_t size = 0;
  char why[512] = "";
  const char *reason = NULL;
  memset(c, 0, sizeof *c);
  if (plugin->compile(k, t, &object, &size, why, sizeof why))
    return printf("# not compiled: %s\n", why), false;
  c->code = ccn__jit_load(object, size, &reason);
  plugin->release(object);
  if (!c->code) return printf("# not loaded: %s\n", reason), false;
  for (uint32_t i = 0; i < k->loops.n; i++) {
    char name[16];
    snprintf(name, sizeof name, "k%u", i);
    void *at = ccn__jit_symbol(c->code, name);
    memcpy(&c->fn[i], &at, sizeof at);
  }
  return true;
}

/* Code by text: kernels of other sizes have the same. */
static inline const compiled *code_of(shaped *s, const ccn__kern *k, const ccn__jit_target *t) {
  static struct known {
    char *text;
    compiled c;
    struct known *next;
  } * all;
  ccn__text text;
  ccn__text_init(&text, &s->k.arena);
  SAFE(&s->k, {
    ccn__text_printf(&text, "%s %s\n", t->triple, t->cpu);
    ccn__kern_print_code(k, &text);
  });
  for (struct known *x = all; x; x = x->next)
    if (strcmp(x->text, text.at) == 0) return &x->c;
  struct known *x = calloc(1, sizeof *x);
  x->text = strdup(text.at);
  x->next = all;
  if (!compile(k, t, &x->c)) return NULL;
  all = x;
  return &x->c;
}

static inline void print_kernel(shaped *s, const ccn__kern *k) {
  ccn__text t;
  ccn__text_init(&t, &s->k.arena);
  SAFE(&s->k, ccn__kern_print(k, &t));
  for (const char *p = t.at; p && *p;) {
    const size_t n = strcspn(p, "\n");
    printf("# %.*s\n", (int)n, p);
    p += n + (p[n] != 0);
  }
}

/* The kernel's code against the interpreter, in place and not, in chunks and not. */
static inline bool check_code(shaped *s, const ccn__kern *k, ccn__kern_fn *const *fn, const char *what,
                              uint32_t *out_aliased) {
  static const int64_t chunk[3] = {INT64_MAX / 4, 1500, 100};
  machine m[3];
  bool good = true;
  for (uint32_t i = 0; i < 3; i++) {
    machine_open(&m[i], s, k, fn, i != 0);
    for (uint32_t r = 0; r < k->world; r++) m[i].args[r].flags = i != 1 ? CCN__KERN_STREAM : 0;
    machine_run(&m[i], chunk[i], i * 77 + 5);
  }
  if (!interpret(s)) good = printf("# %s: the interpreter failed\n", what) < 0;
  for (uint32_t i = 0; i < 3; i++) {
    good = good && outs_equal(s, &m[i], what);
    if (out_aliased) *out_aliased += m[i].aliased;
    good &= machine_close(&m[i]);
  }
  if (!good) print_kernel(s, k);
  return good;
}

static inline bool check_kernel(shaped *s, const ccn__jit_target *t, const char *what,
                                uint32_t *out_aliased) {
  ccn__kern_in in;
  const ccn__kern *k = build(s, &in);
  if (!k) return printf("# %s refused: %s\n", what, in.why), false;
  const compiled *c = code_of(s, k, t);
  return c && check_code(s, k, c->fn, what, out_aliased);
}

#endif
