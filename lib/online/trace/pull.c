/* SPDX-License-Identifier: Apache-2.0 */
/* The reader runs for one slice whenever none is left; a generation is held (TO_READER_HOLD) until the
 * last of its events has been read. */
#include "online/trace/pull.h"

#include <string.h>

#include "base/check.h"
#include "online/order/handler.h"
#include "online/trace/feed.h"

/* to_reader_run() for one event may deliver more: a Sync, then a full slice, then the generation's last events. */
enum { SLICE = 256, ROOM = 4 * SLICE };

struct to_pull {
  struct tb_mem *mem;
  struct to_feed feed;
  bool has_goroutine; /* return only its events */
  int64_t goroutine;
  size_t next, count;
  const struct to_generation *gen[ROOM];
  struct to_event event[ROOM];
};

static void keep_some(struct to_pull *pull, const struct to_generation *gen,
                      const struct to_event *events, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (events[i].g != pull->goroutine) continue;
    pull->event[pull->count] = events[i];
    pull->gen[pull->count++] = gen;
  }
}

static tb_rc keep(void *self, const struct to_generation *gen, const struct to_event *events,
                  size_t n) {
  struct to_pull *pull = self;

  if (!TB_CHECK(n <= ROOM - pull->count)) return TB_BUDGET;
  if (pull->has_goroutine) {
    keep_some(pull, gen, events, n);
    return TB_OK;
  }
  memcpy(pull->event + pull->count, events, n * sizeof *events);
  for (size_t i = 0; i < n; i++) pull->gen[pull->count++] = gen;
  return TB_OK;
}

tb_rc to_pull_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                  struct to_pull_source source, struct tb_diag *diag, struct to_pull **out) {
  struct to_pull *pull;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct to_pull), &pull));
  pull->mem = mem;
  pull->has_goroutine = false;
  pull->feed.source = source;
  tb_rc rc = to_reader_new(mem, limits, flags | TO_READER_HOLD,
                           (struct to_event_sink){ pull, keep }, diag, &pull->feed.reader);
  if (rc != TB_OK) {
    tb_mem_free(mem, pull, sizeof *pull);
    return rc;
  }
  *out = pull;
  return TB_OK;
}

tb_rc to_pull_handle(struct to_pull *pull, const struct to_handler *handler) {
  return to_reader_handle(pull->feed.reader, handler);
}

void to_pull_only(struct to_pull *pull, int64_t goroutine) {
  pull->has_goroutine = true;
  pull->goroutine = goroutine;
}

void to_pull_free(struct to_pull *pull) {
  if (pull == NULL) return;
  to_reader_free(pull->feed.reader);
  tb_mem_free(pull->mem, pull, sizeof *pull);
}

unsigned to_pull_version(const struct to_pull *pull) {
  return to_reader_version(pull->feed.reader);
}

const struct tb_diag *to_pull_misannotated(const struct to_pull *pull) {
  return to_reader_misannotated(pull->feed.reader);
}

/* Fetches at least one event, or returns why there is none. */
static tb_rc fill(struct to_pull *pull) {
  pull->next = pull->count = 0;
  while (pull->count == 0) TB_TRY(to__feed_step(&pull->feed, 1));
  return TB_OK;
}

tb_rc to_pull_next(struct to_pull *pull, const struct to_event **out_ev,
                   const struct to_generation **out_gen) {
  if (pull->next == pull->count) TB_TRY(fill(pull));
  *out_ev = &pull->event[pull->next];
  *out_gen = pull->gen[pull->next++];
  return TB_OK;
}

static tb_rc give_part(void *self, const void **out_bytes, size_t *out_n) {
  struct to_part *part = self;
  bool head = part->given == 0;

  if (part->given == 2 || (!head && part->end <= part->begin)) return TB_END;
  part->given++;
  *out_bytes = part->trace + (head ? 0 : part->begin);
  *out_n = head ? part->header : part->end - part->begin;
  return TB_OK;
}

struct to_pull_source to_part_source(struct to_part *part) {
  return (struct to_pull_source){ part, give_part };
}
