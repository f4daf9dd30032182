/* SPDX-License-Identifier: Apache-2.0 */
/* Four lists share the rows: each gets its heading and one row, then they take turns until rows or
 * lines run out. So a small screen shows a part of each, and a large one everything. */
#include "tools/tracectl/top/page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"

enum { LISTS = 4, HEAD_ROWS = 2, KEY_ROWS = 1, ROOMY_ROWS = 30, WIDE_COLUMNS = 120 };
enum list { STREAMS, CALLS, STOPS, ALERTS };

__attribute__((format(printf, 3, 4))) static void put(struct tk_page *page, enum tk_look look,
                                                      const char *fmt, ...) {
  va_list args;

  if (page->n == page->rows) return;
  struct tk_page_line *line = &page->line[page->n++];
  line->look = look;
  va_start(args, fmt);
  vsnprintf(line->text, sizeof line->text, fmt, args);
  va_end(args);
  tk_plain_text(line->text);
}

/* ---- numbers ---- */

enum { CELL_BYTES = 24 };

/* "1.23 M", "45.6 k", "789". */
static const char *rate_text(double a_second, char out[CELL_BYTES]) {
  static const char units[] = { ' ', 'k', 'M', 'G' };
  unsigned unit = 0;

  for (; a_second >= 999.5 && unit + 1 < sizeof units; unit++) a_second /= 1000;
  snprintf(out, CELL_BYTES, "%.*f %c",
           a_second >= 99.5 || unit == 0 ? 0
           : a_second >= 9.95            ? 1
                                         : 2,
           a_second, units[unit]);
  return out;
}

static const char *megabytes_text(double bytes_s, char out[CELL_BYTES]) {
  double mb = bytes_s / 1e6;

  snprintf(out, CELL_BYTES, "%.*f", mb >= 99.95 ? 0 : mb >= 9.995 ? 1 : 2, mb);
  return out;
}

static const char *share_text(double share, char out[CELL_BYTES]) {
  if (share <= 0)
    snprintf(out, CELL_BYTES, "-");
  else
    snprintf(out, CELL_BYTES, "%.2f %%", share * 100);
  return out;
}

/* "-" for 0, so that other values stand out. */
static const char *count_text(uint64_t n, char out[TK_FORMAT_BYTES]) {
  if (n == 0) return "-";
  return tk_format_count(n, out);
}

/* ---- the lists ---- */

/* Names are cut or padded to this width, in bytes, since text is mostly ASCII. */
static int name_width(const struct tk_page *page, int others) {
  int width = (int)page->columns - others;

  return width < 12 ? 12 : width > 64 ? 64 : width;
}

static bool is_wide(const struct tk_page *page) {
  return page->columns >= WIDE_COLUMNS;
}

static enum tk_look look_of(const struct tk_top_stream *s) {
  if (s->lost_generations > 0 || s->broken > 0 || strcmp(s->state, "unclean") == 0)
    return TK_LOOK_BAD;
  if (strcmp(s->state, "waiting") == 0) return TK_LOOK_WARN;
  return strcmp(s->state, "live") == 0 ? TK_LOOK_PLAIN : TK_LOOK_DIM;
}

static void put_stream_heading(struct tk_page *page) {
  int width = name_width(page, is_wide(page) ? 101 : 60);

  put(page, TK_LOOK_HEADING, "%-8s%-*s%8s%9s%8s%9s%11s%7s%s", "STATE", width, "SERVICE/INSTANCE",
      "MB/S", "EVENTS/S", "BLOCKED", "STW", "STW MAX", "LOST",
      is_wide(page) ? "   BROKEN   CALL P99       GENS   SPOOL" : "");
}

