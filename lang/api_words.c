/* api_words.c: the words of the language and the parts of the library, as the tables have them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "api.h"
#include "jit.h"

/* ---- ops ----------------------------------------------------------------------------------------------- */

static const char *group_of(uint8_t kind) {
  switch ((ccn__op_kind)kind) {
  case CCN__KIND_ELEM: return "elementwise";
  case CCN__KIND_REDUCE: return "reduction";
  case CCN__KIND_SHAPE: return "shape";
  case CCN__KIND_LINEAR: return "linear algebra";
  case CCN__KIND_MAKER: return "maker";
  case CCN__KIND_RANDOM: return "random";
  case CCN__KIND_COLLECTIVE: return "collective";
  case CCN__KIND_EFFECT: return "state";
  case CCN__KIND_COMPOSED: return "composed";
  case CCN__KIND_HOST:
  case CCN__KIND_STRUCT: break;
  }
  return "";
}

static const char *dtypes_of(uint8_t dtypes) {
  switch ((ccn__op_dtypes)dtypes) {
  case CCN__DT_NUM: return "numbers";
  case CCN__DT_FLOAT: return "floats";
  case CCN__DT_INT: return "integers";
  case CCN__DT_BOOL: return "bool";
  case CCN__DT_ANY: break;
  }
  return "any";
}

/* What infer.c does, in words. */
static const char *owed_of(uint8_t rule) {
  switch ((ccn__prule)rule) {
  case CCN__PRULE_NEVER: return "none: reduce it first";
  case CCN__PRULE_LINEAR: return "a sum, if every operand owes it";
  case CCN__PRULE_SCALE: return "a sum, if the other operand is replicated";
  case CCN__PRULE_SCALE_LEFT: return "a sum that the left operand owes, if the right one is replicated";
  case CCN__PRULE_MAXIMUM: return "a maximum, if the other operand owes it too or is replicated";
  case CCN__PRULE_MINIMUM: return "a minimum, if the other operand owes it too or is replicated";
  case CCN__PRULE_SELECT: return "what both values owe (sum, max, min), if the condition is replicated";
  case CCN__PRULE_WIDENING: return "a sum, max or min, where the cast loses nothing";
  case CCN__PRULE_REDUCE: return "the same reduction";
  case CCN__PRULE_BILINEAR: return "a sum that one factor owes, if the other is replicated";
  case CCN__PRULE_SHAPE: return "any";
  case CCN__PRULE_CONCAT: return "any, if all operands owe the same";
  case CCN__PRULE_TAKE: return "what x owes (sum, max, min), if idx is replicated";
  case CCN__PRULE_SCATTER: return "a sum that v owes, if idx is replicated";
  }
  return "";
}

static bool op_word(size_t *i, ccn_word *w) {
  for (int k = 0; k < CCN__OP_COUNT; k++) {
    const ccn__op_info *op = &ccn__op_table[k];
    if (op->kind == CCN__KIND_STRUCT || op->kind == CCN__KIND_HOST || (*i)-- > 0) continue;
    w->kind = "op";
    w->name = op->name;
    w->group = group_of(op->kind);
    w->params = op->params;
    w->dims = op->sig;
    w->dtypes = dtypes_of(op->dtypes);
    w->owed = op->kind == CCN__KIND_COLLECTIVE ? "" : owed_of(op->prule);
    w->doc = op->doc;
    w->programs_only = ccn__program_only(op->name);
    return true;
  }
  return false;
}

/* ---- other words --------------------------------------------------------------------------------------- */

static bool function_word(size_t *i, ccn_word *w) {
  const ccn__builtin *b;
  for (uint32_t k = 0; (b = ccn__builtin_at(k)); k++) {
    if ((*i)-- > 0) continue;
    w->kind = "function";
    w->name = b->name;
    w->params = b->params;
    w->doc = b->doc;
    return true;
  }
  return false;
}

