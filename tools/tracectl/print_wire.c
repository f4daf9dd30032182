/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/print.h"
#include "tools/tracectl/quote.h"
#include "tools/tracectl/wire_events.h"

static void put_number(struct tk_out *out, const unsigned char **pos) {
  tk_out_u64(out, tw_raw_number(pos));
}

static void put_args(struct tk_out *out, const struct tw_raw *ev, const unsigned char **pos) {
  if (tw_spec_has_dt(ev->spec)) {
    tk_out_text(out, " dt=");
    put_number(out, pos);
  }
  for (unsigned i = 0; i < ev->spec->nargs; i++) {
    tk_out_byte(out, ' ');
    tk_out_text(out, ev->spec->args[i].label);
    tk_out_byte(out, '=');
    put_number(out, pos);
  }
}

static void put_event(struct tk_out *out, const struct tw_raw *ev) {
  static const char *const fields[] = { "\n\tpc=", " func=", " file=", " line=" };
  const unsigned char *pos = ev->args;

  if (ev->spec->name != NULL)
    tk_out_text(out, ev->spec->name); /* a gap in Go's table prints as nothing */
  put_args(out, ev, &pos);
  for (uint64_t frame = 0; frame < ev->frames; frame++)
    for (int i = 0; i < 4; i++) {
      tk_out_text(out, fields[i]);
      put_number(out, &pos);
    }
  if (ev->data_len > 0) {
    tk_out_text(out, "\n\tdata=");
    tk_out_quoted(out, ev->data, ev->data_len);
  }
  tk_out_byte(out, '\n');
}

tb_rc tk_print_wire(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                    struct tb_diag *diag) {
  TB_CLEANUP(tk_wire_close) struct tk_wire_events events = { 0 };
  struct tw_raw ev;
  tb_rc rc;

  TB_TRY(tk_wire_open(&events, in, mem, diag));
  while ((rc = tk_wire_next(&events, &ev)) == TB_OK && out->error == 0) put_event(out, &ev);
  return rc == TB_END ? TB_OK : rc;
}
