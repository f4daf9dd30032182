/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what is written for the event traceHello of the module hello:
 *
 *   traceHello()             signals it, inline: is a probe attached?
 *   traceHello_attach()      a probe of the event's own type
 *   traceHello_point()       for ta_call_attach() and the probes made of it
 *   hello__traceHello        the tracepoint; module and name with two underscores between, hidden in the module
 *   hello_traceHello_SIGNATURE()  the way in for other modules: code that expects another signature finds no such name
 *
 * and for one that the module imports hello_traceHello_attach() and hello_traceHello_point(). */
#include "tools/tracepoints/write.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "traceprobe.h"

static void write_params(FILE *out, const struct tk_point *point) {
  for (unsigned i = 0; i < point->n; i++) {
    const struct tk_param *p = &point->param[i];
    bool glued = p->type[strlen(p->type) - 1] == '*';
    fprintf(out, "%s%s%s%s", i > 0 ? ", " : "", p->type, glued ? "" : " ", p->name);
  }
  if (point->n == 0) fputs("void", out);
}

/* Parameters with the probe's own pointer in front. */
static void write_probe_params(FILE *out, const struct tk_point *point) {
  fputs("void *ta_self", out);
  if (point->n == 0) return;
  fputs(", ", out);
  write_params(out, point);
}

static void write_args(FILE *out, const struct tk_point *point) {
  for (unsigned i = 0; i < point->n; i++)
    fprintf(out, "%s%s", i > 0 ? ", " : "", point->param[i].name);
}

/* Declares struct types that are only used through pointers. */
static void write_forward(FILE *out, const char *type) {
  for (const char *kind = type; kind != NULL; kind = strchr(kind, ' ')) {
    kind += strspn(kind, " ");
    if (strncmp(kind, "struct ", 7) != 0 && strncmp(kind, "union ", 6) != 0) continue;
    size_t word = strcspn(kind, " ") + 1;
    fprintf(out, "%.*s;\n", (int)(word + strcspn(kind + word, " *")), kind);
  }
}

static void write_forwards(FILE *out, const struct tk_points *set) {
  for (const struct tk_point *p = set->first; p != NULL; p = p->next)
    for (unsigned i = 0; i < p->n; i++) write_forward(out, p->param[i].type);
}

static void write_attach(FILE *out, const char *module, const struct tk_point *p) {
  const char *line = *module != '\0' ? "_" : "";

  fprintf(out,
          "static inline int %s%s%s_attach(struct ta_probe_group *ta_group, struct ta_probe "
          "*ta_probe,\n"
          "    void (*ta_fn)(",
          module, line, p->name);
  write_probe_params(out, p);
  fprintf(out,
          "), void *ta_self) {\n"
          "  return ta_probe_attach(ta_group, %s%s%s_point(), ta_probe, (ta_probe_fn *)ta_fn, "
          "ta_self);\n}\n",
          module, line, p->name);
}

static void write_event(FILE *out, const char *module, const struct tk_point *p) {
  fprintf(out, "\n//trace:event %s%s(", p->scheduling ? "scheduling " : "", p->name);
  write_params(out, p);
  fprintf(out, ")\nextern struct ta_tracepoint %s__%s TA_TRACE_PRIVATE;\n", module, p->name);
  fprintf(out, "TA_TRACE_SLOW void %s__%s_probes(", module, p->name);
  write_params(out, p);
  fprintf(out, ");\nTA_INLINE void %s(", p->name);
  write_params(out, p);
  fprintf(out, ") {\n  if (TA_TRACE_IS_ON(&%s__%s)) {\n    %s__%s_probes(", module, p->name, module,
          p->name);
  write_args(out, p);
  fprintf(out,
          ");\n    TA_TRACE_STAY;\n  }\n}\n"
          "static inline struct ta_tracepoint *%s_point(void) {\n  return &%s__%s;\n}\n",
          p->name, module, p->name);
  write_attach(out, "", p);
}

