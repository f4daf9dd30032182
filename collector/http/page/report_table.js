// SPDX-License-Identifier: Apache-2.0
// A report's figures and tables, drawn from its schema: no kind of report is known by name.
import { Flame, hasFlame, OTHER } from "/flame.js";
import { bytes, clock, count, duration, share } from "/format.js";
import { stackNodes } from "/stack.js";
import { TableTools } from "/table_tools.js";
import { element, KeyedList, setData, setFigure, setText, whyAddress, whyLink } from "/view.js";
import { headOf } from "/words.js";

// A distribution has a column for each of these; its tooltip has all.
const PARTS = [["count", "count", count], ["total_ns", "total", duration], ["p50_ns", "p50", duration], ["p99_ns", "p99", duration], ["max_ns", "max", duration]];
const QUANTILES = [["p50_ns", "p50"], ["p90_ns", "p90"], ["p99_ns", "p99"], ["p999_ns", "p99.9"]];

const TEXTS = {
  count,
  ns: duration,
  time: (ns, report) => (report.from_wall_ns > 0 ? clock(report.from_wall_ns + (ns - report.from_ns)) : `+${duration(ns - report.from_ns)}`),
  bytes,
  id: String,
  share,
  flag: (flag) => (flag ? "yes" : "no"),
  text: (text) => text || "–",
};

export const textOf = (field, value, report) => (value == null ? "–" : (TEXTS[field.type] ?? JSON.stringify)(value, report));

function distributionText(d) {
  const known = QUANTILES.filter(([name]) => d[name] !== null).map(([name, label]) => `${label} ${duration(d[name])}`);
  const error = d.error_share > 0 ? [`quantiles ±${Number((d.error_share * 100).toPrecision(3))} %`] : [];
  const bounds = d.lower_bounds > 0 ? [`${count(d.lower_bounds)} began before the trace: at least so long`] : [];
  return [`min ${duration(d.min_ns)}`, ...known, `max ${duration(d.max_ns)}`, ...error, ...bounds].join(", ");
}

/* --- cells --- */

// className, label, tag: th for what a row is about.
function makeCell(tag, className, name, label) {
  const cell = element(tag, { className });
  if (tag === "th") cell.scope = "row";
  Object.assign(cell.dataset, { column: name, label });
  return cell;
}

function stackCell(field, tag) {
  const cell = makeCell(tag, "stack", field.name, headOf(field));
  const place = element("div");
  let shown = null;
  cell.append(place);
  const update = (stack) => {
    const said = JSON.stringify(stack);
    if (said === shown) return; // a reader may have unfolded it
    shown = said;
    place.replaceChildren(...(stack == null ? ["–"] : stackNodes(stack)));
  };
  return { cells: [cell], update };
}

function distributionCells(field) {
  const cells = PARTS.map(([name, label]) => makeCell("td", "number", `${field.name}.${name}`, `${headOf(field)} ${label}`));
  const update = (d) => {
    for (const [i, [name, , read]] of PARTS.entries()) setFigure(cells[i], d?.[name] ?? "", d == null ? "–" : read(d[name]));
    cells[0].title = d == null ? "" : distributionText(d);
  };
  return { cells, update };
}

function plainCell(field, tag) {
  const cell = makeCell(tag, field.type === "text" ? "text" : "number", field.name, headOf(field));
  const update = (value, report) => setFigure(cell, value ?? "", textOf(field, value, report));
  return { cells: [cell], update };
}

function cellsOf(field, isKey) {
  const tag = isKey ? "th" : "td";
  if (field.type === "stack") return stackCell(field, tag);
  return field.type === "distribution" ? distributionCells(field) : plainCell(field, tag);
}

/* --- a table --- */

// Widths of columns in rem, about.
const WIDTHS = { stack: 14, text: 8, distribution: 5 * PARTS.length };
const widthOf = (schema) => schema.columns.reduce((sum, c) => sum + (WIDTHS[c.type] ?? 5), 0);

