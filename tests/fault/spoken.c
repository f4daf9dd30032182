/* SPDX-License-Identifier: Apache-2.0 */
#include "spoken.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int spoken(bool minor) {
  const char *version = strrchr(program_invocation_short_name, '_');
  int parts[2];

  if (version != NULL && sscanf(version, "_%d.%d", &parts[0], &parts[1]) == 2) return parts[minor];
  fprintf(stderr, "%s: to be called by a name like NAME_1.9\n", program_invocation_short_name);
  abort();
}

int tt_spoken_major(void) {
  return spoken(false);
}

int tt_spoken_minor(void) {
  return spoken(true);
}
