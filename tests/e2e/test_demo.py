# SPDX-License-Identifier: Apache-2.0
"""`make demo` from a newcomer's view, and the commands that it prints."""
import os
import re
import shlex
import signal
import unittest

from harness import BUILD, DEADLINE, SOURCE, Case, local_go, wait_until


@unittest.skipUnless(BUILD == SOURCE / "build/release", "the demo is of the release build")
class Demo(Case):
    def setUp(self):
        super().setUp()
        if local_go() is None:
            self.skipTest("no Go >= 1.22 here")

    def test_the_printed_commands_work_and_an_interrupt_ends_everything(self):
        demo = self.spawn("demo", SOURCE / "tools/demo.sh", cwd=SOURCE, env={**os.environ, "DEMO_SECONDS": "800"})
        wait_until("the demo prints its figures twice", lambda: (
            self.assertIsNone(demo.poll(), self.log("demo")), self.log("demo").count("^C ends") >= 2)[1])
        text = self.log("demo")
        fetch, parsed = (shlex.split(re.search(f"^  (.*{verb}.*)$", text, re.M).group(1))
                         for verb in ("tracectl fetch", "tool trace"))
        trace = self.folder / "t.trace"
        self.assertEqual(fetch[-4:], ["--last", "5s", "-o", "t.trace"])
        self.run_program(*fetch[:-3], "1s", "-o", trace, cwd=SOURCE)  # less for Go's tool to print
        self.assertIn("StateTransition", self.run_program(*parsed[:-1], "-d=parsed", trace, cwd="/").out)
        tail = shlex.split(re.search("^  (.*tracectl tail.*)$", text, re.M).group(1))
        self.spawn("tail", *tail, cwd=SOURCE)
        wait_until("an alert is told", lambda: "alert" in self.log("tail"))
        for figure in ("syscall", "stw"):
            self.assertIn(figure, text.lower())
        demo.send_signal(signal.SIGINT)
        self.assertEqual(demo.wait(DEADLINE), 0, self.log("demo"))
        self.assertEqual(self._left_running(), [])

    def test_killed_outright_it_leaves_nothing_behind(self):
        known = self.folder / "bin"
        known.mkdir()
        (known / "cmake").symlink_to("/bin/true")  # the build under test is what it would make
        demo = self.spawn("demo", SOURCE / "tools/demo.sh", cwd=SOURCE, env={**os.environ, "PATH": f"{known}:{os.environ['PATH']}"})
        wait_until("both are there", lambda: (self.assertIsNone(demo.poll(), self.log("demo")), len(self._left_running()) == 2)[1])
        demo.kill()
        wait_until("neither is", lambda: not self._left_running())

    @staticmethod
    def _left_running():
        """Command lines of programs of this demo that still live."""
        lines = []
        for folder in os.listdir("/proc"):
            try:
                with open(f"/proc/{folder}/cmdline", "rb") as file:
                    line = file.read().replace(b"\0", b" ").decode(errors="replace")
                cwd = os.readlink(f"/proc/{folder}/cwd")
            except (OSError, ValueError):
                continue
            if cwd == str(SOURCE) and re.search(r"(tracecollectd|go-server) .*build/demo", line):
                lines.append(line)
        return lines
