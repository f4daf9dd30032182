/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/quote.h"

#include <stdbool.h>

static const struct run {
  uint32_t first, last;
} printable_runs[] = {
#define TK_PRINTABLE(first, last) { first, last },
#include "tools/tracectl/unicode_print.def"
#undef TK_PRINTABLE
};

static bool is_printable(uint32_t rune) {
  if (rune < 0x7f) return rune >= 0x20;
  if (rune <= 0xff) return rune >= 0xa1 && rune != 0xad; /* all of Latin 1 but the soft hyphen */

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

/* Length of the UTF-8 sequence at p (1 to 4), or 0: p[0] begins none. No overlong forms, no
 * surrogates, nothing above U+10FFFF. */
static size_t decode_rune(const unsigned char *p, size_t n, uint32_t *out) {
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

static void put_hex_digits(struct tk_out *out, uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    tk_out_byte(out, "0123456789abcdef"[value >> shift & 15]);
}

static void put_escaped(struct tk_out *out, uint32_t rune) {
  static const char named[] = "\a\b\f\n\r\t\v", letters[] = "abfnrtv";
  const char *at = rune != 0 && rune < 0x20 ? strchr(named, (int)rune) : NULL;

  tk_out_byte(out, '\\');
  if (at != NULL) {
    tk_out_byte(out, letters[at - named]);
  } else if (rune < 0x20 || rune == 0x7f) {
    tk_out_byte(out, 'x');
    put_hex_digits(out, rune, 2);
  } else if (rune < 0x10000) {
    tk_out_byte(out, 'u');
    put_hex_digits(out, rune, 4);
  } else {
    tk_out_byte(out, 'U');
    put_hex_digits(out, rune, 8);
  }
}

/* How many bytes at p are plain ASCII that no quoting touches. */
static size_t plain_prefix(const unsigned char *p, size_t n) {
  size_t i = 0;
  while (i < n && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\') i++;
  return i;
}

/* How one style writes what is not plain: a character, or a byte that belongs to none. */
struct style {
  void (*rune)(struct tk_out *out, uint32_t rune, const unsigned char *bytes, size_t len);
  void (*stray)(struct tk_out *out, unsigned char byte);
};

static void put_quoted(struct tk_out *out, const struct style *style, const void *bytes, size_t n) {
  const unsigned char *p = bytes, *end = p + n;

  tk_out_byte(out, '"');
  while (p < end) {
    size_t plain = plain_prefix(p, (size_t)(end - p));
    tk_out_bytes(out, p, plain);
    p += plain;
    if (p == end) break;

    uint32_t rune = 0;
    size_t len = decode_rune(p, (size_t)(end - p), &rune);
    if (len == 0) {
      style->stray(out, *p++);
    } else if (rune == '"' || rune == '\\') {
      tk_out_byte(out, '\\');
      tk_out_byte(out, (char)rune);
      p += len;
    } else {
      style->rune(out, rune, p, len);
      p += len;
    }
  }
  tk_out_byte(out, '"');
}

static void go_rune(struct tk_out *out, uint32_t rune, const unsigned char *bytes, size_t len) {
  if (is_printable(rune))
    tk_out_bytes(out, bytes, len);
  else
    put_escaped(out, rune);
}

static void go_stray(struct tk_out *out, unsigned char byte) {
  tk_out_text(out, "\\x");
  put_hex_digits(out, byte, 2);
}

static void json_rune(struct tk_out *out, uint32_t rune, const unsigned char *bytes, size_t len) {
  if (rune >= 0x20 && rune != 0x7f) {
    tk_out_bytes(out, bytes, len);
    return;
  }
  tk_out_text(out, "\\u");
  put_hex_digits(out, rune, 4);
}

static void json_stray(struct tk_out *out, unsigned char byte) {
  (void)byte;
  tk_out_text(out, "\xef\xbf\xbd"); /* U+FFFD */
}

void tk_out_quoted(struct tk_out *out, const void *bytes, size_t n) {
  put_quoted(out, &(struct style){ go_rune, go_stray }, bytes, n);
}

void tk_out_json_string(struct tk_out *out, const void *bytes, size_t n) {
  put_quoted(out, &(struct style){ json_rune, json_stray }, bytes, n);
}
