# SPDX-License-Identifier: Apache-2.0
"""The live feed as subscribers in Python and Go see it, with the programs of examples/."""
import functools
import json
import os
import re
import shlex
import signal
import socket
import ssl
import struct
import subprocess
import sys
import urllib.request

from harness import BUILD, DEADLINE, FULL, SOURCE, TRACECTL, Case, Collector, local_go, suites, wait_until

PACKAGES = SOURCE / "build/python"
PYTHON_SUBSCRIBER = SOURCE / "examples/subscriber-python/subscribe.py"
GO_SUBSCRIBER = SOURCE / "examples/subscriber-go"
DESCRIPTION = BUILD / "proto/feed.desc"


def python_environment():
    return {**os.environ, "PYTHONPATH": str(PACKAGES), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


@functools.cache
def has_packages():
    return subprocess.run([sys.executable, "-c", "import pynng, google.protobuf"], env=python_environment(),
                          capture_output=True).returncode == 0


class Feed(Case):
    go_program = None  # for all cases of the run

    def subscribe(self, collector, *args, name="subscriber"):
        """Starts the Python subscriber and waits until the collector counts it."""
        if not has_packages():
            if os.environ.get("CI"):
                self.fail(f"no pynng and protobuf in {PACKAGES}: tools/deps.sh fetches them")
            self.skipTest(f"no pynng and protobuf in {PACKAGES}")
        before = self.subscribers_so_far(collector)
        process = self.spawn(name, sys.executable, PYTHON_SUBSCRIBER, collector.to, *args, "--messages", DESCRIPTION,
                             env=python_environment())
        self.await_subscriber(collector, before)
        return process

    def go_subscriber(self):
        """The example's program, by a Go that has the module it needs."""
        if Feed.go_program is None:
            Feed.go_program = self._build_go_subscriber()
        return Feed.go_program

    def _build_go_subscriber(self):
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        done = subprocess.run([go.command, "mod", "download"], cwd=GO_SUBSCRIBER, env=go.environment, capture_output=True)
        if done.returncode != 0 and not os.environ.get("CI"):
            self.skipTest("google.golang.org/protobuf cannot be fetched")
        return go.program(self, GO_SUBSCRIBER)

    def subscribe_in_go(self, collector, *args, name="subscriber"):
        program = self.go_subscriber()
        before = self.subscribers_so_far(collector)
        process = self.spawn(name, program, "-server", collector.to, *args, "-messages", DESCRIPTION)
        self.await_subscriber(collector, before)
        return process

    def metric(self, collector, name):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics", timeout=DEADLINE) as answer:
            return int(re.search(rf"^tracecollect_{name} (\d+)$", answer.read().decode(), re.M)[1])

    def messages(self, topic, name="subscriber"):
        """Returns the messages of a topic that the Go subscriber has printed."""
        lines = [line.split(" ", 1) for line in self.log(name).splitlines(keepends=True) if line.endswith("\n")]
        return [json.loads(text) for name, text in lines if name == topic]

    def subscribers_so_far(self, collector):
        return self.metric(collector, "feed_subscriptions_total")

    def await_subscriber(self, collector, before):
        wait_until("the subscriber is there", lambda: self.subscribers_so_far(collector) > before)

    def await_line(self, text, name="subscriber"):
        wait_until(f"{name} prints {text}", lambda: text in self.log(name))
        return next(line for line in self.log(name).splitlines() if text in line)


class Python(Feed):
    @suites("release", "asan")
    def test_a_trace_is_heard_from_begin_to_end(self):
        collector = Collector(self)
        self.subscribe(collector, "shop/one/")
        collector.send(self.trace("g26-annot"), "shop")
        collector.send(self.trace("g26-annot"), "shopping")
        self.await_line("shop/one/report/stw window all")
        log = self.log("subscriber")
        self.assertNotIn("shopping", log, "the filter is by the first bytes of the topic")
        self.assertNotIn(": lost ", log)
        self.await_line("GENERATION_ARCHIVED 1..1")  # whenever the disk has it
        marks = ["GENERATION_BEGIN 1..1", "shop/one/event/tasks /task/begin", "GENERATION_END 1..1",
                 "shop/one/report/syscall window 10s"]
        places = [log.index(mark) for mark in marks]
        self.assertEqual(places, sorted(places), log)

    @suites("release")
    def test_figures_and_tables_of_each_kind_are_printed(self):
        collector = Collector(self)
        self.subscribe(collector, "shop/one/report/", "--table", "by_stack")
        collector.send(self.trace("g26-annot"), "shop")
        with urllib.request.urlopen(f"http://{collector.ready['http']}/api/v1/reports", timeout=DEADLINE) as answer:
            schemas = json.loads(answer.read())["reports"]
        for schema in schemas:
            names = [field["name"] for field in schema["figures"]]
            line = self.await_line(f"shop/one/report/{schema['name']} window all")
            for name in names:
                self.assertIn(f"{name} ", line)
        self.await_line("    stack ")

    @suites("release")
    def test_n_messages_end_it(self):
        collector = Collector(self)
        subscriber = self.subscribe(collector, "shop/one/generation", "-n", "2")
        collector.send(self.trace("g26-annot"), "shop")
        self.assertEqual(subscriber.wait(DEADLINE), 0)

    def test_over_tls_with_a_readers_certificate(self):
        collector = Collector(self, "listen.feed=tls+tcp://127.0.0.1:0")
        self.subscribe(collector, "shop/", "--certs", self.certs)
        collector.send(self.trace("g26-annot"), "shop")
        self.await_line("GENERATION_END 1..1")

    @suites("release", "asan")
    def test_a_restarted_collector_counts_anew_which_is_no_loss(self):
        collector = Collector(self)
        self.subscribe(collector, "shop/one/generation")
        trace = self.trace("g26-gens")
        collector.send(trace, "shop")
        self.await_line("GENERATION_END 26..26")
        collector.restart()
        wait_until("somebody dialled", lambda: self.subscribers_so_far(collector) > 0)

        def is_heard():
            """Sends again: the first connection may have been the listener's own check that it
            works."""
            collector.send(trace, "shop")
            return self.log("subscriber").count("GENERATION_END 26..26") >= 2
        wait_until("the second run is heard", is_heard)
        self.assertNotIn(": lost ", self.log("subscriber"))

    @suites("release", "asan")
    def test_a_broken_generation_is_told_with_its_reason(self):
        collector = Collector(self)
        self.subscribe(collector)
        broken = self.folder / "broken.trace"
        whole = bytearray(self.trace("g26-annot").read_bytes())
        whole[len(whole) // 2:len(whole) // 2 + 64] = b"\xff" * 64
        broken.write_bytes(whole)
        collector.send(broken, "shop")
        self.assertRegex(self.await_line("GENERATION_BROKEN"), r"GENERATION_BROKEN \d+\.\.\d+ \S+")


class Alerts(Feed):
    @suites("release", "asan")
    def test_an_alert_has_the_stack_and_a_line_that_fetches_its_part_of_the_trace(self):
        collector = Collector(self, "alert.stw=1us", "alert.syscall_blocked=1us", "syscall.blocked_after=1us",
                              "alert.every=0")
        self.subscribe(collector, "shop/one/alert")
        collector.send(self.trace("g26-gens"), "shop")
        self.await_line("world stopped for")
        self.await_line("system call block")
        wait_until("it prints a stack", lambda: re.search(r"(?m)^    runtime\.\S+ \S+:\d+\n", self.log("subscriber")))
        fetch = wait_until("it prints a line that fetches", lambda: re.search(r"(?m)^  (tracectl fetch .*)\n", self.log("subscriber")))
        words = shlex.split(fetch[1])
        self.assertLess(words.index("--since"), words.index("--until"))
        self.run_program(TRACECTL, *words[1:], "--server", collector.to, "--certs", self.certs, cwd=self.folder)
        done = self.tracectl("check", self.folder / words[words.index("-o") + 1])
        self.assertIn(": ok: ", done.out)
        self.assertRegex(done.out, r"[123] generations")

    @suites("release")
    def test_without_thresholds_there_is_none(self):
        collector = Collector(self)
        self.subscribe(collector)
        collector.send(self.trace("g26-gens"), "shop")
        self.await_line("GENERATION_END 26..26")
        self.assertNotIn("/alert ", self.log("subscriber"))
        self.assertEqual(self.metric(collector, "alerts_total"), 0)


class GoSubscriber(Feed):

    @suites("release")
    def test_the_last_report_has_the_figures_of_the_file(self):
        collector = Collector(self)
        self.subscribe_in_go(collector)
        trace = self.trace("g26-gens")
        collector.send(trace, "shop")

        def last():
            found = [report for message in self.messages("shop/one/report/syscall") for report in message["reports"]
                     if report["window"] == "all" and report["lastGen"] == "26"]
            return found[0] if found else None
        live = wait_until("the last report", last)
        file = json.loads(self.tracectl("report", "syscall", trace, "--json").out.splitlines()[0])
        figures = {field["name"]: value for field, value in zip(live["report"]["schema"]["figures"], live["report"]["figures"])}
        self.assertEqual(int(figures["calls"]["distribution"]["count"]), file["figures"]["calls"]["count"])
        self.assertEqual(int(figures["calls"]["distribution"]["totalNs"]), file["figures"]["calls"]["total_ns"])
        self.assertNotIn(": lost ", self.log("subscriber"))

    @suites("release")
    def test_over_tls_with_a_readers_certificate(self):
        collector = Collector(self, "listen.feed=tls+tcp://127.0.0.1:0")
        self.subscribe_in_go(collector, "-certs", self.certs, "-topic", "shop/one/generation")
        collector.send(self.trace("g26-annot"), "shop")
        self.await_line("GENERATION_END")

    @suites("release", "asan")
    def test_an_agents_certificate_reads_nothing(self):
        collector = Collector(self, "listen.feed=tls+tcp://127.0.0.1:0")
        for kind in ("pem", "key"):
            (self.certs / f"reader.{kind}").write_bytes((self.certs / f"agent.{kind}").read_bytes())
        program = self.spawn("agent", self.go_subscriber(), "-server", collector.to, "-certs", self.certs, "-messages", DESCRIPTION)
        wait_until("it is refused, or has subscribed", lambda: program.poll() is not None or self.subscribers_so_far(collector) > 0)
        self.assertEqual(self.subscribers_so_far(collector), 0, "an agent's certificate reads the feed")
        self.assertEqual(program.poll(), 1)
        self.assertIn("bad certificate", self.log("agent"))

    @suites("release", "asan")
    def test_messages_name_the_version_of_the_trace(self):
        collector = Collector(self)
        self.subscribe_in_go(collector, name="subscriber")
        future = self.folder / "future.trace"
        future.write_bytes(self.trace("g26-labels").read_bytes().replace(b"go 1.26 trace", b"go 1.99 trace", 1))
        for trace, service, version, last in ((self.trace("g26-annot"), "new", 26, "END"), (self.trace("g22-mix"), "old", 22, "END"),
                                              (future, "future", 99, "BROKEN")):
            collector.send(trace, service)
            self.await_line(f"{service}/one/generation")

            def ended():
                return [message for message in self.messages(f"{service}/one/generation")
                        for note in message["generations"] if note["state"] == f"GENERATION_{last}"]
            wait_until(f"{service} ends", ended)
            self.assertEqual({message["goVersion"] for message in ended()}, {version})
        wait_until("its report comes", lambda: self.messages("old/one/report/stw"))
        self.assertEqual({message["goVersion"] for message in self.messages("old/one/report/stw")}, {22})

    @suites("release")
    def test_the_example_is_vetted_and_formatted(self):
        self.go_subscriber()  # what it is built with is there
        go = local_go()
        for check in ("vet", "fmt"):
            done = self.run_program(go.command, check, ".", cwd=GO_SUBSCRIBER, env=go.environment)
            self.assertEqual(done.out, "")


class Stopped(Feed):
    @suites("release")  # the programs stopped here would be slow, not stopped
    def test_a_stopped_subscriber_holds_nobody_up_and_sees_its_gap(self):
        collector = Collector(self, "feed.message_bytes_max=16KiB", "feed.queue_bytes=4MiB")  # room for 256 messages
        stopped = self.subscribe_in_go(collector, name="stopped")
        self.subscribe_in_go(collector, "-topic", "shop/one/generation", name="subscriber")
        stopped.send_signal(signal.SIGSTOP)
        trace = self.trace("g26-gens")

        def ends():
            return [note for message in self.messages("shop/one/generation") for note in message["generations"]
                    if note["state"] == "GENERATION_END" and note["firstGen"] == "26"]
        for sent in range(40 if FULL else 8):
            collector.send(trace, "shop")
            wait_until("the other keeps up", lambda: len(ends()) > sent)  # its queue holds the messages of one trace
        self.assertNotIn(": lost ", self.log("subscriber"))
        self.assertEqual(self.metric(collector, "feed_dropped_total"), 0)
        stopped.send_signal(signal.SIGCONT)
        self.await_line(": lost ", name="stopped")


class Gone(Feed):
    """Subscribers that leave in the middle of a burst, without nng, each as rudely as the kernel lets it."""
    GREETING = b"\0SP\0" + struct.pack(">HH", 33, 0)
    ROUNDS = 12 if FULL else 3

    def setUp(self):
        super().setUp()
        self.collector = Collector(self, "listen.feed=ipc:// tls+tcp://127.0.0.1:0")
        self.context = ssl.create_default_context(cafile=self.certs / "ca.pem")
        self.context.load_cert_chain(self.certs / "reader.pem", self.certs / "reader.key")

    def connect(self, over_tls):
        if over_tls:
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.connect(("127.0.0.1", int(self.collector.ready["feed.2"].rsplit(":", 1)[1])))
            peer = self.context.wrap_socket(raw, server_hostname="127.0.0.1")
        else:
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(self.collector.ready["feed"].removeprefix("ipc://"))
        peer.settimeout(DEADLINE)
        before = self.subscribers_so_far(self.collector)
        peer.sendall(self.GREETING)
        self.await_subscriber(self.collector, before)
        return peer

    def leave(self, peer, how, over_tls):
        """how: 0 closes; 1 has sent half a message; 2 resets the connection; 3 both."""
        if how & 1:
            peer.sendall((b"" if over_tls else b"\1") + struct.pack(">Q", 64) + b"half")
        if how & 2 and over_tls:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    def test_subscribers_that_leave_inside_a_message_are_counted_no_more(self):
        trace = self.trace("g26-gens")
        for turn in range(self.ROUNDS):
            peers = [self.connect(over_tls) for over_tls in (False, True) * 4]
            sends = [self.spawn(f"send{at}", TRACECTL, "send", trace, "--to", self.collector.to, "--certs", self.certs, "--service",
                                f"shop{at}", "--instance", str(turn), "--no-progress") for at in range(2)]
            for at, peer in enumerate(peers):
                for _ in range(1 + at * 3):
                    peer.recv(100 + 1000 * at)
                self.leave(peer, at // 2, over_tls=at % 2 == 1)
            for send in sends:
                self.assertEqual(send.wait(DEADLINE), 0)
            wait_until("all are counted as gone", lambda: self.metric(self.collector, "feed_subscribers") == 0)
