/* test_plan.c: plans: what they hold, and that the static check refuses every damage done to one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../jit/jit_kit.h"

#include "plan.h"

static const char adam[] = "mesh (dp)\n"
                           "program adam(g: f16[N] local, p: f32[N], m: f32[N], v: f32[N], lr: f32) {\n"
                           "  s = allreduce(sum, g)\n"
                           "  a = f32(s) / size(dp)\n"
                           "  m1 = update(m, 0.9 * m + 0.1 * a)\n"
                           "  v1 = update(v, 0.999 * v + 0.001 * a * a)\n"
                           "  return update(p, p - lr * m1 / (sqrt(v1) + 1e-8))\n"
                           "}\n"
                           "schedule zero for adam {\n"
                           "  (rs, ag) = split(s)\n"
                           "  (c, gs) = reorder(after(ag), ag)\n"
                           "  shard(updated(c))\n"
                           "  fuse(rs, c, gs)\n"
                           "}\n"
                           "let q = adam with zero\n";

static const char attention[] =
  "mesh (tp)\n"
  "program out(x: f32[B, S, H] sliced(2), w: f32[H, H] sliced(0), b: f32[H], r: f32[B, S, H], step: i32) {\n"
  "  layer = matmul(x, w)\n"
  "  y = allreduce(sum, layer)\n"
  "  return dropout(y + b, 0.1, seed: 7, step: step) + r\n"
  "}\n"
  "schedule o for out {\n"
  "  (rs, ag) = split(y, dim: 1)\n"
  "  (c, gs) = reorder(after(ag), ag)\n"
  "  f = fuse(rs, c, gs)\n"
  "  overlap(layer, f)\n"
  "}\n"
  "let q = out with o\n";

/* Temporaries that die and are used again, a store that cannot be in place, a loop, an `on`. */
static const char long_one[] = "mesh (dp)\n"
                               "program p(x: f32[N] local, t: f32[N], u: f32[N]) {\n"
                               "  a = allreduce(sum, x)\n"
                               "  b = allreduce(max, x * a)\n"
                               "  c = allreduce(sum, x * b)\n"
                               "  d = reshape(transpose(reshape(a + c, [N, 1])), [N])\n"
                               "  repeat 3 {\n"
                               "    d = allreduce(sum, x * d) * 0.5\n"
                               "  }\n"
                               "  update(t, reshape(transpose(reshape(t + b, [N, 1])), [N]) + d)\n"
                               "  update(u, t + 1)\n"
                               "  return d + u\n"
                               "}\n";

static ccn__plan *make(shaped *s) {
  ccn__plan *p = NULL;
  SAFE(&s->k, p = ccn__plan_make(&s->k.arena, s->k.g, s->sym, s->bundle));
  return p;
}

static const char *check(shaped *s, ccn__plan *p) {
  const char *wrong = NULL;
  SAFE(&s->k, wrong = ccn__plan_check(p));
  return wrong;
}

static void right(shaped *s, ccn__plan *p, const char *name) {
  const char *wrong = check(s, p);
  if (wrong) printf("# %s\n", wrong);
  ok(!wrong, name);
}

static uint32_t of_kind(const ccn__plan *p, uint8_t kind) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < p->buffers.n; b++) n += p->buffers.at[b].kind == kind;
  return n;
}

static void test_adam(void) {
  const int64_t n = 1003;
  for (uint32_t ranks = 1; ranks <= 8; ranks++) {
    shaped s;
    char mesh[8];
    snprintf(mesh, sizeof mesh, "%u", ranks);
    shaped_open(&s, adam, "scheduled", mesh, &n, NULL, 0);
    ccn__plan *p = make(&s);
    right(&s, p, "fused adam: the plan holds");
    ok(p->steps.n == 1 && p->steps.at[0].kind == CCN__STEP_KERNEL, "fused adam: one kernel");
    ok(p->arena_bytes == 0 && of_kind(p, CCN__BUFFER_ARGUMENT) == p->buffers.n,
       "fused adam: nothing but arguments");
    const int64_t slice = (n + ranks - 1) / ranks;
    ok(p->buffers.at[0].bytes == 2 * n && p->buffers.at[1].bytes == 4 * n &&
         p->buffers.at[2].bytes == 4 * slice && p->buffers.at[3].bytes == 4 * slice,
       "fused adam: m and v are slices");
    shaped_close(&s);
  }
}

