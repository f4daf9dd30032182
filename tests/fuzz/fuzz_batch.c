/* SPDX-License-Identifier: Apache-2.0 */
/* Varints and batch headers: a value that was read can be written again. */
#include "fuzz/fuzz.h"
#include "wire/batch.h"
#include "wire/varint.h"

static void try_varint(const uint8_t *data, size_t size) {
  unsigned char back[TW_VARINT_BYTES_MAX];
  uint64_t value, again;
  int used = tw_varint_read(data, data + size, &value);

  if (used <= 0) return;
  FUZZ_CHECK((size_t)used <= size && used <= TW_VARINT_BYTES_MAX);
  size_t n = tw_varint_write(back, value);
  FUZZ_CHECK(n <= (size_t)used); /* shorter where the input was padded */
  FUZZ_CHECK(tw_varint_read(back, back + n, &again) == (int)n && again == value);
}

static void try_batch(const uint8_t *data, size_t size) {
  unsigned char head[TW_BATCH_HEADER_BYTES_MAX];
  struct tw_batch batch;
  struct tb_diag diag;
  size_t used;

  tb_diag_clear(&diag);
  if (tw_batch_read(data, size, &diag, &batch, &used) != TB_OK) return;
  FUZZ_CHECK(used <= size && batch.len <= used && batch.data + batch.len == data + used);
  if (tw_batch_kind(&batch, 26) == TW_BATCH_END) return;
  FUZZ_CHECK(tw_batch_write_header(head, &batch) + batch.len <= used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try_varint(data, size);
  try_batch(data, size);
  return 0;
}
