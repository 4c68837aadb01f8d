/* test_loops.c: the shapes of kernels: broadcasting, slices, offsets, reductions whole, by rows and by
 * tensors, several stages, and every collective that a kernel takes, on meshes of one and two axes, at sizes
 * around lanes and blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "jit_kit.h"

typedef struct program {
  const char *what, *text; /* one program, behind the mesh statement */
  int64_t extent[3][4];    /* sizes of its symbols; a first one below 0 ends the list */
} program;

#define END \
  { -1 }

static const program programs[] = {
  {"rows, a bias, a scalar",
   "program p(x: f32[B, H], b: f32[H], s: f32[B, 1], a: f32) { return (x + b) * s - a }",
   {{5, 7}, {3, 64}, {2, 1500}}},
  {"dims of one element, three dims",
   "program p(x: f16[B, S, H], y: f16[B, 1, H], z: f16[S, 1]) { return x * y + z }",
   {{3, 1, 17}, {1, 4, 33}, {2, 3, 1}}},
  {"a small value computed for a large one",
   "program p(x: f32[B, H], b: f32[H]) { return x + exp(b) * 2.0, exp(b) }",
   {{4, 40}, {1, 3}, END}},
  {"indices along a dim",
   "program p(x: i64[B, H]) { return x + iota(i64[B, H]) * 3 + iota(i64[B, H], dim: 0) }",
   {{5, 33}, {1, 1}, END}},
  {"sums of all, by rows, kept, of products",
   "program p(x: f32[B, H]) { return sum(x), sum(x, 1), max(x, 1, keep: true), "
   "prod(x * 0.999), min(x), any(x > 0.0) }",
   {{3, 40}, {2, 2500}, {7, 1}}},
  {"sums of f16 and integers",
   "program p(x: f16[N], i: i32[N], u: u8[N], b: bool[N]) { return sum(x), sum(i), prod(i), "
   "max(u), all(b), any(b) }",
   {{1023}, {1024}, {2049}}},
  {"softmax of rows", "program p(x: f32[B, H]) { return softmax(x) }", {{4, 50}, {2, 1111}, {1, 1}}},
  {"layernorm of f16", "program p(x: f16[B, S, H]) { return layernorm(x) }", {{2, 3, 70}, {1, 1, 1030}, END}},
  {"norms that decide",
   "program p(x: f32[N], y: f32[N]) { return where(norm(x) > norm(y), x, y) / (1.0 + norm(x)) }",
   {{7}, {5000}, END}},
  {"sizes as numbers", "program p(x: f32[N, M]) { return x / N + size(dp) * M }", {{4, 9}, {1, 100}, END}},
  {"a sum over a cut dim, paid",
   "program p(x: f32[N] sliced(0), y: f32[N]) { s = allreduce(sum, sum(x * slice(y)))\n return x * s, s }",
   {{5}, {1030}, {4100}}},
  {"norms of slices, of f16 too",
   "program p(x: f16[N] sliced(0), y: f32[N] sliced(0)) { return x / norm(x), y / norm(y) }",
   {{3}, {2050}, {9000}}},
  {"a sum over two cut dims of a block",
   "program p(x: f32[B, H] sliced(0)) { return allreduce(max, max(x)), allreduce(sum, sum(x)) }",
   {{5, 300}, {1, 1}, {64, 33}}},
  {"an owed sum folded on each rank",
   "program p(x: f32[N] sliced(0)) { return local(sum(x)) * 2.0, sum(x) * 3.0 }",
   {{3}, {5000}, END}},
  {"a scalar of each rank, paid",
   "program p(a: f32 local, b: f16 local) { return allreduce(sum, a) + 1.0, allreduce(avg, b), "
   "allreduce(max, a * 2.0) }",
   {{0}, END, END}},
  {"what each rank reduced of its own, paid and shifted",
   "program p(x: f32[N] local, u: u8[N] local) { s = sum(x)\n a = all(u > 1)\n"
   " return allreduce(max, s), reduce(max, a, root: 0), shift(max(x), by: 1), s, a }",
   {{1}, {7}, {3000}}},
  {"a broadcast of what leaves the kernel too",
   "program p(x: f32[N] local) { v = x * 2.0\n w = broadcast(v, root: 0)\n return w, v, w + x, v - 1.0 }",
   {{1}, {7}, {3000}}},
  {"broadcasts beside a reduction of the same values",
   "program p(x: f32[N] local) { s = reduce(sum, x, root: 0)\n v = s - 7.0\n w = s * 2.0\n"
   " return broadcast(v, root: 0), broadcast(w, root: 0), broadcast(max(s, keep: true), root: 0) }",
   {{1}, {7}, {3000}}},
  {"reduce-scatter alone, on the second dim",
   "program p(x: f32[B, H] local) { return reducescatter(sum, x, dim: 1) * 2.0 }",
   {{3, 11}, {2, 128}, {1, 1}}},
  {"all-gather of what is computed here",
   "program p(x: f32[N] sliced(0)) { y = allgather(x * 2.0)\n return y, y + 1.0, sum(y) }",
   {{1}, {1027}, {4096}}},
  {"all-gather along the second dim, in units",
   "program p(x: bf16[B, H] sliced(1, unit: 4)) { return allgather(-x), allgather(x) * 2.0 }",
   {{3, 24}, {2, 100}, END}},
  {"reduce-scatter, all-gather, all-gather",
   "program p(g: f16[N] local, p: f32[N]) { r = reducescatter(avg, g)\n q = slice(p) - 0.1 * f32(r)\n"
   " return allgather(q), allgather(f16(q)) }",
   {{1}, {63}, {3000}}},
  {"local values reduced behind a computation",
   "program p(x: f32[N] local) { return reducescatter(sum, x * x - 1.0), reducescatter(max, x) }",
   {{2}, {500}, {2048}}},
  {"shift around", "program p(x: f32[N] local) { return shift(x * 2.0, by: 1) + 1.0 }", {{1}, {100}, END}},
  {"shift with an end",
   "program p(x: i32[N] local) { y = shift(x + 1, by: 1, fill: -7)\n return y, y * 2 }",
   {{1}, {70}, END}},
  {"reduce and broadcast",
   "program p(x: f32[N] local) { r = reduce(sum, x, root: 0) * 0.5\n return broadcast(r, root: 0) }",
   {{1}, {200}, END}},
  {"random numbers of slices and of each rank",
   "program p(x: f32[B, H] sliced(1), k: i32) { return x + slice(rand(f32[B, H], seed: 3, step: k), dim: 1), "
   "randn(f32[H] local, seed: 5), dropout(x, 0.25, seed: 1, step: k) }",
   {{3, 17}, {2, 130}, END}},
  {"stores in place, and of what came in",
   "program p(x: f32[N], y: f32[N], z: f32[N]) { a = update(x, x * 2.0)\n"
   " b = update(y, z)\n return a + y }",
   {{5}, {300}, END}},
  {"old values beside new ones",
   "program p(x: f32[N], y: f32[N]) { s = sum(x)\n return update(x, y * 2.0 + s), update(y, x + 1.0) }",
   {{5}, {1300}, END}},
};

