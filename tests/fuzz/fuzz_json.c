/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON that we write is valid, whatever bytes it contains: the first byte chooses one of the messages, or a text by
 * itself. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/messages.h"
#include "proto/json.h"
#include "proto/unpack.h"
#include "proto/utf8.h"

enum { UNPACKED_BYTES_MAX = 256 << 10, ARENA_CHUNK = 4 << 10, DEPTH_MAX = 8 };

/* A reader of JSON as in RFC 8259. Each function returns the end of the text that it has read, or NULL if that is not valid. */

static const char *read_value(const char *at, unsigned depth);

static const char *read_digits(const char *at, const char *digits) {
  size_t n = strspn(at, digits);
  return n > 0 ? at + n : NULL;
}

static const char *read_string(const char *at) {
  if (*at++ != '"') return NULL;
  while (*at != '"') {
    if ((unsigned char)*at < 0x20) return NULL;
    if (*at++ != '\\') continue;
    if (*at == 'u' ? strspn(at + 1, "0123456789ABCDEFabcdef") < 4
                   : strchr("\"\\/bfnrt", *at) == NULL || *at == '\0')
      return NULL;
    at += *at == 'u' ? 5 : 1;
  }
  return at + 1;
}

static const char *read_number(const char *at) {
  static const char digits[] = "0123456789";

  if (*at == '-') at++;
  if (*at == '0')
    at++;
  else if ((at = read_digits(at, digits)) == NULL)
    return NULL;
  if (*at == '.' && (at = read_digits(at + 1, digits)) == NULL) return NULL;
  if (*at != 'e' && *at != 'E') return at;
  at++;
  if (*at == '-' || *at == '+') at++;
  return read_digits(at, digits);
}

/* Reads the members of an object or an array, and the bracket that ends it. */
static const char *read_list(const char *at, char end, unsigned depth) {
  if (*at == end) return at + 1;
  for (;; at++) {
    if (end == '}' && ((at = read_string(at)) == NULL || *at++ != ':')) return NULL;
    at = read_value(at, depth);
    if (at == NULL || *at == end) return at == NULL ? NULL : at + 1;
    if (*at != ',') return NULL;
  }
}

static const char *read_value(const char *at, unsigned depth) {
  static const char *const words[] = { "true", "false", "null" };

  if (depth == 0) return NULL;
  if (*at == '{' || *at == '[') return read_list(at + 1, (char)(*at == '{' ? '}' : ']'), depth - 1);
  if (*at == '"') return read_string(at);
  for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
  return read_number(at);
}

static void check(struct tb_buf *text) {
  if (text->rc == TB_OK) tb_buf_byte(text, '\0');
  if (text->rc != TB_OK) return;
  const char *whole = (const char *)text->data;
  size_t n = text->len - 1;
  FUZZ_CHECK(strlen(whole) == n && read_value(whole, DEPTH_MAX) == whole + n &&
             tp_utf8_whole(whole, n) == n);
}

static void write_text(struct tb_buf *text, const uint8_t *data, size_t size) {
  char *copy = calloc(1, size + 1); /* for strndup(), a sanitizer would expect a NUL in data */

  FUZZ_CHECK(copy != NULL);
  memcpy(copy, data, size);
  tp_json_text(text, copy);
  free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct tb_mem mem, text_mem; /* an arena keeps its first chunk, the text its size */
  static struct tb_arena arena;
  static struct tb_buf text;

  if (size == 0) return 0;
  if (arena.mem == NULL) {
    tb_mem_init(&mem, tb_mem_libc, NULL, UNPACKED_BYTES_MAX);
    tb_mem_init(&text_mem, tb_mem_libc, NULL, 16 * UNPACKED_BYTES_MAX);
    tb_arena_init(&arena, &mem, ARENA_CHUNK);
    tb_buf_init(&text, &text_mem);
  }
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);

  tb_buf_clear(&text);
  if (data[0] % (TT_MESSAGES + 1) == TT_MESSAGES) {
    write_text(&text, data + 1, size - 1);
    check(&text);
    return 0;
  }
  ProtobufCMessage *message = protobuf_c_message_unpack(tt_messages[data[0] % (TT_MESSAGES + 1)],
                                                        &allocator, size - 1, data + 1);
  if (message != NULL) {
    tp_json_message(&text, message);
    check(&text);
  }
  tb_arena_reset(&arena);
  FUZZ_CHECK(mem.bytes <= 2 * ARENA_CHUNK && text_mem.bytes == text.cap);
  return 0;
}
