/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sanitizer that a program was built with, by names of the sanitizer's runtime. */
#ifndef TA_PRELOAD_SANITIZER_H
#define TA_PRELOAD_SANITIZER_H

/* Returns the compiler's option, or NULL: no sanitizer, or one that this library does not disturb. */
const char *ta_sanitizer(void);

#endif
