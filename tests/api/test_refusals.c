/* test_refusals.c: what functions of ccn.h answer to NULL, to numbers out of range, to values of another kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ccn.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

/* The call is refused as a wrong one; or it asks for what is not there. */
#define REFUSED(call) ok((call) == CCN_INVALID_ARGUMENT, #call)

#define NOT_FOUND(call) ok((call) == CCN_NOT_FOUND, #call)

static const char text[] = "program f(x: f32[N], s: f32) { return x * s }\nfn g(b) { return b }\n";

static ccn_context *make(void) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  return ccn_context_create(&o, &c) == CCN_OK ? c : NULL;
}

static ccn_tensor *make_tensor(ccn_context *c) {
  static const float data[3] = {1, 2, 3};
  const int64_t three = 3;
  const ccn_tensor_desc d = {.size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &three};
  ccn_tensor *t = NULL;
  return ccn_tensor_copy_in(c, &d, data, sizeof data, &t) == CCN_OK ? t : NULL;
}

static void test_values(ccn_context *c) {
  ccn_value *v = NULL, *b = NULL, *string = NULL;
  ccn_tensor *t = NULL;
  double x = 7;
  int64_t i = 0;
  REFUSED(ccn_value_make_i64(NULL, 1, &v));
  REFUSED(ccn_value_make_i64(c, 1, NULL));
  REFUSED(ccn_value_make_f64(NULL, 1, &v));
  REFUSED(ccn_value_make_f64(c, 1, NULL));
  REFUSED(ccn_value_make_bool(NULL, 1, &v));
  REFUSED(ccn_value_make_bool(c, 1, NULL));
  REFUSED(ccn_value_make_tensor(NULL, &v));
  ok(!v, "nothing is made by a refused call");
  ok(ccn_value_make_i64(c, -3, &v) == CCN_OK && ccn_value_i64(v, &i) == CCN_OK && i == -3, "an i64 and back");
  ok(ccn_value_make_bool(c, 5, &b) == CCN_OK && ccn_value_kind(b) == CCN_KIND_BOOL, "a bool");
  ok(ccn_value_make_string(c, "a", 1, &string) == CCN_OK, "a string");
  REFUSED(ccn_value_f64(NULL, &x));
  REFUSED(ccn_value_f64(v, NULL));
  ok(ccn_value_f64(string, &x) != CCN_OK, "a string is no number");
  REFUSED(ccn_value_tensor(NULL, &t));
  ok(ccn_value_tensor(string, &t) != CCN_OK && !t, "a string is no tensor");
  ccn_value_release(v);
  ccn_value_release(b);
  ccn_value_release(string);
  ccn_value_release(NULL);
}

static void test_tensors(ccn_context *c) {
  float data[3] = {4, 5, 6}, back[3];
  ccn_tensor *t = make_tensor(c);
  ccn_tensor_info info = {.size = sizeof info};
  REFUSED(ccn_tensor_info_get(NULL, &info));
  REFUSED(ccn_tensor_info_get(t, NULL));
  REFUSED(ccn_tensor_write_rank(NULL, 0, data, sizeof data));
  REFUSED(ccn_tensor_write_rank(t, 0, NULL, sizeof data));
  ok(ccn_tensor_write_rank(t, 9, data, sizeof data) != CCN_OK, "no such rank");
  ok(ccn_tensor_write_rank(t, 0, data, 8) != CCN_OK, "too few bytes");
  ok(ccn_tensor_read(t, back, sizeof back) == CCN_OK && back[0] == 1, "refused writes wrote nothing");
  ok(!ccn_tensor_retain(NULL), "NULL is retained as NULL");
  ccn_tensor_release(NULL);
  ccn_tensor_release(t);
  ok(!ccn_dtype_name((ccn_dtype)99) && !ccn_dtype_name((ccn_dtype)-1), "no such dtype has no name");
  ok(ccn_dtype_size((ccn_dtype)99) == 0 && ccn_dtype_size((ccn_dtype)-1) == 0, "nor a size");
}

