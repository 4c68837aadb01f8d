/* graph_read.c: reads the text form of graphs (graph_text.c prints it), then asks the verifier.
 *
 *   file      = { graph }
 *   graph     = "graph" [name] "{" ["mesh" axis {"," axis}] ["dim" symbol {"," symbol}] ["bundles" int]
 *               { node } { "need" constraint } "return" [id | "(" [ids] ")"] "}"
 *   axis      = name [":" int]
 *   symbol    = name | ("size" "(" name ")" | "total" "(" int ")" | "count" "(" int ")") [string]
 *   node      = id [string] ["(" name ")"] "=" op [ids] ["{" attr {"," attr} "}"] [":" type]
 *               ["{" { node } ["yield" [ids]] "}"]
 *   attr      = name ":" value                       what a value is says attrs.def
 *   type      = (dtype ["[" dims "]"] | "[" dtype ["[" "*" "]"] "]" "of" int) { place "over" name }
 *   place     = "sliced" "(" int ["," "unit" ":" dim] ")" | "local" | "partial" "(" redop ")"
 *               | "at" "(" int ")"
 *   dim       = sums, differences, products and quotients of ints and symbols
 *   lit       = atom | atom operator atom | "-" "(" lit ")" | "not" "(" lit ")"
 *   atom      = ["-"] (int | float | "inf" | "nan" ["(" bits ")"]) | "true" | "false" | "unknown" | symbol
 *               | "[" dim "]" | "(" lit ")" | function "(" lit ["," lit] ")"
 *   constraint = ("whole" dim | dim ("==" | "<" | "<=" | "multiple" "of") dim | "bundles" int "," int)
 *               ["(" code ")"]
 *   name      = letters, digits, _ | string
 *   id        = "%" int                  nodes are numbered from 0 in the order of the text
 *
 * Floats are hexadecimal, comments go from # to the end of the line, and the operands of a node stand on its
 * line. The text may come from anywhere: what is wrong gets one diagnostic, and reading ends there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph_read.h"
#include "order.h"

/* ---- attributes ---------------------------------------------------------------------------------------- */

typedef CCN__VEC(int64_t) ints;
typedef CCN__VEC(const ccn__dim *) dims;

static void check_length(ccn__reader *r, uint32_t n) {
  if (n > UINT8_MAX) FAIL(r, 6, r->tok.span, "", "the list is too long");
}

static void read_ints(ccn__reader *r, ccn__attr *at, bool pairs) {
  ints v = {0};
  ccn__read_expect(r, '[');
  while (r->tok.kind != ']') {
    if (v.n && r->tok.kind != ',') ccn__read_unexpected(r, "`,` or `]`");
    if (v.n) ccn__read_next(r);
    if (pairs) ccn__read_expect(r, '(');
    *CCN__PUSH(r->a, &v) = ccn__read_int(r);
    if (pairs) {
      ccn__read_expect(r, ',');
      *CCN__PUSH(r->a, &v) = ccn__read_int(r);
      ccn__read_expect(r, ')');
    }
    check_length(r, v.n);
  }
  ccn__read_next(r);
  at->ints = v.at;
  at->n = (uint8_t)v.n;
}

static void read_dim_list(ccn__reader *r, ccn__attr *at) {
  dims v = {0};
  ccn__read_expect(r, '[');
  while (r->tok.kind != ']') {
    if (v.n && r->tok.kind != ',') ccn__read_unexpected(r, "`,` or `]`");
    if (v.n) ccn__read_next(r);
    const ccn__dim *d = ccn__read_dim(r);
    *CCN__PUSH(r->a, &v) = d;
    check_length(r, v.n);
  }
  ccn__read_next(r);
  at->dims = v.at;
  at->n = (uint8_t)v.n;
}

static int64_t read_axes(ccn__reader *r) {
  if (!ccn__read_accept(r, '[')) return (int64_t)1 << ccn__read_axis(r);
  int64_t mask = 0;
  while (r->tok.kind != ']') {
    if (mask && r->tok.kind != ',') ccn__read_unexpected(r, "`,` or `]`");
    if (mask) ccn__read_next(r);
    mask |= (int64_t)1 << ccn__read_axis(r);
  }
  ccn__read_next(r);
  return mask;
}

