/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/out_file.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tracectl/term/tracectl.h"

struct pair {
  char *path, *temporary; /* temporary NULL: written directly */
};

struct tk_out_set {
  struct pair files[TK_OUT_FILES_MAX];
  volatile sig_atomic_t n; /* the handler only sees whole entries */
  FILE *current;
};

static struct tk_out_set *volatile unfinished;

/* unlink() and _exit() are safe here; nothing else is. */
static void remove_and_leave(int signal_number) {
  struct tk_out_set *set = unfinished;

  (void)signal_number;
  for (int i = 0; set != NULL && i < set->n; i++)
    if (set->files[i].temporary != NULL) unlink(set->files[i].temporary);
  _exit(TK_INTERRUPTED);
}

tb_rc tk_out_new(struct tb_diag *diag, struct tk_out_set **out) {
  struct tk_out_set *set = calloc(1, sizeof *set);
  struct sigaction leave = { .sa_handler = remove_and_leave };

  if (set == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  unfinished = set;
  sigaction(SIGINT, &leave, NULL);
  sigaction(SIGTERM, &leave, NULL);
  *out = set;
  return TB_OK;
}

static tb_rc io_fail(struct tb_diag *diag, const char *path) {
  return tb_fail(diag, TB_IO, "%.120s: %s", path, strerror(errno));
}

static bool is_straight(const char *path) {
  struct stat st;

  return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

/* mkstemp() files are readable by the owner only; gives the file the mode of a plain creation. */
static int open_beside(char *temporary) {
  mode_t mask = umask(0);

  umask(mask);
  int fd = mkstemp(temporary);
  if (fd >= 0) fchmod(fd, 0666 & ~mask);
  return fd;
}

static tb_rc end_current(struct tk_out_set *set, struct tb_diag *diag) {
  FILE *file = set->current;

  if (file == NULL) return TB_OK;
  set->current = NULL;
  int bad = ferror(file) | fflush(file);
  if (file != stdout) bad |= fclose(file);
  return bad != 0 ? io_fail(diag, set->files[set->n - 1].path) : TB_OK;
}

tb_rc tk_out_begin(struct tk_out_set *set, const char *path, struct tb_diag *diag, FILE **out) {
  struct pair *pair = &set->files[set->n];

  TB_TRY(end_current(set, diag));
  if (set->n == TK_OUT_FILES_MAX)
    return tb_fail(diag, TB_BUDGET, "more than %d holes: ask for less at a time", TK_OUT_FILES_MAX);
  pair->path = strdup(path);
  if (pair->path == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));

  if (is_straight(path)) {
    set->n++;
    set->current = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
  } else {
    if (asprintf(&pair->temporary, "%s.part-XXXXXX", path) < 0)
      return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
    int fd = open_beside(pair->temporary);
    if (fd < 0) return io_fail(diag, path);
    set->n++;
    set->current = fdopen(fd, "w");
  }
  if (set->current == NULL) return io_fail(diag, path);
  *out = set->current;
  return TB_OK;
}

tb_rc tk_out_publish(struct tk_out_set *set, struct tb_diag *diag) {
  TB_TRY(end_current(set, diag));
  for (int i = 0; i < set->n; i++) {
    struct pair *pair = &set->files[i];
    if (pair->temporary == NULL) continue;
    if (rename(pair->temporary, pair->path) != 0) return io_fail(diag, pair->path);
    char *done = pair->temporary;
    pair->temporary = NULL;
    free(done);
  }
  return TB_OK;
}

bool tk_out_is_trace(const char *path) {
  char begin[5] = "";

  if (is_straight(path)) return false;
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool is_trace = fread(begin, 1, 5, file) == 5 && memcmp(begin, "go 1.", 5) == 0;
  fclose(file);
  return is_trace;
}

bool tk_out_is_same(const char *path, const char *other) {
  struct stat a, b;

  return !is_straight(other) && stat(path, &a) == 0 && stat(other, &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void tk_out_free(struct tk_out_set *set) {
  if (set == NULL) return;
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  unfinished = NULL;
  if (set->current != NULL && set->current != stdout) fclose(set->current);
  for (int i = 0; i < TK_OUT_FILES_MAX; i++) {
    if (i < set->n && set->files[i].temporary != NULL) unlink(set->files[i].temporary);
    free(set->files[i].temporary);
    free(set->files[i].path);
  }
  free(set);
}
