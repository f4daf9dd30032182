# SPDX-License-Identifier: Apache-2.0
"""The rows that concern an agent, once more with the agent in Go: 1, 2, 5, 6, 7, 8, 17, 24 and 25."""
import fcntl
import itertools

from harness import BUILD, SOURCE, local_go

import faults
import test_crash
import test_disk
import test_flood
import test_network
import test_overload
import test_versions

AGENT = BUILD / "tests" / "seeded_agent_go"


class AgentInGo:
    """Its program is the binary of the package's own tests: agent/go/seeded_test.go."""
    agent = AGENT

    def setUp(self):
        super().setUp()
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        with open(AGENT.with_suffix(".lock"), "wb") as lock:  # another test may want it now
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.run_program(go.command, "test", "-c", "-o", AGENT, ".", cwd=SOURCE / "agent/go",
                             env={**go.environment, "CGO_ENABLED": "0", "GOWORK": "off"})


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


# Of these, the cases with agents in them.
CASES = {
    Crash: None,
    Heirs: ("test_row_5_with_a_spool_on_disk", "test_row_5_an_heir_whose_connection_breaks"),
    Network: None,
    Disk: ("test_row_8_a_full_disk", "test_row_8_a_disk_without_inodes", "test_row_8_no_descriptors", "test_row_5_the_disk_of_a_spool_is_full"),
    Flood: ("test_an_agent_learns_that_it_is_too_fast_and_loses_nothing",),
    Overload: None,
    Versions: ("test_row_25_majors_must_be_equal_and_minors_need_not",),
}


def load_tests(loader, _standard, _pattern):
    suite = loader.suiteClass()
    for case, names in CASES.items():
        suite.addTests(map(case, names) if names else loader.loadTestsFromTestCase(case))
    return suite
