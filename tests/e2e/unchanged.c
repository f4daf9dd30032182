/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of tracing, for tests of the preload library: unchanged SCENE...
 *
 * The waits of a scene are real: the thread that ends a wait checks first that the waiting one
 * sleeps in the kernel. A scene exits with 1 and a line if something differs from a run without
 * the library. A program that ends within TRACEAGENT_DELAY_MS (100 in these tests) leaves no
 * stream: scenes that are to leave one linger. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define MUST(cond)                                                                                 \
  do {                                                                                             \
    if (cond) break;                                                                               \
    fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #cond, strerror(errno));                    \
    exit(1);                                                                                       \
  } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int wire[2], pair[2];
static bool reported;
static pthread_t sleeper;

/* The thread that is about to wait. */
static atomic_int ready;

static bool sleeps_of(int process, int id) {
  char path[64], text[256] = "";

  snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, id);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  const char *state = n > 0 ? strrchr(text, ')') : NULL;
  return state != NULL && state[2] == 'S';
}

static bool sleeps(int id) {
  return sleeps_of(getpid(), id);
}

static long now_us(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Waits until the other thread has slept for more than 20 us: a shorter system call does not count
 * as blocked. */
static void wait_until_it_sleeps(void) {
  while (ready == 0 || !sleeps(ready)) sched_yield();
  for (long end = now_us() + 100; now_us() < end;) sched_yield();
}

/* Each kind of wait, with the function that ends it. */

static void in_mutex(void) {
  MUST(pthread_mutex_lock(&mutex) == 0);
  pthread_mutex_unlock(&mutex);
}
static void take_mutex(void) {
  pthread_mutex_lock(&mutex);
}
static void give_mutex(void) {
  pthread_mutex_unlock(&mutex);
}

static void in_read_lock(void) {
  MUST(pthread_rwlock_rdlock(&rwlock) == 0);
  pthread_rwlock_unlock(&rwlock);
}
static void in_write_lock(void) {
  MUST(pthread_rwlock_wrlock(&rwlock) == 0);
  pthread_rwlock_unlock(&rwlock);
}
static void take_rwlock(void) {
  pthread_rwlock_wrlock(&rwlock);
}
static void take_read_lock(void) {
  pthread_rwlock_rdlock(&rwlock);
}
static void give_rwlock(void) {
  pthread_rwlock_unlock(&rwlock);
}

static void in_sem(void) {
  errno = ENOTTY;
  MUST(sem_wait(&sem) == 0 && errno == ENOTTY);
}
static void post(void) {
  sem_post(&sem);
}

static void in_barrier(void) {
  pthread_barrier_wait(&barrier);
}

static void in_cond(void) {
  pthread_mutex_lock(&mutex);
  reported = false;
  while (!reported) MUST(pthread_cond_wait(&cond, &mutex) == 0);
  pthread_mutex_unlock(&mutex);
}
static void in_timed_cond(void) {
  static pthread_cond_t other = PTHREAD_COND_INITIALIZER;
  struct timespec until = { .tv_sec = 1 };

  pthread_mutex_lock(&mutex);
  reported = false;
  MUST(pthread_cond_timedwait(&other, &mutex, &until) == ETIMEDOUT);
  until.tv_sec = 4000000000;
  ready = gettid();
  while (!reported) MUST(pthread_cond_timedwait(&cond, &mutex, &until) == 0);
  pthread_mutex_unlock(&mutex);
}
static void report(void) {
  pthread_mutex_lock(&mutex);
  reported = true;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
}

static void *read_one(void *arg) {
  char byte;

  MUST(read(wire[0], &byte, 1) == 1);
  return arg;
}
static void in_read(void) {
  read_one(NULL);
}
static void in_join(void) {
  void *out;

  MUST(pthread_create(&sleeper, NULL, read_one, &wire) == 0);
  ready = gettid();
  MUST(pthread_join(sleeper, &out) == 0 && out == &wire);
}
static void write_one(void) {
  MUST(write(wire[1], "x", 1) == 1);
}

static void in_poll(void) {
  struct pollfd fd = { .fd = wire[0], .events = POLLIN };

  MUST(poll(&fd, 1, 0) == 0);
  MUST(poll(&fd, 1, -1) == 1);
  read_one(NULL);
}
static void in_select(void) {
  fd_set set;

  FD_ZERO(&set);
  FD_SET(wire[0], &set);
  MUST(select(wire[0] + 1, &set, NULL, NULL, NULL) == 1);
  read_one(NULL);
}
static void in_epoll(void) {
  struct epoll_event event = { .events = EPOLLIN };
  int fd = epoll_create1(EPOLL_CLOEXEC);

  MUST(epoll_ctl(fd, EPOLL_CTL_ADD, wire[0], &event) == 0);
  MUST(epoll_wait(fd, &event, 1, -1) == 1);
  close(fd);
  read_one(NULL);
}

static void in_recv(void) {
  char byte;

  MUST(recv(pair[0], &byte, 1, 0) == 1);
}
static void send_one(void) {
  MUST(send(pair[1], "x", 1, 0) == 1);
}

/* The same with the functions of C11. */

static mtx_t mtx;
static cnd_t cnd;

static void in_mtx(void) {
  MUST(mtx_lock(&mtx) == thrd_success);
  mtx_unlock(&mtx);
}
static void take_mtx(void) {
  mtx_lock(&mtx);
}
static void give_mtx(void) {
  mtx_unlock(&mtx);
}

static void in_cnd(void) {
  mtx_lock(&mtx);
  reported = false;
  while (!reported) MUST(cnd_wait(&cnd, &mtx) == thrd_success);
  mtx_unlock(&mtx);
}
static void report_cnd(void) {
  mtx_lock(&mtx);
  reported = true;
  cnd_broadcast(&cnd);
  mtx_unlock(&mtx);
}

static int read_seven(void *arg) {
  read_one(arg);
  return 7;
}
static int is_over(void *arg) {
  (void)arg;
  return -8;
}
static void in_thrd_join(void) {
  int left = 0;
  thrd_t thread;

  MUST(thrd_create(&thread, is_over, NULL) == thrd_success);
  MUST(thrd_join(thread, &left) == thrd_success && left == -8);
  MUST(thrd_create(&thread, read_seven, NULL) == thrd_success);
  ready = gettid();
  MUST(thrd_join(thread, &left) == thrd_success && left == 7);
}

static void in_sleep(void) {
  MUST(nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL) == 0);
  MUST(usleep(2000) == 0);
}
static _Atomic uint32_t word;

