// adam.cpp: the same in C++: handles that release themselves, errors as exceptions, and the data of a std::vector lent
// without a copy.
// Build: c++ -std=c++11 adam.cpp $(pkg-config --cflags --libs ccn)
// SPDX-License-Identifier: Apache-2.0
#include <ccn_dlpack.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::string text = R"(
program adam(g: f32[N], p: f32[N], m: f32[N], v: f32[N], lr: f32, t: f32) {
  m1 = update(m, 0.9 * m + 0.1 * g)
  v1 = update(v, 0.999 * v + 0.001 * g * g)
  return update(p, p - lr * (m1 / (1 - 0.9 ** t)) / (sqrt(v1 / (1 - 0.999 ** t)) + 1e-8))
}
)";

template <typename T> using handle = std::unique_ptr<T, void (*)(T *)>;
using context = handle<ccn_context>;

void append(const char *s, size_t size, void *user) { static_cast<std::string *>(user)->append(s, size); }

void check(const context &c, ccn_status s) {
  if (s == CCN_OK) return;
  std::string why = ccn_status_name(s);
  if (s == CCN_ERROR) why.clear(), ccn_diagnostics_write(c.get(), 0, append, &why);
  throw std::runtime_error(why);
}

// A vector and the managed tensor through which it is lent; both go when the library lets go of the tensor.
struct lent {
  std::vector<float> data;
  int64_t shape[1];
  DLManagedTensorVersioned managed;
};

lent *lend(const context &c, ccn_call *call, size_t i, std::vector<float> data) {
  std::unique_ptr<lent> l(new lent());
  l->data = std::move(data);
  l->shape[0] = static_cast<int64_t>(l->data.size());
  l->managed.version.major = 1;
  l->managed.manager_ctx = l.get();
  l->managed.deleter = [](DLManagedTensorVersioned *m) { delete static_cast<lent *>(m->manager_ctx); };
  l->managed.dl_tensor.data = l->data.data();
  l->managed.dl_tensor.device.device_type = kDLCPU;
  l->managed.dl_tensor.ndim = 1;
  l->managed.dl_tensor.dtype = DLDataType{kDLFloat, 32, 1};
  l->managed.dl_tensor.shape = l->shape;
  DLManagedTensorVersioned *m = &l->managed;
  ccn_tensor *t = nullptr;
  check(c, ccn_tensor_from_dlpack(c.get(), nullptr, &m, 1, &t));
  lent *mine = l.release(); // it is the library's now
  const handle<ccn_tensor> tensor(t, ccn_tensor_release);
  check(c, ccn_call_set_tensor(call, i, t));
  return mine;
}

void train() {
  ccn_context *raw = nullptr;
  if (ccn_context_create(nullptr, &raw) != CCN_OK) throw std::bad_alloc();
  const context c(raw, ccn_context_free);
  ccn_module *module = nullptr;
  check(c, ccn_module_load(raw, "adam.ccn", text.data(), text.size(), &module));
  const handle<ccn_module> keep_module(module, ccn_module_release);
  const ccn_function *adam = nullptr;
  check(c, ccn_module_function(module, "adam", &adam));
  ccn_call *call = nullptr;
  check(c, ccn_call_create(adam, &call));
  const handle<ccn_call> keep_call(call, ccn_call_release);
  const size_t n = 1000;
  lent *g = lend(c, call, 0, std::vector<float>(n)), *p = lend(c, call, 1, std::vector<float>(n));
  lend(c, call, 2, std::vector<float>(n)), lend(c, call, 3, std::vector<float>(n));
  check(c, ccn_call_set_f64(call, 4, 0.1));
  for (int t = 1; t <= 10; t++) {
    for (size_t i = 0; i < n; i++) g->data[i] = p->data[i] - 1; // the gradient of (p - 1)^2 / 2
    check(c, ccn_call_set_i64(call, 5, t));
    check(c, ccn_call_run(call));
  }
  std::printf("p[0] = %.4f after 10 steps\n", static_cast<double>(p->data[0]));
  const std::string wrong = "let x = ones(f16[2]) * ones(f32[2])";
  check(c, ccn_eval(raw, "wrong", wrong.data(), wrong.size(), nullptr));
}

} // namespace

int main() {
  try {
    train();
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return 0;
}
