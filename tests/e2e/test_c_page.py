# SPDX-License-Identifier: Apache-2.0
"""A C program on the page: its reports, timeline and explanations are in its own words."""
import json

import browser
from harness import BUILD, Case, Collector, wait_until
from test_c_words import GOS_WORDS
from test_page import setUpModule  # noqa: F401: the module's own

SHAPE = "25-waits_have_objects-0.trace"


class CPage(Case):
    def setUp(self):
        super().setUp()
        shapes = self.folder / "shapes"
        shapes.mkdir()
        self.run_program(BUILD / "tests/emit_shapes", shapes)
        self.collector = Collector(self)
        self.tracectl("send", shapes / SHAPE, "--to", self.collector.to, "--certs", self.certs, "--service", "locks", "--instance", "one")
        self.base = f"http://{self.collector.ready['http']}"

    def page(self, path, ready):
        page = browser.Page(self)
        page.open(self.base + path)
        wait_until("the page is there", lambda: page.ask("document.body?.childElementCount ?? 0") != 0)
        wait_until(f"{path} is drawn", lambda: page.draw() and page.ask(ready))
        return page

    def gos_words(self, page, selector):
        """Lines of what a person reads there, tooltips included, that are in Go's words."""
        texts = page.ask("(() => { const all = document.querySelector(%s); return [...all.innerText.split('\\n'), ...[...all.querySelectorAll('[title]')].map((n) => n.title)]; })()"
                         % json.dumps(selector))
        return [text for text in texts if GOS_WORDS.search(text)]

    def test_reports_and_timeline_and_why_are_in_its_words(self):
        row, = (row for row in self.collector.json_lines("status") if row["type"] == "stream")
        for kind in ("block", "contention", "procs", "goroutines", "syscall"):
            page = self.page(f"/#report={kind}&window=all", f"document.querySelector('article.report')?.dataset.kind === '{kind}' && document.querySelector('article.report .tiles') !== null")
            self.assertEqual(self.gos_words(page, "article.report"), [], kind)
            self.assertEqual(self.gos_words(page, "#report-about"), [], kind)
            page.screenshot(f"c-{kind}", whole=True)
            page.close()
        page = self.page(f"/timeline/{row['stream']}", "document.body?.dataset.ready > 0")
        labels = page.ask("[...document.querySelectorAll('#labels li')].map((li) => li.textContent)")
        self.assertIn("Threads, by the function that they began in", labels)
        self.assertEqual([label for label in labels if GOS_WORDS.search(label)], [])
        self.assertEqual(self.gos_words(page, "#legend"), [])
        page.screenshot("c-timeline")
        page.close()


if __name__ == "__main__":
    import unittest
    unittest.main()
