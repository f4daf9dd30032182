/* SPDX-License-Identifier: Apache-2.0 */
/* Every event of real traces, packed into a lease's bundle and read by protobuf-c. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "online/trace/reader.h"
#include "pack/bundle.h"
#include "proto/archive.pb-c.h"
#include "proto/utf8.h"

static const unsigned char stream_id[16] = "sixteen bytes id";
static const struct tp_bundle_about whose = { stream_id, "shop", "host:1", 0, 0 };

struct run {
  struct tb_mem mem;
  struct to_durations *durations;
  struct tp_bundle bundle;
  struct to_allocfree heap;
  uint64_t position, gen, events, texts, type_names;
};

static unsigned char *load(const char *name, size_t *out_len) {
  static unsigned char packed[1 << 20];
  const char *source = getenv("TC_SOURCE_DIR");
  char path[512];

  snprintf(path, sizeof path, "%s/tests/data/%s", source != NULL ? source : ".", name);
  FILE *file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  size_t n = fread(packed, 1, sizeof packed, file);
  fclose(file);
  unsigned long long size = ZSTD_getFrameContentSize(packed, n);
  size_t len = size < (1 << 28) ? (size_t)size : 16 << 20;
  unsigned char *bytes = malloc(len);
  *out_len = ZSTD_decompress(bytes, len, packed, n);
  cr_assert_not(ZSTD_isError(*out_len));
  return bytes;
}

static tb_rc order(struct run *run, const char *name, struct to_event_sink sink) {
  struct to_reader *reader;
  size_t len;
  unsigned char *bytes = load(name, &len);

  tb_mem_init(&run->mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_durations_new(&run->mem, &run->durations), TB_OK);
  tp_bundle_init(&run->bundle, &run->mem);
  to_allocfree_init(&run->heap, &run->mem);
  cr_assert_eq(to_reader_new(&run->mem, &(struct to_limits){ 0 }, 0, sink, NULL, &reader), TB_OK);
  tb_rc rc = to_reader_read(reader, bytes, len);
  to_reader_free(reader);
  tp_bundle_fini(&run->bundle);
  to_durations_free(run->durations);
  to_allocfree_fini(&run->heap);
  cr_assert_eq(run->mem.bytes, 0);
  free(bytes);
  return rc;
}

static Tracecollect__V1__EventBundle *unpack(const struct tp_bundle *b) {
  size_t len = tp_bundle_bytes(b);
  uint8_t *bytes = malloc(len);

  tp_bundle_write(b, bytes);
  Tracecollect__V1__EventBundle *message = tracecollect__v1__event_bundle__unpack(NULL, len, bytes);
  free(bytes);
  cr_assert_not_null(message);
  return message;
}

static void check_text(struct run *run, const Tracecollect__V1__EventBundle *m, uint64_t index,
                       struct to_string want) {
  char repaired[3 * TW_STRING_BYTES_MAX + 1];

  cr_assert_lt(index, m->n_strings);
  repaired[tp_utf8_repair(want.data, want.len, repaired)] = '\0';
  cr_assert_str_eq(m->strings[index], repaired);
  run->texts++;
}

static void check_stack(struct run *run, const Tracecollect__V1__EventBundle *m, uint64_t index,
                        const struct to_generation *gen, uint64_t id) {
  struct to_stack_iter it;
  struct to_frame frame;
  size_t n = 0;

  cr_assert_lt(index, m->n_stacks);
  const Tracecollect__V1__BundleStack *stack = m->stacks[index];
  if (!to_generation_stack(gen, id, &it)) {
    cr_assert_eq(stack->n_frames, 0);
    return;
  }
  for (; to_stack_next(&it, &frame); n++) {
    cr_assert_lt(n, stack->n_frames);
    cr_assert_lt(stack->frames[n], m->n_frames);
    const Tracecollect__V1__BundleFrame *got = m->frames[stack->frames[n]];
    cr_assert_eq(got->pc, frame.pc);
    cr_assert_eq(got->line, frame.line);
    check_text(run, m, got->function, frame.function);
    check_text(run, m, got->file, frame.file);
  }
  cr_assert_eq(n, stack->n_frames);
}

static void check_args(struct run *run, const Tracecollect__V1__EventBundle *m,
                       const Tracecollect__V1__LeasedEvent *got, const struct to_generation *gen,
                       const struct to_event *ev) {
  enum tw_arg_type types[4];
  struct to_string text;

  cr_assert_eq(got->n_args, to_event_args(ev->type, types));
  for (size_t i = 0; i < got->n_args; i++) {
    if (types[i] == TW_ARG_STACK) {
      check_stack(run, m, got->args[i], gen, ev->args[i]);
    } else if (types[i] != TW_ARG_STRING) {
      cr_assert_eq(got->args[i], ev->args[i]);
    } else if (ev->type == TW_EV_USER_TASK_END) {
      check_text(run, m, got->args[i], to_generation_extra_string(gen, ev->args[i]));
    } else {
      cr_assert(to_generation_string(gen, ev->args[i], &text));
      check_text(run, m, got->args[i], text);
    }
  }
}

static void check_type_name(struct run *run, const Tracecollect__V1__EventBundle *m,
                            const Tracecollect__V1__LeasedEvent *got, const struct to_event *ev) {
  struct to_heap_event heap;
  bool is_heap = to_allocfree_event(&run->heap, ev, &heap);

  cr_assert_eq(got->type_name != 0, is_heap && heap.type != NULL);
  if (got->type_name == 0) return;
  check_text(run, m, got->type_name, heap.type->name);
  run->type_names++;
}

static void check_type(const Tracecollect__V1__EventBundle *m, uint32_t type) {
  enum tw_arg_type types[4];

  for (size_t i = 0; i < m->n_types; i++) {
    if (m->types[i]->type != type) continue;
    cr_assert_str_eq(m->types[i]->name, tw_spec((uint8_t)type)->name);
    cr_assert_eq(m->types[i]->n_args, to_event_args((uint8_t)type, types));
    return;
  }
  cr_assert_fail("type %u is not in the bundle", type);
}

static tb_rc pack_and_check(void *self, const struct to_generation *gen,
                            const struct to_event *events, size_t n) {
  struct run *run = self;
  struct to_duration lasted[256];

  if (gen == NULL) return TB_OK;
  if (run->gen != to_generation_number(gen)) {
    run->position = 0;
    cr_assert_eq(to_allocfree_generation(&run->heap, gen), TB_OK);
  }
  run->gen = to_generation_number(gen);
  cr_assert_eq(tp_bundle_begin(&run->bundle, gen, &whose), TB_OK);
  cr_assert_eq(to_durations_events(run->durations, gen, events, n, lasted), TB_OK);
  for (size_t i = 0; i < n; i++) {
    cr_assert_eq(tp_bundle_add(&run->bundle, gen, &events[i], run->position + i, &lasted[i]),
                 TB_OK);
  }
  Tracecollect__V1__EventBundle *m = unpack(&run->bundle);
  cr_assert_eq(m->stream.len, 16);
  cr_assert_str_eq(m->service, "shop");
  cr_assert_str_eq(m->instance, "host:1");
  cr_assert_eq(m->generation, run->gen);
  cr_assert_eq(m->go_version, to_generation_version(gen));
  cr_assert_eq(m->n_events, n);
  for (size_t i = 0; i < n; i++) {
    const Tracecollect__V1__LeasedEvent *got = m->events[i];
    cr_assert_eq(got->time_ns, events[i].time);
    cr_assert_eq(got->goroutine, events[i].g);
    cr_assert_eq(got->thread, events[i].m);
    cr_assert_eq(got->proc, events[i].p);
    cr_assert_eq(got->type, events[i].type);
    cr_assert_eq(got->position, run->position + i);
    cr_assert_eq(got->duration_ns, lasted[i].known ? lasted[i].ns : 0);
    cr_assert_eq(got->lower_bound, lasted[i].known && lasted[i].lower_bound);
    check_type(m, got->type);
    check_args(run, m, got, gen, &events[i]);
    check_type_name(run, m, got, &events[i]);
  }
  tracecollect__v1__event_bundle__free_unpacked(m, NULL);
  run->position += n;
  run->events += n;
  return TB_OK;
}

Test(bundle, every_event_comes_back_with_its_text_and_its_stack) {
  static const char names[][32] = { "g22-mix.trace.zst",  "g23-mix.trace.zst",
                                    "g25-mix.trace.zst",  "g26-annot.trace.zst",
                                    "g26-iter.trace.zst", "g26-labels.trace.zst",
                                    "g26-cgo.trace.zst" };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct run run = { 0 };
    cr_assert_eq(order(&run, names[i], (struct to_event_sink){ &run, pack_and_check }), TB_OK);
    cr_assert_gt(run.events, 100, "%s", names[i]);
    cr_assert_gt(run.texts, 100, "%s", names[i]);
  }
}

Test(bundle, an_object_of_the_heap_has_the_name_of_its_type) {
  struct run run = { 0 };

  cr_assert_eq(order(&run, "g23-alloc.trace.zst", (struct to_event_sink){ &run, pack_and_check }),
               TB_OK);
  cr_assert_gt(run.type_names, 100);
}

/* Packs one object into a bundle with a memory limit. Returns 0 if it has no place, 1 if it has no name, 2 if it has both. */
static int pack_object(const struct to_generation *gen, const struct to_event *ev, size_t limit) {
  const struct to_duration none = { 0 };
  struct tp_bundle bundle;
  struct tb_mem mem;
  int got = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, limit);
  tp_bundle_init(&bundle, &mem);
  if (tp_bundle_begin(&bundle, gen, &whose) == TB_OK &&
      tp_bundle_add(&bundle, gen, ev, 0, &none) == TB_OK) {
    Tracecollect__V1__EventBundle *m = unpack(&bundle);
    cr_assert_eq(m->events[0]->args[1], ev->args[1]);
    got = m->events[0]->type_name == 0 ? 1 : 2;
    tracecollect__v1__event_bundle__free_unpacked(m, NULL);
  }
  tp_bundle_fini(&bundle);
  cr_assert_eq(mem.bytes, 0);
  return got;
}

