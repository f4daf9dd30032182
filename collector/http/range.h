/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a representation a Range field asks for (RFC 9110, section 14). */
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

#endif
