/* tune_moves.c: the moves of the search: each is one statement, as large as it is legal, carried out on every all-reduce
 * of one kind; the statement's text goes with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"
#include "tune.h"

enum { MOST_TRIED = 48 }; /* ops among which a legal part is looked for one by one */

static const char *const roles[CCN__TUNE_ROLES] = {"x", "rs", "ag", "c", "gs", "f", "o", "mm"};

/* ---- names ----------------------------------------------------------------------------------------------- */

static const char *label_of(const ccn__node *n) { return n->name ? n->name : n->autoname; }

static bool is_gone(const ccn__tune_state *s, const char *name) {
  for (const ccn__tune_gone *x = s->gone; x; x = x->next)
    if (strcmp(x->name, name) == 0) return true;
  return false;
}

static bool in_block(const char *name, const char *block) {
  const size_t n = block ? strlen(block) : 0;
  return !n || (strncmp(name, block, n) == 0 && name[n] == '.');
}

/* What a schedule may call node i: NULL if its name means another node, was consumed, or stands outside the block. */
static const char *usable(const ccn__tune_state *s, ccn__id i, const char *block) {
  const ccn__graph *g = s->g;
  const char *name = label_of(&g->nodes.at[i]);
  if (!name || is_gone(s, name) || !in_block(name, block)) return NULL;
  for (ccn__id j = i + 1; j < g->nodes.n; j++)
    if (label_of(&g->nodes.at[j]) && strcmp(label_of(&g->nodes.at[j]), name) == 0) return NULL;
  return name;
}

static bool taken(const ccn__graph *g, const char *name) {
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if ((g->nodes.at[i].name && strcmp(g->nodes.at[i].name, name) == 0) ||
        (g->nodes.at[i].autoname && strcmp(g->nodes.at[i].autoname, name) == 0))
      return true;
  return false;
}

/* rs; of several chains that are no blocks rs2; with _ where the program has such a name. */
static const char *new_name(const ccn__tune_trial *t, uint32_t chain, ccn__tune_role role) {
  const char *name =
    t->s.nchains == 1 || t->block ? roles[role] : ccn__arena_printf(t->a, "%s%u", roles[role], chain + 1);
  while (taken(t->s.g, name)) name = ccn__arena_printf(t->a, "%s_", name);
  return name;
}

/* ---- carrying out ---------------------------------------------------------------------------------------- */

static void say(ccn__tune_trial *t, const char *line) {
  t->lines = ccn__arena_printf(t->a, "%s  %s\n", t->lines, line);
}

static void consume(ccn__tune_trial *t, const ccn__graph *g, ccn__id id) {
  if (g->nodes.at[id].op == CCN__OP_PARAM) return;
  const char *names[] = {g->nodes.at[id].name, g->nodes.at[id].autoname};
  for (size_t k = 0; k < 2; k++) {
    if (!names[k]) continue;
    ccn__tune_gone *x = CCN__NEW(t->a, ccn__tune_gone);
    *x = (ccn__tune_gone){t->s.gone, names[k]};
    t->s.gone = x;
  }
}

static ccn__pass pass(const ccn__tune_trial *t, const char *name) {
  return (ccn__pass){.rt = t->rt, .g = t->s.g, .arena = t->a, .name = name};
}

/* Behind a pass that went well: the checks that follow each statement; handles follow their nodes. */
static bool follow(ccn__tune_trial *t, ccn__pass *p, const ccn__ids *used) {
  const ccn__graph *old = t->s.g;
  if (p->g == old) return true;
  if (ccn__graph_verify(p->g) || !ccn__kernels_hold(p) || !ccn__chains_hold(p)) return false;
  bool *marked = CCN__NEWN(t->a, bool, old->nodes.n + 1);
  for (uint32_t i = 0; used && i < used->n; i++) {
    marked[used->at[i]] = true;
    consume(t, old, used->at[i]);
  }
  for (uint32_t c = 0; c < t->s.nchains; c++)
    for (uint32_t r = 0; r < CCN__TUNE_ROLES; r++) {
      ccn__tune_handle *h = &t->s.chain[c].h[r];
      ccn__ids now = {0};
      for (uint32_t i = 0; i < h->ids.n; i++) {
        h->consumed |= marked[h->ids.at[i]];
        if (p->edit.map[h->ids.at[i]] != CCN__NO_ID) *CCN__PUSH(t->a, &now) = p->edit.map[h->ids.at[i]];
      }
      h->ids = now;
    }
  t->s.g = p->g;
  return true;
}

