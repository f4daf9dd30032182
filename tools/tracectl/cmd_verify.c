/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl verify ARCHIVE: checks a folder here; without ARCHIVE the running collector checks its
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/progress.h"
#include "tools/tracectl/term/tracectl.h"

enum {
  WAIT_MS = 1000, /* interval of polling a collector's job */
  JOB_ID_BYTES = 32,
};

struct run {
  struct tk_client_args client;
  bool json, rebuild, no_progress;
  const char *public_key; /* NULL: signatures do not count */
  struct tk_progress bar;
};

static void say_problem(void *self, const char *text) {
  struct run *run = self;

  tk_progress_end(&run->bar);
  if (!run->json) {
    tk_put_plain(stdout, text);
    putchar('\n');
    return;
  }
  json_t *line = json_pack("{s:s}", "problem", text);
  if (line == NULL) return;
  json_dumpf(line, stdout, JSON_COMPACT);
  putchar('\n');
  json_decref(line);
}

static void say_progress(void *self, uint64_t done, uint64_t total) {
  struct run *run = self;

  run->bar.total = total;
  tk_progress_at(&run->bar, done);
}

static void say_accounting_json(const char *prefix, const struct tc_audited_accounting *accounting,
                                bool living) {
  const struct {
    const char *name;
    const struct tc_sum *sum;
  } parts[] = { { "produced", &accounting->produced }, { "archived", &accounting->archived },
                { "taken", &accounting->taken },       { "lost", &accounting->lost },
                { "open", &accounting->open },         { "spooled", &accounting->spooled } };

  for (size_t i = 0; i < (living ? 6 : 4); i++)
    printf(",\"%s%s_batches\":%" PRIu64 ",\"%s%s_bytes\":%" PRIu64, prefix, parts[i].name,
           parts[i].sum->batches, prefix, parts[i].name, parts[i].sum->bytes);
}

static void say_totals(const struct run *run, const struct tc_audited *seen) {
  const struct tc_audited_accounting *closed = &seen->closed, *live = &seen->live;

  if (run->json) {
    printf("{\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"expired\":%" PRIu64
           ",\"fresh\":%" PRIu64 ",\"open_runs\":%" PRIu64 ",\"open_generations\":%" PRIu64
           ",\"problems\":%" PRIu64 ",\"closed_streams\":%" PRIu64,
           seen->segments, seen->bytes, seen->expired, seen->fresh, seen->open_runs,
           seen->open_generations, seen->problems, closed->streams);
    if (run->public_key != NULL) printf(",\"signed_metas\":%" PRIu64, seen->signed_metas);
    say_accounting_json("", closed, false);
    printf(",\"live_streams\":%" PRIu64 ",\"live_counted\":%" PRIu64, seen->live_streams,
           live->streams);
    say_accounting_json("live_", live, true);
    puts("}");
    return;
  }
  printf("%s: %" PRIu64 " segments, %" PRIu64 " bytes, %" PRIu64 " expired, %" PRIu64 " problems\n",
         seen->problems == 0 ? "ok" : "broken", seen->segments, seen->bytes, seen->expired,
         seen->problems);
  if (run->public_key != NULL)
    printf("signatures: %" PRIu64 " metas are signed by a key of %s\n", seen->signed_metas,
           run->public_key);
  if (seen->open_runs > 0)
    printf("files that are still written: %" PRIu64 ", with %" PRIu64 " whole generations\n",
           seen->open_runs, seen->open_generations);
  if (closed->streams > 0)
    printf("closed streams: %" PRIu64 ", produced %" PRIu64 " batches = %" PRIu64
           " archived + %" PRIu64 " expired + %" PRIu64 " lost\n",
           closed->streams, closed->produced.batches, closed->archived.batches,
           closed->taken.batches, closed->lost.batches);
  if (seen->live_streams > 0)
    printf("live streams: %" PRIu64 " of %" PRIu64 " counted, produced %" PRIu64
           " batches = %" PRIu64 " archived + %" PRIu64 " expired + %" PRIu64 " lost + %" PRIu64
           " open + %" PRIu64 " in agents\n",
           live->streams, seen->live_streams, live->produced.batches, live->archived.batches,
           live->taken.batches, live->lost.batches, live->open.batches, live->spooled.batches);
  if (seen->fresh > 0)
    fprintf(stderr,
            "tracectl verify: %" PRIu64
            " segments were just being published and are left for the next time\n",
            seen->fresh);
}

