/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/agents.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/ingest/record_pool.h"
#include "proto/frame.h"
#include "proto/meta.pb-c.h"
#include "sim/wire.h"
#include "sim/world.h"

static const uint64_t MS = 1000000, PATIENCE_NS = UINT64_C(600000000000);

static void (*say_context)(void *self);
static void *context_self;

void sim_violation_context(void (*say)(void *self), void *self) {
  say_context = say;
  context_self = self;
}

void sim_violation(const char *fmt, ...) {
  va_list args;

  fprintf(stderr, "VIOLATION: ");
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fprintf(stderr, "\n");
  if (say_context != NULL) say_context(context_self);
  exit(1);
}

void sim_config(struct tc_config *config, unsigned generations_max) {
  tc_config_init(config);
  free(config->top_state);
  config->top_state = strdup(SIM_STATE);
  config->log_file_bytes = 1 << 20;
  config->log_group_bytes = 64 << 10;
  config->log_checkpoint_bytes = 512 << 10;
  config->segment_generations_max = generations_max;
  config->disk_free_min = config->disk_reserve_bytes = 0;
  config->retention_age = config->retention_free_bytes = 0;
}

/* ---- replies of the store */

static unsigned stream_of_conn(const struct sim_agents *agents, uint64_t conn) {
  unsigned stream = 0;

  while (stream < SIM_STREAMS && agents->agents[stream].conn != conn) stream++;
  return stream;
}

/* Takes a reply that is sent to an agent over a connection, which delivers it later or never. */
static void hear_wired(struct sim_agents *agents, const struct tc_reply *reply) {
  unsigned stream = sim_wires_answer(agents, reply);
  const struct sim_agent *agent = &agents->agents[stream];

  if (stream == SIM_STREAMS) return;
  if (reply->kind == TC_REPLY_ATTACHED && reply->seq < agent->acked)
    sim_violation("I1: stream %u: %" PRIu64 " was acked, the store knows %" PRIu64, stream,
                  agent->acked, reply->seq);
  if ((reply->kind == TC_REPLY_ATTACHED || reply->kind == TC_REPLY_ACKED) &&
      reply->seq > agent->sent)
    sim_violation("I8: stream %u: %" PRIu64 " was sent, the store knows %" PRIu64, stream,
                  agent->sent, reply->seq);
}

static void hear(struct sim_agents *agents, const struct tc_reply *reply) {
  if (agents->wired && reply->conn != 0) {
    hear_wired(agents, reply);
    return;
  }
  unsigned stream = reply->conn == 0 ? SIM_STREAMS : stream_of_conn(agents, reply->conn);
  struct sim_agent *agent = stream < SIM_STREAMS ? &agents->agents[stream] : NULL;

  switch (reply->kind) {
  case TC_REPLY_ATTACHED:
    if (agent == NULL) break;
    if (reply->seq < agent->acked)
      sim_violation("I1: stream %u: %" PRIu64 " was acked, the store knows %" PRIu64, stream,
                    agent->acked, reply->seq);
    if (reply->seq > agent->sent)
      sim_violation("I2: stream %u: %" PRIu64 " was sent, the store knows %" PRIu64, stream,
                    agent->sent, reply->seq);
    agent->ref = reply->stream;
    agent->acked = reply->seq;
    agent->next = reply->seq + 1;
    break;
  case TC_REPLY_ACKED:
    if (agent == NULL) break;
    if (reply->seq >= agent->next)
      sim_violation("I8: stream %u: %" PRIu64 " is acked, %" PRIu64 " was not sent", stream,
                    reply->seq, agent->next);
    if (reply->seq > agent->acked) agent->acked = reply->seq;
    break;
  case TC_REPLY_REFUSED:
  case TC_REPLY_SUPERSEDED:
    if (agent == NULL) break;
    agent->conn = 0;
    agent->ref = 0;
    break;
  case TC_REPLY_STORED:
    if (reply->gen != 0 && reply->len > 0 && agents->nstored < SIM_STORED_MAX)
      agents->stored[agents->nstored++] = (struct sim_stored){ reply->stream, reply->gen };
    break;
  case TC_REPLY_FAILED: agents->failed = true; break;
  case TC_REPLY_BARRIER: agents->barrier = reply->barrier; break;
  default: break;
  }
}

static bool take_reply(void *self, enum tc_from from, struct tc_reply *reply) {
  struct sim_agents *agents = self;

  (void)from;
  if (!agents->dead) hear(agents, reply);
  tc_reply_free(reply);
  return true;
}

static void take_note(void *self, const struct tc_note *note) {
  (void)self;
  if (getenv("SIM_NOTES") != NULL) fprintf(stderr, "%s\n", note->text);
}

/* ---- records of the agents */

static struct tc_submit *submit_new(enum tc_submit_kind kind) {
  struct tc_submit *msg = tc_submit_new(kind);

