/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "archive/day_ledger.h"
#include "archive/meta.h"
#include "archive/walk.h"
#include "proto/frame.pb-c.h"
#include "sim/world.h"

/* Counts what the metas report of a unit. */
struct seen {
  unsigned times;          /* archived, or its LOSS recorded */
  uint64_t batches, bytes; /* reported as lost, by agent or store */
};

struct proof {
  const struct sim_agents *agents;
  struct seen *seen[SIM_STREAMS]; /* by unit */
  unsigned ended[SIM_STREAMS];
  struct tc_day_ledger ledger; /* of the day that is being walked, if it has one */
  unsigned char *bytes;        /* of the current trace */
  size_t nbytes, cap;
  uint64_t records; /* of ledgers */
};

static const struct sim_unit *unit_with(const struct sim_script *script, uint64_t last_seq,
                                        bool is_loss) {
  for (size_t i = 0; i < script->nunits; i++)
    if (script->units[i].last_seq == last_seq && (script->units[i].lost_gens > 0) == is_loss)
      return &script->units[i];
  return NULL;
}

static struct seen *seen_of(const struct proof *proof, unsigned stream,
                            const struct sim_unit *unit) {
  return &proof->seen[stream][unit - proof->agents->scripts[stream].units];
}

static void see(struct proof *proof, unsigned stream, const struct sim_unit *unit,
                const char *path) {
  if (seen_of(proof, stream, unit)->times++ > 0)
    sim_violation("I2: %s: has generation %" PRIu64 " of stream %u again", path, unit->gen, stream);
}

/* Returns the unit that the store reports as given up, even if its agent gave it up too. */
static const struct sim_unit *given_up(const struct proof *proof, unsigned stream,
                                       const Tracecollect__V1__LossMeta *loss) {
  const struct sim_script *script = &proof->agents->scripts[stream];

  if (loss->reason != TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN) return NULL;
  for (size_t i = 0; i < script->nunits; i++) {
    const struct sim_unit *unit = &script->units[i];
    if (loss->seq >= unit->first_seq && loss->seq <= unit->last_seq)
      return loss->first_gen == unit->gen && loss->last_gen == unit->gen ? unit : NULL;
  }
  return NULL;
}

/* A run of whole generations that is rotten: all of each is lost. Returns false if the loss is another one. */
static bool see_run(struct proof *proof, unsigned stream, const Tracecollect__V1__LossMeta *loss) {
  const struct sim_script *script = &proof->agents->scripts[stream];
  uint64_t gen = loss->first_gen, batches = 0, bytes = 0;
  size_t first = 0, end;

  if (loss->reason != TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN ||
      loss->last_gen <= loss->first_gen)
    return false;
  while (first < script->nunits && script->units[first].first_seq != loss->seq) first++;
  for (end = first; end < script->nunits && gen <= loss->last_gen; end++, gen++) {
    const struct sim_unit *unit = &script->units[end];
    if (unit->lost_gens > 0 || unit->gen != gen) return false;
    batches += unit->batches;
    bytes += unit->bytes;
  }
  if (gen <= loss->last_gen || batches != loss->batches || bytes != loss->bytes) return false;
  for (size_t i = first; i < end; i++) {
    seen_of(proof, stream, &script->units[i])->batches += script->units[i].batches;
    seen_of(proof, stream, &script->units[i])->bytes += script->units[i].bytes;
  }
  return true;
}

static void expect_loss(struct proof *proof, unsigned stream,
                        const Tracecollect__V1__LossMeta *loss, const char *path) {
  if (see_run(proof, stream, loss)) return;
  const struct sim_unit *unit = given_up(proof, stream, loss);

  if (unit == NULL) {
    unit = unit_with(&proof->agents->scripts[stream], loss->seq, true);
    if (unit == NULL)
      sim_violation("I3: %s: record %" PRIu64 " is no loss of %" PRIu64 " batches", path, loss->seq,
                    loss->batches);
    see(proof, stream, unit, path);
  }
  seen_of(proof, stream, unit)->batches += loss->batches;
  seen_of(proof, stream, unit)->bytes += loss->bytes;
}

