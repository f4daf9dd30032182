/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes a stream's generations and reports; events and alerts are in files of their own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/text/hex.h"
#include "collector/analysis/feed_private.h"
#include "pack/report.h"
#include "proto/frame.pb-c.h"
#include "proto/loss.h"
#include "proto/meta.pb-c.h"
#include "wire/varint.h"

enum {
  CHUNK_BYTES = 16 << 10,
  MEMORY_MAX = 64 << 20,
  FETCH_BYTES = 256,
  LENGTH_DELIMITED = 2,
  REPORTS_FIELD = 16, /* FeedMessage.reports */
  REPORT_FIELD = 17,  /* StreamReport.report */
};
static const uint64_t unchanged_every_ns = 10000000000;

/* --- publishing -------------------------------------------------------------------------------- */

static size_t put_varint(unsigned char *out, uint64_t value) {
  size_t n = 0;

  for (; value >= 0x80; value >>= 7) out[n++] = (unsigned char)(value | 0x80);
  out[n++] = (unsigned char)value;
  return n;
}

size_t tc__put_field(unsigned char *out, unsigned number, size_t len) {
  size_t n = put_varint(out, number << 3 | LENGTH_DELIMITED);

  return n + put_varint(out + n, len);
}

void tc__source_publish(struct tc_feed_encoder *source, enum tc_feed_slot slot, uint64_t gen,
                        uint64_t from_wall_ns, uint64_t until_wall_ns,
                        const Tracecollect__V1__FeedMessage *message) {
  size_t len = tracecollect__v1__feed_message__get_packed_size(message);
  void *bytes;

  if (tb_arena_alloc(&source->arena, len, &bytes) != TB_OK) {
    tc_feed_miss(source->env.feed, &source->origin, slot, 1);
    return;
  }
  struct tc_feed_note note = { .slot = slot,
                               .count = 1,
                               .gen = gen,
                               .from_wall_ns = from_wall_ns,
                               .until_wall_ns = until_wall_ns,
                               .bytes = bytes,
                               .len = tracecollect__v1__feed_message__pack(message, bytes) };
  tc_feed_publish(source->env.feed, source->env.port, &source->origin, &note);
}

static void publish_generation(struct tc_feed_encoder *source, uint64_t from_wall_ns,
                               uint64_t until_wall_ns, Tracecollect__V1__GenerationNote *note) {
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;

  if (until_wall_ns != 0 && from_wall_ns > until_wall_ns)
    from_wall_ns = until_wall_ns; /* received later: a finished trace, or clocks differ */
  message.generations = &note;
  message.n_generations = 1;
  tc__source_publish(source, TC_FEED_GENERATION, note->last_gen, from_wall_ns, until_wall_ns,
                     &message);
  tb_arena_reset(&source->arena);
}

/* Unquoted: HELLO admits only names that are safe in a shell. */
tb_rc tc__source_fetch_line(struct tc_feed_encoder *source, uint64_t first_gen, uint64_t last_gen,
                            char **out) {
  void *line;

  TB_TRY(tb_arena_alloc(&source->arena, FETCH_BYTES, &line));
  snprintf(line, FETCH_BYTES,
           "tracectl fetch --stream %s --gen %" PRIu64 "..%" PRIu64 " -o %s-%" PRIu64 ".trace",
           source->hex, first_gen, last_gen, source->origin.service, first_gen);
  *out = line;
  return TB_OK;
}

/* --- generations ------------------------------------------------------------------------------- */

void tc_feed_encoder_begin(struct tc_feed_encoder *source, const struct tc_reply *stored,
                           bool new_epoch) {
  Tracecollect__V1__GenerationNote note = TRACECOLLECT__V1__GENERATION_NOTE__INIT;

  source->gen = stored->gen;
  source->from_wall_ns = stored->first_wall_ns;
  source->until_wall_ns = stored->end_wall_ns;
  source->wanted = tc_feed_wanted(source->env.feed);
  if (!source->wanted) return;
  note.state = TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BEGIN;
  note.first_gen = note.last_gen = stored->gen;
  note.new_epoch = new_epoch;
  note.bytes = stored->len;
  publish_generation(source, source->from_wall_ns, source->until_wall_ns, &note);
}

void tc_feed_encoder_end(struct tc_feed_encoder *source, const struct tc_verdict *verdict) {
  bool ok = verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
  Tracecollect__V1__GenerationNote note = TRACECOLLECT__V1__GENERATION_NOTE__INIT;
  uint64_t from = 0, until = 0;

  tc__flush_events(source);
  tb_arena_reset(&source->arena);
  source->wanted = tc_feed_wanted(source->env.feed);
  if (!source->wanted) return;
  note.state = ok ? TRACECOLLECT__V1__GENERATION_STATE__GENERATION_END
                  : TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BROKEN;
  note.first_gen = note.last_gen = verdict->gen;
  note.events = verdict->events;
  note.first_ns = verdict->first_ns;
  note.last_ns = verdict->last_ns;
  if (!ok) {
    note.reason = (char *)(uintptr_t)verdict->reason;
    note.thread = verdict->thread;
    note.offset = verdict->offset;
  }
  if (source->analyses != NULL && verdict->last_ns != 0) {
    from = to_analyses_wall(source->analyses, verdict->first_ns);
    until = to_analyses_wall(source->analyses, verdict->last_ns);
  }
  publish_generation(source, from != 0 ? from : source->from_wall_ns,
                     from != 0 ? until : source->until_wall_ns, &note);
}