  if (msg == NULL) abort();
  return msg;
}

static void submit(struct sim_agents *agents, struct tc_submit *msg) {
  while (!tc_store_submit(agents->store, 0, msg)) sim_turn(sim_world->mono_ns + MS);
}

void sim_attach_fill(struct tc_attach *attach, unsigned stream,
                     const unsigned char id[TC_STREAM_BYTES]) {
  memcpy(attach->stream, id, TC_STREAM_BYTES);
  snprintf(attach->identity, sizeof attach->identity, "tracecollect:agent/a");
  snprintf(attach->service, sizeof attach->service, "shop");
  snprintf(attach->instance, sizeof attach->instance, "%u", stream);
}

static void attach(struct sim_agents *agents, unsigned stream) {
  struct sim_agent *agent = &agents->agents[stream];
  unsigned char id[TC_STREAM_BYTES];

  agent->conn = ++agents->last_conn;
  agent->ref = 0;
  memset(id, (int)stream + 1, sizeof id);
  if (agents->wired) {
    sim_wire_open(agents, stream, agent->conn, id);
    return;
  }
  struct tc_submit *msg = submit_new(TC_SUBMIT_ATTACH);
  msg->conn = agent->conn;
  sim_attach_fill(&msg->attach, stream, id);
  submit(agents, msg);
}

void sim_agents_leave(struct sim_agents *agents, unsigned stream) {
  struct sim_agent *agent = &agents->agents[stream];

  if (agent->conn == 0) return;
  if (agents->wired) {
    sim_wire_leave(agents, agent->conn);
  } else {
    struct tc_submit *msg = submit_new(TC_SUBMIT_DETACH);
    msg->conn = agent->conn;
    submit(agents, msg);
  }
  agent->conn = agent->ref = 0;
}

void sim_agents_stall(struct sim_agents *agents, unsigned stream, uint64_t ns) {
  uint64_t conn = agents->agents[stream].conn;

  if (conn != 0) sim_wire_stall(agents, conn, ns);
}

void sim_agents_lose_touch(struct sim_agents *agents, unsigned stream) {
  uint64_t conn = agents->agents[stream].conn;

  if (conn != 0) sim_wire_swallow(agents, conn);
}

void sim_agents_step(struct sim_agents *agents) {
  bool moving = sim_wires_step(agents);

  sim_turn(moving ? sim_world->mono_ns + MS : sim_world->mono_ns + PATIENCE_NS);
}

static void free_record(struct tc_record *record) {
  free(record);
}

static struct tc_submit *record_of(const struct sim_agents *agents, unsigned stream, uint64_t seq) {
  const struct sim_agent *agent = &agents->agents[stream];
  bool is_close = agent->end_at != 0 && seq == agent->end_at + 1;
  struct sim_record from = is_close ? sim_script_close(&agents->scripts[stream], agent->end_at)
                                    : agents->scripts[stream].records[seq - 1];
  struct tc_submit *msg = submit_new(TC_SUBMIT_RECORD);
  struct tc_record *record = malloc(sizeof *record + from.len);

  if (record == NULL) abort();
  *record = (struct tc_record){ .free = free_record,
                                .magic = TC_RECORD_MAGIC,
                                .conn = agent->conn,
                                .seq = seq,
                                .gen = from.gen,
                                .stream = agent->ref,
                                .len = from.len,
                                .crc = from.crc,
                                .kind = from.kind };
  memcpy(record->payload, from.payload, from.len);
  if (is_close) free(from.payload);
  msg->conn = agent->conn;
  msg->record = record;
  return msg;
}

static uint64_t last_of(const struct sim_agents *agents, unsigned stream) {
  const struct sim_agent *agent = &agents->agents[stream];

  return agent->end_at != 0 ? agent->end_at + 1 : agents->scripts[stream].nrecords;
}

bool sim_agents_send(struct sim_agents *agents, unsigned stream) {
  struct sim_agent *agent = &agents->agents[stream];

  if (agents->failed) return false;
  if (agent->conn == 0) {
    attach(agents, stream);
    return true;
  }
  if (agent->ref == 0 || agent->next > agent->acked + SIM_UNACKED_MAX ||
      agent->next > last_of(agents, stream))
    return false;
  struct tc_submit *msg = record_of(agents, stream, agent->next);
  if (agent->sent < agent->next) agent->sent = agent->next;
  agent->next++;
  if (agents->wired) {
    sim_wire_say(agents, agent->conn, msg->record);
    tc_submit_free(msg);
  } else {
    submit(agents, msg);
  }
  return true;
}

