/* SPDX-License-Identifier: Apache-2.0 */
/* standing_clock FILE: writes the trace of a session whose clock stands still. */
#include <stdio.h>

#include "tests/unit/agent/emit/standing_clock.h"

int main(int argc, char **argv) {
  static struct emitted e;
  FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;

  if (file == NULL) return 2;
  standing_clock_emit(&e);
  bool whole = e.traces == 1 && fwrite(e.trace[0].bytes, 1, e.trace[0].n, file) == e.trace[0].n;
  emit_free(&e);
  return fclose(file) == 0 && whole ? 0 : 1;
}
