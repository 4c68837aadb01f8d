/* script_expr.c: expressions of scripts: operators, indices, fields, literals. Calls: script_call.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <stdio.h>

/* ---- errors, conversions ------------------------------------------------------------------------------- */

void ccn__fail(ccn__rt *rt, uint16_t code, ccn__span span, const char *label, const char *hint,
               const char *fmt, ...) {
  char message[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(message, sizeof message, fmt, args);
  va_end(args);
  ccn__diag *d = ccn__error(rt->diags, code, span, label ? label : "", "%s", message);
  if (hint) ccn__hint(rt->diags, d, "%s", hint);
  ccn__rt_raise(rt, d);
}

void ccn__too_deep(ccn__rt *rt, ccn__span span) {
  ccn__fail(rt, 602, span, "one level too many",
            "does the recursion end? A loop needs no depth; an expression can be cut into several statements",
            "evaluation is nested more than %d levels deep", CCN__MAX_DEPTH);
}

void *ccn__temp_memory(ccn__rt *rt, size_t n) {
  if (n > SIZE_MAX / 4) ccn__throw(rt->heap, CCN_OUT_OF_MEMORY);
  _Static_assert(offsetof(ccn__string, at) % 16 == 0, "a string's bytes serve as aligned memory");
  return ccn__val_string(rt, NULL, n).string->at;
}

ccn__val ccn__plain(ccn__val v) {
  ccn__val number;
  if (v.kind == CCN__V_TENSOR && v.tensor->rank == 0 && ccn__tensor_number(v.tensor, &number)) return number;
  return v;
}

/* Why a tensor is no number, as a hint. */
static const char *why_no_number(ccn__val v) {
  if (v.kind != CCN__V_TENSOR) return NULL;
  if (v.tensor->rank || v.tensor->bundle)
    return "only a scalar is one number; reduce it first, or take an element: x[0]";
  return "its value differs between ranks; x.on(0) takes one rank's, x.per_rank() all of them";
}

void ccn__no_elements(ccn__rt *rt, ccn__span span) {
  ccn__fail(rt, 510, span, "decided by a tensor's elements",
            "name a program and its sizes: ccn plan FILE PROGRAM -D N=1000",
            "the script asks for a number out of a tensor, and while programs are recorded there is none");
}

bool ccn__truth(ccn__rt *rt, ccn__val v, ccn__span span, const char *what) {
  v = ccn__plain(v);
  if (v.kind == CCN__V_BOOL) return v.b;
  if (v.kind == CCN__V_TENSOR && rt->recording) ccn__no_elements(rt, span);
  const char *hint = why_no_number(v);
  ccn__fail(rt, 805, span, ccn__val_kind_name(v), hint ? hint : "compare it: x != 0, len(s) > 0",
            "%s must be a boolean, not %s", what, ccn__val_kind_name(v));
}

int64_t ccn__whole(ccn__rt *rt, ccn__val v, ccn__span span, const char *what) {
  v = ccn__plain(v);
  if (v.kind == CCN__V_INT) return v.i;
  if (v.kind == CCN__V_TENSOR && rt->recording) ccn__no_elements(rt, span);
  const char *hint =
    v.kind == CCN__V_FLOAT ? "int(x) cuts off the fraction, a // b divides whole numbers" : why_no_number(v);
  ccn__fail(rt, 805, span, v.kind == CCN__V_FLOAT ? "a float" : ccn__val_kind_name(v),
            hint ? hint : "pass a whole number", "%s must be a whole number, not %s", what,
            v.kind == CCN__V_FLOAT ? "a float" : ccn__val_kind_name(v));
}

int64_t ccn__position(ccn__rt *rt, int64_t i, int64_t n, ccn__span span, const char *what) {
  int64_t at = i < 0 ? i + n : i;
  if (at >= 0 && at < n) return at;
  if (n == 0)
    ccn__fail(rt, 812, span, "outside", "test its length first: len(x)", "index %lld into %s of length 0",
              (long long)i, what);
  ccn__fail(rt, 812, span, "outside", "indices go from 0 to the length - 1, or from -1 at the end backwards",
            "index %lld is outside %s of length %lld", (long long)i, what, (long long)n);
}

/* ---- strings ------------------------------------------------------------------------------------------- */

static bool plain_string(const ccn__ast *e) {
  return e->list.n == 0 || (e->list.n == 1 && e->list.at[0]->kind == CCN__AST_TEXT);
}

static ccn__val string(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  if (plain_string(e))
    return e->list.n ? ccn__val_string(rt, e->list.at[0]->str, (size_t)e->list.at[0]->i)
                     : ccn__val_string(rt, "", 0);
  ccn__val *part = ccn__temp_memory(rt, e->list.n * sizeof *part);
  for (uint32_t i = 0; i < e->list.n; i++) {
    const ccn__ast *p = e->list.at[i];
    if (p->kind == CCN__AST_TEXT) continue;
    part[i] = ccn__eval(rt, env, p->kind == CCN__AST_FORMAT ? p->a : p);
  }
  ccn__text t;
  ccn__scratch_begin(rt, &t);
  for (uint32_t i = 0; i < e->list.n; i++) {
    const ccn__ast *p = e->list.at[i];
    if (p->kind == CCN__AST_TEXT) ccn__text_add(&t, p->str, (size_t)p->i);
    else if (p->kind == CCN__AST_FORMAT && p->str) ccn__format_as(rt, &t, part[i], p->str, p->span);
    else ccn__format(rt, &t, part[i]);
  }
  ccn__val v = ccn__val_string(rt, t.at, t.n);
  ccn__scratch_end(rt);
  return v;
}

/* Length in bytes of the character at s; a byte that is no UTF-8 counts as one. */
static size_t char_size(const char *s, size_t n) {
  unsigned char c = (unsigned char)*s;
  size_t want = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;
  if (want > n) return 1;
  for (size_t i = 1; i < want; i++)
    if (((unsigned char)s[i] & 0xc0) != 0x80) return 1;
  return want;
}

int64_t ccn__string_length(const ccn__string *s) {
  int64_t n = 0;
  for (size_t i = 0; i < s->n; i += char_size(s->at + i, s->n - i)) n++;
  return n;
}

static ccn__val substring(ccn__rt *rt, const ccn__string *s, int64_t start, int64_t end) {
  size_t from = 0, to;
  int64_t at = 0;
  for (; at < start; at++) from += char_size(s->at + from, s->n - from);
  for (to = from; at < end; at++) to += char_size(s->at + to, s->n - to);
  return ccn__val_string(rt, s->at + from, to - from);
}

/* ---- operators ----------------------------------------------------------------------------------------- */

/* Equality of script values; kinds that cannot be equal are an error, so that a slip does not pass for
 * "false". */
static bool equal(ccn__rt *rt, ccn__val x, ccn__val y, ccn__span span) {
  ccn__calc_error err;
  ccn__val v;
  x = ccn__plain(x), y = ccn__plain(y);
  if (x.kind == CCN__V_NONE || y.kind == CCN__V_NONE) return x.kind == y.kind;
  if (x.kind == CCN__V_STRING && y.kind == CCN__V_STRING)
    return x.string->n == y.string->n && memcmp(x.string->at, y.string->at, x.string->n) == 0;
  if (x.kind == y.kind && (x.kind == CCN__V_LIST || x.kind == CCN__V_TUPLE)) {
    if (x.list == y.list) return true;
    if (x.list->n != y.list->n) return false;
    ccn__enter(rt, span);
    bool same = true;
    for (uint32_t i = 0; same && i < x.list->n; i++) same = equal(rt, x.list->at[i], y.list->at[i], span);
    ccn__leave(rt);
    return same;
  }
  if (x.kind == CCN__V_RANGE && y.kind == CCN__V_RANGE)
    return x.range->start == y.range->start && x.range->end == y.range->end;
  if (x.kind == y.kind && (x.kind == CCN__V_PROGRAM || x.kind == CCN__V_FN || x.kind == CCN__V_MODULE))
    return x.o == y.o;
  if (x.kind == CCN__V_OP && y.kind == CCN__V_OP) return x.name == y.name;
  if (ccn__calc_binary(CCN__T_EQ, x, y, &v, &err)) return v.b;
  ccn__fail(rt, 805, span, "these are never equal",
            x.kind == CCN__V_TENSOR || y.kind == CCN__V_TENSOR
              ? "compare tensors outside of lists, one by one"
              : "bring both to one kind: str(x), int(s), float(s)",
            "cannot compare %s with %s", ccn__val_kind_name(x), ccn__val_kind_name(y));
}

static bool string_order(ccn__oper op, const ccn__string *x, const ccn__string *y) {
  int c = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);
  if (c == 0) c = x->n < y->n ? -1 : x->n > y->n;
  return op == CCN__T_LT ? c < 0 : op == CCN__T_LE ? c <= 0 : op == CCN__T_GT ? c > 0 : c >= 0;
}

