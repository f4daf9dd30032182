/* SPDX-License-Identifier: Apache-2.0 */
/* A stream with work stands in a ring; each turn of the loop gives the first one a slice and puts it
 * behind the others. A slice is a run of steps, each of some ten microseconds: feed a piece of the
 * bytes, order a few hundred events. The clock is read after every step. Packing a report takes longer
 * and begins a slice. */
#include "collector/understand.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "collector/feed_source.h"
#include "collector/journal.h"
#include "online/analysis.h"
#include "online/reader.h"
#include "proto/meta.pb-c.h"
#include "proto/report_pack.h"

enum {
  TRACE_HEADER_BYTES = 16,
  /* The batch that a piece cuts in two is copied, all others stay in the mapping. */
  FEED_BYTES = 256 << 10,
  RUN_EVENTS = 256,
  RETRY_MS = 1,
  REPORTS = TO_ANALYSIS_KINDS * TO_WINDOWS,
};
static const uint64_t report_every_ns = 1000000000;

struct job { /* one stored generation */
  struct job *next;
  struct tc_reply *stored;
  uint64_t stored_wall_ns;
};

enum step { NEXT_JOB, FEED, RUN, TELL };

struct stream {
  struct stream *next; /* in the ring */
  struct tc_understand *u;
  bool in_ring;
  uint32_t ref;
  unsigned char id[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  struct tb_mem mem;
  size_t mem_told; /* of mem.bytes, what the metric knows */
  struct tb_diag diag;
  struct to_reader *reader;
  struct to_analyses *analyses;
  struct tc_tapped *tapped;    /* NULL: no lease wants its events */
  struct tc_feed_source *feed; /* NULL: nobody is told */
  bool analyses_failed;        /* the fault was theirs, not the reader's */
  bool share_spent; /* memory was refused because all streams together have taken theirs */
  bool new_epoch;   /* ordering begins anew with the next generation */
  bool in_history;  /* its stops so far */
  bool closed;      /* its last generation has been worked through */
  uint64_t broken;
  uint64_t heard_ns, reported_ns;
  int report; /* the next to pack; REPORTS: none */

  struct job *jobs, **jobs_end;
  size_t waiting;
  bool left_out; /* the one that came last: the next begins a new epoch */
  enum step step;
  unsigned char header[TRACE_HEADER_BYTES];
  void *map; /* of the file, page aligned */
  size_t map_len;
  const unsigned char *bytes; /* the generation's */
  size_t len, fed;
  struct tc_verdict verdict;
};

struct tc_understand {
  struct tc_understand_env env;
  uv_idle_t work;
  uv_timer_t retry; /* a verdict found the store's mailbox full */
  struct tb_mem mem;
  struct tb_mem share; /* of analysis.memory_max, ours: what all streams here take together */
  struct tb_map by_ref;
  size_t waiting, waiting_max; /* generations of all streams here */
  struct stream *ring, **ring_end;
  uint64_t swept_ns;
};

static uint64_t wall_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_REALTIME, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- streams ----------------------------------------------------------------------------------- */

static void on_work(uv_idle_t *handle);

static void ring_add(struct stream *s) {
  struct tc_understand *u = s->u;

  if (s->in_ring) return;
  s->in_ring = true;
  s->next = NULL;
  *u->ring_end = s;
  u->ring_end = &s->next;
  if (!uv_is_active((uv_handle_t *)&u->retry)) uv_idle_start(&u->work, on_work);
}

static struct stream *ring_take(struct tc_understand *u) {
  struct stream *s = u->ring;

