/* test_parser.c: what texts parse to, which errors they give and where, what happens to hostile ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parser.h"

#include <glob.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef CCN_SOURCE_ROOT
#define CCN_SOURCE_ROOT "."
#endif

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - ", good ? "" : "not ", ++tests);
  for (; *name; name++) putchar(*name == '\n' ? '|' : *name); /* one line a test */
  putchar('\n');
}

/* ---- one parse ----------------------------------------------------------------------------------------- */

static size_t requests, fail_at;

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  void *q = NULL;
  (void)old_size, (void)user;
  if (new_size == 0) {
    free(p);
    return NULL;
  }
  if (++requests == fail_at) return NULL;
  return posix_memalign(&q, align < sizeof(void *) ? sizeof(void *) : align, new_size) ? NULL : q;
}

typedef struct parsed {
  ccn__heap heap;
  ccn__arena arena, diag_arena;
  ccn__names names;
  ccn__source source, *sources[2];
  ccn__diags ds;
  ccn__ast *tree;
  bool incomplete;
  char *copy;
} parsed;

/* The text is copied to a block of exactly its size: reading behind it is an error that ASan sees. */
static ccn_status parse_bytes(parsed *p, const char *text, size_t n, bool type) {
  ccn__trap trap;
  ccn_status status = CCN_OK;
  memset(p, 0, sizeof *p);
  p->copy = malloc(n ? n : 1);
  memcpy(p->copy, text, n);
  p->heap.alloc = host_alloc;
  ccn__arena_init(&p->arena, &p->heap);
  ccn__arena_init(&p->diag_arena, &p->heap);
  p->source = (ccn__source){.name = "test", .text = p->copy, .size = (uint32_t)n};
  p->sources[1] = &p->source;
  p->ds.arena = &p->diag_arena;
  p->ds.sources = p->sources;
  p->ds.nsources = 2;
  p->ds.limit = 100;
  CCN__TRY(&p->heap, trap)
  ccn__names_init(&p->names, &p->arena);
  p->tree = type ? ccn__parse_type(&p->arena, &p->names, &p->ds, 1)
                 : ccn__parse(&p->arena, &p->names, &p->ds, 1, &p->incomplete);
  CCN__CATCH(&p->heap, trap)
  { status = trap.status; }
  return status;
}

static void parse(parsed *p, const char *text) {
  if (parse_bytes(p, text, strlen(text), false)) ok(false, "memory ended");
}

static void done(parsed *p) {
  ccn__arena_free(&p->arena);
  ccn__arena_free(&p->diag_arena);
  free(p->copy);
}

/* Every node lies in its parent and in the text; no tree is too high; an ERROR comes with a diagnostic. */
static bool well_formed(const ccn__ast *n, uint32_t size, uint32_t depth, bool *has_error) {
  const ccn__ast *child[3] = {n->a, n->b, n->c};
  const ccn__ast_list list[3] = {n->list, n->params, n->axes};
  if (n->kind >= CCN__AST_COUNT || depth > 5001 || n->span.start > n->span.end || n->span.end > size)
    return false;
  if (n->kind == CCN__AST_ERROR) {
    *has_error = true;
    return true;
  }
  for (int i = 0; i < 3; i++) {
    const ccn__ast *c = child[i];
    if (!c) continue;
    if (c->span.start < n->span.start || c->span.end > n->span.end) return false;
    if (!well_formed(c, size, depth + 1, has_error)) return false;
  }
  for (int i = 0; i < 3; i++) {
    for (uint32_t j = 0; j < list[i].n; j++) {
      const ccn__ast *c = list[i].at[j];
      if (!c || c->span.start < n->span.start || c->span.end > n->span.end) return false;
      if (!well_formed(c, size, depth + 1, has_error)) return false;
    }
  }
  return true;
}

static bool sound(const parsed *p) {
  bool has_error = false;
  return p->tree && well_formed(p->tree, p->source.size, 1, &has_error) && (!has_error || p->ds.errors);
}

/* The tree on one line; of a block's single expression statement only the expression. */
static char *flat(parsed *p, const ccn__ast *n) {
  ccn__text out;
  if (n && n->kind == CCN__AST_BLOCK && n->list.n == 1) n = n->list.at[0];
  if (n && n->kind == CCN__AST_EXPR) n = n->a;
  if (!n) return ccn__arena_strndup(&p->arena, "NULL", 4);
  ccn__text_init(&out, &p->arena);
  ccn__ast_print(n, &out);
  char *to = out.at;
  for (const char *s = out.at; *s; s++) {
    if (*s == '\n') {
      while (s[1] == ' ') s++;
      if (s[1]) *to++ = ' ';
    } else {
      *to++ = *s;
    }
  }
  *to = '\0';
  return out.at;
}

