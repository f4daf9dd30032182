/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the folder of tests that write much: in memory if there is room, since they do not test the disk and would
 * wait for it at every sync. TMPDIR overrides the choice. */
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
