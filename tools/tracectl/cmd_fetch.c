/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl fetch: archived generations as one trace, byte for byte as the program wrote them. Go's reader refuses a trace with
 * missing generations, so a new file begins after a hole. It stops at a broken generation, so with --split a new file begins
 * after that, too (fetch/plan.c finds both). */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/fetch/choose.h"
#include "tools/tracectl/fetch/firing.h"
#include "tools/tracectl/fetch/read.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

struct fetching {
  struct tk_client_args args;
  struct tk_selector selector;
  struct tk_firing_ask firing;
  const char *path;
  bool split, strict, json, no_progress;
  struct tk_plan plan;
  struct tk_fetch fetch;
  uint64_t file_bytes[TK_OUT_FILES_MAX];
};

/* --- messages --------------------------------------------------------------------------------- */

static void say_range(const struct tk_gap *gap, const char *more) {
  if (gap->first_gen == gap->last_gen)
    tk_note("fetch", "generation %" PRIu64 " is missing: %s%s", gap->first_gen, gap->why, more);
  else
    tk_note("fetch", "generations %" PRIu64 "..%" PRIu64 " are missing: %s%s", gap->first_gen,
            gap->last_gen, gap->why, more);
}

static void file_name(const struct fetching *f, unsigned number, char out[PATH_MAX]) {
  if (number == 1)
    snprintf(out, PATH_MAX, "%s", f->path);
  else
    snprintf(out, PATH_MAX, "%s.%u", f->path, number);
}

/* Formats "; what follows is in FILE.2" if a file follows this generation; else "". */
static void where_more_is(const struct fetching *f, uint64_t gen, char out[PATH_MAX + 32]) {
  const struct tk_plan *p = &f->plan;
  char path[PATH_MAX];
  unsigned number = 1;

  out[0] = '\0';
  for (size_t i = 1; i < p->n_pieces; i++) {
    number += p->pieces[i].begins_file;
    if (p->pieces[i].first_gen <= gen) continue;
    file_name(f, number, path);
    snprintf(out, PATH_MAX + 32, "; what follows is in %s", path);
    return;
  }
}

static void say_plan(const struct fetching *f) {
  const struct tk_plan *p = &f->plan;
  char more[PATH_MAX + 32];

  for (size_t i = 0; i < p->n_broken; i++) {
    bool is_last = p->broken[i].gen == p->pieces[p->n_pieces - 1].last_gen;
    snprintf(more, sizeof more, "%s",
             is_last ? "" : "; Go's tools end there, --split begins another file after it");
    if (p->splits_broken) where_more_is(f, p->broken[i].gen, more);
    tk_note("fetch", "generation %" PRIu64 " is broken as written: %s%s", p->broken[i].gen,
            p->broken[i].reason, more);
  }
  for (size_t i = 0; i < p->n_gaps; i++) {
    bool inside = p->gaps[i].first_gen > p->pieces[0].first_gen;
    more[0] = '\0';
    if (inside) where_more_is(f, p->gaps[i].last_gen, more);
    say_range(&p->gaps[i], more);
  }
}

/* Reports a file's pieces, after all files are published. */
static void say_file(const struct fetching *f, unsigned number, const struct tk_piece *first,
                     const struct tk_piece *last, uint64_t bytes) {
  char path[PATH_MAX], size[TK_SIZE_BYTES];

  file_name(f, number, path);
  if (f->json) {
    json_t *line =
        json_pack("{s:s,s:I,s:I,s:I}", "file", path, "first_gen", (json_int_t)first->first_gen,
                  "last_gen", (json_int_t)last->last_gen, "bytes", (json_int_t)bytes);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
    return;
  }
  tk_size_format(bytes, size);
  if (first->first_gen == last->last_gen)
    tk_note("fetch", "%s: generation %" PRIu64 ", %s", path, first->first_gen, size);
  else
    tk_note("fetch", "%s: generations %" PRIu64 "..%" PRIu64 ", %s", path, first->first_gen,
            last->last_gen, size);
}

static void say_files(const struct fetching *f) {
  const struct tk_piece *piece = f->plan.pieces, *end = piece + f->plan.n_pieces;

  for (unsigned number = 1; piece < end; number++) {
    const struct tk_piece *first = piece;
    for (piece++; piece < end && !piece->begins_file;) piece++;
    say_file(f, number, first, piece - 1, f->file_bytes[number - 1]);
  }
  if (f->fetch.left_out_batches != 0)
    tk_note("fetch",
            "%" PRIu64 " batches and %" PRIu64 " events (%" PRIu64
            " bytes) of experiments Go's tools cannot read were left out; --full keeps them",
            f->fetch.left_out_batches, f->fetch.left_out_events, f->fetch.left_out_bytes);
}

/* --- work -------------------------------------------------------------------------------------- */

static tb_rc take_page(void *self, const Tracecollect__V1__ListReply *page) {
  struct fetching *f = self;

  if (page->n_streams <= 1) return tk_plan_take(&f->plan, page, f->fetch.diag);
  TB_TRY(tk_stream_choose("fetch", page, &f->selector, f->fetch.diag));
  return TB_AGAIN;
}

static tb_rc make_plan(struct fetching *f) {
  const struct tk_list_ask ask = { .selector = &f->selector, .settle = true, .detail = true };
  struct tb_diag *diag = f->fetch.diag;

  tb_rc rc = tk_remote_list(f->fetch.client, &ask, take_page, f, diag);
  if (rc == TB_AGAIN) rc = tk_remote_list(f->fetch.client, &ask, take_page, f, diag);
  TB_TRY(rc);
  TB_TRY(tk_plan_finish(&f->plan, diag));
  if (f->plan.n_pieces != 0) return TB_OK;
  if (f->plan.n_absences != 0)
    return tb_fail(diag, TB_NOTFOUND, "nothing is left of what matches: %s",
                   f->plan.absences[0].why);
  return tb_fail(
      diag, TB_NOTFOUND, "%s",
      tk_remote_no_match(f->fetch.client, &f->selector, "nothing in the archive matches"));
}

