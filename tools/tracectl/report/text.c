/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers stand in columns on the left, a stack beside them, a frame a line. A stack is folded to the
 * innermost frame and the first ones that are not plumbing of the runtime: that is where the reader's
 * own program begins. Names come from the traced program, so they go through plain.h. */
#include "tools/tracectl/report/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config/times.h"
#include "pack/trim.h"
#include "tools/tracectl/report/frame_text.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"

typedef Tracecollect__V1__StreamReport Report;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Frame Frame;
typedef const struct tk_report_style Style;

enum { COLUMNS_MIN = 60, COLUMNS_DEFAULT = 100, FRAMES_DEFAULT = 4, LINE_BYTES = 512 };

struct tk_report_style tk_report_style_default(void) {
  struct tk_report_style style = { .columns = COLUMNS_DEFAULT,
                                   .rows = TP_REPORT_ROWS_SHOWN,
                                   .frames = FRAMES_DEFAULT };
  const char *no_color = getenv("NO_COLOR");
  struct winsize size;

  if (isatty(STDOUT_FILENO)) {
    style.bold = no_color == NULL || no_color[0] == '\0';
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= COLUMNS_MIN)
      style.columns = size.ws_col;
  }
  return style;
}

/* ---- small pieces ---- */

static void heading(Style *style, const char *text) {
  printf("%s%s%s\n", style->bold ? "\033[1m" : "", text, style->bold ? "\033[0m" : "");
}

/* Right-aligned; one-letter units give way by a column, so that the digits stand in line. */
static void time_cell(int width, uint64_t ns) {
  char text[TK_FORMAT_BYTES];
  size_t len = strlen(tk_format_ns(ns, text));
  bool pad = len >= 2 && text[len - 2] == ' ';

  printf("%*s%s", width - pad, text, pad ? " " : "");
}

static void count_cell(int width, uint64_t n) {
  char text[TK_FORMAT_BYTES];
  printf("%*s", width, tk_format_count(n, text));
}

/* Text of the traced program, cut to width characters. Answers how many were written. */
static size_t put_text(const char *text, size_t width) {
  const char *end = text + strlen(text);
  size_t shown = 0, len;
  bool plain;

  for (; text < end && shown < width; text += len, shown++) {
    len = tk_plain_next(text, (size_t)(end - text), &plain);
    if (shown + 1 == width && text + len < end)
      putchar('~');
    else if (plain)
      fwrite(text, 1, len, stdout);
    else
      putchar('?');
  }
  return shown;
}

static void put_frame(const Frame *frame, size_t width) {
  char line[LINE_BYTES];

  tk_frame_text(frame, line, sizeof(line));
  put_text(line, width);
}

/* Begins where the cursor is, at this column, and ends the line. */
static void put_stack(Style *style, unsigned column, Frame *const *frames, size_t n,
                      const char *if_empty) {
  size_t width = style->columns > column + 20 ? style->columns - column : 20;
  size_t lines = 0, shown = 0;
  bool fold = false;

  for (size_t i = 0; i < n; i++) fold |= !tk_frame_is_plumbing(frames[i]);
  fold &= style->frames > 0;
  if (n == 0) puts(if_empty);
  for (size_t i = 0; i < n; i++) {
    if (style->frames > 0 && lines == style->frames) break;
    if (fold && i > 0 && tk_frame_is_plumbing(frames[i])) continue;
    if (lines++ > 0) printf("%*s", (int)column, "");
    put_frame(frames[i], width);
    shown++;
    putchar('\n');
  }
  if (n > shown && style->frames > 0) printf("%*s+%zu more\n", (int)column, "", n - shown);
}

static void put_list_title(Style *style, const char *title, size_t shown, uint64_t total,
                           const char *order) {
  char line[LINE_BYTES], count[TK_FORMAT_BYTES];

  if (shown < total)
    snprintf(line, sizeof(line), "%s: %zu of %s, %s", title, shown, tk_format_count(total, count),
             order);
  else
    snprintf(line, sizeof(line), "%s: %zu, %s", title, shown, order);
  putchar('\n');
  heading(style, line);
}

static size_t listed(Style *style, size_t n) {
  return style->rows > 0 && n > style->rows ? style->rows : n;
}

/* ---- distributions ---- */

static void distribution_head(Style *style, const char *name) {
  char line[LINE_BYTES];

  snprintf(line, sizeof(line), "%-32s%10s%10s%9s%9s%9s%9s%9s", name, "count", "total", "mean",
           "p50", "p90", "p99", "max");
  heading(style, line);
}

static void distribution_row(const char *name, const Distribution *d) {
  static const Distribution none = TRACECOLLECT__V1__DISTRIBUTION__INIT;

  if (d == NULL) d = &none;
  size_t shown = put_text(name, 31);
  printf("%*s", 32 - (int)shown, "");
  count_cell(10, d->count);
  time_cell(10, d->total_ns);
  time_cell(9, d->count > 0 ? d->total_ns / d->count : 0);
  time_cell(9, d->p50_ns);
  time_cell(9, d->p90_ns);
  time_cell(9, d->p99_ns);
  time_cell(9, d->max_ns);
  putchar('\n');
}

static void lower_bounds_note(const Distribution *d) {
  char count[TK_FORMAT_BYTES];

  if (d != NULL && d->lower_bounds > 0)
    printf("%s of them began before the first sync: their times are lower bounds.\n",
           tk_format_count(d->lower_bounds, count));
}

/* ---- syscall ---- */

