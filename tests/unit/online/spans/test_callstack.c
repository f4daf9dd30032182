/* SPDX-License-Identifier: Apache-2.0 */
/* Which frame of a stack is the program's own. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/spans/stacks/callstack.h"
#include "online/spans/stacks/library.h"
#include "online/spans/stacks/table.h"

enum { FRAMES_MAX = 8 };

struct code {
  const char *function, *file;
};

static struct to_string text(const char *words) {
  return (struct to_string){ words, strlen(words) };
}

static enum to_code code_of(const char *function, const char *file) {
  return to_code_of(&(struct to_frame){ .function = text(function), .file = text(file) });
}

/* Checks the own frame of a stack (innermost first, ended by NULL), and what it called. */
static void expect(const char *own, const char *call, const struct code *code) {
  struct to_frame frame[FRAMES_MAX];
  const struct to_frame *frames[FRAMES_MAX];
  struct to_callstack stack = { .frames = frames };

  for (; code[stack.len].function != NULL; stack.len++) {
    frame[stack.len] = (struct to_frame){ .function = text(code[stack.len].function),
                                          .file = text(code[stack.len].file) };
    frames[stack.len] = &frame[stack.len];
  }
  const struct to_frame *called = to_callstack_call(&stack);
  cr_assert_str_eq(to_callstack_own(&stack)->function.data, own);
  cr_assert_str_eq(called == NULL ? "" : called->function.data, call);
}
#define EXPECT(own, call, ...)                                                                     \
  expect(own, call, (const struct code[]){ __VA_ARGS__, { NULL, NULL } })

#define POLL                                                                                       \
  { "internal/poll.(*FD).Read", "/usr/lib/go/src/internal/poll/fd_unix.go" }
#define NET_READ                                                                                   \
  { "net.(*netFD).Read", "/usr/lib/go/src/net/fd_posix.go" }
#define SERVE                                                                                      \
  { "net/http.(*conn).serve", "/usr/lib/go/src/net/http/server.go" }
#define PQ                                                                                         \
  { "github.com/lib/pq.(*conn).recv", "/root/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go" }
#define LINK                                                                                       \
  { "tracecollect.invalid/traceagent.(*link).send", "/usr/share/tracecollect/go/send.go" }
#define RESERVE                                                                                    \
  { "main.reserve", "/src/shop/main.go" }
#define SHOP                                                                                       \
  { "example.com/shop/db.(*Store).Get", "/src/shop/db/store.go" }

Test(callstack, the_program_comes_before_the_library) {
  EXPECT("main.reserve", "time.Sleep", { "time.Sleep", "/usr/lib/go/src/runtime/time.go" }, RESERVE,
         SERVE);
  EXPECT("main.reserve", "net.(*netFD).Read", POLL, NET_READ, RESERVE);
  EXPECT("example.com/shop/db.(*Store).Get", "github.com/lib/pq.(*conn).recv", POLL, NET_READ, PQ,
         SHOP, RESERVE);
  EXPECT("main.reserve", "", RESERVE, SERVE);
}

Test(callstack, without_the_program_others_come_before_the_library) {
  EXPECT("github.com/lib/pq.(*conn).recv", "net.(*netFD).Read", POLL, NET_READ, PQ);
  EXPECT("tracecollect.invalid/traceagent.(*link).send", "net.(*netFD).Read", POLL, NET_READ, LINK);
  EXPECT("github.com/lib/pq.(*conn).recv", "tracecollect.invalid/traceagent.(*link).send", LINK, PQ,
         SERVE);
  EXPECT("net.(*netFD).Read", "internal/poll.(*FD).Read", POLL, NET_READ, SERVE);
  EXPECT("runtime.gopark", "", { "runtime.gopark", "" }, { "runtime.bgsweep", "" });
}

Test(callstack, our_agent_is_never_the_program) {
  EXPECT("main.reserve", "tracecollect.invalid/traceagent.NewTask",
         { "tracecollect.invalid/traceagent.NewTask", "/src/vendor/x/guard.go" }, RESERVE);
}

