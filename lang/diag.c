/* diag.c: collects diagnostics and renders them, for people as rustc does, for machines as JSON.
 *
 * Contract: diag.h. What is rendered may come from hostile files: whatever could steer a terminal (control
 * bytes, bidirectional overrides, invalid UTF-8) is shown as an escape, and lines are clipped around the
 * span.
 * SPDX-License-Identifier: Apache-2.0 */
#include "diag.h"

#include <stdio.h>

enum {
  LIMIT_DEFAULT = 100, /* errors collected if ds->limit is 0 */
  ROW_MAX = 100,       /* cells of a source line that are shown */
  ROW_BEFORE = 36,     /* of these before the span when the line is clipped */
  TAB = 4,
  NEAR_LINES = 8 /* a span's last line is shown too when it is at most so far from the first */
};

/* ---- the table of codes -------------------------------------------------------------------------------- */

static const ccn__error_info error_table[] = {
#define ERRCODE(code, title, hint, explain) {code, title, hint, "# " title "\n\n" explain},
#include "errors.def"
#undef ERRCODE
};

const ccn__error_info *ccn__error_find(uint16_t code) {
  for (size_t i = 0; i < CCN__COUNT(error_table); i++)
    if (error_table[i].code == code) return &error_table[i];
  return NULL;
}

const ccn__error_info *ccn__error_at(uint32_t i) {
  return i < CCN__COUNT(error_table) ? &error_table[i] : NULL;
}

/* ---- collection ---------------------------------------------------------------------------------------- */

