/* test_tensor.c: tensors of the host: made, copied in, borrowed, their pieces, and updates of borrowed memory.
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

static ccn_context *make(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = ranks;
  o.memory_limit = (size_t)1 << 30;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

static bool eval(ccn_context *c, const char *text) {
  return ccn_eval(c, "m", text, strlen(text), NULL) == CCN_OK;
}

static ccn_tensor_desc f32(int32_t ndim, const int64_t *shape, const char *placement) {
  ccn_tensor_desc d = {
    .size = sizeof d, .dtype = CCN_DTYPE_F32, .ndim = ndim, .shape = shape, .placement = placement};
  return d;
}

static void test_dtypes(void) {
  static const char *const names[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"};
  static const size_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  bool good = true;
  for (int t = 0; t < 10; t++)
    good =
      good && !strcmp(ccn_dtype_name((ccn_dtype)t), names[t]) && ccn_dtype_size((ccn_dtype)t) == sizes[t];
  ok(good && !ccn_dtype_name((ccn_dtype)10) && ccn_dtype_size((ccn_dtype)-1) == 0, "dtypes");
}

static void test_whole(void) {
  ccn_context *c = make(0);
  int64_t shape[3] = {2, 3, 0}, huge[2] = {INT64_MAX, 16};
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
  ccn_tensor_desc d = f32(2, shape, NULL), wrong;
  ccn_tensor *t = NULL;
  ccn_tensor_info info = {.size = sizeof info};
  ok(ccn_tensor_create(c, &d, &t) == CCN_OK && ccn_tensor_read(t, y, sizeof y) == CCN_OK && y[5] == 0,
     "zeros");
  ok(ccn_tensor_info_get(t, &info) == CCN_OK && info.dtype == CCN_DTYPE_F32 && info.ndim == 2 &&
       info.shape[1] == 3 && info.strides[0] == 3 && info.strides[1] == 1 && info.ranks == 1 &&
       !info.borrowed && !info.placement[0],
     "what it is");
  ok(ccn_tensor_write(t, x, sizeof x) == CCN_OK && ccn_tensor_read(t, y, sizeof y) == CCN_OK &&
       !memcmp(x, y, sizeof x),
     "written");
  ok(ccn_tensor_read(t, y, 4) == CCN_INVALID_ARGUMENT && ccn_tensor_write(t, x, 20) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_read(NULL, y, 0) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_read(t, NULL, sizeof y) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_write_rank(t, 1, x, sizeof x) == CCN_NOT_FOUND,
     "sizes that do not fit");
  ok(ccn_tensor_retain(t) == t, "a second owner");
  ccn_tensor_release(t);
  ok(ccn_tensor_read(t, y, sizeof y) == CCN_OK && y[0] == 1, "keeps it");
  ccn_tensor_release(t);
  d = f32(3, shape, "");
  ok(ccn_tensor_copy_in(c, &d, NULL, 0, &t) == CCN_OK && ccn_tensor_read(t, NULL, 0) == CCN_OK,
     "an empty one");
  ccn_tensor_release(t);
  d = f32(0, NULL, NULL);
  ok(ccn_tensor_copy_in(c, &d, x, 4, &t) == CCN_OK && ccn_tensor_read(t, y, 4) == CCN_OK && y[0] == 1,
     "a scalar");
  ccn_tensor_release(t);
  bool good = true;
  for (int k = 0; k < 7; k++) {
    wrong = f32(2, shape, NULL);
    int64_t negative[2] = {2, -1};
    if (k == 0) wrong.size = 8;
    if (k == 1) wrong.dtype = (ccn_dtype)10;
    if (k == 2) wrong.ndim = 9;
    if (k == 3) wrong.ndim = -1;
    if (k == 4) wrong.shape = NULL;
    if (k == 5) wrong.shape = negative;
    if (k == 6) wrong.shape = huge;
    good = good && ccn_tensor_create(c, &wrong, &t) == CCN_INVALID_ARGUMENT && !t;
  }
  ok(good && ccn_tensor_create(c, NULL, &t) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_create(NULL, &d, &t) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_create(c, &d, NULL) == CCN_INVALID_ARGUMENT,
     "wrong descriptions");
  d = f32(1, huge, NULL);
  shape[0] = INT64_MAX / 64;
  d.shape = shape;
  ok(ccn_tensor_create(c, &d, &t) == CCN_OUT_OF_MEMORY && !t, "too large");
  shape[0] = 2;
  d.placement = "sliced(0)";
  ok(ccn_tensor_create(c, &d, &t) == CCN_ERROR && !t && ccn_diagnostic_count(c) == 1,
     "a placement without a mesh");
  d.placement = "sliced(0";
  ok(ccn_tensor_create(c, &d, &t) == CCN_ERROR && ccn_diagnostic_count(c) == 1, "a placement that is none");
  ccn_context_free(c);
}

static void test_pieces(void) {
  ccn_context *c = make(4);
  int64_t shape[2] = {3, 2};
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0}, other[2] = {7, 8};
  ccn_tensor_desc d = f32(2, shape, "sliced(0) over dp");
  ccn_tensor *t = NULL;
  ccn_piece p = {.size = sizeof p}, q = {.size = sizeof q};
  ccn_tensor_info info = {.size = sizeof info};
  if (!eval(c, "mesh (dp: 2, tp)")) exit(1);
  ok(ccn_tensor_copy_in(c, &d, x, sizeof x, &t) == CCN_OK && ccn_tensor_info_get(t, &info) == CCN_OK &&
       !strcmp(info.placement, "sliced(0) over dp") && info.ranks == 4,
     "a sliced one");
  ok(ccn_tensor_piece(t, 3, &p) == CCN_OK && p.bytes == 8 && p.start[0] == 2 && p.extent[0] == 1 &&
       p.extent[1] == 2 && p.strides[0] == 2 && ((const float *)p.data)[1] == 6,
     "the last piece");
  ok(ccn_tensor_piece(t, 2, &q) == CCN_OK && q.data == p.data &&
       ccn_tensor_piece(t, 4, &q) == CCN_NOT_FOUND && ccn_tensor_piece(NULL, 0, &q) == CCN_INVALID_ARGUMENT,
     "copies share their memory");
  ok(ccn_tensor_read(t, y, sizeof y) == CCN_OK && !memcmp(x, y, sizeof x), "gathered");
  ok(ccn_tensor_write_rank(t, 2, other, sizeof other) == CCN_OK &&
       ccn_tensor_read(t, y, sizeof y) == CCN_OK && y[3] == 4 && y[4] == 7 && y[5] == 8 &&
       ccn_tensor_piece(t, 3, &p) == CCN_OK && ((const float *)p.data)[0] == 7,
     "a piece written");
  ccn_tensor_release(t);
  d.placement = "local";
  ok(ccn_tensor_copy_in(c, &d, x, sizeof x, &t) == CCN_OK &&
       ccn_tensor_write_rank(t, 1, y, sizeof y) == CCN_OK &&
       ccn_tensor_read(t, y, sizeof y) == CCN_UNSUPPORTED && ccn_tensor_piece(t, 0, &p) == CCN_OK &&
       ((const float *)p.data)[4] == 5 && ccn_tensor_piece(t, 1, &p) == CCN_OK &&
       ((const float *)p.data)[4] == 7,
     "a local one");
  ccn_tensor_release(t);
  d.placement = "at(1) over tp";
  ok(ccn_tensor_create(c, &d, &t) == CCN_OK && ccn_tensor_piece(t, 0, &p) == CCN_NOT_FOUND &&
       ccn_tensor_piece(t, 1, &p) == CCN_OK,
     "one at a coordinate");
  ccn_tensor_release(t);
  d.placement = "sliced(2) over dp";
  ok(ccn_tensor_create(c, &d, &t) == CCN_ERROR && !t, "no such dim");
  ccn_context_free(c);
}

/* ---- borrowed memory ------------------------------------------------------------------------------------------ */

