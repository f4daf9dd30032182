/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "online/spans/stacks/callstack.h"
#include "online/spans/stacks/library.h"
#include "pack/summary/private.h"

enum { FRAMES = 64 };

static void write_scaled(double value, const char *unit, char out[TP__WORDS]) {
  int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

  snprintf(out, TP__WORDS, "%.*f %s", decimals, value, unit);
}

const char *tp__ns_words(uint64_t ns, char out[TP__WORDS]) {
  static const struct {
    double ns;
    const char *name;
  } units[] = { { 1, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" } };
  unsigned u = 0;

  while (u + 1 < sizeof units / sizeof *units && (double)ns >= units[u + 1].ns * 0.9995) u++;
  if (ns >= UINT64_C(120000000000)) {
    snprintf(out, TP__WORDS, "%" PRIu64 " min", ns / UINT64_C(60000000000));
    return out;
  }
  write_scaled((double)ns / units[u].ns, units[u].name, out);
  if (u == 0) snprintf(out, TP__WORDS, "%" PRIu64 " ns", ns);
  return out;
}

const char *tp__count_words(uint64_t n, char out[TP__WORDS]) {
  char digits[TP__WORDS], *to = out;
  int len = snprintf(digits, sizeof digits, "%" PRIu64, n);

  for (int i = 0; i < len; i++) {
    if (i > 0 && (len - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return out;
}

const char *tp__bytes_words(uint64_t bytes, char out[TP__WORDS]) {
  static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
  double value = (double)bytes;
  unsigned u = 0;

  for (; u + 1 < sizeof units / sizeof *units && value >= 1024; u++) value /= 1024;
  write_scaled(value, units[u], out);
  return out;
}

const char *tp__share_words(double share, char out[TP__WORDS]) {
  snprintf(out, TP__WORDS, share >= 0.0995 ? "%.0f %%" : "%.1f %%", share * 100);
  return out;
}

static struct to_string string_of(const char *text) {
  return (struct to_string){ text, strlen(text) };
}

/* A plain name that is plumbing is a call of the C library: the most that a C program without stacks shows. */
static bool is_call(struct to_string function) {
  return function.len > 0 && memchr(function.data, '.', function.len) == NULL &&
         memchr(function.data, '/', function.len) == NULL &&
         to_code_of(&(struct to_frame){ .function = function }) == TO_CODE_PLUMBING;
}

bool tp_is_foreign(const char *function) {
  struct to_string name = string_of(function);
  enum to_code code = to_code_of(&(struct to_frame){ .function = name });

  return code == TO_CODE_AGENT || (code == TO_CODE_PLUMBING && !is_call(name));
}

bool tp__is_call(const char *place) {
  return is_call((struct to_string){ place, strcspn(place, ":") });
}

const char *tp__at(const char *place) {
  return tp__is_call(place) ? "in" : "at";
}

bool tp__place_words(const Tracecollect__V1__Report *report, const Tracecollect__V1__Value *stack,
                     char out[TP__PLACE]) {
  struct to_frame frame[FRAMES];
  const struct to_frame *frames[FRAMES];
  const Tracecollect__V1__Frame *from;
  size_t n = 0;

  for (; n < FRAMES && (from = tp_stack_frame(report, stack, n)) != NULL; n++) {
    frame[n] =
        (struct to_frame){ from->pc, from->line, string_of(from->function), string_of(from->file) };
    frames[n] = &frame[n];
  }
  out[0] = '\0';
  const struct to_frame *own =
      to_callstack_own(&(struct to_callstack){ .len = n, .frames = frames });
  if (own == NULL || tp_is_foreign(own->function.data)) return false;
  if (own->line > 0)
    snprintf(out, TP__PLACE, "%.200s:%" PRIu64, own->function.data, own->line);
  else
    snprintf(out, TP__PLACE, "%.200s", own->function.data);
  return true;
}
