/* ccn.h: the public interface of CCN, a language in which computation and communication are statements.
 *
 * This is the whole promise: what is not here is not API. It reads as C11 and as C++. The library never
 * exits, aborts, prints, installs signal handlers or keeps global mutable state.
 *
 *   context ── ccn_run, ccn_check, ccn_dump: one text each, which leaves nothing behind
 *      │
 *      └────── its session: ccn_eval (entries of a shell), modules, tensors
 *                 module ── ccn_module_function ──► function ── ccn_call_create ──► call ── run ──► results
 *
 * Rules that hold for all of it, where nothing else is said:
 *  - Threads: a context, with everything made from it, is used by one thread at a time; two contexts share
 *    nothing. The release functions and ccn_interrupt may be called from any thread at any time.
 *  - Ownership: what an out-parameter gives is the host's and goes with its release function; it keeps the
 *    memory of its context alive, also after ccn_context_free. Texts and structs passed in are copied.
 *  - NULL: release functions take it and do nothing. All others answer CCN_INVALID_ARGUMENT, 0 or NULL.
 *  - Errors: every status function may answer CCN_OUT_OF_MEMORY, and CCN_INVALID_ARGUMENT also when it is
 *    called from a callback of the same context where that is not allowed. On failure out-parameters are
 *    NULL or 0 and nothing is left of the call. CCN_ERROR comes with diagnostics.
 *  - Since: 0.1.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_H
#define CCN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCN_VERSION_MAJOR 0
#define CCN_VERSION_MINOR 1
#define CCN_VERSION_PATCH 0
#define CCN_VERSION (CCN_VERSION_MAJOR * 10000 + CCN_VERSION_MINOR * 100 + CCN_VERSION_PATCH)

#if defined(__GNUC__)
#define CCN_NODISCARD __attribute__((warn_unused_result))
#define CCN_API __attribute__((visibility("default")))
#else
#define CCN_NODISCARD
#define CCN_API
#endif

/* What a call came to. Anything finer is a diagnostic. */
typedef enum ccn_status {
  CCN_OK = 0,
  CCN_ERROR,            /* the program is wrong or failed while it ran; diagnostics say where and why */
  CCN_INVALID_ARGUMENT, /* the call itself was wrong (NULL, a size, an unknown stage) */
  CCN_NOT_FOUND,
  CCN_OUT_OF_MEMORY,
  CCN_INTERRUPTED,
  CCN_UNSUPPORTED,
  CCN_INTERNAL,  /* a defect of CCN */
  CCN_INCOMPLETE /* ccn_eval: the text ends too early; ask for another line */
} ccn_status;

typedef enum ccn_severity { CCN_SEVERITY_ERROR = 1, CCN_SEVERITY_WARNING = 2 } ccn_severity;

/* The host's allocator, one function as in Lua: new_size 0 frees `pointer` (which may be NULL) and returns
 * NULL; pointer NULL allocates; otherwise never called (CCN does not reallocate). Must return memory aligned
 * to `align` (a power of two, at most 64) or NULL. */
typedef void *(*ccn_alloc_fn)(void *pointer, size_t old_size, size_t new_size, size_t align, void *user);

/* Receives text; `text` is valid during the call only and not NUL-terminated. */
typedef void (*ccn_write_fn)(const char *text, size_t size, void *user);

/* Reads the file `path` whole: on success sets *out_data to memory that the host keeps valid until it is
 * passed to `ccn_file_free_fn`, and returns 0; otherwise returns an errno value. */
typedef int (*ccn_file_read_fn)(const char *path, void **out_data, size_t *out_size, void *user);
typedef void (*ccn_file_free_fn)(void *data, size_t size, void *user);
/* Replaces the file `path`; returns 0 or an errno value. */
typedef int (*ccn_file_write_fn)(const char *path, const void *data, size_t size, void *user);

/* Set by ccn_options_init; grows only at its end. */
typedef struct ccn_options {
  size_t size;        /* sizeof(ccn_options) as the host was compiled */
  ccn_alloc_fn alloc; /* NULL: malloc and free */
  void *alloc_user;
  size_t memory_limit; /* bytes; 0: none. Beyond it calls return CCN_OUT_OF_MEMORY */
  /* Simulated ranks, 1..64 (backend "sim": 1..65536); 0: the product of the mesh's fixed axes. */
  int32_t ranks;
  ccn_write_fn print; /* what scripts print; NULL: dropped */
  void *print_user;
  ccn_write_fn progress; /* transient progress text (one line, no newline); NULL: none */
  void *progress_user;
  ccn_file_read_fn read; /* NULL: scripts read no files */
  ccn_file_free_fn read_free;
  ccn_file_write_fn write; /* NULL: scripts write no files */
  void *file_user;
  const char *const *args; /* the script's list `args`; copied */
  size_t nargs;
  const char *const *watch; /* names of program values to report at each call, as "step.mh" or "mh"; copied */
  size_t nwatch;
  ccn_write_fn watch_print; /* a line for each watched value; NULL: dropped */
  void *watch_user;
  int32_t check_nan; /* 1: the first op whose result holds NaN where its operands have none is CCN0607 */
  /* Asked first for the text of `import "path"` (not of "std/..."): 0 and a text, which `load_free` gets
   * back, or an errno value, after which `read` is asked. `path` is as resolved, with ".ccn". NULL: only
   * `read` is asked. */
  ccn_file_read_fn load;
  ccn_file_free_fn load_free;
  void *load_user;
  int64_t time_limit_ms; /* of each call that runs something; beyond it is CCN0608. 0: none */
  /* What executes programs: NULL or "reference", the interpreter, op by op; "plan", the interpreter, step by step
   * through the plan that a backend would execute, in the memory that the plan gives each value: slower, the same
   * results, meant for tests; "sim": nobody: programs are recorded, tensors have no elements, see ccn_plan_write; "local": compiled kernels,
   * ranks in this process, the same results. */
  const char *backend;
  int32_t workers; /* of "local": threads that share the ranks. 0: one a core, where a step is worth it */
  /* Of "local": when for so long nothing of a call has moved, `hung` gets a text, without newline, from another
   * thread: rank, op, place, and what it waits for. The call goes on; whoever wants to end the process does so
   * there. 0 or no function: nobody looks. */
  int64_t hang_limit_ms;
  ccn_write_fn hung;
  void *hung_user;
} ccn_options;

