# SPDX-License-Identifier: Apache-2.0
"""nginx before the collector, configured as the guide shows: it checks users' certificates, and is one reader of the collector."""
import json
import os
import re
import shutil
import unittest

from harness import SOURCE, Case, Collector, held_port, wait_until

GUIDE = SOURCE / "docs/guide/run-a-collector.md"
TRACE = "g26-gens"
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
AROUND = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
{server}
}}
"""
CLAIMS = ("X-SSL-Client-Verify: SUCCESS", "X-SSL-Client-S-DN: CN=root", "X-SSL-Client-Cert: socket", "X-Remote-User: root",
          "X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1")
RULE = '{"add": "slow WHEN finding leak DO keep"}'


@unittest.skipIf(NGINX is None, "no nginx")
class Nginx(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self, "listen.http=0.0.0.0:0", "lease.expire=1h")
        self.direct = f"https://localhost:{self.collector.ready['http'].rsplit(':', 1)[1]}"
        self.users = self.folder / "users"  # an authority that the collector does not know
        self.tracectl("certs", "init", self.users)
        self.start_nginx()

    def start_nginx(self):
        files = self.folder / "traces"
        files.mkdir()
        self.tracectl("certs", "reader", self.certs, "nginx")
        for source, name in ((self.users / "server.pem", "site.pem"), (self.users / "server.key", "site.key"),
                             (self.users / "ca.pem", "users-ca.pem"), (self.certs / "nginx.pem", "nginx.pem"),
                             (self.certs / "nginx.key", "nginx.key"), (self.certs / "ca.pem", "ca.pem")):
            shutil.copy(source, files / name)
        port = held_port(self)
        self.site = f"https://localhost:{port}"
        server = re.search(r"(?s)```nginx\n(.*?)```", GUIDE.read_text())[1]
        for ours, theirs in (("/etc/nginx/traces", files), ("listen 443", f"listen 127.0.0.1:{port}"),
                             ("https://collector.example.org:7073", self.direct)):
            self.assertIn(ours, server)
            server = server.replace(ours, str(theirs))
        (self.folder / "nginx.conf").write_text(AROUND.format(folder=self.folder, server=server))
        self.spawn("nginx", NGINX, "-p", self.folder, "-c", self.folder / "nginx.conf", "-e", "stderr")
        wait_until("nginx answers", lambda: self.curl("/healthz", expect=None).out == "ok\n")

    def command(self, path, *options, certs=True):
        """curl as a user of nginx."""
        who = ("--cert", self.users / "reader.pem", "--key", self.users / "reader.key") if certs else ()
        return ("curl", "-sS", "--cacert", self.users / "ca.pem", *who, *options, f"{self.site}{path}")

    def curl(self, path, *options, **more):
        return self.run_program(*self.command(path, *options, certs=more.pop("certs", True)), **more)

    def change(self, method, path, body=None, *options):
        """The status, and the body."""
        more = ("-H", "Content-Type: application/json", "-d", body) if body is not None else ()
        text, status = self.curl(path, "-X", method, "-w", "\n%{http_code}", *more, *options).out.rsplit("\n", 1)
        return int(status), json.loads(text) if text else None

    def background(self, name, path):
        """Runs curl in the background; its output is read later."""
        with open(self.folder / f"{name}.out", "wb") as out:
            self.spawn(name, *self.command(path, "-N"), stdout=out)
        return lambda: (self.folder / f"{name}.out").read_text()

    def metric(self, name):
        return int(re.search(rf"(?m)^tracecollect_{name} (\d+)$", self.collector.get("/metrics"))[1])

    def send(self):
        self.collector.send(self.trace(TRACE), "shop")
        wait_until("it is ordered", lambda: all(row["analysis"] == "ok" for row in self.collector.json_lines("list")))

    def test_a_user_asks_what_a_reader_may(self):
        self.send()
        streams = json.loads(self.curl("/api/v1/streams").out)["streams"]
        self.assertEqual([stream["service"] for stream in streams], ["shop"])
        said = [json.loads(line) for line in self.curl("/api/v1/report/all?top=3").out.splitlines()]
        self.assertEqual({report["service"] for report in said}, {"shop"})
        certs = self.folder / "alice"
        certs.mkdir()
        for name in ("ca.pem", "reader.pem", "reader.key"):
            shutil.copy(self.users / name, certs)
        self.assertEqual(self.tracectl("list", "--server", self.site, "--certs", certs, "--json").out,
                         self.collector.ask("list", "--json").out)

    def test_a_download_in_ranges_and_one_that_goes_on(self):
        self.send()
        whole, head, part = (self.folder / name for name in ("whole", "head", "part"))
        path = "/api/v1/segments/1"
        self.curl(path, "-f", "-o", whole)
        self.curl(path, "-f", "-o", head, "-r", "16-31")
        self.assertEqual(head.read_bytes(), whole.read_bytes()[16:32])
        part.write_bytes(whole.read_bytes()[:1000])
        self.curl(path, "-f", "-o", part, "-C", "-")
        self.assert_same_bytes(part, whole)

    def test_live_events_and_a_lease_come_as_they_are_made(self):
        live = self.background("live", "/api/v1/live?kinds=overview,generation")
        wait_until("a live event comes", lambda: "event: overview" in live())
        status, lease = self.change("POST", "/api/v1/leases", '{"filter": {"service": "shop"}}')
        self.assertEqual(status, 201, lease)
        next_events = self.background("lease", f"/api/v1/leases/{lease['id']}?wait=20s")
        wait_until("the other waits", lambda: self.metric("http_waits") == 1)
        self.collector.send(self.trace(TRACE), "shop")
        wait_until("events of the lease", lambda: '"events"' in next_events())
        wait_until("a live event", lambda: "event: generation" in live())
        self.assertEqual(self.change("DELETE", f"/api/v1/leases/{lease['id']}"), (204, None))

    def test_changes_pass_and_are_the_readers(self):
        status, job = self.change("POST", "/api/v1/verify", "{}")
        self.assertEqual(status, 202, job)
        self.assertEqual(self.change("DELETE", f"/api/v1/jobs/{job['id']}"), (204, None))
        self.assertEqual(self.change("PUT", "/api/v1/streams", "{}")[0], 405)
        self.assertRegex(self.log("collector"), r'act=verify method=POST path="/api/v1/verify" who="tracecollect:reader/nginx" from=http status=202')

    def test_a_user_without_a_certificate_is_refused_by_nginx(self):
        for claims in ((), CLAIMS):
            fields = [word for claim in claims for word in ("-H", claim)]
            said = self.curl("/api/v1/streams", *fields, certs=False).out
            self.assertIn("No required SSL certificate was sent", said)
        self.assertEqual(self.change("GET", "/api/v1/streams")[0], 200)

    def test_no_field_of_a_request_says_who_asks(self):
        fields = [word for claim in CLAIMS for word in ("-H", claim)]
        for more in ((), fields):
            status, said = self.change("POST", "/api/v1/triggers", RULE, *more)
            self.assertEqual((status, "unix socket" in said["error"]), (403, True), said)
        lines = re.findall(r"act=rules .*? who=(\S+) from=(\S+)", self.log("collector"))
        self.assertEqual(lines, [('"tracecollect:reader/nginx"', "http")] * 2)
        nobody = self.run_program("curl", "-sS", "--cacert", self.certs / "ca.pem", *fields, f"{self.direct}/api/v1/streams").out
        self.assertEqual(json.loads(nobody)["status"], 403)
