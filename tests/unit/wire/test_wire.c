/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/batch.h"
#include "wire/raw.h"
#include "wire/sections.h"
#include "wire/varint.h"

Test(wire, every_timed_event_has_a_name_and_at_most_four_arguments) {
  unsigned timed = 0;

  for (unsigned i = 1; i < TW_EV_LIMIT; i++) {
    const struct tw_spec *spec = tw_spec((uint8_t)i);
    if (spec->kind == TW_KIND_NONE) continue;
    cr_assert_not_null(spec->name);
    cr_assert_eq(tw_spec_find(spec->name, strlen(spec->name)), i, "%s", spec->name);
    cr_assert(tw_version_known(spec->since), "%s", spec->name);
    if (spec->kind != TW_KIND_TIMED && spec->kind != TW_KIND_EXPERIMENT) continue;
    timed++;
    cr_assert_leq(spec->nargs, TW_TIMED_ARGS_MAX, "%s", spec->name);
  }
  cr_assert_eq(timed, 49);
  cr_assert_eq(tw_spec(60)->kind, TW_KIND_NONE);
  cr_assert_eq(tw_spec(255)->kind, TW_KIND_NONE);
  cr_assert_eq(tw_spec_find("GoStar", 6), TW_EV_NONE);
}

Test(wire, a_varint_comes_back_as_it_was_written) {
  for (unsigned shift = 0; shift < 64; shift++) {
    for (int64_t around = -1; around <= 1; around++) {
      unsigned char bytes[TW_VARINT_BYTES_MAX];
      uint64_t value = (UINT64_C(1) << shift) + (uint64_t)around, back;
      size_t n = tw_varint_write(bytes, value);
      cr_assert_eq(tw_varint_read(bytes, bytes + n, &back), (int)n);
      cr_assert_eq(back, value);
      cr_assert_eq(tw_varint_read(bytes, bytes + n - 1, &back), 0, "cut off");
    }
  }
}

Test(wire, a_varint_wider_than_64_bits_is_refused_and_padding_is_not) {
  unsigned char wide[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
  unsigned char endless[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00 };
  unsigned char padded[] = { 0x85, 0x80, 0x80, 0x00 };
  uint64_t value;

  cr_assert_eq(tw_varint_read(wide, wide + sizeof wide, &value), -1);
  cr_assert_eq(tw_varint_read(endless, endless + sizeof endless, &value), -1);
  cr_assert_eq(tw_varint_read(padded, padded + sizeof padded, &value), 4);
  cr_assert_eq(value, 5);
}

static tb_rc header(const char *text, size_t n, unsigned *version, size_t *used,
                    struct tb_diag *diag) {
  tb_diag_clear(diag);
  return tw_header_read((const unsigned char *)text, n, diag, version, used);
}

Test(wire, a_header_is_read_as_leniently_as_go_does) {
  struct tb_diag diag;
  unsigned version;
  size_t used;

  cr_assert_eq(header("go 1.26 trace\0\0\0", 16, &version, &used, &diag), TB_OK);
  cr_assert_eq(version, 26);
  cr_assert_eq(used, 16);
  cr_assert_eq(header("go 1.0025 trace\0\0\0more", 22, &version, &used, &diag), TB_OK);
  cr_assert_eq(version, 25);
  cr_assert_eq(used, 18);
  cr_assert_eq(header("go  1. 22\ttrace\0\0\0", 18, &version, &used, &diag), TB_OK);
  cr_assert_eq(version, 22);
  for (size_t n = 0; n < 16; n++)
    cr_assert_eq(header("go 1.26 trace\0\0\0", n, &version, &used, &diag), TB_AGAIN, "%zu bytes",
                 n);
  cr_assert_eq(header("go1.26 trace\0\0\0", 15, &version, &used, &diag), TB_BROKEN);
  cr_assert_eq(header("\x7f"
                      "ELF",
                      4, &version, &used, &diag),
               TB_BROKEN);
}

Test(wire, another_version_is_refused_by_name) {
  struct tb_diag diag;
  unsigned version;
  size_t used;

  cr_assert_eq(header("go 1.21 trace\0\0\0", 16, &version, &used, &diag), TB_UNSUPPORTED);
  cr_assert_eq(version, 21);
  cr_assert_not_null(strstr(diag.text, "go 1.21"));
  cr_assert_not_null(strstr(diag.text, "v1"));
  cr_assert_eq(header("go 1.99 trace\0\0\0", 16, &version, &used, &diag), TB_UNSUPPORTED);
  cr_assert_not_null(strstr(diag.text, "go 1.99"));
}

/* A2 */
Test(wire, a_batch_header_comes_back_as_it_was_written) {
  struct tw_batch batch = { .gen = 3, .thread = 71, .time = UINT64_C(1) << 50, .len = 5 }, back;
  unsigned char bytes[TW_BATCH_HEADER_BYTES_MAX + 5];
  struct tb_diag diag;
  size_t used, n = tw_batch_write_header(bytes, &batch);

  tb_diag_clear(&diag);
  memset(bytes + n, 9, 5);
  for (size_t cut = 0; cut < n + 5; cut++)
    cr_assert_eq(tw_batch_read(bytes, cut, &diag, &back, &used), TB_AGAIN);
  cr_assert_eq(tw_batch_read(bytes, n + 5, &diag, &back, &used), TB_OK);
  cr_assert_eq(used, n + 5);
  cr_assert_eq(back.gen, batch.gen);
  cr_assert_eq(back.thread, batch.thread);
  cr_assert_eq(back.time, batch.time);
  cr_assert_eq(back.len, 5);
  cr_assert_eq(back.data, bytes + n);
}

Test(wire, a_batch_above_64_kib_is_refused) {
  struct tw_batch batch = { .gen = 1, .thread = -1, .len = TW_BATCH_BYTES_MAX + 1 }, back;
  unsigned char bytes[TW_BATCH_HEADER_BYTES_MAX];
  struct tb_diag diag;
  size_t used, n = tw_batch_write_header(bytes, &batch);

  tb_diag_clear(&diag);
  cr_assert_eq(tw_batch_read(bytes, n, &diag, &back, &used), TB_BROKEN);
  cr_assert_not_null(strstr(diag.text, "65537"));
}

/* A4 */
Test(wire, a_string_section_gives_its_entries_and_names_what_is_wrong) {
  unsigned char bytes[] = { TW_EV_STRINGS, TW_EV_STRING, 7, 2, 'h', 'i', TW_EV_STRING, 8, 0 };
  struct tw_batch batch = { .data = bytes, .len = sizeof bytes };
  struct tw_section section;
  struct tw_string string;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_string_next(&section, &string), TB_OK);
  cr_assert_eq(string.id, 7);
  cr_assert(string.len == 2 && memcmp(string.data, "hi", 2) == 0);
  cr_assert_eq(tw_string_next(&section, &string), TB_OK);
  cr_assert(string.id == 8 && string.len == 0);
  cr_assert_eq(tw_string_next(&section, &string), TB_END);

  batch.len = 5; /* within the text */
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_string_next(&section, &string), TB_BROKEN);
  cr_assert_not_null(strstr(diag.text, "string 7 is cut off"));
  batch.len = 3; /* just before a number */
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_string_next(&section, &string), TB_AGAIN);
}