static const program two_axes[] = {
  {"two axes: blocks, and a bias that one of them cuts",
   "program p(x: f32[B, H] sliced(0) over a sliced(1) over b, y: f32[H] sliced(0) over b, z: f32[B, H]) {\n"
   " return x * y + slice(slice(z, over: a), dim: 1, over: b), allgather(x + 1.0, over: b) }",
   {{6, 10}, {5, 33}, END}},
  {"two axes: a norm of a block",
   "program p(x: f32[N] sliced(0) over a sliced(0) over b) { return x / norm(x) }",
   {{10}, {3000}, END}},
  {"two axes: all-reduce of scalars over both",
   "program p(v: f32 local) { return allreduce(sum, v, over: [a, b]) * 2.0 }",
   {{0}, END, END}},
  {"two axes: reduce-scatter over one",
   "program p(x: f32[N] local) { return reducescatter(sum, x, over: b) * 2.0, shift(x, over: a, by: 1) }",
   {{9}, {400}, END}},
};

static void check(const program *p, const char *axes, const char *mesh, bool *out) {
  ccn__jit_target t;
  char script[2048];
  (void)ccn__jit_host(&t);
  snprintf(script, sizeof script, "mesh (%s)\n%s\n", axes, p->text);
  for (uint32_t i = 0; i < 3 && p->extent[i][0] >= 0 && *out; i++) {
    shaped s;
    shaped_open(&s, script, "graph", mesh, p->extent[i], NULL, 0);
    shaped_args(&s, noise);
    shaped_group(&s, 0);
    *out = check_kernel(&s, &t, p->what, NULL);
    if (!*out)
      printf("# on mesh %s, extents %lld %lld\n", mesh, (long long)p->extent[i][0],
             (long long)p->extent[i][1]);
    shaped_close(&s);
  }
}

