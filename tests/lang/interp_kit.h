/* interp_kit.h: what the tests of the interpreter share: graphs and types from a few words, arguments cut into their
 * pieces, runs (always twice: shared, and unshared with equal bits), and a host that counts and refuses memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_TESTS_INTERP_KIT_H
#define CCN_TESTS_INTERP_KIT_H

#include "interp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

/* ---- a host --------------------------------------------------------------------------------------------------- */

typedef struct host {
  size_t blocks, requests, fail_at;
} host;

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  host *h = user;
  (void)old_size;
  if (!new_size) {
    h->blocks -= p != NULL;
    free(p);
    return NULL;
  }
  if (++h->requests == h->fail_at) return NULL;
  h->blocks++;
  return aligned_alloc(align, (new_size + align - 1) / align * align);
}

/* ---- one small world: a runtime and a graph --------------------------------------------------------------------- */

enum { MAX_ARGS = 4, MAX_OUT = 8 };

typedef struct kit {
  host host;
  ccn__heap heap;
  ccn__arena arena, diag_arena;
  ccn__names names;
  ccn__diags diags;
  ccn_options options;
  ccn__rt rt;
  ccn__graph *g;
  ccn__tensor *arg[MAX_ARGS], *result[MAX_OUT];
  ccn__members *bundle[2];
  int64_t sym[8];
  ccn__id out[MAX_OUT];
  ccn_status status; /* of the last run */
} kit;

/* sizes: "4", "2,3", "" */
static void kit_open(kit *k, const char *sizes) {
  static const char *const axis[] = {"a", "b", "c"};
  memset(k, 0, sizeof *k);
  k->heap = (ccn__heap){.alloc = host_alloc, .user = &k->host};
  ccn__arena_init(&k->arena, &k->heap);
  ccn__arena_init(&k->diag_arena, &k->heap);
  ccn__names_init(&k->names, &k->arena);
  k->diags = (ccn__diags){.arena = &k->diag_arena, .limit = 100};
  ccn__rt_init(&k->rt, &k->heap, &k->arena, &k->names, &k->diags, &k->options);
  for (const char *s = sizes; *s; s += strcspn(s, ","), s += *s == ',') {
    k->rt.mesh.name[k->rt.mesh.naxes] = axis[k->rt.mesh.naxes];
    k->rt.mesh.size[k->rt.mesh.naxes++] = atoi(s);
  }
  k->rt.world = ccn__mesh_world(&k->rt.mesh);
  ccn__trap t;
  CCN__TRY(&k->heap, t)
  { k->g = ccn__graph_new(&k->arena, &k->names, "test", &k->rt.mesh); }
  CCN__CATCH(&k->heap, t)
  exit(3);
}

static inline void kit_open_n(kit *k, int n) { /* one axis of n ranks */
  char size[16];
  snprintf(size, sizeof size, "%d", n);
  kit_open(k, size);
}

static void kit_close(kit *k) {
  ccn__rt_free(&k->rt);
  ccn__arena_free(&k->arena);
  ccn__arena_free(&k->diag_arena);
  if (k->host.blocks || k->heap.live) {
    printf("# leak of %zu blocks\n", k->host.blocks);
    failures++;
  }
}

/* Everything that allocates runs under a trap; in tests a throw there is the end. */
#define SAFE(k, ...) \
  do { \
    ccn__trap safe_trap; \
    CCN__TRY(&(k)->heap, safe_trap) \
    { __VA_ARGS__; } \
    CCN__CATCH(&(k)->heap, safe_trap) \
    { \
      printf("# thrown at %s:%d\n", __FILE__, __LINE__); \
      exit(3); \
    } \
  } while (0)

static inline const ccn__dim *dim_of(kit *k, int64_t v) {
  const ccn__dim *volatile d = NULL;
  SAFE(k, d = ccn__dim_const(&k->arena, v));
  return d;
}

static inline const ccn__lit *lit_of(kit *k, int64_t v) {
  const ccn__lit *volatile l = NULL;
  SAFE(k, l = ccn__lit_int(&k->arena, v));
  return l;
}

static inline const ccn__lit *lit_float(kit *k, double v) {
  const ccn__lit *volatile l = NULL;
  SAFE(k, l = ccn__lit_float(&k->arena, v));
  return l;
}

