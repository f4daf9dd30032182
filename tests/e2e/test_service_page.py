# SPDX-License-Identifier: Apache-2.0
"""The page of a service in a headless Chromium: current and past figures, tables at any moment, and its text when there is no data."""
import json

import browser
from harness import Collector, wait_until
from served import Served
from test_page import CONTRAST, setUpModule  # noqa: F401: the module's own

INSTANCES = ["host:2", "one"]


class ServicePage(Served):
    @classmethod
    def prepare(cls, host):
        cls.collector = Collector(host, "reports.every=100ms", "reports.age=0")
        cls.base = f"http://{cls.collector.ready['http']}"
        for instance in INSTANCES:
            cls.collector.send(host.trace("g26-gens"), "shop", instance)
        wait_until("the reports are kept", lambda: {r["instance"] for r in cls.kept("sched") if r["last_gen"] == 26} == set(INSTANCES))

    @classmethod
    def kept(cls, kind, *args):
        done = cls.collector.ask("history", kind, "--service", "shop", "--json", *args, expect=None)
        return [json.loads(line) for line in done.out.splitlines()]

    def page(self, path, **look):
        """As if it were opened a minute after the trace's end."""
        now_ms = self.kept("sched")[-1]["until_wall_ns"] // 10**6 + 60_000
        page = browser.Page(self, f"Date.now = () => {now_ms};", **look)
        page.open(self.base + path)
        return page

    def wait_for(self, page, kind, more=""):
        node = f"document.getElementById('kind-{kind}')"
        wait_until("the page has its sections", lambda: page.ask(f"{node} !== null"))
        page.ask(f"{node}.scrollIntoView()")
        wait_until(f"{kind} is shown", lambda: page.draw() and page.ask(f"Number({node}.dataset.ready ?? 0) > 0 {more}"))
        return node

    def figure(self, page, node, name):
        return page.ask(f"{node}.querySelector('[data-figure={name}] dd').dataset.value")

    def quiet(self, page):
        self.assertEqual(page.complaints, [])
        page.close()

    def test_reports_that_come_in_pieces_come_once(self):
        """The place to go on from is larger than a double can hold."""
        page = self.page("/service/shop?last=1h")
        times = page.ask("import('/history.js').then((m) => m.askHistory('all', { service: 'shop' }))"
                         ".then((all) => all.map((r) => [r.stream, r.kind, r.last_gen].join(' ')))")
        self.assertEqual(len(times), len(set(times)))
        self.assertEqual(len(times), len(self.kept("all")))
        self.quiet(page)

    def test_it_shows_now_and_how_it_came_to_that(self):
        page = self.page("/service/shop?last=1h")
        node = self.wait_for(page, "sched")
        self.assertEqual(page.ask("document.getElementById('name').textContent"), "shop")
        wait_until("it says when the last minute was", lambda: page.draw() and ", nothing since, 2 streams, " in page.ask(
            "document.querySelector('#summary .readout').textContent"))
        of_all, *of_one = (json.loads(line) for line in self.collector.ask("report", "sched", "--service", "shop", "--window", "1m", "--json", "--top", "0").out.splitlines())
        self.assertEqual(of_all["figures"]["latency"]["count"], sum(r["figures"]["latency"]["count"] for r in of_one))
        self.assertEqual(int(self.figure(page, node, "latency")), of_all["figures"]["latency"]["p99_ns"])
        self.assertEqual(int(page.ask(f"{node}.dataset.stretches")), len(self.kept("sched")))
        lines = page.ask(f"[...{node}.querySelectorAll('[data-figure=latency] path')].map((p) => p.dataset.colour)")
        self.assertEqual(sorted(set(lines)), ["0", "1"])
        self.assertIn("all 2 instances", page.ask(f"{node}.querySelector('[data-figure=latency] .note').textContent"))
        page.ask(f"{node}.querySelector('.tables summary').click()")
        rows = "[...document.querySelectorAll('#kind-sched [data-table=by_entry] tbody tr')].map((tr) => Number(tr.querySelector('[data-column=\"latency.count\"]').dataset.value))"
        wait_until("the tables of the sum are shown", lambda: page.draw() and page.ask(rows)[:20] == [row["latency"]["count"] for row in of_all["tables"]["by_entry"]][:20])
        self.assertIn("choose one above", page.ask(f"{node}.querySelector('.tables p').textContent"))
        page.ask("document.getElementById('instance').value = 'one'; document.getElementById('instance').dispatchEvent(new Event('change'))")
        one = next(r for r in of_one if r["instance"] == "one")
        wait_until("the instance is shown", lambda: page.draw() and self.figure(page, node, "latency") == str(one["figures"]["latency"]["p99_ns"]))
        node = self.wait_for(page, "goroutines")
        self.assertGreater(page.ask(f"{node}.querySelectorAll('.states-history:not([hidden]) path').length"), 2)
        page.draw()
        page.screenshot("service-goroutines")
        instances = page.ask("[...document.getElementById('instance').options].map((o) => o.value)")
        self.assertEqual(instances, ["", *INSTANCES])
        self.quiet(page)

    def test_a_moment_has_the_tables_of_its_time(self):
        stretches = [r for r in self.kept("wake") if r["instance"] == "one"]
        third = stretches[2]
        page = self.page(f"/service/shop/one?last=1h&at={third['until_wall_ns'] - 1000}")
        node = self.wait_for(page, "wake")
        self.assertEqual(page.ask("document.getElementById('name').textContent"), "shop / one")
        self.assertEqual(int(self.figure(page, node, "pairs")), third["figures"]["pairs"])
        self.assertTrue(page.ask(f"{node}.querySelector('.mark').hasAttribute('hidden') === false"))
        page.ask(f"{node}.querySelector('.tables summary').click()")
        wait_until("its tables are shown", lambda: page.draw() and page.ask(f"{node}.querySelectorAll('tbody tr').length") > 0)
        shown = page.ask(f"[...{node}.querySelectorAll('tbody tr')].map((tr) => [...tr.querySelectorAll('th')].map((th) => th.dataset.value))")
        self.assertEqual(shown, [[row.get("waker", ""), row.get("woken", "")] if not row.get("other") else shown[-1] for row in third["tables"]["by_pair"]])
        self.assertGreater(page.ask(f"{node}.querySelectorAll('.wake-graph .wake').length"), 3)
        page.draw()
        page.screenshot("service-wake")
        page.ask("document.getElementById('now').click()")
        live = json.loads(self.collector.ask("report", "wake", "--service", "shop", "--instance", "one", "--window", "1m", "--json").out)
        wait_until("the newest is shown", lambda: page.draw() and self.figure(page, node, "pairs") == str(live["figures"]["pairs"]))
        self.assertNotIn("at=", page.ask("location.search"))
        self.quiet(page)
        moment = third["until_wall_ns"] - 10**6
        page = self.page(f"/service/shop?last=1h&at={moment}")
        node = self.wait_for(page, "wake")
        at = f"@{moment // 10**9}.{moment % 10**9:09d}"
        both = self.collector.json_lines("report", "wake", "--service", "shop", "--since", at, "--until", at)[0]
        self.assertEqual(both["instances"], 2)
        self.assertEqual(int(self.figure(page, node, "waits")), both["figures"]["waits"]["p99_ns"])
        self.assertIn("all 2 instances", page.ask(f"{node}.querySelector('[data-figure=waits] .note').textContent"))
        self.quiet(page)

    def test_a_link_to_a_report_leads_to_its_card(self):
        page = self.page("/service/shop#kind-contention")
        top = "document.getElementById('kind-contention')?.getBoundingClientRect().top"
        wait_until("it is at the top", lambda: page.ask(f"scrollY > 0 && Math.abs({top}) < 2"))
        self.quiet(page)

    def test_a_click_on_a_line_chooses_the_moment(self):
        page = self.page("/service/shop/one?last=1h")
        node = self.wait_for(page, "sched")
        page.ask(f"{node}.scrollIntoView({{ block: 'center' }})")
        page.draw()
        left, top, width = page.ask(f"(() => {{ const b = {node}.querySelector('.spark').getBoundingClientRect(); return [b.left, b.top, b.width]; }})()")
        for kind in ("mousePressed", "mouseReleased"):
            page.command("Input.dispatchMouseEvent", type=kind, x=left + width / 2, y=top + 20, button="left", clickCount=1)
        wait_until("the moment is in the address", lambda: "at=" in page.ask("location.search"))
        at = int(page.ask("new URLSearchParams(location.search).get('at')"))
        self.assertLess(abs(page.ask("Date.now()") * 10**6 - 30 * 10**9 - at), 5 * 10**9)
        self.assertNotEqual(page.ask("document.getElementById('at').textContent"), "now")
        wait_until("it says that nothing was kept then", lambda: page.draw() and self.figure(page, node, "latency") == "")  # the trace's end was half a minute before
        self.quiet(page)

    def test_it_fits_and_can_be_read(self):
        for name, look in {"wide": {"width": 2560, "height": 1200}, "laptop": {"width": 1280}, "dark": {"width": 1280, "scheme": "dark"},
                           "phone": {"width": 360, "height": 740}}.items():
            with self.subTest(name):
                page = self.page("/service/shop?last=1h", **look)
                self.wait_for(page, "goroutines")
                page.screenshot(f"service-{name}")
                self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), look["width"])
                contrast, where = page.ask(CONTRAST)
                self.assertGreaterEqual(contrast, 4.5, where)
                self.quiet(page)

    def test_names_are_text_and_a_service_that_is_not_there_is_said(self):
        page = self.page("/service/shop/host%3A2?last=1h")
        node = self.wait_for(page, "sched")
        self.assertEqual(page.ask("document.getElementById('name').textContent"), f"shop / {INSTANCES[0]}")
        self.assertGreater(int(self.figure(page, node, "latency")), 0)
        page.ask("document.getElementById('instance').value = 'one'; document.getElementById('instance').dispatchEvent(new Event('change'))")
        self.assertEqual(page.ask("location.pathname"), "/service/shop/one")
        self.quiet(page)
        page = self.page("/service/%3Cscript%3E")
        wait_until("it says so", lambda: "No stream of a service <script> is known." in page.ask("document.getElementById('fault')?.textContent ?? ''"))
        self.quiet(page)
        page = self.page("/")
        link = "document.querySelector('#stream-rows tbody th a')"
        wait_until("the streams are shown", lambda: page.ask(f"{link} !== null"))
        page.follow(link)
        wait_until("its page is shown", lambda: page.ask("document.getElementById('name')?.textContent ?? ''") == "shop")
        self.quiet(page)
