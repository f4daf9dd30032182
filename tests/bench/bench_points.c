/* SPDX-License-Identifier: Apache-2.0 */
/* bench_points: measures the cost of a tracepoint for the thread that passes it.
 *
 * Prints, tab-separated, in ns of the thread's CPU a pass: a loop without a tracepoint; with one that is off; with a
 * probe that does nothing; with the probe that records, while there is no session. Rounds of all four alternate, and
 * the fastest of each counts: the times are fractions of a nanosecond, and other load on the machine only adds to them.
 * */
#include <stdio.h>
#include <time.h>

#include "bench.trace.h"

//trace:event off(unsigned long n, const void *what)
//trace:event looked(unsigned long n, const void *what)
//trace:event recorded(unsigned long n, const void *what)

enum { FEW = 20000, MANY = 1000000, ROUNDS = 200, KINDS = 4 };

static double cpu_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void nothing(void *self, unsigned long n, const void *what) {
  (void)self, (void)n, (void)what;
}

/* The loop uses the number, and may not assume anything about memory, as in a program. */
#define LOOP(name, passes, body)                                                                   \
  static __attribute__((noinline)) double name(const void *what) {                                 \
    double began = cpu_ns();                                                                       \
    for (unsigned long n = 0; n < (passes); n++) {                                                 \
      body;                                                                                        \
      __asm__ volatile("" ::"r"(n), "r"(what) : "memory");                                         \
    }                                                                                              \
    return (cpu_ns() - began) / (passes);                                                          \
  }
LOOP(empty_loop, MANY, )
LOOP(off_loop, MANY, off(n, what))
LOOP(looked_loop, FEW, looked(n, what))
LOOP(recorded_loop, FEW, recorded(n, what))

int main(void) {
  static double (*const loops[KINDS])(const void *) = { empty_loop, off_loop, looked_loop,
                                                        recorded_loop };
  static struct ta_probe look, record;
  double fastest[KINDS] = { 0 };

  ta_lock();
  looked_attach(NULL, &look, nothing, NULL);
  ta_record_attach(NULL, recorded_point(), &record);
  ta_unlock();
  for (int round = 0; round < ROUNDS; round++)
    for (int kind = 0; kind < KINDS; kind++) {
      double ns = loops[kind](&look);
      if (round == 0 || ns < fastest[kind]) fastest[kind] = ns;
    }
  for (int kind = 0; kind < KINDS; kind++)
    printf("%.3f%c", fastest[kind], kind + 1 < KINDS ? '\t' : '\n');
  return 0;
}
