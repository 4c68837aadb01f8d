/* script_builtins.c: the functions that every script has, one row each; reached before ops of the same name.
 * To add one: a row, and a function from bound arguments to a value.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <stdlib.h>

/* ---- output -------------------------------------------------------------------------------------------- */

static void write_all(ccn__rt *rt, const ccn__builtin_call *c, ccn_write_fn write, void *user,
                      const char *end) {
  ccn__text t;
  ccn__scratch_begin(rt, &t);
  for (uint32_t i = 0; i < c->nargs; i++) {
    if (i) ccn__text_putc(&t, ' ');
    ccn__format(rt, &t, c->args[i].value);
  }
  ccn__text_puts(&t, end);
  if (write) write(t.at, t.n, user);
  ccn__scratch_end(rt);
}

static ccn__val fn_print(ccn__rt *rt, const ccn__builtin_call *c) {
  write_all(rt, c, rt->options->print, rt->options->print_user, "\n");
  return CCN__NONE_VAL;
}

static ccn__val fn_progress(ccn__rt *rt, const ccn__builtin_call *c) {
  if (rt->options->progress) write_all(rt, c, rt->options->progress, rt->options->progress_user, "");
  return CCN__NONE_VAL;
}

/* ---- lists and ranges ---------------------------------------------------------------------------------- */

static ccn__val fn_len(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val v = c->at[0]->value;
  switch (v.kind) {
  case CCN__V_STRING: return ccn__int_val(ccn__string_length(v.string));
  case CCN__V_LIST:
  case CCN__V_TUPLE: return ccn__int_val(v.list->n);
  case CCN__V_RANGE:
    if (v.range->start < 0 && v.range->end > INT64_MAX + v.range->start)
      ccn__fail(rt, 810, c->at[0]->span, "too long", "use a shorter range",
                "the length of the range does not fit 64 bits");
    return ccn__int_val(v.range->end - v.range->start);
  case CCN__V_TENSOR:
    if (v.tensor->bundle) return ccn__int_val(ccn__bundle_count(v.tensor));
    if (v.tensor->rank) return ccn__int_val(v.tensor->dim[0]);
    break;
  default: break;
  }
  ccn__fail(rt, 805, c->at[0]->span, ccn__val_kind_name(v),
            "strings, lists, tuples, ranges, bundles and tensors with dims have a length", "%s has no length",
            v.kind == CCN__V_TENSOR ? "a scalar" : ccn__val_kind_name(v));
}

static ccn__val fn_range(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__range *r = ccn__obj_new(rt, CCN__V_RANGE, sizeof *r);
  r->start = c->at[1] ? ccn__whole(rt, c->at[0]->value, c->at[0]->span, "an end of a range") : 0;
  const ccn__arg *end = c->at[1] ? c->at[1] : c->at[0];
  r->end = ccn__whole(rt, end->value, end->span, "an end of a range");
  if (r->end < r->start) r->end = r->start;
  return (ccn__val){.kind = CCN__V_RANGE, .range = r};
}

static ccn__val fn_list(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val v = c->at[0]->value;
  ccn__list *l = ccn__list_new(rt, CCN__V_LIST, 0);
  if (v.kind == CCN__V_RANGE) {
    for (int64_t i = v.range->start; i < v.range->end; i++) {
      if ((i & 4095) == 0) ccn__rt_poll(rt);
      ccn__list_add(rt, l, ccn__int_val(i));
    }
  } else if (v.kind == CCN__V_LIST || v.kind == CCN__V_TUPLE) {
    for (uint32_t i = 0; i < v.list->n; i++) ccn__list_add(rt, l, v.list->at[i]);
  } else if (v.kind == CCN__V_TENSOR && v.tensor->bundle) {
    for (uint32_t i = 0; i < ccn__bundle_count(v.tensor); i++)
      ccn__list_add(rt, l, ccn__bundle_member(rt, v.tensor, i, c->at[0]->span));
  } else {
    ccn__fail(rt, 805, c->at[0]->span, ccn__val_kind_name(v),
              "a list is made of a range, a tuple, a list or a bundle", "%s cannot become a list",
              ccn__val_kind_name(v));
  }
  return ccn__list_val(l);
}