static void put_stream(struct tk_page *page, const struct tk_top_stream *s) {
  int width = name_width(page, is_wide(page) ? 101 : 60);
  char mb[CELL_BYTES], events[CELL_BYTES], share[CELL_BYTES];
  char blocked[TK_FORMAT_BYTES], max[TK_FORMAT_BYTES], lost[TK_FORMAT_BYTES], more[96] = "";
  char p99[TK_FORMAT_BYTES], gens[TK_FORMAT_BYTES], spool[TK_SIZE_BYTES], broken[TK_FORMAT_BYTES];

  if (is_wide(page)) {
    tk_size_format(s->spool_bytes, spool);
    snprintf(more, sizeof more, "%9s%11s%11s%10s", count_text(s->broken, broken),
             tk_format_ns(s->call_p99_ns, p99), tk_format_count(s->generations, gens), spool);
  }
  put(page, look_of(s), "%-8s%-*.*s %7s%9s%8s%9s%11s%7s%s", s->state, width, width, s->who,
      megabytes_text(s->rates.bytes_s, mb), rate_text(s->rates.events_s, events),
      count_text(s->blocked_now, blocked), share_text(s->stw_share, share),
      tk_format_ns(s->stw_max_ns, max), count_text(s->lost_generations, lost), more);
}

/* Formats only the time of day: "12:34:56". */
static const char *clock_text(uint64_t wall_ns, char out[TC_TIME_BYTES]) {
  enum { DAY = 11, SECONDS_END = 19 };

  tc_time_format(wall_ns, out);
  if (strlen(out) <= SECONDS_END) return out;
  out[SECONDS_END] = '\0';
  return out + DAY;
}

/* Returns the width of the longest name, as far as there is room. */
static int call_width(const struct tk_page *page, const struct tk_top_model *m) {
  size_t width = 6, most = is_wide(page) ? 40 : 22;

  for (size_t i = 0; i < m->calls; i++)
    if (strlen(m->call[i].who) > width) width = strlen(m->call[i].who);
  return (int)(width < most ? width : most);
}

/* Returns the heading of the callers: of C programs alone they are threads. */
static const char *who_calls(const struct tk_top_model *m) {
  for (size_t i = 0; i < m->calls; i++)
    if (!m->call[i].is_c) return "GOROUTINE";
  return m->calls > 0 ? "THREAD" : "GOROUTINE";
}

/* A call that blocked at the stream's last data is shown with that time, and not as a warning. */
static void put_call(struct tk_page *page, const struct tk_top_call *call, int width) {
  char age[TK_FORMAT_BYTES], at[TC_TIME_BYTES], as_of[TC_TIME_BYTES + 10] = "";
  bool old = call->as_of_wall_ns != 0;

  if (old) snprintf(as_of, sizeof as_of, "as of %s  ", clock_text(call->as_of_wall_ns, at));
  put(page, old ? TK_LOOK_DIM : TK_LOOK_WARN, "%9s%s %10" PRId64 "  %-*.*s  %s%s",
      tk_format_ns(call->age_ns, age), call->lower_bound ? "+" : " ", call->goroutine, width, width,
      call->who, as_of, call->where);
}

static void put_stop(struct tk_page *page, const struct tk_top_stop *stop) {
  char count[TK_FORMAT_BYTES], total[TK_FORMAT_BYTES], p99[TK_FORMAT_BYTES], max[TK_FORMAT_BYTES];

  put(page, stop->open > 0 ? TK_LOOK_WARN : TK_LOOK_PLAIN, "%8s%10s%9s%9s  %-28s %s",
      tk_format_count(stop->count, count), tk_format_ns(stop->total_ns, total),
      tk_format_ns(stop->p99_ns, p99), tk_format_ns(stop->max_ns, max), stop->id,
      stop->open > 0 ? "(stopped now)" : stop->worst);
}

static void put_alert(struct tk_page *page, const struct tk_top_alert *alert) {
  char at[TC_TIME_BYTES];

  put(page, TK_LOOK_BAD, "%-8s  %s", alert->wall_ns != 0 ? clock_text(alert->wall_ns, at) : "",
      alert->text);
}

