# SPDX-License-Identifier: Apache-2.0
"""`tracectl anonymize`: the same trace, without the program's names."""
import json
import re

from harness import FULL, SANITIZE, Case, local_go

NAME = re.compile(r"^x[0-9a-f]{16}$")


class Anonymize(Case):
    def anonymize(self, trace, name="public", **options):
        out = self.folder / name
        done = self.tracectl("anonymize", trace, "-o", out, **options)
        return out, done

    def events(self, trace):
        """As they are printed, a line each."""
        return self.tracectl("cat", "-d", "json", trace).out.split("\n")[:-1]

    def compare(self, one, other, names):
        """Equal but for texts; names: what each became."""
        self.assertEqual(type(one), type(other))
        if isinstance(one, dict):
            self.assertEqual(one.keys(), other.keys())
            for key in one:
                if key != "reason_id":
                    self.compare(one[key], other[key], names)
        elif isinstance(one, list):
            self.assertEqual(len(one), len(other))
            for a, b in zip(one, other):
                self.compare(a, b, names)
        elif isinstance(one, str) and one != other:
            self.assertRegex(other, NAME)
            self.assertEqual(names.setdefault(one, other), other)
        else:
            self.assertEqual(one, other)

    def test_everything_but_names_stays(self):
        for name in (*(("g22-mix",) if not SANITIZE else ()), *(("g23-mix", "g25-mix", "g26-gens") if FULL else ()), "g26-annot", "g26-labels", "g26-cgo"):
            trace = self.trace(name)
            public, done = self.anonymize(trace, name)
            self.assertRegex(done.err, r"\d+ names replaced, \d+ of Go and its runtime left")
            names, before, after = {}, self.events(trace), self.events(public)
            self.assertEqual(len(before), len(after))
            for one, other in zip(before, after):
                if one != other:
                    self.compare(json.loads(one), json.loads(other), names)
            self.assertGreater(len(names), 10)
            self.assertEqual(len(set(names.values())), len(names), "two names became one")

    def test_no_name_of_the_program_is_left(self):
        trace = self.trace("g26-annot")
        public, _ = self.anonymize(trace)
        data = public.read_bytes()
        original = trace.read_bytes()
        for name in (b"main.", b"tracegen/", b"tail region", b"empty category", b"message 1", b"child"):
            self.assertEqual((name in original, name in data), (True, False), name)
        for name in (b"runtime.gopark", b"runtime/proc.go", b"chan receive"):
            self.assertEqual((name in original, name in data), (True, True), name)

    def test_each_time_with_another_key(self):
        trace = self.trace("g26-gens")
        self.assertNotEqual(self.anonymize(trace, "one")[0].read_bytes(), self.anonymize(trace, "two")[0].read_bytes())

    def test_experiments_are_left_out_and_said(self):
        for name in ("g23-alloc", "c-locks"):
            trace = self.trace(name)
            public, done = self.anonymize(trace, name)
            self.assertRegex(done.err, r"\d+ batches and \d+ events of experiments left out")
            self.assertIn("ok", self.tracectl("check", public).out)
        self.assertNotIn(b"stock", (self.folder / "c-locks").read_bytes())

    def test_go_opens_it(self):
        go = local_go()
        if go is None:
            self.skipTest("Go is not installed")
        public, _ = self.anonymize(self.trace("g26-gens"))
        parsed = self.run_program(go.command, "tool", "trace", "-d=parsed", public, env=go.environment).out
        self.assertEqual(parsed.count("\nM=") + parsed.startswith("M="), len(self.events(public)))

    def test_of_a_broken_trace_nothing_is_written(self):
        trace = self.trace("g26-gens")
        torn = self.folder / "torn"
        torn.write_bytes(trace.read_bytes()[:60000])
        public, done = self.anonymize(torn, expect=1)
        self.assertIn("the trace ends in the middle of a batch", done.err)
        self.assertFalse(public.exists())
        self.assertIn("one FILE is required", self.tracectl("anonymize", "-o", public, expect=2).err)
        self.assertIn("-o OUT is required", self.tracectl("anonymize", trace, expect=2).err)
        self.assertIn("No such file", self.anonymize(self.folder / "none", expect=1)[1].err)
