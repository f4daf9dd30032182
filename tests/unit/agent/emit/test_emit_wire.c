/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an emitted trace: times (E9), names (E13) and texts that are used once (E14). */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/order_text.h"
#include "tests/unit/agent/emit/standing_clock.h"
#include "wire/raw.h"
#include "wire/sections.h"

/* Calls take() for each batch, in the order of the bytes. */
static void each_batch(const struct emitted *e, void (*take)(const struct tw_batch *batch)) {
  const unsigned char *pos = e->trace[0].bytes + TW_HEADER_BYTES;
  const unsigned char *end = e->trace[0].bytes + e->trace[0].n;
  struct tb_diag diag = { 0 };
  struct tw_batch batch;
  size_t used;

  cr_assert_eq(e->traces, 1);
  while (pos < end) {
    if (*pos == TW_EV_END_OF_GENERATION) {
      pos++;
      continue;
    }
    cr_assert_eq(tw_batch_read(pos, (size_t)(end - pos), &diag, &batch, &used), TB_OK, "%s",
                 diag.text);
    take(&batch);
    pos += used;
  }
}

static struct tt_run read_trace(const struct emitted *e) {
  struct tt_run run = { 0 };

  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tt_order_bytes(&run, e->trace[0].bytes, e->trace[0].n);
  TT_OK(run);
  return run;
}

/* E9. */

enum { THREADS_MAX = 2 * STANDING_THREADS };
static struct {
  int64_t id;
  uint64_t time, figures;
} writer[THREADS_MAX];

static unsigned writer_of(int64_t thread) {
  unsigned i = 0;

  while (writer[i].id != 0 && writer[i].id != thread)
    if (++i == THREADS_MAX) cr_assert_fail("too many threads");
  writer[i].id = thread;
  return i;
}

static void look_at_times(const struct tw_batch *batch) {
  const unsigned char *pos = batch->data, *end = batch->data + batch->len;
  uint64_t time = batch->time;
  struct tw_raw raw;
  size_t used;

  if (batch->thread == TB_NO_THREAD || tw_batch_kind(batch, 26) != TW_BATCH_EVENTS) return;
  unsigned w = writer_of(batch->thread);
  cr_assert_geq(time, writer[w].time, "a batch begins before the one before it ended");
  for (; pos < end; pos += used) {
    cr_assert_eq(tw_raw_read(pos, (size_t)(end - pos), TW_EV_LIMIT, NULL, &raw, &used), TB_OK);
    const unsigned char *number = raw.args;
    uint64_t since = tw_raw_number(&number);
    cr_assert_geq(since, 1);
    time += since;
    writer[w].figures += raw.type == TW_EV_HEAP_ALLOC;
  }
  writer[w].time = time;
}

Test(emit_wire, a_threads_times_rise_while_the_clock_stands_and_goes_back) {
  static struct emitted e;
  unsigned writers = 0;

  standing_clock_emit(&e);
  each_batch(&e, look_at_times);
  for (unsigned i = 0; i < THREADS_MAX; i++) {
    if (writer[i].figures == 0) continue;
    cr_assert_eq(writer[i].figures, STANDING_GENERATIONS * STANDING_EVENTS);
    writers++;
  }
  cr_assert_eq(writers, STANDING_THREADS);
  struct tt_run run = read_trace(&e);
  for (size_t i = 1; i < run.count; i++)
    cr_assert_gt(run.events[i].time, run.events[i - 1].time, "event %zu", i);
  tt_run_fini(&run);
  emit_free(&e);
}

/* Strings. */

struct entry {
  uint64_t gen, id;
  int64_t thread;
  char text[TW_STRING_BYTES_MAX + 1];
  size_t len;
};
enum { ENTRIES_MAX = 2000 };
static struct entry *entries;
static unsigned entry_count;

static void take_strings(const struct tw_batch *batch) {
  struct tw_section section;
  struct tw_string string;
  struct tb_diag diag = { 0 };

  if (tw_batch_kind(batch, 26) != TW_BATCH_STRINGS) return;
  tw_section_open(&section, batch, 26, &diag);
  while (tw_string_next(&section, &string) == TB_OK) {
    cr_assert_lt(entry_count, ENTRIES_MAX);
    struct entry *entry = &entries[entry_count++];
    *entry = (struct entry){ batch->gen, string.id, batch->thread, "", string.len };
    memcpy(entry->text, string.data, string.len);
  }
}

static void read_strings(const struct emitted *e) {
  entries = calloc(ENTRIES_MAX, sizeof *entries);
  cr_assert_not_null(entries);
  each_batch(e, take_strings);
}

