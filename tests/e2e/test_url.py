# SPDX-License-Identifier: Apache-2.0
"""A URL is a FILE: traces of a Go program that nobody changed, and of servers that answer otherwise."""
import gzip
import http.server
import json
import socket
import subprocess
import threading
import unittest

from harness import SANITIZE, TRACECTL, Case, local_go, wait_until

TRACE = "/debug/pprof/trace"
BUSY = b"Could not enable tracing: tracing already enabled\n"


class Served(http.server.ThreadingHTTPServer):
    """Answers of one kind a path. `asked` has the requests."""
    daemon_threads = True

    def __init__(self, case, trace):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trace, self.asked, self.busy, self.over = trace, [], 0, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        case.addCleanup(self.end)

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()

    def url(self, path=""):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b"", type="application/octet-stream", **headers):
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, dict(self.headers)))
        where, _, query = self.path.partition("?")
        if where == TRACE:
            if server.busy > 0:
                server.busy -= 1
                self.answer(500, BUSY, "text/plain; charset=utf-8")
            else:
                self.answer(200, server.trace)
        elif where == "/stored":
            self.answer(200, server.trace)
        elif where == "/gzip":
            self.answer(200, gzip.compress(server.trace), Content_Encoding="gzip")
        elif where == "/bomb":
            self.answer(200, gzip.compress(bytes(200 << 20)), Content_Encoding="gzip")
        elif where == "/page":
            self.answer(200, b"<html>Sign in</html>", "text/html; charset=utf-8")
        elif where == "/denied":
            self.answer(401, b"no\n", "text/plain")
        elif where == "/fails":
            self.answer(503, b"try\nlater \x1b[31m\n", "text/plain")
        elif where.startswith("/short" + TRACE):
            self.answer(400, b"profile duration exceeds server's WriteTimeout\n", "text/plain")
        elif where == "/old":
            self.answer(200, b"go 1.21 trace\x00\x00\x00" + bytes(64))
        elif where == "/empty":
            self.answer(200)
        elif where == "/moved":
            self.answer(302, Location=query)
        elif where == "/loop":
            self.answer(302, Location="/loop")
        elif where in ("/cut", "/dead"):
            whole = server.trace if where == "/cut" else b""
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole) + 1))
            self.end_headers()
            self.wfile.write(whole)
        else:
            self.answer(404, b"404 page not found\n", "text/plain")

    def log_message(self, *args):
        pass