typedef struct ccn_context ccn_context;

/* Fills *o with defaults. `size` is sizeof(ccn_options). O may not be NULL. */
CCN_API void ccn_options_init(ccn_options *o, size_t size);

/* Makes a context. `o` may be NULL (defaults); what it points to is copied, except the user pointers. On
 * failure *out_context is NULL and nothing is left. Errors: CCN_INVALID_ARGUMENT (ranks outside 0..64, an
 * unknown backend), CCN_OUT_OF_MEMORY. */
CCN_API CCN_NODISCARD ccn_status ccn_context_create(const ccn_options *o, ccn_context **out_context);
/* Ends the context for the host. Tensors, values, modules and calls that were not released yet can still be
 * released and read; the memory goes with the last of them. Not to be called from a callback. */
CCN_API void ccn_context_free(ccn_context *c);

/* Runs the script `text` (size bytes; need not be NUL-terminated) as the main script: parse, check all of
 * it, then execute. `name` is shown in messages; `import` of relative paths starts from its folder. Paths of
 * load and save go to the host's functions as the script writes them. Errors: CCN_ERROR with diagnostics;
 * nothing is executed if the check finds errors; CCN_INTERRUPTED, CCN_OUT_OF_MEMORY, and whatever status a
 * host function answers. */
CCN_API CCN_NODISCARD ccn_status ccn_run(ccn_context *c, const char *name, const char *text, size_t size);
/* Parse and check only: nothing is executed, no file is read but those that are imported. Errors: as
 * ccn_run. */
CCN_API CCN_NODISCARD ccn_status ccn_check(ccn_context *c, const char *name, const char *text, size_t size);

/* Writes a stage of every program of the script as text: stage "ast", "graph", "scheduled" (of each `P with
 * s`), "plan" or "plan.json" (one object a line). Programs are dumped as checked, with symbolic sizes. Plans are
 * those of the calls that the script makes, each once for the same sizes: the script runs, and what it prints goes
 * to the host's `print` as ever. Errors: CCN_INVALID_ARGUMENT for an unknown
 * stage (the message lists them). */
CCN_API CCN_NODISCARD ccn_status ccn_dump(ccn_context *c, const char *name, const char *text, size_t size,
                                          const char *stage, ccn_write_fn write, void *user);

/* A state of a program while its schedules are applied. */
typedef struct ccn_pass {
  size_t size; /* sizeof(ccn_pass) as the library was compiled; it grows only at the end */
  const char *program;
  uint32_t number;  /* which `P with s` of the text it is, from 0 */
  uint32_t step;    /* 0: the program as written; k: behind the k-th statement that was carried out */
  const char *name; /* of the statement: "split"; "" for step 0 */
  int32_t exact;    /* 1: no bit of a result changes; 0: the statement may reassociate sums */
  const char *file; /* where the statement stands; for step 0 the schedule behind `with`. NULL: nowhere */
  uint32_t line;
  double seconds; /* that it took, the check of the new graph included */
  uint32_t nodes;
  const char *graph; /* the graph as text, not NUL-terminated */
  size_t graph_size;
} ccn_pass;
/* `pass` is valid during the call only. */
typedef void (*ccn_pass_fn)(const ccn_pass *pass, void *user);

/* Checks the script and tells fn of each state of each program with schedules, in order. Programs are as
 * checked, with symbolic sizes. If a statement is refused, fn has been told of the states before it. */
CCN_API CCN_NODISCARD ccn_status ccn_passes(ccn_context *c, const char *name, const char *text, size_t size,
                                            ccn_pass_fn fn, void *user);

/* Statement number i of schedules, in order ("split"), and what it does; NULL past the end. Static. */
CCN_API const char *ccn_pass_list(size_t i, const char **out_summary);

/* Reads graph text (as ccn_dump with "graph" writes it), verifies it, and writes it again. Errors:
 * CCN_ERROR. */
CCN_API CCN_NODISCARD ccn_status ccn_graph_read(ccn_context *c, const char *name, const char *text,
                                                size_t size, ccn_write_fn write, void *user);

/* Ends the running statement with CCN_INTERRUPTED as soon as it looks. From any thread, or a signal handler. */
CCN_API void ccn_interrupt(ccn_context *c);

/* ---- sessions and values --------------------------------------------------------------------------------
 * Each context has one session. It lives until ccn_session_reset. */
typedef struct ccn_value ccn_value;
typedef struct ccn_tensor ccn_tensor;

