/* parser_impl.h: what the parser's files share: the state, looking ahead, brackets, errors, lists.
 *
 * How newlines work: where a newline ends the statement, the token behind it looks like NEWLINE (`kind`)
 * until somebody joins the lines (after an operator, a comma, at the head of a statement). Inside ( ) and
 * [ ] tokens never look so.
 *
 * How errors work: the first error of a statement is reported and `kind` becomes STOP, which no rule
 * accepts, so every function returns without another word; ccn__p_statement then skips to the next
 * statement. Errors that leave the reader where it is (`broken`) only make the statement an ERROR node.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PARSER_IMPL_H
#define CCN_PARSER_IMPL_H

#include "ast.h"
#include "lexer.h"
#include "parser.h"

/* No tree gets higher than this, so that later passes may recurse. Only chains get so high: a+a+a...,
 * x.y.z... */
#define CCN__MAX_HEIGHT 5000

typedef enum ccn__context {
  CCN__IN_FILE,   /* top level of a script */
  CCN__IN_SCRIPT, /* a block of a script, a fn */
  CCN__IN_PROGRAM,
  CCN__IN_SCHEDULE
} ccn__context;

typedef struct ccn__open {
  uint32_t start, end; /* the bracket */
  uint32_t column;     /* of the statement it stands in */
  uint8_t kind;
  bool newlines; /* as it was outside */
} ccn__open;

/* Words that mean something in places. */
typedef struct ccn__words {
  ccn__name with, as, over, on, repeat, call, try_, kernel, plan, reduction;
  ccn__name place[5];
  ccn__name dtype[16];
  uint32_t ndtypes;
} ccn__words;

typedef struct ccn__parser {
  ccn__arena *arena;
  ccn__names *names;
  ccn__diags *ds;
  ccn__lexer lx;
  ccn__token token[4]; /* ring: [head] is current, `ntokens` are read */
  uint32_t head, ntokens;
  uint8_t kind;       /* of the current token, or NEWLINE, or STOP */
  bool newlines;      /* a newline ends the statement here */
  bool joined;        /* the current token was joined to the line before: something must follow */
  bool panic, broken; /* an error was reported and not yet skipped; the statement's header had one */
  bool lost;          /* brackets were given up: closing ones without an opening one are follow-ups */
  bool runaway;       /* the error was CCN0008: its expression may go on for many lines */
  bool ended;         /* an error at the end of the text was reported */
  bool ate_brace;     /* an open string may have swallowed a closing brace */
  bool at_end;        /* the last error was found at the end of the text, where more could have come */
  uint8_t context;
  uint8_t previous; /* kind of the token before the current one */
  uint32_t previous_end;
  uint32_t consumed; /* tokens so far */
  uint32_t errors;
  uint32_t skip_depth;  /* brackets open in the statement when it went wrong */
  uint32_t column;      /* of the current statement's first token */
  uint32_t error_at;    /* offset of the token that the last error was about */
  uint32_t lost_column; /* of the statement that lost brackets; the next one there ends `lost` */
  uint32_t unclosed; /* offset of the token that showed a brace to be unclosed; one report for all braces */
  uint32_t depth;    /* nesting */
  uint32_t height;   /* of the tree that the last function returned */
  uint32_t nopen;
  ccn__open open[CCN__MAX_NESTING + 1];
  CCN__VEC(ccn__ast *) scratch; /* lists that are being read */
  ccn__words words;
} ccn__parser;

/* ---- tokens ---- */
ccn__token *ccn__p_peek(ccn__parser *p, uint32_t ahead); /* 0 (current) to 2 */
void ccn__p_advance(ccn__parser *p);
void ccn__p_join(ccn__parser *p); /* the current token belongs to the line before it */
static inline ccn__token *ccn__p_token(ccn__parser *p) { return &p->token[p->head]; }
static inline void ccn__p_advance_join(ccn__parser *p) {
  ccn__p_advance(p);
  ccn__p_join(p);
}
static inline bool ccn__p_accept(ccn__parser *p, ccn__token_kind kind) {
  if (p->kind != kind) return false;
  ccn__p_advance(p);
  return true;
}
static inline bool ccn__p_accept_join(ccn__parser *p, ccn__token_kind kind) {
  if (p->kind != kind) return false;
  ccn__p_advance_join(p);
  return true;
}
bool ccn__p_expect(ccn__parser *p, ccn__token_kind kind, const char *hint);
static inline bool ccn__p_at_word(ccn__parser *p, ccn__name word) {
  return p->kind == CCN__TOK_NAME && ccn__p_token(p)->name == word;
}
/* Whether the tokens `ahead` - 1 and `ahead` stand on one line (or in brackets, where lines do not
 * matter). */
