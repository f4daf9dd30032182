/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's page on the user's own loopback: requests of a browser are passed on with the user's certificate, answers as they come.
 *
 * It runs until SIGINT, SIGTERM or SIGHUP, or, if standard input is a pipe, until that ends: a remote shell has gone.
 *
 * Memory    bounded by the connections: a client that reads slowly holds its own answer back.
 * Errors    TB_IO: the port is taken, or the kernel refuses. TB_NOMEM. Those of certificates. Later ones reach the browser.
 */
#ifndef TK_PAGE_PAGE_H
#define TK_PAGE_PAGE_H

#include "tools/tracectl/remote/endpoint.h"

struct tk_page_config {
  const struct tk_endpoint *where;
  unsigned port; /* 0: a free one */
  bool may_act;
  void (*ready)(void *self, const char *link); /* the link, once it can be opened */
  void *self;
};

TB_MUST tb_rc tk_page_run(const struct tk_page_config *config, struct tb_diag *diag);

#endif
