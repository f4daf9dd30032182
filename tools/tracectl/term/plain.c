/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/plain.h"

#include <string.h>

static const struct run {
  uint32_t first, last;
} printable_runs[] = {
#define TK_PRINTABLE(first, last) { first, last },
#include "tools/tracectl/term/unicode_print.def"
#undef TK_PRINTABLE
};

bool tk_rune_is_printable(uint32_t rune) {
  if (rune < 0x7f) return rune >= 0x20;
  if (rune <= 0xff) return rune >= 0xa1 && rune != 0xad; /* Latin 1 except the soft hyphen */

  size_t lo = 0, hi = sizeof printable_runs / sizeof printable_runs[0];
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (rune > printable_runs[mid].last)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < sizeof printable_runs / sizeof printable_runs[0] && rune >= printable_runs[lo].first;
}

size_t tk_rune(const unsigned char *p, size_t n, uint32_t *out) {
  static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
  size_t len = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;
  if (len == 0 || len > n) return 0;

  uint32_t rune = len == 1 ? p[0] : p[0] & (0x7fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    rune = rune << 6 | (p[i] & 0x3f);
  }
  if (rune < smallest[len] || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000)) return 0;
  *out = rune;
  return len;
}

size_t tk_plain_next(const char *text, size_t n, bool *out_plain) {
  uint32_t rune = 0;
  size_t len = tk_rune((const unsigned char *)text, n, &rune);

  *out_plain = len > 0 && tk_rune_is_printable(rune);
  return len > 0 ? len : 1;
}

size_t tk_plain(char *text, size_t n) {
  size_t to = 0;
  bool plain;

  for (size_t from = 0, len; from < n; from += len) {
    len = tk_plain_next(text + from, n - from, &plain);
    if (plain)
      memmove(text + to, text + from, len);
    else
      text[to] = '?';
    to += plain ? len : 1;
  }
  return to;
}

void tk_plain_text(char *text) {
  text[tk_plain(text, strlen(text))] = '\0';
}

void tk_put_plain(FILE *out, const char *text) {
  const char *end = text + strlen(text);
  bool plain;

  for (size_t len; text < end; text += len) {
    len = tk_plain_next(text, (size_t)(end - text), &plain);
    fwrite(plain ? text : "?", 1, plain ? len : 1, out);
  }
}
