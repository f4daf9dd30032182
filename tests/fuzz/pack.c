/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool complain(const char *path, const char *why) {
  fprintf(stderr, "%s: %s\n", path, why);
  return false;
}

static size_t read_length(const uint8_t *at) {
  return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static bool read_file(const char *path, uint8_t **out, size_t *out_len) {
  FILE *file = fopen(path, "rb");

  if (file == NULL) return complain(path, strerror(errno));
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  *out = malloc((size_t)size + 1);
  *out_len = *out != NULL ? fread(*out, 1, (size_t)size, file) : 0;
  fclose(file);
  return *out_len == (size_t)size || complain(path, "cannot be read");
}

bool tt_pack_load(const char *path, struct tt_pack *out) {
  size_t len, at = 0;

  *out = (struct tt_pack){ 0 };
  if (!read_file(path, &out->bytes, &len)) return false;
  out->input = calloc(len / 4 + 1, sizeof *out->input);
  if (out->input == NULL) return complain(path, "out of memory");
  while (len - at >= 4) {
    size_t n = read_length(out->bytes + at);
    at += 4;
    if (n > len - at) break;
    out->input[out->n++] = (struct tt_input){ out->bytes + at, n };
    at += n;
  }
  return at == len || complain(path, "is cut short");
}

void tt_pack_free(struct tt_pack *pack) {
  free(pack->bytes);
  free(pack->input);
  *pack = (struct tt_pack){ 0 };
}
