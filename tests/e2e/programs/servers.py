# SPDX-License-Identifier: Apache-2.0
"""Servers that answer many clients: nginx, memcached, redis with threads of its own for reading and writing."""
import concurrent.futures
import hashlib
import http.client
import re
import signal
import socket

from harness import DEADLINE
from programs.program import Names, Server

# As its documentation starts it in the foreground; a pool of threads reads the files.
NGINX = """
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
  access_log {folder}/access.log;
  sendfile on;
  aio threads;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/www;
    location /word {{ return 200 "a word\\n"; }}
    location /slow {{ alias {folder}/www/file1; limit_rate 75k; }}
  }}
}}
"""


def in_parallel(clients, work):
    """Returns the answers of so many parallel clients, in the order of the clients."""
    with concurrent.futures.ThreadPoolExecutor(clients) as threads:
        return "".join(threads.map(work, range(clients)))


class Nginx(Server):
    """Started by root its workers are another user, who may not read the agent's key."""
    name = "nginx"
    executable = "nginx"
    stop_signal = signal.SIGQUIT
    variables = {"TRACEAGENT_FORK": "1"}
    expects = {"nginx": Names({"epoll_wait", "accept4", "recv", "writev", "sendfile64", "sigsuspend"}, {"network (poll)", "sleep"}, {"nginx"})}

    def prepare(self, folder):
        (folder / "www").mkdir()
        (folder / "www").chmod(0o755)
        for n in range(4):
            (folder / f"www/file{n}").write_text(f"{n}" * 100_000 * n)
        (folder / "nginx.conf").write_text("")

    def command(self, folder, port):
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
        return ("-p", folder, "-c", folder / "nginx.conf", "-e", "stderr")

    def ask(self, folder, port):
        def client(n):
            connection, seen = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE), []
            for i in range(20):
                connection.request("GET", ("/word", "/none", f"/file{i % 4}")[i % 3] if i < 19 else "/slow")
                answer = connection.getresponse()
                seen.append(f"{answer.status} {hashlib.sha256(answer.read()).hexdigest()[:8]}\n")
            connection.close()
            return "".join(seen)

        return in_parallel(6, client)

    def settled(self, err):
        """Removes times and process ids from the log, and its order: workers log in any order."""
        return "\n".join(sorted(re.sub(r"\d+", "N", err).splitlines()))


class Memcached(Server):
    name = "memcached"
    executable = "memcached"
    variables = {"TRACEAGENT_DELAY_MS": "0"}
    expects = {"memcached": Names({"epoll_wait", "accept4", "read", "sendmsg"}, {"network (poll)"}, {"memcached"})}

    def command(self, folder, port):
        return ("-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "4", "-u", "root")

    def ask(self, folder, port):
        clients = [socket.create_connection(("127.0.0.1", port), DEADLINE) for _ in range(8)]
        said = b""
        for n in range(50):
            for client in clients:
                client.sendall(b"set k%d 0 0 5\r\nvalue\r\nget k%d\r\n" % (n, n))
            for client in clients:
                answer = b""
                while not answer.endswith(b"END\r\n"):
                    part = client.recv(4096)
                    if not part:
                        return "a connection ended"
                    answer += part
                said += answer
        for client in clients:
            client.close()
        return said.decode()

    def check(self, case, texts):
        text, = texts["memcached"]
        workers = set(re.findall(r" G=(\d+) .*Running->Syscall.*\nTransitionStack=\n\tsendmsg @", text))
        case.assertEqual(len(workers), 4)
        case.assertGreaterEqual(text.count("Running->Syscall"), 2 * 8 * 50)


class Redis(Server):
    name = "redis_io_threads"
    executable = "redis-check-rdb"  # the server, too: it goes by the name it is called by
    called = "redis-server"
    expects = {"redis-server": Names({"epoll_wait", "accept4", "read", "write"}, {"network (poll)"}, {"redis-server", "IOThreadMain", "bioProcessBackgroundJobs"})}

    def command(self, folder, port):
        return ("--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder, "--io-threads", "4", "--io-threads-do-reads", "yes")

    def ask(self, folder, port):
        def client(n):
            with socket.create_connection(("127.0.0.1", port), DEADLINE) as peer:
                said = peer.makefile("rb")
                for i in range(10):
                    peer.sendall(b"".join(b"SET k%d:%d %d\r\nINCR k%d:%d\r\n" % (n, j, j, n, j) for j in range(50)))
                    seen = [said.readline() for _ in range(100)]
                peer.sendall(b"BLPOP none 0.4\r\n")  # so long it must live
                return b"".join(seen).decode() + said.readline().decode()

        return in_parallel(8, client)

    def check(self, case, texts):
        text, = texts["redis-server"]
        case.assertEqual(len(re.findall(r"NotExist->Runnable.*\nTransitionStack=\n\tIOThreadMain @", text)), 3)

    def settled(self, err):
        return "\n".join(line for line in re.sub(r"\d+", "N", err).splitlines() if line[:2] == "N:")


PROGRAMS = (Nginx(), Memcached(), Redis())