bool sim_agents_understand(struct sim_agents *agents) {
  if (agents->nstored == 0) return false;
  size_t i = (size_t)sim_below(&agents->chance, agents->nstored);
  struct tc_submit *msg = submit_new(TC_SUBMIT_VERDICT);
  msg->verdict = (struct tc_verdict){ .stream = agents->stored[i].ref,
                                      .gen = agents->stored[i].gen,
                                      .code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK,
                                      .events = 10 * agents->stored[i].gen,
                                      .first_ns = 1,
                                      .last_ns = 2,
                                      .thread = TB_NO_THREAD };
  agents->stored[i] = agents->stored[--agents->nstored];
  submit(agents, msg);
  return true;
}

/* ---- runs */

/* Keeps what was traced about now, as a trigger would. */
static void keep_some(struct sim_agents *agents) {
  uint64_t now = sim_world->wall_ns;
  struct tc_keep keep = { .from_ns = now - agents->keep_ns,
                          .until_ns = now + agents->keep_ns,
                          .noted_ns = now,
                          .rule = "sim" };
  struct tb_diag diag = { 0 };

  if (tc_keeps_add(tc_store_keeps(agents->store), &keep) == TB_OK)
    (void)!tc_keeps_save(tc_store_keeps(agents->store), &diag); /* a disk that fails loses it */
}

bool sim_agents_start(struct sim_agents *agents, struct tb_diag *diag) {
  struct tc_store_sink sink = { agents, take_reply, take_note };

  agents->nstored = 0;
  agents->failed = false;
  for (unsigned i = 0; i < SIM_STREAMS; i++) agents->agents[i].conn = agents->agents[i].ref = 0;
  sim_world->inside++;
  tb_rc rc = tc_store_open(agents->config, 1, sink, diag, &agents->store);
  if (rc == TB_OK && agents->keep_ns != 0) keep_some(agents);
  sim_world->inside--;
  if (rc != TB_OK) return false;
  for (unsigned i = 0; i < SIM_STREAMS; i++)
    if (agents->agents[i].sent > 0) attach(agents, i);
  return true;
}

void sim_agents_stop(struct sim_agents *agents) {
  sim_wires_end(agents);
  sim_world->inside++;
  tc_store_close(agents->store);
  sim_world->inside--;
  agents->store = NULL;
  if (tc_records_held_bytes() > 0)
    sim_violation("I9: %zu bytes of records are left", tc_records_held_bytes());
  for (unsigned i = 0; i < SIM_STREAMS; i++)
    if (atomic_load(&agents->quotas[i].record_bytes) > 0)
      sim_violation("I9: stream %u: %zu bytes are still charged to its agent", i,
                    atomic_load(&agents->quotas[i].record_bytes));
}

bool sim_agents_end_soon(struct sim_agents *agents) {
  for (unsigned i = 0; i < SIM_STREAMS; i++) {
    struct sim_agent *agent = &agents->agents[i];
    if (agent->sent == 0 || agent->end_at != 0) continue;
    for (uint64_t limit = sim_world->mono_ns + PATIENCE_NS; agent->ref == 0;
         sim_agents_step(agents)) {
      if (agents->failed) return false;
      if (agent->conn == 0) attach(agents, i);
      if (sim_world->mono_ns >= limit) sim_violation("stream %u: no answer to its attach", i);
    }
    /* Records that are already sent arrive, too. */
    agent->end_at = sim_script_border(&agents->scripts[i], agent->next > 1 ? agent->next - 1 : 1);
  }
  return true;
}

bool sim_agents_are_done(const struct sim_agents *agents) {
  for (unsigned i = 0; i < SIM_STREAMS; i++) {
    const struct sim_agent *agent = &agents->agents[i];
    if (agent->sent > 0 && (agent->ref == 0 || agent->acked < last_of(agents, i))) return false;
  }
  return true;
}

static bool wait_barrier(struct sim_agents *agents) {
  uint64_t limit = sim_world->mono_ns + PATIENCE_NS;
  struct tc_submit *msg = submit_new(TC_SUBMIT_BARRIER);

  msg->barrier = agents->barrier + 1;
  uint64_t cookie = msg->barrier;
  submit(agents, msg);
  while (agents->barrier != cookie && !agents->failed) {
    if (sim_world->mono_ns >= limit) sim_violation("the archive is not told to be whole");
    sim_turn(limit);
  }
  return !agents->failed;
}

bool sim_agents_finish(struct sim_agents *agents, bool understand) {
  uint64_t limit = sim_world->mono_ns + PATIENCE_NS;

  while (!sim_agents_are_done(agents) && !agents->failed) {
    bool idle = true;
    for (unsigned i = 0; i < SIM_STREAMS; i++)
      while (agents->agents[i].sent > 0 && sim_agents_send(agents, i)) idle = false;
    if (idle) sim_agents_step(agents);
    if (sim_world->mono_ns >= limit) sim_violation("what was sent is not acked");
  }
  if (agents->failed || !wait_barrier(agents)) return false;
  if (!understand || agents->nstored == 0) return true;
  while (sim_agents_understand(agents)) continue;
  return wait_barrier(agents);
}
