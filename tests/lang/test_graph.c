/* test_graph.c: graphs: made, printed, read back, verified; what is wrong with hostile text and broken
 * graphs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ast.h"

static int tests, failures;

static void ok(bool good, const char *name) {
  if (!good) failures++;
  printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
}

static void same(const char *got, const char *want, const char *name) {
  bool good = got && strcmp(got, want) == 0;
  if (!good) printf("# want:\n%s# got:\n%s\n", want, got ? got : "(nothing)");
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
  ccn__names names;
  ccn__source source;
  ccn__source *sources[2];
  ccn__diags ds;
  ccn__graph *g; /* that is built */
  ccn__mesh mesh;
} fixture;

static void start(fixture *f) {
  memset(f, 0, sizeof *f);
  f->heap = (ccn__heap){.alloc = host_alloc, .user = &f->host};
  f->heap.trap = &f->trap; /* nothing throws here but for a defect: then main() ends */
  if (setjmp(f->trap.jump)) {
    printf("not ok %d - a throw that nobody waits for\n", ++tests);
    exit(1);
  }
  ccn__arena_init(&f->arena, &f->heap);
  ccn__names_init(&f->names, &f->arena);
  f->source.name = "graph";
  f->sources[1] = &f->source;
  f->ds = (ccn__diags){.arena = &f->arena, .sources = f->sources, .nsources = 2};
}

static void stop(fixture *f) {
  ccn__arena_free(&f->arena);
  if (f->host.blocks) ok(false, "nothing leaks");
}

static const char *print(fixture *f, const ccn__graph *g) {
  ccn__text t;
  ccn__text_init(&t, &f->arena);
  ccn__graph_print(g, &t);
  return t.at;
}

/* The first graph of the text, or NULL: then f->ds.last says why. */
static ccn__graph *parse(fixture *f, const char *text, size_t n) {
  ccn__graph_list l;
  f->source.text = text;
  f->source.size = (uint32_t)n;
  f->source.line = NULL;
  f->source.nlines = 0;
  return ccn__graph_parse(&f->arena, &f->names, &f->ds, 1, &l) && l.n ? l.at[0] : NULL;
}

static const char *complaint(const fixture *f) {
  return f->ds.last ? f->ds.last->message : "(no diagnostic)";
}

/* ---- building ------------------------------------------------------------------------------------------ */

static ccn__name name(fixture *f, const char *s) { return ccn__internz(&f->names, s); }

static const ccn__dim *sym(fixture *f, const char *s) {
  ccn__span none = {0};
  return ccn__dim_symbol(&f->arena, ccn__graph_symbol(f->g, name(f, s), CCN__SYM_DIM, 0, none));
}

static const ccn__dim *num(fixture *f, int64_t i) { return ccn__dim_const(&f->arena, i); }

static ccn__type type1(fixture *f, ccn__dtype t, const ccn__dim *d) {
  ccn__type r = {.dtype = (uint8_t)t, .naxes = (uint8_t)f->mesh.naxes, .rank = d != NULL};
  r.dim[0] = d;
  return r;
}

static ccn__id add(fixture *f, ccn__op op, const char *called, ccn__id x, ccn__id y, ccn__type t,
                   ccn__attrs as) {
  ccn__id in[2] = {x, y};
  ccn__span none = {0};
  ccn__id id = ccn__graph_add(f->g, op, in, (x != CCN__NO_ID) + (y != CCN__NO_ID), &t, as, none, 0);
  if (called) f->g->nodes.at[id].name = name(f, called);
  return id;
}

static ccn__id add_param(fixture *f, const char *called, ccn__type t) {
  ccn__attr number = {.key = CCN__A_NUMBER, .i = f->g->params.n};
  ccn__id id = add(f, CCN__OP_PARAM, called, CCN__NO_ID, CCN__NO_ID, t, (ccn__attrs){&number, 1});
  *CCN__PUSH(&f->arena, &f->g->params) = (ccn__param){id, CCN__NO_ID};
  return id;
}

static void test_built(void) {
  fixture f;
  start(&f);
  f.mesh = (ccn__mesh){.naxes = 1, .name = {name(&f, "dp")}};
  ccn__graph *g = f.g = ccn__graph_new(&f.arena, &f.names, name(&f, "sgd"), &f.mesh);
  const ccn__dim *n = sym(&f, "N");
  ccn__span none = {0};
  uint32_t size = ccn__graph_symbol(g, name(&f, "dp"), CCN__SYM_SIZE, 0, none);
  ccn__type whole = type1(&f, CCN__F32, n), local = whole, scalar = type1(&f, CCN__F32, NULL);
  local.place[0].kind = CCN__LOCAL;
  ccn__id x = add_param(&f, "g", local), p = add_param(&f, "p", whole);
  ccn__attr over[3] = {
    {.key = CCN__A_RED, .i = CCN__RED_SUM}, {.key = CCN__A_OVER, .i = 1}, {.key = CCN__A_ORDER}};
  ccn__id sum = add(&f, CCN__OP_ALLREDUCE, "gsum", x, CCN__NO_ID, whole, (ccn__attrs){over, 3});
  g->nodes.at[sum].autoname = name(&f, "allreduce");
  ccn__attr value = {.key = CCN__A_VALUE, .lit = ccn__lit_dim(&f.arena, ccn__dim_symbol(&f.arena, size))};
  ccn__id c = add(&f, CCN__OP_CONST, NULL, CCN__NO_ID, CCN__NO_ID, scalar, (ccn__attrs){&value, 1});
  ccn__id avg = add(&f, CCN__OP_DIV, "avg", sum, c, whole, (ccn__attrs){0});
  value.lit = ccn__lit_float(&f.arena, 0.1);
  ccn__id lr = add(&f, CCN__OP_CONST, NULL, CCN__NO_ID, CCN__NO_ID, scalar, (ccn__attrs){&value, 1});
  ccn__id d = add(&f, CCN__OP_MUL, NULL, avg, lr, whole, (ccn__attrs){0});
  ccn__id e = add(&f, CCN__OP_SUB, "blk[0].new", p, d, whole, (ccn__attrs){0});
  ccn__id u = add(&f, CCN__OP_UPDATE, NULL, p, e, whole, (ccn__attrs){0});
  g->params.at[1].update = u;
  g->outputs = &u;
  g->noutputs = 1;
  const char *text = print(&f, g), *fault = ccn__graph_verify(g);
  same(text,
       "graph sgd {\n"
       "  mesh dp\n"
       "  dim N, size(dp)\n"
       "  %0 \"g\" = param {number: 0} : f32[N] local over dp\n"
       "  %1 \"p\" = param {number: 1} : f32[N]\n"
       "  %2 \"gsum\" (allreduce) = allreduce %0 {op: sum, over: dp, order: rank} : f32[N]\n"
       "  %3 = const {value: size(dp)} : f32\n"
       "  %4 \"avg\" = div %2, %3 : f32[N]\n"
       "  %5 = const {value: 0x1.999999999999ap-4} : f32  # 0.1\n"
       "  %6 = mul %4, %5 : f32[N]\n"
       "  %7 \"blk[0].new\" = sub %1, %6 : f32[N]\n"
       "  %8 = update %1, %7 : f32[N]\n"
       "  return %8\n"
       "}\n",
       "a graph that is built prints");
  ok(fault == NULL, "and verifies");
  if (fault) printf("# %s\n", fault);
  ccn__graph *again = parse(&f, text, strlen(text));
  same(again ? print(&f, again) : complaint(&f), text, "and reads back the same");
  ok(again && again->params.n == 2 && again->params.at[1].update == u, "parameters and updates are found");
  ok(again && again->nodes.at[u].span.source == 1, "nodes read have spans");
  ok(ccn__graph_symbol(g, name(&f, "N"), CCN__SYM_DIM, 0, none) == 0 &&
       ccn__graph_symbol(g, NULL, CCN__SYM_SIZE, 0, none) == size && g->symbols.n == 2,
     "symbols are found again");
  same(ccn__graph_symbol_name(g, size), "size(dp)", "a derived symbol has a name");
  same(ccn__graph_symbol_name(g, 99), "?", "a symbol that is not there has none");
  stop(&f);
}

