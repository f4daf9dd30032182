/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a generation. The first byte chooses the version and the table, the rest is a batch's
 * content: entries stay inside it, and every table ends. */
#include "fuzz/fuzz.h"
#include "wire/sections.h"

static const unsigned versions[] = { 22, 23, 25, 26 };

static bool inside(const struct tw_batch *batch, const unsigned char *at, size_t n) {
  return at >= batch->data && n <= (size_t)(batch->data + batch->len - at);
}

static tb_rc strings(struct tw_section *section, const struct tw_batch *batch) {
  struct tw_string string;
  tb_rc rc;

  while ((rc = tw_string_next(section, &string)) == TB_OK)
    FUZZ_CHECK(string.len <= TW_STRING_BYTES_MAX && inside(batch, string.data, string.len));
  return rc;
}

static tb_rc stacks(struct tw_section *section, const struct tw_batch *batch) {
  struct tw_stack stack;
  struct tw_frame frame;
  tb_rc rc;

  while ((rc = tw_stack_next(section, &stack)) == TB_OK) {
    const unsigned char *pos = stack.frames;
    FUZZ_CHECK(stack.nframes <= TW_STACK_FRAMES_MAX);
    for (unsigned i = 0; i < stack.nframes; i++) {
      const unsigned char *next = tw_frame_read(pos, &frame);
      FUZZ_CHECK(next > pos && inside(batch, pos, (size_t)(next - pos)));
      pos = next;
    }
  }
  return rc;
}

static tb_rc samples(struct tw_section *section) {
  struct tw_cpu_sample sample;
  tb_rc rc;

  while ((rc = tw_cpu_sample_next(section, &sample)) == TB_OK) FUZZ_CHECK(sample.g != 0);
  return rc;
}

static tb_rc syncs(struct tw_section *section, unsigned version) {
  struct tw_sync sync;
  tb_rc rc;

  while ((rc = tw_sync_next(section, version, &sync)) == TB_OK)
    FUZZ_CHECK(sync.type == TW_EV_FREQUENCY || sync.type == TW_EV_CLOCK_SNAPSHOT);
  return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tw_section section;
  struct tb_diag diag;
  tb_rc rc;

  if (size < 2) return 0;
  unsigned version = versions[data[0] & 3];
  struct tw_batch batch = { .gen = 1, .thread = 0, .data = data + 1, .len = size - 1 };
  tb_diag_clear(&diag);
  tw_section_open(&section, &batch, version, &diag);
  switch (data[0] >> 2 & 3) {
  case 0: rc = strings(&section, &batch); break;
  case 1: rc = stacks(&section, &batch); break;
  case 2: rc = samples(&section); break;
  default: rc = syncs(&section, version); break;
  }
  FUZZ_CHECK(rc == TB_END || rc == TB_AGAIN || rc == TB_BROKEN);
  FUZZ_CHECK(rc != TB_BROKEN || diag.text[0] != '\0');
  return 0;
}
