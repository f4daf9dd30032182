/* SPDX-License-Identifier: Apache-2.0 */
/* A list of nng URLs as text, as listen.feed takes it: "ipc://, tls+tcp://0.0.0.0:7071". Commas and
 * blanks end a URL only where another scheme follows, so that a path may hold either.
 */
#ifndef TC_CONFIG_URL_LIST_H
#define TC_CONFIG_URL_LIST_H

#include "base/result.h"

enum { TC_URLS_MAX = 8, TC_URL_BYTES = 320 };

/* Takes the first URL off a list; false: there is none. Text without a scheme is taken as it is; a URL
 * that is too long comes as "". */
bool tc_urls_next(const char **list, char out[TC_URL_BYTES]);

bool tc_url_is_ipc(const char *url);
bool tc_url_is_tls(const char *url);
bool tc_url_takes_any_port(const char *url); /* port 0: the system chooses */

#endif