/* Every kind of literal, with its exact bits. */
static void test_literals(void) {
  static const double floats[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.5,
                                  0.1,
                                  1e308,
                                  5e-324,
                                  -5e-324,
                                  2.2250738585072014e-308,
                                  1.0 / 3,
                                  INFINITY,
                                  -INFINITY,
                                  0x1.fffffffffffffp+1023};
  static const uint64_t nans[] = {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff8000000000001u,
                                  0xfffdeadbeef12345u};
  static const int64_t whole[] = {0, 1, -1, INT64_MAX, INT64_MIN};
  fixture f;
  start(&f);
  f.mesh = (ccn__mesh){.naxes = 1, .name = {name(&f, "dp")}};
  f.g = ccn__graph_new(&f.arena, &f.names, NULL, &f.mesh);
  const ccn__dim *n = sym(&f, "N"), *odd = sym(&f, "len(ws)"), *word = sym(&f, "nan");
  const ccn__lit *lits[64];
  uint32_t count = 0;
  for (size_t i = 0; i < CCN__COUNT(floats); i++) lits[count++] = ccn__lit_float(&f.arena, floats[i]);
  for (size_t i = 0; i < CCN__COUNT(nans); i++) {
    double x;
    memcpy(&x, &nans[i], sizeof x);
    lits[count++] = ccn__lit_float(&f.arena, x);
  }
  for (size_t i = 0; i < CCN__COUNT(whole); i++) lits[count++] = ccn__lit_int(&f.arena, whole[i]);
  lits[count++] = ccn__lit_bool(&f.arena, true);
  lits[count++] = ccn__lit_bool(&f.arena, false);
  lits[count++] = ccn__lit_dim(&f.arena, n);
  lits[count++] = ccn__lit_dim(&f.arena, odd);
  lits[count++] = ccn__lit_dim(&f.arena, ccn__dim_add(&f.arena, ccn__dim_mul(&f.arena, n, n), word));
  lits[count++] =
    ccn__lit_dim(&f.arena, ccn__dim_div(&f.arena, ccn__dim_sub(&f.arena, num(&f, 0), n), num(&f, 16)));
  ccn__lit *unknown = CCN__NEW(&f.arena, ccn__lit);
  unknown->kind = CCN__LIT_UNKNOWN;
  lits[count++] = unknown;
  for (int op = CCN__T_PLUS; op < CCN__T_NOT; op++) {
    ccn__lit *l = CCN__NEW(&f.arena, ccn__lit);
    *l = (ccn__lit){.kind = CCN__LIT_BINARY, .op = (uint8_t)op};
    l->x = lits[count - 2], l->y = lits[count - 1];
    lits[count++] = l;
    if (count > 50) break;
  }
  for (int op = CCN__T_MINUS; op <= CCN__T_NOT; op += CCN__T_NOT - CCN__T_MINUS) {
    ccn__lit *l = CCN__NEW(&f.arena, ccn__lit);
    *l = (ccn__lit){.kind = CCN__LIT_UNARY, .op = (uint8_t)op};
    l->x = lits[op == CCN__T_NOT ? 17 : count - 1], l->y = NULL;
    lits[count++] = l;
  }
  for (uint32_t i = 0; i < count; i++) {
    ccn__attr value = {.key = CCN__A_VALUE, .lit = lits[i]};
    add(&f, CCN__OP_CONST, NULL, CCN__NO_ID, CCN__NO_ID, type1(&f, CCN__F32, NULL), (ccn__attrs){&value, 1});
  }
  f.g->returns_none = true;
  const char *text = print(&f, f.g);
  ccn__graph *again = parse(&f, text, strlen(text));
  same(again ? print(&f, again) : complaint(&f), text, "every literal reads back");
  bool bits = again != NULL;
  for (uint32_t i = 0; bits && i < count; i++) {
    const ccn__lit *l = again->nodes.at[i].attrs.at[0].lit;
    if (l->kind != lits[i]->kind || l->op != lits[i]->op) bits = false;
    if (l->kind == CCN__LIT_FLOAT && memcmp(&l->f, &lits[i]->f, sizeof(double)) != 0) bits = false;
    if ((l->kind == CCN__LIT_INT || l->kind == CCN__LIT_BOOL) && l->i != lits[i]->i) bits = false;
  }
  ok(bits, "with its kind and bits");
  ccn__text t;
  ccn__text_init(&t, &f.arena);
  ccn__lit_print(f.g, lits[4], &t);
  same(t.at, "0.1", "for people a float is decimal");
  stop(&f);
}

/* ---- texts that read back as they are ------------------------------------------------------------------ */

