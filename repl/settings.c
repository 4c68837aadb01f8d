/* settings.c: `:set` and `:watch`: what may change while a session goes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum { MOST_NAMES = 512 };

/* Tells the context; what it does not take is put back. */
static bool apply(shell *s, const shell_settings *before) {
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.watch = (const char *const *)s->set.watch;
  o.nwatch = s->set.nwatch;
  o.check_nan = s->set.check_nan;
  o.time_limit_ms = (int64_t)(s->set.time_limit * 1000);
  ccn_status status = ccn_options_update(s->c, &o);
  if (status == CCN_OK) return true;
  s->set = *before;
  shell_say("the setting was not taken: %s", ccn_status_name(status));
  return false;
}

/* ---- :set ---------------------------------------------------------------------------------------------- */

typedef enum setting_kind { SWITCH, SECONDS, COUNT } setting_kind;

static const struct {
  const char *name, *values, *about;
  setting_kind kind;
  size_t field;
} settings[] = {
  {"check-nan", "on|off", "stop at the first op that makes a NaN out of none", SWITCH,
   offsetof(shell_settings, check_nan)},
  {"excerpt", "N", "how many elements of each dim are shown", COUNT, offsetof(shell_settings, excerpt)},
  {"time", "on|off", "tell how long each entry took", SWITCH, offsetof(shell_settings, timing)},
  {"time-limit", "SECONDS|off", "give entries up that take longer", SECONDS,
   offsetof(shell_settings, time_limit)},
};
#define NSETTINGS (sizeof settings / sizeof settings[0])

const char *shell_setting_name(size_t i) { return i < NSETTINGS ? settings[i].name : NULL; }

static void show_setting(const shell *s, size_t i) {
  const void *field = (const char *)&s->set + settings[i].field;
  string value = {0};
  switch (settings[i].kind) {
  case SWITCH: text_put(&value, *(const bool *)field ? "on" : "off"); break;
  case COUNT: text_printf(&value, "%ld", *(const long *)field); break;
  case SECONDS:
    if (*(const double *)field > 0) text_printf(&value, "%g s", *(const double *)field);
    else text_put(&value, "off");
    break;
  }
  printf("  %-11s %-6s %s (%s)\n", settings[i].name, text_of(&value), settings[i].about, settings[i].values);
  text_free(&value);
}

static bool read_switch(const char *value, bool *out) {
  *out = strcmp(value, "on") == 0;
  return *out || strcmp(value, "off") == 0;
}

/* False: no such value. */
static bool read_setting(shell *s, size_t i, const char *value) {
  void *field = (char *)&s->set + settings[i].field;
  char *end;
  double x = strcmp(value, "off") == 0 ? 0 : strtod(value, &end);
  bool number = strcmp(value, "off") != 0 && end != value && !*end;
  switch (settings[i].kind) {
  case SWITCH: return read_switch(value, field);
  case COUNT:
    if (!number || x < 2 || x > 1000 || x != (double)(long)x) return false;
    *(long *)field = (long)x;
    return true;
  case SECONDS:
    if ((number && !(x >= 0.001 && x <= 1e6)) || (!number && strcmp(value, "off") != 0)) return false;
    *(double *)field = x;
    return true;
  }
  return false;
}

static void no_setting(const char *name) {
  const char *names[NSETTINGS + 1] = {NULL};
  for (size_t i = 0; i < NSETTINGS; i++) names[i] = settings[i].name;
  const char *near = suggest(name, names);
  if (near) shell_say("there is no setting `%s`; did you mean `%s`?", name, near);
  else shell_say("there is no setting `%s`; :set lists them", name);
}

void settings_set(shell *s, const char *arg) {
  const shell_settings before = s->set;
  size_t n = strcspn(arg, " \t="), i = 0;
  const char *value = arg + n + strspn(arg + n, " \t=");
  if (!*arg) {
    for (i = 0; i < NSETTINGS; i++) show_setting(s, i);
    return;
  }
  char *name = text_copy(arg, n);
  while (i < NSETTINGS && strcmp(settings[i].name, name) != 0) i++;
  if (i == NSETTINGS) no_setting(name);
  else if (!*value) show_setting(s, i);
  else if (!read_setting(s, i, value)) shell_say("%s takes %s, not `%s`", name, settings[i].values, value);
  else if (apply(s, &before)) show_setting(s, i);
  free(name);
}

/* ---- :watch -------------------------------------------------------------------------------------------- */

typedef struct name_list {
  const char *at[MOST_NAMES + 1];
  size_t n;
} name_list;

static void note_name(const char *name, ccn_kind kind, void *user) {
  name_list *l = user;
  (void)kind;
  if (l->n < MOST_NAMES) l->at[l->n++] = text_copy(name, strlen(name));
}

/* Whether "step.mh" is there; says what is there instead. A program may come later. */
static bool is_value(shell *s, const char *word) {
  name_list values = {.n = 0};
  const char *dot = strchr(word, '.');
  char *program = text_copy(word, dot ? (size_t)(dot - word) : 0);
  if (dot && ccn_session_names(s->c, program, note_name, &values) != CCN_OK) values.n = 0;
  bool found = values.n == 0;
  for (size_t i = 0; i < values.n; i++) found |= strcmp(values.at[i], dot + 1) == 0;
  const char *near = found ? NULL : suggest(dot + 1, values.at);
  if (!found && near) shell_say("`%s` has no value `%s`; did you mean `%s`?", program, dot + 1, near);
  else if (!found) shell_say("`%s` has no value `%s`; Tab behind the dot lists them", program, dot + 1);
  for (size_t i = 0; i < values.n; i++) free((char *)values.at[i]);
  free(program);
  return found;
}

static void forget_watched(shell *s) {
  const shell_settings before = s->set;
  s->set.nwatch = 0;
  if (!apply(s, &before)) return;
  for (size_t i = 0; i < before.nwatch; i++) free(before.watch[i]);
}

static void show_watched(const shell *s) {
  if (!s->set.nwatch) puts("nothing is watched");
  for (size_t i = 0; i < s->set.nwatch; i++) printf("watched: %s\n", s->set.watch[i]);
}

static void add_watched(shell *s, const char *word) {
  const shell_settings before = s->set;
  for (size_t i = 0; i < s->set.nwatch; i++)
    if (strcmp(s->set.watch[i], word) == 0) return;
  if (s->set.nwatch == sizeof s->set.watch / sizeof s->set.watch[0]) {
    shell_say("no more than %zu values are watched: :watch off", s->set.nwatch);
    return;
  }
  s->set.watch[s->set.nwatch++] = text_copy(word, strlen(word));
  if (!apply(s, &before)) free(s->set.watch[before.nwatch]);
}

void settings_watch(shell *s, const char *arg) {
  bool good = true;
  if (strcmp(arg, "off") == 0) {
    forget_watched(s);
    arg = "";
  }
  for (const char *p = arg; *p;) {
    size_t n = strcspn(p, " ,\t");
    char *word = text_copy(p, n);
    if (n) good = is_value(s, word) && good;
    if (n && good) add_watched(s, word);
    free(word);
    p += n + strspn(p + n, " ,\t");
  }
  if (good) show_watched(s);
}