static ccn__tune_handle *handle(ccn__tune_trial *t, uint32_t chain, ccn__tune_role role) {
  return &t->s.chain[chain].h[role];
}

/* A handle that a statement may name and that stands for something; NULL if it is not that. */
static const ccn__tune_handle *live(ccn__tune_trial *t, uint32_t chain, ccn__tune_role role) {
  const ccn__tune_handle *h = handle(t, chain, role);
  return h->name && !h->consumed && h->ids.n ? h : NULL;
}

static bool had(ccn__tune_trial *t, uint32_t chain, ccn__tune_role role) {
  return handle(t, chain, role)->name != NULL;
}

static void give(ccn__tune_trial *t, uint32_t chain, ccn__tune_role role, const char *name,
                 const ccn__ids *ids) {
  *handle(t, chain, role) = (ccn__tune_handle){.name = name, .ids = *ids};
}

static void append(ccn__tune_trial *t, ccn__ids *to, const ccn__ids *from) {
  for (uint32_t i = 0; i < from->n; i++) *CCN__PUSH(t->a, to) = from->at[i];
}

/* What depends on the handle, as after(...) says it. */
static ccn__ids after(ccn__tune_trial *t, const ccn__tune_handle *h) {
  ccn__pass p = pass(t, "after");
  const bool *yes = ccn__after(&p, &h->ids);
  ccn__ids ids = {0};
  for (ccn__id i = 0; i < t->s.g->nodes.n; i++)
    if (yes[i] && ccn__op_table[t->s.g->nodes.at[i].op].kind != CCN__KIND_STRUCT) *CCN__PUSH(t->a, &ids) = i;
  return ids;
}

/* ---- the largest legal set ------------------------------------------------------------------------------- */

/* Tries a statement on ops; on success the pass holds the new graph. */
typedef bool attempt(ccn__pass *p, const ccn__ids *ops, ccn__id g, ccn__ids out[2]);

static bool try_fuse(ccn__pass *p, const ccn__ids *ops, ccn__id g, ccn__ids out[2]) {
  (void)g;
  return ccn__pass_fuse(p, ops, &out[0]);
}

static bool try_reorder(ccn__pass *p, const ccn__ids *ops, ccn__id g, ccn__ids out[2]) {
  return ccn__pass_reorder(p, ops, g, &out[0], &out[1]);
}

static bool holds(ccn__pass *p) {
  return !ccn__graph_verify(p->g) && ccn__kernels_hold(p) && ccn__chains_hold(p);
}

/* All of `ops` if that is legal; else what can be added one by one in the order of the text. *out_text says them. */
static bool largest(ccn__tune_trial *t, attempt *f, const ccn__ids *all, const char *all_text, ccn__id g,
                    ccn__ids *out_ops, const char **out_text) {
  ccn__pass p = pass(t, "try");
  ccn__ids out[2] = {{0}}, some = {0};
  ccn__text text;
  if (!all->n) return false;
  *out_ops = *all;
  *out_text = all_text;
  if (!t->block && f(&p, all, g, out) && holds(&p)) return true;
  if (all->n > MOST_TRIED) return false;
  ccn__text_init(&text, t->a);
  for (uint32_t i = 0; i < all->n; i++) {
    const char *name = usable(&t->s, all->at[i], t->block);
    if (!name) continue;
    ccn__ids more = {0};
    append(t, &more, &some);
    *CCN__PUSH(t->a, &more) = all->at[i];
    p = pass(t, "try");
    memset(out, 0, sizeof out);
    if (!f(&p, &more, g, out) || !holds(&p)) continue;
    some = more;
    ccn__text_printf(&text, "%s%s", some.n > 1 ? ", " : "", name);
  }
  *out_ops = some;
  *out_text = ccn__arena_printf(t->a, "[%s]", text.at);
  return some.n > 0;
}

/* ---- moves ----------------------------------------------------------------------------------------------- */

