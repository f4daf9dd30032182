/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as sentences. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pack/summary/private.h"

/* Text before and after the count of goroutines, if the finding has a count. */
static const struct {
  const char *before, *after;
} around[TO_FINDINGS] = {
  [TO_FINDING_DEADLOCK] = { "suspected deadlock of ", "" },
  [TO_FINDING_CONVOY] = { "convoy of ", "" },
  [TO_FINDING_STALL] = { "a system call holds up ", "" },
  [TO_FINDING_LEAK] = { "", " may never end" },
  [TO_FINDING_ASSISTS] = { "goroutines help the garbage collector", "" },
  [TO_FINDING_STARVED] = { "goroutines wait for Ps", "" },
  [TO_FINDING_MISNESTED] = { "regions end in the wrong order", "" },
};

void tp_finding_words(const struct to_finding *finding, char *out, size_t bytes) {
  char count[40] = "";

  if (finding->count > 0)
    snprintf(count, sizeof count, "%" PRIu64 " goroutine%s", finding->count,
             finding->count == 1 ? "" : "s");
  snprintf(out, bytes, "%s%s%s%s%.*s", around[finding->kind].before, count,
           around[finding->kind].after, finding->words.len > 0 ? ": " : "", (int)finding->words.len,
           finding->words.data);
}

/* In the order of importance. name: what a reader calls it, if the words do not begin with that; "" else. */
static const struct known {
  const char *kind, *name, *report, *table;
  double weight;
} known[] = {
  { "deadlock", "", "contention", " --table cycles", 990 },
  { "leak", "Goroutine leak: ", "leak", NULL, 980 },
  { "stall", "", "contention", NULL, 970 },
  { "assists", "GC pressure: ", "gc", " --table by_entry", 960 },
  { "convoy", "Contention: ", "contention", " --table convoys", 950 },
  { "starved", "Short of CPU: ", "sched", " --table by_entry", 940 },
  { "misnested", "", "regions", " --table misnested", 930 },
  { "slow_task", "", "tasks", " --table slowest", 720 },
  { "blocked_call", "", "syscall", " --table by_stack", 710 },
  { "long_stop", "Long pause: ", "stw", " --table by_reason", 390 },
};

static const struct known *find_known(const char *kind) {
  static const struct known other = { "", "", "all", NULL, 700 };

  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].kind, kind) == 0) return &known[i];
  return &other;
}

/* Tasks have a sentence with more figures. */
static bool is_told(const struct tp_summary_of *of, const struct tp_summary_finding *f) {
  struct tp_table table;

  if (strcmp(f->kind, "slow_task") != 0 ||
      !tp_report_table(tp__report_of(of, TO_ANALYSIS_TASKS), "by_type", &table))
    return false;
  for (size_t i = 0; i < table.table->n_rows; i++)
    if (strcmp(tp_row_text(table.table->rows[i], tp_table_column(&table, "type")), f->cause) == 0)
      return true;
  return false;
}

/* The words of an alert end with how a chain of waits is known, or with a command. */
static size_t length_of(const char *words) {
  static const char *const ends[] = { " (inferred: ", "; why: " };
  size_t n = strlen(words);

  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const char *end = strstr(words, ends[i]);
    if (end != NULL && (size_t)(end - words) < n) n = (size_t)(end - words);
  }
  return n;
}

static tb_rc say_finding(struct tp_summary *summary, const struct tp_summary_of *of,
                         const struct tp_summary_finding *f, const struct known *as,
                         const struct tp__draft *draft) {
  const char *words = f->words, *over = f->is_open ? "" : " (over)";
  size_t n = length_of(words);
  char first[2] = "";

  if (as->name[0] == '\0' && n > 0 && words[0] >= 'a' && words[0] <= 'z') {
    first[0] = (char)(words[0] - 'a' + 'A');
    words++;
    n--;
  }
  return tp__say(summary, of, draft, "%s%s%.*s%s", as->name, first, (int)n, words, over);
}

tb_rc tp__summary_findings(struct tp_summary *summary, const struct tp_summary_of *of) {
  for (size_t i = 0; i < of->findings; i++) {
    const struct tp_summary_finding *f = &of->finding[i];
    const struct known *as = find_known(f->kind);
    if (is_told(of, f)) continue;
    const struct tp__draft draft = { .kind = f->kind,
                                     .report = as->report,
                                     .place = f->place,
                                     .more = as->table,
                                     .finding = f->id,
                                     .weight = as->weight,
                                     .is_open = f->is_open };
    TB_TRY(say_finding(summary, of, f, as, &draft));
  }
  return TB_OK;
}
