/* test_orders.c: the interpreter evaluates a collective in the order that its node declares: the bits are
 * those of the algorithm of that order, run by the executor (which test_run.c compares with the
 * definition).
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"
#include "lang/interp_kit.h"

#define SUM CCN__RED_SUM
#define AVG CCN__RED_AVG

static const struct {
  ccn__order order;
  ccn__generator g;
} orders[] = {{CCN__ORDER_RANK, CCN__MAKE_pairs},         {CCN__ORDER_RANK, CCN__MAKE_twoshot},
              {CCN__ORDER_TREE, CCN__MAKE_halving},       {CCN__ORDER_RING, CCN__MAKE_ring},
              {CCN__ORDER_BINARY, CCN__MAKE_tree},        {CCN__ORDER_DOUBLE, CCN__MAKE_double},
              {CCN__ORDER_GROUPS, CCN__MAKE_hierarchical}};

/* Runs the algorithm on the node's argument; whether every rank's result has the bits of `have`. */
static bool same_as_algorithm(kit *k, const ccn__algorithm *a, const ccn__tensor *x, ccn__redop op,
                              const ccn__tensor *have) {
  const uint32_t n = a->nranks;
  const ccn__dtype t = (ccn__dtype)x->dtype;
  int64_t count[64];
  const void *in[16];
  void *out[16];
  bool good = true;
  ccn__algorithm_counts(a, x->dim[0], 1, 1, count);
  for (uint32_t r = 0; r < n; r++) {
    in[r] = x->buf[r]->data;
    out[r] = ccn__arena_alloc(&k->arena, (size_t)x->dim[0] * ccn__dtype_size(t) + 1);
  }
  const ccn__algo_data d = {t, ccn__dtype_acc(t), op, count, in, out, 7};
  good = ccn__algorithm_run(a, &d, &k->arena);
  for (uint32_t r = 0; r < n; r++)
    if (have->buf[r]) good &= memcmp(have->buf[r]->data, out[r], have->buf[r]->bytes) == 0;
  return good;
}

static bool agrees(ccn__op op, size_t o, uint32_t n, uint32_t group, ccn__dtype t, int red, int64_t extent) {
  kit k;
  char dims[24], place[8];
  const char *why;
  const uint32_t root = n - 1;
  kit_open_n(&k, (int)n);
  snprintf(dims, sizeof dims, "%lld", (long long)extent);
  snprintf(place, sizeof place, op == CCN__OP_ALLREDUCE ? "R" : op == CCN__OP_REDUCE ? "A%u" : "S0", root);
  const ccn__id x = param(&k, ty(&k, t, dims, "L"), noise, 1);
  const ccn__id y = add_n(&k, op, ty(&k, t, dims, place),
                          ATTRS(AI(RED, red), AI(OVER, 1), AI(ORDER, ccn__order_pack(orders[o].order, group)),
                                AI(DIM, 0), AI(ROOT, root)),
                          1, &x);
  returns(&k, y);
  bool good = run(&k);
  SAFE(&k, {
    const ccn__algo_want want = {.op = op, .nranks = n, .root = root, .chunks = 1, .group = group};
    const ccn__algorithm *a = ccn__algorithm_make(&k.arena, orders[o].g, &want, &why);
    good = good && a && same_as_algorithm(&k, a, k.arg[0], (ccn__redop)red, k.result[0]);
  });
  if (!good)
    printf("# %s order %s(%u) n %u %s extent %lld\n", ccn__op_table[op].name,
           ccn__order_name[orders[o].order], group, n, ccn__dtype_name(t), (long long)extent);
  kit_close(&k);
  return good;
}

static bool all_sizes(ccn__op op, size_t o, ccn__dtype t, int red) {
  static const int64_t extents[] = {0, 1, 5, 64, 2051};
  bool good = true;
  for (uint32_t n = 1; n <= 8; n++)
    for (size_t e = 0; e < CCN__COUNT(extents); e++)
      for (uint32_t group = 1; group <= n; group++) {
        const bool grouped = ccn__order_numbered(orders[o].order);
        if (n % group || (!grouped && group > 1)) continue;
        good = good && agrees(op, o, n, grouped ? group : 0, t, red, extents[e]);
      }
  return good;
}

