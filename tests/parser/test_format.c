/* test_format.c: what texts are formatted to; the project's own programs stay as they are; nothing changes
 * the tree.
 * SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "parser.h"

#ifndef CCN_SOURCE_ROOT
#define CCN_SOURCE_ROOT "."
#endif

static int tests, failures;
static size_t requests, fail_at;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size, (void)user;
  if (new_size == 0) free(p);
  if (new_size == 0 || ++requests == fail_at) return NULL;
  return aligned_alloc(align, (new_size + align - 1) / align * align);
}

/* ---- one text -------------------------------------------------------------------------------------------
 */

typedef struct formatted {
  ccn__heap heap;
  ccn__arena arena;
  ccn__trap trap;
  ccn__names names;
  ccn__source source, *sources[2];
  ccn__diags ds;
  ccn__text out, tree;
  bool good;
  char *copy;
} formatted;

/* The text lies in a block of exactly its size: reading behind it is an error that ASan sees. */
static void format(formatted *f, const char *text, size_t n) {
  memset(f, 0, sizeof *f);
  f->copy = malloc(n ? n : 1);
  if (n) memcpy(f->copy, text, n);
  f->heap.alloc = host_alloc;
  ccn__arena_init(&f->arena, &f->heap);
  f->source = (ccn__source){.name = "test", .text = f->copy, .size = (uint32_t)n};
  f->sources[1] = &f->source;
  f->ds = (ccn__diags){.arena = &f->arena, .sources = f->sources, .nsources = 2, .limit = 100};
  ccn__text_init(&f->out, &f->arena);
  ccn__text_init(&f->tree, &f->arena);
  CCN__TRY(&f->heap, f->trap)
  ccn__names_init(&f->names, &f->arena);
  f->good = ccn__format_source(&f->arena, &f->names, &f->ds, 1, &f->out);
  if (f->good) ccn__ast_print(ccn__parse(&f->arena, &f->names, &f->ds, 1, NULL), &f->tree);
  CCN__CATCH(&f->heap, f->trap)
  { f->good = false; }
}

static void done(formatted *f) {
  ccn__arena_free(&f->arena);
  free(f->copy);
}