class Url(Case):
    def setUp(self):
        super().setUp()
        self.file = self.trace("g26-labels")
        self.served = Served(self, self.file.read_bytes())

    def refused(self, url, *words, options=(), code=1):
        done = self.tracectl("check", *options, url, expect=code)
        for word in words:
            self.assertIn(word, done.err)
        self.assertEqual(done.out, "")
        self.assertLessEqual(done.err.count("\n"), 2)

    def test_every_verb_reads_it_like_a_file(self):
        url = self.served.url("/stored")
        # Verbs print the name of what they read: here it is the same.
        for verb in (("check", "FILE"), ("check", "--json", "FILE"), ("cat", "-d", "json", "FILE"), ("index", "FILE"), ("state", "--at", "now", "FILE"),
                     ("query", "--csv", "FILE", "SELECT count(*), max(until_ns) FROM spans"), ("convert", "--to", "csv", "-o", "-", "FILE"),
                     ("diff", "FILE", self.file)):
            with self.subTest(verb):
                done = {where: self.tracectl(*(where if word == "FILE" else word for word in verb), expect=None) for where in (url, self.file)}
                self.assertEqual(done[url].returncode, done[self.file].returncode, done[url].err)
                self.assertEqual(done[url].out.replace(url, str(self.file)), done[self.file].out)

    def test_one_is_requested_once_however_often_it_is_read(self):
        self.tracectl("query", self.served.url(), "SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM events)")
        self.assertEqual([path for path, _ in self.served.asked], [f"{TRACE}?seconds=5"])

    def test_seconds_are_asked_for_and_the_trace_is_kept(self):
        kept = self.folder / "kept.trace"
        kept.write_bytes(b"an older one")
        self.tracectl("check", "--seconds", "2", "--keep", kept, self.served.url("/"))
        self.assertEqual(self.served.asked[-1][0], f"{TRACE}?seconds=2")
        self.assert_same_bytes(kept, self.file)
        self.tracectl("check", "--seconds", "3", self.served.url(TRACE))
        self.assertEqual(self.served.asked[-1][0], f"{TRACE}?seconds=3")
        self.tracectl("check", self.served.url(TRACE + "?seconds=1"))
        self.assertEqual(self.served.asked[-1][0], f"{TRACE}?seconds=1")
        self.assertEqual(sorted(path.name for path in self.folder.glob("kept*")), ["kept.trace"])
        for options, words in ((("--seconds", "2"), "--seconds is for a URL without a path"), (("--keep", self.folder / "no/where"), "No such file")):
            self.refused(self.served.url("/stored"), words, options=options)
        for options, words in ((("--seconds", "0"), "needs 1 to 3600"), (("--header", "oops"), "'NAME: VALUE'")):
            self.refused(self.served.url("/stored"), words, options=options, code=2)

    def test_commands_that_a_report_offers_read_the_trace_that_was_kept(self):
        kept = self.folder / "kept.trace"
        done = self.tracectl("report", "--keep", kept, self.served.url())
        commands = [line.split() for line in done.out.splitlines() if line.startswith("     tracectl ")]
        self.assertTrue(commands and all(str(kept) in command for command in commands), done.out)
        self.assertNotIn("again", done.err)
        self.tracectl(*commands[0][1:])
        self.assertEqual(len(self.served.asked), 1)
        self.assertIn(f"ask {self.served.url()} again; --keep", self.tracectl("report", self.served.url()).err)

    def test_packed_ones_are_unpacked_in_bounded_memory(self):
        self.tracectl("check", self.served.url("/gzip"))
        self.refused_trace("/bomb", "not a Go execution trace")
        self.refused_trace("/old", "1.21")

    def refused_trace(self, path, words):
        done = self.tracectl("check", self.served.url(path), expect=1)
        self.assertIn(words, done.out + done.err)

    def test_answers_that_are_no_trace_are_named(self):
        for path, words in (("/nothing", "404"), ("/page", "an HTML page, not a trace"), ("/denied", "--header"), ("/fails", "503: try later"),
                            ("/short" + TRACE, "WriteTimeout"), ("/empty", "empty"), ("/loop", "more than 5 redirects"),
                            ("/moved?file:///etc/passwd", "not followed"), ("/dead", "transfer closed")):
            with self.subTest(path):
                self.refused(self.served.url(path), words)
        self.refused(self.served.url("/fails").replace("http:", "ftp:"), "only http:// and https://")
        self.refused(self.served.url().replace("http:", "https:"), "use http://")
        self.refused("http://127.0.0.1:1", "nothing listens on http://127.0.0.1:1")
        self.refused("http://nowhere.invalid:80/", "no such host")
        self.refused("http://[::1/", "not a URL")
        self.refused(f"127.0.0.1:{self.served.server_address[1]}", "did you mean http://127.0.0.1:")

    def test_a_trace_that_somebody_else_takes_is_waited_for(self):
        self.served.busy = 2
        self.refused(self.served.url(), "tracing already enabled", "--wait")
        self.tracectl("check", "--wait", self.served.url())
        self.assertEqual(self.served.busy, 0)

    def test_a_connection_that_is_lost_leaves_what_came(self):
        done = self.tracectl("check", "--json", self.served.url("/cut"), expect=1)
        whole = json.loads(self.tracectl("check", "--json", self.file).out)
        cut = json.loads(done.out)
        self.assertEqual((cut["ok"], cut["events"]), (False, whole["events"]))
        self.assertIn("connection was lost", cut["reason"])

    def test_credentials_stay_with_the_host_that_they_are_for(self):
        other = Served(self, self.served.trace)
        secret = ("--header", "Authorization: Bearer s3cret", "--header", "X-Token: s3cret")
        target = self.served.url("/moved?").replace("http://", "http://me:s3cret@")
        self.tracectl("check", *secret, target + self.served.url("/stored"))
        self.assertEqual(self.served.asked[-1][1].get("X-Token"), "s3cret")
        self.tracectl("check", *secret, target + other.url("/stored"))
        self.assertNotIn("s3cret", str(other.asked))
        self.assertIn("Authorization", self.served.asked[-1][1])
        self.refused(target + "file:///", "file:///", options=secret)
        self.assertNotIn("s3cret", self.tracectl("check", target + "file:///", expect=1).err)


@unittest.skipIf(SANITIZE, "the program is Go's")
class Program(Case):
    def setUp(self):
        super().setUp()
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        program = subprocess.Popen([go.program(self, "tests/e2e/web")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stdin.close)
        host, port = program.stdout.readline().strip().split(":")
        self.address, self.url = (host, int(port)), f"http://{host}:{port}"

    def test_one_command_shows_what_an_unchanged_program_waits_for(self):
        done = self.tracectl("query", "--seconds", "1", self.url, "SELECT place(stack), count(*) FROM spans WHERE state = 'waiting' AND reason = 'sync' GROUP BY 1")
        self.assertIn("main.reserve", done.out)
        self.tracectl("check", "--seconds", "1", self.url)

    def test_another_reader_is_waited_for(self):
        first = []

        def refused():
            """Who comes second is refused: that is the first here, if its request was slower."""
            first[:] = [socket.create_connection(self.address)]
            first[0].sendall(f"GET {TRACE}?seconds=30 HTTP/1.1\r\nHost: web\r\n\r\n".encode())
            said = self.tracectl("check", "--seconds", "1", self.url, expect=None).err
            if "already" not in said:
                first[0].close()
            return "already" in said

        wait_until("the second is refused", refused)
        second = self.spawn("second", TRACECTL, "check", "--wait", "--seconds", "1", self.url)
        first[0].close()
        self.assertEqual(second.wait(), 0, self.log("second"))
