/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/faults.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { SLOTS = 64, TEXT_BYTES = 160 };

static struct slot {
  _Atomic pid_t thread; /* 0: free, or being written */
  char text[TEXT_BYTES];
} slots[SLOTS];
static atomic_uint taken;

static struct slot *mine(void) {
  pid_t thread = gettid();

  for (unsigned i = 0; i < SLOTS; i++)
    if (atomic_load_explicit(&slots[i].thread, memory_order_acquire) == thread) return &slots[i];
  return NULL;
}

void ta_fault_say(const char *fmt, va_list args) {
  struct slot *slot = mine();

  if (slot == NULL) slot = &slots[atomic_fetch_add(&taken, 1) % SLOTS];
  atomic_store(&slot->thread, 0);
  vsnprintf(slot->text, sizeof slot->text, fmt, args);
  atomic_store_explicit(&slot->thread, gettid(), memory_order_release);
}

void ta_fault_clear(void) {
  struct slot *slot = mine();

  if (slot != NULL) atomic_store(&slot->thread, 0);
}

const char *ta_fault_text(void) {
  const struct slot *slot = mine();

  return slot == NULL || slot->text[0] == '\0' ? NULL : slot->text;
}
