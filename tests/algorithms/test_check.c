/* test_check.c: the validator accepts what every generator makes, and refuses what was damaged, saying where.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algo_kit.h"

/* ---- what generators make -------------------------------------------------------------------- */

static void accept_one(ccn__algorithm *a, ccn__arena *arena, void *user) {
  bool *good = user;
  ccn__algo_fault fault;
  if (ccn__algorithm_check(a, arena, &fault)) return;
  if (*good) kit_say(a, fault.text);
  *good = false;
}

static void test_accepts(void) {
  char text[64];
  for (uint32_t n = 1; n <= 17; n++) {
    bool good = true;
    for (uint32_t k = 1; k <= 3; k++) kit_each(n, k, accept_one, &good);
    snprintf(text, sizeof text, "every algorithm of every collective, %u ranks", n);
    ok(good, text);
  }
  static const uint32_t more[] = {23, 32, 48, 63, 64};
  for (size_t i = 0; i < CCN__COUNT(more); i++) {
    bool good = true;
    kit_each(more[i], 1, accept_one, &good);
    snprintf(text, sizeof text, "every algorithm of every collective, %u ranks", more[i]);
    ok(good, text);
  }
}

/* ---- damage ---------------------------------------------------------------------------------- */

typedef enum damage {
  PEER,
  OFFSET,
  DROP,
  DEPENDENCY,
  BARRIER,
  SWAPPED,
  WIDTH,
  UNFINISHED,
  BUFFER,
  DAMAGES
} damage;
static const char *const damage_name[DAMAGES] = {
  "peer", "offset", "dropped step", "dependency", "barrier", "operands", "width", "unfinished", "buffer"};

static void drop(ccn__algorithm *a, uint32_t rank, uint32_t channel, uint32_t i) {
  ccn__algo_channel *c = &a->rank[rank].channels.at[channel];
  for (uint32_t k = i + 1; k < c->steps.n; k++) c->steps.at[k - 1] = c->steps.at[k];
  c->steps.n--;
  for (uint32_t d = 0; d < a->rank[rank].channels.n; d++)
    for (uint32_t k = 0; k < a->rank[rank].channels.at[d].steps.n;
         k++) { /* who waits for later steps still does */
      ccn__algo_step *s = &a->rank[rank].channels.at[d].steps.at[k];
      if (s->after_channel == channel && s->after_step > i) s->after_step--;
      else if (s->after_channel == channel && s->after_step == i) s->after_channel = CCN__NO_CHANNEL;
    }
}

static uint16_t next_peer(const ccn__algorithm *a, uint32_t rank, uint16_t peer) {
  uint32_t p = (peer + 1u) % a->nranks;
  if (p == rank) p = (p + 1) % a->nranks;
  return (uint16_t)p;
}

/* False: the step has nothing to be damaged so. */
static bool hurt(ccn__algorithm *a, damage d, uint32_t rank, uint32_t channel, uint32_t i) {
  ccn__algo_step *s = &a->rank[rank].channels.at[channel].steps.at[i];
  const uint8_t does = ccn__prim_table[s->prim].does;
  switch (d) {
  case PEER:
    if (s->from != CCN__NOBODY) s->from = next_peer(a, rank, s->from);
    else if (s->to != CCN__NOBODY) s->to = next_peer(a, rank, s->to);
    else return false;
    return a->nranks > 2;
  case OFFSET:
    if (!(does & (CCN__DOES_SRC | CCN__DOES_DST))) return false;
    if (does & CCN__DOES_SRC) s->src++;
    else s->dst++;
    return true;
  case DROP:
    if (s->prim == CCN__PRIM_BARRIER) return false;
    drop(a, rank, channel, i);
    return true;
  case DEPENDENCY:
    if (s->after_channel == CCN__NO_CHANNEL) return false;
    s->after_channel = CCN__NO_CHANNEL;
    return true;
  case BARRIER: /* on all ranks, so that nobody is stuck */
    if (s->prim != CCN__PRIM_BARRIER || rank) return false;
    for (uint32_t r = 0; r < a->nranks; r++) {
      ccn__algo_channel *c = &a->rank[r].channels.at[channel];
      drop(a, r, channel, i == 0 ? 0 : c->steps.n - 1);
    }
    return true;
  case SWAPPED:
    if (!ccn__prim_combines((ccn__prim)s->prim)) return false;
    s->flags ^= CCN__ALGO_SWAP;
    return true;
  case WIDTH:
    if (!(does & CCN__DOES_SEND)) return false;
    s->flags ^= CCN__ALGO_TO_WIDE;
    return true;
  case UNFINISHED:
    if (!(s->flags & CCN__ALGO_FINISH)) return false;
    s->flags ^= CCN__ALGO_FINISH;
    return true;
  default:
    if (!(does & CCN__DOES_DST) || s->dst_buf != CCN__BUF_OUT) return false;
    s->dst_buf = CCN__BUF_IN;
    return true;
  }
}

