/* SPDX-License-Identifier: Apache-2.0 */
#include "config/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "config/table.h"

#define SECOND_NS UINT64_C(1000000000)

tb_rc tc_span_parse(const char *text, struct tb_diag *diag, uint64_t *out_ns) {
  uint64_t span;

  if (!tc_parse_time_ns(text, &span) || span == 0)
    return tb_fail(diag, TB_BROKEN, "\"%.80s\" is not a span of time: 30s, 5m, 24h, 7d", text);
  *out_ns = span;
  return TB_OK;
}

/* Reads exactly n digits at *text and moves *text past them. */
static bool take_digits(const char **text, int n, int *out) {
  int value = 0;

  for (int i = 0; i < n; i++) {
    char c = (*text)[i];
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  *text += n;
  *out = value;
  return true;
}

static bool take_char(const char **text, const char *any_of) {
  if (**text == '\0' || strchr(any_of, **text) == NULL) return false;
  (*text)++;
  return true;
}

/* Reads ".5", ".123456789"; ignores digits after the ninth. */
static bool take_fraction(const char **text, uint64_t *out_ns) {
  uint64_t unit = SECOND_NS, ns = 0;

  *out_ns = 0;
  if (!take_char(text, ".")) return true;
  if (**text < '0' || **text > '9') return false;
  for (; **text >= '0' && **text <= '9'; (*text)++) {
    unit /= 10;
    ns += (uint64_t)(**text - '0') * unit;
  }
  *out_ns = ns;
  return true;
}

/* Reads "Z", "+01:00", or nothing, which is local time. */
static bool take_zone(const char **text, bool *out_local, long *out_seconds) {
  int hours, minutes;
  bool west = **text == '-';

  *out_local = **text == '\0';
  *out_seconds = 0;
  if (*out_local || take_char(text, "Zz")) return true;
  if (!take_char(text, "+-") || !take_digits(text, 2, &hours) || !take_char(text, ":") ||
      !take_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
    return false;
  *out_seconds = (west ? -1 : 1) * (hours * 3600L + minutes * 60L);
  return true;
}

static bool parse_rfc3339(const char *text, uint64_t *out) {
  struct tm tm = { .tm_isdst = -1 };
  uint64_t fraction = 0;
  bool local = true;
  long east = 0;

  if (!take_digits(&text, 4, &tm.tm_year) || !take_char(&text, "-") ||
      !take_digits(&text, 2, &tm.tm_mon) || !take_char(&text, "-") ||
      !take_digits(&text, 2, &tm.tm_mday))
    return false;
  if (*text != '\0' && (!take_char(&text, "Tt ") || !take_digits(&text, 2, &tm.tm_hour) ||
                        !take_char(&text, ":") || !take_digits(&text, 2, &tm.tm_min) ||
                        !take_char(&text, ":") || !take_digits(&text, 2, &tm.tm_sec) ||
                        !take_fraction(&text, &fraction) || !take_zone(&text, &local, &east)))
    return false;

  tm.tm_year -= 1900;
  tm.tm_mon--;
  struct tm asked = tm;
  time_t at = local ? mktime(&tm) : timegm(&tm);
  /* mktime() turns 31 April into 1 May, which is refused; a leap second may move the day. */
  bool moved = tm.tm_mon != asked.tm_mon || tm.tm_mday != asked.tm_mday;
  if (*text != '\0' || asked.tm_hour > 23 || asked.tm_min > 59 || asked.tm_sec > 60 ||
      (moved && asked.tm_sec < 60) || at < east)
    return false;
  *out = (uint64_t)(at - east) * SECOND_NS + fraction;
  return true;
}

static bool parse_unix(const char *text, uint64_t *out) {
  uint64_t seconds = 0, fraction;

  if (*text < '0' || *text > '9') return false;
  for (; *text >= '0' && *text <= '9'; text++) {
    seconds = seconds * 10 + (uint64_t)(*text - '0');
    if (seconds > UINT64_MAX / SECOND_NS - 1) return false;
  }
  if (!take_fraction(&text, &fraction) || *text != '\0') return false;
  *out = seconds * SECOND_NS + fraction;
  return true;
}

tb_rc tc_time_parse(const char *text, uint64_t now_wall_ns, struct tb_diag *diag,
                    uint64_t *out_wall_ns) {
  uint64_t at, span;

  if (strcmp(text, "now") == 0) {
    *out_wall_ns = now_wall_ns;
    return TB_OK;
  }
  if (*text == '-' && tc_parse_time_ns(text + 1, &span)) {
    *out_wall_ns = span < now_wall_ns ? now_wall_ns - span : 1;
    return TB_OK;
  }
  if (*text == '@' ? parse_unix(text + 1, &at) : parse_rfc3339(text, &at)) {
    *out_wall_ns = at != 0 ? at : 1; /* callers treat 0 as "not set" */
    return TB_OK;
  }
  return tb_fail(diag, TB_BROKEN,
                 "\"%.80s\" is not a time: 2026-03-01T12:00:00Z, -5m, now or @UNIX", text);
}

void tc_time_format(uint64_t wall_ns, char out[TC_TIME_BYTES]) {
  time_t seconds = (time_t)(wall_ns / SECOND_NS);
  struct tm tm;
  size_t n = 0;

  if (wall_ns != 0 && gmtime_r(&seconds, &tm) != NULL)
    n = strftime(out, TC_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
  if (n == 0)
    snprintf(out, TC_TIME_BYTES, "-");
  else
    snprintf(out + n, TC_TIME_BYTES - n, ".%03uZ", (unsigned)(wall_ns % SECOND_NS / 1000000));
}