static void print_blocked_now(const Tracecollect__V1__SyscallReport *r, Style *style) {
  size_t n = listed(style, r->n_blocked_now);
  char after[TK_FORMAT_BYTES], order[LINE_BYTES];

  if (r->blocked_now_total == 0) {
    printf("\nNothing is blocked now; %" PRIu64 " calls are open.\n", r->open);
    return;
  }
  snprintf(order, sizeof(order), "oldest first (without their P, or open for %s)",
           tk_format_ns(r->blocked_after_ns, after));
  put_list_title(style, "Blocked now", n, r->blocked_now_total, order);
  heading(style, "       age  goroutine     thread  why     stack");
  for (size_t i = 0; i < n; i++) {
    const Tracecollect__V1__BlockedCall *call = r->blocked_now[i];
    time_cell(10, call->age_ns);
    printf(" %10" PRId64 " %10" PRId64 "  %-6s%s", call->goroutine, call->thread,
           call->lost_proc ? "lost P" : "long", call->lower_bound ? "> " : "  ");
    put_stack(style, 40, call->stack, call->n_stack, "(stack unknown)");
  }
}

static void sum_cells(const Tracecollect__V1__Sum *sum) {
  static const Tracecollect__V1__Sum none = TRACECOLLECT__V1__SUM__INIT;

  if (sum == NULL) sum = &none;
  count_cell(9, sum->count);
  time_cell(9, sum->total_ns);
  time_cell(9, sum->max_ns);
}

static void print_syscall_stacks(const Tracecollect__V1__SyscallReport *r, Style *style) {
  size_t n = listed(style, r->n_stacks);

  if (n == 0) return;
  put_list_title(style, "By stack", n, r->stacks_total, "most blocked time first");
  heading(style, "  blocked    total      max    calls    total      max  stack");
  for (size_t i = 0; i < n; i++) {
    const Tracecollect__V1__SyscallStack *row = r->stacks[i];
    sum_cells(row->blocked);
    sum_cells(row->calls);
    printf("  ");
    put_stack(style, 56, row->stack, row->n_stack,
              row->other ? "(all other stacks)" : "(stack unknown)");
  }
}

static void print_syscall(const Tracecollect__V1__SyscallReport *r, Style *style) {
  print_blocked_now(r, style);
  putchar('\n');
  distribution_head(style, "calls that ended");
  distribution_row("all", r->calls);
  distribution_row("blocked (lost their P)", r->blocked);
  lower_bounds_note(r->calls);
  if (r->born > 0 || r->died > 0)
    printf("Goroutines born in a call: %" PRIu64 ", ended in one: %" PRIu64 " (cgo callbacks).\n",
           r->born, r->died);
  print_syscall_stacks(r, style);
}

/* ---- stw ---- */

static void print_stoppers(const Tracecollect__V1__StwReport *r, Style *style) {
  size_t n = listed(style, r->n_stoppers);

  if (n == 0) return;
  put_list_title(style, "Who stopped the world", n, r->stoppers_total,
                 "most time first, with the stack of the longest");
  heading(style, "    stops    total      max  goroutine  reason and stack");
  for (size_t i = 0; i < n; i++) {
    const Tracecollect__V1__StwStopper *who = r->stoppers[i];
    sum_cells(who->stopped);
    if (who->other)
      printf("%11s  (all others)\n", "");
    else {
      printf("%11" PRId64 "  ", who->goroutine);
      put_text(who->reason, style->columns - 40);
      printf("\n%42s", "");
      put_stack(style, 42, who->stack, who->n_stack, "(stack unknown)");
    }
  }
}

static void print_stw(const Tracecollect__V1__StwReport *r, Style *style) {
  putchar('\n');
  if (r->stopped == NULL || r->stopped->count == 0)
    puts("The world was not stopped.");
  else
    printf("The world stood still for %.3g %% of the time.\n", r->share_of_wall * 100);
  putchar('\n');
  distribution_head(style, "stops that ended");
  distribution_row("all", r->stopped);
  for (size_t i = 0; i < r->n_reasons; i++) {
    distribution_row(r->reasons[i]->id, r->reasons[i]->stopped);
    if (r->reasons[i]->open > 0) printf("  and one is open now\n");
  }
  if (r->time_to_stop != NULL && r->time_to_stop->count > 0) {
    putchar('\n');
    distribution_head(style, "of that, until the last P stood");
    distribution_row("time to stop", r->time_to_stop);
  }
  print_stoppers(r, style);
}

/* ---- all ---- */

static void print_title(const Report *report, const char *source, Style *style) {
  char line[LINE_BYTES], span[TK_FORMAT_BYTES], events[TK_FORMAT_BYTES], until[TC_TIME_BYTES];
  uint64_t ns = (uint64_t)report->until_ns - (uint64_t)report->from_ns;

  if (source != NULL)
    snprintf(line, sizeof(line), "%s  %s", report->kind, source);
  else
    snprintf(line, sizeof(line), "%s  %s/%s", report->kind, report->service, report->instance);
  tk_plain_text(line);
  heading(style, line);
  printf("window %s: %s", report->window, tk_format_ns(ns, span));
  if (report->until_wall_ns != 0) {
    tc_time_format(report->until_wall_ns, until);
    printf(" until %s", until);
  }
  fputs(", ", stdout);
  if (report->first_gen == report->last_gen)
    printf("generation %" PRIu64, report->first_gen);
  else
    printf("generations %" PRIu64 " to %" PRIu64, report->first_gen, report->last_gen);
  printf(", %s events\n", tk_format_count(report->events, events));
  if (report->broken_generations > 0)
    printf("%" PRIu64 " broken generations are not in it.\n", report->broken_generations);
}

void tk_report_print(const Report *report, const char *source, Style *style) {
  print_title(report, source, style);
  if (report->syscall != NULL) print_syscall(report->syscall, style);
  if (report->stw != NULL) print_stw(report->stw, style);
}
