# SPDX-License-Identifier: Apache-2.0
"""The archive search page in a headless Chromium: it lists what `tracectl list` does, and each file has its links."""
import urllib.request

import browser
from harness import Collector, wait_until
from served import Served
from test_page import CONTRAST, setUpModule  # noqa: F401: the module's own


class ArchivePage(Served):
    @classmethod
    def prepare(cls, host):
        rules = host.folder / "rules"
        rules.write_text("slow WHEN sched.latency.p99 > 1us OF shop/host:1 DO keep 1ms before, 1ms after\n")
        collector = cls.collector = Collector(host, "segment.generations_max=5", f"trigger.file={rules}")
        cls.base = f"http://{collector.ready['http']}"
        trace = host.trace("g26-gens")
        collector.send(trace, "shop", "host:1")
        collector.send(trace, "shop", "host:2")
        damaged = host.folder / "damaged.trace"
        damaged.write_bytes(trace.read_bytes()[:150_000])
        collector.send(damaged, "till", "one", expect=None)
        wait_until("all has a verdict", lambda: {row["analysis"] for row in collector.json_lines("list")} & {"pending"} == set())
        wait_until("a rule keeps some", lambda: any(row.get("kept_by") for row in collector.json_lines("list")))

    def rows(self, *args):
        return self.collector.json_lines("list", *args)

    def page(self, query="", **look):
        page = browser.Page(self, **look)
        page.open(f"{self.base}/archive{query}")
        self.wait_ready(page)
        return page

    def wait_ready(self, page, after=0):
        wait_until("the page has read", lambda: int(page.ask("document.body?.dataset.ready ?? 0")) > after)

    def shown(self, page):
        return page.ask("[...document.querySelectorAll('#rows tr')].map((tr) => Number(tr.dataset.segment))")

    def expect(self, page, rows):
        rows.sort(key=lambda row: row["first_wall_ns"])
        self.assertEqual(sorted(self.shown(page)), sorted(row["id"] for row in rows))

    def choose(self, page, **choices):
        for name, value in choices.items():
            after = int(page.ask("document.body.dataset.ready"))
            page.ask(f"(() => {{ const s = document.getElementById('choices').elements.{name}; s.value = '{value}'; s.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()")
            self.wait_ready(page, after)

    def quiet(self, page):
        self.assertEqual(page.complaints, [])
        page.close()

    def test_it_finds_by_service_time_verdict_and_what_keeps_it(self):
        page = self.page()
        everything = self.rows()
        self.expect(page, everything)
        newest = page.ask("[...document.querySelectorAll('#rows tr td:first-child')].map((td) => td.textContent)")
        self.assertEqual(newest, sorted(newest, reverse=True))
        self.choose(page, service="shop")
        self.expect(page, [row for row in everything if row["service"] == "shop"])
        self.assertEqual(page.ask("[...document.getElementById('choices').elements.instance.options].map((o) => o.value)"), ["", "host:1", "host:2"])
        self.choose(page, instance="host:2")
        self.expect(page, self.rows("--service", "shop", "--instance", "host:2"))
        self.choose(page, service="", kept="rule")
        kept = [row for row in everything if row.get("kept_by")]
        self.assertNotEqual(kept, [])
        self.expect(page, kept)
        self.choose(page, kept="", verdict="fault")
        self.expect(page, [row for row in everything if row["analysis"] not in ("ok", "pending")])
        self.assertEqual(page.ask("location.search"), "?verdict=fault")
        self.choose(page, verdict="", last="1h")
        self.expect(page, [row for row in everything if row["last_wall_ns"] > 0 and row in self.rows("--since", "-1h")])
        self.quiet(page)

    def test_a_link_shows_the_same_and_a_file_leads_on(self):
        page = self.page("?service=shop&instance=host%3A1&kept=rule")
        kept = [row for row in self.rows("--service", "shop", "--instance", "host:1") if row.get("kept_by")]
        self.expect(page, kept)
        self.assertEqual(page.ask("document.querySelector('#rows tr').children[6].textContent"), "slow")
        href = page.ask("document.querySelector('#rows a[download]').href")
        with urllib.request.urlopen(href) as answer:
            self.assertEqual(answer.read()[:5], b"go 1.")
        link = "document.querySelector('#rows .go a')"
        page.follow(link)
        wait_until("the timeline is there", lambda: page.path().startswith("/timeline/"))
        self.quiet(page)

    def test_it_fits_and_can_be_read(self):
        for name, look in {"laptop": {"width": 1280}, "dark": {"width": 1280, "scheme": "dark"}, "phone": {"width": 360, "height": 740}}.items():
            with self.subTest(name):
                page = self.page("", **look)
                page.draw()
                page.screenshot(f"archive-{name}")
                self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), look["width"])
                contrast, where = page.ask(CONTRAST)
                self.assertGreaterEqual(contrast, 4.5, where)
                self.quiet(page)
