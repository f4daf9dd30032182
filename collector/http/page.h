/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page (collector/http/page), embedded in the daemon. The policy allows no other sources and no inline
 * scripts or styles. */
#ifndef TC_HTTP_PAGE_H
#define TC_HTTP_PAGE_H

#include <stddef.h>

#define TC_PAGE_POLICY                                                                             \
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                  \
  "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct tc_page_file {
  const char *name, *type;
  const char *tag; /* ETag, quotes included */
  const unsigned char *bytes;
  size_t len;
};

/* Finds a file by the URL's path; "/" is the page. NULL: no such file. */
const struct tc_page_file *tc_page_find(const char *path);

#endif
