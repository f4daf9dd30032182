/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/request/range.h"

#include <string.h>
#include <strings.h>

/* Reads at least one digit at *text; a larger number becomes UINT64_MAX. */
static bool take_number(const char **text, uint64_t *out) {
  uint64_t value = 0;

  if (**text < '0' || **text > '9') return false;
  for (; **text >= '0' && **text <= '9'; (*text)++) {
    uint64_t digit = (uint64_t)(**text - '0');
    value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
  }
  *out = value;
  return true;
}

static const char *skip_space(const char *text) {
  return text + strspn(text, " \t");
}

struct tc_http_range tc_http_range_of(const char *field, uint64_t total) {
  const struct tc_http_range whole = { TC_HTTP_WHOLE, 0, total };
  const struct tc_http_range none = { TC_HTTP_UNSATISFIABLE, 0, 0 };
  uint64_t first = 0, last = UINT64_MAX;

  if (strncasecmp(field, "bytes=", 6) != 0) return whole;
  const char *at = skip_space(field + 6);
  bool has_first = take_number(&at, &first);
  if (*at++ != '-') return whole;
  bool has_last = take_number(&at, &last);
  if (*skip_space(at) != '\0' || (!has_first && !has_last)) return whole;

  if (!has_first) { /* "-N": the last N bytes */
    uint64_t bytes = last < total ? last : total;
    return bytes == 0 ? none : (struct tc_http_range){ TC_HTTP_PART, total - bytes, bytes };
  }
  if (has_last && last < first) return whole; /* invalid: ignored */
  if (first >= total) return none;
  if (last > total - 1) last = total - 1;
  return (struct tc_http_range){ TC_HTTP_PART, first, last - first + 1 };
}

bool tc_http_tag_listed(const char *field, const char *tag, bool weak_too) {
  size_t len = strlen(tag);

  if (strcmp(skip_space(field), "*") == 0) return weak_too;
  for (const char *at = field; *at != '\0';) {
    at += strspn(at, " \t,");
    if (weak_too && strncmp(at, "W/", 2) == 0) at += 2;
    if (strncmp(at, tag, len) == 0 && (at[len] == '\0' || strchr(" \t,", at[len]) != NULL))
      return true;
    at += strcspn(at, ",");
  }
  return false;
}

/* Finds the next member of a comma-separated list, without blanks; returns its length, 0 at the end. */
static size_t next_member(const char **at, const char **out) {
  *at += strspn(*at, " \t,");
  size_t n = strcspn(*at, ",");
  *out = *at;
  *at += n;
  while (n > 0 && strchr(" \t", (*out)[n - 1]) != NULL) n--;
  return n;
}

enum tc_http_digest tc_http_digest_of(const char *field) {
  static const struct {
    const char *key;
    enum tc_http_digest digest;
  } known[] = { { "crc32c=", TC_HTTP_CRC32C }, { "sha-256=", TC_HTTP_SHA256 } };
  enum tc_http_digest best = TC_HTTP_NO_DIGEST;
  uint64_t most = 0, wish;
  const char *member;

  for (size_t n; (n = next_member(&field, &member)) != 0;)
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
      size_t len = strlen(known[i].key);
      const char *number = member + len;

      if (n <= len || strncmp(member, known[i].key, len) != 0 || !take_number(&number, &wish) ||
          number != member + n || wish <= most)
        continue;
      most = wish;
      best = known[i].digest;
    }
  return best;
}

bool tc_http_wants_protobuf(const char *field) {
  static const char *const names[] = { "application/protobuf", "application/x-protobuf" };
  const char *member;

  for (size_t n; (n = next_member(&field, &member)) != 0;)
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
      size_t len = strlen(names[i]);

      if (n >= len && strncasecmp(member, names[i], len) == 0 &&
          (n == len || strchr("; \t", member[len]) != NULL))
        return true;
    }
  return false;
}
