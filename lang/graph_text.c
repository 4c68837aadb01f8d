/* graph_text.c: prints graphs, types, placements and literals; graph_read.c reads it and has the grammar.
 *
 * Two ways to write the same things: *exact* for graph text (floats in hex, odd names quoted, bundles
 * numbered) and for people in messages (0.9, f32[N] sliced(0) over dp). Any graph prints, also one that
 * the verifier refuses: a dump is most wanted when something is wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ast.h"
#include "graph.h"
#include "order.h"

#include <stdio.h>

enum { FLOATS_MAX = 8 }; /* of a line that are shown as decimals behind it */

typedef struct printer {
  const ccn__graph *g;
  ccn__text *out;
  bool exact;
  uint32_t nfloats;
  double floats[FLOATS_MAX];
} printer;

static void puts_(printer *p, const char *s) { ccn__text_puts(p->out, s); }

/* ---- names --------------------------------------------------------------------------------------------- */

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool plain(const char *s) {
  if (!letter(*s)) return false;
  for (s++; *s; s++)
    if (!letter(*s) && !(*s >= '0' && *s <= '9')) return false;
  return true;
}

static void put_quoted(printer *p, const char *s) {
  ccn__text_putc(p->out, '"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') ccn__text_printf(p->out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f) ccn__text_printf(p->out, "\\x%02x", c);
    else ccn__text_putc(p->out, (char)c);
  }
  ccn__text_putc(p->out, '"');
}

static void put_name(printer *p, const char *s) {
  if (plain(s)) puts_(p, s);
  else put_quoted(p, s);
}

static void put_axis(printer *p, uint64_t axis) {
  if (axis < p->g->mesh.naxes && axis < CCN__MAX_AXES && p->g->mesh.name[axis])
    put_name(p, p->g->mesh.name[axis]);
  else ccn__text_printf(p->out, "axis?%llu", (unsigned long long)axis);
}

/* Words that mean something else where a symbol may stand. */
static bool reserved(const char *s) {
  static const char *const word[] = {"true", "false", "nan",   "inf",   "unknown", "and",    "or",
                                     "not",  "size",  "total", "count", "whole",   "bundles"};
  for (size_t k = 0; k < CCN__COUNT(word); k++)
    if (strcmp(word[k], s) == 0) return true;
  return false;
}

/* ---- extents ------------------------------------------------------------------------------------------- */

static void put_symbol(printer *p, uint32_t sym) {
  const ccn__graph *g = p->g;
  if (sym >= g->symbols.n) {
    ccn__text_printf(p->out, "symbol?%u", (unsigned)sym);
    return;
  }
  const ccn__symbol *s = &g->symbols.at[sym];
  switch (s->kind) {
  case CCN__SYM_SIZE:
    puts_(p, "size(");
    put_axis(p, s->index);
    puts_(p, ")");
    break;
  case CCN__SYM_TOTAL: ccn__text_printf(p->out, "total(%u)", (unsigned)s->index); break;
  case CCN__SYM_COUNT: ccn__text_printf(p->out, "count(%u)", (unsigned)s->index); break;
  default:
    if (reserved(s->name)) put_quoted(p, s->name);
    else put_name(p, s->name);
  }
}

static const char *exact_name(void *user, uint32_t sym) {
  printer p = *(printer *)user;
  ccn__text t;
  ccn__text_init(&t, p.out->arena);
  p.out = &t;
  put_symbol(&p, sym);
  return t.at;
}

static void put_dim(printer *p, const ccn__dim *d) {
  union { /* ccn__dim_print's user pointer is not const */
    const ccn__graph *g;
    void *user;
  } u = {.g = p->g};
  if (!d) puts_(p, "?");
  else if (p->exact) ccn__dim_print(d, exact_name, p, p->out);
  else ccn__dim_print(d, ccn__graph_symbol_name, u.user, p->out);
}

/* ---- placements and types ------------------------------------------------------------------------------ */

