// What happened when, as lanes on a canvas: losses, collections, CPU by process, processes with
// their rundowns, activities.

import type { Cell, Rows, SampledProcess, Verdict } from "../../package/src/types.js";
import { type App, type Range, type Tab, busy, empty } from "./app.js";
import { announce, button, colour, el, fill, prepareCanvas } from "./dom.js";
import * as format from "./format.js";

interface Bar {
  from: number;
  to: number;
  text: string;
  colour: string;
}

interface Lane {
  title: string;
  height: number;
  bars: Bar[];
  /** Samples in equal parts of the whole time, instead of bars. */
  counts?: number[];
  isHeading?: boolean;
}

const RULER = 26;
const LANE = 22;
const GRAPH = 30;
const HEADING = 24;
const BINS = 1200;
const MAX_LANES = 24;
const MAX_BARS = 20_000;

export class Timeline implements Tab {
  readonly name = "timeline";
  readonly title = "Timeline";
  readonly needsTrace = true;
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { tabIndex: 0 });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly place = el("div", { class: "timeline" });
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly status = el("div", { class: "fill place" });
  private lanes: Lane[] = [];
  private loadedFor: unknown = null;
  private view: Range = { from: 0, to: 1 };
  private drag: { x: number; from: number; to: number; isSelection: boolean } | null = null;
  private selection: Range | null = null;
  private readonly pointers = new Map<number, number>();
  private width = 0;

  constructor(private readonly app: App) {
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute(
      "aria-label",
      "Timeline. Arrow keys move, plus and minus zoom, Enter selects the visible time, Home shows all.",
    );
    this.place.append(this.canvas, this.tip);
    this.element = el(
      "div",
      { class: "page fill" },
      el(
        "div",
        { class: "toolbar" },
        button("Zoom in", () => this.zoom(0.5)),
        button("Zoom out", () => this.zoom(2)),
        button("Show all", () => this.setView(this.app.span)),
        button("Select visible time", () => this.app.select(this.view), "primary"),
        this.note,
      ),
      this.status,
    );
    this.canvas.addEventListener("wheel", (event) => this.onwheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.ondown(event));
    this.canvas.addEventListener("pointermove", (event) => this.onmove(event));
    this.canvas.addEventListener("pointerup", (event) => this.onup(event));
    this.canvas.addEventListener("pointercancel", (event) => this.onup(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.canvas.addEventListener("dblclick", () => this.setView(this.app.span));
    this.canvas.addEventListener("keydown", (event) => this.onkey(event));
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  show(): Promise<void> {
    return busy(this.status, async () => {
      if (this.loadedFor !== this.app.opened) {
        await this.load();
        this.loadedFor = this.app.opened;
        this.view = { ...this.app.span };
      }
      if (this.lanes.length === 0) {
        fill(this.status, empty("Nothing to show over time"));
        return;
      }
      if (this.place.parentElement !== this.status) fill(this.status, this.place);
      this.draw();
    });
  }

  private async load(): Promise<void> {
    const { app } = this;
    const verdict = await app.verdict();
    await app.measured;
    const { from, to } = app.span;
    const sampled = await app.analysis.ask("sampled", from, to, BINS);
    const collections = await app.analysis.ask("analyze", "gcs", { max_rows: MAX_BARS });
    const activities = await app.analysis.ask("analyze", "activities", { max_rows: MAX_BARS });
    const start = Date.parse(app.opened?.start ?? "") * 1000;
    this.lanes = [
      ...sessionLanes(verdict),
      ...collectionLanes(collections, start),
      ...group(
        "CPU samples by process",
        idleLast(sampled)
          .slice(0, MAX_LANES)
          .map(({ name, total, counts }) => ({
            title: `${name} – ${format.count(total)}`,
            height: GRAPH,
            bars: [],
            counts,
          })),
      ),
      ...processLanes(verdict),
      ...activityLanes(activities, start),
    ];
    const bars = this.lanes.reduce((sum, lane) => sum + lane.bars.length, 0);
    this.place.dataset["lanes"] = String(
      this.lanes.filter((lane) => lane.isHeading !== true).length,
    );
    this.place.dataset["bars"] = String(bars);
  }

  private setView(view: Range): void {
    const { from, to } = this.app.span;
    const whole = Math.max(1e-9, to - from);
    const length = Math.max(1e-7, Math.min(whole, view.to - view.from));
    const start = Math.max(from, Math.min(to - length, view.from));
    this.view = { from: start, to: start + length };
    this.note.textContent = `${format.duration(length)} from ${format.seconds(start, length / 100)}`;
    this.draw();
  }

  private zoom(factor: number, at = (this.view.from + this.view.to) / 2): void {
    const { from, to } = this.view;
    this.setView({ from: at - (at - from) * factor, to: at + (to - at) * factor });
  }

  private timeAt(clientX: number): number {
    const x = clientX - this.canvas.getBoundingClientRect().left;
    return this.view.from + (x / this.width) * (this.view.to - this.view.from);
  }

  private draw(): void {
    this.width = this.place.clientWidth;
    if (this.width === 0 || this.lanes.length === 0) return;
    const height = RULER + this.lanes.reduce((sum, lane) => sum + lane.height, 0) + 8;
    const context = prepareCanvas(this.canvas, this.width, height);
    const { from, to } = this.view;
    const scale = this.width / (to - from);
    const x = (time: number) => (time - from) * scale;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawRuler(context, height, x);
    let y = RULER;
    for (const lane of this.lanes) {
      if (lane.isHeading === true) {
        context.fillStyle = colour("text");
        context.font = "600 12px system-ui, sans-serif";
        context.fillText(lane.title, 8, y + lane.height / 2 + 2);
        context.font = "12px system-ui, sans-serif";
      } else {
        if (lane.counts !== undefined) this.drawCounts(context, lane, y, x);
        else this.drawBars(context, lane, y, x);
        context.fillStyle = colour("lane-line");
        context.fillRect(0, y + lane.height - 1, this.width, 1);
      }
      y += lane.height;
    }
    const range = this.selection ?? this.app.range;
    if (range !== null) {
      context.fillStyle = colour("veil");
      context.fillRect(0, RULER, Math.max(0, x(range.from)), height);
      context.fillRect(x(range.to), RULER, this.width, height);
      context.fillStyle = colour("accent");
      context.fillRect(x(range.from) - 1, 0, 2, height);
      context.fillRect(x(range.to) - 1, 0, 2, height);
    }
  }

  private drawRuler(
    context: CanvasRenderingContext2D,
    height: number,
    x: (time: number) => number,
  ): void {
    const { from, to } = this.view;
    const step = niceStep((to - from) / Math.max(2, this.width / 110));
    context.fillStyle = colour("muted");
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const left = Math.round(x(time));
      context.fillText(format.seconds(time, step), left + 4, 13);
      context.fillStyle = colour("lane-line");
      context.fillRect(left, 0, 1, height);
      context.fillStyle = colour("muted");
    }
  }

  private drawBars(
    context: CanvasRenderingContext2D,
    lane: Lane,
    y: number,
    x: (time: number) => number,
  ): void {
    let lastPixel = -1;
    for (const bar of lane.bars) {
      const left = Math.max(-2, x(bar.from));
      const right = Math.min(this.width + 2, x(bar.to));
      if (right < 0 || left > this.width) continue;
      const width = Math.max(1.5, right - left);
      // Many bars in one pixel look like one.
      if (width <= 1.5 && Math.floor(left) === lastPixel) continue;
      lastPixel = Math.floor(left);
      context.fillStyle = colour(bar.colour);
      context.fillRect(left, y + 3, width, lane.height - 7);
      if (width > 40 && bar.text !== lane.title) {
        context.save();
        context.beginPath();
        context.rect(left, y, width - 4, lane.height);
        context.clip();
        context.fillStyle = colour("flame-text");
        context.fillText(bar.text, left + 5, y + lane.height / 2);
        context.restore();
      }
    }
    this.drawTitle(context, lane, y);
  }

  private drawCounts(
    context: CanvasRenderingContext2D,
    lane: Lane,
    y: number,
    x: (time: number) => number,
  ): void {
    const counts = lane.counts ?? [];
    const { from, to } = this.app.span;
    const step = (to - from) / counts.length;
    // Parts that share a pixel are added up.
    const columns = new Map<number, number>();
    for (const [index, value] of counts.entries()) {
      const left = Math.floor(x(from + index * step));
      if (value > 0 && left >= -4 && left <= this.width) {
        columns.set(left, (columns.get(left) ?? 0) + value);
      }
    }
    const most = Math.max(1, ...columns.values());
    const width = Math.max(1, x(from + step) - x(from));
    context.fillStyle = colour("series-2");
    for (const [left, value] of columns) {
      const height = Math.max(1, (value / most) * (lane.height - 6));
      context.fillRect(left, y + lane.height - 2 - height, width, height);
    }
    this.drawTitle(context, lane, y);
  }

  private drawTitle(context: CanvasRenderingContext2D, lane: Lane, y: number): void {
    const width = Math.min(context.measureText(lane.title).width + 12, this.width);
    context.fillStyle = colour("label");
    context.fillRect(0, y + 2, width, 17);
    context.fillStyle = colour("text");
    context.fillText(lane.title, 6, y + 11);
  }

  private onwheel(event: WheelEvent): void {
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      const delta = event.deltaX || event.deltaY;
      this.pan((delta / this.width) * (this.view.to - this.view.from));
    } else if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, this.timeAt(event.clientX));
    }
  }

  private pan(seconds: number): void {
    this.setView({ from: this.view.from + seconds, to: this.view.to + seconds });
  }

  private ondown(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event.clientX);
    const isSelection = event.shiftKey || event.offsetY < RULER;
    this.drag = { x: event.clientX, from: this.view.from, to: this.view.to, isSelection };
  }

  private onmove(event: PointerEvent): void {
    const { drag } = this;
    if (drag === null) {
      this.hover(event);
      return;
    }
    const earlier = this.pointers.get(event.pointerId);
    this.pointers.set(event.pointerId, event.clientX);
    if (this.pointers.size === 2 && earlier !== undefined) {
      const [one, other] = [...this.pointers.values()];
      const apart = Math.abs(one! - other!);
      const before = Math.abs(
        apart + (earlier - event.clientX) * (event.clientX > Math.min(one!, other!) ? 1 : -1),
      );
      if (apart > 4 && before > 4) this.zoom(before / apart, this.timeAt((one! + other!) / 2));
      return;
    }
    if (drag.isSelection) {
      this.selection = ordered(this.timeAt(drag.x), this.timeAt(event.clientX));
      this.draw();
      return;
    }
    const seconds = ((drag.x - event.clientX) / this.width) * (drag.to - drag.from);
    this.setView({ from: drag.from + seconds, to: drag.to + seconds });
  }

  private onup(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    if (this.selection !== null) {
      const selected = this.selection;
      this.selection = null;
      this.app.select(selected);
    }
    this.drag = null;
  }

  private hover(event: PointerEvent): void {
    const time = this.timeAt(event.clientX);
    const margin = (3 / this.width) * (this.view.to - this.view.from);
    let y = RULER;
    let text = "";
    for (const lane of this.lanes) {
      if (event.offsetY >= y && event.offsetY < y + lane.height && lane.isHeading !== true) {
        const bar = lane.bars.findLast(
          ({ from, to }) => time >= from - margin && time <= to + margin,
        );
        if (bar !== undefined) text = `${bar.text} (${format.duration(bar.to - bar.from)})`;
        else if (lane.counts !== undefined) text = lane.title;
      }
      y += lane.height;
    }
    this.tip.hidden = text === "";
    this.tip.textContent = `${text} at ${format.seconds(time)}`;
    const x = Math.min(event.offsetX + 14, Math.max(0, this.width - 300));
    this.tip.style.transform = `translate(${x}px, ${event.offsetY + 16}px)`;
  }

  private onkey(event: KeyboardEvent): void {
    const length = this.view.to - this.view.from;
    if (event.key === "ArrowLeft") this.pan(-length / 8);
    else if (event.key === "ArrowRight") this.pan(length / 8);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "Home") this.setView(this.app.span);
    else if (event.key === "Enter") this.app.select(this.view);
    else if (event.key === "Escape") this.app.select(null);
    else return;
    event.preventDefault();
    announce(this.note.textContent ?? "");
  }
}

