/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables of chains. Hashes cannot be forged, as the seed is random, and every hit is compared: a collision costs a step,
 * never a mix-up. */
#include "online/spans/stacks/store.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/seed.h"

enum { BUCKETS_MIN = 64 };

struct to_kept {
  struct to_kept *next;
  uint64_t hash;
  struct tb_mem *payer;
  uint32_t bytes, users;
};
struct kept_text {
  struct to_kept kept;
  struct to_string text; /* and its bytes */
};
struct kept_frame {
  struct to_kept kept;
  uint64_t owner; /* number of the only user; 0: shared */
  struct to_frame frame;
  struct to_string
      before[2]; /* texts of before it got its name: entry functions are known by their addresses */
};
struct kept_stack {
  struct to_kept kept;
  uint64_t hash; /* to_callstack_hash() */
  size_t cost;
  bool is_unnamed;
  struct to_callstack stack; /* and its frames */
};

static struct kept_text *text_of(struct to_string text) {
  return (struct kept_text *)(uintptr_t)(text.data - sizeof(struct kept_text));
}

static struct kept_frame *frame_of(const struct to_frame *frame) {
  return (struct kept_frame *)((uintptr_t)frame - offsetof(struct kept_frame, frame));
}

static struct kept_stack *stack_of(const struct to_callstack *stack) {
  return (struct kept_stack *)((uintptr_t)stack - offsetof(struct kept_stack, stack));
}

static uint64_t mix_text(uint64_t hash, struct to_string text) {
  uint64_t word = 0;

  for (; text.len >= sizeof(word); text.data += sizeof(word), text.len -= sizeof(word)) {
    memcpy(&word, text.data, sizeof(word));
    hash = to_stack_mix(hash, word);
  }
  word = 0;
  if (text.len > 0) memcpy(&word, text.data, text.len);
  return to_stack_mix(to_stack_mix(hash, word), text.len);
}

void to_stack_store_init(struct to_stack_store *store, struct tb_mem *mem) {
  *store = (struct to_stack_store){ .mem = mem, .seed = tb_seed() };
}

static void set_free_if_empty(struct to_stack_store *store, struct to_kept_set *set) {
  if (set->n > 0) return;
  tb_mem_free(store->mem, set->bucket, set->buckets * sizeof(struct to_kept *));
  *set = (struct to_kept_set){ 0 };
}

/* ---- a set ---- */

typedef bool same_fn(const struct to_kept *kept, const void *wanted);

static struct to_kept **chain(const struct to_kept_set *set, uint64_t hash) {
  return &set->bucket[hash & (set->buckets - 1)];
}

static struct to_kept *set_find(const struct to_kept_set *set, uint64_t hash, same_fn *same,
                                const void *wanted) {
  struct to_kept *kept = set->buckets == 0 ? NULL : *chain(set, hash);

  while (kept != NULL && !(kept->hash == hash && same(kept, wanted))) kept = kept->next;
  return kept;
}

static tb_rc set_grow(struct tb_mem *mem, struct to_kept_set *set) {
  struct to_kept_set more = { .buckets = set->buckets == 0 ? BUCKETS_MIN : 2 * set->buckets };

  TB_TRY(tb_mem_alloc(mem, more.buckets * sizeof(struct to_kept *), &more.bucket));
  for (size_t i = 0; i < set->buckets; i++)
    for (struct to_kept *kept = set->bucket[i], *next; kept != NULL; kept = next) {
      next = kept->next;
      kept->next = *chain(&more, kept->hash);
      *chain(&more, kept->hash) = kept;
    }
  tb_mem_free(mem, set->bucket, set->buckets * sizeof(struct to_kept *));
  set->bucket = more.bucket;
  set->buckets = more.buckets;
  return TB_OK;
}

/* Adds an object of `bytes` zeros that begins with struct to_kept. */
static tb_rc set_add(struct to_stack_user *by, struct to_kept_set *set, uint64_t hash, size_t bytes,
                     void *out) {
  struct to_kept *kept;

  if (bytes > UINT32_MAX) return TB_BUDGET;
  if (set->n == set->buckets) TB_TRY(set_grow(by->store->mem, set));
  TB_TRY(tb_mem_alloc(by->mem, bytes, &kept));
  *kept = (struct to_kept){
    .next = *chain(set, hash), .hash = hash, .payer = by->mem, .bytes = (uint32_t)bytes, .users = 1
  };
  *chain(set, hash) = kept;
  set->n++;
  by->added += bytes;
  memcpy(out, &kept, sizeof(kept));
  return TB_OK;
}