static bool move_fuse_behind(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *x = live(t, chain, CCN__TUNE_X);
  ccn__ids ops, out = {0};
  const char *text;
  (void)arg;
  if (!x || had(t, chain, CCN__TUNE_KERNEL)) return false;
  const ccn__ids all = after(t, x);
  if (!largest(t, try_fuse, &all, ccn__arena_printf(t->a, "after(%s)", x->name), 0, &ops, &text))
    return false;
  ccn__pass p = pass(t, "fuse");
  if (!ccn__pass_fuse(&p, &ops, &out) || !follow(t, &p, &ops)) return false;
  const char *f = new_name(t, chain, CCN__TUNE_KERNEL);
  say(t, ccn__arena_printf(t->a, "%s = fuse(%s)", f, text));
  give(t, chain, CCN__TUNE_KERNEL, f, &out);
  return true;
}

static bool move_split(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *x = live(t, chain, CCN__TUNE_X);
  ccn__ids a = {0}, b = {0};
  if (!x) return false;
  const ccn__ids used = x->ids;
  const ccn__type *type = t->s.g->nodes.at[used.at[0]].type;
  const char *from = x->name;
  if (arg >= type->rank || ccn__dim_is(type->dim[arg], 1)) return false;
  ccn__pass p = pass(t, "split");
  if (!ccn__pass_split(&p, used.at[0], arg, NULL, false, 0, &a, &b) || !follow(t, &p, &used)) return false;
  const char *rs = new_name(t, chain, CCN__TUNE_PARTS), *ag = new_name(t, chain, CCN__TUNE_GATHER);
  say(t, arg ? ccn__arena_printf(t->a, "(%s, %s) = split(%s, dim: %u)", rs, ag, from, arg)
             : ccn__arena_printf(t->a, "(%s, %s) = split(%s)", rs, ag, from));
  give(t, chain, CCN__TUNE_PARTS, rs, &a);
  give(t, chain, CCN__TUNE_GATHER, ag, &b);
  return true;
}

static bool move_reorder(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *ag = live(t, chain, CCN__TUNE_GATHER), *f = live(t, chain, CCN__TUNE_KERNEL);
  ccn__ids ops, used = {0}, out[2] = {{0}};
  const char *text;
  (void)arg;
  if (!ag || had(t, chain, CCN__TUNE_COMP)) return false;
  const ccn__ids all = f ? f->ids : after(t, ag);
  const char *all_text = f ? f->name : ccn__arena_printf(t->a, "after(%s)", ag->name), *gather = ag->name;
  if (f) ops = all, text = all_text;
  else if (!largest(t, try_reorder, &all, all_text, ag->ids.at[0], &ops, &text)) return false;
  append(t, &used, &ops);
  append(t, &used, &ag->ids);
  ccn__pass p = pass(t, "reorder");
  if (!ccn__pass_reorder(&p, &ops, ag->ids.at[0], &out[0], &out[1]) || !follow(t, &p, &used)) return false;
  const char *c = new_name(t, chain, CCN__TUNE_COMP), *gs = new_name(t, chain, CCN__TUNE_LATE);
  say(t, ccn__arena_printf(t->a, "(%s, %s) = reorder(%s, %s)", c, gs, text, gather));
  give(t, chain, CCN__TUNE_COMP, c, &out[0]);
  give(t, chain, CCN__TUNE_LATE, gs, &out[1]);
  return true;
}

/* shard(updated(c)): those that qualify. */
static bool move_shard(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *c = live(t, chain, CCN__TUNE_COMP);
  bool some = false;
  (void)arg;
  if (!c) return false;
  const char *name = c->name;
  for (uint32_t k = 0; k < t->s.g->params.n; k++) {
    const ccn__param *x = &t->s.g->params.at[k];
    const ccn__ids *ids = &handle(t, chain, CCN__TUNE_COMP)->ids;
    bool in = false;
    for (uint32_t i = 0; i < ids->n && x->update != CCN__NO_ID; i++)
      in |= ids->at[i] == x->update || ids->at[i] == t->s.g->nodes.at[x->update].in[1];
    if (!in) continue;
    ccn__ids one = {0};
    *CCN__PUSH(t->a, &one) = x->node;
    ccn__pass p = pass(t, "shard");
    if (!ccn__pass_shard(&p, &one, false)) return false;
    some |= p.g != t->s.g;
    if (!follow(t, &p, NULL)) return false;
  }
  if (some) say(t, ccn__arena_printf(t->a, "shard(updated(%s))", name));
  return some;
}