static void tree(const char *text, const char *expected) {
  parsed p;
  parse(&p, text);
  char *got = flat(&p, p.tree);
  bool good = !p.ds.errors && !strcmp(got, expected) && sound(&p);
  ok(good, text);
  if (!good) printf("# errors %u\n# got      %s\n# expected %s\n", p.ds.errors, got, expected);
  done(&p);
}

static void type_tree(const char *text, const char *expected) {
  parsed p;
  parse_bytes(&p, text, strlen(text), true);
  char *got = flat(&p, p.tree);
  ok(!strcmp(got, expected), text);
  if (strcmp(got, expected)) printf("# got      %s\n# expected %s\n", got, expected);
  done(&p);
}

/* All errors of a text as "code@line:column-end", the end a column too (of the same line, else 0). */
static void errors(const char *text, const char *expected) {
  char got[1000] = "";
  parsed p;
  parse(&p, text);
  for (const ccn__diag *d = p.ds.first; d; d = d->next) {
    uint32_t line, column, end_line, end;
    ccn__source_locate(&p.arena, &p.source, d->primary.span.start, &line, &column);
    ccn__source_locate(&p.arena, &p.source, d->primary.span.end, &end_line, &end);
    snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u@%u:%u-%u", *got ? " " : "", d->code, line,
             column, line == end_line ? end : 0);
  }
  bool good = !strcmp(got, expected) && sound(&p);
  ok(good, text);
  if (!good) printf("# got      %s\n# expected %s\n", got, expected);
  done(&p);
}

/* ---- trees --------------------------------------------------------------------------------------------- */

static void test_expressions(void) {
  tree("a + b * c", "(binary + a: (name a) b: (binary * a: (name b) b: (name c)))");
  tree("a - b - c", "(binary - a: (binary - a: (name a) b: (name b)) b: (name c))");
  tree("a // b % c / d",
       "(binary / a: (binary % a: (binary // a: (name a) b: (name b)) b: (name c)) b: (name d))");
  tree("-x ** 2", "(unary - a: (binary ** a: (name x) b: (int 2)))");
  tree("2 ** -1", "(binary ** a: (int 2) b: (unary - a: (int 1)))");
  tree("a ** b ** c", "(binary ** a: (name a) b: (binary ** a: (name b) b: (name c)))");
  tree("-a * b", "(binary * a: (unary - a: (name a)) b: (name b))");
  tree("x.y ** 2", "(binary ** a: (field y a: (name x)) b: (int 2))");
  tree(
    "not a == b and c or d",
    "(binary or a: (binary and a: (unary not a: (binary == a: (name a) b: (name b))) b: (name c)) b: (name d))");
  tree("a and not not b", "(binary and a: (name a) b: (unary not a: (unary not a: (name b))))");
  tree("(a < b) == c", "(binary == a: (binary < a: (name a) b: (name b)) b: (name c))");
  tree("a < b + 1", "(binary < a: (name a) b: (binary + a: (name b) b: (int 1)))");
  tree("1..n + 1", "(range a: (int 1) b: (binary + a: (name n) b: (int 1)))");
  tree("1..=10", "(range inclusive a: (int 1) b: (int 10))");
  tree(
    "a or b with s with t(x)",
    "(with a: (with a: (binary or a: (name a) b: (name b)) b: (name s)) b: (call a: (name t) (arg a: (name x))))");
  tree("f(1, a: x, y,)", "(call a: (name f) (arg a: (int 1)) (arg a a: (name x)) (arg a: (name y)))");
  tree("step(step: step)", "(call a: (name step) (arg step a: (name step)))");
  tree("block<tp>(h)", "(call axis: (name tp) a: (name block) (arg a: (name h)))");
  tree("o.f<a, b>(h)", "(call axis: (name a) axis: (name b) a: (field f a: (name o)) (arg a: (name h)))");
  tree("f(a < b, c)", "(call a: (name f) (arg a: (binary < a: (name a) b: (name b))) (arg a: (name c)))");
  tree("f(a < b, c > (d))",
       "(call a: (name f) (arg a: (call axis: (name b) axis: (name c) a: (name a) (arg a: (name d)))))");
  tree(
    "x[1:, :2, :, 0, a:b]",
    "(index a: (name x) (slice a: (int 1)) (slice b: (int 2)) (slice) (int 0) (slice a: (name a) b: (name b)))");
  tree("blk[*].z[0](1)",
       "(call a: (index a: (field z a: (index a: (name blk) (star))) (int 0)) (arg a: (int 1)))");
  tree("(a)", "(name a)");
  tree("(a,)", "(tuple (name a))");
  tree("(a, (b, c))", "(tuple (name a) (tuple (name b) (name c)))");
  tree("[]", "(list)");
  tree("[1, [2],]", "(list (int 1) (list (int 2)))");
  tree("fn(r, s = 1) { return r }(3)",
       "(call a: (lambda (param r) (param s b: (int 1)) b: (block (return a: (name r)))) (arg a: (int 3)))");
  tree("true != false", "(binary != a: (bool true) b: (bool false))");
  tree("f32(x)", "(call a: (name f32) (arg a: (name x)))");
  tree("f(f32, f32[n] local, f64[])",
       "(call a: (name f) (arg a: (tensor-type f32)) (arg a: (tensor-type f32 (place local) (name n))) "
       "(arg a: (tensor-type f64 [])))");
  tree(
    "load(\"x\", as: f32[B] sliced(2))",
    "(call a: (name load) (arg a: (string (text \"x\"))) (arg as a: (tensor-type f32 (place sliced (arg a: (int 2))) "
    "(name B))))");
}

