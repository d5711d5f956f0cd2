// A table of any number of rows, of which only the visible ones have elements.

import { el, fill } from "./dom.js";

export interface GridColumn<T> {
  title: string;
  hint?: string;
  /** Width in pixels; the last column takes the rest. */
  width: number;
  isNumber?: boolean;
  text(row: T): string;
}

export interface GridOptions<T> {
  label: string;
  columns: GridColumn<T>[];
  /** A row was chosen by pointer or keyboard. */
  onselect?(index: number): void;
  /** A row was activated: Enter or double click. */
  onactivate?(index: number): void;
  /** A heading was pressed. */
  onsort?(column: number): void;
}

/** Where rows come from. `row` returns `undefined` for a row that is not loaded. */
export interface GridRows<T> {
  count: number;
  row(index: number): T | undefined;
  need?(first: number, last: number): void;
}

const ROW_HEIGHT = 26;

/** Browsers limit the height of elements; longer tables scroll in larger steps. */
const MAX_HEIGHT = 8_000_000;

let grids = 0;

export class Grid<T> {
  readonly element: HTMLElement;
  selected = -1;
  private readonly id = `grid${++grids}`;
  private readonly head: HTMLElement;
  private readonly space: HTMLElement;
  private readonly body: HTMLElement;
  private rows: GridRows<T> = { count: 0, row: () => undefined };
  private elements: HTMLElement[] = [];
  private first = 0;
  private sorted = -1;
  private descends = false;
  private isQueued = false;

