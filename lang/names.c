/* names.c: the check of a script before it runs: unknown names, what stands in programs only, what is out of
 * place.
 *
 * One walk in text order. Each scope knows the names that are defined so far (`now`, with the values that do
 * not depend on running) and all that its block will define (`later`). A function's body runs later, so there
 * names of outer scopes may still come. The walk also makes the program values, for the check of programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

typedef struct scope {
  struct scope *outer;
  ccn__env *now;
  ccn__env *later; /* name → INT: the address of the node that defines it */
  bool function;   /* a function's body */
} scope;

typedef struct walk {
  ccn__rt *rt;
  ccn__program_list *out;
  scope *scope;
  ccn__env *assigned; /* names that assignments change somewhere: their values are not known */
  ccn__env *reported; /* one error a name */
  uint32_t loops, functions;
  bool main_script;
} walk;

static void expression(walk *w, const ccn__ast *e);
static void statement(walk *w, const ccn__ast *s);

/* ---- definitions --------------------------------------------------------------------------------------- */

static void define(walk *w, ccn__name name, ccn__val v) {
  if (ccn__env_find(w->assigned, name)) v = CCN__NONE_VAL;
  ccn__env_set(w->rt, w->scope->now, name, v);
}

static void define_pattern(walk *w, const ccn__ast *p) {
  if (p->kind == CCN__AST_NAME) define(w, p->name, CCN__NONE_VAL);
  else
    for (uint32_t i = 0; i < p->list.n; i++) define_pattern(w, p->list.at[i]);
}

static void shadow_warning(walk *w, ccn__name name, ccn__span span) {
  if (!ccn__op_callable(name) || ccn__env_find(w->reported, name)) return;
  ccn__env_set(w->rt, w->reported, name, ccn__bool_val(true));
  ccn__diag *d = ccn__warning(w->rt->diags, 808, span, "from here on this is meant",
                              "`%s` hides the op of that name", name);
  ccn__hint(w->rt->diags, d, "call it something else, if the op is needed");
}

static ccn__val node_value(const ccn__ast *n) { return ccn__int_val((int64_t)(intptr_t)n); }

static void announce_pattern(walk *w, ccn__env *later, const ccn__ast *p) {
  if (p->kind == CCN__AST_NAME && !ccn__env_find(later, p->name))
    ccn__env_set(w->rt, later, p->name, node_value(p));
  else
    for (uint32_t i = 0; i < p->list.n; i++) announce_pattern(w, later, p->list.at[i]);
}

/* The names that the statements of a block will define. */
static void announce(walk *w, ccn__env *later, const ccn__ast *block) {
  for (uint32_t i = 0; i < block->list.n; i++) {
    const ccn__ast *s = block->list.at[i];
    ccn__name name = s->name;
    if (s->kind == CCN__AST_LET) announce_pattern(w, later, s->a);
    if (s->kind == CCN__AST_IMPORT) name = ccn__import_name(w->rt, s);
    else if (s->kind != CCN__AST_FN && s->kind != CCN__AST_PROGRAM && s->kind != CCN__AST_SCHEDULE) continue;
    if (!ccn__env_find(later, name)) ccn__env_set(w->rt, later, name, node_value(s));
  }
}

static void note_assigned(walk *w, const ccn__ast *n) {
  if (!n || n->kind == CCN__AST_PROGRAM || n->kind == CCN__AST_SCHEDULE) return;
  if (n->kind == CCN__AST_ASSIGN) announce_pattern(w, w->assigned, n->a);
  note_assigned(w, n->a);
  note_assigned(w, n->b);
  note_assigned(w, n->c);
  for (uint32_t i = 0; i < n->list.n; i++) note_assigned(w, n->list.at[i]);
}

static void open_scope(walk *w, scope *s, ccn__env *now, bool function) {
  *s = (scope){w->scope, now ? now : ccn__env_new(w->rt, w->scope->now), ccn__env_new(w->rt, NULL), function};
  w->scope = s;
}

static void close_scope(walk *w) { w->scope = w->scope->outer; }

/* ---- uses ---------------------------------------------------------------------------------------------- */

