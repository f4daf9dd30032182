/* SPDX-License-Identifier: Apache-2.0 */
/* The sanitizer that a program was built with, by its runtime's names. */
#ifndef TA_PRELOAD_SANITIZER_H
#define TA_PRELOAD_SANITIZER_H

/* As in its compiler's options; NULL: none, or one that takes no notice of us. */
const char *ta_sanitizer(void);

#endif
