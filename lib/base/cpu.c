/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#include <features.h>

atomic_uint tb_cpu_found, tb_cpu_deposit_found;

#ifdef __x86_64__

#include <cpuid.h>

enum { FAMILY_ZEN_3 = 0x19 };

#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
#include <sys/platform/x86.h>

#define HAS(glibc_name, leaf, reg, bit) CPU_FEATURE_PRESENT(glibc_name)
#else
static bool has(unsigned leaf, unsigned reg, unsigned bit) {
  unsigned r[4];

  return __get_cpuid_count(leaf, 0, &r[0], &r[1], &r[2], &r[3]) != 0 && (r[reg] & bit) != 0;
}

#define HAS(glibc_name, leaf, reg, bit) has(leaf, reg, bit)
#endif

enum { EBX = 1, ECX = 2, EDX = 3 };

static bool is_amd_before_zen_3(void) {
  unsigned version, name_1, name_2, name_3, most;

  if (__get_cpuid(0, &most, &name_1, &name_3, &name_2) == 0 || name_1 != signature_AMD_ebx)
    return false;
  if (__get_cpuid(1, &version, &name_1, &name_2, &name_3) == 0) return false;
  return (version >> 8 & 0xf) + (version >> 20 & 0xff) < FAMILY_ZEN_3;
}

static unsigned find_features(void) {
  unsigned found = TB_CPU_KNOWN;

  if (HAS(SSE4_2, 1, ECX, bit_SSE4_2) && HAS(PCLMULQDQ, 1, ECX, bit_PCLMUL)) found |= TB_CPU_CRC32;
  if (HAS(INVARIANT_TSC, 0x80000007, EDX, 1u << 8)) found |= TB_CPU_STEADY_CYCLES;
  return found;
}

static bool deposits(void) {
  return HAS(BMI2, 7, EBX, bit_BMI2) && !is_amd_before_zen_3();
}

#else

static unsigned find_features(void) {
  return TB_CPU_KNOWN;
}

static bool deposits(void) {
  return false;
}

#endif

unsigned tb_cpu_find(void) {
  unsigned found = find_features();

  atomic_store_explicit(&tb_cpu_found, found, memory_order_relaxed);
  return found;
}

unsigned tb_cpu_find_deposit(void) {
  unsigned found = deposits() ? 2 * TB_CPU_KNOWN : TB_CPU_KNOWN;

  atomic_store_explicit(&tb_cpu_deposit_found, found, memory_order_relaxed);
  return found;
}
