# SPDX-License-Identifier: Apache-2.0
"""Figures of a live stream and of its fetched file are the same figures."""
import json

from harness import Case, Collector, wait_until


class Report(Case):
    def test_live_and_file_agree(self):
        trace = self.trace("g26-gens")
        collector = Collector(self)
        collector.send(trace, "report")
        fetched = collector.fetch(self.folder / "fetched", "report")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "report")))
        for kind in ("syscall", "stw"):
            with self.subTest(kind=kind):
                offline = json.loads(self.tracectl("report", kind, fetched, "--json").out)
                live = json.loads(collector.ask("report", kind, "--service", "report", "--json").out)
                self.assertEqual(self._figures(live), self._figures(offline))
        self.assertEqual(collector.stop(), 0)

    @staticmethod
    def _figures(report):
        """A report without the names of where it came from."""
        return {key: value for key, value in report.items()
                if key not in ("service", "instance", "stream", "file", "source")}