static const char *format(ccn__arena *a, const char *fmt, va_list args) {
  if (!fmt) return "";
  char small[512];
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(small, sizeof small, fmt, args);
  if (n < 0) n = 0;
  char *p = ccn__arena_alloc(a, (size_t)n + 1);
  if ((size_t)n < sizeof small) memcpy(p, small, (size_t)n);
  else vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

static bool beyond_limit(const ccn__diags *ds, ccn_severity severity) {
  uint32_t limit = ds->limit ? ds->limit : LIMIT_DEFAULT;
  return (severity == CCN_SEVERITY_ERROR ? ds->errors : ds->warnings) >= limit;
}

/* A program is checked with each of its schedules, and lowered for each form of its arguments: its warnings are the
 * same ones. */
static bool said_before(const ccn__diags *ds, uint16_t code, ccn__span span) {
  const ccn__diag *d = span.source ? ds->first : NULL;
  while (d &&
         !(d->severity == CCN_SEVERITY_WARNING && d->code == code && d->primary.span.source == span.source &&
           d->primary.span.start == span.start && d->primary.span.end == span.end))
    d = d->next;
  return d != NULL;
}

/* Beyond the limit the diagnostic is counted but not linked; its code stays 0, so that notes and hints for
 * it are dropped too. */
static ccn__diag *add(ccn__diags *ds, ccn_severity severity, uint16_t code, ccn__span span, const char *label,
                      const char *fmt, va_list args) {
  ccn__diag *d = CCN__NEW(ds->arena, ccn__diag);
  d->severity = severity;
  d->primary.span = span;
  d->message = d->primary.text = "";
  if (severity == CCN_SEVERITY_WARNING && said_before(ds, code, span)) return d;
  bool dropped = beyond_limit(ds, severity);
  if (!dropped) {
    if (label && *label) d->primary.text = ccn__arena_strndup(ds->arena, label, strlen(label));
    d->message = format(ds->arena, fmt, args);
    d->code = code;
    if (ds->last) ds->last->next = d;
    else ds->first = d;
    ds->last = d;
    ds->count++;
  }
  if (severity == CCN_SEVERITY_ERROR) ds->errors++;
  else ds->warnings++;
  return d;
}

ccn__diag *ccn__error(ccn__diags *ds, uint16_t code, ccn__span span, const char *label, const char *fmt,
                      ...) {
  va_list args;
  va_start(args, fmt);
  ccn__diag *d = add(ds, CCN_SEVERITY_ERROR, code, span, label, fmt, args);
  va_end(args);
  return d;
}

ccn__diag *ccn__warning(ccn__diags *ds, uint16_t code, ccn__span span, const char *label, const char *fmt,
                        ...) {
  va_list args;
  va_start(args, fmt);
  ccn__diag *d = add(ds, CCN_SEVERITY_WARNING, code, span, label, fmt, args);
  va_end(args);
  return d;
}

void ccn__note(ccn__diags *ds, ccn__diag *d, ccn__span span, const char *fmt, ...) {
  if (!d->code) return;
  va_list args;
  va_start(args, fmt);
  const char *text = format(ds->arena, fmt, args);
  va_end(args);
  if ((d->nnotes & (d->nnotes - 1)) == 0) { /* 0 or a power of two: full */
    ccn__label *more = CCN__NEWN(ds->arena, ccn__label, d->nnotes ? d->nnotes * 2 : 1);
    if (d->nnotes) memcpy(more, d->notes, d->nnotes * sizeof *more);
    d->notes = more;
  }
  d->notes[d->nnotes++] = (ccn__label){span, text};
}

void ccn__hint(ccn__diags *ds, ccn__diag *d, const char *fmt, ...) {
  if (!d->code) return;
  va_list args;
  va_start(args, fmt);
  d->hint = format(ds->arena, fmt, args);
  va_end(args);
}

/* ---- characters ---------------------------------------------------------------------------------------- */

#define INVALID UINT32_MAX

/* The character at s, of n > 0 bytes: its length, and its code point or INVALID (then the length is 1).
 * Overlong forms, surrogates and what lies beyond U+10FFFF are invalid. */
static uint32_t decode(const char *s, size_t n, uint32_t *out_cp) {
  const unsigned char *u = (const unsigned char *)s;
  uint32_t c = u[0], len = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  *out_cp = INVALID;
  if (len == 0 || len > n) return 1;
  if (len > 1) c &= 0x7fu >> len;
  for (uint32_t i = 1; i < len; i++) {
    if ((u[i] & 0xc0) != 0x80) return 1;
    c = c << 6 | (u[i] & 0x3f);
  }
  if ((len == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) || (len == 4 && (c < 0x10000 || c > 0x10ffff)))
    return 1;
  *out_cp = c;
  return len;
}

typedef struct range {
  uint32_t first, last;
} range;

static bool in_ranges(const range *r, size_t n, uint32_t cp) {
  for (size_t i = 0; i < n; i++)
    if (cp >= r[i].first && cp <= r[i].last) return true;
  return false;
}

/* Characters that are not shown as they are: controls, and those that reorder or hide text ("Trojan
 * Source"). */
static bool is_odd(uint32_t cp) {
  static const range odd[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},
                              {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},
                              {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}};
  return in_ranges(odd, CCN__COUNT(odd), cp);
}