static void write_imported(FILE *out, const char *module, const struct tk_point *p) {
  fprintf(out,
          "\n/* %s of %s, as %s.trace.h had it. */\n"
          "extern struct ta_tracepoint *(*%s__%s_%s)(void) TA_TRACE_PRIVATE;\n"
          "static inline struct ta_tracepoint *%s_%s_point(void) {\n  return %s__%s_%s();\n}\n",
          p->name, p->module, p->module, module, p->module, p->name, p->module, p->name, module,
          p->module, p->name);
  write_attach(out, p->module, p);
}

static void write_guard(FILE *out, const char *directive, const char *module) {
  fputs(directive, out);
  for (const char *c = module; *c != '\0'; c++) fputc(toupper((unsigned char)*c), out);
  fputs("_TRACE_H\n", out);
}

void tk_points_write_header(FILE *out, const char *module, const struct tk_points *own,
                            const struct tk_points *imported) {
  fprintf(out,
          "/* Tracepoints of %s, made by `tracectl tracepoints gen` from the //trace: lines of its "
          "sources.\n"
          " * They are no part of its interface: another version may have others. */\n",
          module);
  write_guard(out, "#ifndef ", module);
  write_guard(out, "#define ", module);
  fputs("\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n#include "
        "<traceprobe.h>\n",
        out);
  for (const struct tk_wanted *w = own->includes; w != NULL; w = w->next)
    fprintf(out, "#include %s\n//trace:include %s\n", w->what, w->what);
  for (const struct tk_wanted *w = imported->includes; w != NULL; w = w->next)
    fprintf(out, "#include %s\n", w->what);
  fprintf(out, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n//trace:module %s\n", module);
  write_forwards(out, own);
  write_forwards(out, imported);
  for (const struct tk_point *p = own->first; p != NULL; p = p->next) write_event(out, module, p);
  for (const struct tk_point *p = imported->first; p != NULL; p = p->next)
    write_imported(out, module, p);
  fputs("\n#ifdef __cplusplus\n}\n#endif\n#endif\n", out);
}

static void write_param_table(FILE *out, const char *module, const struct tk_point *p) {
  if (p->n == 0) return;
  fprintf(out, "static const struct ta_param %s__%s_params[] = {\n", module, p->name);
  for (unsigned i = 0; i < p->n; i++)
    fprintf(out, "  { \"%s\", \"%s\" },\n", p->param[i].type, p->param[i].name);
  fputs("};\n", out);
}

static void write_pack(FILE *out, const char *module, const struct tk_point *p) {
  fprintf(out, "static void %s__%s_pack(", module, p->name);
  write_probe_params(out, p);
  fputs(") {\n", out);
  if (p->n > 0) {
    fputs("  const struct ta_arg ta_args[] = { ", out);
    for (unsigned i = 0; i < p->n; i++)
      fprintf(out, "%sTA_ARG(%s)", i > 0 ? ", " : "", p->param[i].name);
    fputs(" };\n", out);
  }
  fprintf(out, "  ta_call_run(ta_self, %s);\n  TA_TRACE_STAY;\n}\n", p->n > 0 ? "ta_args" : "NULL");
}

static void write_point(FILE *out, const char *module, const struct tk_point *p, unsigned *event) {
  fprintf(out,
          "struct ta_tracepoint %s__%s = {\n"
          "  .module = \"%s\", .name = \"%s\", .params = ",
          module, p->name, module, p->name);
  if (p->n > 0)
    fprintf(out, "%s__%s_params", module, p->name);
  else
    fputs("NULL", out);
  fprintf(out,
          ", .n = %u, .pack = (ta_probe_fn *)%s__%s_pack,\n  .spec = &%s__spec, .event = ", p->n,
          module, p->name, module);
  if (tk_point_is_event(module, p))
    fprintf(out, "%u\n};\n", (*event)++);
  else
    fputs("TA_TRACE_NO_EVENT\n};\n", out);
}

static void write_spec(FILE *out, const char *module, const struct tk_points *own) {
  unsigned events = 0;

  for (const struct tk_point *p = own->first; p != NULL; p = p->next)
    events += tk_point_is_event(module, p);
  fprintf(out, "\nstatic const struct ta_trace_spec %s__spec = {\n", module);
  tk_points_write_spec(out, module, own, true);
  fprintf(out, "  , %u\n};\n", events);
}

static void write_probes(FILE *out, const char *module, const struct tk_point *p) {
  fprintf(out, "void %s__%s_probes(", module, p->name);
  write_params(out, p);
  fprintf(out,
          ") {\n"
          "  struct ta_passing ta_here = TA_PASSING;\n"
          "  const struct ta_probe *ta_probe = ta_passing_begin(&%s__%s, &ta_here);\n"
          "  for (; ta_probe != NULL; ta_probe = ta_probe_next(ta_probe))\n"
          "    ((void (*)(void *",
          module, p->name);
  for (unsigned i = 0; i < p->n; i++) fprintf(out, ", %s", p->param[i].type);
  fputs("))ta_probe->fn)(ta_probe->self", out);
  if (p->n > 0) fputs(", ", out);
  write_args(out, p);
  fputs(");\n  ta_passing_end(&ta_here);\n}\n", out);
}

static void write_way_in(FILE *out, const char *module, const struct tk_point *p) {
  fprintf(out,
          "TA_API struct ta_tracepoint *%s_%s_%08" PRIx32 "(void);\n"
          "struct ta_tracepoint *%s_%s_%08" PRIx32 "(void) {\n  return &%s__%s;\n}\n",
          module, p->name, tk_point_signature(p), module, p->name, tk_point_signature(p), module,
          p->name);
}

/* Quotes and backslashes of a path are escaped. */
static void write_note(FILE *out, const char *module, const struct tk_point *p) {
  fprintf(out, "TA_TRACE_NOTE(%s__%s_note,\n  \"%s\" \"\\0\" \"%s\" \"\\0\" \"(", module, p->name,
          module, p->name);
  write_params(out, p);
  fprintf(out, ")\" \"\\0\" \"%08" PRIx32 "\" \"\\0\" \"", tk_point_signature(p));
  for (const char *c = p->file; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\') fputc('\\', out);
    fputc(*c, out);
  }
  fprintf(out, ":%u\");\n", p->line);
}

void tk_points_write_source(FILE *out, const char *module, const struct tk_points *own,
                            const struct tk_points *imported) {
  unsigned event = 0;

  fprintf(out,
          "/* Made by `tracectl tracepoints gen`, with %s.trace.h. */\n#include \"%s.trace.h\"\n\n"
          "#if TA_TRACE_ABI != %d\n"
          "#error \"%s.trace.c and traceprobe.h are of two versions: `tracectl tracepoints gen` of "
          "traceprobe.h's makes it again\"\n"
          "#endif\n"
          "extern const char *const %s__abi TA_TRACE_PRIVATE;\n"
          "TA_TRACE_KEPT const char *const %s__abi = &ta_trace_abi_%d;\n",
          module, module, TA_TRACE_ABI, module, module, module, TA_TRACE_ABI);
  if (own->first != NULL) write_spec(out, module, own);
  for (const struct tk_point *p = own->first; p != NULL; p = p->next) {
    fputc('\n', out);
    write_param_table(out, module, p);
    write_pack(out, module, p);
    write_point(out, module, p, &event);
    write_probes(out, module, p);
    write_way_in(out, module, p);
    write_note(out, module, p);
  }
  for (const struct tk_point *p = imported->first; p != NULL; p = p->next) {
    fprintf(out,
            "\nextern struct ta_tracepoint *%s_%s_%08" PRIx32 "(void);\n"
            "struct ta_tracepoint *(*%s__%s_%s)(void) = %s_%s_%08" PRIx32 ";\n",
            p->module, p->name, tk_point_signature(p), module, p->module, p->name, p->module,
            p->name, tk_point_signature(p));
  }
}
