/* SPDX-License-Identifier: Apache-2.0 */
/* Finds events that are built into a program, a library or an object file, by their notes (traceprobe.h). Nothing
 * of the file is executed. */
#ifndef TK_TRACEPOINTS_ELF_H
#define TK_TRACEPOINTS_ELF_H

#include <stddef.h>

#include "base/result.h"

struct tk_built {
  const char *module, *name, *params, *signature, *at; /* at: FILE:LINE of the declaration */
};

bool tk_elf_is(const char *path);

/* TB_BROKEN: not an ELF file of this machine, or truncated. */
TB_MUST tb_rc tk_elf_points(const char *path,
                            void (*each)(void *self, const struct tk_built *built), void *self,
                            struct tb_diag *diag);

#endif
