/* parser_expr.c: expressions. Precedence climbs by a table; chains are loops, so only brackets and prefix
 * operators use the C stack.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parser_impl.h"

/* ---- names, paths, lists of names ---- */

ccn__ast *ccn__p_name(ccn__parser *p, const char *wanted) {
  if (p->kind != CCN__TOK_NAME) return ccn__p_unexpected(p, wanted, NULL);
  ccn__ast *n = ccn__p_node(p, CCN__AST_NAME, ccn__p_start(p));
  n->name = ccn__p_token(p)->name;
  p->height = 1;
  ccn__p_advance(p);
  return ccn__p_done(p, n);
}

/* Behind a base: "." NAME. */
static ccn__ast *field(ccn__parser *p, ccn__ast *base, uint32_t start) {
  uint32_t height = p->height;
  ccn__p_advance(p);
  ccn__ast *n = ccn__p_node(p, CCN__AST_FIELD, start);
  n->a = base;
  if (p->kind != CCN__TOK_NAME) {
    return ccn__p_unexpected(p, "a name after `.`",
                             p->kind == CCN__TOK_INT ? "an element is written x[0]; a number 0.5, not .5"
                                                     : NULL);
  }
  n->name = ccn__p_token(p)->name;
  n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  ccn__p_advance(p);
  ccn__p_grow(p, height, n->nspan);
  return ccn__p_done(p, n);
}

ccn__ast *ccn__p_path(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  ccn__ast *n = ccn__p_name(p, "a name");
  while (p->kind == CCN__TOK_DOT) n = field(p, n, start);
  return n;
}

ccn__ast_list ccn__p_axes(ccn__parser *p) {
  uint32_t mark = p->scratch.n;
  bool newlines = p->newlines;
  p->newlines = false;
  ccn__p_advance_join(p);
  do {
    ccn__ast *n = ccn__p_name(p, "the name of an axis");
    *CCN__PUSH(p->arena, &p->scratch) = n;
  } while (ccn__p_accept_join(p, CCN__TOK_COMMA));
  if (!p->panic && p->kind != CCN__TOK_GT) ccn__p_unexpected(p, "`,` or `>`", NULL);
  p->newlines = newlines;
  ccn__p_accept(p, CCN__TOK_GT);
  return ccn__p_take(p, mark);
}

/* ---- calls and indices ---- */

static ccn__ast *arg(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_ARG, ccn__p_start(p));
  if (p->kind == CCN__TOK_NAME && ccn__p_peek(p, 1)->kind == CCN__TOK_COLON) {
    n->name = ccn__p_token(p)->name;
    n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
    ccn__p_advance(p);
    ccn__p_advance_join(p);
  }
  n->a = ccn__p_expr(p);
  ccn__p_grow(p, p->height, n->span);
  return ccn__p_done(p, n);
}

ccn__ast_list ccn__p_args(ccn__parser *p) {
  ccn__ast_list list = ccn__p_items(p, CCN__TOK_RPAREN, arg, NULL);
  ccn__p_duplicates(p, list, "the argument");
  return list;
}

static ccn__ast *call(ccn__parser *p, ccn__ast *callee, uint32_t start) {
  uint32_t height = p->height;
  ccn__ast *n = ccn__p_node(p, CCN__AST_CALL, start);
  n->a = callee;
  if (p->kind == CCN__TOK_LT) n->axes = ccn__p_axes(p);
  if (p->kind != CCN__TOK_LPAREN) return ccn__p_unexpected(p, "`(`", NULL);
  n->list = ccn__p_args(p);
  ccn__p_grow(p, ccn__max_u32(height, p->height), ccn__p_span(p, start, p->previous_end));
  return ccn__p_done(p, n);
}

