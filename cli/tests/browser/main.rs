//! The HTML report of `etlverify` in a browser: on large and small screens, in light and dark mode,
//! with a mouse.
//!
//! `ETLKIT_SCREENSHOTS=DIR` writes the screenshots to DIR.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![cfg(unix)]

mod chromium;
#[path = "../it/common.rs"]
#[allow(dead_code)] // Shared with the other tests.
mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chromium::Chromium;
use common::{directory, etlkit, etlverify};
use etl_test_support::needs;
use serde_json::Value;

const LARGE: (u32, u32) = (1280, 900);
const SMALL: (u32, u32) = (390, 844);

/// What the page says of itself once it is laid out.
const LOOK: &str = r#"(() => {
  const edge = document.documentElement.clientWidth;
  const outside = [], broken = [], pale = [];
  const numbers = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).slice(0, 3).map((c) => {
      const x = c / 255;
      return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const back = getComputedStyle(e).backgroundColor, parts = numbers(back);
      if (parts.length === 3 || parts[3] === 1) return back;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let t = texts.nextNode(); t; t = texts.nextNode()) {
    const e = t.parentElement;
    if (!t.data.trim() || e.closest("script, svg") || !e.checkVisibility()) continue;
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) pale.push(t.data.trim().slice(0, 40) + " " + contrast.toFixed(2));
    for (const word of t.data.matchAll(/\S+/g)) {
      const range = document.createRange();
      range.setStart(t, word.index);
      range.setEnd(t, word.index + word[0].length);
      const rects = [...range.getClientRects()].filter((r) => r.width > 0);
      const lines = new Set(rects.map((r) => Math.round(r.top)));
      // A hyphen or a slash is a place to break at, and what is longer than a line has to be
      // broken.
      if (lines.size > 1 && word[0].length < 24 && !/[-\/]/.test(word[0])) broken.push(word[0]);
      if (!e.closest(".scroll, pre") && rects.some((r) => r.right > edge + 1)) outside.push(word[0]);
    }
  }
  return {
    edge, outside, broken, pale,
    wide: document.documentElement.scrollWidth,
    back: getComputedStyle(document.body).backgroundColor,
    hidden: [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1).length,
    lanes: document.querySelectorAll("svg.bar").length,
    bars: [...document.querySelectorAll("svg.bar rect")].filter((r) => r.getBoundingClientRect().width > 0).length,
    links: document.querySelectorAll("[src], [href]:not([href^='#'])").length,
    text: document.body.innerText,
  };
})()"#;

/// Writes the page of a verdict and returns its path.
fn page(here: &Path, name: &str, args: &[&str]) -> PathBuf {
    let said = etlverify(here, &[&["--no-config", "--format", "html"], args].concat());
    assert_eq!(said.err, "");
    let path = here.join(format!("{name}.html"));
    std::fs::write(&path, said.out).unwrap();
    path
}

/// The pixels of a picture: width, height, and red, green and blue of each.
fn pixels(png: &[u8]) -> (u32, u32, Vec<[u8; 3]>) {
    let decoder = png::Decoder::new(std::io::Cursor::new(png));
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let each = info.color_type.samples();
    let pixels = bytes[..info.buffer_size()]
        .chunks_exact(each)
        .map(|p| [p[0], p[1], p[2]]);
    (info.width, info.height, pixels.collect())
}

