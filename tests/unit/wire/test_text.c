/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/trace_text.h"

struct fixture {
  struct tb_mem mem;
  struct tb_buf out;
  struct tb_diag diag;
};

static tb_rc encode(struct fixture *f, const char *text) {
  tb_mem_init(&f->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&f->out, &f->mem);
  tb_diag_clear(&f->diag);
  return tt_text_to_bytes(text, &f->mem, &f->out, &f->diag);
}

static void clear(struct fixture *f) {
  tb_buf_fini(&f->out);
  cr_assert_eq(f->mem.bytes, 0);
}

Test(text, a_text_becomes_the_bytes_it_says) {
  static const unsigned char wanted[] = {
    'g', 'o', ' ',  '1',  '.',  '2',  '2',  ' ',  't',  'r',  'a',  'c', 'e', 0, 0,
    0,   1,   1,    2,    0xac, 0x02, 5, /* EventBatch gen=1 m=2 time=300 size=5, perhaps wrong */
    16,  1,   9,    2,                   /* GoStart dt=1 g=9 g_seq=2 */
    11,  1,                              /* ProcStop dt=1 */
    1,   1,   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,   0,   8, /* no thread, eight bytes */
    4,   5,   3,    4,    'a',  '\n', 0xff, '"',
  };
  struct fixture f;

  cr_assert_eq(encode(&f, "# a comment\n"
                          "Trace Go1.22\n"
                          "\n"
                          "EventBatch gen=1 m=2 time=300 size=5 # told\n"
                          "  GoStart dt=1 g=9 g_seq=2\n"
                          "  ProcStop dt=1\n"
                          "EventBatch gen=1 m=18446744073709551615 time=0\n"
                          "Strings\n"
                          "String id=3\n"
                          "\tdata=\"a\\n\\xff\\\"\"\n"),
               TB_OK, "%s", f.diag.text);
  cr_assert_eq(f.out.len, sizeof wanted);
  cr_assert_eq(memcmp(f.out.data, wanted, sizeof wanted), 0);
  clear(&f);
}

Test(text, what_it_cannot_read_is_refused_with_its_line) {
  static const char *const bad[][2] = {
    { "Trace Go1.21\n", "line 1" },
    { "Trace Go1.22\nGoSings dt=1\n", "line 2: no event \"GoSings\"" },
    { "Trace Go1.22\n\nGoStart dt=1 g=2\n", "line 3: expected g_seq=" },
    { "Trace Go1.22\nGoStart dt=1 g=2 g_seq=18446744073709551616\n", "wider than 64 bits" },
    { "Trace Go1.22\nGoDestroy dt=1 g=2\n", "unexpected \"g=2" },
    { "Trace Go1.22\nString id=1 data=\"abc\n", "no closing quote" },
    { "Trace Go1.22\nString id=1 data=\"\\q\"\n", "unknown escape" },
    { "Trace Go1.22\nStack id=1 nframes=129\n", "more than 128 frames" },
    { "Trace Go1.22\nStack id=1 nframes=1\n pc=1 func=2 line=3\n", "line 3: expected file=" },
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct fixture f;
    cr_assert_eq(encode(&f, bad[i][0]), TB_BROKEN, "%s", bad[i][0]);
    cr_assert_not_null(strstr(f.diag.text, bad[i][1]), "said \"%s\", not \"%s\"", f.diag.text,
                       bad[i][1]);
    clear(&f);
  }
}
