/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl send FILE|-: sends a finished or growing trace to a collector, with the agent's own code. write()
 * waits for room, so nothing is dropped, however long the collector is away. Only a refusal or --timeout
 * ends that. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/api/forward.h"
#include "agent/host/clock.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/progress.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/input.h"
#include "wire/batch.h"

enum {
  CHUNK_BYTES = 64 << 10, /* written at a time, so that the bar moves */
  SYNC_STEP_MS = 100,
  GOODBYE_MS = 1000,
  LAST_OF_V1 = 21,   /* Go 1.21 wrote format v1, which collectors refuse */
  HEAD_BYTES = 4096, /* enough for tw_header_read() */
};

struct send_options {
  struct ta_forward_config config;
  const char *path, *crl;
  uint64_t timeout_ns, until_ns; /* until: monotonic; UINT64_MAX: no --timeout */
  bool json, no_progress, force;
};

/* Bytes read before the stream is opened. Copied, since a pipe's bytes are lent only until the next read. */
struct head {
  unsigned char bytes[HEAD_BYTES];
  size_t n;
  const unsigned char *rest; /* last read, after these bytes */
  size_t rest_n;
};

/* Reads megabytes a second, "2.5". */
static tb_rc read_rate(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  char *end;

  errno = 0;
  double rate = strtod(value, &end);
  if (end == value || *end != 0 || errno != 0 || !(rate * 1e6 >= 1) || rate > 1e6)
    return tk_option_needs(option, "a number of megabytes a second", value, diag);
  *(uint64_t *)field = (uint64_t)(rate * 1e6);
  return TB_OK;
}

