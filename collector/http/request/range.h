/* SPDX-License-Identifier: Apache-2.0 */
/* Parses request fields for a range (RFC 9110, section 14), a checksum (RFC 9530) and a content type. */
#ifndef TC_HTTP_RANGE_H
#define TC_HTTP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum tc_http_range_kind {
  TC_HTTP_WHOLE, /* no range, or one that a server may ignore: another unit, several parts */
  TC_HTTP_PART,  /* 206 */
  TC_HTTP_UNSATISFIABLE, /* 416 */
};

struct tc_http_range {
  enum tc_http_range_kind kind;
  uint64_t first, bytes; /* WHOLE: 0 and all */
};

struct tc_http_range tc_http_range_of(const char *field, uint64_t total);

/* Does If-None-Match (or If-Range) have this tag, with quotes? weak_too: ignore a W/ prefix (If-None-Match only). */
bool tc_http_tag_listed(const char *field, const char *tag, bool weak_too);

/* Returns the supported checksum that Want-Content-Digest prefers. */
enum tc_http_digest { TC_HTTP_NO_DIGEST, TC_HTTP_CRC32C, TC_HTTP_SHA256 };
enum tc_http_digest tc_http_digest_of(const char *field);

/* Does Accept name protobuf? Preferences are ignored. */
bool tc_http_wants_protobuf(const char *field);

#endif