/* Evaluates one entry of a shell, one or more statements, in the session: names that entries before it have
 * defined are there. First all of it is checked; if that finds errors nothing is executed. If a statement
 * fails, the ones before it stay done, and the session goes on. `name` is shown in messages ("<line 3>") and
 * is what `import` of relative paths starts from.
 *
 * A mesh may be declared as an entry's first statement, before the first tensor and the first call of a
 * program; the same mesh may be declared again.
 *
 * If the last statement is an expression alone and has a value, *out_value becomes that value, else NULL.
 * out_value may be NULL.
 *
 * CCN_INCOMPLETE: nothing is wrong but that the text ends inside brackets or behind an operator: call again
 * with the text and another line. The diagnostics then say what is open, for a host that has no other line.
 *
 * Texts and syntax of all entries stay in memory until ccn_session_reset. */
CCN_API CCN_NODISCARD ccn_status ccn_eval(ccn_context *c, const char *name, const char *text, size_t size,
                                          ccn_value **out_value);

/* Begins a new session: all names, modules and the mesh are forgotten. Tensors and values of the old session
 * can still be read and must still be released; they cannot be passed to calls of the new one. */
CCN_API CCN_NODISCARD ccn_status ccn_session_reset(ccn_context *c);

typedef enum ccn_kind {
  CCN_KIND_NONE = 0,
  CCN_KIND_BOOL,
  CCN_KIND_INT,
  CCN_KIND_FLOAT,
  CCN_KIND_STRING,
  CCN_KIND_LIST,
  CCN_KIND_TUPLE,
  CCN_KIND_TENSOR,
  CCN_KIND_BUNDLE, /* tensors held as one value: ccn_value_at gives them */
  CCN_KIND_PROGRAM,
  CCN_KIND_OTHER /* a function, schedule, range, module or type: can be shown */
} ccn_kind;

CCN_API ccn_kind ccn_value_kind(const ccn_value *v); /* of NULL: CCN_KIND_NONE */
/* The value as text, as print shows it. write may not be NULL. */
CCN_API CCN_NODISCARD ccn_status ccn_value_write(ccn_value *v, ccn_write_fn write, void *user);
/* A number or boolean, also out of a scalar tensor that is the same on all ranks. i64: booleans and whole
 * numbers only. Errors: CCN_NOT_FOUND if the value is nothing of the kind. */
CCN_API CCN_NODISCARD ccn_status ccn_value_i64(const ccn_value *v, int64_t *out_number);
CCN_API CCN_NODISCARD ccn_status ccn_value_f64(const ccn_value *v, double *out_number);
/* The bytes of a string, NUL-terminated, valid until the value is released; NULL if it is none. out_size may
 * be NULL. */
CCN_API const char *ccn_value_string(const ccn_value *v, size_t *out_size);
/* Members of a list, tuple or bundle; 0 for everything else. */
CCN_API size_t ccn_value_count(const ccn_value *v);
/* Member i. Errors: CCN_NOT_FOUND. */
CCN_API CCN_NODISCARD ccn_status ccn_value_at(ccn_value *v, size_t i, ccn_value **out_value);
/* The tensor that the value is: the same one that the script sees, not a copy. Errors: CCN_NOT_FOUND. */
CCN_API CCN_NODISCARD ccn_status ccn_value_tensor(ccn_value *v, ccn_tensor **out_tensor);
CCN_API void ccn_value_release(ccn_value *v);

/* ---- what shells and editors ask ------------------------------------------------------------------------ */

/* Writes the statements of the session that were carried out, in order, as a script that makes the same
 * session; the mesh stands first. Left out are statements that failed or were interrupted, and expressions
 * that call nothing. */
CCN_API CCN_NODISCARD ccn_status ccn_session_write(ccn_context *c, ccn_write_fn write, void *user);

/* `name` is valid during the call only. */
typedef void (*ccn_name_fn)(const char *name, ccn_kind kind, void *user);
/* Tells fn of each name that the session defines; or, with `of` the name of one of them ("optim", "step"),
 * of what can stand behind its dot: what a module defines, a program's values, methods. Of a name that is
 * unknown: nothing. No order is promised. */
CCN_API CCN_NODISCARD ccn_status ccn_session_names(ccn_context *c, const char *of, ccn_name_fn fn,
                                                   void *user);

/* Writes the graph of a program of the session as text, as checked, with symbolic sizes; `program` is
 * written as in ccn_module_function: "adam", "optim.adam", "adam@zero(gsum)". Errors: CCN_ERROR. */
CCN_API CCN_NODISCARD ccn_status ccn_session_graph(ccn_context *c, const char *program, ccn_write_fn write,
                                                   void *user);

/* Writes the type of the expression `text`: "f32[3] sliced(0) over dp", "a list"; of a program its
 * signature. The expression is evaluated on trial: programs in it store nothing, nothing is printed or
 * written to files. (Functions of the script run, and change the variables that they assign.) Errors:
 * CCN_ERROR, CCN_INCOMPLETE as in ccn_eval. */
CCN_API CCN_NODISCARD ccn_status ccn_session_type(ccn_context *c, const char *name, const char *text,
                                                  size_t size, ccn_write_fn write, void *user);

/* Takes over from *o what may change between calls: watch, nwatch, check_nan, memory_limit, time_limit_ms.
 * Everything else stays as it was when the context was made. */
CCN_API CCN_NODISCARD ccn_status ccn_options_update(ccn_context *c, const ccn_options *o);

/* Writes the text as `ccn fmt` lays it out; formatting that again changes nothing. Errors: CCN_ERROR if it
 * has syntax errors; nothing is written then. */
CCN_API CCN_NODISCARD ccn_status ccn_format(ccn_context *c, const char *name, const char *text, size_t size,
                                            ccn_write_fn write, void *user);

