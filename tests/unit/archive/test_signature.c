/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as files, and metas that a store signs with them, metas that the store changes, and metas that others change. */
#include <criterion/criterion.h>
#include <endian.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "base/crc32c.h"
#include "support/patience.h"
#include "support/store_fixture.h"

enum { STREAM = 5, GENERATIONS = 3 };

static char folder[] = "/tmp/tc-keys-XXXXXX";
static char problems[4096];

static void path_in(const char *name, char out[300]) {
  snprintf(out, 300, "%s/%s", folder, name);
}

/* Makes NAME.key and NAME.pem, as openssl genpkey and openssl pkey -pubout do. */
static void make_key(const char *name, int type) {
  EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(type, NULL);
  EVP_PKEY *key = NULL;
  char file[64], path[300];

  cr_assert_eq(EVP_PKEY_keygen_init(ctx), 1);
  cr_assert_eq(EVP_PKEY_keygen(ctx, &key), 1);
  snprintf(file, sizeof file, "%s.key", name);
  path_in(file, path);
  FILE *f = fopen(path, "w");
  cr_assert_eq(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
  fclose(f);
  cr_assert_eq(chmod(path, 0600), 0);
  snprintf(file, sizeof file, "%s.pem", name);
  path_in(file, path);
  f = fopen(path, "w");
  cr_assert_eq(PEM_write_PUBKEY(f, key), 1);
  fclose(f);
  EVP_PKEY_free(key);
  EVP_PKEY_CTX_free(ctx);
}

static void open_folder(void) {
  cr_assert_not_null(mkdtemp(folder));
  make_key("ours", EVP_PKEY_ED25519);
  make_key("other", EVP_PKEY_ED25519);
}

static void remove_folder(void) {
  char command[64];

  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

static void shell(const char *command) {
  char line[500];

  snprintf(line, sizeof line, "cd %s && %s", folder, command);
  cr_assert_eq(system(line), 0, "%s", line);
}

static struct tc_keys *read_public(const char *name) {
  struct tb_diag diag = { 0 };
  struct tc_keys *keys;
  char path[300];

  path_in(name, path);
  cr_assert_eq(tc_keys_read_public(path, &diag, &keys), TB_OK, "%s", diag.text);
  return keys;
}

TestSuite(keys, .init = open_folder, .fini = remove_folder);

static void expect_refused(bool secret, const char *name, tb_rc want, const char *words) {
  struct tb_diag diag = { 0 };
  struct tc_keys *keys;
  char path[300];

  path_in(name, path);
  cr_expect_eq((secret ? tc_keys_read_private : tc_keys_read_public)(path, &diag, &keys), want);
  cr_expect_not_null(strstr(diag.text, words), "wanted \"%s\" in \"%s\"", words, diag.text);
}

Test(keys, what_one_key_signed_no_other_did) {
  struct tb_diag diag = { 0 };
  struct tc_signature signature;
  struct tc_keys *signer;
  char path[300];

  path_in("ours.key", path);
  cr_assert_eq(tc_keys_read_private(path, &diag, &signer), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_keys_sign(signer, "bytes", 5, &signature), TB_OK);
  cr_assert_eq(tc_keys_check(signer, "bytes", 5, &signature), TC_SIGNED_RIGHT);
  tc_keys_free(signer);
  struct tc_keys *ours = read_public("ours.pem"), *other = read_public("other.pem");
  cr_assert_eq(tc_keys_check(ours, "bytes", 5, &signature), TC_SIGNED_RIGHT);
  cr_assert_eq(tc_keys_check(ours, "bytex", 5, &signature), TC_SIGNED_WRONG);
  cr_assert_eq(tc_keys_check(other, "bytes", 5, &signature), TC_SIGNED_OTHER);
  tc_keys_free(other);
  shell("cat other.pem ours.pem >both.pem");
  struct tc_keys *both = read_public("both.pem");
  cr_assert_eq(tc_keys_check(both, "bytes", 5, &signature), TC_SIGNED_RIGHT);
  tc_keys_free(both);
  signature.bytes[0] ^= 1;
  cr_assert_eq(tc_keys_check(ours, "bytes", 5, &signature), TC_SIGNED_WRONG);
  tc_keys_free(ours);
}

Test(keys, a_file_that_is_no_use_is_named_with_the_reason) {
  make_key("x25519", EVP_PKEY_X25519);
  shell("cp ours.key open.key && chmod 0640 open.key && : >none.pem && echo text >text.pem");
  shell("(cat ours.key; echo '-----BEGIN PUBLIC KEY-----') >cut.key && chmod 0600 cut.key");
  shell("cat ours.key other.key >two.key && chmod 0600 two.key && chmod 0600 ours.pem");
  expect_refused(true, "open.key", TB_REFUSED,
                 "open.key: others may use this private key (mode 0640): its mode must be 0600");
  expect_refused(true, "missing.key", TB_IO, "missing.key: No such file or directory");
  expect_refused(true, "x25519.key", TB_BROKEN, "key 1 is of another kind, expected a private key");
  expect_refused(true, "ours.pem", TB_BROKEN, "block 1 is \"PUBLIC KEY\", expected a private key");
  expect_refused(true, "two.key", TB_BROKEN, "block 2 is \"PRIVATE KEY\", expected a public key");
  expect_refused(true, "cut.key", TB_BROKEN, "cut.key: block 2 is not valid PEM");
  expect_refused(false, "ours.key", TB_BROKEN, "block 1 is \"PRIVATE KEY\", expected a public key");
  expect_refused(false, "none.pem", TB_BROKEN, "none.pem: no public key in PEM");
  expect_refused(false, "text.pem", TB_BROKEN, "text.pem: no public key in PEM");
  expect_refused(false, ".", TB_BROKEN, "is not a regular file");
}

/* ---- a store that signs */

static void sign_with(const char *name) {
  struct tb_diag diag = { 0 };
  char path[300], assignment[330];

  path_in(name, path);
  snprintf(assignment, sizeof assignment, "archive.sign=%s", path);
  cr_assert_eq(tc_config_set(&tt.config, "archive.hash=sha256", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&tt.config, assignment, &diag), TB_OK);
}

static void open_store(void) {
  open_folder();
  tt_store_make(&tt);
  sign_with("ours.key");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

static void remove_store(void) {
  tt_fixture_remove();
  remove_folder();
}

TestSuite(signed_metas, .init = open_store, .fini = remove_store);

static void note_problem(void *self, const char *text) {
  (void)self;
  size_t len = strlen(problems);
  snprintf(problems + len, sizeof problems - len, "%s\n", text);
}

static struct tc_audited audit(const char *public_key) {
  struct tc_keys *keys = public_key != NULL ? read_public(public_key) : NULL;
  struct tc_audit_sink sink = { .problem = note_problem, .keys = keys };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  problems[0] = '\0';
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  close(fd);
  tc_keys_free(keys);
  return seen;
}

/* Writes n generations, each in its own file. */
static struct tt_writer write_generations(unsigned n) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= n; gen++) tt_generation(&w, gen, 3, 700);
  tt_barrier(&tt);
  return w;
}

static void meta_path(uint64_t gen, char out[192]) {
  char command[400];

  snprintf(command, sizeof command, "cd %s && ls archive/*/*/%016lx.meta", tt.dir,
           (unsigned long)gen);
  FILE *ls = popen(command, "r");
  cr_assert_not_null(fgets(out, 192, ls));
  pclose(ls);
  out[strcspn(out, "\n")] = '\0';
}

/* Changes a byte and makes the checksum right again, as a person who knows the format would. */
static void forge(uint64_t gen, size_t offset, unsigned char x) {
  char path[192], full[300];
  size_t len;

  meta_path(gen, path);
  unsigned char *bytes = (unsigned char *)tt_read_file(&tt, path, &len);
  bytes[offset] ^= x;
  uint32_t crc = htole32(tb_crc32c(0, bytes + 12, len - 16));
  memcpy(bytes + len - 4, &crc, 4);
  snprintf(full, sizeof full, "%s/%s", tt.dir, path);
  FILE *f = fopen(full, "w");
  cr_assert_eq(fwrite(bytes, 1, len, f), len);
  fclose(f);
  free(bytes);
}

static void strip_signature(uint64_t gen) {
  struct tb_diag diag = { 0 };
  char path[192];
  tc_meta *meta;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  meta_path(gen, path);
  cr_assert_eq(tc_meta_read(fd, path, &diag, &meta), TB_OK, "%s", diag.text);
  cr_assert_not_null(meta->signature);
  cr_assert_eq(tc_meta_write(fd, path, meta, NULL, false, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_meta_publish(fd, path, &diag), TB_OK, "%s", diag.text);
  tc_meta_free(meta);
  close(fd);
}

static void expect_problem(const char *public_key, uint64_t gen, const char *words) {
  char path[192], want[300];

  meta_path(gen, path);
  snprintf(want, sizeof want, "%s: %s", path, words);
  (void)audit(public_key);
  cr_assert_not_null(strstr(problems, want), "wanted \"%s\" in \"%s\"", want, problems);
}

Test(signed_metas, each_is_signed_and_the_right_key_says_so) {
  struct tt_writer w = write_generations(GENERATIONS);
  struct tc_audited seen;

  tt_close(&w);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  seen = audit("ours.pem");
  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.signed_metas, seen.segments);
  cr_assert_eq(audit(NULL).problems, 0, "%s", problems);
  cr_assert_eq(audit("other.pem").problems, seen.segments, "%s", problems);
  cr_assert_not_null(strstr(problems, ".meta: is signed with another key, "), "%s", problems);
}

/* The signed bytes are the file up to the field with tag 200, as docs/FORMAT.md specifies. */
Test(signed_metas, the_signed_bytes_are_those_of_the_file) {
  enum { FIELD_BYTES = 2 + 1 + 2 + TC_KEY_ID_BYTES + 2 + TC_SIGNATURE_BYTES };
  struct tc_keys *keys = read_public("ours.pem");
  struct tc_signature signature;
  char path[192];
  size_t len;

  (void)write_generations(1);
  tt_store_stop(&tt);
  meta_path(1, path);
  char *bytes = tt_read_file(&tt, path, &len);
  const char *field = bytes + len - 4 - FIELD_BYTES;
  cr_assert_eq(memcmp(field, "\xc2\x0c\x54\x0a\x10", 5), 0);
  memcpy(signature.key, field + 5, sizeof signature.key);
  cr_assert_eq(memcmp(field + 5 + TC_KEY_ID_BYTES, "\x12\x40", 2), 0);
  memcpy(signature.bytes, field + 7 + TC_KEY_ID_BYTES, sizeof signature.bytes);
  cr_assert_eq(tc_keys_check(keys, bytes, (size_t)(field - bytes), &signature), TC_SIGNED_RIGHT);
  tc_keys_free(keys);
  free(bytes);
}

Test(signed_metas, any_changed_byte_of_a_meta_is_found) {
#ifdef TC_SANITIZED
  enum { SOME = 13 };
#else
  enum { SOME = 3 };
#endif
  size_t len;
  char path[192];

  (void)write_generations(1);
  tt_store_stop(&tt);
  meta_path(1, path);
  free(tt_read_file(&tt, path, &len));
  for (size_t at = 0; at < len - 4; at += tt_full() ? 1 : SOME) {
    forge(1, at, 4);
    cr_assert_gt(audit("ours.pem").problems, 0, "byte %zu of %zu", at, len);
    forge(1, at, 4);
  }
  cr_assert_eq(audit("ours.pem").problems, 0, "%s", problems);
}

Test(signed_metas, a_forged_and_a_missing_signature_are_named) {
  size_t len;
  char path[192];

  (void)write_generations(GENERATIONS);
  tt_store_stop(&tt);
  meta_path(2, path);
  free(tt_read_file(&tt, path, &len));
  forge(2, len - 5, 1); /* the last byte of the signature */
  expect_problem("ours.pem", 2, "its signature is wrong");
  cr_assert_eq(audit(NULL).problems, 0, "%s", problems);
  strip_signature(3);
  expect_problem("ours.pem", 3, "has no signature");
  cr_assert_eq(audit("ours.pem").signed_metas, 1);
}

Test(signed_metas, a_verdict_that_comes_later_leaves_them_signed) {
  struct tt_writer w = write_generations(GENERATIONS);

  for (uint64_t gen = 1; gen <= GENERATIONS; gen++)
    tt_verdict(&w, gen, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_barrier(&tt);
  tt_close(&w);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  struct tc_audited seen = audit("ours.pem");
  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.signed_metas, seen.segments);
}

/* The collector changes a meta again when its segment expires. If it signed the meta then, it would sign what a person had made
 * of it. */
Test(signed_metas, what_is_not_ours_is_not_signed_by_being_changed) {
  struct tt_writer w = write_generations(GENERATIONS);
  size_t len;
  char path[192];

  strip_signature(1);
  meta_path(2, path);
  free(tt_read_file(&tt, path, &len));
  forge(2, len - 5, 1);
  for (uint64_t gen = 1; gen <= GENERATIONS; gen++)
    tt_verdict(&w, gen, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_close(&w);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  expect_problem("ours.pem", 1, "has no signature");
  expect_problem("ours.pem", 2, "has no signature");
  cr_assert_null(strstr(problems, "0000000000000003.meta"), "%s", problems);
  cr_assert_not_null(strstr(tt.notes, "0000000000000002.meta: its signature is wrong; it is not "
                                      "signed again"),
                     "%s", tt.notes);
}

/* The key file has the new private key, and after it the earlier public key. Then metas that the earlier key signed are signed
 * again. */
Test(signed_metas, a_key_is_exchanged) {
  struct tt_writer w = write_generations(2);

  tt_store_stop(&tt);
  shell("cat other.key ours.pem >exchanged.key && chmod 0600 exchanged.key");
  sign_with("exchanged.key");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  w = tt_go_on(&tt, 2, STREAM, &w);
  tt_verdict(&w, 1, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_generation(&w, 3, 3, 700);
  tt_close(&w);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  (void)audit("other.pem");
  cr_assert_null(strstr(problems, "0000000000000001.meta"), "%s", problems);
  cr_assert_null(strstr(problems, "0000000000000003.meta"), "%s", problems);
  shell("cat other.pem ours.pem >both.pem");
  cr_assert_eq(audit("both.pem").problems, 0, "%s", problems);
}

Test(signed_metas, a_key_that_cannot_be_used_ends_the_start) {
  shell("chmod 0644 other.key");
  tt_store_stop(&tt);
  sign_with("other.key");
  cr_assert_eq(tt_store_start(&tt), TB_REFUSED);
  cr_assert_not_null(strstr(tt.notes, "archive.sign: "), "%s", tt.notes);
  cr_assert_not_null(strstr(tt.notes, "its mode must be 0600"), "%s", tt.notes);
}
