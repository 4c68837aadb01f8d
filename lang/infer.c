/* infer.c: the type of an op's result: ONE rule over the dims signature that each op carries in ops.def.
 *
 * The signature gives every operand dim a label; labels say which dims are aligned, reduced or may not be cut. From
 * the labels follow the shape and, for each mesh axis on its own, the placement (language reference, section 7).
 * reshape, update and the collectives ("=" in the table) have rows of their own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "infer.h"

bool ccn__infer_fail(ccn__type_error *err, uint16_t code, int axis, int x, int y, const char *text) {
  *err = (ccn__type_error){
    .code = code, .axis = (int8_t)axis, .x = (int8_t)x, .y = (int8_t)y, .xdim = -1, .ydim = -1, .text = text};
  return false;
}
#define FAIL(code, axis, x, y, text) \
  return ccn__infer_fail(err, (code), (int)(axis), (int)(x), (int)(y), (text))

/* ---- labels ---------------------------------------------------------------------------------------------------- */

#define MAX_LABELS 64
#define BROADCAST (-1)

typedef struct label {
  char letter;
  int16_t k;
  bool reduced, bang;
  uint8_t redop;
  const ccn__dim *extent;
  int8_t operand, dim; /* where the extent comes from */
} label;

typedef struct labels {
  label at[MAX_LABELS];
  int n;
  int8_t (*of)[CCN__MAX_RANK]; /* of[operand][dim] */
  int8_t result[CCN__MAX_RANK];
  uint8_t nresult;
} labels;

typedef struct token {
  char letter;
  char group; /* 0 single, '*', '.', '^', '~', '#' */
  char mark;  /* '+', '!' or 0 */
} token;

/* Reads one comma-separated list of the signature; *s moves behind it. */
static int read_tokens(const char **s, token out[8]) {
  int n = 0;
  const char *c = *s;
  while (*c == ' ') c++;
  while (*c && *c != ',' && !(c[0] == '-' && c[1] == '>')) {
    token t = {.letter = *c++};
    while (*c == '.' || *c == '*' || *c == '^' || *c == '~' || *c == '#') t.group = *c++;
    if (*c == '+' || *c == '!') t.mark = *c++;
    out[n++] = t;
    while (*c == ' ') c++;
  }
  if (*c == ',') c++;
  *s = c;
  return n;
}

static const char *signature(const ccn__infer_in *q) {
  const ccn__attr *own = q->op == CCN__OP_HOST ? ccn__attr_find(q->attrs, CCN__A_SIG) : NULL;
  return own ? own->text : ccn__op_table[q->op].sig;
}

/* One list of a signature from outside: letters with `*`, `..`, `+`, `!` only, one group at most. */
static bool list_valid(const char **s, uint8_t *group_of, bool result) {
  const char *c = *s;
  int tokens = 0, groups = 0;
  for (; *c && *c != ',' && *c != '-'; c++) {
    if (*c == ' ') continue;
    if (*c < 'a' || *c > 'z' || ++tokens > CCN__MAX_RANK) return false;
    uint8_t *known = &group_of[*c - 'a'], group = 1; /* 0: not met yet; 1: a single dim */
    if (c[1] == '*') group = 2;
    if (c[1] == '.' && c[2] == '.') group = 3;
    if ((*known && *known != group) || (result && !*known && group != 1)) return false;
    *known = group;
    c += group - 1;
    if (group != 1 && ++groups > 1) return false;
    if (!result && (c[1] == '+' || c[1] == '!')) c++;
  }
  *s = c;
  return true;
}

bool ccn__sig_valid(const char *sig, uint32_t *out_nin) {
  uint8_t group_of[26] = {0};
  *out_nin = 0;
  for (;; sig++) {
    if (!list_valid(&sig, group_of, false) || ++*out_nin > CCN__HOST_OPERANDS) return false;
    if (*sig != ',') break;
  }
  if (sig[0] != '-' || sig[1] != '>') return false;
  sig += 2;
  return list_valid(&sig, group_of, true) && !*sig;
}

static int find_label(labels *l, char letter, int k) {
  for (int i = 0; i < l->n; i++)
    if (l->at[i].letter == letter && l->at[i].k == k) return i;
  if (l->n == MAX_LABELS) return -1;
  l->at[l->n] = (label){.letter = letter, .k = (int16_t)k, .operand = -1, .dim = -1};
  return l->n++;
}

static bool listed(ccn__attrs attrs, ccn__attr_key key, int64_t v) {
  const ccn__attr *a = ccn__attr_find(attrs, key);
  for (int i = 0; a && i < a->n; i++)
    if (a->ints[i] == v) return true;
  return false;
}

