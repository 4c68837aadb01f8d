/* diff.h: what changed between two graphs, told by nodes: a text in which nodes have names instead of
 * numbers, and a unified diff of two such texts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_DIFF_H
#define CCN_REPL_DIFF_H

#include <stdbool.h>
#include <stddef.h>

/* Prints on stdout how graph text `b` differs from `a` (as ccn_dump and ccn_passes give it); nothing if
 * the nodes are the same. The names head the diff. False: memory ended. */
bool diff_graphs(const char *a_name, const char *a, size_t a_size, const char *b_name, const char *b,
                 size_t b_size, bool colour);

#endif
