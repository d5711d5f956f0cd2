// Drives the real page in headless Chromium, and compares what it shows with the command line:
//
//   node web/test/page.mjs ETLKIT [--pictures DIR] [TRACE...]
//
// ETLKIT is the native program. Without traces it simulates some, and takes real ones of
// $ETLKIT_SHARED (default ../shared) if they are there. --pictures takes a picture of each view,
// light, dark and narrow. Needs web/dist (npm run build), .node (scripts/install.sh node) and
// Chromium.
// ETLKIT_PAGE_ONLY runs the steps whose names contain it.
// Exit codes: 0 all is equal; 1 a difference, an error of the console, a request to another origin,
// or a fault of accessibility; 2 wrong arguments.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const dist = path.join(root, "web/dist");
const { chromium } = createRequire(path.join(root, ".node/"))("playwright-core");
const axe = fs.readFileSync(path.join(root, "web/node_modules/axe-core/axe.min.js"), "utf8");

const args = process.argv.slice(2);
const only = process.env.ETLKIT_PAGE_ONLY;
const picturesAt = args.indexOf("--pictures");
const pictures = picturesAt < 0 ? null : args.splice(picturesAt, 2)[1];
const [etlkit, ...named] = args;
if (etlkit === undefined) {
  console.error("usage: node web/test/page.mjs ETLKIT [--pictures DIR] [TRACE...]");
  process.exit(2);
}

const work = fs.mkdtempSync(path.join(os.tmpdir(), "etlkit-page-"));
const WAIT = 60_000;

const REAL = [
  "perfview/gcevents.etl",
  "new/DynamicEvents.etl.zip",
  "demikernel/PktMon.etl",
  "nettrace/8.0-60-5.nettrace.gz",
];

/** What the program prints. Traces with damage have exit code 1. */
function run(...words) {
  const { stdout, status, stderr } = spawnSync(etlkit, words, { maxBuffer: 1 << 30 });
  if (status === 2 || status === null) throw new Error(`${words.join(" ")}: ${stderr}`);
  return stdout;
}

const json = (...words) => JSON.parse(run(...words));

function simulate(script) {
  const out = path.join(work, path.basename(script, ".kdl"));
  run("synth", script, "-o", out, "--force", "--no-truth");
  const traces = fs.readdirSync(out).filter((name) => name.endsWith(".etl"));
  // The merged trace is the last one of its script.
  const merged = traces.find((name) => name === `${path.basename(script, ".kdl")}.etl`);
  return path.join(out, merged ?? traces[0]);
}

function traces() {
  if (named.length > 0) return named;
  const scripts = [
    "scripts/pictures/orders.kdl",
    "corpus/gc-and-locks.kdl",
    "corpus/kernel-io.kdl",
  ];
  const found = scripts.map((script) => simulate(path.join(root, script)));
  const shared = process.env.ETLKIT_SHARED ?? path.join(root, "../shared");
  for (const name of REAL) {
    const file = path.join(shared, "traces", name);
    if (fs.existsSync(file)) found.push(file);
  }
  return found;
}

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** Serves the built page, and traces below /traces/. */
async function serve() {
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const file = name.startsWith("/traces/")
      ? path.join(work, path.basename(name))
      : path.join(dist, "page", name === "/" ? "index.html" : path.normalize(name));
    if (!fs.existsSync(file) || fs.statSync(file).isDirectory()) {
      response.writeHead(404).end();
      return;
    }
    const type = TYPES[path.extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { "Content-Type": type });
    fs.createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

/** A page that keeps its errors and its requests. */
async function newPage(browser, url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, ...options });
  const faults = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    const isOwn = origin === new URL(url).origin || ["blob:", "data:", "file:"].includes(protocol);
    if (!isOwn) faults.push(`a request to ${request.url()}`);
  });
  await page.goto(url);
  page.faults = faults;
  return page;
}

function assertNoFaults(page, what) {
  assert.deepEqual(page.faults, [], what);
}

