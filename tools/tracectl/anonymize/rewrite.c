/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/anonymize/rewrite.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "online/event/view.h"
#include "online/spans/stacks/library.h"
#include "tools/tracectl/fetch/strip.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/input.h"
#include "wire/mark.h"
#include "wire/split.h"
#include "wire/write.h"

enum { HASH_DIGITS = 16, NAME_BYTES = 1 + HASH_DIGITS };

struct rewriting {
  const unsigned char *key;
  FILE *out;
  struct tb_diag *diag;
  struct tk_anonymized *sums;
  struct tw_split split;
  struct tk_strip strip;
  unsigned char room[TW_WRITE_ROOM];
};

static bool is_text(struct to_string text, const char *const *of) {
  for (; *of != NULL; of++)
    if (strlen(*of) == text.len && memcmp(*of, text.data, text.len) == 0) return true;
  return false;
}

/* Brackets may contain types of the program. */
static bool is_standard(struct to_string text) {
  static const char any_types[] = "[...]";

  if (!to_library_is_go(text)) return false;
  const char *bracket = memchr(text.data, '[', text.len);
  if (bracket == NULL) return true;
  size_t rest = text.len - (size_t)(bracket - text.data);
  return memchr(bracket + 1, '[', rest - 1) == NULL && rest >= strlen(any_types) &&
         memcmp(bracket, any_types, strlen(any_types)) == 0;
}

static bool is_stop(struct to_string text) {
  static const char *const reasons[] = {
#define TO_STW_REASON(text, id) text,
#include "online/event/stw_reasons.def"
#undef TO_STW_REASON
    NULL
  };

  return is_text(text, reasons);
}

static bool is_readable(struct to_string text) {
  return text.len == 0 || is_text(text, (const char *const[]){ TW_C_MARK, NULL }) ||
         to_reason_find(text) != TO_REASON_OTHER || is_stop(text) || is_standard(text);
}

static bool name_of(const struct rewriting *r, struct to_string text, char out[NAME_BYTES + 1]) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned n = sizeof hash;

  if (HMAC(EVP_sha256(), r->key, TK_ANONYMIZE_KEY_BYTES, (const unsigned char *)text.data, text.len,
           hash, &n) == NULL)
    return false;
  out[0] = 'x';
  for (unsigned i = 0; i < HASH_DIGITS / 2; i++) snprintf(out + 1 + 2 * i, 3, "%02x", hash[i]);
  return true;
}

static tb_rc put_bytes(struct rewriting *r, const void *bytes, size_t n) {
  return n == 0 || fwrite(bytes, 1, n, r->out) == n ? TB_OK : TB_IO;
}

static tb_rc put_string(struct rewriting *r, struct tw_write *w, const struct tw_batch *batch,
                        uint64_t id, const void *bytes, size_t len) {
  tb_rc rc = tw_write_string(w, id, bytes, len);

  if (rc != TB_AGAIN) return rc;
  TB_TRY(put_bytes(r, r->room, tw_write_close(w)));
  tw_write_open(w, r->room, sizeof r->room, r->split.version, batch);
  return tw_write_string(w, id, bytes, len);
}

static tb_rc rewrite_strings(struct rewriting *r, const struct tw_item *item) {
  struct tw_section section;
  struct tw_string string;
  struct tw_write w;
  char name[NAME_BYTES + 1];
  tb_rc rc;

  tb_diag_place(r->diag, item->batch.gen, item->batch.thread, item->offset);
  tw_write_open(&w, r->room, sizeof r->room, r->split.version, &item->batch);
  tw_section_open(&section, &item->batch, r->split.version, r->diag);
  while ((rc = tw_string_next(&section, &string)) == TB_OK) {
    struct to_string text = { (const char *)string.data, string.len };
    bool is_kept = is_readable(text);
    if (!is_kept && !name_of(r, text, name)) return TB_NOMEM;
    r->sums->kept += is_kept;
    r->sums->strings += !is_kept;
    TB_TRY(put_string(r, &w, &item->batch, string.id, is_kept ? text.data : name,
                      is_kept ? text.len : NAME_BYTES));
  }
  if (rc != TB_END) return tb_fail(r->diag, TB_BROKEN, "a table of strings is cut off");
  return put_bytes(r, r->room, tw_write_is_empty(&w) ? 0 : tw_write_close(&w));
}

static tb_rc rewrite(struct rewriting *r, const struct tw_item *item) {
  const unsigned char *bytes;

  if (item->kind == TW_ITEM_HEADER) tk_strip_begin(&r->strip, r->split.version);
  if (item->kind == TW_ITEM_RAW) {
    *r->diag = r->split.fault; /* may contain names: do not write it */
    return tb_fail(r->diag, TB_BROKEN, "the trace ends early");
  }
  if (item->kind != TW_ITEM_BATCH) return put_bytes(r, item->bytes, item->len);
  enum tw_batch_kind kind = tw_batch_kind(&item->batch, r->split.version);
  if (kind == TW_BATCH_STRINGS) return rewrite_strings(r, item);
  if (item->batch.experiment == TW_EXPERIMENT_ALLOC_FREE) {
    r->sums->experimental_batches++;
    return TB_OK;
  }
  size_t left = tk_strip_batch(&r->strip, item, &bytes);
  return put_bytes(r, bytes, left);
}

static tb_rc feed(struct rewriting *r, const unsigned char *bytes, size_t n) {
  struct tw_item item;
  size_t used;
  tb_rc rc;

  while ((rc = tw_split_feed(&r->split, bytes, n, &used, &item)) == TB_OK) {
    bytes += used;
    n -= used;
    TB_TRY(rewrite(r, &item));
  }
  return rc == TB_AGAIN ? TB_OK : rc;
}

static tb_rc rewrite_all(struct rewriting *r, struct tk_input *in) {
  const unsigned char *bytes;
  struct tw_item item;
  size_t n;
  int got;

  while ((got = tk_input_next(in, &bytes, &n)) == 1) TB_TRY(feed(r, bytes, n));
  if (got < 0) return TB_IO;
  while (tw_split_finish(&r->split, &item) == TB_OK) TB_TRY(rewrite(r, &item));
  if (r->split.version == 0) return tb_fail(r->diag, TB_BROKEN, "no trace");
  return TB_OK;
}

tb_rc tk_anonymize(const char *path, const unsigned char key[TK_ANONYMIZE_KEY_BYTES], FILE *out,
                   struct tb_diag *diag, struct tk_anonymized *sums) {
  struct rewriting *r = calloc(1, sizeof *r);
  struct tk_input *in;

  *sums = (struct tk_anonymized){ 0 };
  if (r == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  r->key = key;
  r->out = out;
  r->diag = diag;
  r->sums = sums;
  tw_split_init(&r->split, &tk_mem);
  tb_rc rc = TB_IO;
  if (tk_input_open("anonymize", path, &in)) {
    rc = rewrite_all(r, in);
    tk_input_close(in);
  }
  sums->experimental_batches += r->strip.batches;
  sums->experimental_events = r->strip.events;
  tw_split_fini(&r->split);
  free(r);
  return rc;
}
