// Where the time of the processors went: flame graph and table of methods.

import type { Profile } from "../../package/src/types.js";
import { type App, type Tab, busy, empty } from "./app.js";
import { button, el, field, fill } from "./dom.js";
import { Flame } from "./flame.js";
import * as format from "./format.js";
import { Grid } from "./grid.js";

/** A frame with all its samples. */
export interface Total {
  label: string;
  module: string;
  own: number;
  total: number;
}

/** The totals of all frames; recursive calls are counted once. */
export function totals(profile: Profile): Total[] {
  const frames = profile.labels.length - profile.roots;
  const sums: Total[] = [];
  for (let frame = 0; frame < frames; frame += 1) {
    sums.push({
      label: profile.labels[frame]!,
      module: profile.modules[frame] ?? "",
      own: 0,
      total: 0,
    });
  }
  const path: number[] = [];
  const onPath = new Map<number, number>();
  for (let node = 0; node < profile.depth.length; node += 1) {
    const depth = profile.depth[node]!;
    while (path.length > depth) {
      const left = path.pop()!;
      onPath.set(left, onPath.get(left)! - 1);
    }
    const label = profile.label[node]!;
    const above = onPath.get(label) ?? 0;
    const sum = sums[label];
    if (sum !== undefined) {
      sum.own += profile.own[node]!;
      if (above === 0) sum.total += profile.total[node]!;
    }
    onPath.set(label, above + 1);
    path.push(label);
  }
  return sums.sort((one, other) => other.own - one.own || other.total - one.total);
}

export class Cpu implements Tab {
  readonly name = "cpu";
  readonly title = "CPU";
  readonly needsTrace = true;
  readonly element: HTMLElement;
  private readonly flame = new Flame();
  private readonly measure = el(
    "select",
    null,
    el("option", { value: "samples" }, "CPU samples"),
    el("option", { value: "allocations" }, "Allocations of .NET"),
  );
  private readonly threads = el("input", { type: "checkbox" });
  private readonly idle = el("input", { type: "checkbox" });
  private readonly search = el("input", { type: "search", placeholder: "part of a name" });
  private readonly found = el("span", { class: "quiet", role: "status" });
  private readonly place = el("div", { class: "fill place" });
  private readonly grid: Grid<Total>;
  private profile: Profile | null = null;
  private rows: Total[] = [];
  private shown: Total[] = [];
  private sorted = 0;

  constructor(private readonly app: App) {
    const size = (value: number) => format.weight(value, this.profile?.unit ?? "samples");
    const share = (value: number) => format.percent(value, this.whole);
    this.grid = new Grid<Total>({
      label: "Methods",
      columns: [
        {
          title: "Self",
          hint: "In the method itself",
          width: 96,
          isNumber: true,
          text: ({ own }) => size(own),
        },
        { title: "Self %", width: 72, isNumber: true, text: ({ own }) => share(own) },
        {
          title: "Total",
          hint: "In it and what it calls",
          width: 96,
          isNumber: true,
          text: ({ total }) => size(total),
        },
        { title: "Total %", width: 76, isNumber: true, text: ({ total }) => share(total) },
        { title: "Method", width: 320, text: ({ label }) => label },
      ],
      onsort: (column) => {
        this.sorted = column;
        this.grid.markSorted(column, column < 4);
        this.arrange();
      },
      onselect: (index) => {
        const row = this.shown[index];
        if (row !== undefined) this.found.textContent = row.label;
      },
      onactivate: (index) => {
        const row = this.shown[index];
        if (row === undefined) return;
        this.search.value = row.label;
        this.find();
      },
    });
    for (const control of [this.measure, this.threads, this.idle]) {
      control.addEventListener("change", () => void this.show());
    }
    this.search.addEventListener("input", () => this.find());
    this.element = el(
      "div",
      { class: "page fill" },
      el(
        "div",
        { class: "toolbar" },
        field("Show", this.measure),
        field("Search", this.search),
        el("label", { class: "check" }, this.threads, "By thread"),
        el("label", { class: "check" }, this.idle, "Idle processors"),
        button("Zoom out", () => this.flame.zoom(-1)),
        this.found,
      ),
      this.place,
    );
  }

  private get whole(): number {
    const { profile } = this;
    if (profile === null) return 0;
    return profile.unit === "samples" ? profile.samples : profile.size;
  }

  show(): Promise<void> {
    return busy(this.place, async () => {
      const allocations = this.measure.value === "allocations";
      const profile = await this.app.analysis.ask("profile", {
        ...this.app.rangeOptions,
        by_thread: this.threads.checked,
        idle: this.idle.checked,
        allocations,
      });
      this.profile = profile;
      this.place.dataset["samples"] = String(profile.samples);
      this.place.dataset["size"] = String(profile.size);
      if (profile.samples === 0) {
        const what = allocations ? "No allocations with stacks" : "No CPU samples";
        fill(
          this.place,
          empty(
            `${what} in the recording`,
            ...profile.missing.map((line) => line.replaceAll("`", "")),
          ),
        );
        return;
      }
      this.rows = totals(profile);
      const missing = profile.missing.map((line) =>
        el("p", { class: "remark" }, line.replaceAll("`", "")),
      );
      fill(
        this.place,
        ...missing,
        el("div", { class: "stacked" }, this.flame.element, this.grid.element),
      );
      this.flame.show(profile);
      this.find();
    });
  }

  private find(): void {
    const text = this.search.value.trim();
    const size = this.flame.search(text);
    if (this.profile !== null) {
      const words = `${format.weight(size, this.profile.unit)}, ${format.percent(size, this.whole)}`;
      this.found.textContent = text === "" ? "" : words;
    }
    this.arrange();
  }

  private arrange(): void {
    const text = this.search.value.trim().toLowerCase();
    this.shown = this.rows.filter(({ label }) => label.toLowerCase().includes(text));
    if (this.sorted >= 4)
      this.shown.sort((one, other) => one.label.localeCompare(other.label, "en"));
    else if (this.sorted >= 2) this.shown.sort((one, other) => other.total - one.total);
    this.grid.show({ count: this.shown.length, row: (index) => this.shown[index] });
  }
}
