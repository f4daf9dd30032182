/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room. */
#ifndef TC_SEALER_PRIVATE_H
#define TC_SEALER_PRIVATE_H

#include <pthread.h>

#include "collector/base/logger.h"
#include "collector/base/spsc_queue.h"
#include "collector/base/wakeup.h"
#include "collector/model/reply_queue.h"
#include "collector/model/shortage.h"
#include "collector/sealer/catalog_sync.h"
#include "collector/sealer/fold.h"
#include "collector/sealer/sealer.h"
#include "collector/sealer/stream.h"
#include "collector/segment/reserve.h"
#include "collector/segment/retention.h"
#include "proto/log.pb-c.h"

/* quarantine/ as retention last saw it. */
struct tc__quarantine {
  uint64_t files, bytes, oldest_wall_ns;
  bool changed;                     /* a file came since */
  struct tc__quarantine_pass *pass; /* NULL: none is under way */
};

enum { TC__HALF_MAX = 64 };

/* Segments of which the meta says that they expired, and that are not gone yet. */
/* missing.c: what was found to be gone. */
struct tc__missing {
  uint64_t looked_ns; /* 0: not yet */
  unsigned turns;
  struct tc__gone {
    uint64_t known, now; /* now: in the pass that goes on */
    char first[sizeof((struct tc_segment_row *)0)->path + sizeof "open/"];
  } parts, open_runs, segments;
  struct tc_segment_row after; /* the last one that was looked at */
  size_t rows;
  bool has_after;
};

struct tc__half_gone {
  uint64_t ids[TC__HALF_MAX]; /* of their rows */
  size_t n;
  bool more;   /* than there is room for: the next start finds them */
  bool marked; /* retention set the catalog's mark, and nothing else counts on it */
};

struct tc_sealer {
  struct tc_sealer_options opt;
  enum tc_hash_kind hash_kind; /* archive.hash */
  struct tc_keys *signer;      /* archive.sign; NULL: metas are not signed */
  struct tb_mem mem;

  struct tc__stream *streams; /* in no order */
  struct tb_map by_ref;
  struct tc__catalog_sync catalog;
  struct tc__file_queue queue;
  struct tc__dirty_files dirty;
  size_t unproven; /* files that a start took up, and that were not read back yet */
  struct tc_descriptors descriptors; /* of the segments in open/ */
  struct tc__quarantine quarantine;

  struct tc_spsc_queue inbox;
  struct { /* taken from the inbox, in order */
    struct tc_work *first, **tail;
    struct tc_record *at; /* the first record of the first work that is not yet handled */
    bool is_begun;        /* `at` counts */
    uint64_t end_lsn;     /* records handled so far lie before it in the log */
    struct tc_work *barriers, **barriers_tail; /* answered after the next sealing */
  } work;
  struct {
    struct tc_spsc_queue box;
    struct tc_settled **items; /* not yet posted: the commit thread's queue was full */
    size_t n, cap;
  } settled;
  struct { /* verdicts came for their metas */
    struct tc__recent *first, **tail;
  } to_amend;
  struct { /* streams of which the catalog is to show another state */
    struct tc__stream *first, **tail;
    bool soon;        /* one came or went */
    uint64_t mono_ns; /* of the last time */
  } live;
  struct {
    pthread_mutex_t lock;
    pthread_cond_t is_done;
    atomic_ullong asked; /* this many readers asked for open runs to be shown */
    uint64_t served;     /* this many of them the pass that goes on is for */
    uint64_t done;       /* this many have what they asked for */
    uint64_t pass;       /* number of the pass over the open runs */
  } show;
  struct {
    struct tc_retention pace;
    struct tc__round *round;     /* goes on; NULL: none does */
    bool is_begun;               /* there was one */
    uint64_t bytes;              /* of the archive after the last one */
    uint64_t slice_bytes;        /* and after the last slice */
    uint64_t next_ns;            /* not before, between other work */
    uint64_t segments, noted_ns; /* taken since the last note, and when that was */
    struct tc__half_gone half_gone;
    size_t at_once; /* so many are marked together; 0: none was yet */
  } retaining;
  struct tc__folding folding;
  struct tc__missing missing;
  struct {
    struct tc_wait wait;
    uint64_t retry_mono_ns; /* 0: nothing waits to be tried again */
    uint64_t short_mono_ns; /* what others may give back is short since then; 0: it is not */
    bool is_reported;       /* as a failure */
  } trouble;
  struct tc_reserve reserve;
  uint64_t reserve_mono_ns, aged_mono_ns; /* when it was filled, and old runs were looked for */

