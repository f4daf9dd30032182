/* SPDX-License-Identifier: Apache-2.0 */
/* A process that runs the store and may die at any moment; its parent knows what was acked.
 *
 * The child writes streams whose record n is given by n alone, so each child goes on where the store says
 * the one before was. Acks go to the parent through a pipe before the next record leaves. */
#ifndef TT_STORE_CHILD_H
#define TT_STORE_CHILD_H

#include "support/store_fixture.h"

enum { TT_CHILD_STREAMS = 4, TT_CHILD_BATCHES = 7 };

/* Exit codes of a child. */
enum { TT_CHILD_DONE = 0, TT_CHILD_NO_START = 2, TT_CHILD_REFUSED = 4 };

/* Writes until killed, until each stream has stop_seq acked, or until the store refuses: then ends as a daemon
 * does. Acks go to fd. */
_Noreturn void tt_child_run(struct tt_store *t, int fd, uint64_t stop_seq);

/* Reads acks until the moment (0: until the child has ended, or said nothing for so many seconds: then the answer is
 * false); checks that no start knows less than was acked. */
bool tt_child_follow(int fd, uint64_t until_ns, int silent_s, uint64_t acked[TT_CHILD_STREAMS]);

/* The seq that ends the generation of this one. */
uint64_t tt_child_border(uint64_t seq);
/* All that was acked, which ends with a generation, is in the archive, once, byte for byte, and is proven. what: said
 * where it is not. */
void tt_child_expect(struct tt_store *t, const uint64_t acked[TT_CHILD_STREAMS], const char *what);
uint64_t tt_mono_ns(void);

#endif
