/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a call in a child process and reads its stderr, to see how the call ends the process. Only for use while no
 * other thread runs. */
#ifndef TT_DEATH_H
#define TT_DEATH_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Expects the child to be killed by a signal, after printing one of the two texts. */
static inline void tt_expect_death(const char *name, void (*call)(void), const char *said,
                                   const char *or_said) {
  char text[4000];
  size_t n = 0;
  ssize_t got;
  int ends[2], status;

  cr_assert_eq(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    call();
    _exit(0);
  }
  close(ends[1]);
  while ((got = read(ends[0], text + n, sizeof text - 1 - n)) > 0) n += (size_t)got;
  text[n] = '\0';
  close(ends[0]);
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_expect(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "%s: lives", name);
  cr_expect(strstr(text, said) != NULL || strstr(text, or_said) != NULL, "%s: \"%s\"", name, text);
}

#endif
