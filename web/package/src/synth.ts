// Simulates scenario scripts: docs/scenario.md.

import { Module } from "./module.js";
import { concatenate } from "./trace.js";
import type { Example, ScriptError, SynthFile, SynthOptions, SynthResult } from "./types.js";

/** Simulates a script: its traces and `truth.jsonl`, or its errors. */
export async function simulate(
  module: WebAssembly.Module,
  script: string,
  options: SynthOptions = {},
): Promise<SynthResult> {
  const instance = await Module.create(module);
  const pieces: Uint8Array[] = [];
  const parameters = Object.entries(options.parameters ?? {});
  const request = {
    script,
    seed: options.seed ?? null,
    check: options.check ?? false,
    parameters: parameters.map(([name, value]) => ({ name, value })),
  };
  const text = instance.call("synth", request, (piece) => pieces.push(piece.slice()));
  const reply = JSON.parse(text) as {
    errors: ScriptError[];
    files: { name: string; size: number }[];
  };
  const bytes = concatenate(pieces);
  const files: SynthFile[] = [];
  let at = 0;
  for (const { name, size } of reply.files) {
    files.push({ name, bytes: bytes.slice(at, at + size) });
    at += size;
  }
  return { errors: placed(script, reply.errors), files };
}

/** The scripts of the corpus, and templates to begin with. */
export async function examples(module: WebAssembly.Module): Promise<Example[]> {
  const instance = await Module.create(module);
  return JSON.parse(instance.call("examples")) as Example[];
}

/** The module counts bytes of UTF-8; strings of JavaScript count UTF-16. */
function placed(script: string, errors: ScriptError[]): ScriptError[] {
  const bytes = new TextEncoder().encode(script);
  const decoder = new TextDecoder();
  const units = (offset: number) => decoder.decode(bytes.subarray(0, offset)).length;
  return errors.map((error) => ({ ...error, from: units(error.from), to: units(error.to) }));
}