static const char adam[] =
  "graph adam {\n"
  "  mesh dp\n"
  "  dim N, size(dp)\n"
  "  %0 \"g\" = param {number: 0} : f32[N] local over dp\n"
  "  %1 \"m\" = param {number: 1} : f32[N]\n"
  "  %2 \"gsum\" (allreduce) = allreduce %0 {op: sum, over: dp, order: rank} : f32[N]\n"
  "  %3 = const {value: size(dp)} : f32\n"
  "  %4 \"avg\" (div) = div %2, %3 : f32[N]\n"
  "  %5 = const {value: 0x1.ccccccccccccdp-1} : f32  # 0.9\n"
  "  %6 (mul) = mul %5, %1 : f32[N]\n"
  "  %7 (add) = add %6, %4 : f32[N]\n"
  "  %8 \"m1\" = update %1, %7 : f32[N]\n"
  "  %9 (mul2) = mul %8, %4 : f32[N]\n"
  "  return (%8, %9)\n"
  "}\n";

static const char blocks[] = "graph blocks {\n"
                             "  mesh pp: 2, tp\n"
                             "  dim N\n"
                             "  %0 \"x\" = param {number: 0} : f32[N] local over pp\n"
                             "  %1 \"y\" = param {number: 1} : f32[N]\n"
                             "  %2 = on {axis: pp, coord: 1} {\n"
                             "    %3 = enter %0 {axis: pp, coord: 1} : f32[N] at(1) over pp\n"
                             "    %4 = full {value: 0x1p+0} : f32[N]  # 1.0\n"
                             "    %5 = add %4, %4 : f32[N]\n"
                             "    %6 \"z\" = add %3, %5 : f32[N] at(1) over pp\n"
                             "  }\n"
                             "  %7 = repeat %1, %6 {times: [N + 1]} {\n"
                             "    %8 \"a\" = carry {number: 0} : f32[N]\n"
                             "    %9 \"b\" = carry {number: 1} : f32[N] at(1) over pp\n"
                             "    %10 = add %9, %8 : f32[N] at(1) over pp\n"
                             "    %11 = repeat %8 {times: 3} {\n"
                             "      %12 = carry {number: 0} : f32[N]\n"
                             "      %13 = sqrt %12 : f32[N]\n"
                             "      yield %13\n"
                             "    }\n"
                             "    %14 = result %11 {number: 0} : f32[N]\n"
                             "    yield %14, %10\n"
                             "  }\n"
                             "  %15 = result %7 {number: 0} : f32[N]\n"
                             "  %16 = result %7 {number: 1} : f32[N] at(1) over pp\n"
                             "  %17 = add %6, %16 : f32[N] at(1) over pp\n"
                             "  %18 = broadcast %17 {root: 1, over: pp} : f32[N]\n"
                             "  %19 = repeat {times: 0} {\n"
                             "    yield\n"
                             "  }\n"
                             "  return (%18, %15)\n"
                             "}\n";

static const char collectives[] =
  "graph collectives {\n"
  "  mesh dp: 2, tp: 4\n"
  "  dim H, F\n"
  "  %0 \"x\" = param {number: 0} : f16[H, F] local over dp partial(sum) over tp\n"
  "  %1 = reducescatter %0 {op: avg, over: tp, order: ring, dim: 1, unit: 8} : f16[H, F] local over dp "
  "sliced(1, unit: 8) over tp\n"
  "  %2 = alltoall %1 {from: 1, to: 0, over: tp} : f16[H, F] local over dp sliced(0) over tp\n"
  "  %3 = allgather %2 {over: tp} : f16[H, F] local over dp\n"
  "  %4 = shift %3 {by: -1, over: dp, fill: -0x0p+0} : f16[H, F] local over dp  # -0.0\n"
  "  %5 = permute %4 {pairs: [(0, 1), (1, 0)], over: dp} : f16[H, F] local over dp\n"
  "  %6 = allreduce %0 {op: sum, over: [dp, tp], order: axis} : f16[H, F]\n"
  "  %7 = slice %6 {dim: 0, over: tp, unit: 2*H + 1} : f16[H, F] sliced(0, unit: 2*H + 1) over tp\n"
  "  %8 = gather %7 {root: 3, over: tp} : f16[H, F] at(3) over tp\n"
  "  %9 = transpose %6 {perm: [1, 0]} : f16[F, H]\n"
  "  %10 = matmul %6, %9 : f16[H, H]\n"
  "  %11 = index %10 {start: [0, H - 1], count: [H, 1], drop: [0, 1]} : f16[H]\n"
  "  %12 = sum %10 {dims: [0, 1], keep: 1} : f16[1, 1]\n"
  "  %13 = cast %12 : f32[1, 1]\n"
  "  %14 = reshape %13 : f32\n"
  "  %15 = rank {axis: tp} : i32 local over tp\n"
  "  %16 = concat %10, %10 {dim: 1} : f16[H, 2*H]\n"
  "  %17 = dropout %16, %15 {p: 0x1p-1, seed: 7} : f16[H, 2*H] local over tp  # 0.5\n"
  "  return (%5, %8, %11, %14, %17)\n"
  "}\n";

static const char bundles[] =
  "graph bundles {\n"
  "  mesh dp\n"
  "  dim total(0) \"elements of g\", count(0), total(1), count(1), N, \"whole\", \"a\\\"b\\\\\\x01\", H\n"
  "  bundles 2\n"
  "  %0 \"g\" = param {number: 0} : [f32[*]] of 0 local over dp\n"
  "  %1 \"p\" = param {number: 1} : [f32[*]] of 1 sliced(0) over dp\n"
  "  %2 = reducescatter %0 {op: sum, over: dp, dim: 0} : [f32[*]] of 0 sliced(0) over dp\n"
  "  %3 = add %1, %2 : [f32[*]] of 1 sliced(0) over dp\n"
  "  %4 = sum %3 {per: 1} : [f32] of 1 partial(sum) over dp\n"
  "  %5 = full {value: unknown} : f32[\"whole\", H/16, (N - H)/3, \"a\\\"b\\\\\\x01\"]\n"
  "  need bundles 0, 1 (CCN0304)\n"
  "  need whole H/16 (CCN0310)\n"
  "  need whole (N - H)/3\n"
  "  need \"whole\" == 2*N (CCN0305)\n"
  "  need N <= H (CCN0309)\n"
  "  need 0 < N\n"
  "  need H multiple of 2 (CCN0214)\n"
  "  return (%4, %5)\n"
  "}\n";

