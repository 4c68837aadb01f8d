/* kernel_text.c: kernels as text: the part that machine code is made from, and all of it for people; and
 * which slots may share memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

static void print_map(const ccn__kmap *m, ccn__text *out) {
  if (m->member) ccn__text_puts(out, "[member]");
  else ccn__text_printf(out, "[#%u step %u]", m->par, m->inner);
}

static void print_val(const ccn__kval *v, uint32_t i, ccn__text *out) {
  static const char *const rate[] = {"once", "row", "elem"};
  const char *t = ccn__dtype_name((ccn__dtype)v->dtype);
  ccn__text_printf(out, "    %%%u %s %s = ", i, t, rate[v->rate]);
  switch ((ccn__kval_kind)v->kind) {
  case CCN__KV_CONST: ccn__text_printf(out, "const 0x%llx", (unsigned long long)v->imm); break;
  case CCN__KV_NUMBER: ccn__text_printf(out, "number #%u", v->par); break;
  case CCN__KV_LOAD:
    ccn__text_printf(out, "load @%u", v->ptr);
    print_map(&v->map, out);
    break;
  case CCN__KV_PEERS:
    ccn__text_printf(out, "peers %s @%u x%u ", ccn__redop_name((ccn__redop)v->fn), v->ptr, v->npeers);
    print_map(&v->map, out);
    for (uint32_t m = 0; v->merge && m + 1 < v->npeers; m++)
      ccn__text_printf(out, " %u<%u", v->merge[m].to, v->merge[m].from);
    break;
  case CCN__KV_ELEM: ccn__text_printf(out, "k%u", v->fn); break;
  case CCN__KV_CAST: ccn__text_puts(out, "cast"); break;
  case CCN__KV_INDEX:
    ccn__text_puts(out, "index ");
    print_map(&v->map, out);
    break;
  case CCN__KV_RANDOM:
    ccn__text_printf(out, "%s #%u ", ccn__op_table[v->fn].name, v->par);
    print_map(&v->map, out);
    break;
  }
  for (uint32_t k = 0; k < v->nin; k++)
    if (v->in[k] == CCN__NO_SLOT) ccn__text_puts(out, " none");
    else ccn__text_printf(out, " %%%u", v->in[k]);
  if (v->fault) ccn__text_printf(out, " fault %u", v->fault - 1);
  ccn__text_putc(out, '\n');
}

/* The number of peers is in the code: as so many copies, or as a loop's bound. */
static void print_loop(const ccn__kern *k, const ccn__kloop *l, uint32_t i, ccn__text *out) {
  static const char *const forms[] = {"flat", "rows", "members"};
  ccn__text_printf(out, "  loop %u %s depth %u lanes %u", i, forms[l->form], l->depth, l->lanes);
  if (l->form != CCN__KLOOP_FLAT) ccn__text_printf(out, " #%u", l->par);
  if (l->form == CCN__KLOOP_MEMBERS) ccn__text_printf(out, " table @%u", l->table);
  ccn__text_putc(out, '\n');
  for (uint32_t j = 0; j < l->vals.n; j++) print_val(&l->vals.at[j], j, out);
  for (uint32_t j = 0; j < l->stores.n; j++) {
    const ccn__kstore *s = &l->stores.at[j];
    ccn__text_printf(out, "    store %%%u @%u", s->val, s->ptr);
    if (s->npeers) ccn__text_printf(out, " x%u", s->npeers);
    ccn__text_puts(out, s->maybe ? " maybe " : " ");
    print_map(&s->map, out);
    ccn__text_putc(out, '\n');
  }
  for (uint32_t j = 0; j < l->reds.n; j++) {
    static const char *const red[] = {"run", "member", "row"};
    const ccn__kred *d = &l->reds.at[j];
    ccn__text_printf(out, "    reduce %s %s %s %%%u @%u", red[d->form], ccn__redop_name((ccn__redop)d->op),
                     ccn__dtype_name((ccn__dtype)d->t), d->val, d->ptr);
    if (d->form == CCN__KRED_RUN) ccn__text_printf(out, " #%u", d->par);
    if (d->form == CCN__KRED_MEMBER) ccn__text_printf(out, " table @%u", d->table);
    if (d->form == CCN__KRED_ROW) print_map(&d->map, out);
    ccn__text_putc(out, '\n');
  }
  (void)k;
}

void ccn__kern_print_code(const ccn__kern *k, ccn__text *out) {
  for (uint32_t i = 0; i < k->loops.n; i++) print_loop(k, &k->loops.at[i], i, out);
}

static void print_slot(const ccn__kern *k, uint32_t i, ccn__text *out) {
  static const char *const kinds[] = {"in", "out", "scratch"};
  const ccn__kslot *s = &k->slots.at[i];
  int64_t most = 0;
  for (uint32_t r = 0; r < k->world; r++) most = s->bytes[r] > most ? s->bytes[r] : most;
  ccn__text_printf(out, "  slot %u %s %s%s%s", i, kinds[s->kind], ccn__dtype_name((ccn__dtype)s->dtype),
                   s->peers ? " peers" : "", s->parts ? " parts" : "");
  if (s->node != CCN__NO_ID) ccn__text_printf(out, " of %%%u", s->node);
  if (s->update != CCN__NO_ID) ccn__text_puts(out, " update");
  ccn__text_printf(out, " %lld bytes\n", (long long)most);
}

