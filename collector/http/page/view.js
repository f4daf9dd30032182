// SPDX-License-Identifier: Apache-2.0
// The document, touched only where something has changed. Text of traced programs goes in as text, never
// as markup.

export const byId = (id) => document.getElementById(id);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setData(node, name, value) {
  const text = String(value);
  if (node.dataset[name] !== text) node.dataset[name] = text;
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
export function timelineLink(stream, fromNs, untilNs, goroutine = -1) {
  const query = new URLSearchParams();
  if (fromNs) {
    const slack = (untilNs - fromNs) / 4 + 1e6;
    query.set("from", BigInt(Math.round(fromNs - slack)));
    query.set("to", BigInt(Math.round(untilNs + slack)));
  }
  if (goroutine > 0) query.set("pin", goroutine);
  return element("a", { className: "link", href: `/timeline/${stream}${query.size > 0 ? `?${query}` : ""}` }, "timeline");
}

// A button that puts text on the clipboard, and says for a moment that it did.
export function copyButton(label, text) {
  const button = element("button", { type: "button", className: "plain link copy", title: text }, label);
  button.dataset.copies = text;
  button.addEventListener("click", async () => {
    setText(button, (await copy(text)) ? "copied" : "not allowed");
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
    const left = new Map(this.nodes);
    let at = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.key(item);
      let node = this.nodes.get(key);
      if (node === undefined) {
        node = this.make(item);
        this.nodes.set(key, node);
      }
      left.delete(key);
      this.update(node, item);
      if (node === at) at = at.nextElementSibling;
      else this.parent.insertBefore(node, at);
    }
    for (const [key, node] of left) {
      node.remove();
      this.nodes.delete(key);
    }
  }
}
