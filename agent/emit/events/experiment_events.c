/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own experiments: events, bytes, and holds, which keep several calls in one generation.
 *
 * A sequence has two counters, one for each parity of the generation: a thread still in the old generation continues there,
 * while others start at one in the next. If a sequence was already used in the next generation, an event written in the old
 * one would appear to come before it. So the thread enters again, unless it is in a hold. */
#include "agent/emit/events/experiments.h"
#include "agent/emit/events/held.h"
#include "agent/host/keep.h"
#include "traceexperiment.h"
#include "wire/substream.h"

enum { WRITE_BYTES_MAX = 64000 };

/* Holds. */

void ta_hold_begin(void) {
  struct ta_thread *t = ta_self;

  if (t != NULL && t->holds > 0 && !ta_is_left_behind(t, atomic_load(&t->left_behind))) {
    t->holds++;
    return;
  }
  if ((t = ta_enter()) == NULL) return;
  t->holds = 1;
  atomic_store_explicit(&t->busy, TA_BUSY_HELD, memory_order_relaxed);
}

void ta_hold_end(void) {
  struct ta_thread *t = ta_self;

  if (t == NULL || t->holds == 0) return;
  if (--t->holds == 0) ta_leave(t);
}

/* A section is over if the flusher has left its thread behind: the thread left by a jump, or the section took too long. A signal
 * handler may have jumped out of the middle of an event, and may return there: so the event's batch is not reused. */
bool ta_begin_in_hold(struct ta_thread *t) {
  uint32_t behind = atomic_load(&t->left_behind);

  if (ta_is_held(t)) ta_misuse(t, "another call between ta_hold_begin() and ta_hold_end()");
  if (!ta_is_left_behind(t, behind)) return false;
  if (!atomic_compare_exchange_strong(&t->left_behind, &behind, TA_COMES_BACK)) return false;
  if (!ta_is_held(t)) ta_drop_open_batches(t, false);
  t->holds = 0;
  atomic_store(&t->busy, 0);
  return ta_begin(t);
}

/* Events. */

static uint64_t *count_of(ta_sequence *s, uint32_t gen) {
  return &s->word[gen & 1];
}

/* Returns whether the sequence was already used in the next generation. */
static bool is_late(ta_sequence *s, uint32_t gen) {
  return (uint32_t)(__atomic_load_n(count_of(s, gen + 1), __ATOMIC_RELAXED) >> 32) == gen + 1;
}

