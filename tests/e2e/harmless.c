/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that tracing could end, for tests of the preload library: harmless SCENE. Each exits
 * with 0 and a line, traced or not. For longer than TRACEAGENT_DELAY_MS (50 in these tests) a
 * scene makes calls that are traced. */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MUST(cond)                                                                                 \
  do {                                                                                             \
    if (cond) break;                                                                               \
    fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #cond, strerror(errno));                    \
    exit(1);                                                                                       \
  } while (0)

enum { ROUNDS = 60 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void nap(void) {
  MUST(nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL) == 0);
}

static void nap_often(void) {
  for (int i = 0; i < ROUNDS; i++) nap();
}

static void *run_scene(void *scene) {
  (*(void (*const *)(void))scene)();
  return NULL;
}

static void in_thread(void (*scene)(void)) {
  pthread_t thread;

  MUST(pthread_create(&thread, NULL, run_scene, &scene) == 0 && pthread_join(thread, NULL) == 0);
}

static void lock_often(void) {
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&mutex);
    nap();
    pthread_mutex_unlock(&mutex);
  }
}

/* A sanitizer must see all of these calls, in their order. */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int told;

static void tell_often(void) {
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&mutex);
    told++;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    nap();
  }
}

static void conds(void) {
  void (*scene)(void) = tell_often;
  pthread_t thread;

  MUST(pthread_create(&thread, NULL, run_scene, &scene) == 0);
  pthread_mutex_lock(&mutex);
  while (told < ROUNDS) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    if (told < ROUNDS / 2) MUST(pthread_cond_wait(&cond, &mutex) == 0);
    MUST(told == ROUNDS || pthread_cond_timedwait(&cond, &mutex, &until) == 0);
  }
  pthread_mutex_unlock(&mutex);
  MUST(pthread_join(thread, NULL) == 0);
  lock_often();
}

/* Condition variables of GLIBC_2.2.5: one pointer large. The memory beside it has other data. */
#ifdef __x86_64__

int old_wait(void *cond, pthread_mutex_t *m);
int old_timedwait(void *cond, pthread_mutex_t *m, const struct timespec *until);
int old_signal(void *cond);
int old_broadcast(void *cond);
__asm__(".symver old_wait,pthread_cond_wait@GLIBC_2.2.5\n"
        ".symver old_timedwait,pthread_cond_timedwait@GLIBC_2.2.5\n"
        ".symver old_signal,pthread_cond_signal@GLIBC_2.2.5\n"
        ".symver old_broadcast,pthread_cond_broadcast@GLIBC_2.2.5\n");

static struct {
  unsigned char before[64];
  void *cond;
  unsigned char after[64];
} old;
static int turn;

static void *answer_turns(void *arg) {
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&mutex);
    while (turn != 1) MUST(old_wait(&old.cond, &mutex) == 0);
    turn = 0;
    MUST(old_broadcast(&old.cond) == 0);
    pthread_mutex_unlock(&mutex);
  }
  return arg;
}

static void old_cond(void) {
  pthread_t thread;

  MUST(pthread_create(&thread, NULL, answer_turns, NULL) == 0);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&mutex);
    turn = 1;
    MUST(old_signal(&old.cond) == 0);
    while (turn != 0) {
      struct timespec until;
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_sec += 60;
      MUST(old_timedwait(&old.cond, &mutex, &until) == 0);
    }
    pthread_mutex_unlock(&mutex);
    nap();
  }
  MUST(pthread_join(thread, NULL) == 0);
  for (size_t i = 0; i < sizeof old.before; i++) MUST(old.before[i] == 0 && old.after[i] == 0);
}

#else
static void old_cond(void) {}
#endif

/* No counter. */

static void forbid_counter(void) {
  if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) MUST(errno == EINVAL); /* not on this processor */
}

