/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file by event type: the table of `go tool trace -d=footprint`. */
#include <stdio.h>

#include "online/event/heap.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/print/wire_events.h"
#include "wire/varint.h"

enum { TYPES = 256, COLUMNS = 5, CELL_BYTES = 32 };

struct usage {
  unsigned type;
  uint64_t count, bytes;
};

/* Counts a fresh encoding, so that padding of varints does not count. */
static uint64_t encoded_bytes(const struct tw_raw *ev) {
  unsigned char text[TW_VARINT_BYTES_MAX];
  const unsigned char *pos = ev->args;
  uint64_t bytes = 1;

  for (uint64_t left = ev->nargs + 4 * ev->frames; left > 0; left--)
    bytes += tw_varint_write(text, tw_raw_number(&pos));
  if (ev->spec->kind == TW_KIND_DATA) bytes += tw_varint_write(text, ev->data_len) + ev->data_len;
  return bytes;
}

static void print_table(struct tk_out *out, char cells[][COLUMNS][CELL_BYTES], size_t rows) {
  size_t width[COLUMNS] = { 0 };

  for (size_t r = 0; r < rows; r++)
    for (int c = 0; c < COLUMNS; c++)
      if (strlen(cells[r][c]) > width[c]) width[c] = strlen(cells[r][c]);
  for (size_t r = 0; r < rows; r++) {
    for (int c = 0; c < COLUMNS; c++) {
      size_t len = strlen(cells[r][c]), wide = width[c] + 2 < 3 ? 3 : width[c] + 2;
      tk_out_bytes(out, cells[r][c], len);
      if (c + 1 < COLUMNS) /* the last column ends the line unpadded */
        for (; len < wide; len++) tk_out_byte(out, ' ');
    }
    tk_out_byte(out, '\n');
  }
}

static void print_usage(struct tk_out *out, struct to_heap_entry *order, unsigned version,
                        uint64_t bytes, uint64_t count) {
  static const char *const head[COLUMNS] = { "Event", "Bytes", "%", "Count", "%" };
  static char cells[TYPES + 2][COLUMNS][CELL_BYTES];

  for (int c = 0; c < COLUMNS; c++) {
    snprintf(cells[0][c], CELL_BYTES, "%s", head[c]);
    snprintf(cells[1][c], CELL_BYTES, "-");
  }
  for (int i = 0; i < TYPES; i++) {
    const struct usage *u = order[i].value;
    char(*row)[CELL_BYTES] = cells[i + 2];
    const char *name = tw_spec((uint8_t)u->type)->name;

    if (u->type >= tw_version_events_end(version))
      snprintf(row[0], CELL_BYTES, "<unknown (%u)>", u->type);
    else
      snprintf(row[0], CELL_BYTES, "%s", name == NULL ? "" : name);
    snprintf(row[1], CELL_BYTES, "%lu", (unsigned long)u->bytes);
    snprintf(row[3], CELL_BYTES, "%lu", (unsigned long)u->count);
    if (bytes == 0)
      snprintf(row[2], CELL_BYTES, "NaN%%");
    else
      snprintf(row[2], CELL_BYTES, "%.2f%%", (double)u->bytes / (double)bytes * 100);
    if (count == 0)
      snprintf(row[4], CELL_BYTES, "NaN%%");
    else
      snprintf(row[4], CELL_BYTES, "%.2f%%", (double)u->count / (double)count * 100);
  }
  print_table(out, cells, TYPES + 2);
}

tb_rc tk_print_footprint(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                         struct tb_diag *diag) {
  TB_CLEANUP(tk_wire_close) struct tk_wire_events events = { 0 };
  struct to_heap_entry order[TYPES];
  struct usage usage[TYPES];
  struct tw_raw ev;
  uint64_t count = 0;
  tb_rc rc;

  for (unsigned i = 0; i < TYPES; i++) usage[i] = (struct usage){ .type = i };
  TB_TRY(tk_wire_open(&events, in, mem, diag));
  while ((rc = tk_wire_next(&events, &ev)) == TB_OK) {
    usage[ev.type].count++;
    usage[ev.type].bytes += encoded_bytes(&ev);
    count++;
  }
  if (rc != TB_END) return rc;
  for (unsigned i = 0; i < TYPES; i++)
    order[i] = (struct to_heap_entry){ -(int64_t)usage[i].bytes, &usage[i] };
  to__sort(order, TYPES);
  print_usage(out, order, events.version, events.offset + (uint64_t)(events.end - events.pos),
              count);
  return TB_OK;
}
