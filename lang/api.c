/* api.c: ccn.h over the driver: contexts, the boundary that catches what is thrown, diagnostics as public
 * structs.
 *
 * Every entry goes through `ccn__guarded`: the context's lock, floating-point control set and restored, a
 * trap, and after it a runtime that can be used again. When memory ended, everything of a text that was run
 * is freed at once; a session keeps what it has.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

#include "api.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* ---- floating-point control: round to nearest, no traps, denormals kept -------------------------------- */

/* fenv.h reaches what the C library's own conversions obey (on x86 they ask the x87 word); it may leave the
 * flush-to- zero bits, so these are set too. */
typedef struct fp_state {
  fenv_t env;
#if defined(__SSE2__)
  unsigned control;
#elif defined(__aarch64__) && defined(__GNUC__)
  uint64_t control;
#endif
} fp_state;

static void fp_enter(fp_state *s) {
  fegetenv(&s->env);
#if defined(__SSE2__)
  s->control = _mm_getcsr();
  fesetenv(FE_DFL_ENV);
  _mm_setcsr(0x1f80);
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("mrs %0, fpcr" : "=r"(s->control));
  fesetenv(FE_DFL_ENV);
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
#else
  fesetenv(FE_DFL_ENV);
#endif
}

static void fp_leave(const fp_state *s) {
  fesetenv(&s->env);
#if defined(__SSE2__)
  _mm_setcsr(s->control);
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("msr fpcr, %0" : : "r"(s->control));
#endif
}

/* ---- contexts ------------------------------------------------------------------------------------------ */

static void *default_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size;
  (void)user;
  if (align <= _Alignof(max_align_t)) {
    if (new_size) return malloc(new_size);
    free(p);
    return NULL;
  }
  /* Not aligned_alloc: that of glibc 2.36 does not take freed blocks again, and a long loop of small tensors
   * would grow to gigabytes. What malloc gave stands in front of the block. */
  if (!new_size) {
    free(((void **)p)[-1]);
    return NULL;
  }
  char *raw = new_size > SIZE_MAX - align ? NULL : malloc(new_size + align);
  if (!raw) return NULL;
  char *at = raw + align - (uintptr_t)raw % align;
  ((void **)(void *)at)[-1] = raw;
  return at;
}

void ccn_options_init(ccn_options *o, size_t size) {
  memset(o, 0, size);
  o->size = size;
}

const char *const *ccn__copy_texts(ccn__arena *a, const char *const *from, size_t n) {
  if (!n || !from) return NULL;
  const char **to = ccn__arena_alloc(a, n * sizeof *to);
  for (size_t i = 0; i < n; i++)
    to[i] = ccn__arena_strndup(a, from[i] ? from[i] : "", from[i] ? strlen(from[i]) : 0);
  return to;
}

static void copy_options(ccn_context *c) {
  ccn_options *o = &c->options;
  o->args = ccn__copy_texts(&c->own, o->args, o->nargs);
  o->watch = ccn__copy_texts(&c->own, o->watch, o->nwatch);
  if (!o->args) o->nargs = 0;
  if (!o->watch) o->nwatch = 0;
}

/* Everything but the heap goes by itself when this throws. */
static void fill_context(ccn_context *c) {
  copy_options(c);
  c->once = ccn__state_new(c);
}

ccn_status ccn_context_create(const ccn_options *given, ccn_context **out_context) {
  ccn_options o;
  ccn__trap trap;
  ccn_context *volatile c = NULL;
  if (!out_context) return CCN_INVALID_ARGUMENT;
  *out_context = NULL;
  ccn_options_init(&o, sizeof o);
  if (given) {
    if (given->size == 0) return CCN_INVALID_ARGUMENT;
    memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
  }
  const bool recorded = o.backend && strcmp(o.backend, "sim") == 0; /* not executed */
  if (o.ranks < 0 || o.ranks > (recorded ? CCN__MAX_PLANNED : CCN__MAX_RANKS) || o.nargs > UINT32_MAX / 4)
    return CCN_INVALID_ARGUMENT;
  if (!ccn__backend_find(o.backend)) return CCN_INVALID_ARGUMENT;
  ccn__heap heap = {
    .alloc = o.alloc ? o.alloc : default_alloc, .user = o.alloc_user, .limit = o.memory_limit};
  CCN__TRY(&heap, trap)
  { c = ccn__heap_alloc(&heap, sizeof *c); }
  CCN__CATCH(&heap, trap)
  return trap.status;
  c->heap = heap;
  c->options = o;
  atomic_init(&c->refs, 1);
  ccn__arena_init(&c->own, &c->heap);
  ccn__arena_init(&c->watched, &c->heap);
  CCN__TRY(&c->heap, trap)
  { fill_context(c); }
  CCN__CATCH(&c->heap, trap)
  {
    ccn_context_free(c);
    return trap.status;
  }
  *out_context = c;
  return CCN_OK;
}

