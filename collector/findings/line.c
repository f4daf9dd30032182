/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/findings/line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/hex.h"

enum { FIELDS = 22, HEX_BYTES = 2 * TC_STREAM_BYTES + 1 };

void tc__finding_print(const struct tc_finding *f, struct tb_buf *out) {
  char hex[HEX_BYTES];

  tb_buf_printf(out, "%" PRIx64 "\t%s\t%s\t%s\t%s\t%s", f->id, f->kind, f->service, f->place,
                f->cause, f->words);
  tb_buf_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
                f->began_ns, f->last_ns, f->ended_ns, f->seen_ns, f->count, f->peak);
  tb_buf_printf(out, "\t%d\t", f->is_time);
  for (unsigned i = 0; i < f->instances; i++)
    tb_buf_printf(out, "%s%s", i > 0 ? "," : "", f->instance[i]);
  tb_buf_text(out, "\t");
  for (unsigned i = 0; i < f->times; i++)
    tb_buf_printf(out, "%s%" PRIu64 "-%" PRIu64 "-%" PRIu64, i > 0 ? "," : "", f->time[i].began_ns,
                  f->time[i].last_ns, f->time[i].peak);
  tb_buf_printf(out, "\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
                tb_hex(f->stream, sizeof f->stream, hex), f->gen, f->from_ns, f->until_ns);
  tb_buf_printf(out, "\t%" PRIu64 "\t%s\t%s\n", f->muted_until_ns, f->mute_reason, f->why);
}

static bool read_number(const char *text, int base, uint64_t *out) {
  char *end;

  errno = 0;
  *out = strtoull(text, &end, base);
  return errno == 0 && end != text && *end == '\0';
}

static bool read_text(const char *text, char *out, size_t bytes) {
  size_t len = strlen(text);

  if (len >= bytes) return false;
  memcpy(out, text, len + 1);
  return true;
}

static bool read_instances(char *list, struct tc_finding *out) {
  while (list != NULL && *list != '\0') {
    const char *one = strsep(&list, ",");
    if (out->instances == TC_FINDING_INSTANCES) return false;
    if (!read_text(one, out->instance[out->instances++], sizeof out->instance[0])) return false;
  }
  return true;
}

static bool read_times(char *list, struct tc_finding *out) {
  while (list != NULL && *list != '\0') {
    char *one = strsep(&list, ",");
    if (out->times == TC_FINDING_TIMES) return false;
    struct tc_finding_time *time = &out->time[out->times++];
    const char *began = strsep(&one, "-"), *last = strsep(&one, "-");
    if (last == NULL || one == NULL || !read_number(began, 10, &time->began_ns) ||
        !read_number(last, 10, &time->last_ns) || !read_number(one, 10, &time->peak))
      return false;
  }
  return true;
}

static bool read_numbers(char *const *field, struct tc_finding *out) {
  uint64_t is_time;
  const struct {
    unsigned at;
    uint64_t *to;
  } numbers[] = {
    { 6, &out->began_ns },
    { 7, &out->last_ns },
    { 8, &out->ended_ns },
    { 9, &out->seen_ns },
    { 10, &out->count },
    { 11, &out->peak },
    { 12, &is_time },
    { 16, &out->gen },
    { 17, &out->from_ns },
    { 18, &out->until_ns },
    { 19, &out->muted_until_ns },
  };

  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!read_number(field[numbers[i].at], 10, numbers[i].to)) return false;
  out->is_time = is_time != 0;
  return true;
}

bool tc__finding_parse(char *line, struct tc_finding *out) {
  char *field[FIELDS] = { NULL };
  unsigned n = 0;

  *out = (struct tc_finding){ 0 };
  while (line != NULL && n < FIELDS) field[n++] = strsep(&line, "\t");
  if (n != FIELDS || line != NULL || strlen(field[15]) != HEX_BYTES - 1) return false;
  return read_number(field[0], 16, &out->id) && read_text(field[1], out->kind, sizeof out->kind) &&
         read_text(field[2], out->service, sizeof out->service) &&
         read_text(field[3], out->place, sizeof out->place) &&
         read_text(field[4], out->cause, sizeof out->cause) &&
         read_text(field[5], out->words, sizeof out->words) && read_numbers(field, out) &&
         read_instances(field[13], out) && read_times(field[14], out) &&
         tb_unhex(field[15], out->stream, sizeof out->stream) &&
         read_text(field[20], out->mute_reason, sizeof out->mute_reason) &&
         read_text(field[21], out->why, sizeof out->why);
}
