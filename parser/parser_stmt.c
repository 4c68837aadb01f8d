/* parser_stmt.c: statements and blocks.
 *
 * A statement is known by its first token, or by up to two more for the words that are names elsewhere:
 *   on NAME :      repeat NAME|INT      call NAME =      try (in schedules, unless `=` `.` `:` follows)
 *   kernel | plan | reduction followed by NAME or `{`: reserved, CCN0009
 * SPDX-License-Identifier: Apache-2.0 */
#include "parser_impl.h"

/* ---- blocks ---- */

/* `program` at the column of the statement whose block is still open: its brace is missing, not this
 * statement wrong. */
static bool brace_was_forgotten(ccn__parser *p) {
  const ccn__token *t = ccn__p_token(p);
  if (p->nopen == 0 || !t->newline) return false;
  if (p->kind != CCN__TOK_PROGRAM && p->kind != CCN__TOK_SCHEDULE && p->kind != CCN__TOK_MESH &&
      p->kind != CCN__TOK_IMPORT) {
    return false;
  }
  const ccn__open *o = &p->open[p->nopen - 1];
  if (t->column > o->column) return false;
  if (p->unclosed != t->start) {
    ccn__diag *d =
      ccn__p_complain(p, 4, ccn__p_span(p, o->start, o->end), "opened here", "`{` is not closed");
    if (d) {
      ccn__note(p->ds, d, ccn__p_span(p, t->start, t->end), "a new statement of the file starts here");
      ccn__p_hint(p, d, "add `}` before it");
    }
    p->unclosed = t->start;
  }
  return true;
}

ccn__ast *ccn__p_statements(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_BLOCK, ccn__p_start(p));
  uint32_t mark = p->scratch.n, height = 0;
  for (;;) {
    ccn__p_join(p);
    if (p->kind == CCN__TOK_SEMICOLON) {
      ccn__p_advance(p);
      continue;
    }
    if (p->kind == CCN__TOK_EOF || (p->kind == CCN__TOK_RBRACE && p->nopen) || brace_was_forgotten(p)) break;
    ccn__ast *s = ccn__p_statement(p);
    height = ccn__max_u32(height, p->height);
    *CCN__PUSH(p->arena, &p->scratch) = s;
  }
  n->list = ccn__p_take(p, mark);
  p->height = height + 1;
  return ccn__p_done(p, n);
}

ccn__ast *ccn__p_block(ccn__parser *p, uint8_t context) {
  uint8_t outer = p->context;
  if (p->kind == CCN__TOK_NEWLINE && ccn__p_token(p)->kind == CCN__TOK_LBRACE)
    ccn__p_join(p);                              /* on the next line */
  if (p->kind == CCN__TOK_EOF) p->joined = true; /* there a shell may still read it */
  if (p->kind != CCN__TOK_LBRACE) {
    ccn__p_unexpected(p, "`{`", NULL);
    ccn__p_skip_to_brace(p);
    if (p->panic) return ccn__p_error_node(p);
  }
  uint32_t start = ccn__p_start(p);
  ccn__ast *n = NULL;
  p->context = context;
  ccn__p_open(p);
  if (!p->panic) n = ccn__p_statements(p);
  p->context = outer;
  if (p->unclosed == ccn__p_start(p) && !p->panic) { /* reported: leave the block without its brace */
    p->newlines = p->open[--p->nopen].newlines;
    ccn__p_leave(p);
    p->previous = CCN__TOK_RBRACE;
  } else {
    ccn__p_close(p, CCN__TOK_RBRACE, false);
  }
  if (!n) return ccn__p_error_node(p);
  n->span.start = start;
  return ccn__p_done(p, n);
}

/* ---- declarations ---- */

/* Steps over the statement's keyword and reads the name behind it. */
static ccn__ast *named(ccn__parser *p, ccn__ast_kind kind, const char *wanted) {
  ccn__ast *n = ccn__p_node(p, kind, ccn__p_start(p));
  ccn__p_advance(p);
  if (p->kind == CCN__TOK_NAME) {
    n->name = ccn__p_token(p)->name;
    n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
    ccn__p_advance(p);
  } else {
    ccn__p_unexpected(p, wanted, NULL);
  }
  p->height = 0;
  return n;
}

