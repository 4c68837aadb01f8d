/* format_read.c: the formatter's first half: a text becomes lines of pieces, and each piece gets its gap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "format_impl.h"

typedef struct reader {
  ccn__layout *l;
  const ccn__source *source;
  uint8_t *mark;          /* flags by the offset of a piece */
  uint32_t at, column;    /* how far blanks, comments and pieces are read */
  bool axes;              /* between < and > */
  bool line_open;         /* the last line is still being read */
  bool blank;             /* an empty line was read since the last line */
  CCN__VEC(uint8_t) open; /* kinds of the open brackets */
} reader;

/* ---- what the tree knows ---- */

static void mark(reader *r, const ccn__ast *n);

static void mark_list(reader *r, const ccn__ast_list *list, uint8_t flag) {
  for (uint32_t i = 0; i < list->n; i++) {
    r->mark[list->at[i]->span.start] |= flag;
    mark(r, list->at[i]);
  }
}

static void mark(reader *r, const ccn__ast *n) {
  if (n->kind == CCN__AST_UNARY) r->mark[n->nspan.start] |= CCN__PIECE_UNARY; /* `not` as well: no harm */
  if (n->kind == CCN__AST_TRY) r->mark[n->span.start] |= CCN__PIECE_TRY;
  if (n->a) mark(r, n->a);
  if (n->b) mark(r, n->b);
  if (n->c) mark(r, n->c);
  mark_list(r, &n->params, 0);
  mark_list(r, &n->list, n->kind == CCN__AST_BLOCK ? CCN__PIECE_STATEMENT : 0);
}

/* ---- lines, comments, pieces ---- */

static ccn__line *last_line(reader *r) { return &r->l->lines.at[r->l->lines.n - 1]; }

static ccn__line *this_line(reader *r) {
  if (r->line_open) return last_line(r);
  ccn__line *line = CCN__PUSH(r->l->arena, &r->l->lines);
  *line = (ccn__line){.first = r->l->pieces.n, .blank_before = r->blank && r->l->lines.n > 1};
  r->line_open = true;
  r->blank = false;
  return line;
}

