// SPDX-License-Identifier: Apache-2.0
// Why one task, region or wait took so long: in words, as a picture and as tables.
// /why/STREAM?from=&to=&task=ID, or slow=TYPE, or goroutine=G&ns=TIME
import { askJson } from "/ask.js";
import { duration, moment } from "/format.js";
import { ReportView } from "/report_table.js";
import { byId, copyButton, element, setData, setText, timelineAddress } from "/view.js";
import { pathPicture, STATES } from "/why_path.js";
import { showSteps } from "/why_steps.js";
import { inWords, schemaInWords } from "/words.js";

const IN_WORDS = 3;
const PARTS = { cpu: "its own CPU", runnable: "waiting for a P", syscall: "in system calls", gc_assist: "helping the garbage collector", stop_the_world: "stop-the-world", waiting: "waiting", unknown: "not known" };

const [, , stream = ""] = location.pathname.split("/").map(decodeURIComponent);
const query = Object.fromEntries(new URLSearchParams(location.search));

function largest(behind) {
  const names = Object.keys(PARTS);
  return names.reduce((best, name) => (behind[`${name}_ns`] > behind[`${best}_ns`] ? name : best), names[0]);
}

// Where its longest piece was.
function placeOf(goroutine, path) {
  const longest = path.filter((p) => p.goroutine === goroutine).reduce((best, p) => (best === null || p.total_ns > best.total_ns ? p : best), null);
  return longest?.function ? `, at ${longest.function}` : "";
}

function behindWords(behind, path) {
  if (behind.goroutine === 0) return `${duration(behind.total_ns)} behind what the trace does not say`;
  const part = largest(behind);
  return `${duration(behind.total_ns)} behind goroutine ${behind.goroutine}${behind.entry ? ` ${behind.entry}` : ""} (${duration(behind[`${part}_ns`])} ${PARTS[part]}${placeOf(behind.goroutine, path)})`;
}

// As `tracectl why` says it.
function sentence({ figures, tables }) {
  const own = tables.parts.filter((p) => p.part !== "behind").map((p) => `${duration(p.total_ns)} ${PARTS[p.part]}${p.reason ? ` (${p.reason})` : ""}${p.part === "runnable" && figures.procs > 0 ? ` (${figures.runnable_mean.toFixed(1)} runnable, ${figures.procs} Ps)` : ""}`);
  const behind = tables.behind.slice(0, IN_WORDS).map((b) => behindWords(b, tables.path));
  const rest = tables.behind.slice(IN_WORDS);
  const others = rest.length > 0 ? [`${duration(rest.reduce((sum, b) => sum + b.total_ns, 0))} behind ${rest.length} others`] : [];
  return `${figures.subject} ${figures.open ? "is still open and has taken" : "took"} ${duration(figures.total_ns)}: ${[...own, ...behind, ...others].join(", ")}.`;
}

function wallOf(said, ns) {
  return said.from_wall_ns + (ns - said.from_ns);
}

function goTo(said, piece) {
  location.href = timelineAddress(stream, wallOf(said, piece.from_ns), wallOf(said, piece.until_ns), piece.goroutine);
}

function showPath(said) {
  byId("path-card").hidden = false;
  byId("path").replaceChildren(pathPicture(said.tables.path, said.figures, (text) => setText(byId("readout"), inWords(said.program, text)), (piece) => goTo(said, piece)));
  const keys = [...STATES.values()].map(([look, words]) => element("span", {}, element("i", { className: `key ${look}` }), inWords(said.program, words)));
  byId("keys").replaceChildren(...keys);
  showSteps(byId("steps"), stream, said, (ns) => wallOf(said, ns));
  byId("steps-card").hidden = false;
}

// The path is listed step by step.
function showTables(said) {
  const tables = said.schema.tables.filter((table) => table.name !== "path");
  const view = new ReportView(schemaInWords(said.program, { ...said.schema, tables, figures: [], options: [] }));
  byId("tables").replaceChildren(view.node);
  view.show({ ...said, from_wall_ns: 0, options: {}, events: 0 }); // its times: since its begin
  setText(view.about, `${moment(said.from_wall_ns)}, generations ${said.first_gen} to ${said.last_gen}`);
}

const fetchLine = (said) => `tracectl fetch --stream ${stream} --gen ${said.first_gen}..${said.last_gen} -o why.trace`;

function whyLine(said) {
  const asked = query.task !== undefined ? `--task ${query.task}` : query.slow !== undefined ? `--slow '${query.slow.replaceAll("'", "'\\''")}'` : `--goroutine ${query.goroutine} --at ${query.ns}`;
  return `${fetchLine(said)} && tracectl why why.trace ${asked}`;
}

async function show() {
  try {
    const said = await askJson("/api/v1/why", { stream, ...query });
    setText(byId("name"), `${said.service} / ${said.instance}: ${said.figures.subject}`);
    document.title = `why ${said.figures.subject} · tracecollect`;
    setText(byId("sentence"), inWords(said.program, sentence(said)));
    byId("links").replaceChildren(element("a", { className: "link", href: timelineAddress(stream, said.from_wall_ns, said.until_wall_ns) }, "on the timeline"), " ", copyButton("copy why command", whyLine(said)), " ", copyButton("copy fetch command", fetchLine(said)));
    showPath(said);
    showTables(said);
    setText(byId("state"), "explained");
    setData(byId("state"), "state", "good");
  } catch (error) {
    setText(byId("sentence"), error.message);
    setText(byId("state"), "no answer");
    setData(byId("state"), "state", "bad");
  }
  setData(document.body, "ready", 1);
}

show();
