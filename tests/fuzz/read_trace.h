/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds all of an input to a reader, in pieces, and runs the reader in short slices. */
#ifndef TT_READ_TRACE_H
#define TT_READ_TRACE_H

#include "online/trace/reader.h"

enum { TT_SLICE = 500 }; /* events asked for at a time */

static inline tb_rc tt_read_trace(struct to_reader *reader, const uint8_t *data, size_t size,
                                  size_t piece) {
  tb_rc rc = TB_OK;

  while (size > 0 && rc == TB_OK) {
    size_t used;
    rc = to_reader_feed(reader, data, size < piece ? size : piece, &used);
    data += used;
    size -= used;
    while (rc == TB_AGAIN) rc = to_reader_run(reader, TT_SLICE);
  }
  if (rc == TB_OK) rc = to_reader_finish(reader);
  while (rc == TB_AGAIN) rc = to_reader_run(reader, TT_SLICE);
  return rc;
}

#endif
