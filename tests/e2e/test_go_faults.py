# SPDX-License-Identifier: Apache-2.0
"""Versions of Go that end traced programs: the agent leaves them alone, and says why (agent/go/guard.go)."""
import json
import unittest

from harness import FULL, SANITIZE, Case, Go, local_go, soak_only

PROGRAM = "tests/e2e/go-faults"
STACKS_WITHOUT_FRAME_POINTERS = {"GODEBUG": "tracefpunwindoff=1"}
ALLOWED = {"TRACEAGENT_ALLOW_FAULTY_GO": "1"}
FAULTY, SOUND = "go1.22.12", "go1.27.3"
# The oldest and the newest of each release that can be had, and both sides of the faults' ranges.
ENDED_BY_COPY = ("go1.22.0", "go1.22.12", "go1.23.0", "go1.23.10", "go1.24.0", "go1.24.4")
ENDED_BY_GROWTH = ENDED_BY_COPY + ("go1.23.12", "go1.24.5", "go1.24.13", "go1.25.0", "go1.25.11", "go1.26.0", "go1.26.5")
ALL_SOUND = ("go1.25.14", "go1.26.6", "go1.26.11", "go1.27.0", "go1.27.4")


@unittest.skipIf(SANITIZE, "there is no C in it")
class GoFaults(Case):
    def _build(self, toolchain):
        local = local_go()
        if local is None:
            self.skipTest("no Go >= 1.22 here")
        go = Go(local.command, toolchain)
        if go.version() is None:
            self.skipTest(f"{toolchain} cannot be had here")
        self.go, self.program = go, go.program(self, PROGRAM)

    def _run(self, fault, *flags, expect=0, **environment):
        settings = {"TRACEAGENT_SERVER": "127.0.0.1:9", "TRACEAGENT_CERTS": str(self.certs), "TRACEAGENT_SERVICE": "faults"}
        return self.run_program(self.program, *flags, fault, expect=expect, env={**self.go.environment, **settings, **environment})

    def _statuses(self, done):
        return [json.loads(line) for line in done.out.splitlines()]

    def _expect_left_alone(self, fault):
        done = self._run(fault)
        for status in self._statuses(done):
            self.assertEqual(status["state"], "off")
            for words in (f"not traced: {self.go.version()} ends a traced program", "golang/go#", "GODEBUG=tracefpunwindoff=1"):
                self.assertIn(words, status["last_error"])
        self.assertEqual(done.err, f"traceagent: {status['last_error']}\n")

    def _expect_traced(self, fault, **environment):
        first, last = self._statuses(self._run(fault, **environment))
        self.assertNotEqual(first["state"], "off")
        self.assertGreater(last["produced_bytes"], 0)

    def _expect_faulty(self, *faults):
        for fault in faults:
            if fault == "copy" or FULL:  # the other one is a matter of what lies in freed memory
                self.assertNotEqual(self._run(fault, "-plain", expect=None).returncode, 0, f"{fault} does not end it")
            self._expect_left_alone(fault)
            self._expect_traced(fault, **STACKS_WITHOUT_FRAME_POINTERS)
        self._expect_traced("nothing", **ALLOWED)

    def _expect_sound(self):
        for fault in ("copy", "growth"):
            self._expect_traced(fault)

    def test_a_faulty_go_is_left_alone_and_says_why(self):
        self._build(FAULTY)
        self._expect_faulty("copy", "growth")

    def test_a_sound_go_is_traced(self):
        self._build(SOUND)
        self._expect_sound()

    @soak_only
    def test_each_release_and_both_sides_of_each_range(self):
        for toolchain in ENDED_BY_GROWTH:
            with self.subTest(toolchain=toolchain):
                self._build(toolchain)
                self._expect_faulty("growth", *(["copy"] if toolchain in ENDED_BY_COPY else []))
        for toolchain in ALL_SOUND:
            with self.subTest(toolchain=toolchain):
                self._build(toolchain)
                self._expect_sound()
