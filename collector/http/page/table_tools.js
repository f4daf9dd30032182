// SPDX-License-Identifier: Apache-2.0
// What a reader does with a table of a report: rows with a word, another order, a copy as CSV.
import { words } from "/format.js";
import { copyButton, element } from "/view.js";
import { headOf } from "/words.js";

const PARTS = ["count", "total_ns", "p50_ns", "p99_ns", "max_ns"];
const CSV_PARTS = ["count", "total_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "error_share", "lower_bounds"];
const byText = new Intl.Collator("en", { numeric: true }).compare;

/* --- order --- */

// Columns and parts of distributions that rows can be ordered by.
function orders(schema) {
  return schema.columns.flatMap((field) => {
    if (field.type === "stack") return [];
    if (field.type === "distribution") return PARTS.map((part) => ({ field, part, name: `${headOf(field)} ${words(part)}` }));
    return [{ field, part: null, name: headOf(field) }];
  });
}

const valueOf = (row, { field, part }) => (part === null ? row[field.name] : row[field.name]?.[part]);

// Text from A to Z, numbers from the highest; what is not known comes last.
function compare(order) {
  return (one, other) => {
    const [a, b] = [valueOf(one, order), valueOf(other, order)];
    if (a == null || b == null) return (a == null) - (b == null);
    return typeof a === "string" ? byText(a, b) : b - a;
  };
}

/* --- words --- */

function textOf(row, field) {
  const value = row[field.name];
  if (field.type === "stack") return (value ?? []).map((f) => `${f.function} ${f.file}`).join(" ");
  return field.type === "text" || field.type === "id" ? String(value ?? "") : "";
}

const says = (row, schema, wanted) => schema.columns.some((field) => textOf(row, field).toLowerCase().includes(wanted));

/* --- CSV, as `tracectl report --csv` writes it --- */

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function csvCells(field, value) {
  if (field.type === "distribution") return CSV_PARTS.map((part) => value?.[part] ?? "");
  if (field.type === "stack") return [(value ?? []).map((f) => `${f.function} ${f.file}:${f.line}`).join("; ")];
  return [value ?? ""];
}

function csvOf(schema, rows) {
  const names = schema.columns.flatMap((field) => (field.type === "distribution" ? CSV_PARTS.map((part) => `${field.name}_${part}`) : [field.name]));
  const head = schema.list ? names : [...names, "other"];
  const lines = rows.map((row) => [...schema.columns.flatMap((field) => csvCells(field, row[field.name])), ...(schema.list ? [] : [String(Boolean(row.other))])]);
  return [head, ...lines].map((cells) => cells.map((cell) => quoted(String(cell))).join(",") + "\r\n").join("");
}

/* --- the tools of one table --- */

export class TableTools {
  // changed(): rows are to be shown again.
  constructor(schema, changed) {
    Object.assign(this, { schema, orders: orders(schema), rows: [] });
    this.field = element("input", { type: "search", placeholder: "filter rows", autocomplete: "off", spellcheck: false });
    this.field.setAttribute("aria-label", `Show only rows of ${schema.about} with`);
    this.select = element("select", {}, element("option", { value: "" }, schema.order || "as it comes"), ...this.orders.map((order, i) => element("option", { value: i }, `by ${order.name}`)));
    this.select.setAttribute("aria-label", `Order of ${schema.about}`);
    this.field.addEventListener("input", changed);
    this.select.addEventListener("change", changed);
    this.node = element("div", { className: "table-tools" }, this.field, this.select, copyButton("copy as CSV", () => csvOf(schema, this.rows)));
  }

  // The rows that are wanted, in the order that is wanted; the sum of those left out stays last.
  apply(rows) {
    const wanted = this.field.value.trim().toLowerCase();
    const order = this.orders[this.select.value];
    const listed = rows.filter((row) => !row.other && (wanted === "" || says(row, this.schema, wanted)));
    if (this.select.value !== "") listed.sort(compare(order));
    this.rows = wanted === "" ? [...listed, ...rows.filter((row) => row.other)] : listed;
    this.node.hidden = rows.length === 0;
    return this.rows;
  }
}
