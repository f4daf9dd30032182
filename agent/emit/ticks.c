/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined __x86_64__ || defined __i386__
#include <cpuid.h>
#endif

enum { TRIES = 5, FREQUENCY_OF_NS = 1000000000 >> TA_NS_LOG2 };

bool ta_ticks_count_cycles;

#if defined __x86_64__ || defined __i386__

/* What the kernel tells the time by. The names are of those that are read from the counter alone. */
static bool kernel_counts_cycles(void) {
  static const char *const names[] = { "tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n" };
  char name[64] = "";
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                O_RDONLY | O_CLOEXEC);

  if (fd < 0) return false;
  ssize_t n = read(fd, name, sizeof name - 1);
  close(fd);
  name[n > 0 ? n : 0] = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static bool rate_is_constant(void) {
  enum { LEAF = (int)0x80000007, INVARIANT = 1 << 8 };
  unsigned a, b, c, d;

  return __get_cpuid((unsigned)LEAF, &a, &b, &c, &d) != 0 && (d & INVARIANT) != 0;
}

void ta_ticks_choose(bool monotonic) {
  ta_ticks_count_cycles = !monotonic && rate_is_constant() && kernel_counts_cycles();
}

#else

void ta_ticks_choose(bool monotonic) {
  (void)monotonic;
}

#endif

uint64_t ta_ticks_of_clock(void) {
  return ta_mono_ns() >> TA_NS_LOG2;
}

struct ta_moment ta_moment_now(void) {
  struct ta_moment best = { 0 };
  uint64_t best_width = UINT64_MAX;

  /* Whoever is interrupted between the readings tries again: the narrowest wins. */
  for (int i = 0; i < TRIES; i++) {
    uint64_t before = ta_ticks_now(), mono = ta_mono_ns(), wall = ta_wall_ns();
    uint64_t width = ta_ticks_now() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = (struct ta_moment){ before + width / 2, mono, wall };
  }
  return best;
}

uint64_t ta_ticks_frequency(const struct ta_moment *from, const struct ta_moment *to) {
  if (!ta_ticks_count_cycles) return FREQUENCY_OF_NS;
  unsigned __int128 ticks = to->ticks - from->ticks;
  uint64_t ns = to->mono_ns - from->mono_ns;
  uint64_t frequency = ns == 0 ? 0 : (uint64_t)(ticks * 1000000000u / ns);
  return frequency == 0 ? 1 : frequency;
}