/* x[a:b] takes dim d whole. */
static bool taken_whole(const ccn__infer_in *q, uint32_t d) {
  const ccn__attr *start = ccn__attr_find(q->attrs, CCN__A_START),
                  *count = ccn__attr_find(q->attrs, CCN__A_COUNT);
  const ccn__attr *drop = ccn__attr_find(q->attrs, CCN__A_DROP);
  return start && count && ccn__dim_is(start->dims[d], 0) &&
         ccn__dim_equal(count->dims[d], q->in[0]->dim[d]) && !(drop && drop->ints[d]);
}

/* Gives dim d of operand i the label (letter, k); extents that meet must be equal. */
static bool give(const ccn__infer_in *q, labels *l, int i, uint32_t d, token t, int k, ccn__type_error *err) {
  const ccn__type *x = q->in[i];
  int id = find_label(l, t.letter, k);
  if (id < 0) FAIL(208, -1, i, -1, "too many dims");
  label *a = &l->at[id];
  l->of[i][d] = (int8_t)id;
  a->reduced |= t.mark == '+';
  a->bang |= t.mark == '!';
  if (t.mark == '+') a->redop = CCN__RED_SUM;
  if (t.group == '^' && (listed(q->attrs, CCN__A_DIMS, d) || !ccn__attr_find(q->attrs, CCN__A_DIMS))) {
    a->reduced = true;
    a->redop = (uint8_t)ccn__op_redop(q->op);
  }
  bool concat_dim = q->op == CCN__OP_CONCAT && d == (uint32_t)ccn__attr_int(q->attrs, CCN__A_DIM, 0);
  if (concat_dim) a->bang = q->nin > 1;
  if (q->op == CCN__OP_INDEX) a->bang = !taken_whole(q, d);
  bool any = a->operand < 0;
  if (!any && t.group == '*' && ccn__dim_is(a->extent, 1)) any = true; /* what stood there broadcasts */
  if (any) {
    a->extent = x->dim[d];
    a->operand = (int8_t)i;
    a->dim = (int8_t)d;
    return true;
  }
  if (concat_dim || (t.group == '*' && ccn__dim_is(x->dim[d], 1)) || x->bundle || q->in[a->operand]->bundle)
    return true;
  if (ccn__dim_equal(a->extent, x->dim[d])) return true;
  *err = (ccn__type_error){
    .code = 305, .axis = -1, .x = a->operand, .y = (int8_t)i, .xdim = a->dim, .ydim = (int8_t)d};
  return false;
}

static bool label_operand(const ccn__infer_in *q, labels *l, int i, const token *t, int n,
                          ccn__type_error *err) {
  const ccn__type *x = q->in[i];
  int single = 0, groups = 0;
  for (int j = 0; j < n; j++) t[j].group ? groups++ : single++;
  int rest = (int)x->rank - single;
  if (rest < 0 || (!groups && rest)) FAIL(305, -1, i, -1, "it has the wrong number of dims");
  if (i > 0 && n && t[0].group == '#' && x->rank != q->in[0]->rank)
    FAIL(305, -1, 0, i, "they have different numbers of dims");
  int first =
    groups == 2 ? (int)ccn__attr_int(q->attrs, CCN__A_DIM, 0) : rest; /* take: dims before the named one */
  if (groups == 2 && (first < 0 || first >= (int)x->rank)) FAIL(309, -1, i, -1, "it has no such dim");
  uint32_t d = 0;
  for (int j = 0, seen = 0; j < n; j++) {
    if (!t[j].group) {
      if (!give(q, l, i, d++, t[j], 0, err)) return false;
      continue;
    }
    int count = seen++ == 0 ? first : rest - first;
    for (int k = 0; k < count; k++, d++)
      if (!give(q, l, i, d, t[j], t[j].group == '*' ? count - 1 - k : k, err)) return false;
  }
  return true;
}

/* Dims of extent 1 beside another extent broadcast, and so do a bundle's scalars beside its tensors. */
static void mark_broadcast(const ccn__infer_in *q, labels *l, bool tensors) {
  for (uint32_t i = 0; i < q->nin; i++)
    for (uint32_t d = 0; d < q->in[i]->rank; d++) {
      int id = l->of[i][d];
      if (id < 0) continue;
      bool one = ccn__dim_is(q->in[i]->dim[d], 1) && !ccn__dim_is(l->at[id].extent, 1) && l->at[id].k >= 0;
      bool group = q->op != CCN__OP_CONCAT && one;
      if (group || (tensors && q->in[i]->bundle == CCN__BUNDLE_SCALARS)) l->of[i][d] = BROADCAST;
    }
}

