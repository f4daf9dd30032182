/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl page: the collector's page in the user's browser, through the user's certificate. */
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/page/page.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/tracectl.h"

enum { PORT_MAX = 65535 };

struct page_args {
  struct tk_client_args client;
  unsigned port;
  bool may_act;
};

static void print_link(void *self, const char *link) {
  const struct tk_endpoint *where = self;

  puts(link);
  fflush(stdout);
  tk_note("page", "%s, for one browser of this host; ends with Ctrl-C", where->shown);
}

/* A wrong address or certificate is said here and not in the browser. */
static tb_rc find_collector(const struct tk_client_args *args, struct tb_diag *diag,
                            struct tk_endpoint *out) {
  const Tracecollect__V1__StatusReply *unused;
  struct tk_client *client;

  TB_TRY(tk_client_open(args, diag, &client));
  tb_rc rc = tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, diag, &unused);
  *out = *tk_client_where(client);
  tk_client_close(client);
  return rc;
}

static tb_rc read_port(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  TB_TRY(tk_read_number(option, value, field, diag));
  return *(unsigned *)field <= PORT_MAX
             ? TB_OK
             : tk_option_needs(option, "a port, 0 to 65535", value, diag);
}

#define AT(member) offsetof(struct page_args, member)
const struct tk_option tk_page_options[] = {
  TK_OPTION(0, "port", "N", read_port, AT(port),
            "of 127.0.0.1; default: a free one. Over ssh: ssh -L N:127.0.0.1:N HOST tracectl page "
            "--port N"),
  TK_OPTION(0, "act", NULL, tk_read_flag, AT(may_act),
            "pass on what changes something, too (rules, snaps, muted findings), with your rights"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

int tk_cmd_page(int argc, char **argv) {
  struct page_args args = { 0 };
  struct tk_endpoint where;
  struct tb_diag diag;

  int code = tk_options_read_all(argc, argv, tk_page_options, &args);
  if (code != TK_DONE) return code;
  tb_diag_clear(&diag);
  tb_rc rc = find_collector(&args.client, &diag, &where);
  if (rc != TB_OK) return tk_remote_fail("page", rc, &diag);
  const struct tk_page_config config = {
    .where = &where, .port = args.port, .may_act = args.may_act, .ready = print_link, .self = &where
  };
  rc = tk_page_run(&config, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("page", rc, &diag);
}
