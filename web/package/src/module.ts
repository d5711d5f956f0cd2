// The host of the WebAssembly module: passes requests to it, and reads files for it.
// web/module/src/lib.rs is the other side.

import type { Source } from "./source.js";

/** Why a request failed, and what to do next. */
export class EtlkitError extends Error {
  override readonly name = "EtlkitError";
  constructor(
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

interface Exports {
  memory: WebAssembly.Memory;
  request(length: number): number;
  call(): number;
  reply(): number;
  reply_length(): number;
}

/** Receives the bytes of a long result, piece by piece. The piece is only valid during the call. */
export type Sink = (piece: Uint8Array) => void;

/** An instance of the module. */
export class Module {
  private exports!: Exports;
  private readonly sources = new Map<number, Source>();
  private last = 0;
  private sink: Sink | null = null;

  private constructor() {}

  /** Makes an instance. Its memory never shrinks: another trace has another instance. */
  static async create(module: WebAssembly.Module): Promise<Module> {
    const host = new Module();
    const imports = unusedImports(module);
    imports["etlkit"] = {
      read: (file: number, offset: number, to: number, length: number) =>
        host.read(file, offset, to >>> 0, length >>> 0),
      write: (from: number, length: number) => host.write(from >>> 0, length >>> 0),
    };
    const instance = await WebAssembly.instantiate(module, imports);
    host.exports = instance.exports as unknown as Exports;
    return host;
  }

  /** Bytes of memory of the instance. */
  get memoryBytes(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /** Makes a source readable. Returns its number. */
  add(source: Source): number {
    this.last += 1;
    this.sources.set(this.last, source);
    return this.last;
  }

  /** Closes all sources. */
  closeSources(): void {
    for (const source of this.sources.values()) source.close?.();
    this.sources.clear();
  }

  /** Answers a request with text. */
  call(method: string, request: object = {}, sink: Sink | null = null): string {
    const bytes = new TextEncoder().encode(JSON.stringify({ method, ...request }));
    const at = this.exports.request(bytes.length) >>> 0;
    if (at === 0) throw new EtlkitError("there is not enough memory for the request");
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    this.sink = sink;
    let failed: number;
    try {
      failed = this.exports.call();
    } catch (error) {
      // The instance cannot be used any more.
      throw new EtlkitError(
        error instanceof WebAssembly.RuntimeError
          ? `the module failed: ${error.message}`
          : String(error),
        "there may not be enough memory for this trace; the command line reads it",
      );
    } finally {
      this.sink = null;
    }
    const start = this.exports.reply() >>> 0;
    const length = this.exports.reply_length() >>> 0;
    const text = new TextDecoder().decode(
      new Uint8Array(this.exports.memory.buffer, start, length),
    );
    if (failed !== 0) {
      const { message, hint } = JSON.parse(text) as { message: string; hint: string | null };
      throw new EtlkitError(message, hint);
    }
    return text;
  }

  private read(file: number, offset: number, to: number, length: number): number {
    const source = this.sources.get(file);
    if (source === undefined) return -1;
    try {
      return source.read(offset, new Uint8Array(this.exports.memory.buffer, to, length));
    } catch {
      return -1;
    }
  }

  private write(from: number, length: number): void {
    this.sink?.(new Uint8Array(this.exports.memory.buffer, from, length));
  }
}

/**
 * Imports that must not be called. The ZIP reader depends on getrandom, which names functions of
 * wasm-bindgen for the random numbers of encrypted archives.
 */
function unusedImports(module: WebAssembly.Module): WebAssembly.Imports {
  const imports: Record<string, Record<string, () => never>> = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    const functions = imports[from] ?? {};
    imports[from] = functions;
    functions[name] = () => {
      throw new EtlkitError(`the module called ${from}.${name}`);
    };
  }
  return imports;
}