static ccn__val join(ccn__rt *rt, ccn__val x, ccn__val y) {
  if (x.kind == CCN__V_STRING) {
    size_t n = x.string->n, m = y.string->n;
    ccn__val v = ccn__val_string(rt, NULL, n + m);
    memcpy(v.string->at, x.string->at, n);
    memcpy(v.string->at + n, y.string->at, m);
    return v;
  }
  if (x.list->n > UINT32_MAX / 4 || y.list->n > UINT32_MAX / 4) ccn__throw(rt->heap, CCN_OUT_OF_MEMORY);
  ccn__list *l = ccn__list_new(rt, (ccn__vkind)x.kind, x.list->n + y.list->n);
  for (uint32_t i = 0; i < x.list->n; i++) ccn__list_add(rt, l, x.list->at[i]);
  for (uint32_t i = 0; i < y.list->n; i++) ccn__list_add(rt, l, y.list->at[i]);
  return ccn__list_val(l);
}

CCN__NORETURN static void bad_operands(ccn__rt *rt, const ccn__ast *e, ccn__val x, ccn__val y,
                                       const ccn__calc_error *err) {
  const char *text = ccn__oper_text((ccn__oper)e->op), *hint = err->hint;
  if (err->code == 810) ccn__fail(rt, 810, e->span, err->why, hint, "`%s` %s", text, err->why);
  if (x.kind == CCN__V_STRING || y.kind == CCN__V_STRING)
    hint = "put values into text with \"{x}\", or use str(x), int(s), float(s)";
  ccn__diag *d = ccn__error(rt->diags, 805, e->nspan, "", "`%s` is not defined for %s and %s", text,
                            ccn__val_kind_name(x), ccn__val_kind_name(y));
  d->primary.text =
    ccn__arena_printf(rt->diags->arena, "%s here, %s there", ccn__val_kind_name(x), ccn__val_kind_name(y));
  ccn__hint(rt->diags, d, "%s", hint ? hint : "bring both to a kind for which it is defined");
  ccn__rt_raise(rt, d);
}

