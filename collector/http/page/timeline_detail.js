// SPDX-License-Identifier: Apache-2.0
// What is known of one span, and of a stretch that was chosen.
import { duration, exactTime, moment as dayTime } from "/format.js";
import { stackNodes } from "/stack.js";
import { StretchReports } from "/timeline_reports.js";
import { byId, copyButton, element, setText, whyAddress, whyLink } from "/view.js";
import { headInWords, idInWords, inWords } from "/words.js";

function button(label, act) {
  const node = element("button", { type: "button", className: "plain link" }, label);
  node.addEventListener("click", act);
  return node;
}

function list(pairs) {
  return element("dl", {}, ...pairs.filter(([, value]) => value !== null && value !== "").flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function stack(name, frames) {
  return frames.length === 0 ? [] : [element("p", { className: "muted" }, name), ...stackNodes(frames)];
}

function show(title, ...nodes) {
  setText(byId("detail-title"), title);
  byId("detail-body").replaceChildren(...nodes);
  byId("detail").hidden = false;
}

export function showFault(text) {
  show("Nothing to show", element("p", {}, text));
}

// acts: { pin(goroutine), go(goroutine, traceNs) }
export function showMoment(stream, moment, wallOf, acts) {
  const say = (text) => inWords(moment.program, text);
  const state = moment.state.toLowerCase();
  const length = Number(BigInt(moment.until_ns) - BigInt(moment.from_ns));
  const [from, until] = [wallOf(BigInt(moment.from_ns)), wallOf(BigInt(moment.until_ns))];
  const woken = state === "waiting" ? "woken by" : state === "runnable" ? `made runnable (${moment.cause}) by` : "ended by";
  const buttons = [button(say(`pin goroutine ${moment.goroutine}`), () => acts.pin(moment.goroutine)), button(say("all goroutines at this moment"), acts.all)];

  if (moment.by !== null && moment.by !== moment.goroutine) buttons.push(button(say(`${woken} goroutine ${moment.by}: go there`), () => acts.go(moment.by, moment.until_ns)));
  if (moment.creator !== null) buttons.push(button(`pin its creator ${moment.creator}`, () => acts.pin(moment.creator)));
  // What the archive has of it is fetched first: a collector itself explains its last minutes.
  const fetch = `tracectl fetch --stream ${stream} --since ${exactTime(from)} --until ${exactTime(until)} -o moment.trace`;
  buttons.push(whyLink(whyAddress(stream, from, until, { goroutine: moment.goroutine, ns: (BigInt(moment.from_ns) + BigInt(moment.until_ns)) / 2n }), "why it took so long"));
  buttons.push(copyButton("copy why command", `${fetch} && tracectl why moment.trace --goroutine ${moment.goroutine} --at ${exactTime((from + until) / 2n)}`));
  show(
    `${say("Goroutine")} ${moment.goroutine} ${state}${moment.reason ? `: ${moment.reason}` : ""}`,
    list([
      ["for", `${moment.from_known ? "" : "at least "}${duration(length)}${moment.open ? ", and on past this generation" : ""}`],
      ["began in", moment.entry ? `${moment.entry.function} ${moment.entry.file}:${moment.entry.line}` : null],
      ["on", [moment.proc === null ? "" : `${headInWords(moment.program, "P")} ${moment.proc}`, moment.thread === null ? "" : `${headInWords(moment.program, "thread")} ${moment.thread}`].filter(Boolean).join(", ")],
      [moment.program === "C" ? "the call" : "its P", moment.lost_proc ? say("was taken away during the call") : ""],
      ["generation", String(moment.gen)],
    ]),
    element("p", { className: "buttons" }, ...buttons),
    ...stack("where", moment.end_stack.length > 0 ? moment.end_stack : moment.stack),
    ...stack(moment.by === null ? "" : say(`${woken} goroutine ${moment.by}, at`), moment.by_stack),
    ...stack("created at", moment.creation_stack),
  );
}

const CUT_NS = 10n * 10n ** 9n; // where it is cut by the picture's edge, it is looked for so far beyond

// task: { task, type, from, until, beganBefore, goesOn }; zoom(): look at it
export function showTask(stream, { task, type, from, until, beganBefore, goesOn }, zoom) {
  const [begin, end] = [beganBefore ? from - CUT_NS : from, goesOn ? until + CUT_NS : until];
  const fetch = `tracectl fetch --stream ${stream} --since ${exactTime(begin)} --until ${exactTime(end)} -o task.trace`;
  show(
    `Task ${task}${type ? ` ${type}` : ""}`,
    list([["took", `${beganBefore || goesOn ? "at least " : ""}${duration(Number(until - from))}`], ["from", dayTime(Number(from))]]),
    element("p", { className: "buttons" }, whyLink(whyAddress(stream, begin, end, { task }), "why it took so long"), button("zoom to it", zoom), copyButton("copy why command", `${fetch} && tracectl why task.trace --task ${task}`), copyButton("copy fetch command", fetch)),
  );
}

export function showTasks(zoom) {
  show("Tasks too short to tell apart here", element("p", { className: "buttons" }, button("zoom in", zoom)));
}

function stateNodes(said, one, pin) {
  const state = one.state.toLowerCase();
  const [first] = one.goroutines;
  const longest = `${first.since_known ? "" : "at least "}${duration(Number(BigInt(said.ns) - BigInt(first.since_ns)))}`;
  const ids = one.goroutines.map((g) => button(idInWords(said.program, g.goroutine), () => pin(g.goroutine)));
  const more = one.count > ids.length ? [element("span", { className: "muted" }, ` and ${one.count - ids.length} more`)] : [];
  return element(
    "li",
    {},
    element("p", {}, element("b", {}, `${one.count} ${state}${one.reason ? `: ${one.reason}` : ""}`), ` the longest for ${longest}`),
    element("p", { className: "buttons" }, ...ids, ...more),
    ...stackNodes(one.stack),
  );
}

// Goroutines that are in the same state at the same stack are together.
export function showState(stream, said, wallNs, pin) {
  const counts = new Map();
  for (const one of said.states) counts.set(one.state, (counts.get(one.state) ?? 0) + one.count);
  show(
    inWords(said.program, `${said.goroutines} goroutines at ${dayTime(Number(wallNs))}`),
    list([...counts].map(([state, n]) => [state.toLowerCase(), String(n)])),
    element("p", { className: "buttons" }, copyButton("copy state command", `tracectl state --stream ${stream} --at ${exactTime(wallNs)}`)),
    element("ol", { className: "states" }, ...said.states.map((one) => stateNodes(said, one, pin))),
  );
}

// How much of a stretch goroutines were in each state, from the counts of a picture.
function averages(picture, from, until) {
  const [begin, end] = [Number(from - picture.from), Number(until - picture.from)];
  return picture.lanes
    .filter((lane) => lane.kind === "count")
    .map((lane) => {
      let sum = 0;
      for (let i = 0; i < lane.cells; i++) sum += lane.value(i) * Math.max(0, Math.min(end, lane.until(i)) - Math.max(begin, lane.from(i)));
      return sum / (end - begin);
    });
}

export function showStretch(picture, from, until, zoom) {
  const [running, runnable, syscall, waiting] = averages(picture, from, until);
  const times = `--stream ${picture.stream} --since ${exactTime(from)} --until ${exactTime(until)}`;
  show(
    `A stretch of ${duration(Number(until - from))}`,
    list([
      ["running", inWords(picture.program, `${running.toFixed(2)} goroutines on average`)],
      ["runnable", inWords(picture.program, `${runnable.toFixed(2)} waited for a P`)],
      ["in system calls", syscall.toFixed(2)],
      ["waiting", waiting.toFixed(1)],
    ]),
    element("p", { className: "buttons" }, button("zoom to it", zoom), copyButton("copy query command", `tracectl query ${times} --saved waits`), copyButton("copy fetch command", `tracectl fetch ${times} -o stretch.trace`)),
    new StretchReports(picture.stream, from, until).node,
  );
}
