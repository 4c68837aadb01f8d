/* plugin.c: the shared module that holds LLVM: from a kernel to an object file in memory.
 *
 * One context a job, none shared; nothing is initialised but LLVM's own tables of targets, once. LLVM reports
 * what is wrong through a handler of the context: without one it would end the process.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* strndup */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "emit.h"

/* ---- a job --------------------------------------------------------------------------------------------- */

typedef struct job {
  ccn__emit e;
  LLVMTargetMachineRef machine;
  char *why;
  size_t nwhy;
  bool failed;
} job;

static bool fail(job *j, const char *what, const char *text) {
  if (!j->failed) (void)snprintf(j->why, j->nwhy, "%s: %s", what, text ? text : "no reason given");
  j->failed = true;
  return false;
}

/* Remarks come here too; only errors count. */
static void on_diagnostic(LLVMDiagnosticInfoRef d, void *user) {
  if (LLVMGetDiagInfoSeverity(d) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(d);
  (void)fail(user, "LLVM", text);
  LLVMDisposeMessage(text);
}

static pthread_once_t targets_once = PTHREAD_ONCE_INIT;
static void init_targets(void) {
#ifdef CCN__LLVM_X86
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
#endif
#ifdef CCN__LLVM_AARCH64
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
#endif
}

static bool make_machine(job *j, const ccn__jit_target *t) {
  LLVMTargetRef target = NULL;
  char *text = NULL;
  (void)pthread_once(&targets_once, init_targets);
  if (LLVMGetTargetFromTriple(t->triple, &target, &text)) {
    (void)fail(j, t->triple, text);
    LLVMDisposeMessage(text);
    return false;
  }
  j->machine = LLVMCreateTargetMachine(target, t->triple, t->cpu, t->features, LLVMCodeGenLevelDefault,
                                       LLVMRelocPIC, LLVMCodeModelDefault);
  return j->machine || fail(j, t->cpu, "no such machine");
}

static void open_context(job *j) {
  ccn__emit *e = &j->e;
  const LLVMContextRef c = e->context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(c, on_diagnostic, j);
  LLVMContextSetDiscardValueNames(c, 1);
  e->module = LLVMModuleCreateWithNameInContext("kernel", c);
  e->b = LLVMCreateBuilderInContext(c);
  e->i1 = LLVMInt1TypeInContext(c);
  e->i8 = LLVMInt8TypeInContext(c);
  e->i16 = LLVMInt16TypeInContext(c);
  e->i32 = LLVMInt32TypeInContext(c);
  e->i64 = LLVMInt64TypeInContext(c);
  e->f16 = LLVMHalfTypeInContext(c);
  e->f32 = LLVMFloatTypeInContext(c);
  e->f64 = LLVMDoubleTypeInContext(c);
  e->ptr = LLVMPointerTypeInContext(c, 0);
}

static bool set_layout(job *j, const ccn__jit_target *t) {
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(j->machine);
  LLVMSetModuleDataLayout(j->e.module, layout);
  LLVMSetTarget(j->e.module, t->triple);
  LLVMDisposeTargetData(layout);
  return true;
}

static bool emit(job *j) {
  ccn__emit *e = &j->e;
  for (uint32_t i = 0; i < e->k->loops.n; i++) {
    const size_t vals = e->k->loops.at[i].vals.n + 1u, stores = e->k->loops.at[i].stores.n + 1u;
    const size_t n = 4 * vals + stores + CCN__KERN_REDS + CCN__KERN_UNROLL * (vals + stores);
    ccn__v *room = calloc(n, sizeof *room);
    if (!room) return fail(j, "emit", "out of memory");
    e->once = room;
    e->row = e->once + vals;
    e->elem = e->row + vals;
    e->base = e->elem + vals;
    e->store_base = e->base + vals;
    e->red_base = e->store_base + stores;
    e->peer_base = e->red_base + CCN__KERN_REDS;
    e->store_peer = e->peer_base + CCN__KERN_UNROLL * vals;
    ccn__e_function(e, i);
    free(room);
  }
  char *text = NULL;
  const LLVMBool bad = LLVMVerifyModule(e->module, LLVMReturnStatusAction, &text);
  if (bad) (void)fail(j, "the emitter made wrong code", text);
  LLVMDisposeMessage(text);
  return !bad;
}

static bool optimise(job *j) {
  const LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  const LLVMErrorRef err = LLVMRunPasses(j->e.module, "function(early-cse)", j->machine, o);
  LLVMDisposePassBuilderOptions(o);
  if (!err) return true;
  char *text = LLVMGetErrorMessage(err);
  (void)fail(j, "passes", text);
  LLVMDisposeErrorMessage(text);
  return false;
}

static bool begin(job *j, const ccn__kern *k, const ccn__jit_target *t, char *why, size_t nwhy) {
  memset(j, 0, sizeof *j);
  j->why = why;
  j->nwhy = nwhy;
  j->e.k = k;
  j->e.target = t;
  if (!make_machine(j, t)) return false;
  open_context(j);
  return set_layout(j, t) && emit(j) && optimise(j) && !j->failed;
}

static void end(job *j) {
  if (j->e.b) LLVMDisposeBuilder(j->e.b);
  if (j->e.module) LLVMDisposeModule(j->e.module);
  if (j->machine) LLVMDisposeTargetMachine(j->machine);
  if (j->e.context) LLVMContextDispose(j->e.context);
}

static bool to_memory(job *j, LLVMCodeGenFileType type, LLVMMemoryBufferRef *out) {
  char *text = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(j->machine, j->e.module, type, &text, out)) {
    (void)fail(j, "code generation", text);
    LLVMDisposeMessage(text);
    return false;
  }
  return !j->failed;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static int compile(const ccn__kern *k, const ccn__jit_target *t, void **out_object, size_t *out_size,
                   char *why, size_t nwhy) {
  job j;
  LLVMMemoryBufferRef buffer = NULL;
  bool good = begin(&j, k, t, why, nwhy) && to_memory(&j, LLVMObjectFile, &buffer);
  *out_object = NULL;
  *out_size = 0;
  if (good) {
    *out_size = LLVMGetBufferSize(buffer);
    *out_object = malloc(*out_size + 1);
    good = *out_object != NULL || fail(&j, "emit", "out of memory");
    if (good) memcpy(*out_object, LLVMGetBufferStart(buffer), *out_size);
  }
  if (buffer) LLVMDisposeMemoryBuffer(buffer);
  end(&j);
  return good ? 0 : 1;
}

static int text(const ccn__kern *k, const ccn__jit_target *t, int assembly, char **out_text, char *why,
                size_t nwhy) {
  job j;
  LLVMMemoryBufferRef buffer = NULL;
  *out_text = NULL;
  bool good = begin(&j, k, t, why, nwhy);
  if (good && !assembly) {
    char *ir = LLVMPrintModuleToString(j.e.module);
    *out_text = strdup(ir);
    LLVMDisposeMessage(ir);
  } else if (good && to_memory(&j, LLVMAssemblyFile, &buffer)) {
    *out_text = strndup(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  }
  if (buffer) LLVMDisposeMemoryBuffer(buffer);
  end(&j);
  return *out_text ? 0 : 1;
}

static const ccn__jit_plugin table = {
  .abi = CCN__JIT_ABI, .version = CCN__LLVM_VERSION, .compile = compile, .text = text, .release = free};

__attribute__((visibility("default"))) ccn__jit_plugin_fn ccn__jit_plugin_table;
const ccn__jit_plugin *ccn__jit_plugin_table(uint32_t abi) { return abi == CCN__JIT_ABI ? &table : NULL; }