static unsigned count_text(uint64_t gen, const char *text) {
  unsigned n = 0;

  for (unsigned i = 0; i < entry_count; i++)
    n += entries[i].gen == gen && strcmp(entries[i].text, text) == 0;
  return n;
}

/* E13: threads intern and use the same texts again and again. */

enum { NAMERS = 4, TEXTS = 40, GENERATIONS = 3 };
static pthread_barrier_t met;

static void text_of(char out[20], unsigned n) {
  snprintf(out, 20, "text %u", n);
}

static void use(const char *text) {
  ta_name name = ta_name_of(text);

  ta_region_begin(name, ta_task_begin(name, 0));
  ta_log(0, name, "a value");
  ta_label(name);
  ta_wait_begin(name);
  ta_wait_end();
  ta_fiber_switch(ta_fiber_create(name, 0));
  ta_fiber_end();
  ta_region_end();
}

/* In generation g, uses the texts whose number g + 1 divides. */
static void *use_names(void *arg) {
  char text[20];

  (void)arg;
  ta_thread_attach(ta_name_of("namer"));
  for (unsigned gen = 0; gen < GENERATIONS; gen++) {
    for (unsigned i = 0; i < 3 * TEXTS; i++) {
      text_of(text, i % TEXTS);
      if (i % TEXTS % (gen + 1) == 0) use(text);
    }
    pthread_barrier_wait(&met);
    pthread_barrier_wait(&met);
  }
  return NULL;
}

Test(emit_wire, a_name_has_one_string_in_each_generation_that_uses_it) {
  static struct emitted e;
  pthread_t thread[NAMERS];
  char text[20];

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  pthread_barrier_init(&met, NULL, NAMERS + 1);
  for (int i = 0; i < NAMERS; i++) pthread_create(&thread[i], NULL, use_names, NULL);
  for (int gen = 0; gen < GENERATIONS; gen++) {
    pthread_barrier_wait(&met);
    emit_end_generation();
    pthread_barrier_wait(&met);
  }
  for (int i = 0; i < NAMERS; i++) pthread_join(thread[i], NULL);
  cr_assert_eq(emit_end(&e), 0);
  read_strings(&e);
  for (unsigned gen = 0; gen < GENERATIONS; gen++)
    for (unsigned i = 0; i < TEXTS; i++) {
      text_of(text, i);
      cr_assert_eq(count_text(gen + 1, text), i % (gen + 1) == 0, "generation %u: %s", gen + 1,
                   text);
    }
  for (unsigned gen = 0; gen < GENERATIONS; gen++) cr_assert_eq(count_text(gen + 1, "namer"), 1);
  struct tt_run run = read_trace(&e);
  tt_run_fini(&run);
  free(entries);
  emit_free(&e);
}

/* E14. */

enum { LONG = 2500 };
struct text {
  char bytes[LONG + 1];
  size_t least, most; /* limits for the length after the cut */
};

/* A text of x, with one other character at `at`. */
static struct text long_text(size_t at, const char *character) {
  struct text text;
  size_t n = strlen(character);

  memset(text.bytes, 'x', LONG);
  text.bytes[LONG] = 0;
  memcpy(text.bytes + at, character, n);
  bool is_whole = at + n <= TW_STRING_BYTES_MAX || at >= TW_STRING_BYTES_MAX;
  text.least = text.most = is_whole ? TW_STRING_BYTES_MAX : at;
  return text;
}

/* Text that is not UTF-8 may lose a few bytes more, but never all. */
static struct text broken_text(const char *repeated) {
  struct text text;
  size_t n = strlen(repeated);

  for (size_t i = 0; i < LONG; i++) text.bytes[i] = repeated[i % n];
  text.bytes[LONG] = 0;
  text.least = TW_STRING_BYTES_MAX - 4;
  text.most = TW_STRING_BYTES_MAX;
  return text;
}

