/* SPDX-License-Identifier: Apache-2.0 */
/* The features of this processor beyond those of all its kind.
 *
 * In a virtual machine each CPUID instruction is a trip to the host of 20 us and more. So nothing is asked before it is
 * needed, and then libc's loader, which has asked already. (The compiler's __builtin_cpu_supports() asks five times
 * in a constructor.)
 *
 * Threads   any. */
#ifndef TB_CPU_H
#define TB_CPU_H

#include <stdatomic.h>
#include <stdbool.h>

enum tb_cpu_feature {
  TB_CPU_KNOWN = 1,
  TB_CPU_CRC32 = 2,         /* SSE 4.2 and PCLMULQDQ */
  TB_CPU_STEADY_CYCLES = 4, /* the counter's rate never changes */
};

extern atomic_uint tb_cpu_found, tb_cpu_deposit_found;

unsigned tb_cpu_find(void);
unsigned tb_cpu_find_deposit(void);

static inline unsigned tb_cpu(void) {
  unsigned found = atomic_load_explicit(&tb_cpu_found, memory_order_relaxed);

  return found != 0 ? found : tb_cpu_find();
}

/* PDEP and PEXT are there (BMI2), and fast: AMD's processors before Zen 3 take a hundred cycles. Only CPUID says so. */
static inline bool tb_cpu_deposits(void) {
  unsigned found = atomic_load_explicit(&tb_cpu_deposit_found, memory_order_relaxed);

  return (found != 0 ? found : tb_cpu_find_deposit()) != TB_CPU_KNOWN;
}

#endif
