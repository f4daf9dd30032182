# SPDX-License-Identifier: Apache-2.0
"""`tracectl page`: the collector's page on the user's loopback. It lets one browser in and nobody else, passes requests on as they are, and
lives as long as its terminal."""
import concurrent.futures
import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import unittest

from harness import DEADLINE, SANITIZE, TRACECTL, Case, Collector, https, wait_until
from served import Served

LINK = re.compile(rb"^http://(127\.0\.0\.1:\d+)(/\?token=[0-9a-f]{64})\n$")


class LocalPage:
    """A running `tracectl page` and its browser's cookie."""

    def __init__(self, case, collector, *args, server=None, **options):
        self.case = case
        self.process = case.spawn("page", TRACECTL, "page", "--server", server or collector.to, "--certs", case.certs, *args,
                                  stdout=subprocess.PIPE, **options)
        case.addCleanup(self.process.stdout.close)
        line = self.process.stdout.readline()
        found = LINK.match(line)
        case.assertTrue(found, line + case.log("page").encode())
        self.host, self.link = found[1].decode(), found[2].decode()
        self.base = f"http://{self.host}"
        self.cookie = None

    def connection(self):
        return http.client.HTTPConnection(self.host, timeout=DEADLINE)

    def ask(self, path, method="GET", body=None, **fields):
        """Status, fields and body of an answer. A field None is left out."""
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        if self.cookie and "Cookie" not in fields:
            fields["Cookie"] = self.cookie
        connection = self.connection()
        try:
            connection.request(method, path, body, {name: value for name, value in fields.items() if value is not None})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def enter(self):
        status, headers, _ = self.ask(self.link)
        self.case.assertEqual(status, 200)
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return self

    def raw(self, text):
        """What comes back for these bytes until the other side ends."""
        host, port = self.host.split(":")
        with socket.create_connection((host, int(port)), DEADLINE) as s:
            s.sendall(text.replace("HOST", self.host).replace("COOKIE", self.cookie or "none").encode())
            got = b""
            while piece := s.recv(65536):
                got += piece
        return got.decode(errors="replace")

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)


