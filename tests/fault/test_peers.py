# SPDX-License-Identifier: Apache-2.0
"""Every listener against every kind of bad peer, a table: meanwhile another agent is acked and /healthz answers, and afterwards
nothing of them is left."""
import http.client
import itertools
import json
import resource
import socket
import ssl
import struct
import time

from harness import DEADLINE, SANITIZE, Collector, patient, wait_until
from faults import FULL, full
from test_attacks import KEPT_FREE, MIB, READING, AttackCase, Watch

ATTACKER = "127.0.0.3"  # a source of its own, but for HTTP, where what watches has the same one
P99_MS = full(DEADLINE * 1000, 500)
GREETING = b"\0SP\0\0\x21\0\0"  # of a subscriber of nng's
GET = b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /api/v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
HEAVY = b"GET /api/v1/report/all?top=1000 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/v1/segments?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
SHORTAGE_S = full(2, 40)  # longer than the 30 s after which it once ended the daemon
LOOKS = full(2, 50)  # at its health, ten a second, while peers are there


class Listener:
    """A listener, and how a well-behaved client of it begins."""

    def __init__(self, case, name, address, beginning, source=ATTACKER):
        self.case, self.name, self.beginning, self.source = case, name, beginning, source
        self.path = address.removeprefix("ipc://") if address.startswith(("/", "ipc://")) else None
        self.host = None if self.path else ("127.0.0.1", int(address.rsplit(":", 1)[1]))

    def open(self):
        if self.path:
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(self.path)
        else:
            peer = socket.create_connection(self.host, timeout=DEADLINE, source_address=(self.source, 0))
        self.case.peers.append(peer)
        return peer

    def each(self, count, at_once=100):
        """The numbers of so many peers. Some rows let fewer come at once."""
        return range(count)

    def begun(self, part=1.0):
        """A peer that has said so much of what it has to."""
        peer = self.open()
        self.say(peer, self.beginning[:int(len(self.beginning) * part)])
        return peer

    def say(self, peer, what):
        try:
            peer.send(what)
        except OSError:
            pass  # it was ended

    def greedy(self):
        """A client that was accepted, reads everything and sends nothing more."""
        return self.begun()


class Tls(Listener):
    def __init__(self, case, name, address, role, alpn, then=b""):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.load_verify_locations(case.certs / "ca.pem")
        self.context.load_cert_chain(case.certs / f"{role}.pem", case.certs / f"{role}.key")
        if alpn:
            self.context.set_alpn_protocols([alpn])
        self.then = then
        out = ssl.MemoryBIO()
        hello = self.context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
        try:
            hello.do_handshake()
        except ssl.SSLWantReadError:
            pass
        super().__init__(case, name, address, out.read())

    def greedy(self):
        peer = self.open()
        try:
            tls = self.context.wrap_socket(peer, server_hostname="localhost")
            self.case.peers.append(tls)
            tls.send(self.then)
        except OSError:
            pass