/* ---- conversions --------------------------------------------------------------------------------------- */

static ccn__val fn_str(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__text t;
  ccn__scratch_begin(rt, &t);
  ccn__format(rt, &t, c->at[0]->value);
  ccn__val v = ccn__val_string(rt, t.at, t.n);
  ccn__scratch_end(rt);
  return v;
}

static bool parse_int(const ccn__string *s, ccn__val *out) {
  ccn__calc_error err;
  size_t i = s->n && (s->at[0] == '-' || s->at[0] == '+');
  ccn__val v = ccn__int_val(0);
  if (i == s->n) return false;
  for (; i < s->n; i++) { /* downwards: the lowest integer has no positive counterpart */
    if (s->at[i] < '0' || s->at[i] > '9') return false;
    if (!ccn__calc_binary(CCN__T_STAR, v, ccn__int_val(10), &v, &err)) return false;
    if (!ccn__calc_binary(CCN__T_MINUS, v, ccn__int_val(s->at[i] - '0'), &v, &err)) return false;
  }
  return s->at[0] == '-' ? (*out = v, true) : ccn__calc_unary(CCN__T_MINUS, v, out, &err);
}

static bool parse_float(const ccn__string *s, ccn__val *out) {
  char text[128];
  char *end;
  if (s->n == 0 || s->n >= sizeof text) return false;
  for (size_t i = 0; i < s->n; i++)
    if (!strchr("0123456789+-.eE", s->at[i]) || !s->at[i]) return false;
  memcpy(text, s->at, s->n + 1);
  *out = ccn__float_val(strtod(text, &end));
  if (*end == '.') { /* the host's locale has another separator */
    *end = ',';
    *out = ccn__float_val(strtod(text, &end));
  }
  return *end == 0;
}

CCN__NORETURN static void no_conversion(ccn__rt *rt, const ccn__arg *a, const char *to) {
  if (a->value.kind == CCN__V_STRING)
    ccn__fail(rt, 805, a->span, "not a number", "write digits only, as in \"12\" or \"0.5\"",
              "the text \"%.60s\" is no %s", a->value.string->at, to);
  if (rt->recording && a->value.kind == CCN__V_TENSOR) ccn__no_elements(rt, a->span);
  ccn__fail(rt, 805, a->span, ccn__val_kind_name(a->value),
            a->value.kind == CCN__V_TENSOR
              ? "only a replicated scalar is one number; x.on(0) takes one rank's value"
              : "numbers, booleans and strings are converted",
            "%s cannot become a %s", ccn__val_kind_name(a->value), to);
}

static ccn__val fn_int(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val v = ccn__plain(c->at[0]->value), out;
  if (v.kind == CCN__V_INT) return v;
  if (v.kind == CCN__V_BOOL) return ccn__int_val(v.b);
  if (v.kind == CCN__V_FLOAT) {
    if (v.f >= -9223372036854775808.0 && v.f < 9223372036854775808.0) return ccn__int_val((int64_t)v.f);
    ccn__fail(rt, 810, c->at[0]->span, "not a 64-bit integer", "test it first: isfinite(x)",
              "this float does not fit 64 bits");
  }
  if (v.kind == CCN__V_STRING && parse_int(v.string, &out)) return out;
  no_conversion(rt, c->at[0], "whole number");
}

