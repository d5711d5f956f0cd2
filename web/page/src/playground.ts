// The scenario language: a script becomes traces, the truth about them, and their verdict.

import type { Example, ScriptError, SynthFile } from "../../package/src/types.js";
import { type App, type Tab, busy, failure } from "./app.js";
import { Cancelled, Client } from "./client.js";
import { announce, button, el, field, fill, save } from "./dom.js";
import * as format from "./format.js";
import { highlight } from "./highlight.js";

const CHECK_MS = 400;
const FIRST = "recipe";
const PREFIX = "#/playground=";

export class Playground implements Tab {
  readonly name = "playground";
  readonly title = "Playground";
  readonly needsTrace = false;
  readonly element: HTMLElement;
  private readonly client = new Client();
  private readonly editor = el("textarea", {
    spellcheck: false,
    autocomplete: "off",
    wrap: "off",
    aria: { label: "Scenario script" },
  });
  private readonly colours = el("pre", { class: "colours", ariaHidden: "true" });
  private readonly errors = el("div", { class: "script-errors", role: "status" });
  private readonly results = el("div", { class: "results", aria: { live: "polite" } });
  private readonly choice = el("select");
  private readonly seed = el("input", { type: "number", min: "0", placeholder: "of the script" });
  private examples: Example[] = [];
  private timer = 0;
  private known: ScriptError[] = [];

  constructor(private readonly app: App) {
    this.editor.addEventListener("input", () => this.changed());
    this.editor.addEventListener("scroll", () => this.align());
    this.editor.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        void this.run();
      }
    });
    this.choice.addEventListener("change", () => {
      const example = this.examples[Number(this.choice.value)];
      if (example !== undefined) this.setText(example.text);
    });
    this.element = el(
      "div",
      { class: "page playground" },
      el(
        "div",
        { class: "toolbar" },
        field("Example", this.choice),
        field("Seed", this.seed),
        button("Run", () => void this.run(), "primary"),
        button("Copy link", () => void this.share()),
      ),
      el(
        "div",
        { class: "split even" },
        el(
          "div",
          { class: "editor-side" },
          el("div", { class: "editor" }, this.colours, this.editor),
          this.errors,
        ),
        this.results,
      ),
    );
    fill(
      this.results,
      el(
        "p",
        { class: "quiet" },
        "Run the script to simulate the machine that it describes: its traces, the truth about every event, and the verdict on each trace.",
      ),
    );
  }

  async show(): Promise<void> {
    if (this.examples.length > 0) return;
    try {
      this.examples = await this.client.examples();
    } catch (error) {
      fill(this.results, failure(error));
      return;
    }
    this.choice.append(
      ...this.examples.map(({ name, is_template }, index) =>
        el("option", { value: String(index) }, is_template ? `template: ${name}` : name),
      ),
    );
    const shared = await sharedScript();
    const first = this.examples.findIndex(({ name }) => name === FIRST);
    this.choice.value = String(first);
    this.setText(shared ?? this.examples[first]?.text ?? "");
  }

  private setText(text: string): void {
    this.editor.value = text;
    this.editor.scrollTop = 0;
    this.changed();
  }

  private changed(): void {
    this.known = [];
    this.paint();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.check(), CHECK_MS);
  }

  private paint(): void {
    fill(this.colours, ...highlight(this.editor.value, this.known), "\n");
    this.align();
  }

  private align(): void {
    this.colours.scrollTop = this.editor.scrollTop;
    this.colours.scrollLeft = this.editor.scrollLeft;
  }

  private async check(): Promise<void> {
    const script = this.editor.value;
    try {
      const { errors } = await this.client.synth(script, { check: true });
      if (script === this.editor.value) this.showErrors(errors);
    } catch (error) {
      if (!(error instanceof Cancelled)) fill(this.errors, failure(error));
    }
  }

  private showErrors(errors: ScriptError[]): void {
    this.known = errors;
    this.paint();
    const script = this.editor.value;
    const items = errors.map((error) => {
      const before = script.slice(0, error.from);
      const line = before.split("\n").length;
      const column = error.from - (before.lastIndexOf("\n") + 1) + 1;
      const go = button(
        `${line}:${column}`,
        () => {
          this.editor.focus();
          this.editor.setSelectionRange(error.from, error.to);
          const lineHeight = this.editor.scrollHeight / Math.max(1, script.split("\n").length);
          this.editor.scrollTop = Math.max(0, (line - 4) * lineHeight);
        },
        "small",
      );
      return el(
        "li",
        null,
        go,
        el("span", null, error.message),
        error.hint !== null && el("span", { class: "quiet" }, ` ${error.hint}`),
      );
    });
    fill(
      this.errors,
      errors.length === 0
        ? el("p", { class: "quiet" }, "No errors.")
        : el("ul", { class: "errors" }, ...items),
    );
  }

  private async run(): Promise<void> {
    await busy(this.results, async () => {
      const options = this.seed.value === "" ? {} : { seed: Number(this.seed.value) };
      const start = performance.now();
      const { errors, files } = await this.client.synth(this.editor.value, options);
      this.showErrors(errors);
      if (errors.length > 0) {
        fill(this.results, el("p", { class: "quiet" }, "The script has errors."));
        return;
      }
      const seconds = (performance.now() - start) / 1000;
      const traces = files.filter(({ name }) => name.endsWith(".etl"));
      const truth = files.find(({ name }) => name.endsWith(".jsonl"));
      const cards = [];
      for (const trace of traces) cards.push(await this.traceCard(trace));
      fill(
        this.results,
        el(
          "p",
          { class: "quiet" },
          `${format.plural(traces.length, "trace")} in ${format.duration(seconds)}`,
        ),
        ...cards,
        truth === undefined ? null : truthCard(truth),
      );
      announce(`${format.plural(traces.length, "trace")} simulated`);
    });
  }

  private async traceCard(file: SynthFile): Promise<HTMLElement> {
    const blob = new File([file.bytes as Uint8Array<ArrayBuffer>], file.name);
    const card = el(
      "section",
      { class: "card trace-card", data: { file: file.name } },
      el("h2", null, file.name),
    );
    try {
      await this.client.open([blob]);
      const verdict = await this.client.ask("verify");
      const findings = verdict.findings.filter(({ severity }) => severity !== "note");
      card.dataset["verdict"] = verdict.verdict;
      card.append(
        el(
          "p",
          null,
          el("span", { class: `badge ${verdict.verdict}` }, verdict.verdict),
          ` ${format.plural(verdict.records, "event")}, ${format.bytes(file.bytes.length)}`,
        ),
        el("ul", null, ...findings.slice(0, 6).map(({ message }) => el("li", null, message))),
      );
    } catch (error) {
      card.append(failure(error));
    }
    card.append(
      el(
        "div",
        { class: "actions" },
        button("Open", () => void this.app.open([blob]).catch(() => {}), "primary"),
        button("Save", () => save(file.name, blob)),
      ),
    );
    return card;
  }

  private async share(): Promise<void> {
    const hash = PREFIX + (await packed(this.editor.value));
    history.replaceState(null, "", hash);
    await navigator.clipboard.writeText(location.href).catch(() => {});
    announce("The link is copied");
    fill(
      this.errors,
      el("p", { class: "done" }, "The address of this page now has the script; it is copied."),
    );
  }
}

