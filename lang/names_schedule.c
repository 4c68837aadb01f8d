/* names_schedule.c: the names in schedules: of a program's values, of statements, of other schedules.
 *
 * What the statements do is checked where they are carried out; here only names: a slip in one is found at
 * once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

typedef struct names {
  ccn__rt *rt;
  const ccn__env *env; /* of the script */
  const ccn__program *target;
  ccn__env *known;
} names;

static void add(names *n, ccn__name name) {
  if (name && !ccn__env_find(n->known, name)) ccn__env_set(n->rt, n->known, name, ccn__bool_val(true));
}

static void add_pattern(names *n, const ccn__ast *p) {
  if (p->kind == CCN__AST_NAME) add(n, p->name);
  else if (p->kind == CCN__AST_TUPLE)
    for (uint32_t i = 0; i < p->list.n; i++) add_pattern(n, p->list.at[i]);
}

/* All names that a program's text binds, and those of the programs that it calls: handles may have them in
 * front. */
static void add_bound(names *n, const ccn__ast *a) {
  if (!a) return;
  if (a->kind == CCN__AST_ASSIGN || a->kind == CCN__AST_LET || a->kind == CCN__AST_FOR) add_pattern(n, a->a);
  if (a->kind == CCN__AST_FOR || a->kind == CCN__AST_PARAM || a->kind == CCN__AST_LABEL_CALL) add(n, a->name);
  if (a->kind == CCN__AST_CALL && (a->a->kind == CCN__AST_NAME || a->a->kind == CCN__AST_FIELD))
    add(n, a->a->name);
  add_bound(n, a->a);
  add_bound(n, a->b);
  add_bound(n, a->c);
  for (uint32_t i = 0; i < a->list.n; i++) add_bound(n, a->list.at[i]);
  for (uint32_t i = 0; i < a->params.n; i++) add_bound(n, a->params.at[i]);
}

static const char *const words[] = {
  "split",  "reorder",   "fuse",         "overlap", "shard",
  "dead",   "algorithm", "accumulate",   "fast",    "chunks",
  "after",  "before",    "between",      "updated", "only",
  "all",    "outputs",   "direct",       "ring",    "tree",
  "double", "halving",   "hierarchical", "library", "reduce_broadcast",
};

/* matmul2: the name that an unnamed op gets, or its label: a known name and a number. */
static bool is_numbered(const names *n, const char *name) {
  char base[64];
  ccn__op op;
  size_t k = strlen(name);
  while (k > 0 && name[k - 1] >= '0' && name[k - 1] <= '9') k--;
  if (k == 0 || k >= sizeof base) return false;
  memcpy(base, name, k);
  base[k] = 0;
  return ccn__op_find(base, &op) || ccn__env_find(n->known, ccn__internz(n->rt->names, base));
}

static bool is_known(const names *n, ccn__name name) {
  if (ccn__env_find(n->known, name)) return true;
  for (size_t i = 0; i < CCN__COUNT(words); i++)
    if (strcmp(words[i], name) == 0) return true;
  if (is_numbered(n, name)) return true;
  const ccn__val *v = n->env ? ccn__env_lookup(n->env, name) : NULL;
  return v && (v->kind == CCN__V_SCHEDULE || v->kind == CCN__V_MODULE || v->kind == CCN__V_INT ||
               (v->kind == CCN__V_PROGRAM && (!n->target || v->program->ast == n->target->ast)));
}

