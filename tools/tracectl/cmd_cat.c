/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_range.h"
#include "tools/tracectl/trace_file/trace_run.h"

typedef tb_rc events_fn(void *self, const struct to_generation *gen, const struct to_event *events,
                        size_t n);
typedef tb_rc file_fn(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                      struct tb_diag *diag);

static const struct mode {
  const char *name;
  events_fn *events; /* prints ordered events */
  file_fn *file;     /* or the file as it stands */
} modes[] = {
  { "parsed", tk_print_parsed, NULL },
  { "wire", NULL, tk_print_wire },
  { "footprint", NULL, tk_print_footprint },
  { "json", tk_print_json, NULL },
};

static const struct mode *find_mode(const char *name) {
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp(modes[i].name, name) == 0) return &modes[i];
  return NULL;
}

struct cat {
  const struct mode *mode;
  const char *path;
  struct tk_trace_range_ask ask;
  struct tk_trace_ranges parts;      /* none: all */
  const struct tk_trace_range *part; /* NULL: all */
  bool any;                          /* a part had events that are wanted */
  bool progress;
  unsigned threads;
};

static bool print_ordered(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  struct tk_printer printer = { 0 };
  struct tk_trace_range_sink inside = { &cat->ask, { &printer, cat->mode->events }, false };
  struct tb_diag fault; /* of printing itself */

  tb_diag_clear(&fault);
  if (tk_printer_init(&printer, &tk_mem, out, &fault) != TB_OK) {
    tk_fail("cat", "out of memory");
    return false;
  }
  struct to_event_sink sink = { &inside, tk_trace_range_events };
  const struct tk_trace_ask ask = { .verb = "cat",
                                    .path = cat->path,
                                    .part = cat->part,
                                    .sink = cat->part != NULL ? sink : inside.to,
                                    .threads = cat->threads,
                                    .frames = true,
                                    .progress = cat->progress && !isatty(STDOUT_FILENO) };
  bool read = tk_trace_run(&ask, run);
  if (fault.rc != TB_OK) run->diag = fault;
  cat->any |= inside.any;
  tk_printer_fini(&printer);
  return read;
}

static bool print_file(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  struct tk_input *in = NULL;

  if (!tk_input_open("cat", cat->path, &in)) return false;
  if (cat->part != NULL) tk_input_part(in, cat->part);
  tb_diag_clear(&run->diag);
  run->rc = cat->mode->file(in, out, &tk_mem, &run->diag);
  if (run->diag.offset != TB_NO_OFFSET) run->diag.offset = tk_input_offset(in, run->diag.offset);
  tk_input_close(in);
  cat->any = true;
  return true;
}

static bool print_part(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  return cat->mode->file != NULL ? print_file(cat, out, run) : print_ordered(cat, out, run);
}

static bool print_parts(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  bool read = true;

  for (size_t i = 0; i < cat->parts.n && read && run->rc == TB_OK && out->error == 0; i++) {
    cat->part = &cat->parts.part[i];
    read = print_part(cat, out, run);
  }
  if (read && run->rc == TB_OK && !cat->any)
    run->rc = tb_fail(&run->diag, TB_NOTFOUND, "no event of that time is in it");
  return read;
}

static int cat_file(struct cat *cat) {
  struct tk_trace_run run = { 0 };
  char why[300];

  struct tk_out *out = malloc(sizeof *out); /* too large for a stack */
  if (out == NULL) return tk_fail("cat", "out of memory");
  tk_out_init(out, STDOUT_FILENO);
  bool read = cat->parts.n > 0 ? print_parts(cat, out, &run) : print_part(cat, out, &run);
  tk_out_flush(out);
  int error = out->error;
  free(out);

  if (error == EPIPE) return TK_DONE; /* the reader of the pipe has seen enough */
  if (error != 0) return tk_fail("cat", "cannot write: %s", strerror(error));
  if (!read) return TK_FAILED; /* said where it was seen */
  if (run.rc == TB_OK) return TK_DONE;
  tb_diag_format(&run.diag, why, sizeof why);
  return tk_fail("cat", "%s: %s", cat->path, run.diag.rc != TB_OK ? why : tb_rc_text(run.rc));
}

static int cat_part(struct cat *cat) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_trace_ranges_find("cat", cat->path, &cat->ask, &diag, &cat->parts);
  if (rc == TB_IO) return TK_FAILED; /* said where it was seen */
  if (rc == TB_BROKEN) return tk_usage("cat", "%s", diag.text);
  if (rc != TB_OK) return tk_fail("cat", "%s: %s", cat->path, diag.text);
  int code = cat_file(cat);
  tk_trace_ranges_fini(&cat->parts);
  return code;
}

static int take_part_option(struct cat *cat, int option, const char *value) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_trace_range_option(&cat->ask, option, value, &diag);
  if (rc == TB_NOTFOUND) return tk_usage_hint("cat");
  return rc == TB_OK ? TK_DONE : tk_remote_fail("cat", rc, &diag);
}

int tk_cmd_cat(int argc, char **argv) {
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "no-progress", no_argument, NULL, 'q' },
    { "threads", required_argument, NULL, 't' },
    TK_TRACE_RANGE_OPTIONS,
    { NULL, 0, NULL, 0 },
  };
  struct cat cat = { .mode = find_mode("parsed"), .progress = true, .threads = 1 };
  int opt, code;

  while ((opt = tk_option_next(argc, argv, "d:", options)) != -1) {
    switch (opt) {
    case 'd':
      if ((cat.mode = find_mode(optarg)) == NULL)
        return tk_usage("cat", "no form \"%s\": one of parsed, wire, footprint, json", optarg);
      break;
    case 'j': cat.mode = find_mode("json"); break;
    case 'q': cat.progress = false; break;
    case 't':
      if (!tk_threads_parse(optarg, &cat.threads)) return tk_threads_usage("cat", optarg);
      break;
    default:
      if ((code = take_part_option(&cat, opt, optarg)) != TK_DONE) return code;
    }
  }
  if (optind + 1 != argc) return tk_usage("cat", "one FILE is wanted");
  if (cat.ask.goroutine != 0 && cat.mode->file != NULL)
    return tk_usage("cat", "--goroutine wants events in order: -d parsed or json");
  cat.path = argv[optind];
  return cat.ask.given ? cat_part(&cat) : cat_file(&cat);
}
