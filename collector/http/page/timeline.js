// SPDX-License-Identifier: Apache-2.0
// The timeline of a stream: /timeline/STREAM?from=NS&to=NS&pin=1,2&beside=STREAM,STREAM. What is seen stands in the address.
import { duration, moment } from "/format.js";
import { showFault, showMoment, showState, showStretch, showTask, showTasks } from "/timeline_detail.js";
import { AXIS, Drawing } from "/timeline_draw.js";
import { Others } from "/timeline_others.js";
import { BEGAN_BEFORE, fetchMoment, fetchPicture, fetchState, GOES_ON, MIXED } from "/timeline_pictures.js";
import { makeRows } from "/timeline_rows.js";
import { byId, element, KeyedList, setData, setText } from "/view.js";
import { idInWords, inWords } from "/words.js";

const stream = location.pathname.split("/").pop();
const MARGIN = 1; // screens that are read on either side of what is seen
const SHORTEST = 1000n; // nanoseconds
const GROUP_LIMIT = 60;
const ZOOM = 1.6;
const NS_A_DAY = 86400n * 10n ** 9n;

const view = { from: null, until: null };
const pins = new Set();
const groups = new Map(); // name -> picture, null while it is read
const marks = { stretch: null, chosen: null };
let base = null;
let pinned = null;
let showsThreads = false;
let rows = [];
let reading = null; // AbortController
let readTimer = 0;
let frameAsked = false;
const scroller = byId("rows");
const drawing = new Drawing(byId("picture"));
const others = new Others(stream, () => read());

/* --- the address --- */

function readAddress() {
  const said = new URLSearchParams(location.search);
  const number = (name) => (/^\d{1,20}$/.test(said.get(name) ?? "") ? BigInt(said.get(name)) : null);
  const [from, to] = [number("from"), number("to")];
  if (from !== null && to !== null && to > from) Object.assign(view, { from, until: to });
  for (const id of (said.get("pin") ?? "").split(",")) if (/^\d{1,19}$/.test(id)) pins.add(id);
  for (const id of (said.get("beside") ?? "").split(",")) others.add(id);
}

function writeAddress() {
  const said = new URLSearchParams({ from: view.from, to: view.until });
  if (pins.size > 0) said.set("pin", [...pins].join(","));
  if (others.ids.length > 0) said.set("beside", others.ids.join(","));
  history.replaceState(null, "", `?${said}`);
}

/* --- reading --- */

const labelsWidth = () => (scroller.clientWidth < 600 ? 96 : 220);
const wide = () => Math.max(50, scroller.clientWidth - labelsWidth());

function wanted() {
  if (view.from === null) return { from: null, until: null, px: wide() };
  const length = view.until - view.from;
  const more = BigInt(MARGIN) * length;
  const from = view.from > more ? view.from - more : 0n;
  return { from, until: view.until + more, px: Math.min(8192, wide() * (2 * MARGIN + 1)) };
}

// Does the picture hold what is seen, as fine as it should be?
function serves(picture) {
  if (!picture || view.from === null) return false;
  const fine = Number(view.until - view.from) / wide();
  return picture.from <= view.from && picture.until >= view.until && picture.pixel <= fine * 1.25 + 1 && picture.pixel >= fine / 3;
}

const isServed = () => serves(base) && (pins.size === 0 || serves(pinned)) && [...groups.values()].every(serves) && others.serve(serves);

function say(state, text) {
  setText(byId("state"), text);
  setData(byId("state"), "state", state);
}

async function readBase(signal) {
  const lanes = "count,metric,range,log,sample,task,proc,group" + (showsThreads ? ",thread" : "");
  const picture = await fetchPicture(stream, { ...wanted(), lanes }, signal);
  base = picture;
  nameColours();
  if (view.from === null) Object.assign(view, { from: picture.from, until: picture.until });
}

async function readPinned(signal) {
  pinned = pins.size === 0 ? null : await fetchPicture(stream, { ...wanted(), lanes: "goroutine,region", goroutines: [...pins].join(",") }, signal);
}

