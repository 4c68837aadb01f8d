/* machine_measure.c: this machine by measurement: what one rank that is a thread gets of its memory and its
 * core. Ranks are threads of one process, so their link is the memory, and a message is a copy that has been
 * waited for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"
#include "runtime.h"

#define USUAL_MEMORY 4e9 /* plain C cannot ask how much there is: edit the text */
enum { WORDS = 1 << 22, TRIES = 5, LANES = 32, ROUNDS = 1 << 18 };

static double seconds_since(uint64_t start) {
  const double s = (double)(ccn__now_ns() - start) * 1e-9;
  return s > 1e-9 ? s : 1e-9;
}

/* Bytes a second of y = a x + y: three words each. */
static double stream(double *x, double *y) {
  double best = 0;
  for (int k = 0; k < TRIES; k++) {
    const uint64_t start = ccn__now_ns();
    for (size_t i = 0; i < WORDS; i++) y[i] = 0.5 * x[i] + y[i];
    const double rate = 3.0 * sizeof *x * WORDS / seconds_since(start);
    if (rate > best) best = rate;
  }
  return best;
}

static double copying(double *x, double *y) {
  double best = 0;
  for (int k = 0; k < TRIES; k++) {
    const uint64_t start = ccn__now_ns();
    memcpy(y, x, sizeof *x * WORDS);
    const double rate = 1.0 * sizeof *x * WORDS / seconds_since(start);
    if (rate > best) best = rate;
  }
  return best;
}

static double arithmetic(volatile float *sink) {
  float v[LANES];
  double best = 0;
  for (int l = 0; l < LANES; l++) v[l] = (float)l;
  for (int k = 0; k < TRIES; k++) {
    const uint64_t start = ccn__now_ns();
    for (int i = 0; i < ROUNDS; i++)
      for (int l = 0; l < LANES; l++) v[l] = v[l] * 0.999f + 1.0f;
    const double rate = 2.0 * LANES * ROUNDS / seconds_since(start);
    if (rate > best) best = rate;
  }
  for (int l = 0; l < LANES; l++) *sink = v[l]; /* so that nothing is left out */
  return best;
}

ccn__machine *ccn__machine_measure(ccn__arena *a) {
  double *x = CCN__NEWN(a, double, WORDS), *y = CCN__NEWN(a, double, WORDS);
  ccn__machine *m = CCN__NEW(a, ccn__machine);
  for (size_t i = 0; i < WORDS; i++) x[i] = y[i] = (double)i; /* pages are there */
  volatile float sink;
  *m = (ccn__machine){.name = "this", .about = "measured: one thread a rank", .nlinks = 1, .launch = 1e-6};
  m->bandwidth = stream(x, y);
  const double copy = copying(x, y), flops = arithmetic(&sink);
  for (int t = 0; t < CCN__DTYPE_COUNT; t++)
    m->flops[t] = flops * (ccn__dtype_size((ccn__dtype)t) > 4 ? 0.5 : 1);
  m->memory = USUAL_MEMORY;
  m->link[0] = (ccn__link){.name = "memory", .latency = 2e-6, .bandwidth = copy, .direct = true};
  return m;
}
