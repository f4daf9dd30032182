/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the batches that threads have written, and ends generations.
 *
 *   ta_generation_open(&k, outlet, rate);
 *   while (more) {
 *     ta_generation_collect(&k);
 *     if (time) ta_generation_end(&k, TA_END_NEXT);
 *   }
 *   ta_generation_end(&k, TA_END_LAST);
 *
 * It waits for threads that are writing an event, up to a limit; they never wait for it.
 *
 * Memory    one batch, in the struct.
 * Threads   one. The outlet is called from it only.
 */
#ifndef TA_EMIT_GENERATION_GENERATION_H
#define TA_EMIT_GENERATION_GENERATION_H

#include "agent/emit/core/emit.h"

/* Receiver of the trace, in order: its header, then for each generation its batches and, if the version has one, its
 * end mark. */
struct ta_outlet {
  void *self;
  void (*header)(void *self, const void *bytes, size_t n);
  void (*put)(void *self, uint64_t gen, const void *bytes,
              size_t n); /* one batch, or the end mark */
  /* Before a generation's end: all of the generation is lost, including data still to come. */
  void (*lose)(void *self, uint64_t gen, enum ta_loss why);
  /* After its last byte. */
  void (*end)(void *self, uint64_t gen);
  /* Makes a recorder send what it holds. NULL: not a recorder. */
  void (*snap)(void *self, uint64_t last_ms);
  /* For people, level as in syslog(3). May be NULL. */
  void (*log)(void *self, int level, const char *text);
  /* How long a thread may be in the middle of an event before it is left behind. 0: the default,
   * agent/emit/generation/flusher.c. */
  uint64_t patience_ns;
};

struct ta_generation {
  struct ta_outlet out;
  struct ta_moment began; /* of this generation */
  uint64_t time;          /* the same on the wire */
  struct ta_rate rate;    /* of the counter */
  uint64_t bytes;         /* of the generation, shipped so far */
  bool lost;              /* see ta_generation_is_lost() */
  _Atomic uint64_t names_wait_ns; /* the last one may wait so long for functions' names, and half a second in any case */
  struct ta_batch *later,
      **later_end; /* of the generation that has begun meanwhile, oldest first */
  struct tw_write write;
  unsigned char room[TW_WRITE_ROOM];
};

enum ta_end_kind {
  TA_END_NEXT,   /* unless the world is stopped */
  TA_END_FORCED, /* in any case: then the generation is given up */
  TA_END_LAST,
};

/* rate: as the session's first clock came with it; it began at ta_emit.origin. The lock of experiments is the
 * caller's. */
void ta_generation_open(struct ta_generation *k, const struct ta_outlet *out, struct ta_rate rate);
bool ta_generation_collect(struct ta_generation *k); /* false: nothing was posted */
bool ta_generation_end(struct ta_generation *k, enum ta_end_kind kind);
/* Whether the session was given up: it is off, nothing more is sent, and memory into which threads may still write is
 * never freed. */
bool ta_generation_is_lost(const struct ta_generation *k);

/* Surround the flusher's own writes into k->write; an empty batch is not sent. */
void ta_generation_open_batch(struct ta_generation *k, uint32_t gen, int64_t thread);
void ta_generation_close_batch(struct ta_generation *k, uint32_t gen);

#endif