static ccn__ast *with_block(ccn__parser *p, ccn__ast *n, uint8_t context) {
  uint32_t height = p->height;
  n->b = ccn__p_block(p, context);
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->nspan);
  return n;
}

static ccn__ast *program(ccn__parser *p) {
  ccn__ast *n = named(p, CCN__AST_PROGRAM, "the name of the program");
  if (p->kind == CCN__TOK_LT) n->axes = ccn__p_axes(p);
  if (p->kind == CCN__TOK_LPAREN) {
    n->params = ccn__p_params(p, true);
  } else {
    ccn__p_unexpected(p, "`(`", "a program is written program name(x: f32[N]) { return x }");
  }
  return with_block(p, n, CCN__IN_PROGRAM);
}

static ccn__ast *schedule(ccn__parser *p) {
  ccn__ast *n = named(p, CCN__AST_SCHEDULE, "the name of the schedule");
  if (p->kind == CCN__TOK_LPAREN) {
    n->params = ccn__p_params(p, false);
  } else if (ccn__p_accept_join(p, CCN__TOK_FOR)) {
    n->a = ccn__p_path(p);
  } else {
    ccn__p_unexpected(
      p, "`for` or `(`",
      "a schedule names its program, schedule s for step { }, or takes handles, schedule s(x) { }");
  }
  return with_block(p, n, CCN__IN_SCHEDULE);
}

static ccn__ast *function(ccn__parser *p) {
  ccn__ast *n = named(p, CCN__AST_FN, "the name of the function");
  if (p->kind == CCN__TOK_LPAREN) {
    n->params = ccn__p_params(p, false);
  } else {
    ccn__p_unexpected(p, "`(`", "a function is written fn name(a, b) { return a }");
  }
  return with_block(p, n, CCN__IN_SCRIPT);
}

/* NAME [: size] */
static ccn__ast *axis(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_AXIS, ccn__p_start(p));
  if (p->kind != CCN__TOK_NAME) return ccn__p_unexpected(p, "the name of an axis", NULL);
  n->name = ccn__p_token(p)->name;
  n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  ccn__p_advance(p);
  p->height = 0;
  if (ccn__p_accept_join(p, CCN__TOK_COLON)) n->a = ccn__p_expr(p);
  ccn__p_grow(p, p->height, n->nspan);
  return ccn__p_done(p, n);
}

static ccn__ast *mesh(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_MESH, ccn__p_start(p));
  ccn__p_advance(p);
  if (p->kind != CCN__TOK_LPAREN)
    return ccn__p_unexpected(p, "`(`", "a mesh is written mesh (dp) or mesh (dp: 2, tp)");
  n->list = ccn__p_items(p, CCN__TOK_RPAREN, axis, NULL);
  if (n->list.n == 0) {
    ccn__diag *d = ccn__p_complain(p, 1, ccn__p_span(p, n->span.start, p->previous_end), "no axis",
                                   "expected the name of an axis");
    ccn__p_hint(p, d, "a mesh is written mesh (dp) or mesh (dp: 2, tp)");
    p->broken = true;
  }
  ccn__p_duplicates(p, n->list, "the axis");
  ccn__p_grow(p, p->height, n->span);
  return n;
}

static ccn__ast *import(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_IMPORT, ccn__p_start(p));
  const char *hint = "an import is written import \"std/optim\" as optim";
  ccn__p_advance(p);
  if (p->kind != CCN__TOK_QUOTE) return ccn__p_unexpected(p, "a path in quotes", hint);
  ccn__ast *path = ccn__p_string(p);
  if (!p->panic && (path->list.n != 1 || path->list.at[0]->kind != CCN__AST_TEXT)) {
    ccn__diag *d =
      ccn__p_complain(p, 1, path->span, "not a path", "expected a path in quotes, without insertions");
    ccn__p_hint(p, d, hint);
    p->broken = true;
  } else if (!p->panic) {
    n->str = path->list.at[0]->str;
  }
  if (ccn__p_at_word(p, p->words.as)) {
    ccn__p_advance(p);
    n->name = ccn__p_name(p, "a name for the import")->name;
    if (!p->panic) n->nspan = ccn__p_span(p, p->previous_end - (uint32_t)strlen(n->name), p->previous_end);
  }
  p->height = 1;
  return n;
}

/* ---- control flow ---- */

