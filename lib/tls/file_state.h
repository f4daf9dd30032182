/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether a file has changed: another file of the same name, other content, gone, or there again. Symbolic links are
 * followed, so a link that leads elsewhere is a change, too: Kubernetes replaces the files of a volume so.
 *
 * Threads   any.
 */
#ifndef TC_TLS_FILE_STATE_H
#define TC_TLS_FILE_STATE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

struct tc_file_state {
  dev_t dev;
  ino_t ino;
  off_t size;
  struct timespec changed;
  int error; /* errno of stat(); 0: none */
};

struct tc_file_state tc_file_state_of(const char *path);
struct tc_file_state tc_file_state_from(const struct stat *st);
bool tc_file_state_equals(const struct tc_file_state *a, const struct tc_file_state *b);

#endif
