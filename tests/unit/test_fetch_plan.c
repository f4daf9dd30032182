/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector answers is not trusted: numbers that do not fit together are refused by name. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/tracectl/fetch_plan.h"

typedef Tracecollect__V1__GenerationMeta generation_meta;
typedef Tracecollect__V1__SegmentInfo segment_info;

enum { SEGMENT_BYTES = 1000 };

static tb_rc plan_of(uint64_t offset, uint64_t bytes, struct tb_diag *diag) {
  generation_meta gen = TRACECOLLECT__V1__GENERATION_META__INIT, *gens[] = { &gen };
  segment_info segment = TRACECOLLECT__V1__SEGMENT_INFO__INIT, *segments[] = { &segment };
  Tracecollect__V1__ListReply page = TRACECOLLECT__V1__LIST_REPLY__INIT;
  struct tk_selector selector = { 0 };
  struct tk_plan plan;

  gen.gen = 1;
  gen.offset = offset;
  gen.bytes = bytes;
  segment.bytes = SEGMENT_BYTES;
  segment.first_gen = segment.last_gen = 1;
  segment.generations = gens;
  segment.n_generations = 1;
  page.segments = segments;
  page.n_segments = 1;
  tb_diag_clear(diag);
  tk_plan_init(&plan, &selector);
  tb_rc rc = tk_plan_take(&plan, &page, diag);
  tk_plan_fini(&plan);
  return rc;
}

Test(fetch_plan, a_generation_lies_inside_its_segment) {
  static const struct {
    uint64_t offset, bytes;
  } outside[] = { { 0, 10 },
                  { 16, SEGMENT_BYTES },
                  { 16, UINT64_MAX - 15 },
                  { SEGMENT_BYTES, UINT64_MAX - SEGMENT_BYTES + 1 },
                  { SEGMENT_BYTES + 1, 0 },
                  { UINT64_MAX, 1 } };
  struct tb_diag diag;

  cr_assert_eq(plan_of(16, SEGMENT_BYTES - 16, &diag), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
    cr_assert_eq(plan_of(outside[i].offset, outside[i].bytes, &diag), TB_BROKEN, "%zu", i);
    cr_assert_not_null(strstr(diag.text, "the index of its generations is broken"), "%s",
                       diag.text);
  }
}
