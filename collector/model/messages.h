/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the loops and the store: requests and replies.
 *
 * Memory    a message is one allocation, a record with its payload another.
 * Threads   a message belongs to one thread at a time.
 */
#ifndef TC_MODEL_MESSAGES_H
#define TC_MODEL_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/magic.h"
#include "collector/base/logger.h"
#include "proto/frame.h"
#include "proto/names.h"

struct tc_quota;

enum { TC_RECORD_MAGIC = 0x4ec04d01, TC_SUBMIT_MAGIC = 0x50b31702, TC_REPLY_MAGIC = 0x4e917903 };

/* A record of a stream, allocated by a loop together with its payload. */
struct tc_record {
  struct tc_record *next;                 /* for the owner's use */
  void (*free)(struct tc_record *record); /* any thread */
  uint64_t conn;                          /* connection that sent it */
  uint64_t seq, gen;
  uint32_t stream; /* stream ref from TC_REPLY_ATTACHED */
  uint32_t len;
  struct tc_quota *quota; /* for free(): the memory counts here; NULL: nowhere */
  uint32_t magic;         /* TC_RECORD_MAGIC */
  uint32_t crc;           /* CRC32C of the payload, computed once when its frame was checked */
  uint8_t kind;           /* enum tp_kind */
  bool is_job;            /* counted as a job of its quota until it is freed */
  unsigned char payload[];
};

enum tc_submit_kind {
  TC_SUBMIT_ATTACH = 1, /* a connection asks to write a stream */
  TC_SUBMIT_RECORD,
  TC_SUBMIT_DETACH,  /* the connection is closed */
  TC_SUBMIT_VERDICT, /* from analysis: the result of ordering a generation */
  /* Answered after every whole generation submitted before (with a full disk: acked before) is in the archive and the
   * catalog. */
  TC_SUBMIT_BARRIER,
  TC_SUBMIT_HEARTBEAT, /* counters of an agent, for status and accounting */
};

struct tc_attach {
  unsigned char stream[TC_STREAM_BYTES];
  char identity[TC_IDENTITY_MAX]; /* SAN URI */
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  char peer[64]; /* address, for status */
  unsigned loop; /* receives the replies about this connection */
};

struct tc_verdict {
  uint32_t stream;
  uint64_t gen;
  uint32_t code; /* enum VerdictCode of meta.proto */
  uint64_t events;
  int64_t first_ns, last_ns;
  int64_t thread;  /* TB_NO_THREAD */
  uint64_t offset; /* in the generation's own .trace if single, otherwise from the file's start */
  char reason[200];
};

struct tc_counters {
  uint32_t stream;
  uint64_t produced_batches, produced_bytes, spool_bytes, spool_batches;
  uint64_t lost_batches, lost_bytes, lost_generations;
  uint64_t reported_seq, reported_batches, reported_bytes; /* see message Counters */
  uint32_t last_loss;
};

struct tc_submit {
  enum tc_submit_kind kind;
  unsigned loop;
  uint64_t conn;
  uint32_t magic; /* TC_SUBMIT_MAGIC */
  union {
    struct tc_attach attach;
    struct tc_record *record;
    struct tc_verdict verdict;
    struct tc_counters counters;
    uint64_t barrier; /* cookie */
  };
};

enum tc_reply_kind {
  TC_REPLY_ATTACHED = 1, /* seq = durable_seq; records may be sent */
  TC_REPLY_REFUSED,      /* code = RefuseCode, text */
  TC_REPLY_SUPERSEDED,   /* another connection took the stream over; end this one */
  TC_REPLY_ACKED,        /* all records of the stream up to seq are durable */
  TC_REPLY_RELEASED,     /* released: bytes of freed records (payload + TP_HEADER_BYTES): credit */
  TC_REPLY_STORED,       /* a generation is complete in a file: ready for analysis */
  TC_REPLY_ARCHIVED,     /* a segment was published; sent before the STORED with stream_closed */
  TC_REPLY_LOST,         /* generations that are lost */
  TC_REPLY_FAILED,       /* text: the log or the archive cannot be written; no further acks */
  TC_REPLY_BARRIER,      /* barrier: cookie */
};

/* Only the fields of the reply's kind are allocated (32 bytes for an ack): do not copy a reply as a struct. */
struct tc_reply {
  enum tc_reply_kind kind;
  unsigned loop; /* the receiver; STORED, ARCHIVED, LOST: the stream's home loop */
  uint64_t conn; /* 0 for STORED, ARCHIVED, LOST, FAILED, BARRIER */
  uint32_t stream;
  uint32_t magic; /* TC_REPLY_MAGIC */
  union {
    uint64_t seq;      /* ATTACHED, ACKED */
    uint64_t released; /* RELEASED: bytes */
    uint64_t barrier;  /* BARRIER: cookie */
    struct {           /* REFUSED, FAILED */
      uint32_t code;
      char text[200];
    };
    struct { /* STORED: one generation; ARCHIVED, LOST: gen to last_gen */
      uint64_t gen, last_gen;
      uint64_t bytes, batches; /* ARCHIVED: bytes; LOST: both */
      /* Time of tracing (lib/archive/generation_time.h); 0: unknown. */
      uint64_t first_wall_ns, end_wall_ns;
      char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
      unsigned char stream_id[TC_STREAM_BYTES];
      /* LOST: LossReason; why the collector gave the generation up, or empty. */
      uint32_t loss_code;
      char loss_text[200];
      /* STORED: */
      bool new_run;       /* after a hole, or the stream's first: begin a new ordering epoch */
      bool stream_closed; /* the stream has ended after this generation (gen 0: no generation) */
      char path[192];     /* the file, below the state folder; open it with tc_store_open_file() */
      char final_path[192]; /* the file's name after it is published */
      uint64_t offset, len; /* of the generation; the trace header is at offset 0 */
    };
  };
};

enum tc_from { TC_FROM_COMMIT, TC_FROM_SEGMENT };

struct tc_store_sink {
  void *self;
  /* Takes ownership of reply and frees it with tc_reply_free(). Returns false if the receiver's queue is full: the store keeps
   * the reply and tries again. */
  bool (*reply)(void *self, enum tc_from from, struct tc_reply *reply);
  /* Receives a line for the log, on any store thread. May be NULL. */
  void (*note)(void *self, const struct tc_note *note);
};

/* Sends a line for the log to the sink. Each call is a site of its own. ref: the stream that the line is about, or 0. */
#define tc_store_note(sink, level, ref, ...)                                                       \
  do {                                                                                             \
    static struct tc_log_site site_;                                                               \
    tc_store_note_at((sink), &site_, (level), (ref), __VA_ARGS__);                                 \
  } while (0)
void tc_store_note_at(const struct tc_store_sink *sink, struct tc_log_site *site,
                      enum tc_level level, uint32_t ref, const char *fmt, ...) TB_PRINTF(5, 6);

/* Returns NULL if memory cannot be allocated. */
struct tc_submit *tc_submit_new(enum tc_submit_kind kind);
void tc_submit_free(struct tc_submit *msg); /* frees its record, too */
/* Zeroes the fields of the kind. Returns NULL if memory cannot be allocated. */
struct tc_reply *tc_reply_new(enum tc_reply_kind kind, uint64_t conn, uint32_t stream,
                              unsigned loop);
size_t tc_reply_bytes(enum tc_reply_kind kind); /* as allocated */
void tc_reply_free(struct tc_reply *reply);

#endif
