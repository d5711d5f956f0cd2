#!/usr/bin/env python3
"""Takes the pictures of docs/images: scripts/pictures/take.py [ETLKIT]

Simulates scripts/pictures/orders.kdl, exports it, and opens the files in headless Chromium: the
flame graph page, and speedscope (package of .node, see scripts/install.sh node). ETLKIT is the program; by
default it is built. Needs Unix and Chromium (scripts/install.sh chromium).
"""
import base64
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/images"
SPEEDSCOPE = ROOT / ".node/node_modules/speedscope/dist/release/index.html"
BROWSER = os.environ.get("ETLKIT_CHROMIUM", "chromium")
FLAGS = ["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage",
         "--no-first-run", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
         "--allow-file-access-from-files", "--remote-debugging-pipe"]
LARGEST = 150_000  # bytes of a picture


class Page:
    """A page of a browser, controlled through pipes by its DevTools protocol."""

    def __init__(self, profile, width, height):
        to_read, self.to = os.pipe()
        self.out, out_write = os.pipe()

        def connect():
            # Copies first: the pipes may be where the browser wants others.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, out_write)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.child = subprocess.Popen(
            [BROWSER, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
            preexec_fn=connect, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(out_write)
        self.rest, self.last, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                part = os.read(self.out, 1 << 16)
                if not part:
                    sys.exit("the browser ended")
                self.rest += part
            answer, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self.last:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return answer["result"].get("value")

    def open(self, url, ready):
        """Opens a page, and waits until a script says that it is ready."""
        self.call("Page.navigate", url=url)
        for _ in range(300):
            if self.run(ready):
                break
            time.sleep(0.2)
        else:
            sys.exit(f"{url} does not get ready")
        time.sleep(1)

    def picture(self, name):
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if len(data) > LARGEST:
            sys.exit(f"{name}: {len(data)} bytes are too many")
        (IMAGES / name).write_bytes(data)
        print(f"docs/images/{name}: {len(data)} bytes")

    def close(self):
        self.child.terminate()
        self.child.wait()


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    if not program:
        subprocess.run(["cargo", "build", "--bin", "etlkit"], check=True, cwd=ROOT)
        program = ROOT / "target/debug/etlkit"
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        def etlkit(*words):
            subprocess.run([program, *words], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)

        etlkit("synth", "scripts/pictures/orders.kdl", "-o", folder)
        trace = f"{folder}/orders.etl"
        etlkit("export", "flamegraph", "--process", "Orders", trace, "-o", f"{folder}/flame.html")
        etlkit("export", "speedscope", "--process", "Orders", trace, "-o", f"{folder}/scope.json")
        text = base64.b64encode(pathlib.Path(f"{folder}/scope.json").read_bytes()).decode()
        script = f"speedscope.loadFileFromBase64('orders.etl', '{text}')"
        pathlib.Path(f"{folder}/scope.js").write_text(script, encoding="utf-8")

        page = Page(f"{folder}/browser", 1000, 420)
        try:
            page.open(f"file://{folder}/flame.html", "document.readyState === 'complete'")
            page.picture("flamegraph.png")
            url = f"{SPEEDSCOPE.as_uri()}#localProfilePath={folder}/scope.js"
            page.open(url, "document.querySelectorAll('canvas').length > 1")
            page.picture("speedscope.png")
        finally:
            page.close()


if __name__ == "__main__":
    main()
