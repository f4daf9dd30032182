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

/* Receives the trace: the header, then for each generation the batches and, if the version has one, the end mark. */
struct ta_outlet {
  void *self;
  void (*header)(void *self, const void *bytes, size_t n);
  void (*put)(void *self, uint64_t gen, const void *bytes, size_t n); /* a batch or an end mark */
  /* Called before end(): the whole generation is lost, including batches that follow. */
  void (*lose)(void *self, uint64_t gen, enum ta_loss why);
  /* Called after the generation's last byte. */
  void (*end)(void *self, uint64_t gen);
  /* Makes a flight recorder send what it holds. NULL: not a recorder. */
  void (*snap)(void *self, uint64_t last_ms);
  /* Logs a message, level as in syslog(3). May be NULL. */
  void (*log)(void *self, int level, const char *text);
  /* Time that a thread may be in the middle of an event before it is left behind. 0: ta_flusher_patience(). */
  uint64_t patience_ns;
};

struct ta_generation {
  struct ta_outlet out;
  struct ta_moment began; /* start of this generation */
  uint64_t time;          /* began, as written in the trace */
  struct ta_rate rate;    /* of the cycle counter */
  uint64_t bytes;         /* shipped so far in this generation */
  bool lost;              /* see ta_generation_is_lost() */
  /* Longest wait for functions' names in the last generation; below half a second, that is used. */
  _Atomic uint64_t names_wait_ns;
  struct ta_batch *later, **later_end; /* batches of the next generation, oldest first */
  struct tw_write write;
  unsigned char room[TW_WRITE_ROOM];
};

enum ta_end_kind {
  TA_END_NEXT,   /* fails while the world is stopped */
  TA_END_FORCED, /* succeeds even then, and gives the generation up */
  TA_END_LAST,
};

/* rate: the one made with the session's first clock, which began at ta_emit.origin. The caller holds the lock of
 * experiments. */
void ta_generation_open(struct ta_generation *k, const struct ta_outlet *out, struct ta_rate rate);
bool ta_generation_collect(struct ta_generation *k); /* returns false if nothing was posted */
/* Returns false if the world is stopped and kind is TA_END_NEXT. */
bool ta_generation_end(struct ta_generation *k, enum ta_end_kind kind);
/* Whether the session was given up: it is off, nothing more is sent, and memory into which threads may still write is
 * never freed. */
bool ta_generation_is_lost(const struct ta_generation *k);

/* Call before and after the flusher's own writes into k->write; an empty batch is not sent. */
void ta_generation_open_batch(struct ta_generation *k, uint32_t gen, int64_t thread);
void ta_generation_close_batch(struct ta_generation *k, uint32_t gen);

#endif
