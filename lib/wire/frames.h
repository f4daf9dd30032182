/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a stack's frames without decoding them.
 *
 * Stacks are most bytes of a trace of deep calls, and hardly any is ever looked at: it must only be sure
 * that they can be read and that the strings they name are there. A number ends where a byte's top bit is
 * clear, so 64 bytes at a time become a word of such bits; counting those finds the end of 4n numbers,
 * counting them modulo four finds the string ids. About 1.5 instructions a byte.
 */
#ifndef TW_FRAMES_H
#define TW_FRAMES_H

#include <stdint.h>

/* Returns the end of nframes frames and raises *string_id_max to the largest function or file id. Returns
 * NULL if the frames must be read one by one: numbers above eight bytes, string ids above two, less than a
 * block up to `end`. *string_id_max may have risen then, but not above the frames' largest id. */
const unsigned char *tw__frames_end(const unsigned char *pos, const unsigned char *end,
                                    unsigned nframes, uint64_t *string_id_max);
/* Works as tw__frames_end(), without instructions that only newer processors have. */
const unsigned char *tw__frames_end_anywhere(const unsigned char *pos, const unsigned char *end,
                                             unsigned nframes, uint64_t *string_id_max);

#endif
