/* SPDX-License-Identifier: Apache-2.0 */
/* Calls beyond traceagent.h, for tracectl, the preload library, agent/emit and tests. */
#ifndef TA_API_FORWARD_H
#define TA_API_FORWARD_H

#include <stdbool.h>

#include "traceagent.h"

/* ta_forward_open() for a tool: write() waits for room instead of dropping data, a refused certificate
 * ends the stream, and TRACEAGENT_* is ignored. While write() waits it calls impatient() every 100 ms;
 * if that returns true, the stream is over and write() returns TA_E_TIMEOUT. */
int ta_forward_open_patient(const struct ta_forward_config *config, bool (*impatient)(void *self),
                            void *self, ta_forward **out);

/* ta_forward_open() for the preload library, at most one per process: written data waits in the spool, no thread is
 * started, OpenSSL is not used, and the certificate files are read but not parsed. Call run() to do the rest; it
 * connects no earlier than first_try_ns of the monotonic clock. Or call abandon(), which frees f and sends nothing: a
 * spool on disk is left for the next program, unless the folder has many streams already. */
int ta_forward_open_late(const struct ta_forward_config *config, ta_forward **out);
int ta_forward_run(ta_forward *f, uint64_t first_try_ns);
void ta_forward_abandon(ta_forward *f);
bool ta_forward_keeps(ta_forward *f); /* has a spool on disk */

/* Ends every wait for acks. */
void ta_forward_over(ta_forward *f);
/* ta_forward_close() in two steps. end() stops waiting when acks have become unlikely (agent/spool/spool.h); with
 * patience_ns UINT64_MAX it waits until until_ns. Pass end()'s result to free(), which returns it or a better one. */
int ta_forward_end(ta_forward *f, uint64_t until_ns, uint64_t patience_ns);
int ta_forward_free(ta_forward *f, int error);

/* Copies the caller's config; fields that its version lacks are zero. */
struct ta_forward_config ta_forward_config_of(const struct ta_forward_config *config);

/* For agent/emit, which makes batches itself and calls these on the writer's thread instead of ta_forward_write(): the
 * trace's header once, then batches and end marks by generation. The spool counts data for which it has no room. */
void ta_forward_put_header(ta_forward *f, const void *bytes, size_t n);
void ta_forward_put_batch(ta_forward *f, uint64_t gen, const void *bytes, size_t n);
/* Drops all batches of generation gen (the one being written, or the next) until gen ends. reason: LossReason. */
void ta_forward_lose_generation(ta_forward *f, uint64_t gen, int reason);
void ta_forward_end_generation(ta_forward *f); /* the generation is complete */
/* Sets a function that asks the writer to end the generation soon; snaps call it on any thread. Before the first byte. */
void ta_forward_cut_by(ta_forward *f, void (*cut)(void));
bool ta_forward_records(ta_forward *f);
void ta_forward_take_snap(ta_forward *f); /* starts sending a requested snap */
/* Passes a line to the host's log callback, if there is one. */
void ta_forward_log(ta_forward *f, int level, const char *text);
/* Returns error and sets the text that ta_strerror() returns for it on this thread. */
int ta_forward_fault(int error, const char *text);

#endif
