/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/retention/expire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/sealer/catalog/meta.h"

struct folder {
  int fd; /* -1: not open */
  char day[TC_DAY_BYTES], hex[TC_STREAM_HEX_BYTES];
};

struct item {
  const struct tc_segment_row *row;
  struct folder *folder;
  tc_meta *meta;
  char name[32]; /* of its meta */
  bool begun;    /* the marked meta is renamed to its final name */
  struct tb_diag diag;
};

struct tc__expiry {
  struct tc__retaining *retaining;
  struct item items[TC__EXPIRE_MAX];
  size_t n;
  struct folder folders[TC__EXPIRE_MAX];
  size_t nfolders;
  size_t step, at;  /* step and item of the next call */
  uint64_t took_ns; /* duration of the last call */
};

typedef tb_rc step_fn(struct tc__expiry *batch, struct item *item);

static bool goes_on(const struct item *item) {
  return item->diag.rc == TB_OK;
}

static void for_all(struct tc__expiry *batch, step_fn *step) {
  for (size_t i = 0; i < batch->n; i++)
    if (goes_on(&batch->items[i])) (void)!step(batch, &batch->items[i]);
}

static tb_rc fail_errno(struct item *item, const char *name) {
  return tb_fail(&item->diag, errno == ENOENT ? TB_NOTFOUND : tc_errno_rc(errno),
                 "archive/%s/%s/%s: %s", item->folder->day, item->folder->hex, name,
                 strerror(errno));
}

