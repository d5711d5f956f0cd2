// The worker and the module: files beside the page, or parts of the page if it is a single file.

import { EtlkitError } from "../../package/src/module.js";

/** Starts a worker of the page. */
export function startWorker(): Worker {
  const embedded = document.getElementById("worker-script");
  if (embedded === null) return new Worker("worker.js");
  const script = new Blob([embedded.textContent ?? ""], { type: "text/javascript" });
  const url = URL.createObjectURL(script);
  const worker = new Worker(url);
  // The browser has read the script once the worker runs; before, the address must be valid.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return worker;
}

let compiled: Promise<WebAssembly.Module> | null = null;

/** The compiled module. */
export function wasmModule(): Promise<WebAssembly.Module> {
  compiled ??= compile();
  return compiled;
}

async function compile(): Promise<WebAssembly.Module> {
  if (typeof WebAssembly === "undefined") {
    throw new EtlkitError("this browser has no WebAssembly");
  }
  const embedded = document.getElementById("module");
  const bytes = embedded === null ? await fetched() : decoded(embedded.textContent ?? "").buffer;
  const start = new Uint8Array(bytes.slice(0, 2) as ArrayBuffer);
  // A server may have unpacked the file already.
  if (start[0] !== 0x1f || start[1] !== 0x8b) return WebAssembly.compile(bytes);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(unpacked).arrayBuffer());
}

async function fetched(): Promise<ArrayBuffer> {
  const reply = await fetch("etlkit.wasm.gz");
  if (!reply.ok) throw new EtlkitError(`the module cannot be loaded: ${reply.statusText}`);
  return reply.arrayBuffer();
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
}
