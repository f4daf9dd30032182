/* SPDX-License-Identifier: Apache-2.0 */
/* A function is a name in a file, written once. Within one report, which is of one program, frames with equal
 * program counters are one location, as in Go's own profiles. Another program may have other code at the same
 * counter, so reports share a location only if counter, function and line agree. The message is built in one arena
 * and freed with it. */
#include "tools/tracectl/profiles/pprof.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "pack/report_read.h"
#include "proto/pprof.pb-c.h"
#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/tracectl.h"

enum { CHUNK_BYTES = 256 << 10, NAME_BYTES = 128 };
#define OTHER_STACKS "(other stacks)"
#define NO_STACK     "(no stack)"

typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__StreamReport StreamReport;

/* A growing array of pointers in the arena. */
struct list {
  void **item;
  size_t n, room;
};

struct tk_profile {
  struct tb_arena arena;
  struct tb_map texts, functions, locations; /* hash -> index in the list + 1 */
  struct tb_map by_pc;                       /* of the current report: counter -> index + 1 */
  struct list types, samples, location, function, text;
  int64_t
      shown_type; /* the sample type that pprof shows unless asked for another; 0: its own choice */
};

static tb_rc push(struct tk_profile *p, struct list *list, void *item) {
  TB_TRY(TB_ARENA_GROW(&p->arena, list->item, list->room, list->n));
  list->item[list->n++] = item;
  return TB_OK;
}

