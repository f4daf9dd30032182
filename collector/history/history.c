/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/text/hex.h"
#include "base/thread.h"
#include "collector/base/logger.h"

#define FOLDER "reports"

enum { TURN_MS = 500, HURRY_BYTES = TC_HISTORY_WAITING_MAX / 4 };
enum { NAME_BYTES = TC_STREAM_HEX_BYTES + sizeof ".reports" };
static const uint64_t tidy_every_ns = UINT64_C(60000000000);

struct waiting {
  STAILQ_ENTRY(waiting) next;
  unsigned char stream[TC_STREAM_BYTES];
  struct tc_report_record record; /* its reply's bytes follow this struct */
};

struct tc_history {
  int folder_fd;
  const struct tc_config *config;
  pthread_t thread;
  bool is_started;
  _Atomic uint64_t turns;
  uint64_t tidied_mono_ns;

  pthread_mutex_t lock; /* guards the fields below */
  pthread_cond_t changed;
  bool stopping;
  STAILQ_HEAD(line, waiting) line;
  size_t waiting_bytes;
};

struct days {
  char (*day)[TC_DAY_BYTES];
  size_t n, room;
};

static int by_name(const void *a, const void *b) {
  return strcmp(a, b);
}

/* Lists the days in order. The caller frees out->day. */
static tb_rc list_days(const struct tc_history *h, struct tb_diag *diag, struct days *out) {
  const char *name;
  DIR *dir;

  *out = (struct days){ .n = 0 };
  TB_TRY(tc_dir_open(h->folder_fd, FOLDER, diag, &dir));
  tb_rc rc;
  while ((rc = tc_dir_next(dir, FOLDER, diag, &name)) == TB_OK && name != NULL) {
    if (!tc_day_valid(name)) continue;
    if ((rc = TB_GROW(out->day, out->room, out->n)) != TB_OK) break;
    memcpy(out->day[out->n++], name, TC_DAY_BYTES);
  }
  closedir(dir);
  if (rc == TB_OK && out->n > 1) qsort(out->day, out->n, sizeof *out->day, by_name);
  if (rc != TB_OK) free(TB_MOVE(out->day));
  return rc;
}

/* Returns the day that stores a report of that time. A report of the future (by a wrong clock) is stored today, so that it is
 * deleted in time. */
static void day_of(uint64_t wall_ns, char out[TC_DAY_BYTES]) {
  uint64_t now = tc_wall_ns();

  tc_day(wall_ns < now ? wall_ns : now, out);
}

