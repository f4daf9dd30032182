/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile as the message that pprof reads. The message is built as a whole, in memory of its own: events counted
 * meanwhile are in the next one.
 *
 * Addresses get a name here if the loader knows one. The mappings of all files are written, so that pprof finds the other
 * names, and the lines, in the files' own debug information. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/keep.h"
#include "agent/probe/gzip.h"
#include "agent/probe/own_file.h"
#include "agent/probe/profile.h"
#include "proto/pprof.pb-c.h"

typedef Tracecollect__Pprof__Profile message;
typedef Tracecollect__Pprof__Location location;
typedef Tracecollect__Pprof__Function function;
typedef Tracecollect__Pprof__Mapping mapping;
typedef Tracecollect__Pprof__Sample sample;
typedef Tracecollect__Pprof__Line line;

enum { MAPPINGS_MAX = 512 };

/* Room for the most rows that are possible: a location for each address and each event, and a text for each location. */
struct draft {
  message out;
  const ta_profile *profile;
  size_t samples_max, locations_max;
  sample *samples;
  location *locations;
  function *functions;
  line *lines;
  void **pointers; /* to lines, then to the rows of each kind, as in point_at_rows() */
  mapping mappings[MAPPINGS_MAX];
  char **texts;
  size_t texts_max;
  uint64_t *frames; /* location ids of all samples, one after the other */
  int64_t *counts;
  bool failed; /* memory could not be allocated */
};

static void *allocate(struct draft *d, size_t n, size_t bytes) {
  void *block = calloc(n > 0 ? n : 1, bytes);

  d->failed = d->failed || block == NULL;
  return block;
}

/* Copies a text, because the loader's texts may be unloaded, and returns the index of the copy. */
static int64_t add_text(struct draft *d, const char *prefix, const char *rest) {
  size_t n = strlen(prefix), m = strlen(rest);
  char *copy = d->out.n_string_table < d->texts_max ? allocate(d, 1, n + m + 1) : NULL;

  if (copy == NULL) return 0;
  memcpy(copy, prefix, n);
  memcpy(copy + n, rest, m);
  d->texts[d->out.n_string_table] = copy;
  return (int64_t)d->out.n_string_table++;
}

static int add_mapping(struct dl_phdr_info *info, size_t size, void *self) {
  struct draft *d = self;
  char path[PATH_MAX] = "";

  (void)size;
  for (int i = 0; i < info->dlpi_phnum && d->out.n_mapping < MAPPINGS_MAX; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0) continue;
    if (info->dlpi_name[0] == '\0' && path[0] == '\0' &&
        readlink("/proc/self/exe", path, sizeof path - 1) < 0)
      strcpy(path, "program");
    mapping *m = &d->mappings[d->out.n_mapping];
    tracecollect__pprof__mapping__init(m);
    m->id = ++d->out.n_mapping;
    m->memory_start = info->dlpi_addr + p->p_vaddr;
    m->memory_limit = m->memory_start + p->p_memsz;
    m->file_offset = p->p_offset;
    m->filename = add_text(d, info->dlpi_name[0] != '\0' ? info->dlpi_name : path, "");
  }
  return 0;
}

static uint64_t mapping_of(const struct draft *d, uint64_t pc) {
  for (size_t i = 0; i < d->out.n_mapping; i++)
    if (pc >= d->mappings[i].memory_start && pc < d->mappings[i].memory_limit)
      return d->mappings[i].id;
  return 0;
}

static void name_location(struct draft *d, location *l, int64_t name) {
  size_t at = (size_t)(l - d->locations);
  function *f = &d->functions[d->out.n_function];

  tracecollect__pprof__function__init(f);
  f->id = ++d->out.n_function;
  f->name = f->system_name = name;
  tracecollect__pprof__line__init(&d->lines[at]);
  d->lines[at].function_id = f->id;
  l->n_line = 1;
  l->line = (line **)d->pointers + at;
  d->pointers[at] = &d->lines[at];
}

static location *new_location(struct draft *d) {
  location *l = &d->locations[d->out.n_location];

  tracecollect__pprof__location__init(l);
  l->id = ++d->out.n_location;
  return l;
}

/* pc: an address in the call, one before its return address. Known locations are searched one by one; a profile has some
 * hundred of them. */
static uint64_t location_of(struct draft *d, uint64_t pc) {
  Dl_info info;

  for (size_t i = 0; i < d->out.n_location; i++)
    if (d->locations[i].address == pc) return d->locations[i].id;
  location *l = new_location(d);
  l->address = pc;
  l->mapping_id = mapping_of(d, pc);
  if (dladdr((const void *)(uintptr_t)pc, &info) != 0 && info.dli_sname != NULL)
    name_location(d, l, add_text(d, info.dli_sname, ""));
  return l->id;
}

/* An event is a location without address that has the event's name. */
static uint64_t event_location(struct draft *d, const char *module, const char *name) {
  char prefix[256];

  snprintf(prefix, sizeof prefix, "%s%s", module, module[0] != '\0' ? "." : "");
  for (size_t i = 0; i < d->out.n_location; i++) {
    const location *l = &d->locations[i];
    if (l->address != 0) continue;
    const char *known = d->texts[d->functions[l->line[0]->function_id - 1].name];
    size_t n = strlen(prefix);
    if (strncmp(known, prefix, n) == 0 && strcmp(known + n, name) == 0) return l->id;
  }
  location *l = new_location(d);
  name_location(d, l, add_text(d, prefix, name));
  return l->id;
}