/* ring, groups(4) */
static int64_t read_order(ccn__reader *r) {
  for (int i = 0; i < CCN__ORDER_COUNT; i++) {
    if (!ccn__read_accept_word(r, ccn__order_name[i])) continue;
    if (!ccn__order_numbered((ccn__order)i)) return i;
    ccn__read_expect(r, '(');
    const ccn__span at = r->tok.span;
    const int64_t group = ccn__read_int(r);
    if (group < 1 || group > UINT16_MAX + 1) FAIL(r, 12, at, "", "groups of %lld ranks", (long long)group);
    ccn__read_expect(r, ')');
    return ccn__order_pack((ccn__order)i, (uint32_t)group);
  }
  if (r->tok.kind != T_NAME) ccn__read_unexpected(r, "an order");
  FAIL(r, 801, r->tok.span, "", "there is no order `%s`", r->tok.name);
}

static void read_value(ccn__reader *r, ccn__attr *at) {
  switch (ccn__attr_table[at->key].kind) {
  case CCN__ATTR_INT: at->i = at->key == CCN__A_AXIS ? (int64_t)ccn__read_axis(r) : ccn__read_int(r); break;
  case CCN__ATTR_LIT: at->lit = ccn__read_lit_at(r, 0); break;
  case CCN__ATTR_INTS: read_ints(r, at, false); break;
  case CCN__ATTR_PAIRS: read_ints(r, at, true); break;
  case CCN__ATTR_DIM: at->dim = ccn__read_dim(r); break;
  case CCN__ATTR_DIMS: read_dim_list(r, at); break;
  case CCN__ATTR_AXES: at->i = read_axes(r); break;
  case CCN__ATTR_RED: at->i = ccn__read_redop(r); break;
  case CCN__ATTR_ORDER: at->i = read_order(r); break;
  case CCN__ATTR_TEXT:
    if (r->tok.kind != T_STRING) ccn__read_unexpected(r, "a string");
    at->text = r->tok.name;
    ccn__read_next(r);
    break;
  }
}

