/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/json.h"

#include <stdio.h>

#include "tools/tracectl/term/tracectl.h"

bool tk_json_print(const char *type, const ProtobufCMessage *message) {
  struct tb_buf line;

  tb_buf_init(&line, &tk_mem);
  tb_buf_byte(&line, '{');
  if (type != NULL) {
    tb_buf_text(&line, "\"type\":");
    tp_json_text(&line, type);
    tb_buf_byte(&line, ',');
  }
  tp_json_fields(&line, message);
  tb_buf_text(&line, "}\n");
  bool whole = line.rc == TB_OK;
  if (whole) fwrite(line.data, 1, line.len, stdout); /* main() reports a failure of stdout */
  tb_buf_fini(&line);
  return whole;
}
