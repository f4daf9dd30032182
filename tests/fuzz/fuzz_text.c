/* SPDX-License-Identifier: Apache-2.0 */
/* The text form, both ways: any text becomes bytes or an error that names its line, and the same each time;
 * any bytes become text that reads back, or an error. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "support/trace_text.h"

static tb_rc encode(const char *source, struct tb_mem *mem, struct tb_buf *out) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tt_text_to_bytes(source, mem, out, &diag);
  FUZZ_CHECK(rc == TB_OK || rc == TB_BROKEN || rc == TB_BUDGET);
  FUZZ_CHECK(rc != TB_BROKEN || strncmp(diag.text, "line ", 5) == 0);
  return rc;
}

/* Writes the trace as text, reads the text back, and checks that writing it again gives the same
 * text. */
static void write_and_read(const unsigned char *bytes, size_t n, struct tb_mem *mem) {
  struct tb_buf text, back, again;
  struct tb_diag diag;

  tb_buf_init(&text, mem);
  tb_buf_init(&back, mem);
  tb_buf_init(&again, mem);
  tb_diag_clear(&diag);
  if (n > 0 && tt_text_write(bytes, n, &text, &diag) == TB_OK) {
    tb_buf_byte(&text, '\0');
    if (text.rc == TB_OK && encode((const char *)text.data, mem, &back) == TB_OK) {
      FUZZ_CHECK(tt_text_write(back.data, back.len, &again, &diag) == TB_OK);
      tb_buf_byte(&again, '\0');
      FUZZ_CHECK(again.len == text.len && memcmp(again.data, text.data, text.len) == 0);
    }
  }
  tb_buf_fini(&text);
  tb_buf_fini(&back);
  tb_buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tb_buf first, second;
  struct tb_mem mem;

  char *source = malloc(size + 1);
  if (source == NULL) return 0;
  memcpy(source, data, size);
  source[size] = '\0';
  tb_mem_init(&mem, tb_mem_libc, NULL, 8 << 20);
  tb_buf_init(&first, &mem);
  tb_buf_init(&second, &mem);
  tb_rc rc = encode(source, &mem, &first);
  FUZZ_CHECK(encode(source, &mem, &second) == rc);
  FUZZ_CHECK(first.len == second.len);
  FUZZ_CHECK(first.len == 0 || memcmp(first.data, second.data, first.len) == 0);
  write_and_read(data, size, &mem);
  if (rc == TB_OK) write_and_read(first.data, first.len, &mem);
  tb_buf_fini(&first);
  tb_buf_fini(&second);
  FUZZ_CHECK(mem.bytes == 0);
  free(source);
  return 0;
}