static void take_futex(void) {
  word = 0;
}
static void in_futex(void) {
  MUST(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL) == -1 && errno == EAGAIN);
  while (word == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL);
}
static void wake_futex(void) {
  word = 1;
  MUST(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1) >= 0);
  MUST(syscall(SYS_gettid) == gettid() && syscall(-1L) == -1 && errno == ENOSYS);
}

static void nothing(void) {}

struct wait {
  const char *name;
  void (*before)(void), (*wait)(void), (*end)(void);
  bool sleeps_before; /* it sleeps before, too, and itself sets `ready` for the last sleep */
};

static const struct wait waits[] = {
  { "mutex", take_mutex, in_mutex, give_mutex },
  { "read-lock", take_rwlock, in_read_lock, give_rwlock },
  { "write-lock", take_rwlock, in_write_lock, give_rwlock },
  { "after-reader", take_read_lock, in_write_lock, give_rwlock },
  { "sem", nothing, in_sem, post },
  { "barrier", nothing, in_barrier, in_barrier },
  { "cond", nothing, in_cond, report },
  { "timed-cond", nothing, in_timed_cond, report, true },
  { "join", nothing, in_join, write_one, true },
  { "mtx", take_mtx, in_mtx, give_mtx },
  { "cnd", nothing, in_cnd, report_cnd },
  { "futex", take_futex, in_futex, wake_futex },
  { "thrd", nothing, in_thrd_join, write_one, true },
  { "read", nothing, in_read, write_one },
  { "poll", nothing, in_poll, write_one },
  { "select", nothing, in_select, write_one },
  { "epoll", nothing, in_epoll, write_one },
  { "recv", nothing, in_recv, send_one },
};

