/* test_diag.c: collection, rendering for people and as JSON, the table of codes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "diag.h"

#include <stdio.h>
#include <stdlib.h>

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

/* Compares texts; shows both when they differ. */
static void same(const char *got, const char *want, const char *name) {
  bool good = strcmp(got, want) == 0;
  if (!good) printf("# want:\n%s# got:\n%s", want, got);
  ok(good, name);
}

/* ---- a context to work in ------------------------------------------------------------------------------ */

typedef struct host {
  size_t blocks, requests, fail_at;
} host;

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  host *h = user;
  (void)old_size;
  if (new_size == 0) {
    if (p) h->blocks--;
    free(p);
    return NULL;
  }
  if (++h->requests == h->fail_at) return NULL;
  h->blocks++;
  return aligned_alloc(align, (new_size + align - 1) / align * align);
}

typedef struct fixture {
  host host;
  ccn__heap heap;
  ccn__trap trap;
  ccn__arena arena;
  ccn__source source, other;
  ccn__source *sources[3];
  ccn__diags ds;
  ccn__text out;
} fixture;

static void set_text(ccn__source *s, const char *name, const char *text, size_t n) {
  *s = (ccn__source){.name = name, .text = text, .size = (uint32_t)n};
}

static void start(fixture *f, const char *text) {
  memset(f, 0, sizeof *f);
  f->heap = (ccn__heap){.alloc = host_alloc, .user = &f->host};
  ccn__arena_init(&f->arena, &f->heap);
  set_text(&f->source, "dir/a.ccn", text, strlen(text));
  set_text(&f->other, "std/optim", "one\ntwo\n", 8);
  f->sources[1] = &f->source;
  f->sources[2] = &f->other;
  f->ds = (ccn__diags){.arena = &f->arena, .sources = f->sources, .nsources = 3};
  ccn__text_init(&f->out, &f->arena);
}

static void stop(fixture *f) { ccn__arena_free(&f->arena); }

/* The span of the first `what` in the text. */
static ccn__span span_of(const fixture *f, const char *what) {
  const char *p = strstr(f->source.text, what);
  if (!p) return (ccn__span){0, 0, 0};
  uint32_t start_at = (uint32_t)(p - f->source.text);
  return (ccn__span){1, start_at, start_at + (uint32_t)strlen(what)};
}

static const char *rendered(fixture *f, bool colour) {
  ccn__text_init(&f->out, &f->arena);
  for (ccn__diag *d = f->ds.first; d; d = d->next) ccn__diag_render(&f->ds, d, colour, &f->out);
  return f->out.at ? f->out.at : "";
}

/* ---- snapshots ----------------------------------------------------------------------------------------- */

static const char program_text[] = "mesh (dp)\n"
                                   "program f(g: f32[N] local, m: f32[N] sliced(0)) {\n"
                                   "  return 0.9 * m + 0.1 * g\n"
                                   "}\n";

static void build_plain(fixture *f) {
  ccn__diag *d = ccn__error(&f->ds, 203, span_of(f, "0.9 * m + 0.1 * g"), "local and sliced over dp",
                            "`%s` needs one placement", "+");
  ccn__note(&f->ds, d, span_of(f, "f32[N] sliced(0)"), "`m` is sliced(0) over dp");
  ccn__note(&f->ds, d, (ccn__span){2, 4, 7}, "in another file");
  ccn__note(&f->ds, d, (ccn__span){0, 0, 0}, "a note without a place");
  ccn__hint(&f->ds, d, "`allgather(m)` first");
}

static const char plain_text[] = "error[CCN0203]: `+` needs one placement\n"
                                 " --> dir/a.ccn:3:10\n"
                                 "  |\n"
                                 "3 |   return 0.9 * m + 0.1 * g\n"
                                 "  |          ^^^^^^^^^^^^^^^^^ local and sliced over dp\n"
                                 "  |\n"
                                 "note: `m` is sliced(0) over dp\n"
                                 " --> dir/a.ccn:2:31\n"
                                 "  |\n"
                                 "2 | program f(g: f32[N] local, m: f32[N] sliced(0)) {\n"
                                 "  |                               ----------------\n"
                                 "  |\n"
                                 "note: in another file\n"
                                 " --> std/optim:2:1\n"
                                 "  |\n"
                                 "2 | two\n"
                                 "  | ---\n"
                                 "  |\n"
                                 "  = note: a note without a place\n"
                                 "  = help: `allgather(m)` first\n";

