# SPDX-License-Identifier: Apache-2.0
"""Row 25: agents and collectors of other protocol versions, and logs of other versions."""
import hashlib
import json
import tarfile

from harness import BUILD, DAEMON, SOURCE, Collector, wait_until
from faults import AGENT, Agent, FaultCase

SHIPPED = "1.1"
VERSIONS = ("0.4", "1.0", SHIPPED, "1.9", "2.0")  # the others are the same, and say that they are something else
REFUSED = 4  # enum ta_state
GOLDEN = SOURCE / "tests/data/state-1.tar.xz"  # what a collector of log version 1 left when it was killed


def of_version(program, version):
    return program if version == SHIPPED else BUILD / "tests" / f"{program.name}_{version}"


class Versions(FaultCase):
    def test_row_25_majors_must_be_equal_and_minors_need_not(self):
        """A side that does not fit is refused by name, on both sides; its program goes on."""
        fit, refused = 0, 0
        for ours in VERSIONS:
            collector = Collector(self, name=f"collector-{ours}", daemon=of_version(DAEMON, ours))
            agents = [Agent(self, collector.ready["agents"], seed, generation_bytes=20_000, program=of_version(self.agent, theirs))
                      for seed, theirs in enumerate(VERSIONS)]
            for agent, theirs in zip(agents, VERSIONS):
                with self.subTest(collector=ours, agent=theirs):
                    if theirs[0] == ours[0]:
                        wait_until("something is acked", lambda: agent.status["acked_generations"] > 0)
                        self.assert_kept(collector, agent, agent.finish())
                        fit += 1
                    else:
                        wait_until("it is refused", lambda: agent.status.get("state") == REFUSED)
                        agent.process.terminate()
                        agent.process.wait()
                        reason = f"protocol version {theirs[0]}, this collector speaks {ours[0]}"
                        self.assertIn(f"REFUSE_VERSION: {reason}", self.log(agent.name))
                        self.assertIn(f"refused: {reason}", self.log(collector.name))
                        self.assertEqual(agent.status["acked_batches"], 0)
                        refused += 1
            self.assertEqual(collector.stop(), 0)
            for agent in agents:
                (self.folder / f"{agent.name}.log").unlink()
        print(f"row 25: {len(VERSIONS)} versions of each side: {fit} pairs work, {refused} are refused by name", flush=True)

    def golden(self):
        with tarfile.open(GOLDEN) as packed:
            packed.extractall(self.folder)
        return self.folder / "state"

    def test_row_25_a_log_of_the_first_version_is_opened(self):
        """With a whole stream in the archive, and one that was cut off in the middle of a generation."""
        state = self.golden()
        said = [json.loads(line) for line in (self.folder / "acked.json").read_text().splitlines()]
        collector = Collector(self, f"state={state}", "retention.age=0", "agents.abandon_after=1s", "agents.heartbeat=300ms")
        collector.state = state
        wait_until("both have ended", lambda: {row["state"] for row in collector.json_lines("status") if "stream" in row} <=
                   {"closed", "unclean"})
        for words in said:
            out = collector.fetch(self.folder / "fetched", "fault", words["instance"])
            done = self.run_program(AGENT, "check", words["seed"], words["generation_bytes"], out)
            first, last, _, _ = map(int, done.out.split())
            self.assertEqual(first, 1)
            self.assertGreaterEqual(last, words["acked_generations"])
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", state)

    def test_row_25_a_log_of_a_later_version_is_refused_untouched(self):
        state = self.golden()
        (state / "VERSION").write_text("2\n")

        def look():
            return {path.relative_to(state): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
                    for path in sorted(state.rglob("*")) if path.is_file()}

        before = look()
        done = self.run_program(DAEMON, "--set", f"state={state}", "--set", f"certs={self.certs}", "--set",
                                "listen.agents=127.0.0.1:0", "--set", "listen.http=127.0.0.1:0", expect=1)
        self.assertIn("the log has version 2, this program knows up to 1; nothing was touched", done.err)
        self.assertEqual(look(), before)
