/* SPDX-License-Identifier: Apache-2.0 */
/* F5, F10, F20, E15, E16: what a C program reports about its memory, read back as Go's AllocFree experiment. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "online/event/allocfree.h"
#include "tests/unit/agent/emit/emit_reported.h"
#include "traceexperiment.h"

enum { TOLD_MAX = 40000 };

struct reported {
  struct tb_mem mem;
  struct to_allocfree allocfree;
  struct to_heap_event event[TOLD_MAX]; /* of the program's own calls */
  char name[TOLD_MAX][16];
  unsigned events, types;
  unsigned stacks[3]; /* threads' stacks, by enum to_heap_verb */
};

static struct emitted emitted;
static struct reported reported;
static bool wanted = true;
static char arena[1 << 20]; /* the events name addresses in it, or made-up ones */

static bool is_a_threads_stack(const struct to_heap_event *ev) {
  return ev->thing == TO_HEAP_STACK &&
         (ev->address < (uintptr_t)arena || ev->address >= (uintptr_t)arena + sizeof arena);
}

static tb_rc take(void *self, const struct to_generation *gen, const struct to_event *ev,
                  size_t n) {
  (void)self;
  for (; n > 0; ev++, n--) {
    struct to_heap_event *heap = &reported.event[reported.events];
    if (ev->type == TW_EV_SYNC && gen != NULL) {
      reported.allocfree.packing_known = false;
      cr_assert_eq(to_allocfree_generation(&reported.allocfree, gen), TB_OK);
      cr_assert_eq(reported.allocfree.packing_known, wanted);
      reported.types += (unsigned)reported.allocfree.types;
    }
    cr_assert_lt(reported.events, TOLD_MAX);
    if (!to_allocfree_event(&reported.allocfree, ev, heap)) continue;
    if (is_a_threads_stack(heap)) {
      reported.stacks[heap->verb]++;
      continue;
    }
    if (heap->type != NULL)
      snprintf(reported.name[reported.events], sizeof reported.name[0], "%.*s",
               (int)heap->type->name.len, heap->type->name.data);
    reported.events++;
  }
  return TB_OK;
}

static void begin(void) {
  struct ta_emit_config config = { .generation_ms = 60000, .allocfree = wanted };

  cr_assert_eq(emit_begin(&emitted, &config, 16 << 20), 0);
}

static void end(void) {
  reported = (struct reported){ 0 };
  tb_mem_init(&reported.mem, tb_mem_libc, NULL, SIZE_MAX);
  to_allocfree_init(&reported.allocfree, &reported.mem);
  emit_end_and_read(&emitted, (struct to_event_sink){ NULL, take });
  to_allocfree_fini(&reported.allocfree);
  cr_assert_eq(reported.mem.bytes, 0);
}

static void expect(unsigned i, enum to_heap_thing thing, enum to_heap_verb verb, const void *at,
                   uint64_t bytes) {
  const struct to_heap_event *ev = &reported.event[i];

  cr_expect(ev->thing == thing && ev->verb == verb, "event %u is %d, %d", i, ev->thing, ev->verb);
  cr_expect_eq(ev->address, (uintptr_t)at, "event %u", i);
  cr_expect_eq(ev->bytes, bytes, "event %u: %lu bytes", i, (unsigned long)ev->bytes);
}

