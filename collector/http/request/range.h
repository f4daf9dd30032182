/* SPDX-License-Identifier: Apache-2.0 */
/* What fields of a request ask for: a part of a representation (RFC 9110, section 14), a checksum of it (RFC 9530), a form. */
#ifndef TC_HTTP_RANGE_H
#define TC_HTTP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum tc_http_range_kind {
  TC_HTTP_WHOLE, /* none given, or one a server may pass over: another unit, several parts */
  TC_HTTP_PART,  /* 206 */
  TC_HTTP_UNSATISFIABLE, /* 416 */
};

struct tc_http_range {
  enum tc_http_range_kind kind;
  uint64_t first, bytes; /* WHOLE: 0 and all */
};

struct tc_http_range tc_http_range_of(const char *field, uint64_t total);

/* Does If-None-Match (or If-Range) name this tag, quotes included? A weak W/ prefix is passed over for
 * If-None-Match only. */
bool tc_http_tag_listed(const char *field, const char *tag, bool weak_too);

/* Which checksum Want-Content-Digest wants most, of those we have. */
enum tc_http_digest { TC_HTTP_NO_DIGEST, TC_HTTP_CRC32C, TC_HTTP_SHA256 };
enum tc_http_digest tc_http_digest_of(const char *field);

/* Does Accept name protobuf? What it prefers to what is not asked: whoever names it can read it. */
bool tc_http_wants_protobuf(const char *field);

#endif
