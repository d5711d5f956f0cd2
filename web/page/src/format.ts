// Numbers and times for people.

const GROUPED = new Intl.NumberFormat("en-US");

/** A number with separators: 12,345. */
export function count(value: number): string {
  return GROUPED.format(value);
}

/** A number of things: 1 event, 2 events. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A number of bytes: 1.5 MiB. */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 2 : 1)} ${units[unit]}`;
}

/** A duration in seconds with a suitable unit: 12.3 ms. */
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${trim(seconds * 1e6, 1)} µs`;
  if (size < 1) return `${trim(seconds * 1e3, 2)} ms`;
  if (size < 120) return `${trim(seconds, 3)} s`;
  const minutes = Math.floor(seconds / 60);
  return `${minutes} min ${Math.round(seconds - minutes * 60)} s`;
}

function trim(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

/** A time in seconds since the start, with as many digits as a step needs. */
export function seconds(value: number, step = 1e-6): string {
  const digits = Math.min(7, Math.max(0, Math.ceil(-Math.log10(step))));
  return `${value.toFixed(digits)} s`;
}

/** A share in percent. */
export function percent(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${((part / whole) * 100).toFixed(1)} %`;
}

/** A time in UTC without its fraction: 2026-01-05 08:30:02 UTC. */
export function utc(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** A size in the unit of a profile. */
export function weight(value: number, unit: string): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "100ns") return duration(value / 1e7);
  return plural(value, "sample");
}
