/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/retention/fold.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text/hex.h"

enum { ROWS_AT_ONCE = 500 };
static const uint64_t EVERY_NS = UINT64_C(3600) * 1000000000;
static const uint64_t LOCKED_NS = 1000000000; /* wait while an audit holds the lock */

struct tc__folder {
  char day[TC_DAY_BYTES], hex[TC_STREAM_HEX_BYTES];
  int fd, day_fd, lock;
  char (*names)[32];       /* of the metas */
  size_t n, cap, at;       /* at: the next name to read, and later to unlink */
  struct timespec changed; /* the folder's mtime when it was listed */
  struct tc_fold fold;
  const tc_meta *record; /* NULL: not written yet */
  bool rows_are_gone;
};

static void free_folder(struct tc__folder *folder) {
  if (folder == NULL) return;
  if (folder->fd >= 0) close(folder->fd);
  if (folder->day_fd >= 0) close(folder->day_fd);
  if (folder->lock >= 0) close(folder->lock);
  tc_fold_fini(&folder->fold);
  free(folder->names);
  free(folder);
}

void tc__folding_init(struct tc__folding *folding, struct tc__catalog_sync *catalog,
                      const struct tc__streams *streams) {
  *folding = (struct tc__folding){ .env = catalog->env, .catalog = catalog, .streams = streams };
}

void tc__folding_fini(struct tc__folding *folding) {
  free_folder(folding->folder);
  tc_day_ledger_fini(&folding->recalled);
}

static void leave_folder(struct tc__folding *folding) {
  free_folder(TB_MOVE(folding->folder));
}

static void note_left(struct tc__folding *folding, const struct tb_diag *why) {
  const struct tc__folder *folder = folding->folder;

  tc__note_as(folding->env, TC_WARN, 0, "archive/%s/%s: %s; its metas are not folded", folder->day,
              folder->hex, why->text);
}

static const struct tc__stream *find_stream(const struct tc__folding *folding, const char *hex) {
  for (const struct tc__stream *stream = folding->streams->first; stream != NULL;
       stream = stream->next)
    if (strcmp(stream->hex, hex) == 0) return stream;
  return NULL;
}

/* Returns whether the sealer will neither add to the stream's folder of this day nor read a meta in it. */
static bool is_over(const struct tc__folding *folding, const char *day, const char *hex) {
  const struct tc__stream *stream = find_stream(folding, hex);

  if (stream == NULL) return true;
  if (stream->queued != NULL || stream->recents != NULL) return false;
  if (stream->open != NULL && strcmp(stream->open->day, day) <= 0) return false;
  if (stream->note.day[0] != '\0' && strcmp(stream->note.day, day) <= 0) return false;
  return stream->settled.has_segment && strcmp(stream->settled.day, day) > 0;
}

/* Skips temporary metas that a crash left. Returns false if the folder has other files or no metas, or cannot be read. */
static bool list_metas(struct tc__folder *folder) {
  struct tb_diag diag = { 0 };
  struct stat st;
  const char *name;
  DIR *dir;

  if (fstat(folder->fd, &st) != 0 || tc_dir_open(folder->fd, "", &diag, &dir) != TB_OK)
    return false;
  folder->changed = st.st_mtim;
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "", &diag, &name)) == TB_OK && name != NULL) {
    if (tc_name_ends(name, ".meta.new")) continue;
    if (!tc_name_ends(name, ".meta") || strlen(name) >= sizeof folder->names[0]) rc = TB_REFUSED;
    if (rc == TB_OK) rc = TB_GROW(folder->names, folder->cap, folder->n);
    if (rc == TB_OK) strcpy(folder->names[folder->n++], name);
  }
  closedir(dir);
  return rc == TB_OK && folder->n > 0;
}

static struct tc__folder *open_folder(int archive_fd, const struct tc_archive_file *file) {
  struct tc__folder *folder = calloc(1, sizeof *folder);

