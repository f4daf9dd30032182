/* SPDX-License-Identifier: Apache-2.0 */
/* A firing is kept as the line that the file has of it. */
#include "collector/trigger/firings.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/state_dir.h"
#include "archive/text_file.h"
#include "base/clock.h"
#include "base/hex.h"
#include "trigger/watch.h"

#define FILE_NAME  "firings"
#define NO_ACTIONS "-"

enum {
  LINE_BYTES = 3 * 21 + TC_STREAM_HEX_BYTES + 1 + TR_NAME_MAX + 1 + 2 * (TC_NAME_MAX + 1) +
               TR_ACTIONS_BYTES + TR_WORDS_MAX,
  FILE_BYTES_MAX = TC_FIRINGS_MAX * LINE_BYTES,
};

struct entry {
  uint64_t id;
  char *line;
};

struct tc_firings {
  struct tc_text_file file;
  pthread_mutex_t lock; /* of all below */
  struct entry all[TC_FIRINGS_MAX];
  size_t first, n;
};

static struct entry *at(struct tc_firings *firings, size_t i) {
  return &firings->all[(firings->first + i) % TC_FIRINGS_MAX];
}

static uint64_t last_id(struct tc_firings *firings) {
  return firings->n > 0 ? at(firings, firings->n - 1)->id : 0;
}

/* ---- a line */

struct parsed {
  struct tc_firing firing; /* lends from below, and from the line */
  char rule[TR_NAME_MAX + 1];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  char actions[TR_ACTIONS_BYTES];
};

_Static_assert(TR_NAME_MAX == 32 && TC_NAME_MAX == 64 && TR_ACTIONS_BYTES == 328,
               "widths in the format of a line");

static unsigned count_spaces(const char *text, int len) {
  unsigned n = 0;

  for (int i = 0; i < len; i++) n += text[i] == ' ' ? 1 : 0;
  return n;
}

/* A field that is too long would be taken for two: then there is a space less. */
static bool parse(const char *line, struct parsed *out) {
  char stream[TC_STREAM_HEX_BYTES];
  struct tc_firing *f = &out->firing;
  int end = 0;

  *out = (struct parsed){ .firing = { .rule = out->rule,
                                      .service = out->service,
                                      .instance = out->instance,
                                      .actions = out->actions } };
  int n = sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %32s %32s %64s %64s %327s%n", &f->id,
                 &f->wall_ns, &f->gen, stream, out->rule, out->service, out->instance, out->actions,
                 &end);
  if (n != 8 || line[end] != ' ' || count_spaces(line, end) != 7 ||
      strlen(stream) != 2 * sizeof f->stream)
    return false;
  f->words = line + end + 1;
  if (strcmp(out->actions, NO_ACTIONS) == 0) out->actions[0] = '\0';
  return tb_unhex(stream, f->stream, sizeof f->stream);
}

/* The caller frees it; NULL: no memory. */
static char *print(const struct tc_firing *f, uint64_t id) {
  char stream[TC_STREAM_HEX_BYTES], *line = NULL;
  int n = asprintf(&line, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s %s %s %s %s %s", id, f->wall_ns,
                   f->gen, tb_hex(f->stream, sizeof f->stream, stream), f->rule, f->service,
                   f->instance, f->actions[0] != '\0' ? f->actions : NO_ACTIONS, f->words);

  if (n < 0) return NULL;
  for (char *c = line; *c != '\0'; c++) /* of hostile names in the words */
    if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
  return line;
}

/* ---- what there is */

/* Owns line. */
static void put(struct tc_firings *firings, uint64_t id, char *line) {
  if (firings->n == TC_FIRINGS_MAX) {
    free(at(firings, 0)->line);
    firings->first = (firings->first + 1) % TC_FIRINGS_MAX;
    firings->n--;
  }
  *at(firings, firings->n++) = (struct entry){ id, line };
  tc_text_file_changed(&firings->file);
}

tb_rc tc_firings_add(struct tc_firings *firings, const struct tc_firing *firing) {
  uint64_t id = tc_wall_ns();

  pthread_mutex_lock(&firings->lock);
  if (id <= last_id(firings)) id = last_id(firings) + 1;
  char *line = print(firing, id);
  if (line != NULL) put(firings, id, line);
  pthread_mutex_unlock(&firings->lock);
  return line != NULL ? TB_OK : TB_NOMEM;
}

/* Of the first with an id above after. */
static size_t find(struct tc_firings *firings, uint64_t after) {
  size_t low = 0, high = firings->n;

  while (low < high) {
    size_t middle = (low + high) / 2;
    if (at(firings, middle)->id > after)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

size_t tc_firings_count(struct tc_firings *firings, uint64_t after) {
  pthread_mutex_lock(&firings->lock);
  size_t n = firings->n - find(firings, after);
  pthread_mutex_unlock(&firings->lock);
  return n;
}

tb_rc tc_firings_each(struct tc_firings *firings, uint64_t after, void *self,
                      tb_rc (*take)(void *self, const struct tc_firing *firing)) {
  struct parsed parsed;
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&firings->lock);
  for (size_t i = find(firings, after); i < firings->n && rc == TB_OK; i++)
    if (parse(at(firings, i)->line, &parsed)) rc = take(self, &parsed.firing);
  pthread_mutex_unlock(&firings->lock);
  return rc;
}

/* ---- the file */

static void print_all(void *self, struct tb_buf *text) {
  struct tc_firings *firings = self;

  pthread_mutex_lock(&firings->lock);
  for (size_t i = 0; i < firings->n; i++) tb_buf_printf(text, "%s\n", at(firings, i)->line);
  pthread_mutex_unlock(&firings->lock);
}

tb_rc tc_firings_save(struct tc_firings *firings, struct tb_diag *diag) {
  return tc_text_file_save(&firings->file, firings, print_all, diag);
}

static tb_rc read_line(void *self, const char *line, bool *out_is_one) {
  struct tc_firings *firings = self;
  struct parsed parsed;

  *out_is_one = parse(line, &parsed) && parsed.firing.id > last_id(firings);
  if (!*out_is_one) return TB_OK;
  char *copy = strdup(line);
  if (copy == NULL) return TB_NOMEM;
  put(firings, parsed.firing.id, copy);
  return TB_OK;
}

tb_rc tc_firings_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                      struct tc_firings **out) {
  struct tc_firings *firings = calloc(1, sizeof *firings);

  if (firings == NULL) return TB_NOMEM;
  pthread_mutex_init(&firings->lock, NULL);
  tb_rc rc = tc_text_file_open(&firings->file, state_fd, FILE_NAME, FILE_BYTES_MAX, firings,
                               read_line, diag, out_wrong);
  if (rc == TB_OK)
    *out = firings;
  else
    tc_firings_free(firings);
  return rc;
}

void tc_firings_free(struct tc_firings *firings) {
  if (firings == NULL) return;
  for (size_t i = 0; i < firings->n; i++) free(at(firings, i)->line);
  pthread_mutex_destroy(&firings->lock);
  tc_text_file_fini(&firings->file);
  free(firings);
}
