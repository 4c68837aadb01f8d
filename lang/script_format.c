/* script_format.c: values as text: print, "{x}", "{x:.4f}", str(x).
 *
 * Texts are bounded: of each dim of a tensor at most 8 elements are shown, of ranks that differ 8, and a text
 * that grows past a megabyte ends in dots, so that no value (a list in itself, say) makes endless text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <stdio.h>

enum { MOST_TEXT = 1 << 20, MOST_NESTED = 32, SHOWN_RANKS = 8, SCRATCH_KEPT = 1 << 16 };

/* Texts share the arena until there is much in it: a block made and freed for each would cut the heap to
 * pieces. */
void ccn__scratch_begin(ccn__rt *rt, ccn__text *t) {
  if (rt->scratch.bytes > SCRATCH_KEPT) ccn__arena_free(&rt->scratch);
  ccn__text_init(t, &rt->scratch);
}

void ccn__scratch_end(ccn__rt *rt) {
  if (rt->scratch.bytes > SCRATCH_KEPT) ccn__arena_free(&rt->scratch);
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static void number(ccn__text *out, ccn__val v) {
  if (v.kind == CCN__V_BOOL) ccn__text_puts(out, v.b ? "true" : "false");
  else if (v.kind == CCN__V_INT) ccn__text_printf(out, "%lld", (long long)v.i);
  else ccn__text_float(out, v.f, v.single);
}

/* snprintf uses the process's decimal separator; CCN's is the point. */
static void point(char *s) {
  for (; *s; s++)
    if (*s != ' ' && *s != '-' && *s != 'e' && *s != '+' && (*s < '0' || *s > '9') &&
        (*s < 'a' || *s > 'z')) {
      *s = '.';
      return;
    }
}

static bool parse_format(const char *f, bool *zeros, int *width, int *precision, char *kind) {
  *zeros = false, *width = 0, *precision = -1, *kind = 0;
  if (*f == '0') *zeros = true;
  for (; *f >= '0' && *f <= '9'; f++)
    if ((*width = *width * 10 + (*f - '0')) > 9999) return false;
  if (*f == '.') {
    *precision = 0;
    for (f++; *f >= '0' && *f <= '9'; f++)
      if ((*precision = *precision * 10 + (*f - '0')) > 999) return false;
  }
  if (*f) *kind = *f++;
  return !*f && (*kind == 0 || strchr("fegd", *kind));
}

static void pad(ccn__text *out, const char *s, int width) {
  for (int n = (int)strlen(s); n < width; n++) ccn__text_putc(out, ' ');
  ccn__text_puts(out, s);
}

static void formatted_float(ccn__text *out, double x, bool zeros, int width, int precision, char kind) {
  char s[1500]; /* 309 digits, a point, 999 digits, and more */
  if (precision < 0) precision = 6;
  if (x != x) { /* printf shows its sign too */
    pad(out, "nan", width);
    return;
  }
  if (x - x != 0) zeros = false; /* inf */
  int digits = zeros ? (width < 1400 ? width : 1400) : 0;
  if (kind == 'e') snprintf(s, sizeof s, "%0*.*e", digits, precision, x);
  else if (kind == 'g') snprintf(s, sizeof s, "%0*.*g", digits, precision, x);
  else snprintf(s, sizeof s, "%0*.*f", digits, precision, x);
  if (x - x == 0) point(s);
  pad(out, s, width);
}

void ccn__format_as(ccn__rt *rt, ccn__text *out, ccn__val v, const char *format, ccn__span span) {
  bool zeros;
  int width, precision;
  char kind, s[64];
  v = ccn__plain(v);
  if (!parse_format(format, &zeros, &width, &precision, &kind))
    ccn__fail(rt, 7, span, "not a format", "formats are [0][width][.precision][f, e, g or d], as in {x:8.4f}",
              "bad format `%s`", format);
  if (v.kind == CCN__V_TENSOR && rt->recording) {
    pad(out, "?", width);
    return;
  }
  if (!ccn__is_number(v)) {
    if (precision >= 0 || kind || zeros)
      ccn__fail(rt, 805, span, ccn__val_kind_name(v),
                v.kind == CCN__V_TENSOR
                  ? "only a replicated scalar is one number; x.on(0) takes one rank's value"
                  : "leave the format out, or only give a width: {x:8}",
                "this format is for numbers, not for %s", ccn__val_kind_name(v));
    size_t before = out->n;
    ccn__format(rt, out, v);
    for (size_t n = out->n - before; n < (size_t)width; n++)
      ccn__text_putc(out, ' '); /* texts stand on the left */
    return;
  }
  if (kind == 'd' && v.kind == CCN__V_FLOAT)
    ccn__fail(rt, 805, span, "a float", "int(x) cuts off the fraction; {x:.0f} rounds",
              "the format `d` is for whole numbers");
  if (v.kind == CCN__V_FLOAT || kind == 'f' || kind == 'e' || kind == 'g' || precision >= 0) {
    if (v.kind == CCN__V_FLOAT && !kind && precision < 0) { /* a width alone: the shortest digits */
      size_t before = out->n;
      number(out, v);
      size_t n = out->n - before;
      if (n >= (size_t)width) return;
      const char *text = ccn__arena_strndup(out->arena, out->at + before, n);
      out->n = before;
      pad(out, text, width);
      return;
    }
    formatted_float(out, ccn__as_f64(v), zeros, width, precision, kind);
    return;
  }
  snprintf(s, sizeof s, zeros ? "%0*lld" : "%*lld", width < 40 ? width : 40, (long long)v.i);
  pad(out, s, width);
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

/* How many elements of a dim are shown: less where many dims multiply. */
static int64_t shown(uint32_t rank) { return rank <= 2 ? 8 : rank == 3 ? 4 : 2; }

typedef struct excerpt {
  const ccn__tensor *t;
  uint32_t world_rank, rank;
  const int64_t *extent;
} excerpt;

static void elements(ccn__text *out, const excerpt *x, uint32_t d, int64_t offset) {
  if (d == x->rank) {
    number(out, ccn__tensor_element(x->t, x->world_rank, offset));
    return;
  }
  int64_t n = x->extent[d], most = shown(x->rank), stride = 1;
  for (uint32_t k = d + 1; k < x->rank; k++) stride *= x->extent[k];
  ccn__text_putc(out, '[');
  for (int64_t i = 0; i < n; i++) {
    if (i) ccn__text_puts(out, ", ");
    if (n > most && i == most / 2) {
      ccn__text_puts(out, "..., ");
      i = n - most / 2;
    }
    elements(out, x, d + 1, offset + i * stride);
  }
  ccn__text_putc(out, ']');
}

/* One rank's piece; of a bundle held whole, member by member. */
static void piece(ccn__rt *rt, ccn__text *out, const ccn__tensor *t, uint32_t r) {
  ccn__box box;
  if (!t->buf[r]) {
    ccn__text_puts(out, rt->recording ? "?" : "nothing");
    return;
  }
  ccn__box_of(&rt->mesh, r, t->rank, t->dim, t->place, &box);
  if (t->bundle != CCN__BUNDLE_TENSORS || box.elements != t->dim[0]) {
    elements(out, &(excerpt){t, r, t->rank, box.extent}, 0, 0);
    return;
  }
  ccn__text_putc(out, '[');
  for (uint32_t k = 0; k < t->members->k; k++) {
    const struct ccn__member *m = &t->members->at[k];
    if (k) ccn__text_puts(out, ", ");
    if (k == 4 && t->members->k > 8) {
      ccn__text_puts(out, "..., ");
      k = t->members->k - 4;
      m = &t->members->at[k];
    }
    elements(out, &(excerpt){t, r, m->rank, m->dim}, 0, m->start);
  }
  ccn__text_putc(out, ']');
}

/* Ranks that hold copies of one value are shown once. */
static void by_rank(ccn__rt *rt, ccn__text *out, const ccn__tensor *t) {
  uint32_t lines = 0;
  for (uint32_t r = 0; r < t->world; r++) {
    if (ccn__rank_twin(&rt->mesh, r, t->place) != r) continue;
    if (lines++ < SHOWN_RANKS) {
      ccn__text_printf(out, "\n  rank %u: ", r);
      piece(rt, out, t, r);
    }
  }
  if (lines > SHOWN_RANKS) ccn__text_printf(out, "\n  ... %u more ranks", lines - SHOWN_RANKS);
}

static void tensor(ccn__rt *rt, ccn__text *out, ccn__tensor *t) {
  ccn__val v = ccn__plain(ccn__tensor_val(t));
  if (v.kind != CCN__V_TENSOR) {
    number(out, v);
    return;
  }
  ccn__text_puts(out, ccn__tensor_describe(rt, t));
  ccn__tensor *whole = ccn__tensor_whole(rt, t);
  if (!whole) {
    by_rank(rt, out, t);
    return;
  }
  ccn__text_putc(out, ' ');
  piece(rt, out, whole, 0);
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void value(ccn__rt *rt, ccn__text *out, ccn__val v, uint32_t nested);

static void quoted(ccn__text *out, const ccn__string *s) {
  ccn__text_putc(out, '"');
  for (size_t i = 0; i < s->n; i++) {
    if (s->at[i] == '"' || s->at[i] == '\\') ccn__text_putc(out, '\\');
    if (s->at[i] == '\n') ccn__text_puts(out, "\\n");
    else ccn__text_putc(out, s->at[i]);
  }
  ccn__text_putc(out, '"');
}

static void list(ccn__rt *rt, ccn__text *out, const ccn__list *l, uint32_t nested) {
  bool tuple = l->obj.kind == CCN__V_TUPLE;
  ccn__text_putc(out, tuple ? '(' : '[');
  for (uint32_t i = 0; i < l->n; i++) {
    if (i) ccn__text_puts(out, ", ");
    if (out->n > MOST_TEXT || nested > MOST_NESTED) {
      ccn__text_puts(out, "...");
      break;
    }
    value(rt, out, l->at[i], nested + 1);
  }
  if (tuple && l->n == 1) ccn__text_putc(out, ',');
  ccn__text_putc(out, tuple ? ')' : ']');
}

static void program(ccn__text *out, const ccn__program *p) {
  const ccn__program *with[16];
  uint32_t n = 0;
  for (; p->base && n < CCN__COUNT(with); p = p->base) with[n++] = p;
  ccn__text_printf(out, "program %s", p->name);
  while (n-- > 0) ccn__text_printf(out, " with %s", with[n]->with->name);
}

static void type(ccn__rt *rt, ccn__text *out, const ccn__typeval *t) {
  ccn__text_puts(out, ccn__dtype_name((ccn__dtype)t->dtype));
  for (uint32_t d = 0; d < t->rank; d++)
    ccn__text_printf(out, "%s%lld", d ? ", " : "[", (long long)t->dim[d]);
  if (t->has_dims) ccn__text_puts(out, t->rank ? "]" : "[]");
  for (uint32_t a = 0; a < t->naxes && a < rt->mesh.naxes; a++) {
    const ccn__cplace *p = &t->place[a];
    if (p->kind == CCN__SLICED && p->unit > 1)
      ccn__text_printf(out, " sliced(%u, unit: %lld)", p->dim, (long long)p->unit);
    else if (p->kind == CCN__SLICED) ccn__text_printf(out, " sliced(%u)", p->dim);
    else if (p->kind == CCN__LOCAL) ccn__text_puts(out, " local");
    else if (p->kind == CCN__PARTIAL)
      ccn__text_printf(out, " partial(%s)", ccn__redop_name((ccn__redop)p->op));
    else if (p->kind == CCN__AT) ccn__text_printf(out, " at(%d)", p->coord);
    if (p->kind != CCN__REPLICATED) ccn__text_printf(out, " over %s", rt->mesh.name[a]);
  }
}

static void value(ccn__rt *rt, ccn__text *out, ccn__val v, uint32_t nested) {
  switch ((ccn__vkind)v.kind) {
  case CCN__V_NONE: ccn__text_puts(out, "nothing"); break;
  case CCN__V_BOOL:
  case CCN__V_INT:
  case CCN__V_FLOAT: number(out, v); break;
  case CCN__V_OP: ccn__text_printf(out, "fn %s", v.name); break;
  case CCN__V_HOST: ccn__text_printf(out, "fn %s", ccn__host_name(v.host)); break;
  case CCN__V_STRING:
    if (nested) quoted(out, v.string);
    else ccn__text_add(out, v.string->at, v.string->n);
    break;
  case CCN__V_LIST:
  case CCN__V_TUPLE: list(rt, out, v.list, nested); break;
  case CCN__V_RANGE:
    ccn__text_printf(out, "%lld..%lld", (long long)v.range->start, (long long)v.range->end);
    break;
  case CCN__V_TENSOR: tensor(rt, out, v.tensor); break;
  case CCN__V_TYPE: type(rt, out, v.type); break;
  case CCN__V_FN: ccn__text_printf(out, "fn%s%s", v.fn->name ? " " : "", v.fn->name ? v.fn->name : ""); break;
  case CCN__V_PROGRAM: program(out, v.program); break;
  case CCN__V_SCHEDULE: ccn__text_printf(out, "schedule %s", v.schedule->name); break;
  case CCN__V_MODULE: ccn__text_printf(out, "module %s", v.module->path); break;
  }
}

void ccn__format(ccn__rt *rt, ccn__text *out, ccn__val v) { value(rt, out, v, 0); }
