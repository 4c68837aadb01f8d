/* graph_read.h: what the readers of graph text share: the reader, its tokens, and errors as jumps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_GRAPH_READ_H
#define CCN_LANG_GRAPH_READ_H

#include "ast.h"
#include "graph.h"

enum {
  REGION_DEPTH = 64,
  LIT_DEPTH = 1000,
  DIM_DEPTH = 64,
  DIM_OPERATORS = 1024, /* of one extent: bounds the memory that multiplying out takes */
  DIM_TERMS = 256,
  SYMBOLS = 4096,
  BUNDLES = 4096
};

/* Kinds of tokens; punctuation is its own character, or two. */
enum { T_END = 256, T_NAME, T_ID, T_INT, T_FLOAT, T_STRING };
#define TWO(a, b) ((a) << 8 | (b))

typedef struct ccn__graph_token {
  int kind;
  bool first_of_line;
  ccn__span span;
  uint64_t i;     /* INT, ID */
  double f;       /* FLOAT */
  ccn__name name; /* NAME, STRING (unescaped) */
} ccn__graph_token;

typedef struct ccn__reader {
  ccn__arena *a;
  ccn__arena scratch; /* strings, and extents while they are computed */
  ccn__names *names;
  ccn__diags *ds;
  uint32_t source;
  const char *text;
  uint32_t size, pos;
  ccn__graph_token tok;
  ccn__graph *g;
  uint32_t operators; /* of the extent that is being read */
} ccn__reader;

#define FAIL(r, code, span, label, ...) \
  (ccn__error((r)->ds, (code), (span), (label), __VA_ARGS__), ccn__throw((r)->a->heap, CCN_ERROR))

/* ---- graph_lex.c ---- */
int64_t ccn__read_int(ccn__reader *r);
int ccn__read_peek_char(const ccn__reader *r, uint32_t ahead);
uint32_t ccn__read_axis(ccn__reader *r);
bool ccn__read_accept_word(ccn__reader *r, const char *word);
bool ccn__read_digit(int c);
ccn__name ccn__read_name(ccn__reader *r, const char *what);
CCN__NORETURN void ccn__read_unexpected(ccn__reader *r, const char *want);
void ccn__read_next(ccn__reader *r);
bool ccn__read_accept(ccn__reader *r, int kind);
bool ccn__read_is_word(const ccn__reader *r, const char *word);
void ccn__read_expect(ccn__reader *r, int kind);
uint32_t ccn__read_index(ccn__reader *r, uint32_t below, const char *what);

/* ---- graph_read_type.c ---- */
void ccn__read_type(ccn__reader *r, ccn__type *t);
ccn__redop ccn__read_redop(ccn__reader *r);
const ccn__dim *ccn__read_dim(ccn__reader *r);
const ccn__lit *ccn__read_lit_at(ccn__reader *r, uint32_t depth);
bool ccn__read_derived(ccn__reader *r, ccn__symbol_kind *kind, uint32_t *index);

#endif
