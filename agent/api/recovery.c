/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/recovery.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "agent/host/process.h"
#include "base/grow.h"

enum { RUNS_MIN = 256, RUN_PAGES = 4, READ_BYTES = 2 * TA_PIECE_BYTES };

void ta_recovery_init(struct ta_recovery *h, int root, uint64_t bytes_max,
                      const struct ta_client_config *config) {
  *h = (struct ta_recovery){
    .root = root, .bytes_max = bytes_max, .client_config = *config, .left = 1
  };
  h->client.fd = h->client.wake_fd = -1;
  ta_spool_dir_init(&h->dir, root, 0);
  pthread_mutex_init(&h->lock, NULL);
}

void ta_recovery_fini(struct ta_recovery *h) {
  if (h->client_config.server == NULL) return;
  ta_spool_dir_leave(&h->dir);
  pthread_mutex_destroy(&h->lock);
  *h = (struct ta_recovery){ 0 };
}

static void say(struct ta_recovery *h, int level, const char *text) {
  if (h->client_config.log != NULL) h->client_config.log(h->client_config.log_self, level, text);
}

/* Reading a stream's files. */

struct reader {
  struct ta_spool_dir *dir;
  const struct ta_spool_dir_state *state;
  struct ta_spool *spool;
  unsigned char *room;
};

/* Reads the frames of a run from `at` to `end`, the last valid byte. */
static tb_rc read_frames(const struct reader *r, int fd, uint64_t at, uint64_t end) {
  struct tp_frame frame;

  while (at < end) {
    uint64_t want = end - at < READ_BYTES ? end - at : READ_BYTES;
    ssize_t n = pread(fd, r->room, (size_t)want, (off_t)(TA_SPOOL_DIR_IMAGE_BYTES + at));
    if (n <= 0) return n < 0 ? TB_IO : TB_CORRUPT;
    size_t used = 0;
    for (;;) {
      tb_rc rc = ta_kept_frame(r->state->salt, r->room + used, (size_t)n - used, &frame);
      if (rc == TB_AGAIN) break;
      TB_TRY(rc);
      TB_TRY(ta_spool_inherit_frame(r->spool, &frame));
      used += TA_KEPT_HEAD_BYTES + frame.len;
    }
    if (used == 0) return TB_CORRUPT;
    at += used;
  }
  return TB_OK;
}

/* Runs follow each other without a gap; nothing after a missing or damaged one can be sent. */
static tb_rc read_runs(const struct reader *r) {
  const struct ta_accounting *accounting = &r->state->accounting;
  struct ta_run_image run;
  int fd;

  for (uint64_t id = accounting->front_id;; id = run.covers + 1) {
    bool front = id == accounting->front_id;
    tb_rc rc = ta_spool_dir_open_run(r->dir, r->state->salt, id, &run, &fd);
    if (rc == TB_NOTFOUND) return TB_OK;
    TB_TRY(rc);
    if (!front || accounting->front_done == 0) {
      rc = ta_spool_inherit_run(r->spool, &run);
      if (rc == TB_OK) rc = read_frames(r, fd, front ? accounting->front_bytes : 0, run.end_bytes);
    }
    close(fd);
    TB_TRY(rc);
  }
}

/* Computes the size of the spool: one page more for each run, and whole pages for run headers. */
static tb_rc memory_wanted(struct ta_spool_dir *dir, const struct ta_spool_dir_state *state,
                           uint64_t *out) {
  const struct ta_accounting *accounting = &state->accounting;
  uint64_t bytes = 64 * TA_PAGE_BYTES, runs = RUNS_MIN; /* the pool rounds down to 64 pages */
  struct ta_run_image run;
  tb_rc rc;
  int fd;

  for (uint64_t id = accounting->front_id;
       (rc = ta_spool_dir_open_run(dir, state->salt, id, &run, &fd)) == TB_OK;
       id = run.covers + 1) {
    close(fd);
    uint64_t skip = id == accounting->front_id ? accounting->front_bytes : 0;
    if (run.end_bytes > skip) bytes += run.end_bytes - skip;
    bytes += TA_PAGE_BYTES;
    runs++;
  }
  uint64_t for_runs = runs * RUN_PAGES * TA_PAGE_BYTES;
  *out = bytes > for_runs ? bytes : for_runs;
  return rc == TB_IO ? TB_IO : TB_OK;
}

