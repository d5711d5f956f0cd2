// Verifies traces with the WebAssembly module and with the native etlverify, and compares the
// reports, JSON and text, byte for byte. Prints each difference, and how many traces agree.
//
//   node run.mjs MODULE ETLVERIFY TRACE|DIRECTORY...
//
// Exit codes: 0 all reports are equal; 1 a report differs; 2 wrong arguments, or no trace.
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, readSync, readdirSync, statSync } from "node:fs";
import path from "node:path";

/** Names of traces, packed or not. Windows appends the number of a process: `each.etl_2216`. */
const TRACE = /\.(etl(_\d+)?|nettrace)(\.zip|\.gz|\.zst)?$/i;
const MAX_REPORT = 1 << 30;
const UNREADABLE = 2;

/** The traces of a directory and its subdirectories, in the order of their paths. */
function tracesIn(directory) {
  const names = readdirSync(directory, { recursive: true }).sort();
  const files = names.map((name) => path.join(directory, name));
  return files.filter((file) => TRACE.test(file) && statSync(file).isFile());
}

/** An instance of the module that reads a file: the host's side, as web/package has it. */
class Host {
  constructor(module, file) {
    this.file = openSync(file, "r");
    const imports = unusedImports(module);
    imports.etlkit = {
      read: (_, offset, to, length) =>
        readSync(this.file, this.memory(to, length), 0, length >>> 0, offset),
      write: () => {
        throw new Error("no result was asked for");
      },
    };
    this.exports = new WebAssembly.Instance(module, imports).exports;
  }

  memory(start, length) {
    return new Uint8Array(this.exports.memory.buffer, start >>> 0, length >>> 0);
  }

  /** Answers a request. */
  call(request) {
    const bytes = Buffer.from(JSON.stringify(request));
    this.memory(this.exports.request(bytes.length), bytes.length).set(bytes);
    const isError = this.exports.call() !== 0;
    const reply = this.memory(this.exports.reply(), this.exports.reply_length());
    const text = Buffer.from(reply).toString();
    if (isError) throw new Unreadable(JSON.parse(text).message);
    return text;
  }

  close() {
    closeSync(this.file);
  }
}

/** The module cannot read the trace. */
class Unreadable extends Error {}

/**
 * Imports that must not be called. The ZIP reader depends on getrandom, which names functions of
 * wasm-bindgen for the random numbers of encrypted archives.
 */
function unusedImports(module) {
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = () => {
      throw new Error(`the module called ${from}.${name}`);
    };
  }
  return imports;
}

/** What the module reports. Each trace has its own instance, because memory never shrinks. */
function verifyInModule(module, trace) {
  const host = new Host(module, trace);
  const start = performance.now();
  const report = {};
  try {
    host.call({ method: "open", files: [{ id: 1, name: trace, size: statSync(trace).size }] });
    report.json = host.call({ method: "verify", format: "json" });
    report.milliseconds = performance.now() - start;
    report.text = host.call({ method: "verify", format: "text" });
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    report.milliseconds = performance.now() - start;
    report.error = error.message;
  }
  report.memory = host.exports.memory.buffer.byteLength;
  host.close();
  return report;
}

/** What the native etlverify prints in a format, and its exit code. */
function verifyNatively(etlverify, trace, format) {
  const args = ["--no-config", "--format", format, trace];
  const { status, stdout, error } = spawnSync(etlverify, args, { maxBuffer: MAX_REPORT });
  if (error) throw error;
  return { code: status, report: stdout };
}

/** The first line in which two reports differ. */
function firstDifference(inModule, native) {
  const moduleLines = inModule.toString().split("\n");
  const nativeLines = native.toString().split("\n");
  const differs = (line) => moduleLines[line] !== nativeLines[line];
  let line = 0;
  while (line < moduleLines.length && !differs(line)) line += 1;
  return `line ${line + 1}\n  wasm:   ${moduleLines[line]}\n  native: ${nativeLines[line]}`;
}

/** How the two verifiers differ on a trace; empty if they agree. */
function differences(inModule, native, etlverify, trace) {
  // The tool prints an unreadable trace as a report with an error; the module returns the error.
  if (inModule.error !== undefined || native.code === UNREADABLE) {
    const { error } = JSON.parse(native.report);
    const isSame = error !== null && inModule.error?.endsWith(error);
    return isSame ? [] : [`error: wasm ${inModule.error}, native ${error}`];
  }
  const found = [];
  const json = Buffer.from(inModule.json);
  if (!json.equals(native.report)) {
    found.push(`JSON: ${firstDifference(json, native.report)}`);
  }
  const text = verifyNatively(etlverify, trace, "text");
  if (!Buffer.from(inModule.text).equals(text.report)) {
    found.push(`text: ${firstDifference(inModule.text, text.report)}`);
  }
  return found;
}

const [modulePath, etlverify, ...paths] = process.argv.slice(2);
const traces = paths.flatMap((file) => (statSync(file).isDirectory() ? tracesIn(file) : [file]));
if (traces.length === 0) {
  console.error("usage: node run.mjs MODULE ETLVERIFY TRACE|DIRECTORY...");
  process.exit(2);
}

const module = new WebAssembly.Module(readFileSync(modulePath));
const codes = [0, 0, 0];
let equal = 0;
let milliseconds = 0;
let memory = 0;
for (const trace of traces) {
  const inModule = verifyInModule(module, trace);
  const native = verifyNatively(etlverify, trace, "json");
  codes[native.code] += 1;
  milliseconds += inModule.milliseconds;
  memory = Math.max(memory, inModule.memory);
  const found = differences(inModule, native, etlverify, trace);
  if (found.length === 0) equal += 1;
  for (const difference of found) console.log(`${trace}: ${difference}`);
}
const [complete, incomplete, unreadable] = codes;
console.log(`${equal} of ${traces.length} traces have equal reports`);
console.log(`complete: ${complete}, incomplete: ${incomplete}, unreadable: ${unreadable}`);
console.log(`module: ${Math.round(milliseconds)} ms, at most ${memory >> 20} MiB of memory`);
process.exit(equal === traces.length ? 0 : 1);