  constructor(private readonly options: GridOptions<T>) {
    const { columns, label } = options;
    this.head = el("div", { class: "grid-head", role: "rowgroup" });
    this.body = el("div", { class: "grid-body", role: "rowgroup" });
    this.space = el("div", { class: "grid-space", role: "presentation" }, this.body);
    this.element = el(
      "div",
      {
        class: "grid",
        role: "grid",
        tabIndex: 0,
        aria: { label, colcount: String(columns.length), rowcount: "0" },
      },
      this.head,
      this.space,
    );
    const width = columns.reduce((sum, column) => sum + column.width, 0);
    this.element.style.setProperty("--columns", this.template());
    this.element.style.setProperty("--grid-width", `${width}px`);
    this.drawHead();
    this.element.addEventListener("scroll", () => this.queue(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.onkey(event));
    this.body.addEventListener("pointerdown", (event) => this.onpointer(event));
    this.body.addEventListener("dblclick", () => options.onactivate?.(this.selected));
    new ResizeObserver(() => this.queue()).observe(this.element);
  }

  /** Shows other rows. */
  show(rows: GridRows<T>, keepPosition = false): void {
    this.rows = rows;
    if (!keepPosition) {
      this.selected = -1;
      this.element.scrollTop = 0;
    }
    this.element.setAttribute("aria-rowcount", String(rows.count + 1));
    const height = Math.min(rows.count * ROW_HEIGHT, MAX_HEIGHT);
    this.space.style.height = `${height}px`;
    this.draw();
  }

  /** Draws the visible rows again: some were loaded. */
  refresh(): void {
    this.queue();
  }

  /** Marks the column by which the rows are sorted. */
  markSorted(column: number, descends: boolean): void {
    this.sorted = column;
    this.descends = descends;
    this.drawHead();
  }

  /** Chooses a row, and scrolls to it. */
  select(index: number): void {
    const bounded = Math.max(0, Math.min(index, this.rows.count - 1));
    if (this.rows.count === 0) return;
    this.selected = bounded;
    const visible = this.visibleRows();
    if (bounded < this.first + 1) this.scrollToRow(bounded);
    else if (bounded > this.first + visible - 2) this.scrollToRow(bounded - visible + 2);
    this.draw();
    this.options.onselect?.(bounded);
  }

  private template(): string {
    const widths = this.options.columns.map(({ width }, index) =>
      index === this.options.columns.length - 1 ? `minmax(${width}px, 1fr)` : `${width}px`,
    );
    return widths.join(" ");
  }

  private drawHead(): void {
    const cells = this.options.columns.map((column, index) => {
      const className = column.isNumber === true ? "number" : "";
      const sort = index !== this.sorted ? "none" : this.descends ? "descending" : "ascending";
      const mark = sort === "none" ? "" : this.descends ? " ↓" : " ↑";
      const title = column.hint ?? column.title;
      const aria: Record<string, string> = {};
      if (this.options.onsort === undefined) {
        return el("div", { class: className, role: "columnheader", title }, column.title);
      }
      aria["sort"] = sort;
      const onclick = () => this.options.onsort?.(index);
      const press = el("button", { type: "button", title, onclick }, column.title + mark);
      return el("div", { class: className, role: "columnheader", aria }, press);
    });
    fill(
      this.head,
      el("div", { class: "grid-row", role: "row", aria: { rowindex: "1" } }, ...cells),
    );
  }

  private get viewHeight(): number {
    return Math.max(0, this.element.clientHeight - this.head.offsetHeight);
  }

  private visibleRows(): number {
    return Math.max(1, Math.ceil(this.viewHeight / ROW_HEIGHT));
  }

  /** Rows of a scroll by the whole height. */
  private get scrollable(): number {
    return Math.max(1, this.space.offsetHeight - this.viewHeight);
  }

  private get isScaled(): boolean {
    return this.rows.count * ROW_HEIGHT > MAX_HEIGHT;
  }

  private scrollToRow(row: number): void {
    const last = Math.max(0, this.rows.count - this.viewHeight / ROW_HEIGHT);
    const top = Math.max(0, Math.min(row, last));
    this.element.scrollTop = this.isScaled ? (top / last) * this.scrollable : top * ROW_HEIGHT;
    this.first = Math.floor(top);
  }

  private queue(): void {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.draw();
    });
  }

  private draw(): void {
    const { columns } = this.options;
    const { count } = this.rows;
    const top = this.element.scrollTop;
    const visible = this.visibleRows();
    let first = Math.floor(top / ROW_HEIGHT);
    if (this.isScaled) {
      const last = Math.max(0, count - this.viewHeight / ROW_HEIGHT);
      first = Math.floor(Math.min(1, top / this.scrollable) * last);
    }
    this.first = first;
    const end = Math.min(count, first + visible + 1);
    this.rows.need?.(first, end);
    const offset = this.isScaled ? top : first * ROW_HEIGHT;
    this.body.style.transform = `translateY(${offset}px)`;
    while (this.elements.length < end - first) {
      const cells = columns.map(({ isNumber }) =>
        el("div", { role: "gridcell", class: isNumber === true ? "number" : "" }),
      );
      this.elements.push(el("div", { class: "grid-row", role: "row" }, ...cells));
    }
    const shown = this.elements.slice(0, Math.max(0, end - first));
    for (const [place, element] of shown.entries()) {
      const index = first + place;
      const row = this.rows.row(index);
      element.setAttribute("aria-rowindex", String(index + 2));
      element.id = `${this.id}-${index}`;
      element.dataset["index"] = String(index);
      element.classList.toggle("selected", index === this.selected);
      element.classList.toggle("odd", index % 2 === 1);
      element.setAttribute("aria-selected", String(index === this.selected));
      for (const [at, column] of columns.entries()) {
        const cell = element.children[at] as HTMLElement;
        const text = row === undefined ? "…" : column.text(row);
        if (cell.textContent !== text) {
          cell.textContent = text;
          cell.title = text.length > 20 ? text : "";
        }
      }
    }
    if (this.body.childElementCount !== shown.length) this.body.replaceChildren(...shown);
    const isVisible = this.selected >= first && this.selected < end;
    if (isVisible) {
      this.element.setAttribute("aria-activedescendant", `${this.id}-${this.selected}`);
    } else {
      this.element.removeAttribute("aria-activedescendant");
    }
  }

  private onpointer(event: PointerEvent): void {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    if (row !== null) this.select(Number(row.dataset["index"]));
  }

  private onkey(event: KeyboardEvent): void {
    if (event.target !== this.element) return;
    const page = Math.max(1, this.visibleRows() - 2);
    const targets: Record<string, number> = {
      ArrowDown: this.selected + 1,
      ArrowUp: this.selected - 1,
      PageDown: this.selected + page,
      PageUp: this.selected - page,
      Home: 0,
      End: this.rows.count - 1,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      event.preventDefault();
      this.select(target);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.options.onactivate?.(this.selected);
    }
  }
}
