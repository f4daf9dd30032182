/* SPDX-License-Identifier: Apache-2.0 */
/* Strings are written before the stacks that use them, and the symbols are held from the first string to the last stack: an
 * address must not change its name in between. A stack ends before its first address outside all modules: in code without
 * frame pointers, what looks like a chain of frames may be anything. The top frame is always written, if only as a number. */
#include "agent/emit/generation/tables.h"

#include "agent/emit/events/locks.h"
#include "agent/emit/generation/samples.h"
#include "agent/emit/stacks/stacks.h"
#include "agent/emit/stacks/symbols.h"
#include "base/check.h"
#include "wire/locks.h"
#include "wire/mark.h"

_Static_assert((int)TA_NAME_MARK == (int)TW_C_MARK_STRING, "readers look for it there");

/* Writes one entry; if it does not fit, into a new batch. */
static void write_string(struct ta_generation *k, uint32_t gen, uint64_t id, const char *text,
                         size_t len) {
  if (tw_write_string(&k->write, id, text, len) != TB_AGAIN) return;
  ta_generation_close_batch(k, gen);
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  TB_CHECK(tw_write_string(&k->write, id, text, len) == TB_OK);
}

static void write_stack(struct ta_generation *k, uint32_t gen, uint64_t id,
                        const struct tw_frame *frames, unsigned n) {
  if (tw_write_stack(&k->write, id, frames, n) != TB_AGAIN) return;
  ta_generation_close_batch(k, gen);
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  TB_CHECK(tw_write_stack(&k->write, id, frames, n) == TB_OK);
}

/* Stacks. Each pc is a return address; pc - 1 is in the call. */

static void each_stack(struct ta_generation *k, uint32_t gen,
                       void (*each)(struct ta_generation *k, uint32_t gen, uint64_t id,
                                    const uint64_t *pcs, unsigned n)) {
  unsigned n;

  if (ta_stacks == NULL) return;
  for (uint32_t slot = 0; slot < TA_STACKS_SLOTS; slot++) {
    const uint64_t *pcs = ta_stacks_at(gen, slot, &n);
    if (pcs != NULL) each(k, gen, ta_stacks_id(slot), pcs, n);
  }
}

static void request_symbols(struct ta_generation *k, uint32_t gen, uint64_t id, const uint64_t *pcs,
                            unsigned n) {
  (void)k;
  (void)gen;
  (void)id;
  for (unsigned i = 0; i < n; i++) ta_symbols_want(pcs[i] - 1);
}

static uint64_t string_of(struct ta_generation *k, uint32_t gen, struct ta_text *text) {
  if (text == NULL) return 0;
  if (text->gen == gen) return text->id;
  text->gen = gen;
  text->id = atomic_fetch_add_explicit(&ta_emit.ids, 1, memory_order_relaxed);
  write_string(k, gen, text->id, text->bytes, text->len);
  return text->id;
}

static void name_frames(struct ta_generation *k, uint32_t gen, uint64_t id, const uint64_t *pcs,
                        unsigned n) {
  const struct ta_symbol *symbol;

  (void)id;
  for (unsigned i = 0; i < n && (symbol = ta_symbols_of(pcs[i] - 1)) != NULL; i++) {
    string_of(k, gen, symbol->function);
    string_of(k, gen, symbol->file);
  }
}

static void write_frames(struct ta_generation *k, uint32_t gen, uint64_t id, const uint64_t *pcs,
                         unsigned n) {
  struct tw_frame frames[TA_FRAMES_MAX];
  const struct ta_symbol *symbol;
  unsigned i;

  for (i = 0; i < n && (symbol = ta_symbols_of(pcs[i] - 1)) != NULL; i++)
    frames[i] = (struct tw_frame){ pcs[i] - 1, string_of(k, gen, symbol->function),
                                   string_of(k, gen, symbol->file), symbol->line };
  if (i == 0) frames[i++] = (struct tw_frame){ .pc = pcs[0] - 1 };
  write_stack(k, gen, id, frames, i);
}

/* Names. A function's name has only an address until it is needed here. */

static bool in_use(uint32_t name, uint32_t gen) {
  /* A stack's frame names its string. */
  return name == TA_NAME_MARK || ta_name_used(name, gen, TA_AS_STRING) ||
         ta_name_used(name, gen, TA_AS_STACK);
}

