# SPDX-License-Identifier: Apache-2.0
"""The timeline in a headless Chromium: it draws what `tracectl query` prints, a click explains, it fits all screens and follows fast
dragging."""
import json
import re

import browser
from harness import DEADLINE, TRACECTL, wait_until
from served import Served
from test_page import CONTRAST, setUpModule  # noqa: F401: the module's own
from test_timeline import TimelineCase, serve

SECOND = 10**9


def serve_page(owner, host):
    serve(owner, host, host.trace("g26-gens"))
    first, *_, last = map(json.loads, host.tracectl("query", owner.file, "SELECT wall_ns, from_ns, until_ns FROM generations", "--json").out.splitlines())
    owner.begin, owner.end = first["wall_ns"], last["wall_ns"] + last["until_ns"] - last["from_ns"]


class TimelinePageCase(TimelineCase):
    def page(self, query="", **look):
        page = browser.Page(self, **look)
        page.open(f"{self.base}/timeline/{self.stream}{query}")
        self.wait_ready(page)
        return page

    def wait_ready(self, page, after=0):
        wait_until("the page is there", lambda: page.ask("document.body?.dataset.ready ?? 0") != 0)
        wait_until("the timeline is drawn", lambda: page.draw() and int(page.ask("document.body.dataset.ready ?? 0")) > after)

    def ready(self, page):
        return int(page.ask("document.body.dataset.ready"))

    def whole(self):
        return f"?from={self.begin}&to={self.end}"

    def quiet(self, page):
        self.assertEqual(page.complaints, [])
        self.assertEqual({url for url in page.asked() if not url.startswith((self.base + "/", "about:"))}, set())
        page.close()

    def click(self, page, x, y, **more):
        for kind in ("mousePressed", "mouseReleased"):
            page.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more)

    def labels(self, page):
        return page.ask("[...document.querySelectorAll('#labels li')].map((li) => [li.textContent, li.getBoundingClientRect().top])")

    def place(self, page, wall_ns, title):
        """Returns the place on the screen of a moment of the trace, in a row."""
        tops = [top for text, top in self.labels(page) if text == title]
        self.assertEqual(len(tops), 1, title)
        begin, end = (int(page.ask(f"new URLSearchParams(location.search).get('{name}')")) for name in ("from", "to"))
        left, right = page.ask("(() => { const b = document.getElementById('rows'); return [b.getBoundingClientRect().left + 220, b.getBoundingClientRect().left + b.clientWidth]; })()")
        return left + (wall_ns - begin) / (end - begin) * (right - left), tops[0] + 10

    def run_line(self, line):
        """A line that the page gives to be copied, of this collector."""
        reader = f"--server {self.collector.to} --certs {self.certs} "
        line = line.replace("tracectl ", f"{TRACECTL} ").replace("fetch ", f"fetch {reader}").replace("query ", f"query {reader}").replace("tracectl state ", f"tracectl state {reader}")
        return self.run_program("bash", "-ec", line, cwd=self.folder).out


