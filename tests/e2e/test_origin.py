# SPDX-License-Identifier: Apache-2.0
"""What a page elsewhere can make a real browser do to a collector of its user: nothing.

The collector is reached at its loopback port, which only reads, and through a forwarder to its unix socket, as somebody may set up who should not: there
everything is answered, so that only what a browser says about a page stands in the page's way.
"""
import http.server
import json
import re
import socket
import threading
import urllib.request

import browser
from harness import DEADLINE, Case, Collector, wait_until

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


class Origin(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self)
        self.forwarder = self._forward(self._dial_socket)
        elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        self.addCleanup(elsewhere.server_close)
        self.addCleanup(elsewhere.shutdown)
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        self.elsewhere = elsewhere.server_port
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

    def _audit(self):
        return [line for line in self.log("collector").splitlines() if " audit: " in line]

    def _refused(self):
        """All of them: the audit has no more lines of one peer than the log of anything else."""
        return int(re.search(r"(?m)^tracecollect_http_refused_total (\d+)$", self.collector.get("/metrics")).group(1))

    def _page(self, url):
        page = browser.Page(self)
        page.open(url)
        return page

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
