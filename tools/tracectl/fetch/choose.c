/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/choose.h"

#include <string.h>

#include "base/text/hex.h"
#include "tools/tracectl/term/tracectl.h"

enum { STREAM_BYTES = 16, NAMED_MAX = 1000 }; /* as many streams as a collector names in a page */

typedef Tracecollect__V1__StreamStatus stream_status;

/* A stream without generations has nothing to fetch yet. */
static bool is_live(const stream_status *s) {
  return strcmp(s->state, "live") == 0 && s->generations > 0;
}

static bool is_newer(const stream_status *a, const stream_status *b) {
  if (a->newest_wall_ns != b->newest_wall_ns) return a->newest_wall_ns > b->newest_wall_ns;
  return a->last_wall_ns > b->last_wall_ns; /* neither has an archived generation */
}

static const stream_status *newest_of(const Tracecollect__V1__ListReply *page) {
  const stream_status *newest = page->streams[0];

  for (size_t i = 1; i < page->n_streams; i++)
    if (is_newer(page->streams[i], newest)) newest = page->streams[i];
  return newest;
}

static const char *hex_of(const stream_status *s, char hex[2 * STREAM_BYTES + 1]) {
  hex[0] = '\0';
  return s->stream.len == STREAM_BYTES ? tb_hex(s->stream.data, STREAM_BYTES, hex) : hex;
}

static tb_rc refuse(const char *verb, const Tracecollect__V1__ListReply *page, size_t live,
                    struct tb_diag *diag) {
  char hex[2 * STREAM_BYTES + 1];

  tk_note(verb, "%zu live streams match; choose one:", live);
  for (size_t i = 0; i < page->n_streams; i++)
    if (is_live(page->streams[i]))
      tk_note(verb, "  --service %s --instance %s --stream %s", page->streams[i]->service,
              page->streams[i]->instance, hex_of(page->streams[i], hex));
  return tb_fail(diag, TB_BROKEN, "one stream is required");
}

tb_rc tk_stream_choose(const char *verb, const Tracecollect__V1__ListReply *page,
                       struct tk_selector *selector, struct tb_diag *diag) {
  char hex[2 * STREAM_BYTES + 1];
  const stream_status *taken = NULL;
  size_t live = 0;

  if (page->n_streams < 2) return TB_OK;
  if (page->n_streams >= NAMED_MAX)
    return tb_fail(diag, TB_BROKEN,
                   "%zu streams match, or more; one is required: see 'tracectl status --json'",
                   page->n_streams);
  for (size_t i = 0; i < page->n_streams; i++) {
    if (!is_live(page->streams[i])) continue;
    taken = page->streams[i];
    live++;
  }
  if (live > 1) return refuse(verb, page, live, diag);
  if (taken == NULL) taken = newest_of(page);
  if (taken->stream.len != STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has %d bytes", STREAM_BYTES);
  memcpy(selector->stream, taken->stream.data, STREAM_BYTES);
  selector->has_stream = true;
  tk_note(verb,
          "%zu streams match, this is the %s: %s %s, --stream %s; another is had by --instance or "
          "--stream ('tracectl status --json' has them)",
          page->n_streams, live == 1 ? "live one" : "newest, none is live", taken->service,
          taken->instance, hex_of(taken, hex));
  return TB_OK;
}
