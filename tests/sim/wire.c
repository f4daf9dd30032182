/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/ingest/session.h"
#include "sim/memory.h"
#include "sim/world.h"

enum { CREDIT_BYTES = 4 << 20, HELD_BYTES_MAX = 1 << 20, AGENT_HELD_BYTES_MAX = 32 << 10 };

static const uint64_t SILENCE_NS = UINT64_C(15000000000);

struct sim_wire {
  struct sim_wire *next;
  struct sim_agents *agents;
  unsigned stream;
  uint64_t conn;
  bool left;   /* by the agent */
  bool closed; /* by the collector */
  bool held;   /* the collector has a whole frame that it cannot take now */
  uint64_t stalled_until_ns, silent_until_ns; /* mono; 0: not at all. Silent: half open */

  struct tc_ingest ingest;
  struct tb_diag diag;
  unsigned char *bytes; /* on their way to the collector */
  size_t n, cap;

  bool welcome; /* on its way to the agent, as is an ack, if it is not 0 */
  uint64_t welcome_seq, ack_seq, acked;
};

static struct sim_wire *find(const struct sim_agents *agents, uint64_t conn) {
  struct sim_wire *wire = agents->wires;

  while (wire != NULL && wire->conn != conn) wire = wire->next;
  return wire;
}

static void free_wire(struct sim_wire *wire) {
  struct sim_wire **at = &wire->agents->wires;

  while (*at != wire) at = &(*at)->next;
  *at = wire->next;
  tc_ingest_fini(&wire->ingest);
  free(wire->bytes);
  free(wire);
}

/* ---- the collector's side */

/* Takes msg, NULL if memory is short. TB_AGAIN: try later. */
static tb_rc submit(struct sim_wire *wire, struct tc_submit *msg) {
  if (msg == NULL) return TB_AGAIN;
  msg->conn = wire->conn;
  if (tc_store_submit(wire->agents->store, 0, msg)) return TB_OK;
  if (msg->kind == TC_SUBMIT_RECORD) msg->record = NULL; /* stays ingest's */
  tc_submit_free(msg);
  return TB_AGAIN;
}

static tb_rc take_hello(void *self, const Tracecollect__V1__Hello *hello) {
  struct sim_wire *wire = self;
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);

  if (hello->stream.len != TC_STREAM_BYTES) sim_violation("a hello came without its stream");
  if (msg != NULL) sim_attach_fill(&msg->attach, wire->stream, hello->stream.data);
  return submit(wire, msg);
}

static tb_rc take_record(void *self, struct tc_record *record) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_RECORD);

  if (msg != NULL) msg->record = record;
  return submit(self, msg);
}

static void take_known(void *self, uint64_t bytes) {
  struct sim_wire *wire = self;

  (void)bytes;
  wire->ack_seq = wire->acked;
}

static void take_heartbeat(void *self, const Tracecollect__V1__Heartbeat *heartbeat) {
  (void)self;
  (void)heartbeat;
}

static void notice(struct sim_wire *wire) {
  if (submit(wire, tc_submit_new(TC_SUBMIT_DETACH)) == TB_OK) free_wire(wire);
}

static bool arrive(struct sim_wire *wire) {
  static const size_t sizes[] = { 1, 40, 4000 };
  struct sim_chance *chance = &wire->agents->chance;
  size_t n = 1 + (size_t)sim_below(chance, sizes[sim_below(chance, 3)]), used;

  if (n > wire->n) n = wire->n;
  sim_world->inside++;
  tb_rc rc = tc_ingest_bytes(&wire->ingest, wire->bytes, n, &used);
  sim_world->inside--;
  if (rc == TB_NOMEM)
    wire->closed = true; /* the agent reconnects, with the same */
  else if (rc != TB_OK && rc != TB_AGAIN)
    sim_violation("stream %u: what its agent says is refused: %s", wire->stream, wire->diag.text);
  wire->held = rc == TB_AGAIN;
  wire->n -= used;
  memmove(wire->bytes, wire->bytes + used, wire->n);
  return used > 0;
}

/* ---- the agent's side */

static void append(struct sim_wire *wire, const void *bytes, size_t n) {
  if (wire->cap - wire->n < n) {
    wire->cap = 2 * (wire->n + n);
    wire->bytes = sim_reallocarray(wire->bytes, wire->cap, 1);
  }
  memcpy(wire->bytes + wire->n, bytes, n);
  wire->n += n;
}

static void say(struct sim_wire *wire, struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES];

  frame->flags = TP_CRITICAL;
  tp_frame_head(frame, head);
  append(wire, head, sizeof head);
  append(wire, frame->payload, frame->len);
}

