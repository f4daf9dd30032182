/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats are recognized by call site and subject, not by text: in a flood the peer's port differs in each line. The counts
 * are in the call site, so no site can reset another's. */
#include "collector/base/logger.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { LINE_MAX_BYTES = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tc_log_site *sites;
static pthread_once_t looked = PTHREAD_ONCE_INIT;
static bool journald;

static void look_for_journald(void) {
  const char *stream = getenv("JOURNAL_STREAM"); /* "device:inode" of the stream from journald */
  struct stat st;
  char ours[64];

  if (stream == NULL || fstat(STDERR_FILENO, &st) != 0) return;
  snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
  journald = strcmp(stream, ours) == 0;
}

static int64_t mono_s(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec;
}

static const char *level_name(enum tc_level level) {
  switch (level) {
  case TC_FATAL: return "fatal";
  case TC_ERROR: return "error";
  case TC_WARN: return "warning";
  case TC_NOTICE: return "notice";
  case TC_INFO: return "info";
  }
  return "?";
}

static size_t write_prefix(char *line, size_t max, enum tc_level level, const char *area) {
  struct timespec now;
  struct tm tm;
  char when[40];

  if (journald) return (size_t)snprintf(line, max, "<%d>%s: ", level, area);
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &tm);
  strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
  return (size_t)snprintf(line, max, "%s.%03ldZ %s %s: ", when, now.tv_nsec / 1000000,
                          level_name(level), area);
}

static void write_line(char *line, size_t len) {
  if (len > LINE_MAX_BYTES - 2) len = LINE_MAX_BYTES - 2;
  line[len++] = '\n';
  ssize_t n = write(STDERR_FILENO, line, len);
  (void)n; /* an error cannot be reported anywhere */
}

/* Called under the lock, like the next functions up to may_write(). */
static void end_window(struct tc_log_site *site, struct tc_log_subject *subject) {
  char line[LINE_MAX_BYTES];
  unsigned counted = subject->counted;
  size_t len;

  *subject = (struct tc_log_subject){ 0 };
  if (counted == 0) return;
  len = write_prefix(line, sizeof line, site->level < TC_WARN ? site->level : TC_WARN, site->area);
  len += (size_t)snprintf(line + len, sizeof line - len, "%u more lines like \"%s\" were left out",
                          counted, site->like);
  write_line(line, len);
}

static bool is_over(const struct tc_log_subject *subject, int64_t now) {
  return subject->said > 0 && now - subject->window_began_s >= TC_LOG_WINDOW_S;
}

/* In a flood of subjects the later ones share the last entry and never reset another's count. */
static struct tc_log_subject *find_subject(struct tc_log_site *site, uint64_t id, int64_t now) {
  struct tc_log_subject *unused = NULL;

  for (size_t i = 0; i < TC_LOG_SUBJECTS; i++) {
    struct tc_log_subject *subject = &site->subjects[i];
    if (is_over(subject, now)) end_window(site, subject);
    if (subject->said > 0 && subject->id == id) return subject;
    if (subject->said == 0 && unused == NULL) unused = subject;
  }
  if (unused == NULL) unused = &site->subjects[TC_LOG_SUBJECTS];
  if (is_over(unused, now)) end_window(site, unused);
  return unused;
}

static bool may_write(struct tc_log_site *site, uint64_t id) {
  int64_t now = mono_s();
  struct tc_log_subject *subject = find_subject(site, id, now);

  if (subject->said == TC_LOG_BURST) {
    subject->counted++;
    return false;
  }
  if (subject->said == 0) *subject = (struct tc_log_subject){ .id = id, .window_began_s = now };
  subject->said++;
  return true;
}

static bool admit(struct tc_log_site *site, uint64_t subject, enum tc_level level, const char *area,
                  const char *like) {
  pthread_once(&looked, look_for_journald);
  if (level == TC_FATAL || site == NULL) return true;
  pthread_mutex_lock(&lock);
  if (!site->listed) {
    site->listed = true;
    site->next = sites;
    sites = site;
  }
  site->level = level;
  site->area = area;
  site->like = like;
  bool admitted = may_write(site, subject);
  pthread_mutex_unlock(&lock);
  return admitted;
}

void tc_log_at(struct tc_log_site *site, uint64_t subject, enum tc_level level, const char *area,
               const char *fmt, ...) {
  char line[LINE_MAX_BYTES];
  va_list ap;
  size_t len;

  if (!admit(site, subject, level, area, fmt)) return;
  len = write_prefix(line, sizeof line, level, area);
  va_start(ap, fmt);
  int n = vsnprintf(line + len, sizeof line - len, fmt, ap);
  va_end(ap);
  write_line(line, n < 0 ? len : len + (size_t)n);
}

void tc_log_note(const char *area, const struct tc_note *note) {
  char line[LINE_MAX_BYTES];
  size_t len;

  if (!admit(note->site, note->subject, note->level, area, note->like)) return;
  len = write_prefix(line, sizeof line, note->level, area);
  len += (size_t)snprintf(line + len, sizeof line - len, "%s", note->text);
  write_line(line, len);
}

uint64_t tc_log_subject_of(const char *text) {
  return tb_hash(TB_HASH_START, text, strlen(text));
}

static void end_windows(bool all) {
  pthread_mutex_lock(&lock);
  for (struct tc_log_site *site = sites; site != NULL; site = site->next)
    for (size_t i = 0; i <= TC_LOG_SUBJECTS; i++)
      if (all || is_over(&site->subjects[i], mono_s())) end_window(site, &site->subjects[i]);
  pthread_mutex_unlock(&lock);
}

void tc_log_overdue(void) {
  end_windows(false);
}

void tc_log_flush(void) {
  end_windows(true);
}

const char *tc_escape(char out[TC_ESCAPE_MAX + 1], const void *text, size_t n) {
  static const char hex[] = "0123456789abcdef";
  const unsigned char *in = text;
  size_t at = 0;

  for (size_t i = 0; i < n; i++) {
    bool plain = in[i] >= ' ' && in[i] < 0x7f && in[i] != '\\' && in[i] != '"';
    size_t need = plain ? 1 : 4;

    if (at + need > TC_ESCAPE_MAX) break;
    if (plain) {
      out[at++] = (char)in[i];
      continue;
    }
    out[at++] = '\\';
    out[at++] = 'x';
    out[at++] = hex[in[i] >> 4];
    out[at++] = hex[in[i] & 15];
  }
  out[at] = '\0';
  return out;
}
