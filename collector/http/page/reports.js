// SPDX-License-Identifier: Apache-2.0
// Any report of a stream, or the sum of all streams of a service. The collector says which kinds there are.
import { askJson, askLines } from "/ask.js";
import { count } from "/format.js";
import { ReportView } from "/report_table.js";
import { byId, element, KeyedList, setText } from "/view.js";
import { inWords, schemaInWords } from "/words.js";

const ROWS = 20;
const AGAIN_MS = 2000;

const nameOf = (s) => `${s.service} / ${s.instance}`;

// Changes a select's options only where they have changed: a reader may have it open.
function setOptions(select, options, value) {
  const said = JSON.stringify(options);
  if (select.said !== said) {
    select.said = said;
    select.replaceChildren(...options.map(([name, text]) => element("option", { value: name }, text)));
  }
  if (select.value !== value) select.value = value;
}

export class Reports {
  // changed() hears of each choice.
  constructor(changed) {
    Object.assign(this, { changed, chosen: { report: "", of: "", window: "" }, schemas: null, streams: [], whole: false, asked: "", askedAt: 0, busy: false, inSight: false });
    for (const [id, name] of [["report-kind", "report"], ["report-of", "of"], ["report-window", "window"]]) byId(id).addEventListener("change", (event) => this.pick(name, event.target.value));
    byId("report-rows").addEventListener("click", () => this.showWhole(!this.whole));
    this.list = new KeyedList(byId("report-streams"), (r) => `${r.kind} ${r.stream}`, (r) => this.make(r), (node, r) => this.update(node, r));
    new IntersectionObserver(([entry]) => this.seen(entry.isIntersecting), { rootMargin: "300px" }).observe(byId("reports"));
  }

  choose(chosen) {
    this.chosen = chosen;
    this.refresh();
  }

  pick(name, value) {
    this.chosen = { ...this.chosen, [name]: value };
    this.inSight = true; // a choice is answered wherever the page is scrolled to
    this.changed();
    this.refresh();
  }

  showWhole(whole) {
    this.whole = whole;
    this.refresh();
  }

  seen(inSight) {
    this.inSight = inSight;
    this.refresh();
  }

  // streams: those the filter leaves; why: what is said where there are none.
  show(streams, why) {
    this.streams = streams;
    this.why = why;
    this.refresh();
  }

  /* --- choices --- */

  // What was chosen, or the first there is.
  now() {
    const kinds = this.schemas.reports.map((r) => r.name);
    const ofs = this.options().map(([value]) => value);
    const pick = (wish, all, otherwise) => (all.includes(wish) ? wish : (otherwise ?? all[0]));
    return { kind: pick(this.chosen.report, kinds), of: pick(this.chosen.of, ofs), window: pick(this.chosen.window, this.schemas.windows, this.schemas.windows.at(-1)) };
  }

  // Services with several streams, then streams, live ones first.
  options() {
    const sorted = [...this.streams].sort((a, b) => (a.state !== "live") - (b.state !== "live"));
    const services = new Map();
    for (const s of sorted) services.set(s.service, (services.get(s.service) ?? 0) + 1);
    const several = [...services].filter(([, n]) => n > 1);
    return [...sorted.map((s) => [s.stream, s.state === "live" ? nameOf(s) : `${nameOf(s)}, ${s.state}`]), ...several.map(([name, n]) => [`service ${name}`, `${name}: all ${count(n)} streams`])];
  }

  /* --- asking --- */

  path({ kind, of, window }) {
    const query = new URLSearchParams({ window, top: this.whole ? 0 : ROWS });
    if (of.startsWith("service ")) {
      query.set("service", of.slice("service ".length));
      query.set("sum", "only");
    } else query.set("stream", of);
    return `/api/v1/report/${encodeURIComponent(kind)}?${query}`;
  }

  async refresh() {
    if (!this.inSight || this.busy || document.hidden) return;
    this.busy = true;
    try {
      this.schemas ??= await askJson("/api/v1/reports");
      await this.refreshReport();
    } catch (error) {
      this.fail(error.message);
    }
    this.busy = false;
    if (this.pending()) this.refresh();
  }

  // Something else was chosen while the answer was on its way.
  pending() {
    return this.schemas !== null && this.streams.length > 0 && this.path(this.now()) !== this.asked;
  }

  async refreshReport() {
    const options = this.options();
    byId("report-streams").hidden = options.length === 0;
    if (options.length === 0) {
      this.fail(this.why || "No stream yet.");
      return;
    }
    const now = this.now();
    const schema = this.schemas.reports.find((r) => r.name === now.kind);
    setOptions(byId("report-kind"), this.schemas.reports.map((r) => [r.name, r.name]), now.kind);
    setOptions(byId("report-of"), options, now.of);
    setOptions(byId("report-window"), this.schemas.windows.map((w) => [w, w === "all" ? "since it began" : `last ${w}`]), now.window);
    this.about = schema.about;
    this.sayAbout();
    const path = this.path(now);
    if (path === this.asked && performance.now() - this.askedAt < AGAIN_MS) return;
    this.asked = path;
    this.askedAt = performance.now();
    this.take(await askLines(path));
  }

  fail(why) {
    this.list.show([]);
    setText(byId("reports-empty"), why);
    byId("reports-empty").hidden = false;
  }

  /* --- showing --- */

  sayAbout() {
    setText(byId("report-about"), inWords(this.program, this.about));
  }

  take(reports) {
    this.program = reports.length > 0 && reports.every((r) => r.program === "C") ? "C" : undefined;
    this.sayAbout();
    this.more = false;
    byId("reports-empty").hidden = true;
    this.list.show(reports);
    byId("report-rows").hidden = !this.more && !this.whole;
    setText(byId("report-rows"), this.whole ? `${ROWS} rows a table` : "all rows");
  }

  make(report) {
    const view = new ReportView(schemaInWords(report.program, this.schemas.reports.find((r) => r.name === report.kind)));
    view.node.view = view;
    return view.node;
  }

  update(node, report) {
    if (node.view.show(report)) this.more = true;
  }
}