class Http(Listener):
    """changes: whether it answers what changes something."""

    def __init__(self, *args, changes):
        super().__init__(*args)
        self.changes = changes
        self.parked_max = 256 if changes else 32  # http.requests_max, http.owner_live_max

    def ask(self, peer, method, path, body=None):
        """Status and message."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = peer
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def each(self, count, at_once=100):
        """To a newcomer the one gives way that has been without a request the longest. What watches comes by this door, too: it has the time to
        ask while no more than at_once come."""
        watch = self.case.watch
        for n in range(count):
            yield n
            if n % at_once == at_once - 1:
                looks = len(watch.memory)
                wait_until("it was looked at", lambda: len(watch.memory) > looks or watch.fault is not None)

    def greedy(self):
        peer = self.open()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.setblocking(False)
        self.say(peer, HEAVY * 20)


def has_ended(peer):
    peer.setblocking(False)
    try:
        while peer.recv(4096):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


# --- what peers do: begins it; what is returned goes on until the row is over

def waiting(listener):
    """Silent, slow, and half open: until each has been ended."""
    peers, drips = [], []
    for n in listener.each(full(30, 300)):
        peers.append(listener.begun((0, 0.5, 0)[n % 3]))
        if n % 3 == 2:
            drips.append((peers[-1], iter(listener.beginning[:-1])))

    def all_ended():
        for peer, rest in drips:
            listener.say(peer, bytes(itertools.islice(rest, 1)))
        return all(map(has_ended, peers))
    return all_ended


def gone(listener):
    """They say it all and leave, every other one with a reset."""
    for n in listener.each(full(40, 1000)):
        peer = listener.begun()
        if n % 2 == 0:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()


def greedy(listener):
    for _ in listener.each(full(30, 300)):
        listener.greedy()


def many(listener):
    for _ in listener.each(full(300, 10_000)):
        listener.open()


def out_of_descriptors(listener):
    """They take all that they may, READING at least, which leaves what the others need."""
    case = listener.case
    case.limit(resource.RLIMIT_NOFILE, case.descriptors(case.collector) + KEPT_FREE + 2 * READING)
    for _ in listener.each(full(150, 1000), at_once=READING // 2):
        listener.open()


def out_of_memory(listener):
    case = listener.case
    case.limit(resource.RLIMIT_AS, case.address_space() + 64 * 1024)
    for _ in listener.each(full(50, 300)):
        listener.begun()
    case.unlimit()


def slow_body(listener):
    """A head that may have one, and a body a byte at a time: until each has been ended."""
    peers, body = [], b" " * 60_000
    for _ in listener.each(full(30, 300)):
        peers.append(listener.open())
        listener.say(peers[-1], POST % len(body))
    rest = iter(body)

    def all_ended():
        byte = bytes(itertools.islice(rest, 1))
        for peer in peers:
            listener.say(peer, byte)
        return all(map(has_ended, peers))
    return all_ended


def parked(listener):
    """Questions that wait, hundreds of them, each in a place of its own: of leases that no event is for and of a job, or where those are not
    answered live events of no kind."""
    n = full(30, 300)
    if listener.changes:
        job = listener.ask(listener.open(), "POST", "/api/v1/verify", "{}")[1]["id"]
    for i in listener.each(n):
        peer = listener.open()
        if not listener.changes:
            path = "/api/v1/live?kinds=none"
        elif i % 4 == 0:
            path = f"/api/v1/jobs/{job}?wait=20s"
        else:
            status, said = listener.ask(peer, "POST", "/api/v1/leases", '{"filter": {"service": "nobody"}}')
            listener.case.assertIn(status, (201, 503), said)
            path = f"/api/v1/leases/{said.get('id')}?wait=20s"
        listener.say(peer, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    places = "http_waits" if listener.changes else "http_connections"
    wait_until("they wait", lambda: listener.case.metric(listener.case.collector, places) >= min(n, listener.parked_max) // 2)


ROWS = (waiting, gone, greedy, many, out_of_descriptors, out_of_memory)
HTTP_ROWS = (*ROWS, slow_body, parked)


class Peers(AttackCase):
    def setUp(self):
        super().setUp()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536, hard))
        self.peers = []
        self.addCleanup(self.leave)
        self.collector = self.start("listen.feed=ipc:// tls+tcp://127.0.0.1:0", *(f"{key}_timeout={patient(1)}" for key in (
            "agents.handshake", "readers.handshake", "http.request", "http.idle", "http.stall")), "lease.max=1000", "lease.owner_max=1000")
        self.limits = {}
        ready = self.collector.ready
        self.listeners = {
            "agents": Tls(self, "agents", ready["agents"], "agent", "tracecollect/1"),
            "feed": Tls(self, "feed", ready["feed.2"], "reader", None, GREETING),
            "unix": Listener(self, "unix", ready["feed"], GREETING),
            "http": Http(self, "http", ready["http"], GET, "127.0.0.1", changes=False),
            "sock": Http(self, "sock", ready["sock"], GET, changes=True),
        }
        self.pace(self.collector)  # what is opened once is open
        self.get(self.collector, "/metrics")

    def pace(self, collector, generations=full(10, 100)):
        return super().pace(collector, generations)

    def leave(self):
        for peer in self.peers:
            peer.close()
        self.peers.clear()

    def address_space(self):
        with open(f"/proc/{self.collector.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()

    def limit(self, what, most):
        before = resource.prlimit(self.collector.process.pid, what, (most, resource.prlimit(self.collector.process.pid, what)[1]))
        self.limits.setdefault(what, before)

    def unlimit(self):
        for what, before in self.limits.items():
            resource.prlimit(self.collector.process.pid, what, before)
        self.limits.clear()

    def play(self, name, row):
        listener, before, well = self.listeners[name], self.descriptors(self.collector), row is not out_of_memory
        with Watch(self, self.collector, well=well) as watch:
            self.watch = watch
            go_on = row(listener)
            if go_on is not None and (FULL or name != "unix"):  # where nng has 10 s, not to be changed
                wait_until("all were ended", go_on)
            wait_until("it was looked at", lambda: len(watch.memory) > LOOKS or watch.fault is not None)
        said = watch.expect(full(64, 256) * MIB, P99_MS if well else DEADLINE * 1000)
        self.unlimit()
        self.leave()
        wait_until("nothing of them is left", lambda: self.descriptors(self.collector) <= before + READING)
        self.assertIsNone(self.collector.process.poll())
        print(f"peers: {row.__name__} at {name}: {said}", flush=True)

    def play_all(self, name, rows=ROWS):
        for row in rows:
            with self.subTest(row.__name__):
                try:
                    self.play(name, row)
                finally:  # of a row that failed the next one has nothing
                    self.unlimit()
                    self.leave()
        self.expect_proven(self.collector)

    def test_agents(self):
        self.play_all("agents")

    def test_feed(self):
        self.play_all("feed")

    def test_unix_socket(self):
        self.play_all("unix")

    def test_http(self):
        self.play_all("http", HTTP_ROWS)

    def test_http_socket(self):
        self.play_all("sock", HTTP_ROWS)

    def test_a_shortage_of_descriptors_is_waited_for(self):
        self.limit(resource.RLIMIT_NOFILE, self.descriptors(self.collector))
        began = time.monotonic()
        with self.subTest("none are left"):
            wait_until("time passes", lambda: time.monotonic() - began >= SHORTAGE_S or self.collector.process.poll() is not None)
        self.assertIsNone(self.collector.process.poll(), self.log("collector"))
        self.unlimit()
        self.pace(self.collector)
        self.expect_proven(self.collector)
