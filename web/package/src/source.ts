// Where the bytes of a trace are: in memory, or in a file that is read piece by piece.

/** The bytes of a file, which are read synchronously. */
export interface Source {
  readonly name: string;
  readonly size: number;
  /** Copies bytes from an offset on to `into`. Returns their number. */
  read(offset: number, into: Uint8Array): number;
  close?(): void;
}

/** Bytes in memory. */
export function bytesSource(name: string, bytes: Uint8Array): Source {
  return {
    name,
    size: bytes.length,
    read(offset, into) {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
  };
}

/** A file of a browser. Only workers can read it synchronously. */
export function blobSource(name: string, blob: Blob, onRead?: (offset: number) => void): Source {
  const reader = new FileReaderSync();
  return {
    name,
    size: blob.size,
    read(offset, into) {
      const part = new Uint8Array(
        reader.readAsArrayBuffer(blob.slice(offset, offset + into.length)),
      );
      into.set(part);
      onRead?.(offset + part.length);
      return part.length;
    },
  };
}
