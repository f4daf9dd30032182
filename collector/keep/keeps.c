/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/keep/keeps.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/state_dir.h"
#include "archive/text_file.h"
#include "base/grow.h"
#include "base/text/hex.h"

#define FILE_NAME "kept"

enum {
  LINE_MAX = 256,
  SHARES = 32, /* maximum number of rules */
  FILE_BYTES_MAX = TC_KEEPS_MAX * LINE_MAX
};

struct tc_keeps {
  struct tc_text_file file;
  pthread_mutex_t lock; /* guards the fields below */
  struct tc_keep *all;
  size_t n, room;
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

static bool is_of(const struct tc_keep *keep, const char *const rules[], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(keep->rule, rules[i]) == 0) return true;
  return false;
}

/* Finds the stretch noted first, of the given rules (among) or of all others. NULL: there is none. */
static struct tc_keep *first_noted(const struct tc_keeps *keeps, bool among,
                                   const char *const rules[], size_t n) {
  struct tc_keep *first = NULL;

  for (size_t i = 0; i < keeps->n; i++) {
    struct tc_keep *keep = &keeps->all[i];
    if (is_of(keep, rules, n) == among && (first == NULL || keep->noted_ns < first->noted_ns))
      first = keep;
  }
  return first;
}

static size_t count_of(const struct tc_keeps *keeps, const char *rule) {
  size_t n = 0;

  for (size_t i = 0; i < keeps->n; i++) n += strcmp(keeps->all[i].rule, rule) == 0 ? 1 : 0;
  return n;
}

/* Returns the stretch that `more` replaces: the first of its own rule if that has its full share, otherwise the first of a rule
 * that exceeds its share. */
static struct tc_keep *find_replaced(const struct tc_keeps *keeps, const struct tc_keep *more) {
  const char *small[SHARES];
  struct tc_keep *first;

  small[0] = more->rule;
  if (count_of(keeps, more->rule) >= TC_KEEPS_MAX / SHARES)
    return first_noted(keeps, true, small, 1);
  for (size_t n = 1; n < SHARES; n++) {
    first = first_noted(keeps, false, small, n);
    if (first == NULL) break;
    if (count_of(keeps, first->rule) > TC_KEEPS_MAX / SHARES) return first;
    small[n] = first->rule;
  }
  return first_noted(keeps, false, NULL, 0);
}

static void remove_at(struct tc_keeps *keeps, size_t i) {
  keeps->all[i] = keeps->all[--keeps->n];
}

/* Removes the stretches that overlap with `keep`, and returns keep joined with them. It may join several that did not overlap
 * before. */
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

static tb_rc add_keep(struct tc_keeps *keeps, const struct tc_keep *keep) {
  TB_TRY(TB_GROW(keeps->all, keeps->room, keeps->n));
  struct tc_keep joined = join(keeps, keep);
  if (keeps->n == TC_KEEPS_MAX)
    *find_replaced(keeps, &joined) = joined;
  else
    keeps->all[keeps->n++] = joined;
  tc_text_file_changed(&keeps->file);
  return TB_OK;
}

tb_rc tc_keeps_add(struct tc_keeps *keeps, const struct tc_keep *keep) {
  pthread_mutex_lock(&keeps->lock);
  tb_rc rc = add_keep(keeps, keep);
  pthread_mutex_unlock(&keeps->lock);
  return rc;
}

bool tc_keeps_meets(struct tc_keeps *keeps, const unsigned char stream[TC_STREAM_BYTES],
                    const char *service, uint64_t from_ns, uint64_t until_ns,
                    char out_rule[TC_KEEP_RULE_MAX + 1]) {
  bool is_met = false, is_rule = false;

  pthread_mutex_lock(&keeps->lock);
  for (size_t i = 0; i < keeps->n && !is_rule; i++) {
    const struct tc_keep *keep = &keeps->all[i];
    if (!meets(keep, from_ns, until_ns) || !is_about(keep, stream, service)) continue;
    is_met = true;
    is_rule = out_rule == NULL || !tc_keep_is_of_finding(keep->rule);
    if (out_rule != NULL) memcpy(out_rule, keep->rule, sizeof keep->rule);
  }
  pthread_mutex_unlock(&keeps->lock);
  return is_met;
}

void tc_keeps_forget(struct tc_keeps *keeps, uint64_t before_ns) {
  pthread_mutex_lock(&keeps->lock);
  for (size_t i = 0; i < keeps->n;) {
    if (keeps->all[i].noted_ns >= before_ns) {
      i++;
    } else {
      remove_at(keeps, i);
      tc_text_file_changed(&keeps->file);
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

static void print_all(void *self, struct tb_buf *text) {
  struct tc_keeps *keeps = self;

  pthread_mutex_lock(&keeps->lock);
  for (size_t i = 0; i < keeps->n; i++) print_keep(&keeps->all[i], text);
  pthread_mutex_unlock(&keeps->lock);
}

tb_rc tc_keeps_save(struct tc_keeps *keeps, struct tb_diag *diag) {
  return tc_text_file_save(&keeps->file, keeps, print_all, diag);
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

static tb_rc read_line(void *self, const char *line, bool *out_is_one) {
  struct tc_keep keep;

  *out_is_one = read_keep(line, &keep);
  return *out_is_one ? add_keep(self, &keep) : TB_OK;
}

tb_rc tc_keeps_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                    struct tc_keeps **out) {
  struct tc_keeps *keeps = calloc(1, sizeof *keeps);

  if (keeps == NULL) return TB_NOMEM;
  pthread_mutex_init(&keeps->lock, NULL);
  tb_rc rc = tc_text_file_open(&keeps->file, state_fd, FILE_NAME, FILE_BYTES_MAX, keeps, read_line,
                               diag, out_wrong);
  if (rc == TB_OK)
    *out = keeps;
  else
    tc_keeps_free(keeps);
  return rc;
}

void tc_keeps_free(struct tc_keeps *keeps) {
  if (keeps == NULL) return;
  pthread_mutex_destroy(&keeps->lock);
  tc_text_file_fini(&keeps->file);
  free(keeps->all);
  free(keeps);
}
