// SPDX-License-Identifier: Apache-2.0
// A flame graph of any table with stacks: the outermost function on top, as wide as what it took of the whole. A click makes a
// function as wide as all of it; inverted, the innermost one is on top and its callers are below.
import { bytes, count, duration, hueOf, share, words } from "/format.js";
import { element, setText } from "/view.js";
import { headOf } from "/words.js";

const ROW = 20; // pixels
const NARROWEST = 0.002; // of the width: what is narrower is left out
export const OTHER = "all other rows";

const readers = { count, ns: duration, bytes };

// What the width may stand for: each column that can be summed up.
function weightsOf(schema) {
  return schema.columns.flatMap((c) => {
    if (c.type === "distribution")
      return [
        { label: `${headOf(c)}, total`, of: (row) => row[c.name]?.total_ns ?? 0, read: duration },
        { label: `${headOf(c)}, count`, of: (row) => row[c.name]?.count ?? 0, read: count },
      ];
    return readers[c.type] ? [{ label: headOf(c), of: (row) => row[c.name] ?? 0, read: readers[c.type] }] : [];
  });
}

export const hasFlame = (schema) => schema.columns.some((c) => c.type === "stack") && weightsOf(schema).length > 0;

function child(node, name) {
  let found = node.children.get(name);
  if (found === undefined) {
    found = { name, total: 0, own: 0, children: new Map(), parent: node };
    node.children.set(name, found);
  }
  return found;
}

// Rows of the table as a tree of functions.
function treeOf(rows, stack, weight, inverted) {
  const root = { name: "all", total: 0, own: 0, children: new Map(), parent: null };
  for (const row of rows) {
    const value = weight.of(row);
    if (!(value > 0)) continue;
    const names = (row[stack] ?? []).map((frame) => frame.function);
    if (row.other) names.splice(0, names.length, OTHER);
    else if (names.length === 0) names.push("stack unknown");
    if (!inverted) names.reverse();
    let node = root;
    node.total += value;
    for (const name of names) {
      node = child(node, name);
      node.total += value;
    }
    node.own += value;
  }
  return root;
}

function choice(label, options, changed) {
  const select = element("select", {}, ...options.map((text, i) => element("option", { value: i }, text)));
  select.addEventListener("change", () => changed(Number(select.value)));
  return element("label", {}, `${label} `, select);
}

export class Flame {
  constructor(schema) {
    this.weights = weightsOf(schema);
    this.stacks = schema.columns.filter((c) => c.type === "stack").map((c) => c.name);
    Object.assign(this, { weight: this.weights[0], stack: this.stacks[0], inverted: false, path: [], rows: [], sought: "" });
    const seek = element("input", { type: "search", placeholder: "function", autocomplete: "off", spellcheck: false });
    seek.addEventListener("input", () => this.change({ sought: seek.value.trim().toLowerCase() }));
    const invert = element("input", { type: "checkbox" });
    invert.addEventListener("change", () => this.change({ inverted: invert.checked, path: [] }));
    this.note = element("span", { className: "muted" });
    this.place = element("div", { className: "flame-rows" });
    const choices = [choice("width", this.weights.map((w) => w.label), (i) => this.change({ weight: this.weights[i] }))];
    if (this.stacks.length > 1) choices.push(choice("stack", this.stacks.map(words), (i) => this.change({ stack: this.stacks[i], path: [] })));
    this.node = element("div", { className: "flame" }, element("p", { className: "choices" }, ...choices, element("label", {}, invert, " callers below"), element("label", {}, "find ", seek), this.note), this.place);
  }

  change(what) {
    Object.assign(this, what);
    this.draw();
  }

  show(rows) {
    this.rows = rows;
    this.draw();
  }

  // The chosen function, as far as it is still there.
  chosen(root) {
    let node = root;
    for (const name of this.path) node = node.children.get(name) ?? node;
    return node;
  }

  draw() {
    const root = treeOf(this.rows, this.stack, this.weight, this.inverted);
    const chosen = this.chosen(root);
    const drawn = [];
    let depth = 0;
    const add = (node, from, width, row, above) => {
      drawn.push(this.frame(root, node, from, width, row, above));
      depth = Math.max(depth, row + 1);
    };
    const below = (node, from, row) => {
      const width = chosen.total === 0 ? 0 : node.total / chosen.total;
      if (width < NARROWEST) return;
      add(node, from, width, row, false);
      let at = from;
      for (const next of [...node.children.values()].sort((a, b) => b.total - a.total)) {
        below(next, at, row + 1);
        at += next.total / chosen.total;
      }
    };
    const path = [];
    for (let node = chosen.parent; node !== null; node = node.parent) path.unshift(node);
    path.forEach((node, i) => add(node, 0, 1, i, true));
    below(chosen, 0, path.length);
    this.place.replaceChildren(...drawn);
    this.place.style.height = `${depth * ROW}px`;
    const found = this.sought ? this.share(root, (name) => name.toLowerCase().includes(this.sought)) : null;
    setText(this.note, root.total === 0 ? "nothing to show" : `${this.weight.read(root.total)} in all${found === null ? "" : `, ${share(found / root.total)} in what was found`}`);
  }

  // How much is in functions of such a name, each row once.
  share(node, fits) {
    if (node.parent !== null && fits(node.name)) return node.total;
    return [...node.children.values()].reduce((sum, next) => sum + this.share(next, fits), 0);
  }

  frame(root, node, from, width, row, above) {
    const own = node.own > 0 && node.own < node.total ? `, ${this.weight.read(node.own)} in itself` : "";
    const button = element("button", { type: "button", title: `${node.name}: ${this.weight.read(node.total)}, ${share(node.total / root.total)}${own}`, className: above ? "above" : "" }, node.name);
    Object.assign(button.dataset, { total: node.total, depth: row });
    button.style.left = `${from * 100}%`;
    button.style.width = `${width * 100}%`;
    button.style.top = `${row * ROW}px`;
    button.style.setProperty("--hue", 15 + (hueOf(node.name) % 45));
    if (this.sought && node.name.toLowerCase().includes(this.sought)) button.classList.add("found");
    button.addEventListener("click", () => {
      const path = [];
      for (let at = node; at.parent !== null; at = at.parent) path.unshift(at.name);
      this.change({ path });
    });
    return button;
  }
}
