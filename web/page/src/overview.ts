// The verdict with findings and remedies, and what the recording is.

import type { Finding, Info, Rule, Verdict } from "../../package/src/types.js";
import { type App, type Tab, busy } from "./app.js";
import { el, fill } from "./dom.js";
import * as format from "./format.js";

const VERDICTS: Record<string, { title: string; tone: string; text: string }> = {
  complete: {
    title: "Complete",
    tone: "good",
    text: "Nothing that the verifier looks for is missing: rundowns, symbols, buffers, events.",
  },
  inconclusive: {
    title: "Inconclusive",
    tone: "doubtful",
    text: "What is missing from the recording does not let the verifier decide whether it is complete.",
  },
  incomplete: {
    title: "Incomplete",
    tone: "bad",
    text: "The recording lacks data that cannot be added later. Record it again if you can.",
  },
};

export class Overview implements Tab {
  readonly name = "overview";
  readonly title = "Overview";
  readonly needsTrace = true;
  readonly element = el("div", { class: "page overview" });

  constructor(private readonly app: App) {}

  show(): Promise<void> {
    return busy(this.element, async () => {
      const [verdict, infos] = await Promise.all([this.app.verdict(), this.app.info()]);
      const rules = await this.app.analysis.ask("rules", verdict.origin);
      fill(
        this.element,
        verdictCard(verdict),
        findings(verdict, rules),
        el("div", { class: "columns" }, machine(verdict, infos), processes(verdict)),
        el("div", { class: "columns" }, sessions(verdict), losses(verdict, infos)),
        providers(infos),
        checks(verdict, rules),
      );
    });
  }
}

function verdictCard(verdict: Verdict): HTMLElement {
  const words = VERDICTS[verdict.verdict] ?? {
    title: verdict.verdict,
    tone: "doubtful",
    text: "",
  };
  const broken = verdict.findings.filter(({ severity }) => severity !== "note").length;
  const notes =
    verdict.findings.length === 0
      ? "no findings"
      : `no findings except ${format.plural(verdict.findings.length, "note")}`;
  const facts = [
    format.plural(verdict.records, "event"),
    format.duration(verdict.duration_us / 1e6),
    broken > 0 ? format.plural(broken, "finding") : notes,
  ];
  return el(
    "section",
    {
      class: `verdict ${words.tone}`,
      aria: { label: "Verdict" },
      data: { verdict: verdict.verdict },
    },
    el("h2", null, words.title),
    el("p", null, words.text),
    el("p", { class: "facts" }, facts.join("  ·  ")),
  );
}

function card(title: string, ...children: (HTMLElement | false | null)[]): HTMLElement {
  return el("section", { class: "card" }, el("h2", null, title), ...children);
}

function findings(verdict: Verdict, rules: Rule[]): HTMLElement | null {
  if (verdict.findings.length === 0) return null;
  const byRule = new Map<string, Finding[]>();
  for (const finding of verdict.findings) {
    const group = byRule.get(finding.rule) ?? [];
    group.push(finding);
    byRule.set(finding.rule, group);
  }
  const groups = [...byRule].map(([id, group]) =>
    findingGroup(
      group,
      rules.find(({ rule }) => rule === id),
    ),
  );
  return card("Findings", el("div", { class: "findings" }, ...groups));
}

const SHOWN = 5;

function findingGroup(group: Finding[], rule: Rule | undefined): HTMLElement {
  const first = group[0]!;
  const messages = group.slice(0, SHOWN).map((finding) => {
    const because = finding.because === null ? "" : ` (undecided: ${finding.because})`;
    return el("li", null, finding.message + because);
  });
  const more = group.length - messages.length;
  if (more > 0) messages.push(el("li", { class: "quiet" }, `… and ${format.count(more)} more`));
  const commands = rule?.commands ?? [];
  return el(
    "article",
    { class: `finding ${first.severity}`, data: { rule: first.rule } },
    el(
      "header",
      null,
      el("span", { class: `badge ${first.severity}` }, first.severity),
      el("code", null, first.rule),
    ),
    el("ul", null, ...messages),
    rule !== undefined && el("p", { class: "quiet" }, rule.meaning),
    rule !== undefined && el("p", { class: "remedy" }, rule.remedy),
    commands.length > 0 && el("pre", { tabIndex: 0 }, commands.join("\n")),
  );
}

function list(...entries: [string, string | null | undefined][]): HTMLElement {
  const children: HTMLElement[] = [];
  for (const [term, value] of entries) {
    if (value === null || value === undefined || value === "") continue;
    children.push(el("dt", null, term), el("dd", null, value));
  }
  return el("dl", null, ...children);
}

