/* lexer.c: the token loop: blanks, comments, names, keywords, operators, and what no token starts with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lexer.h"

#include <stdio.h>

void ccn__lexer_init(ccn__lexer *lx, ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source) {
  const ccn__source *s = ds->sources[source];
  memset(lx, 0, sizeof *lx);
  lx->arena = a;
  lx->names = names;
  lx->ds = ds;
  lx->source = source;
  lx->text = s->text;
  lx->size = s->size;
  if (lx->size >= 3 && memcmp(lx->text, "\xEF\xBB\xBF", 3) == 0) lx->at = lx->line_start = 3;
}

uint32_t ccn__utf8_decode(const char *s, size_t n, uint32_t *out_char) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *u = (const unsigned char *)s;
  uint32_t size, c;
  if (n == 0) return 0;
  if (u[0] < 0x80) {
    size = 1, c = u[0];
  } else if (u[0] >= 0xC2 && u[0] < 0xE0) {
    size = 2, c = u[0] & 0x1Fu;
  } else if (u[0] >= 0xE0 && u[0] < 0xF0) {
    size = 3, c = u[0] & 0x0Fu;
  } else if (u[0] >= 0xF0 && u[0] < 0xF5) {
    size = 4, c = u[0] & 0x07u;
  } else {
    return 0;
  }
  if (n < size) return 0;
  for (uint32_t i = 1; i < size; i++) {
    if ((u[i] & 0xC0) != 0x80) return 0;
    c = c << 6 | (u[i] & 0x3Fu);
  }
  if (c < least[size] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
  if (out_char) *out_char = c;
  return size;
}

/* ---- blanks and comments ---- */

/* Reads over a comment; bytes that are no UTF-8 are reported once. */
static void comment(ccn__lexer *lx) {
  bool reported = false;
  while (lx->at < lx->size && lx->text[lx->at] != '\n') {
    if ((unsigned char)lx->text[lx->at] < 0x80) {
      lx->at++;
      continue;
    }
    uint32_t n = ccn__utf8_decode(lx->text + lx->at, lx->size - lx->at, NULL);
    if (n == 0 && !reported) {
      reported = true;
      lx->errors++;
      ccn__error(lx->ds, 2, ccn__lexer_span(lx, lx->at, lx->at + 1), "not UTF-8",
                 "this comment holds a byte that is not UTF-8");
    }
    lx->at += n ? n : 1;
  }
}

/* Returns whether a newline was among what it skipped. Inside the {} of a string it stops before a
 * newline. */
static bool skip_blanks(ccn__lexer *lx) {
  bool newline = false;
  for (; lx->at < lx->size; lx->at++) {
    char c = lx->text[lx->at];
    if (c == '#') {
      comment(lx);
      if (lx->at == lx->size) break;
      c = '\n';
    }
    if (c == '\n') {
      if (lx->strings.n) break;
      newline = true;
      lx->line_start = lx->at + 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      break;
    }
  }
  return newline;
}

/* ---- names ---- */

static uint8_t keyword(const char *s, uint32_t n) {
  static const struct {
    const char *text;
    uint8_t size, kind;
  } words[] = {
    {"and", 3, CCN__TOK_AND},       {"assert", 6, CCN__TOK_ASSERT},
    {"break", 5, CCN__TOK_BREAK},   {"continue", 8, CCN__TOK_CONTINUE},
    {"else", 4, CCN__TOK_ELSE},     {"false", 5, CCN__TOK_FALSE},
    {"fn", 2, CCN__TOK_FN},         {"for", 3, CCN__TOK_FOR},
    {"if", 2, CCN__TOK_IF},         {"import", 6, CCN__TOK_IMPORT},
    {"in", 2, CCN__TOK_IN},         {"let", 3, CCN__TOK_LET},
    {"mesh", 4, CCN__TOK_MESH},     {"not", 3, CCN__TOK_NOT},
    {"or", 2, CCN__TOK_OR},         {"program", 7, CCN__TOK_PROGRAM},
    {"return", 6, CCN__TOK_RETURN}, {"schedule", 8, CCN__TOK_SCHEDULE},
    {"true", 4, CCN__TOK_TRUE},     {"while", 5, CCN__TOK_WHILE},
  };
  if (n < 2 || n > 8) return CCN__TOK_NAME;
  for (size_t i = 0; i < CCN__COUNT(words); i++) {
    if (words[i].text[0] == s[0] && words[i].size == n && memcmp(words[i].text, s, n) == 0)
      return words[i].kind;
  }
  return CCN__TOK_NAME;
}

