/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/archive.pb-c.h"
#include "proto/json.h"
#include "proto/json_read.h"

enum { MEMORY_MAX = 1 << 20, BODY_BYTES = 64 << 10 };

static struct tb_mem mem;
static struct tb_arena arena;
static struct tb_diag diag;

static void begin(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_arena_init(&arena, &mem, 4096);
  tb_diag_clear(&diag);
}

/* Reads from a buffer of the exact size, so that a sanitizer notices a read past it. */
static tb_rc read_as(const ProtobufCMessageDescriptor *of, const char *text, size_t n, void *out) {
  char *copy = malloc(n);

  memcpy(copy, text, n);
  tb_rc rc = tp_json_read(of, copy, n, &arena, &diag, out);
  free(copy);
  return rc;
}

static void expect_fault(const ProtobufCMessageDescriptor *of, const char *text,
                         const char *words) {
  ProtobufCMessage *message;

  begin();
  cr_expect_eq(read_as(of, text, strlen(text), &message), TB_PROTOCOL, "%s", text);
  cr_expect_not_null(strstr(diag.text, words), "%s: \"%s\" in \"%s\"", text, words, diag.text);
  tb_arena_fini(&arena);
}

Test(json_read, what_is_written_is_read_again) {
  const ProtobufCMessageDescriptor *lease = &tracecollect__v1__lease_request__descriptor;
  static const char text[] =
      "{\"filter\":{\"service\":\"sh\\u00f6p \\\"1\\\"\",\"instance\":\"\",\"service_prefix\":\"\","
      "\"instance_prefix\":\"\",\"stream\":\"00ffA0\",\"kinds\":[\"GoStart\",\"stw\"],"
      "\"goroutine\":9223372036854775807,\"min_duration_ns\":1},\"window_bytes\":0}";
  Tracecollect__V1__LeaseRequest *read;
  struct tb_buf out;

  begin();
  cr_assert_eq(read_as(lease, text, strlen(text), &read), TB_OK, "%s", diag.text);
  cr_expect_str_eq(read->filter->service, "sh\xc3\xb6p \"1\"");
  cr_expect_eq(read->filter->n_kinds, 2);
  cr_expect_str_eq(read->filter->kinds[1], "stw");
  cr_expect_eq(read->filter->stream.len, 3);
  cr_expect_eq(read->filter->stream.data[2], 0xa0);
  tb_buf_init(&out, &mem);
  tp_json_message(&out, &read->base);
  cr_assert_eq(read_as(lease, (char *)out.data, out.len, &read), TB_OK, "%s", diag.text);
  cr_expect_eq(read->filter->goroutine, INT64_MAX);
  tb_buf_fini(&out);
  tb_arena_fini(&arena);
}

Test(json_read, what_is_left_out_is_zero_and_no_text_is_nothing) {
  const char *const texts[] = { "", "{}", " { } \n" };
  Tracecollect__V1__SnapRequest *read;

  for (unsigned i = 0; i < 3; i++) {
    begin();
    cr_assert_eq(
        read_as(&tracecollect__v1__snap_request__descriptor, texts[i], strlen(texts[i]), &read),
        TB_OK);
    cr_expect_str_eq(read->service, "");
    cr_expect_eq(read->stream.len, 0);
    cr_expect_eq(read->last_ns, 0);
    tb_arena_fini(&arena);
  }
}

Test(json_read, what_is_wrong_is_named) {
  const ProtobufCMessageDescriptor *snap = &tracecollect__v1__snap_request__descriptor;
  const ProtobufCMessageDescriptor *lease = &tracecollect__v1__lease_request__descriptor;

  expect_fault(snap, "{\"servise\":\"a\"}", "no field \"servise\" in a SnapRequest");
  expect_fault(lease, "{\"filter\":{\"x\":1}}", "no field \"x\" in a EventFilter");
  expect_fault(snap, "{\"service\":1}", "service: must be a string");
  expect_fault(snap, "{\"service\":null}", "service: must be a string");
  expect_fault(snap, "{\"stream\":\"abc\"}", "stream: must be a string of hexadecimal");
  expect_fault(snap, "{\"stream\":\"zz\"}", "stream: must be a string of hexadecimal");
  expect_fault(snap, "{\"last_ns\":\"5\"}", "last_ns: must be a whole number");
  expect_fault(snap, "{\"last_ns\":-1}", "last_ns: must be a whole number");
  expect_fault(snap, "{\"last_ns\":1.0}", "last_ns: must be a whole number");
  expect_fault(snap, "{\"last_ns\":9223372036854775808}", "too big integer");
  expect_fault(snap, "{\"wait_ms\":4294967296}", "wait_ms: must be a whole number");
  expect_fault(&tracecollect__v1__list_request__descriptor, "{\"settle\":1}", "true or false");
  expect_fault(lease, "{\"filter\":[]}", "filter: must be an object");
  expect_fault(lease, "{\"filter\":{\"kinds\":\"stw\"}}", "kinds: must be a list");
  expect_fault(lease, "{\"filter\":{\"kinds\":[\"stw\",1]}}", "kinds: must be a string");
  expect_fault(snap, "{\"service\":\"a\",\"service\":\"b\"}", "duplicate object key");
  expect_fault(snap, "{\"service\":\"a\\u0000b\"}", "not JSON");
  expect_fault(snap, "{\"service\":\"\xff\"}", "not JSON");
  expect_fault(snap, "[]", "not an object");
  expect_fault(snap, "1", "not JSON");
  expect_fault(snap, "{} {}", "not JSON");
  expect_fault(snap, "{\"service\":\"a", "not JSON");
}

Test(json_read, a_text_cut_anywhere_is_a_fault) {
  static const char text[] =
      "{\"filter\":{\"service\":\"shop\",\"kinds\":[\"stw\"]},\"window_bytes\":7}";
  ProtobufCMessage *message;

  for (size_t n = 1; n < sizeof text - 1; n++) {
    begin();
    cr_expect_eq(read_as(&tracecollect__v1__lease_request__descriptor, text, n, &message),
                 TB_PROTOCOL, "%zu", n);
    tb_arena_fini(&arena);
  }
}

Test(json_read, deep_and_wide_texts_are_faults_not_crashes) {
  static char text[BODY_BYTES];
  ProtobufCMessage *message;
  size_t at;

  memset(text, '[', sizeof text);
  begin();
  cr_expect_eq(read_as(&tracecollect__v1__snap_request__descriptor, text, sizeof text, &message),
               TB_PROTOCOL);
  at = (size_t)sprintf(text, "{\"filter\":{\"kinds\":[\"\"");
  while (at < sizeof text - 8) at += (size_t)sprintf(text + at, ",\"\"");
  at += (size_t)sprintf(text + at, "]}}");
  tb_diag_clear(&diag);
  tb_rc rc = read_as(&tracecollect__v1__lease_request__descriptor, text, at, &message);
  cr_expect(rc == TB_OK || rc == TB_BUDGET, "%d %s", rc, diag.text);
  tb_arena_fini(&arena);
}
