/* ast.h: the syntax tree: one uniform node, so that dumps, walks and free-name searches are loops.
 *
 * Place in the pipeline: made by parser/, read by lower.c (programs), script.c (scripts) and later by passes/
 * (schedules). Every node keeps its span. Lives in the module's arena.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_AST_H
#define CCN_LANG_AST_H

#include "diag.h"

typedef enum ccn__ast_kind {
#define AST(id, name, doc) CCN__AST_##id,
#include "ast.def"
#undef AST
  CCN__AST_COUNT
} ccn__ast_kind;

/* Operators, in `op` of UNARY and BINARY. */
typedef enum ccn__oper {
  CCN__T_NONE,
  CCN__T_PLUS,
  CCN__T_MINUS,
  CCN__T_STAR,
  CCN__T_SLASH,
  CCN__T_SLASH2, /* // */
  CCN__T_PERCENT,
  CCN__T_POW, /* ** */
  CCN__T_LT,
  CCN__T_LE,
  CCN__T_GT,
  CCN__T_GE,
  CCN__T_EQ,
  CCN__T_NE,
  CCN__T_AND,
  CCN__T_OR,
  CCN__T_NOT,
  CCN__T_OPER_COUNT
} ccn__oper;

typedef struct ccn__ast ccn__ast;
typedef struct ccn__ast_list {
  ccn__ast **at;
  uint32_t n;
} ccn__ast_list;

struct ccn__ast {
  uint8_t kind;
  uint8_t op;
  ccn__span span;  /* the whole construct */
  ccn__span nspan; /* its name or operator */
  ccn__name name;
  ccn__ast *a, *b, *c;
  ccn__ast_list list, params, axes;
  union {
    int64_t i;
    double f;
  };
  const char *str; /* bytes may contain anything; length in i for TEXT, NUL-terminated too */
};

const char *ccn__ast_kind_name(ccn__ast_kind k);
const char *ccn__oper_text(ccn__oper op); /* "+", "and", ... */
/* `ccn dump --stage ast`: an indented S-expression, one node a line. */
void ccn__ast_print(const ccn__ast *n, ccn__text *out);

#endif