Test(wire, a_string_of_more_than_1024_bytes_is_refused) {
  static unsigned char bytes[1040] = { TW_EV_STRINGS, TW_EV_STRING, 7, 0x80, 0x08 }; /* 1,024 */
  struct tw_batch batch = { .data = bytes, .len = 5 + 1024 };
  struct tw_section section;
  struct tw_string string;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_string_next(&section, &string), TB_OK);
  cr_assert_eq(string.len, 1024);
  bytes[3]++;
  batch.len++;
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_string_next(&section, &string), TB_BROKEN);
  cr_assert_not_null(strstr(diag.text, "1025"), "%s", diag.text);
}

/* A3 */
Test(wire, a_stack_of_more_than_128_frames_is_refused) {
  static unsigned char bytes[600] = { TW_EV_STACKS, TW_EV_STACK, 7, 0x80, 0x01 }; /* 128 frames */
  struct tw_batch batch = { .data = bytes, .len = 5 + 4 * 128 };
  struct tw_section section;
  struct tw_stack stack;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_stack_next(&section, &stack), TB_OK);
  cr_assert_eq(stack.nframes, 128);
  bytes[3]++;
  batch.len += 4;
  tw_section_open(&section, &batch, 26, &diag);
  cr_assert_eq(tw_stack_next(&section, &stack), TB_BROKEN);
  cr_assert_not_null(strstr(diag.text, "stack of 129 frames"), "%s", diag.text);
}

Test(wire, an_entry_with_bytes_of_its_own_is_whole_or_cut_off) {
  const unsigned char entry[] = { TW_EV_STRING, 7, 3, 'a', 'b', 'c', 0xff };
  size_t whole = sizeof entry - 1, used;
  struct tw_raw raw;

  for (size_t n = whole; n <= sizeof entry; n++) {
    cr_assert_eq(tw_raw_read(entry, n, TW_EV_LIMIT, NULL, &raw, &used), TB_OK);
    cr_assert_eq(used, whole);
  }
  cr_assert_eq(raw.data_len, 3);
  cr_assert_arr_eq(raw.data, "abc", 3);
  for (size_t n = 1; n < whole; n++)
    cr_assert_eq(tw_raw_read(entry, n, TW_EV_LIMIT, NULL, &raw, &used), TB_END, "%zu bytes", n);
}

Test(wire, experiments_are_known_by_name) {
  cr_assert_str_eq(tw_experiment_name(TW_EXPERIMENT_ALLOC_FREE), "AllocFree");
  cr_assert_null(tw_experiment_name(TW_EXPERIMENTS));
}