static void no_counter(void) {
  int status;

  forbid_counter();
  nap_often();
  in_thread(lock_often); /* threads that it creates inherit the prohibition */
  pid_t pid = fork();
  if (pid == 0) {
    nap_often();
    in_thread(lock_often);
    _exit(7);
  }
  MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

static void no_counter_in_thread(void) {
  in_thread(no_counter);
  nap_often();
}

static void counter_again(void) {
  nap_often();
  forbid_counter();
  nap_often();
  if (prctl(PR_SET_TSC, PR_TSC_ENABLE) != 0) MUST(errno == EINVAL);
  nap_often();
}

static void no_counter_then_exec(void) {
  forbid_counter();
  nap_often();
  MUST(execl("/nowhere", "nowhere", (char *)NULL) == -1 && errno == ENOENT);
}

/* Strict mode of seccomp: a call that is not allowed kills the thread. */

static int in[2], out[2];
static bool by_number;

static void jail(void) {
  char byte;

  if (by_number)
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == 0);
  else
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  while (read(in[0], &byte, 1) == 1 && byte != 0)
    if (write(out[1], &byte, 1) != 1) break;
  syscall(SYS_exit, 7);
}

static void talk(void) {
  char byte = 'a';

  for (int i = 0; i < ROUNDS; i++) {
    MUST(write(in[1], &byte, 1) == 1 && read(out[0], &byte, 1) == 1 && byte == 'a');
    nap();
  }
  MUST(write(in[1], "", 1) == 1);
}

static void *jailed(void *arg) {
  jail();
  return arg;
}

static void jailed_thread(void) {
  pthread_t thread;

  MUST(pipe(in) == 0 && pipe(out) == 0);
  MUST(pthread_create(&thread, NULL, jailed, NULL) == 0);
  talk();
  MUST(pthread_join(thread, NULL) == 0);
}

static void jailed_child(void) {
  int status;

  MUST(pipe(in) == 0 && pipe(out) == 0);
  pid_t pid = fork();
  if (pid == 0) jail();
  talk();
  MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void jails(void) {
  for (int i = 0; i < 2; i++) {
    by_number = i == 1;
    jailed_thread();
    jailed_child();
  }
  MUST(prctl(PR_SET_SECCOMP, 99) == -1 && errno == EINVAL);
}

/* Stacks with room for little more than the program's own calls. Whoever writes to the memory below them is killed. */

enum { SMALL_BYTES = 4096, PAGES_BYTES = 1 << 16 };

static void *small_stack(void) {
  char *map =
      mmap(NULL, 2 * PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  MUST(map != MAP_FAILED && mprotect(map, PAGES_BYTES, PROT_NONE) == 0);
  return map + PAGES_BYTES;
}

static ucontext_t outside, inside;

/* Passes time without a call that is recorded, so that the stream begins in the next recorded call. */
static void linger(void) {
  struct timespec began, now;

  clock_gettime(CLOCK_MONOTONIC, &began);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < 60);
}

static void calls(void) {
  char byte;

  free(malloc(100));
  if (read(-1, &byte, 1) != -1) abort();
  pthread_mutex_lock(&mutex);
  nap();
  pthread_mutex_unlock(&mutex);
}

static void begin_and_exec(void) {
  linger();
  for (int i = 0; i < 30; i++) calls();
  if (execl("/dev/null", "nothing", (char *)NULL) != -1) abort();
  calls();
}

static void exit_inside(void) {
  calls();
  linger();
  exit(7);
}

static void enter(void (*scene)(void)) {
  MUST(getcontext(&inside) == 0);
  inside.uc_stack = (stack_t){ .ss_sp = small_stack(), .ss_size = SMALL_BYTES };
  inside.uc_link = &outside;
  makecontext(&inside, scene, 0);
  MUST(swapcontext(&outside, &inside) == 0);
}

static void fork_inside(void) {
  pid_t pid = fork();

  if (pid == 0) exit_inside();
  int status;
  if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7) abort();
}

static void on_signal(int number) {
  int before = errno;

  (void)number;
  calls();
  errno = before;
}

/* The kernel's signal frame must fit on the stack, too. On newer processors it is larger than MINSIGSTKSZ. */
static void handle_on_small_stack(void) {
  long frame = sysconf(_SC_MINSIGSTKSZ);
  struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
  size_t bytes = (size_t)(frame > 2048 ? frame : 2048) + 2048;

  MUST(bytes <= PAGES_BYTES && sigaction(SIGUSR1, &action, NULL) == 0);
  MUST(sigaltstack(&(stack_t){ .ss_sp = small_stack(), .ss_size = bytes }, NULL) == 0);
  for (int i = 0; i < 30; i++) MUST(raise(SIGUSR1) == 0);
}

static void *in_small_thread(void *arg) {
  linger();
  for (int i = 0; i < 30; i++) calls();
  return arg;
}

