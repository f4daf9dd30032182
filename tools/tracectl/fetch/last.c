/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/last.h"

#include <errno.h>
#include <string.h>

#include "tools/tracectl/fetch/read.h"
#include "tools/tracectl/remote/remote.h"

struct last {
  struct tk_plan plan;
  struct tb_diag *diag;
};

static tb_rc take_page(void *self, const Tracecollect__V1__ListReply *page) {
  struct last *last = self;

  return tk_plan_take(&last->plan, page, last->diag);
}

static tb_rc make_plan(struct last *last, struct tk_client *client,
                       const struct tk_selector *selector) {
  const struct tk_list_ask ask = { .selector = selector, .settle = true, .detail = true };
  struct tk_plan *plan = &last->plan;

  TB_TRY(tk_remote_list(client, &ask, take_page, last, last->diag));
  if (plan->n_streams > 1)
    return tb_fail(last->diag, TB_BROKEN,
                   "%zu streams match, one is wanted; the first is %s; 'tracectl status' has all",
                   plan->n_streams, plan->streams[0]);
  TB_TRY(tk_plan_finish(plan, last->diag));
  if (plan->n_pieces > 0) return TB_OK;
  return tb_fail(last->diag, TB_NOTFOUND, "%s",
                 tk_remote_no_match(client, selector, "nothing in the archive matches"));
}

static size_t first_of_last(const struct tk_plan *plan) {
  size_t first = plan->n_pieces - 1;

  while (first > 0 && !plan->pieces[first].begins_file) first--;
  return first;
}

static tb_rc read_pieces(struct last *last, struct tk_client *client, bool progress,
                         struct tk_last *out) {
  const struct tk_plan *plan = &last->plan;
  size_t first = first_of_last(plan);
  struct tk_fetch fetch = { .client = client, .diag = last->diag, .full = true };
  tb_rc rc = TB_OK;

  out->first_gen = plan->pieces[first].first_gen;
  out->last_gen = plan->pieces[plan->n_pieces - 1].last_gen;
  if (plan->n_streams > 0) snprintf(out->stream, sizeof out->stream, "%s", plan->streams[0]);
  tk_progress_begin(&fetch.progress, "fetch", plan->bytes, progress);
  for (size_t i = first; rc == TB_OK && i < plan->n_pieces; i++)
    rc = tk_fetch_piece(&fetch, &plan->pieces[i], i == first, out->file);
  tk_progress_end(&fetch.progress);
  if (rc == TB_OK && fflush(out->file) != 0)
    rc = tb_fail(last->diag, TB_IO, "the temporary file: %s", strerror(errno));
  return rc;
}

tb_rc tk_fetch_last(struct tk_client *client, const struct tk_selector *selector, bool progress,
                    struct tb_diag *diag, struct tk_last *out) {
  struct last last = { .diag = diag };

  *out = (struct tk_last){ .file = tmpfile() };
  if (out->file == NULL) return tb_fail(diag, TB_IO, "a temporary file: %s", strerror(errno));
  snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", fileno(out->file));
  tk_plan_init(&last.plan, selector);
  tb_rc rc = make_plan(&last, client, selector);
  if (rc == TB_OK) rc = read_pieces(&last, client, progress, out);
  tk_plan_fini(&last.plan);
  if (rc != TB_OK) tk_last_close(out);
  return rc;
}

void tk_last_close(struct tk_last *last) {
  if (last->file != NULL) fclose(last->file);
  last->file = NULL;
}