static void test_orders(void) {
  static const ccn__op ops[] = {CCN__OP_ALLREDUCE, CCN__OP_REDUCESCATTER, CCN__OP_REDUCE};
  for (size_t i = 0; i < CCN__COUNT(ops); i++)
    for (size_t o = 0; o < CCN__COUNT(orders); o++) {
      char text[96];
      if (!ccn__generator_makes(orders[o].g, ops[i])) continue;
      snprintf(text, sizeof text, "%s in order %s: the bits of %s", ccn__op_table[ops[i]].name,
               ccn__order_name[orders[o].order], ccn__generator_table[orders[o].g].name);
      ok(all_sizes(ops[i], o, CCN__F32, SUM) && all_sizes(ops[i], o, CCN__F16, AVG), text);
    }
}

static const char *verdict(ccn__op op, int64_t order) {
  kit k;
  bool right = false;
  kit_open(&k, "4");
  const ccn__id x = param(&k, ty(&k, CCN__F32, "8", "L"), noise, 1);
  const ccn__id y =
    add_n(&k, op,
          ty(&k, CCN__F32, "8",
             op == CCN__OP_ALLREDUCE ? "R"
             : op == CCN__OP_REDUCE  ? "A0"
                                     : "S0"),
          op == CCN__OP_ALLREDUCE ? ATTRS(AI(RED, SUM), AI(OVER, 1), AI(ORDER, order))
          : op == CCN__OP_REDUCE  ? ATTRS(AI(RED, SUM), AI(OVER, 1), AI(ORDER, order), AI(ROOT, 0))
                                  : ATTRS(AI(RED, SUM), AI(OVER, 1), AI(ORDER, order), AI(DIM, 0)),
          1, &x);
  returns(&k, y);
  SAFE(&k, right = ccn__graph_verify(k.g) == NULL);
  kit_close(&k);
  return right ? "right" : "wrong";
}

static void test_verifier(void) {
  static const struct {
    ccn__op op;
    ccn__order order;
    uint32_t group;
    bool right;
  } cases[] = {{CCN__OP_ALLREDUCE, CCN__ORDER_RING, 0, true},
               {CCN__OP_ALLREDUCE, CCN__ORDER_DOUBLE, 0, true},
               {CCN__OP_ALLREDUCE, CCN__ORDER_GROUPS, 2, true},
               {CCN__OP_ALLREDUCE, CCN__ORDER_GROUPS, 0, false},
               {CCN__OP_ALLREDUCE, CCN__ORDER_RING, 2, false},
               {CCN__OP_ALLREDUCE, CCN__ORDER_COUNT, 0, false},
               {CCN__OP_REDUCESCATTER, CCN__ORDER_RING, 0, true},
               {CCN__OP_REDUCESCATTER, CCN__ORDER_DOUBLE, 0, false},
               {CCN__OP_REDUCESCATTER, CCN__ORDER_BINARY, 0, false},
               {CCN__OP_REDUCE, CCN__ORDER_BINARY, 0, true},
               {CCN__OP_REDUCE, CCN__ORDER_DOUBLE, 0, false}};
  bool good = true;
  for (size_t i = 0; i < CCN__COUNT(cases); i++) {
    const char *v = verdict(cases[i].op, ccn__order_pack(cases[i].order, cases[i].group));
    const bool fine = strcmp(v, cases[i].right ? "right" : "wrong") == 0;
    if (!fine) printf("# case %zu is %s\n", i, v);
    good &= fine;
  }
  ok(good, "the verifier knows which orders a collective can have");
}

int main(void) {
  test_orders();
  test_verifier();
  printf("1..%d\n", tests);
  return failures != 0;
}