static void read_trace(struct proof *proof, int dir_fd, const tc_meta *meta, const char *path) {
  char name[32];

  tc_trace_name(meta->generations[0]->gen, name);
  int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 && meta->expired) sim_violation("I4: %s: has expired, and its trace is there", path);
  if (meta->expired) return;
  if (fd < 0) sim_violation("I4: %s: has no trace", path);
  proof->nbytes = (size_t)sim_size(sim_fd_of(fd)->file);
  if (proof->nbytes > proof->cap) {
    proof->cap = proof->nbytes;
    proof->bytes = realloc(proof->bytes, proof->cap);
    if (proof->bytes == NULL) abort();
  }
  sim_read(sim_fd_of(fd)->file, proof->bytes, proof->nbytes, 0);
  close(fd);
}

static const struct sim_unit *expect_unit(struct proof *proof, unsigned stream,
                                          const Tracecollect__V1__GenerationMeta *gen,
                                          const char *path) {
  const struct sim_unit *unit = unit_with(&proof->agents->scripts[stream], gen->last_seq, false);

  if (unit == NULL || unit->gen != gen->gen || unit->first_seq != gen->first_seq)
    sim_violation("I3: %s: records %" PRIu64 " to %" PRIu64 " are no generation", path,
                  gen->first_seq, gen->last_seq);
  see(proof, stream, unit, path);
  return unit;
}

static void expect_bytes(const struct proof *proof, unsigned stream, const struct sim_unit *unit,
                         const Tracecollect__V1__GenerationMeta *gen, const char *path) {
  const struct sim_script *script = &proof->agents->scripts[stream];
  uint64_t at = gen->offset;

  for (uint64_t seq = unit->first_seq; seq < unit->last_seq; seq++) {
    const struct sim_record *record = &script->records[seq - 1];
    if (record->len > proof->nbytes - at ||
        memcmp(proof->bytes + at, record->payload, record->len) != 0)
      sim_violation("I4: %s: record %" PRIu64 " has other bytes", path, seq);
    at += record->len;
  }
  if (at != gen->offset + gen->bytes || at > proof->nbytes)
    sim_violation("I4: %s: generation %" PRIu64 " ends elsewhere", path, gen->gen);
}

static void expect_losses_and_end(struct proof *proof, unsigned stream, const tc_meta *meta,
                                  const char *path) {
  for (size_t i = 0; i < meta->n_losses; i++) expect_loss(proof, stream, meta->losses[i], path);
  bool ended = meta->ended != NULL && *meta->ended != '\0';
  if (ended && (meta->stream_closed || !proof->agents->impatient)) proof->ended[stream]++;
}

static unsigned stream_of(const tc_meta *meta, const char *path) {
  unsigned stream = meta->stream.data[0] - 1u;

  if (stream >= SIM_STREAMS) sim_violation("I4: %s: nobody's stream", path);
  return stream;
}

/* ---- ledgers */

/* Expects the sums in a record to match all units between its first and its last record that are
 * not lost. */
static void expect_sums(struct proof *proof, const tc_meta *meta, const char *path) {
  const Tracecollect__V1__GenerationMeta *sum = meta->generations[0];
  unsigned stream = stream_of(meta, path);
  const struct sim_script *script = &proof->agents->scripts[stream];
  uint64_t generations = 0, batches = 0, bytes = 0;

  for (size_t i = 0; i < script->nunits; i++) {
    const struct sim_unit *unit = &script->units[i];
    if (unit->lost_gens > 0 || unit->first_seq < sum->first_seq || unit->last_seq > sum->last_seq ||
        seen_of(proof, stream, unit)->batches > 0)
      continue;
    see(proof, stream, unit, path);
    generations++;
    batches += unit->batches;
    bytes += unit->bytes;
  }
  if (generations != meta->folded->generations || batches != sum->batches || bytes != sum->bytes)
    sim_violation("I7: %s: stream %u: records %" PRIu64 " to %" PRIu64 ": %" PRIu64
                  " generations are folded, %" PRIu64 " were sent",
                  path, stream, sum->first_seq, sum->last_seq, meta->folded->generations,
                  generations);
}