/* Opens the state folder, or its archive/. */
static int open_state(const char *path, bool *out_is_state) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0) return -1;
  *out_is_state = faccessat(fd, "archive", F_OK, 0) == 0;
  if (*out_is_state) return fd;
  char real[PATH_MAX];
  bool named = realpath(path, real) != NULL && strcmp(strrchr(real, '/') + 1, "archive") == 0;
  int parent = named ? openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (!named) errno = ENOTSUP;
  int why = errno;
  close(fd);
  errno = why;
  return parent;
}

static int verify_folder(struct run *run, const char *path, const struct tc_keys *keys) {
  struct tb_diag diag = { 0 };
  struct tc_audited seen = { 0 };
  struct tc_audit_sink sink = {
    .self = run, .problem = say_problem, .progress = say_progress, .keys = keys
  };
  bool is_state;
  int fd = open_state(path, &is_state);

  if (fd < 0 && errno == ENOTSUP)
    return tk_fail("verify", "%s: is neither a state folder nor its archive/", path);
  if (fd < 0) return tk_fail("verify", "%s: %s", path, strerror(errno));
  uint64_t listed;
  tk_progress_begin(&run->bar, path, 0, !run->no_progress);
  tb_rc rc = run->rebuild ? tc_audit_rebuild(fd, &sink, &diag, &listed) : TB_OK;
  if (rc == TB_OK) rc = tc_audit(fd, is_state, &sink, &diag, &seen);
  tk_progress_end(&run->bar);
  close(fd);
  if (rc != TB_OK) return tk_fail("verify", "%s: %s", path, diag.text);
  say_totals(run, &seen);
  return seen.problems == 0 ? TK_DONE : TK_FAILED;
}

static int verify_signed_folder(struct run *run, const char *path) {
  struct tb_diag diag = { 0 };
  struct tc_keys *keys = NULL;

  if (run->public_key != NULL && tc_keys_read_public(run->public_key, &diag, &keys) != TB_OK)
    return tk_fail("verify", "%s", diag.text);
  int code = verify_folder(run, path, keys);
  tc_keys_free(keys);
  return code;
}

static struct tc_audited_accounting books_of(const Tracecollect__V1__VerifiedBooks *from) {
  return (
      struct tc_audited_accounting){ .streams = from->streams,
                                     .produced = { from->produced_batches, from->produced_bytes },
                                     .archived = { from->archived_batches, from->archived_bytes },
                                     .taken = { from->taken_batches, from->taken_bytes },
                                     .lost = { from->lost_batches, from->lost_bytes },
                                     .open = { from->open_batches, from->open_bytes },
                                     .spooled = { from->spooled_batches, from->spooled_bytes } };
}

static void take_verified(struct run *run, const Tracecollect__V1__VerifyReply *seen,
                          struct tc_audited *out) {
  for (size_t i = 0; i < seen->n_problems; i++) say_problem(run, seen->problems[i]);
  *out = (struct tc_audited){
    .segments = seen->segments,
    .bytes = seen->bytes,
    .problems = seen->problem_count,
    .expired = seen->expired,
    .fresh = seen->fresh,
    .open_runs = seen->open_runs,
    .open_generations = seen->open_generations,
    .live_streams = seen->live_streams,
  };
  if (seen->closed != NULL) out->closed = books_of(seen->closed);
  if (seen->live != NULL) out->live = books_of(seen->live);
}

static volatile sig_atomic_t is_interrupted;

