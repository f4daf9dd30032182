/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/tail/tail.h"

/* The last used stream is first, because bundles of a stream come in series. */
struct tk_cursor *tk_cursor_of(struct tk_cursors *cursors, const unsigned char *stream) {
  struct tk_cursor *c;

  for (struct tk_cursor **at = &cursors->first; (c = *at) != NULL; at = &c->next) {
    if (memcmp(c->stream, stream, sizeof c->stream) != 0) continue;
    *at = c->next;
    c->next = cursors->first;
    return cursors->first = c;
  }
  c = calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  memcpy(c->stream, stream, sizeof c->stream);
  c->next = cursors->first;
  return cursors->first = c;
}

void tk_cursors_fini(struct tk_cursors *cursors) {
  for (struct tk_cursor *c = cursors->first, *next; c != NULL; c = next) {
    next = c->next;
    free(c);
  }
  cursors->first = NULL;
}
