/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/base/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/generation_time.h"
#include "base/text/hex.h"

enum step { OPENS, RESUMES, BEGINS, ENDS, LEAVES, GIVES_UP, IS_OVER, STEPS };

static const enum tc__stream_state moves[TC__STREAM_STATES][STEPS] = {
  [TC__IDLE] = { [OPENS] = TC__BETWEEN,
                 [RESUMES] = TC__INSIDE,
                 [GIVES_UP] = TC__ABANDONED,
                 [IS_OVER] = TC__IDLE },
  [TC__BETWEEN] = { [BEGINS] = TC__INSIDE, [LEAVES] = TC__IDLE },
  [TC__INSIDE] = { [ENDS] = TC__BETWEEN, [LEAVES] = TC__IDLE },
  [TC__ABANDONED] = { [OPENS] = TC__BETWEEN,
                      [RESUMES] = TC__INSIDE,
                      [GIVES_UP] = TC__ABANDONED,
                      [IS_OVER] = TC__IDLE },
};

static void take_step(struct tc__stream *stream, enum step step) {
  enum tc__stream_state next = moves[stream->state][step];

  assert(next != TC__STREAM_NONE);
  stream->state = next;
}

void tc__stream_opens(struct tc__stream *stream, struct tc__file *file) {
  take_step(stream, file->segment->in_gen ? RESUMES : OPENS);
  stream->open = file;
}

void tc__stream_appended(struct tc__stream *stream) {
  if (stream->state == TC__BETWEEN && stream->open->segment->in_gen) take_step(stream, BEGINS);
}

void tc__stream_ends(struct tc__stream *stream) {
  take_step(stream, ENDS);
}

struct tc__file *tc__stream_leaves(struct tc__stream *stream) {
  take_step(stream, LEAVES);
  if (stream->abandoned_gen != 0) take_step(stream, GIVES_UP);
  return TB_MOVE(stream->open);
}

void tc__stream_gives_up(struct tc__stream *stream, uint64_t gen) {
  stream->abandoned_gen = gen;
  if (stream->open == NULL) take_step(stream, gen != 0 ? GIVES_UP : IS_OVER);
}

static enum tc__stream_state state_of(const struct tc__stream *stream) {
  if (stream->open != NULL) return stream->open->segment->in_gen ? TC__INSIDE : TC__BETWEEN;
  return stream->abandoned_gen != 0 ? TC__ABANDONED : TC__IDLE;
}

const char *tc__stream_check(const struct tc__stream *stream) {
  const struct tc__file *open = stream->open, *queued = stream->queued;

  if (open != NULL && (open->state != TC__FILE_IS_OPEN || open->stream != stream))
    return "the stream writes a file that is not open";
  if (stream->state != state_of(stream)) return "the states of stream and file do not match";
  if (queued != NULL && queued->state == TC__FILE_IS_OPEN) return "an open file is in the queue";
  if (open != NULL && stream->end != TC__GOES_ON) return "the stream has ended, a file is open";
  if (stream->settled.seq > stream->last_seq) return "settled beyond the last record";
  return open != NULL ? tc__file_check(open) : NULL;
}

/* A stream may have a hundred thousand of these, and verdicts arrive in any order: no step walks the list. */
struct tc__recent *tc__recent_add(struct tc__stream *stream, const char *day, uint64_t first_gen,
                                  size_t n) {
  struct tc__recent *recent = calloc(1, sizeof *recent);

  if (recent == NULL) return NULL;
  recent->stream = stream;
  recent->verdicts_tail = &recent->verdicts;
  memcpy(recent->day, day, sizeof recent->day);
  recent->first_gen = first_gen;
  recent->ngens = n;
  recent->at = &stream->recents;
  recent->next = stream->recents;
  if (recent->next != NULL) recent->next->at = &recent->next;
  stream->recents = recent;
  for (size_t i = 0; i < n; i++) {
    uint64_t *slot;
    bool fresh;
    if (tb_map_put(&stream->recent_of_gen, first_gen + i, &slot, &fresh) != TB_OK) {
      tc__recent_drop(stream, recent);
      return NULL;
    }
    if (fresh) *slot = (uint64_t)(uintptr_t)recent;
  }
  return recent;
}