static const char nothing[] = "graph {\n  return\n}\n";
static const char odd_name[] =
  "graph \"a b\" {\n  mesh \"x y\"\n  %0 (\"blk[0].rank\") = rank {axis: \"x y\"} : i32 local over \"x y\"\n"
  "  return (%0)\n}\n";

static void test_round_trips(void) {
  static const struct {
    const char *name, *text;
  } row[] = {{"adam", adam},       {"on and repeat", blocks}, {"collectives", collectives},
             {"bundles", bundles}, {"nothing", nothing},      {"odd names", odd_name}};
  for (size_t i = 0; i < CCN__COUNT(row); i++) {
    fixture f;
    start(&f);
    ccn__graph *g = parse(&f, row[i].text, strlen(row[i].text));
    same(g ? print(&f, g) : complaint(&f), row[i].text, row[i].name);
    stop(&f);
  }
}

/* Layout and comments are free, and a file may hold several graphs. */
static void test_layout(void) {
  static const char text[] =
    "# a comment\n"
    "graph a { return }graph b{mesh dp:4\n"
    "dim N %0=param{number:0}:f32[N*2/(1+1)-0]sliced(0)over dp%1=neg %0:f32[N] sliced ( 0 ) over dp return %1}\n";
  fixture f;
  start(&f);
  ccn__graph_list l = {0};
  f.source.text = text;
  f.source.size = sizeof text - 1;
  bool read = ccn__graph_parse(&f.arena, &f.names, &f.ds, 1, &l);
  ok(read && l.n == 2, "two graphs, any layout");
  same(read ? print(&f, l.at[1]) : complaint(&f),
       "graph b {\n  mesh dp: 4\n  dim N\n  %0 = param {number: 0} : f32[N] sliced(0) over dp\n"
       "  %1 = neg %0 : f32[N] sliced(0) over dp\n  return %1\n}\n",
       "printed in the usual one");
  f.source.size = 0;
  ok(ccn__graph_parse(&f.arena, &f.names, &f.ds, 1, &l) && l.n == 0, "an empty text holds no graph");
  stop(&f);
}

/* ---- what the verifier refuses: a good text with one thing changed ------------------------------------- */

typedef struct change {
  const char *text, *from, *to; /* the first `from` becomes `to` */
  const char *want;             /* stands in the message */
} change;