static void put_place(printer *p, const ccn__place *x) {
  switch (x->kind) {
  case CCN__REPLICATED: puts_(p, "replicated"); break;
  case CCN__SLICED:
    ccn__text_printf(p->out, "sliced(%u", (unsigned)x->dim);
    if (x->unit) {
      puts_(p, ", unit: ");
      put_dim(p, x->unit);
    }
    puts_(p, ")");
    break;
  case CCN__LOCAL: puts_(p, "local"); break;
  case CCN__PARTIAL: ccn__text_printf(p->out, "partial(%s)", ccn__redop_name((ccn__redop)x->op)); break;
  case CCN__AT: ccn__text_printf(p->out, "at(%d)", (int)x->coord); break;
  default: ccn__text_printf(p->out, "place?%u", (unsigned)x->kind);
  }
}

/* The only dim of a bundle: all its elements, or its number of tensors. */
static bool is_bundle_dim(const ccn__graph *g, const ccn__type *t) {
  uint32_t sym;
  if (t->rank != 1 || !t->dim[0] || !ccn__dim_is_symbol(t->dim[0], &sym) || sym >= g->symbols.n) return false;
  const ccn__symbol *s = &g->symbols.at[sym];
  uint8_t kind = t->bundle == CCN__BUNDLE_TENSORS ? CCN__SYM_TOTAL : CCN__SYM_COUNT;
  return s->kind == kind && s->index == t->bundle_id;
}

static void put_shape(printer *p, const ccn__type *t) {
  if (t->bundle && is_bundle_dim(p->g, t)) {
    if (t->bundle == CCN__BUNDLE_TENSORS) puts_(p, "[*]");
    return;
  }
  for (uint32_t i = 0; i < t->rank && i < CCN__MAX_RANK; i++) {
    puts_(p, i ? ", " : "[");
    put_dim(p, t->dim[i]);
  }
  if (t->rank) puts_(p, "]");
}

static void put_type(printer *p, const ccn__type *t) {
  if (t->bundle) puts_(p, "[");
  puts_(p, t->dtype < CCN__DTYPE_COUNT ? ccn__dtype_name((ccn__dtype)t->dtype) : "dtype?");
  put_shape(p, t);
  if (t->bundle) puts_(p, "]");
  if (t->bundle && p->exact) ccn__text_printf(p->out, " of %u", (unsigned)t->bundle_id);
  for (uint32_t i = 0; i < t->naxes && i < CCN__MAX_AXES; i++) {
    if (t->place[i].kind == CCN__REPLICATED) continue;
    puts_(p, " ");
    put_place(p, &t->place[i]);
    puts_(p, " over ");
    put_axis(p, i);
  }
}

/* ---- literals ------------------------------------------------------------------------------------------ */

/* As printf's %a, but without the process's decimal separator, and with the bits of a NaN. */
static void put_hex_float(printer *p, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t fraction = bits & 0xfffffffffffffu;
  int exponent = (int)(bits >> 52 & 0x7ff);
  if (bits >> 63) puts_(p, "-");
  if (exponent == 0x7ff) {
    puts_(p, fraction ? "nan" : "inf");
    if (fraction && fraction != 0x8000000000000u)
      ccn__text_printf(p->out, "(0x%llx)", (unsigned long long)fraction);
    return;
  }
  int lead = exponent ? 1 : 0;
  exponent = exponent ? exponent - 1023 : fraction ? -1022 : 0;
  ccn__text_printf(p->out, "0x%d", lead);
  if (fraction) {
    char digits[16];
    snprintf(digits, sizeof digits, "%013llx", (unsigned long long)fraction);
    size_t n = 13;
    while (digits[n - 1] == '0') n--;
    puts_(p, ".");
    ccn__text_add(p->out, digits, n);
  }
  ccn__text_printf(p->out, "p%+d", exponent);
}

