# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the collector in mid-stream: nothing acked is missing or doubled, and the stream goes on."""
import os
import socket

from harness import DEADLINE, FULL, SANITIZE, TRACECTL, Case, Collector, suites, wait_until

KILLS = 2 if SANITIZE else 5 if FULL else 3  # a sanitized collector takes seconds to start, and the stream goes on meanwhile


def stream(collector, service="kill"):
    """The status line of the one stream of a service, or None before it is known."""
    rows = [row for row in collector.json_lines("status") if row.get("service") == service]
    return rows[0] if rows else None


def has_live_books(collector):
    """The running collector proves what it has; true when that includes a living stream with something archived."""
    books = collector.json_lines("verify")[-1]
    archived = books["live_archived_batches"] > 0 or books["open_generations"] > 0
    return books["live_counted"] == 1 and archived


def next_question(door):
    """Accepts a client of an HTTP server; returns it with the first line of its request."""
    peer, _ = door.accept()
    peer.settimeout(DEADLINE)
    head = b""
    while b"\r\n\r\n" not in head:
        head += peer.recv(4096)
    return peer, head.split(b"\r\n")[0]


class Kill(Case):
    @suites("release", "asan")
    def test_a_question_whose_connection_is_cut_is_asked_again(self):
        path, error = self.folder / "http.sock", b'{"status":404,"code":"NOTFOUND","error":"asked twice"}'
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(DEADLINE)
            door.bind(str(path))
            door.listen()
            status = self.spawn("status", TRACECTL, "status", "--server", f"unix:{path}")
            for answer in (b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(error), error)):
                peer, question = next_question(door)
                self.assertEqual(question, b"GET /api/v1/streams HTTP/1.1")
                peer.sendall(answer)
                peer.close()
            self.assertEqual(status.wait(DEADLINE), 1)
        self.assertIn("asked twice", self.log("status"))

    def _feed(self, sender, pipe, data):
        left = memoryview(data)

        def has_all():
            nonlocal left
            self.assertIsNone(sender.poll(), self.log("send"))
            try:
                left = left[os.write(pipe, left):]
            except BlockingIOError:
                pass
            return not left
        wait_until("send has taken what is there", has_all)

    def test_a_paced_send_survives_kills_of_the_collector(self):
        trace = self.trace("g26-gens")
        size, growing = trace.stat().st_size, self.folder / "growing.trace"
        collector = Collector(self, "agents.heartbeat=1s")
        os.mkfifo(growing)
        writer = os.open(growing, os.O_RDWR | os.O_NONBLOCK)
        sender = self.spawn("send", *self._send(collector, growing, rate=size / (12e6 if FULL else 6e6)))
        whole, most = trace.read_bytes(), size * 9 // 10
        self._feed(sender, writer, whole[:most])  # the rest comes when all has been killed: before, the stream cannot end
        acked = 0
        for kill in range(KILLS):
            goal = size * (kill + 1) // (KILLS + 2)
            row = wait_until(f"{goal} bytes are acked",
                             lambda: (r := stream(collector)) and r["bytes"] >= goal and r)
            self.assertGreaterEqual(row["acked_seq"], acked, "an acked record is gone after a restart")
            collector.kill()
            self.assertIsNone(sender.poll(), self.log("send"))
            address = collector.ready["agents"]
            collector.start()
            self.assertEqual(collector.ready["agents"], address)
            row = wait_until("the stream is known again", lambda: stream(collector))
            self.assertGreaterEqual(row["acked_seq"], acked)
            acked = row["acked_seq"]
            if kill == 0:
                wait_until("the living stream's books are proven", lambda: has_live_books(collector))
        self._feed(sender, writer, whole[most:])
        os.close(writer)
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "kill"), trace)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)

    @suites("release", "asan")
    def test_what_is_acked_is_proven_at_once(self):
        collector = Collector(self)
        collector.send(self.trace("g26-gens"), "kill")
        proof = collector.json_lines("verify")[-1]
        self.assertEqual((proof["segments"], proof["open_runs"]), (1, 0))
        self.assertEqual(proof["fresh"], 0)
        self.assertEqual(proof["closed_streams"], 1)
        self.assertEqual(proof["produced_batches"], proof["archived_batches"])
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_the_archive_opens_again_after_a_kill_with_all_it_had(self):
        trace = self.trace("g25-mix")
        collector = Collector(self)
        collector.send(trace, "kill")
        collector.restart()
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "kill"), trace)
        collector.kill()
        for catalog in collector.state.glob("catalog.sqlite*"):
            catalog.unlink()
        self.tracectl("verify", collector.state, "--rebuild")
        collector.start()
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "kill"), trace)
        self.assertEqual(collector.stop(), 0)

    def _send(self, collector, trace, rate):
        return (TRACECTL, "send", trace, "--to", collector.ready["agents"], "--certs", self.certs, "--service",
                "kill", "--instance", "one", "--rate", f"{rate:.6f}", "--no-progress")
