/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/file_state.h"

#include <errno.h>

struct tc_file_state tc_file_state_from(const struct stat *st) {
  return (struct tc_file_state){
    .dev = st->st_dev, .ino = st->st_ino, .size = st->st_size, .changed = st->st_ctim
  };
}

struct tc_file_state tc_file_state_of(const char *path) {
  struct stat st;

  return stat(path, &st) == 0 ? tc_file_state_from(&st) : (struct tc_file_state){ .error = errno };
}

bool tc_file_state_equals(const struct tc_file_state *a, const struct tc_file_state *b) {
  return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->error == b->error &&
         a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
