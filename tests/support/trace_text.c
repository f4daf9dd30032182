/* SPDX-License-Identifier: Apache-2.0 */
#include "support/trace_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/hex.h"
#include "wire/batch.h"
#include "wire/varint.h"

#define BAD(text, fmt, ...)                                                                        \
  tb_fail((text)->diag, TB_BROKEN, "line %u: " fmt, (text)->line, __VA_ARGS__)

static void skip_blanks(struct tt_text *text) {
  while (*text->pos == ' ' || *text->pos == '\t' || *text->pos == '\r') text->pos++;
  if (*text->pos == '#') text->pos += strcspn(text->pos, "\n");
}

/* Skips to the next word, over any number of line ends. */
static void skip_lines(struct tt_text *text) {
  for (skip_blanks(text); *text->pos == '\n'; skip_blanks(text)) {
    text->pos++;
    text->line++;
  }
}

static size_t word_length(const char *pos) {
  return strcspn(pos, " \t\r\n=#");
}

static bool at_label(const struct tt_text *text, const char *label) {
  size_t len = strlen(label);

  return strncmp(text->pos, label, len) == 0 && text->pos[len] == '=';
}

static tb_rc read_arg(struct tt_text *text, const char *label, uint64_t *out) {
  uint64_t value = 0;

  skip_blanks(text);
  if (!at_label(text, label)) return BAD(text, "expected %s=", label);
  text->pos += strlen(label) + 1;
  if (!isdigit((unsigned char)*text->pos)) return BAD(text, "%s= needs a number", label);
  for (; isdigit((unsigned char)*text->pos); text->pos++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*text->pos - '0'), &value))
      return BAD(text, "%s= is wider than 64 bits", label);
  *out = value;
  return TB_OK;
}

static tb_rc read_escape(struct tt_text *text) {
  static const char letters[] = "abfnrtv\\\"", values[] = "\a\b\f\n\r\t\v\\\"";
  const char *letter = *text->pos == '\0' ? NULL : strchr(letters, *text->pos);

  if (letter != NULL) {
    tb_buf_byte(&text->data, (unsigned char)values[letter - letters]);
    text->pos++;
    return TB_OK;
  }
  unsigned char byte;
  if (*text->pos != 'x' || !tb_unhex(text->pos + 1, &byte, 1))
    return BAD(text, "unknown escape in %s", "data=");
  tb_buf_byte(&text->data, byte);
  text->pos += 3;
  return TB_OK;
}

static tb_rc read_data(struct tt_text *text, struct tt_text_event *out) {
  skip_lines(text);
  if (!at_label(text, "data")) return TB_OK; /* none is empty */
  text->pos += strlen("data=");
  if (*text->pos++ != '"') return BAD(text, "%s needs a quoted text", "data=");
  while (*text->pos != '"') {
    if (*text->pos == '\0' || *text->pos == '\n')
      return BAD(text, "%s has no closing quote", "data=");
    if (*text->pos == '\\') {
      text->pos++;
      TB_TRY(read_escape(text));
    } else {
      tb_buf_byte(&text->data, (unsigned char)*text->pos++);
    }
  }
  text->pos++;
  out->data = text->data.data;
  out->len = text->data.len;
  return text->data.rc;
}

static tb_rc read_frames(struct tt_text *text, struct tt_text_event *out) {
  static const char *const labels[4] = { "pc", "func", "file", "line" };

  if (out->args[1] > TW_STACK_FRAMES_MAX)
    return BAD(text, "more than %d frames", TW_STACK_FRAMES_MAX);
  out->nframes = (unsigned)out->args[1];
  for (unsigned i = 0; i < out->nframes; i++) {
    skip_lines(text);
    for (int k = 0; k < 4; k++) TB_TRY(read_arg(text, labels[k], &out->frames[i][k]));
  }
  return TB_OK;
}

tb_rc tt_text_open(struct tt_text *text, const char *source, struct tb_mem *mem,
                   struct tb_diag *diag) {
  *text = (struct tt_text){ .pos = source, .line = 1, .diag = diag };
  tb_buf_init(&text->data, mem);
  skip_lines(text);
  if (sscanf(text->pos, "Trace Go1.%u", &text->version) != 1 || !tw_version_known(text->version))
    return BAD(text, "expected \"Trace Go1.%s\"", "22|23|25|26");
  text->pos += strcspn(text->pos, "\n");
  return TB_OK;
}

