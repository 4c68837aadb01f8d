/* ccn.h: the public interface of CCN, a language in which computation and communication are statements.
 *
 * This is the whole promise: what is not here is not API. It reads as C11 and as C++. The library never exits,
 * aborts, prints, installs signal handlers or keeps global mutable state. This is a first form (0.1): context, load
 * from memory, run, diagnostics, dump, explain; it will grow tensors and call objects.
 *
 * Threads: a context is used by one thread at a time; two contexts share nothing.
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
  CCN_ERROR,             /* the program is wrong or failed while it ran; diagnostics say where and why */
  CCN_INVALID_ARGUMENT,  /* the call itself was wrong (NULL, a size, an unknown stage) */
  CCN_NOT_FOUND,
  CCN_OUT_OF_MEMORY,
  CCN_INTERRUPTED,
  CCN_UNSUPPORTED,
  CCN_INTERNAL           /* a defect of CCN */
} ccn_status;

typedef enum ccn_severity { CCN_SEVERITY_ERROR = 1, CCN_SEVERITY_WARNING = 2 } ccn_severity;

/* The host's allocator, one function as in Lua: new_size 0 frees `pointer` (which may be NULL) and returns NULL;
 * pointer NULL allocates; otherwise never called (CCN does not reallocate). Must return memory aligned to `align`
 * (a power of two, at most 64) or NULL. */
typedef void *(*ccn_alloc_fn)(void *pointer, size_t old_size, size_t new_size, size_t align, void *user);

/* Receives text; `text` is valid during the call only and not NUL-terminated. */
typedef void (*ccn_write_fn)(const char *text, size_t size, void *user);

/* Reads the file `path` whole: on success sets *out_data to memory that the host keeps valid until it is passed to
 * `ccn_file_free_fn`, and returns 0; otherwise returns an errno value. */
typedef int (*ccn_file_read_fn)(const char *path, void **out_data, size_t *out_size, void *user);
typedef void (*ccn_file_free_fn)(void *data, size_t size, void *user);
/* Replaces the file `path`; returns 0 or an errno value. */
typedef int (*ccn_file_write_fn)(const char *path, const void *data, size_t size, void *user);

/* Set by ccn_options_init; grows only at its end. */
typedef struct ccn_options {
  size_t size;          /* sizeof(ccn_options) as the host was compiled */
  ccn_alloc_fn alloc;   /* NULL: malloc and free */
  void *alloc_user;
  size_t memory_limit;  /* bytes; 0: none. Beyond it calls return CCN_OUT_OF_MEMORY */
  int32_t ranks;        /* simulated ranks, 1..64; 0: the product of the mesh's fixed axes */
  ccn_write_fn print;   /* what scripts print; NULL: dropped */
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
  int32_t check_nan;    /* 1: the first op whose result holds NaN where its operands have none is CCN0607 */
} ccn_options;

typedef struct ccn_context ccn_context;

/* Fills *o with defaults. `size` is sizeof(ccn_options). O may not be NULL. */
CCN_API void ccn_options_init(ccn_options *o, size_t size);

/* Makes a context. `o` may be NULL (defaults); what it points to is copied, except the user pointers. On failure
 * *out_context is NULL and nothing is left. Errors: CCN_INVALID_ARGUMENT (ranks outside 0..64), CCN_OUT_OF_MEMORY. */
CCN_API CCN_NODISCARD ccn_status ccn_context_create(const ccn_options *o, ccn_context **out_context);
CCN_API void ccn_context_free(ccn_context *c); /* NULL is allowed; everything made from it dies with it */

/* Runs the script `text` (size bytes; need not be NUL-terminated) as the main script: parse, check all of it, then
 * execute. `name` is shown in messages and is what `import` of relative paths and ccn_file_read_fn start from.
 * Errors: CCN_ERROR with diagnostics; nothing is executed if the check finds errors. */
CCN_API CCN_NODISCARD ccn_status ccn_run(ccn_context *c, const char *name, const char *text, size_t size);
/* Parse and check only. */
CCN_API CCN_NODISCARD ccn_status ccn_check(ccn_context *c, const char *name, const char *text, size_t size);

/* Writes a stage of every program of the script as text: stage "ast", "graph", or "scheduled" (of each `P with s`).
 * Programs are dumped as checked,
 * with symbolic sizes. Errors: CCN_INVALID_ARGUMENT for an unknown stage (the message lists them). */
CCN_API CCN_NODISCARD ccn_status ccn_dump(ccn_context *c, const char *name, const char *text, size_t size,
                                          const char *stage, ccn_write_fn write, void *user);

/* Reads graph text (as ccn_dump with "graph" writes it), verifies it, and writes it again. Errors: CCN_ERROR. */
CCN_API CCN_NODISCARD ccn_status ccn_graph_read(ccn_context *c, const char *name, const char *text, size_t size,
                                                ccn_write_fn write, void *user);

/* Ends the running statement with CCN_INTERRUPTED as soon as it looks. From any thread or a signal handler. */
CCN_API void ccn_interrupt(ccn_context *c);

/* ---- diagnostics: of the last call on this context; valid until the next call ---- */
typedef struct ccn_note {
  const char *text;
  const char *file; /* NULL if the note has no place */
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

/* The page that explains a code ("CCN0203", "203"), Markdown, static; NULL if there is none. */
CCN_API const char *ccn_explain(const char *code);
/* Code number i in order ("CCN0001"), with its one-line title; NULL past the end. Static. */
CCN_API const char *ccn_explain_list(size_t i, const char **out_title);

CCN_API int ccn_version(void);             /* CCN_VERSION of the library */
CCN_API const char *ccn_build_info(void);  /* version, compiler, parts built in; static */
CCN_API const char *ccn_status_name(ccn_status s); /* "ok", "error", ...; static */

#ifdef __cplusplus
}
#endif
#endif
