/* lower_slots.c: arguments of an op → the slots of its parameter list, and what stands in them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"

/* ---- slots ---- */

void ccn__build_read_slots(ccn__build *b) {
  const char *p = ccn__op_table[b->op].params;
  while (*p && b->nslots < CCN__MAX_SLOTS) {
    size_t n = strcspn(p, ",?"), room = sizeof b->slot_name[0] - 1;
    memcpy(b->slot_name[b->nslots], p, n < room ? n : room);
    b->slot_optional[b->nslots++] = p[n] == '?';
    p += strcspn(p, ",");
    while (*p == ',' || *p == ' ') p++;
  }
}

ccn__bv ccn__build_fail(ccn__build *b, uint16_t code, ccn__span span, const char *label, const char *text) {
  ccn__lower_error(b->l, code, span, label, "`%s`: %s", b->name, text);
  return CCN__B_FAIL;
}

ccn__bv ccn__build_fail_cure(ccn__build *b, uint16_t code, ccn__span span, const char *label,
                             const char *text, const char *cure) {
  ccn__diag *d = ccn__lower_error(b->l, code, span, label, "`%s`: %s", b->name, text);
  ccn__hint(b->l->ds, d, "%s", cure);
  return CCN__B_FAIL;
}

bool ccn__build_fill_slots(ccn__build *b, const ccn__opd *args, uint32_t nargs) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    uint32_t k = next;
    if (args[i].name)
      for (k = 0; k < b->nslots && strcmp(b->slot_name[k], args[i].name) != 0; k++) {}
    else next++;
    if (k >= b->nslots) {
      ccn__diag *d = ccn__lower_error(
        b->l, args[i].name ? 806 : 800, args[i].name ? args[i].nspan : args[i].span, "not expected",
        args[i].name ? "`%s` has no parameter `%s`" : "too many arguments for `%s`", b->name, args[i].name);
      ccn__hint(b->l->ds, d, "its parameters are: %s", ccn__op_table[b->op].params);
      return false;
    }
    if (b->slot[k]) {
      ccn__lower_error(b->l, 806, args[i].span, "given twice", "parameter `%s` of `%s` is given twice",
                       b->slot_name[k], b->name);
      return false;
    }
    b->slot[k] = &args[i];
  }
  for (uint32_t k = 0; k < b->nslots; k++) {
    if (b->slot[k] || b->slot_optional[k]) continue;
    bool step = strcmp(b->slot_name[k], "step") == 0;
    ccn__diag *d = ccn__lower_error(b->l, step ? 120 : 800, b->span, "one is missing",
                                    "`%s` needs its parameter `%s`", b->name, b->slot_name[k]);
    ccn__hint(
      b->l->ds, d,
      step ? "give the training step, as in `step: step`: without it every step would drop the same elements"
           : "its parameters are: %s",
      ccn__op_table[b->op].params);
    return false;
  }
  return true;
}

const ccn__opd *ccn__slot(ccn__build *b, const char *name) {
  for (uint32_t k = 0; k < b->nslots; k++)
    if (strcmp(b->slot_name[k], name) == 0) return b->slot[k];
  return NULL;
}

ccn__bv ccn__slot_value(ccn__build *b, const char *name) {
  const ccn__opd *a = ccn__slot(b, name);
  if (!a) return (ccn__bv){.kind = CCN__B_NONE};
  ccn__bv v = a->ast ? ccn__lower_expr(b->l, a->ast) : a->value;
  v.span = a->span;
  return v;
}

ccn__id ccn__slot_node(ccn__build *b, const char *name, int t) {
  return ccn__as_node(b->l, ccn__slot_value(b, name), t);
}

bool ccn__slot_i64(ccn__build *b, const char *name, int64_t otherwise, int64_t *out) {
  *out = otherwise;
  if (!ccn__slot(b, name)) return true;
  return ccn__lit_i64(b->l, ccn__slot_value(b, name), ccn__arena_printf(b->l->arena, "`%s`", name), out);
}

bool ccn__slot_bool(ccn__build *b, const char *name, bool *out) {
  int64_t v;
  *out = false;
  if (!ccn__slot_i64(b, name, 0, &v)) return false;
  *out = v != 0;
  return true;
}

static ccn__name word_of(const ccn__opd *a) {
  if (a->ast) return a->ast->kind == CCN__AST_NAME ? a->ast->name : NULL;
  return a->value.kind == CCN__B_OP ? a->value.name : NULL;
}

