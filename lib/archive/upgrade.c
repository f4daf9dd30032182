/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/audit_trace.h"
#include "archive/catalog_write.h"
#include "base/crc32c.h"
#include "base/grow.h"

/* As segment.generations_max, bytes_max and seconds_max are, where a configuration does not say otherwise. */
enum { GENERATIONS_MAX = 1000, RUN_BYTES_MAX = 8 << 20 };
static const uint64_t RUN_NS_MAX = UINT64_C(300) * 1000000000;

static const char beside[] = "upgrade";

struct entry { /* a file of the folder */
  char name[64];
  tc_meta *meta; /* of a .meta that can be read */
  bool is_good;  /* its trace was checked, and may be joined */
  size_t
      run; /* the entries of one run have the place of its first one, from 1; 0: it stays a file of its own */
};

struct upgrade {
  struct tc__look look;
  int archive_fd, beside_fd;
  struct tc_upgraded *out;
  char upto[TC_DAY_BYTES]; /* this day and later ones stay as they are; empty: none does */
  char day[TC_DAY_BYTES], hex[TC_STREAM_HEX_BYTES]; /* of the folder that was looked at last */
  /* the folder */
  int old_fd, new_fd;
  struct entry *entries;
  size_t n, cap;
};

static tb_rc fail(struct upgrade *u, const char *name) {
  return tb_fail(u->look.diag, tc_errno_rc(errno), "archive/%s/%s/%s: %s", u->day, u->hex, name,
                 strerror(errno));
}

/* ---- what is in the folder */

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void forget_folder(struct upgrade *u) {
  for (size_t i = 0; i < u->n; i++) tc_meta_free(u->entries[i].meta);
  u->n = 0;
  if (u->old_fd >= 0) close(u->old_fd);
  if (u->new_fd >= 0) close(u->new_fd);
  u->old_fd = u->new_fd = -1;
}

static tb_rc read_entry(struct upgrade *u, const char *name) {
  TB_TRY(TB_GROW(u->entries, u->cap, u->n));
  struct entry *entry = &u->entries[u->n];

  *entry = (struct entry){ 0 };
  if (strlen(name) >= sizeof entry->name)
    return tb_fail(u->look.diag, TB_REFUSED, "archive/%s/%s: %.80s...: is no file of ours", u->day,
                   u->hex, name);
  strcpy(entry->name, name);
  u->n++;
  /* One that cannot be read stays as it is: the audit reports it. */
  if (tc_name_ends(name, ".meta") && tc_meta_read(u->old_fd, name, NULL, &entry->meta) != TB_OK)
    entry->meta = NULL;
  return TB_OK;
}

static tb_rc read_folder(struct upgrade *u) {
  const char *name;
  DIR *dir;

  TB_TRY(tc_dir_open(u->old_fd, "archive", u->look.diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "archive", u->look.diag, &name)) == TB_OK &&
         name != NULL)
    if (!tc_name_ends(name, ".new"))
      rc = read_entry(u, name); /* else left by a run that was killed */
  closedir(dir);
  if (u->n > 1) qsort(u->entries, u->n, sizeof *u->entries, by_name);
  return rc;
}

/* ---- what is joined */

static const Tracecollect__V1__GenerationMeta *last_of(const tc_meta *meta) {
  return meta->generations[meta->n_generations - 1];
}

static bool is_plain(const struct entry *entry) {
  const tc_meta *meta = entry->meta;

  return meta != NULL && !meta->expired && meta->n_generations > 0 && meta->signature == NULL;
}

static bool is_broken(const tc_meta *meta) {
  const Tracecollect__V1__Verdict *verdict = last_of(meta)->verdict;

  return verdict != NULL && verdict->code > TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
}

/* Nothing lies between them: no hole, no loss, no end of the stream, no broken generation. */
static bool follows(const tc_meta *before, const tc_meta *meta) {
  struct tc_content_hash chain = tc_meta_chain(before), previous = tc_meta_previous(meta);

  return meta->generations[0]->gen == last_of(before)->gen + 1 &&
         meta->generations[0]->first_seq > last_of(before)->last_seq && meta->n_losses == 0 &&
         (before->ended == NULL || *before->ended == '\0') && !is_broken(before) &&
         chain.kind != TC_HASH_NONE && tc_hash_equal(&chain, &previous) &&
         meta->trace_header.len == before->trace_header.len &&
         memcmp(meta->trace_header.data, before->trace_header.data, meta->trace_header.len) == 0 &&
         strcmp(meta->level, before->level) == 0;
}

