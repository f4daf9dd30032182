/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/stacks/frames.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

enum {
  LEAST_PC = 4096,                   /* nothing is ever mapped below */
  FIRST_STACK_BYTES_MAX = 128 << 20, /* the kernel keeps this free for the first stack */
};

__thread struct ta_origin ta_origin __attribute__((tls_model("initial-exec")));

/* The layout of a frame on x86-64 and aarch64. */
struct frame {
  uintptr_t next, pc;
};

static bool within(struct ta_bounds b, uintptr_t at) {
  return at >= b.low && at < b.high;
}

/* Bounds of stacks. */

static __thread struct ta_bounds learned __attribute__((tls_model("initial-exec")));

/* Returns the stack that the kernel made for the process. Its upper end holds the random bytes of AT_RANDOM. */
static struct ta_bounds first_stack(void) {
  uintptr_t high = (uintptr_t)getauxval(AT_RANDOM);
  size_t bytes = FIRST_STACK_BYTES_MAX;
  struct rlimit limit;

  if (high == 0) return (struct ta_bounds){ 0, 0 };
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes) bytes = limit.rlim_cur;
  return (struct ta_bounds){ high - bytes, high };
}

void ta_frames_learn(void) {
  pthread_attr_t attr;
  void *low;
  size_t size;

  if (learned.high != 0 || pthread_getattr_np(pthread_self(), &attr) != 0) return;
  if (pthread_attr_getstack(&attr, &low, &size) == 0)
    learned = (struct ta_bounds){ (uintptr_t)low, (uintptr_t)low + size };
  pthread_attr_destroy(&attr);
}

/* State of parsing /proc/self/maps piece by piece; a line is "low-high access ...", with hexadecimal addresses. */
struct maps {
  struct ta_bounds line, found;
  enum { IN_LOW, IN_HIGH, IN_REST } at;
};

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void parse_char(struct maps *m, char c, uintptr_t sp) {
  int digit = digit_of(c);

  if (c == '\n') {
    m->line = (struct ta_bounds){ 0, 0 };
    m->at = IN_LOW;
  } else if (m->at == IN_LOW && digit >= 0) {
    m->line.low = m->line.low << 4 | (uintptr_t)digit;
  } else if (m->at == IN_HIGH && digit >= 0) {
    m->line.high = m->line.high << 4 | (uintptr_t)digit;
  } else if (m->at != IN_REST) {
    m->at++;
    if (m->at == IN_REST && within(m->line, sp)) m->found = m->line;
  }
}

/* Returns the mapping that sp is in, without using libc: the caller may be an allocator. */
static struct ta_bounds mapping_of(uintptr_t sp) {
  struct maps m = { .at = IN_LOW };
  char text[512];
  long n;

  long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return m.found;
  while (m.found.high == 0 && (n = syscall(SYS_read, fd, text, sizeof text)) > 0)
    for (long i = 0; i < n && m.found.high == 0; i++) parse_char(&m, text[i], sp);
  syscall(SYS_close, fd);
  return m.found;
}

void ta_frames_bounds(struct ta_thread *t) {
  uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

  if (t->stack.high != 0) return;
  if (learned.high == 0) {
    struct ta_bounds first = first_stack();
    if (within(first, sp))
      learned = first;
    else if (ta_in_hook)
      learned = mapping_of(sp);
    else
      ta_frames_learn();
  }
  t->stack = learned;
}

/* Returns the used part of the stack that sp is on, which is all mapped; empty if the stack is not known. */
static struct ta_bounds used_stack(const struct ta_thread *t, uintptr_t sp) {
  if (within(t->stack, sp)) return (struct ta_bounds){ sp, t->stack.high };
  if (t->go != NULL && within(t->go->stack, sp)) return (struct ta_bounds){ sp, t->go->stack.high };
  return (struct ta_bounds){ 0, 0 };
}

/* Not sanitized: the walk reads stack memory that is not a variable. */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static unsigned
walk(uintptr_t fp, struct ta_bounds in, uint64_t *pcs, unsigned max) {
  unsigned n = 0;

  while (n < max && within(in, fp) && in.high - fp >= sizeof(struct frame) && fp % sizeof fp == 0) {
    struct frame frame = *(const struct frame *)fp;
    if (frame.pc < LEAST_PC) break;
    pcs[n++] = frame.pc;
    in.low = fp + sizeof frame;
    fp = frame.next;
  }
  return n;
}

/* By unwind tables. */

struct found {
  uint64_t *pcs, from;
  unsigned n, max;
};

/* Skips the frames before `from`, which are the agent's. */
static _Unwind_Reason_Code next_frame(struct _Unwind_Context *context, void *self) {
  struct found *f = self;
  uint64_t pc = _Unwind_GetIP(context);

  if (pc < LEAST_PC) return _URC_END_OF_STACK;
  if (f->n > 0 || pc == f->from) f->pcs[f->n++] = pc;
  return f->n < f->max ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static unsigned by_tables(const void *from, uint64_t *pcs, unsigned max) {
  struct found f = { .pcs = pcs, .from = (uint64_t)(uintptr_t)from, .max = max };

  _Unwind_Backtrace(next_frame, &f);
  return f.n;
}

/* By frame pointers. The chain begins with the agent's own frames. If all emit functions have frames, the chain contains
 * `from` and begins there; if not, only its first frame is the agent's, and `from` replaces it. */
static unsigned by_pointers(const struct ta_thread *t, const void *from, uintptr_t fp,
                            uint64_t *pcs, unsigned max) {
  uint64_t program = (uint64_t)(uintptr_t)from;
  unsigned n = walk(fp, used_stack(t, fp), pcs, max + TA_FRAMES_OURS), ours = 0;

  while (ours < n && ours < TA_FRAMES_OURS && pcs[ours] != program) ours++;
  if (ours < n && pcs[ours] == program) {
    n -= ours;
    memmove(pcs, pcs + ours, n * sizeof *pcs);
  }
  pcs[0] = program;
  return n == 0 ? 1 : n < max ? n : max;
}

__attribute__((noinline)) unsigned ta_frames_here(const struct ta_thread *t, const void *from,
                                                  uint64_t *pcs, unsigned max) {
  struct ta_origin origin = ta_origin;

  if (origin.pc != NULL) from = origin.pc;
  if (ta_emit.unwinds) {
    unsigned n = by_tables(from, pcs, max);
    if (n > 0) return n;
  }
  if (origin.pc == NULL)
    return by_pointers(t, from, (uintptr_t)__builtin_frame_address(0), pcs, max);
  uintptr_t fp = (uintptr_t)origin.frame;
  pcs[0] = (uint64_t)(uintptr_t)from;
  return 1 + walk(fp, used_stack(t, fp), pcs + 1, max - 1);
}

unsigned ta_frames_of_signal(const struct ta_thread *t, const void *context, uint64_t *pcs,
                             unsigned max) {
  const mcontext_t *c = &((const ucontext_t *)context)->uc_mcontext;
#if defined __x86_64__
  uintptr_t pc = (uintptr_t)c->gregs[REG_RIP], sp = (uintptr_t)c->gregs[REG_RSP],
            fp = (uintptr_t)c->gregs[REG_RBP];
#elif defined __aarch64__
  uintptr_t pc = c->pc, sp = c->sp, fp = c->regs[29];
#else
#error "add this processor's registers for program counter, stack pointer and frame pointer"
#endif

  pcs[0] = pc + 1;
  return 1 + walk(fp, used_stack(t, sp), pcs + 1, max - 1);
}
