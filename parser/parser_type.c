/* parser_type.c: types, placements and parameter lists.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parser_impl.h"

bool ccn__p_is_dtype(const ccn__parser *p, ccn__name name) {
  if (!strchr("bfiu", name[0])) return false;
  for (uint32_t i = 0; i < p->words.ndtypes; i++) {
    if (p->words.dtype[i] == name) return true;
  }
  return false;
}

static bool at_place(ccn__parser *p) {
  if (p->kind != CCN__TOK_NAME) return false;
  ccn__name name = ccn__p_token(p)->name;
  for (size_t i = 0; i < CCN__COUNT(p->words.place); i++) {
    if (p->words.place[i] == name) return true;
  }
  return false;
}

/* replicated | local | sliced(d, unit: u) | partial(op) | at(i), each with [over axis] */
static ccn__ast *place(ccn__parser *p) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_PLACE, ccn__p_start(p));
  n->name = ccn__p_token(p)->name;
  n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  bool bare = n->name == p->words.place[0] || n->name == p->words.place[2];
  ccn__p_advance(p);
  p->height = 1;
  if (!bare) {
    if (p->kind == CCN__TOK_LPAREN && ccn__p_peek(p, 1)->kind != CCN__TOK_RPAREN) {
      n->list = ccn__p_args(p);
    } else {
      if (p->kind == CCN__TOK_LPAREN) ccn__p_advance(p);
      ccn__p_unexpected(
        p, p->previous == CCN__TOK_LPAREN ? "an argument" : "`(`",
        "placements are sliced(0), sliced(0, unit: 64), partial(sum), at(2), local, replicated");
    }
  }
  if (ccn__p_at_word(p, p->words.over)) {
    uint32_t mark = p->scratch.n, height = p->height;
    ccn__p_advance_join(p);
    ccn__ast *axis = ccn__p_name(p, "the name of an axis");
    *CCN__PUSH(p->arena, &p->scratch) = axis;
    n->axes = ccn__p_take(p, mark);
    p->height = ccn__max_u32(height, p->height);
  }
  ccn__p_grow(p, p->height, n->nspan);
  return ccn__p_done(p, n);
}

static ccn__ast_list places(ccn__parser *p) {
  uint32_t mark = p->scratch.n, height = p->height;
  while (at_place(p)) {
    ccn__ast *n = place(p);
    height = ccn__max_u32(height, p->height);
    *CCN__PUSH(p->arena, &p->scratch) = n;
  }
  p->height = height;
  return ccn__p_take(p, mark);
}

/* A name behind a type is a misspelt placement. */
static ccn__ast *not_a_place(ccn__parser *p) {
  ccn__nearest nearest;
  ccn__nearest_init(&nearest, ccn__p_token(p)->name);
  for (size_t i = 0; i < CCN__COUNT(p->words.place); i++) ccn__nearest_try(&nearest, p->words.place[i]);
  ccn__nearest_try(&nearest, p->words.over);
  return ccn__p_unexpected(p, "a placement",
                           nearest.best ? ccn__arena_printf(p->arena, "did you mean `%s`?", nearest.best)
                                        : "placements are replicated, sliced(0), local, partial(sum), at(2)");
}

static ccn__ast *dim(ccn__parser *p) {
  if (p->kind != CCN__TOK_STAR) return ccn__p_expr(p);
  ccn__ast *n = ccn__p_node(p, CCN__AST_STAR, ccn__p_start(p));
  p->height = 1;
  ccn__p_advance(p);
  return ccn__p_done(p, n);
}

ccn__ast *ccn__p_tensor_type(ccn__parser *p, uint32_t start, ccn__span nspan, ccn__name dtype) {
  ccn__ast *n = ccn__p_node(p, CCN__AST_TENSOR_TYPE, start);
  n->name = dtype;
  n->nspan = nspan;
  p->height = 0;
  if (p->kind == CCN__TOK_LBRACKET) {
    n->op = 1;
    n->list = ccn__p_items(p, CCN__TOK_RBRACKET, dim, NULL);
  }
  n->params = places(p);
  if (p->kind == CCN__TOK_NAME && !ccn__p_at_word(p, p->words.with) && !ccn__p_at_word(p, p->words.as)) {
    return not_a_place(p);
  }
  ccn__p_grow(p, p->height, nspan);
  return ccn__p_done(p, n);
}

ccn__ast *ccn__p_type(ccn__parser *p) {
  uint32_t start = ccn__p_start(p);
  ccn__ast *n;
  bool comma;
  if (p->kind == CCN__TOK_NAME) {
    ccn__token t = *ccn__p_token(p);
    ccn__p_advance(p);
    return ccn__p_tensor_type(p, start, ccn__p_span(p, t.start, t.end), t.name);
  }
  if (p->kind == CCN__TOK_LBRACKET) {
    n = ccn__p_node(p, CCN__AST_LIST_TYPE, start);
    ccn__p_open(p);
    n->a = ccn__p_type(p);
    ccn__p_close(p, CCN__TOK_RBRACKET, false);
    n->params = places(p);
  } else if (p->kind == CCN__TOK_LPAREN) {
    ccn__ast_list list = ccn__p_items(p, CCN__TOK_RPAREN, ccn__p_type, &comma);
    if (list.n == 1 && !comma) return list.at[0];
    n = ccn__p_node(p, CCN__AST_TUPLE_TYPE, start);
    n->list = list;
    if (list.n == 0 && !p->panic) {
      ccn__diag *d = ccn__p_complain(p, 1, ccn__p_span(p, start, p->previous_end), "nothing inside",
                                     "expected a type between the parentheses");
      ccn__p_hint(p, d, "a tuple type is written (f32[N], f32)");
      p->broken = true;
    }
  } else {
    return ccn__p_unexpected(p, "a type",
                             "types are written f32[N], f32[M, N] sliced(0), [f32[N]], (f32[N], f32)");
  }
  ccn__p_grow(p, p->height, n->span);
  return ccn__p_done(p, n);
}

/* NAME [: type] [= expr] */
static ccn__ast *param(ccn__parser *p) {
  uint32_t height = 1;
  ccn__ast *n = ccn__p_node(p, CCN__AST_PARAM, ccn__p_start(p));
  if (p->kind != CCN__TOK_NAME) return ccn__p_unexpected(p, "the name of a parameter", NULL);
  n->name = ccn__p_token(p)->name;
  n->nspan = ccn__p_span(p, ccn__p_start(p), ccn__p_token(p)->end);
  ccn__p_advance(p);
  if (ccn__p_accept_join(p, CCN__TOK_COLON)) {
    n->a = ccn__p_type(p);
    height = p->height;
  }
  if (ccn__p_accept_join(p, CCN__TOK_ASSIGN)) {
    n->b = ccn__p_expr(p);
    height = ccn__max_u32(height, p->height);
  }
  ccn__p_grow(p, height, n->nspan);
  return ccn__p_done(p, n);
}

static ccn__ast *typed_param(ccn__parser *p) {
  if (p->kind == CCN__TOK_NAME && ccn__p_peek(p, 1)->kind != CCN__TOK_COLON) {
    ccn__p_advance(p);
    return ccn__p_unexpected(p, "`:` and a type", "a program's parameters have types, as in x: f32[N]");
  }
  return param(p);
}

ccn__ast_list ccn__p_params(ccn__parser *p, bool typed) {
  ccn__ast_list list = ccn__p_items(p, CCN__TOK_RPAREN, typed ? typed_param : param, NULL);
  ccn__p_duplicates(p, list, "the parameter");
  return list;
}