typedef struct row {
  const char *name, *params, *doc;
} row;

static bool listed(size_t *i, ccn_word *w, const char *kind, const row *rows, size_t n) {
  if (*i >= n) {
    *i -= n;
    return false;
  }
  w->kind = kind;
  w->name = rows[*i].name;
  w->params = rows[*i].params;
  w->doc = rows[*i].doc;
  return true;
}

/* Functions that the evaluator knows itself. */
static const row special[] = {
  {"zeros", "type", "full(type, 0)"},
  {"ones", "type", "full(type, 1)"},
  {"size", "axis", "the number of coordinates of a mesh axis"},
};

static const row keywords[] = {
  {"and", "", "both hold: a and b"},
  {"assert", "", "assert c, \"text\": an error if c is false"},
  {"break", "", "ends a loop"},
  {"continue", "", "goes on with the next round of a loop"},
  {"else", "", "if c { } else { }"},
  {"false", "", "a boolean"},
  {"fn", "", "a function of the script: fn f(a, b = 2) { return a + b }"},
  {"for", "", "for x in 0..n { }"},
  {"if", "", "if c { } else { }"},
  {"import", "", "a module: import \"std/optim\" as optim"},
  {"in", "", "for x in list { }"},
  {"let", "", "a new variable: let x = 1"},
  {"mesh", "", "names the axes on which the ranks lie: mesh (dp, tp: 2)"},
  {"not", "", "not c"},
  {"or", "", "one of them holds: a or b"},
  {"program", "", "dataflow over tensors: program f(x: f32[N] local) { return allreduce(sum, x) }"},
  {"return", "", "the value of a function or program"},
  {"schedule", "", "how a program runs: schedule s(x) { (rs, ag) = split(x) }"},
  {"true", "", "a boolean"},
  {"while", "", "while c { }"},
  {"with", "", "a program with a schedule: step with zero(step.gsum)"},
};

static bool dtype_word(size_t *i, ccn_word *w) {
  static const row rows[] = {
#define DTYPE(id, name, bytes, class, acc) \
  {name, "x", (bytes) ? "a dtype; as a function, the cast to it" : "reserved: not there yet"},
#include "dtype.def"
#undef DTYPE
  };
  return listed(i, w, "dtype", rows, CCN__COUNT(rows));
}

static bool schedule_word(size_t *i, ccn_word *w) {
  static const row rows[] = {
#define PASS(name, params, class, doc) {#name, params, doc},
#include "passes.def"
#undef PASS
  };
  return listed(i, w, "schedule", rows, CCN__COUNT(rows));
}

ccn_status ccn_word_get(size_t i, ccn_word *out) {
  if (!out || out->size < offsetof(ccn_word, group)) return CCN_INVALID_ARGUMENT;
  ccn_word w = {
    .size = out->size, .group = "", .params = "", .dims = "", .dtypes = "", .owed = "", .doc = ""};
  if (!op_word(&i, &w) && !function_word(&i, &w) &&
      !listed(&i, &w, "function", special, CCN__COUNT(special)) && !dtype_word(&i, &w) &&
      !listed(&i, &w, "keyword", keywords, CCN__COUNT(keywords)) && !schedule_word(&i, &w))
    return CCN_NOT_FOUND;
  memcpy(out, &w, out->size < sizeof w ? out->size : sizeof w);
  return CCN_OK;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

const char *ccn_feature_list(size_t i, int *out_built, const char **out_about, const char **out_cure) {
  const struct {
    const char *name;
    int built;
    const char *about, *cure;
  } features[] = {
#define FEATURE(name, built, about, cure) {name, built, about, cure},
#include "features.def"
#undef FEATURE
  };
  if (i >= CCN__COUNT(features)) return NULL;
  if (out_built) *out_built = features[i].built;
  if (out_about) *out_about = features[i].about;
  if (out_cure) *out_cure = features[i].cure;
  return features[i].name;
}
