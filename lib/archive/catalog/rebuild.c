/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/catalog/write.h"
#include "archive/day_ledger.h"
#include "archive/state_dir.h"
#include "archive/walk.h"
#include "base/clock.h"

enum { ROWS_AT_ONCE = 10000 };

struct tc_rebuild {
  struct tc_catalog *catalog;
  int archive_fd;
  struct tc_day_ledger ledger; /* ledger of the day that is being walked; empty if there is none */
  size_t put;                  /* records of the ledger that are in the catalog */
  struct tc_archive_place place; /* after the last file that was read */
  uint64_t until_ns, rows;       /* of the current step */
  struct tb_diag *diag;
  void (*note)(void *self, const char *text);
  void *self;
  struct tc_rebuilt done;
  char synced[sizeof((struct tc_archive_file *)NULL)->path]; /* last synced folder, with slash */
};

/* A meta must survive a power cut if its row does: the catalog may be stale because a daemon could not sync the names of
 * new metas. */
static tb_rc sync_folder(struct tc_rebuild *rebuild, const struct tc_archive_file *file) {
  size_t len = strlen(file->path) - strlen(file->name);

  if (strncmp(rebuild->synced, file->path, len) == 0 && rebuild->synced[len] == '\0') return TB_OK;
  if (fsync(file->dir_fd) != 0)
    return tb_fail(rebuild->diag, tc_errno_rc(errno), "%.*s: %s", (int)len, file->path,
                   strerror(errno));
  memcpy(rebuild->synced, file->path, len);
  rebuild->synced[len] = '\0';
  return TB_OK;
}

/* Removes the trace of a meta that retention marked before a crash. Returns false if the trace cannot be removed now. */
static bool finish_expiry(const struct tc_archive_file *file, const tc_meta *meta) {
  char trace[32];

  if (!meta->expired || meta->n_generations == 0) return true;
  tc_trace_name(meta->generations[0]->gen, trace);
  if (unlinkat(file->dir_fd, trace, 0) != 0) return errno == ENOENT;
  return fsync(file->dir_fd) == 0;
}

/* A meta is renamed before its trace. If a crash came in between, the log still has the records, and they are published
 * again: such a meta gets no row, because retention could remove its segment. */
