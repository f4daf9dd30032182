/* SPDX-License-Identifier: Apache-2.0 */
/* Where tests that write much have their folders: in memory if there is room for them, since they ask for no disk and
 * wait for it at every sync. TMPDIR says otherwise. */
#ifndef TT_SCRATCH_H
#define TT_SCRATCH_H

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

static inline const char *tt_scratch(void) {
  const char *said = getenv("TMPDIR");
  struct statvfs room;

  if (said != NULL && *said != '\0') return said;
  if (access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &room) == 0 &&
      (unsigned long long)room.f_bavail * room.f_frsize >= 2ull << 30)
    return "/dev/shm";
  return "/tmp";
}

#endif
