# dlpack.py FOLDER: NumPy arrays into CCN and back through FOLDER/ccn.py; prints "ok ..." for each test.
# SPDX-License-Identifier: Apache-2.0
import gc
import json
import sys
import weakref

import numpy as np

sys.path.insert(0, sys.argv[1])
import ccn  # noqa: E402


def ok(condition, what):
    print(("ok " if condition else "not ok ") + what, flush=True)


class Old:
    """Speaks the older form only, as NumPy before 2.1 does."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


c = ccn.Context()
copy = c.module("program f(x: f32[N, M]) { return x * 1 }\nprogram up(x: f32[N]) { return update(x, x + 1) }")
identity, up = copy["f"], copy["up"]

# in
x = np.arange(6, dtype=np.float32).reshape(2, 3)
t = c.tensor(x)
ok(t.shape == (2, 3) and t.dtype == "f32", "an array in")
y = np.from_dlpack(identity(t))
ok(np.array_equal(x, y), "and out")
v = np.zeros(4, np.float32)
up(v), up(v)
ok(v[0] == 2, "an update writes into the array")
ok(np.array_equal(np.from_dlpack(identity(x.T)), x.T), "columns are copied")
ok(np.array_equal(np.from_dlpack(identity(Old(x))), x), "the older form in")

# all dtypes that NumPy and DLPack share
for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"):
    a = np.arange(5).astype(name)
    ok(np.array_equal(np.from_dlpack(c.tensor(a)), a), f"{name} both ways")

# out
made = c.module("program make() { return iota(f32[5]) }")["make"]
out = made()
a, b = np.from_dlpack(out), np.from_dlpack(out)
ok(a.ctypes.data == b.ctypes.data and list(a) == [0, 1, 2, 3, 4], "without a copy")
del out, made
gc.collect()
ok(list(a) == [0, 1, 2, 3, 4], "the memory lives as long as the array")
new = identity(x).__dlpack__(max_version=(1, 0))
ok("dltensor_versioned" in repr(new), "the newer form for who asks for it")
old = identity(x).__dlpack__()
ok('"dltensor"' in repr(old), "the older one for who does not")
del new, old  # capsules that nobody took over

# lifetimes
a = np.ones(1000, np.float32)
gone = weakref.ref(a)
t = c.tensor(a)
del a
gc.collect()
ok(gone() is not None, "an array lives as long as its tensor")
del t
gc.collect()
ok(gone() is None, "and no longer")
before = json.loads(c.report())["memory_live"]
for _ in range(200):
    np.from_dlpack(identity(x))
    identity(x).__dlpack__()
gc.collect()
after = json.loads(c.report())["memory_live"]
ok(after < before + 20000, f"nothing is left behind ({before}, {after})")

# ranks
two = ccn.Context(ranks=2)
m = two.module("mesh (dp)\nprogram mean(g: f32[N] local) { return allreduce(avg, g) }")
g = two.tensor([np.ones(3, np.float32), np.full(3, 3, np.float32)], "local")
ok(np.from_dlpack(g.piece(1))[0] == 3 and list(np.from_dlpack(m["mean"](g))) == [2, 2, 2], "a piece for each rank")
try:
    np.from_dlpack(g.piece(2))
    ok(False, "no such rank")
except ccn.CcnError as e:
    ok("not found" in str(e), "no such rank")
try:
    identity(np.ones(3, np.float32))
    ok(False, "a type error")
except ccn.CcnError as e:
    ok("CCN0305" in str(e), "a type error")