function machine(verdict: Verdict, infos: Info[]): HTMLElement {
  const { machine } = verdict;
  const info = infos[0];
  const size = infos.reduce((sum, { bytes }) => sum + bytes, 0);
  const processors = machine.processors ?? info?.processors ?? null;
  return card(
    "Recording",
    list(
      ["System", machine.windows ?? info?.os],
      ["Processors", processors === null ? null : String(processors)],
      ["Memory", machine.memory_mib === null ? null : format.bytes(machine.memory_mib * 1048576)],
      ["Pointers", machine.pointer_bits === null ? null : `${machine.pointer_bits} bit`],
      ["Start", verdict.start_time === null ? null : format.utc(verdict.start_time)],
      ["Duration", format.duration(verdict.duration_us / 1e6)],
      ["Written by", info?.stream === undefined ? info?.dialect : "EventPipe"],
      ["Mode", info?.mode],
      ["Clock", info?.clock],
      ["Size, unpacked", format.bytes(size)],
    ),
  );
}

function rows(heads: string[], cells: string[][], numbers: number[] = []): HTMLElement {
  const isNumber = (index: number) => (numbers.includes(index) ? "number" : "");
  return el(
    "div",
    { class: "scroll", tabIndex: 0, role: "group", aria: { label: heads.join(", ") } },
    el(
      "table",
      null,
      el(
        "thead",
        null,
        el(
          "tr",
          null,
          ...heads.map((head, index) => el("th", { scope: "col", class: isNumber(index) }, head)),
        ),
      ),
      el(
        "tbody",
        null,
        ...cells.map((row) =>
          el("tr", null, ...row.map((cell, index) => el("td", { class: isNumber(index) }, cell))),
        ),
      ),
    ),
  );
}

const MOST_ROWS = 12;

function processes(verdict: Verdict): HTMLElement | null {
  const known = verdict.processes;
  if (known.length === 0) return null;
  const busiest = [...known].sort((one, other) => other.clr_events - one.clr_events);
  const shown = busiest
    .slice(0, MOST_ROWS)
    .map((process) => [
      `${process.name || "?"} (${process.pid})`,
      process.verdict.replaceAll("_", " "),
      format.count(process.clr_events),
      format.count(process.methods),
    ]);
  const more = known.length - shown.length;
  return card(
    "Processes with managed code or stacks",
    rows(["Process", "Verdict", "CLR events", "Methods"], shown, [2, 3]),
    more > 0 && el("p", { class: "quiet" }, `${more} more in the tables`),
  );
}

function sessions(verdict: Verdict): HTMLElement {
  const cells = verdict.sessions.map(({ name, kind, span_us: [from, to], events_lost }) => [
    name,
    kind,
    `${format.duration(from / 1e6)} – ${format.duration(to / 1e6)}`,
    events_lost === null ? "" : format.count(events_lost),
  ]);
  const enabled = verdict.enabled.map(({ provider, level, mask, source }) => [
    provider,
    level === null ? "" : String(level),
    mask ?? "",
    source,
  ]);
  return card(
    "Sessions",
    rows(["Session", "Kind", "Time", "Lost"], cells, [3]),
    enabled.length > 0 && el("h3", null, "Enabled providers"),
    enabled.length > 0 && rows(["Provider", "Level", "Keywords", "Source"], enabled, [1]),
  );
}

function losses(verdict: Verdict, infos: Info[]): HTMLElement {
  const problems = infos.flatMap(({ problems }) => problems);
  const items = [
    ...verdict.losses.map(({ message }) => message),
    ...problems.map(({ message }) => message),
  ];
  const shown = [...new Set(items)];
  if (shown.length === 0) {
    return card(
      "Losses",
      el("p", { class: "quiet" }, "No event and no buffer was lost, and nothing is damaged."),
    );
  }
  const lines = shown.slice(0, MOST_ROWS).map((message) => el("li", null, message));
  const more = shown.length - lines.length;
  if (more > 0) lines.push(el("li", { class: "quiet" }, `… and ${format.count(more)} more`));
  return card("Losses and damage", el("ul", null, ...lines));
}

function providers(infos: Info[]): HTMLElement {
  const cells: string[][] = [];
  for (const info of infos) {
    for (const { provider, provider_guid, count, kinds } of info.providers) {
      cells.push([provider ?? provider_guid, format.count(count), format.count(kinds)]);
    }
  }
  const shown = cells.slice(0, 40);
  return card(`Providers (${cells.length})`, rows(["Provider", "Events", "Kinds"], shown, [1, 2]));
}

function checks(verdict: Verdict, rules: Rule[]): HTMLElement {
  const statement = (id: string) => rules.find(({ rule }) => rule === id)?.statement ?? "";
  const cells = verdict.rules.map(({ rule, outcome, because }) => [
    rule,
    outcome.replaceAll("_", " "),
    because ?? statement(rule),
  ]);
  return el(
    "details",
    { class: "card" },
    el("summary", null, `All ${cells.length} rules`),
    rows(["Rule", "Outcome", "What holds, or why it is undecided"], cells),
  );
}
