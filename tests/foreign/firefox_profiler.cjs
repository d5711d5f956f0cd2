// Loads a profile with the code of the Firefox Profiler itself (package profiler-cli), which reads,
// upgrades and symbolicates it as the page does, and prints what it shows, as one JSON object:
// PACKAGES FILE. A symbol server of this script answers for every address with a name of its own.
const { execFile } = require("child_process");
const fs = require("fs");
const http = require("http");
const os = require("os");
const path = require("path");
const { promisify } = require("util");

const [packages, file] = process.argv.slice(2);
const cli = path.join(packages, "@firefox-devtools/profiler-cli/dist/profiler-cli.js");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "firefox-"));
const env = { ...process.env, PROFILER_CLI_SESSION_DIR: folder };
const requested = {};

const server = http.createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    const results = JSON.parse(body).jobs.map((job) => {
      const names = job.memoryMap.map(([name, id]) => `${name}/${id}`);
      for (const name of names) requested[name] = (requested[name] || 0) + 1;
      const stacks = job.stacks.map((stack) => stack.map(([module, offset], frame) => ({
        frame,
        module: job.memoryMap[module][0],
        module_offset: `0x${offset.toString(16)}`,
        function: `${job.memoryMap[module][0]}@${offset.toString(16)}`,
        function_offset: "0x0",
      })));
      return { stacks, found_modules: Object.fromEntries(names.map((name) => [name, true])) };
    });
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ results }));
  });
});

async function run(...args) {
  const options = { env, maxBuffer: 1 << 28 };
  return (await promisify(execFile)(process.execPath, [cli, ...args], options)).stdout;
}

const LOAD_TIMEOUT_MS = 120000;

// Loads the profile. The program waits half a second for its own server, which takes longer on a
// busy machine; the server then goes on starting, and answers once it has loaded the profile.
async function load(url) {
  try {
    await run("load", file, "--symbol-server", url);
    return;
  } catch (error) {
    if (!error.message.includes("did not become ready")) throw error;
  }
  const end = Date.now() + LOAD_TIMEOUT_MS;
  for (;;) {
    try {
      await run("thread", "list", "--json");
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((done) => setTimeout(done, 500));
    }
  }
}

async function main() {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  await load(`http://127.0.0.1:${server.address().port}`);
  try {
    const threads = [];
    const listed = JSON.parse(await run("thread", "list", "--json", "--limit", "0"));
    for (const thread of listed.threads) {
      const handle = ["--thread", thread.threadHandle, "--json", "--limit", "0"];
      const all = JSON.parse(await run("thread", "functions", ...handle));
      const functions = {};
      for (const { nameWithLibrary, totalSamples, selfSamples } of all.functions) {
        const [total, self] = functions[nameWithLibrary] || [0, 0];
        functions[nameWithLibrary] = [total + totalSamples, self + selfSamples];
      }
      const { name, processName, pid, tid, cpuMs, markerCount } = thread;
      threads.push({ name, processName, pid, tid, cpuMs, markerCount, functions });
    }
    const found = JSON.parse(await run("profile", "markers", "--json", "--limit", "0"));
    const markers = found.markers.map((marker) => ({
      label: marker.label, type: marker.markerType, category: marker.category,
      duration: marker.duration, pid: marker.pid, data: marker.data,
    }));
    console.log(JSON.stringify({ threads, markers, requested }));
  } finally {
    await run("stop", "--all");
    fs.rmSync(folder, { recursive: true, force: true });
    server.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
