/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/stacks/idle.h"

#include <string.h>

#include "base/grow.h"
#include "online/event/text.h"
#include "online/spans/stacks/library.h"

_Static_assert((int)TO_REASONS + (int)TO_IDLE_OWN <= (int)TO_IDLE_CALL_BIT,
               "a bit for each reason");

static const uint32_t own_bits = ((UINT32_C(1) << TO_IDLE_OWN) - 1) << TO_REASONS;

struct to_idle_rule {
  uint32_t bits; /* reasons that are idle if the function waits */
  bool any_begin, any_end;
  bool is_not; /* a pattern with !: not idle */
  struct to_string name;
};

static const struct {
  const char *reason, *pattern;
} builtin[] = {
#define TO_IDLE(reason, pattern, why) { reason, pattern },
#include "online/spans/stacks/idle.def"
#undef TO_IDLE
};

/* ---- patterns ---- */

static uint32_t bits_of_class(struct to_string reason) {
  uint32_t bits = 0;

  for (unsigned i = 0; i < TO_REASONS; i++) {
    enum to_wait_class its = to_reason_info((enum to_reason)i)->wait_class;
    if (to_string_is(reason, to_wait_class_name(its))) bits |= UINT32_C(1) << i;
  }
  return bits;
}

/* Class names have priority over reasons: "sync" is both. Returns 0 if no table has the reason. */
static uint32_t bits_of_known(struct to_string reason) {
  enum to_reason one = to_reason_find(reason);

  if (reason.len == 0) return ~(UINT32_C(1) << TO_IDLE_KNOWN);
  if (to_string_is(reason, "syscall")) return UINT32_C(1) << TO_IDLE_CALL_BIT;
  uint32_t bits = bits_of_class(reason);
  if ((bits >> TO_REASON_OTHER & 1) != 0) return bits | own_bits;
  return bits != 0 || one == TO_REASON_OTHER ? bits : UINT32_C(1) << one;
}

/* Returns the index of these words; own->n: not found. */
static unsigned find_words(const struct to_idle_words *own, struct to_string words) {
  unsigned i = 0;

  while (i < own->n &&
         (own->words[i].len != words.len || memcmp(own->words[i].data, words.data, words.len) != 0))
    i++;
  return i;
}

/* Returns 0 if the list already names TO_IDLE_OWN other reasons. */
static uint32_t bits_of(struct to_string reason, struct to_idle_words *own) {
  uint32_t bits = bits_of_known(reason);
  unsigned at = find_words(own, reason);

  if (bits != 0) return bits;
  if (at == TO_IDLE_OWN) return 0;
  if (at == own->n) own->words[own->n++] = reason;
  return UINT32_C(1) << (TO_REASONS + at);
}

static void cut_stars(struct to_idle_rule *rule) {
  struct to_string *name = &rule->name;

  rule->any_end = name->len > 0 && name->data[name->len - 1] == '*';
  name->len -= rule->any_end;
  rule->any_begin = name->len > 0 && name->data[0] == '*';
  name->data += rule->any_begin;
  name->len -= rule->any_begin;
}

/* Returns the colon after a reason; C++ names contain double colons. */
static const char *find_colon(struct to_string text) {
  const char *colon = memchr(text.data, ':', text.len);

  if (colon == NULL) return NULL;
  return colon + 1 < text.data + text.len && colon[1] == ':' ? NULL : colon;
}

/* Ignores the star after a parenthesis, which belongs to a Go method: "net.(*conn).Read". */
static bool has_star_inside(struct to_string name) {
  for (size_t i = 0; i < name.len; i++)
    if (name.data[i] == '*' && (i == 0 || name.data[i - 1] != '(')) return true;
  return false;
}

static bool parse_rule(struct to_string text, struct to_idle_words *own, struct to_idle_rule *out) {
  out->is_not = text.data[0] == '!';
  text.data += out->is_not;
  text.len -= out->is_not;
  const char *colon = find_colon(text);
  struct to_string reason = { text.data, 0 };

  if (colon != NULL) reason.len = (size_t)(colon - text.data);
  size_t skip = colon != NULL ? reason.len + 1 : 0;
  out->name = (struct to_string){ text.data + skip, text.len - skip };
  out->bits = bits_of(reason, own);
  cut_stars(out);
  bool has_name = out->name.len > 0 || out->any_begin || out->any_end;
  return out->bits != 0 && has_name && !has_star_inside(out->name);
}

/* Finds the next pattern of a list, without blanks around it; skips empty ones. */
static bool next_pattern(const char **rest, struct to_string *out) {
  for (;;) {
    const char *begin = *rest + strspn(*rest, ", \t\n");
    size_t len = strcspn(begin, ",");
    if (*begin == '\0') return false;
    *rest = begin + len;
    while (len > 0 && (begin[len - 1] == ' ' || begin[len - 1] == '\t' || begin[len - 1] == '\n'))
      len--;
    *out = (struct to_string){ begin, len };
    if (len > 0) return true;
  }
}

