# SPDX-License-Identifier: Apache-2.0
"""Tracing that stops and starts again within a program's regions and tasks: Go's reader accepts their ends, and so does ours."""
import json
import os

from harness import SOURCE, Case, local_go


class Restarts(Case):
    def test_ends_without_a_begin_are_accepted_and_counted(self):
        go = local_go()
        if go is None:
            self.skipTest("no Go")
        program, first, second = self.folder / "restarts", self.folder / "first.trace", self.folder / "second.trace"
        self.run_program(go.command, "build", "-o", program, SOURCE / "tests/e2e/restarts.go", env=go.environment)
        self.run_program(program, first, second)
        for trace, begins, ends, lone, tasks in ((first, 3, 0, None, 0), (second, 1, 4, 3, 2)):
            checked = json.loads(self.tracectl("check", "--json", trace).out)
            self.assertTrue(checked["ok"])
            self.assertEqual(checked.get("lone_region_ends"), lone)
            text = self.tracectl("cat", trace, env={**os.environ, "TZ": "UTC"}).out
            self.assertEqual((text.count(" RegionBegin "), text.count(" RegionEnd "), text.count(" TaskEnd ")), (begins, ends, tasks))
            self.assertEqual(go.parsed(self, trace).out, text)