static uint64_t next_number(ta_sequence *s, uint32_t gen) {
  uint64_t *count = count_of(s, gen), word = __atomic_load_n(count, __ATOMIC_RELAXED), next;

  do next = (uint32_t)(word >> 32) == gen ? word + 1 : (uint64_t)gen << 32 | 1;
  while (
      !__atomic_compare_exchange_n(count, &word, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return next & UINT32_MAX;
}

/* Returns the number to write in the trace for the caller's argument. */
static uint64_t converted(struct ta_thread *t, enum tw_arg_type type, uint64_t arg,
                          const void *from) {
  uint32_t name = ta_name_known(arg < TA_NAMES_MAX ? (uint32_t)arg : 0);
  ta_sequence *s;

  switch (type) {
  case TW_ARG_STRING: return ta_name_id(name, ta_gen(t), TA_AS_STRING);
  case TW_ARG_STACK:
    if (arg == TA_STACK_HERE) return ta_put_stack(t, from);
    return name == 0 ? 0 : ta_name_id(name, ta_gen(t), TA_AS_STACK);
  case TW_ARG_G: return arg >> TA_GOES_LOG2;
  case TW_ARG_SEQ: s = (ta_sequence *)(uintptr_t)arg; return next_number(s, ta_gen(t));
  default: return arg;
  }
}

static ta_sequence *sequence_of(const struct ta_own_row *row, const uint64_t *args) {
  for (unsigned i = 0; i < row->nargs; i++)
    if (row->types[i] == TW_ARG_SEQ) return (ta_sequence *)(uintptr_t)args[i];
  return NULL;
}

/* Finds plain numbers in the place of TA_SEQUENCE(): a sequence's address is neither small nor misaligned. */
static bool sequences_are_valid(const struct ta_own_row *row, const uint64_t *args) {
  enum { LEAST_ADDRESS = 4096 }; /* nothing is ever mapped below */

  for (unsigned i = 0; i < row->nargs; i++)
    if (row->types[i] == TW_ARG_SEQ &&
        (args[i] < LEAST_ADDRESS || args[i] % _Alignof(ta_sequence) != 0))
      return false;
  return true;
}

/* Leaves t's section. */
static __attribute__((noinline)) void put_converted(struct ta_thread *t, ta_event event,
                                                    uint64_t args[TW_TIMED_ARGS_MAX],
                                                    const void *from) {
  const struct ta_own_row *row = &ta_own_rows[event];
  ta_sequence *s = sequence_of(row, args);

  if (!sequences_are_valid(row, args)) {
    ta_misuse(t, "an event of an experiment: its _seq is not a TA_SEQUENCE()");
    ta_leave_inside(t);
    return;
  }
  while (s != NULL && is_late(s, ta_gen(t)) && t->holds == 0) {
    ta_leave(t);
    t = ta_enter_inside(row->running);
    if (t == NULL) return;
  }
  for (unsigned i = 0; i < row->nargs; i++)
    args[i] = converted(t, (enum tw_arg_type)row->types[i], args[i], from);
  ta_put(t, event, row->nargs, args[0], args[1], args[2], args[3]);
  ta_leave_inside(t);
}

static bool reports_experiments(void) {
  return !ta_is_off() && ta_emit.version >= TA_FIRST_VERSION_WITH_EXPERIMENTS;
}

static bool is_reported(const struct ta_own_row *row) {
  return reports_experiments() && atomic_load_explicit(&row->known, memory_order_acquire);
}

void ta_experiment_emit(ta_event event, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  const struct ta_own_row *row = &ta_own_rows[event];
  struct ta_thread *t = is_reported(row) ? ta_enter_inside(row->running) : NULL;

  if (t == NULL) return;
  if (TB_LIKELY(row->plain)) {
    ta_put(t, event, row->nargs, a, b, c, d);
    ta_leave_inside(t);
  } else {
    put_converted(t, event, (uint64_t[]){ a, b, c, d }, TA_CALLER);
  }
}

void ta_own_put(uint8_t event, const struct ta_own_arg *args) {
  const struct ta_own_row *row = &ta_own_rows[event];
  struct ta_thread *t = is_reported(row) ? ta_enter_inside(row->running) : NULL;
  uint64_t numbers[TW_TIMED_ARGS_MAX] = { 0 };

  if (t == NULL) return;
  for (unsigned i = 0; i < row->nargs; i++) {
    if (row->types[i] == TW_ARG_STRING)
      numbers[i] = args[i].text == NULL ? 0 : ta_put_text(t, args[i].text);
    else if (row->types[i] == TW_ARG_STACK)
      numbers[i] = ta_put_stack(t, TA_CALLER);
    else
      numbers[i] = args[i].number;
  }
  ta_put(t, event, row->nargs, numbers[0], numbers[1], numbers[2], numbers[3]);
  ta_leave_inside(t);
}

/* Bytes. */

/* Returns the open batch if it is of the wanted kind; otherwise a new one in its place, with room for n bytes at least. */
static struct ta_batch *bytes_batch(struct ta_thread *t, const struct ta_bytes *wanted, size_t n) {
  struct ta_bytes *have = &t->at->bytes;

  if (have->batch != NULL && have->experiment == wanted->experiment && have->kind == wanted->kind &&
      have->name == wanted->name)
    return have->batch;
  ta_post_bytes(t);
  *have = *wanted;
  have->batch = ta_take_experimental(t, wanted->experiment, n + TW_SUBSTREAM_ROOM_MIN);
  if (have->batch == NULL || wanted->kind == TA_BYTES_BARE) return have->batch;
  size_t len;
  const char *name = ta_names_text(wanted->name, &len);
  enum tw_substream_kind kind =
      wanted->kind == TA_BYTES_BLOBS ? TW_SUBSTREAM_BLOBS : TW_SUBSTREAM_BYTES;
  if (tw_write_substream(&have->batch->write, kind, name, len) == TB_OK) return have->batch;
  ta_misuse(t, "ta_experiment_write() or ta_emit_blob(): not a name for a stream");
  ta_pool_release(&ta_emit.pool, have->batch);
  *have = (struct ta_bytes){ 0 };
  return NULL;
}

void ta_experiment_write(ta_experiment experiment, ta_name stream, const void *bytes, size_t n) {
  KEEP_ERRNO;
  struct ta_bytes wanted = { .experiment = experiment,
                             .name = ta_name_known(stream),
                             .kind = stream == 0 ? TA_BYTES_BARE : TA_BYTES_NAMED };
  struct ta_thread *t = reports_experiments() ? ta_enter_inside(false) : NULL;

  if (t == NULL) return;
  unsigned number = (unsigned)experiment - TW_EXPERIMENT_FIRST;
  if (number >= atomic_load(&ta_own_experiments) || n > WRITE_BYTES_MAX ||
      (bytes == NULL && n > 0)) {
    ta_misuse(t, "ta_experiment_write(): no such experiment, no bytes, or too many");
  } else {
    struct ta_batch *batch = bytes_batch(t, &wanted, n);
    if (batch != NULL && tw_write_bytes(&batch->write, bytes, n) == TB_AGAIN) {
      ta_post_bytes(t);
      batch = bytes_batch(t, &wanted, n);
      if (batch != NULL && tw_write_bytes(&batch->write, bytes, n) != TB_OK)
        ta_misuse(t, "ta_experiment_write(): too many bytes");
    }
  }
  ta_leave_inside(t);
}

/* Returns false if the blob was not written whole: the event must not refer to it. */
static bool put_blob(struct ta_thread *t, const struct ta_bytes *wanted, struct tw_blob *blob) {
  for (;;) {
    struct ta_batch *batch = bytes_batch(t, wanted, 0);
    tb_rc rc = batch == NULL ? TB_NOMEM : tw_write_blob(&batch->write, blob);
    if (rc != TB_AGAIN) return rc == TB_OK;
    ta_post_bytes(t);
  }
}

void ta_emit_blob(ta_event event, ta_name stream, const void *bytes, size_t n, uint64_t a,
                  uint64_t b, uint64_t c, uint64_t d) {
  KEEP_ERRNO;
  const struct ta_own_row *row = &ta_own_rows[event];
  struct ta_bytes wanted = { .experiment = row->experiment,
                             .name = ta_name_known(stream),
                             .kind = TA_BYTES_BLOBS };
  uint64_t args[TW_TIMED_ARGS_MAX] = { a, b, c, d };

  if (!is_reported(row)) return;
  ta_hold_begin(); /* keeps the blob and its event in one generation */
  struct ta_thread *t = ta_enter_inside(row->running);
  bool has_bytes = bytes != NULL || n == 0;
  if (t != NULL && (row->blob < 0 || wanted.name == 0 || n > TW_BLOB_BYTES_MAX || !has_bytes ||
                    !sequences_are_valid(row, args))) {
    ta_misuse(t, "ta_emit_blob(): the event has no blob, the stream no name, or there are no bytes "
                 "or too many");
    ta_leave_inside(t);
  } else if (t != NULL) {
    struct tw_blob blob = { .id = ta_next_id(t), .bytes = bytes, .len = n };
    args[row->blob] = put_blob(t, &wanted, &blob) ? blob.id : 0;
    put_converted(t, event, args, TA_CALLER);
  }
  ta_hold_end();
}