async function open(page, files) {
  await page.setInputFiles("#picker", files);
  await page.waitForSelector("[data-verdict]", { timeout: WAIT });
}

async function view(page, name) {
  await page.click(`.nav [data-tab="${name}"]`);
  await page.waitForSelector(`.nav [data-tab="${name}"][aria-current]`);
  await settle(page);
}

async function settle(page) {
  await page.waitForFunction(
    () =>
      document.querySelector("main [aria-busy]") === null &&
      document.querySelector("main > *") !== null,
    null,
    { timeout: WAIT },
  );
}

async function statusNumber(page) {
  const text = await page.textContent(".events .status");
  return Number(text.replaceAll(",", "").match(/\d+/)[0]);
}

const lines = (buffer) => buffer.toString().split("\n").filter(Boolean);

/** Compares what the page shows of a trace with what the program prints. */
async function compare(page, trace) {
  await open(page, [trace]);
  const verdict = json("verify", "--no-config", "--format", "json", trace);
  assert.equal(await page.getAttribute("[data-verdict]", "data-verdict"), verdict.verdict);
  const rules = new Set(verdict.findings.map(({ rule }) => rule));
  const shownRules = await page.$$eval(".finding", (all) => all.map(({ dataset }) => dataset.rule));
  assert.deepEqual(new Set(shownRules), rules);

  await view(page, "events");
  const all = lines(run("dump", "--format", "jsonl", trace));
  assert.equal(await statusNumber(page), all.length);
  await compareRows(page, all);
  await compareSelection(page, trace, all);

  await view(page, "cpu");
  const cpu = json("analyze", "cpu", "--format", "json", "--top", "0", trace);
  const place = page.locator("main .place");
  assert.equal(Number(await place.getAttribute("data-samples")), cpu.samples);
  if (cpu.samples > 0 && cpu.cpu_us !== null) {
    assert.equal(Number(await place.getAttribute("data-size")), cpu.cpu_us * 10);
    await compareMethods(page, cpu.rows);
  }
  const gcs = json("analyze", "gc", "--format", "json", trace);
  await compareTable(page, "gc", gcs.collections ?? gcs.gcs);
  const processes = json("analyze", "processes", "--format", "json", trace);
  await compareTable(page, "processes", processes.processes);
  const network = json("analyze", "network", "--format", "json", trace);
  await compareTable(page, "network", network.connections);
  await view(page, "timeline");
  assertNoFaults(page, trace);
  return verdict.verdict;
}

/** The first and the last rows, and the fields of one. */
async function compareRows(page, all) {
  const names = await page.$$eval(".events .grid-body .grid-row", (rows) =>
    rows.slice(0, 5).map((row) => row.children[1].textContent),
  );
  const expected = all.slice(0, names.length).map((line) => JSON.parse(line).event);
  assert.deepEqual(names.slice(0, expected.length), expected);
  const grid = page.locator(".events .grid");
  await grid.focus();
  await page.keyboard.press("End");
  const last = JSON.parse(all.at(-1));
  await page.waitForFunction(
    (name) => document.querySelector(".details h2")?.textContent === name,
    last.event,
    { timeout: WAIT },
  );
  const shown = await page.textContent(".details dl dd");
  assert.equal(shown, last.time);
}

