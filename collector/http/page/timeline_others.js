// SPDX-License-Identifier: Apache-2.0
// Other streams below the first one, by wall clock: each by that of its own host.
import { askJson } from "/ask.js";
import { fetchPicture } from "/timeline_pictures.js";
import { byId, element } from "/view.js";

const LANES = "count,range,task,proc";
const MOST = 8;

export class Others {
  // changed(): one was added or left.
  constructor(stream, changed) {
    Object.assign(this, { stream, changed, shown: new Map(), names: new Map() }); // shown: stream -> picture, { why }, or null while it is read
    byId("beside").addEventListener("focus", () => this.fill());
    byId("beside").addEventListener("change", (event) => {
      this.add(event.target.value);
      event.target.value = "";
      changed();
    });
  }

  get ids() {
    return [...this.shown.keys()];
  }

  add(id) {
    if (/^[0-9a-f]{32}$/.test(id) && id !== this.stream && this.shown.size < MOST && !this.shown.has(id)) this.shown.set(id, null);
  }

  drop(id) {
    this.shown.delete(id);
  }

  async fill() {
    try {
      const { streams } = await askJson("/api/v1/streams");
      const others = streams.filter((s) => s.stream !== this.stream && !this.shown.has(s.stream)).sort((a, b) => b.newest_wall_ns - a.newest_wall_ns);
      const options = others.map((s) => element("option", { value: s.stream }, `${s.service} / ${s.instance}${s.state === "live" ? "" : `, ${s.state}`}`));
      byId("beside").replaceChildren(element("option", { value: "" }, "compare with another stream"), ...options);
    } catch {
      // the choice stays as it was
    }
  }

  serve(serves) {
    return [...this.shown.values()].every((picture) => picture !== null && (picture.why !== undefined || serves(picture)));
  }

  // One that has nothing of that time says so, and is asked again when another time is looked at.
  async read(wanted, serves, signal) {
    for (const [id, picture] of this.shown) {
      if (picture !== null && picture.why === undefined && serves(picture)) continue;
      try {
        this.shown.set(id, await fetchPicture(id, { ...wanted, lanes: LANES }, signal));
      } catch (error) {
        if (error.name === "AbortError") throw error;
        this.shown.set(id, { why: error.message });
      }
    }
  }

  // Another time is looked at.
  forgetFaults() {
    for (const [id, picture] of this.shown) if (picture?.why !== undefined) this.shown.set(id, null);
  }
}