static tb_rc read_pieces(struct fetching *f, struct tk_out_set *files) {
  char path[PATH_MAX];
  unsigned number = 0;
  FILE *file = NULL;

  for (size_t i = 0; i < f->plan.n_pieces; i++) {
    const struct tk_piece *piece = &f->plan.pieces[i];
    bool begins = i == 0 || piece->begins_file;
    if (begins) {
      file_name(f, ++number, path);
      TB_TRY(tk_out_begin(files, path, f->fetch.diag, &file));
      f->fetch.written = 0;
    }
    TB_TRY(tk_fetch_piece(&f->fetch, piece, begins, file));
    f->file_bytes[number - 1] = f->fetch.written;
  }
  return tk_out_publish(files, f->fetch.diag);
}

static tb_rc write_files(struct fetching *f) {
  struct tk_out_set *files;

  /* The second trace would not fit into the pipe. */
  for (size_t i = 1; strcmp(f->path, "-") == 0 && i < f->plan.n_pieces; i++)
    if (f->plan.pieces[i].begins_file)
      return tb_fail(f->fetch.diag, TB_REFUSED,
                     "a %s comes before generation %" PRIu64
                     ": two traces do not fit into one pipe; use -o FILE, or --gen",
                     f->plan.pieces[i - 1].ends_broken ? "broken generation" : "hole",
                     f->plan.pieces[i].first_gen);
  TB_TRY(tk_out_new(f->fetch.diag, &files));
  tk_progress_begin(&f->fetch.progress, "fetch", f->plan.bytes, !f->no_progress);
  tb_rc rc = read_pieces(f, files);
  tk_progress_end(&f->fetch.progress);
  tk_out_free(files);
  return rc;
}

static tb_rc run_fetch(struct fetching *f) {
  TB_TRY(tk_remote_open(&f->args, &f->selector, f->fetch.diag, &f->fetch.client));
  tb_rc rc = tk_firing_is_asked(&f->firing)
                 ? tk_firing_select(f->fetch.client, &f->firing, &f->selector, f->fetch.diag)
                 : TB_OK;
  tk_plan_init(&f->plan, &f->selector);
  f->plan.splits_broken = f->split;
  if (rc == TB_OK) rc = make_plan(f);
  if (rc == TB_OK) {
    say_plan(f);
    rc = write_files(f);
  }
  if (rc == TB_OK) say_files(f);
  tk_client_close(f->fetch.client);
  return rc;
}

/* --- options ----------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct fetching, member)
const struct tk_option tk_fetch_options[] = {
  TK_GROUP(tk_selector_options, AT(selector)),
  TK_OPTION(0, "firing", "ID", tk_read_count, AT(firing.id),
            "what a rule fired on: the generation and the previous one, or with --last what was "
            "traced so long before its end; `trigger history --json` shows the ids"),
  TK_OPTION(0, "trigger", "NAME", tk_read_text, AT(firing.rule),
            "the newest firing of this rule, as --firing"),
  TK_OPTION('o', "output", "FILE", tk_read_text, AT(path),
            "the file to write; - is standard output; what follows a hole goes to FILE.2"),
  TK_OPTION(0, "split", NULL, tk_read_flag, AT(split),
            "write what follows a broken generation to another file: Go's tools end there"),
  TK_OPTION(0, "full", NULL, tk_read_flag, AT(fetch.full),
            "keep experiments that Go's tools cannot read"),
  TK_OPTION(0, "strict", NULL, tk_read_flag, AT(strict), "exit 4 if generations are missing"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object a file"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_client_options, AT(args)),
  { 0 },
};

static tb_rc check_options(struct fetching *f) {
  struct tb_diag *diag = f->fetch.diag;

  TB_TRY(tk_selector_check(&f->selector, diag));
  TB_TRY(tk_firing_check(&f->firing, &f->selector, diag));
  if (f->path == NULL) return tb_fail(diag, TB_BROKEN, "-o FILE is required");
  if (strlen(f->path) > PATH_MAX - 16) return tb_fail(diag, TB_BROKEN, "-o: the path is too long");
  if (f->json && strcmp(f->path, "-") == 0)
    return tb_fail(diag, TB_BROKEN,
                   "--json and -o -: only one of them can write to standard output");
  return TB_OK;
}

int tk_cmd_fetch(int argc, char **argv) {
  struct fetching f = { 0 };
  int code = tk_options_read(argc, argv, tk_fetch_options, &f);
  struct tb_diag diag;
  tb_rc rc = TB_OK;

  if (code != TK_DONE) return code;
  tb_diag_clear(&diag);
  f.fetch.diag = &diag;
  for (; rc == TB_OK && optind < argc; optind++)
    rc = tk_selector_segment(&f.selector, argv[optind], &diag);
  if (rc == TB_OK) rc = check_options(&f);

  if (rc == TB_OK) rc = run_fetch(&f);
  bool incomplete = f.plan.n_gaps != 0;
  tk_plan_fini(&f.plan);
  if (rc == TB_IO && f.path != NULL && strcmp(f.path, "-") == 0 && tk_reader_is_gone())
    return TK_DONE;
  if (rc != TB_OK) return tk_remote_fail("fetch", rc, &diag);
  return incomplete && f.strict ? TK_INCOMPLETE : TK_DONE;
}