static const change changes[] = {
  {adam, "%4 \"avg\" (div) = div %2, %3", "%4 \"avg\" (div) = div %2", "%4 (avg): div has 2 operands, not 1"},
  {adam, ": f32[N]\n  %3", ": f32[N] local over dp\n  %3",
   "%2 (gsum): its type is f32[N] local over dp, but what"},
  {adam, "allreduce %0", "allreduce %1", "%2 (gsum): CCN0212 over dp: there is nothing to reduce"},
  {adam, "op: sum, ", "", "%2 (gsum): the attribute op is missing"},
  {adam, "over: dp, ", "", "%2 (gsum): the attribute over is missing"},
  {adam, "over: dp, ", "over: [], ", "%2 (gsum): the attribute over has no sensible value"},
  {adam, "{value: size(dp)} : f32", "{value: size(dp)}", "%3 (const): it has no type"},
  {adam, "= const {value: size(dp)}", "= const {dim: 9}",
   "%3 (const): the attribute dim has no sensible value"},
  {adam, "= const {value: size(dp)}", "= const", "%3 (const): the attribute value is missing"},
  {adam, "add %6, %4", "add %6, %0", "%7 (add): its type is"},
  {adam, "mul %8, %4", "mul %8, %1", "%9 (mul2): CCN0224: it depends on the update of %1"},
  {adam, "mul %8, %4", "update %1, %4", "%9 (mul2): CCN0223: parameter %1 is updated twice"},
  {adam, "update %1, %7", "update %7, %1", "%8 (m1): its target is no parameter"},
  {adam, "(mul) = mul %5, %1", "(mul) = norm %1", "%6 (mul): norm must be expanded"},
  {adam, "number: 1", "number: 0", "parameter 1 is no param node of that number"},
  {adam, "number: 1", "number: 7", "parameter 1 is no param node of that number"},
  {adam, "return (%8, %9)", "return %8, %9", "it returns 2 values"},
  {adam, "f32[N]\n  %2", "f32[N/2]\n  %2", "%1 (m): dim 0 of its type is no whole number by any constraint"},
  {adam, "f32[N] local", "f32[0 - 1] local", "%0 (g): dim 0 of its type is negative"},
  {adam, "local over dp", "sliced(1) over dp",
   "%0 (g): its type is sliced over dp in a dim that it does not have"},
  {adam, "local over dp", "sliced(0, unit: 0) over dp", "%0 (g): its type is sliced over dp with a unit"},
  {adam, "local over dp", "partial(avg) over dp", "%0 (g): its type owes over dp what cannot be owed"},
  {adam, "mul %5, %1 : f32[N]\n", "mul %5, %1 : f32[N] {\n  }\n", "%6 (mul): it has a block"},
  {blocks, "local over pp", "partial(sum) over pp partial(max) over tp",
   "%0 (x): its type owes two operators"},
  {blocks, "f32[N]\n  %2", "f32[N] at(2) over pp\n  %2", "%1 (y): its type is at a coordinate outside pp"},
  {blocks, "coord: 1} {", "coord: 2} {", "%2 (on): CCN0308: pp has no such coordinate"},
  {blocks, "coord: 1} :", "coord: 0} :", "%3 (enter): it reads at another coordinate than its block"},
  {blocks, "{axis: pp, coord: 1} {", "{axis: tp, coord: 1} {",
   "%3 (enter): it stands outside a block of that axis"},
  {blocks, "add %4, %4 : f32[N]", "add %4, %0 : f32[N] local over pp",
   "%5 (add): its type is not at(1) over pp"},
  {blocks, "add %4, %4 : f32[N]", "add %2, %4 : f32[N]", "%5 (add): operand %2 is no value"},
  {blocks, "%5 = add %4, %4", "%5 = update %1, %4", "%5 (update): its type is not at(1) over pp"},
  {blocks, "add %6, %16", "add %5, %16",
   "%5 (add): it is used behind its block, but its type is not at(1) over pp"},
  {blocks, "add %6, %16", "add %8, %16", "%17 (add): operand %8 is not visible outside its repeat"},
  {blocks, "enter %0 {axis: pp, coord: 1} : f32[N] at(1) over pp",
   "broadcast %0 {root: 1, over: pp} : f32[N]",
   "%3 (broadcast): CCN0306: a collective over pp inside `on` pp"},
  {blocks, "%7 = repeat %1, %6 {times: [N + 1]}", "%7 = repeat %1, %6",
   "%7 (repeat): the attribute times is missing"},
  {blocks, "%7 = repeat %1, %6 {", "%7 = repeat %1 {", "%9 (b): the repeat has no carried value 1"},
  {blocks, "yield %14, %10", "yield %14",
   "%7 (repeat): it has 2 carried values, its block 2 carries and 1 yields"},
  {blocks, "yield %14, %10", "yield %10, %14", "carried value 0 becomes f32[N] at(1) over pp from f32[N]"},
  {blocks, "yield %14, %10", "yield %12, %10", "what it yields for carried value 0 is no value of its block"},
  {blocks, "  }\n  %7", "    yield %6\n  }\n  %7", "%2 (on): only the block of a repeat yields"},
  {blocks, "%15 = result %7 {number: 0}", "%15 = result %7 {number: 2}",
   "%15 (result): the repeat has no carried"},
  {blocks, "%15 = result %7 {number: 0}", "%15 = result %6 {number: 0}",
   "%15 (result): a result belongs to a repeat"},
  {blocks, "%15 = result %7", "%15 = carry", "%15 (carry): a carry stands in the block of a repeat"},
  {blocks, "{number: 0} : f32[N]\n    %9", "{number: 1} : f32[N]\n    %9",
   "%8 (a): carries stand first in their block"},
  {blocks, "carry {number: 0} : f32[N]", "carry {number: 0} : f32[N] local over tp",
   "but the carried value's is"},
  {blocks, "%13 = sqrt %12", "%13 = update %1, %12", "%13 (update): an update inside a repeat"},
  {blocks, "%4 = full {value: 0x1p+0}", "%4 = param {number: 2}",
   "%4 (param): a parameter stands inside a block"},
  {blocks, "return (%18, %15)", "return (%18, %13)", "output 1 is no value of the graph's body"},
  {blocks, "return (%18, %15)", "return (%18, %5)", "%5 (add): it is used behind its block"},
  {blocks, "repeat {times: 0} {\n    yield\n  }", "repeat {times: 0} : f32 {\n    yield\n  }",
   "a block has no type"},
  {blocks, "%19 = repeat {times: 0} {\n    yield\n  }\n", "%19 = repeat {times: 0}\n",
   "%19 (repeat): it has no block"},
  {collectives, "by: -1", "by: 99999999999", "%4 (shift): the attribute by has no sensible value"},
  {collectives, "unit: 8}", "unit: 0}", "%1 (reducescatter): the attribute unit has no sensible value"},
  {collectives, "dims: [0, 1]", "dims: [0, 0]", "%12 (sum): the attribute dims has no sensible value"},
  {collectives, "dims: [0, 1]", "dims: [2]", "%12 (sum): the attribute dims has no sensible value"},
  {collectives, "keep: 1", "keep: 2", "%12 (sum): the attribute keep has no sensible value"},
  {collectives, "perm: [1, 0]", "perm: [1, 1]", "%9 (transpose): the attribute perm has no sensible value"},
  {collectives, "count: [H, 1]", "count: [H]", "%11 (index): the attribute count has no sensible value"},
  {collectives, "concat %10, %10", "concat %10, %14",
   "%16 (concat): its operands must have the same number of dims"},
  {collectives, "concat %10, %10 {dim: 1}", "concat {dim: 1}",
   "%16 (concat): concat has at least one operand"},
  {collectives, "root: 3", "root: 4", "%8 (gather): CCN0308 over tp: the root is not a coordinate"},
  {collectives, "(0, 1), (1, 0)", "(0, 1), (1, 1)", "%5 (permute): CCN0215: a target is named twice"},
  {collectives, "f16[F, H]", "f16[H, F]",
   "%9 (transpose): its type is f16[H, F], but what its operands give is f16[F, H]"},
  {bundles, "[f32[*]] of 0 local", "[f32[*]] of 1 local", "%2 (reducescatter): its type is [f32[*]]"},
  {bundles, "bundles 2", "bundles 1", "symbol total(1) belongs to an axis or bundle that is not there"},
  {bundles, "need bundles 0, 1", "need bundles 0, 2", "constraint 0 is about what is not there"},
  {bundles, "need whole H/16 (CCN0310)", "need whole H/3", "%5 (full): dim 1 of its type is no whole number"},
};

static char *changed(const change *c) {
  const char *at = strstr(c->text, c->from);
  if (!at) return NULL;
  size_t before = (size_t)(at - c->text), rest = strlen(at + strlen(c->from)), middle = strlen(c->to);
  char *s = malloc(before + middle + rest + 1);
  if (!s) return NULL;
  memcpy(s, c->text, before);
  memcpy(s + before, c->to, middle);
  memcpy(s + before + middle, at + strlen(c->from), rest + 1);
  return s;
}

static void test_verifier_texts(void) {
  for (size_t i = 0; i < CCN__COUNT(changes); i++) {
    const change *c = &changes[i];
    fixture f;
    start(&f);
    char *text = changed(c);
    ccn__graph *g = text ? parse(&f, text, strlen(text)) : NULL;
    bool good = text && !g && f.ds.last && f.ds.last->code == 12 && strstr(f.ds.last->message, c->want);
    if (!good)
      printf("# `%s` -> `%s`\n# want: %s\n# got: %s\n", c->from, c->to, c->want,
             g ? "(accepted)" : complaint(&f));
    ok(good, c->want);
    stop(&f);
    free(text);
  }
}