static void small_stacks(void) {
  pthread_attr_t attr;
  pthread_t thread;

  MUST(pthread_attr_init(&attr) == 0);
  MUST(pthread_attr_setstack(&attr, small_stack(), (size_t)PTHREAD_STACK_MIN) == 0);
  enter(begin_and_exec);
  enter(fork_inside);
  handle_on_small_stack();
  MUST(pthread_create(&thread, &attr, in_small_thread, NULL) == 0 &&
       pthread_join(thread, NULL) == 0);
}

static void begin_in_handler(void) {
  linger();
  handle_on_small_stack();
}

static void begin_in_small_thread(void) {
  pthread_attr_t attr;
  pthread_t thread;

  MUST(pthread_attr_init(&attr) == 0);
  MUST(pthread_attr_setstack(&attr, small_stack(), (size_t)PTHREAD_STACK_MIN) == 0);
  linger();
  MUST(pthread_create(&thread, &attr, in_small_thread, NULL) == 0 &&
       pthread_join(thread, NULL) == 0);
}

/* Handlers must run on the stack of the thread's own frames, not on a stack of the library. The beginning of a session asks for
 * random bytes: a signal that is raised there must stay pending. */

static uintptr_t frames; /* the first thread's frames are below this; 0: not checked */
static volatile sig_atomic_t raised, handled, handled_elsewhere;

static bool is_elsewhere(const void *here) {
  return (uintptr_t)here > frames || frames - (uintptr_t)here > 1 << 20;
}

ssize_t getrandom(void *out, size_t n, unsigned flags) {
  char here = 0;

  if (frames != 0 && gettid() == getpid() && is_elsewhere(&here)) {
    raised++;
    MUST(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1) == 0);
  }
  return syscall(SYS_getrandom, out, n, flags);
}

static void note_where(int unused) {
  char here = (char)unused;

  handled++;
  if (is_elsewhere(&here)) handled_elsewhere++;
}

/* Calls execvp(), which fails. The session ends before the call, because the file is not known; then another session begins. */
static void exec_in_vain(void) {
  char *nothing[] = { "nothing-of-that-name", NULL };

  MUST(execvp(nothing[0], nothing) == -1 && errno == ENOENT);
}

static void handlers_elsewhere(void) {
  char here = 0;

  nap_often();
  MUST(signal(SIGUSR1, note_where) != SIG_ERR);
  frames = (uintptr_t)&here;
  exec_in_vain();
  frames = 0;
  MUST(raised > 0 && handled > 0 && handled_elsewhere == 0);
}

/* Checks that the loader's list is no longer read: another thread may close a library at any time. */
static void no_list(void) {
  void *page =
      mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct link_map *list = _r_debug.r_map;

  MUST(page != MAP_FAILED);
  nap_often();
  _r_debug.r_map = page;
  exec_in_vain();
  pid_t pid = fork();
  nap_often();
  if (pid == 0) _exit(7);
  int status;
  MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  _r_debug.r_map = list;
}

/* The process ends with its last thread, not with its first. */

static void *be_last(void *arg) {
  nap_often();
  printf("unharmed\n");
  return arg;
}

static void first_leaves(void) {
  pthread_t thread;

  nap_often();
  MUST(pthread_create(&thread, NULL, be_last, NULL) == 0);
  pthread_exit(NULL);
}

static void exit_alone(void) {
  nap_often();
  printf("unharmed\n");
  fflush(stdout);
  syscall(SYS_exit, 7);
}

struct scene {
  const char *name;
  void (*run)(void);
};

static const struct scene scenes[] = {
  { "conds", conds },
  { "old-cond", old_cond },
  { "no-counter", no_counter },
  { "no-counter-in-thread", no_counter_in_thread },
  { "counter-again", counter_again },
  { "no-counter-then-exec", no_counter_then_exec },
  { "jails", jails },
  { "small-stacks", small_stacks },
  { "handlers-elsewhere", handlers_elsewhere },
  { "no-list", no_list },
  { "first-leaves", first_leaves },
  { "exit-alone", exit_alone },
  { "begin-in-handler", begin_in_handler },
  { "begin-in-small-thread", begin_in_small_thread },
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++) {
    if (strcmp(argv[1], scenes[i].name) != 0) continue;
    scenes[i].run();
    printf("unharmed\n");
    return 0;
  }
  return 2;
}
