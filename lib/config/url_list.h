/* SPDX-License-Identifier: Apache-2.0 */
/* A list of nng URLs (listen.feed): "ipc://, tls+tcp://0.0.0.0:7071". Commas and blanks end a URL only if another scheme
 * follows, so that a path may contain both. */
#ifndef TC_CONFIG_URL_LIST_H
#define TC_CONFIG_URL_LIST_H

#include "base/result.h"

enum { TC_URLS_MAX = 8, TC_URL_BYTES = 320 };

/* Removes the first URL from the list, whether or not it has a scheme; out is "" if it is too long. Returns false at the
 * end of the list. */
bool tc_urls_next(const char **list, char out[TC_URL_BYTES]);

bool tc_url_is_ipc(const char *url);
bool tc_url_is_tls(const char *url);
bool tc_url_takes_any_port(const char *url); /* port 0: the system chooses */

#endif
