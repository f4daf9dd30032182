/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/trace_file/input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/text/hostport.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/url.h"

enum { CHUNK_BYTES = 256 << 10, MAGIC_BYTES = 4 };
static const unsigned char zstd_magic[MAGIC_BYTES] = { 0x28, 0xb5, 0x2f, 0xfd };

struct tk_input {
  const char *verb, *path;
  bool hushed;
  char reason[100];   /* not reported yet */
  struct tk_url *url; /* still loading: fd is its file; NULL: none */
  int fd;
  uint64_t size, position;
  /* mapped */
  unsigned char *map;
  uint64_t released;
  bool map_given;
  /* read */
  unsigned char *chunk;
  size_t chunk_len, chunk_pos;
  bool chunk_end;
  /* compressed */
  ZSTD_DStream *unzstd;
  unsigned char *plain;
  size_t unfinished; /* ZSTD_decompressStream's hint: 0 between frames */
  /* if only a part is read */
  struct tk_trace_range part; /* end 0: everything */
  const unsigned char *held;
  size_t held_len;
  uint64_t held_at; /* offset of held[0] in the trace */
};

static bool complain(struct tk_input *in, const char *reason) {
  if (in->hushed)
    snprintf(in->reason, sizeof in->reason, "%s", reason);
  else
    tk_fail(in->verb, "%s: %s", in->path, reason);
  return false;
}

void tk_input_hush(struct tk_input *in) {
  in->hushed = true;
}

void tk_input_complain(const struct tk_input *in) {
  tk_fail(in->verb, "%s: %s", in->path, in->reason);
}

/* SIGBUS handler: a mapped file was truncated. */
static void file_shrank(int sig) {
  static const char text[] = "tracectl: the file was cut short while it was read\n";

  (void)sig;
  ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
  (void)ignored;
  _exit(TK_FAILED);
}

static bool map_file(struct tk_input *in) {
  void *map = mmap(NULL, (size_t)in->size, PROT_READ, MAP_PRIVATE, in->fd, 0);

  if (map == MAP_FAILED) return false;
  madvise(map, (size_t)in->size, MADV_SEQUENTIAL);
  signal(SIGBUS, file_shrank);
  in->map = map;
  return true;
}

