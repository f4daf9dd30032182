/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats are told apart by their format string, not their text: the peer's port differs in each line
 * of a flood. */
#include "collector/journal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SITES = 64, LINE_MAX_BYTES = 1024 };

struct site {
  const char *fmt, *area;
  time_t window_began;
  unsigned said, counted;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site sites[SITES];
static pthread_once_t looked = PTHREAD_ONCE_INIT;
static bool journald;

static void look_for_journald(void) {
  const char *stream = getenv("JOURNAL_STREAM"); /* "device:inode" of the stream it gave us */
  struct stat st;
  char ours[64];

  if (stream == NULL || fstat(STDERR_FILENO, &st) != 0) return;
  snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
  journald = strcmp(stream, ours) == 0;
}

static time_t mono_s(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec;
}

static const char *level_name(enum tc_level level) {
  switch (level) {
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
  (void)n; /* there is nobody left to tell */
}

static void tell_counted(struct site *site) {
  char line[LINE_MAX_BYTES];
  size_t len;

  if (site->counted == 0) return;
  len = write_prefix(line, sizeof line, TC_WARN, site->area);
  len += (size_t)snprintf(line + len, sizeof line - len, "%u more lines like \"%s\" were left out",
                          site->counted, site->fmt);
  site->counted = 0;
  write_line(line, len);
}

/* Under the lock. */
static bool site_may_speak(const char *area, const char *fmt) {
  struct site *site = &sites[((uintptr_t)fmt >> 3) % SITES];
  time_t now = mono_s();

  if (site->fmt != fmt || now - site->window_began >= TC_LOG_WINDOW_S) {
    tell_counted(site);
    *site = (struct site){ .fmt = fmt, .area = area, .window_began = now };
  }
  if (site->said < TC_LOG_BURST) {
    site->said++;
    return true;
  }
  site->counted++;
  return false;
}

void tc_log(enum tc_level level, const char *area, const char *fmt, ...) {
  char line[LINE_MAX_BYTES];
  va_list ap;
  size_t len;
  bool may_speak;

  pthread_once(&looked, look_for_journald);
  pthread_mutex_lock(&lock);
  may_speak = site_may_speak(area, fmt);
  pthread_mutex_unlock(&lock);
  if (!may_speak) return;

  len = write_prefix(line, sizeof line, level, area);
  va_start(ap, fmt);
  int n = vsnprintf(line + len, sizeof line - len, fmt, ap);
  va_end(ap);
  write_line(line, n < 0 ? len : len + (size_t)n);
}

void tc_log_flush(void) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < SITES; i++) tell_counted(&sites[i]);
  pthread_mutex_unlock(&lock);
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