/* A word of the language. All texts are static; those that do not apply are "". */
typedef struct ccn_word {
  size_t size; /* set by the host to sizeof(ccn_word) */
  const char *name;
  const char *kind;   /* "op", "function" (of scripts), "dtype", "keyword", "schedule" (its statements) */
  const char *group;  /* of an op: "elementwise", "collective", ... */
  const char *params; /* "x, dims?, keep?"; ? marks what may be left out */
  const char *dims;   /* of an op: its dims signature, "b* m k+, b* k+ n -> b* m n"; "=": a rule of its own */
  const char *dtypes; /* of an op's operands: "float", "any", ... */
  const char *owed;   /* of an op: which owed values it passes on */
  const char *doc;    /* one line */
  int32_t programs_only;
} ccn_word;
/* Word number i, kind by kind. Errors: CCN_NOT_FOUND past the end. */
CCN_API CCN_NODISCARD ccn_status ccn_word_get(size_t i, ccn_word *out);

/* ---- tensors --------------------------------------------------------------------------------------------
 * A tensor has one dtype, a global shape, and a placement for each mesh axis. Each rank that holds something
 * of it has a piece, a row-major array. Ranks that hold copies of one piece share its memory. */
#define CCN_MAX_DIMS 8

typedef enum ccn_dtype {
  CCN_DTYPE_F64 = 0,
  CCN_DTYPE_F32,
  CCN_DTYPE_F16,
  CCN_DTYPE_BF16,
  CCN_DTYPE_I64,
  CCN_DTYPE_I32,
  CCN_DTYPE_I16,
  CCN_DTYPE_I8,
  CCN_DTYPE_U8,
  CCN_DTYPE_BOOL /* one byte, 0 or 1 */
} ccn_dtype;
CCN_API size_t ccn_dtype_size(ccn_dtype t);      /* bytes; 0 if there is no such dtype */
CCN_API const char *ccn_dtype_name(ccn_dtype t); /* "f32"; NULL if there is no such dtype; static */

typedef struct ccn_tensor_desc {
  size_t size; /* sizeof(ccn_tensor_desc) */
  ccn_dtype dtype;
  int32_t ndim;          /* 0 .. CCN_MAX_DIMS */
  const int64_t *shape;  /* global extents; may be NULL if ndim is 0 */
  const char *placement; /* as in the language: "sliced(0) over tp", "local"; NULL or "": replicated */
} ccn_tensor_desc;

/* A tensor of zeros in the session. Errors: CCN_ERROR if the placement is wrong. May be called from host
 * functions, as may all functions of this section. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_create(ccn_context *c, const ccn_tensor_desc *desc,
                                                   ccn_tensor **out_tensor);
/* A tensor with a copy of the array `data`: the whole value, row-major, of exactly `bytes` bytes. Of a
 * sliced value every rank gets its piece; of one that is local, owed or at one coordinate, every rank that
 * has it gets all. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_copy_in(ccn_context *c, const ccn_tensor_desc *desc,
                                                    const void *data, size_t bytes, ccn_tensor **out_tensor);
/* A tensor in the host's own memory, without a copy. data[i] is the piece of world rank i, row-major,
 * aligned to its dtype; `ndata` is the number of ranks, or 1 for a value that is replicated. Ranks that hold
 * copies of one piece must be given the same pointer; those that hold nothing get NULL. An `update` of the
 * tensor writes into this memory; with read_only 1 it is refused (CCN0226). The host must not write to it
 * while a call runs. release(user), if it is not NULL, is called once, when the memory is not needed any
 * more: at the latest when the context's memory goes, perhaps from within ccn_tensor_release; it may not use
 * the context but for release functions. On failure it is not called. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_borrow(ccn_context *c, const ccn_tensor_desc *desc,
                                                   void *const *data, size_t ndata, int read_only,
                                                   void (*release)(void *user), void *user,
                                                   ccn_tensor **out_tensor);

typedef struct ccn_tensor_info {
  size_t size; /* set by the host to sizeof(ccn_tensor_info) */
  ccn_dtype dtype;
  int32_t ndim;
  int64_t shape[CCN_MAX_DIMS];   /* global */
  int64_t strides[CCN_MAX_DIMS]; /* of the whole value as ccn_tensor_read gives it, in elements */
  uint32_t ranks;
  int32_t borrowed, read_only;
  const char *placement; /* "" if replicated; valid as long as the tensor */
  int32_t in_slices; /* 1: a schedule's `shard` keeps it in slices between calls, whatever its placement */
} ccn_tensor_info;
CCN_API CCN_NODISCARD ccn_status ccn_tensor_info_get(const ccn_tensor *t, ccn_tensor_info *out_info);

/* Copies the whole value, gathered where it is sliced, row-major, to out, which has exactly `bytes` bytes.
 * Errors: CCN_UNSUPPORTED if ranks hold different values (local, owed, at one coordinate): read their
 * pieces. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_read(ccn_tensor *t, void *out, size_t bytes);
/* Replaces the value by the array `data`, as ccn_tensor_copy_in reads it. Errors: CCN_UNSUPPORTED if it is
 * borrowed read-only. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_write(ccn_tensor *t, const void *data, size_t bytes);
/* The same for the piece of one rank, and of those that hold a copy of it. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_write_rank(ccn_tensor *t, uint32_t rank, const void *data,
                                                       size_t bytes);

/* What one rank holds: an array of `extent` that begins at `start` of the whole. */
typedef struct ccn_piece {
  size_t size;      /* set by the host to sizeof(ccn_piece) */
  const void *data; /* valid until the tensor is released or updated; NULL if `bytes` is 0 */
  size_t bytes;
  int32_t ndim;
  int64_t start[CCN_MAX_DIMS], extent[CCN_MAX_DIMS], strides[CCN_MAX_DIMS]; /* in elements */
} ccn_piece;
/* Errors: CCN_NOT_FOUND if there is no such rank, or it holds nothing of the value. */
CCN_API CCN_NODISCARD ccn_status ccn_tensor_piece(const ccn_tensor *t, uint32_t rank, ccn_piece *out_piece);

