/* script_files.c: load and save: files through the host's functions, and NumPy's .npy among them. What ends
 * in .safetensors: script_safetensors.c. SPDX-License-Identifier: Apache-2.0 */
#include "script_files.h"

#include <errno.h>

#include "npy.h"

static const char *errno_text(int e) {
  switch (e) { /* strerror is not for threads, nor the same in every locale */
  case ENOENT: return "there is no such file or folder";
  case EACCES:
  case EPERM: return "permission denied";
  case EISDIR: return "it is a folder";
  case ENOTDIR: return "a part of the path is no folder";
  case ENOSPC: return "no space left";
  case ENOMEM: return "not enough memory";
  case EROFS: return "the file system is read-only";
  case ENAMETOOLONG: return "the path is too long";
  case EFBIG: return "the file is too large";
  case EIO: return "input/output error";
  default: return NULL;
  }
}

CCN__NORETURN void ccn__file_error(ccn__rt *rt, uint16_t code, const ccn__arg *path, int e) {
  const char *why = errno_text(e), *verb = code == 701 ? "read" : "written";
  const char *hint = e == ENOENT  ? "paths start from the folder in which the command runs"
                     : e == EFBIG ? "what is no regular file is read up to a limit: the command's is 256 MiB"
                                  : "check the path and its permissions";
  if (why)
    ccn__fail(rt, code, path->span, why, hint, "`%.300s` cannot be %s: %s", path->value.string->at, verb,
              why);
  ccn__fail(rt, code, path->span, "failed", hint, "`%.300s` cannot be %s: error %d", path->value.string->at,
            verb, e);
}

static const char *path_of(ccn__rt *rt, const ccn__arg *a, bool granted) {
  if (a->value.kind != CCN__V_STRING)
    ccn__fail(rt, 805, a->span, ccn__val_kind_name(a->value), "as in: load(\"x.npy\")", "a path is a string");
  if (strlen(a->value.string->at) != a->value.string->n || a->value.string->n == 0)
    ccn__fail(rt, 805, a->span, "not a path", "write the name of a file",
              "a path is not empty and has no zero bytes");
  if (!granted)
    ccn__fail(rt, 704, a->span, "not granted", "the program that runs this script decides about files",
              "this host grants scripts no such access to files");
  return a->value.string->at;
}

/* ---- load ---------------------------------------------------------------------------------------------- */

static void reverse_bytes(char *p, size_t item, uint64_t n) {
  for (; n > 0; n--, p += item)
    for (size_t i = 0; i < item / 2; i++) {
      char c = p[i];
      p[i] = p[item - 1 - i];
      p[item - 1 - i] = c;
    }
}

/* Column-major → row-major. */
static void transpose(const ccn__npy *h, size_t item, const char *in, char *out) {
  int64_t at[CCN__MAX_RANK] = {0}, stride[CCN__MAX_RANK], s = 1;
  for (uint32_t d = 0; d < h->rank; d++) {
    stride[d] = s;
    s *= h->dim[d];
  }
  for (uint64_t i = 0; i < h->elements; i++, out += item) {
    int64_t from = 0;
    for (uint32_t d = 0; d < h->rank; d++) from += at[d] * stride[d];
    memcpy(out, in + (size_t)from * item, item);
    for (uint32_t d = h->rank; d > 0 && ++at[d - 1] == h->dim[d - 1]; d--) at[d - 1] = 0;
  }
}

static const char *shape_text(ccn__rt *rt, ccn__dtype t, uint32_t rank, const int64_t *dim) {
  ccn__text text;
  ccn__text_init(&text, rt->diags->arena);
  ccn__text_puts(&text, ccn__dtype_name(t));
  for (uint32_t d = 0; d < rank; d++) ccn__text_printf(&text, "%s%lld", d ? ", " : "[", (long long)dim[d]);
  if (rank) ccn__text_putc(&text, ']');
  return text.at;
}