static uint32_t comment_end(const reader *r) {
  const char *end = memchr(r->source->text + r->at, '\n', r->source->size - r->at);
  return end ? (uint32_t)(end - r->source->text) : r->source->size;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void comment(reader *r) {
  const bool first = !r->line_open;
  const ccn__line *before = first && !r->blank && r->l->lines.n ? last_line(r) : NULL;
  const bool below = before && before->comment != before->comment_end && (before->n || before->hangs) &&
                     before->comment_column == r->column;
  ccn__line *line = this_line(r);
  uint32_t end = comment_end(r);
  line->comment = r->at;
  line->comment_column = r->column;
  line->hangs = below;
  r->at = end;
  while (is_blank(r->source->text[end - 1])) end--; /* it starts with #, so this ends */
  line->comment_end = end;
}

/* Blanks, line ends and comments up to `end`. */
static void between(reader *r, uint32_t end) {
  while (r->at < end) {
    switch (r->source->text[r->at]) {
    case '#': comment(r); continue;
    case '\n':
      if (!r->line_open) r->blank = true;
      r->line_open = false;
      r->column = 0;
      break;
    case '\t': r->column = (r->column | 7) + 1; break;
    default: r->column++;
    }
    r->at++;
  }
}

static void piece(reader *r, const ccn__token *t, uint32_t end) {
  ccn__line *line = this_line(r);
  ccn__piece *p = CCN__PUSH(r->l->arena, &r->l->pieces);
  *p = (ccn__piece){.start = t->start, .end = end, .column = r->column, .kind = t->kind};
  p->flags = r->mark[t->start];
  for (uint32_t i = t->start; i < end; i++) p->width += ((unsigned char)r->source->text[i] & 0xC0) != 0x80;
  r->column += p->width;
  r->at = end;
  line->n++;
}

static void read_pieces(reader *r, ccn__lexer *lx) {
  ccn__token t, inner;
  for (ccn__lexer_next(lx, &t); t.kind != CCN__TOK_EOF; ccn__lexer_next(lx, &t)) {
    uint32_t depth = t.kind == CCN__TOK_QUOTE, end = t.end;
    while (depth) {
      ccn__lexer_next(lx, &inner);
      end = inner.end;
      if (inner.kind == CCN__TOK_QUOTE) depth++;
      if (inner.kind == CCN__TOK_QUOTE_END) depth--;
    }
    between(r, t.start);
    piece(r, &t, end);
    ccn__piece *p = &r->l->pieces.at[r->l->pieces.n - 1];
    bool behind_name = r->l->pieces.n > 1 && p[-1].kind == CCN__TOK_NAME;
    if (p->kind == CCN__TOK_LT && behind_name) r->axes = ccn__lexer_axes_follow(lx, p->end);
    if (r->axes && (p->kind == CCN__TOK_LT || p->kind == CCN__TOK_GT)) p->flags |= CCN__PIECE_AXES;
    if (p->kind == CCN__TOK_GT) r->axes = false;
  }
  between(r, r->source->size);
}

/* ---- gaps ---- */

/* Whether a ( or [ behind it is a call or an index. */
static bool ends_operand(const ccn__piece *p) {
  switch (p->kind) {
  case CCN__TOK_NAME: return !(p->flags & CCN__PIECE_TRY);
  case CCN__TOK_INT:
  case CCN__TOK_FLOAT:
  case CCN__TOK_TRUE:
  case CCN__TOK_FALSE:
  case CCN__TOK_QUOTE:
  case CCN__TOK_FN:
  case CCN__TOK_RPAREN:
  case CCN__TOK_RBRACKET:
  case CCN__TOK_RBRACE: return true;
  default: return false;
  }
}

static bool is_number(const ccn__piece *p) { return p->kind == CCN__TOK_INT || p->kind == CCN__TOK_FLOAT; }

static uint32_t written_gap(const ccn__piece *a, const ccn__piece *b) {
  return b->column - a->column - a->width;
}

/* Blanks between two pieces of a line, where nothing is aligned. */
static uint32_t usual_gap(const ccn__piece *a, const ccn__piece *b) {
  if (a->kind == CCN__TOK_LPAREN || a->kind == CCN__TOK_LBRACKET) return 0;
  if (b->kind == CCN__TOK_RPAREN || b->kind == CCN__TOK_RBRACKET) return 0;
  if (b->kind == CCN__TOK_COMMA || b->kind == CCN__TOK_SEMICOLON) return 0;
  if ((a->flags | b->flags) & CCN__PIECE_AXES) return 0;
  if (a->kind == CCN__TOK_COMMA) return 1;
  if (b->kind == CCN__TOK_COLON) return 0;
  if (a->kind == CCN__TOK_COLON) return !(a->flags & CCN__PIECE_SLICE);
  if (b->kind == CCN__TOK_DOT && is_number(a)) return written_gap(a, b) > 0; /* 1 .e5 is not 1.e5 */
  if (a->kind == CCN__TOK_DOT || b->kind == CCN__TOK_DOT) return 0;
  if (a->kind == CCN__TOK_RANGE || a->kind == CCN__TOK_RANGE_EQ) return 0;
  if (b->kind == CCN__TOK_RANGE || b->kind == CCN__TOK_RANGE_EQ) return 0;
  if (a->kind == CCN__TOK_MINUS && a->flags & CCN__PIECE_UNARY) return 0;
  if (b->kind == CCN__TOK_LPAREN || b->kind == CCN__TOK_LBRACKET)
    return !ends_operand(a) || (b->flags & CCN__PIECE_STATEMENT);
  return 1;
}

/* In brackets that go over several lines people make columns: more blanks than one are kept behind a comma or
 * a colon, and between [ and a number, as in a matrix. */
static bool may_be_column(const ccn__piece *a, const ccn__piece *b) {
  if (ccn__piece_closes(b) || b->kind == CCN__TOK_COMMA || b->kind == CCN__TOK_COLON) return false;
  if (a->kind == CCN__TOK_COMMA) return true;
  if (a->kind == CCN__TOK_COLON) return !(a->flags & CCN__PIECE_SLICE);
  return a->kind == CCN__TOK_LBRACKET && (is_number(b) || b->flags & CCN__PIECE_UNARY);
}

static bool in_brackets(const reader *r) { return r->open.n && r->open.at[r->open.n - 1] != CCN__TOK_LBRACE; }

static void line_gaps(reader *r, const ccn__line *line) {
  ccn__piece *p = r->l->pieces.at + line->first;
  bool several = in_brackets(r);
  for (uint32_t i = 0; i < line->n; i++) {
    if (p[i].kind == CCN__TOK_COLON && in_brackets(r) && r->open.at[r->open.n - 1] == CCN__TOK_LBRACKET)
      p[i].flags |= CCN__PIECE_SLICE;
    if (ccn__piece_opens(&p[i])) *CCN__PUSH(r->l->arena, &r->open) = p[i].kind;
    if (ccn__piece_closes(&p[i])) r->open.n--;
  }
  several = several || in_brackets(r);
  for (uint32_t i = 1; i < line->n; i++) {
    const uint32_t written = written_gap(&p[i - 1], &p[i]);
    p[i].gap = usual_gap(&p[i - 1], &p[i]);
    if (several && written > p[i].gap && may_be_column(&p[i - 1], &p[i])) p[i].gap = written;
  }
}

void ccn__layout_read(ccn__layout *l, ccn__names *names, ccn__diags *ds, uint32_t source,
                      const ccn__ast *tree) {
  reader r = {.l = l, .source = ds->sources[source]};
  ccn__lexer lx;
  r.mark = CCN__NEWN(l->arena, uint8_t, (size_t)r.source->size + 1);
  mark(&r, tree);
  (void)CCN__PUSH(l->arena, &l->pieces); /* so that a line without pieces may point there */
  l->pieces.n = 0;
  ccn__lexer_init(&lx, l->arena, names, ds, source);
  r.at = lx.at; /* behind a byte order mark, which is not kept */
  read_pieces(&r, &lx);
  for (uint32_t i = 0; i < l->lines.n; i++) line_gaps(&r, &l->lines.at[i]);
}
