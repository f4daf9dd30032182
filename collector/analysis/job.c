/* SPDX-License-Identifier: Apache-2.0 */
/* Works on a generation in steps of some ten microseconds: feed a piece of its bytes, or order some hundred
 * events. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/clock.h"
#include "collector/analysis/private.h"
#include "collector/base/logger.h"
#include "proto/meta.pb-c.h"
#include "wire/batch.h"

enum {
  READ_BYTES = 1 << 20,
  FEED_BYTES = 256 << 10,
  RUN_EVENTS = 512,
  BYTES_PART = 4, /* the bytes of all generations in work may take 1/4 of the share */
};

/* --- verdicts ---------------------------------------------------------------------------------- */

static Tracecollect__V1__VerdictCode code_of(tb_rc rc) {
  switch (rc) {
  case TB_OK: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
  case TB_BROKEN: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN;
  case TB_UNSUPPORTED: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNSUPPORTED;
  case TB_FUEL: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_FUEL;
  case TB_IO: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING; /* the bytes were not read */
  case TB_CORRUPT: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNREADABLE;
  default: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_TOO_LARGE;
  }
}

void tc__verdict_say(struct tc_verdict *v, tb_rc rc, const struct tb_diag *diag,
                     const struct tc_reply *stored) {
  v->code = code_of(rc);
  v->thread = TB_NO_THREAD;
  if (rc == TB_OK) return;
  v->thread = diag->thread;
  /* The reader counts from the header it was fed; in the file the generation may begin further on. */
  v->offset = diag->offset;
  if (v->offset != TB_NO_OFFSET && v->offset >= TC__SCHEDULER_HEADER_BYTES)
    v->offset += stored->offset - TC__SCHEDULER_HEADER_BYTES;
  snprintf(v->reason, sizeof v->reason, "%s", diag->text[0] != '\0' ? diag->text : tb_rc_text(rc));
}

bool tc__verdict_submit(const struct tc_scheduler *u, const struct tc_verdict *v) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);

  if (msg == NULL) return false;
  msg->loop = u->env.loop;
  msg->verdict = *v;
  if (u->env.store.submit(u->env.store.self, msg)) return true;
  tc_submit_free(msg);
  return false;
}

static void count_verdict(struct tc__analysed *s, tb_rc rc) {
  struct tc_metrics *m = s->u->env.metrics;

  if (rc == TB_OK)
    tc_metric_add(&m->generations_ordered_total, 1);
  else if (rc == TB_BROKEN)
    tc_metric_add(&m->generations_broken_total, 1);
  else
    tc_metric_add(&m->generations_left_out_total, 1);
  tc_metric_add(&m->events_ordered_total, s->delivered);
}

static void log_fault(const struct tc__analysed *s, const struct tc_reply *stored) {
  char reason[TC_ESCAPE_MAX + 1], offset[40] = "";

  if (s->verdict.offset != TB_NO_OFFSET)
    snprintf(offset, sizeof offset, " offset=%" PRIu64, s->verdict.offset);
  tc_log_about(s->ref, TC_WARN, "analysis",
               "service=%s instance=%s gen=%" PRIu64
               "%s: %s; archived as it came, analysis resumes at the next generation",
               s->service, s->instance, stored->gen, offset,
               tc_escape(reason, s->verdict.reason, strlen(s->verdict.reason)));
}

/* End of a generation without a clock snapshot (before Go 1.25): as sent by the agent, else the time of arrival. */
static uint64_t end_wall_ns(const struct tc__analysed *s) {
  uint64_t said = s->jobs->stored->end_wall_ns;

  return said != 0 ? said : s->jobs->stored_wall_ns;
}

/* Ends the generation for the leases that receive its events. */
static void conclude_tapped(struct tc__analysed *s, tb_rc rc) {
  if (s->tapped == NULL) return;
  tc_tap_event_end(s->tapped);
  if (rc != TB_OK)
    tc_tap_event_epoch(s->tapped);
  else if (to_reader_version(s->reader) < 25)
    tc_tap_event_clock(s->tapped, s->verdict.last_ns, end_wall_ns(s));
}

static void go_on_to_tell(struct tc__analysed *s) {
  bool keeps = tc__analysed_keeps(s, s->jobs->stored->stream_closed);

  s->step = keeps ? TC__SCHEDULER_KEEP : TC__SCHEDULER_TELL;
}