tb_rc to_idle_check(const char *patterns, struct tb_diag *diag) {
  struct to_idle_words own = { .n = 0 };
  struct to_idle_rule rule;
  struct to_string text;

  while (next_pattern(&patterns, &text)) {
    int len = (int)(text.len < 60 ? text.len : 60);
    bool fits = parse_rule(text, &own, &rule);
    if (!fits && rule.bits == 0)
      return tb_fail(diag, TB_BROKEN,
                     "\"%.*s\": more than %d reasons that are not in `tracectl tables reasons`",
                     len, text.data, TO_IDLE_OWN);
    if (!fits)
      return tb_fail(diag, TB_BROKEN,
                     "\"%.*s\" is neither NAME nor REASON:NAME; * may begin or end NAME, "
                     "REASON is in `tracectl tables reasons`",
                     len, text.data);
  }
  return TB_OK;
}

bool to_idle_unknown(const char *patterns, struct tb_diag *note) {
  struct to_idle_words own = { .n = 0 };
  struct to_idle_rule rule;
  struct to_string text;

  while (own.n == 0 && next_pattern(&patterns, &text))
    if (!parse_rule(text, &own, &rule)) return false;
  if (own.n == 0) return false;
  (void)!tb_fail(note, TB_UNSUPPORTED,
                 "\"%.*s\" is not in `tracectl tables reasons`; assuming a reason of a newer Go or "
                 "of a C program",
                 (int)(own.words[0].len < 60 ? own.words[0].len : 60), own.words[0].data);
  return true;
}

/* ---- stacks ---- */

static bool matches(const struct to_idle_rule *rule, struct to_string function) {
  struct to_string name = rule->name;

  if (function.len < name.len) return false;
  if (rule->any_begin && rule->any_end)
    return name.len == 0 || memmem(function.data, function.len, name.data, name.len) != NULL;
  if (!rule->any_begin && !rule->any_end && function.len != name.len) return false;
  const char *at = function.data + (rule->any_begin ? function.len - name.len : 0);
  return name.len == 0 || memcmp(at, name.data, name.len) == 0;
}

/* Counts the frames that show what waits: those of the library, and the first one outside. */
static size_t count_near(const struct to_callstack *stack) {
  size_t n = 0;

  while (n < stack->len && to_library_has(stack->frames[n]->function)) n++;
  return n < stack->len ? n + 1 : n;
}

static bool applies(const struct to_idle_rule *rule, const struct to_callstack *stack,
                    size_t near) {
  for (size_t i = 0; i < near; i++)
    if (matches(rule, stack->frames[i]->function)) return true;
  return near == 0 && matches(rule, (struct to_string){ "", 0 });
}

static uint32_t make_verdict(const struct to_idle *idle, const struct to_callstack *stack) {
  static const struct to_callstack none = { 0 };
  uint32_t bits = 0;

  if (stack == NULL) stack = &none;
  size_t near = count_near(stack);
  for (size_t i = 0; i < idle->rules; i++) {
    const struct to_idle_rule *rule = &idle->rule[i];
    if (applies(rule, stack, near)) bits = rule->is_not ? bits & ~rule->bits : bits | rule->bits;
  }
  return bits | UINT32_C(1) << TO_IDLE_KNOWN;
}

static tb_rc grow(struct to_idle *idle, uint32_t stack) {
  size_t room = idle->of_stacks < 64 ? 64 : idle->of_stacks;
  void *block = idle->of_stack;

  while (room <= stack) room *= 2;
  TB_TRY(tb_mem_resize(idle->mem, &block, idle->of_stacks * sizeof(*idle->of_stack),
                       room * sizeof(*idle->of_stack)));
  idle->of_stack = block;
  memset(idle->of_stack + idle->of_stacks, 0, (room - idle->of_stacks) * sizeof(*idle->of_stack));
  idle->of_stacks = room;
  return TB_OK;
}

/* Returns the bit of a reason that no table has. */
static unsigned own_bit(struct to_idle *idle, unsigned number) {
  if (number >= TO_REASONS_MAX || idle->own.n == 0) return TO_REASON_OTHER;
  uint8_t *bit = &idle->bit_of[number];
  if (*bit != 0) return *bit;
  const char *words = to_reasons_info(idle->reasons, number)->text;
  unsigned at = find_words(&idle->own, (struct to_string){ words, strlen(words) });
  *bit = (uint8_t)(at < idle->own.n ? TO_REASONS + at : TO_REASON_OTHER);
  return *bit;
}