function ordered(one: number, other: number): Range {
  return { from: Math.min(one, other), to: Math.max(one, other) };
}

/** A round step of at least a length: 1, 2 or 5 times a power of ten. */
function niceStep(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  for (const factor of [1, 2, 5]) if (factor * power >= length) return factor * power;
  return 10 * power;
}

/** Idle processors are of least interest. */
function idleLast(sampled: SampledProcess[]): SampledProcess[] {
  const isIdle = ({ name }: SampledProcess) => name.endsWith(" (0)");
  return [...sampled.filter((process) => !isIdle(process)), ...sampled.filter(isIdle)];
}

function group(title: string, lanes: Lane[]): Lane[] {
  if (lanes.length === 0) return [];
  return [{ title, height: HEADING, bars: [], isHeading: true }, ...lanes];
}

function sessionLanes({ sessions, losses }: Verdict): Lane[] {
  const lanes: Lane[] = sessions.map(({ name, span_us: [from, to] }) => ({
    title: name,
    height: LANE,
    bars: [{ from: from / 1e6, to: to / 1e6, text: name, colour: "bar-session" }],
  }));
  if (losses.length > 0) {
    lanes.push({
      title: "Losses",
      height: LANE,
      bars: losses.slice(0, MAX_BARS).map(({ message, span_us: [from, to] }) => ({
        from: from / 1e6,
        to: to / 1e6,
        text: message,
        colour: "bar-loss",
      })),
    });
  }
  return group("Sessions", lanes);
}