/* Wrong annotations make a generation broken, but it is still analysed. */
static void log_misannotated(const struct tc__analysed *s, const struct tc_reply *stored) {
  char reason[TC_ESCAPE_MAX + 1];

  tc_log_about(s->ref, TC_WARN, "analysis",
               "service=%s instance=%s gen=%" PRIu64 " offset=%" PRIu64
               ": %s; Go's tools refuse it; analysed without the regions of that goroutine",
               s->service, s->instance, stored->gen, s->verdict.offset,
               tc_escape(reason, s->verdict.reason, strlen(s->verdict.reason)));
}

/* Ends the work on a generation; rc: how it went. */
static void conclude(struct tc__analysed *s, tb_rc rc) {
  const struct tc_reply *stored = s->jobs->stored;
  const struct tb_diag *wrong = rc == TB_OK ? to_reader_misannotated(s->reader) : NULL;
  struct tc_verdict *v = &s->verdict;

  v->stream = s->ref;
  v->gen = stored->gen;
  if (s->begun) v->events = to_reader_written(s->reader) - s->written_before;
  tc__verdict_say(v, wrong != NULL ? wrong->rc : rc, wrong != NULL ? wrong : &s->diag, stored);
  count_verdict(s, wrong != NULL ? wrong->rc : rc);
  tc__analysed_thinning_end(s);
  if (wrong != NULL) log_misannotated(s, stored);
  conclude_tapped(s, rc);
  if (rc == TB_OK) {
    /* From Go 1.25 on each generation has a clock snapshot of its own. */
    if (to_reader_version(s->reader) < 25)
      to_analyses_clock(s->analyses, v->last_ns, end_wall_ns(s));
  } else {
    if (rc == TB_NOMEM && s->share_spent)
      strcpy(v->reason, "analysis.memory_max is reached by all streams");
    log_fault(s, stored);
    s->broken++;
    if (rc != TB_BROKEN) tc__analysed_reader_drop(s); /* may have grown too large */
    if (s->analyses_failed) {
      tc__analysed_pass_exceeded(s, v->gen); /* they lend stacks */
      tc__analysed_analyses_drop(s);
      s->analyses_failed = false;
    }
    if (s->analyses != NULL) to_analyses_epoch(s->analyses);
    s->new_epoch = true;
  }
  if (s->feed != NULL) tc_feed_encoder_overdue(s->feed);
  tc__analysed_pass_exceeded(s, v->gen);
  if (rc == TB_OK) {
    tc__analysed_findings(s, v);
    tc__analysed_look(s, v);
    tc__analysed_kept_see(s, v->last_ns);
  } else {
    tc__analysed_look_at_hole(s);
  }
  if (s->feed != NULL) tc_feed_encoder_end(s->feed, v);
  if (s->reader != NULL) to_reader_rest(s->reader);
  tc__analysed_bytes_drop(s);
  go_on_to_tell(s);
}

/* --- steps ------------------------------------------------------------------------------------- */

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct tc__analysed *s = self;
  tb_rc rc;

  if (s->verdict.last_ns == 0) s->verdict.first_ns = events[0].time;
  s->verdict.last_ns = events[n - 1].time;
  s->delivered += n;
  if (TB_UNLIKELY(s->tapped != NULL)) tc_tap_event_events(s->tapped, gen, events, n);
  rc = to_analyses_events(s->analyses, gen, events, n);
  if (rc != TB_OK) s->analyses_failed = true;
  if (s->feed != NULL) tc_feed_encoder_slice(s->feed);
  return rc;
}

static tb_rc on_end(void *self, const struct to_generation *gen) {
  struct tc__analysed *s = self;
  tb_rc rc = to_analyses_generation_ends(s->analyses, gen);

  if (rc != TB_OK) s->analyses_failed = true;
  return rc;
}

static tb_rc take_bytes(struct tc__analysed *s, uint64_t len) {
  struct tc_scheduler *u = s->u;
  void *bytes = u->spare;
  tb_rc rc = TB_OK;

  s->room = u->spare_bytes;
  if (len > u->spare_bytes) {
    tc__scheduler_spare_drop(u);
    bytes = NULL;
    s->room = (size_t)len;
    rc = tb_mem_resize(&u->share, &bytes, 0, s->room);
  }
  if (rc == TB_BUDGET) s->share_spent = true;
  if (rc != TB_OK) return TB_NOMEM;
  u->spare = NULL;
  u->spare_bytes = 0;
  s->bytes = bytes;
  s->len = (size_t)len;
  s->u->bytes_held += s->len;
  return TB_OK;
}

