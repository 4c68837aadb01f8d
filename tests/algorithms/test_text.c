/* test_text.c: both text forms read back exactly; readers and validator survive anything.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algo_kit.h"

static bool same(const ccn__algorithm *a, const ccn__algorithm *b) {
  bool good = a->op == b->op && a->nranks == b->nranks && a->root == b->root && a->slices == b->slices &&
              a->chunks == b->chunks && a->equal == b->equal && a->inplace == b->inplace &&
              a->protocol == b->protocol && a->capacity == b->capacity && a->min_bytes == b->min_bytes &&
              a->max_bytes == b->max_bytes && a->order == b->order && !a->merges == !b->merges &&
              !a->source == !b->source && !strcmp(a->name, b->name);
  if (good && a->merges)
    good = !memcmp(a->merges, b->merges, (size_t)a->slices * (a->nranks - 1) * sizeof *a->merges);
  if (good && a->source) good = !memcmp(a->source, b->source, a->nranks * sizeof *a->source);
  for (uint32_t r = 0; good && r < a->nranks; r++) {
    const ccn__algo_rank *x = &a->rank[r], *y = &b->rank[r];
    good = x->scratch.n == y->scratch.n && x->channels.n == y->channels.n;
    for (uint32_t i = 0; good && i < x->scratch.n; i++)
      good =
        x->scratch.at[i].piece == y->scratch.at[i].piece && x->scratch.at[i].width == y->scratch.at[i].width;
    for (uint32_t c = 0; good && c < x->channels.n; c++) {
      const ccn__algo_channel *v = &x->channels.at[c], *w = &y->channels.at[c];
      good = v->link == w->link && v->steps.n == w->steps.n &&
             (!v->steps.n || !memcmp(v->steps.at, w->steps.at, v->steps.n * sizeof *v->steps.at));
    }
  }
  return good;
}

static void round_trip(ccn__algorithm *a, ccn__arena *arena, void *user) {
  bool *good = user;
  const char *why = NULL;
  ccn__text text, json;
  ccn__text_init(&text, arena);
  ccn__text_init(&json, arena);
  ccn__algorithm_print(a, &text);
  ccn__algorithm_print_json(a, &json);
  const ccn__algorithm *b = ccn__algorithm_read(arena, text.at, text.n, &why);
  bool fine = b && same(a, b);
  const ccn__algorithm *c = fine ? ccn__algorithm_read_json(arena, json.at, json.n, &why) : NULL;
  fine = c && same(a, c);
  if (!fine && *good) kit_say(a, why ? why : "differs");
  *good &= fine;
}

static void test_round_trip(void) {
  bool good = true;
  for (uint32_t n = 1; n <= 9; n++) kit_each(n, 1 + n % 3, round_trip, &good);
  ok(good, "text and JSON of every algorithm read back the same");
}

static ccn__algorithm *odd_one(ccn__arena *arena) {
  const char *why;
  static const ccn__merge merges[4] = {{1, 0}, {1, 2}, {2, 1}, {0, 2}};
  ccn__algorithm *a = ccn__algorithm_make(
    arena, CCN__MAKE_hierarchical,
    &(ccn__algo_want){.op = CCN__OP_ALLREDUCE, .nranks = 3, .chunks = 2, .group = 3}, &why);
  a->name = "a \"b\"\\ c";
  a->slices = 2;
  a->equal = a->inplace = true;
  a->protocol = CCN__LL128;
  a->min_bytes = 1024;
  a->max_bytes = (int64_t)1 << 40;
  a->merges = merges;
  ccn__algo_step *s = ccn__algorithm_step(a, 0, 0, CCN__PRIM_REDUCE);
  s->from = 1;
  s->to = 2;
  s->count = 3;
  s->src_stride = 5;
  s->dst_stride = 65535;
  s->src = 4000000000u;
  s->flags = CCN__ALGO_FINISH | CCN__ALGO_SWAP;
  s->after_channel = 1;
  s->after_step = 70000;
  ccn__algorithm_step(a, 0, 0, CCN__PRIM_NOP)->after_channel = 0;
  return a;
}

static void test_fields(void) {
  bool good = true;
  ccn__arena arena;
  ccn__arena_init(&arena, &kit_heap);
  round_trip(odd_one(&arena), &arena, &good);
  ok(good, "every field reads back");
  ccn__arena_free(&arena);
}

static void fails(const char *name, const char *text, const char *words) {
  ccn__arena arena;
  const char *why = "";
  ccn__arena_init(&arena, &kit_heap);
  const bool json = text[0] == '{';
  const ccn__algorithm *a = json ? ccn__algorithm_read_json(&arena, text, strlen(text), &why)
                                 : ccn__algorithm_read(&arena, text, strlen(text), &why);
  const bool good = !a && why && strstr(why, words);
  if (!good) printf("# %s\n", a ? "accepted" : why ? why : "no reason");
  ok(good, name);
  ccn__arena_free(&arena);
}

#define HEAD \
  "algorithm \"x\" allreduce {\nranks 2\nslices 1\nchunks 1\nprotocol simple\ncapacity 2\norder rank\n"

static void test_errors(void) {
  fails("nothing", "", "line 1: algorithm expected");
  fails("a collective that is none", "algorithm \"x\" matmul {",
        "line 1: a collective expected, not `matmul`");
  fails("no ranks", "algorithm \"x\" allreduce { ranks 0 ", "at least one rank");
  fails("ranks out of order", HEAD "rank 1 { } rank 0 { } }", "line 8: the ranks in order");
  fails("an unknown primitive", HEAD "rank 0 {\nchannel link 0 {\nsned in[0] to 1",
        "line 10: a primitive expected, not `sned`");
  fails("no peer", HEAD "rank 0 { channel link 0 { send in[0]\n} } rank 1 { } }",
        "line 9: to expected, not `}`");
  fails("different lengths", HEAD "rank 0 { channel link 0 { copy out[0:2] = in[0:3] } } rank 1 { } }",
        "as many chunks as on the other side");
  fails("an empty range", HEAD "rank 0 { channel link 0 { copy out[2:2] = in[0] } } rank 1 { } }",
        "[first:end]");
  fails("something behind", HEAD "rank 0 { } rank 1 { } } rank", "the end expected, not `rank`");
  fails(
    "groups without a number",
    "algorithm \"x\" allreduce {\nranks 2\nslices 1\nchunks 1\nprotocol simple\ncapacity 2\norder groups\n",
    "( expected");
  fails("JSON that is none", "{\"name\"", "");
  fails("JSON without programs", "{\"collective\": \"allreduce\", \"ranks\": 2}", "missing");
  fails("an unknown member", "{\"colective\": \"allreduce\"}", "an unknown member of an algorithm");
  fails("too few programs", "{\"collective\": \"allreduce\", \"ranks\": 2, \"programs\": [{}]}", "too short");
}

static uint64_t state = 1;
static uint64_t draw(void) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static void mutate(char *text, size_t n) {
  static const char some[] = "0123456789 {}[]:@.,=\"wif";
  for (uint64_t k = draw() % 4 + 1; k--;) text[draw() % n] = some[draw() % (sizeof some - 1)];
}

/* Reads and checks a damaged text in little memory; whatever comes out, nothing breaks. */
static void attack(const ccn__text *text, bool json, uint32_t *out_read) {
  ccn__arena arena;
  ccn__trap t;
  ccn__arena_init(&arena, &kit_heap);
  CCN__TRY(&kit_heap, t)
  {
    const char *why;
    ccn__algo_fault fault;
    char *copy = ccn__arena_strndup(&arena, text->at, text->n);
    mutate(copy, text->n);
    ccn__algorithm *a = json ? ccn__algorithm_read_json(&arena, copy, text->n, &why)
                             : ccn__algorithm_read(&arena, copy, text->n, &why);
    if (a) {
      ++*out_read;
      (void)ccn__algorithm_check(a, &arena, &fault);
    }
  }
  CCN__CATCH(&kit_heap, t)
  {}
  ccn__arena_free(&arena);
}

