/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a daemon under test: the n-th allocation, or the n-th call of the system, fails, once or from then on.
 *
 * TT_SCARCE names a file of five little-endian numbers of 64 bits, mapped by the shim and by the test that has it:
 *
 *     0  what is counted: enum kind; 0: nothing is counted, nothing fails
 *     8  the number that fails, from 1
 *    16  not 0: all later ones fail, too
 *    24  how many were counted
 *    32  how many of them have failed
 *
 * Allocations are of two kinds, by the caller of malloc(): the program and the C library, or other libraries. Calls fail in
 * realistic ways: a disk is full, a connection is reset, descriptors run out. Event descriptors and pipes never fail, because a
 * process cannot lose those.
 *
 * Where something failed, and where the process was when a signal ended it, goes to stderr as a backtrace. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OWN = 1, LIBRARIES = 2, CALLS_FAIL = 3, CALLS_INTERRUPTED = 4, CALLS_SHORT = 5 };

struct orders {
  _Atomic int64_t kind, fail_at, for_ever, count, failed;
};

static struct orders none;
static struct orders *orders = &none;
static struct range { uintptr_t from, to; } program, c_library;
static __thread int inside
    __attribute__((tls_model("initial-exec"))); /* the shim's own doing does not count */

/* The malloc() that is used without this shim: the sanitizer's, else the C library's. */
#define REAL(type, name, args)                                                                     \
  type __interceptor_##name args __attribute__((weak));                                            \
  type __libc_##name args
REAL(void *, malloc, (size_t));
REAL(void *, calloc, (size_t, size_t));
REAL(void *, realloc, (void *, size_t));

/* --- setting up -------------------------------------------------------------------------------- */

static int note_range(struct dl_phdr_info *info, size_t size, void *self) {
  struct range range = { UINTPTR_MAX, 0 };
  int *n = self;

  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD) continue;
    uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
    if (from < range.from) range.from = from;
    if (to > range.to) range.to = to;
  }
  if ((*n)++ == 0) program = range;
  uintptr_t libc = (uintptr_t)__libc_malloc;
  if (libc >= range.from && libc < range.to) c_library = range;
  return 0;
}

static void say(const char *text) {
  (void)!syscall(SYS_write, STDERR_FILENO, text, strlen(text));
}

static void say_where(const char *what) {
  void *frames[40];
  int n = backtrace(frames, (int)(sizeof frames / sizeof frames[0]));

  say(what);
  backtrace_symbols_fd(frames, n, STDERR_FILENO);
}

/* Several threads may abort at the same time: the first one prints its backtrace, and only then the process ends. */
static void on_end(int number) {
  static atomic_flag is_said = ATOMIC_FLAG_INIT;

  while (atomic_flag_test_and_set(&is_said)) pause();
  orders = &none;
  say_where(number == SIGABRT ? "scarce: SIGABRT\n" : "scarce: a signal that ends the process\n");
  signal(number, SIG_DFL);
  raise(number);
}

__attribute__((constructor)) static void look_up(void) {
  struct sigaction end = { .sa_handler = on_end, .sa_flags = SA_NODEFER };
  const char *path = getenv("TT_SCARCE");
  void *frame;
  int n = 0;
  long fd = path == NULL ? -1 : syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);

  if (fd < 0) return;
  inside++;
  dl_iterate_phdr(note_range, &n);
  backtrace(&frame, 1); /* loads what it needs now: there is no memory later */
  sigaction(SIGABRT, &end, NULL);
  if (__interceptor_malloc == NULL) {
    sigaction(SIGSEGV, &end, NULL);
    sigaction(SIGBUS, &end, NULL);
  }
  void *map = mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
  syscall(SYS_close, fd);
  if (map != MAP_FAILED) orders = map;
  inside--;
}

/* --- who fails --------------------------------------------------------------------------------- */

static bool is_within(const struct range *range, const void *caller) {
  return (uintptr_t)caller >= range->from && (uintptr_t)caller < range->to;
}

static bool is_own(const void *caller) {
  return is_within(&program, caller) || is_within(&c_library, caller);
}

