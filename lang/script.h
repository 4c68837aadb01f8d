/* script.h: what the files of the script level share: evaluation, calls, numbers, formatting, modules, names.
 *
 * Place in the pipeline: AST → effects and values. A tree walk; programs and ops are called through
 * program.h. Rule of the files: whatever an evaluation returns is on rt->temps until the statement that asked
 * for it ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_SCRIPT_H
#define CCN_LANG_SCRIPT_H

#include "program.h"

/* Nested evaluations (expressions, statements, calls); beyond: CCN0602. Chosen so that 8 MB of C stack are
 * enough even when every frame carries a sanitizer's red zones. */
#define CCN__MAX_DEPTH 4000
CCN__NORETURN void ccn__too_deep(ccn__rt *rt, ccn__span span);
static inline void ccn__enter(ccn__rt *rt, ccn__span span) {
  if (rt->depth >= CCN__MAX_DEPTH) ccn__too_deep(rt, span);
  rt->depth++;
}
static inline void ccn__leave(ccn__rt *rt) { rt->depth--; }

/* Reports an error with a label and a hint (both may be NULL) and raises it. */
CCN__NORETURN void ccn__fail(ccn__rt *rt, uint16_t code, ccn__span span, const char *label, const char *hint,
                             const char *fmt, ...) CCN__PRINTF(6, 7);

static inline ccn__val ccn__int_val(int64_t i) { return (ccn__val){.kind = CCN__V_INT, .i = i}; }
static inline ccn__val ccn__float_val(double f) { return (ccn__val){.kind = CCN__V_FLOAT, .f = f}; }
static inline ccn__val ccn__bool_val(bool b) { return (ccn__val){.kind = CCN__V_BOOL, .b = b}; }
static inline ccn__val ccn__tensor_val(ccn__tensor *t) {
  return (ccn__val){.kind = CCN__V_TENSOR, .tensor = t};
}
static inline ccn__val ccn__list_val(ccn__list *l) { return (ccn__val){.kind = l->obj.kind, .list = l}; }
static inline bool ccn__is_number(ccn__val v) { return v.kind == CCN__V_INT || v.kind == CCN__V_FLOAT; }
static inline double ccn__as_f64(ccn__val v) { return v.kind == CCN__V_FLOAT ? v.f : (double)v.i; }

/* ---- script.c: statements ------------------------------------------------------------------------------ */
/* Runs the statements of a file in `env`. */
void ccn__script_run(ccn__rt *rt, ccn__env *env, const ccn__ast *block);
/* Statements that were carried out, in order. */
typedef CCN__VEC(const ccn__ast *) ccn__journal;
/* The same for an entry of a shell: gives the value of the last statement if that is an expression alone. What was
 * carried out is added to the journal (may be NULL), also when a later statement fails. */
ccn__val ccn__script_value(ccn__rt *rt, ccn__env *env, const ccn__ast *block, ccn__journal *journal);
/* Calls a fn value. */
ccn__val ccn__call_fn(ccn__rt *rt, ccn__fn *fn, const ccn__arg *args, uint32_t nargs, ccn__span call);
/* A program value, with the script's values of the names that it reads (also for the check, where `env` holds
 * what is known before the script runs). Not bound to its name. */
ccn__program *ccn__program_new(ccn__rt *rt, ccn__env *env, const ccn__ast *ast);
/* The mesh of the main script. For a check (`running` false) open axes keep the size 0. Sizes that were not
 * evaluated are 0 in `size` when axis->a is there. Errors are reported; false if there was one. */
bool ccn__mesh_define(ccn__rt *rt, const ccn__ast *mesh, const int64_t *size, bool running);

/* ---- script_expr.c: expressions ------------------------------------------------------------------------ */
ccn__val ccn__eval(ccn__rt *rt, ccn__env *env, const ccn__ast *e);
/* A type. `open`: unknown bare names stand for any extent and come out as -1, -2, ... (one number a name). */
ccn__val ccn__eval_type(ccn__rt *rt, ccn__env *env, const ccn__ast *type, bool open);
/* A condition; `what` completes "the condition of `if`". */
bool ccn__truth(ccn__rt *rt, ccn__val v, ccn__span span, const char *what);
/* A whole number, from a number or a replicated scalar tensor; `what` completes "an index must be a whole
 * number". */
