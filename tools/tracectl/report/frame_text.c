/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pack/report_read.h"

typedef Tracecollect__V1__Frame Frame;

/* Strips the package's path: "net/http.(*conn).serve" becomes "http.(*conn).serve". */
static const char *short_function(const char *name) {
  size_t plain = strcspn(name, "[(");
  const char *start = name;

  for (const char *c = name; c < name + plain; c++)
    if (*c == '/') start = c + 1;
  return start;
}

void tk_frame_text(const Frame *frame, char *out, size_t out_bytes) {
  const char *slash = strrchr(frame->file, '/');

  if (frame->file[0] == '\0') { /* a call named by the preload library, without a source */
    snprintf(out, out_bytes, "%s", short_function(frame->function));
    return;
  }
  snprintf(out, out_bytes, "%s  %s:%" PRIu64, short_function(frame->function),
           slash == NULL ? frame->file : slash + 1, frame->line);
}

bool tk_frame_is_plumbing(const Frame *frame) {
  static const char *const prefixes[] = { "runtime.", "syscall.", "internal/", "runtime/" };

  for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
    if (strncmp(frame->function, prefixes[i], strlen(prefixes[i])) == 0) return true;
  return false;
}

const Frame *tk_frame_own(Frame *const *frames, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!tk_frame_is_plumbing(frames[i])) return frames[i];
  return n > 0 ? frames[0] : NULL;
}

const Frame *tk_frame_own_of(const Tracecollect__V1__Report *r,
                             const Tracecollect__V1__Value *stack) {
  const Frame *first = tp_stack_frame(r, stack, 0);

  for (size_t i = 0; i < tp_stack_length(r, stack); i++) {
    const Frame *frame = tp_stack_frame(r, stack, i);
    if (frame != NULL && !tk_frame_is_plumbing(frame)) return frame;
  }
  return first;
}
