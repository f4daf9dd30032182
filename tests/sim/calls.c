/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces all functions of the C library that the store calls, to ask the world instead of the kernel. Calls outside a
 * world go to the kernel. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sim/memory.h"
#include "sim/world.h"

/* dlsym() returns a void pointer. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum { DISK_BLOCKS = 1 << 20 };

static int fail(int why) {
  errno = why;
  return -1;
}

/* Returns the errno that this call fails with; 0 if it succeeds, perhaps only in part
 * (*out_short). */
static int fault(const char *call, bool *out_short) {
  struct sim_world *world = sim_world;
  enum sim_fault f =
      world->fault != NULL && world->quiet == 0 ? world->fault(world->self, call) : SIM_NO_FAULT;

  *out_short = f == SIM_SHORT;
  switch (f) {
  case SIM_EIO: return EIO;
  case SIM_ENOSPC: return ENOSPC;
  case SIM_EINTR: return EINTR;
  default: return 0;
  }
}

/* Begins a change of the disk. Returns false with errno if it fails. */
static bool begin_change(const char *call) {
  bool is_short;

  sim_boundary(call);
  int why = fault(call, &is_short);
  if (why == 0 && is_short) why = EIO;
  errno = why;
  return why == 0;
}

static struct sim_file *file_of(int fd) {
  struct sim_fd *open = sim_fd_of(fd);

  return open != NULL && open->kind == SIM_FILE ? open->file : NULL;
}

static bool is_ours(const char *path) {
  return sim_world != NULL && strncmp(path, SIM_STATE, sizeof SIM_STATE - 1) == 0;
}

/* Returns the file at a path of several names below a folder; NULL with errno. */
static struct sim_file *walk(struct sim_file *folder, const char *path) {
  char name[SIM_NAME];

  while (*path != '\0') {
    size_t len = strcspn(path, "/");
    if (len >= sizeof name || !folder->is_folder) {
      errno = folder->is_folder ? ENAMETOOLONG : ENOTDIR;
      return NULL;
    }
    memcpy(name, path, len);
    name[len] = '\0';
    path += len;
    path += *path == '/';
    if (strcmp(name, ".") == 0) continue;
    folder = sim_find(folder, name);
    errno = ENOENT;
    if (folder == NULL) return NULL;
  }
  return folder;
}

/* Returns the parent folder; the root is its own parent. */
static struct sim_file *parent_of(const struct sim_file *folder) {
  for (struct sim_file *file = sim_world->disk->files; file != NULL; file = file->next) {
    const char *name;
    for (size_t i = 0; file->is_folder && (name = sim_name_at(file, i)) != NULL; i++)
      if (sim_find(file, name) == folder) return file;
  }
  return sim_world->disk->root;
}

/* ---- names */

static int open_at(struct sim_file *folder, const char *name, int flags) {
  struct sim_file *file = NULL;

  if (strncmp(name, "..", 2) == 0) { /* of an archive's folder, to sync those above it */
    file = parent_of(folder);
    if (strcmp(name, "../..") == 0) file = parent_of(file);
  } else {
    file = walk(folder, name);
  }
  if (file == NULL && (errno != ENOENT || (flags & O_CREAT) == 0)) return -1;
  if (file != NULL && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return fail(EEXIST);
  if (file != NULL && (flags & O_DIRECTORY) != 0 && !file->is_folder) return fail(ENOTDIR);
  bool is_short;
  int why = file != NULL ? fault("open", &is_short) : 0;
  if (why != 0) return fail(why);
  if (file == NULL) {
    if (!begin_change("create")) return -1;
    file = sim_make(sim_world->disk, folder, name, false);
  } else if ((flags & O_TRUNC) != 0) {
    if (!begin_change("truncate")) return -1;
    sim_resize(file, 0);
  }
  return sim_fd_new(file);
}

int openat(int dir, const char *path, int flags, ...) {
  va_list args;

  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, unsigned) : 0;
  va_end(args);
  struct sim_file *folder = file_of(dir);
  if (folder == NULL) return (int)syscall(SYS_openat, dir, path, flags, mode);
  return open_at(folder, path, flags);
}

