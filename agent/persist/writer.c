/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/persist/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include "agent/host/clock.h"

#define MS UINT64_C(1000000)

enum {
  FLUSH_MS = 100,
  RETRY_MS = 10000,
  PUNCH_BYTES = 1 << 20,
  PIECE_BYTES_MIN = 8 << 10, /* minimum that a piece counts for FLUSH_BYTES */
};

/* Bytes written in one turn of the thread: a disk may be slower than the trace, and the thread has other work. */
#define FLUSH_BYTES UINT64_C(0x200000)

tb_rc ta_spool_writer_init(struct ta_spool_writer *m, const struct ta_spool_writer_config *config,
                           struct ta_spool *spool) {
  *m = (struct ta_spool_writer){ .spool = spool, .log = config->log, .log_self = config->log_self };
  ta_spool_dir_init(&m->dir, config->root, config->bytes_max);
  snprintf(m->state.service, sizeof m->state.service, "%s", config->service);
  snprintf(m->state.instance, sizeof m->state.instance, "%s", config->instance);
  m->room = malloc(TA_PIECE_BYTES);
  return m->room != NULL ? TB_OK : TB_NOMEM;
}

void ta_spool_writer_fini(struct ta_spool_writer *m) {
  if (m->spool == NULL) return;
  ta_spool_dir_leave(&m->dir);
  close(m->dir.root);
  free(m->room);
  *m = (struct ta_spool_writer){ 0 };
}

static void report_fault(struct ta_spool_writer *m, const char *what, const struct tb_diag *diag) {
  char text[sizeof diag->text + 64];

  snprintf(text, sizeof text, "spool on disk %s: %s", what, diag->text);
  if (atomic_fetch_add(&m->reported_faults, 1) == 0 && m->log != NULL)
    m->log(m->log_self, LOG_WARNING, text);
}

/* Removes the files, so that no successor takes over an old state. The stream continues without files. */
static void give_up(struct ta_spool_writer *m) {
  ta_spool_keep_not(m->spool);
  ta_spool_dir_remove(&m->dir);
  m->on = m->full = false;
  m->due_ns = ta_mono_ns() + RETRY_MS * MS;
  m->reported_bytes = 0;
}

static void fail(struct ta_spool_writer *m, const struct tb_diag *diag) {
  if (!m->full) report_fault(m, "is off", diag);
  give_up(m);
}

static tb_rc open_shelf(struct ta_spool_writer *m, struct tb_diag *diag) {
  struct ta_accounting accounting;

  if (getrandom(&m->state.salt, sizeof m->state.salt, GRND_NONBLOCK) != sizeof m->state.salt)
    return tb_fail(diag, TB_IO, "no random bytes");
  tb_rc rc = ta_spool_dir_make(&m->dir, m->state.stream, diag);
  if (rc == TB_AGAIN) return tb_fail(diag, TB_IO, "%s is locked", m->dir.name);
  TB_TRY(rc);
  ta_spool_keep(m->spool);
  ta_spool_accounting(m->spool, &accounting);
  m->dropped_id = accounting.front_id - 1;
  m->punched_bytes = 0;
  m->on = m->stale = true;
  m->full = false;
  return TB_OK;
}

/* Writes the state, and only then deletes the files that it no longer needs. */
static tb_rc put_state(struct ta_spool_writer *m, struct tb_diag *diag) {
  struct ta_accounting *accounting = &m->state.accounting;

  TB_TRY(ta_spool_dir_state(&m->dir, &m->state, diag));
  m->stale = false;
  if (accounting->front_id > m->dropped_id + 1) {
    ta_spool_dir_drop(&m->dir, m->dropped_id + 1, accounting->front_id - 1);
    m->dropped_id = accounting->front_id - 1;
    m->punched_bytes = 0;
  }
  if (accounting->front_bytes >= m->punched_bytes + PUNCH_BYTES) {
    ta_spool_dir_punch(&m->dir, accounting->front_id, m->punched_bytes, accounting->front_bytes);
    m->punched_bytes = accounting->front_bytes;
  }
  return TB_OK;
}

