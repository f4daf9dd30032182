# SPDX-License-Identifier: Apache-2.0
"""A page from elsewhere cannot make a real browser do anything to the collector of its user.

The collector is reached at its loopback port, which only reads, and through a forwarder to its unix socket, as somebody may set up who should not: there
everything is answered, so that only what a browser says about a page stands in the page's way. And over TLS, by a browser that shows its user's
certificate to whoever asks, whatever page it asks for.
"""
import http.server
import json
import re
import socket
import ssl
import threading
import urllib.request

import browser
from harness import DEADLINE, Case, Collector, https, wait_until

RULE = "slow WHEN finding leak DO keep"
ELSEWHERE = "evil.example"


def setUpModule():
    browser.FLAGS += (f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",)
    browser.for_module()


class Quiet(http.server.BaseHTTPRequestHandler):
    """An empty page at every path."""

    def do_GET(self):
        body = b"<!doctype html><title>elsewhere</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve_elsewhere(case, certs=None):
    """Such a server; answers its port. certs: over TLS."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    if certs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certs / "server.pem", certs / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    case.addCleanup(server.server_close)
    case.addCleanup(server.shutdown)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def pump(source, sink):
    try:
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def forward(listener, dial):
    """Each connection goes on to where dial() leads."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = dial()
        for pair in ((client, server), (server, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


# Every way of a script and of a form; each answers what the script can see of it.
ATTACKS = """(async (base) => {
  const json = {'Content-Type': 'application/json'}, body = JSON.stringify({add: %s});
  const ways = {
    simple: [base + '/api/v1/triggers', {method: 'POST', body, mode: 'no-cors'}],
    typeless: [base + '/api/v1/triggers', {method: 'POST', body: new Blob([body]), mode: 'no-cors'}],
    urlencoded: [base + '/api/v1/triggers', {method: 'POST', body: new URLSearchParams({add: 'x'}), mode: 'no-cors'}],
    multipart: [base + '/api/v1/triggers', {method: 'POST', body: (() => { const f = new FormData(); f.append('add', 'x'); return f; })(), mode: 'no-cors'}],
    preflight: [base + '/api/v1/triggers', {method: 'POST', body, headers: json}],
    credentials: [base + '/api/v1/triggers', {method: 'POST', body, headers: json, credentials: 'include'}],
    put: [base + '/api/v1/triggers', {method: 'PUT', body, headers: json}],
    remove: [base + '/api/v1/triggers/kept', {method: 'DELETE'}],
    read: [base + '/api/v1/triggers', {}],
  };
  const seen = {};
  for (const [name, [url, how]] of Object.entries(ways))
    seen[name] = await fetch(url, how).then((a) => a.type + ' ' + a.status, () => 'blocked');
  seen.beacon = navigator.sendBeacon(base + '/api/v1/triggers', new Blob([body], {type: 'text/plain'}));
  return seen;
})(%s)"""

WAYS_THAT_ARRIVE = 5  # simple, typeless, urlencoded, multipart, and the form; the beacon when the browser likes; what is asked first with OPTIONS does not

# A form sends its user there: the answer is the frame's, and of another origin.
FORM = """((url) => new Promise((done) => {
  const frame = document.createElement('iframe'), form = document.createElement('form'), field = document.createElement('input');
  frame.name = form.target = url; form.method = 'POST'; form.enctype = 'text/plain'; form.action = url;
  field.name = '{"add": "x WHEN finding leak DO keep", "ignored": "'; field.value = '"}';
  form.append(field); document.body.append(frame, form);
  frame.onload = () => done(true);
  form.submit();
}))(%s)"""


class OriginCase(Case):
    def _audit(self):
        return [line for line in self.log("collector").splitlines() if " audit: act=" in line]

    def _refused(self):
        """All of them: the audit has no more lines of one peer than the log of anything else."""
        return self._metric("http_refused_total")

    def _metric(self, name):
        return int(re.search(rf"(?m)^tracecollect_{name} (\d+)$", self.collector.get("/metrics")).group(1))

    def _page(self, url):
        page = browser.Page(self)
        page.open(url)
        return page


TEXT = "document.body?.innerText ?? ''"  # of the page, as its user sees it


class Origin(OriginCase):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self)
        self.forwarder = self._forward(self._dial_socket)
        self.elsewhere = serve_elsewhere(self)
        self._change("POST", "/api/v1/triggers", {"add": RULE.replace("slow", "kept")})

    def _change(self, method, path, body=None):
        """As a user at the socket."""
        words = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body else []
        return self.run_program("curl", "-sS", "--fail-with-body", "-X", method, "--unix-socket", self.collector.ready["sock"],
                                *words, f"http://localhost{path}").out

    def _dial_socket(self):
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.collector.ready["sock"])
        return server

    def _forward(self, dial):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=forward, args=(listener, dial), daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def _rules(self):
        with urllib.request.urlopen(f"http://{self.collector.ready['http']}/api/v1/triggers", timeout=DEADLINE) as answer:
            return [rule["name"] for rule in json.loads(answer.read())["rules"]]

    def test_a_page_elsewhere_changes_and_sees_nothing(self):
        before, refused = len(self._audit()), self._refused()
        for name in ("127.0.0.1", "localhost", ELSEWHERE):
            page = self._page(f"http://{name}:{self.elsewhere}/")
            for base in (f"http://{self.collector.ready['http']}", f"http://{self.forwarder}"):
                with self.subTest(page=name, base=base):
                    seen = page.ask(ATTACKS % (json.dumps(RULE), json.dumps(base)))
                    for way in ("preflight", "credentials", "put", "remove", "read"):
                        self.assertEqual(seen[way], "blocked", seen)
                    self.assertNotIn("200", str(seen))
                    self.assertNotIn("201", str(seen))
                    page.ask(FORM % json.dumps(base + "/api/v1/triggers"))
                    refused += WAYS_THAT_ARRIVE
                    self.assertGreaterEqual(self._refused(), refused)
            page.close()
        self.assertEqual(self._rules(), ["kept"])
        refusals = self._audit()[before:]
        self.assertTrue(all(" status=403 " in line for line in refusals), refusals)
        self.assertTrue({"from=http", "from=socket"} <= {word for line in refusals for word in line.split()}, refusals)

    def test_a_name_of_its_own_for_our_address_does_not_help(self):
        def elsewhere():
            return socket.create_connection(("127.0.0.1", self.elsewhere))

        def plain():
            return socket.create_connection(self.collector.ready["http"].split(":"))

        for ours in (plain, self._dial_socket):
            leads = [elsewhere]
            at = self._forward(lambda leads=leads: leads[0]())
            page = self._page(f"http://{ELSEWHERE}:{at.rsplit(':', 1)[1]}/")
            wait_until("the page is there", lambda page=page: page.ask("document.title") == "elsewhere")
            leads[0] = ours  # as if the name had another address now
            for way, how in (("/api/v1/streams", "{}"), ("/api/v1/triggers/kept", "{method: 'DELETE'}"),
                             ("/api/v1/triggers", "{method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}}")):
                self.assertEqual(page.ask(f"fetch('{way}', {how}).then((a) => a.status)"), 421)
            page.close()
        self.assertEqual(self._rules(), ["kept"])

    def test_our_own_page_may_where_its_user_may(self):
        page = self._page(f"http://{self.forwarder}/archive")
        add = f"{{method: 'POST', body: JSON.stringify({{add: {json.dumps(RULE)}}}), headers: {{'Content-Type': 'application/json'}}}}"
        self.assertEqual(page.ask(f"fetch('/api/v1/triggers', {add}).then((a) => a.status)"), 201)
        self.assertEqual(self._rules(), ["kept", "slow"])
        self.assertEqual(page.ask("fetch('/api/v1/triggers/slow', {method: 'DELETE'}).then((a) => a.status)"), 200)
        page.open(f"http://{self.collector.ready['http']}/archive")
        self.assertEqual(page.ask(f"fetch('/api/v1/triggers', {add}).then((a) => a.status)"), 403)
        page.close()
        self.assertEqual(self._rules(), ["kept"])
        done = [line for line in self._audit() if 'status=201' in line or 'status=200' in line]
        self.assertRegex(done[0], r'act=rules method=POST path="/api/v1/triggers" who="uid:\d+" from=socket status=201 what="kept WHEN')
        self.assertRegex(done[-1], r'act=rules method=DELETE path="/api/v1/triggers/slow" who="uid:\d+" from=socket status=200 what="slow"')


# Tries what a reader's certificate may change, and jobs that it has begun: with the certificate, in each way that a browser allows without
# asking, and in the one that it asks for.
ATTACKS_WITH_CERTIFICATE = """(async (base, lease, job) => {
  const how = (type) => ({method: 'POST', mode: 'no-cors', credentials: 'include', body: new Blob(['{}'], {type})});
  const asked = {credentials: 'include', headers: {'Content-Type': 'application/json'}}, read = {credentials: 'include'};
  const seen = {};
  const look = async (name, url, with_) => seen[name] = await fetch(base + url, with_).then((a) => a.type + ' ' + a.status, () => 'blocked');
  for (const path of ['leases', 'verify', 'snaps', 'triggers']) {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''])
      await look(`${path} ${type}`, `/api/v1/${path}`, how(type));
    await look(`${path} asked`, `/api/v1/${path}`, {...asked, method: 'POST', body: '{}'});
    await look(`${path} put`, `/api/v1/${path}`, {...asked, method: 'PUT', body: '{}'});
  }
  await look('end lease', lease, {...read, method: 'DELETE'});
  await look('end job', job, {...read, method: 'DELETE'});
  for (const mode of ['cors', 'no-cors'])
    for (const path of [lease + '?after=0', job, '/api/v1/streams', '/metrics', '/archive']) await look(`${mode} ${path}`, path, {...read, mode});
  for (const tag of ['script', 'img', 'iframe'])
    seen[tag] = await new Promise((done) => {
      const element = document.createElement(tag);
      element.onload = () => done(tag === 'iframe' ? element.contentDocument === null ? 'blocked' : 'open' : 'open');
      element.onerror = () => done('blocked');
      element.src = base + '/api/v1/streams';
      document.body.append(element);
    });
  return seen;
})(%s)"""

SIMPLE_WAYS = 4 * 4  # paths and types: they arrive without the browser having asked first


class Certificates(OriginCase):
    """Over TLS: whoever's certificate is in the browser, which shows it by itself."""

    def setUp(self):
        super().setUp()
        browser.need_certificates(self)
        self.collector = Collector(self, "listen.http=0.0.0.0:0", "lease.expire=1h", "http.job_expire=1h")
        self.base = https(self.collector)
        self.addCleanup(browser.Browser.end)

    def _browse_as(self, role):
        browser.Browser.end()
        pack = self._pack_of(role) if role else ()
        browser.Browser.furnish = lambda folder: browser.trust(folder, self.certs / "ca.pem", *pack)
        self.addCleanup(setattr, browser.Browser, "furnish", None)

    def _pack_of(self, role):
        """Returns a file that a browser imports, and its password."""
        pack = self.certs / f"{role}.p12"
        if role == "reader":
            made = self.tracectl("certs", "reader", self.certs, "reader", "--p12", "--json").out
            return pack, json.loads(made)["password"]
        self.run_program("openssl", "pkcs12", "-export", "-in", self.certs / f"{role}.pem", "-inkey", self.certs / f"{role}.key", "-out", pack, "-passout", "pass:")
        return pack, ""

    def _post(self, page, path, body):
        """By a page of the collector's: what it hears."""
        how = f"{{method: 'POST', body: {json.dumps(json.dumps(body))}, headers: {{'Content-Type': 'application/json'}}}}"
        return page.ask(f"fetch('{path}', {how}).then(async (a) => [a.status, a.headers.get('Location'), await a.text()])")

    def test_with_a_readers_certificate_the_page_is_there(self):
        self.collector.send(self.trace("g26-gens"), "shop")
        self._browse_as("reader")
        page = self._page(self.base + "/")
        wait_until("the stream is shown", lambda: "shop" in page.ask(TEXT))
        page.open(self.base + "/archive")
        wait_until("the segments are listed", lambda: page.ask("document.querySelectorAll('tbody tr').length") > 0)
        self.assertEqual(page.complaints, [])
        page.close()

    def test_without_one_it_is_refused_and_says_why(self):
        for role, words in ((None, "here: no certificate"), ("agent", "here: tracecollect:agent/agent")):
            with self.subTest(role=role):
                self._browse_as(role)
                page = self._page(self.base + "/")
                said = json.loads(wait_until("it is told", lambda: page.ask(TEXT)))
                self.assertEqual((said["status"], said["error"]), (403, f"a reader's certificate is needed; {words}"))
                page.open(self.base + "/healthz")
                wait_until("it hears the state", lambda: page.ask(TEXT).strip() == "ok")
                page.close()

    def test_a_page_elsewhere_has_nothing_of_the_certificate(self):
        self._browse_as("reader")
        ours = self._page(self.base + "/archive")
        (opened, lease, _), (begun, job, _) = (self._post(ours, path, {}) for path in ("/api/v1/leases", "/api/v1/verify"))
        self.assertEqual((opened, begun), (201, 202))
        self.assertEqual(self._post(ours, "/api/v1/snaps", {"service": "shop"})[0], 404)  # it may, and there is no agent
        self.assertEqual(self._post(ours, "/api/v1/triggers", {"add": RULE})[0], 403)  # not with any certificate
        before, refused = len(self._audit()), self._refused()
        for elsewhere in (f"https://127.0.0.1:{serve_elsewhere(self, self.certs)}", f"http://localhost:{serve_elsewhere(self)}",
                          f"http://{ELSEWHERE}:{serve_elsewhere(self)}"):
            with self.subTest(elsewhere=elsewhere):
                page = self._page(elsewhere)
                seen = page.ask(ATTACKS_WITH_CERTIFICATE % ", ".join(map(json.dumps, (self.base, lease, job))))
                refused += SIMPLE_WAYS
                self.assertGreaterEqual(self._refused(), refused)
                self.assertEqual({way: said for way, said in seen.items() if said != "blocked"}, {})
                page.ask(FORM % json.dumps(self.base + "/api/v1/leases"))
                refused += 1
                self.assertGreaterEqual(self._refused(), refused)
                page.close()
        refusals = self._audit()[before:]
        self.assertTrue(all(" status=403 " in line for line in refusals), refusals)
        self.assertTrue(any('who="tracecollect:reader/reader" from=http' in line for line in refusals), refusals)  # the browser did show it
        self.assertEqual((self._metric("leases"), self._metric("leases_opened_total")), (1, 1))
        for path in (lease, job):
            self.assertEqual(ours.ask(f"fetch('{path}').then((a) => a.status)"), 200)
        self.assertEqual(json.loads(self.collector.get("/api/v1/triggers"))["rules"], [])
        ours.close()
