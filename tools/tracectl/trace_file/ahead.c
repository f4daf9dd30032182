/* SPDX-License-Identifier: Apache-2.0 */
/* Two slots are filled and emptied in turn. `full` says which thread owns a slot; the lock that protects `full`
 * also orders the slot's content. */
#include "tools/tracectl/trace_file/ahead.h"

#include <pthread.h>

enum { PLACES = 2 };

struct tk_ahead {
  struct tb_mem mem, place_mem[PLACES];
  struct to_pull_source source;
  struct to_prepare *prepare;
  struct to_prepared *place[PLACES];
  unsigned next; /* index of the next slot to read */
  bool lent;     /* the reader has the slot */
  bool over;     /* the reader had the last slot */
  bool started;
  pthread_t thread;

  pthread_mutex_t lock;
  pthread_cond_t turn;
  bool full[PLACES]; /* protected by the lock, like stop */
  bool stop;
};

/* Used by the preparing thread only. */
struct bytes {
  const unsigned char *pos;
  size_t left;
  bool ended;
};

/* TB_OK: needs more bytes; TB_AGAIN: a generation is complete. */
static tb_rc feed_some(struct tk_ahead *ahead, struct bytes *bytes) {
  const void *more;
  size_t used;

  if (bytes->left == 0 && !bytes->ended) {
    tb_rc rc = ahead->source.more(ahead->source.self, &more, &bytes->left);
    bytes->pos = more;
    if (rc == TB_END) {
      bytes->ended = true;
      bytes->left = 0;
    } else if (rc != TB_OK) {
      to_prepare_fail(ahead->prepare, rc);
      return TB_AGAIN;
    }
  }
  if (bytes->ended) return to_prepare_finish(ahead->prepare);
  tb_rc rc = to_prepare_feed(ahead->prepare, bytes->pos, bytes->left, &used);
  bytes->pos += used;
  bytes->left -= used;
  return rc;
}

static bool stopped(struct tk_ahead *ahead) {
  pthread_mutex_lock(&ahead->lock);
  bool stop = ahead->stop;
  pthread_mutex_unlock(&ahead->lock);
  return stop;
}

/* Returns false if the reader stopped. */
static bool wait_for(struct tk_ahead *ahead, unsigned place, bool full) {
  pthread_mutex_lock(&ahead->lock);
  while (ahead->full[place] != full && !ahead->stop) pthread_cond_wait(&ahead->turn, &ahead->lock);
  bool stop = ahead->stop;
  pthread_mutex_unlock(&ahead->lock);
  return !stop;
}

static void turn_over(struct tk_ahead *ahead, unsigned place, bool full) {
  pthread_mutex_lock(&ahead->lock);
  ahead->full[place] = full;
  pthread_cond_signal(&ahead->turn);
  pthread_mutex_unlock(&ahead->lock);
}

static void *prepare_all(void *self) {
  struct tk_ahead *ahead = self;
  struct bytes bytes = { 0 };
  bool last = false;

  for (unsigned place = 0; !last && wait_for(ahead, place, false); place = (place + 1) % PLACES) {
    tb_rc rc = to_prepare_begin(ahead->prepare, ahead->place[place]);
    while (rc == TB_OK && !stopped(ahead)) rc = feed_some(ahead, &bytes);
    if (rc == TB_OK) break;
    last = to_prepared_is_last(ahead->place[place]); /* before the reader owns the slot */
    turn_over(ahead, place, true);
  }
  return NULL;
}

static tb_rc begin(struct tk_ahead *ahead, unsigned flags) {
  TB_TRY(to_prepare_new(&ahead->mem, NULL, flags, &ahead->prepare));
  for (unsigned i = 0; i < PLACES; i++) {
    tb_mem_init(&ahead->place_mem[i], tb_mem_libc, NULL, SIZE_MAX);
    TB_TRY(to_prepared_new(&ahead->place_mem[i], &ahead->place[i]));
  }
  ahead->started = pthread_create(&ahead->thread, NULL, prepare_all, ahead) == 0;
  return ahead->started ? TB_OK : TB_NOMEM;
}

tb_rc tk_ahead_open(unsigned flags, struct to_pull_source source, struct tk_ahead **out) {
  struct tb_mem mem;
  struct tk_ahead *ahead;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  TB_TRY(tb_mem_alloc(&mem, sizeof(struct tk_ahead), &ahead));
  ahead->mem = mem;
  ahead->source = source;
  pthread_mutex_init(&ahead->lock, NULL);
  pthread_cond_init(&ahead->turn, NULL);
  tb_rc rc = begin(ahead, flags);
  if (rc != TB_OK) {
    tk_ahead_close(ahead);
    return rc;
  }
  *out = ahead;
  return TB_OK;
}

void tk_ahead_close(struct tk_ahead *ahead) {
  if (ahead == NULL) return;
  if (ahead->started) {
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    pthread_cond_signal(&ahead->turn);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
  }
  pthread_cond_destroy(&ahead->turn);
  pthread_mutex_destroy(&ahead->lock);
  for (unsigned i = 0; i < PLACES; i++) to_prepared_free(ahead->place[i]);
  to_prepare_free(ahead->prepare);
  struct tb_mem mem = ahead->mem;
  tb_mem_free(&mem, ahead, sizeof *ahead);
}

struct to_prepared *tk_ahead_next(struct tk_ahead *ahead) {
  if (ahead->over) return NULL;
  if (ahead->lent) {
    turn_over(ahead, ahead->next, false);
    ahead->next = (ahead->next + 1) % PLACES;
  }
  ahead->lent = true;
  (void)wait_for(ahead, ahead->next, true); /* only close() makes it return false */
  ahead->over = to_prepared_is_last(ahead->place[ahead->next]);
  return ahead->place[ahead->next];
}
