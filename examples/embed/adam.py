# adam.py: the same from Python: NumPy arrays in and out without a copy (python3 adam.py; ccn.py stands beside it).
# SPDX-License-Identifier: Apache-2.0
import ccn
import numpy as np

TEXT = """
program adam(g: f32[N], p: f32[N], m: f32[N], v: f32[N], lr: f32, t: f32) {
  m1 = update(m, 0.9 * m + 0.1 * g)
  v1 = update(v, 0.999 * v + 0.001 * g * g)
  return update(p, p - lr * (m1 / (1 - 0.9 ** t)) / (sqrt(v1 / (1 - 0.999 ** t)) + 1e-8))
}
"""

context = ccn.Context()
adam = context.module(TEXT, "adam.ccn")["adam"]
g, p, m, v = (np.zeros(1000, np.float32) for _ in range(4))
for t in range(1, 11):
    g[:] = p - 1  # the gradient of (p - 1)^2 / 2
    adam(g, p, m, v, 0.1, t)
print(f"p[0] = {p[0]:.4f} after 10 steps")

double = context.module("program double(x: f32[N]) { return x * 2 }")["double"]
result = np.from_dlpack(double(p))
assert result[0] == 2 * p[0] and not result.flags.owndata

try:
    context.module("let x = ones(f16[2]) * ones(f32[2])", "wrong")
except ccn.CcnError as e:
    print(e)
