/* SPDX-License-Identifier: Apache-2.0 */
/* Names the streams of a service's sums. */
#ifndef TK_REPORT_STREAMS_H
#define TK_REPORT_STREAMS_H

#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/report/set.h"

/* Prints on stdout which streams the sums are of, which they are not, and how to see one. Prints nothing if the selector has one
 * stream, or if the collector does not answer. */
void tk_report_streams_print(struct tk_client *client, const struct tk_selector *selector,
                             const struct tk_report_set *set);

#endif
