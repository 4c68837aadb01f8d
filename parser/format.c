/* format.c: `ccn fmt`: indentation, alignment, comments; format_read.c makes the lines.
 *
 * What it does: indents by 2, puts one blank around binary operators and behind commas and none where none
 * belongs, takes blanks off the ends of lines, keeps at most one empty line in a row, ends the text with a
 * newline.
 *
 * What it never does: join or break lines, or touch a token or a comment. So the tree stays what it was.
 * What may be deliberate is kept:
 *   - `=` one below the other: if two lines of a run of bindings share the column of their `=` and one of
 *     them pads for it, the run is aligned there, or as far right as its widest left side needs; lines at
 *     its ends that were never aligned stay out of it. The `{` of statements that stand on one line each is
 *     treated alike;
 *   - columns in brackets that go over several lines (format_read.c);
 *   - comments behind code stay in their column, and move together where the code has grown into it;
 *   - a line that goes on with a statement outside of brackets keeps its distance from the statement's
 *     first line.
 *
 * In brackets a line stands below the first piece behind the bracket, or, where nothing follows the bracket
 * on its line, two columns in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include "format_impl.h"
#include "parser.h"

/* Bounds of what alignment may add to a line: without them a hostile text would grow with its square. */
enum {
  MAX_LEFT = 40,   /* wider left sides take part in no alignment */
  MAX_COLUMN = 80, /* farther right no line starts because of a bracket or of the line before */
  INDENT = 2,
  GOES_ON = 4
};

/* ---- alignment ---- */

/* Whether blocks are opened here that end further on, or the other way round. */
static bool changes_block(const ccn__layout *l, const ccn__line *line) {
  int depth = 0;
  for (uint32_t i = 0; i < line->n; i++) {
    const uint8_t kind = l->pieces.at[line->first + i].kind;
    depth += (kind == CCN__TOK_LBRACE) - (kind == CCN__TOK_RBRACE);
  }
  return depth != 0;
}

/* What may be aligned on a line that starts a statement: the `=` of a binding, or the `{` of a block that
 * ends on the line. Its index, else 0. */
static uint32_t anchor_of(const ccn__layout *l, const ccn__line *line) {
  const ccn__piece *p = l->pieces.at + line->first;
  uint32_t depth = 0;
  if (!line->n || !(p->flags & CCN__PIECE_STATEMENT)) return 0;
  for (uint32_t i = 0; i < line->n; i++) {
    if (ccn__piece_closes(&p[i]) && depth-- == 0) return 0;
    if (p[i].kind == CCN__TOK_SEMICOLON) return 0;
    if (p[i].kind == CCN__TOK_ASSIGN && depth == 0) return i;
    if (p[i].kind == CCN__TOK_LBRACE && depth == 0) return changes_block(l, line) ? 0 : i;
    if (ccn__piece_opens(&p[i])) depth++;
  }
  return 0;
}

static uint32_t left_width(const ccn__piece *p, uint32_t anchor) {
  uint32_t width = 0;
  for (uint32_t i = 0; i < anchor; i++) width += p[i].gap + p[i].width;
  return width;
}

/* Whether a run of lines aligned at tokens of this kind ends before the line. */
static bool ends_run(const ccn__layout *l, const ccn__line *line, uint8_t kind) {
  const ccn__piece *p = l->pieces.at + line->first;
  if (line->blank_before) return true;
  if (!line->n) return false;
  if (p->kind == CCN__TOK_RBRACE || p->kind == CCN__TOK_LBRACE || p->kind == CCN__TOK_SEMICOLON) return true;
  if (!(p->flags & CCN__PIECE_STATEMENT)) return false;
  const uint32_t anchor = anchor_of(l, line);
  return !anchor || p[anchor].kind != kind || left_width(p, anchor) > MAX_LEFT;
}

/* The end of the run that starts at line i. Comments, and lines that go on with a statement, belong to it; an
 * empty line, another kind of statement, the start and the end of a longer block end it. */
static uint32_t run_end(const ccn__layout *l, uint32_t i) {
  const ccn__line *first = &l->lines.at[i];
  const uint8_t kind = l->pieces.at[first->first + anchor_of(l, first)].kind;
  while (!changes_block(l, &l->lines.at[i])) {
    i++;
    if (i == l->lines.n || ends_run(l, &l->lines.at[i], kind)) return i;
  }
  return i + 1;
}

