/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/online/analysis/fake_generation.h"

#include <criterion/criterion.h>
#include <string.h>

static struct to_string text(const char *s) {
  return (struct to_string){ .data = s, .len = strlen(s) };
}

uint64_t to_generation_number(const struct to_generation *gen) {
  return gen->number;
}

bool to_generation_string(const struct to_generation *gen, uint64_t id, struct to_string *out) {
  if (id > TT_FAKE_STRINGS || (id > 0 && gen->string[id] == NULL)) return false;
  *out = text(id == 0 ? "" : gen->string[id]);
  return true;
}

struct to_string to_generation_extra_string(const struct to_generation *gen, uint64_t id) {
  struct to_string string = text("");

  (void)to_generation_string(gen, id, &string);
  return string;
}

uint64_t to_stack_length(const struct to_generation *gen, uint64_t id) {
  uint64_t pcs[TT_FAKE_FRAMES];

  return to_stack_pcs(gen, id, pcs, TT_FAKE_FRAMES);
}

bool to_generation_stack_own(const struct to_generation *gen, uint64_t id,
                             struct to_stack_iter *out) {
  if (id > TT_FAKE_STACK_IDS) return false;
  *out = (struct to_stack_iter){ .gen = gen, .pos = NULL, .left = id * TT_FAKE_FRAMES };
  return true;
}

bool to_stack_next(struct to_stack_iter *it, struct to_frame *out) {
  if (it->left % TT_FAKE_FRAMES == TT_FAKE_FRAMES - 1) return false;
  const struct tt_fake_frame *f =
      &it->gen->stack[it->left / TT_FAKE_FRAMES][it->left % TT_FAKE_FRAMES];
  if (f->pc == 0) return false;
  it->left++;
  *out = (struct to_frame){
    .pc = f->pc, .line = f->line, .function = text(f->function), .file = text(f->file)
  };
  return true;
}

size_t to_stack_pcs(const struct to_generation *gen, uint64_t id, uint64_t *pcs, size_t max) {
  struct to_stack_iter it;
  struct to_frame frame;
  size_t n = 0;

  if (id == 0 || !to_generation_stack_own(gen, id, &it)) return 0;
  while (n < max && to_stack_next(&it, &frame)) pcs[n++] = frame.pc;
  return n;
}

bool to_generation_clock(const struct to_generation *gen, struct to_clock *out) {
  *out = gen->clock;
  return gen->clock.wall_s != 0;
}

size_t to_generation_experimental(const struct to_generation *gen,
                                  const struct to_experimental **out) {
  *out = gen->experimental;
  return gen->experimentals;
}

const struct tw_spec *to_generation_spec(const struct to_generation *gen, uint8_t type) {
  (void)gen;
  return tw_spec(type);
}

void tt_analyses_open(struct tt_analyses *t, to_ns blocked_after_ns, size_t stacks_max) {
  struct to_analysis_config config = { .has_stretches = true,
                                       .blocked_after_ns = blocked_after_ns,
                                       .stacks_max = stacks_max };
  tb_mem_init(&t->mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_analyses_new(&t->mem, &config, &t->a), TB_OK);
}

void tt_analyses_close(struct tt_analyses *t) {
  to_analyses_free(t->a);
  cr_assert_eq(t->mem.bytes, 0);
}

const struct to_report *tt_report(struct tt_analyses *t, enum to_analysis_kind kind,
                                  enum to_window window) {
  const struct to_report *report;
  cr_assert_eq(to_analyses_report(t->a, kind, window, 100, &report), TB_OK);
  return report;
}

static unsigned find_field(const struct to_field *field, unsigned n, const char *name) {
  int i = to_fields_find(field, n, name);

  cr_assert_geq(i, 0, "no %s in the schema", name);
  return (unsigned)i;
}

const struct to_value *tt_figure(const struct to_report *r, const char *name) {
  return &r->figure[find_field(r->schema->figure, r->schema->figures, name)];
}

const struct to_distribution *tt_distribution(const struct to_report *r, const char *name) {
  return tt_figure(r, name)->distribution;
}

void tt_median_is(const struct to_distribution *d, uint64_t ns) {
  double off = (double)d->p50_ns - (double)ns;

  cr_assert(d->has_quantiles);
  cr_assert_leq(off < 0 ? -off : off, (double)ns * to_histogram_error(d->histogram.scale) + 0.5,
                "%lu, not %lu", d->p50_ns, ns);
}

static unsigned find_table(const struct to_report *r, const char *name) {
  int t = to_schema_table(r->schema, name);

  cr_assert_geq(t, 0, "no table %s in the schema", name);
  return (unsigned)t;
}

const struct to_table *tt_table(const struct to_report *r, const char *name) {
  return &r->table[find_table(r, name)];
}

const struct to_value *tt_cell(const struct to_report *r, const char *table, size_t row,
                               const char *column) {
  unsigned t = find_table(r, table);
  const struct to_table_schema *schema = &r->schema->table[t];

  cr_assert_lt(row, r->table[t].rows);
  return to_table_row(schema, &r->table[t], row) +
         find_field(schema->column, schema->columns, column);
}
