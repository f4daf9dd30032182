/* SPDX-License-Identifier: Apache-2.0 */
/* Handling of the host's exit(), fork() and last thread, shared by all streams of a process.
 *
 * exit(): the agent's handler makes every sender thread stop using OpenSSL for good and waits at most 200 ms for that;
 * the threads then sleep until the process ends. Nothing is flushed: to deliver its last records a program closes its
 * streams first.
 *
 * fork(): in the child the parent's streams are off; it may open its own. A lock of OpenSSL's that a sender thread holds
 * during fork() would stay locked in the child, for the host's use of OpenSSL, too: so fork() waits until the agent's
 * threads rest, at most one second. Long actions are not done between work_begin and work_end: name look-ups
 * have a thread of their own (agent/net/lookup.h).
 *
 * A child made by _Fork(), clone() or vfork() runs none of fork()'s handlers, and one made by vfork() shares the parent's
 * memory. It is recognised by its process id and changes nothing here.
 *
 * Threads   any.
 */
#ifndef TA_HOST_PROCESS_H
#define TA_HOST_PROCESS_H

#include <stdbool.h>

/* For data that is written around fork(), in the parent or in the child: kept together, because the kernel copies each
 * page that either writes to. */
#define TA_AT_FORK __attribute__((section("ta_at_fork")))
/* For functions that run around fork(): the linker puts cold ones together, because a child maps again each 64 KiB of
 * code that it runs. */
#define TA_CODE_AT_FORK __attribute__((cold))

struct ta_member {
  struct ta_member *next;
  void (*wake)(struct ta_member *self);
  void (*forked)(struct ta_member
                     *self); /* in the child, which must not hold the parent's files; may be NULL */
  bool quiet;                /* its thread has ended, is parked, or was never started */
  unsigned epoch;            /* identifies the process that joined; in others its stream is off */
};

/* Makes the member belong to this process. Returns false if handlers cannot be registered or the process is ending. */
bool ta_process_own(struct ta_member *member);
/* As own(), for a member that has a thread or is about to start one. */
bool ta_process_join(struct ta_member *member);
void ta_process_leave(struct ta_member *member);
bool ta_process_owns(const struct ta_member *member); /* false in a child */
/* False in a child in which fork()'s handlers did not run, and before the first own(), join() or hook_fork(). */
bool ta_process_is_owner(void);
/* True if fork() stopped waiting while an agent thread was at work: in this child locks of libraries, OpenSSL's above
 * all, may be held for ever. No session begins here. */
bool ta_process_is_torn(void);

/* Handlers around fork(), for agent/emit: prepare runs when the agent's threads rest. The last call counts. */
struct ta_fork_hooks {
  void (*prepare)(void), (*parent)(void), (*child)(void);
};
bool ta_process_hook_fork(const struct ta_fork_hooks *hooks); /* false: they cannot be registered */

/* The member's thread reports that it is done; wait_quiet waits for that. */
void ta_process_quiet(struct ta_member *member);
bool ta_process_wait_quiet(struct ta_member *member, unsigned ms);

/* Surround every action of a sender thread. begin waits for a fork() in progress. */
void ta_process_work_begin(void);
void ta_process_work_end(void);

/* Surround a call that makes a child without fork()'s handlers: the agent's threads rest meanwhile, so that none holds a
 * lock of the loader's or the allocator's that the child needs. Call go_on() in the child, too. After the first join(). */
void ta_process_hold(void);
void ta_process_go_on(void);

/* Accounting of agent threads (spawn.c): the creator calls starts, and fails if creation failed; the thread begins. */
void ta_process_thread_starts(void);
void ta_process_thread_fails(void);
void ta_process_thread_begins(void);
/* The host's first thread is about to end by itself, as by pthread_exit(). */
void ta_process_first_leaves(void);
bool ta_process_first_has_left(void);
/* True if no host thread is left: without the agent's threads the process would have ended. False without /proc. */
bool ta_process_is_deserted(void);
/* Called by a host thread about to end; true if no other host thread is left, except some that are about to end, too. */
bool ta_process_leaves_none(void);
/* Waits at most 200 ms for the agent's threads to end: the last thread to end runs the handlers of exit(). */
void ta_process_be_last(void);
/* Called by an agent thread once no host thread is left, except some about to end: waits for them and ends the process
 * with its first thread's exit code, since the last thread's code is the process's. If that is 0, the handlers of exit()
 * run, as after pthread_exit(). */
_Noreturn void ta_process_end_as_first(void);

bool ta_process_exiting(void);
_Noreturn void ta_process_park(struct ta_member *member);

#endif