static tb_rc look(struct ta_spool_writer *m, struct tb_diag *diag) {
  struct ta_accounting accounting;

  ta_spool_accounting(m->spool, &accounting);
  if (!m->stale && memcmp(&accounting, &m->state.accounting, sizeof accounting) == 0) return TB_OK;
  m->state.accounting = accounting;
  return put_state(m, diag);
}

/* Keeps a piece for which there is no room, and all later ones, for the next try. The folder gets its first state only if its
 * files contain every numbered record; otherwise returns TB_IO. */
static tb_rc wait_for_room(struct ta_spool_writer *m, const struct ta_piece *piece,
                           struct tb_diag *diag) {
  ta_spool_unsaved_again(m->spool, piece);
  if (!ta_spool_has_kept(m->spool)) return TB_IO;
  if (m->dir.serial == 0 && !ta_spool_given_kept(m->spool)) return TB_IO;
  if (!m->full) report_fault(m, "takes no more", diag);
  m->full = true;
  return look(m, diag);
}

/* Writes pieces, then the state. At first, the folder is not valid until its first state is written. */
static tb_rc flush(struct ta_spool_writer *m, uint64_t bytes, struct tb_diag *diag) {
  struct ta_piece piece;
  uint64_t done = 0;

  if (!m->on) TB_TRY(open_shelf(m, diag));
  if (m->full) TB_TRY(look(m, diag)); /* newly acked runs make room */
  while (ta_spool_unsaved(m->spool, m->state.salt, m->room, &piece)) {
    if (ta_spool_dir_put(&m->dir, m->state.salt, &piece, m->room, diag) != TB_OK)
      return wait_for_room(m, &piece, diag);
    m->full = false;
    ta_spool_dir_drop(&m->dir, piece.kept_covers + 1, piece.run.covers);
    done += piece.n > PIECE_BYTES_MIN ? piece.n : PIECE_BYTES_MIN;
    if (done >= bytes && (m->dir.serial > 0 || ta_spool_given_kept(m->spool))) {
      m->due_ns = 0; /* continue in the next turn */
      break;
    }
  }
  return look(m, diag);
}

static void flush_upto(struct ta_spool_writer *m, uint64_t bytes) {
  uint64_t now = ta_mono_ns();
  struct tb_diag diag;

  if (m->room == NULL || (!m->on && now < m->due_ns)) return;
  if (m->full && !ta_spool_has_kept(m->spool)) {
    give_up(m);
    return;
  }
  if (m->full && now < m->due_ns) return;
  tb_diag_clear(&diag);
  m->due_ns = now + FLUSH_MS * MS;
  if (flush(m, bytes, &diag) != TB_OK)
    fail(m, &diag);
  else
    m->reported_bytes = m->dir.bytes;
}

void ta_spool_writer_flush(struct ta_spool_writer *m) {
  flush_upto(m, FLUSH_BYTES);
}

void ta_spool_writer_note(struct ta_spool_writer *m) {
  struct tb_diag diag;

  if (!m->on) return;
  tb_diag_clear(&diag);
  if (look(m, &diag) != TB_OK) fail(m, &diag);
}

void ta_spool_writer_begin(struct ta_spool_writer *m, const unsigned char stream[16],
                           uint64_t started_wall_ns) {
  if (m->room == NULL) return;
  if (m->on) ta_spool_dir_remove(&m->dir);
  ta_spool_keep_not(m->spool);
  m->on = m->full = false;
  memcpy(m->state.stream, stream, sizeof m->state.stream);
  m->state.started_wall_ns = started_wall_ns;
  m->due_ns = 0;
  ta_spool_writer_flush(m);
}

void ta_spool_writer_end(struct ta_spool_writer *m) {
  if (m->room == NULL) return;
  if (!ta_spool_done(m->spool)) flush_upto(m, UINT64_MAX);
  m->reported_bytes = ta_spool_done(m->spool) ? 0 : m->dir.bytes;
  if (m->on && ta_spool_done(m->spool)) ta_spool_dir_remove(&m->dir);
  ta_spool_dir_leave(&m->dir); /* from here on another process may take the folder */
  m->on = false;
}

void ta_spool_writer_forked(struct ta_spool_writer *m) {
  if (m->room != NULL) ta_spool_dir_forked(&m->dir);
}