static void put_float(printer *p, double x) {
  if (!p->exact) {
    ccn__text_float(p->out, x, false);
    return;
  }
  put_hex_float(p, x);
  if (p->nfloats < FLOATS_MAX) p->floats[p->nfloats++] = x;
}

static bool compound(const ccn__lit *l) { return l->kind == CCN__LIT_UNARY || l->kind == CCN__LIT_BINARY; }

static void put_lit(printer *p, const ccn__lit *l);

static void put_operand(printer *p, const ccn__lit *l, bool brackets) {
  if (brackets) puts_(p, "(");
  put_lit(p, l);
  if (brackets) puts_(p, ")");
}

/* Operands that are operations stand in brackets, so that the text needs no precedence; an extent that is
 * more than a symbol stands in [ ], so that [N + 1] and N + 1 (an addition that was not folded) stay
 * apart. */
static void put_lit(printer *p, const ccn__lit *l) {
  if (!l) {
    puts_(p, "?");
    return;
  }
  switch (l->kind) {
  case CCN__LIT_INT: ccn__text_printf(p->out, "%lld", (long long)l->i); break;
  case CCN__LIT_FLOAT: put_float(p, l->f); break;
  case CCN__LIT_BOOL: puts_(p, l->i ? "true" : "false"); break;
  case CCN__LIT_DIM: {
    bool simple = l->dim && ccn__dim_is_symbol(l->dim, NULL);
    if (!simple) puts_(p, "[");
    put_dim(p, l->dim);
    if (!simple) puts_(p, "]");
    break;
  }
  case CCN__LIT_UNKNOWN: puts_(p, "unknown"); break;
  case CCN__LIT_UNARY:
    puts_(p, l->op == CCN__T_NOT ? "not " : ccn__oper_text((ccn__oper)l->op));
    put_operand(p, l->x, true);
    break;
  case CCN__LIT_BINARY:
    put_operand(p, l->x, l->x && compound(l->x));
    ccn__text_printf(p->out, " %s ", ccn__oper_text((ccn__oper)l->op));
    put_operand(p, l->y, l->y && compound(l->y));
    break;
  case CCN__LIT_CALL:
    ccn__text_printf(p->out, "%s(", ccn__lit_function((ccn__kernel_id)l->op));
    put_lit(p, l->x);
    if (l->y) {
      puts_(p, ", ");
      put_lit(p, l->y);
    }
    puts_(p, ")");
    break;
  default: puts_(p, "lit?");
  }
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

static void put_axes(printer *p, int64_t mask) {
  bool one = mask > 0 && (mask & (mask - 1)) == 0, first = true;
  if (!one) puts_(p, "[");
  for (uint32_t i = 0; i < 64; i++) {
    if (!((uint64_t)mask >> i & 1)) continue;
    if (!first) puts_(p, ", ");
    first = false;
    put_axis(p, i);
  }
  if (!one) puts_(p, "]");
}

static void put_pairs(printer *p, const ccn__attr *a) {
  puts_(p, "[");
  for (uint32_t i = 0; i + 1 < a->n; i += 2)
    ccn__text_printf(p->out, "%s(%lld, %lld)", i ? ", " : "", (long long)a->ints[i],
                     (long long)a->ints[i + 1]);
  puts_(p, "]");
}

static void put_list(printer *p, const ccn__attr *a) {
  puts_(p, "[");
  for (uint32_t i = 0; i < a->n; i++) {
    if (i) puts_(p, ", ");
    if (ccn__attr_table[a->key].kind == CCN__ATTR_DIMS) put_dim(p, a->dims[i]);
    else ccn__text_printf(p->out, "%lld", (long long)a->ints[i]);
  }
  puts_(p, "]");
}

static void put_attr(printer *p, const ccn__attr *a) {
  if (a->key >= CCN__ATTR_KEYS) {
    puts_(p, "attr?");
    return;
  }
  ccn__text_printf(p->out, "%s: ", ccn__attr_table[a->key].name);
  switch (ccn__attr_table[a->key].kind) {
  case CCN__ATTR_INT:
    if (a->key == CCN__A_AXIS) put_axis(p, (uint64_t)a->i);
    else ccn__text_printf(p->out, "%lld", (long long)a->i);
    break;
  case CCN__ATTR_LIT: put_lit(p, a->lit); break;
  case CCN__ATTR_INTS:
  case CCN__ATTR_DIMS: put_list(p, a); break;
  case CCN__ATTR_DIM: put_dim(p, a->dim); break;
  case CCN__ATTR_PAIRS: put_pairs(p, a); break;
  case CCN__ATTR_AXES: put_axes(p, a->i); break;
  case CCN__ATTR_RED:
    puts_(p, a->i > 0 && a->i < CCN__RED_COUNT ? ccn__redop_name((ccn__redop)a->i) : "op?");
    break;
  case CCN__ATTR_ORDER:
    if (ccn__order_valid(a->i)) ccn__order_print(a->i, p->out);
    else puts_(p, "order?");
    break;
  case CCN__ATTR_TEXT: put_quoted(p, a->text ? a->text : ""); break;
  }
}

/* ---- nodes and regions --------------------------------------------------------------------------------- */

static void put_indent(printer *p, uint32_t depth) {
  for (uint32_t i = 0; i < depth; i++) puts_(p, "  ");
}

static void put_ids(printer *p, const ccn__id *id, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) ccn__text_printf(p->out, "%s%%%u", i ? ", " : "", (unsigned)id[i]);
}

