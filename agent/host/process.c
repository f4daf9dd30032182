/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/clock.h"
#include "agent/host/keep.h"

enum { EXIT_WAIT_MS = 200, FORK_WAIT_MS = 1000, THREADS_MAX = 32 };

static TA_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TA_AT_FORK pthread_cond_t calm; /* a member became quiet, a thread rests */
static TA_AT_FORK struct ta_member *members;
static TA_AT_FORK pid_t owner;      /* getpid() differs in a child made without fork()'s handlers */
static TA_AT_FORK unsigned working; /* threads that do not rest */
static TA_AT_FORK atomic_uint epoch;
static TA_AT_FORK bool calm_is_parents;
static TA_AT_FORK bool torn;
static TA_AT_FORK atomic_int starting; /* agent threads that are not in threads[] yet */
static TA_AT_FORK atomic_int
    threads[THREADS_MAX]; /* agent threads; negative: host threads about to end; 0: free */
static TA_AT_FORK atomic_bool first_has_left;
static atomic_bool exiting;
static _Atomic(const struct ta_fork_hooks *) hooks;

void ta_process_hold(void) {
  struct timespec until = ta_timespec(ta_mono_ns() + FORK_WAIT_MS * UINT64_C(1000000));

  pthread_mutex_lock(&lock);
  while (working > 0)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
}

void ta_process_go_on(void) {
  pthread_mutex_unlock(&lock);
}

/* The hooks' locks are taken last, so that no thread waits for them while this one waits for the agent's threads. */
static TA_CODE_AT_FORK void lock_for_fork(void) {
  const struct ta_fork_hooks *others = atomic_load(&hooks);

  ta_process_hold();
  if (others != NULL) others->prepare();
}
static TA_CODE_AT_FORK void unlock_parent(void) {
  const struct ta_fork_hooks *others = atomic_load(&hooks);

  if (others != NULL) others->parent();
  pthread_mutex_unlock(&lock);
}

/* The parent's threads may have been waiting on `calm`, so the child initialises it again before its first use. */
static TA_CODE_AT_FORK void start_child(void) {
  const struct ta_fork_hooks *others = atomic_load(&hooks);

  for (struct ta_member *m = members; m != NULL; m = m->next)
    if (m->forked != NULL) m->forked(m);
  members = NULL;
  torn |= working > 0;
  working = 0;
  starting = 0;
  for (int i = 0; i < THREADS_MAX; i++) threads[i] = 0;
  first_has_left = false;
  calm_is_parents = true;
  atomic_fetch_add(&epoch, 1);
  owner = getpid();
  if (others != NULL) others->child();
  pthread_mutex_unlock(&lock);
}

static const struct ta_member *first_loud(void) {
  const struct ta_member *m = members;

  while (m != NULL && m->quiet) m = m->next;
  return m;
}

static void at_exit(void) {
  if (!ta_process_is_owner()) return;
  struct timespec until = ta_timespec(ta_mono_ns() + EXIT_WAIT_MS * UINT64_C(1000000));

  atomic_store(&exiting, true);
  pthread_mutex_lock(&lock);
  for (struct ta_member *m = members; m != NULL; m = m->next) m->wake(m);
  while (first_loud() != NULL)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
  pthread_mutex_unlock(&lock);
}

static bool registered;

static void register_handlers(void) {
  owner = getpid();
  ta_cond_init(&calm);
  registered =
      atexit(at_exit) == 0 && pthread_atfork(lock_for_fork, unlock_parent, start_child) == 0;
}

static bool watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, register_handlers);
  return registered;
}

bool ta_process_hook_fork(const struct ta_fork_hooks *of) {
  if (!watch()) return false;
  atomic_store(&hooks, of);
  return true;
}

/* Called with the lock held. Nothing waits on `calm` before there is a member or a working thread. */
static void own_calm(void) {
  if (calm_is_parents) ta_cond_init(&calm);
  calm_is_parents = false;
}

bool ta_process_is_owner(void) {
  return getpid() == owner;
}

bool ta_process_is_torn(void) {
  return torn;
}

bool ta_process_own(struct ta_member *member) {
  if (!watch() || exiting || !ta_process_is_owner()) return false;
  member->epoch = epoch;
  return true;
}

bool ta_process_join(struct ta_member *member) {
  if (!ta_process_own(member)) return false;
  pthread_mutex_lock(&lock);
  own_calm();
  member->next = members;
  members = member;
  pthread_mutex_unlock(&lock);
  return true;
}

void ta_process_leave(struct ta_member *member) {
  pthread_mutex_lock(&lock);
  for (struct ta_member **at = &members; *at != NULL; at = &(*at)->next)
    if (*at == member) {
      *at = member->next;
      break;
    }
  pthread_mutex_unlock(&lock);
}

bool ta_process_owns(const struct ta_member *member) {
  return member->epoch == epoch && ta_process_is_owner();
}

void ta_process_quiet(struct ta_member *member) {
  pthread_mutex_lock(&lock);
  member->quiet = true;
  pthread_cond_broadcast(&calm);
  pthread_mutex_unlock(&lock);
}

