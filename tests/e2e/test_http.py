# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of a real daemon: the manual's curl lines, and answers that equal tracectl's."""
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import ssl
import sys
import urllib.error
import urllib.request

from harness import DAEMON, DEADLINE, SOURCE, Case, Collector, UnixConnection, held_port, wait_until
from served import Served


def serve(owner, host, *settings):
    """A collector of the case `host` with one stream, as attributes of owner, a case or a class of them."""
    collector = owner.collector = Collector(host, *settings)
    owner.base = f"http://{collector.ready['http']}"
    collector.send(host.trace("g26-gens"), "shop")
    wait_until("every generation is ordered", lambda: all(row["analysis"] == "ok" for row in collector.json_lines("list")))


class HttpCase(Case):
    def get(self, path, **fields):
        request = urllib.request.Request(self.base + path, headers=fields)
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return answer.read()


class Http(Served, HttpCase):
    """Cases that only read, over one collector."""

    @classmethod
    def prepare(cls, host):
        serve(cls, host)

    def test_the_manuals_lines_run(self):
        manual = (SOURCE / "docs/HTTP.md").read_text()
        script = re.search(r"^```sh\n(.*?)^```", manual, re.M | re.S).group(1)
        lines = script.replace("http://127.0.0.1:7073", self.base).splitlines()
        self.assertGreater(len(lines), 8)
        for line in lines:
            with self.subTest(line=line):
                done = self.run_program("bash", "-o", "pipefail", "-c", line, cwd=self.folder)
                if "-o " not in line:
                    self.assertNotEqual(done.out, "")
        self.assertEqual((self.folder / "head.bin").read_bytes(), (self.folder / "shop.trace").read_bytes()[:16])

    def test_answers_are_tracectls(self):
        status = self.collector.json_lines("status")
        streams = json.loads(self.get("/api/v1/streams"))
        self.assertEqual(streams["streams"], [{k: v for k, v in s.items() if k != "type"}
                                              for s in status if s["type"] == "stream"])
        self.assertEqual(json.loads(self.get("/api/v1/segments?limit=1000"))["segments"],
                         self.collector.json_lines("list"))
        schemas = json.loads(self.get("/api/v1/reports"))
        self.assertEqual(schemas["windows"], ["10s", "1m", "5m", "all"])
        for window in ("10s", "1m", "5m", "all"):
            printed = self.collector.json_lines("report", "all", "--window", window)
            self.assertEqual({report["kind"] for report in printed}, {schema["name"] for schema in schemas["reports"]})
            for kind in {report["kind"] for report in printed}:
                self.assertEqual(
                    [json.loads(line) for line in self.get(f"/api/v1/report/{kind}?window={window}").splitlines()],
                    [report for report in printed if report["kind"] == kind])

    def test_pages_and_all_that_they_load_are_served(self):
        """Fetches what a browser would, page by page; test_page.py and its like check what is displayed."""
        wanted, seen = ["/", "/archive", "/service/shop", f"/timeline/{'0' * 32}", f"/why/{'0' * 32}"], set()
        while wanted:
            path = wanted.pop()
            if path in seen:
                continue
            seen.add(path)
            with urllib.request.urlopen(self.base + path, timeout=DEADLINE) as answer:
                text, tag = answer.read().decode(), answer.headers["ETag"]
                self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
            wanted += re.findall(r'(?:href=|src=|from )"(/[\w./]+\.(?:js|css|svg))"', text)
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.get(path, **{"If-None-Match": tag})
            self.assertEqual(caught.exception.code, 304)
        self.assertGreater(len(seen), 30)

    def test_downloads_are_what_fetch_gives(self):
        for segment in self.collector.json_lines("list"):
            path = f"/api/v1/segments/{segment['id']}"
            with urllib.request.urlopen(self.base + path, timeout=DEADLINE) as answer:
                self.assertEqual(answer.headers["ETag"], f'"{segment["hash"]}"')
                file = answer.read()
            self.assertEqual((segment["hash_kind"], len(segment["hash"])), ("xxh3", 32))
            half = len(file) // 2
            self.assertEqual(self.get(path, Range=f"bytes={half}-"), file[half:])
        self.collector.ask("fetch", segment["id"], "-o", self.folder / "one", "--no-progress")
        self.assertEqual((self.folder / "one").read_bytes(), file)

    def test_metrics_pass_prometheus_own_check(self):
        text = self.get("/metrics").decode()
        self.assertIn('trace_stw_seconds_count{service="shop",instance="one",reason="gc.mark-termination"}', text)
        self.assertIn('trace_blocked_syscall_seconds_count{service="shop",instance="one"} 4\n', text)
        self.assertLessEqual(sum(line.startswith("trace_") for line in text.splitlines()), 1000)
        if shutil.which("promtool"):
            (self.folder / "metrics").write_text(text)
            self.run_program("sh", "-c", "promtool check metrics <metrics", cwd=self.folder)
        families = self._parse(text)
        for name, (kind, documentation) in families.items():
            with self.subTest(name=name):
                self.assertRegex(name, r"^(tracecollect|trace|process)_[a-z0-9_]+$")
                self.assertTrue(documentation.endswith("."))
                self.assertIn(kind, ("counter", "gauge", "summary"))
                self.assertNotRegex(name, "_(ns|ms|milliseconds|kib|mib)(_|$)", "base units only")
        self.assertEqual(families["trace_stw_seconds"][0], "summary")
        self.assertGreater(len(families), 40)

    def test_families_keep_their_names_under_openmetrics(self):
        """There a counter's family has no _total, so that a gauge of the same name would be the same family."""
        text = self.get("/metrics").decode()
        kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
        self.assertEqual(len(kinds), text.count("# TYPE "))
        families = [name.removesuffix("_total") if kind == "counter" else name for name, kind in kinds.items()]
        self.assertEqual(len(set(families)), len(families), [name for name in families if families.count(name) > 1])

    def test_the_process_and_its_build_are_shown(self):
        samples = dict(re.findall(r"(?m)^((?:process|tracecollect_build).+) (\S+)$",
                                  self.get("/metrics").decode()))
        proc = pathlib.Path(f"/proc/{self.collector.process.pid}")
        version = self.run_program(DAEMON, "--version").out.split()[1]
        self.assertRegex(" ".join(samples), rf'tracecollect_build_info{{version="{version}",go_formats="1.22')
        self.assertEqual(int(samples["process_max_fds"]), int(re.search(r"Max open files +(\d+)", (proc / "limits").read_text()).group(1)))
        self.assertLessEqual(abs(int(samples["process_open_fds"]) - len(list((proc / "fd").iterdir()))), 4)
        self.assertGreater(float(samples["process_cpu_seconds_total"]), 0)
        self.assertGreater(int(samples["process_virtual_memory_bytes"]), int(samples["process_resident_memory_bytes"]))
        self.assertGreater(int(samples["process_resident_memory_bytes"]), 1 << 20)
        booted = int(re.search(r"(?m)^btime (\d+)$", pathlib.Path("/proc/stat").read_text())[1])
        ticks = int((proc / "stat").read_text().rpartition(")")[2].split()[19])
        self.assertLessEqual(abs(float(samples["process_start_time_seconds"]) - booted - ticks / os.sysconf("SC_CLK_TCK")), 60)

    def _parse(self, text):
        """Families by name, as Prometheus' own client for Python reads them."""
        sys.path.append(str(SOURCE / "build/python"))
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            if os.environ.get("CI"):
                raise
            self.skipTest("no prometheus_client here: tools/deps.sh fetches it")
        finally:
            sys.path.pop()
        return {family.name: (family.type, family.documentation) for family in text_string_to_metric_families(text)}