  struct tc_reply_queue replies;
  struct tc_wakeup wakeup;
  pthread_t thread;
  bool started;
  atomic_bool stop;
  atomic_ullong deadline_mono_ns; /* of a stop: what is left then is the next start's; 0: none */
};

/* A line for the log. Each call is a site of its own; a line about a stream gives its ref. */
#define tc__note(sealer, ...) tc__note_as(sealer, TC_NOTICE, 0, __VA_ARGS__)
#define tc__note_as(sealer, level, ref, ...)                                                       \
  do {                                                                                             \
    static struct tc_log_site site_;                                                               \
    tc__note_at((sealer), &site_, (level), (ref), __VA_ARGS__);                                    \
  } while (0)
void tc__note_at(struct tc_sealer *sealer, struct tc_log_site *site, enum tc_level level,
                 uint32_t ref, const char *fmt, ...) TB_PRINTF(5, 6);

/* limits.c */
bool tc__is_late(const struct tc_sealer *sealer); /* the deadline of a stop is over */
uint64_t tc__disk_free(const struct tc_sealer *sealer);

/* stream.c */
struct tc__stream *tc__sealer_stream(struct tc_sealer *sealer, uint32_t ref); /* NULL: unknown */
/* Its row of live streams has changed: written by tc__flush_live(). */
void tc__mark_live(struct tc_sealer *sealer, struct tc__stream *stream);

/* file.c */
void tc__archive_path(const char *day, const char *stream_hex, uint64_t first_gen, char out[192]);
void tc__verdicts_free(struct tc__verdict *verdicts);

/* sealer.c */
void tc__forget_stream(struct tc_sealer *sealer, struct tc__stream *stream);
/* Writes the rows of live streams that have changed. */
void tc__flush_live(struct tc_sealer *sealer);

/* open_runs.c: the catalog shows the complete generations of the runs that are written, as they are when a pass looks
 * at them: in slices, so that records need not wait for thousands of runs. A pass that begins takes the place of the one
 * that goes on. */
enum { TC__SHOW_NS = 10000000 };
void tc__begin_show(struct tc_sealer *sealer);
/* A slice, of one run at least. *out_done: the pass is at its end. */
tb_rc tc__show_open_runs(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag,
                         bool *out_done);
/* The catalog was made again: it shows none. */
void tc__forget_shown_runs(struct tc_sealer *sealer);
/* The run will not be sealed. */
tb_rc tc__hide_open_run(struct tc_sealer *sealer, const struct tc__file *file,
                        struct tb_diag *diag);
/* For the readers that wait in tc_sealer_show_runs(). */
bool tc__is_asked_to_show(struct tc_sealer *sealer);
void tc__show_asked(struct tc_sealer *sealer);
void tc__end_show(struct tc_sealer *sealer, uint64_t upto); /* UINT64_MAX: and of all to come */
/* How old a run gets: segment.seconds_max or up to a quarter less, so that runs that began together do not end
 * together. */
uint64_t tc__run_age_max(const struct tc_sealer *sealer, const struct tc__stream *stream);
/* Runs that are old enough are sealed at their last border, also where nothing more comes. */
tb_rc tc__seal_old_runs(struct tc_sealer *sealer, struct tb_diag *diag);

