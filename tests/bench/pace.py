#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pace.py MB/S FILE: writes a file to stdout as a program would that produces so much, a piece every 10 ms."""
import sys
import time

PIECE_SECONDS = 0.01

rate = float(sys.argv[1]) * 1e6
started, written = time.monotonic(), 0
with open(sys.argv[2], "rb", buffering=0) as file, open(sys.stdout.fileno(), "wb") as out:
    while piece := file.read(int(rate * PIECE_SECONDS)):
        time.sleep(max(0.0, started + written / rate - time.monotonic()))
        out.write(piece)
        out.flush()
        written += len(piece)