static uint64_t next_key(uint64_t key) {
  return key * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static tb_rc text_index(struct tk_profile *p, const char *text, int64_t *out) {
  uint64_t key = tb_hash(TB_HASH_START, text, strlen(text)), *place;

  for (;; key = next_key(key)) {
    TB_TRY(tb_map_put(&p->texts, key, &place, NULL));
    if (*place == 0) {
      TB_TRY(push(p, &p->text, (void *)(uintptr_t)text));
      *place = p->text.n;
    }
    *out = (int64_t)*place - 1;
    if (strcmp(p->text.item[*place - 1], text) == 0) return TB_OK;
  }
}

static tb_rc function_id(struct tk_profile *p, const char *name, const char *file, uint64_t *out) {
  Tracecollect__Pprof__Function *f;
  int64_t name_index, file_index;
  uint64_t *place;

  TB_TRY(text_index(p, name, &name_index));
  TB_TRY(text_index(p, file, &file_index));
  TB_TRY(
      tb_map_put(&p->functions, (uint64_t)name_index << 32 | (uint64_t)file_index, &place, NULL));
  if (*place == 0) {
    TB_TRY(tb_arena_alloc(&p->arena, sizeof *f, &f));
    tracecollect__pprof__function__init(f);
    TB_TRY(push(p, &p->function, f));
    f->id = *place = p->function.n;
    f->name = f->system_name = name_index;
    f->filename = file_index;
  }
  *out = *place;
  return TB_OK;
}

static tb_rc add_location(struct tk_profile *p, uint64_t pc, uint64_t function, uint64_t line) {
  Tracecollect__Pprof__Location *location;
  Tracecollect__Pprof__Line *l, **lines;

  TB_TRY(tb_arena_alloc(&p->arena, sizeof *location, &location));
  TB_TRY(tb_arena_alloc(&p->arena, sizeof *l, &l));
  TB_TRY(tb_arena_alloc(&p->arena, sizeof *lines, &lines));
  tracecollect__pprof__location__init(location);
  tracecollect__pprof__line__init(l);
  l->function_id = function;
  l->line = (int64_t)line;
  lines[0] = l;
  location->line = lines;
  location->n_line = 1;
  location->address = pc;
  TB_TRY(push(p, &p->location, location));
  location->id = p->location.n;
  return TB_OK;
}

/* Finds a location with the same counter, function and line. */
static tb_rc same_location(struct tk_profile *p, uint64_t pc, uint64_t function, uint64_t line,
                           uint64_t *out) {
  uint64_t *place;

  for (uint64_t key = next_key(next_key(pc) ^ function << 32 ^ line);; key = next_key(key)) {
    TB_TRY(tb_map_put(&p->locations, key, &place, NULL));
    if (*place == 0) {
      TB_TRY(add_location(p, pc, function, line));
      *place = p->location.n;
    }
    const Tracecollect__Pprof__Location *known = p->location.item[*place - 1];
    *out = *place;
    if (known->address == pc && known->line[0]->function_id == function &&
        known->line[0]->line == (int64_t)line)
      return TB_OK;
  }
}

static tb_rc location_id(struct tk_profile *p, uint64_t pc, const char *function, const char *file,
                         uint64_t line, uint64_t *out) {
  const uint64_t *known = pc == 0 ? NULL : tb_map_find(&p->by_pc, pc);
  uint64_t function_of, *place;

  if (known != NULL) {
    *out = *known;
    return TB_OK;
  }
  TB_TRY(function_id(p, function, file, &function_of));
  TB_TRY(same_location(p, pc, function_of, line, out));
  if (pc == 0) return TB_OK;
  TB_TRY(tb_map_put(&p->by_pc, pc, &place, NULL));
  *place = *out;
  return TB_OK;
}

/* ---- values of samples ---- */

const FieldSchema *tk_pprof_stack(const TableSchema *table) {
  for (size_t c = 0; c < table->keys && c < table->n_columns; c++)
    if (table->columns[c]->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK)
      return table->columns[c];
  return NULL;
}

/* Returns the unit of a measure that is one number; NULL: not a number. */
static const char *unit_of(const FieldSchema *field) {
  switch (field->type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT: return "count";
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS: return "nanoseconds";
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES: return "bytes";
  default: return NULL;
  }
}

static bool is_distribution(const FieldSchema *field) {
  return field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
}

static bool is_wanted(const struct tk_pprof_ask *ask, size_t column) {
  const FieldSchema *field = ask->table->columns[column];

  if (column < ask->table->keys) return false;
  if (ask->go_measure != NULL)
    return is_distribution(field) && strcmp(field->name, ask->go_measure) == 0;
  return is_distribution(field) || unit_of(field) != NULL;
}

static tb_rc add_type(struct tk_profile *p, const char *name, const char *ending,
                      const char *unit) {
  Tracecollect__Pprof__ValueType *type;
  char text[NAME_BYTES];
  void *copy;

  snprintf(text, sizeof(text), "%s%s", name, ending);
  TB_TRY(tb_arena_copy(&p->arena, text, strlen(text) + 1, &copy));
  TB_TRY(tb_arena_alloc(&p->arena, sizeof *type, &type));
  tracecollect__pprof__value_type__init(type);
  TB_TRY(text_index(p, copy, &type->type));
  TB_TRY(text_index(p, unit, &type->unit));
  return push(p, &p->types, type);
}

/* The first one counts. */
static void show_type(struct tk_profile *p, size_t index) {
  const Tracecollect__Pprof__ValueType *type = p->types.item[index];

  if (p->shown_type == 0) p->shown_type = type->type;
}

static tb_rc add_types(struct tk_profile *p, const struct tk_pprof_ask *ask) {
  for (size_t c = 0; c < ask->table->n_columns; c++) {
    const FieldSchema *field = ask->table->columns[c];
    if (!is_wanted(ask, c)) continue;
    if (!is_distribution(field)) {
      TB_TRY(add_type(p, field->name, "", unit_of(field)));
      continue;
    }
    bool is_go = ask->go_measure != NULL;
    TB_TRY(add_type(p, is_go ? "contentions" : field->name, is_go ? "" : "_count", "count"));
    TB_TRY(add_type(p, is_go ? "delay" : field->name, is_go ? "" : "_total", "nanoseconds"));
    if (!is_go) show_type(p, p->types.n - 1); /* Go sets none */
  }
  if (ask->go_measure == NULL && p->types.n > 0) show_type(p, 0);
  return TB_OK;
}

/* Fills in values in the order of the types; the row's table may have the columns in another order. */
static void fill_values(const struct tk_pprof_ask *ask, const struct tp_table *table,
                        const Tracecollect__V1__Row *row, int64_t *value) {
  for (size_t c = 0; c < ask->table->n_columns; c++) {
    const FieldSchema *field = ask->table->columns[c];
    if (!is_wanted(ask, c)) continue;
    const Tracecollect__V1__Value *from = tp_row_value(row, tp_table_column(table, field->name));
    if (!is_distribution(field)) {
      *value++ = tp_value_number(from);
      continue;
    }
    const Tracecollect__V1__Distribution *d = tp_value_distribution(from);
    *value++ = d != NULL ? (int64_t)d->count : 0;
    *value++ = d != NULL ? (int64_t)d->total_ns : 0;
  }
}

/* ---- samples ---- */

static tb_rc add_sample(struct tk_profile *p, const struct tk_pprof_ask *ask,
                        const struct tp_table *table, const Tracecollect__V1__Row *row) {
  const FieldSchema *key = tk_pprof_stack(ask->table);
  const Tracecollect__V1__Value *stack = tp_row_value(row, tp_table_column(table, key->name));
  size_t n = tp_stack_length(table->report, stack);
  Tracecollect__Pprof__Sample *sample;

  TB_TRY(tb_arena_alloc(&p->arena, sizeof *sample, &sample));
  tracecollect__pprof__sample__init(sample);
  TB_TRY(tb_arena_alloc(&p->arena, (n + 1) * sizeof(uint64_t), &sample->location_id));
  for (size_t i = 0; i < n; i++) {
    const Tracecollect__V1__Frame *f = tp_stack_frame(table->report, stack, i);
    if (f == NULL) continue;
    TB_TRY(location_id(p, f->pc, f->function, f->file, f->line,
                       &sample->location_id[sample->n_location_id++]));
  }
  /* pprof leaves out a sample of no place. Go's profiles have none of these, and are left as Go writes them. */
  const char *place = row->other ? OTHER_STACKS : NO_STACK;
  if (row->other || (sample->n_location_id == 0 && ask->go_measure == NULL)) {
    TB_TRY(location_id(p, 0, place, "", 0, &sample->location_id[0]));
    sample->n_location_id = 1;
  }
  TB_TRY(tb_arena_alloc(&p->arena, p->types.n * sizeof(int64_t), &sample->value));
  fill_values(ask, table, row, sample->value);
  sample->n_value = p->types.n;
  return push(p, &p->samples, sample);
}

static tb_rc add_samples(struct tk_profile *p, const struct tk_pprof_ask *ask,
                         StreamReport *const *reports, size_t n) {
  struct tp_table table;

  for (size_t i = 0; i < n; i++) {
    tb_map_clear(&p->by_pc);
    if (!tp_report_table(reports[i]->report, ask->table->name, &table)) continue;
    for (size_t j = 0; j < table.table->n_rows; j++)
      TB_TRY(add_sample(p, ask, &table, table.table->rows[j]));
  }
  return TB_OK;
}

static tb_rc pack_profile(struct tk_profile *p, struct tb_buf *out) {
  Tracecollect__Pprof__Profile profile = TRACECOLLECT__PPROF__PROFILE__INIT;
  Tracecollect__Pprof__ValueType period = TRACECOLLECT__PPROF__VALUE_TYPE__INIT;

  TB_TRY(text_index(p, "trace", &period.type));
  TB_TRY(text_index(p, "count", &period.unit));
  profile.sample_type = (Tracecollect__Pprof__ValueType **)p->types.item;
  profile.n_sample_type = p->types.n;
  profile.default_sample_type = p->shown_type;
  profile.period_type = &period;
  profile.period = 1;
  profile.sample = (Tracecollect__Pprof__Sample **)p->samples.item;
  profile.n_sample = p->samples.n;
  profile.location = (Tracecollect__Pprof__Location **)p->location.item;
  profile.n_location = p->location.n;
  profile.function = (Tracecollect__Pprof__Function **)p->function.item;
  profile.n_function = p->function.n;
  profile.string_table = (char **)p->text.item;
  profile.n_string_table = p->text.n;
  TB_TRY(tb_buf_reserve(out, tracecollect__pprof__profile__get_packed_size(&profile)));
  out->len = tracecollect__pprof__profile__pack(&profile, out->data);
  return TB_OK;
}

static tb_rc write_gzip(const char *path, const struct tb_buf *packed, struct tb_diag *diag) {
  bool to_stdout = strcmp(path, "-") == 0;

  if (tk_out_is_trace(path))
    return tb_fail(diag, TB_REFUSED, "'%s' is a Go trace, which would be overwritten", path);
  errno = 0;
  gzFile file = to_stdout ? gzdopen(dup(STDOUT_FILENO), "wb") : gzopen(path, "wb");
  if (file == NULL)
    return tb_fail(diag, TB_IO, "%s: %s", path, errno != 0 ? strerror(errno) : "out of memory");
  size_t written = gzfwrite(packed->data, 1, packed->len, file);
  int code = gzclose(file);
  if (written == packed->len && code == Z_OK) return TB_OK;
  return tb_fail(diag, TB_IO, "%s: %s", path, errno != 0 ? strerror(errno) : "write failed");
}

/* rc: result so far. */
static tb_rc store(struct tk_profile *p, tb_rc rc, const char *path, struct tb_diag *diag) {
  struct tb_buf packed;

  tb_buf_init(&packed, &tk_mem);
  if (rc == TB_OK) rc = pack_profile(p, &packed);
  if (rc == TB_OK)
    rc = write_gzip(path, &packed, diag);
  else
    rc = tb_fail(diag, rc, "%s", tb_rc_text(rc));
  tb_buf_fini(&packed);
  return rc;
}

static void init(struct tk_profile *p) {
  *p = (struct tk_profile){ 0 };
  tb_arena_init(&p->arena, &tk_mem, CHUNK_BYTES);
  tb_map_init(&p->texts, &tk_mem, tb_seed());
  tb_map_init(&p->functions, &tk_mem, tb_seed());
  tb_map_init(&p->locations, &tk_mem, tb_seed());
  tb_map_init(&p->by_pc, &tk_mem, tb_seed());
}

static void fini(struct tk_profile *p) {
  tb_map_fini(&p->texts);
  tb_map_fini(&p->functions);
  tb_map_fini(&p->locations);
  tb_map_fini(&p->by_pc);
  tb_arena_fini(&p->arena);
}

/* The first text must be empty. */
static tb_rc begin_profile(struct tk_profile *p) {
  int64_t empty;

  return text_index(p, "", &empty);
}

tb_rc tk_pprof_write(const char *path, const struct tk_pprof_ask *ask, StreamReport *const *reports,
                     size_t n, struct tb_diag *diag) {
  struct tk_profile p;

  init(&p);
  tb_rc rc = begin_profile(&p);
  if (rc == TB_OK) rc = add_types(&p, ask);
  if (rc == TB_OK) rc = add_samples(&p, ask, reports, n);
  rc = store(&p, rc, path, diag);
  fini(&p);
  return rc;
}

/* ---- single samples ---- */

tb_rc tk_profile_new(struct tk_profile **out) {
  struct tk_profile *p;

  TB_TRY(tb_mem_alloc(&tk_mem, sizeof(*p), &p));
  init(p);
  *out = p;
  return begin_profile(p);
}

void tk_profile_free(struct tk_profile *p) {
  if (p == NULL) return;
  fini(p);
  tb_mem_free(&tk_mem, p, sizeof(*p));
}

void tk_profile_program(struct tk_profile *p) {
  tb_map_clear(&p->by_pc);
}

/* Copies a name for the life of the profile. */
static tb_rc keep_name(struct tk_profile *p, const char *name, const char **out) {
  size_t known = p->text.n;
  const void *copy;
  int64_t index;

  TB_TRY(text_index(p, name, &index));
  if (p->text.n > known) {
    TB_TRY(tb_arena_copy(&p->arena, name, strlen(name) + 1, &copy));
    p->text.item[index] = (void *)(uintptr_t)copy;
  }
  *out = p->text.item[index];
  return TB_OK;
}

static tb_rc add_place(struct tk_profile *p, Tracecollect__Pprof__Sample *sample, uint64_t pc,
                       const char *function, const char *file, uint64_t line) {
  return location_id(p, pc, function, file, line, &sample->location_id[sample->n_location_id++]);
}

tb_rc tk_profile_sample(struct tk_profile *p, const struct to_callstack *stack,
                        const char *const *above, size_t n_above, const int64_t *values,
                        size_t n_values) {
  size_t n = stack != NULL ? stack->len : 0;
  Tracecollect__Pprof__Sample *sample;
  const void *copy;

  TB_TRY(tb_arena_alloc(&p->arena, sizeof *sample, &sample));
  tracecollect__pprof__sample__init(sample);
  TB_TRY(tb_arena_alloc(&p->arena, (n_above + n + 1) * sizeof(uint64_t), &sample->location_id));
  for (size_t i = 0; i < n_above; i++) {
    const char *name;
    TB_TRY(keep_name(p, above[i], &name));
    TB_TRY(add_place(p, sample, 0, name, "", 0));
  }
  for (size_t i = 0; i < n; i++) {
    const struct to_frame *f = stack->frames[i];
    TB_TRY(add_place(p, sample, f->pc, f->function.data, f->file.data, f->line));
  }
  if (sample->n_location_id == 0) TB_TRY(add_place(p, sample, 0, NO_STACK, "", 0));
  TB_TRY(tb_arena_copy(&p->arena, values, n_values * sizeof(*values), &copy));
  sample->value = (int64_t *)(uintptr_t)copy;
  return push(p, &p->samples, sample);
}

static const char *unit_of_name(const char *name) {
  size_t len = strlen(name);

  if (len > 3 && strcmp(name + len - 3, "_ns") == 0) return "nanoseconds";
  return len >= 5 && strcmp(name + len - 5, "bytes") == 0 ? "bytes" : "count";
}

static tb_rc name_values(struct tk_profile *p, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (names[i] == NULL) continue;
    TB_TRY(add_type(p, names[i], "", unit_of_name(names[i])));
    if (strcmp(unit_of_name(names[i]), "nanoseconds") == 0) show_type(p, p->types.n - 1);
  }
  bool is_count = p->types.n == 0;
  if (is_count) TB_TRY(add_type(p, "rows", "", "count"));
  show_type(p, 0);
  for (size_t s = 0; s < p->samples.n; s++) {
    Tracecollect__Pprof__Sample *sample = p->samples.item[s];
    static int64_t one = 1;
    if (is_count) sample->value = &one;
    for (size_t i = 0, to = 0; i < n && !is_count; i++)
      if (names[i] != NULL) sample->value[to++] = sample->value[i];
    sample->n_value = p->types.n;
  }
  return TB_OK;
}

tb_rc tk_profile_write(struct tk_profile *p, const char *path, const char *const *names,
                       size_t n_values, struct tb_diag *diag) {
  return store(p, name_values(p, names, n_values), path, diag);
}
