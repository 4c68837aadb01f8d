/* test_sim.c: collective algorithms in virtual time against formulas; capacity, shared links, several
 * levels; the text of machines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms/algo_kit.h"
#include "sim.h"

#include <math.h>

#define ALPHA 3e-6
#define BANDWIDTH 25e9

static ccn__machine uniform = {
  .name = "uniform",
  .nlinks = 1,
  .link = {{.name = "link", .latency = ALPHA, .bandwidth = BANDWIDTH, .direct = true}}};

/* Time of an algorithm over n ranks, s bytes of f32 in all (of which each rank has its slice, where it has
 * slices); *sent: the most that a rank sends. */
static double timed(const ccn__machine *m, ccn__generator g, ccn__op op, uint32_t n, uint32_t chunks,
                    uint32_t group, uint32_t capacity, int64_t elements, int64_t *sent) {
  ccn__arena a;
  const char *why;
  ccn__arena_init(&a, &kit_heap);
  uint16_t *source = CCN__NEWN(&a, uint16_t, n); /* of a shift: half around */
  for (uint32_t i = 0; i < n; i++) source[i] = (uint16_t)((i + n / 2) % n);
  const ccn__algo_want want = {.op = op, .nranks = n, .chunks = chunks, .group = group, .source = source};
  ccn__algorithm *x = ccn__algorithm_make(&a, g, &want, &why);
  if (capacity) x->capacity = capacity;
  int64_t *count = CCN__NEWN(&a, int64_t, ccn__algorithm_pieces(x) + 1);
  uint32_t *world = CCN__NEWN(&a, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) world[i] = i;
  ccn__algorithm_counts(x, elements, 1, 1, count);
  ccn__collective_cost c = {0, CCN__NEWN(&a, int64_t, n), CCN__NEWN(&a, int64_t, n)};
  const ccn__collective_use use = {.a = x, .machine = m, .world = world, .count = count, .item = 4, .acc = 4};
  const bool ended = ccn__sim_algorithm(&a, &use, &c);
  *sent = 0;
  for (uint32_t i = 0; i < n; i++)
    if (c.sent[i] > *sent) *sent = c.sent[i];
  ccn__arena_free(&a);
  return ended ? c.time : -1;
}

static bool near(double x, double want, double tolerance) {
  const bool good = fabs(x - want) <= tolerance * want;
  if (!good) printf("# %.12g, not %.12g\n", x, want);
  return good;
}

static void test_formulas(void) {
  bool ring = true, halves = true, two = true, one = true, bytes = true, halving = true;
  int64_t sent;
  for (uint32_t n = 2; n <= 17; n++) {
    const int64_t elements = 1000 * (int64_t)n * 16;
    const double s = 4.0 * (double)elements, part = s / n / BANDWIDTH;
    ring = ring && near(timed(&uniform, CCN__MAKE_ring, CCN__OP_ALLREDUCE, n, 1, 0, 0, elements, &sent),
                        2 * (n - 1) * (ALPHA + part), 1e-12);
    bytes = bytes && sent == (int64_t)(2 * (n - 1) * (elements / n) * 4);
    halves = halves && near(timed(&uniform, CCN__MAKE_ring, CCN__OP_ALLGATHER, n, 1, 0, 0, elements, &sent),
                            (n - 1) * (ALPHA + part), 1e-12);
    two = two && near(timed(&uniform, CCN__MAKE_twoshot, CCN__OP_ALLREDUCE, n, 1, 0, 0, elements, &sent),
                      2 * ALPHA + 2 * (n - 1) * part, 1e-12);
    one = one && near(timed(&uniform, CCN__MAKE_oneshot, CCN__OP_ALLREDUCE, n, 1, 0, 0, elements, &sent),
                      2 * ALPHA + (n - 1) * s / BANDWIDTH, 1e-12);
    if ((n & (n - 1)) == 0)
      halving =
        halving && near(timed(&uniform, CCN__MAKE_halving, CCN__OP_ALLREDUCE, n, 1, 0, 0, elements, &sent),
                        2 * log2(n) * ALPHA + 2 * (n - 1) * part, 1e-12);
  }
  ok(ring, "a ring all-reduce takes 2(n-1)(alpha + S/(nB))");
  ok(bytes, "and sends 2(n-1)/n S");
  ok(halves, "a ring all-gather takes half of it");
  ok(two, "two-shot takes two barriers and 2(n-1)/n S");
  ok(one, "one-shot takes two barriers and (n-1) S");
  ok(halving, "halving and doubling takes 2 log2(n) latencies");
}

