// Opens a file with the importer of speedscope itself (the bundle of its package), and prints for
// each profile its name, its unit, its total weight, and the weight of each frame with and without
// the frames that it calls, as one JSON object: PACKAGES FILE.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [packages, file] = process.argv.slice(2);
const folder = path.join(packages, "speedscope/dist/release");
const bundle = fs.readdirSync(folder).find((name) => /^speedscope-.*\.js$/.test(name));
const source = fs.readFileSync(path.join(folder, bundle), "utf8");
// The bundle is one function without exports: a line at its beginning keeps the importer, which is
// declared further below.
const importer = source.match(/Importing as speedscope json file"\),([\w$]+)\(/)[1];
const start = "(()=>{";
const at = source.indexOf(start) + start.length;
const patched = `${source.slice(0, at)}globalThis.importer=(file)=>${importer}(file);${source.slice(at)}`;

// The page's own code runs last, with a browser whose parts are functions that return another part.
// It cannot draw the page, but the importer is ready by then.
const part = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : part),
  set: () => true,
  has: () => true,
  apply: () => part,
  construct: () => part,
});
const silent = () => {};
const log = { log: silent, warn: silent, error: silent, time: silent, timeEnd: silent };
const browser = { console: log, setTimeout: silent, TextDecoder, TextEncoder, URL };
for (const name of ["document", "navigator", "location", "localStorage", "addEventListener"]) {
  browser[name] = part;
}
const context = vm.createContext(browser);
context.window = context.self = context.globalThis = context;
try {
  vm.runInContext(patched, context);
} catch (error) {
  if (!context.importer) throw error;
}

const group = context.importer(JSON.parse(fs.readFileSync(file, "utf8")));
const profiles = group.profiles.map((profile) => {
  const frames = {};
  profile.forEachFrame((frame) => {
    frames[frame.name] = { total: frame.getTotalWeight(), self: frame.getSelfWeight() };
  });
  return {
    name: profile.getName(),
    unit: profile.getWeightUnit(),
    total: profile.getTotalWeight(),
    frames,
  };
});
console.log(JSON.stringify({ name: group.name, profiles }));
