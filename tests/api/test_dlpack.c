/* test_dlpack.c: DLPack in both forms and both ways: no copies, strides, flags, and each deleter exactly once.
 * SPDX-License-Identifier: Apache-2.0 */
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

static int deleted;
static void delete_new(DLManagedTensorVersioned *m) { deleted++, m->deleter = NULL; }
static void delete_old(DLManagedTensor *m) { deleted++, m->deleter = NULL; }

static DLTensor lend(void *data, int32_t ndim, int64_t *shape, int64_t *strides) {
  DLTensor t = {.data = data,
                .device = {kDLCPU, 0},
                .ndim = ndim,
                .dtype = {kDLFloat, 32, 1},
                .shape = shape,
                .strides = strides};
  return t;
}

static DLManagedTensorVersioned versioned(DLTensor t, uint64_t flags) {
  DLManagedTensorVersioned m = {.version = {1, 0}, .deleter = delete_new, .flags = flags, .dl_tensor = t};
  return m;
}

static ccn_context *make(int ranks) {
  ccn_options o;
  ccn_context *c = NULL;
  ccn_options_init(&o, sizeof o);
  o.ranks = ranks;
  if (ccn_context_create(&o, &c) != CCN_OK) exit(1);
  return c;
}

static const char program[] =
  "mesh (dp)\n"
  "program step(g: f32[N] local, p: f32[N]) { return update(p, p - allreduce(sum, g)) }\n";