  if (folder == NULL) return NULL;
  strcpy(folder->day, file->day);
  strcpy(folder->hex, file->stream_hex);
  folder->lock = -1;
  folder->fd = fcntl(file->dir_fd, F_DUPFD_CLOEXEC, 3);
  folder->day_fd = openat(archive_fd, file->day, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder->fd >= 0 && folder->day_fd >= 0 && list_metas(folder)) return folder;
  free_folder(folder);
  return NULL;
}

struct look {
  struct tc__folding *folding;
  uint64_t until_ns;
};

/* Decides at the first file of each folder. TB_AGAIN ends the walk: the folder is to be folded, or the slice is over. */
static tb_rc look_at(void *self, const struct tc_archive_file *file) {
  struct look *look = self;
  struct tc__folding *folding = look->folding;
  bool is_next = strcmp(folding->place.day, file->day) != 0 ||
                 strcmp(folding->place.stream_hex, file->stream_hex) != 0;

  if (is_next && tc_day_valid(file->day) && strlen(file->stream_hex) == TC_STREAM_HEX_BYTES - 1 &&
      is_over(look->folding, file->day, file->stream_hex))
    folding->folder = open_folder(look->folding->env->opt.dirs->archive, file);
  return folding->folder != NULL || (is_next && tc_mono_ns() >= look->until_ns) ? TB_AGAIN : TB_OK;
}

static void end_pass(struct tc__folding *folding) {
  folding->goes_on = false;
  folding->next_ns = tc_mono_ns() + EVERY_NS;
  if (folding->metas > 0)
    tc__note(folding->env, "retention: %" PRIu64 " metas of expired segments folded into ledgers",
             folding->metas);
}

static void pass_by(void *self, const char *text) {
  (void)self, (void)text; /* tracectl verify reports the error */
}

static void find_folder(struct tc__folding *folding, uint64_t until_ns) {
  struct look look = { folding, until_ns };
  struct tb_diag diag = { 0 };
  int lock = tc_day_ledger_lock(folding->env->opt.dirs->archive, true);

  if (lock < 0) {
    folding->next_ns = tc_mono_ns() + LOCKED_NS;
    return;
  }
  tb_rc rc = tc_archive_walk_from(folding->env->opt.dirs->archive, &folding->place, look_at,
                                  pass_by, &look, &diag);
  if (folding->folder != NULL) {
    folding->folder->lock = lock;
    return;
  }
  close(lock);
  if (rc != TB_OK && rc != TB_AGAIN)
    tc__note_as(folding->env, TC_WARN, 0, "retention: %s", diag.text);
  if (rc != TB_AGAIN) end_pass(folding);
}

static tb_rc read_meta(struct tc__folding *folding, const char *name, struct tb_diag *diag) {
  struct tc__folder *folder = folding->folder;
  enum tc_signed by = TC_SIGNED_NOT;
  char hex[TC_STREAM_HEX_BYTES];
  tc_meta *meta;

  TB_TRY(tc_meta_read_signed(folder->fd, name, folding->env->signer, diag, &meta, &by));
  tb_hex(meta->stream.data, TC_STREAM_BYTES, hex);
  tb_rc rc = TB_OK;
  if (!meta->expired && meta->n_generations > 0)
    rc = TB_AGAIN; /* its trace is missing: tracectl verify reports it */
  else if (by == TC_SIGNED_WRONG)
    rc = tb_fail(diag, TB_REFUSED, "%s: its signature is wrong", name);
  else if (strcmp(hex, folder->hex) != 0 || strcmp(meta->day, folder->day) != 0)
    rc = tb_fail(diag, TB_REFUSED, "%s: belongs to archive/%s/%s", name, meta->day, hex);
  if (rc == TB_OK) return tc_fold_add(&folder->fold, meta);
  tc_meta_free(meta);
  return rc;
}