/* What text cannot say, said in memory: a good graph, broken by `by`. */
static void break_region(ccn__graph *g) { g->nodes.at[6].region = 7; }
static void break_closed(ccn__graph *g) { g->nodes.at[17].region = 1; }
static void break_later(ccn__graph *g) { ((ccn__id *)(uintptr_t)g->nodes.at[5].in)[0] = 5; }
static void break_op(ccn__graph *g) { g->nodes.at[5].op = CCN__OP_COUNT; }
static void break_owner(ccn__graph *g) { g->regions.at[1].owner = 3; }
static void break_order(ccn__graph *g) {
  ccn__region r = g->regions.at[2];
  g->regions.at[2] = g->regions.at[3];
  g->regions.at[3] = r;
  g->nodes.at[7].body = 3, g->nodes.at[11].body = 2;
}
static void break_body(ccn__graph *g) { g->regions.at[0].owner = 0; }
static void break_block(ccn__graph *g) { g->nodes.at[7].body = 1; }
static void break_naxes(ccn__graph *g) { ((ccn__type *)(uintptr_t)g->nodes.at[1].type)->naxes = 1; }
static void break_rank(ccn__graph *g) { ((ccn__type *)(uintptr_t)g->nodes.at[1].type)->rank = 9; }
static void break_dtype(ccn__graph *g) { ((ccn__type *)(uintptr_t)g->nodes.at[1].type)->dtype = CCN__I4; }
static void break_place(ccn__graph *g) { ((ccn__type *)(uintptr_t)g->nodes.at[1].type)->place[0].kind = 9; }
static void break_dim(ccn__graph *g) {
  ((ccn__type *)(uintptr_t)g->nodes.at[1].type)->dim[0] = ccn__dim_symbol(g->arena, 3);
}
static void break_key(ccn__graph *g) {
  ((ccn__attr *)(uintptr_t)g->nodes.at[4].attrs.at)->key = CCN__ATTR_KEYS;
}
static void break_twice(ccn__graph *g) {
  ccn__attr at[2] = {g->nodes.at[4].attrs.at[0], g->nodes.at[4].attrs.at[0]};
  ccn__attr *copy = CCN__NEWN(g->arena, ccn__attr, 2);
  memcpy(copy, at, sizeof at);
  g->nodes.at[4].attrs = (ccn__attrs){copy, 2};
}
static void break_lit(ccn__graph *g) { ((ccn__attr *)(uintptr_t)g->nodes.at[4].attrs.at)->lit = NULL; }
static void break_deep(ccn__graph *g) {
  const ccn__lit *x = ccn__lit_float(g->arena, 2);
  for (int i = 0; i < 60; i++) { /* 2^60 if one follows all ways */
    ccn__lit *l = CCN__NEW(g->arena, ccn__lit);
    *l = (ccn__lit){.kind = CCN__LIT_BINARY, .op = CCN__T_STAR};
    l->x = l->y = x;
    x = l;
  }
  ((ccn__attr *)(uintptr_t)g->nodes.at[4].attrs.at)->lit = x;
}
static void break_mesh(ccn__graph *g) { g->mesh.name[1] = g->mesh.name[0]; }
static void break_axes(ccn__graph *g) { g->mesh.naxes = CCN__MAX_AXES + 1; }
static void break_size(ccn__graph *g) { g->mesh.size[1] = -1; }
static void break_symbols(ccn__graph *g) {
  ccn__symbol s = g->symbols.at[0];
  *CCN__PUSH(g->arena, &g->symbols) = s;
}
static void break_output(ccn__graph *g) {
  static const ccn__id far = 99;
  g->noutputs = 1;
  g->outputs = &far;
}
static void break_none(ccn__graph *g) { g->returns_none = true; }
static void break_params(ccn__graph *g) { g->params.n = 1; }
static void break_update(ccn__graph *g) { g->params.at[0].update = 5; }
static void break_need(ccn__graph *g) {
  *CCN__PUSH(g->arena, &g->constraints) =
    (ccn__constraint){.kind = CCN__NEED_EQUAL, .x = ccn__dim_symbol(g->arena, 0)};
}

static void test_verifier_graphs(void) {
  static const struct {
    void (*by)(ccn__graph *);
    const char *want;
  } row[] = {
    {break_region, "%6 (z): it stands in a region that is not open"},
    {break_closed, "%17 (add): it stands in a region that is not open"},
    {break_later, "%5 (add): operand %5 is not made before it"},
    {break_op, "%5 (?): there is no op"},
    {break_owner, "region 1 has no owner"},
    {break_order, "region 3 is out of order"},
    {break_body, "region 0 is not the body of the graph"},
    {break_block, "region 2 has no owner"},
    {break_naxes, "%1 (y): its type is for another mesh"},
    {break_rank, "%1 (y): its type has more than 8 dims"},
    {break_dtype, "%1 (y): its type has no dtype"},
    {break_place, "%1 (y): its type has no placement over pp"},
    {break_dim, "%1 (y): dim 0 of its type has unknown symbols"},
    {break_key, "%4 (full): an attribute that there is not"},
    {break_twice, "%4 (full): the attribute value is there twice"},
    {break_lit, "%4 (full): the attribute value has no sensible value"},
    {break_deep, "%4 (full): the attribute value has no sensible value"},
    {break_mesh, "the mesh has two axes pp"},
    {break_axes, "the mesh has more than 6 axes"},
    {break_size, "axis 1 of the mesh has no name or a negative size"},
    {break_symbols, "symbol N is there twice"},
    {break_output, "output 0 is no value of the graph's body"},
    {break_none, "it returns 2 values"},
    {break_params, "there are 2 param nodes, but 1 parameters"},
    {break_update, "the update of parameter 0 is none of it"},
    {break_need, "constraint 0 is about what is not there"},
  };
  for (size_t i = 0; i < CCN__COUNT(row); i++) {
    fixture f;
    start(&f);
    ccn__graph *g = parse(&f, blocks, sizeof blocks - 1);
    if (g) row[i].by(g);
    const char *fault = g ? ccn__graph_verify(g) : complaint(&f);
    bool good = g && fault && strncmp(fault, row[i].want, strlen(row[i].want)) == 0;
    if (!good) printf("# want: %s\n# got: %s\n", row[i].want, fault ? fault : "(right)");
    ok(good, row[i].want);
    bool prints = row[i].by == break_deep || (g && strlen(print(&f, g)) > 100);
    if (!prints) ok(false, "a broken graph prints, too");
    stop(&f);
  }
}

/* A loop that carries an update's result around to a reader of the value at entry. */
static void test_effect_around_loop(void) {
  static const char text[] = "graph f {\n"
                             "  mesh dp\n"
                             "  %0 \"p\" = param {number: 0} : f32\n"
                             "  %1 \"q\" = param {number: 1} : f32\n"
                             "  %2 = neg %0 : f32\n"
                             "  %3 = update %0, %2 : f32\n"
                             "  %4 = repeat %1, %1 {times: 2} {\n"
                             "    %5 = carry {number: 0} : f32\n"
                             "    %6 = carry {number: 1} : f32\n"
                             "    %7 = add %6, %0 : f32\n"
                             "    yield %3, %5\n"
                             "  }\n"
                             "  %8 = result %4 {number: 1} : f32\n"
                             "  return %8\n"
                             "}\n";
  fixture f;
  start(&f);
  ccn__graph *g = parse(&f, text, sizeof text - 1);
  ok(!g && strstr(complaint(&f), "%7 (add): CCN0224"), "CCN0224 is found around a loop");
  ok(f.ds.last && f.ds.last->primary.span.start == (uint32_t)(strstr(text, "%7 =") - text),
     "at the node's place");
  stop(&f);
}