static bool its_turn(const char *what) {
  int64_t n, at = atomic_load(&orders->fail_at);

  n = atomic_fetch_add(&orders->count, 1) + 1;
  if (at == 0 || n < at || (n > at && atomic_load(&orders->for_ever) == 0)) return false;
  if (atomic_fetch_add(&orders->failed, 1) == 0) {
    int error = errno;
    inside++;
    say("scarce: fails: ");
    say_where(what);
    inside--;
    errno = error;
  }
  return true;
}

static bool no_memory(const void *caller, const char *what) {
  int64_t kind = atomic_load(&orders->kind);

  /* With a sanitizer, allocations of the C library always succeed: the sanitizer's runtime relies on them. */
  if (__interceptor_malloc != NULL && is_within(&c_library, caller)) return false;
  if (inside != 0 || (kind != OWN && kind != LIBRARIES) || (kind == OWN) != is_own(caller))
    return false;
  if (!its_turn(what)) return false;
  errno = ENOMEM;
  return true;
}

/* A call that may fail, and be interrupted unless it cannot block. */
static bool call_fails(int error, bool interruptible, const char *what) {
  int64_t kind = atomic_load(&orders->kind);

  if (inside != 0 || (kind != CALLS_FAIL && (kind != CALLS_INTERRUPTED || !interruptible)))
    return false;
  if (!its_turn(what)) return false;
  errno = kind == CALLS_FAIL ? error : EINTR;
  return true;
}

static mode_t type_of(int fd) {
  struct stat st;

  return syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) != 0 ? 0 : st.st_mode & S_IFMT;
}

/* Decides on a transfer of bytes. Reduces *n if the transfer is to be short. */
static bool transfer_fails(int fd, int file_error, size_t *n, const char *what) {
  int64_t kind = atomic_load(&orders->kind);
  mode_t type;

  if (inside != 0 || kind < CALLS_FAIL || fd == STDERR_FILENO) return false;
  type = type_of(fd);
  if (type != S_IFREG && type != S_IFSOCK) return false;
  if (kind != CALLS_SHORT) return call_fails(type == S_IFREG ? file_error : ECONNRESET, true, what);
  if (*n > 1 && its_turn(what)) *n /= 2;
  return false;
}

static bool vector_fails(int fd, int file_error, const struct iovec **iov, size_t *n,
                         struct iovec *room, const char *what) {
  size_t bytes;

  if (*n == 0) return false;
  bytes = (*iov)->iov_len;
  if (transfer_fails(fd, file_error, &bytes, what)) return true;
  if (bytes == (*iov)->iov_len) return false;
  *room = (struct iovec){ (*iov)->iov_base, bytes };
  *iov = room;
  *n = 1;
  return false;
}

/* --- memory ------------------------------------------------------------------------------------ */

#define CALLER __builtin_return_address(0)

void *malloc(size_t n) {
  if (no_memory(CALLER, "malloc\n")) return NULL;
  return __interceptor_malloc != NULL ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *calloc(size_t n, size_t each) {
  if (no_memory(CALLER, "calloc\n")) return NULL;
  return __interceptor_calloc != NULL ? __interceptor_calloc(n, each) : __libc_calloc(n, each);
}

void *realloc(void *block, size_t n) {
  if (n != 0 && no_memory(CALLER, "realloc\n")) return NULL;
  return __interceptor_realloc != NULL ? __interceptor_realloc(block, n) : __libc_realloc(block, n);
}

/* Returns the function of this name in the next library. */
static void *next(const char *name) {
  inside++;
  void *found = dlsym(RTLD_NEXT, name);
  inside--;
  return found;
}

void *aligned_alloc(size_t alignment, size_t n) {
  if (no_memory(CALLER, "aligned_alloc\n")) return NULL;
  return ((void *(*)(size_t, size_t))next("aligned_alloc"))(alignment, n);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                   void *self) {
  if (no_memory(CALLER, "pthread_create\n")) return EAGAIN;
  return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))next(
      "pthread_create"))(thread, attr, body, self);
}

/* --- calls ------------------------------------------------------------------------------------- */

