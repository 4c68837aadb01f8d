/* test_host.c: functions of the host, called from scripts of every kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static int calls;

static ccn_status add(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  double sum = *(double *)user, x;
  calls++;
  for (size_t i = 0; i < n; i++) {
    if (ccn_value_f64(args[i], &x) != CCN_OK) {
      ccn_host_error(c, "only numbers are added");
      return CCN_ERROR;
    }
    sum += x;
  }
  return ccn_value_make_f64(c, sum, out);
}

static ccn_status greet(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  size_t size;
  const char *name = n == 1 ? ccn_value_string(args[0], &size) : NULL;
  (void)user;
  return name ? ccn_value_make_string(c, name, size, out) : CCN_ERROR;
}

/* A tensor of the host's; the argument's first element is written too. */
static ccn_status ramp(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  float x[3] = {1, 2, 3};
  int64_t three = 3;
  ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &three};
  ccn_tensor *t = NULL, *given = NULL;
  (void)user;
  if (n == 1) {
    ccn_status s = ccn_value_tensor(args[0], &given);
    if (s == CCN_OK) s = ccn_tensor_read(given, x, sizeof x);
    ccn_tensor_release(given);
    if (s != CCN_OK) return s;
    x[0] += 10;
  }
  ccn_status s = ccn_tensor_copy_in(c, &d, x, sizeof x, &t);
  if (s == CCN_OK) s = ccn_value_make_tensor(t, out);
  ccn_tensor_release(t);
  return s;
}

static ccn_status inner;
static ccn_status nest(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  (void)args, (void)n, (void)out, (void)user;
  inner = ccn_eval(c, "m", "1", 1, NULL);
  ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .placement = "sliced(9)"};
  ccn_tensor *t = NULL;
  if (ccn_tensor_create(c, &d, &t) != CCN_ERROR || t) inner = CCN_OK;
  return CCN_OK;
}

static ccn_status stop(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out, void *user) {
  (void)c, (void)args, (void)n, (void)out, (void)user;
  return CCN_INTERRUPTED;
}

typedef struct text {
  char at[4096];
  size_t n;
} text;

static void write(const char *s, size_t size, void *user) {
  text *t = user;
  if (t->n + size >= sizeof t->at) return;
  memcpy(t->at + t->n, s, size);
  t->n += size;
  t->at[t->n] = 0;
}

static ccn_status eval(ccn_context *c, const char *entry) {
  return ccn_eval(c, "m", entry, strlen(entry), NULL);
}

static bool says(ccn_context *c, const char *code, const char *part) {
  ccn_diagnostic d = {.size = sizeof d};
  if (ccn_diagnostic_get(c, 0, &d) != CCN_OK) return false;
  if (!strcmp(d.code, code) && strstr(d.message, part)) return true;
  fprintf(stderr, "%s: %s\n", d.code, d.message);
  return false;
}

int main(void) {
  static text out;
  static double base = 0.5;
  ccn_options o;
  ccn_context *c = NULL;
  ccn_value *v = NULL;
  ccn_options_init(&o, sizeof o);
  o.print = write;
  o.print_user = &out;
  if (ccn_context_create(&o, &c) != CCN_OK) return 1;
  ok(ccn_register_function(c, "add", add, &base, 1) == CCN_OK &&
       ccn_register_function(c, "greet", greet, NULL, 0) == CCN_OK &&
       ccn_register_function(c, "ramp", ramp, NULL, 0) == CCN_OK &&
       ccn_register_function(c, "nest", nest, NULL, 0) == CCN_OK &&
       ccn_register_function(c, "stop", stop, NULL, 0) == CCN_OK,
     "registered");
  ok(ccn_register_function(c, "1x", add, NULL, 0) == CCN_INVALID_ARGUMENT &&
       ccn_register_function(c, "", add, NULL, 0) == CCN_INVALID_ARGUMENT &&
       ccn_register_function(c, "x", NULL, NULL, 0) == CCN_INVALID_ARGUMENT &&
       ccn_register_function(NULL, "x", add, NULL, 0) == CCN_INVALID_ARGUMENT,
     "what cannot be");
  static const char script[] =
    "print(add(1, 2), greet(\"you\"), ramp(), ramp(ramp()), add)\nlet f = add\nprint(f())\n";
  ok(ccn_run(c, "m", script, sizeof script - 1) == CCN_OK &&
       !strcmp(out.at, "3.5 you f32[3] [1.0, 2.0, 3.0] f32[3] [11.0, 2.0, 3.0] fn add\n0.5\n"),
     "called by a script");
  ok(ccn_check(c, "m", "add(1)\nadd(unknown)\n", 20) == CCN_ERROR && says(c, "CCN0801", "unknown"),
     "known to the check");
  calls = 0;
  ok(eval(c, "for i in 0..1000 { add(i) }") == CCN_OK && calls == 1000, "called by an entry");
  ok(eval(c, "add(\"text\")") == CCN_ERROR && says(c, "CCN0609", "only numbers are added"),
     "an error with its reason");
  ok(eval(c, "greet()") == CCN_ERROR && says(c, "CCN0609", "no reason"), "an error without one");
  ok(eval(c, "add(x: 1)") == CCN_ERROR && says(c, "CCN0806", "named"), "no named parameters");
  ok(eval(c, "let before = 1\nnest()\nlet after = 2") == CCN_OK && inner == CCN_INVALID_ARGUMENT &&
       eval(c, "before + after") == CCN_OK,
     "a host function does not evaluate, and its mistakes are its own");
  ok(eval(c, "stop()") == CCN_INTERRUPTED && eval(c, "before") == CCN_OK, "another status ends the call");
  ok(eval(c, "program p(x: f32[N]) { return x * add(1) }") == CCN_ERROR, "not in programs");
  ok(eval(c, "fn add(x) { return x }") == CCN_OK && ccn_eval(c, "m", "add(7)", 6, &v) == CCN_OK &&
       ccn_value_f64(v, &base) == CCN_OK && base == 7,
     "hidden by a definition");
  ccn_value_release(v);
  ok(ccn_session_reset(c) == CCN_OK && eval(c, "add(1)") == CCN_OK &&
       eval(c, "let x = ramp()\nlet y = x + 1\nassert y[2] == 4.0") == CCN_OK,
     "in a new session too");
  ccn_host_error(c, "nobody runs");
  ccn_host_error(NULL, NULL);
  ccn_context_free(c);
  printf("1..%d\n", tests);
  return failures != 0;
}
