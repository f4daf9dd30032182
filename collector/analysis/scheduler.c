/* SPDX-License-Identifier: Apache-2.0 */
/* Streams with work are in a ring; each turn of the loop gives the first one a slice. The stream stays the first until its
 * generation is done, for some turns at most, and moves to the end then. A slice is a series of steps; the clock is read
 * after each. Streams whose reports a reader waits for are in a queue of their own, which gets half a slice of each turn. */
#include "collector/analysis/scheduler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/analysis/private.h"
#include "collector/base/logger.h"
#include "online/event/tables.h"
#include "proto/meta.pb-c.h"

enum {
  RETRY_MS = 1,
  SWEEP_NS = 2000000,
  TURNS_IN_A_ROW = 16,
  /* Memory of generations that no stream reads: at most 4 MiB and 1/16 of the share. */
  KEPT_BYTES = 4 << 20,
  KEPT_PART = 16,
};

static void on_work(uv_idle_t *handle);
static void trim_queue(struct tc__analysed *s);

static void begin_work(struct tc_scheduler *u) {
  if (!uv_is_active((uv_handle_t *)&u->retry)) uv_idle_start(&u->work, on_work);
}

static void ring_add(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;

  if (s->in_ring) return;
  s->in_ring = true;
  s->turns = 0;
  STAILQ_INSERT_TAIL(&u->ring, s, in_work);
  begin_work(u);
}

/* A begun generation goes on before others begin, so few of them are in memory and the tally seldom changes hands. A large
 * one must not hold up the others. */
static void ring_return(struct tc__analysed *s) {
  if (s->step == TC__SCHEDULER_NEXT_JOB || ++s->turns == TURNS_IN_A_ROW) {
    ring_add(s);
    return;
  }
  s->in_ring = true;
  STAILQ_INSERT_HEAD(&s->u->ring, s, in_work);
}

static struct tc__analysed *ring_take(struct tc_scheduler *u) {
  struct tc__analysed *s = STAILQ_FIRST(&u->ring);

  if (s == NULL) return NULL;
  STAILQ_REMOVE_HEAD(&u->ring, in_work);
  s->in_ring = false;
  return s;
}

static void on_retry(uv_timer_t *timer) {
  struct tc_scheduler *u = timer->data;

  uv_idle_start(&u->work, on_work);
}

static void on_wake(uv_async_t *handle) {
  struct tc_scheduler *u = handle->data;

  tc__scheduler_take_asked(u);
  if (!TAILQ_EMPTY(&u->asked)) begin_work(u);
}

static void count_time(struct tc_scheduler *u, uint64_t took) {
  tc_metric_add(&u->env.metrics->analysis_seconds_total, took);
  tc_metric_peak(&u->env.metrics->analysis_slice_max_seconds, took);
}

/* Makes one report of each stream in turn. */
static void answer_readers(struct tc_scheduler *u) {
  uint64_t began = uv_hrtime(), took = 0;
  struct tc__analysed *s;

  while (took < u->env.config->analysis_slice / 2 && (s = TAILQ_FIRST(&u->asked)) != NULL) {
    TAILQ_REMOVE(&u->asked, s, asked);
    s->in_asked = false;
    if (tc__analysed_is_due(s)) tc__analysed_report(s);
    tc__analysed_report_memory(s);
    if (tc__analysed_is_due(s)) {
      TAILQ_INSERT_TAIL(&u->asked, s, asked);
      s->in_asked = true;
    }
    took = uv_hrtime() - began;
  }
  if (took > 0) count_time(u, took);
}

/* Returns TB_END if the stream has no work left. */
static tb_rc work_on(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;
  uint64_t began = uv_hrtime(), took = 0;
  tb_rc rc = TB_OK;

  if (tc__analysed_is_due(s)) {
    tc__analysed_report(s);
    took = uv_hrtime() - began;
  }
  /* Half of the slice only: the last step may take the other half. */
  while (rc == TB_OK && !tc__analysed_is_due(s) && took < u->env.config->analysis_slice / 2) {
    rc = tc__analysed_step(s);
    took = uv_hrtime() - began;
  }
  if (s->feed != NULL) tc_feed_encoder_pause(s->feed, began + took);
  s->worked_ns += took;
  tc__analysed_report_memory(s);
  count_time(u, took);
  return rc;
}

