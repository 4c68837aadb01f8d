/* commands.h: what each command does once its words are read. Each returns the exit status.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_COMMANDS_H
#define CCN_REPL_COMMANDS_H

#include "options.h"

int command_run(const arguments *a);
int command_check(const arguments *a);
int command_dump(const arguments *a);
int command_explain(const arguments *a);
int command_version(const arguments *a);

#endif
