// The page's side of a worker: requests, progress, cancellation.

import { EtlkitError } from "../../package/src/module.js";
import type { Trace } from "../../package/src/trace.js";
import type { Example, SynthOptions, SynthResult } from "../../package/src/types.js";
import { startWorker, wasmModule } from "./assets.js";
import type { Progress, Reply } from "./protocol.js";

/** The methods of an opened trace that workers answer. */
type Methods = {
  [K in keyof Trace as Trace[K] extends (...args: never[]) => unknown ? K : never]: Trace[K];
};

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export interface Opened {
  files: string[];
  start: string;
}

export interface Exported {
  written: string;
  blob: Blob;
}

/** The request was cancelled by the user, or another trace was opened. */
export class Cancelled extends Error {}

/** A worker with an opened trace. */
export class Client {
  onprogress: (progress: Progress | null) => void = () => {};
  private worker: Worker | null = null;
  /** Resolved when the worker has the module. */
  private ready: Promise<void> = Promise.resolve();
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private files: File[] = [];
  private member: string | undefined;
  private cache = new Map<string, Promise<unknown>>();

  /** Opens files as one recording. What was asked before is cancelled. */
  async open(files: File[], member?: string): Promise<Opened> {
    this.stop();
    this.files = files;
    this.member = member;
    return (await this.send("open", [files, member])) as Opened;
  }

  /** Asks the opened trace. The same question is asked once. */
  ask<K extends keyof Methods>(
    method: K,
    ...args: Parameters<Methods[K]>
  ): Promise<ReturnType<Methods[K]>> {
    const key = JSON.stringify([method, args]);
    let reply = this.cache.get(key);
    if (reply === undefined) {
      reply = this.reopened().then(() => this.send(method, args));
      this.cache.set(key, reply);
      reply.catch(() => this.cache.delete(key));
    }
    return reply as Promise<ReturnType<Methods[K]>>;
  }

  async export(format: string, options: object): Promise<Exported> {
    await this.reopened();
    return (await this.send("export", [format, options])) as Exported;
  }

  examples(): Promise<Example[]> {
    return this.send("examples", []) as Promise<Example[]>;
  }

  synth(script: string, options: SynthOptions): Promise<SynthResult> {
    return this.send("synth", [script, options]) as Promise<SynthResult>;
  }

  async memory(): Promise<number> {
    return (await this.send("memory", [])) as number;
  }

  /** Ends the worker with all that it does. The next request opens the trace again. */
  cancel(): void {
    const answered = this.cache;
    this.stop();
    // What was answered before is still right; what was not was removed as it was rejected.
    this.cache = answered;
  }

  private stop(): void {
    this.worker?.terminate();
    this.worker = null;
    this.cache = new Map();
    for (const { reject } of this.waiting.values()) reject(new Cancelled("cancelled"));
    this.waiting.clear();
    this.onprogress(null);
  }

  /** Opens the trace again after a cancellation. */
  private async reopened(): Promise<void> {
    if (this.worker === null && this.files.length > 0) {
      await this.send("open", [this.files, this.member]);
    }
  }

  private async send(method: string, args: unknown[]): Promise<unknown> {
    if (this.worker === null) this.start();
    const worker = this.worker;
    await this.ready;
    // Meanwhile another trace may have been opened, with another worker.
    if (worker !== this.worker) throw new Cancelled("cancelled");
    return this.post(method, args);
  }

  private start(): void {
    const worker = startWorker();
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Reply>) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.fail(event.message || "the worker failed");
    };
    this.ready = wasmModule().then((module) => {
      if (worker === this.worker) void this.post("module", [module]).catch(() => {});
    });
  }

  private post(method: string, args: unknown[]): Promise<unknown> {
    this.last += 1;
    const id = this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker?.postMessage({ id, method, args });
    });
  }

  private receive(reply: Reply): void {
    if ("progress" in reply) {
      this.onprogress(reply.progress);
      return;
    }
    const waiting = this.waiting.get(reply.id);
    this.waiting.delete(reply.id);
    if (this.waiting.size === 0) this.onprogress(null);
    if ("error" in reply) {
      waiting?.reject(new EtlkitError(reply.error.message, reply.error.hint));
    } else {
      waiting?.resolve(reply.value);
    }
  }

  private fail(message: string): void {
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    this.stop();
    for (const { reject } of waiting) reject(new EtlkitError(message));
  }
}
