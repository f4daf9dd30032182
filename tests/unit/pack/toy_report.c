/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pack/toy_report.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "proto/unpack.h"

typedef Tracecollect__V1__FieldSchema Field;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__ReportSchema Schema;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Table Table;
typedef Tracecollect__V1__Frame Frame;
typedef Tracecollect__V1__Stack Stack;
typedef Tracecollect__V1__Report Report;

#define BASE(type_) .base = { .descriptor = &tracecollect__v1__##type_##__descriptor }
#define TEXT(text)  ((char *)(uintptr_t)(text))
#define LIST(type, ...)                                                                            \
  .n_##type = sizeof((void *[]){ __VA_ARGS__ }) / sizeof(void *), .type = (void *)(void *[]) {     \
    __VA_ARGS__                                                                                    \
  }

#define FIELD(name_, type_, about_)                                                                \
  (&(Field){ BASE(field_schema), .name = TEXT(name_),                                              \
             .type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_##type_, .about = TEXT(about_),           \
             .metric = TEXT(""), .label = TEXT("") })
#define NUMBER(number_)                                                                            \
  (&(Value){ BASE(value), .is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER, .number = (number_) })
#define SHARE(share_)                                                                              \
  (&(Value){ BASE(value), .is_case = TRACECOLLECT__V1__VALUE__IS_SHARE, .share = (share_) })
#define WORD(text_)                                                                                \
  (&(Value){ BASE(value), .is_case = TRACECOLLECT__V1__VALUE__IS_TEXT, .text = TEXT(text_) })
#define STACK(place)                                                                               \
  (&(Value){ BASE(value), .is_case = TRACECOLLECT__V1__VALUE__IS_STACK, .stack = (place) })
#define SPREAD(...)                                                                                \
  (&(Value){ BASE(value), .is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION,                     \
             .distribution = &(Distribution){ BASE(distribution), __VA_ARGS__ } })
/* BUCKETS(scale, offset, n, [0] = 1, ...): n buckets, of which those that are not named are empty. */
#define BUCKETS(scale_, offset_, n, ...)                                                           \
  .scale = (scale_), .offset = (offset_), .n_buckets = (n), .buckets = (uint64_t[n]) {             \
    __VA_ARGS__                                                                                    \
  }
#define NONE       (&(Value){ BASE(value) })
#define ROW(...)   (&(Row){ BASE(row), LIST(values, __VA_ARGS__) })
#define OTHER(...) (&(Row){ BASE(row), LIST(values, __VA_ARGS__), .other = true })
#define FRAME(function_, file_, line_, pc_)                                                        \
  (&(Frame){ BASE(frame), .function = TEXT(function_), .file = TEXT(file_), .line = (line_),       \
             .pc = (pc_) })

static TableSchema by_stack = { BASE(table_schema),
                                .name = TEXT("by_stack"),
                                .about = TEXT("By stack"),
                                .order = TEXT("most failures first"),
                                .keys = 1,
                                LIST(columns, FIELD("stack", STACK, ""),
                                     FIELD("served", DISTRIBUTION, "Orders that were served."),
                                     FIELD("failed", DISTRIBUTION, "Orders that failed."),
                                     FIELD("retries", COUNT, "")) };
static TableSchema by_type = { BASE(table_schema),
                               .name = TEXT("by_type"),
                               .about = TEXT("By type"),
                               .order = TEXT("most time first"),
                               .keys = 1,
                               LIST(columns, FIELD("type", TEXT, ""),
                                    FIELD("served", DISTRIBUTION, ""),
                                    FIELD("wait_share", SHARE, "")) };
static TableSchema queued_now = { BASE(table_schema),
                                  .name = TEXT("queued_now"),
                                  .about = TEXT("Queued now"),
                                  .order = TEXT("oldest first"),
                                  .keys = 1,
                                  .list = true,
                                  LIST(columns, FIELD("goroutine", ID, ""), FIELD("age_ns", NS, ""),
                                       FIELD("late", FLAG, ""), FIELD("stack", STACK, "")) };
static Schema schema = {
  BASE(report_schema),
  .name = TEXT("orders"),
  .about = TEXT("Time that orders take."),
  LIST(options, FIELD("late_after_ns", NS, "An order that waits for this long is late.")),
  LIST(figures, FIELD("served", DISTRIBUTION, "Orders that were served."),
       FIELD("queued", COUNT, "Orders that wait now."), FIELD("heap_bytes", BYTES, "Live heap."),
       FIELD("idle_share", SHARE, "Share of time without an order."),
       FIELD("paused", FLAG, "The shop takes no order."), FIELD("seen_ns", TIME, "The last order."),
       FIELD("owner", TEXT, "Name of the shop's owner."), FIELD("lost", COUNT, "Orders lost.")),
  LIST(tables, &by_stack, &by_type, &queued_now)
};