static void snapshot_plain(fixture *f) {
  build_plain(f);
  same(rendered(f, false), plain_text, "error with notes and a hint");
  same(rendered(f, false), plain_text, "rendering changes nothing");
  uint32_t line, column;
  ccn__source_locate(&f->arena, &f->source, 0, &line, &column);
  ok(f->source.line && f->source.nlines == 5, "the table of lines is made on demand");
  same(rendered(f, false), plain_text, "the same with a table of lines");
}

static void snapshot_colour(fixture *f) {
  ccn__diag *d = ccn__warning(&f->ds, 808, span_of(f, "g: f32"), "this name", "`g` shadows an op");
  ccn__hint(&f->ds, d, "%s", "");
  same(rendered(f, true),
       "\x1b[1;33mwarning[CCN0808]\x1b[0m\x1b[1m: `g` shadows an op\x1b[0m\n"
       " \x1b[1;34m--> \x1b[0mdir/a.ccn:2:11\n"
       "\x1b[1;34m  |\x1b[0m\n"
       "\x1b[1;34m2 |\x1b[0m program f(g: f32[N] local, m: f32[N] sliced(0)) {\n"
       "\x1b[1;34m  |\x1b[0m           \x1b[1;33m^^^^^^ this name\x1b[0m\n",
       "colour; an empty hint is none");
}

static void snapshot_two(fixture *f) {
  ccn__error(&f->ds, 601, (ccn__span){0, 0, 0}, "", "no place\nsecond line");
  ccn__error(&f->ds, 601, (ccn__span){1, 5, 5}, "", "empty span");
  ccn__hint(&f->ds, f->ds.first, "one\ntwo");
  ccn__hint(&f->ds, f->ds.last, "%s", "");
  same(rendered(f, false),
       "error[CCN0601]: no place\n"
       "                second line\n"
       "  = help: one\n"
       "          two\n"
       "\n"
       "error[CCN0601]: empty span\n"
       " --> dir/a.ccn:1:6\n"
       "  |\n"
       "1 | mesh (dp)\n"
       "  |      ^\n",
       "two of them stand apart; no place; an empty span");
}

static void snapshot_end(fixture *f) {
  uint32_t n = f->source.size;
  ccn__hint(&f->ds, ccn__error(&f->ds, 4, (ccn__span){1, n, n}, "here", "unclosed"), "%s", "");
  ccn__hint(&f->ds, ccn__error(&f->ds, 4, (ccn__span){1, n + 50, n + 60}, "here", "beyond"), "%s", "");
  ccn__hint(&f->ds, ccn__error(&f->ds, 4, (ccn__span){3, 0, 1}, "label", "no such source"), "%s", "");
  same(rendered(f, false),
       "error[CCN0004]: unclosed\n"
       " --> dir/a.ccn:5:1\n"
       "  |\n"
       "5 |\n"
       "  | ^ here\n"
       "\n"
       "error[CCN0004]: beyond\n"
       " --> dir/a.ccn:5:1\n"
       "  |\n"
       "5 |\n"
       "  | ^ here\n"
       "\n"
       "error[CCN0004]: no such source\n"
       "  = note: label\n",
       "at the end, beyond the end, nowhere");
}

static const char odd_text[] = "\tx = \"\xff\x1b[31m\xe2\x80\xae\xe4\xb8\xad\" + y\r\nlast";

static void snapshot_odd(fixture *f) {
  ccn__error(&f->ds, 2, span_of(f, "y"), "bad\x1b[0m\ttab", "odd \x07 \xc3( \xc0\x80");
  ccn__hint(&f->ds, f->ds.last, "%s", "");
  f->source.name = "a\nb.ccn";
  same(rendered(f, false),
       "error[CCN0002]: odd \\x07 \\xc3( \\xc0\\x80\n"
       " --> a\\x0ab.ccn:1:19\n"
       "  |\n"
       "1 |     x = \"\\xff\\x1b[31m\\u{202e}\xe4\xb8\xad\" + y\n"
       "  |                                    ^ bad\\x1b[0m    tab\n",
       "tabs, control bytes, invalid UTF-8, wide characters");
}