/* ---- hostile text -------------------------------------------------------------------------------------- */

static const struct {
  uint16_t code;
  const char *text, *want;
} hostile[] = {
  {1, "grph", "expected `graph`"},
  {4, "graph", "the text ends where a name or `{` is expected"},
  {4, "graph f {", "the text ends where a node, `need` or `return` is expected"},
  {4, "graph f { return", "the text ends where `}` is expected"},
  {1, "graph f { } ", "expected a node, `need` or `return`"},
  {1, "graph f { %1 = const {value: 0} : f32 return }", "expected node %0"},
  {6, "graph f { %99999999999999999999 = const", "the number is too large"},
  {801, "graph f { %0 = neg %0 : f32 return }", "%0 is not defined before"},
  {801, "graph f { %0 = neg %4294967295 : f32 return }", "%4294967295 is not defined before"},
  {801, "graph f { %0 = allreduc return }", "there is no op `allreduc`"},
  {801, "graph f { %0 = const {valu: 1} return }", "there is no attribute `valu`"},
  {11, "graph f { %0 = const {value: 1, value: 1} return }", "the attribute `value` is there twice"},
  {801, "graph f { %0 = const {value: N} return }", "N is not among the dims of the graph"},
  {801, "graph f { mesh dp %0 = const {value: size(dp)} return }", "this symbol is not among the dims"},
  {311, "graph f { mesh dp dim size(tp) return }", "the mesh has no axis `tp`"},
  {11, "graph f { mesh dp, dp return }", "a second axis `dp`"},
  {208, "graph f { mesh a, b, c, d, e, g, h return }", "more than 6 mesh axes"},
  {309, "graph f { mesh dp: 99999999999 return }", "the size is out of range"},
  {11, "graph f { dim N, N return }", "this symbol is there twice"},
  {309, "graph f { bundles 5000 return }", "the number of bundles is out of range"},
  {100, "graph f { %0 = const {value: 1} : f33 return }", "there is no dtype `f33`"},
  {100, "graph f { %0 = const {value: 1} : i4 return }", "there is no dtype `i4`"},
  {208, "graph f { %0 = const {value: 1} : f32[1,1,1,1,1,1,1,1,1] return }", "more than 8 dims"},
  {801, "graph f { %0 = const {value: 1} : [f32[*]] of 0 return }", "total(0) is not among the dims"},
  {1, "graph f { %0 = const {value: 1} : [f32[N]] of 0 return }", "expected `*`"},
  {1, "graph f { mesh dp %0 = const {value: 1} : f32 local return }", "expected `over` and a mesh axis"},
  {11, "graph f { mesh dp %0 = const {value: 1} : f32 local over dp local over dp return }",
   "a second placement"},
  {801, "graph f { mesh dp %0 = const {value: 1} : f32 partial(xor) over dp return }",
   "no reduction operator `xor`"},
  {308, "graph f { mesh dp %0 = const {value: 1} : f32 at(99999999999) over dp return }",
   "the coordinate is out of"},
  {309, "graph f { mesh dp %0 = const {value: 1} : f32 sliced(8) over dp return }",
   "the dim is out of range"},
  {6, "graph f { %0 = const {value: 9223372036854775808} return }", "the number is too large"},
  {6, "graph f { %0 = const {value: 18446744073709551616} return }", "the number is too large"},
  {6, "graph f { %0 = const {value: 0x11111111111111111} return }", "too many digits"},
  {5, "graph f { %0 = const {value: 0x} return }", "the number has no digits"},
  {5, "graph f { %0 = const {value: 0x1.8} return }", "a float needs its exponent"},
  {5, "graph f { %0 = const {value: 0x1p} return }", "the exponent has no digits"},
  {5, "graph f { %0 = const {value: 0x1p99999} return }", "the exponent is too large"},
  {5, "graph f { %0 = const {value: 0x1p+1024} return }", "the number is no f64"},
  {5, "graph f { %0 = const {value: 0x1p-1075} return }", "the number is no f64"},
  {5, "graph f { %0 = const {value: 0x1.00000000000001p+0} return }", "the number is no f64"},
  {5, "graph f { %0 = const {value: 0.5} return }", "floats in hexadecimal"},
  {5, "graph f { %0 = const {value: 12x} return }", "a malformed number"},
  {1, "graph f { %0 = const {value: nan(0)} return }", "expected the fraction of a NaN"},
  {1, "graph f { %0 = const {value: nan(0x10000000000000)} return }", "expected the fraction of a NaN"},
  {1, "graph f { %0 = const {value: 1 + 2 + 3} return }", "expected `}`"},
  {1, "graph f { %0 = const {value: not 3} return }", "expected `(`"},
  {3, "graph \"f", "the string does not end"},
  {3, "graph \"f\n\" { return }", "the string does not end"},
  {7, "graph \"\\q\" { return }", "graph text knows the escapes"},
  {7, "graph \"\\x00\" { return }", "graph text knows the escapes"},
  {2, "graph \"\001\" { return }", "a control character in a string"},
  {2, "graph f { ? }", "a character that graph text does not have"},
  {2, "graph f { \xff }", "a character that graph text does not have"},
  {6, "graph f { dim N need whole N*9223372036854775807*9223372036854775807 return }",
   "does not fit 64 bits"},
  {6, "graph f { dim N, M need whole N/M return }", "does not divide"},
  {6, "graph f { dim N need whole N/0 return }", "does not divide"},
  {1, "graph f { dim N need N return }", "expected `==`, `<=`, `<` or `multiple of`"},
  {1, "graph f { dim N need N == N (CCN12) return }", "expected a code"},
  {1, "graph f { dim N need N == N (CCN99999) return }", "expected a code"},
  {801, "graph f { mesh dp %0 = allreduce {order: sorted} return }", "there is no order `sorted`"},
  {1, "graph f { %0 = sum {dims: [0 1]} return }", "expected `,` or `]`"},
  {1, "graph f { %0 = permute {pairs: [0, 1]} return }", "expected `(`"},
};