static Table stacks = {
  BASE(table), .rows_total = 7,
  LIST(rows,
       ROW(STACK(1),
           SPREAD(.count = 3, .total_ns = 3000000, .min_ns = 100000, .max_ns = 2000000,
                  .no_quantiles = 1),
           SPREAD(.count = 2, .total_ns = 500, .min_ns = 100, .max_ns = 400, .no_quantiles = 1),
           NUMBER(4)),
       ROW(STACK(0),
           SPREAD(.count = 1, .total_ns = 70, .min_ns = 70, .max_ns = 70, .no_quantiles = 1),
           SPREAD(.count = 1, .total_ns = 20, .min_ns = 20, .max_ns = 20, .no_quantiles = 1),
           NUMBER(0)),
       OTHER(NONE, SPREAD(.count = 9, .total_ns = 90, .min_ns = 5, .max_ns = 30, .no_quantiles = 1),
             SPREAD(.no_quantiles = 1), NUMBER(5)))
};
static Table types = {
  BASE(table), .rows_total = 2,
  LIST(rows,
       ROW(WORD("large, \"fast\""),
           SPREAD(.count = 2, .total_ns = 20, .min_ns = 5, .max_ns = 15, .p50_ns = 5, .p90_ns = 15,
                  .p99_ns = 15, .p999_ns = 15, .lower_bounds = 1,
                  BUCKETS(4, -442, 27, [0] = 1, [26] = 1)),
           SHARE(0.25)),
       ROW(WORD("small"),
           SPREAD(.count = 1, .total_ns = 9, .min_ns = 9, .max_ns = 9, .p50_ns = 9, .p90_ns = 9,
                  .p99_ns = 9, .p999_ns = 9, BUCKETS(6, -1711, 1, [0] = 1)))) /* a column too few */
};
static Table queue = { BASE(table), .rows_total = 1,
                       LIST(rows, ROW(NUMBER(17), NUMBER(1234567), NUMBER(1), STACK(99))) };
static Report report = {
  BASE(report),
  .schema = &schema,
  LIST(options, NUMBER(10000000)),
  LIST(figures,
       SPREAD(.count = 13, .total_ns = 3000160, .min_ns = 5, .max_ns = 2000000, .p50_ns = 10,
              .p90_ns = 1000000, .p99_ns = 2000000, .p999_ns = 2000000, .lower_bounds = 2,
              BUCKETS(6, -1765, 1192, [0] = 1, [64] = 10, [1127] = 1, [1191] = 1)),
       NUMBER(1), NUMBER(3 << 20), SHARE(0.125), NUMBER(1), NUMBER(-5), WORD("a\nb"), NONE),
  LIST(tables, &stacks, &types, &queue),
  LIST(stacks, &(Stack){ BASE(stack), .n_frames = 0 },
       &(Stack){ BASE(stack), .n_frames = 3, .frames = (uint32_t[]){ 0, 1, 77 } }),
  LIST(frames, FRAME("runtime.write", "/go/write.go", 8, 64),
       FRAME("shop.(*Till).serve", "/shop/till.go", 21, 128)),
  LIST(notes, TEXT("Prices\x1b lack \"tax\"."), TEXT("Open the shop."))
};

static struct tb_mem mem;
static struct tb_arena arena;

void tt_toy_report_free(void) {
  tb_arena_fini(&arena);
}

Tracecollect__V1__StreamReport *tt_toy_report(void) {
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);
  Tracecollect__V1__StreamReport message = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  unsigned char *packed;

  message.service = TEXT("shop");
  message.instance = TEXT("a:1");
  message.kind = TEXT("orders");
  message.window = TEXT("all");
  message.from_ns = 100;
  message.until_ns = 1000000100;
  message.first_gen = 1;
  message.last_gen = 3;
  message.events = 12345;
  message.epochs = 1;
  message.report = &report;
  packed = malloc(tracecollect__v1__stream_report__get_packed_size(&message));
  size_t bytes = tracecollect__v1__stream_report__pack(&message, packed);
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_arena_init(&arena, &mem, 4096);
  Tracecollect__V1__StreamReport *out =
      tracecollect__v1__stream_report__unpack(&allocator, bytes, packed);
  free(packed);
  return out;
}

const Tracecollect__V1__ReportSchema *tt_toy_schema(void) {
  return &schema;
}