static void hint_nearest(walk *w, ccn__diag *d, ccn__name name) {
  ccn__nearest near;
  if (!d->code) return; /* past the limit: counted only */
  ccn__nearest_init(&near, name);
  for (const scope *s = w->scope; s; s = s->outer) {
    for (uint32_t i = 0; i < s->now->n; i++) ccn__nearest_try(&near, s->now->at[i].name);
    for (uint32_t i = 0; i < s->later->n; i++) ccn__nearest_try(&near, s->later->at[i].name);
  }
  ccn__nearest_builtin(&near);
  if (near.best) ccn__hint(w->rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(w->rt->diags, d, "a variable is made with let: let %s = ...", name);
}

static void too_early(walk *w, ccn__name name, ccn__span span, const ccn__ast *definition) {
  ccn__diag *d =
    ccn__error(w->rt->diags, 807, span, "not defined yet", "`%s` is used before its definition", name);
  ccn__note(w->rt->diags, d, definition->nspan.source ? definition->nspan : definition->span, "defined here");
  ccn__hint(w->rt->diags, d, "move the definition up");
}

/* Whether the name means something here; reports if not, each name once. */
static bool resolve(walk *w, ccn__name name, ccn__span span, bool assigned) {
  const ccn__ast *definition = NULL;
  bool crossed = false;
  for (const scope *s = w->scope; s; s = s->outer) {
    if (ccn__env_find(s->now, name)) return true;
    const ccn__val *later = ccn__env_find(s->later, name);
    if (later && crossed) return true;
    if (later && !definition) definition = (const ccn__ast *)(intptr_t)later->i;
    crossed = crossed || s->function;
  }
  if (!definition && !assigned && ccn__is_builtin(name)) return true;
  if (ccn__env_find(w->reported, name)) return false;
  ccn__env_set(w->rt, w->reported, name, ccn__bool_val(true));
  if (definition) {
    too_early(w, name, span, definition);
    return false;
  }
  ccn__diag *d = ccn__error(w->rt->diags, 801, span, assigned ? "no such variable" : "not defined",
                            "nothing is called `%s`", name);
  hint_nearest(w, d, name);
  if (assigned && !d->hint) ccn__hint(w->rt->diags, d, "a new variable is made with let: let %s = ...", name);
  return false;
}

static bool is_axis(walk *w, const ccn__ast *e) {
  ccn__nearest near;
  ccn__nearest_init(&near, e->name);
  for (uint32_t a = 0; a < w->rt->mesh.naxes; a++) {
    if (w->rt->mesh.name[a] == e->name) return true;
    ccn__nearest_try(&near, w->rt->mesh.name[a]);
  }
  ccn__diag *d = ccn__error(w->rt->diags, 311, e->span, "no such axis", "the mesh has no axis `%s`", e->name);
  if (near.best) ccn__hint(w->rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(w->rt->diags, d, "axes are declared in the main script's first statement: mesh (dp)");
  return false;
}

/* ---- values that do not depend on running -------------------------------------------------------------- */

static bool known(walk *w, const ccn__ast *e, ccn__val *out);

static bool known_tuple(walk *w, const ccn__ast *e, ccn__val *out) {
  ccn__list *l = ccn__list_new(w->rt, CCN__V_TUPLE, e->list.n);
  for (uint32_t i = 0; i < e->list.n; i++) {
    ccn__val v;
    if (!known(w, e->list.at[i], &v)) return false;
    ccn__list_add(w->rt, l, v);
  }
  *out = ccn__list_val(l);
  return true;
}

static bool known_with(walk *w, const ccn__ast *e, ccn__val *out) {
  ccn__val p, s;
  if (!known(w, e->a, &p) || p.kind != CCN__V_PROGRAM) return false;
  if (!known(w, e->b->kind == CCN__AST_CALL ? e->b->a : e->b, &s) || s.kind != CCN__V_SCHEDULE) return false;
  scope *top = w->scope;
  while (top->outer) top = top->outer;
  ccn__program *q = ccn__program_with(w->rt, top->now, e, p.program, s.schedule);
  *out = (ccn__val){.kind = CCN__V_PROGRAM, .program = q};
  return true;
}

static bool known(walk *w, const ccn__ast *e, ccn__val *out) {
  ccn__calc_error err;
  ccn__val x, y;
  const ccn__val *bound;
  switch (e->kind) {
  case CCN__AST_INT: *out = ccn__int_val(e->i); return true;
  case CCN__AST_FLOAT: *out = ccn__float_val(e->f); return true;
  case CCN__AST_BOOL: *out = ccn__bool_val(e->i != 0); return true;
  case CCN__AST_STRING:
    if (e->list.n > 1 || (e->list.n && e->list.at[0]->kind != CCN__AST_TEXT)) return false;
    *out =
      ccn__val_string(w->rt, e->list.n ? e->list.at[0]->str : "", e->list.n ? (size_t)e->list.at[0]->i : 0);
    return true;
  case CCN__AST_NAME:
    bound = ccn__env_lookup(w->scope->now, e->name);
    if (!bound || bound->kind == CCN__V_NONE) return false;
    *out = *bound;
    return true;
  case CCN__AST_FIELD:
    if (!known(w, e->a, &x) || x.kind != CCN__V_MODULE) return false;
    bound = ccn__env_find(x.module->env, e->name);
    if (!bound || bound->kind == CCN__V_NONE) return false;
    *out = *bound;
    return true;
  case CCN__AST_UNARY: return known(w, e->a, &x) && ccn__calc_unary((ccn__oper)e->op, x, out, &err);
  case CCN__AST_BINARY:
    return known(w, e->a, &x) && known(w, e->b, &y) && ccn__calc_binary((ccn__oper)e->op, x, y, out, &err);
  case CCN__AST_TUPLE: return known_tuple(w, e, out);
  case CCN__AST_WITH: return known_with(w, e, out);
  default: return false; /* lists may be changed by methods */
  }
}

static bool has_dims(const ccn__ast *type) { return type->kind == CCN__AST_TENSOR_TYPE && type->list.n; }

/* zeros(f32[N]), load("x.npy", as: f32[N]), tensor([1, 2], f32) */
static bool makes_tensor(walk *w, const ccn__ast *call) {
  ccn__op op;
  ccn__name name = call->a->name;
  const ccn__ast *first = call->list.n ? call->list.at[0]->a : NULL;
  if (!first || ccn__env_lookup(w->scope->now, name)) return false;
  if (!strcmp(name, "tensor")) return first->kind == CCN__AST_LIST;
  if (!strcmp(name, "load")) return call->list.n == 2 && has_dims(call->list.at[1]->a);
  bool maker = !strcmp(name, "zeros") || !strcmp(name, "ones");
  if (ccn__op_find(name, &op))
    maker = ccn__op_table[op].kind == CCN__KIND_MAKER || ccn__op_table[op].kind == CCN__KIND_RANDOM;
  return maker && has_dims(first);
}

/* Whether the value is certainly a tensor with dims. */
static bool is_tensor(walk *w, const ccn__ast *e) {
  const ccn__val *v;
  for (; e->kind == CCN__AST_BINARY; e = e->a)
    if (is_tensor(w, e->b)) return true;
  switch (e->kind) {
  case CCN__AST_NAME: v = ccn__env_lookup(w->scope->now, e->name); return v && v->kind == CCN__V_NONE && v->b;
  case CCN__AST_UNARY: return is_tensor(w, e->a);
  case CCN__AST_CALL: return e->a->kind == CCN__AST_NAME && makes_tensor(w, e);
  default: return false;
  }
}

/* ---- expressions --------------------------------------------------------------------------------------- */

static void expressions(walk *w, const ccn__ast_list *l) {
  for (uint32_t i = 0; i < l->n; i++) expression(w, l->at[i]);
}

static void type(walk *w, const ccn__ast *t, bool open) {
  for (uint32_t i = 0; i < t->list.n; i++) {
    const ccn__ast *d = t->list.at[i];
    if (!(open && d->kind == CCN__AST_NAME)) expression(w, d);
  }
  for (uint32_t i = 0; i < t->params.n; i++) {
    const ccn__ast *p = t->params.at[i];
    for (uint32_t k = 0; k < p->axes.n; k++) (void)is_axis(w, p->axes.at[k]);
    if (strcmp(p->name, "partial")) expressions(w, &p->list);
  }
}

static void named_call(walk *w, const ccn__ast *e) {
  ccn__name name = e->a->name;
  bool bound = ccn__env_lookup(w->scope->now, name) != NULL;
  if (!bound && ccn__program_only(name)) { /* its arguments are a program's, not looked at */
    (void)ccn__program_only_error(w->rt, name, e->a->span);
    return;
  }
  if (!bound && strcmp(name, "size") == 0) {
    if (e->list.n == 1 && e->list.at[0]->a->kind == CCN__AST_NAME) (void)is_axis(w, e->list.at[0]->a);
    return;
  }
  (void)resolve(w, name, e->a->span, false);
  for (uint32_t i = 0; i < e->list.n; i++) {
    const ccn__ast *a = e->list.at[i];
    bool as = !bound && a->name && !strcmp(a->name, "as") && !strcmp(name, "load") &&
              a->a->kind == CCN__AST_TENSOR_TYPE;
    if (as) type(w, a->a, true);
    else expression(w, a->a);
  }
}

static void function(walk *w, const ccn__ast *f) {
  scope s;
  uint32_t loops = w->loops;
  open_scope(w, &s, NULL, true);
  for (uint32_t i = 0; i < f->params.n; i++) {
    if (f->params.at[i]->b) expression(w, f->params.at[i]->b);
    define(w, f->params.at[i]->name, CCN__NONE_VAL);
  }
  w->loops = 0;
  w->functions++;
  statement(w, f->b);
  w->functions--;
  w->loops = loops;
  close_scope(w);
}

static void member(walk *w, const ccn__ast *e) {
  ccn__val v;
  expression(w, e->a);
  if (!known(w, e->a, &v) || v.kind != CCN__V_MODULE || ccn__env_find(v.module->env, e->name)) return;
  ccn__nearest near;
  ccn__nearest_init(&near, e->name);
  for (uint32_t i = 0; i < v.module->env->n; i++) ccn__nearest_try(&near, v.module->env->at[i].name);
  ccn__diag *d = ccn__error(w->rt->diags, 801, e->nspan, "no such member", "module `%s` has no member `%s`",
                            v.module->path, e->name);
  if (near.best) ccn__hint(w->rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(w->rt->diags, d, "look into the module for the names that it defines");
}

static void with(walk *w, const ccn__ast *e) {
  ccn__val p, s;
  const ccn__ast *schedule = e->b->kind == CCN__AST_CALL ? e->b->a : e->b;
  expression(w, e->a);
  expression(w, schedule);
  if (e->b->kind == CCN__AST_CALL) expressions(w, &e->b->list);
  const ccn__ast *base = e->a; /* what is scheduled; schedules before this one do not matter here */
  while (base->kind == CCN__AST_WITH) base = base->a;
  if (!known(w, base, &p) || !known(w, schedule, &s) || ccn__with_check(w->rt, e, p, s)) return;
  ccn__val q;
  if (w->main_script && known(w, e, &q))
    *CCN__PUSH(w->rt->arena, w->out) = q.program; /* its schedules are checked too */
}

static void expression(walk *w, const ccn__ast *e) {
  if (!e) return;
  switch (e->kind) {
  case CCN__AST_NAME: (void)resolve(w, e->name, e->span, false); return;
  case CCN__AST_CALL:
    for (uint32_t i = 0; i < e->axes.n; i++) (void)is_axis(w, e->axes.at[i]);
    if (e->a->kind == CCN__AST_NAME) {
      named_call(w, e);
      return;
    }
    break;
  case CCN__AST_FIELD: member(w, e); return;
  case CCN__AST_LAMBDA: function(w, e); return;
  case CCN__AST_WITH: with(w, e); return;
  case CCN__AST_TENSOR_TYPE: type(w, e, false); return;
  default: break;
  }
  expression(w, e->a);
  expression(w, e->b);
  expressions(w, &e->list);
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static void define_program(walk *w, const ccn__ast *s) {
  ccn__program *p = ccn__program_new(w->rt, w->scope->now, s);
  ccn__val v = {.kind = CCN__V_PROGRAM, .program = p};
  shadow_warning(w, s->name, s->nspan);
  ccn__env_set(w->rt, p->constants, s->name, v);
  define(w, s->name, v);
  *CCN__PUSH(w->rt->arena, w->out) = p;
}

static void define_schedule(walk *w, const ccn__ast *s) {
  ccn__schedule *x = ccn__obj_new(w->rt, CCN__V_SCHEDULE, sizeof *x);
  ccn__val p;
  x->ast = s;
  x->name = s->name;
  x->env = w->scope->now;
  bool good = true;
  if (s->a) {
    uint32_t errors = w->rt->diags->errors;
    expression(w, s->a);
    good = errors == w->rt->diags->errors;
    if (good && known(w, s->a, &p)) {
      if (p.kind == CCN__V_PROGRAM) x->target = p.program;
      good = p.kind == CCN__V_PROGRAM;
      if (!good) {
        ccn__diag *d = ccn__error(w->rt->diags, 400, s->a->span, ccn__val_kind_name(p), "%s is no program",
                                  ccn__val_kind_name(p));
        ccn__hint(w->rt->diags, d, "a schedule is for a program: schedule s for step { ... }");
      }
    } else {
      good = false;
    }
  }
  if (good) ccn__schedule_check(w->rt, x, w->scope->now);
  define(w, s->name, (ccn__val){.kind = CCN__V_SCHEDULE, .schedule = x});
}

static void define_fn(walk *w, const ccn__ast *s) {
  ccn__fn *f = ccn__obj_new(w->rt, CCN__V_FN, sizeof *f);
  f->ast = s;
  f->name = s->name;
  f->env = w->scope->now;
  shadow_warning(w, s->name, s->nspan);
  define(w, s->name, (ccn__val){.kind = CCN__V_FN, .fn = f});
  function(w, s);
}

static void define_let(walk *w, const ccn__ast *s) {
  ccn__val v;
  expression(w, s->b);
  if (s->a->kind == CCN__AST_NAME) shadow_warning(w, s->a->name, s->a->span);
  if (s->a->kind == CCN__AST_NAME && known(w, s->b, &v)) define(w, s->a->name, v);
  else if (s->a->kind == CCN__AST_NAME && is_tensor(w, s->b)) define(w, s->a->name, CCN__SOME_TENSOR);
  else define_pattern(w, s->a);
}

static void misplaced(walk *w, uint16_t code, ccn__span span, const char *what, const char *hint) {
  ccn__diag *d = ccn__error(w->rt->diags, code, span, "not allowed here", "%s", what);
  ccn__hint(w->rt->diags, d, "%s", hint);
}

static void assign(walk *w, const ccn__ast *target) {
  if (target->kind == CCN__AST_NAME) (void)resolve(w, target->name, target->span, true);
  else if (target->kind == CCN__AST_TUPLE)
    for (uint32_t i = 0; i < target->list.n; i++) assign(w, target->list.at[i]);
  else expression(w, target);
  if (target->kind == CCN__AST_FIELD)
    misplaced(w, 805, target->span, "a member cannot be given a value",
              "keep changing values in variables or lists");
}

static void mesh(walk *w, const ccn__ast *s, bool first) {
  int64_t size[CCN__MAX_AXES] = {0};
  if (!w->main_script || !first) {
    misplaced(w, 300, s->span,
              w->main_script ? "a mesh is declared once, as the first statement"
                             : "only the main script declares a mesh",
              w->main_script
                ? "move it to the top of the file"
                : "write programs of modules for any mesh, with axes of their own: program f<ax>(...)");
    if (w->rt->mesh_span.source) ccn__note(w->rt->diags, w->rt->diags->last, w->rt->mesh_span, "the mesh");
    if (!w->main_script || w->rt->mesh_span.source) return;
  } /* a late one counts for what follows, so that it is the only error */
  for (uint32_t a = 0; a < s->list.n && a < CCN__MAX_AXES; a++) {
    const ccn__ast *e = s->list.at[a]->a;
    ccn__val v;
    if (!e) continue;
    if (!known(w, e, &v) || v.kind != CCN__V_INT) {
      misplaced(w, 805, e->span, "the size of an axis is a whole number that does not depend on running",
                "write a number, or leave one axis open");
      return;
    }
    size[a] = v.i;
  }
  (void)ccn__mesh_define(w->rt, s, size, false);
}

static void import(walk *w, const ccn__ast *s) {
  ccn__module *m = ccn__module_outline(w->rt, s->str, s->span, w->out);
  ccn__val v = CCN__NONE_VAL;
  if (m) v = (ccn__val){.kind = CCN__V_MODULE, .module = m};
  define(w, ccn__import_name(w->rt, s), v);
}

static void block(walk *w, const ccn__ast *b) {
  scope s;
  open_scope(w, &s, NULL, false);
  announce(w, s.later, b);
  for (uint32_t i = 0; i < b->list.n; i++) statement(w, b->list.at[i]);
  close_scope(w);
}

static void loop(walk *w, const ccn__ast *s) {
  scope inner;
  expression(w, s->b);
  open_scope(w, &inner, NULL, false);
  define_pattern(w, s->a);
  w->loops++;
  statement(w, s->c);
  w->loops--;
  close_scope(w);
}

static void statement(walk *w, const ccn__ast *s) {
  switch (s->kind) {
  case CCN__AST_EXPR: expression(w, s->a); break;
  case CCN__AST_LET: define_let(w, s); break;
  case CCN__AST_ASSIGN:
    expression(w, s->b);
    assign(w, s->a);
    break;
  case CCN__AST_IF:
    for (; s; s = s->c) {
      if (s->kind == CCN__AST_BLOCK) {
        block(w, s);
        break;
      }
      expression(w, s->a);
      block(w, s->b);
    }
    break;
  case CCN__AST_WHILE:
    expression(w, s->a);
    w->loops++;
    block(w, s->b);
    w->loops--;
    break;
  case CCN__AST_FOR: loop(w, s); break;
  case CCN__AST_RETURN:
    expression(w, s->a);
    if (!w->functions)
      misplaced(w, 10, s->span, "`return` stands outside of a function",
                "only functions and programs return values");
    break;
  case CCN__AST_BREAK:
  case CCN__AST_CONTINUE:
    if (!w->loops)
      misplaced(w, 10, s->span,
                s->kind == CCN__AST_BREAK ? "`break` stands outside of a loop"
                                          : "`continue` stands outside of a loop",
                "it ends a round of for or while");
    break;
  case CCN__AST_ASSERT:
    expression(w, s->a);
    expression(w, s->b);
    break;
  case CCN__AST_FN: define_fn(w, s); break;
  case CCN__AST_PROGRAM: define_program(w, s); break;
  case CCN__AST_SCHEDULE: define_schedule(w, s); break;
  case CCN__AST_IMPORT: import(w, s); break;
  case CCN__AST_BLOCK: block(w, s); break;
  default:
    misplaced(w, 10, s->span, "this statement stands in programs only", "put it into a program");
    break;
  }
}

static void check_block(walk *w, const ccn__ast *b, ccn__env *env) {
  scope top;
  w->reported = ccn__env_new(w->rt, NULL);
  open_scope(w, &top, env, false);
  announce(w, top.later, b);
  for (uint32_t i = 0; i < b->list.n; i++) {
    const ccn__ast *s = b->list.at[i];
    if (s->kind == CCN__AST_MESH) mesh(w, s, i == 0);
    else statement(w, s);
  }
}

void ccn__names_check(ccn__rt *rt, const ccn__ast *b, bool main_script, ccn__env *env,
                      ccn__program_list *out) {
  walk w = {.rt = rt, .out = out, .main_script = main_script, .assigned = ccn__env_new(rt, NULL)};
  note_assigned(&w, b);
  check_block(&w, b, env);
}

void ccn__names_check_entry(ccn__rt *rt, const ccn__ast *b, ccn__env *env, ccn__env *assigned,
                            ccn__program_list *out) {
  walk w = {.rt = rt, .out = out, .main_script = true, .assigned = assigned};
  note_assigned(&w, b);
  for (uint32_t i = 0; i < env->n; i++)
    if (ccn__env_find(assigned, env->at[i].name)) env->at[i].value = CCN__NONE_VAL;
  check_block(&w, b, env);
}