static const char lines_text[] =
  "a = f(1,\n  2,\n  3)\nb = g(\n1,\n2,\n3,\n4)\nc = h(\n\n\n\n\n\n\n\n\n\n\n)\n";

static void snapshot_lines(fixture *f) {
  ccn__error(&f->ds, 800, span_of(f, "f(1,\n  2,\n  3)"), "call", "near");
  ccn__error(&f->ds, 800, span_of(f, "g(\n1,\n2,\n3,\n4)"), "call", "farther");
  ccn__error(&f->ds, 800, span_of(f, "h(\n\n\n\n\n\n\n\n\n\n\n)"), "call", "far");
  ccn__error(&f->ds, 800, span_of(f, "  3)\n"), "", "newline at its end");
  for (ccn__diag *d = f->ds.first; d; d = d->next) ccn__hint(&f->ds, d, "%s", "");
  same(rendered(f, false),
       "error[CCN0800]: near\n"
       " --> dir/a.ccn:1:5\n"
       "  |\n"
       "1 | a = f(1,\n"
       "  |     ^^^^\n"
       "2 |   2,\n"
       "3 |   3)\n"
       "  |   ^^ call\n"
       "\n"
       "error[CCN0800]: farther\n"
       " --> dir/a.ccn:4:5\n"
       "  |\n"
       "4 | b = g(\n"
       "  |     ^^\n"
       "...\n"
       "8 | 4)\n"
       "  | ^^ call\n"
       "\n"
       "error[CCN0800]: far\n"
       " --> dir/a.ccn:9:5\n"
       "  |\n"
       "9 | c = h(\n"
       "  |     ^^ call\n"
       "\n"
       "error[CCN0800]: newline at its end\n"
       " --> dir/a.ccn:3:1\n"
       "  |\n"
       "3 |   3)\n"
       "  | ^^^^\n",
       "spans of several lines");
}

#define A12 "aaaaaaaaaaaa"
#define C12 "^^^^^^^^^^^^"

static void snapshot_long(fixture *f) {
  char *text = ccn__arena_alloc(&f->arena, 100001);
  memset(text, 'a', 100000);
  memcpy(text + 50000, "HERE", 4);
  set_text(&f->source, "long.ccn", text, 100000);
  ccn__error(&f->ds, 1, (ccn__span){1, 50000, 50004}, "label", "middle");
  ccn__error(&f->ds, 1, (ccn__span){1, 0, 100000}, "", "all of it");
  for (ccn__diag *d = f->ds.first; d; d = d->next) ccn__hint(&f->ds, d, "%s", "");
  same(rendered(f, false),
       "error[CCN0001]: middle\n"
       " --> long.ccn:1:50001\n"
       "  |\n"
       "1 | ..." A12 A12 A12 "HERE" A12 A12 A12 A12 A12 "...\n"
       "  |                                        ^^^^ label\n"
       "\n"
       "error[CCN0001]: all of it\n"
       " --> long.ccn:1:1\n"
       "  |\n"
       "1 | " A12 A12 A12 A12 A12 A12 A12 A12 "aaaa...\n"
       "  | " C12 C12 C12 C12 C12 C12 C12 C12 "^^^^^^^\n",
       "long lines are clipped around the span");
}

static void snapshot_gutter(fixture *f) {
  char text[64] = "";
  for (int i = 1; i < 12; i++) strcat(text, "x\n");
  strcat(text, "y\n");
  set_text(&f->source, "g.ccn", text, strlen(text));
  ccn__diag *d = ccn__error(&f->ds, 1, (ccn__span){1, 0, 1}, "", "m");
  ccn__note(&f->ds, d, span_of(f, "y"), "n");
  ccn__hint(&f->ds, d, "h");
  same(rendered(f, false),
       "error[CCN0001]: m\n"
       "  --> g.ccn:1:1\n"
       "   |\n"
       " 1 | x\n"
       "   | ^\n"
       "   |\n"
       "note: n\n"
       "  --> g.ccn:12:1\n"
       "   |\n"
       "12 | y\n"
       "   | -\n"
       "   |\n"
       "   = help: h\n",
       "one width of the margin for all windows");
}

