/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/names.h"

#include <pthread.h>
#include <string.h>

#include "agent/emit/core/cut.h"
#include "agent/host/process.h"

enum { HASH_SLOTS_FIRST = 512, HASH_SLOTS = 2 * TA_NAMES_MAX };

struct ta_name_row ta_names[TA_NAMES_MAX];
_Atomic uint32_t ta_names_end;

static TA_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t text_bytes;
static char text_of_all[TA_NAMES_BYTES];
static uint16_t hashed[HASH_SLOTS];
static uint32_t hash_slots =
    HASH_SLOTS_FIRST; /* slots in use: small at first, for short programs with few names */

static uint32_t hash_of(const char *text, size_t len) {
  uint32_t hash = 2166136261u;

  for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  return hash;
}

static void hash_again(void) {
  memset(hashed, 0, hash_slots * sizeof *hashed);
  hash_slots *= 2;
  for (uint32_t name = 1; name < ta_names_end; name++) {
    const struct ta_name_row *row = &ta_names[name];
    uint32_t at = hash_of(text_of_all + row->at, row->len) % hash_slots;
    while (hashed[at] != 0) at = (at + 1) % hash_slots;
    hashed[at] = (uint16_t)name;
  }
}

static uint32_t find_or_make(const char *text, size_t len) {
  if (ta_names_end == hash_slots / 2 && hash_slots < HASH_SLOTS) hash_again();
  uint32_t at = hash_of(text, len) % hash_slots;

  for (; hashed[at] != 0; at = (at + 1) % hash_slots) {
    const struct ta_name_row *row = &ta_names[hashed[at]];
    if (row->len == len && memcmp(text_of_all + row->at, text, len) == 0) return hashed[at];
  }
  uint32_t name = atomic_load_explicit(&ta_names_end, memory_order_relaxed);
  if (name == TA_NAMES_MAX || len > TA_NAMES_BYTES - text_bytes) return 0;
  memcpy(text_of_all + text_bytes, text, len);
  ta_names[name].at = text_bytes;
  ta_names[name].len = (uint16_t)len;
  text_bytes += (uint32_t)len;
  hashed[at] = (uint16_t)name;
  atomic_store_explicit(&ta_names_end, name + 1, memory_order_release);
  return name;
}

static void make_own(void) {
#define TA_OWN_NAME(id, text) text,
  static const char *const own[] = { TA_OWN_NAMES(TA_OWN_NAME) };
#undef TA_OWN_NAME

  atomic_store_explicit(&ta_names_end, 1, memory_order_relaxed);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) find_or_make(own[i], strlen(own[i]));
}

uint32_t ta_names_find(const char *text, size_t len) {
  len = ta_cut(text, len);
  pthread_mutex_lock(&lock);
  if (ta_names_end == 0) make_own();
  uint32_t name = len == 0 ? 0 : find_or_make(text, len);
  pthread_mutex_unlock(&lock);
  return name;
}

const char *ta_names_text(uint32_t name, size_t *out_len) {
  *out_len = ta_names[name].len;
  return text_of_all + ta_names[name].at;
}

/* The text of a function's name is a zero byte, with which no other begins, and the address. */
enum { FUNCTION_BYTES = 1 + sizeof(uint64_t) };

uint32_t ta_names_of_function(const void *pc) {
  uint64_t at = (uint64_t)(uintptr_t)pc;
  char text[FUNCTION_BYTES] = "";

  memcpy(text + 1, &at, sizeof at);
  return ta_names_find(text, sizeof text);
}

uint64_t ta_names_function(uint32_t name) {
  const struct ta_name_row *row = &ta_names[name];
  uint64_t at = 0;

  if (row->len == FUNCTION_BYTES && text_of_all[row->at] == 0)
    memcpy(&at, text_of_all + row->at + 1, sizeof at);
  return at;
}

TA_CODE_AT_FORK void ta_names_lock(void) {
  pthread_mutex_lock(&lock);
}
TA_CODE_AT_FORK void ta_names_unlock(void) {
  pthread_mutex_unlock(&lock);
}
