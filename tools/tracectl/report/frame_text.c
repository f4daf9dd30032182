/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "online/spans/stacks/library.h"
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

static struct to_frame plain_frame(const Frame *frame) {
  return (struct to_frame){ .line = frame->line,
                            .function = { frame->function, strlen(frame->function) },
                            .file = { frame->file, strlen(frame->file) } };
}

void tk_frame_text(const Frame *frame, char *out, size_t out_bytes) {
  const char *slash = strrchr(frame->file, '/');
  const struct to_frame plain = plain_frame(frame);

  if (frame->file[0] == '\0' ||
      to_library_line(&plain) == 0) { /* a call named by the preload library, without a source */
    snprintf(out, out_bytes, "%s", short_function(frame->function));
    return;
  }
  snprintf(out, out_bytes, "%s  %s:%" PRIu64, short_function(frame->function),
           slash == NULL ? frame->file : slash + 1, frame->line);
}

enum to_code tk_frame_code(const Frame *frame) {
  const struct to_frame plain = plain_frame(frame);

  return to_code_of(&plain);
}

/* Goes on like to_callstack_own(): the innermost frame of the highest code so far. */
static bool is_higher(const Frame *frame, enum to_code *highest) {
  enum to_code code = tk_frame_code(frame);
  bool is = code > *highest;

  if (is) *highest = code;
  return is;
}

const Frame *tk_frame_own(Frame *const *frames, size_t n) {
  enum to_code highest = TO_CODE_PLUMBING;
  const Frame *own = n > 0 ? frames[0] : NULL;

  for (size_t i = 0; i < n && highest < TO_CODE_PROGRAM; i++)
    if (is_higher(frames[i], &highest)) own = frames[i];
  return own;
}

size_t tk_frame_find_own(const Tracecollect__V1__Report *r, const Tracecollect__V1__Value *stack) {
  enum to_code highest = TO_CODE_PLUMBING;
  size_t own = 0;

  for (size_t i = 0; i < tp_stack_length(r, stack) && highest < TO_CODE_PROGRAM; i++) {
    const Frame *frame = tp_stack_frame(r, stack, i);
    if (frame != NULL && is_higher(frame, &highest)) own = i;
  }
  return own;
}

const Frame *tk_frame_own_of(const Tracecollect__V1__Report *r,
                             const Tracecollect__V1__Value *stack) {
  return tp_stack_frame(r, stack, tk_frame_find_own(r, stack));
}

void tk_frame_note(const char *word, const Frame *frame, char *out, size_t out_bytes) {
  snprintf(out, out_bytes, "  (%s %s)", word, short_function(frame->function));
}
