/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and formats sizes and times: a number and a unit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/table.h"

struct unit {
  const char *name;
  uint64_t factor;
};

/* Largest first: a value is printed in the first unit that divides it. */
static const struct unit binary_units[] = {
  { "TiB", UINT64_C(1) << 40 },
  { "GiB", 1 << 30 },
  { "MiB", 1 << 20 },
  { "KiB", 1 << 10 },
};
static const struct unit decimal_units[] = {
  { "TB", UINT64_C(1000000000000) },
  { "GB", 1000000000 },
  { "MB", 1000000 },
  { "KB", 1000 },
  { "B", 1 },
};
static const struct unit time_units[] = {
  { "d", UINT64_C(86400000000000) },
  { "h", UINT64_C(3600000000000) },
  { "m", UINT64_C(60000000000) },
  { "s", 1000000000 },
  { "ms", 1000000 },
  { "us", 1000 },
  { "ns", 1 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Reads digits at *text and moves *text past them. Returns false if there are none, or too many. */
static bool take_number(const char **text, uint64_t *out) {
  const char *p = *text;
  uint64_t value = 0;

  if (*p < '0' || *p > '9') return false;
  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, *p - '0', &value))
      return false;
  *text = p;
  *out = value;
  return true;
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name,
                                    size_t len) {
  for (size_t i = 0; i < n; i++)
    if (strlen(units[i].name) == len && strncmp(units[i].name, name, len) == 0) return &units[i];
  return NULL;
}

bool tc_parse_bytes(const char *text, uint64_t *out) {
  const struct unit *unit = NULL;
  uint64_t value;

  if (!take_number(&text, &value)) return false;
  if (*text == '\0') {
    *out = value;
    return true;
  }
  unit = find_unit(binary_units, COUNT(binary_units), text, strlen(text));
  if (unit == NULL) unit = find_unit(decimal_units, COUNT(decimal_units), text, strlen(text));
  return unit != NULL && !__builtin_mul_overflow(value, unit->factor, out);
}

bool tc_parse_time_ns(const char *text, uint64_t *out) {
  uint64_t total = 0, value;

  if (strcmp(text, "0") == 0) {
    *out = 0;
    return true;
  }
  do {
    if (!take_number(&text, &value)) return false;
    size_t len = strcspn(text, "0123456789");
    const struct unit *unit = find_unit(time_units, COUNT(time_units), text, len);
    if (unit == NULL || __builtin_mul_overflow(value, unit->factor, &value) ||
        __builtin_add_overflow(total, value, &total))
      return false;
    text += len;
  } while (*text != '\0');
  *out = total;
  return true;
}

static int format_in(const struct unit *units, size_t n, uint64_t value, char *out) {
  for (size_t i = 0; i < n; i++)
    if (value != 0 && value % units[i].factor == 0)
      return snprintf(out, TC_VALUE_BYTES, "%" PRIu64 "%s", value / units[i].factor, units[i].name);
  return snprintf(out, TC_VALUE_BYTES, "%" PRIu64, value);
}

int tc_config_format(enum tc_config_type type, uint64_t value, char out[TC_VALUE_BYTES]) {
  switch (type) {
  case TC_TYPE_BYTES: return format_in(binary_units, COUNT(binary_units), value, out);
  case TC_TYPE_TIME: return format_in(time_units, COUNT(time_units), value, out);
  case TC_TYPE_BOOL: return snprintf(out, TC_VALUE_BYTES, "%s", value != 0 ? "true" : "false");
  case TC_TYPE_COUNT:
  case TC_TYPE_STRING:
  case TC_TYPE_URLS: break;
  }
  return snprintf(out, TC_VALUE_BYTES, "%" PRIu64, value);
}