  if (s == NULL) return NULL;
  u->ring = s->next;
  if (u->ring == NULL) u->ring_end = &u->ring;
  s->in_ring = false;
  return s;
}

static void tell_memory(struct stream *s) {
  tc_metric_add(&s->u->env.metrics->analysis_bytes, s->mem.bytes - s->mem_told);
  s->mem_told = s->mem.bytes;
}

static void job_drop(struct stream *s) {
  struct job *job = s->jobs;

  s->jobs = job->next;
  if (s->jobs == NULL) s->jobs_end = &s->jobs;
  tc_reply_free(job->stored);
  free(job);
  s->waiting--;
  s->u->waiting--;
  tc_metric_sub(&s->u->env.metrics->generations_waiting, 1);
}

static void unmap(struct stream *s) {
  if (s->map != NULL) munmap(s->map, s->map_len);
  s->map = NULL;
  s->bytes = NULL;
}

static void analyses_drop(struct stream *s) {
  if (s->feed != NULL) tc_feed_source_unwatch(s->feed);
  to_analyses_free(s->analyses);
  s->analyses = NULL;
}

static void reader_drop(struct stream *s) {
  to_reader_free(s->reader);
  s->reader = NULL;
}

static void stream_forget(struct stream *s) {
  struct tc_understand *u = s->u;

  assert(!s->in_ring);
  tb_map_remove(&u->by_ref, s->ref);
  while (s->jobs != NULL) job_drop(s);
  reader_drop(s);
  analyses_drop(s);
  tc_feed_source_free(s->feed);
  tc_tapped_free(s->tapped);
  unmap(s);
  tell_memory(s);
  assert(s->mem.bytes == 0);
  tc_reports_close(u->env.reports, s->id);
  free(s);
}

/* A stream's memory is charged to it and to all streams together: each of a thousand may be within its
 * limit and the sum still more than there is. */
static void *take_share(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct stream *s = self;
  tb_rc rc = tb_mem_resize(&s->u->share, &block, old_bytes, new_bytes);

  if (rc == TB_BUDGET) s->share_spent = true;
  return rc == TB_OK ? block : NULL;
}

static tb_rc stream_make(struct tc_understand *u, const struct tc_reply *said,
                         struct stream **out) {
  struct tc_feed_source_env feed = { u->env.feed, u->env.loop, u->env.config, u->env.metrics };
  struct stream *s = calloc(1, sizeof *s);

  if (s == NULL) return TB_NOMEM;
  if (u->env.feed != NULL && tc_feed_source_new(&feed, said, &s->feed) != TB_OK) {
    free(s);
    return TB_NOMEM;
  }
  s->u = u;
  s->ref = said->stream;
  s->jobs_end = &s->jobs;
  s->report = REPORTS;
  s->reported_ns = s->heard_ns = uv_hrtime();
  tb_mem_init(&s->mem, take_share, s, u->env.config->agents_memory_max);
  memcpy(s->id, said->stream_id, sizeof s->id);
  memcpy(s->service, said->service, sizeof s->service);
  memcpy(s->instance, said->instance, sizeof s->instance);
  *out = s;
  return TB_OK;
}

static tb_rc stream_find(struct tc_understand *u, const struct tc_reply *said,
                         struct stream **out) {
  uint64_t *slot;

