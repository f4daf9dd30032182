/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/commit/stream_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"

tb_rc tc_streams_init(struct tc_streams *streams) {
  uint64_t seed;

  *streams = (struct tc_streams){ .next_ref = 1 };
  TAILQ_INIT(&streams->held);
  LIST_INIT(&streams->all);
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) return TB_IO;
  tb_mem_init(&streams->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&streams->by_ref, &streams->mem, seed | 1);
  tb_map_init(&streams->by_conn, &streams->mem, seed | 1);
  tb_map_init(&streams->by_id, &streams->mem, seed | 1);
  tb_map_init(&streams->by_identity, &streams->mem, seed | 1);
  return TB_OK;
}

/* Inserts in the order of first_lsn. */
static void held_insert(struct tc_streams *streams, struct tc_unit *unit) {
  struct tc_unit *later = TAILQ_FIRST(&streams->held);

  while (later != NULL && later->first_lsn <= unit->first_lsn) later = TAILQ_NEXT(later, in_log);
  if (later != NULL)
    TAILQ_INSERT_BEFORE(later, unit, in_log);
  else
    TAILQ_INSERT_TAIL(&streams->held, unit, in_log);
}

/* Drops the stream's first unit. */
static void unit_drop(struct tc_streams *streams, struct tc_stream *stream) {
  struct tc_unit *unit = TAILQ_FIRST(&stream->units);

  TAILQ_REMOVE(&stream->units, unit, of_stream);
  stream->nunits--;
  if (TAILQ_EMPTY(&stream->units)) stream->unit_open = false;
  TAILQ_REMOVE(&streams->held, unit, in_log);
  if (unit != &stream->spare) free(unit);
}

static void stream_free(struct tc_streams *streams, struct tc_stream *stream) {
  tc_reply_queue_unjoin(&stream->acked);
  tc_reply_queue_unjoin(&stream->released);
  while (!TAILQ_EMPTY(&stream->units)) unit_drop(streams, stream);
  free(stream);
}

void tc_streams_fini(struct tc_streams *streams) {
  for (struct tc_stream *stream = LIST_FIRST(&streams->all), *next; stream != NULL; stream = next) {
    next = LIST_NEXT(stream, all);
    stream_free(streams, stream);
  }
  tb_map_fini(&streams->by_ref);
  tb_map_fini(&streams->by_conn);
  tb_map_fini(&streams->by_id);
  tb_map_fini(&streams->by_identity);
  *streams = (struct tc_streams){ 0 };
}

struct tc_stream *tc_streams_by_ref(const struct tc_streams *streams, uint32_t ref) {
  return tb_map_at(&streams->by_ref, ref);
}

struct tc_stream *tc_streams_by_conn(const struct tc_streams *streams, uint64_t conn) {
  return tb_map_at(&streams->by_conn, conn);
}

static uint64_t key_of(const unsigned char id[TC_STREAM_BYTES]) {
  uint64_t key;

  memcpy(&key, id, sizeof key);
  return key;
}

struct tc_stream *tc_streams_by_id(const struct tc_streams *streams,
                                   const unsigned char id[TC_STREAM_BYTES]) {
  struct tc_stream *stream = tb_map_at(&streams->by_id, key_of(id));

  while (stream != NULL && memcmp(stream->intro.id, id, TC_STREAM_BYTES) != 0)
    stream = stream->same_hash;
  return stream;
}

/* Owners are names in certificates of ours, so no agent can make two hashes collide. */
static uint64_t identity_key(const char identity[TC_IDENTITY_MAX]) {
  return tb_hash(TB_HASH_START, identity, strnlen(identity, TC_IDENTITY_MAX));
}

size_t tc_streams_of(const struct tc_streams *streams, const char identity[TC_IDENTITY_MAX]) {
  const uint64_t *count = tb_map_find(&streams->by_identity, identity_key(identity));

  return count != NULL ? (size_t)*count : 0;
}

struct tc_stream *tc_streams_oldest_over(const struct tc_streams *streams,
                                         const char identity[TC_IDENTITY_MAX]) {
  struct tc_stream *stream, *oldest = NULL;

  LIST_FOREACH(stream, &streams->all, all) {
    bool over = (stream->closed || stream->abandoned) && stream->conn == 0 && !stream->ack_due &&
                stream->staged_seq == stream->durable_seq && TAILQ_EMPTY(&stream->units);
    if (over && strncmp(stream->intro.identity, identity, TC_IDENTITY_MAX) == 0 &&
        (oldest == NULL || stream->contact_mono_ns < oldest->contact_mono_ns))
      oldest = stream;
  }
  return oldest;
}