/* The type after `as:` against the file; open names (negative) take the file's extents, equal names equal
 * ones. */
static void check_type(ccn__rt *rt, const ccn__arg *as, const ccn__typeval *t, const ccn__held *h) {
  const char *held = shape_text(rt, h->dtype, h->rank, h->dim), *cast = ccn__dtype_name((ccn__dtype)t->dtype);
  if (t->dtype != h->dtype) {
    ccn__diag *d =
      ccn__error(rt->diags, 703, as->span, "another dtype", "the file holds %s, not %s", held, cast);
    ccn__hint(rt->diags, d, "load it as %s and cast it: %s(x)", ccn__dtype_name(h->dtype), cast);
    ccn__rt_raise(rt, d);
  }
  if (!t->has_dims && h->rank)
    ccn__fail(rt, 305, as->span, "a scalar", "write its dims: as: f32[N]", "the file holds %s", held);
  if (t->rank != h->rank)
    ccn__fail(rt, 305, as->span, "another number of dims", "write one dim for each of the file's",
              "the file holds %s", held);
  int64_t open[CCN__MAX_RANK];
  for (uint32_t i = 0; i < CCN__MAX_RANK; i++) open[i] = -1;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t want = t->dim[d] < 0 ? open[-1 - t->dim[d]] : t->dim[d];
    if (want < 0) open[-1 - t->dim[d]] = want = h->dim[d];
    if (want != h->dim[d])
      ccn__fail(rt, t->dim[d] < 0 ? 304 : 305, as->span, "another shape",
                "write the file's extents, or names that are not in use",
                "the file holds %s: its dim %u is %lld, not %lld", held, d, (long long)h->dim[d],
                (long long)want);
  }
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind == CCN__PARTIAL)
      ccn__fail(rt, 805, as->span, "partial", "load it whole, sliced or local",
                "a file cannot hold a value that owes a reduction");
}

ccn__tensor *ccn__held_tensor(ccn__rt *rt, const ccn__arg *as, const ccn__held *h) {
  const ccn__cplace whole[CCN__MAX_AXES] = {{.unit = 1}, {.unit = 1}, {.unit = 1},
                                            {.unit = 1}, {.unit = 1}, {.unit = 1}};
  if (!as) return ccn__tensor_place(rt, h->dtype, h->rank, h->dim, whole, h->data);
  check_type(rt, as, as->value.type, h);
  return ccn__tensor_place(rt, h->dtype, h->rank, h->dim, as->value.type->place, h->data);
}

static ccn__val load_npy(ccn__rt *rt, const ccn__builtin_call *c, const char *file, size_t size) {
  ccn__npy h;
  const char *why = ccn__npy_parse(file, size, &h);
  if (!why && h.rank > CCN__MAX_RANK) why = "it has more than 8 dims";
  if (why)
    ccn__fail(rt, 703, c->at[0]->span, "not readable", "write it with numpy.save, in a dtype that CCN has",
              "`%.300s` cannot be loaded: %s", c->at[0]->value.string->at, why);
  if (c->at[2])
    ccn__fail(rt, 806, c->at[2]->span, "no names in .npy files", "leave it out",
              "a .npy file holds one tensor");
  size_t item = ccn__dtype_size(h.dtype), bytes = (size_t)h.elements * item;
  ccn__held held = {.dtype = h.dtype, .rank = h.rank, .dim = h.dim, .data = file + h.data};
  if (h.fortran && h.rank > 1) {
    char *rows = ccn__temp_memory(rt, bytes);
    transpose(&h, item, held.data, rows);
    held.data = rows;
  }
  if (h.swapped) {
    char *own = ccn__temp_memory(rt, bytes);
    if (bytes) memcpy(own, held.data, bytes);
    reverse_bytes(own, item, h.elements);
    held.data = own;
  }
  return ccn__tensor_val(ccn__held_tensor(rt, c->at[1], &held));
}

