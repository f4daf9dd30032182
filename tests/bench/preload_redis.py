#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""preload_redis.py SERVER CERTS LIBRARY PIPELINE REQUESTS PAIRS

What tracing costs a redis-server: runs redis-benchmark against one that is traced and one that is not, both up all the
time, in turns (plain traced traced plain), and prints one line of numbers, medians of the pairs' ratios last:

  plain CPU us a request, traced, of its own thread alone: plain, traced, plain requests/s, traced,
  ratio of requests/s, ratio of the own thread's CPU, ratio of all CPU
"""
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

server, certs, library, pipeline, requests, pairs = sys.argv[1:4] + [int(word) for word in sys.argv[4:7]]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


class Redis:
    def __init__(self, folder, more):
        self.port = free_port()
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                                        executable=shutil.which("redis-check-rdb"), env={**os.environ, **more},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                time.sleep(0.02)
        sys.exit("redis-server does not start")

    def cpu_ns(self):
        """Returns the CPU time of the first thread, which serves, and of all threads."""
        folder = f"/proc/{self.process.pid}/task"
        threads = {name: int(open(f"{folder}/{name}/schedstat").read().split()[0]) for name in os.listdir(folder)}
        return threads[str(self.process.pid)], sum(threads.values())

    def run(self):
        """us a request of the first thread, of all, requests a second."""
        own, every = self.cpu_ns()
        out = subprocess.run(["redis-benchmark", "-p", str(self.port), "-t", "get,set", "-P", str(pipeline), "-n", str(requests), "-q"],
                             capture_output=True, text=True, check=True).stdout
        rates = [float(rate) for rate in re.findall(r"([\d.]+) requests per second", out)]
        own_after, every_after = self.cpu_ns()
        count = 1000 * requests * len(rates)
        return (own_after - own) / count, (every_after - every) / count, len(rates) / sum(1 / rate for rate in rates)


with tempfile.TemporaryDirectory() as folder:
    plain = Redis(folder, {})
    traced = Redis(folder, {"LD_PRELOAD": library, "TRACEAGENT_SERVER": server, "TRACEAGENT_CERTS": certs, "TRACEAGENT_SERVICE": "redis"})
    try:
        plain.run(), traced.run()  # both have touched what they use
        rows = []
        for i in range(pairs):
            first, second = (plain, traced) if i % 2 == 0 else (traced, plain)
            done = {first: first.run()}
            done[second] = second.run()
            rows.append(done[plain] + done[traced])
    finally:
        for redis in (plain, traced):
            redis.process.terminate()
            redis.process.wait()
own, every, rate, own_traced, every_traced, rate_traced = (statistics.median(column) for column in zip(*rows))
print(*(f"{number:.3f}" for number in (
    every, every_traced, own, own_traced, rate, rate_traced,
    statistics.median(row[5] / row[2] for row in rows),
    statistics.median(row[3] / row[0] for row in rows),
    statistics.median(row[4] / row[1] for row in rows))))