/** What the simulation knows: which events it raised, and what each session did with them. */
function truthCard(file: SynthFile): HTMLElement {
  const counts = new Map<string, number>();
  let events = 0;
  for (const line of new TextDecoder().decode(file.bytes).split("\n")) {
    if (!line.startsWith('{"kind":"event"')) continue;
    events += 1;
    const { sessions } = JSON.parse(line) as { sessions?: Record<string, unknown> };
    for (const outcome of Object.values(sessions ?? {})) {
      const name = typeof outcome === "string" ? outcome : JSON.stringify(outcome);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const blob = new Blob([file.bytes as Uint8Array<ArrayBuffer>]);
  const lines = [...counts].map(([name, value]) =>
    el("li", null, `${name.replaceAll("_", " ")}: ${format.count(value)}`),
  );
  return el(
    "section",
    { class: "card", data: { truth: String(events) } },
    el("h2", null, "Truth"),
    el("p", null, `${format.plural(events, "event")} raised, ${format.bytes(file.bytes.length)}`),
    el("ul", null, ...lines),
    el(
      "div",
      { class: "actions" },
      button("Save", () => save(file.name, blob)),
    ),
  );
}

/** The script in the address, if it has one. */
async function sharedScript(): Promise<string | null> {
  if (!location.hash.startsWith(PREFIX)) return null;
  try {
    const base64 = location.hash.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return await new Response(stream).text();
  } catch {
    return null;
  }
}

async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
