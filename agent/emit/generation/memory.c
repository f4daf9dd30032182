/* SPDX-License-Identifier: Apache-2.0 */
/* An event takes 5 to 7 bytes if the heap's addresses are above the program's. */
#include "agent/emit/generation/memory.h"

#include <string.h>
#include <sys/auxv.h>

#include "agent/emit/core/initial_threads.h"
#include "agent/emit/events/held.h"
#include "base/check.h"

/* The format of the experiment's batches, and the units of its ids. All allocators align objects to 8 bytes; processors
 * require 16 for stacks. */
enum {
  BATCH_TYPES = 0,
  BATCH_INFO = 1,
  PAGE_BYTES = 4096,
  OBJECT_ALIGN = 8,
  STACK_ALIGN = 16,
  TYPE_FIELDS = 5,
};
enum { PROBES = 32, NAME_BITS = 12, NAME_MASK = (1 << NAME_BITS) - 1 };
_Static_assert(TA_NAMES_MAX <= 1 << NAME_BITS, "a name fits beside a size");

/* A slot is (bytes << NAME_BITS | name) + 1; 0: free. */
struct types {
  atomic_bool any;
  _Atomic uint64_t slot[TA_TYPES_MAX];
};
static struct types types[2];
static uintptr_t start;

/* In a process that was forked in the middle of a generation, the tables still hold the parent's types. */
static void clear_types(struct types *table) {
  atomic_store(&table->any, false);
  for (unsigned i = 0; i < TA_TYPES_MAX; i++)
    if (atomic_load_explicit(&table->slot[i], memory_order_relaxed) != 0)
      atomic_store_explicit(&table->slot[i], 0, memory_order_relaxed);
}

void ta_memory_begin(void) {
  if (!ta_emit.allocfree) return;
  clear_types(&types[0]);
  clear_types(&types[1]);
  ta_initial_threads_note();
  start = (uintptr_t)getauxval(AT_PHDR) & ~(uintptr_t)(PAGE_BYTES - 1);
}

/* Returns 0 if there is no room, or if the size is too large for a key. */
static uint64_t type_id(uint32_t gen, size_t bytes, uint32_t name) {
  struct types *table = &types[gen & 1];
  uint64_t key = ((uint64_t)bytes << NAME_BITS | name) + 1;
  uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

  if (bytes > SIZE_MAX >> (NAME_BITS + 1)) return 0;
  for (unsigned i = 0; i < PROBES; i++, at++) {
    _Atomic uint64_t *slot = &table->slot[at % TA_TYPES_MAX];
    uint64_t there = atomic_load_explicit(slot, memory_order_relaxed);
    if (there == 0 && atomic_compare_exchange_strong(slot, &there, key)) {
      atomic_store_explicit(&table->any, true, memory_order_relaxed);
      there = key;
    }
    if (there == key) return at % TA_TYPES_MAX + 1;
  }
  return 0;
}

/* Returns the bit length of the smallest power of two that is at least bytes. */
static uint64_t order_of(size_t bytes) {
  unsigned bits = 1;

  while (bits < 64 && (UINT64_C(1) << (bits - 1)) < bytes) bits++;
  return bits;
}

static void put_span(struct ta_thread *t, uint8_t event, uintptr_t at, size_t bytes,
                     uint32_t name) {
  enum { OF_OBJECTS = 0, OTHER = 1 }; /* Go's size class 0: one large object */
  uint64_t first = (at - start) / PAGE_BYTES, offset = at % PAGE_BYTES;
  uint64_t pages = (offset + bytes + PAGE_BYTES - 1) / PAGE_BYTES;

  ta_put(t, event, 3, first, pages, name != 0 ? OF_OBJECTS : OTHER, 0);
}

