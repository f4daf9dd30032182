# SPDX-License-Identifier: Apache-2.0
"""The rows that concern an agent, once more with the agent in Go: 1, 2, 5, 6, 7, 8, 17, 24 and 25."""
import fcntl
import functools
import itertools
import subprocess

from harness import BUILD, SOURCE, local_go

import faults
from faults import FULL
import test_crash
import test_disk
import test_flood
import test_network
import test_overload
import test_versions

AGENT = BUILD / "tests" / "seeded_agent_go"


@functools.cache  # once for all cases
def build(go):
    with open(AGENT.with_suffix(".lock"), "wb") as lock:  # another test may want it now
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([go.command, "test", "-c", "-o", AGENT, "."], cwd=SOURCE / "agent/go", check=True,
                       env={**go.environment, "CGO_ENABLED": "0", "GOWORK": "off"})


class AgentInGo:
    """Runs the binary of the Go package's own tests: agent/go/seeded_test.go."""
    agent = AGENT

    def setUp(self):
        super().setUp()
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        build(go)


class Crash(AgentInGo, test_crash.Crash):
    pass


class Heirs(Crash):
    """Programs with either agent in one folder: each sends what the other one left."""

    def setUp(self):
        super().setUp()
        self.turns = itertools.cycle((AGENT, faults.AGENT))

    @property
    def agent(self):
        return next(self.turns)


class Network(AgentInGo, test_network.Network):
    pass


class Disk(AgentInGo, test_disk.Disk):
    pass


class Flood(AgentInGo, test_flood.Flood):
    pass


class Overload(AgentInGo, test_overload.Overload):
    writer, memory_beside = [AGENT, "overload"], 4 << 20


class Versions(AgentInGo, test_versions.Versions):
    def setUp(self):
        super().setUp()
        for version in test_versions.VERSIONS:
            if version != test_versions.SHIPPED:
                link = test_versions.of_version(AGENT, version)
                link.unlink(missing_ok=True)
                link.symlink_to(AGENT)


# Cases with agents in them; a full run also has those in which an agent meets another one's faults.
CASES = {
    Crash: ("test_row_1_kill_under_load", "test_row_5_programs_are_killed_with_their_agents", "test_row_5_with_a_spool_on_disk",
            "test_row_5_an_heir_whose_connection_breaks"),
    Heirs: ("test_row_5_with_a_spool_on_disk", "test_row_5_an_heir_whose_connection_breaks"),
    Network: ("test_row_6_cut_stalled_delayed_and_in_single_bytes", "test_row_7_a_peer_that_swallows_silently"),
    Disk: ("test_row_8_a_full_disk", "test_row_8_no_descriptors", "test_row_5_the_disk_of_a_spool_is_full"),
    Flood: ("test_an_agent_learns_that_it_is_too_fast_and_loses_nothing",),
    Overload: ("test_row_17_collector_blackholed", "test_row_17_collector_dead", "test_row_17_collector_slow"),
    Versions: ("test_row_25_majors_must_be_equal_and_minors_need_not",),
}
if FULL:
    CASES[Crash] += ("test_row_2_kill_during_recovery", "test_row_24_sigterm_under_load")
    CASES[Network] += ("test_row_6_goodput_outside_the_cuts",)
    CASES[Disk] += ("test_row_8_a_disk_without_inodes",)
    CASES[Overload] += ("test_row_17_healthy",)


def load_tests(loader, _standard, _pattern):
    suite = loader.suiteClass()
    for case, names in CASES.items():
        suite.addTests(map(case, names))
    return suite
