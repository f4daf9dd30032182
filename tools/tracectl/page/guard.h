/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which requests are the user's own: everything that is passed on has the user's rights at the collector.
 *
 * Any user of this host, and any web page in the user's browser, can reach a port of loopback. The link that is printed has a token that
 * is good once; its answer sets a cookie, which everything else needs. A page of another site, with DNS rebinding or without, does not
 * have the cookie (SameSite=Strict) and names itself in Host, Origin or Sec-Fetch-Site.
 *
 * Errors    TB_IO: the kernel has no random bytes.
 */
#ifndef TK_PAGE_GUARD_H
#define TK_PAGE_GUARD_H

#include "collector/http/request/request.h"

enum { TK_SECRET_DIGITS = 64 };

struct tk_guard {
  char host[32]; /* "127.0.0.1:PORT", the only accepted Host */
  char cookie
      [40]; /* its name has the port: a browser sends the cookies of one port to all of a host */
  char token[TK_SECRET_DIGITS + 1]; /* "": was used */
  char secret[TK_SECRET_DIGITS + 1];
  bool may_act; /* requests that change something are passed on */
};

TB_MUST tb_rc tk_guard_init(struct tk_guard *guard, unsigned port, bool may_act);

enum tk_verdict {
  TK_PASS,    /* ask the collector */
  TK_WELCOME, /* the link: set the cookie, go to the page */
  TK_REFUSE,
};

struct tk_ruling {
  enum tk_verdict verdict;
  int status; /* REFUSE: of the answer, and why */
  const char *why;
};

/* cookies: the field Cookie, or "". A link that is accepted has been used. */
struct tk_ruling tk_guard_rule(struct tk_guard *guard, const struct tc_http_request *request,
                               const char *cookies);

#endif
