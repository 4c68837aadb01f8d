/* modules.c: import: finding a module's text, and its way through parse, check and run, once each.
 *
 * "std/optim" comes from the library itself; any other path from the host's files, relative to the importing
 * file, with ".ccn" added. A module is the scope of its text; what it defines is reached as optim.adam.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ccn_stdlib.h"
#include "driver.h"
#include "parser.h"

typedef struct ccn__module_list {
  struct ccn__module_list *next;
  const char *path;
  const ccn__ast *ast;
  ccn__module *outline, *module; /* as the check knows it; as it ran */
  bool busy;                     /* its text is being looked at: an import of it now is a cycle */
} entry;

/* ---- finding ------------------------------------------------------------------------------------------- */

/* dir(importing file) + path, with "./" and "name/../" taken out, so that one file has one name. */
static const char *resolve(ccn__rt *rt, const char *path, ccn__span importing) {
  const char *from = rt->diags->sources[importing.source]->name, *slash = strrchr(from, '/');
  if (!strncmp(path, "std/", 4)) return path;
  char *s = ccn__arena_printf(rt->arena, "%.*s%s.ccn", path[0] == '/' || !slash ? 0 : (int)(slash + 1 - from),
                              from, path);
  size_t n = 0;
  for (const char *p = s; *p;) {
    size_t part = strcspn(p, "/");
    bool dots = part == 2 && p[0] == '.' && p[1] == '.';
    if (part == 1 && p[0] == '.') {
      p += part + (p[part] == '/');
      continue;
    }
    if (dots && n > 0 && !(n >= 3 && !memcmp(s + n - 3, "../", 3)) && !(n == 1 && s[0] == '/')) {
      for (n--; n > 0 && s[n - 1] != '/'; n--) {}
      p += part + (p[part] == '/');
      continue;
    }
    memmove(s + n, p, part + (p[part] == '/'));
    n += part + (p[part] == '/');
    p += part + (p[part] == '/');
  }
  s[n] = 0;
  return s;
}

static ccn__diag *not_found(ccn__rt *rt, const char *path, const char *shown, ccn__span at, const char *why) {
  ccn__diag *d = ccn__error(rt->diags, 811, at, "not found", "there is no module `%.300s`", path);
  ccn__nearest near;
  ccn__nearest_init(&near, path);
  for (const ccn__stdlib_file *f = ccn__stdlib; f->name; f++) ccn__nearest_try(&near, f->name);
  if (near.best) ccn__hint(rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(rt->diags, d, "%s `%.300s`", why, shown);
  return d;
}

/* The host's text as a source; it gets its memory back. */
static uint32_t copy_text(ccn__rt *rt, const char *name, void *data, size_t size, ccn_file_free_fn give_back,
                          void *user) {
  volatile uint32_t source = 0;
  ccn__trap trap;
  CCN__TRY(rt->heap, trap)
  { source = ccn__source_add(rt, name, data, size); }
  CCN__CATCH(rt->heap, trap)
  {}
  if (give_back) give_back(data, size, user);
  if (trap.status != CCN_OK) ccn__throw(rt->heap, trap.status);
  return source;
}

/* The text as a source; 0 after an error, which *out_d then is. */
static uint32_t find_text(ccn__rt *rt, const char *path, const char *resolved, ccn__span at,
                          ccn__diag **out_d) {
  void *data = NULL;
  size_t size = 0;
  if (!strncmp(path, "std/", 4)) {
    for (const ccn__stdlib_file *f = ccn__stdlib; f->name; f++)
      if (!strcmp(f->name, path)) return ccn__source_add(rt, f->name, f->text, f->size);
    *out_d = not_found(rt, path, path, at, "the standard library has no module");
    return 0;
  }
  if (rt->options->load && !rt->options->load(resolved, &data, &size, rt->options->load_user))
    return copy_text(rt, resolved, data, size, rt->options->load_free, rt->options->load_user);
  if (!rt->options->read) {
    *out_d = ccn__error(rt->diags, 704, at, "not granted", "this host grants scripts no access to files");
    ccn__hint(rt->diags, *out_d, "only modules of the standard library can be imported: std/optim");
    return 0;
  }
  if (rt->options->read(resolved, &data, &size, rt->options->file_user)) {
    *out_d = not_found(rt, path, resolved, at, "it would be the file");
    return 0;
  }
  return copy_text(rt, resolved, data, size, rt->options->read_free, rt->options->file_user);
}

/* The module's entry, with its syntax; NULL after an error. */
static entry *find(ccn__rt *rt, const char *path, ccn__span at, ccn__diag **out_d) {
  const char *resolved = resolve(rt, path, at);
  for (entry *m = rt->modules; m; m = m->next)
    if (!strcmp(m->path, resolved)) {
      if (!m->busy) return m;
      *out_d = ccn__error(rt->diags, 811, at, "closes the circle", "modules import each other: `%s`", path);
      ccn__hint(rt->diags, *out_d, "move what both need to a third module");
      return NULL;
    }
  uint32_t errors = rt->diags->errors, source = find_text(rt, path, resolved, at, out_d);
  if (!source) return NULL;
  entry *m = CCN__NEW(rt->arena, entry);
  m->path = resolved;
  m->ast = ccn__parse(rt->arena, rt->names, rt->diags, source, NULL);
  if (rt->diags->errors > errors) {
    *out_d = rt->diags->last;
    return NULL;
  }
  m->next = rt->modules;
  rt->modules = m;
  return m;
}

static ccn__module *new_module(ccn__rt *rt, const char *path) {
  ccn__module *m = ccn__obj_new(rt, CCN__V_MODULE, sizeof *m);
  m->obj.pinned = true;
  m->path = path;
  m->env = ccn__env_new(rt, NULL);
  ccn__host_names(rt, m->env);
  return m;
}

struct ccn__module_list *ccn__modules_mark(const ccn__rt *rt) {
  return rt->modules;
}

void ccn__modules_back(ccn__rt *rt, struct ccn__module_list *mark) { rt->modules = mark; }

/* ---- use ----------------------------------------------------------------------------------------------- */

ccn__name ccn__import_name(ccn__rt *rt, const ccn__ast *s) {
  const char *slash = strrchr(s->str, '/');
  return s->name ? s->name : ccn__internz(rt->names, slash ? slash + 1 : s->str);
}

ccn__module *ccn__module_outline(ccn__rt *rt, const char *path, ccn__span at, ccn__program_list *out) {
  ccn__diag *d = NULL;
  entry *m = find(rt, path, at, &d);
  if (!m) return NULL;
  if (m->outline) return m->outline;
  ccn__enter(rt, at);
  m->busy = true;
  ccn__module *outline = new_module(rt, m->path);
  ccn__names_check(rt, m->ast, false, outline->env, out);
  m->busy = false;
  ccn__leave(rt);
  return m->outline = outline;
}

ccn__module *ccn__module_import(ccn__rt *rt, const char *path, ccn__span at) {
  ccn__diag *d = NULL;
  entry *volatile m = find(rt, path, at, &d);
  ccn__trap trap;
  if (!m) ccn__rt_raise(rt, d);
  if (m->module) return m->module;
  ccn__module *module = new_module(rt, m->path);
  ccn__frame frame = {rt->frames, "this import", at};
  m->busy = true;
  rt->frames = &frame;
  CCN__TRY(rt->heap, trap)
  { ccn__script_run(rt, module->env, m->ast); }
  CCN__CATCH(rt->heap, trap)
  {}
  m->busy = false;
  if (trap.status != CCN_OK) ccn__throw(rt->heap, trap.status);
  rt->frames = frame.outer;
  return m->module = module;
}
