/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of experiments, and their events. The input is a text, NUL, and the bytes of a thread's batch. A spec that can
 * be read is written and read again as the same; a trace that can be ordered can also be ordered without its
 * experiments, and its other events stay. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "online/event/generation.h"
#include "online/trace/reader.h"
#include "tools/tracectl/fetch/strip.h"
#include "wire/write.h"

enum { MEMORY_BYTES = 64 << 20 };

static struct tw_experiments first, again;

static void write_again(void) {
  char text[2 * TW_EXPERIMENT_LINE_MAX];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_experiments_init(&again);
  for (unsigned i = 0; i < first.experiments; i++)
    FUZZ_CHECK(tw_experiments_read(&again, text, tw_experiment_write(&first, i, text), true,
                                   &diag) == TB_OK);
  for (unsigned i = 0; i < first.events; i++) {
    const struct tw_own_event *event = &first.event[i];
    FUZZ_CHECK(tw_own_event(&first, event->type) == event);
    size_t n = tw_experiment_write(&first, event->experiment, text);
    n += tw_own_event_write(event, text + n);
    FUZZ_CHECK(n < sizeof text);
    FUZZ_CHECK(tw_experiments_read(&again, text, n, true, &diag) == TB_OK);
  }
  FUZZ_CHECK(again.events == first.events && again.sequences == first.sequences);
}

/* A trace of one generation. */
static size_t add_batch(unsigned char *to, uint8_t experiment, int64_t thread, const void *magic,
                        size_t magic_len, const uint8_t *bytes, size_t n) {
  static unsigned char room[TW_WRITE_ROOM];
  struct tw_batch head = { .gen = 1, .thread = thread, .time = 1, .experiment = experiment };
  struct tw_write w;

  tw_write_open(&w, room, sizeof room, 26, &head);
  size_t fits = (size_t)(w.end - w.pos) - magic_len;
  if (magic_len > 0) memcpy(w.pos, magic, magic_len);
  if (n > fits) n = fits;
  if (n > 0) memcpy(w.pos + magic_len, bytes, n);
  w.pos += magic_len + n;
  size_t len = tw_write_close(&w);
  memcpy(to, room, len);
  return len;
}

static size_t make_trace(unsigned char *to, const uint8_t *text, size_t text_len,
                         const uint8_t *events, size_t events_len) {
  static const uint8_t clocks[] = { TW_EV_SYNC,
                                    TW_EV_FREQUENCY,
                                    100, /* a second */
                                    TW_EV_CLOCK_SNAPSHOT,
                                    0,
                                    0,
                                    0,
                                    0 };
  static const uint8_t strings[] = { TW_EV_STRINGS, TW_EV_STRING, 1, 1, 'x' };
  size_t n = TW_HEADER_BYTES;

  tw_header_write(to, 26);
  n += add_batch(to + n, TW_EXPERIMENT_SPECS, -1, TW_EXPERIMENTS_MAGIC,
                 sizeof TW_EXPERIMENTS_MAGIC - 1, text, text_len);
  n += add_batch(to + n, 0, -1, NULL, 0, clocks, sizeof clocks);
  n += add_batch(to + n, 0, -1, NULL, 0, strings, sizeof strings);
  n += add_batch(to + n, 0, 1, NULL, 0, events, events_len);
  to[n++] = TW_EV_END_OF_GENERATION;
  return n;
}

struct counts {
  uint64_t own, others;
};

static tb_rc count(void *self, const struct to_generation *gen, const struct to_event *ev,
                   size_t n) {
  struct counts *counts = self;

  for (; n > 0; ev++, n--) {
    bool own = ev->type >= TW_OWN_EVENT_FIRST;
    FUZZ_CHECK(!own || to_generation_spec(gen, ev->type)->name != NULL);
    counts->own += own;
    counts->others += !own;
  }
  return TB_OK;
}

static tb_rc order(const unsigned char *trace, size_t n, struct counts *out) {
  struct to_event_sink sink = { out, count };
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;

  *out = (struct counts){ 0 };
  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_BYTES);
  tb_rc rc = to_reader_new(&mem, &(struct to_limits){ 0 }, 0, sink, &diag, &reader);
  if (rc == TB_OK) {
    rc = to_reader_read(reader, trace, n);
    FUZZ_CHECK(rc == TB_OK || diag.text[0] != '\0' || tb_rc_class(rc) != TB_PEER);
    to_reader_free(reader);
  }
  FUZZ_CHECK(mem.bytes == 0);
  return rc;
}

static size_t strip(const unsigned char *trace, size_t n, unsigned char *out) {
  static struct tk_strip strip;
  const unsigned char *piece;
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  size_t used, len = TW_HEADER_BYTES;

  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_BYTES);
  tw_split_init(&split, &mem);
  memcpy(out, trace, TW_HEADER_BYTES);
  for (; tw_split_feed(&split, trace, n, &used, &item) == TB_OK; trace += used, n -= used) {
    if (item.kind == TW_ITEM_HEADER) {
      tk_strip_begin(&strip, split.version);
      continue;
    }
    piece = item.bytes;
    size_t left = item.kind == TW_ITEM_BATCH ? tk_strip_batch(&strip, &item, &piece) : item.len;
    FUZZ_CHECK(left <= item.len);
    memcpy(out + len, piece, left);
    len += left;
  }
  tw_split_fini(&split);
  return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static unsigned char trace[4 * TW_WRITE_ROOM], safe[4 * TW_WRITE_ROOM];
  const uint8_t *end = size == 0 ? NULL : memchr(data, 0, size);
  size_t text_len = end == NULL ? size : (size_t)(end - data);
  struct counts all, rest;
  struct tb_diag diag;

  for (int numbered = 0; numbered < 2; numbered++) {
    tb_diag_clear(&diag);
    tw_experiments_init(&first);
    tb_rc rc = tw_experiments_read(&first, (const char *)data, text_len, numbered, &diag);
    FUZZ_CHECK(rc == TB_OK || (rc == TB_BROKEN && diag.text[0] != '\0'));
    if (rc == TB_OK && numbered) write_again();
  }
  size_t n = make_trace(trace, data, text_len, end == NULL ? NULL : end + 1,
                        end == NULL ? 0 : size - text_len - 1);
  if (order(trace, n, &all) != TB_OK) return 0;
  FUZZ_CHECK(order(safe, strip(trace, n, safe), &rest) == TB_OK);
  FUZZ_CHECK(rest.own == 0 && rest.others == all.others);
  return 0;
}
