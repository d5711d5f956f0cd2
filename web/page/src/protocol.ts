// The messages between the page and its workers.

/** A method of `Trace`, or of the worker, with its arguments. */
export interface Request {
  id: number;
  method: string;
  args: unknown[];
}

export interface Progress {
  name: string;
  /** The place of the last read in the file, from 0 to 1. */
  share: number;
}

export interface Failure {
  message: string;
  hint: string | null;
}

export type Reply =
  | { id: number; value: unknown }
  | { id: number; error: Failure }
  | { progress: Progress };