static int open_day(const struct tc_history *h, const char *day) {
  return openat(h->folder_fd, day, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void file_name(const unsigned char *stream, char out[NAME_BYTES]) {
  char hex[TC_STREAM_HEX_BYTES];

  snprintf(out, NAME_BYTES, "%s.reports", tb_hex(stream, TC_STREAM_BYTES, hex));
}

static tb_rc write_one(struct tc_history *h, const struct waiting *w, struct tb_diag *diag) {
  char day[TC_DAY_BYTES], name[NAME_BYTES];

  day_of(w->record.until_ns, day);
  file_name(w->stream, name);
  if (mkdirat(h->folder_fd, day, 0750) != 0 && errno != EEXIST)
    return tb_fail(diag, tc_errno_rc(errno), FOLDER "/%s: %s", day, strerror(errno));
  int fd = open_day(h, day);
  if (fd < 0) return tb_fail(diag, tc_errno_rc(errno), FOLDER "/%s: %s", day, strerror(errno));
  tb_rc rc = tc_report_file_append(fd, name, &w->record, diag);
  close(fd);
  return rc;
}

static void write_all(struct tc_history *h, struct line *line) {
  struct tb_diag diag;

  for (struct waiting *w; (w = STAILQ_FIRST(line)) != NULL; free(w)) {
    STAILQ_REMOVE_HEAD(line, next);
    tb_diag_clear(&diag);
    if (write_one(h, w, &diag) != TB_OK)
      tc_log(TC_ERROR, "history", "a report is not kept: %s", diag.text);
  }
}

tb_rc tc_history_add(struct tc_history *h, const unsigned char stream[TC_STREAM_BYTES],
                     const struct tc_report_record *record) {
  struct waiting *w;
  size_t bytes = sizeof *w + record->len;
  tb_rc rc = TB_OK;

  if ((w = malloc(bytes)) == NULL) return TB_NOMEM;
  memcpy(w->stream, stream, sizeof w->stream);
  w->record = *record;
  w->record.reply = memcpy(w + 1, record->reply, record->len);
  pthread_mutex_lock(&h->lock);
  if (h->waiting_bytes + bytes > TC_HISTORY_WAITING_MAX) {
    rc = TB_BUDGET;
  } else {
    STAILQ_INSERT_TAIL(&h->line, w, next);
    h->waiting_bytes += bytes;
    if (h->waiting_bytes > HURRY_BYTES) pthread_cond_signal(&h->changed);
  }
  pthread_mutex_unlock(&h->lock);
  if (rc != TB_OK) free(w);
  return rc;
}

/* Returns the size of a day's readable files, and deletes the day if `remove`. */
static uint64_t walk_day(const struct tc_history *h, const char *day, bool remove) {
  int fd = open_day(h, day);
  struct tb_diag ignored;
  uint64_t bytes = 0;
  const char *name;
  struct stat st;
  DIR *dir;

  tb_diag_clear(&ignored);
  if (fd < 0) return 0;
  if (tc_dir_open(fd, day, &ignored, &dir) == TB_OK) {
    while (tc_dir_next(dir, day, &ignored, &name) == TB_OK && name != NULL) {
      if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) bytes += (uint64_t)st.st_size;
      if (remove) unlinkat(fd, name, 0);
    }
    closedir(dir);
  }
  close(fd);
  if (remove && unlinkat(h->folder_fd, day, AT_REMOVEDIR) != 0)
    tc_log(TC_ERROR, "history", FOLDER "/%s: %s", day, strerror(errno));
  return bytes;
}

static size_t remove_old(const struct tc_history *h, const struct days *days) {
  uint64_t age = h->config->reports_age, now = tc_wall_ns();
  char first[TC_DAY_BYTES];
  size_t i = 0;

  if (age == 0 || age > now) return 0;
  tc_day(now - age, first);
  for (; i < days->n && strcmp(days->day[i], first) < 0; i++) walk_day(h, days->day[i], true);
  return i;
}

/* Never deletes the last day, which is being written. */
static void remove_large(const struct tc_history *h, const struct days *days, size_t from) {
  uint64_t max = h->config->reports_bytes, all = 0;

  if (max == 0) return;
  for (size_t i = from; i < days->n; i++) all += walk_day(h, days->day[i], false);
  for (size_t i = from; i + 1 < days->n && all > max; i++) all -= walk_day(h, days->day[i], true);
}

static void tidy(struct tc_history *h) {
  struct tb_diag diag;
  struct days days;

  if (h->tidied_mono_ns != 0 && tc_mono_ns() - h->tidied_mono_ns < tidy_every_ns) return;
  h->tidied_mono_ns = tc_mono_ns();
  tb_diag_clear(&diag);
  if (list_days(h, &diag, &days) != TB_OK) {
    tc_log(TC_ERROR, "history", "%s", diag.text);
    return;
  }
  remove_large(h, &days, remove_old(h, &days));
  free(days.day);
}

tb_rc tc_history_read(struct tc_history *h, const unsigned char stream[TC_STREAM_BYTES],
                      uint64_t from_ns, uint64_t until_ns, void *self,
                      tb_rc (*take)(void *self, const struct tc_report_record *record),
                      uint64_t *out_damaged, struct tb_diag *diag) {
  char name[NAME_BYTES], first[TC_DAY_BYTES];
  uint64_t damaged;
  struct days days;

  *out_damaged = 0;
  file_name(stream, name);
  day_of(from_ns, first);
  TB_TRY(list_days(h, diag, &days));
  tb_rc rc = TB_OK;
  for (size_t i = 0; i < days.n && rc == TB_OK; i++) {
    if (strcmp(days.day[i], first) < 0) continue;
    int fd = open_day(h, days.day[i]);
    if (fd < 0) continue; /* deleted meanwhile */
    rc = tc_report_file_read(fd, name, from_ns, until_ns, self, take, &damaged, diag);
    if (rc == TB_NOTFOUND) rc = TB_OK;
    *out_damaged += damaged;
    close(fd);
  }
  free(days.day);
  return rc;
}

/* Waits for records. Returns false when the thread is to end and none are left. */
static bool take_waiting(struct tc_history *h, struct line *out) {
  struct timespec soon = tc_from_now(TURN_MS);

  STAILQ_INIT(out);
  pthread_mutex_lock(&h->lock);
  if (!h->stopping) pthread_cond_timedwait(&h->changed, &h->lock, &soon);
  STAILQ_CONCAT(out, &h->line);
  h->waiting_bytes = 0;
  bool goes_on = !h->stopping || !STAILQ_EMPTY(out);
  pthread_mutex_unlock(&h->lock);
  return goes_on;
}

static void *run_thread(void *self) {
  struct tc_history *h = self;
  struct line line;

  tidy(h);
  while (take_waiting(h, &line)) {
    write_all(h, &line);
    tidy(h);
    atomic_fetch_add(&h->turns, 1);
  }
  return NULL;
}

uint64_t tc_history_turns(const struct tc_history *h) {
  return atomic_load(&h->turns);
}

static tb_rc open_folder(int state_fd, struct tb_diag *diag, int *out) {
  if (mkdirat(state_fd, FOLDER, 0750) != 0 && errno != EEXIST)
    return tb_fail(diag, TB_IO, FOLDER ": %s", strerror(errno));
  *out = openat(state_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  return *out >= 0 ? TB_OK : tb_fail(diag, TB_IO, FOLDER ": %s", strerror(errno));
}

tb_rc tc_history_open(int state_fd, const struct tc_config *config, struct tb_diag *diag,
                      struct tc_history **out) {
  struct tc_history *h = calloc(1, sizeof *h);

  if (h == NULL) return TB_NOMEM;
  h->config = config;
  STAILQ_INIT(&h->line);
  pthread_mutex_init(&h->lock, NULL);
  tc_cond_init(&h->changed);
  h->folder_fd = -1;
  tb_rc rc = open_folder(state_fd, diag, &h->folder_fd);
  if (rc == TB_OK)
    *out = h;
  else
    tc_history_free(h);
  return rc;
}

tb_rc tc_history_start(struct tc_history *h) {
  if (tc_thread_start(&h->thread, NULL, run_thread, h) != 0) return TB_NOMEM;
  h->is_started = true;
  return TB_OK;
}

void tc_history_stop(struct tc_history *h) {
  if (h == NULL || !h->is_started) return;
  pthread_mutex_lock(&h->lock);
  h->stopping = true;
  pthread_cond_signal(&h->changed);
  pthread_mutex_unlock(&h->lock);
  pthread_join(h->thread, NULL);
  h->is_started = false;
}

void tc_history_free(struct tc_history *h) {
  if (h == NULL) return;
  for (struct waiting *w; (w = STAILQ_FIRST(&h->line)) != NULL; free(w))
    STAILQ_REMOVE_HEAD(&h->line, next);
  if (h->folder_fd >= 0) close(h->folder_fd);
  pthread_cond_destroy(&h->changed);
  pthread_mutex_destroy(&h->lock);
  free(h);
}