void ccn_context_free(ccn_context *c) {
  if (!c || !ccn__lock(c)) return;
  if (c->once) ccn__state_retire(c->once);
  if (c->session) ccn__state_retire(c->session);
  c->once = c->session = NULL;
  ccn__unlock(c);
  ccn__context_let(c);
}

/* ---- the boundary -------------------------------------------------------------------------------------- */

/* An empty state for ccn_run and its like. What the host still holds of the one before goes on living. */
static void freshen(ccn_context *c) {
  ccn__state *s = c->once, *next = s;
  if (s->nholds) next = ccn__state_new(c);
  c->once = next;
  if (next != s) ccn__state_retire(s);
  else ccn__state_reset(s, c);
}

static void begin(ccn_context *c, ccn__state **which, unsigned flags) {
  if (flags & CCN__FRESH) freshen(c);
  if (!*which) *which = ccn__state_new(c);
  c->running = *which;
  if (!(flags & CCN__RUNS)) return;
  ccn__state_begin(*which);
  (*which)->rt.here = (ccn__span){0};
  c->last = *which;
  if (c->options.time_limit_ms > 0)
    (*which)->rt.deadline = ccn__now_ms() + (uint64_t)c->options.time_limit_ms;
}

/* What memory ended in. It is said with what memory is left: none at all, and nothing is said. */
static void report_memory(ccn_context *c, ccn__state *s, size_t in_use) {
  const ccn__diags before = s->diags;
  ccn__trap trap;
  CCN__TRY(&c->heap, trap)
  {
    ccn__diag *d =
      ccn__error(&s->diags, 608, s->rt.here, "while this ran",
                 "out of memory: %zu bytes more were asked for, %zu are in use", c->heap.refused, in_use);
    ccn__hint(&s->diags, d, "run smaller sizes or fewer ranks%s",
              c->heap.limit ? ", or raise the limit" : "");
  }
  CCN__CATCH(&c->heap, trap)
  { s->diags = before; }
}

/* The runtime can be used again; what was half made is forgotten. */
static void end(ccn_context *c, ccn__state **which, unsigned flags, ccn_status status) {
  c->running = NULL;
  c->heap.trap = NULL;
  if (!*which) return;
  ccn__rt *rt = &(*which)->rt;
  c->ncalls += rt->ncalls;
  c->nops += rt->nops;
  rt->ncalls = rt->nops = 0;
  rt->deadline = 0;
  ccn__rt_unwind(rt);
  if (status != CCN_OUT_OF_MEMORY) return;
  size_t in_use = c->heap.live;
  if (flags & CCN__FRESH) ccn__rt_free(rt); /* the texts stay: messages show them */
  else ccn__collect(rt);
  if (flags & CCN__RUNS) report_memory(c, *which, in_use);
}

void ccn__report_begin(ccn__state *s) {
  if (s->context->callbacks) return;
  ccn__state_begin(s);
  s->context->last = s;
}

/* In a host function, while a script runs: what that holds stays as it is. */
static ccn_status nested(ccn_context *c, ccn__state **which, ccn__work *work, void *user) {
  ccn__state *s = which == &c->session ? c->running : *which;
  ccn__rt *rt = &s->rt;
  const ccn__diags diags = s->diags;
  const uint32_t temps = rt->temps.n, roots = rt->roots.n, depth = rt->depth;
  ccn__frame *frames = rt->frames;
  ccn__trap trap;
  CCN__TRY(&c->heap, trap)
  { work(s, user); }
  CCN__CATCH(&c->heap, trap)
  {
    rt->roots.n = roots;
    rt->depth = depth;
    rt->frames = frames;
    if (s->diags.errors != diags.errors) { /* the script goes on, or its own error is the one to show */
      s->diags = (ccn__diags){.arena = diags.arena,
                              .sources = s->diags.sources,
                              .nsources = s->diags.nsources,
                              .first = diags.first,
                              .last = diags.last,
                              .count = diags.count,
                              .errors = diags.errors,
                              .warnings = diags.warnings,
                              .limit = diags.limit};
      if (s->diags.last) s->diags.last->next = NULL;
    }
  }
  rt->temps.n = temps;
  return trap.status;
}