/* records.c: what a durable record does. On failure it may be called again. */
struct tc__item {
  unsigned kind;
  uint64_t seq, gen, wall_ns;
  const unsigned char *payload;
  uint32_t len, crc; /* of the payload */
};
tb_rc tc__archive_record(struct tc_sealer *sealer, struct tc__stream *stream,
                         const struct tc__item *item, struct tb_diag *diag);
tb_rc tc__archive_abandon(struct tc_sealer *sealer, struct tc__stream *stream,
                          struct tb_diag *diag);
/* The stream's records up to seq are settled: whole generations are sealed, one that is still open is
 * given up, losses are noted. The stream goes on. */
tb_rc tc__archive_give_up(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t seq,
                          struct tb_diag *diag);
/* Moves an open file to quarantine/. */
tb_rc tc__quarantine_file(struct tc_sealer *sealer, const struct tc_segment *segment,
                          struct tb_diag *diag);
/* The meta of a generation that is about to be published cannot be read: the owner of the trace under that name is
 * not known. It is kept in quarantine/, and the place is free. */
tb_rc tc__put_trace_aside(struct tc_sealer *sealer, const struct tc__stream *stream, int dir_fd,
                          uint64_t gen, const char *why, struct tb_diag *diag);
tb_rc tc__flush_dirty(struct tc_sealer *sealer, bool to_disk, struct tb_diag *diag);
/* Gives up the open generation: its bytes go to quarantine/. note_loss: nothing else reported it, and what
 * still comes of it is lost as well. */
tb_rc tc__quarantine_open(struct tc_sealer *sealer, struct tc__stream *stream, const char *why,
                          bool note_loss, uint64_t seq, struct tb_diag *diag);
/* Complete generations in open files are sealed too. */
tb_rc tc__seal_border(struct tc_sealer *sealer, struct tc__stream *stream, struct tb_diag *diag);
tb_rc tc__seal_borders(struct tc_sealer *sealer, struct tb_diag *diag);

/* replay.c */
/* The names in a stream's folder reach the disk, its own and its day's too. False: errno. */
bool tc__sync_names(int dir_fd);
/* If a segment of the stream begins with this record, which the last run published without saying so, it
 * is taken as it is; *out_skip_to: records up to here stand in it. */
tb_rc tc__adopt_published(struct tc_sealer *sealer, struct tc__stream *stream, const char *day,
                          uint64_t gen, uint64_t first_seq, struct tb_diag *diag,
                          uint64_t *out_skip_to);

/* What the last run published of the generations from this record on cannot be taken as it is; its names go, which is on
 * the disk then. */
tb_rc tc__take_back(struct tc_sealer *sealer, struct tc__stream *stream, const char *day,
                    uint64_t gen, uint64_t first_seq, struct tb_diag *diag);

/* checkpoint.c */
tb_rc tc__archive_checkpoint(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t held_lsn,
                             struct tb_diag *diag);
/* All of an open file is on the disk, its name, too. */
tb_rc tc__sync_part(struct tc_sealer *sealer, const struct tc__file *file, struct tb_diag *diag);
/* Adds the losses that no meta has yet. */
tb_rc tc__report_checkpoint(struct tc_sealer *sealer, struct tc__stream *stream,
                            Tracecollect__V1__LogCheckpoint *m, struct tb_diag *diag);
void tc__put_part_aside(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t gen);
/* *out_was_aside: it lay in quarantine. */
tb_rc tc__fetch_part_back(struct tc_sealer *sealer, const struct tc__stream *stream, uint64_t gen,
                          struct tb_diag *diag, bool *out_was_aside);

/* run_checkpoint.c */
/* A checkpoint of the stream's run lets the log go; else the run has to be sealed for it. */
bool tc__run_takes_checkpoint(const struct tc__stream *stream);
tb_rc tc__checkpoint_run(struct tc_sealer *sealer, struct tc__stream *stream, struct tb_diag *diag);
tb_rc tc__resume_run(struct tc_sealer *sealer, struct tc__stream *stream,
                     const Tracecollect__V1__LogCheckpoint *m, struct tb_diag *diag,
                     uint64_t *out_skip_to);