class HttpAlone(HttpCase):
    """Each of a collector of its own."""

    def test_by_sha256_the_tag_is_that_of_the_file(self):
        serve(self, self, "archive.hash=sha256")
        for segment in self.collector.json_lines("list"):
            if segment["open"]:
                continue
            with urllib.request.urlopen(f"{self.base}/api/v1/segments/{segment['id']}", timeout=DEADLINE) as answer:
                digest = hashlib.sha256(answer.read()).hexdigest()
                self.assertEqual(answer.headers["ETag"], f'"{digest}"')
            self.assertEqual((segment["hash_kind"], segment["hash"]), ("sha256", digest))

    def test_a_restart_is_told_to_live_readers(self):
        serve(self, self)
        first = self._live()
        self.assertIn("event: overview", first)
        last_id = re.findall(r"^id: (\S+)$", first, re.M)[-1]
        self.collector.restart()
        again = self._live(**{"Last-Event-ID": last_id})
        self.assertIn('event: gap\ndata: {"lost":null', again)

    def test_a_new_reader_is_told_of_the_last_minutes(self):
        serve(self, self)
        self.collector.send(self.trace("g26-gens"), "shop", "one")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in self.collector.json_lines("list")))

        def all_stops():
            """The history has a stream's figures once a second, the overview has them when it is made."""
            heard = self._live("?kinds=history,overview")
            history, overview = (json.loads(re.search(f"^event: {kind}\ndata: (.*)$", heard, re.M).group(1))
                                 for kind in ("history", "overview"))
            stopped = {}
            for second, stream, cause, ns in history["stops"]:
                self.assertTrue(history["since"] <= second <= history["until"])
                key = history["streams"][stream]["stream"], history["causes"][cause]
                stopped[key] = stopped.get(key, 0) + ns
            return stopped and stopped == {(stream["stream"], stop["id"]): stop["total_ns"]
                                           for stream in overview["streams"] for stop in stream["stw"]}
        wait_until("the history has all that the overview has", all_stops)
        self.assertNotIn("event: history", self._live())

    def _live(self, query="", **fields):
        """Returns what a reader receives until the first overview."""
        connection = http.client.HTTPConnection(self.collector.ready["http"], timeout=DEADLINE)
        connection.request("GET", f"/api/v1/live{query}", headers=fields)
        answer, heard = connection.getresponse(), ""
        while "event: overview\n" not in heard or not heard.endswith("\n\n"):
            heard += answer.readline().decode()
        connection.close()
        return heard