function processLanes({ processes }: Verdict): Lane[] {
  const lanes = processes
    .slice(0, MAX_LANES)
    .map(({ name, pid, span_us: [from, to], rundowns }) => ({
      title: `${name || "?"} (${pid})`,
      height: LANE,
      bars: [
        { from: from / 1e6, to: to / 1e6, text: "", colour: "bar-process" },
        ...rundowns.map(({ kind, span_us: [first, last] }) => ({
          from: first / 1e6,
          to: last / 1e6,
          text: `${kind} rundown`,
          colour: "bar-rundown",
        })),
      ],
    }));
  return group("Processes and rundowns", lanes);
}

/** The values of a row by the names of its columns. */
type Reader = (row: Cell[], column: string) => Cell;

function reader({ columns }: Rows): Reader {
  const places = new Map(columns.map((name, index) => [name, index]));
  return (row, column) => {
    const index = places.get(column);
    return index === undefined ? null : (row[index] ?? null);
  };
}

/** Rows as bars, a lane for each value of `lane`. */
function barsByLane(
  rows: Rows,
  laneOf: (row: Cell[], get: Reader) => string,
  barOf: (row: Cell[], get: Reader) => Bar | null,
): Lane[] {
  const get = reader(rows);
  const lanes = new Map<string, Lane>();
  for (const row of rows.rows) {
    const bar = barOf(row, get);
    if (bar === null) continue;
    const title = laneOf(row, get);
    let lane = lanes.get(title);
    if (lane === undefined) {
      lane = { title, height: LANE, bars: [] };
      lanes.set(title, lane);
    }
    lane.bars.push(bar);
  }
  return [...lanes.values()].slice(0, MAX_LANES);
}