function makeHead(schema) {
  const upper = element("tr");
  const lower = element("tr");
  const spread = schema.columns.some((c) => c.type === "distribution");
  for (const field of schema.columns) {
    const isNumber = !["text", "stack"].includes(field.type);
    if (field.type === "distribution") {
      upper.append(element("th", { scope: "colgroup", colSpan: PARTS.length, className: "part", title: field.about }, headOf(field)));
      lower.append(...PARTS.map(([, label], i) => element("th", { scope: "col", className: i === 0 ? "number part" : "number" }, label)));
    } else upper.append(element("th", { scope: "col", rowSpan: spread ? 2 : 1, className: isNumber ? "number" : "", title: field.about }, headOf(field)));
  }
  return element("thead", {}, upper, ...(spread ? [lower] : []));
}

// Rows of one key, of a list for example, are told apart by their order.
function keyed(schema, rows) {
  const seen = new Map();
  return rows.map((row) => {
    const key = row.other ? "other" : JSON.stringify(schema.columns.slice(0, schema.keys).map((c) => row[c.name]));
    const n = seen.get(key) ?? 0;
    seen.set(key, n + 1);
    return { key: `${key} ${n}`, row };
  });
}

const NOT_EXPLAINED = new Set(["idle_now", "held"]); // calls that wait for work; who has a lock, and not who waits for it
const LONGEST_NS = 30e9; // of what goes on: its last part is explained

// What a row is about, for the page that explains it: a task, or what a goroutine did for some time. null: neither.
function explained(row, report) {
  const length = row.latency_ns ?? row.waited_ns ?? row.age_ns;
  if (row.other || row.idle || length == null || !report.stream || report.instances > 0 || !(report.from_wall_ns > 0)) return null;
  const long = Math.min(length, LONGEST_NS);
  const start = row.start_ns !== undefined && length === long ? row.start_ns : report.until_ns - long;
  const query = report.kind === "tasks" ? { task: row.task } : { goroutine: row.goroutine, ns: Math.round(start + long / 2) };
  return Object.values(query).every((value) => value > 0) ? { start, long, query } : null;
}

function showWhy(cell, row, report) {
  const about = explained(row, report);
  const link = cell.querySelector("a");
  if (about === null) return link?.remove();
  const begin = BigInt(report.from_wall_ns) + BigInt(Math.round(about.start - report.from_ns));
  const address = whyAddress(report.stream, begin, begin + BigInt(about.long), about.query);
  if (link === null) cell.append(" ", whyLink(address));
  else if (link.getAttribute("href") !== address) link.setAttribute("href", address);
}

class Table {
  constructor(schema) {
    this.schema = schema;
    this.about = NOT_EXPLAINED.has(schema.name) ? undefined : ["task", "goroutine"].find((name) => schema.columns.some((c) => c.name === name));
    this.note = element("span", { className: "muted" });
    this.body = element("tbody");
    this.scroll = element("div", { className: "scroll" }, element("table", {}, element("caption", {}, `${schema.about} `, this.note), makeHead(schema), this.body));
    this.scroll.firstElementChild.dataset.table = schema.name;
    this.tools = new TableTools(schema, () => this.showRows());
    this.node = element("div", { className: "table" }, this.tools.node, this.scroll);
    this.flame = null;
    if (hasFlame(schema)) this.tools.node.append(this.makeFlameButton());
    this.width = widthOf(schema);
    this.list = new KeyedList(this.body, (item) => item.key, (item) => this.makeRow(item), (node, item) => this.updateRow(node, item));
  }

