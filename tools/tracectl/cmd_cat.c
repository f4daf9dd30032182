/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/tracectl/print.h"
#include "tools/tracectl/trace_run.h"
#include "tools/tracectl/tracectl.h"

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

static bool print_ordered(const struct mode *mode, const char *path, struct tk_out *out,
                          bool progress, struct tk_trace_run *run) {
  struct tk_printer printer = { 0 };
  struct tb_diag fault; /* of printing itself */

  tb_diag_clear(&fault);
  if (tk_printer_init(&printer, &tk_mem, out, &fault) != TB_OK) {
    tk_fail("cat", "out of memory");
    return false;
  }
  bool read = tk_trace_run("cat", path, (struct to_event_sink){ &printer, mode->events }, SIZE_MAX,
                           progress && !isatty(STDOUT_FILENO), run);
  if (fault.rc != TB_OK) run->diag = fault;
  tk_printer_fini(&printer);
  return read;
}

static bool print_file(const struct mode *mode, const char *path, struct tk_out *out,
                       struct tk_trace_run *run) {
  struct tk_input *in = NULL;

  if (!tk_input_open("cat", path, &in)) return false;
  tb_diag_clear(&run->diag);
  run->rc = mode->file(in, out, &tk_mem, &run->diag);
  tk_input_close(in);
  return true;
}

static int cat_file(const struct mode *mode, const char *path, bool progress) {
  struct tk_trace_run run = { 0 };
  char why[300];

  struct tk_out *out = malloc(sizeof *out); /* too large for a stack */
  if (out == NULL) return tk_fail("cat", "out of memory");
  tk_out_init(out, STDOUT_FILENO);
  bool read = mode->file != NULL ? print_file(mode, path, out, &run)
                                 : print_ordered(mode, path, out, progress, &run);
  tk_out_flush(out);
  int error = out->error;
  free(out);

  if (error == EPIPE) return TK_DONE; /* whoever read has seen enough */
  if (error != 0) return tk_fail("cat", "cannot write: %s", strerror(error));
  if (!read) return TK_FAILED; /* said where it was seen */
  if (run.rc == TB_OK) return TK_DONE;
  tb_diag_format(&run.diag, why, sizeof why);
  return tk_fail("cat", "%s: %s", path, run.diag.rc != TB_OK ? why : tb_rc_text(run.rc));
}

int tk_cmd_cat(int argc, char **argv) {
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "no-progress", no_argument, NULL, 'q' },
    { NULL, 0, NULL, 0 },
  };
  const struct mode *mode = find_mode("parsed");
  bool progress = true;
  int opt;

  while ((opt = getopt_long(argc, argv, "d:", options, NULL)) != -1) {
    switch (opt) {
    case 'd':
      if ((mode = find_mode(optarg)) == NULL)
        return tk_usage("cat", "no form \"%s\": one of parsed, wire, footprint, json", optarg);
      break;
    case 'j': mode = find_mode("json"); break;
    case 'q': progress = false; break;
    default: return tk_usage_hint("cat");
    }
  }
  if (optind + 1 != argc) return tk_usage("cat", "one FILE is wanted");
  return cat_file(mode, argv[optind], progress);
}