/* NAME | ( pattern, ... ) */
static ccn__ast *pattern(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  bool comma;
  if (p->kind != CCN__TOK_LPAREN) return ccn__p_name(p, "a name or `(`");
  ccn__ast_list list = ccn__p_items(p, CCN__TOK_RPAREN, pattern, &comma);
  if (list.n == 0 && !p->panic) {
    ccn__diag *d = ccn__p_complain(p, 1, ccn__p_span(p, start, p->previous_end), "nothing inside",
                                   "expected a name between the parentheses");
    ccn__p_hint(p, d, "a tuple is taken apart with (a, b) = f(x)");
    p->broken = true;
  }
  if (list.n == 1 && !comma) return list.at[0];
  ccn__ast *n = ccn__p_node(p, CCN__AST_TUPLE, start);
  n->list = list;
  ccn__p_grow(p, p->height, n->span);
  return ccn__p_done(p, n);
}

static uint8_t inner_context(const ccn__parser *p) {
  return p->context == CCN__IN_FILE ? (uint8_t)CCN__IN_SCRIPT : p->context;
}

/* `else if` is a loop, each IF hangs in the c of the one before. */
static ccn__ast *if_statement(ccn__parser *p) {
  ccn__ast *first = NULL, *last = NULL;
  uint32_t height = 0, chain = 0;
  for (;;) {
    ccn__ast *n = ccn__p_node(p, CCN__AST_IF, ccn__p_start(p));
    chain++;
    if (last) last->c = n;
    if (!first) first = n;
    last = n;
    ccn__p_advance_join(p);
    n->a = ccn__p_expr(p);
    height = ccn__max_u32(height, p->height);
    n->b = ccn__p_block(p, inner_context(p));
    height = ccn__max_u32(height, p->height);
    ccn__p_grow(p, height + chain, n->span);
    if (p->kind == CCN__TOK_NEWLINE && ccn__p_token(p)->kind == CCN__TOK_ELSE) ccn__p_join(p);
    if (p->kind != CCN__TOK_ELSE) break;
    ccn__p_advance(p);
    if (p->kind == CCN__TOK_IF) continue;
    n->c = ccn__p_block(p, inner_context(p));
    ccn__p_grow(p, ccn__max_u32(height, p->height) + chain, n->span);
    break;
  }
  for (ccn__ast *n = first; n && n->kind == CCN__AST_IF; n = n->c) ccn__p_done(p, n);
  return first;
}

static ccn__ast *while_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_WHILE, ccn__p_start(p));
  ccn__p_advance_join(p);
  n->a = ccn__p_expr(p);
  return with_block(p, n, inner_context(p));
}

static ccn__ast *for_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_FOR, ccn__p_start(p));
  ccn__p_advance_join(p);
  n->a = pattern(p);
  uint32_t height = p->height;
  if (ccn__p_accept_join(p, CCN__TOK_IN)) {
    n->b = ccn__p_expr(p);
    height = ccn__max_u32(height, p->height);
  } else {
    ccn__p_unexpected(p, "`in`",
                      p->kind == CCN__TOK_COMMA
                        ? "a tuple is taken apart in parentheses: for (a, b) in pairs { }"
                        : "a loop is written for x in 0..n { }");
  }
  if (ccn__p_at_word(p, p->words.as)) {
    ccn__p_advance(p);
    n->name = ccn__p_name(p, "a label for the loop")->name;
    if (!p->panic) n->nspan = ccn__p_span(p, p->previous_end - (uint32_t)strlen(n->name), p->previous_end);
  }
  n->c = ccn__p_block(p, inner_context(p));
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->span);
  return n;
}

static bool at_statement_end(const ccn__parser *p) {
  return p->kind == CCN__TOK_NEWLINE || p->kind == CCN__TOK_SEMICOLON || p->kind == CCN__TOK_RBRACE ||
         p->kind == CCN__TOK_EOF;
}

