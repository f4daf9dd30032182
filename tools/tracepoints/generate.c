/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tracepoints gen: makes MODULE.trace.h, MODULE.trace.c and MODULE.trace.spec from a module's sources; all or
 * none. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/term/out_file.h"
#include "tools/tracepoints/tracepoints.h"
#include "tools/tracepoints/write.h"

static bool is_module_name(const char *name) {
  if (!isalpha((unsigned char)*name) || strlen(name) > TK_NAME_BYTES_MAX) return false;
  for (; *name != '\0'; name++)
    if (!isalnum((unsigned char)*name) && *name != '_') return false;
  return true;
}

static tb_rc read_sources(const struct tk_tracepoints *ask, struct tk_points *own,
                          struct tb_diag *diag) {
  for (int i = 0; i < ask->files; i++) TB_TRY(tk_points_read(own, ask->file[i], ask->module, diag));
  tk_points_lint(own);
  return TB_OK;
}

/* Finds the header that gen has written for another module, in the order of the folders. */
static bool find_header(const struct tk_tracepoints *ask, const char *module, char out[PATH_MAX]) {
  for (unsigned i = 0; i <= ask->folders.n; i++) {
    const char *folder = i < ask->folders.n ? ask->folders.text[i] : ask->out;
    if (snprintf(out, PATH_MAX, "%s/%s.trace.h", folder, module) >= PATH_MAX) continue;
    if (access(out, R_OK) == 0) return true;
  }
  return false;
}

static bool is_imported_before(const struct tk_points *own, const struct tk_wanted *import) {
  for (const struct tk_wanted *w = own->imports; w != import; w = w->next)
    if (strcmp(w->what, import->what) == 0) return true;
  return false;
}

static tb_rc read_imports(const struct tk_tracepoints *ask, struct tk_points *own,
                          struct tk_points *imported, struct tb_diag *diag) {
  char path[PATH_MAX];

  for (const struct tk_wanted *w = own->imports; w != NULL; w = w->next) {
    if (is_imported_before(own, w)) continue;
    if (strcmp(w->what, ask->module) == 0)
      tk_points_fault(own, w->file, w->line, "module %s imports itself", w->what);
    else if (!find_header(ask, w->what, path))
      tk_points_fault(own, w->file, w->line,
                      "import \"%s\": there is no %s.trace.h in the folders named by -I and -o",
                      w->what, w->what);
    else
      TB_TRY(tk_points_read(imported, path, w->what, diag));
  }
  return TB_OK;
}

typedef void write_fn(FILE *out, const char *module, const struct tk_points *own,
                      const struct tk_points *imported);

static tb_rc write_file(const struct tk_tracepoints *ask, struct tk_out_set *set,
                        const char *ending, write_fn *write, const struct tk_points *own,
                        const struct tk_points *imported, struct tb_diag *diag) {
  char path[PATH_MAX];
  FILE *file;

  if (snprintf(path, sizeof path, "%s/%s.trace.%s", ask->out, ask->module, ending) >= PATH_MAX)
    return tb_fail(diag, TB_IO, "%s: name too long", ask->out);
  TB_TRY(tk_out_begin(set, path, diag, &file));
  write(file, ask->module, own, imported);
  return TB_OK;
}

static void write_spec(FILE *out, const char *module, const struct tk_points *own,
                       const struct tk_points *imported) {
  (void)imported;
  tk_points_write_spec(out, module, own, false);
}

static tb_rc write_all(const struct tk_tracepoints *ask, const struct tk_points *own,
                       const struct tk_points *imported, struct tb_diag *diag) {
  struct tk_out_set *set;

  TB_TRY(tk_out_new(diag, &set));
  tb_rc rc = write_file(ask, set, "h", tk_points_write_header, own, imported, diag);
  if (rc == TB_OK) rc = write_file(ask, set, "c", tk_points_write_source, own, imported, diag);
  if (rc == TB_OK) rc = write_file(ask, set, "spec", write_spec, own, imported, diag);
  if (rc == TB_OK) rc = tk_out_publish(set, diag);
  tk_out_free(set);
  return rc;
}

static int generate(const struct tk_tracepoints *ask, struct tk_points *own,
                    struct tk_points *imported) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = read_sources(ask, own, &diag);
  if (rc == TB_OK) rc = read_imports(ask, own, imported, &diag);
  if (rc == TB_OK && own->faults + imported->faults > 0) return TK_FAILED;
  if (rc == TB_OK) rc = write_all(ask, own, imported, &diag);
  if (rc != TB_OK)
    return tk_fail("tracepoints", "%s", diag.text[0] != '\0' ? diag.text : tb_rc_text(rc));
  return TK_DONE;
}

int tk_tracepoints_gen(const struct tk_tracepoints *ask) {
  struct tk_points own, imported;

  if (ask->module == NULL) return tk_usage("tracepoints", "gen: --module NAME is required");
  if (!is_module_name(ask->module))
    return tk_usage("tracepoints", "module \"%s\": letters, digits and _, a letter first",
                    ask->module);
  tk_points_init(&own);
  tk_points_init(&imported);
  int code = generate(ask, &own, &imported);
  tk_points_fini(&own);
  tk_points_fini(&imported);
  return code;
}
