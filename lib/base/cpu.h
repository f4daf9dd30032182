/* SPDX-License-Identifier: Apache-2.0 */
/* Optional features of this processor.
 *
 * In a virtual machine each CPUID instruction traps to the host and takes 20 us or more. A feature is therefore looked up
 * when first needed, and in what libc's loader has found already. (The compiler's __builtin_cpu_supports() runs CPUID
 * five times in a constructor.)
 *
 * Threads   any. */
#ifndef TB_CPU_H
#define TB_CPU_H

#include <stdatomic.h>
#include <stdbool.h>

enum tb_cpu_feature {
  TB_CPU_KNOWN = 1,
  TB_CPU_CRC32 = 2,         /* SSE 4.2 and PCLMULQDQ */
  TB_CPU_STEADY_CYCLES = 4, /* the cycle counter's rate never changes */
};

extern atomic_uint tb_cpu_found, tb_cpu_deposit_found;

unsigned tb_cpu_find(void);
unsigned tb_cpu_find_deposit(void);

static inline unsigned tb_cpu(void) {
  unsigned found = atomic_load_explicit(&tb_cpu_found, memory_order_relaxed);

  return found != 0 ? found : tb_cpu_find();
}

/* Returns true if PDEP and PEXT (BMI2) exist and are fast. AMD processors before Zen 3 take a hundred cycles for them,
 * and are recognised by CPUID only. */
static inline bool tb_cpu_deposits(void) {
  unsigned found = atomic_load_explicit(&tb_cpu_deposit_found, memory_order_relaxed);

  return (found != 0 ? found : tb_cpu_find_deposit()) != TB_CPU_KNOWN;
}

#endif
