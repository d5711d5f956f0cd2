// Builds the page and the npm package from their sources and the WebAssembly module:
//
//   node build.mjs [--watch]
//
// dist/page     static files: index.html, style.css, page.js, worker.js, etlkit.wasm.gz
// dist/etlkit.html  the same page as one file
// dist/package  the npm package: ESM, types, etlkit.wasm
//
// The module is $ETLKIT_WASM, or what module/build.sh has made.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { context, build } from "esbuild";

const web = import.meta.dirname;
const dist = path.join(web, "dist");
const built = path.join(web, "../.cache/wasm/wasm32-unknown-unknown/release/etl_wasm.wasm");
const modulePath = process.env.ETLKIT_WASM ?? built;
// The aim is 2.5 MB; the limit keeps it from growing unseen.
const MAX_BYTES = 3_600_000;

if (!fs.existsSync(modulePath)) {
  console.error(`build: there is no module at ${modulePath}: run web/module/build.sh first`);
  process.exit(1);
}

const options = {
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
};

/** The text of the page with its parts in the places of comments. */
function assemble(parts) {
  let html = fs.readFileSync(path.join(web, "page/index.html"), "utf8");
  for (const [name, text] of Object.entries(parts)) {
    html = html.replace(`<!-- ${name} -->`, () => text);
  }
  return html;
}

/** The style, with the dark palette also for those who choose it on the page. */
function style() {
  const css = fs.readFileSync(path.join(web, "page/style.css"), "utf8");
  const dark = css.match(/:root:not\(\[data-theme="light"\]\) \{([^}]*)\}/)[1];
  return css.replace("/* dark */", `:root[data-theme="dark"] {${dark}}`);
}

const policy = (directives) =>
  `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; ${directives}; ` +
  `base-uri 'none'; form-action 'none'">`;

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** A script inside of a page must not contain its end. */
const inPage = (script) => script.replaceAll("</script", "<\\/script");

function write(name, content) {
  const file = path.join(dist, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
}

function writePages(script, worker) {
  const packed = gzipSync(fs.readFileSync(modulePath), { level: 9 });
  const css = style();
  write("page/style.css", css);
  write("page/page.js", script);
  write("page/worker.js", worker);
  write("page/etlkit.wasm.gz", packed);
  write(
    "page/index.html",
    assemble({
      "security policy": policy(
        "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; " +
          "connect-src 'self'; style-src 'self'; img-src 'self' data:",
      ),
      style: '<link rel="stylesheet" href="style.css"><link rel="icon" href="data:,">',
      parts: "",
      script: '<script src="page.js"></script>',
    }),
  );
  const inline = inPage(script);
  const inlineWorker = inPage(worker);
  write(
    "etlkit.html",
    assemble({
      "security policy": policy(
        `script-src ${hash(inline)} 'wasm-unsafe-eval' blob:; ` +
          `worker-src blob:; connect-src 'none'; style-src ${hash(css)}; img-src data:`,
      ),
      style: `<style>${css}</style><link rel="icon" href="data:,">`,
      parts:
        `<script type="text/plain" id="worker-script">${inlineWorker}</script>\n` +
        `<script type="text/plain" id="module">${packed.toString("base64")}</script>`,
      script: `<script>${inline}</script>`,
    }),
  );
  const bytes = packed.length + gzipSync(css + script + worker, { level: 9 }).length;
  console.log(`page: ${bytes} bytes with gzip, of them the module ${packed.length}`);
  if (bytes > MAX_BYTES && process.env.ETLKIT_WASM === undefined) {
    console.error(`build: the page may have at most ${MAX_BYTES} bytes`);
    process.exitCode = 1;
  }
}

const packageOptions = {
  entryPoints: [path.join(web, "package/src/index.ts")],
  bundle: true,
  format: "esm",
  platform: "neutral",
  external: ["node:fs", "node:fs/promises"],
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
  outfile: path.join(dist, "package/index.js"),
};

function writePackage() {
  const source = path.join(web, "package");
  fs.copyFileSync(modulePath, path.join(dist, "package/etlkit.wasm"));
  for (const name of ["package.json", "README.md"]) {
    fs.copyFileSync(path.join(source, name), path.join(dist, "package", name));
  }
  for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    fs.copyFileSync(path.join(web, "..", name), path.join(dist, "package", name));
  }
  const tsc = path.join(web, "node_modules/typescript/bin/tsc");
  const types = spawnSync(
    process.execPath,
    [tsc, "--project", path.join(source, "tsconfig.json")],
    { stdio: "inherit" },
  );
  if (types.status !== 0) process.exit(1);
}

const plugin = {
  name: "pages",
  setup(setup) {
    setup.onEnd((result) => {
      if (result.errors.length > 0) return;
      const text = (name) => result.outputFiles.find((file) => file.path.endsWith(name)).text;
      writePages(text("main.js"), text("worker.js"));
    });
  },
};

const page = {
  ...options,
  entryPoints: ["main.ts", "worker.ts"].map((name) => path.join(web, "page/src", name)),
  outdir: dist,
  write: false,
  plugins: [plugin],
};

if (process.argv.includes("--watch")) {
  await (await context(page)).watch();
} else {
  await build(page);
  await build(packageOptions);
  writePackage();
}
