/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all streams of a process: the ends that the host may come to without asking us.
 *
 * exit(): our handler makes every sender thread leave OpenSSL alone for good and waits for that at most 200
 * ms; the threads then sleep until the process is gone. Nothing is flushed: a program
 * that wants its last records to arrive closes its streams first.
 *
 * fork(): in the child the streams of the parent are off; it may open its own. A lock of OpenSSL's that a sender
 * thread holds at that moment would stay locked in the child for good, for the host's use of OpenSSL, too: so a fork
 * waits until our threads rest, at most 200 ms. Actions that may last are not done between work_begin and work_end:
 * name look-ups have a thread of their own (agent/net/lookup.h).
 *
 * A child made by _Fork(), clone() or vfork() runs none of fork()'s handlers, and a vfork()ed one has the parent's
 * memory. It is recognised by its process id, and leaves everything here alone.
 *
 * Threads   any.
 */
#ifndef TA_HOST_PROCESS_H
#define TA_HOST_PROCESS_H

#include <stdbool.h>

/* For data that a fork() writes to, in the parent or in the child. It lies together, because the kernel copies each
 * page that either of them writes to. */
#define TA_AT_FORK __attribute__((section("ta_at_fork")))
/* For functions that run around fork(): a child maps each 64 KiB of code again that it runs through. The linker puts
 * them together. */
#define TA_CODE_AT_FORK __attribute__((cold))

struct ta_member {
  struct ta_member *next;
  void (*wake)(struct ta_member *self);
  void (*forked)(struct ta_member
                     *self); /* in the child, which must not hold the parent's files; may be NULL */
  bool quiet;                /* its thread has ended, is parked, or was never made */
  unsigned epoch;            /* of the process that joined; another one's streams are off */
};

/* The member is this process's. False: handlers cannot be registered, or the process ends. */
bool ta_process_own(struct ta_member *member);
/* The same, and it has a thread, or is about to. */
bool ta_process_join(struct ta_member *member);
void ta_process_leave(struct ta_member *member);
bool ta_process_owns(const struct ta_member *member); /* false in a child */
/* False in a child that no handler of fork() has run in. Before the first join() or hook_fork(): false. */
bool ta_process_is_owner(void);
/* It was forked while a thread of ours was at work, for longer than fork() waits: locks of libraries, OpenSSL's above all, may be
 * held in it for ever. No session begins here. */
bool ta_process_is_torn(void);

/* Handlers around fork(), for agent/emit: prepare runs when our threads rest. The last call counts. */
struct ta_fork_hooks {
  void (*prepare)(void), (*parent)(void), (*child)(void);
};
bool ta_process_hook_fork(const struct ta_fork_hooks *hooks); /* false: they cannot be registered */

/* The member's thread says that it is done; wait_quiet waits for that. */
void ta_process_quiet(struct ta_member *member);
bool ta_process_wait_quiet(struct ta_member *member, unsigned ms);

/* A sender thread acts between the two only. begin waits for a fork that is under way. */
void ta_process_work_begin(void);
void ta_process_work_end(void);

/* Around what makes a child and runs no handler of fork(): our threads rest meanwhile, so that none holds a lock of the
 * loader's or the allocator's that the child needs. In the child, too, the second ends it. After the first join(). */
void ta_process_hold(void);
void ta_process_go_on(void);

/* A thread of ours: its maker says so before, and if it cannot be made; the thread says who it is (spawn.c). */
void ta_process_thread_starts(void);
void ta_process_thread_fails(void);
void ta_process_thread_begins(void);
/* The host's first thread is about to end by itself, as by pthread_exit(). */
void ta_process_first_leaves(void);
bool ta_process_first_has_left(void);
/* No thread of the host's is left: without ours the process would be over. It reads /proc, and answers false without. */
bool ta_process_is_deserted(void);
/* By a thread of the host's that is about to end: no other is left, but for some that are about to end, too. */
bool ta_process_leaves_none(void);
/* Waits for our threads to be gone, for a moment: the last thread to end runs the handlers of exit(). */
void ta_process_be_last(void);
/* By a thread of ours, once no thread of the host's is left but for some that are about to end: waits for those, and ends the
 * process as its first thread has ended, since the last thread's exit code is the process's. Where that was 0 with the handlers
 * of exit(), as after pthread_exit(). Threads of ours that do not end end with it. */
_Noreturn void ta_process_end_as_first(void);

bool ta_process_exiting(void);
_Noreturn void ta_process_park(struct ta_member *member);

#endif
