/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stored.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

static unsigned char *read_file(const char *path, size_t *out_len) {
  FILE *file = fopen(path, "rb");

  cr_assert_not_null(file, "%s", path);
  fseek(file, 0, SEEK_END);
  *out_len = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*out_len);
  cr_assert_eq(fread(bytes, 1, *out_len, file), *out_len, "%s", path);
  fclose(file);
  return bytes;
}

static struct tt_stored unpack(const char *path) {
  ZSTD_DStream *stream = ZSTD_createDStream();
  ZSTD_inBuffer in = { 0 };
  unsigned char *packed = read_file(path, &in.size);
  ZSTD_outBuffer out = { 0 };

  in.src = packed;
  while (in.pos < in.size || out.pos == out.size) {
    if (out.size - out.pos < ZSTD_DStreamOutSize())
      out.dst = realloc(out.dst, out.size = out.size * 2 + ZSTD_DStreamOutSize());
    size_t left = ZSTD_decompressStream(stream, &out, &in);
    cr_assert(!ZSTD_isError(left), "%s: %s", path, ZSTD_getErrorName(left));
    if (left == 0 && in.pos == in.size) break;
  }
  ZSTD_freeDStream(stream);
  free(packed);
  return (struct tt_stored){ path, out.dst, out.pos };
}

size_t tt_each_stored(const char *folder, size_t bytes_max,
                      void (*look)(const struct tt_stored *)) {
  const char *top = getenv("TC_SOURCE_DIR");
  char pattern[1200];
  glob_t found;
  size_t looked = 0;

  snprintf(pattern, sizeof pattern, "%s/%s/*.trace.zst", top == NULL ? "." : top, folder);
  glob(pattern, 0, NULL, &found);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct tt_stored trace = unpack(found.gl_pathv[i]);
    if (trace.len <= bytes_max) {
      look(&trace);
      looked++;
    }
    free(trace.bytes);
  }
  globfree(&found);
  return looked;
}
