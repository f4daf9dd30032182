/* SPDX-License-Identifier: Apache-2.0 */
#include "online/trace/active.h"

#include "online/event/heap.h"

void to_active_init(struct to_active *active, struct tb_mem *mem) {
  tb_map_init(&active->ids, mem, tb_seed());
}

void to_active_fini(struct to_active *active) {
  tb_map_fini(&active->ids);
}

void to_active_clear(struct to_active *active) {
  tb_map_clear(&active->ids);
}

static tb_rc add_id(struct to_active *active, uint64_t id) {
  uint64_t *ignored;

  return tb_map_put(&active->ids, id, &ignored, NULL);
}

static uint64_t number_at(const struct tw_raw *ev, unsigned i) {
  const unsigned char *pos = ev->args;
  uint64_t value;

  do value = tw_raw_number(&pos);
  while (i-- > 0);
  return value;
}

/* Returns true if the goroutine of a status event runs or is in a system call; other statuses only restate that it waits. */
static bool goes_on(const struct tw_raw *ev) {
  enum { STATUS = 3 }; /* after dt, g and m */
  uint64_t status = number_at(ev, STATUS);

  return status == TW_GO_RUNNING || status == TW_GO_SYSCALL;
}

tb_rc to_active_event(struct to_active *active, const struct tw_raw *ev) {
  enum { SAMPLE_G = 3, NO_GOROUTINE = 0, FIRST = 1 }; /* FIRST: after dt */
  const struct tw_spec *spec = ev->spec;

  if (ev->type == TW_EV_CPU_SAMPLE) {
    uint64_t g = number_at(ev, SAMPLE_G);
    return g == NO_GOROUTINE ? TB_OK : add_id(active, g);
  }
  if (spec->kind != TW_KIND_TIMED || spec->nargs == 0 || spec->args[0].type != TW_ARG_G)
    return TB_OK;
  bool is_status = ev->type == TW_EV_GO_STATUS || ev->type == TW_EV_GO_STATUS_STACK;
  return is_status && !goes_on(ev) ? TB_OK : add_id(active, number_at(ev, FIRST));
}

bool to_active_has(const struct to_active *active, int64_t goroutine) {
  return tb_map_find(&active->ids, (uint64_t)goroutine) != NULL;
}

/* ---- packed ---- */

static tb_rc put_number(struct tb_buf *out, uint64_t value) {
  TB_TRY(tb_buf_reserve(out, TW_VARINT_BYTES_MAX));
  out->len += tw_varint_write(out->data + out->len, value);
  return TB_OK;
}

tb_rc to_active_pack(const struct to_active *active, struct tb_buf *out) {
  struct tb_mem *mem = active->ids.mem;
  size_t n = 0, bytes = active->ids.count * sizeof(struct to_heap_entry);
  uint64_t id, last = 0;
  struct to_heap_entry *ids = NULL;
  tb_rc rc = TB_OK;

  if (bytes > 0) TB_TRY(tb_mem_alloc(mem, bytes, &ids));
  for (size_t i = 0; tb_map_next(&active->ids, &i, &id, &(uint64_t){ 0 });)
    ids[n++] = (struct to_heap_entry){ (to_ns)id, NULL };
  to__sort(ids, n);
  rc = put_number(out, n);
  for (size_t i = 0; i < n && rc == TB_OK; i++) {
    rc = put_number(out, (uint64_t)ids[i].time - last);
    last = (uint64_t)ids[i].time;
  }
  tb_mem_free(mem, ids, bytes);
  return rc;
}

bool to_active_read(struct to_active_iter *it, const void *bytes, size_t len) {
  *it = (struct to_active_iter){ bytes, (const unsigned char *)bytes + len, 0, 0 };
  int used = len == 0 ? 0 : tw_varint_read(it->pos, it->end, &it->left);

  if (used <= 0 || it->left > len - (size_t)used) {
    it->left = 0;
    return false;
  }
  it->pos += used;
  return true;
}

bool to_active_next(struct to_active_iter *it, int64_t *out_goroutine) {
  uint64_t more;
  int used = it->left == 0 ? 0 : tw_varint_read(it->pos, it->end, &more);

  if (used <= 0) return false;
  it->pos += used;
  it->left--;
  it->last += more;
  *out_goroutine = (int64_t)it->last;
  return true;
}
