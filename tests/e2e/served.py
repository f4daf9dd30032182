# SPDX-License-Identifier: Apache-2.0
"""Lets cases that only read share one collector: a start, its certificates and the analysis of the traces cost more than most
queries."""
import pathlib
import tempfile

from harness import Case


class Served(Case):
    """A module's cases that change nothing of a collector, which prepare() of their class starts once.

    What is shared belongs to `host`, a Case without a test: its folder, certificates and programs last as long as the class.
    Each case has a folder of its own, and programs that end with it.
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host = Case()
        cls.addClassCleanup(cls._end_host)
        cls.host.setUp()
        cls.prepare(cls.host)

    @classmethod
    def _end_host(cls):
        cls.host._clean()  # and not doCleanups(), which keeps to itself what failed

    @classmethod
    def prepare(cls, host):
        """Starts what the cases share, as attributes of the class."""
        raise NotImplementedError

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-e2e-"))
        self.processes = []
        self.addCleanup(self._clean)
        self.certs = self.host.certs
