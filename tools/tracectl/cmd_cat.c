/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_range.h"
#include "tools/tracectl/trace_file/trace_run.h"
#include "tools/tracectl/url/url.h"

typedef tb_rc events_fn(void *self, const struct to_generation *gen, const struct to_event *events,
                        size_t n);
typedef tb_rc file_fn(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                      struct tb_diag *diag);

/* In the order of the words of -d. */
enum { FORM_PARSED, FORM_WIRE, FORM_FOOTPRINT, FORM_JSON };
static const struct form {
  events_fn *events; /* prints ordered events */
  file_fn *file;     /* or the file as it is */
} forms[] = {
  [FORM_PARSED] = { tk_print_parsed, NULL },
  [FORM_WIRE] = { NULL, tk_print_wire },
  [FORM_FOOTPRINT] = { NULL, tk_print_footprint },
  [FORM_JSON] = { tk_print_json, NULL },
};

struct cat {
  unsigned form;
  const char *path;
  struct tk_trace_range_ask ask;
  struct tk_trace_ranges parts;      /* empty: all */
  const struct tk_trace_range *part; /* NULL: all */
  bool any;                          /* a part had matching events */
  bool json, no_progress;
  unsigned threads;
};

static bool print_ordered(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  struct tk_printer printer = { 0 };
  struct tk_trace_range_sink inside = { &cat->ask, { &printer, forms[cat->form].events }, false };
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
                                    .progress = !cat->no_progress && !isatty(STDOUT_FILENO) };
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
  run->rc = forms[cat->form].file(in, out, &tk_mem, &run->diag);
  if (run->diag.offset != TB_NO_OFFSET) run->diag.offset = tk_input_offset(in, run->diag.offset);
  tk_input_close(in);
  cat->any = true;
  return true;
}

static bool print_part(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  return forms[cat->form].file != NULL ? print_file(cat, out, run) : print_ordered(cat, out, run);
}

static bool print_parts(struct cat *cat, struct tk_out *out, struct tk_trace_run *run) {
  bool read = true;

  for (size_t i = 0; i < cat->parts.n && read && run->rc == TB_OK && out->error == 0; i++) {
    cat->part = &cat->parts.part[i];
    read = print_part(cat, out, run);
  }
  if (read && run->rc == TB_OK && !cat->any)
    run->rc = tb_fail(&run->diag, TB_NOTFOUND, "it has no event in that time");
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

  if (error == EPIPE) return TK_DONE; /* the pipe's reader has closed it */
  if (error != 0) return tk_fail("cat", "cannot write: %s", strerror(error));
  if (!read) return TK_FAILED; /* already reported */
  if (run.rc == TB_OK) return TK_DONE;
  tb_diag_format(&run.diag, why, sizeof why);
  return tk_fail("cat", "%s: %s", cat->path, run.diag.rc != TB_OK ? why : tb_rc_text(run.rc));
}

static int cat_part(struct cat *cat) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_trace_ranges_find("cat", cat->path, &cat->ask, &diag, &cat->parts);
  if (rc == TB_IO) return TK_FAILED; /* already reported */
  if (rc == TB_BROKEN) return tk_usage("cat", "%s", diag.text);
  if (rc != TB_OK) return tk_fail("cat", "%s: %s", cat->path, diag.text);
  int code = cat_file(cat);
  tk_trace_ranges_fini(&cat->parts);
  return code;
}

#define AT(member) offsetof(struct cat, member)
const struct tk_option tk_cat_options[] = {
  TK_OPTION('d', NULL, "parsed|wire|footprint|json", tk_read_word, AT(form),
            "parsed: ordered events, as go tool trace -d=parsed (the default); wire: events as "
            "they are in the file, as go tool trace -d=wire; footprint: bytes by event type, as go "
            "tool trace -d=footprint; json: ordered events, one object a line"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "the same as -d json"),
  TK_OPTION(0, "gen", "A..B", tk_read_generations, AT(ask.which),
            "only these generations, by number; A.. and ..B are open"),
  TK_OPTION(0, "since", "T", tk_read_time, AT(ask.which.since_wall_ns),
            "only events from T on: RFC 3339, -5m, now or @UNIX"),
  TK_OPTION(0, "until", "T", tk_read_time, AT(ask.which.until_wall_ns), "only events up to T"),
  TK_OPTION(0, "goroutine", "N", tk_read_count, AT(ask.goroutine),
            "only what this goroutine does and what is done to it: generations in which it only "
            "waits are not read; parsed and json"),
  TK_OPTION(0, "threads", "1|2", tk_read_threads, AT(threads), TK_THREADS_ABOUT),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_GROUP(tk_url_tls_options, 0),
  { 0 },
};

int tk_cmd_cat(int argc, char **argv) {
  struct cat cat = { .threads = 1 };
  int code = tk_options_read(argc, argv, tk_cat_options, &cat);

  if (code != TK_DONE) return code;
  if (optind + 1 != argc) return tk_usage("cat", "one FILE is required");
  if (cat.json) cat.form = FORM_JSON;
  if (cat.ask.goroutine != 0 && forms[cat.form].file != NULL)
    return tk_usage("cat", "--goroutine needs events in order: -d parsed or json");
  cat.path = argv[optind];
  bool is_part = cat.ask.goroutine != 0 || tk_selector_is_part(&cat.ask.which);
  return is_part ? cat_part(&cat) : cat_file(&cat);
}
