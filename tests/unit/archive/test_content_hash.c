/* SPDX-License-Identifier: Apache-2.0 */
/* Content hashes, made with the code that also writes and proves segments. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "archive/content_hash.h"
#include "base/text/hex.h"

static struct tc_hasher *make(enum tc_hash_kind kind) {
  struct tc_hasher *hasher;

  cr_assert_eq(tc_hasher_new(kind, &hasher), TB_OK);
  return hasher;
}

static void add(struct tc_hasher *hasher, const void *bytes, size_t n) {
  cr_assert_eq(tc_hasher_add(hasher, bytes, n), TB_OK);
}

static struct tc_content_hash result(const struct tc_hasher *hasher) {
  struct tc_content_hash hash;

  cr_assert_eq(tc_hasher_result(hasher, &hash), TB_OK);
  return hash;
}

/* The bytes for which XXH3's authors publish hash values. */
static void fill(unsigned char *out, size_t n) {
  uint64_t state = UINT64_C(2654435761);

  for (size_t i = 0; i < n; i++, state *= UINT64_C(11400714785074694797))
    out[i] = (unsigned char)(state >> 56);
}

Test(content_hash, a_generations_hash_is_what_the_authors_of_xxh3_publish) {
  static const struct {
    size_t n;
    uint64_t high, low;
  } known[] = {
    { 0, 0x99AA06D3014798D8, 0x6001C324468D497F },
    { 1, 0xA6CD5E9392000F6A, 0xC44BDFF4074EECDB },
    { 6, 0x082AFE0B8162D12A, 0x3E7039BDDA43CFC6 },
    { 12, 0x6E3EFD8FC7802B18, 0x061A192713F69AD9 },
    { 24, 0x0CE966E4678D3761, 0x1E7044D28B1B901D },
    { 48, 0xA002AC4E5478227E, 0xF942219AED80F67B },
    { 81, 0x4952F58181AB0042, 0x5E8BAFB9F95FB803 },
    { 222, 0x337E09641B948717, 0xF1AEBD597CEC6B3A },
    { 403, 0x1B6DE21E332DD73D, 0xCDEB804D65C6DEA4 },
    { 512, 0x18D2D110DCC9BCA1, 0x617E49599013CB6B },
    { 2048, 0xF736557FD47073A5, 0xDD59E2C3A5F038E0 },
    { 2240, 0xCCB134FBFA7CE49D, 0x6E73A90539CF2948 },
    { 2367, 0xE89C0F6FF369B427, 0xCB37AEB9E5D361ED },
  };
  unsigned char bytes[2367], got[TC_GENERATION_HASH_BYTES];
  char hex[33], want[33];

  fill(bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    for (size_t step = 1; step <= 700; step += 233) {
      struct tc_hasher *hasher = make(TC_HASH_XXH3);
      tc_hasher_begin(hasher);
      for (size_t at = 0; at < known[i].n; at += step)
        add(hasher, bytes + at, known[i].n - at < step ? known[i].n - at : step);
      tc_hasher_end(hasher, got);
      snprintf(want, sizeof want, "%016" PRIx64 "%016" PRIx64, known[i].high, known[i].low);
      cr_assert_str_eq(tb_hex(got, sizeof got, hex), want, "%zu bytes", known[i].n);
      tc_hasher_free(hasher);
    }
}

static const char header[16] = "go 1.26 trace";

/* Makes the hash as docs/FORMAT.md defines it. */
static void by_definition(const char *const *gens, size_t n, unsigned char out[16]) {
  unsigned char all[16 + 8 * 16];
  XXH128_canonical_t canonical;

  memcpy(all, header, 16);
  for (size_t i = 0; i < n; i++) {
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(gens[i], strlen(gens[i])));
    memcpy(all + 16 + 16 * i, canonical.digest, 16);
  }
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(all, 16 + 16 * n));
  memcpy(out, canonical.digest, 16);
}

static void add_gen(struct tc_hasher *hasher, const char *text, unsigned char out[16]) {
  tc_hasher_begin(hasher);
  add(hasher, text, strlen(text));
  tc_hasher_end(hasher, out);
}

