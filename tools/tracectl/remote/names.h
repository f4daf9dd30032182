/* SPDX-License-Identifier: Apache-2.0 */
/* Names of streams: whether a collector knows them, and ids in a few digits.
 *
 * Errors    the client's; TB_NOTFOUND: unknown, diag has the known ones or the nearest.
 */
#ifndef TK_REMOTE_NAMES_H
#define TK_REMOTE_NAMES_H

#include "tools/tracectl/remote/client.h"

enum { TK_STREAM_TEXT = 33 };

/* Returns how many digits tell these streams apart, at least 8. */
unsigned tk_stream_digits(Tracecollect__V1__StreamStatus *const *streams, size_t n);
/* Writes the first digits of an id; returns out. */
const char *tk_stream_text(const ProtobufCBinaryData *id, unsigned digits,
                           char out[TK_STREAM_TEXT]);

/* Completes the selector's stream if its first digits were given. TB_BROKEN: several streams begin so. */
TB_MUST tb_rc tk_remote_find_stream(const struct tk_client_args *args, struct tk_selector *selector,
                                    struct tb_diag *diag);
/* The same, with a client that stays open. */
TB_MUST tb_rc tk_remote_open(const struct tk_client_args *args, struct tk_selector *selector,
                             struct tb_diag *diag, struct tk_client **out);

/* Checks that there are streams of the selected service and instance. */
TB_MUST tb_rc tk_remote_check_names(struct tk_client *client, const struct tk_selector *selector,
                                    struct tb_diag *diag);
/* Explains why nothing matched: "no service \"chekout\"; did you mean \"checkout\"?". Returns `otherwise` if there are such
 * streams, or if the collector does not answer. Lent until the next call. */
const char *tk_remote_no_match(struct tk_client *client, const struct tk_selector *selector,
                               const char *otherwise);

#endif