ccn_status ccn__guarded(ccn_context *c, ccn__state **which, unsigned flags, ccn__work *work, void *user) {
  ccn__trap trap;
  fp_state fp;
  if (!c) return CCN_INVALID_ARGUMENT;
  if (!ccn__lock(c)) {
    if (!(flags & CCN__NESTS) || !c->callbacks) return CCN_INVALID_ARGUMENT;
    return nested(c, which, work, user);
  }
  if (flags & CCN__RUNS) c->interrupt = 0;
  fp_enter(&fp);
  CCN__TRY(&c->heap, trap)
  {
    begin(c, which, flags);
    work(*which, user);
  }
  CCN__CATCH(&c->heap, trap)
  {}
  fp_leave(&fp);
  end(c, which, flags, trap.status);
  ccn_status status = trap.status;
  if (status == CCN_OK && (flags & CCN__RUNS) && (*which)->diags.errors) status = CCN_ERROR;
  if (status == CCN_ERROR) c->last = *which;
  ccn__unlock(c);
  return status;
}

static void drive(ccn__state *s, void *user) { ccn__drive(s, user); }
static void drive_graph(ccn__state *s, void *user) { ccn__drive_graph(s, user); }

static ccn_status guarded(ccn_context *c, ccn__work *work, ccn__job *job) {
  if (!c || !job->name || (!job->text && job->size) || job->size >= UINT32_MAX) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, work, job);
}

ccn_status ccn_run(ccn_context *c, const char *name, const char *text, size_t size) {
  return guarded(c, drive, &(ccn__job){.name = name, .text = text, .size = size, .last = CCN__STAGE_RUN});
}

ccn_status ccn_check(ccn_context *c, const char *name, const char *text, size_t size) {
  return guarded(c, drive, &(ccn__job){.name = name, .text = text, .size = size, .last = CCN__STAGE_CHECK});
}

static void report_stage(ccn__state *s, void *user) {
  const ccn__job *job = user;
  ccn__diag *d = ccn__error(&s->diags, 501, (ccn__span){0}, "", "there is no stage `%.60s`", job->name);
  ccn__hint(&s->diags, d, "the stages are ast, graph and scheduled");
}

ccn_status ccn_dump(ccn_context *c, const char *name, const char *text, size_t size, const char *stage,
                    ccn_write_fn write, void *user) {
  ccn__job job = {
    .name = name, .text = text, .size = size, .write = write, .user = user, .last = CCN__STAGE_CHECK};
  if (!c || !stage) return CCN_INVALID_ARGUMENT;
  if (strcmp(stage, "ast") == 0) {
    job.dump_ast = true;
    job.last = CCN__STAGE_PARSE;
  } else if (strcmp(stage, "graph") == 0) {
    job.dump_graph = true;
  } else if (strcmp(stage, "scheduled") == 0) {
    job.dump_scheduled = true;
  } else if (strcmp(stage, "plan") == 0 || strcmp(stage, "plan.json") == 0) {
    job.dump_plan = true;
    job.json = strcmp(stage, "plan.json") == 0;
    job.last = CCN__STAGE_RUN;
  } else {
    ccn_status status = guarded(c, report_stage, &(ccn__job){.name = stage});
    return status == CCN_ERROR ? CCN_INVALID_ARGUMENT : status;
  }
  return guarded(c, drive, &job);
}

ccn_status ccn_graph_read(ccn_context *c, const char *name, const char *text, size_t size, ccn_write_fn write,
                          void *user) {
  return guarded(c, drive_graph,
                 &(ccn__job){.name = name, .text = text, .size = size, .write = write, .user = user});
}

void ccn_interrupt(ccn_context *c) {
  if (c) c->interrupt = 1;
}

/* ---- diagnostics --------------------------------------------------------------------------------------- */

static ccn_note public_note(ccn__state *s, const ccn__label *l) {
  ccn_note n = {.text = l->text ? l->text : ""};
  if (!l->span.source || l->span.source >= s->diags.nsources) return n;
  ccn__source *source = s->diags.sources[l->span.source];
  n.file = source->name;
  ccn__source_locate(&s->arena, source, l->span.start, &n.line, &n.column);
  ccn__source_locate(&s->arena, source, l->span.end, &n.end_line, &n.end_column);
  return n;
}

size_t ccn_diagnostic_count(const ccn_context *c) { return c && c->last ? c->last->diags.count : 0; }

static const ccn__diag *diagnostic(const ccn__state *s, size_t i) {
  const ccn__diag *d = s->diags.first;
  while (d && i-- > 0) d = d->next;
  return d;
}

static void fill_diagnostic(ccn__state *s, size_t i, ccn_diagnostic *out) {
  const ccn__diag *d = diagnostic(s, i);
  const ccn__error_info *info = ccn__error_find(d->code);
  ccn_note *notes = CCN__NEWN(&s->told, ccn_note, d->nnotes);
  for (uint32_t k = 0; k < d->nnotes; k++) notes[k] = public_note(s, &d->notes[k]);
  out->severity = d->severity;
  out->code = ccn__arena_printf(&s->told, "CCN%04u", d->code);
  out->message = d->message;
  out->primary = public_note(s, &d->primary);
  out->notes = notes;
  out->nnotes = d->nnotes;
  out->hint = d->hint ? d->hint : info ? info->hint : "";
}