/* A word goes on over bytes outside ASCII, so that `größe` is one mistake and not three. */
static void word(ccn__lexer *lx, ccn__token *t) {
  uint32_t at = lx->at;
  while (at < lx->size && ccn__is_name_char(lx->text[at])) at++;
  if (at < lx->size && (unsigned char)lx->text[at] >= 0x80) {
    while (at < lx->size && (ccn__is_name_char(lx->text[at]) || (unsigned char)lx->text[at] >= 0x80)) at++;
    t->kind = CCN__TOK_ERROR;
    t->code = 2;
  } else {
    t->kind = keyword(lx->text + t->start, at - t->start);
    if (t->kind == CCN__TOK_NAME) t->name = ccn__intern(lx->names, lx->text + t->start, at - t->start);
  }
  lx->at = at;
}

/* ---- operators ---- */

static void unknown(ccn__lexer *lx, ccn__token *t) {
  uint32_t at = lx->at + 1;
  if ((unsigned char)lx->text[lx->at] >= 0x80) {
    while (at < lx->size && (unsigned char)lx->text[at] >= 0x80) at++;
  }
  lx->at = at;
  t->kind = CCN__TOK_ERROR;
  t->code = 2;
}

static bool second(ccn__lexer *lx, char c) {
  if (ccn__lexer_peek(lx, 0) != c) return false;
  lx->at++;
  return true;
}

static uint8_t operator_of(ccn__lexer *lx, char c) {
  lx->at++;
  switch (c) {
  case '(': return CCN__TOK_LPAREN;
  case ')': return CCN__TOK_RPAREN;
  case '[': return CCN__TOK_LBRACKET;
  case ']': return CCN__TOK_RBRACKET;
  case '{': return CCN__TOK_LBRACE;
  case '}': return CCN__TOK_RBRACE;
  case ',': return CCN__TOK_COMMA;
  case ';': return CCN__TOK_SEMICOLON;
  case ':': return CCN__TOK_COLON;
  case '+': return CCN__TOK_PLUS;
  case '-': return CCN__TOK_MINUS;
  case '%': return CCN__TOK_PERCENT;
  case '*': return second(lx, '*') ? CCN__TOK_POW : CCN__TOK_STAR;
  case '/': return second(lx, '/') ? CCN__TOK_SLASH2 : CCN__TOK_SLASH;
  case '<': return second(lx, '=') ? CCN__TOK_LE : CCN__TOK_LT;
  case '>': return second(lx, '=') ? CCN__TOK_GE : CCN__TOK_GT;
  case '=': return second(lx, '=') ? CCN__TOK_EQ : CCN__TOK_ASSIGN;
  case '.':
    if (!second(lx, '.')) return CCN__TOK_DOT;
    return second(lx, '=') ? CCN__TOK_RANGE_EQ : CCN__TOK_RANGE;
  case '!':
    if (second(lx, '=')) return CCN__TOK_NE;
    break;
  default: break;
  }
  lx->at--;
  return CCN__TOK_ERROR;
}

/* Inside the {} of a string: a colon or a closing brace outside of brackets belongs to the string. */
static void in_insert(ccn__lexer *lx, ccn__token *t) {
  struct ccn__lexer_string *s = &lx->strings.at[lx->strings.n - 1];
  switch (t->kind) {
  case CCN__TOK_LPAREN:
  case CCN__TOK_LBRACKET:
  case CCN__TOK_LBRACE: s->depth++; break;
  case CCN__TOK_RPAREN:
  case CCN__TOK_RBRACKET:
    if (s->depth) s->depth--;
    break;
  case CCN__TOK_RBRACE:
    if (s->depth) {
      s->depth--;
    } else {
      t->kind = CCN__TOK_INSERT_END;
      lx->in_text = true;
    }
    break;
  case CCN__TOK_COLON:
    if (s->depth) break;
    t->kind = CCN__TOK_FORMAT;
    while (lx->at < lx->size && !strchr("}\"\r\n", lx->text[lx->at])) lx->at++;
    t->str = lx->text + t->start + 1;
    t->size = lx->at - t->start - 1;
    break;
  default: break;
  }
}

void ccn__lexer_next(ccn__lexer *lx, ccn__token *t) {
  t->newline = false;
  t->code = 0;
  t->size = 0;
  t->i = 0;
  if (!lx->in_text) t->newline = skip_blanks(lx);
  t->start = lx->at;
  t->column = lx->at - lx->line_start;
  if (lx->in_text) {
    ccn__lexer_string_piece(lx, t);
  } else if (lx->at == lx->size || lx->text[lx->at] == '\n') {
    if (lx->strings.n) {
      ccn__lexer_bad_string(lx, t);
    } else {
      t->kind = CCN__TOK_EOF;
    }
  } else {
    char c = lx->text[lx->at];
    if (ccn__is_name_start(c)) {
      word(lx, t);
    } else if (ccn__is_digit(c)) {
      ccn__lexer_number(lx, t);
    } else if (c == '"') {
      *CCN__PUSH(lx->arena, &lx->strings) = (struct ccn__lexer_string){lx->at, 0};
      lx->at++;
      lx->in_text = true;
      t->kind = CCN__TOK_QUOTE;
    } else {
      t->kind = operator_of(lx, c);
      if (t->kind == CCN__TOK_ERROR) unknown(lx, t);
      else if (lx->strings.n) in_insert(lx, t);
    }
  }
  t->end = lx->at;
}