static void snapshot_json(fixture *f) {
  ccn__diag *d = ccn__error(&f->ds, 2, span_of(f, "y"), "a \"label\"", "x \\ \x01\n\xff");
  ccn__note(&f->ds, d, (ccn__span){2, 0, 5}, "n");
  ccn__note(&f->ds, d, (ccn__span){0, 0, 0}, "m");
  ccn__hint(&f->ds, d, "h");
  ccn__diag_render_json(&f->ds, d, &f->out);
  same(f->out.at,
       "{\"severity\":\"error\",\"code\":\"CCN0002\",\"message\":"
       "\"x \\\\ \\u0001\\n\\ufffd\",\"file\":\"dir/a.ccn\","
       "\"line\":1,\"column\":19,\"end_line\":1,\"end_column\":20,\"label\":\"a \\\"label\\\"\",\"notes\":["
       "{\"text\":\"n\",\"file\":\"std/optim\",\"line\":1,\"column\":1,\"end_line\":2,\"end_column\":2},"
       "{\"text\":\"m\",\"file\":null,\"line\":null,\"column\":null,\"end_line\":null,\"end_column\":null}],"
       "\"hint\":\"h\"}",
       "as JSON");
}

/* ---- collection ---------------------------------------------------------------------------------------- */

static void collect_limit(fixture *f) {
  f->ds.limit = 3;
  for (int i = 0; i < 10; i++) {
    ccn__diag *d = ccn__error(&f->ds, 1, (ccn__span){1, 0, 1}, "l", "number %d", i);
    ccn__note(&f->ds, d, (ccn__span){0, 0, 0}, "note");
    ccn__hint(&f->ds, d, "hint");
  }
  ccn__warning(&f->ds, 808, (ccn__span){1, 0, 1}, "", "w");
  uint32_t n = 0;
  for (ccn__diag *d = f->ds.first; d; d = d->next) n++;
  ok(f->ds.errors == 10 && f->ds.warnings == 1 && f->ds.count == 4 && n == 4,
     "beyond the limit only counted");
  ok(strcmp(f->ds.first->next->message, "number 1") == 0 && f->ds.last->severity == CCN_SEVERITY_WARNING,
     "in order");
  f->ds = (ccn__diags){.arena = &f->arena, .sources = f->sources, .nsources = 3};
  for (int i = 0; i < 200; i++) ccn__error(&f->ds, 1, (ccn__span){1, 0, 1}, NULL, "n");
  ok(f->ds.errors == 200 && f->ds.count == 100, "the limit is 100 if none is set");
}

static void collect_copies(fixture *f) {
  char text[600];
  memset(text, 'x', 599);
  text[599] = 0;
  ccn__diag *d = ccn__error(&f->ds, 1, (ccn__span){1, 0, 1}, text, "%s", text);
  for (int i = 0; i < 9; i++) ccn__note(&f->ds, d, (ccn__span){0, 0, 0}, "note %d", i);
  memset(text, 'y', 599);
  ok(strlen(d->message) == 599 && d->message[598] == 'x' && d->primary.text[0] == 'x', "texts are copied");
  bool good = d->nnotes == 9;
  for (uint32_t i = 0; i < d->nnotes; i++) good = good && d->notes[i].text[5] == (char)('0' + i);
  ok(good, "notes in order");
  d->hint = NULL;
  ok(strstr(rendered(f, false), "= help: ") && strstr(f->out.at, ccn__error_find(1)->hint),
     "without a hint the code's own is shown");
}

static const struct place_case {
  uint32_t offset, line, column;
} place_cases[] = {{0, 1, 1}, {1, 1, 2}, {2, 1, 2}, {3, 1, 3},  {4, 1, 4},
                   {5, 2, 1}, {6, 2, 2}, {9, 2, 5}, {10, 3, 1}, {99, 3, 1}};