/** A filter by name, and a selected time. */
async function compareSelection(page, trace, all) {
  const name = JSON.parse(all[Math.floor(all.length / 2)]).event;
  await page.fill('.filters input[placeholder^="GC"]', name);
  await page.click(".filters button[type=submit]");
  await settle(page);
  const matching = all.filter((line) => JSON.parse(line).event === name).length;
  assert.equal(await statusNumber(page), matching, name);
  await page.click(".filters button[type=button]");
  await settle(page);

  const first = JSON.parse(
    lines(run("dump", "--format", "jsonl", "--relative", "--limit", "1", trace))[0],
  ).seconds;
  const [from, to] = [first + 0.1, first + 1.2].map((seconds) => seconds.toFixed(3));
  await page.fill('[aria-label^="Select from"]', from);
  await page.fill('[aria-label^="Select to"]', to);
  await page.keyboard.press("Tab");
  await settle(page);
  const selected = await page.inputValue('[aria-label^="Select to"]');
  const isSelected = !(await page.isDisabled(".strip-fields button"));
  if (isSelected) {
    const begin = await page.inputValue('[aria-label^="Select from"]');
    const last = JSON.parse(
      lines(run("dump", "--format", "jsonl", "--relative", trace)).at(-1),
    ).seconds;
    const until = Number(selected) >= Number(last.toFixed(6)) ? [] : ["--to", selected];
    const within = lines(run("dump", "--format", "jsonl", "--from", begin, ...until, trace));
    const shown = await statusNumber(page);
    // The ends are shown with six digits; an event at an end may be on either side.
    assert.ok(
      Math.abs(shown - within.length) <= 2,
      `${trace}: ${shown} events, not ${within.length}`,
    );
    await page.click(".strip-fields button");
    await settle(page);
  }
}

async function compareMethods(page, rows) {
  const shown = await page.$$eval(".stacked .grid-body .grid-row", (all) =>
    all.slice(0, 3).map((row) => row.children[4].textContent),
  );
  const best = Math.max(...rows.map(({ self_samples }) => self_samples));
  const hottest = rows.filter(({ self_samples }) => self_samples === best).map(({ name }) => name);
  assert.ok(hottest.includes(shown[0]), `${shown[0]} is not the hottest: ${hottest}`);
}

async function compareTable(page, tab, rows) {
  await view(page, tab);
  const count = Number(await page.getAttribute("main .place", "data-count"));
  assert.equal(count, rows.length, tab);
}

async function download(page, press) {
  const waiting = page.waitForEvent("download", { timeout: WAIT });
  await press();
  return fs.readFileSync(await (await waiting).path());
}

/** Exports are the bytes that the program writes. */
async function compareExports(page, trace) {
  await open(page, [trace]);
  await view(page, "export");
  const out = path.join(work, "exported");
  for (const [format, ...options] of [["folded"], ["flamegraph"], ["perfetto"], ["speedscope"]]) {
    run("export", format, ...options, trace, "-o", out, "--force");
    const bytes = await download(page, () => page.click(`[data-format="${format}"] .primary`));
    assert.ok(bytes.equals(fs.readFileSync(out)), `export ${format} differs`);
  }
  const arrow = await download(page, () => page.click('[data-format="arrow"] .primary'));
  assert.equal(arrow.subarray(0, 6).toString(), "ARROW1");
  const events = await download(page, () => page.click('[data-format="jsonl"] .primary'));
  assert.ok(events.equals(run("dump", "--format", "jsonl", trace)), "export jsonl differs");
  const report = await download(page, () => page.click('[data-format="json"] .primary'));
  assert.equal(
    JSON.parse(report).verdict,
    json("verify", "--no-config", "--format", "json", trace).verdict,
  );
  assertNoFaults(page, "exports");
}

/** A scenario becomes traces with a verdict; errors are shown at their places. */
async function play(page) {
  await page.click('.nav [data-tab="playground"]');
  await page.waitForFunction(() => document.querySelector(".editor textarea")?.value !== "", null, {
    timeout: WAIT,
  });
  await page.click(".playground .primary");
  await page.waitForSelector(".trace-card[data-verdict]", { timeout: WAIT });
  assert.equal(await page.getAttribute(".trace-card", "data-verdict"), "complete");
  const simulated = run(
    "synth",
    path.join(root, "corpus/recipe.kdl"),
    "-o",
    path.join(work, "played"),
    "--force",
  );
  assert.ok(simulated.length > 0);
  const truth = lines(fs.readFileSync(path.join(work, "played/truth.jsonl")));
  const raised = truth.filter((line) => line.startsWith('{"kind":"event"')).length;
  assert.equal(Number(await page.getAttribute("[data-truth]", "data-truth")), raised);
  await page.fill(".editor textarea", 'scenario "x"\nprocess "a.exe" { treads 4 }\n');
  await page.waitForSelector(".errors li", { timeout: WAIT });
  assert.match(await page.textContent(".errors li"), /2:19.*treads/s);
  assert.equal(await page.textContent(".colours .wrong"), "treads");
  const script = 'scenario "shared" // ü\n';
  await page.fill(".editor textarea", script);
  await page.click("text=Copy link");
  await page.waitForFunction(() => location.hash.startsWith("#/playground="));
  assertNoFaults(page, "playground");
  return page.url();
}