static ccn__ast *return_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_RETURN, ccn__p_start(p));
  ccn__p_advance(p);
  p->height = 0;
  if (at_statement_end(p)) return n;
  uint32_t start = ccn__p_start(p), mark = p->scratch.n;
  n->a = ccn__p_expr(p);
  if (p->kind == CCN__TOK_COMMA) {
    uint32_t height = p->height;
    ccn__ast *tuple = ccn__p_node(p, CCN__AST_TUPLE, start);
    *CCN__PUSH(p->arena, &p->scratch) = n->a;
    while (ccn__p_accept_join(p, CCN__TOK_COMMA)) {
      ccn__ast *e = ccn__p_expr(p);
      height = ccn__max_u32(height, p->height);
      *CCN__PUSH(p->arena, &p->scratch) = e;
    }
    tuple->list = ccn__p_take(p, mark);
    n->a = ccn__p_done(p, tuple);
    ccn__p_grow(p, height, tuple->span);
  }
  ccn__p_grow(p, p->height, n->span);
  return n;
}

static ccn__ast *assert_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_ASSERT, ccn__p_start(p));
  ccn__p_advance(p);
  n->a = ccn__p_expr(p);
  uint32_t height = p->height;
  if (ccn__p_accept_join(p, CCN__TOK_COMMA)) {
    n->b = ccn__p_expr(p);
    height = ccn__max_u32(height, p->height);
  }
  ccn__p_grow(p, height, n->span);
  return n;
}

static ccn__ast *word_statement(ccn__parser *p, ccn__ast_kind kind) {
  ccn__ast *n = ccn__p_node(p, kind, ccn__p_start(p));
  ccn__p_advance(p);
  p->height = 1;
  return n;
}

/* ---- bindings and expressions ---- */

static ccn__ast *let_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_LET, ccn__p_start(p));
  ccn__p_advance(p);
  n->a = pattern(p);
  uint32_t height = p->height;
  if (ccn__p_accept_join(p, CCN__TOK_ASSIGN)) {
    n->b = ccn__p_expr(p);
  } else {
    ccn__p_unexpected(p, "`=`",
                      p->kind == CCN__TOK_COMMA ? "a tuple is taken apart with let (a, b) = f(x)"
                                                : "a variable is made with let x = 1");
  }
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->span);
  return n;
}

/* The first node in a tuple pattern that cannot be bound, or NULL. Patterns nest as deep as brackets do. */
static const ccn__ast *not_a_pattern(const ccn__ast *n) {
  if (n->kind == CCN__AST_NAME) return NULL;
  if (n->kind != CCN__AST_TUPLE) return n;
  for (uint32_t i = 0; i < n->list.n; i++) {
    const ccn__ast *bad = not_a_pattern(n->list.at[i]);
    if (bad) return bad;
  }
  return NULL;
}

static const char *foreign_cure(const ccn__parser *p, const ccn__ast *e) {
  if (e->kind != CCN__AST_NAME) return NULL;
  if (!strcmp(e->name, "def") || !strcmp(e->name, "func")) return "a function is written fn name(a) { }";
  if (!strcmp(e->name, "var") || !strcmp(e->name, "const")) return "a variable is made with let x = 1";
  if (!strcmp(e->name, "elif")) return "write else if";
  if (!strcmp(e->name, "print")) return "write print(...)";
  if (p->kind == CCN__TOK_QUOTE || p->kind == CCN__TOK_NAME) {
    return "a call has parentheses, f(x); two statements on a line have `;` between them";
  }
  return NULL;
}

static ccn__ast *expression_statement(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  ccn__ast *e = ccn__p_expr(p), *n;
  if (p->kind != CCN__TOK_ASSIGN) {
    if (!p->panic && !at_statement_end(p) && p->kind != CCN__TOK_ERROR) {
      ccn__p_unexpected(p, "the end of the statement",
                        p->kind == CCN__TOK_COMMA ? "a tuple is taken apart with (a, b) = f(x)"
                                                  : foreign_cure(p, e));
    }
    n = ccn__p_node(p, CCN__AST_EXPR, start);
    n->a = e;
    ccn__p_grow(p, p->height, n->span);
    return n;
  }
  const ccn__ast *bad = e->kind == CCN__AST_INDEX || e->kind == CCN__AST_FIELD ? NULL : not_a_pattern(e);
  if (bad) {
    ccn__diag *d = ccn__p_complain(p, 1, bad->span, "not a name", "this cannot be given a value");
    ccn__p_hint(p, d, "left of `=` stand a name, (a, b), x[0] or x.name; `==` compares");
    p->broken = true;
  }
  uint32_t height = p->height;
  n = ccn__p_node(p, CCN__AST_ASSIGN, start);
  n->a = e;
  n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  ccn__p_advance_join(p);
  n->b = ccn__p_expr(p);
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->span);
  return n;
}

