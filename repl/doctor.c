/* doctor.c: `ccn doctor`: what this ccn has and what the machine offers it; what is missing, and how to get
 * it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "shell.h"
#include "terminal.h"

typedef enum state {
  GOOD,
  ABSENT,
  BAD
} state; /* there; not there, which hurts nobody; in the way of something */

typedef struct finding {
  const char *name;
  state state;
  string about, cure;
} finding;

static void tell(const arguments *a, finding *f) {
  static const char *const states[] = {"ok", "absent", "bad"}, *const marks[] = {"ok", "-", "BAD"};
  if (a->json) {
    fputs("{\"name\": ", stdout);
    print_json_string(f->name);
    printf(", \"state\": \"%s\", \"about\": ", states[f->state]);
    print_json_string(text_of(&f->about));
    fputs(", \"cure\": ", stdout);
    print_json_string(text_of(&f->cure));
    puts("}");
  } else {
    printf("  %-4s %-13s %s\n", marks[f->state], f->name, text_of(&f->about));
    if (f->cure.n) printf("  %-4s %-13s %s\n", "", "", text_of(&f->cure));
  }
  text_free(&f->about);
  text_free(&f->cure);
}

/* ---- what was built in --------------------------------------------------------------------------------- */

static void tell_readline(const arguments *a) {
  const char *library = input_library();
  finding f = {.name = "readline", .state = library ? GOOD : ABSENT};
  if (library) {
    text_printf(&f.about, "%s: the shell edits lines, has a history, completes", library);
  } else {
    text_put(&f.about, "the shell reads plain lines");
    text_put(&f.cure,
             "install libreadline-dev and build again: meson setup --reconfigure build -Dreadline=enabled");
  }
  tell(a, &f);
}

static void tell_parts(const arguments *a) {
  const char *name, *about, *cure;
  int built;
  for (size_t i = 0; (name = ccn_feature_list(i, &built, &about, &cure)); i++) {
    finding f = {.name = name, .state = built ? GOOD : ABSENT};
    text_put(&f.about, about);
    if (!built) text_put(&f.cure, cure);
    tell(a, &f);
  }
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static void tell_cores(const arguments *a) {
  finding f = {.name = "cores", .state = GOOD};
  text_printf(&f.about, "%ld; this version computes on one", sysconf(_SC_NPROCESSORS_ONLN));
  tell(a, &f);
}

static void tell_memory(const arguments *a) {
  finding f = {.name = "memory", .state = GOOD};
  struct rlimit limit;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  texts_bytes(&f.about, (double)pages * (double)page);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text_put(&f.about, "; this process may have ");
    texts_bytes(&f.about, (double)limit.rlim_cur);
    if (limit.rlim_cur < (rlim_t)256 << 20) f.state = BAD;
    text_put(&f.cure, "ulimit -v sets the limit");
  } else {
    text_put(&f.about, ", no limit");
  }
  tell(a, &f);
}

static void tell_stack(const arguments *a) {
  finding f = {.name = "stack", .state = GOOD};
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY) text_put(&f.about, "no limit");
  else texts_bytes(&f.about, (double)limit.rlim_cur);
  if (limit.rlim_cur < (rlim_t)8 << 20) {
    f.state = BAD;
    text_put(&f.about, ": deeply nested scripts may end the process");
    text_put(&f.cure, "ulimit -s 8192");
  }
  tell(a, &f);
}

/* Whether files can be made in the folder, or the folder itself where it will be. */
static void tell_folder(const arguments *a, const char *name, const char *variable, const char *fallback,
                        const char *use) {
  finding f = {.name = name, .state = GOOD};
  string path = {0};
  if (!texts_folder(&path, variable, fallback)) {
    f.state = BAD;
    text_printf(&f.about, "neither %s nor HOME is set: %s", variable, use);
    text_printf(&f.cure, "export %s=FOLDER", variable);
  } else {
    text_printf(&f.about, "%s", text_of(&path));
    while (access(path.at, F_OK) != 0 && errno == ENOENT && strrchr(path.at, '/') != path.at)
      *strrchr(path.at, '/') = 0;
    size_t folder = path.n = strlen(path.at);
    text_put(&path, "/ccn-doctor-XXXXXX");
    bool made = mkdtemp(path.at) && rmdir(path.at) == 0; /* the only way to know: access() tells root yes */
    path.at[folder] = 0;
    if (made) {
      text_put(&f.about, ": can be written");
    } else {
      f.state = BAD;
      text_printf(&f.about, ": '%s' cannot be written (%s): %s", path.at, strerror(errno), use);
      text_printf(&f.cure, "make it writable, or export %s=FOLDER", variable);
    }
  }
  text_free(&path);
  tell(a, &f);
}

static void tell_locale(const arguments *a) {
  finding f = {.name = "locale", .state = GOOD};
  bool known = setlocale(LC_CTYPE, "") != NULL;
  const char *codeset = nl_langinfo(CODESET);
  text_printf(&f.about, "%s, %s", known ? setlocale(LC_CTYPE, NULL) : "unknown", codeset);
  if (!known || strcmp(codeset, "UTF-8") != 0) {
    f.state = ABSENT;
    text_put(&f.about, ": letters outside of ASCII cannot be edited in the shell");
    text_put(&f.cure, "export LC_ALL=C.UTF-8");
  }
  tell(a, &f);
}

static void tell_terminal(const arguments *a) {
  finding f = {.name = "terminal", .state = GOOD};
  const char *term = getenv("TERM");
  text_printf(&f.about, "TERM=%s, %s", term ? term : "",
              terminal_print_has_colour() ? "colour" : "no colour (not a terminal, dumb, or NO_COLOR)");
  tell(a, &f);
}

/* A program that any ccn must be able to run. */
static int tell_itself(const arguments *a) {
  static const char script[] = "mesh (dp)\nprogram f(x: f32[N] local) { return allreduce(sum, x) }\n"
                               "assert f(ones(f32[3] local))[2] == 4\n";
  finding f = {.name = "interpreter", .state = BAD};
  ccn_context *c = NULL;
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.ranks = 4;
  ccn_status status = ccn_context_create(&o, &c);
  if (status == CCN_OK) status = ccn_run(c, "<doctor>", script, sizeof script - 1);
  ccn_context_free(c);
  if (status == CCN_OK) {
    f.state = GOOD;
    text_put(&f.about, "an all-reduce over 4 simulated ranks is right; there may be 64");
  } else {
    text_printf(&f.about, "an all-reduce over 4 simulated ranks failed: %s", ccn_status_name(status));
    text_put(&f.cure, "this ccn is broken: build it again");
  }
  tell(a, &f);
  return status == CCN_OK ? EXIT_FINE : EXIT_DEFECT;
}

int command_doctor(const arguments *a) {
  if (!a->json) printf("%s\n", ccn_build_info());
  int status = tell_itself(a);
  tell_readline(a);
  tell_parts(a);
  tell_cores(a);
  tell_memory(a);
  tell_stack(a);
  tell_folder(a, "state folder", "XDG_STATE_HOME", ".local/state", "the shell keeps no history");
  tell_folder(a, "cache folder", "XDG_CACHE_HOME", ".cache", "compiled kernels will not be kept");
  tell_locale(a);
  tell_terminal(a);
  return status;
}
