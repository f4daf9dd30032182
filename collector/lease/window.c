/* SPDX-License-Identifier: Apache-2.0 */
/* Two marks describe what the reader has: the end of what it acknowledged, and of what was last sent.
 * Its next ask names one of the two, or a bundle in between that is still in the window. */
#include "collector/lease/window.h"

#include <stdlib.h>

void tc_lease_window_init(struct tc_lease_window *w, size_t bytes_max) {
  *w = (struct tc_lease_window){ .bytes_max = bytes_max };
  w->end = &w->first;
}

struct tc_bundle *tc_bundle_new(uint64_t lease, size_t len) {
  struct tc_bundle *bundle = malloc(sizeof *bundle + len);

  if (bundle != NULL)
    *bundle = (struct tc_bundle){ .lease = lease, .len = len, .magic = TC_BUNDLE_MAGIC };
  return bundle;
}

void tc_bundle_free(struct tc_bundle *bundle) {
  if (bundle == NULL) return;
  TB_MAGIC_END(bundle, TC_BUNDLE_MAGIC);
  free(bundle);
}

static void free_first(struct tc_lease_window *w) {
  struct tc_bundle *gone = w->first;

  w->first = gone->next;
  if (w->first == NULL) w->end = &w->first;
  w->bytes -= gone->len;
  tc_bundle_free(gone);
}

void tc_lease_window_fini(struct tc_lease_window *w) {
  while (w->first != NULL) free_first(w);
}

bool tc_lease_window_drop(struct tc_lease_window *w) {
  if (w->first == NULL) return false;
  if (w->first->number > w->sent.number) w->lost += w->first->events;
  free_first(w);
  return true;
}

void tc_lease_window_add(struct tc_lease_window *w, struct tc_bundle *bundle) {
  w->position += bundle->lost_before;
  w->lost += bundle->lost_before;
  bundle->number = ++w->number;
  bundle->position = w->position;
  w->position += bundle->events;
  bundle->next = NULL;
  *w->end = bundle;
  w->end = &bundle->next;
  w->bytes += bundle->len;
  while (w->bytes > w->bytes_max) (void)tc_lease_window_drop(w);
}

static tb_rc acknowledge(struct tc_lease_window *w, uint64_t after) {
  const struct tc_bundle *b = w->first;

  if (after == w->acked.number) return TB_OK;
  if (after == w->sent.number) {
    w->acked = w->sent;
  } else {
    while (b != NULL && b->number < after) b = b->next;
    if (after > w->sent.number || b == NULL || b->number != after) return TB_PROTOCOL;
    w->acked = (struct tc_lease_mark){ b->number, b->position + b->events };
  }
  while (w->first != NULL && w->first->number <= after) free_first(w);
  return TB_OK;
}

tb_rc tc_lease_window_next(struct tc_lease_window *w, uint64_t after, size_t bytes_max,
                           const struct tc_bundle **out, size_t *out_n, uint64_t *out_lost) {
  size_t bytes = 0;

  TB_TRY(acknowledge(w, after));
  *out = w->first;
  *out_n = 0;
  *out_lost = w->first != NULL ? w->first->position - w->acked.position : 0;
  for (const struct tc_bundle *b = w->first; b != NULL; b = b->next) {
    bytes += b->len;
    if (*out_n > 0 && bytes > bytes_max) break;
    ++*out_n;
    w->sent = (struct tc_lease_mark){ b->number, b->position + b->events };
  }
  return TB_OK;
}