static void count_out(struct tc_streams *streams, const char identity[TC_IDENTITY_MAX]) {
  uint64_t key = identity_key(identity), *count = tb_map_find(&streams->by_identity, key);

  if (--*count == 0) tb_map_remove(&streams->by_identity, key);
}

tb_rc tc_streams_add(struct tc_streams *streams, const struct tc_stream_intro *intro,
                     struct tc_stream **out) {
  uint32_t ref = intro->ref != 0 ? intro->ref : streams->next_ref;
  uint64_t *ref_slot, *id_slot, *count;
  struct tc_stream *stream = calloc(1, sizeof *stream);

  if (stream == NULL) return TB_NOMEM;
  if (tb_map_put(&streams->by_ref, ref, &ref_slot, NULL) != TB_OK) {
    free(stream);
    return TB_NOMEM;
  }
  if (tb_map_put(&streams->by_identity, identity_key(intro->identity), &count, NULL) != TB_OK) {
    tb_map_remove(&streams->by_ref, ref);
    free(stream);
    return TB_NOMEM;
  }
  ++*count;
  if (tb_map_put(&streams->by_id, key_of(intro->id), &id_slot, NULL) != TB_OK) {
    count_out(streams, intro->identity);
    tb_map_remove(&streams->by_ref, ref);
    free(stream);
    return TB_NOMEM;
  }
  *ref_slot = (uint64_t)(uintptr_t)stream;
  stream->intro = *intro;
  stream->intro.ref = stream->ref = ref;
  stream->intro.settled.stream = ref;
  TAILQ_INIT(&stream->units);
  stream->same_hash = (struct tc_stream *)(uintptr_t)*id_slot;
  *id_slot = (uint64_t)(uintptr_t)stream;
  LIST_INSERT_HEAD(&streams->all, stream, all);
  streams->count++;
  if (ref >= streams->next_ref) streams->next_ref = ref + 1;
  *out = stream;
  return TB_OK;
}

void tc_streams_remove(struct tc_streams *streams, struct tc_stream *stream) {
  uint64_t *slot = tb_map_find(&streams->by_id, key_of(stream->intro.id));
  struct tc_stream *first = (struct tc_stream *)(uintptr_t)*slot;

  if (first == stream) {
    *slot = (uint64_t)(uintptr_t)stream->same_hash;
    if (*slot == 0) tb_map_remove(&streams->by_id, key_of(stream->intro.id));
  } else {
    while (first->same_hash != stream) first = first->same_hash;
    first->same_hash = stream->same_hash;
  }
  tc_streams_disconnect(streams, stream);
  tb_map_remove(&streams->by_ref, stream->ref);
  LIST_REMOVE(stream, all);
  streams->count--;
  count_out(streams, stream->intro.identity);
  stream_free(streams, stream);
}

tb_rc tc_streams_connect(struct tc_streams *streams, struct tc_stream *stream, uint64_t conn) {
  uint64_t *slot;

  TB_TRY(tb_map_put(&streams->by_conn, conn, &slot, NULL));
  *slot = (uint64_t)(uintptr_t)stream;
  if (stream->conn != conn) tc_streams_disconnect(streams, stream);
  stream->conn = conn;
  return TB_OK;
}

void tc_streams_disconnect(struct tc_streams *streams, struct tc_stream *stream) {
  if (stream->conn != 0) tb_map_remove(&streams->by_conn, stream->conn);
  stream->conn = 0;
}

/* Returns NULL if the stream has too many units or memory cannot be allocated: the records then join the unit before,
 * which is kept a little longer. Without a unit before uses `spare`, as acked records must not leave the log. */
static struct tc_unit *new_unit(struct tc_stream *stream) {
  if (stream->nunits >= TC_UNITS_MAX) return NULL;
  struct tc_unit *unit = calloc(1, sizeof *unit);

  if (unit != NULL || !TAILQ_EMPTY(&stream->units)) return unit;
  stream->spare = (struct tc_unit){ 0 };
  return &stream->spare;
}

void tc_streams_hold(struct tc_streams *streams, struct tc_stream *stream, uint64_t lsn,
                     uint64_t seq, bool ends) {
  struct tc_unit *unit = stream->unit_open ? NULL : new_unit(stream);

  stream->unit_open = true;
  if (unit != NULL) {
    unit->stream = stream;
    unit->first_lsn = lsn;
    TAILQ_INSERT_TAIL(&streams->held, unit, in_log);
    TAILQ_INSERT_TAIL(&stream->units, unit, of_stream);
    stream->nunits++;
  }
  TAILQ_LAST(&stream->units, tc_units)->last_seq = seq; /* the open one */
  if (ends) stream->unit_open = false;
}