/* Counts one more owner, for whom there must be one more release; returns t. From any thread that owns it. */
CCN_API ccn_tensor *ccn_tensor_retain(ccn_tensor *t);
CCN_API void ccn_tensor_release(ccn_tensor *t);

/* ---- functions of the host -------------------------------------------------------------------------------- */

/* A function that scripts call: args[0 .. n-1] are its arguments, valid during the call. What it puts into
 * *out_result (NULL: nothing) is the script's afterwards. CCN_ERROR: the script fails with CCN0609 and the
 * text of ccn_host_error; other statuses end the running call with that status. It may use the context for
 * tensors and values (ccn_value_make_...), not for runs, evaluation and calls. */
typedef ccn_status (*ccn_host_fn)(ccn_context *c, ccn_value *const *args, size_t n, ccn_value **out_result,
                                  void *user);
/* Makes `fn` known as `name` in all texts that are run, checked or loaded from now on, and in the session. A
 * definition in a script hides it; a second registration replaces the first. `pure` is 1 if equal arguments
 * give equal results and nothing else happens: such a call may be left out or repeated. `user` must live as
 * long as the context. Errors: CCN_INVALID_ARGUMENT if the name is no name of the language. */
CCN_API CCN_NODISCARD ccn_status ccn_register_function(ccn_context *c, const char *name, ccn_host_fn fn,
                                                       void *user, int pure);
/* In a host function: why it fails. The text is copied. */
CCN_API void ccn_host_error(ccn_context *c, const char *message);

/* ---- ops of the host ------------------------------------------------------------------------------------
 * An op that programs call among their own: a node of the dataflow graph with a type rule. Scripts call it
 * too, as a program of one op. */

/* What is known of an operand or of the result while a program is checked. */
typedef struct ccn_op_type {
  size_t size; /* sizeof(ccn_op_type) as the library was compiled */
  ccn_dtype dtype;
  int32_t ndim;                 /* of the result: 0, not used */
  int64_t extent[CCN_MAX_DIMS]; /* -1 where it is not known yet, or not the host's business */
} ccn_op_type;
/* The op's own rule about dtypes, and about extents that only the result has. *out begins with the dtype of
 * the first operand and extents of -1; dims of the result that stand in no operand are the last ones, and
 * the host sets the extents of all dims up to these (those of the others do not count). CCN_ERROR refuses
 * the operands, with the text of ccn_host_error, as CCN0609; other statuses end the call of the library with
 * that status. It may be asked often, and with extents that are known or not; its answer may not depend on
 * anything but its arguments. */
typedef ccn_status (*ccn_op_type_fn)(ccn_context *c, const ccn_op_type *in, size_t n, ccn_op_type *out,
                                     void *user);

/* What one rank has of an operand or of the result: a row-major array of `extent` that begins at `start` of
 * the whole, whose extents are `shape`. */
typedef struct ccn_op_array {
  size_t size; /* sizeof(ccn_op_array) as the library was compiled */
  ccn_dtype dtype;
  int32_t ndim;
  int64_t shape[CCN_MAX_DIMS], start[CCN_MAX_DIMS], extent[CCN_MAX_DIMS];
  void *data; /* of operands: only to be read; valid during the call */
  size_t bytes;
} ccn_op_array;
/* Fills `out` from `in` for world rank `rank`: called once for each different piece of the result, in order
 * of ranks, not for pieces without elements. Where one operand is sliced along a dim, each operand's piece
 * is cut alike along every dim of the same letter. A dim of extent 1 that broadcasts, or one that is missing,
 * is the host's to repeat. The result over a dim marked `+` is this piece's part of a sum; over no elements
 * it is 0. CCN_ERROR: the program fails with CCN0609 and the text of ccn_host_error;
 * other statuses end the running call with that status. It may use the context as a host function may. */
typedef ccn_status (*ccn_op_fn)(ccn_context *c, uint32_t rank, const ccn_op_array *in, size_t n,
                                const ccn_op_array *out, void *user);

typedef struct ccn_op {
  size_t size; /* sizeof(ccn_op) */
  const char *name;
  /* The dims signature, as those of the language's ops: "e*, e* -> e*" (aligned from the right, broadcast),
   * "b* m k+, b* k+ n -> b* m n", "r.. c! -> r.. c". A letter is one dim; `*` behind it stands for any
   * number of dims aligned from the right, `..` for any number as they are, one such group in an operand;
   * `+` marks a dim that is summed over, `!` one that may not be cut. 1 to 8 operands, one result. */
  const char *dims;
  ccn_op_fn eval;
  ccn_op_type_fn type; /* NULL: all operands have one dtype, which is the result's */
  void *user;          /* for both; must live as long as the context */
  int32_t pure;        /* 0: it is executed even if nobody needs its result */
} ccn_op;
/* Makes an op known in all texts that are run, checked or loaded from now on, and in the session. A
 * definition in a script hides it; a second registration replaces the first. An operand that owes a reduction
 * is CCN0210; schedules do not move the op. *o is copied. Errors: CCN_INVALID_ARGUMENT if the name is no name
 * of the language, or belongs to one of its own functions or ops, or if the signature cannot be read. */
CCN_API CCN_NODISCARD ccn_status ccn_register_op(ccn_context *c, const ccn_op *o);

