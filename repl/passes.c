/* passes.c: dump, of what the statements of schedules do: --stage split, --stage 2, --dump-after,
 * --time-passes, --diff.
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "diff.h"
#include "terminal.h"

typedef struct state { /* what ccn_passes told, kept */
  char *program, *name, *file, *graph;
  size_t graph_size;
  double seconds;
  uint32_t number, step, line, nodes;
  bool exact;
} state;

typedef struct states {
  state *at;
  size_t n, cap;
  bool failed; /* memory ended */
} states;

static char *copy(const char *s, size_t n) {
  char *p = malloc(n + 1);
  if (!p) return NULL;
  memcpy(p, s, n);
  p[n] = 0;
  return p;
}

static void keep(const ccn_pass *pass, void *user) {
  states *all = user;
  if (all->n == all->cap) {
    const size_t cap = all->cap ? 2 * all->cap : 16;
    state *more = realloc(all->at, cap * sizeof *more);
    all->failed |= !more;
    if (!more) return;
    all->at = more;
    all->cap = cap;
  }
  const char *file = pass->file ? pass->file : "";
  state s = {.program = copy(pass->program, strlen(pass->program)),
             .name = copy(pass->name, strlen(pass->name)),
             .file = copy(file, strlen(file)),
             .graph = copy(pass->graph, pass->graph_size),
             .graph_size = pass->graph_size,
             .seconds = pass->seconds,
             .number = pass->number,
             .step = pass->step,
             .line = pass->line,
             .nodes = pass->nodes,
             .exact = pass->exact != 0};
  all->at[all->n++] = s;
  all->failed |= !s.program || !s.name || !s.file || !s.graph;
}

static void states_free(states *all) {
  for (size_t i = 0; i < all->n; i++) {
    free(all->at[i].program);
    free(all->at[i].name);
    free(all->at[i].file);
    free(all->at[i].graph);
  }
  free(all->at);
}

/* ---- which ---- */

static bool is_number(const char *word) { return *word && strspn(word, "0123456789") == strlen(word); }

bool passes_is_stage(const char *word) {
  const char *name;
  if (is_number(word)) return true;
  for (size_t i = 0; (name = ccn_pass_list(i, NULL)); i++)
    if (strcmp(name, word) == 0) return true;
  return false;
}

static bool is_stage(const state *s, const char *word, size_t n, bool last) {
  char number[16];
  if (n == 5 && strncmp(word, "graph", 5) == 0) return s->step == 0;
  if (n == 9 && strncmp(word, "scheduled", 9) == 0) return last;
  snprintf(number, sizeof number, "%u", s->step);
  return (strlen(number) == n && strncmp(number, word, n) == 0) ||
         (strlen(s->name) == n && strncmp(s->name, word, n) == 0);
}

/* The last state of program `number` that the word means; NULL if there is none. */
static const state *find(const states *all, uint32_t number, const char *word, size_t n) {
  const state *found = NULL;
  for (size_t i = 0; i < all->n; i++) {
    const state *s = &all->at[i];
    const bool last = i + 1 == all->n || all->at[i + 1].number != s->number;
    if (s->number == number && is_stage(s, word, n, last)) found = s;
  }
  return found;
}

static uint32_t programs(const states *all) { return all->n ? all->at[all->n - 1].number + 1 : 0; }

/* ---- showing ---- */

static void title(char *out, size_t size, const state *s) {
  snprintf(out, size, "%s, step %u%s%s, %s:%u", s->program, s->step, *s->name ? ": " : "", s->name, s->file,
           s->line);
}

static void show(const state *s) {
  char head[512];
  title(head, sizeof head, s);
  printf("# %s%s\n", head, s->exact ? "" : ", may reassociate sums");
  terminal_print(s->graph, s->graph_size, NULL);
}

static bool show_stage(const states *all, const char *word) {
  bool some = false;
  for (uint32_t p = 0; p < programs(all); p++) {
    const state *s = find(all, p, word, strlen(word));
    if (s) show(s);
    some |= s != NULL;
  }
  return some;
}