/* Prints as many lines as there is room for. */
static void put_report(struct tk_page *page, const struct tk_top_model *m,
                       const struct tk_page_about *about, size_t rows) {
  put(page, TK_LOOK_HEADING, "REPORT %s, last %s", m->report_kind, about->window);
  if (m->report_lines == 0) put(page, TK_LOOK_DIM, "no report yet");
  for (const char *line = m->report; line != NULL && *line != '\0' && rows > 0; rows--) {
    int len = (int)strcspn(line, "\n");
    put(page, TK_LOOK_PLAIN, "%.*s", len, line);
    line += len + (line[len] == '\n');
  }
}

static void put_list(struct tk_page *page, const struct tk_top_model *m,
                     const struct tk_page_about *about, enum list list, size_t rows) {
  char count[TK_FORMAT_BYTES];

  switch (list) {
  case STREAMS:
    put_stream_heading(page);
    if (m->streams == 0) put(page, TK_LOOK_DIM, "no streams yet");
    for (size_t i = page->scroll; i < m->streams && rows > 0; i++, rows--)
      put_stream(page, &m->stream[i]);
    break;
  case CALLS:
    put(page, TK_LOOK_HEADING, "      AGE %11s  BLOCKED NOW: %s", who_calls(m),
        tk_format_count(m->calls_total, count));
    if (m->calls == 0) put(page, TK_LOOK_DIM, "no system call is blocked");
    for (size_t i = 0; i < m->calls && i < rows; i++)
      put_call(page, &m->call[i], call_width(page, m));
    break;
  case STOPS:
    put(page, TK_LOOK_HEADING, "   STOPS     TOTAL      P99      MAX  STOP THE WORLD, last %s",
        about->window);
    if (m->stops == 0) put(page, TK_LOOK_DIM, "the world was not stopped");
    for (size_t i = 0; i < m->stops && i < rows; i++) put_stop(page, &m->stop[i]);
    break;
  case ALERTS:
    put(page, TK_LOOK_HEADING, "ALERTS: %s", tk_format_count(m->alerts_total, count));
    if (m->alerts == 0 && about->alert_error != NULL)
      put(page, TK_LOOK_WARN, "the feed: %s", about->alert_error);
    else if (m->alerts == 0)
      put(page, TK_LOOK_DIM, "none since this began (collector's alert.* say when there is one)");
    for (size_t i = 0; i < m->alerts && i < rows; i++) put_alert(page, &m->alert[i]);
    break;
  }
}

/* ---- the page ---- */

static void share_rows(size_t room, const size_t wanted[LISTS], size_t out[LISTS]) {
  size_t before;

  memset(out, 0, LISTS * sizeof out[0]);
  do {
    before = room;
    for (int i = 0; i < LISTS && room > 0; i++)
      if (out[i] < wanted[i]) out[i]++, room--;
  } while (room < before && room > 0);
}

static void put_head(struct tk_page *page, const struct tk_top_model *m,
                     const struct tk_page_about *about) {
  char mb[CELL_BYTES], events[CELL_BYTES], archive[TK_SIZE_BYTES], room[TK_SIZE_BYTES];
  char segments[TK_FORMAT_BYTES], lost[TK_FORMAT_BYTES];

  if (m->version[0] == '\0') {
    put(page, TK_LOOK_TITLE, "tracectl top");
    put(page, TK_LOOK_WARN, "%s", about->trouble != NULL ? about->trouble : "asking ...");
    return;
  }
  put(page, TK_LOOK_TITLE, "tracecollectd %s  %s MB/s  %s events/s  %u live, %u waiting, %u over",
      m->version, megabytes_text(m->rates.bytes_s, mb), rate_text(m->rates.events_s, events),
      m->live, m->waiting, m->closed + m->unclean);
  if (about->trouble != NULL) {
    put(page, TK_LOOK_BAD, "%s", about->trouble);
    return;
  }
  tk_size_format(m->archive_bytes, archive);
  tk_size_format(m->disk_free_bytes, room);
  bool well = strcmp(m->health, "ok") == 0;
  put(page, well ? TK_LOOK_PLAIN : TK_LOOK_BAD,
      "health: %s  archive: %s, %s segments, %s free  lost: %s", m->health, archive,
      tk_format_count(m->archive_segments, segments), room,
      m->lost_generations == 0 ? "none" : tk_format_count(m->lost_generations, lost));
  if (*m->last_loss != 0) put(page, TK_LOOK_BAD, "lost by %s", m->last_loss);
}