/* Values of the session; in host functions, of the script that runs. ccn_value_make_tensor gives the tensor
 * itself. */
CCN_API CCN_NODISCARD ccn_status ccn_value_make_i64(ccn_context *c, int64_t x, ccn_value **out_value);
CCN_API CCN_NODISCARD ccn_status ccn_value_make_f64(ccn_context *c, double x, ccn_value **out_value);
CCN_API CCN_NODISCARD ccn_status ccn_value_make_bool(ccn_context *c, int x, ccn_value **out_value);
CCN_API CCN_NODISCARD ccn_status ccn_value_make_string(ccn_context *c, const char *text, size_t size,
                                                       ccn_value **out_value);
CCN_API CCN_NODISCARD ccn_status ccn_value_make_tensor(ccn_tensor *t, ccn_value **out_value);

/* ---- modules and calls ---------------------------------------------------------------------------------- */
typedef struct ccn_module ccn_module;
typedef struct ccn_function ccn_function;
typedef struct ccn_call ccn_call;

/* Parses, checks and executes the text as a module of the session: a scope of its own, which is not one of
 * the session's names, but the same mesh and the same imported modules. If there is a mesh it must be the
 * session's, as in ccn_eval. */
CCN_API CCN_NODISCARD ccn_status ccn_module_load(ccn_context *c, const char *name, const char *text,
                                                 size_t size, ccn_module **out_module);
CCN_API void ccn_module_release(ccn_module *m); /* calls made of its functions keep what they need */

/* A program or function of the module by its name: "adam"; one that is a member of an imported module:
 * "optim.adam"; a program with schedules: "adam@zero", or, for a generic schedule, with handles of the
 * program's values: "adam@zero(gsum)", which is `adam with zero(adam.gsum)`. The same name gives the same
 * function. *out_function belongs to the module. Errors: CCN_NOT_FOUND (with diagnostics), CCN_ERROR if the
 * schedule is refused. */
CCN_API CCN_NODISCARD ccn_status ccn_module_function(ccn_module *m, const char *name,
                                                     const ccn_function **out_function);

/* A parameter or result. For those of a `fn`, and for lists and tuples, the type is not known before the
 * call. */
typedef struct ccn_param {
  size_t size;                    /* set by the host to sizeof(ccn_param) */
  const char *name;               /* of a result: what the program calls it, or "" */
  const char *type;               /* as declared, "f32[N] local"; "" if it is not */
  int32_t dtype;                  /* a ccn_dtype, or -1 if the type is not known */
  int32_t ndim;                   /* or -1 if it is not known, or a bundle */
  const char *dims[CCN_MAX_DIMS]; /* "N", "2 * N + 1", "16" */
  const char *placement;          /* "sliced(0) over dp"; "" if replicated */
  int32_t updated;                /* the program updates it: pass a tensor that nobody else passes */
  int32_t optional;               /* it has a default */
} ccn_param;
/* All texts live as long as the module. Of NULL: NULL, 0, 0, -1. Errors: CCN_NOT_FOUND if there is no parameter
 * or result i. */
CCN_API const char *ccn_function_name(const ccn_function *f);
CCN_API size_t ccn_function_params(const ccn_function *f);
CCN_API size_t ccn_function_results(const ccn_function *f); /* of a `fn`: 0, not known */
CCN_API CCN_NODISCARD ccn_status ccn_function_param(const ccn_function *f, size_t i, ccn_param *out_param);
CCN_API CCN_NODISCARD ccn_status ccn_function_result(const ccn_function *f, size_t i, ccn_param *out_param);
CCN_API int ccn_function_param_find(const ccn_function *f, const char *name); /* its number, or -1 */

/* A block of arguments for a function, to be used again and again. It keeps its module alive. */
CCN_API CCN_NODISCARD ccn_status ccn_call_create(const ccn_function *f, ccn_call **out_call);
CCN_API void ccn_call_release(ccn_call *call);
/* Forgets arguments and results. */
CCN_API CCN_NODISCARD ccn_status ccn_call_reset(ccn_call *call);

/* Sets argument i (see ccn_function_param_find); it stays set for later runs. Tensors are not copied; the
 * call holds them. ccn_call_set_tensors gives a list of them, for a bundle or a list. Errors: CCN_NOT_FOUND
 * if there is no such parameter; CCN_ERROR if a tensor has another dtype or number of dims than the
 * parameter; CCN_INVALID_ARGUMENT for a tensor of another context or of a session that was reset. */
CCN_API CCN_NODISCARD ccn_status ccn_call_set_i64(ccn_call *call, size_t i, int64_t x);
CCN_API CCN_NODISCARD ccn_status ccn_call_set_f64(ccn_call *call, size_t i, double x);
CCN_API CCN_NODISCARD ccn_status ccn_call_set_bool(ccn_call *call, size_t i, int x);
CCN_API CCN_NODISCARD ccn_status ccn_call_set_string(ccn_call *call, size_t i, const char *text, size_t size);
CCN_API CCN_NODISCARD ccn_status ccn_call_set_tensor(ccn_call *call, size_t i, ccn_tensor *t);
CCN_API CCN_NODISCARD ccn_status ccn_call_set_tensors(ccn_call *call, size_t i, ccn_tensor *const *t,
                                                      size_t n);
CCN_API CCN_NODISCARD ccn_status ccn_call_set_value(ccn_call *call, size_t i, ccn_value *v);

/* Runs the function. Tensors that it updates have their new value afterwards; results are new tensors.
 * Errors: CCN_ERROR: nothing was updated by the program that failed, and there are no results. */
