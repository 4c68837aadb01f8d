/* test_threads.c: two contexts in two threads; release and interruption from another thread while a context works.
 * Worth most under ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn_dlpack.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static ccn_context *make(void) {
  ccn_context *c = NULL;
  if (ccn_context_create(NULL, &c) != CCN_OK) exit(1);
  return c;
}

static const char work[] = "let p = ones(f32[100])\nfor i in 0..200 { p = p * 0.5 + 1 }\nsum(p)";

/* Its own context: everything works as if alone. */
static void *alone(void *out_good) {
  ccn_context *c = make();
  bool good = true;
  double first = 0, x = 0;
  for (int i = 0; i < 5; i++) {
    ccn_value *v = NULL;
    good = good && ccn_eval(c, "m", work, sizeof work - 1, &v) == CCN_OK && ccn_value_f64(v, &x) == CCN_OK;
    if (i == 0) first = x;
    good = good && x == first;
    ccn_value_release(v);
    good = good && ccn_session_reset(c) == CCN_OK && ccn_run(c, "m", "print(nothing)\n", 15) == CCN_ERROR;
  }
  ccn_context_free(c);
  *(bool *)out_good = good;
  return NULL;
}

enum { LENT = 200 };

static void *give_back(void *user) {
  DLManagedTensorVersioned **lent = user;
  for (int i = 0; i < LENT; i++) lent[i]->deleter(lent[i]);
  return NULL;
}

static void *interrupt(void *user) {
  ccn_interrupt(user);
  return NULL;
}

int main(void) {
  pthread_t a, b;
  bool good[2] = {false, false};
  if (pthread_create(&a, NULL, alone, &good[0]) || pthread_create(&b, NULL, alone, &good[1])) return 1;
  pthread_join(a, NULL), pthread_join(b, NULL);
  ok(good[0] && good[1], "two contexts in two threads");

  static DLManagedTensorVersioned *lent[LENT];
  ccn_context *c = make();
  int64_t n = 10;
  ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n};
  ccn_tensor *t = NULL;
  bool fine = true;
  for (int i = 0; i < LENT && fine; i++) {
    fine = ccn_tensor_create(c, &d, &t) == CCN_OK && ccn_tensor_to_dlpack(t, 0, 1, 0, &lent[i]) == CCN_OK;
    ccn_tensor_release(t);
  }
  if (!fine || pthread_create(&a, NULL, give_back, lent)) return 1;
  for (int i = 0; i < 5; i++) fine = fine && ccn_eval(c, "m", work, sizeof work - 1, NULL) == CCN_OK;
  ok(fine, "a context works while another thread gives back what it lent");
  ccn_context_free(c);
  pthread_join(a, NULL);
  ok(true, "also when the context goes first");

  c = make();
  /* An interrupt may come before the entry begins, and is then forgotten: so it is sent until it is seen. */
  ccn_status s = CCN_OK;
  for (int i = 0; i < 1000 && s != CCN_INTERRUPTED; i++) {
    if (pthread_create(&a, NULL, interrupt, c)) return 1;
    s = ccn_eval(c, "m", "for i in 0..10_000 { }", 22, NULL);
    pthread_join(a, NULL);
  }
  ok(s == CCN_INTERRUPTED && ccn_eval(c, "m", "1", 1, NULL) == CCN_OK, "interrupted from another thread");
  ccn_context_free(c);
  printf("1..%d\n", tests);
  return failures != 0;
}