ccn_status ccn_diagnostic_get(ccn_context *c, size_t i, ccn_diagnostic *out) {
  ccn_diagnostic full = {0};
  ccn__trap trap;
  if (!c || !out || out->size < offsetof(ccn_diagnostic, severity)) return CCN_INVALID_ARGUMENT;
  if (i >= ccn_diagnostic_count(c)) return CCN_NOT_FOUND;
  CCN__TRY(&c->heap, trap)
  { fill_diagnostic(c->last, i, &full); }
  CCN__CATCH(&c->heap, trap)
  return trap.status;
  full.size = out->size;
  memcpy(out, &full, out->size < sizeof full ? out->size : sizeof full);
  return CCN_OK;
}

typedef struct rendering {
  bool json, colour;
  ccn_write_fn write;
  void *user;
} rendering;

static void write_one(ccn__state *s, const ccn__diag *d, const rendering *r) {
  ccn__text t;
  ccn__text_init(&t, &s->rt.scratch);
  if (r->json) ccn__diag_render_json(&s->diags, d, &t);
  else ccn__diag_render(&s->diags, d, r->colour, &t);
  if (r->json) ccn__text_putc(&t, '\n');
  if (t.n) r->write(t.at, t.n, r->user);
}

static void write_trapped(ccn__state *s, const ccn__diag *d, const rendering *r) {
  ccn__trap trap;
  CCN__TRY(s->rt.heap, trap)
  { write_one(s, d, r); }
  CCN__CATCH(s->rt.heap, trap)
  {} /* no memory: this one is left out */
  ccn__arena_free(&s->rt.scratch);
}

static void write_diagnostics(ccn_context *c, const rendering *r) {
  if (!c || !c->last || !r->write) return;
  for (const ccn__diag *d = c->last->diags.first; d; d = d->next) write_trapped(c->last, d, r);
}

void ccn_diagnostics_write(ccn_context *c, int colour, ccn_write_fn write, void *user) {
  write_diagnostics(c, &(rendering){false, colour != 0, write, user});
}

void ccn_diagnostics_write_json(ccn_context *c, ccn_write_fn write, void *user) {
  write_diagnostics(c, &(rendering){true, false, write, user});
}

/* ---- tables and names ---------------------------------------------------------------------------------- */

#define DIGIT(n) ((char)('0' + (n) % 10))
static const char code_texts[][8] = {
#define ERRCODE(code, title, hint, explain) \
  {'C', 'C', 'N', DIGIT((code) / 1000), DIGIT((code) / 100), DIGIT((code) / 10), DIGIT(code), 0},
#include "errors.def"
#undef ERRCODE
};

const char *ccn_explain_list(size_t i, const char **out_title) {
  const ccn__error_info *info = i < CCN__COUNT(code_texts) ? ccn__error_at((uint32_t)i) : NULL;
  if (!info) return NULL;
  if (out_title) *out_title = info->title;
  return code_texts[i];
}

const char *ccn_explain(const char *code) {
  unsigned long n = 0;
  if (!code) return NULL;
  if ((code[0] == 'C' || code[0] == 'c') && (code[1] == 'C' || code[1] == 'c') &&
      (code[2] == 'N' || code[2] == 'n'))
    code += 3;
  if (!*code || strspn(code, "0123456789") != strlen(code) || strlen(code) > 5) return NULL;
  for (; *code; code++) n = n * 10 + (unsigned long)(*code - '0');
  const ccn__error_info *info = n <= UINT16_MAX ? ccn__error_find((uint16_t)n) : NULL;
  return info && info->explain && *info->explain ? info->explain : NULL;
}

int ccn_version(void) { return CCN_VERSION; }

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
const char *ccn_build_info(void) {
  return "ccn " TEXT(CCN_VERSION_MAJOR) "." TEXT(CCN_VERSION_MINOR) "." TEXT(
    CCN_VERSION_PATCH) ", "
#if defined(__clang__)
                       "clang " __clang_version__
#elif defined(__GNUC__)
                       "gcc " __VERSION__
#else
                       "another compiler"
#endif
                       ", reference interpreter";
}

const char *ccn_status_name(ccn_status s) {
  switch (s) {
  case CCN_OK: return "ok";
  case CCN_ERROR: return "error";
  case CCN_INVALID_ARGUMENT: return "invalid argument";
  case CCN_NOT_FOUND: return "not found";
  case CCN_OUT_OF_MEMORY: return "out of memory";
  case CCN_INTERRUPTED: return "interrupted";
  case CCN_UNSUPPORTED: return "unsupported";
  case CCN_INTERNAL: return "internal";
  case CCN_INCOMPLETE: return "incomplete";
  }
  return "unknown";
}
