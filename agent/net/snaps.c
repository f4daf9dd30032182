/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/snaps.h"

#include "agent/host/clock.h"
#include "agent/net/sending.h"
#include "agent/spool/wanted.h"
#include "proto/frame.pb-c.h"

static tb_rc say(struct ta_client *c, Tracecollect__V1__SnapResult result,
                 const struct ta_snapped *done) {
  Tracecollect__V1__Snapped m = TRACECOLLECT__V1__SNAPPED__INIT;

  m.id = done->id;
  m.result = result;
  m.first_gen = done->first_gen;
  m.last_gen = done->last_gen;
  m.generations = done->generations;
  m.batches = done->all.batches;
  m.bytes = done->all.bytes;
  m.lost_generations = done->lost_generations;
  m.from_wall_ns = done->from_wall_ns;
  m.to_wall_ns = done->to_wall_ns;
  return ta__client_say(c, TP_SNAPPED, &m.base);
}

/* Begins a snap: first releases the held runs, then asks for the generation's end. In the other order the generation might have
 * ended before the release, and the snap would wait for the end of the next one. */
static tb_rc begin(struct ta_client *c, uint64_t last_ns, uint64_t id) {
  bool wake;
  tb_rc rc = ta_spool_snap(c->spool, last_ns, id, &wake);

  void (*cut)(void) = atomic_load(&c->cut);
  if (rc == TB_OK && cut != NULL) cut();
  if (wake) ta_client_wake(c);
  return rc;
}

/* A refusal, too, is sent only after all granted bytes. If a second snap is refused before that, it is not answered, and the
 * collector's wait times out. */
void ta__snaps_begin(struct ta_client *c, uint64_t id, uint64_t last_ns) {
  tb_rc rc = begin(c, last_ns, id);

  if (rc == TB_OK) return;
  c->snaps.refused_id = id;
  c->snaps.busy = rc == TB_BUDGET;
}

static tb_rc answer_refused(struct ta_client *c) {
  const struct ta_snapped none = { .id = c->snaps.refused_id };

  c->snaps.refused_id = 0;
  return say(c,
             c->snaps.busy ? TRACECOLLECT__V1__SNAP_RESULT__SNAP_BUSY
                           : TRACECOLLECT__V1__SNAP_RESULT__SNAP_NOT_RECORDING,
             &none);
}

tb_rc ta__snaps_answer(struct ta_client *c) {
  struct ta_snapped done;

  if (c->state != TA_AT_STREAMING || c->fd_full) return TB_OK;
  if (c->snaps.refused_id != 0) TB_TRY(answer_refused(c));
  while (!c->fd_full && ta_spool_snapped(c->spool, &done))
    TB_TRY(say(c,
               done.first_gen != 0 ? TRACECOLLECT__V1__SNAP_RESULT__SNAP_SHIPPED
                                   : TRACECOLLECT__V1__SNAP_RESULT__SNAP_NOTHING,
               &done));
  return TB_OK;
}

void ta_client_ask_snap(struct ta_client *c, uint64_t last_ns) {
  ta_wanted_ask(&c->snap, last_ns);
  ta_client_wake(c);
}

void ta_client_take_snap(struct ta_client *c) {
  uint64_t last_ns;

  if (atomic_load_explicit(&c->snap, memory_order_relaxed) == 0) return;
  if (ta_wanted_take(&c->snap, &last_ns) && begin(c, last_ns, 0) != TB_OK)
    return; /* not a flight recorder */
}
