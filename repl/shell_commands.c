/* shell_commands.c: the `:commands` of the shell, one row each; :help and completion read the same table.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "options.h"
#include "settings.h"
#include "shell.h"
#include "terminal.h"

typedef struct shell_row {
  const char *name, *args; /* ":doc", "WORD" */
  const char *summary;
  char argument; /* see shell_command_argument */
  void (*run)(shell *s, const char *arg);
} shell_row;

enum { NROWS = 13 };
static const shell_row rows[NROWS + 1];

/* ---- help ---------------------------------------------------------------------------------------------- */

static void help_row(const shell_row *r) {
  string left = {0};
  text_printf(&left, "%s %s", r->name, r->args);
  printf("  %-17s %s\n", text_of(&left), r->summary);
  text_free(&left);
}

static const shell_row *find_row(const char *name);

static void run_help(shell *s, const char *arg) {
  (void)s;
  if (*arg) {
    string name = {0};
    text_printf(&name, "%s%s", *arg == ':' ? "" : ":", arg);
    const shell_row *r = find_row(text_of(&name));
    if (r) help_row(r);
    else if (!doc_show(arg)) shell_say("nothing is known of `%s`; :help lists the commands", arg);
    text_free(&name);
    return;
  }
  puts("Type statements or expressions; an entry goes on until its brackets are closed.\n"
       "  let x = randn(f32[4], seed: 1)     a variable\n"
       "  x * 2 + 1                          a value is shown\n"
       "  mesh (dp)                          names the axis on which the ranks lie\n"
       "  program f(g: f32[N] local) { return allreduce(sum, g) }\n\n"
       "Tab completes names, commands, files in strings. Ctrl-C stops what runs, or\n"
       "clears the line. Ctrl-D leaves.\n\n"
       "commands, of which a beginning will do:");
  for (const shell_row *r = rows; r->name; r++) help_row(r);
}

static void run_doc(shell *s, const char *arg) {
  ccn_word w = {.size = sizeof w};
  const char *names[256];
  size_t n = 0;
  if (doc_show(arg)) return;
  if (ccn_session_type(s->c, "<doc>", arg, strlen(arg), terminal_print, NULL) == CCN_OK) {
    putchar('\n');
    return;
  }
  for (size_t i = 0; ccn_word_get(i, &w) == CCN_OK && n < 255; i++) names[n++] = w.name;
  names[n] = NULL;
  const char *near = suggest(arg, names);
  if (near) shell_say("nothing is known of `%s`; did you mean `%s`?", arg, near);
  else shell_say("nothing is known of `%s`; Tab behind `:doc ` lists what is", arg);
  s->failed = true;
}

/* ---- looking ------------------------------------------------------------------------------------------- */

static void run_type(shell *s, const char *arg) {
  string t = {0};
  shell_interruptible(s->c);
  ccn_status status = ccn_session_type(s->c, "<type>", arg, strlen(arg), text_write, &t);
  shell_interruptible(NULL);
  if (status == CCN_OK) puts(text_of(&t));
  shell_report(s, status);
  text_free(&t);
}

static void run_graph(shell *s, const char *arg) {
  shell_interruptible(s->c);
  ccn_status status = ccn_session_graph(s->c, arg, terminal_print, NULL);
  shell_interruptible(NULL);
  shell_report(s, status);
}

static void put_name(const char *name, ccn_kind kind, void *user) {
  (void)kind;
  if (strcmp(name, "args") == 0) return;
  text_put(user, name);
  text_put(user, "\n");
}

/* "  p    f32[4]"; of what has no type of its own, a program's values, the name. */
static void show_name(shell *s, const char *of, const char *name) {
  string whole = {0}, type = {0};
  if (*of) text_printf(&whole, "%s.", of);
  text_put(&whole, name);
  if (ccn_session_type(s->c, "<names>", whole.at, whole.n, text_write, &type) != CCN_OK) text_free(&type);
  printf(type.n ? "  %-20s %s\n" : "  %s\n", name, text_of(&type));
  text_free(&whole);
  text_free(&type);
}

