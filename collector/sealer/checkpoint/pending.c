/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/checkpoint/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/text/hex.h"
#include "collector/sealer/checkpoint/checkpoint.h"
#include "collector/sealer/checkpoint/published.h"
#include "collector/sealer/seal/rebuild.h"

struct pending {
  struct tc__seal *seal;
  tb_rc (*stream_of)(void *self, const unsigned char id[16], const char *identity,
                     const char *service, const char *instance, uint32_t *out_ref);
  void *self;
  struct tb_diag *diag;
  tc_meta **ahead; /* metas that have more verdicts than their rows */
  size_t nahead, ahead_cap;
  struct tc_segment_row last; /* the row that was offered last */
  bool has_last;
  bool has_failed; /* offering a row failed, not the catalog */
};

/* Reads the row's meta; *out is NULL if it cannot be read (tracectl verify says why). If the meta has verdicts that the row
 * misses, the collector may have been killed before it synced the folder: sync it now. */
static tb_rc read_meta(const struct tc__env *env, const char *day, const char *hex,
                       uint64_t first_gen, struct tb_diag *diag, tc_meta **out) {
  char name[32];
  int dir_fd = tc_statedir_stream(env->opt.dirs->archive, day, hex, false);
  tb_rc rc = TB_OK;

  *out = NULL;
  if (dir_fd < 0) return TB_OK;
  tc_meta_name(first_gen, name);
  if (tc_meta_read(dir_fd, name, NULL, out) == TB_OK &&
      tc__count_pending(*out) < (*out)->n_generations && env->opt.durable && fsync(dir_fd) != 0)
    rc = tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, hex, strerror(errno));
  close(dir_fd);
  return rc;
}

/* The collector was killed after it wrote a verdict's meta and before the row. Takes ownership of the meta. */
static tb_rc remember_ahead(struct pending *pending, tc_meta *meta) {
  if (TB_GROW(pending->ahead, pending->ahead_cap, pending->nahead) != TB_OK) {
    tc_meta_free(meta);
    return TB_NOMEM;
  }
  pending->ahead[pending->nahead++] = meta;
  return TB_OK;
}

static bool was_offered(const struct pending *pending, const struct tc_segment_row *row) {
  int order = pending->has_last ? memcmp(row->stream, pending->last.stream, sizeof row->stream) : 1;

  return order < 0 || (order == 0 && row->first_gen <= pending->last.first_gen);
}

static tb_rc offer(struct pending *pending, const struct tc_segment_row *row) {
  char day[TC_DAY_BYTES], hex[TC_STREAM_HEX_BYTES];
  tc_meta *meta;
  uint32_t ref;

  memcpy(day, row->path + sizeof "archive/" - 1, TC_DAY_BYTES - 1);
  day[TC_DAY_BYTES - 1] = '\0';
  if (!tc_day_valid(day)) return TB_OK;
  tb_hex(row->stream, sizeof row->stream, hex);
  tb_rc rc = read_meta(pending->seal->env, day, hex, row->first_gen, pending->diag, &meta);
  if (rc != TB_OK || meta == NULL || meta->n_generations == 0) {
    tc_meta_free(meta);
    return rc;
  }
  rc = pending->stream_of(pending->self, row->stream, meta->identity, row->service, row->instance,
                          &ref);
  struct tc__stream *stream = rc == TB_OK ? tc__find_stream(&pending->seal->streams, ref) : NULL;
  if (stream != NULL) rc = tc__offer_meta(&pending->seal->outbox, stream, meta);
  if (rc == TB_OK && tc__count_pending(meta) < meta->n_generations)
    return remember_ahead(pending, meta);
  tc_meta_free(meta);
  return rc;
}

static tb_rc offer_row(void *self, const struct tc_segment_row *row) {
  struct pending *pending = self;

  if (was_offered(pending, row)) return TB_OK;
  pending->last = *row;
  pending->has_last = true;
  tb_rc rc = offer(pending, row);
  pending->has_failed = rc != TB_OK;
  return rc;
}

static tb_rc put_ahead(struct pending *pending) {
  struct tc__seal *seal = pending->seal;

  if (pending->nahead == 0) return TB_OK;
  TB_TRY(tc__catalog_begin(seal->catalog, pending->diag));
  for (size_t i = 0; i < pending->nahead; i++)
    TB_TRY(tc__put_row(seal->catalog, pending->ahead[i], pending->diag));
  return tc__catalog_commit(seal->catalog, pending->diag);
}

/* If the catalog cannot be read to its end, rebuilds it and continues after the row that was offered last. */
static tb_rc offer_rows(struct pending *pending) {
  struct tc__seal *seal = pending->seal;
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(seal->catalog)) return TB_OK;
  tb_rc rc = tc_catalog_pending(seal->catalog->db, offer_row, pending, &why);
  if (rc == TB_OK || pending->has_failed) return rc;
  if (rc != TB_CORRUPT) return tb_fail(pending->diag, rc, "%s", why.text);
  TB_TRY(tc__catalog_failed(seal->catalog, &why, pending->diag));
  tc__rebuild_catalog(seal);
  if (!tc__catalog_takes_rows(seal->catalog))
    return TB_OK; /* logged; the next start offers the rest */
  return tc_catalog_pending(seal->catalog->db, offer_row, pending, pending->diag);
}

tb_rc tc__offer_archived(struct tc__seal *seal,
                         tb_rc (*stream_of)(void *self, const unsigned char id[16],
                                            const char *identity, const char *service,
                                            const char *instance, uint32_t *out_ref),
                         void *self, struct tb_diag *diag) {
  struct pending pending = { .seal = seal, .stream_of = stream_of, .self = self, .diag = diag };

  tb_rc rc = offer_rows(&pending);
  if (rc == TB_OK) rc = put_ahead(&pending); /* not during the walk over the rows */
  if (rc == TB_OK) tc__offer_resumed(seal);
  for (size_t i = 0; i < pending.nahead; i++) tc_meta_free(pending.ahead[i]);
  free(pending.ahead);
  return rc;
}