  TB_TRY(tb_map_put(&u->by_ref, said->stream, &slot, NULL));
  if (*slot == 0) {
    struct stream *fresh;
    tb_rc rc = stream_make(u, said, &fresh);

    if (rc != TB_OK) {
      tb_map_remove(&u->by_ref, said->stream);
      return rc;
    }
    *slot = (uintptr_t)fresh;
  }
  *out = (struct stream *)(uintptr_t)*slot;
  return TB_OK;
}

/* --- verdicts ---------------------------------------------------------------------------------- */

static Tracecollect__V1__VerdictCode code_of(tb_rc rc) {
  switch (rc) {
  case TB_OK: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
  case TB_BROKEN: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN;
  case TB_UNSUPPORTED: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNSUPPORTED;
  case TB_FUEL: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_FUEL;
  case TB_IO:
    return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING; /* nobody has seen its bytes */
  default: return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_TOO_LARGE;
  }
}

static void count_verdict(struct stream *s, tb_rc rc) {
  struct tc_metrics *m = s->u->env.metrics;

  if (rc == TB_OK)
    tc_metric_add(&m->generations_ordered_total, 1);
  else if (rc == TB_BROKEN)
    tc_metric_add(&m->generations_broken_total, 1);
  else
    tc_metric_add(&m->generations_left_out_total, 1);
  tc_metric_add(&m->events_ordered_total, s->verdict.events);
}

static void log_fault(const struct stream *s, const struct tc_reply *stored) {
  char reason[TC_ESCAPE_MAX + 1], offset[40] = "";

  if (s->verdict.offset != TB_NO_OFFSET)
    snprintf(offset, sizeof offset, " offset=%" PRIu64, s->verdict.offset);
  tc_log(TC_WARN, "understand",
         "service=%s instance=%s gen=%" PRIu64
         "%s: %s; archived as it came, analysis resumes at the next generation",
         s->service, s->instance, stored->gen, offset,
         tc_escape(reason, s->verdict.reason, strlen(s->verdict.reason)));
}

/* The leases that have this generation's events. */
static void conclude_tapped(struct stream *s, tb_rc rc) {
  if (s->tapped == NULL) return;
  tc_tapped_end(s->tapped);
  if (rc != TB_OK)
    tc_tapped_epoch(s->tapped);
  else if (to_reader_version(s->reader) < 25)
    tc_tapped_clock(s->tapped, s->verdict.last_ns, s->jobs->stored_wall_ns);
}

/* The generation is worked through, one way or the other. */
static void conclude(struct stream *s, tb_rc rc) {
  const struct tc_reply *stored = s->jobs->stored;
  struct tc_verdict *v = &s->verdict;

  v->stream = s->ref;
  v->gen = stored->gen;
  v->code = code_of(rc);
  v->thread = TB_NO_THREAD;
  count_verdict(s, rc);
  conclude_tapped(s, rc);
  if (rc == TB_OK) {
    /* From 1.25 on each generation says itself what time it was. */
    if (to_reader_version(s->reader) < 25)
      to_analyses_clock(s->analyses, v->last_ns, s->jobs->stored_wall_ns);
  } else {
    v->thread = s->diag.thread;
    /* The reader counts from the header it was fed; the generation may lie further on. */
    v->offset = s->diag.offset;
    if (v->offset != TB_NO_OFFSET && v->offset >= TRACE_HEADER_BYTES)
      v->offset += stored->offset - TRACE_HEADER_BYTES;
    snprintf(v->reason, sizeof v->reason, "%s",
             rc == TB_NOMEM && s->share_spent ? "analysis.memory_max is reached by all streams"
             : s->diag.text[0] != '\0'        ? s->diag.text
                                              : tb_rc_text(rc));
    log_fault(s, stored);
    s->broken++;
    if (rc != TB_BROKEN) reader_drop(s); /* what grew too large must not stay */
    if (s->analyses_failed) {
      analyses_drop(s);
      s->analyses_failed = false;
    }
    if (s->analyses != NULL) to_analyses_epoch(s->analyses);
    s->new_epoch = true;
  }
  if (s->feed != NULL) {
    tc_feed_source_overdue(s->feed);
    tc_feed_source_end(s->feed, v);
  }
  unmap(s);
  s->step = TELL;
}

/* --- steps ------------------------------------------------------------------------------------- */

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct stream *s = self;
  tb_rc rc;

  if (s->verdict.events == 0) s->verdict.first_ns = events[0].time;
  s->verdict.last_ns = events[n - 1].time;
  s->verdict.events += n;
  if (TB_UNLIKELY(s->tapped != NULL)) tc_tapped_events(s->tapped, gen, events, n);
  rc = to_analyses_events(s->analyses, gen, events, n);
  if (rc != TB_OK) s->analyses_failed = true;
  if (s->feed != NULL) tc_feed_source_slice(s->feed);
  return rc;
}

static tb_rc map_generation(struct stream *s, const struct tc_reply *stored) {
  int fd = s->u->env.open_file(s->u->env.files, stored);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint64_t from = stored->offset & ~(uint64_t)(page - 1);
  struct stat st;
  tb_rc rc = TB_OK;

  if (fd < 0) return tb_fail(&s->diag, TB_IO, "%s: %s", stored->path, strerror(errno));
  /* Behind the end of a file the mapping would answer with SIGBUS. */
  if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < stored->offset + stored->len ||
      pread(fd, s->header, sizeof s->header, 0) != sizeof s->header) {
    rc = tb_fail(&s->diag, TB_IO, "%s: shorter than it was stored", stored->path);
  } else {
    s->map_len = (size_t)(stored->offset + stored->len - from);
    s->map = mmap(NULL, s->map_len, PROT_READ, MAP_SHARED, fd, (off_t)from);
    if (s->map == MAP_FAILED) {
      s->map = NULL;
      rc = tb_fail(&s->diag, TB_IO, "%s: %s", stored->path, strerror(errno));
    } else {
      (void)madvise(s->map, s->map_len, MADV_SEQUENTIAL);
      (void)madvise(s->map, s->map_len, MADV_WILLNEED);
      s->bytes = (const unsigned char *)s->map + (stored->offset - from);
      s->len = (size_t)stored->len;
    }
  }
  close(fd);
  return rc;
}

