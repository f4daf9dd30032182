/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/inputs/inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/url.h"

#define AT(member) offsetof(struct tk_inputs, member)
const struct tk_option tk_inputs_options[] = {
  TK_GROUP(tk_selector_options, AT(selector)),
  TK_OPTION(0, "all", NULL, tk_read_flag, AT(all), "all that a collector has of these streams"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

static int take_room(struct tk_inputs *in, size_t n) {
  in->place = calloc(n, sizeof *in->place);
  return in->place != NULL ? TK_DONE : tk_fail(in->verb, "out of memory");
}

/* Finds the generations in the requested time. */
static int find_part(const struct tk_inputs *in, struct tk_place *place) {
  const struct tk_trace_range_ask ask = { .which = in->selector };
  struct tk_trace_ranges ranges = { 0 };
  struct tb_diag diag;

  if (!tk_selector_is_part(&in->selector)) return TK_DONE;
  tb_diag_clear(&diag);
  tb_rc rc = tk_trace_ranges_find(in->verb, place->path, &ask, &diag, &ranges);
  if (rc == TB_IO) return TK_FAILED; /* already reported */
  if (rc == TB_BROKEN) return tk_usage(in->verb, "%s", diag.text);
  if (rc != TB_OK) return tk_fail(in->verb, "%s: %s", place->path, diag.text);
  place->part = ranges.part[0];
  tk_trace_ranges_fini(&ranges);
  return TK_DONE;
}

static int open_files(struct tk_inputs *in, char **files, int n_files) {
  int code = take_room(in, (size_t)n_files);

  for (int i = 0; code == TK_DONE && i < n_files; i++) {
    if (strcmp(files[i], "-") == 0)
      return tk_usage(in->verb, "'-' cannot be read here: FILE may be read more than once");
    struct tk_place *place = &in->place[in->n++];
    *place = (struct tk_place){ .path = files[i], .name = files[i], .verb = in->verb };
    code = find_part(in, place);
  }
  return code;
}

static void print_inputs(const struct tk_inputs *in) {
  const struct tk_fetched_traces *f = &in->fetched;
  char size[TK_SIZE_BYTES], missing[80] = "";

  tk_size_format(f->bytes, size);
  if (f->missing > 0)
    snprintf(missing, sizeof missing, "; %" PRIu64 " more are missing", f->missing);
  tk_note(in->verb, "%" PRIu64 " generation%s of %" PRIu64 " stream%s, %s%s", f->generations,
          tk_plural(f->generations), f->streams, tk_plural(f->streams), size, missing);
}

static int open_streams(struct tk_inputs *in) {
  struct tk_client *client;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_remote_open(&in->client, &in->selector, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail(in->verb, rc, &diag);
  rc = tk_fetch_traces(client, &in->selector, in->all, !in->no_progress, &diag, &in->fetched);
  tk_client_close(client);
  if (rc != TB_OK) return tk_remote_fail(in->verb, rc, &diag);
  print_inputs(in);
  int code = take_room(in, in->fetched.n);
  for (size_t i = 0; code == TK_DONE && i < in->fetched.n; i++)
    in->place[in->n++] = (struct tk_place){ .path = in->fetched.trace[i].path,
                                            .name = in->fetched.trace[i].stream,
                                            .verb = in->verb };
  return code;
}

void tk_inputs_give_tls(struct tk_client_args *args, char **files, int n_files) {
  bool are_urls =
      n_files > 0 && args->server == NULL && args->certs == NULL && args->tls_crl == NULL;

  for (int i = 0; i < n_files; i++) are_urls &= tk_url_is(files[i]);
  if (!are_urls) return;
  tk_url_use_tls(args->tls_ca, args->tls_cert, args->tls_key);
  *args = (struct tk_client_args){ 0 };
}

int tk_inputs_open(struct tk_inputs *in, char **files, int n_files) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tk_inputs_give_tls(&in->client, files, n_files);
  in->is_remote |= in->all || in->selector.last_ns != 0 ||
                   tk_selector_names_streams(&in->selector) || tk_client_is_given(&in->client);
  if (n_files > 0 && in->is_remote)
    return tk_usage(in->verb, "FILE cannot be combined with options for a collector's streams");
  if (n_files == 0 && !in->is_remote)
    return tk_usage(in->verb, "FILE is required, or --service S for what a collector has");
  tb_rc rc = tk_selector_check(&in->selector, &diag);
  if (rc != TB_OK) return tk_remote_fail(in->verb, rc, &diag);
  return n_files > 0 ? open_files(in, files, n_files) : open_streams(in);
}

void tk_inputs_close(struct tk_inputs *in) {
  free(in->place);
  tk_fetched_fini(&in->fetched);
}