ccn__name ccn__slot_word(ccn__build *b, const char *name) {
  const ccn__opd *a = ccn__slot(b, name);
  return a ? word_of(a) : NULL;
}

bool ccn__build_normal_dim(ccn__build *b, ccn__span span, uint32_t rank, int64_t *d) {
  int64_t given = *d;
  if (*d < 0) *d += rank;
  if (*d >= 0 && *d < rank) return true;
  ccn__lower_error(b->l, 309, span, "no such dim", "`%s`: a value of %u dims has no dim %lld", b->name, rank,
                   (long long)given);
  return false;
}

bool ccn__slot_dim(ccn__build *b, const char *name, uint32_t rank, int64_t otherwise, int64_t *out) {
  const ccn__opd *a = ccn__slot(b, name);
  return ccn__slot_i64(b, name, otherwise, out) && ccn__build_normal_dim(b, a ? a->span : b->span, rank, out);
}

bool ccn__slot_dims(ccn__build *b, const char *name, uint32_t rank, int64_t *out, uint8_t *out_n) {
  const ccn__opd *a = ccn__slot(b, name);
  *out_n = 0;
  if (!a) {
    for (uint32_t d = 0; d < rank; d++) out[(*out_n)++] = d;
    return true;
  }
  ccn__bv v = ccn__slot_value(b, name), one[1] = {v};
  if (v.kind == CCN__B_ERROR) return false;
  bool list = v.kind == CCN__B_LIST || v.kind == CCN__B_TUPLE;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < (list ? v.list.n : 1); i++) {
    int64_t d;
    ccn__bv x = list ? v.list.at[i] : one[0];
    if (!ccn__lit_i64(b->l, x, "a dim", &d) || !ccn__build_normal_dim(b, x.span, rank, &d)) return false;
    if (seen >> d & 1) {
      ccn__lower_error(b->l, 309, x.span, "named twice", "`%s`: dim %lld is named twice", b->name,
                       (long long)d);
      return false;
    }
    seen |= UINT64_C(1) << d;
  }
  for (uint32_t d = 0; d < rank; d++)
    if (seen >> d & 1) out[(*out_n)++] = d;
  return true;
}

static const ccn__type *type_of_value(ccn__build *b, const ccn__typeval *v) {
  ccn__type *t = CCN__NEW(b->l->arena, ccn__type);
  t->dtype = v->dtype;
  t->rank = v->rank;
  t->naxes = (uint8_t)b->l->g->mesh.naxes;
  for (uint32_t d = 0; d < v->rank; d++) t->dim[d] = ccn__dim_const(b->l->arena, v->dim[d]);
  for (uint32_t a = 0; a < t->naxes && a < v->naxes; a++) {
    const ccn__cplace *p = &v->place[a];
    t->place[a] = (ccn__place){
      .kind = p->kind,
      .op = p->op,
      .dim = p->dim,
      .coord = p->coord,
      .unit = p->kind == CCN__SLICED && p->unit > 1 ? ccn__dim_const(b->l->arena, p->unit) : NULL};
  }
  return t;
}

const ccn__type *ccn__slot_type(ccn__build *b, const char *name) {
  const ccn__opd *a = ccn__slot(b, name);
  ccn__bv v = ccn__slot_value(b, name);
  if (v.kind == CCN__B_ERROR) return NULL;
  if (v.kind == CCN__B_TYPE && a->ast) return ccn__lower_type(b->l, v.type, false);
  if (v.kind == CCN__B_TYPE) return type_of_value(b, v.typeval);
  (void)ccn__build_fail(b, 800, a->span, "not a type", "a type is needed here, as in `f32[8]`");
  ccn__hint(b->l->ds, b->l->ds->last, "write the dtype and the extents: %s(f32[2, 3]%s)", b->name,
            strchr(ccn__op_table[b->op].params, ',') ? ", ..." : "");
  return NULL;
}

/* ---- whole numbers ---- */

bool ccn__build_fractional(ccn__bv v) {
  ccn__number n;
  return v.kind == CCN__B_LIT && !ccn__lit_eval(v.lit, NULL, &n) && n.is_float;
}

ccn__bv ccn__build_not_whole(ccn__build *b, const char *slot, const char *cure) {
  const char *text = ccn__arena_printf(b->l->arena, "`%s` is a whole number", slot);
  return ccn__build_fail_cure(b, 102, ccn__slot(b, slot)->span, "not a whole number", text, cure);
}
