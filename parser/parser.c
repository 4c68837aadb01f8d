/* parser.c: the parser's ground: tokens, brackets, lists, errors and how to go on after them; the entry
 * points.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parser_impl.h"

#include <stdio.h>

static const char *const token_text[] = {
#define TOK(id, text) text,
  CCN__TOKENS(TOK)
#undef TOK
};

/* ---- tokens ---- */

ccn__token *ccn__p_peek(ccn__parser *p, uint32_t ahead) {
  while (p->ntokens <= ahead) ccn__lexer_next(&p->lx, &p->token[(p->head + p->ntokens++) & 3]);
  return &p->token[(p->head + ahead) & 3];
}

/* Sets `kind` from the current token. */
static void look(ccn__parser *p) {
  const ccn__token *t = ccn__p_peek(p, 0);
  p->kind = t->kind;
  if (t->newline && p->newlines && t->kind != CCN__TOK_EOF) p->kind = CCN__TOK_NEWLINE;
}

void ccn__p_advance(ccn__parser *p) {
  const ccn__token *t = ccn__p_token(p);
  p->previous = t->kind;
  p->previous_end = t->end;
  p->joined = false;
  p->consumed++;
  p->head = (p->head + 1) & 3;
  p->ntokens--;
  look(p);
}

void ccn__p_join(ccn__parser *p) {
  if (p->kind == CCN__TOK_STOP) return;
  p->kind = ccn__p_token(p)->kind;
  p->joined = true;
}

bool ccn__p_same_line(ccn__parser *p, uint32_t ahead) {
  const ccn__token *t = ccn__p_peek(p, ahead);
  return t->kind != CCN__TOK_EOF && !(t->newline && p->newlines);
}

bool ccn__p_expect(ccn__parser *p, ccn__token_kind kind, const char *hint) {
  if (ccn__p_accept(p, kind)) return true;
  ccn__p_unexpected(p, token_text[kind], hint);
  return false;
}

/* ---- errors ---- */

ccn__diag *ccn__p_complain(ccn__parser *p, uint16_t code, ccn__span span, const char *label, const char *fmt,
                           ...) {
  char message[256];
  va_list args;
  if (p->panic) return NULL;
  va_start(args, fmt);
  vsnprintf(message, sizeof message, fmt, args);
  va_end(args);
  p->errors++;
  p->at_end = false;
  return ccn__error(p->ds, code, span, label, "%s", message);
}

void ccn__p_hint(ccn__parser *p, ccn__diag *d, const char *hint) {
  if (d && hint) ccn__hint(p->ds, d, "%s", hint);
}

ccn__ast *ccn__p_error_node(ccn__parser *p) {
  p->height = 1;
  return ccn__p_done(p, ccn__p_node(p, CCN__AST_ERROR, p->previous_end));
}

void ccn__p_give_up(ccn__parser *p) {
  if (p->panic) return;
  p->panic = true;
  p->kind = CCN__TOK_STOP;
  p->skip_depth = 0;
  for (uint32_t i = p->nopen; i > 0 && p->open[i - 1].kind != CCN__TOK_LBRACE; i--) p->skip_depth++;
}

/* How messages call the current token. */
static void describe(ccn__parser *p, char *out, size_t size) {
  const ccn__token *t = ccn__p_token(p);
  uint32_t n = t->end - t->start;
  if (p->kind == CCN__TOK_NAME || p->kind == CCN__TOK_INT || p->kind == CCN__TOK_FLOAT) {
    snprintf(out, size, "`%.*s%s`", (int)(n < 40 ? n : 40), p->lx.text + t->start, n > 40 ? "..." : "");
  } else {
    snprintf(out, size, "%s", token_text[p->kind]);
  }
}

/* Words that begin a statement and stand nowhere else. */
static bool heads_statement(uint8_t kind) {
  switch (kind) {
  case CCN__TOK_LET:
  case CCN__TOK_IF:
  case CCN__TOK_WHILE:
  case CCN__TOK_FOR:
  case CCN__TOK_RETURN:
  case CCN__TOK_PROGRAM:
  case CCN__TOK_SCHEDULE:
  case CCN__TOK_MESH:
  case CCN__TOK_IMPORT:
  case CCN__TOK_ASSERT:
  case CCN__TOK_BREAK:
  case CCN__TOK_CONTINUE: return true;
  default: return false;
  }
}

