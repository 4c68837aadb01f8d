/* api.h: what the files of the public interface share: the boundary, and handles, which are what the host
 * holds.
 *
 * A handle keeps a value of a runtime alive (ccn__hold) and the context's memory too. It may be released
 * from any thread, also while a call runs in another: a handle without owners is pushed on the context's
 * `dead` list, and whoever has the context's lock frees what is there, at the latest when the running call
 * ends. The last to let go of the context frees it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_API_H
#define CCN_LANG_API_H

#include <stdatomic.h>

#include "driver.h"

/* ---- the boundary (api.c) -------------------------------------------------------------------------------- */

enum {
  CCN__RUNS = 1,  /* scripts may run: diagnostics and interrupts of before are forgotten */
  CCN__FRESH = 2, /* in the state `once`, which is made empty first */
  CCN__NESTS = 4  /* allowed from within host functions */
};
typedef void ccn__work(ccn__state *s, void *user);
/* Calls work in the state, under the lock and a trap. `which` may point to NULL: a new state is made. Without
 * CCN__RUNS the last call's diagnostics stay, unless work reports some. */
ccn_status ccn__guarded(ccn_context *c, ccn__state **which, unsigned flags, ccn__work *work, void *user);

/* n texts of the host, NULL ones as ""; NULL if there are none. */
const char *const *ccn__copy_texts(ccn__arena *a, const char *const *from, size_t n);

/* api_host.c: whether functions and ops of the host may have this name. */
bool ccn__host_name_valid(const char *s);

/* Before work without CCN__RUNS reports something: the last call's report goes. Not in host functions. */
void ccn__report_begin(ccn__state *s);

/* ---- plans (api_plan.c) ---------------------------------------------------------------------------------- */

struct ccn__machine;
/* The machine that the host names or gives as text; raises. */
const struct ccn__machine *ccn__plan_machine(ccn__state *s, const ccn_plan_desc *d);
/* Runs the script, or one call of the program with the sizes that are given. */
void ccn__plan_run(ccn__state *s, const ccn__ast *ast, const ccn_plan_desc *d);

/* ---- handles (api_handle.c) ------------------------------------------------------------------------------ */

typedef struct ccn__handle {
  ccn__hold hold;
  ccn__state *state;
  struct ccn__handle *next;            /* in the dead list */
  void (*drop)(struct ccn__handle *h); /* lets go of what else it has; NULL: nothing; cannot fail */
  _Atomic uint32_t refs;
  uint32_t bytes;
} ccn__handle;

struct ccn_value {
  ccn__handle h;
};
struct ccn_tensor {
  ccn__handle h;
  const char *placement;
};

/* A new handle of `bytes` bytes with one owner. Throws. */
void *ccn__handle_new(ccn__state *s, size_t bytes, ccn__val v);
void ccn__handle_retain(ccn__handle *h);
void ccn__handle_release(ccn__handle *h);
ccn_value *ccn__value_new_handle(ccn__state *s, ccn__val v);   /* NULL for nothing */
ccn_tensor *ccn__tensor_handle(ccn__state *s, ccn__tensor *t); /* api_tensor.c */

ccn_kind ccn__kind_of(ccn__val v);
/* "adam", "optim.adam", "adam@zero(gsum)" in a scope: a program or a function; raises. */
ccn__val ccn__function_value(ccn__state *s, ccn__env *env, const char *name); /* api_call.c */

/* One more, one less of the host's holds on a tensor (v of any kind). */
void ccn__val_hold(ccn__val v);
void ccn__val_let(ccn__val v);
/* From now on a script may reach it. */
void ccn__val_escapes(ccn__val v);

/* ---- making tensors (api_tensor.c) ------------------------------------------------------------------------ */

typedef struct ccn__make {
  const ccn_tensor_desc *desc; /* from ccn__read_desc */
  const void *data;            /* the whole, of a copy */
  void *const *pieces;         /* of borrowed memory */
  size_t bytes, npieces;
  int read_only;
  void (*release)(void *user);
  void *user;
  ccn_tensor *tensor; /* out */
} ccn__make;
/* The description in full, whatever the host's struct was; false if it is wrong. */
bool ccn__read_desc(const ccn_tensor_desc *given, ccn_tensor_desc *d, size_t *bytes);
/* ccn__work; user: a ccn__make. */
void ccn__tensor_zeros(ccn__state *s, void *user);
void ccn__tensor_borrowed(ccn__state *s, void *user);

/* ---- the lock, states, contexts (api_handle.c) ------------------------------------------------------------ */

/* Frees what is dead, from within a call that has the lock. */
void ccn__bury(ccn_context *c);
bool ccn__lock(ccn_context *c);   /* false: a call is running */
void ccn__unlock(ccn_context *c); /* frees what is dead */
/* One owner of the context less; the last one frees it. */
void ccn__context_let(ccn_context *c);
ccn__state *ccn__state_new(ccn_context *c); /* throws */
/* The state is not used for new things any more: freed now, or with its last handle. Under the lock. */
void ccn__state_retire(ccn__state *s);

#endif