static void read_some(struct tc__folding *folding, uint64_t until_ns) {
  struct tc__folder *folder = folding->folder;
  struct tb_diag diag = { 0 };
  tb_rc rc = TB_OK;

  while (rc == TB_OK && folder->at < folder->n && tc_mono_ns() < until_ns)
    rc = read_meta(folding, folder->names[folder->at++], &diag);
  if (rc == TB_OK) return;
  if (rc != TB_AGAIN) note_left(folding, &diag);
  leave_folder(folding);
}

static bool is_as_listed(const struct tc__folder *folder) {
  struct stat st;

  return fstat(folder->fd, &st) == 0 && st.st_mtim.tv_sec == folder->changed.tv_sec &&
         st.st_mtim.tv_nsec == folder->changed.tv_nsec;
}

static tb_rc write_record(struct tc__folding *folding, struct tb_diag *diag) {
  struct tc__folder *folder = folding->folder;
  bool unsure;

  TB_TRY(tc_fold_end(&folder->fold, diag, &folder->record));
  TB_TRY(tc__mark_stale(folding->catalog, diag));
  tb_rc rc = tc_day_ledger_append(folder->day_fd, folder->record, folding->env->signer,
                                  folding->env->opt.durable, diag, &unsure);
  if (rc != TB_OK && !unsure) tc__unmark_stale(folding->catalog);
  return rc;
}

static void fold_metas(struct tc__folding *folding) {
  struct tc__folder *folder = folding->folder;
  struct tb_diag diag = { 0 };

  /* Without an expired segment all metas are notes of losses, which stay until a segment of that day expires. */
  if (folder->fold.n == 0 || !is_as_listed(folder) || folding->catalog->is_marked ||
      !is_over(folding, folder->day, folder->hex))
    return leave_folder(folding);
  folder->at = 0;
  if (write_record(folding, &diag) == TB_OK) return;
  note_left(folding, &diag);
  leave_folder(folding);
}

static tb_rc drop_rows(struct tc__folding *folding, bool *out_more, struct tb_diag *diag) {
  struct tc_catalog *db = folding->catalog->db;
  const tc_meta *record = folding->folder->record;

  TB_TRY(tc_catalog_begin(db, diag));
  TB_TRY(tc_catalog_drop_folded(db, record, ROWS_AT_ONCE, diag, out_more));
  return tc_catalog_commit(db, diag);
}

/* If the catalog fails, its rebuild removes the metas that the record replaces. */
static void drop_some_rows(struct tc__folding *folding) {
  struct tb_diag why = { 0 }, diag = { 0 };
  bool more = false;

  if (!tc__catalog_takes_rows(folding->catalog)) return leave_folder(folding);
  if (drop_rows(folding, &more, &why) != TB_OK) {
    (void)!tc__catalog_failed(folding->catalog, &why, &diag);
    return leave_folder(folding);
  }
  folding->folder->rows_are_gone = !more;
}

/* Syncs the removal of the names before the mark is removed. Failing to remove the empty folder does no harm. */
static bool are_gone(const struct tc__folding *folding, const struct tc__folder *folder) {
  if (folding->env->opt.durable && fsync(folder->fd) != 0) return false;
  (void)!unlinkat(folder->day_fd, folder->hex, AT_REMOVEDIR);
  return true;
}

static bool unlink_meta(const struct tc__folder *folder, const char *name) {
  char left[40];

  snprintf(left, sizeof left, "%s.new", name);
  unlinkat(folder->fd, left, 0); /* left by a crash */
  return unlinkat(folder->fd, name, 0) == 0 || errno == ENOENT;
}

