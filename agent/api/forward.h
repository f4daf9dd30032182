/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that tracectl and the tests have beyond traceagent.h. */
#ifndef TA_API_FORWARD_H
#define TA_API_FORWARD_H

#include <stdbool.h>

#include "traceagent.h"

/* ta_forward_open() for a tool: write() waits for room instead of dropping, a refused certificate
 * ends the stream, and TRACEAGENT_* is not looked at. impatient() is asked every 100 ms of waiting;
 * once it says yes the stream is over and write() answers TA_E_TIMEOUT. */
int ta_forward_open_patient(const struct ta_forward_config *config, bool (*impatient)(void *self),
                            void *self, ta_forward **out);

/* ta_forward_open() for the preload library, of which a process has one at a time: what is written waits in the
 * spool; no thread is made, OpenSSL is not touched, and the certificates' files are read and kept, but not looked
 * into. Then either run(), as open() would have done; no connection is tried before first_try_ns of the monotonic
 * clock. Or abandon(), which frees f and sends nothing: with a spool on disk the stream is left there, for the next
 * program, unless many are there already. */
int ta_forward_open_late(const struct ta_forward_config *config, ta_forward **out);
int ta_forward_run(ta_forward *f, uint64_t first_try_ns);
void ta_forward_abandon(ta_forward *f);
bool ta_forward_keeps(ta_forward *f); /* there is a spool on disk */

/* Ends every wait for acks. */
void ta_forward_over(ta_forward *f);
/* ta_forward_close() in two steps. end() waits no longer than there is hope (agent/spool/spool.h); patience_ns
 * UINT64_MAX: until until_ns. free() is handed end()'s answer, and answers it, or a better one. */
int ta_forward_end(ta_forward *f, uint64_t until_ns, uint64_t patience_ns);
int ta_forward_free(ta_forward *f, int error);

/* The caller's config with zeroes for what its version does not have. */
struct ta_forward_config ta_forward_config_of(const struct ta_forward_config *config);

/* For agent/emit, which makes batches itself, on the writer's thread, instead of ta_forward_write(): the trace's header
 * once, then batches and end marks by generation. Data that the spool cannot take is counted there. */
void ta_forward_put_header(ta_forward *f, const void *bytes, size_t n);
void ta_forward_put_batch(ta_forward *f, uint64_t gen, const void *bytes, size_t n);
/* Generation gen, the one being written or the next, is lost: what was put of it, and what still comes until it
 * ends. */
void ta_forward_lose_generation(ta_forward *f, uint64_t gen, int reason); /* LossReason */
void ta_forward_end_generation(ta_forward *f);                            /* it is complete */
/* The writer can end a generation soon: for snaps, from any thread. Before the first byte. */
void ta_forward_cut_by(ta_forward *f, void (*cut)(void));
bool ta_forward_records(ta_forward *f);
void ta_forward_take_snap(ta_forward *f); /* a requested one goes out from here on */
/* A line for the host's log callback, if it has one. */
void ta_forward_log(ta_forward *f, int level, const char *text);
/* error; ta_strerror() says text for it on this thread. */
int ta_forward_fault(int error, const char *text);

#endif