/* ---- the result's shape -------------------------------------------------------------------------------------------- */

static bool add_result(const ccn__infer_in *q, labels *l, ccn__type *out, int id, const ccn__dim *extent,
                       ccn__type_error *err) {
  if (out->rank == CCN__MAX_RANK) FAIL(208, -1, -1, -1, "the result has more than 8 dims");
  (void)q;
  l->result[out->rank] = (int8_t)id;
  out->dim[out->rank++] = extent;
  return true;
}

static bool result_group(const ccn__infer_in *q, labels *l, ccn__type *out, token t, ccn__type_error *err) {
  const ccn__type *x = q->in[q->nin ? 0 : 0];
  const ccn__attr *count = ccn__attr_find(q->attrs, CCN__A_COUNT),
                  *drop = ccn__attr_find(q->attrs, CCN__A_DROP);
  bool keep = ccn__attr_int(q->attrs, CCN__A_KEEP, 0) != 0;
  switch (t.group) {
  case '*': { /* k counts from the right; the widest operand has the largest */
    int top = -1;
    for (int i = 0; i < l->n; i++)
      if (l->at[i].letter == t.letter && l->at[i].k > top) top = l->at[i].k;
    for (int k = top; k >= 0; k--) {
      int id = find_label(l, t.letter, k);
      if (!add_result(q, l, out, id, l->at[id].extent, err)) return false;
    }
    return true;
  }
  case '.':
    for (int k = 0, id; k < CCN__MAX_RANK; k++) {
      for (id = 0; id < l->n; id++)
        if (l->at[id].letter == t.letter && l->at[id].k == k) break;
      if (id == l->n) break;
      if (!add_result(q, l, out, id, l->at[id].extent, err)) return false;
    }
    return true;
  case '^':
    for (uint32_t d = 0; d < x->rank; d++) {
      int id = l->of[0][d];
      bool reduced = id >= 0 && l->at[id].reduced;
      if (reduced && !keep) continue;
      if (!add_result(q, l, out, reduced ? BROADCAST : id,
                      reduced ? ccn__dim_const(q->g->arena, 1) : x->dim[d], err))
        return false;
    }
    return true;
  case '~': {
    const ccn__attr *perm = ccn__attr_find(q->attrs, CCN__A_PERM);
    uint64_t seen = 0;
    if (!perm || perm->n != x->rank) FAIL(305, -1, 0, -1, "the order must name each dim once");
    for (int j = 0; j < perm->n; j++) {
      int64_t d = perm->ints[j];
      if (d < 0 || d >= x->rank || (seen >> d & 1)) FAIL(309, -1, 0, -1, "the order must name each dim once");
      seen |= UINT64_C(1) << d;
      if (!add_result(q, l, out, l->of[0][d], x->dim[d], err)) return false;
    }
    return true;
  }
  default: /* '#' */
    for (uint32_t d = 0; d < x->rank; d++) {
      const ccn__dim *extent = x->dim[d];
      if (q->op == CCN__OP_INDEX) {
        if (drop && drop->ints[d]) continue;
        extent = count->dims[d];
      } else if (d == (uint32_t)ccn__attr_int(q->attrs, CCN__A_DIM, 0)) {
        for (uint32_t i = 1; i < q->nin; i++) {
          extent = ccn__dim_add(q->g->arena, extent, q->in[i]->dim[d]);
          if (!extent) FAIL(305, -1, 0, (int)i, "the extent is too large");
        }
      }
      if (!add_result(q, l, out, l->of[0][d], extent, err)) return false;
    }
    return true;
  }
}

static bool result_shape(const ccn__infer_in *q, labels *l, const token *t, int n, ccn__type *out,
                         ccn__type_error *err) {
  for (int j = 0; j < n; j++) {
    if (t[j].group) {
      if (!result_group(q, l, out, t[j], err)) return false;
      continue;
    }
    int before = l->n, id = find_label(l, t[j].letter, 0);
    if (id == before) { /* stands in the result only: given by the caller */
      if (!q->want || q->want->rank <= out->rank) FAIL(305, -1, -1, -1, "the result's shape is missing");
      l->at[id].extent = q->want->dim[out->rank];
    }
    if (!add_result(q, l, out, id, l->at[id].extent, err)) return false;
  }
  l->nresult = out->rank;
  return true;
}

/* ---- dtypes ---------------------------------------------------------------------------------------------------------- */

static bool fits_class(ccn__op_dtypes c, ccn__dtype t) {
  switch (c) {
  case CCN__DT_NUM: return t != CCN__BOOL;
  case CCN__DT_FLOAT: return ccn__dtype_is_float(t);
  case CCN__DT_INT: return ccn__dtype_is_int(t);
  case CCN__DT_BOOL: return t == CCN__BOOL;
  default: return true;
  }
}

