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

struct tc__payload { /* payload of a control record, kept until its group is committed */
  struct tc__payload *next;
  unsigned char bytes[];
};

struct tc_commit {
  struct tc_commit_options opt;
  struct tc_sealer *sealer;
  struct tc_streams streams;
  struct tc_wal *log;
  struct tc_reply_queue replies;
  struct tc_spsc_queue *inboxes; /* by sender */
  unsigned next_sender;          /* the sender whose inbox is read next */
  struct tc_submit *held;        /* could not be handled for lack of memory; blocks all intake */
  struct tc_wakeup wakeup;
  pthread_t thread;
  bool started;
  atomic_bool stop;
  uint64_t deadline_mono_ns; /* set before `stop`; 0: none */

  struct tc_record *backlog, **backlog_tail; /* accepted, not yet in a group */
  uint64_t backlog_bytes;
  struct tc_record *group, **group_tail;
  uint64_t *lsns; /* of the group's records */
  size_t nlsns, lsns_cap;
  struct tc__payload *payloads;
  struct tc_settled **settled; /* reports to be logged */
  size_t nsettled, settled_cap, settled_staged;
  struct tc_stream *acks; /* streams with ack_due */
  uint64_t taken, done;   /* number of records accepted; of these, passed on or dropped */
  struct tc__barrier {
    struct tc__barrier *next;
    uint64_t after; /* waits until `done` is this */
    uint64_t cookie;
    unsigned loop;
  } * barriers, **barriers_tail;

  struct tc_work *work, **work_tail; /* for the sealer */
  size_t nwork;                      /* grows while the sealer's queue is full */

  uint64_t group_mono_ns;   /* end of the last commit */
  uint64_t settled_mono_ns; /* since when a report waits */
  uint64_t look_mono_ns;    /* last check of the disk and of idle streams */
  uint64_t files_mono_ns;   /* last check for missing files of the log */
  uint64_t trim_mono_ns;
  uint64_t poison_mono_ns[2]; /* the last two times that a file was given up */
  struct tc_wait wait;        /* of the log */
  bool disk_has_room;         /* by disk.free_min */
  bool failed;
  unsigned failed_unreported; /* number of loops to report the failure to */
  char failed_text[200];
};

#define tc__commit_note(commit, ...) tc__commit_note_as(commit, TC_NOTICE, 0, __VA_ARGS__)
#define tc__commit_note_as(commit, level, ref, ...)                                                \
  tc_store_note(&(commit)->opt.sink, level, ref, __VA_ARGS__)

/* requests.c */
/* Takes ownership of msg. Returns false if memory cannot be allocated, not even to refuse msg: the caller keeps it and
 * tries again. */
bool tc__intake(struct tc_commit *commit, struct tc_submit *msg);
/* Queues work for the sealer. Returns NULL if memory cannot be allocated. */
struct tc_work *tc__commit_work(struct tc_commit *commit, enum tc_work_kind kind, uint32_t stream);
void tc__drop_conn(struct tc_commit *commit, struct tc_stream *stream);
/* Removes a stream that is over. Returns false if memory for the message to the sealer cannot be allocated. */
bool tc__commit_forget(struct tc_commit *commit, struct tc_stream *stream);
/* Takes the stream from its connection, which is refused and has to reconnect. text must be static. */
void tc__send_away_writer(struct tc_commit *commit, struct tc_stream *stream, uint32_t code,
                          const char *text);
/* Send replies that a shortage of memory delayed. Returns false if the shortage lasts. */
bool tc__say_refusal(struct tc_commit *commit, struct tc_stream *stream);
void tc__answer_attach(struct tc_commit *commit, struct tc_stream *stream);
/* Passes on to the sealer each barrier before which all records were passed on. */
void tc__pass_barriers(struct tc_commit *commit);
void tc__due_ack(struct tc_commit *commit, struct tc_stream *stream);

/* wait.c */
bool tc__commit_waits(const struct tc_commit *commit); /* nothing can be committed now */
/* Begins or continues a wait and publishes its reason. Returns true if it is to be logged. */
bool tc__commit_wait_for(struct tc_commit *commit, enum tc_shortage why);

/* group.c */
void tc__commit_group(struct tc_commit *commit);
void tc__take_settled(struct tc_commit *commit);
void tc__report_failed(struct tc_commit *commit);
void tc__send_acks(struct tc_commit *commit);
void tc__drop_backlog(struct tc_commit *commit);
tb_rc tc__fill_snapshot(void *self, Tracecollect__V1__LogSnapshot *out);

#endif