/* ty(k, CCN__F32, "5,7", "S0u2 R"): places in order of the axes: R, S<dim>[u<unit>], L, P<redop number>, A<coord> */
static inline ccn__type ty(kit *k, ccn__dtype t, const char *dims, const char *places) {
  ccn__type r = {.dtype = (uint8_t)t, .naxes = (uint8_t)k->rt.mesh.naxes};
  ccn__trap trap;
  CCN__TRY(&k->heap, trap)
  {
    for (const char *s = dims; *s; s += strcspn(s, ","), s += *s == ',')
      r.dim[r.rank++] = ccn__dim_const(&k->arena, atoll(s));
    uint32_t a = 0;
    for (const char *s = places; *s;) {
      ccn__place *p = &r.place[a++];
      const char *u = strchr(s, 'u');
      const size_t n = strcspn(s, " ");
      if (*s == 'S') {
        p->kind = CCN__SLICED;
        p->dim = (uint16_t)atoi(s + 1);
        if (u && u < s + n) p->unit = ccn__dim_const(&k->arena, atoi(u + 1));
      }
      if (*s == 'L') p->kind = CCN__LOCAL;
      if (*s == 'P') {
        p->kind = CCN__PARTIAL;
        p->op = (uint8_t)atoi(s + 1);
      }
      if (*s == 'A') {
        p->kind = CCN__AT;
        p->coord = atoi(s + 1);
      }
      s += n;
      s += strspn(s, " ");
    }
  }
  CCN__CATCH(&k->heap, trap)
  exit(3);
  return r;
}

#define ATTRS(...) \
  ((ccn__attrs){(const ccn__attr[]){__VA_ARGS__}, sizeof((ccn__attr[]){__VA_ARGS__}) / sizeof(ccn__attr)})
