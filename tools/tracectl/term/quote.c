/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/quote.h"

#include "tools/tracectl/term/plain.h"

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

/* Returns the number of leading bytes that are plain ASCII and need no quoting. */
static size_t plain_prefix(const unsigned char *p, size_t n) {
  size_t i = 0;
  while (i < n && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\') i++;
  return i;
}

/* How a style writes a character that is not plain, or a stray byte. */
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
    size_t len = tk_rune(p, (size_t)(end - p), &rune);
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
  if (tk_rune_is_printable(rune))
    tk_out_bytes(out, bytes, len);
  else
    put_escaped(out, rune);
}

static void go_stray(struct tk_out *out, unsigned char byte) {
  tk_out_text(out, "\\x");
  put_hex_digits(out, byte, 2);
}

static void json_escape(struct tk_out *out, uint32_t unit) {
  tk_out_text(out, "\\u");
  put_hex_digits(out, unit, 4);
}

static void json_rune(struct tk_out *out, uint32_t rune, const unsigned char *bytes, size_t len) {
  if (tk_rune_is_printable(rune)) {
    tk_out_bytes(out, bytes, len);
  } else if (rune < 0x10000) {
    json_escape(out, rune);
  } else { /* a surrogate pair */
    json_escape(out, 0xd800 + ((rune - 0x10000) >> 10));
    json_escape(out, 0xdc00 + ((rune - 0x10000) & 0x3ff));
  }
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

void tk_out_plain(struct tk_out *out, const char *text, size_t n) {
  bool plain;

  for (size_t at = 0, len; at < n; at += len) {
    len = tk_plain_next(text + at, n - at, &plain);
    tk_out_bytes(out, plain ? text + at : "?", plain ? len : 1);
  }
}
