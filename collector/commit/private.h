/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by thread.c, requests.c, group.c and wait.c. */
#ifndef TC_COMMIT_PRIVATE_H
#define TC_COMMIT_PRIVATE_H

#include <pthread.h>

#include "collector/base/logger.h"
#include "collector/base/spsc_queue.h"
#include "collector/base/wakeup.h"
#include "collector/commit/thread.h"
#include "collector/model/shortage.h"

struct tc__payload { /* of a control record, until its group is committed */
  struct tc__payload *next;
  unsigned char bytes[];
};

struct tc_commit {
  struct tc_commit_options opt;
  struct tc_sealer *sealer;
  struct tc_streams streams;
  struct tc_log *log;
  struct tc_reply_queue replies;
  struct tc_spsc_queue *inboxes; /* by sender */
  unsigned next_sender;          /* the sender whose inbox is read next */
  struct tc_submit *held;        /* nothing more is taken in before there is memory for this one */
  struct tc_wakeup wakeup;
  pthread_t thread;
  bool started;
  atomic_bool stop;
  uint64_t deadline_mono_ns; /* of the stop, set before it; 0: none */

  struct tc_record *backlog, **backlog_tail; /* taken in, not yet in a group */
  uint64_t backlog_bytes;
  struct tc_record *group, **group_tail;
  uint64_t *lsns; /* of the group's records */
  size_t nlsns, lsns_cap;
  struct tc__payload *payloads;
  struct tc_settled **settled; /* to be logged */
  size_t nsettled, settled_cap, settled_staged;
  struct tc_stream *acks; /* streams with ack_due */
  uint64_t taken, done;   /* records taken in; of these, handed on or forgotten */
  struct tc__barrier {
    struct tc__barrier *next;
    uint64_t after; /* so many records are done */
    uint64_t cookie;
    unsigned loop;
  } * barriers, **barriers_tail;

  struct tc_work *work, **work_tail; /* for the sealer */
  size_t nwork;                      /* in it: more than a turn's where the sealer takes nothing */

  uint64_t group_mono_ns;   /* end of the last commit */
  uint64_t settled_mono_ns; /* since when a report waits */
  uint64_t look_mono_ns;    /* disk and idle streams */
  uint64_t files_mono_ns;   /* whether the log's are there */
  uint64_t trim_mono_ns;
  uint64_t poison_mono_ns[2]; /* the last two times a file was given up */
  struct tc_wait wait;        /* of the log */
  bool disk_has_room;         /* by disk.free_min */
  bool failed;
  unsigned failed_unreported; /* so many loops do not know it yet */
  char failed_text[200];
};

#define tc__commit_note(commit, ...) tc__commit_note_as(commit, TC_NOTICE, 0, __VA_ARGS__)
#define tc__commit_note_as(commit, level, ref, ...)                                                \
  tc_store_note(&(commit)->opt.sink, level, ref, __VA_ARGS__)

/* requests.c */
/* Takes msg. False: it stays the caller's, to be tried again: there is not even memory to refuse it. */
bool tc__intake(struct tc_commit *commit, struct tc_submit *msg);
struct tc_work *tc__commit_work(struct tc_commit *commit, enum tc_work_kind kind,
                                uint32_t stream); /* in order; NULL: no memory */
void tc__drop_conn(struct tc_commit *commit, struct tc_stream *stream);
/* A stream that is over is known no more. False: there is no memory to say so. */
bool tc__commit_forget(struct tc_commit *commit, struct tc_stream *stream);
/* The stream's connection has to come again, and writes it no more. text: lives as long as the program. */
void tc__send_away_writer(struct tc_commit *commit, struct tc_stream *stream, uint32_t code,
                          const char *text);
/* Replies that a shortage left unsent. False: it still does. */
bool tc__say_refusal(struct tc_commit *commit, struct tc_stream *stream);
void tc__answer_attach(struct tc_commit *commit, struct tc_stream *stream);
/* Barriers that what lies before them is done for go to the sealer, behind it. */
void tc__pass_barriers(struct tc_commit *commit);
void tc__due_ack(struct tc_commit *commit, struct tc_stream *stream);

/* wait.c */
/* Nothing can be committed now. */
bool tc__commit_waits(const struct tc_commit *commit);
/* The reason of the wait, readable by all. True: to be logged. */
bool tc__commit_wait_for(struct tc_commit *commit, enum tc_shortage why);

/* group.c */
void tc__commit_group(struct tc_commit *commit);
void tc__take_settled(struct tc_commit *commit);
void tc__report_failed(struct tc_commit *commit);
void tc__send_acks(struct tc_commit *commit);
void tc__drop_backlog(struct tc_commit *commit);
tb_rc tc__fill_snapshot(void *self, Tracecollect__V1__LogSnapshot *out);

#endif