  makeFlameButton() {
    const button = element("button", { type: "button", className: "plain link flame-button" }, "flame graph");
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      this.flame?.node.remove();
      this.flame = this.flame === null ? new Flame(this.schema) : null;
      button.setAttribute("aria-expanded", String(this.flame !== null));
      if (this.flame === null) return;
      this.node.append(this.flame.node);
      this.flame.show(this.rows);
    });
    return button;
  }

  makeRow({ row }) {
    const node = element("tr", { className: row.other ? "other" : "" });
    const columns = this.schema.columns.map((field, i) => cellsOf(field, i < this.schema.keys));
    node.append(...columns.flatMap((c) => c.cells));
    node.columns = columns;
    return node;
  }

  updateRow(node, { row }) {
    for (const [i, field] of this.schema.columns.entries()) node.columns[i].update(row[field.name], this.report);
    if (row.other) setText(node.firstElementChild, OTHER);
    if (this.about !== undefined) showWhy(node.querySelector(`[data-column=${this.about}]`), row, this.report);
  }

  // What columns take is a guess: a long number or name may need more.
  fit(width) {
    this.scroll.classList.toggle("blocks", width < this.width);
    if (this.scroll.scrollWidth > this.scroll.clientWidth) this.scroll.classList.add("blocks");
  }

  // Those that a reader wants, of the last report.
  showRows() {
    this.list.show(keyed(this.schema, this.tools.apply(this.rows)));
  }

  show(report) {
    const rows = report.tables[this.schema.name] ?? [];
    const listed = rows.filter((row) => !row.other).length;
    const total = Math.max(report.rows_total?.[this.schema.name] ?? 0, listed);
    this.report = report;
    this.rows = rows;
    this.flame?.show(rows);
    this.showRows();
    setText(this.note, rows.length === 0 ? "none" : `${this.schema.order}; ${total > listed ? `${count(listed)} of ${count(total)}` : count(listed)}`);
    this.scroll.querySelector("thead").hidden = rows.length === 0;
    return total > listed;
  }
}

/* --- figures --- */

function makeFigure(field) {
  const value = element("dd");
  const note = element("dd", { className: "note" });
  const node = element("dl", { title: field.about }, element("dt", {}, headOf(field)), value, note);
  node.dataset.figure = field.name;
  node.update = (said, report) => {
    const isSpread = field.type === "distribution" && said != null;
    setFigure(value, isSpread ? said.count : (said ?? ""), isSpread ? count(said.count) : textOf(field, said, report));
    setText(note, isSpread ? (said.count > 0 ? `${duration(said.total_ns)} in all; ${distributionText(said)}` : field.about) : field.about);
  };
  return node;
}

// The report of one stream, or the sum of several.
export class ReportView {
  constructor(schema) {
    this.schema = schema;
    this.about = element("span", { className: "muted" });
    this.name = element("span");
    this.figures = schema.figures.map(makeFigure);
    this.tables = schema.tables.map((table) => new Table(table));
    this.notes = element("p", { className: "muted", hidden: true });
    this.node = element("article", { className: "report" }, element("h3", {}, this.name, " ", this.about), this.notes, element("div", { className: "tiles" }, ...this.figures), ...this.tables.map((t) => t.node));
    new ResizeObserver(([entry]) => this.fit(entry.contentRect.width)).observe(this.node);
  }

  fit(width) {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    for (const table of this.tables) table.fit(width / rem);
  }

  // Says whether there are more rows than are listed.
  show(report) {
    const options = this.schema.options.map((o) => `${headOf(o)} ${textOf(o, report.options[o.name], report)}`);
    const until = report.until_wall_ns > 0 ? [`until ${clock(report.until_wall_ns)}`] : [];
    const analysed = report.thinned_events > 0 ? [`${share(report.analysed_share)} of them analysed`] : [];
    setData(this.node, "stream", report.stream);
    setData(this.node, "kind", report.kind);
    const isSum = report.instances > 0;
    setText(this.name, isSum ? `${report.service}: ${count(report.instances)} instance${report.instances > 1 ? "s" : ""}` : `${report.service} / ${report.instance}`);
    setText(this.about, [isSum ? `${duration(report.time_ns)} together` : `${duration(report.until_ns - report.from_ns)} of the trace`, ...until, `${count(report.events)} events`, ...analysed, ...options].join(", "));
    setText(this.notes, (report.notes ?? []).join(" "));
    this.notes.hidden = this.notes.textContent === "";
    for (const [i, field] of this.schema.figures.entries()) this.figures[i].update(report.figures[field.name], report);
    const more = this.tables.map((table) => table.show(report)).some(Boolean);
    if (this.node.clientWidth > 0) this.fit(this.node.clientWidth);
    return more;
  }
}