static bool is_ledger(const struct tc_archive_file *file) {
  return file->stream_hex[0] == '\0';
}

static void read_ledger(struct proof *proof, const struct tc_archive_file *file) {
  struct tc_day_ledger_options options = { 0 };
  struct tb_diag diag = { 0 };

  if (tc_day_ledger_read(file->dir_fd, file->day, &options, &diag, &proof->ledger) != TB_OK)
    sim_violation("I4: %s", diag.text);
}

static tb_rc expect_records(struct proof *proof, const struct tc_archive_file *file) {
  read_ledger(proof, file);
  for (size_t i = 0; i < proof->ledger.n; i++) {
    const tc_meta *meta = proof->ledger.records[i].meta;
    expect_losses_and_end(proof, stream_of(meta, file->path), meta, file->path);
    proof->records++;
  }
  return TB_OK;
}

static tb_rc expect_ledger_sums(void *self, const struct tc_archive_file *file) {
  struct proof *proof = self;

  if (!is_ledger(file)) return TB_OK;
  read_ledger(proof, file);
  for (size_t i = 0; i < proof->ledger.n; i++)
    expect_sums(proof, proof->ledger.records[i].meta, file->path);
  return TB_OK;
}

/* ---- the whole archive */

static tb_rc expect_file(void *self, const struct tc_archive_file *file) {
  struct proof *proof = self;
  struct tb_diag diag = { 0 };
  tc_meta *meta;

  if (is_ledger(file)) return expect_records(proof, file);
  if (!tc_name_ends(file->name, ".meta")) return TB_OK; /* traces are checked with their metas */
  if (tc_meta_read(file->dir_fd, file->name, &diag, &meta) != TB_OK)
    sim_violation("I4: %s: %s", file->path, diag.text);
  if (tc_day_ledger_covers(&proof->ledger, meta)) {
    tc_meta_free(meta);
    return TB_OK;
  }
  unsigned stream = stream_of(meta, file->path);
  if (meta->n_generations > 0) read_trace(proof, file->dir_fd, meta, file->path);
  for (size_t i = 0; i < meta->n_generations; i++) {
    const struct sim_unit *unit = expect_unit(proof, stream, meta->generations[i], file->path);
    if (!meta->expired) expect_bytes(proof, stream, unit, meta->generations[i], file->path);
  }
  expect_losses_and_end(proof, stream, meta, file->path);
  tc_meta_free(meta);
  return TB_OK;
}

/* Expects a generation to be archived, or given up and lost if the store is impatient; a loss to be reported in full,
 * by the agent or before it. */
static void expect_seen(const struct proof *proof, unsigned stream, const struct sim_unit *unit) {
  const struct seen *seen = seen_of(proof, stream, unit);
  bool is_loss = unit->lost_gens > 0;

  if (seen->times == 0 && (is_loss || seen->batches == 0 || !proof->agents->impatient))
    sim_violation("I1: stream %u: generation %" PRIu64 "%s, acked up to record %" PRIu64
                  ", is not in the archive",
                  stream, unit->gen, is_loss ? " (lost)" : "", unit->last_seq);
  bool lost = is_loss || seen->times == 0;
  uint64_t batches = lost ? unit->batches : 0, bytes = lost ? unit->bytes : 0;
  if (seen->batches != batches || seen->bytes != bytes)
    sim_violation("I7: stream %u: of generation %" PRIu64 " %" PRIu64 " batches of %" PRIu64
                  " bytes are lost, %" PRIu64 " of %" PRIu64 " are told",
                  stream, unit->gen, batches, bytes, seen->batches, seen->bytes);
}