static void test_literals(void) {
  tree("[1_000_003, 0x1F, 0, 9223372036854775807]",
       "(list (int 1000003) (int 31) (int 0) (int 9223372036854775807))");
  tree("[1.5, 1e-3, 1E2, 0.1, 1_0.2_5]",
       "(list (float 1.5) (float 0.001) (float 100.0) (float 0.1) (float 10.25))");
  tree("[0x1.8p3, 0x1p-2, 0XaP1]", "(list (float 12.0) (float 0.25) (float 20.0))");
  tree("[1e23, 9007199254740993.0, 4.9e-324, 1.7976931348623157e308, 123456789012345678901234567890.5]",
       "(list (float 1e+23) (float 9007199254740992.0) (float 5e-324) (float 1.7976931348623157e+308) "
       "(float 1.2345678901234568e+29))");
  tree("x[1..5]", "(index a: (name x) (range a: (int 1) b: (int 5)))");
  tree("\"\"", "(string)");
  tree("\"a{{b}}\\n\\t\\\"\\\\\\0\\u{e9}\\u{1F600}\"",
       "(string (text \"a{b}\\n\\x09\\\"\\\\\\x00\xC3\xA9\xF0\x9F\x98\x80\"))");
  tree("\"{x}{y:.4f} z\"", "(string (name x) (format \".4f\" a: (name y)) (text \" z\"))");
  tree(
    "\"{f(a: 1)} {x[1:2]} {fn() { return 1 }}\"",
    "(string (call a: (name f) (arg a a: (int 1))) (text \" \") (index a: (name x) (slice a: (int 1) b: (int 2))) "
    "(text \" \") (lambda b: (block (return a: (int 1)))))");
  tree("\"a {\"b {c}\"} d\"", "(string (text \"a \") (string (text \"b \") (name c)) (text \" d\"))");
  tree("\"{n:08} {n:08.3e} {n:g} {n:5d}\"",
       "(string (format \"08\" a: (name n)) (text \" \") (format \"08.3e\" a: (name n)) (text \" \") "
       "(format \"g\" a: (name n)) (text \" \") (format \"5d\" a: (name n)))");
}

