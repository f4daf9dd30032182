// SPDX-License-Identifier: Apache-2.0
// What stands below what: lanes of the last pictures as rows.
import { headInWords, inWords } from "/words.js";

const UNKNOWN = "(unknown)"; // the entry function of goroutines that do not say it
const COUNT_NAMES = ["goroutines running", "runnable", "in system calls", "waiting"];
const METRIC_NAMES = ["GOMAXPROCS", "heap live", "heap goal"];

function title(lane, words) {
  const { program } = lane.picture;
  switch (lane.kind) {
    case "count":
      return inWords(program, COUNT_NAMES[lane.id]);
    case "metric":
      return inWords(program, METRIC_NAMES[lane.id] ?? `metric ${lane.id}`);
    case "range":
      return words[lane.id];
    case "log":
      return "log";
    case "sample":
      return "CPU samples";
    case "task":
      return lane.row === 0 ? "tasks" : "";
    case "proc":
      return `${headInWords(program, "P")} ${lane.id}`;
    case "thread":
      return `${headInWords(program, "thread")} ${lane.id}`;
    case "goroutine":
      return `${program === "C" ? "thread" : "G"} ${lane.id}${lane.name ? ` ${lane.name}` : ""}`;
    case "region":
      return lane.row === 0 ? "regions" : "";
    default:
      return "";
  }
}

const isSeries = (lane) => lane.kind === "count" || lane.kind === "metric";

function rowOf(lane, words, inner = false) {
  return { key: `${lane.kind} ${lane.id} ${lane.row}`, title: title(lane, words), lane, inner, height: isSeries(lane) ? 34 : 20 };
}

function head(key, name) {
  return { key, title: name, lane: null, head: true, height: 20 };
}

// Lanes of goroutines, each with its regions.
function goroutineRows(picture) {
  const regions = new Map();
  for (const lane of picture.lanes.filter((l) => l.kind === "region")) regions.set(lane.id, [...(regions.get(lane.id) ?? []), lane]);
  return picture.lanes
    .filter((lane) => lane.kind === "goroutine")
    .flatMap((lane) => [rowOf(lane, picture.looks, true), ...(regions.get(lane.id) ?? []).map((region) => rowOf(region, picture.looks, true))]);
}

function section(rows, name, lanes, picture) {
  if (lanes.length > 0) rows.push(head(name, name), ...lanes.map((lane) => rowOf(lane, picture.looks)));
}

// Another stream: its picture, why there is none, or null while it is read.
function otherRows(id, picture) {
  const name = picture?.service ? `${picture.service} / ${picture.instance}${picture.wall_estimated ? ", times estimated" : ""}` : `stream ${id.slice(0, 8)}: ${picture?.why ?? "reading"}`;
  const rows = (picture?.lanes ?? []).map((lane) => ({ ...rowOf(lane, picture.looks), key: `${id} ${lane.kind} ${lane.id} ${lane.row}` }));
  return [{ ...head(id, `${name} ✕`), expands: `drop ${id}`, expanded: true }, ...rows];
}

// base: the picture of all of it; pinned: that of goroutines that were asked for, or null; groups: name -> picture of its
// goroutines, null while it is read; filter: what groups have in their names; others: stream -> its picture.
export function makeRows(base, pinned, groups, filter, showsThreads, others) {
  const rows = [];
  const of = (...kinds) => base.lanes.filter((lane) => kinds.includes(lane.kind));

  if (pinned !== null) rows.push(head("pinned", "Pinned"), ...goroutineRows(pinned));
  section(rows, "Process", of("count", "metric", "range", "log", "sample"), base);
  section(rows, "Tasks", of("task"), base);
  section(rows, inWords(base.program, "Ps"), of("proc"), base);
  rows.push({ ...head("threads", base.program === "C" ? "Threads of the kernel (tid)" : "Threads"), expands: "threads", expanded: showsThreads });
  if (showsThreads) rows.push(...of("thread").map((lane) => rowOf(lane, base.looks)));
  rows.push(head("goroutines", inWords(base.program, "Goroutines, by the function that they began in")));
  for (const lane of of("group")) {
    const name = lane.name || UNKNOWN;
    if (filter && !name.toLowerCase().includes(filter)) continue;
    const expanded = groups.has(name);
    rows.push({ ...rowOf(lane, base.looks), title: name, expands: name, expanded });
    const picture = groups.get(name);
    if (!picture) continue;
    rows.push(...goroutineRows(picture));
    if (picture.more_goroutines) rows.push({ ...head(`more ${name}`, "and more: a number in the field above pins one"), inner: true });
  }
  for (const [id, picture] of others) rows.push(...otherRows(id, picture));
  let top = 0;
  for (const row of rows) {
    row.top = top;
    top += row.height;
  }
  return { rows, height: top };
}