static void test_hostile(void) {
  for (size_t i = 0; i < CCN__COUNT(hostile); i++) {
    fixture f;
    start(&f);
    ccn__graph *g = parse(&f, hostile[i].text, strlen(hostile[i].text));
    const ccn__diag *d = f.ds.last;
    bool good =
      !g && d && f.ds.errors == 1 && d->code == hostile[i].code && strstr(d->message, hostile[i].want);
    if (!good)
      printf("# %s\n# want: CCN%04u %s\n# got: CCN%04u %s\n", hostile[i].text, hostile[i].code,
             hostile[i].want, d ? d->code : 0u, g ? "(accepted)" : complaint(&f));
    ok(good, hostile[i].want);
    stop(&f);
  }
}

/* head, `n` times `middle`, tail: refused with the code, and quickly. */
static void much(const char *head, const char *middle, size_t n, const char *tail, uint16_t code,
                 const char *what) {
  fixture f;
  start(&f);
  size_t m = strlen(middle), size = strlen(head) + m * n + strlen(tail);
  char *s = malloc(size + 1);
  if (!s) exit(1);
  strcpy(s, head);
  for (size_t i = 0; i < n; i++) memcpy(s + strlen(head) + i * m, middle, m);
  strcpy(s + strlen(head) + n * m, tail);
  ccn__graph *g = parse(&f, s, size);
  bool good = !g && f.ds.last && f.ds.last->code == code && f.heap.peak < 64u << 20;
  if (!good) printf("# CCN%04u %s; peak %zu\n", f.ds.last ? f.ds.last->code : 0u, complaint(&f), f.heap.peak);
  ok(good, what);
  stop(&f);
  free(s);
}

static void test_deep_and_long(void) {
  much("graph f { %0 = const {value: ", "(", 100000, "", 8, "brackets of a literal");
  much("graph f { dim N need whole ", "(", 100000, "", 8, "brackets of an extent");
  much("graph f { dim N need whole ", "-", 100000, "N return }", 8, "signs of an extent");
  much("graph f { dim N need whole N", "*(N+1)", 100000, " return }", 6, "a product whose numbers grow");
  much("graph f { dim N need whole N", "*1", 100000, " return }", 8, "a product that does not end");
  much("graph f { mesh dp %0 = repeat {times: 1} ", "{ %1 = repeat {times: 1}", 1, "", 4,
       "the text ends in blocks");
  much("graph f { %0 = sum {dims: [0", ", 0", 300, "]} return }", 6, "a list of 300 numbers");
  much("graph f { %0 = const {value: 0} : f32 %1 = concat %0", ", %0", 70000, " : f32 return }", 6,
       "70000 operands");
  much("graph f { dim a", ", a", 100000, " return }", 11, "100000 symbols");
  much("graph \"", "a", 1000000, "", 3, "a string of a million");
  ccn__text t;
  fixture f;
  start(&f);
  ccn__text_init(&t, &f.arena);
  ccn__text_puts(&t, "graph f { ");
  for (int i = 0; i < 100; i++) ccn__text_printf(&t, "%%%d = repeat {times: 1} {", i);
  ok(!parse(&f, t.at, t.n) && f.ds.last->code == 8, "100 blocks in each other");
  stop(&f);
}

/* Every beginning of a good text is refused with one diagnostic. */
static void test_truncated(void) {
  static const char *const text[] = {adam, blocks, collectives, bundles};
  bool good = true;
  for (size_t k = 0; k < CCN__COUNT(text); k++)
    for (size_t n = 1; n + 2 < strlen(text[k]); n++) {
      fixture f;
      start(&f);
      char *exact = malloc(n); /* of just this size, so that a sanitizer sees a read behind it */
      if (!exact) exit(1);
      memcpy(exact, text[k], n);
      if (parse(&f, exact, n) || f.ds.errors != 1) good = false;
      stop(&f);
      free(exact);
    }
  ok(good, "every truncated text gets one diagnostic");
}

static uint32_t random_number(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  return *state ^= *state << 5;
}

/* Some bytes replaced by others: nothing breaks, and what still reads prints as something that reads the
 * same. */
static void test_mutated(void) {
  static const char *const text[] = {adam, blocks, collectives, bundles, odd_name};
  static const char alphabet[] = "0123456789%{}()[],:\"\\#\n -+*/=<>xpndNgHfdaz_";
  uint32_t state = 1, read = 0;
  bool good = true;
  for (int i = 0; i < 20000; i++) {
    fixture f;
    char s[4096];
    size_t n = strlen(text[i % 5]);
    start(&f);
    memcpy(s, text[i % 5], n);
    for (uint32_t k = 1 + random_number(&state) % 3; k--;)
      s[random_number(&state) % n] = alphabet[random_number(&state) % (sizeof alphabet - 1)];
    ccn__graph *g = parse(&f, s, n);
    if (g) {
      read++;
      const char *once = print(&f, g);
      ccn__graph *again = parse(&f, once, strlen(once));
      if (!again || strcmp(print(&f, again), once) != 0) {
        if (good) printf("# %s\n# %s", complaint(&f), once);
        good = false;
      }
    }
    stop(&f);
  }
  ok(good && read > 200, "mutated texts that read print as texts that read the same");
  printf("# %u of 20000 read\n", read);
}

/* The N-th request fails, for all N: OUT_OF_MEMORY comes through and nothing leaks. */
static void test_allocation_failure(void) {
  volatile bool good = true, finished = false;
  for (volatile size_t n = 1; good && !finished && n < 1000; n++) {
    fixture f;
    start(&f);
    ccn__graph_list l;
    ccn__trap trap;
    f.source.text = bundles;
    f.source.size = sizeof bundles - 1;
    f.host.requests = 0;
    f.host.fail_at = n;
    CCN__TRY(&f.heap, trap)
    {
      if (!ccn__graph_parse(&f.arena, &f.names, &f.ds, 1, &l)) good = false;
      finished = true;
    }
    CCN__CATCH(&f.heap, trap)
    {
      if (trap.status != CCN_OUT_OF_MEMORY) good = false;
    }
    stop(&f);
  }
  ok(good && finished, "every request fails once: OUT_OF_MEMORY, nothing leaks");
}

int main(void) {
  test_built();
  test_literals();
  test_round_trips();
  test_layout();
  test_verifier_texts();
  test_verifier_graphs();
  test_effect_around_loop();
  test_hostile();
  test_deep_and_long();
  test_truncated();
  test_mutated();
  test_allocation_failure();
  printf("1..%d\n", tests);
  return failures != 0;
}