static void test_statements(void) {
  tree("", "(block)");
  tree("; ;\n\n;", "(block)");
  tree("a; b\nc", "(block (expr a: (name a)) (expr a: (name b)) (expr a: (name c)))");
  tree("x = 1 +\n\n  2", "(assign a: (name x) b: (binary + a: (int 1) b: (int 2)))");
  tree("x =\n  f(1\n,\n2)", "(assign a: (name x) b: (call a: (name f) (arg a: (int 1)) (arg a: (int 2))))");
  tree("x\n-y", "(block (expr a: (name x)) (expr a: (unary - a: (name y))))");
  tree("f\n(x)", "(block (expr a: (name f)) (expr a: (name x)))");
  tree("a # + 1\nb", "(block (expr a: (name a)) (expr a: (name b)))");
  tree("\xEF\xBB\xBF"
       "a\r\nb\r\n",
       "(block (expr a: (name a)) (expr a: (name b)))");
  tree("(a\n+ b)", "(binary + a: (name a) b: (name b))");
  tree("f(fn() {\n a\n b\n})",
       "(call a: (name f) (arg a: (lambda b: (block (expr a: (name a)) (expr a: (name b))))))");
  tree("let (a, b) = f", "(let a: (tuple (name a) (name b)) b: (name f))");
  tree("(a, b) = f", "(assign a: (tuple (name a) (name b)) b: (name f))");
  tree("l[0] = 1", "(assign a: (index a: (name l) (int 0)) b: (int 1))");
  tree("l.x = 1", "(assign a: (field x a: (name l)) b: (int 1))");
  tree("return", "(return)");
  tree("return a, b", "(return a: (tuple (name a) (name b)))");
  tree(
    "if a { b } else if c { } else { d }",
    "(if a: (name a) b: (block (expr a: (name b))) c: (if a: (name c) b: (block) c: (block (expr a: (name d)))))");
  tree("if a\n{ b }\nelse { c }",
       "(if a: (name a) b: (block (expr a: (name b))) c: (block (expr a: (name c))))");
  tree("if a { b } c", "(block (if a: (name a) b: (block (expr a: (name b)))) (expr a: (name c)))");
  tree("while a { break; continue }", "(while a: (name a) b: (block (break) (continue)))");
  tree("for (a, b) in c as d { }", "(for d a: (tuple (name a) (name b)) b: (name c) c: (block))");
  tree(
    "for t in 1..=10 { f(t) }",
    "(for a: (name t) b: (range inclusive a: (int 1) b: (int 10)) c: (block (expr a: (call a: (name f) (arg a: (name t))))))");
  tree("fn f(a, b = 2) { }", "(fn f (param a) (param b b: (int 2)) b: (block))");
  tree("import \"std/optim\" as optim", "(import optim \"std/optim\")");
  tree("assert a, \"b\"", "(assert a: (name a) b: (string (text \"b\")))");
  tree("mesh (pp: 2, tp)", "(mesh (axis pp a: (int 2)) (axis tp))");
  tree("schedule s for a.b { }", "(schedule s a: (field b a: (name a)) b: (block))");
  tree("schedule s(x) { try fuse(x) }",
       "(schedule s (param x) b: (block (try a: (expr a: (call a: (name fuse) (arg a: (name x)))))))");
  tree(
    "schedule s(x) { try (a, b) = split(x) }",
    "(schedule s (param x) b: (block (try a: (assign a: (tuple (name a) (name b)) b: (call a: (name split) "
    "(arg a: (name x)))))))");
  tree("program p() { on pp: 2 { y = 1 } }",
       "(program p b: (block (on pp a: (int 2) b: (block (assign a: (name y) b: (int 1))))))");
  tree("program p() { repeat k { } }", "(program p b: (block (repeat a: (name k) b: (block))))");
  tree("program p() { call a = b(1) }",
       "(program p b: (block (call-as a b: (call a: (name b) (arg a: (int 1))))))");
  tree("on = 1", "(assign a: (name on) b: (int 1))");
  tree("x.on(r)", "(call a: (field on a: (name x)) (arg a: (name r)))");
  tree("plan(1)", "(call a: (name plan) (arg a: (int 1)))");
  tree("repeat with s", "(with a: (name repeat) b: (name s))");
  tree("repeat(k)", "(call a: (name repeat) (arg a: (name k)))");
}

static void test_types(void) {
  type_tree("f32", "(tensor-type f32)");
  type_tree("f32[N] sliced(0) over tp",
            "(tensor-type f32 (place sliced axis: (name tp) (arg a: (int 0))) (name N))");
  type_tree("f32[2*N + M, 1] sliced(0) over dp sliced(2, unit: 64) over tp",
            "(tensor-type f32 (place sliced axis: (name dp) (arg a: (int 0))) "
            "(place sliced axis: (name tp) (arg a: (int 2)) (arg unit a: (int 64))) "
            "(binary + a: (binary * a: (int 2) b: (name N)) b: (name M)) (int 1))");
  type_tree("[f32[*]] sliced(0) over dp",
            "(list-type (place sliced axis: (name dp) (arg a: (int 0))) a: (tensor-type f32 (star)))");
  type_tree(
    "[(f32[H] local, [i32])]",
    "(list-type a: (tuple-type (tensor-type f32 (place local) (name H)) (list-type a: (tensor-type i32))))");
  type_tree("f32 partial(sum) at(2)",
            "(tensor-type f32 (place partial (arg a: (name sum))) (place at (arg a: (int 2))))");
  type_tree("f32[N] slced(0)", "NULL");
  type_tree("f32[N", "NULL");
  type_tree("f32 f32", "NULL");
  type_tree("", "NULL");
}

