/* SPDX-License-Identifier: Apache-2.0 */
/* emit_shapes FOLDER: writes the trace of every shape in every version to
 * FOLDER/VERSION-SHAPE.trace. If a shape has several generations, the second one is written
 * alone, too, as an archive would serve it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/emit/emit_scene.h"
#include "tests/unit/agent/emit/emit_shapes.h"

static void save(const struct emitted *e, const char *folder, const char *name, unsigned version) {
  char path[512];

  for (unsigned i = 0; i < e->traces; i++) {
    snprintf(path, sizeof path, "%s/%u-%s-%u.trace", folder, version, name, i);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(e->trace[i].bytes, 1, e->trace[i].n, f) != e->trace[i].n ||
        fclose(f) != 0)
      exit(1);
  }
}

int main(int argc, char **argv) {
  static const unsigned versions[] = { 22, 23, 25, 26 };

  if (argc != 2) return 2;
  for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
    for (size_t i = 0; i < emit_shape_count; i++) {
      static struct emitted e;
      bool stacks = versions[v] >= 25; /* older versions are written without stacks */
      struct ta_emit_config config = { .version = versions[v],
                                       .generation_ms = 60000,
                                       .stack_depth = stacks ? 8 : 0,
                                       .samples_hz = stacks ? 100 : 0,
                                       .allocfree = stacks };
      if (emit_begin(&e, &config, 4 << 20) != 0) return 1;
      emit_shapes[i].run();
      if (emit_end(&e) != 0 || e.traces == 0) return 1;
      save(&e, argv[1], emit_shapes[i].name, versions[v]);
      emit_free(&e);
    }
  return 0;
}
