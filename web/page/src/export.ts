// The export formats, saved from the page, or opened in a viewer if the user asks for that.

import type { ExportFormat } from "../../package/src/types.js";
import { type App, type Tab, busy, failure } from "./app.js";
import { Cancelled } from "./client.js";
import { announce, button, el, field, fill, save } from "./dom.js";
import * as format from "./format.js";

const GROUPS: Record<ExportFormat["of"], string> = {
  recording: "The recording for timeline viewers",
  samples: "CPU samples, or allocations",
  packets: "Captured packets",
  table: "One table",
  events: "Events",
  report: "The verdict",
};

export class Export implements Tab {
  readonly name = "export";
  readonly title = "Export";
  readonly needsTrace = true;
  readonly element = el("div", { class: "page" });
  private readonly table = el("select");
  private readonly allocations = el("input", { type: "checkbox" });
  private readonly status = el("div", { class: "export-status", role: "status" });
  private isBuilt = false;

  constructor(private readonly app: App) {}

  async show(): Promise<void> {
    if (this.isBuilt) return;
    await busy(this.element, async () => {
      const formats = await this.app.analysis.ask("formats");
      const tables = await this.app.analysis.ask("tables");
      this.table.append(
        ...tables.map(({ name, row }) => el("option", { value: name }, `${name} – ${row}`)),
      );
      const sections: HTMLElement[] = [];
      for (const [of, title] of Object.entries(GROUPS)) {
        const cards = formats.filter((known) => known.of === of).map((known) => this.card(known));
        if (cards.length === 0) continue;
        const choice =
          of === "table"
            ? field("Table", this.table)
            : of === "samples"
              ? el(
                  "label",
                  { class: "check" },
                  this.allocations,
                  "Allocations of .NET instead of samples",
                )
              : null;
        sections.push(
          el(
            "section",
            { class: "card" },
            el("h2", null, title),
            choice,
            el("div", { class: "formats" }, ...cards),
          ),
        );
      }
      fill(
        this.element,
        el(
          "p",
          { class: "quiet" },
          "Exports have the selected time. Files are made here and saved by the browser.",
        ),
        this.status,
        ...sections,
      );
      this.isBuilt = true;
    });
  }

  private card(known: ExportFormat): HTMLElement {
    const viewer = VIEWERS[known.name];
    return el(
      "article",
      { class: "format", data: { format: known.name } },
      el("h3", null, known.about),
      el("p", { class: "quiet" }, `.${known.extension}`),
      el(
        "div",
        { class: "actions" },
        button("Save", () => void this.run(known, null), "primary"),
        viewer !== undefined &&
          button(`Open in ${viewer.name}`, () => void this.run(known, viewer)),
      ),
    );
  }

  private async run(known: ExportFormat, viewer: Viewer | null): Promise<void> {
    // Browsers open a window only while the user presses.
    const target = viewer === null ? null : window.open(viewer.url, "_blank");
    fill(this.status, el("p", { class: "quiet" }, `Making .${known.extension} …`));
    try {
      const { written, blob } = await this.app.analysis.export(known.name, {
        ...this.app.rangeOptions,
        allocations: this.allocations.checked,
        table: this.table.value,
        query: this.app.rangeOptions,
      });
      const stem = (this.app.files[0]?.name ?? "trace").replace(
        /\.(etl|nettrace|zip|gz|zst)(\.\w+)?$/i,
        "",
      );
      const suffix = known.of === "table" ? `${stem}.${this.table.value}` : stem;
      const name = `${suffix}.${known.extension}`;
      if (viewer === null) save(name, blob);
      else if (target === null) throw new Error("the browser did not open a window");
      else await viewer.send(target, await blob.arrayBuffer(), name);
      const words = `${name}: ${written}, ${format.bytes(blob.size)}`;
      fill(this.status, el("p", { class: "done" }, words));
      announce(words);
    } catch (error) {
      target?.close();
      if (!(error instanceof Cancelled)) fill(this.status, failure(error));
    }
  }
}

/** A viewer that takes a profile by messages of its window. */
interface Viewer {
  name: string;
  url: string;
  send(target: Window, bytes: ArrayBuffer, name: string): Promise<void>;
}

const PERFETTO = "https://ui.perfetto.dev";
const FIREFOX = "https://profiler.firefox.com";

const VIEWERS: Record<string, Viewer> = {
  perfetto: {
    name: "Perfetto",
    url: PERFETTO,
    async send(target, buffer, title) {
      await ready(target, PERFETTO, "PING", (data) => data === "PONG");
      target.postMessage({ perfetto: { buffer, title, keepApiOpen: false } }, PERFETTO);
    },
  },
  firefox: {
    name: "Firefox Profiler",
    url: `${FIREFOX}/from-post-message/`,
    async send(target, profile) {
      const isReady = (data: unknown) =>
        (data as { name?: string } | null)?.name === "ready:response";
      await ready(target, FIREFOX, { name: "ready:request" }, isReady);
      target.postMessage({ name: "inject-profile", profile }, FIREFOX);
    },
  },
};

const ASK_MS = 100;
const GIVE_UP_MS = 60_000;

/** Asks a window until it answers that it is ready. */
function ready(
  target: Window,
  origin: string,
  question: unknown,
  isAnswer: (data: unknown) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const asking = setInterval(() => target.postMessage(question, origin), ASK_MS);
    const end = () => {
      clearInterval(asking);
      clearTimeout(timeout);
      removeEventListener("message", listen);
    };
    const timeout = setTimeout(() => {
      end();
      reject(new Error(`${origin} did not answer`));
    }, GIVE_UP_MS);
    const listen = (event: MessageEvent) => {
      if (event.origin !== origin || !isAnswer(event.data)) return;
      end();
      resolve();
    };
    addEventListener("message", listen);
  });
}
