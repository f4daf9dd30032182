/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/archive_walk.h"

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
  if (names->n == names->cap) {
    size_t cap = names->cap == 0 ? 64 : 2 * names->cap;
    void *moved = reallocarray(names->items, cap, sizeof(char *));
    if (moved == NULL) return TB_NOMEM;
    names->items = moved;
    names->cap = cap;
  }
  names->items[names->n] = strdup(name);
  if (names->items[names->n] == NULL) return TB_NOMEM;
  names->n++;
  return TB_OK;
}

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
  if (rc == TB_OK && out->n > 0) qsort(out->items, out->n, sizeof(char *), by_name);
  return rc;
}

struct walk {
  tc_archive_file_fn *each;
  void *self;
  struct tb_diag *diag;
  const char *day;
};

/* Calls below() for each folder in dir_fd, opened; what is no folder is passed over. */
static tb_rc each_folder(struct walk *walk, int dir_fd, const char *what,
                         tb_rc (*below)(struct walk *walk, int fd, const char *name)) {
  struct names names;
  tb_rc rc = names_of(dir_fd, what, &names, walk->diag);

  for (size_t i = 0; rc == TB_OK && i < names.n; i++) {
    int fd = openat(dir_fd, names.items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && (errno == ENOTDIR || errno == ENOENT || errno == ELOOP)) continue;
    if (fd < 0)
      rc = tb_fail(walk->diag, tc_errno_rc(errno), "%s/%s: %s", what, names.items[i],
                   strerror(errno));
    else
      rc = below(walk, fd, names.items[i]);
    if (fd >= 0) close(fd);
  }
  names_free(&names);
  return rc;
}

static tb_rc walk_stream(struct walk *walk, int fd, const char *name) {
  struct names names;
  tb_rc rc = names_of(fd, name, &names, walk->diag);

  for (size_t i = 0; rc == TB_OK && i < names.n; i++) {
    struct tc_archive_file file = {
      .dir_fd = fd, .day = walk->day, .stream_hex = name, .name = names.items[i]
    };
    snprintf(file.path, sizeof file.path, "archive/%.16s/%.48s/%.96s", walk->day, name,
             names.items[i]);
    rc = walk->each(walk->self, &file);
  }
  names_free(&names);
  return rc;
}

static tb_rc walk_day(struct walk *walk, int fd, const char *name) {
  walk->day = name;
  return each_folder(walk, fd, name, walk_stream);
}

tb_rc tc_archive_walk(int archive_fd, tc_archive_file_fn *each, void *self, struct tb_diag *diag) {
  struct walk walk = { .each = each, .self = self, .diag = diag };

  return each_folder(&walk, archive_fd, "archive", walk_day);
}

bool tc_name_ends(const char *name, const char *end) {
  size_t n = strlen(name), m = strlen(end);

  return n >= m && strcmp(name + n - m, end) == 0;
}