static uint64_t *add_sample(struct draft *d, uint64_t *frames, size_t n, uint64_t count) {
  size_t at = d->out.n_sample++;
  sample *s = &d->samples[at];

  tracecollect__pprof__sample__init(s);
  d->counts[at] = (int64_t)count;
  s->n_value = 1;
  s->value = &d->counts[at];
  s->n_location_id = n;
  s->location_id = frames;
  return frames + n;
}

static bool is_ready(const struct ta_profile_slot *slot) {
  return atomic_load_explicit(&slot->ready, memory_order_acquire);
}

static void add_samples(struct draft *d) {
  uint64_t *frames = d->frames;

  for (unsigned i = 0; i < d->profile->slots && d->out.n_sample < d->samples_max - 1; i++) {
    const struct ta_profile_slot *slot = &d->profile->slot[i];
    size_t left = d->locations_max - 1 - (size_t)(frames - d->frames);
    if (!is_ready(slot) || slot->n + 1 > left) continue; /* new since the rows were allocated */
    frames[0] = event_location(d, slot->module, slot->name);
    for (unsigned k = 0; k < slot->n; k++)
      frames[k + 1] = location_of(d, (uint64_t)(uintptr_t)slot->pc[k] - 1);
    frames = add_sample(d, frames, slot->n + 1, atomic_load(&slot->count));
  }
  uint64_t others = atomic_load(&d->profile->others);
  if (others == 0) return;
  frames[0] = event_location(d, "", "(other stacks)");
  add_sample(d, frames, 1, others);
}

static void allocate_rows(struct draft *d) {
  size_t pcs = 1;

  d->samples_max = 1; /* for the other stacks */
  for (unsigned i = 0; i < d->profile->slots; i++)
    if (is_ready(&d->profile->slot[i])) {
      d->samples_max++;
      pcs += d->profile->slot[i].n + 1;
    }
  d->locations_max = pcs;
  d->texts_max = pcs + MAPPINGS_MAX + 4;
  d->samples = allocate(d, d->samples_max, sizeof(sample));
  d->counts = allocate(d, d->samples_max, sizeof(int64_t));
  d->locations = allocate(d, pcs, sizeof(location));
  d->functions = allocate(d, pcs, sizeof(function));
  d->lines = allocate(d, pcs, sizeof(line));
  d->frames = allocate(d, pcs, sizeof(uint64_t));
  d->texts = allocate(d, d->texts_max, sizeof(char *));
  d->pointers = allocate(d, 3 * pcs + d->samples_max + MAPPINGS_MAX, sizeof(void *));
}

/* protobuf-c needs arrays of pointers. */
static void point_at_rows(struct draft *d) {
  void **pos = d->pointers + d->locations_max;

  d->out.location = (location **)pos;
  for (size_t i = 0; i < d->out.n_location; i++) *pos++ = &d->locations[i];
  d->out.function = (function **)pos;
  for (size_t i = 0; i < d->out.n_function; i++) *pos++ = &d->functions[i];
  d->out.sample = (sample **)pos;
  for (size_t i = 0; i < d->out.n_sample; i++) *pos++ = &d->samples[i];
  d->out.mapping = (mapping **)pos;
  for (size_t i = 0; i < d->out.n_mapping; i++) *pos++ = &d->mappings[i];
  d->out.string_table = d->texts;
}

static int write_packed(const struct draft *d, const char *path) {
  size_t n = tracecollect__pprof__profile__get_packed_size(&d->out);
  unsigned char *bytes = malloc(n > 0 ? n : 1);
  FILE *file = bytes != NULL ? ta_own_file(path) : NULL;
  int error = bytes == NULL ? TA_E_NOMEM : file == NULL ? TA_E_FILE : TA_OK;

  if (error == TA_OK) {
    bool whole = ta_gzip_store(file, bytes, tracecollect__pprof__profile__pack(&d->out, bytes));
    whole = fclose(file) == 0 && whole;
    error = whole ? TA_OK : TA_E_FILE;
  }
  free(bytes);
  return error;
}

static int write_draft(struct draft *d, const char *path) {
  Tracecollect__Pprof__ValueType events = TRACECOLLECT__PPROF__VALUE_TYPE__INIT, *one = &events;

  allocate_rows(d);
  if (d->failed) return TA_E_NOMEM;
  add_text(d, "", "");
  events.type = add_text(d, "events", "");
  events.unit = add_text(d, "count", "");
  d->out.n_sample_type = 1;
  d->out.sample_type = &one;
  dl_iterate_phdr(add_mapping, d);
  add_samples(d);
  if (d->failed) return TA_E_NOMEM;
  point_at_rows(d);
  return write_packed(d, path);
}

int ta_profile_write(const ta_profile *profile, const char *path) {
  KEEP_ERRNO;
  if (profile == NULL || path == NULL) return TA_E_MISUSE;
  struct draft *d = calloc(1, sizeof *d);

  if (d == NULL) return TA_E_NOMEM;
  tracecollect__pprof__profile__init(&d->out);
  d->profile = profile;
  int error = write_draft(d, path);
  for (size_t i = 0; d->texts != NULL && i < d->out.n_string_table; i++) free(d->texts[i]);
  void *blocks[] = { d->samples, d->counts, d->locations, d->functions,
                     d->lines,   d->frames, d->texts,     d->pointers };
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
  free(d);
  return error;
}
