/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/archive_walk.h"
#include "collector/meta.h"
#include "collector/verify.h"
#include "sim/world.h"

struct proof {
  const struct sim_agents *agents;
  unsigned char *seen[SIM_STREAMS]; /* by unit */
  unsigned ended[SIM_STREAMS];
  unsigned char *bytes; /* of the trace that is looked at */
  size_t nbytes, cap;
};

static const struct sim_unit *unit_with(const struct sim_script *script, uint64_t last_seq,
                                        bool is_loss) {
  for (size_t i = 0; i < script->nunits; i++)
    if (script->units[i].last_seq == last_seq && (script->units[i].lost_gens > 0) == is_loss)
      return &script->units[i];
  return NULL;
}

static void see(struct proof *proof, unsigned stream, const struct sim_unit *unit,
                const char *path) {
  size_t i = (size_t)(unit - proof->agents->scripts[stream].units);

  if (proof->seen[stream][i]++ > 0)
    sim_violation("I2: %s: has generation %" PRIu64 " of stream %u again", path, unit->gen, stream);
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
    if (record->len > proof->nbytes - at || memcmp(proof->bytes + at, record->payload, record->len))
      sim_violation("I4: %s: record %" PRIu64 " has other bytes", path, seq);
    at += record->len;
  }
  if (at != gen->offset + gen->bytes || at > proof->nbytes)
    sim_violation("I4: %s: generation %" PRIu64 " ends elsewhere", path, gen->gen);
}

static tb_rc expect_file(void *self, const struct tc_archive_file *file) {
  struct proof *proof = self;
  struct tb_diag diag = { 0 };
  tc_meta *meta;

  if (!tc_name_ends(file->name, ".meta")) return TB_OK; /* traces are looked at with their metas */
  if (tc_meta_read(file->dir_fd, file->name, &diag, &meta) != TB_OK)
    sim_violation("I4: %s: %s", file->path, diag.text);
  unsigned stream = meta->stream.data[0] - 1u;
  if (stream >= SIM_STREAMS) sim_violation("I4: %s: nobody's stream", file->path);
  if (meta->n_generations > 0) read_trace(proof, file->dir_fd, meta, file->path);
  for (size_t i = 0; i < meta->n_generations; i++) {
    const struct sim_unit *unit = expect_unit(proof, stream, meta->generations[i], file->path);
    if (!meta->expired) expect_bytes(proof, stream, unit, meta->generations[i], file->path);
  }
  for (size_t i = 0; i < meta->n_losses; i++) {
    const struct sim_unit *unit =
        unit_with(&proof->agents->scripts[stream], meta->losses[i]->seq, true);
    if (unit == NULL || unit->batches != meta->losses[i]->batches ||
        unit->bytes != meta->losses[i]->bytes)
      sim_violation("I3: %s: record %" PRIu64 " is no loss of %" PRIu64 " batches", file->path,
                    meta->losses[i]->seq, meta->losses[i]->batches);
    see(proof, stream, unit, file->path);
  }
  if (meta->ended != NULL && *meta->ended != '\0') proof->ended[stream]++;
  tc_meta_free(meta);
  return TB_OK;
}

static void expect_all_seen(const struct proof *proof) {
  for (unsigned stream = 0; stream < SIM_STREAMS; stream++) {
    const struct sim_script *script = &proof->agents->scripts[stream];
    const struct sim_agent *agent = &proof->agents->agents[stream];
    size_t due = 0;
    for (; due < script->nunits && script->units[due].last_seq <= agent->end_at; due++)
      if (!proof->seen[stream][due])
        sim_violation("I1: stream %u: generation %" PRIu64 "%s, acked up to record %" PRIu64
                      ", is not in the archive",
                      stream, script->units[due].gen, script->units[due].lost_gens ? " (lost)" : "",
                      script->units[due].last_seq);
    for (size_t i = due; i < script->nunits; i++)
      if (proof->seen[stream][i])
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

uint64_t sim_expect_whole(const struct sim_agents *agents, bool verify) {
  struct proof proof = { .agents = agents };
  struct tc_verify_sink sink = { .problem = note_problem };
  struct tb_diag diag = { 0 };
  struct tc_verified seen = { 0 };
  int state_fd = open(SIM_STATE, O_RDONLY | O_DIRECTORY);
  int archive_fd = openat(state_fd, "archive", O_RDONLY | O_DIRECTORY);

  for (unsigned i = 0; i < SIM_STREAMS; i++)
    if ((proof.seen[i] = calloc(1, agents->scripts[i].nunits + 1)) == NULL) abort();
  if (tc_archive_walk(archive_fd, expect_file, &proof, &diag) != TB_OK)
    sim_violation("I4: %s", diag.text);
  expect_all_seen(&proof);
  expect_no_rest(state_fd);
  if (verify && tc_verify(state_fd, true, &sink, &diag, &seen) != TB_OK)
    sim_violation("tracectl verify: %s", diag.text);
  close(archive_fd);
  close(state_fd);
  for (unsigned i = 0; i < SIM_STREAMS; i++) free(proof.seen[i]);
  free(proof.bytes);
  return seen.expired;
}

/* ---- one number for it all */

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

  if (tc_archive_walk(archive_fd, hash_file, &hash, &diag) != TB_OK)
    sim_violation("I4: %s", diag.text);
  close(archive_fd);
  close(state_fd);
  return hash;
}