/* Which operands carry data of the op's dtype: idx of take and scatter_add, cond of where, step do not. */
static bool carries(ccn__op op, uint32_t i, ccn__dtype *fixed_class) {
  bool idx = (op == CCN__OP_TAKE && i == 1) || (op == CCN__OP_SCATTER_ADD && i == 0) ||
             (op == CCN__OP_DROPOUT && i == 1) ||
             (i == 0 && ccn__op_table[op].kind == CCN__KIND_RANDOM && op != CCN__OP_DROPOUT);
  bool cond = op == CCN__OP_WHERE && i == 0;
  *fixed_class = idx ? CCN__I32 : CCN__BOOL;
  return !idx && !cond;
}

static bool dtypes(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  const ccn__op_info *info = &ccn__op_table[q->op];
  int first = -1;
  if (q->op == CCN__OP_HOST) { /* the host decides */
    out->dtype = q->want ? q->want->dtype : q->in[0]->dtype;
    return true;
  }
  for (uint32_t i = 0; i < q->nin; i++) {
    ccn__dtype fixed, t = (ccn__dtype)q->in[i]->dtype;
    if (!carries(q->op, i, &fixed)) {
      if (fixed == CCN__BOOL ? t != CCN__BOOL : !ccn__dtype_is_int(t))
        FAIL(104, -1, i, -1, fixed == CCN__BOOL ? "the condition must be bool" : "it must be an integer");
      continue;
    }
    if (first >= 0 && q->in[first]->dtype != t) FAIL(101, -1, first, i, NULL);
    if (first < 0) first = (int)i;
  }
  if (first >= 0) {
    ccn__dtype t = (ccn__dtype)q->in[first]->dtype;
    if (!fits_class((ccn__op_dtypes)info->dtypes, t))
      FAIL(q->op == CCN__OP_DIV && ccn__dtype_is_int(t) ? 103 : 104, -1, first, -1, NULL);
    if (info->kernel != CCN__K_COUNT &&
        !ccn__kernel_exists((ccn__kernel_id)info->kernel, ccn__dtype_is_float(t) ? ccn__dtype_acc(t) : t))
      FAIL(104, -1, first, -1, t == CCN__F64 ? "it is not there for f64 yet; cast to f32" : NULL);
  }
  bool own = info->result == CCN__RES_OWN && q->op != CCN__OP_WHERE;
  out->dtype = own                             ? (q->want ? q->want->dtype : 0)
               : info->result == CCN__RES_BOOL ? CCN__BOOL
                                               : q->in[first]->dtype;
  return true;
}

/* ---- owed reductions ---------------------------------------------------------------------------------------------------- */

static uint8_t owes(const ccn__infer_in *q, uint32_t i, uint32_t a) {
  const ccn__place *p = &q->in[i]->place[a];
  return p->kind == CCN__PARTIAL ? p->op : 0;
}

static bool whole(const ccn__infer_in *q, uint32_t i, uint32_t a) {
  return q->in[i]->place[a].kind == CCN__REPLICATED;
}

/* All operands from `from` on owe `op` (0: the same one, whichever). */
static bool all_owe(const ccn__infer_in *q, uint32_t a, uint32_t from, uint8_t op) {
  for (uint32_t i = from; i < q->nin; i++)
    if (!owes(q, i, a) || (op ? owes(q, i, a) != op : owes(q, i, a) != owes(q, from, a))) return false;
  return true;
}

/* Exactly one operand owes op, the others are replicated; `only` < 0: any one. */
static bool one_owes(const ccn__infer_in *q, uint32_t a, int only, uint8_t op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < q->nin; i++) {
    if (owes(q, i, a)) {
      if (owes(q, i, a) != op || (only >= 0 && i != (uint32_t)only)) return false;
      n++;
    } else if (!whole(q, i, a)) {
      return false;
    }
  }
  return n == 1;
}

static bool sum_max_min(uint8_t op) { return op == CCN__RED_SUM || op == CCN__RED_MAX || op == CCN__RED_MIN; }

/* Casts that lose nothing: between floats for a sum; for max and min any that keeps the order too. */
static bool widens(uint8_t op, ccn__dtype from, ccn__dtype to) {
  if (ccn__dtype_widens(from, to) || (op != CCN__RED_SUM && from == to)) return true;
  if (op == CCN__RED_SUM || ccn__dtype_is_float(from)) return false;
  static const uint8_t digits[CCN__DTYPE_COUNT] = {
    [CCN__F64] = 53, [CCN__F32] = 24, [CCN__F16] = 11, [CCN__BF16] = 8, [CCN__I64] = 63,
    [CCN__I32] = 31, [CCN__I16] = 15, [CCN__I8] = 7,   [CCN__U8] = 8,   [CCN__BOOL] = 1};
  return digits[to] >= digits[from] &&
         !(ccn__dtype_class(to) == CCN__CLASS_U && ccn__dtype_class(from) == CCN__CLASS_I);
}