/** Several files that are dropped on the page are one recording. */
async function drop(page, files) {
  for (const file of files) fs.copyFileSync(file, path.join(work, path.basename(file)));
  await page.goto(url);
  await page.evaluate(
    async (names) => {
      const data = new DataTransfer();
      for (const name of names) {
        const bytes = await (await fetch(`traces/${name}`)).blob();
        data.items.add(new File([bytes], name));
      }
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    },
    files.map((file) => path.basename(file)),
  );
  await page.waitForSelector("[data-verdict]", { timeout: WAIT });
  const together = json("verify", "--no-config", "--together", "--format", "json", ...files);
  assert.equal(await page.getAttribute("[data-verdict]", "data-verdict"), together.verdict);
  await view(page, "cpu");
  const { samples } = json("analyze", "cpu", "--format", "json", ...files);
  assert.ok(samples > 0);
  assert.equal(Number(await page.getAttribute("main .place", "data-samples")), samples);
  assertNoFaults(page, "dropped files");
}

/** Damaged and hostile files leave the page working. */
async function attack(page, good) {
  const bytes = fs.readFileSync(good);
  const hostile = {
    "cut.etl": bytes.subarray(0, bytes.length - 5000),
    "zeros.etl": Buffer.alloc(100_000),
    "empty.etl": Buffer.alloc(0),
    "text.etl": Buffer.from("<img src=x onerror=alert(1)>".repeat(5000)),
    "<img src=x onerror=alert(1)>.etl": Buffer.concat([
      bytes.subarray(0, 70_000),
      Buffer.alloc(70_000, 0xff),
    ]),
    "cut.zip": Buffer.from("504b0304140000000800", "hex"),
  };
  for (const [name, content] of Object.entries(hostile)) {
    await page.setInputFiles("#picker", { name, mimeType: "", buffer: content });
    await page.waitForSelector('[data-verdict], [role="alert"]', { timeout: WAIT });
    assert.equal(await page.$$eval("main img, .names img", (all) => all.length), 0);
    assertNoFaults(page, name);
  }
  await open(page, [good]);
}

async function accessibilityFaults(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
  const targets = (nodes) =>
    nodes
      .map(({ target }) => target)
      .slice(0, 4)
      .join(" ");
  return violations.map(({ id, nodes }) => `${what}: ${id}: ${targets(nodes)}`);
}

const VIEWS = [
  "overview",
  "timeline",
  "events",
  "cpu",
  "gc",
  "processes",
  "network",
  "disk",
  "allocations",
  "tables",
  "export",
  "playground",
];

const SAMPLES = {
  dark: ["overview", "events", "cpu", "playground"],
  narrow: ["timeline", "events", "gc", "export"],
};

