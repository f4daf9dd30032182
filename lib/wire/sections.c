/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sections.h"

#include <inttypes.h>

#include "wire/frames.h"
#include "wire/varint.h"

void tw_section_open(struct tw_section *section, const struct tw_batch *batch, unsigned version,
                     struct tb_diag *diag) {
  bool marked = batch->data[0] != TW_EV_FREQUENCY || version >= 25;

  *section = (struct tw_section){ .pos = batch->data + marked,
                                  .end = batch->data + batch->len,
                                  .diag = diag };
}

static __attribute__((noinline)) tb_rc read_number_slow(struct tw_section *section,
                                                        const char *what, uint64_t *out) {
  int used = tw_varint_read(section->pos, section->end, out);

  if (used > 0) {
    section->pos += used;
    return TB_OK;
  }
  if (section->pos == section->end) return TB_AGAIN;
  return tb_fail(section->diag, TB_BROKEN, "%s is %s", what,
                 used < 0 ? "wider than 64 bits" : "cut off");
}

/* Reads eight bytes at once. A longer number, and numbers in the last bytes of a batch, are read byte by byte. */
static inline tb_rc read_number(struct tw_section *section, const char *what, uint64_t *out) {
  if (TB_LIKELY(section->end - section->pos >= 8)) {
    uint64_t word = tw_load8(section->pos), ends = tw_ends(word);
    if (TB_LIKELY(ends != 0)) {
      *out = tw_join_sevens(word & (ends ^ (ends - 1)));
      section->pos += ((unsigned)__builtin_ctzll(ends) >> 3) + 1;
      return TB_OK;
    }
  }
  return read_number_slow(section, what, out);
}

static tb_rc read_type(struct tw_section *section, const char *what, uint8_t wanted) {
  if (section->pos == section->end) return TB_END;
  uint8_t type = *section->pos++;
  if (type == wanted) return TB_OK;
  return tb_fail(section->diag, TB_BROKEN, "expected a %s entry, got event type %u", what, type);
}

tb_rc tw_string_next(struct tw_section *section, struct tw_string *out) {
  uint64_t len;

  TB_TRY(read_type(section, "string", TW_EV_STRING));
  TB_TRY(read_number(section, "string id", &out->id));
  TB_TRY(read_number(section, "string length", &len));
  if (len > TW_STRING_BYTES_MAX)
    return tb_fail(section->diag, TB_BROKEN, "string of %" PRIu64 " bytes, at most %d are allowed",
                   len, TW_STRING_BYTES_MAX);
  if (len > (size_t)(section->end - section->pos))
    return tb_fail(section->diag, TB_BROKEN, "string %" PRIu64 " is cut off", out->id);
  out->data = section->pos;
  out->len = (size_t)len;
  section->pos += len;
  return TB_OK;
}

/* Reads a number of a frame. Returns NULL if it is missing: that is a fault here, not the end of the table. */
static inline const unsigned char *frame_number(const unsigned char *pos, const unsigned char *end,
                                                uint64_t *out) {
  if (TB_LIKELY(pos < end && *pos < 0x80)) {
    *out = *pos;
    return pos + 1;
  }
  int used = tw_varint_read(pos, end, out);
  return used > 0 ? pos + used : NULL;
}

static const unsigned char *skip_frame(const unsigned char *pos, const unsigned char *end,
                                       uint64_t *string_id_max) {
  struct tw_frame frame;

  if ((pos = frame_number(pos, end, &frame.pc)) == NULL) return NULL;
  if ((pos = frame_number(pos, end, &frame.function)) == NULL) return NULL;
  if ((pos = frame_number(pos, end, &frame.file)) == NULL) return NULL;
  if ((pos = frame_number(pos, end, &frame.line)) == NULL) return NULL;
  if (frame.function > *string_id_max) *string_id_max = frame.function;
  if (frame.file > *string_id_max) *string_id_max = frame.file;
  return pos;
}