CCN_API CCN_NODISCARD ccn_status ccn_call_run(ccn_call *call);
/* Results of the last run: 0 before it, after an error, and if the function returns nothing. */
CCN_API size_t ccn_call_results(const ccn_call *call);
/* Result i, as a tensor or as a value. Errors: CCN_NOT_FOUND if there is none, or if it is no tensor. */
CCN_API CCN_NODISCARD ccn_status ccn_call_result(ccn_call *call, size_t i, ccn_tensor **out_tensor);
CCN_API CCN_NODISCARD ccn_status ccn_call_result_value(ccn_call *call, size_t i, ccn_value **out_value);

/* Writes what the context has used, as one JSON object: memory_live, memory_peak, memory_limit (bytes; the
 * limit 0: none), calls (of programs) and ops (that were executed, each counted once for all ranks) since
 * the context was made; and, of the last ccn_run, or of the session if that was used last: resident (for
 * each rank the bytes of tensors that are in use) and traffic, an array of {program, schedule (or null), name,
 * op, calls, sent}: for each collective the bytes that each rank has sent, as a direct exchange sends them
 * (an all-reduce of n bytes over r ranks: 2(r - 1)/r n). More members may come. Errors:
 * CCN_INVALID_ARGUMENT if write is NULL. */
CCN_API CCN_NODISCARD ccn_status ccn_report_write(ccn_context *c, ccn_write_fn write, void *user);

/* ---- compiled kernels ----------------------------------------------------------------------------------
 * Kernels that were compiled for this machine are kept as files in a folder: `folder`, or, if it is NULL, "ccn"
 * below $XDG_CACHE_HOME or ~/.cache. Entries that are damaged, of somebody else or of another version are made
 * anew when they are wanted. These functions need no context; any thread may call them. Errors: CCN_NOT_FOUND
 * if there is no such folder to name. */
typedef struct ccn_cache_entry {
  size_t size; /* sizeof(ccn_cache_entry) as the library was compiled; it grows only at the end */
  const char *name;
  int64_t bytes, age; /* seconds since it was last used */
  int32_t good;       /* 0: it would not be used; 1 if it was not verified */
} ccn_cache_entry;
/* `entry` is valid during the call only. */
typedef void (*ccn_cache_fn)(const ccn_cache_entry *entry, void *user);
/* Writes the path of the folder, which may not be there yet. */
CCN_API CCN_NODISCARD ccn_status ccn_cache_folder(const char *folder, ccn_write_fn write, void *user);
/* Tells fn of each entry, in no order. `verify` 1: reads each whole. */
CCN_API CCN_NODISCARD ccn_status ccn_cache_list(const char *folder, int verify, ccn_cache_fn fn, void *user);
/* Removes all entries, or with `bad_only` 1 those that would not be used. out_removed may be NULL. */
CCN_API CCN_NODISCARD ccn_status ccn_cache_clear(const char *folder, int bad_only, size_t *out_removed);

/* ---- diagnostics ------------------------------------------------------------------------------------------
 * Of the last ccn_run, ccn_check, ccn_dump, ccn_graph_read, ccn_eval, ccn_module_load, ccn_module_function,
 * ccn_call_run, or any call that answered CCN_ERROR. All texts are valid until the next of these. */
typedef struct ccn_note {
  const char *text;
  const char *file;                            /* NULL if the note has no place */
  uint32_t line, column, end_line, end_column; /* from 1; end is exclusive */
} ccn_note;

typedef struct ccn_diagnostic {
  size_t size; /* set by the host to sizeof(ccn_diagnostic) */
  ccn_severity severity;
  const char *code; /* "CCN0203" */
  const char *message;
  ccn_note primary; /* its text is the label */
  const ccn_note *notes;
  size_t nnotes;
  const char *hint; /* never NULL, may be "" */
} ccn_diagnostic;

CCN_API size_t ccn_diagnostic_count(const ccn_context *c);
CCN_API CCN_NODISCARD ccn_status ccn_diagnostic_get(ccn_context *c, size_t i, ccn_diagnostic *out);
/* All of them as text: for people (colour: 0 or 1), or as JSON, one object a line. */
CCN_API void ccn_diagnostics_write(ccn_context *c, int colour, ccn_write_fn write, void *user);
CCN_API void ccn_diagnostics_write_json(ccn_context *c, ccn_write_fn write, void *user);

/* ---- collective algorithms ------------------------------------------------------------------------------
 * What each rank does, step by step, for a collective: docs/algorithms.md. */
#define CCN_ALGORITHM_RANKS 1024
#define CCN_ALGORITHM_CHUNKS 64

typedef struct ccn_algorithm_desc {
  size_t size;            /* sizeof(ccn_algorithm_desc) */
  const char *collective; /* "allreduce", "reducescatter", "alltoall", ... */
  const char *algorithm;  /* "ring", ...: ccn_algorithm_list */
  uint32_t ranks;         /* 1 .. CCN_ALGORITHM_RANKS */
  uint32_t root;          /* of reduce, gather, broadcast, scatter */
  uint32_t chunks;        /* of each slice, up to CCN_ALGORITHM_CHUNKS; 0: 1 */
  uint32_t group;         /* of "hierarchical": neighbours a group; divides the ranks */
  int32_t by;             /* of shift and permute: around by so many ranks */
} ccn_algorithm_desc;

/* Algorithm number i that CCN can make: its name, in *out_about (which may be NULL) one line on it. NULL past the
 * end. Static. */
