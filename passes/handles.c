/* handles.c: names, paths, patterns and selectors → lists of nodes, in text order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "handles.h"

#define FAILED ((ccn__handle){.kind = CCN__H_ERROR})

static ccn__handle fail(ccn__schedule_run *r, uint16_t code, ccn__span span, const char *label,
                        const char *text, const char *hint) {
  ccn__diag *d = ccn__error(r->rt->diags, code, span, label, "%s", text);
  if (hint) ccn__hint(r->rt->diags, d, "%s", hint);
  return FAILED;
}

/* ---- paths ---- */

/* adam, or optim.adam of a module: the program in front of a path. */
static bool names_program(ccn__schedule_run *r, const ccn__ast *e) {
  const ccn__ast *front = e->kind == CCN__AST_FIELD ? e->a : e;
  if ((e->kind != CCN__AST_NAME && e->kind != CCN__AST_FIELD) || front->kind != CCN__AST_NAME) return false;
  if (ccn__handle_find(r, front->name)) return false;
  if (e != front) {
    const ccn__val *m = r->env ? ccn__env_lookup(r->env, front->name) : NULL;
    if (!m || m->kind != CCN__V_MODULE) return false;
  }
  for (const ccn__program *p = r->program; p; p = p->base)
    if (p->name == e->name || p->ast->name == e->name) return true;
  return false;
}

/* The text of a path with [*] as it stands; NULL if e is no path. A label bound to a name stands for itself. */
static const char *path_text(ccn__schedule_run *r, const ccn__ast *e) {
  if (e->kind == CCN__AST_NAME) {
    const ccn__handle *h = ccn__handle_find(r, e->name);
    if (h && h->kind == CCN__H_LABELS && h->labels.n == 1) return h->labels.at[0];
    return h ? NULL : e->name;
  }
  if (e->kind == CCN__AST_FIELD) {
    if (names_program(r, e->a)) return e->name;
    const char *base = path_text(r, e->a);
    return base ? ccn__arena_printf(r->arena, "%s.%s", base, e->name) : NULL;
  }
  if (e->kind == CCN__AST_INDEX && e->list.n == 1) {
    const char *base = path_text(r, e->a);
    const ccn__ast *i = e->list.at[0];
    if (!base) return NULL;
    if (i->kind == CCN__AST_STAR) return ccn__arena_printf(r->arena, "%s[*]", base);
    if (i->kind == CCN__AST_INT) return ccn__arena_printf(r->arena, "%s[%lld]", base, (long long)i->i);
  }
  return NULL;
}

/* How much of `name` the pattern matches; 0 if it does not begin with it. */
static size_t match_front(const char *pattern, const char *name) {
  const char *n = name;
  for (const char *p = pattern; *p; p++) {
    if (*p == '*' && p > pattern && p[-1] == '[') {
      if (*n < '0' || *n > '9') return 0;
      while (*n >= '0' && *n <= '9') n++;
      continue;
    }
    if (*n++ != *p) return 0;
  }
  return (size_t)(n - name);
}

static bool matches(const char *pattern, const char *name) {
  size_t n = name ? match_front(pattern, name) : 0;
  return n && !name[n];
}

static bool names_node(const char *pattern, const ccn__node *n) {
  return matches(pattern, n->name) || matches(pattern, n->autoname);
}