/** Every view, light, dark and narrow: nothing for axe to find, nothing wider than the screen. */
async function lookAt(browser, url, trace) {
  const forms = [
    { name: "light", viewport: { width: 1280, height: 860 }, colorScheme: "light" },
    { name: "dark", viewport: { width: 1280, height: 860 }, colorScheme: "dark" },
    { name: "narrow", viewport: { width: 360, height: 740 }, colorScheme: "light" },
  ];
  const found = [];
  for (const { name, ...options } of forms) {
    const page = await newPage(browser, url, options);
    if (pictures !== null)
      await page.screenshot({ path: path.join(pictures, `landing-${name}.png`) });
    found.push(...(await accessibilityFaults(page, `landing ${name}`)));
    await open(page, [trace]);
    // With pictures every view has each form; otherwise the dark and narrow ones are samples.
    const views = pictures === null && name !== "light" ? SAMPLES[name] : VIEWS;
    for (const tab of views) {
      await view(page, tab);
      if (tab === "events") {
        await page.locator(".events .grid").focus();
        await page.keyboard.press("PageDown");
        await page.waitForSelector(".details h2", { timeout: WAIT });
      }
      if (tab === "playground") {
        await page.click(".playground .primary");
        await page.waitForSelector("[data-truth]", { timeout: WAIT });
      }
      await page.waitForTimeout(150);
      if (pictures !== null)
        await page.screenshot({ path: path.join(pictures, `${tab}-${name}.png`) });
      found.push(...(await accessibilityFaults(page, `${tab} ${name}`)));
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) found.push(`${tab} ${name}: ${overflow} pixels too wide`);
    }
    assertNoFaults(page, name);
    await page.close();
  }
  assert.deepEqual(found, []);
}

/** The single file works from a disk, and its policy forbids every request. */
async function trySingleFile(browser, trace) {
  const url = `file://${path.join(dist, "etlkit.html")}`;
  const page = await newPage(browser, url);
  await open(page, [trace]);
  const sent = await page.evaluate(() =>
    fetch("http://127.0.0.1:9/").then(
      () => "sent",
      () => "refused",
    ),
  );
  assert.equal(sent, "refused");
  assert.ok(
    page.faults.every((fault) => /Content Security Policy|Fetch API cannot load/.test(fault)),
    page.faults.join("\n"),
  );
  await page.close();
}

const server = await serve();
const url = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({
  executablePath: process.env.ETLKIT_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
});
let status = 0;
const step = async (name, test) => {
  if (only !== undefined && !name.includes(only)) return;
  const start = performance.now();
  try {
    await test();
    console.log(`ok    ${name} (${Math.round(performance.now() - start)} ms)`);
  } catch (error) {
    status = 1;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
};
try {
  const all = traces();
  if (pictures !== null) fs.mkdirSync(pictures, { recursive: true });
  const page = await newPage(browser, url);
  for (const trace of all) {
    await step(`${path.basename(trace)} as the command line shows it`, () => compare(page, trace));
    page.faults.length = 0;
  }
  await step("exports are equal", () => compareExports(page, all[0]));
  let shared = url;
  await step("the playground simulates and shows errors", async () => {
    shared = await play(page);
  });
  await step("an address shares a script", async () => {
    const other = await newPage(browser, shared);
    await other.waitForFunction(
      () => document.querySelector(".editor textarea")?.value.includes("ü"),
      null,
      { timeout: WAIT },
    );
    await other.close();
  });
  await step("an address opens a trace of its origin", async () => {
    fs.copyFileSync(all[0], path.join(work, "opened.etl"));
    const other = await newPage(browser, `${url}?trace=traces/opened.etl`);
    await other.waitForSelector("[data-verdict]", { timeout: WAIT });
    assertNoFaults(other, "?trace=");
    await other.close();
  });
  if (named.length === 0) {
    const parts = ["kernel.etl", "clr.etl", "rundown.etl"];
    const files = parts.map((name) => path.join(path.dirname(all[0]), name));
    await step("dropped files are one recording", () => drop(page, files));
  }
  await step("damaged and hostile files leave it working", () => attack(page, all[0]));
  await step("the page is one file, too", () => trySingleFile(browser, all[0]));
  await step("every view, light, dark and narrow", () => lookAt(browser, url, all[0]));
} finally {
  await browser.close();
  server.close();
  fs.rmSync(work, { recursive: true, force: true });
}
process.exit(status);