static void wait_for_store(struct tc_scheduler *u) {
  uv_idle_stop(&u->work);
  uv_timer_start(&u->retry, on_retry, RETRY_MS, 0);
}

/* No stream has work: uses half a slice for deferred verdicts. */
static void do_late_work(struct tc_scheduler *u) {
  uint64_t began = uv_hrtime(), took = 0;
  tb_rc rc = TB_OK;

  while (rc == TB_OK && took < u->env.config->analysis_slice / 2) {
    rc = tc__late_step(u);
    took = uv_hrtime() - began;
  }
  if (rc == TB_END)
    uv_idle_stop(&u->work);
  else
    count_time(u, took);
  if (rc == TB_AGAIN) wait_for_store(u);
}

static void on_work(uv_idle_t *handle) {
  struct tc_scheduler *u = handle->data;

  answer_readers(u);
  struct tc__analysed *s = ring_take(u);
  if (s == NULL) {
    if (TAILQ_EMPTY(&u->asked)) do_late_work(u);
    return;
  }
  trim_queue(s);
  tb_rc rc = work_on(s);
  if (rc == TB_END) {
    if (s->closed) tc__analysed_forget(s);
    return;
  }
  if (rc == TB_OK)
    ring_return(s);
  else
    ring_add(s);
  if (rc == TB_AGAIN) wait_for_store(u);
}

/* A stream may queue as many generations as there is room left for all: a single stream that lags gets half of the room,
 * and later ones still find some. The end of a stream is always queued. */
static bool has_room(const struct tc__analysed *s, const struct tc_reply *stored) {
  const struct tc_scheduler *u = s->u;
  size_t left = u->waiting < u->waiting_max ? u->waiting_max - u->waiting : 0;
  size_t queue = tc__analysed_thinning_queue(s);

  if (left > queue) left = queue;
  return s->waiting < left || stored->gen == TB_NO_GEN || stored->stream_closed;
}

/* Defers the verdict until there is time. Above TC__LATE_MAX the verdict is BEHIND at once; if the store has no room for
 * that verdict either, the generation stays pending until the next start. Owns stored. */
static void leave_out(struct tc__analysed *s, struct tc_reply *stored) {
  struct tc_scheduler *u = s->u;

  s->left_out = true;
  tc_metric_add(&u->env.metrics->generations_left_out_total, 1);
  tc_log_about(s->ref, TC_WARN, "analysis",
               "service=%s instance=%s gen=%" PRIu64
               ": the analysis lags, %zu other generations wait; archived, not analysed",
               s->service, s->instance, stored->gen, s->waiting);
  if (tc__late_add(u, stored)) {
    begin_work(u);
    return;
  }
  struct tc_verdict v = { .stream = s->ref,
                          .gen = stored->gen,
                          .code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BEHIND,
                          .thread = TB_NO_THREAD,
                          .offset = TB_NO_OFFSET };
  snprintf(v.reason, sizeof v.reason,
           "the analysis lagged by %zu generations, see analysis.waiting_max", s->waiting);
  (void)!tc__verdict_submit(u, &v);
  tc_reply_free(stored);
}

/* Leaves out the oldest generations of a stream that has more of them than may wait now. */
static void trim_queue(struct tc__analysed *s) {
  bool newest_left_out = s->left_out;

  if (s->step != TC__SCHEDULER_NEXT_JOB || s->waiting < 2) return;
  size_t queue = tc__analysed_thinning_queue(s);
  if (s->waiting <= queue) return;
  while (s->waiting > queue) {
    struct tc_reply *stored = TB_MOVE(s->jobs->stored);
    tc__analysed_job_drop(s);
    leave_out(s, stored);
  }
  s->jobs->stored->new_run = true;
  s->left_out = newest_left_out;
}