static tb_rc report_archived(struct tc_feed_encoder *source, const struct tc_reply *reply,
                             Tracecollect__V1__GenerationNote *note) {
  note->state = TRACECOLLECT__V1__GENERATION_STATE__GENERATION_ARCHIVED;
  note->path = (char *)(uintptr_t)reply->path;
  return tc__source_fetch_line(source, reply->gen, reply->last_gen, &note->fetch);
}

void tc_feed_encoder_reported(struct tc_feed_encoder *source, const struct tc_reply *reply) {
  Tracecollect__V1__GenerationNote note = TRACECOLLECT__V1__GENERATION_NOTE__INIT;

  if (!tc_feed_wanted(source->env.feed)) return;
  note.first_gen = reply->gen;
  note.last_gen = reply->last_gen;
  note.bytes = reply->bytes;
  if (reply->kind == TC_REPLY_ARCHIVED) {
    if (report_archived(source, reply, &note) != TB_OK) {
      tc_feed_miss(source->env.feed, &source->origin, TC_FEED_GENERATION, 1);
      return;
    }
  } else {
    const char *why =
        reply->loss_text[0] != '\0' ? reply->loss_text : tp_loss_text(reply->loss_code);

    note.state = TRACECOLLECT__V1__GENERATION_STATE__GENERATION_LOST;
    note.batches = reply->batches;
    note.reason = (char *)(uintptr_t)why;
  }
  publish_generation(source, reply->first_wall_ns, reply->end_wall_ns, &note);
}

/* --- reports ----------------------------------------------------------------------------------- */

/* A report that is too long for a message is packed again with shorter lists. */
static tb_rc pack_shorter(struct tc_feed_encoder *source, enum to_analysis_kind kind,
                          enum to_window window, uint64_t broken, size_t bytes_max,
                          struct tb_buf *out) {
  const struct tp_report_about about = { .stream = source->origin.stream,
                                         .service = source->origin.service,
                                         .instance = source->origin.instance,
                                         .broken_generations = broken };

  for (size_t rows = TP_REPORT_ROWS_LIVE / 4; rows > 0; rows /= 4) {
    tb_buf_clear(out);
    TB_TRY(tp_report_pack(source->analyses, kind, window, rows, &about, out));
    if (out->len <= bytes_max) return TB_OK;
  }
  return TB_BUDGET;
}

static tb_rc publish_report(struct tc_feed_encoder *source, enum tc_feed_slot slot,
                            const void *bytes, size_t len) {
  const struct to_report *report = to_analyses_last_report(source->analyses);
  unsigned char head[TC__FIELD_BYTES_MAX], *field;
  size_t n = tc__put_field(head, REPORTS_FIELD, len);

  TB_TRY(tb_arena_alloc(&source->arena, n + len, &field));
  memcpy(field, head, n);
  memcpy(field + n, bytes, len);
  struct tc_feed_note note = { .slot = slot,
                               .count = 1,
                               .gen = report->last_gen,
                               .from_wall_ns = report->from_wall_ns,
                               .until_wall_ns = report->until_wall_ns,
                               .bytes = field,
                               .len = n + len };
  tc_feed_publish(source->env.feed, source->env.port, &source->origin, &note);
  return TB_OK;
}

unsigned tc_feed_encoder_report_windows(struct tc_feed_encoder *source) {
  if (tc_feed_reports_wanted(source->env.feed)) return source->windows;
  if (source->published_any) memset(source->published, 0, sizeof source->published);
  source->published_any = false; /* the next subscriber has no report yet */
  return 0;
}

static const unsigned char *skip_varint(const unsigned char *at, const unsigned char *end,
                                        uint64_t *out) {
  int n = tw_varint_read(at, end, out);

  return n > 0 ? at + n : end;
}

/* Checksum of figures and rows only, because the time range in front of them changes with each report. We packed the message,
 * so the fields before REPORT_FIELD are well formed. */
static uint32_t crc_of(const unsigned char *at, size_t len) {
  const unsigned char *end = at + len;

  while (at < end) {
    uint64_t key, value;
    at = skip_varint(skip_varint(at, end, &key), end, &value);
    if (key == (REPORT_FIELD << 3 | LENGTH_DELIMITED)) break;
    if ((key & 7) == LENGTH_DELIMITED) at += value;
  }
  return tb_crc32c(0, at, (size_t)(end - at));
}

