/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/rests.h"

#include <string.h>

#include "collector/sealer/base/env.h"
#include "collector/sealer/seal/seal.h"

/* The loss is reported; the bytes are for salvage only. Returns false if the file is still in open/. */
static bool put_rest_aside(struct tc__seal *seal, struct tc_segment *rest) {
  struct tb_diag why = { 0 };
  tb_rc rc = tc_segment_flush(rest, &why);

  if (rc == TB_OK) rc = tc__quarantine_file(&seal->aside, rest, &why);
  if (rc == TB_OK) {
    tc_segment_free(rest);
    return true;
  }
  if (tc_segment_discard(rest) != NULL) return false;
  tc__note_as(seal->env, TC_WARN, 0, "%s; the bytes of an unfinished generation are removed",
              why.text);
  return true;
}

void tc__clear_rests(struct tc__seal *seal) {
  struct tc_segment **at = &seal->rests;

  while (*at != NULL) {
    struct tc_segment *rest = *at, *next = rest->next_rest;
    if (rest->for_quarantine ? put_rest_aside(seal, rest) : tc_segment_discard(rest) == NULL)
      *at = next;
    else
      at = &rest->next_rest;
  }
}

void tc__keep_rest(struct tc__seal *seal, struct tc_segment *rest) {
  if (rest == NULL) return;
  rest->next_rest = seal->rests;
  seal->rests = rest;
}

void tc__rests_fini(struct tc__seal *seal) {
  tc__clear_rests(seal);
  while (seal->rests != NULL) {
    struct tc_segment *rest = seal->rests;
    seal->rests = rest->next_rest;
    tc_segment_free(rest); /* the next start removes the file */
  }
}

tb_rc tc__rest_check(const struct tc__seal *seal, const struct tc__stream *stream, uint64_t gen,
                     struct tb_diag *diag) {
  char name[TC_FILE_NAME_BYTES];

  tc_segment_name(stream->hex, gen, name);
  for (const struct tc_segment *rest = seal->rests; rest != NULL; rest = rest->next_rest)
    if (strcmp(rest->name, name) == 0)
      return tb_fail(diag, TB_BUSY, "open/%s: an older file of that name cannot be moved", name);
  return TB_OK;
}
