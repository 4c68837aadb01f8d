# ccn.py: CCN from Python, by ctypes alone: one file that may be copied beside a program and imported.
#
# Arrays go in and out as DLPack without a copy: whatever has __dlpack__ (NumPy, PyTorch, JAX on the CPU) is an
# argument, and a Tensor has __dlpack__ for np.from_dlpack. Both capsule forms are spoken: that of DLPack 1.x, and the
# older one of NumPy before 2.1. The library is found by its name; CCN_LIBRARY in the environment says where else it is.
#
#   import ccn, numpy as np
#   c = ccn.Context()
#   double = c.module("program double(x: f32[N]) { return x * 2 }")["double"]
#   y = np.from_dlpack(double(np.ones(3, np.float32)))
# SPDX-License-Identifier: Apache-2.0
import ctypes
import ctypes.util
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint8
from ctypes import c_uint16, c_uint32, c_uint64, c_void_p, py_object

OK, ERROR = 0, 1
MAX_DIMS = 8


class CcnError(Exception):
    """A status that is not OK; the text has the diagnostics."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def _library():
    path = os.environ.get("CCN_LIBRARY") or ctypes.util.find_library("ccn") or "libccn.so.0"
    return ctypes.CDLL(path)


_lib = _library()
_write_fn = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)


def _declare(name, *arguments, result=c_int):
    f = getattr(_lib, name)
    f.argtypes, f.restype = arguments, result
    return f


# ---- DLPack --------------------------------------------------------------------------------------------------

class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("dl_tensor", DLTensor)]


_py = ctypes.pythonapi
_py.PyCapsule_IsValid.argtypes, _py.PyCapsule_IsValid.restype = [py_object, c_char_p], c_int
_py.PyCapsule_GetPointer.argtypes, _py.PyCapsule_GetPointer.restype = [py_object, c_char_p], c_void_p
_py.PyCapsule_SetName.argtypes, _py.PyCapsule_SetName.restype = [py_object, c_char_p], c_int
_py.PyCapsule_New.argtypes, _py.PyCapsule_New.restype = [c_void_p, c_char_p, c_void_p], py_object

# Names of capsules; PyCapsule keeps the pointers, so the bytes live as long as the module.
NEW, OLD, USED_NEW, USED_OLD = b"dltensor_versioned", b"dltensor", b"used_dltensor_versioned", b"used_dltensor"
_capsule_destructor = ctypes.PYFUNCTYPE(None, c_void_p)
_raw_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _py))
_raw_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _py))


@_capsule_destructor
def _delete_unused(capsule):
    """A capsule that nobody took over: its tensor is deleted here."""
    for name, form in ((NEW, DLManagedTensorVersioned), (OLD, DLManagedTensor)):
        if _raw_valid(capsule, name):
            at = _raw_pointer(capsule, name)
            ctypes.CFUNCTYPE(None, c_void_p)(form.from_address(at).deleter)(at)


def _capsule(array):
    """Anything with __dlpack__ → (capsule, whether it is of the newer form)."""
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # it speaks the older form only
        capsule = array.__dlpack__()
    return capsule, bool(_py.PyCapsule_IsValid(capsule, NEW))


# ---- the library ---------------------------------------------------------------------------------------------

class _Options(Structure):  # the first members of ccn_options; the size says so
    _fields_ = [("size", c_size_t), ("alloc", c_void_p), ("alloc_user", c_void_p), ("memory_limit", c_size_t),
                ("ranks", c_int32), ("print", _write_fn), ("print_user", c_void_p)]


class _Desc(Structure):
    _fields_ = [("size", c_size_t), ("dtype", c_int), ("ndim", c_int32), ("shape", POINTER(c_int64)),
                ("placement", c_char_p)]


class _Info(Structure):
    _fields_ = [("size", c_size_t), ("dtype", c_int), ("ndim", c_int32), ("shape", c_int64 * MAX_DIMS),
                ("strides", c_int64 * MAX_DIMS), ("ranks", c_uint32), ("borrowed", c_int32),
                ("read_only", c_int32), ("placement", c_char_p), ("in_slices", c_int32)]


_context_create = _declare("ccn_context_create", POINTER(_Options), POINTER(c_void_p))
_context_free = _declare("ccn_context_free", c_void_p, result=None)
_module_load = _declare("ccn_module_load", c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_void_p))
_module_release = _declare("ccn_module_release", c_void_p, result=None)
_module_function = _declare("ccn_module_function", c_void_p, c_char_p, POINTER(c_void_p))
_param_find = _declare("ccn_function_param_find", c_void_p, c_char_p)
_function_params = _declare("ccn_function_params", c_void_p, result=c_size_t)
_call_create = _declare("ccn_call_create", c_void_p, POINTER(c_void_p))
_call_release = _declare("ccn_call_release", c_void_p, result=None)
_set_i64 = _declare("ccn_call_set_i64", c_void_p, c_size_t, c_int64)
_set_f64 = _declare("ccn_call_set_f64", c_void_p, c_size_t, c_double)
_set_bool = _declare("ccn_call_set_bool", c_void_p, c_size_t, c_int)
_set_tensor = _declare("ccn_call_set_tensor", c_void_p, c_size_t, c_void_p)
_call_run = _declare("ccn_call_run", c_void_p)
_call_results = _declare("ccn_call_results", c_void_p, result=c_size_t)
_call_result = _declare("ccn_call_result", c_void_p, c_size_t, POINTER(c_void_p))
_tensor_release = _declare("ccn_tensor_release", c_void_p, result=None)
_tensor_info = _declare("ccn_tensor_info_get", c_void_p, POINTER(_Info))
_from_new = _declare("ccn_tensor_from_dlpack", c_void_p, POINTER(_Desc), POINTER(c_void_p), c_size_t, POINTER(c_void_p))
_from_old = _declare("ccn_tensor_from_dlpack_old", c_void_p, POINTER(_Desc), POINTER(c_void_p), c_size_t,
                     POINTER(c_void_p))
_to_new = _declare("ccn_tensor_to_dlpack", c_void_p, c_uint32, c_uint32, c_uint32, POINTER(c_void_p))
_to_old = _declare("ccn_tensor_to_dlpack_old", c_void_p, c_uint32, POINTER(c_void_p))
_status_name = _declare("ccn_status_name", c_int, result=c_char_p)
_dtype_name = _declare("ccn_dtype_name", c_int, result=c_char_p)
_diagnostics = _declare("ccn_diagnostics_write", c_void_p, c_int, _write_fn, c_void_p, result=None)
_report = _declare("ccn_report_write", c_void_p, _write_fn, c_void_p)


class _Text:
    """A ccn_write_fn that collects."""

    def __init__(self, tell=None):
        self.parts = []
        self.fn = _write_fn(lambda at, size, user: (tell or self.parts.append)(ctypes.string_at(at, size)))

    def __str__(self):
        return b"".join(self.parts).decode("utf-8", "replace")


class Context:
    """A CCN context with its session. print_to is a function that gets what scripts print."""

    def __init__(self, ranks=0, print_to=None):
        self._print = _Text(lambda data: print_to(data.decode("utf-8", "replace")) if print_to else None)
        o = _Options(size=ctypes.sizeof(_Options), ranks=ranks, print=self._print.fn)
        self._as_parameter_ = c_void_p()
        self.check(_context_create(byref(o), byref(self._as_parameter_)))

    def __del__(self):
        if self._as_parameter_:
            _context_free(self)

    def check(self, status):
        if status == OK:
            return
        text = _Text()
        if status == ERROR:
            _diagnostics(self, 0, text.fn, None)
        raise CcnError(status, str(text) or _status_name(status).decode())

    def module(self, text, name="<text>"):
        return Module(self, text, name)

    def tensor(self, array, placement=None):
        """A tensor in the memory of `array`, which has __dlpack__; with a placement, of one piece for each rank."""
        return _import(self, array if placement else [array], placement)

    def report(self):
        """What the context has used, as JSON."""
        text = _Text()
        self.check(_report(self, text.fn, None))
        return str(text)


class Module:
    def __init__(self, context, text, name):
        self.context, data = context, text.encode()
        self._as_parameter_ = c_void_p()
        context.check(_module_load(context, name.encode(), data, len(data), byref(self._as_parameter_)))

    def __del__(self):
        if self._as_parameter_:
            _module_release(self)

    def __getitem__(self, name):
        """A function by its name: "adam", "adam@zero"."""
        return Function(self, name)


class Function:
    """Called with arrays, tensors and numbers; gives None, a Tensor, or a tuple of them."""

    def __init__(self, module, name):
        self.module = module
        self.context = module.context
        f = c_void_p()
        self.context.check(_module_function(module, name.encode(), byref(f)))
        self._function, self._as_parameter_ = f, c_void_p()
        self.context.check(_call_create(f, byref(self._as_parameter_)))

    def __del__(self):
        if self._as_parameter_:
            _call_release(self)

    def set(self, i, value):
        """Sets argument number i, or the one of that name; it stays set for later calls."""
        if isinstance(i, str):
            i = _param_find(self._function, i.encode())
        if isinstance(value, bool):
            status = _set_bool(self, i, value)
        elif isinstance(value, int):
            status = _set_i64(self, i, value)
        elif isinstance(value, float):
            status = _set_f64(self, i, value)
        else:
            tensor = value if isinstance(value, Tensor) else self.context.tensor(value)
            status = _set_tensor(self, i, tensor)
        self.context.check(status)

    def __call__(self, *args, **named):
        for i, value in [*enumerate(args), *named.items()]:
            self.set(i, value)
        self.context.check(_call_run(self))
        out = []
        for i in range(_call_results(self)):
            t = c_void_p()
            self.context.check(_call_result(self, i, byref(t)))
            out.append(Tensor(self.context, t))
        return None if not out else out[0] if len(out) == 1 else tuple(out)


def _import(context, arrays, placement):
    given = [_capsule(a) for a in arrays]
    versioned = given[0][1]
    if any(new != versioned for _, new in given):
        raise TypeError("the arrays speak two forms of DLPack")
    name, used, form, take = ((NEW, USED_NEW, DLManagedTensorVersioned, _from_new) if versioned
                              else (OLD, USED_OLD, DLManagedTensor, _from_old))
    at = (c_void_p * len(given))(*[_py.PyCapsule_GetPointer(capsule, name) for capsule, _ in given])
    desc = None
    if placement:  # of pieces that are as large as the whole: "local", "partial(sum)"
        one = form.from_address(at[0]).dl_tensor
        code = next((d for d in range(10) if _same_dtype(d, one)), 0)
        desc = byref(_Desc(ctypes.sizeof(_Desc), code, one.ndim, one.shape, placement.encode()))
    t = c_void_p()
    context.check(take(context, desc, at, len(given), byref(t)))
    for capsule, _ in given:  # the library has them now
        _py.PyCapsule_SetName(capsule, used)
    return Tensor(context, t)


def _same_dtype(number, t):
    code, bits = [(2, 64), (2, 32), (2, 16), (4, 16), (0, 64), (0, 32), (0, 16), (0, 8), (1, 8), (6, 8)][number]
    return (t.code, t.bits) == (code, bits)


class Tensor:
    def __init__(self, context, handle):
        self.context, self._as_parameter_ = context, handle

    def __del__(self):
        if self._as_parameter_:
            _tensor_release(self)

    def _info(self):
        info = _Info(size=ctypes.sizeof(_Info))
        self.context.check(_tensor_info(self, byref(info)))
        return info

    @property
    def shape(self):
        info = self._info()
        return tuple(info.shape[:info.ndim])

    @property
    def dtype(self):
        return _dtype_name(self._info().dtype).decode()

    @property
    def placement(self):
        return self._info().placement.decode()

    def piece(self, rank):
        """What one rank has, for np.from_dlpack."""
        return Piece(self, rank)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None, rank=0):
        if copy:
            raise BufferError("copies are the receiver's business")
        at = c_void_p()
        if max_version and max_version[0] >= 1:
            status, name = _to_new(self, rank, max_version[0], max_version[1], byref(at)), NEW
        else:
            status, name = _to_old(self, rank, byref(at)), OLD
        self.context.check(status)
        return _py.PyCapsule_New(at, name, ctypes.cast(_delete_unused, c_void_p))


class Piece:
    def __init__(self, tensor, rank):
        self.tensor, self.rank = tensor, rank

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **how):
        return self.tensor.__dlpack__(rank=self.rank, **how)