void tt_text_close(struct tt_text *text) {
  tb_buf_fini(&text->data);
}

tb_rc tt_text_next(struct tt_text *text, struct tt_text_event *out) {
  skip_lines(text);
  if (*text->pos == '\0') return TB_END;

  size_t len = word_length(text->pos);
  *out = (struct tt_text_event){ .type = (uint8_t)tw_spec_find(text->pos, len) };
  tb_buf_clear(&text->data);
  const struct tw_spec *spec = tw_spec(out->type);
  if (out->type == TW_EV_NONE)
    return BAD(text, "no event \"%.*s\"", (int)(len < 40 ? len : 40), text->pos);
  text->pos += len;
  if (tw_spec_has_dt(spec)) TB_TRY(read_arg(text, "dt", &out->args[out->nargs++]));
  for (unsigned i = 0; i < spec->nargs; i++) {
    skip_blanks(text);
    bool size = out->type == TW_EV_EVENT_BATCH && i == 3;
    if (size && !at_label(text, "size")) break;
    out->size_given = size;
    TB_TRY(read_arg(text, spec->args[i].label, &out->args[out->nargs++]));
  }
  if (spec->kind == TW_KIND_DATA) TB_TRY(read_data(text, out));
  if (spec->kind == TW_KIND_STACK) TB_TRY(read_frames(text, out));
  skip_blanks(text);
  if (*text->pos != '\n' && *text->pos != '\0') return BAD(text, "unexpected \"%.20s\"", text->pos);
  return TB_OK;
}

void tt_text_encode_number(struct tb_buf *out, uint64_t value) {
  unsigned char bytes[TW_VARINT_BYTES_MAX];

  tb_buf_add(out, bytes, tw_varint_write(bytes, value));
}

void tt_text_encode(struct tb_buf *out, const struct tt_text_event *event) {
  bool batch = event->type == TW_EV_EVENT_BATCH;

  tb_buf_byte(out, event->type);
  for (unsigned i = 0; i < event->nargs && !(batch && i == 3); i++) {
    /* Experiments are one byte; numbers below 128 encode as that byte. */
    tt_text_encode_number(out, event->args[i]);
  }
  for (unsigned i = 0; i < event->nframes; i++)
    for (int k = 0; k < 4; k++) tt_text_encode_number(out, event->frames[i][k]);
  if (tw_spec(event->type)->kind == TW_KIND_DATA) {
    tt_text_encode_number(out, event->len);
    tb_buf_add(out, event->data, event->len);
  }
}

/* Collects a batch in `body` until its length is known. */
static void close_batch(struct tb_buf *out, struct tb_buf *body, const struct tt_text_event *batch,
                        bool *open) {
  if (!*open) return;
  tt_text_encode(out, batch);
  tt_text_encode_number(out, batch->size_given ? batch->args[3] : body->len);
  tb_buf_add(out, body->data, body->len);
  if (body->rc != TB_OK) out->rc = body->rc;
  tb_buf_clear(body);
  *open = false;
}

static tb_rc encode_all(struct tt_text *text, struct tb_buf *body, struct tb_buf *out) {
  unsigned char header[TW_HEADER_BYTES];
  struct tt_text_event event, batch;
  bool open = false;
  tb_rc rc;

  tw_header_write(header, text->version);
  tb_buf_add(out, header, sizeof header);
  while ((rc = tt_text_next(text, &event)) == TB_OK) {
    if (event.type == TW_EV_EVENT_BATCH) {
      close_batch(out, body, &batch, &open);
      batch = event;
      open = true;
    } else if (event.type == TW_EV_EXPERIMENTAL_BATCH || event.type == TW_EV_END_OF_GENERATION ||
               !open) {
      close_batch(out, body, &batch, &open);
      tt_text_encode(out, &event);
    } else {
      tt_text_encode(body, &event);
    }
  }
  close_batch(out, body, &batch, &open);
  return rc == TB_END ? out->rc : rc;
}

tb_rc tt_text_to_bytes(const char *source, struct tb_mem *mem, struct tb_buf *out,
                       struct tb_diag *diag) {
  struct tt_text text;
  struct tb_buf body;

  tb_buf_init(&body, mem);
  tb_rc rc = tt_text_open(&text, source, mem, diag);
  if (rc == TB_OK) rc = encode_all(&text, &body, out);
  tb_buf_fini(&body);
  tt_text_close(&text);
  return rc;
}