static bool is_listed(const struct tc_archive_file *file, const tc_meta *meta, uint64_t *unread) {
  char trace[32];

  if (meta->expired || meta->n_generations == 0) return true;
  tc_trace_name(meta->generations[0]->gen, trace);
  if (faccessat(file->dir_fd, trace, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return true;
  *unread += errno != ENOENT;
  return false;
}

static void report(const struct tc_rebuild *rebuild, const char *text) {
  if (rebuild->note != NULL) rebuild->note(rebuild->self, text);
}

static void report_ledger(void *self, const char *text) {
  report(self, text);
}

static bool is_step_over(struct tc_rebuild *rebuild) {
  return ++rebuild->rows >= ROWS_AT_ONCE || tc_mono_ns() >= rebuild->until_ns;
}

static tb_rc put_records(struct tc_rebuild *rebuild) {
  while (rebuild->put < rebuild->ledger.n) {
    const tc_meta *record = rebuild->ledger.records[rebuild->put++].meta;
    TB_TRY(tc_catalog_put_folded(rebuild->catalog, record, rebuild->diag));
    rebuild->done.segments += record->folded->segments;
    if (is_step_over(rebuild)) return TB_AGAIN;
  }
  return TB_OK;
}

/* Syncs the ledger's records to the disk before a meta that they replace is removed. */
static tb_rc put_ledger(struct tc_rebuild *rebuild, const struct tc_archive_file *file) {
  struct tc_day_ledger_options options = {
    .settle = true, .damaged = report_ledger, .cut = report_ledger, .self = rebuild
  };
  struct tc_day_ledger *ledger = &rebuild->ledger;
  struct tb_diag why = { 0 };
  tb_rc rc = tc_day_ledger_read(file->dir_fd, file->day, &options, &why, ledger);

  if (tc_rc_is_short(rc)) return tb_fail(rebuild->diag, rc, "%s", why.text);
  if (rc != TB_OK) report(rebuild, why.text);
  rebuild->done.unread += ledger->foreign + (rc != TB_OK);
  rebuild->put = 0;
  return put_records(rebuild);
}

/* Removes a meta that a crash left beside the ledger record that replaces it. The removal is synced before catalog.stale
 * is removed, or the meta would be folded a second time (sim_seeds, 610327). */
static void drop_covered(struct tc_rebuild *rebuild, const struct tc_archive_file *file,
                         const tc_meta *meta) {
  if (!finish_expiry(file, meta) || unlinkat(file->dir_fd, file->name, 0) != 0 ||
      fsync(file->dir_fd) != 0)
    rebuild->done.unread++;
}

static void report_folder(void *self, const char *text) {
  struct tc_rebuild *rebuild = self;
  char words[480];

  snprintf(words, sizeof words, "%s; its unread part is left out of the catalog", text);
  report(rebuild, words);
  rebuild->done.unread++;
}

static tb_rc put_file(void *self, const struct tc_archive_file *file) {
  struct tc_rebuild *rebuild = self;
  struct tb_diag why = { 0 };
  char text[480];
  tc_meta *meta;

  if (file->stream_hex[0] == '\0') return put_ledger(rebuild, file);
  if (!tc_name_ends(file->name, ".meta")) return TB_OK;
  TB_TRY(sync_folder(rebuild, file));
  tb_rc rc = tc_meta_read(file->dir_fd, file->name, &why, &meta);
  if (tc_rc_is_short(rc)) return tb_fail(rebuild->diag, rc, "%s: %s", file->path, why.text);
  if (rc != TB_OK) {
    snprintf(text, sizeof text, "%s: left out of the catalog: %s", file->path, why.text);
    report(rebuild, text);
    rebuild->done.unread += rc != TB_CORRUPT;
    return TB_OK;
  }
  if (tc_day_ledger_covers(&rebuild->ledger, meta)) {
    drop_covered(rebuild, file, meta);
    tc_meta_free(meta);
    return TB_OK;
  }
  if (!is_listed(file, meta, &rebuild->done.unread)) {
    tc_meta_free(meta);
    return TB_OK;
  }
  if (!finish_expiry(file, meta)) {
    rebuild->done.unread++;
    meta->expired = false; /* in the row only: retention tries again */
  }
  rc = tc_catalog_put(rebuild->catalog, meta, rebuild->diag);
  if (meta->n_generations > 0) rebuild->done.segments++;
  tc_meta_free(meta);
  if (rc != TB_OK) return rc;
  return is_step_over(rebuild) ? TB_AGAIN : TB_OK;
}

static const char stale_mark[] = "catalog.stale";

tb_rc tc_catalog_mark_stale(int state_fd, bool durable, struct tb_diag *diag) {
  int mark = openat(state_fd, stale_mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
  bool good = mark >= 0 && (!durable || fsync(state_fd) == 0);
  int why = errno;

  if (mark >= 0) close(mark);
  return good ? TB_OK : tb_fail(diag, tc_errno_rc(why), "%s: %s", stale_mark, strerror(why));
}

void tc_catalog_unmark_stale(int state_fd) {
  unlinkat(state_fd, stale_mark, 0);
}

bool tc_catalog_is_stale(int state_fd) {
  return faccessat(state_fd, stale_mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

tb_rc tc_catalog_rebuild_begin(int state_fd, int archive_fd, struct tb_diag *diag,
                               void (*note)(void *self, const char *text), void *self,
                               struct tc_rebuild **out) {
  static const char *const parts[] = { "catalog.sqlite", "catalog.sqlite-wal",
                                       "catalog.sqlite-shm" };

  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (unlinkat(state_fd, parts[i], 0) != 0 && errno != ENOENT)
      return tb_fail(diag, TB_IO, "%s: %s", parts[i], strerror(errno));
  struct tc_rebuild *rebuild = calloc(1, sizeof *rebuild);
  if (rebuild == NULL) return tb_fail(diag, TB_NOMEM, "catalog: no memory");
  *rebuild = (struct tc_rebuild){ .archive_fd = archive_fd, .note = note, .self = self };
  tb_rc rc = tc_catalog_open(state_fd, true, diag, &rebuild->catalog);
  if (rc != TB_OK) {
    tc_catalog_rebuild_free(rebuild);
    return rc;
  }
  *out = rebuild;
  return TB_OK;
}

tb_rc tc_catalog_rebuild_go_on(struct tc_rebuild *rebuild, uint64_t until_ns, struct tb_diag *diag,
                               struct tc_rebuilt *out) {
  rebuild->diag = diag;
  rebuild->until_ns = until_ns;
  rebuild->rows = 0;
  TB_TRY(tc_catalog_begin(rebuild->catalog, diag));
  tb_rc rc = put_records(rebuild); /* the rest of the previous step */
  if (rc == TB_OK)
    rc = tc_archive_walk_from(rebuild->archive_fd, &rebuild->place, put_file, report_folder,
                              rebuild, diag);
  if (rc == TB_OK || rc == TB_AGAIN) TB_TRY(tc_catalog_commit(rebuild->catalog, diag));
  if (rc == TB_OK) *out = rebuild->done;
  return rc;
}

tb_rc tc_catalog_rebuild_put(struct tc_rebuild *rebuild, const tc_meta *meta,
                             struct tb_diag *diag) {
  return tc_catalog_put(rebuild->catalog, meta, diag);
}

void tc_catalog_rebuild_free(struct tc_rebuild *rebuild) {
  if (rebuild == NULL) return;
  tc_day_ledger_fini(&rebuild->ledger);
  tc_catalog_close(rebuild->catalog);
  free(rebuild);
}

tb_rc tc_catalog_rebuild(int state_fd, int archive_fd, struct tb_diag *diag,
                         void (*note)(void *self, const char *text), void *self,
                         struct tc_rebuilt *out) {
  struct tc_rebuild *rebuild;
  tb_rc rc;

  TB_TRY(tc_catalog_rebuild_begin(state_fd, archive_fd, diag, note, self, &rebuild));
  do rc = tc_catalog_rebuild_go_on(rebuild, UINT64_MAX, diag, out);
  while (rc == TB_AGAIN);
  tc_catalog_rebuild_free(rebuild);
  return rc;
}
