/* options.h: the command line as tables: commands, their options, help, and suggestions for misspelt words.
 *
 * Adding an option is one row in main.c and one field here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_OPTIONS_H
#define CCN_REPL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, as in `ccn --help`. */
enum {
  EXIT_FINE = 0,
  EXIT_PROGRAM = 1,     /* the CCN program is wrong or failed */
  EXIT_USAGE = 2,       /* the command line is wrong */
  EXIT_ENVIRONMENT = 3, /* a file, memory, the machine */
  EXIT_HANG = 4,        /* nothing moved for --hang-timeout seconds */
  EXIT_DEFECT = 70      /* a defect of CCN itself */
};

typedef struct words {
  const char **at;
  size_t n;
} words;

/* What the command line said; zeroed at first. */
typedef struct arguments {
  int ranks;                            /* -n; 0: not given */
  bool check_nan;                       /* --check-nan */
  const char *backend;                  /* --backend */
  int workers;                          /* --workers; 0: not given */
  int hang_timeout;                     /* --hang-timeout; 0: not given */
  bool json;                            /* --json */
  bool help;                            /* --help */
  const char *stage;                    /* --stage */
  bool check;                           /* --check */
  bool show_diff;                       /* --diff of fmt */
  bool to_stdout;                       /* --stdout */
  const char *diff;                     /* --diff */
  const char *report;                   /* --report */
  bool times;                           /* --time-passes */
  words after;                          /* --dump-after, once for each */
  const char *algorithm;                /* --algorithm */
  bool text;                            /* --text */
  const char *machine;                  /* --machine */
  const char *schedule;                 /* --schedule */
  const char *trace;                    /* --trace */
  words sizes;                          /* -D, once for each */
  bool measure;                         /* --measure */
  bool explain;                         /* --explain */
  bool no_cache;                        /* --no-cache */
  bool reassociate;                     /* --reassociate */
  const char *out;                      /* -o */
  int members, root, chunks, group, by; /* of algo */
  words watch;                          /* --watch, once for each */
  words plain;                          /* words that are no options */
  words script;                         /* words after -- */
} arguments;

typedef enum option_kind { OPTION_FLAG, OPTION_NUMBER, OPTION_TEXT, OPTION_WORDS } option_kind;

typedef struct option {
  const char *name; /* "check-nan"; NULL ends a table */
  char letter;      /* 'n' or 0 */
  option_kind kind;
  size_t field;      /* offset in `arguments` */
  int low, high;     /* of a NUMBER */
  const char *value; /* what its value is called in help: "RANKS" */
  const char *doc;
} option;

typedef struct command {
  const char *name;
  const char *usage;   /* "run FILE [options] [-- ARGS]" */
  const char *summary; /* one line */
  const char *text;    /* what else there is to know */
  const char *example;
  const option *options;
  size_t least, most; /* plain words */
  bool passes_words;  /* words after -- go to the script, otherwise they are plain */
  int (*run)(const arguments *a);
} command;

/* Reads argv[0..n) into *out, which points into argv; arguments_free its lists, also after an error. Returns 0, or
 * EXIT_USAGE after saying on stderr what is wrong. */
int options_read(const command *c, int n, char **argv, arguments *out);
void arguments_free(arguments *a);
void command_help(const command *c, FILE *out);
/* Of a NULL-terminated list the candidate nearest to `word`, if near enough to suggest; else NULL. */
const char *suggest(const char *word, const char *const *candidates);

#endif
