// The page: navigation, opening of files, and the tabs.

import { App, type Tab, failure } from "./app.js";
import { Cancelled } from "./client.js";
import { Cpu } from "./cpu.js";
import { announce, button, el, fill, forgetColours } from "./dom.js";
import { Events } from "./events.js";
import { Export } from "./export.js";
import { Overview } from "./overview.js";
import { Playground } from "./playground.js";
import { Strip } from "./strip.js";
import { GROUPS, Tables } from "./tables.js";
import { Timeline } from "./timeline.js";

const app = new App();
const strip = new Strip(app);
let tabs: Tab[] = [];
let current: Tab | null = null;
/** Tabs that show the opened recording and the selected time. */
const fresh = new Set<Tab>();

const nav = document.getElementById("nav")!;
const main = document.getElementById("main")!;
const names = document.getElementById("names")!;
const progress = document.getElementById("progress")!;
const stripPlace = document.getElementById("strip")!;
const picker = document.getElementById("picker") as HTMLInputElement;

/** Makes the tabs; those of an earlier recording are dropped. */
function makeTabs(): void {
  const playground = tabs.find(({ name }) => name === "playground") ?? new Playground(app);
  tabs = [
    new Overview(app),
    new Timeline(app),
    new Events(app),
    new Cpu(app),
    ...GROUPS.map((group) => new Tables(app, group)),
    new Export(app),
    playground,
  ];
  for (const tab of [...fresh]) if (tab !== playground) fresh.delete(tab);
}

function drawNav(): void {
  const links = tabs.map((tab) => {
    const isEnabled = !tab.needsTrace || app.opened !== null;
    const link = el("a", { href: `#/${tab.name}`, data: { tab: tab.name } }, tab.title);
    if (tab === current) link.setAttribute("aria-current", "page");
    if (!isEnabled) {
      link.setAttribute("aria-disabled", "true");
      link.removeAttribute("href");
    }
    return el("li", null, link);
  });
  fill(nav, el("ul", null, ...links));
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function go(name: string): void {
  let tab = tabs.find((known) => known.name === name);
  if (tab === undefined || (tab.needsTrace && app.opened === null)) tab = undefined;
  current = tab ?? null;
  drawNav();
  document.title = tab === undefined ? "etlkit" : `${tab.title} – etlkit`;
  if (tab === undefined) {
    fill(main, landing());
    return;
  }
  if (tab.element.parentElement !== main) {
    fill(main, el("h1", { class: "visually-hidden" }, tab.title), tab.element);
  }
  showStrip();
  if (!fresh.has(tab)) {
    fresh.add(tab);
    void tab.show();
  }
}

function showStrip(): void {
  stripPlace.hidden = !app.isMeasured || current === null || !current.needsTrace;
}

/** The view that the address names: `#/events`, `#/playground=SCRIPT`. */
function route(): void {
  if (location.hash !== "" && !location.hash.startsWith("#/")) return;
  const name = location.hash.slice(2).split("=")[0] ?? "";
  go(name === "" && app.opened !== null ? "overview" : name);
}

function landing(): HTMLElement {
  const sample = button("Try the playground", () => {
    location.hash = "#/playground";
  });
  return el(
    "div",
    { class: "landing" },
    el("h1", null, "Drop a trace here"),
    el(
      "p",
      { class: "lead" },
      "Reads Windows event traces (.etl) and .NET event streams (.nettrace), also packed in .zip, .gz or .zst. Several files open as one recording.",
    ),
    el(
      "div",
      { class: "actions" },
      button("Choose files", () => picker.click(), "primary"),
      sample,
    ),
    el(
      "p",
      { class: "quiet" },
      "Everything happens in this browser. The page cannot send anything: its security policy forbids it.",
    ),
  );
}

async function open(files: File[]): Promise<void> {
  if (files.length === 0) return;
  try {
    await app.open(files);
  } catch (error) {
    if (error instanceof Cancelled) return;
    fill(names);
    current = null;
    drawNav();
    fill(main, el("div", { class: "page" }, failure(error)), landing());
    announce(error instanceof Error ? error.message : String(error));
  }
}

app.addEventListener("opening", () => {
  makeTabs();
  stripPlace.hidden = true;
  const title = app.files.map(({ name }) => name).join(" + ");
  fill(names, el("span", { class: "file", title }, title));
  current = null;
  drawNav();
  fill(
    main,
    el("div", { class: "page" }, el("p", { class: "quiet", role: "status" }, `Opening ${title} …`)),
  );
});

app.addEventListener("opened", () => {
  announce("The recording is open");
  if (location.hash === "#/overview" || location.hash === "") go("overview");
  else location.hash = "#/overview";
});

app.addEventListener("measured", () => {
  fill(stripPlace, strip.element);
  void strip.load();
  showStrip();
});

app.addEventListener("range", () => {
  for (const tab of [...fresh]) if (tab.needsTrace) fresh.delete(tab);
  // Without a time of their own, these tabs stay as they are.
  for (const tab of tabs) if (tab.name === "overview") fresh.add(tab);
  if (current !== null && !fresh.has(current)) {
    fresh.add(current);
    void current.show();
  }
});

const shown = new Map<object, string>();
for (const client of [app.analysis, app.events]) {
  client.onprogress = (state) => {
    if (state === null) shown.delete(client);
    else shown.set(client, `Reading ${Math.round(state.share * 100)} %`);
    const text = [...shown.values()][0];
    progress.hidden = text === undefined;
    const stop = button(
      "Cancel",
      () => {
        for (const one of [app.analysis, app.events]) one.cancel();
      },
      "small",
    );
    if (text === undefined) fill(progress);
    else if (progress.childElementCount === 0) fill(progress, el("span", null, text), stop);
    else progress.firstElementChild!.textContent = text;
  };
}

function watchDrops(): void {
  const over = (isOver: boolean) => document.body.classList.toggle("dropping", isOver);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) over(false);
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    void open([...(event.dataTransfer?.files ?? [])]);
  });
}

/** Light, dark, or as the system has it. */
function watchTheme(): void {
  const root = document.documentElement;
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => {
    forgetColours();
    dispatchEvent(new Event("resize"));
    strip.draw();
    if (current?.name === "timeline" || current?.name === "cpu") void current.show();
  };
  isDark.addEventListener("change", redraw);
  document.getElementById("theme")!.addEventListener("click", () => {
    const dark =
      root.dataset["theme"] === "dark" || (root.dataset["theme"] === undefined && isDark.matches);
    root.dataset["theme"] = dark ? "light" : "dark";
    redraw();
  });
}

/** Opens the trace that the address names: `?trace=PATH` of the same origin. */
async function openFromAddress(): Promise<void> {
  const path = new URLSearchParams(location.search).get("trace");
  if (path === null) return;
  const url = new URL(path, location.href);
  if (url.origin !== location.origin) {
    fill(
      main,
      failure(new Error("only a trace of the same origin can be opened by the address")),
      landing(),
    );
    return;
  }
  const reply = await fetch(url);
  if (!reply.ok) {
    fill(main, failure(new Error(`${path}: ${reply.status} ${reply.statusText}`)), landing());
    return;
  }
  await open([new File([await reply.blob()], url.pathname.split("/").pop() ?? "trace.etl")]);
}

picker.addEventListener("change", () => {
  void open([...(picker.files ?? [])]);
  picker.value = "";
});
document.getElementById("open")!.addEventListener("click", () => picker.click());
addEventListener("hashchange", route);
watchDrops();
watchTheme();
makeTabs();
if (location.hash.startsWith("#/")) route();
else go("");
void openFromAddress();