/* Every order of adding, by ranks and by pieces. */
static bool with_order(const char *text, const char *axes, const char *mesh, int64_t order) {
  static const int64_t extent[] = {1203};
  ccn__jit_target t;
  shaped s;
  char script[512];
  (void)ccn__jit_host(&t);
  snprintf(script, sizeof script, "mesh (%s)\n%s\n", axes, text);
  shaped_open(&s, script, "graph", mesh, extent, NULL, 0);
  for (ccn__id i = 0; i < s.k.g->nodes.n; i++) {
    const ccn__attr *a = ccn__attr_find(s.k.g->nodes.at[i].attrs, CCN__A_ORDER);
    if (a) ((ccn__attr *)(uintptr_t)a)->i = order;
  }
  shaped_args(&s, noise);
  shaped_group(&s, 0);
  const bool good = check_kernel(&s, &t, ccn__order_name[ccn__order_of(order)], NULL);
  shaped_close(&s);
  return good;
}

static void test_orders(void) {
  static const char *const mesh[] = {"1", "2", "3", "5", "8", "13"};
  static const char *const text =
    "program p(x: f16[N] local, v: f32[N] local, s: f32 local) {\n"
    " return reducescatter(avg, x) * 2.0, reducescatter(sum, v), allreduce(sum, s) }";
  static const char *const two = "program p(v: f32[N] local) { return reducescatter(sum, v, over: [a, b]) }";
  static const struct {
    ccn__order order;
    uint32_t group;
  } orders[] = {{CCN__ORDER_RANK, 0},   {CCN__ORDER_TREE, 0},   {CCN__ORDER_RING, 0}, {CCN__ORDER_GROUPS, 2},
                {CCN__ORDER_GROUPS, 3}, {CCN__ORDER_BINARY, 0}, {CCN__ORDER_ANY, 0}};
  for (size_t o = 0; o < CCN__COUNT(orders); o++) {
    char what[64];
    bool good = true;
    for (size_t m = 0; m < CCN__COUNT(mesh); m++)
      good &= with_order(text, "dp", mesh[m], ccn__order_pack(orders[o].order, orders[o].group));
    snprintf(what, sizeof what, "order %s %u", ccn__order_name[orders[o].order], orders[o].group);
    ok(good, what);
  }
  ok(with_order("program p(s: f32 local) { return allreduce(sum, s) * 2.0 }", "dp", "7", CCN__ORDER_DOUBLE),
     "order double, of a scalar");
  ok(with_order(two, "a: 2, b", "2,3", CCN__ORDER_AXIS), "order axis, over two axes");
}

/* What kernels cannot do yet, with the reason. */
static void refused(const char *what, const char *text, const char *why) {
  shaped s;
  ccn__kern_in in;
  char script[2048];
  static const int64_t extent[] = {6, 8, 10};
  snprintf(script, sizeof script, "mesh (a: 2, b)\n%s\n", text);
  shaped_open(&s, script, "graph", "2,2", extent, NULL, 0);
  shaped_group(&s, 0);
  const ccn__kern *k = build(&s, &in);
  const bool good = !k && in.why && strstr(in.why, why) && in.at != CCN__NO_ID;
  if (!good) printf("# %s, not: %s\n", k ? "made" : in.why, why);
  ok(good, what);
  shaped_close(&s);
}

static void test_refused(void) {
  refused("refused: a reduction over dims that are not the last",
          "program p(x: f32[B, H]) { return sum(x, 0) }", "reduces dims that are not the last");
  refused("refused: a reduction over a cut dim that keeps others",
          "program p(x: f32[B, H] sliced(1) over a) { return allreduce(sum, sum(x, 1), over: a) }",
          "reduces a dim that is cut, and keeps others");
  refused("refused: a whole reduction of blocks",
          "program p(x: f32[B, H] sliced(0) over a sliced(1) over b) { "
          "return allreduce(sum, sum(x), over: [a, b]) }",
          "pieces that are no runs");
  refused("refused: ops of other kinds", "program p(x: f32[B, H]) { return transpose(x) * 2.0 }",
          "is not part of kernels");
  refused("refused: a partial payment",
          "program p(x: f32[N] sliced(0) over a sliced(0) over b) { return allreduce(sum, sum(x), over: b) }",
          "owed in parts, and read outside");
}

int main(void) {
  static const char *const ranks[] = {"1", "2", "3", "4", "8", "13"}, *const meshes[] = {"1,1", "2,3", "4,2",
                                                                                         "3,4"};
  if (!open_plugin()) return skip_without_llvm("kernels of all shapes");
  for (size_t i = 0; i < CCN__COUNT(programs); i++) {
    bool good = true;
    for (size_t r = 0; r < CCN__COUNT(ranks); r++) check(&programs[i], "dp", ranks[r], &good);
    ok(good, programs[i].what);
  }
  for (size_t i = 0; i < CCN__COUNT(two_axes); i++) {
    bool good = true;
    for (size_t r = 0; r < CCN__COUNT(meshes); r++) check(&two_axes[i], "a: 2, b", meshes[r], &good);
    ok(good, two_axes[i].what);
  }
  test_orders();
  test_refused();
  return finish_tests();
}
