/* format_impl.h: what the formatter's two files share: a text as lines of pieces.
 *
 * Columns count characters from the start of the line; a tab between pieces reaches to the next multiple of
 * 8, one inside of a string counts as one, so that a piece is as wide wherever it stands.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PARSER_FORMAT_IMPL_H
#define CCN_PARSER_FORMAT_IMPL_H

#include "ast.h"
#include "lexer.h"

/* What the tree knows about a piece and its token does not. */
enum {
  CCN__PIECE_STATEMENT = 1, /* starts a statement of a block or of the file */
  CCN__PIECE_UNARY = 2,     /* a minus with one operand */
  CCN__PIECE_TRY = 4,       /* the word that heads a statement, not a name */
  CCN__PIECE_AXES = 8,      /* < or > around axes */
  CCN__PIECE_SLICE = 16     /* the colon of x[a:b] */
};

/* A token; a string is one piece, with all that it inserts. */
typedef struct ccn__piece {
  uint32_t start, end; /* bytes */
  uint32_t column;     /* as it was written */
  uint32_t width;
  uint32_t gap; /* blanks before it, as they will be; a line's first piece has none */
  uint8_t kind; /* ccn__token_kind */
  uint8_t flags;
} ccn__piece;

typedef struct ccn__line {
  uint32_t first, n;             /* pieces; without any, `first` is the next line's */
  uint32_t comment, comment_end; /* bytes; equal if there is none */
  uint32_t comment_column;       /* as it was written */
  bool blank_before;             /* an empty line stands before it */
  bool hangs;                    /* only a comment, which goes on with the one behind the code above */
  uint32_t indent, width;        /* columns of the code, as they will be */
  uint32_t comment_at;           /* as it will be */
} ccn__line;

typedef struct ccn__layout {
  ccn__arena *arena;
  const char *text;
  CCN__VEC(ccn__piece) pieces;
  CCN__VEC(ccn__line) lines;
} ccn__layout;

/* format_read.c: fills a layout from a text without errors: pieces, their gaps, lines, comments. */
void ccn__layout_read(ccn__layout *l, ccn__names *names, ccn__diags *ds, uint32_t source,
                      const ccn__ast *tree);

static inline bool ccn__piece_opens(const ccn__piece *p) {
  return p->kind == CCN__TOK_LPAREN || p->kind == CCN__TOK_LBRACKET || p->kind == CCN__TOK_LBRACE ||
         (p->kind == CCN__TOK_LT && p->flags & CCN__PIECE_AXES);
}
static inline bool ccn__piece_closes(const ccn__piece *p) {
  return p->kind == CCN__TOK_RPAREN || p->kind == CCN__TOK_RBRACKET || p->kind == CCN__TOK_RBRACE ||
         (p->kind == CCN__TOK_GT && p->flags & CCN__PIECE_AXES);
}

#endif
