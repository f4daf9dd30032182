/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl check FILE...: reports in a line or a JSON object whether each trace is whole. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_run.h"
#include "tools/tracectl/url/url.h"

struct check_options {
  bool json, no_progress;
  uint64_t memory_max; /* 0: no limit */
  unsigned threads;
};

static tb_rc count_only(void *self, const struct to_generation *gen, const struct to_event *events,
                        size_t n) {
  (void)self;
  (void)gen;
  (void)events;
  (void)n;
  return TB_OK;
}

/* "4096", "64M", "2GiB": bytes, in powers of 1024. */
static bool parse_bytes(const char *text, uint64_t *out) {
  static const char units[] = "KMGT";
  unsigned shift = 0;
  char *end;

  errno = 0;
  uint64_t value = strtoull(text, &end, 10);
  if (!isdigit((unsigned char)text[0]) || errno != 0) return false;
  if (*end != '\0' && strchr(units, *end) != NULL) {
    shift = 10 * (unsigned)(strchr(units, *end++) - units + 1);
    if (*end == 'i') end++;
  }
  if (*end == 'B') end++;
  if (*end != '\0' || value > UINT64_MAX >> shift) return false;
  *out = value << shift;
  return value > 0;
}

static void print_json_text(const char *text) {
  putchar('"');
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      printf("\\%c", *c);
    else if (*c < 0x20 || *c >= 0x7f)
      printf("\\u%04x", *c);
    else
      putchar(*c);
  }
  putchar('"');
}

static void print_json(const char *path, const struct tk_trace_run *run) {
  fputs("{\"file\":", stdout);
  print_json_text(path);
  printf(",\"ok\":%s,\"events\":%" PRIu64 ",\"generations\":%" PRIu64,
         run->rc == TB_OK ? "true" : "false", run->events, run->generations);
  if (run->lone_region_ends != 0) printf(",\"lone_region_ends\":%" PRIu64, run->lone_region_ends);
  if (run->version != 0) printf(",\"version\":\"go 1.%u\"", run->version);
  if (run->rc != TB_OK) {
    if (run->diag.gen != TB_NO_GEN) printf(",\"generation\":%" PRIu64, run->diag.gen);
    if (run->diag.thread != TB_NO_THREAD) printf(",\"thread\":%" PRId64, run->diag.thread);
    if (run->diag.offset != TB_NO_OFFSET) printf(",\"offset\":%" PRIu64, run->diag.offset);
    printf(",\"code\":\"%s\",\"reason\":", tb_rc_name(run->rc));
    print_json_text(run->diag.text);
  }
  puts("}");
}

static void print_line(const char *path, const struct tk_trace_run *run) {
  const struct tb_diag *diag = &run->diag;
  const char *separator = " at ";

  if (run->rc == TB_OK) {
    tk_put_plain(stdout, path);
    printf(": ok: %" PRIu64 " events, %" PRIu64 " generations, trace format of Go 1.%u\n",
           run->events, run->generations, run->version);
    return;
  }
  tk_put_plain(stdout, path);
  fputs(": broken", stdout);
  if (diag->gen != TB_NO_GEN)
    printf("%sgeneration %" PRIu64, separator, diag->gen), separator = ", ";
  if (diag->thread != TB_NO_THREAD)
    printf("%sthread %" PRId64, separator, diag->thread), separator = ", ";
  if (diag->offset != TB_NO_OFFSET) printf("%soffset %" PRIu64, separator, diag->offset);
  fputs(": ", stdout);
  tk_put_plain(stdout, diag->text);
  putchar('\n');
}

static bool check_file(const char *path, const struct check_options *options) {
  const struct tk_trace_ask ask = { .verb = "check",
                                    .path = path,
                                    .sink = { NULL, count_only },
                                    .memory_max = options->memory_max,
                                    .threads = options->threads,
                                    .progress = !options->no_progress };
  struct tk_trace_run run;

  if (!tk_trace_run(&ask, &run)) return false;
  if (run.rc == TB_BUDGET && options->memory_max != 0)
    snprintf(run.diag.text, sizeof run.diag.text,
             "reading it needs more than --memory-max %" PRIu64, options->memory_max);
  if (options->json)
    print_json(path, &run);
  else
    print_line(path, &run);
  return run.rc == TB_OK;
}

static tb_rc read_bytes(const struct tk_option *option, const char *value, void *field,
                        struct tb_diag *diag) {
  if (parse_bytes(value, field)) return TB_OK;
  return tk_option_needs(option, "a size (64M, 2G)", value, diag);
}

#define AT(member) offsetof(struct check_options, member)
const struct tk_option tk_check_options[] = {
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one JSON object a file"),
  TK_OPTION(0, "memory-max", "SIZE", read_bytes, AT(memory_max),
            "fail rather than use more (64M, 2G)"),
  TK_OPTION(0, "threads", "1|2", tk_read_threads, AT(threads), TK_THREADS_ABOUT),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_GROUP(tk_url_tls_options, 0),
  { 0 },
};

int tk_cmd_check(int argc, char **argv) {
  struct check_options options = { .threads = 1 };
  int code = tk_options_read(argc, argv, tk_check_options, &options);

  if (code != TK_DONE) return code;
  if (options.memory_max != 0 && options.threads > 1)
    return tk_usage("check", "--memory-max cannot be combined with --threads 2");
  if (optind == argc) return tk_usage("check", "FILE is required");
  for (int i = optind; i < argc; i++)
    if (!check_file(argv[i], &options)) code = TK_FAILED;
  return code;
}