/* One kernel of all (0), or of what runs on slices (1). */
static bool move_fuse(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  static const ccn__tune_role parts[] = {CCN__TUNE_PARTS, CCN__TUNE_COMP, CCN__TUNE_LATE};
  ccn__ids ops = {0}, out = {0};
  ccn__text text;
  ccn__text_init(&text, t->a);
  if (had(t, chain, CCN__TUNE_KERNEL)) return false;
  for (size_t k = 0; k < CCN__COUNT(parts); k++) {
    const ccn__tune_handle *h = live(t, chain, parts[k]);
    if (arg == 1 && parts[k] != CCN__TUNE_COMP) continue;
    if (!h && parts[k] == CCN__TUNE_LATE) continue; /* nothing is wanted whole */
    if (!h) return false;
    append(t, &ops, &h->ids);
    ccn__text_printf(&text, "%s%s", text.n ? ", " : "", h->name);
  }
  ccn__pass p = pass(t, "fuse");
  if (!ccn__pass_fuse(&p, &ops, &out) || !follow(t, &p, &ops)) return false;
  const char *f = new_name(t, chain, CCN__TUNE_KERNEL);
  say(t, ccn__arena_printf(t->a, "%s = fuse(%s)", f, text.at));
  give(t, chain, CCN__TUNE_KERNEL, f, &out);
  return true;
}

/* A chain of what is there, with (1) or without (0) the matmul in front. */
static bool move_overlap(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  static const ccn__tune_role order[] = {CCN__TUNE_MATMUL, CCN__TUNE_X,      CCN__TUNE_PARTS, CCN__TUNE_COMP,
                                         CCN__TUNE_KERNEL, CCN__TUNE_GATHER, CCN__TUNE_LATE};
  ccn__ids stage[CCN__COUNT(order)] = {{0}}, used = {0}, out = {0};
  ccn__text text;
  uint32_t n = 0;
  ccn__text_init(&text, t->a);
  if (had(t, chain, CCN__TUNE_CHAIN)) return false;
  for (size_t k = 0; k < CCN__COUNT(order); k++) {
    const ccn__tune_handle *h = live(t, chain, order[k]);
    if (!arg && order[k] == CCN__TUNE_MATMUL) continue;
    if (arg && order[k] == CCN__TUNE_MATMUL && !h) return false;
    if (!h) continue;
    stage[n++] = h->ids;
    append(t, &used, &h->ids);
    ccn__text_printf(&text, "%s%s", n > 1 ? ", " : "", h->name);
  }
  ccn__pass p = pass(t, "overlap");
  if (n < 2 || !ccn__pass_overlap(&p, stage, n, &out) || !follow(t, &p, &used)) return false;
  const char *o = new_name(t, chain, CCN__TUNE_CHAIN);
  say(t, ccn__arena_printf(t->a, "%s = overlap(%s)", o, text.at));
  give(t, chain, CCN__TUNE_CHAIN, o, &out);
  return true;
}

/* The matmul and the reduce-scatter alone. */
static bool move_overlap_two(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *mm = live(t, chain, CCN__TUNE_MATMUL), *rs = live(t, chain, CCN__TUNE_PARTS);
  ccn__ids stage[2] = {{0}}, used = {0}, out = {0};
  (void)arg;
  if (!mm || !rs || had(t, chain, CCN__TUNE_CHAIN)) return false;
  const char *text = ccn__arena_printf(t->a, "overlap(%s, %s)", mm->name, rs->name);
  stage[0] = mm->ids;
  stage[1] = rs->ids;
  append(t, &used, &stage[0]);
  append(t, &used, &stage[1]);
  ccn__pass p = pass(t, "overlap");
  if (!ccn__pass_overlap(&p, stage, 2, &out) || !follow(t, &p, &used)) return false;
  const char *o = new_name(t, chain, CCN__TUNE_CHAIN);
  say(t, ccn__arena_printf(t->a, "%s = %s", o, text));
  give(t, chain, CCN__TUNE_CHAIN, o, &out);
  return true;
}

static const uint32_t chunk_counts[] = {2, 4, 8, 16};