void tc_stream_end_unit(struct tc_stream *stream) {
  if (TAILQ_NEXT(TAILQ_FIRST(&stream->units), of_stream) == NULL) stream->unit_open = false;
}

void tc_streams_settle(struct tc_streams *streams, struct tc_stream *stream,
                       const struct tc_settled *settled) {
  const struct tc_unit *first;

  stream->intro.settled = *settled;
  while ((first = TAILQ_FIRST(&stream->units)) != NULL && first->last_seq <= settled->seq)
    unit_drop(streams, stream);
}

void tc_streams_checkpoint(struct tc_streams *streams, struct tc_stream *stream,
                           const struct tc_checkpoint *checkpoint) {
  struct tc_unit *unit, *next;

  /* The last unit stays even if it has ended: the log must keep the checkpoint itself. */
  while ((unit = TAILQ_FIRST(&stream->units)) != NULL && unit->last_seq <= checkpoint->seq &&
         (next = TAILQ_NEXT(unit, of_stream)) != NULL && next->first_lsn < checkpoint->lsn)
    unit_drop(streams, stream);
  if (unit == NULL || unit->first_lsn >= checkpoint->lsn) return;
  TAILQ_REMOVE(&streams->held, unit, in_log);
  unit->first_lsn = checkpoint->lsn;
  held_insert(streams, unit);
}

uint64_t tc_streams_hold_lsn(const struct tc_streams *streams) {
  return TAILQ_EMPTY(&streams->held) ? UINT64_MAX : TAILQ_FIRST(&streams->held)->first_lsn;
}

void tc_settled_to_log(struct tc_settled *settled, struct tc_settled_message *message) {
  Tracecollect__V1__LogSettled *out = &message->settled;

  tracecollect__v1__log_settled__init(out);
  out->seq = settled->seq;
  out->abandoned_gen = settled->abandoned_gen;
  if (!settled->has_segment) return;
  out->day = settled->day;
  out->first_gen = settled->first_gen;
  out->last_gen = settled->last_gen;
  out->hash = tc_hash_put(&settled->hash, &message->hash);
}

void tc_settled_from_log(const Tracecollect__V1__LogSettled *in, uint32_t ref,
                         struct tc_settled *out) {
  *out = (struct tc_settled){ .stream = ref, .seq = in->seq, .abandoned_gen = in->abandoned_gen };
  struct tc_content_hash hash = tc_hash_read(in->hash);
  if (hash.kind == TC_HASH_NONE || !tc_day_valid(in->day)) return;
  out->has_segment = true;
  memcpy(out->day, in->day, TC_DAY_BYTES);
  out->hash = hash;
  out->first_gen = in->first_gen;
  out->last_gen = in->last_gen;
}

void tc_stream_to_log(struct tc_stream *stream, Tracecollect__V1__LogStream *out,
                      struct tc_settled_message *settled) {
  tracecollect__v1__log_stream__init(out);
  out->ref = stream->ref;
  out->stream = (ProtobufCBinaryData){ sizeof stream->intro.id, stream->intro.id };
  out->identity = stream->intro.identity;
  out->service = stream->intro.service;
  out->instance = stream->intro.instance;
  out->trace_header = (ProtobufCBinaryData){ stream->intro.header_len, stream->intro.header };
  out->durable_seq = stream->durable_seq;
  out->closed = stream->closed;
  out->contact_wall_ns = stream->contact_wall_ns;
  tc_settled_to_log(&stream->intro.settled, settled);
  out->settled = &settled->settled;
}

tb_rc tc_intro_from_log(const Tracecollect__V1__LogStream *in, unsigned loops,
                        struct tc_stream_intro *out) {
  if (in->ref == 0 || in->stream.len != TC_STREAM_BYTES ||
      in->trace_header.len > sizeof out->header)
    return TB_CORRUPT;
  *out = (struct tc_stream_intro){ .ref = in->ref,
                                   .home = in->ref % loops,
                                   .header_len = (uint32_t)in->trace_header.len };
  memcpy(out->id, in->stream.data, TC_STREAM_BYTES);
  snprintf(out->identity, sizeof out->identity, "%s", in->identity);
  snprintf(out->service, sizeof out->service, "%s", in->service);
  snprintf(out->instance, sizeof out->instance, "%s", in->instance);
  if (out->header_len > 0) memcpy(out->header, in->trace_header.data, out->header_len);
  if (in->settled != NULL) tc_settled_from_log(in->settled, in->ref, &out->settled);
  return TB_OK;
}