/* Damage of one kind at every place; all must be found. */
static void damage(const char *script, const char *stage, const char *mesh, const int64_t *extent,
                   const char *name) {
  shaped s;
  uint32_t done = 0, missed = 0;
  char text[96];
  shaped_open(&s, script, stage, mesh, extent, NULL, 0);
  ccn__plan *p = make(&s);
  right(&s, p, name);
#define TRY(what, ...) \
  do { \
    done++; \
    if (!check(&s, p)) { \
      missed++; \
      printf("# not found: %s\n", ccn__arena_printf(&s.k.arena, __VA_ARGS__)); \
    } \
  } while (0)
  for (uint32_t i = 0; i < p->steps.n; i++) {
    ccn__step *t = &p->steps.at[i];
    for (uint32_t w = 0; w < t->nwait; w++) { /* a wait is dropped; a wait for itself */
      uint32_t *wait = (uint32_t *)(uintptr_t)t->wait, was = wait[w];
      wait[w] = i;
      TRY("wait", "step %u waits for itself", i);
      wait[w] = was;
      if (t->stream && t->kind == CCN__STEP_KERNEL) {
        const uint32_t n = t->nwait;
        t->nwait = 0;
        TRY("wait", "step %u does not wait", i);
        t->nwait = n;
      }
    }
    if (t->group) {
      const uint8_t was = t->group;
      t->group = 0;
      TRY("group", "step %u meets nobody", i);
      t->group = was;
    }
  }
  for (uint32_t b = 0; b < p->buffers.n; b++) {
    ccn__buffer *x = &p->buffers.at[b];
    const ccn__buffer was = *x;
    if (x->kind == CCN__BUFFER_ARGUMENT) continue;
    x->last = x->first ? x->first - 1 : 0; /* dies before it is written */
    if (x->last < x->first) TRY("life", "b%u dies too early", b);
    *x = was;
    x->first = x->last + 1;
    TRY("life", "b%u is born too late", b);
    *x = was;
    for (uint32_t c = 0; c < p->buffers.n; c++) { /* on top of one that lives at the same time */
      const ccn__buffer *y = &p->buffers.at[c];
      if (b == c || x->kind != CCN__BUFFER_TEMPORARY || y->kind != x->kind || y->first > x->last ||
          x->first > y->last)
        continue;
      x->offset = y->offset;
      TRY("place", "b%u over b%u", b, c);
      *x = was;
    }
  }
  for (uint32_t i = 0; i + 1 < p->steps.n; i++) { /* a step before what it reads */
    ccn__step *t = &p->steps.at[i], was = *t;
    bool feeds = false;
    for (uint32_t k = 0; k < t[1].naccess; k++)
      for (uint32_t j = 0; j < t->naccess; j++)
        feeds |= (t->access[j].mode & CCN__WRITE) && (t[1].access[k].mode & CCN__READ) &&
                 t->access[j].buffer == t[1].access[k].buffer && t->access[j].buffer != CCN__NO_BUFFER &&
                 p->buffers.at[t->access[j].buffer].kind != CCN__BUFFER_ARGUMENT;
    if (!feeds || t->kind == CCN__STEP_REPEAT || t[1].kind == CCN__STEP_REPEAT || t[1].nwait) continue;
    const bool first = p->buffers.at[t[1].access[0].buffer].kind == CCN__BUFFER_ARGUMENT;
    t[0] = t[1];
    t[1] = was;
    if (!first || t[0].epoch != t[1].epoch) TRY("order", "steps %u and %u change places", i, i + 1);
    t[1] = t[0];
    t[0] = was;
  }
#undef TRY
  snprintf(text, sizeof text, "%s: %u of %u damages found", name, done - missed, done);
  ok(done > 0 && !missed, text);
  right(&s, p, "and after all that the plan is as it was");
  shaped_close(&s);
}

/* The temporaries' arena is no larger than what lives at once. */
static void test_arena(void) {
  const int64_t n = 256;
  shaped s;
  shaped_open(&s, long_one, "graph", "4", &n, NULL, 0);
  ccn__plan *p = make(&s);
  int64_t most = 0, all = 0;
  for (uint32_t e = 0; e < p->nepochs; e++) {
    int64_t now = 0;
    for (uint32_t b = 0; b < p->buffers.n; b++)
      if (p->buffers.at[b].kind == CCN__BUFFER_TEMPORARY && p->buffers.at[b].first <= e &&
          e <= p->buffers.at[b].last)
        now += p->buffers.at[b].bytes;
    if (now > most) most = now;
  }
  for (uint32_t b = 0; b < p->buffers.n; b++)
    if (p->buffers.at[b].kind == CCN__BUFFER_TEMPORARY) all += p->buffers.at[b].bytes;
  ok(p->arena_bytes >= most && p->arena_bytes < all, "temporaries use memory again");
  shaped_close(&s);
}

static void test_text(void) {
  const int64_t e[3] = {2, 8, 16};
  shaped s;
  ccn__text t, j;
  shaped_open(&s, attention, "scheduled", "4", e, NULL, 0);
  ccn__plan *p = make(&s);
  SAFE(&s.k, {
    ccn__text_init(&t, &s.k.arena);
    ccn__text_init(&j, &s.k.arena);
    ccn__plan_print(p, &t);
    ccn__plan_print_json(p, &j);
  });
  ok(strstr(t.at, "matmul chunk 1 of 2") && strstr(t.at, "waits for 0"), "text: chunks and waits");
  ok(j.at[0] == '{' && j.at[j.n - 1] == '\n' && strstr(j.at, "\"waits\": [0]"), "JSON: one line");
  shaped_close(&s);
}

int main(void) {
  const int64_t attention_sizes[3] = {2, 32, 16}, n = 256;
  test_adam();
  damage(attention, "scheduled", "4", attention_sizes, "overlapped attention");
  damage(attention, "graph", "3", attention_sizes, "attention as written");
  damage(long_one, "graph", "4", &n, "a loop and stores");
  test_arena();
  test_text();
  printf("1..%d\n", tests);
  return failures != 0;
}
