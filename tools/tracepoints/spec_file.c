/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracepoints/spec_file.h"

#include <stdlib.h>

#include "base/buf.h"
#include "tools/tracectl/trace_file/input.h"
#include "tools/tracepoints/tracepoints.h"

enum { SPEC_BYTES_MAX = 1 << 20 };

static tb_rc read_all(struct tk_input *in, struct tb_buf *text) {
  const unsigned char *bytes;
  size_t n;
  int more;

  while ((more = tk_input_next(in, &bytes, &n)) > 0) {
    if (n > SPEC_BYTES_MAX - text->len) return TB_BUDGET;
    tb_buf_add(text, bytes, n);
  }
  return more < 0 ? TB_IO : text->rc;
}

static tb_rc read_spec(struct tk_input *in, struct tw_experiments *x, struct tb_diag *diag) {
  struct tb_buf text;

  tb_buf_init(&text, &tk_mem);
  tw_experiments_init(x);
  tb_rc rc = read_all(in, &text);
  if (rc == TB_BUDGET) rc = tb_fail(diag, rc, "more than %d bytes", SPEC_BYTES_MAX);
  if (rc == TB_OK && text.len > 0)
    rc = tw_experiments_read(x, (const char *)text.data, text.len, false, diag);
  if (rc == TB_OK && x->experiments == 0) rc = tb_fail(diag, TB_BROKEN, "no experiment is in it");
  tb_buf_fini(&text);
  return rc;
}

struct tw_experiments *tk_spec_file_read(const char *path) {
  struct tw_experiments *x = malloc(sizeof *x);
  struct tk_input *in;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (!tk_input_open("tracepoints", path, &in)) {
    free(x);
    return NULL;
  }
  tb_rc rc = x == NULL ? TB_NOMEM : read_spec(in, x, &diag);
  tk_input_close(in);
  if (rc == TB_OK) return x;
  if (rc != TB_IO) /* an I/O error is already reported */
    tk_fail("tracepoints", "%s: %s", path, diag.text[0] != '\0' ? diag.text : tb_rc_text(rc));
  free(x);
  return NULL;
}
