#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""preload_servers.py SERVER CERTS LIBRARY LOAD [NAME...]: what tracing costs nginx, memcached and postgres in requests a second.

Two of each server, one traced and one not, both up all the time, are loaded in turns (plain traced traced plain); LOAD is
the path of tests/bench/load. Prints rows for run.sh: requests a second, and the median of what the pairs differ by. Not
installed: left out.
"""
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PAIRS = int(os.environ.get("BENCH_ROUNDS", 10))
collector, certs, library, load = sys.argv[1:5]
PATH = os.environ.get("PATH", "") + ":/usr/sbin"
POSTGRES = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)

NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {folder};
  }}
}}
"""


class Server:
    goal = ">= 0.95"
    user = None
    stay = True  # its processes, so that their CPU can be read

    def __init__(self, folder, environment):
        folder.mkdir()
        folder.chmod(0o755)
        self.folder = folder
        if self.user:
            shutil.chown(folder, self.user)
        self.prepare()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        with open(folder.parent / "log", "ab") as log:
            self.process = subprocess.Popen([str(word) for word in self.command()], env=environment, cwd=folder, user=self.user,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 30
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{self.command()[0]} does not start: {(folder.parent / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def prepare(self):
        pass

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except ConnectionRefusedError:
            return False

    def end(self):
        self.process.terminate()
        self.process.wait(60)

    def cpu_ns(self):
        """Returns the CPU time of all running processes of the server, with all their threads, the
        agent's among them."""
        processes, sum_ns = [self.process.pid], 0
        for pid in processes:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                sum_ns += int((task / "schedstat").read_text().split()[0])
                processes += map(int, (task / "children").read_text().split())
        return sum_ns

    def measured(self):
        """Requests a second, us of CPU a request."""
        before, began = self.cpu_ns() if self.stay else 0, time.monotonic()
        rate = self.run()
        if not self.stay:
            return rate, 0
        return rate, (self.cpu_ns() - before) / 1000 / (rate * (time.monotonic() - began))

    def ask(self, clients, count, request, end):
        return float(subprocess.run([load, str(self.port), str(clients), str(count), request, end], capture_output=True, text=True,
                                    check=True, timeout=120).stdout)


class Nginx(Server):
    what = "nginx, a file of 600 bytes, one worker"

    @staticmethod
    def there():
        return shutil.which("nginx", path=PATH)

    def prepare(self):
        (self.folder / "file").write_text("600 bytes\n" * 60)

    def command(self):
        (self.folder / "nginx.conf").write_text(NGINX.format(folder=self.folder, port=self.port))
        return self.there(), "-p", self.folder, "-c", self.folder / "nginx.conf", "-e", "stderr"

    def run(self):
        return self.ask(16, 40000, r"GET /file HTTP/1.1\r\nHost: a\r\n\r\n", r"600 bytes\n" * 60)


class Memcached(Server):
    what = "memcached, get, two threads"

    @staticmethod
    def there():
        return shutil.which("memcached", path=PATH)

    def command(self):
        return self.there(), "-l", "127.0.0.1", "-p", self.port, "-U", "0", "-t", "2", "-u", "root"

    def run(self):
        return self.ask(16, 60000, r"get k\r\n", r"END\r\n")


class Postgres(Server):
    what = "postgres, pgbench -S, four clients"
    stay = False  # its processes come and go
    options = ("-T", "2")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to be root

    @staticmethod
    def there():
        return POSTGRES

    def tool(self, name, *words):
        return subprocess.run([POSTGRES / name, *map(str, words)], cwd=self.folder, user=self.user, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)

    def prepare(self):
        done = self.tool("initdb", "-N", "-A", "trust", "-U", "bench", "--locale=C", "-D", self.folder / "data")
        if done.returncode != 0:
            sys.exit(done.stderr)

    def command(self):
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "autovacuum": "off"}
        return POSTGRES / "postgres", "-D", self.folder / "data", "-p", self.port, *(f"--{name}={value}" for name, value in settings.items())

    def pgbench(self, *words):
        return self.tool("pgbench", "-h", "127.0.0.1", "-p", self.port, "-U", "bench", *words, "postgres")

    def answers(self):
        return self.tool("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port).returncode == 0 and \
            self.pgbench("-i", "-q", "-s", "1").returncode == 0

    def end(self):
        self.process.terminate()
        self.process.wait(60)

    def run(self):
        out = self.pgbench("-n", "-S", "-c", 4, "-j", 2, *self.options).stdout
        return float(re.search(r"tps = ([\d.]+)", out)[1])


class PostgresConnects(Postgres):
    what = "postgres, a connection each query"
    options = ("-C", "-T", "2")


def row(*words):
    print("\t".join(str(word) for word in words), flush=True)


def bench(kind, folder):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TRACEAGENT_")}
    keys = folder / "certs"
    keys.mkdir()
    for name in ("ca.pem", "agent.pem", "agent.key"):
        shutil.copy(pathlib.Path(certs) / name, keys)
        if kind.user:
            shutil.chown(keys / name, kind.user)
    folder.chmod(0o755)
    traced_environment = {**plain, "LD_PRELOAD": shutil.copy(library, folder), "TRACEAGENT_SERVER": collector, "TRACEAGENT_CERTS": str(keys),
                          "TRACEAGENT_FORK": "1"}
    servers = []
    try:
        servers.append(kind(folder / "plain", plain))
        servers.append(kind(folder / "traced", traced_environment))
        for server in servers:
            server.run()
        rows = []
        for i in range(PAIRS):
            first, second = servers if i % 2 == 0 else servers[::-1]
            done = {first: first.measured()}
            done[second] = second.measured()
            rows.append([done[server] for server in servers])
    finally:
        for server in servers:
            server.end()
    (rate, cpu), (rate_traced, cpu_traced) = ([statistics.median(column) for column in zip(*runs)] for runs in zip(*rows))
    row(kind.what, f"{rate_traced:.0f}", "1/s", f"{rate:.0f}", f"not traced, same minute, {PAIRS} pairs", "-")
    row("  of what it was, median of the pairs", f"{statistics.median(b[0] / a[0] for a, b in rows):.3f}", "times", "-", "-", kind.goal)
    if kind.stay:
        row("  CPU, with the agent's threads", f"{cpu_traced:.1f}", "us/req", f"{cpu:.1f}", "not traced", "-")
        row("  of what it was, median of the pairs", f"{statistics.median(b[1] / a[1] for a, b in rows):.3f}", "times", "-", "-", "-")


for name, kind in (("nginx", Nginx), ("memcached", Memcached), ("postgres", Postgres), ("connects", PostgresConnects)):
    if sys.argv[5:] and name not in sys.argv[5:]:
        continue
    if not kind.there():
        print(f"preload_servers.py: no {name} here: left out", file=sys.stderr)
        continue
    with tempfile.TemporaryDirectory(prefix="tc-bench.") as folder:
        bench(kind, pathlib.Path(folder))