/* Behind the `{`. */
static ccn__attrs read_attrs(ccn__reader *r) {
  ccn__attr at[CCN__ATTR_KEYS];
  uint32_t n = 0;
  do {
    if (r->tok.kind != T_NAME) ccn__read_unexpected(r, "an attribute");
    uint32_t key = 0, i = 0;
    while (key < CCN__ATTR_KEYS && strcmp(ccn__attr_table[key].name, r->tok.name) != 0) key++;
    if (key == CCN__ATTR_KEYS) FAIL(r, 801, r->tok.span, "", "there is no attribute `%s`", r->tok.name);
    while (i < n && at[i].key != key) i++;
    if (i < n) FAIL(r, 11, r->tok.span, "", "the attribute `%s` is there twice", r->tok.name);
    ccn__read_next(r);
    ccn__read_expect(r, ':');
    at[n] = (ccn__attr){.key = (uint8_t)key};
    read_value(r, &at[n++]);
  } while (ccn__read_accept(r, ','));
  ccn__read_expect(r, '}');
  ccn__attr *copy = CCN__NEWN(r->a, ccn__attr, n);
  memcpy(copy, at, n * sizeof *copy);
  return (ccn__attrs){copy, n};
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

typedef CCN__VEC(ccn__id) ids;

/* One or more, of nodes that are there. */
static ids read_ids(ccn__reader *r) {
  ids v = {0};
  do {
    if (r->tok.kind != T_ID) ccn__read_unexpected(r, "a node, as %0");
    if (r->tok.i >= r->g->nodes.n)
      FAIL(r, 801, r->tok.span, "", "%%%llu is not defined before", (unsigned long long)r->tok.i);
    if (v.n == UINT16_MAX) FAIL(r, 6, r->tok.span, "", "too many nodes in the list");
    *CCN__PUSH(r->a, &v) = (ccn__id)r->tok.i;
    ccn__read_next(r);
  } while (ccn__read_accept(r, ','));
  return v;
}

static ccn__op read_op(ccn__reader *r) {
  if (r->tok.kind != T_NAME) ccn__read_unexpected(r, "an op");
  uint32_t i = 0;
  while (i < CCN__OP_COUNT && strcmp(ccn__op_table[i].name, r->tok.name) != 0) i++;
  if (i == CCN__OP_COUNT) {
    ccn__nearest near_;
    ccn__nearest_init(&near_, r->tok.name);
    for (i = 0; i < CCN__OP_COUNT; i++) ccn__nearest_try(&near_, ccn__op_table[i].name);
    ccn__diag *d = ccn__error(r->ds, 801, r->tok.span, "", "there is no op `%s`", r->tok.name);
    if (near_.best) ccn__hint(r->ds, d, "did you mean `%s`?", near_.best);
    ccn__throw(r->a->heap, CCN_ERROR);
  }
  ccn__read_next(r);
  return (ccn__op)i;
}

/* Attributes and blocks both stand in braces; attributes start with `name:`. */
static bool accept_attrs(ccn__reader *r) {
  if (r->tok.kind != '{') return false;
  uint32_t pos = r->pos;
  ccn__graph_token brace = r->tok;
  ccn__read_next(r);
  if (r->tok.kind == T_NAME) {
    uint32_t name_pos = r->pos;
    ccn__graph_token name = r->tok;
    ccn__read_next(r);
    if (r->tok.kind == ':') {
      r->pos = name_pos;
      r->tok = name;
      return true;
    }
  }
  r->pos = pos;
  r->tok = brace;
  return false;
}

static void read_nodes(ccn__reader *r, uint32_t region, uint32_t depth);

/* Behind the `{` of a node's block. */
static void read_block(ccn__reader *r, ccn__id owner, uint32_t depth) {
  if (depth == REGION_DEPTH) FAIL(r, 8, r->tok.span, "", "blocks are nested too deeply");
  ccn__graph *g = r->g;
  uint32_t region = g->regions.n;
  *CCN__PUSH(r->a, &g->regions) = (ccn__region){.owner = owner};
  g->nodes.at[owner].body = region;
  read_nodes(r, region, depth + 1);
  if (ccn__read_accept_word(r, "yield") && r->tok.kind == T_ID) {
    ids v = read_ids(r);
    g->regions.at[region].yield = v.at;
    g->regions.at[region].nyield = v.n;
  }
  ccn__read_expect(r, '}');
}

static void read_node(ccn__reader *r, uint32_t region, uint32_t depth) {
  ccn__graph *g = r->g;
  uint32_t start = r->tok.span.start;
  if (r->tok.i != g->nodes.n) FAIL(r, 1, r->tok.span, "", "expected node %%%u", (unsigned)g->nodes.n);
  ccn__read_next(r);
  ccn__name name = NULL, autoname = NULL;
  if (r->tok.kind == T_STRING) name = ccn__read_name(r, "a name");
  if (ccn__read_accept(r, '(')) {
    autoname = ccn__read_name(r, "an automatic name");
    ccn__read_expect(r, ')');
  }
  ccn__read_expect(r, '=');
  ccn__op op = read_op(r);
  ids in = {0};
  if (r->tok.kind == T_ID && !r->tok.first_of_line) in = read_ids(r);
  ccn__attrs attrs = {0};
  if (accept_attrs(r)) attrs = read_attrs(r);
  ccn__type type;
  bool typed = ccn__read_accept(r, ':');
  if (typed) ccn__read_type(r, &type);
  if (!typed && (op == CCN__OP_ON || op == CCN__OP_REPEAT)) { /* blocks are no values; all have this type */
    type = (ccn__type){.dtype = CCN__BOOL, .naxes = (uint8_t)g->mesh.naxes};
    typed = true;
  }
  ccn__span span = {r->source, start, r->tok.span.start};
  while (span.end > start && strchr(" \t\r\n", r->text[span.end - 1])) span.end--;
  ccn__id id = ccn__graph_add(g, op, in.at, in.n, typed ? &type : NULL, attrs, span, region);
  g->nodes.at[id].name = name;
  g->nodes.at[id].autoname = autoname;
  if (ccn__read_accept(r, '{')) read_block(r, id, depth);
}

static void read_nodes(ccn__reader *r, uint32_t region, uint32_t depth) {
  while (r->tok.kind == T_ID) read_node(r, region, depth);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void read_mesh(ccn__reader *r) {
  ccn__mesh *m = &r->g->mesh;
  do {
    ccn__span span = r->tok.span;
    ccn__name name = ccn__read_name(r, "a mesh axis");
    if (m->naxes == CCN__MAX_AXES) FAIL(r, 208, span, "", "more than %d mesh axes", CCN__MAX_AXES);
    for (uint32_t i = 0; i < m->naxes; i++)
      if (m->name[i] == name) FAIL(r, 11, span, "", "a second axis `%s`", name);
    m->name[m->naxes] = name;
    m->span[m->naxes] = span;
    if (ccn__read_accept(r, ':')) m->size[m->naxes] = (int32_t)ccn__read_index(r, INT32_MAX, "the size");
    m->naxes++;
  } while (ccn__read_accept(r, ','));
}

static void read_symbols(ccn__reader *r) {
  do {
    ccn__span span = r->tok.span;
    ccn__symbol_kind kind = CCN__SYM_DIM;
    uint32_t index = 0, before = r->g->symbols.n;
    ccn__name name = NULL;
    if (!ccn__read_derived(r, &kind, &index)) name = ccn__read_name(r, "a symbol");
    else if (r->tok.kind == T_STRING) name = ccn__read_name(r, "a name");
    if (before == SYMBOLS) FAIL(r, 208, span, "", "more than %d symbols", SYMBOLS);
    if (ccn__graph_symbol(r->g, name, kind, index, span) != before)
      FAIL(r, 11, span, "", "this symbol is there twice");
  } while (ccn__read_accept(r, ','));
}

static uint16_t read_code(ccn__reader *r) {
  if (!ccn__read_accept(r, '(')) return 0;
  uint32_t code = 0, n = 0;
  const char *s = r->tok.kind == T_NAME ? r->tok.name : "";
  if (strncmp(s, "CCN", 3) == 0)
    for (; n < 5 && ccn__read_digit(s[3 + n]); n++) code = code * 10 + (uint32_t)(s[3 + n] - '0');
  if (n < 4 || s[3 + n] || code > UINT16_MAX) ccn__read_unexpected(r, "a code, as CCN0305");
  ccn__read_next(r);
  ccn__read_expect(r, ')');
  return (uint16_t)code;
}

static void read_constraint(ccn__reader *r) {
  ccn__constraint c = {.kind = CCN__NEED_WHOLE};
  uint32_t start = r->tok.span.start;
  if (ccn__read_accept_word(r, "bundles")) {
    c.kind = CCN__NEED_BUNDLES;
    c.bx = ccn__read_index(r, BUNDLES, "the number of a bundle");
    ccn__read_expect(r, ',');
    c.by = ccn__read_index(r, BUNDLES, "the number of a bundle");
  } else if (ccn__read_accept_word(r, "whole")) {
    c.x = ccn__read_dim(r);
  } else {
    c.x = ccn__read_dim(r);
    if (ccn__read_accept(r, TWO('=', '='))) c.kind = CCN__NEED_EQUAL;
    else if (ccn__read_accept(r, TWO('<', '='))) c.kind = CCN__NEED_LESS_EQ;
    else if (ccn__read_accept(r, '<')) c.kind = CCN__NEED_LESS;
    else if (ccn__read_accept_word(r, "multiple") && ccn__read_accept_word(r, "of"))
      c.kind = CCN__NEED_MULTIPLE;
    else ccn__read_unexpected(r, "`==`, `<=`, `<` or `multiple of`");
    c.y = ccn__read_dim(r);
  }
  c.code = read_code(r);
  c.span = (ccn__span){r->source, start, r->tok.span.start};
  *CCN__PUSH(r->a, &r->g->constraints) = c;
}

static void read_outputs(ccn__reader *r) {
  ccn__graph *g = r->g;
  ids v = {0};
  if (ccn__read_accept(r, '(')) {
    g->returns_tuple = true;
    if (r->tok.kind != ')') v = read_ids(r);
    ccn__read_expect(r, ')');
  } else if (r->tok.kind == T_ID) {
    v = read_ids(r);
  } else {
    g->returns_none = true;
  }
  g->outputs = v.at;
  g->noutputs = v.n;
}

/* The list of parameters follows from the nodes; where it does not, the verifier finds the gap. */
static void list_params(ccn__graph *g) {
  uint32_t n = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) n += g->nodes.at[i].op == CCN__OP_PARAM;
  for (uint32_t i = 0; i < n; i++)
    *CCN__PUSH(g->arena, &g->params) = (ccn__param){.node = CCN__NO_ID, .update = CCN__NO_ID};
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *x = &g->nodes.at[i];
    const ccn__node *p = x->op == CCN__OP_UPDATE && x->nin ? &g->nodes.at[x->in[0]] : x;
    if (p->op != CCN__OP_PARAM) continue;
    int64_t k = ccn__attr_int(p->attrs, CCN__A_NUMBER, -1);
    if (k < 0 || k >= n) continue;
    if (p == x) g->params.at[k].node = i;
    else if (g->params.at[k].update == CCN__NO_ID) g->params.at[k].update = i;
  }
}