static bool move_chunks(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *o = live(t, chain, CCN__TUNE_CHAIN);
  if (!o || ccn__attr_find(t->s.g->nodes.at[o->ids.at[0]].attrs, CCN__A_CHUNKS)) return false;
  const char *name = o->name;
  ccn__pass p = pass(t, "chunks");
  if (!ccn__pass_mark(&p, &o->ids, CCN__A_CHUNKS, chunk_counts[arg]) || !follow(t, &p, NULL)) return false;
  say(t, ccn__arena_printf(t->a, "chunks(%s, %u)", name, chunk_counts[arg]));
  return true;
}

/* algorithm(x, ring), before anything else is done. */
static bool move_algorithm(ccn__tune_trial *t, uint32_t chain, uint32_t arg) {
  const ccn__tune_handle *x = live(t, chain, CCN__TUNE_X);
  const struct ccn__generator_info *info = &ccn__generator_table[arg];
  if (!x || t->s.nmoves) return false;
  for (uint32_t i = 0; i < arg; i++) /* several of one word are the planner's to choose from */
    if (strcmp(ccn__generator_table[i].word, info->word) == 0) return false;
  if (strcmp(info->word, "direct") == 0 || info->order == CCN__ORDER_GROUPS) return false;
  const ccn__node *n = &t->s.g->nodes.at[x->ids.at[0]];
  const bool exact = info->order == CCN__ORDER_RANK || !ccn__dtype_is_float((ccn__dtype)n->type->dtype);
  if (!exact && !t->reassociate) return false;
  t->s.exact &= exact;
  ccn__pass p = pass(t, "algorithm");
  if (!ccn__pass_algorithm(&p, x->ids.at[0], info->word, 0) || !follow(t, &p, NULL)) return false;
  say(t, ccn__arena_printf(t->a, "algorithm(%s, %s)", handle(t, chain, CCN__TUNE_X)->name, info->word));
  return true;
}

static const struct {
  bool (*on)(ccn__tune_trial *t, uint32_t chain, uint32_t arg);
  uint32_t args;
} moves[] = {
  {move_algorithm, CCN__GENERATORS},
  {move_fuse_behind, 1},
  {move_split, CCN__MAX_RANK},
  {move_reorder, 1},
  {move_shard, 1},
  {move_fuse, 2},
  {move_overlap, 2},
  {move_overlap_two, 1},
  {move_chunks, CCN__COUNT(chunk_counts)},
};

uint32_t ccn__tune_moves(void) { return CCN__COUNT(moves); }
uint32_t ccn__tune_args(uint32_t move) { return moves[move].args; }

/* The lines of one chain with its block called `b`. */
static const char *in_loop(const ccn__tune_trial *t, const char *b) {
  const size_t n = strlen(t->block);
  ccn__text out;
  ccn__text_init(&out, t->a);
  for (const char *s = t->lines; *s;) {
    if (s == t->lines || s[-1] == '\n') ccn__text_puts(&out, "  ");
    if (strncmp(s, t->block, n) == 0 && s[n] == '.' && (s[-1] == ' ' || s[-1] == '(' || s[-1] == '[')) {
      ccn__text_puts(&out, b);
      s += n;
    } else ccn__text_putc(&out, *s++);
  }
  return out.n ? out.at : "";
}

/* All moves on one chain. */
static bool replay(ccn__tune_trial *t, uint32_t chain, const ccn__tune_state *s) {
  t->lines = "";
  t->block = t->s.chain[chain].block;
  t->s.nmoves = 0;
  for (uint32_t i = 0; i < s->nmoves; i++, t->s.nmoves++)
    if (!moves[s->move[i]].on(t, chain, s->arg[i])) return false;
  return true;
}