/* ---- errors -------------------------------------------------------------------------------------------- */

static void test_errors(void) {
  errors("let x = 3 4\nlet y = )\nz", "1@1:11-12 1@2:9-10");
  errors("a < b < c", "1@1:7-8");
  errors("1..2..3", "1@1:5-7");
  errors("a, b = f(x)", "1@1:2-3");
  errors("f(x) = 1", "1@1:1-5");
  errors("x += 1", "1@1:4-5");
  errors("a == not b", "1@1:6-9");
  errors("x = ()", "1@1:5-7");
  errors("if x = 3 { y = ) }", "1@1:6-7 1@1:16-17");
  errors("x @ y", "2@1:3-4");
  errors("let gr\xC3\xB6\xC3\x9F"
         "e = 1\nx = \xE2\x80\x9Chi\xE2\x80\x9D",
         "2@1:5-10 2@2:5-6");
  errors("x = \xFF\xFE\xFF\ny", "2@1:5-6");
  errors("# \xFF\xFF\ny", "2@1:3-4");
  errors("\"\xC0\xAF\"", "2@1:2-3");
  errors("\"a\x01\"", "2@1:3-4");
  errors("x = 1 & 2", "2@1:7-8");
  errors("print(\"abc)\nprint(\"d\")", "3@1:7-12");
  errors("print(\"a {f(1})\nprint(\")\n", "4@1:12-13 3@2:7-9");
  errors("foo(\"abc,\n  3,\n  g(4)\n)\nlet z = )", "3@1:5-10 1@5:9-10");
  errors("program f(x: f32[N]) {\n  return x\n", "4@1:22-23");
  errors("let a = (1,\nlet b = [2\nc = 3", "4@1:9-10 4@2:9-10");
  errors("f(1, 2\ng(3)\nh(", "4@1:2-3 4@3:2-3");
  errors("f(g(1]\nx", "1@1:6-7 4@1:2-3");
  errors("program f(x: f32) {\n  y = x\nprogram g(x: f32) {\n  return x\n}", "4@1:19-20");
  errors("x = }\ny = 1 }\nz = )", "1@1:5-6 1@2:7-8 1@3:5-6");
  errors(
    "[.5, 1., 1.5.3, 3abc, 0x, 1__0, 1_, 0b1, 0x1.8, 1e, 1.e5]",
    "5@1:2-4 5@1:6-8 5@1:10-15 5@1:17-21 5@1:23-25 5@1:27-31 5@1:33-35 5@1:37-40 5@1:42-47 5@1:49-51 5@1:53-57");
  errors("[1e999, 1e-999, 0e-999]", "5@1:2-7 5@1:9-15");
  errors("9223372036854775808 + 0xFFFFFFFFFFFFFFFF", "6@1:1-20 6@1:23-41");
  errors("\"\\q \\u{} \\u{D800} \\u{110000} \\u41 } {x:y} {x:}\"",
         "7@1:2-4 7@1:5-9 7@1:10-18 7@1:19-29 7@1:30-32 7@1:35-36 7@1:39-41 7@1:45-46");
  errors("\"a {} b\"\n\"{:f}\"", "7@1:4-6 7@2:2-5");
  errors("kernel k(x) {\n  y = )\n}\nplan p { }\nreduction r(a) { }", "9@1:1-7 9@4:1-5 9@5:1-10");
  errors("if a {\n  mesh (dp)\n  program f() { }\n  import \"x\"\n}", "10@2:3-7 10@3:3-10 10@4:3-9");
  errors("try fuse(x)\non pp: 2 { }\nrepeat 2 { }\ncall a = b(1)", "10@1:1-4 10@2:1-3 10@3:1-7 10@4:1-5");
  errors("f(a: 1, b: 2, a: 3)", "11@1:15-16");
  errors("fn f(a, b, a) { }\nmesh (d, d)", "11@1:12-13 11@2:10-11");
  errors("program f(x) { }", "1@1:12-13");
  errors("program f(x: f32[N] slced(0)) {\n  y = )\n}", "1@1:21-26 1@2:7-8");
  errors("program f(x: f32[N] {\n  y = )\n}\nz = ]", "1@1:21-22 1@2:7-8 1@4:5-6");
  errors("program f(x: f32 sliced) { }", "1@1:24-25");
  errors("schedule s { }", "1@1:12-13");
  errors("else { x = 1 }", "1@1:1-5");
  errors("a with 3", "1@1:8-9");
  errors("a with s[0]", "1@1:8-12");
  errors("for a, b in c { d }", "1@1:6-7");
  errors("let in = 3", "1@1:5-7");
  errors("import foo\nimport \"a{x}\"", "1@1:8-11 1@2:8-14");
  errors("let x\n= 3", "1@1:6-6");
  errors("x[]", "1@1:3-4");
  errors("x.1", "1@1:3-4");
  errors("print \"hello\"", "1@1:7-8");
}

