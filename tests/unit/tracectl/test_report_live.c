/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a collector, as `tracectl report` asks for them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/archive_host.h"
#include "support/http_server.h"
#include "tools/tracectl/report/live.h"
#include "tools/tracectl/term/tracectl.h"

static struct tt_host host;
static struct tt_http *server;

static void open_host(void) {
  static char where[128];

  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  tt_host_open(&host, 1);
  server = tt_http_start("", NULL, host.query);
  snprintf(where, sizeof where, "unix:%s", server->path);
  setenv("TRACECTL_SERVER", where, 1);
  setenv("TRACECTL_CONFIG", "/dev/null", 1);
}

static void close_host(void) {
  tt_http_stop(server);
  tt_host_close(&host);
}

TestSuite(report_live, .init = open_host, .fini = close_host);

static void publish(unsigned id, const char *kind) {
  Tracecollect__V1__ReportSchema schema = TRACECOLLECT__V1__REPORT_SCHEMA__INIT;
  Tracecollect__V1__Report tables = TRACECOLLECT__V1__REPORT__INIT;
  Tracecollect__V1__StreamReport message = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  unsigned char stream[16], packed[200];
  char instance[16];

  memset(stream, (int)id, sizeof stream);
  snprintf(instance, sizeof instance, "host:%u", id);
  message.stream = (ProtobufCBinaryData){ sizeof stream, stream };
  message.instance = instance;
  message.kind = (char *)(uintptr_t)kind;
  tables.schema = &schema;
  message.report = &tables;
  const struct tc_report report = { .stream = stream,
                                    .service = "shop",
                                    .instance = instance,
                                    .kind = kind,
                                    .window = "10s",
                                    .bytes = packed,
                                    .len =
                                        tracecollect__v1__stream_report__pack(&message, packed) };
  cr_assert_eq(tc_reports_publish(host.reports, &report), TB_OK);
}

static void end_stream(unsigned id) {
  unsigned char stream[16];

  memset(stream, (int)id, sizeof stream);
  tc_reports_close(host.reports, stream);
}

Test(report_live, live_streams_come_first_and_ended_ones_say_so) {
  const struct tk_client_args args = { 0 };
  struct tk_report_ask ask = { .window = TO_WINDOW_10S };
  const struct tk_selector selector = { .service = "shop" };
  struct tk_client *client;
  struct tk_report_set set;
  struct tb_diag diag;
  char order[200] = "";

  for (unsigned id = 1; id <= 4; id++) publish(id, "stw"), publish(id, "sched");
  end_stream(1);
  end_stream(3);
  tb_diag_clear(&diag);
  cr_assert_eq(tk_client_open(&args, &diag, &client), TB_OK, "%s", diag.text);
  ask.kind[TO_ANALYSIS_STW] = ask.kind[TO_ANALYSIS_SCHED] = true;
  tk_report_set_init(&set);
  cr_assert_eq(tk_report_live(client, &ask, &selector, &set, &diag), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < set.n; i++)
    snprintf(order + strlen(order), sizeof order - strlen(order), "%s %s%s; ", set.report[i]->kind,
             set.report[i]->instance, set.report[i]->ended_wall_ns != 0 ? " ended" : "");
  cr_assert_str_eq(order, "stw host:2; stw host:4; sched host:2; sched host:4; "
                          "stw host:1 ended; stw host:3 ended; sched host:1 ended; "
                          "sched host:3 ended; ");
  tk_report_set_fini(&set);
  tk_client_close(client);
}