static void attack_both(ccn__algorithm *a, ccn__arena *arena, void *user) {
  ccn__text text, json;
  ccn__text_init(&text, arena);
  ccn__text_init(&json, arena);
  ccn__algorithm_print(a, &text);
  ccn__algorithm_print_json(a, &json);
  for (int i = 0; i < 60; i++) {
    attack(&text, false, user);
    attack(&json, true, user);
  }
}

static void test_hostile(void) {
  uint32_t read = 0;
  kit_heap.limit = kit_heap.live + ((size_t)64 << 20);
  for (uint32_t n = 1; n <= 4; n++) kit_each(n, 1, attack_both, &read);
  kit_heap.limit = 0;
  printf("# %u of the damaged ones could be read\n", read);
  ok(read > 100, "damaged texts are read or refused, and checked");
}

static void test_picture(void) {
  ccn__arena arena;
  const char *why;
  ccn__text t;
  ccn__arena_init(&arena, &kit_heap);
  ccn__text_init(&t, &arena);
  ccn__algorithm_picture(
    ccn__algorithm_make(&arena, CCN__MAKE_ring,
                        &(ccn__algo_want){.op = CCN__OP_REDUCESCATTER, .nranks = 3, .chunks = 1}, &why),
    &t);
  static const char want[] = "channel 0    rank 0        rank 1        rank 2\n"
                             "          0  in2 >1        in0 >2        in1 >0\n"
                             "          1  2> +in1 >1    0> +in2 >2    1> +in0 >0\n"
                             "          2  2> out0=+in0  0> out0=+in1  1> out0=+in2\n";
  ok(!strcmp(t.at, want), "a ring as a table");
  if (strcmp(t.at, want)) printf("%s", t.at);
  ccn__arena_free(&arena);
}

static void body(void) {
  test_round_trip();
  test_fields();
  test_errors();
  test_hostile();
  test_picture();
}

int main(void) { return kit_main(body); }
