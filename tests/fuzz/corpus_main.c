/* SPDX-License-Identifier: Apache-2.0 */
/* corpus pack PACK FILE...: makes a pack of inputs. corpus unpack PACK FOLDER: writes each input to a file, for
 * libFuzzer. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/pack.h"

static int fail(const char *path) {
  fprintf(stderr, "corpus: %s: %s\n", path, strerror(errno));
  return 1;
}

static int add(FILE *pack, const char *path) {
  static uint8_t bytes[1 << 20];
  FILE *file = fopen(path, "rb");

  if (file == NULL) return fail(path);
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  for (int i = 0; i < 4; i++) putc((int)(n >> 8 * i & 0xff), pack);
  return fwrite(bytes, 1, n, pack) == n ? 0 : fail(path);
}

static int pack_files(const char *path, char **files, int n) {
  FILE *pack = fopen(path, "wb");

  if (pack == NULL) return fail(path);
  for (int i = 0; i < n; i++)
    if (add(pack, files[i]) != 0) return 1;
  return fclose(pack) == 0 ? 0 : fail(path);
}

static int unpack(const char *path, const char *folder) {
  struct tt_pack pack;

  if (!tt_pack_load(path, &pack)) return 1;
  for (size_t i = 0; i < pack.n; i++) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/%04zu", folder, i);
    FILE *file = fopen(name, "wb");
    if (file == NULL) return fail(name);
    fwrite(pack.input[i].data, 1, pack.input[i].len, file);
    if (fclose(file) != 0) return fail(name);
  }
  tt_pack_free(&pack);
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 4 && strcmp(argv[1], "pack") == 0) return pack_files(argv[2], argv + 3, argc - 3);
  if (argc == 4 && strcmp(argv[1], "unpack") == 0) return unpack(argv[2], argv[3]);
  fputs("usage: corpus pack PACK FILE... | corpus unpack PACK FOLDER\n", stderr);
  return 2;
}