static bool goes_to_op(ccn__val x, ccn__val y) {
  bool tx = x.kind == CCN__V_TENSOR, ty = y.kind == CCN__V_TENSOR;
  bool px = tx || ccn__is_number(x) || x.kind == CCN__V_BOOL,
       py = ty || ccn__is_number(y) || y.kind == CCN__V_BOOL;
  return (tx || ty) && px && py;
}

static ccn__val operate(ccn__rt *rt, const ccn__ast *e, ccn__val x, ccn__val y) {
  ccn__oper op = (ccn__oper)e->op;
  ccn__calc_error err = {805, "is not defined for these", NULL};
  ccn__val out;
  if (goes_to_op(x, y))
    return ccn__operator_call(rt, op, (ccn__arg){.value = x, .span = e->a->span},
                              (ccn__arg){.value = y, .span = e->b->span}, e->span);
  bool numbers =
    x.kind <= CCN__V_FLOAT && y.kind <= CCN__V_FLOAT && x.kind != CCN__V_NONE && y.kind != CCN__V_NONE;
  if (!numbers && (op == CCN__T_EQ || op == CCN__T_NE))
    return ccn__bool_val(equal(rt, x, y, e->span) == (op == CCN__T_EQ));
  if (numbers && ccn__calc_binary(op, x, y, &out, &err)) return out;
  if (x.kind == CCN__V_STRING && y.kind == CCN__V_STRING && op >= CCN__T_LT && op <= CCN__T_GE)
    return ccn__bool_val(string_order(op, x.string, y.string));
  if (op == CCN__T_PLUS && x.kind == y.kind &&
      (x.kind == CCN__V_STRING || x.kind == CCN__V_LIST || x.kind == CCN__V_TUPLE))
    return join(rt, x, y);
  bad_operands(rt, e, x, y, &err);
}