typedef struct tally {
  uint32_t done[DAMAGES], missed[DAMAGES], placeless;
} tally;

/* Whether a step writes what it writes to no purpose: a copy of a broadcast's root to itself in place and
 * the like do not occur here, so every damage must be seen. */
static void damage_one(ccn__algorithm *a, ccn__arena *arena, void *user) {
  tally *t = user;
  for (int d = 0; d < DAMAGES; d++)
    for (uint32_t r = 0; r < a->nranks; r++)
      for (uint32_t c = 0; c < a->rank[r].channels.n; c++)
        for (uint32_t i = 0; i < a->rank[r].channels.at[c].steps.n; i++) {
          ccn__algo_fault fault;
          ccn__arena room;
          const char *why;
          ccn__arena_init(&room, &kit_heap);
          ccn__text text;
          ccn__text_init(&text, &room);
          ccn__algorithm_print(a, &text);
          ccn__algorithm *b = ccn__algorithm_read(&room, text.at, text.n, &why);
          if (b && hurt(b, (damage)d, r, c, i)) {
            t->done[d]++;
            if (ccn__algorithm_check(b, &room, &fault)) {
              if (!t->missed[d]++) {
                kit_say(a, damage_name[d]);
                printf("# rank %u channel %u step %u\n", r, c, i);
              }
            } else if (!fault.text || !*fault.text || fault.rank >= a->nranks ||
                       (fault.chunk == CCN__NO_CHANNEL && fault.kind != CCN__FAULT_FORM &&
                        !strstr(fault.text, "barrier"))) {
              if (!t->placeless++) printf("# no place: %s\n", fault.text);
            }
          }
          ccn__arena_free(&room);
        }
  (void)arena;
}