bool ccn__p_same_line(ccn__parser *p, uint32_t ahead);

/* ---- nodes ---- */
static inline uint32_t ccn__p_start(ccn__parser *p) { return ccn__p_token(p)->start; }
static inline ccn__span ccn__p_span(const ccn__parser *p, uint32_t start, uint32_t end) {
  return (ccn__span){p->lx.source, start, end};
}
static inline ccn__ast *ccn__p_node(ccn__parser *p, ccn__ast_kind kind, uint32_t start) {
  ccn__ast *n = CCN__NEW(p->arena, ccn__ast);
  n->kind = (uint8_t)kind;
  n->span = ccn__p_span(p, start, start);
  return n;
}
static inline ccn__ast *ccn__p_done(ccn__parser *p,
                                    ccn__ast *n) { /* the token before the current one was its last */
  n->span.end = p->previous_end;
  return n;
}
void ccn__p_grow(ccn__parser *p, uint32_t children,
                 ccn__span where); /* height = children + 1, CCN0008 if too much */
bool ccn__p_enter(ccn__parser *p); /* one level deeper; false after CCN0008. Each goes with a leave */
static inline void ccn__p_leave(ccn__parser *p) { p->depth--; }
static inline uint32_t ccn__max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* ---- lists: push onto p->scratch, then take what lies above the mark ---- */
ccn__ast_list ccn__p_take(ccn__parser *p, uint32_t mark);
/* `open` item, item, `close`; a comma may stand at the end. The current token is `open`. p->height is the
 * greatest of the items' (0 if there are none). *out_comma (may be NULL): whether a comma stood behind the
 * last item. */
typedef ccn__ast *(*ccn__p_item)(ccn__parser *p);
ccn__ast_list ccn__p_items(ccn__parser *p, ccn__token_kind close, ccn__p_item item, bool *out_comma);
void ccn__p_open(ccn__parser *p);                                          /* at a bracket: steps in */
bool ccn__p_close(ccn__parser *p, ccn__token_kind close, bool after_item); /* and out */
/* CCN0011 for a name that an ARG or PARAM of the list already had. */
void ccn__p_duplicates(ccn__parser *p, ccn__ast_list list, const char *what);

/* ---- errors ---- */
/* Reports, and goes on reading. NULL while skipping. */
ccn__diag *ccn__p_complain(ccn__parser *p, uint16_t code, ccn__span span, const char *label, const char *fmt,
                           ...) CCN__PRINTF(5, 6);
void ccn__p_hint(ccn__parser *p, ccn__diag *d, const char *hint); /* both may be NULL */
void ccn__p_give_up(ccn__parser *p);
/* CCN0001 "expected `wanted`, found ...", or what the token or its place says better. Returns an ERROR
 * node. */
ccn__ast *ccn__p_unexpected(ccn__parser *p, const char *wanted, const char *hint);
ccn__ast *ccn__p_error_node(ccn__parser *p);

/* ---- rules ---- */
ccn__ast *ccn__p_expr(ccn__parser *p);
ccn__ast *ccn__p_path(ccn__parser *p);                   /* NAME { "." NAME } */
ccn__ast_list ccn__p_args(ccn__parser *p);               /* ( ... ) */
ccn__ast_list ccn__p_axes(ccn__parser *p);               /* < NAMES > */
ccn__ast_list ccn__p_params(ccn__parser *p, bool typed); /* ( ... ) */
ccn__ast *ccn__p_string(ccn__parser *p);
ccn__ast *ccn__p_name(ccn__parser *p, const char *wanted); /* a NAME node */
ccn__ast *ccn__p_type(ccn__parser *p);
ccn__ast *ccn__p_tensor_type(ccn__parser *p, uint32_t start, ccn__span nspan,
                             ccn__name dtype); /* behind the dtype */
bool ccn__p_is_dtype(const ccn__parser *p, ccn__name name);
ccn__ast *ccn__p_block(ccn__parser *p, uint8_t context);
ccn__ast *ccn__p_statements(ccn__parser *p); /* to `}` or the end, as a BLOCK */
ccn__ast *ccn__p_statement(ccn__parser *p);
void ccn__p_skip_statement(ccn__parser *p, uint32_t consumed_before);
void ccn__p_skip_to_brace(ccn__parser *p);

#endif