Test(emit_memory, is_told_in_the_nine_events_and_their_units) {
  char *page = (char *)(((uintptr_t)arena + 4095) & ~(uintptr_t)4095);
  ta_name item = ta_name_of("item");

  begin();
  ta_memory_tell(TA_SPAN_EXISTS, page, 8192, 0);
  ta_memory_tell(TA_SPAN_ALLOC, page + 8192 + 16, 4096, item); /* spans two pages */
  ta_memory_tell(TA_SPAN_FREE, page + 8192 + 16, 0, 0);
  ta_memory_tell(TA_OBJECT_EXISTS, page + 8, 24, 0);
  ta_memory_tell(TA_OBJECT_ALLOC, page + 32, 24, item);
  ta_memory_tell(TA_OBJECT_FREE, page + 32, 0, 0);
  ta_memory_tell(TA_STACK_EXISTS, page + 16, 65536, 0);
  ta_memory_tell(TA_STACK_ALLOC, page + 4096, 5000, 0);
  ta_memory_tell(TA_STACK_FREE, page + 4096, 0, 0);
  end();
  cr_assert_eq(reported.events, 9);
  expect(0, TO_HEAP_SPAN, TO_HEAP_EXISTS, page, 8192);
  expect(1, TO_HEAP_SPAN, TO_HEAP_ALLOC, page + 8192, 8192);
  expect(2, TO_HEAP_SPAN, TO_HEAP_FREE, page + 8192, 0);
  expect(3, TO_HEAP_OBJECT, TO_HEAP_EXISTS, page + 8, 24);
  expect(4, TO_HEAP_OBJECT, TO_HEAP_ALLOC, page + 32, 24);
  expect(5, TO_HEAP_OBJECT, TO_HEAP_FREE, page + 32, 0);
  expect(6, TO_HEAP_STACK, TO_HEAP_EXISTS, page + 16, 65536);
  expect(7, TO_HEAP_STACK, TO_HEAP_ALLOC, page + 4096, 8192);
  expect(8, TO_HEAP_STACK, TO_HEAP_FREE, page + 4096, 0);
  cr_expect(!reported.event[0].holds_objects && reported.event[1].holds_objects);
  cr_expect_str_eq(reported.name[3], "");
  cr_expect_str_eq(reported.name[4], "item");
  cr_expect_eq(reported.types, 2); /* both of one size, but one has a name */
}

Test(emit_memory, of_each_generation_can_be_read_by_itself) {
  begin();
  for (int i = 0; i < 3; i++) {
    ta_memory_tell(TA_OBJECT_ALLOC, arena + 8 * i, 100, 0);
    emit_end_generation();
  }
  end();
  cr_assert_eq(reported.events, 3);
  cr_assert_eq(reported.types, 3);
  for (unsigned i = 0; i < 3; i++)
    cr_expect(reported.event[i].type != NULL && reported.event[i].bytes == 100);
}

Test(emit_memory, may_lie_anywhere) {
  static const uintptr_t at[] = { 8, 4096, UINTPTR_MAX - 7, (uintptr_t)1 << 47 };

  begin();
  for (unsigned i = 0; i < 4; i++) ta_memory_tell(TA_OBJECT_ALLOC, (void *)at[i], SIZE_MAX, 0);
  end();
  for (unsigned i = 0; i < 4; i++) cr_expect_eq(reported.event[i].address, at[i]);
  cr_expect(reported.event[0].type == NULL &&
            reported.event[0].bytes == 0); /* no type can be this large */
}

Test(emit_memory, of_more_types_than_there_is_room_for_is_told_without) {
  enum { KINDS = 10000 };
  unsigned typed = 0;

  begin();
  for (size_t i = 0; i < KINDS; i++) ta_memory_tell(TA_OBJECT_ALLOC, arena + 8 * i, i, 0);
  end();
  cr_assert_eq(reported.events, KINDS);
  for (unsigned i = 0; i < KINDS; i++) {
    typed += reported.event[i].type != NULL;
    cr_assert(reported.event[i].type == NULL || reported.event[i].bytes == i);
  }
  cr_assert_eq(typed, reported.types);
  cr_assert(typed > 7000 && typed <= 8192, "%u", typed);
}

static void *churn(void *arg) {
  ta_thread_attach(0);
  for (size_t i = 0; i < 2000; i++) {
    ta_memory_tell(TA_OBJECT_ALLOC, arena + 8 * i, i % 50, 0);
    ta_memory_tell(TA_OBJECT_FREE, arena + 8 * i, 0, 0);
  }
  return arg;
}

Test(emit_memory, of_many_threads_has_each_type_once_and_their_stacks) {
  enum { THREADS = 4 };
  pthread_t thread[THREADS];

  begin();
  ta_thread_attach(0);
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, churn, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  end();
  cr_assert_eq(reported.events, THREADS * 2000 * 2);
  cr_assert_eq(reported.types, 50);
  cr_assert_eq(reported.stacks[TO_HEAP_EXISTS], 1); /* of this thread */
  cr_assert_eq(reported.stacks[TO_HEAP_ALLOC], THREADS);
  cr_assert_eq(reported.stacks[TO_HEAP_FREE], THREADS);
}

