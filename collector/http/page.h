/* SPDX-License-Identifier: Apache-2.0 */
/* The page and what it is made of, inside the daemon's own file (collector/http/page).
 *
 * Nothing comes from anywhere else, and the policy sees to it: scripts and styles are ours alone, as
 * files; none stands in the page itself.
 */
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

/* By the URL's path: "/" is the page. NULL: there is none. */
const struct tc_page_file *tc_page_find(const char *path);

#endif
