#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""short_programs.py WHEN SERVER CERTS LIBRARY [make|bash|true|fork...]: what the preload library costs programs that end soon.

Runs each as it is and traced, in turns (plain traced traced plain), and prints rows for run.sh: the median of what the
pairs differ by. WHEN is a word for the rows: what the collector does meanwhile. SERVER "silent" is one of our own that
accepts and says nothing, "refused" a port that is closed.
"""
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PIPELINES = "for i in {1..60}; do echo line $i | cat | wc -c; done"
FILES = 12

# Long enough to be worth a job of make's: with what a usual source includes.
SOURCE = "".join(f"#include <{name}.h>\n" for name in (
    "stdio", "stdlib", "string", "math", "pthread", "time", "errno", "fcntl", "signal", "sys/socket", "netinet/in", "sys/stat")) + "".join(
    f"double f{n}_PART(const double *a, int n) {{\n"
    f"  double sum = 0;\n"
    f"  for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) {{\n"
    f"    sum += a[i] * a[j] + {n};\n"
    f"    if (sum > {n}.5) sum -= fabs(a[j]); else sum += sqrt(a[i] + {n});\n"
    f"    switch ((i ^ j) % 7) {{ case 0: sum *= 2; break; case 1: sum /= 3; break; case 2: sum = -sum; break; default: sum += i; }}\n"
    f"  }}\n"
    f"  return sum;\n"
    f"}}\n" for n in range(8))
MAKEFILE = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\t@cc -O2 -c -o $@ $<\n"


def silent():
    """A listener that accepts and says nothing; its address."""
    listener, kept = socket.create_server(("127.0.0.1", 0), backlog=128), []

    def accept():
        while True:
            kept.append(listener.accept())
            del kept[:-200]

    threading.Thread(target=accept, daemon=True).start()
    return f"127.0.0.1:{listener.getsockname()[1]}"


def refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


when, server, certs, library, *only = sys.argv[1:]
server = {"silent": silent, "refused": refused}.get(server, lambda: server)()
plain = {name: value for name, value in os.environ.items() if not name.startswith("TRACEAGENT_")}
traced = {**plain, "LD_PRELOAD": os.path.abspath(library), "TRACEAGENT_SERVER": server, "TRACEAGENT_CERTS": os.path.abspath(certs)}


def ms(environment, command, folder=None):
    """The wall time of a command."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300)
    return (time.perf_counter() - began) * 1000


def pairs(count, measure):
    """[(plain, traced)]: measure(environment) in turns."""
    measure(plain), measure(traced)  # what they use is in memory now
    rows = []
    for i in range(count):
        if i % 2 == 0:
            a = measure(plain)
            rows.append((a, measure(traced)))
        else:
            b = measure(traced)
            rows.append((measure(plain), b))
    return rows


def median(rows, of):
    return statistics.median(of(*row) for row in rows)


def row(*words):
    print("\t".join(str(word) for word in words), flush=True)


def ratio_row(what, rows, unit, goal):
    row(what, f"{median(rows, lambda a, b: b):.1f}", unit, f"{median(rows, lambda a, b: a):.1f}", f"not traced, same minute, {len(rows)} pairs", "-")
    row("  of what it was, median of the pairs", f"{median(rows, lambda a, b: b / a):.3f}", "times", "-", "-", goal)


def bench_true():
    def spawn(environment):
        began = time.perf_counter()
        for _ in range(5):
            os.waitpid(os.posix_spawn("/bin/true", ["true"], environment), 0)
        return (time.perf_counter() - began) * 200

    rows = pairs(20, spawn)
    row(f"/bin/true, collector {when}: more time", f"{median(rows, lambda a, b: b - a):.2f}", "ms", f"{median(rows, lambda a, b: a):.2f}",
        "all it takes untraced, 100 pairs", "<= 3")


def bench_make():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for n in range(FILES):
            (folder / f"part{n}.c").write_text(SOURCE.replace("PART", str(n)))
        (folder / "Makefile").write_text(MAKEFILE)
        rows = pairs(6, lambda environment: ms(environment, ["make", "-B", "-s", "-j3"], folder))
    ratio_row(f"make -j3 of {FILES} files, collector {when}", rows, "ms", "<= 1.05")


def bench_bash():
    rows = pairs(10, lambda environment: ms(environment, ["bash", "-c", PIPELINES]))
    ratio_row(f"bash with 60 pipelines, collector {when}", rows, "ms", "<= 1.20")


def bench_fork():
    """Measures a program with 64 MiB, at both limits; an empty one, before its stream begins and after; and as a floor one
    with a library that only has two threads and a TLS connection, since that alone costs more than the goal."""
    tests = pathlib.Path(library).parents[1] / "tests"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def pairs_of(limit, mib, floor=False, **more):
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)

        def fork(environment):
            if floor and environment is plain:
                environment = {**plain, "LD_PRELOAD": str(tests / "libfork_floor.so"), "FLOOR_SERVER": server, "FLOOR_CERTS": os.path.abspath(certs)}
            elif environment is traced:
                environment = {**traced, **more}
            done = subprocess.run([tests / "bench_fork", str(limit), "300", str(mib)], env=environment, capture_output=True, check=True, timeout=60)
            return float(done.stdout)

        return limit, pairs(6, fork)

    for limit in (1024, 65536):
        limit, rows = pairs_of(limit, 64)
        ratio_row(f"fork() of 64 MiB at ulimit -n {limit}, collector {when}", rows, "us", "<= 1.2")
    ratio_row(f"fork() of an empty program in its first 500 ms, collector {when}", pairs_of(1024, 0, TRACEAGENT_DELAY_MS="60000")[1], "us", "<= 1.2")
    ratio_row(f"fork() of an empty program, collector {when}", pairs_of(1024, 0)[1], "us", "<= 1.2")
    rows = pairs_of(1024, 0, floor=True)[1]
    row("  beside two threads and a TLS connection, that do nothing", f"{median(rows, lambda a, b: b / a):.3f}", "times", "-", "-", "<= 1.2")


for name, bench in (("true", bench_true), ("bash", bench_bash), ("make", bench_make), ("fork", bench_fork)):
    if not only or name in only:
        bench()
