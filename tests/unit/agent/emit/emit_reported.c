/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/emit/emit_reported.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/clock.h"
#include "online/event/generation.h"
#include "online/trace/reader.h"
#include "support/patience.h"
#include "wire/experiments.h"

enum { MEMORY_BYTES = 8 << 20, NEVER_MS = 60000 };

static void report_stack(FILE *reported, const struct to_generation *gen, uint64_t id) {
  struct to_stack_iter it;
  struct to_frame frame;

  if (!to_generation_stack(gen, id, &it)) return;
  while (to_stack_next(&it, &frame)) {
    const char *slash = memrchr(frame.file.data, '/', frame.file.len);
    const char *file = slash != NULL ? slash + 1 : (const char *)frame.file.data;
    fprintf(reported, " < %.*s %.*s:%llu", (int)frame.function.len,
            (const char *)frame.function.data,
            (int)((const char *)frame.file.data + frame.file.len - file), file,
            (unsigned long long)frame.line);
  }
}

static void report_own_arg(FILE *reported, const struct to_generation *gen,
                           const struct tw_arg *arg, uint64_t value) {
  struct to_string text;

  if (arg->type == TW_ARG_STRING && to_generation_string(gen, value, &text))
    fprintf(reported, " %s=%.*s", arg->label, (int)text.len, text.data);
  else
    fprintf(reported, " %s=%lld", arg->label, (long long)value);
}

static tb_rc report(void *self, const struct to_generation *gen, const struct to_event *events,
                    size_t n) {
  enum tw_arg_type types[4];
  FILE *reported = self;

  for (size_t i = 0; i < n; i++) {
    if (events[i].type == TW_EV_SYNC) continue;
    const struct tw_spec *spec = to_generation_spec(gen, events[i].type);
    unsigned args =
        to_generation_args(gen, events[i].type, types); /* a CPU sample's differ from its spec's */
    fprintf(reported, "\n%s", spec->name);
    for (unsigned a = 0; a < args; a++) {
      if (types[a] == TW_ARG_STACK)
        report_stack(reported, gen, events[i].args[a]);
      else if (events[i].type >= TW_OWN_EVENT_FIRST)
        report_own_arg(reported, gen, &spec->args[a], events[i].args[a]);
    }
  }
  return TB_OK;
}

void emit_end_and_read(struct emitted *e, struct to_event_sink sink) {
  struct tb_mem mem;
  struct tb_diag diag = { 0 };
  struct to_reader *reader;
  char fault[300];

  cr_assert_eq(emit_end(e), 0);
  cr_assert_eq(e->traces, 1);
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_reader_new(&mem, NULL, TO_READER_FRAMES, sink, &diag, &reader), TB_OK);
  tb_rc rc = to_reader_read(reader, e->trace[0].bytes, e->trace[0].n);
  tb_diag_format(&diag, fault, sizeof fault);
  cr_assert_eq(rc, TB_OK, "%s", fault);
  to_reader_free(reader);
  cr_assert_eq(mem.bytes, 0);
  emit_free(e);
}

char *emit_reported_end(struct emitted *e) {
  char *text;
  size_t n;
  FILE *reported = open_memstream(&text, &n);

  emit_end_and_read(e, (struct to_event_sink){ reported, report });
  fclose(reported);
  return text;
}

void emit_reported_begin(struct emitted *e, struct ta_emit_config config) {
  if (config.generation_ms == 0) config.generation_ms = NEVER_MS;
  cr_assert_eq(emit_begin(e, &config, MEMORY_BYTES), 0);
}

void emit_until_reported(void (*run)(void), struct ta_emit_config config, const char *words) {
  uint64_t end = ta_mono_ns() + TT_PATIENCE_S * UINT64_C(1000000000);
  struct emitted e;

  for (;;) {
    emit_reported_begin(&e, config);
    run();
    char *reported = emit_reported_end(&e);
    bool found = strstr(reported, words) != NULL;
    if (!found && ta_mono_ns() > end) cr_assert_fail("\"%s\" is not in:%s", words, reported);
    free(reported);
    if (found) return;
  }
}
