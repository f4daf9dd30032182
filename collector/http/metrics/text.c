/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the collector's own metrics of config/metrics.def; metrics/peers.c writes those of traced programs. */
#include "collector/http/metrics/text.h"

#include <inttypes.h>

#include "collector/http/metrics/peers.h"

enum metric_type { COUNTER, GAUGE, EARLIEST, SECONDS_COUNTER, SECONDS_PEAK, LEAST_SHARE };

void tc_metrics_head(struct tb_buf *out, const char *name, const char *type, const char *text) {
  tb_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

static void write_metric(struct tb_buf *out, enum metric_type type, const char *name,
                         const char *text, uint64_t value) {
  bool counts = type == COUNTER || type == SECONDS_COUNTER;

  tc_metrics_head(out, name, counts ? "counter" : "gauge", text);
  if (type == COUNTER || type == GAUGE || type == EARLIEST)
    tb_buf_printf(out, "%s %" PRIu64 "\n", name, value);
  else if (type == LEAST_SHARE)
    tb_buf_printf(out, "%s %.9f\n", name, 1 - (double)value / 1e9);
  else
    tb_buf_printf(out, "%s %.9f\n", name, (double)value / 1e9);
}

static uint64_t sum_of_loops(struct tc_metrics *const *loops, size_t n, size_t field_at,
                             enum metric_type type) {
  uint64_t sum = 0;

  for (size_t i = 0; i < n; i++) {
    atomic_ullong *m = (atomic_ullong *)((char *)loops[i] + field_at);
    uint64_t value = atomic_load_explicit(m, memory_order_relaxed);

    if (type == EARLIEST)
      sum = value != 0 && (sum == 0 || value < sum) ? value : sum;
    else if (type != SECONDS_PEAK && type != LEAST_SHARE)
      sum += value;
    else if (value > sum)
      sum = value;
  }
  return sum;
}

static void write_waits(struct tb_buf *out, const char *name, const char *part,
                        enum tc_shortage waits) {
#define TC_SHORTAGE(id, label, kind, text)                                                         \
  tb_buf_printf(out, "%s{part=\"%s\",reason=\"" label "\"} %d\n", name, part,                      \
                waits == TC_SHORT_##id);
#include "collector/model/shortage.def"
#undef TC_SHORTAGE
}

static void write_wait_metric(struct tb_buf *out, const char *name, const char *text,
                              const struct tc_store_stats *store) {
  tc_metrics_head(out, name, "gauge", text);
  write_waits(out, name, "log", store->log_waits);
  write_waits(out, name, "archive", store->archive_waits);
}

static void write_ours(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                       const struct tc_store_stats *store) {
#define TC_METRIC(type, field, text)                                                               \
  write_metric(out, type, "tracecollect_" #field, text,                                            \
               sum_of_loops(loops, n, offsetof(struct tc_metrics, field), type));
#define TC_STORE_METRIC(type, name, field, text)                                                   \
  write_metric(out, type, "tracecollect_" #name, text, (uint64_t)store->field);
#define TC_WAIT_METRIC(type, name, text) write_wait_metric(out, "tracecollect_" #name, text, store);
#include "config/metrics.def"
#undef TC_WAIT_METRIC
#undef TC_METRIC
#undef TC_STORE_METRIC
}

tb_rc tc_metrics_text(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                      const struct tc_store_stats *store, struct tc_reports *reports) {
  write_ours(out, loops, n, store);
  if (reports != NULL) TB_TRY(tc_metrics_peers(out, reports));
  return out->rc;
}