/* A name may have been bound again: without a pattern the last one counts. */
static ccn__handle nodes_of_path(ccn__schedule_run *r, const ccn__ast *e, const char *path) {
  ccn__handle h = {.kind = CCN__H_NODES, .span = e->span};
  bool many = strchr(path, '*') != NULL;
  ccn__id last = CCN__NO_ID;
  for (uint32_t i = r->gone.n; i-- > 0 && !many;)
    if (matches(path, r->gone.at[i].name)) {
      ccn__diag *d = ccn__error(r->rt->diags, 401, e->span, "no longer there",
                                "`%s` was replaced by an earlier statement", path);
      ccn__note(r->rt->diags, d, r->gone.at[i].where, "replaced here");
      ccn__hint(r->rt->diags, d, "name what that statement gave, as in `(rs, ag) = split(...)`");
      return FAILED;
    }
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    const ccn__node *n = &r->g->nodes.at[i];
    if (!names_node(path, n)) continue;
    if (many) *CCN__PUSH(r->arena, &h.items) = (ccn__item){i, {0}};
    bool by_name = matches(path, n->name);
    if (last == CCN__NO_ID || by_name || !matches(path, r->g->nodes.at[last].name)) last = i;
  }
  if (!many && last != CCN__NO_ID) *CCN__PUSH(r->arena, &h.items) = (ccn__item){last, {0}};
  if (h.items.n || many) return h;
  /* a label: all that stands under it is found through a pattern or a field */
  const char *front = ccn__arena_printf(r->arena, "%s[", path),
             *dot = ccn__arena_printf(r->arena, "%s.", path);
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    const char *n = r->g->nodes.at[i].name ? r->g->nodes.at[i].name : r->g->nodes.at[i].autoname;
    if (n && (match_front(front, n) || match_front(dot, n))) {
      h.kind = CCN__H_LABELS;
      *CCN__PUSH(r->arena, &h.labels) = path;
      return h;
    }
  }
  ccn__nearest near;
  ccn__nearest_init(&near, path);
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    if (r->g->nodes.at[i].name) ccn__nearest_try(&near, r->g->nodes.at[i].name);
    if (r->g->nodes.at[i].autoname) ccn__nearest_try(&near, r->g->nodes.at[i].autoname);
  }
  return fail(r, 400, e->span, "no such value",
              ccn__arena_printf(r->arena, "`%s` names nothing in the program `%s`", path, r->program->name),
              near.best ? ccn__arena_printf(r->arena, "did you mean `%s`?", near.best)
                        : "print the program's names with `ccn dump --stage graph`");
}

/* blk[*] where no node has that name: the labels blk[0], blk[1], ... */
static ccn__handle labels_of_pattern(ccn__schedule_run *r, const ccn__ast *e, const char *path) {
  ccn__handle h = {.kind = CCN__H_LABELS, .span = e->span};
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    const char *n = r->g->nodes.at[i].name ? r->g->nodes.at[i].name : r->g->nodes.at[i].autoname;
    size_t k = n ? match_front(path, n) : 0;
    if (!k || n[k] != '.') continue;
    const char *label = ccn__arena_strndup(r->arena, n, k);
    bool known = false;
    for (uint32_t j = 0; j < h.labels.n && !known; j++) known = strcmp(h.labels.at[j], label) == 0;
    if (!known) *CCN__PUSH(r->arena, &h.labels) = label;
  }
  return h;
}

/* ---- names ---- */

ccn__handle *ccn__handle_find(ccn__schedule_run *r, ccn__name name) {
  for (uint32_t i = r->scope->names.n; i-- > 0;)
    if (r->scope->names.at[i].name == name) return &r->scope->names.at[i].value;
  return NULL;
}

static ccn__handle use(ccn__schedule_run *r, const ccn__handle *known, const ccn__ast *e) {
  ccn__handle h = *known;
  h.span = e->span;
  for (uint32_t i = 0; i < h.items.n; i++) {
    if (!h.items.at[i].consumed.source) continue;
    ccn__diag *d = ccn__error(r->rt->diags, 401, e->span, "no longer there",
                              "`%s` was replaced by an earlier statement", e->name);
    ccn__note(r->rt->diags, d, h.items.at[i].consumed, "replaced here");
    ccn__hint(r->rt->diags, d, "name what that statement gave");
    return FAILED;
  }
  return h;
}

ccn__ids ccn__handle_ids(ccn__schedule_run *r, const ccn__handle *h) {
  ccn__ids ids = {0};
  for (uint32_t i = 0; i < h->items.n; i++)
    if (h->items.at[i].id != CCN__NO_ID) *CCN__PUSH(r->arena, &ids) = h->items.at[i].id;
  return ids;
}

/* ---- selectors ---- */

static ccn__handle of_marks(ccn__schedule_run *r, const ccn__ast *e, const bool *yes) {
  ccn__handle h = {.kind = CCN__H_NODES, .span = e->span};
  for (ccn__id i = 0; i < r->g->nodes.n; i++) {
    const ccn__node *n = &r->g->nodes.at[i];
    if (yes[i] && ccn__op_table[n->op].kind != CCN__KIND_STRUCT)
      *CCN__PUSH(r->arena, &h.items) = (ccn__item){i, {0}};
  }
  return h;
}

