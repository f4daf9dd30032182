// SPDX-License-Identifier: Apache-2.0
// A call stack, folded. The innermost frame names the call; the first one that is no plumbing is where the reader's own
// program waits.
import { element } from "/view.js";

const PLUMBING = /^(runtime|syscall|internal\/|os\.|golang\.org\/x\/sys)/;

export function stackNodes(stack) {
  if (stack.length === 0) return [element("p", { className: "where" }, "stack unknown")];
  const own = stack.find((f) => !PLUMBING.test(f.function)) ?? stack[0];
  const frames = stack.map((f) => element("li", { className: f === own ? "own" : "" }, element("span", { className: "function" }, f.function), element("span", { className: "file" }, f.file ? `${f.file}:${f.line}` : "")));
  return [
    element("details", {}, element("summary", {}, element("span", { className: "function" }, own.function), element("span", { className: "file" }, own.file ? ` ${own.file.split("/").pop()}:${own.line}` : "")), element("ol", { className: "frames" }, ...frames)),
  ];
}
