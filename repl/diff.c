/* diff.c: graph text → lines with names instead of numbers → the shortest edit script (Myers 1986) → a
 * unified diff.
 *
 * Numbers of nodes change with every statement and would drown what changed. A node is called what the
 * program calls it, else by its automatic name; a constant stands where it is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 2 };

typedef struct text { /* NUL-terminated lines, one behind the other */
  char *at;
  size_t n, cap;
  size_t *line; /* where each begins */
  size_t nlines, line_cap;
  bool failed;
} text;

static void *grow(void *at, size_t *cap, size_t need, size_t item) {
  size_t more = *cap ? *cap : 64;
  while (more < need) more *= 2;
  void *p = realloc(at, more * item);
  if (p) *cap = more;
  return p;
}

static void add(text *t, const char *s, size_t n) {
  if (t->n + n > t->cap) {
    char *more = grow(t->at, &t->cap, t->n + n, 1);
    if (!more) {
      t->failed = true;
      return;
    }
    t->at = more;
  }
  memcpy(t->at + t->n, s, n);
  t->n += n;
}

static void begin_line(text *t) {
  if (t->nlines == t->line_cap) {
    size_t *more = grow(t->line, &t->line_cap, t->nlines + 1, sizeof *more);
    if (!more) {
      t->failed = true;
      return;
    }
    t->line = more;
  }
  t->line[t->nlines++] = t->n;
}

static void text_free(text *t) {
  free(t->at);
  free(t->line);
}

/* ---- names for numbers ---- */

typedef struct span {
  const char *at;
  size_t n;
} span;

typedef struct labels {
  span *at; /* by number */
  size_t cap;
} labels;

static span until(const char *s, const char *end, char stop) {
  const char *p = s;
  while (p < end && *p != stop) p++;
  return (span){s, (size_t)(p - s)};
}

/* The number behind `%`, or -1. */
static long number_at(const char *s, const char *end) {
  char digits[12];
  size_t n = 0;
  while (s + n < end && n < sizeof digits - 1 && s[n] >= '0' && s[n] <= '9') digits[n] = s[n], n++;
  digits[n] = 0;
  return n ? strtol(digits, NULL, 10) : -1;
}

static bool set_label(labels *l, long number, span name) {
  if (number < 0) return true;
  const size_t before = l->cap;
  if ((size_t)number >= l->cap) {
    span *more = grow(l->at, &l->cap, (size_t)number + 1, sizeof *more);
    if (!more) return false;
    l->at = more;
    memset(l->at + before, 0, (l->cap - before) * sizeof *l->at);
  }
  l->at[number] = name;
  return true;
}

/* What a constant's line says of its value: the decimals in the comment, or what stands in braces. */
static span value_of(span rest) {
  const char *end = rest.at + rest.n;
  for (const char *p = rest.at; p + 3 < end; p++)
    if (strncmp(p, "  # ", 4) == 0) return (span){p + 4, (size_t)(end - p - 4)};
  for (const char *p = rest.at; p + 7 < end; p++)
    if (strncmp(p, "value: ", 7) == 0) return until(p + 7, end, '}');
  return rest;
}

/* A node's line `  %7 "avg" (div) = div %6, %5 {fuse: 1} : f32[N]`: its number, its label, and what stands
 * behind `= `. */
static bool node_line(const char *s, const char *end, long *number, span *label, span *rest) {
  const char *p = s;
  span name = {NULL, 0}, automatic = {NULL, 0};
  while (p < end && *p == ' ') p++;
  if (p == end || *p != '%') return false;
  *number = number_at(p + 1, end);
  *label = until(p, end, ' ');
  for (p += label->n; p < end && *p != '='; p++) {
    if (*p == '"') name = until(p + 1, end, '"'), p += name.n + 1;
    else if (*p == '(') automatic = until(p + 1, end, ')'), p += automatic.n + 1;
  }
  if (p + 2 > end || *number < 0) return false;
  if (automatic.n) *label = automatic;
  if (name.n) *label = name;
  *rest = (span){p + 2, (size_t)(end - p - 2)};
  return true;
}

/* A line with its %numbers replaced, without its comment. */
static void add_named(text *t, const labels *l, span s) {
  bool quoted = false;
  for (size_t i = 0; i < s.n && !(!quoted && s.at[i] == '#');) {
    if (s.at[i] == '"') quoted = !quoted;
    long k = s.at[i] == '%' && !quoted ? number_at(s.at + i + 1, s.at + s.n) : -1;
    if (k < 0 || (size_t)k >= l->cap || !l->at[k].at) {
      add(t, s.at + i++, 1);
      continue;
    }
    add(t, l->at[k].at, l->at[k].n);
    for (i++; i < s.n && s.at[i] >= '0' && s.at[i] <= '9'; i++) {}
  }
  while (t->n && t->at[t->n - 1] == ' ') t->n--;
  add(t, "", 1);
}

