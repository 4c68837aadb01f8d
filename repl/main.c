/* main.c: the command `ccn`: finds the command, reads its words by the tables below, runs it.
 *
 * Sees ccn.h only: a host application like any other. Results go to stdout, everything else to stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "commands.h"
#include "terminal.h"

#define FIELD(name) offsetof(arguments, name)
#define MAX_RANKS 64
#define MAX_PLANNED CCN_PLAN_RANKS
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

#define OPTION_PLANNED \
  { \
    "ranks", 'n', OPTION_NUMBER, FIELD(ranks), 1, MAX_PLANNED, "RANKS", \
      "ranks of the plan (default: the product of the mesh's fixed axes)" \
  }
#define OPTION_MACHINE \
  { \
    "machine", 0, OPTION_TEXT, FIELD(machine), 0, 0, "NAME|FILE", \
      "the machine: a name of `ccn machine`, a file, or this: measured now (default: h200)" \
  }
#define OPTION_TRACE \
  { \
    "trace", 0, OPTION_TEXT, FIELD(trace), 0, 0, "FILE", \
      "what each rank does when, as Chrome trace events; - is stdout" \
  }
#define OPTION_WHICH \
  { \
    "algorithm", 'a', OPTION_TEXT, FIELD(algorithm), 0, 0, "NAME", \
      "for all collectives that it does, a name of `ccn algo` (default: as schedules say, else direct)" \
  }

static const option run_options[] = {
  {"ranks", 'n', OPTION_NUMBER, FIELD(ranks), 1, MAX_PLANNED, "RANKS",
   "simulated ranks, up to 64, with --backend sim up to 65536 (default: the product of the mesh's fixed axes)"},
  {"watch", 0, OPTION_WORDS, FIELD(watch), 0, 0, "NAME",
   "show a program's value at each call, as step.mh or mh (may be repeated)"},
  {"check-nan", 0, OPTION_FLAG, FIELD(check_nan), 0, 0, NULL,
   "stop at the first op that makes a NaN out of none"},
  {"backend", 0, OPTION_TEXT, FIELD(backend), 0, 0, "NAME",
   "who executes programs: reference, the interpreter; local, compiled kernels; plan, the interpreter through the plan; sim, nobody: virtual time"},
  {"workers", 0, OPTION_NUMBER, FIELD(workers), 1, 64, "THREADS",
   "of --backend local: threads that share the ranks (default: one a core, where a step is worth it)"},
  {"hang-timeout", 0, OPTION_NUMBER, FIELD(hang_timeout), 1, 86400, "SECONDS",
   "of --backend local: ends with status 4 when nothing has moved for so long (default: 60)"},
  OPTION_MACHINE,
  OPTION_WHICH,
  OPTION_TRACE,
  {"report", 0, OPTION_TEXT, FIELD(report), 0, 0, "FILE",
   "what was used and sent, as JSON: memory, bytes resident and bytes sent by each rank; - is stdout"},
  OPTION_JSON,
  OPTION_HELP,
  OPTION_END,
};
static const option check_options[] = {OPTION_RANKS, OPTION_JSON, OPTION_HELP, OPTION_END};
static const option dump_options[] = {
  {"stage", 0, OPTION_TEXT, FIELD(stage), 0, 0, "STAGE",
   "ast: the syntax tree; graph: the typed dataflow graph; scheduled: what schedules made of it; "
   "plan: steps and buffers of each call that the script makes; split, fuse, ... or 2: "
   "behind the last statement of that name, or behind the second one"},
  {"dump-after", 0, OPTION_WORDS, FIELD(after), 0, 0, "STATEMENT",
   "behind each statement of that name, or behind all (may be repeated)"},
  {"time-passes", 0, OPTION_FLAG, FIELD(times), 0, 0, NULL,
   "how long each statement of a schedule took, on stderr"},
  {"diff", 0, OPTION_TEXT, FIELD(diff), 0, 0, "A..B",
   "what changed, node by node, between two stages: split..fuse, 1..2, .."},
  OPTION_RANKS,
  OPTION_JSON,
  OPTION_HELP,
  OPTION_END,
};
static const option plan_options[] = {
  {"define", 'D', OPTION_WORDS, FIELD(sizes), 0, 0, "SIZE",
   "with PROGRAM: N=1000, 'len(ws)=2', ps=1000,64x32; the script is not run (may be repeated)"},
  {"schedule", 0, OPTION_TEXT, FIELD(schedule), 0, 0, "NAME",
   "the program with this schedule: zero, 'zero(gsum)'"},
  OPTION_MACHINE,
  OPTION_WHICH,
  OPTION_TRACE,
  OPTION_PLANNED,
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL,
   "the plans as JSON, one object a line; errors as JSON on stderr"},
  OPTION_HELP,
  OPTION_END,
};
static const option tune_options[] = {
  {"define", 'D', OPTION_WORDS, FIELD(sizes), 0, 0, "SIZE",
   "with PROGRAM: N=1000, 'len(ws)=2', ps=1000,64x32; the script is not run (may be repeated)"},
  OPTION_MACHINE,
  OPTION_PLANNED,
  {"reassociate", 0, OPTION_FLAG, FIELD(reassociate), 0, 0, NULL,
   "try algorithms too that add in another order, which changes bits of floats"},
  {"explain", 0, OPTION_FLAG, FIELD(explain), 0, 0, NULL,
   "the plans of the best schedule, of the next best and of the program alone, in comments"},
  {"output", 'o', OPTION_TEXT, FIELD(out), 0, 0, "FILE", "write the schedules to FILE"},
  {"no-cache", 0, OPTION_FLAG, FIELD(no_cache), 0, 0, NULL, "search anew, and keep nothing"},
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL,
   "all that was seen as JSON, one object a line; errors as JSON on stderr"},
  OPTION_HELP,
  OPTION_END,
};
static const option machine_options[] = {
  {"measure", 0, OPTION_FLAG, FIELD(measure), 0, 0, NULL, "this machine, measured now"},
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
static const option algo_options[] = {
  {"algorithm", 'a', OPTION_TEXT, FIELD(algorithm), 0, 0, "NAME",
   "which one; without it all names are listed"},
  {"ranks", 'n', OPTION_NUMBER, FIELD(members), 1, 1024, "RANKS", "of how many ranks (default: 4)"},
  {"root", 0, OPTION_NUMBER, FIELD(root), 0, 1023, "RANK",
   "of reduce, gather, broadcast and scatter (default: 0)"},
  {"chunks", 0, OPTION_NUMBER, FIELD(chunks), 1, 64, "N", "into how many each slice is cut (default: 1)"},
  {"group", 0, OPTION_NUMBER, FIELD(group), 1, 1024, "RANKS", "neighbours a group, of hierarchical"},
  {"by", 0, OPTION_NUMBER, FIELD(by), -1023, 1023, "RANKS",
   "how far shift and permute go around (default: 1)"},
  {"text", 0, OPTION_FLAG, FIELD(text), 0, 0, NULL, "the text form, which reads back, instead of a table"},
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL, "the same as JSON; errors as JSON on stderr"},
  OPTION_HELP,
  OPTION_END,
};
static const option fmt_options[] = {
  {"check", 0, OPTION_FLAG, FIELD(check), 0, 0, NULL,
   "change nothing, list the files that would change; status 1 if some"},
  {"diff", 0, OPTION_FLAG, FIELD(show_diff), 0, 0, NULL, "the same, showing what would change"},
  {"stdout", 0, OPTION_FLAG, FIELD(to_stdout), 0, 0, NULL, "write the result to stdout"},
  OPTION_JSON,
  OPTION_HELP,
  OPTION_END,
};
static const option repl_options[] = {OPTION_RANKS, OPTION_HELP, OPTION_END};
static const option cache_options[] = {
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL, "as JSON on stdout, one object a line"},
  OPTION_HELP,
  OPTION_END,
};
static const option doctor_options[] = {
  {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL, "as JSON on stdout, one object a line"},
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
  {"algo", "algo [COLLECTIVE | FILE] [options]", "what each rank does in a collective, step by step",
   "COLLECTIVE is allreduce, reducescatter, allgather, reduce, broadcast, gather, scatter, alltoall, shift or permute.\n"
   "A FILE, or - for standard input, holds an algorithm as text or JSON; it is validated.",
   "ccn algo allreduce -n 5 --algorithm ring", algo_options, 0, 1, false, command_algo},
  {"plan", "plan FILE [PROGRAM] [options]",
   "what the steps of programs cost: bytes, time, and what bounds it",
   "The script runs with its programs recorded, not executed; of each that it calls the plan is shown. With PROGRAM and\n"
   "-D only that program is planned, from given sizes. PROGRAM is adam, optim.adam, adam@zero or 'adam@zero(gsum)'.",
   "ccn plan examples/adam_mixed.ccn adam_mixed -n 8 -D N=1000000000", plan_options, 1, 2, false,
   command_plan},
  {"tune", "tune FILE [PROGRAM] [options]", "look for the schedule that takes the least time",
   "Programs that the script calls are tuned, or with PROGRAM and -D one from given sizes. The schedules that the script\n"
   "applies do not count. What comes out is text to be pasted behind the program: `let fast = adam with adam_tuned`.",
   "ccn tune examples/adam_mixed.ccn adam_mixed -n 8 -D N=1000000000", tune_options, 1, 2, false,
   command_tune},
  {"machine", "machine [NAME | FILE] [options]", "machines that plans are made for",
   "Without a word, lists the names. A machine is shown as text; a file is read and shown.",
   "ccn machine --measure", machine_options, 0, 1, false, command_machine},
  {"repl", "repl [FILE] [options]", "the interactive shell; `ccn` alone is the same",
   "FILE is a script to begin with. Where standard input is no terminal its lines are entries, too, and the exit\n"
   "status is 1 if one of them failed. The history is kept in $XDG_STATE_HOME/ccn/history (~/.local/state).",
   "ccn repl -n 4", repl_options, 0, 1, false, command_repl},
  {"fmt", "fmt FILE... [options]", "lay scripts out in the one way",
   "FILE is replaced, whole or not at all, and only if something changes; - reads standard input and writes standard\n"
   "output. Tokens, comments and line breaks stay.",
   "ccn fmt --check examples/adam.ccn", fmt_options, 1, (size_t)-1, false, command_fmt},
  {"cache", "cache ls | verify | clear", "the compiled kernels that are kept for later runs",
   "verify reads each whole and lists the bad ones (status 3 if there are some); they are made anew when wanted.\n"
   "The folder is ccn in $XDG_CACHE_HOME (~/.cache).",
   "ccn cache ls", cache_options, 1, 1, false, command_cache},
  {"doctor", "doctor", "what this ccn has, what is missing and how to get it", NULL, "ccn doctor --json",
   doctor_options, 0, 0, false, command_doctor},
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
        "usage: ccn COMMAND [words and options], or ccn alone: the interactive shell\n\ncommands:\n",
        out);
  for (size_t i = 0; i < NCOMMANDS; i++) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs("\n`ccn COMMAND --help` tells more about each.\n\n"
        "exit status:\n"
        "  0  all went well\n"
        "  1  the program is wrong or failed\n"
        "  2  the command line is wrong\n"
        "  3  the environment: a file is missing or cannot be written, memory ended\n"
        "  4  nothing moved for --hang-timeout seconds\n"
        "  130  interrupted by Ctrl-C\n\n"
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
  if (argc < 2) return run_command(find_command("repl"), 0, argv);
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