static unsigned make_texts(struct text *out) {
  static const char *const characters[] = { "y", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\x80" };
  static const char *const broken[] = { "\x80", "\xff", "\xe2", "\xe2\x82",
                                        "\xf0\x80\x80\x80\x80" };
  unsigned n = 0;

  for (unsigned c = 0; c < sizeof characters / sizeof *characters; c++)
    for (size_t at = TW_STRING_BYTES_MAX - 6; at < TW_STRING_BYTES_MAX + 3; at++)
      out[n++] = long_text(at, characters[c]);
  for (unsigned b = 0; b < sizeof broken / sizeof *broken; b++) out[n++] = broken_text(broken[b]);
  return n;
}

static void expect_cut(const struct text *text, const struct entry *entry, unsigned which) {
  cr_expect(entry->len >= text->least && entry->len <= text->most, "text %u: %zu bytes of %zu",
            which, entry->len, text->least);
  cr_expect(memcmp(entry->text, text->bytes, entry->len) == 0, "text %u", which);
}

Test(emit_wire, a_text_is_cut_where_a_character_ends_and_written_by_its_thread) {
  static struct text text[100];
  static struct emitted e;
  unsigned texts = make_texts(text), found = 0;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  for (unsigned i = 0; i < texts; i++) ta_log(0, 0, text[i].bytes);
  ta_log(0, 0, "the same"), ta_log(0, 0, "the same");
  cr_assert_eq(emit_end(&e), 0);
  read_strings(&e);
  for (unsigned i = 0; i < entry_count; i++) { /* a thread's texts are in the order of its calls */
    if (entries[i].thread != gettid()) continue;
    if (found < texts) expect_cut(&text[found], &entries[i], found);
    found++;
  }
  cr_assert_eq(found, texts + 2, "%u of %u", found, texts + 2);
  cr_assert_eq(count_text(1, "the same"), 2, "a text that is used once is looked up nowhere");
  struct tt_run run = read_trace(&e);
  tt_run_fini(&run);
  free(entries);
  emit_free(&e);
}

Test(emit_wire, a_name_is_cut_as_a_text_is) {
  static struct text text[100];
  static struct emitted e;
  unsigned texts = make_texts(text);

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  for (unsigned i = 0; i < texts; i++) {
    ta_name name = ta_name_of(text[i].bytes);
    cr_assert_neq(name, 0);
    ta_label(name);
  }
  cr_assert_eq(emit_end(&e), 0);
  read_strings(&e);
  for (unsigned i = 0; i < texts; i++) {
    bool found = false;
    for (unsigned k = 0; k < entry_count && !found; k++)
      found = entries[k].len >= text[i].least && entries[k].len <= text[i].most &&
              memcmp(entries[k].text, text[i].bytes, entries[k].len) == 0;
    cr_expect(found, "text %u", i);
  }
  free(entries);
  emit_free(&e);
}

/* Texts of 60 MB in all, with 4 MiB of memory. If no batch is free, a text is dropped and counted; no text is kept. */

static uint64_t shipped_bytes;

static void count_header(void *self, const void *bytes, size_t n) {
  (void)self, (void)bytes;
  shipped_bytes += n;
}
static void count_bytes(void *self, uint64_t gen, const void *bytes, size_t n) {
  (void)self, (void)gen, (void)bytes;
  shipped_bytes += n;
}
static void ignore_loss(void *self, uint64_t gen, enum ta_loss why) {
  (void)self, (void)gen, (void)why;
}
static void ignore_end(void *self, uint64_t gen) {
  (void)self, (void)gen;
}

#ifdef TC_SANITIZED
static const bool measures = false; /* a sanitizer uses memory of its own */
#else
static const bool measures = true;
#endif

static size_t resident_bytes(void) {
  size_t all = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");

  cr_assert(file != NULL && fscanf(file, "%zu %zu", &all, &resident) == 2);
  fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

Test(emit_wire, texts_that_are_used_once_are_not_kept) {
  enum { MANY = 60000, ROOM = 4 << 20, SLACK = 8 << 20 };
  const struct ta_outlet nowhere = {
    .header = count_header, .put = count_bytes, .lose = ignore_loss, .end = ignore_end
  };
  struct ta_emit_config config = { .generation_ms = 60000 };
  static char text[1000];

  cr_assert_eq(ta_emit_start_to(&nowhere, &config, ROOM), 0);
  ta_log(0, 0, "first");
  uint32_t names = atomic_load(&ta_names_end);
  size_t before = resident_bytes();
  memset(text, 'x', sizeof text - 1);
  for (unsigned i = 0; i < MANY; i++) {
    snprintf(text, sizeof text, "%08u", i);
    text[8] = 'x';
    ta_log(0, 0, text);
  }
  size_t after = resident_bytes();
  cr_expect_eq(atomic_load(&ta_names_end), names);
  cr_expect_leq(ta_emit.pool.mapped_bytes, ROOM);
  if (measures) cr_expect_lt(after, before + ROOM + SLACK, "%zu bytes more", after - before);
  cr_assert_eq(ta_emit_stop(60000), 0);
  cr_expect_gt(shipped_bytes, 0);
}