static bool is_padded(const ccn__piece *anchor) {
  return anchor->column > anchor[-1].column + anchor[-1].width + 1;
}

/* The column, counted from the start of the line, at which most anchors of the run were put by hand: two
 * lines at least share it, one of them padded for it. 0 if there is none. */
static uint32_t chosen_column(const ccn__layout *l, uint32_t i, uint32_t end) {
  enum { COLUMNS = 128 };
  uint32_t count[COLUMNS] = {0}, chosen = 0;
  bool padded[COLUMNS] = {false};
  for (; i < end; i++) {
    const ccn__piece *p = &l->pieces.at[l->lines.at[i].first];
    const uint32_t anchor = anchor_of(l, &l->lines.at[i]);
    const uint32_t column = anchor ? p[anchor].column - p->column : COLUMNS;
    if (column >= COLUMNS) continue;
    count[column]++;
    if (is_padded(&p[anchor])) padded[column] = true;
  }
  for (uint32_t c = 0; c < COLUMNS; c++) {
    if (padded[c] && count[c] > 1 && count[c] > count[chosen]) chosen = c;
  }
  return chosen;
}

static bool takes_part(const ccn__layout *l, uint32_t i, uint32_t column) {
  const ccn__piece *p = &l->pieces.at[l->lines.at[i].first];
  const uint32_t anchor = anchor_of(l, &l->lines.at[i]);
  return anchor && (p[anchor].column - p->column == column || is_padded(&p[anchor]));
}

static void align_run(ccn__layout *l, uint32_t start, uint32_t end) {
  uint32_t column = chosen_column(l, start, end), widest = 0;
  if (!column) return;
  while (!takes_part(l, start, column)) start++;
  while (!takes_part(l, end - 1, column)) end--;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = start; i < end; i++) {
      ccn__piece *p = &l->pieces.at[l->lines.at[i].first];
      const uint32_t anchor = anchor_of(l, &l->lines.at[i]);
      if (!anchor) continue;
      const uint32_t width = left_width(p, anchor);
      if (pass == 0 && width > widest) widest = width;
      if (pass == 1) p[anchor].gap = (widest < column ? column : widest + 1) - width;
    }
  }
}

static void align_runs(ccn__layout *l) {
  for (uint32_t i = 0, end; i < l->lines.n; i = end) {
    const uint32_t anchor = anchor_of(l, &l->lines.at[i]);
    end = i + 1;
    if (!anchor || left_width(&l->pieces.at[l->lines.at[i].first], anchor) > MAX_LEFT) continue;
    end = run_end(l, i);
    align_run(l, i, end);
  }
}

/* ---- indentation ---- */

/* An open bracket, or the file. "Item" is what is being read in it: a statement, or what stands between
 * commas. */
typedef struct frame {
  uint32_t inside;      /* where lines start in it */
  uint32_t base;        /* where a line starts that closes it */
  uint32_t item;        /* indentation of the line on which the item starts */
  uint32_t item_source; /* the same as it was written */
  bool block;
} frame;

typedef struct indenter {
  ccn__layout *l;
  CCN__VEC(frame) frames;
} indenter;

static frame *top(indenter *in) { return &in->frames.at[in->frames.n - 1]; }

static uint32_t indent_before(indenter *in, const ccn__piece *p) {
  const frame *f = top(in);
  if (ccn__piece_closes(p)) return f->base;
  if (!f->block || p->flags & CCN__PIECE_STATEMENT || p->kind == CCN__TOK_SEMICOLON) return f->inside;
  if (p->kind == CCN__TOK_LBRACE || p->kind == CCN__TOK_ELSE) return f->item;
  const uint32_t by = p->column > f->item_source ? p->column - f->item_source : 0;
  return f->item + (by < INDENT || by > MAX_COLUMN || f->item + by > MAX_COLUMN ? GOES_ON : by);
}

/* A comment on a line of its own stands as the code below it would, but never as far out as a closing
 * bracket. */
static uint32_t comment_indent(indenter *in, const ccn__line *line) {
  const ccn__piece *next = &in->l->pieces.at[line->first];
  if (line->first == in->l->pieces.n || ccn__piece_closes(next)) return top(in)->inside;
  return indent_before(in, next);
}