static void released(void *user) { (*(int *)user)++; }

static const char program[] =
  "mesh (dp)\n"
  "program step(g: f32[N] local, p: f32[N]) { return update(p, p - allreduce(sum, g)) }\n"
  "program swap(p: f32[N], q: f32[N]) { a = update(p, q); b = update(q, p); return a }\n"
  "program half(p: f32[N] sliced(0)) { return update(p, p / 2) }\n"
  "program same(p: f32[N]) { return p }\n"
  "program into(p: f32[N], q: f32[N]) { return update(p, q) }\n"
  "fn twin(p) { let q = copy(p); return q }\n"
  "fn rank0(p) { return p.on(0) }\n";

static ccn_call *call_of(ccn_module *m, const char *name, ccn_tensor *x, ccn_tensor *y) {
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  if (ccn_module_function(m, name, &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK ||
      ccn_call_set_tensor(call, 0, x) != CCN_OK || (y && ccn_call_set_tensor(call, 1, y) != CCN_OK))
    exit(1);
  return call;
}

static ccn_status run(ccn_module *m, const char *name, ccn_tensor *x, ccn_tensor *y, ccn_tensor **out) {
  ccn_call *call = call_of(m, name, x, y);
  ccn_status s = ccn_call_run(call);
  if (s == CCN_OK && out) s = ccn_call_result(call, 0, out);
  ccn_call_release(call);
  return s;
}

static void test_borrowed(void) {
  ccn_context *c = make(2);
  ccn_module *m = NULL;
  int64_t n = 4;
  int back = 0;
  float g0[4] = {1, 1, 1, 1}, g1[4] = {2, 2, 2, 2}, p[4] = {10, 20, 30, 40}, q[4] = {5, 6, 7, 8}, x[4];
  void *gs[2] = {g0, g1}, *ps[1] = {p}, *qs[2] = {q, q};
  ccn_tensor_desc local = f32(1, &n, "local"), whole = f32(1, &n, NULL), sliced = f32(1, &n, "sliced(0)");
  ccn_tensor *tg = NULL, *tp = NULL, *tq = NULL, *r = NULL, *bad = NULL;
  ccn_piece piece = {.size = sizeof piece};
  ccn_tensor_info info = {.size = sizeof info};
  if (ccn_module_load(c, "m", program, sizeof program - 1, &m) != CCN_OK) exit(1);
  ok(ccn_tensor_borrow(c, &local, gs, 2, 1, released, &back, &tg) == CCN_OK &&
       ccn_tensor_borrow(c, &whole, ps, 1, 0, released, &back, &tp) == CCN_OK &&
       ccn_tensor_borrow(c, &whole, qs, 2, 0, NULL, NULL, &tq) == CCN_OK,
     "borrowed");
  ok(ccn_tensor_piece(tg, 1, &piece) == CCN_OK && piece.data == g1 &&
       ccn_tensor_piece(tp, 1, &piece) == CCN_OK && piece.data == p,
     "without a copy");
  ok(ccn_tensor_info_get(tg, &info) == CCN_OK && info.borrowed && info.read_only &&
       ccn_tensor_info_get(tp, &info) == CCN_OK && info.borrowed && !info.read_only,
     "as lent");
  ok(run(m, "step", tg, tp, &r) == CCN_OK && p[0] == 7 && p[3] == 37 &&
       ccn_tensor_piece(tp, 0, &piece) == CCN_OK && piece.data == p,
     "an update writes into the host's memory");
  p[0] = 100;
  ok(ccn_tensor_read(r, x, sizeof x) == CCN_OK && x[0] == 7, "the result does not stand there");
  ccn_tensor_release(r);
  p[0] = 7;
  ok(run(m, "same", tp, NULL, &r) == CCN_OK && ccn_tensor_piece(r, 0, &piece) == CCN_OK && piece.data != p,
     "nor an argument that is returned");
  ccn_tensor_release(r);
  ok(run(m, "into", tp, tq, NULL) == CCN_OK && p[0] == 5 && p[3] == 8 && q[0] == 5,
     "one borrowed tensor into another");
  ok(run(m, "half", tq, NULL, NULL) == CCN_OK && q[0] == 2.5f && q[3] == 4,
     "an update of an argument that was converted");
  p[1] = 17;
  ok(run(m, "twin", tp, NULL, &r) == CCN_OK && ccn_tensor_read(r, x, sizeof x) == CCN_OK && x[1] == 17,
     "a copy");
  p[1] = 27;
  ok(ccn_tensor_read(r, x, sizeof x) == CCN_OK && x[1] == 17, "is one");
  ccn_tensor_release(r);
  ok(run(m, "rank0", tp, NULL, &r) == CCN_OK && ccn_tensor_piece(r, 0, &piece) == CCN_OK && piece.data != p,
     "and so is one rank's value");
  ccn_tensor_release(r);
  ccn_diagnostic d = {.size = sizeof d};
  ccn_tensor *ro = NULL;
  const float before[4] = {1, 2, 3, 4};
  void *ros[1] = {(void *)before};
  ok(ccn_tensor_borrow(c, &whole, ros, 1, 1, NULL, NULL, &ro) == CCN_OK &&
       run(m, "step", tg, ro, NULL) == CCN_ERROR && ccn_diagnostic_get(c, 0, &d) == CCN_OK &&
       !strcmp(d.code, "CCN0226") && ccn_tensor_write(ro, x, sizeof x) == CCN_UNSUPPORTED &&
       ccn_tensor_write_rank(ro, 0, x, sizeof x) == CCN_UNSUPPORTED,
     "read-only memory refuses updates");
  ok(run(m, "half", ro, NULL, NULL) == CCN_ERROR, "also behind a conversion");
  ccn_tensor_release(ro);
  ok(ccn_tensor_write(tq, before, sizeof before) == CCN_OK && q[3] == 4 &&
       ccn_tensor_write_rank(tq, 0, g1, sizeof g1) == CCN_OK && q[3] == 2,
     "writes go to the host's memory");
  void *two[2] = {p, q}, *none[1] = {NULL}, *odd[1] = {(char *)p + 1};
  ok(ccn_tensor_borrow(c, &whole, two, 2, 0, released, &back, &bad) == CCN_INVALID_ARGUMENT && !bad &&
       ccn_tensor_borrow(c, &whole, none, 1, 0, released, &back, &bad) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_borrow(c, &whole, odd, 1, 0, released, &back, &bad) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_borrow(c, &sliced, ps, 1, 0, released, &back, &bad) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_borrow(c, &whole, ps, 0, 0, released, &back, &bad) == CCN_INVALID_ARGUMENT && back == 0,
     "pieces that do not fit are not taken");
  ccn_tensor_release(tg);
  ok(back == 1, "what only the host has is given back at once");
  ccn_tensor_release(tp), ccn_tensor_release(tq);
  ok(back == 1, "what a script has had, not yet");
  ccn_module_release(m);
  ccn_context_free(c);
  ok(back == 2, "and given back in the end");
}

static void test_release(void) {
  ccn_context *c = make(2);
  ccn_module *m = NULL;
  int64_t n = 4;
  int back = 0;
  float g[4] = {1, 1, 1, 1}, p[4] = {0};
  void *gs[2] = {g, g}, *ps[1] = {p};
  ccn_tensor_desc local = f32(1, &n, "local"), whole = f32(1, &n, NULL);
  ccn_tensor *tg = NULL, *tp = NULL;
  if (ccn_module_load(c, "m", program, sizeof program - 1, &m) != CCN_OK) exit(1);
  if (ccn_tensor_borrow(c, &local, gs, 2, 1, released, &back, &tg) != CCN_OK ||
      ccn_tensor_borrow(c, &whole, ps, 1, 0, released, &back, &tp) != CCN_OK)
    exit(1);
  ccn_call *call = call_of(m, "step", tg, tp);
  ok(ccn_call_run(call) == CCN_OK && p[0] == -2, "a call with borrowed memory");
  ccn_tensor_release(tg), ccn_tensor_release(tp);
  ok(back == 0 && ccn_call_run(call) == CCN_OK && p[0] == -4, "the call holds it");
  ccn_call_release(call);
  ok(back == 2, "until it is released: given back at once");
  ok(ccn_tensor_borrow(c, &whole, ps, 1, 0, released, &back, &tp) == CCN_OK &&
       ccn_session_reset(c) == CCN_OK && back == 2,
     "a reset leaves it");
  ccn_context_free(c);
  ok(back == 2, "and so does the end of the context");
  ccn_tensor_release(tp);
  ok(back == 3, "until its owner lets go");
  ccn_module_release(m);
}

int main(void) {
  test_dtypes();
  test_whole();
  test_pieces();
  test_borrowed();
  test_release();
  printf("1..%d\n", tests);
  return failures != 0;
}