/* A chain in chunks is a pipeline, if its connections hold enough. */
static void test_capacity(void) {
  const uint32_t n = 4, chunks = 8;
  const int64_t elements = 8 << 20;
  const double part = 4.0 * (double)elements / chunks / BANDWIDTH;
  int64_t sent;
  const double wide = timed(&uniform, CCN__MAKE_ring, CCN__OP_BROADCAST, n, chunks, 0, 8, elements, &sent);
  const double narrow = timed(&uniform, CCN__MAKE_ring, CCN__OP_BROADCAST, n, chunks, 0, 1, elements, &sent);
  ok(near(wide, (n - 1) * (ALPHA + part) + (chunks - 1) * part, 1e-9), "a chain of chunks is a pipeline");
  ok(narrow > wide + (chunks - 1) * ALPHA, "with room for one message it waits for each to be taken");
  ok(timed(&uniform, CCN__MAKE_ring, CCN__OP_ALLREDUCE, n, 1, 0, 1, elements, &sent) < 0,
     "a ring without room does not end");
}

static void test_levels(void) {
  ccn__machine m = {.name = "two",
                    .nlinks = 2,
                    .link = {{.name = "in", .ranks = 4, .latency = 1e-6, .bandwidth = 100e9, .direct = true},
                             {.name = "out", .latency = 5e-6, .bandwidth = 10e9}}};
  const int64_t elements = 1 << 22;
  int64_t sent;
  const double ring = timed(&m, CCN__MAKE_ring, CCN__OP_ALLREDUCE, 8, 1, 0, 0, elements, &sent);
  const double levels = timed(&m, CCN__MAKE_hierarchical, CCN__OP_ALLREDUCE, 8, 1, 4, 0, elements, &sent);
  ok(levels > 0 && levels < ring, "across boxes the hierarchical one is faster than a ring");
  const double own = timed(&m, CCN__MAKE_pairs, CCN__OP_SHIFT, 8, 1, 0, 0, elements, &sent) - 5e-6;
  m.link[1].shared = true;
  const double shared = timed(&m, CCN__MAKE_pairs, CCN__OP_SHIFT, 8, 1, 0, 0, elements, &sent) - 5e-6;
  ok(near(shared / own, 4, 1e-9), "a card for four ranks is a quarter for each");
}

/* What it sends is what ccn__algorithm_traffic counts, with loads that it serves, not those it makes. */
static void one_use(ccn__algorithm *a, ccn__arena *arena, void *user) {
  bool *good = user;
  const uint32_t n = a->nranks;
  int64_t *count = CCN__NEWN(arena, int64_t, ccn__algorithm_pieces(a) + 1), all = 0, counted = 0;
  uint32_t *world = CCN__NEWN(arena, uint32_t, n);
  ccn__collective_cost c = {0, CCN__NEWN(arena, int64_t, n), CCN__NEWN(arena, int64_t, n)};
  for (uint32_t i = 0; i < n; i++) world[i] = i;
  for (uint32_t p = 0; p < ccn__algorithm_pieces(a); p++) count[p] = p % 5;
  const ccn__collective_use use = {
    .a = a, .machine = &uniform, .world = world, .count = count, .item = 2, .acc = 4};
  const bool ended = ccn__sim_algorithm(arena, &use, &c);
  for (uint32_t r = 0; r < n; r++) {
    ccn__algo_traffic t;
    ccn__algorithm_traffic(a, r, count, 2, 4, &t);
    counted += t.sent + t.loaded + t.stored;
    all += c.sent[r];
  }
  if (ended && all == counted) return;
  *good = false;
  kit_say(a, ended ? "other bytes" : "does not end");
}