void *wait_thread(void *arg); /* not static, so that its name is visible */

void *wait_thread(void *arg) {
  const struct wait *wait = arg;

  MUST(pthread_setname_np(pthread_self(), wait->name) == 0);
  if (!wait->sleeps_before) ready = gettid();
  wait->wait();
  return NULL;
}

static void all_waits(void) {
  pthread_t thread;

  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
    waits[i].before();
    ready = 0;
    MUST(pthread_create(&thread, NULL, wait_thread, (void *)&waits[i]) == 0);
    wait_until_it_sleeps();
    waits[i].end();
    MUST(pthread_join(thread, NULL) == 0);
  }
  in_sleep();
}

/* Asks for a stack that is larger than any memory. */
static void no_thread(void) {
  pthread_attr_t attr;
  pthread_t thread;

  MUST(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, (size_t)1 << 47) == 0);
  MUST(pthread_create(&thread, &attr, wait_thread, NULL) == EAGAIN);
  pthread_attr_destroy(&attr);
}

/* A thread that is cancelled while it waits, and runs a clean-up handler. */

static void unlock(void *arg) {
  pthread_mutex_unlock(arg);
}

static void *cancelled_thread(void *arg) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, &mutex);
  ready = gettid();
  for (;;) pthread_cond_wait(&cond, &mutex);
  pthread_cleanup_pop(1);
  return arg;
}

static void *cancelled_reader(void *arg) {
  ready = gettid();
  return read_one(arg);
}

static void cancel(void *(*start)(void *)) {
  pthread_t thread;
  void *out;

  ready = 0;
  MUST(pthread_create(&thread, NULL, start, NULL) == 0);
  wait_until_it_sleeps();
  MUST(pthread_cancel(thread) == 0);
  MUST(pthread_join(thread, &out) == 0 && out == PTHREAD_CANCELED);
  in_mutex();
}

/* A handler that interrupts a read() and calls traced functions itself; then a handler that leaves the read() by a jump. */

static sigjmp_buf out_of_read;
static atomic_int signals;
static pthread_t main_thread;

static void on_signal(int sig) {
  char byte = 's';
  int before = errno;

  MUST(write(wire[1], &byte, 1) == 1);
  MUST(read(wire[0], &byte, 1) == 1);
  errno = before;
  signals++;
  if (sig == SIGUSR2) siglongjmp(out_of_read, 1);
}

static void *send_signals(void *arg) {
  const int *sig = arg;

  wait_until_it_sleeps();
  pthread_kill(main_thread, *sig);
  return NULL;
}

static void interrupt_read(int sig) {
  pthread_t thread;
  char byte;
  volatile bool jumped = false;

  ready = 0;
  MUST(pthread_create(&thread, NULL, send_signals, &sig) == 0);
  if (sigsetjmp(out_of_read, 1) == 0) {
    ready = gettid();
    MUST(recv(pair[0], &byte, 1, 0) == -1 && errno == EINTR);
  } else {
    jumped = true;
  }
  MUST(pthread_join(thread, NULL) == 0);
  MUST(jumped == (sig == SIGUSR2));
}

static void handlers(void) {
  struct sigaction action = { .sa_handler = on_signal };

  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  main_thread = pthread_self();
  interrupt_read(SIGUSR1);
  interrupt_read(SIGUSR2);
  interrupt_read(SIGUSR2);
  MUST(signals == 3);
}

/* Lives longer than TRACEAGENT_DELAY_MS, without a call that is traced. */
static void linger(void) {
  enum { LINGER_MS = 120 };
  struct timespec began, now;

  clock_gettime(CLOCK_MONOTONIC, &began);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < LINGER_MS);
}

/* Asserts that no thread of the agent runs beside a program that has only begun: the program may still unshare its
 * namespaces. */