/* What the hex floats of the line are. */
static void put_decimals(printer *p) {
  for (uint32_t i = 0; i < p->nfloats; i++) {
    puts_(p, i ? ", " : "  # ");
    ccn__text_float(p->out, p->floats[i], false);
  }
  p->nfloats = 0;
}

static void put_node(printer *p, ccn__id id, uint32_t depth) {
  const ccn__node *n = &p->g->nodes.at[id];
  put_indent(p, depth);
  ccn__text_printf(p->out, "%%%u", (unsigned)id);
  if (n->name) {
    puts_(p, " ");
    put_quoted(p, n->name);
  }
  if (n->autoname) {
    puts_(p, " (");
    put_name(p, n->autoname);
    puts_(p, ")");
  }
  ccn__text_printf(p->out, " = %s", n->op < CCN__OP_COUNT ? ccn__op_table[n->op].name : "op?");
  if (n->nin) puts_(p, " ");
  put_ids(p, n->in, n->nin);
  for (uint32_t i = 0; i < n->attrs.n; i++) {
    puts_(p, i ? ", " : " {");
    put_attr(p, &n->attrs.at[i]);
  }
  if (n->attrs.n) puts_(p, "}");
  if (n->type && n->op != CCN__OP_ON && n->op != CCN__OP_REPEAT) { /* blocks are no values */
    puts_(p, " : ");
    put_type(p, n->type);
  }
  if (n->body) puts_(p, " {");
  put_decimals(p);
  puts_(p, "\n");
}

/* Ends the block of `region`; gives the region around it (0 if the graph is malformed). */
static uint32_t close_region(printer *p, uint32_t region, uint32_t depth) {
  const ccn__graph *g = p->g;
  const ccn__region *r = &g->regions.at[region];
  bool loop = r->owner < g->nodes.n && g->nodes.at[r->owner].op == CCN__OP_REPEAT;
  if (r->nyield || loop) {
    put_indent(p, depth);
    puts_(p, r->nyield ? "yield " : "yield");
    put_ids(p, r->yield, r->nyield);
    puts_(p, "\n");
  }
  put_indent(p, depth - 1);
  puts_(p, "}\n");
  uint32_t outer = r->owner < g->nodes.n ? g->nodes.at[r->owner].region : 0;
  return outer < g->regions.n ? outer : 0;
}