static tb_rc check_trace(struct upgrade *u, struct entry *entry) {
  uint64_t problems = u->look.out->problems;
  struct tc_archive_file file = {
    .dir_fd = u->old_fd, .day = u->day, .stream_hex = u->hex, .name = entry->name
  };

  snprintf(file.path, sizeof file.path, "archive/%s/%s/%s", u->day, u->hex, entry->name);
  tb_rc rc = tc__audit_trace(&u->look, &file, entry->meta);
  if (rc == TB_NOTFOUND) return TB_OK; /* the audit reports it */
  entry->is_good = rc == TB_OK && u->look.out->problems == problems;
  return rc;
}

/* Only where there is something to join: the others are not read. */
static tb_rc check_traces(struct upgrade *u) {
  struct entry *before = NULL;

  for (size_t i = 0; i < u->n; i++) {
    struct entry *entry = &u->entries[i];
    if (!tc_name_ends(entry->name, ".meta")) continue;
    if (before != NULL && is_plain(before) && is_plain(entry) &&
        follows(before->meta, entry->meta)) {
      if (!before->is_good) TB_TRY(check_trace(u, before));
      TB_TRY(check_trace(u, entry));
    }
    before = entry;
  }
  return TB_OK;
}

struct run { /* that is put together */
  struct entry *first, *last;
  uint64_t generations, bytes;
};

static bool has_room(const struct run *run, const tc_meta *meta) {
  return run->generations + meta->n_generations <= GENERATIONS_MAX &&
         run->bytes + meta->bytes <= RUN_BYTES_MAX &&
         meta->last_wall_ns - run->first->meta->first_wall_ns <= RUN_NS_MAX;
}

/* True: something is to be joined. */
static bool choose_runs(struct upgrade *u) {
  struct run run = { 0 };
  bool any = false;

  for (size_t i = 0; i < u->n; i++) {
    struct entry *entry = &u->entries[i];
    if (!tc_name_ends(entry->name, ".meta")) continue;
    bool joins = run.last != NULL && run.last->is_good && entry->is_good &&
                 follows(run.last->meta, entry->meta) && has_room(&run, entry->meta);
    if (!joins)
      run = (struct run){ .first = entry };
    else
      run.first->run = entry->run = (size_t)(run.first - u->entries) + 1;
    any |= joins;
    run.last = entry;
    if (entry->meta == NULL) continue;
    run.generations += entry->meta->n_generations;
    run.bytes += entry->meta->bytes;
  }
  return any;
}

/* ---- the new folder */

static bool is_joined(const struct upgrade *u, const char *name) {
  size_t stem = strcspn(name, ".");

  for (size_t i = 0; i < u->n; i++)
    if (u->entries[i].run != 0 && strncmp(u->entries[i].name, name, stem) == 0 &&
        u->entries[i].name[stem] == '.')
      return true;
  return false;
}

static tb_rc link_rest(struct upgrade *u) {
  for (size_t i = 0; i < u->n; i++) {
    const char *name = u->entries[i].name;
    if (!is_joined(u, name) && linkat(u->old_fd, name, u->new_fd, name, 0) != 0)
      return fail(u, name);
  }
  return TB_OK;
}

struct joined { /* a file that is written */
  int fd;
  uint64_t at;
  uint32_t crc;
  struct tc_hasher *hasher;
};

static tb_rc write_bytes(struct upgrade *u, struct joined *to, const unsigned char *bytes,
                         size_t n) {
  to->crc = tb_crc32c(to->crc, bytes, n);
  TB_TRY(tc_hasher_add(to->hasher, bytes, n));
  if (tc_write_all(to->fd, bytes, n, to->at) != 0) return fail(u, "a run");
  to->at += n;
  return TB_OK;
}