/* ---- the longer look ahead ---- */

static uint32_t over_blanks(const ccn__lexer *lx, uint32_t at) {
  for (; at < lx->size; at++) {
    char c = lx->text[at];
    if (c == '#') {
      while (at < lx->size && lx->text[at] != '\n') at++;
      if (at == lx->size) break;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      break;
    }
  }
  return at;
}

/* Linear over a whole file: it starts behind a `<` and never runs over another one. */
bool ccn__lexer_axes_follow(const ccn__lexer *lx, uint32_t at) {
  for (;;) {
    at = over_blanks(lx, at);
    if (at == lx->size || !ccn__is_name_start(lx->text[at])) return false;
    while (at < lx->size && ccn__is_name_char(lx->text[at])) at++;
    at = over_blanks(lx, at);
    if (at == lx->size) return false;
    if (lx->text[at] == '>') break;
    if (lx->text[at] != ',') return false;
    at++;
  }
  at = over_blanks(lx, at + 1);
  return at < lx->size && lx->text[at] == '(';
}

/* ---- what an ERROR token is about ---- */

static const char *cure_of(uint32_t c) {
  static const struct {
    uint32_t c;
    const char *cure;
  } cures[] = {
    {'!', "write `not x`; `!=` compares"},
    {'&', "write `and`"},
    {'|', "write `or`"},
    {'^', "write `**` for a power"},
    {'~', "there are no operators on bits"},
    {'\'', "strings stand in double quotes: \"text\""},
    {'`', "strings stand in double quotes: \"text\""},
    {'@', "write `program with schedule`; `P@s` is for the command line and the C interface"},
    {'\\', "lines need no joining mark: a line goes on after an operator, a comma, and inside ( ) and [ ]"},
    {0xA0, "this is a no-break space; type a plain one"},
    {0x201C, "strings stand in straight quotes: \"text\""},
    {0x201D, "strings stand in straight quotes: \"text\""},
    {0x2018, "strings stand in straight quotes: \"text\""},
    {0x2019, "strings stand in straight quotes: \"text\""},
    {0x2212, "write the plain minus `-`"},
    {0x2013, "write the plain minus `-`"},
    {0xD7, "write `*` to multiply"},
    {0x2264, "write `<=`"},
    {0x2265, "write `>=`"},
    {0x2260, "write `!=`"},
    {0xFEFF, "this is a byte order mark; it may stand at the start of the file only"},
  };
  for (size_t i = 0; i < CCN__COUNT(cures); i++) {
    if (cures[i].c == c) return cures[i].cure;
  }
  return c >= 0x80 ? "names are made of A-Z a-z 0-9 _; other characters stand in strings and comments"
                   : "remove it";
}

void ccn__lexer_report(ccn__lexer *lx, const ccn__token *t) {
  ccn__span span = ccn__lexer_span(lx, t->start, t->end);
  ccn__diag *d;
  uint32_t at = t->start, c = 0, n;
  if (t->code == 3) {
    d =
      ccn__error(lx->ds, 3, ccn__lexer_span(lx, (uint32_t)t->i, t->end),
                 "this string is still open at the end of the line", "the string is not closed on its line");
    ccn__hint(lx->ds, d, "close it with `\"`; a line break inside is written `\\n`");
    return;
  }
  bool in_name = ccn__is_name_start(lx->text[at]);
  while (at < t->end && ccn__is_name_char(lx->text[at])) at++;
  n = ccn__utf8_decode(lx->text + at, t->end - at, &c);
  if (n == 0) {
    d = ccn__error(lx->ds, 2, ccn__lexer_span(lx, at, at + 1), "not UTF-8", "this byte is not UTF-8");
    ccn__hint(lx->ds, d, "save the file as UTF-8");
    return;
  }
  if (c > 0x20 && c < 0x7F) {
    d = ccn__error(lx->ds, 2, span, "no token starts with it", "unknown character `%c`", (char)c);
  } else if (c < 0x80) {
    d =
      ccn__error(lx->ds, 2, span, "no token starts with it", "unknown control character U+%04X", (unsigned)c);
  } else if (in_name) {
    d = ccn__error(lx->ds, 2, span, "not a name", "a name may not hold the character U+%04X", (unsigned)c);
  } else {
    d = ccn__error(lx->ds, 2, ccn__lexer_span(lx, at, at + n), "no token starts with it",
                   "unknown character U+%04X", (unsigned)c);
  }
  ccn__hint(lx->ds, d, "%s", cure_of(c));
}
