/* SPDX-License-Identifier: Apache-2.0 */
/* Names the streams of a service's sum. */
#ifndef TK_REMOTE_STREAMS_H
#define TK_REMOTE_STREAMS_H

#include "proto/report.pb-c.h"
#include "tools/tracectl/remote/client.h"

/* Prints on stdout which streams the sum is of, which it is not, and how to see one. Prints nothing if the selector has one stream, or
 * if the collector does not answer. */
void tk_streams_print(struct tk_client *client, const struct tk_selector *selector,
                      const Tracecollect__V1__StreamReport *sum);

#endif
