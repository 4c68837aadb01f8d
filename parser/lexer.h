/* lexer.h: text → tokens, on demand; strings come apart into pieces here, so that the parser never looks
 * at bytes.
 *
 * Place in the pipeline: used by parser/ only. A token keeps its span, its column and whether a newline
 * stood before it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PARSER_LEXER_H
#define CCN_PARSER_LEXER_H

#include "diag.h"

/* TOK(ID, "how messages call it"). ORDER: PLUS..NOT as ccn__oper (ast.h); LET..CONTINUE are the other
 * keywords. */
#define CCN__TOKENS(TOK) \
  TOK(EOF, "the end of the text") \
  TOK(STOP, "") /* parser: an error was reported, nothing matches until the next statement */ \
  TOK(NEWLINE, "the end of the line") /* parser: how a token looks where a newline ends the statement */ \
  TOK(ERROR, "")                      /* the lexer could not read this; `code` says why, not yet reported */ \
  TOK(NAME, "a name") \
  TOK(INT, "a number") \
  TOK(FLOAT, "a number") \
  TOK(QUOTE, "a string") /* a string starts; then TEXT, INSERT ... INSERT_END, QUOTE_END */ \
  TOK(TEXT, "text in a string") \
  TOK(INSERT, "`{` in a string") \
  TOK(FORMAT, "a format") /* from the colon to the closing brace */ \
  TOK(INSERT_END, "`}` in a string") \
  TOK(QUOTE_END, "the end of the string") \
  TOK(LPAREN, "`(`") \
  TOK(RPAREN, "`)`") \
  TOK(LBRACKET, "`[`") \
  TOK(RBRACKET, "`]`") \
  TOK(LBRACE, "`{`") \
  TOK(RBRACE, "`}`") \
  TOK(COMMA, "`,`") \
  TOK(SEMICOLON, "`;`") \
  TOK(COLON, "`:`") \
  TOK(DOT, "`.`") \
  TOK(RANGE, "`..`") \
  TOK(RANGE_EQ, "`..=`") \
  TOK(ASSIGN, "`=`") \
  TOK(PLUS, "`+`") \
  TOK(MINUS, "`-`") \
  TOK(STAR, "`*`") \
  TOK(SLASH, "`/`") \
  TOK(SLASH2, "`//`") \
  TOK(PERCENT, "`%`") \
  TOK(POW, "`**`") \
  TOK(LT, "`<`") \
  TOK(LE, "`<=`") \
  TOK(GT, "`>`") \
  TOK(GE, "`>=`") \
  TOK(EQ, "`==`") \
  TOK(NE, "`!=`") \
  TOK(AND, "`and`") \
  TOK(OR, "`or`") \
  TOK(NOT, "`not`") \
  TOK(LET, "`let`") \
  TOK(IF, "`if`") \
  TOK(ELSE, "`else`") \
  TOK(WHILE, "`while`") \
  TOK(FOR, "`for`") \
  TOK(IN, "`in`") \
  TOK(FN, "`fn`") \
  TOK(RETURN, "`return`") \
  TOK(PROGRAM, "`program`") \
  TOK(SCHEDULE, "`schedule`") \
  TOK(MESH, "`mesh`") \
  TOK(IMPORT, "`import`") \
  TOK(ASSERT, "`assert`") \
  TOK(TRUE, "`true`") \
  TOK(FALSE, "`false`") \
  TOK(BREAK, "`break`") \
  TOK(CONTINUE, "`continue`")

typedef enum ccn__token_kind {
#define TOK(id, text) CCN__TOK_##id,
  CCN__TOKENS(TOK)
#undef TOK
    CCN__TOK_COUNT
} ccn__token_kind;

typedef struct ccn__token {
  uint8_t kind;
  bool newline;  /* a newline stands before it */
  uint16_t code; /* of ERROR: 2, or 3 (then i is the offset of the opening quote) */
  uint32_t start, end;
  uint32_t column; /* bytes from the start of its line */
  uint32_t size;   /* bytes at str: TEXT (unescaped), FORMAT (without the colon) */
  union {
    int64_t i;
    double f;
    ccn__name name;
    const char *str;
  };
} ccn__token;

struct ccn__lexer_string {
  uint32_t quote; /* offset of the opening quote */
  uint32_t depth; /* open brackets inside the current {} */
};

typedef struct ccn__lexer {
  ccn__arena *arena;
  ccn__names *names;
  ccn__diags *ds;
  uint32_t source;
  const char *text;
  uint32_t size, at;
  uint32_t line_start;
  uint32_t errors; /* reported here, by code that went on */
  bool in_text;    /* inside the text of the innermost string, not in one of its {} */
  CCN__VEC(struct ccn__lexer_string) strings; /* open strings, outermost first */
} ccn__lexer;

void ccn__lexer_init(ccn__lexer *lx, ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source);
void ccn__lexer_next(ccn__lexer *lx, ccn__token *t);         /* at the end EOF, again and again */
void ccn__lexer_report(ccn__lexer *lx, const ccn__token *t); /* what an ERROR token is about */
/* Whether NAMES `>` `(` follow at `at`, just behind a `<`: the grammar's one longer look ahead. */
bool ccn__lexer_axes_follow(const ccn__lexer *lx, uint32_t at);

/* lexer_literal.c: numbers and pieces of strings; lx->at stands on their first byte. */
void ccn__lexer_number(ccn__lexer *lx, ccn__token *t);
void ccn__lexer_string_piece(ccn__lexer *lx, ccn__token *t);
void ccn__lexer_bad_string(ccn__lexer *lx, ccn__token *t); /* the line ended inside a string */

/* Bytes of the UTF-8 character at s (at most n), 0 if it is none; *out_char may be NULL. */
uint32_t ccn__utf8_decode(const char *s, size_t n, uint32_t *out_char);

static inline char ccn__lexer_peek(const ccn__lexer *lx, uint32_t ahead) {
  return lx->size - lx->at > ahead ? lx->text[lx->at + ahead] : '\0';
}
static inline ccn__span ccn__lexer_span(const ccn__lexer *lx, uint32_t start, uint32_t end) {
  return (ccn__span){lx->source, start, end};
}
static inline bool ccn__is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool ccn__is_name_start(char c) { return (unsigned char)((c | 32) - 'a') < 26 || c == '_'; }
static inline bool ccn__is_name_char(char c) { return ccn__is_name_start(c) || ccn__is_digit(c); }

#endif