static void show_after(const states *all, const words *after) {
  for (size_t i = 0; i < all->n; i++)
    for (size_t k = 0; k < after->n; k++)
      if (all->at[i].step &&
          (strcmp(after->at[k], "all") == 0 || strcmp(after->at[k], all->at[i].name) == 0)) {
        show(&all->at[i]);
        break;
      }
}

static void show_times(const states *all, bool json) {
  if (!json) fprintf(stderr, "%10s %7s  %s\n", "ms", "nodes", "statement");
  for (size_t i = 0; i < all->n; i++) {
    const state *s = &all->at[i];
    char head[512];
    if (!s->step) continue;
    title(head, sizeof head, s);
    if (!json) {
      fprintf(stderr, "%10.3f %7u  %s\n", s->seconds * 1e3, s->nodes, head);
      continue;
    }
    fprintf(stderr, "{\"pass\": \"%s\", \"program\": ", s->name);
    terminal_error_json_string(s->program, strlen(s->program));
    fprintf(stderr, ", \"step\": %u, \"ms\": %.6f, \"nodes\": %u, \"line\": %u, \"file\": ", s->step,
            s->seconds * 1e3, s->nodes, s->line);
    terminal_error_json_string(s->file, strlen(s->file));
    fputs("}\n", stderr);
  }
}

/* "A..B"; a side left out is the program as written, or as scheduled. */
static bool show_diff(const states *all, const char *range, bool *out_memory) {
  const char *dots = strstr(range, ".."), *to = dots + 2;
  bool some = false;
  for (uint32_t p = 0; p < programs(all); p++) {
    const state *a = dots == range ? find(all, p, "graph", 5) : find(all, p, range, (size_t)(dots - range));
    const state *b = *to ? find(all, p, to, strlen(to)) : find(all, p, "scheduled", 9);
    char from[512], until[512];
    if (!a || !b) continue;
    some = true;
    title(from, sizeof from, a);
    title(until, sizeof until, b);
    *out_memory &=
      diff_graphs(from, a->graph, a->graph_size, until, b->graph, b->graph_size, terminal_print_has_colour());
  }
  return some;
}

/* ---- the command ---- */

static states kept; /* of the one command that this process runs */

static ccn_status collect(const arguments *a, ccn_context *c, const char *name, const char *text,
                          size_t size) {
  ccn_status status = ccn_passes(c, name, text, size, keep, &kept);
  bool some = true, memory = true;
  (void)a;
  show_after(&kept, &a->after);
  if (a->times) show_times(&kept, a->json);
  if (status == CCN_OK && a->diff) some = show_diff(&kept, a->diff, &memory);
  else if (status == CCN_OK && a->stage) some = show_stage(&kept, a->stage);
  if (kept.failed || !memory) return CCN_OUT_OF_MEMORY;
  if (!some) {
    const char *what = a->diff ? a->diff : a->stage;
    char message[128];
    snprintf(message, sizeof message, "no program of the script has a stage '%.64s'", what);
    say_error(a, "CCN0501", message, "`--time-passes` lists what the schedules of a script do");
    return CCN_INVALID_ARGUMENT;
  }
  return status;
}

static int bad_stage(const arguments *a, const char *word) {
  char message[160];
  snprintf(message, sizeof message, "unknown statement '%.64s'", word);
  say_error(a, "CCN0501", message,
            "the statements of schedules are split, reorder, fuse, overlap, shard, dead, ...");
  return EXIT_USAGE;
}

int passes_dump(const arguments *a) {
  for (size_t k = 0; k < a->after.n; k++)
    if (strcmp(a->after.at[k], "all") != 0 &&
        (!passes_is_stage(a->after.at[k]) || isdigit((unsigned char)*a->after.at[k])))
      return bad_stage(a, a->after.at[k]);
  if (a->diff && !strstr(a->diff, "..")) {
    say_error(a, "CCN0501", "--diff takes two stages",
              "as in --diff split..reorder, or --diff 1..2, or --diff ..");
    return EXIT_USAGE;
  }
  int status = with_file(a, a->plain.at[0], collect);
  states_free(&kept);
  return status;
}