void sim_wire_open(struct sim_agents *agents, unsigned stream, uint64_t conn,
                   const unsigned char id[TC_STREAM_BYTES]) {
  struct sim_wire *wire = sim_calloc(1, sizeof *wire);
  struct tc_ingest_sink sink = {
    .self = wire,
    .hello = take_hello,
    .record = take_record,
    .known = take_known,
    .heartbeat = take_heartbeat,
  };
  Tracecollect__V1__Hello hello = TRACECOLLECT__V1__HELLO__INIT;
  unsigned char message[128];

  wire->next = agents->wires;
  agents->wires = wire;
  wire->agents = agents;
  wire->stream = stream;
  wire->conn = conn;
  tc_ingest_init(&wire->ingest, conn, HELD_BYTES_MAX, sink, &wire->diag);
  wire->ingest.quota = &agents->quotas[stream];
  wire->ingest.tenant_held_max = AGENT_HELD_BYTES_MAX;
  hello.major = 1;
  hello.stream = (ProtobufCBinaryData){ TC_STREAM_BYTES, (uint8_t *)(uintptr_t)id };
  struct tp_frame frame = { .kind = TP_HELLO, .payload = message };
  frame.len = (uint32_t)tracecollect__v1__hello__pack(&hello, message);
  say(wire, &frame);
}

void sim_wire_say(struct sim_agents *agents, uint64_t conn, const struct tc_record *record) {
  struct tp_frame frame = { .kind = (enum tp_kind)record->kind,
                            .seq = record->seq,
                            .gen = record->gen,
                            .payload = record->payload,
                            .len = record->len };

  say(find(agents, conn), &frame);
}

void sim_wire_leave(struct sim_agents *agents, uint64_t conn) {
  find(agents, conn)->left = true;
}

void sim_wire_stall(struct sim_agents *agents, uint64_t conn, uint64_t ns) {
  find(agents, conn)->stalled_until_ns = sim_world->mono_ns + ns;
}

void sim_wire_swallow(struct sim_agents *agents, uint64_t conn) {
  find(agents, conn)->silent_until_ns = sim_world->mono_ns + SILENCE_NS;
}

static bool listen(struct sim_wire *wire) {
  struct sim_agent *agent = &wire->agents->agents[wire->stream];

  if (wire->welcome) {
    wire->welcome = false;
    agent->ref = 1;
    agent->acked = wire->welcome_seq;
    agent->next = agent->acked + 1;
  } else if (wire->ack_seq > 0) {
    if (wire->ack_seq > agent->acked) agent->acked = wire->ack_seq;
    wire->ack_seq = 0;
  } else if (wire->closed) {
    agent->conn = agent->ref = 0;
    wire->left = true;
  } else {
    return false;
  }
  return true;
}

/* ---- between the collector and the agent */

unsigned sim_wires_answer(struct sim_agents *agents, const struct tc_reply *reply) {
  struct sim_wire *wire = find(agents, reply->conn);

  if (wire == NULL || wire->closed) return SIM_STREAMS;
  switch (reply->kind) {
  case TC_REPLY_ATTACHED:
    tc_ingest_attached(&wire->ingest, reply->stream, reply->seq, CREDIT_BYTES);
    wire->welcome = true;
    wire->welcome_seq = wire->acked = reply->seq;
    break;
  case TC_REPLY_ACKED: wire->ack_seq = wire->acked = reply->seq; break;
  case TC_REPLY_REFUSED:
  case TC_REPLY_SUPERSEDED: wire->closed = true; break;
  default: break;
  }
  return wire->stream;
}

/* A step in which no message arrives; both sides notice the silence after a while. */
static void step_silently(struct sim_wire *wire) {
  struct sim_agent *agent = &wire->agents->agents[wire->stream];

  wire->n = 0;
  if (sim_world->mono_ns < wire->silent_until_ns) return;
  if (agent->conn == wire->conn) agent->conn = agent->ref = 0;
  notice(wire);
}

static bool step(struct sim_wire *wire) {
  struct sim_chance *chance = &wire->agents->chance;
  bool moved = false;

  if (wire->silent_until_ns != 0) {
    step_silently(wire);
    return false;
  }
  if (sim_world->mono_ns < wire->stalled_until_ns) return false;
  if (!wire->closed && (wire->n > 0 || wire->held) && sim_once_in(chance, 2)) moved |= arrive(wire);
  if (!wire->left && sim_once_in(chance, 2)) moved |= listen(wire);
  if (wire->left && (wire->closed || wire->n == 0 || sim_once_in(chance, 8))) {
    notice(wire);
    return true;
  }
  return moved || wire->n > 0 || wire->held || wire->welcome || wire->ack_seq > 0 || wire->closed;
}

bool sim_wires_step(struct sim_agents *agents) {
  bool moved = false;

  for (struct sim_wire *wire = agents->wires, *next; wire != NULL; wire = next) {
    next = wire->next;
    moved |= step(wire);
  }
  return moved;
}

void sim_wires_end(struct sim_agents *agents) {
  while (agents->wires != NULL) free_wire(agents->wires);
  for (unsigned i = 0; i < SIM_STREAMS; i++) agents->agents[i].conn = agents->agents[i].ref = 0;
}
