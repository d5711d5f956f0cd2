// The events as a table of any length, with filters, and the chosen event with its payload.

import type { EventDetails, EventRow, Query } from "../../package/src/types.js";
import { type App, type Tab, busy, failure } from "./app.js";
import { Cancelled } from "./client.js";
import { announce, button, el, field, fill } from "./dom.js";
import * as format from "./format.js";
import { Grid } from "./grid.js";

const CHUNK = 200;

/** Chunks that are kept in memory. */
const KEPT = 200;

export class Events implements Tab {
  readonly name = "events";
  readonly title = "Events";
  readonly needsTrace = true;
  readonly element: HTMLElement;
  private readonly status = el("p", { class: "quiet status", role: "status" });
  private readonly message = el("div");
  private readonly grid: Grid<EventRow>;
  private readonly details = el("aside", {
    class: "details",
    tabIndex: 0,
    role: "region",
    aria: { label: "The chosen event" },
  });
  private readonly fields = filterFields();
  private chunks = new Map<number, EventRow[] | "loading">();
  private query: Query = {};
  private generation = 0;

  constructor(private readonly app: App) {
    this.grid = new Grid<EventRow>({
      label: "Events",
      columns: [
        { title: "Time", width: 100, isNumber: true, text: (row) => row.seconds.toFixed(6) },
        { title: "Event", width: 196, text: (row) => row.event },
        { title: "Process", width: 150, text: processOf },
        { title: "Fields", width: 280, text: summary },
        { title: "Provider", width: 210, text: (row) => row.provider ?? row.provider_guid ?? "" },
        { title: "Thread", width: 68, isNumber: true, text: (row) => String(row.tid ?? "") },
        { title: "CPU", width: 48, isNumber: true, text: (row) => String(row.cpu) },
      ],
      onselect: (index) => void this.choose(index),
    });
    const form = el("form", { class: "filters", aria: { label: "Filters" } });
    for (const { label, input, hint } of Object.values(this.fields)) {
      form.append(field(label, input, hint));
    }
    form.append(
      el("button", { type: "submit", class: "primary" }, "Filter"),
      button("Reset", () => {
        form.reset();
        void this.show();
      }),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.show();
    });
    this.clearDetails();
    this.element = el(
      "div",
      { class: "page fill events" },
      el(
        "details",
        { class: "filter-box", open: innerWidth > 860 },
        el("summary", null, "Filters"),
        form,
      ),
      this.status,
      this.message,
      el("div", { class: "split" }, this.grid.element, this.details),
    );
  }

  async show(): Promise<void> {
    const generation = ++this.generation;
    this.chunks = new Map();
    this.query = { ...this.typedQuery(), ...this.app.rangeOptions };
    fill(this.message);
    this.clearDetails();
    await busy(this.status, async () => {
      try {
        const counted = await this.app.events.ask("count", this.query, 0);
        if (generation !== this.generation) return;
        const where = this.app.range === null ? "" : " in the selected time";
        fill(this.status, `${format.plural(counted.count, "event")}${where}`);
        announce(`${format.plural(counted.count, "event")}`);
        if (counted.unknown_providers.length > 0) {
          const names = counted.unknown_providers.join(", ");
          fill(this.message, failure(new Error(`no provider of the recording is called ${names}`)));
        }
        this.grid.show({
          count: counted.count,
          row: (index) => this.row(index),
          need: (first, last) => this.load(first, last),
        });
      } catch (error) {
        if (generation !== this.generation || error instanceof Cancelled) return;
        fill(this.status, "");
        fill(this.message, failure(error));
        this.grid.show({ count: 0, row: () => undefined });
      }
    });
  }

  private typedQuery(): Query {
    const { providers, names, ids, level, keyword, processes, threads, where, text } = this.fields;
    const query: Query = {};
    const words = (input: HTMLInputElement) =>
      input.value
        .split(",")
        .map((word) => word.trim())
        .filter(Boolean);
    const numbers = (input: HTMLInputElement) => words(input).map(Number).filter(Number.isInteger);
    if (providers.input.value) query.providers = words(providers.input);
    if (names.input.value) query.events = words(names.input);
    if (ids.input.value) query.ids = numbers(ids.input);
    if (level.input.value) query.level = Number(level.input.value);
    if (keyword.input.value) query.keyword = keyword.input.value;
    if (processes.input.value) query.processes = words(processes.input);
    if (threads.input.value) query.threads = numbers(threads.input);
    if (where.input.value)
      query.where = where.input.value
        .split(";")
        .map((part) => part.trim())
        .filter(Boolean);
    if (text.input.value) query.text = [text.input.value];
    return query;
  }

  private row(index: number): EventRow | undefined {
    const chunk = this.chunks.get(Math.floor(index / CHUNK));
    return chunk === undefined || chunk === "loading" ? undefined : chunk[index % CHUNK];
  }

  private load(first: number, last: number): void {
    for (let number = Math.floor(first / CHUNK); number * CHUNK < last; number += 1) {
      if (!this.chunks.has(number)) void this.loadChunk(number);
    }
  }

  private async loadChunk(number: number): Promise<void> {
    const { chunks, query } = this;
    chunks.set(number, "loading");
    try {
      const rows = await this.app.events.ask("rows", query, number * CHUNK, CHUNK);
      chunks.set(number, rows);
      for (const old of chunks.keys()) {
        if (chunks.size <= KEPT) break;
        if (old !== number) chunks.delete(old);
      }
      if (chunks === this.chunks) this.grid.refresh();
    } catch {
      chunks.delete(number);
    }
  }

  private clearDetails(): void {
    fill(this.details, el("p", { class: "quiet" }, "Choose an event to see its fields."));
  }

  private async choose(index: number): Promise<void> {
    const { query } = this;
    try {
      const details = await this.app.events.ask("details", query, index);
      if (index === this.grid.selected) fill(this.details, ...describe(details));
    } catch (error) {
      if (!(error instanceof Cancelled)) fill(this.details, failure(error));
    }
  }
}

