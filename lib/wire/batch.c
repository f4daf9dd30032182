/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/batch.h"

#include <stdio.h>
#include <string.h>

#include "wire/varint.h"

/* Reads one header field; what: its name in the message. */
static tb_rc read_field(const unsigned char **pos, const unsigned char *end, const char *what,
                        struct tb_diag *diag, uint64_t *out) {
  int used = tw_varint_read(*pos, end, out);

  if (used == 0) return TB_AGAIN;
  if (used < 0) return tb_fail(diag, TB_BROKEN, "batch %s is wider than 64 bits", what);
  *pos += used;
  return TB_OK;
}

tb_rc tw_batch_read(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                    struct tw_batch *out, size_t *out_used) {
  const unsigned char *pos = bytes, *end = bytes + n;
  struct tw_batch batch = { 0 };
  uint64_t thread, size;

  if (n == 0) return TB_AGAIN;
  switch (*pos++) {
  case TW_EV_EVENT_BATCH: break;
  case TW_EV_EXPERIMENTAL_BATCH:
    if (pos == end) return TB_AGAIN;
    batch.experiment = *pos++;
    break;
  case TW_EV_END_OF_GENERATION:
    *out = (struct tw_batch){ .thread = -1, .data = bytes, .len = 1 };
    *out_used = 1;
    return TB_OK;
  default: return tb_fail(diag, TB_BROKEN, "expected a batch, got event type %u", bytes[0]);
  }
  TB_TRY(read_field(&pos, end, "generation", diag, &batch.gen));
  TB_TRY(read_field(&pos, end, "thread", diag, &thread));
  TB_TRY(read_field(&pos, end, "time", diag, &batch.time));
  TB_TRY(read_field(&pos, end, "size", diag, &size));
  if (size > TW_BATCH_BYTES_MAX)
    return tb_fail(diag, TB_BROKEN, "batch size %llu is above %d", (unsigned long long)size,
                   TW_BATCH_BYTES_MAX);
  if (size > (size_t)(end - pos)) return TB_AGAIN;
  batch.thread = (int64_t)thread;
  batch.data = pos;
  batch.len = (size_t)size;
  *out = batch;
  *out_used = (size_t)(pos - bytes) + batch.len;
  return TB_OK;
}

enum tw_batch_kind tw_batch_kind(const struct tw_batch *batch, unsigned version) {
  if (batch->experiment != TW_EXPERIMENT_NONE) return TW_BATCH_EXPERIMENTAL;
  if (batch->len == 0) return TW_BATCH_EVENTS;
  switch (batch->data[0]) {
  case TW_EV_STRINGS: return TW_BATCH_STRINGS;
  case TW_EV_STACKS: return TW_BATCH_STACKS;
  case TW_EV_CPU_SAMPLES: return TW_BATCH_CPU_SAMPLES;
  case TW_EV_FREQUENCY: return version < 25 ? TW_BATCH_SYNC : TW_BATCH_EVENTS;
  case TW_EV_SYNC: return version >= 25 ? TW_BATCH_SYNC : TW_BATCH_EVENTS;
  case TW_EV_END_OF_GENERATION: return TW_BATCH_END;
  default: return TW_BATCH_EVENTS;
  }
}

size_t tw_batch_write_header(unsigned char *out, const struct tw_batch *batch) {
  size_t n = 0;

  if (batch->experiment == TW_EXPERIMENT_NONE) {
    out[n++] = TW_EV_EVENT_BATCH;
  } else {
    out[n++] = TW_EV_EXPERIMENTAL_BATCH;
    out[n++] = batch->experiment;
  }
  n += tw_varint_write(out + n, batch->gen);
  n += tw_varint_write(out + n, (uint64_t)batch->thread);
  n += tw_varint_write(out + n, batch->time);
  n += tw_varint_write(out + n, batch->len);
  return n;
}

/* Accepts what Go's scanner accepts: several spaces instead of one, spaces before the number, and leading zeros in the number.
 * The header must end within HEADER_BYTES_MAX. */
enum { HEADER_BYTES_MAX = 4096 };