/* Each error has a label, lower case messages without a full stop. */
static void test_wording(void) {
  parsed p;
  parse(&p,
        "x = 3 4\ny = \"abc\nz = 1.5.2\nlet w = (\nq = @\nkernel k { }\ntry f(x)\nf(a: 1, a: 2)\n\"\\q\"\n");
  bool good = p.ds.errors >= 8;
  for (const ccn__diag *d = p.ds.first; d; d = d->next) {
    size_t n = strlen(d->message);
    if (!d->primary.text || !*d->primary.text || n == 0 || d->message[n - 1] == '.') good = false;
    if (d->message[0] >= 'A' && d->message[0] <= 'Z') good = false;
  }
  ok(good, "labels and wording");
  done(&p);
}

static void test_kept_names(void) {
  parsed p;
  parse(&p, "let (a, b) = )\nprogram f(x: ]) { }\n");
  const ccn__ast *first = p.tree->list.n ? p.tree->list.at[0] : NULL;
  const ccn__ast *second = p.tree->list.n > 1 ? p.tree->list.at[1] : NULL;
  ok(first && first->kind == CCN__AST_ERROR && first->a && first->a->kind == CCN__AST_TUPLE,
     "a broken let keeps its names");
  ok(second && second->kind == CCN__AST_ERROR && second->name && !strcmp(second->name, "f"),
     "a broken program keeps its name");
  done(&p);
}

static void test_spans(void) {
  parsed p;
  parse(&p, "let s = \"ab {x + yy} c\" \nf(a, bb: (c + d) * e).g ;\n");
  const ccn__ast *let = p.tree->list.at[0], *e = p.tree->list.at[1]->a;
  const ccn__ast *sum = let->b->list.at[1];
  ok(let->span.start == 0 && let->span.end == 23, "span of a statement");
  ok(sum->span.start == 13 && sum->span.end == 19 && sum->nspan.start == 15, "span inside a string");
  ok(sum->b->span.start == 17 && sum->b->span.end == 19, "span of a name inside a string");
  ok(e->span.start == 25 && e->span.end == 48 && e->nspan.start == 47, "span of a field");
  const ccn__ast *product = e->a->list.at[1]->a;
  ok(product->span.start == 34 && product->span.end == 45, "a span starts at the parenthesis");
  ok(product->a->span.start == 35 && product->a->span.end == 40, "what is in parentheses has its own span");
  ok(e->a->list.at[1]->span.start == 30 && e->a->list.at[1]->nspan.end == 32, "span of a named argument");
  done(&p);
}

static void incomplete(const char *text, bool expected) {
  parsed p;
  parse(&p, text);
  ok(p.incomplete == expected, text);
  done(&p);
}

static void test_incomplete(void) {
  static const char *const more[] = {"f(",           "f(1,\n",    "x = [1, 2",   "if a {",
                                     "if a {\n b\n", "x = ",      "x = 1 +\n",   "a and",
                                     "a with",       "return a,", "x = fn(r) {", "program f(x: f32[N],",
                                     "if a",         "x = -",     "f(g(h[",      "f(1 # more\n",
                                     "for i in",     "x ** \n\n"};
  static const char *const enough[] = {"",           "x",          "x = 1\n", "x = )",   "x = 3 4",
                                       "f(1)]",      "let x",      "\"abc",   "f(\"abc", "x = ) + (",
                                       "if a { b }", "\"\\q\" + ", "x.",      "for i",   "let (a, b)"};
  for (size_t i = 0; i < CCN__COUNT(more); i++) incomplete(more[i], true);
  for (size_t i = 0; i < CCN__COUNT(enough); i++) incomplete(enough[i], false);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *s = malloc(*n + 1);
  if (fread(s, 1, *n, f) != *n) *n = 0;
  s[*n] = '\0';
  fclose(f);
  return s;
}