function processOf(row: Cell[], get: Reader): string {
  const pid = get(row, "pid");
  return `${get(row, "process") ?? "?"}${pid === null ? "" : ` (${pid})`}`;
}

function collectionLanes(rows: Rows, start: number): Lane[] {
  const lanes = barsByLane(rows, processOf, (row, get) => {
    const time = get(row, "started");
    if (typeof time !== "number") return null;
    const pause = get(row, "pause_us") ?? get(row, "duration_us");
    const from = (time - start) / 1e6;
    const generation = get(row, "generation");
    return {
      from,
      to: from + (typeof pause === "number" ? pause / 1e6 : 0),
      text: `GC generation ${generation ?? "?"}, ${get(row, "reason") ?? "?"}`,
      colour: generation === 2 ? "bar-gc-2" : "bar-gc",
    };
  });
  return group("Collections: pauses", lanes);
}

function activityLanes(rows: Rows, start: number): Lane[] {
  const lanes = barsByLane(
    rows,
    (row, get) => `${get(row, "operation") ?? "activity"}`,
    (row, get) => {
      const time = get(row, "started");
      const length = get(row, "duration_us");
      if (typeof time !== "number" || typeof length !== "number") return null;
      const from = (time - start) / 1e6;
      return {
        from,
        to: from + length / 1e6,
        text: `${get(row, "operation") ?? ""} ${get(row, "value") ?? ""}`.trim(),
        colour: "bar-activity",
      };
    },
  );
  return group("Activities", lanes);
}
