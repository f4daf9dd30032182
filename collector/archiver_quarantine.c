/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping quarantine/ small: unfinished generations are worth less than any segment, so they go by age and
 * size, and before the first segment where space is short. The oldest go first; other files stay. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/archive_walk.h"
#include "collector/archiver_private.h"

tb_rc tc__quarantine_file(struct tc_archiver *archiver, const struct tc_segment *segment,
                          struct tb_diag *diag) {
  if (renameat(archiver->opt.dirs->open, segment->name, archiver->opt.dirs->quarantine,
               segment->name) != 0)
    return tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", segment->name, strerror(errno));
  archiver->quarantine.changed = true;
  return TB_OK;
}

tb_rc tc__put_trace_aside(struct tc_archiver *archiver, const struct tc__stream *stream, int dir_fd,
                          uint64_t gen, const char *why, struct tb_diag *diag) {
  char trace[32], name[TC_FILE_NAME_BYTES];

  tc_trace_name(gen, trace);
  tc_segment_name(stream->hex, gen, name);
  if (renameat(dir_fd, trace, archiver->opt.dirs->quarantine, name) != 0)
    return errno == ENOENT
               ? TB_OK
               : tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", name, strerror(errno));
  archiver->quarantine.changed = true;
  tc__note_as(archiver, TC_ERROR, stream->ref,
              "stream=%s gen=%" PRIu64 ": %s; its trace is in quarantine/%s, and it is made anew "
              "from the log",
              stream->hex, gen, why, name);
  return TB_OK;
}

/* A file costs the disk at least that much, so small ones without number are bounded too. */
enum { FILE_BYTES_MIN = 4096 };

struct part {
  uint64_t wall_ns, bytes;
  char name[TC_FILE_NAME_BYTES];
};

struct parts {
  struct part *items;
  size_t n, cap;
  uint64_t bytes;
  bool unseen; /* one could not be looked at */
};

static tb_rc add_part(struct parts *parts, const char *name, const struct stat *st) {
  if (parts->n == parts->cap) {
    size_t cap = parts->cap == 0 ? 64 : 2 * parts->cap;
    void *moved = reallocarray(parts->items, cap, sizeof *parts->items);
    if (moved == NULL) return TB_NOMEM;
    parts->items = moved;
    parts->cap = cap;
  }
  struct part *part = &parts->items[parts->n++];
  uint64_t bytes = (uint64_t)st->st_size;
  *part = (struct part){
    .wall_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
    .bytes = bytes > FILE_BYTES_MIN ? bytes : FILE_BYTES_MIN,
  };
  strcpy(part->name, name);
  parts->bytes += part->bytes;
  return TB_OK;
}

static bool is_part(const char *name) {
  return strlen(name) < TC_FILE_NAME_BYTES && tc_name_ends(name, ".part");
}

/* A part that cannot be looked at costs no other its turn; it is looked at again. */
static tb_rc list_parts(struct tc_archiver *archiver, struct parts *parts, struct tb_diag *diag) {
  int quarantine_fd = archiver->opt.dirs->quarantine;
  const char *name;
  struct stat st;
  DIR *dir;

  TB_TRY(tc_dir_open(quarantine_fd, "quarantine", diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "quarantine", diag, &name)) == TB_OK &&
         name != NULL) {
    if (!is_part(name)) continue;
    if (fstatat(quarantine_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      tc__note_as(archiver, TC_ERROR, 0, "retention: quarantine/%s: %s", name, strerror(errno));
      parts->unseen = true;
    } else if (S_ISREG(st.st_mode) && add_part(parts, name, &st) != TB_OK) {
      rc = tb_fail(diag, TB_NOMEM, "quarantine: no memory for its names");
    }
  }
  closedir(dir);
  return rc;
}

static int by_age(const void *a, const void *b) {
  const struct part *x = a, *y = b;

  if (x->wall_ns != y->wall_ns) return x->wall_ns < y->wall_ns ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Deletes the oldest while the rules say so; answers how many went. */
static size_t take_oldest(struct tc_archiver *archiver, const struct tc_retention_rules *rules,
                          uint64_t disk_free, struct parts *parts) {
  size_t gone = 0;

  for (; gone < parts->n; gone++) {
    const struct part *part = &parts->items[gone];
    if (!tc_retention_takes(&archiver->retention, rules, parts->bytes, disk_free, part->wall_ns))
      break;
    if (unlinkat(archiver->opt.dirs->quarantine, part->name, 0) != 0 && errno != ENOENT) {
      tc__note_as(archiver, TC_ERROR, 0, "quarantine/%s: %s", part->name, strerror(errno));
      break;
    }
    parts->bytes -= part->bytes;
    disk_free += part->bytes;
  }
  return gone;
}

void tc__retain_quarantine(struct tc_archiver *archiver) {
  const struct tc_config *config = archiver->opt.config;
  struct tc__quarantine *seen = &archiver->quarantine;
  const struct tc_retention_rules rules = { .age_ns = config->retention_age,
                                            .bytes = config->retention_quarantine_bytes,
                                            .free_bytes = config->retention_free_bytes };
  struct parts parts = { 0 };
  struct tb_diag diag = { 0 };
  uint64_t disk_free = tc__disk_free(archiver);

  if (!seen->changed &&
      (seen->files == 0 || !tc_retention_takes(&archiver->retention, &rules, seen->bytes, disk_free,
                                               seen->oldest_wall_ns)))
    return;
  tb_rc rc = list_parts(archiver, &parts, &diag);
  if (rc == TB_OK) {
    if (parts.n > 0) qsort(parts.items, parts.n, sizeof *parts.items, by_age);
    size_t gone = take_oldest(archiver, &rules, disk_free, &parts);
    *seen = (struct tc__quarantine){ .files = parts.n - gone,
                                     .bytes = parts.bytes,
                                     .changed = parts.unseen };
    if (seen->files > 0) seen->oldest_wall_ns = parts.items[gone].wall_ns;
    tc_gauge(&archiver->opt.stats->quarantine_bytes, seen->bytes);
    tc_gauge(&archiver->opt.stats->quarantine_files, seen->files);
    tc_count(&archiver->opt.stats->quarantine_expired, gone);
    if (gone > 0)
      tc__note(archiver, "retention: %zu unfinished generations deleted from quarantine", gone);
  } else {
    tc__note_as(archiver, TC_ERROR, 0, "retention: %s", diag.text);
  }
  free(parts.items);
}
