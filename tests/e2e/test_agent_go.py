# SPDX-License-Identifier: Apache-2.0
"""The Go package against the C library of this build: its own tests, vet and formatting."""
import unittest

from harness import SANITIZE, SOURCE, Case, local_go

PACKAGE = SOURCE / "agent/go"


class AgentGo(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()
        if self.go is None:
            self.skipTest("no Go >= 1.22 here")

    def _go(self, *args):
        return self.run_program(self.go.command, *args, cwd=PACKAGE, env=self.go.environment)

    @unittest.skipIf(SANITIZE, "a sanitizer's runtime would have to be loaded into go test")
    def test_the_package_passes_its_tests(self):
        self._go("test", "-count=1", "./...")

    def test_the_package_is_vetted_and_formatted(self):
        self._go("vet", "./...")
        self.assertEqual(self._go("fmt", "./...").out, "")