/* What was taken up and has no verdict is offered again, before what comes behind it. */
void tc__offer_resumed(struct tc_sealer *sealer);

/* proof.c: what a run that was taken up owes. A file that turns out not to be what its checkpoint says may be gone
 * afterwards, or have another segment: open ones are to be asked for again. */
bool tc__is_proven(const struct tc__file *file);
/* TB_AGAIN: not all of it by then, or before the deadline of a stop. */
tb_rc tc__prove(struct tc_sealer *sealer, struct tc__file *file, uint64_t until_ns,
                struct tb_diag *diag);
tb_rc tc__prove_open(struct tc_sealer *sealer, const struct tc__stream *stream,
                     struct tb_diag *diag);
tb_rc tc__prove_queue(struct tc_sealer *sealer, struct tb_diag *diag);
/* Open ones. TB_AGAIN: not all of them by then. */
tb_rc tc__prove_some(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag);
/* All generations of an open file that have no verdict. */
void tc__offer_pending(struct tc_sealer *sealer, const struct tc__file *file);

/* accounting.c: whenever counters came, and when a record was archived. */
void tc__count_in(struct tc_sealer *sealer, struct tc__stream *stream,
                  const struct tc_counters *counters);
void tc__cut_accounting(struct tc_sealer *sealer, struct tc__stream *stream);

/* recorded.c */
/* Before the first record comes again. */
tb_rc tc__learn_reported(struct tc_sealer *sealer, struct tc__stream *stream, struct tb_diag *diag);
/* Those of the meta that lie behind what is settled. */
tb_rc tc__reported_by(struct tc__stream *stream, const tc_meta *meta);
/* Unless that meta reports it already: it is noted among the losses. why: for the feed, which hears of a new one; NULL: it does not. */
tb_rc tc__note_loss(struct tc_sealer *sealer, const struct tc__stream *stream,
                    struct tc__losses *losses, const struct tc__loss *loss, const char *why);
/* So many batches of gen, from record first_seq on, are reported as lost: it was given up. 0: it was not. */
uint64_t tc__reported_of(const struct tc__stream *stream, uint64_t gen, uint64_t first_seq);
/* The record by which gen, open at record seq, was given up later, all of it reported as lost; 0: none. */
uint64_t tc__reported_end_of(const struct tc__stream *stream, uint64_t gen, uint64_t seq);
/* The next batch of abandoned_gen. */
bool tc__batch_was_reported(struct tc__stream *stream, const struct tc__item *item);
/* The meta without a segment that has the stream's losses, if there is one: note_day and note_gen. Asks once. */
tb_rc tc__find_note(struct tc_sealer *sealer, struct tc__stream *stream, struct tb_diag *diag);

/* publisher.c */
struct tc_reply *tc__stream_reply(const struct tc__stream *stream,
                                  enum tc_reply_kind kind); /* NULL: no memory */
void tc__report_lost(struct tc_sealer *sealer, const struct tc__stream *stream,
                     const struct tc__loss *loss, const char *why);
/* The file's i-th generation. */
void tc__offer(struct tc_sealer *sealer, const struct tc__file *file, size_t i, const char *path);
/* Reports stream->settled to the log. */
tb_rc tc__settle(struct tc_sealer *sealer, struct tc__stream *stream);
/* Room for one more report. */
tb_rc tc__reserve_settled(struct tc_sealer *sealer);
tb_rc tc__publish_queue(struct tc_sealer *sealer, struct tb_diag *diag);

/* expire.c */
enum { TC__EXPIRE_MAX = 32 };
enum { TC__SLICE_NS = 20000000 };
struct tc__expiry;
/* For each, in order; diag->rc: how it went. */
typedef void tc__expired_fn(void *self, const struct tc_segment_row *row,
                            const struct tb_diag *diag);