static tb_rc prepare_analysis(struct stream *s) {
  const struct tc_config *config = s->u->env.config;
  struct to_analysis_config analysis = { .blocked_after_ns = (to_ns)config->syscall_blocked_after,
                                         .stacks_max = config->analysis_stacks_max };
  struct to_limits limits = { .generation_bytes_max = config->agents_generation_bytes_max };
  struct to_event_sink sink = { s, on_events };

  if (s->analyses == NULL) {
    TB_TRY(to_analyses_new(&s->mem, &analysis, &s->analyses));
    if (s->feed != NULL) tc_feed_source_watch(s->feed, s->analyses);
  }
  if (s->reader == NULL)
    TB_TRY(to_reader_new(&s->mem, &limits, TO_READER_BYTES_STAY, sink, &s->diag, &s->reader));
  return to_reader_begin(s->reader); /* the first segment, too, must not end with a last Sync */
}

static tb_rc begin_generation(struct stream *s) {
  const struct tc_reply *stored = s->jobs->stored;
  const struct tc_tapped_about about = { s->id, s->service, s->instance };
  size_t used;

  tc_tap_begin(s->u->env.tap, &about, &s->tapped);
  s->fed = 0;
  s->share_spent = false;
  s->verdict = (struct tc_verdict){ .offset = TB_NO_OFFSET };
  tb_diag_clear(&s->diag);
  if (s->feed != NULL) tc_feed_source_begin(s->feed, stored, stored->new_run || s->new_epoch);
  s->new_epoch = false;
  if (stored->len > s->u->env.config->agents_generation_bytes_max)
    return tb_fail(&s->diag, TB_BUDGET, "generation of %" PRIu64 " bytes, limit %" PRIu64,
                   stored->len, s->u->env.config->agents_generation_bytes_max);
  if (stored->new_run) {
    if (s->reader != NULL) to_reader_epoch(s->reader);
    if (s->analyses != NULL) to_analyses_epoch(s->analyses);
    if (s->tapped != NULL) tc_tapped_epoch(s->tapped);
  }
  TB_TRY(map_generation(s, stored));
  TB_TRY(prepare_analysis(s));
  return to_reader_feed(s->reader, s->header, sizeof s->header, &used);
}

static void step_next_job(struct stream *s) {
  tb_rc rc;

  if (s->jobs->stored->gen == TB_NO_GEN) { /* the stream ended: nothing more to order */
    s->step = TELL;
    return;
  }
  rc = begin_generation(s);
  s->step = FEED;
  if (rc != TB_OK) conclude(s, rc);
}

static void step_feed(struct stream *s) {
  size_t used = 0, part = s->len - s->fed < FEED_BYTES ? s->len - s->fed : FEED_BYTES;
  tb_rc rc = part > 0 ? to_reader_feed(s->reader, s->bytes + s->fed, part, &used)
                      : to_reader_finish(s->reader);

  if (rc == TB_OK && part > 0) used = part;
  s->fed += used;
  if (rc == TB_AGAIN)
    s->step = RUN;
  else if (rc != TB_OK || part == 0)
    conclude(s, rc);
}

static void step_run(struct stream *s) {
  tb_rc rc = to_reader_run(s->reader, RUN_EVENTS);

  if (rc == TB_OK)
    s->step = FEED;
  else if (rc != TB_AGAIN)
    conclude(s, rc);
}

/* False: the store has no room now. */
static bool step_tell(struct stream *s) {
  struct tc_understand *u = s->u;
  struct tc_submit *msg;

  if (s->jobs->stored->gen != TB_NO_GEN &&
      s->verdict.code != TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING) {
    msg = tc_submit_new(TC_SUBMIT_VERDICT);
    if (msg == NULL) return false;
    msg->loop = u->env.loop;
    msg->verdict = s->verdict;
    if (!u->env.store.submit(u->env.store.self, msg)) {
      tc_submit_free(msg);
      return false;
    }
  }
  s->step = NEXT_JOB;
  s->heard_ns = uv_hrtime();
  /* A stream that lags shows itself once a second; one that keeps up after each generation. */
  if (s->jobs->next == NULL || s->heard_ns - s->reported_ns >= report_every_ns) s->report = 0;
  s->closed = s->jobs->stored->stream_closed;
  job_drop(s);
  return true;
}