/// Opens a page on both screens and in both color schemes; returns its answer on the last one.
fn look(browser: &mut Chromium, page: &Path) -> Value {
    let mut last = Value::Null;
    for (size, screen) in [(LARGE, "large"), (SMALL, "small")] {
        for scheme in ["light", "dark"] {
            browser.open(page, size, scheme);
            let what = format!("{} on a {screen} screen, {scheme}", page.display());
            let seen = browser.ask(LOOK);
            let none = |key: &str| {
                assert_eq!(seen[key], serde_json::json!([]), "{what}: {key}");
            };
            // Nothing beyond the edge, no word broken in the middle, nothing too pale to be read.
            assert_eq!(
                seen["wide"], size.0,
                "{what}: the page can be moved sideways"
            );
            ["outside", "broken", "pale"].into_iter().for_each(none);
            assert_eq!(seen["links"], 0, "{what}");
            if screen == "large" {
                assert_eq!(seen["hidden"], 0, "{what}: a table is wider than its place");
            }
            let (asked, complained) = browser.asked_and_complained();
            assert_eq!(
                asked.len(),
                1,
                "{what}: nothing but the page itself: {asked:?}"
            );
            assert_eq!(complained, Vec::<String>::new(), "{what}");

            let picture = browser.picture();
            if let Some(directory) = std::env::var_os("ETLKIT_SCREENSHOTS") {
                let name = page.file_stem().unwrap().to_string_lossy();
                let file = format!("{name}-{screen}-{scheme}.png");
                std::fs::write(Path::new(&directory).join(file), &picture).unwrap();
            }
            let (width, height, pixels) = pixels(&picture);
            assert!(
                width >= size.0 && height > 300,
                "{what}: {width} by {height}"
            );
            let corners = [
                pixels[0],
                pixels[width as usize - 1],
                pixels[pixels.len() - 1],
            ];
            for pixel in corners {
                let right = match scheme {
                    "dark" => pixel.iter().all(|c| *c < 0x30),
                    _ => pixel.iter().all(|c| *c > 0xf0),
                };
                assert!(right, "{what}: the ground is {pixel:?}");
            }
            // Ground by far the most, and on it text and bars.
            let ground = pixels.iter().filter(|p| **p == corners[0]).count();
            let share = ground as f64 / pixels.len() as f64;
            assert!(
                (0.4..0.995).contains(&share),
                "{what}: {share:.3} of it is ground"
            );
            let mut colors = BTreeSet::new();
            let has_many = pixels.iter().any(|p| colors.insert(p) && colors.len() > 20);
            assert!(has_many, "{what}: the page is empty");
            last = seen;
        }
    }
    last
}

#[needs(trace = "perfview/net.4.5.2.x64.etl", chromium)]
#[test]
fn html_report_of_a_real_trace_can_be_sorted() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let browser = etl_test_support::chromium();
    let here = directory(&[]);
    std::os::unix::fs::symlink(path, here.path().join("net.4.5.2.x64.etl")).unwrap();
    let page = page(here.path(), "real", &["net.4.5.2.x64.etl"]);
    let browser = &mut Chromium::start(&browser);
    let seen = look(browser, &page);
    let text = seen["text"].as_str().unwrap();
    assert!(
        text.contains("complete") && text.contains("PerfView.exe") && text.contains("12.582 s")
    );
    assert!(
        seen["lanes"].as_u64().unwrap() > 15 && seen["bars"].as_u64().unwrap() > 40,
        "{seen}"
    );

    // A click on a column's head sorts, another one turns it round.
    browser.open(&page, LARGE, "light");
    let column = "[...document.querySelectorAll('table.findings tbody tr')].map(r => r.cells[2].dataset.key | 0)";
    let pids = |answer: Value| -> Vec<i64> {
        answer
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_i64().unwrap())
            .collect()
    };
    let before = pids(browser.ask(column));
    assert!(before.len() > 10 && !before.is_sorted(), "{before:?}");
    let head = "document.querySelectorAll('table.findings th')[2]";
    browser.click(&format!("{head}.querySelector('button')"));
    assert_eq!(browser.ask(&format!("{head}.ariaSort")), "ascending");
    let mut up = pids(browser.ask(column));
    assert!(up.is_sorted() && up.len() == before.len(), "{up:?}");
    browser.click(&format!("{head}.querySelector('button')"));
    assert_eq!(browser.ask(&format!("{head}.ariaSort")), "descending");
    up.reverse();
    assert_eq!(pids(browser.ask(column)), up);
    // Times sort as times, rules as text, and a new column takes the mark over.
    browser.click("document.querySelectorAll('table.findings th')[3].querySelector('button')");
    assert_eq!(browser.ask(&format!("{head}.ariaSort")), Value::Null);
    let times = browser.ask(
        "[...document.querySelectorAll('table.findings tbody tr')].map(r => r.cells[3].dataset.text)",
    );
    assert!(
        times
            .as_array()
            .unwrap()
            .is_sorted_by_key(|v| v.as_str().unwrap().to_owned())
    );

    // The explanation of a finding opens on a click.
    let details = "document.querySelector('table.findings details')";
    assert_eq!(browser.ask(&format!("{details}.open")), false);
    browser.click(&format!("{details}.querySelector('summary')"));
    assert_eq!(browser.ask(&format!("{details}.open")), true);
    assert_eq!(browser.asked_and_complained().1, Vec::<String>::new());
}

