/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a stretch: its generations are ordered and analysed again. */
#include <string.h>

#include "collector/timeline/private.h"
#include "online/analysis/analysis.h"
#include "online/trace/reader.h"
#include "pack/report.h"

enum { SLICE_BYTES = 256 << 10 }; /* go_on() is called after each slice */

struct analysing {
  const struct tc_timeline_stretch_ask *ask;
  struct tb_mem mem;
  struct to_reader *reader;
  struct to_analyses *analyses;
  struct tb_diag fault; /* of the current generation */
  to_ns last;
  uint64_t broken;
  bool has_any;
};

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct analysing *a = self;

  a->last = events[n - 1].time;
  return to_analyses_events(a->analyses, gen, events, n);
}

static tb_rc on_end(void *self, const struct to_generation *gen) {
  struct analysing *a = self;

  return to_analyses_generation_ends(a->analyses, gen);
}

/* ---- a generation ---- */

static tb_rc read_generation(struct analysing *a, const struct tc__bytes *bytes) {
  TB_TRY(to_reader_begin(a->reader));
  TB_TRY(to_reader_push(a->reader, bytes->header, sizeof bytes->header));
  for (size_t at = 0, n; at < bytes->len; at += n) {
    if (!a->ask->go_on(a->ask->self)) return TB_END;
    n = bytes->len - at < SLICE_BYTES ? bytes->len - at : SLICE_BYTES;
    TB_TRY(to_reader_push(a->reader, bytes->bytes + at, n));
  }
  return to_reader_end(a->reader);
}

static void begin_epoch(struct analysing *a) {
  to_analyses_epoch(a->analyses);
  to_reader_epoch(a->reader);
}

/* Is it a fault of the generation, which then is a hole? */
static bool is_fault_of_trace(tb_rc rc) {
  return rc == TB_BROKEN || rc == TB_UNSUPPORTED || rc == TB_FUEL || rc == TB_CORRUPT;
}

static tb_rc analyse_bytes(struct analysing *a, const struct tc__place *place,
                           const struct tc__bytes *bytes, struct tb_diag *diag) {
  tb_diag_clear(&a->fault);
  tb_rc rc = read_generation(a, bytes);
  if (rc == TB_OK) {
    a->has_any = true;
    if (to_reader_version(a->reader) < 25)
      to_analyses_clock(a->analyses, a->last, place->until_wall_ns);
    return TB_OK;
  }
  if (!is_fault_of_trace(rc)) return tb_fail(diag, rc, "%s", tb_rc_text(rc));
  a->broken++;
  begin_epoch(a);
  return TB_OK;
}

static tb_rc add_place(struct tc_timeline *t, struct tc_query_session *session, struct analysing *a,
                       const struct tc__place *place, bool is_next, struct tb_diag *diag) {
  struct tc__bytes bytes;

  if (!is_next || place->expired) begin_epoch(a);
  if (place->expired) return TB_OK;
  TB_TRY(tc__bytes_read(t, session, place, diag, &bytes));
  tb_rc rc = tc__mem_rc(t, analyse_bytes(a, place, &bytes, diag), diag);
  tc__bytes_free(&bytes);
  return rc;
}

/* ---- reports ---- */

static tb_rc give_reports(struct analysing *a, const struct tc__places *places) {
  const struct tp_report_about about = { .stream = a->ask->stream,
                                         .service = places->service,
                                         .instance = places->instance,
                                         .broken_generations = a->broken };
  struct tb_buf packed;
  tb_rc rc = TB_OK;

  tb_buf_init(&packed, &a->mem);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS && rc == TB_OK; k++) {
    if (a->ask->kind != NULL &&
        strcmp(to_analysis_name((enum to_analysis_kind)k), a->ask->kind) != 0)
      continue;
    tb_buf_clear(&packed);
    rc = tp_report_pack(a->analyses, (enum to_analysis_kind)k, TO_WINDOW_ALL, a->ask->rows_max,
                        &about, &packed);
    if (rc == TB_OK) rc = a->ask->take(a->ask->self, packed.data, packed.len);
  }
  tb_buf_fini(&packed);
  return rc;
}

static tb_rc analyse(struct tc_timeline *t, struct tc_query_session *session, struct analysing *a,
                     const struct tc__places *places, struct tb_diag *diag) {
  bool is_of_gc =
      a->ask->kind != NULL && strcmp(a->ask->kind, to_analysis_name(TO_ANALYSIS_GC)) == 0;
  const struct to_analysis_config config = { .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                                             .stacks_max = TO_STACKS_MAX_DEFAULT,
                                             .every_curve = is_of_gc };
  const struct to_limits limits = { 0 };
  const struct to_event_sink sink = { a, on_events };

  TB_TRY(to_analyses_new(&a->mem, &config, &a->analyses));
  TB_TRY(to_reader_new(&a->mem, &limits, TO_READER_PAST_ANNOTATIONS, sink, &a->fault, &a->reader));
  to_reader_on_end(a->reader, a, on_end);
  for (size_t i = 0; i < places->n; i++) {
    bool is_next = i == 0 || places->place[i].gen == places->place[i - 1].gen + 1;
    TB_TRY(add_place(t, session, a, &places->place[i], is_next, diag));
  }
  if (!a->has_any)
    return tb_fail(diag, TB_NOTFOUND,
                   "no generation of that time is whole: retention took them, or they are broken");
  return give_reports(a, places);
}

tb_rc tc_timeline_stretch(struct tc_timeline *t, struct tc_query_session *session,
                          const struct tc_timeline_stretch_ask *ask, struct tb_mem *mem,
                          struct tb_diag *diag) {
  struct tc__places places = { .mem = mem };
  struct analysing a = { .ask = ask };

  tc__mem_init(t, &a.mem);
  tb_rc rc =
      tc__places_find(session, ask->stream, ask->from_wall_ns, ask->until_wall_ns, diag, &places);
  if (rc == TB_OK) rc = tc__places_check_size(&places, diag);
  if (rc == TB_OK) rc = tc__mem_rc(t, analyse(t, session, &a, &places, diag), diag);
  to_reader_free(a.reader);
  to_analyses_free(a.analyses);
  tc__places_fini(&places);
  return rc;
}
