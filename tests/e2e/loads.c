/* SPDX-License-Identifier: Apache-2.0 */
/* loads LIBRARY...: loads the libraries in that order, late. Prints why a library cannot be
 * loaded, and exits with 1. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) == NULL) {
      puts(dlerror());
      return 1;
    }
  return 0;
}
