/* SPDX-License-Identifier: Apache-2.0 */
/* log_maker STATE MIB: makes a store whose log has that much acked data which is in no segment yet, and kills it.
 *
 * Four streams write batches of 60 KiB into generations that do not end, so the next start on STATE replays the whole
 * log. STATE must not exist. Prints "RECORDS BYTES", the acked batches. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/frame.h"
#include "support/store_driver.h"

enum { STREAMS = 4, BATCH_BYTES = 60 << 10, AT_ONCE = 64 };

static struct tt_store t;

static void make_store(const char *state) {
  tt_store_make(&t);
  rmdir(t.dir);
  free(t.config.top_state);
  t.config.top_state = strdup(state);
  t.config.log_file_bytes = 64 << 20; /* the default */
  t.config.log_checkpoint_bytes = t.config.log_held_bytes_max = UINT64_C(64) << 30;
}

int main(int argc, char **argv) {
  static unsigned char batch[BATCH_BYTES];
  struct tt_writer w[STREAMS] = { 0 };
  uint64_t records = 0, want;

  if (argc != 3) return 2;
  want = strtoull(argv[2], NULL, 10) << 20;
  make_store(argv[1]);
  if (tt_store_start(&t) != TB_OK) {
    fprintf(stderr, "log_maker: %s\n", t.notes);
    return 1;
  }
  for (unsigned i = 0; i < STREAMS; i++) {
    tt_attach(&t, i + 1, i + 1, "tracecollect:agent/log");
    w[i] = (struct tt_writer){ .t = &t, .conn = i + 1 };
    w[i].stream = tt_attached(&t, i + 1, NULL);
    if (w[i].stream == 0) return 1;
    tt_header(&w[i]);
  }
  while (records * BATCH_BYTES < want) {
    struct tt_writer *next = &w[records / AT_ONCE % STREAMS];
    for (unsigned i = 0; i < AT_ONCE; i++, records++) {
      tt_fill(batch, sizeof batch, records, 0);
      tt_batch(next, 1, batch, sizeof batch);
    }
    if (!tt_wait_acked(&t, next->stream, next->seq)) return 1;
  }
  printf("%" PRIu64 " %" PRIu64 "\n", records, records * BATCH_BYTES);
  fflush(stdout);
  _exit(0); /* as by kill -9 */
}
