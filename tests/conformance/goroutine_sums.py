#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""goroutine_sums.py TRACECTL TRACE: the table goroutines.by_entry in the form of `span-sums --goroutines`."""
import json
import subprocess
import sys

COLUMNS = ("count", "total_ns", "execution_ns", "sched_wait_ns", "block_ns", "syscall_ns", "syscall_block_ns",
           "gc_assist_ns", "gc_sweep_ns", "stw_ns")

run = subprocess.run([sys.argv[1], "report", "goroutines", sys.argv[2], "--window", "all", "--top", "1000000", "--json"],
                     stdout=subprocess.PIPE, check=True)
rows = json.loads(run.stdout)["tables"]["by_entry"]
for row in rows:
    print(row["entry"], *(row[column] for column in COLUMNS), sep="\t")