/* ---- statements that start with a word which is a name elsewhere ---- */

static ccn__ast *on_statement(ccn__parser *p) {
  ccn__ast *n = named(p, CCN__AST_ON, "the name of an axis");
  ccn__p_expect(p, CCN__TOK_COLON, NULL);
  n->a = ccn__p_expr(p);
  return with_block(p, n, inner_context(p));
}

static ccn__ast *repeat_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_REPEAT, ccn__p_start(p));
  ccn__p_advance(p);
  n->a = ccn__p_expr(p);
  return with_block(p, n, inner_context(p));
}

static ccn__ast *label_call(ccn__parser *p) {
  ccn__ast *n = named(p, CCN__AST_LABEL_CALL, "a label");
  ccn__p_expect(p, CCN__TOK_ASSIGN, NULL);
  ccn__p_join(p);
  n->b = ccn__p_expr(p);
  if (!p->panic && n->b->kind != CCN__AST_CALL) {
    ccn__diag *d = ccn__p_complain(p, 1, n->b->span, "not a call", "expected a call of a program");
    ccn__p_hint(p, d, "as in: call attn = block(h, w)");
    p->broken = true;
  }
  ccn__p_grow(p, p->height, n->nspan);
  return n;
}

static ccn__ast *statement_rule(ccn__parser *p);

static ccn__ast *try_statement(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_TRY, ccn__p_start(p));
  if (ccn__p_enter(p)) {
    ccn__p_advance(p);
    n->a = statement_rule(p);
    ccn__p_done(p, n->a);
  }
  ccn__p_leave(p);
  ccn__p_grow(p, p->height, n->span);
  return n;
}

static ccn__ast *reserved(ccn__parser *p) {
  const ccn__token *t = ccn__p_token(p);
  ccn__diag *d = ccn__p_complain(p, 9, ccn__p_span(p, t->start, t->end), "reserved",
                                 "`%s` at the head of a statement is reserved", t->name);
  ccn__p_hint(
    p, d, "later versions of the language will use it; to name a value, write let with it or another name");
  ccn__p_give_up(p);
  return ccn__p_error_node(p);
}

/* CCN0010; the statement is read all the same. */
static void misplaced(ccn__parser *p, const char *where) {
  const ccn__token *t = ccn__p_token(p);
  uint32_t n = t->end - t->start;
  ccn__diag *d = ccn__p_complain(p, 10, ccn__p_span(p, t->start, t->end), "not allowed here",
                                 "`%.*s` is not allowed here", (int)(n < 40 ? n : 40), p->lx.text + t->start);
  ccn__p_hint(p, d, where);
  p->broken = true;
}

static ccn__ast *name_statement(ccn__parser *p) {
  const ccn__words *w = &p->words;
  ccn__name name = ccn__p_token(p)->name;
  bool known = name == w->on || name == w->repeat || name == w->call || name == w->try_ ||
               name == w->kernel || name == w->plan || name == w->reduction;
  if (!known || !ccn__p_same_line(p, 1)) return expression_statement(p);
  const ccn__token *next = ccn__p_peek(p, 1);
  bool before_name = next->kind == CCN__TOK_NAME && next->name != w->with;
  if (name == w->try_) {
    bool ordinary =
      next->kind == CCN__TOK_ASSIGN || next->kind == CCN__TOK_DOT || next->kind == CCN__TOK_COLON;
    if (p->context == CCN__IN_SCHEDULE && !ordinary && !at_statement_end(p)) return try_statement(p);
    if (!before_name) return expression_statement(p);
    misplaced(p, "`try` heads statements of schedules");
    return try_statement(p);
  }
  if (name == w->kernel || name == w->plan || name == w->reduction) {
    return before_name || next->kind == CCN__TOK_LBRACE ? reserved(p) : expression_statement(p);
  }
  if (name == w->on && before_name && ccn__p_peek(p, 2)->kind == CCN__TOK_COLON) {
    if (p->context != CCN__IN_PROGRAM) misplaced(p, "`on axis: i { }` stands in programs");
    return on_statement(p);
  }
  if (name == w->repeat && (before_name || next->kind == CCN__TOK_INT)) {
    if (p->context != CCN__IN_PROGRAM)
      misplaced(p, "`repeat k { }` stands in programs; a script has for and while");
    return repeat_statement(p);
  }
  if (name == w->call && before_name && ccn__p_peek(p, 2)->kind == CCN__TOK_ASSIGN) {
    if (p->context != CCN__IN_PROGRAM)
      misplaced(p, "`call label = f(x)` stands in programs; a script writes x = f(y)");
    return label_call(p);
  }
  return expression_statement(p);
}