class TimelinePage(Served, TimelinePageCase):
    @classmethod
    def prepare(cls, host):
        serve_page(cls, host)

    def test_it_reads_the_querys_spans(self):
        """The page's own reader of the binary form, for goroutines of all of the trace."""
        page = self.page(self.whole())
        shown = page.ask("""import("/timeline_pictures.js").then(async ({ fetchPicture }) => {
          const p = await fetchPicture(%s, { from: %dn, until: %dn, px: 8192, lanes: "goroutine", limit: 1000 });
          return p.lanes.flatMap((l) => Array.from({ length: l.cells }, (_, i) => [Number(l.id), String(p.traceFrom + BigInt(l.from(i))),
            String(p.traceFrom + BigInt(l.until(i))), p.looks[l.look(i)].split(":")[0], l.flags(i), l.subject(i)]));
        })""" % (json.dumps(self.stream), self.begin, self.end))
        exact = {(subject, int(begin), int(until), look) for subject, begin, until, look, flags, _ in shown if flags == 0}
        self.assertTrue(all(str(cell[0]) == cell[5] for cell in shown))
        pixel = -(-(self.end - self.begin) // 8192)
        rows = self.query(f"SELECT subject, from_ns, until_ns, state FROM spans WHERE kind='goroutine' AND state!='syscall' AND from_known AND until_known "
                          f"AND until_ns-from_ns>={pixel}")
        self.assertGreater(len(rows), 500)
        missing = {(r["subject"], r["from_ns"], r["until_ns"], r["state"]) for r in rows} - exact
        self.assertLess(len(missing), 3, sorted(missing)[:5])  # at the very edges
        self.quiet(page)

    def test_a_click_says_what_it_was_and_leads_to_what_woke_it(self):
        page = self.page(self.whole())
        wait = max(self.query("SELECT s.subject, s.reason, s.wall_ns, s.until_ns-s.from_ns AS ns, g.entry, w.id AS waker FROM spans s JOIN goroutines g USING(life) "
                              "JOIN goroutines w ON w.life=s.by_life WHERE s.kind='goroutine' AND s.state='waiting' AND s.from_known AND s.until_known "
                              "AND s.by_life!=s.life AND w.id>0 AND s.reason!='' AND g.entry!='' AND s.gen BETWEEN 5 AND 20 "
                              "AND EXISTS (SELECT 1 FROM generations n WHERE n.gen=s.gen AND n.from_ns<s.from_ns)"), key=lambda row: row["ns"])
        page.ask(f"(() => {{ const f = document.getElementById('find'); f.value = '{wait['subject']}'; f.dispatchEvent(new Event('change')); }})()")
        title = f"G {wait['subject']} {wait['entry']}"
        wait_until("the goroutine is pinned", lambda: page.draw() and any(text == title for text, _ in self.labels(page)))
        self.click(page, *self.place(page, wait["wall_ns"] + wait["ns"] // 2, title))
        heading = f"Goroutine {wait['subject']} waiting"
        wait_until("the span is explained", lambda: heading in page.ask("document.getElementById('detail-title').textContent"))
        body = page.ask("document.getElementById('detail-body').innerText")
        self.assertIn(f"woken by goroutine {wait['waker']}", body)
        self.assertIn(wait["entry"], body)
        page.screenshot("timeline-detail")
        why = page.ask("document.querySelector('#detail-body .copy').dataset.copies")
        self.assertRegex(self.run_line(why), rf"goroutine {wait['subject']} ")
        self.expect_all_goroutines(page, wait)
        self.click(page, *self.place(page, wait["wall_ns"] + wait["ns"] // 2, title))
        wait_until("the span is explained again", lambda: heading in page.ask("document.getElementById('detail-title').textContent"))
        page.ask("[...document.querySelectorAll('#detail-body button')].find((b) => b.textContent.includes('go there')).click()")
        wait_until("the waker is explained", lambda: f"Goroutine {wait['waker']} " in page.ask("document.getElementById('detail-title').textContent"))
        self.assertIn(f"pin={wait['subject']}%2C{wait['waker']}", page.ask("location.search"))
        self.quiet(page)

    def expect_all_goroutines(self, page, wait):
        """From the span that is explained to all goroutines of its moment, of which it is one."""
        page.ask("[...document.querySelectorAll('#detail-body button')].find((b) => b.textContent.includes('all goroutines')).click()")
        wait_until("all are listed", lambda: " goroutines at " in page.ask("document.getElementById('detail-title').textContent"))
        n = int(page.ask("document.getElementById('detail-title').textContent").split()[0])
        counts = page.ask("[...document.querySelectorAll('#detail-body .states b')].map((b) => b.textContent)")
        self.assertEqual(sum(int(text.split()[0]) for text in counts), n)
        self.assertIn(f"G{wait['subject']}", page.ask("document.querySelector('#detail-body .states').innerText"))
        page.screenshot("timeline-state")
        line = page.ask("document.querySelector('#detail-body .copy').dataset.copies")
        self.assertIn(f" {n} goroutines", self.run_line(line).splitlines()[0])

    def test_a_stretch_is_summed_up_and_can_be_asked_and_fetched(self):
        page = self.page(self.whole())
        left, y = self.place(page, self.begin + (self.end - self.begin) // 4, "P 0")
        right, _ = self.place(page, self.begin + (self.end - self.begin) // 2, "P 0")
        for kind, x in (("mousePressed", left), ("mouseMoved", (left + right) / 2), ("mouseMoved", right), ("mouseReleased", right)):
            page.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1, modifiers=8)
        wait_until("the stretch is summed up", lambda: "A stretch of" in page.ask("document.getElementById('detail-title').textContent"))
        self.assertRegex(page.ask("document.getElementById('detail-body').innerText"), r"running\s+[12]\.\d+ goroutines on average")
        query, fetch = page.ask("[...document.querySelectorAll('#detail-body .copy')].map((b) => b.dataset.copies)")
        self.assertIn("reason", self.run_line(query).split("\n")[0])
        self.run_line(fetch)
        self.assertRegex(self.tracectl("check", self.folder / "stretch.trace").out, r"ok: \d+ events, \d+ generations")
        self.expect_reports_of_the_stretch(page)
        self.quiet(page)

    def expect_reports_of_the_stretch(self, page):
        reports = "document.querySelector('#detail-body .stretch-reports')"
        wait_until("the kinds are listed", lambda: page.ask(f"{reports}.querySelectorAll('option').length") > 10)
        page.ask(f"(() => {{ const s = {reports}.querySelector('select'); s.value = 'sched'; s.dispatchEvent(new Event('change')); }})()")
        wait_until("the report is shown", lambda: page.draw() and page.ask(f"{reports}.dataset.shown") == "sched")
        of_file = json.loads(self.tracectl("report", "sched", self.folder / "stretch.trace", "--json").out)
        self.assertEqual(int(page.ask(f"{reports}.querySelector('[data-figure=latency] dd').dataset.value")), of_file["figures"]["latency"]["count"])
        self.assertGreater(page.ask(f"{reports}.querySelectorAll('tbody tr').length"), 5)
        page.screenshot("timeline-stretch")

    def test_a_stream_beside_that_has_nothing_of_that_time_says_so(self):
        page = self.page(self.whole() + f"&beside={'0' * 32},nonsense")
        page.ask("document.getElementById('rows').scrollTop = 1e6")
        wait_until("it says so", lambda: page.draw() and any("no stream has this id" in text for text, _ in self.labels(page)))
        self.assertEqual([line for line in page.complaints if "404" not in line], [])
        page.close()

    def test_a_wait_leads_to_why_it_took_so_long(self):
        page = self.page(self.whole())
        wait = max(self.query("SELECT s.subject, s.wall_ns, s.until_ns-s.from_ns AS ns, g.entry, w.id AS waker FROM spans s JOIN goroutines g USING(life) "
                              "JOIN goroutines w ON w.life=s.by_life WHERE s.kind='goroutine' AND s.state='waiting' AND s.from_known AND s.until_known "
                              "AND s.by_life!=s.life AND w.id>0 AND g.entry!='' AND s.gen BETWEEN 5 AND 20 "
                              "AND EXISTS (SELECT 1 FROM generations n WHERE n.gen=s.gen AND n.from_ns<s.from_ns)"), key=lambda row: row["ns"])
        page.ask(f"(() => {{ const f = document.getElementById('find'); f.value = '{wait['subject']}'; f.dispatchEvent(new Event('change')); }})()")
        title = f"G {wait['subject']} {wait['entry']}"
        wait_until("the goroutine is pinned", lambda: page.draw() and any(text == title for text, _ in self.labels(page)))
        self.click(page, *self.place(page, wait["wall_ns"] + wait["ns"] // 2, title))
        link = "document.querySelector('#detail-body .why-link')"
        wait_until("the span is explained", lambda: page.draw() and page.ask(f"{link} !== null"))
        line = page.ask("document.querySelector('#detail-body .copy').dataset.copies")
        page.follow(link)
        wait_until("the path is drawn", lambda: page.ask("document.body?.dataset.ready ?? 0") != 0 and page.draw())
        sentence = page.ask("document.getElementById('sentence').textContent")
        self.assertRegex(sentence, rf"^(goroutine {wait['subject']} |region |task )")
        said = self.run_line(line).splitlines()[0]
        for name in re.findall(r"behind (goroutine \d+)", said):
            self.assertIn(name, sentence)
        pieces = page.ask("document.querySelectorAll('.why-path .piece').length")
        self.assertGreater(pieces, 0)
        self.expect_steps(page, pieces)
        self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), 1280)
        contrast, where = page.ask(CONTRAST)
        self.assertGreaterEqual(contrast, 4.5, where)
        page.screenshot("why")
        # The line of the page gives the same explanation of a file.
        self.assertEqual(self.run_line(page.ask("document.querySelector('#links .copy').dataset.copies")).splitlines()[0].split(" took ")[0], sentence.split(" took ")[0])
        # A piece of the path leads to its moment.
        page.ask("document.querySelector('.why-path .piece').dispatchEvent(new MouseEvent('click'))")
        wait_until("the timeline is there", lambda: page.path() == f"/timeline/{self.stream}")
        self.assertRegex(page.ask("location.search"), r"from=\d+&to=\d+")
        self.quiet(page)

    def expect_steps(self, page, pieces):
        """A line for each piece; one that is opened has where it was, its moment and a command that fetches it."""
        steps = "[...document.querySelectorAll('#steps details')]"
        self.assertEqual(page.ask(f"{steps}.length"), min(pieces, 100))
        page.ask(f"{steps}[0].querySelector('summary').click()")
        wait_until("it is open", lambda: page.ask(f"{steps}[0].querySelector('dl') !== null"))
        fetch = page.ask(f"[...{steps}[0].querySelectorAll('.copy')].find((b) => b.textContent === 'copy fetch command').dataset.copies")
        self.run_line(fetch)
        self.assertIn(": ok: ", self.tracectl("check", self.folder / "step.trace").out)
        self.assertRegex(page.ask(f"{steps}[0].querySelector('a.link').getAttribute('href')"), rf"^/timeline/{self.stream}\?from=\d+&to=\d+")

    def explained(self, page, link):
        """The sentence of the page that the link leads to."""
        page.follow(link)
        wait_until("it is explained", lambda: page.ask("document.body?.dataset.ready ?? 0") != 0)
        return page.ask("document.getElementById('sentence').textContent")

    def test_rows_of_reports_lead_to_why(self):
        for kind, table, column, words in (("tasks", "slowest", "task", r"task {} \(.*\) took [\d.]+ "), ("sched", "longest", "goroutine", r"(goroutine {} |task |region )"),
                                           ("block", "longest", "goroutine", r"(goroutine {} |task |region )"), ("block", "waiting_now", "goroutine", r"(goroutine {} |task |region )")):
            with self.subTest(kind=kind, table=table):
                page = browser.Page(self)
                page.open(f"{self.base}/#report={kind}")
                cell = f"document.querySelector('[data-table={table}] [data-column={column}]:has(a)')"
                page.ask("document.getElementById('reports')?.scrollIntoView()")
                wait_until("the rows are listed", lambda: page.draw() and page.ask(f"{cell} !== null"))
                self.assertEqual(page.ask(f"{cell}.querySelector('a').textContent"), "why")
                subject = page.ask(f"{cell}.dataset.value")
                self.assertRegex(self.explained(page, f"{cell}.querySelector('a')"), "^" + words.format(subject))
                self.quiet(page)

    def test_neighbours_on_the_axis_differ(self):
        page = self.page(self.whole())
        texts = page.ask("""import("/timeline_draw.js").then(({ tickText }) => [1, 2, 5, 10, 50, 1e2, 2e3, 5e4, 1e5, 2e6, 5e6, 1e7, 5e8, 2e9].map((step) =>
          [tickText(586e6, step), tickText(586e6 + step, step), tickText(586e6 + 2 * step, step)]))""")
        for neighbours in texts:
            self.assertEqual(len(set(neighbours)), 3, neighbours)
        self.assertEqual(texts[6], ["+586.000 ms", "+586.002 ms", "+586.004 ms"])
        self.quiet(page)

    def test_a_task_leads_to_why(self):
        page = self.page(self.whole())
        task = self.query("SELECT task, type, from_ns, until_ns, wall_ns FROM tasks WHERE until_ns ORDER BY until_ns-from_ns DESC")[0]
        x, y = self.place(page, self.begin + (task["until_ns"] - task["from_ns"]) // 2, "tasks")
        page.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        wait_until("the tip names it", lambda: re.fullmatch(rf"task {task['type']}, [\d.]+ m?s; click: why", page.ask("document.getElementById('tip').textContent")))
        self.click(page, x, y)
        wait_until("the task is named", lambda: page.ask("document.getElementById('detail-title').textContent") == f"Task {task['task']} {task['type']}")
        line = page.ask("[...document.querySelectorAll('#detail-body .copy')].find((b) => b.textContent === 'copy why command').dataset.copies")
        page.screenshot("timeline-task")
        sentence = self.explained(page, "document.querySelector('#detail-body .why-link')")
        self.assertRegex(sentence, rf"^task {task['task']} \({task['type']}\) took ")
        self.assertEqual(self.run_line(line).splitlines()[0].split(" took ")[0], sentence.split(" took ")[0])
        self.quiet(page)

    def test_why_says_why_there_is_no_answer(self):
        page = browser.Page(self)
        for query, words in (("?task=987654321", "no task"), ("?slow=%3Cb%3E", 'no complete task or region "<b>"'), ("", "one of task, slow, goroutine with ns")):
            page.open(f"{self.base}/why/{self.stream}{query}")
            wait_until("it says so", lambda: words in page.ask("document.getElementById('sentence')?.textContent ?? ''"))
            self.assertEqual(page.ask("document.querySelectorAll('#sentence b').length"), 0)
        page.close()

    def test_a_link_opens_the_same_picture(self):
        page = self.page()
        newest = page.ask("location.search")
        self.assertRegex(newest, r"^\?from=\d+&to=\d+$")
        before = self.ready(page)
        for key in ("w", "w", "d"):
            page.ask(f"document.getElementById('rows').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))")
        wait_until("it has moved", lambda: page.draw() and page.ask("location.search") != newest and self.ready(page) >= before)
        moved = page.ask("location.search")
        begin, end = map(int, re.findall(r"\d+", moved))
        page.open(f"{self.base}/timeline/{self.stream}{moved}")
        self.wait_ready(page)
        self.assertEqual(page.ask("location.search"), moved)
        self.assertLess(end - begin, SECOND)
        self.quiet(page)

    def test_groups_open_and_all_is_reached_by_keys_and_names(self):
        page = self.page(self.whole())
        entry = page.ask("[...document.querySelectorAll('#labels button')].map((b) => b.textContent).find((t) => t.startsWith('main.'))")
        page.ask(f"[...document.querySelectorAll('#labels button')].find((b) => b.textContent === {json.dumps(entry)}).click()")
        wait_until("its goroutines are shown", lambda: page.draw() and any(re.match(rf"G \d+ {re.escape(entry)}$", text) for text, _ in self.labels(page)))
        self.assertEqual(page.ask(f"[...document.querySelectorAll('#labels button')].find((b) => b.textContent === {json.dumps(entry)}).getAttribute('aria-expanded')"), "true")
        page.screenshot("timeline-open")
        self.quiet(page)

    def test_it_fits_and_can_be_read(self):
        for name, look in {"wide": {"width": 2560, "height": 1200}, "laptop": {"width": 1280}, "dark": {"width": 1280, "scheme": "dark"},
                           "phone": {"width": 360, "height": 740}}.items():
            with self.subTest(name):
                page = self.page(self.whole(), **look)
                page.screenshot(f"timeline-{name}")
                self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), look["width"])
                contrast, where = page.ask(CONTRAST)
                self.assertGreaterEqual(contrast, 4.5, where)
                colours = page.ask("(() => { const c = document.getElementById('picture'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                                   "const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })()")
                self.assertGreater(colours, 8, "something is drawn")
                self.quiet(page)

    def test_hostile_addresses_say_why_there_is_nothing(self):
        page = browser.Page(self)
        page.open(f"{self.base}/timeline/{'0' * 32}")
        wait_until("it says so", lambda: "no stream has this id" in page.ask("document.body?.innerText ?? ''"))
        page.open(f"{self.base}/timeline/<script>alert(1)</script>")
        wait_until("it says so", lambda: "is not an id of 32" in page.ask("document.body?.innerText ?? ''"))
        page.close()

    def test_the_page_leads_to_it_from_streams_and_files(self):
        page = browser.Page(self)
        page.open(self.base)
        wait_until("the stream is listed", lambda: page.ask("document.querySelectorAll('#stream-rows .go a.link').length") == 1)
        page.ask("document.querySelector('#stream-rows button.link').click()")
        wait_until("its segments are listed", lambda: page.ask("document.querySelectorAll('#segment-rows a.link').length") > 0)
        href = page.ask("document.querySelector('#segment-rows a.link').href")
        page.follow("document.querySelector('#stream-rows .go a.link')")
        self.wait_ready(page)
        self.assertIn(self.stream, page.ask("location.pathname"))
        page.open(href)
        self.wait_ready(page)
        begin, end = map(int, re.findall(r"(?:from|to)=(\d+)", page.ask("location.search")))
        self.assertLess(begin, self.end)
        self.assertGreater(end, self.begin)
        self.quiet(page)


class TimelinePageAlone(TimelinePageCase):
    """Cases that send more traces to the collector."""

    def setUp(self):
        super().setUp()
        serve_page(self, self)

    def test_another_stream_stands_below_by_wall_clock(self):
        self.collector.send(self.trace("g26-gens"), "till", "two")
        other = self.collector.json_lines("list", "--service", "till")[0]["stream"]
        page = self.page(self.whole())
        rows = len(self.labels(page))
        page.ask("document.getElementById('beside').dispatchEvent(new Event('focus'))")
        wait_until("the others are listed", lambda: page.ask(f"[...document.getElementById('beside').options].some((o) => o.value === '{other}')"))
        after = self.ready(page)
        page.ask(f"(() => {{ const s = document.getElementById('beside'); s.value = '{other}'; s.dispatchEvent(new Event('change')); }})()")
        self.wait_ready(page, after)
        self.assertIn(f"beside={other}", page.ask("location.search"))
        page.ask("document.getElementById('rows').scrollTop = 1e6")
        wait_until("its lanes are shown", lambda: page.draw() and any(text == "till / two ✕" for text, _ in self.labels(page)))
        # The second trace is the same: its P did what the first one's did.
        at = self.begin + (self.end - self.begin) // 3
        below = [top for text, top in self.labels(page) if text == "P 0"][-1]
        left, right = page.ask("(() => { const b = document.getElementById('rows'); return [b.getBoundingClientRect().left + 220, b.getBoundingClientRect().left + b.clientWidth]; })()")
        self.click(page, left + (at - self.begin) / (self.end - self.begin) * (right - left), below + 10)
        wait_until("the span is explained", lambda: page.ask("document.getElementById('detail-title').textContent").startswith("Goroutine "))
        self.assertIn(other, page.ask("document.querySelector('#detail-body .copy').dataset.copies"))
        page.screenshot("timeline-beside")
        # A link opens the same; a click on its name takes it away.
        link = page.ask("location.href")
        self.quiet(page)
        page = browser.Page(self)
        page.open(link)
        self.wait_ready(page)
        page.ask("document.getElementById('rows').scrollTop = 1e6")
        drop = "[...document.querySelectorAll('#labels button')].find((b) => b.textContent === 'till / two ✕')"
        wait_until("it is there", lambda: page.draw() and page.ask(f"{drop} !== undefined"))
        page.ask(f"{drop}.click()")
        wait_until("it has left", lambda: page.draw() and page.ask(f"{drop} === undefined") and "beside" not in page.ask("location.search"))
        page.ask("document.getElementById('rows').scrollTop = 0")
        wait_until("the rest is as before", lambda: page.draw() and len(self.labels(page)) == rows)
        self.quiet(page)

    def test_an_alert_in_the_terminal_leads_to_it(self):
        out = self.folder / "tail.out"
        tail = self.spawn("tail", TRACECTL, "tail", "--server", self.collector.to, "--certs", self.certs, "--kind", "alert", "-n", "1", stdout=open(out, "wb"))
        self.collector.ask("trigger", "add", "some WHEN goroutines.alive > 2 DO alert")
        # A tail hears nothing of what comes before it is there.
        wait_until("tail hears", lambda: self.collector.send(self.trace("g26-gens"), "shop", "alerted") and tail.poll() is not None)
        self.assertEqual(tail.returncode, 0)
        [link] = re.findall(r"http://\S+", out.read_text())
        page = browser.Page(self)
        page.open(link)
        self.wait_ready(page)
        begin, end = map(int, re.findall(r"(?:from|to)=(\d+)", page.ask("location.search")))
        segments = self.collector.json_lines("list", "--service", "shop", "--instance", "alerted")
        self.assertTrue(any(s["first_wall_ns"] < end and s["last_wall_ns"] > begin for s in segments), (begin, end, segments))
        self.assertGreater(len(self.labels(page)), 0)
        self.quiet(page)
