/* SPDX-License-Identifier: Apache-2.0 */
/* Takes segments out of the archive, several together, in steps. Each step is done for all before the next one begins, so
 * that a folder is synced twice and the catalog written once for all of them:
 *
 *   marks      each meta says that its segment expired, and is on the disk under its name
 *   traces     their names are gone, on the disk too
 *   catalog    its rows say the same
 *
 * A failure ends the steps of its own segment. Between the first step and the last a segment is half gone: the catalog
 * still has it, so the next round goes on with it, and a next start finds the catalog's mark, rebuilds it from the metas
 * and finishes what was begun here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "collector/sealer/private.h"

struct folder {
  int fd; /* -1: not to be opened */
  char day[TC_DAY_BYTES], hex[TC_STREAM_HEX_BYTES];
};

struct item {
  const struct tc_segment_row *row;
  struct folder *folder;
  tc_meta *meta;
  char name[32]; /* of its meta */
  bool begun;    /* its mark has its name */
  struct tb_diag diag;
};

struct batch {
  struct tc_sealer *sealer;
  struct item items[TC__EXPIRE_MAX];
  size_t n;
  struct folder folders[TC__EXPIRE_MAX];
  size_t nfolders;
};

typedef tb_rc step_fn(struct batch *batch, struct item *item);

static bool goes_on(const struct item *item) {
  return item->diag.rc == TB_OK;
}

static void for_all(struct batch *batch, step_fn *step) {
  for (size_t i = 0; i < batch->n; i++)
    if (goes_on(&batch->items[i])) (void)!step(batch, &batch->items[i]);
}

static tb_rc fail_errno(struct item *item, const char *name) {
  return tb_fail(&item->diag, errno == ENOENT ? TB_NOTFOUND : tc_errno_rc(errno),
                 "archive/%s/%s/%s: %s", item->folder->day, item->folder->hex, name,
                 strerror(errno));
}

/* ---- folders */

/* Segments next to each other mostly lie in one folder. */
static void find_folder(struct batch *batch, struct item *item) {
  struct folder *last = &batch->folders[batch->nfolders], now = { .fd = -1 };

  /* "archive/YYYY-MM-DD/...": the row was made from a meta of ours. */
  memcpy(now.day, item->row->path + strlen("archive/"), TC_DAY_BYTES - 1);
  tb_hex(item->row->stream, sizeof item->row->stream, now.hex);
  item->folder = last;
  if (batch->nfolders > 0 && strcmp(last[-1].day, now.day) == 0 &&
      strcmp(last[-1].hex, now.hex) == 0) {
    item->folder = last - 1;
    return;
  }
  *last = now;
  batch->nfolders++;
}

static tb_rc open_folder(struct batch *batch, struct item *item) {
  struct folder *folder = item->folder;

  if (folder->fd >= 0) return TB_OK;
  if (!tc_day_valid(folder->day))
    return tb_fail(&item->diag, TB_CORRUPT, "%s: has no day", item->row->path);
  folder->fd =
      tc_statedir_stream(batch->sealer->opt.dirs->archive, folder->day, folder->hex, false);
  return folder->fd >= 0 ? TB_OK : fail_errno(item, "");
}

static void sync_folders(struct batch *batch) {
  const struct folder *synced = NULL;

  if (!batch->sealer->opt.durable) return;
  for (size_t i = 0; i < batch->n; i++) {
    struct item *item = &batch->items[i];
    if (!goes_on(item) || item->folder == synced) continue;
    if (fsync(item->folder->fd) == 0)
      synced = item->folder;
    else
      (void)!fail_errno(item, "");
  }
}

/* ---- steps */

static tb_rc write_mark(struct batch *batch, struct item *item) {
  const struct tc_keys *signer;

  TB_TRY(tc__read_to_change(batch->sealer, item->folder->fd, item->name, &item->diag, &item->meta,
                            &signer));
  item->meta->expired = true;
  return tc_meta_write(item->folder->fd, item->name, item->meta, signer, false, &item->diag);
}