static void test_import(void) {
  ccn_context *c = make(2);
  ccn_module *m = NULL;
  const ccn_function *f = NULL;
  ccn_call *call = NULL;
  int64_t n = 3;
  float p[3] = {10, 20, 30}, g0[3] = {1, 1, 1}, g1[3] = {2, 2, 2};
  DLManagedTensorVersioned mp = versioned(lend(p, 1, &n, NULL), 0),
                           m0 = versioned(lend(g0, 1, &n, NULL), DLPACK_FLAG_BITMASK_READ_ONLY);
  DLManagedTensor m1 = {.dl_tensor = lend(g1, 1, &n, NULL), .deleter = delete_old}, mo = m1;
  DLManagedTensorVersioned *one[1] = {&mp}, *pair[2] = {&m0, &m0};
  DLManagedTensor *olds[2] = {&m1, &mo};
  ccn_tensor_desc local = {
    .size = sizeof local, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &n, .placement = "local"};
  ccn_tensor *tp = NULL, *tg = NULL, *bad = NULL;
  ccn_piece piece = {.size = sizeof piece};
  if (ccn_module_load(c, "m", program, sizeof program - 1, &m) != CCN_OK ||
      ccn_module_function(m, "step", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK)
    exit(1);
  deleted = 0;
  ok(ccn_tensor_from_dlpack(c, NULL, one, 1, &tp) == CCN_OK && ccn_tensor_piece(tp, 1, &piece) == CCN_OK &&
       piece.data == p,
     "without a copy");
  ok(ccn_tensor_from_dlpack_old(c, &local, olds, 2, &tg) == CCN_OK &&
       ccn_tensor_piece(tg, 1, &piece) == CCN_OK && piece.data == g1,
     "two local pieces in the older form");
  ok(ccn_call_set_tensor(call, 0, tg) == CCN_OK && ccn_call_set_tensor(call, 1, tp) == CCN_OK &&
       ccn_call_run(call) == CCN_OK && p[0] == 6 && p[2] == 26,
     "an update writes into the lender's memory");
  ccn_tensor_release(tg);
  ok(ccn_tensor_from_dlpack(c, &local, pair, 2, &tg) == CCN_OK &&
       ccn_call_set_tensor(call, 0, tg) == CCN_OK && deleted == 2,
     "what is replaced is deleted at once");
  ok(ccn_call_run(call) == CCN_OK && p[0] == 4 && ccn_call_set_tensor(call, 1, tg) == CCN_OK &&
       ccn_call_run(call) == CCN_ERROR,
     "read-only ones are read");
  ccn_call_release(call);
  ccn_tensor_release(tg);
  ok(deleted == 3, "one deleter for two ranks, once");
  m0 = versioned(lend(g0, 1, &n, NULL), DLPACK_FLAG_BITMASK_READ_ONLY);
  one[0] = &m0;
  if (ccn_module_function(m, "step", &f) != CCN_OK || ccn_call_create(f, &call) != CCN_OK) exit(1);
  ccn_diagnostic d = {.size = sizeof d};
  ccn_tensor *ro = NULL;
  bool good = ccn_tensor_from_dlpack(c, NULL, one, 1, &ro) == CCN_OK;
  ccn_tensor_desc zero = local;
  good = good && ccn_tensor_create(c, &zero, &tg) == CCN_OK && ccn_call_set_tensor(call, 0, tg) == CCN_OK &&
         ccn_call_set_tensor(call, 1, ro) == CCN_OK && ccn_call_run(call) == CCN_ERROR;
  ok(good && ccn_diagnostic_get(c, 0, &d) == CCN_OK && !strcmp(d.code, "CCN0226"), "and refuse updates");
  ccn_call_release(call);
  ccn_tensor_release(tg), ccn_tensor_release(ro);
  deleted = 0;
  DLManagedTensorVersioned w = versioned(lend(g0, 1, &n, NULL), 0);
  DLManagedTensorVersioned *wrong[1] = {&w};
  w.version.major = 2;
  good = ccn_tensor_from_dlpack(c, NULL, wrong, 1, &bad) == CCN_UNSUPPORTED && !bad;
  w.version.major = 1;
  w.dl_tensor.device.device_type = kDLCUDA;
  good = good && ccn_tensor_from_dlpack(c, NULL, wrong, 1, &bad) == CCN_UNSUPPORTED;
  w.dl_tensor.device.device_type = kDLCPU;
  w.dl_tensor.dtype.lanes = 2;
  good = good && ccn_tensor_from_dlpack(c, NULL, wrong, 1, &bad) == CCN_UNSUPPORTED;
  w.dl_tensor.dtype.lanes = 1;
  good = good && ccn_tensor_from_dlpack(c, &local, wrong, 1, &bad) == CCN_INVALID_ARGUMENT;
  int64_t four = 4;
  ccn_tensor_desc longer = {.size = sizeof longer, .dtype = CCN_DTYPE_F32, .ndim = 1, .shape = &four};
  good = good && ccn_tensor_from_dlpack(c, &longer, wrong, 1, &bad) == CCN_INVALID_ARGUMENT;
  longer.shape = &n;
  longer.dtype = CCN_DTYPE_I32;
  good = good && ccn_tensor_from_dlpack(c, &longer, wrong, 1, &bad) == CCN_INVALID_ARGUMENT;
  wrong[0] = NULL;
  good = good && ccn_tensor_from_dlpack(c, NULL, wrong, 1, &bad) == CCN_INVALID_ARGUMENT &&
         ccn_tensor_from_dlpack(c, NULL, NULL, 1, &bad) == CCN_INVALID_ARGUMENT;
  ok(good && !bad && deleted == 0, "what is refused stays the lender's");
  ccn_module_release(m);
  ccn_context_free(c);
  ccn_tensor_release(tp);
  ok(deleted == 1, "the last one goes with its owner");
}

static void test_strides(void) {
  ccn_context *c = make(0);
  int64_t shape[2] = {2, 3}, columns[2] = {1, 2}, back[2] = {-3, -1}, any[2] = {7, 1}, row[2] = {1, 3};
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  DLManagedTensorVersioned m = versioned(lend(x, 2, shape, columns), 0);
  DLManagedTensorVersioned *one[1] = {&m};
  ccn_tensor *t = NULL;
  ccn_piece p = {.size = sizeof p};
  deleted = 0;
  ok(ccn_tensor_from_dlpack(c, NULL, one, 1, &t) == CCN_OK && deleted == 1 &&
       ccn_tensor_read(t, y, sizeof y) == CCN_OK && y[0] == 1 && y[1] == 3 && y[3] == 2 && y[5] == 6,
     "columns are copied");
  ccn_tensor_release(t);
  m = versioned(lend(x + 5, 2, shape, back), 0);
  ok(ccn_tensor_from_dlpack(c, NULL, one, 1, &t) == CCN_OK && ccn_tensor_read(t, y, sizeof y) == CCN_OK &&
       y[0] == 6 && y[5] == 1,
     "backwards too");
  ccn_tensor_release(t);
  m = versioned(lend(x, 2, row, any), 0);
  m.dl_tensor.byte_offset = 4;
  ok(ccn_tensor_from_dlpack(c, NULL, one, 1, &t) == CCN_OK && ccn_tensor_piece(t, 0, &p) == CCN_OK &&
       p.data == x + 1,
     "strides of single rows mean nothing; an offset counts");
  ccn_tensor_release(t);
  m = versioned(lend((char *)x + 1, 1, row, NULL), 0);
  ok(ccn_tensor_from_dlpack(c, NULL, one, 1, &t) == CCN_OK && ccn_tensor_piece(t, 0, &p) == CCN_OK &&
       p.data != (char *)x + 1,
     "what is not aligned is copied");
  ccn_tensor_release(t);
  ok(deleted == 4, "each deleter once");
  ccn_context_free(c);
}

static void test_export(void) {
  static const DLDataType dtypes[] = {
    {kDLFloat, 64, 1}, {kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLInt, 64, 1},
    {kDLInt, 32, 1},   {kDLInt, 16, 1},   {kDLInt, 8, 1},    {kDLUInt, 8, 1},    {kDLBool, 8, 1}};
  ccn_context *c = make(2), *d = make(0);
  int64_t shape[2] = {2, 3};
  bool good = true;
  ccn_tensor *t = NULL, *u = NULL;
  ccn_piece p = {.size = sizeof p}, q = {.size = sizeof q};
  DLManagedTensorVersioned *m = NULL;
  DLManagedTensor *old = NULL;
  for (int k = 0; k < 10; k++) { /* there and back */
    ccn_tensor_desc desc = {.size = sizeof desc, .dtype = (ccn_dtype)k, .ndim = 2, .shape = shape};
    ccn_tensor_info info = {.size = sizeof info};
    good = good && ccn_tensor_create(c, &desc, &t) == CCN_OK &&
           ccn_tensor_to_dlpack(t, 0, 1, 0, &m) == CCN_OK &&
           !memcmp(&m->dl_tensor.dtype, &dtypes[k], sizeof dtypes[k]) &&
           ccn_tensor_from_dlpack(d, NULL, &m, 1, &u) == CCN_OK && ccn_tensor_info_get(u, &info) == CCN_OK &&
           info.dtype == (ccn_dtype)k && info.read_only && info.shape[1] == 3 &&
           ccn_tensor_piece(t, 0, &p) == CCN_OK && ccn_tensor_piece(u, 0, &q) == CCN_OK && p.data == q.data;
    ccn_tensor_release(t), ccn_tensor_release(u);
  }
  ok(good, "all dtypes, through two contexts without a copy");
  ccn_tensor_desc desc = {.size = sizeof desc, .dtype = CCN_DTYPE_F32, .ndim = 2, .shape = shape};
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
  good =
    ccn_tensor_copy_in(c, &desc, x, sizeof x, &t) == CCN_OK && ccn_tensor_to_dlpack(t, 0, 1, 2, &m) == CCN_OK;
  ok(good && m->version.major == 1 && m->version.minor == 0 && (m->flags & DLPACK_FLAG_BITMASK_READ_ONLY) &&
       m->dl_tensor.ndim == 2 && m->dl_tensor.shape[1] == 3 && m->dl_tensor.strides[0] == 3 &&
       m->dl_tensor.device.device_type == kDLCPU,
     "exported read-only, with strides");
  ok(ccn_tensor_write(t, y, sizeof y) == CCN_OK && ((float *)m->dl_tensor.data)[5] == 6,
     "it keeps the bytes of then");
  ok(ccn_tensor_to_dlpack_old(t, 0, &old) == CCN_OK && ((float *)old->dl_tensor.data)[5] == 0,
     "the older form");
  DLManagedTensorVersioned *none = NULL;
  ok(ccn_tensor_to_dlpack(t, 0, 0, 9, &none) == CCN_UNSUPPORTED && !none &&
       ccn_tensor_to_dlpack(t, 2, 1, 0, &none) == CCN_NOT_FOUND &&
       ccn_tensor_to_dlpack(NULL, 0, 1, 0, &none) == CCN_INVALID_ARGUMENT &&
       ccn_tensor_to_dlpack(t, 0, 1, 0, NULL) == CCN_INVALID_ARGUMENT,
     "what cannot be");
  ccn_tensor_release(t);
  ccn_context_free(c);
  ok(((float *)m->dl_tensor.data)[0] == 1 && old->dl_tensor.strides[1] == 1,
     "it outlives tensor and context");
  m->deleter(m);
  old->deleter(old);
  void *ps[1] = {x};
  ok(ccn_tensor_borrow(d, &desc, ps, 1, 0, NULL, NULL, &t) == CCN_OK &&
       ccn_tensor_to_dlpack(t, 0, 1, 0, &m) == CCN_OK && m->flags == 0 && m->dl_tensor.data == x,
     "borrowed memory is lent on as it is");
  m->deleter(m);
  ccn_tensor_release(t);
  ok(ccn_tensor_borrow(d, &desc, ps, 1, 1, NULL, NULL, &t) == CCN_OK &&
       ccn_tensor_to_dlpack_old(t, 0, &old) == CCN_UNSUPPORTED && !old,
     "read-only memory has no older form");
  ccn_tensor_release(t);
  ccn_context_free(d);
}

int main(void) {
  test_import();
  test_strides();
  test_export();
  printf("1..%d\n", tests);
  return failures != 0;
}