static void write_name(struct ta_generation *k, uint32_t gen, uint32_t name) {
  size_t len;
  const char *text = ta_names_text(name, &len);
  uint64_t pc = ta_names_function(name);
  const struct ta_symbol *symbol = pc != 0 ? ta_symbols_of(pc) : NULL;

  if (symbol != NULL)
    write_string(k, gen, name, symbol->function->bytes, symbol->function->len);
  else
    write_string(k, gen, name, text, pc != 0 ? 0 : len);
}

/* The stack's pc is the name's number: Go's tools take two stacks with the same pc for one. */
static void write_name_stack(struct ta_generation *k, uint32_t gen, uint32_t name) {
  struct tw_frame frame = { .pc = name, .function = name };

  write_stack(k, gen, name, &frame, 1);
}

/* Locks. Each has a string, the reason of waits for it. A lock at an address in a module has a name, too. */

static void request_lock_symbols(uint32_t gen) {
  struct ta_lock lock;

  for (uint32_t i = 0; i < ta_locks_end(gen); i++)
    if (ta_locks_at(gen, i, &lock)) ta_symbols_want_data(lock.object);
}

static struct ta_text *name_of_lock(const struct ta_lock *lock) {
  const struct ta_symbol *symbol = ta_symbols_of(lock->object);

  return symbol == NULL ? NULL : symbol->function;
}

static void write_lock_strings(struct ta_generation *k, uint32_t gen) {
  struct ta_lock lock;
  size_t len;

  for (uint32_t i = 0; i < ta_locks_end(gen); i++) {
    if (!ta_locks_at(gen, i, &lock)) continue;
    const char *reason = ta_names_text(lock.reason, &len);
    write_string(k, gen, TA_LOCKS_FIRST_ID + i, reason, len);
    string_of(k, gen, name_of_lock(&lock));
  }
}

/* Returns 0 if the name's string was not written: a thread of an older generation may have added the lock after the strings,
 * and a batch of locks cannot hold strings. */
static uint64_t written_name(uint32_t gen, const struct ta_lock *lock) {
  const struct ta_text *name = name_of_lock(lock);

  return name == NULL || name->gen != gen ? 0 : name->id;
}

static void open_locks(struct ta_generation *k, uint32_t gen, uint64_t missed) {
  struct tw_batch head = { .gen = ta_gen_number(gen),
                           .thread = TB_NO_THREAD,
                           .time = k->time,
                           .experiment = TW_EXPERIMENT_ALLOC_FREE };

  tw_write_open(&k->write, k->room, sizeof k->room, ta_emit.version, &head);
  TB_CHECK(tw_write_locks(&k->write, missed) == TB_OK);
}

static void write_locks(struct ta_generation *k, uint32_t gen) {
  struct ta_lock lock;

  if (ta_locks_end(gen) == 0) return;
  open_locks(k, gen, ta_locks_missed(gen));
  for (uint32_t i = 0; i < ta_locks_end(gen); i++) {
    if (!ta_locks_at(gen, i, &lock)) continue;
    const struct tw_lock row = { TA_LOCKS_FIRST_ID + i, lock.object, lock.holder,
                                 written_name(gen, &lock) };
    if (tw_write_lock(&k->write, &row) != TB_AGAIN) continue;
    ta_generation_close_batch(k, gen);
    open_locks(k, gen, 0);
    TB_CHECK(tw_write_lock(&k->write, &row) == TB_OK);
  }
  ta_generation_close_batch(k, gen);
}

void ta_tables_write(struct ta_generation *k, uint32_t gen, uint64_t wait_ns) {
  uint32_t end = atomic_load(&ta_names_end);

  ta_symbols_begin();
  for (uint32_t name = 1; name < end; name++)
    if (in_use(name, gen) && ta_names_function(name) != 0) ta_symbols_want(ta_names_function(name));
  each_stack(k, gen, request_symbols);
  request_lock_symbols(gen);
  ta_symbols_hold(ta_mono_ns() + wait_ns);
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  for (uint32_t name = 1; name < end; name++)
    if (in_use(name, gen)) write_name(k, gen, name);
  each_stack(k, gen, name_frames);
  write_lock_strings(k, gen);
  ta_generation_close_batch(k, gen);
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  for (uint32_t name = 1; name < end; name++)
    if (ta_name_used(name, gen, TA_AS_STACK)) write_name_stack(k, gen, name);
  each_stack(k, gen, write_frames);
  ta_generation_close_batch(k, gen);
  write_locks(k, gen);
  ta_symbols_release();
  if (ta_stacks != NULL) ta_stacks_clear(gen);
  ta_locks_clear(gen);
  ta_samples_write(k, gen);
}
