/* SPDX-License-Identifier: Apache-2.0 */
/* A collector's answers are not trusted: the error for numbers that do not fit together names
 * them. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/tracectl/fetch/plan.h"

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

/* Three generations in one file; according to the second, it was traced an hour before. */
Test(fetch_plan, a_clock_that_was_set_back_parts_what_is_asked_for) {
  enum { HOUR_S = 3600, PIECE = 100 };
  generation_meta gen[3], *gens[] = { &gen[0], &gen[1], &gen[2] };
  segment_info segment = TRACECOLLECT__V1__SEGMENT_INFO__INIT, *segments[] = { &segment };
  Tracecollect__V1__ListReply page = TRACECOLLECT__V1__LIST_REPLY__INIT;
  const uint64_t second = 1000000000, noon = UINT64_C(1700000000) * second;
  struct tk_selector selector = { .since_wall_ns = noon, .until_wall_ns = noon + 10 * second };
  struct tb_diag diag;
  struct tk_plan plan;

  for (unsigned i = 0; i < 3; i++) {
    tracecollect__v1__generation_meta__init(&gen[i]);
    gen[i].gen = i + 1;
    gen[i].offset = 16 + i * PIECE;
    gen[i].bytes = PIECE;
    gen[i].first_ns = gen[i].clock_ns = (int64_t)(i * second) + 1;
    gen[i].last_ns = gen[i].first_ns + (int64_t)second - 1;
    gen[i].clock_wall_ns = noon + i * second - (i == 1 ? HOUR_S * second : 0);
  }
  segment.bytes = 16 + 3 * PIECE;
  segment.first_gen = 1;
  segment.last_gen = 3;
  segment.generations = gens;
  segment.n_generations = 3;
  page.segments = segments;
  page.n_segments = 1;
  tb_diag_clear(&diag);
  tk_plan_init(&plan, &selector);
  cr_assert_eq(tk_plan_take(&plan, &page, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tk_plan_finish(&plan, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(plan.n_pieces, 2);
  cr_assert_eq(plan.pieces[0].last_gen, 1);
  cr_assert_eq(plan.pieces[1].first_gen, 3);
  cr_assert(plan.pieces[1].begins_file && !plan.pieces[1].whole);
  cr_assert_eq(plan.n_gaps, 1);
  cr_assert_not_null(strstr(plan.gaps[0].why, "outside the asked time"), "%s", plan.gaps[0].why);
  tk_plan_fini(&plan);

  selector = (struct tk_selector){ .since_wall_ns = noon - HOUR_S * second,
                                   .until_wall_ns = noon - (HOUR_S - 2) * second };
  tk_plan_init(&plan, &selector);
  cr_assert_eq(tk_plan_take(&plan, &page, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(plan.n_pieces, 1);
  cr_assert_eq(plan.pieces[0].first_gen, 2);
  cr_assert_eq(plan.pieces[0].last_gen, 2);
  tk_plan_fini(&plan);
}

Test(fetch_plan, a_file_may_be_cut_behind_a_broken_generation) {
  enum { PIECE = 100 };
  generation_meta gen[4], *gens[] = { &gen[0], &gen[1], &gen[2], &gen[3] };
  Tracecollect__V1__Verdict broken = TRACECOLLECT__V1__VERDICT__INIT;
  segment_info segment = TRACECOLLECT__V1__SEGMENT_INFO__INIT, *segments[] = { &segment };
  Tracecollect__V1__ListReply page = TRACECOLLECT__V1__LIST_REPLY__INIT;
  struct tk_selector selector = { 0 };
  struct tb_diag diag;
  struct tk_plan plan;

  for (unsigned i = 0; i < 4; i++) {
    tracecollect__v1__generation_meta__init(&gen[i]);
    gen[i].gen = i + 1;
    gen[i].offset = 16 + i * PIECE;
    gen[i].bytes = PIECE;
  }
  broken.code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN;
  gen[1].verdict = &broken;
  segment.bytes = 16 + 4 * PIECE;
  segment.first_gen = 1;
  segment.last_gen = 4;
  segment.generations = gens;
  segment.n_generations = 4;
  page.segments = segments;
  page.n_segments = 1;
  tb_diag_clear(&diag);
  tk_plan_init(&plan, &selector);
  cr_assert_eq(tk_plan_take(&plan, &page, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tk_plan_finish(&plan, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(plan.n_pieces, 1);
  cr_assert(plan.pieces[0].whole);
  tk_plan_fini(&plan);
  tk_plan_init(&plan, &selector);
  plan.splits_broken = true;
  cr_assert_eq(tk_plan_take(&plan, &page, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tk_plan_finish(&plan, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(plan.n_broken, 1);
  cr_assert_eq(plan.n_gaps, 0);
  cr_assert_eq(plan.n_pieces, 2);
  cr_assert_eq(plan.pieces[0].last_gen, 2);
  cr_assert(plan.pieces[0].ends_broken && !plan.pieces[0].whole);
  cr_assert_eq(plan.pieces[1].first_gen, 3);
  cr_assert_eq(plan.pieces[1].offset, 16 + 2 * PIECE);
  cr_assert_eq(plan.pieces[1].len, 2 * PIECE);
  cr_assert(plan.pieces[1].begins_file && !plan.pieces[1].whole);
  tk_plan_fini(&plan);
}
