/* main.c: the command `ccn`: finds the command, reads its words by the tables below, runs it.
 *
 * Sees ccn.h only: a host application like any other. Results go to stdout, everything else to stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "commands.h"
#include "terminal.h"

#define FIELD(name) offsetof(arguments, name)
#define MAX_RANKS 64
#define OPTION_HELP \
  { "help", 'h', OPTION_FLAG, FIELD(help), 0, 0, NULL, "show this text" }
#define OPTION_JSON \
  { "json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL, "diagnostics as JSON, one object a line, on stderr" }
#define OPTION_RANKS \
  { \
    "ranks", 'n', OPTION_NUMBER, FIELD(ranks), 1, MAX_RANKS, "RANKS", \
      "simulated ranks (default: the product of the mesh's fixed axes)" \
  }
#define OPTION_END \
  { NULL, 0, OPTION_FLAG, 0, 0, 0, NULL, NULL }

static const option run_options[] = {
  OPTION_RANKS,
  {"watch", 0, OPTION_WORDS, FIELD(watch), 0, 0, "NAME",
   "show a program's value at each call, as step.mh or mh (may be repeated)"},
  {"check-nan", 0, OPTION_FLAG, FIELD(check_nan), 0, 0, NULL,
   "stop at the first op that makes a NaN out of none"},
  OPTION_JSON,
  OPTION_HELP,
  OPTION_END,
};
static const option check_options[] = {OPTION_RANKS, OPTION_JSON, OPTION_HELP, OPTION_END};
static const option dump_options[] = {
  {"stage", 0, OPTION_TEXT, FIELD(stage), 0, 0, "STAGE",
   "ast: the syntax tree; graph: the typed dataflow graph"},
  OPTION_RANKS,
  OPTION_JSON,
  OPTION_HELP,
  OPTION_END,
};
static const option explain_options[] = {
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL,
   "code, title and page as JSON on stdout, one object a line"},
  OPTION_HELP,
  OPTION_END,
};
static const option version_options[] = {
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL, "as JSON on stdout"},
  OPTION_HELP,
  OPTION_END,
};

static const command commands[] = {
  {"run", "run FILE [options] [-- ARGS]", "check a script, then run it on simulated ranks",
   "FILE is a .ccn script, or - for standard input. What it prints goes to stdout; diagnostics, watched values and\n"
   "the progress line (on a terminal only) go to stderr. Words after -- are the script's list `args`. Files that\n"
   "the script names are relative to the current folder; saved files appear whole or not at all.",
   "ccn run examples/digits.ccn -n 4", run_options, 1, 1, true, command_run},
  {"check", "check FILE... [options]", "find the mistakes in scripts without running them",
   "Silent if all is well. -n also checks what depends on the number of ranks.",
   "ccn check examples/adam.ccn", check_options, 1, (size_t)-1, false, command_check},
  {"dump", "dump FILE --stage STAGE", "show what a script looks like inside",
   "Writes the stage as text to stdout. Graph text reads back exactly.",
   "ccn dump examples/adam.ccn --stage graph", dump_options, 1, 1, false, command_dump},
  {"explain", "explain [CODE]", "explain an error code: the mistake and the cure",
   "Without CODE, lists all codes with their titles.", "ccn explain CCN0203", explain_options, 0, 1, false,
   command_explain},
  {"version", "version", "show the version and how this ccn was built", NULL, "ccn --version",
   version_options, 0, 0, false, command_version},
};
#define NCOMMANDS (sizeof commands / sizeof commands[0])

static const command *find_command(const char *name) {
  for (size_t i = 0; i < NCOMMANDS; i++) {
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
  }
  return NULL;
}

static void help(FILE *out) {
  fputs("ccn: programs in which computation and communication are statements\n\n"
        "usage: ccn COMMAND [words and options]\n\ncommands:\n",
        out);
  for (size_t i = 0; i < NCOMMANDS; i++) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs("\n`ccn COMMAND --help` tells more about each.\n\n"
        "exit status:\n"
        "  0  all went well\n"
        "  1  the program is wrong or failed\n"
        "  2  the command line is wrong\n"
        "  3  the environment: a file is missing or cannot be written, memory ended\n\n"
        "environment:\n"
        "  NO_COLOR  if set and not empty: no colour, on a terminal either\n\n"
        "example:\n"
        "  ccn run examples/digits.ccn -n 4\n",
        out);
}

static int unknown_command(const char *word) {
  const char *candidates[NCOMMANDS + 2];
  size_t n = 0;
  for (size_t i = 0; i < NCOMMANDS; i++) candidates[n++] = commands[i].name;
  candidates[n++] = "help";
  candidates[n] = NULL;
  const char *near = suggest(word, candidates);
  const char *dot = strrchr(word, '.');
  fprintf(stderr, "ccn: unknown command '%s'", word);
  if (dot && strcmp(dot, ".ccn") == 0) {
    fprintf(stderr, "; to run a file: ccn run %s\n", word);
  } else if (near) {
    fprintf(stderr, "; did you mean %s?\n", near);
  } else {
    fputs(" (ccn --help lists them)\n", stderr);
  }
  return EXIT_USAGE;
}

static int run_command(const command *c, int n, char **words_given) {
  arguments a;
  memset(&a, 0, sizeof a);
  int status = options_read(c, n, words_given, &a);
  if (!status) {
    if (a.help) {
      command_help(c, stdout);
    } else {
      status = c->run(&a);
    }
  }
  arguments_free(&a);
  return status;
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return EXIT_USAGE;
  }
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) word = "version";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) word = "help";
  if (strcmp(word, "help") == 0) {
    if (argc == 2) {
      help(stdout);
      return EXIT_FINE;
    }
    const command *c = find_command(argv[2]);
    if (!c) return unknown_command(argv[2]);
    command_help(c, stdout);
    return EXIT_FINE;
  }
  const command *c = find_command(word);
  if (!c) return unknown_command(word);
  return run_command(c, argc - 2, argv + 2);
}

int main(int argc, char **argv) {
  terminal_start();
  int status = dispatch(argc, argv);
  if (!terminal_finish() && status == EXIT_FINE) status = EXIT_ENVIRONMENT;
  return status;
}
