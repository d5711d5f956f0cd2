// The strip above all tabs: the number of events over time, and the selected part.

import type { App, Range } from "./app.js";
import { button, colour, el, fill, prepareCanvas } from "./dom.js";
import * as format from "./format.js";

const HEIGHT = 44;

export class Strip {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { class: "strip-canvas" });
  private readonly from = el("input", { type: "number", step: "any", class: "time" });
  private readonly to = el("input", { type: "number", step: "any", class: "time" });
  private readonly note = el("span", { class: "quiet strip-note" });
  private readonly clear: HTMLButtonElement;
  private bins: number[] = [];
  private drag: number | null = null;
  private width = 0;

  constructor(private readonly app: App) {
    this.clear = button("All", () => app.select(null), "small");
    this.canvas.setAttribute("role", "img");
    this.from.setAttribute("aria-label", "Select from, in seconds");
    this.to.setAttribute("aria-label", "Select to, in seconds");
    this.element = el(
      "section",
      { class: "strip", aria: { label: "Selected time" } },
      el("div", null, this.canvas),
      el(
        "div",
        { class: "strip-fields" },
        this.from,
        el("span", { class: "quiet", ariaHidden: "true" }, "–"),
        this.to,
        el("span", { class: "quiet" }, "s"),
        this.clear,
        this.note,
      ),
    );
    const typed = () => {
      const range = { from: this.from.valueAsNumber, to: this.to.valueAsNumber };
      if (Number.isFinite(range.from) && Number.isFinite(range.to)) app.select(range);
    };
    this.from.addEventListener("change", typed);
    this.to.addEventListener("change", typed);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = this.timeAt(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.drag !== null) this.draw({ from: this.drag, to: this.timeAt(event) });
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (this.drag === null) return;
      const range = { from: this.drag, to: this.timeAt(event) };
      this.drag = null;
      const pixels = (Math.abs(range.to - range.from) / this.length) * this.width;
      app.select(pixels < 3 ? null : range);
      this.draw();
    });
    app.addEventListener("range", () => this.update());
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  private get length(): number {
    return Math.max(1e-9, this.app.span.to - this.app.span.from);
  }

  private timeAt(event: PointerEvent): number {
    const share = (event.clientX - this.canvas.getBoundingClientRect().left) / this.width;
    return this.app.span.from + Math.max(0, Math.min(1, share)) * this.length;
  }

  /** Shows another recording. */
  async load(): Promise<void> {
    const { bins, count } = await this.app.density();
    this.bins = bins;
    const length = format.duration(this.app.span.to - this.app.span.from);
    this.canvas.setAttribute("aria-label", `${format.plural(count, "event")} in ${length}`);
    this.update();
  }

  private update(): void {
    const { range, span } = this.app;
    const { from, to } = range ?? span;
    this.from.value = String(Number(from.toFixed(6)));
    this.to.value = String(Number(to.toFixed(6)));
    this.clear.disabled = range === null;
    fill(this.note, range === null ? "Drag to select a time" : format.duration(to - from));
    this.draw();
  }

  draw(preview: Range | null = null): void {
    this.width = this.canvas.parentElement?.clientWidth ?? 0;
    if (this.width === 0) return;
    const context = prepareCanvas(this.canvas, this.width, HEIGHT);
    const most = Math.max(1, ...this.bins);
    const step = this.width / Math.max(1, this.bins.length);
    context.fillStyle = colour("series-1");
    for (const [index, value] of this.bins.entries()) {
      // A square root, so that a single event is visible beside thousands.
      const height = value === 0 ? 0 : Math.max(1.5, Math.sqrt(value / most) * (HEIGHT - 6));
      context.fillRect(index * step, HEIGHT - height, Math.max(1, step - 0.4), height);
    }
    const range = preview ?? this.app.range;
    if (range === null) return;
    const x = (time: number) => ((time - this.app.span.from) / this.length) * this.width;
    const left = Math.min(x(range.from), x(range.to));
    const right = Math.max(x(range.from), x(range.to));
    context.fillStyle = colour("veil");
    context.fillRect(0, 0, left, HEIGHT);
    context.fillRect(right, 0, this.width - right, HEIGHT);
    context.fillStyle = colour("accent");
    context.fillRect(left - 1, 0, 2, HEIGHT);
    context.fillRect(right - 1, 0, 2, HEIGHT);
  }
}
