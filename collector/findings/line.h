/* SPDX-License-Identifier: Apache-2.0 */
/* A finding as a line of the file, with tabs between its fields:
 *
 *   id kind service place cause words began last ended seen count peak is_time instances times stream gen from until muted_until reason why
 *
 * id is hexadecimal, instances and times are lists with commas, a time is began-last-peak. */
#ifndef TC_FINDINGS_LINE_H
#define TC_FINDINGS_LINE_H

#include "base/buf.h"
#include "collector/findings/findings.h"

void tc__finding_print(const struct tc_finding *f, struct tb_buf *out); /* with a newline */
/* Returns false if the line is not one. Changes it. */
bool tc__finding_parse(char *line, struct tc_finding *out);

#endif
