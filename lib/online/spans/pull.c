/* SPDX-License-Identifier: Apache-2.0 */
/* Each step of the reader orders a slice of events. Spans and texts are copied: the sink's are lent. */
#include "online/spans/pull.h"

#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "online/spans/state.h"
#include "online/trace/feed.h"

enum { TEXT_CHUNK_BYTES = 4 << 10 };

struct kept {
  struct to_span span;
  struct to_span_more more;
  struct to_region_time region;
  const struct to_generation *gen;
};

struct to_span_pull {
  struct tb_mem *mem;
  struct to_feed feed;
  struct to_spans *spans;
  struct tb_arena text;
  struct {
    const char *from;
    struct to_string copy;
  } last; /* many spans of a step may have the same name */
  struct kept *kept;
  size_t next, count, room;
};

static tb_rc copy_text(struct to_span_pull *pull, struct to_string *text) {
  const void *copy;

  if (text->len == 0) return TB_OK;
  if (pull->last.from != text->data || pull->last.copy.len != text->len) {
    TB_TRY(tb_arena_copy(&pull->text, text->data, text->len, &copy));
    pull->last.from = text->data;
    pull->last.copy = (struct to_string){ copy, text->len };
  }
  text->data = pull->last.copy.data;
  return TB_OK;
}

static tb_rc copy_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                        size_t n) {
  struct to_span_pull *pull = self;

  pull->last.from = NULL; /* addresses of texts are valid within a slice */
  TB_TRY(tb_mem_grow(pull->mem, &pull->kept, &pull->room, pull->count + n, sizeof *pull->kept));
  for (size_t i = 0; i < n; i++) {
    struct kept *kept = &pull->kept[pull->count];
    kept->span = spans[i];
    kept->gen = gen;
    if (spans[i].more != NULL) {
      kept->more = *spans[i].more;
      if (kept->more.region != NULL) kept->region = *kept->more.region;
      TB_TRY(copy_text(pull, &kept->more.name));
      TB_TRY(copy_text(pull, &kept->more.text));
    }
    pull->count++;
  }
  return TB_OK;
}

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  return to_spans_events(((struct to_span_pull *)self)->spans, gen, events, n);
}

static tb_rc on_end(void *self, const struct to_generation *gen) {
  return to_spans_generation_ends(((struct to_span_pull *)self)->spans, gen);
}

tb_rc to_span_pull_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                       const struct to_spans_config *config, struct to_pull_source source,
                       struct tb_diag *diag, struct to_span_pull **out) {
  struct to_span_pull *pull;

  TB_TRY(tb_mem_alloc(mem, sizeof *pull, &pull));
  pull->mem = mem;
  pull->feed.source = source;
  tb_arena_init(&pull->text, mem, TEXT_CHUNK_BYTES);
  tb_rc rc = to_spans_new(mem, config, (struct to_span_sink){ pull, copy_spans }, &pull->spans);
  if (rc == TB_OK)
    rc = to_reader_new(mem, limits, flags | TO_READER_HOLD | TO_READER_PAST_ANNOTATIONS,
                       (struct to_event_sink){ pull, on_events }, diag, &pull->feed.reader);
  if (rc != TB_OK) {
    to_span_pull_free(pull);
    return rc;
  }
  to_reader_on_end(pull->feed.reader, pull, on_end);
  *out = pull;
  return TB_OK;
}

void to_span_pull_free(struct to_span_pull *pull) {
  if (pull == NULL) return;
  to_reader_free(pull->feed.reader);
  to_spans_free(pull->spans);
  tb_arena_fini(&pull->text);
  tb_mem_free(pull->mem, pull->kept, pull->room * sizeof *pull->kept);
  tb_mem_free(pull->mem, pull, sizeof *pull);
}

static tb_rc fill(struct to_span_pull *pull) {
  pull->next = pull->count = 0;
  tb_arena_reset(&pull->text);
  while (pull->count == 0) TB_TRY(to__feed_step(&pull->feed, 1));
  return TB_OK;
}

tb_rc to_span_pull_next(struct to_span_pull *pull, const struct to_span **out,
                        const struct to_generation **out_gen) {
  if (pull->next == pull->count) TB_TRY(fill(pull));
  struct kept *kept = &pull->kept[pull->next++];
  if (kept->span.more != NULL) {
    kept->span.more = &kept->more;
    if (kept->more.region != NULL) kept->more.region = &kept->region;
  }
  *out = &kept->span;
  *out_gen = kept->gen;
  return TB_OK;
}

/* A life that has ended since is among the spans to come. */
uint64_t to_span_pull_begin_stack(const struct to_span_pull *pull, const struct to_span *span) {
  const struct to_spans *spans = pull->spans;

  if (span->life == 0) return 0;
  if (span->slot < spans->slots_end && spans->lives[span->slot].life == span->life)
    return spans->births[span->slot].entry;
  for (size_t i = pull->next; i < pull->count; i++) {
    const struct to_span *next = &pull->kept[i].span;
    if (next->kind == TO_SPAN_LIFE && next->life == span->life) return next->stack;
  }
  return 0;
}

const struct tb_diag *to_span_pull_misannotated(const struct to_span_pull *pull) {
  return to_reader_misannotated(pull->feed.reader);
}

struct to_spans *to_span_pull_spans(struct to_span_pull *pull) {
  return pull->spans;
}
