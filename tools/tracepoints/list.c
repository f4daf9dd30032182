/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tracepoints list: the events that sources declare, or programs contain. */
#include <jansson.h>
#include <stdio.h>

#include "tools/tracectl/term/table.h"
#include "tools/tracepoints/elf.h"
#include "tools/tracepoints/points.h"
#include "tools/tracepoints/tracepoints.h"

struct list {
  bool json;
  struct tk_table table;
};

static void set(json_t *line, const char *key, const char *text) {
  if (text != NULL) json_object_set_new(line, key, json_string(text));
}

static const char *or_dash(const char *text) {
  return text != NULL ? text : "-";
}

static void add_built(void *self, const struct tk_built *event) {
  struct list *list = self;

  if (!list->json) {
    tk_table_add(&list->table, "%s", or_dash(event->module));
    tk_table_add(&list->table, "%s", event->name);
    tk_table_add(&list->table, "%s", event->params);
    tk_table_add(&list->table, "%s", or_dash(event->signature));
    tk_table_add(&list->table, "%s", event->at);
    return;
  }
  json_t *line = json_object();
  set(line, "module", event->module);
  set(line, "event", event->name);
  set(line, "parameters", event->params);
  set(line, "signature", event->signature);
  set(line, "at", event->at);
  json_dumpf(line, stdout, JSON_COMPACT);
  fputc('\n', stdout);
  json_decref(line);
}

/* The module is unknown here: only gen gets it. */
static tb_rc add_point(struct list *list, const struct tk_point *p) {
  char at[4096 + 16], signature[9];
  struct tb_buf params;

  tb_buf_init(&params, &tk_mem);
  tk_point_params(p, &params);
  tb_buf_byte(&params, '\0');
  snprintf(at, sizeof at, "%s:%u", p->file, p->line);
  snprintf(signature, sizeof signature, "%08x", p->module != NULL ? tk_point_signature(p) : 0);
  tb_rc rc = params.rc;
  if (rc == TB_OK)
    add_built(list, &(struct tk_built){ .module = p->module,
                                        .name = p->name,
                                        .params = (const char *)params.data,
                                        .signature = p->module != NULL ? signature : NULL,
                                        .at = at });
  tb_buf_fini(&params);
  return rc;
}

static tb_rc add_source(struct list *list, const struct tk_tracepoints *ask, const char *path,
                        unsigned *faults, struct tb_diag *diag) {
  struct tk_points points;

  tk_points_init(&points);
  tb_rc rc = tk_points_read(&points, path, ask->module, diag);
  for (const struct tk_point *p = points.first; rc == TB_OK && p != NULL; p = p->next)
    rc = add_point(list, p);
  *faults += points.faults;
  tk_points_fini(&points);
  return rc;
}

int tk_tracepoints_list(const struct tk_tracepoints *ask) {
  struct list list = { .json = ask->json };
  struct tb_diag diag;
  unsigned faults = 0;
  tb_rc rc = TB_OK;

  tb_diag_clear(&diag);
  tk_table_init(&list.table, "MODULE,EVENT,PARAMETERS,SIGNATURE,AT");
  for (int i = 0; rc == TB_OK && i < ask->files; i++)
    rc = tk_elf_is(ask->file[i]) ? tk_elf_points(ask->file[i], add_built, &list, &diag)
                                 : add_source(&list, ask, ask->file[i], &faults, &diag);
  if (!ask->json) tk_table_print(&list.table, stdout, false);
  tk_table_fini(&list.table);
  if (rc != TB_OK)
    return tk_fail("tracepoints", "%s", diag.text[0] != '\0' ? diag.text : tb_rc_text(rc));
  return faults > 0 ? TK_FAILED : TK_DONE;
}
