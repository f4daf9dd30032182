/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the catalog on the world's disk: a power cut tears what SQLite has not synced, as it does with other files.
 * SQLite's calls are not boundaries: a crash inside them is SQLite's to test. Only one connection at a time has the
 * file, so locks are always granted and the WAL's index is memory of the connection. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory.h"
#include "sim/world.h"

enum { REGIONS = 64 };

struct handle {
  sqlite3_file base;
  struct sim_file *file;
  struct sim_file *folder; /* synced with the file's first sync, as SQLite does for a new log */
  void *regions[REGIONS];
};

static struct sim_file *file_of(sqlite3_file *file) {
  return ((struct handle *)file)->file;
}

static int shm_unmap(sqlite3_file *file, int delete) {
  struct handle *handle = (struct handle *)file;

  (void)delete;
  for (size_t i = 0; i < REGIONS; i++) {
    free(handle->regions[i]);
    handle->regions[i] = NULL;
  }
  return SQLITE_OK;
}

static int close_file(sqlite3_file *file) {
  return shm_unmap(file, 0);
}

static int read_file(sqlite3_file *file, void *out, int n, sqlite3_int64 offset) {
  size_t got = sim_read(file_of(file), out, (size_t)n, (uint64_t)offset);

  if (got == (size_t)n) return SQLITE_OK;
  memset((char *)out + got, 0, (size_t)n - got);
  return SQLITE_IOERR_SHORT_READ;
}

static int write_file(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 offset) {
  sim_write(file_of(file), bytes, (size_t)n, (uint64_t)offset);
  return SQLITE_OK;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 bytes) {
  sim_resize(file_of(file), (uint64_t)bytes);
  return SQLITE_OK;
}

static int sync_file(sqlite3_file *file, int flags) {
  struct handle *handle = (struct handle *)file;

  (void)flags;
  sim_sync_file(handle->file);
  if (handle->folder != NULL) sim_sync_folder(sim_world->disk, handle->folder);
  handle->folder = NULL;
  return SQLITE_OK;
}

static int size_of(sqlite3_file *file, sqlite3_int64 *out) {
  *out = (sqlite3_int64)sim_size(file_of(file));
  return SQLITE_OK;
}

static int lock(sqlite3_file *file, int level) {
  (void)file;
  (void)level;
  return SQLITE_OK;
}

static int is_reserved(sqlite3_file *file, int *out) {
  (void)file;
  *out = 0;
  return SQLITE_OK;
}

static int control(sqlite3_file *file, int what, void *argument) {
  (void)file;
  (void)what;
  (void)argument;
  return SQLITE_NOTFOUND;
}

static int sector_bytes(sqlite3_file *file) {
  (void)file;
  return SIM_PAGE;
}

static int characteristics(sqlite3_file *file) {
  (void)file;
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE; /* as SQLite says of every disk */
}

static int shm_map(sqlite3_file *file, int i, int bytes, int extend, void volatile **out) {
  struct handle *handle = (struct handle *)file;

  if (i >= REGIONS) return SQLITE_FULL;
  if (handle->regions[i] == NULL && extend) handle->regions[i] = sim_calloc(1, (size_t)bytes);
  *out = handle->regions[i];
  return SQLITE_OK;
}

static int shm_lock(sqlite3_file *file, int offset, int n, int flags) {
  (void)file;
  (void)offset;
  (void)n;
  (void)flags;
  return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *file) {
  (void)file;
}

static const sqlite3_io_methods methods = { .iVersion = 2,
                                            .xClose = close_file,
                                            .xRead = read_file,
                                            .xWrite = write_file,
                                            .xTruncate = truncate_file,
                                            .xSync = sync_file,
                                            .xFileSize = size_of,
                                            .xLock = lock,
                                            .xUnlock = lock,
                                            .xCheckReservedLock = is_reserved,
                                            .xFileControl = control,
                                            .xSectorSize = sector_bytes,
                                            .xDeviceCharacteristics = characteristics,
                                            .xShmMap = shm_map,
                                            .xShmLock = shm_lock,
                                            .xShmBarrier = shm_barrier,
                                            .xShmUnmap = shm_unmap };

/* Parses "/proc/self/fd/N/NAME", the form of the catalog's paths. */
static struct sim_file *folder_of(const char *path, const char **out_name) {
  int fd, at = 0;

  if (path == NULL || sscanf(path, "/proc/self/fd/%d/%n", &fd, &at) != 1 || at == 0) return NULL;
  struct sim_fd *open = sim_fd_of(fd);
  *out_name = path + at;
  return open == NULL ? NULL : open->file;
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *out_flags) {
  struct handle *handle = (struct handle *)file;
  const char *name;
  struct sim_file *folder = folder_of(path, &name);

  (void)vfs;
  *handle = (struct handle){ 0 };
  if (folder == NULL) return SQLITE_CANTOPEN;
  handle->file = sim_find(folder, name);
  if (handle->file == NULL && (flags & SQLITE_OPEN_CREATE) != 0) {
    handle->file = sim_make(sim_world->disk, folder, name, false);
    if ((flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0) handle->folder = folder;
  }
  if (handle->file == NULL) return SQLITE_CANTOPEN;
  handle->base.pMethods = &methods;
  if (out_flags != NULL) *out_flags = flags;
  return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *path, int sync_folder) {
  const char *name;
  struct sim_file *folder = folder_of(path, &name);

  (void)vfs;
  if (folder == NULL || sim_unlink(sim_world->disk, folder, name, false) != 0)
    return SQLITE_IOERR_DELETE_NOENT;
  if (sync_folder) sim_sync_folder(sim_world->disk, folder);
  return SQLITE_OK;
}

static int has_access(sqlite3_vfs *vfs, const char *path, int flags, int *out) {
  const char *name;
  struct sim_file *folder = folder_of(path, &name),
                  *file = folder != NULL ? sim_find(folder, name) : NULL;

  (void)vfs;
  *out = file != NULL && (flags != SQLITE_ACCESS_EXISTS || sim_size(file) > 0);
  return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *path, int n, char *out) {
  (void)vfs;
  snprintf(out, (size_t)n, "%s", path);
  return SQLITE_OK;
}

static int randomness(sqlite3_vfs *vfs, int n, char *out) {
  (void)vfs;
  for (int i = 0; i < n; i++)
    out[i] = sim_world != NULL ? (char)sim_next(&sim_world->chance) : (char)i;
  return n;
}

static int nap(sqlite3_vfs *vfs, int us) {
  (void)vfs;
  return us;
}

static int now(sqlite3_vfs *vfs, sqlite3_int64 *out_ms) {
  (void)vfs;
  *out_ms = (sqlite3_int64)(sim_world->wall_ns / 1000000) + INT64_C(210866760000000);
  return SQLITE_OK;
}

void sim_vfs_reset(void) {
  sqlite3_randomness(0, NULL);
}

void sim_vfs_register(void) {
  static sqlite3_vfs vfs = { .iVersion = 2,
                             .szOsFile = sizeof(struct handle),
                             .mxPathname = 512,
                             .zName = "simulated",
                             .xOpen = open_file,
                             .xDelete = delete_file,
                             .xAccess = has_access,
                             .xFullPathname = full_path,
                             .xRandomness = randomness,
                             .xSleep = nap,
                             .xCurrentTimeInt64 = now };

  /* SQLite runs on one thread, and its memory statistics are not used. */
  if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
      sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK)
    abort();
  if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) abort();
}