static void test_all_end(void) {
  bool good = true;
  for (uint32_t n = 1; n <= 9; n++) kit_each(n, 1 + n % 3, one_use, &good);
  ok(good, "every algorithm ends and sends what it says");
}

/* ---- machines ------------------------------------------------------------------------------------ */

static const char *fault_of(ccn__arena *a, const char *text) {
  const char *why = NULL;
  ccn__machine *m = ccn__machine_read(a, text, strlen(text), &why);
  return m ? NULL : why;
}

#define MACHINE "machine m\nmemory 1e9\nbandwidth 1.5e9\nflops f32 2e9\n"

static void test_machines(void) {
  ccn__arena a;
  const char *why;
  ccn__text x, y;
  ccn__arena_init(&a, &kit_heap);
  ccn__text_init(&x, &a);
  ccn__text_init(&y, &a);
  const char text[] =
    MACHINE "about two levels # a comment\nlink in ranks 4 latency 1e-6 bandwidth 12.25e9 direct\n"
            "link out latency 5.5e-6 bandwidth 1e9 shared\n";
  ccn__machine *m = ccn__machine_read(&a, text, sizeof text - 1, &why);
  ok(m && m->bandwidth == 1.5e9 && m->flops[CCN__F16] == 2e9 && m->link[0].bandwidth == 12.25e9 &&
       m->link[1].latency == 5.5e-6 && m->link[1].shared && m->link[0].direct && !m->link[1].direct &&
       !strcmp(m->about, "two levels"),
     "a machine is read");
  if (m) ccn__machine_print(m, &x);
  ccn__machine *n = m ? ccn__machine_read(&a, x.at, x.n, &why) : NULL;
  if (n) ccn__machine_print(n, &y);
  ok(n && !strcmp(x.at, y.at), "and reads back");
  ok(m && ccn__machine_level(m, 0, 3) == 0 && ccn__machine_level(m, 3, 4) == 1, "neighbours and others");
  static const char *const faults[][2] = {
    {"", "no name"},
    {"machine a b\n", "line 1"},
    {MACHINE, "no link"},
    {MACHINE "link x latency 1\n", "bandwidth"},
    {MACHINE "link x latency -1 bandwidth 1\n", "number"},
    {MACHINE "link x ranks 4 latency 1 bandwidth 1\nlink y ranks 6 latency 1 bandwidth 1\n", "whole groups"},
    {MACHINE "link x latency 1 bandwidth 1\nlink y latency 1 bandwidth 1\n", "whole groups"},
    {MACHINE "speed 3\n", "line 5"},
    {MACHINE "memory 1e999\n", "range"},
    {MACHINE "memory 1.2.3\n", "number"},
    {"machine m\nmemory 1\nbandwidth 1\nlink x latency 1 bandwidth 1\n", "flops"},
  };
  bool good = true;
  for (size_t i = 0; i < CCN__COUNT(faults); i++) {
    const char *said = fault_of(&a, faults[i][0]);
    if (said && strstr(said, faults[i][1])) continue;
    good = false;
    printf("# %zu: %s\n", i, said ? said : "accepted");
  }
  ok(good, "mistakes are named");
  for (size_t i = 0; i < sizeof text; i++) /* whatever comes: no crash, a machine or a reason */
    for (int byte = 0; byte < 256; byte += 5) {
      char broken[sizeof text];
      memcpy(broken, text, sizeof text);
      broken[i] = (char)byte;
      const bool read = ccn__machine_read(&a, broken, byte % 2 ? i : sizeof text, &why) != NULL;
      good = good && read == !why;
    }
  ok(good, "anything is a machine or has a reason");
  ccn__arena_free(&a);
}

static void body(void) {
  test_formulas();
  test_capacity();
  test_levels();
  test_all_end();
  test_machines();
}

int main(void) { return kit_main(body); }
