// Measures the page in headless Chromium: time to the verdict, time of other views, and memory.
//
//   node web/test/measure.mjs TRACE...
//
// Prints a row of a table of Markdown for each trace. Needs web/dist (npm run build) with the small
// module, .node (scripts/install.sh node), Chromium, and Linux (memory is the resident memory of the
// process of the tab, at most).
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const { chromium } = createRequire(path.join(root, ".node/"))("playwright-core");
const page = fs.readFileSync(path.join(root, "web/dist/etlkit.html"));
const WAIT = 600_000;

const server = http.createServer((_, response) => {
  response.writeHead(200, { "Content-Type": "text/html" }).end(page);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));

/** Resident memory of a process, now and at most, in bytes. */
function memory(pid) {
  const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(status.match(/VmHWM:\s+(\d+)/)[1]) * 1024;
}

async function measure(trace) {
  const browser = await chromium.launch({
    executablePath: process.env.ETLKIT_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const tab = await browser.newPage();
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  // The longest time in which the page did not answer.
  await tab.evaluate(() => {
    let last = performance.now();
    globalThis.longest = 0;
    const beat = () => {
      const now = performance.now();
      globalThis.longest = Math.max(globalThis.longest, now - last);
      last = now;
      setTimeout(beat, 5);
    };
    beat();
  });
  const start = performance.now();
  const seconds = () => ((performance.now() - start) / 1000).toFixed(2);
  await tab.setInputFiles("#picker", trace);
  await tab.waitForSelector("[data-verdict]", { timeout: WAIT });
  const verdict = seconds();
  const session = await browser.newBrowserCDPSession();
  /** The most resident memory of a tab so far. */
  const memoryOfTab = async () => {
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const renderers = processInfo.filter(({ type }) => type === "renderer");
    return Math.max(...renderers.map(({ id }) => memory(id)));
  };
  const mebibytes = (value) => `${Math.round(value / 1048576)} MiB`;
  const atVerdict = mebibytes(await memoryOfTab());
  console.error(`${path.basename(trace)}: verdict after ${verdict} s, ${atVerdict}`);
  const times = [];
  for (const name of ["events", "cpu", "timeline"]) {
    const before = performance.now();
    await tab.click(`.nav [data-tab="${name}"]`);
    await tab.waitForFunction(() => document.querySelector("main [aria-busy]") === null, null, {
      timeout: WAIT,
    });
    times.push(((performance.now() - before) / 1000).toFixed(2));
  }
  const longest = Math.round(await tab.evaluate(() => globalThis.longest));
  const bytes = await memoryOfTab();
  await browser.close();
  const size = fs.statSync(trace).size;
  console.log(
    `| ${path.basename(trace)} | ${mebibytes(size)} | ${verdict} s | ${times.join(" s | ")} s | ${longest} ms | ${mebibytes(bytes)} |`,
  );
}

console.log("| trace | size | verdict | events | CPU | timeline | longest pause | memory |");
console.log("|---|---|---|---|---|---|---|---|");
for (const trace of process.argv.slice(2)) await measure(trace);
server.close();
