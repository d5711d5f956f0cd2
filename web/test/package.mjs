// The npm package in Node.js, compared with the command line: node web/test/package.mjs ETLKIT
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { open, synth, verify } from "../dist/package/index.js";

const root = path.resolve(import.meta.dirname, "../..");
const etlkit = process.argv[2];
const work = fs.mkdtempSync(path.join(os.tmpdir(), "etlkit-package-"));

function run(...words) {
  const { stdout, status, stderr } = spawnSync(etlkit, words, { maxBuffer: 1 << 30 });
  if (status === 2 || status === null) throw new Error(`${words.join(" ")}: ${stderr}`);
  return stdout.toString();
}

const lines = (text) =>
  text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

try {
  const script = fs.readFileSync(path.join(root, "corpus/gc-and-locks.kdl"), "utf8");
  const { files, errors } = await synth(script);
  assert.deepEqual(errors, []);
  run("synth", path.join(root, "corpus/gc-and-locks.kdl"), "-o", work);
  for (const { name, bytes } of files) {
    const native = fs.readFileSync(path.join(work, name));
    assert.ok(native.equals(bytes), `${name} differs from the trace of the command line`);
  }

  const file = path.join(work, files.find(({ name }) => name.endsWith(".etl")).name);
  const trace = await open(file);
  assert.deepEqual(trace.info()[0], JSON.parse(run("info", "--format", "json", file)));
  assert.deepEqual(
    trace.verify(),
    JSON.parse(run("verify", "--no-config", "--format", "json", file)),
  );
  const all = lines(run("dump", "--format", "jsonl", "--relative", file));
  assert.deepEqual([...trace.events()], all);
  // The middle is found again without reading from the beginning.
  const middle = Math.floor(all.length / 2);
  assert.deepEqual(trace.rows({}, middle, 3), all.slice(middle, middle + 3));
  const collections = lines(run("dump", "--format", "jsonl", "--relative", "--event", "GC*", file));
  assert.ok(collections.length > 0);
  assert.deepEqual([...trace.events({ events: ["GC*"] })], collections);
  const selected = lines(
    run("dump", "--format", "jsonl", "--relative", "--from", "1.5", "--to", "2.5", file),
  );
  assert.equal(trace.count({ from: 1.5, to: 2.5 }).count, selected.length);
  const where = ["--where", "ThreadID > 0"];
  const matching = lines(run("dump", "--format", "jsonl", "--relative", ...where, file));
  assert.deepEqual([...trace.events({ where: [where[1]] })], matching);
  assert.throws(() => trace.count({ where: ["Size larger 4"] }), /is not a condition/);

  const gcs = JSON.parse(run("analyze", "gc", "--format", "json", file)).gcs;
  const { columns, rows, count } = trace.analyze("gcs");
  assert.equal(count, gcs.length);
  assert.ok(count > 0);
  const number = columns.indexOf("number");
  assert.deepEqual(
    rows.map((row) => row[number]),
    gcs.map((gc) => gc.number),
  );
  const details = trace.details({ events: ["GCStart*"] }, 0);
  assert.deepEqual(details.ranges[0], { name: "Count", from: 0, to: 4 });
  const bytes = trace.export("jsonl");
  assert.equal(Buffer.from(bytes).toString(), run("dump", "--format", "jsonl", file));
  trace.close();
  assert.throws(() => trace.count(), /no trace is open/);

  const bad = await synth('scenario "x"\nprocess "ü.exe" { treads 4 }');
  assert.deepEqual([bad.errors[0].from, bad.errors[0].to], [31, 37]);
  assert.equal((await verify(files.find(({ name }) => name.endsWith(".etl")).bytes)).origin, "etw");
  await assert.rejects(open(new Uint8Array([0x4d, 0x5a, 0x90, 0])), /not an \.etl trace|no trace/);
  await assert.rejects(verify(path.join(work, "missing.etl")), /ENOENT/);
  console.log("the npm package agrees with the command line");
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
