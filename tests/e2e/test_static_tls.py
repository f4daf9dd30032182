# SPDX-License-Identifier: Apache-2.0
"""libtraceagent.so's thread-local variables: they lie in the block that glibc reserves for libraries loaded late, so that
reaching one costs no call. That block is small, and shared by all of them."""
import os
import re
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case

BYTES_MAX = 160  # of libtraceagent.so's; agent/host/faults.h speaks of it
STEP = 16
LIBRARY = BUILD / "lib/libtraceagent.so"
FILLER = """static __thread char room[%d] __attribute__((tls_model("initial-exec")));
char *filler(void) { return room; }
"""


@unittest.skipIf(SANITIZE, "a sanitizer has thread-local variables of its own")
class StaticTls(Case):
    def setUp(self):
        super().setUp()
        self.program = self.compiled("loads", "cc", "-O1", "-Wall", "-Werror", SOURCE / "tests/e2e/loads.c")

    def _filler(self, size):
        library = self.folder / f"filler-{size}.so"
        if not library.exists():
            source = self.folder / "filler.c"
            source.write_text(FILLER % size)
            self.run_program("cc", "-O1", "-shared", "-fPIC", source, "-o", library)
        return library

    def _loads(self, *libraries):
        """Loaded late, in that order, where little is reserved."""
        done = self.run_program(self.program, *libraries, expect=None,
                                env={**os.environ, "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=256"})
        if done.returncode != 0:
            self.assertIn("static TLS", done.out)
        return done.returncode == 0

    def test_the_librarys_thread_local_variables_are_few(self):
        segment = re.search(r"^ *TLS .*", self.run_program("readelf", "-lW", LIBRARY).out, re.M).group(0)
        self.assertLessEqual(int(segment.split()[5], 16), BYTES_MAX)

    def test_the_library_loads_where_the_block_is_nearly_full(self):
        room = self._filler(BYTES_MAX)
        fits, too_large = 0, 4096  # so much is taken before, and the room is there still; or is not
        self.assertFalse(self._loads(self._filler(too_large), room))
        while too_large - fits > STEP:
            middle = (fits + too_large) // 2 // STEP * STEP
            if self._loads(self._filler(middle), room):
                fits = middle
            else:
                too_large = middle
        self.assertGreater(fits, 0)
        self.assertTrue(self._loads(self._filler(fits), LIBRARY), f"{fits} bytes taken")
        self.assertFalse(self._loads(self._filler(fits), self._filler(BYTES_MAX + 2 * STEP)))
