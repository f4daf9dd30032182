# SPDX-License-Identifier: Apache-2.0
"""The page in a headless Chromium: its figures are tracectl's, it fits small and large screens in both
schemes, and it complains of nothing."""
import csv
import json
import os
import re
import urllib.request

import browser
from harness import BUILD, DEADLINE, FULL, Case, Collector, wait_until
from served import Served
from test_local_page import LocalPage

# The browser logs this for the first request about a stream that has no ordered generation yet; the page shows it,
# too.
TOO_EARLY = re.compile(r"network: .* 404 .*/api/v1/report/\w+\?.*\bstream=[0-9a-f]{32}$")
READY = "document.querySelectorAll('#stream-rows tbody tr').length"

# Text and what lies behind it, of everything that can be read: the lowest contrast, as WCAG counts it.
CONTRAST = """(() => {
  const remember = (of) => { const known = new Map(); return (key) => { if (!known.has(key)) known.set(key, of(key)); return known.get(key); }; };
  const parse = remember((c) => (c.match(/[\\d.]+/g) || []).map(Number));
  const light = remember((c) => parse(c).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0));
  const ground = remember((node) => {
    if (!node) return "rgb(255, 255, 255)";
    const c = getComputedStyle(node).backgroundColor;
    return parse(c).length === 3 || parse(c)[3] === 1 ? c : ground(node.parentElement);
  });
  const ratioOf = remember((node) => {
    if (!node.checkVisibility() || node.closest("script,.unseen,.skip")) return 99;
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
  let worst = [99, ""];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (walk.currentNode.textContent.trim() && ratioOf(node) < worst[0])
      worst = [ratioOf(node), `${node.className || node.tagName}: ${walk.currentNode.textContent}`];
  }
  return worst;
})()"""


def setUpModule():
    browser.for_module()


def send_two(collector):
    collector.send(collector.case.trace("g26-gens"), "shop", "one")
    collector.send(collector.case.trace("g26-cgo"), "till", "two")
    wait_until("every generation is ordered", lambda: all(row["analysis"] == "ok" for row in collector.json_lines("list")))


class PageCase(Case):
    """self.collector and self.base are of the class or of the case."""

    def page(self, before=""):
        page = browser.Page(self, before)
        page.open(self.base)
        return page

    def page_of_both(self):
        page = self.page()
        wait_until("both streams are shown", lambda: page.ask(READY) == 2)
        return page

    def figure(self, page, selector):
        value = page.ask(f"document.querySelector({json.dumps(selector)})?.dataset.value")
        return None if value is None else float(value)

    def quiet(self, page):
        """The page complained of nothing, and asked nobody but the collector."""
        self.assertEqual([c for c in page.complaints if not TOO_EARLY.match(c)], [])
        self.assertEqual({url for url in page.asked() if not url.startswith((self.base + "/", "about:"))}, set())
        page.close()

    def choose(self, page, **choices):
        page.ask(f"""for (const [id, value] of Object.entries({json.dumps(choices)})) {{
          const s = document.getElementById(id); s.value = value; s.dispatchEvent(new Event('change')); }}""")

    def type_filter(self, page, text):
        page.ask(f"(() => {{ const f = document.getElementById('filter'); f.value = {json.dumps(text)};"
                 " f.dispatchEvent(new Event('input')); })()")

    def shown_report(self, page):
        """The figures and tables that the page shows, by stream: the numbers behind what is read."""
        return page.ask("""Object.fromEntries([...document.querySelectorAll('.report')].map((report) => [report.dataset.stream, {
          kind: report.dataset.kind,
          figures: Object.fromEntries([...report.querySelectorAll('[data-figure]')].map((f) => [f.dataset.figure, f.querySelector('dd').dataset.value])),
          tables: Object.fromEntries([...report.querySelectorAll('[data-table]')].map((table) => [table.dataset.table,
            [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((c) => [c.dataset.column, c.dataset.value ?? c.textContent])))])) }]))""")