int open(const char *path, int flags, ...) {
  va_list args;

  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, unsigned) : 0;
  va_end(args);
  if (!is_ours(path)) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  return sim_fd_new(sim_world->disk->root);
}

int close(int fd) {
  struct sim_fd *open = sim_fd_of(fd);

  if (open == NULL) return (int)syscall(SYS_close, fd);
  *open = (struct sim_fd){ 0 };
  return 0;
}

int fcntl(int fd, int command, ...) {
  va_list args;

  va_start(args, command);
  long argument = va_arg(args, long);
  va_end(args);
  struct sim_file *file = file_of(fd);
  if (file == NULL) return (int)syscall(SYS_fcntl, fd, command, argument);
  return command == F_DUPFD_CLOEXEC ? sim_fd_new(file) : fail(EINVAL);
}

int mkdir(const char *path, mode_t mode) {
  return is_ours(path) ? fail(EEXIST) : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int mkdirat(int dir, const char *name, mode_t mode) {
  struct sim_file *folder = file_of(dir);

  if (folder == NULL) return (int)syscall(SYS_mkdirat, dir, name, mode);
  if (sim_find(folder, name) != NULL) return fail(EEXIST);
  if (!begin_change("mkdir")) return -1;
  sim_make(sim_world->disk, folder, name, true);
  return 0;
}

int unlinkat(int dir, const char *name, int flags) {
  struct sim_file *folder = file_of(dir);

  if (folder == NULL) return (int)syscall(SYS_unlinkat, dir, name, flags);
  if (sim_find(folder, name) == NULL) return fail(ENOENT);
  if (!begin_change("unlink")) return -1;
  int why = sim_unlink(sim_world->disk, folder, name, (flags & AT_REMOVEDIR) != 0);
  return why == 0 ? 0 : fail(why);
}

static int rename_at(int from_dir, const char *from, int to_dir, const char *to, bool no_replace) {
  struct sim_file *from_folder = file_of(from_dir), *to_folder = file_of(to_dir);

  if (sim_find(from_folder, from) == NULL) return fail(ENOENT);
  if (!begin_change("rename")) return -1;
  int why = sim_rename(sim_world->disk, from_folder, from, to_folder, to, no_replace);
  return why == 0 ? 0 : fail(why);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  if (file_of(from_dir) == NULL) return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
  return rename_at(from_dir, from, to_dir, to, false);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
  if (file_of(from_dir) == NULL)
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
  return rename_at(from_dir, from, to_dir, to, (flags & RENAME_NOREPLACE) != 0);
}

int faccessat(int dir, const char *name, int mode, int flags) {
  struct sim_file *folder = file_of(dir);

  if (folder == NULL) return (int)syscall(SYS_faccessat2, dir, name, mode, flags);
  bool is_short;
  int why = fault("look", &is_short);
  if (why != 0) return fail(why);
  return walk(folder, name) != NULL ? 0 : -1;
}

/* ---- metadata of a file */

static void describe(const struct sim_file *file, struct stat *out) {
  *out = (struct stat){ .st_mode = file->is_folder ? S_IFDIR | 0750 : S_IFREG | 0640 };
  out->st_mtim.tv_sec = out->st_ctim.tv_sec = (time_t)(sim_world->wall_ns / 1000000000);
  if (file->is_folder) return;
  out->st_size = (off_t)sim_size(file);
  out->st_blocks = (blkcnt_t)((sim_size(file) + SIM_SECTOR - 1) / SIM_SECTOR);
}

int fstat(int fd, struct stat *out) {
  struct sim_file *file = file_of(fd);

  if (file == NULL) return (int)syscall(SYS_fstat, fd, out);
  bool is_short;
  int why = fault("look", &is_short);
  if (why != 0) return fail(why);
  describe(file, out);
  return 0;
}

int fstatat(int dir, const char *name, struct stat *out, int flags) {
  struct sim_file *folder = file_of(dir);

  if (folder == NULL) return (int)syscall(SYS_newfstatat, dir, name, out, flags);
  bool is_short;
  int why = fault("look", &is_short);
  if (why != 0) return fail(why);
  struct sim_file *file = walk(folder, name);
  if (file == NULL) return -1;
  describe(file, out);
  return 0;
}

int fstatvfs(int fd, struct statvfs *out) {
  if (file_of(fd) == NULL) return REAL(fstatvfs)(fd, out);
  *out = (struct statvfs){ .f_bsize = SIM_PAGE,
                           .f_frsize = SIM_PAGE,
                           .f_blocks = DISK_BLOCKS,
                           .f_bfree = DISK_BLOCKS / 2,
                           .f_bavail = DISK_BLOCKS / 2 };
  return 0;
}

int flock(int fd, int operation) {
  return file_of(fd) != NULL ? 0 : (int)syscall(SYS_flock, fd, operation);
}

struct listing { /* what a DIR is here: the names as they were when it was opened */
  int fd;
  size_t n, at;
  struct dirent entry;
  char names[][SIM_NAME];
};

DIR *fdopendir(int fd) {
  struct sim_file *folder = file_of(fd);
  struct listing *listing;
  size_t n = 0;

  if (folder == NULL) abort(); /* only the store's folders are listed here */
  while (sim_name_at(folder, n) != NULL) n++;
  listing = sim_calloc(1, sizeof *listing + n * SIM_NAME);
  listing->fd = fd;
  for (; listing->n < n; listing->n++)
    strcpy(listing->names[listing->n], sim_name_at(folder, listing->n));
  return (DIR *)listing;
}

struct dirent *readdir(DIR *dir) {
  struct listing *listing = (struct listing *)dir;
  bool is_short;

  int why = fault("list", &is_short);
  if (why != 0) {
    errno = why;
    return NULL;
  }
  if (listing->at == listing->n) return NULL;
  memcpy(listing->entry.d_name, listing->names[listing->at++], SIM_NAME);
  return &listing->entry;
}

int closedir(DIR *dir) {
  struct listing *listing = (struct listing *)dir;

  close(listing->fd);
  free(listing);
  return 0;
}

/* ---- bytes */

ssize_t pread(int fd, void *out, size_t n, off_t offset) {
  struct sim_file *file = file_of(fd);
  bool is_short;

  if (file == NULL) return syscall(SYS_pread64, fd, out, n, offset);
  int why = fault("read", &is_short);
  if (why != 0) return fail(why);
  if (is_short) n = (n + 1) / 2;
  return (ssize_t)sim_read(file, out, n, (uint64_t)offset);
}

ssize_t read(int fd, void *out, size_t n) {
  struct sim_fd *open = sim_fd_of(fd);

  if (open == NULL) return syscall(SYS_read, fd, out, n);
  if (open->kind == SIM_EVENT) {
    if (open->event == 0) return fail(EAGAIN);
    memcpy(out, &open->event, sizeof open->event);
    open->event = 0;
    return sizeof open->event;
  }
  n = sim_read(open->file, out, n, open->offset);
  open->offset += n;
  return (ssize_t)n;
}

ssize_t write(int fd, const void *bytes, size_t n) {
  struct sim_fd *open = sim_fd_of(fd);

  if (open == NULL) return syscall(SYS_write, fd, bytes, n);
  if (open->kind == SIM_EVENT) {
    open->event++;
    return (ssize_t)n;
  }
  ssize_t done = pwrite(fd, bytes, n, (off_t)open->offset);
  if (done > 0) open->offset += (uint64_t)done;
  return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
  struct sim_file *file = file_of(fd);
  bool is_short;

  if (file == NULL) return syscall(SYS_pwrite64, fd, bytes, n, offset);
  sim_boundary("write");
  int why = fault("write", &is_short);
  if (why != 0) return fail(why);
  if (is_short) n = (n + 1) / 2;
  sim_write(file, bytes, n, (uint64_t)offset);
  return (ssize_t)n;
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset) {
  struct sim_file *file = file_of(fd);
  bool is_short;
  size_t done = 0;

  if (file == NULL) return syscall(SYS_pwritev, fd, iov, n, offset, 0L);
  sim_boundary("write");
  int why = fault("write", &is_short);
  if (why != 0) return fail(why);
  if (is_short) n = (n + 1) / 2;
  for (int i = 0; i < n; i++) {
    sim_write(file, iov[i].iov_base, iov[i].iov_len, (uint64_t)offset + done);
    done += iov[i].iov_len;
  }
  return (ssize_t)done;
}

static int sync_file(struct sim_file *file) {
  if (!begin_change("sync")) {
    if (!file->is_folder && errno == EIO) sim_fail_sync(file);
    return -1;
  }
  if (file->is_folder)
    sim_sync_folder(sim_world->disk, file);
  else
    sim_sync_file(file);
  return 0;
}

int fsync(int fd) {
  struct sim_file *file = file_of(fd);

  return file == NULL ? (int)syscall(SYS_fsync, fd) : sync_file(file);
}

int fdatasync(int fd) {
  struct sim_file *file = file_of(fd);

  return file == NULL ? (int)syscall(SYS_fdatasync, fd) : sync_file(file);
}

int sync_file_range(int fd, off_t offset, off_t n, unsigned flags) {
  return file_of(fd) != NULL ? 0 : (int)syscall(SYS_sync_file_range, fd, offset, n, flags);
}

int posix_fadvise(int fd, off_t offset, off_t n, int advice) {
  return file_of(fd) != NULL ? 0 : (int)syscall(SYS_fadvise64, fd, offset, n, advice);
}

int ftruncate(int fd, off_t bytes) {
  struct sim_file *file = file_of(fd);

  if (file == NULL) return (int)syscall(SYS_ftruncate, fd, bytes);
  if (!begin_change("truncate")) return -1;
  sim_resize(file, (uint64_t)bytes);
  return 0;
}

int fallocate(int fd, int mode, off_t offset, off_t n) {
  struct sim_file *file = file_of(fd);

  if (file == NULL) return (int)syscall(SYS_fallocate, fd, mode, offset, n);
  if (!begin_change("allocate")) return -1;
  if ((uint64_t)(offset + n) > sim_size(file)) sim_resize(file, (uint64_t)(offset + n));
  return 0;
}

off_t lseek(int fd, off_t offset, int whence) {
  struct sim_file *file = file_of(fd);

  if (file == NULL) return (off_t)syscall(SYS_lseek, fd, offset, whence);
  off_t end = (off_t)sim_data_end(file); /* data first, then a hole */
  if (whence == SEEK_DATA) return offset < end ? offset : fail(ENXIO);
  return whence == SEEK_HOLE ? end : fail(EINVAL);
}

/* ---- memory; a mapped file is copied, since nobody writes to it meanwhile */

/* Zeroed blocks of unmapped files, for reuse: most of a log file is a hole, and each start maps them all. */
static struct sim_map spare[SIM_MAPS];

static void *take_zeroed(size_t bytes) {
  for (size_t i = 0; i < SIM_MAPS; i++)
    if (spare[i].memory != NULL && spare[i].bytes == bytes) {
      void *memory = spare[i].memory;
      spare[i] = (struct sim_map){ 0 };
      return memory;
    }
  return sim_calloc(1, bytes);
}

static void give_zeroed(const struct sim_map *map) {
  size_t i = 0;

  while (i < SIM_MAPS && spare[i].memory != NULL) i++;
  if (i == SIM_MAPS) {
    free(map->memory);
    return;
  }
  memset(map->memory, 0, map->filled);
  spare[i] = *map;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  struct sim_file *file = file_of(fd);

  if (file == NULL) return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
  if (sim_is_short(__builtin_return_address(0))) return MAP_FAILED;
  struct sim_map *map = sim_world->maps;
  while (map->memory != NULL) map++;
  *map = (struct sim_map){ take_zeroed(bytes), bytes, (size_t)sim_data_end(file) };
  sim_read(file, map->memory, map->filled, 0);
  return map->memory;
}

static struct sim_map *map_of(const void *memory) {
  for (size_t i = 0; sim_world != NULL && memory != NULL && i < SIM_MAPS; i++)
    if (sim_world->maps[i].memory == memory) return &sim_world->maps[i];
  return NULL;
}

int munmap(void *at, size_t bytes) {
  struct sim_map *map = map_of(at);

  if (map == NULL) return (int)syscall(SYS_munmap, at, bytes);
  give_zeroed(map);
  *map = (struct sim_map){ 0 };
  return 0;
}

int madvise(void *at, size_t bytes, int advice) {
  return sim_world != NULL ? 0 : (int)syscall(SYS_madvise, at, bytes, advice);
}

/* ---- clocks, chance, threads */

int clock_gettime(clockid_t id, struct timespec *out) {
  if (sim_world == NULL) return (int)syscall(SYS_clock_gettime, id, out);
  uint64_t ns = id == CLOCK_REALTIME ? sim_world->wall_ns : sim_world->mono_ns;
  out->tv_sec = (time_t)(ns / 1000000000);
  out->tv_nsec = (long)(ns % 1000000000);
  return 0;
}

time_t time(time_t *out) {
  struct timespec ts;

  clock_gettime(CLOCK_REALTIME, &ts);
  if (out != NULL) *out = ts.tv_sec;
  return ts.tv_sec;
}

ssize_t getrandom(void *out, size_t n, unsigned flags) {
  unsigned char *bytes = out;

  if (sim_world == NULL) return syscall(SYS_getrandom, out, n, flags);
  for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)sim_next(&sim_world->chance);
  return (ssize_t)n;
}

