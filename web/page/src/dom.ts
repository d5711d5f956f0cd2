// Makes elements. Text of traces only becomes text nodes, never markup.

type Child = Node | string | null | undefined | false;

type Properties<K extends keyof HTMLElementTagNameMap> = Partial<
  Omit<HTMLElementTagNameMap[K], "style" | "dataset">
> & {
  class?: string;
  role?: string;
  aria?: Record<string, string>;
  data?: Record<string, string>;
};

/** An element with properties and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties<K> | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (properties !== null) {
    const { class: className, role, aria, data, ...rest } = properties;
    if (className !== undefined) element.className = className;
    if (role !== undefined) element.setAttribute("role", role);
    for (const [name, value] of Object.entries(aria ?? {})) {
      element.setAttribute(`aria-${name}`, value);
    }
    Object.assign(element.dataset, data ?? {});
    Object.assign(element, rest);
  }
  append(element, children);
  return element;
}

function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
  }
}

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** A labelled field of a form. */
export function field(label: string, control: HTMLElement, hint = ""): HTMLLabelElement {
  return el("label", { class: "field", title: hint }, el("span", null, label), control);
}

/** A button. */
export function button(label: string, onclick: () => void, className = ""): HTMLButtonElement {
  return el("button", { type: "button", class: className, onclick }, label);
}

/** A line that assistive technology reads when it changes. */
export const announce = (() => {
  let line: HTMLElement | null = null;
  return (text: string) => {
    line ??= document.getElementById("announcer");
    if (line !== null) line.textContent = text;
  };
})();

/** Saves bytes as a file of the user. */
export function save(name: string, blob: Blob): void {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const palette = new Map<string, string>();

/** A colour of the palette, by the name of its variable. */
export function colour(name: string): string {
  let value = palette.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    palette.set(name, value);
  }
  return value;
}

/** The palette has changed: between light and dark. */
export function forgetColours(): void {
  palette.clear();
}

/** Draws on a canvas at the resolution of the screen, in CSS pixels. */
export function prepareCanvas(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const scale = window.devicePixelRatio || 1;
  const pixelWidth = Math.max(1, Math.round(width * scale));
  const pixelHeight = Math.max(1, Math.round(height * scale));
  if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
    canvas.width = pixelWidth;
    canvas.height = pixelHeight;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
