#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [MODULE[.Class[.case]]...]: the fault rows that are real processes, as tests/e2e/run.py runs its own.

TC_FULL=1 gives each row the numbers of the table in docs/RELIABILITY.md; without it a row is a few seconds long.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import run  # tests/e2e/run.py: it comes first in the path

if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv += sorted(path.stem for path in HERE.glob("test_*.py"))
    sys.exit(run.main())
