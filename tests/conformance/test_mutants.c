/* SPDX-License-Identifier: Apache-2.0 */
/* Reads thousands of broken traces, the same each time: for any bytes the reader returns, releases all memory, and the
 * events delivered before have strictly rising times. Run under the sanitizers, too. (tests/oracle compares the results
 * with Go's.) TT_MUTANTS sets their number. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "online/event/generation.h"
#include "online/trace/reader.h"
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
      free(plain); /* too large for a mutant */
    else
      seeds[n++] = (struct tt_seed){ entry->d_name, plain, got };
  }
  closedir(dir);
  cr_assert_gt(n, 4);
  return n;
}

struct seen {
  to_ns last;
  uint64_t hash; /* of every event */
};

static void hash_event(struct seen *seen, const struct to_event *ev) {
  const int64_t words[] = { ev->time, ev->m, ev->p, ev->g, ev->type };

  for (size_t i = 0; i < 5; i++)
    seen->hash = (seen->hash ^ (uint64_t)words[i]) * UINT64_C(0x100000001b3);
  for (size_t i = 0; i < TW_TIMED_ARGS_MAX; i++)
    seen->hash = (seen->hash ^ ev->args[i]) * UINT64_C(0x100000001b3);
}

static tb_rc look_at_events(void *self, const struct to_generation *gen,
                            const struct to_event *events, size_t n) {
  struct seen *seen = self;

  for (size_t i = 0; i < n; i++) {
    const struct to_event *ev = &events[i];
    struct to_stack_iter it;
    struct to_frame frame;
    cr_assert(ev->time > seen->last || ev->time == INT64_MIN, "%lld after %lld",
              (long long)ev->time, (long long)seen->last);
    seen->last = ev->time;
    hash_event(seen, ev);
    if (gen == NULL || ev->type != TW_EV_GO_BLOCK || !to_generation_stack(gen, ev->args[1], &it))
      continue;
    while (to_stack_next(&it, &frame)) cr_assert_leq(frame.function.len, TW_STRING_BYTES_MAX);
  }
  return TB_OK;
}

static tb_rc run(struct to_reader *reader, const unsigned char *bytes, size_t n, size_t chunk) {
  for (; n > chunk; bytes += chunk, n -= chunk) TB_TRY(to_reader_push(reader, bytes, chunk));
  return to_reader_read(reader, bytes, n);
}

struct answer {
  tb_rc rc;
  struct tb_diag diag;
  uint64_t hash;
};

/* The block has exactly the size of the bytes: a sanitizer sees the first byte read past its
 * end. */
static struct answer answer(const unsigned char *mutant, size_t len, size_t chunk, unsigned flags) {
  unsigned char *bytes = malloc(len);
  struct seen seen = { INT64_MIN, 0 };
  struct to_event_sink sink = { &seen, look_at_events };
  struct to_reader *reader = NULL;
  struct answer answer;
  struct tb_mem mem;

  memcpy(bytes, mutant, len);
  tb_mem_init(&mem, tb_mem_libc, NULL, 64 << 20);
  tb_diag_clear(&answer.diag);
  cr_assert_eq(to_reader_new(&mem, NULL, flags, sink, &answer.diag, &reader), TB_OK);
  answer.rc = run(reader, bytes, len, chunk == 0 ? 1 : chunk);
  answer.hash = seen.hash;
  to_reader_free(reader);
  free(bytes);
  cr_assert_eq(mem.bytes, 0, "%zu bytes left", mem.bytes);
  return answer;
}

Test(mutants, every_one_gets_an_answer_and_leaves_nothing_behind) {
  static unsigned char mutant[TT_MUTANT_BYTES_MAX];
  struct tt_seed seeds[SEEDS_MAX];
  size_t nseeds = load_seeds(seeds);
  const char *wanted = getenv("TT_MUTANTS");
  unsigned count = wanted == NULL ? MUTANTS : (unsigned)atoi(wanted), broken = 0, whole = 0;

  for (unsigned i = 0; i < count; i++) {
    struct tt_rng rng = { i };
    size_t len = tt_mutate(&rng, seeds, nseeds, mutant),
           chunk = i % 3 == 0 ? 1 + tt_below(&rng, 5000) : len;
    struct answer got = answer(mutant, len, chunk, i % 2 ? TO_READER_BYTES_STAY : 0);
    cr_assert(got.rc == TB_OK || tb_rc_class(got.rc) == TB_PEER, "mutant %u: %s", i,
              tb_rc_name(got.rc));
    cr_assert_eq(got.rc == TB_OK, got.diag.rc == TB_OK, "mutant %u: a reason for each fault", i);
    if (got.rc == TB_OK)
      whole++;
    else
      broken++;
  }
  cr_assert(broken > count / 3 && whole > 0, "%u broken, %u whole: no use as mutants", broken,
            whole);
  for (size_t i = 0; i < nseeds; i++) free((void *)(uintptr_t)seeds[i].data);
}

Test(mutants, an_older_processor_answers_the_same) {
  static unsigned char mutant[TT_MUTANT_BYTES_MAX];
  struct tt_seed seeds[SEEDS_MAX];
  size_t nseeds = load_seeds(seeds);

  for (unsigned i = 0; i < MUTANTS / 4; i++) {
    struct tt_rng rng = { i };
    size_t len = i < nseeds ? seeds[i].len : tt_mutate(&rng, seeds, nseeds, mutant);
    const unsigned char *bytes = i < nseeds ? seeds[i].data : mutant;
    struct answer got = answer(bytes, len, len, 0);
    struct answer plain = answer(bytes, len, len, TO_READER_PLAIN);
    cr_assert_eq(got.rc, plain.rc, "mutant %u", i);
    cr_assert_eq(got.hash, plain.hash, "mutant %u", i);
    cr_assert_str_eq(got.diag.text, plain.diag.text, "mutant %u", i);
  }
  for (size_t i = 0; i < nseeds; i++) free((void *)(uintptr_t)seeds[i].data);
}