/* The first of these waits for the disk and takes the others' metadata along. */
static tb_rc sync_mark(struct batch *batch, struct item *item) {
  return batch->sealer->opt.durable ? tc_meta_sync(item->folder->fd, item->name, &item->diag)
                                    : TB_OK;
}

static tb_rc name_mark(struct batch *batch, struct item *item) {
  (void)batch;
  TB_TRY(tc_meta_publish(item->folder->fd, item->name, &item->diag));
  item->begun = true;
  return TB_OK;
}

static tb_rc unlink_trace(struct batch *batch, struct item *item) {
  char trace[32];

  (void)batch;
  tc_trace_name(item->row->first_gen, trace);
  if (unlinkat(item->folder->fd, trace, 0) == 0 || errno == ENOENT) return TB_OK;
  return fail_errno(item, trace);
}

static tb_rc put_row(struct batch *batch, struct item *item) {
  return tc__put_row(batch->sealer, item->meta, &item->diag);
}

/* The catalog has its mark already, so a failure here only means that it is rebuilt. */
static void put_rows(struct batch *batch) {
  struct tc_sealer *sealer = batch->sealer;
  struct tb_diag why = { 0 }, ignored = { 0 };

  if (tc__catalog_takes_rows(sealer) && tc_catalog_begin(sealer->catalog, &why) != TB_OK)
    (void)!tc__catalog_failed(sealer, &why, &ignored);
  for_all(batch, put_row);
  if (tc__catalog_takes_rows(sealer) && tc_catalog_commit(sealer->catalog, &why) != TB_OK)
    (void)!tc__catalog_failed(sealer, &why, &ignored);
}

/* ---- the batch */

/* As long as one is half gone the mark stays for the next start. */
static void remember_half(struct tc__half_gone *half, uint64_t id, bool is_half) {
  size_t at = 0;

  while (at < half->n && half->ids[at] != id) at++;
  if (at < half->n && !is_half) half->ids[at] = half->ids[--half->n];
  if (at < half->n || !is_half) return;
  if (half->n < TC__HALF_MAX)
    half->ids[half->n++] = id;
  else
    half->more = true;
}

static void begin(struct batch *batch, const struct tc_segment_row *row) {
  struct item *item = &batch->items[batch->n++];

  *item = (struct item){ .row = row };
  tc_meta_name(row->first_gen, item->name);
  find_folder(batch, item);
  if (open_folder(batch, item) == TB_OK) (void)!write_mark(batch, item);
}

static void end(struct batch *batch, struct tc__expiry *expiry) {
  for (size_t i = 0; i < batch->n; i++) {
    struct item *item = &batch->items[i];
    if (item->diag.rc == TB_NOTFOUND) /* there is no such segment */
      batch->sealer->opt.stats->catalog_stale = true;
    if (item->begun) remember_half(&batch->sealer->half_gone, item->row->id, !goes_on(item));
    expiry->done(expiry->self, item->row, &item->diag);
    tc_meta_free(item->meta);
  }
  for (size_t i = 0; i < batch->nfolders; i++)
    if (batch->folders[i].fd >= 0) close(batch->folders[i].fd);
}

size_t tc__expire(struct tc_sealer *sealer, const struct tc_segment_row *rows[], size_t n,
                  struct tc__expiry *expiry) {
  struct batch batch;

  batch.sealer = sealer;
  batch.n = batch.nfolders = 0;
  do begin(&batch, rows[batch.n]);
  while (batch.n < n && batch.n < TC__EXPIRE_MAX && tc_mono_ns() < expiry->until_ns);
  for_all(&batch, sync_mark);
  for_all(&batch, name_mark);
  sync_folders(&batch);
  for_all(&batch, unlink_trace);
  sync_folders(&batch);
  put_rows(&batch);
  end(&batch, expiry);
  return batch.n;
}
