/* SPDX-License-Identifier: Apache-2.0 */
/* Every message: the first byte chooses the type. In an arena of 256 KiB the rest unpacks or not; an unpacked message
 * packs to a form that unpacks to the same. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/messages.h"
#include "proto/unpack.h"

enum { UNPACKED_BYTES_MAX = 256 << 10, ARENA_CHUNK = 4 << 10 };

struct packed {
  uint8_t *bytes;
  size_t len;
};

static struct packed pack(const ProtobufCMessage *message) {
  struct packed out = { .len = protobuf_c_message_get_packed_size(message) };

  out.bytes = malloc(out.len + 1);
  FUZZ_CHECK(out.bytes != NULL && protobuf_c_message_pack(message, out.bytes) == out.len);
  return out;
}

static bool same(const uint8_t *bytes, size_t len, const struct packed *other) {
  return len == other->len && memcmp(bytes, other->bytes, len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct tb_mem mem; /* an arena keeps its first chunk */
  static struct tb_arena arena;

  if (size == 0) return 0;
  const ProtobufCMessageDescriptor *kind = tt_messages[data[0] % TT_MESSAGES];
  if (arena.mem == NULL) {
    tb_mem_init(&mem, tb_mem_libc, NULL, UNPACKED_BYTES_MAX);
    tb_arena_init(&arena, &mem, ARENA_CHUNK);
  }
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);

  ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, size - 1, data + 1);
  if (message != NULL) {
    struct packed first = pack(message);
    if (!same(data + 1, size - 1, &first)) {
      tb_arena_reset(&arena);
      message = protobuf_c_message_unpack(kind, &allocator, first.len, first.bytes);
      if (message != NULL) {
        struct packed second = pack(message);
        FUZZ_CHECK(same(first.bytes, first.len, &second));
        free(second.bytes);
      }
    }
    free(first.bytes);
  }
  tb_arena_reset(&arena);
  FUZZ_CHECK(mem.bytes <= 2 * ARENA_CHUNK);
  return 0;
}