tb_rc tw_stack_next(struct tw_section *section, struct tw_stack *out) {
  uint64_t nframes;

  TB_TRY(read_type(section, "stack", TW_EV_STACK));
  TB_TRY(read_number(section, "stack id", &out->id));
  TB_TRY(read_number(section, "number of frames", &nframes));
  if (nframes > TW_STACK_FRAMES_MAX)
    return tb_fail(section->diag, TB_BROKEN, "stack of %" PRIu64 " frames, at most %d are allowed",
                   nframes, TW_STACK_FRAMES_MAX);
  out->nframes = (unsigned)nframes;
  out->frames = section->pos;
  const unsigned char *pos =
      tw__frames_end(section->pos, section->end, out->nframes, &section->string_id_max);
  for (unsigned i = 0; TB_UNLIKELY(pos == NULL) && i < out->nframes; i++) {
    section->pos = skip_frame(section->pos, section->end, &section->string_id_max);
    if (section->pos == NULL)
      return tb_fail(section->diag, TB_BROKEN, "frame %u of stack %" PRIu64 " cannot be read",
                     i + 1, out->id);
  }
  if (TB_LIKELY(pos != NULL)) section->pos = pos;
  return TB_OK;
}

const unsigned char *tw_frame_read(const unsigned char *pos, struct tw_frame *out) {
  const unsigned char *end = pos + 4 * TW_VARINT_BYTES_MAX; /* checked before: never reached */

  pos = frame_number(pos, end, &out->pc);
  pos = frame_number(pos, end, &out->function);
  pos = frame_number(pos, end, &out->file);
  return frame_number(pos, end, &out->line);
}

/* Skips a frame and reads its program counter. Returns NULL if the counter takes more than eight bytes, or the three other
 * numbers together more than eight. Reads up to eight bytes after the frame. */
static inline const unsigned char *short_frame(const unsigned char *pos, uint64_t *out_pc) {
  uint64_t word = tw_load8(pos), ends = tw_ends(word);

  if (TB_UNLIKELY(ends == 0)) return NULL;
  *out_pc = tw_join_sevens(word & (ends ^ (ends - 1)));
  pos += __builtin_ctzll(ends) / 8 + 1;
  ends = tw_ends(tw_load8(pos));
  ends &= ends - 1;
  ends &= ends - 1; /* the function, and the file */
  return TB_LIKELY(ends != 0) ? pos + __builtin_ctzll(ends) / 8 + 1 : NULL;
}

void tw_frame_pcs(const unsigned char *pos, size_t nframes, size_t n, uint64_t *out) {
  for (size_t i = 0; i < n; i++) {
    struct tw_frame frame;
    /* Two more frames follow, of four bytes at least: eight bytes after this frame can be read. */
    const unsigned char *next = i + 2 < nframes ? short_frame(pos, &out[i]) : NULL;
    if (TB_UNLIKELY(next == NULL)) {
      next = tw_frame_read(pos, &frame);
      out[i] = frame.pc;
    }
    pos = next;
  }
}

tb_rc tw_cpu_sample_next(struct tw_section *section, struct tw_cpu_sample *out) {
  uint64_t m, p, g;

  TB_TRY(read_type(section, "CPU sample", TW_EV_CPU_SAMPLE));
  TB_TRY(read_number(section, "sample time", &out->time));
  TB_TRY(read_number(section, "sample thread", &m));
  TB_TRY(read_number(section, "sample proc", &p));
  TB_TRY(read_number(section, "sample goroutine", &g));
  TB_TRY(read_number(section, "sample stack", &out->stack));
  out->m = (int64_t)m;
  out->p = (int64_t)p;
  out->g = g == 0 ? -1 : (int64_t)g;
  return TB_OK;
}

tb_rc tw_sync_next(struct tw_section *section, unsigned version, struct tw_sync *out) {
  static const char *const clock_fields[] = { "clock time", "monotonic clock", "wall seconds",
                                              "wall nanoseconds" };

  if (section->pos == section->end) return TB_END;
  out->type = *section->pos++;
  if (out->type == TW_EV_FREQUENCY) return read_number(section, "frequency", &out->args[0]);
  if (out->type != TW_EV_CLOCK_SNAPSHOT || version < 25)
    return tb_fail(section->diag, TB_BROKEN, "expected a frequency or clocks, got event type %u",
                   out->type);
  for (int i = 0; i < 4; i++) TB_TRY(read_number(section, clock_fields[i], &out->args[i]));
  return TB_OK;
}