/* The first line says `# error: CCN00xx line L` where the parser is to find the one error. */
static void test_file(const char *path) {
  size_t n = 0;
  unsigned line = 0;
  char *text = read_file(path, &n);
  parsed p;
  bool wrong = text && (sscanf(text, "# error: CCN00xx line %u", &line) == 1 ||
                        sscanf(text, "# error: CCN00%*2u line %u", &line) == 1);
  if (!text || parse_bytes(&p, text, n, false)) {
    ok(false, path);
    free(text);
    return;
  }
  if (wrong) {
    uint32_t at = 0, column;
    if (p.ds.first) ccn__source_locate(&p.arena, &p.source, p.ds.first->primary.span.start, &at, &column);
    ok(p.ds.errors == 1 && at == line && sound(&p), path);
  } else {
    ok(p.ds.errors == 0 && sound(&p), path);
  }
  done(&p);
  free(text);
}

static void test_files(const char *pattern, size_t least) {
  glob_t g;
  memset(&g, 0, sizeof g);
  if (glob(pattern, 0, NULL, &g)) g.gl_pathc = 0;
  ok(g.gl_pathc >= least, pattern);
  for (size_t i = 0; i < g.gl_pathc; i++) test_file(g.gl_pathv[i]);
  globfree(&g);
}

/* ---- hostile texts ------------------------------------------------------------------------------------- */

static char *big;
static size_t big_n;

static void add(const char *s, size_t n) {
  memcpy(big + big_n, s, n);
  big_n += n;
}
static void repeat(const char *s, size_t times) {
  for (size_t i = 0, n = strlen(s); i < times; i++) add(s, n);
}

/* Parses what was added; expects `count` errors (or any number if it is negative), the first with `code`. */
static void hostile(const char *name, int count, unsigned code) {
  parsed p;
  ccn_status status = parse_bytes(&p, big, big_n, false);
  bool good = status == CCN_OK && sound(&p) && (count < 0 || p.ds.errors == (uint32_t)count);
  if (code && (!p.ds.first || p.ds.first->code != code)) good = false;
  ok(good, name);
  if (!good) printf("# %u errors, first CCN%04u\n", p.ds.errors, p.ds.first ? p.ds.first->code : 0u);
  if (status == CCN_OK) { /* the printer walks the same tree */
    ccn__text out;
    ccn__text_init(&out, &p.arena);
    ccn__ast_print(p.tree, &out);
  }
  done(&p);
  big_n = 0;
}

static void prefix(const char *name, const char *head, const char *s, size_t times, const char *tail,
                   int count, unsigned code) {
  repeat(head, 1);
  repeat(s, times);
  repeat(tail, 1);
  hostile(name, count, code);
}

