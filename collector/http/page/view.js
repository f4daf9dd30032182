// SPDX-License-Identifier: Apache-2.0
// The document, touched only where something has changed. Text of traced programs goes in as text, never
// as markup.

import { exactTime } from "/format.js";

export const byId = (id) => document.getElementById(id);

// What a node was given last: to ask the document costs more than all else of an overview.
const given = new WeakMap(); // node -> { text, data: { name: value } }

function givenTo(node) {
  let last = given.get(node);
  if (last === undefined) given.set(node, (last = { text: null, data: {} }));
  return last;
}

export function setText(node, text) {
  const last = givenTo(node);
  if (last.text === text) return;
  last.text = text;
  node.textContent = text;
}

export function setData(node, name, value) {
  const text = String(value);
  const { data } = givenTo(node);
  if (data[name] === text) return;
  data[name] = text;
  node.dataset[name] = text;
}

// element("td", { className: "number" }, "text", child, ...)
export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// A figure: what is read, and the exact number behind it.
export function setFigure(node, value, text) {
  setData(node, "value", value);
  setText(node, text);
}

// A moment of a stream as a picture, a goroutine's lane on top. Times: nanoseconds of the program's wall clock, as exact as a
// number is; none: the newest generation.
export function timelineAddress(stream, fromNs, untilNs, goroutine = -1) {
  const query = new URLSearchParams();
  if (fromNs) {
    const slack = (untilNs - fromNs) / 4 + 1e6;
    query.set("from", BigInt(Math.round(fromNs - slack)));
    query.set("to", BigInt(Math.round(untilNs + slack)));
  }
  if (goroutine > 0) query.set("pin", goroutine);
  return `/timeline/${stream}${query.size > 0 ? `?${query}` : ""}`;
}

export const timelineLink = (...moment) => element("a", { className: "link", href: timelineAddress(...moment) }, "timeline");

// Without an instance: of all.
export const serviceAddress = (service, instance = "") => `/service/${[service, ...(instance ? [instance] : [])].map(encodeURIComponent).join("/")}`;

// Why something took so long, by what lies around it: whatever ended it began before. Times: BigInts; query: as docs/HTTP.md says.
const AROUND_NS = 2n * 10n ** 9n;
export const whyAddress = (stream, fromNs, untilNs, query) => `/why/${stream}?${new URLSearchParams({ from: exactTime(fromNs - AROUND_NS), to: exactTime(untilNs + AROUND_NS), ...query })}`;

export const whyLink = (href, label = "why") => element("a", { className: "link why-link", href, title: "why it took so long" }, label);

// A button that puts text on the clipboard, and says for a moment that it did.
export function copyButton(label, text) {
  const isMade = typeof text === "function"; // when it is wanted
  const button = element("button", { type: "button", className: "plain link copy", title: isMade ? "" : text }, label);
  if (!isMade) button.dataset.copies = text;
  button.addEventListener("click", async () => {
    setText(button, (await copy(isMade ? text() : text)) ? "copied" : "not allowed");
    setTimeout(() => setText(button, label), 1500);
  });
  return button;
}

// The clipboard's own interface is there only over HTTPS and on localhost.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = element("textarea", { value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

// Keeps a parent's children in step with items: make(item) once a key, update(node, item) each time.
export class KeyedList {
  constructor(parent, key, make, update) {
    Object.assign(this, { parent, key, make, update, nodes: new Map() });
  }

  show(items) {
    const keys = items.map(this.key);
    const stays = new Set(keys);
    for (const [key, node] of this.nodes)
      if (!stays.has(key)) {
        node.remove();
        this.nodes.delete(key);
      }
    let at = this.parent.firstElementChild;
    for (const [i, item] of items.entries()) {
      const key = keys[i];
      let node = this.nodes.get(key);
      if (node === undefined) {
        node = this.make(item);
        this.nodes.set(key, node);
      }
      this.update(node, item);
      // One that has to go further down makes way for those behind it; its own turn comes.
      if (node !== at && at !== null && at.nextElementSibling === node) {
        this.parent.append(at);
        at = node;
      }
      if (node === at) at = at.nextElementSibling;
      else this.parent.insertBefore(node, at);
    }
  }
}
