/* SPDX-License-Identifier: Apache-2.0 */
/* A stored index is a segment's meta with only the generations, header and size of the trace filled in, so that there
 * is one format. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/generation_time.h"
#include "online/trace/active.h"
#include "tools/tracectl/trace_file/index.h"
#include "wire/batch.h"

typedef Tracecollect__V1__GenerationMeta generation_meta;

/* The goroutine lists take at most half of a meta; if they need more they are left out. */
enum { FORMAT = 1, STREAM_BYTES = 16, ACTIVE_BYTES_MAX = TC_META_BYTES_MAX / 2 };

/* Opens path's folder, and returns the file's name in it. */
static int open_folder(const char *path, const char **out_name) {
  const char *slash = strrchr(path, '/');
  char folder[PATH_MAX];

  *out_name = slash == NULL ? path : slash + 1;
  if (slash == NULL) return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A meta matches if the file's size is right, and its rows follow each other within the file. */
static bool fits(const tc_meta *meta, uint64_t size) {
  uint64_t at = meta->trace_header.len;

  if (meta->bytes != size || meta->n_generations == 0 || meta->trace_header.len < TW_HEADER_BYTES)
    return false;
  for (size_t i = 0; i < meta->n_generations; i++) {
    const generation_meta *gen = meta->generations[i];
    if (gen->offset < at || gen->bytes > size - gen->offset || gen->offset > size) return false;
    at = gen->offset + gen->bytes;
  }
  return true;
}

/* Checks the list completely, because later reads do not. */
static bool take_active(const ProtobufCBinaryData *packed, struct tk_index_row *row) {
  struct to_active_iter it;
  int64_t goroutine;

  if (!to_active_read(&it, packed->data, packed->len)) return true;
  while (to_active_next(&it, &goroutine)) continue;
  if (it.left > 0 || it.pos != it.end) return true;
  row->active = malloc(packed->len);
  if (row->active == NULL) return false;
  memcpy(row->active, packed->data, packed->len);
  row->active_len = packed->len;
  return true;
}

static bool take_rows(const tc_meta *meta, bool of_meta, struct tk_index *out) {
  uint64_t begin_wall_ns = meta->first_wall_ns;

  out->row = calloc(meta->n_generations, sizeof out->row[0]);
  if (out->row == NULL) return false;
  out->n = out->room = meta->n_generations;
  for (size_t i = 0; i < out->n; i++) {
    const generation_meta *gen = meta->generations[i];
    out->row[i] = (struct tk_index_row){ .gen = gen->gen,
                                         .offset = gen->offset,
                                         .bytes = gen->bytes,
                                         .batches = gen->batches,
                                         .events = gen->events,
                                         .begin_wall_ns = begin_wall_ns,
                                         .end_wall_ns = gen->end_wall_ns };
    if (!take_active(&gen->active_goroutines, &out->row[i])) return false;
    if (gen->first_ns > meta->generations[0]->first_ns)
      out->row[i].since_ns = (uint64_t)(gen->first_ns - meta->generations[0]->first_ns);
    begin_wall_ns = gen->end_wall_ns;
    if (!of_meta) continue;
    struct tc_wall wall = tc_generation_wall(gen, meta->last_wall_ns);
    out->row[i].begin_wall_ns = wall.first_ns;
    out->row[i].end_wall_ns = wall.last_ns;
    out->row[i].estimated = wall.estimated;
  }
  out->version = meta->go_version;
  out->header_bytes = meta->trace_header.len;
  out->bytes = meta->bytes;
  return true;
}

static bool try_load(int folder, const char *name, const char *extension, bool of_meta,
                     struct tk_index *out) {
  size_t stem = of_meta && strlen(name) > 6 && strcmp(name + strlen(name) - 6, ".trace") == 0
                    ? strlen(name) - 6
                    : strlen(name);
  char file[NAME_MAX + 8];
  struct tb_diag diag;
  struct stat trace, index;
  tc_meta *meta;

  if (snprintf(file, sizeof file, "%.*s%s", (int)stem, name, extension) > NAME_MAX) return false;
  if (fstatat(folder, name, &trace, 0) != 0 || fstatat(folder, file, &index, 0) != 0) return false;
  /* an archived trace never changes, another one may have been written again */
  if (!of_meta && (index.st_mtim.tv_sec < trace.st_mtim.tv_sec)) return false;
  tb_diag_clear(&diag);
  if (tc_meta_read(folder, file, &diag, &meta) != TB_OK) return false;
  bool loaded = fits(meta, (uint64_t)trace.st_size) && take_rows(meta, of_meta, out);
  tc_meta_free(meta);
  out->of_meta = of_meta;
  snprintf(out->source, sizeof out->source, "%s", file);
  if (!loaded) tk_index_fini(out);
  return loaded;
}

bool tk_index_load(const char *path, struct tk_index *out) {
  const char *name;
  int folder = strcmp(path, "-") == 0 ? -1 : open_folder(path, &name);

  memset(out, 0, sizeof *out);
  if (folder < 0) return false;
  bool loaded =
      try_load(folder, name, ".index", false, out) || try_load(folder, name, ".meta", true, out);
  close(folder);
  return loaded;
}

bool tk_index_knows_goroutines(const struct tk_index *index) {
  for (size_t i = 0; i < index->n; i++)
    if (index->row[i].active == NULL) return false;
  return true;
}

uint64_t tk_index_goroutines(const struct tk_index_row *row) {
  struct to_active_iter it;

  return row->active != NULL && to_active_read(&it, row->active, row->active_len) ? it.left : 0;
}

bool tk_index_has_goroutine(const struct tk_index_row *row, int64_t goroutine) {
  struct to_active_iter it;
  int64_t id;

  if (row->active == NULL || !to_active_read(&it, row->active, row->active_len)) return false;
  while (to_active_next(&it, &id))
    if (id == goroutine) return true;
  return false;
}

void tk_index_fini(struct tk_index *index) {
  for (size_t i = 0; i < index->n; i++) free(index->row[i].active);
  free(index->row);
  index->row = NULL;
  index->n = index->room = 0;
}

static void fill_row(const struct tk_index_row *row, bool active, generation_meta *out) {
  tracecollect__v1__generation_meta__init(out);
  out->gen = row->gen;
  out->offset = row->offset;
  out->bytes = row->bytes;
  out->batches = row->batches;
  out->events = row->events;
  out->first_ns = (int64_t)row->since_ns;
  out->end_wall_ns = row->end_wall_ns;
  if (active) out->active_goroutines = (ProtobufCBinaryData){ row->active_len, row->active };
}

static bool has_room_for_active(const struct tk_index *index) {
  uint64_t bytes = 0;

  for (size_t i = 0; i < index->n; i++) bytes += index->row[i].active_len;
  return bytes <= ACTIVE_BYTES_MAX;
}

static tb_rc write_meta(const char *path, const tc_meta *meta, struct tb_diag *diag) {
  char file[NAME_MAX + 8];
  const char *name;
  int folder = open_folder(path, &name);

  if (folder < 0) return tb_fail(diag, TB_IO, "%.150s: %s", path, strerror(errno));
  tb_rc rc = TB_OK;
  if (snprintf(file, sizeof file, "%s.index", name) > NAME_MAX)
    rc = tb_fail(diag, TB_IO, "%.150s.index: %s", name, strerror(ENAMETOOLONG));
  if (rc == TB_OK) rc = tc_meta_write(folder, file, meta, NULL, false, diag);
  if (rc == TB_OK) rc = tc_meta_publish(folder, file, diag);
  close(folder);
  return rc;
}

/* Refuses what tk_index_load() would not accept. */
static tb_rc check_size(const char *path, const struct tk_index *index, struct tb_diag *diag) {
  struct stat st;

  if (stat(path, &st) != 0) return tb_fail(diag, TB_IO, "%.150s: %s", path, strerror(errno));
  if ((uint64_t)st.st_size == index->bytes) return TB_OK;
  return tb_fail(diag, TB_REFUSED,
                 "%.120s: is packed, and can only be read from its beginning: unpack it first",
                 path);
}

tb_rc tk_index_save(const char *path, const struct tk_index *index, struct tb_diag *diag) {
  TB_TRY(check_size(path, index, diag));
  generation_meta *row = calloc(index->n + 1, sizeof *row);
  generation_meta **rows = calloc(index->n + 1, sizeof(generation_meta *));
  tc_meta meta = TRACECOLLECT__V1__SEGMENT_META__INIT;
  unsigned char *header = calloc(1, index->header_bytes + 1); /* only its length matters */
  unsigned char no_stream[STREAM_BYTES] = { 0 };
  char no_day[] = "1970-01-01";
  bool active = has_room_for_active(index);
  tb_rc rc = TB_NOMEM;

  if (row != NULL && rows != NULL && header != NULL) {
    for (size_t i = 0; i < index->n; i++) {
      fill_row(&index->row[i], active, &row[i]);
      rows[i] = &row[i];
    }
    meta.format = FORMAT;
    meta.stream = (ProtobufCBinaryData){ STREAM_BYTES, no_stream };
    meta.day = no_day;
    meta.go_version = index->version;
    meta.bytes = index->bytes;
    meta.trace_header = (ProtobufCBinaryData){ index->header_bytes, header };
    meta.generations = rows;
    meta.n_generations = index->n;
    if (index->n > 0) meta.first_wall_ns = index->row[0].begin_wall_ns;
    rc = write_meta(path, &meta, diag);
  } else {
    rc = tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  free(header);
  free(rows);
  free(row);
  return rc;
}