static void run_names(shell *s, const char *arg) {
  string names = {0};
  ccn_status status = ccn_session_names(s->c, *arg ? arg : NULL, put_name, &names);
  if (status != CCN_OK) shell_report(s, status);
  else if (!names.n) puts("nothing yet");
  for (char *name = names.at, *end; name && (end = strchr(name, '\n')); name = end + 1) {
    *end = 0;
    show_name(s, arg, name);
  }
  text_free(&names);
}

/* The number behind "key": in a report. */
static double member(const string *report, const char *key) {
  const char *at = strstr(text_of(report), key);
  return at ? strtod(at + strlen(key), NULL) : 0;
}

static void run_time(shell *s, const char *arg) {
  string before = {0}, after = {0}, memory = {0};
  bool timing = s->set.timing;
  ccn_status status = ccn_report_write(s->c, text_write, &before);
  s->set.timing = true;
  if (status == CCN_OK) status = shell_evaluate(s, "<time>", arg, strlen(arg), false);
  s->set.timing = timing;
  if (status == CCN_OK && ccn_report_write(s->c, text_write, &after) == CCN_OK) {
    texts_bytes(&memory, member(&after, "\"memory_live\": "));
    double calls = member(&after, "\"calls\": ") - member(&before, "\"calls\": ");
    shell_say("%.0f call%s of programs, %.0f ops; the session holds %s", calls, calls == 1 ? "" : "s",
              member(&after, "\"ops\": ") - member(&before, "\"ops\": "), text_of(&memory));
  }
  text_free(&before);
  text_free(&after);
  text_free(&memory);
}

/* ---- the session --------------------------------------------------------------------------------------- */

static void run_load(shell *s, const char *arg) {
  void *data = NULL;
  size_t size = 0;
  int error = files_read(arg, &data, &size, NULL);
  if (error) {
    shell_say("cannot read '%s': %s", arg, strerror(error));
    s->failed = true;
    return;
  }
  shell_interruptible(s->c);
  ccn_status status = ccn_eval(s->c, arg, data, size, NULL);
  shell_interruptible(NULL);
  shell_report(s, status);
  files_free(data, size, NULL);
}

static const char header[] = "# a session of ccn ";

/* What :save wrote may be written again; anything else is somebody's work. */
static bool may_replace(const char *path) {
  void *data = NULL;
  size_t size = 0;
  int error = files_read(path, &data, &size, NULL);
  bool own = error == ENOENT || (!error && size >= sizeof header && !memcmp(data, header, sizeof header - 1));
  if (!error) files_free(data, size, NULL);
  return own;
}

static void run_save(shell *s, const char *arg) {
  string t = {0};
  text_printf(&t, "%s%d.%d.%d: ccn run", header, CCN_VERSION_MAJOR, CCN_VERSION_MINOR, CCN_VERSION_PATCH);
  text_put(&t, " ");
  text_put(&t, arg);
  if (s->set.ranks) text_printf(&t, " -n %d", s->set.ranks);
  text_put(&t, "\n");
  ccn_status status = ccn_session_write(s->c, text_write, &t);
  int error = 0;
  if (status != CCN_OK) shell_report(s, status);
  else if (!may_replace(arg)) shell_say("'%s' is there and no saved session: choose another name", arg);
  else if ((error = files_write(arg, t.at, t.n, NULL)))
    shell_say("cannot write '%s': %s", arg, strerror(error));
  else shell_say("saved; `ccn run %s` runs it, `:load %s` goes on with it", arg, arg);
  text_free(&t);
}

/* The session again on other ranks; silently, since it printed and wrote all that before. */
static ccn_status replay(shell *s, ccn_context *next) {
  string script = {0};
  ccn_status status = ccn_session_write(s->c, text_write, &script);
  if (status == CCN_OK && script.n) {
    shell_mute(true);
    shell_interruptible(next);
    status = ccn_eval(next, "<session>", script.at, script.n, NULL);
    shell_interruptible(NULL);
    shell_mute(false);
  }
  text_free(&script);
  return status;
}