/* Constants have no line of their own. */
static bool named_text(text *t, const char *s, size_t size) {
  const char *end = s + size;
  labels l = {NULL, 0};
  bool fine = true;
  while (s < end && fine) {
    const span line = until(s, end, '\n');
    long number = -1;
    span label = {NULL, 0}, rest = {NULL, 0};
    s += line.n + 1;
    if (!node_line(line.at, line.at + line.n, &number, &label, &rest)) {
      begin_line(t);
      if (!t->failed) add_named(t, &l, line);
    } else if (rest.n > 6 && strncmp(rest.at, "const ", 6) == 0) {
      fine = set_label(&l, number, value_of(rest));
    } else {
      fine = set_label(&l, number, label);
      begin_line(t);
      size_t indent = 0;
      while (line.at[indent] == ' ') indent++;
      add(t, line.at, indent);
      add(t, label.at, label.n);
      add(t, " = ", 3);
      if (!t->failed) add_named(t, &l, rest);
    }
    fine = fine && !t->failed;
  }
  free(l.at);
  return fine;
}

/* ---- the edit script ---- */

typedef struct edits {
  const text *a, *b;
  bool *gone, *new; /* lines of a, of b */
} edits;

static const char *line(const text *t, size_t i) { return t->at + t->line[i]; }

static bool same(const edits *e, size_t i, size_t j) { return strcmp(line(e->a, i), line(e->b, j)) == 0; }

/* Goes back from the end through the furthest points of d edits, d - 1, ...: `row` k holds diagonals -k-1
 * .. k+1. */
static void mark_edits(edits *e, long *const *row, long d) {
  long x = (long)e->a->nlines, y = (long)e->b->nlines;
  for (; d > 0; d--) {
    const long k = x - y, *at = row[d - 1] + d; /* diagonal 0 */
    const bool down = k == -d || (k != d && at[k - 1] < at[k + 1]);
    const long from = down ? k + 1 : k - 1;
    x = at[from];
    y = x - from;
    if (down) e->new[y] = true;
    else e->gone[x] = true;
  }
}

/* The furthest points that d edits reach, for d = 0, 1, ... until one is the end of both. */
static bool shortest(edits *e) {
  const long n = (long)e->a->nlines, m = (long)e->b->nlines, most = n + m;
  long **row = calloc((size_t)most + 1, sizeof *row), *all = calloc((size_t)(2 * most + 3), sizeof *all);
  long *at = all + most + 1, d = -1; /* at[k]: on diagonal k */
  bool found = false, fine = row && all;
  while (fine && !found) {
    d++;
    for (long k = -d; k <= d && !found; k += 2) {
      long x = k == -d || (k != d && at[k - 1] < at[k + 1]) ? at[k + 1] : at[k - 1] + 1;
      while (x < n && x - k < m && same(e, (size_t)x, (size_t)(x - k))) x++;
      at[k] = x;
      found = x >= n && x - k >= m;
    }
    row[d] = malloc((size_t)(2 * d + 3) * sizeof **row);
    fine = row[d] != NULL;
    if (fine) memcpy(row[d], at - d - 1, (size_t)(2 * d + 3) * sizeof **row);
  }
  if (fine) mark_edits(e, row, d);
  for (long k = 0; row && k <= d; k++) free(row[k]);
  free((void *)row);
  free(all);
  return fine;
}

/* ---- showing ---- */

static void show(const char *mark, const char *line, const char *colour) {
  printf("%s%s%s%s\n", colour ? colour : "", mark, line, colour ? "\x1b[0m" : "");
}

/* Whether a change lies within CONTEXT lines of the pair (i, j) of lines that both texts have. */
static bool near_change(const edits *e, size_t i, size_t j) {
  for (size_t k = 0; k <= CONTEXT; k++) {
    if (i + k < e->a->nlines && e->gone[i + k]) return true;
    if (j + k < e->b->nlines && e->new[j + k]) return true;
    if (k > 0 && i >= k && e->gone[i - k]) return true;
    if (k > 0 && j >= k && e->new[j - k]) return true;
  }
  return false;
}

static void show_all(const edits *e, bool colour) {
  bool skipped = false;
  for (size_t i = 0, j = 0; i < e->a->nlines || j < e->b->nlines;) {
    if (i < e->a->nlines && e->gone[i]) {
      show("-", line(e->a, i++), colour ? "\x1b[31m" : NULL);
    } else if (j < e->b->nlines && e->new[j]) {
      show("+", line(e->b, j++), colour ? "\x1b[32m" : NULL);
    } else {
      const bool wanted = near_change(e, i, j);
      if (wanted && skipped) puts("@@");
      if (wanted) show(" ", line(e->a, i), NULL);
      skipped = !wanted;
      i++, j++;
    }
  }
}

bool diff_graphs(const char *a_name, const char *a, size_t a_size, const char *b_name, const char *b,
                 size_t b_size, bool colour) {
  text ta = {0}, tb = {0};
  edits e = {&ta, &tb, NULL, NULL};
  bool fine = named_text(&ta, a, a_size) && named_text(&tb, b, b_size);
  if (fine) {
    e.gone = calloc(ta.nlines + 1, 1);
    e.new = calloc(tb.nlines + 1, 1);
    fine = e.gone && e.new &&shortest(&e);
  }
  bool changed = false;
  for (size_t i = 0; fine && i < ta.nlines; i++) changed |= e.gone[i];
  for (size_t j = 0; fine && j < tb.nlines; j++) changed |= e.new[j];
  if (changed) {
    printf("--- %s\n+++ %s\n", a_name, b_name);
    show_all(&e, colour);
  }
  free(e.gone);
  free(e.new);
  text_free(&ta);
  text_free(&tb);
  return fine;
}
