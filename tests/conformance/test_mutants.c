/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of broken traces, the same each time: whatever the bytes, the reader answers, gives all
 * memory back, and what it delivered before has strictly rising times. Run under the sanitizers, too.
 * (tests/oracle compares the answers with Go's.) TT_MUTANTS sets how many. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "online/generation.h"
#include "online/reader.h"
#include "oracle/mutate.h"
#include "wire/spec.h"

enum { SEEDS_MAX = 16, MUTANTS = 3000 };

static size_t load_seeds(struct tt_seed *seeds) {
  char folder[1000], path[1300];
  const char *top = getenv("TC_SOURCE_DIR");
  size_t n = 0;

  snprintf(folder, sizeof folder, "%s/tests/data", top == NULL ? "." : top);
  DIR *dir = opendir(folder);
  cr_assert_not_null(dir, "%s", folder);
  for (struct dirent *entry; (entry = readdir(dir)) != NULL && n < SEEDS_MAX;) {
    static unsigned char packed[TT_MUTANT_BYTES_MAX];
    if (strstr(entry->d_name, ".trace.zst") == NULL) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    FILE *file = fopen(path, "rb");
    size_t len = fread(packed, 1, sizeof packed, file);
    fclose(file);
    unsigned char *plain = malloc(TT_MUTANT_BYTES_MAX);
    size_t got = ZSTD_decompress(plain, TT_MUTANT_BYTES_MAX, packed, len);
    if (ZSTD_isError(got))
      free(plain); /* larger than a mutant may be */
    else
      seeds[n++] = (struct tt_seed){ entry->d_name, plain, got };
  }
  closedir(dir);
  cr_assert_gt(n, 4);
  return n;
}

static tb_rc look_at_events(void *self, const struct to_generation *gen,
                            const struct to_event *events, size_t n) {
  to_ns *last = self;

  for (size_t i = 0; i < n; i++) {
    const struct to_event *ev = &events[i];
    struct to_stack_iter it;
    struct to_frame frame;
    cr_assert(ev->time > *last || ev->time == INT64_MIN, "%lld after %lld", (long long)ev->time,
              (long long)*last);
    *last = ev->time;
    if (gen == NULL || ev->type != TW_EV_GO_BLOCK || !to_generation_stack(gen, ev->args[1], &it))
      continue;
    while (to_stack_next(&it, &frame)) cr_assert_leq(frame.function.len, TW_STRING_BYTES_MAX);
  }
  return TB_OK;
}

static tb_rc run(struct to_reader *reader, const unsigned char *bytes, size_t n, size_t chunk) {
  tb_rc rc = TB_OK;

  while (n > 0 && rc == TB_OK) {
    size_t used;
    rc = to_reader_feed(reader, bytes, n < chunk ? n : chunk, &used);
    bytes += used;
    n -= used;
    while (rc == TB_AGAIN) rc = to_reader_run(reader, 1000);
  }
  if (rc == TB_OK) rc = to_reader_finish(reader);
  while (rc == TB_AGAIN) rc = to_reader_run(reader, 1000);
  return rc;
}

Test(mutants, every_one_gets_an_answer_and_leaves_nothing_behind, .timeout = 100) {
  static unsigned char mutant[TT_MUTANT_BYTES_MAX];
  struct tt_seed seeds[SEEDS_MAX];
  size_t nseeds = load_seeds(seeds);
  const char *wanted = getenv("TT_MUTANTS");
  unsigned count = wanted == NULL ? MUTANTS : (unsigned)atoi(wanted), broken = 0, whole = 0;

  for (unsigned i = 0; i < count; i++) {
    struct tt_rng rng = { i };
    size_t len = tt_mutate(&rng, seeds, nseeds, mutant),
           chunk = i % 3 == 0 ? 1 + tt_below(&rng, 5000) : len;
    /* A block of just its size: a sanitizer sees the first byte read past it. */
    unsigned char *bytes = malloc(len);
    memcpy(bytes, mutant, len);
    to_ns last = INT64_MIN;
    struct to_event_sink sink = { &last, look_at_events };
    struct to_reader *reader = NULL;
    struct tb_diag diag;
    struct tb_mem mem;
    tb_mem_init(&mem, tb_mem_libc, NULL, 64 << 20);
    tb_diag_clear(&diag);
    cr_assert_eq(to_reader_new(&mem, NULL, i % 2 ? TO_READER_BYTES_STAY : 0, sink, &diag, &reader),
                 TB_OK);
    tb_rc rc = run(reader, bytes, len, chunk == 0 ? 1 : chunk);
    to_reader_free(reader);
    free(bytes);
    cr_assert_eq(mem.bytes, 0, "mutant %u: %zu bytes left", i, mem.bytes);
    cr_assert(rc == TB_OK || tb_rc_class(rc) == TB_PEER, "mutant %u: %s", i, tb_rc_name(rc));
    cr_assert_eq(rc == TB_OK, diag.rc == TB_OK, "mutant %u: a reason for each fault", i);
    if (rc == TB_OK)
      whole++;
    else
      broken++;
  }
  cr_assert(broken > count / 3 && whole > 0, "%u broken, %u whole: no use as mutants", broken,
            whole);
  for (size_t i = 0; i < nseeds; i++) free((void *)(uintptr_t)seeds[i].data);
}