/* Whether what the operands owe over axis a passes through the op. */
static bool passes(const ccn__infer_in *q, uint32_t a) {
  uint8_t op = 0;
  for (uint32_t i = 0; i < q->nin && !op; i++) op = owes(q, i, a);
  switch ((ccn__prule)ccn__op_table[q->op].prule) {
  case CCN__PRULE_NEVER: return false;
  case CCN__PRULE_LINEAR: return all_owe(q, a, 0, CCN__RED_SUM);
  case CCN__PRULE_SCALE:
  case CCN__PRULE_BILINEAR: return one_owes(q, a, -1, CCN__RED_SUM);
  case CCN__PRULE_SCALE_LEFT: return one_owes(q, a, 0, CCN__RED_SUM);
  case CCN__PRULE_MAXIMUM: return all_owe(q, a, 0, CCN__RED_MAX) || one_owes(q, a, -1, CCN__RED_MAX);
  case CCN__PRULE_MINIMUM: return all_owe(q, a, 0, CCN__RED_MIN) || one_owes(q, a, -1, CCN__RED_MIN);
  case CCN__PRULE_SELECT: return whole(q, 0, a) && all_owe(q, a, 1, 0) && sum_max_min(op);
  case CCN__PRULE_WIDENING:
    return sum_max_min(op) && q->want && widens(op, (ccn__dtype)q->in[0]->dtype, (ccn__dtype)q->want->dtype);
  case CCN__PRULE_REDUCE: return op == ccn__op_redop(q->op);
  case CCN__PRULE_SHAPE:
  case CCN__PRULE_CONCAT: return all_owe(q, a, 0, 0);
  case CCN__PRULE_TAKE: return one_owes(q, a, 0, op) && sum_max_min(op);
  case CCN__PRULE_SCATTER: return one_owes(q, a, 1, CCN__RED_SUM);
  }
  return false;
}

/* ---- one axis ------------------------------------------------------------------------------------------------------------ */

static bool axis_owed(const ccn__infer_in *q, uint32_t a, ccn__place *out, bool *done, ccn__type_error *err) {
  for (uint32_t i = 0; i < q->nin; i++) {
    if (!owes(q, i, a)) continue;
    int other = -1;
    for (uint32_t j = 0; j < q->nin; j++)
      if (j != i && other < 0) other = (int)j;
    if (!passes(q, a)) FAIL(210, a, i, other, NULL);
    *out = q->in[i]->place[a];
    return *done = true;
  }
  return true;
}

static bool axis_at(const ccn__infer_in *q, uint32_t a, ccn__place *out, bool *done, ccn__type_error *err) {
  for (uint32_t i = 0; i < q->nin; i++) {
    const ccn__place *p = &q->in[i]->place[a];
    if (p->kind != CCN__AT) continue;
    for (uint32_t j = 0; j < q->nin; j++)
      if (!whole(q, j, a) && !ccn__place_equal(&q->in[j]->place[a], p)) FAIL(206, a, i, j, NULL);
    *out = *p;
    return *done = true;
  }
  return true;
}

static bool axis_local(const ccn__infer_in *q, uint32_t a, ccn__place *out, bool *done,
                       ccn__type_error *err) {
  int local = -1, sliced = -1;
  for (uint32_t i = 0; i < q->nin; i++) {
    if (q->in[i]->place[a].kind == CCN__LOCAL && local < 0) local = (int)i;
    if (q->in[i]->place[a].kind == CCN__SLICED && sliced < 0) sliced = (int)i;
  }
  if (local < 0) return true;
  if (sliced >= 0) FAIL(203, a, local, sliced, NULL);
  out->kind = CCN__LOCAL;
  return *done = true;
}

static int dim_with_label(const labels *l, const ccn__type *x, uint32_t i, int id) {
  for (uint32_t d = 0; d < x->rank; d++)
    if (l->of[i][d] == id) return (int)d;
  return -1;
}

