/* SPDX-License-Identifier: Apache-2.0 */
#include "trigger/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 256 }; /* rows of a table that conditions on a column can see */

enum need { NEED_NOTHING, NEED_TOTALS, NEED_QUANTILES };

struct looked { /* a condition's result for this generation */
  bool is_met;
  double number;
  char words[200]; /* text of a finding */
};

struct watched {
  const struct tr_rule *rule;
  unsigned met; /* number of generations in a row that met the rule */
  bool is_on;   /* the rule has fired and was met in each generation since */
  struct looked term[TR_TERMS_MAX];
};

struct tr_watch {
  struct tb_mem *mem;
  struct tr_rules *rules;
  unsigned findings; /* bits of enum to_finding_kind that rules use */
  uint8_t need[TO_WINDOWS][TO_ANALYSIS_KINDS];
  bool rows[TO_WINDOWS][TO_ANALYSIS_KINDS]; /* a column is needed */
  unsigned n;
  struct watched watched[];
};

static size_t bytes_of(unsigned n) {
  return sizeof(struct tr_watch) + n * sizeof(struct watched);
}

static enum need need_of(const struct tr_figure_path *path) {
  switch (path->field) {
  case TR_FIELD_P50:
  case TR_FIELD_P90:
  case TR_FIELD_P99:
  case TR_FIELD_P999: return NEED_QUANTILES;
  default: return NEED_TOTALS;
  }
}

static void add_term(struct tr_watch *w, enum to_window window, const struct tr_term *term) {
  if (term->is_finding) {
    w->findings |= 1u << term->finding;
    return;
  }
  enum need need = need_of(&term->condition.path);
  if (need > w->need[window][term->kind]) w->need[window][term->kind] = (uint8_t)need;
  w->rows[window][term->kind] |= term->condition.path.column != NULL;
}

tb_rc tr_watch_new(struct tb_mem *mem, struct tr_rules *rules, const char *service,
                   const char *instance, struct tr_watch **out) {
  unsigned n = 0;
  void *place = NULL;

  for (unsigned i = 0; i < tr_rules_count(rules); i++)
    n += tr_rule_is_about(tr_rules_at(rules, i), service, instance);
  TB_TRY(tb_mem_resize(mem, &place, 0, bytes_of(n)));
  struct tr_watch *w = place;
  memset(w, 0, bytes_of(n));
  w->mem = mem;
  w->rules = rules;
  tr_rules_hold(rules);
  for (unsigned i = 0; i < tr_rules_count(rules); i++) {
    const struct tr_rule *rule = tr_rules_at(rules, i);
    if (!tr_rule_is_about(rule, service, instance)) continue;
    w->watched[w->n++].rule = rule;
    for (unsigned t = 0; t < rule->terms; t++) add_term(w, rule->window, &rule->term[t]);
  }
  *out = w;
  return TB_OK;
}

unsigned tr_watch_count(const struct tr_watch *w) {
  return w->n;
}

void tr_watch_free(struct tr_watch *w) {
  if (w == NULL) return;
  tr_rules_release(w->rules);
  tb_mem_free(w->mem, w, bytes_of(w->n));
}

void tr_watch_hole(struct tr_watch *w) {
  for (unsigned i = 0; i < w->n; i++) w->watched[i].met = 0;
}

/* ---- conditions ---- */

static void judge_report(struct tr_watch *w, enum to_window window,
                         const struct to_report *report) {
  for (unsigned i = 0; i < w->n; i++) {
    struct watched *of = &w->watched[i];
    if (of->rule->window != window) continue;
    for (unsigned t = 0; t < of->rule->terms; t++) {
      const struct tr_term *term = &of->rule->term[t];
      if (term->is_finding || term->kind != report->kind) continue;
      of->term[t].is_met =
          tr_condition_judge(&term->condition, report, &of->term[t].number) == TR_VERDICT_MET;
    }
  }
}

static tb_rc make_report(const struct tr_watch *w, struct to_analyses *analyses,
                         enum to_analysis_kind kind, enum to_window window,
                         const struct to_report **out) {
  bool with_quantiles = w->need[window][kind] == NEED_QUANTILES;

  if (!w->rows[window][kind])
    return to_analyses_figures(analyses, kind, window, with_quantiles, out);
  if (with_quantiles) return to_analyses_report(analyses, kind, window, ROWS_MAX, out);
  return to_analyses_totals(analyses, kind, window, ROWS_MAX, out);
}

