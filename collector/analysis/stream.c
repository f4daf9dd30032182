/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/analysis/private.h"

void tc__analysed_report_memory(struct tc__analysed *s) {
  size_t bytes = s->mem.bytes + (s->bytes != NULL ? s->len : 0), shared = s->u->stacks_mem.bytes;

  tc_metric_add(&s->u->env.metrics->analysis_bytes,
                bytes - s->mem_reported + shared - s->u->stacks_reported);
  s->mem_reported = bytes;
  s->u->stacks_reported = shared;
}

void tc__analysed_job_drop(struct tc__analysed *s) {
  struct tc__scheduler_job *job = s->jobs;

  s->jobs = job->next;
  if (s->jobs == NULL) s->jobs_end = &s->jobs;
  s->first_ns = uv_hrtime();
  s->worked_ns = 0;
  tc_reply_free(job->stored);
  free(job);
  s->waiting--;
  s->u->waiting--;
  tc_metric_sub(&s->u->env.metrics->generations_waiting, 1);
}

void tc__analysed_bytes_drop(struct tc__analysed *s) {
  if (s->fd >= 0) close(s->fd);
  s->fd = -1;
  if (s->bytes == NULL) return;
  s->u->bytes_held -= s->len;
  if (s->room <= TC__SCHEDULER_SPARE_BYTES && s->room <= s->u->share.bytes_max / 16 &&
      s->room > s->u->spare_bytes) {
    tc__scheduler_spare_drop(s->u);
    s->u->spare = s->bytes;
    s->u->spare_bytes = s->room;
  } else {
    tb_mem_free(&s->u->share, s->bytes, s->room);
  }
  s->bytes = NULL;
}

void tc__scheduler_spare_drop(struct tc_scheduler *u) {
  tb_mem_free(&u->share, u->spare, u->spare_bytes);
  u->spare = NULL;
  u->spare_bytes = 0;
}

void tc__analysed_analyses_drop(struct tc__analysed *s) {
  if (s->feed != NULL) tc_feed_encoder_unwatch(s->feed);
  to_analyses_free(s->analyses);
  s->analyses = NULL;
}

void tc__analysed_reader_drop(struct tc__analysed *s) {
  to_reader_free(s->reader);
  s->reader = NULL;
}

static void heard_add(struct tc__analysed *s) {
  s->heard_ns = uv_hrtime();
  TAILQ_INSERT_TAIL(&s->u->by_heard, s, by_heard);
}

void tc__analysed_heard(struct tc__analysed *s) {
  TAILQ_REMOVE(&s->u->by_heard, s, by_heard);
  heard_add(s);
}

void tc__analysed_forget(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;

  assert(!s->in_ring);
  tc__analysed_kept_drop(s);
  if (u->first_in_line == s) u->first_in_line = NULL;
  tb_map_remove(&u->by_ref, s->ref);
  TAILQ_REMOVE(&u->by_heard, s, by_heard);
  tc__analysed_reports_forget(s);
  while (s->jobs != NULL) tc__analysed_job_drop(s);
  tc__analysed_reader_drop(s);
  tc__analysed_analyses_drop(s);
  tr_watch_free(s->watch);
  tc__analysed_findings_drop(s);
  tc_feed_encoder_free(s->feed);
  tc_tap_event_free(s->tapped);
  tc__analysed_bytes_drop(s);
  tc__analysed_report_memory(s);
  assert(s->mem.bytes == 0);
  free(s);
}

/* Memory is charged to the stream and to the share: a thousand streams, each within its limit, may
 * together need more than there is. */
static void *take_share(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct tc__analysed *s = self;
  tb_rc rc = tb_mem_resize(&s->u->share, &block, old_bytes, new_bytes);

  if (rc == TB_BUDGET) s->share_spent = true;
  return rc == TB_OK ? block : NULL;
}

static tb_rc stream_make(struct tc_scheduler *u, const struct tc_reply *said,
                         struct tc__analysed **out) {
  struct tc__analysed *s = calloc(1, sizeof *s);
  const struct tc_feed_encoder_env feed = { u->env.feed,
                                            u->env.loop,
                                            u->env.config,
                                            u->env.metrics,
                                            tc__analysed_passed,
                                            tc__analysed_exceeded,
                                            s };

  if (s == NULL) return TB_NOMEM;
  if (u->env.feed != NULL && tc_feed_encoder_new(&feed, said, &s->feed) != TB_OK) {
    free(s);
    return TB_NOMEM;
  }
  s->u = u;
  s->ref = said->stream;
  s->turn = said->stream; /* streams are counted in different turns */
  s->fd = -1;
  s->jobs_end = &s->jobs;
  heard_add(s);
  s->reported_ns = s->heard_ns;
  tb_mem_init(&s->mem, take_share, s, u->env.config->agents_memory_max);
  memcpy(s->id, said->stream_id, sizeof s->id);
  memcpy(s->service, said->service, sizeof s->service);
  memcpy(s->instance, said->instance, sizeof s->instance);
  *out = s;
  return TB_OK;
}

tb_rc tc__analysed_find(struct tc_scheduler *u, const struct tc_reply *said,
                        struct tc__analysed **out) {
  uint64_t *slot;

  TB_TRY(tb_map_put(&u->by_ref, said->stream, &slot, NULL));
  if (*slot == 0) {
    struct tc__analysed *fresh;
    tb_rc rc = stream_make(u, said, &fresh);

    if (rc != TB_OK) {
      tb_map_remove(&u->by_ref, said->stream);
      return rc;
    }
    *slot = (uintptr_t)fresh;
  }
  *out = (struct tc__analysed *)(uintptr_t)*slot;
  return TB_OK;
}
