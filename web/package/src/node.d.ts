// The functions of Node.js that the package uses.
declare module "node:fs" {
  export function openSync(path: string, flags: string): number;
  export function closeSync(file: number): void;
  export function fstatSync(file: number): { size: number };
  export function readSync(
    file: number,
    into: Uint8Array,
    at: number,
    length: number,
    offset: number,
  ): number;
}
declare module "node:fs/promises" {
  export function readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
}
