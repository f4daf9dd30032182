/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/reasons.h"

#include <string.h>

struct to_own_reason {
  struct to_reason_info info;
  size_t len;  /* of the words; they may hold a NUL */
  char text[]; /* the words, a NUL, the canonical id, a NUL */
};

static const char other_id[] = "/other/";

static size_t bytes_of(size_t len) {
  return sizeof(struct to_own_reason) + len + 1 + sizeof other_id + len;
}

void to_reasons_init(struct to_reasons *r, struct tb_mem *mem) {
  *r = (struct to_reasons){ .mem = mem };
}

void to_reasons_fini(struct to_reasons *r) {
  for (unsigned i = 0; i < r->n; i++) tb_mem_free(r->mem, r->own[i], bytes_of(r->own[i]->len));
  r->n = 0;
}

/* Classifies as Go's profiles do. */
static enum to_wait_class class_of(const char *words) {
  if (strstr(words, "chan") != NULL || strstr(words, "select") != NULL) return TO_WAIT_CHAN;
  if (strstr(words, "sync") != NULL) return TO_WAIT_SYNC;
  return strstr(words, "network") != NULL ? TO_WAIT_NET : TO_WAIT_OTHER;
}

static tb_rc add_reason(struct to_reasons *r, struct to_string words) {
  struct to_own_reason *own;
  void *block = NULL;

  TB_TRY(tb_mem_resize(r->mem, &block, 0, bytes_of(words.len)));
  own = block;
  char *id = own->text + words.len + 1;
  memcpy(own->text, words.data, words.len);
  own->text[words.len] = '\0';
  memcpy(id, other_id, sizeof other_id - 1);
  memcpy(id + sizeof other_id - 1, own->text, words.len + 1);
  own->len = words.len;
  own->info = (struct to_reason_info){ .text = own->text,
                                       .display = own->text,
                                       .id = id,
                                       .wait_class = class_of(own->text),
                                       .about = to_reason_info(TO_REASON_OTHER)->about };
  r->own[r->n++] = own;
  return TB_OK;
}

tb_rc to_reasons_number(struct to_reasons *r, struct to_string words, uint8_t *out) {
  unsigned i = 0;

  *out = (uint8_t)to_reason_find(words);
  if (*out != TO_REASON_OTHER || words.len == 0) return TB_OK;
  while (i < r->n &&
         (r->own[i]->len != words.len || memcmp(r->own[i]->text, words.data, words.len) != 0))
    i++;
  if (i == TO_REASONS_MAX - TO_REASONS) return TB_OK;
  if (i == r->n) TB_TRY(add_reason(r, words));
  *out = (uint8_t)(TO_REASONS + i);
  return TB_OK;
}

const struct to_reason_info *to_reasons_info(const struct to_reasons *r, unsigned number) {
  bool is_own = number >= TO_REASONS && number - TO_REASONS < r->n;

  if (is_own) return &r->own[number - TO_REASONS]->info;
  return to_reason_info(number < TO_REASONS ? (enum to_reason)number : TO_REASON_OTHER);
}
