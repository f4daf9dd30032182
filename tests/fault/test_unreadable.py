# SPDX-License-Identifier: Apache-2.0
"""Bytes of the state folder that the disk cannot read any more. Only the data there is lost, and reported; the collector
runs on and starts again, and no other stream is affected."""
import http.client
import os
import re
import urllib.error
import urllib.request

from harness import DEADLINE, Collector, patient, wait_until
from faults import Agent, FaultCase, Shim, full

SECTOR = (4096, 8192)
UNREADABLE = "(disk I/O error|database disk image is malformed)"  # EIO in SQLite's words: the second if a statement was at work
ONE, OTHER = 1, 2  # the agent that is hit, and the one that is not


class Unreadable(FaultCase):
    def setUp(self):
        super().setUp()
        self.shim = Shim(self)
        self.kept = 0

    def collector(self, *settings):
        return Collector(self, "segment.generations_max=1", *settings, env=self.shim.environment)  # a generation is a file

    def agents(self, collector, **options):
        return [Agent(self, collector.ready["agents"], seed, **options) for seed in (ONE, OTHER)]

    def archived(self, collector, generations=5, **options):
        """Two streams that have ended, each of a few generations, all analysed."""
        agents = self.agents(collector, **options)
        wait_until("some is acked", lambda: min(a.status["acked_generations"] for a in agents) >= generations)
        words = [agent.finish() for agent in agents]
        wait_until("all is archived and analysed", lambda: len(self.verdicts(collector)) ==
                   sum(said["acked_generations"] for said in words) and
                   set(self.verdicts(collector)) == {"ok"})
        return agents, words

    def segments(self, collector, seed=None):
        return [row for row in collector.json_lines("list") if seed is None or row["instance"] == f"i{seed}"]

    def verdicts(self, collector, seed=None):
        return [row["analysis"] for row in self.segments(collector, seed)]

    def get(self, collector, path):
        with urllib.request.urlopen(f"http://{collector.ready['http']}{path}", timeout=DEADLINE) as answer:
            return answer.read()

    def assert_other_kept(self, collector, agents, words):
        self.assert_kept(collector, agents[1], words[1])

    def said(self, collector, pattern):
        """The store's lines come into the log by way of a loop, so a start may be over before they are there."""
        wait_until(f"the log has {pattern}", lambda: re.search(pattern, self.log(collector.name)))

    def assert_hit(self):
        wait_until("the bad place is read", lambda: self.shim.failed_reads > 0)

    def restarts(self, collector):
        """As often as one likes."""
        for _ in range(2):
            self.assertEqual(collector.stop(), 0, self.log(collector.name))
            collector.start()

    # --- the archive

    def test_analysis_says_so_of_the_generations_that_are_hit(self):
        collector = self.collector()
        agents = self.agents(collector)
        wait_until("both are known", lambda: all(a.status["acked_generations"] > 0 for a in agents))
        # Wherever it lies by then: in open/ or in archive/.
        self.shim.unreadable(f"*{agents[0].status['stream']}*", *SECTOR)
        wait_until("some are hit", lambda: self.verdicts(collector, ONE).count("unreadable") >= 2)
        self.shim.readable()
        hit = self.verdicts(collector, ONE).count("unreadable")
        wait_until("later ones are analysed", lambda: self.verdicts(collector, ONE).count("ok") >= 3 and
                   self.verdicts(collector, OTHER).count("ok") >= hit)
        reasons = {row["reason"] for row in self.segments(collector, ONE) if row["analysis"] == "unreadable"}
        self.assertTrue(reasons)
        for reason in reasons:
            self.assertRegex(reason, r"trace|part")
            self.assertRegex(reason, "from offset [0-9]+ on cannot be read: Input/output error")
        agents[1].hold()  # while it writes there may always be one that waits
        wait_until("none of the other stream waits", lambda: "pending" not in self.verdicts(collector, OTHER))
        self.assertEqual(set(self.verdicts(collector, OTHER)), {"ok"})
        self.finish_all(collector, agents)

    def test_readers_of_a_segment(self):
        collector = self.collector()
        agents, words = self.archived(collector)
        row = self.segments(collector, ONE)[1]
        out = self.folder / "one"
        self.shim.unreadable(f"*/{row['path']}", *SECTOR)
        with self.assertRaises((urllib.error.URLError, ConnectionError, http.client.IncompleteRead)):
            self.get(collector, f"/api/v1/segments/{row['id']}")
        place = rf"{row['path']}: \d+ bytes from offset \d+ on cannot be read: Input/output error"
        wait_until("the log says why", lambda: re.search(f"peer=.*{place}", self.log(collector.name)))
        said = collector.ask("fetch", row["id"], "-o", out, "--no-progress", expect=1)
        self.assertRegex(said.err, place)
        said = collector.ask("verify", expect=1)
        self.assertRegex(said.out, rf"{row['path'].replace('.trace', '.meta')}: its trace: .*from offset \d+ on cannot be read: Input/output error")
        self.assertIn(" 1 problems", said.out)
        self.assert_hit()
        for other in self.segments(collector):
            if other["id"] != row["id"]:
                self.assertEqual(len(self.get(collector, f"/api/v1/segments/{other['id']}")), other["bytes"])
                collector.ask("fetch", other["id"], "-o", out, "--no-progress")
        self.assert_other_kept(collector, agents, words)
        self.restarts(collector)
        self.shim.readable()
        self.assert_kept(collector, agents[0], words[0])
        self.assert_proven(collector, 2)

    def test_a_meta(self):
        """Damages the meta of the last segment, which each start reads, and which is the first for
        retention."""
        collector = self.collector()
        agents, words = self.archived(collector)
        row = self.segments(collector, ONE)[-1]
        meta = row["path"].replace(".trace", ".meta")
        self.shim.unreadable(f"*/{meta}")
        said = collector.ask("verify", expect=1)
        self.assertRegex(said.out, f"{meta}: .*Input/output error")
        self.restarts(collector)
        self.assert_other_kept(collector, agents, words)
        # The rebuild leaves it out, says so, and has all others.
        self.assertEqual(collector.stop(), 0)
        (collector.state / "catalog.sqlite").unlink()
        collector.start()
        self.said(collector, f"{meta}: left out of the catalog: .*Input/output error")
        self.assertEqual(len(self.segments(collector)), sum(said["acked_generations"] for said in words) - 1)
        self.assertEqual(collector.stop(), 0)
        said = self.tracectl("verify", "--rebuild", collector.state, expect=1, env=self.shim.environment)
        self.assertRegex(said.out + said.err, f"{meta}: left out of the catalog: .*Input/output error")
        self.assert_hit()
        self.shim.readable()
        self.tracectl("verify", "--rebuild", collector.state)
        collector.start()
        self.assert_kept(collector, agents[0], words[0])
        self.assert_proven(collector, 2)

    def test_retention_passes_a_meta_by(self):
        collector = self.collector()
        agents, words = self.archived(collector)
        row = self.segments(collector, ONE)[0]
        meta = row["path"].replace(".trace", ".meta")
        self.assertEqual(collector.stop(), 0)
        self.shim.unreadable(f"*/{meta}")
        collector.settings += ["retention.bytes=1B", "retention.every=100ms"]
        collector.start()
        wait_until("all others have expired", lambda: [r["id"] for r in self.segments(collector) if not r["expired"]] == [row["id"]])
        self.said(collector, f"retention: .*{meta.rsplit('/', 1)[1]}: Input/output error")
        self.assertEqual(len(self.get(collector, f"/api/v1/segments/{row['id']}")), row["bytes"])
        self.assert_hit()
        self.shim.readable()
        wait_until("it expires as well", lambda: all(r["expired"] for r in self.segments(collector)))
        self.assertEqual(collector.stop(), 0)

    def test_a_meta_under_a_stream_that_goes_on(self):
        """Verdicts, losses and the stream's end are written into metas that are read for it."""
        collector = self.collector(f"agents.heartbeat={patient(1)}", f"agents.abandon_after={patient(3)}")
        agents = self.agents(collector)
        wait_until("both are known", lambda: all(a.status["acked_generations"] > 2 for a in agents))
        self.shim.unreadable(f"*/archive/*/{agents[0].status['stream']}/*.meta")
        acked = [agent.status["acked_generations"] for agent in agents]
        wait_until("both go on", lambda: all(a.status["acked_generations"] > n + 5 for a, n in zip(agents, acked)))
        agents[0].process.kill()
        agents[0].process.wait()
        wait_until("it is over", lambda: "i1" not in {row["instance"] for row in collector.json_lines("status")
                                                       if row.get("state") in ("live", "waiting")})
        acked = agents[1].status["acked_generations"]
        wait_until("the other goes on", lambda: agents[1].status["acked_generations"] > acked + 5)
        self.assertEqual(self.ready(collector), 200)
        said = agents[1].finish()
        self.assert_kept(collector, agents[1], said)
        wait_until("the other is analysed", lambda: set(self.verdicts(collector, OTHER)) == {"ok"})
        self.assert_hit()
        self.restarts(collector)
        self.assert_kept(collector, agents[1], said)
        self.assertEqual(collector.stop(), 0)

    def ready(self, collector):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/readyz", timeout=DEADLINE) as answer:
            return answer.status

    def test_metas_of_streams_at_a_start(self):
        """A start reads the last segment's meta if the log has later records."""
        collector = self.collector()
        agents = self.agents(collector, mb_s=4, generation_bytes=800_000)
        wait_until("some is archived", lambda: len(self.segments(collector, ONE)) > 3 and
                   agents[1].status["acked_generations"] > 3)
        agents[0].hold()  # so there are records behind it
        collector.kill()
        self.shim.unreadable(f"*/archive/*/{agents[0].status['stream']}/*.meta")
        collector.start()
        self.assert_hit()
        self.go_on(agents)
        collector.restart()
        words = [agent.finish() for agent in agents]
        self.assert_kept(collector, agents[1], words[1])
        self.shim.readable()
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", "--rebuild", collector.state, expect=None)
        collector.start()
        self.assert_kept(collector, agents[0], words[0])  # nothing of it was taken away
        self.assertEqual(collector.stop(), 0)

    def acked_generations(self, agents):
        return [agent.status["acked_generations"] for agent in agents]

    # --- the log

    def test_the_log_is_not_read_while_it_runs(self):
        collector = self.collector("log.file_bytes=4MiB")
        self.shim.unreadable("*/wal/*")
        agents, words = self.archived(collector)
        self.assertEqual(self.shim.failed_reads, 0)
        self.shim.readable()
        self.assert_kept(collector, agents[0], words[0])
        self.assert_other_kept(collector, agents, words)
        self.assert_proven(collector, 2)

    def log_files(self, collector):
        return sorted((collector.state / "wal").glob("*.wal"))  # without the spare one

    LARGE = {"mb_s": 8, "generation_bytes": 8_000_000}  # 2 MB of one at least are in its first half

    def held(self):
        """A collector that was killed when each of two streams had an open generation, all of it in one file of the log, whose last
        2 MB are of one of them."""
        collector = self.collector("log.file_bytes=256MiB", "log.group_bytes=256KiB", "log.checkpoint_bytes=64GiB",
                                   "log.held_bytes_max=64GiB")
        agents = self.agents(collector, **self.LARGE)
        for agent in agents:  # one behind the other
            agent.hold()
        collector.kill()
        return collector, agents

    def end_of(self, log):
        """Returns the end of the last block that was written; the bytes after it are empty."""
        at, end = 0, 0
        with open(log, "rb") as file:
            while data := file.read(2**20).rstrip(b"\0"):  # no MiB of a log is empty but behind its end
                at, end = at + 2**20, at + len(data)
        return (end + 4095) // 4096 * 4096

    def go_on(self, agents):
        acked = self.acked_generations(agents)
        for agent in agents:
            agent.go_on()
        wait_until("all go on", lambda: all(a.status["acked_generations"] > n + 1 for a, n in zip(agents, acked)))

    def test_a_place_in_the_middle_of_the_log(self):
        collector, agents = self.held()
        log = self.log_files(collector)[-1]
        # In the open generation; and groups are behind it, so it is no torn end.
        bad = self.end_of(log) - (1 << 20)
        self.shim.unreadable("*/wal/*", bad, bad + 4096, inode=log.stat().st_ino)
        collector.start()
        self.assert_hit()
        self.said(collector, rf"error .*wal/[0-9a-f]+.wal: the block at offset {bad} cannot be read: Input/output error")
        damaged = r"stream=([0-9a-f]{32}) seq=\d+\.\.\d+: these records are damaged in the log; their generations are lost"
        self.said(collector, damaged)
        lost = re.findall(damaged, self.log(collector.name))
        self.assertEqual(len(lost), 1, "a record lies in one stream")
        self.go_on(agents)
        self.restarts(collector)
        words = [agent.finish() for agent in agents]
        for agent, said in zip(agents, words):
            if said["stream"] not in lost:
                self.assert_kept(collector, agent, said)
                continue
            runs = agent.check(*self.fetched(collector, agent))
            self.assertGreaterEqual(sum(last - first + 1 for first, last, _, _ in runs), said["acked_generations"] - 2)
            self.assertIn("damaged in the collector's log", self.losses(collector, said["stream"]))
        self.restarts(collector)
        self.assertEqual(collector.stop(), 0)

    def test_the_end_of_the_log(self):
        """The end cannot be told apart from a group that was never acked; agents know, and report
        the loss."""
        collector, agents = self.held()
        log = self.log_files(collector)[-1]
        end = self.end_of(log)
        self.shim.unreadable("*/wal/*", end - 8192, end, inode=log.stat().st_ino)
        collector.start()
        self.go_on(agents)
        self.restarts(collector)
        for agent in agents:
            agent.finish()
        self.assertEqual(collector.stop(), 0)

    def test_the_beginning_of_a_log_file(self):
        collector, agents = self.held()
        self.shim.unreadable("*/wal/*", 0, 4096, inode=self.log_files(collector)[-1].stat().st_ino)
        collector.start()
        self.assert_hit()
        self.said(collector, r"error .*wal/[0-9a-f]+.wal: the block at offset 0 cannot be read: Input/output error")
        self.go_on(agents)
        self.restarts(collector)
        for agent in agents:
            agent.finish()
        self.assertEqual(collector.stop(), 0)

    def losses(self, collector, stream):
        """In fetch's words."""
        done = collector.ask("fetch", "--stream", stream, "--gen", "1..", "-o", self.folder / "losses", "--no-progress")
        return done.out + done.err

    # --- checkpoints

    def checkpointed(self):
        """A collector that was killed when the log relied on the open file of one stream."""
        collector = self.collector("log.file_bytes=4MiB", "log.checkpoint_bytes=1MiB")
        agents = [Agent(self, collector.ready["agents"], ONE, **self.LARGE),
                  Agent(self, collector.ready["agents"], OTHER, mb_s=10, generation_bytes=1_000_000)]
        agents[0].hold()
        last = self.log_files(collector)[-1].name
        wait_until("the log has nothing of it any more", lambda: self.log_files(collector)[0].name > last)
        collector.kill()
        return collector, agents

    def test_a_part_that_the_log_relies_on(self):
        collector, agents = self.checkpointed()
        stream = agents[0].status["stream"]
        part, = (collector.state / "open").glob(f"{stream}-*.part")
        gen = int(part.stem.rsplit("-", 1)[1], 16)
        self.shim.unreadable(f"*/{part.name}", *SECTOR)
        collector.start()
        self.assert_hit()
        self.said(collector, f"error .*open/{part.name}: from offset 0 on: Input/output error; the log relied on it: generation {gen} is lost")
        self.go_on(agents)
        self.assertTrue(list((collector.state / "quarantine").glob(f"{stream}-*.part")))
        self.restarts(collector)
        words = [agent.finish() for agent in agents]
        self.assert_kept(collector, agents[1], words[1])
        runs = agents[0].check(*self.fetched(collector, agents[0]))
        self.assertEqual(sum(last - first + 1 for first, last, _, _ in runs), words[0]["acked_generations"] - 1)
        self.assertIn(f"generation {gen} is missing", self.losses(collector, stream))
        self.restarts(collector)
        self.assertEqual(collector.stop(), 0)

    # --- the catalog

    def catalog_is_unreadable(self, collector):
        """All of it; the next one is another file."""
        self.catalog_has_lost(collector, 0, 1 << 40)

    def catalog_has_lost(self, collector, first, end):
        catalog = collector.state / "catalog.sqlite"
        self.kept += 1
        os.link(catalog, self.folder / f"kept-{self.kept}")  # so that no other file has its inode
        self.shim.unreadable("*/catalog.sqlite", first, end, inode=catalog.stat().st_ino)

    def test_the_catalog_while_it_runs(self):
        collector = self.collector("retention.every=100ms")
        agents = self.agents(collector)
        wait_until("both are known", lambda: all(a.status["acked_generations"] > 2 for a in agents))
        self.catalog_is_unreadable(collector)
        wait_until("it is read", lambda: collector.ask("list", expect=None).returncode >= 0 and self.shim.failed_reads > 0)
        wait_until("it is rebuilt", lambda: collector.ask("list", expect=None).returncode == 0)
        self.said(collector, rf"error .*catalog.sqlite: .*{UNREADABLE}; it will be rebuilt")
        self.finish_all(collector, agents)

    def test_the_catalog_at_a_start(self):
        collector = self.collector()
        agents = self.agents(collector)
        for _ in range(2):
            acked = self.acked_generations(agents)
            wait_until("both go on", lambda: all(a.status["acked_generations"] > n + 2 for a, n in zip(agents, acked)))
            collector.kill()
            self.catalog_is_unreadable(collector)
            collector.start()
            self.assert_hit()
        self.said(collector, rf"warning .*catalog.sqlite: .*{UNREADABLE}; catalog.sqlite is rebuilt from the metas")
        self.finish_all(collector, agents)

    def test_pages_of_the_catalog_at_a_start(self):
        """The catalog opens, and then a page cannot be read."""
        collector = self.collector()
        agents = self.agents(collector, generation_bytes=20_000)
        for page in full((1, 3, 6), range(1, 8)):
            acked = self.acked_generations(agents)
            wait_until("both go on", lambda: all(a.status["acked_generations"] > n for a, n in zip(agents, acked)))
            self.assertEqual(collector.stop(), 0)
            self.catalog_has_lost(collector, page * 4096, page * 4096 + 4096)
            collector.start()
            wait_until("it is listed", lambda: collector.ask("list", expect=None).returncode == 0)
        self.shim.readable()
        self.finish_all(collector, agents)
