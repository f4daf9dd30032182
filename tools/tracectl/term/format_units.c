/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/format_units.h"

#include <inttypes.h>
#include <stdio.h>

static const uint64_t SECOND_NS = 1000000000, MINUTE_NS = 60000000000;

/* "1 min 16 s", "2 h 5 min": as the page has them. */
static const char *format_minutes(uint64_t ns, char out[TK_FORMAT_BYTES]) {
  uint64_t minutes = ns / MINUTE_NS;

  if (minutes < 60)
    snprintf(out, TK_FORMAT_BYTES, "%" PRIu64 " min %" PRIu64 " s", minutes,
             ns % MINUTE_NS / SECOND_NS);
  else
    snprintf(out, TK_FORMAT_BYTES, "%" PRIu64 " h %" PRIu64 " min", minutes / 60, minutes % 60);
  return out;
}

const char *tk_format_ns(uint64_t ns, char out[TK_FORMAT_BYTES]) {
  static const struct {
    double ns;
    const char *name;
  } units[] = { { 1, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" } };
  unsigned u = 0;

  if (ns == 0) return snprintf(out, TK_FORMAT_BYTES, "-"), out;
  if (ns >= MINUTE_NS) return format_minutes(ns, out);
  /* A unit begins where it would print as 1.00, not as 1000 of the one below. */
  while (u + 1 < sizeof(units) / sizeof(*units) && (double)ns >= units[u + 1].ns * 0.9995) u++;
  double value = (double)ns / units[u].ns;
  int decimals = u == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  snprintf(out, TK_FORMAT_BYTES, "%.*f %s", decimals, value, units[u].name);
  return out;
}

const char *tk_format_count(uint64_t n, char out[TK_FORMAT_BYTES]) {
  char digits[TK_FORMAT_BYTES], *to = out;
  int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);

  for (int i = 0; i < len; i++) {
    if (i > 0 && (len - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return out;
}
