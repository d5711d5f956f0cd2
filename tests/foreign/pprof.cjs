// Reads a pprof file with the package pprof-format, and prints the stacks of its samples with their
// values, by process, as one JSON object.
const fs = require("fs");
const path = require("path");
const zlib = require("zlib");
const { Profile } = require(path.join(process.argv[2], "pprof-format"));

const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(process.argv[3])));
const text = (number) => profile.stringTable.strings[Number(number)];
const byId = (list) => new Map(list.map((item) => [Number(item.id), item]));
const [functions, locations, mappings] =
  [profile.function, profile.location, profile.mapping].map(byId);
// What is at each address.
const places = profile.location.map((location) => {
  const mapping = mappings.get(Number(location.mappingId));
  const line = location.line[0];
  const called = functions.get(Number(line.functionId));
  return {
    mapping: text(mapping.filename),
    offset: Number(BigInt(location.address) - BigInt(mapping.memoryStart)),
    name: text(called.name),
    file: text(called.filename),
    line: Number(line.line),
  };
});
const stacks = {};
const problems = [];
for (const sample of profile.sample) {
  const frames = sample.locationId.map((id) => {
    const location = locations.get(Number(id));
    const mapping = mappings.get(Number(location.mappingId));
    const [start, limit] = [BigInt(mapping.memoryStart), BigInt(mapping.memoryLimit)];
    const address = BigInt(location.address);
    if (limit > 0n && (address < start || address >= limit)) {
      problems.push(`${address.toString(16)} is outside of ${text(mapping.filename)}`);
    }
    return text(functions.get(Number(location.line[0].functionId)).name);
  });
  const labels = {};
  for (const label of sample.label) {
    labels[text(label.key)] = Number(label.str) ? text(label.str) : Number(label.num);
  }
  const key = [`${labels.process} (${labels.pid})`, ...frames.reverse()].join(";");
  const before = stacks[key] || [0, 0];
  stacks[key] = sample.value.map((value, at) => before[at] + Number(value));
}
const types = profile.sampleType.map((type) => `${text(type.type)}/${text(type.unit)}`);
const period = Number(profile.period);
const files = profile.mapping.map((mapping) => text(mapping.filename));
console.log(JSON.stringify({ types, period, stacks, problems, locations: places, mappings: files }));
