/* shell.h: the interactive shell: its state, and what its files offer each other.
 *
 *   input.c ── a line ──► shell.c ──┬── ":..." ──► shell_commands.c ── doc.c
 *      └── complete.c               └── ccn_eval ── a value ──► show.c
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_SHELL_H
#define CCN_REPL_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "ccn.h"
#include "texts.h"

typedef struct shell_settings {
  int ranks; /* 0: the product of the mesh's fixed axes */
  bool check_nan;
  bool timing;       /* the time of every entry is shown */
  double time_limit; /* seconds; 0: none */
  long excerpt;      /* elements shown of each dim */
  char *watch[64];   /* names of program values */
  size_t nwatch;
} shell_settings;

typedef struct shell {
  ccn_context *c;
  shell_settings set;
  unsigned entry;   /* number of the last one */
  bool interactive; /* somebody types */
  bool failed;      /* an entry failed: the exit status where nobody types */
  bool leave;
} shell;

/* ---- shell.c ------------------------------------------------------------------------------------------- */

/* Runs the shell on standard input, after the script `file` (may be NULL); gives the exit status. */
int shell_run(int ranks, const char *file);
/* A context as the settings say. False after saying why there is none. */
bool shell_context(const shell_settings *set, ccn_context **out);
/* Evaluates a text and shows its value or what is wrong with it; CCN_INCOMPLETE, without a word, if more
 * lines may follow. */
ccn_status shell_evaluate(shell *s, const char *name, const char *text, size_t size, bool may_go_on);
/* Says what the last call came to, if it did not go well. */
void shell_report(shell *s, ccn_status status);
/* While true, scripts print and write nothing. */
void shell_mute(bool mute);
/* While `c` is not NULL, Ctrl-C ends what runs in it. */
void shell_interruptible(ccn_context *c);
bool shell_interrupted(void); /* since the last call of this */
/* A line on stderr. */
void shell_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- shell_commands.c ---------------------------------------------------------------------------------- */

/* `line` begins with a colon. */
void shell_command(shell *s, const char *line);
/* The words after ":" that can be typed; NULL past the end. */
const char *shell_command_name(size_t i);
/* What the argument of a command is, for completion: 'f' a file, 'w' a word of the language, 'p' a program,
 * 'v' a program's value, 's' a setting, 'e' an expression, 0 nothing. */
char shell_command_argument(const char *name);
const char *shell_setting_name(size_t i);

/* ---- show.c, doc.c ------------------------------------------------------------------------------------- */

void show_value(shell *s, ccn_value *v);
/* :doc, on stdout; false if nothing is known of the word. */
bool doc_show(const char *word);

/* ---- complete.c ---------------------------------------------------------------------------------------- */

/* What may stand for the end of `line` from byte *out_start on: each is given to `add`. With *out_file it
 * is a file's name. */
typedef void (*complete_add_fn)(const char *candidate, void *user);
void complete_line(shell *s, const char *line, size_t *out_start, bool *out_file, complete_add_fn add,
                   void *user);

/* ---- input.c ------------------------------------------------------------------------------------------- */

typedef enum input_result { INPUT_LINE, INPUT_END, INPUT_INTERRUPT } input_result;
void input_start(shell *s);
/* A line without its newline (with bracketed paste perhaps several), to be freed. */
input_result input_read(shell *s, const char *prompt, char **out_line);
void input_remember(const char *entry); /* in the history */
void input_finish(void);
const char *input_library(void); /* "readline 8.2", or NULL: plain lines */

#endif