/* Whether a line that starts with this token is a new statement although brackets are open: by its word,
 * or because it is not indented more than the statement they stand in. */
static bool new_statement(const ccn__parser *p, const ccn__token *t) {
  if (!t->newline) return false;
  if (heads_statement(t->kind)) return true;
  return (t->kind == CCN__TOK_NAME || t->kind == CCN__TOK_FN) && t->column <= p->column;
}

static ccn__span end_of_text(const ccn__parser *p) {
  return ccn__p_span(p, p->previous_end, p->previous_end);
}

/* CCN0004 for the innermost bracket, if it was the bracket's end that was missed here. */
static bool unclosed(ccn__parser *p) {
  const ccn__token *t = ccn__p_token(p);
  if (p->nopen == 0) return false;
  const ccn__open *o = &p->open[p->nopen - 1];
  bool brace = o->kind == CCN__TOK_LBRACE, end = t->kind == CCN__TOK_EOF;
  if (o->kind == CCN__TOK_INSERT) return false; /* the string says it better */
  if (!end && (brace || !(new_statement(p, t) || t->kind == CCN__TOK_RBRACE))) return false;
  ccn__diag *d = ccn__p_complain(p, 4, ccn__p_span(p, o->start, o->end), "opened here", "%s is not closed",
                                 token_text[o->kind]);
  if (d) {
    ccn__note(p->ds, d, end ? end_of_text(p) : ccn__p_span(p, t->start, t->end),
              end                          ? "the text ends here"
              : t->kind == CCN__TOK_RBRACE ? "this closes something else, with the bracket still open"
                                           : "a new statement starts here, with the bracket still open");
    ccn__hint(p->ds, d, "add %s", brace ? "`}`" : o->kind == CCN__TOK_LPAREN ? "`)`" : "`]`");
  }
  p->at_end = end;
  return true;
}

/* Whether an error here would only repeat one that was reported: the same token or the end was complained
 * about, or an error before gave up the bracket that this token closes. */
static bool follows_from_earlier(const ccn__parser *p) {
  uint8_t k = p->token[p->head].kind;
  if (k == CCN__TOK_EOF)
    return p->ended || (p->ate_brace && p->nopen && p->open[p->nopen - 1].kind == CCN__TOK_LBRACE);
  if (p->errors && p->token[p->head].start == p->error_at) return true;
  if (!p->lost) return false;
  if (k == CCN__TOK_RPAREN || k == CCN__TOK_RBRACKET || (k == CCN__TOK_RBRACE && p->nopen == 0)) return true;
  return p->column > p->lost_column; /* a further line of the statement that lost its bracket */
}

static const char *usual_cure(const ccn__parser *p, const char *wanted) {
  if (p->kind == CCN__TOK_ASSIGN && p->previous >= CCN__TOK_PLUS && p->previous <= CCN__TOK_POW) {
    return "there is no `+=`; write x = x + 1";
  }
  if (p->kind == CCN__TOK_ASSIGN && strstr(wanted, "`)`"))
    return "`==` compares; an argument by name is written name: value";
  if (p->kind == CCN__TOK_COLON && strcmp(wanted, "`{`") == 0) return "a block stands in braces: { ... }";
  if (p->kind == CCN__TOK_ASSIGN) return "`=` gives a value to a name; `==` compares";
  if (p->kind >= CCN__TOK_AND && strstr(wanted, "name")) {
    return "this is a word of the language; a name must be another word";
  }
  return NULL;
}

ccn__ast *ccn__p_unexpected(ccn__parser *p, const char *wanted, const char *hint) {
  const ccn__token *t = ccn__p_token(p);
  char found[64];
  if (p->panic) return ccn__p_error_node(p);
  if (follows_from_earlier(p)) {
    ccn__p_give_up(p);
    return ccn__p_error_node(p);
  }
  if (p->kind == CCN__TOK_NEWLINE && t->kind == CCN__TOK_ERROR) p->kind = t->kind;
  if (p->kind == CCN__TOK_ERROR) {
    p->errors++;
    p->at_end = false;
    ccn__lexer_report(&p->lx, t);
  } else if (!unclosed(p)) {
    bool nothing = p->kind == CCN__TOK_EOF || p->kind == CCN__TOK_NEWLINE;
    describe(p, found, sizeof found);
    ccn__diag *d = ccn__p_complain(p, 1, nothing ? end_of_text(p) : ccn__p_span(p, t->start, t->end),
                                   nothing ? "something is missing here" : "unexpected",
                                   "expected %s, found %s", wanted, found);
    ccn__p_hint(p, d, hint ? hint : usual_cure(p, wanted));
    p->at_end = p->kind == CCN__TOK_EOF && (p->joined || p->nopen > 0);
  }
  if (t->kind == CCN__TOK_EOF) p->ended = true;
  p->error_at = t->start;
  ccn__p_give_up(p);
  return ccn__p_error_node(p);
}