static void unknown(names *n, ccn__name name, ccn__span span) {
  ccn__nearest near;
  ccn__nearest_init(&near, name);
  for (uint32_t i = 0; i < n->known->n; i++) ccn__nearest_try(&near, n->known->at[i].name);
  for (size_t i = 0; i < CCN__COUNT(words); i++) ccn__nearest_try(&near, words[i]);
  ccn__diag *d = n->target ? ccn__error(n->rt->diags, 400, span, "not in the program",
                                        "program `%s` has no value `%s`", n->target->name, name)
                           : ccn__error(n->rt->diags, 400, span, "not known",
                                        "`%s` is neither a parameter nor a word of schedules", name);
  if (n->target) ccn__note(n->rt->diags, d, n->target->ast->nspan, "the program");
  if (near.best) ccn__hint(n->rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(n->rt->diags, d, "`ccn dump FILE --stage graph` shows the names of a program's values");
  add(n, name); /* once is enough */
}

static void check(names *n, const ccn__ast *a) {
  if (!a || a->kind == CCN__AST_TENSOR_TYPE) return;
  switch (a->kind) {
  case CCN__AST_NAME:
    if (!is_known(n, a->name)) unknown(n, a->name, a->span);
    return;
  case CCN__AST_ASSIGN:
  case CCN__AST_LET:
    check(n, a->b);
    add_pattern(n, a->a);
    return;
  case CCN__AST_FOR:
    check(n, a->b);
    add_pattern(n, a->a);
    check(n, a->c);
    return;
  case CCN__AST_FIELD: check(n, a->a); return; /* members of labels depend on what was inlined */
  default: break;
  }
  check(n, a->a);
  check(n, a->b);
  check(n, a->c);
  for (uint32_t i = 0; i < a->list.n; i++) check(n, a->list.at[i]);
}

void ccn__schedule_check(ccn__rt *rt, const ccn__schedule *s, const ccn__env *env) {
  names n = {rt, env, s->target, ccn__env_new(rt, NULL)};
  if (s->target) {
    add_bound(&n, s->target->ast);
    add(&n, s->target->name);
  }
  for (uint32_t i = 0; i < s->ast->params.n; i++) add(&n, s->ast->params.at[i]->name);
  check(&n, s->ast->b);
}

/* ---- P with s ------------------------------------------------------------------------------------------ */

static ccn__diag *wrong_kind(ccn__rt *rt, ccn__span span, ccn__val v, const char *wanted) {
  ccn__diag *d = ccn__error(rt->diags, 805, span, ccn__val_kind_name(v), "expected %s, found %s", wanted,
                            ccn__val_kind_name(v));
  ccn__hint(rt->diags, d, "as in: let fast = step with zero(step.gsum)");
  return d;
}

/* The handle step.gsum of a generic schedule's arguments. */
static ccn__diag *check_handle(ccn__rt *rt, const ccn__ast *e, const ccn__program *p) {
  if (e->kind != CCN__AST_FIELD || e->a->kind != CCN__AST_NAME) return NULL;
  names n = {rt, NULL, p, ccn__env_new(rt, NULL)};
  add_bound(&n, p->ast);
  if (is_known(&n, e->name)) return NULL;
  unknown(&n, e->name, e->nspan);
  return rt->diags->last;
}

ccn__diag *ccn__with_check(ccn__rt *rt, const ccn__ast *with, ccn__val program, ccn__val schedule) {
  const ccn__ast *call = with->b->kind == CCN__AST_CALL ? with->b : NULL;
  if (program.kind != CCN__V_PROGRAM) return wrong_kind(rt, with->a->span, program, "a program");
  if (schedule.kind != CCN__V_SCHEDULE) return wrong_kind(rt, with->b->span, schedule, "a schedule");
  const ccn__schedule *s = schedule.schedule;
  uint32_t params = s->ast->params.n, given = call ? call->list.n : 0;
  if (s->target && s->target->ast != program.program->ast) {
    ccn__diag *d =
      ccn__error(rt->diags, 814, with->b->span, "", "schedule `%s` is for program `%s`, not for `%s`",
                 s->name, s->target->name, program.program->name);
    d->primary.text = ccn__arena_printf(rt->diags->arena, "for `%s`", s->target->name);
    ccn__note(rt->diags, d, s->ast->nspan, "the schedule");
    ccn__hint(rt->diags, d, "write a schedule for `%s`, or a generic one: schedule %s(x) { ... }",
              program.program->name, s->name);
    return d;
  }
  if (given != params && !(given == 0 && params == 1)) {
    ccn__diag *d = ccn__error(rt->diags, 800, with->b->span, "", "schedule `%s` takes %u handle%s, not %u",
                              s->name, params, params == 1 ? "" : "s", given);
    d->primary.text = ccn__arena_printf(rt->diags->arena, "%u given", given);
    ccn__note(rt->diags, d, s->ast->nspan, "the schedule");
    ccn__hint(rt->diags, d, "handles are written program.name, as in: adam with zero(adam.gsum)");
    return d;
  }
  for (uint32_t i = 0; i < given; i++) {
    ccn__diag *d = check_handle(rt, call->list.at[i]->a, program.program);
    if (d) return d;
  }
  return NULL;
}