Test(content_hash, a_segments_hash_is_of_its_header_and_its_generations_hashes) {
  static const char *const gens[] = { "first", "second", "third" };
  unsigned char want[16], hashes[3][16];
  struct tc_hasher *hasher = make(TC_HASH_XXH3), *known = make(TC_HASH_XXH3);

  add(hasher, header, 16);
  add(known, header, 16);
  for (size_t i = 0; i < 3; i++) {
    add_gen(hasher, gens[i], hashes[i]);
    tc_hasher_take(known, hashes[i]);
    by_definition(gens, i + 1, want);
    struct tc_content_hash got = result(hasher), of_known = result(known);
    cr_assert_eq(got.kind, TC_HASH_XXH3);
    cr_assert_arr_eq(got.bytes, want, 16);
    cr_assert(tc_hash_equal(&got, &of_known), "without a second read of the bytes");
  }
  tc_hasher_free(known);
  tc_hasher_free(hasher);
}

Test(content_hash, of_sha256_it_is_that_of_the_file) {
  unsigned char want[32], untouched[16] = "untouched";
  struct tc_hasher *hasher = make(TC_HASH_SHA256);

  add(hasher, header, 16);
  add_gen(hasher, "first", untouched);
  add_gen(hasher, "second", untouched);
  struct tc_content_hash got = result(hasher);
  EVP_Digest("go 1.26 trace\0\0\0firstsecond", 27, want, NULL, EVP_sha256(), NULL);
  cr_assert_eq(got.kind, TC_HASH_SHA256);
  cr_assert_arr_eq(got.bytes, want, 32);
  cr_assert_str_eq((char *)untouched, "untouched");
  tc_hasher_free(hasher);
}

Test(content_hash, an_open_generation_moves_to_another_file) {
  unsigned char hash[16], want[16];
  struct tc_hasher *whole = make(TC_HASH_XXH3), *rest = make(TC_HASH_XXH3);

  add(whole, header, 16);
  add(rest, header, 16);
  add_gen(whole, "first", hash);
  tc_hasher_begin(whole);
  add(whole, "sec", 3);
  tc_hasher_move_open(rest, whole);
  add(rest, "ond", 3);
  tc_hasher_end(rest, hash);
  by_definition((const char *const[]){ "first" }, 1, want);
  cr_assert_arr_eq(result(whole).bytes, want, 16);
  by_definition((const char *const[]){ "second" }, 1, want);
  cr_assert_arr_eq(result(rest).bytes, want, 16);
  tc_hasher_free(rest);
  tc_hasher_free(whole);
}

Test(content_hash, messages_keep_either_kind) {
  struct tc_content_hash sha = { .kind = TC_HASH_SHA256, .bytes = "s" },
                         xxh3 = { .kind = TC_HASH_XXH3, .bytes = "x" },
                         none = { .kind = TC_HASH_NONE }, got;
  Tracecollect__V1__ContentHash room, *said = tc_hash_put(&sha, &room);

  cr_assert_eq(said->value.len, 32);
  got = tc_hash_read(said);
  cr_assert(tc_hash_equal(&got, &sha));
  said = tc_hash_put(&xxh3, &room);
  cr_assert_eq(said->value.len, 16);
  got = tc_hash_read(said);
  cr_assert(tc_hash_equal(&got, &xxh3));
  cr_assert_not(tc_hash_equal(&sha, &xxh3));
  cr_assert_not(tc_hash_is_foreign(said));
  room.kind = (Tracecollect__V1__HashKind)3;
  cr_assert(tc_hash_is_foreign(said));
  cr_assert_eq(tc_hash_read(said).kind, TC_HASH_NONE);
  room.kind = TRACECOLLECT__V1__HASH_KIND__HASH_SHA256;
  cr_assert_eq(tc_hash_read(said).kind, TC_HASH_NONE, "16 bytes are no SHA-256");
  cr_assert_null(tc_hash_put(&none, &room));
  cr_assert_eq(tc_hash_read(NULL).kind, TC_HASH_NONE);
}

Test(content_hash, kinds_have_names) {
  cr_assert_eq(tc_hash_of_name("xxh3"), TC_HASH_XXH3);
  cr_assert_eq(tc_hash_of_name("sha256"), TC_HASH_SHA256);
  cr_assert_eq(tc_hash_of_name(""), TC_HASH_NONE);
  cr_assert_eq(tc_hash_of_name("md5"), TC_HASH_NONE);
  cr_assert_str_eq(tc_hash_name(TC_HASH_XXH3), "xxh3");
}
