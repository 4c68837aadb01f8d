/* ast.c: names of node kinds and operators, and the tree as text (`ccn dump --stage ast`).
 * SPDX-License-Identifier: Apache-2.0 */
#include "ast.h"

const char *ccn__ast_kind_name(ccn__ast_kind k) {
  static const char *const names[] = {
#define AST(id, name, doc) name,
#include "ast.def"
#undef AST
  };
  return (unsigned)k < CCN__COUNT(names) ? names[k] : "?";
}

const char *ccn__oper_text(ccn__oper op) {
  static const char *const texts[CCN__T_OPER_COUNT] = {"",   "+", "-",  "*",  "/",  "//",  "%",  "**", "<",
                                                       "<=", ">", ">=", "==", "!=", "and", "or", "not"};
  return (unsigned)op < CCN__T_OPER_COUNT ? texts[op] : "?";
}

/* In quotes; bytes that could not be seen or would end the line are written \xNN. */
static void quoted(ccn__text *out, const char *s, size_t n) {
  ccn__text_putc(out, '"');
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\') {
      ccn__text_putc(out, '\\');
      ccn__text_putc(out, (char)c);
    } else if (c == '\n') {
      ccn__text_puts(out, "\\n");
    } else if (c < 0x20 || c == 0x7F) {
      ccn__text_printf(out, "\\x%02x", c);
    } else {
      ccn__text_putc(out, (char)c);
    }
  }
  ccn__text_putc(out, '"');
}

static void attributes(const ccn__ast *n, ccn__text *out) {
  if (n->name) {
    ccn__text_putc(out, ' ');
    ccn__text_puts(out, n->name);
  }
  switch ((ccn__ast_kind)n->kind) {
  case CCN__AST_INT: ccn__text_printf(out, " %lld", (long long)n->i); break;
  case CCN__AST_FLOAT:
    ccn__text_putc(out, ' ');
    ccn__text_float(out, n->f, false);
    break;
  case CCN__AST_BOOL: ccn__text_puts(out, n->i ? " true" : " false"); break;
  case CCN__AST_TEXT:
    ccn__text_putc(out, ' ');
    quoted(out, n->str, (size_t)n->i);
    break;
  case CCN__AST_FORMAT:
  case CCN__AST_IMPORT:
    if (!n->str) break;
    ccn__text_putc(out, ' ');
    quoted(out, n->str, strlen(n->str));
    break;
  case CCN__AST_UNARY:
  case CCN__AST_BINARY:
    ccn__text_putc(out, ' ');
    ccn__text_puts(out, ccn__oper_text((ccn__oper)n->op));
    break;
  case CCN__AST_RANGE:
    if (n->op) ccn__text_puts(out, " inclusive");
    break;
  case CCN__AST_TENSOR_TYPE:
    if (n->op && !n->list.n) ccn__text_puts(out, " []");
    break;
  default: break;
  }
}

/* Trees get as high as the parser lets them (some thousands), so the indentation stops growing: else the
 * text of a chain would be quadratic. The parentheses still tell. */
#define MAX_INDENT 64

static void print(const ccn__ast *n, const char *role, uint32_t depth, ccn__text *out);

static void print_list(const ccn__ast_list *l, const char *role, uint32_t depth, ccn__text *out) {
  for (uint32_t i = 0; i < l->n; i++) print(l->at[i], role, depth, out);
}

static void print(const ccn__ast *n, const char *role, uint32_t depth, ccn__text *out) {
  static const char blanks[2 * MAX_INDENT + 1] =
    "                                                                "
    "                                                                ";
  if (depth) {
    uint32_t indent = depth < MAX_INDENT ? depth : MAX_INDENT;
    ccn__text_putc(out, '\n');
    ccn__text_add(out, blanks, 2 * (size_t)indent);
  }
  if (!n) return;
  ccn__text_puts(out, role);
  ccn__text_putc(out, '(');
  ccn__text_puts(out, ccn__ast_kind_name((ccn__ast_kind)n->kind));
  attributes(n, out);
  print_list(&n->axes, "axis: ", depth + 1, out);
  print_list(&n->params, "", depth + 1, out);
  if (n->a) print(n->a, "a: ", depth + 1, out);
  if (n->b) print(n->b, "b: ", depth + 1, out);
  if (n->c) print(n->c, "c: ", depth + 1, out);
  print_list(&n->list, "", depth + 1, out);
  ccn__text_putc(out, ')');
}

void ccn__ast_print(const ccn__ast *n, ccn__text *out) {
  print(n, "", 0, out);
  ccn__text_putc(out, '\n');
}
