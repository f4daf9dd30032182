/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation as JSON. Names of figures and columns: schema.c. */
#include <inttypes.h>

#include "online/why/why.h"
#include "proto/json.h"

enum { WORDS_BYTES = 120 };

static void put_text(struct tb_buf *out, const char *name, struct to_string text) {
  tb_buf_printf(out, "\"%s\":", name);
  tp_json_bytes(out, text.data, text.len);
}

static void put_word(struct tb_buf *out, const char *name, const char *text) {
  tb_buf_printf(out, ",\"%s\":", name);
  tp_json_text(out, text);
}

static const char *flag(bool is) {
  return is ? "true" : "false";
}

/* Separates the rows of a table. */
static void next_row(struct tb_buf *out, bool *first) {
  if (!*first) tb_buf_byte(out, ',');
  *first = false;
}

struct part_rows {
  struct tb_buf *out;
  bool first;
};

static void put_part(void *self, const char *part, const char *reason, uint64_t ns) {
  struct part_rows *rows = self;

  next_row(rows->out, &rows->first);
  tb_buf_printf(rows->out, "{\"part\":\"%s\"", part);
  put_word(rows->out, "reason", reason);
  tb_buf_printf(rows->out, ",\"total_ns\":%" PRIu64 "}", ns);
}

static void put_behind(struct tb_buf *out, const struct to_why *why,
                       const struct to_path_behind *b) {
  const struct to_path_piece *longest = &why->path.piece[b->longest];

  tb_buf_printf(out, "{\"goroutine\":%" PRId64 ",", b->history == NULL ? 0 : b->history->goroutine);
  put_text(out, "entry", to_why_entry(why, longest->history, longest->stack));
  tb_buf_printf(out, ",\"total_ns\":%" PRIu64, b->times.total);
  for (unsigned p = 0; p < TO_PATH_PARTS; p++)
    tb_buf_printf(out, ",\"%s_ns\":%" PRIu64, to_why_part_name((enum to_path_part)p),
                  b->times.ns[p]);
  tb_buf_byte(out, '}');
}

static void put_piece(struct tb_buf *out, const struct to_why *why, const struct to_path_piece *p) {
  const struct to_frame *frame = to_why_frame(why, p->stack);
  const struct to_frame none = { 0 };
  char end[WORDS_BYTES];

  if (frame == NULL) frame = &none;
  tb_buf_printf(out,
                "{\"from_ns\":%" PRId64 ",\"until_ns\":%" PRId64 ",\"total_ns\":%" PRId64
                ",\"depth\":%" PRIu32 ",\"goroutine\":%" PRId64 ",\"life\":%" PRIu64 ",",
                p->from, p->until, p->until - p->from, p->depth,
                p->history == NULL ? 0 : p->history->goroutine,
                p->history == NULL ? 0 : p->history->life);
  put_text(out, "entry", to_why_entry(why, p->history, p->stack));
  put_word(out, "state", to_why_piece_state(p));
  put_word(out, "reason", to_why_piece_reason(why, p));
  tb_buf_byte(out, ',');
  put_text(out, "function", frame->function);
  tb_buf_byte(out, ',');
  put_text(out, "file", frame->file);
  tb_buf_printf(out,
                ",\"line\":%" PRIu64 ",\"stop_the_world_ns\":%" PRIu64 ",\"gc_assist_ns\":%" PRIu64,
                (uint64_t)frame->line, p->stopped_ns, p->assist_ns);
  (void)to_words_write(to_spans_program(why->spans), to_why_piece_end(why, p), end, sizeof end);
  put_word(out, "end", end);
  tb_buf_byte(out, '}');
}

static void put_related(struct tb_buf *out, const struct to_why *why,
                        const struct to_related_goroutine *of) {
  tb_buf_printf(out, "{\"goroutine\":%" PRId64 ",", of->history->goroutine);
  put_text(out, "entry", to_why_related_entry(why, of));
  tb_buf_printf(out,
                ",\"life\":%" PRIu64 ",\"depth\":%" PRIu32 ",\"wakes\":%" PRIu64
                ",\"waited_ns\":%" PRIu64 "}",
                of->history->life, of->depth, (uint64_t)of->wakes, (uint64_t)of->waited_ns);
}

static void put_figures(struct tb_buf *out, const struct to_why *why) {
  const struct to_why_interval *in = why->interval;
  char name[TO_WHY_NAME];

  tb_buf_text(out, "\"figures\":{\"subject\":");
  (void)to_words_write(to_spans_program(why->spans), in->name, name, sizeof name);
  tp_json_text(out, name);
  tb_buf_printf(out,
                ",\"from_ns\":%" PRId64 ",\"until_ns\":%" PRId64 ",\"total_ns\":%" PRId64
                ",\"behind_ns\":%" PRIu64 ",\"open\":%s,\"cut\":%s,\"path_rows_total\":%zu"
                ",\"runnable_mean\":",
                in->from, in->until, in->until - in->from, why->sum.behind_total, flag(in->open),
                flag(why->path.cut), why->path.n);
  tp_json_real(out, why->runnable);
  tb_buf_printf(out, ",\"procs\":%" PRIu32 ",\"related_cut\":%s}", why->procs,
                flag(why->related.cut));
}

void to_why_json(const struct to_why *why, size_t rows, struct tb_buf *out) {
  struct part_rows parts = { out, true };
  bool first = true;

  put_figures(out, why);
  tb_buf_text(out, ",\"tables\":{\"parts\":[");
  to_why_each_part(why, put_part, &parts);
  tb_buf_text(out, "],\"behind\":[");
  for (size_t i = 0; i < why->sum.n; i++) {
    next_row(out, &first);
    put_behind(out, why, &why->sum.behind[i]);
  }
  tb_buf_text(out, "],\"path\":[");
  first = true;
  for (size_t i = 0; i < why->path.n && (rows == 0 || i < rows); i++) {
    next_row(out, &first);
    put_piece(out, why, &why->path.piece[i]);
  }
  tb_buf_text(out, "],\"related\":[");
  first = true;
  for (size_t i = 0; i < why->related.n; i++) {
    next_row(out, &first);
    put_related(out, why, &why->related.one[i]);
  }
  tb_buf_text(out, "]}");
  if (to_spans_program(why->spans) == TO_PROGRAM_C) tb_buf_text(out, ",\"program\":\"C\"");
}
