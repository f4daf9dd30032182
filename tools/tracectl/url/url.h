/* SPDX-License-Identifier: Apache-2.0 */
/* Traces over HTTP. A FILE with "://" is a URL; one without a path means /debug/pprof/trace of a Go program.
 *
 * A thread writes the bytes to a file without a name as fast as they come: a program that is traced never waits for the verb. The
 * file stays until the process ends, so a URL that is opened twice is requested once. The process has one set of options.
 *
 * Memory    a tk_url lives until the process ends.
 * Threads   one at a time.
 * Errors    reported on stderr as "tracectl VERB: URL: reason", without a password.
 */
#ifndef TK_URL_URL_H
#define TK_URL_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/tracectl/args/options.h"

struct tk_url;

/* Rows for a verb's table: --seconds, --header, --wait, --keep. They have no field: url.c stores their values. */
extern const struct tk_option tk_url_options[];
/* --tls-ca, --tls-cert and --tls-key, for a verb that does not have them for a collector. */
extern const struct tk_option tk_url_tls_options[];
void tk_url_use_tls(const char *ca, const char *cert, const char *key); /* lent; NULL or "": none */

bool tk_url_is(const char *path);
const char *tk_url_kept(void); /* the file of --keep; NULL: not given */
struct tk_url *tk_url_open(const char *verb,
                           const char *text);       /* returns after the first byte; NULL: failed */
const char *tk_url_shown(const struct tk_url *url); /* without a password */
int tk_url_fd(const struct tk_url *url);            /* its file; lent */
bool tk_url_is_complete(struct tk_url *url);
/* Waits until there are more than upto bytes, or it is complete. Returns how many there are. */
uint64_t tk_url_wait(struct tk_url *url, uint64_t upto);
/* The reason why it ended too early; NULL: it did not. Call after it is complete. */
const char *tk_url_cut(const struct tk_url *url);

#endif