static ccn__ast *top_level(ccn__parser *p) {
  if (p->context != CCN__IN_FILE) misplaced(p, "it stands at the top level of a file, outside of all braces");
  switch (p->kind) {
  case CCN__TOK_PROGRAM: return program(p);
  case CCN__TOK_SCHEDULE: return schedule(p);
  case CCN__TOK_MESH: return mesh(p);
  default: return import(p);
  }
}

static ccn__ast *statement_rule(ccn__parser *p) {
  switch (p->kind) {
  case CCN__TOK_NAME: return name_statement(p);
  case CCN__TOK_LET: return let_statement(p);
  case CCN__TOK_IF: return if_statement(p);
  case CCN__TOK_WHILE: return while_statement(p);
  case CCN__TOK_FOR: return for_statement(p);
  case CCN__TOK_RETURN: return return_statement(p);
  case CCN__TOK_ASSERT: return assert_statement(p);
  case CCN__TOK_BREAK: return word_statement(p, CCN__AST_BREAK);
  case CCN__TOK_CONTINUE: return word_statement(p, CCN__AST_CONTINUE);
  case CCN__TOK_PROGRAM:
  case CCN__TOK_SCHEDULE:
  case CCN__TOK_MESH:
  case CCN__TOK_IMPORT: return top_level(p);
  case CCN__TOK_FN: return ccn__p_peek(p, 1)->kind == CCN__TOK_LPAREN ? expression_statement(p) : function(p);
  case CCN__TOK_ELSE: return ccn__p_unexpected(p, "a statement", "`else` follows the `}` of an `if`");
  default: return expression_statement(p);
  }
}

static bool ends_with_block(const ccn__ast *n) {
  switch (n->kind) {
  case CCN__AST_IF:
  case CCN__AST_WHILE:
  case CCN__AST_FOR:
  case CCN__AST_FN:
  case CCN__AST_PROGRAM:
  case CCN__AST_SCHEDULE:
  case CCN__AST_ON:
  case CCN__AST_REPEAT: return true;
  default: return false;
  }
}

/* What a statement with an error leaves for later stages: which names it would have bound, so that uses of
 * them are not reported as unknown. */
static ccn__ast *as_error(ccn__parser *p, const ccn__ast *n) {
  ccn__ast *e = ccn__p_error_node(p);
  e->span.start = n->span.start; /* and it ends where reading goes on */
  if (e->span.end < e->span.start) e->span.end = e->span.start;
  e->name = n->name;
  e->nspan = n->nspan;
  if ((n->kind == CCN__AST_LET || n->kind == CCN__AST_ASSIGN) && n->a && !not_a_pattern(n->a)) e->a = n->a;
  return e;
}

/* Whether a line that starts so can only be the rest of one that went wrong. */
static bool continues(uint8_t kind) {
  return kind == CCN__TOK_RPAREN || kind == CCN__TOK_RBRACKET || kind == CCN__TOK_RBRACE ||
         kind == CCN__TOK_COMMA;
}

ccn__ast *ccn__p_statement(ccn__parser *p) {
  uint32_t column = p->column, consumed = p->consumed;
  bool broken = p->broken;
  p->column = ccn__p_token(p)->column;
  if (p->column <= p->lost_column && !continues(p->kind)) p->lost = false;
  p->broken = false;
  ccn__ast *n = ccn__p_done(p, statement_rule(p));
  if (!p->panic && !at_statement_end(p) && !(ends_with_block(n) && p->previous == CCN__TOK_RBRACE)) {
    ccn__p_unexpected(p, "the end of the statement", NULL);
  }
  if (p->panic || p->broken) {
    if (p->panic) ccn__p_skip_statement(p, consumed);
    n = as_error(p, n);
  }
  p->column = column;
  p->broken = broken;
  return n;
}
