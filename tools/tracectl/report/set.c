/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/set.h"

#include <string.h>

#include "base/buf.h"
#include "pack/report.h"
#include "proto/unpack.h"
#include "tools/tracectl/profiles/go_profile.h"
#include "tools/tracectl/report/summary.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_run.h"

enum { CHUNK_BYTES = 64 << 10 };

void tk_report_set_init(struct tk_report_set *set) {
  *set = (struct tk_report_set){ 0 };
  tb_arena_init(&set->arena, &tk_mem, CHUNK_BYTES);
}

void tk_report_set_fini(struct tk_report_set *set) {
  tb_arena_fini(&set->arena);
  *set = (struct tk_report_set){ 0 };
}

tb_rc tk_report_set_put(struct tk_report_set *set, Tracecollect__V1__StreamReport *report) {
  if (report == NULL || report->report == NULL || report->report->schema == NULL) return TB_CORRUPT;
  TB_TRY(TB_ARENA_GROW(&set->arena, set->report, set->room, set->n));
  set->report[set->n++] = report;
  return TB_OK;
}

tb_rc tk_report_set_add(struct tk_report_set *set, const void *packed, size_t len) {
  ProtobufCAllocator allocator = tp_arena_allocator(&set->arena);

  return tk_report_set_put(set, tracecollect__v1__stream_report__unpack(&allocator, len, packed));
}

tb_rc tk_report_set_is_sum(struct tk_report_set *set) {
  TB_TRY(TB_ARENA_GROW(&set->arena, set->merged, set->merged_room, set->n_merged));
  set->merged[set->n_merged++] = set->report[--set->n];
  return TB_OK;
}

tb_rc tk_report_set_live_first(struct tk_report_set *set) {
  Tracecollect__V1__StreamReport **sorted;
  size_t n = 0;

  if (set->n == 0) return TB_OK;
  TB_TRY(tb_arena_alloc(&set->arena, set->n * sizeof *sorted, &sorted));
  for (int ended = 0; ended < 2; ended++)
    for (size_t i = 0; i < set->n; i++)
      if ((set->report[i]->ended_wall_ns != 0) == ended) sorted[n++] = set->report[i];
  memcpy(set->report, sorted, set->n * sizeof *sorted);
  return TB_OK;
}

struct work {
  const struct tk_report_ask *ask;
  struct to_analyses *analyses;
  struct tk_go_profile profile;
  struct tk_report_set *set;
};

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct work *work = self;

  if (work->ask->go_profile != NULL) TB_TRY(tk_go_profile_events(&work->profile, gen, events, n));
  return to_analyses_events(work->analyses, gen, events, n);
}

static tb_rc generation_ends(void *self, const struct to_generation *gen) {
  struct work *work = self;

  TB_TRY(to_analyses_generation_ends(work->analyses, gen));
  return work->ask->findings ? tk_summary_note(work->set, work->analyses) : TB_OK;
}

static tb_rc add_reports(struct work *work, bool broken, struct tk_report_set *set) {
  const struct tk_report_ask *ask = work->ask;
  struct tp_report_about about = { .broken_generations = broken };
  struct tb_buf packed;
  tb_rc rc = TB_OK;

  tb_buf_init(&packed, &tk_mem);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS && rc == TB_OK; k++) {
    if (!ask->kind[k]) continue;
    tb_buf_clear(&packed);
    rc = tp_report_pack(work->analyses, (enum to_analysis_kind)k, ask->window, ask->rows_max,
                        &about, &packed);
    if (rc == TB_OK) rc = tk_report_set_add(set, packed.data, packed.len);
  }
  tb_buf_fini(&packed);
  if (ask->go_profile != NULL && rc == TB_OK)
    rc = tk_go_profile_report(&work->profile, &set->arena, &set->profile);
  return rc;
}

static int run_file(struct work *work, const char *path, struct tk_report_set *set) {
  const struct tk_trace_ask ask = { .verb = work->ask->verb,
                                    .path = path,
                                    .part = work->ask->part,
                                    .sink = { work, take_events },
                                    .generation_ends = generation_ends,
                                    .threads = work->ask->threads,
                                    .progress = work->ask->progress,
                                    .past_annotations = true };
  struct tk_trace_run run;
  tb_rc rc = TB_OK;
  char why[256];

  if (!tk_trace_run(&ask, &run)) return TK_FAILED;
  if (run.rc != TB_OK && !run.went_past) rc = to_analyses_generation_ends(work->analyses, NULL);
  if (rc == TB_OK && (run.generations > 0 || run.events > 0 || run.rc == TB_OK))
    rc = add_reports(work, run.rc == TB_BROKEN && !run.went_past, set);
  if (rc != TB_OK) return tk_fail(work->ask->verb, "%s: %s", path, tb_rc_text(rc));
  if (run.rc == TB_OK) return TK_DONE;
  tb_diag_format(&run.diag, why, sizeof(why));
  return tk_fail(work->ask->verb, "%s: %s", path, why);
}

int tk_report_file(const char *path, const struct tk_report_ask *ask, struct tk_report_set *set) {
  struct to_analysis_config config = { .blocked_after_ns = ask->blocked_after_ns,
                                       .stacks_max = ask->every_stack ? UINT32_MAX / 4
                                                                      : TO_STACKS_MAX_DEFAULT,
                                       .idle = ask->idle,
                                       .every_curve = ask->every_curve };
  struct work work = { .ask = ask, .set = set };

  tb_rc rc = to_analyses_new(&tk_mem, &config, &work.analyses);
  if (rc != TB_OK) return tk_fail(ask->verb, "%s", tb_rc_text(rc));
  tk_go_profile_init(&work.profile, ask->go_profile, &tk_mem);
  int code = run_file(&work, path, set);
  tk_go_profile_fini(&work.profile);
  to_analyses_free(work.analyses);
  return code;
}