class Audit(Case):
    """Each act that changes something is one line of the log, whoever's it is and whatever becomes of it."""
    ADD = {"add": "slow WHEN finding leak DO keep"}

    def setUp(self):
        super().setUp()
        self.collector = Collector(self, "listen.http=0.0.0.0:0", "http.body_bytes_max=1KiB")
        self.tracectl("certs", "reader", self.certs, "other")

    def by_socket(self):
        return UnixConnection(self.collector.ready["sock"])

    def by_tls(self, name):
        context = ssl.create_default_context(cafile=self.certs / "ca.pem")
        if name:
            context.load_cert_chain(self.certs / f"{name}.pem", self.certs / f"{name}.key")
        return http.client.HTTPSConnection("127.0.0.1", int(self.collector.ready["http"].rsplit(":", 1)[1]), context=context, timeout=DEADLINE)

    def ask(self, connection, method, path, body=None):
        """Status, and where what was begun is to be found."""
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.headers["Location"]

    def lines(self):
        """Returns the lines of the audit: act, method, path, who, from, status."""
        return [tuple(re.search(rf'{word}="?(.+?)"?(?: |$)', line)[1] for word in ("act", "method", "path", "who", "from", "status"))
                for line in self.log("collector").splitlines() if " audit: act=" in line]

    def test_each_act_is_one_line(self):
        said = []
        doors = ((self.by_socket, f"uid:{os.getuid()}", "socket", True), (lambda: self.by_tls("reader"), "tracecollect:reader/reader", "http", True),
                 (lambda: self.by_tls("agent"), "tracecollect:agent/agent", "http", False), (lambda: self.by_tls(None), None, "http", False))

        def act(name, want, method, path, body=None):
            status, location = self.ask(dial(), method, path, body)
            self.assertEqual(status, want, (method, path, who))
            said.append((name, method, path, who, door, str(status)))
            return location

        for dial, who, door, may in doors:
            rules = door == "socket"
            act("rules", 201 if rules else 403, "POST", "/api/v1/triggers", self.ADD)
            act("rules", 409 if rules else 403, "POST", "/api/v1/triggers", self.ADD)
            act("rules", 200 if rules else 403, "DELETE", "/api/v1/triggers/slow")
            act("snap", 404 if may else 403, "POST", "/api/v1/snaps", {"service": "shop"})
            job = act("verify", 202 if may else 403, "POST", "/api/v1/verify", {})
            act("verify", 204 if may else 403, "DELETE", job or "/api/v1/jobs/1")
            lease = act("lease", 201 if may else 403, "POST", "/api/v1/leases", {})
            for path in ("/api/v1/streams", lease) if may else ():
                self.assertEqual(self.ask(dial(), "GET", path)[0], 200)  # reads, and no line of it
            act("lease", 413 if may else 403, "POST", "/api/v1/leases", {"filter": {"service": "x" * 1024}})
            act("lease", 204 if may else 403, "DELETE", lease or "/api/v1/leases/1")
        lines = self.lines()
        self.assertEqual([line[:3] + line[4:] for line in lines], [line[:3] + line[4:] for line in said])
        for line, (*_, who, door, status) in zip(lines, said):
            self.assertRegex(line[3], "^127[.]0[.]0[.]1:[0-9]+$" if who is None else f"^{re.escape(who)}$")

    def test_no_line_of_what_was_done_is_left_out(self):
        connection = self.by_socket()
        for _ in range(150):
            status, lease = self.ask(connection, "POST", "/api/v1/leases", {})
            self.assertEqual((status, self.ask(connection, "DELETE", lease)[0]), (201, 204))
        self.assertEqual(len(self.lines()), 300)

    def test_what_one_reader_has_is_not_anothers(self):
        lease = self.ask(self.by_tls("reader"), "POST", "/api/v1/leases", {})[1]
        for other in (self.by_tls("other"), self.by_socket()):
            self.assertEqual(self.ask(other, "GET", lease)[0], 403)
            self.assertEqual(self.ask(other, "DELETE", lease)[0], 403)
        self.assertEqual(self.ask(self.by_tls("reader"), "GET", lease)[0], 200)