static void put_help(struct tk_page *page) {
  static const char *const lines[] = {
    "q, ^C      quit",
    "w          window of calls and stops: 10s, 1m, 5m, all",
    "r          a report in the place of calls and stops: each kind in turn, then none",
    "space      pause: the screen stays as it is",
    "up, down   scroll the streams (page up, page down, home)",
    "?, h       this help, and back",
    "",
    "MB/s and events/s are those of the last five seconds. BLOCKED counts system",
    "calls that lost their P or run longer than syscall.blocked_after. STW is the",
    "share of the window's wall time that the world stood still. LOST counts",
    "generations that never came. An age with a + is a lower bound. BROKEN (on wide",
    "screens) counts generations that break a rule of the trace format. A call \"as of\"",
    "some time was blocked when its stream's last data came, over 15 s ago: not now.",
    "Red: something was lost or is broken. Yellow: no connection, or a call that is blocked.",
  };

  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    put(page, TK_LOOK_PLAIN, "%s", lines[i]);
}

static void put_lists(struct tk_page *page, const struct tk_top_model *m,
                      const struct tk_page_about *about) {
  size_t wanted[LISTS] = { m->streams > 0 ? m->streams : 1, m->calls > 0 ? m->calls : 1,
                           m->stops > 0 ? m->stops : 1, m->alerts > 0 ? m->alerts : 1 };
  bool roomy = page->rows >= ROOMY_ROWS;
  size_t taken = HEAD_ROWS + KEY_ROWS + LISTS + (roomy ? LISTS : 0), rows[LISTS];

  if (m->report_kind != NULL) { /* replaces calls and stops */
    wanted[CALLS] = m->report_lines > 0 ? m->report_lines : 1;
    wanted[STOPS] = 0;
    taken -= roomy ? 2 : 1;
  }
  share_rows(page->rows > taken ? page->rows - taken : 0, wanted, rows);
  size_t last = m->streams > rows[STREAMS] ? m->streams - rows[STREAMS] : 0;
  if (page->scroll > last) page->scroll = (unsigned)last;
  for (int list = 0; list < LISTS; list++) {
    if (list == STOPS && m->report_kind != NULL) continue;
    if (roomy) put(page, TK_LOOK_PLAIN, "%s", "");
    if (list == CALLS && m->report_kind != NULL)
      put_report(page, m, about, rows[CALLS]);
    else
      put_list(page, m, about, (enum list)list, rows[list]);
  }
}

void tk_page_fill(struct tk_page *page, const struct tk_top_model *m,
                  const struct tk_page_about *about) {
  unsigned rows = page->rows < TK_PAGE_ROWS_MAX ? page->rows : TK_PAGE_ROWS_MAX;

  page->n = 0;
  page->rows = rows;
  if (rows < TK_PAGE_ROWS_MIN || page->columns < TK_PAGE_COLUMNS_MIN) {
    put(page, TK_LOOK_WARN, "too small: needs %dx%d", TK_PAGE_COLUMNS_MIN, TK_PAGE_ROWS_MIN);
    return;
  }
  page->rows = rows - KEY_ROWS;
  put_head(page, m, about);
  if (about->help)
    put_help(page);
  else
    put_lists(page, m, about);
  while (page->n < page->rows) put(page, TK_LOOK_PLAIN, "%s", "");
  page->rows = rows;
  put(page, TK_LOOK_TITLE, "q quit  w window (%s)  r report  %s  up/down scroll  ? help",
      about->window, about->paused ? "PAUSED, space goes on" : "space pause");
}
