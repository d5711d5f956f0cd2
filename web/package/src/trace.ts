// An opened recording: one trace, or several that are read together.

import { Module, type Sink } from "./module.js";
import type { Source } from "./source.js";
import type * as types from "./types.js";

/** Rows that are read at a time by `events`. */
const CHUNK = 1000;

export class Trace {
  private constructor(
    private readonly module: Module,
    /** The names of the files. */
    readonly files: string[],
    /** The start of the recording, from which seconds count: UTC, ISO 8601. */
    readonly start: string,
  ) {}

  /** Opens sources as one recording. */
  static async open(
    module: WebAssembly.Module,
    sources: Source[],
    member?: string,
  ): Promise<Trace> {
    const instance = await Module.create(module);
    const files = sources.map((source) => ({
      id: instance.add(source),
      name: source.name,
      size: source.size,
      member: member ?? null,
    }));
    try {
      const opened = JSON.parse(instance.call("open", { files })) as {
        files: string[];
        start: string;
      };
      return new Trace(instance, opened.files, opened.start);
    } catch (error) {
      instance.closeSources();
      throw error;
    }
  }

  private ask<T>(method: string, request: object = {}): T {
    return JSON.parse(this.module.call(method, request)) as T;
  }

  /** Bytes of memory that the recording takes. */
  get memoryBytes(): number {
    return this.module.memoryBytes;
  }

  /** What `etlkit info --format json` prints for each file. */
  info(): types.Info[] {
    return this.ask("info");
  }

  /** What `etlverify --format json` prints. */
  verify(): types.Verdict {
    return this.ask("verify");
  }

  /** The verdict in another form: `text`, `html`, `markdown`, `sarif`, `junit`, `github`. */
  verdict(format: string): string {
    return this.module.call("verify", { format });
  }

  /** The rules that a verdict refers to, for traces of its origin. */
  rules(origin: string): types.Rule[] {
    return this.ask("rules", { origin });
  }

  /** Counts the selected events, also in equal parts of time. */
  count(query: types.Query = {}, bins = 0): types.Count {
    return this.ask("count", { query, bins });
  }

  /** Some of the selected events, from number `first` on. */
  rows(query: types.Query, first: number, count: number): types.EventRow[] {
    const lines = this.module.call("rows", { query, first, count });
    return lines
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as types.EventRow);
  }

  /** The selected events, one after the other. */
  *events(query: types.Query = {}): Generator<types.EventRow, void, undefined> {
    const { count } = this.count(query);
    let next = 0;
    while (next < count) {
      const rows = this.rows(query, next, CHUNK);
      if (rows.length === 0) return;
      yield* rows;
      next += rows.length;
    }
  }

  /** The selected event with this number, with its payload. */
  details(query: types.Query, number: number): types.EventDetails {
    return this.ask("hex", { query, first: number });
  }

  /** Every table with its columns: docs/tables.md. */
  tables(): types.Table[] {
    return this.ask("tables");
  }

  /** The rows of a table. */
  analyze(table: string, options: types.TableOptions = {}): types.Rows {
    return this.ask("table", { table, ...options });
  }

  /** The call trees of the CPU samples, or of the allocations. */
  profile(options: types.ProfileOptions = {}): types.Profile {
    return this.ask("profile", options);
  }

  /** How often each process was sampled in equal parts of a time. */
  sampled(from: number, to: number, bins: number): types.SampledProcess[] {
    return this.ask("timeline", { from, to, bins });
  }

  /** The export formats. */
  formats(): types.ExportFormat[] {
    return this.ask("formats");
  }

  /** Writes an export to a sink. Returns what was written, in words. */
  exportTo(format: string, options: types.ExportOptions, sink: Sink): string {
    const reply = this.module.call("export", { format, ...options }, sink);
    return (JSON.parse(reply) as { written: string }).written;
  }

  /** The bytes of an export. */
  export(format: string, options: types.ExportOptions = {}): Uint8Array {
    const pieces: Uint8Array[] = [];
    this.exportTo(format, options, (piece) => pieces.push(piece.slice()));
    return concatenate(pieces);
  }

  /** Closes the files. */
  close(): void {
    this.module.call("close");
    this.module.closeSources();
  }
}

/** The pieces as one array. */
export function concatenate(pieces: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
