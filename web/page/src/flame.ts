// A flame graph on a canvas: callers above the methods that they call.

import type { Profile } from "../../package/src/types.js";
import { colour, el, prepareCanvas } from "./dom.js";
import * as format from "./format.js";

const ROW = 20;
const MIN_TEXT = 28;

/** The place of each node, computed once. */
interface Layout {
  start: Float64Array;
  parent: Int32Array;
  /** The index after the last node below. */
  end: Int32Array;
  total: number;
  depth: number;
}

function layout(profile: Profile): Layout {
  const { depth, total } = profile;
  const nodes = depth.length;
  const start = new Float64Array(nodes);
  const parent = new Int32Array(nodes).fill(-1);
  const end = new Int32Array(nodes).fill(nodes);
  const next: number[] = [0];
  const open: number[] = [];
  let deepest = 0;
  for (let node = 0; node < nodes; node += 1) {
    const level = depth[node]!;
    while (open.length > level) end[open.pop()!] = node;
    parent[node] = open[open.length - 1] ?? -1;
    start[node] = next[level]!;
    next[level] = start[node]! + total[node]!;
    next[level + 1] = start[node]!;
    open.push(node);
    deepest = Math.max(deepest, level + 1);
  }
  return { start, parent, end, total: next[0]!, depth: deepest };
}

export class Flame {
  readonly element: HTMLElement;
  readonly canvas = el("canvas", { tabIndex: 0 });
  onzoom: (node: number) => void = () => {};
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly line = el("p", { class: "quiet flame-line", role: "status" });
  private profile: Profile | null = null;
  private places: Layout | null = null;
  private zoomed = -1;
  private focused = -1;
  private hovered = -1;
  private matches = new Set<number>();
  private width = 0;