class Guard(Served):
    """Who is let in."""

    @classmethod
    def prepare(cls, host):
        cls.collector = Collector(host)
        cls.collector.send(host.trace("g26-gens"), "shop")

    def page(self, *args, **options):
        return LocalPage(self, self.collector, *args, **options)

    def test_the_link_is_good_once(self):
        page = self.page()
        for path in ("/", "/api/v1/streams", "/healthz", "/page.js"):
            self.assertEqual(page.ask(path)[0], 403, path)
        self.assertEqual(page.ask("/?token=" + "0" * 64)[0], 403)
        self.assertEqual(page.ask(page.link, method="HEAD")[0], 403)  # a program that looks at links first
        status, headers, body = page.ask(page.link)
        self.assertEqual(status, 200)
        self.assertRegex(headers["Set-Cookie"], rf"^tracectl-page-{page.host.split(':')[1]}=[0-9a-f]{{64}}; Path=/; HttpOnly; SameSite=Strict$")
        self.assertIn(b'http-equiv=refresh content="0;url=/"', body)
        status, _, body = page.ask(page.link, Accept="text/html")
        self.assertEqual(status, 403)
        self.assertIn(b"used before", body)
        page.cookie = headers["Set-Cookie"].split(";")[0]
        self.assertEqual(page.ask(page.link)[0], 200)  # it reloads the tab
        self.assertEqual(page.ask("/")[0], 200)
        self.assertEqual(page.ask("/", Cookie=f"a=b; {page.cookie}; c=d")[0], 200)
        self.assertEqual(page.ask("/", Cookie=page.cookie[:-1])[0], 403)
        self.assertEqual(page.ask("/", Cookie=f"x{page.cookie}")[0], 403)
        self.assertEqual(page.ask("/", Cookie=page.cookie.split("=")[0] + "=" + page.link.split("=")[1])[0], 403)

    def test_only_its_own_host_and_pages_are_answered(self):
        page = self.page().enter()
        port = page.host.split(":")[1]
        for host in (f"localhost:{port}", "127.0.0.1", "evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"[::1]:{port}"):
            self.assertEqual(page.ask("/", Host=host)[0], 421, host)
            self.assertEqual(page.ask(page.link, Host=host)[0], 421, host)
        for origin in ("http://evil.example", "null", f"http://localhost:{port}", f"https://{page.host}", f"http://127.0.0.1:{int(port) ^ 1}"):
            self.assertEqual(page.ask("/api/v1/streams", Origin=origin)[0], 403, origin)
        self.assertEqual(page.ask("/api/v1/streams", Origin=page.base)[0], 200)
        for site in ("cross-site", "same-site"):
            self.assertEqual(page.ask("/api/v1/streams", Sec_Fetch_Site=site)[0], 403, site)
        for site in ("same-origin", "none"):
            self.assertEqual(page.ask("/api/v1/streams", Sec_Fetch_Site=site)[0], 200, site)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_another_user_of_this_host_is_not_answered_even_with_the_cookie(self):
        as_nobody = self.run_program("setpriv", "--reuid", "nobody", "true", expect=None)
        self.assertEqual(as_nobody.returncode, 0, as_nobody.err)
        page = self.page().enter()
        ask = ("curl", "-sS", "--max-time", str(int(DEADLINE)), "-H", f"Cookie: {page.cookie}", page.base + "/healthz")
        self.assertEqual(self.run_program(*ask).out, "ok\n")
        refused = self.run_program("setpriv", "--reuid", "nobody", *ask, expect=None)
        self.assertIn(refused.returncode, (52, 56), refused.err)  # closed, without an answer
        self.assertEqual(refused.out, "")
        self.assertEqual(page.ask("/healthz")[0], 200)

    def test_it_only_reads(self):
        page = self.page().enter()
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            status, headers, _ = page.ask("/api/v1/triggers", method=method, body=b"{}" if method in ("POST", "PUT") else None)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)
        self.assertIn("--act", json.loads(page.ask("/api/v1/triggers", method="POST", body=b"{}")[2])["error"])
        for path in ("/api/v1/leases/1", "/api/v1/jobs/1"):  # these change something by being read
            self.assertEqual(page.ask(path)[0], 405, path)
        self.assertEqual(self.collector.json_lines("trigger", "list"), [])

    def test_with_act_it_changes_things_for_its_own_page(self):
        page = self.page("--act").enter()
        rule = json.dumps({"add": "slow when stw.wall_share > 90% do alert"})
        as_json = {"Content_Type": "application/json"}
        self.assertEqual(page.ask("/api/v1/triggers", "POST", rule, Origin="http://evil.example", **as_json)[0], 403)
        self.assertEqual(page.ask("/api/v1/triggers", "POST", rule, Sec_Fetch_Site="same-site", **as_json)[0], 403)
        self.assertEqual(page.ask("/api/v1/triggers", "POST", rule, Cookie="none", **as_json)[0], 403)
        status, _, body = page.ask("/api/v1/triggers", "POST", rule, Origin=page.base, **as_json)
        self.assertEqual(status, 201, body)
        self.assertEqual([r["name"] for r in json.loads(body)["rules"]], ["slow"])
        self.assertEqual(page.ask("/api/v1/triggers", "POST", b"x" * (1 << 20) + b"x", **as_json)[0], 413)
        self.assertEqual(page.ask("/api/v1/triggers/slow", "DELETE")[0], 200)
        self.assertEqual(self.collector.json_lines("trigger", "list"), [])
        go_on = page.raw(f"POST /api/v1/triggers HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                         f"Content-Length: 2\r\nConnection: close\r\n\r\n{{}}")
        self.assertRegex(go_on, r"^HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 [24]00 ")

    def test_bad_requests_are_refused_by_name(self):
        page = self.page().enter()
        head = "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n"
        for text, status in (
                (head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
                (head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
                (head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
                (head + "Content-Length: 3\r\n\r\nabc", 413),
                (head + "Host: evil.example\r\n\r\n", 400),
                (head + "Cookie: a=b\r\n\r\n", 400),
                (head + "X: " + "y" * 40000 + "\r\n\r\n", 431),
                (head + "X y: z\r\n\r\n", 400),
                ("GET http://evil.example/ HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n\r\n", 421),
                ("CONNECT evil.example:443 HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n\r\n", 400),
                ("GET /" + "a" * 4000 + " HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n\r\n", 414),
                ("GET / HTTP/1.1\r\nCookie: COOKIE\r\n\r\n", 400),
                ("GET / HTTP/1.0\r\nCookie: COOKIE\r\n\r\n", 421),
                ("GET / HTTP/2.0\r\nHost: HOST\r\n\r\n", 505),
                ("\x16\x03\x01\x02\x00\x01", 501)):
            got = page.raw(text if "Connection" in text else text.replace("Host: HOST\r\n", "Host: HOST\r\nConnection: close\r\n", 1))
            self.assertRegex(got, rf"^HTTP/1.1 {status} ", text[:120])
            self.assertEqual(got.count(f"HTTP/1.1 {status} "), 1, text[:120])
        self.assertEqual(page.ask("/")[0], 200)

    def test_nothing_of_a_request_reaches_the_next(self):
        """Two requests in one write get two answers; a body that is refused is not a request."""
        page = self.page().enter()
        one = "GET /healthz HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n"
        self.assertEqual(page.raw(one + "\r\n" + one + "Connection: close\r\n\r\n").count("HTTP/1.1 200 "), 2)
        hidden = one + "\r\n"
        got = page.raw(f"POST / HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nContent-Length: {len(hidden) + 200}\r\n\r\n{hidden}")
        self.assertEqual(got.count("HTTP/1.1 "), 1)

    def test_a_path_is_passed_on_as_it_is(self):
        page = self.page().enter()
        for path in ("/service/a%2Fb%20c%0d%0aX:%20y", "/service/../healthz", "/%3fa=b", "/service/%C3%A9"):
            status, _, body = page.ask(path)
            direct = http.client.HTTPConnection(self.collector.ready["http"], timeout=DEADLINE)
            direct.request("GET", path)
            answer = direct.getresponse()
            self.assertEqual((status, body), (answer.status, answer.read()), path)
            direct.close()


class Relay(Case):
    """What is passed on."""

    def setUp(self):
        super().setUp()
        self.collector = Collector(self)

    def test_every_answer_is_the_collectors(self):
        self.collector.send(self.trace("g26-gens"), "shop")
        wait_until("the archive has it", lambda: sum(s["last_gen"] - s["first_gen"] + 1 for s in self.collector.json_lines("list")) == 26)
        page = LocalPage(self, self.collector).enter()
        segment = self.collector.json_lines("list")[0]
        direct = http.client.HTTPConnection(self.collector.ready["http"], timeout=DEADLINE)
        self.addCleanup(direct.close)
        paths = ["/", "/page.js", "/page.css", "/icon.svg", "/timeline.html", "/api/v1/reports", f"/api/v1/segments/{segment['id']}", "/nothing", "/api/v1/report/none", "/metrics"]
        for path in paths:
            for fields in ({}, {"Range": "bytes=10-99"}, {"Accept": "application/protobuf"}):
                for method in ("GET", "HEAD"):
                    direct.request(method, path, headers=fields)
                    theirs = direct.getresponse()
                    body = theirs.read()
                    status, headers, ours = page.ask(path, method, **fields)
                    self.assertEqual(status, theirs.status, (path, fields, method))
                    if path != "/metrics":
                        self.assertEqual(ours, body, (path, fields, method))
                        for name in ("Content-Type", "Content-Length", "ETag", "Content-Range", "Content-Security-Policy", "Cache-Control"):
                            self.assertEqual(headers[name], theirs.headers[name], (path, name))
        tag = page.ask("/page.js")[1]["ETag"]
        self.assertEqual(page.ask("/page.js", If_None_Match=tag)[0], 304)

    def events(self, page, kinds):
        """A reader of live events: its connection and the stream of lines."""
        connection = page.connection()
        self.addCleanup(connection.close)
        connection.request("GET", f"/api/v1/live?kinds={kinds}", headers={"Cookie": page.cookie, "Accept": "text/event-stream"})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/event-stream"))
        return answer

    def next_event(self, answer, kind):
        while line := answer.readline():
            if line == f"event: {kind}\n".encode():
                return json.loads(answer.readline().removeprefix(b"data: "))
        raise AssertionError("the events ended")

    def test_events_flow_as_they_happen(self):
        page = LocalPage(self, self.collector).enter()
        answers = [self.events(page, "overview") for _ in range(20)]
        seen = [self.next_event(a, "overview")["wall_ns"] for a in answers]
        for answer, before in zip(answers, seen):  # each second one
            self.assertGreater(self.next_event(answer, "overview")["wall_ns"], before)
        self.assertEqual(page.ask("/healthz")[0], 200)

    def test_a_thousand_requests_at_once_and_a_slow_reader(self):
        self.collector.send(self.trace("g26-gens"), "shop")
        wait_until("the archive has it", lambda: sum(s["last_gen"] - s["first_gen"] + 1 for s in self.collector.json_lines("list")) == 26)
        page = LocalPage(self, self.collector).enter()
        host, port = page.host.split(":")
        slow = []
        for _ in range(8):  # each asks for what is never read
            s = socket.create_connection((host, int(port)), DEADLINE)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(20):
                s.sendall(f"GET /uPlot.iife.min.js HTTP/1.1\r\nHost: {page.host}\r\nCookie: {page.cookie}\r\n\r\n".encode())
            self.addCleanup(s.close)
            slow.append(s)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(lambda i: page.ask(("/healthz", "/page.js", "/api/v1/streams", "/")[i % 4])[0], range(200 if SANITIZE else 1000)))
        self.assertEqual(set(statuses), {200})
        with open(f"/proc/{page.process.pid}/status", encoding="ascii") as status:
            rss_kib = int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])
        if not SANITIZE:
            self.assertLess(rss_kib, 64 << 10)
        self.assertEqual(page.end(), 0)

    def test_more_connections_than_it_has_room_for_displace_idle_ones(self):
        page = LocalPage(self, self.collector).enter()
        host, port = page.host.split(":")
        idle = [socket.create_connection((host, int(port)), DEADLINE) for _ in range(300)]
        for s in idle:
            self.addCleanup(s.close)
        self.assertEqual(page.ask("/healthz")[0], 200)
        events = self.events(page, "overview")
        self.next_event(events, "overview")

    def test_a_collector_that_dies_is_named_and_comes_back(self):
        page = LocalPage(self, self.collector, server=self.collector.ready["http"]).enter()
        events = self.events(page, "overview")
        self.next_event(events, "overview")
        self.collector.kill()
        with self.assertRaises((http.client.IncompleteRead, AssertionError, ConnectionResetError)):
            while True:
                self.next_event(events, "overview")
        status, headers, body = page.ask("/", Accept="text/html,*/*")
        self.assertEqual((status, headers["Content-Type"]), (502, "text/html; charset=utf-8"))
        self.assertIn(f"no collector answers on {self.collector.ready['http']}: Connection refused", body.decode())
        self.assertIn("http-equiv=refresh", body.decode())
        status, _, body = page.ask("/api/v1/streams")
        self.assertEqual((status, json.loads(body)["status"], json.loads(body)["code"]), (502, 502, "IO"))
        with self.assertRaises((http.client.RemoteDisconnected, ConnectionResetError)):  # its reader comes again
            page.ask("/api/v1/live?kinds=overview", Accept="text/event-stream")
        self.collector.start()
        self.assertEqual(page.ask("/", Accept="text/html")[0], 200)
        self.next_event(self.events(page, "overview"), "overview")

    def test_over_tls_with_the_readers_certificate(self):
        self.collector.stop()
        collector = Collector(self, "listen.http=0.0.0.0:0", name="tls")
        page = LocalPage(self, collector, server=https(collector).replace("127.0.0.1", "localhost")).enter()
        self.assertEqual(page.ask("/")[0], 200)
        self.assertEqual(page.ask("/api/v1/streams")[0], 200)
        self.next_event(self.events(page, "overview"), "overview")
        self.assertEqual(page.end(), 0)
        self.tracectl("certs", "init", self.folder / "others")
        done = self.tracectl("page", "--server", https(collector), "--certs", self.folder / "others", expect=1)
        self.assertIn("the handshake with", done.err)
        self.assertEqual(done.out, "")

    def test_without_a_collector_it_says_so_at_once(self):
        self.collector.kill()
        done = self.tracectl("page", "--server", self.collector.ready["http"], expect=1)
        self.assertIn("no collector answers on", done.err)


class Life(Served):
    """As long as its terminal."""

    @classmethod
    def prepare(cls, host):
        cls.collector = Collector(host)

    def test_signals_end_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            page = LocalPage(self, self.collector).enter()
            events = page.connection()
            events.request("GET", "/api/v1/live?kinds=overview", headers={"Cookie": page.cookie})
            events.getresponse()
            self.assertEqual(page.end(number), 0, number)
            events.close()

    def test_a_pipes_end_ends_it(self):
        page = LocalPage(self, self.collector, stdin=subprocess.PIPE)
        page.enter()
        page.process.stdin.write(b"not a word\n")
        page.process.stdin.flush()
        self.assertEqual(page.ask("/healthz")[0], 200)
        page.process.stdin.close()
        self.assertEqual(page.process.wait(DEADLINE), 0)

    def test_its_terminals_end_ends_it(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(TRACECTL, ["tracectl", "page", "--server", self.collector.to, "--certs", str(self.certs)])
        said = b""
        while b"token=" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_a_port_that_is_taken_is_named(self):
        page = LocalPage(self, self.collector)
        port = page.host.split(":")[1]
        done = self.tracectl("page", "--server", self.collector.to, "--certs", self.certs, "--port", port, expect=1)
        self.assertIn(f"127.0.0.1:{port}: address already in use", done.err)
        self.tracectl("page", "--port", "65536", expect=2)
        self.assertEqual(page.end(), 0)
        again = LocalPage(self, self.collector, "--port", port)
        self.assertEqual(again.host, page.host)
