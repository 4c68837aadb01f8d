/* compat.h: LLVM's C API, versions 19 to 22, and all differences between them. The only file that asks for a
 * version.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_JIT_COMPAT_H
#define CCN_JIT_COMPAT_H

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#if LLVM_VERSION_MAJOR < 19
#error "CCN needs LLVM 19 or newer"
#endif

/* Text of the version that this was compiled with; part of the key in the code cache. */
#define CCN__LLVM_VERSION LLVM_VERSION_STRING

#endif
