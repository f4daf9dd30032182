/* SPDX-License-Identifier: Apache-2.0 */
/* exit_while_streaming ADDRESS CERTS TURNS: forwards for that many turns and then calls exit()
 * while the sender is working; prints the moment to stdout as a struct timespec. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/stream.h"
#include "traceagent.h"

int main(int argc, char **argv) {
  struct tt_stream t = tt_stream_make(26, 4, 20, 60000);
  struct timespec now;
  ta_forward *f;

  if (argc != 4) return 2;
  struct ta_forward_config config = { .server = argv[1], .certs = argv[2], .service = "exit" };
  if (ta_forward_open(&config, &f) != 0) return 3;
  for (int turn = 0; turn < atoi(argv[3]); turn++) {
    ta_forward_write(f, t.bytes, t.n);
    ta_forward_sync(f, turn % 4);
  }
  tt_stream_free(&t);
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (write(STDOUT_FILENO, &now, sizeof now) != sizeof now) return 4;
  exit(0);
}