static void take_stored(struct tc_scheduler *u, struct tc_reply *stored) {
  struct tc__scheduler_job *job = calloc(1, sizeof *job);
  struct tc__analysed *s;

  if (job == NULL || tc__analysed_find(u, stored, &s) != TB_OK) {
    tc_log(TC_ERROR, "analysis", "gen=%" PRIu64 ": out of memory; archived, not analysed",
           stored->gen);
    tc_reply_free(stored);
    free(job);
    return;
  }
  if (!has_room(s, stored)) {
    leave_out(s, stored);
    free(job);
    return;
  }
  stored->new_run |= s->left_out;
  s->left_out = false;
  s->waiting++;
  u->waiting++;
  if (s->jobs == NULL) {
    s->first_ns = uv_hrtime();
    s->worked_ns = 0;
  }
  job->stored = stored;
  job->stored_wall_ns = tc_wall_ns();
  *s->jobs_end = job;
  s->jobs_end = &job->next;
  tc__analysed_heard(s);
  tc_metric_add(&u->env.metrics->generations_waiting, 1);
  ring_add(s);
}

void tc_scheduler_reply(struct tc_scheduler *u, struct tc_reply *reply) {
  struct tc__analysed *s;

  if (reply->kind == TC_REPLY_STORED) {
    take_stored(u, reply);
    return;
  }
  if (u->env.feed != NULL && tc_feed_wanted(u->env.feed) &&
      tc__analysed_find(u, reply, &s) == TB_OK)
    tc_feed_encoder_reported(s->feed, reply);
  tc_reply_free(reply);
}

/* A stream whose agent vanished is treated like one that was closed: forgotten once its last reports are made. */
static void abandon(struct tc__analysed *s) {
  tc__analysed_last_reports(s);
  if (!tc__analysed_is_due(s)) {
    tc__analysed_forget(s);
    return;
  }
  s->closed = true;
  ring_add(s);
}

/* Silent streams must not use up the memory that new ones need. Above three quarters of the share a stream is abandoned
 * after three heartbeats of silence, the time after which its agent's connection is closed. */
static uint64_t patience_ns(const struct tc_scheduler *u, size_t release) {
  const struct tc_config *config = u->env.config;
  uint64_t short_ns = 3 * config->agents_heartbeat;
  bool is_crowded = u->share.bytes > release + u->share.bytes_max / 4 * 3;

  return is_crowded && short_ns < config->agents_abandon_after ? short_ns
                                                               : config->agents_abandon_after;
}

/* Starts with the longest silent. What does not fit into SWEEP_NS is left for the next tick. */
void tc_scheduler_tick(struct tc_scheduler *u) {
  uint64_t began = uv_hrtime(), abandon_after = u->env.config->agents_abandon_after;
  struct tc__analysed *late, *newer;
  size_t early = 0, release = 0;

  tc__scheduler_thinning_advance(u, began);
  while ((late = tc__scheduler_tell_late(u, began)) != NULL) ring_add(late);
  for (struct tc__analysed *s = TAILQ_FIRST(&u->by_heard); s != NULL; s = newer) {
    uint64_t silent_ns = began - s->heard_ns;
    newer = TAILQ_NEXT(s, by_heard);
    if (silent_ns < patience_ns(u, release)) break;
    if (!s->in_ring) {
      size_t bytes = s->mem.bytes, before = u->share.bytes;
      abandon(s);
      if (u->share.bytes == before) release += bytes; /* released once its reports are made */
      early += silent_ns < abandon_after;
    }
    if (uv_hrtime() - began >= SWEEP_NS) break;
  }
  if (early > 0)
    tc_log(
        TC_WARN, "analysis",
        "the memory for analyses is almost spent (analysis.memory_max): %zu silent streams are no "
        "longer reported",
        early);
}

bool tc_scheduler_is_idle(const struct tc_scheduler *u) {
  return STAILQ_EMPTY(&u->ring) && TAILQ_EMPTY(&u->asked);
}

