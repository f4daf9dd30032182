# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: a process a connection, and half a dozen that serve the others."""
import os
import pathlib
import re
import subprocess

from harness import DEADLINE
from programs.program import Names, Server
from programs.servers import in_parallel

TABLE = "create table t(id int primary key, word text); insert into t select i, md5(i::text) from generate_series(1, 5000) i"
QUERIES = "select count(*), min(word), max(word) from t; select id from t order by word limit 3; update t set word = upper(word) where id % 97 = {n}; " \
          "select pg_sleep(0.2); select sum(length(word)) from t where id % 8 = {n}; select no_such_column from t"


class Postgres(Server):
    name = "postgres"
    variables = {"TRACEAGENT_FORK": "1"}
    expects = {"postgres": Names({"epoll_wait", "accept", "recv", "send"}, {"network (poll)"}, {"postgres"})}

    def programs(self):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        return found[-1].parent if found else None

    def path(self):
        return self.programs() and self.programs() / "postgres"

    def missing(self):
        return None if self.programs() else "there is no postgres here"

    def user(self):
        return "nobody" if os.geteuid() == 0 else None  # it refuses to be root

    def prepare(self, folder):
        made = folder.parent / "cluster"  # once for the runs of a case, each of which has a copy
        if not made.exists():
            subprocess.run([self.programs() / "initdb", "-N", "-A", "trust", "-U", "tester", "--locale=C", "-D", folder / "data"], check=True,
                           user=self.user(), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            subprocess.run(["cp", "-a", folder / "data", made], check=True)
        else:
            subprocess.run(["cp", "-a", made, folder / "data"], check=True)

    def command(self, folder, port):
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB"}
        return ("-D", folder / "data", "-p", port, *(f"--{name}={value}" for name, value in settings.items()))

    def sql(self, port, text):
        done = subprocess.run([self.programs() / "psql", "-X", "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "-At", "postgres"],
                              input=text.replace(";", ";\n").encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
        return done.stdout.decode() + f"{done.returncode}\n"

    def answers(self, port):
        return self.sql(port, "select 1") == "1\n0\n"

    def ask(self, folder, port):
        return self.sql(port, TABLE) + in_parallel(6, lambda n: self.sql(port, QUERIES.format(n=n)))

    def settled(self, err):
        """Removes times and process ids from the log, and its order: processes log in any order, and some lines come
        too early."""
        return "\n".join(sorted(line for line in re.sub(r"\d+", "N", err).splitlines() if "starting up" not in line))


PROGRAMS = (Postgres(),)