static void expect_all_seen(const struct proof *proof) {
  for (unsigned stream = 0; stream < SIM_STREAMS; stream++) {
    const struct sim_script *script = &proof->agents->scripts[stream];
    const struct sim_agent *agent = &proof->agents->agents[stream];
    size_t due = 0;
    for (; due < script->nunits && script->units[due].last_seq <= agent->end_at; due++)
      expect_seen(proof, stream, &script->units[due]);
    for (size_t i = due; i < script->nunits; i++)
      if (proof->seen[stream][i].times > 0 || proof->seen[stream][i].batches > 0)
        sim_violation("I3: stream %u: generation %" PRIu64 " was not sent", stream,
                      script->units[i].gen);
    if (due > 0 && proof->ended[stream] != 1)
      sim_violation("I7: stream %u: its end is told %u times", stream, proof->ended[stream]);
  }
}

static void note_problem(void *self, const char *text) {
  (void)self;
  sim_violation("tracectl verify: %s", text);
}

static void expect_no_rest(int state_fd) {
  struct sim_file *open = sim_find(sim_fd_of(state_fd)->file, "open");
  const char *name = sim_name_at(open, 0);

  if (name != NULL) sim_violation("I4: open/%s: is left over", name);
}

struct sim_whole sim_expect_whole(const struct sim_agents *agents, bool verify) {
  struct proof proof = { .agents = agents };
  struct tc_audit_sink sink = { .problem = note_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen = { 0 };
  int state_fd = open(SIM_STATE, O_RDONLY | O_DIRECTORY);
  int archive_fd = openat(state_fd, "archive", O_RDONLY | O_DIRECTORY);

  for (unsigned i = 0; i < SIM_STREAMS; i++)
    if ((proof.seen[i] = calloc(agents->scripts[i].nunits + 1, sizeof(struct seen))) == NULL)
      abort();
  if (tc_archive_walk(archive_fd, expect_file, NULL, &proof, &diag) != TB_OK)
    sim_violation("I4: %s", diag.text);
  /* Once all losses are known. */
  if (tc_archive_walk(archive_fd, expect_ledger_sums, NULL, &proof, &diag) != TB_OK)
    sim_violation("I4: %s", diag.text);
  tc_day_ledger_fini(&proof.ledger);
  expect_all_seen(&proof);
  expect_no_rest(state_fd);
  if (verify && tc_audit(state_fd, true, &sink, &diag, &seen) != TB_OK)
    sim_violation("tracectl verify: %s", diag.text);
  close(archive_fd);
  close(state_fd);
  for (unsigned i = 0; i < SIM_STREAMS; i++) free(proof.seen[i]);
  free(proof.bytes);
  return (struct sim_whole){ seen.expired, proof.records };
}

/* ---- hash of the archive */

static uint64_t fold(uint64_t hash, const void *bytes, size_t n) {
  const unsigned char *at = bytes;

  for (size_t i = 0; i < n; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static tb_rc hash_file(void *self, const struct tc_archive_file *file) {
  uint64_t *hash = self;
  int fd = openat(file->dir_fd, file->name, O_RDONLY);
  size_t n = (size_t)sim_size(sim_fd_of(fd)->file);
  unsigned char *bytes = malloc(n + 1);

  if (bytes == NULL) abort();
  n = sim_read(sim_fd_of(fd)->file, bytes, n, 0);
  *hash = fold(fold(*hash, file->path, strlen(file->path)), bytes, n);
  free(bytes);
  close(fd);
  return TB_OK;
}

uint64_t sim_archive_hash(void) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  struct tb_diag diag = { 0 };
  int state_fd = open(SIM_STATE, O_RDONLY | O_DIRECTORY);
  int archive_fd = openat(state_fd, "archive", O_RDONLY | O_DIRECTORY);

  if (tc_archive_walk(archive_fd, hash_file, NULL, &hash, &diag) != TB_OK)
    sim_violation("I4: %s", diag.text);
  close(archive_fd);
  close(state_fd);
  return hash;
}