bool ccn__tune_move(ccn__tune_trial *t, uint32_t kind, uint32_t move, uint32_t arg) {
  ccn__tune_state now = t->s;
  const char *loop = NULL, *b = "b";
  if (kind != now.kind || !now.from) {
    ccn__tune_state *from = CCN__NEW(t->a, ccn__tune_state);
    *from = now;
    now.from = from;
    now.kind = kind;
    now.nmoves = 0;
  }
  if (now.nmoves == CCN__TUNE_LONGEST) return false;
  now.move[now.nmoves] = (uint8_t)move;
  now.arg[now.nmoves++] = (uint8_t)arg;
  t->s = *now.from;
  t->s.chain = CCN__NEWN(t->a, ccn__tune_chain, t->s.nchains);
  memcpy(t->s.chain, now.from->chain, t->s.nchains * sizeof *t->s.chain);
  while (taken(t->s.g, b)) b = ccn__arena_printf(t->a, "%s_", b);
  for (uint32_t c = 0; c < t->s.nchains; c++) {
    if (t->s.chain[c].alike != kind) continue;
    if (!replay(t, c, &now)) return false;
    const char *said = t->block ? in_loop(t, b) : t->lines;
    if (!t->block) t->s.body = ccn__arena_printf(t->a, "%s%s", t->s.body, said);
    else if (loop && strcmp(loop, said) != 0) return false; /* not alike after all */
    else loop = said;
  }
  if (loop) {
    const size_t n = strcspn(t->block, "[");
    t->s.body =
      ccn__arena_printf(t->a, "%s  for %s in %.*s[*] {\n%s  }\n", t->s.body, b, (int)n, t->block, loop);
  }
  t->s.from = now.from;
  t->s.kind = kind;
  t->s.nmoves = now.nmoves;
  memcpy(t->s.move, now.move, sizeof now.move);
  memcpy(t->s.arg, now.arg, sizeof now.arg);
  return true;
}

/* ---- chains ---------------------------------------------------------------------------------------------- */

/* What all-reduces must share to be of one kind: dtype, number of dims, operator, axes, what makes the operand, who
 * reads; not the sizes, which differ from layer to layer. */
static const char *kind_of(ccn__arena *a, const ccn__graph *g, ccn__id x, const ccn__tune_chain *c) {
  const ccn__node *n = &g->nodes.at[x];
  ccn__text t;
  ccn__text_init(&t, a);
  ccn__text_printf(&t, "%u %u %u", (unsigned)n->type->dtype, (unsigned)n->type->rank,
                   (unsigned)n->type->bundle);
  for (uint32_t k = 0; k < n->attrs.n; k++)
    ccn__text_printf(&t, " %u:%lld", (unsigned)n->attrs.at[k].key, (long long)n->attrs.at[k].i);
  ccn__text_printf(&t, " of %u:", (unsigned)g->nodes.at[n->in[0]].op);
  if (c->block) /* the same name in each block; who reads may differ in the last one */
    return ccn__text_printf(&t, " %.*s %s", (int)strcspn(c->block, "["), c->block,
                            label_of(n) + strlen(c->block)),
           t.at;
  for (ccn__id j = x + 1; j < g->nodes.n; j++)
    for (uint32_t k = 0; k < g->nodes.at[j].nin; k++)
      if (g->nodes.at[j].in[k] == x) ccn__text_printf(&t, " %u.%u", (unsigned)g->nodes.at[j].op, k);
  return t.at;
}

void ccn__tune_begin(ccn__rt *rt, ccn__arena *a, const ccn__graph *g, ccn__tune_state *out) {
  CCN__VEC(ccn__tune_chain) chains = {0};
  CCN__VEC(const char *) kinds = {0};
  ccn__graph *own = CCN__NEW(a, ccn__graph);
  (void)rt;
  *own = *g;
  own->arena = a;
  *out = (ccn__tune_state){.g = own, .body = "", .exact = true};
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    const char *name =
      n->op == CCN__OP_ALLREDUCE && n->type->rank && !n->region ? usable(out, i, NULL) : NULL;
    if (!name) continue;
    const char *close = strstr(name, "].");
    ccn__tune_chain c = {.block = close ? ccn__arena_strndup(a, name, (size_t)(close - name) + 1) : NULL};
    c.h[CCN__TUNE_X].name = name;
    *CCN__PUSH(a, &c.h[CCN__TUNE_X].ids) = i;
    const ccn__id from = n->in[0];
    if (g->nodes.at[from].op == CCN__OP_MATMUL && usable(out, from, c.block)) {
      c.h[CCN__TUNE_MATMUL].name = usable(out, from, c.block);
      *CCN__PUSH(a, &c.h[CCN__TUNE_MATMUL].ids) = from;
    }
    const char *kind = kind_of(a, g, i, &c);
    while (c.alike < kinds.n && strcmp(kinds.at[c.alike], kind) != 0) c.alike++;
    if (c.alike == kinds.n) *CCN__PUSH(a, &kinds) = kind;
    *CCN__PUSH(a, &chains) = c;
  }
  out->chain = chains.at;
  out->nchains = chains.n;
  out->nkinds = kinds.n;
}
