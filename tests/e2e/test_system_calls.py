# SPDX-License-Identifier: Apache-2.0
"""Which system calls the agent makes once a session is open: those that docs/OPERATIONS.md lists for whoever writes a
seccomp filter, and no others."""
import re
import shutil
import subprocess
import unittest

from harness import DEADLINE, SANITIZE, SOURCE, Case, Collector, wait_until

HEADING = "### System calls"
# Calls of a thread that libc begins and ends, and of the test's program itself.
PROGRAMS = {"poll", "ppoll", "prctl", "set_robust_list", "rseq", "exit", "exit_group", "write", "newfstatat", "fstat"}


def documented():
    text = (SOURCE / "docs/OPERATIONS.md").read_text()
    section = text.split(HEADING, 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"`([a-z_0-9]+)`", section))


@unittest.skipIf(SANITIZE, "a sanitizer makes calls of its own")
@unittest.skipUnless(shutil.which("strace"), "no strace here: tools/deps.sh installs it")
class SystemCalls(Case):
    def test_an_open_session_makes_only_the_calls_that_are_documented(self):
        if self.run_program("strace", "-o", "/dev/null", "true", expect=None).returncode != 0:
            self.skipTest("strace may not trace here")
        program, collector = self.program_of(SOURCE / "tests/e2e/opened.c", "opened"), Collector(self)
        traced = self.spawn("traced", "strace", "-ff", "-o", self.folder / "calls", program, collector.to, self.certs,
                            self.folder / "spool", stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        wait_until("the stream is there", lambda: self._acked(collector))
        collector.restart()  # and the agent connects again
        before = self._acked(collector)
        wait_until("the stream goes on", lambda: self._acked(collector) > before)
        said = traced.communicate(timeout=DEADLINE)[0].decode()
        self.assertEqual((said, traced.returncode), ("done\n", 0), self.log("traced"))
        calls, threads = {}, set()
        for file in self.folder.glob("calls.*"):
            lines = file.read_text().splitlines()
            name = re.search(r'PR_SET_NAME, "([^"]*)"', "\n".join(lines))
            threads.add(name.group(1) if name else "")
            if name and name.group(1) == "begun":
                at = [i for i, line in enumerate(lines) if "PR_SET_NAME" in line]
                lines = lines[at[0]:]
            for line in lines:
                call = re.match(r"([a-z_0-9]+)\(", line)
                if call:
                    calls.setdefault(call.group(1), line)
        self.assertLessEqual({"begun", "traceagent", "traceagent-emit"}, threads)
        unknown = {call: line for call, line in calls.items() if call not in documented() | PROGRAMS}
        self.assertEqual(unknown, {}, f"not in docs/OPERATIONS.md, {HEADING}")

    def _acked(self, collector):
        return sum(row.get("generations", 0) for row in collector.json_lines("status") if row["type"] == "stream")