/* ---- going on after an error ---- */

/* Looks at the real tokens again. */
static void calm(ccn__parser *p) {
  p->panic = false;
  look(p);
}

/* Whether a line that ends with this token goes on. */
static bool goes_on(uint8_t k) { return k == CCN__TOK_COMMA || (k >= CCN__TOK_RANGE && k <= CCN__TOK_NOT); }
static bool opens(uint8_t k) {
  return k == CCN__TOK_LPAREN || k == CCN__TOK_LBRACKET || k == CCN__TOK_INSERT;
}
static bool closes(uint8_t k) {
  return k == CCN__TOK_RPAREN || k == CCN__TOK_RBRACKET || k == CCN__TOK_INSERT_END;
}

/* Open brackets of this statement are given up. */
static void lose(ccn__parser *p) {
  p->lost = true;
  p->lost_column = p->column;
}

/* To the end of the broken statement: a newline or `;` outside of brackets, a closing `}`, or a line that
 * must be a new statement. Braces on the way are skipped whole. At least one token is consumed since
 * `consumed_before`. */
void ccn__p_skip_statement(ccn__parser *p, uint32_t consumed_before) {
  uint32_t depth = p->skip_depth, braces = 0;
  bool first = p->consumed == consumed_before, runaway = p->runaway;
  p->runaway = false;
  calm(p);
  for (;; first = false, ccn__p_advance(p)) {
    const ccn__token *t = ccn__p_token(p);
    if (t->kind == CCN__TOK_EOF) break;
    if (!first && braces == 0) {
      if (t->kind == CCN__TOK_RBRACE && p->nopen) break;
      if (t->newline && new_statement(p, t) && !(runaway && goes_on(p->previous))) break;
      if (t->newline && depth == 0 && !(runaway && goes_on(p->previous))) break;
      if (t->kind == CCN__TOK_SEMICOLON && depth == 0) break;
    } else if (!first && t->newline && t->column == 0 && heads_statement(t->kind)) {
      break; /* a brace that never closes should not hide the rest of the file */
    }
    if (t->kind == CCN__TOK_LBRACE) {
      braces++;
    } else if (t->kind == CCN__TOK_RBRACE) {
      if (braces) braces--;
    } else if (t->kind == CCN__TOK_ERROR && t->code == 3) {
      if (depth) lose(p); /* the string swallowed the closing brackets */
      depth = 0;
      if (p->nopen && p->open[p->nopen - 1].start + t->column >= t->start) p->ate_brace = true;
    } else if (braces == 0 && opens(t->kind)) {
      depth++;
    } else if (braces == 0 && closes(t->kind) && depth) {
      depth--;
    }
  }
  if (depth || braces) lose(p);
  if (braces) p->ate_brace = true;
  look(p);
}

/* The header of a block is broken: finds its `{`, so that the block is read. If there is none, stays in
 * panic. */
void ccn__p_skip_to_brace(ccn__parser *p) {
  uint32_t depth = p->skip_depth, consumed = 0;
  p->broken = true;
  if (p->runaway) return;
  calm(p);
  for (;; consumed++, ccn__p_advance(p)) {
    const ccn__token *t = ccn__p_token(p);
    if (t->kind == CCN__TOK_LBRACE) {
      ccn__p_join(p);
      return;
    }
    if (t->kind == CCN__TOK_EOF || t->kind == CCN__TOK_RBRACE ||
        (t->kind == CCN__TOK_SEMICOLON && depth == 0))
      break;
    if (t->newline && (depth == 0 || new_statement(p, t))) break;
    if (opens(t->kind)) depth++;
    if (closes(t->kind) && depth) depth--;
  }
  if (depth) lose(p);
  p->panic = true;
  p->kind = CCN__TOK_STOP;
  p->skip_depth = 0;
}