static void step_report(struct stream *s) {
  struct tc_understand *u = s->u;
  /* Kind by kind in each window: the second of a window finds it summed. */
  enum to_analysis_kind kind = (enum to_analysis_kind)(s->report % TO_ANALYSIS_KINDS);
  enum to_window window = (enum to_window)(s->report / TO_ANALYSIS_KINDS);
  struct tp_report_about about = { s->id, s->service, s->instance, s->broken };
  struct tb_buf buf;
  tb_rc rc;

  s->report++;
  if (s->analyses == NULL) return;
  tb_buf_init(&buf, &s->mem);
  rc = tp_report_pack(s->analyses, kind, window, TP_REPORT_ROWS_LIVE, &about, &buf);
  if (rc == TB_OK) {
    struct tc_report report = {
      .stream = s->id,
      .service = s->service,
      .instance = s->instance,
      .kind = to_analysis_name(kind),
      .window = to_window_name(window),
      .bytes = buf.data,
      .len = buf.len,
    };
    rc = tc_reports_publish(u->env.reports, &report);
    if (kind == TO_ANALYSIS_STW && window == TO_WINDOW_ALL) {
      struct tc_history_of of = { s->id, s->service, s->instance, !s->in_history };
      tc_history_stops(u->env.history, &of, to_analyses_last_report(s->analyses), wall_ns());
      s->in_history = true;
    }
    if (s->feed != NULL) tc_feed_source_report(s->feed, kind, window, s->broken, buf.data, buf.len);
  }
  if (rc != TB_OK) tc_metric_add(&u->env.metrics->reports_refused_total, 1);
  tb_buf_fini(&buf);
  if (s->report == REPORTS) s->reported_ns = uv_hrtime();
}

/* One step. TB_OK: go on; TB_AGAIN: the store must make room first; TB_END: no work left. */
static tb_rc stream_step(struct stream *s) {
  if (s->jobs == NULL) return TB_END;
  switch (s->step) {
  case NEXT_JOB: step_next_job(s); break;
  case FEED: step_feed(s); break;
  case RUN:
    step_run(s);
    if (s->step == RUN && uv_hrtime() - s->reported_ns >= report_every_ns) {
      s->report = 0;
      if (s->feed != NULL) tc_feed_source_overdue(s->feed);
    }
    break;
  case TELL: return step_tell(s) ? TB_OK : TB_AGAIN;
  }
  return TB_OK;
}

/* --- slices ------------------------------------------------------------------------------------ */

static void on_retry(uv_timer_t *timer) {
  struct tc_understand *u = timer->data;

  uv_idle_start(&u->work, on_work);
}

static void on_work(uv_idle_t *handle) {
  struct tc_understand *u = handle->data;
  struct stream *s = ring_take(u);
  uint64_t began = uv_hrtime(), took = 0;
  tb_rc rc = TB_OK;

  if (s == NULL) {
    uv_idle_stop(&u->work);
    return;
  }
  if (s->report < REPORTS) {
    step_report(s);
    took = uv_hrtime() - began;
  }
  /* The other half is for the step that was begun last. */
  while (rc == TB_OK && s->report == REPORTS && took < u->env.config->analysis_slice / 2) {
    rc = stream_step(s);
    took = uv_hrtime() - began;
  }
  if (s->feed != NULL) tc_feed_source_pause(s->feed, began + took);
  tell_memory(s);
  tc_metric_add(&u->env.metrics->analysis_seconds_total, took);
  tc_metric_peak(&u->env.metrics->analysis_slice_max_seconds, took);
  if (rc == TB_END) {
    if (s->closed) stream_forget(s);
    return;
  }
  ring_add(s);
  if (rc != TB_AGAIN) return;
  uv_idle_stop(&u->work);
  uv_timer_start(&u->retry, on_retry, RETRY_MS, 0);
}

/* --- public ------------------------------------------------------------------------------------ */

/* A stream may have as many waiting as there is room left for all: the only one that lags gets half of
 * it, and whoever comes then finds room. The word that a stream has ended always gets through. */
static bool has_room(const struct stream *s, const struct tc_reply *stored) {
  const struct tc_understand *u = s->u;
  size_t left = u->waiting < u->waiting_max ? u->waiting_max - u->waiting : 0;

  return s->waiting < left || stored->gen == TB_NO_GEN || stored->stream_closed;
}