static bool axis_sliced(const ccn__infer_in *q, const labels *l, uint32_t a, ccn__place *out,
                        ccn__type_error *err) {
  int first = -1, id = 0;
  for (uint32_t i = 0; i < q->nin; i++) {
    const ccn__place *p = &q->in[i]->place[a];
    if (p->kind == CCN__SLICED && l->of[i][p->dim] == BROADCAST)
      FAIL(202, a, i, q->nin > 1 ? (i == 0) : -1, NULL);
  }
  for (uint32_t i = 0; i < q->nin; i++) {
    const ccn__place *p = &q->in[i]->place[a];
    if (p->kind != CCN__SLICED) continue;
    if (first < 0) {
      first = (int)i;
      id = l->of[i][p->dim];
      continue;
    }
    ccn__place same = *p;
    same.dim = q->in[first]->place[a].dim;
    if (l->of[i][p->dim] != id || !ccn__place_equal(&same, &q->in[first]->place[a]))
      FAIL(201, a, first, i, NULL);
  }
  if (first < 0) return true; /* all replicated */
  if (l->at[id].bang) FAIL(204, a, first, -1, NULL);
  bool strict = ccn__op_table[q->op].prule == CCN__PRULE_BILINEAR;
  for (uint32_t i = 0; i < q->nin && l->at[id].reduced && strict; i++)
    if (whole(q, i, a) && dim_with_label(l, q->in[i], i, id) >= 0) FAIL(205, a, i, first, NULL);
  *out = q->in[first]->place[a];
  if (l->at[id].reduced) {
    if (q->op == CCN__OP_TAKE && q->in[0]->dtype == CCN__BOOL)
      FAIL(104, a, first, -1, "rows of a cut table are owed as a sum, which bool has not; cast first");
    *out = (ccn__place){.kind = CCN__PARTIAL, .op = l->at[id].redop};
    return true;
  }
  for (uint32_t d = 0; d < l->nresult; d++)
    if (l->result[d] == id) return out->dim = (uint16_t)d, true;
  FAIL(204, a, first, -1, "the dim goes away");
}

/* CCN0218: a replicated operand read at the rank's offset in a dim that a later axis cuts. */
static bool offsets(const ccn__infer_in *q, const labels *l, ccn__type_error *err) {
  for (uint32_t a = 0; a + 1 < q->in[0]->naxes; a++) {
    int first = -1;
    for (uint32_t i = 0; i < q->nin && first < 0; i++)
      if (q->in[i]->place[a].kind == CCN__SLICED) first = (int)i;
    if (first < 0) continue;
    int id = l->of[first][q->in[first]->place[a].dim];
    for (uint32_t i = 0; i < q->nin; i++) {
      int d = dim_with_label(l, q->in[i], i, id);
      if (!whole(q, i, a) || d < 0) continue;
      int b = ccn__later_cut(q->in[i], a, (uint32_t)d, 0);
      if (b >= 0) FAIL(218, b, i, first, "a later axis cuts this dim; gather that one first");
    }
  }
  return true;
}

static bool one_operator(const ccn__type *out, ccn__type_error *err) {
  uint8_t op = 0;
  for (uint32_t a = 0; a < out->naxes; a++) {
    if (out->place[a].kind != CCN__PARTIAL) continue;
    if (op && out->place[a].op != op) FAIL(210, a, 0, -1, "a value owes one operator");
    op = out->place[a].op;
  }
  return true;
}

static bool placements(const ccn__infer_in *q, const labels *l, ccn__type *out, ccn__type_error *err) {
  for (uint32_t a = 0; a < out->naxes; a++) {
    bool done = false;
    out->place[a] = (ccn__place){.kind = CCN__REPLICATED};
    if (!axis_owed(q, a, &out->place[a], &done, err)) return false;
    if (!done && !axis_at(q, a, &out->place[a], &done, err)) return false;
    if (!done && !axis_local(q, a, &out->place[a], &done, err)) return false;
    if (!done && !axis_sliced(q, l, a, &out->place[a], err)) return false;
  }
  return offsets(q, l, err) && one_operator(out, err);
}

/* ---- bundles --------------------------------------------------------------------------------------------------------------- */

/* *out_bundle: the operand whose bundle the result is, or -1. */
static bool bundles(const ccn__infer_in *q, int *out_bundle, bool *out_tensors, ccn__type *out,
                    ccn__type_error *err) {
  int bundle = -1;
  *out_bundle = -1;
  for (uint32_t i = 0; i < q->nin; i++)
    if (q->in[i]->bundle && (bundle < 0 || q->in[i]->bundle < q->in[bundle]->bundle)) bundle = (int)i;
  *out_tensors = bundle >= 0 && q->in[bundle]->bundle == CCN__BUNDLE_TENSORS;
  if (bundle < 0) return true;
  ccn__op_kind kind = (ccn__op_kind)ccn__op_table[q->op].kind;
  bool elementwise = (kind == CCN__KIND_ELEM && q->op != CCN__OP_ONE_HOT) || q->op == CCN__OP_DROPOUT;
  if (!elementwise && kind != CCN__KIND_REDUCE) FAIL(305, -1, bundle, -1, "this op does not take a bundle");
  for (uint32_t i = 0; i < q->nin; i++)
    if (!q->in[i]->bundle && q->in[i]->rank) FAIL(305, -1, bundle, (int)i, "a bundle meets a tensor");
  if (elementwise) {
    out->bundle = q->in[bundle]->bundle;
    out->bundle_id = q->in[bundle]->bundle_id;
    *out_bundle = bundle;
  }
  return true;
}

