# SPDX-License-Identifier: Apache-2.0
"""The Go package against the C library of this build: its own tests, vet, formatting, and the README's example."""
import re
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case, local_go

PACKAGE = SOURCE / "agent/go"
MODULE = f"""module program

go 1.22

require tracecollect.invalid/traceagent v0.0.0

replace tracecollect.invalid/traceagent => {PACKAGE}
"""
PROGRAM = """package main

import _ "tracecollect.invalid/traceagent"

func main() {}
"""
EXAMPLE = """package main

import (
	"context"
	"log"
	"time"

	"tracecollect.invalid/traceagent"
)

func main() {
%s}
"""


class AgentGo(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()
        if self.go is None:
            self.skipTest("no Go >= 1.22 here")

    def _go(self, *args):
        return self.go.run(self, PACKAGE, *args)

    @unittest.skipIf(SANITIZE, "a sanitizer's runtime would have to be loaded into go test")
    def test_the_package_passes_its_tests(self):
        self._go("test", "-count=1", "./...")

    def test_the_package_is_vetted_and_formatted(self):
        self._go("vet", "./...")
        self.assertEqual(self._go("fmt", "./...").out, "")

    @unittest.skipIf(SANITIZE, "a sanitizer's runtime would have to be loaded into the program")
    def test_the_readmes_example_runs_on_where_it_cannot_be_traced(self):
        # As it stands, and its folder of certificates is not there.
        example = re.search(r"```go\n(.*?)```", (SOURCE / "README.md").read_text(), re.S).group(1)
        certs = re.search(r'Certs: +"(.*?)"', example).group(1)
        (self.folder / "go.mod").write_text(MODULE)
        (self.folder / "main.go").write_text(EXAMPLE % example.replace(certs, str(self.folder / "none")))
        program = self.folder / "program"
        self.go.run(self, self.folder, "build", "-o", program, ".")
        self.assertIn(f"{self.folder}/none/ca.pem", self.run_program(program).err)

    def test_two_checkouts_with_one_build_cache_each_get_their_own_agent(self):
        # -trimpath hides the checkout from Go's cache, and the cache does not look at pkg-config's answer.
        other = self.folder / "other"
        (other / "pkgconfig").mkdir(parents=True)
        (other / "lib").symlink_to(BUILD / "lib")
        pc = (BUILD / "pkgconfig/traceagent.pc").read_text()
        (other / "pkgconfig/traceagent.pc").write_text(pc.replace(str(BUILD / "lib"), str(other / "lib")))
        (self.folder / "go.mod").write_text(MODULE)
        (self.folder / "main.go").write_text(PROGRAM)
        for build in (BUILD, other):
            program = self.folder / f"program-{build.name}"
            self.go.run(self, self.folder, "build", "-trimpath", "-o", program, ".", build=build)
            self.assertIn(f"[{build / 'lib'}]", self.run_program("readelf", "-d", program).out)
