/* test_algorithm.c: collective algorithms through ccn.h: written in each form, read back, refused with a
 * message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ccn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tests, failures;

static void ok(int good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

typedef struct text {
  char *at;
  size_t n;
} text;

static void keep(const char *s, size_t n, void *user) {
  text *t = user;
  t->at = realloc(t->at, t->n + n + 1);
  memcpy(t->at + t->n, s, n);
  t->n += n;
  t->at[t->n] = 0;
}

static ccn_status write(ccn_context *c, const char *collective, const char *algorithm, uint32_t ranks,
                        uint32_t group, const char *format, text *out) {
  ccn_algorithm_desc d;
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  d.collective = collective;
  d.algorithm = algorithm;
  d.ranks = ranks;
  d.group = group;
  d.by = 1;
  return ccn_algorithm_write(c, &d, format, keep, out);
}

/* The first message of the last call holds the words. */
static int says(ccn_context *c, const char *words) {
  ccn_diagnostic d;
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  return ccn_diagnostic_get(c, 0, &d) == CCN_OK && strstr(d.message, words) != NULL;
}

static void test_all(ccn_context *c) {
  static const char *const collectives[] = {"allreduce", "reducescatter", "allgather", "reduce", "broadcast",
                                            "gather",    "scatter",       "alltoall",  "shift",  "permute"};
  const char *name, *about;
  int good = 1, made = 0;
  for (size_t i = 0; (name = ccn_algorithm_list(i, &about)); i++) {
    good &= about && *about;
    for (size_t k = 0; k < sizeof collectives / sizeof *collectives; k++) {
      text t = {NULL, 0}, json = {NULL, 0};
      ccn_status status = write(c, collectives[k], name, 6, 3, "text", &t);
      if (status == CCN_OK) {
        made++;
        good &= ccn_algorithm_check(c, t.at, t.n) == CCN_OK;
        good &= write(c, collectives[k], name, 6, 3, "json", &json) == CCN_OK;
        good &= ccn_algorithm_check(c, json.at, json.n) == CCN_OK;
      } else {
        good &= status == CCN_ERROR && says(c, "does not do this collective");
      }
      free(t.at);
      free(json.at);
    }
  }
  ok(good && made > 40, "every algorithm is written as text and as JSON, and passes the check");
}

static void test_refused(ccn_context *c) {
  static const char broken[] =
    "algorithm \"x\" allreduce { ranks 1 slices 1 chunks 1 protocol simple capacity 1 order "
    "rank rank 0 { channel link 0 { copy out[0] = in[0] } } }";
  text t = {NULL, 0};
  ok(write(c, "allreduce", "ring", 0, 0, "text", &t) == CCN_INVALID_ARGUMENT &&
       write(c, "allreduce", "ring", CCN_ALGORITHM_RANKS + 1, 0, "text", &t) == CCN_INVALID_ARGUMENT &&
       write(c, "allreduce", "ring", 2, 0, "xml", &t) == CCN_INVALID_ARGUMENT &&
       write(c, NULL, "ring", 2, 0, "text", &t) == CCN_INVALID_ARGUMENT &&
       ccn_algorithm_write(c, NULL, "text", keep, &t) == CCN_INVALID_ARGUMENT &&
       ccn_algorithm_check(c, NULL, 0) == CCN_INVALID_ARGUMENT && t.n == 0,
     "what no call can mean");
  ok(write(c, "allreduce", "hierarchical", 6, 4, "text", &t) == CCN_ERROR &&
       says(c, "groups are not of equal size"),
     "groups that do not divide the ranks");
  ok(ccn_algorithm_check(c, broken, sizeof broken - 1) == CCN_ERROR && says(c, "was not finished"),
     "a wrong algorithm, with what is wrong");
  ok(ccn_algorithm_check(c, "{}", 2) == CCN_ERROR && says(c, "missing"), "JSON that is none");
  ok(ccn_algorithm_list(1000, NULL) == NULL, "the list ends");
  free(t.at);
}

static void test_large(ccn_context *c) {
  text t = {NULL, 0};
  ok(write(c, "allreduce", "ring", 256, 0, "text", &t) == CCN_OK &&
       ccn_algorithm_check(c, t.at, t.n) == CCN_OK,
     "256 ranks");
  free(t.at);
}

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

/* Each request fails once: the call says so and nothing leaks. */
static void test_memory(void) {
  int good = 1, finished = 0;
  for (size_t n = 1; good && !finished && n < 2000; n++) {
    host h = {0, 0, n};
    text t = {NULL, 0};
    ccn_options o;
    ccn_context *c = NULL;
    ccn_options_init(&o, sizeof o);
    o.alloc = host_alloc;
    o.alloc_user = &h;
    ccn_status status = ccn_context_create(&o, &c);
    if (status == CCN_OK) status = write(c, "allreduce", "hierarchical", 6, 3, "text", &t);
    if (status == CCN_OK) status = ccn_algorithm_check(c, t.at, t.n);
    finished = status == CCN_OK;
    good = finished || status == CCN_OUT_OF_MEMORY;
    ccn_context_free(c);
    good &= h.blocks == 0;
    free(t.at);
  }
  ok(good && finished, "every request of memory may fail");
}

int main(void) {
  ccn_context *c = NULL;
  if (ccn_context_create(NULL, &c) != CCN_OK) return 3;
  test_all(c);
  test_refused(c);
  test_large(c);
  ccn_context_free(c);
  test_memory();
  printf("1..%d\n", tests);
  return failures != 0;
}