CCN_API const char *ccn_algorithm_list(size_t i, const char **out_about);
/* Makes an algorithm, validates it, and writes it: format "text" (reads back), "json" (the same as one object), or
 * "table" (for people). Errors: CCN_ERROR with CCN0501 if there is no such collective or algorithm, or the
 * algorithm does not do the collective; CCN_INVALID_ARGUMENT. */
CCN_API CCN_NODISCARD ccn_status ccn_algorithm_write(ccn_context *c, const ccn_algorithm_desc *desc,
                                                     const char *format, ccn_write_fn write, void *user);
/* Reads an algorithm, as text or JSON, and validates it: every result has each contribution once in the declared
 * order, it ends with the room that its connections have, no two accesses conflict. Errors: CCN_ERROR with
 * CCN0501, whose message says what is wrong first. */
CCN_API CCN_NODISCARD ccn_status ccn_algorithm_check(ccn_context *c, const char *text, size_t size);

/* ---- plans and what they cost ---------------------------------------------------------------------------
 * A script can be run with its programs recorded: tensors have types and no elements, and each program that it calls
 * becomes a plan with the cost of its steps on a machine, in virtual time. docs/plans.md has all of it. */
#define CCN_PLAN_RANKS 65536 /* of a context with backend "sim" */

typedef struct ccn_plan_desc {
  size_t size;         /* sizeof(ccn_plan_desc) */
  const char *program; /* only this one, as in ccn_module_function; NULL: all that the script calls */
  /* If nsizes is not 0 the script is not run: one call of `program`, with sizes as "N=1000", "len(ws)=2", and
   * of a list of tensors their shapes, "ps=1000,64x32". */
  const char *const *sizes;
  size_t nsizes;
  const char *machine;      /* a name of ccn_machine_list; NULL: "h200" */
  const char *machine_text; /* or a machine as text; NUL-terminated */
  /* A name of ccn_algorithm_list, for all collectives that it does; NULL: as schedules say. */
  const char *algorithm;
  ccn_write_fn trace; /* gets Chrome trace events, one JSON array; NULL: nobody */
  void *trace_user;
} ccn_plan_desc;

/* Checks the script, runs it with its programs recorded, and writes what they cost: format "table" (for people), "json"
 * (an object a line, one for each program and its sizes), or "time" (the virtual time of each program and of the whole
 * script, with a picture; what the script prints goes to the host's `print`, with ? for what it does not know). The
 * number of ranks is the context's. desc may be NULL. Errors: CCN_ERROR, with CCN0510 where the script decides by
 * elements of a tensor, CCN0501 for an unknown machine or algorithm; CCN_INVALID_ARGUMENT. */
CCN_API CCN_NODISCARD ccn_status ccn_plan_write(ccn_context *c, const char *name, const char *text,
                                                size_t size, const ccn_plan_desc *desc, const char *format,
                                                ccn_write_fn write, void *user);
/* What a search for schedules is told. */
typedef struct ccn_tune_desc {
  size_t size; /* sizeof(ccn_tune_desc) */
  const ccn_plan_desc
    *plan;           /* program, sizes and machine as for ccn_plan_write; NULL: all programs, on h200 */
  int reassociate;   /* not 0: algorithms too that add in another order, which changes bits of floats */
  const char *cache; /* folder where results are kept; NULL: the user's; "": nothing is kept */
  void (*progress)(size_t seen,
                   void *user); /* called now and then with the graphs seen so far; NULL: nobody */
  void *progress_user;
} ccn_tune_desc;

/* Looks for the schedule with which each program that the script calls (or the one of desc->plan) takes the least time on
 * a machine: every graph that splitting, reordering, fusing, sharding, overlapping, chunks and algorithms lead to, each
 * as large as it is legal, priced by the cost model. The program alone is one of them. Schedules that the script applies
 * do not count. Format "schedule": the best one, for adam as `schedule adam_tuned for adam`, behind comments that say
 * what was seen (comments only where nothing is faster than the program alone); "explain":
 * with the plans of the best one, of the next best and of the program alone in comments; "json": one object a line, with
 * all that was seen. Errors as for ccn_plan_write. docs/planner.md says what is tried. Since 0.1. */
CCN_API CCN_NODISCARD ccn_status ccn_tune_write(ccn_context *c, const char *name, const char *text,
                                                size_t size, const ccn_tune_desc *desc, const char *format,
                                                ccn_write_fn write, void *user);
/* Machine number i that CCN knows: its name, in *out_text (which may be NULL) its text. NULL past the end. Static. */
CCN_API const char *ccn_machine_list(size_t i, const char **out_text);
/* Measures this machine for some tenths of a second and writes it as text. */
CCN_API CCN_NODISCARD ccn_status ccn_machine_measure(ccn_context *c, ccn_write_fn write, void *user);

/* The page that explains a code ("CCN0203", "203"), Markdown, static; NULL if there is none. */
CCN_API const char *ccn_explain(const char *code);
/* Code number i in order ("CCN0001"), with its one-line title; NULL past the end. Static. */
CCN_API const char *ccn_explain_list(size_t i, const char **out_title);

CCN_API int ccn_version(void);            /* CCN_VERSION of the library */
CCN_API const char *ccn_build_info(void); /* version, compiler, parts built in; static */
/* Part number i that a library may have or lack: its name ("llvm"), in *out_about what it is for, in *out_built
 * whether this library has it, in *out_cure how to get it (never NULL). NULL past the end. Static. Each of the
 * out-parameters may be NULL. */
CCN_API const char *ccn_feature_list(size_t i, int *out_built, const char **out_about, const char **out_cure);
CCN_API const char *ccn_status_name(ccn_status s); /* "ok", "error", ...; static */

#ifdef __cplusplus
}
#endif
#endif
