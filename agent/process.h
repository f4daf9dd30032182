/* SPDX-License-Identifier: Apache-2.0 */
/* What all streams of a process share: the ends that the host may come to without asking us.
 *
 * exit(): our handler tells every sender thread to leave OpenSSL alone for good and waits for that
 * at most 200 ms; the threads then sleep until the process is gone. Nothing is flushed: a program
 * that wants its last records to arrive closes its streams first. fork(): in the child the streams
 * of the parent are off; it may open its own. A lock of OpenSSL's that a sender thread holds at that
 * moment would stay locked in the child for good, for the host's use of OpenSSL, too: so a fork waits
 * until the sender threads rest, at most 200 ms.
 *
 * Threads   any.
 */
#ifndef TA_PROCESS_H
#define TA_PROCESS_H

#include <stdbool.h>

struct ta_member {
  struct ta_member *next;
  void (*wake)(struct ta_member *self);
  void (*forked)(struct ta_member
                     *self); /* in the child, which must not hold the parent's files; may be NULL */
  bool quiet;                /* its thread has ended or is parked */
  unsigned epoch;            /* of the process that joined; another one's streams are off */
};

bool ta_process_join(struct ta_member *member); /* false: handlers cannot be registered */
void ta_process_leave(struct ta_member *member);
bool ta_process_owns(const struct ta_member *member); /* false in a forked child */

/* The member's thread says that it is done; wait_quiet waits for that. */
void ta_process_quiet(struct ta_member *member);
bool ta_process_wait_quiet(struct ta_member *member, unsigned ms);

/* What a sender thread does, it does between the two. begin waits for a fork that is under way. */
void ta_process_work_begin(void);
void ta_process_work_end(void);

bool ta_process_exiting(void);
_Noreturn void ta_process_park(struct ta_member *member);

#endif