/* If the store has no room for the verdict either, the generation stays pending until the next start. */
static void leave_out(struct stream *s, const struct tc_reply *stored) {
  struct tc_understand *u = s->u;
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);

  s->left_out = true;
  tc_metric_add(&u->env.metrics->generations_left_out_total, 1);
  tc_log(TC_WARN, "understand",
         "service=%s instance=%s gen=%" PRIu64
         ": %zu generations wait before it; archived, not analysed",
         s->service, s->instance, stored->gen, s->waiting);
  if (msg == NULL) return;
  msg->loop = u->env.loop;
  msg->verdict = (struct tc_verdict){ .stream = s->ref,
                                      .gen = stored->gen,
                                      .code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BEHIND,
                                      .thread = TB_NO_THREAD,
                                      .offset = TB_NO_OFFSET };
  snprintf(msg->verdict.reason, sizeof msg->verdict.reason,
           "the analysis lagged by %zu generations, see analysis.waiting_max", s->waiting);
  if (!u->env.store.submit(u->env.store.self, msg)) tc_submit_free(msg);
}

static void take_stored(struct tc_understand *u, struct tc_reply *stored) {
  struct job *job = calloc(1, sizeof *job);
  struct stream *s;

  if (job == NULL || stream_find(u, stored, &s) != TB_OK) {
    tc_log(TC_ERROR, "understand", "gen=%" PRIu64 ": out of memory; archived, not analysed",
           stored->gen);
    tc_reply_free(stored);
    free(job);
    return;
  }
  if (!has_room(s, stored)) {
    leave_out(s, stored);
    tc_reply_free(stored);
    free(job);
    return;
  }
  stored->new_run |= s->left_out;
  s->left_out = false;
  s->waiting++;
  u->waiting++;
  job->stored = stored;
  job->stored_wall_ns = wall_ns();
  *s->jobs_end = job;
  s->jobs_end = &job->next;
  s->heard_ns = uv_hrtime();
  tc_metric_add(&u->env.metrics->generations_waiting, 1);
  ring_add(s);
}

void tc_understand_reply(struct tc_understand *u, struct tc_reply *reply) {
  struct stream *s;

  if (reply->kind == TC_REPLY_STORED) {
    take_stored(u, reply);
    return;
  }
  if (u->env.feed != NULL && tc_feed_wanted(u->env.feed) && stream_find(u, reply, &s) == TB_OK)
    tc_feed_source_told(s->feed, reply);
  tc_reply_free(reply);
}

/* Streams that ended without a word. */
void tc_understand_tick(struct tc_understand *u) {
  uint64_t now = uv_hrtime(), key, value;

  if (now - u->swept_ns < report_every_ns) return;
  u->swept_ns = now;
  for (size_t i = 0; tb_map_next(&u->by_ref, &i, &key, &value);) {
    struct stream *s = (struct stream *)(uintptr_t)value;

    if (s->in_ring || now - s->heard_ns < u->env.config->agents_abandon_after) continue;
    stream_forget(s);
    return; /* the map has changed: others go at the next tick */
  }
}

bool tc_understand_is_idle(const struct tc_understand *u) {
  return u->ring == NULL;
}

tb_rc tc_understand_new(const struct tc_understand_env *env, struct tc_understand **out) {
  struct tc_understand *u = calloc(1, sizeof *u);

  if (u == NULL) return TB_NOMEM;
  u->env = *env;
  u->ring_end = &u->ring;
  tb_mem_init(&u->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_mem_init(&u->share, tb_mem_libc, NULL,
              env->config->analysis_memory_max / env->config->top_loops);
  u->waiting_max = env->config->analysis_waiting_max / env->config->top_loops;
  tb_map_init(&u->by_ref, &u->mem,
              0x9e3779b97f4a7c15u); /* refs are the store's: no secret needed */
  uv_idle_init(env->uv, &u->work);
  uv_timer_init(env->uv, &u->retry);
  u->work.data = u->retry.data = u;
  *out = u;
  return TB_OK;
}

void tc_understand_close(struct tc_understand *u) {
  uint64_t key, value;

  uv_close((uv_handle_t *)&u->work, NULL);
  uv_close((uv_handle_t *)&u->retry, NULL);
  while (ring_take(u) != NULL) {
  }
  for (size_t i = 0; tb_map_next(&u->by_ref, &i, &key, &value); i = 0)
    stream_forget((struct stream *)(uintptr_t)value);
}

void tc_understand_free(struct tc_understand *u) {
  if (u == NULL) return;
  tb_map_fini(&u->by_ref);
  free(u);
}
