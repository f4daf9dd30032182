/* SPDX-License-Identifier: Apache-2.0 */
/* Sets AddressSanitizer up for many short runs: freed blocks are quarantined for 8 MB instead of 256 (no input frees
 * more, and every block would be cold memory), call stacks of allocations are six deep, and only the first bytes of a
 * fresh block are filled. ASAN_OPTIONS overrides this. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "quarantine_size_mb=8:malloc_context_size=6:max_malloc_fill_size=64";
}