static void on_signal(int number) {
  (void)number;
  is_interrupted = 1;
}

/* The collector runs one job at a time: a job that nobody waits for is cancelled at once. */
static void catch_signals(void) {
  const struct sigaction action = { .sa_handler = on_signal };

  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static bool is_in_state(const Tracecollect__V1__Job *job, const char *state) {
  return strcmp(job->state, state) == 0;
}

static tb_rc wait_for(struct run *run, struct tk_client *client, const Tracecollect__V1__Job **job,
                      struct tb_diag *diag) {
  Tracecollect__V1__JobRequest ask = TRACECOLLECT__V1__JOB_REQUEST__INIT;
  char id[JOB_ID_BYTES];

  ask.wait_ms = WAIT_MS;
  snprintf(id, sizeof id, "%s", (*job)->id); /* copied: the answer is lent */
  while (is_in_state(*job, "running")) {
    say_progress(run, (*job)->done_bytes, (*job)->total_bytes);
    if (is_interrupted) {
      TB_TRY(tk_client_ask(client, TP_ROUTE_JOB_END, id, NULL, diag, NULL));
      return tb_fail(diag, TB_END, "interrupted");
    }
    TB_TRY(tk_client_ask(client, TP_ROUTE_JOB, id, &ask.base, diag, job));
  }
  return is_in_state(*job, "done") && (*job)->verify != NULL
             ? TB_OK
             : tb_fail(diag, TB_IO, "%.190s", (*job)->error);
}

static tb_rc ask_collector(struct run *run, struct tk_client *client, struct tb_diag *diag,
                           struct tc_audited *out) {
  Tracecollect__V1__VerifyRequest verify = TRACECOLLECT__V1__VERIFY_REQUEST__INIT;
  const Tracecollect__V1__Job *job;

  TB_TRY(tk_client_ask(client, TP_ROUTE_VERIFY, "", &verify.base, diag, &job));
  TB_TRY(wait_for(run, client, &job, diag));
  take_verified(run, job->verify, out);
  return TB_OK;
}

static int verify_remote(struct run *run) {
  struct tk_client *client;
  struct tc_audited seen;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tk_client_open(&run->client, &diag, &client);
  if (rc != TB_OK) return tk_remote_fail("verify", rc, &diag);
  catch_signals();
  tk_progress_begin(&run->bar, "verify", 0, !run->no_progress);
  rc = ask_collector(run, client, &diag, &seen);
  tk_progress_end(&run->bar);
  tk_client_close(client);
  if (rc == TB_END) return TK_INTERRUPTED;
  if (rc != TB_OK) return tk_remote_fail("verify", rc, &diag);
  say_totals(run, &seen);
  return seen.problems == 0 ? TK_DONE : TK_FAILED;
}

#define AT(member) offsetof(struct run, member)
const struct tk_option tk_verify_options[] = {
  TK_OPTION(0, "rebuild", NULL, tk_read_flag, AT(rebuild),
            "rebuild the catalog from the metas first"),
  TK_OPTION(0, "public-key", "FILE", tk_read_text, AT(public_key),
            "check the signature of each meta of ARCHIVE by the keys in FILE (Ed25519, PEM)"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json),
            "a JSON object for each problem and one for the totals"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

int tk_cmd_verify(int argc, char **argv) {
  struct run run = { 0 };
  int code = tk_options_read(argc, argv, tk_verify_options, &run);

  if (code != TK_DONE) return code;
  if (argc == optind && run.public_key != NULL)
    return tk_usage("verify", "--public-key needs ARCHIVE");
  if (argc == optind && run.rebuild)
    return tk_usage("verify",
                    "--rebuild needs ARCHIVE, the state folder of a collector that does not run");
  if (argc == optind) return verify_remote(&run);
  if (argc - optind != 1) return tk_usage("verify", "only one ARCHIVE can be given");
  return verify_signed_folder(&run, argv[optind]);
}