void ta_memory_put(struct ta_thread *t, enum ta_memory what, uintptr_t at, size_t bytes,
                   uint32_t name) {
  uint8_t event = (uint8_t)(TW_EV_SPAN + (unsigned)what);

  ta_ticks_fence();
  switch (what) {
  case TA_SPAN_EXISTS:
  case TA_SPAN_ALLOC: put_span(t, event, at, bytes, name); break;
  case TA_SPAN_FREE: ta_put(t, event, 1, (at - start) / PAGE_BYTES, 0, 0, 0); break;
  case TA_OBJECT_EXISTS:
  case TA_OBJECT_ALLOC:
    ta_put(t, event, 2, (at - start) / OBJECT_ALIGN, type_id(ta_gen(t), bytes, name), 0, 0);
    break;
  case TA_OBJECT_FREE: ta_put(t, event, 1, (at - start) / OBJECT_ALIGN, 0, 0, 0); break;
  case TA_STACK_EXISTS:
  case TA_STACK_ALLOC:
    ta_put(t, event, 2, (at - start) / STACK_ALIGN, order_of(bytes), 0, 0);
    break;
  case TA_STACK_FREE: ta_put(t, event, 1, (at - start) / STACK_ALIGN, 0, 0, 0); break;
  }
}

/* Batches. */

static void open_batch(struct ta_generation *k, uint32_t gen, unsigned char kind) {
  struct tw_batch head = { .gen = ta_gen_number(gen),
                           .thread = TB_NO_THREAD,
                           .time = k->time,
                           .experiment = TW_EXPERIMENT_ALLOC_FREE };

  tw_write_open(&k->write, k->room, sizeof k->room, ta_emit.version, &head);
  TB_CHECK(tw_write_bytes(&k->write, &kind, 1) == TB_OK);
}

static unsigned char *put_numbers(unsigned char *pos, const uint64_t *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) pos = ta_put_number(pos, numbers[i]);
  return pos;
}

static void write_info(struct ta_generation *k, uint32_t gen) {
  const uint64_t info[] = { start, PAGE_BYTES, OBJECT_ALIGN, STACK_ALIGN };
  unsigned char text[sizeof info / sizeof *info * TW_VARINT_BYTES_MAX];
  size_t n = (size_t)(put_numbers(text, info, sizeof info / sizeof *info) - text);

  open_batch(k, gen, BATCH_INFO);
  TB_CHECK(tw_write_bytes(&k->write, text, n) == TB_OK);
  ta_generation_close_batch(k, gen);
}

/* In Go the second field is the address of the type's description, the same in all generations: here it is the key. The
 * fourth is the number of bytes that may hold pointers: here any may. */
static void write_type(struct ta_generation *k, uint32_t gen, uint64_t id, uint64_t key) {
  size_t len;
  const char *name = ta_names_text((key - 1) & NAME_MASK, &len);
  uint64_t bytes = (key - 1) >> NAME_BITS;
  const uint64_t fields[TYPE_FIELDS] = { id, key, bytes, bytes, len };
  unsigned char text[TYPE_FIELDS * TW_VARINT_BYTES_MAX + TW_STRING_BYTES_MAX];
  unsigned char *pos = put_numbers(text, fields, TYPE_FIELDS);

  memcpy(pos, name, len);
  pos += len;
  if (tw_write_bytes(&k->write, text, (size_t)(pos - text)) == TB_OK) return;
  ta_generation_close_batch(k, gen);
  open_batch(k, gen, BATCH_TYPES);
  TB_CHECK(tw_write_bytes(&k->write, text, (size_t)(pos - text)) == TB_OK);
}

void ta_memory_write(struct ta_generation *k, uint32_t gen) {
  struct types *table = &types[gen & 1];

  if (!ta_emit.allocfree) return;
  write_info(k, gen);
  if (!atomic_exchange(&table->any, false)) return;
  open_batch(k, gen, BATCH_TYPES);
  for (unsigned i = 0; i < TA_TYPES_MAX; i++) {
    uint64_t key = atomic_exchange_explicit(&table->slot[i], 0, memory_order_relaxed);
    if (key != 0) write_type(k, gen, i + 1, key);
  }
  ta_generation_close_batch(k, gen);
}

/* Public. */

void ta_memory_tell(enum ta_memory what, const void *at, size_t bytes, ta_name type) {
  if (!ta_emit.allocfree || ta_is_off()) return;
  bool before = ta_in_hook;
  ta_in_hook = true;
  struct ta_thread *t = ta_enter_inside(false);
  ta_in_hook = before;
  if (t == NULL) return;
  if ((unsigned)what <= TA_STACK_FREE)
    ta_memory_put(t, what, (uintptr_t)at, bytes, ta_name_known(type));
  else
    ta_misuse(t, "ta_memory_tell(): no such kind");
  ta_leave_inside(t);
}
