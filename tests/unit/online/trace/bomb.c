/* SPDX-License-Identifier: Apache-2.0 */
#include "bomb.h"

#include "wire/varint.h"

void bomb_flush(struct bomb *bomb) {
  unsigned char header[TW_BATCH_HEADER_BYTES_MAX];
  struct tw_batch batch = {
    .gen = bomb->gen, .thread = bomb->thread, .time = bomb->time, .len = bomb->batch.len
  };

  tb_buf_add(&bomb->trace, header, tw_batch_write_header(header, &batch));
  tb_buf_add(&bomb->trace, bomb->batch.data, bomb->batch.len);
  tb_buf_clear(&bomb->batch);
}

void bomb_room(struct bomb *bomb) {
  if (bomb->batch.len > TW_BATCH_BYTES_MAX - 64) bomb_flush(bomb);
}

void bomb_numbers(struct bomb *bomb, const uint64_t *numbers, size_t n) {
  unsigned char bytes[TW_VARINT_BYTES_MAX];

  for (size_t i = 0; i < n; i++)
    tb_buf_add(&bomb->batch, bytes, tw_varint_write(bytes, numbers[i]));
}

void bomb_add(struct bomb *bomb, const uint64_t *numbers, size_t n) {
  tb_buf_byte(&bomb->batch, (unsigned char)numbers[0]); /* the type */
  bomb_numbers(bomb, numbers + 1, n - 1);
}

void bomb_string(struct bomb *bomb, uint64_t id, const char *text, size_t len) {
  ADD(bomb, TW_EV_STRING, id, len);
  tb_buf_add(&bomb->batch, text, len);
}

void bomb_begin(struct bomb *bomb, uint64_t frequency) {
  unsigned char header[TW_HEADER_BYTES];

  *bomb = (struct bomb){ .thread = BOMB_NO_THREAD, .gen = 1, .time = 1 };
  tb_mem_init(&bomb->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&bomb->trace, &bomb->mem);
  tb_buf_init(&bomb->batch, &bomb->mem);
  tw_header_write(header, 22);
  tb_buf_add(&bomb->trace, header, sizeof header);
  ADD(bomb, TW_EV_FREQUENCY, frequency);
  bomb_flush(bomb);
}

void bomb_end(struct bomb *bomb) {
  tb_buf_fini(&bomb->trace);
  tb_buf_fini(&bomb->batch);
}