/* One index: `*`, `a`, `a:b` with either side left out. */
static ccn__ast *index_item(ccn__parser *p) {
  uint32_t start = ccn__p_start(p), height = 0;
  ccn__ast *first = NULL;
  if (p->kind == CCN__TOK_STAR) {
    first = ccn__p_node(p, CCN__AST_STAR, start);
    p->height = 1;
    ccn__p_advance(p);
    return ccn__p_done(p, first);
  }
  if (p->kind != CCN__TOK_COLON) {
    first = ccn__p_expr(p);
    height = p->height;
    if (p->kind != CCN__TOK_COLON) return first;
  }
  ccn__p_advance_join(p);
  ccn__ast *n = ccn__p_node(p, CCN__AST_SLICE, start);
  n->a = first;
  p->height = 0;
  if (p->kind != CCN__TOK_COMMA && p->kind != CCN__TOK_RBRACKET) n->b = ccn__p_expr(p);
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->span);
  return ccn__p_done(p, n);
}

static ccn__ast *index_of(ccn__parser *p, ccn__ast *base, uint32_t start) {
  uint32_t height = p->height;
  ccn__ast *n = ccn__p_node(p, CCN__AST_INDEX, start);
  n->a = base;
  if (ccn__p_peek(p, 1)->kind == CCN__TOK_RBRACKET) {
    ccn__p_advance(p);
    return ccn__p_unexpected(p, "an index", "x[0] is one element, x[:] all of them");
  }
  n->list = ccn__p_items(p, CCN__TOK_RBRACKET, index_item, NULL);
  ccn__p_grow(p, ccn__max_u32(height, p->height), ccn__p_span(p, start, p->previous_end));
  return ccn__p_done(p, n);
}

/* ---- strings ---- */

/* [0][width][.precision][fegd], not empty */
static bool good_format(const char *s, uint32_t n) {
  uint32_t at = 0, digits = 0;
  while (at < n && ccn__is_digit(s[at])) at++, digits++;
  if (digits > 4) return false;
  if (at < n && s[at] == '.') {
    if (s[n - 1] == 'd') return false; /* whole numbers have no digits behind the point */
    at++;
    digits = 0;
    while (at < n && ccn__is_digit(s[at])) at++, digits++;
    if (digits == 0 || digits > 3) return false;
  }
  if (at < n && strchr("fegd", s[at]) && s[at]) at++;
  return n > 0 && at == n;
}

/* At FORMAT: {a:.3f} */
static ccn__ast *format(ccn__parser *p, ccn__ast *a, uint32_t start) {
  const ccn__token *t = ccn__p_token(p);
  ccn__ast *n = ccn__p_node(p, CCN__AST_FORMAT, start);
  n->a = a;
  n->str = ccn__arena_strndup(p->arena, t->str, t->size);
  n->nspan = ccn__p_span(p, t->start, t->end);
  if (!good_format(t->str, t->size)) {
    ccn__diag *d = ccn__p_complain(p, 7, n->nspan, "not a format", "this format is not understood");
    bool whole = t->size && t->str[t->size - 1] == 'd';
    ccn__p_hint(p, d,
                whole ? "`d` takes a width and no precision, as in {n:6d} or {n:06d}; {x:.2f} shows fractions"
                      : "a format is [0][width][.precision] and one of f e g d, as in {x:.4f} or {n:06d}");
    p->broken = true;
  }
  ccn__p_advance(p);
  ccn__p_grow(p, p->height, n->nspan);
  return ccn__p_done(p, n);
}

/* At `{` in a string. */
static ccn__ast *insertion(ccn__parser *p) {
  uint32_t start = ccn__p_token(p)->end, open = ccn__p_start(p);
  ccn__ast *n = NULL;
  ccn__p_open(p);
  if (p->kind == CCN__TOK_INSERT_END || p->kind == CCN__TOK_FORMAT) {
    ccn__diag *d = ccn__p_complain(p, 7, ccn__p_span(p, open, ccn__p_token(p)->end), "nothing to insert",
                                   "an expression is missing between the braces");
    ccn__p_hint(p, d, "for braces themselves write {{ and }}");
    ccn__p_give_up(p);
  }
  start = p->panic ? start : ccn__p_start(p);
  n = ccn__p_expr(p);
  if (p->kind == CCN__TOK_FORMAT) n = format(p, n, start);
  if (!p->panic && p->kind != CCN__TOK_INSERT_END) {
    ccn__p_unexpected(p, "`}` behind the inserted expression",
                      "in a string {expression} inserts a value, {{ is a brace");
  }
  ccn__p_close(p, CCN__TOK_INSERT_END, true);
  return n;
}

