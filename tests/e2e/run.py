#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [MODULE[.Class[.case]]...]: runs end-to-end tests; the last line is "N passed, N failed".

Each test_*.py here is a module. TC_BINARY_DIR says which build is tried (default build/release);
TC_KEEP=1 keeps the folders of the cases, with the logs of all programs; TC_RESULT=FILE names a file for one line a
case in TAP, as Criterion writes it.
"""
import os
import sys
import pathlib
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


class Result(unittest.TestResult):
    """Prints a line for each case as it ends, with the time it took."""

    def __init__(self, tap):
        super().__init__()
        self.tap = tap

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def _say(self, word, test, text=""):
        began = getattr(self, "started", time.monotonic())  # a class that is left out whole starts no test
        print(f"{word:5} {test.id()} {time.monotonic() - began:.1f} s {text}", flush=True)
        name = getattr(test, "test_case", test).id()  # a subtest's is its case
        skip = f" # SKIP {text}" if word == "SKIP" else ""
        took = f" ({time.monotonic() - began:.2f}s)"  # as Criterion writes it
        self.tap.write(f"{'ok' if word in ('ok', 'SKIP') else 'not ok'} - {name}{took}{skip}\n")

    def addSuccess(self, test):
        self._say("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say("FAIL", test, "\n" + self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._say("ERROR", test, "\n" + self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("SKIP", test, reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._say("FAIL", subtest, "\n" + (self.failures + self.errors)[-1][1])


def main():
    loader = unittest.TestLoader()
    if len(sys.argv) > 1:
        tests = loader.loadTestsFromNames(sys.argv[1:])
    else:
        tests = loader.discover(str(pathlib.Path(__file__).parent), "test_*.py")
    with open(os.environ.get("TC_RESULT", os.devnull), "w", encoding="utf-8") as tap:
        result = Result(tap)
        tests.run(result)
    broken = {test.id() for test, _ in result.failures + result.errors}
    bad = len({name.split(" (")[0] for name in broken}) if broken else 0
    good = max(result.testsRun - bad - len(result.skipped), 0)
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
