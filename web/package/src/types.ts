// What the module returns. docs/json.md describes the reports of `info` and `verify`.

/** Which events are selected: the filters of `etlkit dump`. Different kinds must all hold. */
export interface Query {
  providers?: string[];
  /** Names of events, with `*` and `?`. */
  events?: string[];
  ids?: number[];
  opcodes?: number[];
  level?: number;
  /** A mask, `0x10`. */
  keyword?: string;
  /** Processes by name or id. */
  processes?: string[];
  children?: boolean;
  pids?: number[];
  threads?: number[];
  /** Conditions on fields: `ProcessId = 4`. */
  where?: string[];
  text?: string[];
  /** Seconds since the start of the recording. */
  from?: number | null;
  to?: number | null;
}

/** The number of selected events, and when they were. */
export interface Count {
  count: number;
  first_seconds: number | null;
  last_seconds: number | null;
  unknown_providers: string[];
  /** Events in equal parts of the time between the first and the last one. */
  bins: number[];
}

/** An event, as `etlkit dump --format jsonl --relative` prints it: docs/dump.md. */
export interface EventRow {
  time: string;
  seconds: number;
  timestamp: number;
  cpu: number;
  kind: string;
  event: string;
  file?: string;
  pid?: number;
  process?: string;
  tid?: number;
  thread?: string;
  provider?: string;
  provider_guid?: string;
  id?: number;
  version?: number;
  level?: number;
  opcode?: number;
  fields?: Record<string, unknown>;
  message?: string;
  payload_size?: number;
  payload_text?: string;
  payload?: string;
  stack?: string[];
  [member: string]: unknown;
}

/** An event with its payload in hexadecimal, and the bytes of each field. */
export interface EventDetails {
  row: EventRow;
  ranges: { name: string; from: number; to: number }[];
  keyword_names: string[];
  schema: string | null;
}

export interface Column {
  name: string;
  /** The type in the words of SQL. */
  type: string;
  unit: string;
  meaning: string;
  heading: string;
  style: "unit" | "plain" | "hexadecimal" | "signed";
  on_request: boolean;
}

export interface Table {
  name: string;
  row: string;
  about: string;
  columns: Column[];
}

/** A value: times are microseconds since 1970; integers above 2^53 are text. */
export type Cell = string | number | boolean | null;

export interface Rows {
  columns: string[];
  rows: Cell[][];
  /** The number of all rows, of which `rows` may have only the first. */
  count: number;
}

export interface TableOptions {
  from?: number | null;
  to?: number | null;
  columns?: string[];
  max_rows?: number;
}

export interface ProfileOptions {
  from?: number | null;
  to?: number | null;
  processes?: string[];
  by_thread?: boolean;
  idle?: boolean;
  /** Allocations of .NET instead of samples. */
  allocations?: boolean;
}

/** Call trees: the nodes in the order of the trees, as lists. */
export interface Profile {
  unit: "100ns" | "bytes" | "samples";
  samples: number;
  size: number;
  idle_samples: number;
  samples_with_stack: number;
  is_thread_time: boolean;
  missing: string[];
  /** Labels of frames, then of the roots. */
  labels: string[];
  kinds: string[];
  modules: string[];
  roots: number;
  depth: number[];
  label: number[];
  total_samples: number[];
  self_samples: number[];
  total: number[];
  own: number[];
}

export interface SampledProcess {
  name: string;
  total: number;
  counts: number[];
}

export interface ExportFormat {
  name: string;
  about: string;
  extension: string;
  of: "recording" | "samples" | "packets" | "table" | "events" | "report";
}

export interface ExportOptions {
  from?: number | null;
  to?: number | null;
  processes?: string[];
  idle?: boolean;
  allocations?: boolean;
  /** The table of `arrow` and `csv`. */
  table?: string;
  /** The events of `jsonl`, `text` and `xml`. */
  query?: Query;
}

export interface Finding {
  rule: string;
  severity: "error" | "warning" | "note";
  outcome: "broken" | "undecided";
  message: string;
  because: string | null;
  pid: number | null;
  time: string | null;
}

/** A rule of the verifier: what holds in a good trace, and what to do if it does not. */
export interface Rule {
  rule: string;
  statement: string;
  meaning: string;
  remedy: string;
  commands: string[];
}

export type Span = [number, number];

/** The report of `etlverify --format json`: the members that are used here. */
export interface Verdict {
  file: string;
  error: string | null;
  verdict: string;
  origin: string;
  machine: {
    windows: string | null;
    processors: number | null;
    processor_mhz: number | null;
    pointer_bits: number | null;
    memory_mib: number | null;
  };
  start_time: string | null;
  end_time: string | null;
  duration_us: number;
  records: number;
  sessions: { name: string; kind: string; span_us: Span; events_lost: number | null }[];
  losses: { what: string; message: string; span_us: Span; processor: number | null }[];
  enabled: {
    provider: string;
    level: number | null;
    mask: string | null;
    keywords: string[];
    source: string;
  }[];
  processes: {
    pid: number;
    name: string;
    verdict: string;
    span_us: Span;
    clr_events: number;
    methods: number;
    modules: number;
    rundowns: { kind: string; span_us: Span; complete_time: string | null }[];
  }[];
  findings: Finding[];
  rules: { rule: string; outcome: string; findings: number; because: string | null }[];
  [member: string]: unknown;
}

/** The report of `etlkit info --format json`: the members that are used here. */
export interface Info {
  file: string;
  bytes: number;
  header: boolean;
  dialect: string | null;
  os: string | null;
  logger_name: string | null;
  mode: string | null;
  clock: string | null;
  processors: number | null;
  start_time: string | null;
  duration_seconds: number | null;
  buffers: number;
  compressed: boolean;
  records: number;
  events_lost: number | null;
  buffers_lost: number | null;
  providers: { provider: string | null; provider_guid: string; count: number; kinds: number }[];
  events: {
    provider: string | null;
    event: string;
    count: number;
    level: number;
    keyword_hex: string;
  }[];
  process_counts: {
    pid: number;
    name: string | null;
    count: number;
    start_time: string | null;
    end_time: string | null;
  }[];
  problems: { code: string; message: string; offset: number }[];
  stream?: Record<string, unknown>;
  [member: string]: unknown;
}

export interface ScriptError {
  message: string;
  label: string;
  hint: string | null;
  /** The place in the script, in UTF-16 code units. */
  from: number;
  to: number;
  report: string;
}

export interface SynthFile {
  name: string;
  bytes: Uint8Array;
}

export interface SynthResult {
  errors: ScriptError[];
  files: SynthFile[];
}

export interface SynthOptions {
  seed?: number;
  parameters?: Record<string, string>;
  /** Only check the script for errors. */
  check?: boolean;
}

export interface Example {
  name: string;
  text: string;
  is_template: boolean;
}