/* The verifier's text starts with the node it means. */
static ccn__span span_of_fault(const ccn__graph *g, const char *text, ccn__span otherwise) {
  uint64_t id = 0;
  if (*text++ != '%' || !ccn__read_digit(*text)) return otherwise;
  for (; ccn__read_digit(*text) && id < CCN__NO_ID; text++) id = id * 10 + (uint64_t)(*text - '0');
  return id < g->nodes.n ? g->nodes.at[id].span : otherwise;
}

static ccn__graph *read_graph(ccn__reader *r) {
  ccn__span span = r->tok.span;
  if (!ccn__read_accept_word(r, "graph")) ccn__read_unexpected(r, "`graph`");
  ccn__graph *g = r->g = ccn__graph_new(r->a, r->names, NULL, NULL);
  if (r->tok.kind != '{') g->name = ccn__read_name(r, "a name or `{`");
  ccn__read_expect(r, '{');
  if (ccn__read_accept_word(r, "mesh")) read_mesh(r);
  if (ccn__read_accept_word(r, "dim")) read_symbols(r);
  if (ccn__read_accept_word(r, "bundles")) g->nbundles = ccn__read_index(r, BUNDLES, "the number of bundles");
  read_nodes(r, 0, 0);
  while (ccn__read_accept_word(r, "need")) read_constraint(r);
  if (!ccn__read_accept_word(r, "return")) ccn__read_unexpected(r, "a node, `need` or `return`");
  read_outputs(r);
  ccn__read_expect(r, '}');
  list_params(g);
  const char *fault = ccn__graph_verify(g);
  if (fault) FAIL(r, 12, span_of_fault(g, fault, span), "", "%s", fault);
  return g;
}

typedef CCN__VEC(ccn__graph *) graphs;

static void read_file(ccn__reader *r, graphs *out) {
  ccn__read_next(r);
  while (r->tok.kind != T_END) {
    ccn__graph *g = read_graph(r);
    *CCN__PUSH(r->a, out) = g;
  }
}

bool ccn__graph_parse(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source,
                      ccn__graph_list *out) {
  const ccn__source *s = ds->sources[source];
  ccn__reader *r = CCN__NEW(a, ccn__reader); /* not a local: it changes between setjmp and longjmp */
  *r = (ccn__reader){.a = a, .names = names, .ds = ds, .source = source, .text = s->text, .size = s->size};
  ccn__arena_init(&r->scratch, a->heap);
  ccn__trap trap;
  *out = (ccn__graph_list){0};
  CCN__TRY(a->heap, trap)
  {
    graphs list = {0};
    read_file(r, &list);
    *out = (ccn__graph_list){list.at, list.n};
  }
  CCN__CATCH(a->heap, trap)
  {
    ccn__arena_free(&r->scratch);
    if (trap.status != CCN_ERROR) ccn__throw(a->heap, trap.status);
    return false;
  }
  ccn__arena_free(&r->scratch);
  return true;
}
