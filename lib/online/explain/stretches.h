/* SPDX-License-Identifier: Apache-2.0 */
/* A set of stretches of time that do not touch, in rising order, and how much of an interval they cover.
 *
 * Memory from mem: 16 bytes a stretch.
 * Threads use each object from one thread at a time.
 * Errors TB_BUDGET, TB_NOMEM: the stretch is missing. */
#ifndef TO_EXPLAIN_STRETCHES_H
#define TO_EXPLAIN_STRETCHES_H

#include "base/mem.h"
#include "online/event/event.h"

struct to_stretches {
  struct to_stretch {
    to_ns from, until;
  } * one;
  size_t n, room;
};

/* Adds a stretch, joined with those that it touches. until must not fall from call to call. */
TB_MUST tb_rc to_stretches_add(struct to_stretches *s, struct tb_mem *mem, to_ns from, to_ns until);
void to_stretches_fini(struct to_stretches *s, struct tb_mem *mem);

/* Returns how much of from..until they cover. */
uint64_t to_stretches_cover(const struct to_stretches *s, to_ns from, to_ns until);
/* Returns how much of from..until they cover and others do not. */
uint64_t to_stretches_cover_without(const struct to_stretches *s, const struct to_stretches *others,
                                    to_ns from, to_ns until);

#endif
