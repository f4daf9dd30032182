/* SPDX-License-Identifier: Apache-2.0 */
/* All of lib/ over real traces with an allocator that refuses one request: the call that needed
 * the memory fails, and every byte is freed. */
#include <criterion/criterion.h>

#include "online/analysis/analysis.h"
#include "online/analysis/durations.h"
#include "online/event/allocfree.h"
#include "online/trace/pull.h"
#include "support/seeds.h"

/* An allocator that refuses the n-th request and, if it is to be permanent, all that follow. */
struct scarce {
  size_t left;
  bool for_good, refused;
};

static void *scarce_resize(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct scarce *scarce = self;

  if (new_bytes > old_bytes) {
    if (scarce->left-- == 0) {
      scarce->left = scarce->for_good ? 0 : SIZE_MAX;
      scarce->refused = true;
      return NULL;
    }
  }
  return tb_mem_libc(NULL, block, old_bytes, new_bytes);
}

struct pipeline {
  struct tb_mem mem;
  struct to_pull *pull;
  struct to_durations *durations;
  struct to_analyses *analyses;
  struct to_allocfree allocfree;
};

static tb_rc look(struct pipeline *p, const struct to_event *ev, const struct to_generation *gen) {
  struct to_heap_event heap;
  struct to_duration lasted;

  if (gen != NULL && ev->type == TW_EV_SYNC) TB_TRY(to_allocfree_generation(&p->allocfree, gen));
  (void)to_allocfree_event(&p->allocfree, ev, &heap);
  TB_TRY(to_durations_events(p->durations, gen, ev, 1, &lasted));
  return to_analyses_events(p->analyses, gen, ev, 1);
}

static tb_rc report_all(struct pipeline *p) {
  const struct to_report *report;

  for (unsigned kind = 0; kind < TO_ANALYSIS_KINDS; kind++)
    for (unsigned window = 0; window < TO_WINDOWS; window++)
      TB_TRY(to_analyses_report(p->analyses, (enum to_analysis_kind)kind, (enum to_window)window,
                                10, &report));
  return TB_OK;
}

static tb_rc work(struct pipeline *p, const unsigned char *trace, size_t n) {
  const struct to_analysis_config config = { .blocked_after_ns = 1000, .stacks_max = 50 };
  struct to_part part = { trace, 16, 16, n, 0 };
  const struct to_generation *gen;
  const struct to_event *ev;
  tb_rc rc;

  TB_TRY(to_analyses_new(&p->mem, &config, &p->analyses));
  TB_TRY(to_durations_new(&p->mem, &p->durations));
  TB_TRY(to_pull_new(&p->mem, NULL, 0, to_part_source(&part), NULL, &p->pull));
  while ((rc = to_pull_next(p->pull, &ev, &gen)) == TB_OK) TB_TRY(look(p, ev, gen));
  if (rc != TB_END) return rc;
  TB_TRY(to_analyses_generation_ends(p->analyses, NULL));
  return report_all(p);
}

static tb_rc run(const struct tt_input *input, struct scarce *scarce) {
  struct pipeline p = { 0 };

  tb_mem_init(&p.mem, scarce_resize, scarce, SIZE_MAX);
  to_allocfree_init(&p.allocfree, &p.mem);
  tb_rc rc = work(&p, input->data, input->len);
  to_pull_free(p.pull);
  to_durations_free(p.durations);
  to_analyses_free(p.analyses);
  to_allocfree_fini(&p.allocfree);
  cr_assert_eq(p.mem.bytes, 0);
  return rc;
}

/* I10, I19. A single refused request may have no visible effect: it may have been for something
 * that is only kept for speed. */
Test(scarce, a_refused_request_is_told_and_leaks_nothing) {
  struct tt_pack seeds = tt_seeds_load();
  unsigned reported = 0;

  for (size_t i = 0; i < seeds.n; i++)
    for (size_t at = i % 3;; at += 1 + at / 8) {
      struct scarce scarce = { .left = at, .for_good = at % 2 == 0 };
      tb_rc rc = run(&seeds.input[i], &scarce);
      if (!scarce.refused) break;
      cr_assert(rc == TB_NOMEM || rc == TB_OK, "seed %zu, request %zu: %s", i, at, tb_rc_name(rc));
      if (scarce.for_good) cr_assert_eq(rc, TB_NOMEM, "seed %zu, request %zu", i, at);
      reported += rc == TB_NOMEM;
    }
  cr_assert_gt(reported, 20 * seeds.n);
  tt_pack_free(&seeds);
}
