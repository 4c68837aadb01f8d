/* lower.h: AST of a program → typed graph (internal to lower*.c and program.c).
 *
 * One walk elaborates the body: names are looked up, loops over script constants unroll, calls of programs are
 * inlined by walking the callee's body with the argument values, and each op becomes a node whose type ccn__infer
 * gives at once. An error makes the value CCN__B_ERROR, which is passed on in silence: one error a cause.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_LOWER_H
#define CCN_LANG_LOWER_H

#include "host_op.h"
#include "program.h"

typedef enum ccn__bkind {
  CCN__B_ERROR, /* already reported */
  CCN__B_NONE,
  CCN__B_NODE,
  CCN__B_LIT,
  CCN__B_STRING,
  CCN__B_LIST, /* also a literal list */
  CCN__B_TUPLE,
  CCN__B_RANGE, /* list.at[0], list.at[1]: LIT; n = 2 */
  CCN__B_TYPE,
  CCN__B_OP, /* the name of an op or of a word */
  CCN__B_PROGRAM,
  CCN__B_MODULE
} ccn__bkind;

typedef struct ccn__bv { /* a value while a program is lowered */
  uint8_t kind;
  bool abstract;  /* LIST whose length is not known (check): it stands for any number of its one member */
  ccn__span span; /* the expression */
  union {
    ccn__id node;
    const ccn__lit *lit;
    const char *string;
    struct {
      struct ccn__bv *at;
      uint32_t n;
    } list;
    const ccn__ast *type;        /* TYPE from program text */
    const ccn__typeval *typeval; /* TYPE from a script value: `type` is NULL then */
    ccn__name name;
    ccn__program *program;
    ccn__module *module;
  };
} ccn__bv;
#define CCN__B_FAIL ((ccn__bv){.kind = CCN__B_ERROR})

typedef struct ccn__scope_entry {
  ccn__name name;
  ccn__bv value;
  uint32_t shadowed; /* position + 1 of the binding of the same name that this one hides; 0 = none */
} ccn__scope_entry;

/* Bindings in order, with an index by name: looking up is constant work however long a program is. */
typedef struct ccn__scope {
  ccn__scope_entry *at;
  uint32_t n, cap;
  struct ccn__scope_slot {
    ccn__name name;
    uint32_t last; /* position + 1 */
  } * slot;
  uint32_t nslots, used; /* a power of two */
} ccn__scope;
void ccn__scope_push(ccn__arena *a, ccn__scope *s, ccn__name name, ccn__bv v);
void ccn__scope_cut(ccn__scope *s, uint32_t n);                /* forgets all bindings from position n on */
ccn__bv *ccn__scope_find(const ccn__scope *s, ccn__name name); /* the last one, or NULL */
uint32_t ccn__scope_position(const ccn__scope *s, ccn__name name); /* of the last one, or CCN__NO_INDEX */

typedef struct ccn__inline { /* one program's text being walked */
  struct ccn__inline *outer;
  ccn__program *program; /* NULL for a script-level op */
  ccn__span call;
  const char *prefix; /* "blk[0]." or "" */
  ccn__scope names;
  ccn__scope dims; /* LIT dims by symbol name */
  uint32_t naxes;  /* the axes that exist in the text, and which mesh axes they are */
  ccn__name axis_name[CCN__MAX_AXES];
  uint8_t axis[CCN__MAX_AXES];
  uint16_t *auto_count;   /* by op */
  ccn__scope calls;       /* label of a callee → how often it was called here (LIT int) */
  const char *take_label; /* the label that the only call of a labelled loop's body takes */
  bool returned;
  ccn__bv result;
} ccn__inline;

typedef struct ccn__on_block {
  struct ccn__on_block *outer;
  uint32_t axis;
  int32_t coord;
  uint32_t region;
  ccn__span span;
  CCN__VEC(struct {
    ccn__id from;
    ccn__id to;
  })
  entered;
} ccn__on_block;

typedef struct ccn__lower {
  ccn__rt *rt;
  ccn__graph *g;
  ccn__arena *arena;
  ccn__diags *ds;
  ccn__inline *frame;
  ccn__on_block *on;
  uint32_t region;
  uint32_t repeats;         /* depth of `repeat` */
  bool check;               /* constants may be unknown, lists have no length */
  bool script;              /* a script-level op */
  const ccn__ast *bind_ast; /* the expression whose value gets the name bind_name */
  ccn__name bind_name;
  uint32_t depth;
  uint32_t turns, calls; /* of unrolled loops and of programs so far: bounded */
} ccn__lower;

/* ---- lower.c ---- */
/* What the arguments decide: lengths of lists, and placements over axes that a generic program does not name.
 * vals NULL: check mode. Returns NULL after reporting errors. */
ccn__graph *ccn__lower_program(ccn__rt *rt, ccn__program *p, const ccn__val *vals, bool check);
void ccn__lower_init(ccn__lower *l, ccn__rt *rt, ccn__graph *g, bool check);
void ccn__lower_block(ccn__lower *l, const ccn__ast *block);
void ccn__bind(ccn__lower *l, ccn__name name, ccn__bv v);
void ccn__lower_finish(ccn__lower *l, ccn__bv result, ccn__span span); /* outputs, CCN0224, dead code */

