/* SPDX-License-Identifier: Apache-2.0 */
/* The reader runs for one slice whenever none is left; a generation is held (TO_READER_HOLD) until the
 * last of its events has been read. */
#include "trace/pull.h"

#include <string.h>

#include "base/check.h"
#include "order/handler.h"

/* A run for one event delivers a full slice at most, perhaps with a generation's Sync before and its last
 * events after it. */
enum { SLICE = 256, ROOM = 4 * SLICE };

struct to_pull {
  struct tb_mem *mem;
  struct to_pull_source source;
  struct to_reader *reader;
  const unsigned char *bytes; /* of the source, not fed yet */
  size_t bytes_left;
  bool ended;   /* the source has no more */
  bool to_run;  /* the reader has more of the generation */
  tb_rc failed; /* reported once the events before it are */
  size_t next, count;
  const struct to_generation *gen[ROOM];
  struct to_event event[ROOM];
};

static tb_rc keep(void *self, const struct to_generation *gen, const struct to_event *events,
                  size_t n) {
  struct to_pull *pull = self;

  if (!TB_CHECK(n <= ROOM - pull->count)) return TB_BUDGET;
  memcpy(pull->event + pull->count, events, n * sizeof *events);
  for (size_t i = 0; i < n; i++) pull->gen[pull->count++] = gen;
  return TB_OK;
}

tb_rc to_pull_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                  struct to_pull_source source, struct tb_diag *diag, struct to_pull **out) {
  struct to_pull *pull;

  TB_TRY(tb_mem_take(mem, sizeof(struct to_pull), &pull));
  pull->mem = mem;
  pull->source = source;
  tb_rc rc = to_reader_new(mem, limits, flags | TO_READER_HOLD,
                           (struct to_event_sink){ pull, keep }, diag, &pull->reader);
  if (rc != TB_OK) {
    tb_mem_give(mem, pull, sizeof *pull);
    return rc;
  }
  *out = pull;
  return TB_OK;
}

tb_rc to_pull_handle(struct to_pull *pull, const struct to_handler *handler) {
  return to_reader_handle(pull->reader, handler);
}

void to_pull_free(struct to_pull *pull) {
  if (pull == NULL) return;
  to_reader_free(pull->reader);
  tb_mem_give(pull->mem, pull, sizeof *pull);
}

unsigned to_pull_version(const struct to_pull *pull) {
  return to_reader_version(pull->reader);
}

static tb_rc feed(struct to_pull *pull) {
  const void *more;
  size_t used;

  if (pull->bytes_left == 0 && !pull->ended) {
    tb_rc rc = pull->source.more(pull->source.self, &more, &pull->bytes_left);
    pull->bytes = more;
    if (rc == TB_END) {
      pull->ended = true;
      pull->bytes_left = 0;
    } else if (rc != TB_OK) {
      return rc;
    }
  }
  if (pull->ended) return to_reader_finish(pull->reader);
  tb_rc rc = to_reader_feed(pull->reader, pull->bytes, pull->bytes_left, &used);
  pull->bytes += used;
  pull->bytes_left -= used;
  return rc;
}

/* Some more events, or why there are none. */
static tb_rc fill(struct to_pull *pull) {
  pull->next = pull->count = 0;
  while (pull->count == 0) {
    if (pull->failed != TB_OK) return pull->failed;
    bool finishing = pull->ended && !pull->to_run;
    tb_rc rc = pull->to_run ? to_reader_run(pull->reader, 1) : feed(pull);
    pull->to_run = rc == TB_AGAIN;
    if (rc == TB_AGAIN) continue;
    if (rc != TB_OK)
      pull->failed = rc;
    else if (finishing)
      pull->failed = TB_END;
  }
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