static ccn__val fn_float(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val v = ccn__plain(c->at[0]->value), out;
  if (v.kind == CCN__V_FLOAT) return v;
  if (v.kind == CCN__V_INT) return ccn__float_val((double)v.i);
  if (v.kind == CCN__V_BOOL) return ccn__float_val(v.b);
  if (v.kind == CCN__V_STRING && parse_float(v.string, &out)) return out;
  no_conversion(rt, c->at[0], "float");
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const ccn__builtin table[] = {
  {"print", "...", fn_print, "writes its arguments with blanks between them, and a newline"},
  {"progress", "...", fn_progress, "shows a line that the next one replaces, where there is a terminal"},
  {"len", "x", fn_len, "the number of characters, members, or of the first dim"},
  {"range", "start, end?", fn_range, "range(n) is 0..n, range(a, b) is a..b"},
  {"list", "x", fn_list, "the members of a range, tuple, list or bundle as a new list"},
  {"str", "x", fn_str, "the value as text"},
  {"int", "x", fn_int, "a whole number, from a number (cut off toward 0), boolean or text"},
  {"float", "x", fn_float, "a float, from a number, boolean or text"},
  {"copy", "x", ccn__fn_copy, "a tensor or list that later updates of the first do not change"},
  {"tensor", "values, dtype", ccn__fn_tensor, "a tensor from nested lists of numbers"},
  {"per_rank", "fn", ccn__fn_per_rank, "fn(r) for each world rank r, as one local tensor"},
  {"load", "path, as?, name?", ccn__fn_load, "a tensor from a .npy file, or those of a .safetensors file"},
  {"save", "path, x", ccn__fn_save, "writes a .npy file, or pairs (name, tensor) as a .safetensors file"},
};

const ccn__builtin *ccn__builtin_at(uint32_t i) { return i < CCN__COUNT(table) ? &table[i] : NULL; }

const ccn__builtin *ccn__builtin_find(const char *name) {
  for (size_t i = 0; i < CCN__COUNT(table); i++)
    if (strcmp(table[i].name, name) == 0) return &table[i];
  return NULL;
}

/* ---- binding ------------------------------------------------------------------------------------------- */

/* Parameter k of "path, as?": its name's length, or 0 past the end. */
static size_t parameter(const char *params, uint32_t k, const char **name, bool *optional) {
  for (const char *p = params; *p; k--) {
    size_t n = strcspn(p, ",?");
    *name = p;
    *optional = p[n] == '?';
    if (k == 0) return n;
    p += n + *optional;
    p += strspn(p, ", ");
  }
  return 0;
}

static uint32_t slot_of(ccn__rt *rt, const ccn__builtin *b, const ccn__arg *a, uint32_t position,
                        ccn__span call) {
  const char *name;
  bool optional;
  size_t n;
  if (!a->name) {
    if (!parameter(b->params, position, &name, &optional))
      ccn__fail(rt, 800, a->span, "one too many", b->doc, "too many arguments: %s(%s)", b->name, b->params);
    return position;
  }
  for (uint32_t k = 0; (n = parameter(b->params, k, &name, &optional)); k++)
    if (strlen(a->name) == n && memcmp(a->name, name, n) == 0) return k;
  (void)call;
  ccn__fail(rt, 806, a->nspan, "no such parameter", b->doc, "`%s` has no parameter `%s`: %s(%s)", b->name,
            a->name, b->name, b->params);
}

ccn__val ccn__builtin_run(ccn__rt *rt, const ccn__builtin *b, const ccn__arg *args, uint32_t nargs,
                          ccn__span span) {
  ccn__builtin_call c = {.name = b->name, .args = args, .nargs = nargs, .span = span};
  const char *name;
  bool optional;
  if (strcmp(b->params, "...") == 0) {
    for (uint32_t i = 0; i < nargs; i++)
      if (args[i].name)
        ccn__fail(rt, 806, args[i].nspan, "no such parameter", "leave the name out",
                  "`%s` has no parameter `%s`", b->name, args[i].name);
    return b->fn(rt, &c);
  }
  for (uint32_t i = 0; i < nargs; i++) {
    uint32_t k = slot_of(rt, b, &args[i], i, span);
    if (c.at[k])
      ccn__fail(rt, 806, args[i].span, "a second time", "pass it once", "an argument of `%s` is given twice",
                b->name);
    c.at[k] = &args[i];
  }
  for (uint32_t k = 0; parameter(b->params, k, &name, &optional); k++)
    if (!optional && !c.at[k])
      ccn__fail(rt, 800, span, "incomplete", b->doc, "an argument is missing: %s(%s)", b->name, b->params);
  return b->fn(rt, &c);
}