#define AT(member) offsetof(struct send_options, member)
const struct tk_option tk_send_options[] = {
  TK_OPTION(0, "to", "HOST:PORT|@FILE", tk_read_text, AT(config.server),
            "the collector's port for agents, or its ready file"),
  TK_OPTION(0, "service", "S", tk_read_text, AT(config.service), "what the trace is a trace of"),
  TK_OPTION(0, "instance", "I", tk_read_text, AT(config.instance),
            "which instance of it; default: HOST:PID"),
  TK_OPTION(0, "certs", "DIR", tk_read_text, AT(config.certs),
            "ca.pem, agent.pem and agent.key, or ca.crt, tls.crt and tls.key; environment: "
            "TRACEAGENT_CERTS"),
  TK_OPTION(0, "tls-ca", "FILE", tk_read_text, AT(config.ca),
            "the authority, instead of DIR/ca.pem"),
  TK_OPTION(0, "tls-cert", "FILE", tk_read_text, AT(config.cert),
            "the certificate, instead of DIR/agent.pem"),
  TK_OPTION(0, "tls-key", "FILE", tk_read_text, AT(config.key),
            "its key, instead of DIR/agent.key"),
  TK_OPTION(0, "tls-crl", "FILE", tk_read_text, AT(crl),
            "revocation lists: a collector listed there is refused; environment: TRACEAGENT_CRL"),
  TK_OPTION(0, "rate", "MB/S", read_rate, AT(config.rate_bytes_s),
            "send no faster (2.5: two and a half megabytes a second)"),
  TK_OPTION(0, "timeout", "SPAN", tk_read_span, AT(timeout_ns),
            "give up after so long; without it the collector is waited for"),
  TK_OPTION(0, "force", NULL, tk_read_flag, AT(force), "send what does not begin as a trace, too"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one JSON object"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  { 0 },
};

static int parse(int argc, char **argv, struct send_options *out) {
  struct ta_forward_config *config = &out->config;

  *out = (struct send_options){ .timeout_ns = UINT64_MAX };
  config->size = sizeof *config;
  config->certs = getenv("TRACEAGENT_CERTS");
  if (config->certs == NULL) config->certs = getenv("TRACECTL_CERTS");
  int code = tk_options_read(argc, argv, tk_send_options, out);
  if (code != TK_DONE) return code;
  if (optind + 1 != argc) return tk_usage("send", "one FILE is required; - is standard input");
  out->path = argv[optind];
  out->until_ns = out->timeout_ns == UINT64_MAX ? UINT64_MAX : ta_mono_ns() + out->timeout_ns;
  if (config->server == NULL)
    return tk_usage("send", "--to HOST:PORT or --to @READYFILE is required");
  if (config->service == NULL) return tk_usage("send", "--service is required");
  if (config->certs == NULL && (config->ca == NULL || config->cert == NULL || config->key == NULL))
    return tk_usage("send", "--certs DIR is required: a folder with ca.pem, agent.pem, agent.key");
  if (out->crl != NULL && setenv("TRACEAGENT_CRL", out->crl, 1) != 0)
    return tk_fail("send", "%s", strerror(errno));
  return TK_DONE;
}

static struct ta_forward_status status_of(ta_forward *f) {
  struct ta_forward_status status = { .size = sizeof status };

  ta_forward_status(f, &status);
  return status;
}

static bool out_of_time(const struct send_options *options) {
  return ta_mono_ns() >= options->until_ns;
}

struct sender {
  ta_forward *f;
  struct tk_input *in;
  const struct send_options *options;
  struct tk_progress bar;
  uint64_t taken;
  char trouble[sizeof((struct ta_forward_status){ 0 }).last_error]; /* last reported error */
};

/* Reports each new reason once: otherwise a wrong address would look like a slow collector. */
static void say_trouble(struct sender *s) {
  if (s->f == NULL) return;
  struct ta_forward_status status = status_of(s->f);

  if (status.state == TA_STATE_STREAMING || status.last_error[0] == 0) return;
  if (strcmp(status.last_error, s->trouble) == 0) return;
  memcpy(s->trouble, status.last_error, sizeof s->trouble);
  tk_fail("send", "%s: %s; trying again", s->options->path, s->trouble);
}

static bool is_over_time(void *self) {
  struct sender *s = self;

  say_trouble(s);
  return out_of_time(s->options);
}

/* Reports why the stream did not arrive, and drops the spool. */
static int give_up(ta_forward *f, int error, const struct send_options *options) {
  struct ta_forward_status status = status_of(f);
  const char *why = status.last_error[0] != 0 ? status.last_error : "the collector is slow";

  ta_forward_close(f, 0);
  if (error == TA_E_REFUSED || error == TA_E_OFF)
    return tk_fail("send", "%s: %s", options->path, why);
  return tk_fail("send",
                 "%s: not all was acked before --timeout: %" PRIu64 " of %" PRIu64 " bytes; %s",
                 options->path, status.acked_bytes, status.produced_bytes, why);
}

static void print_result(const struct send_options *options, const struct ta_forward_status *s) {
  printf(options->json ? "{\"stream\":\"%s\",\"batches\":%" PRIu64 ",\"bytes\":%" PRIu64
                         ",\"generations\":%" PRIu64 ",\"reconnects\":%" PRIu64 "}\n"
                       : "stream %s: %" PRIu64 " batches, %" PRIu64 " bytes, %" PRIu64
                         " generations acked, %" PRIu64 " reconnects\n",
         s->stream, s->acked_batches, s->acked_bytes, s->acked_generations, s->reconnects);
}

/* Appends the next read. Returns what tk_input_next() returns. */
static int head_more(struct head *head, struct tk_input *in) {
  int got = tk_input_next(in, &head->rest, &head->rest_n);

  if (got <= 0) return got;
  size_t here = HEAD_BYTES - head->n < head->rest_n ? HEAD_BYTES - head->n : head->rest_n;
  memcpy(head->bytes + head->n, head->rest, here);
  head->n += here;
  head->rest += here;
  head->rest_n -= here;
  return got;
}

/* Versions unknown to this program are sent: the collector archives them unchanged. */
static tb_rc check_header(const struct head *head, struct tb_diag *diag) {
  unsigned version = 0;
  size_t used;

  tb_rc rc = tw_header_read(head->bytes, head->n, diag, &version, &used);
  return rc == TB_UNSUPPORTED && version > LAST_OF_V1 ? TB_OK : rc;
}

/* Reads until it is clear whether this is a trace. Returns an exit code; nothing has been sent yet. */
static int read_head(struct head *head, struct tk_input *in, const struct send_options *options) {
  struct tb_diag diag;
  tb_rc rc;
  int got;

  *head = (struct head){ 0 };
  tb_diag_clear(&diag);
  do {
    if ((got = head_more(head, in)) < 0) return TK_FAILED;
    rc = options->force ? TB_OK : check_header(head, &diag);
  } while (rc == TB_AGAIN && got > 0);
  if (rc == TB_OK) return TK_DONE;
  if (rc == TB_AGAIN)
    (void)tb_fail(&diag, TB_BROKEN, "not a Go execution trace: %s",
                  head->n == 0 ? "it is empty" : "it ends within its header");
  return tk_fail("send", "%s: %s; nothing was sent (--force sends it as it is)", options->path,
                 diag.text);
}

static int forward_some(struct sender *s, const unsigned char *bytes, size_t n) {
  int error = TA_OK;

  for (size_t at = 0, here; error == TA_OK && at < n; at += here) {
    here = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
    error = out_of_time(s->options) ? TA_E_TIMEOUT : ta_forward_write(s->f, bytes + at, here);
    s->taken += here;
    tk_progress_at(&s->bar, tk_input_stays(s->in) ? s->taken : tk_input_position(s->in));
  }
  return error;
}

/* Writes the whole input; write() waits while the spool is full. */
static int forward_all(struct sender *s, const struct head *head) {
  const unsigned char *bytes;
  int got = 1;
  size_t n;

  tk_progress_begin(&s->bar, s->options->path, tk_input_size(s->in), !s->options->no_progress);
  int error = forward_some(s, head->bytes, head->n);
  if (error == TA_OK) error = forward_some(s, head->rest, head->rest_n);
  while (error == TA_OK && (got = tk_input_next(s->in, &bytes, &n)) > 0) {
    error = forward_some(s, bytes, n);
    tk_input_release(s->in, s->taken);
  }
  tk_progress_end(&s->bar);
  return error != TA_OK ? error : got < 0 ? TA_E_CLOSED : TA_OK;
}

static int send_input(struct tk_input *in, const struct head *head, struct send_options *options) {
  struct sender sender = { .in = in, .options = options };
  ta_forward *f;

  int error = ta_forward_open_patient(&options->config, is_over_time, &sender, &f);
  if (error == TA_E_CONFIG) return tk_usage("send", "%s", ta_strerror(error));
  if (error != TA_OK) return tk_fail("send", "%s", ta_strerror(error));
  sender.f = f;
  error = forward_all(&sender, head);
  if (error == TA_E_CLOSED) { /* the input failed: send what was read */
    ta_forward_close(f, GOODBYE_MS);
    return TK_FAILED;
  }
  if (error == TA_OK) ta_forward_finish(f);
  while (error == TA_OK && (error = ta_forward_sync(f, SYNC_STEP_MS)) == TA_E_TIMEOUT)
    if (!is_over_time(&sender)) error = TA_OK;
  if (error != TA_OK) return give_up(f, error, options);
  struct ta_forward_status status = status_of(f);
  ta_forward_close(f, GOODBYE_MS);
  print_result(options, &status);
  return TK_DONE;
}

int tk_cmd_send(int argc, char **argv) {
  struct send_options options;
  struct tk_input *in;
  struct head head;

  int code = parse(argc, argv, &options);
  if (code != TK_DONE) return code;
  if (!tk_input_open("send", options.path, &in)) return TK_FAILED;
  code = read_head(&head, in, &options);
  if (code == TK_DONE) code = send_input(in, &head, &options);
  tk_input_close(in);
  return code;
}