ccn__ast *ccn__p_string(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_STRING, ccn__p_start(p));
  uint32_t mark = p->scratch.n, height = 1;
  ccn__p_advance(p);
  for (;;) {
    ccn__ast *piece;
    if (p->kind == CCN__TOK_TEXT) {
      piece = ccn__p_node(p, CCN__AST_TEXT, ccn__p_start(p));
      piece->str = ccn__p_token(p)->str;
      piece->i = ccn__p_token(p)->size;
      p->height = 1;
      ccn__p_advance(p);
      ccn__p_done(p, piece);
    } else if (p->kind == CCN__TOK_INSERT) {
      piece = insertion(p);
    } else {
      break;
    }
    height = ccn__max_u32(height, p->height);
    *CCN__PUSH(p->arena, &p->scratch) = piece;
  }
  ccn__p_expect(p, CCN__TOK_QUOTE_END, NULL);
  n->list = ccn__p_take(p, mark);
  ccn__p_grow(p, height, n->span);
  return ccn__p_done(p, n);
}

/* ---- primaries ---- */

static ccn__ast *parenthesised(ccn__parser *p, uint32_t start) {
  bool comma;
  ccn__ast_list list = ccn__p_items(p, CCN__TOK_RPAREN, ccn__p_expr, &comma);
  if (p->panic) return ccn__p_error_node(p);
  if (list.n == 1 && !comma) return list.at[0];
  ccn__ast *n = ccn__p_node(p, CCN__AST_TUPLE, start);
  n->list = list;
  if (list.n == 0) {
    ccn__diag *d = ccn__p_complain(p, 1, ccn__p_span(p, start, p->previous_end), "nothing inside",
                                   "expected an expression between the parentheses");
    ccn__p_hint(p, d, "there is no empty tuple; an empty list is []");
    p->broken = true;
  }
  ccn__p_grow(p, p->height, n->span);
  return ccn__p_done(p, n);
}

static ccn__ast *lambda(ccn__parser *p, uint32_t start) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_LAMBDA, start);
  ccn__p_advance(p);
  if (p->kind == CCN__TOK_LPAREN) {
    n->params = ccn__p_params(p, false);
  } else {
    ccn__p_unexpected(p, "`(`", "a function without a name is written fn(x) { return x }");
  }
  uint32_t height = p->height;
  n->b = ccn__p_block(p, CCN__IN_SCRIPT);
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->span);
  return ccn__p_done(p, n);
}

static ccn__ast *literal(ccn__parser *p, uint32_t start) {
  ccn__token *t = ccn__p_token(p);
  ccn__ast_kind kind = t->kind == CCN__TOK_INT     ? CCN__AST_INT
                       : t->kind == CCN__TOK_FLOAT ? CCN__AST_FLOAT
                                                   : CCN__AST_BOOL;
  ccn__ast *n = ccn__p_node(p, kind, start);
  if (kind == CCN__AST_FLOAT) {
    n->f = t->f;
  } else {
    n->i = kind == CCN__AST_INT ? t->i : t->kind == CCN__TOK_TRUE;
  }
  p->height = 1;
  ccn__p_advance(p);
  return ccn__p_done(p, n);
}

/* .5 */
static ccn__ast *point_first(ccn__parser *p, uint32_t start) {
  const ccn__token *t = ccn__p_peek(p, 1);
  if ((t->kind != CCN__TOK_INT && t->kind != CCN__TOK_FLOAT) || t->start != start + 1) {
    return ccn__p_unexpected(p, "an expression", NULL);
  }
  ccn__diag *d = ccn__p_complain(p, 5, ccn__p_span(p, start, t->end), "digits are missing before the point",
                                 "this is not a number");
  ccn__p_hint(p, d, "write 0.5 rather than .5");
  ccn__p_advance(p);
  p->broken = true;
  return literal(p, start);
}