#define AI(k_, v_) \
  { .key = CCN__A_##k_, .i = (v_) }
#define NONE ((ccn__attrs){NULL, 0})

static uint32_t region; /* where add puts nodes */

static ccn__id add_n(kit *k, ccn__op op, ccn__type t, ccn__attrs attrs, uint32_t n, const ccn__id *in) {
  ccn__id id = 0;
  ccn__trap trap;
  CCN__TRY(&k->heap, trap)
  { id = ccn__graph_add(k->g, op, in, n, &t, attrs, (ccn__span){0}, region); }
  CCN__CATCH(&k->heap, trap)
  exit(3);
  return id;
}
#define add(k, op, t, attrs, ...) \
  add_n(k, CCN__OP_##op, t, attrs, sizeof((ccn__id[]){__VA_ARGS__}) / sizeof(ccn__id), \
        (ccn__id[]){__VA_ARGS__})
#define add0(k, op, t, attrs) add_n(k, CCN__OP_##op, t, attrs, 0, NULL)

static inline void returns(kit *k, ccn__id id) {
  k->out[k->g->noutputs++] = id;
  k->g->outputs = k->out;
}

/* The bytes of element `i` (global, row-major) as the rank sees it. */
typedef void make_fn(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt);

static inline uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
/* Floats with rounding in every sum, positive and negative; integers of all bits. */
static inline void noise(void *out, ccn__dtype t, uint32_t rank, int64_t i, int salt) {
  const uint64_t m = mix((uint64_t)i * 0x9e3779b97f4a7c15u + rank * 977u + (uint64_t)salt * 31337u + 1);
  if (ccn__dtype_is_float(t))
    ccn__store_f64(t, out, ((double)(m >> 11) * 0x1p-52 - 1) * (double)(1 << (m & 7)));
  else ccn__store_i64(t, out, t == CCN__BOOL ? (int64_t)(m >> 9 & 1) : (int64_t)m);
}

static int64_t value_dim(const ccn__type *t, uint32_t d) {
  int64_t v = 0;
  (void)ccn__dim_eval(t->dim[d], NULL, &v);
  return v;
}

static ccn__cplace concrete(const ccn__place *p) {
  ccn__cplace c = {.kind = p->kind, .op = p->op, .dim = p->dim, .coord = p->coord, .unit = 1};
  if (p->unit) (void)ccn__dim_eval(p->unit, NULL, &c.unit);
  return c;
}

static int64_t global_of(const ccn__tensor *t, const ccn__box *b, int64_t i) {
  int64_t at[CCN__MAX_RANK], g = 0;
  for (uint32_t d = t->rank; d-- > 0;) {
    at[d] = b->start[d] + i % b->extent[d];
    i /= b->extent[d];
  }
  for (uint32_t d = 0; d < t->rank; d++) g = g * t->dim[d] + at[d];
  return g;
}

/* A parameter and its argument; what is local or owed differs by rank, the rest does not. */
static inline ccn__id param(kit *k, ccn__type t, make_fn *make, int salt) {
  const ccn__id id = add0(k, PARAM, t, ATTRS(AI(NUMBER, k->g->params.n)));
  const size_t item = ccn__dtype_size((ccn__dtype)t.dtype);
  SAFE(k, {
    ccn__tensor *x = ccn__tensor_new(&k->rt, (ccn__dtype)t.dtype, t.rank);
    for (uint32_t d = 0; d < t.rank; d++) x->dim[d] = value_dim(&t, d);
    bool local = false;
    for (uint32_t a = 0; a < t.naxes; a++) {
      x->place[a] = concrete(&t.place[a]);
      local |= t.place[a].kind == CCN__LOCAL || t.place[a].kind == CCN__PARTIAL;
    }
    for (uint32_t r = 0; r < k->rt.world; r++) {
      ccn__box b;
      if (!ccn__rank_has(&k->rt.mesh, r, x->place)) continue;
      ccn__box_of(&k->rt.mesh, r, x->rank, x->dim, x->place, &b);
      x->buf[r] = ccn__buf_new(&k->rt.pool, (size_t)b.elements * item);
      const uint32_t who = local ? ccn__rank_twin(&k->rt.mesh, r, x->place) : 0;
      for (int64_t i = 0; i < b.elements; i++)
        make((char *)x->buf[r]->data + (size_t)i * item, (ccn__dtype)t.dtype, who, global_of(x, &b, i), salt);
    }
    k->arg[k->g->params.n] = x;
    *CCN__PUSH(&k->arena, &k->g->params) = (ccn__param){id, CCN__NO_ID};
  });
  return id;
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

static void run_once(kit *k, bool unshared) {
  ccn__trap t;
  ccn__exec x = {.rt = &k->rt,
                 .g = k->g,
                 .sym = k->sym,
                 .bundle = k->bundle,
                 .arg = k->arg,
                 .result = k->result,
                 .label = "test",
                 .unshared = unshared};
  CCN__TRY(&k->heap, t)
  {
    ccn__interp(&x);
    k->status = CCN_OK;
  }
  CCN__CATCH(&k->heap, t)
  { k->status = t.status; }
}

static bool same_pieces(const ccn__tensor *x, const ccn__tensor *y) {
  for (uint32_t r = 0; r < x->world; r++) {
    if (!x->buf[r] != !y->buf[r]) return false;
    if (x->buf[r] &&
        (x->buf[r]->bytes != y->buf[r]->bytes || memcmp(x->buf[r]->data, y->buf[r]->data, x->buf[r]->bytes)))
      return false;
  }
  return true;
}

/* Both ways; false if one fails or the bits differ. */
static inline bool run(kit *k) {
  ccn__tensor *first[MAX_OUT];
  run_once(k, true);
  if (k->status) {
    printf("# run failed: %d %s\n", k->status, k->diags.first ? k->diags.first->message : "");
    return false;
  }
  memcpy(first, k->result, sizeof first);
  run_once(k, false);
  bool good = k->status == CCN_OK;
  for (uint32_t i = 0; good && i < k->g->noutputs; i++) good = same_pieces(first[i], k->result[i]);
  if (!good) printf("# shared and unshared differ\n");
  return good;
}

/* The global value, from whichever ranks hold it; free it. Owed and local values: of rank `of`. */
static inline char *whole(kit *k, const ccn__tensor *t) {
  const size_t item = ccn__dtype_size((ccn__dtype)t->dtype);
  int64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dim[d];
  char *out = malloc((size_t)n * item + 1);
  memset(out, 0x77, (size_t)n * item + 1);
  for (uint32_t r = 0; r < k->rt.world; r++) {
    ccn__box b;
    if (!ccn__rank_has(&k->rt.mesh, r, t->place)) continue;
    ccn__box_of(&k->rt.mesh, r, t->rank, t->dim, t->place, &b);
    for (int64_t i = 0; i < b.elements; i++)
      memcpy(out + (size_t)global_of(t, &b, i) * item, (const char *)t->buf[r]->data + (size_t)i * item,
             item);
  }
  return out;
}

static inline double at(const ccn__tensor *t, uint32_t rank, int64_t i) {
  return ccn__load_f64((ccn__dtype)t->dtype,
                       (const char *)t->buf[rank]->data + (size_t)i * ccn__dtype_size((ccn__dtype)t->dtype));
}

/* Whether two tensors have the same global bytes. */
static inline bool same_whole(kit *k, const ccn__tensor *x, kit *l, const ccn__tensor *y) {
  size_t n = ccn__dtype_size((ccn__dtype)x->dtype);
  if (x->dtype != y->dtype || x->rank != y->rank) return false;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (x->dim[d] != y->dim[d]) return false;
    n *= (size_t)x->dim[d];
  }
  char *a = whole(k, x), *b = whole(l, y);
  const bool same = memcmp(a, b, n) == 0;
  free(a);
  free(b);
  return same;
}

static inline int finish_tests(void) {
  printf("1..%d\n", tests);
  return failures != 0;
}

#endif
