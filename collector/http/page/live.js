// SPDX-License-Identifier: Apache-2.0
// Live events, for as long as the page is open. The browser dials again by itself after a broken
// connection and names the last event it had; after an answer that was an error it would not, so we do.

const RETRY_MS = 2000;
const STALE_MS = 5000;

export class Live {
  constructor(handlers) {
    this.handlers = handlers; // { history, overview, alert, gap, state }
    this.lastId = "";
    this.heardAt = 0;
    this.open();
    setInterval(() => this.watch(), 1000);
  }

  open() {
    const query = new URLSearchParams({ kinds: "history,overview,alert" });
    if (this.lastId) query.set("last_event_id", this.lastId);
    const source = new EventSource(`/api/v1/live?${query}`);
    this.source = source;
    source.onopen = () => this.heard();
    source.onerror = () => this.lost();
    for (const kind of ["history", "overview", "alert", "gap"])
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) this.lastId = event.lastEventId;
        this.heard();
        this.handlers[kind](JSON.parse(event.data));
      });
  }

  heard() {
    this.heardAt = performance.now();
    this.handlers.state("live");
  }

  lost() {
    this.handlers.state("reconnecting");
    if (this.source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => this.open(), RETRY_MS);
  }

  watch() {
    if (this.source.readyState === EventSource.OPEN && performance.now() - this.heardAt > STALE_MS)
      this.handlers.state("silent");
  }
}
