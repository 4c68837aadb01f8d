/* program.h: program values: define, check, specialise, call; and ops called at script level.
 *
 * Place in the pipeline: between script.c (who calls) and lower.c, interp.c (who make and run graphs).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_PROGRAM_H
#define CCN_LANG_PROGRAM_H

#include "runtime.h"

typedef struct ccn__arg {
  ccn__name name; /* NULL: positional */
  ccn__span nspan;
  ccn__val value;
  ccn__span span;
} ccn__arg;

/* Calls a program from the script. Binds arguments (CCN0800, 0806), converts numbers (CCN0110) and placements
 * (CCN0219), checks sizes (CCN0304, 0305, ...) and overlap with updated parameters (CCN0225), lowers the program for
 * these argument kinds if that was not done yet, runs it, and gives a tensor, a bundle, a tuple of them, or none. */
ccn__val ccn__program_call(ccn__rt *rt, ccn__program *p, const ccn__arg *args, uint32_t nargs,
                           ccn__span call);

/* Calls the op `name` at script level as a one-op program, with its arguments' placements. Collectives, update and
 * rank() are CCN0804. Number arguments are literals. `name` must satisfy ccn__op_find or be zeros or ones. */
ccn__val ccn__op_call(ccn__rt *rt, ccn__name name, const ccn__arg *args, uint32_t nargs, ccn__span call);
/* x[i, a:b, :] of a tensor at script level. */
typedef struct ccn__index_item {
  bool is_range; /* a:b, of which either side may be left out; else the index is `start` */
  bool has_start, has_end;
  int64_t start, end; /* as written: negative ones count from the end */
  ccn__span span;
} ccn__index_item;
ccn__val ccn__index_call(ccn__rt *rt, ccn__arg x, const ccn__index_item *items, uint32_t n, ccn__span span);
/* The same for an operator between values of which one is a tensor. y.value.kind NONE for unary. */
ccn__val ccn__operator_call(ccn__rt *rt, ccn__oper op, ccn__arg x, ccn__arg y, ccn__span span);
bool ccn__op_callable(const char *name); /* a name that calls reach: "sum", "zeros", "allreduce", ... */

/* A scalar (rank 0) tensor whose value is the same on all ranks, as a number or bool; false if it is not that. */
bool ccn__tensor_number(const ccn__tensor *t, ccn__val *out);
/* Element `i` (row-major) of rank's piece, as a number or bool. */
ccn__val ccn__tensor_element(const ccn__tensor *t, uint32_t rank, int64_t i);
/* The same values replicated whole: a gather of what is sliced; NULL if t is local, owed or at one coordinate. */
ccn__tensor *ccn__tensor_whole(ccn__rt *rt, ccn__tensor *t);
/* "f32[16] sliced(0) over dp", for messages. */
const char *ccn__tensor_describe(ccn__rt *rt, const ccn__tensor *t);
/* The tensor with its pieces as its type says, gathered if they are stored in slices: t or a new one (storage.c). */
ccn__tensor *ccn__tensor_here(ccn__rt *rt, ccn__tensor *t);
void ccn__tensor_settle(ccn__rt *rt, ccn__tensor *t); /* from now on t itself has its pieces so */
/* Bytes of tensors that each rank holds, what is garbage included: collect first. */
void ccn__resident_bytes(ccn__rt *rt, uint64_t *out);
/* Its last words: " sliced(0) over dp"; nothing if it is replicated. */
void ccn__tensor_placement(ccn__rt *rt, const ccn__tensor *t, ccn__text *out);

/* Applies the schedules of `P with s` to the program as checked, for their errors only; raises. */
void ccn__program_try(ccn__rt *rt, ccn__program *p, ccn__span span);
/* The same for a check: reports; gives the scheduled graph or NULL. */
ccn__graph *ccn__program_check_schedules(ccn__rt *rt, ccn__program *p);

/* Static check of one program on its own (symbolic sizes): errors go to rt->diags. `constants` as in ccn__program;
 * names bound to CCN__V_NONE there exist but have unknown values. Gives the graph, or NULL if there were errors. */
struct ccn__graph *ccn__program_check(ccn__rt *rt, ccn__program *p);

#endif