/* ---- nesting ---- */

static void too_deep(ccn__parser *p, ccn__span where, const char *what, unsigned limit) {
  ccn__diag *d =
    ccn__p_complain(p, 8, where, "one level too many", "%s more than %u levels deep", what, limit);
  ccn__p_hint(p, d, "name a part of it in a statement of its own");
  if (d) p->runaway = true;
  ccn__p_give_up(p);
}

void ccn__p_grow(ccn__parser *p, uint32_t children, ccn__span where) {
  p->height = children + 1;
  if (p->height > CCN__MAX_HEIGHT) too_deep(p, where, "a chain of operations", CCN__MAX_HEIGHT);
}

bool ccn__p_enter(ccn__parser *p) {
  p->depth++;
  if (p->depth <= CCN__MAX_NESTING) return true;
  const ccn__token *t = ccn__p_token(p);
  too_deep(p, ccn__p_span(p, t->start, t->end), "nested", CCN__MAX_NESTING);
  return false;
}

void ccn__p_open(ccn__parser *p) {
  const ccn__token *t = ccn__p_token(p);
  if (!ccn__p_enter(p)) return;
  p->open[p->nopen++] = (ccn__open){t->start, t->end, p->column, t->kind, p->newlines};
  p->newlines = t->kind == CCN__TOK_LBRACE;
  ccn__p_advance_join(p);
}

bool ccn__p_close(ccn__parser *p, ccn__token_kind close, bool after_item) {
  bool good = p->kind == close;
  char wanted[32];
  if (p->depth > CCN__MAX_NESTING) { /* ccn__p_open refused it */
    ccn__p_leave(p);
    return false;
  }
  if (!good && !p->panic) {
    const ccn__open *o = &p->open[p->nopen - 1];
    if (p->kind == CCN__TOK_RPAREN || p->kind == CCN__TOK_RBRACKET) { /* the wrong one: say so and take it */
      const ccn__token *t = ccn__p_token(p);
      ccn__diag *d = ccn__p_complain(p, 1, ccn__p_span(p, t->start, t->end), "the wrong bracket",
                                     "expected %s, found %s", token_text[close], token_text[p->kind]);
      ccn__note(p->ds, d, ccn__p_span(p, o->start, o->end), "to close this one");
      ccn__hint(p->ds, d, "write %s", token_text[close]);
      good = true;
      p->broken = true;
    } else {
      snprintf(wanted, sizeof wanted, after_item ? "`,` or %s" : "%s", token_text[close]);
      bool value = p->kind == CCN__TOK_NAME || p->kind == CCN__TOK_INT || p->kind == CCN__TOK_FLOAT ||
                   p->kind == CCN__TOK_QUOTE;
      ccn__p_unexpected(p, wanted, after_item && value ? "a comma is missing, or an operator" : NULL);
    }
  }
  p->newlines = p->open[--p->nopen].newlines;
  ccn__p_leave(p);
  if (good) ccn__p_advance(p);
  return good;
}

/* ---- lists ---- */

ccn__ast_list ccn__p_take(ccn__parser *p, uint32_t mark) {
  ccn__ast_list list = {NULL, p->scratch.n - mark};
  if (list.n) {
    list.at = CCN__NEWN(p->arena, ccn__ast *, list.n);
    memcpy(list.at, p->scratch.at + mark, list.n * sizeof *list.at);
  }
  p->scratch.n = mark;
  return list;
}

ccn__ast_list ccn__p_items(ccn__parser *p, ccn__token_kind close, ccn__p_item item, bool *out_comma) {
  uint32_t mark = p->scratch.n, height = 0;
  bool comma = false;
  ccn__p_open(p);
  while (p->kind != close && !p->panic) {
    ccn__ast *n = item(p);
    height = ccn__max_u32(height, p->height);
    *CCN__PUSH(p->arena, &p->scratch) = n;
    comma = ccn__p_accept_join(p, CCN__TOK_COMMA);
    if (!comma) break;
  }
  ccn__p_close(p, close, !comma && p->scratch.n > mark);
  p->height = height;
  if (out_comma) *out_comma = comma;
  return ccn__p_take(p, mark);
}