static ccn__val logic(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__val x = ccn__eval(rt, env, e->a), plain = ccn__plain(x);
  if (plain.kind == CCN__V_TENSOR) return operate(rt, e, x, ccn__eval(rt, env, e->b));
  const char *what = e->op == CCN__T_AND ? "an operand of `and`" : "an operand of `or`";
  bool left = ccn__truth(rt, plain, e->a->span, what);
  if (left == (e->op == CCN__T_OR)) return ccn__bool_val(left);
  ccn__val y = ccn__eval(rt, env, e->b);
  if (ccn__plain(y).kind == CCN__V_TENSOR) return operate(rt, e, plain, y);
  return ccn__bool_val(ccn__truth(rt, y, e->b->span, what));
}

static ccn__val binary(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  if (e->op == CCN__T_AND || e->op == CCN__T_OR) return logic(rt, env, e);
  ccn__val x = ccn__eval(rt, env, e->a);
  return operate(rt, e, x, ccn__eval(rt, env, e->b));
}

static ccn__val unary(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__val x = ccn__eval(rt, env, e->a), out;
  ccn__calc_error err;
  if (x.kind == CCN__V_TENSOR)
    return ccn__operator_call(rt, (ccn__oper)e->op, (ccn__arg){.value = x, .span = e->a->span},
                              (ccn__arg){.value = CCN__NONE_VAL}, e->span);
  if (ccn__calc_unary((ccn__oper)e->op, x, &out, &err)) return out;
  ccn__fail(rt, err.code, err.code == 810 ? e->span : e->a->span, ccn__val_kind_name(x),
            err.hint ? err.hint : "pass a number", "`%s` %s%s%s", ccn__oper_text((ccn__oper)e->op), err.why,
            err.code == 810 ? "" : ", not ", err.code == 810 ? "" : ccn__val_kind_name(x));
}

/* ---- indices ------------------------------------------------------------------------------------------- */

static bool bound(ccn__rt *rt, ccn__env *env, const ccn__ast *e, int64_t *out) {
  if (!e) return false;
  *out = ccn__whole(rt, ccn__eval(rt, env, e), e->span, "a bound of a slice");
  return true;
}

static ccn__index_item index_item(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__index_item item = {.span = e->span};
  if (e->kind == CCN__AST_STAR)
    ccn__fail(rt, 805, e->span, "only in schedules and types", "x[:] takes the whole dim", "`*` is no index");
  if (e->kind == CCN__AST_SLICE) {
    item.is_range = true;
    item.has_start = bound(rt, env, e->a, &item.start);
    item.has_end = bound(rt, env, e->b, &item.end);
    return item;
  }
  ccn__val v = ccn__eval(rt, env, e);
  if (v.kind == CCN__V_RANGE) {
    item.is_range = item.has_start = item.has_end = true;
    item.start = v.range->start;
    item.end = v.range->end;
    return item;
  }
  item.start = ccn__whole(rt, v, e->span, "an index");
  return item;
}

