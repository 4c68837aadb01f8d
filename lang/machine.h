/* machine.h: a machine: how fast ranks compute, read memory and talk to one another.
 *
 * Place in the pipeline: beside plans. Read from text (machines/NAME.txt, or a file of the user); the cost
 * model and the simulator take their numbers from it. Times in seconds, sizes in bytes, rates in bytes or
 * operations a second, all of one rank and, for links, of one direction.
 *
 * Links are levels: the first joins groups of `ranks` neighbours in world order, the next larger groups, the
 * last everybody. Two ranks talk over the first level whose group both are in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_MACHINE_H
#define CCN_LANG_MACHINE_H

#include "op.h"

#define CCN__MAX_LINKS 4

typedef struct ccn__link {
  const char *name;
  uint32_t ranks; /* neighbours that it joins; 0: all */
  double latency, bandwidth;
  bool shared; /* the bandwidth is that of the group one level below together (a node's network card) */
  bool direct; /* ranks can load from and store to one another's memory */
} ccn__link;

typedef struct ccn__machine {
  const char *name, *about;
  double memory, bandwidth;       /* bytes; bytes a second */
  double flops[CCN__DTYPE_COUNT]; /* of matmul and conv2d; operations a second */
  double launch;                  /* before each step */
  uint32_t nlinks;
  ccn__link link[CCN__MAX_LINKS];
} ccn__machine;

/* The level over which two different ranks talk. */
uint32_t ccn__machine_level(const ccn__machine *m, uint32_t x, uint32_t y);

/* Takes anything: NULL and *out_error, a text in the arena with a line, if it describes no machine. */
ccn__machine *ccn__machine_read(ccn__arena *a, const char *text, size_t size, const char **out_error);
/* This machine, by measurement; takes some tenths of a second. Memory of the arena: 64 MiB. */
ccn__machine *ccn__machine_measure(ccn__arena *a);
/* The same as text; reads back. */
void ccn__machine_print(const ccn__machine *m, ccn__text *out);

#endif