static tb_rc pack_objects(void *self, const struct to_generation *gen,
                          const struct to_event *events, size_t n) {
  size_t *got = self;
  size_t i = 0;

  while (gen != NULL && i < n && to_allocfree_type_id(&events[i]) == 0) i++;
  if (gen == NULL || i == n) return TB_OK;
  for (size_t limit = 500; limit < 60000; limit += 499) got[pack_object(gen, &events[i], limit)]++;
  return TB_END;
}

Test(bundle, without_memory_for_names_the_objects_come_without_them) {
  struct run run = { 0 };
  size_t got[3] = { 0 };

  cr_assert_eq(order(&run, "g23-alloc.trace.zst", (struct to_event_sink){ got, pack_objects }),
               TB_END);
  cr_assert(got[0] > 0 && got[1] > 5 && got[2] > 5, "%zu %zu %zu", got[0], got[1], got[2]);
}

/* At each limit the bundle has those events that were accepted, all of them whole. */
static tb_rc pack_within(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  const struct to_duration none = { 0 };
  struct run *run = self;
  struct tb_mem mem;

  for (size_t limit = 1000; gen != NULL && limit < 60000; limit += 997) {
    struct tp_bundle bundle;
    uint64_t taken = 0;

    tb_mem_init(&mem, tb_mem_libc, NULL, limit);
    tp_bundle_init(&bundle, &mem);
    tb_rc rc = tp_bundle_begin(&bundle, gen, &whose);
    while (rc == TB_OK && taken < n) {
      rc = tp_bundle_add(&bundle, gen, &events[taken], taken, &none);
      if (rc == TB_OK) taken++;
    }
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
    cr_assert_eq(bundle.count, taken);
    Tracecollect__V1__EventBundle *m = unpack(&bundle);
    cr_assert_eq(m->n_events, taken);
    for (size_t i = 0; i < m->n_events; i++) check_args(run, m, m->events[i], gen, &events[i]);
    tracecollect__v1__event_bundle__free_unpacked(m, NULL);
    tp_bundle_fini(&bundle);
    cr_assert_eq(mem.bytes, 0);
    run->events += rc == TB_BUDGET;
  }
  return TB_END; /* the first slice is enough */
}

Test(bundle, without_memory_it_keeps_what_it_has) {
  struct run run = { 0 };

  cr_assert_eq(order(&run, "g26-annot.trace.zst", (struct to_event_sink){ &run, pack_within }),
               TB_END);
  cr_assert_gt(run.events, 5, "memory ran out at some limits");
}

Test(bundle, text_that_is_no_utf8_is_repaired) {
  char out[32];

  cr_assert_eq(tp_utf8_whole("a\xc3\xa9z", 4), 4);
  cr_assert_eq(tp_utf8_whole("a\xff", 2), 1);
  cr_assert_eq(tp_utf8_whole("a\0b", 3), 1);
  cr_assert_eq(tp_utf8_whole("\xed\xa0\x80", 3), 0, "a surrogate");
  size_t n = tp_utf8_repair("a\xff\xc3", 3, out);
  cr_assert_eq(n, 7);
  cr_assert_arr_eq(out, "a\xEF\xBF\xBD\xEF\xBF\xBD", 7);
}
