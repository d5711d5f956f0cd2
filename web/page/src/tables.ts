// The tables of the recording. Their names, columns, units and meanings come from the module.

import type { Cell, Column, Rows, Table } from "../../package/src/types.js";
import { type App, type Tab, busy, empty } from "./app.js";
import { announce, el, field, fill, save } from "./dom.js";
import * as format from "./format.js";
import { Grid } from "./grid.js";

/** Tables that have a place of their own in the navigation, if the module has them. */
export interface TableGroup {
  name: string;
  title: string;
  tables: string[];
}

export const GROUPS: TableGroup[] = [
  { name: "gc", title: "GC", tables: ["gcs", "gc_heaps"] },
  { name: "processes", title: "Processes", tables: ["processes", "threads", "images"] },
  { name: "network", title: "Network", tables: ["connections", "packets"] },
  { name: "disk", title: "Disk", tables: ["io", "disk_operations", "hard_faults"] },
  { name: "allocations", title: "Allocations", tables: ["allocations", "large_objects"] },
  { name: "tables", title: "All tables", tables: [] },
];

const MAX_ROWS = 100_000;

export class Tables implements Tab {
  readonly name: string;
  readonly title: string;
  readonly needsTrace = true;
  readonly element: HTMLElement;
  private readonly choice = el("select");
  private readonly search = el("input", { type: "search", placeholder: "text in any column" });
  private readonly status = el("p", { class: "quiet status", role: "status" });
  private readonly place = el("div", { class: "fill place" });
  private tables: Table[] = [];
  private grid: Grid<Cell[]> | null = null;
  private table: Table | null = null;
  private data: Rows = { columns: [], rows: [], count: 0 };
  private shown: Cell[][] = [];
  /** The places of the shown columns in the rows. */
  private places: number[] = [];
  /** The place of the column by which the rows are sorted. */
  private sorted = -1;
  private descends = false;
  private generation = 0;

  constructor(
    private readonly app: App,
    private readonly group: TableGroup,
  ) {
    this.name = group.name;
    this.title = group.title;
    this.choice.addEventListener("change", () => void this.load());
    this.search.addEventListener("input", () => this.arrange());
    const csv = el("button", { type: "button", onclick: () => this.saveCsv() }, "Save as CSV");
    this.element = el(
      "div",
      { class: "page fill" },
      el(
        "div",
        { class: "toolbar" },
        field("Table", this.choice),
        field("Search", this.search),
        csv,
      ),
      this.status,
      this.place,
    );
  }

  async show(): Promise<void> {
    await busy(this.place, async () => {
      if (this.tables.length === 0) {
        const all = await this.app.analysis.ask("tables");
        const { tables } = this.group;
        this.tables = tables.length === 0 ? all : all.filter(({ name }) => tables.includes(name));
        this.choice.append(
          ...this.tables.map(({ name, row }) => el("option", { value: name }, `${name} – ${row}`)),
        );
      }
      await this.load();
    });
  }

  private async load(): Promise<void> {
    const table = this.tables.find(({ name }) => name === this.choice.value);
    if (table === undefined) return;
    const generation = ++this.generation;
    await busy(this.place, async () => {
      const data = await this.app.analysis.ask("analyze", table.name, {
        ...this.app.rangeOptions,
        max_rows: MAX_ROWS,
      });
      if (generation !== this.generation) return;
      this.table = table;
      this.data = data;
      this.sorted = -1;
      this.place.dataset["table"] = table.name;
      this.place.dataset["count"] = String(data.count);
      if (data.count === 0) {
        this.grid = null;
        fill(this.status, "");
        fill(
          this.place,
          empty(
            `No rows in ${table.name}`,
            `${table.row}. ${plain(table.about)}`,
            "The recording has no such events, or none in the selected time.",
          ),
        );
        return;
      }
      this.makeGrid(table);
      this.arrange();
    });
  }