interface FilterField {
  label: string;
  hint: string;
  input: HTMLInputElement;
}

function filterFields() {
  const text = (label: string, placeholder: string, hint: string): FilterField => ({
    label,
    hint,
    input: el("input", { type: "text", placeholder, spellcheck: false, autocomplete: "off" }),
  });
  return {
    names: text("Event", "GC*, Thread?tart", "Names of events, with * and ?"),
    providers: text("Provider", "DotNETRuntime", "Names, ends of names, or GUIDs"),
    processes: text("Process", "Orders, 4312", "File names or ids"),
    threads: text("Thread", "1020", "Ids of threads"),
    where: text("Where", "Size > 1000; Name ~ *.dll", "Conditions on fields; all must hold"),
    text: text("Text", "denied", "Text in a field or in the message"),
    ids: text("Id", "1, 2", "Ids of events"),
    level: text("Level", "4", "At most this level"),
    keyword: text("Keywords", "0x10", "Any of these keywords"),
  };
}

function processOf(row: EventRow): string {
  if (row.pid === undefined) return "";
  return row.process === undefined ? String(row.pid) : `${row.process} (${row.pid})`;
}

/** The fields in one line. */
function summary(row: EventRow): string {
  if (row.fields === undefined) return row.payload_text ?? row.message ?? "";
  const parts: string[] = [];
  for (const [name, value] of Object.entries(row.fields)) {
    parts.push(`${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`);
    if (parts.length > 12) break;
  }
  return parts.join("  ");
}

const BYTES_IN_LINE = 8;
const MAX_LINES = 512;

function describe(details: EventDetails): HTMLElement[] {
  const { row, ranges } = details;
  const head: [string, string][] = [
    ["Time", row.time],
    ["Since start", format.seconds(row.seconds, 1e-7)],
    ["Process", processOf(row)],
    ["Thread", row.thread === undefined ? String(row.tid ?? "") : `${row.thread} (${row.tid})`],
    ["Provider", row.provider ?? row.provider_guid ?? ""],
    ["Id, version", [row.id, row.version].filter((part) => part !== undefined).join(", ")],
    ["Level", String(row.level ?? "")],
    ["Keywords", details.keyword_names.join(", ")],
    ["Record", row.kind],
    ["Schema", details.schema ?? "unknown"],
    ["File", row.file ?? ""],
  ];
  const copy = button(
    "Copy as JSON",
    () => {
      void navigator.clipboard.writeText(JSON.stringify(row, null, 2));
      announce("Copied");
    },
    "small",
  );
  const parts = [el("header", null, el("h2", null, row.event), copy), definitions(head)];
  if (row.message !== undefined) parts.push(el("p", { class: "message" }, row.message));
  const fields = Object.entries(row.fields ?? {});
  if (fields.length > 0) {
    parts.push(
      el("h3", null, "Fields"),
      definitions(
        fields.map(([name, value]) => [
          name,
          typeof value === "object" ? JSON.stringify(value, null, 1) : String(value),
        ]),
      ),
    );
  }
  if (row.stack !== undefined) {
    parts.push(el("h3", null, "Stack"), el("pre", { tabIndex: 0 }, row.stack.join("\n")));
  }
  if (row.payload) parts.push(el("h3", null, "Payload"), hex(row.payload, ranges));
  return parts;
}

function definitions(entries: [string, string][]): HTMLElement {
  const children = entries
    .filter(([, value]) => value !== "")
    .flatMap(([name, value]) => [el("dt", null, name), el("dd", null, value)]);
  return el("dl", { class: "compact" }, ...children);
}

/** The payload in hexadecimal; neighbouring fields have different marks. */
function hex(payload: string, ranges: EventDetails["ranges"]): HTMLElement {
  const all = payload.match(/../g) ?? [];
  const bytes = all.slice(0, BYTES_IN_LINE * MAX_LINES);
  const fieldAt = (offset: number) =>
    ranges.findIndex(({ from, to }) => offset >= from && offset < to);
  const lines: HTMLElement[] = [];
  for (let start = 0; start < bytes.length; start += BYTES_IN_LINE) {
    const line = bytes.slice(start, start + BYTES_IN_LINE);
    const cells = line.map((byte, at) => {
      const index = fieldAt(start + at);
      const title = ranges[index]?.name ?? "after the last field";
      return el("span", { class: index < 0 ? "byte" : `byte field-${index % 4}`, title }, byte);
    });
    const characters = line.map((byte) => {
      const code = Number.parseInt(byte, 16);
      return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : "·";
    });
    const offset = start.toString(16).padStart(4, "0");
    lines.push(
      el(
        "div",
        { class: "hex-line" },
        el("span", { class: "quiet" }, offset),
        el("span", { class: "bytes" }, ...cells),
        el("span", { class: "quiet characters" }, characters.join("")),
      ),
    );
  }
  if (all.length > bytes.length) {
    lines.push(
      el("div", { class: "quiet" }, `… and ${format.count(all.length - bytes.length)} more bytes`),
    );
  }
  return el(
    "div",
    { class: "hex", tabIndex: 0, role: "group", aria: { label: "Payload in hexadecimal" } },
    ...lines,
  );
}