/* Passes the version on even if it is not supported. */
static void say_version(struct tc__analysed *s) {
  struct tb_diag ignored;
  unsigned version = 0;
  size_t used;

  if (s->feed == NULL) return;
  tb_diag_clear(&ignored);
  if (tw_header_read(s->header, sizeof s->header, &ignored, &version, &used) == TB_AGAIN) return;
  if (version != 0) tc_feed_encoder_version(s->feed, version);
}

/* read(), not mmap(): a read error in a mapping is a SIGBUS, which would kill the process again after each
 * restart. */
static tb_rc open_generation(struct tc__analysed *s, const struct tc_reply *stored) {
  s->have = 0;
  s->fd = s->u->env.open_file(s->u->env.files, stored);
  if (s->fd < 0) return tb_fail(&s->diag, TB_IO, "%s: %s", stored->path, strerror(errno));
  if (tc_read_all(s->fd, s->header, sizeof s->header, 0) != 0)
    return tb_fail(&s->diag, TB_CORRUPT, "%s: the header cannot be read: %s", stored->path,
                   strerror(errno));
  say_version(s);
  (void)posix_fadvise(s->fd, (off_t)stored->offset, (off_t)stored->len, POSIX_FADV_WILLNEED);
  return take_bytes(s, stored->len);
}

static tb_rc prepare_analysis(struct tc__analysed *s) {
  const struct tc_config *config = s->u->env.config;
  struct to_analysis_config analysis = { .blocked_after_ns = (to_ns)config->syscall_blocked_after,
                                         .stacks_max = config->analysis_stacks_max,
                                         .room = &s->u->room,
                                         .is_live = true,
                                         .has_stretches =
                                             s->u->env.kept != NULL && config->reports_every != 0,
                                         .was_leak = tc__analysed_was_leak,
                                         .self = s,
                                         .idle = s->u->idle_patterns };
  struct to_limits limits = { .generation_bytes_max = config->agents_generation_bytes_max };
  struct to_event_sink sink = { s, on_events };

  if (s->analyses == NULL) {
    TB_TRY(to_analyses_new(&s->mem, &analysis, &s->analyses));
    if (s->feed != NULL) tc_feed_encoder_watch(s->feed, s->analyses);
  } else if (s->idle_version != s->u->idle_version) {
    TB_TRY(to_analyses_idle(s->analyses, s->u->idle_patterns));
  }
  s->idle_version = s->u->idle_version;
  if (s->reader == NULL) {
    TB_TRY(to_reader_new(&s->mem, &limits, TO_READER_BYTES_STAY | TO_READER_PAST_ANNOTATIONS, sink,
                         &s->diag, &s->reader));
    to_reader_share(s->reader, s->u->generations);
    to_reader_on_end(s->reader, s, on_end);
  }
  return to_reader_begin(s->reader); /* the first segment, too, must not end with a last Sync */
}

static tb_rc begin_generation(struct tc__analysed *s) {
  const struct tc_reply *stored = s->jobs->stored;
  const struct tc_tap_event_about about = { s->id, s->service, s->instance };
  size_t used;

  tc_event_tap_begin(s->u->env.tap, &about, &s->tapped);
  s->fed = 0;
  s->share_spent = false;
  s->verdict = (struct tc_verdict){ .offset = TB_NO_OFFSET };
  s->begun = s->thins = false;
  s->delivered = 0;
  tb_diag_clear(&s->diag);
  if (s->feed != NULL) tc_feed_encoder_begin(s->feed, stored, stored->new_run || s->new_epoch);
  s->new_epoch = false;
  if (stored->len > s->u->env.config->agents_generation_bytes_max)
    return tb_fail(&s->diag, TB_BUDGET, "generation of %" PRIu64 " bytes, limit %" PRIu64,
                   stored->len, s->u->env.config->agents_generation_bytes_max);
  if (stored->new_run) {
    if (s->reader != NULL) to_reader_epoch(s->reader);
    if (s->analyses != NULL) to_analyses_epoch(s->analyses);
    if (s->tapped != NULL) tc_tap_event_epoch(s->tapped);
    tc__analysed_look_at_hole(s);
  }
  tc__analysed_thinning_begin(s);
  TB_TRY(open_generation(s, stored));
  TB_TRY(prepare_analysis(s));
  to_analyses_thin(s->analyses, s->thins);
  s->begun = true;
  s->written_before = to_reader_written(s->reader);
  return to_reader_feed(s->reader, s->header, sizeof s->header, &used);
}