bool ta_process_wait_quiet(struct ta_member *member, unsigned ms) {
  struct timespec until = ta_timespec(ta_mono_ns() + ms * UINT64_C(1000000));

  pthread_mutex_lock(&lock);
  while (!member->quiet)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
  bool quiet = member->quiet;
  pthread_mutex_unlock(&lock);
  return quiet;
}

void ta_process_work_begin(void) {
  pthread_mutex_lock(&lock);
  own_calm();
  working++;
  pthread_mutex_unlock(&lock);
}

void ta_process_work_end(void) {
  pthread_mutex_lock(&lock);
  if (--working == 0) pthread_cond_broadcast(&calm);
  pthread_mutex_unlock(&lock);
}

/* Accounting of threads: the agent's and the host's. */

void ta_process_thread_starts(void) {
  atomic_fetch_add(&starting, 1);
}

void ta_process_thread_fails(void) {
  atomic_fetch_sub(&starting, 1);
}

static bool is_there(int thread) {
  char path[40];
  struct stat unused;

  snprintf(path, sizeof path, "/proc/self/task/%d", thread);
  return stat(path, &unused) == 0 || errno != ENOENT;
}

/* Stores the thread in a free slot or that of an ended thread. Without a slot it counts as a host thread. */
static void note_thread(int thread) {
  KEEP_ERRNO;

  for (int i = 0; i < THREADS_MAX; i++) {
    int there = atomic_load(&threads[i]);
    if (there != 0 && is_there(abs(there))) continue;
    if (atomic_compare_exchange_strong(&threads[i], &there, thread)) return;
  }
}

void ta_process_thread_begins(void) {
  note_thread(gettid());
  atomic_fetch_sub(&starting, 1);
}

static bool is_noted(int thread) {
  for (int i = 0; i < THREADS_MAX; i++)
    if (atomic_load(&threads[i]) == thread) return true;
  return false;
}

void ta_process_first_leaves(void) {
  if (gettid() == getpid()) atomic_store(&first_has_left, true);
}

bool ta_process_first_has_left(void) {
  return atomic_load(&first_has_left);
}

/* A first thread that has ended stays a zombie until all have. The last field of its stat is its status, as waitpid()
 * reports it. */
static bool first_is_zombie(int *out_status) {
  char text[1024];
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  const char *name_ends = strrchr(text, ')'), *last = strrchr(text, ' ');
  if (name_ends == NULL || strncmp(name_ends, ") Z", 3) != 0) return false;
  *out_status = atoi(last + 1);
  return true;
}

struct tasks {              /* without this thread, and without the first one if it has ended */
  int ours, leaving, hosts; /* leaving: host threads about to end */
};

static struct tasks list_tasks(void) {
  struct tasks n = { 0, 0, 0 };
  int self = gettid(), process = getpid(), status;
  DIR *dir = opendir("/proc/self/task");

  if (dir == NULL) return (struct tasks){ 0, 0, INT_MAX };
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    int thread = atoi(entry->d_name);
    if (thread == 0 || thread == self) continue;
    if (thread == process && first_is_zombie(&status)) continue;
    if (is_noted(thread))
      n.ours++;
    else if (is_noted(-thread))
      n.leaving++;
    else
      n.hosts++;
  }
  closedir(dir);
  return n;
}

static void nap(void) {
  nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* A thread's end must not cost more with more threads, so this counts links: /proc/self/task has two, and one a thread. */
static bool has_more_than_noted(void) {
  int self = gettid(), first = getpid();
  int noted = 2 + atomic_load(&starting); /* self, first, and threads not noted yet */
  struct stat folder;

  if (stat("/proc/self/task", &folder) != 0) return false;
  for (int i = 0; i < THREADS_MAX; i++) {
    int thread = abs(atomic_load(&threads[i]));
    noted += thread != 0 && thread != self && thread != first && is_there(thread);
  }
  return folder.st_nlink > 2 + (nlink_t)noted;
}

static bool has_others(void) {
  if (has_more_than_noted()) return true;
  struct tasks n = list_tasks();

  for (int ms = 0; ms < EXIT_WAIT_MS && atomic_load(&starting) != 0; ms++) {
    nap();
    n = list_tasks();
  }
  return n.hosts != 0;
}

/* If two threads end at once, at least one sees that the other is noted. */
bool ta_process_leaves_none(void) {
  note_thread(-gettid());
  return !has_others();
}

bool ta_process_is_deserted(void) {
  int status;

  return first_is_zombie(&status) && !has_others();
}

static struct tasks wait_for_others(void) {
  struct tasks n = list_tasks();

  for (int ms = 0; ms < EXIT_WAIT_MS && n.ours + n.leaving != 0; ms++) {
    nap();
    n = list_tasks();
  }
  return n;
}

void ta_process_be_last(void) {
  wait_for_others();
}

_Noreturn void ta_process_end_as_first(void) {
  struct tasks n = wait_for_others();
  int status;

  for (; n.leaving != 0; n = list_tasks()) nap();
  if (first_is_zombie(&status) && WIFEXITED(status) && WEXITSTATUS(status) != 0)
    _exit(WEXITSTATUS(status));
  exit(0);
}

bool ta_process_exiting(void) {
  return exiting;
}

void ta_process_park(struct ta_member *member) {
  ta_process_quiet(member);
  for (;;) pause();
}