/* Where it lies in the new file, and its hash, go into its meta. */
static tb_rc copy_generation(struct upgrade *u, struct joined *to, int from_fd,
                             Tracecollect__V1__GenerationMeta *gen) {
  uint64_t begin = to->at;
  unsigned char *hash = malloc(TC_GENERATION_HASH_BYTES);

  if (hash == NULL) return TB_NOMEM;
  if (gen->hash.len > 0) free(gen->hash.data);
  gen->hash = (ProtobufCBinaryData){ TC_GENERATION_HASH_BYTES, hash };
  tc_hasher_begin(to->hasher);
  for (uint64_t at = 0; at < gen->bytes;) {
    uint64_t left = gen->bytes - at;
    size_t n = left < TC__LOOK_BYTES ? (size_t)left : TC__LOOK_BYTES;
    TB_TRY(tc_read_exactly(from_fd, "a trace", u->look.buf, n, gen->offset + at, u->look.diag));
    TB_TRY(write_bytes(u, to, u->look.buf, n));
    at += n;
  }
  tc_hasher_end(to->hasher, hash);
  gen->offset = begin;
  return TB_OK;
}

static tb_rc copy_segment(struct upgrade *u, struct joined *to, const tc_meta *meta) {
  char name[32];
  tb_rc rc = TB_OK;

  tc_trace_name(meta->generations[0]->gen, name);
  int fd = openat(u->old_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return fail(u, name);
  for (size_t i = 0; rc == TB_OK && i < meta->n_generations; i++)
    rc = copy_generation(u, to, fd, meta->generations[i]);
  close(fd);
  return rc;
}

/* Of all of them: what changes from one to the next is the last one's. */
static tb_rc write_meta(struct upgrade *u, const struct entry *first, size_t n,
                        const struct joined *trace) {
  tc_meta *last = NULL, meta = *first->meta;
  Tracecollect__V1__ContentHash hash_room, chain = TRACECOLLECT__V1__CONTENT_HASH__INIT;
  struct tc_content_hash hash, old;
  size_t generations = 0;
  char name[32];

  for (size_t i = 0; i < n; i++)
    if (first[i].run == first->run) generations += first[i].meta->n_generations;
  meta.generations = calloc(generations, sizeof(void *));
  if (meta.generations == NULL) return TB_NOMEM;
  meta.n_generations = 0;
  for (size_t i = 0; i < n; i++) {
    if (first[i].run != first->run) continue;
    last = first[i].meta;
    meta.unsafe_experiment |= last->unsafe_experiment;
    for (size_t k = 0; k < last->n_generations; k++)
      meta.generations[meta.n_generations++] = last->generations[k];
  }
  meta.bytes = trace->at;
  meta.crc = trace->crc;
  meta.last_wall_ns = last->last_wall_ns;
  meta.ended = last->ended;
  meta.stream_closed = last->stream_closed;
  meta.produced_batches = last->produced_batches;
  meta.produced_bytes = last->produced_bytes;
  old = tc_meta_chain(last);
  chain.kind = (Tracecollect__V1__HashKind)old.kind;
  chain.value = (ProtobufCBinaryData){ tc_hash_len(old.kind), old.bytes };
  meta.chain = &chain;
  tb_rc rc = tc_hasher_result(trace->hasher, &hash);
  if (rc == TB_OK) {
    tc_hash_put(&hash, &hash_room, &meta.sha256, &meta.hash);
    tc_meta_name(meta.generations[0]->gen, name);
    rc = tc_meta_write(u->new_fd, name, &meta, NULL, true, u->look.diag);
    if (rc == TB_OK) rc = tc_meta_publish(u->new_fd, name, u->look.diag);
  }
  free(meta.generations);
  return rc;
}

static tb_rc write_trace(struct upgrade *u, const struct entry *first, size_t n,
                         struct joined *trace) {
  const ProtobufCBinaryData *header = &first->meta->trace_header;

  TB_TRY(write_bytes(u, trace, header->data, header->len));
  for (size_t i = 0; i < n; i++)
    if (first[i].run == first->run) {
      TB_TRY(copy_segment(u, trace, first[i].meta));
      u->out->segments++;
    }
  u->out->runs++;
  u->out->bytes += trace->at;
  return fsync(trace->fd) == 0 ? TB_OK : fail(u, "a run");
}

static tb_rc join(struct upgrade *u, const struct entry *first) {
  size_t n = u->n - (size_t)(first - u->entries);
  struct joined trace = { .fd = -1 };
  char name[32];

  tc_trace_name(first->meta->generations[0]->gen, name);
  TB_TRY(tc_hasher_new(TC_HASH_XXH3, &trace.hasher));
  trace.fd = tc_file_create(u->new_fd, name, O_WRONLY);
  tb_rc rc = trace.fd >= 0 ? write_trace(u, first, n, &trace) : fail(u, name);
  if (rc == TB_OK) rc = write_meta(u, first, n, &trace);
  if (trace.fd >= 0) close(trace.fd);
  tc_hasher_free(trace.hasher);
  return rc;
}

static tb_rc make_folder(struct upgrade *u) {
  if (mkdirat(u->beside_fd, u->hex, 0750) != 0) return fail(u, "");
  u->new_fd = openat(u->beside_fd, u->hex, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (u->new_fd < 0) return fail(u, "");
  for (size_t i = 0; i < u->n; i++)
    if (u->entries[i].run == i + 1) TB_TRY(join(u, &u->entries[i]));
  TB_TRY(link_rest(u));
  return fsync(u->new_fd) == 0 ? TB_OK : fail(u, "");
}

/* ---- folders that are not needed any more */

static tb_rc remove_folder(struct upgrade *u, const char *name) {
  const char *file;
  DIR *dir;
  int fd = openat(u->beside_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

  if (fd < 0)
    return tb_fail(u->look.diag, tc_errno_rc(errno), "upgrade/%s: %s", name, strerror(errno));
  tb_rc rc = tc_dir_open(fd, beside, u->look.diag, &dir);
  if (rc == TB_OK) {
    while ((rc = tc_dir_next(dir, beside, u->look.diag, &file)) == TB_OK && file != NULL)
      (void)!unlinkat(fd, file, 0);
    closedir(dir);
  }
  close(fd);
  if (rc != TB_OK || unlinkat(u->beside_fd, name, AT_REMOVEDIR) == 0) return rc;
  return tb_fail(u->look.diag, tc_errno_rc(errno), "upgrade/%s: %s", name, strerror(errno));
}

/* Of a run that was killed, which may have been between an exchange and its sync: what is taken away here must not be what
 * a power cut puts back. */
static tb_rc clear_beside(struct upgrade *u) {
  const char *name;
  DIR *dir;

  if (syncfs(u->beside_fd) != 0)
    return tb_fail(u->look.diag, tc_errno_rc(errno), "upgrade: %s", strerror(errno));
  TB_TRY(tc_dir_open(u->beside_fd, beside, u->look.diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, beside, u->look.diag, &name)) == TB_OK &&
         name != NULL)
    rc = remove_folder(u, name);
  closedir(dir);
  return rc;
}

/* ---- one folder after the other */

static tb_rc put_in_place(struct upgrade *u) {
  int day_fd = openat(u->archive_fd, u->day, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

  if (day_fd < 0) return fail(u, "");
  tb_rc rc = TB_OK;
  if (renameat2(u->beside_fd, u->hex, day_fd, u->hex, RENAME_EXCHANGE) != 0) {
    rc = fail(u, "");
    if (errno == EINVAL || errno == ENOSYS)
      rc = tb_fail(u->look.diag, TB_REFUSED, "archive: the disk cannot exchange two folders");
  } else if (fsync(day_fd) != 0 || fsync(u->beside_fd) != 0) {
    rc = fail(u, "");
  }
  close(day_fd);
  return rc == TB_OK ? remove_folder(u, u->hex) : rc;
}

static tb_rc upgrade_folder(struct upgrade *u) {
  TB_TRY(read_folder(u));
  TB_TRY(check_traces(u));
  if (!choose_runs(u)) return TB_OK;
  TB_TRY(make_folder(u));
  u->out->folders++;
  return put_in_place(u);
}

static tb_rc visit(void *self, const struct tc_archive_file *file) {
  struct upgrade *u = self;

  if (strcmp(u->day, file->day) == 0 && strcmp(u->hex, file->stream_hex) == 0) return TB_OK;
  if (!tc_day_valid(file->day) || strlen(file->stream_hex) != TC_STREAM_HEX_BYTES - 1 ||
      (u->upto[0] != '\0' && strcmp(file->day, u->upto) >= 0))
    return TB_OK;
  strcpy(u->day, file->day);
  strcpy(u->hex, file->stream_hex);
  u->old_fd = fcntl(file->dir_fd, F_DUPFD_CLOEXEC, 3);
  tb_rc rc = u->old_fd >= 0 ? upgrade_folder(u) : fail(u, "");
  forget_folder(u);
  if (rc != TB_OK && u->look.diag->rc == TB_OK)
    return tb_fail(u->look.diag, rc, "archive/%s/%s: %s", u->day, u->hex, tb_rc_text(rc));
  return rc;
}

static void miss_folder(void *self, const char *text) {
  struct upgrade *u = self;

  tc__audit_problem(u->look.sink, u->look.out, "%s", text);
}

/* The oldest of the newest days. */
static tb_rc find_young(struct upgrade *u, unsigned days) {
  char young[TC_UPGRADE_YOUNG_MAX][TC_DAY_BYTES] = { 0 };
  const char *name;
  DIR *dir;

  if (days == 0) return TB_OK;
  TB_TRY(tc_dir_open(u->archive_fd, "archive", u->look.diag, &dir));
  tb_rc rc;
  while ((rc = tc_dir_next(dir, "archive", u->look.diag, &name)) == TB_OK && name != NULL) {
    unsigned at = days;
    if (!tc_day_valid(name)) continue;
    while (at > 0 && strcmp(young[at - 1], name) < 0) at--;
    if (at == days) continue;
    memmove(young[at + 1], young[at], (days - 1 - at) * sizeof young[0]);
    strcpy(young[at], name);
  }
  closedir(dir);
  memcpy(u->upto, young[days - 1][0] != '\0' ? young[days - 1] : "0000-00-00", sizeof u->upto);
  return rc;
}

static tb_rc upgrade_all(struct upgrade *u, int state_fd) {
  uint64_t listed;

  if (mkdirat(state_fd, beside, 0750) != 0 && errno != EEXIST)
    return tb_fail(u->look.diag, tc_errno_rc(errno), "upgrade: %s", strerror(errno));
  u->beside_fd = openat(state_fd, beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (u->beside_fd < 0)
    return tb_fail(u->look.diag, tc_errno_rc(errno), "upgrade: %s", strerror(errno));
  TB_TRY(clear_beside(u));
  TB_TRY(tc_catalog_mark_stale(state_fd, true, u->look.diag));
  tb_rc rc = tc_archive_walk(u->archive_fd, visit, miss_folder, u, u->look.diag);
  if (rc == TB_OK)
    rc = tc__rebuild_locked(state_fd, u->archive_fd, u->look.sink, u->look.diag, &listed);
  if (rc == TB_OK) (void)!unlinkat(state_fd, beside, AT_REMOVEDIR);
  return rc;
}

/* What is made here must be the collector's: it writes and deletes in these folders. */
static tb_rc check_owner(int state_fd, struct tb_diag *diag) {
  struct stat st;

  if (fstat(state_fd, &st) != 0) return tb_fail(diag, tc_errno_rc(errno), "%s", strerror(errno));
  if (st.st_uid == geteuid()) return TB_OK;
  return tb_fail(diag, TB_REFUSED,
                 "the folder belongs to user %u, this is user %u: run it as that user",
                 (unsigned)st.st_uid, (unsigned)geteuid());
}

tb_rc tc_upgrade(int state_fd, unsigned young_days, const struct tc_audit_sink *sink,
                 struct tb_diag *diag, struct tc_upgraded *out) {
  struct tc_audited seen = { 0 };
  struct upgrade u = { .look = { .sink = sink, .out = &seen, .diag = diag },
                       .archive_fd = -1,
                       .beside_fd = -1,
                       .old_fd = -1,
                       .new_fd = -1,
                       .out = out };
  struct tc_statedir_lock lock;

  *out = (struct tc_upgraded){ 0 };
  TB_TRY(check_owner(state_fd, diag));
  TB_TRY(tc__take_lock(state_fd, diag, &lock));
  tb_rc rc = tc__open_archive(state_fd, diag, &u.archive_fd);
  u.look.buf = malloc(TC__LOOK_BYTES);
  if (rc == TB_OK && u.look.buf == NULL) rc = tb_fail(diag, TB_NOMEM, "no memory");
  if (rc == TB_OK) rc = find_young(&u, young_days);
  if (rc == TB_OK) rc = upgrade_all(&u, state_fd);
  out->problems = seen.problems;
  free(u.look.buf);
  free(u.entries);
  if (u.beside_fd >= 0) close(u.beside_fd);
  if (u.archive_fd >= 0) close(u.archive_fd);
  tc_statedir_unlock(&lock);
  return rc;
}