/* Ends a use. Returns true if it was the last: the object is not in the set any more. */
static bool set_release(struct to_kept_set *set, struct to_kept *kept) {
  if (--kept->users > 0) return false;
  struct to_kept **link = chain(set, kept->hash);
  while (*link != kept) link = &(*link)->next;
  *link = kept->next;
  set->n--;
  return true;
}

static void release_memory(struct to_kept *kept) {
  tb_mem_free(kept->payer, kept, kept->bytes);
}

/* Charges an object of a user that ends to the store: others may still use it. */
static void pass(const struct to_stack_user *from, struct to_kept *kept) {
  struct tb_mem *to = from->store->mem;

  if (kept->payer != from->mem) return;
  if (TB_CHECK(tb_mem_pass(from->mem, to, kept->bytes) == TB_OK)) kept->payer = to;
}

/* ---- texts ---- */

static bool texts_equal(struct to_string a, struct to_string b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool same_text(const struct to_kept *kept, const void *wanted) {
  return texts_equal(((const struct kept_text *)kept)->text, *(const struct to_string *)wanted);
}

static tb_rc keep_text(struct to_stack_user *by, struct to_string *text) {
  struct to_kept_set *set = &by->store->texts;
  uint64_t hash = mix_text(by->store->seed, *text);
  struct kept_text *kept = (struct kept_text *)set_find(set, hash, same_text, text);

  if (kept != NULL) {
    kept->kept.users++;
  } else {
    TB_TRY(set_add(by, set, hash, sizeof(*kept) + text->len + 1, &kept));
    kept->text = (struct to_string){ .data = (const char *)(kept + 1), .len = text->len };
    if (text->len > 0) memcpy(kept + 1, text->data, text->len);
  }
  *text = kept->text;
  return TB_OK;
}

static void release_text(struct to_stack_user *by, struct to_string text) {
  struct to_kept *kept = &text_of(text)->kept;

  if (set_release(&by->store->texts, kept)) release_memory(kept);
}

static tb_rc keep_texts(struct to_stack_user *by, struct to_frame *frame) {
  TB_TRY(keep_text(by, &frame->function));
  tb_rc rc = keep_text(by, &frame->file);
  if (rc != TB_OK) release_text(by, frame->function);
  return rc;
}

/* ---- frames ---- */

static bool is_unnamed(const struct to_frame *frame) {
  return frame->line == 0 && memmem(frame->function.data, frame->function.len, "+0x", 3) != NULL;
}

struct wanted_frame {
  const struct to_frame *frame;
  uint64_t owner;
};

static bool same_frame(const struct to_kept *kept, const void *wanted) {
  const struct kept_frame *a = (const struct kept_frame *)kept;
  const struct wanted_frame *b = wanted;

  return a->frame.pc == b->frame->pc && a->frame.line == b->frame->line && a->owner == b->owner &&
         texts_equal(a->frame.function, b->frame->function) &&
         texts_equal(a->frame.file, b->frame->file);
}

static struct wanted_frame want(const struct to_stack_user *by, const struct to_frame *frame) {
  return (struct wanted_frame){ frame, is_unnamed(frame) ? by->number : 0 };
}

/* Streams of different programs have different texts for one counter: so many that the texts must be in the hash. */
static uint64_t hash_frame(const struct to_stack_user *by, const struct to_frame *frame) {
  uint64_t hash = to_stack_mix(to_stack_mix(by->store->seed, frame->pc), frame->line);

  return mix_text(mix_text(hash, frame->function), frame->file);
}

static struct to_kept **recent_frame(struct to_stack_store *store, uint64_t pc) {
  return &store->recent_frame[(pc * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - TO_STACK_FRAME_BITS)];
}

static struct kept_frame *find_frame(const struct to_stack_user *by,
                                     const struct wanted_frame *wanted) {
  struct to_kept **recent = recent_frame(by->store, wanted->frame->pc), *kept = *recent;

  if (kept != NULL && same_frame(kept, wanted)) return (struct kept_frame *)kept;
  kept = set_find(&by->store->frames, hash_frame(by, wanted->frame), same_frame, wanted);
  if (kept != NULL) *recent = kept;
  return (struct kept_frame *)kept;
}

const struct to_frame *to_stack_store_find(const struct to_stack_user *by,
                                           const struct to_frame *frame) {
  const struct wanted_frame wanted = want(by, frame);
  const struct kept_frame *kept = find_frame(by, &wanted);

  return kept == NULL ? NULL : &kept->frame;
}

static tb_rc add_frame(struct to_stack_user *by, const struct wanted_frame *wanted,
                       struct kept_frame **out) {
  uint64_t hash = hash_frame(by, wanted->frame);
  struct to_frame frame = *wanted->frame;

  TB_TRY(keep_texts(by, &frame));
  tb_rc rc = set_add(by, &by->store->frames, hash, sizeof(**out), out);
  if (rc != TB_OK) {
    release_text(by, frame.function);
    release_text(by, frame.file);
    return rc;
  }
  (*out)->owner = wanted->owner;
  (*out)->frame = frame;
  return TB_OK;
}

static tb_rc keep_frame(struct to_stack_user *by, const struct to_frame *frame,
                        const struct to_frame **out) {
  const struct wanted_frame wanted = want(by, frame);
  struct kept_frame *kept = find_frame(by, &wanted);

  if (kept != NULL)
    kept->kept.users++;
  else
    TB_TRY(add_frame(by, &wanted, &kept));
  *out = &kept->frame;
  return TB_OK;
}

static void release_frame(struct to_stack_user *by, const struct to_frame *frame) {
  struct kept_frame *kept = frame_of(frame);
  struct to_kept **recent = recent_frame(by->store, frame->pc);

  if (!set_release(&by->store->frames, &kept->kept)) return;
  if (*recent == &kept->kept) *recent = NULL;
  release_text(by, kept->frame.function);
  release_text(by, kept->frame.file);
  for (unsigned i = 0; i < 2; i++)
    if (kept->before[i].data != NULL) release_text(by, kept->before[i]);
  release_memory(&kept->kept);
}

static tb_rc name_frame(struct to_stack_user *by, struct kept_frame *kept, struct to_frame frame,
                        uint32_t *named) {
  struct to_frame *old = &kept->frame;

  if (old->pc == 0 || old->pc != frame.pc || !is_unnamed(old) || is_unnamed(&frame)) return TB_OK;
  TB_TRY(keep_texts(by, &frame));
  kept->before[0] = old->function;
  kept->before[1] = old->file;
  *old = frame;
  ++*named;
  return TB_OK;
}

/* ---- stacks ---- */

bool to_stack_is_unnamed(const struct to_callstack *stack) {
  return stack->len > 0 && stack_of(stack)->is_unnamed;
}

uint64_t to_callstack_hash(const struct to_callstack *stack) {
  return stack_of(stack)->hash;
}

static uint64_t hash_counters(uint64_t hash, const struct to_callstack *stack) {
  bool needs_text = false;

  for (size_t i = 0; i < stack->len; i++) {
    hash = to_stack_mix(hash, stack->frames[i]->pc);
    needs_text |= stack->frames[i]->pc == 0;
  }
  for (size_t i = 0; i < stack->len && needs_text; i++)
    hash = to_stack_mix(hash, (uintptr_t)stack->frames[i]);
  return hash;
}

static bool has_unnamed(const struct to_callstack *stack) {
  for (size_t i = 0; i < stack->len; i++)
    if (is_unnamed(stack->frames[i])) return true;
  return false;
}

/* The own frame is looked up once, when all frames have their names. */
static void note_names(struct kept_stack *kept) {
  kept->is_unnamed = has_unnamed(&kept->stack);
  if (!kept->is_unnamed && kept->stack.len > 0)
    kept->stack.own = to_callstack_find_own(&kept->stack) + 1;
}

static bool same_stack(const struct to_kept *kept, const void *wanted) {
  const struct to_callstack *a = &((const struct kept_stack *)kept)->stack, *b = wanted;

  return a->len == b->len && memcmp(a->frames, b->frames, a->len * sizeof(*a->frames)) == 0;
}

static tb_rc add_stack(struct to_stack_user *by, const struct to_callstack *stack, size_t before,
                       struct kept_stack **out) {
  size_t bytes = stack->len * sizeof(*stack->frames);
  uint64_t hash = to_stack_mix(by->store->seed, stack->len);
  struct kept_stack *kept;

  for (size_t i = 0; i < stack->len; i++) hash = to_stack_mix(hash, (uintptr_t)stack->frames[i]);
  *out = (struct kept_stack *)set_find(&by->store->stacks, hash, same_stack, stack);
  if (*out != NULL) return TB_OK;
  TB_TRY(set_add(by, &by->store->stacks, hash, sizeof(*kept) + bytes, &kept));
  memcpy(kept + 1, stack->frames, bytes);
  kept->stack = (struct to_callstack){ .len = stack->len, .frames = (void *)(kept + 1) };
  kept->kept.users = 0;
  kept->hash = hash_counters(by->store->seed, &kept->stack);
  note_names(kept);
  kept->cost = by->added - before;
  *out = kept;
  return TB_OK;
}

tb_rc to_stack_store_keep(struct to_stack_user *by, const struct to_frame *frame, size_t n,
                          const struct to_callstack **out, size_t *out_cost) {
  const struct to_frame *kept_frames[TO_STACK_FRAMES_MAX];
  struct to_callstack stack = { .frames = kept_frames };
  struct kept_stack *kept = NULL;
  size_t before = by->added;
  tb_rc rc = TB_OK;

  for (; stack.len < n && rc == TB_OK; stack.len += rc == TB_OK)
    rc = keep_frame(by, &frame[stack.len], &kept_frames[stack.len]);
  if (rc == TB_OK) rc = add_stack(by, &stack, before, &kept);
  /* A new stack uses its frames from now on. */
  bool is_new = rc == TB_OK && kept->kept.users == 0;
  for (size_t i = 0; i < stack.len && !is_new; i++) release_frame(by, kept_frames[i]);
  if (rc != TB_OK) return rc;
  kept->kept.users++;
  *out = &kept->stack;
  *out_cost = kept->cost;
  return TB_OK;
}

tb_rc to_stack_store_name(struct to_stack_user *by, const struct to_callstack *stack,
                          const struct to_frame *frame, size_t n, uint32_t *named) {
  for (size_t i = 0; i < stack->len && i < n; i++)
    TB_TRY(name_frame(by, frame_of(stack->frames[i]), frame[i], named));
  note_names(stack_of(stack));
  return TB_OK;
}

static void release_stack(struct to_stack_user *by, const struct to_callstack *stack) {
  struct kept_stack *kept = stack_of(stack);

  if (!set_release(&by->store->stacks, &kept->kept)) return;
  for (size_t i = 0; i < stack->len; i++) release_frame(by, stack->frames[i]);
  release_memory(&kept->kept);
}

static void pass_text(struct to_stack_user *by, struct to_string text) {
  if (text.data != NULL) pass(by, &text_of(text)->kept);
}

static void pass_stack(struct to_stack_user *by, const struct to_callstack *stack) {
  pass(by, &stack_of(stack)->kept);
  for (size_t i = 0; i < stack->len; i++) {
    struct kept_frame *kept = frame_of(stack->frames[i]);
    pass(by, &kept->kept);
    pass_text(by, kept->frame.function);
    pass_text(by, kept->frame.file);
    pass_text(by, kept->before[0]);
    pass_text(by, kept->before[1]);
  }
}

/* All that the user paid for is in its stacks. */
void to_stack_store_leave(struct to_stack_user *by, const struct to_callstack *const *stack,
                          size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (by->mem != by->store->mem) pass_stack(by, stack[i]);
    release_stack(by, stack[i]);
  }
  set_free_if_empty(by->store, &by->store->texts);
  set_free_if_empty(by->store, &by->store->frames);
  set_free_if_empty(by->store, &by->store->stacks);
}