/* A thread that is older than the session, and emits its first event in the session. */

static atomic_int wanted_there, is_there;

static void *live_on(void *arg) {
  is_there = 1;
  while (wanted_there) poll(NULL, 0, 1);
  ta_thread_attach(0);
  return arg;
}

Test(emit_memory, a_thread_older_than_the_session_has_its_stack_told_as_there) {
  pthread_t older, younger;

  wanted_there = 1;
  pthread_create(&older, NULL, live_on, NULL);
  while (!is_there) poll(NULL, 0, 1);
  begin();
  wanted_there = 0;
  pthread_join(older, NULL);
  pthread_create(&younger, NULL, live_on, NULL);
  pthread_join(younger, NULL);
  end();
  cr_assert_eq(reported.stacks[TO_HEAP_EXISTS], 1);
  cr_assert_eq(reported.stacks[TO_HEAP_ALLOC], 1);
  cr_assert_eq(reported.stacks[TO_HEAP_FREE], 2);
}

/* Memory freed by a destructor at a thread's end is reported, whoever made the key first. */
static pthread_key_t late;

static void free_late(void *p) {
  ta_memory_tell(TA_OBJECT_FREE, p, 0, 0);
}

static void *end_with_one(void *arg) {
  ta_memory_tell(TA_OBJECT_ALLOC, arena, 1, 0);
  cr_assert_eq(pthread_setspecific(late, arena), 0);
  return arg;
}

Test(emit_memory, that_a_thread_frees_as_it_ends_is_told) {
  pthread_t thread;

  begin();
  ta_thread_attach(0); /* the agent's key is created before the program's */
  cr_assert_eq(pthread_key_create(&late, free_late), 0);
  pthread_create(&thread, NULL, end_with_one, NULL);
  pthread_join(thread, NULL);
  end();
  cr_assert_eq(reported.events, 2);
  expect(1, TO_HEAP_OBJECT, TO_HEAP_FREE, arena, 0);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer allows no threads in a forked child */
Test(emit_memory, a_forked_childs_types_are_its_own) {
  int status;

  begin();
  emit_end_generation(); /* the flusher runs by now, and allocates nothing any more */
  for (size_t i = 0; i < 50; i++) ta_memory_tell(TA_OBJECT_ALLOC, arena + 8 * i, 1000 + i, 0);
  pid_t child = fork();
  if (child == 0) {
    begin();
    ta_memory_tell(TA_OBJECT_ALLOC, arena, 1000, 0);
    end();
    _exit(reported.types == 1 && reported.events == 1 && reported.event[0].bytes == 1000 ? 7 : 1);
  }
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", (unsigned)status);
  end();
  cr_assert_eq(reported.types, 50);
}
#endif

Test(emit_memory, may_be_told_in_a_wait_a_call_and_a_hold) {
  begin();
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_memory_tell(TA_OBJECT_ALLOC, arena, 1, 0);
  ta_wait_end();
  ta_syscall_begin();
  ta_memory_tell(TA_OBJECT_ALLOC, arena, 1, 0);
  ta_syscall_end();
  TA_ATOMIC((void)0, ta_memory_tell(TA_OBJECT_ALLOC, arena, 1, 0));
  end();
  cr_assert_eq(reported.events, 3);
}

Test(emit_memory, is_told_only_where_it_was_asked_for) {
  struct ta_emit_config old = { .version = 22, .allocfree = 1 };

  ta_memory_tell(TA_OBJECT_ALLOC, arena, 1, 0);
  cr_assert_eq(emit_begin(&emitted, &old, 16 << 20), TA_E_CONFIG);
  cr_assert_neq(strstr(ta_strerror(TA_E_CONFIG), "allocfree needs version 23"), NULL);
  wanted = false;
  begin();
  ta_memory_tell(TA_OBJECT_ALLOC, arena, 1, 0);
  ta_thread_attach(0);
  end();
  cr_assert_eq(reported.events + reported.stacks[TO_HEAP_EXISTS], 0);
}