static bool is_safetensors(const char *path) {
  static const char end[] = ".safetensors";
  const size_t n = strlen(path), m = sizeof end - 1;
  return n >= m && memcmp(path + n - m, end, m) == 0;
}

/* The value is on temps. */
static ccn__val load_file(ccn__rt *rt, const ccn__builtin_call *c, const char *file, size_t size) {
  const bool named = is_safetensors(c->at[0]->value.string->at);
  return named ? ccn__load_safetensors(rt, c, file, size) : load_npy(rt, c, file, size);
}

ccn__val ccn__fn_load(ccn__rt *rt, const ccn__builtin_call *c) {
  const char *path = path_of(rt, c->at[0], rt->options->read != NULL);
  volatile ccn__val v = {.kind = CCN__V_NONE};
  void *data = NULL;
  size_t size = 0;
  ccn__trap trap;
  if (c->at[1] && c->at[1]->value.kind != CCN__V_TYPE)
    ccn__fail(rt, 805, c->at[1]->span, ccn__val_kind_name(c->at[1]->value),
              "as in: load(\"x.npy\", as: f32[N] sliced(0))", "expected a type");
  int e = rt->options->read(path, &data, &size, rt->options->file_user);
  if (e) ccn__file_error(rt, 701, c->at[0], e);
  CCN__TRY(rt->heap, trap)
  { v = load_file(rt, c, data, size); }
  CCN__CATCH(rt->heap, trap)
  {}
  if (rt->options->read_free) rt->options->read_free(data, size, rt->options->file_user);
  if (trap.status != CCN_OK) ccn__throw(rt->heap, trap.status);
  return v;
}

/* ---- save ---------------------------------------------------------------------------------------------- */

ccn__tensor *ccn__whole_to_save(ccn__rt *rt, ccn__val v, ccn__span span) {
  if (v.kind != CCN__V_TENSOR)
    ccn__fail(rt, 805, span, ccn__val_kind_name(v), "make a tensor of it: tensor([1, 2, 3], f32)",
              "only tensors are saved, not %s", ccn__val_kind_name(v));
  if (v.tensor->bundle)
    ccn__fail(rt, 805, span, "a bundle", "save its members one by one: b[0], b[1]",
              "a bundle is saved by its members");
  ccn__tensor *t = ccn__tensor_whole(rt, v.tensor);
  if (!t)
    ccn__fail(rt, 805, span, "not one value",
              "save one rank's value, x.on(0), or reduce it in a program first",
              "%s has no single value to save", ccn__tensor_describe(rt, v.tensor));
  return t;
}

static void save_npy(ccn__rt *rt, const ccn__builtin_call *c, const char *path) {
  char header[CCN__NPY_HEADER_MAX];
  const ccn__tensor *t = ccn__whole_to_save(rt, c->at[1]->value, c->at[1]->span);
  size_t n = ccn__npy_header((ccn__dtype)t->dtype, t->dim, t->rank, header);
  if (n == 0)
    ccn__fail(rt, 703, c->at[1]->span, "NumPy has no such dtype", "cast it first: f32(x)",
              ".npy files cannot hold %s", ccn__dtype_name((ccn__dtype)t->dtype));
  const size_t bytes = t->buf[0]->bytes;
  char *file = ccn__temp_memory(rt, n + bytes);
  memcpy(file, header, n);
  if (bytes) memcpy(file + n, t->buf[0]->data, bytes);
  int e = rt->options->write(path, file, n + bytes, rt->options->file_user);
  if (e) ccn__file_error(rt, 702, c->at[0], e);
}

ccn__val ccn__fn_save(ccn__rt *rt, const ccn__builtin_call *c) {
  const char *path = path_of(rt, c->at[0], rt->options->write != NULL || rt->recording);
  if (rt->recording) return CCN__NONE_VAL;
  if (is_safetensors(path)) ccn__save_safetensors(rt, c, path);
  else save_npy(rt, c, path);
  return CCN__NONE_VAL;
}