static ccn__ast *list(ccn__parser *p, uint32_t start) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_LIST, start);
  n->list = ccn__p_items(p, CCN__TOK_RBRACKET, ccn__p_expr, NULL);
  ccn__p_grow(p, p->height, n->span);
  return ccn__p_done(p, n);
}

static ccn__ast *primary(ccn__parser *p, uint32_t start) {
  switch (p->kind) {
  case CCN__TOK_NAME: {
    ccn__ast *n = ccn__p_name(p, "a name");
    if (p->kind != CCN__TOK_LPAREN && ccn__p_is_dtype(p, n->name))
      return ccn__p_tensor_type(p, start, n->span, n->name);
    return n;
  }
  case CCN__TOK_INT:
  case CCN__TOK_FLOAT:
  case CCN__TOK_TRUE:
  case CCN__TOK_FALSE: return literal(p, start);
  case CCN__TOK_QUOTE: return ccn__p_string(p);
  case CCN__TOK_LPAREN: return parenthesised(p, start);
  case CCN__TOK_LBRACKET: return list(p, start);
  case CCN__TOK_FN: return lambda(p, start);
  case CCN__TOK_DOT: return point_first(p, start);
  case CCN__TOK_NOT: return ccn__p_unexpected(p, "an expression", "put it in parentheses: a == (not b)");
  case CCN__TOK_PLUS:
    return ccn__p_unexpected(p, "an expression", "there is no `+` in front of a number, and no `++`");
  default: return ccn__p_unexpected(p, "an expression", NULL);
  }
}

static ccn__ast *postfix(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  ccn__ast *n = primary(p, start);
  if (n->kind == CCN__AST_TENSOR_TYPE) return n;
  for (;;) {
    switch (p->kind) {
    case CCN__TOK_LPAREN: n = call(p, n, start); break;
    case CCN__TOK_LBRACKET: n = index_of(p, n, start); break;
    case CCN__TOK_DOT: n = field(p, n, start); break;
    case CCN__TOK_LT:
      if (n->kind != CCN__AST_NAME && n->kind != CCN__AST_FIELD) return n;
      if (!ccn__lexer_axes_follow(&p->lx, ccn__p_token(p)->end)) return n;
      n = call(p, n, start);
      break;
    default: return n;
    }
  }
}

/* ---- operators ---- */

enum { LEVEL_NONE, LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_RANGE, LEVEL_ADD, LEVEL_MULTIPLY };

static int level_of(uint8_t kind) {
  switch (kind) {
  case CCN__TOK_OR: return LEVEL_OR;
  case CCN__TOK_AND: return LEVEL_AND;
  case CCN__TOK_LT:
  case CCN__TOK_LE:
  case CCN__TOK_GT:
  case CCN__TOK_GE:
  case CCN__TOK_EQ:
  case CCN__TOK_NE: return LEVEL_COMPARE;
  case CCN__TOK_RANGE:
  case CCN__TOK_RANGE_EQ: return LEVEL_RANGE;
  case CCN__TOK_PLUS:
  case CCN__TOK_MINUS: return LEVEL_ADD;
  case CCN__TOK_STAR:
  case CCN__TOK_SLASH:
  case CCN__TOK_SLASH2:
  case CCN__TOK_PERCENT: return LEVEL_MULTIPLY;
  default: return LEVEL_NONE;
  }
}

static uint8_t oper_of(uint8_t kind) { return (uint8_t)(kind - CCN__TOK_PLUS + CCN__T_PLUS); }
_Static_assert(CCN__TOK_NOT - CCN__TOK_PLUS == CCN__T_NOT - CCN__T_PLUS, "token and operator order");

static ccn__ast *binary(ccn__parser *p, int least);

/* At a prefix operator whose operand `rule` reads. */
static ccn__ast *unary_node(ccn__parser *p, uint32_t start, int operand_level);

