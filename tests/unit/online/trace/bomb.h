/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a hostile trace: batches of one thread after the other, which the test ends. */
#ifndef TT_UNIT_TRACE_BOMB_H
#define TT_UNIT_TRACE_BOMB_H

#include "base/buf.h"
#include "wire/batch.h"
#include "wire/spec.h"

enum { BOMB_NO_THREAD = -1 };

struct bomb {
  struct tb_mem mem;
  struct tb_buf trace, batch;
  int64_t thread;
  uint64_t gen, time; /* of the next batch */
};

void bomb_begin(struct bomb *bomb, uint64_t frequency);
void bomb_end(struct bomb *bomb);
void bomb_flush(struct bomb *bomb);
/* Call it before each event: writes the batch out if it is full. */
void bomb_room(struct bomb *bomb);
/* Writes what follows an event: the frames of a stack. */
void bomb_numbers(struct bomb *bomb, const uint64_t *numbers, size_t n);
void bomb_add(struct bomb *bomb, const uint64_t *numbers, size_t n);
#define ADD(bomb, ...)                                                                             \
  bomb_add((bomb), (const uint64_t[]){ __VA_ARGS__ },                                              \
           sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
/* A string with its bytes, in the batch that ADD(bomb, TW_EV_STRINGS) began. */
void bomb_string(struct bomb *bomb, uint64_t id, const char *text, size_t len);

#endif
