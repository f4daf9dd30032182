#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py finds what it is there to find: rows that are missing, tests that are gone, skipped, failed or never ran."""
import argparse
import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import check

PROOF = "`tests/unit/online/order/test_order.c: order/{}`"
NAME = "a_goroutine_is_created_once"
WANTED = "| A1 | 003 | M | one | two |\n| A2 | 003 | M | three | four |\n"


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "results").mkdir()
        self.wanted = self.build / "wanted.md"
        self.wanted.write_text(WANTED)
        for cache in (check.registered, check.entries, check.ran):
            cache.cache_clear()

    def judge(self, rows, results=None, ci=True):
        """Exit code and what was printed."""
        table = self.build / "table.md"
        table.write_text("".join(f"| {row} | something | {proven} | {proof} |\n" for row, proven, proof in rows))
        if results is not None:
            (self.build / "results/test_order.tap").write_text("1..1\n" + results)
        args = argparse.Namespace(build=self.build, results=results is not None)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.multiple(check, TABLE=table, WANTED=self.wanted, CI=ci), \
                mock.patch.object(check, "registered", lambda _: {f"order/{NAME}"}), \
                mock.patch.object(argparse.ArgumentParser, "parse_args", lambda _: args):
            return check.main(), out.getvalue()

    def expect(self, rows, words, **options):
        code, said = self.judge(rows, **options)
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_a_whole_table_passes(self):
        rows = [("A1", "Y", PROOF.format(NAME)), ("A2", "N", "later")]
        code, said = self.judge(rows, results=f"ok - order::{NAME}  (0.00s)\n")
        self.assertEqual(code, 0, said)
        self.assertIn("not proven: A2\n2 passed, 0 failed\n", said)

    def test_rows_are_those_that_are_wanted_once(self):
        one, two = ("A1", "N", "later"), ("A2", "N", "later")
        self.expect([one], "A2 is not in the table")
        self.expect([one, two, two], "A2 is in the table 2 times")
        self.expect([one, two, ("A3", "N", "later")], "A3 is no requirement")
        self.wanted.unlink()
        self.expect([one, two], "to compare the rows with")
        self.assertEqual(self.judge([one, two], ci=False)[0], 0)

    def test_a_test_that_is_gone_is_named_with_its_nearest(self):
        rest = ("A2", "N", "later")
        self.expect([("A1", "Y", PROOF.format("a_goroutine_is_made_once")), rest], f"the nearest is order/{NAME}")
        self.expect([("A1", "Y", "`tests/unit/test_ordr.c: order/x`"), rest], "there is no tests/unit/test_ordr.c")
        self.expect([("A1", "Y", PROOF.format("proc_stop_needs_a_proc")), rest], "no test binary registers")
        self.expect([("A1", "Y", "by hand"), rest], "it names no test")
        self.expect([("A1", "y", PROOF.format(NAME)), rest], "neither Y nor N")

    def test_a_test_has_run_and_passed(self):
        rows = [("A1", "Y", PROOF.format(NAME)), ("A2", "N", "later")]
        self.expect(rows, "did not run", results="")
        check.ran.cache_clear()
        self.expect(rows, "failed", results=f"not ok - order::{NAME}  (0.00s)\nok - order::{NAME}\n")
        check.ran.cache_clear()
        skipped = f"ok - order::{NAME} # SKIP no Go here\n"
        self.expect(rows, "was skipped: no Go here", results=skipped)
        check.ran.cache_clear()
        code, said = self.judge(rows, results=skipped, ci=False)
        self.assertEqual((code, said.startswith("warning: A1: ")), (0, True), said)


if __name__ == "__main__":
    unittest.main()
