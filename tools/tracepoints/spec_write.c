/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tracepoints experiment: for the event Hit of the experiment Cache
 *
 *   cache.experiment.h   cache_register(), and cache_hit() that emits it with arguments of their types
 *   cache.reader.h       struct cache_hit, and cache_hit_read() that fills it from an ordered event (libtraceonline)
 *
 * both or neither. A label without an underscore gets one appended: it may be a keyword of C. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/term/out_file.h"
#include "tools/tracepoints/spec_file.h"
#include "tools/tracepoints/tracepoints.h"

/* C types of an argument, for the agent and from the reader. */
static const struct {
  const char *emits, *reads;
} c_types[] = {
  [TW_ARG_VALUE] = { "uint64_t ", "uint64_t " },
  [TW_ARG_M] = { "uint64_t ", "uint64_t " },
  [TW_ARG_P] = { "uint64_t ", "uint64_t " },
  [TW_ARG_G] = { "ta_fiber ", "uint64_t " },
  [TW_ARG_SEQ] = { "ta_sequence *", "uint64_t " },
  [TW_ARG_STACK] = { "ta_name ", "uint64_t " },
  [TW_ARG_STRING] = { "ta_name ", "struct to_string " },
  [TW_ARG_TASK] = { "ta_task ", "uint64_t " },
  [TW_ARG_PSTATUS] = { "uint64_t ", "uint64_t " },
  [TW_ARG_GSTATUS] = { "uint64_t ", "uint64_t " },
};

/* "PageFault" becomes page_fault. */
static void snake(const char *name, char out[2 * TW_EXPERIMENT_NAME_MAX + 1]) {
  size_t n = 0;

  for (const char *c = name; *c != '\0'; c++) {
    bool word =
        c > name && isupper((unsigned char)*c) && !isupper((unsigned char)c[-1]) && c[-1] != '_';
    if (word) out[n++] = '_';
    out[n++] = (char)tolower((unsigned char)*c);
  }
  out[n] = '\0';
}

struct named {
  char experiment[2 * TW_EXPERIMENT_NAME_MAX + 1], event[2 * TW_EXPERIMENT_NAME_MAX + 1];
  const struct tw_own_event *spec;
};

static const char *after(const struct tw_arg *arg) {
  return strchr(arg->label, '_') == NULL ? "_" : "";
}

static bool is_blob(const struct tw_arg *arg) {
  const char *last = strrchr(arg->label, '_');

  return strcmp(last == NULL ? arg->label : last + 1, "blob") == 0;
}

static bool has_blob(const struct tw_own_event *event) {
  for (unsigned i = 0; i < event->spec.nargs; i++)
    if (is_blob(&event->spec.args[i])) return true;
  return false;
}

static void put_comma(FILE *out, bool *first) {
  if (!*first) fputs(", ", out);
  *first = false;
}

static void put_params(FILE *out, const struct tw_own_event *event, bool blob) {
  bool first = true;

  if (blob) {
    fputs("ta_name stream, const void *bytes, size_t n", out);
    first = false;
  }
  for (unsigned i = 0; i < event->spec.nargs; i++) {
    const struct tw_arg *arg = &event->spec.args[i];
    if (is_blob(arg)) continue;
    put_comma(out, &first);
    fprintf(out, "%s%s%s", c_types[arg->type].emits, arg->label, after(arg));
  }
  if (first) fputs("void", out);
}

static void put_args(FILE *out, const struct tw_own_event *event) {
  for (unsigned i = 0; i < TW_TIMED_ARGS_MAX; i++) {
    const struct tw_arg *arg = &event->spec.args[i];
    if (i >= event->spec.nargs || is_blob(arg))
      fputs(", 0", out);
    else if (arg->type == TW_ARG_SEQ)
      fprintf(out, ", TA_SEQUENCE(%s%s)", arg->label, after(arg));
    else
      fprintf(out, ", %s%s", arg->label, after(arg));
  }
}

static void put_emit(FILE *out, const struct named *n, unsigned place) {
  bool blob = has_blob(n->spec);

  fprintf(out, "TA_INLINE void %s_%s(", n->experiment, n->event);
  put_params(out, n->spec, blob);
  fprintf(out, ") {\n  %s(%s_event[%u]%s", blob ? "ta_emit_blob" : "ta_experiment_emit",
          n->experiment, place, blob ? ", stream, bytes, n" : "");
  put_args(out, n->spec);
  fputs(");\n}\n", out);
}

/* Registers once in a library or program, even if several sources have the code. */
static void put_register(FILE *out, const struct tw_experiments *x, const char *name) {
  fprintf(out,
          "#define %s__ONCE __attribute__((weak, visibility(\"hidden\")))\n"
          "%s__ONCE ta_experiment %s_experiment;\n%s__ONCE ta_event %s_event[%u];\n\n"
          "/* Before the first event; again does no harm. */\n"
          "static inline int %s_register(void) {\n"
          "  return ta_experiment_register(\"experiment %s\\n\"",
          name, name, name, name, name, x->events > 0 ? x->events : 1, name, x->experiment[0].name);
  for (unsigned i = 0; i < x->events; i++) {
    const struct tw_own_event *event = &x->event[i];
    fprintf(out, "\n    \"event %s ctx=%s", event->spec.name,
            tw_context_name((enum tw_context)event->context));
    for (unsigned a = 0; a < event->spec.nargs; a++) fprintf(out, " %s", event->spec.args[a].label);
    fputs("\\n\"", out);
  }
  fprintf(out, ",\n    &%s_experiment, %s_event, %u);\n}\n", name, name, x->events);
}

