/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/keep/keeps.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/state_dir.h"
#include "base/buf.h"
#include "base/grow.h"
#include "base/hex.h"

#define FILE_NAME "kept"

enum { LINE_MAX = 256, FILE_BYTES_MAX = TC_KEEPS_MAX * LINE_MAX };

struct tc_keeps {
  int state_fd;
  pthread_mutex_t saving; /* one writes the file at a time */
  pthread_mutex_t lock;   /* of all below */
  struct tc_keep *all;
  size_t n, room;
  uint64_t version, saved; /* of what there is, and of what the file has */
};

static bool is_about_same(const struct tc_keep *a, const struct tc_keep *b) {
  if (a->of_stream != b->of_stream || strcmp(a->rule, b->rule) != 0) return false;
  return a->of_stream ? memcmp(a->stream, b->stream, sizeof a->stream) == 0
                      : strcmp(a->service, b->service) == 0;
}

static bool meets(const struct tc_keep *keep, uint64_t from_ns, uint64_t until_ns) {
  return keep->from_ns <= until_ns && keep->until_ns >= from_ns;
}

static bool is_about(const struct tc_keep *keep, const unsigned char *stream, const char *service) {
  if (keep->of_stream) return memcmp(keep->stream, stream, sizeof keep->stream) == 0;
  return keep->service[0] == '\0' || strcmp(keep->service, service) == 0;
}

/* ---- what there is */

static struct tc_keep *first_noted(const struct tc_keeps *keeps) {
  struct tc_keep *first = &keeps->all[0];

  for (size_t i = 1; i < keeps->n; i++)
    if (keeps->all[i].noted_ns < first->noted_ns) first = &keeps->all[i];
  return first;
}

static void remove_at(struct tc_keeps *keeps, size_t i) {
  keeps->all[i] = keeps->all[--keeps->n];
}

/* A stretch may fill the space between several. */
static struct tc_keep join(struct tc_keeps *keeps, const struct tc_keep *keep) {
  struct tc_keep joined = *keep;

  for (size_t i = 0; i < keeps->n;) {
    const struct tc_keep *other = &keeps->all[i];
    if (!meets(other, joined.from_ns, joined.until_ns) || !is_about_same(other, &joined)) {
      i++;
      continue;
    }
    if (other->from_ns < joined.from_ns) joined.from_ns = other->from_ns;
    if (other->until_ns > joined.until_ns) joined.until_ns = other->until_ns;
    if (other->noted_ns > joined.noted_ns) joined.noted_ns = other->noted_ns;
    remove_at(keeps, i);
    i = 0;
  }
  return joined;
}

static tb_rc add(struct tc_keeps *keeps, const struct tc_keep *keep) {
  TB_TRY(TB_GROW(keeps->all, keeps->room, keeps->n));
  struct tc_keep joined = join(keeps, keep);
  if (keeps->n == TC_KEEPS_MAX)
    *first_noted(keeps) = joined;
  else
    keeps->all[keeps->n++] = joined;
  keeps->version++;
  return TB_OK;
}

tb_rc tc_keeps_add(struct tc_keeps *keeps, const struct tc_keep *keep) {
  pthread_mutex_lock(&keeps->lock);
  tb_rc rc = add(keeps, keep);
  pthread_mutex_unlock(&keeps->lock);
  return rc;
}

bool tc_keeps_meets(struct tc_keeps *keeps, const unsigned char stream[TC_STREAM_BYTES],
                    const char *service, uint64_t from_ns, uint64_t until_ns,
                    char out_rule[TC_KEEP_RULE_MAX + 1]) {
  bool found = false;

  pthread_mutex_lock(&keeps->lock);
  for (size_t i = 0; i < keeps->n && !found; i++) {
    const struct tc_keep *keep = &keeps->all[i];
    found = meets(keep, from_ns, until_ns) && is_about(keep, stream, service);
    if (found && out_rule != NULL) memcpy(out_rule, keep->rule, sizeof keep->rule);
  }
  pthread_mutex_unlock(&keeps->lock);
  return found;
}

void tc_keeps_forget(struct tc_keeps *keeps, uint64_t before_ns) {
  pthread_mutex_lock(&keeps->lock);
  for (size_t i = 0; i < keeps->n;) {
    if (keeps->all[i].noted_ns >= before_ns) {
      i++;
    } else {
      remove_at(keeps, i);
      keeps->version++;
    }
  }
  pthread_mutex_unlock(&keeps->lock);
}

size_t tc_keeps_count(struct tc_keeps *keeps) {
  pthread_mutex_lock(&keeps->lock);
  size_t n = keeps->n;
  pthread_mutex_unlock(&keeps->lock);
  return n;
}

/* ---- the file */

