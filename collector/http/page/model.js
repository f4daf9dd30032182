// SPDX-License-Identifier: Apache-2.0
// What two overviews tell that one does not: rates, and when the world was stopped. Everything else is
// shown as it came.

const WINDOW_NS = 10e9; // rates are over so long
const SECONDS_MAX = 300; // of the chart
const OLD_NS = 15e9; // a stream whose last data came so long ago, a flight recorder's after a snap, says nothing of now

const byText = new Intl.Collator("en").compare;

export class Model {
  constructor() {
    this.samples = new Map(); // stream -> [{ at, bytes, events }], oldest first
    this.totals = new Map(); // stream -> Map(cause -> total_ns)
    this.seconds = []; // [{ at, stops: [{ stream, name, id, ns }], sums }], oldest first
    this.overview = null;
    this.filter = "";
  }

  take(overview) {
    const first = this.overview === null;
    const stops = [];
    for (const s of overview.streams) {
      s.name = `${s.service} ${s.instance}`.toLowerCase();
      s.old = s.last_wall_ns > 0 && overview.wall_ns - s.last_wall_ns > OLD_NS; // 0: it has only just come
      s.blocked_busy = s.old ? 0 : s.blocked_now - s.blocked_idle;
      this.sample(s, overview.wall_ns);
      stops.push(...this.stopsSince(s, first));
    }
    const old = new Set(overview.streams.filter((s) => s.old).map((s) => s.name));
    for (const call of overview.blocked) call.old = old.has(`${call.service} ${call.instance}`.toLowerCase());
    this.forgetOthers(overview.streams);
    this.seconds.push({ at: overview.wall_ns, stops, sums: null });
    if (this.seconds.length > SECONDS_MAX) this.seconds.shift();
    this.overview = overview;
  }

  // What was before the page was opened. A page that had a broken connection has its own.
  remember(history) {
    if (this.overview !== null) return;
    const names = history.streams.map((s) => ({ stream: s.stream, name: `${s.service} ${s.instance}`.toLowerCase() }));
    const first = Math.max(history.since, history.until - SECONDS_MAX + 1);
    for (let at = first; at <= history.until; at++) this.seconds.push({ at: at * 1e9, stops: [], sums: null });
    for (const [at, stream, cause, ns] of history.stops)
      this.seconds[at - first]?.stops.push({ ...names[stream], id: history.causes[cause], ns });
  }

  // What is shown from here on: services and instances with this in their names.
  show(filter) {
    if (filter === this.filter) return;
    this.filter = filter;
    for (const second of this.seconds) second.sums = null;
  }

  fits(name) {
    return name.includes(this.filter);
  }

  sample(s, at) {
    const list = this.samples.get(s.stream) ?? [];
    list.push({ at, bytes: s.bytes, events: s.events });
    // One sample before the window stays, so that the window is a whole one.
    while (list.length > 2 && list[1].at <= at - WINDOW_NS) list.shift();
    this.samples.set(s.stream, list);
    const span = (at - list[0].at) / 1e9;
    s.bytes_rate = span > 0 ? (s.bytes - list[0].bytes) / span : 0;
    s.events_rate = span > 0 ? (s.events - list[0].events) / span : 0;
  }

  // A stream that was there when the page opened had its stops before; a new one has all of them now.
  stopsSince(s, first) {
    const before = this.totals.get(s.stream);
    this.totals.set(s.stream, new Map(s.stw.map((stop) => [stop.id, stop.total_ns])));
    if (first) return [];
    return s.stw
      .map((stop) => ({ stream: s.stream, name: s.name, id: stop.id, ns: stop.total_ns - (before?.get(stop.id) ?? 0) }))
      .filter((stop) => stop.ns > 0);
  }

  forgetOthers(streams) {
    const there = new Set(streams.map((s) => s.stream));
    for (const table of [this.samples, this.totals])
      for (const id of table.keys()) if (!there.has(id)) table.delete(id);
  }

  // cause -> { ns, stream } of one second; made once, and again when the filter changes.
  sums(second) {
    if (second.sums === null) {
      second.sums = new Map();
      for (const stop of second.stops) {
        if (!this.fits(stop.name)) continue;
        const sum = second.sums.get(stop.id) ?? { ns: 0, stream: stop.stream };
        sum.ns += stop.ns;
        second.sums.set(stop.id, sum);
      }
    }
    return second.sums;
  }

  // By cause, over the streams shown: sums since they began, and of the last ten seconds.
  causes(streams) {
    const found = new Map();
    for (const s of streams)
      for (const stop of s.stw) {
        const c = found.get(stop.id) ?? { id: stop.id, reason: stop.reason, count: 0, total_ns: 0, max_ns: 0, p99_ns: null, last_ns: 0, seen: null };
        c.count += stop.count;
        c.total_ns += stop.total_ns;
        c.max_ns = Math.max(c.max_ns, stop.max_ns);
        if (stop.p99_ns !== null) c.p99_ns = Math.max(c.p99_ns ?? 0, stop.p99_ns); // null: quantiles were not kept
        found.set(stop.id, c);
      }
    for (const second of this.seconds)
      for (const [id, sum] of this.sums(second)) {
        const c = found.get(id);
        if (c === undefined) continue;
        c.seen = { at: second.at, stream: sum.stream };
        if (second.at > this.overview.wall_ns - WINDOW_NS) c.last_ns += sum.ns;
      }
    return [...found.values()].sort((a, b) => b.total_ns - a.total_ns || byText(a.id, b.id));
  }

  // [seconds, one array of milliseconds a cause]
  series(causes) {
    const rows = causes.map((c) => this.seconds.map((second) => (this.sums(second).get(c.id)?.ns ?? 0) / 1e6));
    return [this.seconds.map((second) => second.at / 1e9), rows];
  }
}