/* start and end of a slice in [0, n], or CCN0812. */
static void clip(ccn__rt *rt, const ccn__index_item *it, int64_t n, int64_t *start, int64_t *end) {
  *start = !it->has_start ? 0 : it->start < 0 ? it->start + n : it->start;
  *end = !it->has_end ? n : it->end < 0 ? it->end + n : it->end;
  if (*start >= 0 && *start <= *end && *end <= n) return;
  ccn__fail(rt, 812, it->span, "outside", "0 <= start <= end <= length; negative bounds count from the end",
            "the slice does not lie within the length %lld", (long long)n);
}

static ccn__val index_list(ccn__rt *rt, ccn__list *l, const ccn__index_item *it) {
  int64_t start, end;
  if (!it->is_range)
    return l
      ->at[ccn__position(rt, it->start, l->n, it->span, l->obj.kind == CCN__V_LIST ? "a list" : "a tuple")];
  clip(rt, it, l->n, &start, &end);
  ccn__list *part = ccn__list_new(rt, (ccn__vkind)l->obj.kind, (uint32_t)(end - start));
  for (int64_t i = start; i < end; i++) ccn__list_add(rt, part, l->at[i]);
  return ccn__list_val(part);
}

static ccn__val index_string(ccn__rt *rt, ccn__string *s, const ccn__index_item *it) {
  int64_t n = ccn__string_length(s), start, end;
  if (it->is_range) {
    clip(rt, it, n, &start, &end);
    return substring(rt, s, start, end);
  }
  start = ccn__position(rt, it->start, n, it->span, "a string");
  return substring(rt, s, start, start + 1);
}