static void print_keep(const struct tc_keep *keep, struct tb_buf *text) {
  char hex[TC_STREAM_HEX_BYTES];

  tb_buf_printf(text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s ", keep->from_ns, keep->until_ns,
                keep->noted_ns, keep->rule);
  if (keep->of_stream)
    tb_buf_printf(text, "stream %s\n", tb_hex(keep->stream, sizeof keep->stream, hex));
  else if (keep->service[0] != '\0')
    tb_buf_printf(text, "service %s\n", keep->service);
  else
    tb_buf_text(text, "all\n");
}

/* *out_version: of what was printed. */
static tb_rc print_all(struct tc_keeps *keeps, struct tb_buf *text, uint64_t *out_version) {
  pthread_mutex_lock(&keeps->lock);
  *out_version = keeps->version;
  for (size_t i = 0; i < keeps->n; i++) print_keep(&keeps->all[i], text);
  pthread_mutex_unlock(&keeps->lock);
  return text->rc;
}

static bool is_saved(struct tc_keeps *keeps) {
  pthread_mutex_lock(&keeps->lock);
  bool saved = keeps->version == keeps->saved;
  pthread_mutex_unlock(&keeps->lock);
  return saved;
}

static tb_rc save(struct tc_keeps *keeps, struct tb_diag *diag) {
  struct tb_mem mem;
  struct tb_buf text;
  uint64_t version;

  tb_mem_init(&mem, tb_mem_libc, NULL, FILE_BYTES_MAX);
  tb_buf_init(&text, &mem);
  tb_rc rc = print_all(keeps, &text, &version);
  if (rc == TB_OK) rc = tc_file_replace(keeps->state_fd, FILE_NAME, text.data, text.len, diag);
  tb_buf_fini(&text);
  if (rc != TB_OK) return rc;
  pthread_mutex_lock(&keeps->lock);
  keeps->saved = version;
  pthread_mutex_unlock(&keeps->lock);
  return TB_OK;
}

tb_rc tc_keeps_save(struct tc_keeps *keeps, struct tb_diag *diag) {
  pthread_mutex_lock(&keeps->saving);
  tb_rc rc = is_saved(keeps) ? TB_OK : save(keeps, diag);
  pthread_mutex_unlock(&keeps->saving);
  return rc;
}

static bool read_keep(const char *line, struct tc_keep *out) {
  char what[8], name[TC_NAME_MAX + 1] = "";
  int end = 0;

  *out = (struct tc_keep){ .of_stream = false };
  int n = sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %32s %7s%n %64s%n", &out->from_ns,
                 &out->until_ns, &out->noted_ns, out->rule, what, &end, name, &end);
  if (n < 5 || line[end] != '\0' || out->from_ns > out->until_ns) return false;
  if (strcmp(what, "all") == 0) return n == 5;
  if (n == 5) return false;
  out->of_stream = strcmp(what, "stream") == 0;
  if (out->of_stream)
    return strlen(name) == 2 * sizeof out->stream &&
           tb_unhex(name, out->stream, sizeof out->stream);
  memcpy(out->service, name, sizeof name);
  return strcmp(what, "service") == 0;
}

static tb_rc read_lines(struct tc_keeps *keeps, char *text, struct tb_diag *out_wrong) {
  struct tc_keep keep;
  char *rest = text;
  tb_rc rc = TB_OK;

  for (unsigned number = 1; rc == TB_OK && *rest != '\0'; number++) {
    char *line = strsep(&rest, "\n");
    if (rest == NULL) rest = line + strlen(line);
    if (read_keep(line, &keep))
      rc = add(keeps, &keep);
    else if (out_wrong->rc == TB_OK)
      tb_fail(out_wrong, TB_BROKEN, FILE_NAME " line %u is no stretch of time", number);
  }
  return rc;
}

tb_rc tc_keeps_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                    struct tc_keeps **out) {
  struct tc_keeps *keeps = calloc(1, sizeof *keeps);
  char *text;

  if (keeps == NULL) return TB_NOMEM;
  keeps->state_fd = state_fd;
  pthread_mutex_init(&keeps->saving, NULL);
  pthread_mutex_init(&keeps->lock, NULL);
  tb_rc rc = tc_file_text_if_any(state_fd, FILE_NAME, FILE_BYTES_MAX, diag, out_wrong, &text);
  if (rc == TB_OK) rc = read_lines(keeps, text, out_wrong);
  free(text);
  keeps->saved = keeps->version;
  if (rc == TB_OK)
    *out = keeps;
  else
    tc_keeps_free(keeps);
  return rc;
}

void tc_keeps_free(struct tc_keeps *keeps) {
  if (keeps == NULL) return;
  pthread_mutex_destroy(&keeps->lock);
  pthread_mutex_destroy(&keeps->saving);
  free(keeps->all);
  free(keeps);
}
