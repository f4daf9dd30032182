/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that stay: once in reports.every of a stream's time, and at its end, one of each kind of the window that is as long. */
#include "collector/analysis/private.h"
#include "pack/report.h"
#include "proto/put.h"

enum { ROWS_MAX = 16, REPLY_REPORTS = 1 }; /* the field of ReportReply that they are in */

static const struct length {
  enum to_window window;
  uint64_t ns;
} lengths[] = { { TO_WINDOW_10S, UINT64_C(10000000000) },
                { TO_WINDOW_1MIN, UINT64_C(60000000000) },
                { TO_WINDOW_5MIN, UINT64_C(300000000000) } };

/* The shortest that leaves nothing out, or the longest. */
static const struct length *length_of(uint64_t every_ns) {
  const struct length *last = &lengths[sizeof lengths / sizeof *lengths - 1];

  for (const struct length *length = lengths; length < last; length++)
    if (length->ns >= every_ns) return length;
  return last;
}

static tb_rc put_report(struct tc__understood *s, enum to_analysis_kind kind, enum to_window window,
                        struct tb_buf *packed, struct tb_buf *out) {
  const struct tp_report_about about = { s->id, s->service, s->instance, s->broken };

  tb_buf_clear(packed);
  TB_TRY(tp_report_pack(s->analyses, kind, window, ROWS_MAX, &about, packed));
  TB_TRY(tb_buf_reserve(out, TP_FIELD_BYTES + packed->len));
  unsigned char *end = tp_put_bytes(out->data + out->len, REPLY_REPORTS, packed->data, packed->len);
  out->len = (size_t)(end - out->data);
  return TB_OK;
}

static tb_rc put_all(struct tc__understood *s, enum to_window window, struct tb_buf *out) {
  struct tb_buf packed;
  tb_rc rc = TB_OK;

  tb_buf_init(&packed, &s->mem);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS && rc == TB_OK; k++)
    rc = put_report(s, (enum to_analysis_kind)k, window, &packed, out);
  tb_buf_fini(&packed);
  return rc;
}

static void keep(struct tc__understood *s, uint64_t until_ns) {
  const struct length *length = length_of(s->u->env.config->reports_every);
  struct tb_buf reply;

  tb_buf_init(&reply, &s->mem);
  tb_rc rc = put_all(s, length->window, &reply);
  const struct tc_report_record record = {
    .from_ns = until_ns - length->ns, .until_ns = until_ns, .reply = reply.data, .len = reply.len
  };
  if (rc == TB_OK) rc = tc_history_add(s->u->env.kept, s->id, &record);
  if (rc != TB_OK) tc_metric_add(&s->u->env.metrics->reports_not_kept_total, 1);
  tb_buf_fini(&reply);
}

/* The first of a stream is due when it is as long as the others. */
void tc__understood_keep_reports(struct tc__understood *s, to_ns last_ns) {
  uint64_t every_ns = s->u->env.config->reports_every,
           now_ns = to_analyses_wall(s->analyses, last_ns);

  if (s->u->env.kept == NULL || every_ns == 0 || now_ns == 0) return;
  s->kept.seen_ns = now_ns;
  if (s->kept.last_ns == 0 || now_ns < s->kept.last_ns) s->kept.last_ns = now_ns;
  if (now_ns - s->kept.last_ns < every_ns) return;
  keep(s, now_ns);
  s->kept.last_ns = now_ns;
}

void tc__understood_keep_last_reports(struct tc__understood *s) {
  if (s->analyses == NULL || s->kept.seen_ns == s->kept.last_ns) return;
  keep(s, s->kept.seen_ns);
  s->kept.last_ns = s->kept.seen_ns;
}