static void put_nodes(printer *p) {
  const ccn__graph *g = p->g;
  uint32_t region = 0, depth = 1;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    for (; depth > 1 && region != g->nodes.at[i].region; depth--) region = close_region(p, region, depth);
    put_node(p, i, depth);
    uint32_t body = g->nodes.at[i].body;
    if (body && body < g->regions.n) region = body, depth++;
  }
  for (; depth > 1; depth--) region = close_region(p, region, depth);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void put_mesh(printer *p) {
  const ccn__mesh *m = &p->g->mesh;
  for (uint32_t i = 0; i < m->naxes && i < CCN__MAX_AXES; i++) {
    puts_(p, i ? ", " : "  mesh ");
    put_axis(p, i);
    if (m->size[i]) ccn__text_printf(p->out, ": %d", (int)m->size[i]);
  }
  if (m->naxes) puts_(p, "\n");
}

/* Symbols that stand for something of the graph carry a name only where somebody chose one. */
static void put_symbols(printer *p) {
  const ccn__graph *g = p->g;
  for (uint32_t i = 0; i < g->symbols.n; i++) {
    puts_(p, i ? ", " : "  dim ");
    put_symbol(p, i);
    const ccn__symbol *s = &g->symbols.at[i];
    if (s->kind == CCN__SYM_DIM || strcmp(s->name, exact_name(p, i)) == 0) continue;
    puts_(p, " ");
    put_quoted(p, s->name);
  }
  if (g->symbols.n) puts_(p, "\n");
  if (g->nbundles) ccn__text_printf(p->out, "  bundles %u\n", (unsigned)g->nbundles);
}

static void put_constraint(printer *p, const ccn__constraint *c) {
  static const char *const between[] = {[CCN__NEED_EQUAL] = " == ",
                                        [CCN__NEED_LESS_EQ] = " <= ",
                                        [CCN__NEED_LESS] = " < ",
                                        [CCN__NEED_MULTIPLE] = " multiple of "};
  puts_(p, "  need ");
  if (c->kind == CCN__NEED_BUNDLES) {
    ccn__text_printf(p->out, "bundles %u, %u", (unsigned)c->bx, (unsigned)c->by);
  } else if (c->kind == CCN__NEED_WHOLE) {
    puts_(p, "whole ");
    put_dim(p, c->x);
  } else {
    put_dim(p, c->x);
    puts_(p, c->kind < CCN__COUNT(between) ? between[c->kind] : " ? ");
    put_dim(p, c->y);
  }
  if (c->code) ccn__text_printf(p->out, " (CCN%04u)", (unsigned)c->code);
  puts_(p, "\n");
}

static void put_outputs(printer *p) {
  const ccn__graph *g = p->g;
  puts_(p, "  return");
  if (g->returns_none) {
    puts_(p, "\n");
    return;
  }
  puts_(p, g->returns_tuple ? " (" : " ");
  put_ids(p, g->outputs, g->noutputs);
  puts_(p, g->returns_tuple ? ")\n" : "\n");
}

void ccn__graph_print(const ccn__graph *g, ccn__text *out) {
  printer p = {.g = g, .out = out, .exact = true};
  puts_(&p, "graph ");
  if (g->name) {
    put_name(&p, g->name);
    puts_(&p, " ");
  }
  puts_(&p, "{\n");
  put_mesh(&p);
  put_symbols(&p);
  put_nodes(&p);
  for (uint32_t i = 0; i < g->constraints.n; i++) put_constraint(&p, &g->constraints.at[i]);
  put_outputs(&p);
  puts_(&p, "}\n");
}

void ccn__type_print(const ccn__graph *g, const ccn__type *t, ccn__text *out) {
  put_type(&(printer){.g = g, .out = out}, t);
}

void ccn__place_print(const ccn__graph *g, const ccn__place *x, ccn__text *out) {
  put_place(&(printer){.g = g, .out = out}, x);
}

void ccn__lit_print(const ccn__graph *g, const ccn__lit *l, ccn__text *out) {
  put_lit(&(printer){.g = g, .out = out}, l);
}
