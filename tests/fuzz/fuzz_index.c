/* SPDX-License-Identifier: Apache-2.0 */
/* Random access. The first byte chooses: the rest is a trace, whose index is made, written and read back; or the rest
 * is the message of a stored index, with a valid checksum, beside a trace of 4096 bytes. In either case the rows lie in
 * the trace, one after the other. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/index.h"

enum { TRACE_BYTES = 4096, MESSAGE_BYTES_MAX = 64 << 10 };

struct tb_mem tk_mem;

static bool trace_is_still; /* the file still has the zeros of try_index() */
static char folder[64], trace_path[96], index_path[96];

static void remove_all(void) {
  unlink(trace_path);
  unlink(index_path);
  rmdir(folder);
}

static void make_folder(void) {
  if (folder[0] != '\0') return;
  snprintf(folder, sizeof folder, "%s/fuzz-index-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  FUZZ_CHECK(mkdtemp(folder) != NULL);
  snprintf(trace_path, sizeof trace_path, "%s/t", folder);
  snprintf(index_path, sizeof index_path, "%s/t.index", folder);
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  atexit(remove_all);
}

static void write_file(const char *path, const uint8_t *data, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

  FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  close(fd);
}

static void look_at(const struct tk_index *index, uint64_t size) {
  uint64_t at = index->header_bytes;

  for (size_t i = 0; i < index->n; i++) {
    const struct tk_index_row *row = &index->row[i];
    FUZZ_CHECK(row->offset >= at && row->offset <= size && row->bytes <= size - row->offset);
    at = row->offset + row->bytes;
    FUZZ_CHECK(row->active == NULL || tk_index_goroutines(row) < row->active_len);
  }
}

/* Returns true for a compressed trace, whose size is not that of the file. */
static bool is_packed(const uint8_t *data, size_t size) {
  return size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
}

static void try_trace(const uint8_t *data, size_t size) {
  struct tk_index made, read;
  struct tb_diag diag;

  if (is_packed(data, size)) return;
  trace_is_still = false;
  write_file(trace_path, data, size);
  FUZZ_CHECK(tk_index_scan("fuzz", trace_path, true, false, &made));
  look_at(&made, size);
  tb_diag_clear(&diag);
  bool saved = tk_index_save(trace_path, &made, &diag) == TB_OK;
  FUZZ_CHECK(saved || made.fault.rc != TB_OK || made.bytes != size);
  if (saved && tk_index_load(trace_path, &read)) {
    look_at(&read, size);
    FUZZ_CHECK(read.n == made.n && read.header_bytes == made.header_bytes);
    for (size_t i = 0; i < read.n; i++)
      FUZZ_CHECK(read.row[i].offset == made.row[i].offset && read.row[i].gen == made.row[i].gen &&
                 read.row[i].active_len == made.row[i].active_len &&
                 memcmp(read.row[i].active, made.row[i].active, made.row[i].active_len) == 0);
    tk_index_fini(&read);
  } else { /* the index is empty, or not all of the file is a trace */
    FUZZ_CHECK(made.n == 0 || made.fault.rc != TB_OK || made.bytes != size);
  }
  tk_index_fini(&made);
}

static void put_u32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void try_index(const uint8_t *data, size_t size) {
  static const uint8_t trace[TRACE_BYTES];
  static uint8_t file[12 + MESSAGE_BYTES_MAX + 4];
  struct tk_index index;

  if (size > MESSAGE_BYTES_MAX) return;
  memcpy(file, "TCMETA1\n", 8);
  put_u32(file + 8, (uint32_t)size);
  memcpy(file + 12, data, size);
  put_u32(file + 12 + size, tb_crc32c(0, data, size));
  if (!trace_is_still) write_file(trace_path, trace, sizeof trace);
  trace_is_still = true;
  write_file(index_path, file, 12 + size + 4);
  if (!tk_index_load(trace_path, &index)) return;
  look_at(&index, TRACE_BYTES);
  tk_index_fini(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  make_folder();
  if (data[0] % 2 == 0)
    try_trace(data + 1, size - 1);
  else
    try_index(data + 1, size - 1);
  return 0;
}
