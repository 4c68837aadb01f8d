/* doc.c: `:doc WORD`: what the tables know of an op, a function, a dtype, a keyword, and an example to copy.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "shell.h"
#include "terminal.h"

static const struct {
  const char *name, *placements, *text;
} examples[] = {
#define EXAMPLE(name, placements, text) {name, placements, text},
#include "examples.def"
#undef EXAMPLE
};

static const char *example_of(const char *name, const char **out_placements) {
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
    if (strcmp(examples[i].name, name) != 0) continue;
    *out_placements = examples[i].placements;
    return examples[i].text;
  }
  *out_placements = "";
  return NULL;
}

static void line(const char *left, const char *right) { printf("  %-11s %s\n", left, right); }

static const char *with_marks(const char *dims, const char *marks) { return dims + strcspn(dims, marks); }

/* What the marks of a signature say, mark by mark. */
static void explain_dims(const char *dims) {
  static const char *const marks[][2] = {
    {"+", "+ is summed over; if it is cut, the result owes a sum"},
    {"^", "^ dims that the call names are reduced; of a cut one it is owed"},
    {"*", "* dims broadcast; where one does it may not be cut"},
    {"!", "! may not be cut"},
    {"#", "# the dim that the call names may not be cut, but taken whole"},
    {"~", "~ the dims change places, and their cuts with them"},
  };
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
    if (*with_marks(dims, marks[i][0])) line("", marks[i][1]);
}

static void show_op(const ccn_word *w, const char *placements) {
  line("dtypes", w->dtypes);
  if (*placements) line("placements", placements);
  if (strcmp(w->dims, "=") == 0) return;
  line("dims", w->dims);
  explain_dims(w->dims);
  if (*w->owed) line("passes on", w->owed);
}

static void show_word(const ccn_word *w) {
  const char *placements, *example = example_of(w->name, &placements);
  bool colour = terminal_print_has_colour();
  if (colour) fputs("\x1b[1m", stdout);
  fputs(w->name, stdout);
  if (*w->params) printf("(%s)", w->params);
  if (colour) fputs("\x1b[0m", stdout);
  printf("   %s%s%s%s\n", w->kind, *w->group ? ", " : "", w->group,
         w->programs_only ? ", in programs only" : "");
  printf("  %s\n", w->doc);
  if (strcmp(w->kind, "op") == 0) show_op(w, placements);
  if (example && strcmp(w->kind, "schedule") != 0) line("example", example);
}

bool doc_show(const char *word) {
  ccn_word w = {.size = sizeof w};
  bool found = false;
  for (size_t i = 0; ccn_word_get(i, &w) == CCN_OK; i++) {
    if (strcmp(w.name, word) != 0) continue;
    if (found) putchar('\n');
    show_word(&w);
    found = true;
  }
  return found;
}
