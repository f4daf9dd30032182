/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "archive/text_file.h"

#define FILE_NAME "progress"

enum {
  NOTED_MAX = AC_ACTIONS_MAX * (AC_RULES_MAX + 4),
  LINE_BYTES = 97,
  FILE_BYTES_MAX = NOTED_MAX * LINE_BYTES
};

struct noted {
  char action[sizeof((struct ac_action *)0)->id];
  char rule[AC_RULE_MAX + 1]; /* "": all rules */
  uint64_t id;
};

struct ac_progress {
  int folder_fd;
  struct tc_text_file file;
  pthread_mutex_t lock; /* protects the fields below */
  struct noted noted[NOTED_MAX];
  unsigned n;
};

static struct noted *find_noted(struct ac_progress *progress, const char *action,
                                const char *rule) {
  for (unsigned i = 0; i < progress->n; i++)
    if (strcmp(progress->noted[i].action, action) == 0 &&
        strcmp(progress->noted[i].rule, rule) == 0)
      return &progress->noted[i];
  return NULL;
}

static void forget_rules(struct ac_progress *progress, const char *action) {
  for (unsigned i = 0; i < progress->n;) {
    const struct noted *noted = &progress->noted[i];
    if (strcmp(noted->action, action) == 0 && noted->rule[0] != '\0')
      progress->noted[i] = progress->noted[--progress->n];
    else
      i++;
  }
}

/* Prefers entries of a rule. */
static struct noted *oldest(struct ac_progress *progress) {
  struct noted *found = &progress->noted[0];

  for (unsigned i = 1; i < progress->n; i++) {
    struct noted *noted = &progress->noted[i];
    bool is_of_rule = noted->rule[0] != '\0', found_is = found->rule[0] != '\0';
    if (is_of_rule != found_is ? is_of_rule : noted->id < found->id) found = noted;
  }
  return found;
}

/* Frees an entry. If it is a rule's, its action takes over the id, so that nothing is done twice. */
static struct noted *forget_oldest(struct ac_progress *progress) {
  struct noted *noted = oldest(progress);
  struct noted *of_all = find_noted(progress, noted->action, "");

  if (of_all != NULL && of_all->id < noted->id) of_all->id = noted->id;
  return noted;
}

static void set_noted(struct ac_progress *progress, const char *action, const char *rule,
                      uint64_t id) {
  if (rule[0] == '\0') forget_rules(progress, action);
  struct noted *noted = find_noted(progress, action, rule);

  if (noted == NULL)
    noted = progress->n < NOTED_MAX ? &progress->noted[progress->n++] : forget_oldest(progress);
  snprintf(noted->action, sizeof noted->action, "%s", action);
  snprintf(noted->rule, sizeof noted->rule, "%s", rule);
  noted->id = id;
  tc_text_file_changed(&progress->file);
}

uint64_t ac_progress_of(struct ac_progress *progress, const char *action, const char *rule) {
  pthread_mutex_lock(&progress->lock);
  const struct noted *noted = find_noted(progress, action, rule);
  if (noted == NULL) noted = find_noted(progress, action, "");
  uint64_t id = noted != NULL ? noted->id : 0;
  pthread_mutex_unlock(&progress->lock);
  return id;
}

static void print_all(void *self, struct tb_buf *text) {
  struct ac_progress *progress = self;

  pthread_mutex_lock(&progress->lock);
  for (unsigned i = 0; i < progress->n; i++)
    tb_buf_printf(text, "%s %" PRIu64 "%s%s\n", progress->noted[i].action, progress->noted[i].id,
                  progress->noted[i].rule[0] != '\0' ? " " : "", progress->noted[i].rule);
  pthread_mutex_unlock(&progress->lock);
}

tb_rc ac_progress_note(struct ac_progress *progress, const char *action, const char *rule,
                       uint64_t id, struct tb_diag *diag) {
  pthread_mutex_lock(&progress->lock);
  set_noted(progress, action, rule, id);
  pthread_mutex_unlock(&progress->lock);
  return tc_text_file_save(&progress->file, progress, print_all, diag);
}

_Static_assert(sizeof((struct noted *)0)->action == 41 && AC_RULE_MAX == 32 &&
                   LINE_BYTES >= 41 + 1 + 20 + 1 + 32 + 1,
               "widths in the format of a line");

static tb_rc read_line(void *self, const char *line, bool *out_is_one) {
  struct noted noted = { .rule = "" };

  *out_is_one = sscanf(line, "%40s %" SCNu64 " %32s", noted.action, &noted.id, noted.rule) >= 2;
  if (*out_is_one) set_noted(self, noted.action, noted.rule, noted.id);
  return TB_OK;
}

tb_rc ac_progress_open(const char *folder, struct tb_diag *diag, struct tb_diag *out_wrong,
                       struct ac_progress **out) {
  struct ac_progress *progress = calloc(1, sizeof *progress);

  if (progress == NULL) return TB_NOMEM;
  progress->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (progress->folder_fd < 0) {
    tb_fail(diag, TB_IO, "%s: %s", folder, strerror(errno));
    free(progress);
    return TB_IO;
  }
  if (flock(progress->folder_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    tb_fail(diag, TB_REFUSED, "%s is in use by another tracecollect-actions", folder);
    close(progress->folder_fd);
    free(progress);
    return TB_REFUSED;
  }
  pthread_mutex_init(&progress->lock, NULL);
  tb_rc rc = tc_text_file_open(&progress->file, progress->folder_fd, FILE_NAME, FILE_BYTES_MAX,
                               progress, read_line, diag, out_wrong);
  if (rc == TB_OK)
    *out = progress;
  else
    ac_progress_free(progress);
  return rc;
}

void ac_progress_free(struct ac_progress *progress) {
  if (progress == NULL) return;
  close(progress->folder_fd);
  tc_text_file_fini(&progress->file);
  pthread_mutex_destroy(&progress->lock);
  free(progress);
}
