/* SPDX-License-Identifier: Apache-2.0 */
/* A process that runs the store and may die at any moment; its parent knows which records were
 * acked.
 *
 * The number n alone determines record n of a stream, so each child continues at the place where the store says the
 * previous child stopped. Acks are written to a pipe to the parent before the next record is submitted. */
#ifndef TT_STORE_CHILD_H
#define TT_STORE_CHILD_H

#include "support/store_fixture.h"

enum { TT_CHILD_STREAMS = 4, TT_CHILD_BATCHES = 7 };

/* Exit codes of a child. */
enum { TT_CHILD_DONE = 0, TT_CHILD_NO_START = 2, TT_CHILD_REFUSED = 4 };

/* Writes until killed, until stop_seq is acked on each stream, or until the store refuses: then stops as a daemon does.
 * Acks are written to fd. */
_Noreturn void tt_child_run(struct tt_store *t, int fd, uint64_t stop_seq);

/* Reads acks until the moment (0: until the child ends; returns false if the child is silent for too many seconds).
 * Checks that no start knows of fewer records than were acked. */
bool tt_child_follow(int fd, uint64_t until_ns, int silent_s, uint64_t acked[TT_CHILD_STREAMS]);

/* Returns the seq that ends the generation of this record. */
uint64_t tt_child_border(uint64_t seq);
/* Expects all that was acked, up to the end of a generation, to be in the archive, once, byte for byte, and proven.
 * what: named in the failure. */
void tt_child_expect(struct tt_store *t, const uint64_t acked[TT_CHILD_STREAMS], const char *what);
uint64_t tt_mono_ns(void);

#endif