/* sum(b, per: tensor): one result for each member. */
static void per_tensor(const ccn__infer_in *q, ccn__type *out) {
  out->bundle = CCN__BUNDLE_SCALARS;
  out->bundle_id = q->in[0]->bundle_id;
  out->rank = 1;
  for (uint32_t s = 0; s < q->g->symbols.n; s++)
    if (q->g->symbols.at[s].kind == CCN__SYM_COUNT && q->g->symbols.at[s].index == out->bundle_id)
      out->dim[0] = ccn__dim_symbol(q->g->arena, s);
}

/* ---- rows of their own ------------------------------------------------------------------------------------------------------- */

static const ccn__dim *product(ccn__arena *a, const ccn__type *t, uint32_t n) {
  const ccn__dim *p = ccn__dim_const(a, 1);
  for (uint32_t d = 0; d < n && p; d++) p = ccn__dim_mul(a, p, t->dim[d]);
  return p;
}

static bool whole_positive(const ccn__dim *x) {
  if (!x || x->den != 1 || x->n == 0) return false;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->term[i].coef < 0) return false;
  return true;
}

/* The unit with which a cut of dim d (extent D, unit u) goes on in result dim e; NULL if it does not. */
static const ccn__dim *reshaped_unit(ccn__arena *a, const ccn__dim *D, const ccn__dim *u, const ccn__dim *E) {
  if (ccn__dim_equal(D, E)) return u;
  const ccn__dim *q = ccn__dim_div(a, E, D);
  if (whole_positive(q)) return ccn__dim_mul(a, u, q);
  q = ccn__dim_div(a, D, E);
  if (!whole_positive(q)) return NULL;
  const ccn__dim *r = ccn__dim_div(a, u, q);
  return whole_positive(r) ? r : NULL;
}

static bool reshape_axis(const ccn__infer_in *q, uint32_t a, ccn__type *out, ccn__type_error *err) {
  const ccn__type *x = q->in[0];
  ccn__arena *arena = q->g->arena;
  const ccn__place *p = &x->place[a];
  out->place[a] = *p;
  if (p->kind != CCN__SLICED) return true;
  const ccn__dim *D = x->dim[p->dim], *u = p->unit ? p->unit : ccn__dim_const(arena, 1);
  const ccn__dim *before = product(arena, x, p->dim);
  int best = -1;
  const ccn__dim *unit = NULL;
  for (int pass = 0; pass < 3 && best < 0;
       pass++) /* extent D and the same dim; extent D; the first that fits */
    for (uint32_t e = 0; e < out->rank && best < 0; e++) {
      const ccn__dim *b = product(arena, out, e);
      if (!b || !before || !ccn__dim_equal(b, before)) continue;
      if (pass < 2 && !ccn__dim_equal(out->dim[e], D)) continue;
      if (pass == 0 && e != p->dim) continue;
      unit = reshaped_unit(arena, D, u, out->dim[e]);
      if (unit) best = (int)e;
    }
  if (best < 0) FAIL(207, a, 0, -1, "the cut would not stay in one dim");
  out->place[a].dim = (uint16_t)best;
  out->place[a].unit = ccn__dim_is(unit, 1) ? NULL : unit;
  return true;
}

static bool infer_reshape(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  const ccn__type *x = q->in[0];
  if (x->bundle || !q->want) FAIL(305, -1, 0, -1, "this op does not take a bundle");
  *out = *q->want;
  out->dtype = x->dtype;
  const ccn__dim *from = product(q->g->arena, x, x->rank), *to = product(q->g->arena, out, out->rank);
  if (!from || !to || !ccn__dim_equal(from, to)) FAIL(305, -1, 0, -1, "the numbers of elements differ");
  for (uint32_t a = 0; a < x->naxes; a++)
    if (!reshape_axis(q, a, out, err)) return false;
  return true;
}

