/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/walk.h"

#include "archive/day_ledger.h"
#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct names {
  char **items;
  size_t n, cap;
};

static void names_free(struct names *names) {
  for (size_t i = 0; i < names->n; i++) free(names->items[i]);
  free(names->items);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static tb_rc names_add(struct names *names, const char *name) {
  TB_TRY(TB_GROW(names->items, names->cap, names->n));
  names->items[names->n] = strdup(name);
  if (names->items[names->n] == NULL) return TB_NOMEM;
  names->n++;
  return TB_OK;
}

/* After a failure *out has the names read so far. */
static tb_rc names_of(int dir_fd, const char *what, struct names *out, struct tb_diag *diag) {
  const char *name;
  DIR *dir;

  *out = (struct names){ 0 };
  TB_TRY(tc_dir_open(dir_fd, what, diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, what, diag, &name)) == TB_OK && name != NULL)
    if (names_add(out, name) != TB_OK)
      rc = tb_fail(diag, TB_NOMEM, "%s: no memory for its names", what);
  closedir(dir);
  if (out->n > 0) qsort(out->items, out->n, sizeof(char *), by_name);
  return rc;
}

struct walk {
  tc_archive_file_fn *each;
  tc_archive_unread_fn *unread;
  void *self;
  struct tb_diag *diag;
  const char *stream; /* walk only this stream; NULL: all */
  const char *day;
  struct tc_archive_place *place; /* NULL: walk from the first file on */
};

static bool is_day(const struct walk *walk, const char *day) {
  return walk->place != NULL && strcmp(walk->place->day, day) == 0;
}

static bool is_past_day(const struct walk *walk, const char *day) {
  return walk->place != NULL && strcmp(day, walk->place->day) < 0;
}

static bool is_past_stream(const struct walk *walk, const char *stream) {
  return is_day(walk, walk->day) && strcmp(stream, walk->place->stream_hex) < 0;
}

static bool is_past_file(const struct walk *walk, const struct tc_archive_file *file) {
  return is_day(walk, walk->day) && strcmp(file->stream_hex, walk->place->stream_hex) == 0 &&
         strcmp(file->name, walk->place->name) <= 0;
}

/* Names that are too long are not of this program: they are ignored. */
static void note_place(const struct walk *walk, const struct tc_archive_file *file) {
  struct tc_archive_place *place = walk->place;

  if (place == NULL || strlen(file->day) >= sizeof place->day ||
      strlen(file->stream_hex) >= sizeof place->stream_hex ||
      strlen(file->name) >= sizeof place->name)
    return;
  strcpy(place->day, file->day);
  strcpy(place->stream_hex, file->stream_hex);
  strcpy(place->name, file->name);
}

static tb_rc skip_unread(struct walk *walk, tb_rc rc, const struct tb_diag *why) {
  if (tc_rc_is_short(rc) || walk->unread == NULL) return tb_fail(walk->diag, rc, "%s", why->text);
  walk->unread(walk->self, why->text);
  return TB_OK;
}

/* *out -1: not a folder, or skipped. */
static tb_rc open_folder(struct walk *walk, int dir_fd, const char *name, const char *path,
                         int *out) {
  struct tb_diag why = { 0 };

  *out = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (*out >= 0 || errno == ENOTDIR || errno == ENOENT || errno == ELOOP) return TB_OK;
  tb_rc rc = tb_fail(&why, tc_errno_rc(errno), "%s: %s", path, strerror(errno));
  return skip_unread(walk, rc, &why);
}

static tb_rc list_folder(struct walk *walk, int fd, const char *path, struct names *out) {
  struct tb_diag why = { 0 };
  tb_rc rc = names_of(fd, path, out, &why);

  return rc == TB_OK ? TB_OK : skip_unread(walk, rc, &why);
}