int64_t ccn__whole(ccn__rt *rt, ccn__val v, ccn__span span, const char *what);
/* CCN0510: while programs are recorded tensors have no elements. */
CCN__NORETURN void ccn__no_elements(ccn__rt *rt, ccn__span span);
/* A replicated scalar tensor as its number; everything else as it is. */
ccn__val ccn__plain(ccn__val v);
/* `P with s` as written in `with`; env: where its names are looked up. */
ccn__program *ccn__program_with(ccn__rt *rt, ccn__env *env, const ccn__ast *with, ccn__program *p,
                                ccn__schedule *s);
/* -1 → n - 1, ...; CCN0812 if it is outside [0, n). */
int64_t ccn__position(ccn__rt *rt, int64_t i, int64_t n, ccn__span span, const char *what);
int64_t ccn__string_length(const ccn__string *s); /* in characters */
/* Memory of n bytes that lives as long as temps.n is not set back. */
void *ccn__temp_memory(ccn__rt *rt, size_t n);

/* ---- script_call.c: calls ------------------------------------------------------------------------------ */
ccn__val ccn__eval_call(ccn__rt *rt, ccn__env *env, const ccn__ast *call);
ccn__val ccn__call_value(ccn__rt *rt, ccn__val callee, const ccn__arg *args, uint32_t n, ccn__span call,
                         ccn__span callee_span);
/* Raises CCN0801 for a name that nothing defines, with the nearest of the names that are visible. */
CCN__NORETURN void ccn__unknown_name(ccn__rt *rt, const ccn__env *env, ccn__name name, ccn__span span);
/* Tries the names that are always there: ops, functions, dtypes. */
void ccn__nearest_builtin(ccn__nearest *near);
bool ccn__is_builtin(const char *name);   /* any of these */
bool ccn__program_only(const char *name); /* a collective, update or rank: CCN0804 in a script */
ccn__diag *ccn__program_only_error(ccn__rt *rt, const char *name, ccn__span span);

/* ---- host.c: functions of the host --------------------------------------------------------------------- */
struct ccn__host_fn {
  const struct ccn__host_fn *next;
  const char *name;
  /* Calls it; raises. Set by the API, which alone knows of handles. */
  ccn__val (*call)(ccn__rt *rt, const struct ccn__host_fn *f, const ccn__arg *args, uint32_t n,
                   ccn__span span);
  ccn_host_fn fn;
  void *user;
  bool pure;
};
const char *ccn__host_name(const struct ccn__host_fn *f);
ccn__val ccn__host_call(ccn__rt *rt, const struct ccn__host_fn *f, const ccn__arg *args, uint32_t n,
                        ccn__span span);
void ccn__host_names(ccn__rt *rt, ccn__env *env); /* functions and ops into a scope */

/* ---- script_num.c: arithmetic of script numbers, pure -------------------------------------------------- */
typedef struct ccn__calc_error {
  uint16_t code;
  const char *why; /* "overflows 64 bits" */
  const char *hint;
} ccn__calc_error;
/* x and y are numbers or booleans; false: *err says why not. */
bool ccn__calc_binary(ccn__oper op, ccn__val x, ccn__val y, ccn__val *out, ccn__calc_error *err);
bool ccn__calc_unary(ccn__oper op, ccn__val x, ccn__val *out, ccn__calc_error *err);
/* An elementwise op of the table on numbers; false if the table has no such kernel (nothing is reported). */
bool ccn__calc_op(ccn__op op, const ccn__val *x, uint32_t n, ccn__val *out);
/* f32(x), i8(x), ...: the value after the cast. */
ccn__val ccn__calc_cast(ccn__dtype t, ccn__val x);
/* -1, 0, 1 as numbers compare, without rounding; 2 if one is NaN. */
int ccn__calc_compare(ccn__val x, ccn__val y);

/* ---- script_builtins.c, script_files.c, script_tensor.c: functions and methods ------------------------- */
typedef struct ccn__builtin ccn__builtin;
typedef struct ccn__builtin_call { /* arguments bound to the parameters, NULL where one is left out */
  const char *name;
  const ccn__arg *at[4];
  const ccn__arg *args; /* of functions with any number of arguments */
  uint32_t nargs;
  ccn__span span;
} ccn__builtin_call;
typedef ccn__val (*ccn__builtin_fn)(ccn__rt *rt, const ccn__builtin_call *c);
struct ccn__builtin {
  const char *name, *params; /* "path, as?"; "..." for any number */
  ccn__builtin_fn fn;
  const char *doc;
};
const ccn__builtin *ccn__builtin_find(const char *name); /* NULL if there is none */
const ccn__builtin *ccn__builtin_at(uint32_t i);         /* the table in order; NULL past its end */
ccn__val ccn__builtin_run(ccn__rt *rt, const ccn__builtin *b, const ccn__arg *args, uint32_t nargs,
                          ccn__span span);
