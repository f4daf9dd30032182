/* SPDX-License-Identifier: Apache-2.0 */
/* loads LIBRARY...: loads them in that order, late. If one cannot be loaded, prints the reason and exits with 1. */
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