/* "a", e acute (2 bytes), "b", newline, a bad byte, "c", CR LF ... */
static void collect_places(fixture *f) {
  bool good = true;
  for (int table = 0; table < 2; table++) {
    for (size_t i = 0; i < CCN__COUNT(place_cases); i++) {
      const struct place_case *c = &place_cases[i];
      uint32_t line, column;
      ccn__source_locate(table ? &f->arena : NULL, &f->source, c->offset, &line, &column);
      if (line != c->line || column != c->column) {
        printf("# offset %u: %u:%u\n", (unsigned)c->offset, (unsigned)line, (unsigned)column);
        good = false;
      }
    }
    good = good && (table != 0) == (f->source.line != NULL);
  }
  ok(good, "lines and columns, with and without a table");
}

/* ---- JSON and terminals are safe for any bytes --------------------------------------------------------- */

/* A small recogniser of JSON (RFC 8259), itself tried on wrong texts below. */
typedef struct json {
  const char *p;
} json;

static bool json_value(json *j, int depth);

static void json_space(json *j) { j->p += strspn(j->p, " "); }

static bool json_char(json *j, char c) {
  json_space(j);
  if (*j->p != c) return false;
  j->p++;
  return true;
}

/* The bytes of one character of UTF-8 behind p, 0 if there is none; written apart from diag.c's. */
static int utf8_length(const char *p) {
  const unsigned char *u = (const unsigned char *)p;
  if (u[0] < 0x80) return u[0] ? 1 : 0;
  if (u[0] < 0xc2 || u[0] > 0xf4 || (u[1] & 0xc0) != 0x80) return 0;
  if (u[0] < 0xe0) return 2;
  if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[2] & 0xc0) != 0x80) return 0;
  if (u[0] < 0xf0) return 3;
  if ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f) || (u[3] & 0xc0) != 0x80) return 0;
  return 4;
}

static bool json_text(json *j) {
  if (!json_char(j, '"')) return false;
  while (*j->p != '"') {
    int n = utf8_length(j->p);
    if (n == 0 || (unsigned char)*j->p < 0x20) return false;
    if (*j->p == '\\') {
      if (!strchr("\"\\/bfnrtu", j->p[1]) || !j->p[1]) return false;
      if (j->p[1] == 'u' && strspn(j->p + 2, "0123456789abcdefABCDEF") < 4) return false;
      n = j->p[1] == 'u' ? 6 : 2;
    }
    j->p += n;
  }
  j->p++;
  return true;
}

static bool json_members(json *j, int depth, char close, bool keys) {
  j->p++;
  if (json_char(j, close)) return true;
  do {
    if (keys && !(json_text(j) && json_char(j, ':'))) return false;
    if (!json_value(j, depth + 1)) return false;
  } while (json_char(j, ','));
  return json_char(j, close);
}

static bool json_value(json *j, int depth) {
  json_space(j);
  if (depth > 20) return false;
  if (*j->p == '"') return json_text(j);
  if (*j->p == '{') return json_members(j, depth, '}', true);
  if (*j->p == '[') return json_members(j, depth, ']', false);
  if (strncmp(j->p, "null", 4) == 0) return j->p += 4, true;
  size_t digits = strspn(j->p, "0123456789");
  if (!digits || (digits > 1 && *j->p == '0')) return false;
  j->p += digits;
  return true;
}

static bool is_json(const char *text) {
  json j = {text};
  return json_value(&j, 0) && *j.p == 0;
}

