/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/profile.h"

#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/keep.h"

enum {
  STACKS_MAX = 4096,
  STACKS_MOST = 1 << 20,
  TRIES = 32, /* slots tried for one stack */
  OURS = 4,   /* innermost frames: this probe, ta_call_run(), the event's pack and probes */
};

static uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
  return hash ^ hash >> 32;
}

/* Hashes the texts, not their addresses: another text may later have the same address. */
static uint64_t hash_of(const struct ta_call *call, void *const *pc, unsigned n) {
  uint64_t hash = 0;

  for (const char *c = call->module; *c != 0; c++) hash = mixed(hash, (unsigned char)*c);
  for (const char *c = call->name; *c != 0; c++) hash = mixed(hash, (unsigned char)*c);
  for (unsigned i = 0; i < n; i++) hash = mixed(hash, (uintptr_t)pc[i]);
  return hash != 0 ? hash : 1;
}

static void keep(char *out, size_t room, const char *text) {
  size_t n = strnlen(text, room - 1);

  memcpy(out, text, n);
  out[n] = 0;
}

static void fill(struct ta_profile_slot *slot, const struct ta_call *call, void *const *pc,
                 unsigned n) {
  keep(slot->module, sizeof slot->module, call->module);
  keep(slot->name, sizeof slot->name, call->name);
  slot->n = n;
  for (unsigned i = 0; i < n; i++) slot->pc[i] = pc[i];
  atomic_store_explicit(&slot->ready, true, memory_order_release);
}

static void count(void *self, const struct ta_call *call) {
  KEEP_ERRNO;
  ta_profile *profile = self;
  void *all[TA_PROFILE_DEPTH + OURS];
  int found = backtrace(all, TA_PROFILE_DEPTH + OURS);
  unsigned n = found > OURS ? (unsigned)found - OURS : 0;
  uint64_t hash = hash_of(call, all + OURS, n);

  for (unsigned i = 0; i < TRIES; i++) {
    struct ta_profile_slot *slot = &profile->slot[(hash + i) & (profile->slots - 1)];
    uint64_t there = 0;
    bool is_mine = atomic_compare_exchange_strong(&slot->hash, &there, hash);
    if (!is_mine && there != hash) continue;
    if (is_mine) fill(slot, call, all + OURS, n);
    atomic_fetch_add_explicit(&slot->count, 1, memory_order_relaxed);
    return;
  }
  atomic_fetch_add_explicit(&profile->others, 1, memory_order_relaxed);
}

int ta_profile_open(unsigned stacks_max, ta_profile **out) {
  KEEP_ERRNO;
  unsigned slots = 1;
  void *first;

  if (out == NULL) return TA_E_MISUSE;
  *out = NULL;
  if (stacks_max == 0) stacks_max = STACKS_MAX;
  if (stacks_max > STACKS_MOST) return TA_E_NOMEM;
  while (slots < stacks_max) slots *= 2;
  ta_profile *profile = calloc(1, sizeof *profile + slots * sizeof *profile->slot);
  if (profile == NULL) return TA_E_NOMEM;
  profile->slots = slots;
  backtrace(&first, 1); /* loads libgcc, which allocates: now, not during an event */
  *out = profile;
  return TA_OK;
}

int ta_profile_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                      struct ta_probe *probe, ta_profile *profile) {
  return profile == NULL ? TA_E_MISUSE : ta_call_attach(group, at, probe, count, profile);
}

void ta_profile_close(ta_profile *profile) {
  free(profile);
}