static tb_rc visit(struct walk *walk, int fd, const char *folder, const char *stream,
                   const char *name) {
  struct tc_archive_file file = {
    .dir_fd = fd, .day = walk->day, .stream_hex = stream, .name = name
  };

  snprintf(file.path, sizeof file.path, "%s/%.96s", folder, name);
  if (is_past_file(walk, &file)) return TB_OK;
  tb_rc rc = walk->each(walk->self, &file);
  if (rc == TB_OK || rc == TB_AGAIN) note_place(walk, &file);
  return rc;
}

static tb_rc walk_stream(struct walk *walk, int day_fd, const char *name) {
  struct names names;
  char path[76];
  int fd;

  snprintf(path, sizeof path, "archive/%.16s/%.48s", walk->day, name);
  TB_TRY(open_folder(walk, day_fd, name, path, &fd));
  if (fd < 0) return TB_OK;
  tb_rc rc = list_folder(walk, fd, path, &names);
  for (size_t i = 0; rc == TB_OK && i < names.n; i++)
    rc = visit(walk, fd, path, name, names.items[i]);
  names_free(&names);
  close(fd);
  return rc;
}

/* Called before the day's metas, which the ledger's records may replace. */
static tb_rc walk_ledger(struct walk *walk, int day_fd, const char *path,
                         const struct names *names) {
  for (size_t i = 0; i < names->n; i++)
    if (strcmp(names->items[i], TC_DAY_LEDGER_NAME) == 0 && !is_past_stream(walk, ""))
      return visit(walk, day_fd, path, "", names->items[i]);
  return TB_OK;
}

static tb_rc walk_streams(struct walk *walk, int day_fd, const char *path) {
  struct names names;
  tb_rc rc = list_folder(walk, day_fd, path, &names);

  if (rc == TB_OK) rc = walk_ledger(walk, day_fd, path, &names);
  for (size_t i = 0; rc == TB_OK && i < names.n; i++)
    if (!is_past_stream(walk, names.items[i])) rc = walk_stream(walk, day_fd, names.items[i]);
  names_free(&names);
  return rc;
}

static tb_rc walk_day(struct walk *walk, int archive_fd, const char *name) {
  char path[48];
  int fd;

  if (walk->stream != NULL && !tc_day_valid(name)) return TB_OK;
  snprintf(path, sizeof path, "archive/%.16s", name);
  TB_TRY(open_folder(walk, archive_fd, name, path, &fd));
  if (fd < 0) return TB_OK;
  walk->day = name;
  tb_rc rc =
      walk->stream != NULL ? walk_stream(walk, fd, walk->stream) : walk_streams(walk, fd, path);
  close(fd);
  return rc;
}

static tb_rc walk_days(struct walk *walk, int archive_fd) {
  struct names names;
  tb_rc rc = names_of(archive_fd, "archive", &names, walk->diag);

  for (size_t i = 0; rc == TB_OK && i < names.n; i++)
    if (!is_past_day(walk, names.items[i])) rc = walk_day(walk, archive_fd, names.items[i]);
  names_free(&names);
  return rc;
}

tb_rc tc_archive_walk(int archive_fd, tc_archive_file_fn *each, tc_archive_unread_fn *unread,
                      void *self, struct tb_diag *diag) {
  struct walk walk = { .each = each, .unread = unread, .self = self, .diag = diag };

  return walk_days(&walk, archive_fd);
}

tb_rc tc_archive_walk_from(int archive_fd, struct tc_archive_place *place, tc_archive_file_fn *each,
                           tc_archive_unread_fn *unread, void *self, struct tb_diag *diag) {
  struct walk walk = { .each = each, .unread = unread, .self = self, .diag = diag, .place = place };

  return walk_days(&walk, archive_fd);
}

tb_rc tc_archive_walk_stream(int archive_fd, const char *stream_hex, tc_archive_file_fn *each,
                             tc_archive_unread_fn *unread, void *self, struct tb_diag *diag) {
  struct walk walk = {
    .each = each, .unread = unread, .self = self, .diag = diag, .stream = stream_hex
  };

  return walk_days(&walk, archive_fd);
}

bool tc_name_ends(const char *name, const char *end) {
  size_t n = strlen(name), m = strlen(end);

  return n >= m && strcmp(name + n - m, end) == 0;
}
