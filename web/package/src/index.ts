// The npm package etlkit: reads, verifies, analyses and simulates Windows event traces.

import { simulate } from "./synth.js";
import { type Source, blobSource, bytesSource } from "./source.js";
import { Trace } from "./trace.js";
import type { SynthOptions, SynthResult } from "./types.js";

export { EtlkitError, type Sink } from "./module.js";
export type { Source } from "./source.js";
export { Trace } from "./trace.js";
export type * from "./types.js";

/** What can be opened: a path (Node.js), bytes, a file of a browser, or a source. */
export type Input = string | Uint8Array | ArrayBuffer | Blob | Source;

export interface OpenOptions {
  /** Which file of a ZIP archive is read, if there are several. */
  member?: string;
}

let compiled: Promise<WebAssembly.Module> | null = null;

/** Compiles the module that is beside this file. */
function wasm(): Promise<WebAssembly.Module> {
  compiled ??= load();
  return compiled;
}

async function load(): Promise<WebAssembly.Module> {
  const url = new URL("./etlkit.wasm", import.meta.url);
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return WebAssembly.compile(await readFile(url));
  }
  return WebAssembly.compileStreaming(fetch(url));
}

/** Uses a module that was compiled elsewhere: bundlers may move the file. */
export function useModule(module: WebAssembly.Module): void {
  compiled = Promise.resolve(module);
}

/** Opens a trace, packed or not, or several as one recording. */
export async function open(input: Input | Input[], options: OpenOptions = {}): Promise<Trace> {
  const inputs = Array.isArray(input) ? input : [input];
  const sources: Source[] = [];
  for (const [index, one] of inputs.entries()) sources.push(await source(one, index));
  return Trace.open(await wasm(), sources, options.member);
}

/** Simulates a scenario script: docs/scenario.md. */
export async function synth(script: string, options: SynthOptions = {}): Promise<SynthResult> {
  return simulate(await wasm(), script, options);
}

async function source(input: Input, index: number): Promise<Source> {
  const name = `trace${index + 1}.etl`;
  if (typeof input === "string") return fileSource(input);
  if (input instanceof Uint8Array) return bytesSource(name, input);
  if (input instanceof ArrayBuffer) return bytesSource(name, new Uint8Array(input));
  if (!(input instanceof Blob)) return input;
  const blobName = "name" in input ? String(input.name) : name;
  if (typeof FileReaderSync !== "undefined") return blobSource(blobName, input);
  // Outside of workers, a browser cannot read a file piece by piece while the module waits.
  return bytesSource(blobName, new Uint8Array(await input.arrayBuffer()));
}

/** A file of Node.js, read piece by piece. */
async function fileSource(path: string): Promise<Source> {
  const fs = await import("node:fs");
  const file = fs.openSync(path, "r");
  return {
    name: path,
    size: fs.fstatSync(file).size,
    read: (offset, into) => fs.readSync(file, into, 0, into.length, offset),
    close: () => fs.closeSync(file),
  };
}

/** What `etlkit info --format json` prints for each file. */
export async function info(input: Input | Input[], options?: OpenOptions) {
  return withTrace(input, options, (trace) => trace.info());
}

/** What `etlverify --format json` prints. */
export async function verify(input: Input | Input[], options?: OpenOptions) {
  return withTrace(input, options, (trace) => trace.verify());
}

async function withTrace<T>(
  input: Input | Input[],
  options: OpenOptions | undefined,
  use: (trace: Trace) => T,
): Promise<T> {
  const trace = await open(input, options);
  try {
    return use(trace);
  } finally {
    trace.close();
  }
}