static bool *copy_marks(ccn__schedule_run *r, const ccn__ids *ids) {
  bool *m = CCN__NEWN(r->arena, bool, r->g->nodes.n + 1);
  for (uint32_t i = 0; i < ids->n; i++) m[ids->at[i]] = true;
  return m;
}

static ccn__handle neighbours(ccn__schedule_run *r, const ccn__ast *e, const char *which) {
  ccn__pass s = {.rt = r->rt, .g = r->g, .arena = r->arena, .span = e->span, .name = which};
  bool between = strcmp(which, "between") == 0;
  if (e->list.n != (between ? 2u : 1u))
    return fail(r, 800, e->span, "here",
                ccn__arena_printf(r->arena, "`%s` takes %s", which, between ? "two handles" : "one handle"),
                NULL);
  ccn__handle a = ccn__handle_eval(r, e->list.at[0]->a);
  if (a.kind != CCN__H_NODES)
    return a.kind == CCN__H_ERROR
             ? a
             : fail(r, 800, e->list.at[0]->span, "not an op", "a handle of an op is needed", NULL);
  ccn__ids ids = ccn__handle_ids(r, &a);
  if (!between)
    return of_marks(r, e, strcmp(which, "after") == 0 ? ccn__after(&s, &ids) : ccn__before(&s, &ids));
  ccn__handle b = ccn__handle_eval(r, e->list.at[1]->a);
  if (b.kind != CCN__H_NODES)
    return b.kind == CCN__H_ERROR
             ? b
             : fail(r, 800, e->list.at[1]->span, "not an op", "a handle of an op is needed", NULL);
  ccn__ids other = ccn__handle_ids(r, &b);
  bool *after = ccn__after(&s, &ids), *before = ccn__before(&s, &other);
  for (ccn__id i = 0; i < r->g->nodes.n; i++) after[i] = after[i] && before[i];
  return of_marks(r, e, after);
}

static ccn__handle updated(ccn__schedule_run *r, const ccn__ast *e) {
  ccn__handle h = {.kind = CCN__H_NODES, .span = e->span, .selected = true};
  for (uint32_t k = 0; k < e->list.n; k++) {
    ccn__handle a = ccn__handle_eval(r, e->list.at[k]->a);
    if (a.kind == CCN__H_ERROR) return a;
    ccn__ids ids = ccn__handle_ids(r, &a);
    bool *in = copy_marks(r, &ids);
    for (uint32_t p = 0; p < r->g->params.n; p++) {
      const ccn__param *x = &r->g->params.at[p];
      if (x->update != CCN__NO_ID && (in[x->update] || in[r->g->nodes.at[x->update].in[1]]))
        *CCN__PUSH(r->arena, &h.items) = (ccn__item){x->node, {0}};
    }
  }
  return h;
}

static ccn__handle by_op(ccn__schedule_run *r, const ccn__ast *e, bool exactly_one) {
  ccn__op op;
  ccn__handle h = {.kind = CCN__H_NODES, .span = e->span};
  const ccn__ast *a = e->list.n == 1 ? e->list.at[0]->a : NULL;
  if (!a || a->kind != CCN__AST_NAME || !ccn__op_find(a->name, &op))
    return fail(r, 800, e->span, "here", "it takes the name of an op, as in `all(allreduce)`", NULL);
  for (ccn__id i = 0; i < r->g->nodes.n; i++)
    if (r->g->nodes.at[i].op == op) *CCN__PUSH(r->arena, &h.items) = (ccn__item){i, {0}};
  if (exactly_one && h.items.n != 1)
    return fail(r, 408, e->span, "not exactly one",
                ccn__arena_printf(r->arena, "the program has %u ops `%s`", h.items.n, a->name),
                "name the one that is meant");
  return h;
}

static ccn__handle call(ccn__schedule_run *r, const ccn__ast *e) {
  const char *f = e->a->kind == CCN__AST_NAME ? e->a->name : "";
  if (strcmp(f, "after") == 0 || strcmp(f, "before") == 0 || strcmp(f, "between") == 0)
    return neighbours(r, e, f);
  if (strcmp(f, "updated") == 0) return updated(r, e);
  if (strcmp(f, "only") == 0) return by_op(r, e, true);
  if (strcmp(f, "all") == 0) return by_op(r, e, false);
  return fail(r, 801, e->span, "not a selector", "this is no selector",
              "the selectors are after, before, between, updated, only, all and outputs");
}