static void duplicate(ccn__parser *p, const ccn__ast *first, const ccn__ast *second, const char *what) {
  ccn__diag *d =
    ccn__p_complain(p, 11, second->nspan, "a second time", "%s `%s` is given twice", what, second->name);
  if (!d) return;
  ccn__note(p->ds, d, first->nspan, "the first time");
  ccn__hint(p->ds, d, "remove one of them or give it another name");
}

void ccn__p_duplicates(ccn__parser *p, ccn__ast_list list, const char *what) {
  uint32_t cap = 64;
  if (p->panic) return;
  if (list.n <= 16) {
    for (uint32_t i = 1; i < list.n; i++) {
      for (uint32_t j = 0; j < i && list.at[i]->name; j++) {
        if (list.at[i]->name == list.at[j]->name) {
          duplicate(p, list.at[j], list.at[i], what);
          break;
        }
      }
    }
    return;
  }
  while (cap < 2 * list.n) cap *= 2;
  ccn__ast **slot = CCN__NEWN(p->arena, ccn__ast *, cap);
  for (uint32_t i = 0; i < list.n; i++) {
    ccn__ast *n = list.at[i];
    if (!n->name) continue;
    uint32_t h = (uint32_t)(((uintptr_t)n->name >> 3) * 2654435761u);
    h = (h ^ h >> 15) & (cap - 1);
    while (slot[h] && slot[h]->name != n->name) h = (h + 1) & (cap - 1);
    if (slot[h]) {
      duplicate(p, slot[h], n, what);
    } else {
      slot[h] = n;
    }
  }
}

/* ---- entry ---- */

static void init(ccn__parser *p, ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source) {
  static const char *const places[] = {"replicated", "sliced", "local", "partial", "at"};
  static const char *const dtypes[] = {
#define DTYPE(id, name, bytes, class, accumulates) name,
#include "dtype.def"
#undef DTYPE
  };
  ccn__words *w = &p->words;
  p->arena = a;
  p->names = names;
  p->ds = ds;
  p->newlines = true;
  p->unclosed = UINT32_MAX;
  p->previous = CCN__TOK_NEWLINE;
  w->with = ccn__internz(names, "with");
  w->as = ccn__internz(names, "as");
  w->over = ccn__internz(names, "over");
  w->on = ccn__internz(names, "on");
  w->repeat = ccn__internz(names, "repeat");
  w->call = ccn__internz(names, "call");
  w->try_ = ccn__internz(names, "try");
  w->kernel = ccn__internz(names, "kernel");
  w->plan = ccn__internz(names, "plan");
  w->reduction = ccn__internz(names, "reduction");
  for (size_t i = 0; i < CCN__COUNT(places); i++) w->place[i] = ccn__internz(names, places[i]);
  for (size_t i = 0; i < CCN__COUNT(dtypes); i++) w->dtype[i] = ccn__internz(names, dtypes[i]);
  w->ndtypes = CCN__COUNT(dtypes);
  _Static_assert(CCN__COUNT(dtypes) <= CCN__COUNT(((ccn__words *)0)->dtype),
                 "more dtypes than room for them");
  ccn__lexer_init(&p->lx, a, names, ds, source);
  p->previous_end = p->lx.at;
  look(p);
  ccn__p_join(p);
}

ccn__ast *ccn__parse(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source,
                     bool *out_incomplete) {
  ccn__parser *p = CCN__NEW(a, ccn__parser);
  init(p, a, names, ds, source);
  p->context = CCN__IN_FILE;
  ccn__ast *block = ccn__p_statements(p);
  block->span = ccn__p_span(p, 0, p->lx.size);
  if (out_incomplete) *out_incomplete = p->errors == 1 && p->lx.errors == 0 && p->at_end;
  return block;
}

ccn__ast *ccn__parse_type(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source) {
  ccn__parser *p = CCN__NEW(a, ccn__parser);
  init(p, a, names, ds, source);
  ccn__ast *type = ccn__p_type(p);
  ccn__p_join(p);
  if (!p->panic && p->kind != CCN__TOK_EOF) ccn__p_unexpected(p, "the end of the type", NULL);
  return p->errors || p->lx.errors ? NULL : type;
}