/* ---- lower_blocks.c ---- */
void ccn__lower_on_statement(ccn__lower *l, const ccn__ast *s);
void ccn__lower_for_statement(ccn__lower *l, const ccn__ast *s);
void ccn__lower_repeat_statement(ccn__lower *l, const ccn__ast *s);
void ccn__lower_if_statement(ccn__lower *l, const ccn__ast *s);

/* lower.c, for lower_blocks.c */
void ccn__lower_statement(ccn__lower *l, const ccn__ast *s);
ccn__name ccn__lower_full_name(ccn__lower *l, ccn__name name);
void ccn__lower_bind_pattern(ccn__lower *l, const ccn__ast *pattern, ccn__bv v);

/* ---- lower_expr.c ---- */
ccn__bv ccn__lower_expr(ccn__lower *l, const ccn__ast *e);
ccn__bv *ccn__lookup(ccn__lower *l, ccn__name name); /* innermost binding in this text, or NULL */
/* The node that v is inside the current region: enters `on` blocks, makes literals of dtype t constants (t < 0: a
 * literal alone is CCN0103). CCN__NO_ID after an error. */
ccn__id ccn__as_node(ccn__lower *l, ccn__bv v, int t);
bool ccn__is_node(ccn__bv v);
bool ccn__is_boolean(const ccn__lit *x); /* true, false, comparisons of sizes */
/* check: a script constant whose value is not known, a number or anything else */
bool ccn__is_unknown(ccn__bv v);
const ccn__type *ccn__type_of(const ccn__lower *l, ccn__bv v); /* of a NODE */
/* A literal as a number whose value is known; false after reporting (code 0800, `what` names the argument). */
bool ccn__lit_number(ccn__lower *l, ccn__bv v, const char *what, ccn__number *out);
bool ccn__lit_i64(ccn__lower *l, ccn__bv v, const char *what, int64_t *out);
/* An extent has its value only at a call; a program is compiled for all of them. True after reporting. */
bool ccn__refuse_extent(ccn__lower *l, ccn__bv v, const char *what);
ccn__bv ccn__from_val(ccn__lower *l, ccn__val v, ccn__span span); /* a script constant */
ccn__bv ccn__bv_node(ccn__id id, ccn__span span);

/* ---- lower_types.c ---- */
const ccn__dim *ccn__lower_dim(ccn__lower *l, const ccn__ast *e); /* NULL after an error */
const ccn__dim *ccn__bv_dim(ccn__lower *l, ccn__bv v);
/* A type in the current text; dims that are unknown names are new symbols if `declare`. NULL after an error. */
const ccn__type *ccn__lower_type(ccn__lower *l, const ccn__ast *t, bool declare);
bool ccn__axis_find(ccn__lower *l, ccn__name name, uint32_t *out_axis); /* an axis of the text */
/* Declares the parameters of frame->program as PARAM nodes. */
bool ccn__declare_params(ccn__lower *l, const ccn__val *vals);
/* Binds arguments of an inlined call: checks them against the callee's types. caller: the frame of the call. */
bool ccn__bind_params(ccn__lower *l, ccn__inline *callee, ccn__bv *args, ccn__span call);
void ccn__need(ccn__lower *l, ccn__constraint c);

/* ---- lower_ops.c ---- */
typedef struct ccn__opd { /* an argument of an op: text or value */
  ccn__name name;
  ccn__span nspan, span;
  const ccn__ast *ast; /* evaluated when it is known what it should be; NULL: `value` is there */
  ccn__bv value;
} ccn__opd;
ccn__bv ccn__build_op(ccn__lower *l, const char *name, const ccn__opd *args, uint32_t nargs, ccn__span span);
ccn__bv ccn__build_operator(ccn__lower *l, ccn__oper op, ccn__bv x, ccn__bv y, ccn__span span);
ccn__bv ccn__build_cast(ccn__lower *l, ccn__dtype t, ccn__bv x, ccn__span span);
typedef struct ccn__index_arg { /* x[start:end] or x[start] */
  bool range;
  const ccn__dim *start, *end; /* NULL: open */
  ccn__span span;
} ccn__index_arg;
ccn__bv ccn__build_index(ccn__lower *l, ccn__bv x, const ccn__index_arg *items, uint32_t n, ccn__span span);
/* lower_host.c: an op of the host */
ccn__bv ccn__build_host(ccn__lower *l, const struct ccn__host_op *op, const ccn__opd *args, uint32_t nargs,
                        ccn__span span);
/* A node with inference; reports; CCN__NO_ID after an error. `spans` of the operands' expressions may be NULL. */
ccn__id ccn__emit(ccn__lower *l, ccn__op op, const ccn__id *in, uint32_t nin, ccn__attrs attrs,
                  const ccn__type *want, ccn__span span);

/* ---- lower_report.c ---- */
void ccn__report_type_error(ccn__lower *l, const ccn__infer_in *q, const ccn__id *in,
                            const ccn__type_error *err, ccn__span span);
const char *ccn__type_text(const ccn__graph *g, const ccn__type *t);
/* "`layer`", or "the result of `matmul`" */
const char *ccn__node_text(ccn__lower *l, ccn__id id);
void ccn__note_origin(ccn__lower *l, ccn__diag *d, ccn__id id, int axis);
ccn__diag *ccn__lower_error(ccn__lower *l, uint16_t code, ccn__span span, const char *label, const char *fmt,
                            ...)
  CCN__PRINTF(5, 6); /* with a note for each call through which the text was inlined */

#endif
