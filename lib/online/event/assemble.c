/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/assemble.h"

#include <inttypes.h>
#include <string.h>

#include "wire/sections.h"

tb_rc to__keep_batch(struct to_generation *gen, struct tw_batch *batch) {
  void *copy;

  TB_TRY(tb_arena_alloc(&gen->bytes_arena, batch->len + TO_BATCH_SLACK, &copy));
  if (batch->len > 0) memcpy(copy, batch->data, batch->len);
  memset((char *)copy + batch->len, 0, TO_BATCH_SLACK);
  batch->data = copy;
  return TB_OK;
}

static tb_rc add_strings(struct to_generation *gen, struct tw_section *section) {
  struct tw_string string;
  void *slot;
  tb_rc rc;

  while ((rc = tw_string_next(section, &string)) == TB_OK) {
    if (to__ids_has(&gen->string_ids, string.id))
      return tb_fail(section->diag, TB_BROKEN, "string id %" PRIu64 " is given twice", string.id);
    TB_TRY(to__vec_add(gen->mem, &gen->strings, sizeof(struct to_string), &slot));
    *(struct to_string *)slot = (struct to_string){ (const char *)string.data, string.len };
    TB_TRY(to__ids_put(&gen->string_ids, string.id, (uint32_t)gen->strings.count - 1));
  }
  return rc;
}

static tb_rc add_stack(struct to_generation *gen, const struct tw_section *section,
                       const struct tw_stack *stack) {
  void *slot;

  if (to__ids_has(&gen->stack_ids, stack->id))
    return tb_fail(section->diag, TB_BROKEN, "stack id %" PRIu64 " is given twice", stack->id);
  TB_TRY(to__vec_add(gen->mem, &gen->stacks, sizeof(struct to_stack), &slot));
  *(struct to_stack *)slot =
      (struct to_stack){ .frames = stack->frames, .id = stack->id, .nframes = stack->nframes };
  return to__ids_put(&gen->stack_ids, stack->id, (uint32_t)gen->stacks.count - 1);
}

/* Stacks are not sorted by id, so the table entry of each is prefetched while the next one is read. */
static tb_rc add_stacks(struct to_generation *gen, struct tw_section *section) {
  struct tw_stack stacks[2];
  unsigned n = 0;
  tb_rc rc;

  section->string_id_max = gen->stack_string_max;
  for (; (rc = tw_stack_next(section, &stacks[n % 2])) == TB_OK; n++) {
    to__ids_fetch(&gen->stack_ids, stacks[n % 2].id);
    if (n > 0) TB_TRY(add_stack(gen, section, &stacks[(n - 1) % 2]));
  }
  if (n > 0) TB_TRY(add_stack(gen, section, &stacks[(n - 1) % 2]));
  gen->stack_string_max = section->string_id_max;
  return rc;
}

static tb_rc add_samples(struct to_generation *gen, struct tw_section *section) {
  struct tw_cpu_sample sample;
  void *slot;
  tb_rc rc;

  while ((rc = tw_cpu_sample_next(section, &sample)) == TB_OK) {
    TB_TRY(to__vec_add(gen->mem, &gen->samples, sizeof(struct to_sample), &slot));
    *(struct to_sample *)slot = (struct to_sample){ sample.m, sample.p, sample.g, sample.stack };
    TB_TRY(to__vec_add(gen->mem, &gen->sample_times, sizeof(struct to_heap_entry), &slot));
    /* Times are raw ticks until the frequency is known. */
    *(struct to_heap_entry *)slot = (struct to_heap_entry){ .time = (to_ns)sample.time };
  }
  return rc;
}

static tb_rc add_sync(struct to_generation *gen, struct tw_section *section, uint64_t ticks) {
  struct tw_sync sync;
  tb_rc rc;

  while ((rc = tw_sync_next(section, gen->version, &sync)) == TB_OK || rc == TB_AGAIN) {
    /* A second one is refused even if its numbers are cut off. */
    bool frequency = sync.type == TW_EV_FREQUENCY;
    if (frequency ? gen->ns_per_tick != 0 : gen->has_clock)
      return tb_fail(section->diag, TB_BROKEN, "the generation has two %s",
                     frequency ? "frequencies" : "clock snapshots");
    if (rc == TB_AGAIN) return rc;
    if (frequency) {
      gen->ns_per_tick = 1.0 / ((double)sync.args[0] / 1e9);
    } else {
      ticks += sync.args[0];
      gen->has_clock = true;
      memcpy(gen->clock, sync.args, sizeof gen->clock);
      gen->clock[0] = ticks;
    }
  }
  return rc;
}

/* Reads the program's own experiments. A batch without their magic line is something else. */
static tb_rc add_specs(struct to_generation *gen, const struct tw_batch *batch,
                       struct tb_diag *diag) {
  const char *text;
  size_t len;

  if (!tw_experiments_text(batch->experiment, batch->data, batch->len, &text, &len)) return TB_OK;
  if (gen->experiments == NULL) {
    TB_TRY(tb_mem_alloc(gen->mem, sizeof *gen->experiments, &gen->experiments));
    tw_experiments_init(gen->experiments);
  }
  return tw_experiments_read(gen->experiments, text, len, true, diag);
}

