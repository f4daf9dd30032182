/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a stack's frames without decoding them.
 *
 * In a trace of deep calls most bytes are stacks, and few of them are ever shown. It is enough to check that they can be read
 * and that the strings which they name exist. A number ends at a byte whose top bit is clear. So 64 bytes at a time are turned
 * into a word of these bits. Counting the bits finds the end of n frames, which have 4n numbers; counting them modulo four
 * finds the string ids. This takes about 1.5 instructions a byte.
 */
#ifndef TW_FRAMES_H
#define TW_FRAMES_H

#include <stdint.h>

/* Returns the end of nframes frames and raises *string_id_max to the largest function or file id. Returns NULL if the frames
 * must be read one by one: a number has more than eight bytes, a string id more than two, or less than a block is left up to
 * `end`. In this case *string_id_max may have risen already, but not above the largest id of these frames. */
const unsigned char *tw__frames_end(const unsigned char *pos, const unsigned char *end,
                                    unsigned nframes, uint64_t *string_id_max);
/* Works as tw__frames_end(), without instructions that only newer processors have. */
const unsigned char *tw__frames_end_anywhere(const unsigned char *pos, const unsigned char *end,
                                             unsigned nframes, uint64_t *string_id_max);

#endif