Test(callstack, functions_of_c_that_wait_are_a_library) {
  EXPECT("reserve", "pthread_mutex_lock", { "pthread_mutex_lock", "" }, { "reserve", "shop.c" });
  EXPECT("redis-server+0x1f", "epoll_wait", { "epoll_wait", "" }, { "redis-server+0x1f", "" });
  EXPECT("reserve", "libc.so.6+0x1234", { "libc.so.6+0x1234", "" }, { "reserve", "shop.c" });
  EXPECT("reserve", "open64", { "open64", "/usr/include/x86_64-linux-gnu/bits/fcntl2.h" },
         { "reserve", "shop.c" });
  EXPECT("reserve", "puts", { "puts", "rooms/agent_preload/agent/preload/calls.def" },
         { "reserve", "shop.c" });
  EXPECT("main.call", "main._Cfunc_nap", { "main._Cfunc_nap", "_cgo_gotypes.go" },
         { "main.call", "/src/main.go" });
}

Test(callstack, a_module_of_others_is_known_by_its_source) {
  static const char *const of_others[] = {
    "/root/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go", /* the module cache */
    "github.com/lib/pq@v1.10.9/conn.go",                  /* -trimpath */
    "/src/shop/vendor/github.com/lib/pq/conn.go",
  };
  static const char *const own[] = {
    "/src/pq/conn.go", /* replaced by a folder */
    "github.com/lib/pq/conn.go", "/home/a@vogel/pq/conn.go", "/src/vendors/conn.go", "",
  };

  for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++)
    cr_assert_eq(code_of("github.com/lib/pq.Open", of_others[i]), TO_CODE_MODULE);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    cr_assert_eq(code_of("github.com/lib/pq.Open", own[i]), TO_CODE_PROGRAM, "%s", own[i]);
}

Test(callstack, a_package_is_compared_as_a_whole) {
  cr_assert(to_library_is_go(text("net/http.(*conn).serve")));
  cr_assert(to_library_is_go(text("sync.(*Mutex).Lock")));
  cr_assert(to_library_is_go(text("unicode/utf8.ValidString")));
  cr_assert_not(to_library_is_go(text("network.Dial")));
  cr_assert_not(to_library_is_go(text("syncer.Lock")));
  cr_assert_not(to_library_is_go(text("main.sync.Lock")));
  cr_assert_not(to_library_is_go(text("read")));
  cr_assert(to_library_has(text("read")));
  cr_assert_not(to_library_has(text("reader")));
  cr_assert_eq(code_of("", ""), TO_CODE_PLUMBING);
  cr_assert_eq(code_of("libtraceagent.so.1+0x1f", ""), TO_CODE_PLUMBING);
  cr_assert_eq(code_of("libtraceagent-preload.so+0x1f", ""), TO_CODE_PLUMBING);
  cr_assert_eq(to_code_of(&(struct to_frame){ .function = text("main.f") }), TO_CODE_PROGRAM);
}

/* A C program's frame may get its name in a later generation: the own frame is then another one. */
Test(callstack, a_stored_stack_is_looked_at_again_when_a_frame_gets_its_name) {
  struct to_frame frame[] = {
    { .pc = 1, .function = text("a.out+0x1f"), .file = text("a.out") },
    { .pc = 2, .function = text("main"), .file = text("m.c"), .line = 3 }
  };
  const struct to_frame *frames[] = { &frame[0], &frame[1] };
  struct to_stack_table table;
  struct tb_mem mem;
  uint32_t index;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_stack_table_init(&table, &mem, 10, NULL);
  cr_assert_eq(to_stack_table_copy(&table, &(struct to_callstack){ 2, frames, 0 }, &index), TB_OK);
  const struct to_callstack *stored = to_stack_table_stack(&table, index);
  cr_assert_str_eq(to_callstack_own(stored)->function.data, "a.out+0x1f");
  frame[0].function = text("pthread_mutex_lock");
  cr_assert_eq(to_stack_table_copy(&table, &(struct to_callstack){ 2, frames, 0 }, &index), TB_OK);
  cr_assert_eq(to_stack_table_stack(&table, index), stored);
  cr_assert_str_eq(to_callstack_own(stored)->function.data, "main");
  to_stack_table_fini(&table);
  cr_assert_eq(mem.bytes, 0);
}
