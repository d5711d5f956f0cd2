//! A headless Chromium, controlled through a pipe by its DevTools protocol.
//!
//! Messages are JSON, each followed by a zero byte: commands go to file descriptor 3, answers and
//! events come from file descriptor 4.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page open.
pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// Events that have come.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    pub fn start(browser: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null",
            ])
            .arg(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0) {
                let Ok(message) = message else { return };
                let message = serde_json::from_slice(&message).expect("messages are JSON");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let (last, session, events) = (0, None, Vec::new());
        let mut chromium = Chromium {
            child,
            to,
            from,
            last,
            session,
            events,
            _profile: profile,
        };
        let target = chromium.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = &target["targetId"];
        let attached = chromium.call(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        chromium.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.call(&format!("{domain}.enable"), json!({}));
        }
        chromium
    }

    fn take(&mut self) -> Value {
        self.from
            .recv_timeout(PATIENCE)
            .expect("the browser answers")
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut message = self.take();
            if message["id"] == self.last {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// Opens a page on a screen of this size, in the light or the dark; forgets what came before.
    pub fn open(&mut self, page: &Path, (width, height): (u32, u32), scheme: &str) {
        let phone = width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}),
        );
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
        self.events.clear();
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", json!({"url": url}));
        while !self
            .events
            .iter()
            .any(|e| e["method"] == "Page.loadEventFired")
        {
            let event = self.take();
            self.events.push(event);
        }
    }

    /// The value of an expression in the page.
    pub fn ask(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    /// Clicks into the middle of the element that an expression names, with the mouse.
    pub fn click(&mut self, element: &str) {
        let place = self.ask(&format!(
            "(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            self.call(
                "Input.dispatchMouseEvent",
                json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}),
            );
        }
    }

    /// A picture of the whole page as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let params = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", params);
        let text = answer["data"].as_str().unwrap();
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap()
    }

    /// What the page asked of the network, and what it complained of.
    pub fn asked_and_complained(&self) -> (Vec<String>, Vec<String>) {
        let of = |method: &'static str| self.events.iter().filter(move |e| e["method"] == method);
        let asked = of("Network.requestWillBeSent");
        let asked = asked.map(|e| e["params"]["request"]["url"].to_string());
        let complained = [
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
        ];
        let complained = complained.into_iter().flat_map(of).map(Value::to_string);
        (asked.collect(), complained.collect())
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Its children go with it; only then can its profile be deleted.
        let message = json!({"id": self.last + 1, "method": "Browser.close"});
        let mut bytes = serde_json::to_vec(&message).unwrap_or_default();
        bytes.push(0);
        let _ = self.to.write_all(&bytes);
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