static bool infer_update(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  const ccn__type *t = q->in[0], *e = q->in[1];
  *out = *t;
  if (t->dtype != e->dtype) FAIL(220, -1, 1, 0, NULL);
  bool bundles_meet = t->bundle && t->bundle == e->bundle;
  if (!bundles_meet && !ccn__shape_equal(t, e)) FAIL(221, -1, 1, 0, NULL);
  for (uint32_t a = 0; a < t->naxes; a++)
    if (!ccn__place_equal(&t->place[a], &e->place[a])) FAIL(222, a, 1, 0, NULL);
  return true;
}

static bool infer_enter(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  uint32_t a = (uint32_t)ccn__attr_int(q->attrs, CCN__A_AXIS, 0);
  int32_t coord = (int32_t)ccn__attr_int(q->attrs, CCN__A_COORD, 0);
  *out = *q->in[0];
  if (a >= out->naxes) FAIL(311, -1, 0, -1, NULL);
  const ccn__place *p = &out->place[a];
  bool fine =
    p->kind == CCN__REPLICATED || p->kind == CCN__LOCAL || (p->kind == CCN__AT && p->coord == coord);
  if (!fine) FAIL(206, a, 0, -1, NULL);
  out->place[a] = (ccn__place){.kind = CCN__AT, .coord = coord};
  return true;
}

static bool own_row(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  if (ccn__op_table[q->op].kind == CCN__KIND_COLLECTIVE) return ccn__infer_collective(q, out, err);
  switch (q->op) {
  case CCN__OP_RESHAPE: return infer_reshape(q, out, err);
  case CCN__OP_UPDATE: return infer_update(q, out, err);
  case CCN__OP_ENTER: return infer_enter(q, out, err);
  default:
    if (!q->want) FAIL(305, -1, -1, -1, "the result's type is missing");
    *out = *q->want;
    return true;
  }
}

/* ---- the rule ---------------------------------------------------------------------------------------------------------------------- */

static bool label_operands(const ccn__infer_in *q, labels *l, bool tensors, ccn__type_error *err) {
  token t[8];
  const char *s = signature(q);
  int n = 0;
  memset(l->of, 0xff, q->nin * sizeof *l->of);
  for (uint32_t i = 0; i < q->nin; i++) {
    if (i == 0 || q->op == CCN__OP_HOST || ccn__op_table[q->op].nin > 0) n = read_tokens(&s, t);
    if (!label_operand(q, l, (int)i, t, n, err)) return false;
  }
  mark_broadcast(q, l, tensors);
  return true;
}

void ccn__host_labels(const ccn__infer_in *q, int8_t (*out_of)[CCN__MAX_RANK]) {
  labels l = {.of = out_of};
  ccn__type_error err;
  (void)label_operands(q, &l, false, &err); /* it has been inferred before */
}

static bool infer_signature(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  labels l = {.n = 0};
  token t[8];
  const char *s = signature(q);
  bool tensors;
  int n, bundle;
  if (!dtypes(q, out, err) || !bundles(q, &bundle, &tensors, out, err)) return false;
  l.of = ccn__arena_alloc(q->g->arena, q->nin * sizeof *l.of + 1);
  if (!label_operands(q, &l, tensors, err)) return false;
  s = strstr(s, "->") + 2;
  n = read_tokens(&s, t);
  if (!result_shape(q, &l, t, n, out, err)) return false;
  if (bundle >= 0) out->dim[0] = q->in[bundle]->dim[0];
  if (q->in[0]->bundle && ccn__attr_int(q->attrs, CCN__A_PER, 0)) per_tensor(q, out);
  return placements(q, &l, out, err);
}

/* The signature stands in the node, which may come from a hostile text. */
static bool infer_host(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  const ccn__attr *sig = ccn__attr_find(q->attrs, CCN__A_SIG);
  uint32_t nin;
  if (!sig || !ccn__sig_valid(sig->text, &nin)) FAIL(305, -1, -1, -1, "its dims signature cannot be read");
  if (nin != q->nin) FAIL(305, -1, -1, -1, "its dims signature has another number of operands");
  return infer_signature(q, out, err);
}

bool ccn__infer(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  const ccn__op_info *info = &ccn__op_table[q->op];
  memset(out, 0, sizeof *out);
  memset(err, 0, sizeof *err);
  out->naxes = (uint8_t)q->g->mesh.naxes;
  if (q->op == CCN__OP_HOST) return infer_host(q, out, err);
  if (info->sig[0] == '=') return own_row(q, out, err);
  if (info->kind == CCN__KIND_MAKER || q->nin == 0 ||
      (info->kind == CCN__KIND_RANDOM && q->op != CCN__OP_DROPOUT)) {
    if (!q->want) FAIL(305, -1, -1, -1, "the result's type is missing");
    *out = *q->want;
    return true;
  }
  return infer_signature(q, out, err);
}