static tb_rc add_experimental(struct to_generation *gen, const struct tw_batch *batch,
                              uint64_t offset, struct tb_diag *diag) {
  void *slot;

  TB_TRY(add_specs(gen, batch, diag));
  TB_TRY(to__vec_add(gen->mem, &gen->experimental, sizeof(struct to_experimental), &slot));
  *(struct to_experimental *)slot = (struct to_experimental){ .experiment = batch->experiment,
                                                              .thread = batch->thread,
                                                              .data = batch->data,
                                                              .len = batch->len,
                                                              .offset = offset };
  return TB_OK;
}

static tb_rc add_events(struct to_generation *gen, const struct tw_batch *batch, uint64_t offset) {
  uint64_t *place;
  bool fresh;
  void *block;
  struct to_batch *added;

  TB_TRY(tb_map_put(&gen->place_by_thread, (uint64_t)batch->thread, &place, &fresh));
  if (fresh) {
    TB_TRY(to__vec_add(gen->mem, &gen->threads, sizeof(struct to_thread_batches), &block));
    *(struct to_thread_batches *)block = (struct to_thread_batches){ .thread = batch->thread };
    *place = gen->threads.count - 1;
  }
  struct to_thread_batches *batches = (struct to_thread_batches *)gen->threads.items + *place;
  TB_TRY(tb_arena_alloc(&gen->batches, sizeof(struct to_batch), &added));
  *added = (struct to_batch){
    .data = batch->data, .end = batch->data + batch->len, .time = batch->time, .offset = offset
  };
  if (batches->last == NULL)
    batches->first = added;
  else
    batches->last->next = added;
  batches->last = added;
  return TB_OK;
}

static tb_rc add_table(struct to_generation *gen, const struct tw_batch *batch,
                       enum tw_batch_kind kind, struct tb_diag *diag) {
  struct tw_section section;
  tb_rc rc;

  tw_section_open(&section, batch, gen->version, diag);
  if (kind == TW_BATCH_STRINGS)
    rc = add_strings(gen, &section);
  else if (kind == TW_BATCH_STACKS)
    rc = add_stacks(gen, &section);
  else if (kind == TW_BATCH_CPU_SAMPLES)
    rc = add_samples(gen, &section);
  else
    rc = add_sync(gen, &section, batch->time);
  if (rc == TB_END) return TB_OK;
  return rc == TB_AGAIN ? TB_END : rc;
}

tb_rc to__add_batch(struct to_generation *gen, const struct tw_batch *batch, uint64_t offset,
                    struct tb_diag *diag) {
  enum tw_batch_kind kind = tw_batch_kind(batch, gen->version);

  tb_diag_place(diag, batch->gen, batch->thread, offset);
  if (gen->time_min == 0 || batch->time < gen->time_min) gen->time_min = batch->time;
  gen->bytes += batch->len;
  switch (kind) {
  case TW_BATCH_EVENTS: return add_events(gen, batch, offset);
  case TW_BATCH_EXPERIMENTAL: return add_experimental(gen, batch, offset, diag);
  case TW_BATCH_END:
    return tb_fail(diag, TB_BROKEN, "an end of generation stands where go 1.%u has none",
                   gen->version);
  default: return add_table(gen, batch, kind, diag);
  }
}

/* Checks that each frame's names are in the string table; for each PC only the first frame counts. */
static tb_rc check_frames(struct to_generation *gen, struct tb_diag *diag) {
  const struct to_stack *stacks = gen->stacks.items;

  if (gen->stack_string_max < gen->string_ids.all_below) return TB_OK;
  TB_TRY(to__frames_make(gen));
  for (size_t i = 0; i < gen->stacks.count; i++) {
    const unsigned char *pos = stacks[i].frames;
    for (uint32_t n = 0; n < stacks[i].nframes; n++) {
      struct tw_frame frame;
      pos = tw_frame_read(pos, &frame);
      const uint64_t *first = tb_map_find(&gen->frame_by_pc, frame.pc);
      tw_frame_read((const unsigned char *)(uintptr_t)*first, &frame);
      uint64_t unknown =
          !to__ids_has(&gen->string_ids, frame.function) ? frame.function : frame.file;
      if (!to__ids_has(&gen->string_ids, unknown))
        return tb_fail(diag, TB_BROKEN,
                       "stack %" PRIu64 " names string %" PRIu64
                       ", which the generation does not have",
                       stacks[i].id, unknown);
    }
  }
  return TB_OK;
}

static void sort_samples(struct to_generation *gen) {
  struct to_sample *samples = gen->samples.items;
  struct to_heap_entry *times = gen->sample_times.items;

  for (size_t i = 0; i < gen->sample_times.count; i++) {
    times[i].time = to__ticks_ns(gen->ns_per_tick, (uint64_t)times[i].time);
    times[i].value = &samples[i];
  }
  to__sort(times, gen->sample_times.count);
}

tb_rc to__complete(struct to_generation *gen, struct tb_diag *diag) {
  tb_diag_place(diag, gen->number, TB_NO_THREAD, TB_NO_OFFSET);
  if (gen->ns_per_tick == 0) return tb_fail(diag, TB_BROKEN, "no frequency found");
  if (gen->version >= 25 && !gen->has_clock)
    return tb_fail(diag, TB_BROKEN, "no clock snapshot found");
  to__ids_settle(&gen->string_ids);
  to__ids_settle(&gen->stack_ids);
  TB_TRY(check_frames(gen, diag));
  sort_samples(gen);
  return TB_OK;
}