  private makeGrid(table: Table): void {
    const start = this.startMicros();
    // A single trace need not be named in each row.
    const isOne = this.app.files.length === 1;
    this.places = [...this.data.columns.keys()].filter((index) => !isOne || index > 0);
    const columns = this.places.map((index) => {
      const name = this.data.columns[index]!;
      const column = table.columns.find((known) => known.name === name)!;
      const isNumber = isNumeric(column);
      const unit = shownUnit(column);
      return {
        title: unit === "" ? name : `${name} (${unit})`,
        hint: column.meaning + (column.unit ? ` (${column.unit})` : ""),
        width: widthOf(column, this.data.rows, index),
        isNumber,
        text: (row: Cell[]) => cellText(column, row[index] ?? null, start),
      };
    });
    this.grid = new Grid<Cell[]>({
      label: table.row,
      columns,
      onsort: (column) => {
        const place = this.places[column] ?? -1;
        this.descends = this.sorted === place ? !this.descends : columns[column]?.isNumber === true;
        this.sorted = place;
        this.grid?.markSorted(column, this.descends);
        this.arrange();
      },
    });
    fill(this.place, this.grid.element);
  }

  private startMicros(): number {
    return Date.parse(this.app.opened?.start ?? "") * 1000;
  }

  /** Sorts and filters the rows. */
  private arrange(): void {
    const { data, table } = this;
    if (this.grid === null || table === null) return;
    const text = this.search.value.trim().toLowerCase();
    this.shown =
      text === ""
        ? [...data.rows]
        : data.rows.filter((row) =>
            row.some((cell) =>
              String(cell ?? "")
                .toLowerCase()
                .includes(text),
            ),
          );
    const { sorted } = this;
    if (sorted >= 0) {
      const sign = this.descends ? -1 : 1;
      this.shown.sort((one, other) => sign * compare(one[sorted] ?? null, other[sorted] ?? null));
    }
    const of =
      data.count > data.rows.length ? ` of ${format.count(data.count)}; Export saves all` : "";
    const words = `${format.plural(this.shown.length, "row")}${of}`;
    fill(this.status, `${words} · ${table.row}. ${plain(table.about)}`);
    announce(words);
    this.grid.show({ count: this.shown.length, row: (index) => this.shown[index] });
  }

  private saveCsv(): void {
    const { table, data } = this;
    if (table === null) return;
    const quote = (cell: Cell) => {
      const text = String(cell ?? "");
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [data.columns, ...this.shown].map((row) => row.map(quote).join(","));
    save(`${table.name}.csv`, new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
  }
}

/** A remark without the marks of code. */
function plain(text: string): string {
  return text.replaceAll("`", "");
}

function isNumeric({ type }: Column): boolean {
  return ["INTEGER", "BIGINT", "DOUBLE", "TIMESTAMP WITH TIME ZONE"].includes(type);
}

/** The unit in the heading; durations and sizes have theirs in each cell. */
function shownUnit({ type, unit }: Column): string {
  if (type === "TIMESTAMP WITH TIME ZONE") return "s";
  return unit === "µs" || unit === "bytes" ? "" : unit;
}

const MIN_WIDTH = 72;
const MAX_WIDTH = 360;

function widthOf(column: Column, rows: Cell[][], index: number): number {
  if (column.type === "TIMESTAMP WITH TIME ZONE") return 116;
  let longest = column.name.length + shownUnit(column).length + 3;
  for (const row of rows.slice(0, 200)) {
    const text = cellText(column, row[index] ?? null, 0);
    longest = Math.max(longest, text.length);
  }
  return Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, longest * 7.4 + 20));
}

/** A value for people: times in seconds since the start. */
export function cellText(column: Column, cell: Cell, startMicros: number): string {
  if (cell === null) return "";
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (typeof cell === "string") return cell;
  if (column.type === "TIMESTAMP WITH TIME ZONE") return ((cell - startMicros) / 1e6).toFixed(6);
  if (column.unit === "µs") return format.duration(cell / 1e6);
  if (column.unit === "bytes") return format.bytes(cell);
  if (column.unit === "%") return cell.toFixed(1);
  if (column.style === "signed" && cell > 0) return `+${format.count(cell)}`;
  if (/(^|_)(pid|tid|id|timestamp)$/.test(column.name)) return String(cell);
  return format.count(cell);
}

function compare(one: Cell, other: Cell): number {
  if (one === other) return 0;
  if (one === null) return 1;
  if (other === null) return -1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
