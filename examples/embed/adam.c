/* adam.c: a host that trains with CCN: a program from a string, its own buffers as DLPack, results without a copy.
 * Build: cc adam.c $(pkg-config --cflags --libs ccn)
 * SPDX-License-Identifier: Apache-2.0 */
#include <ccn_dlpack.h>
#include <stdio.h>
#include <string.h>

enum { N = 1000 };
static const char text[] =
  "program adam(g: f32[N], p: f32[N], m: f32[N], v: f32[N], lr: f32, t: f32) {\n"
  "  m1 = update(m, 0.9 * m + 0.1 * g)\n"
  "  v1 = update(v, 0.999 * v + 0.001 * g * g)\n"
  "  return update(p, p - lr * (m1 / (1 - 0.9 ** t)) / (sqrt(v1 / (1 - 0.999 ** t)) + 1e-8))\n"
  "}\n";

static void show(const char *s, size_t size, void *user) { fwrite(s, 1, size, user); }
static void nothing(DLManagedTensorVersioned *m) { (void)m; } /* these buffers live as long as the program */

static int failed(ccn_context *c, ccn_status s) {
  if (s != CCN_OK) fprintf(stderr, "%s\n", ccn_status_name(s));
  if (s == CCN_ERROR) ccn_diagnostics_write(c, 0, show, stderr);
  return s != CCN_OK;
}

static ccn_status lend(ccn_context *c, ccn_call *call, size_t i, DLManagedTensorVersioned *m, float *data) {
  static int64_t shape[1] = {N};
  ccn_tensor *t;
  m->version.major = 1;
  m->deleter = nothing;
  m->dl_tensor =
    (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape};
  ccn_status s = ccn_tensor_from_dlpack(c, NULL, &m, 1, &t);
  if (s == CCN_OK) s = ccn_call_set_tensor(call, i, t); /* the call holds it now */
  ccn_tensor_release(t);
  return s;
}

int main(void) {
  static float buffer[4][N]; /* g, p, m, v */
  static DLManagedTensorVersioned managed[4];
  ccn_context *c = NULL;
  ccn_module *module = NULL;
  const ccn_function *adam = NULL;
  ccn_call *call = NULL;
  int bad = failed(NULL, ccn_context_create(NULL, &c)) ||
            failed(c, ccn_module_load(c, "adam.ccn", text, strlen(text), &module)) ||
            failed(c, ccn_module_function(module, "adam", &adam)) || failed(c, ccn_call_create(adam, &call));
  for (size_t i = 0; i < 4 && !bad; i++) bad = failed(c, lend(c, call, i, &managed[i], buffer[i]));
  for (int t = 1; t <= 10 && !bad; t++) {
    for (int i = 0; i < N; i++) buffer[0][i] = buffer[1][i] - 1; /* the gradient of (p - 1)^2 / 2 */
    bad = failed(c, ccn_call_set_f64(call, 4, 0.1)) || failed(c, ccn_call_set_i64(call, 5, t)) ||
          failed(c, ccn_call_run(call));
  }
  if (!bad) printf("p[0] = %.4f after 10 steps\n", buffer[1][0]); /* updated in place */
  if (!bad) (void)failed(c, ccn_eval(c, "wrong", "let x = ones(f16[2]) * ones(f32[2])", 35, NULL));
  ccn_call_release(call);
  ccn_module_release(module);
  ccn_context_free(c);
  return bad;
}