tb_rc to_idle_ask(struct to_idle *idle, uint32_t stack, unsigned which, bool *out) {
  if (TB_UNLIKELY(stack >= idle->of_stacks)) TB_TRY(grow(idle, stack));
  if (TB_UNLIKELY(idle->named != idle->stacks->named)) {
    memset(idle->of_stack, 0, idle->of_stacks * sizeof(*idle->of_stack));
    idle->named = idle->stacks->named;
  }
  uint32_t *bits = &idle->of_stack[stack];
  if (TB_UNLIKELY(*bits == 0))
    *bits = make_verdict(idle, to_stack_table_stack(idle->stacks, stack));
  unsigned bit = which < TO_REASONS ? which : own_bit(idle, which);
  *out = *bits >> (which == TO_IDLE_CALL ? (unsigned)TO_IDLE_CALL_BIT : bit) & 1;
  return TB_OK;
}

/* Returns true for "module+0x1f" and for a call of the C library. */
static bool says_nothing(struct to_string name) {
  if (memmem(name.data, name.len, "+0x", 3) != NULL) return true;
  return memchr(name.data, '.', name.len) == NULL && to_library_has(name);
}

/* Returns true for a C program's stack that names no function of the program. */
static bool is_nameless(const struct to_callstack *stack) {
  if (stack == NULL || stack->len == 0) return false;
  for (size_t i = 0; i < stack->len; i++)
    if (!says_nothing(stack->frames[i]->function)) return false;
  return true;
}

bool to_idle_needs_entry(const struct to_idle *idle, uint32_t stack) {
  return is_nameless(to_stack_table_stack(idle->stacks, stack));
}

tb_rc to_idle_ask_in(struct to_idle *idle, uint32_t stack, unsigned which, struct to_string entry,
                     bool *out) {
  TB_TRY(to_idle_ask(idle, stack, which, out));
  if (entry.len == 0 || !to_idle_needs_entry(idle, stack)) return TB_OK;
  unsigned bit = which < TO_REASONS ? which : own_bit(idle, which);
  for (size_t i = 0; i < idle->rules; i++) {
    const struct to_idle_rule *rule = &idle->rule[i];
    if ((rule->bits >> bit & 1) != 0 && matches(rule, entry)) *out = !rule->is_not;
  }
  return TB_OK;
}

static tb_rc add_rule(struct to_idle *idle, const struct to_idle_rule *rule) {
  TB_TRY(TB_MEM_GROW(idle->mem, idle->rule, idle->rules_room, idle->rules));
  idle->rule[idle->rules++] = *rule;
  return TB_OK;
}

static tb_rc add_builtin(struct to_idle *idle) {
  for (size_t i = 0; i < sizeof(builtin) / sizeof(*builtin); i++) {
    const char *reason = builtin[i].reason, *name = builtin[i].pattern;
    bool is_not = name[0] == '!';
    struct to_idle_rule rule = { .bits =
                                     bits_of_known((struct to_string){ reason, strlen(reason) }),
                                 .is_not = is_not,
                                 .name = { name + is_not, strlen(name + is_not) } };
    cut_stars(&rule);
    TB_TRY(add_rule(idle, &rule));
  }
  return TB_OK;
}

tb_rc to_idle_init(struct to_idle *idle, struct tb_mem *mem, const struct to_stack_table *stacks,
                   const struct to_reasons *reasons, const char *patterns) {
  struct to_idle_rule rule;
  struct to_string text;
  const char *rest;

  *idle = (struct to_idle){ .mem = mem, .stacks = stacks, .reasons = reasons };
  TB_TRY(add_builtin(idle));
  if (patterns == NULL || *patterns == '\0') return TB_OK;
  TB_TRY(tb_mem_alloc(mem, strlen(patterns) + 1, &idle->text));
  idle->text_bytes = strlen(patterns) + 1;
  memcpy(idle->text, patterns, idle->text_bytes);
  for (rest = idle->text; next_pattern(&rest, &text);) {
    if (!parse_rule(text, &idle->own, &rule)) return TB_BROKEN;
    TB_TRY(add_rule(idle, &rule));
  }
  return TB_OK;
}

void to_idle_fini(struct to_idle *idle) {
  if (idle->mem == NULL) return;
  tb_mem_free(idle->mem, idle->rule, idle->rules_room * sizeof(*idle->rule));
  tb_mem_free(idle->mem, idle->of_stack, idle->of_stacks * sizeof(*idle->of_stack));
  if (idle->text != NULL) tb_mem_free(idle->mem, idle->text, idle->text_bytes);
}

tb_rc to_idle_replace(struct to_idle *idle, const char *patterns) {
  struct to_idle fresh;
  tb_rc rc = to_idle_init(&fresh, idle->mem, idle->stacks, idle->reasons, patterns);

  if (rc != TB_OK) {
    to_idle_fini(&fresh);
    return rc;
  }
  to_idle_fini(idle);
  *idle = fresh;
  return TB_OK;
}