tb_rc ta_recovery_load(struct ta_spool_dir *dir, const struct ta_spool_dir_state *state,
                       struct ta_spool *out) {
  struct reader r = { dir, state, out, malloc(READ_BYTES) };
  uint64_t bytes;
  tb_rc rc = memory_wanted(dir, state, &bytes);

  if (rc == TB_OK && (r.room == NULL || ta_spool_init(out, bytes) != TB_OK)) rc = TB_NOMEM;
  if (rc == TB_OK) {
    ta_spool_inherit(out, &state->accounting);
    rc = read_runs(&r);
    ta_spool_inherited(out);
  }
  free(r.room);
  return rc;
}

tb_rc ta_recovery_announce(struct ta_spool_dir *dir, struct ta_spool_dir_state *state,
                           const struct ta_spool *loaded) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  state->accounting.given_seq = loaded->acked_seq + loaded->records;
  return ta_spool_dir_state(dir, state, &diag);
}

/* Sending. */

static bool begin(struct ta_recovery *h) {
  struct ta_client_config config = h->client_config;

  config.service = h->state.service;
  config.instance = h->state.instance;
  pthread_mutex_lock(&h->lock);
  h->sending = !h->stop && ta_client_init(&h->client, &config, &h->spool) == TB_OK &&
               ta_client_open(&h->client) == TB_OK;
  if (h->sending) ta_client_is(&h->client, h->state.stream, h->state.started_wall_ns);
  pthread_mutex_unlock(&h->lock);
  return h->sending;
}

static void send_stream(struct ta_recovery *h) {
  if (begin(h)) ta_client_run(&h->client);
  tb_check_keep(&h->keeper);
  if (ta_process_exiting()) return; /* the thread will not touch TLS again */
  pthread_mutex_lock(&h->lock);
  h->sending = false;
  ta_client_fini(&h->client);
  pthread_mutex_unlock(&h->lock);
}

/* The files may be deleted: all is acked, or the process has continued without them. */
static bool is_over(struct ta_recovery *h) {
  return ta_spool_done(&h->spool) || h->spool.superseded;
}

static void report_end(struct ta_recovery *h, const char *how, int level) {
  char text[TA_SPOOL_DIR_TEXT + 160];

  snprintf(text, sizeof text, "spool on disk: %s of %s %s", h->dir.name, h->state.instance, how);
  say(h, level, text);
}

/* Sends the stream of the folder that is_ours() locked. */
static void deliver(struct ta_recovery *h) {
  tb_rc rc = ta_recovery_load(&h->dir, &h->state, &h->spool);

  if (rc == TB_CORRUPT) report_end(h, "is damaged; sending what precedes the damage", LOG_WARNING);
  bool loaded = rc == TB_OK || rc == TB_CORRUPT, send = loaded && !is_over(h);
  if (send && ta_recovery_announce(&h->dir, &h->state, &h->spool) == TB_OK) send_stream(h);
  if (ta_process_exiting()) return;
  bool over = loaded && is_over(h);
  report_end(h, over ? "is sent" : "stays unsent", over ? LOG_INFO : LOG_WARNING);
  ta_spool_fini(&h->spool);
  if (over) ta_spool_dir_remove(&h->dir);
  pthread_mutex_lock(&h->lock);
  h->sent += over;
  pthread_mutex_unlock(&h->lock);
}

/* Finding. */

struct found {
  char name[TA_SPOOL_DIR_NAME];
  uint64_t started_wall_ns, bytes;
};

struct finding {
  struct ta_recovery *h;
  struct found *found;
  size_t n, max;
};

/* Locks the stream. Returns false if another process holds it or it belongs to another service. An unlocked folder
 * without a state file was left by a process that died while creating it, and is removed. */