static void open_frame(indenter *in, const ccn__line *line, uint32_t i, uint32_t column) {
  const ccn__piece *p = &in->l->pieces.at[line->first];
  const frame *outer = top(in);
  frame f = {.block = p[i].kind == CCN__TOK_LBRACE};
  if (f.block) {
    f.item = f.base = outer->item;
    f.item_source = outer->item_source;
    f.inside = f.base + INDENT;
  } else {
    f.item = f.base = line->indent;
    f.item_source = p->column;
    f.inside = i + 1 == line->n ? line->indent + INDENT : column + p[i].width;
    if (f.inside > MAX_COLUMN) f.inside = line->indent + INDENT;
  }
  *CCN__PUSH(in->l->arena, &in->frames) = f;
}

static void indent_code(indenter *in, ccn__line *line) {
  const ccn__piece *p = &in->l->pieces.at[line->first];
  frame *f = top(in);
  line->indent = indent_before(in, p);
  if (f->block ? p->flags & CCN__PIECE_STATEMENT : !ccn__piece_closes(p)) {
    f->item = line->indent;
    f->item_source = p->column;
  }
  line->width = line->indent;
  for (uint32_t i = 0; i < line->n; i++) {
    line->width += p[i].gap;
    if (ccn__piece_opens(&p[i])) open_frame(in, line, i, line->width);
    if (ccn__piece_closes(&p[i])) in->frames.n--;
    line->width += p[i].width;
  }
}

static void indent_lines(ccn__layout *l) {
  indenter in = {.l = l};
  *CCN__PUSH(l->arena, &in.frames) = (frame){.block = true};
  for (uint32_t i = 0; i < l->lines.n; i++) {
    ccn__line *line = &l->lines.at[i];
    if (line->n) {
      indent_code(&in, line);
    } else if (!line->hangs) {
      line->indent = comment_indent(&in, line);
    }
  }
}

/* ---- comments ---- */

static bool behind_code(const ccn__line *line) {
  return line->comment != line->comment_end && (line->n || line->hangs);
}

/* Comments behind code that share a column, with no empty line between, stay together: in their column, or,
 * if code reaches into it, behind the longest line. */
static void place_comments(ccn__layout *l) {
  for (uint32_t i = 0, end; i < l->lines.n; i = end) {
    const uint32_t column = l->lines.at[i].comment_column;
    uint32_t widest = 0;
    end = i + 1;
    if (!behind_code(&l->lines.at[i])) {
      l->lines.at[i].comment_at = l->lines.at[i].indent;
      continue;
    }
    for (end = i; end < l->lines.n; end++) {
      const ccn__line *line = &l->lines.at[end];
      if (end > i && line->blank_before) break;
      if (!behind_code(line)) continue;
      if (line->comment_column != column) break;
      if (line->width > widest) widest = line->width;
    }
    for (uint32_t j = i; j < end; j++) {
      ccn__line *line = &l->lines.at[j];
      if (!behind_code(line)) line->comment_at = line->indent;
      else line->comment_at = widest < column ? column : widest + 2;
    }
  }
}

/* ---- writing ---- */

static void blanks(ccn__text *out, uint32_t n) {
  static const char some[] = "                                ";
  for (uint32_t k; n; n -= k) {
    k = n < sizeof some - 1 ? n : (uint32_t)sizeof some - 1;
    ccn__text_add(out, some, k);
  }
}

static void write_line(const ccn__layout *l, const ccn__line *line, ccn__text *out) {
  const ccn__piece *p = l->pieces.at + line->first;
  if (line->blank_before) ccn__text_putc(out, '\n');
  if (line->n) blanks(out, line->indent);
  for (uint32_t i = 0; i < line->n; i++) {
    blanks(out, p[i].gap);
    ccn__text_add(out, l->text + p[i].start, p[i].end - p[i].start);
  }
  if (line->comment != line->comment_end) {
    blanks(out, line->comment_at - line->width);
    ccn__text_add(out, l->text + line->comment, line->comment_end - line->comment);
  }
  ccn__text_putc(out, '\n');
}

bool ccn__format_source(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source, ccn__text *out) {
  const uint32_t errors = ds->errors;
  const ccn__ast *tree = ccn__parse(a, names, ds, source, NULL);
  ccn__layout l = {.arena = a, .text = ds->sources[source]->text};
  if (ds->errors != errors) return false;
  ccn__layout_read(&l, names, ds, source, tree);
  align_runs(&l);
  indent_lines(&l);
  place_comments(&l);
  for (uint32_t i = 0; i < l.lines.n; i++) write_line(&l, &l.lines.at[i], out);
  return true;
}