/// Many processes with names that do not fit, several sessions, losses everywhere; and a trace of
/// no CLR at all.
#[needs(chromium)]
#[test]
fn html_report_of_many_processes_fits() {
    let browser = etl_test_support::chromium();
    let here = directory(&[("crowd.kdl", include_bytes!("crowd.kdl"))]);
    let said = etlkit(here.path(), &["synth", "crowd.kdl", "-o", "crowd"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let files = ["crowd/clr.etl", "crowd/kernel.etl", "crowd/rundown.etl"];
    let crowd = page(
        here.path(),
        "crowd",
        &[&["--together"], files.as_slice()].concat(),
    );
    let browser = &mut Chromium::start(&browser);
    let seen = look(browser, &crowd);
    let text = seen["text"].as_str().unwrap();
    assert!(
        text.contains("6 more processes") && text.contains("loss"),
        "{text}"
    );
    assert!(text.contains("see processor "), "{text}");
    // Findings are not below the lanes of all processes, and names that do not fit show in full
    // when asked for.
    browser.open(&crowd, LARGE, "light");
    let findings = "document.querySelector('table.findings').getBoundingClientRect().top";
    assert!(browser.ask(findings).as_f64().unwrap() < 3_000.0);
    let titles = "[...document.querySelectorAll('.lane .name')].every(e => !e.title || e.title === e.textContent)";
    assert_eq!(browser.ask(titles), true);
    let tall =
        "Math.max(...[...document.querySelectorAll('.lane .name')].map(e => e.clientHeight))";
    assert!(browser.ask(tall).as_f64().unwrap() < 45.0);

    // What was found is seen beside whose it is.
    let rows = "[...document.querySelectorAll('table.findings tbody tr')].map(r => r.cells[4].getBoundingClientRect())";
    let seen = format!(
        "{rows}.every(b => b.width > 250 && b.right <= document.documentElement.clientWidth)"
    );
    assert_eq!(browser.ask(&seen), true);

    let kernel = page(here.path(), "kernel", &["crowd/kernel.etl"]);
    let seen = look(browser, &kernel);
    let text = seen["text"].as_str().unwrap();
    assert!(
        !text.contains("more processes") && text.contains("kernel stacks"),
        "{text}"
    );
}

/// Complete, incomplete, lossy, and all on one page.
#[needs(chromium)]
#[test]
fn html_report_of_several_traces_fits() {
    let browser = etl_test_support::chromium();
    let here = directory(&[("small.etl", &common::trace())]);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut files = vec!["small.etl"];
    for (scenario, file) in [
        ("rules/sound", "rules-sound/clr.etl"),
        ("rules/rundown.none", "rules-rundown.none/clr.etl"),
        ("rules/file.events-lost", "rules-file.events-lost/clr.etl"),
        ("many-processes", "many-processes/many.etl"),
    ] {
        let script = corpus.join(format!("{scenario}.kdl"));
        let out = scenario.replace('/', "-");
        let said = etlkit(
            here.path(),
            &["synth", script.to_str().unwrap(), "-o", &out],
        );
        assert_eq!(said.code, 0, "{}", said.err);
        files.push(file);
    }
    let page = page(here.path(), "several", &files);
    let browser = &mut Chromium::start(&browser);
    let seen = look(browser, &page);
    let text = seen["text"].as_str().unwrap();
    assert!(text.starts_with("5 traces"), "{text}");
    for file in files {
        assert!(text.contains(file), "{file}");
    }
    // The list of traces is sorted by verdict, the worst first; each row leads to its trace.
    browser.open(&page, LARGE, "light");
    browser.click("document.querySelector('table.traces th button')");
    let first = "document.querySelector('table.traces tbody tr').innerText";
    assert!(
        browser
            .ask(first)
            .as_str()
            .unwrap()
            .starts_with("incomplete")
    );
    let leads = "[...document.querySelectorAll('table.traces a')].every(a => document.querySelector(a.hash))";
    assert_eq!(browser.ask(leads), true);
    // Every piece of a timeline has a tooltip.
    let bars = "[...document.querySelectorAll('.lane rect')].every(r => r.querySelector('title').textContent)";
    assert_eq!(browser.ask(bars), true);
    // With everything unfolded it still fits: command lines are moved within their boxes.
    for size in [LARGE, SMALL] {
        browser.open(&page, size, "light");
        browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })");
        let seen = browser.ask(LOOK);
        assert_eq!(seen["wide"], size.0);
        assert_eq!(seen["outside"], serde_json::json!([]));
        assert!(
            seen["text"]
                .as_str()
                .unwrap()
                .contains("xperf -start clrRundown")
        );
    }
}