/* Cells on a terminal; the few ranges that matter, not all of Unicode. */
static uint32_t cells_of(uint32_t cp) {
  static const range none[] = {{0x300, 0x36f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
  static const range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                               {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                               {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                               {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  if (cp < 0x300) return 1;
  if (in_ranges(none, CCN__COUNT(none), cp)) return 0;
  return in_ranges(wide, CCN__COUNT(wide), cp) ? 2 : 1;
}

/* Shows the character at s (len bytes, as `decode` found it); returns its cells. out may be NULL to
 * measure only. */
static uint32_t show_char(ccn__text *out, const char *s, uint32_t len, uint32_t cp) {
  char escape[16];
  if (cp == '\t') {
    if (out) ccn__text_add(out, "    ", TAB);
    return TAB;
  }
  if (cp != INVALID && !is_odd(cp)) {
    if (out) ccn__text_add(out, s, len);
    return cells_of(cp);
  }
  int n = cp == INVALID ? snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*s)
          : cp < 0x80   ? snprintf(escape, sizeof escape, "\\x%02x", (unsigned)cp)
                        : snprintf(escape, sizeof escape, "\\u{%x}", (unsigned)cp);
  if (out) ccn__text_add(out, escape, (size_t)n);
  return (uint32_t)n;
}

/* ---- lines --------------------------------------------------------------------------------------------- */

typedef struct line_at {
  uint32_t number;     /* from 1 */
  uint32_t begin, end; /* bytes, without the line's end */
} line_at;

/* The line that holds `offset`. The table of lines is used if there is one, not made: its owner may
 * outlive ours. */
static line_at find_line(const ccn__source *s, uint32_t offset) {
  line_at l = {1, 0, 0};
  if (offset > s->size) offset = s->size;
  if (s->line) {
    uint32_t lo = 0, hi = s->nlines;
    while (hi - lo > 1) {
      uint32_t mid = lo + (hi - lo) / 2;
      if (s->line[mid] <= offset) lo = mid;
      else hi = mid;
    }
    l.number = lo + 1;
    l.begin = s->line[lo];
  } else {
    for (const char *nl; l.begin < offset && (nl = memchr(s->text + l.begin, '\n', offset - l.begin));
         l.number++)
      l.begin = (uint32_t)(nl - s->text) + 1;
  }
  const char *end = s->size > l.begin ? memchr(s->text + l.begin, '\n', s->size - l.begin) : NULL;
  l.end = end ? (uint32_t)(end - s->text) : s->size;
  if (l.end > l.begin && s->text[l.end - 1] == '\r') l.end--;
  return l;
}

static uint32_t column_of(const ccn__source *s, const line_at *l, uint32_t offset) {
  uint32_t column = 1, cp;
  if (offset > s->size) offset = s->size;
  for (uint32_t i = l->begin; i < offset;) {
    i += decode(s->text + i, s->size - i, &cp);
    if (i <= offset) column++;
  }
  return column;
}

static void make_lines(ccn__arena *a, ccn__source *s) {
  uint32_t n = 1, i = 0;
  for (const char *p = s->text, *end = p + s->size; s->size && (p = memchr(p, '\n', (size_t)(end - p))); p++)
    n++;
  uint32_t *line = CCN__NEWN(a, uint32_t, n);
  for (uint32_t k = 0; k < s->size; k++)
    if (s->text[k] == '\n') line[++i] = k + 1;
  s->line = line;
  s->nlines = n;
}

/* `a` must live as long as the source, since the table of lines goes there; NULL: no table is made. */
void ccn__source_locate(ccn__arena *a, ccn__source *s, uint32_t offset, uint32_t *line, uint32_t *column) {
  if (a && !s->line) make_lines(a, s);
  line_at l = find_line(s, offset);
  *line = l.number;
  *column = column_of(s, &l, offset);
}

/* ---- rendering for people ------------------------------------------------------------------------------ */

#define BOLD "1"
#define RED "1;31"
#define YELLOW "1;33"
#define GREEN "1;32"
#define BLUE "1;34"
#define CYAN "1;36"

typedef struct painter {
  ccn__diags *ds;
  ccn__text *out;
  bool colour;
  int gutter;  /* digits of the largest line number shown */
  bool window; /* what was shown last is a window: the next thing stands off from it */
} painter;

static void set_style(painter *p, const char *style) {
  if (p->colour) ccn__text_printf(p->out, "\x1b[%sm", style);
}

static void styled(painter *p, const char *style, const char *text) {
  set_style(p, style);
  ccn__text_puts(p->out, text);
  set_style(p, "0");
}

static void spaces(painter *p, size_t n) {
  while (n--) ccn__text_putc(p->out, ' ');
}

/* Text with everything odd escaped. Newlines are kept if `newlines`, and what follows is put under
 * `indent`. */
static void show_escaped(painter *p, const char *s, bool newlines, size_t indent) {
  uint32_t cp;
  for (size_t n = strlen(s), i = 0; i < n;) {
    uint32_t len = decode(s + i, n - i, &cp);
    if (cp == '\n' && newlines) {
      ccn__text_putc(p->out, '\n');
      spaces(p, indent);
    } else {
      show_char(p->out, s + i, len, cp);
    }
    i += len;
  }
}

static void show_text(painter *p, const char *s, size_t indent) { show_escaped(p, s, true, indent); }

static void show_word(painter *p, const char *s) { show_escaped(p, s, false, 0); }

static const ccn__source *source_of(const ccn__diags *ds, ccn__span span) {
  return span.source && span.source < ds->nsources ? ds->sources[span.source] : NULL;
}

/* The span with its ends inside the text, and without the newlines it may end with. */
static ccn__span trim_span(const ccn__source *s, ccn__span span) {
  if (span.start > s->size) span.start = s->size;
  if (span.end > s->size) span.end = s->size;
  if (span.end < span.start) span.end = span.start;
  while (span.end > span.start && (s->text[span.end - 1] == '\n' || s->text[span.end - 1] == '\r'))
    span.end--;
  return span;
}

/* The row's left margin: "12 |", or "   |" for number 0. */
static void show_gutter(painter *p, uint32_t number) {
  set_style(p, BLUE);
  if (number) ccn__text_printf(p->out, "%*u |", p->gutter, (unsigned)number);
  else ccn__text_printf(p->out, "%*s |", p->gutter, "");
  set_style(p, "0");
}

/* The part [*from, *to) of a line that is shown: all of it if it fits, else what surrounds `start`. */
static void clip_line(const ccn__source *s, const line_at *l, uint32_t start, uint32_t *from, uint32_t *to) {
  uint32_t cp, width = 0, i = l->begin;
  while (i < l->end && width <= ROW_MAX) {
    uint32_t len = decode(s->text + i, l->end - i, &cp);
    width += show_char(NULL, s->text + i, len, cp);
    i += len;
  }
  *from = l->begin;
  *to = l->end;
  if (width <= ROW_MAX) return;
  uint32_t f = start < l->end ? start : l->end;
  for (width = 0; f > l->begin && width < ROW_BEFORE;) {
    for (f--; f > l->begin && ((unsigned char)s->text[f] & 0xc0) == 0x80;) f--;
    uint32_t len = decode(s->text + f, l->end - f, &cp);
    width += show_char(NULL, s->text + f, len, cp);
  }
  *from = f;
  for (width = 0; f < l->end;) {
    uint32_t len = decode(s->text + f, l->end - f, &cp);
    width += show_char(NULL, s->text + f, len, cp);
    if (width > ROW_MAX) break;
    f += len;
  }
  *to = f;
}

/* A source line with its number, clipped around `start`; *out_first and *out_last are the cells, counted
 * from where the text begins, at which the bytes [start, end) are. */
static void show_source(painter *p, const ccn__source *s, const line_at *l, uint32_t start, uint32_t end,
                        uint32_t *out_first, uint32_t *out_last) {
  uint32_t from, to, cp, col = 0, first = UINT32_MAX, last = UINT32_MAX;
  clip_line(s, l, start, &from, &to);
  show_gutter(p, l->number);
  if (to > from) ccn__text_putc(p->out, ' ');
  if (from > l->begin) ccn__text_puts(p->out, "..."), col = 3;
  for (uint32_t i = from, len; i < to; i += len) {
    len = decode(s->text + i, l->end - i, &cp);
    if (first == UINT32_MAX && i + len > start) first = col;
    if (last == UINT32_MAX && i >= end) last = col;
    col += show_char(p->out, s->text + i, len, cp);
  }
  if (to < l->end) ccn__text_puts(p->out, "...");
  ccn__text_putc(p->out, '\n');
  *out_first = first == UINT32_MAX ? col : first;
  *out_last = last != UINT32_MAX ? last : end > to && to < l->end ? col + 3 : col;
}

/* A source line, and under it the bytes [start, end) marked, at least one cell, with the label behind. */
static void show_row(painter *p, const ccn__source *s, const line_at *l, uint32_t start, uint32_t end,
                     char mark, const char *style, const char *label) {
  uint32_t first, last;
  show_source(p, s, l, start, end, &first, &last);
  show_gutter(p, 0);
  spaces(p, 1 + first);
  set_style(p, style);
  do ccn__text_putc(p->out, mark);
  while (++first < last);
  if (*label) {
    ccn__text_putc(p->out, ' ');
    show_word(p, label);
  }
  set_style(p, "0");
  ccn__text_putc(p->out, '\n');
}

static uint32_t first_nonblank(const ccn__source *s, const line_at *l) {
  uint32_t i = l->begin;
  while (i < l->end && (s->text[i] == ' ' || s->text[i] == '\t')) i++;
  return i;
}

/* "--> file:line:column" and the window under it. */
static void show_window(painter *p, const ccn__source *s, ccn__span span, char mark, const char *style,
                        const char *label) {
  span = trim_span(s, span);
  line_at l = find_line(s, span.start), m = find_line(s, span.end);
  p->window = true;
  spaces(p, (size_t)p->gutter);
  styled(p, BLUE, "--> ");
  show_word(p, s->name ? s->name : "?");
  ccn__text_printf(p->out, ":%u:%u\n", (unsigned)l.number, (unsigned)column_of(s, &l, span.start));
  show_gutter(p, 0);
  ccn__text_putc(p->out, '\n');
  if (m.number == l.number || m.number - l.number > NEAR_LINES) {
    show_row(p, s, &l, span.start, span.end < l.end ? span.end : l.end, mark, style, label);
    return;
  }
  show_row(p, s, &l, span.start, l.end, mark, style, "");
  if (m.number - l.number == 2) {
    line_at between = find_line(s, l.end + (s->text[l.end] == '\r' ? 2 : 1));
    uint32_t unused;
    show_source(p, s, &between, between.begin, between.begin, &unused, &unused);
  } else if (m.number - l.number > 2) {
    styled(p, BLUE, "...");
    ccn__text_putc(p->out, '\n');
  }
  show_row(p, s, &m, first_nonblank(s, &m), span.end, mark, style, label);
}

static void widen_gutter(painter *p, ccn__span span) {
  const ccn__source *s = source_of(p->ds, span);
  if (!s) return;
  span = trim_span(s, span);
  line_at l = find_line(s, span.start), m = find_line(s, span.end);
  uint32_t n = m.number - l.number > NEAR_LINES ? l.number : m.number;
  int digits = 1;
  for (; n >= 10; n /= 10) digits++;
  if (digits > p->gutter) p->gutter = digits;
}

static void stand_off(painter *p) {
  if (!p->window) return;
  show_gutter(p, 0);
  ccn__text_putc(p->out, '\n');
  p->window = false;
}

/* "   = help: text" */
static void show_footer(painter *p, const char *word, const char *style, const char *text) {
  stand_off(p);
  spaces(p, (size_t)p->gutter + 1);
  styled(p, BLUE, "= ");
  styled(p, style, word);
  ccn__text_puts(p->out, ": ");
  show_text(p, text, (size_t)p->gutter + 5 + strlen(word));
  ccn__text_putc(p->out, '\n');
}

static void show_note(painter *p, const ccn__label *note) {
  const ccn__source *s = source_of(p->ds, note->span);
  if (!s) {
    show_footer(p, "note", GREEN, note->text);
    return;
  }
  stand_off(p);
  styled(p, GREEN, "note");
  ccn__text_puts(p->out, ": ");
  show_text(p, note->text, 6);
  ccn__text_putc(p->out, '\n');
  show_window(p, s, note->span, '-', BLUE, "");
}

static const char *hint_of(const ccn__diag *d) {
  const ccn__error_info *info = d->hint ? NULL : ccn__error_find(d->code);
  return d->hint ? d->hint : info && info->hint ? info->hint : "";
}

static bool ends_with_newline(const ccn__text *t) { return t->n && t->at[t->n - 1] == '\n'; }

/* Ends with a newline. Behind other text in `out` comes an empty line first, so that several stand apart. */
void ccn__diag_render(ccn__diags *ds, const ccn__diag *d, bool colour, ccn__text *out) {
  painter p = {.ds = ds, .out = out, .colour = colour, .gutter = 1};
  bool error = d->severity == CCN_SEVERITY_ERROR;
  const char *style = error ? RED : YELLOW, *hint = hint_of(d);
  widen_gutter(&p, d->primary.span);
  for (uint32_t i = 0; i < d->nnotes; i++) widen_gutter(&p, d->notes[i].span);
  if (ends_with_newline(out)) ccn__text_putc(out, '\n');
  set_style(&p, style);
  ccn__text_printf(out, "%s[CCN%04u]", error ? "error" : "warning", (unsigned)d->code);
  set_style(&p, "0");
  set_style(&p, BOLD);
  ccn__text_puts(out, ": ");
  show_text(&p, d->message, error ? 16 : 18);
  set_style(&p, "0");
  ccn__text_putc(out, '\n');
  const ccn__source *s = source_of(ds, d->primary.span);
  if (s) show_window(&p, s, d->primary.span, '^', style, d->primary.text);
  else if (*d->primary.text) show_footer(&p, "note", GREEN, d->primary.text);
  for (uint32_t i = 0; i < d->nnotes; i++) show_note(&p, &d->notes[i]);
  if (*hint) show_footer(&p, "help", CYAN, hint);
}

/* ---- rendering for machines ---------------------------------------------------------------------------- */

/* Valid JSON for any bytes: what is no UTF-8 becomes U+FFFD, what is odd an escape. */
void ccn__json_string(ccn__text *out, const char *s, size_t n) {
  uint32_t cp;
  ccn__text_putc(out, '"');
  for (size_t i = 0; i < n;) {
    uint32_t len = decode(s + i, n - i, &cp);
    if (cp == '"' || cp == '\\') ccn__text_printf(out, "\\%c", (char)cp);
    else if (cp == '\n') ccn__text_puts(out, "\\n");
    else if (cp == '\t') ccn__text_puts(out, "\\t");
    else if (cp == '\r') ccn__text_puts(out, "\\r");
    else if (cp == INVALID) ccn__text_puts(out, "\\ufffd");
    else if (is_odd(cp)) ccn__text_printf(out, "\\u%04x", (unsigned)cp);
    else ccn__text_add(out, s + i, len);
    i += len;
  }
  ccn__text_putc(out, '"');
}

static void json_field(ccn__text *out, const char *key, const char *value) {
  ccn__text_printf(out, "\"%s\":", key);
  ccn__json_string(out, value, strlen(value));
}

static void json_place(const ccn__diags *ds, ccn__span span, ccn__text *out) {
  const ccn__source *s = source_of(ds, span);
  if (!s) {
    ccn__text_puts(out, "\"file\":null,\"line\":null,\"column\":null,\"end_line\":null,\"end_column\":null");
    return;
  }
  line_at l = find_line(s, span.start), m = find_line(s, span.end);
  json_field(out, "file", s->name ? s->name : "?");
  ccn__text_printf(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u", (unsigned)l.number,
                   (unsigned)column_of(s, &l, span.start), (unsigned)m.number,
                   (unsigned)column_of(s, &m, span.end));
}

/* One object without newlines; none at its end either. A note's keys are those of ccn_note. */
void ccn__diag_render_json(ccn__diags *ds, const ccn__diag *d, ccn__text *out) {
  ccn__text_printf(out, "{\"severity\":\"%s\",\"code\":\"CCN%04u\",",
                   d->severity == CCN_SEVERITY_ERROR ? "error" : "warning", (unsigned)d->code);
  json_field(out, "message", d->message);
  ccn__text_putc(out, ',');
  json_place(ds, d->primary.span, out);
  ccn__text_putc(out, ',');
  json_field(out, "label", d->primary.text);
  ccn__text_puts(out, ",\"notes\":[");
  for (uint32_t i = 0; i < d->nnotes; i++) {
    ccn__text_puts(out, i ? ",{" : "{");
    json_field(out, "text", d->notes[i].text);
    ccn__text_putc(out, ',');
    json_place(ds, d->notes[i].span, out);
    ccn__text_putc(out, '}');
  }
  ccn__text_puts(out, "],");
  json_field(out, "hint", hint_of(d));
  ccn__text_putc(out, '}');
}