static void unlink_some(struct tc__folding *folding, uint64_t until_ns) {
  struct tc__folder *folder = folding->folder;
  bool good = true;

  while (good && folder->at < folder->n && tc_mono_ns() < until_ns)
    good = unlink_meta(folder, folder->names[folder->at++]);
  if (good && folder->at < folder->n) return;
  if (good) good = are_gone(folding, folder);
  if (good) {
    folding->metas += folder->n;
    if (folding->catalog->state == TC__CATALOG_IN_STEP) tc__unmark_stale(folding->catalog);
  } else {
    struct tb_diag why = { 0 };
    tb_fail(&why, TB_IO, "%s", strerror(errno));
    tc__note_as(folding->env, TC_ERROR, 0,
                "archive/%s/%s: %s; its metas are deleted at the next start", folder->day,
                folder->hex, why.text);
  }
  leave_folder(folding);
}

static void fold_next(struct tc__folding *folding, uint64_t until_ns) {
  const struct tc__folder *folder = folding->folder;

  if (folder == NULL) return find_folder(folding, until_ns);
  if (folder->record == NULL && folder->at < folder->n) return read_some(folding, until_ns);
  if (folder->record == NULL) return fold_metas(folding);
  if (!folder->rows_are_gone) return drop_some_rows(folding);
  unlink_some(folding, until_ns);
}

bool tc__is_folding(const struct tc__folding *folding) {
  return folding->folder != NULL;
}

/* Returns false if the mark is set for another reason, or the catalog is incomplete. */
static bool may_begin(const struct tc__folding *folding) {
  return folding->catalog->state == TC__CATALOG_IN_STEP &&
         tc__catalog_takes_rows(folding->catalog) && !folding->catalog->is_marked;
}

void tc__fold_some(struct tc__folding *folding, uint64_t until_ns) {
  if (!tc__is_folding(folding) && !may_begin(folding)) return;
  if (!tc__is_folding(folding) && tc_mono_ns() < folding->next_ns) return;
  if (!folding->goes_on) {
    folding->goes_on = true;
    folding->place = (struct tc_archive_place){ 0 };
    folding->metas = 0;
  }
  do fold_next(folding, until_ns);
  while (folding->goes_on && tc_mono_ns() < until_ns &&
         (tc__is_folding(folding) || may_begin(folding)));
}

void tc__end_folding(struct tc__folding *folding) {
  if (tc__is_folding(folding) && folding->folder->record == NULL) leave_folder(folding);
  while (tc__is_folding(folding)) fold_next(folding, UINT64_MAX);
}

/* ---- recovery: the log may have records whose metas are folded already */

void tc__forget_folded(struct tc__folding *folding) {
  tc_day_ledger_fini(&folding->recalled);
}

static void note_cut(void *self, const char *text) {
  const struct tc__folding *folding = self;

  tc__note_as(folding->env, TC_WARN, 0, "%s", text);
}

static tb_rc recall_day(struct tc__folding *folding, const char *day, struct tb_diag *diag) {
  struct tc_day_ledger_options options = { .settle = true, .cut = note_cut, .self = folding };
  int day_fd =
      openat(folding->env->opt.dirs->archive, day, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

  if (day_fd < 0)
    return errno == ENOENT
               ? TB_OK
               : tb_fail(diag, tc_errno_rc(errno), "archive/%s: %s", day, strerror(errno));
  tb_rc rc = tc_day_ledger_read(day_fd, day, &options, diag, &folding->recalled);
  close(day_fd);
  return rc;
}

tb_rc tc__find_folded(struct tc__folding *folding, const unsigned char stream[16], const char *day,
                      uint64_t seq, struct tb_diag *diag, const tc_meta **out) {
  struct tc_day_ledger *ledger = &folding->recalled;

  *out = NULL;
  if (strcmp(ledger->day, day) != 0) TB_TRY(recall_day(folding, day, diag));
  if (strcmp(ledger->day, day) != 0) return TB_OK; /* nothing of that day is archived */
  const tc_meta *record = tc_day_ledger_find(ledger, stream, seq);
  if (record != NULL && record->generations[0]->first_seq <= seq) *out = record;
  return TB_OK;
}