static void put_read(FILE *out, const struct named *n, const char *experiment) {
  const struct tw_spec *spec = &n->spec->spec;

  fprintf(out, "\nstruct %s_%s {\n  to_ns time;\n  int64_t m, p, g; /* TO_NONE: none */\n",
          n->experiment, n->event);
  for (unsigned i = 0; i < spec->nargs; i++)
    fprintf(out, "  %s%s%s;\n", c_types[spec->args[i].type].reads, spec->args[i].label,
            after(&spec->args[i]));
  fprintf(out,
          "};\nstatic inline bool %s_%s_read(const struct to_generation *gen,\n"
          "    const struct to_event *ev, struct %s_%s *out) {\n"
          "  static const char *const labels[] = { ",
          n->experiment, n->event, n->experiment, n->event);
  for (unsigned i = 0; i < spec->nargs; i++) fprintf(out, "\"%s\", ", spec->args[i].label);
  fprintf(out,
          "NULL };\n  if (!to_generation_event_is(gen, ev->type, \"%s\", \"%s\", labels)) return "
          "false;\n  out->time = ev->time;\n  out->m = ev->m;\n  out->p = ev->p;\n  out->g = "
          "ev->g;\n",
          experiment, spec->name);
  for (unsigned i = 0; i < spec->nargs; i++) {
    const char *label = spec->args[i].label, *more = after(&spec->args[i]);
    if (spec->args[i].type == TW_ARG_STRING)
      fprintf(out, "  (void)to_generation_string(gen, ev->args[%u], &out->%s%s);\n", i, label,
              more);
    else
      fprintf(out, "  out->%s%s = ev->args[%u];\n", label, more, i);
  }
  fputs("  return true;\n}\n", out);
}

static void put_head(FILE *out, const char *name, const char *what, const char *include) {
  fprintf(out,
          "/* Experiment %s, made by `tracectl tracepoints experiment`. */\n#ifndef %s_%s_H\n"
          "#define %s_%s_H\n\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
          "#include <%s>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
          name, name, what, name, what, include);
}

static void write_header(FILE *out, const struct tw_experiments *x, bool reader) {
  struct named n;

  snake(x->experiment[0].name, n.experiment);
  put_head(out, x->experiment[0].name, reader ? "READER" : "EXPERIMENT",
           reader ? "online/event/generation.h" : "traceexperiment.h");
  if (!reader) put_register(out, x, n.experiment);
  for (unsigned i = 0; i < x->events; i++) {
    n.spec = &x->event[i];
    snake(n.spec->spec.name, n.event);
    if (reader)
      put_read(out, &n, x->experiment[0].name);
    else
      put_emit(out, &n, i);
  }
  fputs("\n#ifdef __cplusplus\n}\n#endif\n#endif\n", out);
}

static tb_rc write_file(struct tk_out_set *set, const char *folder, const struct tw_experiments *x,
                        bool reader, struct tb_diag *diag) {
  char name[2 * TW_EXPERIMENT_NAME_MAX + 1], path[PATH_MAX];
  FILE *file;

  snake(x->experiment[0].name, name);
  if (snprintf(path, sizeof path, "%s/%s.%s.h", folder, name, reader ? "reader" : "experiment") >=
      PATH_MAX)
    return tb_fail(diag, TB_IO, "%s: name too long", folder);
  TB_TRY(tk_out_begin(set, path, diag, &file));
  write_header(file, x, reader);
  return TB_OK;
}

static tb_rc write_both(const char *folder, const struct tw_experiments *x, struct tb_diag *diag) {
  struct tk_out_set *set;

  TB_TRY(tk_out_new(diag, &set));
  tb_rc rc = write_file(set, folder, x, false, diag);
  if (rc == TB_OK) rc = write_file(set, folder, x, true, diag);
  if (rc == TB_OK) rc = tk_out_publish(set, diag);
  tk_out_free(set);
  return rc;
}

int tk_tracepoints_experiment(const struct tk_tracepoints *ask) {
  struct tb_diag diag;

  if (ask->files != 1) return tk_usage("tracepoints", "experiment: one SPEC is required");
  struct tw_experiments *x = tk_spec_file_read(ask->file[0]);
  if (x == NULL) return TK_FAILED;
  tb_diag_clear(&diag);
  tb_rc rc = x->experiments != 1
                 ? tb_fail(&diag, TB_BROKEN, "%s: one experiment a file", ask->file[0])
                 : write_both(ask->out, x, &diag);
  free(x);
  if (rc == TB_OK) return TK_DONE;
  return tk_fail("tracepoints", "%s", diag.text[0] != '\0' ? diag.text : tb_rc_text(rc));
}
