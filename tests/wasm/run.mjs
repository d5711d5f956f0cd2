// Verifies traces with the WebAssembly module and with the native etlverify, and compares the
// reports, JSON and text, byte for byte. Prints each difference, and how many traces agree.
//
//   node run.mjs MODULE ETLVERIFY TRACE|DIRECTORY...
//
// Exit codes: 0 all reports are equal; 1 a report differs; 2 wrong arguments, or no trace.
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";

/** Names of traces, packed or not. Windows appends the number of a process: `each.etl_2216`. */
const TRACE = /\.(etl(_\d+)?|nettrace)(\.zip|\.gz|\.zst)?$/i;
const MAX_REPORT = 1 << 30;

/** The traces of a directory and its subdirectories, in the order of their paths. */
function tracesIn(directory) {
  const names = readdirSync(directory, { recursive: true }).sort();
  const files = names.map((name) => path.join(directory, name));
  return files.filter((file) => TRACE.test(file) && statSync(file).isFile());
}

/** Writes bytes to the memory that the export `allocate` returns. */
function write(exports, allocate, bytes) {
  const start = allocate(bytes.length) >>> 0;
  if (start === 0) throw new Error(`the module has no memory for ${bytes.length} bytes`);
  new Uint8Array(exports.memory.buffer, start, bytes.length).set(bytes);
}

/** The bytes in the memory of the module. A copy: the memory goes with its instance. */
function read(exports, start, length) {
  return Buffer.from(new Uint8Array(exports.memory.buffer, start >>> 0, length));
}

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
  const { exports } = new WebAssembly.Instance(module, unusedImports(module));
  write(exports, exports.name, Buffer.from(trace));
  write(exports, exports.trace, readFileSync(trace));
  const start = performance.now();
  const code = exports.verify();
  const milliseconds = performance.now() - start;
  const json = read(exports, exports.json(), exports.json_length());
  const text = read(exports, exports.text(), exports.text_length());
  return { code, json, text, milliseconds, memory: exports.memory.buffer.byteLength };
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
function differences(inModule, etlverify, trace) {
  const json = verifyNatively(etlverify, trace, "json");
  const found = [];
  if (inModule.code !== json.code) {
    found.push(`exit code: wasm ${inModule.code}, native ${json.code}`);
  }
  if (!inModule.json.equals(json.report)) {
    found.push(`JSON: ${firstDifference(inModule.json, json.report)}`);
  }
  // The tool prints the error of an unreadable trace to standard error, without a report.
  if (json.code !== 2) {
    const text = verifyNatively(etlverify, trace, "text");
    if (!inModule.text.equals(text.report)) {
      found.push(`text: ${firstDifference(inModule.text, text.report)}`);
    }
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
  codes[inModule.code] += 1;
  milliseconds += inModule.milliseconds;
  memory = Math.max(memory, inModule.memory);
  const found = differences(inModule, etlverify, trace);
  if (found.length === 0) equal += 1;
  for (const difference of found) console.log(`${trace}: ${difference}`);
}
const [complete, incomplete, unreadable] = codes;
console.log(`${equal} of ${traces.length} traces have equal reports`);
console.log(`complete: ${complete}, incomplete: ${incomplete}, unreadable: ${unreadable}`);
console.log(`module: ${Math.round(milliseconds)} ms, at most ${memory >> 20} MiB of memory`);
process.exit(equal === traces.length ? 0 : 1);