class Remote(Case):
    def get(self, collector, path, name=None):
        context = ssl.create_default_context(cafile=self.certs / "ca.pem")
        if name:
            context.load_cert_chain(self.certs / f"{name}.pem", self.certs / f"{name}.key")
        port = int(collector.ready["http"].rsplit(":", 1)[1])
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=DEADLINE)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body

    def test_metrics_are_for_everybody_where_a_key_says_so(self):
        collector = Collector(self, "listen.http=0.0.0.0:0", "http.metrics=open", f"listen.metrics=127.0.0.1:{held_port(self)}")
        self.assertEqual(self.get(collector, "/metrics")[0], 200)
        self.assertEqual(self.get(collector, "/api/v1/streams")[0], 403)
        plain = f"http://{collector.ready['metrics']}"
        with urllib.request.urlopen(f"{plain}/metrics", timeout=DEADLINE) as answer:
            self.assertIn(b"tracecollect_build_info{", answer.read())
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{plain}/api/v1/streams", timeout=DEADLINE)
        self.assertEqual(caught.exception.code, 403)

    def test_off_loopback_readers_need_their_certificate(self):
        collector = Collector(self, "listen.http=0.0.0.0:0")

        def get(path, name=None):
            return self.get(collector, path, name)

        self.assertEqual(get("/healthz"), (200, "ok\n"))
        self.assertEqual(get("/readyz"), (200, '{"ready":true}\n'))
        self.assertEqual(get("/metrics")[0], 403)
        self.assertEqual(get("/api/v1/streams", "agent")[0], 403)
        self.assertEqual(get("/api/v1/streams", "reader")[0], 200)
        self.assertIn("<!doctype html>", get("/", "reader")[1])
        self.assertEqual(collector.stop(), 0)
