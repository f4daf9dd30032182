/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded into each test that mutants.py runs: a line of the file TC_MUTANT_FOLDERS for each folder that the test makes,
 * as a test that fails or hangs leaves them behind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *mkdtemp(char *name) {
  char *(*real)(char *);
  const char *list = getenv("TC_MUTANT_FOLDERS");

  *(void **)&real = dlsym(RTLD_NEXT, "mkdtemp");
  char *made = real == NULL ? NULL : real(name);
  int fd = made == NULL || list == NULL
               ? -1
               : open(list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) {
    dprintf(fd, "%s\n", made);
    close(fd);
  }
  return made;
}