async function readGroup(name, signal) {
  const picture = await fetchPicture(stream, { ...wanted(), lanes: "goroutine,region", entry: name, limit: GROUP_LIMIT }, signal);
  if (groups.has(name)) groups.set(name, picture);
}

function sayHoles() {
  const holes = base.generations.filter((g) => g.state !== "ok");
  if (holes.length === 0) say("good", base.wall_estimated ? "times estimated" : "exact");
  else say("bad", `${holes.length} of ${base.generations.length} generations ${holes[0].state}${holes[0].why ? `: ${holes[0].why}` : ""}`);
}

async function readNow() {
  reading?.abort();
  const mine = (reading = new AbortController());
  say("waiting", "reading");
  try {
    const began = performance.now();
    if (!serves(base)) await readBase(mine.signal);
    layOut();
    if (!serves(pinned)) await readPinned(mine.signal);
    for (const name of [...groups.keys()]) if (!serves(groups.get(name))) await readGroup(name, mine.signal);
    await others.read(wanted(), serves, mine.signal);
    setData(document.body, "took", Math.round(performance.now() - began));
    sayHoles();
    layOut();
    writeAddress();
    setData(document.body, "ready", Number(document.body.dataset.ready ?? 0) + 1);
  } catch (error) {
    if (error.name === "AbortError") return;
    say("bad", "no picture");
    if (view.from === null || base === null) showFault(error.message);
    else setText(byId("state"), error.message);
  }
}

let newestRead = Promise.resolve();

function read() {
  newestRead = readNow();
  return newestRead;
}

// Waits for the newest read: it aborts those before it.
async function settled() {
  let awaited;
  do {
    awaited = newestRead;
    await awaited;
  } while (awaited !== newestRead);
}

function readSoon() {
  clearTimeout(readTimer);
  if (isServed()) writeAddress();
  else readTimer = setTimeout(read, 60);
}

/* --- rows --- */

function makeLabel(row) {
  const node = element("li");
  node.body = element(row.expands ? "button" : "span", row.expands ? { type: "button", className: "plain" } : {});
  if (row.expands) node.body.addEventListener("click", () => toggle(row.expands));
  node.append(node.body);
  return node;
}

function updateLabel(node, row) {
  node.className = `${row.head ? "head" : ""} ${row.inner ? "inner" : ""}`;
  node.style.top = `${row.top + AXIS}px`;
  node.title = row.title;
  setText(node.body, row.title);
  if (row.expands) node.body.setAttribute("aria-expanded", String(row.expanded));
}

const labels = new KeyedList(byId("labels"), (row) => `${row.key} ${row.expands ? "button" : ""}`, makeLabel, updateLabel);

function layOut() {
  if (base === null) return;
  const made = makeRows(base, pinned, groups, findText(), showsThreads, others.shown);
  rows = made.rows;
  byId("spacer").style.height = `${made.height + AXIS}px`;
  setText(byId("name"), `${base.service} / ${base.instance}`);
  document.title = `${base.service} / ${base.instance} · timeline`;
  frame();
}

function toggle(name) {
  if (name === "threads") {
    showsThreads = !showsThreads;
    base = showsThreads ? null : base;
  } else if (name.startsWith("drop ")) {
    others.drop(name.slice("drop ".length));
  } else if (!groups.delete(name)) {
    groups.set(name, null);
  }
  layOut();
  readSoon();
}

/* --- frames --- */

function drawFrame() {
  frameAsked = false;
  if (base === null || view.from === null) return;
  const left = labelsWidth();
  scroller.style.setProperty("--labels", `${left}px`);
  drawing.resize(scroller.clientWidth, scroller.clientHeight);
  drawing.frame(rows, scroller.scrollTop, view, left, marks);
  const [top, bottom] = [scroller.scrollTop - 40, scroller.scrollTop + scroller.clientHeight];
  labels.show(rows.filter((row) => row.top + row.height >= top && row.top <= bottom && (row.title || row.expands)));
  setText(byId("range"), `${moment(Number(view.from))}`);
  setText(byId("length"), duration(Number(view.until - view.from)));
}