static void run_ranks(shell *s, const char *arg) {
  shell_settings set = s->set;
  ccn_context *next = NULL;
  char *end;
  if (!*arg) {
    if (s->set.ranks) printf("%d ranks\n", s->set.ranks);
    else puts("as many ranks as the mesh's fixed axes need, at least 1");
    return;
  }
  long n = strtol(arg, &end, 10);
  if (end == arg || *end || n < 1 || n > 64) {
    shell_say(":ranks takes a number from 1 to 64, not `%s`", arg);
    return;
  }
  set.ranks = (int)n;
  if (!shell_context(&set, &next)) return;
  shell probe = *s;
  probe.c = next;
  ccn_status status = replay(s, next);
  if (status != CCN_OK) {
    shell_report(&probe, status);
    shell_say("the session does not run on %ld rank%s; it goes on as it was", n, n == 1 ? "" : "s");
    ccn_context_free(next);
    return;
  }
  ccn_context_free(s->c);
  s->c = next;
  s->set.ranks = (int)n;
  printf("%ld rank%s; the session was run again on %s\n", n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
}

static void run_reset(shell *s, const char *arg) {
  (void)arg;
  if (ccn_session_reset(s->c) == CCN_OK) puts("a new session: names, tensors and the mesh are gone");
}

static void run_watch(shell *s, const char *arg) { settings_watch(s, arg); }
static void run_set(shell *s, const char *arg) { settings_set(s, arg); }

static void run_quit(shell *s, const char *arg) {
  (void)arg;
  s->leave = true;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const shell_row rows[NROWS + 1] = {
  {":help", "[NAME]", "this text, or what a command or word means", 'w', run_help},
  {":doc", "WORD", "what an op, function, dtype or keyword does; an example", 'w', run_doc},
  {":type", "EXPR", "the type of an expression; nothing is stored", 'e', run_type},
  {":graph", "PROGRAM", "the graph of a program; also step@schedule(handle)", 'p', run_graph},
  {":names", "[NAME]", "what the session defines, or what can follow NAME.", 'e', run_names},
  {":ranks", "[N]", "how many ranks there are; runs the session again on N", 0, run_ranks},
  {":load", "FILE", "runs a script in the session", 'f', run_load},
  {":save", "FILE", "writes the session as a script that runs", 'f', run_save},
  {":watch", "[P.V|off]", "shows value V of program P at each call", 'v', run_watch},
  {":time", "STATEMENT", "runs it; tells time, calls, ops and memory", 'e', run_time},
  {":set", "[NAME VALUE]", "the settings, or changes one", 's', run_set},
  {":reset", "", "begins a new session", 0, run_reset},
  {":quit", "", "leaves, as Ctrl-D does", 0, run_quit},
  {NULL, NULL, NULL, 0, NULL},
};

const char *shell_command_name(size_t i) { return i < sizeof rows / sizeof rows[0] ? rows[i].name : NULL; }

/* By its name or a beginning of it that is no other's; the first in the table where two begin alike. */
static const shell_row *find_row(const char *name) {
  size_t n = strlen(name);
  for (const shell_row *r = rows; r->name && n > 1; r++)
    if (strncmp(r->name, name, n) == 0) return r;
  return NULL;
}

char shell_command_argument(const char *name) {
  const shell_row *r = find_row(name);
  return r ? r->argument : 0;
}

static void unknown_command(const char *name) {
  const char *names[NROWS + 1];
  for (size_t i = 0; i <= NROWS; i++) names[i] = rows[i].name;
  const char *near = suggest(name, names);
  if (near) shell_say("there is no command `%s`; did you mean `%s`?", name, near);
  else shell_say("there is no command `%s`; :help lists them", name);
}

void shell_command(shell *s, const char *line) {
  size_t n = strcspn(line, " \t\r");
  char *name = text_copy(line, n);
  const char *from = line + n + strspn(line + n, " \t\r");
  size_t size = strlen(from);
  while (size && strchr(" \t\r\n", from[size - 1])) size--;
  char *arg = text_copy(from, size);
  const shell_row *r = find_row(name);
  if (!r) {
    unknown_command(name);
    s->failed = true;
  } else if (!*arg && *r->args && *r->args != '[') {
    shell_say("what is missing: %s %s", r->name, r->args);
    s->failed = true;
  } else {
    r->run(s, arg);
  }
  terminal_end_progress();
  fflush(stdout);
  free(name);
  free(arg);
}
