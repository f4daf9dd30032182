/* SPDX-License-Identifier: Apache-2.0 */
/* Status of a stream, texts of errors, the version. */
#include "agent/api/private.h"

#include <stdio.h>
#include <string.h>

#include "agent/host/faults.h"
#include "agent/host/keep.h"
#include "base/text/hex.h"
#include "proto/loss.h"

static enum ta_state public_state(const struct ta_forward *f,
                                  const struct ta_client_status *client) {
  if (ta__forward_is_mistaken(f)) return TA_STATE_OFF;
  switch (client->state) {
  case TA_AT_STREAMING:
  case TA_AT_LEAVING: return TA_STATE_STREAMING;
  case TA_AT_WAITING: return TA_STATE_WAITING;
  case TA_AT_ENDED:
    if (client->refused) return TA_STATE_REFUSED;
    return f->closed ? TA_STATE_CLOSED : TA_STATE_OFF;
  default: return TA_STATE_CONNECTING;
  }
}

int ta_forward_status(ta_forward *f, struct ta_forward_status *out) {
  KEEP_ERRNO;
  if (f == NULL || out == NULL) return TA_E_MISUSE;
  struct ta_forward_status status = { .size = out->size };
  struct ta_client_status client;
  struct ta_counters counters;
  struct ta_recorded recorded;

  if (!ta_process_owns(&f->member)) return TA_E_OFF;
  ta_spool_recorded(&f->spool, &recorded);
  ta_client_status(&f->client, &client);
  ta_spool_counters(&f->spool, &counters);
  status.state = public_state(f, &client);
  status.produced_batches = counters.produced.batches;
  status.produced_bytes = counters.produced.bytes;
  status.acked_batches = counters.acked.batches;
  status.acked_bytes = counters.acked.bytes;
  status.acked_generations = counters.acked_generations;
  status.lost_batches = counters.lost.batches;
  status.lost_bytes = counters.lost.bytes;
  status.lost_generations = counters.lost_generations;
  status.spool_bytes = counters.spooled.bytes;
  status.spool_bytes_peak = counters.spooled_peak.bytes;
  status.connects = client.connects;
  status.reconnects = client.welcomes > 0 ? client.welcomes - 1 : 0;
  status.resent_batches = counters.resent_batches;
  status.faults = atomic_load(&f->client.keeper.failed);
  status.begun_anew = client.restarted;
  if (f->disk.spool != NULL) {
    status.disk_bytes = atomic_load(&f->disk.reported_bytes);
    status.disk_faults = atomic_load(&f->disk.reported_faults);
    ta_recovery_reported(&f->recovery, &status.old_streams, &status.old_streams_sent);
  }
  status.recorded_generations = recorded.generations;
  status.recorded_bytes = recorded.bytes;
  status.forgotten_generations = recorded.forgotten_generations;
  status.snaps = recorded.snaps;
  tb_hex(client.stream, sizeof client.stream, status.stream);
  if (counters.lost_generations > 0)
    snprintf(status.last_loss, sizeof status.last_loss, "%s", tp_loss_text(counters.last_loss));
  memcpy(status.last_error, client.last_error, sizeof status.last_error);
  memcpy(out, &status, out->size < sizeof status ? out->size : sizeof status);
  return TA_OK;
}

const char *ta_version(void) {
  return TA_VERSION;
}

/* The text of the thread's last error, or the general text of the code. */
static const char *own_or(const char *text) {
  const char *own = ta_fault_text();

  return own != NULL ? own : text;
}

const char *ta_strerror(int error) {
  switch (error) {
  case TA_OK: return "done";
  case TA_E_CONFIG: return own_or("configuration is incomplete or wrong");
  case TA_E_NOMEM: return "out of memory";
  case TA_E_TIMEOUT: return "not all was acked before the deadline";
  case TA_E_OFF: return own_or("the agent is off");
  case TA_E_REFUSED: return "the collector refused for good";
  case TA_E_CERT: return own_or("certificate or key cannot be used");
  case TA_E_CLOSED: return "the stream is closed";
  case TA_E_BUSY: return "a session of emitting is open already";
  case TA_E_KEPT: return "not all was acked before the deadline; it is on disk, for the next start";
  case TA_E_SYSTEM: return own_or("the system refuses what a stream needs");
  case TA_E_THREAD: return "no thread could be started";
  case TA_E_MISUSE: return "the call makes no sense here";
  case TA_E_FILE: return "the file cannot be written";
  case TA_E_UNEXPECTED: return "another event came than was expected";
  default: return "unknown error";
  }
}