/* Each stream in work holds the bytes of its generation. Beyond BYTES_PART of the share a generation waits for
 * others to end, but if none is in work it always begins. */
static bool has_room_for_bytes(struct tc__analysed *s, uint64_t len) {
  struct tc_scheduler *u = s->u;
  size_t max = u->share.bytes_max / BYTES_PART;

  if (u->first_in_line != NULL && u->first_in_line != s) return false;
  bool has_room = u->bytes_held == 0 || (u->bytes_held < max && len <= max - u->bytes_held);
  u->first_in_line = has_room ? NULL : s;
  return has_room;
}

/* Returns TB_BUDGET if other streams must end a generation first. */
static tb_rc step_next_job(struct tc__analysed *s) {
  const struct tc_reply *stored = s->jobs->stored;

  if (stored->gen == TB_NO_GEN) { /* end of the stream: nothing to order */
    go_on_to_tell(s);
    return TB_OK;
  }
  if (!has_room_for_bytes(s, stored->len)) return TB_BUDGET;
  s->step = TC__SCHEDULER_READ;
  tb_rc rc = begin_generation(s);
  if (rc != TB_OK) conclude(s, rc);
  return TB_OK;
}

static void step_read(struct tc__analysed *s) {
  const struct tc_reply *stored = s->jobs->stored;
  size_t n = s->len - s->have < READ_BYTES ? s->len - s->have : READ_BYTES;
  uint64_t from = stored->offset + s->have;

  if (tc_read_all(s->fd, s->bytes + s->have, n, from) != 0) {
    conclude(s, tb_fail(&s->diag, TB_CORRUPT,
                        "%s: %zu bytes from offset %" PRIu64 " on cannot be read: %s", stored->path,
                        n, from, strerror(errno)));
    return;
  }
  s->have += n;
  if (s->have < s->len) return;
  close(s->fd);
  s->fd = -1;
  s->step = TC__SCHEDULER_FEED;
}

static void step_feed(struct tc__analysed *s) {
  size_t used = 0, left = s->len - s->fed;
  tb_rc rc = left > 0 ? to_reader_feed_some(s->reader, s->bytes + s->fed, left, FEED_BYTES, &used)
                      : to_reader_finish(s->reader);

  s->fed += used;
  if (rc == TB_AGAIN)
    s->step = TC__SCHEDULER_RUN;
  else if (rc != TB_OK || left == 0)
    conclude(s, rc);
}

static void step_run(struct tc__analysed *s) {
  tb_rc rc = to_reader_run(s->reader, RUN_EVENTS);

  if (rc == TB_OK)
    s->step = TC__SCHEDULER_FEED;
  else if (rc != TB_AGAIN)
    conclude(s, rc);
}

/* Returns false if the store has no room now. */
static bool step_report(struct tc__analysed *s) {
  if (s->jobs->stored->gen != TB_NO_GEN &&
      s->verdict.code != TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING &&
      !tc__verdict_submit(s->u, &s->verdict))
    return false;
  s->step = TC__SCHEDULER_NEXT_JOB;
  s->heard_ns = uv_hrtime();
  s->closed = s->jobs->stored->stream_closed;
  tc__analysed_job_drop(s);
  tc__analysed_news(s);
  if (s->closed) tc__analysed_last_reports(s);
  return true;
}

tb_rc tc__analysed_step(struct tc__analysed *s) {
  if (s->jobs == NULL) return TB_END;
  switch (s->step) {
  case TC__SCHEDULER_NEXT_JOB: return step_next_job(s);
  case TC__SCHEDULER_READ: step_read(s); break;
  case TC__SCHEDULER_FEED: step_feed(s); break;
  case TC__SCHEDULER_RUN:
    step_run(s);
    if (s->step == TC__SCHEDULER_RUN && uv_hrtime() - s->reported_ns >= TC__SCHEDULER_REPORT_NS) {
      tc__analysed_news(s);
      if (s->feed != NULL) tc_feed_encoder_overdue(s->feed);
    }
    break;
  case TC__SCHEDULER_KEEP:
    if (tc__analysed_keep(s)) s->step = TC__SCHEDULER_TELL;
    break;
  case TC__SCHEDULER_TELL: return step_report(s) ? TB_OK : TB_AGAIN;
  }
  return TB_OK;
}