/* Reads once, and appends to the chunk. */
static bool read_more(struct tk_input *in) {
  ssize_t got;

  do {
    unsigned char *room = in->chunk + in->chunk_len;
    size_t n = CHUNK_BYTES - in->chunk_len;
    if (in->url != NULL) tk_url_wait(in->url, in->position);
    got = in->url != NULL ? pread(in->fd, room, n, (off_t)in->position) : read(in->fd, room, n);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return complain(in, strerror(errno));
  in->chunk_end = got == 0;
  in->chunk_len += (size_t)got;
  in->position += (size_t)got;
  return true;
}

static bool begin_reading(struct tk_input *in) {
  in->chunk = malloc(CHUNK_BYTES);
  if (in->chunk == NULL) return complain(in, "out of memory");
  while (in->chunk_len < MAGIC_BYTES && !in->chunk_end)
    if (!read_more(in)) return false;
  if (in->chunk_len < MAGIC_BYTES || memcmp(in->chunk, zstd_magic, MAGIC_BYTES) != 0) return true;

  in->unzstd = ZSTD_createDStream();
  in->plain = malloc(CHUNK_BYTES);
  if (in->unzstd == NULL || in->plain == NULL) return complain(in, "out of memory");
  return true;
}

static bool is_packed(const struct tk_input *in) {
  return in->size >= MAGIC_BYTES && memcmp(in->map, zstd_magic, MAGIC_BYTES) == 0;
}

/* A URL that is complete is read like a file, by a descriptor of its own. */
static bool open_url(struct tk_input *in) {
  char path[40];

  in->url = tk_url_open(in->verb, in->path);
  if (in->url == NULL) return false;
  in->path = tk_url_shown(in->url);
  snprintf(path, sizeof path, "/proc/self/fd/%d", tk_url_fd(in->url));
  in->fd = open(path, O_RDONLY | O_CLOEXEC);
  return in->fd >= 0 || complain(in, strerror(errno));
}

/* "localhost:6060" */
static bool looks_like_address(const char *path) {
  struct tb_hostport at;
  struct tb_diag unused;

  tb_diag_clear(&unused);
  return strchr(path, '/') == NULL && tb_hostport_parse(path, &unused, &at) == TB_OK;
}

static bool open_path(struct tk_input *in) {
  in->fd = strcmp(in->path, "-") == 0 ? STDIN_FILENO : open(in->path, O_RDONLY | O_CLOEXEC);
  if (in->fd >= 0) return true;
  if (errno != ENOENT || !looks_like_address(in->path)) return complain(in, strerror(errno));
  tk_fail(in->verb, "%s: no such file; did you mean http://%s?", in->path, in->path);
  return false;
}

static bool open_any(struct tk_input *in) {
  struct stat st;

  if (!(tk_url_is(in->path) ? open_url(in) : open_path(in))) return false;
  if (in->url != NULL && !tk_url_is_complete(in->url)) return begin_reading(in);
  if (fstat(in->fd, &st) < 0) return complain(in, strerror(errno));
  if (S_ISDIR(st.st_mode)) return complain(in, "is a directory");
  bool at_start = lseek(in->fd, 0, SEEK_CUR) == 0;
  if (S_ISREG(st.st_mode)) in->size = (uint64_t)st.st_size;
  if (in->size > 0 && in->size <= SIZE_MAX && at_start && map_file(in)) {
    if (!is_packed(in)) return true;
    munmap(in->map, (size_t)in->size);
    in->map = NULL;
  }
  return begin_reading(in);
}

bool tk_input_open(const char *verb, const char *path, struct tk_input **out) {
  struct tk_input *in = calloc(1, sizeof *in);

  if (in == NULL) {
    tk_fail(verb, "%s: out of memory", path);
    return false;
  }
  in->verb = verb;
  in->path = path;
  in->fd = -1;
  if (!open_any(in)) {
    tk_input_close(in);
    return false;
  }
  *out = in;
  return true;
}

void tk_input_close(struct tk_input *in) {
  if (in == NULL) return;
  if (in->map != NULL) munmap(in->map, (size_t)in->size);
  if (in->fd > STDIN_FILENO) close(in->fd);
  ZSTD_freeDStream(in->unzstd);
  free(in->plain);
  free(in->chunk);
  free(in);
}

static int next_read(struct tk_input *in, const unsigned char **bytes, size_t *n) {
  if (in->chunk_pos == in->chunk_len && !in->chunk_end) {
    in->chunk_pos = in->chunk_len = 0;
    if (!read_more(in)) return -1;
  }
  *bytes = in->chunk + in->chunk_pos;
  *n = in->chunk_len - in->chunk_pos;
  in->chunk_pos = in->chunk_len;
  return *n > 0;
}

static int next_unpacked(struct tk_input *in, const unsigned char **bytes, size_t *n) {
  ZSTD_outBuffer plain = { in->plain, CHUNK_BYTES, 0 };

  while (plain.pos == 0) {
    if (in->chunk_pos == in->chunk_len && !in->chunk_end) {
      in->chunk_pos = in->chunk_len = 0;
      if (!read_more(in)) return -1;
    }
    if (in->chunk_pos == in->chunk_len && in->unfinished == 0) return 0;
    ZSTD_inBuffer packed = { in->chunk, in->chunk_len, in->chunk_pos };
    size_t hint = ZSTD_decompressStream(in->unzstd, &plain, &packed);
    if (ZSTD_isError(hint)) {
      complain(in, ZSTD_getErrorName(hint));
      return -1;
    }
    bool stuck = packed.pos == in->chunk_pos && plain.pos == 0 && in->chunk_end;
    in->chunk_pos = packed.pos;
    in->unfinished = hint;
    if (stuck) {
      complain(in, "the zstd data ends early");
      return -1;
    }
  }
  *bytes = in->plain;
  *n = plain.pos;
  return 1;
}

static int next_whole(struct tk_input *in, const unsigned char **bytes, size_t *n) {
  if (in->unzstd != NULL) return next_unpacked(in, bytes, n);
  if (in->map == NULL) return next_read(in, bytes, n);
  if (in->map_given) return 0;
  in->map_given = true;
  in->position = in->size;
  *bytes = in->map;
  *n = (size_t)in->size;
  return 1;
}

/* Returns the next stretch, up to *out_until: passed on or skipped. Returns false if nothing is
 * left. */
static bool next_run(const struct tk_input *in, uint64_t *out_until, bool *out_given) {
  const struct tk_trace_range *part = &in->part;
  bool header = in->held_at < part->header, before = in->held_at < part->begin;

  *out_until = header ? part->header : before ? part->begin : part->end;
  *out_given = header || !before;
  return header || in->held_at < part->end;
}

int tk_input_next(struct tk_input *in, const unsigned char **bytes, size_t *n) {
  uint64_t until;
  bool given;

  if (in->part.end == 0) return next_whole(in, bytes, n);
  while (next_run(in, &until, &given)) {
    if (in->held_len == 0) {
      int got = next_whole(in, &in->held, &in->held_len);
      if (got <= 0) return got;
    }
    size_t run = in->held_len < until - in->held_at ? in->held_len : (size_t)(until - in->held_at);
    *bytes = in->held;
    *n = run;
    in->held += run;
    in->held_len -= run;
    in->held_at += run;
    if (given) return 1;
  }
  return 0;
}

void tk_input_part(struct tk_input *in, const struct tk_trace_range *part) {
  in->part = *part;
}

uint64_t tk_input_offset(const struct tk_input *in, uint64_t given) {
  bool behind = in->part.end != 0 && given >= in->part.header;

  return behind ? given - in->part.header + in->part.begin : given;
}

const char *tk_input_cut(const struct tk_input *in) {
  return in->url != NULL && tk_url_is_complete(in->url) ? tk_url_cut(in->url) : NULL;
}

bool tk_input_stays(const struct tk_input *in) {
  return in->map != NULL;
}

void tk_input_release(struct tk_input *in, uint64_t upto) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t end = tk_input_offset(in, upto) / page * page;

  if (in->map == NULL || end <= in->released || end > in->size) return;
  madvise(in->map + in->released, (size_t)(end - in->released), MADV_DONTNEED);
  in->released = end;
}

uint64_t tk_input_size(const struct tk_input *in) {
  return in->size;
}
uint64_t tk_input_position(const struct tk_input *in) {
  return in->position;
}
