# SPDX-License-Identifier: Apache-2.0
"""Row 12: a subscriber that stops reading does not delay the collector, and each subscriber learns what it
missed."""
import json
import signal
import time

from harness import TRACECTL, Collector, wait_until
from faults import Agent, FaultCase, full
from test_disk import resident

READERS = 8
MUCH = 600  # messages: three times what waits for one that sleeps


class Readers(FaultCase):
    def lines(self, name):
        return [json.loads(line) for line in (self.folder / f"{name}.out").read_text().split("\n")[:-1]]

    def topics(self, name):
        """Returns for each topic: first and last number heard, messages heard, messages known to be lost."""
        topics, told = {}, {}
        for line in self.lines(name):
            if line["record"] == "lost":  # before the message that shows it
                told[line["of"]] = line["lost"]
            else:
                first, _, heard, lost = topics.get(line["topic"], (line["seq"], 0, 0, 0))
                topics[line["topic"]] = (first, line["seq"], heard + 1, lost + told.pop(line["topic"], 0))
        return topics

    def generations(self, name):
        """The last number heard of each agent's generations."""
        return {topic: last for topic, (_, last, _, _) in self.topics(name).items() if topic.endswith("/generation")}

    def has_heard(self, name):
        """Returns the numbers of messages and of losses."""
        with open(self.folder / f"{name}.out", "rb") as out:
            return sum(1 for _ in out)

    def lost(self, name):
        return sum(lost for _, _, _, lost in self.topics(name).values())

    def test_row_12_one_of_eight_stops_reading(self):
        seconds = full(1, 30)
        # Little may wait for a subscriber, so that a short sleep is long enough.
        collector = Collector(self, "feed.queue_bytes=1MiB", "feed.message_bytes_max=16KiB")
        tails = []
        for n in range(READERS):
            with open(self.folder / f"tail{n}.out", "wb") as out:
                tails.append(self.spawn(f"tail{n}", TRACECTL, "tail", "fault/", "--json", "--server", collector.to,
                                        "--certs", self.certs, stdout=out))
        agents = [Agent(self, collector.ready["agents"], seed, mb_s=1, generation_bytes=20_000) for seed in (1, 2)]
        wait_until("all hear of each agent", lambda: all(len(self.generations(f"tail{n}")) == len(agents) for n in range(READERS)))
        memory = resident(collector.process.pid)
        tails[0].send_signal(signal.SIGSTOP)
        began, before, produced = time.monotonic(), self.acked(agents), sum(a.status["produced_bytes"] for a in agents)
        heard = self.has_heard("tail1")  # what is acked may be said much later
        wait_until("time passes and much was said", lambda: time.monotonic() - began >= seconds and
                   self.has_heard("tail1") > heard + MUCH)
        acked, produced = self.acked(agents) - before, sum(a.status["produced_bytes"] for a in agents) - produced
        grown = resident(collector.process.pid) - memory
        before_end = self.generations("tail1")
        tails[0].send_signal(signal.SIGCONT)

        def has_caught_up(name):
            """Waits until the subscriber has caught up: the number of the next message shows what it missed,
            and the agents go on, so there is a next one."""
            topics = self.topics(name)
            return all(topics.get(topic, (0, 0))[1] > last for topic, last in before_end.items())

        for n in range(READERS):
            wait_until(f"tail{n} has heard what came later", lambda: has_caught_up(f"tail{n}"))
        for agent in agents:
            agent.process.send_signal(signal.SIGTERM)
        words = [agent.finish() for agent in agents]
        for n in range(READERS):
            for topic, (first, last, heard, lost) in self.topics(f"tail{n}").items():
                self.assertEqual(heard + lost, last - first + 1, f"tail{n}: {topic}")
        lost = self.lost("tail0")
        self.assertGreater(lost, 0, "the sleep was too short to lose anything")
        self.assert_proven(collector, 2, sum(w["lost_bytes"] for w in words))
        print(f"row 12: one of {READERS} stopped for {seconds} s: acked {acked / max(produced, 1) * 100:.1f} % of what was produced "
              f"meanwhile, {lost} messages known as lost "
              f"({max(self.lost(f'tail{n}') for n in range(1, READERS))} at most of one that was awake), memory {grown / 2**20:+.1f} MiB", flush=True)