/* Only printable characters and newlines; no escape byte, no controls of C1, nothing that reorders. */
static bool is_tame(const char *text) {
  for (const char *p = text; *p;) {
    int n = utf8_length(p);
    if (n == 0 || (n == 1 && *p != '\n' && ((unsigned char)*p < 0x20 || *p == 0x7f))) return false;
    if (n == 2 && (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0) return false;
    if (strncmp(p, "\xe2\x80\xae", 3) == 0 || strncmp(p, "\xe2\x81\xa6", 3) == 0) return false;
    p += n;
  }
  return true;
}

static uint32_t next_random(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  return *state ^= *state << 5;
}

/* Bytes and characters that are likely to break something. */
static void random_text(uint32_t *state, char *out, size_t n) {
  static const char *const pieces[] = {
    "\n",           "\r\n", "\t",      "\x1b[2J", "\xff", "\xc3\xa9",     "\xe2\x80\xae",
    "\xe4\xb8\xad", "\"",   "\\",      "{",       "\xe2", "\xed\xa0\x80", "\xf0\x9f\x98\x80",
    "\xc0\x80",     "\x7f", "\xc2\x9b"};
  size_t i = 0;
  while (i + 8 < n) {
    uint32_t r = next_random(state);
    if (r % 3) {
      out[i++] = (char)(' ' + r / 3 % 95);
    } else {
      const char *piece = pieces[r / 3 % CCN__COUNT(pieces)];
      memcpy(out + i, piece, strlen(piece));
      i += strlen(piece);
    }
  }
  out[i] = 0;
}

static char *random_in_arena(fixture *f, uint32_t *state, size_t n) {
  char *text = ccn__arena_alloc(&f->arena, n);
  random_text(state, text, n);
  return text;
}

/* Renders a diagnostic made of random bytes in both ways. */
static void random_round(fixture *f, uint32_t *state, bool *out_tame, bool *out_valid) {
  char *text = random_in_arena(f, state, 20 + next_random(state) % 380);
  char *message = random_in_arena(f, state, 60);
  set_text(&f->source, message, text, strlen(text));
  if (next_random(state) % 4 == 0) text[f->source.size / 2] = 0; /* a source may hold NUL */
  uint32_t from = next_random(state) % (f->source.size + 2), to = from + next_random(state) % 60;
  ccn__diag *d = ccn__error(&f->ds, 203, (ccn__span){1, from, to}, message, "%s", message);
  ccn__note(&f->ds, d, (ccn__span){1, to, from}, "%s", message);
  ccn__hint(&f->ds, d, "%s", message);
  *out_tame = is_tame(rendered(f, false));
  ccn__text_init(&f->out, &f->arena);
  ccn__diag_render_json(&f->ds, d, &f->out);
  *out_valid = is_json(f->out.at) && !strchr(f->out.at, '\n') && is_tame(f->out.at);
}

static void test_any_bytes(void) {
  static uint32_t state = 12345;
  static bool tame = true, valid = true;
  static int round;
  for (round = 0; round < 3000 && tame && valid; round++) {
    fixture f;
    start(&f, "");
    CCN__TRY(&f.heap, f.trap)
    { random_round(&f, &state, &tame, &valid); }
    CCN__CATCH(&f.heap, f.trap)
    { tame = false; }
    stop(&f);
    if (!valid || !tame) printf("# round %d\n", round);
  }
  ok(tame, "nothing odd reaches the terminal");
  ok(valid, "valid JSON in one line for any bytes");
}

static void test_json_recogniser(void) {
  static const char *const wrong[] = {"",        "{",         "{\"a\"}", "[1,]",     "\"\n\"",
                                      "\"\\x\"", "\"\\u12\"", "[1 2]",   "\"\xff\"", "\"\xed\xa0\x80\"",
                                      "01",      "{}x",       "nul"};
  bool good = is_json("{\"a\":[1,{\"b\":null}],\"c\":\"\\u0041\xc3\xa9\"}") && is_json("[]");
  for (size_t i = 0; i < CCN__COUNT(wrong); i++) good = good && !is_json(wrong[i]);
  ok(good && !is_tame("\x1b") && !is_tame("\xc2\x9b") && is_tame("a\xc3\xa9\n"),
     "the recognisers tell right from wrong");
}

/* ---- out of memory ------------------------------------------------------------------------------------- */

/* With small blocks every request could fail; the arena makes few, so the limit of the heap is moved
 * instead. */
static void test_allocation_failure(void) {
  volatile bool good = true, finished = false;
  for (volatile size_t n = 1; good && !finished && n < 200; n++) {
    fixture f;
    start(&f, program_text);
    f.host.fail_at = n;
    CCN__TRY(&f.heap, f.trap)
    {
      char *long_text = ccn__arena_alloc(&f.arena, 3001);
      memset(long_text, 'x', 3000);
      for (int i = 0; i < 20; i++) {
        build_plain(&f);
        ccn__note(&f.ds, f.ds.last, span_of(&f, "m"), "%s", long_text);
      }
      rendered(&f, true);
      for (ccn__diag *d = f.ds.first; d; d = d->next) ccn__diag_render_json(&f.ds, d, &f.out);
      finished = true;
    }
    CCN__CATCH(&f.heap, f.trap)
    {
      if (f.trap.status != CCN_OUT_OF_MEMORY) good = false;
      uint32_t linked = 0;
      for (ccn__diag *d = f.ds.first; d; d = d->next) linked++;
      if (linked != f.ds.count) good = false;
    }
    stop(&f);
    if (f.heap.live || f.host.blocks) good = false;
  }
  ok(good && finished, "every request fails once: throws, the list stays whole, nothing leaks");
}

/* ---- the table of codes -------------------------------------------------------------------------------- */

static bool starts_well(const char *s) {
  return *s && !(s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z');
}

static bool fences_pair(const char *page) {
  int fences = 0;
  for (const char *p = page; (p = strstr(p, "```")); p += 3) fences++;
  return fences % 2 == 0;
}

/* A page with one program has both, "Wrong:" first, and each program declares its mesh or shows that this
 * is wrong. */
static bool programs_pair(const char *page) {
  const char *fence = strstr(page, "```ccn\n");
  if (!fence) return true;
  const char *wrong = strstr(page, "Wrong:\n\n```ccn\n"), *right = strstr(page, "Right:\n\n```ccn\n");
  return wrong && right && wrong < right && fence == wrong + 8;
}

static void test_table(void) {
  bool ordered = true, titles = true, hints = true, pages = true;
  const ccn__error_info *e;
  uint32_t n = 0, last = 0;
  for (; (e = ccn__error_at(n)); n++) {
    ordered = ordered && e->code > last && ccn__error_find(e->code) == e;
    last = e->code;
    titles =
      titles && starts_well(e->title) && strlen(e->title) < 100 && e->title[strlen(e->title) - 1] != '.';
    hints = hints && e->hint && !strchr(e->hint, '\n') && strlen(e->hint) < 110 &&
            (!*e->hint || e->hint[strlen(e->hint) - 1] != '.');
    bool good =
      strlen(e->explain) > 80 && fences_pair(e->explain) && programs_pair(e->explain) && is_tame(e->explain);
    if (!good) printf("# the page of CCN%04u\n", (unsigned)e->code);
    pages = pages && good;
  }
  ok(n >= 80 && ordered, "codes in order, each found");
  ok(titles, "titles: lower case, no full stop");
  ok(hints, "hints: one line, no full stop");
  ok(pages, "pages: a wrong and a right program, or none");
  ok(!ccn__error_find(0) && !ccn__error_find(9999) && !ccn__error_at(100000), "no other codes");
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static void run(const char *text, void (*test)(fixture *f), const char *name) {
  fixture f;
  start(&f, text);
  CCN__TRY(&f.heap, f.trap)
  { test(&f); }
  CCN__CATCH(&f.heap, f.trap)
  { ok(false, name); }
  stop(&f);
  if (f.heap.live || f.host.blocks) ok(false, name);
}

int main(void) {
  run(program_text, snapshot_plain, "plain");
  run(program_text, snapshot_colour, "colour");
  run(program_text, snapshot_two, "two");
  run(program_text, snapshot_end, "end");
  run(odd_text, snapshot_odd, "odd");
  run(lines_text, snapshot_lines, "lines");
  run("", snapshot_long, "long");
  run("", snapshot_gutter, "gutter");
  run(odd_text, snapshot_json, "json");
  run(program_text, collect_limit, "limit");
  run(program_text, collect_copies, "copies");
  run("a\xc3\xa9"
      "b\n\xff"
      "c\t\r\n",
      collect_places, "places");
  test_json_recogniser();
  test_any_bytes();
  test_allocation_failure();
  test_table();
  printf("1..%d\n", tests);
  return failures ? 1 : 0;
}