static void alone(void) {
  char line[512];
  int tasks = 0;
  DIR *dir = opendir("/proc/self/task");

  MUST(dir != NULL);
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
    tasks += entry->d_name[0] != '.';
  closedir(dir);
  MUST(tasks == 1);
  FILE *maps = fopen("/proc/self/maps", "r");
  MUST(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) MUST(strstr(line, "libssl") == NULL);
  fclose(maps);
}

/* A server whose first call waits for a client. */
static void serve(void) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t len = sizeof at;
  int door = socket(AF_INET, SOCK_STREAM, 0);

  MUST(bind(door, (const struct sockaddr *)&at, len) == 0 && listen(door, 1) == 0);
  MUST(getsockname(door, (struct sockaddr *)&at, &len) == 0);
  printf("%d\n", ntohs(at.sin_port));
  fflush(stdout);
  int client = accept(door, NULL, NULL);
  MUST(client >= 0 && close(client) == 0 && close(door) == 0);
}

/* As servers do that are started by root. */
static void give_up_rights(void) {
  MUST(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
}

/* A child for which fork()'s handlers did not run. It still runs the exit handlers that the parent registered. */
static void unseen_child(void) {
  int status;
  pid_t pid = _Fork();

  if (pid == 0) exit(7);
  MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

/* Processes. */

static void children(const char *self) {
  int status;
  pid_t pid = fork();

  if (pid == 0) {
    all_waits();
    linger();
    exit(7);
  }
  MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
  pid = vfork();
  if (pid == 0) {
    execl(self, "grandchild", "sleep", "linger", (char *)NULL);
    _exit(9);
  }
  MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 0);
}

/* Allocates 64 MiB, by each function that can do it, and frees them. */
static void use_heap(void) {
  enum { BLOCKS = 64, BLOCK_BYTES = 1 << 20 };
  void *block[BLOCKS];

  for (int i = 0; i < BLOCKS; i++) {
    if (i % 4 == 0) block[i] = malloc(BLOCK_BYTES);
    if (i % 4 == 1) block[i] = calloc(BLOCK_BYTES / 16, 16);
    if (i % 4 == 2) block[i] = realloc(malloc(100), BLOCK_BYTES);
    if (i % 4 == 3) MUST(posix_memalign(&block[i], 4096, BLOCK_BYTES) == 0);
    MUST(block[i] != NULL);
    memset(block[i], i, BLOCK_BYTES);
  }
  for (int i = 0; i < BLOCKS; i++) {
    MUST(((unsigned char *)block[i])[BLOCK_BYTES - 1] == i);
    free(block[i]);
  }
  MUST(reallocarray(NULL, SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
}

/* Closes all descriptors, as a careful daemon does at its start; its next descriptor is the lowest
 * free number. */
static void close_everything(void) {
  closefrom(3);
  for (int fd = 3; fd < 1024; fd++) MUST(close(fd) == -1 && errno == EBADF);
  MUST(open("/dev/null", O_RDONLY) == 3);
  close(3);
  errno = ENOTTY;
  MUST(read(3, &(char){ 0 }, 1) == -1 && errno == EBADF);
}

static void set_up(void) {
  MUST(pipe(wire) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  MUST(sem_init(&sem, 0, 0) == 0 && pthread_barrier_init(&barrier, NULL, 2) == 0);
  MUST(mtx_init(&mtx, mtx_plain) == thrd_success && cnd_init(&cnd) == thrd_success);
}

/* A forked process, or another thread, ends each of these waits once the waiting thread sleeps in the kernel. */

static void after_it_sleeps(void (*end)(void *arg), void *arg) {
  ready = gettid();
  pid_t pid = fork();

  MUST(pid >= 0);
  if (pid != 0) return;
  while (!sleeps_of(getppid(), ready)) sched_yield();
  end(arg);
  _exit(0);
}

static void reap(void) {
  MUST(wait(NULL) > 0);
}

static void write_line(void *arg) {
  MUST(write(*(int *)arg, "a line\n", 7) == 7);
}

enum { MUCH = 1 << 17 }; /* more than fits into a pipe */

static void read_all(void *arg) {
  static char bytes[1 << 16];

  for (ssize_t n, left = MUCH; left > 0; left -= n)
    MUST((n = read(*(int *)arg, bytes, sizeof bytes)) > 0);
}

static void use_streams(void) {
  char line[16], *grown = NULL, byte;
  size_t room = 0;
  int ends[2];
  FILE *f;

  MUST(pipe(ends) == 0 && (f = fdopen(ends[0], "r")) != NULL);
  after_it_sleeps(write_line, &ends[1]);
  MUST(fgets(line, sizeof line, f) == line && strcmp(line, "a line\n") == 0);
  reap();
  after_it_sleeps(write_line, &ends[1]);
  MUST(getline(&grown, &room, f) == 7);
  reap();
  after_it_sleeps(write_line, &ends[1]);
  MUST(fread(line, 1, 7, f) == 7);
  reap();
  free(grown);
  fclose(f);
  close(ends[1]);
  MUST(pipe(ends) == 0 && (f = fdopen(ends[1], "w")) != NULL);
  static const char much[MUCH];
  after_it_sleeps(read_all, &ends[0]);
  MUST(fwrite(much, 1, sizeof much, f) == sizeof much && fflush(f) == 0);
  reap();
  fclose(f);
  close(ends[0]);
  MUST((f = fopen("/dev/null", "r+")) != NULL);
  for (int i = 0; i < 1000; i++) MUST(fputs("short", f) >= 0); /* most of them stay in the buffer */
  MUST(fflush(f) == 0 && fread(&byte, 1, 1, f) == 0 && fclose(f) == 0);
}

/* The child takes the lock before the parent asks for it. */
static void with_locked_file(bool of_fcntl, int fd) {
  struct flock lock = { .l_type = F_WRLCK };
  int go[2];
  char byte;

  MUST(pipe(go) == 0);
  ready = gettid();
  pid_t pid = fork();
  MUST(pid >= 0);
  if (pid == 0) {
    MUST(fcntl(fd, F_SETLK, &lock) == 0 && write(go[1], "x", 1) == 1);
    while (!sleeps_of(getppid(), ready)) sched_yield();
    _exit(0); /* this releases its locks */
  }
  MUST(read(go[0], &byte, 1) == 1);
  errno = ENOTTY;
  MUST((of_fcntl ? fcntl(fd, F_SETLKW, &lock) : lockf(fd, F_LOCK, 0)) == 0 && errno == ENOTTY);
  reap();
  lock.l_type = F_UNLCK;
  MUST(fcntl(fd, F_SETLK, &lock) == 0 && close(go[0]) == 0 && close(go[1]) == 0);
}

static void lock_files(void) {
  char path[] = "/tmp/unchanged-XXXXXX";
  int fd = mkstemp(path), copy;

  MUST(fd >= 0 && unlink(path) == 0);
  MUST((copy = fcntl(fd, F_DUPFD_CLOEXEC, 50)) >= 50 && fcntl(copy, F_GETFD) == FD_CLOEXEC);
  with_locked_file(true, fd);
  with_locked_file(false, fd);
  close(fd);
  close(copy);
}

static void send_message(void *arg) {
  struct {
    long type;
    char text[4];
  } message = { 1, "abc" };

  MUST(msgsnd(*(int *)arg, &message, 4, 0) == 0);
}

static void raise_semaphore(void *arg) {
  MUST(semop(*(int *)arg, &(struct sembuf){ .sem_op = 1 }, 1) == 0);
}

static void use_queues(void) {
  struct {
    long type;
    char text[4];
  } message;
  int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 1, 0600);

  MUST(queue >= 0 && set >= 0);
  after_it_sleeps(send_message, &queue);
  MUST(msgrcv(queue, &message, 4, 0, 0) == 4 && strcmp(message.text, "abc") == 0);
  reap();
  after_it_sleeps(raise_semaphore, &set);
  MUST(semop(set, &(struct sembuf){ .sem_op = -1 }, 1) == 0);
  reap();
  MUST(msgctl(queue, IPC_RMID, NULL) == 0 && semctl(set, 0, IPC_RMID) == 0);
}

/* The signal that is used for samples: the program's handlers must get the signals that are sent to the program, and no others. */

static atomic_int urgent;
static sigset_t urgent_mask;

static void on_urgent(int number) {
  MUST(number == SIGURG);
  pthread_sigmask(SIG_BLOCK, NULL, &urgent_mask);
  urgent++;
}
static void on_urgent_info(int number, siginfo_t *info, void *context) {
  MUST(info->si_code == SI_TKILL && info->si_pid == getpid() && context != NULL);
  on_urgent(number);
}

static void burn(void) {
  struct timespec began, now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (now.tv_sec * 1000 + now.tv_nsec / 1000000 <
         began.tv_sec * 1000 + began.tv_nsec / 1000000 + 30);
}

static void expect_urgent(int calls) {
  urgent = 0;
  burn();
  MUST(urgent == 0);
  MUST(raise(SIGURG) == 0 && urgent == calls);
}

static void in_interrupted_read(void) {
  char byte;

  MUST(read(wire[0], &byte, 1) == -1 && errno == EINTR);
}
static void *interrupt_reader(void *arg) {
  wait_until_it_sleeps();
  pthread_kill(*(pthread_t *)arg, SIGURG);
  return NULL;
}

static void use_urgent(void) {
  struct sigaction act = { .sa_handler = on_urgent, .sa_flags = SA_RESTART }, old;
  pthread_t self = pthread_self(), other;

  sigaddset(&act.sa_mask, SIGUSR2);
  MUST(sigaction(SIGURG, &act, &old) == 0 && old.sa_handler == SIG_DFL);
  expect_urgent(1);
  MUST(sigismember(&urgent_mask, SIGUSR2) == 1 && sigismember(&urgent_mask, SIGURG) == 1);
  MUST(sigismember(&urgent_mask, SIGUSR1) == 0);
  MUST(sigaction(SIGURG, NULL, &old) == 0 && old.sa_handler == on_urgent);
  MUST(sigismember(&old.sa_mask, SIGUSR2) == 1 && (old.sa_flags & SA_RESTART) != 0);
  act = (struct sigaction){ .sa_sigaction = on_urgent_info, .sa_flags = (int)SA_SIGINFO };
  MUST(sigaction(SIGURG, &act, &act) == 0 && act.sa_handler == on_urgent);
  expect_urgent(1);
  ready = gettid(); /* without SA_RESTART the signal interrupts a call */
  MUST(pthread_create(&other, NULL, interrupt_reader, &self) == 0);
  in_interrupted_read();
  MUST(pthread_join(other, NULL) == 0);
  MUST(signal(SIGURG, SIG_IGN) == (sighandler_t)on_urgent_info);
  expect_urgent(0);
  MUST(signal(SIGURG, on_urgent) == SIG_IGN);
  expect_urgent(1);
  act = (struct sigaction){ .sa_handler = on_urgent, .sa_flags = (int)SA_RESETHAND | SA_NODEFER };
  MUST(sigaction(SIGURG, &act, NULL) == 0);
  expect_urgent(1);
  MUST(sigismember(&urgent_mask, SIGURG) == 0);
  expect_urgent(0);
  MUST(sigaction(SIGURG, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
  MUST(signal(SIGUSR1, SIG_IGN) == SIG_DFL && raise(SIGUSR1) == 0 &&
       signal(SIGUSR1, SIG_DFL) == SIG_IGN);
}

/* A program that reads the signal from a descriptor gets only its own signals. */
static void read_urgent(void) {
  struct signalfd_siginfo info;
  sigset_t only;

  burn();
  sigemptyset(&only);
  sigaddset(&only, SIGURG);
  int fd = signalfd(-1, &only, SFD_NONBLOCK);
  MUST(fd >= 0 && pthread_sigmask(SIG_BLOCK, &only, NULL) == 0);
  burn();
  MUST(read(fd, &info, sizeof info) == -1 && errno == EAGAIN);
  MUST(raise(SIGURG) == 0 && read(fd, &info, sizeof info) == sizeof info);
  close(fd);
}

/* Executes itself again, after attempts that fail, and one of a child. */
static void run_another(const char *self) {
  char script[] = "/tmp/unchanged-XXXXXX";
  int fd = mkstemp(script), status;
  static const char text[] = "#!/none/such\n";

  MUST(fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1);
  errno = 0;
  MUST(execl("/none/such", "such", NULL) == -1 && errno == ENOENT);
  MUST(execl(script, "script", NULL) == -1 && errno == EACCES); /* it is not executable */
  pid_t pid = vfork();
  if (pid == 0) {
    execl("/bin/true", "true", NULL);
    _exit(1);
  }
  MUST(waitpid(pid, &status, 0) == pid && status == 0);
  in_sleep(); /* the session has not changed */
  MUST(fchmod(fd, 0700) == 0 && close(fd) == 0);
  MUST(execl(script, "script", NULL) == -1 && errno == ENOENT);
  unlink(script);
  in_sleep();
  execle(self, "another", "sleep", NULL, environ);
  MUST(false);
}

/* Returns true if a thread of the agent has begun its work: it has a name then. */
static bool agent_is_at_work(void) {
  DIR *tasks = opendir("/proc/self/task");
  char path[64], name[16];
  bool found = false;

  MUST(tasks != NULL);
  for (struct dirent *task; !found && (task = readdir(tasks)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task->d_name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, name, sizeof name) : -1;
    found = n >= 10 && memcmp(name, "traceagent", 10) == 0;
    if (fd >= 0) close(fd);
  }
  closedir(tasks);
  return found;
}

/* Asserts that the program's descriptors stay open, whatever the agent's threads do with their
 * own. */
static void keep_descriptors(void) {
  enum { KEPT = 40 };
  int kept[KEPT], n = 0;
  struct stat before[KEPT], now;

  while (n < KEPT) MUST(pipe(&kept[n]) == 0 && (n += 2) > 0);
  for (int i = 0; i < n; i++) MUST(fstat(kept[i], &before[i]) == 0);
  while (!agent_is_at_work()) sched_yield();
  for (int i = 0; i < n; i++)
    MUST(fstat(kept[i], &now) == 0 && now.st_ino == before[i].st_ino && close(kept[i]) == 0);
}

/* fork() copies the table of descriptors up to its highest number. */
static void no_high_number(void) {
  while (!agent_is_at_work()) sched_yield();
  for (int fd = 1024; fd < 65536; fd++) MUST(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "close") == 0) close_everything();
  set_up();
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "waits") == 0) all_waits();
    if (strcmp(argv[i], "no-thread") == 0) no_thread();
    if (strcmp(argv[i], "cancel") == 0) cancel(cancelled_thread), cancel(cancelled_reader);
    if (strcmp(argv[i], "signals") == 0) handlers();
    if (strcmp(argv[i], "children") == 0) children(argv[0]);
    if (strcmp(argv[i], "heap") == 0) use_heap();
    if (strcmp(argv[i], "sleep") == 0) in_sleep();
    if (strcmp(argv[i], "descriptors") == 0) keep_descriptors();
    if (strcmp(argv[i], "exec") == 0) run_another(argv[0]);
    if (strcmp(argv[i], "urgent") == 0) use_urgent(), read_urgent();
    if (strcmp(argv[i], "streams") == 0) use_streams();
    if (strcmp(argv[i], "file-locks") == 0) lock_files();
    if (strcmp(argv[i], "queues") == 0) use_queues();
    if (strcmp(argv[i], "no-high-number") == 0) no_high_number();
    if (strcmp(argv[i], "linger") == 0) linger();
    if (strcmp(argv[i], "give-up-rights") == 0) give_up_rights();
    if (strcmp(argv[i], "alone") == 0) alone();
    if (strcmp(argv[i], "serve") == 0) serve();
    if (strcmp(argv[i], "unseen-child") == 0) unseen_child();
    if (strcmp(argv[i], "daemon") == 0) MUST(daemon(1, 1) == 0);
  }
  puts("as ever");
  return 0;
}
