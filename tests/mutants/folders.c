/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into each test that mutants.py runs. Writes a line to the file TC_MUTANT_FOLDERS for each folder that the test
 * creates, because a test that fails or hangs does not remove its folders. */
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