class PageOfTwo(Served, PageCase):
    """A page over one collector with two streams, which does not change."""

    @classmethod
    def prepare(cls, host):
        cls.collector = Collector(host)
        cls.base = f"http://{cls.collector.ready['http']}"
        send_two(cls.collector)

    def test_the_chart_begins_before_the_page_was_opened(self):
        page = self.page()
        xs, rows = page.ask("""import("/model.js").then(({ Model }) => {
          const model = new Model();
          const stw = [{ id: "/stw/gc", reason: "GC", count: 2, total_ns: 5e6, max_ns: 4e6, p99_ns: 4e6 }];
          model.remember({ since: 1000, until: 1003, causes: ["/stw/gc"],
                           streams: [{ stream: "a", service: "shop", instance: "one" }],
                           stops: [[1001, 0, 0, 4e6], [1003, 0, 0, 1e6]] });
          const overview = { wall_ns: 1003.5e9, streams: [{ stream: "a", service: "shop", instance: "one", bytes: 1,
                             events: 1, blocked_now: 0, blocked_idle: 0, stw }], blocked: [] };
          model.take(overview);
          return model.series(model.causes(overview.streams));
        })""")
        self.assertEqual(xs, [1000, 1001, 1002, 1003, 1003.5])
        self.assertEqual(rows, [[0, 4, 0, 1, 0]])
        self.quiet(page)

    def test_its_figures_are_tracectls(self):
        page = self.page_of_both()
        wait_until("they are closed", lambda: page.ask(
            "[...document.querySelectorAll('.state')].every((s) => s.dataset.state === 'closed')"))

        status = [s for s in self.collector.json_lines("status") if s["type"] == "stream"]
        for stream in status:
            row = f"tr[data-stream='{stream['stream']}'] "
            for name in ("events", "bytes", "generations", "lost_generations"):
                self.assertEqual(self.figure(page, row + f".figure-{name}"), stream[name], f"{stream['service']}: {name}")
        self.assertEqual(self.figure(page, "#tile-live"), 0)
        self.assertEqual(self.figure(page, "#tile-lost"), sum(s["lost_generations"] for s in status))

        causes = {}
        for report in self.collector.json_lines("report", "stw"):
            for reason in report["tables"]["by_reason"]:
                cause = causes.setdefault(reason["id"], {"count": 0, "total_ns": 0, "max_ns": 0, "p99_ns": 0})
                cause["count"] += reason["stopped"]["count"]
                cause["total_ns"] += reason["stopped"]["total_ns"]
                for name in ("max_ns", "p99_ns"):
                    cause[name] = max(cause[name], reason["stopped"][name])
        self.assertGreater(len(causes), 2)
        self.assertEqual(page.ask("document.querySelectorAll('#stops tbody tr').length"), len(causes))
        for cause, figures in causes.items():
            for name, value in figures.items():
                self.assertEqual(self.figure(page, f"tr[data-cause='{cause}'] .figure-{name}"), value, f"{cause} {name}")
        self.quiet(page)

    def test_every_figure_leads_to_its_segments(self):
        page = self.page_of_both()
        for button, service in (("#stream-rows tr:first-child .go button", "shop"), ("#stops tbody .go button", None)):
            page.ask(f"document.querySelector('{button}').click()")
            wait_until("segments are listed", lambda: page.ask("document.querySelectorAll('#segment-rows a[download]').length"))
            links = page.ask("[...document.querySelectorAll('#segment-rows a[download]')].map((a) => a.href)")
            known = {s["id"]: s for s in self.collector.json_lines("list")}
            listed = [known[int(link.rsplit("/", 1)[1])] for link in links]
            if service:
                self.assertEqual({s["service"] for s in listed}, {service})
                self.assertEqual(sum(s["last_gen"] - s["first_gen"] + 1 for s in listed), 26)
            with urllib.request.urlopen(links[0], timeout=DEADLINE) as answer:
                self.assertIn("attachment", answer.headers["Content-Disposition"])
                self.assertEqual(answer.headers["ETag"], f'"{listed[0]["hash"]}"')
                self.assertEqual(len(answer.read()), listed[0]["bytes"])
            page.press("Escape")
            wait_until("the dialog is closed", lambda: not page.ask("document.getElementById('segments').open"))
        self.quiet(page)

    def test_it_fits_small_and_large_screens_in_both_schemes(self):
        page = self.page_of_both()
        grounds = set()
        for scheme in ("light", "dark"):
            for width in (360, 768, 1920):
                with self.subTest(scheme=scheme, width=width):
                    page.look(width, 1080, scheme)
                    wait_until("the chart has the width it is given", lambda: page.ask(
                        "document.querySelector('.uplot').clientWidth === document.getElementById('chart').clientWidth"))
                    self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), width)
                    self.assertEqual(page.ask("[...document.querySelectorAll('#stream-rows .go')].filter((n) => n.scrollWidth > n.clientWidth).length"), 0)
                    self.assertEqual(page.ask("[...document.querySelectorAll('main button')].filter((b) => b.checkVisibility()"
                                              " && b.getBoundingClientRect().right > innerWidth).length"), 0)
                    wait_until("no table is cut", lambda: page.draw() and page.ask("[...document.querySelectorAll('.scroll')].every((n) =>"
                                                                   " n.scrollWidth <= n.clientWidth)"))
                    ratio, where = page.ask(CONTRAST)
                    self.assertGreaterEqual(ratio, 4.5, where)
                    grounds.add(page.ask("getComputedStyle(document.body).backgroundColor"))
                    self.assertGreater(len(page.picture()), 10_000)
                    page.screenshot(f"{scheme}-{width}")
        self.assertEqual(len(grounds), 2)
        self.quiet(page)

    def test_it_can_be_used_without_a_mouse(self):
        page = self.page_of_both()
        reached = []
        for _ in range(60):
            page.press("Tab")
            reached.append(page.ask("`${document.activeElement.tagName} ${document.activeElement.id}"
                                    " ${document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent}`"))
            if "segments of shop" in reached[-1]:
                break
        self.assertIn("Skip to the streams", reached[0])
        self.assertIn("INPUT filter", reached[1])
        self.assertIn("segments of shop", reached[-1])
        page.press("Enter")
        wait_until("the dialog is open", lambda: page.ask("document.getElementById('segments').open"))
        page.press("Escape")
        wait_until("the focus is back", lambda: "segments of shop" in (
            page.ask("document.activeElement.getAttribute('aria-label')") or ""))
        unnamed = page.ask("[...document.querySelectorAll('button,a,input')].filter((n) => !(n.textContent.trim() ||"
                           " n.getAttribute('aria-label') || n.labels?.length)).length")
        self.assertEqual(unnamed, 0)
        self.quiet(page)

    def same_report(self, schema, shown, want):
        """Each figure, table, row and column of the schema is there, with tracectl's numbers."""
        def same(have, value, where):
            if isinstance(value, bool) or isinstance(value, str):
                value = str(value).lower() if isinstance(value, bool) else value
                self.assertEqual(have, value, where)
            else:
                self.assertEqual(None if have == "" else float(have), value, where)
        for field in schema["figures"]:
            value = want["figures"][field["name"]]
            same(shown["figures"][field["name"]], value["count"] if isinstance(value, dict) else value, field["name"])
        self.assertEqual(set(shown["tables"]), {table["name"] for table in schema["tables"]})
        for table in schema["tables"]:
            rows = want["tables"][table["name"]]
            self.assertEqual(len(shown["tables"][table["name"]]), len(rows), table["name"])
            for have, row in zip(shown["tables"][table["name"]], rows):
                for i, column in enumerate(table["columns"]):
                    value, where = row[column["name"]], f"{table['name']}.{column['name']}"
                    if row.get("other") and i == 0:
                        self.assertEqual(have[column["name"]] or "all other rows", "all other rows")
                    elif column["type"] == "stack":
                        for frame in value or []:
                            self.assertIn(frame["function"], have[column["name"]], where)
                    elif column["type"] == "distribution":
                        for part in ("count", "total_ns", "p50_ns", "p99_ns", "max_ns"):
                            same(have[f"{column['name']}.{part}"], value[part], f"{where}.{part}")
                    else:
                        same(have[column["name"]], value, where)

    def test_every_report_is_shown_by_its_schema(self):
        page = self.page_of_both()
        page.ask("document.getElementById('reports').scrollIntoView()")
        wait_until("a report is shown", lambda: self.shown_report(page))
        with urllib.request.urlopen(f"{self.base}/api/v1/reports", timeout=DEADLINE) as answer:
            schemas = json.loads(answer.read())
        kinds = [schema["name"] for schema in schemas["reports"]]
        self.assertLessEqual({"syscall", "stw"}, set(kinds))
        self.assertEqual(page.ask("[...document.getElementById('report-kind').options].map((o) => o.value)"), kinds)
        streams = {s["service"]: s["stream"] for s in self.collector.json_lines("status") if s["type"] == "stream"}
        wants = {(r["kind"], r["service"], window): r for window in ("all", "10s") for r in self.collector.json_lines("report", "all", "--window", window)}
        both = [(service, window) for window in ("all", "10s") for service in streams]
        looks = [("light", 360), ("light", 768), ("light", 1280), ("dark", 1920)]
        for i, look in enumerate(looks):
            page.look(look[1], 1080, look[0])
            wait_until("it has the width it is given", lambda: page.ask("innerWidth") == look[1])
            for j, schema in enumerate(schemas["reports"]):  # each on a phone, and on one of the wider screens
                if FULL or i in (0, 1 + j % 3):
                    service, window = both[(i + j) % 4 if FULL else j % 4 if i == 0 else 3 - j % 4]
                    with self.subTest(kind=schema["name"], service=service, window=window, look=look):
                        self.expect_report(page, schema, streams[service], window, wants[schema["name"], service, window])
                        self.expect_report_fits(page, look[1])
                        page.screenshot(f"report-{schema['name']}-{look[0]}-{look[1]}", whole=True)
        self.quiet(page)

    def expect_report(self, page, schema, stream, window, want):
        self.choose(page, **{"report-kind": schema["name"], "report-of": stream, "report-window": window})
        expected = [[stream, schema["name"], f"{want['events']:,} events"]]
        wait_until("it is shown", lambda: page.ask("""[...document.querySelectorAll('.report')].map((r) => [r.dataset.stream, r.dataset.kind,
          /[\\d,]+ events/.exec(r.querySelector('h3').textContent)?.[0]])""") == expected)
        self.same_report(schema, self.shown_report(page)[stream], want)

    def expect_report_fits(self, page, width):
        self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), width)
        wait_until("no table is cut", lambda: page.draw() and page.ask(
            "[...document.querySelectorAll('.report .scroll')].every((n) => n.scrollWidth <= n.clientWidth)"))
        ratio, where = page.ask(CONTRAST)
        self.assertGreaterEqual(ratio, 4.5, where)

    def test_rows_are_chosen_ordered_and_copied(self):
        page = self.page_of_both()
        stream = next(s["stream"] for s in self.collector.json_lines("status") if s["type"] == "stream" and s["service"] == "shop")
        page.ask("document.getElementById('reports').scrollIntoView()")
        self.choose(page, **{"report-kind": "sched", "report-of": stream})
        table = "document.querySelector('.report [data-table=by_entry]')"
        tools = f"{table}.closest('.table').querySelector('.table-tools')"

        def cells(column):
            return page.ask(f"[...{table}?.querySelectorAll('tbody tr:not(.other) [data-column=\"{column}\"]') ?? []].map((c) => c.dataset.value)")
        report = self.collector.json_lines("report", "sched", "--stream", stream)[0]
        before = [row["entry"] for row in report["tables"]["by_entry"] if row["entry"]]
        self.assertGreater(len(before), 5)
        wait_until("all of it is shown", lambda: cells("entry") == before)
        for place, spread in (("[data-figure=latency] .note", report["figures"]["latency"]), ("[data-column='latency.count']", report["tables"]["by_entry"][0]["latency"])):
            said = page.ask(f"(() => {{ const n = document.querySelector(`.report ${{{json.dumps(place)}}}`); return n.title || n.textContent; }})()")
            self.assertRegex(said, rf"\bmin .*, p50 .*, max .*, quantiles ±{spread['error_share'] * 100:.3g} %")
        option = page.ask(f"[...{tools}.querySelector('select').options].find((o) => o.textContent === 'by latency max').value")
        page.ask(f"(() => {{ const s = {tools}.querySelector('select'); s.value = '{option}'; s.dispatchEvent(new Event('change')); }})()")
        longest = [int(value) for value in cells("latency.max_ns")]
        self.assertEqual((sorted(longest, reverse=True), sorted(cells("entry"))), (longest, sorted(before)))
        page.ask("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        copy = f"[...{tools}.querySelectorAll('button')].find((b) => b.textContent === 'copy as CSV')"
        page.ask(f"(() => {{ const s = {tools}.querySelector('select'); s.value = ''; s.dispatchEvent(new Event('change')); }})()")
        self.assertEqual(cells("entry"), before)
        page.ask(f"{copy}.click()")
        copied = wait_until("it is copied", lambda: page.ask("window.copied"))
        printed = self.collector.ask("report", "sched", "--stream", stream, "--csv", "--table", "by_entry").out
        self.assertEqual(list(csv.reader(copied.splitlines())), [row[3:] for row in csv.reader(printed.splitlines())])
        page.ask(f"(() => {{ const f = {tools}.querySelector('input'); f.value = 'MAIN.'; f.dispatchEvent(new Event('input')); }})()")
        self.assertEqual(cells("entry"), [entry for entry in before if "main." in entry])
        self.assertEqual(page.ask(f"{table}.querySelectorAll('tbody .other').length"), 0)
        self.quiet(page)

    def test_a_table_with_stacks_has_a_flame_graph(self):
        """Each frame is as wide as the sum of the rows whose stacks begin so."""
        page = self.page_of_both()
        stream = next(s["stream"] for s in self.collector.json_lines("status") if s["type"] == "stream" and s["service"] == "shop")
        page.ask("document.getElementById('reports').scrollIntoView()")
        wait_until("a report is shown", lambda: self.shown_report(page))
        self.choose(page, **{"report-kind": "block", "report-of": stream, "report-window": "all"})
        # The report that was shown before may have a table of this name, too.
        wait_until("it is shown", lambda: page.ask(f"document.querySelector('.report[data-kind=block][data-stream=\"{stream}\"] [data-table=by_stack] tbody tr') !== null"))
        rows = self.collector.json_lines("report", "block", "--service", "shop", "--window", "all")[0]["tables"]["by_stack"]
        table = "document.querySelector('.report [data-table=by_stack]').closest('.table')"
        page.ask(f"{table}.querySelector('.flame-button').click()")
        shown = wait_until("frames are drawn", lambda: page.draw() and page.ask(
            f"[...{table}.querySelectorAll('.flame-rows button')].map((b) => [b.textContent, Number(b.dataset.depth), Number(b.dataset.total), b.getBoundingClientRect().width])"))
        weight = next(name for name, value in rows[0].items() if isinstance(value, dict))
        sums = {}
        for row in rows:
            names = ["all other rows"] if row.get("other") else [frame["function"] for frame in reversed(row["stack"])] or ["stack unknown"]
            for depth in range(len(names) + 1):
                place = ("all", *names[:depth])
                sums[place] = sums.get(place, 0) + row[weight]["total_ns"]
        whole = sums["all",]
        self.assertEqual(shown[0][:3], ["all", 0, whole])
        wanted = sorted((place[-1], len(place) - 1, total) for place, total in sums.items() if total / whole >= 0.002)
        self.assertEqual(sorted((name, depth, total) for name, depth, total, _ in shown), wanted)
        for name, _, total, width in shown:
            self.assertAlmostEqual(width, shown[0][3] * total / whole, delta=1.5, msg=name)
        page.screenshot("flame", whole=True)
        name, depth, total, _ = next(frame for frame in shown if frame[1] == 2)
        page.ask(f"[...{table}.querySelectorAll('.flame-rows button')].find((b) => b.dataset.depth === '2').click()")
        width, all_of_it = page.ask(f"(() => {{ const b = [...{table}.querySelectorAll('.flame-rows button')]; "
                                    "return [b.find((x) => x.dataset.depth === '2').getBoundingClientRect().width, b[0].getBoundingClientRect().width]; })()")
        self.assertAlmostEqual(width, all_of_it, delta=1.5)
        self.quiet(page)

    def test_the_address_keeps_filter_and_sort(self):
        page = self.page_of_both()
        names = "[...document.querySelectorAll('#stream-rows tbody th')].map((n) => n.textContent)"
        sizes = {row["service"]: row["bytes"] for row in self.collector.json_lines("status") if row["type"] == "stream"}
        head = "document.querySelector('#stream-rows th[data-sort=bytes]')"
        for sort, want in (("descending", sorted(sizes, key=sizes.get, reverse=True)), ("ascending", sorted(sizes, key=sizes.get)),
                           (None, ["shop", "till"])):
            page.ask(f"{head}.querySelector('button').click()")
            self.assertEqual(page.ask(f"{head}.getAttribute('aria-sort')"), sort)
            self.assertEqual(page.ask(names), want)
            self.assertEqual(page.ask("location.hash"), {"descending": "#sort=bytes&descending=1", "ascending": "#sort=bytes"}.get(sort, ""))
        self.type_filter(page, "till")
        page.ask("document.querySelector('#stream-rows th[data-sort=service] button').click()")
        self.assertEqual(page.ask("location.hash"), "#filter=till&sort=service")
        address = page.ask("location.href")
        page.open("about:blank")
        page.open(address)
        wait_until("the filter is as it was", lambda: page.ask(names) == ["till"])
        self.assertEqual(page.ask("document.getElementById('filter').value"), "till")
        self.assertEqual(page.ask("document.querySelector('#stream-rows th[data-sort=service]').getAttribute('aria-sort')"), "ascending")
        page.ask("location.hash = '#filter=shop'")
        wait_until("a link in the page is followed", lambda: page.ask(names) == ["shop"])
        self.quiet(page)

    def test_a_filter_narrows_everything(self):
        page = self.page_of_both()
        self.type_filter(page, "TILL")
        wait_until("one stream is left", lambda: page.ask(READY) == 1)
        till = next(r for r in self.collector.json_lines("report", "stw") if r["service"] == "till")
        self.assertEqual(page.ask("document.querySelectorAll('#stops tbody tr').length"), len(till["tables"]["by_reason"]))
        self.quiet(page)

    def test_the_policy_holds_against_a_script_in_the_page(self):
        page = self.page()
        wait_until("the page is there", lambda: page.ask("document.getElementById('connection')?.dataset.state"))
        page.ask("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))")
        page.ask("document.body.append(Object.assign(document.createElement('div'), { innerHTML: '<img src=x onerror=\"window.ran = 2\">' }))")
        page.ask("document.body.append(Object.assign(document.createElement('script'), { src: 'data:text/javascript,window.ran=3' }))")
        wait_until("the browser has complained of each", lambda: page.ask("1") and sum("Content Security Policy" in c for c in page.complaints) == 3)
        self.assertIsNone(page.ask("window.ran"))
        page.close()


class Page(PageCase):
    """Each of a collector of its own."""

    def setUp(self):
        super().setUp()
        self.serve()

    def serve(self, *settings, **options):
        self.collector = Collector(self, *settings, **options)
        self.base = f"http://{self.collector.ready['http']}"

    def test_through_tracectl_page_it_lives_too(self):
        """The link lets the browser in; events flow; a collector that restarts is shown again without a reload."""
        local = LocalPage(self, self.collector)
        page = browser.Page(self)
        page.open(local.base + local.link)
        wait_until("the link has led to the page", lambda: page.path() == "/" and page.ask("location.href") == local.base + "/")
        send_two(self.collector)
        state = "document.getElementById('connection').dataset.state"
        wait_until("both streams are shown, live", lambda: page.ask(READY) == 2 and page.ask(state) == "good")
        self.assertEqual(page.ask("document.cookie"), "")
        self.collector.kill()
        wait_until("it says so", lambda: page.ask(state) != "good")
        self.collector.start()
        wait_until("it is live again", lambda: page.ask(state) == "good" and page.ask(READY) == 2)
        self.collector.kill()
        page.open(f"{local.base}/archive#rows")  # with a fragment, whose refresh by <meta> is no reload
        wait_until("it says that there is no collector", lambda: page.ask_any("document.title") == "No collector")
        self.collector.start()
        wait_until("the page asks again by itself", lambda: page.ask_any("document.title") == "archive · tracecollect")
        self.assertEqual(page.ask("location.hash"), "#rows")
        page.open(local.base)
        wait_until("the page is back", lambda: page.ask(READY) == 2)
        other = browser.Tab(page.browser)  # another profile has no cookie
        self.addCleanup(other.end)
        page.browser.command("Page.navigate", other.session, url=local.base + local.link)
        said = wait_until("it is refused", lambda: page.browser.command("Runtime.evaluate", other.session, expression="document.body?.innerText", returnByValue=True)["result"].get("value"))
        self.assertIn("this link was used before", said)
        away = re.compile(r"network: .*(502|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|ERR_CONNECTION|ERR_CONTENT_LENGTH|404)")
        page.complaints = [c for c in page.complaints if not away.match(c)]
        self.base = local.base
        self.quiet(page)

    def test_rules_show_when_they_fired_last(self):
        page = self.page("const every = setInterval; setInterval = (what, ms) => every(what, Math.min(ms, 100));")  # it asks each five seconds
        self.collector.ask("trigger", "add", "many WHEN goroutines.alive > 2 DO alert")
        self.collector.ask("trigger", "add", "never WHEN goroutines.alive > 1000000 DO alert")
        send_two(self.collector)
        cell = "[...document.querySelectorAll('#trigger-rows tr')].find((r) => r.firstChild.textContent === '%s')?.querySelector('%s')"
        wait_until("the rule has fired for both", lambda: page.ask(f"Number({cell % ('many', '.number')}?.dataset.value)") == 2)
        self.assertEqual(page.ask(f"{cell % ('never', '.number')}.textContent"), "0")
        self.assertRegex(page.ask(f"{cell % ('many', '.words')}.textContent"), r"^goroutines\.alive is \d+$")
        self.assertEqual(page.ask(f"{cell % ('never', 'a')} === null"), True)
        self.assertEqual(page.ask("document.querySelectorAll('#firing-rows tr').length"), 0)
        page.ask("document.querySelector('#firings summary').click()")
        wait_until("the history is there", lambda: page.ask("document.querySelectorAll('#firing-rows tr').length") == 2)
        firing = "[...document.querySelector('#firing-rows tr').cells].map((c) => c.textContent).slice(1)"
        self.assertRegex(" ".join(page.ask(firing)), r"^many \S+ / \S+ goroutines\.alive is \d+ timeline$")
        self.collector.ask("trigger", "remove", "never")
        wait_until("the rule has gone", lambda: page.ask("document.querySelectorAll('#trigger-rows tr').length") == 1)
        page.follow(cell % ("many", "a"))
        wait_until("its picture is drawn", lambda: page.ask("document.body?.dataset.ready ?? 0") != 0)
        self.quiet(page)

    def test_a_figure_of_tasks_leads_to_why_the_slowest_took_so_long(self):
        """From the finding, the alert, the rule, its history: each is one click away, or two."""
        self.collector.stop()
        self.serve("alert.task=500ms")
        page = self.page("const every = setInterval; setInterval = (what, ms) => every(what, Math.min(ms, 100));")
        self.collector.ask("trigger", "add", "slow WHEN tasks.latency.max > 500ms DO alert")
        wait_until("it listens", lambda: page.ask("document.getElementById('connection')?.dataset.state") == "good")
        self.collector.send(self.trace("g26-gens"), "shop")
        page.ask("document.querySelector('#firings summary').click()")
        links = [f"document.querySelector('#{where} a.why-link')" for where in ("findings-open", "alerts", "trigger-rows", "firing-rows")]
        for link in links:
            wait_until(f"{link} is there", lambda link=link: page.ask(f"{link} !== null"))
        page.screenshot("why-links", whole=True)
        for address in [page.ask(f"{link}.href") for link in links]:
            with self.subTest(address=address):
                page.open(address)
                wait_until("it is explained", lambda: page.ask("document.body?.dataset.ready ?? 0") != 0)
                self.assertRegex(page.ask("document.getElementById('sentence').textContent"), r"^task \d+ \(\w+[ \w]*\) took [\d.]+ (s|ms): ")
        self.quiet(page)

    def test_who_opens_the_page_later_sees_what_was_found(self):
        """Also on the page of the service, and after a restart; what has ended or is muted is one click away."""
        self.collector.stop()
        self.serve("alert.stw=1us", "findings.quiet=1h")
        send_two(self.collector)
        rows = wait_until("there are findings", lambda: self.collector.json_lines("findings", "--service", "shop"))
        wait_until("they are written", lambda: (self.collector.state / "findings").exists())
        self.collector.restart()
        self.base = f"http://{self.collector.ready['http']}"
        entry = "document.querySelector('#findings-open [data-finding=\"%s\"]')"
        page = browser.Page(self, "const every = setInterval; setInterval = (what, ms) => every(what, Math.min(ms, 100));")
        for path in "/", "/service/shop":
            page.open(self.base + path)
            wait_until("it is the first of the page", lambda: page.ask("document.querySelector('main')?.firstElementChild.checkVisibility()"))
            self.assertEqual(page.ask("[...document.querySelector('main').children].slice(0, 2).map((n) => n.id)"), ["summary", "findings"])
            wait_until("its findings are there", lambda: page.ask("document.querySelectorAll('#findings-open [data-finding]').length"))
            shown = page.ask("[...document.querySelectorAll('#sentences .what')].map((n) => n.textContent)")
            said = self.collector.json_lines("report", *(("--service", "shop") if path != "/" else ()))
            self.assertEqual(shown, [sentence["text"] for sentence in said])
            self.assertIn("world stopped for", " ".join(shown))
            self.assertEqual(page.ask("document.querySelector('#sentences .copy').dataset.copies"), next(s["more"] for s in said if s["more"]))
            for row in rows:
                self.assertRegex(page.ask(f"{entry % row['id']}.textContent"), rf"^long stop *shop.*world stopped for .*since .*, seen .*, at most [\d.]+ [µm]s; {row['instances'][-1]}")
        ident = rows[0]["id"]
        self.collector.ask("findings", "mute", ident, "--for", "1h", "--reason", "we know")
        wait_until("it is muted", lambda: page.ask(f"{entry % ident} === null"))
        page.ask("document.querySelector('#findings-past summary').click()")
        self.assertRegex(page.ask(f"document.querySelector('#findings-past-list [data-finding=\"{ident}\"]').textContent"), r"; muted until .*: we know$")
        page.follow(f"{entry % rows[1]['id']}.querySelector('a.link')")
        wait_until("its picture is drawn", lambda: page.ask("document.body?.dataset.ready ?? 0") != 0)
        self.assertEqual([c for c in page.complaints if "/api/v1/report/" not in c], [], "the streams have ended: there are no live reports")
        page.close()

    def test_calls_that_are_blocked_are_shown_with_their_stack(self):
        # A trace that is still being written: its stream is live, and so are its calls.
        growing = self.folder / "growing.trace"
        os.mkfifo(growing)
        self.spawn("send", BUILD / "bin/tracectl", "send", growing, "--to", self.collector.to, "--certs", self.certs,
                   "--service", "shop", "--instance", "one", "--no-progress")
        writer = open(growing, "wb", buffering=0)
        self.addCleanup(writer.close)
        writer.write(self.trace("g26-gens").read_bytes()[:150_000])
        page = self.page()
        wait_until("calls are blocked", lambda: page.ask("document.querySelectorAll('#blocked .call').length"))

        def same():
            report = self.collector.json_lines("report", "syscall", "--window", "10s", "--top", "0")
            return (self.figure(page, "#tile-live") == 1 and report and page.ask(
                "[...document.querySelectorAll('#blocked .call .age')].map((n) => Number(n.dataset.value)).sort()") ==
                sorted((call["age_ns"] for call in report[0]["tables"]["blocked_now"]), key=str))
        wait_until("the page shows the calls that tracectl does", same)
        call = self.collector.json_lines("report", "syscall", "--window", "10s", "--top", "0")[0]["tables"]["blocked_now"][0]
        text = page.ask("document.querySelector('#blocked').textContent")
        self.assertIn(call["stack"][0]["function"], text)
        self.assertIn(f"goroutine {call['goroutine']}", text)
        # No more data comes, as from a flight recorder after its snap: goroutines that were blocked then are not blocked "now". The page's
        # clock is moved on by a minute.
        page.ask("(() => { const parse = JSON.parse; JSON.parse = (text) => { const said = parse(text);"
                 " if (said.streams && said.wall_ns) said.wall_ns += 60e9; return said; }; })()")
        wait_until("the calls say of when they are", lambda: page.ask(
            "[...document.querySelectorAll('#blocked .call')].every((n) => n.classList.contains('old')"
            " && n.querySelector('.seen').textContent.startsWith('as of '))"))
        self.assertEqual(self.figure(page, "#tile-blocked"), 0)
        self.quiet(page)

    def test_a_report_follows_a_live_stream(self):
        growing = self.folder / "growing.trace"
        os.mkfifo(growing)
        self.spawn("send", BUILD / "bin/tracectl", "send", growing, "--to", self.collector.to, "--certs", self.certs,
                   "--service", "shop", "--instance", "one", "--no-progress")
        writer = open(growing, "wb", buffering=0)
        self.addCleanup(writer.close)
        trace = self.trace("g26-gens").read_bytes()
        writer.write(trace[:100_000])
        page = self.page()
        wait_until("the stream is shown", lambda: page.ask(READY) == 1)
        page.ask("document.getElementById('reports').scrollIntoView()")
        calls = "Number(document.querySelector('.report [data-figure=calls] dd')?.dataset.value ?? 0)"
        before = wait_until("its report is shown", lambda: page.ask(calls))
        page.ask("document.querySelector('.report [data-table=by_stack] details').open = true")
        writer.write(trace[100_000:])
        wait_until("it has more calls", lambda: page.ask(calls) > before)
        self.assertTrue(page.ask("[...document.querySelectorAll('.report details')].some((d) => d.open)"), "an open stack stays open")
        self.quiet(page)

    def test_the_address_keeps_the_report(self):
        send_two(self.collector)
        self.collector.send(self.trace("g26-gens"), "shop", "three")
        page = self.page()
        wait_until("all streams are shown", lambda: page.ask(READY) == 3)
        page.ask("document.getElementById('reports').scrollIntoView()")
        wait_until("a report is shown", lambda: self.shown_report(page))
        self.choose(page, **{"report-of": "service shop", "report-kind": "stw"})
        both = "[...document.querySelectorAll('.report')].map((r) => [r.dataset.kind, r.querySelector('h3').textContent.split(' ', 3).join(' ')])"
        wait_until("the sum of both streams is shown", lambda: page.ask(both) == [["stw", "shop: 2 instances"]])
        address = page.ask("location.href")
        self.assertTrue(address.endswith("#report=stw&of=service+shop"), address)
        page.open("about:blank")
        page.open(address)
        wait_until("the page is there", lambda: page.ask(READY) == 3)
        page.ask("document.getElementById('reports').scrollIntoView()")
        wait_until("it shows the same", lambda: page.ask(both) == [["stw", "shop: 2 instances"]])
        self.type_filter(page, "till")
        wait_until("the filter narrows reports, too", lambda: page.ask("document.querySelector('.report h3').textContent").startswith("till / two"))
        self.type_filter(page, "payments")
        wait_until("and says so", lambda: "payments" in page.ask("document.getElementById('reports-empty').textContent"))
        self.quiet(page)

    def test_a_filter_narrows_alerts_and_empty_panels_say_why(self):
        self.collector.stop()
        self.serve("alert.stw=1ns", "alert.every=1ms", name="alerting")
        page = self.page()
        wait_until("an overview came", lambda: page.ask("document.getElementById('health')?.textContent") == "healthy")
        self.assertIn("No stream yet", page.ask("document.getElementById('streams-empty').textContent"))
        self.assertEqual(page.ask("document.getElementById('stops-empty').textContent"), "No stream yet.")
        send_two(self.collector)
        services = "[...new Set([...document.querySelectorAll('#alerts .who')].map((n) => n.textContent))].sort()"
        wait_until("alerts of both are shown", lambda: page.ask(services) == ["shop / one", "till / two"] and page.ask(READY) == 2)
        self.type_filter(page, "till")
        self.assertEqual(page.ask(services), ["till / two"])
        self.type_filter(page, "payments")
        self.assertEqual(page.ask(services), [])
        self.assertRegex(page.ask("document.getElementById('alerts-empty').textContent"), r"All \d+ alerts are from other services")
        for panel in ("streams", "stops", "blocked"):
            self.assertEqual(page.ask(f"document.getElementById('{panel}-empty').textContent"),
                             'No service or instance has "payments" in its name.')
            self.assertFalse(page.ask(f"document.getElementById('{panel}-empty').hidden"))
        self.type_filter(page, "")
        wait_until("both are back", lambda: page.ask(READY) == 2)
        streams = {s["service"]: s["stream"] for s in self.collector.json_lines("status") if s["type"] == "stream"}
        for who, href in page.ask("[...document.querySelectorAll('#alerts > li')].map((n) => [n.querySelector('.who').textContent, n.querySelector('a.link').getAttribute('href')])"):
            self.assertRegex(href, rf"^/timeline/{streams[who.split(' / ')[0]]}\?from=\d+&to=\d+&pin=\d+$", "its moment, with the goroutine that it is about")
        line = page.ask("document.querySelector('#alerts .copy').dataset.copies")
        self.assertRegex(line, r"^tracectl fetch .*-o ")
        for width in (1280, 1440):  # no hole: the three cards end where their row does
            page.look(width, 1080)
            wait_until("the cards of a row are equally high", lambda: page.ask(
                "(() => { const rows = {}; for (const c of document.querySelectorAll('#columns > .card')) { const r = c.getBoundingClientRect();"
                " (rows[Math.round(r.top)] ??= []).push(r); } return Object.values(rows).every((row) => {"
                " const bottoms = row.map((r) => r.bottom); const columns = document.getElementById('columns').getBoundingClientRect();"
                " return Math.max(...bottoms) - Math.min(...bottoms) < 2 && Math.abs(Math.max(...row.map((r) => r.right)) - columns.right) < 2; }); })()"))
            page.screenshot(f"alerts-{width}", whole=True)
        self.quiet(page)

    def test_a_long_table_is_cut_and_keeps_its_rows(self):
        """With many streams the table has 50 rows, or all; rows that are added, removed or moved are in order, and keep their identity."""
        page = self.page()
        wait_until("an overview came", lambda: page.ask("document.getElementById('health')?.textContent") == "healthy")
        page.ask("Object.defineProperty(document, 'hidden', { value: true })")  # the page itself shows nothing more
        page.ask("""import("/streams.js").then(({ Streams }) => {
          const stream = (i) => ({ stream: String(i), service: "s", instance: String(i), state: "live", first_wall_ns: 0, last_wall_ns: 1, bytes_rate: 0, events_rate: 0,
            events: i * 7919 % 1009, bytes: 0, generations: 0, broken: 0, lost_generations: 0, blocked_busy: 0 });
          window.table = new Streams(() => window.show());
          window.numbers = Array.from({ length: 120 }, (_, i) => i);
          window.show = () => { const streams = window.numbers.map(stream); window.table.show(streams, { wall_ns: 2, streams, streams_total: streams.length }, ""); };
          window.show();
        })""")
        rows = "[...document.querySelectorAll('#stream-rows tbody tr')].map((tr) => Number(tr.dataset.stream))"
        button = "document.getElementById('streams-whole')"
        self.assertEqual(page.ask(rows), list(range(50)))
        self.assertEqual(page.ask(f"{button}.textContent"), "all 120 rows")
        page.ask(f"{button}.click()")
        self.assertEqual((page.ask(rows), page.ask(f"{button}.textContent")), (list(range(120)), "50 rows"))
        page.ask("document.querySelectorAll('#stream-rows tbody tr').forEach((tr) => tr.mark = tr.dataset.stream)")
        by_events = sorted(range(120), key=lambda i: -(i * 7919 % 1009))
        page.ask("window.table.choose('events')")
        self.assertEqual(page.ask(rows), by_events)
        page.ask("window.numbers = window.numbers.filter((i) => i % 3 > 0).concat([200, 201]); window.show()")
        now = sorted([i for i in range(120) if i % 3] + [200, 201], key=lambda i: -(i * 7919 % 1009))
        self.assertEqual(page.ask(rows), now)
        kept = "[...document.querySelectorAll('#stream-rows tbody tr')].filter((tr) => tr.mark === tr.dataset.stream).length"
        self.assertEqual(page.ask(kept), 80)
        page.ask("window.numbers = []; window.show()")
        self.assertEqual((page.ask(rows), page.ask(f"{button}.hidden")), ([], True))
        self.quiet(page)

    def test_broken_streams_show_and_a_segments_fetch_line_can_be_copied(self):
        broken = self.folder / "broken.trace"
        whole = bytearray(self.trace("g26-gens").read_bytes())
        whole[len(whole) // 2:len(whole) // 2 + 64] = b"\xff" * 64
        broken.write_bytes(whole)
        self.collector.send(broken, "shop", "one")
        page = self.page()
        wait_until("the broken generation is shown", lambda: self.figure(page, "#stream-rows .figure-broken") == 1)
        self.assertTrue(page.ask("document.querySelector('#stream-rows .figure-broken').classList.contains('bad')"))
        # In one run, or in two where the verdict came before the last generation did.
        wait_until("it is archived", lambda: sorted((gen, s["open"]) for s in self.collector.json_lines("list")
                                                    for gen in range(s["first_gen"], s["last_gen"] + 1))
                   == [(gen, False) for gen in range(1, 27)])
        page.ask("document.querySelector('#stream-rows tr:first-child .go button').click()")
        wait_until("segments are listed", lambda: page.ask("document.querySelectorAll('#segment-rows .copy').length"))
        line = page.ask("document.querySelector('#segment-rows .copy').dataset.copies")
        program, verb, segment, option, file = line.split(" ")
        self.assertEqual((program, verb, option), ("tracectl", "fetch", "-o"))
        self.collector.ask(verb, segment, option, self.folder / file, "--no-progress")
        # The button shows its answer for a second and a half.
        page.ask("(() => { const b = document.querySelector('#segment-rows .copy'); window.answers = [];"
                 " new MutationObserver(() => window.answers.push(b.textContent)).observe(b, { childList: true, characterData: true, subtree: true }); b.click(); })()")
        answers = wait_until("the button answers", lambda: page.ask("window.answers"))
        self.assertNotEqual(answers[0], "copy fetch command")
        self.quiet(page)

    def test_before_anything_is_known_nothing_is_said(self):
        page = self.page("EventSource = class { addEventListener() {} };")  # it hears nothing
        wait_until("its parts are there", lambda: page.ask("document.getElementById('findings-open') !== null"))
        self.assertEqual(page.ask("[...document.querySelectorAll('.empty')].filter((n) => n.checkVisibility() && n.textContent !== '').map((n) => n.textContent)"), ["connecting…"] * 3)
        self.assertEqual(page.ask("[...document.querySelectorAll('.pill')].map((n) => n.textContent)"), ["connecting", "health unknown"])
        self.quiet(page)

    def test_it_finds_the_collector_again(self):
        self.collector.send(self.trace("g26-gens"), "shop")
        page = self.page()
        state = "document.getElementById('connection')?.dataset.state"
        wait_until("it is live", lambda: page.ask(f"{state} === 'good' && {READY} === 1"))
        said = "[...document.querySelectorAll('.pill')].map((n) => n.textContent).join('; ')"
        grey = "Number(getComputedStyle(document.querySelector('main')).opacity) < 1"
        self.assertEqual((page.ask(said), page.ask(grey)), ("live; healthy", False))
        self.collector.kill()
        wait_until("it says that the collector is gone", lambda: page.ask(f"{state} === 'bad'"))
        self.assertRegex(page.ask(said), r"^reconnecting since \d\d:\d\d:\d\d; health unknown$")
        self.type_filter(page, "shop")  # what is shown again is no newer
        self.assertRegex(page.ask(said), "; health unknown$")
        self.assertTrue(page.ask(grey))
        page.screenshot("collector-away")
        self.type_filter(page, "")
        self.collector.start()
        self.collector.send(self.trace("g26-cgo"), "till")
        wait_until("it is live again, and goes on", lambda: page.ask(f"{state} === 'good' && {READY} === 2"))
        self.assertEqual((page.ask(said), page.ask(grey)), ("live; healthy", False))
        # The browser itself tells of connections it could not make, and of a stream that has no report before its first generation is in order.
        page.complaints = [c for c in page.complaints if not re.search("ERR_(CONNECTION|INCOMPLETE|EMPTY)|404.*/api/v1/report/", c)]
        self.quiet(page)
