/* SPDX-License-Identifier: Apache-2.0 */
#include "config/url_list.h"

#include <string.h>

static const char ipc[] = "ipc://", tls[] = "tls+tcp://";
static const char separators[] = ", \t\r\n";

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

bool tc_url_is_ipc(const char *url) {
  return starts_with(url, ipc);
}

bool tc_url_is_tls(const char *url) {
  return starts_with(url, tls);
}

bool tc_url_takes_any_port(const char *url) {
  size_t len = strlen(url);

  return !tc_url_is_ipc(url) && len > 2 && strcmp(url + len - 2, ":0") == 0;
}

static bool starts_with_scheme(const char *text) {
  size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz+");

  return len > 0 && starts_with(text + len, "://");
}

/* Returns the length of the URL at the beginning of text, which ends before separators that a scheme or nothing follows. */
static size_t length_of(const char *text) {
  size_t len = strcspn(text, separators);

  while (text[len] != '\0') {
    size_t gap = strspn(text + len, separators);
    if (text[len + gap] == '\0' || starts_with_scheme(text + len + gap)) break;
    len += gap + strcspn(text + len + gap, separators);
  }
  return len;
}

bool tc_urls_next(const char **list, char out[TC_URL_BYTES]) {
  const char *text = *list + strspn(*list, separators);
  size_t len = length_of(text);

  *list = text + len;
  if (len == 0) return false;
  if (len >= TC_URL_BYTES) {
    *out = '\0';
    return true;
  }
  memcpy(out, text, len);
  out[len] = '\0';
  return true;
}
