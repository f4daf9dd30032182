/* SPDX-License-Identifier: Apache-2.0 */
/* Every protobuf message that comes from outside or from the disk. The first byte chooses which. In an
 * arena of 256 KiB it unpacks or not; what unpacks packs to a form that unpacks to the same, and
 * prints as JSON. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "proto/archive.pb-c.h"
#include "proto/feed.pb-c.h"
#include "proto/frame.pb-c.h"
#include "proto/json.h"
#include "proto/log.pb-c.h"
#include "proto/meta.pb-c.h"
#include "proto/unpack.h"

enum { UNPACKED_BYTES_MAX = 256 << 10, ARENA_CHUNK = 4 << 10 };

static const ProtobufCMessageDescriptor *const kinds[] = {
  &tracecollect__v1__hello__descriptor,
  &tracecollect__v1__welcome__descriptor,
  &tracecollect__v1__ack__descriptor,
  &tracecollect__v1__heartbeat__descriptor,
  &tracecollect__v1__generation_end__descriptor,
  &tracecollect__v1__loss__descriptor,
  &tracecollect__v1__close__descriptor,
  &tracecollect__v1__goaway__descriptor,
  &tracecollect__v1__refuse__descriptor,
  &tracecollect__v1__request__descriptor,
  &tracecollect__v1__reply__descriptor,
  &tracecollect__v1__feed_message__descriptor,
  &tracecollect__v1__segment_meta__descriptor,
  &tracecollect__v1__log_snapshot__descriptor,
  &tracecollect__v1__snap__descriptor,
  &tracecollect__v1__snapped__descriptor,
};

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

static void print(const ProtobufCMessage *message, struct tb_mem *mem) {
  static struct tb_buf text; /* grows once */

  if (text.mem == NULL) tb_buf_init(&text, mem);
  tb_buf_clear(&text);
  tp_json_message(&text, message);
  if (text.rc == TB_OK) FUZZ_CHECK(text.len >= 2 && text.data[0] == '{');
  for (size_t i = 0; i < text.len; i++) FUZZ_CHECK(text.data[i] >= 0x20);
  FUZZ_CHECK(mem->bytes == text.cap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct tb_mem mem, text; /* an arena keeps its first chunk */
  static struct tb_arena arena;

  if (size == 0) return 0;
  const ProtobufCMessageDescriptor *kind = kinds[data[0] % (sizeof kinds / sizeof kinds[0])];
  if (arena.mem == NULL) {
    tb_mem_init(&mem, tb_mem_libc, NULL, UNPACKED_BYTES_MAX);
    tb_mem_init(&text, tb_mem_libc, NULL, 16 * UNPACKED_BYTES_MAX);
    tb_arena_init(&arena, &mem, ARENA_CHUNK);
  }
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);

  ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, size - 1, data + 1);
  if (message != NULL) {
    struct packed first = pack(message);
    print(message, &text);
    tb_arena_reset(&arena);
    message = protobuf_c_message_unpack(kind, &allocator, first.len, first.bytes);
    if (message != NULL) {
      struct packed second = pack(message);
      FUZZ_CHECK(first.len == second.len && memcmp(first.bytes, second.bytes, first.len) == 0);
      free(second.bytes);
    }
    free(first.bytes);
  }
  tb_arena_reset(&arena);
  FUZZ_CHECK(mem.bytes <= 2 * ARENA_CHUNK);
  return 0;
}
