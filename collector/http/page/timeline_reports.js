// SPDX-License-Identifier: Apache-2.0
// Reports of a stretch of a stream, by a choice of their kind.
import { askJson } from "/ask.js";
import { exactTime } from "/format.js";
import { ReportView } from "/report_table.js";
import { element, setData, setText } from "/view.js";
import { schemaInWords } from "/words.js";

const ROWS = 20;
let schemas = null;

export class StretchReports {
  constructor(stream, from, until) {
    this.query = { stream, from: exactTime(from), to: exactTime(until), top: ROWS };
    this.select = element("select", {}, element("option", { value: "" }, "choose"));
    this.fault = element("p", { className: "muted", hidden: true });
    this.place = element("div");
    this.node = element("div", { className: "stretch-reports" }, element("div", { className: "choices" }, element("label", {}, "Report of these generations ", this.select)), this.fault, this.place);
    this.select.addEventListener("change", () => this.show());
    this.fill();
  }

  async fill() {
    try {
      schemas ??= (await askJson("/api/v1/reports")).reports;
      this.select.append(...schemas.map((s) => element("option", { value: s.name }, s.name)));
    } catch (error) {
      this.fail(error.message);
    }
  }

  fail(why) {
    setText(this.fault, why);
    this.fault.hidden = false;
  }

  // The answer to the last choice is shown, whichever comes first.
  async show() {
    const kind = this.select.value;
    this.fault.hidden = true;
    this.place.replaceChildren();
    if (kind === "") return;
    try {
      const report = await askJson(`/api/v1/stretch/${encodeURIComponent(kind)}`, this.query);
      if (this.select.value !== kind) return;
      const view = new ReportView(schemaInWords(report.program, schemas.find((s) => s.name === kind)));
      this.place.replaceChildren(view.node);
      view.show(report);
      setData(this.node, "shown", kind);
    } catch (error) {
      this.fail(error.message);
    }
  }
}