static ccn__val index(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__val x = ccn__eval(rt, env, e->a);
  uint32_t n = e->list.n;
  ccn__index_item *item = ccn__temp_memory(rt, n * sizeof *item);
  for (uint32_t i = 0; i < n; i++) item[i] = index_item(rt, env, e->list.at[i]);
  if (x.kind == CCN__V_TENSOR && x.tensor->bundle && n == 1 && !item[0].is_range)
    return ccn__bundle_member(rt, x.tensor, item[0].start, item[0].span);
  if (x.kind == CCN__V_TENSOR)
    return ccn__index_call(rt, (ccn__arg){.value = x, .span = e->a->span}, item, n, e->span);
  bool list = x.kind == CCN__V_LIST || x.kind == CCN__V_TUPLE;
  if (!list && x.kind != CCN__V_STRING)
    ccn__fail(rt, 805, e->a->span, ccn__val_kind_name(x),
              "lists, tuples, strings, bundles and tensors have elements", "%s has no elements",
              ccn__val_kind_name(x));
  if (n != 1)
    ccn__fail(rt, 812, e->list.at[1]->span, "one index too many",
              "nested lists are indexed one by one: x[0][1]", "%s has one index, not %u",
              ccn__val_kind_name(x), n);
  return list ? index_list(rt, x.list, item) : index_string(rt, x.string, item);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static ccn__val name(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__val *v = ccn__env_lookup(env, e->name);
  if (v) return *v;
  if (ccn__is_builtin(e->name)) return (ccn__val){.kind = CCN__V_OP, .name = e->name};
  ccn__unknown_name(rt, env, e->name, e->span);
}

static ccn__val sequence(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__list *l = ccn__list_new(rt, e->kind == CCN__AST_LIST ? CCN__V_LIST : CCN__V_TUPLE, e->list.n);
  for (uint32_t i = 0; i < e->list.n; i++) {
    uint32_t mark = rt->temps.n;
    ccn__list_add(rt, l, ccn__eval(rt, env, e->list.at[i]));
    rt->temps.n = mark; /* the list holds it */
  }
  return ccn__list_val(l);
}

static ccn__val range(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  int64_t start = ccn__whole(rt, ccn__eval(rt, env, e->a), e->a->span, "an end of a range");
  int64_t end = ccn__whole(rt, ccn__eval(rt, env, e->b), e->b->span, "an end of a range");
  if (e->op && end == INT64_MAX)
    ccn__fail(rt, 810, e->b->span, "too large", "use a..b, which leaves b out",
              "the range does not fit 64 bits");
  ccn__range *r = ccn__obj_new(rt, CCN__V_RANGE, sizeof *r);
  r->start = start;
  r->end = e->op ? end + 1 : end;
  if (r->end < r->start) r->end = r->start;
  return (ccn__val){.kind = CCN__V_RANGE, .range = r};
}

ccn__program *ccn__program_with(ccn__rt *rt, ccn__env *env, const ccn__ast *with, ccn__program *p,
                                ccn__schedule *s) {
  ccn__program *q = ccn__obj_new(rt, CCN__V_PROGRAM, sizeof *q);
  q->ast = p->ast;
  q->name = p->name;
  q->constants = p->constants;
  q->generic = p->generic;
  q->base = p;
  q->with = s;
  q->with_call = with->b;
  q->with_env = env;
  return q;
}

static ccn__val with(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__val p = ccn__eval(rt, env, e->a);
  ccn__val s = ccn__eval(rt, env, e->b->kind == CCN__AST_CALL ? e->b->a : e->b);
  ccn__diag *d = ccn__with_check(rt, e, p, s);
  if (d) ccn__rt_raise(rt, d);
  ccn__program *q = ccn__program_with(rt, env, e, p.program, s.schedule);
  ccn__program_try(rt, q, e->span); /* a refused statement shows here, not at the first call */
  return (ccn__val){.kind = CCN__V_PROGRAM, .program = q};
}

static ccn__val lambda(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__fn *f = ccn__obj_new(rt, CCN__V_FN, sizeof *f);
  f->ast = e;
  f->env = env;
  return (ccn__val){.kind = CCN__V_FN, .fn = f};
}

static ccn__val evaluate(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  switch ((ccn__ast_kind)e->kind) {
  case CCN__AST_INT: return ccn__int_val(e->i);
  case CCN__AST_FLOAT: return ccn__float_val(e->f);
  case CCN__AST_BOOL: return ccn__bool_val(e->i != 0);
  case CCN__AST_STRING: return string(rt, env, e);
  case CCN__AST_NAME: return name(rt, env, e);
  case CCN__AST_UNARY: return unary(rt, env, e);
  case CCN__AST_BINARY: return binary(rt, env, e);
  case CCN__AST_CALL: return ccn__eval_call(rt, env, e);
  case CCN__AST_INDEX: return index(rt, env, e);
  case CCN__AST_FIELD: return ccn__field(rt, ccn__eval(rt, env, e->a), e->name, e->nspan);
  case CCN__AST_RANGE: return range(rt, env, e);
  case CCN__AST_LIST:
  case CCN__AST_TUPLE: return sequence(rt, env, e);
  case CCN__AST_LAMBDA: return lambda(rt, env, e);
  case CCN__AST_WITH: return with(rt, env, e);
  case CCN__AST_TENSOR_TYPE: return ccn__eval_type(rt, env, e, false);
  default:
    ccn__fail(rt, 805, e->span, "not a value", "write a value here", "this is no expression of a script");
  }
}

ccn__val ccn__eval(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__enter(rt, e->span);
  ccn__val v = evaluate(rt, env, e);
  ccn__leave(rt);
  if (ccn__val_is_object(v)) ccn__rt_push(rt, v);
  return v;
}