/* [unary minus] postfix [** unary] */
static ccn__ast *unary(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  if (p->kind == CCN__TOK_MINUS) return unary_node(p, start, LEVEL_NONE);
  ccn__ast *n = postfix(p);
  if (p->kind != CCN__TOK_POW) return n;
  uint32_t height = p->height;
  ccn__ast *power = ccn__p_node(p, CCN__AST_BINARY, start);
  power->op = CCN__T_POW;
  power->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  power->a = n;
  if (ccn__p_enter(p)) {
    ccn__p_advance_join(p);
    power->b = unary(p);
  } else {
    power->b = ccn__p_error_node(p);
  }
  ccn__p_leave(p);
  ccn__p_grow(p, ccn__max_u32(height, p->height), power->nspan);
  return ccn__p_done(p, power);
}

static ccn__ast *unary_node(ccn__parser *p, uint32_t start, int operand_level) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_UNARY, start);
  n->op = oper_of(p->kind);
  n->nspan = ccn__p_span(p, start, ccn__p_token(p)->end);
  if (ccn__p_enter(p)) {
    ccn__p_advance_join(p);
    n->a = operand_level == LEVEL_NONE ? unary(p) : binary(p, operand_level);
  } else {
    n->a = ccn__p_error_node(p);
  }
  ccn__p_leave(p);
  ccn__p_grow(p, p->height, n->nspan);
  return ccn__p_done(p, n);
}

static ccn__ast *binary_node(ccn__parser *p, ccn__ast *left, uint32_t start, int level) {
  uint32_t height = p->height;
  uint8_t kind = p->kind;
  ccn__ast *n = ccn__p_node(p, level == LEVEL_RANGE ? CCN__AST_RANGE : CCN__AST_BINARY, start);
  n->op = level == LEVEL_RANGE ? kind == CCN__TOK_RANGE_EQ : oper_of(kind);
  n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  n->a = left;
  ccn__p_advance_join(p);
  n->b = binary(p, level + 1);
  ccn__p_grow(p, ccn__max_u32(height, p->height), n->nspan);
  return ccn__p_done(p, n);
}

static ccn__ast *binary(ccn__parser *p, int least) {
  uint32_t start = ccn__p_start(p);
  ccn__ast *left = p->kind == CCN__TOK_NOT && least <= LEVEL_NOT ? unary_node(p, start, LEVEL_NOT) : unary(p);
  for (;;) {
    int level = level_of(p->kind);
    if (level == LEVEL_NONE || level < least) return left;
    left = binary_node(p, left, start, level);
    if ((level == LEVEL_COMPARE || level == LEVEL_RANGE) && level_of(p->kind) == level) {
      return ccn__p_unexpected(p, "the end of the comparison",
                               level == LEVEL_RANGE ? "a range has two ends: 0..n"
                                                    : "comparisons do not chain; write a < b and b < c");
    }
  }
}

ccn__ast *ccn__p_expr(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  ccn__ast *n = binary(p, LEVEL_OR);
  while (ccn__p_at_word(p, p->words.with)) {
    uint32_t height = p->height;
    ccn__ast *w = ccn__p_node(p, CCN__AST_WITH, start);
    w->a = n;
    w->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
    ccn__p_advance_join(p);
    if (p->kind == CCN__TOK_NAME) {
      w->b = postfix(p);
    } else {
      w->b = ccn__p_unexpected(p, "a schedule", "as in: let step = adam with zero(adam.gsum)");
    }
    if (!p->panic && w->b->kind != CCN__AST_NAME && w->b->kind != CCN__AST_FIELD &&
        w->b->kind != CCN__AST_CALL) {
      ccn__diag *d = ccn__p_complain(p, 1, w->b->span, "not a schedule", "expected a schedule after `with`");
      ccn__p_hint(p, d, "a schedule is a name or a call, as in: adam with zero(adam.gsum)");
      p->broken = true;
    }
    ccn__p_grow(p, ccn__max_u32(height, p->height), w->nspan);
    n = ccn__p_done(p, w);
  }
  return n;
}