#define TRANSFER(name, error, args, ...)                                                           \
  ssize_t name args {                                                                              \
    if (transfer_fails(fd, error, &n, #name "\n")) return -1;                                      \
    return syscall(__VA_ARGS__);                                                                   \
  }
TRANSFER(read, EIO, (int fd, void *at, size_t n), SYS_read, fd, at, n)
TRANSFER(write, ENOSPC, (int fd, const void *at, size_t n), SYS_write, fd, at, n)
TRANSFER(pread, EIO, (int fd, void *at, size_t n, off_t from), SYS_pread64, fd, at, n, from)
TRANSFER(pread64, EIO, (int fd, void *at, size_t n, off_t from), SYS_pread64, fd, at, n, from)
TRANSFER(pwrite, ENOSPC, (int fd, const void *at, size_t n, off_t from), SYS_pwrite64, fd, at, n,
         from)
TRANSFER(pwrite64, ENOSPC, (int fd, const void *at, size_t n, off_t from), SYS_pwrite64, fd, at, n,
         from)
TRANSFER(recv, EIO, (int fd, void *at, size_t n, int how), SYS_recvfrom, fd, at, n, how, NULL, NULL)
TRANSFER(send, EIO, (int fd, const void *at, size_t n, int how), SYS_sendto, fd, at, n, how, NULL,
         0)
#undef TRANSFER

#define VECTOR(name, error, number)                                                                \
  ssize_t name(int fd, const struct iovec *iov, int count) {                                       \
    struct iovec room;                                                                             \
    size_t n = (size_t)count;                                                                      \
    if (vector_fails(fd, error, &iov, &n, &room, #name "\n")) return -1;                           \
    return syscall(number, fd, iov, n);                                                            \
  }
VECTOR(readv, EIO, SYS_readv)
VECTOR(writev, ENOSPC, SYS_writev)
#undef VECTOR

ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t from) {
  struct iovec room;
  size_t n = (size_t)count;

  if (vector_fails(fd, ENOSPC, &iov, &n, &room, "pwritev\n")) return -1;
  return syscall(SYS_pwritev, fd, iov, n, from, 0L);
}

#define MESSAGE(name, type, number)                                                                \
  ssize_t name(int fd, type *message, int flags) {                                                 \
    struct msghdr mine = *message;                                                                 \
    const struct iovec *iov = mine.msg_iov;                                                        \
    struct iovec room;                                                                             \
    size_t n = mine.msg_iovlen;                                                                    \
    if (vector_fails(fd, EIO, &iov, &n, &room, #name "\n")) return -1;                             \
    if (iov == mine.msg_iov) return syscall(number, fd, message, flags);                           \
    mine.msg_iov = &room;                                                                          \
    mine.msg_iovlen = n;                                                                           \
    return syscall(number, fd, &mine, flags);                                                      \
  }
MESSAGE(sendmsg, const struct msghdr, SYS_sendmsg)
MESSAGE(recvmsg, struct msghdr, SYS_recvmsg)
#undef MESSAGE

/* A system call, which fails when it is to fail. */
#define CALL(name, error, interruptible, args, ...)                                                \
  int name args {                                                                                  \
    if (call_fails(error, interruptible, #name "\n")) return -1;                                   \
    return (int)syscall(__VA_ARGS__);                                                              \
  }
CALL(fsync, EIO, true, (int fd), SYS_fsync, fd)
CALL(fdatasync, EIO, true, (int fd), SYS_fdatasync, fd)
CALL(ftruncate, EIO, true, (int fd, off_t n), SYS_ftruncate, fd, n)
CALL(ftruncate64, EIO, true, (int fd, off_t n), SYS_ftruncate, fd, n)
CALL(fallocate, ENOSPC, true, (int fd, int mode, off_t at, off_t n), SYS_fallocate, fd, mode, at, n)
CALL(rename, EIO, false, (const char *from, const char *to), SYS_rename, from, to)
CALL(renameat, EIO, false, (int a, const char *from, int b, const char *to), SYS_renameat2, a, from,
     b, to, 0)
CALL(renameat2, EIO, false, (int a, const char *from, int b, const char *to, unsigned how),
     SYS_renameat2, a, from, b, to, how)
CALL(unlink, EIO, false, (const char *path), SYS_unlink, path)
CALL(unlinkat, EIO, false, (int fd, const char *path, int how), SYS_unlinkat, fd, path, how)
CALL(mkdir, ENOSPC, false, (const char *path, mode_t mode), SYS_mkdir, path, mode)
CALL(mkdirat, ENOSPC, false, (int fd, const char *path, mode_t mode), SYS_mkdirat, fd, path, mode)
CALL(flock, ENOLCK, true, (int fd, int how), SYS_flock, fd, how)
CALL(socket, EMFILE, false, (int family, int type, int protocol), SYS_socket, family, type,
     protocol)
CALL(bind, EADDRINUSE, false, (int fd, const struct sockaddr *at, socklen_t n), SYS_bind, fd, at, n)
CALL(listen, EADDRINUSE, false, (int fd, int backlog), SYS_listen, fd, backlog)
CALL(accept, EMFILE, true, (int fd, struct sockaddr *from, socklen_t *n), SYS_accept, fd, from, n)
CALL(accept4, EMFILE, true, (int fd, struct sockaddr *from, socklen_t *n, int how), SYS_accept4, fd,
     from, n, how)
CALL(epoll_create1, EMFILE, false, (int how), SYS_epoll_create1, how)
CALL(epoll_ctl, ENOSPC, false, (int fd, int what, int of, struct epoll_event *event), SYS_epoll_ctl,
     fd, what, of, event)
CALL(eventfd, EMFILE, false, (unsigned start, int how), SYS_eventfd2, start, how)
CALL(pipe2, EMFILE, false, (int both[2], int how), SYS_pipe2, both, how)
CALL(fstat, EIO, false, (int fd, struct stat *out), SYS_newfstatat, fd, "", out, AT_EMPTY_PATH)
CALL(fstatat, EIO, false, (int fd, const char *path, struct stat *out, int how), SYS_newfstatat, fd,
     path, out, how)
CALL(fstat64, EIO, false, (int fd, struct stat64 *out), SYS_newfstatat, fd, "", out, AT_EMPTY_PATH)
CALL(stat64, EIO, false, (const char *path, struct stat64 *out), SYS_newfstatat, AT_FDCWD, path,
     out, 0)
CALL(lstat64, EIO, false, (const char *path, struct stat64 *out), SYS_newfstatat, AT_FDCWD, path,
     out, AT_SYMLINK_NOFOLLOW)
#undef CALL

/* The caller passes a mode only if the call may create a file. */
static int open_file(int folder, const char *path, int how, va_list more, const char *what) {
  unsigned mode = (how & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, unsigned) : 0;

  return call_fails(EMFILE, true, what) ? -1 : (int)syscall(SYS_openat, folder, path, how, mode);
}

#define OPEN(name, folder, ...)                                                                    \
  int name(__VA_ARGS__ const char *path, int how, ...) {                                           \
    va_list more;                                                                                  \
    va_start(more, how);                                                                           \
    int fd = open_file(folder, path, how, more, #name "\n");                                       \
    va_end(more);                                                                                  \
    return fd;                                                                                     \
  }
OPEN(open, AT_FDCWD)
OPEN(open64, AT_FDCWD)
OPEN(openat, at, int at, )
OPEN(openat64, at, int at, )
#undef OPEN

/* Functions that call the C library's own after a chance to fail. */
#define FORWARD(type, name, error, broken, args, types, pass)                                      \
  type name args {                                                                                 \
    if (call_fails(error, false, #name "\n")) return broken;                                       \
    return ((type(*) types)next(#name))pass;                                                       \
  }
FORWARD(FILE *, fopen, EMFILE, NULL, (const char *path, const char *how),
        (const char *, const char *), (path, how))
FORWARD(FILE *, fopen64, EMFILE, NULL, (const char *path, const char *how),
        (const char *, const char *), (path, how))
FORWARD(DIR *, opendir, EMFILE, NULL, (const char *path), (const char *), (path))
FORWARD(DIR *, fdopendir, ENOMEM, NULL, (int fd), (int), (fd))
FORWARD(void *, mmap, ENOMEM, MAP_FAILED,
        (void *at, size_t n, int how, int flags, int fd, off_t from),
        (void *, size_t, int, int, int, off_t), (at, n, how, flags, fd, from))
#undef FORWARD