void tc__recent_drop(struct tc__stream *stream, struct tc__recent *recent) {
  struct tb_map *map = &stream->recent_of_gen;

  for (size_t i = 0; i < recent->ngens; i++) {
    const uint64_t *slot = tb_map_find(map, recent->first_gen + i);
    if (slot != NULL && *slot == (uint64_t)(uintptr_t)recent)
      tb_map_remove(map, recent->first_gen + i);
  }
  *recent->at = recent->next;
  if (recent->next != NULL) recent->next->at = recent->at;
  tc__verdicts_free(recent->verdicts);
  free(recent);
  if (stream->recents != NULL) return;
  struct tb_mem *mem = map->mem;
  uint64_t seed = map->seed;
  tb_map_fini(map); /* the map may have grown for many entries: release its memory */
  tb_map_init(map, mem, seed);
}

void tc__streams_init(struct tc__streams *streams, const struct tc__env *env) {
  streams->env = env;
  tb_mem_init(&streams->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&streams->by_ref, &streams->mem, 0x9e3779b97f4a7c15u); /* no peer chooses refs */
  streams->live.tail = &streams->live.first;
}

static void free_stream(struct tc__streams *streams, struct tc__stream *stream) {
  tc_reply_queue_unjoin(&stream->released);
  while (stream->recents != NULL) tc__recent_drop(stream, stream->recents);
  tb_map_fini(&stream->recent_of_gen);
  /* The bytes are in the log; recovery assembles the file again. */
  if (stream->open != NULL && !stream->open->checkpointed)
    unlinkat(streams->env->opt.dirs->open, stream->open->segment->name, 0);
  tc__file_free(stream->open);
  tc__losses_fini(&stream->losses);
  tc__losses_fini(&stream->reported.losses);
  free(stream);
}

void tc__streams_fini(struct tc__streams *streams) {
  for (struct tc__stream *stream = streams->first, *next; stream != NULL; stream = next) {
    next = stream->next;
    free_stream(streams, stream);
  }
  tb_map_fini(&streams->by_ref);
}

tb_rc tc__streams_add(struct tc__streams *streams, const struct tc_stream_intro *intro,
                      struct tb_diag *diag) {
  struct tc__stream *stream = calloc(1, sizeof *stream);
  uint64_t *slot;

  if (stream == NULL || tb_map_put(&streams->by_ref, intro->ref, &slot, NULL) != TB_OK) {
    free(stream);
    return tb_fail(diag, TB_NOMEM, "archive: no memory for a stream");
  }
  *slot = (uint64_t)(uintptr_t)stream;
  stream->next = streams->first;
  if (stream->next != NULL) stream->next->at = &stream->next;
  stream->at = &streams->first;
  streams->first = stream;
  stream->ref = intro->ref;
  stream->home = intro->home;
  memcpy(stream->id, intro->id, sizeof stream->id);
  tb_hex(intro->id, sizeof intro->id, stream->hex);
  memcpy(stream->identity, intro->identity, sizeof stream->identity);
  memcpy(stream->service, intro->service, sizeof stream->service);
  memcpy(stream->instance, intro->instance, sizeof stream->instance);
  memcpy(stream->header, intro->header, sizeof stream->header);
  stream->header_len = intro->header_len;
  stream->go_version = tc_go_version(intro->header, intro->header_len);
  stream->settled = intro->settled;
  stream->settled.stream = intro->ref;
  stream->abandoned_gen = intro->settled.abandoned_gen;
  stream->state = stream->abandoned_gen != 0 ? TC__ABANDONED : TC__IDLE;
  stream->last_gen = intro->settled.last_gen;
  stream->last_seq = intro->settled.seq;
  tb_map_init(&stream->recent_of_gen, &streams->mem, tb_seed());
  tc_count(&streams->env->opt.stats->streams, 1);
  return TB_OK;
}

void tc__streams_forget(struct tc__streams *streams, struct tc__stream *stream) {
  struct tc__stream **at = &streams->live.first;

  if (stream->open != NULL || stream->queued != NULL || stream->recents != NULL) return;
  while (*at != NULL && *at != stream) at = &(*at)->live_next;
  if (*at == stream) {
    *at = stream->live_next;
    if (stream->live_next == NULL) streams->live.tail = at;
  }
  tb_map_remove(&streams->by_ref, stream->ref);
  *stream->at = stream->next;
  if (stream->next != NULL) stream->next->at = stream->at;
  tc_count(&streams->env->opt.stats->streams, (uint64_t)-1);
  free_stream(streams, stream);
}

struct tc__stream *tc__find_stream(const struct tc__streams *streams, uint32_t ref) {
  return tb_map_at(&streams->by_ref, ref);
}

void tc__mark_live(struct tc__streams *streams, struct tc__stream *stream) {
  if (stream->live_dirty) return;
  stream->live_dirty = true;
  stream->live_next = NULL;
  *streams->live.tail = stream;
  streams->live.tail = &stream->live_next;
}