static bool is_ours(struct ta_recovery *h, const char *name) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = ta_spool_dir_take(&h->dir, name, &diag, &h->state);
  if (rc == TB_CORRUPT) ta_spool_dir_remove(&h->dir);
  if (rc == TB_IO) unlinkat(h->root, name, AT_REMOVEDIR); /* only if it is empty */
  return rc == TB_OK && strcmp(h->state.service, h->client_config.service) == 0;
}

static void note_stream(void *self, const char *name) {
  struct finding *f = self;

  if (!ta_spool_dir_is_stream(name)) return;
  if (is_ours(f->h, name)) {
    if (TB_GROW(f->found, f->max, f->n) == TB_OK) {
      struct found *one = &f->found[f->n++];
      snprintf(one->name, sizeof one->name, "%s", name);
      one->started_wall_ns = f->h->state.started_wall_ns;
      one->bytes = ta_spool_dir_bytes(f->h->root, name);
    }
  }
  ta_spool_dir_leave(&f->h->dir);
}

static int by_age(const void *a, const void *b) {
  const struct found *x = a, *y = b;

  return (x->started_wall_ns > y->started_wall_ns) - (x->started_wall_ns < y->started_wall_ns);
}

/* Keeps the newest streams that fit into half of the directory; returns the index of the first one kept. */
static size_t drop_oldest(struct finding *f) {
  uint64_t bytes = 0;
  size_t first = f->n;

  while (first > 0 && bytes + f->found[first - 1].bytes <= f->h->bytes_max)
    bytes += f->found[--first].bytes;
  for (size_t i = 0; i < first; i++) {
    char text[TA_SPOOL_DIR_NAME + 80];
    if (is_ours(f->h, f->found[i].name)) {
      snprintf(text, sizeof text, "spool on disk is full: %s goes unsent", f->found[i].name);
      say(f->h, LOG_WARNING, text);
      ta_spool_dir_remove(&f->h->dir);
    }
    ta_spool_dir_leave(&f->h->dir);
  }
  return first;
}

/* Publishes how many streams are left; returns false if recovery must end. */
static bool goes_on(struct ta_recovery *h, size_t left) {
  pthread_mutex_lock(&h->lock);
  bool stop = h->stop;
  h->left = left;
  pthread_mutex_unlock(&h->lock);
  return left > 0 && !stop && !ta_process_exiting() && atomic_load(&h->keeper.where) == NULL;
}

void ta_recovery_run(struct ta_recovery *h) {
  struct finding f = { .h = h };

  tb_check_keep(&h->keeper);
  if (!ta_spool_dir_list(h->root, note_stream, &f))
    say(h, LOG_WARNING,
        "spool on disk: not all of it can be listed; what is not seen stays unsent");
  if (f.n > 0) qsort(f.found, f.n, sizeof *f.found, by_age);
  size_t at = drop_oldest(&f);
  for (; goes_on(h, f.n - at); at++) {
    if (is_ours(h, f.found[at].name)) deliver(h);
    ta_spool_dir_leave(&h->dir);
  }
  free(f.found);
}

/* From outside. */

void ta_recovery_wake(struct ta_recovery *h) {
  pthread_mutex_lock(&h->lock);
  if (h->sending) ta_client_wake(&h->client);
  pthread_mutex_unlock(&h->lock);
}

void ta_recovery_stop(struct ta_recovery *h) {
  pthread_mutex_lock(&h->lock);
  h->stop = true;
  if (h->sending) ta_client_stop(&h->client);
  pthread_mutex_unlock(&h->lock);
}

void ta_recovery_reported(struct ta_recovery *h, uint64_t *out_left, uint64_t *out_sent) {
  pthread_mutex_lock(&h->lock);
  *out_left = h->left;
  *out_sent = h->sent;
  pthread_mutex_unlock(&h->lock);
}

void ta_recovery_forked(struct ta_recovery *h) {
  ta_spool_dir_forked(&h->dir);
}
