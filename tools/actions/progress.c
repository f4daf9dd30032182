/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"

#define FILE_NAME "progress"

enum { NOTED_MAX = 4 * AC_ACTIONS_MAX, LINE_BYTES = 64, FILE_BYTES_MAX = NOTED_MAX * LINE_BYTES };

struct noted {
  char action[sizeof((struct ac_action *)0)->id];
  uint64_t id;
};

struct ac_progress {
  int folder_fd;
  pthread_mutex_t lock;
  struct noted noted
      [NOTED_MAX]; /* actions that are in no file any more are forgotten where there is no room */
  unsigned n;
};

static struct noted *find(struct ac_progress *progress, const char *action) {
  for (unsigned i = 0; i < progress->n; i++)
    if (strcmp(progress->noted[i].action, action) == 0) return &progress->noted[i];
  return NULL;
}

static struct noted *oldest(struct ac_progress *progress) {
  struct noted *found = &progress->noted[0];

  for (unsigned i = 1; i < progress->n; i++)
    if (progress->noted[i].id < found->id) found = &progress->noted[i];
  return found;
}

static void set(struct ac_progress *progress, const char *action, uint64_t id) {
  struct noted *noted = find(progress, action);

  if (noted == NULL)
    noted = progress->n < NOTED_MAX ? &progress->noted[progress->n++] : oldest(progress);
  snprintf(noted->action, sizeof noted->action, "%s", action);
  noted->id = id;
}

uint64_t ac_progress_of(struct ac_progress *progress, const char *action) {
  pthread_mutex_lock(&progress->lock);
  const struct noted *noted = find(progress, action);
  uint64_t id = noted != NULL ? noted->id : 0;
  pthread_mutex_unlock(&progress->lock);
  return id;
}

tb_rc ac_progress_note(struct ac_progress *progress, const char *action, uint64_t id,
                       struct tb_diag *diag) {
  char text[FILE_BYTES_MAX];
  size_t n = 0;

  pthread_mutex_lock(&progress->lock);
  set(progress, action, id);
  for (unsigned i = 0; i < progress->n; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s %" PRIu64 "\n", progress->noted[i].action,
                          progress->noted[i].id);
  tb_rc rc = tc_file_replace(progress->folder_fd, FILE_NAME, text, n, diag);
  pthread_mutex_unlock(&progress->lock);
  return rc;
}

_Static_assert(sizeof((struct noted *)0)->action == 41 && LINE_BYTES >= 41 + 1 + 20 + 1,
               "widths in the format of a line");

static void read_lines(struct ac_progress *progress, char *text, struct tb_diag *out_wrong) {
  struct noted noted;

  for (unsigned number = 1; text != NULL && *text != '\0'; number++) {
    if (sscanf(strsep(&text, "\n"), "%40s %" SCNu64, noted.action, &noted.id) == 2)
      set(progress, noted.action, noted.id);
    else if (out_wrong->rc == TB_OK)
      tb_fail(out_wrong, TB_BROKEN, FILE_NAME " line %u: an action and an id are expected", number);
  }
}

tb_rc ac_progress_open(const char *folder, struct tb_diag *diag, struct tb_diag *out_wrong,
                       struct ac_progress **out) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char *text;

  if (fd < 0) return tb_fail(diag, TB_IO, "%s: %s", folder, strerror(errno));
  struct ac_progress *progress = calloc(1, sizeof *progress);
  tb_rc rc = progress == NULL
                 ? TB_NOMEM
                 : tc_file_text_if_any(fd, FILE_NAME, FILE_BYTES_MAX, diag, out_wrong, &text);
  if (rc != TB_OK) {
    free(progress);
    close(fd);
    return rc;
  }
  progress->folder_fd = fd;
  pthread_mutex_init(&progress->lock, NULL);
  read_lines(progress, text, out_wrong);
  free(text);
  *out = progress;
  return TB_OK;
}

void ac_progress_free(struct ac_progress *progress) {
  if (progress == NULL) return;
  close(progress->folder_fd);
  pthread_mutex_destroy(&progress->lock);
  free(progress);
}