/* Returns true if the subscribers received the same report less than 10 s ago. */
static bool is_unchanged(struct tc_feed_encoder *source, enum to_analysis_kind kind,
                         enum to_window window, const void *bytes, size_t len, uint64_t mono_ns) {
  struct tc__published_report *last = &source->published[window][kind];
  uint32_t crc = crc_of(bytes, len);

  if (last->mono_ns != 0 && last->crc == crc && mono_ns - last->mono_ns < unchanged_every_ns)
    return true;
  *last = (struct tc__published_report){ mono_ns, crc };
  source->published_any = true;
  return false;
}

void tc_feed_encoder_report(struct tc_feed_encoder *source, enum to_analysis_kind kind,
                            enum to_window window, uint64_t broken_generations, const void *bytes,
                            size_t len, uint64_t mono_ns) {
  enum tc_feed_slot slot = (enum tc_feed_slot)(TC_FEED_REPORTS + kind);
  size_t bytes_max = tc_feed_note_bytes_max(source->env.feed) - TC__FIELD_BYTES_MAX;
  struct tb_buf shorter;
  tb_rc rc = TB_OK;

  if ((source->windows >> window & 1) == 0 || !tc_feed_reports_wanted(source->env.feed)) return;
  if (is_unchanged(source, kind, window, bytes, len, mono_ns)) return;
  tb_buf_init(&shorter, &source->mem);
  if (len > bytes_max) {
    rc = pack_shorter(source, kind, window, broken_generations, bytes_max, &shorter);
    bytes = shorter.data;
    len = shorter.len;
  }
  if (rc == TB_OK) rc = publish_report(source, slot, bytes, len);
  if (rc != TB_OK) tc_feed_miss(source->env.feed, &source->origin, slot, 1);
  tb_buf_fini(&shorter);
  tb_arena_reset(&source->arena);
}

static void on_span(void *self, const struct to_watched *span) {
  struct tc_feed_encoder *source = self;

  if (source->wanted) tc__span_event(source, span);
  tc__span_alert(source, span);
}

static void on_task(void *self, const struct to_watched_task *task) {
  tc__task_alert(self, task);
}

static void on_event(void *self, const struct to_generation *gen, const struct to_event *ev) {
  struct tc_feed_encoder *source = self;

  if (source->wanted) tc__publish_event(source, gen, ev);
}

void tc_feed_encoder_slice(struct tc_feed_encoder *source) {
  if (source->wanted) tb_arena_reset(&source->arena);
}

void tc_feed_encoder_watch(struct tc_feed_encoder *source, struct to_analyses *analyses) {
  uint64_t syscall_ns = source->env.config->alert_syscall_blocked;
  uint64_t task_ns = source->env.config->alert_task;
  struct to_watch watch = { .self = source,
                            .span = on_span,
                            .syscall_ns = syscall_ns == 0 || syscall_ns > INT64_MAX
                                              ? INT64_MAX
                                              : (to_ns)syscall_ns,
                            .task = task_ns == 0 || task_ns > INT64_MAX ? NULL : on_task,
                            .task_ns = (to_ns)task_ns,
                            .events = source->event_types,
                            .event = on_event };

  source->analyses = analyses;
  to_analyses_watch(analyses, &watch);
}

void tc_feed_encoder_unwatch(struct tc_feed_encoder *source) {
  tc__forget_stacks(source);
  source->analyses = NULL;
}

tb_rc tc_feed_encoder_new(const struct tc_feed_encoder_env *env, const struct tc_reply *said,
                          struct tc_feed_encoder **out) {
  struct tc_feed_encoder *source = calloc(1, sizeof *source);
  tb_rc rc = source != NULL ? TB_OK : TB_NOMEM;

  if (rc == TB_OK) rc = tc_feed_event_list(env->config->feed_events, NULL, &source->event_kinds);
  if (rc == TB_OK) rc = tc_feed_window_list(env->config->feed_windows, NULL, &source->windows);
  if (rc != TB_OK) {
    free(source);
    return rc;
  }
  source->env = *env;
  source->event_types = tc__event_types(source->event_kinds);
  memcpy(source->origin.stream, said->stream_id, sizeof source->origin.stream);
  memcpy(source->origin.service, said->service, sizeof source->origin.service);
  memcpy(source->origin.instance, said->instance, sizeof source->origin.instance);
  tb_hex(said->stream_id, sizeof said->stream_id, source->hex);
  tb_mem_init(&source->mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_arena_init(&source->arena, &source->mem, CHUNK_BYTES);
  tc__forget_stacks(source);
  for (unsigned i = 0; i < TC_FEED_EVENT_KINDS; i++)
    tb_buf_init(&source->events[i].bytes, &source->mem);
  *out = source;
  return TB_OK;
}

void tc_feed_encoder_free(struct tc_feed_encoder *source) {
  if (source == NULL) return;
  tc__forget_stacks(source);
  for (unsigned i = 0; i < TC_FEED_EVENT_KINDS; i++) tb_buf_fini(&source->events[i].bytes);
  tb_arena_fini(&source->arena);
  free(source);
}

void tc_feed_encoder_version(struct tc_feed_encoder *source, unsigned go_version) {
  source->origin.go_version = go_version;
}
