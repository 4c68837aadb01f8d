/* settings.h: `:set` and `:watch`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_SETTINGS_H
#define CCN_REPL_SETTINGS_H

#include "shell.h"

void settings_set(shell *s, const char *arg);   /* "NAME VALUE"; "": shows all */
void settings_watch(shell *s, const char *arg); /* names with blanks between them, "off"; "": shows them */

#endif
