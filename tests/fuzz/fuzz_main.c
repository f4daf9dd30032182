/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_X [--seconds N] [--seed N] PACK...: replays every input of the packs, then mutates them for so
 * long, in CPU time. For compilers without libFuzzer, and for `make test`, where past findings are tests.
 *
 * The seed alone determines the mutants; one that ends the program is left in the file crash-X. */
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/pack.h"
#include "oracle/mutate.h"

enum { MUTANT_BYTES_MAX = 64 << 10, EDITS_MAX = 6, PACKS_MAX = 16 };

extern size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
    __attribute__((weak));
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static struct tt_rng rng;
static const char *target;
static const uint8_t *current; /* input of the running target */
static size_t current_len;

/* ---- the last words ---- */

static void leave_input(void) {
  char name[256];

  snprintf(name, sizeof name, "crash-%s", target);
  FILE *file = fopen(name, "wb");
  if (file == NULL) return;
  fwrite(current, 1, current_len, file);
  fclose(file);
  fprintf(stderr, "%s: the input is in %s\n", target, name);
}

static void on_signal(int sig) {
  signal(sig, SIG_DFL);
  leave_input();
  raise(sig);
}

/* ---- running ---- */

/* Runs the input in a block of exactly its size: a sanitizer sees the first byte read past its
 * end. */
static void run(const uint8_t *data, size_t len) {
  uint8_t *exact = malloc(len);

  if (exact == NULL && len > 0) return;
  if (len > 0) memcpy(exact, data, len);
  current = exact;
  current_len = len;
  LLVMFuzzerTestOneInput(exact, len);
  free(exact);
}

/* ---- mutating ---- */

static uint8_t interesting_byte(void) {
  static const uint8_t bytes[] = { 0, 1, 2, 0x10, 0x20, 0x40, 0x7f, 0x80, 0xfe, 0xff };

  return tt_below(&rng, 2) == 0 ? bytes[tt_below(&rng, sizeof bytes)] : (uint8_t)tt_random(&rng);
}

/* Removes n bytes at `at`, or makes room for n there; returns how many it could. */
static size_t cut(uint8_t *data, size_t *size, size_t at, size_t n) {
  memmove(data + at, data + at + n, *size - at - n);
  *size -= n;
  return n;
}

static size_t make_room(uint8_t *data, size_t *size, size_t max, size_t at, size_t n) {
  if (n > max - *size) n = max - *size;
  memmove(data + at + n, data + at, *size - at);
  *size += n;
  return n;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
  size_t at = tt_below(&rng, size), n = 1 + tt_below(&rng, 16);

  if (size == 0) {
    if (max_size > 0) data[size++] = interesting_byte();
    return size;
  }
  if (n > size - at) n = size - at;
  switch (tt_below(&rng, 6)) {
  case 0: data[at] ^= (uint8_t)(1 << tt_below(&rng, 8)); break;
  case 1: data[at] = interesting_byte(); break;
  case 2: cut(data, &size, at, n); break;
  case 3:
    n = make_room(data, &size, max_size, at, n);
    for (size_t i = 0; i < n; i++) data[at + i] = interesting_byte();
    break;
  case 4: { /* repeats a piece */
    size_t from = tt_below(&rng, size - n + 1);
    uint8_t piece[16];
    memcpy(piece, data + from, n);
    n = make_room(data, &size, max_size, at, n);
    memcpy(data + at, piece, n);
    break;
  }
  default: data[at] = (uint8_t)(data[at] + tt_below(&rng, 3) - 1); break;
  }
  return size;
}

static void mutate_for(const struct tt_pack *packs, int n_packs, double seconds) {
  static uint8_t mutant[MUTANT_BYTES_MAX];
  struct timespec start, now;
  uint64_t runs = 0;
  double spent = 0;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (; spent < seconds; runs++) {
    const struct tt_pack *pack = &packs[tt_below(&rng, (uint64_t)n_packs)];
    struct tt_input from = { mutant, 0 };
    if (pack->n > 0) from = pack->input[tt_below(&rng, pack->n)];
    size_t len = from.len < sizeof mutant ? from.len : sizeof mutant;
    memmove(mutant, from.data, len);
    for (uint64_t edits = 1 + tt_below(&rng, EDITS_MAX); edits > 0; edits--)
      len = LLVMFuzzerCustomMutator != NULL
                ? LLVMFuzzerCustomMutator(mutant, len, sizeof mutant, (unsigned)tt_random(&rng))
                : LLVMFuzzerMutate(mutant, len, sizeof mutant);
    run(mutant, len);
    if (runs % 64 != 0) continue;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    spent = (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9;
  }
  printf("%s: %llu mutants, %.0f a second\n", target, (unsigned long long)runs,
         (double)runs / seconds);
}

int main(int argc, char **argv) {
  struct tt_pack packs[PACKS_MAX];
  double seconds = 0;
  size_t replayed = 0;
  int n = 0;

  target = basename(argv[0]);
  if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(leave_input);
  signal(SIGABRT, on_signal);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
      rng.state = strtoull(argv[++i], NULL, 10);
    else if (n == PACKS_MAX || !tt_pack_load(argv[i], &packs[n++]))
      return 1;
  }
  for (int i = 0; i < n; i++)
    for (size_t k = 0; k < packs[i].n; k++, replayed++)
      run(packs[i].input[k].data, packs[i].input[k].len);
  printf("%s: %zu inputs replayed\n", target, replayed);
  if (n > 0 && seconds > 0) mutate_for(packs, n, seconds);
  for (int i = 0; i < n; i++) tt_pack_free(&packs[i]);
  return 0;
}
