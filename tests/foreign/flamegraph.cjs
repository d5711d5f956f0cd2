// Searches for a text in the page of a flame graph, and prints what the page says of it and the
// labels of the frames that it marks. The page runs with a document that has as much as it needs.
const fs = require("fs");
const vm = require("vm");

const page = fs.readFileSync(process.argv[2], "utf8");
const [, data, script] = page.match(/json">([^]*?)<\/script>\s*<script>([^]*?)<\/script>/);
const element = () => ({ style: {}, children: [], clientWidth: 10000,
  append(...items) { this.children.push(...items); } });
const known = { data: { textContent: data } };
const document = {
  getElementById: (id) => (known[id] ??= element()),
  createElement: element,
};
vm.runInNewContext(script, { document, addEventListener() {} });
known.graph.children = [];
known.search.oninput({ target: { value: process.argv[3] } });
const marked = known.graph.children.filter((box) => box.className === "found");
console.log(JSON.stringify({ said: known.matched.textContent, marked: marked.map((b) => b.title) }));