/* Called on a reader's thread. */
static void wake(void *self) {
  struct tc_scheduler *u = self;

  uv_async_send(&u->wake);
}

/* Generations that no stream reads are charged to the share. */
static void *take_share(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct tc_scheduler *u = self;

  return tb_mem_resize(&u->share, &block, old_bytes, new_bytes) == TB_OK ? block : NULL;
}

tb_rc tc_scheduler_new(const struct tc_scheduler_env *env, struct tc_scheduler **out) {
  struct tc_scheduler *u = calloc(1, sizeof *u);

  if (u == NULL) return TB_NOMEM;
  char *idle_patterns = strdup(env->config->analysis_idle);
  u->generations = calloc(1, sizeof *u->generations);
  if (idle_patterns == NULL || u->generations == NULL ||
      tc_feed_finding_list(env->config->alert_findings, NULL, &u->findings_wanted) != TB_OK ||
      tc_report_maker_new(env->reports, wake, u, &u->maker) != TB_OK ||
      uv_async_init(env->uv, &u->wake, on_wake) != 0) {
    tc_report_maker_free(u->maker);
    free(idle_patterns);
    free(u->generations);
    free(u);
    return TB_NOMEM;
  }
  u->env = *env;
  u->idle_patterns = idle_patterns;
  STAILQ_INIT(&u->ring);
  STAILQ_INIT(&u->late.jobs);
  TAILQ_INIT(&u->by_heard);
  TAILQ_INIT(&u->asked);
  TAILQ_INIT(&u->by_reported);
  tb_mem_init(&u->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_mem_init(&u->share, tb_mem_libc, NULL,
              env->config->analysis_memory_max / env->config->top_loops);
  tb_mem_init(&u->stacks_mem, take_share, u, SIZE_MAX);
  to_analysis_room_init(&u->room, &u->mem, &u->stacks_mem);
  size_t kept_max = u->share.bytes_max / KEPT_PART;
  to_generation_pool_init(u->generations, take_share, u,
                          kept_max < KEPT_BYTES ? kept_max : KEPT_BYTES);
  u->waiting_max = env->config->analysis_waiting_max / env->config->top_loops;
  u->thinning.since_ns = u->thinning.share.since_ns = uv_hrtime();
  tb_map_init(&u->by_ref, &u->mem,
              0x9e3779b97f4a7c15u); /* the store chooses the refs: no secret needed */
  uv_idle_init(env->uv, &u->work);
  uv_timer_init(env->uv, &u->retry);
  u->work.data = u->retry.data = u->wake.data = u;
  *out = u;
  return TB_OK;
}

void tc_scheduler_close(struct tc_scheduler *u) {
  uint64_t key, value;

  tc_report_maker_free(TB_MOVE(u->maker));
  uv_close((uv_handle_t *)&u->wake, NULL);
  uv_close((uv_handle_t *)&u->work, NULL);
  uv_close((uv_handle_t *)&u->retry, NULL);
  while (ring_take(u) != NULL) {
  }
  for (size_t i = 0; tb_map_next(&u->by_ref, &i, &key, &value); i = 0)
    tc__analysed_forget((struct tc__analysed *)(uintptr_t)value);
  tc__late_drop(u);
  tc__scheduler_spare_drop(u);
  to_generation_pool_fini(u->generations);
  free(TB_MOVE(u->generations));
}

size_t tc_scheduler_late(const struct tc_scheduler *u) {
  return u->late.n;
}

void tc_scheduler_free(struct tc_scheduler *u) {
  if (u == NULL) return;
  tb_map_fini(&u->by_ref);
  to_analysis_room_fini(&u->room);
  tr_rules_release(u->rules);
  free(u->idle_patterns);
  free(u);
}

void tc_scheduler_idle_patterns(struct tc_scheduler *u, char *patterns) {
  free(u->idle_patterns);
  u->idle_patterns = patterns;
  u->idle_version++;
}