  constructor() {
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute(
      "aria-label",
      "Flame graph. Arrow keys move, Enter zooms, Escape zooms out.",
    );
    this.element = el(
      "div",
      { class: "flame" },
      this.line,
      el("div", { class: "flame-scroll" }, this.canvas),
      this.tip,
    );
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      this.focused = node;
      this.zoom(node);
    });
    this.canvas.addEventListener("keydown", (event) => this.onkey(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(profile: Profile): void {
    this.profile = profile;
    this.places = layout(profile);
    this.zoomed = -1;
    this.focused = -1;
    this.matches = new Set();
    this.describe(-1);
    this.draw();
  }

  /** Marks the frames whose labels contain a text. Returns their size, without nested ones. */
  search(text: string): number {
    const { profile, places } = this;
    this.matches = new Set();
    let size = 0;
    if (profile !== null && places !== null && text !== "") {
      const wanted = text.toLowerCase();
      const labels = profile.labels.map((label) => label.toLowerCase().includes(wanted));
      let counted = 0;
      for (let node = 0; node < profile.label.length; node += 1) {
        if (labels[profile.label[node]!] !== true) continue;
        this.matches.add(node);
        if (node >= counted) {
          size += profile.total[node]!;
          counted = places.end[node]!;
        }
      }
    }
    this.draw();
    return size;
  }

  zoom(node: number): void {
    this.zoomed = node;
    this.describe(node);
    this.onzoom(node);
    this.draw();
  }

  private get base(): { start: number; total: number } {
    const { profile, places, zoomed } = this;
    if (profile === null || places === null) return { start: 0, total: 1 };
    if (zoomed < 0) return { start: 0, total: Math.max(1, places.total) };
    return { start: places.start[zoomed]!, total: Math.max(1, profile.total[zoomed]!) };
  }

  /** Whether a node is above the zoomed one. */
  private isAncestor(node: number): boolean {
    return this.zoomed >= 0 && node < this.zoomed && this.places!.end[node]! > this.zoomed;
  }

  private box(node: number): { x: number; width: number } {
    if (this.isAncestor(node)) return { x: 0, width: this.width };
    const { start, total } = this.base;
    const scale = this.width / total;
    return {
      x: (this.places!.start[node]! - start) * scale,
      width: this.profile!.total[node]! * scale,
    };
  }

  private draw(): void {
    const { profile, places } = this;
    if (profile === null || places === null) return;
    this.width = this.canvas.parentElement?.clientWidth ?? 0;
    if (this.width === 0) return;
    const height = places.depth * ROW + 2;
    const context = prepareCanvas(this.canvas, this.width, height);
    const palette = new Map<string, string>();
    const fillOf = (name: string) => {
      let value = palette.get(name);
      if (value === undefined) {
        value = colour(name);
        palette.set(name, value);
      }
      return value;
    };
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const text = fillOf("flame-text");
    const isSearching = this.matches.size > 0;
    const nodes = profile.depth.length;
    for (let node = 0; node < nodes; ) {
      const { x, width } = this.box(node);
      if (width < 0.4 || x > this.width || x + width < 0) {
        // Nothing below it can be seen either.
        node = places.end[node]!;
        continue;
      }
      const left = Math.max(0, x);
      const shown = Math.min(this.width, x + width) - left;
      const y = profile.depth[node]! * ROW;
      const isMatch = this.matches.has(node);
      context.globalAlpha = this.isAncestor(node) || (isSearching && !isMatch) ? 0.45 : 1;
      context.fillStyle = isMatch ? fillOf("flame-found") : fillOf(`flame-${this.kind(node)}`);
      context.fillRect(left, y, Math.max(0.5, shown - 0.6), ROW - 1);
      context.globalAlpha = 1;
      if (shown > MIN_TEXT) {
        context.save();
        context.beginPath();
        context.rect(left, y, shown - 4, ROW);
        context.clip();
        context.fillStyle = text;
        context.fillText(profile.labels[profile.label[node]!] ?? "", left + 4, y + ROW / 2);
        context.restore();
      }
      if (node === this.focused || node === this.hovered) {
        context.strokeStyle = fillOf("text");
        context.lineWidth = 1.5;
        context.strokeRect(left + 0.75, y + 0.75, Math.max(1, shown - 2), ROW - 2.5);
      }
      node += 1;
    }
  }

  private kind(node: number): string {
    const label = this.profile!.label[node]!;
    const kind = this.profile!.kinds[label];
    const even = label % 2 === 0 ? "" : "-2";
    if (kind === undefined) return "root";
    if (kind === "kernel" || kind === "unknown" || kind === "native") return `${kind}${even}`;
    return `managed${even}`;
  }

  private nodeAt(event: MouseEvent): number {
    const { profile, places } = this;
    if (profile === null || places === null) return -1;
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const level = Math.floor((event.clientY - bounds.top) / ROW);
    for (let node = 0; node < profile.depth.length; ) {
      const box = this.box(node);
      if (x < box.x || x >= box.x + box.width) {
        node = places.end[node]!;
      } else if (profile.depth[node] === level) {
        return node;
      } else {
        node += 1;
      }
    }
    return -1;
  }

  private words(node: number): string {
    const { profile, places } = this;
    if (profile === null || places === null || node < 0) return "";
    const share = format.percent(profile.total[node]!, places.total);
    const total = format.weight(profile.total[node]!, profile.unit);
    const own = format.weight(profile.own[node]!, profile.unit);
    return `${profile.labels[profile.label[node]!]}: ${total} (${share}), self ${own}`;
  }

  private describe(node: number): void {
    const { places, profile } = this;
    if (profile === null || places === null) return;
    const all = `${format.weight(places.total, profile.unit)} in all. Click a frame to zoom.`;
    this.line.textContent = node < 0 ? all : this.words(node);
  }

  private hover(event: PointerEvent): void {
    const node = this.nodeAt(event);
    this.tip.hidden = node < 0;
    if (node >= 0) {
      this.tip.textContent = this.words(node);
      const bounds = this.element.getBoundingClientRect();
      const x = Math.min(event.clientX - bounds.left + 12, bounds.width - 260);
      this.tip.style.transform = `translate(${Math.max(0, x)}px, ${event.clientY - bounds.top + 16}px)`;
    }
    if (node !== this.hovered) {
      this.hovered = node;
      this.draw();
    }
  }

  private leave(): void {
    this.tip.hidden = true;
    this.hovered = -1;
    this.draw();
  }

  private onkey(event: KeyboardEvent): void {
    const { profile, places } = this;
    if (profile === null || places === null || profile.depth.length === 0) return;
    const node = Math.max(0, this.focused);
    const parent = places.parent[node]!;
    let next = node;
    if (event.key === "ArrowDown") next = node + 1 < places.end[node]! ? node + 1 : node;
    else if (event.key === "ArrowUp") next = parent < 0 ? node : parent;
    else if (event.key === "ArrowRight") {
      const sibling = places.end[node]!;
      const isSibling = sibling < profile.depth.length && places.parent[sibling] === parent;
      next = isSibling ? sibling : node;
    } else if (event.key === "ArrowLeft") {
      let sibling = parent + 1;
      while (sibling < node && places.end[sibling]! < node) sibling = places.end[sibling]!;
      next = Math.min(sibling, node);
    } else if (event.key === "Enter") this.zoom(node);
    else if (event.key === "Escape") this.zoom(-1);
    else return;
    event.preventDefault();
    this.focused = this.focused < 0 ? 0 : next;
    this.describe(this.focused);
    this.draw();
  }
}