static void test_hostile(void) {
  const size_t m = 1000000;
  big = malloc(12 * m);
  prefix("4 million (", "", "(", 4 * m, "", 1, 8);
  prefix("4 million [", "", "[", 4 * m, "", 1, 8);
  prefix("4 million {", "", "{", 4 * m, "", 1, 1);
  prefix("([{ a million times", "", "([{", m, "", 1, 0);
  prefix(")]} a million times", "", ")]}", m, "", 1, 1);
  prefix("x = (((", "x = ", "(", m, "", 1, 8);
  prefix("f(f(f(", "", "f(", m, "", 1, 8);
  prefix("4 million NUL", "", "\x01", 4 * m, "", 1, 2);
  for (size_t i = 0; i < 4 * m; i++) add("", 1);
  hostile("4 million NUL bytes", 1, 2);
  prefix("invalid UTF-8", "", "\xFF", 4 * m, "", 1, 2);
  prefix("invalid UTF-8 in a string", "\"", "\xE2\x80", 2 * m, "\"", 1, 2);
  prefix("a string of 4 MB", "\"", "a", 4 * m, "\"", 0, 0);
  prefix("an open string of 4 MB", "\"", "a", 4 * m, "", 1, 3);
  prefix("open strings on 100,000 lines", "", "x = \"abc\n", m / 10, "", 100000, 3);
  prefix("4 million quotes", "", "\"", 4 * m, "", 1, 1);
  prefix("strings in strings", "", "\"{", m, "", 1, 8);
  prefix("a name of 4 MB", "", "a", 4 * m, "", 0, 0);
  prefix("an integer of 4 MB", "x = ", "9", 4 * m, "", 1, 6);
  prefix("a float of 4 MB", "x = 0.", "9", 4 * m, "", 1, 5);
  prefix("a hex number of 4 MB", "0x", "f", 4 * m, "", 1, 6);
  prefix("a + a + ...", "x = a", "+a", m, "\ny = )", 2, 8);
  prefix("a + a + ... over lines", "x = a", " +\na", m, "", 1, 8);
  prefix("4,000 terms are fine", "x = a", "+a", 4000, "", 0, 0);
  prefix("a * a * ...", "a", "*a", m, "", 1, 8);
  prefix("a ** a ** ...", "a", "**a", m, "", 1, 8);
  prefix("a or a or ...", "a", " or a", m, "", 1, 8);
  prefix("a < a < ...", "a", "<a", m, "", 1, 1);
  prefix("a..a..", "a", "..a", m, "", 1, 1);
  prefix("a < b, b, b, ...", "f(a < b", ",b", m, ")", 0, 0);
  prefix("f(a<b, a<b, ...", "f(", "a<b,", m / 4, ")", 0, 0);
  prefix("- - - ...", "", "-", m, "1", 1, 8);
  prefix("not not ...", "", "not ", m, "1", 1, 8);
  prefix("x.y.y...", "x", ".y", m, "", 1, 8);
  prefix("f()()()...", "f", "()", m, "", 1, 8);
  prefix("x[0][0]...", "x", "[0]", m, "", 1, 8);
  prefix("p with s with s ...", "p", " with s", m, "", 1, 8);
  prefix("if else if ...", "if a { }", " else if a { }", m / 2, "", 1, 8);
  prefix("if a { if a { ...", "", "if a { ", m, "", 1, 8);
  prefix("fn f() { on lines", "", "fn f() {\n", m, "", 1, 8);
  prefix("fn() { fn() { ...", "x = ", "fn() { ", m, "", 1, 8);
  prefix("try try ...", "schedule s(x) {\n", "try ", m, "f(x)\n}\n", 1, 8);
  prefix("[[[ type", "fn f(x: ", "[", m, "f32) { }", 1, 8);
  prefix("let (((", "let ", "(", m, "", 1, 8);
  repeat("x = ", 1); /* chains inside brackets add up */
  repeat("(", 150);
  for (int i = 0; i < 150; i++) {
    repeat("a", 1);
    repeat("+a", 100);
    repeat(")+", 1);
  }
  repeat("b", 1);
  hostile("chains inside brackets", 1, 8);
  prefix("a list of a million", "x = [", "1,", m, "]", 0, 0);
  prefix("100,000 equal arguments", "f(", "a: 1,", m / 10, ")", 99999, 11);
  prefix("a million semicolons", "", ";", m, "", 0, 0);
  prefix("a million errors", "", "x = )\n", m / 2, "", 500000, 1);
  prefix("a million comments", "x = a < ", "#\n", m, "b > (c)", 0, 0);
  prefix("4 MB of statements", "", "y = f(x, 0.5 * z[1:]) - \"{n}\" # c\n", m / 9, "", 0, 0);
  free(big);
}

/* Wherever memory ends, the parse ends with CCN_OUT_OF_MEMORY and everything is freed. */
static void test_out_of_memory(void) {
  size_t n = 0;
  char *text = read_file(CCN_SOURCE_ROOT "/tests/parser/listings/words.ccn", &n);
  bool good = text != NULL;
  for (fail_at = 1; good; fail_at++) {
    parsed p;
    requests = 0;
    ccn_status status = parse_bytes(&p, text, n, false);
    bool failed = requests >= fail_at;
    done(&p);
    good = status == (failed ? CCN_OUT_OF_MEMORY : CCN_OK) && p.heap.live == 0;
    if (!failed) break;
  }
  fail_at = 0;
  ok(good, "memory ends at every request");
  free(text);
}

/* Another decimal point in the host's locale changes nothing. */
static void test_locale(void) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  bool found = false;
  for (size_t i = 0; i < CCN__COUNT(names) && !found; i++) found = setlocale(LC_NUMERIC, names[i]) != NULL;
  if (!found) {
    printf("ok %d - locale # SKIP no locale with a decimal comma\n", ++tests);
    return;
  }
  tree("[1.5, 123456789.123456789e-30]", "(list (float 1.5) (float 1.2345678912345679e-22))");
  setlocale(LC_NUMERIC, "C");
}

int main(void) {
  test_expressions();
  test_literals();
  test_statements();
  test_types();
  test_errors();
  test_wording();
  test_kept_names();
  test_spans();
  test_incomplete();
  test_files(CCN_SOURCE_ROOT "/tests/parser/listings/*.ccn", 6);
  test_files(CCN_SOURCE_ROOT "/tests/cases/right/*.ccn", 13);
  test_files(CCN_SOURCE_ROOT "/tests/cases/wrong/*.ccn", 55);
  test_out_of_memory();
  test_locale();
  test_hostile();
  printf("1..%d\n", tests);
  return failures != 0;
}