static void test_damage(void) {
  tally t = {{0}, {0}, 0};
  static const uint32_t sizes[] = {2, 3, 4, 5, 6};
  for (size_t i = 0; i < CCN__COUNT(sizes); i++) kit_each(sizes[i], sizes[i] == 3 ? 2 : 1, damage_one, &t);
  for (int d = 0; d < DAMAGES; d++) {
    char text[80];
    snprintf(text, sizeof text, "each of %u seeded defects is refused: %s", t.done[d], damage_name[d]);
    ok(t.done[d] > 0 && !t.missed[d], text);
  }
  ok(!t.placeless, "each refusal names a rank and a chunk, or the cycle");
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* Checks a text; its refusal must be of this kind and hold these words; kind NONE: it must be accepted. */
static void says(const char *name, const char *text, ccn__algo_fault_kind kind, uint32_t rank, uint32_t chunk,
                 const char *words) {
  ccn__arena arena;
  ccn__algo_fault fault = {CCN__FAULT_NONE, 0, 0, 0, 0, ""};
  const char *why = "";
  ccn__arena_init(&arena, &kit_heap);
  ccn__algorithm *a = ccn__algorithm_read(&arena, text, strlen(text), &why);
  bool good = a && ccn__algorithm_check(a, &arena, &fault) == (kind == CCN__FAULT_NONE) && fault.kind == kind;
  if (good && kind != CCN__FAULT_NONE)
    good = strstr(fault.text, words) && fault.rank == rank && fault.chunk == chunk;
  if (!good)
    printf("# %s kind %d rank %u chunk %u\n", a ? fault.text : why, fault.kind, fault.rank, fault.chunk);
  ok(good, name);
  ccn__arena_free(&arena);
}

#define HEAD(op, n, more, slices, order) \
  "algorithm \"x\" " op " { ranks " n " " more " slices " slices \
  " chunks 1 protocol simple capacity 2 order " order "\n"
#define BROADCAST(n) HEAD("broadcast", n, "root 0", "1", "rank")
#define FIRST3(a, b, c) \
  "rank 0 { scratch 0 register channel link 0 { barrier copy scratch[0] = " a " reduce scratch[0] = " b \
  " reduce scratch[0] = " c " finish copy out[0] = scratch[0] barrier } }" \
  "rank 1 { scratch 0 register channel link 0 { barrier copy scratch[0] = in[0]@0 reduce scratch[0] = in[0]" \
  " reduce scratch[0] = in[0]@2 finish copy out[0] = scratch[0] barrier } }" \
  "rank 2 { scratch 0 register channel link 0 { barrier copy scratch[0] = in[0]@0 reduce scratch[0] = in[0]@1" \
  " reduce scratch[0] = in[0] finish copy out[0] = scratch[0] barrier } } }"

static void test_values(void) {
  says("nothing written", HEAD("allreduce", "1", "", "1", "rank") "rank 0 { channel link 0 { } } }",
       CCN__FAULT_RESULT, 0, 0, "out[0]: nothing was written there");
  says("not finished",
       HEAD("allreduce", "1", "", "1", "rank") "rank 0 { channel link 0 { copy out[0] = in[0] } } }",
       CCN__FAULT_RESULT, 0, 0, "was not finished");
  says("finished twice",
       HEAD("allreduce", "1", "", "1",
            "rank") "rank 0 { channel link 0 { copy out[0] = in[0] finish copy out[0] = out[0] finish } } }",
       CCN__FAULT_VALUE, 0, 0, "finishes what is no sum");
  says("an undefined read",
       HEAD("allreduce", "1", "", "1",
            "rank") "rank 0 { scratch 0 channel link 0 { copy out[0] = scratch[0] finish } } }",
       CCN__FAULT_VALUE, 0, 0, "reads scratch[0] of rank 0 before anything is there");
  says("in rank order", HEAD("allreduce", "3", "", "1", "rank") FIRST3("in[0]", "in[0]@1", "in[0]@2"),
       CCN__FAULT_NONE, 0, 0, "");
  says("one twice, one missing",
       HEAD("allreduce", "3", "", "1", "rank") FIRST3("in[0]", "in[0]@1", "in[0]@1"), CCN__FAULT_RESULT, 0, 0,
       "rank 1 is there 2 times, rank 2 is missing");
  says("in another order", HEAD("allreduce", "3", "", "1", "rank") FIRST3("in[0]@1", "in[0]", "in[0]@2"),
       CCN__FAULT_RESULT, 0, 0, "adds ((r1 + r0) + r2); declared is ((r0 + r1) + r2)");
  says("in some order", HEAD("allreduce", "3", "", "1", "any") FIRST3("in[0]@1", "in[0]", "in[0]@2"),
       CCN__FAULT_NONE, 0, 0, "");
  says("some order, one twice", HEAD("allreduce", "3", "", "1", "any") FIRST3("in[0]@1", "in[0]", "in[0]@1"),
       CCN__FAULT_RESULT, 0, 0, "rank 1 is there 2 times, rank 2 is missing");
  says("in a listed order",
       HEAD("allreduce", "3", "", "1", "rank merges 0+1 0+2") FIRST3("in[0]", "in[0]@1", "in[0]@2"),
       CCN__FAULT_NONE, 0, 0, "");
  says("not in the listed one",
       HEAD("allreduce", "3", "", "1", "rank merges 1+2 0+1") FIRST3("in[0]", "in[0]@1", "in[0]@2"),
       CCN__FAULT_RESULT, 0, 0, "adds ((r0 + r1) + r2); declared is (r0 + (r1 + r2))");
  says(
    "the wrong piece",
    HEAD("allgather", "2", "", "2", "rank") "rank 0 { channel link 0 { copy out[1] = in[0] } } rank 1 { } }",
    CCN__FAULT_VALUE, 0, 1, "puts piece 0 in out[1] of rank 0, which is for piece 1");
  says(
    "its input",
    HEAD("allgather", "2", "", "2", "rank") "rank 0 { channel link 0 { copy in[0] = in[0] } } rank 1 { } }",
    CCN__FAULT_VALUE, 0, 0, "writes its input");
}

static void test_form(void) {
  says("a chunk too many", BROADCAST("1") "rank 0 { channel link 0 { copy out[3] = in[0] } } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "out[3] of rank 0: it has 1 chunks");
  says("strides reach too far", BROADCAST("1") "rank 0 { channel link 0 { copy out[0:2] = in[0:2] } } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "in[1] of rank 0");
  says("no such peer", BROADCAST("2") "rank 0 { channel link 0 { send in[0] to 2 } } rank 1 { } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "to 2: there are 2 ranks");
  says("two senders",
       BROADCAST(
         "2") "rank 0 { channel link 0 { send in[0] to 1 } channel link 0 { send in[0] to 1 } } rank 1 { } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "both send on the connection 0 -> 1 of link 0");
  says("waits for nothing", BROADCAST("1") "rank 0 { channel link 0 { copy out[0] = in[0] after 0.7 } } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "waits for step 7 of channel 0, which has 1");
  says(
    "a peer's register",
    BROADCAST(
      "2") "rank 0 { scratch 0 register channel link 0 { } } rank 1 { channel link 0 { copy out[0] = scratch[0]@0 } } }",
    CCN__FAULT_FORM, 1, CCN__NO_CHANNEL, "reads a register of rank 0");
  says("no tree", HEAD("allreduce", "3", "", "1", "rank merges 0+1 0+1") "rank 0 { } rank 1 { } rank 2 { } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "the order of slice 0 is no tree over the ranks");
  says("slices of the order", HEAD("allreduce", "3", "", "2", "ring") "rank 0 { } rank 1 { } rank 2 { } }",
       CCN__FAULT_FORM, 0, CCN__NO_CHANNEL, "the order goes with 3 slices");
}

static void test_stuck(void) {
  says(
    "all receive first",
    HEAD("allgather", "2", "", "2",
         "rank") "rank 0 { channel link 0 { recv out[1] from 1 send in[0] to 1 } }"
                 "rank 1 { channel link 0 { recv out[0] from 0 send in[0] to 0 } } }",
    CCN__FAULT_STUCK, 0, 1,
    "deadlock: rank 0 channel 0 step 0 (recv out[1] from 1) waits for a message of rank 1; rank 1 channel 0 step 0 "
    "(recv out[0] from 0) waits for a message of rank 0; and so on from rank 0");
  says("waits for itself", BROADCAST("1") "rank 0 { channel link 0 { copy out[0] = in[0] after 0.0 } } }",
       CCN__FAULT_STUCK, 0, 0, "deadlock: rank 0 channel 0 step 0");
  says(
    "nobody sends",
    BROADCAST(
      "2") "rank 0 { channel link 0 { copy out[0] = in[0] } } rank 1 { channel link 0 { recv out[0] from 0 } } }",
    CCN__FAULT_STUCK, 1, 0, "waits for a message of rank 0; nobody does that");
  says(
    "sends too few",
    BROADCAST(
      "2") "rank 0 { channel link 0 { send in[0] to 1 } } rank 1 { channel link 0 { recv out[0] from 0 recv out[0] from 0 } } }",
    CCN__FAULT_STUCK, 1, 0, "rank 0 channel 0 has ended");
  says("not all come to the barrier",
       BROADCAST("2") "rank 0 { channel link 0 { barrier } } rank 1 { channel link 0 { } } }",
       CCN__FAULT_STUCK, 0, CCN__NO_CHANNEL,
       "waits for the others at the barrier; rank 1 channel 0 has ended");
  says(
    "nobody receives",
    BROADCAST(
      "2") "rank 0 { channel link 0 { copy out[0] = in[0] send in[0] to 1 send in[0] to 1 } } rank 1 { channel link 0 { recv out[0] from 0 } } }",
    CCN__FAULT_UNREAD, 0, 0, "rank 0 channel 0 step 2 (send in[0] to 1): rank 1 never receives this");
}

static void test_races(void) {
  says("two write",
       BROADCAST(
         "1") "rank 0 { channel link 0 { copy out[0] = in[0] } channel link 1 { copy out[0] = in[0] } } }",
       CCN__FAULT_RACE, 0, 0, "they write and write out[0] of rank 0");
  says(
    "reads what another writes",
    BROADCAST(
      "1") "rank 0 { scratch 0 channel link 0 { copy scratch[0] = in[0] } channel link 1 { copy out[0] = scratch[0] } } }",
    CCN__FAULT_RACE, 0, 0, "they write and read scratch[0] of rank 0");
  says("writes what another reads",
       BROADCAST("1") "rank 0 { scratch 0 channel link 0 { copy scratch[0] = in[0] copy out[0] = scratch[0] }"
                      "channel link 1 { copy scratch[0] = in[0] after 0.0 } } }",
       CCN__FAULT_RACE, 0, 0, "they read and write scratch[0] of rank 0");
  says("ordered by waiting",
       BROADCAST("1") "rank 0 { scratch 0 channel link 0 { copy scratch[0] = in[0] copy out[0] = scratch[0] }"
                      "channel link 1 { copy scratch[0] = in[0] after 0.1 } } }",
       CCN__FAULT_NONE, 0, 0, "");
  says(
    "room on a connection orders nothing",
    "algorithm \"x\" broadcast { ranks 2 root 0 slices 1 chunks 1 protocol simple capacity 1 order rank "
    "rank 0 { channel link 0 { copy out[0] = in[0] send in[0] to 1 send in[0] to 1 copy scratch[0]@1 = in[0] } }"
    "rank 1 { scratch 0 channel link 0 { recv scratch[0] from 0 recv out[0] from 0 } } }",
    CCN__FAULT_RACE, 0, 0, "nothing orders rank 1 channel 0 step 0 (recv scratch[0] from 0) before rank 0");
  says(
    "before a peer starts",
    BROADCAST(
      "2") "rank 0 { channel link 0 { copy out[0] = in[0] barrier } } rank 1 { channel link 0 { copy out[0] = in[0]@0 barrier } } }",
    CCN__FAULT_RACE, 1, 0, "nothing orders the start of rank 0 before rank 1 channel 0 step 0");
  says(
    "after a peer ended",
    BROADCAST(
      "2") "rank 0 { channel link 0 { copy out[0] = in[0] barrier } } rank 1 { channel link 0 { barrier copy out[0] = in[0]@0 } } }",
    CCN__FAULT_RACE, 1, 0, "before the end of rank 0");
  says(
    "ordered by messages",
    BROADCAST(
      "2") "rank 0 { scratch 0 channel link 0 { copy out[0] = in[0] copy scratch[0] = in[0] send scratch[0] to 1"
           " recv scratch[0] from 1 } } rank 1 { scratch 0 channel link 0 { recv scratch[0] from 0 copy out[0] = in[0]@0 send"
           " scratch[0] to 0 } } }",
    CCN__FAULT_NONE, 0, 0, "");
}

static ccn__algorithm *make(ccn__arena *arena, ccn__generator g, ccn__op op, uint32_t n) {
  const char *why;
  return ccn__algorithm_make(arena, g, &(ccn__algo_want){.op = op, .nranks = n, .chunks = 1, .group = 1},
                             &why);
}

static void test_capacity(void) {
  ccn__arena arena;
  ccn__algo_fault fault;
  ccn__arena_init(&arena, &kit_heap);
  ccn__algorithm *a = make(&arena, CCN__MAKE_ring, CCN__OP_ALLREDUCE, 4);
  a->capacity = 1;
  const bool refused = !ccn__algorithm_check(a, &arena, &fault) && fault.kind == CCN__FAULT_STUCK;
  ok(refused &&
       strstr(fault.text, "deadlock: rank 0 channel 0 step 1 (recv-reduce-send in[2] from 3 to 1 wide) waits "
                          "for room on the connection to rank 1, which holds 1 message; rank 1"),
     "a ring with room for one message is a cycle, in words");
  if (refused) printf("# %s\n", fault.text);
  for (uint32_t capacity = 2; capacity < 5; capacity++) {
    a->capacity = capacity;
    ok(ccn__algorithm_check(a, &arena, &fault), "with room for more it ends");
  }
  ccn__arena_free(&arena);
}

static void test_inplace(void) {
  static const ccn__generator fine[] = {CCN__MAKE_twoshot, CCN__MAKE_pairs,  CCN__MAKE_ring,
                                        CCN__MAKE_tree,    CCN__MAKE_double, CCN__MAKE_halving};
  ccn__arena arena;
  ccn__algo_fault fault;
  bool good = true;
  ccn__arena_init(&arena, &kit_heap);
  for (size_t i = 0; i < CCN__COUNT(fine); i++)
    for (uint32_t n = 1; n < 10; n++) {
      ccn__algorithm *a = make(&arena, fine[i], CCN__OP_ALLREDUCE, n);
      a->inplace = true;
      if (!ccn__algorithm_check(a, &arena, &fault)) kit_say(a, fault.text), good = false;
    }
  ok(good, "all-reduces whose output may be their input");
  ccn__algorithm *a = make(&arena, CCN__MAKE_oneshot, CCN__OP_ALLREDUCE, 3);
  a->inplace = true;
  ok(!ccn__algorithm_check(a, &arena, &fault), "not the one-shot: others still read");
  a = make(&arena, CCN__MAKE_ring, CCN__OP_ALLGATHER, 5);
  a->inplace = true;
  ok(ccn__algorithm_check(a, &arena, &fault), "an all-gather whose input is its part of the output");
  a = make(&arena, CCN__MAKE_ring, CCN__OP_REDUCESCATTER, 5);
  a->inplace = true;
  ok(ccn__algorithm_check(a, &arena, &fault), "a reduce-scatter whose output is its part of the input");
  ccn__arena_free(&arena);
}

static void body(void) {
  test_accepts();
  test_damage();
  test_values();
  test_form();
  test_stuck();
  test_races();
  test_capacity();
  test_inplace();
}

int main(void) { return kit_main(body); }