int eventfd(unsigned count, int flags) {
  if (sim_world == NULL) return (int)syscall(SYS_eventfd2, count, flags);
  int fd = sim_fd_new(NULL);
  if (fd >= 0) sim_fd_of(fd)->event = count;
  return fd;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask) {
  if (sim_world == NULL || n != 1) return (int)syscall(SYS_ppoll, fds, n, limit, mask, 8);
  uint64_t ns = (uint64_t)limit->tv_sec * 1000000000 + (uint64_t)limit->tv_nsec;
  int fd = fds[0].fd;
  sim_wait(fd, sim_world->mono_ns + ns);
  fds[0].revents = sim_fd_of(fd)->event > 0 ? POLLIN : 0;
  return fds[0].revents != 0;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *until, struct timespec *rest) {
  if (sim_world == NULL) return (int)-syscall(SYS_clock_nanosleep, id, flags, until, rest);
  sim_wait(-1, (uint64_t)until->tv_sec * 1000000000 + (uint64_t)until->tv_nsec);
  return 0;
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *self) {
  if (sim_world == NULL) return REAL(pthread_create)(out, attributes, run, self);
  *out = (pthread_t)(uintptr_t)sim_thread_new(run, self);
  return 0;
}

int pthread_join(pthread_t thread, void **out) {
  if (sim_world == NULL) return REAL(pthread_join)(thread, out);
  sim_thread_join((struct sim_thread *)(uintptr_t)thread);
  return 0;
}

int pthread_setname_np(pthread_t thread, const char *name) {
  return sim_world != NULL ? 0 : REAL(pthread_setname_np)(thread, name);
}
