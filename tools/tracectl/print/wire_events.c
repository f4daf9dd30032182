/* SPDX-License-Identifier: Apache-2.0 */
/* Events are read in place. An event cut off by the end of a piece of input is retried with twice as
 * many bytes, so that the cost of long events is linear. */
#include "tools/tracectl/print/wire_events.h"

#include <string.h>

#include "wire/batch.h"

/* Go writes no event longer than a batch; a forged one is refused here, in bounded memory. */
enum { EVENT_BYTES_MAX = 64 << 20, RELEASE_BYTES = 1 << 20 };

/* Makes at least twice as many bytes readable from pos on; at the end sets ended. */
static tb_rc read_more(struct tk_wire_events *events) {
  size_t have = (size_t)(events->end - events->pos), want = have < 4096 ? 8192 : 2 * have;
  const unsigned char *bytes;
  size_t n;
  int more;

  if (have > EVENT_BYTES_MAX)
    return tb_fail(events->diag, TB_BUDGET, "an event of more than %d MiB", EVENT_BYTES_MAX >> 20);
  if (have == 0) { /* nothing is cut off: use the next piece directly */
    do more = tk_input_next(events->in, &bytes, &n);
    while (more == 1 && n == 0);
    if (more < 0) return tb_fail(events->diag, TB_IO, "cannot be read on");
    if (more == 0) {
      events->ended = true;
      return TB_OK;
    }
    events->pos = bytes;
    events->end = bytes + n;
    events->in_carry = false;
    return TB_OK;
  }
  if (events->in_carry) { /* pos points into carry: drop what was read */
    size_t done = (size_t)(events->pos - events->carry.data);
    memmove(events->carry.data, events->pos, have);
    events->carry.len -= done;
  } else {
    tb_buf_clear(&events->carry);
    tb_buf_add(&events->carry, events->pos, have);
  }
  while (events->carry.len < want && !events->ended) {
    more = tk_input_next(events->in, &bytes, &n);
    if (more < 0) return tb_fail(events->diag, TB_IO, "cannot be read on");
    if (more == 0)
      events->ended = true;
    else
      tb_buf_add(&events->carry, bytes, n);
  }
  if (events->carry.rc != TB_OK) return events->carry.rc;
  events->in_carry = true;
  events->pos = events->carry.data;
  events->end = events->pos + events->carry.len;
  return TB_OK;
}

tb_rc tk_wire_open(struct tk_wire_events *events, struct tk_input *in, struct tb_mem *mem,
                   struct tb_diag *diag) {
  size_t used = 0;
  tb_rc rc;

  *events = (struct tk_wire_events){ .in = in, .diag = diag };
  tb_buf_init(&events->carry, mem);
  tb_diag_place(diag, TB_NO_GEN, TB_NO_THREAD, 0);
  do {
    TB_TRY(read_more(events));
    rc = tw_header_read(events->pos, (size_t)(events->end - events->pos), diag, &events->version,
                        &used);
  } while (rc == TB_AGAIN && !events->ended);
  if (rc == TB_AGAIN)
    return tb_fail(diag, TB_BROKEN, "ends within its header: no Go execution trace");
  TB_TRY(rc);
  events->pos += used;
  events->offset = used;
  events->types_end = tw_version_events_end(events->version);
  return TB_OK;
}

void tk_wire_close(struct tk_wire_events *events) {
  tb_buf_fini(&events->carry);
}

tb_rc tk_wire_next(struct tk_wire_events *events, struct tw_raw *out) {
  for (;;) {
    size_t used = 0;
    tb_rc rc = TB_END;

    if (events->offset - events->released >= RELEASE_BYTES) {
      tk_input_release(events->in, events->offset);
      events->released = events->offset;
    }
    tb_diag_place(events->diag, TB_NO_GEN, TB_NO_THREAD, events->offset);
    if (events->pos < events->end)
      rc = tw_raw_read(events->pos, (size_t)(events->end - events->pos), events->types_end,
                       events->diag, out, &used);
    if (rc == TB_OK) {
      events->offset += used;
      events->pos += used;
      return TB_OK;
    }
    if (rc == TB_BROKEN) return rc;
    if (events->ended) {
      if (rc == TB_AGAIN) return tb_fail(events->diag, TB_BROKEN, "ends within a number");
      return TB_END;
    }
    TB_TRY(read_more(events));
  }
}
