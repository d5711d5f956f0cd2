// What all tabs share: the opened recording, the selected time, and messages.

import { EtlkitError } from "../../package/src/module.js";
import type { Count, Info, Verdict } from "../../package/src/types.js";
import { Cancelled, Client, type Opened } from "./client.js";
import { el, fill } from "./dom.js";

/** A part of the recording, in seconds since its start. */
export interface Range {
  from: number;
  to: number;
}

/** A view of the recording. */
export interface Tab {
  readonly name: string;
  readonly title: string;
  /** Whether it needs an opened recording. */
  readonly needsTrace: boolean;
  /** Shows the recording, or the part that is selected, in its element. */
  show(): void | Promise<void>;
  readonly element: HTMLElement;
}

export class App extends EventTarget {
  /** Answers long questions: verdict, tables, profiles. */
  readonly analysis = new Client();
  /** Answers short questions while the other one works: events. */
  readonly events = new Client();
  opened: Opened | null = null;
  files: File[] = [];
  /** The first and the last event, once the events are counted. */
  span: Range = { from: 0, to: 0 };
  isMeasured = false;
  measured: Promise<void> = Promise.resolve();
  /** The selected time; `null` for all. */
  range: Range | null = null;
  private generation = 0;

  /** Opens files as one recording. */
  async open(files: File[], member?: string): Promise<void> {
    const generation = ++this.generation;
    this.files = files;
    this.opened = null;
    this.range = null;
    this.isMeasured = false;
    this.dispatchEvent(new Event("opening"));
    const opened = await this.analysis.open(files, member);
    if (generation !== this.generation) return;
    this.opened = opened;
    this.measured = this.measure(files, member, generation);
    this.measured.catch(() => {});
    this.dispatchEvent(new Event("opened"));
  }

  /** Counts the events over time, while the other worker verifies. */
  private async measure(
    files: File[],
    member: string | undefined,
    generation: number,
  ): Promise<void> {
    await this.events.open(files, member);
    const { first_seconds, last_seconds } = await this.density();
    if (generation !== this.generation) return;
    this.span = { from: first_seconds ?? 0, to: last_seconds ?? 0 };
    this.isMeasured = true;
    this.dispatchEvent(new Event("measured"));
  }

  /** The number of events over time. */
  density(): Promise<Count> {
    return this.events.ask("count", {}, 600);
  }

  verdict(): Promise<Verdict> {
    return this.analysis.ask("verify");
  }

  info(): Promise<Info[]> {
    return this.analysis.ask("info");
  }

  /** Selects a part of the time, or all of it. */
  select(range: Range | null): void {
    let bounded = range;
    if (range !== null) {
      const from = Math.max(this.span.from, Math.min(range.from, range.to));
      const to = Math.min(this.span.to, Math.max(range.from, range.to));
      bounded = to > from ? { from, to } : null;
    }
    if (bounded?.from === this.range?.from && bounded?.to === this.range?.to) return;
    this.range = bounded;
    this.dispatchEvent(new Event("range"));
  }

  /** The selected time as an option of requests. */
  get rangeOptions(): { from: number | null; to: number | null } {
    const { range, span } = this;
    // The end of a range is not part of it, but the last event is part of the recording.
    return {
      from: range === null || range.from <= span.from ? null : range.from,
      to: range === null || range.to >= span.to ? null : range.to,
    };
  }
}

/** Shows a message in the place of a result while it is made, and an error if that fails. */
export async function busy(place: HTMLElement, make: () => Promise<void>): Promise<void> {
  place.classList.add("busy");
  place.setAttribute("aria-busy", "true");
  if (place.childElementCount === 0) fill(place, el("p", { class: "quiet" }, "Reading …"));
  try {
    await make();
  } catch (error) {
    if (!(error instanceof Cancelled)) fill(place, failure(error));
    else fill(place, el("p", { class: "quiet" }, "Cancelled."));
  } finally {
    place.classList.remove("busy");
    place.removeAttribute("aria-busy");
  }
}

/** An error in words, with what to do next. */
export function failure(error: unknown): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof EtlkitError ? error.hint : null;
  return el(
    "div",
    { class: "failure", role: "alert" },
    el("strong", null, message),
    hint !== null && el("p", null, hint),
  );
}

/** A message where there is nothing to show. */
export function empty(title: string, ...lines: string[]): HTMLElement {
  return el(
    "div",
    { class: "empty" },
    el("strong", null, title),
    ...lines.map((line) => el("p", null, line)),
  );
}