/* Begins with the first ones of rows, one at least: they are marked. The rows stay where they are until the end. NULL: no
 * memory. The catalog's mark is on the disk. */
struct tc__expiry *tc__expire(struct tc_sealer *sealer, const struct tc_segment_row *rows[],
                              size_t n);
/* False: not all fitted before then; a call at least was made if there was time at all. */
bool tc__expire_go_on(struct tc__expiry *expiry, uint64_t until_ns);
size_t tc__expire_end(struct tc__expiry *expiry, tc__expired_fn *done, void *self); /* how many */
void tc__expire_free(struct tc__expiry *expiry); /* half gone: the next start goes on */

/* meta.c */
/* Strings and bytes are borrowed from the stream and the file. */
tc_meta *tc__build_meta(struct tc_sealer *sealer, struct tc__file *file);
/* Of these of its generations only; the file's losses are with the first one. */
tc_meta *tc__build_meta_of(struct tc_sealer *sealer, struct tc__file *file, size_t from,
                           size_t upto);
void tc__free_meta(tc_meta *meta); /* of tc__build_meta() */
/* Reads a meta that is to be changed. *out_signer: signs it again; NULL where its signature is none of ours, as what is
 * not ours must not become ours by being changed. */
tb_rc tc__read_to_change(struct tc_sealer *sealer, int dir_fd, const char *name,
                         struct tb_diag *diag, tc_meta **out, const struct tc_keys **out_signer);
typedef tb_rc tc__meta_change_fn(void *self, tc_meta *meta); /* an error: it stays as it was */
/* Changes of names in the folder reach the disk. */
tb_rc tc__sync_name(const struct tc_sealer *sealer, int dir_fd, const char *name,
                    struct tb_diag *diag);
/* Changes a stream's meta, and puts it into the catalog, too. Its new name is on the disk then; with
 * out_dir_fd that is left to the caller, which gets the folder to sync and close (-1 after a failure), and
 * syncs it before the catalog is committed. */
tb_rc tc__amend(struct tc_sealer *sealer, const char *stream_hex, const char *day,
                uint64_t first_gen, tc__meta_change_fn *change, void *self, int *out_dir_fd,
                struct tb_diag *diag);

/* verdicts.c */
void tc__take_verdict(struct tc_sealer *sealer, struct tc__stream *stream,
                      struct tc_verdict *verdict);
void tc__take_late(struct tc_sealer *sealer, struct tc__file *file); /* it is published */
/* Verdicts of n generations from first_gen on are to come. NULL: no memory. */
struct tc__recent *tc__recent_add(struct tc__stream *stream, const char *day, uint64_t first_gen,
                                  size_t n);
void tc__recent_drop(struct tc__stream *stream, struct tc__recent *recent);
/* Writes those of so many metas at most, in the order in which the first of each came. */
tb_rc tc__apply_verdicts(struct tc_sealer *sealer, size_t most, struct tb_diag *diag);

/* retention.c */
struct tc__round;
/* Between two works: goes on with a round, or begins one that is due, for 20 ms. Afterwards sealer->round is not NULL
 * while there is more. */
void tc__retain(struct tc_sealer *sealer);
bool tc__retains(const struct tc_sealer *sealer); /* there is more to do */
/* A stop: what is half gone goes, and the catalog's mark with it. */
void tc__end_retention(struct tc_sealer *sealer);
void tc__round_free(struct tc__round *round);

/* missing.c: once a second, whatever is called more often. */
void tc__look_for_missing(struct tc_sealer *sealer);

/* quarantine.c: begin, after tc_retention_round(), looks whether there is anything to do; go_on works at it
 * until the monotonic clock says so. */
void tc__quarantine_begin(struct tc_sealer *sealer);
void tc__quarantine_go_on(struct tc_sealer *sealer, uint64_t until_ns);
void tc__quarantine_free(struct tc__quarantine *quarantine); /* what is under way */

#endif