/* A method call or a field; `self` is the value before the dot. */
ccn__val ccn__method(ccn__rt *rt, ccn__val self, ccn__name name, ccn__span nspan, const ccn__arg *args,
                     uint32_t nargs, ccn__span span);
ccn__val ccn__field(ccn__rt *rt, ccn__val self, ccn__name name, ccn__span nspan);
/* Name number i of the methods and fields of a kind of value; NULL past the end. */
const char *ccn__member_name(uint8_t kind, uint32_t i);

ccn__val ccn__fn_load(ccn__rt *rt, const ccn__builtin_call *c);
ccn__val ccn__fn_save(ccn__rt *rt, const ccn__builtin_call *c);
ccn__val ccn__fn_tensor(ccn__rt *rt, const ccn__builtin_call *c);
ccn__val ccn__fn_copy(ccn__rt *rt, const ccn__builtin_call *c);
ccn__val ccn__fn_per_rank(ccn__rt *rt, const ccn__builtin_call *c);
/* b[i] of a bundle. */
ccn__val ccn__bundle_member(ccn__rt *rt, ccn__tensor *b, int64_t i, ccn__span span);
uint32_t ccn__bundle_count(const ccn__tensor *b);
ccn__val ccn__tensor_on(ccn__rt *rt, ccn__tensor *t, uint32_t rank, ccn__span span);
/* A new tensor of these global extents and placement from the whole value's bytes (row-major). */
ccn__tensor *ccn__tensor_place(ccn__rt *rt, ccn__dtype t, uint32_t rank, const int64_t *dim,
                               const ccn__cplace *place, const void *whole);

/* ---- script_format.c ----------------------------------------------------------------------------------- */
void ccn__format(ccn__rt *rt, ccn__text *out, ccn__val v);
/* {x:.4f}: [0][width][.precision][fegd]. */
void ccn__format_as(ccn__rt *rt, ccn__text *out, ccn__val v, const char *format, ccn__span span);
/* Building one text: begin, format, end. Nothing in between runs script code. */
void ccn__scratch_begin(ccn__rt *rt, ccn__text *t);
void ccn__scratch_end(ccn__rt *rt);

/* ---- names.c: what can be said about names before the script runs -------------------------------------- */
typedef CCN__VEC(ccn__program *)
  ccn__program_list; /* in order of their text, those of imported modules included */
/* Reports unknown names and what stands in programs only; makes the programs, with the constants that are
 * known, and adds them to *out. `main_script`: a mesh is allowed. `env` gets the names of the file; most
 * values are not known. */
void ccn__names_check(ccn__rt *rt, const ccn__ast *block, bool main_script, ccn__env *env,
                      ccn__program_list *out);

/* The same for an entry of a session, or a module that the host loads. `env` has the names that are known, with
 * values where they are; `assigned` gets the names that assignments change, whose values then are not known. */
void ccn__names_check_entry(ccn__rt *rt, const ccn__ast *block, ccn__env *env, ccn__env *assigned,
                            ccn__program_list *out);

/* ---- names_schedule.c: the same for schedules ---------------------------------------------------------- */
/* The names that a schedule's statements use (CCN0400); other schedules are found in `env`. */
void ccn__schedule_check(ccn__rt *rt, const ccn__schedule *s, const ccn__env *env);
/* `P with s`: whether s is a schedule of that program, the number of handles (CCN0814, CCN0400, CCN0800).
 * NULL, or what was reported. */
ccn__diag *ccn__with_check(ccn__rt *rt, const ccn__ast *with, ccn__val program, ccn__val schedule);

/* ---- modules.c: import --------------------------------------------------------------------------------- */
/* `importing`: the span of the import statement, whose source the path starts from. */
ccn__module *ccn__module_import(ccn__rt *rt, const char *path, ccn__span importing);
/* The same for a check: its names are known, most values are not. NULL after an error. */
ccn__module *ccn__module_outline(ccn__rt *rt, const char *path, ccn__span importing, ccn__program_list *out);
/* Forgets the modules that were found since *mark was the list's head: their texts failed. */
struct ccn__module_list *ccn__modules_mark(const ccn__rt *rt);
void ccn__modules_back(ccn__rt *rt, struct ccn__module_list *mark);
ccn__name ccn__import_name(ccn__rt *rt,
                           const ccn__ast *import); /* after `as`, or the last part of the path */

#endif