static bool same_text(const ccn__text *a, const char *b, size_t n) {
  return a->n == n && (n == 0 || memcmp(a->at, b, n) == 0);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Tokens and comments are all there: only blanks differ. */
static bool same_but_blanks(const char *a, size_t na, const char *b, size_t nb) {
  for (size_t i = na >= 3 && memcmp(a, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, j = 0;; i++, j++) {
    while (i < na && is_blank(a[i])) i++;
    while (j < nb && is_blank(b[j])) j++;
    if (i == na || j == nb) return i == na && j == nb;
    if (a[i] != b[j]) return false;
  }
}

/* What holds for every text without errors; `expected` may be NULL. */
static bool holds(const char *text, size_t n, const char *expected, size_t expected_n) {
  formatted once, twice;
  format(&once, text, n);
  bool good = once.good;
  if (good) {
    format(&twice, once.out.n ? once.out.at : "", once.out.n);
    good = twice.good && same_text(&twice.out, once.out.at, once.out.n);
    if (!good) printf("# formatting again changes it to\n%s", twice.out.n ? twice.out.at : "");
    good = good && same_text(&once.tree, twice.tree.at, twice.tree.n);
    good = good && same_but_blanks(text, n, once.out.at, once.out.n);
    done(&twice);
  }
  if (good && expected && !same_text(&once.out, expected, expected_n)) good = false;
  if (!good) printf("# got\n%s# errors %u\n", once.out.n ? once.out.at : "", once.ds.errors);
  done(&once);
  return good;
}

static void becomes(const char *name, const char *text, const char *expected) {
  ok(holds(text, strlen(text), expected, strlen(expected)), name);
}

static void stays(const char *name, const char *text) { becomes(name, text, text); }

static void refused(const char *name, const char *text) {
  formatted f;
  format(&f, text, strlen(text));
  ok(!f.good && f.out.n == 0 && f.ds.errors > 0, name);
  done(&f);
}

/* ---- files ----------------------------------------------------------------------------------------------
 */

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *text = malloc(1 << 20);
  *n = f && text ? fread(text, 1, 1 << 20, f) : 0;
  if (f) fclose(f);
  return text;
}

static void files(const char *pattern, bool fixed) {
  glob_t g;
  char path[512];
  snprintf(path, sizeof path, "%s/%s", CCN_SOURCE_ROOT, pattern);
  if (glob(path, 0, NULL, &g) != 0) {
    ok(false, pattern);
    return;
  }
  for (size_t i = 0; i < g.gl_pathc; i++) {
    size_t n;
    formatted f;
    char *text = read_file(g.gl_pathv[i], &n);
    format(&f, text, n);
    bool refuse = !fixed && f.ds.errors > 0; /* some tests are about errors */
    done(&f);
    ok(refuse || holds(text, n, fixed ? text : NULL, n), g.gl_pathv[i] + strlen(CCN_SOURCE_ROOT) + 1);
    free(text);
  }
  globfree(&g);
}

static void test_files(void) {
  files("examples/*.ccn", true);
  files("stdlib/*.ccn", true);
  files("tests/parser/listings/[!w]*.ccn", true); /* words.ccn is there to be odd */
  files("tests/parser/listings/words.ccn", false);
  files("tests/cases/*/*.ccn", false);
  files("tests/ui/*.ccn", false);
}

/* ---- blanks
 * ------------------------------------------------------------------------------------------------ */

static void test_gaps(void) {
  becomes("operators", "x=1+2*3-4/5//6%7**8\n", "x = 1 + 2 * 3 - 4 / 5 // 6 % 7 ** 8\n");
  becomes("comparisons and words", "x=a<b and not  c!=d\n", "x = a < b and not c != d\n");
  becomes("unary minus", "x = - 1 - - y ** - z; f( - 1,- 2)[ - 1]\n", "x = -1 - -y ** -z; f(-1, -2)[-1]\n");
  becomes("a statement that starts with a minus", "if a { } - x\n-x\n", "if a { } -x\n-x\n");
  becomes("calls, indices, fields", "f (x ,y : 1) [ 0 ] . g ( )\n", "f(x, y: 1)[0].g()\n");
  becomes("slices and stars", "y = x [ a : b+1 , : , : 2 , * ]\n", "y = x[a:b + 1, :, :2, *]\n");
  becomes("ranges", "for i in 0 .. n-1 {f(i)}\nx = 1 ..= 2\n", "for i in 0..n - 1 { f(i) }\nx = 1..=2\n");
  becomes("axes and comparisons", "y = f < a , b > (x); z = f <a; w = g.h<a>(x)\n",
          "y = f<a, b>(x); z = f < a; w = g.h<a>(x)\n");
  becomes("a point behind a number stays away", "x = 1 .e5\n", "x = 1 .e5\n");
  becomes("tuples and patterns", "let(a,(b,)) = ( 1,( 2, ) )\nfor(a,b)in[ ]{ }\n",
          "let (a, (b,)) = (1, (2,))\nfor (a, b) in [] { }\n");
  becomes("functions", "fn f (a,b=1 ){return(a)}\nlet g = fn (x) {x} (1)\n",
          "fn f(a, b = 1) { return (a) }\nlet g = fn(x) { x }(1)\n");
  becomes("words before brackets", "assert(a),\"t\"\nx = not(a) and(b)\nwhile(a){break}\n",
          "assert (a), \"t\"\nx = not (a) and (b)\nwhile (a) { break }\n");
  becomes("types", "program p<ax>(x:f32 [N,2*M] sliced( 0,unit:4 )over ax,y:[f32[ * ]],z:(f32,i32)=q){ }\n",
          "program p<ax>(x: f32[N, 2 * M] sliced(0, unit: 4) over ax, y: [f32[*]], z: (f32, i32) = q) { }\n");
  becomes("declarations", "mesh( dp:2,tp )\nimport  \"a b\"  as c\nschedule  s  for  a . b{ }\n",
          "mesh (dp: 2, tp)\nimport \"a b\" as c\nschedule s for a.b { }\n");
  becomes("statements of programs",
          "program p(x: f32) { on dp:2{y=x}; repeat  3{y=f (y)}; call  z=f(y) ;return y,z }\n",
          "program p(x: f32) { on dp: 2 { y = x }; repeat 3 { y = f(y) }; call z = f(y); return y, z }\n");
  becomes("try", "schedule s(x) { try(a,b)=split(x); try[a]; try-x; try  fuse(a) }\n",
          "schedule s(x) { try (a, b) = split(x); try [a]; try -x; try fuse(a) }\n");
  becomes("strings are not touched", "print( \"{ f( x,y ) :3}  {\"in{ a }\"} {{\" )\n",
          "print(\"{ f( x,y ) :3}  {\"in{ a }\"} {{\")\n");
}

static void test_lines(void) {
  becomes("no text", "", "");
  becomes("blanks only", " \n\t\n\r\n", "");
  becomes("a comment only", "  # x \t\r\n", "# x\n");
  becomes("a newline at the end", "x", "x\n");
  becomes("no blanks at the ends", "x  \n y\t \n", "x\ny\n");
  becomes("empty lines", "\n\n\nx\n\n \n\ny\n# c\n\n\n# d\n\n", "x\n\ny\n# c\n\n# d\n");
  becomes("CRLF and a byte order mark", "\xEF\xBB\xBFx\r\n# c\r\n\r\ny", "x\n# c\n\ny\n");
  becomes("semicolons stay", "a;b ; ;c;\n;\n", "a; b;; c;\n;\n");
  ok(holds("x # a\0\0 \ny", 10, "x # a\0\0\ny\n", 10), "zero bytes in comments stay");
}

/* ---- indentation
 * -------------------------------------------------------------------------------------------- */

static void test_blocks(void) {
  becomes("blocks", "if a {\nb\n    if c\n {\n d }\nelse {\ne\n}\n} else   if f { g\nh }\ni\n",
          "if a {\n  b\n  if c\n  {\n    d }\n  else {\n    e\n  }\n} else if f { g\n  h }\ni\n");
  becomes("several blocks of a line", "for a in b { for c in d {\ne\n} }\nf\n",
          "for a in b { for c in d {\n  e\n} }\nf\n");
  becomes("comments", "# a\n   # b\nif a {\n# c\nb\n# d\n}\n  # e\n",
          "# a\n# b\nif a {\n  # c\n  b\n  # d\n}\n# e\n");
}

static void test_brackets(void) {
  becomes("below the bracket", "x = f(a,\nb,\n# c\n  d)\n", "x = f(a,\n      b,\n      # c\n      d)\n");
  becomes("two columns in", "x = f(\na, [\nb,\n   c\n],\n# d\n)\n",
          "x = f(\n  a, [\n    b,\n    c\n  ],\n  # d\n)\n");
  becomes("a function in a call", "x = f(a, fn(r) {\nlet b = r\nreturn b\n}, c)\n",
          "x = f(a, fn(r) {\n  let b = r\n  return b\n}, c)\n");
  becomes("a function on its own line", "x = f(\na,\nfn(r) {\nreturn r\n})\n",
          "x = f(\n  a,\n  fn(r) {\n    return r\n  })\n");
  becomes(
    "a header of several lines",
    "program p(a: f32,\n b: f32) {\nreturn a\n}\nprogram q(\na: f32\n) {\nreturn a\n}\n",
    "program p(a: f32,\n          b: f32) {\n  return a\n}\nprogram q(\n  a: f32\n) {\n  return a\n}\n");
  becomes("axes", "y = f<a,\nb>(x)\n", "y = f<a,\n      b>(x)\n");
  stays("a matrix", "let m = tensor([[ 1,  2],\n                [10, -3]], f32)\n");
  becomes("columns need not be single", "f(a:  1,   b,\n  c)\n", "f(a:  1,   b,\n  c)\n");
  becomes("one line is no column", "f(a:  1,   b)\n", "f(a: 1, b)\n");
  becomes(
    "far to the right: two columns in",
    "x = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(b,\n  c)\n",
    "x = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(b,\n  c)\n");
}

static void test_going_on(void) {
  stays("a line that goes on keeps its distance", "let x = a +\n        b\nif a {\n  y = c *\n    d\n}\n");
  becomes("and moves with its statement", "if a {\n      x = a +\n          b\n}\n",
          "if a {\n  x = a +\n      b\n}\n");
  becomes("or gets one", "x =\na +\n b\nreturn a,\n# c\nb\n",
          "x =\n    a +\n    b\nreturn a,\n    # c\n    b\n");
}

/* ---- alignment
 * ---------------------------------------------------------------------------------------------- */

static void test_bindings(void) {
  stays("aligned", "(a, b) = f(x)\nc      = 1\n");
  stays("aligned farther out than need be", "a    = 1\nbb   = 2\n");
  stays("not aligned", "a = 1\nbb = 2\nccc = 3\n");
  becomes("padded alone", "a   = 1\nbb = 2\n\nc   = 3\n", "a = 1\nbb = 2\n\nc = 3\n");
  becomes("one line slipped", "a   = 1\nbb = 2\nccc = 3\n", "a   = 1\nbb  = 2\nccc = 3\n");
  becomes("a name grew", "a   = 1\nlonger = 2\nccc = 3\nd   = 4\n",
          "a      = 1\nlonger = 2\nccc    = 3\nd      = 4\n");
  stays("lines before and behind that never were aligned",
        "longer_one = 0\na   = 1\nbbb = 2\nlonger_two = 3\n");
  becomes("a shape changed", "(a,b)   = f(x)\nc       = 1\n", "(a, b)  = f(x)\nc       = 1\n");
  stays("over lines that go on and comments", "a   = f(x,\n        y)\n# c\nbbb = 1 +\n      2\n");
  becomes("an empty line ends a run", "a   = 1\n\nbbb = 2\n", "a = 1\n\nbbb = 2\n");
  becomes("a block ends a run", "a   = 1\nif b {\nccc = 2\n}\n", "a = 1\nif b {\n  ccc = 2\n}\n");
  becomes("wide left sides take no part",
          "a   = 1\nbbb = 2\nx[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]   = 3\n",
          "a   = 1\nbbb = 2\nx[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa] = 3\n");
  stays("statements of one line", "fn a(x)   { return x }\nfn bbb(x) { return x + 1 }\nif c { d }\n");
}

static void test_comments(void) {
  stays("behind code", "a        # one\nbb       # two\nccc # three\nd  # four\n");
  becomes("no blank before", "a#x\nb  #y\n", "a  #x\nb  #y\n");
  becomes("code grows into them", "f(a,b,c) # one\ng        # two\n",
          "f(a, b, c)  # one\ng           # two\n");
  becomes("code moves under them", "if a {\n        b  # one\n        c  # two\n}\n",
          "if a {\n  b        # one\n  c        # two\n}\n");
  stays("a comment goes on below", "a    # one\n     # and more\nb    # two\n");
  becomes("and moves along", "f(a,b) # one\n       # and more\n", "f(a, b)  # one\n         # and more\n");
  becomes("tabs", "a\t# one\nb\t# two\n\tc\n", "a       # one\nb       # two\nc\n");
  becomes("characters count, not bytes", "p(\"\xC3\xA4\xC3\xB6\")     # one\np(\"ao\")     # two\n",
          "p(\"\xC3\xA4\xC3\xB6\")     # one\np(\"ao\")     # two\n");
}

/* ---- limits
 * ------------------------------------------------------------------------------------------------- */

static void test_refused(void) {
  refused("a syntax error", "x = = 1\n");
  refused("an open bracket", "f(1\n");
  refused("an open string", "x = \"a\n");
  refused("an unknown character", "x = 1 ? 2\n");
  refused("a comment that is not UTF-8", "x # \xFF\n");
}

/* The output stays linear in the input. */
static void test_growth(void) {
  enum { N = 3000, ROOM = 1 << 17 };
  char *text = malloc(ROOM);
  size_t n = 0;
  formatted f;
  for (int i = 0; i < 150; i++) n += (size_t)sprintf(text + n, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa(a,");
  for (int i = 0; i < N; i++) n += (size_t)sprintf(text + n, "\na,");
  for (int i = 0; i < 150; i++) text[n++] = ')';
  format(&f, text, n);
  ok(f.good && f.out.n < 100 * n, "deep brackets");
  done(&f);
  n = (size_t)sprintf(text, "x[");
  for (int i = 0; i < N; i++) n += (size_t)sprintf(text + n, "a,");
  n += (size_t)sprintf(text + n, "] = 1 # c\n");
  for (int i = 0; i < N; i++) n += (size_t)sprintf(text + n, "b   = 1 # c\n");
  format(&f, text, n);
  ok(f.good && f.out.n < 3 * n, "one long line among short ones");
  done(&f);
  free(text);
}

static void test_memory(void) {
  static const char text[] = "program p(x: f32[N]) { # c\n  y   = x\n  zzz = f<a>(y,\n \"a{x}\")\n}\n";
  bool all = true;
  for (fail_at = 1;; fail_at++) {
    formatted f;
    requests = 0;
    format(&f, text, sizeof text - 1);
    const bool failed = requests >= fail_at;
    all &= failed ? f.trap.status == CCN_OUT_OF_MEMORY : f.good;
    ccn__arena_free(&f.arena);
    all &= f.heap.live == 0;
    free(f.copy);
    if (!failed) break;
  }
  fail_at = 0;
  ok(all, "memory ends at any request");
}

int main(void) {
  test_files();
  test_gaps();
  test_lines();
  test_blocks();
  test_brackets();
  test_going_on();
  test_bindings();
  test_comments();
  test_refused();
  test_growth();
  test_memory();
  printf("1..%d\n", tests);
  return failures != 0;
}
