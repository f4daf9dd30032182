/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/text/hex.h"
#include "collector/timeline/private.h"
#include "proto/json.h"

enum { ALIGNED = 8 };
static const char magic[ALIGNED] = "TCSPANS1";

static void put_text(struct tb_buf *out, struct to_string text) {
  tp_json_bytes(out, text.data, text.len);
}

static void put_generations(const struct tc_timeline_answer *a, struct tb_buf *out) {
  tb_buf_text(out, ",\"generations\":[");
  for (size_t i = 0; i < a->generations; i++) {
    const struct tc_timeline_generation *g = &a->generation[i];

    tb_buf_printf(out,
                  "%s{\"gen\":%" PRIu64 ",\"segment\":%" PRIu64 ",\"from_wall_ns\":\"%" PRIu64
                  "\",\"until_wall_ns\":\"%" PRIu64 "\",\"state\":\"%s\",\"why\":",
                  i > 0 ? "," : "", g->gen, g->segment, g->from_wall_ns, g->until_wall_ns,
                  g->state);
    tp_json_text(out, g->why);
    tb_buf_byte(out, '}');
  }
  tb_buf_byte(out, ']');
}

static void put_words(const struct tc_timeline_answer *a, struct tb_buf *out) {
  tb_buf_text(out, ",\"looks\":[");
  for (unsigned look = 0; look < TO_LOOKS; look++)
    tb_buf_printf(out, "%s\"%s\"", look > 0 ? "," : "", to_look_name((enum to_look)look));
  tb_buf_text(out, "],\"names\":[");
  for (size_t i = 0; i < a->picture->names.n || i == 0; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    put_text(out, to_texts_text(&a->picture->names, (uint32_t)i));
  }
  tb_buf_byte(out, ']');
}

static void put_head(const struct tc_timeline_answer *a, struct tb_buf *out) {
  const struct to_picture *p = a->picture;
  char hex[2 * TC_TIMELINE_STREAM_BYTES + 1];

  tb_buf_printf(out, "{\"stream\":\"%s\",\"service\":", tb_hex(a->stream, sizeof a->stream, hex));
  tp_json_text(out, a->service);
  tb_buf_text(out, ",\"instance\":");
  tp_json_text(out, a->instance);
  tb_buf_printf(out,
                ",\"from_wall_ns\":\"%" PRIu64 "\",\"until_wall_ns\":\"%" PRIu64
                "\",\"wall_estimated\":%s,\"from_ns\":\"%" PRId64 "\",\"unit_ns\":%" PRId64
                ",\"px_ns\":%" PRId64 ",\"more_goroutines\":%s,\"left_out\":%" PRIu64,
                a->from_wall_ns, a->until_wall_ns, a->wall_estimated ? "true" : "false",
                p->ask.from, p->unit, p->px_ns, p->more_goroutines ? "true" : "false", p->left_out);
  if (a->program == TO_PROGRAM_C) tb_buf_text(out, ",\"program\":\"C\"");
  put_generations(a, out);
  put_words(a, out);
}

static void put_lane(const struct to_lane *lane, struct tb_buf *out) {
  tb_buf_printf(out, "{\"kind\":\"%s\",\"id\":\"%" PRId64 "\",\"row\":%u,\"name\":%" PRIu32,
                to_lane_kind_name((enum to_lane_kind)lane->kind), lane->id, lane->row, lane->name);
}

static bool has_values(const struct to_lane *lane) {
  return lane->kind == TO_LANE_METRIC || lane->kind == TO_LANE_COUNT;
}

static void put_cell(const struct to_lane *lane, const struct to_cell *c, struct tb_buf *out) {
  tb_buf_printf(out, "[%" PRIu32 ",%" PRIu32 ",%u,%u,%u,%" PRIu32 ",", c->from, c->until, c->look,
                c->share, c->flags, c->name);
  if (has_values(lane))
    tp_json_real(out, c->value);
  else
    tb_buf_printf(out, "\"%" PRIu64 "\"", c->subject);
  tb_buf_byte(out, ']');
}

void tc_timeline_json(const struct tc_timeline_answer *a, struct tb_buf *out) {
  const struct to_picture *p = a->picture;

  put_head(a, out);
  tb_buf_text(out,
              ",\"columns\":[\"from\",\"until\",\"look\",\"share\",\"flags\",\"name\",\"subject\"]"
              ",\"lanes\":[");
  for (size_t i = 0; i < p->lanes; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    put_lane(&p->lane[i], out);
    tb_buf_text(out, ",\"cells\":[");
    for (size_t k = 0; k < p->lane[i].cells; k++) {
      if (k > 0) tb_buf_byte(out, ',');
      put_cell(&p->lane[i], &p->lane[i].cell[k], out);
    }
    tb_buf_text(out, "]}");
  }
  tb_buf_text(out, "]}\n");
}

/* ---- binary ---- */

static void put_u32(struct tb_buf *out, uint32_t value) {
  const unsigned char bytes[] = { (unsigned char)value, (unsigned char)(value >> 8),
                                  (unsigned char)(value >> 16), (unsigned char)(value >> 24) };

  tb_buf_add(out, bytes, sizeof bytes);
}

static void put_cells(const struct to_lane *lane, struct tb_buf *out) {
  for (size_t k = 0; k < lane->cells; k++) {
    const struct to_cell *c = &lane->cell[k];

    put_u32(out, (uint32_t)c->subject);
    put_u32(out, (uint32_t)(c->subject >> 32));
    put_u32(out, c->from);
    put_u32(out, c->until);
    put_u32(out, c->name);
    put_u32(out, c->share | (uint32_t)c->look << 16 | (uint32_t)c->flags << 24);
  }
}

void tc_timeline_binary(const struct tc_timeline_answer *a, struct tb_buf *out) {
  const struct to_picture *p = a->picture;
  size_t begin = out->len, first = 0;

  tb_buf_add(out, magic, sizeof magic);
  put_u32(out, 0); /* length of the head, set below */
  put_u32(out, (uint32_t)sizeof(struct to_cell));
  size_t head = out->len;
  put_head(a, out);
  tb_buf_text(out, ",\"lanes\":[");
  for (size_t i = 0; i < p->lanes; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    put_lane(&p->lane[i], out);
    tb_buf_printf(out, ",\"first\":%zu,\"cells\":%zu}", first, p->lane[i].cells);
    first += p->lane[i].cells;
  }
  tb_buf_text(out, "]}");
  while (out->rc == TB_OK && (out->len - begin) % ALIGNED != 0) tb_buf_byte(out, ' ');
  if (out->rc != TB_OK) return;
  uint32_t length = (uint32_t)(out->len - head);
  for (unsigned i = 0; i < 4; i++)
    out->data[begin + sizeof magic + i] = (unsigned char)(length >> 8 * i);
  for (size_t i = 0; i < p->lanes; i++) put_cells(&p->lane[i], out);
}