static tb_rc judge_reports(struct tr_watch *w, struct to_analyses *analyses) {
  const struct to_report *report;

  for (enum to_window window = 0; window < TO_WINDOWS; window++)
    for (enum to_analysis_kind kind = 0; kind < TO_ANALYSIS_KINDS; kind++) {
      if (w->need[window][kind] == NEED_NOTHING) continue;
      TB_TRY(make_report(w, analyses, kind, window, &report));
      judge_report(w, window, report);
    }
  return TB_OK;
}

static void judge_finding(void *self, const struct to_finding *finding) {
  struct tr_watch *w = self;

  for (unsigned i = 0; i < w->n; i++) {
    struct watched *of = &w->watched[i];
    for (unsigned t = 0; t < of->rule->terms; t++) {
      struct looked *looked = &of->term[t];
      if (!of->rule->term[t].is_finding || of->rule->term[t].finding != finding->kind) continue;
      if (looked->is_met) continue; /* the first finding is shown */
      looked->is_met = true;
      snprintf(looked->words, sizeof looked->words, "%.*s", (int)finding->words.len,
               finding->words.data != NULL ? finding->words.data : "");
    }
  }
}

static void forget_looks(struct tr_watch *w) {
  for (unsigned i = 0; i < w->n; i++)
    for (unsigned t = 0; t < TR_TERMS_MAX; t++) {
      w->watched[i].term[t].is_met = false;
      w->watched[i].term[t].words[0] = '\0';
    }
}

/* ---- words ---- */

static void put_path(const struct tr_figure_path *path, char *out, size_t bytes) {
  const char *parts[] = { path->kind, path->figure != NULL ? path->figure : path->table,
                          path->column, tr_field_name(path->field) };
  size_t n = 0;

  out[0] = '\0';
  for (unsigned i = 0; i < sizeof parts / sizeof *parts && n < bytes; i++) {
    if (parts[i] == NULL || parts[i][0] == '\0') continue;
    n += (size_t)snprintf(out + n, bytes - n, "%s%s", n > 0 ? "." : "", parts[i]);
  }
}

static void put_number(Tracecollect__V1__ValueType type, double number, char *out, size_t bytes) {
  switch (type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_TIME:
    snprintf(out, bytes, "%.3f ms", number / 1e6);
    return;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_SHARE:
    snprintf(out, bytes, "%.1f %%", 100 * number);
    return;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES:
    snprintf(out, bytes, "%.0f bytes", number);
    return;
  default: snprintf(out, bytes, "%.0f", number); return;
  }
}

static void put_term(const struct tr_term *term, const struct looked *looked, char *out,
                     size_t bytes) {
  char path[160], number[48];

  if (term->is_finding) {
    snprintf(out, bytes, "%s%s%s", to_finding_name(term->finding),
             looked->words[0] != 0 ? ": " : "", looked->words);
    return;
  }
  put_path(&term->condition.path, path, sizeof path);
  put_number(term->condition.path.type, looked->number, number, sizeof number);
  snprintf(out, bytes, "%s is %s", path, number);
}

static void write_words(const struct watched *of, struct tr_fired *fired) {
  char *out = fired->words;
  size_t left = sizeof fired->words;

  for (unsigned t = 0; t < of->rule->terms; t++) {
    if (t > 0) snprintf(out, left, " and ");
    size_t n = strlen(out);
    put_term(&of->rule->term[t], &of->term[t], out + n, left - n);
    n = strlen(out);
    out += n;
    left -= n;
  }
  if (of->rule->generations > 1) snprintf(out, left, ", for %u generations", of->rule->generations);
}

/* ---- a generation ---- */

static void end_look(struct watched *of, const struct tr_fired_sink *sink) {
  struct tr_fired fired = { .rule = of->rule };
  bool is_met = true;

  for (unsigned t = 0; t < of->rule->terms; t++) is_met &= of->term[t].is_met;
  of->met = is_met ? of->met + 1 : 0;
  if (!is_met) of->is_on = false;
  if (of->met < of->rule->generations || of->is_on) return;
  of->is_on = true;
  write_words(of, &fired);
  sink->fired(sink->self, &fired);
}

tb_rc tr_watch_generation(struct tr_watch *w, struct to_analyses *analyses,
                          const struct tr_fired_sink *sink) {
  forget_looks(w);
  TB_TRY(judge_reports(w, analyses));
  if (w->findings != 0)
    TB_TRY(to_analyses_findings(analyses, &(struct to_finding_sink){ w, judge_finding }));
  for (unsigned i = 0; i < w->n; i++) end_look(&w->watched[i], sink);
  return TB_OK;
}
