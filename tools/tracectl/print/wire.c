/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/print/wire_events.h"
#include "tools/tracectl/term/quote.h"

/* Text before each number of an event: name and first label together, then " label=". */
struct words {
  struct tk_word name;
  struct tk_word before[TW_TIMED_ARGS_MAX + 2];
};

enum { FRAME_NUMBERS = 4 };

/* Cached text of frame lines; in a trace with deep stacks most lines are frames. */
struct frame_words {
  struct tk_word before[FRAME_NUMBERS];
};

static void learn_frame_words(struct frame_words *words) {
  static const char *const labels[FRAME_NUMBERS] = { "\n\tpc", " func", " file", " line" };

  for (int i = 0; i < FRAME_NUMBERS; i++) words->before[i] = tk_word(labels[i], "=", "");
}

static void learn_words(struct words words[UINT8_MAX + 1]) {
  for (unsigned type = 0; type <= UINT8_MAX; type++) {
    const struct tw_spec *spec = tw_spec((uint8_t)type);
    const char *name = spec->name == NULL ? "" : spec->name; /* a gap in Go's table */
    unsigned n = 0;
    words[type].name = tk_word(name, "", "");
    if (tw_spec_has_dt(spec)) words[type].before[n++] = tk_word(name, " dt", "=");
    for (unsigned i = 0; i < spec->nargs; i++) {
      words[type].before[n] = tk_word(" ", spec->args[i].label, "=");
      if (n++ == 0) words[type].before[0] = tk_word(name, words[type].before[0].text, "");
    }
  }
}

static void put_frames(struct tk_out *out, const struct frame_words *words, uint64_t n,
                       const unsigned char *pos) {
  for (; n > 0; n--) {
    char *at = tk_out_room(out, sizeof *words + FRAME_NUMBERS * TK_PEN_DECIMAL_MAX);
    for (int i = 0; i < FRAME_NUMBERS; i++)
      at = tk_pen_u64(tk_pen_word(at, &words->before[i]), tw_raw_number(&pos));
    tk_out_upto(out, at);
  }
}

static void put_event(struct tk_out *out, const struct words *words,
                      const struct frame_words *frame_words, const struct tw_raw *ev) {
  char *at = tk_out_room(out, sizeof *words + (TW_TIMED_ARGS_MAX + 2) * TK_PEN_DECIMAL_MAX);
  const unsigned char *pos = ev->args;

  if (ev->nargs == 0) at = tk_pen_word(at, &words->name);
  for (unsigned i = 0; i < ev->nargs; i++)
    at = tk_pen_u64(tk_pen_word(at, &words->before[i]), tw_raw_number(&pos));
  tk_out_upto(out, at);
  put_frames(out, frame_words, ev->frames, pos);
  if (ev->data_len > 0) {
    tk_out_text(out, "\n\tdata=");
    tk_out_quoted(out, ev->data, ev->data_len);
  }
  tk_out_byte(out, '\n');
}

tb_rc tk_print_wire(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                    struct tb_diag *diag) {
  TB_CLEANUP(tk_wire_close) struct tk_wire_events events = { 0 };
  struct words words[UINT8_MAX + 1];
  struct frame_words frame_words;
  struct tw_raw ev;
  tb_rc rc;

  learn_words(words);
  learn_frame_words(&frame_words);
  TB_TRY(tk_wire_open(&events, in, mem, diag));
  while ((rc = tk_wire_next(&events, &ev)) == TB_OK && out->error == 0)
    put_event(out, &words[ev.type], &frame_words, &ev);
  return rc == TB_END ? TB_OK : rc;
}
