/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl anonymize FILE -o OUT: replaces the program's names, so that the trace can be passed
 * on. */
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "tools/tracectl/anonymize/rewrite.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/url.h"

static int fail(tb_rc rc, const struct tb_diag *diag, const char *path, const char *out) {
  char why[300];

  if (diag->rc != TB_OK) {
    tb_diag_format(diag, why, sizeof why);
    return tk_fail("anonymize", "%s: %s", path, why);
  }
  if (rc == TB_IO && errno != 0) return tk_fail("anonymize", "%s: %s", out, strerror(errno));
  return TK_FAILED; /* about the input, and already reported */
}

static int write_file(const char *path, const char *out_path) {
  unsigned char key[TK_ANONYMIZE_KEY_BYTES]; /* never stored: names cannot be guessed */
  struct tk_anonymized sums = { 0 };
  struct tk_out_set *files = NULL;
  struct tb_diag diag;
  FILE *out;

  tb_diag_clear(&diag);
  if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
    return tk_fail("anonymize", "cannot get random numbers: %s", strerror(errno));
  tb_rc rc = tk_out_new(&diag, &files);
  if (rc == TB_OK) rc = tk_out_begin(files, out_path, &diag, &out);
  errno = 0;
  if (rc == TB_OK) rc = tk_anonymize(path, key, out, &diag, &sums);
  OPENSSL_cleanse(key, sizeof key);
  if (rc == TB_OK) rc = tk_out_publish(files, &diag);
  bool is_gone = rc == TB_IO && strcmp(out_path, "-") == 0 && tk_reader_is_gone();
  tk_out_free(files);
  if (is_gone) return TK_DONE;
  if (rc != TB_OK) return fail(rc, &diag, path, out_path);
  tk_note("anonymize", "%" PRIu64 " names replaced, %" PRIu64 " of Go and its runtime left",
          sums.strings, sums.kept);
  if (sums.experimental_batches > 0)
    tk_note("anonymize", "%" PRIu64 " batches and %" PRIu64 " events of experiments left out",
            sums.experimental_batches, sums.experimental_events);
  return TK_DONE;
}

const struct tk_option tk_anonymize_options[] = {
  TK_OPTION('o', "output", "OUT", tk_read_text, 0, "the file to write; - is standard output"),
  TK_GROUP(tk_url_options, 0),
  TK_GROUP(tk_url_tls_options, 0),
  { 0 },
};

int tk_cmd_anonymize(int argc, char **argv) {
  const char *out = NULL;
  int code = tk_options_read(argc, argv, tk_anonymize_options, &out);

  if (code != TK_DONE) return code;
  if (optind + 1 != argc) return tk_usage("anonymize", "one FILE is required");
  if (out == NULL) return tk_usage("anonymize", "-o OUT is required; - is standard output");
  if (tk_out_is_same(argv[optind], out))
    return tk_usage("anonymize", "-o: '%s' is the trace itself, which would be overwritten", out);
  return write_file(argv[optind], out);
}