static bool is_space(unsigned char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static tb_rc skip_text(const unsigned char **pos, const unsigned char *end, const char *text,
                       size_t len) {
  for (size_t i = 0; i < len; i++, ++*pos) {
    if (*pos == end) return TB_AGAIN;
    if (**pos != (unsigned char)text[i]) return TB_BROKEN;
  }
  return TB_OK;
}

static tb_rc skip_spaces(const unsigned char **pos, const unsigned char *end, size_t least) {
  size_t n = 0;

  for (; *pos < end && is_space(**pos); ++*pos) n++;
  if (*pos == end) return TB_AGAIN;
  return n < least ? TB_BROKEN : TB_OK;
}

static tb_rc read_number(const unsigned char **pos, const unsigned char *end, unsigned *out) {
  const unsigned char *start = *pos;
  uint64_t value = 0;

  for (; *pos < end && **pos >= '0' && **pos <= '9'; ++*pos) {
    value = value * 10 + (uint64_t)(**pos - '0');
    if (value > UINT32_MAX) return TB_BROKEN;
  }
  if (*pos == end) return TB_AGAIN;
  *out = (unsigned)value;
  return *pos == start ? TB_BROKEN : TB_OK;
}

static tb_rc scan_header(const unsigned char **pos, const unsigned char *end,
                         unsigned *out_version) {
  TB_TRY(skip_text(pos, end, "go", 2));
  TB_TRY(skip_spaces(pos, end, 1));
  TB_TRY(skip_text(pos, end, "1.", 2));
  TB_TRY(skip_spaces(pos, end, 0));
  TB_TRY(read_number(pos, end, out_version));
  TB_TRY(skip_spaces(pos, end, 1));
  return skip_text(pos, end, "trace\0\0\0", 8);
}

/* Recognises other files that users pass by mistake, by their first bytes. */
static const char *looks_like(const unsigned char *bytes, size_t n) {
  static const struct {
    const char *magic, *what;
  } files[] = {
    { "\x1f\x8b", "; this is gzip data: a pprof profile, or a trace that gunzip unpacks" },
    { "\x28\xb5\x2f\xfd", "; this is zstd data: unzstd unpacks it" },
    { "\x7f"
      "ELF",
      "; this is a program" },
    { "404 page not found", "; this is a web server's answer: is /debug/pprof/trace in the URL?" },
    { "<", "; this is a web page: is /debug/pprof/trace in the URL?" },
    { "{", "; this is JSON" },
  };

  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    size_t len = strlen(files[i].magic);
    if (n >= len && memcmp(bytes, files[i].magic, len) == 0) return files[i].what;
  }
  return "; runtime/trace, go test -trace and /debug/pprof/trace write one";
}

tb_rc tw_header_read(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                     unsigned *out_version, size_t *out_used) {
  const unsigned char *pos = bytes;
  unsigned version = 0;
  tb_rc rc = scan_header(&pos, bytes + (n < HEADER_BYTES_MAX ? n : HEADER_BYTES_MAX), &version);

  if (rc == TB_AGAIN && n < HEADER_BYTES_MAX) return TB_AGAIN;
  if (rc != TB_OK)
    return tb_fail(diag, TB_BROKEN, "not a Go execution trace: no \"go 1.NN trace\" header%s",
                   looks_like(bytes, n));
  *out_version = version;
  *out_used = (size_t)(pos - bytes);
  if (tw_version_known(version)) return TB_OK;
  if (version == 11 || version == 19 || version == 21)
    return tb_fail(
        diag, TB_UNSUPPORTED,
        "go 1.%u writes trace format v1, which is not supported: build the program with Go 1.22 or "
        "later",
        version);
  return tb_fail(diag, TB_UNSUPPORTED, "unknown or unsupported trace version go 1.%u", version);
}

void tw_header_write(unsigned char out[TW_HEADER_BYTES], unsigned version) {
  char text[TW_HEADER_BYTES + 1] = { 0 };

  snprintf(text, sizeof text, "go 1.%02u trace", version % 100);
  memcpy(out, text, TW_HEADER_BYTES);
}