static void test_functions(ccn_context *c) {
  ccn_module *m = NULL;
  const ccn_function *f = NULL, *g = NULL;
  ccn_call *call = NULL;
  ccn_param p = {.size = sizeof p};
  ccn_tensor *t = make_tensor(c), *none[1] = {NULL}, *out = NULL;
  bool made = ccn_module_load(c, "m", text, strlen(text), &m) == CCN_OK &&
              ccn_module_function(m, "f", &f) == CCN_OK && ccn_module_function(m, "g", &g) == CCN_OK &&
              ccn_call_create(f, &call) == CCN_OK;
  ok(made, "a call");
  ok(!ccn_function_name(NULL) && !ccn_function_params(NULL) && !ccn_function_results(NULL), "no function");
  ok(ccn_function_param_find(NULL, "x") == -1 && ccn_function_param_find(f, NULL) == -1 &&
       ccn_function_param_find(f, "y") == -1 && ccn_function_param_find(f, "s") == 1,
     "params by name");
  REFUSED(ccn_function_result(NULL, 0, &p));
  NOT_FOUND(ccn_function_result(f, 1, &p));
  REFUSED(ccn_function_result(f, 0, NULL));
  REFUSED(ccn_call_set_bool(NULL, 0, 1));
  NOT_FOUND(ccn_call_set_bool(call, 2, 1));
  REFUSED(ccn_call_set_f64(NULL, 0, 1));
  NOT_FOUND(ccn_call_set_f64(call, 2, 1));
  REFUSED(ccn_call_set_tensors(NULL, 0, &t, 1));
  NOT_FOUND(ccn_call_set_tensors(call, 2, &t, 1));
  REFUSED(ccn_call_set_tensors(call, 0, NULL, 1));
  REFUSED(ccn_call_set_tensors(call, 0, none, 1));
  REFUSED(ccn_call_result(NULL, 0, &out));
  NOT_FOUND(ccn_call_result(call, 0, &out));
  ok(ccn_call_set_tensor(call, 0, t) == CCN_OK && ccn_call_set_f64(call, 1, 2) == CCN_OK &&
       ccn_call_run(call) == CCN_OK,
     "the call runs after all that was refused");
  NOT_FOUND(ccn_call_result(call, 1, &out));
  REFUSED(ccn_call_result(call, 0, NULL));
  ok(!out, "no result came from a refused call");
  ccn_call_release(call);
  ccn_call_release(NULL);
  ccn_tensor_release(t);
  ccn_module_release(m);
}

static void seen(const ccn_cache_entry *entry, void *user) { *(int *)user += entry != NULL; }

static void test_lists(ccn_context *c) {
  static const char nowhere[] = "/nonexistent/ccn-cache";
  int entries = 0;
  size_t removed = 7;
  ok(!ccn_explain_list(100000, NULL) && !ccn_machine_list(100000, NULL), "past the end of a list");
  REFUSED(ccn_machine_measure(NULL, NULL, NULL));
  REFUSED(ccn_machine_measure(c, NULL, NULL));
  REFUSED(ccn_cache_folder(NULL, NULL, NULL));
  REFUSED(ccn_cache_list(nowhere, 0, NULL, NULL));
  ok(ccn_cache_list(nowhere, 1, seen, &entries) == CCN_OK && entries == 0,
     "a cache that is not there is empty");
  ok(ccn_cache_clear(nowhere, 0, &removed) == CCN_OK && removed == 0, "and has nothing to remove");
  ok(ccn_diagnostic_count(NULL) == 0, "no context has no diagnostics");
}

int main(void) {
  ccn_context *c = make();
  ok(c != NULL, "a context");
  test_values(c);
  test_tensors(c);
  test_functions(c);
  test_lists(c);
  ccn_context_free(c);
  printf("1..%d\n", tests);
  return failures != 0;
}
