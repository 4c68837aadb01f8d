/* agenda.h: what is due in virtual time, earliest first: a binary heap. Of equal times the lower `who` comes first, then
 * the lower `part`, so that a simulation does not depend on the order in which things were put on it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_BACKENDS_SIM_AGENDA_H
#define CCN_BACKENDS_SIM_AGENDA_H

#include "base.h"

typedef struct ccn__due {
  double at;          /* seconds */
  uint32_t who, part; /* a channel and 0; a rank and its stream */
} ccn__due;

typedef CCN__VEC(ccn__due) ccn__agenda;

void ccn__agenda_add(ccn__arena *a, ccn__agenda *g, ccn__due x);
ccn__due ccn__agenda_take(ccn__agenda *g); /* which is not empty */

#endif
