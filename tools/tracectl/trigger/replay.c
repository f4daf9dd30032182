/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/trigger/replay.h"

#include <stdio.h>
#include <string.h>

#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_run.h"

struct stream { /* the current stream */
  struct tk_replay *replay;
  const struct tk_place *place;
  struct to_analyses *analyses;
  struct tr_watch *watch;
  uint64_t gen;
  to_ns last;
};

static void on_fired(void *self, const struct tr_fired *fired) {
  const struct stream *s = self;
  const struct tk_replay_fired out = { .fired = fired,
                                       .stream = s->place->name,
                                       .gen = s->gen,
                                       .wall_ns = to_analyses_wall(s->analyses, s->last),
                                       .time = s->last };

  s->replay->fired(s->replay->self, &out);
}

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct stream *s = self;

  s->last = events[n - 1].time;
  return to_analyses_events(s->analyses, gen, events, n);
}

static tb_rc on_generation_end(void *self, const struct to_generation *gen) {
  struct stream *s = self;

  TB_TRY(to_analyses_generation_ends(s->analyses, gen));
  s->gen = to_generation_number(gen);
  s->replay->generations++;
  return tr_watch_generation(s->watch, s->analyses, &(struct tr_fired_sink){ s, on_fired });
}

/* "SERVICE/INSTANCE/STREAM" */
struct names {
  char text[2 * TR_PATTERN_MAX + 40];
  const char *service, *instance; /* NULL: unknown */
};

static void take_names(struct names *names, const struct tk_place *place) {
  snprintf(names->text, sizeof names->text, "%s", place->name);
  char *slash = strchr(names->text, '/'), *end = strrchr(names->text, '/');
  if (slash == NULL || end == slash) return;
  *slash = *end = '\0';
  names->service = names->text;
  names->instance = slash + 1;
}

static tb_rc begin_stream(struct stream *s) {
  const struct to_analysis_config config = { .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                                             .stacks_max = TO_STACKS_MAX_DEFAULT,
                                             .is_live = true };
  struct names names = { .service = NULL };

  if (s->replay->is_remote) take_names(&names, s->place);
  s->replay->streams++;
  TB_TRY(to_analyses_new(&tk_mem, &config, &s->analyses));
  return tr_watch_new(&tk_mem, s->replay->rules, names.service, names.instance, &s->watch);
}

static void end_stream(struct stream *s) {
  tr_watch_free(TB_MOVE(s->watch));
  to_analyses_free(TB_MOVE(s->analyses));
}

static bool is_of_stream(const struct stream *s, const struct tk_place *place) {
  return s->watch != NULL && s->replay->is_remote && strcmp(s->place->name, place->name) == 0;
}

static void pass_hole(struct stream *s) {
  to_analyses_epoch(s->analyses);
  tr_watch_hole(s->watch);
}

static int run_stream(struct stream *s) {
  const struct tk_place *place = s->place;
  const struct tk_trace_ask ask = { .verb = place->verb,
                                    .path = place->path,
                                    .part = place->part.end != 0 ? &place->part : NULL,
                                    .sink = { s, on_events },
                                    .generation_ends = on_generation_end,
                                    .progress = s->replay->progress,
                                    .past_annotations = true };
  struct tk_trace_run run;
  char why[256];

  if (!tk_trace_run(&ask, &run)) return TK_FAILED;
  if (run.rc == TB_OK || run.went_past) return TK_DONE;
  tb_diag_format(&run.diag, why, sizeof why);
  return tk_fail(place->verb, "%s: %s", place->name, why);
}

int tk_replay(struct tk_replay *replay, const struct tk_place *place, size_t n) {
  struct stream s = { .replay = replay };
  int code = TK_DONE;

  for (size_t i = 0; i < n && code == TK_DONE; i++) {
    bool goes_on = is_of_stream(&s, &place[i]);
    s.place = &place[i];
    if (goes_on) {
      pass_hole(&s);
    } else {
      end_stream(&s);
      tb_rc rc = begin_stream(&s);
      if (rc != TB_OK) code = tk_fail(place[i].verb, "%s", tb_rc_text(rc));
    }
    if (code == TK_DONE) code = run_stream(&s);
  }
  end_stream(&s);
  return code;
}