static void print_step(const ccn__kstep *s, ccn__text *out) {
  switch ((ccn__kstep_kind)s->kind) {
  case CCN__KSTEP_LOOP: ccn__text_printf(out, "  do loop %u\n", s->index); break;
  case CCN__KSTEP_FINISH:
    ccn__text_printf(out, "  finish tree %u: slot %u from %u\n", s->index, s->dst, s->src);
    break;
  case CCN__KSTEP_SYNC: ccn__text_printf(out, "  sync over %u\n", s->over); break;
  case CCN__KSTEP_PAY:
    ccn__text_printf(out, "  pay %s over %u: slot %u from %u", ccn__redop_name((ccn__redop)s->op), s->over,
                     s->dst, s->src);
    if (s->index != CCN__NO_SLOT) ccn__text_printf(out, " tree %u", s->index);
    ccn__text_putc(out, '\n');
    break;
  case CCN__KSTEP_FILL: ccn__text_printf(out, "  fill slot %u\n", s->dst); break;
  }
}

void ccn__kern_print(const ccn__kern *k, ccn__text *out) {
  ccn__text_printf(out, "kernel over %u {\n", k->over);
  for (uint32_t i = 0; i < k->slots.n; i++) print_slot(k, i, out);
  for (uint32_t i = 0; i < k->ptrs.n; i++) {
    const ccn__kptr *p = &k->ptrs.at[i];
    if (p->slot == CCN__NO_SLOT) ccn__text_printf(out, "  @%u table\n", i);
    else ccn__text_printf(out, "  @%u slot %u of rank %u..\n", i, p->slot, p->rank[0]);
  }
  ccn__kern_print_code(k, out);
  for (uint32_t i = 0; i < k->steps.n; i++) print_step(&k->steps.at[i], out);
  ccn__text_puts(out, "}\n");
}

/* ---- sharing memory ------------------------------------------------------------------------------------ */

static bool same_map(const ccn__kern *k, const ccn__kloop *l, const ccn__kmap *x, const ccn__kmap *y) {
  if (x->member || y->member || x->inner != y->inner) return false;
  for (uint32_t r = 0; r < k->world; r++) {
    const int64_t *n = k->numbers + r * k->nnumbers;
    if (l->count[r] && memcmp(n + x->par, n + y->par, (l->depth + 1u) * sizeof *n)) return false;
  }
  return true;
}

/* The step at which a loop is done, and whether ranks meet between two steps. */
static uint32_t step_of(const ccn__kern *k, uint32_t loop) {
  for (uint32_t i = 0; i < k->steps.n; i++)
    if (k->steps.at[i].kind == CCN__KSTEP_LOOP && k->steps.at[i].index == loop) return i;
  return k->steps.n;
}

static bool meet_between(const ccn__kern *k, uint32_t first, uint32_t second) {
  for (uint32_t i = step_of(k, first); i < step_of(k, second); i++)
    if (k->steps.at[i].kind == CCN__KSTEP_SYNC && k->steps.at[i].over == k->over) return true;
  return false;
}

/* Whether loop `reads` may read slot `in` although the store s of loop `writes` goes over it. */
static bool read_in_time(const ccn__kern *k, uint32_t in, uint32_t reads, uint32_t writes,
                         const ccn__kstore *s) {
  const ccn__kloop *l = &k->loops.at[reads];
  for (uint32_t i = 0; i < l->vals.n; i++) {
    const ccn__kval *v = &l->vals.at[i];
    if ((v->kind != CCN__KV_LOAD && v->kind != CCN__KV_PEERS) || k->ptrs.at[v->ptr].slot != in) continue;
    if (v->kind == CCN__KV_PEERS || reads > writes) return false;
    if (reads < writes && (!s->npeers || meet_between(k, reads, writes))) continue;
    if (reads != writes || v->rate != CCN__RATE_ELEM || !same_map(k, l, &v->map, &s->map)) return false;
  }
  return true;
}

bool ccn__kern_may_alias(const ccn__kern *k, uint32_t in, uint32_t out) {
  if (k->slots.at[in].parts || k->slots.at[out].parts || k->slots.at[in].peers) return false;
  if (k->slots.at[in].dtype != k->slots.at[out].dtype) return false;
  for (uint32_t i = 0; i < k->steps.n; i++) {
    const ccn__kstep *s = &k->steps.at[i];
    if (s->kind == CCN__KSTEP_PAY && (s->src == in || s->dst == out)) return false;
    if (s->kind == CCN__KSTEP_FILL && s->dst == out) return false;
  }
  bool stored = false;
  for (uint32_t w = 0; w < k->loops.n; w++) {
    const ccn__kloop *l = &k->loops.at[w];
    for (uint32_t i = 0; i < l->reds.n; i++)
      if (k->ptrs.at[l->reds.at[i].ptr].slot == out) return false;
    for (uint32_t i = 0; i < l->stores.n; i++) {
      const ccn__kstore *s = &l->stores.at[i];
      if (k->ptrs.at[s->ptr].slot != out) continue;
      if (s->maybe || (!s->npeers && k->slots.at[out].peers)) return false;
      for (uint32_t r = 0; r < k->loops.n; r++)
        if (!read_in_time(k, in, r, w, s)) return false;
      stored = true;
    }
  }
  return stored;
}
