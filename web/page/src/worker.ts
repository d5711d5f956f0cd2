// The worker: opens traces, and answers the requests of the page one after the other.

import { EtlkitError } from "../../package/src/module.js";
import { blobSource } from "../../package/src/source.js";
import { examples, simulate } from "../../package/src/synth.js";
import { Trace } from "../../package/src/trace.js";
import type { ExportOptions, SynthOptions } from "../../package/src/types.js";
import type { Reply, Request } from "./protocol.js";

const PROGRESS_MS = 50;

let module: WebAssembly.Module;
let trace: Trace | null = null;
let lastProgress = 0;

function progress(name: string, offset: number, size: number): void {
  const now = performance.now();
  if (now - lastProgress < PROGRESS_MS) return;
  lastProgress = now;
  send({ progress: { name, share: size === 0 ? 1 : offset / size } });
}

function send(reply: Reply, transfer: Transferable[] = []): void {
  postMessage(reply, { transfer });
}

async function open(files: File[], member?: string): Promise<unknown> {
  trace?.close();
  trace = null;
  const sources = files.map((file) =>
    blobSource(file.name, file, (offset) => progress(file.name, offset, file.size)),
  );
  trace = await Trace.open(module, sources, member);
  return { files: trace.files, start: trace.start };
}

/** The export as a file: the browser keeps its pieces outside of memory. */
function exported(opened: Trace, format: string, options: ExportOptions): unknown {
  const pieces: Blob[] = [];
  let held: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const flush = () => {
    pieces.push(new Blob(held));
    held = [];
    size = 0;
  };
  const written = opened.exportTo(format, options, (piece) => {
    held.push(piece.slice() as Uint8Array<ArrayBuffer>);
    size += piece.length;
    if (size > 1 << 24) flush();
  });
  flush();
  return { written, blob: new Blob(pieces) };
}

async function answer({ method, args }: Request): Promise<unknown> {
  if (method === "module") {
    module = args[0] as WebAssembly.Module;
    return null;
  }
  if (method === "open") return open(args[0] as File[], args[1] as string | undefined);
  if (method === "examples") return examples(module);
  if (method === "synth") return simulate(module, args[0] as string, args[1] as SynthOptions);
  if (trace === null) throw new EtlkitError("no trace is open");
  if (method === "export") {
    return exported(trace, args[0] as string, args[1] as ExportOptions);
  }
  if (method === "memory") return trace.memoryBytes;
  const call = trace[method as keyof Trace] as unknown as (...args: unknown[]) => unknown;
  return call.apply(trace, args);
}

// Requests wait for each other, because opening is asynchronous.
let last: Promise<void> = Promise.resolve();

self.onmessage = ({ data }: MessageEvent<Request>) => {
  last = last.then(async () => {
    try {
      send({ id: data.id, value: await answer(data) });
    } catch (error) {
      const hint = error instanceof EtlkitError ? error.hint : null;
      const message = error instanceof Error ? error.message : String(error);
      send({ id: data.id, error: { message, hint } });
    }
  });
};
