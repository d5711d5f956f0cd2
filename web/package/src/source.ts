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

/** Bytes of one read of a browser's file, and how many of them are kept. */
const PIECE = 4 << 20;
const PIECES = 4;

/**
 * A file of a browser. Only workers can read it synchronously. Browsers free what a read needs only
 * after some time, so few large pieces are read rather than many small ones.
 */
export function blobSource(name: string, blob: Blob, onRead?: (offset: number) => void): Source {
  const reader = new FileReaderSync();
  const kept = new Map<number, Uint8Array>();
  const pieceAt = (number: number): Uint8Array => {
    let piece = kept.get(number);
    if (piece === undefined) {
      const start = number * PIECE;
      piece = new Uint8Array(reader.readAsArrayBuffer(blob.slice(start, start + PIECE)));
      onRead?.(start + piece.length);
    }
    // The piece that was not used for the longest time is the first one.
    kept.delete(number);
    kept.set(number, piece);
    if (kept.size > PIECES) kept.delete(kept.keys().next().value as number);
    return piece;
  };
  return {
    name,
    size: blob.size,
    read(offset, into) {
      let count = 0;
      while (count < into.length && offset + count < blob.size) {
        const place = offset + count;
        const piece = pieceAt(Math.floor(place / PIECE));
        const part = piece.subarray(place % PIECE, (place % PIECE) + into.length - count);
        if (part.length === 0) break;
        into.set(part, count);
        count += part.length;
      }
      return count;
    },
    close: () => kept.clear(),
  };
}
