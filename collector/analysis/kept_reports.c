/* SPDX-License-Identifier: Apache-2.0 */
/* Archives reports: every reports.every of a stream's time, and at its end, a report of each kind. Each is of the stretch
 * since the last one, so stretches can be added up (pack/merge.h). If a record is lost, the next stretch contains its time. */
#include "base/clock.h"
#include "collector/analysis/private.h"
#include "pack/report.h"
#include "proto/put.h"

enum { ROWS_MAX = 16, REPLY_REPORTS = 1 }; /* REPLY_REPORTS: the field of ReportReply */

static tb_rc put_report(struct tc__analysed *s, enum to_analysis_kind kind, struct tb_buf *packed) {
  const struct tp_report_about about = { .stream = s->id,
                                         .service = s->service,
                                         .instance = s->instance,
                                         .broken_generations = s->broken,
                                         .ended_wall_ns = s->kept.ended_wall_ns };
  struct tb_buf *reply = &s->kept.reply;

  TB_TRY(tp_report_pack(s->analyses, kind, TO_WINDOW_STRETCH, ROWS_MAX, &about, packed));
  s->kept.from_ns = to_analyses_last_report(s->analyses)->from_wall_ns;
  TB_TRY(tb_buf_reserve(reply, TP_FIELD_BYTES + packed->len));
  unsigned char *end =
      tp_put_bytes(reply->data + reply->len, REPLY_REPORTS, packed->data, packed->len);
  reply->len = (size_t)(end - reply->data);
  return TB_OK;
}

/* Packs one kind only: a slice of the loop has no time for more. */
static tb_rc put_next(struct tc__analysed *s) {
  struct tb_buf packed;

  tb_buf_init(&packed, &s->mem);
  tb_rc rc = put_report(s, (enum to_analysis_kind)s->kept.kinds, &packed);
  tb_buf_fini(&packed);
  s->kept.kinds++;
  return rc;
}

static tb_rc add_record(const struct tc__analysed *s) {
  const struct tb_buf *reply = &s->kept.reply;
  const struct tc_report_record record = {
    .from_ns = s->kept.from_ns, .until_ns = s->kept.seen_ns, .reply = reply->data, .len = reply->len
  };

  return tc_history_add(s->u->env.kept, s->id, &record);
}

/* The first report of a stream is due after the same time as later ones. */
void tc__analysed_kept_see(struct tc__analysed *s, to_ns last_ns) {
  uint64_t now_ns = to_analyses_wall(s->analyses, last_ns);

  if (now_ns == 0) return;
  s->kept.seen_ns = now_ns;
  if (s->kept.last_ns == 0 || now_ns < s->kept.last_ns) s->kept.last_ns = now_ns;
}

bool tc__analysed_keeps(const struct tc__analysed *s, bool is_over) {
  uint64_t every_ns = s->u->env.config->reports_every, since_ns = s->kept.seen_ns - s->kept.last_ns;

  if (s->u->env.kept == NULL || s->analyses == NULL || every_ns == 0) return false;
  return is_over ? s->kept.seen_ns != 0 : since_ns >= every_ns;
}

static void begin_record(struct tc__analysed *s) {
  tb_buf_init(&s->kept.reply, &s->mem);
  s->kept.ended_wall_ns = s->jobs->stored->stream_closed ? tc_wall_ns() : 0;
}

bool tc__analysed_keep(struct tc__analysed *s) {
  if (s->kept.kinds == 0) begin_record(s);
  tb_rc rc = put_next(s);
  if (rc == TB_OK && s->kept.kinds < TO_ANALYSIS_KINDS) return false;
  if (rc == TB_OK) rc = add_record(s);
  if (rc == TB_OK) rc = to_analyses_mark(s->analyses);
  if (rc != TB_OK) tc_metric_add(&s->u->env.metrics->reports_not_kept_total, 1);
  tc__analysed_kept_drop(s);
  s->kept.last_ns = s->kept.seen_ns;
  return true;
}

void tc__analysed_kept_drop(struct tc__analysed *s) {
  tb_buf_fini(&s->kept.reply);
  s->kept.kinds = 0;
}