function frame() {
  if (frameAsked) return;
  frameAsked = true;
  requestAnimationFrame(drawFrame);
}

/* --- moving --- */

function lookAt(from, until) {
  let length = until - from;
  if (length < SHORTEST) length = SHORTEST;
  if (length > NS_A_DAY) length = NS_A_DAY;
  if (from < 0n) from = 0n;
  Object.assign(view, { from, until: from + length });
  others.forgetFaults();
  frame();
  readSoon();
}

const scaled = (ns, by) => BigInt(Math.round(Number(ns) * by));

function pan(part) {
  const by = scaled(view.until - view.from, part);
  lookAt(view.from + by, view.until + by);
}

// by > 1: nearer. part: what stays in its place, 0 to 1.
function zoom(by, part = 0.5) {
  const length = view.until - view.from;
  const next = scaled(length, 1 / by);
  const from = view.from + scaled(length - next, part);
  lookAt(from, from + next);
}

function newest() {
  Object.assign(view, { from: null, until: null });
  base = pinned = null;
  read();
}

const acts = { left: () => pan(-0.5), right: () => pan(0.5), in: () => zoom(ZOOM), out: () => zoom(1 / ZOOM), newest };
const keys = { a: () => pan(-0.2), d: () => pan(0.2), w: acts.in, s: acts.out, ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": acts.in, "-": acts.out, n: newest, g: () => chooseAll(base, (view.from + view.until) / 2n), Enter: () => chooseMiddle(), Escape: () => unchoose() };

/* --- choosing --- */

function rowAt(y) {
  const at = y + scroller.scrollTop - AXIS;
  return rows.find((row) => at >= row.top && at < row.top + row.height);
}

const timeAt = (x) => view.from + scaled(view.until - view.from, (x - labelsWidth()) / wide());

const NARROW = new Set(["log", "sample", "task", "region"]); // what is near enough is meant, too

// The cell of a row at a place, or null.
function cellAt(row, wallNs) {
  if (!row?.lane) return null;
  const { picture } = row.lane;
  const slack = (2 * Number(view.until - view.from)) / wide();
  const i = row.lane.find(Number(wallNs - picture.from), NARROW.has(row.lane.kind) ? slack : 0);
  return i < 0 ? null : { lane: row.lane, i, from: picture.from + BigInt(row.lane.from(i)), until: picture.from + BigInt(row.lane.until(i)) };
}

function generationAt(picture, wallNs) {
  return picture.generations.find((g) => g.state === "ok" && BigInt(g.until_wall_ns) >= wallNs) ?? picture.generations.at(-1);
}

// Tasks that are shorter than a pixel are told apart nearer by.
function chooseTask(row, { lane, i, from, until }) {
  const closer = () => lookAt(from - (until - from) / 4n - SHORTEST, until + (until - from) / 4n + SHORTEST);
  marks.chosen = { key: row.key, from, until, by: null };
  if (lane.flags(i) & MIXED) showTasks(() => [unchoose(), closer()]);
  else showTask(lane.picture.stream, { task: lane.subject(i), type: lane.label(i), from, until, beganBefore: lane.flags(i) & BEGAN_BEFORE, goesOn: lane.flags(i) & GOES_ON }, closer);
  frame();
}

async function choose(row, wallNs) {
  const of = { proc: "proc", thread: "thread", goroutine: "goroutine", region: "goroutine" }[row?.lane?.kind];
  const cell = cellAt(row, wallNs);
  if (row?.lane?.kind === "task" && cell !== null) return chooseTask(row, cell);
  if (!of || cell === null) return;
  const { picture } = row.lane;
  const offset = picture.from - picture.traceFrom;
  try {
    const said = await fetchMoment(picture.stream, generationAt(picture, wallNs).gen, wallNs - offset, of, row.lane.id);
    marks.chosen = { key: row.key, from: BigInt(said.from_ns) + offset, until: BigInt(said.until_ns) + offset, by: said.by };
    showMoment(picture.stream, { ...said, program: picture.program }, (ns) => ns + offset, { pin: pinOf(picture), go: picture.stream === stream ? (id, ns) => goTo(id, BigInt(ns) + offset) : pinOf(picture), all: () => chooseAll(picture, wallNs) });
  } catch (error) {
    showFault(error.message);
  }
  frame();
}

// What each goroutine did at a moment.
async function chooseAll(picture, wallNs) {
  marks.chosen = null;
  try {
    showState(picture.stream, { ...(await fetchState(picture.stream, generationAt(picture, wallNs).gen, wallNs - (picture.from - picture.traceFrom))), program: picture.program }, wallNs, pinOf(picture));
  } catch (error) {
    showFault(error.message);
  }
  frame();
}

function chooseMiddle() {
  const row = rowAt(AXIS + 1 + (scroller.clientHeight - AXIS) / 2);
  choose(row?.lane ? row : rows.find((r) => r.lane?.kind === "proc"), (view.from + view.until) / 2n);
}

function unchoose() {
  marks.chosen = marks.stretch = null;
  byId("detail").hidden = true;
  frame();
}

// A goroutine of another stream has a lane on the timeline of that one.
function pinOf(picture) {
  if (picture.stream === stream) return pin;
  return (id) => (location.href = `/timeline/${picture.stream}?${new URLSearchParams({ from: view.from, to: view.until, pin: id, beside: stream })}`);
}

function pin(id) {
  pins.add(String(id));
  pinned = null;
  return read();
}

// To what woke it: its lane is pinned, and what it did then is shown.
async function goTo(id, wallNs) {
  if (wallNs < view.from || wallNs > view.until) {
    const half = (view.until - view.from) / 2n;
    Object.assign(view, { from: wallNs - half, until: wallNs + half });
  }
  pin(id);
  await settled();
  const row = rows.find((r) => r.lane?.kind === "goroutine" && r.lane.id === String(id));
  if (row) await choose(row, wallNs - 1n);
}

/* --- pointer, keys, fields --- */

function tipText(row, cell) {
  const { lane, i } = cell;
  const length = duration(Number(cell.until - cell.from));
  if (lane.kind === "count" || lane.kind === "metric") return `${row.title}: ${lane.value(i).toPrecision(4)}`;
  if (lane.kind === "group") return `${row.title}: ${(lane.share(i) / 256).toFixed(2)} ${lane.picture.looks[lane.look(i)]}`;
  const what = [lane.picture.looks[lane.look(i)], lane.kind === "proc" || lane.kind === "thread" ? idInWords(lane.picture.program, lane.subject(i)) : "", lane.kind === "goroutine" ? "" : lane.label(i)].filter(Boolean).join(" ");
  if (lane.kind === "log" || lane.kind === "sample") return lane.share(i) > 1 ? `${what}, and ${lane.share(i) - 1} more` : what;
  if (lane.flags(i) & MIXED) return `mostly ${what}`;
  return `${what}, ${length}${lane.flags(i) & GOES_ON ? " and on" : ""}${lane.kind === "task" ? "; click: why" : ""}`;
}

const CHOSEN = new Set(["task", "proc", "thread", "goroutine", "region"]);

function showTip(event) {
  const tip = byId("tip");
  const box = scroller.getBoundingClientRect();
  const row = base === null ? undefined : rowAt(event.clientY - box.top);
  const cell = row && event.clientX - box.left > labelsWidth() ? cellAt(row, timeAt(event.clientX - box.left)) : null;
  tip.hidden = cell === null;
  scroller.classList.toggle("points", CHOSEN.has(cell?.lane.kind));
  if (cell === null) return;
  setText(tip, tipText(row, cell));
  const main = tip.parentElement.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX - main.left + 12, main.width - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY - main.top + 14}px`;
}

let drag = null; // { x, from, until, moved, stretches }

scroller.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || base === null || event.target.closest("button")) return;
  const x = event.clientX - scroller.getBoundingClientRect().left;
  if (x < labelsWidth()) return;
  drag = { x, ...view, moved: false, stretches: event.shiftKey };
  scroller.setPointerCapture(event.pointerId);
});

scroller.addEventListener("pointermove", (event) => {
  const x = event.clientX - scroller.getBoundingClientRect().left;
  if (drag === null) return showTip(event);
  byId("tip").hidden = true;
  if (!drag.moved && Math.abs(x - drag.x) < 4) return;
  drag.moved = true;
  scroller.classList.add("drags");
  if (drag.stretches) {
    const [a, b] = [timeAt(drag.x), timeAt(x)];
    marks.stretch = { from: a < b ? a : b, until: a < b ? b : a };
    frame();
  } else {
    const by = scaled(drag.until - drag.from, (drag.x - x) / wide());
    lookAt(drag.from + by, drag.until + by);
  }
});

scroller.addEventListener("pointerup", (event) => {
  const was = drag;
  const box = scroller.getBoundingClientRect();
  drag = null;
  scroller.classList.remove("drags");
  if (was === null) return;
  if (!was.moved) choose(rowAt(event.clientY - box.top), timeAt(event.clientX - box.left));
  else if (was.stretches && marks.stretch.until > marks.stretch.from) {
    const { from, until } = marks.stretch;
    showStretch(base, from, until, () => lookAt(from, until));
  }
});

scroller.addEventListener("pointerleave", () => (byId("tip").hidden = true));

scroller.addEventListener(
  "wheel",
  (event) => {
    if (base === null) return;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), (event.clientX - scroller.getBoundingClientRect().left - labelsWidth()) / wide());
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / wide());
    }
  },
  { passive: false },
);

scroller.addEventListener("dblclick", (event) => {
  const box = scroller.getBoundingClientRect();
  const cell = cellAt(rowAt(event.clientY - box.top), timeAt(event.clientX - box.left));
  if (cell === null) return;
  const slack = (cell.until - cell.from) / 4n + SHORTEST;
  lookAt(cell.from - slack, cell.until + slack);
});

scroller.addEventListener("keydown", (event) => {
  const act = keys[event.key];
  if (!act || base === null || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button")) return;
  event.preventDefault();
  act();
});

const findText = () => (/^\d+$/.test(byId("find").value.trim()) ? "" : byId("find").value.trim().toLowerCase());

byId("find").addEventListener("input", layOut);
byId("find").addEventListener("change", () => {
  const text = byId("find").value.trim().replace(/^[gG]\s*/, "");
  if (/^\d+$/.test(text)) pin(text);
});
byId("detail-close").addEventListener("click", unchoose);
document.querySelector(".tools").addEventListener("click", (event) => base !== null && acts[event.target.dataset.act]?.());
scroller.addEventListener("scroll", frame, { passive: true });
new ResizeObserver(() => {
  frame();
  if (base !== null) readSoon();
}).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", frame);

/* --- begin --- */

const COLOURS = [[0, "running"], [1, "runnable"], [2, "system call"], [3, "call without a P"], [5, "waits: sync"], [6, "chan"], [7, "net"], [8, "sleep"], [9, "gc"], [4, "other"], [10, "world stopped"], [11, "gc marks"]];
for (const [look, name] of COLOURS) {
  const swatch = element("i");
  swatch.style.background = `var(--look-${look})`;
  byId("legend").append(element("span", {}, swatch, name));
}

// In the words of the program that is drawn.
function nameColours() {
  for (const [i, node] of [...byId("legend").children].entries()) node.lastChild.data = inWords(base.program, COLOURS[i][1]);
  byId("find").placeholder = inWords(base.program, "goroutine or function");
}

readAddress();
read();