/* Reuses the previous segment's folder, which is mostly the same. */
static void find_folder(struct tc__expiry *batch, struct item *item) {
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

static tb_rc open_folder(struct tc__expiry *batch, struct item *item) {
  struct folder *folder = item->folder;

  if (folder->fd >= 0) return TB_OK;
  if (!tc_day_valid(folder->day))
    return tb_fail(&item->diag, TB_CORRUPT, "%s: has no day", item->row->path);
  folder->fd =
      tc_statedir_stream(batch->retaining->env->opt.dirs->archive, folder->day, folder->hex, false);
  return folder->fd >= 0 ? TB_OK : fail_errno(item, "");
}

/* Syncs once for neighbours in one folder, unless that failed for those before. */
static tb_rc sync_folder(struct tc__expiry *batch, struct item *item) {
  const struct item *before = item;

  if (!batch->retaining->env->opt.durable) return TB_OK;
  while (before > batch->items && before[-1].folder == item->folder)
    if (goes_on(--before)) return TB_OK;
  return fsync(item->folder->fd) == 0 ? TB_OK : fail_errno(item, "");
}

static tb_rc write_mark(struct tc__expiry *batch, struct item *item) {
  const struct tc_keys *signer;

  TB_TRY(tc__read_to_change(batch->retaining->env, item->folder->fd, item->name, &item->diag,
                            &item->meta, &signer));
  item->meta->expired = true;
  return tc_meta_write(item->folder->fd, item->name, item->meta, signer, false, &item->diag);
}

/* The first call waits for the disk; its journal commit includes the other files' metadata. */
static tb_rc sync_mark(struct tc__expiry *batch, struct item *item) {
  return batch->retaining->env->opt.durable
             ? tc_meta_sync(item->folder->fd, item->name, &item->diag)
             : TB_OK;
}

static tb_rc name_mark(struct tc__expiry *batch, struct item *item) {
  (void)batch;
  TB_TRY(tc_meta_publish(item->folder->fd, item->name, &item->diag));
  item->begun = true;
  return TB_OK;
}

static tb_rc unlink_trace(struct tc__expiry *batch, struct item *item) {
  char trace[32];

  (void)batch;
  tc_trace_name(item->row->first_gen, trace);
  if (unlinkat(item->folder->fd, trace, 0) == 0 || errno == ENOENT) return TB_OK;
  return fail_errno(item, trace);
}

/* Reads the meta again: losses or the stream's end may have been added. */
static tb_rc put_row(struct tc__expiry *batch, struct item *item) {
  tc_meta *meta;

  TB_TRY(tc_meta_read(item->folder->fd, item->name, &item->diag, &meta));
  tc_meta_free(item->meta);
  item->meta = meta;
  return tc__put_row(batch->retaining->catalog, meta, &item->diag);
}

/* Ignores errors: the catalog has its mark already, so it is rebuilt. */
static void put_rows(struct tc__expiry *batch) {
  struct tc__retaining *retaining = batch->retaining;
  struct tb_diag ignored = { 0 };

  (void)!tc__catalog_begin(retaining->catalog, &ignored);
  for_all(batch, put_row);
  (void)!tc__catalog_commit(retaining->catalog, &ignored);
}

/* While a segment is half gone the catalog's mark stays, for the next start. */
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

static void begin_item(struct tc__expiry *batch, const struct tc_segment_row *row) {
  struct item *item = &batch->items[batch->n++];

  *item = (struct item){ .row = row };
  tc_meta_name(row->first_gen, item->name);
  find_folder(batch, item);
  if (open_folder(batch, item) == TB_OK) (void)!write_mark(batch, item);
}

/* Sets the next batch's size: as many as fit into a slice at this pace, at most twice as many as now. */
static void learn_pace(struct tc__retaining *retaining, size_t n, uint64_t took_ns) {
  uint64_t each = took_ns / n + 1, fit = TC__SLICE_NS * 7 / 8 / each;

  if (fit > 2 * n) fit = 2 * n;
  if (fit > TC__EXPIRE_MAX) fit = TC__EXPIRE_MAX;
  retaining->at_once = fit == 0 ? 1 : fit;
}

/* Not interrupted: nobody else may use the temporary names before the metas are renamed. */
static void mark_segments(struct tc__expiry *batch, const struct tc_segment_row *rows[], size_t n) {
  uint64_t began_ns = tc_mono_ns();
  size_t most = batch->retaining->at_once;

  do begin_item(batch, rows[batch->n]);
  while (batch->n < n && batch->n < most);
  for_all(batch, sync_mark);
  for_all(batch, name_mark);
  batch->took_ns = tc_mono_ns() - began_ns;
  learn_pace(batch->retaining, batch->n, batch->took_ns);
}

struct tc__expiry *tc__expire(struct tc__retaining *retaining, const struct tc_segment_row *rows[],
                              size_t n) {
  struct tc__expiry *batch = calloc(1, sizeof *batch);

  if (batch == NULL) return NULL;
  batch->retaining = retaining;
  if (retaining->at_once == 0) retaining->at_once = 1;
  mark_segments(batch, rows, n);
  return batch;
}

/* The first call of a slice always fits. */
static bool fits(const struct tc__expiry *batch, uint64_t now_ns, uint64_t until_ns) {
  return now_ns + TC__SLICE_NS * 7 / 8 < until_ns || now_ns + batch->took_ns < until_ns;
}

bool tc__expire_go_on(struct tc__expiry *batch, uint64_t until_ns) {
  static step_fn *const steps[] = { sync_folder, unlink_trace, sync_folder };
  uint64_t now = tc_mono_ns();

  for (; batch->step < sizeof steps / sizeof *steps; batch->step++, batch->at = 0)
    for (; batch->at < batch->n; batch->at++) {
      struct item *item = &batch->items[batch->at];
      if (!goes_on(item)) continue;
      if (!fits(batch, now, until_ns)) return false;
      (void)!steps[batch->step](batch, item);
      batch->took_ns = tc_mono_ns() - now;
      now += batch->took_ns;
    }
  if (!fits(batch, now, until_ns)) return false;
  put_rows(batch);
  return true;
}

size_t tc__expire_end(struct tc__expiry *batch, tc__expired_fn *done, void *self) {
  size_t n = batch->n;

  for (size_t i = 0; i < n; i++) {
    struct item *item = &batch->items[i];
    if (item->diag.rc == TB_NOTFOUND) /* the catalog has a segment that does not exist */
      tc__catalog_lags(batch->retaining->catalog);
    if (item->begun) remember_half(&batch->retaining->half_gone, item->row->id, !goes_on(item));
    done(self, item->row, &item->diag);
  }
  tc__expire_free(batch);
  return n;
}

void tc__expire_free(struct tc__expiry *batch) {
  if (batch == NULL) return;
  for (size_t i = 0; i < batch->n; i++) tc_meta_free(batch->items[i].meta);
  for (size_t i = 0; i < batch->nfolders; i++)
    if (batch->folders[i].fd >= 0) close(batch->folders[i].fd);
  free(batch);
}