static ccn__handle list(ccn__schedule_run *r, const ccn__ast *e) {
  ccn__handle h = {.kind = CCN__H_NODES, .span = e->span};
  for (uint32_t k = 0; k < e->list.n; k++) {
    ccn__handle x = ccn__handle_eval(r, e->list.at[k]);
    if (x.kind == CCN__H_ERROR) return x;
    for (uint32_t i = 0; i < x.items.n; i++) *CCN__PUSH(r->arena, &h.items) = x.items.at[i];
  }
  return h;
}

ccn__handle ccn__handle_eval(ccn__schedule_run *r, const ccn__ast *e) {
  switch (e->kind) {
  case CCN__AST_INT: return (ccn__handle){.kind = CCN__H_NUMBER, .span = e->span, .number = e->i};
  case CCN__AST_UNARY:
    if (e->op != CCN__T_MINUS || e->a->kind != CCN__AST_INT)
      return fail(r, 800, e->span, "not a handle", "a handle of an op is needed here", NULL);
    return (ccn__handle){.kind = CCN__H_NUMBER, .span = e->span, .number = -e->a->i};
  case CCN__AST_LIST:
  case CCN__AST_TUPLE: return list(r, e);
  case CCN__AST_CALL: return call(r, e);
  case CCN__AST_STRING:
    return (ccn__handle){.kind = CCN__H_WORD, .span = e->span, .word = e->list.n ? e->list.at[0]->str : ""};
  case CCN__AST_NAME:
    if (ccn__handle_find(r, e->name)) return use(r, ccn__handle_find(r, e->name), e);
    if (strcmp(e->name, "outputs") == 0) {
      bool *m = CCN__NEWN(r->arena, bool, r->g->nodes.n + 1);
      for (uint32_t i = 0; i < r->g->noutputs; i++) m[r->g->outputs[i]] = true;
      return of_marks(r, e, m);
    }
    break;
  case CCN__AST_FIELD:
  case CCN__AST_INDEX: break;
  default: return fail(r, 800, e->span, "not a handle", "a handle of an op is needed here", NULL);
  }
  const char *path = path_text(r, e);
  if (!path) return fail(r, 400, e->span, "not a path", "this names nothing in the program", NULL);
  ccn__handle h = nodes_of_path(r, e, path);
  if (h.kind == CCN__H_NODES && !h.items.n) {
    ccn__handle labels = labels_of_pattern(r, e, path);
    if (labels.labels.n) return labels;
  }
  return h;
}

/* ---- following ---- */

static void follow(const ccn__graph *old, ccn__handle *h, const ccn__id *map, const bool *used,
                   ccn__span where) {
  uint32_t n = 0;
  (void)old;
  for (uint32_t i = 0; i < h->items.n; i++) {
    ccn__item x = h->items.at[i];
    if (x.id != CCN__NO_ID && !x.consumed.source && used[x.id]) x.consumed = where;
    if (x.id != CCN__NO_ID) x.id = map[x.id];
    if (x.id != CCN__NO_ID || x.consumed.source) h->items.at[n++] = x; /* what was removed drops out */
  }
  h->items.n = n;
}

void ccn__handles_follow(ccn__schedule_run *r, const ccn__graph *old, const ccn__id *map, const ccn__ids *ids,
                         ccn__span where) {
  bool *used = CCN__NEWN(r->arena, bool, old->nodes.n + 1);
  for (uint32_t i = 0; i < ids->n; i++) used[ids->at[i]] = true;
  for (ccn__schedule_scope *s = r->scope; s; s = s->outer)
    for (uint32_t i = 0; i < s->names.n; i++) follow(old, &s->names.at[i].value, map, used, where);
  for (uint32_t i = 0; i < ids->n; i++) {
    const ccn__node *n = &old->nodes.at[ids->at[i]];
    if (n->op == CCN__OP_PARAM) continue;
    if (n->name) *CCN__PUSH(r->arena, &r->gone) = (struct ccn__gone){n->name, where};
    if (n->autoname) *CCN__PUSH(r->arena, &r->gone) = (struct ccn__gone){n->autoname, where};
  }
}
