/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests in JSON: the result is a message or a fault with words, in bounded memory; a message written and
 * read again is the same. The first byte chooses the request. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "proto/archive.pb-c.h"
#include "proto/json.h"
#include "proto/json_read.h"

enum { MEMORY_MAX = 1 << 20, ARENA_CHUNK = 4 << 10 };

static const ProtobufCMessageDescriptor *const requests[] = {
  &tracecollect__v1__trigger_request__descriptor,
  &tracecollect__v1__snap_request__descriptor,
  &tracecollect__v1__verify_request__descriptor,
  &tracecollect__v1__lease_request__descriptor,
};

static void write_again(const ProtobufCMessage *message, struct tb_mem *mem,
                        struct tb_arena *arena) {
  ProtobufCMessage *again;
  struct tb_buf first, second;
  struct tb_diag diag;

  tb_buf_init(&first, mem);
  tb_buf_init(&second, mem);
  tb_diag_clear(&diag);
  tp_json_message(&first, message);
  if (first.rc == TB_OK &&
      tp_json_read(message->descriptor, first.data, first.len, arena, &diag, &again) == TB_OK) {
    tp_json_message(&second, again);
    FUZZ_CHECK(second.rc != TB_OK ||
               (second.len == first.len && memcmp(second.data, first.data, first.len) == 0));
  } else {
    FUZZ_CHECK(first.rc != TB_OK || diag.rc != TB_PROTOCOL);
  }
  tb_buf_fini(&second);
  tb_buf_fini(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ProtobufCMessage *message;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tb_mem mem;

  if (size == 0) return 0;
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_arena_init(&arena, &mem, ARENA_CHUNK);
  tb_diag_clear(&diag);
  tb_rc rc = tp_json_read(requests[data[0] % (sizeof requests / sizeof requests[0])], data + 1,
                          size - 1, &arena, &diag, &message);
  FUZZ_CHECK(rc == TB_OK || rc == TB_BUDGET || (rc == TB_PROTOCOL && diag.text[0] != '\0'));
  if (rc == TB_OK) write_again(message, &mem, &arena);
  tb_arena_fini(&arena);
  return 0;
}
